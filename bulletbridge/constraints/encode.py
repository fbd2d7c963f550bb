"""From constraint descriptions to the records that kernels read."""

import functools
from collections import Counter
from collections.abc import Sequence

import numpy as np

from bulletbridge.constraints.arrays import Encoded, StandingFrame, Turned
from bulletbridge.constraints.fields import require_fields
from bulletbridge.constraints.force_elements import ForceElement, Spring, Wrench, rods_along
from bulletbridge.constraints.joint_geometry import VARIABLE, axis_in_frame, free_twists, joint_axis
from bulletbridge.constraints.joint_models import (
    SHORT,
    positions_first,
    rotation_measure,
    transmitted_wrenches,
    turns_on_the_way,
)
from bulletbridge.constraints.joints import (
    HIGHEST_POWER,
    Coupling,
    Distance,
    Frame,
    JointModel,
    LoopJoint,
)
from bulletbridge.constraints.motion import Motion
from bulletbridge.constraints.records import (
    AXIAL,
    COUPLING,
    LOOP,
    NO_VARIABLE_ROW,
    ON_CYLINDER,
    ON_SPHERE,
    PERPENDICULAR,
    ROD,
    TERM,
    WHOLE_TURN,
)
from bulletbridge.constraints.user import UserConstraint
from bulletbridge.errors import ModelError
from bulletbridge.mechanism.frames import (
    Triple,
    frame_with_z,
    locate,
    rpy_matrix,
    triple,
    turned_on,
)
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.numerics.records import LARGEST, Array, are_numbers

Closing = LoopJoint | Distance | Coupling | UserConstraint
"""Descriptions that have rows."""
Constraint = Closing | ForceElement | Wrench
"""Descriptions that join links, or push one."""


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
        record["turn"] = axis_in_frame(loop, axis)
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
            sum(
                abs(c) * (length if kind == "prismatic" else 1.0) ** power
                for power, c in enumerate(gear.polynomial(name), 1)
            )
            for name, kind in zip(gear.coefficients, kinds, strict=True)
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
        loops, couplings, np.concatenate(terms) if terms else np.zeros(0, TERM), rows,
        np.array(in_metres, bool), np.array(scale, float), tuple(motions), tuple(users), length,
    )  # fmt: skip


def encode_places(
    encoded: Encoded, mechanism: Mechanism, constraints: Sequence[Constraint]
) -> None:
    """Put the frames of loops where their links are in a mechanism, in place.

    Args:
        encoded: Rows of these constraints.
        mechanism: The tree that they were encoded on; links that stand still may be elsewhere.
        constraints: All, or more.
    """
    known, standing = encoded.standing
    if known is not constraints:
        standing = standing_frames(encoded, constraints)
        object.__setattr__(encoded, "standing", (constraints, standing))
    loops, links = encoded.loops, mechanism.links
    for frame in standing:
        link, (rotation, position) = links[frame.link], frame.end
        if frame.on is None or frame.on.link_R is not link.R:  # most are shifted, not turned
            turned, arm = turned_on(link.R, frame.turn, frame.xyz)
            R = turned @ frame.axes
            frame.on = Turned(link.R, R, arm, frame.height * R[:, 2] if frame.height else None)
        at, p = frame.on, link.p + frame.on.arm
        loops[rotation][frame.loop] = at.R
        loops[position][frame.loop] = p if at.above is None else p + at.above


def standing_frames(encoded: Encoded, constraints: Sequence[Constraint]) -> list[StandingFrame]:
    """Frames of loops on links that stand still, by their constraints."""
    found: list[StandingFrame] = []
    by_name: dict[str, Sequence[LoopJoint | Distance]]
    by_name = {c.name: [c] for c in constraints if isinstance(c, LoopJoint | Distance)}
    by_name |= {c.name: rods_along(c) for c in constraints if isinstance(c, Spring)}
    names = {part.start: name for name, part in encoded.rows.items()}
    first = 0
    for k, record in enumerate(encoded.loops):
        if record["variable"] == WHOLE_TURN:
            continue  # of a joint in the tree
        first = first if record["adds"] else k
        name = names[int(record["row"])]
        # or a free motion of one
        loop = (by_name.get(name) or by_name[name.rpartition("/")[0]])[k - first]
        for end, frame in (("a", loop.a), ("b", loop.b)):
            if encoded.loops[f"body_{end}"][k] > 0:
                continue  # on a link that moves
            turn, axes = known_axes(triple(frame.rpy), triple(joint_axis(loop, end)))
            height = float(encoded.loops["height"][k]) if end == "a" else 0.0
            fields = f"R_{end}", f"p_{end}"
            xyz = np.array(frame.xyz, float)
            found.append(StandingFrame(k, fields, frame.link, turn, xyz, axes, height))
    return found


def put_frame(record: np.void, end: str, R: Array, p: Array, axes: Array) -> None:
    """Write rotation (3, 3) and position (3,) of a frame on its body, z along the joint's axis."""
    record[f"R_{end}"], record[f"p_{end}"] = R @ axes, p


@functools.lru_cache
def known_axes(rpy: Triple, axis: Triple) -> tuple[Array, Array]:
    """Rotations (3, 3) of a frame on its link, and of what is encoded in the frame."""
    return rpy_matrix(rpy), frame_with_z(axis)


def require_constraint(given: object) -> None:
    """Raise ModelError if this is no constraint, nor anything else that has a name."""
    if not hasattr(given, "name"):
        raise ModelError(f"{given!r} is no constraint; give one, such as a bb.LoopJoint")


def require_names(constraints: Sequence[Constraint]) -> None:
    """Raise ModelError if a field is not what it must be, or a name is used twice."""
    for constraint in constraints:
        require_constraint(constraint)
        require_fields(constraint)
        if not constraint.name:
            raise ModelError("a constraint has an empty name; give it one, errors tell it by that")
    counts = Counter(constraint.name for constraint in constraints)
    for name, count in counts.items():
        if count > 1:
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
    place_frames(record, mechanism, loop, what)
    if record["body_a"] == record["body_b"]:
        raise ModelError(
            f"{what} '{loop.name}' joins '{loop.a.link}' and '{loop.b.link}', which are one rigid "
            f"body; name links that can move against each other"
        )


def place_frames(
    record: np.void, mechanism: Mechanism, loop: LoopJoint | Distance, what: str
) -> None:
    """``encode_frames`` for what may join two points of one body.

    Raises:
        ModelError: A link does not exist.
    """
    chains: list[list[int]] = []
    for end, frame in (("a", loop.a), ("b", loop.b)):
        body, R, p = locate_frame(mechanism, f"{what} '{loop.name}'", frame)
        record[f"body_{end}"] = body
        put_frame(record, end, R, p, frame_with_z(joint_axis(loop, end)))
        chain = [int(mechanism.bodies[body]["axis"])]
        while chain[-1] >= 0:
            chain.append(int(mechanism.axes[chain[-1]]["below"]))
        record[f"axis_{end}"] = chain[0]
        chains.append(chain)
    record["common_axis"] = next(k for k in chains[0] if k in chains[1])


def locate_frame(mechanism: Mechanism, name: str, frame: Frame) -> tuple[int, Array, Array]:
    """Body of a frame, and its rotation (3, 3) and position (3,) there; errors call it ``name``."""
    try:
        return locate(mechanism, frame.link, frame.xyz, frame.rpy)
    except ModelError as error:
        raise ModelError(f"{name}: {error}") from None


def _encode_joint(record: np.void, loop: LoopJoint) -> None:
    free = free_twists(loop)
    short = SHORT if loop.model is JointModel.GENERAL else 0.0
    rows, record["held"] = positions_first(loop.model, transmitted_wrenches(free, short))
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
        record["height"] = loop.radius
        record["p_a"] += loop.radius * record["R_a"][:, 2]


def _encode_rod(record: np.void, rod: Distance) -> None:
    if not (np.isfinite(rod.length) and rod.length > 0.0):
        raise ModelError(
            f"distance '{rod.name}' has length {rod.length} m; give a positive one, "
            f"or a ball joint for points that coincide"
        )
    record["rows"], record["variable"], record["length"] = 1, ROD, rod.length


def encode_line(mechanism: Mechanism, spring: Spring) -> np.ndarray:
    """Records of the rods along the stretches of a spring, whose lengths add.

    Raises:
        ModelError: A link does not exist, or all points are of one body.
    """
    if not spring.straight:
        raise ModelError(
            f"spring '{spring.name}' goes round a body or over a pulley; limits, friction and"
            " motors act along lines through points alone"
        )
    rods = rods_along(spring)
    records = np.zeros(len(rods), LOOP)
    for record, rod in zip(records, rods, strict=True):
        place_frames(record, mechanism, rod, "spring")
        _encode_rod(record, rod)
        record["target"] = -1
    records["adds"][1:] = 1
    require_moving(records, f"spring '{spring.name}'")
    return records


def require_moving(stretches: np.ndarray, what: str) -> None:
    """Refuse a line all of whose points are of one body."""
    if np.all(stretches["body_a"] == stretches["body_b"]):
        raise ModelError(
            f"{what} joins points of one rigid body; name links that can move against each other"
        )


def _encode_motion(motions: list[tuple[Motion, Array]], motion: Motion | None, R: Array) -> int:
    if motion is None:
        return -1
    motions.append((motion, R))
    return len(motions) - 1


def _terms(mechanism: Mechanism, gear: Coupling) -> np.ndarray:
    terms = np.zeros(len(gear.coefficients), TERM)
    for name, factors in gear.higher.items():
        if name not in gear.coefficients:
            raise ModelError(
                f"coupling '{gear.name}' has powers of '{name}' and no coefficient of it; give it"
                " one, 0 if it has none"
            )
        if not len(factors) <= HIGHEST_POWER - 1 or not are_numbers(factors, (len(factors),)):
            raise ModelError(
                f"coupling '{gear.name}' has powers {factors} of '{name}'; give finite numbers, of"
                " its square, cube and fourth power at most"
            )
    if not any(any(gear.polynomial(name)) for name in gear.coefficients):
        raise ModelError(f"coupling '{gear.name}' has no coefficient that is not zero")
    if not are_numbers([*gear.coefficients.values(), gear.offset], (len(terms) + 1,)):
        raise ModelError(
            f"coupling '{gear.name}' has coefficients {gear.coefficients} and offset {gear.offset};"
            f" give finite numbers, none above {LARGEST:g}"
        )
    for term, (name, coefficient) in zip(terms, gear.coefficients.items(), strict=True):
        joint = mechanism.joint(name)
        if not joint.is_single:
            raise ModelError(
                f"coupling '{gear.name}' names the {joint.kind} joint '{name}'; "
                f"only revolute and prismatic joints can be coupled"
            )
        term["axis"], term["coefficient"] = joint.v.start, coefficient
        powers = gear.higher.get(name, ())
        term["higher"][: len(powers)] = powers
    return terms
