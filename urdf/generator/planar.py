"""Planar linkages. They move in the x-z plane; joints turn about -y, counter-clockwise as drawn."""

from collections.abc import Sequence
from math import acos, atan2, cos, hypot, pi, sin

import numpy as np

from generator.shapes import ALONG_Y, joined, plate
from generator.urdf_writer import Inertial, Joint, Link, Model, Part, Triple, number, solid_link

OUT: Triple = (0.0, -1.0, 0.0)
"""Towards the viewer: axis of all revolute joints."""
THICK, LAYER = 0.03, 0.04
"""Of a bar, and from bar to bar [m]."""
WIDE = 0.035
"""Radius of the end of a bar [m]."""


def bar(
    mesh: str, colour: str, length: float, layer: int, spacer: int = 0, scale: float = 1.0
) -> tuple[Part, ...]:
    """Visuals of a bar along x with hubs at its ends, in a layer counted towards the viewer.

    Args:
        mesh: Name of the mesh file.
        colour: Of the bar.
        length: From end to end [m].
        layer: Where the bar is.
        spacer: Layers that a pin at x = 0 reaches away from the viewer.
        scale: Of thickness and width.
    """
    wide, pitch, half = WIDE * scale, LAYER * scale, THICK * scale / 2
    middle, hub = layer * pitch, (pitch - THICK * scale) / 2
    low, high = middle - half, middle + half
    parts = [plate([(0, 0, wide), (length, 0, 0.75 * wide)], low, high, ALONG_Y, 0.1 * wide)]
    for u, radius in ((0.0, 0.75 * wide), (length, 0.55 * wide)):
        parts += [
            plate([(u, 0, radius)], low - hub, low, ALONG_Y),
            plate([(u, 0, radius)], high, high + hub, ALONG_Y),
        ]
    visuals = [Part(f"{mesh}_bar", joined(parts), colour)]
    caps = [
        plate([(u, 0, 0.4 * wide)], high + hub, high + hub + 0.25 * pitch, ALONG_Y, 0.05 * wide)
        for u in (0.0, length)
    ]
    if spacer:
        caps.append(plate([(0, 0, 0.5 * wide)], low - hub - spacer * pitch, low - hub, ALONG_Y))
    visuals.append(Part(f"{mesh}_pins", joined(caps), "steel"))
    return tuple(visuals)


def frame_plate(
    mesh: str, points: Sequence[tuple[float, float]], pins: int = 2
) -> tuple[Part, ...]:
    """Visuals of a ground link: plate in layer 0 along points x, z, with pins in the first."""
    wide, half = 1.3 * WIDE, THICK / 2
    body = plate([(u, w, wide) for u, w in points], -half, half, ALONG_Y, 0.1 * wide)
    hub = (LAYER - THICK) / 2
    bosses = points[:pins]
    solids = [plate([(u, w, 0.8 * wide)], half, half + hub, ALONG_Y) for u, w in bosses]
    return Part(f"{mesh}_plate", body, "slate"), Part(f"{mesh}_pins", joined(solids), "steel")


def slender(mass: float, length: float) -> Inertial:
    """Inertia of a uniform thin rod along x; its moment about x is small, as no other is seen."""
    across = mass * length**2 / 12
    return Inertial(mass, (length / 2, 0.0, 0.0), np.diag([1e-3 * across, across, across]))


def pitched(angle: float) -> Triple:
    """Turn of the x axis by an angle towards z [rad], as rpy."""
    return (0.0, -angle, 0.0)


def four_bar() -> Model:
    """Crank-rocker of the peer measurements, an open chain closed by a ball."""
    crank, coupler, rocker, ground, density, square = 0.4, 0.9, 0.7, 1.0, 2.0, 0.04
    drawn = pi / 3
    # the joint between coupler and rocker, from the two triangles on the diagonal
    x, z = ground - crank * cos(drawn), -crank * sin(drawn)
    diagonal = hypot(x, z)
    inner = acos((coupler**2 + diagonal**2 - rocker**2) / (2 * coupler * diagonal))
    knee = acos((coupler**2 + rocker**2 - diagonal**2) / (2 * coupler * rocker))
    coupler_angle = atan2(z, x) + inner - drawn

    def inertia(length: float) -> Inertial:
        mass = density * length
        across = mass * (length**2 + square**2) / 12
        tensor = np.diag([mass * square**2 / 6, across, across])
        return Inertial(mass, (length / 2, 0.0, 0.0), tensor)

    links = (
        solid_link("ground", 3.0, *frame_plate("four_bar_ground", [(0, 0), (ground, 0)])),
        Link("crank", inertia(crank), bar("four_bar_crank", "orange", crank, 1)),
        Link("coupler", inertia(coupler), bar("four_bar_coupler", "blue", coupler, 2)),
        Link("rocker", inertia(rocker), bar("four_bar_rocker", "green", rocker, 1)),
    )
    joints = (
        Joint("crank", "revolute", "ground", "crank", axis=OUT),
        Joint(
            "coupler", "revolute", "crank", "coupler", (crank, 0, 0), pitched(coupler_angle), OUT
        ),
        Joint("rocker", "revolute", "coupler", "rocker", (coupler, 0, 0), pitched(knee - pi), OUT),
    )
    loops = f"""\
# Four-bar crank-rocker in a vertical plane, released from rest with the crank at 60 degrees.
# Crank angles count from the ground line; coupler and rocker are zero in this position.
bulletbridge: 1
urdf: four_bar.urdf
fixed_base: true
loops:
  - {{name: ground_pin, type: ball,
     a: {{link: rocker, xyz: [0.7, 0, 0]}}, b: {{link: ground, xyz: [1, 0, 0]}}}}
actuated: [crank]
gravity: [0, 0, -9.81]
start: {{q: {{crank: {number(drawn)}}}}}
"""
    return Model(
        "four_bar", links, joints, loops,
        "first steps; a planar loop written with a spatial ball has one redundant row",
        "bars of 2 kg/m, lengths usual in comparisons",
    )  # fmt: skip


def parallelogram() -> Model:
    """Two equal cranks and a coupler that never turns: a pendulum in disguise."""
    crank, coupler = 0.5, 1.0
    links = (
        solid_link("ground", 3.0, *frame_plate("parallelogram_ground", [(0, 0), (coupler, 0)])),
        Link("crank", slender(1.0, crank), bar("parallelogram_crank", "orange", crank, 1)),
        Link("coupler", slender(2.0, coupler), bar("parallelogram_coupler", "blue", coupler, 2)),
        Link("rocker", slender(1.0, crank), bar("parallelogram_rocker", "green", crank, 1)),
    )
    joints = (
        Joint("crank", "revolute", "ground", "crank", rpy=pitched(-pi / 2), axis=OUT),
        Joint("coupler", "revolute", "crank", "coupler", (crank, 0, 0), pitched(pi / 2), OUT),
        Joint("rocker", "revolute", "coupler", "rocker", (coupler, 0, 0), pitched(pi / 2), OUT),
    )
    loops = """\
# Parallelogram: cranks 0.5 m, 1 kg, coupler 1 m, 2 kg, slender rods. All zero: cranks hang down.
# The coupler never turns, so this is a pendulum with inertia (2/3 + 2) 0.5^2 kg m^2 and weight
# torque (1 + 2) 9.81 0.5 N m; its period at amplitude A is 4 K(sin^2(A/2)) sqrt(inertia / torque).
# Singular when the cranks lie flat (crank = +-pi/2), where the loop could fold.
bulletbridge: 1
urdf: parallelogram.urdf
fixed_base: true
loops:
  - {name: ground_pin, type: ball,
     a: {link: rocker, xyz: [0.5, 0, 0]}, b: {link: ground, xyz: [1, 0, 0]}}
actuated: [crank]
gravity: [0, 0, -9.81]
start: {q: {crank: 1.0, coupler: -1.0, rocker: 1.0}}
"""
    return Model(
        "parallelogram", links, joints, loops,
        "accuracy: its period is an elliptic integral; singular when flat",
        "own choice",
    )  # fmt: skip


def five_bar() -> Model:
    """Two-armed pick-and-place linkage with two motors."""
    ground, crank, forearm, drawn = 0.3, 0.4, 0.6, 2.0
    # symmetric drawing: elbows at +-elbow from the middle, tips meet above it
    elbow = ground / 2 - crank * cos(drawn)
    lift = acos(elbow / forearm)
    links = (
        solid_link("ground", 3.0, *frame_plate("five_bar_ground", [(0, 0), (ground, 0)])),
        solid_link("crank_left", 0.6, *bar("five_bar_crank_left", "orange", crank, 1)),
        solid_link("forearm_left", 0.5, *bar("five_bar_forearm_left", "gold", forearm, 2)),
        solid_link("crank_right", 0.6, *bar("five_bar_crank_right", "blue", crank, 2, spacer=1)),
        solid_link("forearm_right", 0.5, *bar("five_bar_forearm_right", "teal", forearm, 3)),
    )
    left, right = pitched(lift - drawn), pitched(drawn - lift)
    tip = number(forearm)
    joints = (
        Joint("motor_left", "revolute", "ground", "crank_left", axis=OUT),
        Joint("elbow_left", "revolute", "crank_left", "forearm_left", (crank, 0, 0), left, OUT),
        Joint("motor_right", "revolute", "ground", "crank_right", (ground, 0, 0), axis=OUT),
        Joint("elbow_right", "revolute", "crank_right", "forearm_right", (crank, 0, 0), right, OUT),
    )
    loops = f"""\
# Five-bar linkage: two motors 0.3 m apart move one point in a vertical plane.
# Motor angles count from the x axis; the elbows are zero in the symmetric position below.
bulletbridge: 1
urdf: five_bar.urdf
fixed_base: true
loops:
  - {{name: tip, type: ball,
     a: {{link: forearm_left, xyz: [{tip}, 0, 0]}}, b: {{link: forearm_right, xyz: [{tip}, 0, 0]}}}}
actuated: [motor_left, motor_right]
gravity: [0, 0, -9.81]
start:
  q: {{motor_left: {number(drawn)}, motor_right: {number(pi - drawn)}}}
  v: {{motor_left: 1.0, motor_right: 0.0}}
"""
    return Model(
        "five_bar", links, joints, loops,
        "two motors in one loop; control of a parallel robot in the plane",
        "own choice; inertias of the meshes",
    )  # fmt: skip
