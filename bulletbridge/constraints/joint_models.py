"""Joint models: the free motions of each, and the rows that follow as their complement.

Source: the dual bases of the general joint model, Bonaventura 2002.
"""

import numpy as np

from bulletbridge.constraints.joints import Coupling, Distance, JointModel, LoopJoint
from bulletbridge.constraints.records import AXIAL, FREE_ROTATION, FULL, ROLLS
from bulletbridge.errors import ModelError
from bulletbridge.numerics.null_space import null_space
from bulletbridge.numerics.records import Array

SHORT = 0.3
"""Share of the largest entry: columns of general rows with nothing above it come last."""
RX, RY, RZ, X, Y, Z = np.eye(6)
"""Unit twists (angular, linear) in axes of frame a."""

TURN, TRAVEL = "turn", "travel"
MOTIONS = {
    JointModel.REVOLUTE: (TURN,),
    JointModel.SCREW: (TURN,),
    JointModel.PRISMATIC: (TRAVEL,),
    JointModel.CYLINDRICAL: (TURN, TRAVEL),
}
"""Free motions along an axis, by joint model."""
LIMITABLE = LoopJoint, Distance, Coupling
"""Constraints that may have a force limit."""
FREE_MOTIONS: dict[JointModel, list[Array]] = {
    JointModel.BALL: [RX, RY, RZ],
    JointModel.WELD: [],
    JointModel.REVOLUTE: [RZ],
    JointModel.PRISMATIC: [Z],
    JointModel.UNIVERSAL: [RX, RY, RZ],  # less one, whose direction depends on the configuration
    JointModel.CYLINDRICAL: [RZ, Z],
    JointModel.PLANAR: [RZ, X, Y],
    JointModel.POINT_ON_LINE: [RX, RY, RZ, Z],
    JointModel.POINT_ON_PLANE: [RX, RY, RZ, X, Y],
    JointModel.POINT_ON_SPHERE: [RX, RY, RZ, X, Y, Z],  # less one that depends, too
    JointModel.POINT_ON_CYLINDER: [RX, RY, RZ, X, Y, Z],  # the same
    JointModel.SOFT_FINGER: [RX, RY],
}
HELD_FORCES = {
    JointModel.SOFT_FINGER: [0, 1, 2],
    JointModel.ROLLING: [2],
    JointModel.PURE_ROLLING: [2],
}
"""Axes along which models with velocity rows hold a position; their other rows hold none."""


def free_motions(model: JointModel, advance: float, radius: float = 0.0) -> Array:
    """Basis (nf, 6) of what a joint model leaves free.

    Args:
        model: The joint model.
        advance: Of a screw [m/rad].
        radius: Of what rolls [m]: its turns are about the point below the centre.
    """
    if model is JointModel.SCREW:
        return (RZ + advance * Z).reshape(1, 6)
    if model in (JointModel.ROLLING, JointModel.PURE_ROLLING):
        over = [RX - radius * Y, RY + radius * X]
        return np.array(over if model is JointModel.PURE_ROLLING else [*over, RZ])
    return np.array(FREE_MOTIONS[model]).reshape(-1, 6)


def transmitted_wrenches(free: Array, short: float = 0.0) -> Array:
    """Rows (nc, 6) that vanish on the free motions, forces first, in reduced echelon form.

    The echelon form keeps rows along the axes wherever the free motions are. Columns whose entries
    are all below ``short``, of the largest, wait till the others are done: divided by them, rows
    would be long, and so would be what round-off leaves of their residuals.
    """
    forces_first = [3, 4, 5, 0, 1, 2]
    rows = null_space(free).T[:, forces_first]
    done, waiting = 0, list(range(6))
    for least in (short, 1e-9):
        for column in list(waiting):
            if done == len(rows):
                break
            pivot = done + int(np.argmax(np.abs(rows[done:, column])))
            if abs(rows[pivot, column]) < max(least * np.abs(rows[done:]).max(), 1e-9):
                continue
            rows[[done, pivot]] = rows[[pivot, done]]
            rows[done] /= rows[done, column]
            others = np.arange(len(rows)) != done
            rows[others] -= np.outer(rows[others, column], rows[done])
            waiting.remove(column)
            done += 1
    rows[np.abs(rows) < 1e-12] = 0.0
    return rows[:, forces_first]


def positions_first(model: JointModel, rows: Array) -> tuple[Array, int]:
    """Rows (nc, 6) with those that hold a position first, and their number."""
    if model not in HELD_FORCES:
        return rows, len(rows)
    held = HELD_FORCES[model]
    others = [k for k in range(len(rows)) if k not in held]
    return rows[held + others], len(held)


def dual_bases(free: Array) -> tuple[Array, Array]:
    """Wrenches psi_u (nf, 6) and psi_c (nc, 6) of a joint with free motions (nf, 6).

    Forces along free motions do work on these alone: psi_u · free = 1, psi_c · free = 0. A twist
    has the components psi_u · twist along the free motions. With the rows of psi_c as constrained
    motions besides, this is [psi_u psi_c] = [phi_u phi_c]^-T. Source: Bonaventura 2002.
    """
    constrained = transmitted_wrenches(free)
    both: Array = np.asarray(np.linalg.inv(np.vstack([free, constrained])).T, np.float64)
    return both[: len(free)], both[len(free) :]


def turn_axis(free: Array) -> Array:
    """Unit axis (3,) that all turns of free motions (nf, 6) have; z when it is not one axis."""
    _, sizes, axes = np.linalg.svd(free[:, :3].reshape(-1, 3))
    one = len(sizes) > 0 and sizes[0] > 0.0 and bool(np.all(sizes[1:] < 1e-12 * sizes[0]))
    return axes[0] if one else np.array([0.0, 0.0, 1.0])


def turns_on_the_way(rows: Array) -> Array:
    """Turn about z per way of b's origin (3,) [rad/m] that rows (nc, 6) tie to it; else zero."""
    tied = float(rows[:, 2] @ rows[:, 2])
    return -(rows[:, 2] @ rows[:, 3:]) / tied if tied > 0.0 else np.zeros(3)


def rotation_measure(model: JointModel, free: Array) -> int:
    """How the rotation of b in a is measured, from what is free."""
    if model in HELD_FORCES:
        return ROLLS
    free_turns = np.linalg.matrix_rank(free[:, :3]) if len(free) else 0
    return {0: FULL, 1: AXIAL}.get(int(free_turns), FREE_ROTATION)


def has_force_limit(constraint: object) -> bool:
    """Whether a constraint has a force limit."""
    return isinstance(constraint, LIMITABLE) and constraint.max_force is not None


def loop_axis_name(joint: LoopJoint, kind: str) -> str:
    """What a free motion is called: like its joint if it has but one.

    Raises:
        ModelError: The joint has no such free motion.
    """
    has = MOTIONS.get(joint.model, ())
    if kind not in has:
        known = " and ".join(has) or "none along an axis"
        raise ModelError(
            f"loop '{joint.name}' is {joint.model.value} and has no free {kind}; it has {known}"
        )
    return joint.name if len(has) == 1 else f"{joint.name}/{kind}"
