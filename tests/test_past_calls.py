"""Calls of PyBullet's own module on a client of ours are told of, where its steps miss them."""

import gc
import warnings

import pybullet
import pybullet_data
import pytest
from pybullet_utils.bullet_client import BulletClient as Native

from bulletbridge.drop_in.client import BulletClient
from bulletbridge.drop_in.function import FUNCTIONS, Function
from bulletbridge.drop_in.past_calls import PAST
from bulletbridge.drop_in.session import SESSIONS
from bulletbridge.errors import BulletBridgeWarning

BOTH = "filter", "exact"
POSITION = pybullet.POSITION_CONTROL


@pytest.fixture(params=BOTH)
def mode(request):
    """Who advances what constraints join."""
    return request.param


@pytest.fixture
def held(mode):
    """A client with an arm whose hand a point holds, after a step, and the arm and the point."""
    p = BulletClient(pybullet.DIRECT, mode=mode)
    p.setGravity(0, 0, -9.81)
    arm, pin = pinned_arm(p)
    p.stepSimulation()
    yield p, arm, pin
    if p._client >= 0:
        p.disconnect()


def pinned_arm(p):
    """An arm that stands on the ground, and the point that holds its hand."""
    arm = p.loadURDF(f"{pybullet_data.getDataPath()}/kuka_iiwa/model.urdf", useFixedBase=True)
    for joint in range(7):
        p.resetJointState(arm, joint, 0.3)
    hand = p.getLinkState(arm, 6)[0]
    pin = p.createConstraint(arm, 6, -1, -1, pybullet.JOINT_POINT2POINT, [0, 0, 0], [0, 0, 0], hand)
    return arm, pin


# what goes past, by function, for a client's number, the arm and its point
BOTH_MODES = {
    "stepSimulation": lambda n, arm, pin: pybullet.stepSimulation(physicsClientId=n),
    "createConstraint": lambda n, arm, pin: pybullet.createConstraint(
        arm, 3, -1, -1, pybullet.JOINT_POINT2POINT, [0] * 3, [0] * 3, [0] * 3, physicsClientId=n
    ),
    "changeConstraint": lambda n, arm, pin: pybullet.changeConstraint(
        pin, [0.1, 0, 1], physicsClientId=n
    ),
    "removeConstraint": lambda n, arm, pin: pybullet.removeConstraint(pin, n),
    "resetJointState": lambda n, arm, pin: pybullet.resetJointState(arm, 0, 0.3, 0, n),
    "resetBasePositionAndOrientation": lambda n, arm, pin: pybullet.resetBasePositionAndOrientation(
        bodyUniqueId=arm, posObj=[0, 0, 0], ornObj=[0, 0, 0, 1], physicsClientId=n
    ),
    "changeDynamics": lambda n, arm, pin: pybullet.changeDynamics(
        arm, 2, mass=2.0, physicsClientId=n
    ),
    "setTimeStep": lambda n, arm, pin: pybullet.setTimeStep(0.001, n),
    "resetSimulation": lambda n, arm, pin: pybullet.resetSimulation(physicsClientId=n),
}
EXACT_ONLY = {
    "setJointMotorControl2": lambda n, arm, pin: pybullet.setJointMotorControl2(
        arm, 1, POSITION, targetPosition=0.2, force=10, physicsClientId=n
    ),
    "setJointMotorControlArray": lambda n, arm, pin: pybullet.setJointMotorControlArray(
        arm, [1], POSITION, targetPositions=[0.2], physicsClientId=n
    ),
    "applyExternalForce": lambda n, arm, pin: pybullet.applyExternalForce(
        arm, 2, [0, 0, 1], [0, 0, 0], pybullet.LINK_FRAME, n
    ),
    "setGravity": lambda n, arm, pin: pybullet.setGravity(0, 0, 0, physicsClientId=n),
}


@pytest.mark.parametrize("name", [*BOTH_MODES, *EXACT_ONLY])
def test_what_steps_miss_is_told_once_by_its_name(held, mode, name):
    p, arm, pin = held
    call = (BOTH_MODES | EXACT_ONLY)[name]
    if mode == "filter" and name in EXACT_ONLY:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            call(p._client, arm, pin)  # Bullet makes the step
        return
    with pytest.warns(BulletBridgeWarning, match=rf"^{name} of PyBullet's own module") as told:
        call(p._client, arm, pin)
    assert told[0].filename == __file__
    if name not in ("removeConstraint", "resetSimulation"):  # which cannot be done again
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            call(p._client, arm, pin)


def test_another_wrapper_of_the_same_number_is_told_of(held):
    p, arm, _ = held
    other = Native(pybullet.SHARED_MEMORY)  # no server: no client
    other._client = p._client
    try:
        with pytest.warns(BulletBridgeWarning, match="stepSimulation of PyBullet's own module"):
            other.stepSimulation()
        with pytest.warns(BulletBridgeWarning, match="resetJointState of PyBullet's own module"):
            other.resetJointState(arm, 1, 0.1)
    finally:
        other._client = -1


def test_motors_that_are_set_before_their_body_is_read_are_told_of_then():
    p = BulletClient(pybullet.DIRECT, mode="exact")
    arm, _ = pinned_arm(p)
    EXACT_ONLY["setJointMotorControl2"](p._client, arm, None)
    with pytest.warns(BulletBridgeWarning, match="setJointMotorControl2 of PyBullet's own"):
        p.stepSimulation()
    p.stepSimulation()
    p.disconnect()


def test_what_the_client_does_itself_is_no_call_past_it(held):
    """Nor what others do to clients that are none of ours, or in which nothing is joined."""
    p, arm, pin = held
    beside, free = pybullet.connect(pybullet.DIRECT), BulletClient(pybullet.DIRECT)
    free.setGravity(0, 0, -1)
    for k in range(3):
        p.changeConstraint(pin, [0.3, 0, 1 + 1e-3 * k])
        p.resetJointState(arm, 1, 0.3)
        p.setJointMotorControl2(arm, 1, POSITION, targetPosition=0.3, force=10)
        p.changeDynamics(arm, 2, mass=2.0 + k)
        p.stepSimulation()
        for number in (beside, free._client):
            pybullet.setGravity(0, 0, -k, physicsClientId=number)
            pybullet.stepSimulation(physicsClientId=number)
    pybullet.disconnect(beside)
    free.disconnect()


def test_the_module_is_as_it_was_once_all_clients_are_gone(held):
    """So that numbers, which are given again, are nobody's by then."""
    p, _, _ = held
    others = set(SESSIONS) - {p._client}
    number = p._client
    assert "built-in" not in repr(pybullet.stepSimulation)
    pybullet.disconnect(number)
    p._client = -1
    assert number not in SESSIONS
    for other in others:
        pybullet.disconnect(other)
    assert "built-in" in repr(pybullet.stepSimulation)


def test_a_client_that_is_let_go_of_is_forgotten():
    p = BulletClient(pybullet.DIRECT)
    p.setGravity(0, 0, -1)
    number = p._client
    assert number in SESSIONS
    del p
    gc.collect()
    assert number not in SESSIONS


@pytest.mark.parametrize("name", PAST)
def test_the_place_of_the_client_is_that_of_our_own_function(name):
    own = FUNCTIONS[name]
    takes = len(own.parameters) if type(own) is Function else getattr(own, "count", 0)
    assert PAST[name].places == takes
