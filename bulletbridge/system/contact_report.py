"""Forces of motors, limits, contacts and constraints in the last step with inequalities."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np

from bulletbridge.constraints.arrays import Encoded
from bulletbridge.engine.redundancy import Redundancy
from bulletbridge.engine.workspace import Terms
from bulletbridge.formulations.equations import Split
from bulletbridge.formulations.system_dynamics import split_here
from bulletbridge.inequalities.arrays import APART, MOVING, ROWS, WITH_FRICTION, X
from bulletbridge.inequalities.contact_rows import tangents
from bulletbridge.inequalities.impulse_step import STICKING
from bulletbridge.inequalities.motors import Motors
from bulletbridge.inequalities.stepper import InequalityStepper
from bulletbridge.mechanism.kinematics import displace
from bulletbridge.mechanism.model import WORLD, Mechanism
from bulletbridge.numerics.records import Array, Ints
from bulletbridge.system.evaluation import Reaction, reactions


@dataclass(frozen=True)
class Contact:
    """A contact that collision detection found in the last step.

    Attributes:
        a: One link in contact, the first one of its rigid body; ``world`` for what is not part of
            the system.
        b: The other, likewise.
        point: (3,) on b [m], world axes, at the configuration that was predicted.
        normal: (3,) unit vector from a to b.
        gap: Distance of b from a at the end of the step, to first order in the step [m].
        predicted_gap: The same at the configuration that was predicted [m].
        force: (3,) on b [N], world axes, the mean over the step.
        moment: (3,) on b, of rolling and spinning resistance [N m].
        state: What it does: ``open`` without force, ``sticking``, ``sliding``, or ``held``: its
            bodies are held to one another by loops, so that it has no part in the motion.
    """

    a: str
    b: str
    point: Array
    normal: Array
    gap: float
    predicted_gap: float
    force: Array
    moment: Array
    state: Literal["open", "sticking", "sliding", "held"]

    @property
    def normal_force(self) -> float:
        """Along the normal [N]."""
        return float(self.force @ self.normal)

    @property
    def friction(self) -> Array:
        """Force on b at right angles to the normal (3,) [N]."""
        return self.force - self.normal_force * self.normal


@dataclass(frozen=True)
class JointLoad:
    """Forces along a joint's motion in the last step [N m or N]: of motor, friction and limit."""

    motor: float
    friction: float
    limit: float


def contacts_of(step: InequalityStepper, mechanism: Mechanism) -> tuple[Contact, ...]:
    """All contacts of the last step."""
    names = {0: WORLD}
    for link in mechanism.links.values():
        names.setdefault(link.body, link.name)
    found: list[Contact] = []
    dt = step.dt
    x, moving = step.impulses[X], np.zeros(step.C.shape[2])
    if step.report[APART]:
        moving = step.impulses[MOVING, : len(moving)]
    for point, own in zip(step.contact_points, step.contact_rows, strict=False):
        n, k = int(own["normal"]), int(own["tangents"])
        normal = point["normal"].copy()
        force, moment, used = *_loads(point, own, x, dt), 0.0
        if k >= 0:
            semi = np.array([point["friction"], point["friction_across"]])
            part = x[k : k + 2][semi > 0.0] / semi[semi > 0.0]
            used = float(np.linalg.norm(part))
        slides = used >= STICKING * x[n]
        gained = step.gained(int(n), moving)
        state: Literal["open", "sticking", "sliding", "held"] = "open"
        if not step.D[0, n, n] > 0.0:
            state = "held"
        elif x[n] > 0.0:
            state = "sliding" if slides else "sticking"
        found.append(
            Contact(
                names[int(point["body_a"])],
                names[int(point["body_b"])],
                point["position"].copy(),
                normal,
                float(point["gap"] + dt * gained),
                float(point["gap"]),
                force,
                moment,
                state,
            )
        )
    return tuple(found)


def _loads(point: np.void, own: np.void, x: Array, dt: float) -> tuple[Array, Array]:
    """Force (3,) [N] and moment (3,) [N m] on link b of a contact, world axes.

    Args:
        point: Of ``CONTACT_POINT``.
        own: Its rows.
        x: Impulses of all rows,
        dt: in a step of this length [s].
    """
    n, k, spin, roll = (int(own[name]) for name in ("normal", "tangents", "spin", "roll"))
    normal, moment = point["normal"], np.zeros(3)
    force = x[n] / dt * normal
    if k < 0 and spin < 0 and roll < 0:
        return force, moment
    t1, t2 = map(np.array, tangents(tuple(normal), tuple(point["direction"])))
    if k >= 0:
        force = force + (x[k] * t1 + x[k + 1] * t2) / dt
    if spin >= 0:
        moment = moment + x[spin] / dt * normal
    if roll >= 0:
        moment = moment + (x[roll] * t1 + x[roll + 1] * t2) / dt
    return force, moment


def net_contact_forces(step: InequalityStepper, bodies: Ints) -> Array:
    """Sum of the contact forces (n, 3) [N] on bodies (n,) in the last step, world axes."""
    total, x = np.zeros((len(bodies), 3)), step.impulses[X]
    for point, own in zip(step.contact_points, step.contact_rows, strict=False):
        if x[int(own["normal"])] != 0.0:
            force, _ = _loads(point, own, x, step.dt)
            total[bodies == point["body_b"]] += force
            total[bodies == point["body_a"]] -= force
    return total


def joint_loads(step: InequalityStepper, motors: Motors) -> dict[str, JointLoad]:
    """Motor, friction and limit of every joint that can have them."""
    x, dt = step.impulses[X], step.dt
    limits: dict[int, float] = {}
    for stop in step.joint_limits:
        if stop["row"] >= 0:
            limits[int(stop["axis"])] = float(x[stop["row"]]) / dt
    exerted = motors.names, motors.forces.tolist(), motors.frictions.tolist()
    found = {
        name: JointLoad(motor, friction, limits.get(motors.axis(name), 0.0) if limits else 0.0)
        for name, motor, friction in zip(*exerted, strict=True)
    }
    loop_axes = step.inequalities.loop_axes
    for n, name in list(enumerate(loop_axes.encoded.rows))[len(loop_axes.names) :]:
        found[name] = JointLoad(0.0, 0.0, limits.get(-1 - n, 0.0))  # on the turn of a ball
    return found


def limits_push(step: InequalityStepper) -> bool:
    """Whether any joint limit pushed in the last step."""
    rows = step.joint_limits["row"]
    return bool(np.any(step.impulses[X, rows[rows >= 0]] != 0.0))


def force_of_inequalities(step: InequalityStepper) -> Array:
    """Forces (nv,) on the rates of all inequality rows of the last step [N m or N]."""
    n = int(step.report[ROWS])
    return np.asarray(step.impulses[X, :n] @ step.rows / step.dt, np.float64)


class Loaded(NamedTuple):
    """The equations of motion at the start of a step, with all that acted by inequalities in it.

    Attributes:
        state: q, v and t.
        terms: There.
        vdot: (nv,) accelerations.
        tau: (nv,) forces on the rates, those of inequalities included.
        split: Velocity space there; None where only accelerations were asked for.
    """

    state: tuple[Array, Array, float]
    terms: Terms
    vdot: Array
    tau: Array
    split: Split | None = None


def loaded_motion(step: InequalityStepper) -> Loaded:
    """How the last step moved its system from its start on: the mean over the step."""
    solver = step.solver
    q, v, t = step.start
    damping = solver.axes["damping"]
    tau = step.tau + force_of_inequalities(step) + damping * (v - solver.v)  # by the end's rates
    terms = solver.terms(q, v, t)
    split = split_here(solver, terms)
    push = split.whiten_force(tau + terms.forces - terms.h)
    vdot = split.unwhiten(split.free(push) + split.shortest(-terms.gamma))
    return Loaded(step.start, terms, vdot, tau, split)


def mean_motion(step: InequalityStepper) -> Loaded:
    """The same of a system without rigid constraints, by its velocities alone."""
    q, v, t = step.start
    terms = step.solver.terms(q, v, t)
    return Loaded(step.start, terms, (step.solver.v - v) / step.dt, step.tau)


def loaded_reactions(
    step: InequalityStepper, redundancy: Mapping[str, Redundancy], loaded: Loaded | None = None
) -> dict[str, Reaction]:
    """Reactions of all constraints with the forces within bounds of the last step, at its start.

    Args:
        step: The step.
        redundancy: Of the constraints.
        loaded: Of ``loaded_motion``, where it is known.
    """
    (_, _, t), terms, vdot, tau, split = loaded or loaded_motion(step)
    found = reactions(step.solver, redundancy, terms, t, vdot, tau, split)
    found |= _force_limit_reactions(step, terms, t)
    return _with_loop_axes(step, terms, t, found)


class ContactLoad(NamedTuple):
    """What a contact does to b; the opposite acts on a.

    Attributes:
        a, b: Bodies.
        point_a, point_b: (3,) where on each, at the start of the step [m].
        force, moment: (3,) [N], [N m]
    """

    a: int
    b: int
    point_a: Array
    point_b: Array
    force: Array
    moment: Array


def contact_loads(step: InequalityStepper, poses: np.ndarray) -> list[ContactLoad]:
    """What the contacts of the last step do, in their order; poses (nb) are those at its start.

    Contacts are found where the step was to lead: the places on the bodies are those at the start.
    """
    if not len(step.contact_points):
        return []
    solver, x, found = step.solver, step.impulses[X], list[ContactLoad]()
    q, moved = step.start[0], np.empty(len(step.start[0]))
    displace(solver.bodies, q, step.impulses[MOVING, : len(solver.v)], step.dt, moved)
    after = solver.poses_at(moved)
    way = poses["origin"] + poses["p"] - after["origin"] - after["p"]
    for point, own in zip(step.contact_points, step.contact_rows, strict=False):
        a, b = int(point["body_a"]), int(point["body_b"])
        on_b = point["position"]
        on_a = on_b - point["gap"] * point["normal"]
        force, moment = _loads(point, own, x, step.dt)
        found.append(ContactLoad(a, b, on_a + way[a], on_b + way[b], force, moment))
    return found


def _force_limit_reactions(step: InequalityStepper, terms: Terms, t: float) -> dict[str, Reaction]:
    """Reactions of the constraints with a force limit."""
    force_limited, first = step.inequalities.force_limited, int(step.report[WITH_FRICTION])
    lam = step.impulses[X, first : first + force_limited.nc] / step.dt
    found: dict[str, Reaction] = {}
    for index, (name, part) in enumerate(force_limited.rows.items()):
        if step.inequalities.force_limits[index]["holds"]:
            continue  # among the rigid ones
        point, force, torque = np.zeros((3, 3))
        if index < len(force_limited.loops):
            point, rows = step.solver.wrench_rows(terms.poses, index, t, force_limited)
            if step.inequalities.force_limits[index]["loop"] >= 0:
                rows[:3] = rows[:3, 3:].T @ rows[:3]
            torque, force = np.split(lam[part] @ rows, 2)
        found[name] = Reaction(name, point, force, torque, lam[part], True)
    return found


def _with_loop_axes(
    step: InequalityStepper, terms: Terms, t: float, found: dict[str, Reaction]
) -> dict[str, Reaction]:
    """Reactions with what acts along the free motions of their loops."""
    guided: Encoded = step.inequalities.loop_axes.encoded
    for index, name in enumerate(step.inequalities.loop_axes.names):
        records = [r for table in (step.motor_rows, step.joint_limits) for r in table]
        impulse = sum(
            float(step.impulses[X, r["row"]])
            for r in records
            if r["axis"] == -1 - index and r["row"] >= 0
        )
        loop = name if name in found else name.rpartition("/")[0]
        stretches = np.flatnonzero(guided.loops["row"] == index)
        if not len(stretches):
            continue  # a tendon's, which acts on joints and at no frame
        point, rows = step.solver.wrench_rows(terms.poses, int(stretches[-1]), t, guided)
        torque, force = np.split(impulse / step.dt * rows[0], 2)
        if loop not in found:  # a spring's, between whose frames nothing else is closed
            found[name] = Reaction(name, point, force, torque, np.array([impulse / step.dt]), True)
            continue
        old = found[loop]
        found[loop] = replace(old, force=old.force + force, torque=old.torque + torque)
    return found
