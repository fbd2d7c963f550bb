"""Constraints that are removed and created anew with their child frame elsewhere."""

from collections.abc import Callable

import numpy as np
import pybullet
import pytest

from bulletbridge.bullet.constraints import CreatedConstraint, in_numbers_of_today
from bulletbridge.drop_in.client import BulletClient
from bulletbridge.drop_in.session import session_of
from bulletbridge.system.system import System

STEPS, SPEED, DT = 30, 0.2, 1 / 240
KINDS = {
    "POINT2POINT": pybullet.JOINT_POINT2POINT,
    "FIXED": pybullet.JOINT_FIXED,
    "REVOLUTE": pybullet.JOINT_REVOLUTE,
}
Made = Callable[[float], int]
"""Creates a constraint whose child frame is at a height."""


@pytest.fixture
def client(client_of_ours: BulletClient) -> BulletClient:
    client_of_ours.setGravity(0, 0, -9.81)
    return client_of_ours


def box(p: BulletClient, height: float, half: tuple[float, float, float]) -> int:
    """A box of 1 kg whose centre is at a height."""
    shape = p.createCollisionShape(pybullet.GEOM_BOX, halfExtents=half)
    return p.createMultiBody(1.0, shape, basePosition=[0, 0, height])


def held(p: BulletClient, body: int, kind: int) -> Made:
    """How a body is held in the world."""

    def make(height: float) -> int:
        at = [0, 0, height]
        return p.createConstraint(body, -1, -1, -1, kind, [0, 1, 0], [0, 0, 0.02], at)

    return make


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("limit", [None, 200.0])
def test_a_constraint_created_anew_is_the_old_one_moved(
    client: BulletClient, kind: str, limit: float | None
) -> None:
    """It moves bodies alike, and they are read once for all."""
    ends: list[tuple[float, ...]] = []
    for anew in (False, True):
        body = box(client, 1.0, (0.1, 0.1, 0.1))
        make = held(client, body, KINDS[kind])
        number, systems = make(1.0), list[System]()
        for k in range(STEPS):
            height = 1.0 + k * SPEED * DT
            if anew and k:
                client.removeConstraint(number)
                number = make(height)
            elif k:
                client.changeConstraint(number, jointChildPivot=[0, 0, height])
            if limit is not None:
                client.changeConstraint(number, maxForce=limit)
            client.stepSimulation()
            if k > 1:
                systems.append(next(iter(session_of(client._client).groups.values())).system)
        assert all(one is systems[0] for one in systems)
        load = client.getConstraintState(number)
        place, turn = client.getBasePositionAndOrientation(body)
        ends.append((*place, *turn, *np.ravel(client.getBaseVelocity(body)), *load))
        client.removeBody(body)
    # Bullet's solver starts new constraints from zero, and stops at 1e-7 of what it looks for
    np.testing.assert_allclose(ends[1][:13], ends[0][:13], rtol=0, atol=1e-9)
    np.testing.assert_allclose(ends[1][13:], ends[0][13:], rtol=0, atol=1e-5 * 9.81)


def test_what_lies_on_a_plate_goes_along(client: BulletClient) -> None:
    """Up at 0.2 m/s, by a constraint created anew at every step."""
    plate, load = box(client, 0.5, (0.2, 0.2, 0.02)), box(client, 0.57, (0.05, 0.05, 0.05))
    make = held(client, plate, pybullet.JOINT_FIXED)
    number = make(0.5)
    for k in range(120):
        client.removeConstraint(number)
        number = make(0.5 + k * SPEED * DT)
        client.stepSimulation()
    apart = np.subtract(
        client.getBasePositionAndOrientation(load)[0],
        client.getBasePositionAndOrientation(plate)[0],
    )
    # 0.07 m less what Bullet lets a contact of 1 kg sink in at rest, below 2 mm, and no drift
    np.testing.assert_allclose(apart, [0, 0, 0.07], atol=2e-3)
    assert client.getBaseVelocity(load)[0][2] == pytest.approx(SPEED, abs=0.05 * SPEED)


def test_before_its_first_step_it_is_new(client: BulletClient) -> None:
    """It tells no force then; removed again it leaves the bodies free."""
    body = box(client, 1.0, (0.1, 0.1, 0.1))
    make = held(client, body, pybullet.JOINT_POINT2POINT)
    number = make(1.0)
    for _ in range(3):
        client.removeConstraint(number)
        number = make(1.0)
        assert not any(client.getConstraintState(number))
        client.stepSimulation()
        assert client.getConstraintState(number)[2] == pytest.approx(-9.81, abs=1e-6)
    client.removeConstraint(number)
    number = make(1.0)
    client.removeConstraint(number)
    client.stepSimulation()
    fall = client.getBaseVelocity(body)[0][2]
    assert fall == pytest.approx(-9.81 * DT, rel=1e-3)  # damping of 0.04 in 4 ms


def test_messages_call_it_by_its_own_number() -> None:
    """Not by that which its system has kept."""
    now = [
        CreatedConstraint(17, pybullet.JOINT_FIXED, (1,), first=3),
        CreatedConstraint(4, pybullet.JOINT_FIXED, (1,)),
    ]
    text = in_numbers_of_today("constraint 3 and constraint 4, not constraint 31", now)
    assert text == "constraint 17 and constraint 4, not constraint 31"
