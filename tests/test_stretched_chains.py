"""Filter mode at chains of hinges that are all but stretched, which turn far within a step."""

import warnings

import numpy as np
import pybullet
import pytest
from support.urdf_builder import inertial, joint, link, robot

from bulletbridge import BulletClient
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
