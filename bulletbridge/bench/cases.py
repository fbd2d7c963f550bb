"""The mechanisms of the comparison: bundled ones, and rows and ladders of any length."""

import warnings
from dataclasses import replace

import numpy as np
import pybullet
from scipy.spatial.transform import Rotation

from bulletbridge.bench.problem import Problem, positions, problem
from bulletbridge.bench.robots import ROBOTS
from bulletbridge.bench.walkers import walker
from bulletbridge.bullet.reader import read_bullet
from bulletbridge.bullet.worlds import connect_direct, disconnect, make_passive
from bulletbridge.constraints.joints import Frame, JointModel, LoopJoint
from bulletbridge.errors import BulletBridgeWarning, ModelError
from bulletbridge.mechanism.build import Load, empty_mechanism, with_joint
from bulletbridge.mechanism.frames import matrix_rpy, rpy_matrix
from bulletbridge.mechanism.model import WORLD, Mechanism
from bulletbridge.models.bundled import bundled, find
from bulletbridge.models.load import load, with_forces
from bulletbridge.models.loops_file import read_loops
from bulletbridge.models.model_spec import EARTH
from bulletbridge.numerics.records import Array
from bulletbridge.system.system import System

CASES = {
    "four_bar": (2.0, 10.0),
    "two_arms": (1.0, 2.0, 10.0),
    "minitaur": (2.0, 10.0),
    "row5": (2.0, 10.0),
}
"""Cases by name, with the horizons [s] at which their errors are taken. Five loops in a row, which
share rods, swing as a pendulum."""
SINGULAR = ("parallelogram", "parallelogram_heavy", "parallelogram_two")
STANDARD = (
    "a01_pendulum", "a02_windows_2", "a02_windows_40", "a03_andrews", "bricard", "a05_governor",
    "a05_governor_rigid", "stewart",
)  # fmt: skip
"""Standard problems of the field, by bundled name: IFToMM A01 to A05 (Bricard's is A04), and a
Stewart-Gough platform."""
GROWING = {"row": 1, "ladder": 1, "walker": 3}
"""Mechanisms of any size, and the loops of each unit: of a leg of Jansen's."""
ALL = (*CASES, *STANDARD, *GROWING, *SINGULAR)
"""Names of all cases."""
WIDTH = 0.04
"""Width of bars [m]."""
HANG = matrix_rpy(Rotation.from_euler("XZ", [np.pi / 2, -np.pi / 2]).as_matrix())
"""Joint frame whose z is -y of the world and whose x points down."""
TURNED = (0.0, 0.0, np.pi / 2)
STIFFNESS, FASTER = 1.0, 20.0
"""Of Minitaur: its springs [N m/rad], and how much faster it starts than in its file."""
ROUNDED, GRADUATION = 1e-3, np.deg2rad(5.0)
"""A file that says 1.57075 means a right angle; its angles are multiples of 5 degrees."""


def case(name: str) -> Problem:
    """A problem by name: a bundled model, one of ``ROBOTS``, ``rowN``, ``ladderN``, ``walkerN``.

    Raises:
        ModelError: There is none.
    """
    if name in SINGULAR:
        loops, mass = (2, 1.0) if name.endswith("two") else (1, 1.0 + 2.0 * name.endswith("heavy"))
        return replace(row(loops, np.pi, 1.0, mass), name=name)
    for kind, make in (("row", row), ("ladder", ladder), ("walker", walker)):
        if name.startswith(kind) and name.removeprefix(kind).isdigit():
            return make(int(name.removeprefix(kind)))
    if name in ROBOTS:
        return ROBOTS[name]()
    if name not in bundled():
        raise ModelError(
            f"no case is called '{name}'; there are {', '.join((*CASES, *ROBOTS))}, rowN, ladderN,"
            " walkerN"
        )
    if name == "minitaur":
        return minitaur()
    with load(name, "new") as model:
        system = model.system
        acting = (*model.spec.constraints, *model.spec.elements)
        return problem(name, system.mechanism, acting, system.q, system.v)


def minitaur() -> Problem:
    """The bundled Minitaur as programs load it: inertias are those of Bullet, from its shapes.

    Those in its file are far too large. Motors are held by springs of 1 N m/rad and start faster.
    """
    spec = read_loops(find("minitaur"))
    client = connect_direct()
    try:
        body = pybullet.loadURDF(str(spec.bodies[0].urdf), physicsClientId=client)
        make_passive(body, client)
        pybullet.setGravity(*spec.own_gravity, physicsClientId=client)
        with warnings.catch_warnings():  # that these are not the file's inertias
            warnings.simplefilter("ignore", BulletBridgeWarning)
            read = read_bullet(body, client).mechanism
    finally:
        disconnect(client)
    mechanism = with_forces(read, [replace(force, stiffness=STIFFNESS) for force in spec.forces])
    system = System(mechanism, spec.constraints)
    rates = {name: FASTER * float(np.sum(rate)) for name, rate in spec.start_v.items()}
    system.assemble(spec.start_q, rates)
    made = problem("minitaur", mechanism, spec.constraints, system.q, system.v)
    return with_exact_angles(made, mechanism.link("base_chassis_link").R)


def with_exact_angles(made: Problem, base: Array) -> Problem:
    """Minitaur with the angles that the file has rounded, so that its loops can close.

    Joint frames are snapped, and loop points moved along what no joint can move.

    Args:
        made: As it is.
        base: (3, 3) of its base link in the body, whose axes are principal ones of inertia.
    """
    mechanism = replace(made.mechanism, bodies=made.mechanism.bodies.copy())
    for body in mechanism.bodies[1:]:
        on = base if body["parent"] == 1 else np.eye(3)
        rpy = np.array(matrix_rpy(on.T @ body["R"]))
        meant: Array = GRADUATION * np.rint(rpy / GRADUATION)
        if np.abs(rpy - meant).max() < ROUNDED:
            body["R"] = on @ rpy_matrix(meant)
    flat = replace(made, mechanism=mechanism)
    tree = System(mechanism)
    tree.set_state(made.q, made.v)
    kinematics, ties = tree.kinematics(), list(made.ties)
    for k, (tie, loop) in enumerate(zip(made.ties, flat.loops, strict=True)):
        if tie.normal is not None:
            a, b = kinematics.point(loop.a), kinematics.point(loop.b)
            normal = np.round(tie.normal)
            across = a.R_W @ normal
            moved = tie.R_a @ normal * float(across @ (b.p_W - a.p_W))
            ties[k] = replace(tie, p_a=tie.p_a + moved)
    flat = replace(flat, ties=tuple(ties))
    system = System(mechanism, flat.constraints)
    start = positions(made)
    motors = {name: q for name, q in start.items() if "knee" not in name}
    knees = {name: q for name, q in start.items() if "knee" in name}
    rates = {
        name: float(made.v[joint.v.start])
        for name, joint in mechanism.joints.items()
        if "motor" in name
    }
    system.assemble(motors, rates, knees)
    return problem(made.name, mechanism, flat.constraints, system.q, system.v)


def row(
    loops: int, angle: float = np.deg2rad(50.0), rate: float = 0.0, last: float = 1.0
) -> Problem:
    """Parallelograms side by side: a shallow tree, and a pendulum whatever their number.

    Args:
        loops: How many.
        angle: Of the rods from straight down [rad]; at pi / 2 the loops are flat.
        rate: Of the rods [rad/s].
        last: Mass of the last rod [kg]; all others have 1 kg and 1 m.
    """
    made, loop = empty_mechanism(EARTH), list[LoopJoint]()
    q, v = list[float](), list[float]()
    for k in range(loops + 1):
        mass = last if k == loops else 1.0
        made = bar(made, f"rod{k}", WORLD, (float(k), 0.0, 0.0), HANG, mass)
        q, v = [*q, angle], [*v, rate]
        if k < loops:
            made = bar(made, f"coupler{k}", f"rod{k}", (1.0, 0.0, 0.0), TURNED)
            loop.append(pin(f"pin{k}", f"coupler{k}", f"rod{k + 1}"))
            q, v = [*q, -angle], [*v, -rate]
    return problem(f"row{loops}", made, loop, np.array(q), np.array(v))


def pendulum(made: Problem) -> tuple[float, float]:
    """Inertia [kg m²] and largest torque of gravity [N m] of the pendulum that a row is."""
    rods = [body for body in made.mechanism.bodies[1:] if body["parent"] == 0]
    couplers = len(made.mechanism.bodies) - 1 - len(rods)
    mass = sum(float(body["mass"]) for body in rods)
    inertia = sum(
        float(body["J"][2, 2] + body["mass"] * body["com"] @ body["com"]) for body in rods
    )
    return inertia + couplers, -EARTH[2] * (0.5 * mass + couplers)


def ladder(loops: int) -> Problem:
    """Four-bars stacked, each hanging from the one above: a deep tree with a loop per storey."""
    made, loop, q = empty_mechanism(EARTH), list[LoopJoint](), list[float]()
    start = 0.3
    for side, x in (("left", 0.0), ("right", 1.0)):
        for k in range(loops):
            on, xyz, rpy = (f"{side}{k - 1}", (1.0, 0.0, 0.0), (0.0, 0.0, 0.0)) if k else (
                WORLD, (x, 0.0, 0.0), HANG
            )  # fmt: skip
            made = bar(made, f"{side}{k}", on, xyz, rpy)
            q.append(0.0 if k else start)
            if side == "left":
                made = bar(made, f"rung{k}", f"left{k}", (1.0, 0.0, 0.0), TURNED)
                q.append(-start)
                loop.append(pin(f"pin{k}", f"rung{k}", f"right{k}"))
    return problem(f"ladder{loops}", made, loop, np.array(q), np.zeros(len(q)))


def bar(
    made: Mechanism,
    name: str,
    on: str,
    xyz: tuple[float, float, float],
    rpy: tuple[float, float, float],
    mass: float = 1.0,
) -> Mechanism:
    """A mechanism with a bar of 1 m more, along x of its joint frame."""
    thin, long = mass * WIDTH**2 / 6, mass * (1.0 + WIDTH**2) / 12
    load = Load(mass, (0.5, 0.0, 0.0), (thin, long, long))
    return with_joint(made, name, "revolute", name, on, xyz, rpy, load)


def pin(name: str, a: str, b: str) -> LoopJoint:
    """The ends of two bars."""
    tip = (1.0, 0.0, 0.0)
    return LoopJoint(name, JointModel.BALL, Frame(a, tip), Frame(b, tip))
