"""The mass matrix that Bullet's link velocities imply, to hold what was read against."""

from collections.abc import Sequence

import numpy as np
import pybullet

from bulletbridge.bullet.coordinates import Floats, matrix
from bulletbridge.bullet.state import BulletBodies, Port
from bulletbridge.bullet.tree import FIXED, RawBody
from bulletbridge.mechanism.records import SPHERICAL
from bulletbridge.numerics.records import Array


def live_mass_matrix(world: BulletBodies, robots: Sequence[RawBody]) -> Array:
    """M (nv, nv) from the link velocities that Bullet gives for unit rates, one at a time.

    Not ``calculateMassMatrix``: that is wrong for spherical joints, may answer for a removed body
    whose memory this one has, and, once called, never sees a later ``changeDynamics``. The rates
    are put back afterwards; positions are not touched.
    """
    M = np.zeros((world.mechanism.nv, world.mechanism.nv))
    for port, robot in zip(world.ports, robots, strict=True):
        own = slice(port.converter.v0, port.converter.nv)
        twists, R = unit_twists(port, robot)
        linear, angular = twists[:, :, 0], twists[:, :, 1]
        mass = np.array([link.mass for link in robot.links])
        moments = np.array([link.moments for link in robot.links])
        turning = np.einsum("lji,klj->kli", R, angular)  # in principal axes
        M[own, own] = np.einsum("l,ali,bli->ab", mass, linear, linear)
        M[own, own] += np.einsum("li,ali,bli->ab", moments, turning, turning)
    return M


def unit_twists(port: Port, robot: RawBody) -> tuple[Array, Array]:
    """Velocities of all links for unit rates, and their inertial axes, in world axes.

    Returns:
        (rates, links, 2, 3) velocity of the centre of mass and angular velocity; (links, 3, 3).
    """
    body, client, converter = port.body_id, port.client, port.converter
    indices, joints = converter.indices, converter.joint_lists()
    states = pybullet.getJointStatesMultiDof(body, indices, client) if indices else ()
    positions, rates = [list(state[0]) for state in states], [list(state[1]) for state in states]
    base = pybullet.getBaseVelocity(body, client)
    orientation = pybullet.getBasePositionAndOrientation(body, client)[1]
    links = range(len(robot.joints))
    twists: list[Array] = []
    frames = [orientation]
    # a fixed base may have been given a velocity, which Bullet counts in those of links
    has_velocity = robot.floating or any(any(part) for part in base)

    def move(linear: Floats, angular: Floats, rates: Sequence[Floats]) -> None:
        if has_velocity:
            pybullet.resetBaseVelocity(body, linear, angular, client)
        if indices:
            pybullet.resetJointStatesMultiDof(body, indices, positions, rates, client)

    try:
        for k in range(converter.v0, converter.nv):
            q, v = np.ones(converter.nq), np.zeros(converter.nv)
            v[k] = 1.0
            of_base = v[converter.v0 :][:6] if robot.floating else np.zeros(6)
            angular, linear = of_base[:3].tolist(), of_base[3:].tolist()
            move(linear, angular, joints(q.tolist(), v.tolist())[1])
            moved = pybullet.getLinkStates(body, links, 1, 1, client) if links else ()
            own = linear, angular
            twists.append(np.array([own, *((state[6], state[7]) for state in moved)]))
            frames = [orientation, *(state[1] for state in moved)]
    finally:
        move(*base, rates)
    shape = (converter.nv - converter.v0, len(frames), 2, 3)
    lengths = [1.0] * 6 if robot.floating else []
    for joint in robot.joints:
        if joint.kind != FIXED:
            # Bullet scales velocities by the length of the axis; see UNIT_AXIS_RTOL
            unit_axis = joint.kind != SPHERICAL
            lengths += [float(np.linalg.norm(joint.axis))] if unit_axis else [1.0] * 3
    array = np.array(twists).reshape(shape) / np.array(lengths).reshape(-1, 1, 1, 1)
    return array, np.array([matrix(frame) for frame in frames])
