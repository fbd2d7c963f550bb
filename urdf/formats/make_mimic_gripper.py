"""Write mimic_gripper.urdf: two fingers whose joints mimic one, of boxes, with contact shapes.

Sizes are those of the bundled gripper, whose fingers are kept parallel by loops; here each joint
follows the left driver, as in most grippers' URDFs. Running it again gives the same file.
"""

from math import atan2, hypot
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
DENSITY = 1500.0  # [kg/m³]
# in the frame of a finger: x inwards, z along the hand; of the left one that of the base
DRIVER_PIN, SPRING_PIN = (-0.0306, 0.0549), (-0.0127, 0.0614)
KNUCKLE, TIP = (-0.0315, -0.0041), (-0.0061, 0.0471)
Box = tuple[tuple[float, float, float], tuple[float, float, float], float]
"""Size, centre and pitch."""


def bar(start: tuple[float, float], end: tuple[float, float], deep: float) -> Box:
    """A box from one point of the plane of motion to another."""
    x, z = end[0] - start[0], end[1] - start[1]
    centre = (0.5 * (start[0] + end[0]), 0.0, 0.5 * (start[1] + end[1]))
    return (0.01, deep, hypot(x, z) + 0.008), centre, atan2(x, z)


def link(name: str, boxes: list[Box]) -> str:
    """A link of homogeneous boxes, each to be seen and to be touched."""
    masses = [DENSITY * float(np.prod(size)) for size, _, _ in boxes]
    centres = [np.array(centre) for _, centre, _ in boxes]
    com = np.average(centres, axis=0, weights=masses)
    J = np.zeros((3, 3))
    for (size, _, pitch), mass, centre in zip(boxes, masses, centres, strict=True):
        x, y, z = size
        s, c = np.sin(pitch), np.cos(pitch)
        R = np.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]])
        own = np.diag([y * y + z * z, x * x + z * z, x * x + y * y]) * mass / 12.0
        r = centre - com
        J += R @ own @ R.T + mass * (r @ r * np.eye(3) - np.outer(r, r))
    shapes = ""
    for size, centre, pitch in boxes:
        at = f'<origin xyz="{said(centre)}" rpy="0 {pitch:.9g} 0"/>'
        box = f'<geometry><box size="{said(size)}"/></geometry>'
        shapes += f"    <visual>{at}{box}</visual>\n    <collision>{at}{box}</collision>\n"
    tensor = " ".join(
        f'i{a}{b}="{J[i, k]:.9g}"'
        for a, b, i, k in (
            ("x", "x", 0, 0),
            ("y", "y", 1, 1),
            ("z", "z", 2, 2),
            ("x", "y", 0, 1),
            ("x", "z", 0, 2),
            ("y", "z", 1, 2),
        )
    )
    return (
        f'  <link name="{name}">\n    <inertial>\n      <origin xyz="{said(com)}"/>\n'
        f'      <mass value="{sum(masses):.9g}"/>\n      <inertia {tensor}/>\n    </inertial>\n'
        f"{shapes}  </link>\n"
    )


def joint(side: str, name: str, parent: str, place: tuple[float, float], sign: int) -> str:
    """A hinge; all but the left driver mimic it."""
    mirror = -1 if side == "right" and parent == "base" else 1
    turn = 3.141592653589793 if mirror < 0 else 0
    limits = (0.0, 0.8) if sign > 0 else (-0.8, 0.0)
    mimic = (
        ""
        if (side, name) == ("left", "driver")
        else (f'    <mimic joint="left_driver" multiplier="{sign}" offset="0"/>\n')
    )
    return (
        f'  <joint name="{side}_{name}" type="revolute">\n    <parent link="{parent}"/>\n'
        f'    <child link="{side}_{name}"/>\n'
        f'    <origin xyz="{mirror * place[0]:.9g} 0 {place[1]:.9g}" rpy="0 0 {turn:.16g}"/>\n'
        f'    <axis xyz="0 1 0"/>\n'
        f'    <limit lower="{limits[0]}" upper="{limits[1]}" effort="10" velocity="2"/>\n'
        f'    <dynamics damping="0.001"/>\n{mimic}  </joint>\n'
    )


def said(numbers) -> str:
    """Three numbers."""
    return " ".join(f"{x:.9g}" for x in numbers)


def gripper() -> str:
    """The whole file."""
    reach = (KNUCKLE[0] + TIP[0], KNUCKLE[1] + TIP[1])
    parts = [
        '<?xml version="1.0"?>\n<!-- A gripper whose five joints follow the left driver by mimic'
        " tags. Written by\n     make_mimic_gripper.py; positive angles close. -->\n"
        '<robot name="mimic_gripper">\n',
        '  <link name="world"/>\n  <joint name="mount" type="fixed">\n    <parent link="world"/>\n'
        '    <child link="base"/>\n  </joint>\n',
        link("base", [((0.075, 0.075, 0.04), (0.0, 0.0, 0.02), 0.0)]),
    ]
    for side in ("left", "right"):
        parts += [
            link(
                f"{side}_driver",
                [bar((0.0, 0.0), KNUCKLE, 0.02), bar(KNUCKLE, reach, 0.02)],
            ),
            joint(side, "driver", "base", DRIVER_PIN, 1),
            link(f"{side}_spring_link", [bar((0.0, 0.0), reach, 0.012)]),
            joint(side, "spring_link", "base", SPRING_PIN, 1),
            link(f"{side}_finger", [((0.006, 0.022, 0.0374), (0.0227, 0.0, 0.0324), 0.0)]),
            joint(side, "finger", f"{side}_driver", reach, -1),
        ]
    parts.append(
        '  <transmission name="drive">\n'
        "    <type>transmission_interface/SimpleTransmission</type>\n"
        '    <joint name="left_driver"><hardwareInterface>hardware_interface/EffortJointInterface'
        "</hardwareInterface></joint>\n"
        '    <actuator name="motor"><mechanicalReduction>1</mechanicalReduction></actuator>\n'
        "  </transmission>\n</robot>\n"
    )
    return "".join(parts)


if __name__ == "__main__":
    (HERE / "mimic_gripper.urdf").write_text(gripper(), encoding="utf-8")
