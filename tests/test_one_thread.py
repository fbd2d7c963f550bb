"""Small dense matrices are factorised in one thread, whatever else the process does."""

import numpy as np
import pybullet
import pytest
from threadpoolctl import ThreadpoolController, threadpool_limits

import bulletbridge as bb
from bulletbridge.numerics.one_thread import one_blas_thread

ASKED = 2
"""Threads, which BLAS takes whatever the number of processors."""


def threads() -> set[int]:
    """How many each BLAS that is loaded shares its work among."""
    return {
        one["num_threads"] for one in ThreadpoolController().info() if one["user_api"] == "blas"
    }


@pytest.fixture(autouse=True)
def shared():
    """BLAS shares its work among some threads."""
    with threadpool_limits(ASKED, user_api="blas"):
        if threads() != {ASKED}:
            pytest.skip("BLAS of this NumPy or SciPy knows no threads")
        yield


def test_limits_in_one_another_end_with_the_outer_one():
    with one_blas_thread():
        with one_blas_thread():
            assert threads() == {1}
        assert threads() == {1}
    assert threads() == {ASKED}


def test_it_ends_with_an_error():
    with pytest.raises(ZeroDivisionError), one_blas_thread():
        raise ZeroDivisionError
    assert threads() == {ASKED}


@pytest.mark.parametrize("mode", ["filter", "exact"])
def test_setting_up_a_track_shares_nothing(mode, monkeypatch):
    """A ring of plates, hinged by two points each: some rows follow from others.

    What is no larger than a body's own matrices is never shared.
    """
    seen = set[int]()

    def watched(function):
        def call(matrix, *args, **kwargs):
            if min(np.shape(matrix)[-2:]) > 6:
                seen.update(threads())
            return function(matrix, *args, **kwargs)

        return call

    for name in ("svd", "cholesky", "solve", "eigh"):
        monkeypatch.setattr(np.linalg, name, watched(getattr(np.linalg, name)))
    p, count, half = bb.BulletClient(pybullet.DIRECT), 5, 0.05
    p.setBridgeMode(mode)
    p.setGravity(0, 0, -9.81)
    shape = p.createCollisionShape(pybullet.GEOM_BOX, halfExtents=[0.02, 0.04, 0.01])
    radius, turn = half / np.tan(np.pi / count), 2 * np.pi / count
    plates = [
        p.createMultiBody(
            0.1,
            shape,
            basePosition=[radius * np.sin(turn * k), 0, 1 - radius * np.cos(turn * k)],
            baseOrientation=pybullet.getQuaternionFromEuler([0, -turn * k, 0]),
        )
        for k in range(count)
    ]
    for k, plate in enumerate(plates):
        for y in (-0.03, 0.03):
            p.createConstraint(
                *(plate, -1, plates[(k + 1) % count], -1, pybullet.JOINT_POINT2POINT, [0, 0, 0]),
                *([half, y, 0], [-half, y, 0]),
            )
    p.stepSimulation()
    assert seen == {1}
    assert threads() == {ASKED}
    p.disconnect()
