"""Loops files: what is refused and how it is said."""

import re
import shutil

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.loops_files import DOCS, GOOD
from support.urdf_builder import inertial, joint, link, robot

from bulletbridge.errors import LoopFileError, ModelError
from bulletbridge.models.bundled import bundled, find
from bulletbridge.models.load import load
from bulletbridge.models.loops_file import _model, read_loops
from bulletbridge.models.yaml_text import parse_yaml

MISTAKES = [  # text replaced in the good file, by what, line, beginning of the wrong thing, message
    ("type: ball", "type: bal", 5, "bal,", "loops[0].type: unknown 'bal'; did you mean 'ball'?"),
    ("type: ball", "type: point2point", 5, "point2", "'point2point' is called 'ball' here"),
    ("type: screw", "type: hinge", 6, "hinge", "loops[1].type: 'hinge' is called 'revolute' here"),
    ("type: ball, ", "", 5, "{name", "loops[0]: key 'type' is missing; give one of ball, weld"),
    ("xyz", "xzy", 5, "xzy", "loops[0].a: unknown key 'xzy'; did you mean 'xyz'?"),
    ("xyz", "pitch", 5, "pitch", "loops[0].a: unknown key 'pitch'; known keys: link, xyz, rpy"),
    ("[1e-3, 0, 0]", "[1, 0]", 5, "[1", "xyz: must be three numbers [x, y, z], not 2"),
    ("1e-3", ".nan", 5, ".nan", "loops[0].a.xyz[0]: must be finite, not '.nan'"),
    ("1e-3", "-.inf", 5, "-.inf", "loops[0].a.xyz[0]: must be finite, not '-.inf'"),
    ("1e-3", "9" * 400, 5, "999", "loops[0].a.xyz[0]: must be finite, not '999"),
    ("1e-3", "one", 5, "one", "loops[0].a.xyz[0]: must be a number, not 'one'"),
    ("1e-3", "true", 5, "true", "loops[0].a.xyz[0]: must be a number, not 'true'"),
    ("a: {link: c, xyz: [1e-3, 0, 0]}", "a: c", 5, "c, b", "not 'c'; write {link: c}"),
    ("[0, 0, -9.81]", "-9.81", 10, "-9.81", "must be a list, not '-9.81'; write [0, 0, -9.81]"),
    ("{q: {j: 0.5}", "{j: 0.5", 11, "j: 0.5", "positions stand under q, as {q: {j: 0.5}}"),
    (
        "actuated: [j]",
        "base: fixed",
        9,
        "fixed",
        "base: must be a mapping of keys to values, not 'fixed'; write fixed_base: true",
    ),
    ("actuated: [j]", "base: {fixed: yes}", 9, "fixed", "write fixed_base: true beside base"),
    ("actuated: [j]", "dt: 0.01", 9, "dt", "no part of the robot; give it to load(..., dt=...)"),
    ("link: on", "link: 3", 5, "3}", "loops[0].b.link: must be a name, not '3'; put it in quotes"),
    ("link: on", "link: ", 5, "link: }", "loops[0].b.link: must be a name, not nothing"),
    ("b: {link: on}", "axis: [0, 0, 1]", 5, "axis", "unknown key 'axis'; known keys: name, type,"),
    ("name: pin, ", "", 5, "{type", "loops[0]: key 'name' is missing; add it"),
    ("name: nut", "name: pin", 6, "pin", "'pin' is already on line 5; use each name once"),
    (
        "name: nut",
        "name: nut, name: not",
        6,
        "name: not",
        "key 'name' is already on line 6;",
    ),
    ("name: nut", "<<: {name: nut}", 6, "<<", "no merge key '<<'; write the entries out"),
    (", pitch: 0.002", "", 6, "{name", "loops[1]: key 'pitch' is missing; add it"),
    ("pitch: 0.002", "pitch: 0", 6, "0}", "loops[1].pitch: must not be zero"),
    ("pitch: 0.002", "pitch: 1, axis: [0, 0, 0]", 6, "[0, 0", "loops[1].axis: has no direction"),
    ("pitch: 0.002", "pitch: 1, axis: [0, 0, 1e-300]", 6, "[0, 0", "axis: has no direction: give"),
    ("length: 0.5", "length: -1", 7, "-1", "loops[2].length: must be above zero, not -1"),
    ("length: 0.5", "length: 1, motion: {x: {}}", 7, "x: {", "unknown key 'x'; known keys: z"),
    ("{j: 1, k: -2}", "{}", 8, "{}", "loops[3].joints: is empty; give a factor for each joint"),
    ("{j: 1, k: -2}", "{j: 0}", 8, "0}", "loops[3].joints.j: must not be zero"),
    ("{j: 1, k: -2}", "{1: 1}", 8, "1: 1", "joints: must be a name, not '1'; put it in quotes"),
    ("{polynomial: [0, 1]}", "{sin: 1}", 8, "sin", "motion.z: unknown key 'sin'; did you mean"),
    ("{polynomial: [0, 1]}", "{}", 8, "{}}", "must be one of sine, polynomial, spline"),
    ("[0, 1]", "[]", 8, "[]", "is empty; give the coefficients from the constant up"),
    ("{z: {polynomial: [0, 1]}}", "{}", 8, "{}}", "moves nothing; give a signal for z"),
    ("polynomial: [0, 1]", "sine: {phase: 1}", 8, "{phase", "key 'amplitude' is missing; add it"),
    (
        *("polynomial: [0, 1]", "spline: {times: [0, 0], values: [1, 2]}"),
        *(8, "[0, 0]", "spline.times: must increase; sort them"),
    ),
    (
        *("polynomial: [0, 1]", "spline: {times: [0], values: [1, 2]}"),
        *(8, "{times", "spline: has 1 times and 2 values; give two or more of each"),
    ),
    (
        *("polynomial: [0, 1]", "spline: {times: [0, 1], values: [1, 2], ends: clampd}"),
        *(8, "clampd", "unknown 'clampd'; did you mean 'clamped'?"),
    ),
    ("[1e-3, 0, 0]}", "[0, 0, 0]}, motion: {axis: [1, 0, 0]}", 5, "{axis", "moves nothing"),
    (
        *("b: {link: on}", "b: {link: on}, motion: {x: {polynomial: [1]}, axis: [1, 0, 0]}"),
        *(5, "[1, 0, 0]", "motion.axis: turns nothing; add 'angle', or remove it"),
    ),
    ("fixed_base: true", "fixed_base: on", 3, "on", "must be true or false, not 'on'"),
    ("urdf: robot", "urdf: rabot", 2, "rabot", "urdf: there is no file"),
    ("urdf: robot.urdf\n", "", 1, "b", "key 'urdf' is missing; name one file, or several robots"),
    ("urdf: robot.urdf\nfixed_base: true", "bodies: []", 2, "[]", "bodies: is empty; give one"),
    ("fixed_base: true", "bodies: []", 2, "robot.urdf", "belongs in an entry of 'bodies'"),
    (
        *("urdf: robot.urdf\nfixed_base: true", "bodies: [{name: a/b, urdf: robot.urdf}]"),
        *(2, "a/b", "bodies[0].name: must not contain '/'"),
    ),
    ("bulletbridge: 1", "bulletbridge: 9\nnew: 1", 1, "9", "version 9 is unknown; this release"),
    ("bulletbridge: 1\n", "", 1, "urdf", "key 'bulletbridge' is missing; add 'bulletbridge: 1'"),
    ("actuated", "actuatd", 9, "actuatd", "unknown key 'actuatd'; did you mean 'actuated'?"),
    ("actuated: [j]", "actuated: [j, j]", 9, "j]", "'j' is already on line 9; use each name once"),
    ("actuated: [j]", "actuated:", 9, "actuated", "actuated: must be a list, not nothing"),
    ("actuated: [j]", "actuated: !robot [j]", 9, "!robot", "must be a list, not '!robot'"),
    ("torque: 1", "force: 1", 13, "force", "unknown key 'force'; did you mean 'torque'?"),
    (
        ", torque: 1",
        "",
        13,
        "{joint",
        "exerts nothing; give torque, stiffness, damping or friction",
    ),
    ("start: {q", "start: {p", 11, "p: ", "start: unknown key 'p'; known keys: q, v, guess"),
    ("{j: 0.5}", "{j: [1, 2]}", 11, "[1, 2]", "start.q.j: must be a number, a list of 4 for"),
    ("link: c, xyz", "link: cc, xyz", 5, "cc", "a.link: unknown link 'cc'; did you mean 'c'?"),
    ("link: on", "link: won", 5, "won", "loops[0].b.link: unknown link 'won'; did you mean 'on'"),
    ("link: on", "link: zzz", 5, "zzz", "unknown link 'zzz'; there are: c, d, on, world"),
    ("link: d}, length", "link: e}, length", 7, "e}", "loops[2].b.link: unknown link 'e'; there"),
    ("k: -2", "kn: -2", 8, "kn", "loops[3].joints: unknown joint 'kn'; did you mean 'knee'?"),
    ("k: -2", "knee: -2", 8, "knee", "'knee' is spherical; name a revolute or prismatic joint"),
    ("[j]", "[j, jj]", 9, "jj", "actuated[1]: unknown joint 'jj'; did you mean 'j'?"),
    ("[j]", "[bolt]", 9, "bolt", "joint 'bolt' is fixed in Bullet; name one that moves"),
    ("[j]", "[raft]", 9, "raft", "joint 'raft' is fixed in Bullet; name one that moves"),
    ("{q: {j", "{q: {kk", 11, "kk", "start.q: unknown joint 'kk'; did you mean 'k'?"),
    ("v: {j", "v: {kk", 11, "kk", "start.v: unknown joint 'kk'; did you mean 'k'?"),
    ("{q: {j", "{guess: {kk", 11, "kk", "start.guess: unknown joint 'kk'; did you mean 'k'?"),
    ("{q: {j", "{q: {base", 11, "base", "start.q: unknown joint 'base'; there are: j, k, knee"),
    ("joint: j", "joint: i", 13, "i,", "forces[0].joint: unknown joint 'i'; there are: j, k"),
    ("joint: j", "joint: knee", 13, "knee", "'knee' is spherical; name a revolute or prismatic"),
    ("{j: 0.5}", "{knee: 0.5}", 11, "0.5", "must be a list of 4 numbers for a spherical joint"),
    ("{j: 0.5}", "{j: [0, 0, 0, 1]}", 11, "[0, 0", "must be a number for a revolute joint"),
    ("v: {j: 1}", "v: {knee: 1}", 11, "1}", "must be a list of 3 numbers for a spherical joint"),
    (
        *("{j: 0.5}", "{knee: [0, 0, 3, 4]}", 11, "[0, 0, 3"),
        "start.q.knee: the quaternion x, y, z, w has length 5, not 1; divide by it: [0, 0, 0.6, 0",
    ),
    (
        *("q: {j: 0.5}", "guess: {base: [9, 9, 9, 0, 0, 0, 1.01]}", 11, "[9, 9"),
        "start.guess.base: the quaternion x, y, z, w has length 1.01, not 1; divide by it: [0, 0,",
    ),
    ("{j: 0.5}", "{knee: [0, 0, 0, 0]}", 11, "[0, 0", "length 0, not 1; for no turn give: [0, 0,"),
    ("[j]", "{j: 1}", 9, "{j", "must be a list, not a mapping; begin each entry with '- '"),
    ("{j: 1, k: -2}", "[j, k]", 8, "[j", "mapping of keys to values, not a list; write 'key: v"),
    ("actuated:", "urdf:", 9, "urdf", "key 'urdf' is already on line 2; remove one"),
    ("actuated: [j]", "actuated: [j", 10, ":", "not valid YAML: expected ',' or ']'"),
    ("actuated: [j]", "actuated: *j", 9, "*j", "not valid YAML: found undefined alias 'j'"),
    ("actuated: [j]", "---", 9, "---", "keep one document a file"),
    ("[1e-3, 0, 0]", "1, 0, 0", 5, "0, 0}", "'0' stands where a key should; put lists in brackets"),
    (
        "[1e-3, 0, 0]",
        "'1 0 0'",
        5,
        "'1 0",
        "must be a list, not '1 0 0'; put it in brackets: [1, 0,",
    ),
    ("[1e-3, 0, 0]", "[1 0 0]", 5, "1 0 0", "not '1 0 0'; put commas between numbers"),
    ("actuated: [j]", "actuated: j", 9, "j", "must be a list, not 'j'; put it in brackets: [j]"),
    ("pitch: 0.002", "pitch: 1, axis: -y", 6, "-y", "must be a list, not '-y'; write [0, -1, 0]"),
    ("{q: {j: 0.5}", "{q: {j: 90 deg}", 11, "90", "'90 deg'; in radians that is 1.57079633"),
    ("{q: {j: 0.5}", "{q: {j: -pi/4}", 11, "-pi", "is calculated here: write -0.785398163"),
    ("{q: {j: 0.5}", "{q: {j: 2*pi}", 11, "2*pi", "is calculated here: write 6.28318531"),
    ("fixed_base: true", "fixed_base: yes", 3, "yes", "true or false, not 'yes'; write true"),
    ("actuated", "motors", 9, "motors", "unknown key 'motors'; did you mean 'actuated'?"),
    ("loops:", "constraints:", 4, "constr", "unknown key 'constraints'; did you mean 'loops'?"),
    ("b: {link: on}", "child: {link: on}", 5, "child", "key 'child'; did you mean 'b'?"),
    ("type: ball", "type: JOINT_POINT2POINT", 5, "JOINT", "'JOINT_POINT2POINT' is called 'ball'"),
    ("type: ball", "type: Weld", 5, "Weld", "'Weld' is called 'weld' here"),
    ("  - {joint", "\t- {joint", 13, "\t", "indent with spaces, not tabs"),
]


@pytest.mark.parametrize(("old", "new", "line", "wrong", "message"), MISTAKES)
def test_mistakes_are_named_with_line_column_key_and_remedy(
    loops_file, old, new, line, wrong, message
):
    assert old in GOOD
    text = GOOD.replace(old, new, 1)
    path = loops_file(text)
    with pytest.raises(LoopFileError) as error:
        read_loops(path)
    said = str(error.value)
    assert message in said
    found, column = map(int, re.match(rf"{re.escape(str(path))}:(\d+):(\d+): ", said).groups())
    assert found == line
    assert text.splitlines()[line - 1][column - 1 :].startswith(wrong)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "1:1: the file is empty; begin with 'bulletbridge: 1'"),
        (b"# only a comment\n", "1:1: the file is empty"),
        (b"robot", "1:1: must be a mapping of keys to values, not 'robot'"),
        (b"\xff\xfe", "1:1: byte 0xff is not text in UTF-8 (invalid start byte); save the file in"),
        ("# \u00e9\n# gr\u00fc\u00df".encode() + b"\xfc", "2:7: byte 0xfc is not text in UTF-8"),
        ("#\r\nloops:".encode("utf-16-le"), "1:2: character #x0000 is not allowed in YAML"),
        (b"#\nloops: \x01", "2:8: character #x0001 is not allowed in YAML; remove it"),
        (b"#" + 5000 * b" " + b"\n#\n \x01", "3:2: character #x0001 is not allowed"),
        (b"#\nloops: " + b"[" * 1500, "2:57: nested too deeply; close the brackets"),
        (b"#\n" + b"a: {" * 5000, "nested too deeply; close the brackets, or indent less"),
        (b"\n".join(b" " * n + b"a:" for n in range(1500)), "51:51: nested too deeply"),
    ],
)
def test_what_is_no_loops_file_is_refused_at_its_place(tmp_path, content, message):
    path = tmp_path / "robot.loops.yaml"
    path.write_bytes(content)
    with pytest.raises(LoopFileError, match=rf"\.yaml:.*{re.escape(message)}"):
        read_loops(path)


@given(
    st.text(alphabet="[]{}:,-&*!|>'\"% #\n\r\x85\tabx01.<", max_size=40), st.integers(0, len(GOOD))
)
def test_no_text_makes_anything_but_a_loop_file_error(text, at):
    try:
        _model(parse_yaml(GOOD[:at] + text + GOOD[at:], DOCS))
    except LoopFileError:
        pass


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ModelError, match=r"cannot read .*gone\.loops\.yaml"):
        read_loops(tmp_path / "gone.loops.yaml")


@pytest.mark.parametrize("wrong", ["rocker, xzy", "rockr, xyz"])
def test_the_errors_on_the_page_are_those_that_are_raised(tmp_path, wrong):
    shutil.copy(bundled()["four_bar"].parent / "four_bar.urdf", tmp_path)
    block = re.search(r"```yaml\n(.*?)```", DOCS.read_text(), re.DOTALL)[1]
    path = tmp_path / "four_bar.loops.yaml"
    path.write_text(block.replace("{link: rocker, xyz", f"{{link: {wrong}"))
    with pytest.raises(LoopFileError) as error:
        read_loops(path)
    assert f"    {str(error.value).replace(str(path), path.name)}\n" in DOCS.read_text()


@pytest.mark.parametrize(
    ("urdf", "said"),
    [
        ("arm.urdf.xacro side:=1", "arm.urdf.xacro asks for no argument 'side'; none is"),
        ("arm.loops.yaml side:=1", "arm.loops.yaml is no xacro; leave side:= out"),
        ("package://arm/gone.urdf", "urdf: there is no file 'package://arm/gone.urdf'; give a"),
        ("plane.urdf", "plane.urdf'; PyBullet's own is pybullet_data/plane.urdf"),
        (
            "ARM.URDF.XACRO",
            "ARM.URDF.XACRO'; did you mean 'arm.urdf.xacro'? Or give",
        ),
    ],
)
def test_robots_that_are_no_urdf_are_told_with_the_remedy(tmp_path, urdf, said):
    (tmp_path / "arm.urdf.xacro").write_text('<robot name="arm"/>')
    path = tmp_path / "arm.loops.yaml"
    path.write_text(f"bulletbridge: 1\nurdf: {urdf}\n")
    with pytest.raises(LoopFileError) as caught:
        read_loops(path)
    assert said in str(caught.value)


def test_a_robot_may_be_named_by_its_package(tmp_path):
    urdf = tmp_path / "arm" / "urdf" / "arm.urdf"
    urdf.parent.mkdir(parents=True)
    urdf.write_text('<robot name="arm"><link name="base"/></robot>')
    path = tmp_path / "arm" / "arm.loops.yaml"
    path.write_text("bulletbridge: 1\nurdf: package://arm/urdf/arm.urdf\n")
    assert read_loops(path).bodies[0].urdf == urdf.resolve()


def test_a_folder_is_no_model(tmp_path):
    for name in ("b.urdf", "notes.txt", "a.SDF"):
        (tmp_path / name).touch()
    with pytest.raises(
        ModelError, match=r"is a folder; name the robot's file in it: a.SDF, b\.urdf$"
    ):
        find(tmp_path)


def test_angles_that_look_like_degrees_are_told(tmp_path):
    """Whole numbers beyond a turn are; half a turn, a saved wheel's angle, metres, limits that mean
    none are not."""
    joints = "".join(
        f'<joint name="{name}" type="{kind}"><parent link="a"/><child link="{name}_l"/></joint>'
        f'<link name="{name}_l"/>'
        for name, kind in (("knee", "continuous"), ("wheel", "continuous"), ("lift", "prismatic"))
    )
    (tmp_path / "r.urdf").write_text(f'<robot name="r"><link name="a"/>{joints}</robot>')
    path = tmp_path / "r.loops.yaml"
    path.write_text(
        "bulletbridge: 1\nurdf: r.urdf\nfixed_base: true\n"
        "start: {q: {knee: 45, wheel: 45.25, lift: 12}}\nloops:\n"
        "  - {name: pin, type: weld, a: {link: knee_l, rpy: [0, -90, 3]}, b: {link: wheel_l}}\n"
        "  - {name: hinge, type: revolute, a: {link: knee_l}, b: {link: wheel_l},"
        " turn: {limits: [-100, 120]}}\n"
        "joints: {wheel: {limits: [-90, 10]}, lift: {limits: [-90, 90]}}\n"
    )
    assert read_loops(path).notes == (
        "start of joint 'knee' is 45 rad, 7.2 turns; if degrees are meant, write 0.785398",
        "rpy of frame a of 'pin' is -90 rad, 14.3 turns; if degrees are meant, write -1.5708",
        "a limit of joint 'wheel' is -90 rad, 14.3 turns; if degrees are meant, write -1.5708",
        "a limit of the turn of 'hinge' is 120 rad, 19.1 turns; if degrees are meant, write 2.0944",
    )


BODY = inertial(1.0, (0.1, 0.1, 0.1))
FOLLOWING = robot(
    *(link(name, BODY) for name in ("palm", "left", "right")),
    joint("drive", "continuous", "palm", "left"),
    joint("follow", "continuous", "palm", "right").replace(
        "</joint>", '<mimic joint="drive" multiplier="-2" offset="0.5"/></joint>'
    ),
)


@pytest.mark.parametrize(
    "body",
    [
        "urdf: hand.urdf\nfixed_base: true\n",
        "bodies: [{name: a, urdf: hand.urdf, fixed_base: true}]\n",
    ],
)
def test_joints_that_mimic_others_follow_where_the_file_says_so(tmp_path, body):
    (tmp_path / "hand.urdf").write_text(FOLLOWING)
    path = tmp_path / "hand.loops.yaml"
    head = f"bulletbridge: 1\n{body}"
    path.write_text(head)
    (said,) = read_loops(path).notes
    assert "nothing leads 'follow'" in said and "'mimic: true' couples" in said
    path.write_text(f"{head}mimic: false\n")
    assert read_loops(path).notes == () and not read_loops(path).constraints
    path.write_text(f"{head}mimic: true\n")
    assert read_loops(path).notes == ()
    with load(path, "new") as model:
        system = model.system
        system.assemble({"drive": 0.3})
        assert system.dof == 1
        assert system.q["follow"] == pytest.approx(0.5 - 2 * 0.3, abs=1e-12)
    gear = "loops: [{name: gear, type: gear, joints: {drive: 1, follow: 1}}]\n"
    path.write_text(head + gear)
    assert read_loops(path).notes == ()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("closed_loop: [[a, b]]", "Gepetto's file of closures: load the URDF beside it"),
        ("dh: [[0, 0, 0.1, 0]]", "no loops file: one has 'bulletbridge: 1', the robot under"),
    ],
)
def test_files_of_others_are_told_as_such(tmp_path, text, told):
    path = tmp_path / "other.yaml"
    path.write_text(text)
    with pytest.raises(LoopFileError, match=re.escape(told)):
        read_loops(path)
