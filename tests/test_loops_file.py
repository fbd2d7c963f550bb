"""Loops files: what is read, what is refused and how it is said."""

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bulletbridge.constraints.loop import (
    Coupling,
    Distance,
    Frame,
    JointModel,
    LoopJoint,
)
from bulletbridge.constraints.motion import Motion, Polynomial, Sine, Spline
from bulletbridge.errors import LoopFileError, ModelError
from bulletbridge.surface.loops_file import read_loops
from bulletbridge.surface.loops_writer import write_loops
from bulletbridge.surface.model_spec import BodySpec, JointForce, ModelSpec
from bulletbridge.surface.models import bundled, find

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
    (tmp_path / "robot.urdf").write_text("<robot name='r'/>")

    def put(text):
        path = tmp_path / "robot.loops.yaml"
        path.write_text(text)
        return path

    return put


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


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("type: ball", "type: bal", 5, "loops[0].type: unknown 'bal'; did you mean 'ball'?"),
        ("type: ball, ", "", 5, "loops[0]: key 'type' is missing; give one of ball, weld"),
        ("xyz", "xzy", 5, "loops[0].a: unknown key 'xzy'; did you mean 'xyz'?"),
        ("xyz", "pitch", 5, "loops[0].a: unknown key 'pitch'; known keys: link, xyz, rpy"),
        ("[1e-3, 0, 0]", "[1, 0]", 5, "loops[0].a.xyz: must be three numbers [x, y, z], not 2"),
        ("1e-3", ".nan", 5, "loops[0].a.xyz[0]: must be finite, not nan"),
        ("1e-3", "one", 5, "loops[0].a.xyz[0]: must be a number, not 'one'"),
        (
            "a: {link: c, xyz: [1e-3, 0, 0]}",
            "a: c",
            5,
            "a: must be a mapping of keys to values, not",
        ),
        ("name: pin, ", "", 5, "loops[0]: key 'name' is missing; add it"),
        ("name: nut", "name: pin", 6, "the name 'pin' is taken by the loop in line 5"),
        (", pitch: 0.002", "", 6, "loops[1]: key 'pitch' is missing; add it"),
        ("pitch: 0.002", "pitch: 0", 6, "loops[1].pitch: must not be zero"),
        ("pitch: 0.002", "pitch: 1, axis: [0, 0, 0]", 6, "loops[1].axis: has no direction"),
        ("length: 0.5", "length: -1", 7, "loops[2].length: must be above zero, not -1"),
        ("{j: 1, k: -2}", "{}", 8, "loops[3].joints: is empty; give a factor for each joint"),
        ("{polynomial: [0, 1]}", "{sin: 1}", 8, "loops[3].motion.z: unknown key 'sin'; did you"),
        ("{z: {polynomial: [0, 1]}}", "{}", 8, "moves nothing; give a signal for x, y, z or angle"),
        (
            "{polynomial: [0, 1]}",
            "{spline: {times: [0, 0], values: [1, 2]}}",
            8,
            "spline.times: must increase",
        ),
        ("fixed_base: true", "fixed_base: on", 3, "fixed_base: must be true or false, not 'on'"),
        ("urdf: robot", "urdf: rabot", 2, "urdf: there is no file"),
        ("urdf: robot.urdf\n", "", 1, "key 'urdf' is missing; name one file, or several robots"),
        ("bulletbridge: 1", "bulletbridge: 9", 1, "version 9 is unknown; this release reads 1"),
        ("bulletbridge: 1\n", "", 1, "key 'bulletbridge' is missing; add it"),
        ("actuated", "actuatd", 9, "unknown key 'actuatd'; did you mean 'actuated'?"),
        ("torque: 1", "force: 1", 13, "unknown key 'force'; did you mean 'torque'?"),
        (", torque: 1", "", 13, "exerts nothing; give torque, stiffness or damping"),
        ("start: {q", "start: {p", 11, "start: unknown key 'p'; known keys: q, v, guess"),
        ("actuated:", "urdf:", 9, "not valid YAML: found duplicate key"),
        ("actuated: [j]", "actuated: [j", 10, "not valid YAML"),
        ("  - {joint", "\t- {joint", 13, "indent with spaces, not tabs"),
    ],
)
def test_mistakes_are_named_with_line_key_and_remedy(write, old, new, line, message):
    assert old in GOOD
    path = write(GOOD.replace(old, new, 1))
    with pytest.raises(LoopFileError) as error:
        read_loops(path)
    said = str(error.value)
    assert message in said
    assert re.match(rf"{re.escape(str(path))}:(\d+): ", said)
    assert int(said.removeprefix(f"{path}:").split(":")[0]) == line


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ModelError, match=r"cannot read .*gone\.loops\.yaml"):
        read_loops(tmp_path / "gone.loops.yaml")


numbers = st.floats(-1e3, 1e3, allow_subnormal=False)
triples = st.tuples(numbers, numbers, numbers)
names = st.from_regex(r"[a-z]\w{0,8}", fullmatch=True)
frames = st.builds(Frame, names, triples, triples)
signals = st.one_of(
    st.builds(Sine, numbers, numbers, numbers, numbers),
    st.builds(Polynomial, st.lists(numbers, min_size=1, max_size=4).map(tuple)),
    st.just(Spline((0.0, 1.0, 2.5), (0.0, -1.0, 3.0), "natural")),
)
motions = st.one_of(st.none(), st.builds(Motion, x=signals, angle=signals))
nonzero = numbers.filter(bool)
joints = st.builds(
    LoopJoint,
    names,
    st.sampled_from([m for m in JointModel if m.value in ("revolute", "screw", "universal")]),
    frames,
    frames,
    triples.filter(any),
    triples.filter(any),
    nonzero,
    motions,
).map(lambda j: j if j.model is JointModel.SCREW else LoopJoint(**{**j.__dict__, "pitch": 0.0}))
rods = st.builds(Distance, names, frames, frames, st.floats(1e-3, 10), motions)
gears = st.builds(Coupling, names, st.dictionaries(names, nonzero, min_size=1), numbers, motions)
loops = st.lists(st.one_of(joints, rods, gears), max_size=4, unique_by=lambda c: c.name)


@settings(max_examples=60, deadline=None)
@given(loops, triples, st.dictionaries(names, numbers), st.floats(0.1, 10), st.booleans())
def test_what_is_written_is_read_back(tmp_path_factory, constraints, xyz, start, scale, several):
    folder = tmp_path_factory.mktemp("models")
    (folder / "a.urdf").write_text("<robot/>")
    bodies = [BodySpec("robot", folder / "a.urdf", True, xyz, (0.0, 0.1, 0.2), scale)]
    if several:
        bodies.append(BodySpec("other", folder / "a.urdf"))
    path = folder / "m.loops.yaml"
    forces = (JointForce("j", 1.0, 2.0, 3.0, 4.0), JointForce("k", damping=0.5))
    spec = ModelSpec(
        "m",
        path,
        tuple(bodies),
        tuple(constraints),
        ("j",),
        xyz,
        start,
        {"b": [1.0, 2.0]},
        forces,
        {"c": 0.5},
    )
    write_loops(spec, path)
    assert read_loops(path) == spec


def test_python_functions_cannot_be_written(tmp_path):
    gear = Coupling("g", {"j": 1.0}, motion=Motion(z=lambda t: (t, 1.0, 0.0)))
    spec = ModelSpec("m", tmp_path / "m", (BodySpec("robot", tmp_path / "a.urdf"),), (gear,))
    with pytest.raises(LoopFileError, match="along z is the Python function.*use Sine"):
        write_loops(spec, tmp_path / "m.loops.yaml")


def test_every_example_of_the_page_is_read(tmp_path):
    (tmp_path / "four_bar.urdf").write_text("<robot/>")
    blocks = re.findall(r"```yaml\n(.*?)```", DOCS.read_text(), re.DOTALL)
    assert len(blocks) == 4
    types = set()
    for block in blocks:
        path = tmp_path / "example.loops.yaml"
        path.write_text(block)
        types |= {c.model for c in read_loops(path).constraints if isinstance(c, LoopJoint)}
    assert types == set(JointModel)


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
