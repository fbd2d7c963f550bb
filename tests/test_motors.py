"""Motors, limits and friction of joints of a tree."""

import numpy as np
import pybullet
import pytest
from support.solid_worlds import FLAGS, G
from support.urdf_builder import random_tree

import bulletbridge as bb
from bulletbridge.errors import ModelError

ROUND_OFF = 1e-12


def test_a_limit_stops_a_closed_loop(solids, tmp_path):
    from support.small_models import four_bar

    urdf = four_bar(tmp_path).parent / "four_bar.urdf"
    text = urdf.read_text().replace(
        '<joint name="crank" type="continuous">',
        '<joint name="crank" type="revolute"><limit lower="0.3" upper="1.4" effort="1"'
        ' velocity="1"/>',
    )
    urdf.write_text(text)
    with bb.load(tmp_path / "four_bar.loops.yaml", solids.client, limits=True) as model:
        system = model.system
        for _ in range(480):
            system.step()
            # the loop is closed after the stop has held: to what a step's motion curves it
            assert 0.3 - 5e-5 < system.q[0] < 1.4 + 5e-5
            assert system.evaluate().largest("kept_metres") < ROUND_OFF
        assert system.complementarity.residual < 1e-10


def test_joint_friction_is_a_weak_motor_at_rest(solids, tmp_path):
    """A pendulum with friction stays where gravity cannot turn it, and moves where it can."""
    path = tmp_path / "arm.urdf"
    path.write_text(
        '<robot name="arm"><link name="base"/><link name="rod"><inertial><origin xyz="0 0 -0.5"/>'
        '<mass value="1"/><inertia ixx="0.1" iyy="0.1" izz="0.01" ixy="0" ixz="0" iyz="0"/>'
        '</inertial></link><joint name="hinge" type="continuous"><parent link="base"/>'
        '<child link="rod"/><axis xyz="0 1 0"/></joint></robot>'
    )
    body = pybullet.loadURDF(
        str(path), useFixedBase=True, flags=FLAGS, physicsClientId=solids.client
    )
    system = solids.system(body, contacts=False)
    torque = 1.0
    system.motors.set("hinge", force=torque)
    held = np.arcsin(torque / (0.5 * G))
    for angle, moves in ((held - 1e-3, False), (held + 1e-3, True)):
        system.set_state([angle], [0.0])
        for _ in range(10):
            system.step()
        assert (abs(system.v[0]) > 1e-6) == moves


def test_a_spherical_joint_is_driven_about_the_axes_of_its_link(solids, tmp_path):
    """Strong motors give the rates asked for in one step; weak ones change the spin by T dt."""
    path = tmp_path / "ball.urdf"
    path.write_text(
        '<robot name="ball"><link name="base"/><link name="rod"><inertial><mass value="1"/>'
        '<inertia ixx="0.2" iyy="0.2" izz="0.2" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        '<joint name="hip" type="spherical"><parent link="base"/><child link="rod"/></joint>'
        "</robot>"
    )
    body = pybullet.loadURDF(
        str(path), useFixedBase=True, flags=FLAGS, physicsClientId=solids.client
    )
    system = solids.system(body, contacts=False)
    turn = np.array([0.5, -0.5, 0.5, 0.5])
    for force, rates in ((1e3, [0.3, -0.2, 0.1]), (0.1, [0.1 * system.dt / 0.2, 0.0, 0.0])):
        system.set_state(turn, np.zeros(3))
        for axis, rate in zip("xyz", [0.3, -0.2, 0.1], strict=True):
            strong = force if force > 1.0 or axis == "x" else 0.0
            system.motors.set(f"hip/{axis}", force=strong, velocity=rate)
        system.step()
        assert np.abs(system.v - rates).max() < ROUND_OFF
    with pytest.raises(ModelError, match="no position about one axis"):
        system.motors.set("hip/x", force=1.0, position=0.1)
    with pytest.raises(ModelError, match="as in 'joint/x'"):
        system.motors.set("hip", force=1.0)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("force", [500.0, 0.5])
def test_motors_of_random_trees_are_bullets(solids, tmp_path, seed, force):
    """Each step from the same state, with 1000 of Bullet's iterations: 1e-9, and equal torques."""
    rng = np.random.default_rng(seed)
    path = tmp_path / "tree.urdf"
    path.write_text(random_tree(rng, 6, ("revolute", "prismatic"), limited=False))
    client = solids.client
    body = pybullet.loadURDF(str(path), useFixedBase=True, flags=FLAGS, physicsClientId=client)
    pybullet.setPhysicsEngineParameter(
        numSolverIterations=1000, solverResidualThreshold=0, physicsClientId=client
    )
    system = solids.system(body, contacts=False)
    names = [pybullet.getJointInfo(body, j, client)[1].decode() for j in range(6)]
    for joint, name in enumerate(names):
        pybullet.changeDynamics(
            body, joint, linearDamping=0, angularDamping=0, jointDamping=0, physicsClientId=client
        )
        position, velocity = rng.uniform(-1, 1, 2)
        pybullet.setJointMotorControl2(
            body,
            joint,
            pybullet.POSITION_CONTROL,
            targetPosition=position,
            targetVelocity=velocity,
            force=force,
            physicsClientId=client,
        )
        system.motors.set(name, force=force, velocity=velocity, position=position)
    for _ in range(10):
        system.read()
        system.step(write=False)
        pybullet.stepSimulation(client)
        q, v = system.world.state()
        size = max(1.0, np.abs(v).max())
        assert np.abs(v - system.v).max() < 1e-9 * size
        assert np.abs(q - system.q).max() < 1e-9 * size
        torques = [pybullet.getJointState(body, j, client)[3] for j in range(6)]
        ours = system.motors.forces
        assert ours == pytest.approx(torques, rel=1e-6, abs=1e-6)
        if force < 1:
            assert (np.abs(ours) > 0.999 * force).any()


def test_a_motor_is_as_strong_as_pybullets_and_no_faster_than_told(solids, tmp_path):
    """Without a force given: PyBullet's, which its own motor exerts where it must."""
    from support.small_models import four_bar

    urdf = str(four_bar(tmp_path).parent / "four_bar.urdf")
    client = solids.client
    body = pybullet.loadURDF(urdf, useFixedBase=True, flags=FLAGS, physicsClientId=client)
    system = solids.system(body, contacts=False)
    system.motors.set("crank", velocity=1.0)
    pybullet.setJointMotorControl2(
        body, 0, pybullet.VELOCITY_CONTROL, targetVelocity=1e9, physicsClientId=client
    )
    pybullet.stepSimulation(client)
    exerted = pybullet.getJointState(body, 0, client)[3]
    assert system.motors.records["force"][0] == pytest.approx(exerted)
    system.motors.set("crank", position=3.0, position_gain=1.0, max_velocity=2.0)
    system.step(write=False)
    assert system.v["crank"] == pytest.approx(2.0, rel=1e-3)
