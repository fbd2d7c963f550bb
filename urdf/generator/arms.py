"""Serial arms that close a loop: on their own base, or by carrying one bar together."""

from math import pi, radians

import numpy as np
from scipy.spatial.transform import Rotation

from generator.shapes import joined, plate, rod, turned
from generator.urdf_writer import (
    Inertial,
    Joint,
    Link,
    Model,
    Part,
    Triple,
    folded,
    number,
    solid_link,
)

# space arm: Denavit-Hartenberg table and link data, inertias in the axes of DH frames
OFFSETS = (0.38, 1.36, 0.57, 0.475, 0.57, 1.36, 0.38)  # d [m]
LENGTHS = (0.0, 0.0, 7.11, 7.11, 0.0, 0.0, 0.0)  # a [m]
TWISTS = (90, 90, 0, 0, 90, 90, 0)  # alpha [deg]
MASSES = (105.98, 105.98, 314.98, 279.2, 105.98, 105.98, 243.66)  # [kg]
MOMENTS = (
    (12.19, 12.13, 3.061),
    (12.13, 3.061, 12.13),
    (15.41, 2094.71, 2103.19),
    (9.522, 1966.28, 1966.28),
    (8.305, 3.061, 8.0386),
    (12.13, 12.13, 3.061),
    (44.41, 44.41, 9.336),
)  # [kg m²]
CENTRES = (
    (0, -0.19, 0),
    (0, -0.68, 0),
    (-3.555, 0, 0),
    (-3.555, 0, 0),
    (0, -0.285, 0),
    (0, -0.68, 0),
    (0, 0, -0.19),
)  # [m]
SHOULDER: Triple = (4.0, 1.0, 2.5)
TIP: Triple = (9.094754087719885, 5.450057092321871, -1.1590797368383916)
PORT: Triple = (15.0, 0.0, -4.0)
"""Where the loads of a docking act."""
START = (-26.4, -42.2, -18.6, -93.4, -97.1, 19.1, 52.5)  # [deg]


def _station() -> tuple[Part, ...]:
    """Visuals: two modules out of the arm's way, tunnel, panels, posts for shoulder, tip, port."""
    long = [(-9, 0.8), (-8.4, 1.5), (-2.1, 1.5), (-2.0, 1.35), (-1.6, 1.35), (-1.5, 1.5),
            (10.6, 1.5), (11.4, 0.9), (12.2, 0.9)]  # fmt: skip
    short = [(-12.5, 0.9), (-11.6, 1.5), (-1.2, 1.5), (-0.4, 0.8)]
    high, low = np.array([0, 3.0, 2.5]), np.array([0, -3.0, -2.5])
    modules = [turned(long, high, (1, 0, 0)), turned(short, low, (1, 0, 0))]
    posts = []
    for point, gap in ((SHOULDER, 0.2), (TIP, 0.1)):
        foot = np.array([point[0], *high[1:]])
        reach = float(np.linalg.norm(np.array(point) - foot))
        profile = [(1.35, 0.5), (1.6, 0.26), (reach - gap, 0.2)]
        posts.append(turned(profile, foot, np.array(point) - foot))
    collar, end = np.array(PORT) - [0.8, 0, 0], np.array([11.8, *high[1:]])
    posts.append(turned([(0, 0.5), (0.3, 0.95), (0.8, 0.95)], collar, (1, 0, 0)))
    posts.append(rod(end, collar + [0.2, 0, 0], 0.26))
    across = (high - low) / np.linalg.norm(high - low)
    aside = np.cross([1.0, 0, 0], across)
    node = np.array([-6.0, 0, 0])
    tunnel = rod(node + low + across, node + high - across, 0.7)
    mast = rod(node - 13 * aside, node + 13 * aside, 0.18)
    frame = np.column_stack([[1.0, 0, 0], aside, across])
    panels = []
    for middle in (-8.0, 8.0):
        corners = [(-6 + u, middle + w, 0.1) for u in (-2, 2) for w in (-4.6, 4.6)]
        panels.append(plate(corners, -0.05, 0.05, frame))
    return (
        Part("space_arm_modules", joined([*modules, tunnel]), "pearl"),
        Part("space_arm_posts", joined([mast, *posts]), "steel"),
        Part("space_arm_panels", joined(panels), "blue"),
    )


def space_arm() -> Model:
    """Seven-joint arm on a free-floating station, its tip held by a ball on the same station."""
    colours = ("gold", "red", "orange", "teal", "gold", "red", "green")
    station = Inertial(180000.0, (0.0, 0.0, 0.0), np.diag([9e6, 16e6, 22e6]))
    links = [Link("station", station, _station())]
    joints: list[Joint] = []
    place, twist = SHOULDER, 0.0
    for k in range(7):
        d, a, alpha = OFFSETS[k], LENGTHS[k], radians(TWISTS[k])
        turn = Rotation.from_euler("x", alpha)
        com = np.array([a, 0, d]) + turn.apply(CENTRES[k])
        inertial = Inertial(
            MASSES[k],
            tuple(float(x) for x in np.round(com, 12)),  # type: ignore[arg-type]
            np.diag(MOMENTS[k]),
            (alpha, 0.0, 0.0),
        )
        solids = [rod((0, 0, 0.2), (0, 0, d + 0.1 * (a > 0)), 0.2)]
        if a > 0:
            solids.append(turned([(0.2, 0.28), (0.5, 0.22), (a - 0.5, 0.22), (a - 0.27, 0.28)],
                                 (0, 0, d), (1, 0, 0)))  # fmt: skip
        end = np.array([a, 0.0, d])
        motor = rod((0, 0, -0.24), (0, 0, 0.24), 0.27, 0.03)
        name = f"space_arm_link_{k + 1}"
        parts = [Part(f"{name}_body", joined(solids), colours[k])]
        if k == 6:
            grip = turned([(0, 0.24), (0.1, 0.24), (0.18, 0.1)], (0, 0, d - 0.18))
            parts.append(Part(f"{name}_grip", grip, "graphite"))
        parts.append(Part("space_arm_motor", motor, "steel"))
        links.append(Link(f"link_{k + 1}", inertial, tuple(parts)))
        parent = f"link_{k}" if k else "station"
        joints.append(
            Joint(f"joint_{k + 1}", "revolute", parent, f"link_{k + 1}", place, (twist, 0, 0),
                  damping=10.0)
        )  # fmt: skip
        place, twist = (float(end[0]), 0.0, float(end[2])), alpha
    q = [f"joint_{k + 1}: {number(radians(angle))}" for k, angle in enumerate(START)]
    tip = ", ".join(number(x) for x in TIP)
    loops = f"""\
# Free-floating station of 180 t with a 17.7 m arm whose tip a ball holds on the station itself
# (Kovecses and Piedboeuf 2003; link data of the size quoted for such an arm). Joint friction is
# viscous, 10 N m s/rad, in the URDF. The source starts at rest and is moved by loads; the start
# rates below only set it moving. Base: centre of mass and quaternion; nothing outside acts on it.
bulletbridge: 1
urdf: space_arm.urdf
fixed_base: false
loops:
  - {{name: tip, type: ball,
     a: {{link: station, xyz: [{tip}]}},
     b: {{link: link_7, xyz: [0, 0, {number(OFFSETS[6])}]}}}}
actuated: [joint_1, joint_2, joint_3, joint_4, joint_5, joint_6, joint_7]
gravity: [0, 0, 0]
start:
  q: {{{folded(["base: [0, 0, 0, 0, 0, 0, 1]", *q], 6)}}}
  v: {{joint_1: 0.02, joint_2: -0.01, joint_7: 0.03}}
"""
    return Model(
        "space_arm", tuple(links), tuple(joints), loops,
        "a loop on a floating base: momentum must stay although the gap is corrected",
        "Kovecses and Piedboeuf (2003), link data chosen",
    )  # fmt: skip


# two arms: the LBR iiwa of PyBullet's data
IIWA_NOTICE = """\
Kinematics and inertias of the arms: lbr_iiwa_urdf as distributed with PyBullet.
Copyright (c) 2015, Robert Krug & Todor Stoyanov, AASS Research Center, Orebro University, Sweden.
All rights reserved. Redistribution and use in source and binary forms, with or without
modification, are permitted provided that the following conditions are met:
1. Redistributions of source code must retain the above copyright notice, this list of conditions
and the following disclaimer. 2. Redistributions in binary form must reproduce the above copyright
notice, this list of conditions and the following disclaimer in the documentation and/or other
materials provided with the distribution. THIS SOFTWARE IS PROVIDED BY THE COPYRIGHT HOLDERS AND
CONTRIBUTORS "AS IS" AND ANY EXPRESS OR IMPLIED WARRANTIES, INCLUDING, BUT NOT LIMITED TO, THE
IMPLIED WARRANTIES OF MERCHANTABILITY AND FITNESS FOR A PARTICULAR PURPOSE ARE DISCLAIMED. IN NO
EVENT SHALL THE COPYRIGHT HOLDER OR CONTRIBUTORS BE LIABLE FOR ANY DIRECT, INDIRECT, INCIDENTAL,
SPECIAL, EXEMPLARY, OR CONSEQUENTIAL DAMAGES (INCLUDING, BUT NOT LIMITED TO, PROCUREMENT OF
SUBSTITUTE GOODS OR SERVICES; LOSS OF USE, DATA, OR PROFITS; OR BUSINESS INTERRUPTION) HOWEVER
CAUSED AND ON ANY THEORY OF LIABILITY, WHETHER IN CONTRACT, STRICT LIABILITY, OR TORT (INCLUDING
NEGLIGENCE OR OTHERWISE) ARISING IN ANY WAY OUT OF THE USE OF THIS SOFTWARE, EVEN IF ADVISED OF THE
POSSIBILITY OF SUCH DAMAGE. Changes: angles written exactly, other shapes, damping, the bar."""
PLACES: tuple[tuple[Triple, Triple], ...] = (
    ((0, 0, 0.1575), (0, 0, 0)),
    ((0, 0, 0.2025), (pi / 2, 0, pi)),
    ((0, 0.2045, 0), (pi / 2, 0, pi)),
    ((0, 0, 0.2155), (pi / 2, 0, 0)),
    ((0, 0.1845, 0), (pi / 2, 0, pi)),
    ((0, 0, 0.2155), (pi / 2, 0, 0)),
    ((0, 0.081, 0), (pi / 2, 0, pi)),
)
FLANGE = 0.045
ARM_LINKS: tuple[tuple[float, Triple, Triple], ...] = (
    (4.0, (0, -0.03, 0.12), (0.1, 0.09, 0.02)),
    (4.0, (0.0003, 0.059, 0.042), (0.05, 0.018, 0.044)),
    (3.0, (0, 0.03, 0.13), (0.08, 0.075, 0.01)),
    (2.7, (0, 0.067, 0.034), (0.03, 0.01, 0.029)),
    (1.7, (0.0001, 0.021, 0.076), (0.02, 0.018, 0.005)),
    (1.8, (0, 0.0006, 0.0004), (0.005, 0.0036, 0.0047)),
    (0.3, (0, 0, 0.02), (0.001, 0.001, 0.001)),
)  # mass, centre of mass, moments
BAR_LENGTH, BAR_MASS, BAR_RADIUS = 0.4, 1.0, 0.02
APART = 1.1
CLOSED = (
    0.06390931993394348, -0.34926187407614595, 0.04764033175492182, -2.315811779236811,
    0.2673605782019911, -0.406844620765846, 0.0478939265576825, -0.07930531671589326,
    -0.34589321653652827, -0.044302968617929865, -2.3147487779546463, -0.31396099328822,
    -0.41521722611579054, -0.004158593039404143,
)  # fmt: skip


def _arm_parts(k: int) -> tuple[Part, ...]:
    """Visuals of arm link ``k`` (from 0): odd links turn about their tube, even ones across it."""
    name = f"two_arms_link_{k + 1}"
    if k == 6:
        disc = turned([(-0.03, 0.04), (0.0, 0.055), (0.035, 0.055), (FLANGE, 0.045)])
        return (Part(f"{name}_flange", disc, "steel"),)
    end = np.array(PLACES[k + 1][0], float)
    reach = float(np.linalg.norm(end))
    if k % 2 == 0:
        tube = turned([(0.0, 0.062), (0.01, 0.068), (reach - 0.075, 0.062), (reach - 0.06, 0.05)],
                      (0, 0, 0), end)  # fmt: skip
        # cheeks beside the next joint, whose axis is the y axis here
        cheeks = [
            plate([(0, reach, 0.052), (0, reach - 0.075, 0.045)], low, low + 0.02,
                  np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]]), 0.006)
            for low in (0.048, -0.068)
        ]  # fmt: skip
        ring = turned([(-0.004, 0.066), (-0.012, 0.07), (0.0, 0.07)], (0, 0, 0), end)
        return (
            Part(f"{name}_body", joined([tube, *cheeks]), "pearl"),
            Part(f"{name}_ring", ring, "orange"),
        )
    hub = rod((0, 0, -0.047), (0, 0, 0.047), 0.052, 0.006)
    start = 0.03
    neck = turned([(start, 0.044), (0.06, 0.05), (reach - 0.02, 0.062), (reach - 0.014, 0.06)],
                  (0, 0, 0), end)  # fmt: skip
    return (
        Part(f"{name}_body", neck, "pearl"),
        Part(f"{name}_hub", hub, "orange"),
    )


def two_arms() -> Model:
    """Two seven-joint arms; the left one carries a bar whose far end is welded to the right one."""
    bench = plate(
        [(u, w, 0.08) for u in (-0.15, APART + 0.15) for w in (-0.15, 0.15)], -0.05, 0.0, bevel=0.01
    )
    feet = [
        turned([(0.0, 0.1), (0.012, 0.1), (0.03, 0.075), (0.145, 0.072)], (x, 0, 0))
        for x in (0, APART)
    ]
    links = [
        solid_link(
            "bench",
            40.0,
            Part("two_arms_bench", bench, "slate"),
            Part("two_arms_feet", joined(feet), "graphite"),
        )
    ]
    joints: list[Joint] = []
    for arm, x, yaw in (("left", 0.0, 0.0), ("right", APART, pi)):
        for k, (mass, com, moments) in enumerate(ARM_LINKS):
            (px, py, pz), (roll, pitch, turn) = PLACES[k]
            inertial = Inertial(mass, com, np.diag(moments))
            links.append(Link(f"{arm}_{k + 1}", inertial, _arm_parts(k)))
            parent = f"{arm}_{k}" if k else "bench"
            place, rpy = (px, py, pz), (roll, pitch, turn)
            if k == 0:
                place, rpy = (x, py, pz), (roll, pitch, yaw)
            joint = f"{arm}_{k + 1}"
            joints.append(Joint(joint, "revolute", parent, joint, place, rpy, damping=0.5))
    across = BAR_MASS * (BAR_LENGTH**2 / 12 + BAR_RADIUS**2 / 4)
    tensor = np.diag([across, across, BAR_MASS * BAR_RADIUS**2 / 2])
    shape = turned([(0, 0.03), (0.012, 0.03), (0.02, BAR_RADIUS), (0.38, BAR_RADIUS),
                    (0.388, 0.03), (0.4, 0.03)])  # fmt: skip
    links.append(
        Link(
            "bar",
            Inertial(BAR_MASS, (0.0, 0.0, BAR_LENGTH / 2), tensor),
            (Part("two_arms_bar", shape, "teal"),),
        )
    )
    joints.append(Joint("carry", "fixed", "left_7", "bar", (0, 0, FLANGE)))
    names = [f"{arm}_{k + 1}" for arm in ("left", "right") for k in range(7)]
    q = [f"{name}: {number(x)}" for name, x in zip(names, CLOSED, strict=True)]
    loops = f"""\
# Two seven-joint arms (inertias of the LBR iiwa) carry one bar of 0.4 m and 1 kg. The bar belongs
# to the left arm, fixed to its flange; its far end is welded to the right arm's flange. So the
# system has 14 joints, one loop of 6 rows, and 8 freedoms. Joint damping 0.5 N m s/rad is in the
# URDF. Released from rest under gravity.
bulletbridge: 1
urdf: two_arms.urdf
fixed_base: true
loops:
  - {{name: grasp, type: weld,
     a: {{link: bar, xyz: [0, 0, {number(BAR_LENGTH)}]}},
     b: {{link: right_7, xyz: [0, 0, {number(FLANGE)}], rpy: [{number(pi)}, 0, 0]}}}}
actuated: [{folded(names, 10)}]
gravity: [0, 0, -9.81]
start:
  q: {{{folded(q, 6)}}}
"""
    return Model(
        "two_arms", tuple(links), tuple(joints), loops,
        "cooperating robots: one weld of six rows, redundant actuation, damping",
        "arm data of PyBullet's kuka_iiwa (BSD 2-clause, notice in the URDF)",
        IIWA_NOTICE,
    )  # fmt: skip
