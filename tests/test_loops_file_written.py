"""Loops files that are written: read back as they were, or not written."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bulletbridge.constraints.joints import (
    Coupling,
    Distance,
    Frame,
    JointModel,
    LoopAxis,
    LoopJoint,
    Motor,
)
from bulletbridge.constraints.motion import Motion, Polynomial, Sine, Spline
from bulletbridge.errors import LoopFileError
from bulletbridge.models.loop_entries import TYPES
from bulletbridge.models.loops_file import read_loops, write_loops
from bulletbridge.models.model_spec import BodySpec, JointForce, ModelSpec

numbers = st.floats(-1e100, 1e100)
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
    LoopAxis,
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


def unit(x):
    """The quaternion along x, or none where x is too short to say."""
    size = np.linalg.norm(x)
    return (np.array(x) / size).tolist() if size > 0.1 else [0.0, 0.0, 0.0, 1.0]


quaternions = st.lists(st.floats(-1, 1), min_size=4, max_size=4).map(unit)
starts = st.dictionaries(names, st.one_of(numbers, quaternions), max_size=3)


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
        ([Distance("rod", C, C, 1.0)] * 2, "'rod' is already on line"),
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


def test_names_with_blanks_are_read_back_from_long_lists(tmp_path):
    """A key is not broken at its blanks, as text in lines of a hundred characters is."""
    factors = {f"MuJoCo Model/joint of finger {k}": 1.0 + k for k in range(9)}
    spec = one_robot(tmp_path, Coupling("all of them", factors))
    write_loops(spec, spec.path)
    assert read_loops(spec.path).constraints == spec.constraints
