"""Spatial loops: Bricard's six bars, a hanging chain of balls, and Minitaur's legs."""

from math import cos, pi, radians

import numpy as np

from generator.planar import pitched
from generator.platforms import angles, triple
from generator.shapes import ALONG_Y, ball, joined, plate, rod, stalk, turned
from generator.urdf_writer import Inertial, Joint, Link, Model, Part, folded, number, solid_link


def hinged_bar() -> tuple[Part, ...]:
    """Visuals of a bar of 1 m along x: a barrel about y at the start, a fork about z at the end."""
    shaft = turned([(0.055, 0.05), (0.09, 0.036), (0.82, 0.036), (0.87, 0.05)], direction=(1, 0, 0))
    barrel = rod((0, -0.065, 0), (0, 0.065, 0), 0.06, 0.006)
    corners = [(u, v, 0.01) for u in (0.88, 0.9) for v in (-0.05, 0.05)]
    bridge = plate(corners, -0.1, 0.1, bevel=0.004)
    cheeks = [
        plate([(1, 0, 0.06), (0.93, 0, 0.06)], low, low + 0.03, bevel=0.005) for low in (-0.1, 0.07)
    ]
    pin = rod((1, 0, -0.115), (1, 0, 0.115), 0.028)
    return (
        Part("bricard_bar", joined([shaft, barrel, bridge, *cheeks]), "blue"),
        Part("bricard_pin", pin, "steel"),
    )


def bricard() -> Model:
    """Six bars of 1 m, six revolutes, one freedom although counting says none."""
    corners = np.array(
        [[0, 0, 1], [0, 0, 0], [1, 0, 0], [1, -1, 0], [1, -1, 1], [0, -1, 1], [0, 0, 1.0]]
    )
    axes = np.eye(3)[[0, 1, 2, 0, 1, 2, 0]]
    colours = ("slate", "orange", "blue", "green", "gold", "red")
    body, pin = hinged_bar()
    links: list[Link] = []
    joints: list[Joint] = []
    for k, colour in enumerate(colours):
        along = corners[k + 1] - corners[k]
        axis = axes[k]
        turn = np.column_stack([along, axis, np.cross(along, axis)])
        rpy = angles(turn)
        start = triple(corners[0]) if k == 0 else (0.0, 0.0, 0.0)
        parts = (
            Part(body.mesh, body.solid, colour, start, rpy),
            Part(pin.mesh, pin.solid, pin.colour, start, rpy),
        )
        name = f"bar{k}" if k else "ground"
        spread = np.outer(along, along)
        tensor = 0.01 / 6 * spread + 1.01 / 12 * (np.eye(3) - spread)
        middle = (corners[k] + corners[k + 1]) / 2 - (corners[k] if k else 0)
        links.append(Link(name, Inertial(1.0, triple(middle), tensor), parts))
        if k:
            place = (corners[k] - corners[k - 1]) if k > 1 else corners[1]
            parent = f"bar{k - 1}" if k > 1 else "ground"
            joints.append(
                Joint(f"j{k}", "revolute", parent, name, triple(place), axis=triple(axis))
            )
    loops = """\
# Bricard linkage of the IFToMM benchmarks: six bars of 1 m, 1 kg, square 0.1 m, hinged in a closed
# chain with axes y z x y z x; the sixth bar is the ground. Released from rest, gravity along -y.
# Counting says the loop (5 rows on 5 joints) is rigid; at every position only 4 rows are
# independent and it moves. No single row is safe to drop. Symmetric: q1 = q3 = q5.
bulletbridge: 1
urdf: bricard.urdf
fixed_base: true
loops:
  - {name: j6, type: revolute,
     a: {link: bar5, xyz: [0, 1, 0]}, b: {link: ground, xyz: [0, 0, 1]}, axis: [1, 0, 0]}
actuated: [j1]
gravity: [0, -9.81, 0]
start: {q: {j1: 0}}
"""
    return Model(
        "bricard", tuple(links), tuple(joints), loops,
        "mobile although over-constrained; a redundant row that is no single row",
        "IFToMM benchmark library, A04",
    )  # fmt: skip


def ball_chain() -> Model:
    """Six links between two anchors, hinged by balls throughout."""
    length, mass, n = 0.25, 0.2, 6
    angles = [radians(a) for a in (-75, -45, -15, 15, 45, 75)]
    span = 2 * length * sum(cos(a) for a in angles[:3])
    anchors = (0.0, span)
    beam = plate([(u, 0.09, 0.025) for u in (-0.06, span + 0.06)], -0.03, 0.03, ALONG_Y, 0.005)
    hooks = [turned([(0.02, 0.014), (0.04, 0.009), (0.065, 0.018)], (u, 0, 0)) for u in anchors]
    links = [
        solid_link(
            "ground",
            2.0,
            Part("ball_chain_beam", beam, "slate"),
            Part("ball_chain_hooks", joined(hooks), "steel"),
            Part("ball_chain_socket", ball((0, 0, 0), 0.022), "graphite"),
        )
    ]
    shape = turned(stalk(0.026, length, 0.011, 0.024), direction=(1, 0, 0))
    joints: list[Joint] = []
    colours = ("orange", "gold", "green", "teal", "blue", "purple")
    for k, colour in enumerate(colours):
        part = Part("ball_chain_link", shape, colour)
        links.append(solid_link(f"link_{k + 1}", mass, part))
        parent, place = (f"link_{k}", (length, 0.0, 0.0)) if k else ("ground", (0.0, 0.0, 0.0))
        bend = angles[k] - (angles[k - 1] if k else 0.0)
        joints.append(
            Joint(f"ball_{k + 1}", "spherical", parent, f"link_{k + 1}", place, pitched(bend))
        )
    loops = f"""\
# Chain of {n} links with spherical joints between two anchors; the last one is the loop joint.
# All zero is the drawn arch. Each link may also spin about itself. One link starts sideways.
bulletbridge: 1
urdf: ball_chain.urdf
fixed_base: true
loops:
  - {{name: anchor, type: ball,
     a: {{link: link_{n}, xyz: [{number(length)}, 0, 0]}},
     b: {{link: ground, xyz: [{number(span)}, 0, 0]}}}}
actuated: []
gravity: [0, 0, -9.81]
start: {{v: {{ball_3: [0, 0, 2.0]}}}}
"""
    return Model(
        "ball_chain", tuple(links), tuple(joints), loops,
        "spherical joints in the tree: quaternions, more positions than rates",
        "own choice; inertias of the meshes",
    )  # fmt: skip


KNEES = {
    "front_left": (2.1834065091427726, 2.1834044949098703),
    "back_left": (2.183406509142773, 2.1834044949098703),
    "front_right": (-2.183406369303215, -2.183404355147557),
    "back_right": (-2.183406369303215, -2.183404355147557),
}
"""Knees, left and right [rad], that close the legs in their planes with the motors at +-pi/2."""


def minitaur() -> Model:
    """Loops file for the quadruped of PyBullet's data."""
    loops, motors, q, v, springs = [], [], [], [], []
    rates = (0.3, -0.2, 0.25, 0.15, -0.35, 0.2, -0.1, 0.3)
    for k, leg in enumerate(("front_left", "back_left", "front_right", "back_right")):
        way = -1 if k < 2 else 1
        loops.append(
            f"  - {{name: {leg}, type: ball,\n"
            f"     a: {{link: lower_leg_{leg}R_link, xyz: [0, 0.005, 0.2]}},\n"
            f"     b: {{link: lower_leg_{leg}L_link, xyz: [0, 0.01, 0.2]}}}}"
        )
        for side, name in enumerate("LR"):
            motor = f"motor_{leg}{name}_joint"
            motors.append(motor)
            q.append(f"{motor}: {number(way * pi / 2)}")
            q.append(f"knee_{leg}{name}_link: {number(KNEES[leg][side])}")
            v.append(f"{motor}: {number(rates[2 * k + side])}")
            rest = number(way * pi / 2)
            springs.append(f"  - {{joint: {motor}, stiffness: 10, rest: {rest}}}")
    text = f"""\
# Minitaur, by reference to PyBullet's data; no file of it is copied. Four legs, each a five-bar
# linkage closed by a ball, with the points of pybullet_envs' minitaur.py (given there in inertial
# frames, which are the link frames here: the URDF displaces no centre of mass of a lower leg).
# Start: motors at +-pi/2 as there, knees solved for closed legs. The URDF's angles are rounded
# (1.57075 for pi/2): across the legs' planes 1e-5 m stay open, whatever the joints do.
# There is no floor here and so no gravity either; springs hold the motors, which start moving.
# The file's inertias of 1 kg m^2 for every link are far too large, and used as they are.
bulletbridge: 1
urdf: pybullet_data/quadruped/minitaur.urdf
fixed_base: false
loops:
{chr(10).join(loops)}
actuated: [{folded(motors, 10)}]
gravity: [0, 0, 0]
start:
  q: {{base: [0, 0, 0, 0, 0, 0, 1],
      {folded(q, 6)}}}
  v: {{{folded(v, 6)}}}
forces:
{chr(10).join(springs)}
"""
    return Model(
        "minitaur", (), (), text,
        "a robot many scripts use; rows that are redundant only up to rounded angles",
        "PyBullet's data (BSD 3-clause, by reference); loops as in pybullet_envs",
    )  # fmt: skip
