"""Ideal contacts as constraints: rolling, soft fingers, points on surfaces."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from support.small_trees import GRAVITY, free_body, slider

import bulletbridge as bb

BODY, WORLD = bb.Frame("body"), bb.Frame("world")
SLOPE, RADIUS = 0.3, 0.2
TILTED = (GRAVITY * np.sin(SLOPE), 0.0, -GRAVITY * np.cos(SLOPE))


def rolling(moment, model=bb.JointModel.ROLLING, **options):
    """A ball of 1 kg on a plane, in axes of the slope."""
    mechanism = free_body(1.0, (moment,) * 3, TILTED)
    joint = bb.LoopJoint("floor", model, WORLD, BODY, radius=RADIUS)
    system = bb.System(mechanism, [joint], **options)
    system.set_state(q=np.array([0, 0, RADIUS, 0, 0, 0, 1.0]))
    return system


@pytest.mark.parametrize(("share", "factor"), [(2 / 5, 5 / 7), (1 / 2, 2 / 3), (1.0, 1 / 2)])
def test_balls_and_hoops_roll_down_a_slope(share, factor):
    """Moment of inertia share m r²: acceleration g sin / (1 + share), on the plane for 10 s."""
    system = rolling(share * RADIUS**2, integrator="rk4", dt=0.01)
    acceleration = factor * GRAVITY * np.sin(SLOPE)
    assert_allclose(system.acceleration()[3], acceleration, rtol=1e-13)
    system.rollout(1000)
    assert_allclose(system.v[3], acceleration * 10, rtol=1e-11)
    assert_allclose(system.q[0], acceleration * 50, rtol=1e-11)
    assert system.evaluate().largest("metres") < 1e-12
    assert system.evaluate().largest("rate_metres") < 1e-12
    reaction = system.reactions()["floor"]
    assert_allclose(reaction.force[2], GRAVITY * np.cos(SLOPE), rtol=1e-12)
    # inertias are about the world's origin: m x² of 100 m beside share m r², rounded when it is
    # summed, moved and factorised
    rounding = 4 * np.finfo(float).eps * system.q[0] ** 2 / (share * RADIUS**2)
    expected = -(1 - factor) * GRAVITY * np.sin(SLOPE)
    assert_allclose(reaction.force[0], expected, rtol=rounding)


def test_a_ball_that_spins_keeps_its_spin_unless_it_is_held():
    """About the normal a ball rolls freely; pure rolling takes that away."""
    free, held = (
        rolling(0.02, model) for model in (bb.JointModel.ROLLING, bb.JointModel.PURE_ROLLING)
    )
    for system, spin in ((free, 3.0), (held, 0.0)):
        system.set_state(v=np.array([0.5, -0.3, 3.0, 0, 0, 0]))
        system.rollout(100)
        assert_allclose(system.v[2], spin, atol=1e-12)
        slip = system.v[3:5] - RADIUS * np.array([system.v[1], -system.v[0]])
        assert_allclose(slip, 0, atol=1e-13)
    assert free.dof == 3 and held.dof == 2


def test_a_correction_rolls_and_does_not_slip():
    """A closed path of the centre turns a ball: the rows of slip hold no position."""
    mechanism = free_body(1.0, (0.02,) * 3, (0, 0, 0))
    joint = bb.LoopJoint("floor", bb.JointModel.PURE_ROLLING, WORLD, BODY, radius=RADIUS)
    path = bb.Motion(x=bb.Sine(0.3, 1.0), y=bb.Sine(0.3, 1.0, np.pi / 2, -0.3))
    driver = bb.LoopJoint(
        "lead", bb.JointModel.BALL, bb.Frame("world", (0, 0, RADIUS)), BODY, motion=path
    )
    system = bb.System(mechanism, [joint, driver], integrator="rk4", dt=1e-3, allow_structure=True)
    system.assemble({"base": [0, 0, RADIUS, 0, 0, 0, 1]})
    system.rollout(1000)
    assert_allclose(system.q[:3], [0, 0, RADIUS], atol=1e-12)
    # one turn along a circle of radius c: in axes that turn with the path the ball turns about
    # (0, c/r, 1) Ω, and these axes turn back by one turn, so the turn has the angle 2 pi |axis|
    angle = 2 * np.pi * np.hypot(1.0, 0.3 / RADIUS)
    assert_allclose(abs(system.q[6]), abs(np.cos(angle / 2)), atol=1e-8)
    assert system.evaluate().largest("rate_metres") < 1e-12


def test_a_soft_finger_transmits_spin_and_a_hard_point_does_not():
    """A body on a point is spun by a torque about the normal, or held against it."""
    mechanism = free_body(1.0, (0.1, 0.2, 0.3), (0, 0, 0))
    torque = np.array([0.0, 0.0, 0.6, 0, 0, 0])
    found = {}
    for model in (bb.JointModel.BALL, bb.JointModel.SOFT_FINGER):
        system = bb.System(mechanism, [bb.LoopJoint("tip", model, WORLD, BODY)])
        system.assemble()
        system.tau[:] = torque
        found[model] = system.acceleration()[2], system.reactions()["tip"].torque[2]
    assert_allclose(found[bb.JointModel.BALL], (2.0, 0.0), atol=1e-12)
    assert_allclose(found[bb.JointModel.SOFT_FINGER], (0.0, -0.6), atol=1e-12)


def test_a_soft_finger_lets_a_body_roll_about_the_tangents():
    """Turning about x and y is free while spin about the normal of a is held at every attitude."""
    mechanism = free_body(1.0, (0.1, 0.2, 0.3), (0, 0, 0))
    finger = bb.LoopJoint("tip", bb.JointModel.SOFT_FINGER, WORLD, BODY)
    system = bb.System(mechanism, [finger], integrator="rk4", dt=1e-3)
    system.set_state(v=np.array([2.0, 1.0, 0.0, 0, 0, 0]))
    energy = system.evaluate().kinetic
    system.rollout(2000)
    assert abs(system.v[2]) < 1e-12 and np.linalg.norm(system.v[:2]) > 1.0
    assert_allclose(system.evaluate().kinetic, energy, rtol=1e-9)
    assert system.dof == 2


@pytest.mark.parametrize("model", ["point_on_sphere", "point_on_cylinder"])
def test_a_point_on_a_surface_is_a_pendulum(model):
    """On a sphere as on a rod of its radius; on a cylinder about y a pendulum that slides along."""
    joint = bb.LoopJoint(
        "surface", bb.JointModel(model), WORLD, BODY, axis=(0.0, 1.0, 0.0), radius=0.7
    )
    rod = bb.Distance("surface", WORLD, BODY, 0.7)
    ends = []
    for constraint in (joint, rod):
        system = bb.System(slider("xyz"), [constraint], integrator="rk4", dt=2e-3)
        moving = (
            np.array([0.0, 0.4, 0.0]) if model == "point_on_cylinder" else np.array([0.3, 0.4, 0])
        )
        if constraint is rod and model == "point_on_cylinder":
            system = bb.System(slider("xz"), [constraint], integrator="rk4", dt=2e-3)
            system.assemble({"x": 0.42, "z": -0.56})
        else:
            system.set_state(q=np.array([0.42, 0.0, -0.56]), v=moving)
        system.rollout(1000)
        assert system.evaluate().largest("metres") < 1e-13
        ends.append(system)
    if model == "point_on_cylinder":
        assert_allclose(ends[0].q[[0, 2]], ends[1].q, atol=1e-11)
        assert_allclose(ends[0].q[1], 0.8, atol=1e-12)
    else:
        assert_allclose(ends[0].q, ends[1].q, atol=1e-12)
        assert_allclose(ends[0].v, ends[1].v, atol=1e-12)


def test_a_wheel_of_a_planar_mechanism_drops_the_row_that_nothing_moves():
    """Slip across the plane of motion is redundant, and no positions mix into it."""
    mechanism = slider("xz", 1.0, 0.5 * RADIUS**2, TILTED)
    joint = bb.LoopJoint("floor", bb.JointModel.ROLLING, WORLD, BODY, radius=RADIUS)
    system = bb.System(mechanism, [joint], integrator="rk4", dt=0.01)
    system.set_state(q=np.array([0, RADIUS, 0.0]))
    assert (system.decision.by_name["floor"].kept, system.dof) == (2, 1)
    system.rollout(100)
    assert_allclose(system.v[0], 2 / 3 * GRAVITY * np.sin(SLOPE), rtol=1e-12)
    assert_allclose(system.q[0], RADIUS * system.q[2], rtol=1e-12)
    assert abs(system.q[1] - RADIUS) < 1e-13
