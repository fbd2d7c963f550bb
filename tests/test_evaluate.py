"""Whether a run should keep its energy."""

import pytest
from support.urdf_builder import inertial, joint, link, robot

from bulletbridge.comparison.compare import compare_model
from bulletbridge.comparison.options import CompareOptions
from bulletbridge.models.loops_file import read_loops


@pytest.mark.parametrize(
    ("properties", "limits", "conserved"),
    [
        ("", True, True),
        ("limits: [-1, 0.5]", True, False),
        ("limits: [-1, 0.5]", False, False),
        ("limits: [-1, 3]", True, True),
        ("friction: 0.1", True, False),
        ("damping: 0.1", True, False),
        ("armature: 0.1", True, True),
    ],
)
def test_what_takes_energy_is_known(tmp_path, properties, limits, conserved):
    """A pendulum that is let go level; where limits are taken away it passes them."""
    (tmp_path / "robot.urdf").write_text(
        robot(
            link("base"),
            link("arm", inertial(2.0, (0.01, 0.05, 0.05), (0.25, 0, 0))),
            joint("hip", "continuous", "base", "arm", axis="0 1 0"),
        )
    )
    path = tmp_path / "robot.loops.yaml"
    said = f"joints: {{hip: {{{properties}}}}}\n" if properties else ""
    path.write_text(f"bulletbridge: 1\nurdf: robot.urdf\nfixed_base: true\n{said}")
    options = CompareOptions(duration=0.4, dt=1e-3, solvers=("projector", "native"), limits=limits)
    ours, native = (run.result for run in compare_model(read_loops(path), options).runs)
    assert ours.energy is not None and native.energy is not None
    assert ours.energy.conserved is conserved
    assert any("energy is changed by" in note for note in ours.notes) is not conserved
    if conserved:  # verlet at 1 ms, of 5 J: (rate dt)^2
        assert ours.energy.drift_max_J < 1e-4
    if "limits" in properties:
        reached = [run.final.q["hip"] for run in (ours, native)]  # type: ignore[union-attr]
        if limits and "0.5" in properties:
            assert max(reached) < 0.6  # Bullet overshoots
        elif "0.5" in properties:
            assert min(reached) > 1.0
