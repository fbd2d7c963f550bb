"""The compiled step: dense and sparse factors, integrators, correction, redundancy."""
