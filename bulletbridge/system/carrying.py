"""Validation of a change of constraints, and transfer of what they remember."""

from dataclasses import replace

import numpy as np

from bulletbridge.constraints.arrays import Encoded
from bulletbridge.constraints.encode import Constraint
from bulletbridge.constraints.force_elements import ForceElement, Wrench
from bulletbridge.constraints.joint_geometry import joint_axis
from bulletbridge.constraints.joint_models import has_force_limit
from bulletbridge.constraints.joints import Coupling, Distance, JointModel, LoopJoint
from bulletbridge.constraints.user import Kinematics
from bulletbridge.engine.failures import require_closed
from bulletbridge.engine.stepper import Solver
from bulletbridge.errors import AssemblyError, ModelError
from bulletbridge.mechanism.frames import frame_with_z, matrix_rpy, triple
from bulletbridge.numerics.records import Array


def is_bounded(constraint: Constraint) -> bool:
    """Whether it is a spring, or something along it or in it acts by inequalities."""
    if isinstance(constraint, ForceElement | Wrench):
        return True
    along = isinstance(constraint, LoopJoint) and (constraint.turn or constraint.travel)
    return has_force_limit(constraint) or bool(along)


def require_rigid(constraint: Constraint) -> None:
    """Refuse what acts by inequalities: it is part of a system from its start, or never."""
    if isinstance(constraint, Wrench):
        raise ModelError(
            f"wrench '{constraint.name}' cannot come and go; have its functions give zeros"
        )
    if isinstance(constraint, ForceElement):
        raise ModelError(
            f"spring '{constraint.name}' cannot come and go; give it to System, or `attach`"
        )
    if is_bounded(constraint):
        raise ModelError(
            f"'{constraint.name}' acts by inequalities (max_force, turn or travel) and cannot come"
            " and go; give it to System, or leave them out"
        )


def same(one: tuple[Constraint, ...], other: tuple[Constraint, ...]) -> bool:
    """Whether two sets are the same constraints; those with Python code in them, the same ones."""
    if len(one) != len(other):
        return False
    plain = LoopJoint, Distance, Coupling
    for a, b in zip(one, other, strict=True):
        if a is b:
            continue
        if not (isinstance(a, plain) and isinstance(b, plain)):
            return False
        if a.motion is not b.motion or a != b:
            return False
    return True


def require_near(solver: Solver, q: Array, t: float, allowed: float) -> None:
    """Refuse to join what is apart."""
    try:
        require_closed(solver, q, t, allowed)
    except AssemblyError as error:
        raise AssemblyError(
            f"{error}; to join what is apart pass as_is=True, or assemble=True"
        ) from None


def carry_over(old: Encoded, new: Encoded) -> None:
    """What ``place`` and ``set_offset`` have done to constraints that stay."""
    places = {name: k for k, name in enumerate(list(old.rows)[: len(old.loops)])}
    for name, loop in zip(list(new.rows), new.loops, strict=False):
        if name in places:
            for field in ("R_a", "p_a", "turn"):
                loop[field] = old.loops[places[name]][field]
    for name, part in new.rows.items():
        if name in old.rows:
            mine = new.couplings["row"] == part.start
            theirs = old.couplings["row"] == old.rows[name].start
            new.couplings["offset"][mine] = old.couplings["offset"][theirs]


def where_it_is(
    constraint: Constraint, kinematics: Kinematics, tolerance: float = np.inf
) -> Constraint:
    """The constraint as the present configuration closes it.

    Args:
        constraint: As given.
        kinematics: The present configuration.
        tolerance: Cosine of the angle between the axes of a universal joint, which no frame of b
            brings to zero.

    Raises:
        ModelError: It is a user's own, or names what does not exist.
        AssemblyError: Axes that should be at right angles are not.
    """
    t, motion = kinematics.t, getattr(constraint, "motion", None)
    x, y, z, angle = motion.over(np.array([t]))[0, :, 0] if motion is not None else np.zeros(4)
    if isinstance(constraint, Coupling):
        at = {n: kinematics.mechanism.joint(n).q.start for n in constraint.coefficients}
        total = constraint.value({name: float(kinematics.q[k]) for name, k in at.items()}) - z
        return replace(constraint, offset=float(total))
    if not isinstance(constraint, LoopJoint | Distance):
        raise ModelError(
            f"'{constraint.name}' is a constraint of your own: nothing in it can be put where "
            f"things are; connect it without as_is"
        )
    a, b = kinematics.point(constraint.a), kinematics.point(constraint.b)
    if isinstance(constraint, Distance):
        return replace(constraint, length=float(np.linalg.norm(b.p_W - a.p_W) - z))
    if constraint.model in SURFACES:
        raise ModelError(
            f"'{constraint.name}' keeps a point on a surface, where it may be anywhere; connect it "
            f"without as_is, or with assemble=True"
        )
    link = kinematics.point(replace(constraint.b, xyz=(0.0, 0.0, 0.0), rpy=(0.0, 0.0, 0.0)))
    axis_a, axis_b = joint_axis(constraint, "a"), joint_axis(constraint, "b")
    turn = frame_with_z(motion.axis if motion and motion.axis else axis_a)
    moved: Array = a.R_W @ turn @ about_z(angle) @ turn.T @ frame_with_z(axis_a)
    p_W, R_W = a.p_W + a.R_W @ [x, y, z] + constraint.radius * moved[:, 2], b.R_W
    if constraint.model is not JointModel.UNIVERSAL:
        R_W = moved @ frame_with_z(axis_b).T
    else:
        cosine = float(moved[:, 2] @ (b.R_W @ frame_with_z(axis_b))[:, 2])
        if abs(cosine) > tolerance:
            raise AssemblyError(
                f"'{constraint.name}' is universal, and its axes are at {degrees(cosine):.6g}° to"
                " each other now instead of 90°: as_is keeps both; turn a link, give another"
                " axis_b, or connect it with assemble=True"
            )
    xyz, rpy = triple(link.R_W.T @ (p_W - link.p_W)), matrix_rpy(link.R_W.T @ R_W)
    frame = replace(constraint.b, xyz=xyz, rpy=rpy)
    return replace(constraint, b=frame)


def degrees(cosine: float) -> float:
    """Angle [°] of a cosine."""
    return float(np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0))))


def about_z(angle: float) -> Array:
    """Turn (3, 3) about z by an angle [rad]."""
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


SURFACES = JointModel.POINT_ON_SPHERE, JointModel.POINT_ON_CYLINDER
