"""Whether joint springs can be taken at the start of a step."""

import numpy as np
from scipy.linalg import eigvalsh, null_space

from bulletbridge.simulation.solver import Solver

STIFF = 1.5
"""w dt of the fastest spring mode from which explicit springs are not used; 2 is unstable."""


def fastest_mode(solver: Solver) -> float:
    """Largest frequency of the joint springs at the state, within the constraints [rad/s]."""
    stiffness = solver.axes["stiffness"]
    if not np.any(stiffness):
        return 0.0
    terms = solver.terms(solver.q, solver.v, solver.t)
    free = null_space(terms.J) if len(terms.J) else np.eye(len(stiffness))
    if not free.shape[1]:
        return 0.0
    K = free.T @ (stiffness[:, None] * free)
    return float(np.sqrt(max(eigvalsh(K, free.T @ terms.M @ free)[-1], 0.0)))
