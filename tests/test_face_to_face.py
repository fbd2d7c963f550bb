"""Neighbours that cannot turn about the point that joins them, since their faces touch."""

import warnings

import numpy as np
import pybullet
import pytest

import bulletbridge as bb
from bulletbridge.drop_in.face_to_face import block_turns
from bulletbridge.errors import BulletBridgeWarning
from bulletbridge.mechanism.records import CONTACT_POINT

HALF = 0.05  # [m] of each edge


def hanging(collide):
    """A cube that hangs under one that stands still, pushed by 1 m/s; its way after 0.1 s [m]."""
    p = bb.BulletClient(pybullet.DIRECT, mode="exact")
    p.setGravity(0, 0, -9.81)
    cube = p.createCollisionShape(p.GEOM_BOX, halfExtents=[HALF] * 3)
    held, hung = p.createMultiBody(0, cube), p.createMultiBody(1, cube, -1, [0, 0, -2 * HALF])
    up, down = [0, 0, HALF], [0, 0, -HALF]
    p.createConstraint(held, -1, hung, -1, p.JOINT_POINT2POINT, [0] * 3, down, up)
    if not collide:
        p.setCollisionFilterPair(held, hung, -1, -1, 0)
    p.resetBaseVelocity(hung, [1, 0, 0])
    for _ in range(24):
        p.stepSimulation()
    way = p.getBasePositionAndOrientation(hung)[0][0]
    p.disconnect()
    return way


def test_cubes_face_to_face_are_told_and_turn_once_they_do_not_collide():
    with pytest.warns(BulletBridgeWarning, match=r"bodies 0 and 1 touch .*Pair\(0, 1, -1, -1, 0\)"):
        assert abs(hanging(collide=True)) < 1e-3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # the rate at which a push in the centre turns a cube about a point half an edge away is
        # v HALF / (HALF² + 2/3 HALF²) = 12 rad/s; in 0.1 s that is more than a right angle, less
        # what gravity takes, whose pendulum has a period of 0.58 s
        assert hanging(collide=False) > 0.5 * HALF


@pytest.mark.parametrize("seed", range(30))
def test_contacts_block_turns_where_they_surround_the_point(seed):
    """Those that lie within a half plane leave the turn about its edge."""
    rng = np.random.default_rng(seed)
    angles = np.sort(rng.uniform(0, 2 * np.pi, rng.integers(2, 7)))
    widest = np.diff([*angles, angles[0] + 2 * np.pi]).max()
    if abs(widest - np.pi) < 1e-3:
        pytest.skip("on the edge between both")
    frame, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    pivot = rng.normal(size=3)
    points = np.zeros(len(angles), CONTACT_POINT)
    around = 0.1 * np.array([np.cos(angles), np.sin(angles), 0.0 * angles])
    points["position"], points["normal"] = pivot + (frame @ around).T, frame[:, 2]
    assert block_turns(points, pivot, 1e-4) == (widest < np.pi)
    points["gap"] = 0.01
    assert not block_turns(points, pivot, 1e-4)
