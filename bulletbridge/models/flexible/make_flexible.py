"""Make a link of a robot flexible: a URDF with a chain in its place, and a loops file with springs.

The rigid-body solver does the rest: the chain is one of rigid links on hinges.
"""

import math
from dataclasses import dataclass, replace
from pathlib import Path
from xml.etree import ElementTree as Xml

import numpy as np

from bulletbridge.bullet.xml_file import write_xml
from bulletbridge.errors import ModelError
from bulletbridge.mechanism.segments import Beam, Lump, rod
from bulletbridge.models.bundled import ENDING, bundled, find
from bulletbridge.models.flexible.urdf import (
    beam_axes,
    end_of,
    find_link,
    inertial_of,
    replace_link,
)
from bulletbridge.models.inertia import triple
from bulletbridge.models.loops_file import read_loops, write_loops
from bulletbridge.models.model_spec import BodySpec, ModelSpec, Triple
from bulletbridge.models.urdf_file import is_file, read_urdf
from bulletbridge.numerics.records import Array

SLENDER = 0.01
"""Radius of gyration of a section, against the length, where nothing is known of it."""
ACROSS = 0.1
"""Cosine below which an axis is across another."""


@dataclass(frozen=True)
class Flexibility:
    """How a link bends.

    Attributes:
        link: Its name, ``body/link`` when there are several robots.
        segments: Number of springs in each direction.
        EI_z, EI_y, GJ: Of bending about z and y of the beam, and of torsion [N m²]; None: rigid.
        damping: Part of critical damping of the first mode of each direction, clamped and free.
        coefficient: Damping of each spring instead [N m s/rad].
        mass_per_length: Of a uniform beam that takes the place of the link's inertia [kg/m].
        end: The joint at its end, seen from the joint that carries it, where its frame is.
        direction, length: Its end without such a joint [m].
        normal: About what it bends first, in the link's frame; its z unless given.
    """

    link: str
    segments: int
    EI_z: float | None = None
    EI_y: float | None = None
    GJ: float | None = None
    damping: float = 0.0
    coefficient: float | None = None
    mass_per_length: float | None = None
    end: str | None = None
    direction: Triple | None = None
    length: float | None = None
    normal: Triple | None = None


@dataclass(frozen=True)
class Flexible:
    """What was written.

    Attributes:
        urdf, loops: The files.
        beam: What bends, lengths and stiffnesses as simulated.
        frequencies: First natural frequency of the link alone, clamped and free, by direction
            [rad/s].
        notes: What to know about them.
    """

    urdf: Path
    loops: Path
    beam: Beam
    frequencies: dict[str, float]
    notes: tuple[str, ...]

    def __str__(self) -> str:
        """Lines for a terminal."""
        lines = [f"{self.urdf}", f"{self.loops}"]
        for kind, frequency in self.frequencies.items():
            k = self.beam.stiffness(kind)
            lines.append(
                f"{kind}: {self.beam.segments} springs of {k:.6g} N m/rad; the link alone, clamped "
                f"and free, at {frequency:.4g} rad/s ({frequency / (2 * math.pi):.4g} Hz)"
            )
        return "\n".join([*lines, *self.notes])


def make_flexible(
    model: str | Path, how: Flexibility, output: Path | None = None, fixed_base: bool = True
) -> Flexible:
    """Write a URDF in which a link is a chain of segments, and its loops file beside it.

    Args:
        model: Bundled name, loops file, or a URDF that has none.
        how: Which link, and how it bends.
        output: The new URDF; a new file in the working directory, with ``_flexible`` in its name,
            unless given.
        fixed_base: Of a URDF without a loops file.

    Raises:
        ModelError: There is no such model or link, a number is impossible, or files with names
            that were not given would be overwritten.
        LoopFileError: The loops file cannot be understood.
    """
    check_numbers(how)
    spec = spec_of(model, fixed_base)
    body, link_name = body_of(spec, how.link)
    robot = read_urdf(body.urdf).getroot()
    link = find_link(robot, link_name)
    reach = reach_of(robot, link_name, how)
    normal = None if how.normal is None else np.array(how.normal)
    R = beam_axes(reach, normal)
    length = float(np.linalg.norm(reach))
    file_beam = Beam(length, how.segments, how.EI_z, how.EI_y, how.GJ)
    beam = replace(file_beam, length=length * body.scale)  # masses do not scale in Bullet
    whole, notes = mass_of_beam(link, R, length, how)
    unbent = _unbent(robot, link_name, how, R)
    chain = replace_link(robot, link, file_beam, R, whole, body.urdf)
    frequencies, damping = _modes(beam, whole, how)
    urdf = output or Path(f"{body.urdf.stem}_flexible.urdf")
    loops = urdf.with_name(urdf.stem + ENDING)
    if output is None and (urdf.exists() or loops.exists()):
        raise ModelError(f"{urdf} or {loops} is there already; name the new file with -o")
    if urdf.resolve() == body.urdf.resolve():
        raise ModelError(f"{urdf} would be overwritten; give another name with -o")
    _keep_meshes(robot, body.urdf, urdf)
    prefix = f"{body.name}/" if len(spec.bodies) > 1 else ""
    springs = [replace(force, joint=prefix + force.joint) for force in chain.forces(beam, damping)]
    bodies = tuple(replace(b, urdf=urdf.resolve()) if b is body else b for b in spec.bodies)
    write_xml(robot, urdf)
    write_loops(replace(spec, bodies=bodies, forces=(*spec.forces, *springs)), loops)
    return Flexible(urdf, loops, beam, frequencies, (*notes, *chain.notes, *unbent))


def check_numbers(how: Flexibility) -> None:
    """Refuse numbers that mean nothing."""
    for name in ("damping", "coefficient"):
        value = getattr(how, name)
        if value is not None and not (math.isfinite(value) and value >= 0.0):
            raise ModelError(f"{name} is {value:g}; give zero or more")
    for name in ("mass_per_length", "length"):
        value = getattr(how, name)
        if value is not None and not (math.isfinite(value) and value > 0.0):
            raise ModelError(f"{name.replace('_', ' ')} is {value:g}; give a positive one")
    if how.length is not None and how.direction is None:
        raise ModelError("a length needs a direction; give both, or the joint at the link's end")


def spec_of(model: str | Path, fixed_base: bool) -> ModelSpec:
    """A model, or a URDF alone as one without loops."""
    path = Path(model)
    alone = path.suffix == ".urdf" and not is_file(path.with_name(path.stem + ENDING))
    if not alone or str(model) in bundled():
        return read_loops(find(model))
    if not is_file(path):
        raise ModelError(f"there is no file {path}; check the path")
    return ModelSpec(path.stem, path, (BodySpec("robot", path.resolve(), fixed_base),), ())


def body_of(spec: ModelSpec, link: str) -> tuple[BodySpec, str]:
    """The robot that a link is of, and its name in that robot's file.

    Raises:
        ModelError: The name has no robot, or an unknown one.
    """
    if len(spec.bodies) == 1:
        return spec.bodies[0], link
    name, _, rest = link.partition("/")
    for body in spec.bodies:
        if body.name == name and rest:
            return body, rest
    known = ", ".join(body.name for body in spec.bodies)
    raise ModelError(f"there are several robots ({known}); name the link as body/link")


def reach_of(robot: Xml.Element, link: str, how: Flexibility) -> Array:
    """From the link's origin to its end (3,) [m], in its frame."""
    if how.direction is None:
        return end_of(robot, link, how.end)
    direction = np.array(how.direction)
    size = float(np.linalg.norm(direction))
    if not (np.isfinite(size) and size > 0.0):
        raise ModelError("the direction of the flexible link is zero")
    return direction if how.length is None else direction * (how.length / size)


def mass_of_beam(
    link: Xml.Element, R: Array, length: float, how: Flexibility
) -> tuple[Lump, list[str]]:
    """What is divided among the segments, and what to say about it.

    Raises:
        ModelError: The link has no inertia, and no mass per length is given.
    """
    own = inertial_of(link, R)
    if how.mass_per_length is None:
        if own is None:
            raise ModelError(
                f"link '{how.link}' has no mass or no inertia to divide; give its mass per length,"
                " or an <inertial> with `bulletbridge inertia`"
            )
        return own, []
    slender = (SLENDER * length) ** 2
    across = (slender, slender) if own is None else tuple(np.diag(own.second)[1:] / own.mass)
    beam = rod(length, how.mass_per_length, (float(across[0]), float(across[1])))
    before = 0.0 if own is None else own.mass
    note = f"{how.link}: a uniform beam of {beam.mass:.6g} kg in place of its {before:.6g} kg"
    return beam, [note]


def _unbent(robot: Xml.Element, link: str, how: Flexibility, R: Array) -> list[str]:
    """What to say where the hinge that carries a link does not turn it as it bends."""
    carrier = robot.find(f"joint/child[@link='{link}']/..")
    if carrier is None or carrier.get("type") not in ("revolute", "continuous"):
        return []
    said = carrier.find("axis")
    axis = np.array(triple("1 0 0" if said is None else said.get("xyz", "1 0 0")))
    axis = np.abs(axis @ R) / np.linalg.norm(axis)  # in the frame of the beam
    bends = [axis[k] for k, stiffness in ((1, how.EI_y), (2, how.EI_z)) if stiffness is not None]
    if max(axis[1:]) < ACROSS or max(bends, default=1.0) >= ACROSS:
        return []
    about = "y" if axis[1] > axis[2] else "z"
    return [
        f"{how.link}: it bends across the plane in which '{carrier.get('name')}' turns it, and not"
        f" in it; if that is meant to bend, let it bend about {about} (EI_{about}, --directions"
        f" {about}), or give the beam's z ('normal')"
    ]


def _modes(beam: Beam, whole: Lump, how: Flexibility) -> tuple[dict[str, float], dict[str, float]]:
    """First frequencies [rad/s] and dampers [N m s/rad] by direction."""
    frequencies: dict[str, float] = {}
    damping: dict[str, float] = {}
    for kind in beam.stiffnesses():
        per_length = (float(whole.J[0, 0]) if kind == "GJ" else whole.mass) / beam.length
        if per_length <= 0.0:
            raise ModelError(f"link '{how.link}' has no inertia about its length to twist")
        frequencies[kind] = beam.frequency(kind, per_length)
        damping[kind] = beam.damping(kind, per_length, how.damping)
        if how.coefficient is not None:
            damping[kind] = how.coefficient
    return frequencies, damping


def _keep_meshes(robot: Xml.Element, old: Path, new: Path) -> None:
    """Name meshes and textures relative to the new file, if it is in another folder."""
    if old.resolve().parent == new.resolve().parent:
        return
    for tag in ("mesh", "texture"):
        for element in robot.iter(tag):
            name = element.get("filename", "")
            if "://" not in name and is_file(old.parent / name):
                element.set("filename", (old.parent / name).resolve().as_posix())
