"""Write the flexible arms as URDFs and loops files: chains of segments, and beams in their place.

Their data are in ``bulletbridge.formulations.classics.flexible_arms``. Running it again gives the same files;
``--into FOLDER`` writes elsewhere, ``--segments N`` with more or fewer springs a link.
"""

import argparse
import sys
from dataclasses import replace
from math import pi, radians
from pathlib import Path
from xml.etree import ElementTree as Xml

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))

from bulletbridge.constraints.joints import Coupling, Frame, JointModel, LoopJoint  # noqa: E402
from bulletbridge.constraints.motion import Motion, Sine  # noqa: E402
from bulletbridge.formulations.classics.flexible_arms import (  # noqa: E402
    DENSITY,
    LINE,
    STIFFNESS,
    SYSTEMS,
    FlexibleLink,
    FlexibleSystem,
)
from bulletbridge.mechanism.segments import Beam, Lump, rod  # noqa: E402
from bulletbridge.models.flexible.urdf import Chain, find_link, replace_link  # noqa: E402
from bulletbridge.models.loops_writer import loops_text  # noqa: E402
from bulletbridge.models.model_spec import (  # noqa: E402
    BeamSpec,
    BodySpec,
    FileConstraint,
    JointForce,
    ModelSpec,
)

SEGMENTS = 8
THICK, WIDE = 0.002, 0.08  # of the strips [m]
ROOM = 0.01  # for a pin at either end, where nothing touches [m]
COLOURS = ("0.16 0.43 0.71 1", "0.93 0.49 0.13 1", "0.20 0.58 0.37 1", "0.80 0.22 0.20 1")
NO_INERTIA = '<inertia ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"/>'
NAMES = {
    "1": "flexible_1",
    "2a": "flexible_2",
    "2b": "flexible_2_payload",
    "2c": "flexible_2",
    "3": "flexible_2_shaken",
    "4": "flexible_4_macro_mini",
    "5a": "flexible_4",
    "5b": "flexible_4",
    "5c": "flexible_4",
    "6a": "flexible_2_long",
    "6b": "flexible_2",
}
"""URDFs by system: some differ in what acts on them only. Both arms of system 6 are one URDF."""


def whole(link: FlexibleLink) -> Lump:
    """Mass of a strip, of no thickness: its sections have no inertia about the axes of joints."""
    return rod(link.length, DENSITY, (0.0, WIDE**2 / 12.0))


def shape(size: str, xyz: str, colour: str, touched: str = "") -> str:
    """A box to look at, and one to touch: the same unless its size is given."""

    def box(size: str) -> str:
        return f'<origin xyz="{xyz}" rpy="0 0 0"/><geometry><box size="{size}"/></geometry>'

    seen = f'<material name="{colour}"><color rgba="{colour}"/></material>'
    return f"<visual>{box(size)}{seen}</visual><collision>{box(touched or size)}</collision>"


def inertial(lump: Lump) -> str:
    """An <inertial>, in principal axes."""
    x, y, z = (float(moment) for moment in np.diag(lump.J))
    tensor = f'<inertia ixx="{x!r}" ixy="0" ixz="0" iyy="{y!r}" iyz="0" izz="{z!r}"/>'
    place = f'<origin xyz="{float(lump.com[0])!r} 0 0" rpy="0 0 0"/>'
    return f'<inertial>{place}<mass value="{float(lump.mass)!r}"/>{tensor}</inertial>'


def joint(name: str, kind: str, parent: str, child: str, x: float, axis: str = "0 0 1") -> str:
    """A joint with its frame at x [m] on its parent."""
    limit = '<limit lower="-100" upper="100" effort="1e9" velocity="1e9"/>'
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{x!r} 0 0" rpy="0 0 0"/>'
        + (f'<axis xyz="{axis}"/>' if kind != "fixed" else "")
        + (limit if kind == "prismatic" else "")
        + "</joint>"
    )


def rigid_arm(name: str, arm: tuple[FlexibleLink, ...], shaken: bool) -> Xml.Element:
    """The tree of an arm whose links do not bend yet."""
    block = shape("0.06 0.06 0.12", "0 0 -0.02", "0.27 0.30 0.34 1")
    still = Lump(1.0, np.zeros(3), np.diag([5e-4, 5e-4, 5e-4]))
    parts = [f'<link name="ground">{inertial(still)}{"" if shaken else block}</link>']
    on = "ground"
    if shaken:
        parts.append(f'<link name="slider">{inertial(still)}{block}</link>')
        parts.append(joint("base", "prismatic", "ground", "slider", 0.0, "1 0 0"))
        on = "slider"
    x = 0.0
    for k, link in enumerate(arm, start=1):
        section = f"{THICK!r} {WIDE!r}"
        strip = shape(
            f"{link.length!r} {section}",
            f"{0.5 * link.length!r} 0 0",
            COLOURS[k - 1],
            f"{link.length - 2.0 * ROOM!r} {section}",
        )
        parts.append(f'<link name="link{k}">{inertial(whole(link))}{strip}</link>')
        parts.append(joint(f"joint{k}", "continuous", on, f"link{k}", x))
        on, x = f"link{k}", link.length
        if link.tip_mass:
            block = shape("0.06 0.06 0.06", "0 0 0", "0.92 0.72 0.16 1")
            mass = f'<inertial><mass value="{link.tip_mass!r}"/>{NO_INERTIA}</inertial>'
            parts.append(f'<link name="payload">{mass}{block}</link>')
            parts.append(joint("payload_weld", "fixed", on, "payload", x))
    return Xml.fromstring(f'<robot name="{name}">{"".join(parts)}</robot>')


def write_urdf(
    system: FlexibleSystem, folder: Path, segments: int
) -> tuple[Path, list[tuple[str, FlexibleLink, Chain, Beam]]]:
    """The URDF of one arm, its flexible links cut into segments; its file and chains."""
    name, arm = NAMES[system.name], system.arms[0]
    robot, path = rigid_arm(name, arm, system.shake is not None), folder / f"{name}.urdf"
    chains: list[tuple[str, FlexibleLink, Chain, Beam]] = []
    for k, link in enumerate(arm, start=1):
        if link.modes:
            beam = Beam(link.length, segments, STIFFNESS)
            element = find_link(robot, f"link{k}")
            chain = replace_link(robot, element, beam, np.eye(3), whole(link), path)
            chains.append((f"link{k}", link, chain, beam))
    robot.insert(0, Xml.Comment(" written by make_systems.py, chains as by bulletbridge flexible "))
    Xml.indent(robot)
    Xml.ElementTree(robot).write(path, encoding="utf-8", xml_declaration=True)
    return path, chains


def spec_of(system: FlexibleSystem, folder: Path, segments: int) -> ModelSpec:
    """The model with beams; its springs are those of the chains."""
    path, chains = write_urdf(system, folder, segments)
    arms = ["left/", "right/"][: len(system.arms)] if len(system.arms) > 1 else [""]
    bodies = tuple(
        BodySpec(prefix.rstrip("/") or "robot", path, True, (x, 0.0, 0.0))
        for prefix, x in zip(arms, system.bases, strict=True)
    )
    forces: list[JointForce] = []
    beams: list[BeamSpec] = []
    start: dict[str, float | list[float]] = {}
    for prefix, arm in zip(arms, system.arms, strict=True):
        angle = 0.0
        for k, link in enumerate(arm, start=1):
            name = f"{prefix}joint{k}"
            start[name] = radians(link.angle - angle)
            angle = link.angle
            if link.torque[0]:
                forces.append(JointForce(name, Sine(link.torque[0], 1.0 / link.torque[1])))
        for name, _, chain, beam in chains:
            springs = chain.forces(beam, {})
            forces += [replace(force, joint=prefix + force.joint) for force in springs]
            modes = arm[int(name[-1]) - 1].modes
            beams.append(BeamSpec(prefix + name, STIFFNESS, DENSITY, modes))
    constraints: list[FileConstraint] = []
    if system.shake is not None:
        c, w = system.shake
        motion = Motion(z=Sine(-c, w / (2 * pi), 0.5 * pi, c))
        constraints.append(Coupling("drive", {"base": 1.0}, motion=motion))
    tips = [
        Frame(f"{prefix}link{len(arm)}", (arm[-1].length, 0.0, 0.0))
        for prefix, arm in zip(arms, system.arms, strict=True)
    ]
    if system.closed == "line":
        ground = Frame("world", (0.0, LINE, 0.0))
        line = LoopJoint("line", JointModel.POINT_ON_PLANE, ground, tips[0], (0.0, 1.0, 0.0))
        constraints.append(line)
    elif system.closed == "tips":
        constraints.append(LoopJoint("tips", JointModel.BALL, tips[1], tips[0]))
    name = f"system_{system.name}"
    return ModelSpec(
        name, folder / f"{name}.loops.yaml", bodies, tuple(constraints), tuple(start),
        (0.0, 0.0, 0.0), start, {}, tuple(forces), {}, tuple(beams),
    )  # fmt: skip


def write(system: FlexibleSystem, folder: Path, segments: int = SEGMENTS) -> None:
    """All files of a system: ``system_N`` with beams, ``system_N_segments`` without."""
    spec = spec_of(system, folder, segments)
    for name, said, model in (
        (spec.name, "by modes", replace(spec, forces=motors(spec))),
        (f"{spec.name}_segments", f"by {segments} segments a link", replace(spec, beams=())),
    ):
        path = folder / f"{name}.loops.yaml"
        head = f"# System {system.name}: {system.about}; {said}. Written by make_systems.py.\n"
        path.write_text(head + loops_text(model, path), encoding="utf-8")


def motors(spec: ModelSpec) -> tuple[JointForce, ...]:
    """Forces but the springs of chains."""
    return tuple(force for force in spec.forces if not force.stiffness)


def main(arguments: list[str] | None = None) -> int:
    """Write everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--into", type=Path, default=HERE, help="folder to write to")
    parser.add_argument("--segments", type=int, default=SEGMENTS, help="springs of each link")
    options = parser.parse_args(arguments)
    for system in SYSTEMS.values():
        write(system, options.into.resolve(), options.segments)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
