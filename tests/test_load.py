"""Loading models into Bullet worlds, and leaving these as they were."""

from dataclasses import replace

import numpy as np
import pybullet
import pytest
from support.small_models import four_bar

from bulletbridge.constraints.joints import Frame, JointModel, LoopJoint
from bulletbridge.errors import (
    AssemblyError,
    BulletBridgeError,
    BulletBridgeWarning,
    ModelError,
    WorldError,
)
from bulletbridge.models.load import load
from bulletbridge.models.loops_file import read_loops
from bulletbridge.models.model_spec import JointForce


@pytest.fixture
def client():
    number = pybullet.connect(pybullet.DIRECT)
    yield number
    if pybullet.isConnected(number):
        pybullet.disconnect(number)


def world_of(client: int) -> tuple[int, float]:
    """Number of bodies and gravity."""
    parameters = pybullet.getPhysicsEngineParameters(client)
    return pybullet.getNumBodies(client), parameters["gravityAccelerationZ"]


def test_own_client_is_closed(tmp_path):
    with load(four_bar(tmp_path)) as loaded:
        assert pybullet.isConnected(loaded.client)
        loaded.system.step()
        q, _ = loaded.bodies.state()
        assert np.array_equal(q, loaded.system.q)
    assert not pybullet.isConnected(loaded.client)


def test_a_state_set_in_bullet_is_read_when_asked(tmp_path):
    with load(four_bar(tmp_path)) as loaded:
        system, body = loaded.system, next(iter(loaded.ids.values()))
        system.run(0.5)
        there = system.q, system.v
        system.assemble({"crank": 0.9})
        joints = list(range(len(there[0])))
        positions, rates = ([[x] for x in values.tolist()] for values in there)
        pybullet.resetJointStatesMultiDof(
            body, joints, positions, rates, physicsClientId=loaded.client
        )
        system.read()
        assert np.abs(system.q - there[0]).max() < 1e-12
        assert np.abs(system.v - there[1]).max() < 1e-12
        pybullet.resetJointState(body, 0, 0.1, physicsClientId=loaded.client)
        with pytest.raises(AssemblyError, match=r"call assemble\(\)"):
            system.read()


def test_given_client_is_left_as_it_was(tmp_path, client):
    pybullet.setGravity(0, 0, -1.5, client)
    before = world_of(client)
    with load(four_bar(tmp_path), client) as loaded:
        assert world_of(client) == (1, -9.81)
        assert loaded.client == client
    assert world_of(client) == before


def broken(spec):
    """Specs that fail at different stages, and what they fail with."""
    body = spec.bodies[0]
    pin = spec.constraints[0]
    far = replace(pin, b=Frame("rocker", (0.0, 5.0, 0.0)))
    weld = LoopJoint("pin", JointModel.WELD, pin.a, pin.b)
    yield replace(spec, bodies=(body, replace(body, name="b", urdf=body.urdf / "none"))), ModelError
    yield replace(spec, constraints=(replace(pin, a=Frame("nolink")),)), ModelError
    yield replace(spec, constraints=(far,)), AssemblyError
    yield replace(spec, constraints=(weld,)), BulletBridgeError
    yield replace(spec, start_q={"crank": float("nan")}), ModelError
    yield replace(spec, forces=(JointForce("nojoint"),)), ModelError


@pytest.mark.parametrize("case", range(6))
def test_failure_leaves_the_world_as_it_was(tmp_path, client, case):
    pybullet.setGravity(0, 0, -1.5, client)
    before = world_of(client)
    spec, error = list(broken(read_loops(four_bar(tmp_path))))[case]
    with pytest.raises(error):
        load(spec, client)
    assert world_of(client) == before
    clients = [k for k in range(16) if pybullet.isConnected(k)]
    said = f"'{spec.name}' goes into a world of its own, though client {client} is connected"
    with pytest.raises(error), pytest.warns(BulletBridgeWarning, match=said):
        load(spec)
    assert [k for k in range(16) if pybullet.isConnected(k)] == clients


def test_missing_client_is_said():
    with pytest.raises(WorldError, match="no Bullet client 99"):
        load("four_bar", 99)


def test_rewritten_file_is_read_again(tmp_path):
    path = four_bar(tmp_path)
    urdf = tmp_path / "four_bar.urdf"
    with load(path) as loaded:
        before = loaded.system.mechanism.bodies["mass"].sum()
    urdf.write_text(urdf.read_text().replace('<mass value="2.0"/>', '<mass value="3.0"/>'))
    with load(path) as loaded:
        assert loaded.system.mechanism.bodies["mass"].sum() == pytest.approx(before + 1.0)
