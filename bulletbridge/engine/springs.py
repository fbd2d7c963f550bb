"""Limits of explicit springs and dampers: which are too stiff for the start of a step."""

import numpy as np

from bulletbridge.engine.stepper import Solver
from bulletbridge.engine.workspace import Terms
from bulletbridge.mechanism.force_elements import add_compliance
from bulletbridge.numerics.null_space import null_space
from bulletbridge.numerics.records import Array

STIFF = 1.5
"""w dt of the fastest spring mode from which explicit springs are not used; 2 is unstable."""
FAST = 0.5
"""Rate times dt of the fastest damper from which explicit dampers are not used. 2 is unstable; what
a damper slows down weighs less in other configurations, and from here on an explicit one is wrong
by a tenth of what it takes in a step."""


def has_springs(solver: Solver) -> bool:
    """Whether anything in a system has a stiffness."""
    elements = solver.encoded.elements
    return bool(np.any(solver.axes["stiffness"]) or np.any(elements["stiffness"]))


def has_dampers(solver: Solver) -> bool:
    """Whether any joint or force element damps."""
    return bool(np.any(solver.axes["damping"]) or np.any(solver.encoded.elements["damping"]))


def too_fast(solver: Solver) -> tuple[float, float]:
    """How far springs and dampers are beyond what explicit ones could follow at the state.

    Returns:
        w dt of the fastest spring mode and rate times dt of the fastest damper, each over the
        largest that explicit steps are taken with: beyond 1 they are too fast.
    """
    dt, terms = float(solver.control[0]["dt"]), solver.terms(solver.q, solver.v, solver.t)
    spring = dt * np.sqrt(_fastest(compliance(solver, terms, 0.0, 1.0), terms))
    return spring / STIFF, dt * _fastest(compliance(solver, terms, 1.0, 0.0), terms) / FAST


def compliance(solver: Solver, terms: Terms, damping: float, stiffness: float) -> Array:
    """damping D + stiffness K (nv, nv) of joints and force elements at a state."""
    elements, nv = solver.encoded.elements, len(terms.h)
    found = np.zeros((nv, nv))
    row = np.zeros(nv)
    add_compliance(elements, terms.poses, terms.axes, damping, stiffness, row, found)
    found += np.tril(found, -1).T
    own = damping * solver.axes["damping"] + stiffness * solver.axes["stiffness"]
    return found + np.diag(own)


def fast_damper(solver: Solver) -> str:
    """What says which joint's damper an explicit step cannot follow; empty if there is none.

    Alone a damper d slows its joint down within M⁻¹ d of a second.
    """
    damping = solver.axes["damping"]
    if not np.any(damping):
        return ""
    terms = solver.terms(solver.q, solver.v, solver.t)
    rates = damping * np.diag(np.linalg.inv(terms.M)) * float(solver.control[0]["dt"])
    k = int(np.argmax(rates))
    if rates[k] <= FAST:
        return ""
    (name,) = (j.name for j in solver.mechanism.joints.values() if j.v.start <= k < j.v.stop)
    return (
        f"the damping of joint '{name}', {damping[k]:g}, would stop it within"
        f" {1.0 / rates[k]:.2g} of a step"
    )


def _fastest(K: Array, terms: Terms) -> float:
    """Largest eigenvalue of K against the mass matrix, within the constraints."""
    free = null_space(terms.J)
    if not free.shape[1] or not np.any(K):
        return 0.0
    L = np.linalg.cholesky(free.T @ terms.M @ free)
    half = np.linalg.solve(L, free.T @ K @ free)
    return max(float(np.linalg.eigvalsh(np.linalg.solve(L, half.T))[-1]), 0.0)
