"""Force elements as records for the kernels, and all constraints of a closed system together."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from bulletbridge.compilation.users import Takes
from bulletbridge.constraints.arrays import AskedWrench, Encoded
from bulletbridge.constraints.encode import (
    Constraint,
    encode,
    encode_frames,
    locate_frame,
    place_frames,
    require_moving,
)
from bulletbridge.constraints.force_elements import (
    Bushing,
    ForceElement,
    Pulley,
    Round,
    Spring,
    Stretch,
    Tendon,
    TorsionSpring,
    Wrench,
)
from bulletbridge.constraints.functions import takes
from bulletbridge.constraints.joint_models import TRAVEL, TURN, has_force_limit, loop_axis_name
from bulletbridge.constraints.joints import Frame, JointModel, LoopJoint, Triple
from bulletbridge.constraints.motion import Formula, Motion, Signal
from bulletbridge.errors import ModelError
from bulletbridge.mechanism import records
from bulletbridge.mechanism.model import WORLD, Mechanism
from bulletbridge.mechanism.records import (
    BALL_ROUND,
    BUSHING,
    CYLINDER_ROUND,
    EFFORT,
    INSIDE,
    MOST_TERMS,
    SIDE,
    SPRING,
    STRETCH,
    TENDON,
    TORSION,
    WRENCH,
)
from bulletbridge.numerics.records import are_numbers

KINDS = {TURN: TORSION, TRAVEL: records.TRAVEL}


@dataclass(frozen=True)
class Element:
    """What all force elements are made of; six stiffnesses and dampings, turns first."""

    name: str
    kind: int
    a: Frame
    b: Frame
    stiffness: Sequence[float]
    damping: Sequence[float]
    rest: float = 0.0
    force: float | Signal = 0.0
    axis: Triple = (0.0, 0.0, 1.0)
    axis_b: Triple | None = None
    slack: float = 0.0
    coefficients: Mapping[str, float] = field(default_factory=lambda: {})
    stretches: int = 0  # that come after it
    stretch: Stretch | None = None


WORLD_FRAME = Frame(WORLD)
"""Where the ends of a tendon are, which has none."""


def encode_closed(mechanism: Mechanism, constraints: Sequence[Constraint]) -> Encoded:
    """Rows of the constraints that do not give way, and all force elements.

    Raises:
        ModelError: A name is used twice, a link or joint does not exist, or a number is impossible.
    """
    rows = [
        c for c in constraints if not (isinstance(c, ForceElement | Wrench) or has_force_limit(c))
    ]
    encoded = encode(mechanism, rows)
    elements = list(elements_of(constraints))
    wrenches = [c for c in constraints if isinstance(c, Wrench)]
    if not (elements or wrenches):
        return encoded
    count = len(elements) + len(wrenches)
    motions, records = list(encoded.motions), np.zeros(count, EFFORT)
    for record, element in zip(records, elements, strict=False):
        _check(element)
        turned = LoopJoint(
            element.name, JointModel.REVOLUTE, element.a, element.b, element.axis, element.axis_b
        )
        if element.kind == TENDON:
            _encode_terms(record, mechanism, element)
        elif element.kind == STRETCH or element.stretches:
            place_frames(record, mechanism, turned, "spring")
        else:
            encode_frames(record, mechanism, turned, "spring")
        record["stretches"], record["share"] = element.stretches, 1.0
        if element.stretch:
            _encode_stretch(record, mechanism, element.name, element.stretch)
        record["kind"], record["rest"], record["target"] = element.kind, element.rest, -1
        record["slack"] = element.slack
        record["stiffness"][: len(element.stiffness)] = element.stiffness
        record["damping"][: len(element.damping)] = element.damping
        if callable(element.force):
            record["target"] = len(motions)
            motions.append((Motion(z=element.force), np.eye(3)))
        else:
            record["force"] = element.force
    for first in np.flatnonzero(records["stretches"]):
        line = records[first : first + 1 + records["stretches"][first]]
        require_moving(line, f"spring '{elements[first].name}'")
    asked: list[AskedWrench] = []
    for n, wrench in enumerate(wrenches, len(elements)):
        asked += _encode_wrench(records[n], n, mechanism, wrench)
    names = tuple(element.name for element in (*elements, *wrenches))
    return replace(
        encoded,
        motions=tuple(motions),
        elements=records,
        element_names=names,
        asked=tuple(asked),
    )


def _encode_stretch(record: np.void, mechanism: Mechanism, name: str, stretch: Stretch) -> None:
    """Write how much of a stretch counts, and what its line goes round at one end.

    Raises:
        ModelError: A link does not exist.
    """
    record["share"], around = stretch.share, stretch.around
    if around is None or stretch.third is None:
        return
    record["around"] = CYLINDER_ROUND if around.cylinder else BALL_ROUND
    record["onto"], record["radius"] = stretch.onto, around.radius
    if around.side is not None:
        record["p_side"] = around.side
        across = np.array(around.side, float)
        record["sided"] = INSIDE if np.linalg.norm(across) < around.radius else SIDE
    body, _, p = locate_frame(mechanism, f"spring '{name}'", stretch.third)
    record["body_c"], record["p_c"] = body, p
    record["axis_c"] = mechanism.bodies[body]["axis"]


def require_line(spring: Spring) -> None:
    """Refuse lines that go round a body or over a pulley where nothing holds them.

    Raises:
        ModelError: One does; it says what is between what.
    """
    points = (spring.a, *spring.via, spring.b)
    for k, point in enumerate(points):
        if isinstance(point, Frame):
            continue
        what = "what it goes round" if isinstance(point, Round) else "a pulley"
        if not (isinstance(points[k - 1], Frame) and isinstance(points[k + 1], Frame)):
            raise ModelError(f"spring '{spring.name}' has no points before and after {what}")
        number = point.radius if isinstance(point, Round) else point.divisor
        if not (np.isfinite(number) and number > 0.0):
            said = "radius" if isinstance(point, Round) else "divisor"
            raise ModelError(f"spring '{spring.name}' has a {said} of {number}; give one above 0")
        ends = points[max(k - 2, 0) : k] + points[k + 1 : k + 3]
        if isinstance(point, Pulley) and (len(ends) < 4 or isinstance(ends[-1], Pulley)):
            raise ModelError(f"spring '{spring.name}' needs two points on either side of a pulley")


def _encode_terms(record: np.void, mechanism: Mechanism, element: Element) -> None:
    """Write the joints of a tendon."""
    given = element.coefficients
    what = f"tendon '{element.name}'"
    if not 0 < len(given) <= MOST_TERMS:
        raise ModelError(f"{what} has {len(given)} joints; give 1 to {MOST_TERMS}")
    record["term_axes"] = record["common_axis"] = -1
    record["terms"] = len(given)
    for n, (name, factor) in enumerate(given.items()):
        joint = mechanism.joint(name)
        if not joint.is_single:
            raise ModelError(
                f"{what} names the {joint.kind} joint '{name}'; only revolute and prismatic joints"
                " have one position"
            )
        if not np.isfinite(factor):
            raise ModelError(f"{what} has coefficient {factor} of '{name}'; give a finite number")
        record["term_axes"][n], record["factors"][n] = joint.v.start, factor
    record["axis_a"], record["axis_b"] = record["term_axes"][0], record["term_axes"][len(given) - 1]


def _encode_wrench(
    record: np.void, number: int, mechanism: Mechanism, wrench: Wrench
) -> list[AskedWrench]:
    """Write where a wrench acts, and what is constant of it; the functions that give the rest."""
    what = f"wrench '{wrench.name}'"
    record["kind"], record["target"], record["common_axis"] = WRENCH, -1, -1
    for end, frame in (("a", wrench.axes or wrench.frame), ("b", wrench.frame)):
        body, R, p = locate_frame(mechanism, what, frame)
        record[f"body_{end}"], record[f"R_{end}"], record[f"p_{end}"] = body, R, p
        record[f"axis_{end}"] = mechanism.bodies[body]["axis"]
    if record["body_b"] == 0:
        raise ModelError(
            f"{what} acts on '{wrench.frame.link}', which does not move; name a link that does"
        )
    asked: list[AskedWrench] = []
    for part, first in (("torque", 0), ("force", 3)):
        given = getattr(wrench, part)
        if isinstance(given, Formula):
            raise ModelError(
                f"{part} of {what} is {given!r}, a signal of one number; give a function that gives"
                " three: lambda t: (signal(t)[0], 0, 0)"
            )
        if callable(given):
            taken = takes(given, f"{part} of {what}", Takes.FRAME)
            record["watched"] |= taken == Takes.FRAME
            asked.append(AskedWrench(f"{part} of {what}", given, taken, number, first))
        elif are_numbers(given, (3,)):
            record["wrench"][first : first + 3] = given
        else:
            raise ModelError(f"{what} has {part} {given!r}; give three finite numbers")
    if not (asked or record["wrench"].any()):
        raise ModelError(f"{what} exerts nothing; give a force or a torque")
    return asked


def elements_of(constraints: Sequence[Constraint]) -> Iterator[Element]:
    """Force elements as given, and those along free motions of loop joints.

    Raises:
        ModelError: A loop joint has no such free motion.
    """
    for c in constraints:
        if isinstance(c, Spring) and (c.springs or not c.bounded):
            how = [c.stiffness], [c.damping], c.length, c.force
            require_line(c)
            first, *others = c.stretches
            yield Element(
                c.name,
                SPRING,
                first.a,
                first.b,
                *how,
                slack=c.slack,
                stretches=len(others),
                stretch=first,
            )
            for each in others:
                yield Element(c.name, STRETCH, each.a, each.b, [0.0], [0.0], stretch=each)
        elif isinstance(c, TorsionSpring):
            how = [c.stiffness], [c.damping], c.rest, c.torque, c.axis, c.axis_b
            yield Element(c.name, TORSION, c.a, c.b, *how)
        elif isinstance(c, Bushing):
            stiffness = [*c.turning_stiffness, *c.stiffness]
            damping = [*c.turning_damping, *c.damping]
            yield Element(c.name, BUSHING, c.a, c.b, stiffness, damping)
        elif isinstance(c, Tendon) and (c.springs or not c.bounded):
            yield Element(
                c.name,
                TENDON,
                WORLD_FRAME,
                WORLD_FRAME,
                [c.stiffness],
                [c.damping],
                c.rest,
                c.force,
                slack=c.slack,
                coefficients=c.coefficients,
            )
        elif isinstance(c, LoopJoint):
            for kind, freedom in ((TURN, c.turn), (TRAVEL, c.travel)):
                if freedom is not None and freedom.springs:
                    name = loop_axis_name(c, kind)
                    how = [freedom.stiffness], [freedom.damping], freedom.rest, freedom.force
                    yield Element(name, KINDS[kind], c.a, c.b, *how, c.axis, c.axis_b)


def _check(element: Element) -> None:
    """Refuse numbers that make no spring."""
    name = element.name
    for what, given in (("stiffness", element.stiffness), ("damping", element.damping)):
        numbers = np.asarray(given, float)
        if not np.all(np.isfinite(numbers)) or np.any(numbers < 0.0):
            raise ModelError(
                f"spring '{name}' has {what} {_said(given)}; give finite numbers that are not "
                "negative"
            )
    if element.kind == BUSHING and len(element.stiffness) + len(element.damping) != 12:
        raise ModelError(f"bushing '{name}' needs three numbers for each of its four properties")
    what = "length" if element.kind == SPRING else "rest"
    if not np.isfinite(element.rest) or (element.kind == SPRING and element.rest < 0.0):
        raise ModelError(f"spring '{name}' has {what} {element.rest}; give a finite number from 0")
    if not (np.isfinite(element.slack) and element.slack >= 0.0):
        raise ModelError(f"spring '{name}' has slack {element.slack}; give a finite number from 0")
    if not callable(element.force) and not np.isfinite(element.force):
        raise ModelError(f"spring '{name}' has force {element.force}; give a finite number")
    if element.kind == STRETCH:
        return
    nothing = not (np.any(element.stiffness) or np.any(element.damping) or element.force)
    if nothing:
        raise ModelError(f"spring '{name}' exerts nothing; give a stiffness, a damping or a force")


def _said(numbers: Sequence[float]) -> str:
    return str(numbers[0] if len(numbers) == 1 else list(numbers))
