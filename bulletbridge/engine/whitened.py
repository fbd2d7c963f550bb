"""Rows of constraints in coordinates in which the mass matrix is the identity."""

import math

import numpy as np

from bulletbridge.constraints.arrays import Encoded
from bulletbridge.engine.workspace import SolverArrays
from bulletbridge.errors import ModelError
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.numerics.records import Array

SHARE = 0.3
"""Part of a motion, in the largest one, that is worth naming."""


def whiten(M: Array, J: Array, mechanism: Mechanism | None = None) -> Array:
    """Rows of J in coordinates in which the mass matrix is the identity.

    Args:
        M: (..., n, n), of all rates of a mechanism or some.
        J: (..., rows, n)
        mechanism: Whose joints an error names, if M is of all its rates.

    Raises:
        ModelError: Round-off of what is large in M exceeds what is small.
    """
    try:
        found = np.linalg.solve(np.linalg.cholesky(M), J.swapaxes(-1, -2))
    except np.linalg.LinAlgError:
        several = M.reshape(-1, *M.shape[-2:])
        least = several[np.argmin([np.linalg.eigvalsh(each)[0] for each in several])]
        raise ModelError(_no_inertia(least, mechanism)) from None
    return np.asarray(found, np.float64).swapaxes(-1, -2)


def _no_inertia(M: Array, mechanism: Mechanism | None) -> str:
    """Why a mass matrix is not positive definite, with the joints whose motion moves nothing."""
    own = np.diag(M)
    _, directions = np.linalg.eigh(M / np.sqrt(np.abs(np.outer(own, own)) + np.finfo(float).tiny))
    share = np.abs(directions[:, 0])
    joints = () if mechanism is None else mechanism.joints.values()
    names = [f"'{j.name}'" for j in joints if share[j.v].max(initial=0.0) > SHARE * share.max()]
    who = f"joints {', '.join(names)}" if names else "some joints"
    return (
        "the mass matrix is not positive definite within round-off: inertias of the rates span"
        f" {np.abs(own).min():.1g} to {np.abs(own).max():.1g}; correct the mass, the inertia or"
        f" the length in the robot's file that is far from all others. Here {who} can move so that"
        " next to no mass moves, as three hinges on a point of mass can: if that is meant, give"
        " one an armature (loops file: joints: {NAME: {armature: 0.01}}), or start elsewhere"
    )


def owner(encoded: Encoded, row: int) -> str:
    """Name of the constraint that a row belongs to."""
    return next(n for n, part in encoded.rows.items() if part.start <= row < part.stop)


def weakest(solver: SolverArrays) -> tuple[str, float]:
    """The constraint that is the nearest to losing a row at the state, and how near it is.

    Returns:
        Its name, and the least singular value of the independent rows over the largest; infinite
        where nothing is constrained, or nothing finite.
    """
    terms = solver.terms(solver.q, solver.v, solver.t)
    cap = int(solver.control[0]["cap"])
    if not cap or not np.all(np.isfinite(terms.M)):
        return "", math.inf
    rows = whiten(terms.M, solver.rows[0]["scale"][:, None] * terms.J)
    U, values, _ = np.linalg.svd(rows)
    # of rows that nothing moves all are zero
    ratio = float(values[cap - 1] / values[0]) if values[0] > 0.0 else 0.0
    return owner(solver.encoded, int(np.argmax(np.abs(U[:, cap - 1])))), ratio
