"""Ropes as PyBullet's users make them, falling on a plane: what jams there is solved as well."""

import numpy as np
import pybullet

from bulletbridge.drop_in.client import BulletClient
from bulletbridge.drop_in.session import session_of

BALLS, RADIUS, MASS, STEPS = 20, 0.02, 0.02, 130


def test_a_rope_that_jams_on_a_plane_is_solved_as_others_are():
    """Balls that touch where they are joined, one end up, land one after the other.

    Twenty on twenty points: friction of those that slide along the rope feeds the normals of
    others. Gravity gives 0.04 m/s in a step; what the laws may miss is a four-millionth of that.
    """
    client, residuals = BulletClient(pybullet.DIRECT, mode="exact"), list[float]()
    try:
        client.setGravity(0, 0, -9.81)
        ground = client.createCollisionShape(pybullet.GEOM_BOX, halfExtents=[2, 2, 0.1])
        client.createMultiBody(0, ground, basePosition=[0, 0, -0.1])
        ball = client.createCollisionShape(pybullet.GEOM_SPHERE, radius=RADIUS)
        bodies = list[int]()
        for n in range(BALLS):
            place = [2 * RADIUS * n, 0.002 * (n % 3), 0.06 + 0.004 * n]
            bodies.append(client.createMultiBody(MASS, ball, basePosition=place))
            client.changeDynamics(bodies[n], -1, rollingFriction=1e-4, spinningFriction=1e-3)
            if n:
                ends = [RADIUS, 0, 0], [-RADIUS, 0, 0]
                point = pybullet.JOINT_POINT2POINT
                client.createConstraint(bodies[n - 1], -1, bodies[n], -1, point, [0] * 3, *ends)
                client.setCollisionFilterPair(bodies[n - 1], bodies[n], -1, -1, 0)
        for _ in range(STEPS):
            client.stepSimulation()
            (group,) = session_of(client._client).groups.values()
            residuals.append(group.system.complementarity.residual)
        lowest = min(client.getBasePositionAndOrientation(body)[0][2] for body in bodies)
    finally:
        client.disconnect()
    assert np.quantile(residuals, 0.99, method="lower") < 1e-8
    assert lowest > RADIUS - 1e-3  # nothing sinks in for it
