"""Random closed mechanisms of a campaign, each from one number.

Trees of two to some forty rates, up to three robots on fixed and floating bases, masses over
decades, some with damped joints; constraints of all kinds, closed by construction unless their kind
of case says otherwise.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from _campaign_judge import ROLLING, WEAK, Closing, Judge
from _campaign_restated import IMPLIED, restated
from _mechanisms import RATES, closed_loop_joint, random_mechanism, random_state

import bulletbridge as bb
from bulletbridge.constraints.joints import ROUND, Triple, Twist
from bulletbridge.constraints.motion import Sum
from bulletbridge.mechanism.build import Load, empty_mechanism, with_joint
from bulletbridge.mechanism.frames import matrix_rpy
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.mechanism.records import FREE, PRISMATIC, REVOLUTE, SPHERICAL
from bulletbridge.numerics.records import Array
from bulletbridge.system.options import Integrator

Rng = np.random.Generator
M = bb.JointModel
HOLDING = tuple(model for model in M if model not in ROLLING)
"""Models without rows of velocity."""
MOST_RATES = 44
RATES_OF_ONE = REVOLUTE, PRISMATIC


@dataclass(frozen=True)
class Parts:
    """A mechanism, what closes it, and where it starts.

    Attributes:
        mechanism: The tree.
        constraints: What closes it.
        q, v: (nq,), (nv,) where it starts.
        tau: (nv,) forces on the rates all the time.
        dt: Step [s].
        assembled: Whether the start is open, and ``assemble`` closes it.
        contradictory: Whether no motion at all can keep all rows.
    """

    mechanism: Mechanism
    constraints: tuple[Closing, ...]
    q: Array
    v: Array
    tau: Array
    dt: float
    assembled: bool = False
    contradictory: bool = False


@dataclass(frozen=True)
class Case:
    """What is made from a number, and what kind of case it is; see ``MAKERS``."""

    number: int
    kind: str
    parts: Parts

    @property
    def constraint_kinds(self) -> tuple[str, ...]:
        """Kinds of constraint in it, each once."""
        return tuple(sorted({kind_of(c) for c in self.parts.constraints}))

    def system(self, integrator: Integrator, dt: float | None = None) -> bb.System:
        """The system at its start.

        Raises:
            BulletBridgeError: It refuses the start.
        """
        p = self.parts
        made = bb.System(p.mechanism, p.constraints, dt=dt or p.dt, integrator=integrator)
        if p.assembled:
            made.assemble(guess=positions(p.mechanism, p.q))
        made.set_state(None if p.assembled else p.q, p.v)
        made.acceleration()  # decides which rows are redundant
        made.tau[:] = p.tau
        return made


def kind_of(c: Closing) -> str:
    """Name of a constraint's kind, as in loops files."""
    driven = "driven " if c.motion is not None else ""
    if isinstance(c, bb.LoopJoint):
        return driven + c.model.value
    return driven + ("distance" if isinstance(c, bb.Distance) else "coupling")


def positions(mechanism: Mechanism, q: Array) -> dict[str, float | list[float]]:
    """Positions by joint name."""
    found: dict[str, float | list[float]] = {}
    for name, joint in mechanism.joints.items():
        numbers = [float(x) for x in q[joint.q]]
        found[name] = numbers[0] if len(numbers) == 1 else numbers
    return found


# --- trees


def forest(rng: Rng) -> Mechanism:
    """One to three robots, on fixed and floating bases."""
    robots = int(rng.choice([1, 2, 3], p=[0.6, 0.3, 0.1]))
    made, roots, rates = list[int](), set[int](), 0
    for _ in range(robots):
        if rng.random() < 0.5:
            made.append(FREE)
            rates += RATES[FREE]
        else:
            roots.add(len(made))
        for _ in range(round(2 * 10 ** rng.uniform(0, 0.8 if robots > 1 else 1.15))):
            joint = int(rng.choice([REVOLUTE, PRISMATIC, SPHERICAL], p=[0.6, 0.2, 0.2]))
            if rates + RATES[joint] <= MOST_RATES:
                made.append(joint)
                rates += RATES[joint]
    decades = float(rng.choice([0.0, 2.0, 4.0]))
    mechanism = random_mechanism(rng, made, 0.3, bool(rng.random() < 0.8), roots, decades)
    if rng.random() < 0.3:
        single = mechanism.axes["q"] >= 0
        mechanism.axes["damping"] = single * rng.uniform(0, 0.5, mechanism.nv)
    return mechanism


def start(rng: Rng, mechanism: Mechanism) -> tuple[Array, Array, Array]:
    """Configuration, velocity, forces on the rates."""
    q, v = random_state(rng, mechanism, float(rng.choice([0.0, 0.3, 1.0])))
    lightest = float(mechanism.bodies["mass"][1:].min())
    return q, v, (rng.random() < 0.3) * rng.normal(0, 0.5, mechanism.nv) * lightest


def step(rng: Rng) -> float:
    """Step [s]: Bullet's, or a millisecond."""
    return float(rng.choice([1 / 240, 1e-3]))


# --- constraints


def triple(numbers: Array) -> Triple:
    """Three numbers."""
    x, y, z = (float(value) for value in numbers)
    return x, y, z


def direction(rng: Rng) -> Triple:
    """A unit vector."""
    x = rng.normal(size=3)
    return triple(x / np.linalg.norm(x))


def ends(rng: Rng, mechanism: Mechanism) -> tuple[str, str]:
    """Two links, one of which may be the world."""
    one, other = rng.permutation(len(mechanism.links))[:2]
    names = list(mechanism.links)
    return names[int(one)], names[int(other)]


def signal(rng: Rng, size: float) -> bb.Sine | bb.Polynomial:
    """A motion of some size, zero at the start."""
    if rng.random() < 0.7:
        return bb.Sine(size * float(rng.uniform(0.2, 1.0)), float(rng.uniform(0.3, 2.0)))
    a, b = (float(value) for value in rng.uniform(-1, 1, 2))
    return bb.Polynomial((0.0, size * a, size * b))


def some_motion(rng: Rng) -> bb.Motion:
    """A motion of frame a: a turn, or one or two ways."""
    chance = rng.random()
    if chance < 0.3:
        return bb.Motion(angle=signal(rng, 0.3), axis=direction(rng))
    if chance < 0.6:
        return bb.Motion(x=signal(rng, 0.05))
    return bb.Motion(y=signal(rng, 0.05), z=signal(rng, 0.05))


def free_twists(rng: Rng) -> tuple[Twist, ...]:
    """Free motions of a general joint: ways, with turns about no axis, one or all three."""
    turns, ways = int(rng.choice([0, 1, 3])), int(rng.integers(0, 3))
    twists = [np.concatenate([np.zeros(3), rng.normal(size=3)]) for _ in range(ways)]
    if turns == 1:
        screw = float(rng.choice([0.0, 0.2]))
        twists.append(np.concatenate([rng.normal(size=3), screw * rng.normal(size=3)]))
    if turns == 3:
        twists += [np.concatenate([axis, np.zeros(3)]) for axis in np.eye(3)]
    return tuple((*triple(twist[:3]), *triple(twist[3:])) for twist in twists)


def loop_joint(
    rng: Rng, name: str, model: bb.JointModel, between: tuple[str, str], driven: bool = False
) -> bb.LoopJoint:
    """A loop joint between two links, frame b not yet in its place."""
    return bb.LoopJoint(
        name,
        model,
        bb.Frame(between[0], triple(rng.normal(0, 0.3, 3)), triple(rng.uniform(-1.5, 1.5, 3))),
        bb.Frame(between[1]),
        direction(rng),
        direction(rng) if model is M.UNIVERSAL else None,
        pitch=float(rng.uniform(0.1, 0.5)) if model is M.SCREW else 0.0,
        motion=some_motion(rng) if driven else None,
        free=free_twists(rng) if model is M.GENERAL else (),
        radius=float(rng.uniform(0.1, 0.6)) if model in ROUND else 0.0,
    )


class Closer:
    """Puts constraints where a configuration closes them."""

    def __init__(self, mechanism: Mechanism, q: Array) -> None:
        self.mechanism, self.q = mechanism, q
        self.judge = Judge(mechanism, [])
        self.moving = self.judge.moving(q[None], np.zeros((1, mechanism.nv)))

    def frame(self, frame: bb.Frame) -> tuple[Array, Array]:
        """Rotation and position of a frame in the world."""
        R, p, _, _ = self.judge.frame(self.moving, frame)
        return R[0], p[0]

    def joint(self, rng: Rng, loop: bb.LoopJoint) -> bb.LoopJoint:
        """A loop joint that is closed, anywhere along its free motions."""
        link_b = self.frame(bb.Frame(loop.b.link))
        return closed_loop_joint(loop, self.frame(loop.a), link_b, 0.0, rng)

    def rod(self, rng: Rng, name: str, driven: bool) -> bb.Distance:
        """A rod between two links."""
        one, other = ends(rng, self.mechanism)
        a, b = bb.Frame(one, triple(rng.normal(0, 0.3, 3))), bb.Frame(other)
        length = float(np.linalg.norm(self.frame(b)[1] - self.frame(a)[1]))
        motion = bb.Motion(z=signal(rng, 0.1 * length)) if driven else None
        return bb.Distance(name, a, b, length, motion)

    def coupling(self, rng: Rng, name: str, driven: bool) -> bb.Coupling | None:
        """A coupling of two or three joints, or a driven joint, if there are any."""
        joints = [j for j in self.mechanism.joints.values() if j.kind in ("revolute", "prismatic")]
        count = 1 if driven else int(rng.integers(2, 4))
        if len(joints) < count:
            return None
        chosen = [joints[int(k)] for k in rng.permutation(len(joints))[:count]]
        factors = {j.name: float(rng.uniform(0.3, 2) * rng.choice([-1, 1])) for j in chosen}
        offset = sum(factors[j.name] * float(self.q[j.q.start]) for j in chosen)
        motion = bb.Motion(z=signal(rng, 0.5)) if driven else None
        return bb.Coupling(name, factors, offset, motion)

    def some(
        self, rng: Rng, name: str, models: Sequence[bb.JointModel], driven: bool = False
    ) -> Closing:
        """A constraint of any kind, closed."""
        chance = rng.random()
        if chance < 0.12 and (coupled := self.coupling(rng, name, driven)) is not None:
            return coupled
        if chance > 0.9:
            return self.rod(rng, name, driven)
        model = models[int(rng.integers(len(models)))]
        return self.joint(rng, loop_joint(rng, name, model, ends(rng, self.mechanism), driven))


def feasible(mechanism: Mechanism, constraints: Sequence[Closing], q: Array) -> bool:
    """Whether rows leave a freedom at the start, and rates that prescribed motions ask for."""
    judge = Judge(mechanism, constraints)
    if int(np.sum(judge.spectrum(q, 0.0) > WEAK)) >= mechanism.nv:
        return False
    return judge.can_follow(q, 0.0)


def constrained(
    rng: Rng,
    models: Sequence[bb.JointModel],
    first: Sequence[bb.JointModel] | None = None,
    drives: bool = False,
) -> Parts:
    """A forest with one to four constraints, as many as leave it some freedom.

    Args:
        rng: Where all numbers come from.
        models: Models of its loop joints.
        first: Models of which the first constraint is one; any constraint unless given.
        drives: Whether the first constraint is driven.
    """
    while True:
        mechanism = forest(rng)
        q, v, tau = start(rng, mechanism)
        closer, made = Closer(mechanism, q), list[Closing]()
        for n in range(int(rng.integers(1, 5))):
            if n == 0 and first is not None:
                model = first[int(rng.integers(len(first)))]
                new: Closing = closer.joint(
                    rng, loop_joint(rng, "c0", model, ends(rng, mechanism), drives)
                )
            else:
                new = closer.some(rng, f"c{n}", models, drives and n == 0)
            if feasible(mechanism, [*made, new], q):
                made.append(new)
            elif n == 0:
                break
        if made:
            return Parts(mechanism, tuple(made), q, v, tau, step(rng))


# --- kinds of case


def closed(rng: Rng) -> Parts:
    """Constraints of all kinds that hold positions."""
    return constrained(rng, HOLDING)


def rolling(rng: Rng) -> Parts:
    """The same with at least one that rolls, or holds like a fingertip."""
    return constrained(rng, HOLDING, ROLLING)


def driven(rng: Rng) -> Parts:
    """Constraints of all kinds, the first of which is driven."""
    return constrained(rng, tuple(M), drives=True)


def doubled(rng: Rng) -> Parts:
    """Constraints of all kinds, some of them twice, or with another model between their frames."""
    while True:
        parts = constrained(rng, tuple(M))
        again = list[Closing]()
        for c in parts.constraints:
            chance = rng.random()
            others = IMPLIED.get(c.model, ()) if isinstance(c, bb.LoopJoint) else ()
            if others and chance < 0.5:
                other = others[int(rng.integers(len(others)))]
                again.append(replace(c, name=f"{c.name}_too", model=other))
            elif chance < 0.7:
                again.append(replace(c, name=f"{c.name}_again"))
        constraints = (*parts.constraints, *again)
        if again and feasible(parts.mechanism, constraints, parts.q):
            return replace(parts, constraints=constraints)


def beside(rng: Rng, closer: Closer, parting: bool) -> list[Closing]:
    """A joint of the tree driven twice: as a coupling, and by a weld whose frame goes along.

    Or the same joint once more between its links, at rest. Without single joints nothing.
    ``parting``: whether the two drives come apart.
    """
    tree, q = closer.mechanism, closer.q
    singles = [k for k, body in enumerate(tree.bodies) if k and body["joint"] in RATES_OF_ONE]
    if not singles:
        return []
    at = singles[int(rng.integers(len(singles)))]
    joint, on = f"joint{at}", int(tree.bodies[at]["parent"])
    parent, child = ("world" if k == 0 else f"link{k}" for k in (on, at))
    link, turns = tree.links[child], tree.joints[joint].kind == "revolute"
    b = bb.Frame(child, triple(-link.R.T @ link.p), matrix_rpy(link.R.T))
    (R, p), (R_a, p_a) = closer.frame(b), closer.frame(bb.Frame(parent))
    a = bb.Frame(parent, triple(R_a.T @ (p - p_a)), matrix_rpy(R_a.T @ R))
    if rng.random() < 0.3 and not parting:
        model = M.REVOLUTE if turns else M.PRISMATIC
        return [bb.LoopJoint("beside", model, a, b)]
    way = signal(rng, 0.5 if turns else 0.1)
    late = bb.Polynomial((0.0, 0.0, float(10 ** rng.uniform(-3, 0))))
    more = Sum((way, late)) if parting else way
    moves = bb.Motion(angle=more) if turns else bb.Motion(z=more)
    offset = float(q[tree.joints[joint].q.start])
    drive = bb.Coupling("drive", {joint: 1.0}, offset, bb.Motion(z=way))
    return [drive, bb.LoopJoint("beside", M.WELD, a, b, motion=moves)]


def together(rng: Rng) -> Parts:
    """Loops that hold, roll and are driven, all of it twice: as it is, or in other words.

    In one of ten the two of a drive part, or the two planes of what rolls, soon after the start.
    """
    while True:
        parts = constrained(rng, tuple(M), drives=bool(rng.random() < 0.6))
        mechanism, q, made = parts.mechanism, parts.q, list(parts.constraints)
        closer, contradicts = Closer(mechanism, q), bool(rng.random() < 0.1)
        slips = contradicts and bool(rng.random() < 0.5)
        model, goes = ROLLING[int(rng.integers(len(ROLLING)))], bool(rng.random() < 0.2)
        rolls = closer.joint(rng, loop_joint(rng, "rolls", model, ends(rng, mechanism), goes))
        more: list[list[Closing]] = [
            [rolls],
            beside(rng, closer, contradicts and not slips)
            if contradicts or rng.random() < 0.6
            else [],
        ]
        if slips and not goes:
            late = bb.Polynomial((0.0, 0.0, float(10 ** rng.uniform(-2, 1))))
            more[0].append(replace(rolls, name="slips", motion=bb.Motion(angle=late)))
        for new in more:
            if feasible(mechanism, [*made, *new], q):
                made += new
        again = [restated(rng, c) for c in made if rng.random() < 0.8]
        torn = {c.name for c in made} & {"slips" if slips else "drive"}
        if again and (torn or not contradicts) and feasible(mechanism, [*made, *again], q):
            order = [int(k) for k in rng.permutation(len(made) + len(again))]
            constraints = tuple([*made, *again][k] for k in order)
            return replace(parts, constraints=constraints, contradictory=contradicts)


def open_start(rng: Rng) -> Parts:
    """Constraints of all kinds, open at the start, which ``assemble`` has to close."""
    parts = constrained(rng, tuple(M))
    q = parts.q.copy()
    for joint in parts.mechanism.joints.values():
        if joint.kind in ("revolute", "prismatic"):
            q[joint.q] += rng.normal(0, 0.05)
    return replace(parts, q=q, v=0 * parts.v, assembled=True)


def bar(rng: Rng) -> Load:
    """A body that is not symmetric."""
    a = rng.normal(0, 0.2, (3, 3))
    mass = float(rng.uniform(0.5, 3.0))
    inertia = mass * (np.trace(a @ a.T) * np.eye(3) - a @ a.T + 0.01 * np.eye(3))
    return Load(mass, triple(rng.normal(0, 0.2, 3)), inertia)


def planar(rng: Rng) -> Parts:
    """Linkages in a plane, with joints that have rows out of it: redundant by design."""
    mechanism = empty_mechanism((0.0, -9.81, 0.0))
    for k in range(int(rng.integers(3, 9))):
        on = "world" if k == 0 or rng.random() < 0.15 else f"l{k - 1}"
        x, y = (float(value) for value in rng.normal(0, 0.6, 2))
        mechanism = with_joint(
            mechanism, f"j{k}", "revolute", f"l{k}", on, (x, y, 0.0), load=bar(rng)
        )
    q, v, tau = start(rng, mechanism)
    closer, made = Closer(mechanism, q), list[Closing]()
    models = M.BALL, M.REVOLUTE, M.CYLINDRICAL, M.POINT_ON_LINE, M.WELD, *ROLLING
    chances = [0.24, 0.32, 0.12, 0.08, 0.04, 0.08, 0.06, 0.06]
    for k in range(int(rng.integers(1, 4))):
        model = models[int(rng.choice(len(models), p=chances))]
        one, other = ends(rng, mechanism)
        x, y = (float(value) for value in rng.normal(0, 0.4, 2))
        across = (M.POINT_ON_LINE, M.ROLLING, M.PURE_ROLLING)  # whose axis is in the plane
        axis = (1.0, 0.0, 0.0) if model in across else (0.0, 0.0, 1.0)
        radius = float(rng.uniform(0.1, 0.6)) if model in ROUND else 0.0
        frames = bb.Frame(one, (x, y, 0.0)), bb.Frame(other)
        loop = bb.LoopJoint(f"c{k}", model, *frames, axis, radius=radius)
        new = closer.joint(rng, loop)
        if feasible(mechanism, [*made, new], q):
            made.append(new)
    return Parts(mechanism, tuple(made), q, v, tau, step(rng)) if made else planar(rng)


def chain(rng: Rng, hinges: int, turned: bool) -> tuple[Mechanism, float]:
    """A chain of hinges that is straight along x at zero, and its length [m]."""
    mechanism, length = empty_mechanism(triple(rng.normal(0, 6, 3))), 0.0
    lengths = [float(x) for x in rng.uniform(0.3, 1.0, hinges)]
    for k in range(hinges):
        place = (lengths[k - 1], 0.0, 0.0) if k else (0.0, 0.0, 0.0)
        turn = (np.pi / 2, 0.0, 0.0) if turned and k else (0.0, 0.0, 0.0)
        load = Load(1.0, (lengths[k] / 2, 0.0, 0.0), lengths[k] ** 2 / 12 * np.eye(3))
        on = f"l{k - 1}" if k else "world"
        mechanism = with_joint(mechanism, f"j{k}", "revolute", f"l{k}", on, place, turn, load)
        length += lengths[k]
    return mechanism, length


def reach(rng: Rng) -> Parts:
    """A straight chain whose tip is held where it just reaches, almost, or just not."""
    hinges = int(rng.choice([3, 6]))
    mechanism, length = chain(rng, hinges, bool(rng.random() < 0.5))
    tip = float(length - mechanism.bodies["p"][2:, 0].sum())
    beyond = float(rng.choice([0.0, 0.0, *10 ** rng.uniform(-10, -7, 2) * [1, -1], 7e-5, -1.0]))
    if beyond == -1.0:
        beyond = -float(10 ** rng.uniform(-6, -4))
    at = bb.Frame("world", (length + beyond, 0.0, 0.0)), bb.Frame(f"l{hinges - 1}", (tip, 0.0, 0.0))
    loop: Closing = bb.LoopJoint("tip", M.BALL, *at)
    if rng.random() < 0.3:
        loop = bb.Distance("tip", bb.Frame("world", (length + beyond + 0.4, 0.0, 0.0)), at[1], 0.4)
    q, v = np.zeros(hinges), np.zeros(hinges)
    short = beyond < -1e-7
    if short:
        q = rng.normal(0, 1, hinges) * np.sqrt(-2 * beyond / length)
    contradictory = beyond > 1e-12
    return Parts(mechanism, (loop,), q, v, v.copy(), step(rng), short, contradictory)


def wheel(rng: Rng) -> Parts:
    """A wheel that rolls around a post on an axle: one of its rows follows from the others."""
    radius, axle = (float(x) for x in rng.uniform(0.2, 0.6, 2))
    mechanism = with_joint(
        empty_mechanism((0.0, 0.0, -9.81)), "base", "free", "axle", load=bar(rng)
    )
    turn = (0.0, np.pi / 2, 0.0)
    disc = Load(1.0, (0.0, 0.0, 0.0), (0.25 * radius**2, 0.25 * radius**2, 0.5 * radius**2))
    mechanism = with_joint(
        mechanism, "spin", "revolute", "wheel", "axle", (axle, 0.0, 0.0), turn, disc
    )
    lift = float(rng.choice([0.0, rng.uniform(-0.3, 0.3)])) * axle  # of the post over the wheel
    slope = np.arcsin(lift / axle)
    q = np.array([0.0, 0.0, radius + lift, 0.0, np.sin(slope / 2), 0.0, np.cos(slope / 2), 0.0])
    q[7] = rng.uniform(-3, 3)
    model = (M.BALL, M.BALL, M.UNIVERSAL, M.REVOLUTE)[int(rng.integers(4))]
    axis_b = (1.0, 0.0, 0.0) if model is M.UNIVERSAL else None
    rolls = M.ROLLING if rng.random() < 0.8 else M.PURE_ROLLING
    if model is M.UNIVERSAL and rolls is M.PURE_ROLLING and lift:
        return wheel(rng)  # it may rock at the start, and nowhere else: a structure
    post = bb.Frame("world", (0.0, 0.0, radius + lift)), bb.Frame("axle", rpy=(0.0, -slope, 0.0))
    constraints = (
        bb.LoopJoint("post", model, *post, axis_b=axis_b),
        bb.LoopJoint("ground", rolls, bb.Frame("world"), bb.Frame("wheel"), radius=radius),
    )
    if not feasible(mechanism, constraints, q):
        return wheel(rng)
    v = np.array([0.0, 0.0, rng.normal(0, 2), 0.0, 0.0, 0.0, rng.normal(0, 2)])
    return Parts(mechanism, constraints, q, v, np.zeros(7), step(rng))


def flat(rng: Rng) -> Parts:
    """A row of parallelograms that starts flat, where ranks are lost."""
    mechanism, made, count = empty_mechanism((0.0, -9.81, 0.0)), list[Closing](), 0
    size, load = 1.0, Load(1.0, (0.5, 0.0, 0.0), (1e-3, 1 / 12, 1 / 12))
    count = int(rng.integers(1, 4))
    for k in range(count + 1):
        mechanism = with_joint(
            mechanism, f"rod{k}", "revolute", f"rod{k}", xyz=(k * size, 0.0, 0.0), load=load
        )
        if k < count:  # depth first, as the oracle wants them
            bar, end = f"bar{k + 1}", (1.0, 0.0, 0.0)
            mechanism = with_joint(mechanism, bar, "revolute", bar, f"rod{k}", end, load=load)
    for k in range(1, count + 1):
        made_of = bb.Frame(f"bar{k}", (size, 0.0, 0.0)), bb.Frame(f"rod{k}", (1.0, 0.0, 0.0))
        model = M.BALL if rng.random() < 0.7 else M.REVOLUTE
        made.append(bb.LoopJoint(f"pin{k}", model, *made_of))
    q, v = np.zeros(mechanism.nv), np.zeros(mechanism.nv)
    rate = float(rng.normal(0, 2))
    for name, joint in mechanism.joints.items():
        v[joint.v] = rate if name.startswith("rod") else -rate
    return Parts(mechanism, tuple(made), q, v, 0 * v, step(rng))


def contradictory(rng: Rng) -> Parts:
    """Motions that contradict each other, or that cannot be followed, soon after the start."""
    way = int(rng.integers(4))
    sizes = [float(x) for x in rng.uniform(0.5, 2.0, 2)]
    if way == 0:  # a chain whose target leaves its reach
        mechanism, length = chain(rng, 3, False)
        q = np.array([0.9, -1.2, 0.7])
        tip = bb.Frame("l2", (float(length - mechanism.bodies["p"][2:, 0].sum()), 0.0, 0.0))
        x, y, _ = Closer(mechanism, q).frame(tip)[1]
        away = bb.Motion(x=bb.Polynomial((0.0, 0.0, 40.0 * length)))
        held = bb.LoopJoint(
            "tip", M.BALL, bb.Frame("world", (float(x), float(y), 0.0)), tip, motion=away
        )
        return Parts(mechanism, (held,), q, 0 * q, 0 * q, 1 / 240, contradictory=True)
    if way == 1:  # the same, out of its plane
        mechanism, length = chain(rng, 3, False)
        q = np.array([0.9, -1.2, 0.7])
        tip = bb.Frame("l2", (float(length - mechanism.bodies["p"][2:, 0].sum()), 0.0, 0.0))
        x, y, _ = Closer(mechanism, q).frame(tip)[1]
        away = bb.Motion(z=bb.Polynomial((0.0, 0.0, 0.1 * sizes[0])))
        held = bb.LoopJoint(
            "tip", M.BALL, bb.Frame("world", (float(x), float(y), 0.0)), tip, motion=away
        )
        return Parts(mechanism, (held,), q, 0 * q, 0 * q, 1 / 240, contradictory=True)
    parts = constrained(rng, HOLDING, first=(M.BALL, M.REVOLUTE, M.UNIVERSAL, M.WELD))
    parts = replace(parts, v=0 * parts.v)
    joints = [j for j in parts.mechanism.joints.values() if j.kind in ("revolute", "prismatic")]
    if way == 2 and joints:  # a joint driven in two ways
        joint = joints[int(rng.integers(len(joints)))]
        drives = tuple(
            bb.Coupling(
                f"drive{k}",
                {joint.name: 1.0},
                float(parts.q[joint.q.start]),
                bb.Motion(z=bb.Polynomial((0.0, 0.0, sign * sizes[k]))),
            )
            for k, sign in enumerate((1, -1))
        )
        return replace(parts, constraints=(*parts.constraints, *drives), contradictory=True)
    first = parts.constraints[0]  # the same joint at rest and driven
    assert isinstance(first, bb.LoopJoint)
    away = bb.Motion(x=bb.Polynomial((0.0, 0.0, 0.2 * sizes[0])))
    return replace(
        parts,
        constraints=(*parts.constraints, replace(first, name="driven", motion=away)),
        contradictory=True,
    )


MAKERS: dict[str, tuple[float, Callable[[Rng], Parts]]] = {
    "closed": (30, closed),
    "rolling": (16, rolling),
    "driven": (13, driven),
    "doubled": (10, doubled),
    "open_start": (8, open_start),
    "planar": (8, planar),
    "reach": (6, reach),
    "wheel": (3, wheel),
    "flat": (2, flat),
    "contradictory": (4, contradictory),
    "together": (0, together),
}
"""How often each kind of case is, out of a hundred, and what makes it; one by itself alone."""


def make_case(number: int, kind: str | None = None) -> Case:
    """The case of a number, of a kind of its own unless one is asked for."""
    rng = np.random.default_rng(number)
    weights = np.array([weight for weight, _ in MAKERS.values()])
    own = list(MAKERS)[int(rng.choice(len(MAKERS), p=weights / weights.sum()))]
    return Case(number, kind or own, MAKERS[kind or own][1](rng))
