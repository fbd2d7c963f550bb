"""Pairs that are listed once and serve for many steps, against all of them anew."""

import numpy as np
import pybullet

import bulletbridge as bb
from bulletbridge.mechanism.kinematics import displace

COUNT = 12


def bodies(world, rng):
    """Boxes, spheres and capsules in a cube of half a metre, on a plane."""
    number = {"physicsClientId": world.client}
    size = {"radius": 0.06, "height": 0.1, "halfExtents": [0.05, 0.08, 0.03]}
    kinds = pybullet.GEOM_BOX, pybullet.GEOM_SPHERE, pybullet.GEOM_CAPSULE
    floor = pybullet.createCollisionShape(pybullet.GEOM_PLANE, **number)
    pybullet.createMultiBody(0, floor, basePosition=(0, 0, -0.2), **number)
    shapes = [pybullet.createCollisionShape(kind, **size, **number) for kind in kinds]
    at = rng.uniform(-0.25, 0.25, (COUNT, 3))
    return [
        pybullet.createMultiBody(1.0, shapes[k % 3], basePosition=at[k], **number)
        for k in range(COUNT)
    ]


def test_pairs_serve_while_shapes_are_in_their_room(world, rng):
    """Whatever was listed before, the contacts are those of a detector that lists its pairs anew.

    From a millimetre a second, for which there is room for long, to ten metres, and jumps between:
    pairs come, serve, go, and come again. Equal to the bit, and in the same order.
    """
    system = bb.attach(bodies(world, rng), [], contacts=True, client=world.client)
    detector, dt = system.world.detector(), 1 / 240
    listed, found = np.zeros(5, int), 0
    for k in range(25):
        q, faster = system.q.copy(), 10.0 ** (k % 5 - 3)
        for _ in range(12):
            v = rng.normal(size=len(system.v)) * faster
            before = detector._around.copy()
            contacts, known = detector.find(q, v, dt)
            listed[k % 5] += not np.array_equal(before, detector._around, equal_nan=True)
            expected, known_anew = detector.copy().find(q, v, dt)
            assert known == known_anew
            assert contacts.tobytes() == expected.tobytes()
            found += len(contacts)
            displace(system.mechanism.bodies, q, v, dt, q)
    assert np.all(listed < 30)  # of 60: they served
    assert sum(listed) > 15
    assert found > 300
