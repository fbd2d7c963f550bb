"""MJCF read by us and by MuJoCo: the same equations of motion, feature by feature."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import numpy as np
import pytest
import trimesh
from scipy.spatial.transform import Rotation
from support.mujoco_models import (
    Oracle,
    cross_matrix,
    full_mass,
    mujoco,
    random_state,
    stiff_model,
    unassembled,
)

import bulletbridge as bb
from bulletbridge.errors import (
    AssemblyError,
    BulletBridgeWarning,
    ModelError,
    OverconstrainedError,
)
from bulletbridge.models.bundled import find
from bulletbridge.models.formats.convert import convert
from bulletbridge.models.formats.how import How
from bulletbridge.models.formats.mjcf import read_mjcf
from bulletbridge.models.formats.mjcf_writer import write_mjcf
from bulletbridge.models.formats.recognise import read_model
from bulletbridge.models.formats.urdf_scene import scene_of
from bulletbridge.models.loops_file import write_loops
from bulletbridge.models.model_spec import ModelSpec
from bulletbridge.numerics.records import Array

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
    "free joint with spring and damper": FREE.replace(
        "<freejoint", '<joint type="free" damping="0.7" stiffness="3"'
    ),
    "gravity compensation": HINGES.format(tip="").replace("<body ", '<body gravcomp="0.7" '),
    "gravity compensation afloat": FREE.replace('"arm"', '"arm" gravcomp="1.2"'),
    "free joint with armature": FREE.replace("<freejoint", '<joint type="free" armature="0.6"'),
    "free joint with armature alone": FREE.replace(
        "<freejoint", '<joint type="free" armature="9"'
    ).replace('mass="3" diaginertia="0.1 0.2 0.15"', 'mass="1e-9" diaginertia="1e-9 1e-9 1e-9"'),
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
    "joint by a polynomial": '<joint joint1="elbow" joint2="shoulder"'
    ' polycoef="0.1 -0.5 0.3 0.2 -0.4"/>',
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

SUMS = """<tendon>
  <fixed name="taut" stiffness="11" damping="0.4" springlength="-0.3">
    <joint joint="elbow" coef="2"/><joint joint="shoulder" coef="-0.5"/>
    <joint joint="slide" coef="3"/>
  </fixed>
  <fixed name="at rest" stiffness="6"><joint joint="elbow" coef="1"/><joint joint="twist" coef="1"/>
  </fixed>
  <fixed name="slack" stiffness="50" springlength="-0.2 0.7">
    <joint joint="twist" coef="1.5"/><joint joint="shoulder" coef="-0.7"/></fixed>
  <fixed name="slack alone" stiffness="20" damping="0.1" springlength="0.1 0.3">
    <joint joint="twist" coef="-2"/></fixed>
  <spatial name="rope" stiffness="40" damping="0.2" springlength="0 0.4">
    <site site="s1"/><site site="s2"/></spatial>
  <spatial name="slack rope" stiffness="40" springlength="0 9">
    <site site="s1"/><site site="s2"/></spatial>
  <spatial name="through points" stiffness="30" damping="0.4" springlength="0.5">
    <site site="s0"/><site site="s1"/><site site="s2"/><site site="s3"/><site site="s1"/></spatial>
  <spatial name="slack through points" stiffness="30" springlength="0 9">
    <site site="s0"/><site site="s2"/><site site="s1"/></spatial>
</tendon>"""

ARM = """<body name="arm" pos="0 0 1"><joint name="j" axis="0 1 0" range="-60 80"/>
<inertial pos="0.2 0 0" mass="1" diaginertia="0.01 0.02 0.02"/>{geom}</body>"""


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


def test_gravity_compensation_is_written_back(tmp_path: Path) -> None:
    """And what no body's weight is a share of is told."""
    spec = read_model(write(tmp_path, FEATURES["gravity compensation"]))
    push = bb.Wrench(spec.wrenches[0].frame, (1.0, 0.0, 2.0), axes=bb.Frame("world"), name="push")
    written = write_mjcf(replace(spec, wrenches=(*spec.wrenches, push)), tmp_path / "written")
    assert [note for note in written.notes if "wrench" in note] == ["wrenches are left out: 'push'"]
    again = read_model(*written.files)
    assert len(again.wrenches) == len(spec.wrenches) == 2
    for one, other in zip(spec.wrenches, again.wrenches, strict=True):
        assert other.frame.link == one.frame.link
        assert other.frame.xyz == pytest.approx(one.frame.xyz, abs=1e-12)
        assert other.force == pytest.approx(one.force, rel=1e-12)


@pytest.mark.parametrize("given", ['damping="0.7" stiffness="3"', 'damping="0.7"'])
def test_springs_and_dampers_of_free_joints_are_written_back(given: str, tmp_path: Path) -> None:
    """By MuJoCo's own numbers; one that rests elsewhere has no words there, and is told."""
    path = write(tmp_path, FREE.replace("<freejoint", f'<joint type="free" {given}'))
    spec = read_model(path)
    written = write_mjcf(spec, tmp_path / "written")
    assert not any("left out: MuJoCo has none such" in note for note in written.notes)
    models = [mujoco.MjModel.from_xml_path(str(file)) for file in (path, *written.files)]
    for name in ("dof_damping", "jnt_stiffness", "qpos_spring"):
        one, other = (getattr(model, name) for model in models)
        np.testing.assert_allclose(other, one, atol=1e-12)
    require_equal(written.files[0], tmp_path)
    (spring,) = spec.elements
    assert isinstance(spring, bb.Bushing)
    elsewhere = replace(spring, a=replace(spring.a, xyz=(0.0, 0.0, 9.0)))
    notes = write_mjcf(replace(spec, elements=(elsewhere,)), tmp_path / "other").notes
    assert any("left out: MuJoCo has none such" in note for note in notes) == ("stiff" in given)


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


def test_tendons_over_several_joints_pull_as_in_mujoco(tmp_path: Path) -> None:
    s2 = '<site name="s2" pos="-0.3 0 0.1"/><site name="s3" pos="0.1 0.2 0.3"/><geom type="box"'
    bodies = HINGES.format(tip='<site name="s1" pos="0.1 0.2 0"/>')
    bodies = bodies.replace('<geom type="box"', s2) + '<site name="s0" pos="-0.5 0.2 0.7"/>'
    path = write(tmp_path, bodies, SUMS)
    require_equal(path, tmp_path)
    spec = read_mjcf(path, tmp_path)
    assert [element.name for element in spec.elements] == [
        "taut",
        "at rest",
        "slack",
        "slack alone",
        "rope",
        "slack rope",
        "through points",
        "slack through points",
    ]
    again = read_model(*write_mjcf(spec, tmp_path / "written").files)
    assert again.elements[-2:] == spec.elements[-2:]
    write_loops(spec, tmp_path / "written.loops.yaml")
    assert read_model(tmp_path / "written.loops.yaml").elements == spec.elements


def said(spec: ModelSpec, words: str) -> bool:
    return any(words in note for note in spec.notes)


def test_the_first_keyframe_is_where_loops_are_closed_from(tmp_path: Path) -> None:
    keys = """<keyframe><key name="home" qpos="1 2 3 0 0 0.6 0.8 0.5"/>
    <key name="other" qpos="0 0 0 1 0 0 0 0"/></keyframe>"""
    spec = read_mjcf(write(tmp_path, FREE, keys), tmp_path)
    with bb.load(spec) as model:
        q, joints = model.system.q, model.system.mechanism.joints
        link = model.system.kinematics().point(bb.Frame("craft"))
    assert q[joints["hinge"].q] == pytest.approx(0.5)
    np.testing.assert_allclose(link.p_W, (1.0, 2.0, 3.0), atol=1e-12)
    np.testing.assert_allclose(
        Rotation.from_matrix(link.R_W).as_quat(), (0, 0.6, 0.8, 0), atol=1e-12
    )
    assert said(spec, "'home', the first one; keyframe=... takes another one: other")


def test_muscles_whose_range_of_lengths_mujoco_does_not_find_are_left_out(tmp_path: Path) -> None:
    """That of a joint without limits, at which MuJoCo pulls in vain."""
    body = '<body><joint name="j" axis="0 1 0"/><geom size="0.1" pos="1 0 0"/></body>'
    spec = read_mjcf(
        write(tmp_path, body, '<actuator><muscle name="m" joint="j"/></actuator>'), tmp_path
    )
    # its numbers are those of a muscle, not of a line in position and rate
    assert said(spec, "actuators that are more than a torque: m (dynamics muscle, gain muscle,")
    assert not said(spec, "force =")


def test_drives_whose_gain_depends_on_the_position_are_told(tmp_path: Path) -> None:
    body = '<body><joint name="j" axis="0 1 0"/><geom size="0.1" pos="1 0 0"/></body>'
    drive = '<actuator><general name="m" joint="j" gaintype="affine" gainprm="1 2 0"/></actuator>'
    spec = read_mjcf(write(tmp_path, body, drive), tmp_path)
    assert said(spec, "actuators that are more than a torque: m (gain affine, bias none)")


def test_another_keyframe_is_the_start_where_it_is_asked_for(tmp_path: Path) -> None:
    """With its rates and what servos follow; one that is not there, or does not fit, is told."""
    keys = """<keyframe><key name="home" qpos="0.1" ctrl="0.2"/>
    <key name="away" qpos="-0.3" qvel="0.5" ctrl="0.7"/></keyframe>"""
    robot = f"""<mujoco><worldbody><body><joint name="j"/><geom size="0.1" pos="1 0 0"/></body>
    </worldbody><actuator><position joint="j" kp="10"/></actuator>{keys}</mujoco>"""
    path = tmp_path / "keys.xml"
    path.write_text(robot)
    for name, q, v, u in ((None, 0.1, 0.0, 0.2), ("home", 0.1, 0.0, 0.2), ("away", -0.3, 0.5, 0.7)):
        spec = read_model(path, servos=True, keyframe=name)
        with bb.load(spec) as model:
            assert (model.system.q["j"], model.system.v["j"]) == pytest.approx((q, v))
        assert said(spec, f"(stiffness 10, damping 0, at {u})")
        assert said(spec, ", the first one;") == (name is None)
    with pytest.raises(ModelError, match="no keyframe 'far'; there are: home, away"):
        bb.load(path, keyframe="far")
    path.write_text(robot.replace('"-0.3"', '"-0.3 1"'))
    with pytest.raises(ModelError, match="keyframe 'away': invalid qpos size"):
        bb.load(path, keyframe="away")
    with pytest.raises(ModelError, match="is no MJCF, which alone has keyframes"):
        bb.load("four_bar", keyframe="home")


def test_rates_of_the_first_keyframe_are_those_of_the_start(tmp_path: Path) -> None:
    """Not where a loop that is soft in MuJoCo might contradict them."""
    tip = """<body name="tip" pos="0.4 0 0"><joint name="tip" type="ball"/>
    <geom size="0.1" pos="0 0 0.1"/></body></body></body>"""
    bodies = FREE.replace("</body>\n</body>", tip)
    rates = np.array((0.3, -0.2, 0.5, 1.0, -0.7, 0.4, 0.9, -0.6, 0.8, 0.2))
    written = " ".join(map(str, rates))
    keys = f'''<keyframe><key qpos="1 2 3 0 0 0.6 0.8 0.5 0.6 0 0.8 0" qvel="{written}"/>
    </keyframe>'''
    path = write(tmp_path, bodies, keys)
    spec = read_mjcf(path, tmp_path)
    (copy,) = write_mjcf(spec, tmp_path / "copy").files
    for each in (spec, read_mjcf(copy, tmp_path)):
        with bb.load(each, "new") as model:
            oracle = Oracle(path, model.system, spec)
            oracle.put(model.system.q, model.system.v)
            np.testing.assert_allclose(oracle.data.qvel, rates, rtol=0.0, atol=1e-12)
    hold = '<equality><connect name="hold" body1="arm" anchor="0.3 0 0"/></equality>'
    spec = read_mjcf(write(tmp_path, bodies, hold + keys), tmp_path)
    assert spec.start_v == {"tip": [-0.6, 0.8, 0.2]} and not spec.start_q
    assert said(spec, "for joints in loops, which start at rest: base, hinge")


def test_mocap_bodies_stand_where_the_first_keyframe_has_them(tmp_path: Path) -> None:
    """What is welded to one starts there, as MuJoCo's weld would have it."""
    hand = """<body name="hand" pos="0.5 0 1"><freejoint/><geom size="0.1"/>
      <body name="tip"><joint axis="0 1 0"/><geom size="0.03" pos="0 0 -0.2"/></body></body>
    <body name="mark" mocap="true" pos="0.4 0 1"><geom size="0.01"/></body>"""
    more = """<equality><weld body1="mark" body2="hand"/></equality>
    <keyframe><key mpos="0.6 0.1 1.2" mquat="0.6 0 0.8 0"/></keyframe>"""
    path = write(tmp_path, hand, more)
    mujoco_model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(mujoco_model)
    mujoco.mj_resetDataKeyframe(mujoco_model, data, 0)
    mujoco.mj_forward(mujoco_model, data)
    mark = data.body("mark")
    with bb.load(read_mjcf(path, tmp_path)) as model:
        found = model.system.kinematics().point(bb.Frame("hand/hand"))
    R = mark.xmat.reshape(3, 3)
    np.testing.assert_allclose(found.R_W, R, atol=1e-12)
    np.testing.assert_allclose(found.p_W, mark.xpos + R @ (0.1, 0.0, 0.0), atol=1e-12)


def test_joints_drawn_beyond_a_limit_start_at_it(tmp_path: Path) -> None:
    """Where they were they would be taken back, which lifts what they carry by no force.

    Not where a loop or a coupling was closed there, or a keyframe asks for it.
    """
    arm = """<body name="arm"><joint name="lift" axis="0 1 0" range="20 90" limited="true"/>
<joint name="turn" axis="0 0 1" range="-90 90" limited="true"/><geom size="0.1" pos="1 0 0"/>
<site name="tip" pos="1 0 0"/>{}</body>"""
    two = """<body name="one" pos="1 0 0"><joint name="j1" axis="0 1 0" range="5 40"
limited="true"/><geom size="0.1"/></body><body name="two" pos="1 1 0">
<joint name="j2" axis="0 1 0"/><geom size="0.1"/></body>"""
    gear = '<equality><joint joint1="j1" joint2="j2" polycoef="0 1 0 0 0"/></equality>'
    file = write(tmp_path, arm.format(two), gear)
    spec = read_mjcf(file, tmp_path)
    assert spec.start_guess == {"lift": pytest.approx(np.radians(20.0))}
    assert said(spec, "start at a limit, beyond which the file draws them and names no keyframe: l")
    alone = read_mjcf(write(tmp_path, arm.format("")), tmp_path)
    with bb.load(replace(alone, notes=()), "new") as model:
        before = model.system.evaluate().energy
        model.system.run(0.2)
        assert model.system.evaluate().energy <= before + ROUND_OFF * abs(before)
    key = '<keyframe><key qpos="0 0 0 0"/></keyframe>'
    assert not read_mjcf(write(tmp_path, arm.format(two), gear + key), tmp_path).start_guess
    held = '<equality><connect site1="tip" site2="post"/></equality>'
    post = '<site name="post" pos="1 0 0"/>'
    assert not read_mjcf(write(tmp_path, arm.format("") + post, held), tmp_path).start_guess


def test_joints_start_where_mujoco_draws_them(tmp_path: Path) -> None:
    path = write(tmp_path, HINGES.format(tip=""))
    spec = read_mjcf(path, tmp_path)
    with bb.load(spec) as model:
        q = model.system.q
    np.testing.assert_allclose(q, mujoco.MjModel.from_xml_path(str(path)).qpos0, atol=1e-12)


def test_limits_friction_and_drives_are_those_of_the_file(tmp_path: Path) -> None:
    drives = """<actuator><motor joint="j" gear="20" ctrlrange="-1 1" forcerange="-2 2"/>
    <position name="servo" joint="j" kp="7"/></actuator>"""
    text = ARM.format(geom="").replace("range", 'frictionloss="0.3" range')
    spec = read_mjcf(write(tmp_path, text, drives, '<compiler autolimits="true"/>'), tmp_path)
    system = unassembled(spec)
    joint = system.mechanism.joint("j")
    assert joint.effort == 40.0, "gear times the smaller of the two bounds"
    system.motors.set("j", position=1.0)
    system.motors.set("j", position=1.0, force=50.0)
    assert system.motors.settings("j")["force"] == 50.0
    system.motors.set("j", position=1.0)
    system.step()
    assert system.motors.settings("j")["force"] == system.motors.forces[0] == 40.0
    assert (joint.lower, joint.upper) == pytest.approx(np.radians((-60, 80)))
    assert joint.friction == 0.3 and spec.joint_friction
    assert spec.actuated == ("j",)
    assert said(spec, "servo (force = 7 control -7 position)")
    limit = Xml.parse(spec.bodies[0].urdf).getroot().find("joint[@name='j']/limit")
    assert limit is not None and float(limit.get("effort", "")) == 40.0


ANGLES = '<compiler autolimits="true"/><option><flag contact="disable"/></option>'
SERVOS = """<body pos="0 0 1"><joint name="a" axis="0 1 0" damping="0.1" stiffness="2"/>
<inertial pos="0.2 0 0" mass="1" diaginertia="0.01 0.02 0.02"/><body pos="0.4 0 0">
<joint name="b" axis="0 1 0"/><inertial pos="0.2 0 0" mass="1" diaginertia="0.01 0.02 0.02"/>
<body pos="0.4 0 0"><joint name="c" axis="1 0 0" ref="20"/><joint name="d" type="slide"/>
<inertial pos="0 0.1 0" mass="0.5" diaginertia="0.01 0.02 0.02"/></body></body></body>"""
CONTROLS = """<tendon><fixed name="t"><joint joint="c" coef="-0.5"/></fixed>
<fixed name="both"><joint joint="c" coef="1"/><joint joint="d" coef="1"/></fixed></tendon><actuator>
<position joint="a" kp="30" kv="2" gear="-3" ctrlrange="-1 1"/><velocity joint="b" kv="4" gear="2"/>
<general tendon="t" biastype="affine" gainprm="5" biasprm="0.3 -7 -0.2"/>
<intvelocity joint="d" kp="90" actrange="-1 1"/>{more}<motor joint="a"/></actuator>
<keyframe><key qpos="0.1 0.2 0.3 0.1" ctrl="0.7 -0.4 2 0 {rest}0" act="0.2{act}"/></keyframe>"""


def test_servos_act_as_in_mujoco_where_they_are_asked_to(tmp_path: Path) -> None:
    more = '<general joint="b" biastype="affine" biasprm="9 0 0" forcerange="-5 5"/>'
    path = write(tmp_path, SERVOS, CONTROLS.format(more=more, rest="0 ", act=""), ANGLES)
    asked, silent = read_model(path, servos=True), read_model(path)
    assert asked.actuated == silent.actuated == ("a", "b", "c", "d")
    assert said(silent, "servos=True (--servos)") and not said(asked, "no force acts")
    model = mujoco.MjModel.from_xml_path(str(path))
    rng = np.random.default_rng(3)
    for spec, disabled in ((asked, 0), (silent, mujoco.mjtDisableBit.mjDSBL_ACTUATION)):
        model.opt.disableflags = int(disabled)
        system, data = unassembled(spec), mujoco.MjData(model)
        for _ in range(2):
            mujoco.mj_resetDataKeyframe(model, data, 0)
            data.qpos[:], data.qvel[:] = rng.normal(size=(2, 4))
            system.set_state(data.qpos, data.qvel)
            mujoco.mj_forward(model, data)
            size = np.abs(data.qacc).max()
            np.testing.assert_allclose(system.acceleration(), data.qacc, atol=1e-10 * size)


def test_servos_that_are_no_springs_of_one_joint_are_told(tmp_path: Path) -> None:
    more = """<position name="late" joint="a" kp="3" timeconst="0.1"/>
    <general name="pushes" joint="b" biastype="affine" biasprm="0 -1 0" forcerange="1 2"/>
    <general name="away" joint="b" biastype="affine" biasprm="0 1 0"/>"""
    controls = CONTROLS.format(more=more, rest="0 0 0 ", act=" 0")
    spec = read_mjcf(write(tmp_path, SERVOS, controls, ANGLES), tmp_path, How(servos=True))
    (told,) = (note for note in spec.notes if "no force acts" in note)
    assert all(name in told for name in ("late", "pushes", "away")) and "--servos" not in told


GRIPPER = """<body name="left"><joint name="left" axis="0 1 0"/>
  <inertial pos="0.1 0 0" mass="0.3" diaginertia="1e-4 2e-3 2e-3"/></body>
<body name="right" pos="0 0.1 0"><joint name="right" axis="0 1 0" damping="0.01"/>
  <inertial pos="0.2 0 0" mass="0.2" diaginertia="1e-4 1e-3 1e-3"/></body>"""
BOUNDED = """<tendon><fixed name="split"><joint joint="left" coef="0.5"/>
  <joint joint="right" coef="0.7"/></fixed></tendon><actuator>
<general name="close" tendon="split" biastype="affine" gainprm="1" biasprm="0.2 -4 -0.1" gear="-2"
  forcerange="-0.6 0.9"/>
<position name="left" joint="left" kp="2" kv="0.1" forcerange="-0.2 0.9"/>
<position name="firm" joint="right" kp="4"/><velocity name="slow" joint="right" kv="0.4" gear="3"/>
</actuator><keyframe><key qpos="0.2 -0.1" ctrl="-2 0.9 0.3 0.1"/></keyframe>"""


def test_servos_push_within_their_bounds_as_in_mujoco(tmp_path: Path) -> None:
    """Steps of first order towards fine ones of MuJoCo's; servos of several joints among them."""
    path = write(tmp_path, GRIPPER, BOUNDED)
    spec = read_model(path, servos=True)
    assert [each.name for each in spec.elements] == ["close", "left_tendon"]
    model = mujoco.MjModel.from_xml_path(str(path))
    model.opt.integrator, model.opt.timestep = mujoco.mjtIntegrator.mjINT_RK4, 2e-4
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    bound, free = np.zeros(2, int), np.zeros(2, int)
    for _ in range(1000):
        mujoco.mj_step(model, data)
        ends = zip(data.actuator_force[:2], model.actuator_forcerange[:2], strict=True)
        at_bound = np.array([force in bounds for force, bounds in ends])
        bound += at_bound
        free += ~at_bound
    assert min(*bound, *free) > 50, "all that is to be seen"
    errors: list[float] = []
    for dt in (1e-3, 5e-4):
        with bb.load(spec, "new", dt=dt) as loaded:
            loaded.system.rollout(round(0.2 / dt))
            assert abs(loaded.system.motors.forces).max() <= 0.9 + 1e-12
            errors.append(float(np.abs(loaded.system.q - data.qpos).max()))
    assert errors[1] < 0.6 * errors[0] < 2e-3, errors


def test_bounded_servos_limits_and_friction_of_tendons_are_written_back(tmp_path: Path) -> None:
    more = BOUNDED.replace('name="split"', 'name="split" range="-1 2" frictionloss="0.3"')
    spec = read_model(write(tmp_path, GRIPPER, more), servos=True)
    (sum_of,) = (each for each in spec.elements if each.name == "split")
    assert isinstance(sum_of, bb.Tendon) and sum_of.limits == (-1.0, 2.0) and sum_of.friction == 0.3
    again = read_model(*write_mjcf(spec, tmp_path / "written").files, servos=True)
    by_name = {each.name: each for each in again.elements}
    for each in spec.elements:
        found = by_name[each.name]
        assert isinstance(each, bb.Tendon) and isinstance(found, bb.Tendon)
        if each.motor is None:
            assert found == each
        else:  # gears are in the coefficients
            assert found.coefficients == each.coefficients and found.motor is not None
            np.testing.assert_allclose(
                list(vars(found.motor).values())[2:],
                list(vars(each.motor).values())[2:],
                rtol=1e-14,
            )
    write_loops(spec, tmp_path / "written.loops.yaml")
    assert read_model(tmp_path / "written.loops.yaml").elements == spec.elements


CABLE = """<body name="arm" pos="0 0 1"><joint name="swing" axis="0 1 0" damping="0.02"/>
  <inertial pos="0.2 0 0" mass="0.3" diaginertia="1e-3 2e-3 2e-3"/>
  <site name="end" pos="0.4 0 0.05"/></body><site name="post" pos="0.3 0.1 1.5"/>
  <site name="eye" pos="-0.1 0.3 1.2"/>"""
PULLED = """<tendon><spatial name="cable" {bounds}><site site="post"/>{eye}<site site="end"/>
</spatial></tendon><actuator><general name="winch" tendon="cable" biastype="affine" gainprm="3"
  biasprm="0.2 -40 -0.3" gear="-2" ctrlrange="0 1" {range}/><motor name="bare" tendon="cable"/>
</actuator><keyframe><key qpos="0.4" ctrl="0.7 0"/></keyframe>"""


EYE = '<site site="eye"/>'


@pytest.mark.parametrize("eye", ["", EYE])
@pytest.mark.parametrize("force", ["", 'forcerange="-9 9"'])
def test_servos_along_a_line_pull_as_in_mujoco(force: str, eye: str, tmp_path: Path) -> None:
    """Without bounds to round-off; with them as steps of first order come near, on both sides."""
    path = write(tmp_path, CABLE, PULLED.format(bounds="", range=force, eye=eye))
    spec = read_model(path, servos=True)
    assert said(spec, "actuator 'bare' pulls along a line and no force acts")
    (winch,) = spec.elements
    assert isinstance(winch, bb.Spring) and winch.bounded == bool(force)
    assert winch.motor is None or (winch.motor.least, winch.motor.force) == (-18.0, 18.0)
    model = mujoco.MjModel.from_xml_path(str(path))
    if not force:
        system, data = unassembled(spec), mujoco.MjData(model)
        mujoco.mj_resetDataKeyframe(model, data, 0)
        data.qvel[:] = 0.8
        system.set_state(data.qpos, data.qvel)
        mujoco.mj_forward(model, data)
        np.testing.assert_allclose(system.acceleration(), data.qacc, rtol=1e-10)
        return
    model.opt.integrator, model.opt.timestep = mujoco.mjtIntegrator.mjINT_RK4, 2e-4
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    mujoco.mj_step(model, data, 1500)
    errors: list[float] = []
    for dt in (1e-3, 5e-4):
        with bb.load(spec, "new") as loaded:
            loaded.system.dt = dt
            loaded.system.run(0.3)
            errors.append(float(np.abs(loaded.system.q - data.qpos).max()))
    assert errors[1] < 0.6 * errors[0] < 1e-2, errors


def test_a_cable_that_does_not_stretch_holds_as_mujocos_does(tmp_path: Path) -> None:
    """The arm falls until the cable is taut; MuJoCo's gives way by what its limits are soft."""
    hard = 'solreflimit="1e-3 1" solimplimit="0.9999 0.9999 1e-3"'
    bounds = f'limited="true" range="0 0.62" frictionloss="0.1" {hard}'
    pulled = PULLED.format(bounds=bounds, range="", eye="").split("<actuator>")[0]
    path = write(tmp_path, CABLE, pulled)
    spec = read_model(path)
    (cable,) = spec.elements
    assert isinstance(cable, bb.Spring) and cable.limits == (0.0, 0.62) and cable.friction == 0.1
    again = read_model(*write_mjcf(spec, tmp_path / "written").files)
    assert again.elements == spec.elements
    write_loops(spec, tmp_path / "written.loops.yaml")
    assert read_model(tmp_path / "written.loops.yaml").elements == spec.elements
    model = mujoco.MjModel.from_xml_path(str(path))
    model.opt.timestep = 2e-4
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data, 15000)
    with bb.load(spec, "new") as loaded:
        loaded.system.rollout(720)
        assert abs(loaded.system.v[0]) < 1e-6
        assert abs(loaded.system.q[0] - data.qpos[0]) < 1e-4
        R, at = loaded.system.link_pose("arm")
        way = at + R @ np.array([0.4, 0.0, 0.05]) - np.array([0.3, 0.1, 1.5])
        assert np.linalg.norm(way) == pytest.approx(0.62, abs=1e-6)


def test_a_cable_through_an_eye_holds_the_length_of_all_of_it(tmp_path: Path) -> None:
    """As limits, and as an equality, which MuJoCo counts from where the file draws the arm."""
    for of in ('limited="true" range="0 1.19"', ""):
        pulled = PULLED.format(bounds=of, range="", eye=EYE).split("<actuator>")[0]
        held = "" if of else '<equality><tendon name="h" tendon1="cable"/></equality>'
        path = write(tmp_path, CABLE, pulled + held)
        model = mujoco.MjModel.from_xml_path(str(path))
        spec = read_model(path)
        (cable,) = spec.elements
        longest = 1.19 if of else float(model.tendon_length0[0])
        assert isinstance(cable, bb.Spring) and len(cable.via) == 1
        assert cable.limits == (0.0 if of else longest, longest)
        with bb.load(spec, "new") as loaded:
            system = loaded.system
            system.rollout(480)
            assert abs(system.v[0]) < 1e-6
            R, at = system.link_pose("arm")
            eye = np.array([-0.1, 0.3, 1.2])
            ways = at + R @ np.array([0.4, 0.0, 0.05]) - eye, eye - np.array([0.3, 0.1, 1.5])
            assert sum(map(np.linalg.norm, ways)) == pytest.approx(longest, abs=1e-6)
            # what the cable pulls with holds the weight
            pull = system.joint_loads["cable" if of else "h"].limit
            force = pull * ways[0] / np.linalg.norm(ways[0])
            torque = system.wrench(bb.Frame("arm", (0.4, 0.0, 0.05)), force)
            assert torque == pytest.approx(system.terms().h, rel=1e-5)


WRAPPED = """
<site name="s0" pos="-0.5 0.2 0.7"/>
<geom name="post" type="cylinder" size="0.1 0.2" pos="0 0.3 0.8" euler="20 40 10"/>
<site name="in" pos="0.05 0.32 0.81"/>
<body name="a" pos="0 0 1"><joint name="ja" type="ball"/><geom size="0.1" mass="1" pos="0.3 0 0"/>
 <site name="sa" pos="0.2 0.1 0.1"/><geom name="ball" size="0.12" pos="0.3 0.1 0.2" mass="0.1"/>
 <site name="out" pos="0.3 0.3 0.2"/>
 <body name="b" pos="0.5 0 0"><joint name="jb" axis="0 1 0.3"/>
  <geom size="0.1" mass="1" pos="0.1 0.2 0"/><site name="sb" pos="0.3 0.1 0.1"/>
  <geom name="drum" type="cylinder" size="0.1 0.1" pos="0.2 0.1 0.1" euler="30 10 70" mass="0.2"/>
  <site name="off" pos="0.3 0.3 0.2"/>
  <body name="c" pos="0.4 0 0"><joint name="jc" axis="1 0 0.3"/><site name="sc" pos="0.2 0.2 0.1"/>
   <geom size="0.1" mass="1" pos="0.1 0.1 0.2"/></body></body></body>
<body name="d" pos="0.4 0.4 0.4"><freejoint name="f"/><geom size="0.2" mass="2"/>
 <site name="sd" pos="0.3 0 0"/><geom name="big" size="0.25" pos="0.1 0.1 0" mass="0.1"/>
 <site name="within" pos="0.12 0.1 0"/></body>"""
WRAPS = {
    "a ball": "sb ball s0",
    "a ball on a side": "sb ball/out s0",
    "two bodies": "sa drum/off sc big s0",
    "a post": "sa post sd",
    "over pulleys": "sa post sd 2 s0 big sb sc 3 sa s0",
    "through a ball": "sa big/within sc",
    "through a post": "sa post/in sc",
}


def wrapping(way: str, given: str) -> str:
    """A tendon by names of sites, of geoms with their side sites, and divisors."""
    said: list[str] = []
    for word in way.split():
        name, _, side = word.partition("/")
        if word.isdigit():
            said.append(f'<pulley divisor="{word}"/>')
        elif name in ("ball", "drum", "post", "big"):
            said.append(f'<geom geom="{name}"' + (f' sidesite="{side}"/>' if side else "/>"))
        else:
            said.append(f'<site site="{word}"/>')
    return f'<tendon><spatial name="t" {given}>{"".join(said)}</spatial></tendon>'


@pytest.mark.parametrize("name", WRAPS)
def test_tendons_go_round_bodies_as_in_mujoco(name: str, tmp_path: Path) -> None:
    """Length, rate and forces on a hundred poses; through a hole as far as MuJoCo's Newton goes.

    That stops at 1e-6 rad of an angle whose change moves the length to second order.
    """
    if "/o" in WRAPS[name] and int(mujoco.__version__.split(".")[0]) < 4:
        pytest.skip("MuJoCo before 4 has another rule for lines that pass on the wrong side")
    given = 'stiffness="30" damping="0.7" springlength="0.3"'
    path = write(tmp_path, WRAPPED, wrapping(WRAPS[name], given))
    spec = read_mjcf(path, tmp_path)
    system = unassembled(spec)
    oracle, rng = Oracle(path, system, spec), np.random.default_rng(1)
    drawn, ways = "through" in name, set[int]()
    for _ in range(100):
        q, v = random_state(system, rng)
        assert max(oracle.compare(q, v)) < (3e-6 if drawn else ROUND_OFF)
        system.set_state(q, v)
        found = system.spring_forces()["t"]
        assert abs(found.position - float(oracle.data.ten_length[0])) < (1e-10 if drawn else 1e-12)
        rate = float(oracle.data.ten_velocity[0])
        assert abs(float(found.rate) - rate) < (3e-6 if drawn else ROUND_OFF)
        ways.add(int(oracle.data.ten_wrapnum[0]))
    assert len(ways) > 1  # straight and round
    again = read_model(*write_mjcf(spec, tmp_path / "written").files)
    (one,), (other,) = spec.elements, again.elements
    assert isinstance(one, bb.Spring) and isinstance(other, bb.Spring)
    for before, after in zip(one.via, other.via, strict=True):
        if isinstance(before, bb.Pulley):
            assert before == after
            continue
        if isinstance(before, bb.Round):
            assert isinstance(after, bb.Round) and after.cylinder == before.cylinder
            assert after.side == pytest.approx(before.side, abs=1e-15)
            assert after.radius == before.radius
            before, after = before.frame, after.frame
        assert isinstance(after, bb.Frame) and after.xyz == pytest.approx(before.xyz, abs=1e-15)
    write_loops(spec, tmp_path / "written.loops.yaml")
    assert read_model(tmp_path / "written.loops.yaml").elements == spec.elements


def test_what_tendons_round_bodies_lose_is_told(tmp_path: Path) -> None:
    """Bounds act along straight lines alone; sides are on the body that a tendon goes round."""
    held = 'stiffness="9" limited="true" range="0 1" frictionloss="0.2"'
    actuator = '<actuator><position name="p" tendon="t" kp="5" forcerange="-1 1"/></actuator>'
    path = write(tmp_path, WRAPPED, wrapping("sb ball s0", held) + actuator)
    spec = read_model(path, servos=True)
    (spring,) = spec.elements
    assert isinstance(spring, bb.Spring) and not spring.bounded and spring.stiffness == 9.0
    assert said(spec, "limits of tendon 't': left out")
    assert said(spec, "friction of tendon 't': left out")
    assert said(spec, "more than a torque: p")
    spec = read_mjcf(write(tmp_path, WRAPPED, wrapping("sb ball/off s0", held)), tmp_path)
    assert not spec.elements and said(spec, "spring and damper of tendon 't': left out")
    assert said(spec, "a side site on another body than what they go round, do nothing: 't'")


def test_tendons_on_one_rigid_body_do_nothing(tmp_path: Path) -> None:
    """Between sites of a body, or of bodies that are fixed to each other or to the world."""
    tip = """<site name="s1"/><body name="fixed" pos="0.1 0 0"><site name="s2" pos="0 0 0.1"/>
<geom size="0.1"/></body>"""
    more = """<tendon><spatial name="t" stiffness="9" limited="true" range="0 1"><site site="s1"/>
<site site="s2"/></spatial><spatial name="u" damping="1"><site site="w1"/><site site="w2"/>
</spatial><spatial name="v" stiffness="5"><site site="w1"/><site site="s1"/></spatial></tendon>
<equality><tendon tendon1="t"/><connect body1="fixed" anchor="0 0 0" name="c"/>
<weld body1="post" body2="hand" name="w"/><connect site1="s1" site2="s2" name="s"/></equality>
<actuator><motor name="pull" tendon="u"/></actuator>"""
    still = (
        '<site name="w1"/><body name="post" pos="1 0 0"><site name="w2"/><geom size="1"/></body>'
        '<body name="hand" mocap="true"/>'
    )
    path = write(tmp_path, HINGES.format(tip=tip) + still, more)
    spec = read_mjcf(path, tmp_path)
    assert [each.name for each in spec.elements] == ["v"]
    assert [each.name for each in spec.constraints] == ["c"]  # holds a link to the world
    assert said(spec, "cannot move against each other, which do nothing, are left out: 'w', 's'")
    assert said(spec, "tendons between points of one rigid body, whose length never changes")
    assert said(spec, "are left out: 't', 'u'")
    assert said(spec, "or is on one rigid body") and said(spec, "are left out: pull")
    spec = replace(spec, constraints=())
    system = unassembled(spec)
    oracle, rng = Oracle(path, system, spec), np.random.default_rng(8)
    oracle.model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_EQUALITY)
    assert max(oracle.compare(*random_state(system, rng))) < ROUND_OFF


BALL = """<body name="rod" pos="0 0 1"><joint name="hang" type="ball" range="0 40" {more}/>
  <inertial pos="0.2 0.1 0.05" mass="0.5" diaginertia="0.01 0.02 0.025"/></body>"""
HARD = 'solreflimit="1e-3 1" solimplimit="0.9999 0.9999 1e-3"'


def test_a_ball_turns_as_far_as_its_range_says(tmp_path: Path) -> None:
    """It falls until it has turned by 40 degrees, about whatever axis, and rests as MuJoCo's."""
    path = write(tmp_path, BALL.format(more=f'damping="0.2" {HARD}'))
    spec = read_model(path)
    largest = np.radians(40)
    assert spec.joints["hang"].limits == pytest.approx((0.0, largest))
    for files in (write_mjcf(spec, tmp_path / "w").files, [tmp_path / "w.loops.yaml"]):
        if files[0].suffix == ".yaml":
            write_loops(spec, files[0])
        again = read_model(*files).joints["hang"]
        assert again.limits == pytest.approx((0.0, largest), rel=1e-15)
    with bb.load(spec, "new") as loaded:
        system, turned = loaded.system, list[float]()
        energy = system.evaluate().energy
        for _ in range(2400):
            system.step()
            half = np.arctan2(np.linalg.norm(system.q[:3]), abs(system.q[3]))
            turned.append(2.0 * float(half))
            before, energy = energy, system.evaluate().energy
            assert energy < before + 1e-7  # 1 N m by the turn of 1e-7 that limits let be
        assert np.abs(system.v).max() < 1e-6
        # the limit acts on rates, so that the turn is off by the square of a step's
        assert max(turned) < largest + 1e-3
        assert turned[-1] == pytest.approx(largest, abs=1e-6)
        axis = system.q[:3] / np.linalg.norm(system.q[:3])
        R, _ = system.link_pose("rod")
        torque = R.T @ np.cross(R @ (0.2, 0.1, 0.05), (0, 0, -9.81 * 0.5))
        pushed = system.joint_loads["hang"].limit * axis
        np.testing.assert_allclose(-pushed, torque, atol=1e-5 * np.abs(torque).max())
        rests = np.array(system.q)
    model = mujoco.MjModel.from_xml_path(str(path))
    model.opt.timestep = 5e-4
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data, 20000)
    np.testing.assert_allclose(rests, np.roll(data.qpos, -1), atol=1e-4)
    with bb.load(spec, "new", limits=False) as loaded:
        loaded.system.rollout(240)
        assert 2.0 * np.arccos(abs(loaded.system.q[3])) > 1.0


def test_friction_of_a_ball_brings_each_rate_to_rest(tmp_path: Path) -> None:
    """About a principal axis I w' = -F, exactly in every step, until it sticks."""
    weightless = '<option gravity="0 0 0"/>'
    at_centre = BALL.replace('pos="0.2 0.1 0.05"', 'pos="0 0 0"').replace('range="0 40"', "")
    path = write(tmp_path, at_centre.format(more='frictionloss="0.004"'), weightless)
    spec = read_model(path)
    assert spec.joint_friction and not spec.joints
    with bb.load(spec, "new") as loaded:
        system = loaded.system
        system.dt = 1 / 240
        system.set_state(system.q, [0.0, 0.0, 0.3])
        for n in range(1, 481):
            system.step()
            wanted = max(0.3 - 0.004 / 0.025 * n / 240, 0.0)
            np.testing.assert_allclose(system.v, (0.0, 0.0, wanted), atol=1e-13)
        assert system.joint_loads["hang/z"].friction == pytest.approx(0.0, abs=1e-13)


def test_a_tendon_may_rest_at_minus_one(tmp_path: Path) -> None:
    """Twice that number is MuJoCo's word for the length at the start."""
    spec = read_model(write(tmp_path, GRIPPER, BOUNDED), servos=True)
    given = bb.Tendon("given", {"left": 1.0, "right": 2.0}, stiffness=3.0, rest=-1.0)
    more = replace(spec, elements=[*spec.elements, given])
    again = read_model(*write_mjcf(more, tmp_path / "written").files, servos=True)
    (found,) = (each for each in again.elements if each.name == "given")
    assert isinstance(found, bb.Tendon)
    np.testing.assert_allclose((found.rest, found.slack), (-1.0, 0.0), atol=1e-15)


def test_settings_of_older_versions_are_left_out(tmp_path: Path) -> None:
    part = '<mujocoinclude><option apirate="100" timestep="0.01"/></mujocoinclude>'
    (tmp_path / "part.xml").write_text(part)
    force = 'damping="3" user="1, 2" actuatorforcelimited="true" actuatorforcerange="-2 2" range'
    arm = ARM.format(geom="").replace("range", force)
    old = """<include file="part.xml"/><option><flag passive="disable"/></option>
    <sensor><gone joint="shoulder"/></sensor><visual><headlight gone="1"/></visual>
    <keyframe><key qpos="1 2 3 4 5 6 7 8 9 10"/></keyframe>
    <default><default class="c" group="1"/></default>
    <asset><material name="grey"/><material name="grey" rgba="1 0 0 1"/></asset>"""
    spec = read_mjcf(write(tmp_path, arm, settings=old), tmp_path)
    assert said(spec, '<option apirate="100"> is not understood by this MuJoCo: left out')
    assert said(spec, "material 'grey' is given 2 times: the first one is taken")
    assert said(spec, '<default group="1">') and said(spec, '<joint user="1, 2">')
    assert said(spec, "<gone> in <sensor>") and said(spec, '<headlight gone="1">')
    assert said(spec, "keyframes are left out: Error: keyframe '': invalid qpos size")
    assert said(spec, "actuatorforcerange of <joint> is actuatorfrcrange since MuJoCo 3")
    assert said(spec, '<flag passive="disable">') and said(spec, "dampers are switched off")
    assert unassembled(spec).mechanism.axes["damping"].max() == 0.0
    with pytest.raises(ModelError, match="unrecognized attribute: 'dampin'"):
        read_mjcf(write(tmp_path, arm.replace("damping", "dampin"), settings=old), tmp_path)


LINKAGE = """<body><joint name="crank" axis="0 1 0"/><geom type="capsule" size="0.02"
fromto="0 0 0 0 0 0.3"/><body pos="0 0 0.3"><joint axis="0 1 0"/><geom type="capsule" size="0.02"
fromto="0 0 0 0.7 0 0"/><site name="s1" pos="0.7 {} 0"/></body></body><body pos="0.6 0 0"><joint
axis="0 1 0"/><geom type="capsule" size="0.02" fromto="0 0 0 0 0 0.4"/><site name="s2"
pos="0 0 0.4"/></body>"""


def test_frames_that_mujoco_pulls_together_in_vain_do_nothing(tmp_path: Path) -> None:
    """A linkage whose links are drawn side by side moves as the one drawn in a plane."""
    pin, found = '<equality><connect name="pin" site1="s1" site2="s2"/></equality>', list[Array]()
    for off in (0.0, 0.01):
        path = write(tmp_path, LINKAGE.format(off), pin)
        with bb.load(read_model(path), "new", dt=1e-3) as model:
            assert said(model.spec, "loop 'pin': its frame on") is bool(off)
            model.system.run(0.1)
            assert model.system.evaluate().largest("metres") < 1e-12
            found.append(model.system.q)
    np.testing.assert_allclose(*found, atol=1e-12)  # a hundred steps of round-off
    with pytest.raises(AssemblyError, match="pin"):
        bb.load(read_model(path, repair_frames=False), "new")


@pytest.mark.parametrize(
    ("more", "settings", "words"),
    [
        ('<tendon><fixed stiffness="3 1"><joint joint="a" coef="1"/></fixed></tendon>', "", "poly"),
        ('<actuator><motor joint="a" damping="0.1 0.2"/></actuator>', "", "polynomials"),
        pytest.param(
            "",
            '<default><joint stiffness="3" springyield="0.1"/></default>',
            "springyield",
            marks=pytest.mark.skipif(int(mujoco.__version__[0]) < 4, reason="of MuJoCo 4"),
        ),
        ("", '<default><geom surfacevel="1 0 0"/></default>', "surfacevel"),
        ("", '<option><flag constraint="disable"/></option>', "limits are switched off"),
        (
            '<actuator><position joint="a" kp="9" group="1"/></actuator>',
            '<option actuatorgroupdisable="1"/>',
            "groups that are disabled never act: actuator 0",
        ),
        (
            '<actuator><orientation site="s" refsite="r" kp="2"/><position joint="a" kp="9"'
            ' ctrlrange="0 1"/></actuator><keyframe><key ctrl="3 3 3 0.5"/></keyframe>',
            "",
            "actuator 1 (stiffness 9, damping 0, at 0.5)",
        ),
    ],
)
def test_what_mujoco_has_had_since_its_fourth_version_is_told(
    more: str, settings: str, words: str, tmp_path: Path
) -> None:
    """And what is switched off does nothing; controls are counted by actuators that have three."""
    body = """<site name="r"/><body><joint name="a" axis="0 1 0" range="-9 9"/><geom size="0.1"/>
    <site name="s"/></body><body pos="1 0 0"><joint name="b"/><geom size="0.1"/></body>"""
    tie = '<equality><joint joint1="a" joint2="b"/></equality>'
    spec = read_mjcf(write(tmp_path, body, more + tie, settings), tmp_path, How(servos=True))
    assert said(spec, words)
    assert len(spec.constraints) == (0 if "constraint" in settings else 1)
    assert bool(spec.forces) is (" kp=" in more and not settings or "stiffness" in settings + more)


WALKER = """<mujoco><compiler {frame}/><worldbody>
<body name="hull"{hull}><freejoint name="base"/><geom type="capsule" fromto="{trunk}" size="0.1"/>
<body name="thigh" {thigh}><joint name="hip" pos="{hip}" axis="1 2 0"/>
<geom type="capsule" fromto="{bone}" size="0.05"/><inertial mass="1" diaginertia="1 1 1"{com}/>
<body name="foot"{foot}><joint name="ankle" pos="{ankle}" axis="0 1 0"/>
<geom type="box" pos="{sole}" size="0.1 0.05 0.02" euler="0 0 30"/></body></body></body>
</worldbody></mujoco>"""


def test_defaults_beside_the_outermost_one_are_below_it(tmp_path: Path) -> None:
    """As people mend such files, which versions before 3 read; assets of files put together."""
    beside = """<default><joint damping="0.3"/></default>
<default class="stiff"><joint stiffness="7"/></default>"""
    within = """<default><joint damping="0.3"/><default class="stiff"><joint stiffness="7"/>
</default></default>"""
    mesh = '<asset><mesh name="m" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/></asset>'
    body = """<body name="b"><joint name="j" class="stiff"/><geom type="mesh" mesh="m"/></body>"""
    spec = read_mjcf(write(tmp_path, body, beside + mesh + mesh), tmp_path)
    assert said(spec, "default classes 'stiff' beside the outermost one are classes below it")
    assert said(spec, "mesh 'm' is given 2 times: the first one is taken")
    other = read_mjcf(write(tmp_path, body, within + mesh), tmp_path)
    assert spec.forces == other.forces and spec.joints == other.joints and spec.forces


def test_a_floating_body_may_have_its_mass_in_what_is_fixed_to_it(tmp_path: Path) -> None:
    """As the kettle of Gymnasium's kitchen: Bullet would hold a base without mass."""
    body = """<body name="frame" pos="0 0 1"><freejoint/><body name="pot" pos="0.1 0.2 0"
    quat="0.8 0.6 0 0"><inertial mass="2" pos="0.1 0 0.3" diaginertia="1 2 2.5"/></body>
    <body name="lid" pos="0 0 0.5"><joint name="hinge" pos="0.1 0 0"/>
    <inertial mass="1" pos="0 0.2 0" diaginertia="0.3 0.2 0.4"/></body></body>"""
    start = '<keyframe><key qpos="1 2 3 0.6 0 0.8 0 0.1"/></keyframe>'
    path = write(tmp_path, body, start)
    spec = read_mjcf(path, tmp_path)
    assert said(spec, "'frame' has no mass; it gets that of 'pot', fixed to it")
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    mujoco.mj_forward(model, data)
    M = np.zeros((7, 7))
    full_mass(model, data, M)
    R = data.body("frame").xmat.reshape(3, 3)
    arm = R @ (
        np.array([0.1, 0.2, 0.0]) + Rotation.from_quat([0.6, 0, 0, 0.8]).apply([0.1, 0, 0.3])
    )
    T = np.zeros((7, 7))  # MuJoCo's rates, of the frame's origin and in its axes, by ours
    T[:3, :3], T[:3, 3:6], T[3:6, :3], T[6, 6] = cross_matrix(arm), np.eye(3), R.T, 1.0
    with bb.load(spec, "new") as loaded:
        turn, place = loaded.system.link_pose("pot")
        np.testing.assert_allclose(place, data.body("pot").xpos, atol=1e-12)
        np.testing.assert_allclose(turn, data.body("pot").xmat.reshape(3, 3), atol=1e-12)
        np.testing.assert_allclose(loaded.system.terms().M, T.T @ M @ T, atol=1e-12)


def test_global_coordinates_are_made_local(tmp_path: Path) -> None:
    """Against the same robot with MuJoCo's local ones, worked out by hand."""
    known, older = tmp_path / "local.xml", tmp_path / "global.xml"
    known.write_text(
        WALKER.format(
            frame="",
            **{"hull": ' pos="0 0 1"', "trunk": "0 0 0 0 0 0.5", "thigh": 'pos="0.2 0 -1"'},
            **{"hip": "0 0 1", "bone": "0 0 1 0 0 0.5", "com": ' pos="0 0 0"', "foot": ""},
            **{"ankle": "0 0 0.5", "sole": "0.1 0 0.4"},
        )
    )
    older.write_text(
        WALKER.format(
            frame='coordinate="global"',
            **{"hull": ' pos="0 0 1"', "trunk": "0 0 1 0 0 1.5"},
            **{"thigh": 'pos="0.2 0 0" quat="0 1 0 0"', "hip": "0.2 0 1", "com": ""},
            **{"bone": "0.2 0 1 0.2 0 0.5", "foot": ' pos="0.2 0 0"'},
            **{"ankle": "0.2 0 0.5", "sole": "0.3 0 0.4"},
        )
    )
    spec = read_mjcf(older, tmp_path)
    assert said(spec, "1 <inertial> without pos") and said(spec, "global coordinates")
    system = unassembled(spec)
    oracle = Oracle(known, system, spec)
    assert max(oracle.compare(*random_state(system, np.random.default_rng(3)))) < ROUND_OFF
    tied = '<equality><connect body1="hull" body2="foot" anchor="0 0 0"/></equality></mujoco>'
    older.write_text(older.read_text().replace("</mujoco>", tied))
    with pytest.raises(ModelError, match="global coordinates no longer supported"):
        read_mjcf(older, tmp_path)


def test_joints_and_materials_that_only_bullet_takes_are_read(tmp_path: Path) -> None:
    """Bullet welds joints of type fixed and asks for no material: as without either."""
    arm = ARM.format(geom='<geom size="0.1" material="gone"/>')
    welded = arm.replace("</body>", '<body name="w"><joint type="fixed"/><geom size="0.1"/></body>')
    welded += "</body>"
    plain = welded.replace('<joint type="fixed"/>', "").replace(' material="gone"', "")
    spec = read_mjcf(write(tmp_path, welded), tmp_path)
    assert said(spec, "1 joints of type 'fixed', which only Bullet has: welds")
    np.testing.assert_allclose(
        unassembled(spec).terms().M,
        unassembled(read_mjcf(write(tmp_path, plain), tmp_path)).terms().M,
    )


@pytest.mark.parametrize("encoding", ["utf-16", "latin-1"])
def test_a_text_that_mujoco_does_not_read_is_read(encoding: str, tmp_path: Path) -> None:
    """As in UTF-8; a part that is included may be in another encoding, too."""
    path, name = write(tmp_path, '<include file="part.xml"/>'), "Fu\N{LATIN SMALL LETTER SHARP S}"
    part = f"<mujocoinclude>{ARM.format(geom='')}</mujocoinclude>".replace('"j"', f'"{name}"')
    (tmp_path / "part.xml").write_bytes(part.encode(encoding))
    found = unassembled(read_mjcf(path, tmp_path)).mechanism.joints
    (tmp_path / "part.xml").write_bytes(part.encode())
    plain = unassembled(read_mjcf(path, tmp_path)).mechanism.joints
    assert list(found) == [name]
    assert found[name].lower == plain[name].lower == np.radians(-60)


def test_ranges_that_look_like_radians_are_told(tmp_path: Path) -> None:
    """MJCF's angles are degrees unless its compiler is told otherwise."""
    arm = ARM.format(geom="").replace("-60 80", "{}")
    told = "ranges of a few degrees that look like radians (j); if radians are meant"
    for range, settings, is_told in (
        ("-1.57 1.57", "", True),
        ("-0.5 3.1416", "", True),
        ("-1.57 1.57", '<compiler angle="radian"/>', False),
        ("-60 90", "", False),
    ):
        spec = read_mjcf(write(tmp_path, arm.format(range), settings=settings), tmp_path)
        assert said(spec, told) == is_told


def test_small_ranges_of_all_joints_are_told(tmp_path: Path) -> None:
    """A hand whose fingers bend by 0 to 1.51 and 0 to 2 is one in radians, with no round end."""
    finger = """<body><joint name="{0}1" range="0 1.51"/><geom size="0.1"/><body pos="0.3 0 0">
<joint name="{0}2" range="0 {1}"/><geom size="0.1"/></body></body>"""
    told = "ranges of a few degrees that look like radians (a1, a2, b1, b2)"
    for end, is_told in (("2", True), ("2.2", True), ("6.3", False), ("90", False)):
        hand = finger.format("a", end) + finger.format("b", "2")
        spec = read_mjcf(write(tmp_path, hand, settings="<compiler autolimits='true'/>"), tmp_path)
        assert said(spec, told) == is_told


def test_a_missing_mesh_costs_a_shape_but_never_a_mass(tmp_path: Path) -> None:
    asset = '<asset><mesh name="m" file="gone.stl"/></asset>'
    mesh = '<geom type="mesh" mesh="m"/>'
    spec = read_mjcf(write(tmp_path, ARM.format(geom=mesh), asset), tmp_path)
    assert said(spec, "shapes of arm are left out")
    pointer = tmp_path / "gone.stl"
    pointer.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n")
    spec = read_mjcf(write(tmp_path, ARM.format(geom=mesh), asset), tmp_path)
    assert said(spec, "shapes of arm are left out")
    assert said(spec, "mesh 'gone.stl' is only a pointer of Git LFS (git lfs pull fetches")
    pointer.unlink()
    bare = ARM.format(geom=mesh).replace("<inertial", "<!--").replace('0.02"/>', "-->")
    tip = bare.replace("</body>", f'<body name="tip"><joint name="b"/>{mesh}</body></body>')
    file = re.escape(str(tmp_path / "gone.stl"))
    where = f"bodies arm, tip is that of meshes that are not there: {file}; put them there, or give"
    with pytest.raises(ModelError, match=f"{where} each body an <inertial>$"):
        read_mjcf(write(tmp_path, tip, asset), tmp_path)
    rule = '<compiler inertiafromgeom="true"/>'
    with pytest.raises(ModelError, match='the body an <inertial> and the compiler .*="auto"$'):
        read_mjcf(write(tmp_path, ARM.format(geom=mesh), asset + rule), tmp_path)


@pytest.mark.parametrize(
    "given",
    [
        'file="box.stl" scale="0.5 0.5 0.5"',
        'file="box.stl" refpos="0.1 -0.2 0.3" refquat="0.8 0.6 0 0"',
        'vertex="0 0 0  1 0 0  0 0.5 0  0 0 2"',  # in no file
    ],
)
def test_a_mesh_stands_where_its_file_has_it(given: str, tmp_path: Path) -> None:
    """MuJoCo moves vertices to their centre and turns them; URDF does not."""
    box = trimesh.creation.box((1.0, 0.4, 0.2))
    box.apply_transform(trimesh.transformations.rotation_matrix(0.7, (1, 2, 3)))
    box.apply_translation((0.3, -0.2, 0.5))
    box.export(tmp_path / "box.stl")
    geom = '<geom type="mesh" mesh="m" pos="0.1 0.2 0.3" euler="10 20 30" mass="0"/>'
    path = write(tmp_path, ARM.format(geom=geom), f'<asset><mesh name="m" {given}/></asset>')
    (shape,) = scene_of(read_mjcf(path, tmp_path)).robots[0].links["arm"].collisions
    mesh: Any = trimesh.load(shape.mesh, force="mesh")
    vertices = np.array(mesh.vertices) * shape.size @ shape.place.R.T + shape.place.p
    model = mujoco.MjModel.from_xml_path(str(path))
    R = Rotation.from_quat(np.roll(model.geom_quat[0], -1)).as_matrix()
    theirs = model.mesh_vert @ R.T + model.geom_pos[0]
    distances = np.linalg.norm(vertices[:, None] - theirs[None], axis=2).min(axis=1)
    assert len(mesh.vertices) >= 4
    assert distances.max() < 1e-6  # vertices are of single precision, in the file and in MuJoCo


SECOND = '<body><joint axis="0 1 0"/><geom size="0.1"/></body>'


def test_ropes_of_before_mujoco_4_are_told_with_a_way_out(tmp_path: Path) -> None:
    """What a feature was lost with is said, rather than that the file is wrong."""
    rope = '<composite type="cable" count="5 1 1" size="1"><geom size="0.01"/></composite>'
    path = write(tmp_path, rope)
    mujoco = pytest.importorskip("mujoco")
    if mujoco.mj_versionString().startswith("3."):
        pytest.skip("this MuJoCo knows <composite>")
    with pytest.raises(ModelError, match="no <composite> any more; .*mj_saveLastXML"):
        read_mjcf(path, tmp_path)


def test_a_connect_with_a_relpose_is_told_what_mujoco_has_instead(tmp_path: Path) -> None:
    """Generated files have it; MuJoCo refuses them, and says no more than that."""
    pytest.importorskip("mujoco")
    bodies = f'<body name="a">{SECOND}</body><body name="b">{SECOND}</body>'
    loop = '<connect body1="a" body2="b" anchor="0 0 1" relpose="0 0 0 1 0 0 0"/>'
    path = write(tmp_path, bodies, f"<equality>{loop}</equality>")
    with pytest.raises(ModelError, match="MuJoCo cannot read .*only <weld> has relpose; .*site1"):
        read_mjcf(path, tmp_path)


def test_parts_are_looked_for_from_the_file_and_then_from_what_includes_them(
    tmp_path: Path,
) -> None:
    """MuJoCo does, and parts of robots count on it: of both places the file's own comes first."""
    parts, body = tmp_path / "parts", "<mujocoinclude><worldbody>{}</worldbody></mujocoinclude>"
    parts.mkdir()
    (parts / "a.xml").write_text('<mujocoinclude><include file="b.xml"/></mujocoinclude>')
    path = write(tmp_path, "", '<include file="parts/a.xml"/>')
    with pytest.raises(
        ModelError, match=r"a\.xml includes 'b\.xml', but there is no file .*b\.xml"
    ):
        read_mjcf(path, tmp_path)
    for folder, more in ((parts, ARM.format(geom="")), (tmp_path, ARM.format(geom="") + SECOND)):
        (folder / "b.xml").write_text(body.format(more))
        for settings in ("", '<option apirate="100"/>'):  # the latter is read once more, in one
            path = write(tmp_path, "", '<include file="parts/a.xml"/>', settings)
            expected = 1 if folder == parts else 2
            assert unassembled(read_mjcf(path, tmp_path)).mechanism.nv == expected


def test_a_file_may_end_in_mjcf(tmp_path: Path) -> None:
    """MuJoCo reads what ends in .xml alone; ours finds parts beside the file all the same."""
    (tmp_path / "part.xml").write_text(f"<mujoco>{ARM.format(geom='')}</mujoco>")
    path = write(tmp_path, '<include file="part.xml"/>')
    known = read_model(path)
    spec = read_model(path.rename(path.with_suffix(".mjcf")))
    np.testing.assert_array_equal(unassembled(spec).terms().M, unassembled(known).terms().M)


def test_includes_stay_inside_the_folder(tmp_path: Path) -> None:
    inside, outside = tmp_path / "robot" / "part.xml", tmp_path / "secret.xml"
    inside.parent.mkdir()
    for file in (inside, outside):
        file.write_text(f"<mujoco><worldbody>{ARM.format(geom='')}</worldbody></mujoco>")
    path = write(inside.parent, "", '<include file="part.xml"/>')
    assert unassembled(read_mjcf(path, tmp_path)).mechanism.nv == 1
    path = write(inside.parent, "", '<include file="../secret.xml"/>')
    with pytest.raises(ModelError, match=r"outside .*robot; name a folder .*inside=FOLDER"):
        read_mjcf(path, tmp_path)
    with pytest.raises(ModelError, match="inside='nowhere' is no folder"):
        read_model(path, inside="nowhere")
    assert unassembled(read_model(path, inside=tmp_path)).mechanism.nv == 1


def test_robots_beside_each_other_keep_their_names(tmp_path: Path) -> None:
    """Names before a slash, as MuJoCo's attaching and our writer have them, are robots'."""
    craft = (
        '<body name="{0}/hull" pos="{1} 0 1"><freejoint/><geom size="0.1"/><body name="{0}/arm">'
        '<joint name="{0}/hinge" axis="0 1 0"/><geom size="0.05" pos="0.1 0 0"/></body></body>'
    )
    both = craft.format("left", 0) + craft.format("right", 1)
    more = '<equality><joint joint1="left/hinge" joint2="right/hinge"/></equality>'
    spec = read_mjcf(write(tmp_path, both, more), tmp_path)
    names = ["left/base", "left/hinge", "right/base", "right/hinge"]
    system = unassembled(spec)
    assert list(system.mechanism.joints) == names and "left/hull" in system.mechanism.links
    again = read_model(*write_mjcf(spec, tmp_path / "written").files)
    assert list(unassembled(again).mechanism.joints) == names
    (tied,) = again.constraints
    assert isinstance(tied, bb.Coupling)
    assert tied.coefficients == {"left/hinge": 1.0, "right/hinge": -1.0}
    assert not said(again, "are called otherwise")
    one = read_mjcf(write(tmp_path, craft.format("left", 0)), tmp_path)
    assert said(one, "are called otherwise: left_hull, left_arm, left_hinge")


LOST = {
    '<equality><connect active="false" body1="arm" anchor="0 0 0"/></equality>': "not active",
    '<equality><joint joint1="j" polycoef="0 0 1 0 0"/></equality>': "",
    "<worldbody><light/><camera/></worldbody>": "left out: 1 camera, 1 light",
    '<option density="1.2"/>': "forces of air or water",
    '<option><flag gravity="disable"/></option>': "gravity is switched off",
}


@pytest.mark.parametrize("more", LOST)
def test_what_is_lost_is_said(more: str, tmp_path: Path) -> None:
    spec = read_mjcf(write(tmp_path, ARM.format(geom=""), more), tmp_path)
    assert said(spec, LOST[more])
    assert not spec.constraints or "polycoef" in more


def test_a_polynomial_counts_from_where_its_joints_start(tmp_path: Path) -> None:
    """q1 - q1_0 by powers of q2 - q2_0, written out in powers of q2."""
    two = ARM.format(geom="") + ARM.format(geom="").replace('"arm"', '"two"').replace('"j"', '"k"')
    two = two.replace('name="k"', 'name="k" ref="20"').replace('name="j"', 'name="j" ref="-30"')
    more = '<equality><joint name="p" joint1="j" joint2="k" polycoef="0.1 1 2 -3 4"/></equality>'
    (gear,) = read_mjcf(write(tmp_path, two, more), tmp_path).constraints
    assert isinstance(gear, bb.Coupling)
    for x in (-0.7, 0.0, 0.3):
        y = x - np.radians(20)
        follows = np.radians(-30) + 0.1 + y + 2 * y**2 - 3 * y**3 + 4 * y**4
        assert gear.value({"j": follows, "k": x}) == pytest.approx(gear.offset, abs=1e-14)


def test_a_polynomial_of_tendons_is_left_out(tmp_path: Path) -> None:
    two = ARM.format(geom="") + ARM.format(geom="").replace('"arm"', '"two"').replace('"j"', '"k"')
    more = (
        '<tendon><fixed name="a"><joint joint="j" coef="1"/></fixed><fixed name="b">'
        '<joint joint="k" coef="1"/></fixed></tendon><equality>'
        '<tendon name="p" tendon1="a" tendon2="b" polycoef="0 1 2 0 0"/></equality>'
    )
    spec = read_mjcf(write(tmp_path, two, more), tmp_path)
    assert not spec.constraints and said(spec, "'p' of tendons is a polynomial (0 1 2 0 0)")


def test_files_that_mujoco_refuses_are_one_error(tmp_path: Path) -> None:
    path = write(tmp_path, '<body name="b"><joint/><geom type="bendy" size="1"/></body>')
    with pytest.raises(ModelError, match="MuJoCo cannot read"):
        read_mjcf(path, tmp_path)
    light = '<body name="b"><joint/></body>'
    with pytest.raises(ModelError, match="mass and inertia of moving bodies must be larger"):
        read_mjcf(write(tmp_path, light), tmp_path)


def test_a_leg_with_leaf_springs_follows_mujocos_runge_kutta_steps() -> None:
    """Half a second of motors' inertias, dampers, springs and two loops, let go at its start.

    MuJoCo's constraints are soft: with a time constant of 1 ms they give way by the square of it,
    1e-6, times accelerations of some rad/s² that change meanwhile.
    """
    path, end = find("leaf_leg"), 0.5
    with bb.load(read_model(path), limits=False, integrator="dop853", dt=end) as loaded:
        start = loaded.system.q
        loaded.system.rollout(1)
        assert loaded.system.evaluate().largest("kept_metres") <= 1e-12
        reached, joints = loaded.system.q, loaded.system.mechanism.joints
    model = stiff_model(path)
    data = mujoco.MjData(model)
    for name, joint in joints.items():
        at, q = model.joint(name).qposadr[0], start[joint.q]
        data.qpos[at : at + len(q)] = np.roll(q, 1) if joint.kind == "spherical" else q
    mujoco.mj_step(model, data, round(end / model.opt.timestep))
    turned = []
    for name, joint in joints.items():
        if joint.kind == "revolute":
            ours, theirs = reached[joint.q.start], data.qpos[model.joint(name).qposadr[0]]
            assert ours == pytest.approx(theirs, abs=1e-6)
            turned.append(abs(ours - start[joint.q.start]))
    assert max(turned) > 1.0


CONTRARY = [
    (
        '<joint joint1="a" joint2="b"/><joint joint1="b" joint2="a" polycoef="0.3 1 0 0 0"/>',
        ("a_coupling", "b_coupling"),
    ),
    (
        '<connect body1="tip" anchor="0.4 0 0"/><weld body1="tip" relpose="0 0 0.5 1 0 0 0"/>',
        ("tip_to_world", "tip_to_world_2"),
    ),
]


@pytest.mark.parametrize(("equalities", "names"), CONTRARY)
def test_equalities_that_contradict_each_other_are_told_together(tmp_path, equalities, names):
    """MuJoCo's are soft, so it meets them half way; here they are an error that says which."""
    link = '<body name="{}" pos="0.5 0 0"><joint name="{}" axis="0 1 0"/><geom size="0.1"/>'
    bodies = link.format("one", "a") + link.format("two", "b") + link.format("tip", "c")
    path = write(tmp_path, f"{bodies}</body></body></body>", f"<equality>{equalities}</equality>")
    both = "', '".join(names)
    message = f"'{both}' contradict each other, since without any one of them"
    with pytest.raises(AssemblyError, match=message):
        bb.load(read_model(path), "new")


STANDING = """<mujoco><worldbody>
  <body name="crank" pos="0 0 1"><joint name="turn" type="hinge" axis="0 1 0"/>
    <geom type="capsule" fromto="0 0 0 0 0 0.4" size="0.02" mass="0.5"/></body>
  <body name="yoke" pos="0 0 1.4"><joint name="slide" type="slide" axis="0 0 1"/>
    <geom type="box" size="0.1 0.1 0.1" mass="2"/></body>
</worldbody><equality>{}</equality></mujoco>"""


@pytest.mark.parametrize("contacts", [False, True])
def test_equalities_that_leave_no_freedom_let_it_stand(tmp_path, contacts):
    """As in MuJoCo: the weld of a crank's pin to a slider bears the slider's weight, 2 kg."""
    file = tmp_path / "yoke.xml"
    file.write_text(STANDING.format('<weld name="pin" body1="crank" body2="yoke"/>'))
    with pytest.warns(BulletBridgeWarning, match="leave no freedom"):
        model = bb.load(file, "new", contacts=contacts)
    with model:
        start = model.system.q.copy()
        model.system.run(0.5)
        assert model.system.dof == 0
        np.testing.assert_allclose(model.system.q, start, rtol=0.0, atol=1e-14)
        if not contacts:  # of which the last step's impulses would have to be told apart
            force = model.system.reactions()["pin"].force
            np.testing.assert_allclose(np.abs(force), [0.0, 0.0, 2.0 * 9.81], rtol=0.0, atol=1e-9)


@pytest.mark.filterwarnings("ignore::bulletbridge.errors.BulletBridgeWarning")
def test_what_stands_still_does_so_as_a_loops_file_and_by_hand(tmp_path):
    """The file says so; a file that does not is refused with the word for it."""
    file = tmp_path / "yoke.xml"
    file.write_text(STANDING.format('<weld name="pin" body1="crank" body2="yoke"/>'))
    written = convert(file, tmp_path / "same").files
    loops = next(each for each in written if each.name.endswith(".loops.yaml"))
    with bb.load(loops, "new") as model:
        assert model.system.dof == 0
    text = loops.read_text()
    assert "allow_structure: true" in text
    loops.write_text(text.replace("allow_structure: true", "allow_structure: false"))
    with pytest.raises(OverconstrainedError, match="allow_structure"):
        bb.load(loops, "new")
    with bb.load(loops, "new", allow_structure=True) as model:
        assert model.system.dof == 0


def test_equalities_that_leave_a_freedom_allow_no_structure(tmp_path):
    """A pin of the crank's foot to the slider takes one of two freedoms, and none is no error."""
    file = tmp_path / "yoke.xml"
    file.write_text(STANDING.format('<joint joint1="turn" joint2="slide"/>'))
    assert not read_model(file).allow_structure


def test_lights_of_images_are_left_out(tmp_path: Path) -> None:
    """They name textures, which are left out, too; MuJoCo refused the light then."""
    text = """<mujoco><asset><texture name="sky" type="cube" builtin="gradient" rgb1="1 1 1"
    rgb2=".5 .6 .7" width="8" height="8"/></asset><worldbody><light type="image" texture="sky"/>
    <body><joint name="hinge"/><geom size=".1" pos=".2 0 0"/></body></worldbody></mujoco>"""
    (tmp_path / "m.xml").write_text(text)
    assert list(unassembled(read_model(tmp_path / "m.xml")).mechanism.joints) == ["hinge"]
