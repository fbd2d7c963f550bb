"""Robots that are far from where the world begins move as they do there."""

import numpy as np
import pytest
from _mechanisms import random_mechanism, random_state
from numpy.testing import assert_allclose
from support.far_places import EPS, FAR, far_away

import bulletbridge as bb
from bulletbridge.mechanism.records import FREE, PRISMATIC, REVOLUTE, SPHERICAL

SAME = 1e-12  # of sums of a few dozen products, divided by well-conditioned masses
STEPS = 50


def loop(mechanism, q, v):
    """A ball from the third link to the last, closed at a state."""
    bare = bb.System(mechanism)
    bare.set_state(q, v)
    a = bb.Frame("link3", (0.1, 0.2, -0.1))
    first, last = (bare.kinematics().point(frame) for frame in (a, bb.Frame("link6")))
    b = bb.Frame("link6", tuple(last.R_W.T @ (first.p_W - last.p_W)))
    return bb.LoopJoint("tip", bb.JointModel.BALL, a, b)


def closed(constraint, mechanism, q, v):
    """The system with a loop, a step later: its rates are consistent then."""
    system = bb.System(mechanism, [constraint], dt=1e-3, integrator="verlet")
    system.set_state(q, v)
    system.step()
    return system


def centre_and_momentum(system):
    """Centre of mass, and the angular momentum about it."""
    poses, total = system.terms().poses, system.evaluate().momentum
    m = poses["m"].sum()
    centre = (poses["mc"] + poses["m"][:, None] * poses["origin"]).sum(axis=0) / m
    return centre, total[:3] - np.cross(centre, total[3:]), m


@pytest.mark.parametrize("root", [FREE, PRISMATIC, REVOLUTE])
def test_a_robot_is_as_exact_as_at_the_origin(root):
    """Accelerations, reactions and energy of motion; what it turns by about its own centre."""
    rng = np.random.default_rng(root)
    kinds = [root, PRISMATIC if root == PRISMATIC else REVOLUTE, REVOLUTE, SPHERICAL]
    mechanism = random_mechanism(rng, [*kinds, REVOLUTE, REVOLUTE], branching=0.0)
    q, v = random_state(rng, mechanism)
    ball = loop(mechanism, q, v)
    systems = closed(ball, mechanism, q, v), closed(ball, *far_away(mechanism, q), v)
    near, far = systems
    for _ in range(2):
        assert_allclose(far.acceleration(), near.acceleration(), rtol=SAME, atol=SAME)
        here, there = (s.reactions()["tip"] for s in systems)
        assert_allclose(there.force, here.force, atol=SAME * np.abs(here.force).max())
        assert_allclose(there.point - FAR, here.point, atol=4 * EPS * np.linalg.norm(FAR))
        (c, turning, m), (c_far, turning_far, _) = map(centre_and_momentum, systems)
        fastest = np.abs(near.evaluate().momentum).max()
        assert_allclose(c_far - FAR, c, atol=8 * EPS * np.linalg.norm(FAR))
        assert_allclose(turning_far, turning, atol=16 * EPS * np.linalg.norm(FAR) * fastest)
        assert far.evaluate().kinetic == pytest.approx(near.evaluate().kinetic, rel=SAME)
        for system in systems:
            for _ in range(STEPS):
                system.step()
        assert far.evaluate().largest("metres") < 1e-13  # 450 EPS: six joints, a metre or two
        assert_allclose(far.v, near.v, rtol=1e-9, atol=1e-9)
