"""Limits of explicit springs and dampers: which are too stiff for the start of a step."""

import numpy as np
from scipy.linalg import eigvalsh, null_space

from bulletbridge.engine.stepper import Solver
from bulletbridge.engine.workspace import Terms
from bulletbridge.mechanism.force_elements import add_compliance
from bulletbridge.numerics.records import Array

STIFF = 1.5
"""w dt of the fastest spring mode, or rate times dt of the fastest damper, from which explicit ones
are not used; 2 is unstable."""


def has_springs(solver: Solver) -> bool:
    """Whether anything in a system would be taken at the end of an implicit step."""
    elements = solver.encoded.elements
    found = np.any(solver.axes["stiffness"]) or np.any(elements["stiffness"])
    return bool(found or np.any(elements["damping"]))


def too_fast(solver: Solver) -> bool:
    """Whether explicit springs, or the dampers of force elements, could not follow at the state."""
    if not has_springs(solver):
        return False
    dt, terms = float(solver.control[0]["dt"]), solver.terms(solver.q, solver.v, solver.t)
    spring = np.sqrt(_fastest(compliance(solver, terms, 0.0, 1.0), terms))
    return max(spring, _fastest(compliance(solver, terms, 1.0, 0.0), terms)) * dt > STIFF


def compliance(solver: Solver, terms: Terms, damping: float, stiffness: float) -> Array:
    """damping D + stiffness K (nv, nv) of joint springs and force elements at a state.

    The dampers of joints are left out: no step takes them at its end without a spring.
    """
    elements, nv = solver.encoded.elements, len(terms.h)
    found = np.zeros((nv, nv))
    row = np.zeros(nv)
    add_compliance(elements, terms.poses, terms.axes, damping, stiffness, row, found)
    found += np.tril(found, -1).T
    return found + np.diag(stiffness * solver.axes["stiffness"])


def _fastest(K: Array, terms: Terms) -> float:
    """Largest eigenvalue of K against the mass matrix, within the constraints."""
    free = null_space(terms.J) if len(terms.J) else np.eye(len(K))
    if not free.shape[1] or not np.any(K):
        return 0.0
    return max(float(eigvalsh(free.T @ K @ free, free.T @ terms.M @ free)[-1]), 0.0)
