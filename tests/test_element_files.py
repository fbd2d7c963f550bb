"""Springs, dampers, bushings and tendons in loops files."""

import pytest
from numpy.testing import assert_allclose

import bulletbridge as bb
from bulletbridge.comparison.inspection import inspect_model
from bulletbridge.comparison.native import NoNativeTwinError, require_native_twin
from bulletbridge.errors import LoopFileError
from bulletbridge.models.loops_file import read_loops, write_loops

FILE = """bulletbridge: 1
urdf: {urdf}
fixed_base: true
loops:
  - {{name: pin, type: revolute, a: {{link: rocker, xyz: [0.7, 0, 0]}}, b: {{link: ground, xyz: [1, 0, 0]}},
      axis: [0, -1, 0], turn: {{stiffness: 2, rest: 0.5, force: {{sine: {{amplitude: 1, frequency: 2}}}}}}}}
forces:
  - {{name: s, type: spring, a: {{link: crank}}, b: {{link: rocker}}, stiffness: 3, damping: 0.5, length: 0.2, force: 1, slack: 0.1}}
  - {{joint: crank, damping: 0.1}}
  - {{name: t, type: torsion_spring, a: {{link: crank}}, b: {{link: coupler}}, axis: [0, 1, 0], stiffness: 3, rest: -1}}
  - {{name: b, type: bushing, a: {{link: world}}, b: {{link: coupler}}, stiffness: [1, 2, 3], turning_damping: [1, 1, 1]}}
  - {{name: sum, type: tendon, joints: {{crank: 0.5, rocker: -1}}, stiffness: 3, damping: 0.1, rest: 0.2, slack: 0.1}}
{more}"""  # noqa: E501


def file(tmp_path, more=""):
    """A loops file with all kinds of elements."""
    from bulletbridge.models.bundled import find

    path = tmp_path / "sprung.loops.yaml"
    path.write_text(FILE.format(urdf=find("four_bar").with_name("four_bar.urdf"), more=more))
    return path


def test_files_hold_elements_and_are_written_back(tmp_path):
    spec = read_loops(file(tmp_path))
    assert spec.elements[0] == bb.Spring(
        "s", bb.Frame("crank"), bb.Frame("rocker"), 3.0, 0.5, 0.2, 1.0, 0.1
    )
    assert spec.constraints[0].turn == bb.LoopAxis(stiffness=2.0, rest=0.5, force=bb.Sine(1.0, 2.0))
    write_loops(spec, tmp_path / "again.loops.yaml")
    assert read_loops(tmp_path / "again.loops.yaml") == spec
    with bb.load(spec) as model:
        assert list(model.system.spring_forces()) == ["pin", "s", "t", "b", "sum"]
        model.system.rollout(10)


WRENCHES = """wrenches:
  - {name: wind, frame: {link: coupler, xyz: [0.1, 0, 0]}, axes: {link: world},
     force: [2, 0, {sine: {amplitude: 1, frequency: 0.5}}], torque: [0, 0.1, 0]}
  - {name: jet, frame: {link: rocker}, force: [0, 0, 3]}
"""


def test_files_hold_wrenches_and_are_written_back(tmp_path):
    spec = read_loops(file(tmp_path, WRENCHES))
    write_loops(spec, tmp_path / "again.loops.yaml")
    assert read_loops(tmp_path / "again.loops.yaml") == spec
    with bb.load(spec, integrator="rk4", dt=1e-3) as model, bb.load(file(tmp_path), "new") as bare:
        system = model.system
        wind = system.applied_wrenches()["wind"]
        assert_allclose(wind.force, [2, 0, 0], atol=1e-15)
        assert_allclose(wind.torque, [0, 0.1, 0], atol=1e-15)
        # the same by what the points of a system without them do
        points = bare.system.kinematics()
        arm, jet = points.point(spec.wrenches[0].frame), points.point(spec.wrenches[1].frame)
        tau = arm.J.T @ [2, 0, 0] + arm.J_angular.T @ [0, 0.1, 0] + jet.J.T @ jet.R_W[:, 2] * 3
        bare.system.tau[:] = tau
        assert_allclose(system.acceleration(), bare.system.acceleration(), rtol=1e-10)
        system.rollout(500)
        assert_allclose(system.applied_wrenches()["wind"].force, [2, 0, 1], atol=1e-12)
    found = inspect_model(spec).wrenches
    assert [(w.name, w.link, w.axes) for w in found] == [
        ("wind", "coupler", "world"),
        ("jet", "rocker", "rocker"),
    ]
    with pytest.raises(NoNativeTwinError, match="'wind' has no native twin"):
        require_native_twin(spec)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("{name: w, frame: {link: crnk}, force: [1, 0, 0]}", "did you mean"),
        ("{name: w, frame: {link: crank}}", "exerts nothing"),
        ("{name: w, frame: {link: crank}, force: [0, 0, 0]}", "exerts nothing"),
        ("{name: w, frame: {link: crank}, force: [1, 0]}", "three numbers or signals"),
        ("{name: s, frame: {link: crank}, force: [1, 0, 0]}", "already"),
        ("{name: w, frame: {link: crank}, force: [1, 0, 0], a: 1}", "unknown key 'a'"),
        ("{name: w, frame: {link: crank}, axes: {link: wrld}, force: [1, 0, 0]}", "did you mean"),
    ],
)
def test_wrong_wrenches_are_named(tmp_path, entry, message):
    with pytest.raises(LoopFileError, match=message):
        read_loops(file(tmp_path, f"wrenches:\n  - {entry}\n"))


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("{name: x, type: sprung, a: {link: crank}, b: {link: rocker}}", "'sprung'"),
        ("{name: x, type: spring, a: {link: crnk}, b: {link: rocker}, force: 1}", "did you mean"),
        ("{name: x, type: spring, a: {link: crank}, b: {link: rocker}}", "exerts nothing"),
        ("{name: x, type: spring, a: {link: crank}, b: {link: rocker}, damping: -1}", "negative"),
        ("{name: s, type: spring, a: {link: crank}, b: {link: rocker}, force: 1}", "already"),
        ("{name: x, type: spring, a: {link: crank}, b: {link: rocker}, k: 1}", "unknown key 'k'"),
        ("{name: x, type: tendon, joints: {crnk: 1}, stiffness: 1}", "did you mean"),
        ("{name: x, type: tendon, joints: {}, stiffness: 1}", "is empty"),
        ("{name: x, type: tendon, joints: {crank: 0}, stiffness: 1}", "nothing moves it"),
        ("{name: x, type: tendon, a: {link: crank}, stiffness: 1}", "unknown key 'a'"),
        (
            "{name: x, type: tendon, joints: {crank: 1},"
            " motor: {force: 3, damping: 1, position_gain: 1}}",
            "is for motors that set a velocity",
        ),
        (
            "{name: x, type: tendon, joints: {crank: 1}, motor: {force: 3, damping: 1, least: 1}}",
            "must not be positive",
        ),
        ("{name: x, a: {link: crank}, b: {link: rocker}, force: 1}", "'type' is missing"),
    ],
)
def test_wrong_entries_are_named(tmp_path, entry, message):
    with pytest.raises(LoopFileError, match=message):
        read_loops(file(tmp_path, f"  - {entry}\n"))
