"""Calls every kernel, as programs do, so that it is known for which arguments each is compiled.

``make_objects.py`` makes machine code of what numba has compiled in this process, and refuses to
where a kernel of the package was never called.
"""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pybullet
import pybullet_data

import bulletbridge as bb
from bulletbridge.constraints.force_element_records import encode_closed
from bulletbridge.constraints.left_out import find_widest
from bulletbridge.control.free_motion import FreeMotion
from bulletbridge.engine.records import CONTROL
from bulletbridge.engine.springs import compliance
from bulletbridge.engine.stepper import Solver
from bulletbridge.formulations.charts import ChartMotion
from bulletbridge.formulations.classics import slider_crank, top
from bulletbridge.formulations.classics.slider_crank import SliderCrank
from bulletbridge.formulations.classics.top import Top
from bulletbridge.formulations.quasi_velocities import square_root
from bulletbridge.inequalities.contact_rows import tangents
from bulletbridge.inequalities.contact_variations import ContactVariations, Finding
from bulletbridge.inequalities.loose_bodies import put_rows_on_bodies
from bulletbridge.inequalities.steps_kernel import keep_state
from bulletbridge.mechanism.beams import FlexibleBeam
from bulletbridge.mechanism.build import Load, empty_mechanism, with_beam, with_joint
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.mechanism.records import CONTACT_POINT
from bulletbridge.models.flexible.linearised import linearised
from bulletbridge.numerics.complementarity import natural_residual
from bulletbridge.numerics.complementarity_rows import ROW_BOUNDS, room_for
from bulletbridge.numerics.projection import ROW, share_out
from bulletbridge.numerics.solution_selection import LINES_OF_SELECTION, solve_resting_problem
from bulletbridge.system.ahead import solver_of_a_hinge
from bulletbridge.system.derivatives import contact_rows_of

STEPS = 3


def four_bar(**options: object) -> bb.System:
    """The bundled four-bar, assembled."""
    return bb.load("four_bar", **options).system


def integrators() -> None:
    """Every compiled integrator, in every way of stepping, and rollouts of them."""
    for solver in ("dense", "sparse", "islands"):
        for integrator in ("semi_implicit_euler", "verlet", "rk4", "dop853", "radau", "charts"):
            system = four_bar(solver=solver, integrator=integrator)
            for _ in range(STEPS):
                system.step()
            system.run(STEPS * system.dt)
            bb.rollout(system, system.q[None], system.v[None], steps=STEPS)
            system.evaluate()
            system.reactions()
    surface = bb.LoopJoint("slide", bb.JointModel.PLANAR, bb.Frame("world"), bb.Frame("link"))
    rubs = bb.sliding(bb.Friction(surface, 0.1))
    bb.System(hung(empty_mechanism(), "link"), [surface], formulation=rubs).step()
    for metric in ("condensed", "mass"):
        four_bar(weighting=metric).step()
    four_bar(weighting="condensed", integrator="nystrom4").step()
    for integrator in ("semi_implicit_euler", "rk4", "dop853"):
        legs = bb.load("stewart", "new", solver="clusters", integrator=integrator).system
        legs.step()
        legs.run(STEPS * legs.dt)
    bb.load("stewart", "new", solver="clusters", limits="always").system.step()


def derivatives() -> None:
    """Derivatives of accelerations, multipliers, steps and trajectories, of a floating base too."""
    four_bar().derivatives(["crank.mass"])
    system = bb.load("minitaur", "new").system
    system.step_derivatives()
    nv = system.mechanism.nv
    cost = bb.QuadraticCost(system.mechanism, system.q, Q=np.ones(2 * nv))
    bb.rollout_gradient(system, np.zeros((STEPS, nv)), cost, cost)
    joints = system.mechanism.joints
    system.motors.set(next(n for n in joints if joints[n].is_single), velocity=1.0, force=2.0)
    bb.rollout_gradient(system, np.zeros((STEPS, nv)), cost, cost)


def formulations() -> None:
    """Steps in Python, whose terms are compiled."""
    for name in ("projector", "quasi_velocities", "modular"):
        four_bar(formulation=name, integrator="rk4").step()
    four_bar(formulation="quasi_velocities", integrator="dop853", rtol=1e-8).step()
    four_bar(integrator="rk4_quasi_velocities").step()
    square_root(np.eye(3))
    for body, start in ((Top(), top.start(0.1, 9.0)), (SliderCrank(), slider_crank.start(1))):
        ChartMotion(body, *start).step(1e-3)
        asked = SimpleNamespace(nq=body.nq, nv=body.nv, equations=body.equations)
        ChartMotion(asked, *start).step(1e-3)
    wind = bb.Wrench(bb.Frame("coupler"), lambda t, q, v, frame: -frame.velocity)
    four_bar(forces={"wind": wind}).applied_power()


def control() -> None:
    """A law whose rates are by recursion, and velocity space split by equations that are given."""
    system = four_bar()
    still = np.zeros(system.mechanism.nv)
    wanted = bb.Desired(system.q, still, still)
    law = bb.Tracking(bb.plant_of(system), lambda t: wanted, 5.0, 5.0, law="published")
    law(system.q, system.v, system.t)
    FreeMotion.of(law.plant.dynamics.equations(system.q, system.v, system.t))


def contacts() -> None:
    """Motors, limits and contacts; a spring and what it does."""
    system = four_bar(contacts=True, limits=True)
    system.motors.set("crank", velocity=1.0)
    for _ in range(STEPS):
        system.step()
    system.contacts()
    system.rollout(STEPS)
    system = four_bar(limits="always")
    system.rollout(STEPS)
    stopped = hung(empty_mechanism(), "link")
    joint = replace(stopped.joints["link_hinge"], lower=0.0, upper=1.0)
    system = bb.System(replace(stopped, joints={joint.name: joint}), limits=True)
    system.tau = np.array([-1.0])
    for _ in range(STEPS):
        system.step()
    client = pybullet.connect(pybullet.DIRECT)
    ball = pybullet.createCollisionShape(pybullet.GEOM_SPHERE, radius=0.1, physicsClientId=client)
    body = pybullet.createMultiBody(1.0, ball, physicsClientId=client)
    pin = bb.LoopJoint("pin", bb.JointModel.BALL, bb.Frame("link0"), bb.Frame("world"))
    system = bb.attach({"ball": body}, [pin], client, contacts=True, solver="sparse")
    system.rollout(STEPS)
    system = bb.attach({"ball": body}, (), client, contacts=True)
    bb.rollout_gradient(system, np.zeros((STEPS, 6)))
    plane = pybullet.createCollisionShape(pybullet.GEOM_PLANE, physicsClientId=client)
    pybullet.createMultiBody(0.0, plane, -1, [0.0, 0.0, -0.1], physicsClientId=client)
    pybullet.changeDynamics(body, -1, lateralFriction=2.0, physicsClientId=client)
    away = (0.5, 0.0, -0.1)
    swing = bb.LoopJoint(
        "swing", bb.JointModel.BALL, bb.Frame("link0", away), bb.Frame("world", away)
    )
    system = bb.attach({"ball": body}, [swing], client, contacts=True)
    system.set_state(v=[0.0, -0.02, 0.0, -0.002, 0.0, -0.01])  # it lands, and sticks
    system.step_derivatives()
    system.step_derivatives(smoothing=1e-3)
    rare(system.dynamics.solver)
    sunk = bb.attach({"ball": body}, (), client, contacts=True)
    sunk.set_state([0.0, 0.0, -1e-3, 0.0, 0.0, 0.0, 1.0], [0.0, 0.0, 0.0, 0.0, 0.0, -0.1])
    sunk.step_derivatives()
    pybullet.disconnect(client)
    keep_state(np.zeros((1, 10)), 1, 1, np.zeros(7), np.zeros(1, CONTROL))
    tangents((0.0, 0.0, 1.0), (1.0, 0.0, 0.0))
    share_out(np.eye(2), np.eye(2), np.zeros(2, ROW), np.ones(2), 1, 1e-10, np.zeros((3, 2)))


def rare(solver: Solver) -> None:
    """Contacts that Bullet tells alone, and of bodies by themselves."""
    q, v, points = solver.q, solver.v, np.zeros(0, CONTACT_POINT)
    finding = Finding(lambda _: points, None, v, 1e-3)
    ContactVariations(contact_rows_of(solver), finding, q, points, np.zeros(0, bool))
    bodies, nv = solver.mechanism.bodies, len(v)
    put_rows_on_bodies(bodies, np.zeros((1, 2), int), np.zeros((1, 2, 6)), 0, np.zeros((1, nv)))


def hung(mechanism: Mechanism, name: str) -> Mechanism:
    """A link more, on a hinge of its own."""
    load = Load(1.0, inertia=(1.0, 1.0, 1.0))
    return with_joint(mechanism, f"{name}_hinge", "revolute", name, load=load)


def springs() -> None:
    """A spring between links."""
    spring = bb.Spring("spring", bb.Frame("link", (1.0, 0.0, 0.0)), bb.Frame("world"), 10.0)
    system = bb.System(hung(empty_mechanism(), "link"), [spring])
    system.step()
    system.spring_forces()
    system.joint_reactions()
    solver = Solver(system.mechanism, encode_closed(system.mechanism, [spring]), bb.Tolerances())
    compliance(solver, solver.terms(solver.q, solver.v, 0.0), 1.0, 1.0)


def islands() -> None:
    """Two links that nothing joins, each in a loop of its own."""
    mechanism, pins = empty_mechanism(), list[bb.LoopJoint]()
    for name in ("one", "other"):
        mechanism = hung(mechanism, name)
        pins.append(bb.LoopJoint(name, bb.JointModel.REVOLUTE, bb.Frame(name), bb.Frame("world")))
    for integrator in ("semi_implicit_euler", "rk4"):
        system = bb.System(mechanism, pins, solver="islands", integrator=integrator)
        for _ in range(STEPS):
            system.step()
        system.run(STEPS * system.dt)
    system = bb.System(mechanism, pins, solver="islands", limits="always")
    for _ in range(STEPS):
        system.step()


def filters() -> None:
    """The drop-in in both modes, with a moving frame, and filters link by link."""
    for mode in ("filter", "exact"):
        client = bb.BulletClient(pybullet.DIRECT, mode=mode)
        client.setAdditionalSearchPath(pybullet_data.getDataPath())
        body = client.loadURDF("r2d2.urdf")
        fixed = client.createConstraint(
            body, -1, -1, -1, pybullet.JOINT_FIXED, [0, 0, 0], [0, 0, 0], [0, 0, 0.5]
        )
        for k in range(STEPS):
            client.changeConstraint(fixed, [0.0, 0.001 * k, 0.5])
            client.stepSimulation()
        client.disconnect()
    carry()
    for solver in ("dense", "sparse"):
        system = four_bar(solver=solver)
        system.step()
        system.filter()


def carry() -> None:
    """A held plate in filter mode with a body on it."""
    client = bb.BulletClient(pybullet.DIRECT, mode="filter")
    client.setGravity(0, 0, -9.81)
    shape = client.createCollisionShape(pybullet.GEOM_BOX, halfExtents=[0.1, 0.1, 0.1])
    plate, _ = (client.createMultiBody(1.0, shape, -1, [0, 0, z]) for z in (0.0, 0.2))
    ends = [0, 0, 0], [0, 0, 0], [0, 0, 0]
    client.createConstraint(plate, -1, -1, -1, pybullet.JOINT_FIXED, *ends)
    for _ in range(STEPS):
        client.stepSimulation()
    client.disconnect()


def beams() -> None:
    """Linearised equations of a link that bends."""
    mechanism = hung(empty_mechanism(), "arm")
    beam = FlexibleBeam(0.8, 3.0, 0.4, modes=2)
    mechanism = with_beam(mechanism, "bend", beam, "tip", "arm")
    bb.System(mechanism, formulation=linearised("consistent"), integrator="rk4").step()


def problems() -> None:
    """Impulses of ideal contacts."""
    D, b, x, w = np.eye(1), -np.ones(1), np.zeros(1), np.zeros(1)
    bounds = np.zeros(1, ROW_BOUNDS)
    bounds["upper"], bounds["owner"] = np.inf, -1
    room = room_for(1, LINES_OF_SELECTION)
    solve_resting_problem(D, b, bounds, x, w, room, 1e-12)
    natural_residual(D, b, bounds, x, w)


def widest() -> None:
    """What a step that fails says of the loop that opened."""
    solver = solver_of_a_hinge()
    e = solver.encoded
    find_widest(e.loops, solver.poses, e.targets(np.zeros(1))[0])


EVERYTHING = (
    integrators,
    derivatives,
    formulations,
    control,
    contacts,
    springs,
    islands,
    filters,
    beams,
    problems,
    widest,
)


def main() -> None:
    """Call all kernels."""
    pybullet.connect(pybullet.DIRECT)
    for part in EVERYTHING:
        part()
        pybullet.resetSimulation()
    pybullet.disconnect()
