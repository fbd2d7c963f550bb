"""Bullet worlds in which nothing acts on bodies unasked."""

import os
import sys
from numbers import Integral
from typing import Protocol

import pybullet

from bulletbridge.errors import WorldError
from bulletbridge.numerics.records import Vector

FASTEST = 1e6
"""Bullet clamps every rate to 100 per step unless told otherwise [rad/s or m/s]."""
BASE = -1


MOST_CLIENTS = 1024
"""Of one process, in PyBullet's source."""
_ours: set[int] = set()  # clients without a window that connect_direct has opened


def text_of(name: bytes) -> str:
    """A name as Bullet has it from a file: UTF-8, or else Latin-1, which any text is."""
    try:
        return name.decode()
    except UnicodeDecodeError:
        return name.decode("iso-8859-1")


def has_display() -> bool:
    """Whether Bullet can open its window; only X tells beforehand."""
    return not sys.platform.startswith("linux") or bool(os.environ.get("DISPLAY"))


def require_display(asked: str, remedy: str) -> None:
    """Raise where Bullet's window cannot open; trying would end the process.

    Raises:
        WorldError: There is no display for what was asked for; the remedy is told.
    """
    if not has_display():
        raise WorldError(f"{asked} needs a display and DISPLAY is not set; {remedy}")


def connect_window(asked: str, remedy: str) -> int:
    """A new client with Bullet's window.

    Raises:
        WorldError: There is no display for what was asked for, or Bullet opens no window; the
            remedy is told.
    """
    require_display(asked, remedy)
    try:
        client: int = pybullet.connect(pybullet.GUI)
    except pybullet.error as error:
        raise WorldError(f"Bullet cannot open its window ({error}); {remedy}") from None
    if client < 0:
        raise WorldError(f"Bullet cannot open its window; close the one that is open, or {remedy}")
    return client


def connect_direct() -> int:
    """A new client without a window.

    Raises:
        WorldError: Bullet has no room for another client.
    """
    client: int = pybullet.connect(pybullet.DIRECT)
    if client < 0:
        raise WorldError("Bullet refuses another DIRECT client; disconnect one that is not used")
    _ours.add(client)
    return client


def clients_of_the_program() -> list[int]:
    """The clients that the program itself has connected."""
    return [n for n in range(MOST_CLIENTS) if pybullet.isConnected(n) and n not in _ours]


def only_client() -> int | None:
    """The client that the program itself has connected; None if there is none.

    Raises:
        WorldError: There are several.
    """
    found = clients_of_the_program()
    if len(found) > 1:
        listed = ", ".join(map(str, found))
        raise WorldError(
            f"clients {listed} are connected; say which one is meant: load(..., {found[0]}), or"
            ' load(..., "new") for a world of its own'
        )
    return found[0] if found else None


def is_untouched(client: int) -> bool:
    """Whether a world has neither bodies nor gravity, as after ``connect``."""
    return not any(gravity(client)) and not pybullet.getNumBodies(client)


def disconnect(client: int) -> None:
    """Close a client unless it is closed already."""
    _ours.discard(client)
    if pybullet.isConnected(client):
        pybullet.disconnect(client)


class ClientObject(Protocol):
    """A ``BulletClient``, of pybullet_utils or ours."""

    _client: int


def require_client(given: int | ClientObject) -> int:
    """The number of a client that is connected."""
    number = getattr(given, "_client", given)
    if not isinstance(number, Integral):
        raise WorldError(
            f"{given!r} is no Bullet client: give the number that pybullet.connect returned, or a"
            " BulletClient; for a window, of pybullet.connect(pybullet.GUI)"
        )
    client = int(number)
    if not pybullet.isConnected(client):
        way = {pybullet.GUI: "GUI", pybullet.DIRECT: "DIRECT"}.get(client)
        meant = (
            f"; if a way to connect is meant, pass what pybullet.connect(pybullet.{way}) returned"
        )
        raise WorldError(
            f"there is no Bullet client {client}; connect first, or leave client out"
            f"{meant if way else ''}"
        )
    return client


def body_ids(client: int) -> list[int]:
    """Bullet's ids of all bodies, in its order."""
    count = pybullet.getNumBodies(physicsClientId=client)
    return [pybullet.getBodyUniqueId(place, physicsClientId=client) for place in range(count)]


def inertial_place(body: int, link: int, client: int) -> tuple[Vector, tuple[float, ...]]:
    """Position [m] and quaternion of a link's inertial frame, which poses of joints have led to."""
    if link == BASE:
        return pybullet.getBasePositionAndOrientation(body, physicsClientId=client)
    return pybullet.getLinkState(body, link, 0, 1, physicsClientId=client)[:2]


def gravity(client: int) -> tuple[float, float, float]:
    """Gravity of a world [m/s²]."""
    found = pybullet.getPhysicsEngineParameters(physicsClientId=client)
    x, y, z = (float(found[f"gravityAcceleration{axis}"]) for axis in "XYZ")
    return x, y, z


def time_step(client: int) -> float:
    """Step of a world [s]."""
    return pybullet.getPhysicsEngineParameters(physicsClientId=client)["fixedTimeStep"]


def remove_bodies(
    ids: dict[str, int], client: int, gravity_before: tuple[float, float, float]
) -> None:
    """Remove bodies from a world, and give it back the gravity that it had."""
    if not pybullet.isConnected(client):
        return
    for body in reversed(ids.values()):
        pybullet.removeBody(body, physicsClientId=client)
    pybullet.setGravity(*gravity_before, physicsClientId=client)


def make_passive(body: int, client: int) -> None:
    """Switch off motors and Bullet's damping of links, and lift its clamp on rates."""
    pybullet.changeDynamics(
        body,
        BASE,
        linearDamping=0.0,
        angularDamping=0.0,
        maxJointVelocity=FASTEST,
        physicsClientId=client,
    )
    for joint in range(pybullet.getNumJoints(body, physicsClientId=client)):
        kind = pybullet.getJointInfo(body, joint, physicsClientId=client)[2]
        if kind in (pybullet.JOINT_REVOLUTE, pybullet.JOINT_PRISMATIC):
            pybullet.setJointMotorControl2(
                body, joint, pybullet.VELOCITY_CONTROL, force=0, physicsClientId=client
            )
        elif kind == pybullet.JOINT_SPHERICAL:
            pybullet.setJointMotorControlMultiDof(
                body,
                joint,
                pybullet.POSITION_CONTROL,
                targetPosition=[0, 0, 0, 1],
                positionGain=0,
                velocityGain=0,
                force=[0, 0, 0],
                physicsClientId=client,
            )


def readable(ids: dict[str, int]) -> int | dict[str, int]:
    """Bodies as the reader takes them: a single robot has plain names."""
    return next(iter(ids.values())) if len(ids) == 1 else ids


def link_ids(ids: dict[str, int], client: int) -> dict[str, tuple[int, int]]:
    """Bullet's body id and link index by link name, ``body/link`` when there are several bodies."""
    found: dict[str, tuple[int, int]] = {}
    for name, body in ids.items():
        prefix = f"{name}/" if len(ids) > 1 else ""
        base = text_of(pybullet.getBodyInfo(body, physicsClientId=client)[0])
        found[prefix + base] = body, BASE
        for joint in range(pybullet.getNumJoints(body, physicsClientId=client)):
            info = pybullet.getJointInfo(body, joint, physicsClientId=client)
            found[prefix + text_of(info[12])] = body, joint
    return found


def joint_ids(ids: dict[str, int], client: int) -> dict[str, tuple[int, int]]:
    """Bullet's body id and joint index by joint name, ``body/joint`` with several bodies."""
    found: dict[str, tuple[int, int]] = {}
    for name, body in ids.items():
        prefix = f"{name}/" if len(ids) > 1 else ""
        for joint in range(pybullet.getNumJoints(body, physicsClientId=client)):
            info = pybullet.getJointInfo(body, joint, physicsClientId=client)
            found[prefix + text_of(info[1])] = body, joint
    return found
