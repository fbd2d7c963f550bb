"""Links, joints and models as data, and their URDF text."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from textwrap import wrap

import numpy as np
import trimesh

from generator.shapes import Array, joined, to_obj

Triple = tuple[float, float, float]
ORIGIN: Triple = (0.0, 0.0, 0.0)

COLOURS: dict[str, Triple] = {
    "slate": (0.27, 0.30, 0.34),
    "steel": (0.72, 0.75, 0.79),
    "graphite": (0.16, 0.17, 0.19),
    "orange": (0.93, 0.49, 0.13),
    "blue": (0.16, 0.43, 0.71),
    "green": (0.20, 0.58, 0.37),
    "red": (0.80, 0.22, 0.20),
    "gold": (0.92, 0.72, 0.16),
    "teal": (0.10, 0.58, 0.60),
    "purple": (0.48, 0.32, 0.66),
    "pearl": (0.88, 0.88, 0.85),
}


@dataclass(frozen=True)
class Part:
    """A coloured solid of a link; ``mesh`` names the file, which several links may share."""

    mesh: str
    solid: trimesh.Trimesh
    colour: str
    xyz: Triple = ORIGIN
    rpy: Triple = ORIGIN


@dataclass(frozen=True)
class Inertial:
    """Mass [kg], centre of mass [m] and tensor about it (3, 3) [kg m²], both in axes of rpy."""

    mass: float
    com: Triple
    tensor: Array
    rpy: Triple = ORIGIN


@dataclass(frozen=True)
class Touch:
    """A box that others can touch: edges and centre [m]."""

    size: Triple
    xyz: Triple


@dataclass(frozen=True)
class Link:
    """A link, with its inertia, what it looks like and where it can be touched."""

    name: str
    inertial: Inertial
    parts: tuple[Part, ...]
    touches: tuple[Touch, ...] = ()


@dataclass(frozen=True)
class Limits:
    """How far, how hard and how fast a joint goes [rad, N m, rad/s]."""

    lower: float
    upper: float
    effort: float
    velocity: float


@dataclass(frozen=True)
class Joint:
    """A joint of the tree; ``revolute`` without limits becomes URDF's ``continuous``."""

    name: str
    kind: str  # "revolute", "prismatic", "spherical", "fixed"
    parent: str
    child: str
    xyz: Triple = ORIGIN
    rpy: Triple = ORIGIN
    axis: Triple | None = (0.0, 0.0, 1.0)
    damping: float = 0.0
    limits: Limits | None = None


@dataclass(frozen=True)
class Model:
    """Everything that is written for one model.

    Attributes:
        name: Of the files.
        links, joints: The tree; the first link is the base. Empty when ``loops`` refers to
            a URDF of PyBullet's own data.
        loops: Text of the loops file.
        purpose, source: For the table of models.
        notice: Copyright notice of the data, for the head of the URDF.
    """

    name: str
    links: tuple[Link, ...]
    joints: tuple[Joint, ...]
    loops: str
    purpose: str
    source: str
    notice: str = ""


DECIMALS = 12
"""Of lengths [m] and angles [rad]: round-off of what they are computed from is a thousand less."""
FINE, COARSE = 1e-3, 10.0
"""Outside, digits count from the first one: mostly inertias [kg m²]."""
ROUND_OFF = 8 * float(np.finfo(float).eps)
"""Of a number of size one after the few operations it is computed by, on any processor."""
TWELFTH = float(np.pi / 12)
SMALL = 100_000
"""Denominators up to this are meant: to hit one by chance would take a million numbers."""


def number(x: float) -> str:
    """Text of x without the digits that differ between processors.

    Ratios of whole numbers and multiples of 15 degrees keep all their digits, so that what is
    aligned or has a closed form stays so.

    Raises:
        ValueError: x is so near the middle between two texts that round-off would decide.
    """
    x = float(x)
    if abs(x) < 1e-15:
        return "0"
    meant = float(Fraction(x).limit_denominator(SMALL)), round(x / TWELFTH) * TWELFTH
    for exact in meant:
        if abs(x - exact) < ROUND_OFF * abs(x):
            return repr(int(exact)) if exact == int(exact) else repr(exact)
    if FINE <= abs(x) < COARSE:
        reach = ROUND_OFF * max(1.0, abs(x))
        texts = {repr(round(x + k * reach, DECIMALS)) for k in (-1, 0, 1)}
    else:
        texts = {repr(float(f"{x * (1 + k * ROUND_OFF):.{DECIMALS}e}")) for k in (-1, 0, 1)}
    if len(texts) > 1:
        raise ValueError(f"round-off decides how {x!r} is written: change it by a hair")
    return texts.pop()


def numbers(values: object) -> str:
    """Several numbers, as attributes have them."""
    return " ".join(number(x) for x in np.ravel(np.asarray(values, float)))


def folded(items: Sequence[str], indent: int) -> str:
    """Items of a YAML flow collection, in lines of at most 98 columns."""
    text = ", ".join(item.replace(" ", "\0") for item in items)
    lines = wrap(text, 98 - indent, break_long_words=False, break_on_hyphens=False)
    return ("\n" + " " * indent).join(lines).replace("\0", " ")


def of_solids(mass: float, parts: tuple[Part, ...]) -> Inertial:
    """Inertia of a link whose parts have one density and together the given mass [kg]."""
    whole = joined([p.solid for p in parts])
    if any(p.xyz != ORIGIN or p.rpy != ORIGIN for p in parts):
        raise ValueError("parts that give a link its inertia stand in its link frame")
    whole.density = mass / whole.volume
    properties = whole.mass_properties
    tensor = np.vectorize(lambda x: float(f"{x:.9g}"))(properties.inertia)
    x, y, z = (float(f"{x:.9g}") for x in np.round(properties.center_mass, 12))
    return Inertial(mass, (x, y, z), np.where(np.abs(tensor) < 1e-13, 0.0, tensor))


def solid_link(name: str, mass: float, *parts: Part) -> Link:
    """A link whose inertia is that of its parts."""
    return Link(name, of_solids(mass, parts), parts)


def _link_xml(link: Link) -> list[str]:
    inertial, t = link.inertial, link.inertial.tensor
    entries = {"ixx": t[0, 0], "ixy": t[0, 1], "ixz": t[0, 2]}
    entries |= {"iyy": t[1, 1], "iyz": t[1, 2], "izz": t[2, 2]}
    inertia = " ".join(f'{key}="{number(value)}"' for key, value in entries.items())
    lines = [
        f'  <link name="{link.name}">',
        "    <inertial>",
        f'      <origin xyz="{numbers(inertial.com)}" rpy="{numbers(inertial.rpy)}"/>',
        f'      <mass value="{number(inertial.mass)}"/>',
        f"      <inertia {inertia}/>",
        "    </inertial>",
    ]
    for part in reversed(link.parts):  # Bullet's window paints a whole link as its last part
        rgba = numbers([*COLOURS[part.colour], 1.0])
        lines += [
            "    <visual>",
            f'      <origin xyz="{numbers(part.xyz)}" rpy="{numbers(part.rpy)}"/>',
            f'      <geometry><mesh filename="meshes/{part.mesh}.obj"/></geometry>',
            f'      <material name="{part.colour}"><color rgba="{rgba}"/></material>',
            "    </visual>",
        ]
    for touch in link.touches:
        lines += [
            "    <collision>",
            f'      <origin xyz="{numbers(touch.xyz)}" rpy="0 0 0"/>',
            f'      <geometry><box size="{numbers(touch.size)}"/></geometry>',
            "    </collision>",
        ]
    return [*lines, "  </link>"]


def _joint_xml(joint: Joint) -> list[str]:
    endless = joint.kind == "revolute" and joint.limits is None
    kind = "continuous" if endless else joint.kind
    lines = [
        f'  <joint name="{joint.name}" type="{kind}">',
        f'    <parent link="{joint.parent}"/>',
        f'    <child link="{joint.child}"/>',
        f'    <origin xyz="{numbers(joint.xyz)}" rpy="{numbers(joint.rpy)}"/>',
    ]
    if kind != "fixed":  # Bullet warns of spherical joints without one, and ignores it
        lines.append(f'    <axis xyz="{numbers(joint.axis)}"/>')
    if joint.limits is not None:
        said = [f'{key}="{number(value)}"' for key, value in asdict(joint.limits).items()]
        lines.append(f"    <limit {' '.join(said)}/>")
    elif kind == "prismatic":
        lines.append('    <limit lower="-100" upper="100" effort="1e9" velocity="1e9"/>')
    if kind != "fixed":
        lines.append(f'    <dynamics damping="{number(joint.damping)}" friction="0"/>')
    return [*lines, "  </joint>"]


def to_urdf(model: Model) -> str:
    """URDF text of a model's tree."""
    which = "No" if not any(link.touches for link in model.links) else "Few"
    lines = ['<?xml version="1.0"?>']
    lines += [
        f"<!-- {model.name}: written by make_models.py, loops in {model.name}.loops.yaml. -->",
        f"<!-- {which} collision shapes: contact between neighbours would disturb comparisons. -->",
    ]
    if model.notice:
        lines += ["<!--", model.notice.strip(), "-->"]
    lines.append(f'<robot name="{model.name}">')
    for link in model.links:
        lines += _link_xml(link)
    for joint in model.joints:
        lines += _joint_xml(joint)
    return "\n".join([*lines, "</robot>", ""])


def write(model: Model, folder: Path) -> list[Path]:
    """Write a model's files; return their paths."""
    written = {folder / f"{model.name}.loops.yaml": model.loops}
    if model.links:
        written[folder / f"{model.name}.urdf"] = to_urdf(model)
    for link in model.links:
        for part in link.parts:
            written[folder / "meshes" / f"{part.mesh}.obj"] = to_obj(part.solid)
    (folder / "meshes").mkdir(parents=True, exist_ok=True)
    for path, text in written.items():
        path.write_text(text, encoding="utf-8")
    return list(written)
