"""Null spaces by NumPy alone: to import SciPy's linear algebra takes a tenth of a start."""

import numpy as np

from bulletbridge.numerics.records import Array


def null_space(rows: Array) -> Array:
    """Orthonormal columns (n, n - rank) on which all rows (m, n) vanish, as SciPy's has them."""
    if not len(rows):
        return np.eye(rows.shape[1])
    _, sizes, directions = np.linalg.svd(rows)
    least = max(rows.shape) * np.finfo(float).eps * max(sizes, default=0.0)
    return directions[np.count_nonzero(sizes > least) :].T
