"""Read loaded bodies out of a PyBullet world, once."""

import re
import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

import numpy as np
import pybullet

from bulletbridge.bullet.checks import (
    check_mass_matrix,
    compare_with_file,
    link_names,
    mass_matrix_at,
    names_of_links,
    with_idle_joints,
    without_false_limits,
)
from bulletbridge.bullet.coordinates import Converter, matrix
from bulletbridge.bullet.mass_matrix import live_mass_matrix
from bulletbridge.bullet.stamps import stamp
from bulletbridge.bullet.state import BulletBodies, FixedBase, Port, Properties, properties_of
from bulletbridge.bullet.tree import (
    FIXED,
    POSITIONS,
    RawBody,
    RawJoint,
    RawLink,
    grow,
)
from bulletbridge.bullet.worlds import body_ids, gravity, require_client, text_of
from bulletbridge.errors import ModelError, WorldError, warn_user
from bulletbridge.mechanism.records import PRISMATIC, REVOLUTE, SPHERICAL
from bulletbridge.numerics.records import are_numbers

__all__ = ["BulletBodies", "read_bullet"]

JOINT_KINDS = {
    pybullet.JOINT_REVOLUTE: REVOLUTE,
    pybullet.JOINT_PRISMATIC: PRISMATIC,
    pybullet.JOINT_SPHERICAL: SPHERICAL,
    pybullet.JOINT_FIXED: FIXED,
}
MULTIBODY, RIGID_BODY = 2, 1
"""Body types in getDynamicsInfo."""

MOST_COORDINATES = 121
"""Bullet's client arrays hold 128 numbers, of which a base takes 7; beyond, values are lost."""

NOTHING: Mapping[str, float] = MappingProxyType({})

SOURCES: dict[bytes, Path | None] = {}
"""Files that bodies came from, by their stamps, for whoever reads them again: Bullet has to write a
program of its whole world to tell them."""
CHECKED: dict[bytes, tuple[Properties, ...]] = {}
"""Masses and inertias with which bodies, by their stamps, were held against Bullet's velocities."""
MOST_KNOWN = 10_000
"""Bodies of which these are remembered."""
TOGETHER: dict[int, list[Path] | None] = {}
"""By client whose bodies are read together, the files of its world, once they were asked for."""


def read_bullet(
    bodies: int | Sequence[int] | Mapping[str, int],
    client: int = 0,
    *,
    joint_damping: bool = True,
    joint_friction: bool = False,
    link_damping: float = 0.0,
    armature: Mapping[str, float] = NOTHING,
) -> BulletBodies:
    """Read loaded bodies, with all that flags, scaling and changeDynamics did to them.

    Names of links and joints are those of the URDF, preceded by ``body/`` when there are several
    bodies. Links joined by fixed joints become one body of the mechanism. The bodies are left as
    they are, but for a user-data entry by which they are recognised later.

    Args:
        bodies: Id, ids, or ids by name.
        client: Physics client.
        joint_damping: Whether the ``damping`` of URDF joints acts.
        joint_friction: Whether their ``friction`` acts, which Bullet ignores.
        link_damping: Bullet's linear and angular damping of every link; its default is 0.04, and
            Bullet does not tell what it is.
        armature: Of joints by name [kg m² or kg], which Bullet does not know.

    Raises:
        WorldError: No such body or client.
        ModelError: A body that cannot be modelled.

    Warns:
        BulletBridgeWarning: Bullet uses other inertias than the URDF file gives; a joint moves no
            inertia, and gets a trace of armature.
    """
    if not pybullet.isConnected(client):
        raise WorldError(f"client {client} is not connected; call pybullet.connect first")
    if not (np.isfinite(link_damping) and link_damping >= 0.0):
        raise ModelError(f"link_damping is {link_damping}; give a number that is not negative")
    ids = name_bodies(bodies, client)
    robots = [read_body(name, body_id, client) for name, body_id in ids.items()]
    marks = [stamp(body_id, client) for body_id in ids.values()]
    sources = sources_of(robots, [mark for _, mark in marks], client)
    for robot, file in zip(robots, sources, strict=True):
        if file is not None:
            compare_with_file(robot, file)
    robots = [
        robot if file is None else without_false_limits(robot, file)
        for robot, file in zip(robots, sources, strict=True)
    ]
    mechanism = grow(
        robots,
        np.array(gravity(client)),
        joint_damping=joint_damping,
        joint_friction=joint_friction,
        link_damping=link_damping,
    )
    for name, value in armature.items():
        mechanism.axes["armature"][mechanism.joint(name).v] = value
    mechanism = with_idle_joints(mechanism, trusted=None not in sources)
    ports: list[Port] = []
    nq = nv = 0
    for robot, body_id, mark in zip(robots, ids.values(), marks, strict=True):
        converter = Converter(robot, nq, nv)
        base = None
        if not robot.floating:
            place = pybullet.getBasePositionAndOrientation(body_id, client)
            base = FixedBase(place, place)
        links = names_of_links(mechanism, robot, f"{robot.name}/" if len(robots) > 1 else "")
        carriers = tuple(mechanism.links[name].body for name in links)
        properties = properties_of(body_id, client)
        ports.append(
            Port(robot.name, body_id, client, *mark, converter, base, links, carriers, properties)
        )
        nq, nv = converter.nq, converter.nv
    world = BulletBodies(mechanism, ids, client, tuple(ports))
    read = [(mark, port.properties) for (_, mark), port in zip(marks, ports, strict=True)]
    if any(CHECKED.get(mark) != properties for mark, properties in read):
        M, _ = mass_matrix_at(mechanism, world.state()[0])
        rotors = np.diag(mechanism.axes["armature"])  # which Bullet does not have
        check_mass_matrix(mechanism, M, live_mass_matrix(world, robots) + rotors)
        if len(CHECKED) > MOST_KNOWN:
            CHECKED.clear()
        CHECKED.update(read)
    return world


def name_bodies(bodies: int | Sequence[int] | Mapping[str, int], client: int) -> dict[str, int]:
    """Ids by unique names; without names given, those of the robots.

    Raises:
        ModelError: None are given, what is given is no id, or one is given twice.
        WorldError: The client or a body does not exist.
    """
    require_client(client)
    if isinstance(bodies, Mapping):
        ids = {str(name): id_of(body_id) for name, body_id in bodies.items()}
    else:
        ids = {}
        for body_id in map(id_of, several_of(bodies)):
            name = first = robot_name(body_id, client)
            count = 1
            while name in ids:
                count += 1
                name = f"{first}_{count}"
            ids[name] = body_id
    if not ids:
        raise ModelError("no bodies given; pass the id that loadURDF returned")
    for name, body_id in ids.items():
        robot_name(body_id, client)
        if list(ids.values()).count(body_id) > 1:
            raise ModelError(
                f"body {body_id} ('{name}') is given more than once; give each id once"
            )
    return ids


def several_of(bodies: object) -> list[Any]:
    """Bodies as a list, also one alone."""
    if isinstance(bodies, str) or not isinstance(bodies, Sequence | np.ndarray):
        return [bodies]
    return [*bodies]


def id_of(given: object) -> int:
    """The number of a body.

    Raises:
        ModelError: It is none.
    """
    if isinstance(given, int) and not isinstance(given, bool):
        return given
    if isinstance(given, np.integer):
        return int(cast(Any, given))
    hint = "; bb.load(...) takes files" if isinstance(given, str) else ""
    raise ModelError(f"{given!r} is no body; pass the id that loadURDF returned{hint}")


def robot_name(body_id: int, client: int) -> str:
    """What the URDF calls the robot.

    Raises:
        WorldError: There is no such body.
    """
    present = body_ids(client)
    if body_id not in present:
        raise WorldError(
            f"client {client} has no body {body_id}; it has {present or 'none'}: pass the id that"
            " loadURDF returned, and the client it was loaded into"
        )
    return text_of(pybullet.getBodyInfo(body_id, client)[1]) or f"body_{body_id}"


def read_body(name: str, body_id: int, client: int) -> RawBody:
    """Everything constant about one body.

    Raises:
        ModelError: Not a multibody, too large, joints of an unknown kind.

    Warns:
        BulletBridgeWarning: A base that is fixed for want of mass.
    """
    base_name = text_of(pybullet.getBodyInfo(body_id, client)[0])
    kind = pybullet.getDynamicsInfo(body_id, -1, client)[10]
    if kind != MULTIBODY:
        remedy = (
            "load it without useMaximalCoordinates"
            if kind == RIGID_BODY
            else "soft bodies cannot be bridged"
        )
        raise ModelError(f"body '{name}' is not a multibody; {remedy}")
    base = raw_link(base_name, body_id, -1, client)
    if base.mass == 0.0 and np.any(base.moments) and base_name != "world":
        # useFixedBase, which says that this is meant, makes the moments zero too
        warn_user(
            f"body '{name}': base link '{base_name}' has no mass, so Bullet holds it fixed; give it"
            " a mass to let it move, or load it with useFixedBase=True to silence this"
        )
    count = pybullet.getNumJoints(body_id, client)
    carried = [raw_joint(name, body_id, i, client) for i in range(count)]
    joints, links = [joint for joint, _ in carried], [base, *(link for _, link in carried)]
    size = max(len(joints), sum(POSITIONS.get(joint.kind, 0) for joint in joints))
    if size > MOST_COORDINATES:
        raise ModelError(
            f"body '{name}' has {size} joint coordinates or links, of which"
            f" {sum(joint.kind == FIXED for joint in joints)} are on fixed joints; beyond"
            f" {MOST_COORDINATES} Bullet silently drops values; split it into several bodies joined"
            " by weld loops, or let bb.load read the file, which folds fixed links into others"
        )
    position, orientation = pybullet.getBasePositionAndOrientation(body_id, client)
    return RawBody(name, base.mass > 0.0, links, joints, matrix(orientation), np.array(position))


def raw_link(name: str, body_id: int, index: int, client: int) -> RawLink:
    """A link as getDynamicsInfo describes it.

    Raises:
        ModelError: A number of it is none, or too large.
    """
    mass, _, moments, com, axes, *_ = pybullet.getDynamicsInfo(body_id, index, client)
    require_place(f"link '{name}' (mass, moments, centre)", (mass, *moments, *com), axes)
    return RawLink(name, mass, np.array(moments), np.array(com), matrix(axes))


def raw_joint(body: str, body_id: int, index: int, client: int) -> tuple[RawJoint, RawLink]:
    """A joint as getJointInfo describes it, and the link that it carries."""
    info = pybullet.getJointInfo(body_id, index, client)
    name = text_of(info[1])
    if info[2] not in JOINT_KINDS:
        kind = "planar" if info[2] == pybullet.JOINT_PLANAR else f"type {info[2]}"
        raise ModelError(
            f"body '{body}': joint '{name}' is {kind}, which Bullet itself cannot report;"
            " bulletbridge.load makes two slides and a turn of it, with links without mass between,"
            " as a URDF may itself"
        )
    require_place(f"joint '{name}' (axis, place)", (*info[13], *info[14]), info[15])
    lower, upper = info[8:10]
    if lower > upper or info[2] == pybullet.JOINT_SPHERICAL:
        lower, upper = -np.inf, np.inf  # how Bullet says that there are none
    joint = RawJoint(
        name, JOINT_KINDS[info[2]], info[16] + 1, np.array(info[13]), np.array(info[14]),
        matrix(info[15]).T, lower, upper, info[6], info[7], info[10],
    )  # fmt: skip
    return joint, raw_link(text_of(info[12]), body_id, index, client)


def require_place(what: str, numbers: Sequence[float], quat: Sequence[float]) -> None:
    """Refuse numbers in Bullet that are not finite, too large, or a zero quaternion.

    Raises:
        ModelError: One is not finite or too large, or an orientation (4,) is none.
    """
    if are_numbers([*numbers, *quat], (len(numbers) + len(quat),)) and np.any(quat):
        return
    shown = ", ".join(f"{value:.6g}" for value in (*numbers, *quat))
    raise ModelError(
        f"{what} is {shown} in Bullet, which cannot be calculated with; correct the numbers in its"
        " file, all finite and none above 1e100"
    )


def loaded_files(client: int) -> list[Path]:
    """URDF files that bodies of this client were loaded from, as far as they can be found.

    Bullet remembers the names that loadURDF was given and tells them to ``saveWorld`` only. Search
    paths are not known; the working directory and PyBullet's own data are tried.
    """
    with tempfile.TemporaryDirectory() as directory:
        script = Path(directory) / "world.py"
        pybullet.saveWorld(str(script), client)
        # a server elsewhere writes the file there
        text = script.read_text(errors="replace") if script.exists() else ""
    names = dict.fromkeys(re.findall(r'p\.loadURDF\("(.*?)", ', text))
    places = [Path(), Path(pybullet.__file__).parent / "pybullet_data"]
    found = (place / name for name in names for place in places if (place / name).is_file())
    return list(dict.fromkeys(path.resolve() for path in found))


@contextmanager
def read_together(client: int) -> Generator[None]:
    """Have Bullet asked once what its world was loaded from, for all bodies that are read within.

    None are loaded within. Bullet writes its whole world at each such question.
    """
    TOGETHER[client] = None
    try:
        yield
    finally:
        del TOGETHER[client]


def sources_of(robots: Sequence[RawBody], marks: Sequence[bytes], client: int) -> list[Path | None]:
    """The file that each body came from, as far as that is known.

    Args:
        robots: The bodies.
        marks: Their stamps.
        client: Physics client.
    """
    if not all(mark in SOURCES for mark in marks):
        if len(SOURCES) > MOST_KNOWN:
            SOURCES.clear()
        files = TOGETHER.get(client)
        if files is None:
            files = loaded_files(client)
            if client in TOGETHER:
                TOGETHER[client] = files
        for robot, mark in zip(robots, marks, strict=True):
            SOURCES[mark] = file_of(robot, files)
    return [SOURCES[mark] for mark in marks]


def file_of(robot: RawBody, files: Sequence[Path]) -> Path | None:
    """The one of several files that has just the links of a body; None if there is not one."""
    names = sorted(link.name for link in robot.links)
    candidates = [path for path in files if sorted(link_names(path)) == names]
    return candidates[0] if len(candidates) == 1 else None
