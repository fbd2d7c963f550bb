"""An arm that is led by resets of its joints at every step takes its load along."""

from collections.abc import Iterator

import numpy as np
import pybullet
import pybullet_data
import pytest

from bulletbridge.drop_in.client import BulletClient
from bulletbridge.drop_in.session import session_of

HOME = np.array([0.0, 0.6, 0.0, -1.4, 0.0, 1.1, 0.0])
ON_HAND, ON_LOAD = [0.0, 0.0, 0.1], [0.0, 0.03, 0.02]


@pytest.fixture(params=["filter", "exact"])
def client(request: pytest.FixtureRequest) -> Iterator[BulletClient]:
    """A world in one of our modes."""
    p = BulletClient(pybullet.DIRECT)
    p.setBridgeMode(request.param)
    yield p
    p.disconnect()


def gap(p: BulletClient, arm: int, load: int, turned: bool) -> float:
    """How far the load's frame is from the hand's [m, and rad if they are to be turned alike]."""
    hand, held = p.getLinkState(arm, 6, computeForwardKinematics=True), (0.0, 0.0, 0.0, 1.0)
    there = p.multiplyTransforms(hand[0], hand[1], ON_HAND, held)
    here = p.multiplyTransforms(*p.getBasePositionAndOrientation(load), ON_LOAD, held)
    apart = np.subtract(here[0], there[0])
    turn = p.getDifferenceQuaternion(here[1], there[1])[:3] if turned else ()
    return float(np.abs([*apart, *turn]).max())


@pytest.mark.parametrize("kind", ["POINT2POINT", "FIXED"])
def test_bases_alone_close_what_resets_have_opened(client: BulletClient, kind: str) -> None:
    """Joints keep the bits that they were given, and the load's pose is that of the hand."""
    arm = client.loadURDF(f"{pybullet_data.getDataPath()}/kuka_iiwa/model.urdf", useFixedBase=True)
    for joint, angle in enumerate(HOME):
        client.resetJointState(arm, joint, angle)
    hand = client.getLinkState(arm, 6)
    shape = client.createCollisionShape(pybullet.GEOM_BOX, halfExtents=[0.02] * 3)
    load = client.createMultiBody(0.3, shape, basePosition=hand[0], baseOrientation=hand[1])
    number = getattr(pybullet, f"JOINT_{kind}")
    client.createConstraint(arm, 6, load, -1, number, [0] * 3, ON_HAND, ON_LOAD)
    client.stepSimulation()
    system = session_of(client._client).groups[frozenset({arm, load})].system
    for k in range(1, 12):
        angles = HOME + 0.05 * k * (-1) ** k  # up to 1.1 rad away from those before
        for joint, angle in enumerate(angles):
            client.resetJointState(arm, joint, angle)
        q, _ = system.world.state()
        closed = system._active.closed_by_bases(q)
        joints = [system.mechanism.joints[f"body{arm}/lbr_iiwa_joint_{n}"].q for n in range(1, 8)]
        assert [float(closed[part][0]) for part in joints] == angles.tolist()
        assert max(np.abs(g.metres) for g in system.evaluate(closed).gaps) < 1e-12
        client.stepSimulation()
        # hands are told in single precision: 1e-7 of a metre, and as much of quaternions
        assert gap(client, arm, load, kind == "FIXED") < 1e-6
