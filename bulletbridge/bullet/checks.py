"""Has Bullet what the user meant, and was it read right? No calls into Bullet."""

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import numpy as np

from bulletbridge.bullet.tree import RawBody, RawLink, grow
from bulletbridge.bullet.xml_file import read_xml
from bulletbridge.errors import ModelError, warn_user
from bulletbridge.mechanism.displacement import with_unit_quaternions
from bulletbridge.mechanism.dynamics import mass_matrix
from bulletbridge.mechanism.frames import rpy_matrix
from bulletbridge.mechanism.kinematics import kinematics
from bulletbridge.mechanism.model import WORLD, Mechanism
from bulletbridge.mechanism.records import FREE, POSE, PRISMATIC
from bulletbridge.numerics.records import Array, Ints

POINT = 1e-7
"""Radius [m] up to which all of a link's mass may lie about its centre, to be a point of mass."""

MASSLESS = 1e-13
"""Inertia about an axis over all inertia carried that counts as none; round-off is 1e-15."""

SHOWN = 3
"""Links whose inertias a warning writes out."""

FILE_RTOL = 1e-3
"""Change of an inertia that is worth a warning; Bullet's own diagonalisation changes it by 1e-6."""

MASS_MATRIX_RTOL = 1e-6

TRACE = 1e-6
"""Armature of a joint that moves nothing, in the least inertia that another of its kind moves."""


class FileInertia(NamedTuple):
    """The <inertial> of a link in a URDF file."""

    mass: float
    J: Array  # (3, 3) about the centre of mass, link axes

    def is_possible(self) -> bool:
        """Whether a body can have it, or it is that of a point.

        Bullet loads the others as zero, without a word.
        """
        return can_be_had(self.J) or bool(np.abs(self.J).max() <= self.mass * POINT**2)


class FileFacts(NamedTuple):
    """What a URDF file says of its robot."""

    links: list[str]  # their names
    inertias: dict[str, FileInertia | None]  # of every link; None where it has no <inertial>
    endless: frozenset[str | None]  # names of joints that are continuous


def can_be_had(J: Array) -> bool:
    """Whether a body can have a tensor: finite, principal moments like sides of a triangle."""
    if not np.isfinite(J).all():
        return False
    a, b, c = np.linalg.eigvalsh(J)
    return bool(a >= 0.0 and a + b >= c)


def with_idle_joints(
    mechanism: Mechanism, *, trusted: bool, start: Array | None = None
) -> Mechanism:
    """The mechanism with a trace of armature on every joint that would move no inertia.

    Files have them: a last link without mass, a point of mass on its joint's axis, two hinges on
    one axis with nothing between. Their motion is undetermined. A joint that carries nothing is
    pulled by nothing, so that with the trace it stays where it is until something drives it, and no
    other joint feels it; Bullet locks such joints. Joints are asked from the root outwards in a
    general configuration, whether they move more than those before them do already; or at the
    start, where a robot without loops would have no equations else, as one whose head is a point
    of mass on a neck of three hinges.

    Args:
        mechanism: What was read.
        trusted: Whether inertias are known to be those of the file; otherwise one that is zero on
            a link with mass may be what Bullet has made of an impossible one.
        start: Positions (nq,) at which to ask; a general configuration unless given.

    Raises:
        ModelError: A base that floats has no inertia about an axis, or the joint that has none
            carries a mass that is not trusted.

    Warns:
        BulletBridgeWarning: Joints have got the trace; it names them and how much.
    """
    q = general_configuration(mechanism) if start is None else start
    M, poses = mass_matrix_at(mechanism, q)
    carried = np.trace(poses["carried_J"], axis1=1, axis2=2)
    idle = _idle(mechanism, M, carried)
    if not idle:
        return mechanism
    axes = mechanism.axes.copy()
    busy = [k for k in range(mechanism.nv) if k not in idle]
    names: dict[str, float] = {}
    for joint in mechanism.joints.values():
        rates = list(range(joint.v.start, joint.v.stop))
        missing = [k for k in rates if k in idle]
        if not missing:
            continue
        body = axes["body"][rates[0]]
        if joint.kind == "free" or (poses["carried_m"][body] > 0.0 and not trusted):
            raise no_inertia(mechanism, joint.name, M[missing[0], missing[0]])
        alike = [k for k in busy if _slides(mechanism, k) == _slides(mechanism, rates[0])]
        least = min((float(M[k, k]) for k in alike), default=1.0)
        axes["armature"][rates] = names[joint.name] = TRACE * least
    shown = "; ".join(
        ", ".join(f"'{name}'" for name, own in names.items() if own == value) + f" ({value:.1e})"
        for value in dict.fromkeys(names.values())
    )
    one = len(names) == 1
    verb = "moves" if one else "move"
    stays = ", and stay where they are until something drives them" if start is None else ""
    there = "" if start is None else f" of {'its' if one else 'their'} own at the start"
    warn_user(
        f"{'joint' if one else 'joints'} {shown} {verb} no inertia{there}: what"
        f" {'it carries' if one else 'they carry'} has no mass, or none off the axis. Bullet locks"
        f" such joints; here they have a trace of armature [kg m² or kg], as told{stays}. Give the"
        " links an <inertial>, the joints an armature (loops file: joints: {NAME: {armature:"
        " ...}}), or make them fixed"
    )
    return replace(mechanism, axes=axes)


def _idle(mechanism: Mechanism, M: Array, carried: Array) -> list[int]:
    """Rates that move nothing which those before them do not move, by elimination of M."""
    idle: list[int] = []
    for tree in trees(mechanism):
        left = M[np.ix_(tree, tree)]
        for n, k in enumerate(tree.tolist()):
            body = mechanism.axes[k]["body"]
            scale = max(float(M[k, k]), 0.0 if _slides(mechanism, k) else float(carried[body]))
            if left[n, n] <= MASSLESS * scale:
                idle.append(k)
                continue
            left = left - np.outer(left[:, n], left[n]) / left[n, n]
    return idle


def _slides(mechanism: Mechanism, k: int) -> bool:
    """Whether a rate is one of translation."""
    body = mechanism.bodies[mechanism.axes[k]["body"]]
    return bool(body["joint"] == PRISMATIC or (body["joint"] == FREE and k >= body["v"] + 3))


def trees(mechanism: Mechanism) -> list[Ints]:
    """Numbers of the rates of every tree that hangs from the world."""
    root = np.arange(mechanism.nv)
    for k, below in enumerate(mechanism.axes["below"]):
        if below >= 0:
            root[k] = root[below]
    return [np.flatnonzero(root == one) for one in np.unique(root)]


def no_inertia(mechanism: Mechanism, name: str, inertia: float) -> ModelError:
    """The error for a joint that moves nothing, and may not be meant to."""
    body = mechanism.axes[mechanism.joints[name].v.start]["body"]
    links = [link.name for link in mechanism.links.values() if link.body == body]
    floats = mechanism.joints[name].kind == "free"
    other = "have the base stand still (fixed_base=True)" if floats else "make the joint fixed"
    return ModelError(
        f"joint '{name}' moves no inertia ({inertia:.3g}): link {', '.join(map(repr, links))} and"
        " what it carries has none, or Bullet zeroed it. Give it an <inertial> with a positive mass"
        f" and a tensor whose principal moments obey the triangle inequality, or {other};"
        " repair_inertia=True does the first where the tensor is that of a line"
    )


def check_mass_matrix(mechanism: Mechanism, M: Array, M_bullet: Array) -> None:
    """Compare two mass matrices (nv, nv), entry by entry in units of their diagonals.

    Raises:
        ModelError: They differ; the message names the joints and how much.
    """
    if len(M) == 0:
        return
    scale = np.sqrt(np.maximum(np.diag(M), 1e-12 * np.diag(M).max()))
    error = np.abs(M - M_bullet) / np.outer(scale, scale)
    i, j = np.unravel_index(np.argmax(error), error.shape)
    if error[i, j] <= MASS_MATRIX_RTOL:
        return
    joints = mechanism.joints.values()
    names = [joint.name for joint in joints for _ in range(joint.v.start, joint.v.stop)]
    raise ModelError(
        f"mass matrix between joints '{names[i]}' and '{names[j]}' is {M[i, j]:.12g} as read and"
        f" {M_bullet[i, j]:.12g} from Bullet's link velocities (relative {error[i, j]:.1e}, limit"
        f" {MASS_MATRIX_RTOL:.0e}); please report this with the URDF, and load the body in a fresh"
        " client to see whether it stays"
    )


def mass_matrix_at(mechanism: Mechanism, q: Array) -> tuple[Array, np.ndarray]:
    """M (nv, nv) and the poses it was computed with."""
    bodies = mechanism.bodies
    poses = np.zeros(len(bodies), POSE)
    poses["R"] = np.eye(3)
    M = np.zeros((mechanism.nv, mechanism.nv))
    axes = mechanism.axes.copy()
    beams, stations = mechanism.beams, mechanism.stations  # Bullet has none
    kinematics(bodies, beams, stations, q, poses, axes)
    mass_matrix(bodies, beams, stations, poses, axes, M)
    return np.tril(M) + np.tril(M, -1).T, poses


def general_configuration(mechanism: Mechanism) -> Array:
    """Positions (nq,) in which no axes are lined up by chance; the same every time."""
    q = np.random.default_rng(0).uniform(0.3, 0.7, mechanism.nq)
    return with_unit_quaternions(mechanism, q)


def compare_with_file(robot: RawBody, path: Path) -> None:
    """Compare the inertia of every moving link with that in the file the body came from.

    What links have that are fixed to each other matters in sum alone: a frame without a body of its
    own, with some tensor that none can have, does no harm on one that is heavier.

    Raises:
        ModelError: Bullet made a tensor zero because no body can have the one in the file, nor can
            what is rigidly joined have them all together.

    Warns:
        BulletBridgeWarning: Bullet uses other inertias.
    """
    in_file = facts_of(path).inertias
    links = robot.links if robot.floating else robot.links[1:]
    changes: list[str] = []
    without = list[str]()
    summed: dict[str, Array] | None = None  # with those that Bullet threw away, once it is asked
    for link in links:
        found = in_file.get(link.name)
        if found is None:
            if link.mass > 0.0 and link.name in in_file:
                without.append(f"'{link.name}'")
            continue
        # Bullet takes the mass from the file under any flag: another mass is the user's own doing
        if link.mass == 0.0 or not np.isclose(link.mass, found.mass, rtol=1e-9):
            continue
        if not np.any(link.moments) and np.abs(found.J).max() <= found.mass * POINT**2:
            continue  # a point of mass, for Bullet too
        J = (link.R * link.moments) @ link.R.T
        if not np.any(link.moments) and not found.is_possible():
            summed = summed or joined_inertias(robot, in_file)
            if not can_be_had(summed[link.name]):
                raise ModelError(impossible_tensor(robot, link, found, path))
        size = max(np.abs(J).max(), np.abs(found.J).max())
        if np.abs(J - found.J).max() > FILE_RTOL * size:
            changes.append(f"link '{link.name}' from {entries(found.J)} to {entries(J)}")
    if without:
        warn_user(
            f"body '{robot.name}': links without <inertial> in {path.name}, to which Bullet gives"
            f" 1 kg and 1 kg m²: {', '.join(without[:SHOWN])}"
            f"{f' and {len(without) - SHOWN} more' if len(without) > SHOWN else ''}; give them"
            " their own (bulletbridge inertia estimates it from their shapes)"
        )
    if changes:
        rest = f"; and {len(changes) - SHOWN} more links" if len(changes) > SHOWN else ""
        warn_user(
            f"body '{robot.name}': Bullet does not use the inertia of {path.name}"
            f" ([ixx iyy izz ixy ixz iyz] in link axes, kg m²): {'; '.join(changes[:SHOWN])}{rest}."
            " Load it with flags=pybullet.URDF_USE_INERTIA_FROM_FILE,"
            " or ignore this if you changed it yourself"
        )


def joined_inertias(robot: RawBody, in_file: Mapping[str, FileInertia | None]) -> dict[str, Array]:
    """Tensor (3, 3) of all that is rigidly joined to each link, with those in the file.

    About the common centre of mass, zero of what is fixed to the world.
    """
    mechanism = grow(
        [robot],
        np.zeros(3),
        joint_damping=False,
        joint_friction=False,
        link_damping=0.0,
    )
    J: Array = mechanism.bodies["J"].copy()
    names = names_of_links(mechanism, robot, "")
    named = {link.name: name for link, name in zip(robot.links, names, strict=True)}
    for link in robot.links:
        found, placed = in_file.get(link.name), mechanism.links[named[link.name]]
        if found is not None and placed.body > 0 and not np.any(link.moments):
            J[placed.body] += placed.R @ found.J @ placed.R.T
    return {name: J[mechanism.links[own].body] for name, own in named.items()}


def names_of_links(mechanism: Mechanism, robot: RawBody, prefix: str) -> tuple[str, ...]:
    """What the mechanism calls a robot's links, the base first."""
    names = [prefix + link.name for link in robot.links]
    # a link called world that is elsewhere goes by another name
    elsewhere = f"{robot.name}/{WORLD}"
    return tuple(elsewhere if n == WORLD and elsewhere in mechanism.links else n for n in names)


def impossible_tensor(robot: RawBody, link: RawLink, found: FileInertia, path: Path) -> str:
    """Message for a tensor that Bullet threw away."""
    return (
        f"body '{robot.name}': Bullet made the inertia of link '{link.name}' zero, because no body"
        f" can have the one in {path.name}: [ixx iyy izz ixy ixz iyz] = {entries(found.J)} kg m²;"
        " no principal moment may be negative or larger than the sum of the others. Take the"
        " nearest possible one with repair_inertia=True (--repair-inertia), or correct it in the"
        f" file ('bulletbridge inertia {path.name} -o NEW' writes one with the inertia of the"
        " link's shape), or give one with changeDynamics(localInertiaDiagonal=...)"
    )


def entries(J: Array) -> str:
    """The six numbers of a tensor."""
    upper = (J[0, 0], J[1, 1], J[2, 2], J[0, 1], J[0, 2], J[1, 2])
    return "[" + " ".join(f"{value:.3g}" for value in upper) + "]"


def without_false_limits(robot: RawBody, path: Path) -> RawBody:
    """The body without limits on joints that its URDF file calls continuous.

    Bullet tells the numbers of their ``<limit>`` as limits, and lets them turn all the same.
    """
    endless = facts_of(path).endless
    return robot._replace(
        joints=[
            joint._replace(lower=-np.inf, upper=np.inf) if joint.name in endless else joint
            for joint in robot.joints
        ]
    )


def facts_of(path: Path) -> FileFacts:
    """What a URDF file says of its robot, parsed once as long as the file stays as it is."""
    status = path.stat()
    return _facts_of(path, (status.st_mtime_ns, status.st_size))


@lru_cache(maxsize=256)
def _facts_of(path: Path, _version: tuple[int, int]) -> FileFacts:
    root = read_xml(path)
    names = [str(link.get("name")) for link in root.iter("link")]
    inertias = {
        str(link.get("name")): read_inertia(link.find("inertial")) for link in root.findall("link")
    }
    continuous = [joint for joint in root.iterfind("joint") if joint.get("type") == "continuous"]
    return FileFacts(names, inertias, frozenset(joint.get("name") for joint in continuous))


def link_names(path: Path) -> list[str]:
    """Names of the links in a URDF file; empty when it cannot be read."""
    try:
        return facts_of(path).links
    except (OSError, ModelError):
        return []


def read_inertia(element: ElementTree.Element | None) -> FileInertia | None:
    """Mass and tensor of an <inertial>; entries that are not numbers become NaN, as in Bullet."""
    if element is None:
        return None
    origin, mass, tensor = (element.find(tag) for tag in ("origin", "mass", "inertia"))
    R = np.eye(3)
    turns = [number(x) for x in origin.get("rpy", "").split()] if origin is not None else []
    if len(turns) == 3:  # else Bullet leaves it out
        R = rpy_matrix(np.array(turns))
    xx, yy, zz, xy, xz, yz = (
        number(tensor.get(key, "0")) if tensor is not None else 0.0
        for key in ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")
    )
    J = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    return FileInertia(number(mass.get("value", "0")) if mass is not None else 0.0, R @ J @ R.T)


def number(text: str) -> float:
    """A number, or NaN."""
    try:
        return float(text)
    except ValueError:
        return np.nan
