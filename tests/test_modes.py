"""Forces along what a loop joint leaves free: their work, and motions with a closed form."""

import numpy as np
import pytest
from _mechanisms import random_mechanism, random_state
from numpy.testing import assert_allclose

import bulletbridge as bb
from bulletbridge.errors import ModelError
from bulletbridge.mechanism.kinematics import displace
from bulletbridge.mechanism.model import Joint, Link, Mechanism, empty_arrays
from bulletbridge.mechanism.records import FREE, PRISMATIC, REVOLUTE

SCREW = (0.0, 0.6, 0.8, 0.0, 0.03, 0.04)  # turns about its way: 0.05 m/rad
MASS, MOMENT = 3.0, 0.2  # [kg], [kg m²] of a ball
INERTIA = MOMENT + MASS * 0.05**2  # along the screw [kg m²]
KINDS = [FREE, REVOLUTE, PRISMATIC, FREE, REVOLUTE]


def ball_on(free, **options) -> bb.System:
    """A ball in free space whose centre is joined to the world by a general joint."""
    bodies, axes = empty_arrays(2, 6)
    bodies[1]["joint"], bodies[1]["axis"], bodies[1]["R"] = FREE, 5, np.eye(3)
    bodies[1]["mass"], bodies[1]["J"] = MASS, MOMENT * np.eye(3)
    axes["body"], axes["below"], axes["q"] = 1, np.arange(-1, 5), -1
    links = {n: Link(n, k, np.eye(3), np.zeros(3)) for k, n in enumerate(("world", "ball"))}
    joints = {"ball": Joint("ball", "free", slice(0, 7), slice(0, 6))}
    mechanism = Mechanism(bodies, axes, links, joints, np.zeros(3))
    joint = bb.LoopJoint(
        "joint", bb.JointModel.GENERAL, bb.Frame("world"), bb.Frame("ball"), free=free
    )
    return bb.System(mechanism, [joint], **options)


def joined(model, seed, **more) -> bb.System:
    """Two robots joined at a random moving state."""
    rng = np.random.default_rng(seed)
    mechanism = random_mechanism(rng, KINDS, branching=0.0)
    system = bb.System(mechanism)
    system.set_state(*random_state(rng, mechanism))
    a, b = bb.Frame("link3", (0.1, -0.2, 0.3), (0.3, -0.5, 0.7)), bb.Frame("link5")
    system.connect(bb.LoopJoint("joint", bb.JointModel(model), a, b, **more), as_is=True)
    return system


@pytest.mark.parametrize(
    ("model", "more"),
    [
        ("revolute", {"axis": (0.3, -0.5, 0.8)}),
        ("cylindrical", {}),
        ("planar", {"axis": (0.3, -0.5, 0.8)}),
        ("screw", {"pitch": 0.4}),
        ("general", {"free": (SCREW, (0, 0, 0, 1, 2, 0), (0, 0, 0, 1, 0, 0))}),
    ],
)
def test_positions_rates_and_power_belong_together(model, more):
    system = joined(model, 1, **more)
    modes, q, v, h = system.loop_axes("joint"), system.q, system.v, 1e-6
    assert_allclose(modes.position, 0.0, atol=1e-13)
    ends = []
    for step in (-h, h):
        there = np.empty_like(q)
        displace(system.mechanism.bodies, q, v, step, there)
        seen = bb.System(system.mechanism, system.constraints)
        seen._active.full.q[:], seen._active.full.v[:] = there, v
        ends.append(seen.loop_axes("joint").position)
    # off the constraints by h²; differences of second order
    assert_allclose((ends[1] - ends[0]) / (2 * h), modes.rate, atol=1e-8)
    force = np.arange(1.0, len(modes.rate) + 1)
    assert_allclose(v @ (modes.jacobian.T @ force), force @ modes.rate, rtol=1e-12)


def test_rates_are_the_motion_that_is_left():
    """The twist of b in a is made of the free twists times their rates, and nothing else."""
    free = (SCREW, (0, 0, 0, 1, 2, 0))
    system = joined("general", 2, free=free)
    joint = system.constraints[0]
    a, b = (system.kinematics().point(frame) for frame in (joint.a, joint.b))
    w_a, w_b = a.J_angular @ system.v, b.J_angular @ system.v
    linear = b.J @ system.v - a.J @ system.v - np.cross(w_a, b.p_W - a.p_W)
    twist = np.concatenate([a.R_W.T @ (w_b - w_a), a.R_W.T @ linear])
    assert_allclose(np.transpose(free) @ system.loop_axes("joint").rate, twist, atol=1e-12)


def test_a_constant_force_along_a_screw_accelerates_its_inertia():
    system = ball_on((SCREW,))
    system.assemble()
    system.tau[:] = system.loop_axes("joint").jacobian.T @ [0.7]
    vdot = system.acceleration()
    assert_allclose(vdot, 0.7 / INERTIA * np.array(SCREW), atol=1e-14)


def test_a_spring_along_a_screw_swings_at_its_frequency_and_a_damper_stops_it():
    """Forces held for a step h of semi-implicit Euler: phase error (w h)³ / 24 a step."""
    stiffness, h = 5.0, 4e-3
    system = ball_on((SCREW,), dt=h, integrator="semi_implicit_euler")
    system.assemble()
    start = 0.4
    system.set_state(v=start * np.array(SCREW))
    w, path = np.sqrt(stiffness / INERTIA), []
    for _ in range(500):
        modes = system.loop_axes("joint")
        path.append(modes.position[0])
        system.tau[:] = modes.jacobian.T @ (-stiffness * modes.position)
        system.step()
    times = h * np.arange(500)
    # the first step's velocity counts for all of it: w h / 2 in phase at most
    assert_allclose(path, start / w * np.sin(w * times), atol=start / w * (w * h))
    assert system.evaluate().largest("metres") < 1e-13
    for _ in range(750):
        modes = system.loop_axes("joint")
        system.tau[:] = modes.jacobian.T @ (-stiffness * modes.position - 2.0 * modes.rate)
        system.step()
    assert abs(system.loop_axes("joint").position[0]) < 1e-3 * start / w


def test_joints_without_constant_free_motions_are_refused():
    system = ball_on((SCREW,))
    with pytest.raises(ModelError, match="unknown loop joint 'jnt'; there are: joint"):
        system.loop_axes("jnt")
    rng = np.random.default_rng(0)
    mechanism = random_mechanism(rng, KINDS, branching=0.0)
    ends = bb.Frame("link3"), bb.Frame("link5")
    turning = bb.Motion(angle=bb.Sine(1.0, 1.0))
    universal = bb.LoopJoint("u", bb.JointModel.UNIVERSAL, *ends, (1, 0, 0), (0, 1, 0))
    driven = bb.LoopJoint("d", bb.JointModel.REVOLUTE, *ends, motion=turning)
    with pytest.raises(ModelError, match="'u' are not constant in frame a: it is universal"):
        bb.System(mechanism, [universal]).loop_axes("u")
    with pytest.raises(ModelError, match="'d' are not constant in frame a: it is driven"):
        bb.System(mechanism, [driven]).loop_axes("d")
