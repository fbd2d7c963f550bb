"""Drake's model directives: robots that they put together move as one file that says the same."""

import re
from dataclasses import replace
from math import pi
from pathlib import Path

import numpy as np
import pytest
from support.mujoco_models import apart, random_state, terms_at, unassembled

from bulletbridge.constraints.joints import Coupling
from bulletbridge.errors import BulletBridgeError
from bulletbridge.models.formats.recognise import read_model
from bulletbridge.models.load import load

ROUND_OFF = 1e-12
MASSES = """<inertial><origin xyz="0.1 0.02 -0.03"/><mass value="{}"/><inertia ixx="0.02" iyy="0.03"
izz="0.025" ixy="0.002" ixz="0" iyz="0.001"/></inertial>"""
ARM = f"""<link name="base"/><link name="one">{MASSES.format(2)}</link>
<link name="two">{MASSES.format(1)}</link>
<joint name="j1" type="revolute"><parent link="base"/><child link="one"/>
<origin xyz="0 0 0.3" rpy="0.1 0 0"/><axis xyz="0 0 1"/>
<limit lower="-2" upper="2" effort="1" velocity="1"/></joint>
<joint name="j2" type="revolute"><parent link="one"/><child link="two"/>
<origin xyz="0.3 0 0" rpy="0 0.2 0"/><axis xyz="0 1 0"/>
<limit lower="-2" upper="2" effort="1" velocity="1"/><dynamics damping="0.1"/></joint>"""
FINGER = """<link name="{0}">{2}</link><joint name="{1}" type="prismatic"><parent link="palm"/>
<child link="{0}"/><axis xyz="0 0 1"/><limit lower="0" upper="0.1" effort="1" velocity="1"/>
{3}</joint>"""
HAND = (
    f'<link name="palm">{MASSES.format(0.5)}</link>'
    + FINGER.format("left", "s1", MASSES.format(0.2), "")
    + FINGER.format("right", "s2", MASSES.format(0.2), '<mimic joint="s1" multiplier="0.5"/>')
    + '<frame name="mount" link="palm" xyz="0 0.1 0" rpy="0 0 0.4"/>'
)
SCENE = """directives:
- add_model:
    name: arm
    file: package://robots/arm.urdf
    default_joint_positions: {j1: [0.5], j2: 0.7}
- add_frame: {name: stand, X_PF: {base_frame: world, translation: [0, 0.2, 0]}}
- add_weld:
    parent: stand
    child: arm::base
    X_PC: {rotation: !Rpy {deg: [0, 90, 0]}}
- add_model: {name: hand, file: file://hand.urdf}
- add_weld:
    parent: arm::two
    child: hand::mount
    X_PC: {translation: [0.2, 0, 0.1], rotation: !AngleAxis {angle_deg: 60, axis: [0, 0, 2]}}
"""
"""The palm is turned by 60 degrees less the 0.4 rad of its mount, which is at y = 0.1 m of it."""
ANGLE = pi / 3 - 0.4
PALM = (0.2 + 0.1 * np.sin(ANGLE), -0.1 * np.cos(ANGLE), 0.1)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "robots").mkdir()
    (tmp_path / "robots/arm.urdf").write_text(f'<robot name="any">{ARM}</robot>')
    (tmp_path / "hand.urdf").write_text(f'<robot name="any">{HAND}</robot>')
    (tmp_path / "robots/arm.dmd.yaml").write_text(
        "directives: [add_model: {name: arm, file: arm.urdf}]"
    )
    (tmp_path / "scene.dmd.yaml").write_text(SCENE)
    return tmp_path


def test_welded_robots_are_the_one_that_a_single_file_says(folder):
    """M, h and start are those of a URDF with fixed joints in the place of the welds."""
    x, y, z = PALM
    whole = folder / "whole.urdf"
    whole.write_text(
        f"""<robot name="whole"><link name="world"/>{ARM}{HAND}
<joint name="a" type="fixed"><parent link="world"/><child link="base"/>
<origin xyz="0 0.2 0" rpy="0 {pi / 2} 0"/></joint>
<joint name="b" type="fixed"><parent link="two"/><child link="palm"/>
<origin xyz="{x} {y} {z}" rpy="0 0 {ANGLE}"/></joint></robot>"""
    )
    spec, one = read_model(folder / "scene.dmd.yaml"), read_model(whole)
    (coupling,) = spec.constraints
    assert isinstance(coupling, Coupling)
    assert coupling.coefficients == {"hand::s2": 1.0, "hand::s1": -0.5}
    ours, theirs = unassembled(spec), unassembled(one)
    names = ["arm::j1", "arm::j2", "hand::s1", "hand::s2"]
    assert list(ours.mechanism.joints) == names
    assert list(theirs.mechanism.joints) == [name.partition("::")[2] for name in names]
    q, v = random_state(theirs, np.random.default_rng(0))
    for mine, expected in zip(terms_at(ours, q, v)[:2], terms_at(theirs, q, v)[:2], strict=True):
        assert apart(mine, expected) < ROUND_OFF
    with load(folder / "scene.dmd.yaml", "new") as model:
        assert model.system.q == pytest.approx([0.5, 0.7, 0.0, 0.0], abs=ROUND_OFF)
        assert model.system.dof == 3


@pytest.mark.parametrize("root", ["a weld", "the world"])
def test_robots_apart_have_names_of_their_own_and_stand_where_they_are_put(folder, root):
    text = """directives:
- add_directives: {file: robots/arm.dmd.yaml, model_namespace: right}
- add_model:
    name: hand
    file: hand.urdf
    default_free_body_pose:
      palm: {base_frame: right::arm::one, translation: [0, 0, 1]}
"""
    if root == "a weld":
        text += "- add_weld: {parent: world, child: right::arm::base}\n"
    else:
        world = '<link name="world"/><joint name="w" type="fixed"><parent link="world"/>'
        arm = ARM.replace('name="base"/>', f'name="base">{MASSES.format(1)}</link>')
        whole = f'<robot name="any">{world}<child link="base"/></joint>{arm}</robot>'
        (folder / "robots/arm.urdf").write_text(whole)
    (folder / "two.yaml").write_text(text)  # known by its key
    with load(folder / "two.yaml", "new") as model:
        joints = list(model.system.mechanism.joints)
        assert joints[:2] == ["right/arm::j1", "right/arm::j2"]
        assert joints[2:] == ["hand/base", "hand/s1", "hand/s2"]
        R, p = model.system.link_pose("hand/palm")
        on, at = model.system.link_pose("right/arm::one")
        assert apart(p, at + on @ (0.0, 0.0, 1.0)) < ROUND_OFF and apart(R, on) < ROUND_OFF


def test_frames_of_an_sdf_are_where_its_file_has_them(folder):
    """The frame meets the link that it is welded to, although links have others at their joints."""
    (folder / "f.sdf").write_text(
        """<sdf version="1.7"><model name="m"><pose>5 0 0 0 0 0</pose>
<link name="a"><inertial><mass>1</mass></inertial></link>
<link name="b"><pose>0.1 0.2 0.3 0 0 0</pose><inertial><mass>1</mass></inertial></link>
<frame name="f" attached_to="b"><pose>0 0 0.4 0 0 0</pose></frame>
<joint name="j" type="revolute"><pose>0 0 -0.1 0.3 0 0</pose><parent>a</parent><child>b</child>
<axis><xyz>0 0 1</xyz></axis></joint></model></sdf>"""
    )
    (folder / "f.dmd.yaml").write_text(
        """directives:
- add_model: {name: m, file: f.sdf}
- add_weld: {parent: world, child: m::f, X_PC: {translation: [1, 2, 3]}}
"""
    )
    spec = replace(read_model(folder / "f.dmd.yaml"), notes=())
    with load(spec, "new") as model:
        system = model.system
        com_a = np.array([1.0, 2.0, 3.0]) - (0.1, 0.2, 0.7)  # a's centre is its origin
        at = system.mechanism.joints["m::j"]
        system.set_state([0.0], [1.0])
        # a turns about the joint: kinetic energy by its distance from that axis, tensors of 1
        axis = np.array([0.0, -np.sin(0.3), np.cos(0.3)])
        arm = com_a - ((1.0, 2.0, 3.0) - np.array([0.0, 0.0, 0.5]))
        way = np.cross(axis, arm)
        assert system.evaluate().kinetic == pytest.approx(0.5 * (1.0 + way @ way), abs=ROUND_OFF)
        assert spec.bodies[0].fixed_base and at.kind == "revolute"


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("file://hand", "file://none", "'file://none.urdf' is not there"),
        ("child: arm::base", "child: arm::bas", "'arm::bas' is no link or frame; there are world"),
        ("{j1: [0.5]", "{j3: [0.5]", "'j3' is no hinge or slider of the model"),
        ("add_weld", "add_wedl", "unknown key 'add_wedl'; did you mean 'add_weld'?"),
        ("name: hand", "name: arm", "a model is called 'arm' already"),
        ("!Rpy {deg: [0, 90, 0]}", "!Uniform {}", "a rotation is !Rpy with deg"),
        ("base_frame: world, ", "", "key 'base_frame' is missing"),
        ("arm::two", "hand::palm", "parent and child are both on 'hand::palm'"),
        (
            "name: hand, file: file://hand.urdf",
            "name: hand, file: scene.dmd.yaml",
            "name it by add_directives",
        ),
    ],
)
def test_mistakes_are_told_where_they_stand(folder, old, new, told):
    assert old in SCENE
    (folder / "scene.dmd.yaml").write_text(SCENE.replace(old, new))
    with pytest.raises(BulletBridgeError, match=re.escape(told)):
        read_model(folder / "scene.dmd.yaml")
