"""Filter mode at chains of hinges that are all but stretched, which turn far within a step."""

import numpy as np
import pybullet
import pytest
from support.urdf_builder import inertial, joint, link, robot

from bulletbridge import BulletClient

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


@pytest.mark.parametrize(("n", "short"), [(12, 1e-6), (40, 1e-4)])
def test_a_chain_whose_links_turn_further_than_its_loop_lets_them_stays_closed(n, short, tmp_path):
    """Warnings are errors: Bullet's own step opened it by 2 m, and its state stayed.

    A chain that is short of its reach by g leaves its links angles whose squares sum up to 2 g over
    their length: a hundredth of a radian. In a step of Bullet's they turn by a tenth.
    """
    p = BulletClient(pybullet.DIRECT)
    p.setGravity(0, 0, -9.81)
    body = p.loadURDF(chain(n, tmp_path / "chain.urdf"), useFixedBase=True)
    for k in range(n):
        p.setJointMotorControl2(body, k, p.VELOCITY_CONTROL, force=0)
    end = n * LENGTH - short
    pin = [LENGTH / 2, 0, 0], [end, 0, 0]
    p.createConstraint(body, n - 1, -1, -1, p.JOINT_POINT2POINT, [0, 0, 0], *pin)
    rates = []
    for _ in range(60):
        p.stepSimulation()
        states = np.array([state[:2] for state in p.getJointStates(body, range(n))])
        turned = np.cumsum(states[:, 0])
        tip = LENGTH * np.array([np.cos(turned).sum(), np.sin(turned).sum()])
        assert np.abs(tip - [end, 0]).max() < ROUND_OFF
        rates.append(np.abs(states[:, 1]).max())
    assert max(rates) / 240 > np.sqrt(2 * short / LENGTH)  # it did turn that far
    p.disconnect()
