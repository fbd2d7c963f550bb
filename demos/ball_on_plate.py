"""A ball rolls on a plate that a Stewart platform tilts, legs held by motors: 5/7 g sin(tilt).

Fifteen loop rows, six motors and a rolling contact in one problem per step.
"""

import tempfile
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import numpy as np
import pybullet
from _show import play, run, window
from scipy.spatial.transform import Rotation

import bulletbridge as bb
from bulletbridge.models.bundled import find
from bulletbridge.models.loops_file import read_loops, write_loops
from bulletbridge.models.model_spec import BodySpec

TILT, G, DT, DURATION = 0.05, 9.81, 1 / 240, 1.0  # [rad], [m/s²], [s], [s]
RADIUS, MASS, TOP = 0.1, 20.0, 0.13  # of the ball [m, kg]; of the deck above its joints [m]
CENTRE = (-0.6427876096865394, 0.766044443118978, 0.0)  # of the platform in its link
BALL = f"""<robot name="ball"><link name="ball">
<inertial><mass value="{MASS}"/><inertia ixx="{0.4 * MASS * RADIUS**2}" ixy="0" ixz="0"
 iyy="{0.4 * MASS * RADIUS**2}" iyz="0" izz="{0.4 * MASS * RADIUS**2}"/></inertial>
<visual><geometry><sphere radius="{RADIUS}"/></geometry>
<material name="red"><color rgba="0.8 0.2 0.2 1"/></material></visual>
<collision><geometry><sphere radius="{RADIUS}"/></geometry></collision></link></robot>"""


class Measured(NamedTuple):
    """What the ball did."""

    rolling: float  # error of its acceleration, over 5/7 g sin(tilt)
    slip: float  # largest speed of its lowest point against the plate [m/s]
    gap: float  # largest of the loops [m]


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


def measure(gui: bool = False) -> Measured:
    """Tilt the plate, put the ball on it, let it roll."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        path = with_plate(Path(folder))
        client = stack.enter_context(window(gui, str(path)))
        model = bb.load(path, client, dt=DT, contacts=True)
        system, middle = model.system, bb.Frame("legs/platform", CENTRE)
        tilted = Rotation.from_rotvec([0, TILT, 0]).as_matrix()
        point = system.kinematics().point(middle)
        q = bb.inverse_kinematics(system, middle, point.p_W, tilted @ point.R_W)
        down, normal = tilted[:, 0], tilted[:, 2]
        base = system.mechanism.joint("ball/base")
        q[base.q] = *(point.p_W + (TOP + RADIUS) * normal - 0.3 * down), 0.0, 0.0, 0.0, 1.0
        system.set_state(q, np.zeros(system.mechanism.nv))
        for k in range(6):
            leg = f"legs/leg{k}"
            at = float(q[system.mechanism.joint(leg).q][0])
            system.motors.set(leg, force=1e6, position=at)
        for link in range(-1, pybullet.getNumJoints(model.ids["legs"], client)):
            pybullet.changeDynamics(
                model.ids["legs"], link, lateralFriction=1.0, physicsClientId=client
            )
        slip = gap = 0.0
        while system.t < DURATION - DT / 2:
            play(system, DT, gui)
            rates = system.v[base.v]
            slip = max(
                slip, float(np.linalg.norm(rates[3:] - RADIUS * np.cross(rates[:3], normal)))
            )
            gap = max(gap, system.evaluate().largest("kept_metres"))
        speed = float(system.v[base.v][3:] @ down)
    return Measured(abs(speed / DURATION / (5 / 7 * G * np.sin(TILT)) - 1), slip, gap)


def main(gui: bool = False) -> float:
    """Roll for a second; return the relative error of the ball's acceleration."""
    m = measure(gui)
    print(f"rolls {m.rolling:.0e} off 5/7 g sin, slip {m.slip:.0e} m/s, gap {m.gap:.0e} m")
    return m.rolling


if __name__ == "__main__":
    run(main, __doc__)
