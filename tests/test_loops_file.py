"""Loops files: what is read, and by which names."""

import re

import pytest
from support.loops_files import DOCS, GOOD

from bulletbridge.bullet.reader import read_bullet
from bulletbridge.bullet.worlds import readable
from bulletbridge.constraints.joints import (
    Distance,
    Frame,
    JointModel,
    LoopJoint,
)
from bulletbridge.errors import LoopFileError, ModelError
from bulletbridge.models.bodies import load_bodies
from bulletbridge.models.bundled import bundled, find
from bulletbridge.models.load import load
from bulletbridge.models.loop_entries import SIGNALS, TYPES
from bulletbridge.models.loops_file import read_loops
from bulletbridge.models.model_spec import JointForce
from bulletbridge.models.urdf_names import read_names


def test_a_good_file_is_read(loops_file):
    spec = read_loops(loops_file(GOOD))
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


def test_a_floating_base_is_a_joint_and_robots_have_their_own_names(loops_file):
    path = loops_file(
        GOOD.replace("fixed_base: true", "").replace("{j: 0.5}", "{base: [0,0,0,0,0,0,1]}")
    )
    assert read_loops(path).start_q["base"][-1] == 1.0
    bodies = "bodies: [{name: l, urdf: robot.urdf}, {name: r, urdf: robot.urdf, fixed_base: true}]"
    two = f"bulletbridge: 1\n{bodies}\nactuated: [%s]\n"
    assert read_loops(loops_file(two % "l/j, r/j, l/base")).actuated == ("l/j", "r/j", "l/base")
    for wrong, near in (("jj", "r/j"), ("l/jj", "l/j"), ("r/base", "l/base")):
        with pytest.raises(LoopFileError, match=f"unknown joint '{wrong}'; did you mean '{near}'"):
            read_loops(loops_file(two % wrong))


def test_quaternions_rounded_to_three_digits_are_taken(loops_file):
    given = [0.577, 0.577, 0.577, 0.036]  # each half a unit of the last digit off, or less
    path = loops_file(GOOD.replace("{j: 0.5}", f"{{knee: {given}}}"))
    assert read_loops(path).start_q == {"knee": given}


def test_names_are_those_that_the_reader_knows(client):
    for model in bundled():
        spec = read_loops(find(model))
        names = read_names(spec.bodies)
        mechanism = read_bullet(readable(load_bodies(spec, client)), client).mechanism
        assert names.links == set(mechanism.links)
        assert set(names.joints) == set(mechanism.joints)


def test_what_is_no_urdf_is_told(loops_file, tmp_path):
    path = loops_file(GOOD)
    (tmp_path / "robot.urdf").write_text("<robot name='r'/>")
    spec = read_loops(path)
    with pytest.raises(ModelError, match=r"robot\.urdf has no <link>"):
        load(spec)


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


def test_models_are_found_by_name_and_by_path(tmp_path):
    with pytest.raises(ModelError, match=r"no model is called 'four_bor'; did you mean 'four_bar'"):
        find("four_bor")
    assert find("four_bar") == bundled()["four_bar"]
    (tmp_path / "r.urdf").write_text("<robot/>")
    assert find(tmp_path / "r.urdf") == tmp_path / "r.urdf"
    (tmp_path / "r.loops.yaml").write_text("")
    assert find(tmp_path / "r.urdf") == tmp_path / "r.loops.yaml"
    with pytest.raises(ModelError, match="there is no file"):
        find(tmp_path / "gone.loops.yaml")
