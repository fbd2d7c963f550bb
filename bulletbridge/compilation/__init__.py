"""Compilation of kernels: decorators, cache, private parts of numba and a fallback."""
