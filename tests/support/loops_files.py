"""A loops file that is right, and the page about them."""

from pathlib import Path

ROBOT = (
    "<robot name='r'>"
    + "".join(f"<link name='{name}'/>" for name in ("c", "d", "on"))
    + "".join(f"<joint name='{name}' type='revolute'/>" for name in "jk")
    + "<joint name='knee' type='spherical'/><joint name='bolt' type='fixed'/>"
    "<joint name='raft' type='floating'/></robot>"
)
DOCS = Path(__file__).parents[2] / "docs" / "loops-file.md"
GOOD = """\
bulletbridge: 1
urdf: robot.urdf
fixed_base: true
loops:
  - {name: pin, type: ball, a: {link: c, xyz: [1e-3, 0, 0]}, b: {link: on}}
  - {name: nut, type: screw, a: {link: c}, b: {link: d}, pitch: 0.002}
  - {name: rod, type: distance, a: {link: c}, b: {link: d}, length: 0.5}
  - {name: cog, type: gear, joints: {j: 1, k: -2}, motion: {z: {polynomial: [0, 1]}}}
actuated: [j]
gravity: [0, 0, -9.81]
start: {q: {j: 0.5}, v: {j: 1}}
forces:
  - {joint: j, torque: 1}
"""
