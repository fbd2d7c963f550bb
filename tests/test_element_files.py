"""Springs, dampers and bushings in loops files."""

import pytest

import bulletbridge as bb
from bulletbridge.errors import LoopFileError
from bulletbridge.models.loops_file import read_loops, write_loops

FILE = """bulletbridge: 1
urdf: {urdf}
fixed_base: true
loops:
  - {{name: pin, type: revolute, a: {{link: rocker, xyz: [0.7, 0, 0]}}, b: {{link: ground, xyz: [1, 0, 0]}},
      axis: [0, -1, 0], turn: {{stiffness: 2, rest: 0.5, force: {{sine: {{amplitude: 1, frequency: 2}}}}}}}}
forces:
  - {{name: s, type: spring, a: {{link: crank}}, b: {{link: rocker}}, stiffness: 3, damping: 0.5, length: 0.2, force: 1}}
  - {{joint: crank, damping: 0.1}}
  - {{name: t, type: torsion_spring, a: {{link: crank}}, b: {{link: coupler}}, axis: [0, 1, 0], stiffness: 3, rest: -1}}
  - {{name: b, type: bushing, a: {{link: world}}, b: {{link: coupler}}, stiffness: [1, 2, 3], turning_damping: [1, 1, 1]}}
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
        "s", bb.Frame("crank"), bb.Frame("rocker"), 3.0, 0.5, 0.2, 1.0
    )
    assert spec.constraints[0].turn == bb.LoopAxis(stiffness=2.0, rest=0.5, force=bb.Sine(1.0, 2.0))
    write_loops(spec, tmp_path / "again.loops.yaml")
    assert read_loops(tmp_path / "again.loops.yaml") == spec
    with bb.load(spec) as model:
        assert list(model.system.spring_forces()) == ["pin", "s", "t", "b"]
        model.system.rollout(10)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("{name: x, type: sprung, a: {link: crank}, b: {link: rocker}}", "'sprung'"),
        ("{name: x, type: spring, a: {link: crnk}, b: {link: rocker}, force: 1}", "did you mean"),
        ("{name: x, type: spring, a: {link: crank}, b: {link: rocker}}", "exerts nothing"),
        ("{name: x, type: spring, a: {link: crank}, b: {link: rocker}, damping: -1}", "negative"),
        ("{name: s, type: spring, a: {link: crank}, b: {link: rocker}, force: 1}", "already"),
        ("{name: x, type: spring, a: {link: crank}, b: {link: rocker}, k: 1}", "unknown key 'k'"),
        ("{name: x, a: {link: crank}, b: {link: rocker}, force: 1}", "'type' is missing"),
    ],
)
def test_wrong_entries_are_named(tmp_path, entry, message):
    with pytest.raises(LoopFileError, match=message):
        read_loops(file(tmp_path, f"  - {entry}\n"))
