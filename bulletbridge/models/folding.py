"""Links on fixed joints folded into those that carry them, where a robot has too many for Bullet.

Bullet cannot tell the states of joints beyond its 128 entries, moving or not, and its own merging
of fixed links takes wrong inertias. So the URDF is written anew: one link in the place of all that
are rigidly joined, with their masses, inertias and shapes.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as Xml

import numpy as np

from bulletbridge.bullet.checks import read_inertia
from bulletbridge.bullet.reader import MOST_COORDINATES
from bulletbridge.constraints.joints import Frame
from bulletbridge.mechanism.frames import rpy_matrix, triple
from bulletbridge.mechanism.model import Link, Mechanism
from bulletbridge.models.formats.loadable import write_urdf
from bulletbridge.models.formats.robot import Inertial, Pose, joined, pose_of, with_ends
from bulletbridge.models.formats.urdf_text import exact
from bulletbridge.models.formats.urdf_tree import UrdfTree, end
from bulletbridge.models.formats.written import robot_to_write
from bulletbridge.models.model_spec import BodySpec, ModelSpec
from bulletbridge.models.urdf_file import ENTRIES


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

    def carried(frame: Frame) -> Frame:
        """The same on a link that there still is."""
        return _on_carrier(frame, folded)

    return replace(
        spec,
        bodies=tuple(bodies),
        constraints=tuple(with_ends(each, str, carried) for each in spec.constraints),
        elements=tuple(with_ends(each, str, carried) for each in spec.elements),
        wrenches=tuple(
            replace(each, frame=carried(each.frame), axes=each.axes and carried(each.axes))
            for each in spec.wrenches
        ),
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
    return {name: pose.on(carrier) for name, (carrier, pose) in places.items() if carrier != name}


def _place(tree: UrdfTree, link: str, places: Mapping[str, tuple[str, Pose]]) -> tuple[str, Pose]:
    """What carries a link, and where on it."""
    joint = tree.above.get(link)
    if joint is None or joint.get("type") != "fixed":
        return link, Pose()
    carrier, pose = places[end(joint, "parent")]
    return carrier, pose @ tree.place(joint)


def _element(owner: Xml.Element, tag: str) -> Xml.Element:
    """A part of an element, added if it is missing."""
    found = owner.find(tag)
    return Xml.SubElement(owner, tag) if found is None else found


def _move(tree: UrdfTree, owner: Xml.Element, pose: Pose) -> None:
    """Give what is placed in a frame its place where that frame is given."""
    place = pose @ tree.place(owner)
    _element(owner, "origin").attrib.update(xyz=exact(place.xyz), rpy=exact(place.rpy))


def _join(tree: UrdfTree, carrier: Xml.Element, link: Xml.Element, pose: Pose) -> None:
    """Let a link have the mass and shapes of another one that is rigidly on it."""
    for shape in [*link.findall("visual"), *link.findall("collision")]:
        _move(tree, shape, pose)
        carrier.append(shape)
    inertial = link.find("inertial")
    added = read_inertia(inertial)
    more = Inertial(1.0, np.zeros(3), np.eye(3))  # what Bullet gives a link without any
    if inertial is not None and added is not None:
        more = Inertial(added.mass, tree.place(inertial).p, added.J)
    if more.mass == 0.0:
        return
    more = more.placed(pose)
    own = carrier.find("inertial")
    known = read_inertia(own)
    if own is None or known is None:
        weight = 0.0 if carrier.get("name") == "world" else 1.0
        own = Xml.SubElement(carrier, "inertial")
        before = Inertial(weight, np.zeros(3), weight * np.eye(3))
    else:
        before = Inertial(known.mass, tree.place(own).p, known.J)
    whole = joined([before, more])
    _element(own, "origin").attrib.update(xyz=exact(whole.com), rpy="0 0 0")
    _element(own, "mass").set("value", exact((whole.mass,)))
    for key, i, j in ENTRIES:
        _element(own, "inertia").set(key, exact((whole.J[i, j],)))


def _scaled(place: Frame, prefix: str, body: BodySpec) -> Frame:
    """A frame on a robot as the model names its links, and as large as it loads it."""
    xyz = triple(body.scale * number for number in place.xyz)
    return Frame(prefix + place.link, xyz, place.rpy)


def _on_carrier(frame: Frame, folded: Mapping[str, Frame]) -> Frame:
    """A frame on a link that there still is."""
    if frame.link not in folded:
        return frame
    carrier = folded[frame.link]
    return (pose_of(carrier.xyz, carrier.rpy) @ pose_of(frame.xyz, frame.rpy)).on(carrier.link)
