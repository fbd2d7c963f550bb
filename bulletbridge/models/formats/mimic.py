"""Joints that mimic another one, as couplings."""

import math
from collections.abc import Mapping
from difflib import get_close_matches
from typing import NamedTuple
from xml.etree import ElementTree as Xml

from bulletbridge.constraints.joints import Coupling
from bulletbridge.models.formats.urdf_tree import MOVING, UrdfTree

TAGS = ("mimic", "drake:mimic")
ROUND_OFF = 1e-6
"""Part of a range by which limits of joints that mimic each other may differ unmentioned."""


class Mimic(NamedTuple):
    """Position of a joint: ``multiplier`` * position of ``joint`` + ``offset``."""

    joint: str
    multiplier: float
    offset: float

    def positions(self, limits: tuple[float, float]) -> tuple[float, float]:
        """Lowest and highest position while the other joint goes through its range."""
        low, high = sorted(self.multiplier * x + self.offset for x in limits)
        return low, high


def mimics_of(tree: UrdfTree) -> dict[str, Mimic]:
    """Which joint follows which, chains resolved: those that are followed follow no other.

    Raises:
        ModelError: A joint mimics one that does not exist or that does not move, itself, or in a
            circle; or its numbers are none.
    """
    found: dict[str, Mimic] = {}
    joints = tree.joints
    for name, joint in joints.items():
        element = next((each for tag in TAGS for each in joint.findall(tag)), None)
        if element is not None and joint.get("type") in MOVING:
            found[name] = _read(tree, name, element, joints)
    return {name: _resolve(tree, name, found) for name in found}


def couplings_of(mimics: Mapping[str, Mimic], taken: frozenset[str]) -> list[Coupling]:
    """The same as constraints.

    Args:
        mimics: Which joint follows which.
        taken: Names that other constraints have.
    """
    made: list[Coupling] = []
    for name, mimic in mimics.items():
        said = f"{name}_mimic"
        while said in taken:
            said += "_"
        coefficients = {name: 1.0}
        if mimic.multiplier != 0.0:
            coefficients[mimic.joint] = -mimic.multiplier
        made.append(Coupling(said, coefficients, mimic.offset))
    return made


def limit_notes(tree: UrdfTree, mimics: Mapping[str, Mimic]) -> list[str]:
    """What is to be said where a joint's limits end the range of the one that it mimics."""
    said: list[str] = []
    for name, mimic in mimics.items():
        own, driver = tree.limits(tree.joints[name]), tree.limits(tree.joints[mimic.joint])
        if own is None or driver is None:
            continue
        low, high = mimic.positions(driver)
        if max(own[0] - low, high - own[1]) > ROUND_OFF * (1.0 + high - low):
            said.append(
                f"joint '{name}' mimics '{mimic.joint}', whose range takes it from {low:.4g} to"
                f" {high:.4g}, but its own limits are {own[0]:.4g} to {own[1]:.4g}: the narrower"
                " ones hold"
            )
    return said


def _read(
    tree: UrdfTree, name: str, element: Xml.Element, joints: Mapping[str, Xml.Element]
) -> Mimic:
    where = f"joint '{name}'"
    other = element.get("joint", "")
    if other not in joints:
        near = get_close_matches(other, joints, n=1, cutoff=0.4)
        hint = f"did you mean '{near[0]}'?" if near else "name one of this robot's"
        tree.fail(f"{where} mimics '{other}', which is no joint; {hint}")
    if joints[other].get("type") not in MOVING:
        tree.fail(
            f"{where} mimics '{other}', which is {joints[other].get('type')} and has no position;"
            " name a revolute, continuous or prismatic joint"
        )
    return Mimic(
        other,
        tree.number(element, "multiplier", 1.0, where),
        tree.number(element, "offset", 0.0, where),
    )


def _resolve(tree: UrdfTree, name: str, found: Mapping[str, Mimic]) -> Mimic:
    multiplier, offset, line, joint = 1.0, 0.0, [name], name
    while joint in found:
        mimic = found[joint]
        offset += multiplier * mimic.offset
        multiplier *= mimic.multiplier
        joint = mimic.joint
        if joint in line:
            circle = " -> ".join([*line[line.index(joint) :], joint])
            tree.fail(f"joints mimic each other in a circle: {circle}; let one of them lead")
        line.append(joint)
    if not (math.isfinite(multiplier) and math.isfinite(offset)):
        tree.fail(f"joint '{name}' mimics '{joint}' with numbers beyond those of a computer")
    return Mimic(joint, multiplier, offset)
