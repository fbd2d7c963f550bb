"""What is shown and written: JSON with a row a line, lines at a prompt, names."""

import json
import pickle
import subprocess
import sys
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from support.planar import planar_chain

import bulletbridge
from bulletbridge.console import WIDTH, json_text, write_json
from bulletbridge.errors import ModelError
from bulletbridge.system.options import Options, SystemOptions
from bulletbridge.system.rollouts import RolloutKeywords, RolloutOptions

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
FINITE = SCALARS.filter(lambda x: not isinstance(x, float) or abs(x) < float("inf"))
JSON = st.recursive(
    FINITE, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=60
)
SMALL = st.recursive(
    FINITE, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=5
)
ROWS = st.lists(st.dictionaries(st.text(), SMALL, max_size=5), min_size=1, max_size=5)


@given(JSON, st.integers(0, 2 * WIDTH))
def test_text_holds_the_same_values(content, padding):
    content = [content, {"padding": "x" * padding, "content": content}]
    assert json.loads(json_text(content)) == content
    assert json.loads(json_text(content[1])) == content[1]


@given(ROWS)
def test_rows_stand_on_a_line_each(rows):
    first, *lines, last = json_text(rows).splitlines()
    assert (first, last) == ("[", "]")
    assert [json.loads(line.removesuffix(",")) for line in lines] == rows


def test_another_row_changes_no_line_but_that_before_it():
    rows = [{"row": k, "values": list(range(k))} for k in range(100)]
    before = json_text({"about": "rows", "rows": rows[:-1]}).splitlines()
    after = json_text({"about": "rows", "rows": rows}).splitlines()
    assert len(after) == len(before) + 1
    assert set(before) - set(after) == {before[-3]}


@pytest.mark.parametrize("file", sorted(BENCHMARKS.glob("*.json")), ids=lambda file: file.name)
def test_results_in_benchmarks_are_as_written_today(file, tmp_path):
    again = tmp_path / file.name
    write_json(again, json.loads(file.read_text()))
    assert again.read_bytes() == file.read_bytes()


def test_a_file_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(ModelError, match="cannot write .*missing"):
        write_json(tmp_path / "missing" / "file.json", {})


@pytest.mark.skipif(sys.platform == "win32", reason="no pipes that end so")
def test_a_reader_that_has_seen_enough_is_no_error():
    """As under ``| head -1``; a console script lets the error through where ``-m`` does not."""
    script = "import sys; from bulletbridge.cli import main; sys.argv[1:] = ['models']; main()"
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout and process.stderr
        process.stdout.close()  # before anything is written
        assert process.stderr.read() == b""


def test_the_package_shows_its_public_names_and_nothing_else():
    assert set(dir(bulletbridge)) == set(bulletbridge.__all__)
    assert {"load", "attach", "BulletClient", "sweep", "plot"} <= set(dir(bulletbridge))
    assert all(getattr(bulletbridge, name) is not None for name in dir(bulletbridge))


def test_what_a_prompt_shows_of_a_mechanism_and_a_recording_fits_a_line():
    system = bulletbridge.System(planar_chain([0.4, 0.3], [1.0, 1.0]), dt=0.25)
    assert repr(system.mechanism) == "<Mechanism: 2 bodies, 2 rates, joints j0, j1>"
    said = repr(system.rollout(3))
    assert said == "<Recording: 3 states of 2 joints, t = 0.25 to 0.75 s>"
    said = repr(bulletbridge.rollout(system, np.tile(system.q, (4, 1)), steps=3))
    assert said == "<Rollout: 4 worlds, 3 states each of 2 joints>"


def test_joint_forces_are_set_as_numbers_or_by_name():
    system = bulletbridge.System(planar_chain([0.4, 0.3], [1.0, 1.0]))
    system.tau = [1.0, 2.0]
    assert list(system.tau) == [1.0, 2.0]
    system.tau = {"j1": 3.0}
    assert list(system.tau) == [0.0, 3.0]
    for wrong, told in (
        ([1.0], "give 2 finite numbers"),
        ([np.nan, 0.0], "give 2 finite numbers"),
        ({"j2": 1.0}, "unknown joint 'j2'; did you mean"),
        ({"j1": np.inf}, "tau of joint 'j1' must be 1 finite"),
    ):
        with pytest.raises(ModelError, match=told):
            system.tau = wrong
    assert list(system.tau) == [0.0, 3.0]


def test_coordinates_go_by_joint_too():
    system = bulletbridge.System(planar_chain([0.4, 0.3], [1.0, 1.0], floating=2.0))
    joints = system.mechanism.joints
    system.tau["j1"] = 3.0
    assert system.tau["j1"] == system.tau[joints["j1"].v][0] == 3.0
    system.tau["base"] = np.arange(6.0)
    assert system.tau["base"].tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert system.tau["j1"] == 3.0
    system.step()
    for name, joint in joints.items():
        single = joint.kind == "revolute"
        for by_name, part in ((system.q, joint.q), (system.v, joint.v)):
            assert np.array_equal(np.atleast_1d(by_name[name]), by_name[part])
            assert isinstance(by_name[name], float) == single
    plain = (2.0 * system.q, system.q[1:], np.sin(system.v), pickle.loads(pickle.dumps(system.q)))
    assert {type(each) for each in plain} == {np.ndarray}
    assert type(system.q.sum()) is np.float64
    with pytest.raises(ModelError, match="unknown joint 'j2'; did you mean"):
        system.q["j2"]
    with pytest.raises(
        ModelError, match=r"q is a copy of the state: set it with set_state\(q="
    ) as e:
        system.q["j1"] = 1.0
    assert "assemble({'j1': ...})" in str(e.value)
    with pytest.raises(ModelError, match="tau of joint 'j1' must be 1 finite"):
        system.tau["j1"] = np.nan


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="names are not counted from 3.14 on")
def test_what_would_be_lost_with_a_copy_that_nothing_holds_is_refused():
    system = bulletbridge.System(planar_chain([0.4, 0.3], [1.0, 1.0]))
    before = system.q
    told = r"is a copy of the state: set it with set_state\([qv]=.*assemble\({'j0': .*\.copy\(\)"
    with pytest.raises(ModelError, match=f"^q {told}"):
        system.q[0] = 1.0
    with pytest.raises(ModelError, match=f"^q {told}"):
        system.q[1:] += 1.0
    with pytest.raises(ModelError, match=f"^v {told}"):
        system.v[:] = 0.0
    assert np.array_equal(system.q, before)


def test_copies_that_something_holds_take_numbers():
    system = bulletbridge.System(planar_chain([0.4, 0.3], [1.0, 1.0]))

    def shifted(q):
        q[0] += 1.0
        return q

    def from_within():
        outer[1] = 4.0

    held, listed, own, outer = system.q, [system.q], system.q.copy(), system.q
    held[0] = listed[0][0] = own[0] = 2.0
    from_within()
    system.tau[0] = 3.0  # in place: it acts
    assert held[0] == listed[0][0] == own[0] == 2.0
    assert shifted(system.q)[0] == system.q[0] + 1.0
    assert outer[1] == 4.0
    assert system.tau[0] == 3.0
    system.set_state(q=held)
    assert system.q[0] == 2.0


@pytest.mark.parametrize(
    "name, told",
    [
        ("integrator", r"chosen when a system is made: attach\(\.\.\., integrator="),
        ("contacts", r"chosen when a system is made"),
        ("q", r"q is told, not set: set_state\(q="),
        ("t", r"t is told, not set"),
        ("motors", "'motors' of a system is told, not set"),
        ("constraints", "'constraints' of a system is told, not set"),
        ("step", "'step' of a system is told, not set"),
        ("gravty", "no 'gravty' that could be set; did you mean 'gravity'"),
        ("zzz", "keep it in a variable of your own"),
    ],
)
def test_nothing_of_a_system_is_set_without_effect(name, told):
    system = bulletbridge.System(planar_chain([0.4], [1.0]))
    before = repr(system)
    with pytest.raises(ModelError, match=told):
        setattr(system, name, "rk4")
    assert repr(system) == before
    with pytest.raises(AttributeError):
        system.motors.force = 3.0


def test_every_option_of_a_system_says_how_it_is_chosen():
    system = bulletbridge.System(planar_chain([0.4], [1.0]))
    for name in SystemOptions.__annotations__:
        with pytest.raises(ModelError, match=rf"attach\(..., {name}=...\)"):
            setattr(system, name, None)


def test_options_are_those_that_may_be_given():
    assert SystemOptions.__annotations__ == Options.__annotations__
    assert RolloutKeywords.__annotations__ == RolloutOptions.__annotations__


def test_an_unknown_option_is_told_with_the_nearest():
    with pytest.raises(ModelError, match="no option 'integratr'; did you mean 'integrator'"):
        bulletbridge.System(planar_chain([0.4], [1.0]), **{"integratr": "rk4"})


def test_a_choice_that_means_nothing_is_told_with_all_that_there_is():
    with pytest.raises(ModelError, match="limits is 'yes'; give True, False or 'always'"):
        bulletbridge.System(planar_chain([0.4], [1.0]), limits="yes")


def test_a_plot_of_many_joints_leaves_its_axes_their_place():
    """Twenty-four hinges: a third of the figure each, half its width, no two lines alike."""
    chain, t = planar_chain([0.1] * 24, [0.1] * 24), np.linspace(0.0, 1.0, 3)
    many = np.outer(t, np.arange(24.0))
    run = bulletbridge.Recording(chain, t, many, many, t, t, t)
    figure = bulletbridge.plot(run)
    figure.canvas.draw()
    for axes in figure.axes:
        assert axes.get_position().height > 0.3 and axes.get_position().width > 0.5
        looks = {(line.get_color(), line.get_linestyle()) for line in axes.get_lines()}
        assert len(looks) == 24
    assert [axes.get_ylabel() for axes in figure.axes] == ["position [rad]", "rate [rad/s]"]
