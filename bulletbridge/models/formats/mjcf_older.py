"""What older versions of MuJoCo, or Bullet, read in MJCF and MuJoCo refuses: mended or left out."""

import re
from xml.etree import ElementTree as Xml

import numpy as np

from bulletbridge.models.formats.urdf_text import exact
from bulletbridge.numerics.records import Array

UNKNOWN = re.compile(r"(?:unrecognized attribute:|bad format in attribute) '(\w+)' Element '(\w+)'")
"""What MuJoCo says of an attribute that it does not know or understand."""
STRANGE = re.compile(r"unrecognized element Element '(\w+)'")
"""What it says of an element that it does not know."""
USERS = "user"
"""An attribute that MuJoCo only keeps for others."""
NEWER = {
    ("joint", "actuatorforcelimited"): "actuatorfrclimited",
    ("joint", "actuatorforcerange"): "actuatorfrcrange",
}
"""What attributes are called that had other names before, by element and that name."""
LOOKS = ("light", "camera", "material", "texture", "headlight", "rgba", "skin")
"""Elements that are only seen."""
ASIDE = ("sensor", "visual", "custom")
"""Elements with what measures, is seen or is kept for others."""
REPEATED = re.compile(r"repeated name '(.+)' in (\w+)")
"""What it says of two things of one name."""
WELDED = "invalid keyword: 'fixed' Element 'joint'"
"""What it says of joints that only Bullet has in MJCF."""
RENAMED = "top-level default class 'main' cannot be renamed"
"""What it says of an outermost default with a class beside another one."""
SETTINGS = (
    *("compiler", "option", "flag", "size", "global", "quality", "map", "scale", "statistic"),
    "default",
)
"""Elements with settings, whose attributes come and go with versions."""
ASSETS = ("mesh", "texture", "material", "hfield")
"""Elements whose second one of a name goes."""
PASSIVE = ("flag", "passive")
"""What has switched off springs and dampers, which have flags of their own now."""
GLOBAL, CENTRE = "global coordinates no longer supported", "missing: 'pos' Element 'inertial'"
PLACED = ("geom", "site", "joint", "inertial", "camera", "light")
"""Elements of a body that are placed in it."""
TURNS = ("quat", "axisangle", "euler", "xyaxes", "zaxis")

GONE = {
    "unrecognized element Element 'composite'": "MuJoCo 4 has no <composite> any more; one before"
    " 4 writes the file with the bodies that it makes (mujoco.mj_saveLastXML)",
    "unrecognized attribute: 'relpose' Element 'connect'": "only <weld> has relpose; a <connect>"
    " has body1, body2 and anchor, a point of body1 that body2 is held at where the file places"
    " both, or site1 and site2, which are drawn together",
}
"""What to do about what it has no more, or never had, by what it says."""


def remedy(said: str) -> str:
    """What to do about what MuJoCo does not read."""
    return next((help_ for words, help_ in GONE.items() if words in said), "correct it")


def mended(robot: Xml.Element, said: str) -> str:
    """Take out of a file what MuJoCo refuses and what says nothing of the robot; a note, or none.

    Args:
        robot: The file's outermost element, which is changed.
        said: Why MuJoCo does not read it.
    """
    unknown, repeated = UNKNOWN.search(said), REPEATED.search(said)
    aside = [each for part in robot.iter() if part.tag in ASIDE for each in part.iter()]
    if unknown and (unknown[2], unknown[1]) in NEWER:
        name, tag = unknown[1], unknown[2]
        newer = NEWER[tag, name]
        for each in robot.iter(tag):
            if name in each.attrib:
                each.set(newer, each.attrib.pop(name))
        return f"{name} of <{tag}> is {newer} since MuJoCo 3"
    strange = STRANGE.search(said)
    if strange and all(each in aside for each in robot.iter(strange[1])):
        left = [(up, each) for up in aside for each in up.findall(strange[1])]
        for up, each in left:
            up.remove(each)
        if left:
            return f"<{strange[1]}> in <{left[0][0].tag}> is not known by this MuJoCo: left out"
    unseen = (
        unknown
        and unknown[2] not in SETTINGS
        and all(each in aside for each in robot.iter(unknown[2]) if unknown[1] in each.attrib)
    )
    if unknown and (unknown[2] in (*SETTINGS, *LOOKS) or unknown[1] == USERS or unseen):
        name, tag = unknown[1], unknown[2]
        values = [each.attrib.pop(name) for each in robot.iter(tag) if name in each.attrib]
        if (tag, name) == PASSIVE and values:
            for flag in robot.iter(tag):
                flag.attrib.update(spring=values[-1], damper=values[-1])
        if values:
            return f'<{tag} {name}="{values[-1]}"> is not understood by this MuJoCo: left out'
    if GLOBAL in said and _localise(robot):
        return "places in global coordinates, which MuJoCo has no more, are made local ones"
    if CENTRE in said:
        bare = [each for each in robot.iter("inertial") if "pos" not in each.attrib]
        for each in bare:
            each.set("pos", "0 0 0")
        if bare:
            return f"{len(bare)} <inertial> without pos: at the body's frame"
    if WELDED in said:
        fixed = [(b, j) for b in robot.iter("body") for j in b.findall("joint[@type='fixed']")]
        for body, joint in fixed:
            body.remove(joint)
        if fixed:
            return f"{len(fixed)} joints of type 'fixed', which only Bullet has: welds"
    if repeated and repeated[2] in ASSETS:
        name, tag = repeated[1], repeated[2]
        same = [
            (parent, each)
            for parent in robot.iter("asset")
            for each in parent.findall(tag)
            if each.get("name") == name
        ]
        for parent, each in same[1:]:
            parent.remove(each)
        if same[1:]:
            return f"{tag} '{name}' is given {len(same)} times: the first one is taken"
    if RENAMED in said:
        named = [d for d in robot.iterfind("default") if d.get("class", "main") != "main"]
        for outer in named:
            inner = Xml.Element("default", outer.attrib)
            inner.extend(list(outer))
            outer.clear()
            outer.append(inner)
        classes = ", ".join(f"'{each[0].get('class')}'" for each in named)
        return f"default classes {classes} beside the outermost one are classes below it"
    return ""


def _localise(robot: Xml.Element) -> bool:
    """Put places that count from the world's origin, along its axes, into their bodies' frames.

    Bodies get the world's axes. Where equalities or defaults have places, nothing is done.
    """
    fixed = [*robot.iterfind("equality/*"), *(e for d in robot.iter("default") for e in d.iter())]
    if any({"anchor", "relpose", "pos", "fromto"} & set(each.attrib) for each in fixed):
        return False
    for compiler in robot.iter("compiler"):
        compiler.attrib.pop("coordinate", None)
    todo: list[tuple[Xml.Element, Array]] = [
        (each, np.zeros(3)) for each in robot.iter("worldbody")
    ]
    try:
        while todo:
            body, origin = todo.pop()
            for part in body:
                if part.tag in PLACED and (part.tag != "inertial" or "pos" in part.attrib):
                    _move(part, origin)
                elif part.tag == "body":
                    place = _numbers(part, "pos")
                    part.set("pos", exact(place - origin))
                    for turn in TURNS:
                        part.attrib.pop(turn, None)
                    todo.append((part, place))
    except ValueError:
        return False  # MuJoCo says which numbers are none
    return True


def _move(part: Xml.Element, origin: Array) -> None:
    """Give an element its place from an origin (3,)."""
    if "fromto" in part.attrib:
        part.set("fromto", exact(_numbers(part, "fromto", 6) - np.tile(origin, 2)))
    elif origin.any():
        part.set("pos", exact(_numbers(part, "pos") - origin))


def _numbers(part: Xml.Element, name: str, count: int = 3) -> Array:
    return np.array([float(x) for x in part.get(name, "0 0 0").split()]).reshape(count)
