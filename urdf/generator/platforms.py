"""Parallel robots: the Stewart-Gough platform and the Delta robot."""

from math import atan2, cos, hypot, pi, radians, sin, sqrt

import numpy as np

from generator.shapes import Array, ball, joined, plate, rod, stalk, turned
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


def triple(values: Array) -> Triple:
    """Three numbers of an array."""
    x, y, z = (float(value) for value in values)
    return x, y, z


def upright(direction: Array) -> Triple:
    """Turn of the z axis to a direction, as rpy."""
    z = direction / np.linalg.norm(direction)
    x = np.cross(np.eye(3)[int(np.argmin(np.abs(z)))], z)
    x /= np.linalg.norm(x)
    return angles(np.column_stack([x, np.cross(z, x), z]))


def angles(R: Array) -> Triple:
    """Roll, pitch and yaw of a rotation matrix (3, 3)."""
    pitch = atan2(-R[2, 0], hypot(R[0, 0], R[1, 0]))
    if hypot(R[0, 0], R[1, 0]) < 1e-9:  # yaw and roll turn about the same axis: one is enough
        return atan2(-R[1, 2], R[1, 1]), pitch, 0.0
    return atan2(R[2, 1], R[2, 2]), pitch, atan2(R[1, 0], R[0, 0])


def leg_points() -> tuple[Array, Array]:
    """Leg ends on base and platform (6, 3) [m], pairs of neighbours closest on the base."""
    base, top = [], []
    for k in range(3):
        for side in (-1, 1):
            low, high = radians(120 * k + 2.5 * side), radians(120 * k + 50 * side)
            base.append([3 * cos(low), 3 * sin(low), 0.0])
            top.append([cos(high), sin(high), 2.0])
    return np.array(base), np.array(top)


def stewart() -> Model:
    """Six universal-prismatic-spherical legs; one carries the platform, balls close five."""
    base, top = leg_points()
    length = float(np.linalg.norm(top[0] - base[0]))
    disc = 900.0 * (3 + 0.05**2) / 12
    small = Inertial(0.001, (0.0, 0.0, 0.0), np.diag([1e-5] * 3))
    tube = turned(
        [(0.12, 0.05), (0.14, 0.075), (0.24, 0.085), (1.78, 0.085), (1.8, 0.095), (1.95, 0.095),
         (1.96, 0.06)]
    )  # fmt: skip
    stem = rod((0, 0, -1.55), (0, 0, -0.06), 0.045, 0.005)
    fork = joined([rod((0, 0, -0.16), (0, 0, 0.16), 0.06), rod((-0.11, 0, 0), (0.11, 0, 0), 0.05)])
    floor = plate([(*p[:2], 0.3) for p in base], -0.42, -0.3, bevel=0.02)
    posts = [turned([(-0.3, 0.16), (-0.12, 0.09), (-0.1, 0.07)], triple(p)) for p in base]
    deck = plate([(*p[:2], 0.14) for p in top], 0.05, 0.13, bevel=0.015)
    sockets = [turned([(-0.01, 0.08), (0.05, 0.11)], (p[0], p[1], 0.0)) for p in top]
    links = [
        solid_link(
            "ground",
            500.0,
            Part("stewart_floor", floor, "slate"),
            Part("stewart_posts", joined(posts), "graphite"),
        )
    ]
    joints: list[Joint] = []
    colours = ("orange", "blue", "green", "red", "gold", "teal")
    for k, colour in enumerate(colours):
        along = (top[k] - base[k]) / length
        first = np.cross([0.0, 0.0, 1.0], along)
        first /= np.linalg.norm(first)
        second, rpy = np.cross(along, first), upright(along)
        # each half of the leg is a rod of half its length
        spread = np.outer(along, along)
        across = (length / 2) ** 2 / 12
        unit = across * (np.eye(3) - spread)
        cylinder = 60 * unit + 60 * 0.05**2 / 2 * spread
        piston = 30 * unit + 30 * 0.05**2 / 2 * spread
        links += [
            Link(f"cross{k}", small, (Part("stewart_cross", fork, "steel", rpy=upright(first)),)),
            Link(
                f"cylinder{k}",
                Inertial(60.0, triple(along * length / 4), cylinder),
                (Part("stewart_cylinder", tube, colour, rpy=rpy),),
            ),
            Link(
                f"piston{k}",
                Inertial(30.0, triple(-along * length / 4), piston),
                (
                    Part("stewart_piston", stem, "steel", rpy=rpy),
                    Part("stewart_ball", ball((0, 0, 0), 0.08), "graphite"),
                ),
            ),
        ]
        joints += [
            Joint(
                f"u1_{k}", "revolute", "ground", f"cross{k}", triple(base[k]),
                axis=triple(first),
            ),
            Joint(f"u2_{k}", "revolute", f"cross{k}", f"cylinder{k}", axis=triple(second)),
            Joint(
                f"leg{k}", "prismatic", f"cylinder{k}", f"piston{k}", triple(along * length),
                axis=triple(along),
            ),
        ]  # fmt: skip
        if k == 0:
            centre = triple(np.array([0, 0, 2.0]) - top[0])
            tiny = (Part("stewart_ball", ball((0, 0, 0), 0.08), "graphite"),)
            links += [
                Link("socket_x", small, tiny),
                Link("socket_y", small, tiny),
                Link(
                    "platform",
                    Inertial(900.0, centre, np.diag([disc, disc, 900.0 / 2])),
                    (
                        Part("stewart_deck", deck, "pearl", xyz=centre),
                        Part("stewart_sockets", joined(sockets), "graphite", xyz=centre),
                    ),
                ),
            ]
            joints += [
                Joint("socket_x", "revolute", "piston0", "socket_x", axis=(1, 0, 0)),
                Joint("socket_y", "revolute", "socket_x", "socket_y", axis=(0, 1, 0)),
                Joint("socket_z", "revolute", "socket_y", "platform"),
            ]
    speed, spin = np.array([0.3, -0.2, 0.1]), np.array([0.2, -0.1, 0.5])
    rates = []
    for k in range(6):
        along = (top[k] - base[k]) / length
        rates.append(float(along @ (speed + np.cross(spin, top[k] - [0, 0, 2.0]))))
    rows = "\n".join(
        f"  - {{name: ball{k}, type: ball, a: {{link: piston{k}}},\n     b: {{link: platform, "
        f"xyz: [{', '.join(number(x) for x in top[k] - top[0])}]}}}}"
        for k in range(1, 6)
    )
    springs = "\n".join(f"  - {{joint: leg{k}, stiffness: 100000}}" for k in range(6))
    loops = f"""\
# Stewart-Gough platform, 6-UPS: base radius 3 m, platform radius 1 m, height 2 m.
# The platform hangs in the tree on leg 0; balls close the other five. All zero is the start.
# Each leg has a spring that is relaxed at the start. The start rates of the legs are those of the
# platform moving with (0.3, -0.2, 0.1) m/s and turning with (0.2, -0.1, 0.5) rad/s.
bulletbridge: 1
urdf: stewart.urdf
fixed_base: true
loops:
{rows}
actuated: [leg0, leg1, leg2, leg3, leg4, leg5]
gravity: [0, 0, -9.81]
start:
  v: {{{folded([f"leg{k}: {number(rate)}" for k, rate in enumerate(rates)], 6)}}}
forces:
{springs}
"""
    return Model(
        "stewart", tuple(links), tuple(joints), loops,
        "five spatial loops of full rank; a 6-dof parallel robot with actuated legs",
        "geometry of a well-known example of the MathWorks documentation, own masses",
    )  # fmt: skip


def delta() -> Model:
    """Three arms, three pairs of rods; the platform keeps its orientation."""
    base, arm, forearm, deck, side, drawn = 0.2, 0.3, 0.6, 0.07, 0.05, 0.4
    out = base + arm * cos(drawn) - deck
    down = sqrt(forearm**2 - out**2)
    pitch = atan2(down, -out)
    pivots = [_turned_about_z((base, 0.0), k) for k in range(3)]
    housings = [
        Part(
            "delta_motor",
            joined([rod((0, y, 0), (0, y + 0.05, 0), 0.032) for y in (-0.082, 0.032)]),
            "graphite",
            (*pivot, 0.0),
            (0.0, 0.0, 2 * pi * k / 3),
        )
        for k, pivot in enumerate(pivots)
    ]
    roof = plate([(*p, 0.075) for p in pivots], 0.032, 0.052, bevel=0.005)
    ground = (Part("delta_roof", roof, "slate"), *housings)
    links = [Link("ground", Inertial(5.0, (0, 0, 0.04), np.diag([0.08, 0.08, 0.15])), ground)]
    corners = [(arm - 0.014, v, 0.002) for v in (-0.014, 0.014)]
    shaft = plate(
        [(0.024, -0.02, 0.002), (0.024, 0.02, 0.002), *corners], -0.012, 0.012, bevel=0.001
    )
    corners = [(arm + u, v, 0.004) for u in (-0.008, 0.008) for v in (0.02 - side, side - 0.02)]
    yoke = plate(corners, -0.012, 0.012, bevel=0.002)
    hub = rod((0, -0.03, 0), (0, 0.03, 0), 0.022, 0.002)
    upper = joined([shaft, yoke, hub])
    lower = turned(stalk(0.016, forearm, 0.007, 0.012), direction=(1, 0, 0))
    knuckle = ball((0, 0, 0), 0.014)
    joints: list[Joint] = []
    loops: list[str] = []
    first = np.array([deck, side, 0.0])
    for k, colour in enumerate(("orange", "blue", "green")):
        yaw = (0.0, 0.0, 2 * pi * k / 3)
        body = Part("delta_arm", upper, colour)
        links.append(solid_link(f"arm_{k + 1}", 0.5, body))
        pivot = (*pivots[k], 0.0)
        joints.append(
            Joint(f"motor_{k + 1}", "revolute", "ground", f"arm_{k + 1}", pivot, yaw, (0, 1, 0))
        )
        for letter, y in (("a", side), ("b", -side)):
            rod_name, cross = f"rod_{k + 1}{letter}", f"cross_{k + 1}{letter}"
            links.append(solid_link(cross, 0.02, Part("delta_cross", knuckle, "graphite")))
            links.append(solid_link(rod_name, 0.06, Part("delta_rod", lower, "steel")))
            bend = (0.0, pitch - drawn, 0.0)
            joints += [
                Joint(f"swing_{k + 1}{letter}", "revolute", f"arm_{k + 1}", cross,
                      (arm, y, 0.0), bend, (0, 1, 0)),
                Joint(f"sway_{k + 1}{letter}", "revolute", cross, rod_name, axis=(0, 0, 1)),
            ]  # fmt: skip
            if (k, letter) == (0, "a"):
                joints.append(
                    Joint("wrist", "spherical", rod_name, "platform", (forearm, 0, 0),
                          (0.0, -pitch, 0.0))
                )  # fmt: skip
                continue
            place = np.array([*_turned_about_z((deck, y), k), 0.0]) - first
            xyz = ", ".join(number(round(x, 15)) for x in place)
            loops.append(
                f"  - {{name: {rod_name}, type: ball, a: {{link: {rod_name}, "
                f"xyz: [{number(forearm)}, 0, 0]}},\n     b: {{link: platform, xyz: [{xyz}]}}}}"
            )
    tips = [_turned_about_z((deck, y), k) for k in range(3) for y in (-side, side)]
    plates = joined(
        [
            plate([(u - deck, v - side, 0.012) for u, v in tips], -0.03, -0.014, bevel=0.003),
            turned([(-0.07, 0.018), (-0.034, 0.024), (-0.03, 0.024)], (-deck, -side, 0)),
        ]
    )
    links.append(solid_link("platform", 0.4, Part("delta_platform", plates, "pearl")))
    motors = [f"motor_{k + 1}" for k in range(3)]
    q = ", ".join(f"{name}: {number(drawn)}" for name in motors)
    text = f"""\
# Delta robot, hanging: arms 0.3 m, rods 0.6 m in pairs. Each rod hangs on its arm by a universal
# joint (swing, sway), so that no rod can spin about itself, and ends in a ball at the platform.
# The platform hangs in the tree on rod 1a; balls close the other five. Exactly three freedoms
# remain, translations of the platform. Arm angles count down from the horizontal; all other joints
# are zero in the position below. Springs hold the motors, or it would fall through singular ones.
bulletbridge: 1
urdf: delta.urdf
fixed_base: true
loops:
{chr(10).join(loops)}
actuated: [{", ".join(motors)}]
gravity: [0, 0, -9.81]
start:
  q: {{{q}}}
  v: {{motor_1: 1.0, motor_2: 0.0, motor_3: -0.5}}
forces:
{chr(10).join(f"  - {{joint: {name}, stiffness: 10, rest: {number(drawn)}}}" for name in motors)}
"""
    return Model(
        "delta", tuple(links), tuple(joints), text,
        "three translations from fifteen rows; light passive bodies; a spherical joint in the tree",
        "own choice; inertias of the meshes",
    )  # fmt: skip


def _turned_about_z(point: tuple[float, float], thirds: int) -> tuple[float, float]:
    """Point in the plane turned by thirds of a turn."""
    c, s = cos(2 * pi * thirds / 3), sin(2 * pi * thirds / 3)
    return c * point[0] - s * point[1], s * point[0] + c * point[1]
