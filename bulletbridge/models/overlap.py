"""Robots that start where nobody means them: deep inside, or far away; and that touch nothing."""

from collections.abc import Mapping

import numpy as np
import pybullet

from bulletbridge.bullet.worlds import body_ids, text_of
from bulletbridge.errors import warn_user
from bulletbridge.inequalities.motor_limit_rows import FASTEST_RECOVERY
from bulletbridge.models.model_spec import ModelSpec
from bulletbridge.system.system import System

NOTICED = 0.01
"""Depth inside another body, as a share of a robot's size, of which somebody should know."""
FAR, AWAY = 100.0, 100.0
"""Distance from the origin [m], and in mechanism lengths, beyond which millimetres are likely."""


def tell_of_far_robots(system: System, spec: ModelSpec) -> None:
    """Warn of a robot, or a joint of it, that is as far away as one whose place is in mm."""
    joints = system.mechanism.joints.values()
    floating = [system.q[joint.q][:3] for joint in joints if joint.kind == "free"]
    places = np.array([*(body.xyz for body in spec.bodies), *floating])
    away = np.linalg.norm(places, axis=1)
    if away.max() > max(FAR, AWAY * system.encoded.length):
        x, y, z = places[away.argmax()]
        warn_user(
            f"a robot starts at ({x:g}, {y:g}, {z:g}) m, far from the world's origin: if"
            f" millimetres are meant, write ({x / 1e3:g}, {y / 1e3:g}, {z / 1e3:g})"
        )
        return
    bodies = system.mechanism.bodies
    heavy = bodies[bodies["mass"] > 0.0]
    gyration = np.linalg.eigvalsh(heavy["J"])[:, -1] / heavy["mass"]
    away = np.linalg.norm(bodies["p"], axis=1)
    if away.max() > max(FAR, AWAY * np.sqrt(gyration.max(initial=0.0))):
        moved = system.mechanism.axes["body"]
        name = next(joint.name for joint in joints if moved[joint.v.start] == away.argmax())
        warn_user(
            f"joint '{name}' is {away.max():.4g} m from the link that carries it: lengths are"
            " metres, not mm"
        )


def tell_of_shapeless(ids: Mapping[str, int], client: int) -> None:
    """Warn of robots whose contacts are asked for, and which have no shape that could touch.

    Of single links nothing is told: shafts and rods within a robot need none.
    """
    bare = [
        name
        for name, body in ids.items()
        if not any(
            pybullet.getCollisionShapeData(body, link, physicsClientId=client)
            for link in range(-1, pybullet.getNumJoints(body, client))
        )
    ]
    if bare:
        warn_user(
            f"contacts=True finds no contact of {', '.join(map(repr, bare))}: none of the links has"
            " a collision shape; give them <collision> beside <visual> in the URDF"
        )


def tell_of_overlap(ids: Mapping[str, int], client: int) -> None:
    """Warn of the link that is deepest inside a body beside some robots, if that is deep.

    Args:
        ids: Bullet's ids of the robots by name.
        client: Their world.
    """
    others = {*body_ids(client)}
    deepest, told = 0.0, ""
    for name, own in ids.items():
        for other in others - set(ids.values()):
            for point in pybullet.getClosestPoints(own, other, 0.0, physicsClientId=client) or ():
                if point[8] < deepest:
                    deepest = point[8]
                    told = f"'{_name_of(own, point[3], client)}' of '{name}' starts"
                    told += f" {-deepest:.2g} m inside '{_name_of(other, point[4], client)}'"
                    told += f" of body {other}"
    if told and -deepest > NOTICED * max(_size(own, client) for own in ids.values()):
        warn_user(
            f"{told}; it is taken out step by step, at no more than {FASTEST_RECOVERY:g} mechanism"
            " lengths per second: put the robot elsewhere by load(..., base_position=(x, y, z))"
        )


def _name_of(body: int, link: int, client: int) -> str:
    """Name of a link, or of the base, in the robot's file."""
    if link < 0:
        return text_of(pybullet.getBodyInfo(body, client)[0])
    return text_of(pybullet.getJointInfo(body, link, client)[12])


def _size(body: int, client: int) -> float:
    """Diagonal of the box around a body's links [m]."""
    links = range(-1, pybullet.getNumJoints(body, client))
    boxes = np.array([pybullet.getAABB(body, k, client) for k in links])
    return float(np.linalg.norm(boxes[:, 1].max(0) - boxes[:, 0].min(0)))
