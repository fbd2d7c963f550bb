"""An arm that is led by resets of its joints at every step takes its load along."""

import numpy as np
import pybullet
import pybullet_data
import pytest

from bulletbridge.drop_in.client import BulletClient
from bulletbridge.drop_in.session import session_of
from bulletbridge.system.system import System

HOME = np.array([0.0, 0.6, 0.0, -1.4, 0.0, 1.1, 0.0])
ON_HAND, ON_LOAD = [0.0, 0.0, 0.1], [0.0, 0.03, 0.02]


@pytest.fixture
def client(client_of_ours: BulletClient) -> BulletClient:
    return client_of_ours


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


def husky_with_kuka() -> tuple[BulletClient, int, int]:
    """An arm fixed onto a car with four wheels, on the ground, in exact mode."""
    p, data = BulletClient(pybullet.DIRECT, mode="exact"), pybullet_data.getDataPath()
    p.setGravity(0, 0, -10)
    p.loadURDF(f"{data}/plane.urdf", [0, 0, -0.3])
    car = p.loadURDF(
        f"{data}/husky/husky.urdf", [0.29, 0.33, -0.31], [0.002328, -0.000984, 0.996491, 0.083659]
    )
    arm = p.loadURDF(
        f"{data}/kuka_iiwa/model_free_base.urdf",
        [0.29, 0.33, 0.19],
        [0.002328, -0.000984, 0.996491, 0.083659],
    )
    above = [0, 0, -0.5]
    p.createConstraint(car, -1, arm, -1, pybullet.JOINT_FIXED, [0] * 3, [0] * 3, above)
    for wheel in (2, 3, 4, 5):
        p.setJointMotorControl2(car, wheel, pybullet.VELOCITY_CONTROL, force=1000)
    return p, car, arm


def lead(p: BulletClient, arm: int, first: int, steps: int) -> list[tuple[float, ...]]:
    """Steps before each of which joints are reset along a way, and held there; their ends."""
    ends: list[tuple[float, ...]] = []
    for n in range(first, first + steps):
        for joint, angle in enumerate(HOME):
            there = angle + 0.05 * np.sin(0.004 * n + joint)
            p.resetJointState(arm, joint, there)
            p.setJointMotorControl2(arm, joint, pybullet.POSITION_CONTROL, there, force=500)
        p.stepSimulation()
        pose, turn = p.getBasePositionAndOrientation(arm)
        ends.append((*pose, *turn, *(state[1] for state in p.getJointStates(arm, range(7)))))
    return ends


def test_an_arm_that_resets_lead_goes_on_from_the_impulses_of_the_last_step() -> None:
    """They carry the weight: its car stands on eight points, whose friction is all used up."""
    p, car, arm = husky_with_kuka()
    lead(p, arm, 0, 200)
    for _ in range(60):
        lead(p, arm, 200, 1)
    links = [(body, link) for body in (car, arm) for link in range(-1, p.getNumJoints(body))]
    weight = 10.0 * sum(p.getDynamicsInfo(*place)[0] for place in links)
    borne = sum(point[9] for point in p.getContactPoints(car))
    assert borne == pytest.approx(weight, rel=1e-3)
    p.disconnect()


def test_restored_states_of_an_arm_that_resets_lead_go_on_with_the_same_bits() -> None:
    """What steps that resets begin go by is part of the state; a single reset starts afresh."""
    p, _, arm = husky_with_kuka()
    lead(p, arm, 0, 12)
    kept, first = p.saveState(), lead(p, arm, 12, 12)
    for others in (0, 3):
        lead(p, arm, 24, others)
        p.restoreState(kept)
        assert lead(p, arm, 12, 12) == first
    p.disconnect()


def test_impulses_are_kept_where_resets_lead_and_nowhere_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Neither after a step that no reset came before, nor after a jump."""
    p, _, arm = husky_with_kuka()
    lead(p, arm, 0, 1)
    forget, forgotten = System.forget, list[bool]()

    def note(system: System, *, impulses: bool = True) -> None:
        forgotten.append(impulses)
        forget(system, impulses=impulses)

    monkeypatch.setattr(System, "forget", note)
    lead(p, arm, 1, 2)
    assert forgotten == [False, False]
    p.stepSimulation()
    lead(p, arm, 3, 2)
    assert forgotten[2:] == [True, False]
    p.resetJointState(arm, 1, HOME[1] + 0.5)
    p.stepSimulation()
    assert forgotten[4:] == [True]
    p.disconnect()
