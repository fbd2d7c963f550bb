"""Recordings in files: every bit comes back, and what is none is said."""

import sys

import numpy as np
import pytest
from support.planar import planar_chain

import bulletbridge as bb
from bulletbridge.errors import MissingExtraError, ModelError
from bulletbridge.system.recording import KINDS


@pytest.fixture
def system():
    made = bb.System(planar_chain([0.4, 0.3], [1.0, 1.0], floating=2.0), dt=0.01)
    made.set_state(v=np.linspace(-1.0, 1.0, made.mechanism.nv))
    return made


@pytest.mark.parametrize("kind", KINDS)
def test_every_bit_comes_back_and_runs_go_on(system, tmp_path, kind):
    run, path = system.rollout(7), tmp_path / f"run{kind}"
    run.save(path)
    read = bb.Recording.read(path, system.mechanism)
    for name in ("t", "q", "v", "rank", "margin", "passes"):
        assert np.array_equal(getattr(read, name), getattr(run, name)), name
    assert read.rank.dtype == run.rank.dtype and np.array_equal(
        read.position("base"), run.position("base")
    )
    system.set_state(run.q[-1], run.v[-1], run.t[-1])
    expected = system.rollout(3).q
    system.set_state(read.q[-1], read.v[-1], read.t[-1])
    assert np.array_equal(system.rollout(3).q, expected)


def test_columns_are_named_after_joints(system):
    run = system.rollout(2)
    columns = run.columns()
    nq, nv = system.mechanism.nq, system.mechanism.nv
    assert len(columns) == 1 + nq + nv + 3 and list(columns)[0] == "t"
    assert np.array_equal(columns["j1"], run.position("j1"))
    assert np.array_equal(columns["j1.rate"], run.rate("j1"))
    assert np.array_equal(columns["base.6"], run.position("base")[:, 6])


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_is_none_is_said(system, tmp_path, kind):
    path = tmp_path / f"run{kind}"
    with pytest.raises(ModelError, match="cannot read a recording"):
        bb.Recording.read(path, system.mechanism)
    path.write_bytes(b"t,nonsense\n1,a")
    with pytest.raises(ModelError, match="cannot read a recording"):
        bb.Recording.read(path, system.mechanism)
    other = bb.System(planar_chain([0.4], [1.0]))
    other.rollout(2).save(path)
    with pytest.raises(ModelError, match=r"they differ in base\.0"):
        bb.Recording.read(path, system.mechanism)
    with pytest.raises(ModelError, match="cannot write the recording"):
        other.rollout(1).save(tmp_path / "no" / path.name)


def test_what_is_missing_or_unknown_is_said(system, tmp_path, monkeypatch):
    run = system.rollout(1)
    with pytest.raises(ModelError, match=r"ends in \.npz, \.csv, \.parquet"):
        run.save(tmp_path / "run.txt")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'bulletbridge\[sweep\]'"):
        run.save(tmp_path / "run.parquet")


def test_gaps_of_a_recording_are_columns_too():
    """A rocker of 0.7 m that is turned by an angle leaves its pin by a chord of that angle."""
    with bb.load("four_bar", "new") as model:
        system, turn = model.system, 0.02
        run = system.rollout(5)
        closed = system.gap_columns(run)
        run.q[3, system.mechanism.joint("rocker").q] += turn
        off = system.gap_columns(run)["ground_pin.gap"]
    assert list(closed) == ["ground_pin.gap"] and closed["ground_pin.gap"].max() < 1e-12
    assert off[3] == pytest.approx(1.4 * np.sin(turn / 2.0), rel=1e-12)
    assert np.delete(off, 3).max() < 1e-12
