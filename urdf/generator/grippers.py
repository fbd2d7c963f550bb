"""A parallel gripper with two fingers of four bars each, of the size of a Robotiq 2F-85."""

from math import pi

import numpy as np
import trimesh

from generator.planar import OUT
from generator.shapes import ALONG_Y, block, joined, plate, rod, sheets, turned
from generator.urdf_writer import (
    ORIGIN,
    Inertial,
    Joint,
    Link,
    Model,
    Part,
    Touch,
    Triple,
    number,
    of_solids,
)

# in the frame of a finger: x inwards, z along the hand; of the left one that of the base
DRIVER_PIN, SPRING_PIN = (-0.0306, 0.0549), (-0.0127, 0.0614)  # on the base
KNUCKLE, TIP = (-0.0315, -0.0041), (-0.0061, 0.0471)  # of the driver; of the coupler on it
PAD, PAD_SIZE = (0.0227, 0.0, 0.0324), (0.006, 0.022, 0.0374)  # on the finger; across, deep, long
IN: Triple = (0.0, 1.0, 0.0)
"""Axis of the joints: what is positive closes a finger."""


def pin(x: float, z: float, half: float) -> trimesh.Trimesh:
    """Pin across the plane of motion, ``half`` long on each side."""
    return rod((x, -half, z), (x, half, z), 0.0028)


def links() -> tuple[Link, ...]:
    """Base, and four links of each finger; those of both fingers are the same solids."""
    span = (KNUCKLE[0] + TIP[0], KNUCKLE[1] + TIP[1])
    across = (SPRING_PIN[0] - DRIVER_PIN[0], SPRING_PIN[1] - DRIVER_PIN[1])
    housing = turned([(0.0, 0.0375), (0.004, 0.0375), (0.036, 0.0345), (0.04, 0.031)])
    pins = [(-0.0306, 0.0549, 0.008), (0.0306, 0.0549, 0.008), (-0.0127, 0.0614, 0.007)]
    cheek = [*pins, (0.0127, 0.0614, 0.007), (-0.03, 0.046, 0.006), (0.03, 0.046, 0.006)]
    bolts = [pin(x, z, 0.0145) for x, z, _ in cheek[:4]]
    parts = {
        "base": (
            0.64,
            Part("gripper_housing", joined([housing, *sheets(cheek, 0.0145, 0.0185)]), "graphite"),
            Part("gripper_bolts", joined(bolts), "steel"),
        ),
        "driver": (
            0.009,
            Part(
                "gripper_driver",
                joined(sheets([(0, 0, 0.0075), (*KNUCKLE, 0.007)], 0.01, 0.014)),
                "slate",
            ),
        ),
        "coupler": (
            0.022,
            Part(
                "gripper_coupler",
                joined([*sheets([(0, 0, 0.0065), (*TIP, 0.006)], 0.006, 0.01), pin(*TIP, 0.006)]),
                "blue",
            ),
        ),
        "spring_link": (
            0.027,
            Part(
                "gripper_spring_link",
                joined([*sheets([(0, 0, 0.006), (*span, 0.0055)], 0.006, 0.0095)]),
                "gold",
            ),
        ),
        "finger": (
            0.014,
            Part(
                "gripper_finger",
                joined(
                    [
                        plate([(0, 0, 0.007), (0.0137, 0.046, 0.006)], -0.002, 0.002, ALONG_Y),
                        *sheets([(0, 0, 0.006), (*across, 0.0055)], 0.002, 0.0055),
                    ]
                ),
                "slate",
            ),
            Part("gripper_pad", block(PAD, PAD_SIZE), "orange"),
        ),
    }
    found = [_link("base", *parts["base"])]
    for side in ("left", "right"):
        for name in ("driver", "coupler", "spring_link", "finger"):
            touch = (Touch(PAD_SIZE, PAD),) if name == "finger" else ()
            found.append(_link(f"{side}_{name}", *parts[name], touch=touch))
    return tuple(found)


def _link(name: str, mass: float, *parts: Part, touch: tuple[Touch, ...] = ()) -> Link:
    inertial = of_solids(mass, parts)
    if name == "base":  # its plane of symmetry is known
        inertial = Inertial(mass, (0.0, 0.0, inertial.com[2]), np.diag(np.diag(inertial.tensor)))
    return Link(name, inertial, parts, touch)


def joints() -> tuple[Joint, ...]:
    """Hinges of both fingers; those of the right one are turned round."""
    found: list[Joint] = []
    for side, sign, turn in (("left", 1, ORIGIN), ("right", -1, (0.0, 0.0, pi))):
        driver = (sign * DRIVER_PIN[0], 0.0, DRIVER_PIN[1])
        spring = (sign * SPRING_PIN[0], 0.0, SPRING_PIN[1])
        knuckle, tip = (KNUCKLE[0], 0.0, KNUCKLE[1]), (TIP[0], 0.0, TIP[1])
        hinge, base = "revolute", "base"
        names = (f"{side}_driver", f"{side}_coupler", f"{side}_finger", f"{side}_spring_link")
        found += [
            Joint(names[0], hinge, base, names[0], driver, turn, IN),
            Joint(names[1], "fixed", names[0], names[1], knuckle),
            Joint(names[2], hinge, names[1], names[2], tip, ORIGIN, OUT),
            Joint(names[3], hinge, base, names[3], spring, turn, IN),
        ]
    return tuple(found)


def gripper() -> Model:
    """Two fingers that stay parallel, coupled by gears: one freedom."""
    span = [number(round(k, 6)) for k in np.add(KNUCKLE, TIP)]
    pin = [number(round(k, 6)) for k in np.subtract(SPRING_PIN, DRIVER_PIN)]
    lines = [
        f"""\
  - {{name: {side}_pin, type: ball,
     a: {{link: {side}_spring_link, xyz: [{span[0]}, 0, {span[1]}]}},
     b: {{link: {side}_finger, xyz: [{pin[0]}, 0, {pin[1]}]}}}}
"""
        for side in ("left", "right")
    ]
    loops = f"""\
# Two-finger gripper, 85 mm wide when open, hanging. Each finger is a parallelogram: driver with the
# coupler fixed to it, spring link, finger; gears couple the drivers. All zero: open. Positive angles
# close it; the pads meet at 0.80 rad. Pads are the only links that can be touched.
bulletbridge: 1
urdf: gripper.urdf
fixed_base: true
base: {{rpy: [{number(pi)}, 0, 0]}}
loops:
{"".join(lines)}\
  - {{name: gears, type: gear, joints: {{left_driver: 1, right_driver: -1}}}}
actuated: [left_driver]
gravity: [0, 0, -9.81]
start: {{q: {{left_driver: 0, right_driver: 0}}}}
"""
    return Model(
        "gripper", links(), joints(), loops,
        "grasping: pads that stay parallel, gears besides loops; the start of a gripper of one's own",
        "size of the Robotiq 2F-85, own masses; inertias of the meshes",
    )  # fmt: skip
