"""Loops files: what is read, what is refused and how it is said."""

import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bulletbridge.constraints.loop import (
    Coupling,
    Distance,
    Frame,
    Freedom,
    JointModel,
    LoopJoint,
    Motor,
)
from bulletbridge.constraints.motion import Motion, Polynomial, Sine, Spline
from bulletbridge.errors import LoopFileError, ModelError
from bulletbridge.mechanism.bullet import read_bullet
from bulletbridge.surface.constraint_reader import SIGNALS, TYPES
from bulletbridge.surface.load import load
from bulletbridge.surface.loops_file import _model, read_loops, write_loops
from bulletbridge.surface.model_spec import BodySpec, JointForce, ModelSpec
from bulletbridge.surface.models import bundled, find
from bulletbridge.surface.urdf_names import read_names
from bulletbridge.surface.worlds import connect_direct, disconnect, load_bodies, readable
from bulletbridge.surface.yaml_text import parse_yaml

ROBOT = (
    "<robot name='r'>"
    + "".join(f"<link name='{name}'/>" for name in ("c", "d", "on"))
    + "".join(f"<joint name='{name}' type='revolute'/>" for name in "jk")
    + "<joint name='knee' type='spherical'/><joint name='bolt' type='fixed'/>"
    "<joint name='raft' type='floating'/></robot>"
)
DOCS = Path(__file__).parents[1] / "docs" / "loops-file.md"
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


@pytest.fixture
def write(tmp_path):
    (tmp_path / "robot.urdf").write_text(ROBOT)

    def put(text):
        path = tmp_path / "robot.loops.yaml"
        path.write_text(text)
        return path

    return put


@pytest.fixture
def client():
    number = connect_direct()
    yield number
    disconnect(number)


def test_a_good_file_is_read(write):
    spec = read_loops(write(GOOD))
    assert spec.name == "robot"
    assert spec.bodies[0].fixed_base is True
    assert spec.constraints[0] == LoopJoint(
        "pin", JointModel.BALL, Frame("c", (0.001, 0.0, 0.0)), Frame("on")
    )
    assert spec.constraints[1].pitch == 0.002
    assert spec.constraints[2] == Distance("rod", Frame("c"), Frame("d"), 0.5)
    assert spec.constraints[3].coefficients == {"j": 1.0, "k": -2.0}
    assert spec.start_q == {"j": 0.5}
    assert spec.forces == (JointForce("j", 1.0),)


MISTAKES = [  # text replaced in the good file, by what, line, beginning of the wrong thing, message
    ("type: ball", "type: bal", 5, "bal,", "loops[0].type: unknown 'bal'; did you mean 'ball'?"),
    ("type: ball, ", "", 5, "{name", "loops[0]: key 'type' is missing; give one of ball, weld"),
    ("xyz", "xzy", 5, "xzy", "loops[0].a: unknown key 'xzy'; did you mean 'xyz'?"),
    ("xyz", "pitch", 5, "pitch", "loops[0].a: unknown key 'pitch'; known keys: link, xyz, rpy"),
    ("[1e-3, 0, 0]", "[1, 0]", 5, "[1", "xyz: must be three numbers [x, y, z], not 2"),
    ("1e-3", ".nan", 5, ".nan", "loops[0].a.xyz[0]: must be finite, not '.nan'"),
    ("1e-3", "-.inf", 5, "-.inf", "loops[0].a.xyz[0]: must be finite, not '-.inf'"),
    ("1e-3", "9" * 400, 5, "999", "loops[0].a.xyz[0]: must be finite, not '999"),
    ("1e-3", "one", 5, "one", "loops[0].a.xyz[0]: must be a number, not 'one'"),
    ("1e-3", "true", 5, "true", "loops[0].a.xyz[0]: must be a number, not 'true'"),
    ("a: {link: c, xyz: [1e-3, 0, 0]}", "a: c", 5, "c, b", "a: must be a mapping of keys to"),
    ("link: on", "link: 3", 5, "3}", "loops[0].b.link: must be a name, not '3'; put it in quotes"),
    ("link: on", "link: ", 5, "link: }", "loops[0].b.link: must be a name, not nothing"),
    ("b: {link: on}", "axis: [0, 0, 1]", 5, "axis", "unknown key 'axis'; known keys: name, type,"),
    ("name: pin, ", "", 5, "{type", "loops[0]: key 'name' is missing; add it"),
    ("name: nut", "name: pin", 6, "pin", "'pin' is already in line 5; use each name once"),
    (
        "name: nut",
        "name: nut, name: not",
        6,
        "name: not",
        "key 'name' is already in line 6;",
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
    ("fixed_base: true", "bodies: []", 2, "robot.urdf", "belongs into an entry of 'bodies'"),
    (
        *("urdf: robot.urdf\nfixed_base: true", "bodies: [{name: a/b, urdf: robot.urdf}]"),
        *(2, "a/b", "bodies[0].name: must be without '/'"),
    ),
    ("bulletbridge: 1", "bulletbridge: 9\nnew: 1", 1, "9", "version 9 is unknown; this release"),
    ("bulletbridge: 1\n", "", 1, "urdf", "key 'bulletbridge' is missing; add 'bulletbridge: 1'"),
    ("actuated", "actuatd", 9, "actuatd", "unknown key 'actuatd'; did you mean 'actuated'?"),
    ("actuated: [j]", "actuated: [j, j]", 9, "j]", "'j' is already in line 9; use each name once"),
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
    ("actuated:", "urdf:", 9, "urdf", "key 'urdf' is already in line 2; remove one"),
    ("actuated: [j]", "actuated: [j", 10, ":", "not valid YAML: expected ',' or ']'"),
    ("actuated: [j]", "actuated: *j", 9, "*j", "not valid YAML: found undefined alias 'j'"),
    ("actuated: [j]", "---", 9, "---", "keep one document a file"),
    ("  - {joint", "\t- {joint", 13, "\t", "indent with spaces, not tabs"),
]


@pytest.mark.parametrize(("old", "new", "line", "wrong", "message"), MISTAKES)
def test_mistakes_are_named_with_line_column_key_and_remedy(write, old, new, line, wrong, message):
    assert old in GOOD
    text = GOOD.replace(old, new, 1)
    path = write(text)
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
        (b"#\nloops: " + b"[" * 5000, "2:57: nested too deeply; close the brackets"),
        (b"#\n" + b"a: {" * 5000, "nested too deeply; close the brackets, or indent less"),
        (b"\n".join(b" " * n + b"a:" for n in range(5000)), "51:51: nested too deeply"),
    ],
)
def test_what_is_no_loops_file_is_refused_at_its_place(tmp_path, content, message):
    path = tmp_path / "robot.loops.yaml"
    path.write_bytes(content)
    with pytest.raises(LoopFileError, match=rf"\.yaml:.*{re.escape(message)}"):
        read_loops(path)


def test_a_floating_base_is_a_joint_and_robots_have_their_own_names(write):
    path = write(
        GOOD.replace("fixed_base: true", "").replace("{j: 0.5}", "{base: [0,0,0,0,0,0,1]}")
    )
    assert read_loops(path).start_q["base"][-1] == 1.0
    bodies = "bodies: [{name: l, urdf: robot.urdf}, {name: r, urdf: robot.urdf, fixed_base: true}]"
    two = f"bulletbridge: 1\n{bodies}\nactuated: [%s]\n"
    assert read_loops(write(two % "l/j, r/j, l/base")).actuated == ("l/j", "r/j", "l/base")
    for wrong, near in (("jj", "r/j"), ("l/jj", "l/j"), ("r/base", "l/base")):
        with pytest.raises(LoopFileError, match=f"unknown joint '{wrong}'; did you mean '{near}'"):
            read_loops(write(two % wrong))


def test_quaternions_rounded_to_three_digits_are_taken(write):
    given = [0.577, 0.577, 0.577, 0.036]  # each half a unit of the last digit off, or less
    path = write(GOOD.replace("{j: 0.5}", f"{{knee: {given}}}"))
    assert read_loops(path).start_q == {"knee": given}


def test_names_are_those_that_the_reader_knows(client):
    for model in bundled():
        spec = read_loops(find(model))
        names = read_names(spec.bodies)
        mechanism = read_bullet(readable(load_bodies(spec, client)), client).mechanism
        assert names.links == set(mechanism.links)
        assert set(names.joints) == set(mechanism.joints)


@pytest.mark.parametrize("urdf", ["", "<robot", "<robot name='r'/>"])
def test_what_is_no_urdf_is_left_to_bullet(write, tmp_path, urdf):
    path = write(GOOD)
    (tmp_path / "robot.urdf").write_text(urdf)
    spec = read_loops(path)
    with pytest.raises(ModelError, match="Bullet cannot load"):
        load(spec)


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


numbers = st.floats(allow_nan=False, allow_infinity=False)
triples = st.tuples(numbers, numbers, numbers)
words = st.sampled_from(["on", "null", "1e-3", "2001-01-01", "a: b", "- c", "# d", "<<", "", "~"])
names = st.one_of(st.from_regex(r"[a-z]\w{0,8}", fullmatch=True), words.map(lambda w: w or "e"))
frames = st.builds(Frame, names, triples, triples)
knots = st.lists(
    st.tuples(numbers, numbers), min_size=2, max_size=5, unique_by=lambda knot: knot[0]
)
splines = st.tuples(knots, st.sampled_from(["clamped", "natural"])).map(
    lambda drawn: Spline(*zip(*sorted(drawn[0]), strict=True), drawn[1])
)
polynomials = st.builds(Polynomial, st.lists(numbers, min_size=1, max_size=4).map(tuple))
signals = st.one_of(st.builds(Sine, numbers, numbers, numbers, numbers), polynomials, splines)
lengths = st.floats(1e-3, 1e3)
axes = st.tuples(lengths, numbers.filter(lambda x: abs(x) < 1e100), st.just(0.0))
motions = st.one_of(
    st.none(),
    st.builds(Motion, x=signals),
    st.builds(Motion, y=signals, angle=signals, axis=st.one_of(st.none(), axes)),
)
shifts = st.one_of(st.none(), st.builds(Motion, z=signals))
nonzero = numbers.filter(bool)
limits = st.none() | lengths
freedoms = st.builds(
    Freedom,
    st.none() | st.tuples(numbers, numbers).map(lambda pair: tuple(sorted(pair))),
    lengths,
    st.none() | st.builds(Motor, lengths, numbers, st.none() | numbers, numbers, numbers),
)


@st.composite
def joints(draw) -> LoopJoint:
    model = draw(st.sampled_from(JointModel))
    keys = {*TYPES[model.value].required, *TYPES[model.value].optional}
    free = st.lists(st.tuples(*[nonzero] * 6), min_size=1, max_size=3).map(tuple)
    given_by_key = {
        "axis": axes,
        "axis_b": axes,
        "pitch": nonzero,
        "radius": lengths,
        "free": free,
        "turn": st.none() | freedoms,
        "travel": st.none() | freedoms,
    }
    extra = {key: draw(values) for key, values in given_by_key.items() if key in keys}
    extra |= {"max_force": draw(limits), "motion": draw(motions)}
    return LoopJoint(draw(names), model, draw(frames), draw(frames), **extra)


rods = st.builds(Distance, names, frames, frames, lengths, shifts, limits)
gears = st.builds(
    Coupling,
    names,
    st.dictionaries(names, nonzero, min_size=1, max_size=3),
    numbers,
    shifts,
    limits,
)
loops = st.lists(st.one_of(joints(), rods, gears), max_size=4, unique_by=lambda c: c.name)
quaternions = st.lists(st.floats(-1, 1), min_size=4, max_size=4).map(
    lambda x: list(map(float, np.array(x) / np.linalg.norm(x))) if any(x) else [0.0, 0.0, 0.0, 1.0]
)
starts = st.dictionaries(names, st.one_of(numbers, quaternions), max_size=3)


@settings(max_examples=100, deadline=None)
@given(loops, triples, starts, lengths, st.booleans())
def test_what_is_written_is_read_back(tmp_path_factory, constraints, xyz, start, scale, several):
    folder = tmp_path_factory.mktemp("models")
    (folder / "a.urdf").write_text("<robot/>")
    bodies = [BodySpec("robot", folder / "a.urdf", True, xyz, (0.0, 0.1, 0.2), scale)]
    if several:
        bodies.append(BodySpec("other", folder / "a.urdf"))
    forces = (JointForce("j", 1.0, 2.0, 3.0, 4.0), JointForce("k", damping=0.5))
    speeds = {"ball": [0.0, 1.0, 2.0], "j": 1.0}
    spec = ModelSpec(
        *("m", folder / "m", tuple(bodies), tuple(constraints)),
        *(("j",), xyz, start, speeds, forces, start),
    )
    path = folder / "other.loops.yaml"
    write_loops(spec, path)
    assert read_loops(path) == spec
    assert read_loops(path).name == "other"


def one_robot(folder, *constraints, **rest) -> ModelSpec:
    (folder / "a.urdf").write_text("<robot/>")
    bodies = (BodySpec("robot", folder / "a.urdf"),)
    return ModelSpec("m", folder / "m.loops.yaml", bodies, constraints, **rest)


def test_numbers_of_numpy_are_written_as_plain_ones(tmp_path):
    origin = Frame("c", tuple(np.zeros(3)), np.array([0.0, 0.1, 0.2]))
    spec = one_robot(tmp_path, Distance("rod", origin, origin, np.float64(2.0)))
    write_loops(spec, spec.path)
    frame = Frame("c", (0.0, 0.0, 0.0), (0.0, 0.1, 0.2))
    assert read_loops(spec.path).constraints == (Distance("rod", frame, frame, 2.0),)


def test_a_written_file_says_no_more_than_needed(tmp_path):
    spec = one_robot(tmp_path, LoopJoint("pin", JointModel.BALL, Frame("c"), Frame("d")))
    write_loops(spec, spec.path)
    assert spec.path.read_text() == (
        "bulletbridge: 1\nurdf: a.urdf\nfixed_base: false\nloops:\n"
        "- name: pin\n  type: ball\n  a: {link: c}\n  b: {link: d}\n"
    )


C = Frame("c")


@pytest.mark.parametrize(
    ("constraints", "message"),
    [
        ([Distance("rod", C, C, float("nan"))], "loops[0].length: must be finite, not '.nan'"),
        ([Distance("rod", C, C, 1.0)] * 2, "'rod' is already in line"),
        ([LoopJoint("pin", JointModel.BALL, C, C, pitch=1.0)], "loops[0]: unknown key 'pitch'"),
    ],
)
def test_nothing_is_written_that_could_not_be_read(tmp_path, constraints, message):
    spec = one_robot(tmp_path, *constraints)
    spec.path.write_text("before")
    with pytest.raises(LoopFileError, match=re.escape(message)) as error:
        write_loops(spec, spec.path)
    assert str(error.value).startswith("not written, for it could not be read back: ")
    assert spec.path.read_text() == "before"


def test_python_functions_cannot_be_written(tmp_path):
    gear = Coupling("g", {"j": 1.0}, motion=Motion(z=lambda t: (t, 1.0, 0.0)))
    spec = ModelSpec("m", tmp_path / "m", (BodySpec("robot", tmp_path / "a.urdf"),), (gear,))
    with pytest.raises(LoopFileError, match="along z is the Python function.*use Sine"):
        write_loops(spec, tmp_path / "m.loops.yaml")


def test_every_example_of_the_page_is_read(tmp_path):
    (tmp_path / "four_bar.urdf").write_text("<robot/>")
    blocks = re.findall(r"```yaml\n(.*?)```", DOCS.read_text(), re.DOTALL)
    assert len(blocks) == 8
    for block in blocks:
        path = tmp_path / "example.loops.yaml"
        path.write_text(block)
        read_loops(path)
    said = "".join(blocks)
    assert {kind for kind in TYPES if f"type: {kind}," in said} == set(TYPES)
    assert {signal for signal in SIGNALS if f"{signal}: " in said} == set(SIGNALS)


@pytest.mark.parametrize("wrong", ["rocker, xzy", "rockr, xyz"])
def test_the_errors_on_the_page_are_those_that_are_raised(tmp_path, wrong):
    shutil.copy(bundled()["four_bar"].parent / "four_bar.urdf", tmp_path)
    block = re.search(r"```yaml\n(.*?)```", DOCS.read_text(), re.DOTALL)[1]
    path = tmp_path / "four_bar.loops.yaml"
    path.write_text(block.replace("{link: rocker, xyz", f"{{link: {wrong}"))
    with pytest.raises(LoopFileError) as error:
        read_loops(path)
    assert f"    {str(error.value).replace(str(path), path.name)}\n" in DOCS.read_text()


def test_models_are_found_by_name_and_by_path(tmp_path):
    with pytest.raises(ModelError, match=r"no model is called 'four_bor'; did you mean four_bar"):
        find("four_bor")
    assert find("four_bar") == bundled()["four_bar"]
    (tmp_path / "r.urdf").write_text("<robot/>")
    with pytest.raises(ModelError, match=r"no loops file beside it; write r\.loops\.yaml"):
        find(tmp_path / "r.urdf")
    (tmp_path / "r.loops.yaml").write_text("")
    assert find(tmp_path / "r.urdf") == tmp_path / "r.loops.yaml"
    with pytest.raises(ModelError, match="there is no file"):
        find(tmp_path / "gone.loops.yaml")
