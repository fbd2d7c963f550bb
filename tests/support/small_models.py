"""Small models written into a directory, so that tests of the surface stand on their own."""

from pathlib import Path

FOUR_BAR_LOOP = """\
bulletbridge: 1
urdf: four_bar.urdf
fixed_base: true
loops:
  - name: pin
    type: {kind}
    a: {{link: coupler, xyz: [0, 0, -1.2], rpy: [-1.5707963267948966, 0, 0]}}
    b: {{link: rocker, xyz: [0, 0, -0.9], rpy: [-1.5707963267948966, 0, 0]}}
    {more}
actuated: [crank]
gravity: [0, 0, -9.81]
start: {{q: {{crank: 1.2}}}}
"""


def bar(name: str, length: float, mass: float, colour: str) -> str:
    """A bar that hangs from its joint; its inertial frame is displaced and turned."""
    moment = mass * length**2 / 12
    half = length / 2
    return f"""
  <link name="{name}">
    <inertial>
      <origin xyz="0 0 {-half}" rpy="0 0.3 0"/>
      <mass value="{mass}"/>
      <inertia ixx="{moment}" iyy="{moment}" izz="1e-4" ixy="0" ixz="0" iyz="0"/>
    </inertial>
    <visual>
      <origin xyz="0 0 {-half}"/>
      <geometry><box size="0.04 0.04 {length}"/></geometry>
      <material name="{name}"><color rgba="{colour} 1"/></material>
    </visual>
  </link>"""


def hinge(name: str, parent: str, child: str, xyz: str) -> str:
    """A hinge about y without limits."""
    return f"""
  <joint name="{name}" type="continuous">
    <parent link="{parent}"/><child link="{child}"/>
    <origin xyz="{xyz}"/><axis xyz="0 1 0"/>
  </joint>"""


def four_bar(directory: Path, kind: str = "ball", more: str = "", name: str = "four_bar") -> Path:
    """The four-bar of a crank 0.5, coupler 1.2, rocker 0.9 and ground 1.0 m."""
    urdf = (
        '<robot name="four_bar"><link name="ground"/>'
        + bar("crank", 0.5, 1.0, "0.8 0.3 0.2")
        + bar("coupler", 1.2, 2.0, "0.2 0.5 0.8")
        + bar("rocker", 0.9, 1.5, "0.2 0.6 0.3")
        + hinge("crank", "ground", "crank", "0 0 0")
        + hinge("coupler", "crank", "coupler", "0 0 -0.5")
        + hinge("rocker", "ground", "rocker", "1 0 0")
        + "</robot>"
    )
    (directory / "four_bar.urdf").write_text(urdf)
    path = directory / f"{name}.loops.yaml"
    path.write_text(FOUR_BAR_LOOP.format(kind=kind, more=more))
    return path


def geared(directory: Path) -> Path:
    """Two pendulums on one base, geared 1 : -2."""
    urdf = (
        '<robot name="geared"><link name="ground"/>'
        + bar("left", 0.5, 1.0, "0.8 0.3 0.2")
        + bar("right", 0.4, 1.0, "0.2 0.5 0.8")
        + hinge("left", "ground", "left", "0 0 0")
        + hinge("right", "ground", "right", "1 0 0")
        + "</robot>"
    )
    (directory / "geared.urdf").write_text(urdf)
    path = directory / "geared.loops.yaml"
    path.write_text(
        "bulletbridge: 1\nurdf: geared.urdf\nfixed_base: true\nloops:\n"
        "  - {name: gear, type: gear, joints: {left: 1, right: -2}, offset: 0.1}\n"
        "gravity: [0, 0, -9.81]\nstart: {q: {left: 0.7}}\n"
    )
    return path
