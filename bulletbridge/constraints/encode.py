"""From constraint descriptions to the records that kernels read."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from bulletbridge.constraints.elements import ForceElement
from bulletbridge.constraints.joint_models import (
    free_motions,
    positions_first,
    rotation_measure,
    transmitted_wrenches,
    turn_axis,
    turns_on_the_way,
)
from bulletbridge.constraints.layout import (
    AXIAL,
    COUPLING,
    LOOP,
    NO_VARIABLE_ROW,
    ON_CYLINDER,
    ON_SPHERE,
    PERPENDICULAR,
    ROD,
    TARGET,
    TERM,
)
from bulletbridge.constraints.loop import (
    ROUND,
    Coupling,
    Distance,
    Frame,
    JointModel,
    LoopJoint,
    Triple,
)
from bulletbridge.constraints.motion import Motion
from bulletbridge.constraints.user import UserConstraint
from bulletbridge.errors import ModelError
from bulletbridge.mechanism.frames import frame_with_z, locate
from bulletbridge.mechanism.layout import LUMP
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.numerics.records import Array, Mask

Z_AXIS = (0.0, 0.0, 1.0)
Closing = LoopJoint | Distance | Coupling | UserConstraint
"""What has rows."""
Constraint = Closing | ForceElement
"""What joins links."""
VARIABLE = {
    JointModel.UNIVERSAL: PERPENDICULAR,
    JointModel.POINT_ON_SPHERE: ON_SPHERE,
    JointModel.POINT_ON_CYLINDER: ON_CYLINDER,
}
"""Models whose last row depends on the configuration."""


@dataclass(frozen=True)
class Encoded:
    """Constraints as arrays, and who owns which row.

    Attributes:
        loops, couplings, terms: Records for the kernels.
        rows: Rows of each constraint by name, in their order.
        in_metres: (nc,) whether a row's unit is the metre (otherwise the radian).
        scale: (nc,) factor that brings each row to one unit.
        motions: Prescribed motions, each with the rotation of the encoded frame a (z along the
            joint's axis) in frame a; targets are their values at a time.
        users: Constraints in plain Python; their rows are the last ones.
        length: Characteristic length [m] of the mechanism.
        elements: Records of force elements, which have no rows, and their names.
    """

    loops: np.ndarray
    couplings: np.ndarray
    terms: np.ndarray
    rows: dict[str, slice]
    in_metres: np.ndarray
    scale: Array
    motions: tuple[tuple[Motion, Array], ...]
    users: tuple[UserConstraint, ...]
    length: float
    elements: np.ndarray = field(default_factory=lambda: np.zeros(0, LUMP))
    element_names: tuple[str, ...] = ()

    @property
    def nc(self) -> int:
        """Number of rows."""
        return len(self.scale)

    @property
    def has_position(self) -> Mask:
        """(nc,) whether a row has a position level: those that forbid slip have none."""
        mask = np.ones(self.nc, bool)
        for loop in self.loops:
            constant = int(loop["rows"]) - (1 if loop["variable"] else 0)
            mask[loop["row"] + loop["held"] : loop["row"] + constant] = False
        return mask

    def targets(self, times: Array) -> np.ndarray:
        """Records (times, targets) of the prescribed motions."""
        table = np.zeros((len(times), len(self.motions)), TARGET)
        for k, (motion, R) in enumerate(self.motions):
            values, target = motion.over(times), table[:, k]
            for n, (moved, turned) in enumerate(
                (("p", "angle"), ("v", "rate"), ("a", "acceleration"))
            ):
                target[moved], target[turned] = values[:, :3, n] @ R, values[:, 3, n]
        return table

    def without(self, name: str, kept: Array, held: int) -> "Encoded":
        """The same with kept (k, rows) times the constant rows of loop ``name`` in their place.

        The first ``held`` of them hold positions.
        """
        index = [n for n in self.rows if self._is_loop(n)].index(name)
        loops = self.loops.copy()
        loop = loops[index]
        constant = int(loop["rows"]) - (1 if loop["variable"] else 0)
        dropped = constant - len(kept)
        for part in ("moment", "force"):
            loop[part][: len(kept)] = kept @ loop[part][:constant]
            loop[part][len(kept) :] = 0.0
        loop["rows"] -= dropped
        loop["held"] = held
        loops["row"][index + 1 :] -= dropped
        couplings = self.couplings.copy()
        couplings["row"] -= dropped
        rows: dict[str, slice] = {}
        for n, old in self.rows.items():
            start = sum(r.stop - r.start for r in rows.values())
            rows[n] = slice(start, start + old.stop - old.start - (dropped if n == name else 0))
        first = self.rows[name].start
        gone = list(range(first + len(kept), first + constant))
        # a kept combination of rows in metres and radians counts in metres
        in_metres = np.delete(self.in_metres, gone)
        for k in range(len(kept)):
            in_metres[rows[name].start + k] = bool(np.any(loop["force"][k]))
        scale = np.where(in_metres, 1.0 / self.length, np.delete(self.scale, gone))
        return replace(
            self, loops=loops, couplings=couplings, rows=rows, in_metres=in_metres, scale=scale
        )

    def place(self, name: str, R: Array, p: Array, turn: Array) -> None:
        """Put frame a of a loop elsewhere on its body, in place.

        Args:
            name: The loop.
            R: (3, 3) of the frame as encoded, z along the joint's axis, in the body.
            p: (3,) its origin there [m].
            turn: (3,) unit axis in the frame of its prescribed turn.
        """
        loop = self.loops[[n for n in self.rows if self._is_loop(n)].index(name)]
        loop["R_a"], loop["p_a"], loop["turn"] = R, p, turn

    def set_offset(self, name: str, offset: float) -> None:
        """Give a coupling another offset, in place."""
        start = self.rows[name].start
        self.couplings["offset"][self.couplings["row"] == start] = offset

    def _is_loop(self, name: str) -> bool:
        return self.rows[name].start < sum(self.loops["rows"])


def encode(mechanism: Mechanism, constraints: Sequence[Closing]) -> Encoded:
    """Encode constraints with rows on a mechanism: loops first, then couplings, then users'.

    Raises:
        ModelError: A name is used twice, a link or joint does not exist, or a number is impossible.
    """
    loop_joints = [c for c in constraints if isinstance(c, LoopJoint | Distance)]
    gears = [c for c in constraints if isinstance(c, Coupling)]
    users = [c for c in constraints if not isinstance(c, LoopJoint | Distance | Coupling)]
    require_names(constraints)
    motions: list[tuple[Motion, Array]] = []
    loops = np.zeros(len(loop_joints), LOOP)
    rows: dict[str, slice] = {}
    in_metres: list[bool] = []
    for record, loop in zip(loops, loop_joints, strict=True):
        encode_frames(record, mechanism, loop)
        if isinstance(loop, LoopJoint):
            _encode_joint(record, loop)
        else:
            _encode_rod(record, loop)
        along = joint_axis(loop, "a")
        record["target"] = _encode_motion(motions, loop.motion, frame_with_z(along))
        axis = loop.motion.axis if loop.motion else None
        record["turn"] = _axis_in_frame(loop, axis)
        record["row"] = len(in_metres)
        rows[loop.name] = slice(len(in_metres), len(in_metres) + int(record["rows"]))
        in_metres += [bool(np.any(force)) for force in record["force"][: record["rows"]]]
        if record["variable"] != NO_VARIABLE_ROW:
            in_metres[-1] = bool(record["variable"] != PERPENDICULAR)
    length = characteristic_length(mechanism, loops)
    scale = [1.0 / length if metre else 1.0 for metre in in_metres]
    couplings, terms = np.zeros(len(gears), COUPLING), [_terms(mechanism, gear) for gear in gears]
    for k, gear in enumerate(gears):
        couplings[k] = (len(scale), sum(map(len, terms[:k])), len(terms[k]), gear.offset, -1)
        couplings[k]["target"] = _encode_motion(motions, gear.motion, np.eye(3))
        rows[gear.name] = slice(len(scale), len(scale) + 1)
        kinds = [mechanism.joint(name).kind for name in gear.coefficients]
        in_metres.append("prismatic" in kinds)
        sizes = [
            abs(c) * (length if kind == "prismatic" else 1.0)
            for c, kind in zip(gear.coefficients.values(), kinds, strict=True)
        ]
        scale.append(1.0 / max(sizes))
    for user in users:
        if not user.units or not set(user.units) <= {"m", "rad"}:
            raise ModelError(
                f"constraint '{user.name}' has units {user.units}; give 'm' or 'rad' for each row"
            )
        rows[user.name] = slice(len(scale), len(scale) + len(user.units))
        in_metres += [unit == "m" for unit in user.units]
        scale += [1.0 / length if unit == "m" else 1.0 for unit in user.units]
    return Encoded(
        loops,
        couplings,
        np.concatenate(terms) if terms else np.zeros(0, TERM),
        rows,
        np.array(in_metres, bool),
        np.array(scale, float),
        tuple(motions),
        tuple(users),
        length,
    )


def require_names(constraints: Sequence[Constraint]) -> None:
    """Raise ModelError if a name is used twice."""
    names = [constraint.name for constraint in constraints]
    for name in names:
        if names.count(name) > 1:
            raise ModelError(f"two constraints are called '{name}'; give each its own name")


def characteristic_length(mechanism: Mechanism, loops: np.ndarray) -> float:
    """Largest distance [m] between joints, centres and loop points of one body.

    It makes rows in metres comparable to rows in radians in any system of units.
    """
    bodies = mechanism.bodies
    sizes = [0.0]
    for body in bodies[1:]:
        sizes.append(float(np.linalg.norm(body["com"])))
        if body["parent"] > 0:
            sizes.append(float(np.linalg.norm(body["p"])))
    sizes.extend(float(mechanism.stations[beam["tip"]]["x"]) for beam in mechanism.beams)
    for loop in loops:
        for end in "ab":
            if loop[f"body_{end}"] > 0:
                sizes.append(float(np.linalg.norm(loop[f"p_{end}"])))
    return max(sizes) or 1.0


def encode_frames(
    record: np.void, mechanism: Mechanism, loop: LoopJoint | Distance, what: str = "loop"
) -> None:
    """Write where the frames of a loop or force element are, z along its axis.

    Raises:
        ModelError: A link does not exist, or both are one body; it calls the thing ``what``.
    """
    chains: list[list[int]] = []
    for end, frame in (("a", loop.a), ("b", loop.b)):
        body, R, p = _locate(mechanism, f"{what} '{loop.name}'", frame)
        R = R @ frame_with_z(joint_axis(loop, end))
        record[f"body_{end}"], record[f"R_{end}"], record[f"p_{end}"] = body, R, p
        chain = [int(mechanism.bodies[body]["axis"])]
        while chain[-1] >= 0:
            chain.append(int(mechanism.axes[chain[-1]]["below"]))
        record[f"axis_{end}"] = chain[0]
        chains.append(chain)
    if record["body_a"] == record["body_b"]:
        raise ModelError(
            f"{what} '{loop.name}' joins '{loop.a.link}' and '{loop.b.link}', which are one rigid "
            f"body; name links that can move against each other"
        )
    record["stop"] = next(k for k in chains[0] if k in chains[1])


def joint_axis(loop: LoopJoint | Distance, end: str) -> Triple:
    """Axis of a loop in its frame a or b, which is z of that frame as encoded."""
    if isinstance(loop, Distance):
        return Z_AXIS
    if loop.model is JointModel.GENERAL:
        x, y, z = (float(value) for value in turn_axis(_general(loop)))
        return x, y, z
    if end == "b" and loop.axis_b is not None:
        return loop.axis_b
    if end == "b" and loop.model is JointModel.UNIVERSAL:
        raise ModelError(f"loop '{loop.name}' is universal: give its second axis as axis_b")
    return loop.axis


def _axis_in_frame(loop: LoopJoint | Distance, axis: Triple | None) -> Array:
    """Turning axis of the prescribed motion in frame a as encoded, whose z is the joint's axis."""
    if axis is None or isinstance(loop, Distance):
        return np.array(Z_AXIS)
    return frame_with_z(joint_axis(loop, "a")).T @ (np.asarray(axis, float) / np.linalg.norm(axis))


def _locate(mechanism: Mechanism, name: str, frame: Frame) -> tuple[int, Array, Array]:
    try:
        return locate(mechanism, frame.link, frame.xyz, frame.rpy)
    except ModelError as error:
        raise ModelError(f"{name}: {error}") from None


def _encode_joint(record: np.void, loop: LoopJoint) -> None:
    free = free_twists(loop)
    rows, record["held"] = positions_first(loop.model, transmitted_wrenches(free))
    record["rows"], record["rotation"] = len(rows), rotation_measure(loop.model, free)
    record["moment"][: len(rows)], record["force"][: len(rows)] = rows[:, :3], rows[:, 3:]
    if record["rotation"] == AXIAL:
        record["turns"] = turns_on_the_way(rows)
    record["variable"] = VARIABLE.get(loop.model, NO_VARIABLE_ROW)
    if loop.model in VARIABLE:
        record["rows"] += 1
    if record["variable"] in (ON_SPHERE, ON_CYLINDER):
        record["length"] = loop.radius
    else:  # the centre of a ball is above the plane
        record["p_a"] += loop.radius * record["R_a"][:, 2]


def free_twists(loop: LoopJoint) -> Array:
    """Free motions (nf, 6) of a loop joint in its encoded frame a, z along its axis.

    Raises:
        ModelError: The numbers make no joint.
    """
    if loop.model is JointModel.GENERAL:
        free = _general(loop)
        Z = frame_with_z(joint_axis(loop, "a"))
        return np.hstack([free[:, :3] @ Z, free[:, 3:] @ Z])
    if loop.free:
        raise ModelError(f"loop '{loop.name}' is {loop.model.value}: only general ones take free")
    advance = loop.pitch / (2 * np.pi)
    if loop.model is JointModel.SCREW and not (np.isfinite(advance) and advance != 0.0):
        raise ModelError(
            f"screw '{loop.name}' has pitch {loop.pitch} m per turn; give one that is not zero, "
            f"or use a revolute joint"
        )
    _check_radius(loop)
    return free_motions(loop.model, advance, loop.radius)


def _check_radius(loop: LoopJoint) -> None:
    """Refuse a radius where there is none, or one that is impossible.

    Raises:
        ModelError: It says what to give.
    """
    if loop.model not in ROUND:
        if loop.radius != 0.0:
            raise ModelError(f"loop '{loop.name}' is {loop.model.value}: it has no radius")
        return
    least = np.nextafter(0.0, 1.0) if loop.model in VARIABLE else 0.0
    if not least <= loop.radius < np.inf:
        raise ModelError(
            f"loop '{loop.name}' is {loop.model.value} and has radius {loop.radius} m; give a "
            f"positive one"
        )


def _general(loop: LoopJoint) -> Array:
    """Free motions (nf, 6) of a general joint as given, checked.

    Raises:
        ModelError: They are dependent, leave nothing to constrain, or cannot be held in place.
    """
    whole = all(len(twist) == 6 for twist in loop.free)
    free = np.array(loop.free if whole else [], float).reshape(-1, 6)
    sizes = np.linalg.norm(free, axis=1)
    if not whole or not np.all(np.isfinite(free)) or not np.all(sizes > 0.0):
        raise ModelError(f"loop '{loop.name}' has free twists {loop.free}: use six numbers each")
    if len(free) >= 6 or np.linalg.matrix_rank(free / sizes[:, None], 1e-9) < len(free):
        raise ModelError(
            f"the {len(free)} free twists of loop '{loop.name}' depend on each other, or leave "
            f"nothing to constrain; give at most five independent ones"
        )
    turning = np.linalg.matrix_rank(free[:, :3], 1e-9 * sizes.max()) if len(free) else 0
    if turning >= 2 and np.abs(transmitted_wrenches(free)[:, :3]).max() > 1e-12:
        raise ModelError(
            f"the free twists of loop '{loop.name}' turn about {turning} axes that ways or the "
            f"third turn are tied to; such a joint rolls and closes nowhere: use one axis or all "
            f"three, or universal"
        )
    return free


def _encode_rod(record: np.void, rod: Distance) -> None:
    if not (np.isfinite(rod.length) and rod.length > 0.0):
        raise ModelError(
            f"distance '{rod.name}' has length {rod.length} m; give a positive one, "
            f"or a ball joint for points that coincide"
        )
    record["rows"], record["variable"], record["length"] = 1, ROD, rod.length


def _encode_motion(motions: list[tuple[Motion, Array]], motion: Motion | None, R: Array) -> int:
    if motion is None:
        return -1
    motions.append((motion, R))
    return len(motions) - 1


def _terms(mechanism: Mechanism, gear: Coupling) -> np.ndarray:
    terms = np.zeros(len(gear.coefficients), TERM)
    if not any(gear.coefficients.values()):
        raise ModelError(f"coupling '{gear.name}' has no coefficient that is not zero")
    for term, (name, coefficient) in zip(terms, gear.coefficients.items(), strict=True):
        joint = mechanism.joint(name)
        if joint.kind not in ("revolute", "prismatic"):
            raise ModelError(
                f"coupling '{gear.name}' names the {joint.kind} joint '{name}'; "
                f"only revolute and prismatic joints can be coupled"
            )
        term["axis"], term["coefficient"] = joint.v.start, coefficient
    return terms
