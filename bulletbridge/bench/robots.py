"""Robots of twenty to fifty rates whose loops are local: legs, platforms, fingers.

Dimensions are made up; rates, rows and loops are those of robots that people have built.
"""

from collections.abc import Sequence

import numpy as np

from bulletbridge.bench.problem import Problem, positions, problem
from bulletbridge.constraints.joints import Frame, JointModel, LoopJoint
from bulletbridge.mechanism.build import Load, empty_mechanism, with_joint
from bulletbridge.mechanism.frames import inertia_at, matrix_rpy, triple
from bulletbridge.mechanism.model import WORLD
from bulletbridge.models.formats.robot import Inertial, joined
from bulletbridge.models.model_spec import EARTH
from bulletbridge.numerics.records import Array
from bulletbridge.system.system import System

X, Y, Z = np.eye(3)
THICK, DENSITY = 0.03, 2.0
"""Width of bars [m], and their mass [kg/m]."""
PIVOT, PIVOT_INERTIA = 0.02, (1e-5, 1e-5, 1e-5)
"""Mass [kg] and moments [kg m²] of what is between two axes of a universal or a ball joint."""
TRUNK, TRUNK_INERTIA = 10.0, (0.2, 0.15, 0.1)
"""Of a floating base [kg, kg m²]."""
SPRING = 20.0
"""Leaf springs of a leg [N m/rad]."""
STIR = 0.3
"""Size of the rates at the start [rad/s, m/s], before what opens the loops is taken out."""


class Parts:
    """A mechanism that grows joint by joint, each given where it is at q = 0, in the world."""

    def __init__(self) -> None:
        self.made = empty_mechanism(EARTH)
        self.at = {WORLD: (np.eye(3), np.zeros(3))}
        self.loops = list[LoopJoint]()
        self.stiff = dict[str, float]()

    def base(self, floating: bool) -> str:
        """The trunk, free, or the world in its place."""
        if not floating:
            return WORLD
        load = Load(TRUNK, (0.0, 0.0, 0.0), TRUNK_INERTIA)
        self.made = with_joint(self.made, "trunk", "free", "trunk", load=load)
        self.at["trunk"] = np.eye(3), np.zeros(3)
        return "trunk"

    def joint(
        self,
        name: str,
        on: str,
        place: Array,
        axis: Array,
        ends: Sequence[Array] = (),
        **how: float,
    ) -> str:
        """A hinge about an axis (3,), with bars from there to points; ``slide=1`` for a slide.

        Without ends it is a pivot between two axes. ``stiffness`` is of a spring [N m/rad].
        """
        R_on, p_on = self.at[on]
        across = np.cross(axis, X if abs(axis @ X) < 0.9 else Y)  # pyright: ignore[reportUnknownMemberType]
        across /= np.linalg.norm(across)
        R = np.column_stack([across, np.cross(axis, across), axis])
        load = bars([R.T @ (end - place) for end in ends])
        xyz = triple(R_on.T @ (place - p_on))
        kind = "prismatic" if how.get("slide") else "revolute"
        rpy = matrix_rpy(R_on.T @ R)
        self.made = with_joint(self.made, name, kind, name, on, xyz, rpy, load)
        self.at[name] = R, place
        if "stiffness" in how:
            self.stiff[name] = how["stiffness"]
        return name

    def ball(self, name: str, on: str, place: Array, along: Array, ends: Sequence[Array]) -> str:
        """Three hinges, as CAD exports a ball joint, the last one along a direction (3,)."""
        first = np.cross(along, X if abs(along @ X) < 0.9 else Y)
        first /= np.linalg.norm(first)
        outer = self.joint(f"{name}_0", on, place, first)
        inner = self.joint(f"{name}_1", outer, place, np.cross(along, first))
        return self.joint(name, inner, place, along, ends)

    def close(self, name: str, model: JointModel, a: str, b: str, place: Array) -> None:
        """A loop between two links at a point, with frames that are the world's at q = 0."""
        self.loops.append(LoopJoint(name, model, self.frame(a, place), self.frame(b, place)))

    def frame(self, on: str, place: Array) -> Frame:
        """A frame of a link that is at a place, turned as the world, at q = 0."""
        R, p = self.at[on]
        return Frame(on, triple(R.T @ (place - p)), matrix_rpy(R.T))

    def rod(self, name: str, a: str, p_a: Array, b: str, p_b: Array) -> None:
        """A rod on balls, cut in two: its halves are welded, six rows for six hinges."""
        middle, along = (p_a + p_b) / 2, (p_b - p_a) / np.linalg.norm(p_b - p_a)
        upper = self.ball(f"{name}_upper", a, p_a, along, [middle])
        lower = self.ball(f"{name}_lower", b, p_b, along, [middle])
        self.close(name, JointModel.WELD, upper, lower, middle)

    def problem(self, name: str) -> Problem:
        """The problem, at q = 0 with rates that its loops allow."""
        for joint, stiffness in self.stiff.items():
            self.made.axes["stiffness"][self.made.joints[joint].v] = stiffness
        q = np.zeros(self.made.nq)
        if self.made.nq > self.made.nv:
            q[6] = 1.0
        rates = STIR * np.cos(1.0 + np.arange(self.made.nv))
        made = problem(name, self.made, self.loops, q, rates)
        system = System(made.mechanism, made.constraints)
        system.assemble(guess=positions(made))
        system.set_state(q, rates)
        return problem(name, self.made, self.loops, system.q, system.v)


def bars(ends: Sequence[Array]) -> Load:
    """Mass, centre and inertia of bars from the origin to points (3,), or of a pivot for none."""
    if not ends:
        return Load(PIVOT, (0.0, 0.0, 0.0), PIVOT_INERTIA)
    parts: list[Inertial] = []
    for end in ends:
        mass = DENSITY * float(np.linalg.norm(end))
        about = mass / 12 * (inertia_at(end) + 2 * THICK**2 * np.eye(3))
        parts.append(Inertial(mass, end / 2, about))
    whole = joined(parts)
    return Load(whole.mass, triple(whole.com), whole.J)


def legs(floating: bool) -> Problem:
    """Two legs whose knee and ankle are moved by rods on balls, as Digit's: 24 rates, 18 rows each.

    Hip of three axes, knee, ankle of two; a rod spans the knee, two the ankle.
    """
    parts = Parts()
    trunk = parts.base(floating)
    for side, y in (("l", 0.12), ("r", -0.12)):
        hip, knee, ankle = np.array([[0, y, -0.05], [0.08, y, -0.45], [-0.02, y, -0.85]])
        toe, heel = ankle + [0.12, 0.0, -0.06], ankle + [-0.07, 0.0, -0.05]
        roll = parts.joint(f"{side}_roll", trunk, hip, X, [hip + 0.06 * X])
        yaw = parts.joint(f"{side}_yaw", roll, hip, Z, [hip - 0.08 * Z])
        thigh = parts.joint(f"{side}_thigh", yaw, hip, Y, [knee])
        shin = parts.joint(f"{side}_knee", thigh, knee, Y, [ankle])
        pivot = parts.joint(f"{side}_pitch", shin, ankle, Y, [ankle + 0.02 * Y])
        foot = parts.joint(f"{side}_foot", pivot, ankle, X, [toe, heel])
        parts.rod(
            f"{side}_achilles", yaw, hip + [-0.06, 0.01, -0.05], shin, knee + [-0.05, 0, -0.06]
        )
        for n, out in (("a", 0.035), ("b", -0.035)):
            top, end = knee + [-0.06, out, -0.1], ankle + [-0.06, out, 0.01 * out]
            parts.rod(f"{side}_toe_{n}", shin, top, foot, end)
    return parts.problem("legs_floating" if floating else "legs")


def sprung_biped(floating: bool) -> Problem:
    """Two legs with leaf springs, as Cassie's: 13 rates, 6 rows, two loops each."""
    parts = Parts()
    trunk = parts.base(floating)
    for side, y in (("l", 0.13), ("r", -0.13)):
        hip, knee, shin = np.array([[0.0, y, -0.1], [0.12, y, -0.5], [0.18, y, -0.55]])
        ankle, heel, sole = np.array([[-0.2, y, -0.75], [-0.05, y, -0.85], [-0.05, y, -1.05]])
        roll = parts.joint(f"{side}_roll", trunk, hip, X, [hip + 0.06 * X])
        yaw = parts.joint(f"{side}_yaw", roll, hip, Z, [hip - 0.08 * Z])
        thigh = parts.joint(f"{side}_thigh", yaw, hip, Y, [knee])
        knee_link = parts.joint(f"{side}_knee", thigh, knee, Y, [shin])
        leaf = parts.joint(f"{side}_shin", knee_link, shin, Y, [ankle], stiffness=5 * SPRING)
        tarsus = parts.joint(f"{side}_tarsus", leaf, ankle, Y, [heel, ankle + 0.1 * X])
        spring = ankle + [-0.08, 0.01, 0.03]
        lever = parts.joint(
            f"{side}_heel", tarsus, ankle + [-0.02, 0.01, 0], Y, [spring], stiffness=SPRING
        )
        start = hip + [-0.02, 0.05, -0.05]
        along = (spring - start) / np.linalg.norm(spring - start)
        rod = parts.ball(f"{side}_achilles", thigh, start, along, [spring])
        parts.close(f"{side}_heel_loop", JointModel.BALL, rod, lever, spring)
        foot = parts.joint(f"{side}_foot", tarsus, heel, Y, [sole, heel + [0.1, 0, -0.05]])
        crank_at = ankle + [0.03, -0.02, -0.04]
        crank_end, horn = crank_at + [-0.02, 0.0, -0.055], heel + [-0.02, -0.02, -0.055]
        crank = parts.joint(f"{side}_crank", tarsus, crank_at, Y, [crank_end])
        plantar = parts.joint(f"{side}_plantar", crank, crank_end, Y, [horn])
        parts.close(f"{side}_foot_loop", JointModel.BALL, plantar, foot, horn)
    return parts.problem("sprung_biped_floating" if floating else "sprung_biped")


def platform() -> Problem:
    """A Stewart platform as CAD exports it: six hinges and slides a leg, five welds."""
    parts, plates, top = Parts(), list[str](), np.array([0.0, 0.0, 0.8])
    for k in range(6):
        low, high = (np.pi / 3 * (k // 2 * 2) + s * (2 * (k % 2) - 1) for s in (0.2, 0.8))
        foot = 0.6 * np.array([np.cos(low), np.sin(low), 0.0])
        end = top + 0.35 * np.array([np.cos(high), np.sin(high), 0.0])
        along = (end - foot) / np.linalg.norm(end - foot)
        first = np.cross(along, Z) / np.linalg.norm(np.cross(along, Z))
        outer = parts.joint(f"cross{k}", WORLD, foot, first)
        sleeve = parts.joint(f"sleeve{k}", outer, foot, np.cross(along, first), [(foot + end) / 2])
        half = (foot + end) / 2
        rod = parts.joint(f"rod{k}", sleeve, half, along, [end], slide=1.0)
        plates.append(parts.ball(f"plate{k}", rod, end, along, [top]))
    for k in range(1, 6):
        parts.close(f"weld{k}", JointModel.WELD, plates[0], plates[k], top)
    return parts.problem("platform")


def delta() -> Problem:
    """A delta robot with universal joints at both ends of each forearm: 15 rates, two welds."""
    parts, plates, middle = Parts(), list[str](), np.array([0.0, 0.0, -0.6])
    for k in range(3):
        angle = 2 * np.pi / 3 * k
        out, side = (
            np.array([np.cos(angle), np.sin(angle), 0.0]),
            np.array([-np.sin(angle), np.cos(angle), 0.0]),
        )
        shoulder, elbow, wrist = 0.15 * out, 0.4 * out - 0.1 * Z, middle + 0.06 * out
        along = (wrist - elbow) / np.linalg.norm(wrist - elbow)
        across = np.cross(along, side)
        arm = parts.joint(f"arm{k}", WORLD, shoulder, side, [elbow])
        outer = parts.joint(f"elbow{k}", arm, elbow, side)
        forearm = parts.joint(f"forearm{k}", outer, elbow, across, [wrist])
        inner = parts.joint(f"wrist{k}", forearm, wrist, across)
        plates.append(parts.joint(f"plate{k}", inner, wrist, side, [middle]))
    for k in (1, 2):
        parts.close(f"weld{k}", JointModel.WELD, plates[0], plates[k], middle)
    return parts.problem("universal_delta")


def hand() -> Problem:
    """A wrist and four fingers, each with two crossed four-bars that bend its outer links."""
    parts = Parts()
    wrist = WORLD
    for name, axis in (("yaw", Z), ("pitch", Y), ("palm", X)):
        wrist = parts.joint(
            name, wrist, np.zeros(3), axis, [0.1 * X] if name == "palm" else [0.02 * X]
        )
    for k in range(4):
        y = 0.03 * (k - 1.5)
        joints = np.array([[0.1, y, 0], [0.15, y, 0], [0.18, y, 0], [0.2, y, 0]])
        base = parts.joint(f"spread{k}", wrist, joints[0] - 0.01 * X, Z, [joints[0]])
        low = parts.joint(f"low{k}", base, joints[0], Y, [joints[1]])
        middle = parts.joint(f"middle{k}", low, joints[1], Y, [joints[2]])
        last = parts.joint(f"last{k}", middle, joints[2], Y, [joints[3]])
        for n, (on, at, end, to) in enumerate(((base, 0, 1, middle), (low, 1, 2, last))):
            start, finish = joints[at] + [0, 0, 0.008], joints[end] + [0.002, 0, -0.006]
            rod = parts.joint(f"rod{n}_{k}", on, start, Y, [finish])
            parts.close(f"pin{n}_{k}", JointModel.BALL, rod, to, finish)
    return parts.problem("hand")


ROBOTS = {
    "legs": lambda: legs(floating=False),
    "legs_floating": lambda: legs(floating=True),
    "sprung_biped": lambda: sprung_biped(floating=False),
    "sprung_biped_floating": lambda: sprung_biped(floating=True),
    "platform": platform,
    "universal_delta": delta,
    "hand": hand,
}
"""Robots by name."""
