"""Exact steps without Bullet's own beside them: what programs expect of that stays."""

import numpy as np
import pybullet
import pybullet_data
import pytest

from bulletbridge.drop_in import session as sessions
from bulletbridge.drop_in.session import session_of
from bulletbridge.errors import StepError

DT = 1 / 240
DATA = pybullet_data.getDataPath()


@pytest.fixture
def bullets_steps(monkeypatch):
    """How many steps Bullet itself has made."""
    made = []
    own = pybullet.stepSimulation

    def step(**kwargs):
        made.append(kwargs)
        return own(**kwargs)

    monkeypatch.setattr(sessions.pybullet, "stepSimulation", step)
    return made


def box(client, place, mass=1.0, half=0.1, shaped=True):
    """A cube without damping."""
    half = [half] * 3
    shape = client.createCollisionShape(pybullet.GEOM_BOX, halfExtents=half) if shaped else -1
    body = client.createMultiBody(mass, shape, basePosition=place)
    client.changeDynamics(
        body, -1, linearDamping=0, angularDamping=0, localInertiaDiagonal=[1e-2] * 3
    )
    return body


def test_bullet_makes_no_step_but_for_what_else_moves(connect, bullets_steps):
    """A second free body is Bullet's as soon as it is there, and no longer than that."""
    client = connect()
    client.setGravity(0, 0, -10)
    client.loadURDF(f"{DATA}/plane.urdf")
    first = box(client, [0, 0, 1])
    client.setBridgeMode("exact", first)
    for _ in range(3):
        client.stepSimulation()
    assert not bullets_steps
    second = box(client, [2, 0, 1])
    client.stepSimulation()
    assert len(bullets_steps) == 1
    assert client.getBaseVelocity(second)[0][2] == pytest.approx(-10 * DT, rel=1e-12)
    client.removeBody(second)
    client.stepSimulation()
    assert len(bullets_steps) == 1
    client.changeDynamics(first, -1, mass=2.0)
    client.stepSimulation()
    assert len(bullets_steps) == 1
    client.setBridgeMode("native", first)
    client.stepSimulation()
    assert len(bullets_steps) == 2


@pytest.mark.parametrize("frame", [pybullet.WORLD_FRAME, pybullet.LINK_FRAME])
def test_forces_do_not_pile_up_in_bullet(connect, frame):
    """Ten pushes of one step each, then Bullet goes on: the momentum is that of ten pushes."""
    client = connect()
    body = box(client, [0, 0, 1], shaped=False)
    client.setBridgeMode("exact", body)
    push, dt = np.array([0.0, 0.0, 3.0]), DT  # along the axis of the torque
    for _ in range(10):
        at = client.getBasePositionAndOrientation(body)[0]
        at = at if frame == pybullet.WORLD_FRAME else [0, 0, 0]
        client.applyExternalForce(body, -1, push, at, frame)
        client.applyExternalTorque(body, -1, (0.0, 0.0, 0.01), pybullet.WORLD_FRAME)
        client.stepSimulation()
    client.setBridgeMode("native")
    for _ in range(3):
        client.stepSimulation()
    v, w = client.getBaseVelocity(body)
    assert np.allclose(v, 10 * dt * push, rtol=1e-12, atol=1e-15)
    assert np.allclose(w, [0, 0, 10 * dt * 0.01 / 1e-2], rtol=1e-12, atol=1e-15)


def test_a_push_counts_whoever_makes_the_step(connect):
    """Pushed in exact mode, stepped by Bullet: what was withheld from it is told."""
    client = connect()
    body = box(client, [0, 0, 1], shaped=False)
    client.setBridgeMode("exact", body)
    client.stepSimulation()
    push = [3.0, 0.0, 0.0]
    client.applyExternalForce(body, -1, push, [0, 0, 0], pybullet.LINK_FRAME)
    push[0] = 100.0  # a program's own list
    client.setBridgeMode("native", body)
    client.stepSimulation()
    assert client.getBaseVelocity(body)[0][0] == pytest.approx(3.0 * DT, rel=1e-12)


@pytest.mark.parametrize("several", [False, True])
def test_torques_act_for_one_step(connect, several):
    """A pendulum without gravity: the rate is that of the torques, also after Bullet goes on."""
    client = connect()
    shape = -1
    arm = client.createMultiBody(
        0, shape, -1, linkMasses=[1.0], linkCollisionShapeIndices=[-1],
        linkVisualShapeIndices=[-1], linkPositions=[[0, 0, 0]],
        linkOrientations=[[0, 0, 0, 1]], linkInertialFramePositions=[[0.5, 0, 0]],
        linkInertialFrameOrientations=[[0, 0, 0, 1]], linkParentIndices=[0],
        linkJointTypes=[pybullet.JOINT_REVOLUTE], linkJointAxis=[[0, 0, 1]],
    )  # fmt: skip
    client.changeDynamics(arm, 0, linearDamping=0, angularDamping=0)
    client.changeDynamics(arm, 0, jointDamping=0)
    client.setJointMotorControl2(arm, 0, pybullet.VELOCITY_CONTROL, force=0)
    client.setBridgeMode("exact", arm)
    for _ in range(10):
        if several:
            torques = {"forces": np.array([0.2])}
            client.setJointMotorControlArray(arm, [0], pybullet.TORQUE_CONTROL, **torques)
        else:
            client.setJointMotorControl2(arm, 0, pybullet.TORQUE_CONTROL, force=0.2)
        client.stepSimulation()
    client.setBridgeMode("native")
    client.stepSimulation()
    inertia = 0.5**2 + client.getDynamicsInfo(arm, 0)[2][2]
    assert client.getJointState(arm, 0)[1] == pytest.approx(10 * DT * 0.2 / inertia, rel=1e-9)


def test_contact_points_tell_the_forces_of_our_step(connect):
    """A box on the plane, pushed but sticking: load, friction and their signs are Bullet's."""
    found = {}
    for mode in ("exact", "native"):
        client = connect()
        client.setGravity(0, 0, -10)
        plane = client.loadURDF(f"{DATA}/plane.urdf")
        body = box(client, [0, 0, 0.1])
        if mode == "exact":
            client.setBridgeMode(mode, body)
        client.setPhysicsEngineParameter(numSolverIterations=500, solverResidualThreshold=0)
        for _ in range(60):
            at = client.getBasePositionAndOrientation(body)[0]
            client.applyExternalForce(body, -1, [2.0, -1.0, 0], at, pybullet.WORLD_FRAME)
            client.stepSimulation()
        for name, given in (
            ("all", {}), ("box", {"bodyA": body}), ("plane", {"bodyA": plane}),
            ("both", {"bodyA": body, "bodyB": plane}),
        ):  # fmt: skip
            points = client.getContactPoints(**given)
            load = sum(point[9] for point in points)
            friction = sum(p[10] * np.array(p[11]) + p[12] * np.array(p[13]) for p in points)
            found[mode, name] = np.array([load, *friction])
    for name in ("all", "box", "plane", "both"):
        # on the plane, the first of the two; ours holds the balance to round-off of its solver
        assert found["exact", name] == pytest.approx([10.0, 2.0, -1.0, 0.0], abs=1e-6)
        # Bullet's sequential impulses and its penetration recovery: a part in a hundred
        assert found["exact", name] == pytest.approx(found["native", name], abs=0.1)


def test_who_looks_at_bullets_steps_gets_them(connect, bullets_steps, tmp_path):
    """Logs and analytics of the solver; without them again none are made, nor for sensors."""
    client = connect()
    client.setGravity(0, 0, -10)
    arm = client.loadURDF(f"{DATA}/kuka_iiwa/model.urdf", useFixedBase=True)
    client.setBridgeMode("exact", arm)
    client.stepSimulation()
    assert not bullets_steps
    log = client.startStateLogging(
        pybullet.STATE_LOGGING_GENERIC_ROBOT, str(tmp_path / "log"), objectUniqueIds=[arm]
    )
    client.stepSimulation()
    assert len(bullets_steps) == 1
    client.stopStateLogging(log)
    client.stepSimulation()
    assert len(bullets_steps) == 1
    client.enableJointForceTorqueSensor(arm, 3, 1)
    client.stepSimulation()
    assert len(bullets_steps) == 1
    assert np.any(client.getJointState(arm, 3)[2])
    client.enableJointForceTorqueSensor(arm, 3, 0)
    client.setPhysicsEngineParameter(reportSolverAnalytics=1)
    assert client.stepSimulation() is not None
    client.setPhysicsEngineParameter(reportSolverAnalytics=0)
    assert client.stepSimulation() == ()  # Bullet's answer without them
    assert len(bullets_steps) == 2


def test_the_motion_is_the_same_with_bullets_step_beside_it(connect):
    """An arm under motors, with and without Bullet's step thrown away: the same bits."""
    found = []
    for beside in (False, True):
        client = connect()
        client.setGravity(0, 0, -10)
        client.setPhysicsEngineParameter(reportSolverAnalytics=int(beside))
        arm = client.loadURDF(f"{DATA}/kuka_iiwa/model.urdf", useFixedBase=True)
        client.setBridgeMode("exact", arm)
        for k in range(100):
            targets = [0.5 * np.sin(0.02 * k + joint) for joint in range(7)]
            client.setJointMotorControlArray(
                arm, range(7), pybullet.POSITION_CONTROL, targets, forces=[150.0] * 7
            )
            client.stepSimulation()
        found.append([state[:2] for state in client.getJointStates(arm, range(7))])
    assert found[0] == found[1]


def test_a_step_that_fails_takes_none_of_the_others(connect, monkeypatch):
    """Two arms, the second's step fails once: the first is where it was, and goes on from there."""
    ends = []
    for fails in (False, True):
        client = connect()
        client.setGravity(0, 0, -10)
        arms = [
            client.loadURDF(f"{DATA}/kuka_iiwa/model.urdf", [3 * k, 0, 0], useFixedBase=True)
            for k in range(2)
        ]
        for arm in arms:
            client.setBridgeMode("exact", arm)
        for _ in range(20):
            client.stepSimulation()
        first, second = (session_of(client._client).groups[frozenset({arm})] for arm in arms)
        if fails:
            before = first.system.q, first.system.v, first.system.t
            with monkeypatch.context() as patch:
                patch.setitem(vars(second.system), "step", failing)
                with pytest.raises(StepError, match="cannot"):
                    client.stepSimulation()
            after = first.system.q, first.system.v, first.system.t
            assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))
        for _ in range(20):
            client.stepSimulation()
        ends.append(first.system.q)
    # the solver starts from other impulses once: its own accuracy, over twenty steps
    assert np.allclose(ends[0], ends[1], rtol=0, atol=1e-8)


def failing(write=True):
    """A step that cannot be made."""
    raise StepError("this cannot be stepped; it is only a test")


def test_bullet_sees_every_constraint_once(connect, bullets_steps):
    """Asked for the force of a gear that it never made a step with, Bullet ends the process."""
    client = connect()
    ring = client.loadURDF(f"{DATA}/differential/diff_ring.urdf")
    client.setBridgeMode("exact", ring)
    for first, second in ((1, 3), (2, 4)):
        gear = client.createConstraint(
            ring, first, ring, second, pybullet.JOINT_GEAR, [0, 1, 0], [0] * 3, [0] * 3
        )
        for _ in range(3):
            client.stepSimulation()
        assert np.isfinite(client.getConstraintState(gear)).all()
    assert len(bullets_steps) == 2
