"""What PyBullet does that the reader relies on, or has to guard against; one fact per test."""

import numpy as np
import pybullet
import pytest
from numpy.testing import assert_allclose
from scipy.spatial.transform import Rotation
from support.urdf_builder import ARM, inertial, joint, link, random_tree, robot


def test_link_frames_are_float32_and_inertial_frames_are_not(world, rng):
    body = world.load(random_tree(rng, 3, ("continuous",)), useFixedBase=True)
    world.shake(body, rng)
    state = pybullet.getLinkState(body, 2, 0, 1, world.client)
    R = Rotation.from_quat(state[1]).as_matrix() @ Rotation.from_quat(state[3]).as_matrix().T
    error = np.abs(np.array(state[0]) - R @ state[2] - state[4]).max()
    assert 1e-10 < error < 1e-6
    assert_allclose(np.float32(state[4]), state[4], rtol=0, atol=0)


def test_base_pose_is_that_of_its_inertial_frame(world):
    turned = inertial(1.0, (1.0, 1.2, 1.3), (0.1, 0.2, 0.3), (0.3, 0.2, 0.1))
    body = world.load(robot(link("base", turned)), basePosition=[1, 2, 3])
    position, orientation = pybullet.getBasePositionAndOrientation(body, world.client)
    dynamics = pybullet.getDynamicsInfo(body, -1, world.client)
    assert_allclose(position, [1.1, 2.2, 3.3], atol=1e-15)
    assert_allclose(orientation, dynamics[4], atol=1e-15)


def test_ids_of_removed_bodies_are_given_away_but_not_their_user_data(world):
    c = world.client
    body = world.load(ARM)
    stamp = pybullet.addUserData(body, "key", "value", physicsClientId=c)
    assert pybullet.getUserData(stamp, c) == b"value"
    pybullet.removeBody(body, c)
    assert pybullet.getUserData(stamp, c) is None
    assert world.load(ARM) == body
    assert pybullet.getUserData(stamp, c) is None


def test_writes_to_bodies_that_are_not_there_pass_in_silence(world):
    pybullet.resetBasePositionAndOrientation(7, [0, 0, 0], [0, 0, 0, 1], world.client)
    pybullet.resetBaseVelocity(7, [0, 0, 0], [0, 0, 0], world.client)
    with pytest.raises(pybullet.error):
        pybullet.resetJointStatesMultiDof(7, [0], [[0.0]], [[0.0]], world.client)


def test_an_axis_keeps_the_length_it_has_in_the_file(world):
    body = world.load(ARM.replace('xyz="0 0 1"', 'xyz="0 0 2"'), useFixedBase=True)
    assert_allclose(pybullet.getJointInfo(body, 0, world.client)[13], [0, 0, 2])
    pybullet.resetJointState(body, 0, 0.3, 1.0, world.client)
    state = pybullet.getLinkState(body, 0, 1, 1, world.client)
    assert_allclose(state[7], [0, 0, 2.0])  # velocities double, angles do not
    assert_allclose(Rotation.from_quat(state[1]).as_rotvec(), [0, 0, 0.3], atol=1e-15)


def test_a_base_without_mass_is_fixed_and_keeps_its_inertia_unless_fixed_on_purpose(world):
    text = robot(link("base", inertial(0.0)), link("a"), joint("j", "continuous", "base", "a"))
    body, meant = world.load(text), world.load(text, useFixedBase=True)
    world.release(body)
    pybullet.setGravity(0, 0, -9.81, world.client)
    for _ in range(10):
        pybullet.stepSimulation(world.client)
    assert pybullet.getBasePositionAndOrientation(body, world.client)[0] == (0.0, 0.0, 0.0)
    assert pybullet.getDynamicsInfo(body, -1, world.client)[2] == (1.0, 1.0, 1.0)
    assert pybullet.getDynamicsInfo(meant, -1, world.client)[2] == (0.0, 0.0, 0.0)


def test_save_world_tells_the_file_a_body_came_from(world, tmp_path):
    world.load(ARM)
    script = tmp_path / "world.py"
    pybullet.saveWorld(str(script), world.client)
    assert f'p.loadURDF("{tmp_path / "robot0.urdf"}", ' in script.read_text()


def test_calculate_mass_matrix_does_not_see_later_changes(world):
    body, c = world.load(ARM, useFixedBase=True), world.client
    before = pybullet.calculateMassMatrix(body, [0.0], physicsClientId=c)
    pybullet.changeDynamics(body, 0, mass=5.0, localInertiaDiagonal=[5, 5, 5], physicsClientId=c)
    assert pybullet.calculateMassMatrix(body, [0.0], physicsClientId=c) == before


def test_limits_of_a_continuous_joint_are_those_of_the_file(world):
    assert pybullet.getJointInfo(world.load(ARM), 0, world.client)[8:10] == (0.0, -1.0)
    text = ARM.replace("</joint>", '<limit lower="-1" upper="1"/></joint>')
    assert pybullet.getJointInfo(world.load(text), 0, world.client)[8:10] == (-1.0, 1.0)
