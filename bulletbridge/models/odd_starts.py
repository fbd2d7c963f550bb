"""Robots that start as nobody means them: deep inside, far away, torn apart, or without shapes."""

from collections.abc import Mapping

import numpy as np
import pybullet

from bulletbridge.bullet.worlds import body_ids, text_of
from bulletbridge.errors import warn_user
from bulletbridge.inequalities.motor_limit_rows import FASTEST_RECOVERY
from bulletbridge.mechanism.records import BUSHING
from bulletbridge.models.formats.robot import listed
from bulletbridge.models.model_spec import EARTH, ModelSpec
from bulletbridge.models.odd_inertias import extent
from bulletbridge.numerics.records import Array
from bulletbridge.system.system import System

NOTICED = 0.01
"""Depth inside another body, as a share of a robot's size, of which somebody should know."""
FAR, AWAY = 100.0, 100.0
"""Distance from the origin [m], and in mechanism lengths, beyond which millimetres are likely."""
FALLS = 10.0
"""So many falls through the robot's own size, or the ways apart, are more than is meant."""
SHOWN = 3
"""Bushings that the warning names."""


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


def tell_of_strained_bushings(system: System) -> None:
    """Warn of bushings whose points are so far apart at the start that they throw the robot."""
    apart: dict[str, tuple[float, float]] = {}  # way [m] and energy [J]
    for name, spring in system.spring_forces().items():
        if spring.kind == BUSHING:
            way: Array = np.asarray(spring.position)[3:]
            force: Array = np.asarray(spring.force)[3:]
            apart[name] = float(np.linalg.norm(way)), 0.5 * abs(float(way @ force))
    weight = -EARTH[2] * float(system.mechanism.bodies["mass"].sum())
    energy = sum(held for _, held in apart.values())
    size = max((extent(system), *(way for way, _ in apart.values())))
    if not energy > FALLS * weight * size:
        return
    worst = sorted(apart, key=lambda name: -apart[name][1])
    named = listed((f"'{name}' ({apart[name][0]:.2g} m)" for name in worst), SHOWN)
    warn_user(
        f"bushings start apart: {named} hold {energy:.2g} J, as if it had fallen"
        f" {energy / weight:.2g} m, and throw it at the first steps. They close no loop: write"
        " them as loop joints, which assembling closes, or start it where they are shut"
    )
