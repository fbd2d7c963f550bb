"""Files that xacro expands: a four-bar of macros, with arguments, includes and packages."""

import sys

import numpy as np
import pytest
from support.mujoco_models import unassembled

import bulletbridge as bb
from bulletbridge.cli import run
from bulletbridge.errors import MissingExtraError, ModelError
from bulletbridge.models.bundled import split_arguments
from bulletbridge.models.formats.recognise import read_model

MACROS = """<robot xmlns:xacro="http://www.ros.org/wiki/xacro">
  <xacro:property name="mass" value="0.5"/>
  <xacro:macro name="rod" params="name length">
    <link name="${name}"><inertial><origin xyz="${length / 2} 0 0"/><mass value="${mass}"/>
      <inertia ixx="1e-4" iyy="${mass * length**2 / 12}" izz="${mass * length**2 / 12}"
        ixy="0" ixz="0" iyz="0"/></inertial></link>
  </xacro:macro>
  <xacro:macro name="hinge" params="name parent child x:=0">
    <joint name="${name}" type="continuous"><parent link="${parent}"/><child link="${child}"/>
      <origin xyz="${x} 0 0"/><axis xyz="0 1 0"/></joint>
  </xacro:macro>
</robot>
"""
ROBOT = """<robot name="bars" xmlns:xacro="http://www.ros.org/wiki/xacro">
  <xacro:include filename="$(find bars_description)/urdf/macros.xacro"/>
  <xacro:arg name="side" default="0.2"/>
  <xacro:arg name="name" default="bars"/>
  <link name="world"/>
  <xacro:rod name="crank" length="$(arg side)"/>
  <xacro:rod name="coupler" length="0.3"/>
  <xacro:rod name="rocker" length="$(arg side)"/>
  <xacro:hinge name="j0" parent="world" child="crank"/>
  <xacro:hinge name="j1" parent="crank" child="coupler" x="$(arg side)"/>
  <xacro:hinge name="j2" parent="coupler" child="rocker" x="0.3"/>
  <loop_joint name="closure" type="revolute">
    <link1 link="rocker" xyz="$(arg side) 0 0" rpy="0 0 0"/>
    <link2 link="world" xyz="${0.3} 0 0" rpy="0 0 0"/>
    <axis xyz="0 1 0"/>
  </loop_joint>
</robot>
"""


@pytest.fixture
def robot(tmp_path):
    """The robot's file, in a package whose folder has another name than the package."""
    folder = tmp_path / "checkout" / "urdf"
    folder.mkdir(parents=True)
    (folder.parent / "package.xml").write_text("<package><name> bars_description </name></package>")
    (folder / "macros.xacro").write_text(MACROS)
    path = folder / "bars.urdf.xacro"
    path.write_text(ROBOT)
    return path


@pytest.mark.parametrize(("arguments", "side"), [("", 0.2), (" side:=0.25 name:='my bars'", 0.25)])
def test_macros_are_expanded_with_their_arguments(robot, arguments, side):
    pytest.importorskip("xacro")
    with bb.load(f"{robot}{arguments}", client="new") as model:
        system = model.system
        crank = system.mechanism.bodies[system.mechanism.link("crank").body]
        assert model.spec.name == "bars"
        assert crank["mass"] == 0.5
        assert np.sort(np.diag(crank["J"]))[1:] == pytest.approx(0.5 * side**2 / 12, rel=1e-6)
        system.run(0.1)
        assert system.evaluate().largest("metres") < 1e-12


def test_arguments_are_told_from_paths(tmp_path):
    assert split_arguments("a b.xacro x:=1 y:='2 3'") == ("a b.xacro", {"x": "1", "y": "2 3"})
    assert split_arguments("C:\\robots\\arm.urdf") == ("C:\\robots\\arm.urdf", {})
    assert split_arguments("arm.xacro x:=") == ("arm.xacro", {"x": ""})
    assert split_arguments(tmp_path) == (tmp_path, {})


@pytest.mark.parametrize(
    ("change", "arguments", "said"),
    [
        (("", ""), " sides:=1", "asks for no argument 'sides'; did you mean 'side'"),
        (
            ('<xacro:arg name="side" default="0.2"/>', ""),
            "",
            "needs the argument 'side'; give it, as in 'bars.urdf.xacro",
        ),
        (
            ('<xacro:arg name="side" default="0.2"/>', "<!-- $(arg top) $(arg top) -->"),
            "",
            "needs the arguments 'side', 'top'; give it, as in 'bars.urdf.xacro side:=VALUE top:=V",
        ),
        (("bars_description", "nowhere"), "", "there is no package 'nowhere': no folder above"),
        (("macros.xacro", "none.xacro"), "", "No such file or directory: .*none.xacro"),
        (('length="0.3"', 'length="${long}"'), "", "name 'long' is not defined"),
        ((' xmlns:xacro="http://www.ros.org/wiki/xacro"', ""), "", "declare xmlns:xacro"),
        (("xacro:rod", "xacro:rods"), "", "unknown macro name: xacro:rods"),
    ],
)
def test_what_cannot_be_expanded_is_told_with_the_remedy(robot, change, arguments, said):
    pytest.importorskip("xacro")
    robot.write_text(ROBOT.replace(*change) if change[0] else ROBOT)
    with pytest.raises(ModelError, match=said) as caught:
        bb.read_model(f"{robot}{arguments}")
    assert "\n" not in str(caught.value)


def test_a_file_of_macros_alone_is_told_from_a_robot(robot):
    pytest.importorskip("xacro")
    with pytest.raises(ModelError, match="defines the macro 'rod', the macro 'hinge' for another"):
        bb.read_model(robot.with_name("macros.xacro"))


def test_arguments_for_a_file_that_is_no_xacro_are_refused(tmp_path):
    plain = tmp_path / "plain.urdf"
    plain.write_text('<robot name="a"><link name="b"/></robot>')
    with pytest.raises(ModelError, match="nothing that xacro expands; leave x:= out"):
        bb.read_model(f"{plain} x:=1")
    with pytest.raises(ModelError, match="is no xacro; leave x:= out"):
        bb.read_model("four_bar x:=1")


def test_the_extra_is_named_where_it_is_not_installed(robot, monkeypatch):
    monkeypatch.setitem(sys.modules, "xacro", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'bulletbridge\[xacro\]'"):
        bb.read_model(robot)


def test_a_loops_file_names_a_file_with_its_arguments(robot):
    """Meshes are found from where that file is."""
    pytest.importorskip("xacro")
    shape = '<visual><geometry><mesh filename="package://{}/{}"/></geometry></visual></link>'
    ball = shape.format("bars_description", "ball.obj")
    (robot.parent.parent / "ball.obj").write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n")
    robot.with_name("macros.xacro").write_text(MACROS.replace("</link>", ball))
    robot.write_text(ROBOT[: ROBOT.index("  <loop_joint")] + "</robot>")
    loops = robot.with_name("bars.loops.yaml")
    loops.write_text(
        "bulletbridge: 1\nurdf: bars.urdf.xacro side:=0.25\nfixed_base: true\nloops:\n"
        "  - {name: pin, type: ball, a: {link: rocker, xyz: [0.25, 0, 0]},"
        " b: {link: world, xyz: [0.3, 0, 0]}}\n"
    )
    with bb.load(loops, client="new") as model:
        shown = model.spec.bodies[0].urdf.read_text()
        assert str(robot.parent.parent / "ball.obj") in shown and 'xyz="0.25' in shown
        model.system.run(0.1)
        assert model.system.evaluate().largest("metres") < 1e-12


def test_a_warning_of_xacro_is_a_note(robot):
    pytest.importorskip("xacro")
    robot.write_text(ROBOT.replace("</robot>", '<xacro:if value="1" odd="2"/></robot>'))
    assert any(note.startswith("xacro: xacro:if: unknown") for note in bb.read_model(robot).notes)


def test_commands_take_arguments_and_convert_writes_what_was_made(robot, tmp_path, capsys):
    pytest.importorskip("xacro")
    assert run(["convert", f"{robot} side:=0.25", "-o", str(tmp_path / "made")]) == 0
    made = bb.read_model(tmp_path / "made.loops.yaml")
    assert [loop.name for loop in made.constraints] == ["closure"]
    assert "0.25" in (tmp_path / "made.urdf").read_text()


SDF = """<sdf version="1.9" xmlns:xacro="http://www.ros.org/wiki/xacro"
  xmlns:drake="http://drake.mit.edu"><model name="bars">
  <xacro:arg name="side" default="0.2"/>
  <xacro:macro name="rod" params="name length">
    <link name="${name}"><pose>${length} 0 0.1 0 0 0</pose><inertial><mass>${0.5 * length}</mass>
    </inertial></link>
  </xacro:macro>
  <xacro:rod name="one" length="$(arg side)"/>
  <xacro:rod name="two" length="0.3"/>
  <joint name="j1" type="revolute"><parent>world</parent><child>one</child>
    <axis><xyz>0 1 0</xyz></axis></joint>
  <joint name="j2" type="revolute"><parent>one</parent><child>two</child>
    <axis><xyz>0 1 0</xyz></axis></joint>
  <drake:ball_constraint><drake:ball_constraint_body_A>two</drake:ball_constraint_body_A>
    <drake:ball_constraint_p_AP>0 0 0</drake:ball_constraint_p_AP>
    <drake:ball_constraint_body_B>world</drake:ball_constraint_body_B>
    <drake:ball_constraint_p_BQ>0.3 0 0.1</drake:ball_constraint_p_BQ></drake:ball_constraint>
</model></sdf>"""


@pytest.mark.parametrize(("arguments", "mass"), [("", 0.1), (" side:=0.25", 0.125)])
def test_sdf_is_expanded_too_and_keeps_its_prefixes(tmp_path, arguments, mass):
    """As a delta of links and joints in files of their own, and Drake's closure of a loop."""
    pytest.importorskip("xacro")
    path = tmp_path / "bars.sdf.xacro"
    path.write_text(SDF)
    spec = read_model(f"{path}{arguments}", tmp_path)
    assert [loop.name for loop in spec.constraints] == ["two_to_world"]
    system = unassembled(spec)
    one = system.mechanism.bodies[system.mechanism.link("one").body]
    assert one["mass"] == pytest.approx(mass, rel=1e-12)


def test_what_sdf_includes_is_not_expanded(tmp_path):
    """Expressions are Python: those of the file that was named, not of others."""
    (tmp_path / "bars.sdf").write_text(SDF)
    world = tmp_path / "w.world"
    world.write_text(
        '<sdf version="1.9"><world name="w"><include><uri>bars.sdf</uri></include></world></sdf>'
    )
    with pytest.raises(ModelError, match="it is xacro; expand it first"):
        bb.load(str(world), client="new")


def test_elements_of_drake_are_not_lost_in_a_urdf_that_xacro_makes(robot):
    pytest.importorskip("xacro")
    begin = ROBOT.index("  <loop_joint")
    drake = (
        '<drake:ball_constraint><drake:ball_constraint_body_A name="rocker"/>'
        '<drake:ball_constraint_p_AP value="0.2 0 0"/>'
        '<drake:ball_constraint_body_B name="world"/>'
        '<drake:ball_constraint_p_BQ value="0.3 0 0"/></drake:ball_constraint></robot>'
    )
    robot.write_text(
        (ROBOT[:begin] + drake).replace("<robot ", '<robot xmlns:drake="http://drake.mit.edu" ')
    )
    with bb.load(str(robot), client="new") as model:
        assert [loop.name for loop in model.spec.constraints] == ["rocker_to_world"]
