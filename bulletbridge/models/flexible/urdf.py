"""A link of a URDF replaced by rigid segments with springs between them."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree as Xml

import numpy as np

from bulletbridge.bullet.checks import read_inertia
from bulletbridge.errors import ModelError
from bulletbridge.mechanism.segments import Beam, Lump, divide, second_moments
from bulletbridge.models.flexible.shapes import Cut, cut_shape, place_of, put_place
from bulletbridge.models.formats.robot import Inertial, Joint, Pose
from bulletbridge.models.formats.urdf_text import inertial_element, joint_element
from bulletbridge.models.model_spec import JointForce
from bulletbridge.numerics.records import Array

PREFIX = {"EI_z": "bend", "EI_y": "bend_y", "GJ": "twist"}
COLUMN = {"EI_z": 2, "EI_y": 1, "GJ": 0}
"""Joints of a direction, and the axis they turn about in the frame of the beam."""
ALIGNED = 0.99
"""Cosine from which a beam counts as parallel to the z axis of its link."""


@dataclass
class Chain:
    """What replaces a link: its joints by direction, notes for the user."""

    joints: dict[str, list[str]] = field(default_factory=lambda: {})
    notes: list[str] = field(default_factory=lambda: [])

    def forces(self, beam: Beam, damping: dict[str, float]) -> list[JointForce]:
        """Springs and dampers of the joints; damping [N m s/rad] by direction."""
        return [
            JointForce(name, stiffness=beam.stiffness(kind), damping=damping.get(kind, 0.0))
            for kind, names in self.joints.items()
            for name in names
        ]


def find_link(robot: Xml.Element, name: str) -> Xml.Element:
    """A link by name.

    Raises:
        ModelError: There is none.
    """
    links = {link.get("name", ""): link for link in robot.iterfind("link")}
    if name not in links:
        raise ModelError(f"unknown link '{name}'; there are: {', '.join(links)}")
    return links[name]


def end_of(robot: Xml.Element, link: str, joint: str | None) -> Array:
    """Where a link ends (3,) [m] in its frame: the joint that carries the next one.

    Raises:
        ModelError: There is no such joint, or none or several to choose from.
    """
    places: dict[str, Array] = {}
    for element in robot.iterfind("joint"):
        parent = element.find("parent")
        if parent is not None and parent.get("link") == link:
            places[element.get("name", "")] = place_of(element)[0]
    if joint is not None:
        if joint not in places:
            known = ", ".join(places) or "none"
            raise ModelError(f"joint '{joint}' is not on link '{link}'; those there: {known}")
        return places[joint]
    away = {name: p for name, p in places.items() if np.linalg.norm(p) > 0.0}
    if len(away) != 1:
        raise ModelError(
            f"where link '{link}' ends cannot be told from its joints ({', '.join(away) or 'none'})"
            "; name the joint at its end, or give its direction and length"
        )
    return next(iter(away.values()))


def beam_axes(direction: Array, normal: Array | None = None) -> Array:
    """Frame of a beam (3, 3) in its link's: x along it; z, about which it bends first.

    z is the link's z made perpendicular to the beam, its x if the beam is along its z, or given.

    Raises:
        ModelError: A vector is zero, or the normal is along the beam.
    """
    size = float(np.linalg.norm(direction))
    if not (np.isfinite(size) and size > 0.0):
        raise ModelError("the flexible link has no direction: its length is zero")
    x = np.asarray(direction, float) / size
    if normal is None:
        z = np.array([0.0, 0.0, 1.0] if abs(x[2]) < ALIGNED else [1.0, 0.0, 0.0])
    else:
        z = np.asarray(normal, float)
    z = z - (z @ x) * x
    size = float(np.linalg.norm(z))
    if not size > 1e-6:
        raise ModelError("the normal is along the flexible link; give one across it")
    z /= size
    return np.stack([x, np.cross(z, x), z], axis=1)


def inertial_of(link: Xml.Element, R: Array) -> Lump | None:
    """Mass, centre and second moments of a link in the axes R (3, 3) of the beam, or None.

    Raises:
        ModelError: The inertia is that of no body.
    """
    inertial = link.find("inertial")
    found = read_inertia(inertial)
    if inertial is None or found is None or not found.mass > 0.0 or not found.J.any():
        return None
    second = second_moments(R.T @ found.J @ R)
    if np.linalg.eigvalsh(second)[0] < -1e-9 * np.trace(second):
        raise ModelError(
            f"link '{link.get('name')}' has an inertia that no body can have; repair it first "
            "with `bulletbridge inertia`"
        )
    return Lump(found.mass, R.T @ place_of(inertial)[0], second)


def replace_link(
    robot: Xml.Element, link: Xml.Element, beam: Beam, R: Array, whole: Lump, path: Path
) -> Chain:
    """Put a chain in the place of a link, in the robot's tree.

    The last segment keeps the link's name and its frame, as it lies in the straight beam: what a
    file says about the link stays true of its end, joints on it included. The joint that carried
    the link carries the first segment.

    Args:
        robot: The tree, changed in place.
        link: One of its links.
        beam: What bends.
        R: Frame of the beam in the link's.
        whole: What is divided, in the axes of the beam.
        path: The file, beside which meshes are looked for.

    Raises:
        ModelError: The mass cannot be divided, a mesh cannot be read, or names are taken.
    """
    name, n = link.get("name", ""), beam.segments
    chain = Chain()
    names = [f"{name}_segment_{i + 1}" for i in range(n)]
    segments = [Xml.Element("link", name=segment) for segment in names]
    origins = [R[:, 0] * x for x in (0.0, *beam.springs)]
    origins[-1] = np.zeros(3)  # in the frame of the link itself
    pieces = divide(whole, beam.bounds)
    cut, keep = Cut(R, beam.bounds), list(link)
    for child in keep:
        link.remove(child)
    segments.append(link)
    for segment, piece, origin in zip(segments, pieces, origins, strict=True):
        own = Inertial(piece.mass, R @ piece.com - origin, R @ piece.J @ R.T)
        segment.append(inertial_element(own))
    for child in keep:
        if child.tag in ("visual", "collision"):
            cuts, note = cut_shape(child, cut, path, name)
            for k, shape in cuts:
                put_place(shape, place_of(shape)[0] - origins[k])
                segments[k].append(shape)
            if note and f"{name}: {note}" not in chain.notes:
                chain.notes.append(f"{name}: {note}")
        elif child.tag != "inertial":
            for segment in segments:  # <contact> and what else a link may say
                segment.append(deepcopy(child))
    for joint in robot.iterfind("joint"):
        carried = joint.find("child")
        if carried is not None and carried.get("link") == name:
            carried.set("link", names[0])
    new = _joints(chain, names, name, beam, R)
    taken = {element.get("name") for element in robot if element is not link}
    for element in (*segments[:-1], *new):
        if element.get("name") in taken:
            raise ModelError(
                f"the robot has a {element.tag} called '{element.get('name')}' already"
            )
    place = list(robot).index(link)
    for k, element in enumerate(segments[:-1]):
        robot.insert(place + k, element)
    robot.extend(new)
    return chain


def _joints(
    chain: Chain, names: Sequence[str], link: str, beam: Beam, R: Array
) -> list[Xml.Element]:
    """Joints between segments, with massless links where several turn at one place."""
    made: list[Xml.Element] = []
    kinds = list(beam.stiffnesses())
    tip = f"{link}_tip"
    step = np.diff(beam.springs, prepend=0.0)
    for i, reach in enumerate(step):
        parent, place = names[i], Pose(p=R[:, 0] * reach)
        for kind in kinds:
            joint = f"{link}_{PREFIX[kind]}_{i + 1}"
            child = names[i + 1] if i + 1 < len(names) else tip
            if kind != kinds[-1]:
                child = f"{joint}_pivot"
            if kind != kinds[-1] or child == tip:
                made.append(Xml.Element("link", name=child))
                made[-1].append(inertial_element(None))
            axis = R[:, COLUMN[kind]]
            made.append(joint_element(Joint(joint, "revolute", parent, child, place, axis)))
            chain.joints.setdefault(kind, []).append(joint)
            parent, place = child, Pose()
    back = Pose(p=-R[:, 0] * beam.springs[-1])
    made.append(joint_element(Joint(f"{link}_tip_frame", "fixed", tip, link, back)))
    return made
