"""MJCF read by us and by MuJoCo: the same equations of motion, feature by feature."""

from pathlib import Path

import numpy as np
import pytest
from support.mujoco_models import Oracle, random_state, unassembled

from bulletbridge.models.formats.mjcf import read_mjcf

ROUND_OFF = 1e-10
"""Relative; Bullet keeps the numbers of a URDF to 1e-15, poses pass through Euler angles."""

HINGES = """
<body name="upper" pos="0.1 0.2 0.3" euler="20 30 40">
  <joint name="shoulder" pos="0.03 -0.05 0.02" axis="1 2 0.5" damping="0.3" ref="25"
    armature="0.2"/>
  <joint name="twist" pos="-0.1 0.02 0.04" axis="0 1 1" stiffness="3" springref="-40" ref="10"/>
  <joint name="slide" type="slide" axis="0 0.6 0.8" ref="0.2" stiffness="7" springref="0.1"/>
  <geom type="capsule" fromto="0 0 0 0.3 0.1 0.2" size="0.04"/>
  <geom type="box" pos="0.1 0.2 0" euler="10 20 30" size="0.05 0.06 0.1" density="500"/>
  <body name="lower" pos="0.3 0.1 0.2" quat="0.7 0.1 -0.3 0.4">
    <joint name="elbow" axis="0 0 1" pos="0 0.1 0" ref="-15"/>
    <inertial pos="0.1 0.02 -0.03" mass="0.7" fullinertia="0.02 0.03 0.04 0.001 -0.002 0.003"/>
    {tip}
  </body>
</body>"""
BALLS = """
<body name="rod" pos="0 0 1">
  <joint name="hang" type="ball" pos="0.02 0.03 0.01" damping="0.4" armature="0.05"/>
  <inertial pos="0.2 0 0" quat="0.8 0.2 0.3 -0.1" mass="0.5" diaginertia="0.01 0.02 0.025"/>
  <body name="bob" pos="0.4 0 0" axisangle="1 1 0 35">
    <joint name="wrist" type="ball" stiffness="2"/><geom size="0.05" mass="0.2" pos="0.1 0 0"/>
  </body>
</body>"""
FREE = """
<body name="craft" pos="0.5 -0.2 1" euler="10 -20 50">
  <freejoint name="free"/>
  <inertial pos="0.1 0.02 -0.03" quat="0.6 0.2 -0.7 0.1" mass="3" diaginertia="0.1 0.2 0.15"/>
  <body name="arm" pos="0.2 0 0"><joint name="hinge" axis="0 1 0"/>
    <geom type="cylinder" size="0.03 0.2" pos="0.2 0 0"/></body>
</body>"""
FEATURES = {
    "joints off the origin": HINGES.format(tip=""),
    "free base": FREE,
    "balls": BALLS,
    "bodies without mass": HINGES.format(
        tip='<body name="none" pos="1 0 0" euler="1 2 3"><body name="some" pos="0 2 0">'
        '<joint name="n2" axis="0 1 0"/><geom size="0.1" pos="0.1 0 0"/></body></body>'
    ),
    "two trees and a mocap body": FREE
    + FREE.replace('"craft"', '"other"')
    .replace('"arm"', '"arm2"')
    .replace('"hinge"', '"hinge2"')
    .replace('"free"', '"free2"')
    + HINGES.format(tip="")
    + '<body name="hand" mocap="true" pos="1 0 0"><geom size="0.1"/></body>',
}
SITES = '<site name="s1" pos="0.1 0.2 0" euler="10 20 70"/>'
EQUALITIES = {
    "connect": '<connect body1="lower" body2="upper" anchor="0.1 0.2 0.3"/>',
    "connect to the world": '<connect body1="lower" anchor="0.1 0.2 0.3"/>',
    "connect sites": '<connect site1="s1" site2="s2"/>',
    "weld": '<weld body1="upper" body2="lower" anchor="0.1 0 0.2" torquescale="1"/>',
    "weld by relpose": '<weld body1="lower" relpose="0.1 0.2 0.3 0.8 0.1 0.2 0.3"/>',
    "weld by relpose and anchor": '<weld body1="lower" body2="upper" anchor="0.1 0.2 0.3"'
    ' relpose="0.1 0.2 0.3 0.8 0.1 0.2 0.3"/>',
    "weld sites": '<weld site1="s1" site2="s2"/>',
    "weld without turns": '<weld body1="lower" torquescale="0"/>',
    "joint": '<joint joint1="elbow" joint2="shoulder" polycoef="0.1 -2 0 0 0"/>',
    "joint alone": '<joint joint1="elbow" polycoef="0.3 0 0 0 0"/>',
    "fixed tendon": '<tendon tendon1="sum"/>',
    "two fixed tendons": '<tendon tendon1="sum" tendon2="single" polycoef="0.2 0.5 0 0 0"/>',
    "line": '<tendon tendon1="line" polycoef="0.05 0 0 0 0"/>',
}
TENDONS = """<tendon>
  <fixed name="sum"><joint joint="elbow" coef="2"/><joint joint="shoulder" coef="-0.5"/></fixed>
  <fixed name="single" stiffness="4" springlength="0.3" damping="0.7">
    <joint joint="twist" coef="1.5"/></fixed>
  <spatial name="line" stiffness="30" damping="0.2" springlength="0.2">
    <site site="s1"/><site site="s2"/></spatial>
</tendon>"""


def write(folder: Path, worldbody: str, more: str = "", settings: str = "") -> Path:
    path = folder / "robot.xml"
    path.write_text(
        f'<mujoco model="robot">{settings}<worldbody>{worldbody}</worldbody>{more}</mujoco>'
    )
    return path


def require_equal(path: Path, folder: Path) -> None:
    spec = read_mjcf(path, folder)
    system = unassembled(spec)
    oracle = Oracle(path, system, spec)
    rng = np.random.default_rng(1)
    for _ in range(3):
        found = oracle.compare(*random_state(system, rng))
        assert max(found) < ROUND_OFF, found


@pytest.mark.parametrize("bodies", FEATURES.values(), ids=FEATURES.keys())
def test_trees_move_as_in_mujoco(bodies: str, tmp_path: Path) -> None:
    require_equal(write(tmp_path, bodies), tmp_path)


@pytest.mark.parametrize("equality", EQUALITIES.values(), ids=EQUALITIES.keys())
def test_equalities_are_those_of_mujoco(equality: str, tmp_path: Path) -> None:
    sites = '<site name="s2" pos="0.3 0 0.1" euler="-40 5 9"/>'
    bodies = HINGES.format(tip=SITES).replace('<geom type="box"', sites + '<geom type="box"')
    more = f"{TENDONS}<equality>{equality}</equality>"
    require_equal(write(tmp_path, bodies, more), tmp_path)


@pytest.mark.parametrize(
    "settings",
    [
        '<compiler inertiafromgeom="true" angle="radian" eulerseq="zyx"/>',
        '<compiler balanceinertia="true" boundmass="0.3" boundinertia="0.05"/>',
        '<compiler autolimits="true"/><option gravity="1 2 -3"/>',
        '<default><joint damping="0.2"/><geom density="300"/>'
        '<default class="a"><geom density="10"/></default></default>',
    ],
)
def test_compiler_rules_and_defaults_are_those_of_mujoco(settings: str, tmp_path: Path) -> None:
    bodies = HINGES.format(tip='<geom size="0.1"/>')
    require_equal(write(tmp_path, bodies, settings=settings), tmp_path)
