"""Groups in exact mode of which nobody asks anything: a step of each is one call of a kernel.

Whatever is asked or done in between, they move, and answer, as those that are looked after at every
step: to the last bit, for both make the same calls of the same kernels.
"""

from pathlib import Path

import numpy as np
import pybullet
import pytest

import bulletbridge as bb
from bulletbridge.drop_in.session import session_of
from bulletbridge.errors import BulletBridgeWarning, StepError

FOUR_BAR = Path(__file__).parent.parent / "urdf" / "four_bar.urdf"
COUNT, CRANK, ROCKER = 4, 0, 2


@pytest.fixture
def worlds():
    """A client whose groups are asked for forces after every step, and one where they are not."""
    clients = [bb.BulletClient(pybullet.DIRECT, mode="exact") for _ in range(2)]
    for client in clients:
        client.setGravity(0, 0, -9.81)
        for k in range(COUNT):
            body = client.loadURDF(str(FOUR_BAR), [0, 2.0 * k, 0], useFixedBase=True)
            for joint in range(3):
                client.setJointMotorControl2(body, joint, pybullet.VELOCITY_CONTROL, force=0)
            client.resetJointState(body, CRANK, 1.0 + 0.1 * k)
            pin = np.subtract([0.7, 0, 0], client.getDynamicsInfo(body, ROCKER)[3])
            client.createConstraint(
                body, ROCKER, -1, -1, pybullet.JOINT_POINT2POINT, [0, 0, 0], pin, [1, 2.0 * k, 0]
            )
    yield clients
    for client in clients:
        client.disconnect()


def groups_of(client):
    """Its groups."""
    return list(session_of(client._client).groups.values())


def are_alone(client):
    """Whether the next step of each group is one call."""
    return [group.alone is not None for group in groups_of(client)]


def states(client):
    """Of all joints."""
    joints = [(body, joint) for body in range(COUNT) for joint in range(3)]
    return [pybullet.getJointState(*place, client._client)[:2] for place in joints]


def forces(client):
    """Of constraints and motors."""
    found = [client.getConstraintState(1 + k) for k in range(COUNT)]
    return found, [client.getJointState(body, CRANK)[3] for body in range(COUNT)]


def push(client):
    """A torque for one step."""
    client.setJointMotorControl2(1, CRANK, pybullet.TORQUE_CONTROL, force=3.0)


def drive(client):
    """A motor, from now on."""
    client.setJointMotorControl2(2, CRANK, pybullet.VELOCITY_CONTROL, targetVelocity=2, force=9)


DONE = {
    20: push,
    30: drive,
    40: lambda client: client.resetJointState(3, CRANK, 0.7),
    50: lambda client: client.setGravity(0, 1.0, -5.0),
    60: lambda client: client.applyExternalForce(0, 1, [0, 0, 9], [0, 0, 0], pybullet.LINK_FRAME),
}


def test_steps_in_one_call_are_the_same_steps(worlds):
    """States after each step, and what is told of forces at the end."""
    alone = 0
    for n in range(80):
        for client in worlds:
            if n in DONE:
                DONE[n](client)
            client.stepSimulation()
        assert states(worlds[0]) == states(worlds[1])
        told = forces(worlds[0])
        alone += all(are_alone(worlds[1]))
    assert alone > 60
    assert forces(worlds[1]) == told


def test_steps_in_one_call_are_taken_back(worlds):
    """Where a group cannot be stepped the others are where they were, and go on from there."""
    for _ in range(5):
        for client in worlds:
            client.stepSimulation()
    client, (*others, last) = worlds[1], groups_of(worlds[1])
    assert all(are_alone(client))
    before, shown = [group.system.snapshot() for group in others], states(client)
    last.alone = lambda _: 1

    def fail(may_undo):
        raise StepError("as a test wants it")

    last.before_step = fail
    with pytest.raises(StepError, match="as a test wants it"):
        client.stepSimulation()
    del last.before_step
    for group, state in zip(others, before, strict=True):
        np.testing.assert_array_equal(group.system.snapshot()[:-1], state[:-1])
    assert states(client) == shown
    for _ in range(20):
        for one in worlds:
            one.stepSimulation()
    # what was taken back starts from impulses, and round-off, of the step that was
    np.testing.assert_allclose(states(worlds[0]), states(client), rtol=0, atol=1e-9)


def test_gravity_that_was_not_changed_is_not_taken_over_again(worlds, monkeypatch):
    """Programs set it at every step; groups that are made anew have it as it is by then."""
    client, number = worlds[0], worlds[0]._client
    client.stepSimulation()
    client.setGravity(0, 0, -9.81)
    told = []
    put = type(groups_of(client)[0].system).gravity.fset
    monkeypatch.setattr(
        type(groups_of(client)[0].system),
        "gravity",
        property(lambda _: None, lambda system, g: (told.append(g), put(system, g))),
    )
    client.setGravity(0, 0, -9.81)
    assert told == []
    client.setGravity(0, 0, -3)
    assert told == COUNT * [(0.0, 0.0, -3.0)]
    monkeypatch.undo()
    with pytest.warns(BulletBridgeWarning, match="setGravity"):
        pybullet.setGravity(0, 0, -1, physicsClientId=number)
    client.changeDynamics(0, -1, linearDamping=0.5)  # one is read again
    client.stepSimulation()
    client.setGravity(0, 0, -3)
    assert [group.system.gravity.tolist() for group in groups_of(client)] == COUNT * [[0, 0, -3]]
