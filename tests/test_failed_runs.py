"""Runs that are none: numbers that are not finite, energy from nothing, files Bullet refuses."""

import json

import numpy as np
import pytest

import bulletbridge as bb
from bulletbridge.comparison import native
from bulletbridge.comparison.compare import compare_model, worst
from bulletbridge.comparison.options import CompareOptions
from bulletbridge.comparison.results import Comparison
from bulletbridge.console import json_text
from bulletbridge.errors import ModelError

GOOD = 5
"""States of Bullet that are left as they are."""


def refuse(constant: str):
    raise AssertionError(f"{constant} is no JSON")


@pytest.mark.parametrize(
    ("factor", "message"),
    [
        (np.nan, "the numbers are not finite at t = 0.025 s"),
        (1e200, "the numbers are not finite at t = 0.025 s"),
        (1e6, "J more are there at t = 0.025 s"),
    ],
)
def test_a_run_that_bullet_loses_is_failed_and_has_null_in_json(monkeypatch, factor, message):
    state, calls = native.NativeWorld.state, []

    def spoilt(self):
        q, v = state(self)
        calls.append(1)
        return q, v * factor if len(calls) > GOOD else v

    monkeypatch.setattr(native.NativeWorld, "state", spoilt)
    runs = compare_model("four_bar", CompareOptions(duration=0.1, solvers=("projector", "native")))
    ours, bullets = (run.result for run in runs.runs)
    assert ours.status == "ok"
    assert bullets.status == "failed" and message in bullets.message
    assert worst([runs]) == 1
    text = json_text(Comparison((ours, bullets)).to_dict())
    read = json.loads(text, parse_constant=refuse)["runs"][1]
    assert (read["energy"] is None) == (factor != 1e6)


def test_bullets_reason_is_in_the_error(tmp_path):
    path = tmp_path / "r.urdf"
    inertial = '<inertial><mass value="1"/><inertia ixx="1"/></inertial>'
    path.write_text(f'<robot name="r"><link name="a">{inertial}</link></robot>')
    with pytest.raises(ModelError, match="must have ixx,ixy,ixz,iyy,iyz,izz"):
        bb.load(path, fixed_base=True)
