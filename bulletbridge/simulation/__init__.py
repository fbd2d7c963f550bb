"""Systems in time: assembly, redundancy, steps, integrators, evaluation."""
