"""Bodies that are loaded in Bullet: joints that mimic others, on request."""

import warnings
from pathlib import Path

import numpy as np
import pybullet
import pytest

import bulletbridge as bb
from bulletbridge.errors import BulletBridgeWarning, CallError, ModelError

LINK = """<link name="{0}"><inertial><origin xyz="0.2 0 0"/><mass value="1"/>
<inertia ixx="0.01" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link>"""
JOINT = """<joint name="{0}" type="continuous"><parent link="world"/><child link="{1}"/>
<origin xyz="0 {2} 0"/><axis xyz="0 1 0"/>{3}</joint>"""
FOLLOWS = '<mimic joint="lead" multiplier="-0.5" offset="0.3"/>'
ROBOT = (
    '<robot name="pair"><link name="world"/>'
    + LINK.format("a")
    + LINK.format("b")
    + JOINT.format("lead", "a", 0, "")
    + JOINT.format("follow", "b", 1, FOLLOWS)
    + "</robot>"
)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "pair.urdf"
    path.write_text(ROBOT)
    return str(path)


def load(client, path):
    body = client.loadURDF(path, flags=pybullet.URDF_USE_INERTIA_FROM_FILE)
    client.setGravity(0, 0, -9.81)
    for joint in (0, 1):
        client.setJointMotorControl2(body, joint, pybullet.VELOCITY_CONTROL, force=0)
    return body


def positions(client, body):
    return np.array([client.getJointState(body, joint)[0] for joint in (0, 1)])


def test_a_file_with_prefixes_that_nothing_declares_is_found(path):
    """As older ones of ROS have them, which Bullet reads."""
    Path(path).write_text(ROBOT.replace("</robot>", "<controller:servo name='s'/></robot>"))
    client = bb.BulletClient(pybullet.DIRECT)
    body = load(client, path)
    assert len(client.coupleMimicJoints(body)) == 1
    client.disconnect()


@pytest.mark.parametrize("mode", ["filter", "exact"])
def test_the_drop_in_couples_them_when_it_is_asked(path, mode):
    client = bb.BulletClient(pybullet.DIRECT, mode=mode)
    body = load(client, path)
    assert client.getNumConstraints() == 0  # nothing silent
    ids = client.coupleMimicJoints(body)
    assert len(ids) == client.getNumConstraints() == 1
    for _ in range(240):
        client.stepSimulation()
        lead, follow = positions(client, body)
        assert abs(follow - (0.3 - 0.5 * lead)) < 1e-13
    assert client.getBridgeLoops()[ids[0]].exact
    client.removeConstraint(ids[0])
    client.stepSimulation()
    client.disconnect()


def test_the_drop_in_tells_once_of_those_that_nothing_couples(path):
    client = bb.BulletClient(pybullet.DIRECT)
    body = load(client, path)
    said = r"pair.urdf: nothing leads 'follow'.*coupleMimicJoints\(0\) couples them"
    with pytest.warns(BulletBridgeWarning, match=said):
        client.stepSimulation()
    led = load(client, path)
    client.setJointMotorControl2(led, 1, pybullet.POSITION_CONTROL, 0.1)  # it does not flop
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        client.stepSimulation()
    client.removeBody(body)
    client.disconnect()


def test_loops_that_a_urdf_has_and_nothing_closes_are_told(path, tmp_path):
    loop = '<loop_joint name="ring" type="spherical"><link1 link="a" xyz="0 0 1"/>'
    robot = ROBOT.replace("</robot>", loop + '<link1 link="b" xyz="0 -1 1"/></loop_joint></robot>')
    closed = tmp_path / "closed.urdf"
    closed.write_text(robot.replace(FOLLOWS, ""))
    said = r"closed.urdf: the loops that it has are open.*: 'ring'; bb.load\("
    ours = bb.BulletClient(pybullet.DIRECT)
    body = load(ours, str(closed))
    with pytest.warns(BulletBridgeWarning, match=said):
        ours.stepSimulation()
    with pytest.warns(BulletBridgeWarning, match=said):
        assert bb.attach(body, client=ours._client).dof == 2
    with warnings.catch_warnings():  # somebody has decided
        warnings.simplefilter("error")
        bb.attach(body, [], client=ours._client)
        ours.stepSimulation()
    ours.disconnect()


def test_two_joints_that_carry_one_link_end_no_process(tmp_path):
    twice = ROBOT.replace(FOLLOWS, "").replace("</robot>", JOINT.format("third", "b", 2, ""))
    path = tmp_path / "ring.urdf"
    path.write_text(twice + "</robot>")
    client = bb.BulletClient(pybullet.DIRECT)
    with pytest.raises(pybullet.error, match="'follow' and 'third' carry one link, 'b', where"):
        client.loadURDF(str(path))
    client.disconnect()


def test_functions_of_ours_are_told_what_bodies_and_arguments_there_are(path):
    client = bb.BulletClient(pybullet.DIRECT)
    body = load(client, path)
    ids = client.coupleMimicJoints(body)
    assert client.coupleMimicJoints(bodyUniqueId=body) == ids  # which are there already
    assert client.getNumConstraints() == 1
    told = rf"no body 99 in client {client._client}; its bodies are {body}, as loadURDF"
    for call in (client.coupleMimicJoints, lambda b: client.setBridgeMode("exact", b)):
        with pytest.raises(CallError, match=told):
            call(99)
    with pytest.raises(CallError, match="no body 'arm'"):
        client.coupleMimicJoints("arm")
    with pytest.raises(CallError, match="no mode 'precise'; use filter"):
        client.setBridgeMode("precise")
    for call in (
        client.coupleMimicJoints,
        client.setBridgeMode,
        lambda: client.setBridgeMode("exact", body=body),
    ):
        with pytest.raises(TypeError, match=r"(coupleMimicJoints|setBridgeMode)\(\) (got|missing)"):
            call()
    client.disconnect()


def test_attach_couples_them_when_it_is_asked(path):
    client = pybullet.connect(pybullet.DIRECT)
    flags = pybullet.URDF_USE_INERTIA_FROM_FILE
    body = pybullet.loadURDF(path, flags=flags, physicsClientId=client)
    try:
        with pytest.warns(BulletBridgeWarning, match="nothing leads 'follow'.*mimic=True"):
            assert bb.attach(body, client=client).dof == 2
        with warnings.catch_warnings():  # somebody has decided
            warnings.simplefilter("error")
            assert bb.attach(body, client=client, mimic=False).dof == 2
            coupling = bb.Coupling("mine", {"lead": -0.5, "follow": -1.0}, offset=-0.3)
            assert bb.attach(body, [coupling], client).dof == 1
        system = bb.attach(body, client=client, mimic=True)
        system.assemble({"lead": 0.2})
        system.run(1.0)
        assert system.dof == 1
        assert abs(system.q[1] - (0.3 - 0.5 * system.q[0])) < 1e-13
    finally:
        pybullet.disconnect(client)


def test_a_body_without_a_file_says_so():
    client = bb.BulletClient(pybullet.DIRECT)
    body = client.createMultiBody(1.0, basePosition=[0, 0, 1])
    with pytest.raises(ModelError, match="the URDF of body 0 is not found"):
        client.coupleMimicJoints(body)
    client.disconnect()
