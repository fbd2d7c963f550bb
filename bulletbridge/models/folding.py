"""Links on fixed joints folded into those that carry them, where a robot has too many for Bullet.

Bullet cannot tell the states of joints beyond its 128 entries, moving or not, and its own merging
of fixed links takes wrong inertias. So the URDF is written anew: one link in the place of all that
are rigidly joined, with their masses, inertias and shapes.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import numpy as np

from bulletbridge.bullet.checks import read_inertia
from bulletbridge.bullet.reader import MOST_COORDINATES
from bulletbridge.constraints.force_elements import LinePoint, Round, Spring
from bulletbridge.constraints.joints import Frame
from bulletbridge.mechanism.frames import inertia_at, matrix_rpy, rpy_matrix, triple
from bulletbridge.mechanism.model import Link, Mechanism
from bulletbridge.models.formats.loadable import write_urdf
from bulletbridge.models.formats.urdf_text import exact
from bulletbridge.models.formats.urdf_tree import UrdfTree, end
from bulletbridge.models.formats.written import robot_to_write
from bulletbridge.models.model_spec import BodySpec, ModelSpec
from bulletbridge.models.urdf_file import ENTRIES
from bulletbridge.numerics.records import Array

Pose = tuple[Array, Array]
"""Rotation (3, 3) and position (3,) [m] of a frame in another."""


def with_folded_links(spec: ModelSpec, folder: Path) -> ModelSpec:
    """The model with URDFs that Bullet can read, where links on fixed joints make them too large.

    Args:
        spec: The model; one whose robots are small enough is returned as it is.
        folder: Where changed URDFs go.

    Raises:
        ModelError: A URDF cannot be read or written.
    """
    bodies, notes, folded = list(spec.bodies), list(spec.notes), dict(spec.folded)
    for k, body in enumerate(spec.bodies):
        if body.urdf.read_bytes().count(b"<joint") <= MOST_COORDINATES or spec.beams:
            continue
        tree = UrdfTree(body.urdf, robot_to_write(body.urdf))
        count = len(tree.joints)
        if count <= MOST_COORDINATES:
            continue
        found = fold(tree)
        urdf = folder.resolve() / f"folded_{k}_{body.urdf.name}"
        said = (
            f"{len(found)} of {count} links are on fixed joints, and part of those that carry them"
            f" now: Bullet holds at most {MOST_COORDINATES}"
        )
        write_urdf(tree.robot, urdf, [said])
        notes.append(said)
        bodies[k] = replace(body, urdf=urdf)
        prefix = f"{body.name}/" if len(spec.bodies) > 1 else ""
        folded |= {prefix + name: _scaled(place, prefix, body) for name, place in found.items()}
    if len(folded) == len(spec.folded):
        return spec
    return replace(
        spec,
        bodies=tuple(bodies),
        constraints=tuple(_carried(each, folded) for each in spec.constraints),
        elements=tuple(_carried(each, folded) for each in spec.elements),
        wrenches=tuple(_carried(each, folded) for each in spec.wrenches),
        folded=folded,
        notes=tuple(notes),
    )


def with_folded_names(mechanism: Mechanism, folded: Mapping[str, Frame]) -> Mechanism:
    """The mechanism with the links that were folded, each as a frame on what carries it."""
    links = dict(mechanism.links)
    for name, frame in folded.items():
        link, xyz = mechanism.link(frame.link), np.array(frame.xyz)
        R = np.asarray(link.R @ rpy_matrix(frame.rpy), np.float64)
        links[name] = Link(name, link.body, R, link.p + link.R @ xyz)
    return replace(mechanism, links=links) if folded else mechanism


def fold(tree: UrdfTree) -> dict[str, Frame]:
    """Fold all links on fixed joints, in place; where each is on what carries it, by its name."""
    above, places = tree.above, dict[str, tuple[str, Pose]]()
    for name in tree.links:
        line = [name]
        while line[-1] in above and line[-1] not in places:
            line.append(end(above[line[-1]], "parent"))
        for link in reversed(line):
            places.setdefault(link, _place(tree, link, places))
    for name, (carrier, pose) in places.items():
        joint = above.get(name)
        if joint is not None and joint.get("type") != "fixed":
            parent, place = places[end(joint, "parent")]
            if parent != end(joint, "parent"):
                _element(joint, "parent").set("link", parent)
                _move(tree, joint, place)
        elif carrier != name:
            _join(tree, tree.links[carrier], tree.links[name], pose)
    for name, (carrier, _) in places.items():
        if carrier != name:
            tree.robot.remove(above[name])
            tree.robot.remove(tree.links[name])
    return {
        name: Frame(carrier, tuple(pose[1].tolist()), matrix_rpy(pose[0]))
        for name, (carrier, pose) in places.items()
        if carrier != name
    }


def _place(tree: UrdfTree, link: str, places: Mapping[str, tuple[str, Pose]]) -> tuple[str, Pose]:
    """What carries a link, and where on it."""
    joint = tree.above.get(link)
    if joint is None or joint.get("type") != "fixed":
        return link, (np.eye(3), np.zeros(3))
    carrier, pose = places[end(joint, "parent")]
    return carrier, _after(pose, _origin(tree, joint))


def _after(first: Pose, second: Pose) -> Pose:
    """The second frame, given in the first one, in what that is given in."""
    return np.asarray(first[0] @ second[0], np.float64), first[1] + first[0] @ second[1]


def _origin(tree: UrdfTree, owner: Xml.Element) -> Pose:
    """Pose that an element's <origin> gives."""
    xyz, rpy = tree.origin(owner.find("origin"), f"{owner.tag} '{owner.get('name', '')}'")
    return rpy_matrix(rpy), np.array(xyz)


def _element(owner: Xml.Element, tag: str) -> Xml.Element:
    """A part of an element, added if it is missing."""
    found = owner.find(tag)
    return Xml.SubElement(owner, tag) if found is None else found


def _move(tree: UrdfTree, owner: Xml.Element, pose: Pose) -> None:
    """Give what is placed in a frame its place where that frame is given."""
    R, p = _after(pose, _origin(tree, owner))
    origin = _element(owner, "origin")
    origin.set("xyz", exact(p))
    origin.set("rpy", exact(matrix_rpy(R)))


def _join(tree: UrdfTree, carrier: Xml.Element, link: Xml.Element, pose: Pose) -> None:
    """Let a link have the mass and shapes of another one that is rigidly on it."""
    for shape in [*link.findall("visual"), *link.findall("collision")]:
        _move(tree, shape, pose)
        carrier.append(shape)
    inertial = link.find("inertial")
    added = read_inertia(inertial)
    if inertial is None or added is None:
        mass, J, centre = 1.0, np.eye(3), np.zeros(3)  # what Bullet gives a link without any
    else:
        mass, J, centre = added.mass, added.J, _origin(tree, inertial)[1]
    if mass == 0.0:
        return
    J, centre = pose[0] @ J @ pose[0].T, pose[1] + pose[0] @ centre
    own = carrier.find("inertial")
    known = read_inertia(own)
    if own is None or known is None:
        own, before, tensor, at = Xml.SubElement(carrier, "inertial"), 1.0, np.eye(3), np.zeros(3)
        if carrier.get("name") == "world":
            before, tensor = 0.0, np.zeros((3, 3))
    else:
        before, tensor, at = known.mass, known.J, _origin(tree, own)[1]
    total = before + mass
    com = (before * at + mass * centre) / total
    whole = tensor + J + before * inertia_at(at - com) + mass * inertia_at(centre - com)
    origin = _element(own, "origin")
    origin.set("xyz", exact(com))
    origin.set("rpy", "0 0 0")
    _element(own, "mass").set("value", repr(float(total)))
    for key, i, j in ENTRIES:
        _element(own, "inertia").set(key, repr(float(whole[i, j])))


def _scaled(place: Frame, prefix: str, body: BodySpec) -> Frame:
    """A frame on a robot as the model names its links, and as large as it loads it."""
    xyz = triple(body.scale * number for number in place.xyz)
    return Frame(prefix + place.link, xyz, place.rpy)


def _carried(each: Any, folded: Mapping[str, Frame]) -> Any:
    """A constraint or element whose frames are on links that there still are."""
    for side in ("a", "b", "frame", "axes"):
        frame = getattr(each, side, None)
        if isinstance(frame, Frame):
            each = replace(each, **{side: _on_carrier(frame, folded)})
    if isinstance(each, Spring):
        each = replace(each, via=tuple(_point_on_carrier(point, folded) for point in each.via))
    return each


def _point_on_carrier(point: LinePoint, folded: Mapping[str, Frame]) -> LinePoint:
    """What a line goes through or round, on a link that there still is."""
    if isinstance(point, Round):
        return replace(point, frame=_on_carrier(point.frame, folded))
    return _on_carrier(point, folded) if isinstance(point, Frame) else point


def _on_carrier(frame: Frame, folded: Mapping[str, Frame]) -> Frame:
    """A frame on a link that there still is."""
    if frame.link not in folded:
        return frame
    carrier = folded[frame.link]
    own = rpy_matrix(carrier.rpy), np.array(carrier.xyz)
    R, p = _after(own, (rpy_matrix(frame.rpy), np.array(frame.xyz)))
    return Frame(carrier.link, triple(p), matrix_rpy(R))
