"""Motors in a URDF: rotors' inertia and gear ratio in Drake's words, and what drives are left out.

Source: Drake, "Parsing model directives": /robot/transmission/actuator/drake:rotor_inertia and
drake:gear_ratio, each with an attribute ``value``. Others' exporters write an ``armature`` of
``<dynamics>``.
"""

import math
from collections.abc import Iterable, Mapping
from xml.etree import ElementTree as Xml

from bulletbridge.errors import ModelError
from bulletbridge.mechanism.joint_properties import JointProperties
from bulletbridge.models.formats.extension import Extension
from bulletbridge.models.formats.robot import listed
from bulletbridge.models.formats.sdf_frames import GAINS_TAG, GEAR_TAG, ROTOR_TAG, XMLNS
from bulletbridge.models.formats.urdf_tree import MOVING, UrdfTree

MOVED = (*MOVING, "spherical")
"""Kinds of joints that can have an armature."""


def rotors_in(tree: UrdfTree) -> Extension:
    """Armature of every joint: rotor inertia times the square of the gear's ratio.

    Actuators of one joint add up. A joint may have the elements itself, too, as in SDF; these take
    the place of its actuators'.

    Raises:
        ModelError: A rotor inertia or ratio is no number, not finite, or an inertia is negative.
    """
    found: dict[str, float] = {}
    notes: list[str] = []
    for transmission in tree.robot.iterfind("transmission"):
        named = [each.get("name", "") for each in transmission.iterfind("joint")]
        where = f"transmission '{transmission.get('name', '')}'"
        armature = sum(armature_of(each, where) for each in transmission.iterfind("actuator"))
        if armature == 0.0:
            continue
        if len(named) != 1:
            notes.append(
                f"{where}: the rotors are left out, for it moves {len(named)} joints; give each an"
                " armature under 'joints' of a loops file"
            )
            continue
        found[named[0]] = found.get(named[0], 0.0) + armature
    for name, joint in tree.joints.items():
        armature = armature_of(joint, f"joint '{name}'")
        if armature:
            found[name] = armature
    kinds = {name: joint.get("type") for name, joint in tree.joints.items()}
    for name in [name for name in found if kinds.get(name) not in MOVED]:
        said = "does not turn or slide" if name in kinds else "does not exist"
        notes.append(f"the rotor of joint '{name}' is left out, for the joint {said}")
        del found[name]
    joints = {name: JointProperties(armature=each) for name, each in found.items()}
    return Extension(joints=joints, notes=notes)


def drive_notes(tree: UrdfTree) -> list[str]:
    """What is to be said of transmissions that mix several drives, and of Drake's controllers."""
    mixed, kept, unnamed = list[str](), list[str](), list[str]()
    for transmission in tree.robot.iter("transmission"):  # those in <ros2_control>, too
        named = dict.fromkeys(each.get("name", "") for each in transmission.iterfind("joint"))
        kind = transmission.findtext("type") or transmission.findtext("plugin") or ""
        what = (kind or transmission.get("type", "")).strip().rpartition("/")[2] or "no type"
        if len(named) > 1:
            mixed.append(f"'{transmission.get('name', '')}' ({what}: {', '.join(named)})")
        elif not named:
            unnamed.append(f"'{transmission.get('name', '')}' ({what})")
        if any(motor.find(GAINS_TAG) is not None for motor in transmission.iterfind("actuator")):
            kept += named
    notes = [gains_note(kept)] if kept else []
    if unnamed:
        notes.append(
            f"transmissions without <joint>, which make no joint actuated: {listed(unnamed)}"
        )
    if mixed:
        notes.append(
            f"transmissions that mix drives of several joints: {listed(mixed)}; torques act at the"
            " joints here, not at the drives"
        )
    return notes


def gains_note(joints: Iterable[str]) -> str:
    """What is to be said of Drake's controllers of joints, which push by a spring and damper."""
    return (
        f"<{GAINS_TAG}> of {listed(joints)}: no controller acts;"
        " system.motors.servo(JOINT, stiffness=p, damping=d, position=...) makes one"
    )


def add_rotors(robot: Xml.Element, armatures: Mapping[str, float]) -> None:
    """Give armatures [kg m² or kg] to the actuators of joints, or joints themselves without one."""
    places = {joint.get("name", ""): joint for joint in robot.iterfind("joint")}
    for transmission in robot.iterfind("transmission"):
        places |= {joint.get("name", ""): motor for joint, motor in _pairs(transmission)}
    for name, armature in armatures.items():
        robot.set("xmlns:drake", XMLNS["xmlns:drake"])
        Xml.SubElement(places[name], ROTOR_TAG, value=repr(armature))


def _pairs(transmission: Xml.Element) -> Iterable[tuple[Xml.Element, Xml.Element]]:
    return zip(transmission.findall("joint"), transmission.findall("actuator"), strict=False)


def armature_of(element: Xml.Element, where: str) -> float:
    """Rotor inertia times squared ratio of an element's own children, or ``armature``; else zero.

    Raises:
        ModelError: One is no number, not finite, or an inertia is negative.
    """
    said = {ROTOR_TAG: 0.0, GEAR_TAG: 1.0, "dynamics": 0.0}
    for child in element:
        if child.tag not in said:
            continue
        text = child.get("value") or (child.text or "").strip()
        if child.tag == "dynamics":
            text = child.get("armature", "0")
        try:
            said[str(child.tag)] = float(text)
        except ValueError:
            raise ModelError(
                f"{where}: <{child.tag}> has '{text[:40]}'; give a number as its value"
            ) from None
    armature = said[ROTOR_TAG] * said[GEAR_TAG] ** 2 or said["dynamics"]
    if not 0.0 <= armature < math.inf:
        raise ModelError(
            f"{where}: rotor inertia {said[ROTOR_TAG] or armature:g} with gear ratio"
            f" {said[GEAR_TAG]:g} is no inertia; give finite numbers, the first not negative"
        )
    return armature
