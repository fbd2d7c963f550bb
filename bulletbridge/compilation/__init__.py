"""How kernels are compiled, kept and announced."""
