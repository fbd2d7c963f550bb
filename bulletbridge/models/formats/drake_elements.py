"""Constraints and springs in Drake's words, which URDF and SDF have alike beside their joints.

Source: Drake, "Parsing model directives": drake:ball_constraint, drake:tendon_constraint,
drake:linear_spring_damper, drake:linear_bushing_rpy. A URDF has values in attributes, SDF in text.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import NoReturn
from xml.etree import ElementTree as Xml

import numpy as np

from bulletbridge.constraints.force_elements import Bushing, Spring, Tendon
from bulletbridge.constraints.joints import Coupling, Frame, JointModel, LoopJoint, Triple
from bulletbridge.models.formats.extension import Extension
from bulletbridge.models.formats.robot import Pose, free_name, pose_of, told
from bulletbridge.numerics.records import are_numbers

PREFIX = "drake:"
ELSEWHERE = f"{PREFIX}joint", f"{PREFIX}collision_filter_group"
"""What is read by others, or is of contacts alone."""
Joining = LoopJoint | Coupling | Spring | Bushing | Tendon


@dataclass(frozen=True)
class Source:
    """Where elements are found."""

    # the frame of a link or frame by name; refuses a name that is none
    place: Callable[[str], Frame]
    joint: Callable[[str], str]  # the full name of a joint; refuses a name that is none
    fail: Callable[[str], NoReturn]  # ends reading with a message

    def text(self, element: Xml.Element, tag: str, default: str | None = None) -> str:
        """What a child says; an error if there is none and no default."""
        child = element.find(PREFIX + tag)
        if child is None:
            if default is None:
                self.fail(f"<{element.tag}> lacks <{PREFIX}{tag}>; add it")
            return default
        return child.get("value") or child.get("name") or (child.text or "").strip()

    def number(self, element: Xml.Element, tag: str, default: float | None = None) -> float:
        """One number that a child says, which may be infinite."""
        text = self.text(element, tag, None if default is None else repr(default))
        try:
            value = float(text)
        except ValueError:
            value = np.nan
        if np.isnan(value):
            self.fail(f"<{element.tag}>: <{PREFIX}{tag}> is '{text[:40]}'; give a number")
        return value

    def triple(self, element: Xml.Element, tag: str) -> Triple:
        """Three numbers that a child says."""
        text = self.text(element, tag)
        try:
            values = [float(part) for part in text.split()]
        except ValueError:
            values = []
        if not are_numbers(values, (3,)):
            self.fail(f"<{element.tag}>: <{PREFIX}{tag}> is '{text[:40]}'; give three numbers")
        x, y, z = values
        return x, y, z

    def point(self, element: Xml.Element, body: str, at: str) -> Frame:
        """A point of a link."""
        frame = self.place(self.text(element, body))
        pose = pose_of(frame.xyz, frame.rpy) @ Pose(np.eye(3), np.array(self.triple(element, at)))
        return pose.on(frame.link)


def drake_elements(parent: Xml.Element, source: Source, taken: Iterable[str]) -> Extension:
    """Read the elements below a robot or model.

    Args:
        parent: The robot or model.
        source: Where names in it lead.
        taken: Names of other loops.

    Raises:
        ModelError: One lacks something, or names what does not exist.
    """
    found = Extension()
    names = list(taken)
    unread: list[str] = []
    for element in parent:
        tag = str(element.tag)
        if tag not in READERS:
            unread += [tag] if tag.startswith(PREFIX) and tag not in ELSEWHERE else []
            continue
        made = READERS[str(element.tag)](source, element, found.notes)
        made = replace(made, name=free_name(made.name, names))
        names.append(made.name)
        if isinstance(made, LoopJoint | Coupling):
            found.loops.append(made)
        else:
            found.elements.append(made)
    said = {
        f"<{PREFIX}linear_bushing_rpy> act along the axes of their first frames and on rotation"
        " vectors: as Drake's on roll, pitch and yaw as long as turns are small:"
        " {}": [f"'{each.name}'" for each in found.elements if isinstance(each, Bushing)],
        "left out: {}": [f"<{tag}>" for tag in dict.fromkeys(unread)],
    }
    found.notes += told(said)
    return found


def _ball(source: Source, element: Xml.Element, _notes: list[str]) -> LoopJoint:
    """Points P of body A and Q of body B coincide."""
    a = source.point(element, "ball_constraint_body_A", "ball_constraint_p_AP")
    b = source.point(element, "ball_constraint_body_B", "ball_constraint_p_BQ")
    return LoopJoint(f"{a.link}_to_{b.link}", JointModel.BALL, a, b)


def _weld(source: Source, element: Xml.Element, _notes: list[str]) -> LoopJoint:
    """Two frames coincide; they are named as those of a joint are."""
    ends: list[Frame] = []
    for tag in ("parent", "child"):
        name = (element.findtext(tag) or "").strip()
        if not name:
            source.fail(f"<{element.tag}> lacks <{tag}>; add it")
        ends.append(source.place(name))
    a, b = ends
    return LoopJoint(f"{a.link}_to_{b.link}", JointModel.WELD, a, b)


def _spring(source: Source, element: Xml.Element, _notes: list[str]) -> Spring:
    """Along the line between two points."""
    tag = "linear_spring_damper"
    a, b = (source.point(element, f"{tag}_body_{x}", f"{tag}_p_{x}{y}") for x, y in ("AP", "BQ"))
    stiffness, damping, length = (
        source.number(element, f"{tag}_{key}") for key in ("stiffness", "damping", "free_length")
    )
    if min(stiffness, damping, length) < 0.0:
        source.fail(f"<{element.tag}> has a negative stiffness, damping or length; correct it")
    return Spring(f"spring_{a.link}_{b.link}", a, b, stiffness, damping, length)


def _bushing(source: Source, element: Xml.Element, _notes: list[str]) -> Bushing:
    """Six springs, which Drake has on roll, pitch and yaw and in a frame half way between both."""
    a, b = (source.place(source.text(element, f"bushing_frame{x}")) for x in "AC")
    values = [
        source.triple(element, f"bushing_{kind}_{what}")
        for kind in ("force", "torque")
        for what in ("stiffness", "damping")
    ]
    return Bushing(f"bushing_{a.link}_{b.link}", a, b, *values)


def _tendon(source: Source, element: Xml.Element, notes: list[str]) -> Tendon | Coupling:
    """Bounds of a sum of joint positions: a coupling, limits, or a spring beyond the bounds."""
    tag = "tendon_constraint"
    factors: dict[str, float] = {}
    for each in element.findall(f"{PREFIX}{tag}_joint"):
        joint = source.joint(each.get("name", ""))
        try:
            factors[joint] = factors.get(joint, 0.0) + float(each.get("a", ""))
        except ValueError:
            source.fail(
                f"<{element.tag}>: joint '{joint}' has a=\"{each.get('a')}\"; give a number"
            )
    if not factors:
        source.fail(f"<{element.tag}> names no joint; add <{PREFIX}{tag}_joint name=... a=.../>")
    offset = source.number(element, f"{tag}_offset", 0.0)
    low = source.number(element, f"{tag}_lower_limit", -np.inf) - offset
    high = source.number(element, f"{tag}_upper_limit", np.inf) - offset
    stiffness = source.number(element, f"{tag}_stiffness", np.inf)
    name = "tendon_" + "_".join(factors)
    if low > high:
        source.fail(f"<{element.tag}> '{name}' has its lower limit above its upper one; correct it")
    if source.number(element, f"{tag}_damping", 0.0):
        notes.append(f"<{element.tag}> '{name}': its damping is left out, which acts at its bounds")
    if np.isfinite((stiffness, low, high)).all():
        return Tendon(name, factors, stiffness, rest=(low + high) / 2.0, slack=(high - low) / 2.0)
    if np.isfinite(stiffness):
        notes.append(
            f"<{element.tag}> '{name}' has one bound, which holds exactly; Drake's is soft"
        )
    return (
        Coupling(name, factors, low) if low == high else Tendon(name, factors, limits=(low, high))
    )


READERS: dict[str, Callable[[Source, Xml.Element, list[str]], Joining]] = {
    "drake:ball_constraint": _ball,
    "drake:weld_constraint": _weld,
    "drake:tendon_constraint": _tendon,
    "drake:linear_spring_damper": _spring,
    "drake:linear_bushing_rpy": _bushing,
}
"""Who reads which element."""
