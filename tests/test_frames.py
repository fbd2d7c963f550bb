"""Rotations and null spaces that are written out, against SciPy's."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import linalg
from scipy.spatial.transform import Rotation

from bulletbridge.bullet.coordinates import matrix, quaternion
from bulletbridge.mechanism.frames import frame_with_z, matrix_rpy, rpy_matrix
from bulletbridge.numerics.null_space import null_space

ROUND_OFF = 1e-14
"""Some ten sums and products of numbers up to one."""


@pytest.mark.parametrize("seed", range(20))
def test_turns_are_scipys(seed):
    rng = np.random.default_rng(seed)
    rpy, quat = rng.uniform(-7, 7, 3), rng.normal(size=4)
    assert_allclose(rpy_matrix(rpy), Rotation.from_euler("xyz", rpy).as_matrix(), atol=ROUND_OFF)
    assert_allclose(rpy_matrix(matrix_rpy(rpy_matrix(rpy))), rpy_matrix(rpy), atol=ROUND_OFF)
    assert_allclose(matrix(quat), Rotation.from_quat(quat).as_matrix(), atol=ROUND_OFF)
    assert_allclose(matrix(quaternion(matrix(quat))), matrix(quat), atol=ROUND_OFF)


@pytest.mark.parametrize("across", [1.0, 1e-3, 1e-8, 1e-14, 1e-17, 1e-200, 0.0])
@pytest.mark.parametrize("up", [2.0, -2.0])
def test_a_frame_has_its_z_along_the_axis(across, up):
    z = np.array([0.6 * across, -0.8 * across, up])
    R = frame_with_z(z)
    assert_allclose(R.T @ R, np.eye(3), atol=ROUND_OFF)
    assert np.linalg.det(R) > 0.0
    assert_allclose(R[:, 2], z / np.linalg.norm(z), atol=ROUND_OFF)


@pytest.mark.parametrize("rank", range(5))
def test_what_vanishes_on_rows(rank):
    rng = np.random.default_rng(rank)
    rows = rng.normal(size=(6, rank)) @ rng.normal(size=(rank, 9))  # some of them redundant
    found = null_space(rows)
    assert found.shape == (9, 9 - rank) == linalg.null_space(rows).shape
    assert_allclose(found.T @ found, np.eye(9 - rank), atol=ROUND_OFF)
    assert_allclose(rows @ found, 0.0, atol=ROUND_OFF * 6 * 9 * max(np.abs(rows).max(), 1.0))
    assert_allclose(null_space(rows[:0]), np.eye(9))
