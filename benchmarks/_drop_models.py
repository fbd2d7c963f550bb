"""What drops.py drops: bundled models, freed and with shapes to touch with, and made ones."""

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

import bulletbridge as bb
from bulletbridge.models.bundled import find
from bulletbridge.models.loops_file import read_loops
from bulletbridge.models.model_spec import BodySpec, ModelSpec

BUNDLED = (
    "four_bar",
    "parallelogram",
    "slider_crank",
    "bricard",
    "two_arms",
    "delta",
    "stewart",
    "triple_slider_crank",
    "minitaur",
)
"""Not ball_chain: friction spins its needles at hundreds of rad/s, too fast for these steps."""
RANDOM = tuple(f"random_{k}" for k in range(5))
KINDS = (*BUNDLED, "carried_bar", *RANDOM)
PIN = (-np.pi / 2, 0.0, 0.0)  # turns z to y, about which the hinges turn


def with_shapes(urdf: Path, folder: Path) -> Path:
    """A copy in which every link may touch what it looks like."""
    tree = ElementTree.parse(urdf)
    for mesh in tree.iter("mesh"):
        mesh.set("filename", str(urdf.parent / mesh.get("filename", "")))
    for link in tree.iter("link"):
        for visual in link.findall("visual")[:1]:
            shape = ElementTree.SubElement(link, "collision")
            shape.extend(part for part in visual if part.tag in ("origin", "geometry"))
    path = folder / urdf.name
    tree.write(path)
    return path


def bar(name: str, length: float, mass: float, width: float = 0.06) -> str:
    """A link that reaches from its origin down by a length [m]."""
    across, along = mass * (length**2 + width**2) / 12, mass * width**2 / 6
    return f"""<link name="{name}"><inertial><origin xyz="0 0 {-length / 2}"/>
<mass value="{mass}"/><inertia ixx="{across}" iyy="{across}" izz="{along}" ixy="0" ixz="0" iyz="0"/>
</inertial><collision><origin xyz="0 0 {-length / 2}"/>
<geometry><box size="{width} {width} {length}"/></geometry></collision></link>"""


def hinge(name: str, parent: str, child: str, xyz: str) -> str:
    """A hinge about y without limits."""
    return (
        f'<joint name="{name}" type="continuous"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{xyz}"/><axis xyz="0 1 0"/></joint>'
    )


def random_four_bar(seed: int, folder: Path) -> ModelSpec:
    """Four bars of random lengths that close, without a fixed one."""
    rng = np.random.default_rng(seed)
    while True:
        ground, crank, coupler, rocker = rng.uniform(0.2, 0.8, 4).round(3)
        if abs(coupler - rocker) + 0.05 < np.hypot(ground, crank) < coupler + rocker - 0.05:
            break
    masses = rng.uniform(0.2, 2.0, 4)
    text = (
        '<robot name="four_bar">'
        + bar("ground", ground, masses[0])
        + bar("crank", crank, masses[1])
        + bar("coupler", coupler, masses[2])
        + bar("rocker", rocker, masses[3])
        + hinge("crank", "ground", "crank", "0 0 0")
        + hinge("coupler", "crank", "coupler", f"0 0 {-crank}")
        + hinge("rocker", "ground", "rocker", f"0 0 {-ground}")
        + "</robot>"
    )
    path = folder / f"random_{seed}.urdf"
    path.write_text(text)
    ends = bb.Frame("coupler", (0, 0, -coupler), PIN), bb.Frame("rocker", (0, 0, -rocker), PIN)
    loop = bb.LoopJoint("pin", bb.JointModel.REVOLUTE, *ends)
    guess: dict[str, float | list[float]] = {"coupler": 1.5, "rocker": 1.5}
    body = BodySpec("robot", path)
    return ModelSpec(path.stem, path, (body,), (loop,), start_q={"crank": 1.57}, start_guess=guess)


def carried_bar(folder: Path) -> ModelSpec:
    """Two boxes with an arm of one hinge each, whose ends carry a bar by balls."""
    path, payload = folder / "carrier.urdf", folder / "payload.urdf"
    path.write_text(
        '<robot name="carrier">'
        + bar("box", 0.3, 3.0, 0.3)
        + bar("arm", 0.4, 0.5, 0.05)
        + hinge("lift", "box", "arm", "0 0 0")
        + "</robot>"
    )
    payload.write_text('<robot name="payload">' + bar("bar", 0.8, 1.0, 0.05) + "</robot>")
    tip = (0.0, 0.0, -0.4)
    loops = (
        bb.LoopJoint("left", bb.JointModel.BALL, bb.Frame("left/arm", tip), bb.Frame("bar/bar")),
        bb.LoopJoint(
            "right",
            bb.JointModel.BALL,
            bb.Frame("right/arm", tip),
            bb.Frame("bar/bar", (0, 0, -0.8)),
        ),
    )
    bodies = (
        BodySpec("left", path, xyz=(0, 0, 1)),
        BodySpec("right", path, xyz=(0.8, 0, 1)),
        BodySpec("bar", payload, xyz=(0, 0, 0.6), rpy=(0, -np.pi / 2, 0)),
    )
    return ModelSpec("carried_bar", path, bodies, loops)


def spec_of(kind: str, folder: Path) -> ModelSpec:
    """What is dropped."""
    if kind == "carried_bar":
        return carried_bar(folder)
    if kind in RANDOM:
        return random_four_bar(int(kind.split("_")[1]), folder)
    spec = read_loops(find(kind))
    if kind != "minitaur":
        copies = [
            replace(b, urdf=with_shapes(b.urdf, folder), fixed_base=False) for b in spec.bodies
        ]
        spec = replace(spec, bodies=tuple(copies), forces=())
    return replace(spec, gravity=(0.0, 0.0, -9.81), start_v={})
