"""Masses and inertias of Bullet: held against its own mass matrix, reported where invented."""

import warnings

import numpy as np
import pybullet
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from support.bullet_worlds import quiet, seeds
from support.urdf_builder import ARM, ONE_DOF, inertial, joint, link, one_joint, random_tree, robot

from bulletbridge.bullet.checks import check_mass_matrix, mass_matrix_at
from bulletbridge.bullet.reader import read_bullet
from bulletbridge.errors import BulletBridgeWarning, ModelError


def test_mass_matrix_agrees_with_bullets_own(world, rng):
    body = world.load(random_tree(rng, 7, ONE_DOF, branching=0.2), useFixedBase=True)
    bodies = read_bullet(body, world.client)
    q = rng.normal(size=bodies.mechanism.nq)
    M = np.array(pybullet.calculateMassMatrix(body, q.tolist(), physicsClientId=world.client))
    assert_allclose(mass_matrix_at(bodies.mechanism, q)[0], M, atol=1e-12 * np.abs(M).max())


def test_a_removed_body_leaves_a_stale_mass_matrix_that_is_not_blamed_on_the_next(world, rng):
    for _ in range(10):
        body = world.load(random_tree(rng, 5, ("revolute",)), useFixedBase=True)
        pybullet.calculateMassMatrix(body, [0.0] * 5, physicsClientId=world.client)
        read_bullet(body, world.client)
        pybullet.removeBody(body, world.client)


def test_inertia_that_bullet_invented_is_reported(world):
    body = world.load(ARM, flags=0)
    with pytest.warns(
        BulletBridgeWarning, match=r"link 'a' from \[1 1 1 0 0 0\] to \[6.67e-07"
    ) as w:
        read_bullet(body, world.client)
    assert "URDF_USE_INERTIA_FROM_FILE" in str(w[0].message)


def test_a_link_without_inertial_is_reported(world):
    with pytest.warns(
        BulletBridgeWarning,
        match=r"links without <inertial> in .*, to which Bullet gives 1 kg and 1 kg m²: 'a'",
    ):
        read_bullet(world.load(one_joint(child=""), useFixedBase=True), world.client)


def test_a_base_that_is_fixed_for_want_of_mass_is_reported(world):
    text = robot(link("base", inertial(0.0)), link("a"), joint("j", "continuous", "base", "a"))
    with pytest.warns(BulletBridgeWarning, match="base link 'base' has no mass"):
        assert read_bullet(world.load(text), world.client).mechanism.nv == 1


@quiet
@given(seeds, st.integers(0, 6), st.booleans())
def test_inertia_from_the_file_is_not_reported(world, seed, n, full_tensors):
    text = random_tree(np.random.default_rng(seed), n, full_tensors=full_tensors)
    body = world.load(text, useFixedBase=False, globalScaling=2.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_bullet(body, world.client)


def test_a_mass_changed_by_the_user_is_read_and_not_reported(world):
    body = world.load(ARM, useFixedBase=True)
    pybullet.changeDynamics(
        body, 0, mass=5.0, localInertiaDiagonal=[2.0, 2.0, 2.0], physicsClientId=world.client
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mechanism = read_bullet(body, world.client).mechanism
    assert mechanism.bodies[1]["mass"] == 5.0


def test_a_wrong_mass_matrix_is_reported_by_joint_and_amount(world, rng):
    body = world.load(random_tree(rng, 3, ("revolute",)), useFixedBase=True)
    mechanism = read_bullet(body, world.client).mechanism
    M, _ = mass_matrix_at(mechanism, np.zeros(3))
    wrong = M.copy()
    wrong[2, 1] *= 1.01
    with pytest.raises(ModelError, match=r"between joints 'j2' and 'j1'.*limit 1e-06"):
        check_mass_matrix(mechanism, M, wrong)
