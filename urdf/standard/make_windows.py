"""Write the N four-bar windows of the IFToMM benchmark library, A02: URDFs and loops files.

N + 1 upright cranks and N level couplers, all 1 m, 1 kg, slender; the cranks start at -1 rad/s.
Running it again gives the same files; ``--into FOLDER`` writes elsewhere.
"""

import argparse
from pathlib import Path

HERE = Path(__file__).resolve().parent
SIZES = (2, 40)

BAR = """\
  <link name="{name}">
    <inertial>
      <origin xyz="{centre}" rpy="0 0 0"/>
      <mass value="1"/>
      <inertia ixx="{ixx}" ixy="0" ixz="0" iyy="{iyy}" iyz="0" izz="{across}"/>
    </inertial>
    <visual>
      <origin xyz="{centre}" rpy="0 0 0"/>
      <geometry><box size="{size}"/></geometry>
      <material name="{colour}"><color rgba="{rgba}"/></material>
    </visual>
  </link>
"""
GROUND = """\
  <link name="ground">
    <inertial>
      <mass value="1"/>
      <inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/>
    </inertial>
  </link>
"""
JOINT = """\
  <joint name="{name}" type="continuous">
    <parent link="{parent}"/>
    <child link="{child}"/>
    <origin xyz="{at}" rpy="0 0 0"/>
    <axis xyz="0 0 1"/>
  </joint>
"""
LOOPS = """\
# IFToMM benchmark library, A02: {n} four-bar windows in a row, cranks and couplers of 1 m, 1 kg.
# Twice in a turn all bars lie in one line: {n} loop rows become dependent and {n} freedoms appear.
# The motion on which the cranks stay parallel goes on through these positions.
bulletbridge: 1
urdf: {name}.urdf
fixed_base: true
loops:
{loops}gravity: [0, -9.81, 0]
start:
  q: {{{q}}}
  v: {{{v}}}
"""
ACROSS, ALONG = 1 / 12, 1e-6  # [kg m²]; the one along the bar has no effect


def bar(name: str, upright: bool) -> str:
    """A link."""
    return BAR.format(
        name=name,
        centre="0 0.5 0" if upright else "0.5 0 0",
        size="0.04 1 0.04" if upright else "1 0.04 0.04",
        ixx=ACROSS if upright else ALONG,
        iyy=ALONG if upright else ACROSS,
        across=ACROSS,
        colour="blue" if upright else "orange",
        rgba="0.16 0.43 0.71 1" if upright else "0.93 0.49 0.13 1",
    )


def urdf(name: str, n: int) -> str:
    """Ground, then crank and coupler by turns."""
    parts = [f'<?xml version="1.0"?>\n<robot name="{name}">\n', GROUND]
    for i in range(n + 1):
        parts.append(bar(f"crank{i}", True))
        parts.append(JOINT.format(name=f"A{i}", parent="ground", child=f"crank{i}", at=f"{i} 0 0"))
        if i < n:
            joint = {"parent": f"crank{i}", "child": f"coupler{i}", "at": "0 1 0"}
            parts.append(bar(f"coupler{i}", False))
            parts.append(JOINT.format(name=f"B{i}", **joint))
    return "".join([*parts, "</robot>\n"])


def loops(name: str, n: int) -> str:
    """The end of each coupler on the next crank."""
    pins = [
        f"  - {{name: pin{i + 1}, type: ball, a: {{link: coupler{i}, xyz: [1, 0, 0]}}, "
        f"b: {{link: crank{i + 1}, xyz: [0, 1, 0]}}}}\n"
        for i in range(n)
    ]
    return LOOPS.format(n=n, name=name, loops="".join(pins), q="A0: 0", v="A0: -1")


def main(arguments: list[str] | None = None) -> int:
    """Write everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--into", type=Path, default=HERE, help="folder to write to")
    folder: Path = parser.parse_args(arguments).into
    for n in SIZES:
        name = f"a02_windows_{n}"
        (folder / f"{name}.urdf").write_text(urdf(name, n), encoding="utf-8")
        (folder / f"{name}.loops.yaml").write_text(loops(name, n), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
