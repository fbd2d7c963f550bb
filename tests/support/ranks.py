"""Ranks of matrices that may be empty."""

import numpy as np


def rank(A: np.ndarray) -> int:
    """Rank of A (m, n); zero without rows or columns, which NumPy before 2.3 refuses."""
    return int(np.linalg.matrix_rank(A)) if A.size else 0
