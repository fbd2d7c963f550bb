"""URDFs with numbers, meshes and names that are none: one message instead of a traceback."""

import re

import pybullet
import pytest
from support.small_models import four_bar

import bulletbridge as bb
from bulletbridge.bullet.xml_file import read_xml
from bulletbridge.errors import LoopFileError, ModelError
from bulletbridge.models.bundled import find
from bulletbridge.models.flexible.make_flexible import Flexibility, make_flexible
from bulletbridge.models.inertia import repair
from bulletbridge.models.loops_file import read_loops
from bulletbridge.models.yaml_text import MOST_BYTES

ROBOT = """<robot name="r">
  <link name="base"/>
  <link name="arm">
    <inertial><origin xyz="0.5 0 0"/><mass value="2"/>
      <inertia ixx="0.01" iyy="0.2" izz="0.2" ixy="0" ixz="0" iyz="0"/></inertial>
    <visual><origin xyz="0.5 0 0" rpy="0 0 0"/><geometry><box size="1 0.1 0.1"/></geometry></visual>
  </link>
  <joint name="hinge" type="continuous"><parent link="base"/><child link="arm"/>
    <origin xyz="0 0 0"/><axis xyz="0 1 0"/></joint>
</robot>"""
BENT = Flexibility("arm", 2, EI_z=10.0, direction=(1.0, 0.0, 0.0))
WRONG = [
    ('value="2"', 'value="two"', "link 'arm': <mass> has value=\"two\"; give a finite number"),
    ('value="2"', 'value="nan"', "link 'arm': <mass> has value=\"nan\"; give a finite number"),
    ('value="2"', 'value="-2"', "link 'arm': the mass is -2 kg; give zero or more"),
    (' value="2"', "", "link 'arm': <mass> has no 'value'; add it"),
    ('ixx="0.01"', 'ixx="inf"', "link 'arm': <inertia> has ixx=\"inf\"; give a finite number"),
    ('izz="0.2"', 'izz="1e300"', "link 'arm': <inertia> has izz=\"1e300\"; give a finite number"),
    ('rpy="0 0 0"', 'rpy="0 0"', "link 'arm': <origin> has rpy=\"0 0\"; give 3 finite numbers"),
    ('"1 0.1 0.1"', '"1 0.1"', "link 'arm': <box> has size=\"1 0.1\"; give 3 finite numbers"),
    ('"0 0 0"/><axis', '"a"/><axis', "joint 'hinge': <origin> has xyz=\"a\"; give 3 finite"),
    (
        ' rpy="0 0 0"',
        ' quat_xyzw="0 0 1 1"',
        "link 'arm': <origin> is turned by quat_xyzw, where rpy is wanted: `bulletbridge convert`",
    ),
    ("<robot", "<sdf", "cannot read"),
    ("</robot>", "", "cannot read"),
    (ROBOT, '<sdf version="1"/>', "is no URDF: it begins with <sdf>, not with <robot>"),
    (ROBOT, "<robot>" + 60 * "<a>" + 60 * "</a>" + "</robot>", "is nested deeper than 50 levels"),
]


@pytest.mark.parametrize(("right", "wrong", "message"), WRONG)
def test_wrong_attributes_are_named(tmp_path, right, wrong, message):
    assert right in ROBOT
    path = tmp_path / "robot.urdf"
    path.write_text(ROBOT.replace(right, wrong))
    for write in (
        lambda: repair(path, tmp_path / "new.urdf", everything=True),
        lambda: make_flexible(path, BENT, tmp_path / "new.urdf"),
    ):
        with pytest.raises(ModelError, match=re.escape(message)):
            write()
        assert not (tmp_path / "new.urdf").exists()


@pytest.mark.parametrize("size", ["0 1 1", "-1 1 1"])
def test_shapes_without_volume_are_named(tmp_path, size):
    path = tmp_path / "robot.urdf"
    path.write_text(ROBOT.replace('"1 0.1 0.1"', f'"{size}"'))
    with pytest.raises(ModelError, match="link 'arm' has a box without volume; correct it"):
        repair(path, tmp_path / "new.urdf", everything=True)


def test_a_folder_that_is_missing_is_said(tmp_path):
    path = tmp_path / "robot.urdf"
    path.write_text(ROBOT)
    missing = tmp_path / "nowhere" / "new.urdf"
    for write in (lambda: repair(path, missing), lambda: make_flexible(path, BENT, missing)):
        with pytest.raises(ModelError, match=r"cannot write .*new\.urdf.*a folder that is there"):
            write()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"is no mesh that trimesh can read|has no facets"),
        (b"solid nothing", r"is no mesh that trimesh can read|has no facets"),
        (84 * b"\xff", r"is no mesh that trimesh can read|has no facets"),
        (
            b"solid flat\nfacet normal 0 0 1\nouter loop\nvertex 0 0 0\nvertex 1 0 0\n"
            b"vertex 0 1 0\nendloop\nendfacet\nendsolid flat\n",
            "has no volume",
        ),
    ],
)
def test_a_mesh_that_is_none_is_named(tmp_path, content, message):
    (tmp_path / "part.stl").write_bytes(content)
    path = tmp_path / "robot.urdf"
    path.write_text(ROBOT.replace('<box size="1 0.1 0.1"/>', '<mesh filename="part.stl"/>'))
    with pytest.raises(ModelError, match=rf"link 'arm': .*part\.stl.*({message})"):
        repair(path, tmp_path / "new.urdf", everything=True)


@pytest.mark.parametrize("name", [300 * "x" + ".urdf", '"a\\0b.urdf"', 5000 * "y/"])
def test_names_that_no_file_can_have_are_refused_at_their_place(tmp_path, name):
    path = tmp_path / "robot.loops.yaml"
    path.write_text(f"bulletbridge: 1\nurdf: {name}\n")
    with pytest.raises(LoopFileError, match=r"yaml:2:7: urdf: there is no file") as error:
        read_loops(path)
    assert len(str(error.value)) < 1000


@pytest.mark.parametrize("name", [300 * "x", 300 * "x" + ".urdf", "a\0b.yaml", "a\0b"])
def test_models_whose_names_no_file_can_have_do_not_exist(name):
    with pytest.raises(ModelError, match="there is no file|no model is called"):
        find(name)


def test_a_loops_file_of_megabytes_is_not_parsed(tmp_path):
    path = tmp_path / "huge.loops.yaml"
    entry = "  - {name: l, type: ball, a: {link: c}, b: {link: d}}\n"
    path.write_text("bulletbridge: 1\nurdf: r.urdf\nloops:\n" + entry * (MOST_BYTES // len(entry)))
    with pytest.raises(LoopFileError, match=r"huge\.loops\.yaml: has 2\.0 MB; loops files may"):
        read_loops(path)


@pytest.mark.parametrize("number", ["1e101", "-1e300", "1e999"])
def test_numbers_too_large_to_calculate_with_are_refused(tmp_path, number):
    path = tmp_path / "robot.loops.yaml"
    (tmp_path / "r.urdf").write_text(ROBOT)
    path.write_text(f"bulletbridge: 1\nurdf: r.urdf\ngravity: [0, 0, {number}]\n")
    with pytest.raises(LoopFileError, match=r"gravity\[2\]: must (not be above 1e\+100|be finite)"):
        read_loops(path)


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        ('<mass value="2.0"/>', '<mass value="inf"/>', "link 'coupler': <mass> has value=\"inf\""),
        ('<mass value="2.0"/>', '<mass value="1e300"/>', "none above 1e+100"),
        ('xyz="1 0 0"', 'xyz="nan 0 0"', "joint 'rocker': <origin> has xyz=\"nan 0 0\"; give num"),
        ('rpy="0 0.3 0"', 'rpy="0 0.3"', 'has rpy="0 0.3"; give 3 finite numbers'),
    ],
)
def test_numbers_that_are_none_are_refused_beside_a_loops_file_too(tmp_path, right, wrong, message):
    path = four_bar(tmp_path)
    urdf = tmp_path / "four_bar.urdf"
    assert right in urdf.read_text()
    urdf.write_text(urdf.read_text().replace(right, wrong))
    with pytest.raises(ModelError, match=re.escape(message)):
        bb.load(path)


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        ('<mass value="2.0"/>', '<mass value="inf"/>', r"link 'coupler' \(mass, .*inf.* in Bullet"),
        ('<mass value="2.0"/>', '<mass value="1e300"/>', r"link 'coupler' .*1e\+300.* in Bullet"),
        ('xyz="1 0 0"', 'xyz="nan 0 0"', r"joint 'rocker' \(axis, place\) is .*nan.* in Bullet"),
    ],
)
def test_what_bullet_made_of_numbers_that_are_none_is_named(tmp_path, right, wrong, message):
    urdf = four_bar(tmp_path).with_name("four_bar.urdf")
    urdf.write_text(urdf.read_text().replace(right, wrong))
    client = pybullet.connect(pybullet.DIRECT)
    try:
        body = pybullet.loadURDF(str(urdf), useFixedBase=True, physicsClientId=client)
        with pytest.raises(ModelError, match=message):
            bb.attach(body, client=client)
    finally:
        pybullet.disconnect(client)


JOINT = '<joint name="hinge" type="continuous"><parent link="base"/><child link="arm"/>'
NO_TREES = [
    (' type="continuous"', "", "joint 'hinge' has no type; give one of revolute, continuous"),
    ("continuous", "hinged", "joint 'hinge' has type 'hinged'; give one of revolute, continuous"),
    ('<child link="arm"/>', "<child/>", "joint 'hinge' has a <child> without a link; give it"),
    ('<child link="arm"/>', "", "joint 'hinge' has 0 <child> elements; give it one"),
    (
        '<parent link="base"/>',
        '<parent link="base"/><parent link="arm"/>',
        "joint 'hinge' has 2 <parent> elements; give it one",
    ),
    ('child link="arm"', 'child link="leg"', "has the child 'leg', which is no link; correct the"),
    ('child link="arm"', 'child link="base"', "joint 'hinge' joins 'base' to itself; name two"),
    ('name="hinge"', "", "a joint has no name; give it one"),
    ('<link name="base"/>', "<link/>", "a link has no name; give it one"),
    ('link name="base"', 'link name="arm"', "two links are called 'arm'; give each its own name"),
    (
        "</robot>",
        '<link name="leg"/><joint name="hinge" type="fixed"><parent link="arm"/>'
        '<child link="leg"/></joint></robot>',
        "two joints are called 'hinge'; give each its own name",
    ),
    ('value="2"', 'value="-2"', "link 'arm': the mass is -2 kg; give zero or more"),
    ("</robot>", '<xacro:leg name="l"/></robot>', "it is xacro; expand it first: `xacro rob"),
    ('"arm"', f'"{3000 * "a"}"', "a link has a name of 3000 characters; give it one of at most"),
    ("</robot>", '<link name="leg"/></robot>', "are no child of a joint: 'base', 'leg'; join"),
    (
        "</robot>",
        JOINT.replace("hinge", "other") + "</joint></robot>",
        "joint 'other' is the second one with the child 'arm', after 'hinge'; a URDF is a tree",
    ),
    (
        "</robot>",
        '<joint name="back" type="fixed"><parent link="arm"/><child link="base"/></joint></robot>',
        "no link is the root; join all links in one tree",
    ),
    (
        "</robot>",
        '<link name="c"/><link name="d"/><joint name="cd" type="fixed"><parent link="c"/>'
        '<child link="d"/></joint><joint name="dc" type="fixed"><parent link="d"/>'
        '<child link="c"/></joint></robot>',
        "is below itself; join all in one tree",
    ),
]  # fmt: skip


MALFORMED = [  # with line and column, where Bullet tells no more than that it cannot load the file
    ("</robot>", "", "no element found: line 9"),
    ("</link>", "<", "not well-formed (invalid token): line 7"),
    ('name="hinge"', "name=hinge", "not well-formed (invalid token): line 8"),
    ('<mass value="2"/>', '<mass value="2">', "mismatched tag: line 5"),
    ("</robot>", "</robot><robot/>", "junk after document element: line 10"),
    (ROBOT, "", "no element found: line 1"),
    (ROBOT, "\0" + ROBOT, "no element found: line 1"),
]


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    NO_TREES + [(right, wrong, f"not well-formed XML: {told}") for right, wrong, told in MALFORMED],
)
def test_what_makes_no_tree_is_refused_before_bullet_sees_it(tmp_path, right, wrong, message):
    """Several of these end the process inside ``loadURDF``."""
    assert right in ROBOT
    (tmp_path / "robot.urdf").write_text(ROBOT.replace(right, wrong))
    (tmp_path / "robot.loops.yaml").write_text(
        "bulletbridge: 1\nurdf: robot.urdf\nfixed_base: false\n"
    )
    with pytest.raises(ModelError, match=re.escape(message)):
        bb.load(str(tmp_path / "robot.loops.yaml"))


def test_a_licence_may_stand_above_the_declaration_and_a_blank_in_it(tmp_path):
    path = tmp_path / "robot.urdf"
    path.write_text("<!-- a licence,\nof two lines -->\n<?xml version='1.0'?>\n<robot name='r'/>")
    assert read_xml(path).get("name") == "r"
    path.write_text("<? xml version='1.0' ?>\n<!-- <!-- two -- in one -->\n<robot name='r'/>")
    assert read_xml(path).get("name") == "r"
    path.write_text("<!-- a licence -->\n<?xml version='1.0'?>\n<robot>")
    with pytest.raises(ModelError, match="line 3"):
        read_xml(path)


@pytest.mark.parametrize(
    "odd",
    [
        b"<gazebo:sensor/></robot>",
        b"<!-- -- --></robot>",
        b'<material name="R&D"/></robot>',
        b"<!-- \xe9 --></robot>",
        b'<material name="\xe9"/></robot>',
        b"</robot>\n\0\0",
    ],
)
def test_what_bullet_reads_although_it_is_no_xml_is_left_to_it(tmp_path, odd):
    """Prefixes that nothing declares, as simulators' own elements have; other encodings; zeros."""
    path = tmp_path / "robot.urdf"
    inertial = ROBOT[ROBOT.index("<inertial>") : ROBOT.index("<visual>")]
    whole = ROBOT.replace('<link name="base"/>', f'<link name="base">{inertial}</link>')
    path.write_bytes(whole.encode().replace(b"</robot>", odd))
    (tmp_path / "robot.loops.yaml").write_text(
        "bulletbridge: 1\nurdf: robot.urdf\nfixed_base: false\n"
    )
    with bb.load(str(tmp_path / "robot.loops.yaml")) as loaded:
        assert loaded.system.mechanism.nv >= 1
