"""Studies whose runs, journals, disks or clusters fail: told in one sentence, nothing lost."""

import multiprocessing
import signal
import sqlite3
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection

import numpy as np
import pytest
from support import failing_functions as functions

import bulletbridge as bb
from bulletbridge.console import leaving_interrupts
from bulletbridge.errors import BulletBridgeError, ModelError
from bulletbridge.studies import journal, workers
from bulletbridge.studies.run import study_of

SAID = (
    "KeyboardInterrupt: ",
    "SystemExit: 3",
    "Mute: which cannot be put into words",
    "ValueError: \\udc80 is no character",
    "the function returned 1.0; return numbers by name",
    "the function returned 'x', as a parameter or column of the table is called; give it another"
    " name",
)


def test_no_run_ends_a_study(tmp_path):
    results = bb.sweep(
        functions.give_up, {"x": [float(k) for k in range(8)]}, tmp_path / "s.parquet", workers=1
    )
    assert tuple(results.errors) == (*SAID, "", "")
    assert np.array_equal(results.columns["x"], np.arange(8.0))
    assert np.array_equal(results.columns["y"], [*6 * [np.nan], 12.0, 14.0], equal_nan=True)
    assert bb.read_study(tmp_path / "s.parquet").errors == list((*SAID, "", ""))


@pytest.mark.parametrize("name", ["run", "error", "seconds", "a"])
def test_measures_called_like_columns_are_refused(name):
    outcome = workers.perform(lambda _: {name: 1.0}, {"a": 2.0})
    assert outcome.results == {} and f"returned '{name}', as a parameter or column" in outcome.error


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"x": 3.0}, r"parameter 'x' is 3\.0; give a list"),
        ({"x": "abc"}, "parameter 'x' is not an array of real numbers"),
        ({"x": [1.0, [2.0]]}, "parameter 'x' has parts of different lengths"),
        ({"run": [1.0]}, "a parameter is called 'run', as a column of the results is"),
        ([{"x": "a"}], "parameters is not an array of real numbers"),
        ([{"x": [1.0]}], "parameters have shape"),
        ([], "a study needs parameters"),
    ],
)
def test_parameters_that_are_no_numbers_are_refused(tmp_path, parameters, message):
    with pytest.raises(ModelError, match=message):
        bb.sweep(functions.give_up, parameters, tmp_path / "s.parquet")
    assert not list(tmp_path.iterdir())


@pytest.fixture
def begun(tmp_path):
    """A journal of three runs of which one is done."""
    made = journal.Journal(
        tmp_path / "s.parquet",
        study_of(functions.give_up, [{"x": 6.0 + k} for k in range(3)]),
        False,
    )
    made.add(1, journal.Outcome({"y": 14.0}, "", 0.5))
    yield made
    made.close()


def test_a_full_disk_is_said_and_what_was_done_is_kept(begun, monkeypatch):
    pages = begun._database.execute("PRAGMA page_count").fetchone()[0]
    begun._database.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(BulletBridgeError, match="disk is full.*the 1 runs before are kept in"):
        begun.add(2, journal.Outcome({"y": 16.0}, 100_000 * "x", 0.5))
    begun._database.execute("PRAGMA max_page_count = 1000000")

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(journal.os, "fsync", full)
        with pytest.raises(BulletBridgeError, match="No space left.*the 1 runs before are kept in"):
            begun.finish()
    names = {file.name for file in begun.file.parent.iterdir()}
    assert "s.parquet.part" in names and not names & {"s.parquet", "s.parquet.new"}
    assert begun.finish().columns["y"].tolist() == [14.0]


@pytest.mark.parametrize(
    "line", [(99, "{}", "", 0.0), (-1, "{}", "", 0.0), (2, "[", "", 0.0), (2, "[]", "", 0.0)]
    + [(2, '{"y": "z"}', "", 0.0), (2, None, "", 0.0), (2, "{}", None, 0.0), (2, "{}", "", None)],
)  # fmt: skip
def test_a_journal_with_foreign_lines_is_refused(begun, line):
    begun._database.execute("INSERT INTO runs VALUES (?, ?, ?, ?)", line)
    begun.close()
    with pytest.raises(ModelError, match=f"has a run {line[0]} that is none of the 3"):
        journal.Journal(begun.file, begun.study, True)


@pytest.mark.parametrize("content", [b"no database at all" * 100, None])
def test_what_is_no_journal_is_refused(tmp_path, content):
    part = tmp_path / "s.parquet.part"
    if content is None:
        with sqlite3.connect(part) as other:
            other.execute("CREATE TABLE runs (other TEXT)")
        other.close()
    else:
        part.write_bytes(content)
    with pytest.raises(ModelError, match="no journal of a sweep"):
        bb.sweep(functions.give_up, {"x": [6.0]}, tmp_path / "s.parquet", resume=True)


def test_who_finishes_second_finds_the_journal_gone(begun):
    begun.part.unlink()
    assert begun.finish().runs == [1]
    assert bb.read_study(begun.file).runs == [1]


def test_a_lost_cluster_is_said_and_what_was_done_is_kept(tmp_path):
    distributed = pytest.importorskip("distributed")
    cluster = distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"
    )
    values, file = {"x": [float(k) for k in range(6, 46)]}, tmp_path / "s.parquet"
    seen = []

    def lose(done, _failed, _all):
        seen.append(done)
        if done == 3:
            cluster.close()

    with pytest.raises(BulletBridgeError, match="the Dask cluster at .* is lost .*resume"):
        bb.sweep(functions.give_up, values, file, cluster=cluster.scheduler_address, progress=lose)
    kept = journal.Journal(file, study_of(functions.give_up, [{"x": x} for x in values["x"]]), True)
    assert len(kept.done) == seen[-1] >= 3
    kept.close()


def is_deaf() -> bool:
    """Whether this process does not hear Ctrl-C."""
    return signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def tell(other: Connection) -> None:
    """Say so to the process at the other end."""
    other.send(is_deaf())


def test_workers_leave_interrupts_to_whoever_starts_them(monkeypatch):
    """From their first instant on, the first one too: importing, each would answer with a trace."""
    tracker = resource_tracker.ResourceTracker()  # not running yet, as in a fresh process
    for name in ("ensure_running", "getfd"):
        monkeypatch.setattr(resource_tracker, name, getattr(tracker, name))
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    with leaving_interrupts():
        process = context.Process(target=tell, args=(there,))
        process.start()
    assert here.recv() and not is_deaf()
    process.join()
    tracker._stop()
