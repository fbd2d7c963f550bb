"""Walkers of Jansen's linkage, with as many legs as wanted on one crankshaft.

Source of the lengths: Jansen 2007, The Great Pretender (his holy numbers).
"""

import numpy as np

from bulletbridge.bench.problem import Problem, problem
from bulletbridge.constraints.joints import Frame, JointModel, LoopJoint
from bulletbridge.mechanism.build import Load, empty_mechanism, with_joint
from bulletbridge.mechanism.frames import triple
from bulletbridge.mechanism.model import WORLD
from bulletbridge.models.formats.robot import Inertial, joined
from bulletbridge.models.model_spec import EARTH
from bulletbridge.numerics.records import Array

UNIT = 0.01
"""Metres to one of his units."""
CRANK, PIVOT = 15.0 * UNIT, np.array([-38.0, -7.8]) * UNIT
"""Radius of the crank; where the frame carries a leg, seen from the crank's axis."""
UPPER_ROD, LOWER_ROD = 50.0 * UNIT, 61.9 * UNIT
"""From the crank to the top of the upper triangle, and to the knee."""
TOP, BACK, ACROSS = 41.5 * UNIT, 40.1 * UNIT, 55.8 * UNIT
"""Sides of the upper triangle: pivot to top, pivot to back, top to back."""
HANGER, LINK = 39.3 * UNIT, 39.4 * UNIT
"""Pivot to knee, and back to ankle."""
SHIN, FOOT, SOLE = 36.7 * UNIT, 49.0 * UNIT, 65.7 * UNIT
"""Sides of the lower triangle: knee to ankle, knee to foot, ankle to foot."""
APART, WIDTH, DENSITY = 0.1, 0.02, 1.0
"""Legs [m] along the shaft; section of the bars [m], and their mass [kg/m]."""
UPRIGHT = (np.pi / 2, 0.0, 0.0)
"""Frame whose x is that of the world, and whose y points up."""


def walker(legs: int, angle: float = 0.0) -> Problem:
    """A walker on a stand, at rest: six bodies and three loops a leg, one freedom in all.

    Args:
        legs: How many, evenly spread over a turn of the shaft.
        angle: Of the crank [rad].
    """
    hub, phases = np.zeros(2), 2 * np.pi * np.arange(legs) / legs
    made, q, loops = empty_mechanism(EARTH), list[float](), list[LoopJoint]()

    def add(name: str, on: str, at: Array, depth: float, turn: float, *ends: Array) -> None:
        """One body of bars from its joint to its ends, and between them."""
        nonlocal made
        xyz = (at[0], -depth, at[1]) if on == WORLD else (at[0], at[1], depth)
        place = xyz, UPRIGHT if on == WORLD else (0.0, 0.0, 0.0)
        sides = [(hub, end) for end in ends]
        sides += [ends] if len(ends) == 2 and name != "crank" else []
        made = with_joint(made, name, "revolute", name, on, *place, bars(*sides))
        q.append(turn)

    tips = [CRANK * turned(phase) for phase in phases]
    add("crank", WORLD, hub, 0.0, angle, *tips)
    # of the triangles, in their own axes
    back_in = meet(hub, BACK, straight(TOP), ACROSS)
    foot_in = meet(hub, FOOT, straight(SHIN), SOLE)
    legs_at = [(k, CRANK * turned(angle + phase)) for k, phase in enumerate(phases)]
    tops = [meet(PIVOT, TOP, tip, UPPER_ROD) for _, tip in legs_at]
    knees = [meet(tip, LOWER_ROD, PIVOT, HANGER) for _, tip in legs_at]
    for k, tip in legs_at:  # children after their parents, as simulators number them
        for name, end, rod in ("rod", tops[k], UPPER_ROD), ("low_rod", knees[k], LOWER_ROD):
            turn = slope(end - tip) - angle
            add(f"{name}{k}", "crank", tips[k], APART * k, turn, straight(rod))
    for k, (top, knee) in enumerate(zip(tops, knees, strict=True)):
        upper, hanger, depth = slope(top - PIVOT), slope(knee - PIVOT), APART * k
        back = PIVOT + rotated(back_in, upper)
        ankle = meet(back, LINK, knee, SHIN, -1)
        add(f"upper{k}", WORLD, PIVOT, depth, upper, straight(TOP), back_in)
        add(f"link{k}", f"upper{k}", back_in, 0.0, slope(ankle - back) - upper, straight(LINK))
        add(f"hanger{k}", WORLD, PIVOT, depth, hanger, straight(HANGER))
        sole = slope(ankle - knee) - hanger
        add(f"sole{k}", f"hanger{k}", straight(HANGER), 0.0, sole, straight(SHIN), foot_in)
        loops += [
            pin(f"top{k}", f"rod{k}", UPPER_ROD, f"upper{k}", TOP),
            pin(f"knee{k}", f"low_rod{k}", LOWER_ROD, f"hanger{k}", HANGER),
            pin(f"ankle{k}", f"link{k}", LINK, f"sole{k}", SHIN),
        ]
    return problem(f"walker{legs}", made, loops, np.array(q), np.zeros(len(q)))


def turned(angle: float) -> Array:
    """Unit vector (2,) at an angle [rad] from x."""
    return np.array([np.cos(angle), np.sin(angle)])


def straight(length: float) -> Array:
    """Point (2,) on x."""
    return np.array([length, 0.0])


def rotated(point: Array, angle: float) -> Array:
    """Point (2,) turned by an angle [rad]."""
    return point[0] * turned(angle) + point[1] * turned(angle + np.pi / 2)


def slope(along: Array) -> float:
    """Angle [rad] of a vector (2,) from x."""
    return float(np.arctan2(along[1], along[0]))


def meet(a: Array, near: float, b: Array, far: float, side: int = 1) -> Array:
    """Point (2,) at distances from a and b [m], to the left of the way from a to b, or right."""
    way = b - a
    length = float(np.linalg.norm(way))
    along = (near**2 - far**2 + length**2) / (2 * length)
    across = side * np.sqrt(near**2 - along**2)
    return a + rotated(np.array([along, across]), slope(way))


def bars(*sides: tuple[Array, Array]) -> Load:
    """Mass, centre and inertia of bars between points (2,) of one body."""
    parts: list[Inertial] = []
    for a, b in sides:
        length, middle = float(np.linalg.norm(b - a)), np.append((a + b) / 2, 0.0)
        along = np.append(b - a, 0.0) / length
        across, thin = np.eye(3) - np.outer(along, along), np.eye(3) + np.outer(along, along)
        mass = DENSITY * length
        about = mass / 12 * (length**2 * across + WIDTH**2 * thin)
        parts.append(Inertial(mass, middle, about))
    whole = joined(parts)
    return Load(whole.mass, triple(whole.com), whole.J)


def pin(name: str, a: str, x_a: float, b: str, x_b: float) -> LoopJoint:
    """Points on the x axes of two bodies."""
    ends = Frame(a, (x_a, 0.0, 0.0)), Frame(b, (x_b, 0.0, 0.0))
    return LoopJoint(name, JointModel.BALL, *ends)
