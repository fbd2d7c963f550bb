"""Filter mode at chains of hinges that are all but stretched, which turn far within a step."""

import math
import warnings

import numpy as np
import pybullet
import pytest
from support.bullet_worlds import momentum
from support.urdf_builder import inertial, joint, link, robot

from bulletbridge import BulletClient
from bulletbridge.drop_in.closing import Closing
from bulletbridge.errors import BulletBridgeWarning

LENGTH, MASS = 0.1, 0.1
ROUND_OFF = 1e-12


def chain(n, path):
    """Rods about y, in a row along x."""
    own = inertial(MASS, [MASS * LENGTH**2 / k for k in (100, 12, 12)], (LENGTH / 2, 0, 0))
    parts = [link("base")]
    for k in range(n):
        parent, place = (f"rod{k - 1}", (LENGTH, 0, 0)) if k else ("base", (0, 0, 0))
        hinge = joint(f"hinge{k}", "continuous", parent, f"rod{k}", place, axis="0 1 0")
        parts += [link(f"rod{k}", own), hinge]
    path.write_text(robot(*parts))
    return str(path)


def pinned_chain(n, short, folder):
    """A client with a chain that hangs by both ends, how many metres short of its reach."""
    p = BulletClient(pybullet.DIRECT)
    p.setGravity(0, 0, -9.81)
    body = p.loadURDF(chain(n, folder / "chain.urdf"), useFixedBase=True)
    for k in range(n):
        p.setJointMotorControl2(body, k, p.VELOCITY_CONTROL, force=0)
    pin = [LENGTH / 2, 0, 0], [n * LENGTH - short, 0, 0]
    p.createConstraint(body, n - 1, -1, -1, p.JOINT_POINT2POINT, [0, 0, 0], *pin)
    return p, body


def open_by(states, end):
    """How far the tip is from where it is held [m]."""
    turned = np.cumsum(states[:, 0])
    tip = LENGTH * np.array([np.cos(turned).sum(), np.sin(turned).sum()])
    return np.abs(tip - [end, 0]).max()


@pytest.mark.parametrize(("n", "short"), [(12, 1e-6), (40, 1e-4)])
def test_a_chain_whose_links_turn_further_than_its_loop_lets_them_stays_closed(n, short, tmp_path):
    """Warnings are errors: Bullet's own step opened it by 2 m, and its state stayed.

    A chain that is short of its reach by g leaves its links angles whose squares sum up to 2 g over
    their length: a hundredth of a radian. In a step of Bullet's they turn by a tenth.
    """
    p, body = pinned_chain(n, short, tmp_path)
    rates = []
    for _ in range(60):
        p.stepSimulation()
        states = np.array([state[:2] for state in p.getJointStates(body, range(n))])
        assert open_by(states, n * LENGTH - short) < ROUND_OFF
        rates.append(np.abs(states[:, 1]).max())
    assert max(rates) / 240 > np.sqrt(2 * short / LENGTH)  # it did turn that far
    p.disconnect()


@pytest.mark.parametrize("n", [12, 40])
def test_a_chain_of_exactly_its_reach_stays_closed_and_says_what_became_of_its_rates(n, tmp_path):
    """It cannot move; its rows allow all rates across it. It opened by up to 1.6 m.

    Its links have angles whose squares sum up to twice a closed gap over their length.
    """
    p, body = pinned_chain(n, 0.0, tmp_path)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", BulletBridgeWarning)
        for _ in range(60):
            p.stepSimulation()
            states = np.array([state[:2] for state in p.getJointStates(body, range(n))])
            assert open_by(states, n * LENGTH) < ROUND_OFF
            assert np.abs(np.cumsum(states[:, 0])).max() < np.sqrt(2 * ROUND_OFF / LENGTH)
    assert len(told) <= 1  # whether rates are left to it is a matter of round-off
    assert all("no motion goes on" in str(x.message) for x in told)
    assert all("'constraint 1'" in str(x.message) for x in told)
    p.disconnect()


@pytest.mark.parametrize(("n", "short", "steps"), [(6, 1e-13, 120), (12, 1e-13, 30)])
def test_rates_of_a_chain_that_may_not_move_are_those_of_its_positions(n, short, steps, tmp_path):
    """Rates grew to 45 rad/s, and a chain of six came to be closed ten turns on.

    Links that are g short of their reach turn by at most the root of 2 g over their length, each
    of 64 parts of a step from one such pose to another. Corrections weigh bodies, so that their
    rates are bounded in the metric of the mass matrix, as twice what the largest bend is there.
    """
    p, body = pinned_chain(n, short, tmp_path)
    farthest, way = 2.0 * math.sqrt(2.0 * (short + 2e-13) / LENGTH), 1e-9
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", BulletBridgeWarning)
        for _ in range(steps):
            p.stepSimulation()
            q, v = np.array([state[:2] for state in p.getJointStates(body, range(n))]).T
            M = np.array(p.calculateMassMatrix(body, q.tolist()))
            assert np.abs(q).max() <= farthest
            way = max(way, math.sqrt(q @ M @ q))
            assert math.sqrt(v @ M @ v) <= 64 * 240 * 2.0 * way
    assert len(told) <= 1  # whether rates are left to it is a matter of round-off
    assert all("no motion goes on" in str(x.message) for x in told)
    p.disconnect()


def test_a_free_chain_that_may_not_bend_keeps_its_momentum(monkeypatch):
    """Bent by a motor, with both ends at its base; what closes it acts within: 1e-12 as others.

    Following what Bullet led to lost up to two thirds of it in a step, and rates were 740 rad/s.
    """
    p, n, own = BulletClient(pybullet.DIRECT), 12, [[LENGTH / 2, 0, 0]] * 12
    places, turns = [[0, 0, 0], *[[LENGTH, 0, 0]] * (n - 1)], [[0, 0, 0, 1]] * n
    links = [MASS] * n, [-1] * n, [-1] * n, places, turns, own, turns, list(range(n))
    axes = [pybullet.JOINT_REVOLUTE] * n, [[0, 1, 0]] * n
    middle = [0.2, 0.1, -0.1]
    body = p.createMultiBody(1.0, -1, -1, [0] * 3, turns[0], middle, turns[0], *links, *axes)
    for k in range(-1, n):
        inertia = [1e-5, 1e-4, 1e-4] if k >= 0 else [0.1, 0.2, 0.25]
        p.changeDynamics(body, k, localInertiaDiagonal=inertia)
    for k in range(n):
        p.setJointMotorControl2(body, k, p.VELOCITY_CONTROL, force=0)
    end = [n * LENGTH - 1e-12 - middle[0], -middle[1], -middle[2]]
    p.createConstraint(body, n - 1, body, -1, p.JOINT_POINT2POINT, [0, 0, 0], own[0], end)
    p.resetBaseVelocity(body, [0.3, -0.2, 0.1], [0.4, 0.7, -0.5])
    lost, act = [], Closing.finish_step

    def watched(closing, groups):
        before = momentum(p, [body])
        act(closing, groups)
        lost.append(np.abs(momentum(p, [body]) - before).max() / np.abs(before).max())

    monkeypatch.setattr(Closing, "finish_step", watched)
    for _ in range(10):
        p.setJointMotorControl2(body, n // 2, p.TORQUE_CONTROL, force=0.2)
        p.stepSimulation()
        assert max(abs(state[1]) for state in p.getJointStates(body, range(n))) < 1.0
    assert len(lost) == 10
    assert max(lost) < 1e-12
    p.disconnect()
