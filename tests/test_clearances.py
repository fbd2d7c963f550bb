"""Shapes that only Bullet knows: it is asked about them by what may touch them."""

from typing import Any

import numpy as np
import pybullet
import pytest

import bulletbridge as bb
from bulletbridge.bullet import contact_finder
from bulletbridge.bullet.contact_finder import Clearances
from bulletbridge.mechanism.surfaces import SURFACE_LINK

CORNERS = [[-2, -2, 0], [2, -2, 0], [2, 2, 0], [-2, 2, 0]]
FLOOR = {
    "shapeType": pybullet.GEOM_MESH,
    "vertices": CORNERS,
    "indices": [0, 1, 2, 0, 2, 3],
    "flags": pybullet.GEOM_FORCE_CONCAVE_TRIMESH,
}


def thrown_boxes(height):
    """A client with a floor of triangles, and two joined boxes that turn above it."""
    client = bb.BulletClient(pybullet.DIRECT, mode="exact")
    client.setGravity(0, 0, -9.81)
    client.createMultiBody(0, client.createCollisionShape(**FLOOR))
    shape = client.createCollisionShape(pybullet.GEOM_BOX, halfExtents=[0.1, 0.1, 0.1])
    first, second = (
        client.createMultiBody(1, shape, basePosition=[x, 0, height]) for x in (0.0, 0.21)
    )
    client.createConstraint(
        first, -1, second, -1, pybullet.JOINT_POINT2POINT, [0] * 3, [0.105, 0, 0], [-0.105, 0, 0]
    )
    client.setCollisionFilterPair(first, second, -1, -1, 0)
    client.resetBaseVelocity(first, [0, 0, 0], [0.5, 2.0, 1.0])
    return client


def path(client, steps):
    """Positions of both, step by step."""
    found = []
    for _ in range(steps):
        client.stepSimulation()
        found.append([client.getBasePositionAndOrientation(body) for body in (1, 2)])
    return found


def test_bullet_is_not_asked_about_what_is_far(monkeypatch):
    """Of bodies that are far its detection is asked for now and then, not at every step."""
    client, asked = thrown_boxes(3.0), []
    detect = pybullet.performCollisionDetection
    monkeypatch.setattr(
        pybullet, "performCollisionDetection", lambda **k: (asked.append(1), detect(**k))
    )
    path(client, 40)
    client.disconnect()
    assert 0 < len(asked) < 10  # falling by 0.14 m is less than ``FAR``


@pytest.mark.parametrize("height", [0.3, 0.75])
def test_bodies_that_come_near_are_met_as_if_bullet_were_always_asked(monkeypatch, height):
    """They fall onto triangles, turn over there, and the path is the same to the last bit."""
    one = thrown_boxes(height)
    sparing = path(one, 120)
    one.disconnect()
    monkeypatch.setattr(contact_finder, "SAFE", np.inf)  # nothing is far enough
    other = thrown_boxes(height)
    always = path(other, 120)
    other.disconnect()
    assert sparing == always
    assert min(place[2] for place, _ in always[-1]) < 0.2


def test_what_is_put_under_a_body_is_met(monkeypatch):
    """A floor that was far is put elsewhere by the program, and is as near as it is then."""
    client = thrown_boxes(3.0)
    path(client, 20)
    client.resetBasePositionAndOrientation(0, [0, 0, 2.5], [0, 0, 0, 1])
    end = path(client, 120)[-1]
    assert min(place[2] for place, _ in end) > 2.55
    client.disconnect()


def raised():
    """Positions of boxes, one of which slides on an upright at a floor that is put below them."""
    client = thrown_boxes(0.9)
    slider = pybullet.JOINT_PRISMATIC
    client.createConstraint(0, -1, 1, -1, slider, [0, 0, 1], [0] * 3, [0] * 3)
    path(client, 3)
    found = []
    for height in (0.001, 0.5, 0.5):  # the first time it is read again
        client.resetBasePositionAndOrientation(0, [0, 0, height], [0, 0, 0, 1])
        found += path(client, 40)
    client.disconnect()
    return found


def test_a_base_of_triangles_that_is_raised_is_met(monkeypatch):
    """A constraint joins it to what is above: it is no bystander."""
    sparing = raised()
    monkeypatch.setattr(contact_finder, "SAFE", np.inf)
    assert sparing == raised()
    assert min(place[2] for place, _ in sparing[-1]) > 0.55


def test_what_was_measured_to_a_link_that_is_put_elsewhere_is_forgotten():
    """Nothing else tells that a mesh on a base that a program moves has come nearer."""

    class Resting:
        """Two links, of which the first stands; neither moves by itself."""

        links = np.zeros(2, SURFACE_LINK)

        def places_of(self, links):
            return np.zeros((len(links), 12))

        def reaches_of(self, links):
            return np.ones(len(links))

    detector: Any = Resting()
    detector.links["body"] = 0, 1
    clearances, pair = Clearances(detector), [(0, 1)]
    assert clearances.without_far(pair) == pair
    clearances.measure(pair, lambda a, b: 0.4)
    assert clearances.without_far(pair) == []
    clearances.forget(0, 1)
    assert clearances.without_far(pair) == pair
