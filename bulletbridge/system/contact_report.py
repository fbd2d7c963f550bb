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
from bulletbridge.inequalities.contact_rows import put_contact_loads
from bulletbridge.inequalities.impulse_step import STICKING
from bulletbridge.inequalities.motors import Motors
from bulletbridge.inequalities.stepper import InequalityStepper
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.numerics.records import Array, Ints
from bulletbridge.system.evaluation import Reaction, reactions

State = Literal["open", "sticking", "sliding", "held"]


@dataclass(frozen=True)
class ContactLoad:
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
    state: State

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


def contacts_of(step: InequalityStepper, mechanism: Mechanism) -> tuple[ContactLoad, ...]:
    """All contacts of the last step."""
    found, names, dt = list[ContactLoad](), mechanism.first_links, step.dt
    moving = np.zeros(step.C.shape[2])
    if step.report[APART]:
        moving = step.impulses[MOVING, : len(moving)]

    def tell(point: np.void, gained: float, load: Array, state: State) -> None:
        moment, force = np.split(load, 2)
        found.append(
            ContactLoad(
                names[int(point["body_a"])],
                names[int(point["body_b"])],
                point["position"].copy(),
                point["normal"].copy(),
                float(point["gap"] + dt * gained),
                float(point["gap"]),
                force,
                moment,
                state,
            )
        )

    for point in step.held_points:
        tell(point, 0.0, np.zeros(6), "held")
    each = zip(step.contact_points, contact_states(step), contact_loads(step), strict=True)
    for number, (point, state, load) in enumerate(each):
        tell(point, step.gained(number, moving), load, state)
    return tuple(found)


def contact_states(step: InequalityStepper) -> list[State]:
    """How each contact of the last step acted in it."""
    points, x = step.contact_points, step.impulses[X]
    normals, k = (step.contact_rows[name][: len(points)] for name in ("normal", "tangents"))
    semi = np.stack([points["friction"], points["friction_across"]], axis=1)
    rubs = (k[:, None] >= 0) & (semi > 0.0)
    used = np.divide(x[k[:, None] + np.arange(2)], semi, out=np.zeros(semi.shape), where=rubs)
    slides = np.linalg.norm(used, axis=1) >= STICKING * x[normals]
    held, opened = ~(step.D[0, normals, normals] > 0.0), ~(x[normals] > 0.0)
    states: list[State] = ["held", "open", "sliding", "sticking"]
    kinds = np.where(held, 0, np.where(opened, 1, np.where(slides, 2, 3)))
    return [states[kind] for kind in kinds.tolist()]


def contact_loads(step: InequalityStepper) -> Array:
    """Moments [N m] and forces [N] of the contacts of the last step (n, 6) on b, world axes."""
    points = step.contact_points
    loads = np.zeros((len(points), 6))
    put_contact_loads(points, step.contact_rows, step.impulses[X], step.dt, loads)
    return loads


def net_contact_forces(step: InequalityStepper, bodies: Ints) -> Array:
    """Sum of the contact forces (n, 3) [N] on bodies (n,) in the last step, world axes."""
    total = np.zeros((len(bodies), 3))
    for point, load in zip(step.contact_points, contact_loads(step), strict=True):
        total[bodies == point["body_b"]] += load[3:]
        total[bodies == point["body_a"]] -= load[3:]
    return total


def joint_loads(step: InequalityStepper, motors: Motors) -> dict[str, JointLoad]:
    """Motor, friction and limit of every joint that can have them."""
    x, dt = step.impulses[X], step.dt
    limits: dict[int, float] = {}
    for stop in step.joint_limits:
        if stop["row"] >= 0:
            axis = int(stop["axis"])
            limits[axis] = limits.get(axis, 0.0) + float(x[stop["row"]]) / dt
    exerted = motors.names, motors.forces.tolist(), motors.frictions.tolist()
    found = {
        name: JointLoad(motor, friction, limits.get(motors.axis(name), 0.0) if limits else 0.0)
        for name, motor, friction in zip(*exerted, strict=True)
    }
    loop_axes = step.inequalities.loop_axes
    for n, name in list(enumerate(loop_axes.encoded.rows))[len(loop_axes.names) :]:
        found[name] = JointLoad(0.0, 0.0, limits.get(-1 - n, 0.0))  # on the turn of a ball
    return found


class Loaded(NamedTuple):
    """The equations of motion at the start of a step, with all that acted by inequalities in it."""

    state: tuple[Array, Array, float]  # q, v and t
    terms: Terms  # there
    vdot: Array  # (nv,) accelerations
    tau: Array  # (nv,) forces on the rates, those of inequalities included
    split: Split | None = None  # velocity space there; None where only accelerations were asked for


def loaded_forces(step: InequalityStepper, v: Array) -> Array:
    """Forces (nv,) on the rates in the last step, which began with rates v (nv,) [N m or N].

    Those of dampers come on top; they act by the end's rates, and are made up for.
    """
    pushed = step.impulses[X, : int(step.report[ROWS])] @ step.rows / step.dt
    return step.tau + pushed + step.solver.axes["damping"] * (v - step.solver.v)


def loaded_motion(step: InequalityStepper) -> Loaded:
    """How the last step moved its system from its start on: the mean over the step.

    Rows are those that its velocities obeyed, weak ones too.
    """
    solver = step.solver
    q, v, t = step.start
    tau = loaded_forces(step, v)
    terms = solver.terms(q, v, t)
    split = split_here(solver, terms, float(solver.control[0]["filter_rtol"]))
    vdot, _ = split.nearest(split.whiten_force(tau + terms.forces - terms.h), terms.gamma)
    return Loaded(step.start, terms, vdot, tau, split)


def closing_impulse(step: InequalityStepper) -> Array:
    """Impulse (nv,) of the last step that neither its forces nor the reactions at its start have.

    It is what closed the loops at the step's end while contacts stuck, and what the energy budget
    took.
    """
    loaded = loaded_motion(step)
    v = loaded.state[1]
    change = step.solver.v - v - step.dt * loaded.vdot
    return np.asarray(loaded.terms.M @ change, np.float64)


def loaded_reactions(
    step: InequalityStepper, redundancy: Mapping[str, Redundancy]
) -> dict[str, Reaction]:
    """Reactions of all constraints with the forces within bounds of the last step, at its start."""
    (_, _, t), terms, vdot, tau, split = loaded_motion(step)
    found = reactions(step.solver, redundancy, terms, t, vdot, tau, split)
    found |= _force_limit_reactions(step, terms.poses, t)
    for name, more in _of_loop_axes(step, terms.poses, t).items():
        loop = name if name in found else name.rpartition("/")[0]
        old = found.get(loop)
        if old is None:  # a spring's, between whose frames nothing else is closed
            found[name] = more
        else:
            force, torque = old.force + more.force, old.torque + more.torque
            found[loop] = replace(old, force=force, torque=torque)
    return found


def bounded_reactions(step: InequalityStepper, poses: np.ndarray, t: float) -> dict[str, Reaction]:
    """What acts within bounds at frames of loops, by constraint, or by its free motion."""
    return _force_limit_reactions(step, poses, t) | _of_loop_axes(step, poses, t)


def _force_limit_reactions(
    step: InequalityStepper, poses: np.ndarray, t: float
) -> dict[str, Reaction]:
    """Reactions of the constraints with a force limit."""
    force_limited, first = step.inequalities.force_limited, int(step.report[WITH_FRICTION])
    lam = step.impulses[X, first : first + force_limited.nc] / step.dt
    found: dict[str, Reaction] = {}
    for index, (name, part) in enumerate(force_limited.rows.items()):
        if step.inequalities.force_limits[index]["holds"]:
            continue  # among the rigid ones
        point, force, torque = np.zeros((3, 3))
        if index < len(force_limited.loops):
            point, rows = step.solver.wrench_rows(poses, index, t, force_limited)
            if step.inequalities.force_limits[index]["loop"] >= 0:
                rows[:3] = rows[:3, 3:].T @ rows[:3]
            torque, force = np.split(lam[part] @ rows, 2)
        found[name] = Reaction(name, point, force, torque, lam[part], True)
    return found


def _of_loop_axes(step: InequalityStepper, poses: np.ndarray, t: float) -> dict[str, Reaction]:
    """What acts along the free motions of loops."""
    guided: Encoded = step.inequalities.loop_axes.encoded
    found: dict[str, Reaction] = {}
    for index, name in enumerate(step.inequalities.loop_axes.names):
        records = [r for table in (step.motor_rows, step.joint_limits) for r in table]
        impulse = sum(
            float(step.impulses[X, r["row"]])
            for r in records
            if r["axis"] == -1 - index and r["row"] >= 0
        )
        stretches = np.flatnonzero(guided.loops["row"] == index)
        if not len(stretches):
            continue  # a tendon's, which acts on joints and at no frame
        point, rows = step.solver.wrench_rows(poses, int(stretches[-1]), t, guided)
        torque, force = np.split(impulse / step.dt * rows[0], 2)
        found[name] = Reaction(name, point, force, torque, np.array([impulse / step.dt]), True)
    return found
