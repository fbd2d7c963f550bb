"""Constraints with a force limit, and free motions of loop joints, as records for the kernels."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from bulletbridge.constraints.arrays import Encoded
from bulletbridge.constraints.encode import Constraint, characteristic_length, encode, encode_line
from bulletbridge.constraints.force_elements import Spring, Tendon
from bulletbridge.constraints.joint_models import (
    LIMITABLE,
    TRAVEL,
    TURN,
    has_force_limit,
    loop_axis_name,
)
from bulletbridge.constraints.joints import Coupling, Distance, JointModel, LoopAxis, LoopJoint
from bulletbridge.constraints.records import FORCE_LIMIT, LOOP, NO_VARIABLE_ROW, WHOLE_TURN
from bulletbridge.errors import ModelError
from bulletbridge.mechanism.model import Joint, Mechanism

HOLD_A_POINT = (JointModel.BALL, JointModel.WELD)
"""Models whose first three rows hold a point: their directions are a matter of choice."""


@dataclass(frozen=True)
class LoopAxes:
    """Free motions of loop joints that something acts along, springs and tendons likewise.

    After them come turns of spherical joints of the tree that end somewhere, which have no name
    that a motor could go by.

    Attributes:
        names: Of the loop if it has one free motion, otherwise ``loop/turn`` and ``loop/travel``;
            of the spring or tendon.
        acting: What acts, of turns too.
        encoded: Loops with one row for each, along the free motion, a spring's line, whose
            stretches share theirs, or a turn; couplings of the tendons.
    """

    names: tuple[str, ...]
    acting: tuple[LoopAxis, ...]
    encoded: Encoded


def encode_force_limited(
    mechanism: Mechanism, constraints: Sequence[Constraint]
) -> tuple[np.ndarray, Encoded]:
    """Records (n,) of the constraints with a force limit, and their rows.

    Raises:
        ModelError: A force limit is negative or not finite, or an erp is not between 0 and 1.
    """
    force_limited = [c for c in constraints if isinstance(c, LIMITABLE) and has_force_limit(c)]
    encoded = encode(mechanism, force_limited)
    force_limits = np.zeros(len(force_limited), FORCE_LIMIT)
    loops = list(encoded.rows)[: len(encoded.loops)]
    by_name = {c.name: c for c in force_limited}
    for limit, (name, rows) in zip(force_limits, encoded.rows.items(), strict=True):
        constraint = by_name[name]
        assert isinstance(constraint, LoopJoint | Distance | Coupling)
        force = constraint.max_force
        if force is None or not (np.isfinite(force) and force >= 0.0):
            raise ModelError(
                f"constraint '{name}' has max_force {force}; give a finite number that is not"
                " negative, or None for a constraint without a force limit"
            )
        if not 0.0 <= constraint.erp <= 1.0:
            raise ModelError(
                f"constraint '{name}' has erp {constraint.erp}; give a share from 0 to 1"
            )
        limit["row"], limit["rows"] = rows.start, rows.stop - rows.start
        limit["force"], limit["erp"], limit["loop"] = force, constraint.erp, -1
        if isinstance(constraint, LoopJoint) and constraint.model in HOLD_A_POINT:
            limit["loop"] = loops.index(name)
    return force_limits, encoded


def encode_loop_axes(mechanism: Mechanism, constraints: Iterable[Constraint]) -> LoopAxes:
    """One row along each free motion, spring and tendon that something is said of.

    Raises:
        ModelError: The joint has no such free motion, a name is taken, or a number is impossible.
    """
    joints: list[LoopJoint] = []
    names: list[str] = []
    acting: list[LoopAxis] = []
    kinds: list[str] = []
    lines: list[Spring] = []
    tendons: list[Tendon] = []
    for joint in constraints:
        if isinstance(joint, Tendon) and joint.bounded:
            tendons.append(joint)
        if isinstance(joint, Spring) and joint.bounded:
            lines.append(joint)
        if not isinstance(joint, LoopJoint):
            continue
        for kind, freedom in ((TURN, joint.turn), (TRAVEL, joint.travel)):
            if freedom is None or not freedom.bounded:
                continue
            name = loop_axis_name(joint, kind)
            if name in mechanism.joints:
                raise ModelError(
                    f"loop '{name}' is called like a joint; give it its own name, by which its"
                    " motor is set"
                )
            _check(name, freedom)
            joints.append(joint)
            names.append(name)
            acting.append(freedom)
            kinds.append(kind)
    closing = {joint.name: joint for joint in joints}
    encoded = encode(mechanism, list(closing.values()))
    order = list(encoded.rows)
    parts = [encode_line(mechanism, line) for line in lines]
    loops = np.concatenate([encoded.loops[[order.index(each.name) for each in joints]], *parts])
    length = characteristic_length(mechanism, np.concatenate([encoded.loops, *parts]))
    for loop, kind in zip(loops, kinds, strict=False):
        loop["rows"], loop["variable"] = 1, NO_VARIABLE_ROW
        loop["moment"], loop["force"] = 0.0, 0.0
        loop["moment" if kind == TURN else "force"][0, 2] = 1.0
    loops["row"] = np.cumsum(loops["adds"] == 0) - 1
    turning = turning_limited(mechanism)
    turns = np.zeros(len(turning), LOOP)
    place_turns(turns, mechanism)
    turns["row"] = len(joints) + len(lines) + len(tendons) + np.arange(len(turning))
    sums = encode(mechanism, [Coupling(each.name, each.coefficients) for each in tendons])
    couplings = sums.couplings.copy()
    couplings["row"] += len(joints) + len(lines)
    for element in (*lines, *tendons):
        if element.name in mechanism.joints:
            what = "spring" if isinstance(element, Spring) else "tendon"
            raise ModelError(
                f"{what} '{element.name}' is called like a joint; give it its own name, by which"
                " its motor is set"
            )
        _check(element.name, element.acting)
        names.append(element.name)
        acting.append(element.acting)
    acting += [LoopAxis((-np.inf, joint.upper)) for joint in turning]
    called = [*names, *(joint.name for joint in turning)]
    rows = {name: slice(n, n + 1) for n, name in enumerate(called)}
    lengths = [*(kind == TRAVEL for kind in kinds), *(True for _ in lines)]
    metres = np.array([*lengths, *sums.in_metres, *(False for _ in turning)], bool)
    one = Encoded(
        np.concatenate([loops, turns]),
        couplings,
        sums.terms,
        rows,
        metres,
        np.ones(len(called)),
        encoded.motions,
        (),
        length,
    )
    return LoopAxes(tuple(names), tuple(acting), one)


def place_turns(loops: np.ndarray, mechanism: Mechanism) -> None:
    """Write into the last records where the spherical joints with a largest turn are."""
    if not len(loops):
        return
    turning = turning_limited(mechanism)
    for record, joint in zip(loops[len(loops) - len(turning) :], turning, strict=True):
        axis = int(joint.v.start)
        b = int(mechanism.axes[axis]["body"])
        body = mechanism.bodies[b]
        below = int(mechanism.axes[axis]["below"])
        record["body_a"], record["body_b"] = body["parent"], b
        record["axis_a"], record["axis_b"], record["common_axis"] = below, body["axis"], below
        record["R_a"], record["p_a"], record["R_b"] = body["R"], body["p"], np.eye(3)
        record["rows"], record["variable"], record["target"] = 1, WHOLE_TURN, -1


def turning_limited(mechanism: Mechanism) -> list[Joint]:
    """Spherical joints that turn so far and no farther."""
    joints = mechanism.joints.values()
    return [each for each in joints if each.kind == "spherical" and each.upper < np.pi]


def _check(name: str, freedom: LoopAxis) -> None:
    if freedom.limits is not None:
        lower, upper = freedom.limits
        if not lower <= upper:
            raise ModelError(
                f"limits of '{name}' are {lower} and {upper}; give the lower one first"
            )
    if not 0.0 <= freedom.friction < np.inf:
        raise ModelError(
            f"friction of '{name}' is {freedom.friction}; give a finite number that is not negative"
        )
