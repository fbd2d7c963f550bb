"""Planar mechanisms with sliders, in the x-z plane like the other linkages."""

from math import acos, cos, pi, sin

import numpy as np

from generator.planar import LAYER, OUT, THICK, bar, frame_plate, pitched
from generator.shapes import ALONG_Y, plate
from generator.urdf_writer import Inertial, Joint, Link, Model, Part, number, solid_link


def slider_crank() -> Model:
    """Piston engine; the loop joint is a revolute with three redundant rows."""
    crank, rod, drawn = 0.15, 0.5, pi / 3
    dip = acos(crank * sin(drawn) / rod) - pi / 2
    reach = crank * cos(drawn) + rod * cos(dip)
    rail = frame_plate("slider_crank_ground", [(0, 0), (crank + rod + 0.1, 0)], pins=1)
    low, high = LAYER - THICK / 2 - 0.005, LAYER + THICK / 2
    piston = plate(
        [(-0.05, -0.045, 0.01), (0.05, -0.045, 0.01), (0.05, 0.045, 0.01), (-0.05, 0.045, 0.01)],
        low, high, ALONG_Y, 0.004,
    )  # fmt: skip
    wrist = plate([(0, 0, 0.02)], high, high + 0.005, ALONG_Y)
    links = (
        solid_link("ground", 3.0, *rail),
        solid_link("crank", 1.0, *bar("slider_crank_crank", "orange", crank, 1)),
        solid_link("rod", 0.6, *bar("slider_crank_rod", "blue", rod, 2)),
        solid_link(
            "slider",
            0.8,
            Part("slider_crank_block", piston, "green"),
            Part("slider_crank_wrist", wrist, "steel"),
        ),
    )
    joints = (
        Joint("crank", "revolute", "ground", "crank", axis=OUT),
        Joint("rod", "revolute", "crank", "rod", (crank, 0, 0), pitched(dip - drawn), OUT),
        Joint("slider", "prismatic", "ground", "slider", (reach, 0, 0), axis=(1.0, 0.0, 0.0)),
    )
    loops = f"""\
# Slider-crank: crank 0.15 m, connecting rod 0.5 m, sliding along x, the crank turning at 10 rad/s.
# The wrist pin is a revolute loop joint: five rows, of which a planar mechanism needs two.
# The crank counts from the x axis; rod and slider are zero with the crank at 60 degrees.
bulletbridge: 1
urdf: slider_crank.urdf
fixed_base: true
loops:
  - {{name: wrist, type: revolute,
     a: {{link: rod, xyz: [0.5, 0, 0]}}, b: {{link: slider}}, axis: [0, 1, 0]}}
actuated: [crank]
gravity: [0, 0, -9.81]
start: {{q: {{crank: {number(drawn)}}}, v: {{crank: 10.0}}}}
"""
    return Model(
        "slider_crank", links, joints, loops,
        "an over-constrained loop: a revolute where two rows would do",
        "own choice; inertias of the meshes",
    )  # fmt: skip


def triple_slider_crank() -> Model:
    """Three sliders, a crank and two massless rods of length 1 and 2 m."""
    scale = 3.0

    def block(mesh: str, layer: int) -> Part:
        """Block in a layer."""
        low, corners = (layer * LAYER - THICK / 2) * scale, [(-1, -1), (1, -1), (1, 1), (-1, 1)]
        solid = plate(
            [(0.16 * u, 0.16 * w, 0.03) for u, w in corners],
            low, low + THICK * scale, ALONG_Y, 0.015,
        )  # fmt: skip
        return Part(f"triple_slider_crank_{mesh}", solid, mesh)

    def rail(mesh: str, ends: tuple[tuple[float, float], ...], layer: float) -> Part:
        """Rail in a layer."""
        low = (layer * LAYER - THICK / 2) * scale
        solid = plate([(*p, 0.07) for p in ends], low, low + THICK * scale, ALONG_Y, 0.01)
        return Part(f"triple_slider_crank_{mesh}", solid, "slate")

    ground = (
        rail("rail_up", ((0, -2.4), (0, 4.4)), 0),
        rail("rail_across", ((-2.4, 0), (2.4, 0)), -1),
    )
    flywheel = plate([(0, 0, 0.55)], 1.5 * LAYER * scale, 2.1 * LAYER * scale, ALONG_Y, 0.02)
    arm = plate(
        [(0, 0, 0.13), (1, 0, 0.08)], 2.1 * LAYER * scale, 2.6 * LAYER * scale, ALONG_Y, 0.015
    )
    cube = Inertial(2.0, (0.0, 0.0, 0.0), np.diag([0.05, 0.05, 0.05]))
    links = (
        solid_link("ground", 20.0, *ground),
        Link("slider_1", cube, (block("orange", 1),)),
        Link(
            "crank",
            Inertial(10.0, (0.0, 0.0, 0.0), np.diag([6.0, 10.0, 6.0])),
            (
                Part("triple_slider_crank_flywheel", flywheel, "blue"),
                Part("triple_slider_crank_arm", arm, "steel"),
            ),
        ),
        Link("slider_3", cube, (block("green", 2),)),
        Link("slider_4", cube, (block("red", 0),)),
    )
    up, across = (0.0, 0.0, 1.0), (1.0, 0.0, 0.0)
    joints = (
        Joint("slider_1", "prismatic", "ground", "slider_1", axis=up),
        Joint("crank", "revolute", "slider_1", "crank", rpy=pitched(pi / 2), axis=OUT),
        Joint("slider_3", "prismatic", "ground", "slider_3", axis=up),
        Joint("slider_4", "prismatic", "ground", "slider_4", axis=across),
    )
    loops = """\
# Triple slider-crank of Haug and Pavesic (2023): sliders 1 and 3 on z, slider 4 on x, a crank with
# its centre of mass on slider 1, and two massless rods, which are distance rows: crank tip to
# slider 3 (1 m) and slider 1 to slider 4 (2 m). Joint positions are the source's q1, q2, q3, q4.
# Crank and first rod are equally long: the mechanism is on the component q3 = q1 + 2 cos q2;
# with slider_3: 0 it is on the other one, q3 = q1. They meet where the crank is at +-pi/2.
# The source keeps away from there by the crank torque -K q2 / (pi/2 - |q2|)^2, K = 100 N m, which
# no entry of this file can express: give it through System.tau. Without it the crank passes there.
bulletbridge: 1
urdf: triple_slider_crank.urdf
fixed_base: true
loops:
  - {name: rod_crank_3, type: distance,
     a: {link: crank, xyz: [1, 0, 0]}, b: {link: slider_3}, length: 1}
  - {name: rod_1_4, type: distance, a: {link: slider_1}, b: {link: slider_4}, length: 2}
actuated: [crank]
gravity: [0, 0, 0]
start: {q: {slider_1: 0, crank: 0, slider_3: 2, slider_4: 2}, v: {slider_1: 6, crank: 2}}
"""
    return Model(
        "triple_slider_crank", links, joints, loops,
        "distance rows; two assembly components that meet at singular positions",
        "Haug and Pavesic (2023), example 2",
    )  # fmt: skip
