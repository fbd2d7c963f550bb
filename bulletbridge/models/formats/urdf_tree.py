"""A URDF's links and joints by name, its numbers as numbers, and where its links are at zero."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NoReturn
from xml.etree import ElementTree as Xml

from bulletbridge.bullet.xml_file import as_seen, leading_number, to_number
from bulletbridge.constraints.joints import Triple
from bulletbridge.errors import ModelError
from bulletbridge.mechanism.frames import matrix_rpy
from bulletbridge.mechanism.model import WORLD
from bulletbridge.models.formats.robot import Pose, listed, pose_of
from bulletbridge.models.model_spec import ORIGIN
from bulletbridge.models.urdf_file import NUMBERS, QUATERNION, are_as_many, require_numbers
from bulletbridge.numerics.records import LARGEST, are_numbers

MOVING = ("revolute", "continuous", "prismatic")
"""Kinds of joints with one coordinate."""
LIMITS = "lower", "upper", "effort", "velocity"
NO_NUMBER = re.compile(r"[+-]?(nan|inf)", re.IGNORECASE)
"""What Bullet reads as no number, or as an infinite one."""
BLANK = re.compile(r"[^\S ]")
"""A blank at which Bullet does not part numbers, as those that web pages have."""
OF_QUATERNIONS = (1, 1)
"""Version from which frames may be turned so (urdfdom 6)."""
OF_VERSION = re.compile(r"[0-9]+\.[0-9]+")
DYNAMICS_SPRING = "spring_stiffness", "spring_reference"
"""SDF's words, as attributes of ``<dynamics>``."""
COUNTS = NUMBERS | {
    "axis": {"xyz": 3},
    "limit": dict.fromkeys(LIMITS, 1),
    "dynamics": dict.fromkeys(("damping", "friction", "armature", *DYNAMICS_SPRING), 1),
}
"""Number of numbers of an attribute, by element: all of links and joints that we or Bullet use."""
LINK_PARTS = ("inertial", "visual", "collision", "contact")
"""Elements of a link that count; others have what is no shape under names of shapes."""
PARTS = (*LINK_PARTS, "origin", "axis", "limit", "dynamics", "mimic", "parent", "child")
"""Elements that mean something in a link or joint alone."""
OF_MUJOCO = ("compiler", "option", "size")
"""Elements of ``<mujoco>`` in a URDF that MuJoCo reads; it checks no others."""
RANGE = {"lower": 0.0, "upper": -1.0}
"""Ends of a joint's range, and what they are for Bullet where a file does not say: no range."""
X: Triple = (1.0, 0.0, 0.0)
"""The axis of a joint that names none."""


@dataclass(frozen=True)
class UrdfTree:
    """A URDF that is being read, or changed on the way."""

    path: Path  # the file
    robot: Xml.Element  # its root element

    @property
    def links(self) -> dict[str, Xml.Element]:
        """Links by name."""
        return {link.get("name", ""): link for link in self.robot.iterfind("link")}

    @property
    def joints(self) -> dict[str, Xml.Element]:
        """Joints by name."""
        return {joint.get("name", ""): joint for joint in self.robot.iterfind("joint")}

    @property
    def above(self) -> dict[str, Xml.Element]:
        """The joint that holds a link, by the link's name."""
        return {end(joint, "child"): joint for joint in self.robot.iterfind("joint")}

    @property
    def root(self) -> str:
        """Name of the link that no joint holds."""
        above = self.above
        return next(name for name in self.links if name not in above)

    @cached_property
    def poses(self) -> dict[str, Pose]:
        """Every link in the root's frame, joints at zero."""
        found = {self.root: Pose()}
        above = self.above
        for name in self.links:
            line = [name]
            while line[-1] not in found:
                line.append(end(above[line[-1]], "parent"))
            for link in reversed(line[:-1]):
                joint = above[link]
                found[link] = found[end(joint, "parent")] @ self.place(joint)
        return found

    def place(self, owner: Xml.Element) -> Pose:
        """Where the <origin> of a joint, shape or <inertial> puts it.

        Raises:
            ModelError: It has something else than numbers.
        """
        return pose_of(*self.origin(owner.find("origin"), f"{owner.tag} '{owner.get('name', '')}'"))

    def origin(self, element: Xml.Element | None, where: str) -> tuple[Triple, Triple]:
        """The attributes xyz and rpy [m, rad], zero where they are missing.

        Raises:
            ModelError: They are not three numbers each.
        """
        if element is None:
            return ORIGIN, ORIGIN
        return (
            self.triple(element, "xyz", ORIGIN, where),
            self.triple(element, "rpy", ORIGIN, where),
        )

    def triple(self, element: Xml.Element, name: str, default: Triple, where: str) -> Triple:
        """Three numbers of an attribute.

        Raises:
            ModelError: They are something else; the message says where.
        """
        x, y, z = self._given(element, name, default, (where, "three numbers"))
        return x, y, z

    def number(self, element: Xml.Element, name: str, default: float, where: str) -> float:
        """One number of an attribute.

        Raises:
            ModelError: It is something else; the message says where.
        """
        return self._given(element, name, (default,), (where, "a number"))[0]

    def _given(
        self, element: Xml.Element, name: str, default: Sequence[float], said: tuple[str, str]
    ) -> Sequence[float]:
        """As many numbers of an attribute as by default; ``said``: where, and what to give."""
        text = element.get(name)
        if text is None or not text.split():
            return default
        numbers = self._numbers(text)
        if not are_numbers(numbers, (len(default),)):
            self.fail(f'{said[0]}: <{element.tag}> has {name}="{text[:40]}"; give {said[1]}')
        return numbers

    def axis(self, joint: Xml.Element) -> Triple:
        """Axis of a joint in its frame."""
        element = joint.find("axis")
        where = f"joint '{joint.get('name')}'"
        return X if element is None else self.triple(element, "xyz", X, where)

    def rigid_groups(self, kinds: tuple[str, ...] = ("fixed",)) -> dict[str, str]:
        """The uppermost of the links on joints of some kinds, by the name of each."""
        above, found = self.above, dict[str, str]()
        for name in self.links:
            line = [name]
            while line[-1] in above and above[line[-1]].get("type") in kinds:
                line.append(end(above[line[-1]], "parent"))
            found[name] = line[-1]
        return found

    def limits(self, joint: Xml.Element) -> tuple[float, float] | None:
        """Lowest and highest position of a joint [rad or m], as Bullet takes them; None for none.

        A range whose lower end is above its upper one is none, as in Bullet.
        """
        limit = joint.find("limit")
        if limit is None or joint.get("type") not in ("revolute", "prismatic"):
            return None
        where = f"joint '{joint.get('name')}'"
        low, high = (self.number(limit, *end, where) for end in RANGE.items())
        return (low, high) if low <= high else None

    def add_world(self) -> list[str]:
        """Add the world as a link where a joint hangs on it and it is none; a note on that.

        Drake's files have it so.
        """
        hanging = [name for name, joint in self.joints.items() if end(joint, "parent") == WORLD]
        if not hanging or WORLD in self.links:
            return []
        self.robot.insert(0, Xml.Element("link", name=WORLD))
        return [f"'{WORLD}', which {listed(map(repr, hanging))} hangs on, is no link: the world"]

    def leave_scenery(self) -> list[str]:
        """Leave out what is fixed to the world beside a robot that is not; a note on that.

        Drake's files have their floor so.
        """
        above, standing = self.above, [WORLD]
        roots = [name for name in self.links if name not in above]
        if len(roots) != 2 or WORLD not in roots:
            return []
        for link in standing:  # which grows
            for joint in self.robot.iterfind("joint"):
                if end(joint, "parent") == link:
                    if joint.get("type") != "fixed" or end(joint, "child") in standing:
                        return []
                    standing.append(end(joint, "child"))
        if len(standing) == 1:
            return []
        for element in list(self.robot):
            name = element.get("name") if element.tag == "link" else end(element, "child")
            if element.tag in ("link", "joint") and name in standing:
                self.robot.remove(element)
        return [f"what stands in the world beside the robot is left out: {listed(standing[1:])}"]

    def settle_turns(self) -> tuple[bool, list[str]]:
        """Write turns by quaternions, as URDF 1.1 has them, as roll, pitch and yaw, for Bullet.

        Returns:
            Whether there are any, and what is to be said: before 1.1 they count for nothing.

        Raises:
            ModelError: One is no turn, or the frame has roll, pitch and yaw as well.
        """
        turned, void = False, list[str]()
        counts = self._version() >= OF_QUATERNIONS
        for owner in self.robot:
            where = f"{owner.tag} '{owner.get('name', '')}'"
            for element in owner.iter("origin"):
                text = element.attrib.pop(QUATERNION, None)
                if text is None:
                    continue
                if not counts:
                    void.append(where)
                    continue
                numbers = self._numbers(text)
                if not are_numbers(numbers, (4,)) or not any(numbers):
                    self.fail(f'{where}: <origin> has {QUATERNION}="{text[:40]}"; give a turn')
                if "rpy" in element.attrib:
                    self.fail(f"{where}: <origin> has both rpy and {QUATERNION}; leave one out")
                from scipy.spatial.transform import Rotation  # half of a start, if it comes to it

                roll, pitch, yaw = matrix_rpy(Rotation.from_quat(numbers).as_matrix())
                element.set("rpy", f"{roll!r} {pitch!r} {yaw!r}")
                turned = True
        if not void:
            return turned, []
        return turned, [
            f"{QUATERNION} counts for nothing before URDF 1.1, and is left out:"
            f' {listed(dict.fromkeys(void))}; if it is meant, write <robot version="1.1">'
        ]

    def _version(self) -> tuple[int, ...]:
        """Version of URDF that the file is in; the first one where it does not say."""
        said = self.robot.get("version", "").strip()
        return tuple(map(int, said.split("."))) if OF_VERSION.fullmatch(said) else (1, 0)

    def settle_numbers(self) -> list[str]:
        """Make numbers of what Bullet takes for numbers, and return notes on that.

        It splits at blanks, takes of each piece what begins it as a number, zero if nothing does,
        and leaves pieces out that are too many. Its own robots have commas and xacro's left-overs.
        Infinite limits are none.

        Raises:
            ModelError: There are too few, or they are not finite; the message names the element.
        """
        notes, endless = list[str](), list[str]()
        for owner in self.robot:
            if owner.tag not in ("link", "joint"):
                continue
            where = f"{owner.tag} '{owner.get('name', '')}'"
            for element in _read_of(owner):
                if element.tag == "limit" and _settle_infinite(element):
                    endless.append(owner.get("name", ""))
                for name, count in COUNTS.get(str(element.tag), {}).items():
                    text = element.get(name)
                    if text is None:
                        continue
                    if as_seen(text) != text:
                        given, text = text, as_seen(text)
                        element.set(name, text)
                        notes.append(
                            f"{where}: <{element.tag}> has {ascii(given)} as its {name}, which is"
                            f' taken as it looks, "{text}"'
                        )
                    if are_as_many(text, count):
                        if BLANK.search(text):
                            element.set(name, " ".join(text.split()))
                            notes.append(f"{where}: <{element.tag}> has odd blanks in its {name}")
                        continue
                    if any(map(NO_NUMBER.match, text.split())):  # Bullet calculates with them
                        self.fail(f'{where}: <{element.tag}> has {name}="{text}"; give numbers')
                    pieces = [leading_number(piece) or "0" for piece in text.split()[:count]]
                    if element.tag == "mesh" and len(pieces) == 1:  # one scale for all axes
                        pieces *= count
                    read = " ".join(pieces)
                    if are_as_many(read, count):
                        element.set(name, read)
                        notes.append(
                            f'{where}: <{element.tag}> has {name}="{text}", which is taken as'
                            f' "{read}", as Bullet takes it'
                        )
                require_numbers(element, f"{self.path}: {where}")
        if endless:
            notes.append(f"infinite limits of {listed(endless)} are none")
        return notes

    def stray_notes(self) -> list[str]:
        """What stands beside links and joints that means something only in one of them."""
        stray = Counter(str(part.tag) for part in self.robot if part.tag in PARTS)
        if not stray:
            return []
        told = (f"<{tag}>" + (f" ({n} times)" if n > 1 else "") for tag, n in stray.items())
        return [
            f"left out, as they stand in no link or joint: {', '.join(told)}; is a <link .../>"
            " closed too early?"
        ]

    def mujoco_notes(self) -> list[str]:
        """What ``<mujoco>`` has that does nothing here: in a URDF, MuJoCo reads little of it, too.

        Source: MuJoCo, Modeling, URDF extensions.
        """
        notes: list[str] = []
        parts = dict.fromkeys(str(each.tag) for each in self.robot.iterfind("mujoco/*"))
        left = [f"<{tag}>" for tag in parts if tag not in OF_MUJOCO]
        if left:
            notes.append(
                f"left out, as MuJoCo leaves it out of a URDF: {', '.join(left)} in <mujoco>;"
                " couple joints by <mimic>, close loops by <loop_joint>"
            )
        pull = self.robot.find("mujoco/option[@gravity]")
        if pull is not None:
            notes.append(
                f'gravity="{pull.get("gravity")}" in <mujoco> is left out: the world has its own,'
                " or what a loops file says"
            )
        return notes

    def fail(self, message: str) -> NoReturn:
        """Say what is wrong with this file."""
        raise ModelError(f"{self.path}: {message}")

    @staticmethod
    def _numbers(text: str) -> list[float]:
        try:
            return [to_number(part) for part in as_seen(text).split()]
        except ValueError:
            return []


def _settle_infinite(limit: Xml.Element) -> bool:
    """Make an infinite range none, and its infinite end or drive a very large one; whether any."""
    endless = [key for key in LIMITS if _is_endless(limit.get(key, ""))]
    for key in endless:
        limit.set(key, "-1e9" if limit.get(key, "").strip().startswith("-") else "1e9")
    if set(RANGE) <= set(endless):
        for key in RANGE:
            del limit.attrib[key]
    return bool(endless)


def _is_endless(text: str) -> bool:
    """Whether a text is infinite, or a number that stands for that, such as the largest double."""
    try:
        return abs(float(text)) > LARGEST
    except ValueError:
        return False


def _read_of(owner: Xml.Element) -> Iterator[Xml.Element]:
    """Elements of a link or joint that count; links have those of other programs too."""
    for child in owner:
        if owner.tag != "link" or child.tag in LINK_PARTS:
            yield from child.iter()


def end(joint: Xml.Element, which: str) -> str:
    """Name of the link at one end of a joint, ``parent`` or ``child``."""
    element = joint.find(which)
    return "" if element is None else element.get("link", "")
