"""The bundled Stewart platform with a plate that can be touched, and a ball."""

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import bulletbridge as bb
from bulletbridge.models.bundled import find
from bulletbridge.models.loops_file import read_loops, write_loops
from bulletbridge.models.model_spec import BodySpec

RADIUS, MASS, TOP = 0.1, 20.0, 0.13  # of the ball [m, kg]; of the deck above its joints [m]
CENTRE = (-0.6427876096865394, 0.766044443118978, 0.0)  # of the platform in its link
BALL = f"""<robot name="ball"><link name="ball">
<inertial><mass value="{MASS}"/><inertia ixx="{0.4 * MASS * RADIUS**2}" ixy="0" ixz="0"
 iyy="{0.4 * MASS * RADIUS**2}" iyz="0" izz="{0.4 * MASS * RADIUS**2}"/></inertial>
<visual><geometry><sphere radius="{RADIUS}"/></geometry>
<material name="red"><color rgba="0.8 0.2 0.2 1"/></material></visual>
<collision><geometry><sphere radius="{RADIUS}"/></geometry></collision></link></robot>"""


def with_plate(folder: Path) -> Path:
    """Loops file of the bundled platform with a plate that can be touched, and the ball."""
    spec = read_loops(find("stewart"))
    tree = ElementTree.parse(spec.bodies[0].urdf)
    for mesh in tree.iter("mesh"):
        mesh.set("filename", str(spec.bodies[0].urdf.parent / mesh.get("filename", "")))
    plate = tree.find("link[@name='platform']")
    assert plate is not None
    shape = ElementTree.SubElement(plate, "collision")
    middle = f"{CENTRE[0]} {CENTRE[1]} {TOP - 0.05}"
    ElementTree.SubElement(shape, "origin", xyz=middle)
    ElementTree.SubElement(ElementTree.SubElement(shape, "geometry"), "box", size="3 3 0.1")
    tree.write(folder / "stewart.urdf")
    (folder / "ball.urdf").write_text(BALL)
    bodies = (
        BodySpec("legs", folder / "stewart.urdf", fixed_base=True),
        BodySpec("ball", folder / "ball.urdf", xyz=(0, 0, 3)),
    )
    loops = [loop for loop in spec.constraints if isinstance(loop, bb.LoopJoint)]
    joined = tuple(
        replace(
            loop,
            a=replace(loop.a, link=f"legs/{loop.a.link}"),
            b=replace(loop.b, link=f"legs/{loop.b.link}"),
        )
        for loop in loops
    )
    actuated = tuple(f"legs/{leg}" for leg in spec.actuated)
    spec = replace(
        spec, bodies=bodies, constraints=joined, actuated=actuated, forces=(), start_v={}
    )
    path = folder / "ball_on_plate.loops.yaml"
    write_loops(spec, path)
    return path
