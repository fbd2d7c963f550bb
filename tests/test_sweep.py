"""Parameter studies: what they run, what they keep, and what kills do to them."""

import os
import runpy
import signal
import subprocess
import sys
import time
import types
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import numpy as np
import pytest
from pytest import approx
from support import sweep_functions as functions

import bulletbridge as bb
from bulletbridge.cli import run
from bulletbridge.errors import BulletBridgeError, MissingExtraError, ModelError
from bulletbridge.studies import journal, workers
from bulletbridge.studies import run as sweeping
from bulletbridge.studies.measures import measures_of
from bulletbridge.studies.study import grid_values, read_setting, sample


@pytest.fixture
def here(monkeypatch):
    """Runs in this process, which is faster than to start others."""

    def one_by_one(function, points, _workers):
        for number, point in points.items():
            yield number, workers.perform(function, point)

    monkeypatch.setattr(sweeping, "on_this_machine", one_by_one)


def numbers(log):
    return [int(line.split()[0]) for line in log.read_text().splitlines()]


HANG = 1800.0
"""Only what hangs takes so long [s]."""


def wait_for(condition, lives=lambda: True):
    """Until it holds, while what should bring it about lives."""
    end = time.monotonic() + HANG
    while not condition():
        assert lives() and time.monotonic() < end
        time.sleep(0.02)


def alive(process):
    try:
        stat = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False
    return stat.rsplit(")", 1)[1].split()[0] != "Z"


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
def test_nothing_is_lost_or_doubled_when_a_worker_and_the_client_are_killed(tmp_path, monkeypatch):
    log, file = tmp_path / "log", tmp_path / "study.parquet"
    log.touch()
    gate, moved = tmp_path / "gate", tmp_path / "moved"
    gate.write_text("5")  # so that no kill comes too late, however busy the machine is
    monkeypatch.setenv("SWEEP_LOG", str(log))
    monkeypatch.setenv("SWEEP_GATE", str(gate))
    tests = Path(functions.__file__).parents[1]
    path = os.pathsep.join([str(tests), str(tests.parent)])
    client = subprocess.Popen(
        [sys.executable, functions.__file__, str(file)], env=os.environ | {"PYTHONPATH": path}
    )
    try:

        def runs():
            return client.poll() is None

        wait_for(lambda: len(numbers(log)) == 5, runs)
        os.kill(int(log.read_text().splitlines()[-1].split()[1]), signal.SIGKILL)
        moved.write_text("15")
        moved.replace(gate)
        wait_for(lambda: len(numbers(log)) == 15, runs)
    finally:
        client.kill()
        client.wait()
    began = {int(line.split()[1]) for line in log.read_text().splitlines()}
    wait_for(lambda: not any(map(alive, began)))  # workers follow their client
    assert not file.exists() and len(set(numbers(log))) < functions.RUNS
    gate.unlink()
    points = [{"x": float(k)} for k in range(functions.RUNS)]
    results = bb.sweep(functions.logged, points, file, workers=1, resume=True)
    assert results.runs == list(range(functions.RUNS)) and not any(results.errors)
    assert np.array_equal(results.columns["square"], np.arange(functions.RUNS) ** 2.0)
    # repeated: what the worker had in hand, or in its queue, at either kill
    assert functions.RUNS <= len(numbers(log)) <= functions.RUNS + 2 * 2
    assert [p.name for p in tmp_path.iterdir() if p.suffix != ""] == ["study.parquet"]
    again = bb.read_study(file)
    assert again.runs == results.runs and again.measures == ("square",)


class Pool:
    """Runs at once and breaks at a run of x = 3, and now and then when another is submitted."""

    submitted, killers, accidents = 0, {3.0}, {5, 11}

    def __init__(self, *_args, **_options):
        self.broken = False

    def submit(self, perform, function, parameters):
        if self.broken:
            raise BrokenProcessPool
        Pool.submitted += 1
        future = Future()
        if parameters["x"] in Pool.killers or Pool.submitted in Pool.accidents:
            self.broken = True
            future.set_exception(BrokenProcessPool())
        else:
            future.set_result(perform(function, parameters))
        return future

    def shutdown(self, *_args, **_options):
        pass


def test_a_run_that_kills_its_worker_is_given_up_and_others_are_not(monkeypatch, tmp_path):
    monkeypatch.setattr(workers, "ProcessPoolExecutor", Pool)
    values = {"x": [float(k) for k in range(12)], "n": [2.0]}
    results = bb.sweep(functions.power, values, tmp_path / "s.parquet", workers=2)
    assert results.runs == list(range(12))
    assert [n for n, error in enumerate(results.errors) if error] == [3]
    assert results.errors[3] == "its worker died 4 times"
    good = np.arange(12) != 3
    assert np.array_equal(results.columns["power"][good], np.arange(12.0)[good] ** 2)
    Pool.killers = {float(k) for k in range(12)}
    monkeypatch.setattr(workers, "MOST_DEATHS", 100)
    with pytest.raises(BulletBridgeError, match="die before they finish anything"):
        bb.sweep(functions.power, values, tmp_path / "t.parquet", workers=2)


def test_a_run_that_raises_is_kept_with_its_error(here, tmp_path):
    results = bb.sweep(functions.refuse, {"x": [0.0, 1.0, 2.0]}, tmp_path / "s.parquet")
    assert results.errors == ["", "ValueError: one is not possible", ""]
    assert np.array_equal(np.isnan(results.columns["y"]), [False, True, False])


@pytest.mark.parametrize("given", [["x", "n"], [1.0, 2.0]])
def test_parameters_that_have_no_values_are_told_how_to_have_them(here, tmp_path, given):
    with pytest.raises(ModelError, match=r"as \{'mass': \[1\.0, 2\.0\]\}"):
        bb.sweep(functions.power, given, tmp_path / "s.parquet")


def test_two_studies_or_two_clients_are_not_mixed(here, tmp_path):
    file = tmp_path / "s.parquet"
    values = {"x": [1.0, 2.0], "n": [2.0]}
    bb.sweep(functions.power, values, file)
    with pytest.raises(ModelError, match="has results already"):
        bb.sweep(functions.power, values, file)
    with pytest.raises(ModelError, match="results of another study"):
        bb.sweep(functions.power, {"x": [1.0], "n": [2.0]}, file, resume=True)
    assert bb.sweep(functions.power, values, file, resume=True).runs == [0, 1]
    study = sweeping.study_of(functions.power, [{"x": 1.0}])
    first = journal.Journal(tmp_path / "t.parquet", study, False)
    with pytest.raises(ModelError, match="is another sweep writing it"):
        journal.Journal(tmp_path / "t.parquet", study, True)
    first.close()


def test_results_go_on_from_a_journal_without_its_end(here, tmp_path):
    """As after a kill between two transactions, or in the moment that the file is put in place."""
    file, calls = tmp_path / "s.parquet", []

    def counted(parameters):
        calls.append(parameters["x"])
        return {"y": -parameters["x"]}

    points = [{"x": float(k)} for k in range(4)]
    begun = journal.Journal(file, sweeping.study_of(counted, points), False)
    begun.add(2, journal.Outcome({"y": -2.0}, "", 0.0))
    begun.add(2, journal.Outcome({"y": 99.0}, "", 0.0))
    begun.close()
    file.write_bytes(b"half a file")
    results = bb.sweep(counted, points, file, resume=True)
    assert calls == [0.0, 1.0, 3.0] and list(results.columns["y"]) == [0.0, -1.0, -2.0, -3.0]
    assert bb.read_study(file).runs == [0, 1, 2, 3] and list(tmp_path.iterdir()) == [file]


def test_a_cluster_does_the_same(tmp_path):
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=2, processes=False, dashboard_address=":0"
    ) as cluster:
        address, values = cluster.scheduler_address, {"x": [0.0, 1.0, 2.0]}
        results = bb.sweep(functions.refuse, values, tmp_path / "s.parquet", cluster=address)
    assert results.errors == ["", "ValueError: one is not possible", ""]
    assert list(results.columns["y"][[0, 2]]) == [0.0, 2.0]


def test_gravity_mass_start_and_step_change_the_model_as_mechanics_says():
    """Four times gravity from rest: the same motion in half the time, all forces fourfold.

    Semi-implicit Euler keeps that similarity when its step is halved too. Twice all masses: the
    same motion, forces twice. What is left is round-off of 60 steps.
    """
    measures = ("force.ground_pin", "final.crank", "speed.rocker", "gap", "energy_drift")
    run = bb.ModelRun("four_bar", 0.5, measures, dt=1 / 120)
    base = run({"start.crank": 0.9})
    quick = bb.ModelRun("four_bar", 0.25, measures)(
        {"start.crank": 0.9, "gravity.z": -4 * 9.81, "dt": 1 / 240}
    )
    assert quick["final.crank"] == approx(base["final.crank"], abs=1e-11)
    assert quick["force.ground_pin"] == approx(4 * base["force.ground_pin"], rel=1e-10)
    assert quick["speed.rocker"] == approx(2 * base["speed.rocker"], rel=1e-10)
    with bb.load("four_bar") as model:
        bodies = model.system.mechanism.bodies
        links = model.system.mechanism.links
        heavy = {
            f"{name}.mass": 2 * float(bodies[links[name].body]["mass"])
            for name in ("crank", "coupler", "rocker")
        }
    heavier = run({"start.crank": 0.9, **heavy})
    assert heavier["final.crank"] == approx(base["final.crank"], abs=1e-11)
    for name in ("force.ground_pin", "energy_drift"):
        assert heavier[name] == approx(2 * base[name], rel=1e-9)
    assert base["gap"] < 1e-12
    assert run({"start.crank": 0.9, "crank.torque": 0.5})["final.crank"] > base["final.crank"]
    with pytest.raises(ModelError, match=r"unknown parameter 'crank.masss'; did you mean"):
        bb.ModelRun("four_bar", 1 / 240, ("speed.crank",))({"crank.masss": 3.0})
    with pytest.raises(ModelError, match=r"measures is 'gap'; give a sequence of names"):
        bb.ModelRun("four_bar", measures="gap")
    rate = bb.ModelRun("four_bar", 1 / 240, ("speed.crank",))({"rate.crank": 3.0})
    assert rate["speed.crank"] >= 3.0 * (1 - 1e-14)  # which the start is projected to


def test_forces_are_measured_of_what_has_them_at_a_point():
    """That of a gear was zero in every run."""
    with bb.load("gripper", "new") as model:
        forces = [name for name in measures_of(model) if name.startswith("force.")]
        assert "force.gears" not in forces
        assert forces == [f"force.{name}" for name in model.system.gap_vectors()]


def test_numbers_of_springs_between_frames_are_parameters():
    with bb.load("a03_andrews") as model:
        name = model.spec.elements[0].name
    run = bb.ModelRun("a03_andrews", 0.01, ("energy_drift",), dt=1e-4)
    soft, stiff = (run({f"{name}.stiffness": k}) for k in (1.0, 1e4))
    assert soft != stiff


@pytest.mark.parametrize(
    "text, values",
    [("m=1", [1.0]), ("m=1,2,4", [1.0, 2.0, 4.0]), ("m=0:2:3", [0.0, 1.0, 2.0]),
     ("m=1:100:3:log", [1.0, 10.0, 100.0]), ("dt=1/240,1/480", [1 / 240, 1 / 480])],
)  # fmt: skip
def test_settings_of_a_grid(text, values):
    assert grid_values(*read_setting(text)) == approx(values)


@pytest.mark.parametrize("text", ["m", "m=", "=1", "m=a", "m=1:2:0", "m=1:2:3:4", "m=-1:1:3:log",
                                  "m=nan", "m=1:log", "m=1/0", "m=1/2/3"])  # fmt: skip
def test_settings_that_cannot_be_read(text):
    with pytest.raises(ModelError, match="cannot read the setting"):
        read_setting(text)


def test_random_values_are_one_in_each_share():
    spreads = dict(map(read_setting, ["a=0:1", "b=1:100:log", "c=3"]))
    points = sample(spreads, 8, seed=1)
    assert points == sample(spreads, 8, seed=1) != sample(spreads, 8, seed=2)
    for shares in ([p["a"] for p in points], [np.log10(p["b"]) / 2 for p in points]):
        assert sorted(int(8 * share) for share in shares) == list(range(8))
    assert {p["c"] for p in points} == {3.0}
    with pytest.raises(ModelError, match="write LOW:HIGH"):
        sample({"a": read_setting("a=1,2")[1]}, 8)


FOUR_BAR = ["sweep", "four_bar", "--duration", "0.02"]


def test_command_line(here, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    given = [*FOUR_BAR, "--set", "crank.mass=1:2:2", "--set", "gravity.z=-9.81,-20"]
    given += ["--measure", "force.ground_pin", "-o", "s.parquet"]
    for ending in ("png", "svg"):
        again = [] if ending == "png" else ["--resume"]
        assert run([*given, "--plot", f"s.{ending}", *again]) == 0
        assert (tmp_path / f"s.{ending}").stat().st_size > 1000
    assert "4 runs, 0 failed: s.parquet" in capsys.readouterr().out
    results = bb.read_study("s.parquet")
    assert results.names == ("crank.mass", "gravity.z")
    assert list(results.columns["gravity.z"]) == [-9.81, -20.0, -9.81, -20.0]
    assert run([*FOUR_BAR, "--set", "crank.mass=-1", "-o", "t.parquet"]) == 1
    assert "crank.mass is -1 kg; give a positive mass" in capsys.readouterr().out
    some = ["--set", "crank.mass=1,-1", "--set", "coupler.mass=1:3:3", "-o", "u.parquet"]
    assert run([*FOUR_BAR, *some, "--plot", "u.png"]) == 1  # which a script would go on after
    said = capsys.readouterr().out
    assert "6 runs, 3 failed: u.parquet" in said and (tmp_path / "u.png").is_file()
    assert "3 failed, as the one at crank.mass=-1, coupler.mass=1: " in said


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["--set", "crank.mas=1"], "unknown parameter 'crank.mas'; did you mean 'crank.mass'"),
        (["--set", "crank.mass=1:2"], "a grid needs the number of values of 'crank.mass'"),
        (["--set", "crank.mass=1", "--set", "crank.mass=2"], "a parameter is set twice"),
        (["--set", "crank.mass=1", "--measure", "force.pin"], "did you mean 'force.ground_pin'"),
        (["--set", "crank.mass=1:2", "--random", "3", "--grid"], "exclude each other"),
        (["--set", "crank.mass=1", "--integrator", "rk5"], "did you mean 'rk4'"),
        (["--set", "crank.mass=1", "--plot", "s.jpg"], "cannot draw 's.jpg'"),
        (["--set", "crank.mass=1", "--duration", "0"], "give a positive duration"),
        (["--set", "crank.mass=1", "-o", "s.csv"], "written as parquet, not 's.csv'"),
        (["--set", "crank.mass=1", "-o", "no/s.parquet"], "its directory does not exist"),
        (["--set", "crank.mass=1", "--cluster", "nowhere"], "cannot reach a Dask cluster"),
    ],
)
def test_wrong_usage(here, tmp_path, capsys, monkeypatch, arguments, said):
    monkeypatch.chdir(tmp_path)
    assert run([*FOUR_BAR, "-o", "s.parquet", *arguments]) == 2
    assert said in " ".join(capsys.readouterr().err.split())


def test_an_interrupted_sweep_says_how_it_goes_on(here, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    whole = sweeping.on_this_machine

    def interrupted(*given):
        yield next(iter(whole(*given)))
        raise KeyboardInterrupt

    monkeypatch.setattr(sweeping, "on_this_machine", interrupted)
    given = [*FOUR_BAR, "--set", "crank.mass=1:2:3", "-o", "s.parquet"]
    assert run(given) == 130
    assert "the same command with --resume goes on" in capsys.readouterr().err
    left: list[int] = []
    monkeypatch.setattr(
        sweeping, "on_this_machine", lambda f, points, n: left.extend(points) or whole(f, points, n)
    )
    assert run([*given, "--resume"]) == 0
    assert len(left) == 2 and "3 runs, 0 failed" in capsys.readouterr().out


def test_missing_packages_name_their_extras(here, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingExtraError, match=r"bulletbridge\[cluster\]"):
        bb.sweep(functions.power, {"x": [1.0]}, tmp_path / "s.parquet", cluster="tcp://x:1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"bulletbridge\[sweep\]"):
        bb.sweep(functions.power, {"x": [1.0]}, tmp_path / "t.parquet")


def test_figures_of_one_two_and_more_parameters(tmp_path):
    rng = np.random.default_rng(0)
    for names in (("a",), ("a", "b"), ("a", "b", "c")):
        columns = {name: rng.random(6) for name in (*names, "y")}
        columns["y"][2] = np.nan
        results = journal.Results(names, ("y",), columns, [""] * 6, list(range(6)))
        figure = bb.plot_study(results)
        drawn = [axes for axes in figure.axes if axes.get_xlabel()]
        assert len(drawn) == (3 if len(names) == 3 else 1)
        figure.savefig(tmp_path / "f.svg")
    grid = {"a": np.array([1.0, 1, 5, 5]), "b": np.array([-2.0, 0, -2, 0])}
    grid["y"] = np.array([1.0, np.nan, 3.0, 4.0])
    axes = bb.plot_study(journal.Results(("a", "b"), ("y",), grid, [""] * 4, [0, 1, 2, 3])).axes[0]
    assert [list(axes.get_xticks()), list(axes.get_yticks())] == [[1, 5], [-2, 0]]
    told = {text.get_position(): text.get_text() for text in axes.texts}
    assert told == {(1, -2): "1", (1, 0): "failed", (5, -2): "3", (5, 0): "4"}
    columns = {"a": np.ones(2), "y": np.ones(2)}
    with pytest.raises(ModelError, match="nothing to draw"):
        bb.plot_study(journal.Results(("a",), ("y",), columns, ["", ""], [0, 1]))


def test_a_program_without_a_guard_is_told_what_it_lacks(tmp_path, monkeypatch, capfd):
    """Each process imports the program, which would begin its study again: the first one ends it.

    With a guard the same study begins then, for nothing is left of it.
    """
    program, file = tmp_path / "program.py", tmp_path / "x.parquet"
    program.write_text(f"import bulletbridge as bb\nbb.sweep(len, {{'x': [1.0]}}, {str(file)!r})\n")
    said = "under:? if __name__ == '__main__':"
    with pytest.raises(BulletBridgeError, match=said):  # imported by somebody else's process
        runpy.run_path(str(program), run_name="__mp_main__")
    main = types.ModuleType("__main__")
    main.__file__ = str(program)
    monkeypatch.setitem(sys.modules, "__main__", main)
    with pytest.raises(BulletBridgeError, match=said):
        bb.sweep(functions.power, {"x": [1.0], "n": [2.0]}, file, workers=1)
    assert "Traceback" not in capfd.readouterr().err
    assert list(tmp_path.iterdir()) == [program]


@pytest.mark.parametrize("workers", ["all", 0, 1.5])
def test_a_number_of_workers_that_is_none_is_told(tmp_path, workers):
    with pytest.raises(ModelError, match=f"workers is {workers!r}; give a number from one on"):
        bb.sweep(functions.power, {"x": [1.0]}, tmp_path / "x.parquet", workers=workers)


def test_a_result_that_is_not_there_is_told(tmp_path):
    with pytest.raises(ModelError, match="there is no file"):
        bb.read_study(tmp_path / "none.parquet")
