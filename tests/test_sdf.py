"""SDF's conventions: one robot written in many ways, each with the same equations of motion."""

import re
import tempfile
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support.mujoco_models import apart, random_state, terms_at, unassembled
from support.ranks import rank

import bulletbridge as bb
from bulletbridge.constraints.joints import JointModel
from bulletbridge.errors import ModelError
from bulletbridge.mechanism.build import Load, empty_mechanism, with_joint
from bulletbridge.mechanism.frames import frame_with_z, matrix_rpy
from bulletbridge.models.formats.recognise import read_model
from bulletbridge.models.formats.sdf import read_sdf
from bulletbridge.models.formats.sdf_writer import write_sdf
from bulletbridge.models.formats.urdf_text import principal
from bulletbridge.models.model_spec import ModelSpec
from bulletbridge.numerics.records import Array

ROUND_OFF = 1e-12
MASSES = """<inertial><pose>0.1 0.2 -0.1 0.3 0.2 0.1</pose><mass>2</mass><inertia><ixx>0.1</ixx>
<iyy>0.2</iyy><izz>0.15</izz><ixy>0.01</ixy></inertia></inertial>"""
AXIS = (0.6, 0.0, 0.8)
TURN = (0.4, -0.3, 1.1)
"""Axis of the second joint in its own frame, and roll, pitch, yaw of the second link."""


def joint(axis: str, more: str = "", kind: str = "revolute") -> str:
    return f"""<joint name="j2" type="{kind}"><parent>one</parent><child>two</child>{more}
<axis>{axis}</axis></joint>"""


def arm(second: str, version: str = "1.9", place: str = "") -> str:
    """Two links in a row; the second joint as given."""
    pose = place or f"<pose>1 2 3 {TURN[0]} {TURN[1]} {TURN[2]}</pose>"
    return f"""<sdf version="{version}"><model name="arm">
<link name="one"><pose>0.5 0 0 0 0 0</pose>{MASSES}</link><link name="two">{pose}{MASSES}</link>
<joint name="j1" type="revolute"><parent>world</parent><child>one</child>
<axis><xyz>0 0 1</xyz></axis></joint>{second}</model></sdf>"""


def text(numbers: object) -> str:
    return " ".join(repr(float(x)) for x in np.ravel(numbers))


R = Rotation.from_euler("xyz", TURN).as_matrix()
IN_MODEL = text(R @ AXIS)
OWN = f"<xyz>{text(AXIS)}</xyz>"
QUAT = text(Rotation.from_euler("xyz", TURN).as_quat())
DEGREES = text(np.degrees(TURN))
ALONG = text(np.array([0.5, 2, 3]) + R @ AXIS)
FROM_F = text(Rotation.from_euler("z", -1.0).apply((0.4, 1.8, 2.7)))
NESTED = f"""<sdf version="1.9"><model name="arm"><link name="one"><pose>0.5 0 0 0 0 0</pose>
{MASSES}</link><model name="inner" placement_frame="spot"><pose>1 2 3 {text(TURN)}</pose>
<link name="two"><pose>0.3 0.2 0.1 0.5 0.6 0.7</pose>{MASSES}</link>
<frame name="spot" attached_to="two"/></model>
<joint name="j1" type="revolute"><parent>world</parent><child>one</child>
<axis><xyz>0 0 1</xyz></axis></joint>
<joint name="j2" type="revolute"><parent>one</parent><child>inner::spot</child>
<axis>{OWN}</axis></joint></model></sdf>"""
WAYS = {
    "in the joint's frame": arm(joint(OWN)),
    "in the model's before 1.5": arm(joint(f"<xyz>{IN_MODEL}</xyz>"), "1.4"),
    "in the model's by 1.5": arm(
        joint(f"<xyz>{IN_MODEL}</xyz><use_parent_model_frame>1</use_parent_model_frame>"), "1.5"
    ),
    "in its own by 1.6, said twice": arm(
        joint(
            f"{OWN}<use_parent_model_frame>0</use_parent_model_frame>"
            "<use_parent_model_frame>1</use_parent_model_frame>"
        ),
        "1.6",
    ),
    "expressed in": arm(joint(f'<xyz expressed_in="one">{IN_MODEL}</xyz>')),
    "not a unit axis": arm(joint(f"<xyz>{text(3.0 * np.array(AXIS))}</xyz>")),
    "joint of a name": arm(joint(OWN).replace("j2", "two"), "1.6"),
    "placed from a link": arm(
        joint(OWN), place=f'<pose relative_to="one">0.5 2 3 {text(TURN)}</pose>'
    ),
    "placed from a frame": arm(
        joint(OWN) + '<frame name="f" attached_to="one"><pose>0.1 0.2 0.3 0 0 1</pose></frame>'
        f'<frame name="g"><pose relative_to="f">{FROM_F} 0 0 -1</pose></frame>',
        place=f'<pose relative_to="g">0 0 0 {text(TURN)}</pose>',
    ),
    "quaternion": arm(joint(OWN), place=f'<pose rotation_format="quat_xyzw">1 2 3 {QUAT}</pose>'),
    "degrees": arm(joint(OWN), place=f'<pose degrees="true">1 2 3 {DEGREES}</pose>'),
    "upside down": arm(
        f"""<joint name="j2" type="revolute"><pose relative_to="two"/><parent>two</parent>
<child>one</child><axis><xyz>{text(-np.array(AXIS))}</xyz></axis></joint>"""
    ),
    "nested": NESTED,
    "by frames of Drake's, drawn elsewhere": arm(
        joint(
            OWN.replace("<xyz", '<xyz expressed_in="B"'),
            "<drake:parent_frame>A</drake:parent_frame><drake:child_frame>B</drake:child_frame>",
        )
        + f'<frame name="A" attached_to="one"><pose>{ALONG} {text(TURN)}</pose></frame>'
        f'<frame name="B" attached_to="two"><pose>{text(AXIS)} 0 0 0</pose></frame>',
        place="<pose>9 8 7 0.1 0 0</pose>",
    ),
}


def read(sdf: str, folder: Path) -> ModelSpec:
    """What is read, its URDF in a folder of its own, which another one's would replace."""
    path = folder / "robot.sdf"
    path.write_text(sdf)
    return read_sdf(path, Path(tempfile.mkdtemp(dir=folder)))


def reference() -> bb.System:
    """The same arm put together in Python."""
    Ri = Rotation.from_euler("xyz", (0.3, 0.2, 0.1)).as_matrix()
    J = Ri @ np.array([[0.1, 0.01, 0], [0.01, 0.2, 0], [0, 0, 0.15]]) @ Ri.T
    com = np.array([0.1, 0.2, -0.1])
    arm = with_joint(
        empty_mechanism((0.0, 0.0, -9.81)), "j1", "revolute", "one", xyz=(0.5, 0.0, 0.0),
        load=Load(2.0, tuple(com), J),
    )  # fmt: skip
    Z = frame_with_z(AXIS)
    x, y, z = Z.T @ com
    arm = with_joint(
        arm, "j2", "revolute", "two", "one", (0.5, 2.0, 3.0), matrix_rpy(R @ Z),
        Load(2.0, (x, y, z), Z.T @ J @ Z),
    )  # fmt: skip
    return bb.System(arm)


@pytest.mark.parametrize("sdf", WAYS.values(), ids=WAYS.keys())
def test_one_arm_in_many_words(sdf: str, tmp_path: Path) -> None:
    system, oracle = unassembled(read(sdf, tmp_path)), reference()
    rng = np.random.default_rng(4)
    for _ in range(2):
        q, v = random_state(system, rng)
        a, b = terms_at(system, q, v), terms_at(oracle, q, v)
        assert apart(a.M, b.M) < ROUND_OFF
        assert apart(a.h, b.h) < ROUND_OFF


def four_bar(pin: str, more: str = "") -> str:
    links = "".join(
        f'<link name="{name}"><pose>{x} 0 {z} 0 0 0</pose>{MASSES}</link>'
        for name, x, z in (("crank", 0, 0), ("coupler", 0, 1), ("rocker", 2, 0))
    )
    pins = "".join(
        f'<joint name="{name}" type="revolute"><parent>{a}</parent><child>{b}</child>'
        "<axis><xyz>0 1 0</xyz></axis></joint>"
        for name, a, b in (
            ("j1", "world", "crank"),
            ("j2", "crank", "coupler"),
            ("j3", "world", "rocker"),
        )
    )
    return f"""<sdf version="1.11"><model name="bars">{links}{pins}
<joint name="pin" type="{pin}"><pose relative_to="rocker">0 0 1 0 0 0</pose><parent>coupler</parent>
<child>rocker</child>{more}</joint></model></sdf>"""


Y = "<axis><xyz>0 1 0</xyz></axis>"
LOOPS = {
    "revolute": (Y, JointModel.REVOLUTE),
    "ball": ("", JointModel.BALL),
    "universal": (Y + "<axis2><xyz>1 0 0</xyz></axis2>", JointModel.UNIVERSAL),
    "revolute2": (Y, JointModel.UNIVERSAL),  # its second axis is z, SDF's own
    "fixed": ("", JointModel.WELD),
    "prismatic": ("<axis><xyz>1 0 0</xyz></axis>", JointModel.PRISMATIC),
    "screw": (Y + "<screw_thread_pitch>0.02</screw_thread_pitch>", JointModel.SCREW),
}


@pytest.mark.parametrize("kind", LOOPS)
def test_joints_that_close_loops_become_them(kind: str, tmp_path: Path) -> None:
    more, model = LOOPS[kind]
    spec = read(four_bar(kind, more), tmp_path)
    (loop,) = spec.constraints
    system = unassembled(spec)
    assert isinstance(loop, bb.LoopJoint)
    assert system.evaluate().largest("metres") < 1e-12
    if kind not in ("fixed", "prismatic"):  # those are rather in the tree than a hinge
        assert loop.name == "pin" and loop.model is model
        assert loop.pitch == (0.02 if kind == "screw" else 0.0)
    if kind == "revolute2":
        assert loop.axis_b == (0.0, 0.0, 1.0)
        assert any("without <axis2>, so 0 0 1, SDF's own: pin" in note for note in spec.notes)
        with pytest.raises(ModelError, match="'pin' has no <axis2>, and 0 0 1, SDF's own, is"):
            read(four_bar(kind, Y.replace("0 1 0", "0 0 1")), tmp_path)


def test_plugins_couple_joints_and_close_loops_as_elements_do(tmp_path: Path) -> None:
    """The plugins that a URDF with them has become in SDF."""
    mimic = "<multiplier>-2</multiplier><offset>0.3</offset>"
    plugin = f"""<plugin name="mimic_j2" filename="libroboticsgroup_gazebo_mimic_joint_plugin.so">
    <joint>j1</joint><mimicJoint>j2</mimicJoint>{mimic}</plugin>"""
    own = f'<mimic joint="j1">{mimic}</mimic>'
    by_plugin = arm(joint(OWN)).replace("</model>", f"{plugin}</model>")
    expected = read(arm(joint(OWN + own)), tmp_path).constraints
    spec = read(by_plugin, tmp_path)
    assert spec.constraints == expected and len(expected) == 1
    hyphens = by_plugin.replace("libroboticsgroup_gazebo_mimic_joint_plugin.so", "gz-mimic-joint")
    assert read(hyphens, tmp_path).constraints == expected
    assert any("'j2' follow as Gazebo's plugin mimic_joint has it" in note for note in spec.notes)
    assert not any("left out: 1 plugin" in note for note in spec.notes)
    both = arm(joint(OWN + own)).replace("</model>", f"{plugin}</model>")
    assert read(both, tmp_path).constraints == expected
    cobs = plugin.replace("joint>", "jointName>").replace("j2", "j1").replace("Name>j1", "Name>j2")
    assert read(by_plugin.replace(plugin, cobs), tmp_path).constraints == expected
    wrong = plugin.replace(">j1<", ">j3<")
    spec = read(arm(joint(OWN)).replace("</model>", f"{wrong}</model>"), tmp_path)
    assert not spec.constraints
    assert any("and 'j2' and is left out: give" in note for note in spec.notes)
    with pytest.raises(ModelError, match='<plugin> has multiplier="two"; give a number'):
        read(by_plugin.replace("-2", "two"), tmp_path)
    closing = """<plugin name="closing" filename="libclosed_loop_plugin.so"><joint>{}</joint>
    <parent>coupler</parent><child>rocker</child><position>0.1 0 -0.2</position></plugin>"""
    ball = """<joint name="{}" type="ball"><parent>coupler</parent><child>rocker</child>
    <pose>0.1 0 -0.2 0 0 0</pose></joint>"""
    bars = re.sub(r'<joint name="pin".*?</joint>', "", four_bar("revolute", Y), flags=re.DOTALL)
    by_plugin, by_joint = (
        read(bars.replace("</model>", f"{more.format('pin')}</model>"), tmp_path)
        for more in (closing, ball)
    )
    assert by_plugin.constraints == by_joint.constraints and len(by_joint.constraints) == 1


def test_plugins_that_fix_links_are_fixed_joints(tmp_path: Path) -> None:
    """Of one model, where that closes a loop, and of two in a world, which float as one."""
    end = f'<link name="end"><pose>2 0 1 0 0 0</pose>{MASSES}</link>'
    bars = four_bar("revolute", Y).replace("<child>rocker</child>" + Y, "<child>end</child>" + Y)
    plugin = """<plugin name="gz::sim::systems::DetachableJoint"><parent_link>{}</parent_link>
    <child_model>{}</child_model><child_link>{}</child_link></plugin>"""
    joint = '<joint name="j" type="fixed"><parent>rocker</parent><child>end</child></joint>'
    by_plugin, by_joint = (
        read(bars.replace("</model>", f"{end}{more}</model>"), tmp_path)
        for more in (plugin.format("rocker", "bars", "end"), joint)
    )
    assert by_plugin.constraints == by_joint.constraints and len(by_joint.constraints) == 1
    one, other = unassembled(by_plugin), unassembled(by_joint)
    q, v = random_state(one, np.random.default_rng(0))
    assert apart(terms_at(one, q, v).M, terms_at(other, q, v).M) < ROUND_OFF
    crates = "".join(
        f'<model name="{name}"><pose>{x} 0 0 0 0 0</pose><link name="box">{MASSES}</link>{more}'
        "</model>"
        for name, x, more in (("a", 0, plugin.format("box", "b", "box")), ("b", 1, ""))
    )
    spec = read(f'<sdf version="1.9"><world name="w">{crates}</world></sdf>', tmp_path)
    both = unassembled(spec)
    assert both.mechanism.nv == 6
    M = terms_at(both, both.q, np.zeros(6)).M
    np.testing.assert_allclose(M[3:, 3:], 4.0 * np.eye(3), atol=ROUND_OFF)  # 2 kg each
    lost = crates.replace(">b</child_model>", ">c</child_model>")
    spec = read(f'<sdf version="1.9"><world name="w">{lost}</world></sdf>', tmp_path)
    assert any("'box' of 'c', which is not in this file" in note for note in spec.notes)


def test_gazebos_thread_is_left_handed_radians_a_metre(tmp_path: Path) -> None:
    old = Y + f"<thread_pitch>{-2.0 * np.pi / 0.02!r}</thread_pitch>"
    (loop,) = read(four_bar("screw", old), tmp_path).constraints
    assert isinstance(loop, bb.LoopJoint)
    assert loop.pitch == pytest.approx(0.02, rel=1e-12)


def test_a_screw_universal_and_ball_in_the_tree_leave_free_what_they_should(tmp_path: Path) -> None:
    for kind, more, freedoms in (
        ("screw", Y + "<screw_thread_pitch>0.02</screw_thread_pitch>", 2),
        ("universal", Y + "<axis2><xyz>1 0 0</xyz></axis2>", 3),
        ("ball", "", 4),
        ("fixed", "", 1),
    ):
        second = joint("", kind=kind).replace("<axis></axis>", more)
        spec = read(arm(second), tmp_path)
        system = unassembled(spec)
        zero = np.zeros(system.mechanism.nq)
        zero[[j.q.stop - 1 for j in system.mechanism.joints.values() if j.kind == "spherical"]] = 1
        J = terms_at(system, zero, np.zeros(system.mechanism.nv)).J
        assert system.mechanism.nv - rank(J) == freedoms


def test_what_mimics_a_screw_follows_its_turn(tmp_path: Path) -> None:
    thread = Y + "<screw_thread_pitch>0.02</screw_thread_pitch>"
    second = joint("", kind="screw").replace("<axis></axis>", thread)
    mimic = '<xyz>0 0 1</xyz><mimic joint="j2"><multiplier>3</multiplier></mimic>'
    sdf = arm(second).replace("<xyz>0 0 1</xyz>", mimic, 1)
    found = {each.name: each for each in read(sdf, tmp_path).constraints}
    follows, screw = found["j1_mimic"], found["j2"]
    assert isinstance(follows, bb.Coupling) and follows.coefficients == {"j1": 1.0, "j2_1": -3.0}
    assert isinstance(screw, bb.Coupling) and screw.coefficients["j2_2"] == 1.0


def test_a_spring_of_a_ball_is_not_lost_without_a_word(tmp_path: Path) -> None:
    """Neither Drake nor Gazebo has one: a generator of ropes wrote it for its own parser."""
    axis = "<axis><dynamics><damping>0.1</damping><spring_stiffness>2</spring_stiffness>"
    second = joint("", kind="ball").replace("<axis></axis>", axis + "</dynamics></axis>")
    assert any("spring" in note and "j2" in note for note in read(arm(second), tmp_path).notes)


def test_a_gearbox_turns_two_links_about_a_third(tmp_path: Path) -> None:
    sdf = four_bar("gearbox", Y.replace("<axis", "<axis") + "<axis2><xyz>0 -1 0</xyz></axis2>"
                   "<gearbox_ratio>2.5</gearbox_ratio><gearbox_reference_body>crank"
                   "</gearbox_reference_body>")  # fmt: skip
    sdf = sdf.replace("<parent>world</parent><child>rocker", "<parent>rocker</parent><child>crank")
    (gear,) = read(sdf, tmp_path).constraints
    # coupler turns about y of the crank by j2; the crank in the rocker by j3, so that the rocker
    # turns about -y of the crank by j3: theta_2 = -2.5 theta_1
    assert isinstance(gear, bb.Coupling)
    assert gear.coefficients == {"j2": 2.5, "j3": 1.0}


def test_a_gearbox_without_an_axis_counts_turns_about_the_parents(tmp_path: Path) -> None:
    """As in Gazebo's test/worlds/chain_and_gearbox_1.world, whose hinges turn about x."""
    sdf = four_bar("gearbox", "<gearbox_ratio>2.5</gearbox_ratio>"
                   "<gearbox_reference_body>crank</gearbox_reference_body>")  # fmt: skip
    sdf = sdf.replace("<parent>world</parent><child>rocker", "<parent>rocker</parent><child>crank")
    (gear,) = read(sdf, tmp_path).constraints
    assert isinstance(gear, bb.Coupling)
    # theta_2 of the rocker in the crank is -q of j3; theta_2 = -2.5 theta_1, both about y
    assert gear.coefficients == {"j2": 2.5, "j3": -1.0}
    with pytest.raises(ModelError, match="'pin': its <axis> is at right angles to that of 'j2'"):
        read(sdf.replace("<gearbox_ratio>", "<axis><xyz>0 0 1</xyz></axis><gearbox_ratio>"),
             tmp_path)  # fmt: skip


@pytest.mark.parametrize(
    ("version", "gravity"), [("1.4", -1.62), ("1.5", -1.62), ("1.6", -9.8), ("1.11", -9.8)]
)
def test_gravity_stood_with_the_physics_engine_before_version_1_6(
    version: str, gravity: float, tmp_path: Path
) -> None:
    usual = arm(joint(OWN), version).partition(">")[2].replace("</sdf>", "")
    physics = "<physics type='ode'><gravity>0 0 -1.62</gravity></physics>"
    world = f'<sdf version="{version}"><world name="moon">{physics}{usual}</world></sdf>'
    spec = read(world, tmp_path)
    assert spec.gravity == (0.0, 0.0, gravity)
    said = "<gravity>0 0 -1.62</gravity> in <physics> counts for nothing here" in spec.notes
    assert said == (gravity == -9.8)


def test_a_kinematic_base_stands_still(tmp_path: Path) -> None:
    """No force moves such a link; one that hangs on a joint is told to be moved all the same."""
    fixed = arm(joint(OWN)).replace('"j1" type="revolute"', '"j1" type="fixed"')
    free = re.sub('<joint name="j1".*?</joint>', "", fixed, flags=re.DOTALL)
    held = free.replace('<link name="one">', '<link name="one"><kinematic>true</kinematic>')
    spec = read(held, tmp_path)
    assert "link 'one' is kinematic, so it stands still" in spec.notes
    system, reference = unassembled(spec), unassembled(read(fixed, tmp_path))
    assert list(system.mechanism.joints) == ["j2"]
    q, v = np.array([-0.5]), np.array([2.0])
    ours, theirs = terms_at(system, q, v), terms_at(reference, q, v)
    assert apart(ours.M, theirs.M) < ROUND_OFF
    assert apart(ours.h, theirs.h) < ROUND_OFF
    moved = free.replace('<link name="two">', '<link name="two"><kinematic>1</kinematic>')
    assert "link 'two': <kinematic>1</kinematic> is left out" in read(moved, tmp_path).notes


def test_names_of_the_one_model_of_a_world_are_whole(tmp_path: Path) -> None:
    """A world as Gazebo's own: the sun, the ground, a table that stands, and what is simulated."""
    (tmp_path / "model.sdf").write_text(arm(joint(OWN)))
    table = '<model name="table"><static>1</static><link name="top"/></model>'
    includes = "".join(
        f"<include><uri>{uri}</uri>{more}</include>"
        for uri, more in (
            ("model://sun", ""),
            ("model://ground_plane", ""),
            ("model.sdf", "<name>mine</name><pose>0 0 1 0 0 0.5</pose>"),
        )
    )
    spec = read(f'<sdf version="1.9"><world name="w">{includes}{table}</world></sdf>', tmp_path)
    system = unassembled(spec)
    assert list(system.mechanism.joints) == ["j1", "j2"]
    q, v = np.array([0.3, -0.5]), np.array([1.0, 2.0])
    assert apart(terms_at(system, q, v).M, terms_at(reference(), q, v).M) < ROUND_OFF
    expected = 0.5 * np.cos(0.5), 0.5 * np.sin(0.5), 1.0
    assert np.allclose(system.link_pose("one")[1], expected, atol=ROUND_OFF)


def test_the_world_may_be_a_joints_child(tmp_path: Path) -> None:
    """Gazebo takes it: the frame of the joint is in the world then, and it turns the other way."""
    placed = arm(joint(OWN)).replace("</model>", "<pose>0.3 -0.2 0.1 0.4 0.5 0.6</pose></model>")
    ends, turned = (
        "<parent>world</parent><child>one</child>",
        "<parent>one</parent><child>world</child>",
    )
    at = Rotation.from_euler("xyz", (0.4, 0.5, 0.6))
    pose = f"<pose>{text(at.apply((0.5, 0, 0)) + (0.3, -0.2, 0.1))} {text((0.4, 0.5, 0.6))}</pose>"
    system = unassembled(read(placed.replace(ends, pose + turned), tmp_path))
    oracle = unassembled(read(placed, tmp_path))
    q, v, opposite = np.array([0.3, -0.5]), np.array([1.0, 2.0]), np.array([-1.0, 1.0])
    ours, theirs = terms_at(system, opposite * q, opposite * v), terms_at(oracle, q, v)
    assert apart(opposite * ours.h, theirs.h) < ROUND_OFF
    assert apart(opposite[:, None] * ours.M * opposite, theirs.M) < ROUND_OFF


def test_a_link_called_world_is_the_world(tmp_path: Path) -> None:
    sdf = arm(joint(OWN)).replace('<link name="one">', '<link name="world"/><link name="one">')
    system, oracle = unassembled(read(sdf, tmp_path)), reference()
    q, v = np.array([0.3, -0.5]), np.array([1.0, 2.0])
    assert apart(terms_at(system, q, v).h, terms_at(oracle, q, v).h) < ROUND_OFF


def test_models_of_one_name_are_told_apart_and_need_no_world(tmp_path: Path) -> None:
    one = arm("").split("<model", 1)[1].rsplit("</model>", 1)[0]
    alone = read(f'<sdf version="1.9"><model{one}</model></sdf>', tmp_path)
    several = f"<model{one}</model><model{one}</model>"
    for around in (several, f'<world name="w">{several}</world>'):
        spec = read(f'<sdf version="1.9">{around}</sdf>', tmp_path)
        name = one.split('name="', 1)[1].split('"', 1)[0]
        assert f"a second model '{name}' is called '{name}_2'" in spec.notes
        with bb.load(spec) as both, bb.load(alone) as single:
            assert both.system.mechanism.nv == 2 * single.system.mechanism.nv


def test_a_mimic_follows_its_leader(tmp_path: Path) -> None:
    mimic = (
        f"{OWN}<mimic joint='j1'><multiplier>2</multiplier><offset>0.3</offset>"
        "<reference>0.1</reference></mimic>"
    )
    (gear,) = read(arm(joint(mimic), "1.11"), tmp_path).constraints
    assert isinstance(gear, bb.Coupling)
    assert gear.coefficients == {"j2": 1.0, "j1": -2.0}
    assert gear.offset == pytest.approx(0.1)


def between(system: bb.System, parent: str, child: str) -> Array:
    """Rotation of one link in the frame of another one."""
    return system.link_pose(parent)[0].T @ system.link_pose(child)[0]


@pytest.mark.parametrize("ends", [("one", "two"), ("two", "one")])
def test_each_axis_of_a_universal_joint_may_follow_and_lead(
    ends: tuple[str, str], tmp_path: Path
) -> None:
    """SDF 1.11 has <mimic> in <axis2> as well, and says which axis of its leader it follows."""
    second = f"""<joint name="j2" type="universal">
<parent>{ends[0]}</parent><child>{ends[1]}</child><axis><xyz>0 1 0</xyz></axis>{{}}</joint>"""
    axis2 = "<axis2><xyz>1 0 0</xyz>{}</axis2>"
    mimic = "<mimic joint='{}'{}><multiplier>2</multiplier></mimic>"
    spec = read(arm(second.format(axis2.format(mimic.format("j1", ""))), "1.11"), tmp_path)
    (gear,) = spec.constraints
    assert isinstance(gear, bb.Coupling) and gear.coefficients == {"j2_2": 1.0, "j1": -2.0}
    system = unassembled(spec)
    before = between(system, *ends)
    system.assemble({"j1": 0.15, "j2_1": 0.0})  # j2_2 is at 0.3, in the child's frame
    turned = Rotation.from_matrix(before.T @ between(system, *ends)).as_rotvec()
    np.testing.assert_allclose(turned, (0.3, 0.0, 0.0), rtol=0.0, atol=ROUND_OFF)
    following = second.format(axis2.format(""))
    for which, led in (("", "j2_1"), (" axis='axis2'", "j2_2")):
        leads = f"<xyz>0 0 1</xyz>{mimic.format('j2', which)}"
        (gear,) = read(
            arm(following, "1.11").replace("<xyz>0 0 1</xyz>", leads, 1), tmp_path
        ).constraints
        assert isinstance(gear, bb.Coupling) and gear.coefficients == {"j1": 1.0, led: -2.0}


def test_a_mimic_in_drakes_words_follows_its_leader(tmp_path: Path) -> None:
    mimic = f"{OWN}<drake:mimic joint='j1' multiplier='-2' offset='0.3'/>"
    sdf = arm(joint(mimic), "1.9").replace("<sdf ", '<sdf xmlns:drake="http://drake.mit.edu" ', 1)
    (gear,) = read(sdf, tmp_path).constraints
    assert isinstance(gear, bb.Coupling)
    assert gear.coefficients == {"j2": 1.0, "j1": 2.0}
    assert gear.offset == pytest.approx(0.3)
    with pytest.raises(ModelError, match='multiplier="x"; give a number'):
        read(sdf.replace("'-2'", "'x'"), tmp_path)


def with_drake(element: str) -> str:
    sdf = arm(joint(OWN) + element, "1.9")
    return sdf.replace("<sdf ", '<sdf xmlns:drake="http://drake.mit.edu" ', 1)


def test_constraints_and_springs_in_drakes_words_join_links(tmp_path: Path) -> None:
    """Points of links, and of a frame on one, are where SDF has them, whatever carries them."""
    ball = (
        "<drake:ball_constraint><drake:ball_constraint_body_A>two</drake:ball_constraint_body_A>"
        "<drake:ball_constraint_body_B>world</drake:ball_constraint_body_B>"
        "<drake:ball_constraint_p_AP>0.3 0.2 0.1</drake:ball_constraint_p_AP>"
        f"<drake:ball_constraint_p_BQ>{text(np.array([1, 2, 3]) + R @ [0.3, 0.2, 0.1])}"
        "</drake:ball_constraint_p_BQ></drake:ball_constraint>"
    )
    ends = "".join(
        f"<drake:bushing_frame{x}>{name}</drake:bushing_frame{x}>"
        for x, name in (("A", "one"), ("C", "f"))
    )
    numbers = "".join(
        f"<drake:bushing_{kind}_{what}>1 2 3</drake:bushing_{kind}_{what}>"
        for kind in ("force", "torque")
        for what in ("stiffness", "damping")
    )
    bushing = f"<drake:linear_bushing_rpy>{ends}{numbers}</drake:linear_bushing_rpy>"
    frame = '<frame name="f" attached_to="two"><pose>0.1 0.2 0.3 0 0 0</pose></frame>'
    tendon = (
        "<drake:tendon_constraint><drake:tendon_constraint_joint name='j1' a='2'/>"
        "<drake:tendon_constraint_joint name='j2' a='-1'/>"
        "<drake:tendon_constraint_lower_limit>-1</drake:tendon_constraint_lower_limit>"
        "</drake:tendon_constraint>"
    )
    spec = read(with_drake(ball + frame + bushing + bushing + tendon), tmp_path)
    assert sum("turns are small" in note for note in spec.notes) == 1  # of both
    (closed,) = spec.constraints
    assert isinstance(closed, bb.LoopJoint) and closed.model is JointModel.BALL
    spring, _, limited = spec.elements
    assert isinstance(spring, bb.Bushing) and spring.b.link == "two"
    assert limited == bb.Tendon("tendon_j1_j2", {"j1": 2.0, "j2": -1.0}, limits=(-1.0, np.inf))
    system = unassembled(spec)
    system.set_state(np.zeros(2), np.zeros(2))
    _, gap = system.gap_vectors()[closed.name]
    assert np.abs(gap).max() < ROUND_OFF  # joints at zero, as drawn
    turned, at = system.link_pose(spring.b.link)
    np.testing.assert_allclose(
        at + turned @ np.array(spring.b.xyz),
        np.array([1, 2, 3]) + R @ [0.1, 0.2, 0.3],
        atol=ROUND_OFF,
    )


def test_what_drake_adds_to_a_model_is_not_lost_without_a_word(tmp_path: Path) -> None:
    gains = '<drake:controller_gains p="1" d="2"/></joint>'
    notes = read(with_drake("").replace("</joint>", gains, 1), tmp_path).notes
    assert any("<drake:controller_gains> of j1: no controller acts" in note for note in notes)
    with pytest.raises(ModelError, match="model 'arm': <drake:ball_constraint> lacks"):
        read(with_drake("<drake:ball_constraint/>"), tmp_path)
    with pytest.raises(ModelError, match="<drake:joint> 'p' has type 'bendy'; read is planar"):
        read(with_drake("<drake:joint name='p' type='bendy'/>"), tmp_path)
    notes = read(with_drake("<drake:gears/><drake:collision_filter_group/>"), tmp_path).notes
    assert "left out: <drake:gears>" in notes


def test_a_hinge_beside_the_frame_that_is_its_parent_is_told(tmp_path: Path) -> None:
    """SDF takes a parent's link alone; who writes a frame there may mean where the joint is."""
    frame = '<frame name="F" attached_to="one"><pose relative_to="j2">{} 0 0 0</pose></frame>'
    hinge = joint(OWN).replace("<parent>one", "<parent>F")
    on_axis, beside = (
        read(arm(hinge + frame.format(text(place))), tmp_path).notes
        for place in (2.0 * np.array(AXIS), np.array(AXIS) + (0.0, 0.3, 0.0))
    )
    assert not any("which are elsewhere" in note for note in on_axis)
    assert any("which are elsewhere ('F' by 0.3 m)" in note for note in beside)


def test_joints_in_drakes_words_are_joints(tmp_path: Path) -> None:
    planar = (
        '<link name="three"/><drake:joint name="p" type="planar"><drake:parent>world</drake:parent>'
        "<drake:child>three</drake:child><drake:damping>1 2 3</drake:damping></drake:joint>"
        "<drake:weld_constraint><parent>three</parent><child>two</child></drake:weld_constraint>"
    )
    spec = read(with_drake(planar), tmp_path)
    (weld,) = spec.constraints
    assert isinstance(weld, bb.LoopJoint) and weld.model is JointModel.WELD
    system = unassembled(spec)
    assert system.mechanism.nv == 2 + 3
    steps = [system.mechanism.joints[f"p_{k}"] for k in (1, 2, 3)]
    assert [step.kind for step in steps] == ["prismatic", "prismatic", "revolute"]
    lost = [system.mechanism.axes["damping"][step.v.start] for step in steps]
    assert lost == [1.0, 2.0, 3.0]
    with pytest.raises(ModelError, match="<drake:joint> 'p' lacks <drake:parent> or"):
        read(with_drake(planar.replace("<drake:child>three</drake:child>", "")), tmp_path)
    for ends, said in (
        ("<drake:parent_frame>two</drake:parent_frame>", "has one of drake:parent_frame and"),
        (
            "<drake:parent_frame>two</drake:parent_frame><drake:child_frame>two</drake:child_frame>",
            "<drake:parent_frame> 'two' is fixed to 'two'; name a frame of 'one'",
        ),
    ):
        with pytest.raises(ModelError, match=said):
            read(arm(joint(OWN, ends)), tmp_path)


def test_an_included_model_is_found_in_the_folder_and_nowhere_else(tmp_path: Path) -> None:
    folder = tmp_path / "inner"
    folder.mkdir()
    inner = f'<sdf version="1.6"><model name="m"><link name="two">{MASSES}</link></model></sdf>'
    (folder / "model.sdf").write_text(inner)
    include = (
        f"<include><uri>model://inner</uri><name>i</name><pose>1 2 3 {text(TURN)}</pose></include>"
    )
    sdf = arm(joint(OWN).replace("two", "i::two") + include, place=" ")
    sdf = sdf.replace(f'<link name="two"> {MASSES}</link>', "")
    system, oracle = unassembled(read(sdf, tmp_path)), reference()
    q, v = np.array([0.3, -0.5]), np.array([1.0, 2.0])
    assert apart(terms_at(system, q, v).h, terms_at(oracle, q, v).h) < ROUND_OFF
    with pytest.raises(ModelError, match="files outside are not opened"):
        read(sdf.replace("model://inner", "../elsewhere"), tmp_path)


def test_joints_between_parts_of_one_rigid_body_do_nothing(tmp_path: Path) -> None:
    """A plate on two fixed joints, and a hinge to it beside them."""
    plate = f'<link name="plate"><pose>0 0 1 0 0 0</pose>{MASSES}</link>'
    ends = "<parent>two</parent><child>plate</child>"
    held = joint(OWN) + plate + f'<joint name="f1" type="fixed">{ends}</joint>'
    oracle = unassembled(read(arm(held), tmp_path))
    held += f'<joint name="f2" type="fixed">{ends}</joint>'
    held += f'<joint name="h" type="revolute">{ends}<axis>{OWN}</axis></joint>'
    spec = read(arm(held), tmp_path)
    assert any("between parts of one rigid body are left out: f2, h" in x for x in spec.notes)
    system = unassembled(spec)
    q, v = np.array([0.3, -0.5]), np.array([1.0, 2.0])
    assert apart(terms_at(system, q, v).h, terms_at(oracle, q, v).h) < ROUND_OFF


def test_names_may_have_that_of_their_model_before_them(tmp_path: Path) -> None:
    """As in files that Gazebo has saved; what acts on links there alone is told."""
    plain = arm(joint(OWN))
    scoped = plain.replace("<parent>one<", "<parent>arm::one<").replace(
        "</link>", "<velocity_decay><linear>0.01</linear></velocity_decay></link>", 1
    )
    assert scoped.count("arm::one") == 1
    spec = read(scoped, tmp_path)
    assert any("left out: 1 added masses or decays" in note for note in spec.notes)
    system, oracle = unassembled(spec), unassembled(read(plain, tmp_path))
    q, v = np.array([0.3, -0.5]), np.array([1.0, 2.0])
    np.testing.assert_array_equal(terms_at(system, q, v).h, terms_at(oracle, q, v).h)


def test_a_lower_limit_above_the_upper_one_limits_nothing(tmp_path: Path) -> None:
    limit = "<limit><lower>1000</lower><upper>-1000</upper></limit>"
    free = read(arm(joint(OWN)), tmp_path)
    spec = read(arm(joint(OWN + limit)), tmp_path)
    assert [note for note in spec.notes if note not in free.notes] == [
        "joint 'j2' has a lower limit of 1000 and an upper one of -1000: nothing limits it, as in"
        " ODE; write the lower one first if it is meant"
    ]
    with bb.load(spec, "new") as loaded:
        joint2 = loaded.system.mechanism.joint("j2")
        assert (joint2.lower, joint2.upper) == (-np.inf, np.inf)


def test_limits_as_attributes_are_told_to_do_nothing(tmp_path: Path) -> None:
    spec = read(arm(joint(OWN + '<limit lower="0" upper="0.1"/>')), tmp_path)
    assert sum("has lower, upper as attributes" in note for note in spec.notes) == 1


def test_thin_rods_and_plates_however_turned_are_ones_that_bullet_takes() -> None:
    rng = np.random.default_rng(1)
    for turn in Rotation.random(50, random_state=1).as_matrix():
        for thin in ([1.0, 1.0, 0.0], [1.0, 1.0, 2.0], [0.7, 0.2, 0.9]):
            J = turn @ np.diag(rng.uniform(1e-6, 10.0) * rng.permutation(thin)) @ turn.T
            axes, moments = principal(J)
            assert apart(axes @ np.diag(moments) @ axes.T, J) < 1e-14
            smallest, middle, largest = np.sort(moments)
            assert 0.0 <= smallest and largest <= smallest + middle


def test_rounded_places_leave_an_over_constrained_machine_its_freedoms(tmp_path: Path) -> None:
    """Three parallel bars, each link turned in space by angles that are rounded to six digits."""
    turn = Rotation.from_euler("xyz", (0.4, 0.5, 0.6))

    def pose(place: tuple[float, ...], lean: float) -> str:
        turns = (turn * Rotation.from_euler("y", lean)).as_euler("xyz")
        return " ".join(f"{x:.6f}" for x in (*turn.apply(place), *turns))

    top = (np.sin(0.3), 0.0, np.cos(0.3))
    places = {"a": ((0, 0, 0), 0.3), "b": ((1, 0, 0), 0.3), "c": ((2, 0, 0), 0.3), "bar": (top, 1)}
    links = "".join(
        f'<link name="{n}"><pose>{pose(*place)}</pose>{MASSES}</link>'
        for n, place in places.items()
    )
    axis = "<axis><xyz>0 1 0</xyz></axis>"
    pins = "".join(
        f'<joint name="{n}_foot" type="revolute"><parent>world</parent><child>{n}</child>{axis}'
        f'</joint><joint name="{n}_top" type="revolute"><pose relative_to="{n}">0 0 1 0 0 0</pose>'
        f"<parent>{n}</parent><child>bar</child>{axis}</joint>"
        for n in ("a", "b", "c")
    )
    sdf = f'<sdf version="1.9"><model name="m">{links}{pins}</model></sdf>'
    spec = read(sdf, tmp_path)
    for loop in spec.constraints:
        assert isinstance(loop, bb.LoopJoint)
        numbers = (*loop.a.xyz, *loop.a.rpy, *loop.b.xyz, *loop.b.rpy)
        assert [round(x, 7) for x in numbers] == list(numbers)
    with bb.load(spec, dt=1 / 240) as model:
        start = model.system.q
        for _ in range(100):
            model.system.step()
        kept = max(gap.kept_metres for gap in model.system.evaluate().gaps)
        assert np.abs(model.system.q - start).max() > 0.4  # it falls, instead of jamming
    assert kept < 1e-12


WRONG = [
    ('type="revolute"><parent>one', 'type="bendy"><parent>one', "has type 'bendy'; known are"),
    ("<child>two", "<child>none", "unknown link or frame 'none'; there are"),
    ("<mass>2", "<mass>two", "link 'one': <mass> of <inertial> is 'two'; give"),
    ("<parent>one</parent>", "", "joint 'j2' has no <parent>; name it"),
    ("<axis><xyz>0 0 1</xyz></axis>", "", "joint 'j1' has no <axis>; add it"),
    ("<xyz>0 0 1", "<xyz>0 0 0", "the axis of joint 'j1' is '0 0 0'"),
    ("1 2 3 0.4", "1 2 3 4 0.4", "give 6 finite numbers"),
    ('name="two"', 'name="one"', "the name 'one' is given twice"),
    ("<pose>1 2", '<pose relative_to="two">1 2', "depend on each other"),
    ("<inertial>", '<inertial auto="true">', "no <collision> with a volume and a density"),
    ('version="1.9"', 'version="x"', "<sdf> has version 'x'; give one such as 1.11"),
]


@pytest.mark.parametrize(("right", "wrong", "said"), WRONG)
def test_what_is_wrong_is_said(right: str, wrong: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=re.escape(said)):
        read(arm(joint(OWN)).replace(right, wrong), tmp_path)


SOLIDS = """<collision name="a"><pose>0.1 0.2 0.3 0.4 0.5 0.6</pose><density>700</density><geometry>
<box><size>0.1 0.2 0.3</size></box></geometry></collision>
<collision name="b"><pose>-0.1 0 0.2 0 0.3 0</pose><geometry><sphere><radius>0.07</radius></sphere>
</geometry></collision>
<collision name="c"><pose>0 0.4 0 1 0 0</pose><geometry><cylinder><radius>0.05</radius>
<length>0.4</length></cylinder></geometry></collision>
<collision name="d"><pose>0 0 -0.3 0 1 0.2</pose><density>2000</density><geometry><capsule>
<radius>0.06</radius><length>0.2</length></capsule></geometry></collision>
<collision name="e"><pose>0.3 0 0 0.1 0.2 0.3</pose><geometry><ellipsoid><radii>0.1 0.05 0.2</radii>
</ellipsoid></geometry></collision>"""
SAME_SOLIDS = """<mujoco><compiler angle="radian" eulerseq="XYZ"/><worldbody><body><freejoint/>
<geom type="box" pos="0.1 0.2 0.3" euler="0.4 0.5 0.6" size="0.05 0.1 0.15" density="700"/>
<geom type="sphere" pos="-0.1 0 0.2" euler="0 0.3 0" size="0.07" density="900"/>
<geom type="cylinder" pos="0 0.4 0" euler="1 0 0" size="0.05 0.2" density="900"/>
<geom type="capsule" pos="0 0 -0.3" euler="0 1 0.2" size="0.06 0.1" density="2000"/>
<geom type="ellipsoid" pos="0.3 0 0" euler="0.1 0.2 0.3" size="0.1 0.05 0.2" density="900"/>
</body></worldbody></mujoco>"""


def weighed_by_shapes(inertial: str, shapes: str, folder: Path) -> tuple[float, Array, Array]:
    """Mass, centre and inertia about the origin of a link that leaves them to its shapes."""
    link = f'<link name="one"><inertial auto="true">{inertial}</inertial>{shapes}</link>'
    spec = read(f'<sdf version="1.11"><model name="m">{link}</model></sdf>', folder)
    system = unassembled(spec)
    M = terms_at(system, np.array([0, 0, 0, 0, 0, 0, 1.0]), np.zeros(6)).M
    # rates of a free body are its turning and the velocity of its centre, which is its origin
    robot = spec.bodies[0].urdf.read_text(encoding="utf-8")
    at = re.search(r"<inertial>\s*<origin[^>]*xyz=\"([^\"]*)\"", robot)
    assert at is not None
    return float(M[5, 5]), np.array([float(x) for x in at[1].split()]), M[:3, :3]


def test_inertia_that_is_left_to_shapes_is_mujocos(tmp_path: Path) -> None:
    mujoco = pytest.importorskip("mujoco")
    model = mujoco.MjModel.from_xml_string(SAME_SOLIDS)
    R = Rotation.from_quat(np.roll(model.body_iquat[1], -1)).as_matrix()
    J = (R * model.body_inertia[1]) @ R.T
    mass, com, found = weighed_by_shapes("<density>900</density>", SOLIDS, tmp_path)
    np.testing.assert_allclose(mass, model.body_mass[1], rtol=ROUND_OFF)
    np.testing.assert_allclose(com, model.body_ipos[1], atol=ROUND_OFF)
    np.testing.assert_allclose(found, J, atol=ROUND_OFF * np.abs(J).max())
    # a mass scales all of it
    mass, com, found = weighed_by_shapes("<density>900</density><mass>3</mass>", SOLIDS, tmp_path)
    np.testing.assert_allclose(mass, 3.0, rtol=ROUND_OFF)
    np.testing.assert_allclose(found, J * 3.0 / model.body_mass[1], atol=ROUND_OFF * J.max())


def test_inertia_of_a_mesh_and_of_a_cone(tmp_path: Path) -> None:
    import trimesh

    # of n facets around, volume and moments fall short by (2 pi / n)^2 / 6 and (2 pi / n)^2 / 3
    shortfall = (2.0 * np.pi / 512) ** 2
    facets = trimesh.creation.cone(radius=0.2, height=0.6, sections=512)  # base at the origin
    facets.export(tmp_path / "cone.stl")
    mesh = """<collision name="a"><pose>0.1 0.2 0.3 0.3 0.2 0.1</pose><geometry><mesh>
<uri>cone.stl</uri><scale>0.5 0.5 0.5</scale></mesh></geometry></collision>"""
    middle = Rotation.from_euler("xyz", (0.3, 0.2, 0.1)).apply((0, 0, 0.15)) + (0.1, 0.2, 0.3)
    cone = f"""<collision name="a"><pose>{text(middle)} 0.3 0.2 0.1</pose><geometry><cone>
<radius>0.1</radius><length>0.3</length></cone></geometry></collision>"""
    of_mesh, of_cone = (weighed_by_shapes("", each, tmp_path) for each in (mesh, cone))
    np.testing.assert_allclose(of_cone[0], 1000.0 * np.pi * 0.1**2 * 0.3 / 3.0, rtol=ROUND_OFF)
    for one, other in zip(of_mesh, of_cone, strict=True):
        np.testing.assert_allclose(one, other, atol=shortfall * np.abs(other).max())
    gone = mesh.replace("cone.stl", "gone.stl")
    with pytest.raises(ModelError, match=r"from the mesh 'gone\.stl', and it is not there: put"):
        weighed_by_shapes("", gone, tmp_path)


def test_a_joint_may_mimic_one_of_another_model(tmp_path: Path) -> None:
    """By its name in the own model, or in the world around."""
    follows = '<mimic joint="{}"><multiplier>2</multiplier><offset>0.1</offset></mimic>'
    models = "".join(
        f"""<model name="{name}"><link name="a">{MASSES}</link><joint name="j" type="revolute">
<parent>world</parent><child>a</child><axis><xyz>0 0 1</xyz>{more}</axis></joint></model>"""
        for name, more in (("one", ""), ("two", follows.format("one::j")))
    )
    spec = read(f'<sdf version="1.11"><world name="w">{models}</world></sdf>', tmp_path)
    (gear,) = spec.constraints
    assert isinstance(gear, bb.Coupling)
    assert gear.coefficients == {"two::j": 1.0, "one::j": -2.0} and gear.offset == 0.1
    wrong = models.replace("one::j", "one::k")
    with pytest.raises(ModelError, match="joint 'two::j' mimics 'one::k', which does not exist"):
        read(f'<sdf version="1.11"><world name="w">{wrong}</world></sdf>', tmp_path)


def test_a_merged_model_is_as_if_it_stood_there(tmp_path: Path) -> None:
    """Links, joints and mimics by names of the model around, in its place by its own frame."""
    follows = '<mimic joint="{}"><multiplier>2</multiplier></mimic>'
    inner = f"""<link name="one"><pose>0.5 0 0 0 0 0</pose>{MASSES}</link>
<link name="two"><pose>1 2 3 {text(TURN)}</pose>{MASSES}</link>
<joint name="j2" type="revolute"><parent>one</parent><child>two</child><axis>{OWN}</axis></joint>"""
    rest = f"""<link name="three"><pose relative_to="two">0.1 0.2 0.3 0 0 0</pose>{MASSES}</link>
<joint name="j1" type="revolute"><parent>world</parent><child>one</child>
<axis><xyz>0 0 1</xyz></axis></joint><joint name="j3" type="revolute"><parent>two</parent>
<child>three</child><axis><xyz>0 1 0</xyz>{follows.format("j2")}</axis></joint>"""
    (tmp_path / "part").mkdir()
    part = f'<sdf version="1.11"><model name="part">{inner}</model></sdf>'
    (tmp_path / "part" / "model.sdf").write_text(part)
    top = '<sdf version="1.11"><model name="arm">{}{}</model></sdf>'
    merged = read(top.format('<include merge="true"><uri>part</uri></include>', rest), tmp_path)
    whole = read(top.format(inner, rest), tmp_path)
    assert merged.constraints == whole.constraints and len(whole.constraints) == 1
    one, other = unassembled(merged), unassembled(whole)
    assert list(one.mechanism.joints) == list(other.mechanism.joints)
    q, v = random_state(one, np.random.default_rng(5))
    a, b = terms_at(one, q, v), terms_at(other, q, v)
    assert apart(a.M, b.M) < ROUND_OFF and apart(a.h, b.h) < ROUND_OFF
    again = top.format('<include merge="true"><uri>part</uri></include>', inner)
    with pytest.raises(ModelError, match="a model that it merges has 'one', too; rename one"):
        read(again, tmp_path)


def test_numbers_are_read_as_gazebo_reads_them(tmp_path: Path) -> None:
    """What begins a word counts, in the file and in one that it includes, and is told."""
    inner = f"""<link name="two"><pose>1 2 3, {text(TURN)}</pose>{MASSES}<collision name="c">
<geometry><sphere><radius> 0.1" </radius></sphere></geometry></collision></link>"""
    (tmp_path / "part").mkdir()
    (tmp_path / "part" / "model.sdf").write_text(
        f'<sdf version="1.9"><model name="part">{inner}</model></sdf>'
    )
    stray = arm(joint(OWN)).replace("<mass>2</mass>", "<mass>2kg</mass>", 1)
    link = re.search(r'<link name="two">.*?</link>', stray, re.DOTALL)
    assert link is not None
    stray = stray.replace(link.group(), '<include merge="true"><uri>part</uri></include>')
    spec, usual = read(stray, tmp_path), read(arm(joint(OWN)), tmp_path)
    one, other = unassembled(spec), unassembled(usual)
    q, v = random_state(one, np.random.default_rng(6))
    a, b = terms_at(one, q, v), terms_at(other, q, v)
    assert apart(a.M, b.M) < ROUND_OFF and apart(a.h, b.h) < ROUND_OFF
    taken = "<{}> is '{}', which is taken as '{}', as Gazebo takes it: {}"
    assert taken.format("mass", "2kg", "2", "one") in spec.notes
    assert taken.format("radius", '0.1"', "0.1", "c") in spec.notes
    with pytest.raises(ModelError, match="link 'one': <mass> of <inertial> is 'heavy'; give"):
        read(stray.replace("2kg", "heavy"), tmp_path)


@pytest.mark.parametrize("odd", ["1 2 \u200b3", "\ufeff1 2\u2060 3"])
def test_numbers_are_read_as_they_look(tmp_path: Path, odd: str) -> None:
    """Also with characters of no width in them; a minus may be typeset."""
    spec = read(arm(joint(OWN), place=f"<pose>{odd} \u22120.1 0 0</pose>"), tmp_path)
    usual = read(arm(joint(OWN), place="<pose>1 2 3 -0.1 0 0</pose>"), tmp_path)
    one, other = unassembled(spec), unassembled(usual)
    q, v = random_state(one, np.random.default_rng(6))
    a, b = terms_at(one, q, v), terms_at(other, q, v)
    assert apart(a.M, b.M) < ROUND_OFF and apart(a.h, b.h) < ROUND_OFF
    assert any("taken as '1 2 3 -0.1 0 0'" in note for note in spec.notes)


def test_numbers_are_those_of_c(tmp_path: Path) -> None:
    """``1_0`` is ten in Python alone."""
    spec = read(arm(joint(OWN)).replace("<mass>2</mass>", "<mass>2_0</mass>", 1), tmp_path)
    usual = read(arm(joint(OWN)), tmp_path)
    one, other = unassembled(spec), unassembled(usual)
    q, v = random_state(one, np.random.default_rng(6))
    assert apart(terms_at(one, q, v).M, terms_at(other, q, v).M) < ROUND_OFF


def test_old_sdf_has_another_outermost_element(tmp_path: Path) -> None:
    """Until version 1.2 it was called as the simulator; 1.0 and 1.1 had numbers in attributes."""
    new = arm(joint(f"<xyz>{IN_MODEL}</xyz>"), "1.2")
    old = new.replace("<sdf", "<gazebo").replace("</sdf>", "</gazebo>")
    path = tmp_path / "old.sdf"
    path.write_text(old)
    one, other = unassembled(read_model(path)), unassembled(read(new, tmp_path))
    q, v = random_state(one, np.random.default_rng(6))
    a, b = terms_at(one, q, v), terms_at(other, q, v)
    assert apart(a.M, b.M) == apart(a.h, b.h) == 0.0
    path.write_text(old.replace('"1.2"', '"1.0"'))
    with pytest.raises(ModelError, match="is SDF 1.0, whose numbers are attributes.*convert it"):
        read_model(path)
    path.write_text(old.replace(' version="1.2"', ""))
    with pytest.raises(ModelError, match="<gazebo> has version 'None'; give one such as"):
        read_model(path)


def test_what_is_left_out_of_nested_models_is_counted_once(tmp_path: Path) -> None:
    more = '<plugin name="p" filename="p.so"/><link name="two"><sensor name="s" type="imu"/>'
    spec = read(NESTED.replace('<link name="two">', more), tmp_path)
    assert "left out: 1 plugins, 1 sensors" in spec.notes


def test_motors_and_soft_stops_of_ode_that_are_left_out_are_told(tmp_path: Path) -> None:
    def told(force: float, cfm: float, stiffness: float) -> list[str]:
        ode = f"<ode><max_force>{force}</max_force><limit><cfm>{cfm}</cfm></limit></ode>"
        axis = f"{OWN}<limit><stiffness>{stiffness}</stiffness></limit>"
        notes = read(arm(joint(axis, f"<physics>{ode}</physics>")), tmp_path).notes
        return [note for note in notes if note.startswith("left out")]

    (said,) = told(5.0, 0.1, 1e4)
    assert "1 motors of ODE (<max_force>)" in said and "2 soft stops" in said
    assert not told(0.0, 0.0, 1e8)  # what SDF has unless it is said


def test_starts_that_are_left_out_are_told(tmp_path: Path) -> None:
    """Positions of joints before SDF 1.9, and the state in which a world was saved."""
    said = "; ".join(
        read(arm(joint(f"{OWN}<initial_position>0.4</initial_position>")), tmp_path).notes
    )
    assert "starts is left out: <initial_position> of joint 'j2'; models start" in said
    still = arm(joint(f"{OWN}<initial_position>0</initial_position>"))
    assert "starts is left out" not in "; ".join(read(still, tmp_path).notes)
    state = '<state world_name="w"><model name="arm"><pose>1 0 0 0 0 0</pose></model></state>'
    world = still.replace("<model", '<world name="w"><model', 1).replace(
        "</sdf>", f"{state}</world></sdf>"
    )
    said = "; ".join(read(world, tmp_path).notes)
    assert "starts is left out: <state> of world 'w'" in said


def test_angles_that_look_like_degrees_are_told(tmp_path: Path) -> None:
    path = tmp_path / "arm.sdf"
    limit = "<limit><lower>-90</lower><upper>1</upper></limit>"
    turned = "<pose>1 2 3 0 90 0</pose>"
    path.write_text(arm(joint("<xyz>0 0 1</xyz>" + limit), place=turned))
    said = "; ".join(read_model(path).notes)
    assert "a limit of joint 'j2' is -90 rad" in said and "is 1 rad" not in said
    assert "radians, more than a turn in <link name='two'>: 0 90 0; if degrees are meant" in said
    right = turned.replace("<pose", '<pose degrees="true"')
    path.write_text(arm(joint("<xyz>0 0 1</xyz>"), place=right))
    assert "degrees" not in "; ".join(read_model(path).notes)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("<% links.each do %>", "expand the template that it is first: `erb FILE > robot.sdf`"),
        ("{% if n < 2 %}", "expand the template that it is first, Jinja's by its looks"),
    ],
)
def test_what_is_still_to_be_expanded_is_told(wrong: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "arm.sdf"
    path.write_text(arm(joint(OWN) + wrong).replace("<sdf ", "<sdf xmlns:xacro='x' "))
    with pytest.raises(ModelError, match=re.escape(said)):
        read_model(path)


def test_links_without_gravity_have_no_weight(tmp_path: Path) -> None:
    """At rest their robot is held as if they had no mass; it moves with all of it."""
    usual = arm(joint(OWN))
    second = re.search(r'<link name="two">.*?</link>', usual, re.DOTALL)
    assert second is not None
    lifted = usual.replace(
        second.group(), second.group().replace("</link>", "<gravity>false</gravity></link>")
    )
    empty = usual.replace(second.group(), second.group().replace("<mass>2<", "<mass>0<"))
    spec = read(lifted, tmp_path)
    system = unassembled(spec)
    assert "gravity does not act on two: forces take their weight (wrenches)" in spec.notes
    (tmp_path / "out").mkdir()
    again = read_model(write_sdf(spec, tmp_path / "out" / "arm").files[0])
    assert len(again.wrenches) == 1
    q, v = random_state(system, np.random.default_rng(7))
    light = terms_at(unassembled(read(empty, tmp_path)), q, 0.0 * v).h
    one, written = (terms_at(each, q, 0.0 * v) for each in (system, unassembled(again)))
    for terms in (one, written):
        assert apart(terms.h - terms.forces, light) < ROUND_OFF
    assert apart(one.M, terms_at(unassembled(read(usual, tmp_path)), q, v).M) < ROUND_OFF
    weightless = f"<gravity>0 0 0</gravity>{lifted.partition('>')[2].replace('</sdf>', '')}"
    world = f'<sdf version="1.9"><world name="w">{weightless}</world></sdf>'
    assert not read(world, tmp_path).wrenches


def test_words_of_joints_and_links_that_are_not_known_are_told(tmp_path):
    """A plugin's own are its matter."""
    plugin = '<plugin name="p" filename="p.so"><joint name="x"><speed>1</speed></joint></plugin>'
    path = tmp_path / "arm.sdf"
    path.write_text(arm(joint(f"{OWN}<limits><lower>1</lower></limits>") + plugin))
    told = [note for note in read_model(path).notes if "not known" in note]
    assert len(told) == 1 and "<limits> of <axis> (did you mean 'limit'?) in joint 'j2'" in told[0]
    assert "speed" not in told[0]
