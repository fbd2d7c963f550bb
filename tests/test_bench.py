"""The comparison with other simulators: same models, right measures, honest summaries."""

import json
import re
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from bulletbridge.bench.cases import SINGULAR, case, pendulum
from bulletbridge.bench.evaluator import GRID, Evaluator, error_at, swing
from bulletbridge.bench.figures import growth
from bulletbridge.bench.page import page, read
from bulletbridge.bench.peers.ours import Ours
from bulletbridge.bench.precision import Run, compared, refine
from bulletbridge.bench.problem import stirred, undamped
from bulletbridge.bench.run import TABLES, merged
from bulletbridge.bench.session import FULL, session
from bulletbridge.bench.settings import PACKAGES, Setting, adapters
from bulletbridge.bench.summary import by_order, exponents, standing, wall_to
from bulletbridge.bench.tasks import affordable
from bulletbridge.bench.worker import PeerError
from bulletbridge.cli import run
from bulletbridge.errors import BulletBridgeError, ModelError
from bulletbridge.models.standard_problems import standard_problems

INSTALLED = [
    peer
    for peer, package in PACKAGES.items()
    if all(find_spec(name.split(".")[0]) for name in package.imports)
]
OTHERS = [peer for peer in INSTALLED if peer != "bulletbridge"]


@pytest.fixture
def peer_of():
    """Makes adapters in this process, and closes them after the test."""
    made = []

    def make(adapter, problem, dt, **options):
        module, attribute = adapter
        made.append(getattr(import_module(module), attribute)(problem, dt, **options))
        return made[-1]

    yield make
    for peer in made:
        peer.close()


@pytest.fixture(scope="module")
def minitaur():
    """Free base, springs, planar loops, rates."""
    return case("minitaur")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # newer Exudyns rename their settings
@pytest.mark.parametrize(("name", "adapter"), [(n, a) for n in OTHERS for a in adapters(n)])
def test_every_simulator_starts_from_the_same_state_and_accelerates_alike(
    name, adapter, minitaur, peer_of
):
    made = minitaur
    ours = Ours(made, 1e-3).acceleration()
    scale = max(1.0, np.abs(ours).max())
    found = start(lambda dt: peer_of(adapter, made, dt, **PACKAGES[name].check_of("minitaur")))
    assert np.abs(found - ours).max() < PACKAGES[name].limit * scale


def start(make):
    """Accelerations at the start, from one simulator or extrapolated from three step sizes."""
    velocities = []
    for dt in (4e-6, 2e-6, 1e-6):
        peer = make(dt)
        q, v = peer.state()
        made = peer.problem
        assert max(np.abs(q - made.q).max(), np.abs(v - made.v).max()) < 1e-13
        given = peer.acceleration()
        if given is not None:
            return given
        first = peer.settled
        _, _, v = peer.record(first + 1, 1)
        velocities.append((v[first + 1] - v[first]) / dt)
    coarse, middle, fine = velocities
    return (8 * fine - 6 * middle + coarse) / 3


@pytest.mark.parametrize("name", [name for name in OTHERS if name != "exudyn"])
@pytest.mark.parametrize("problem", ["a03_andrews", "a05_governor", "stewart"])
def test_springs_and_torques_push_alike_everywhere(name, problem, peer_of):
    made = stirred(case(problem))
    ours = Ours(made, 1e-3).acceleration()
    axes = made.mechanism.axes.copy()
    axes["stiffness"] = axes["torque"] = 0.0
    bare = replace(made, struts=(), mechanism=replace(made.mechanism, axes=axes))
    limit = PACKAGES[name].limit * np.abs(ours).max()
    assert np.abs(ours - Ours(bare, 1e-3).acceleration()).max() > 3.0 * limit
    adapter, options = PACKAGES[name].adapter, PACKAGES[name].check_of(problem)
    found = start(lambda dt: peer_of(adapter, made, dt, **options))
    assert np.abs(found - ours).max() < limit


@pytest.mark.parametrize("name", sorted(set(OTHERS) & {"bullet", "pinocchio"}))
def test_who_has_no_rods_says_so(name, peer_of):
    with pytest.raises(BulletBridgeError, match="no distance constraint"):
        peer_of(PACKAGES[name].adapter, case("a01_pendulum"), 1e-3)


@pytest.mark.skipif("mujoco" not in OTHERS, reason="MuJoCo is not installed")
def test_runs_that_diverge_leave_no_log_where_the_user_is(peer_of, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    peer = peer_of(PACKAGES["mujoco"].adapter, case("four_bar"), 1e-3)
    peer.data.qvel[:] = np.nan
    peer.call(1)
    assert not list(tmp_path.iterdir())


def test_our_standard_runs_are_judged_by_the_references():
    made, problem = case("a05_governor"), standard_problems()["a05_governor"]
    peer = Ours(made, 0.1, integrator="radau", rtol=1e-6, atol=1e-7)
    times = np.array([0.1, 1.0])
    seconds, q, v = peer.visit(times)
    run = Run(np.array([0.0, *times]), seconds, q, v)
    assert compared(problem, 1.0)(run) < 1e-5  # a sub-step's 1e-6, a few times
    assert compared(problem, problem.duration)(run) is None  # it broke off, however exact it was
    assert run.at(1.0) == 2 and run.at(5.0) is None
    assert np.all(np.diff(seconds) > 0.0)


def test_minitaurs_legs_close_once_its_angles_are_exact(minitaur):
    made = minitaur
    seen = Evaluator(made).system.evaluate(made.q, made.v, 0.0)
    assert seen.largest("metres") < 1e-15 and seen.largest("rate_metres") < 1e-15
    assert all(tie.normal is not None for tie in made.ties)


def test_rows_swing_as_the_pendulum_that_they_are():
    made = case("row2")
    ours = Ours(made, 1e-3, integrator="rk4")
    _, q, v = ours.record(1000, 100)
    angle, kinetic = swing(made, 0.1 * np.arange(11))
    assert np.abs(q[:, 0] - angle).max() < 1e-10  # (dt w)^4 / 120 over four radians
    seen = Evaluator(made).drift(q, v, kinetic)
    assert seen["gap_m"] < 1e-14 and seen["energy"] < 1e-10


@pytest.mark.parametrize("name", SINGULAR)
def test_singular_passages_start_upright_and_closed(name):
    made = case(name)
    inertia, torque = pendulum(made)
    seen = Evaluator(made).system.evaluate(made.q, made.v, 0.0)
    assert seen.largest("metres") < 1e-15 and seen.largest("rate_metres") < 1e-15
    assert seen.kinetic == pytest.approx(0.5 * inertia, rel=1e-14)
    assert torque > 0.0


def test_a_state_that_diverged_has_no_error():
    made = case("row1")
    exact = np.tile(made.q, (round(1.0 / GRID) + 1, 1))
    times = GRID * np.arange(len(exact))
    assert error_at(made, times, exact + 1e-3, exact, 1.0) == pytest.approx(1e-3)
    assert error_at(made, times, np.full_like(exact, np.nan), exact, 1.0) is None
    assert error_at(made, times[:5], exact[:5], exact, 1.0) is None


def test_a_level_reached_by_chance_does_not_count():
    def rows(*pairs):
        return [{"errors": {"2": {"error": e, "wall": w}}} for e, w in pairs]

    chance = rows((1e-7, 0.1), (1e-4, 0.2), (1e-7, 0.4), (1e-8, 0.8))
    assert wall_to(chance, "2", 1e-6) == 0.4
    assert wall_to(chance, "2", 1e-9) is None


class Slow:
    """A simulator of order one that takes a millisecond a step."""

    def build(self, setting, made, dt, **options):
        self.dt = dt

    def ask(self, setting, what, *arguments):
        if what == "time":
            return 1e3, 1e3
        steps, every = arguments
        done = np.arange(0, steps + 1, every)
        states = np.full((len(done), 1), self.dt)
        return 1e-3 * done, states, states


def test_runs_too_long_for_the_last_horizon_still_go_to_an_earlier_one():
    def put_errors(row, run):
        ends = {h: run.at(h) for h in (2.0, 10.0) if run.at(h) is not None}
        row["errors"] = {
            f"{h:g}": {"error": run.q[k, 0], "wall": run.seconds[k]} for h, k in ends.items()
        }

    setting, times = Setting("mujoco", "s", {}, coarsest=0.05), GRID * np.arange(1, 201)
    reading = GRID, times, (2.0, 10.0)
    rows = list(refine(setting, case("row1"), FULL.dts, (0.5, 1e-5), reading, Slow(), put_errors))
    reached = {row["value"]: list(row["errors"]) for row in rows}
    both = [dt for dt, horizons in reached.items() if "10" in horizons]
    assert both == [0.05, 0.025]  # 10 s / 0.025 s are 0.4 s of the half second allowed
    assert min(reached) == 1 / 240 and reached[1 / 240] == ["2"]  # 2 ms would take a second
    assert wall_to(rows, "2", 0.01) == pytest.approx(0.2)
    assert wall_to(rows, "10", 0.01) is None


def test_energy_is_judged_without_dampers():
    made = case("two_arms")
    free = undamped(made)
    assert free.conservative and not made.conservative
    ours = Ours(free, 0.05, integrator="dop853", rtol=1e-10, atol=1e-12)
    _, q, v = ours.record(6, 1)
    evaluator = Evaluator(free)
    kinetic = max(evaluator.energies(*state)[0] for state in zip(q, v, strict=True))
    assert kinetic > 1.0
    assert evaluator.drift(q, v, kinetic)["energy"] < 1e-8  # rtol a sub-step, some tens of them
    assert "energy" not in Evaluator(made).drift(q, v, kinetic)


def test_the_summary_says_where_others_are_ahead():
    figures = [("bulletbridge", "a", 3.0), ("bulletbridge", "b", 2.0), ("mujoco", "c", 1.0)]
    lost = standing("x", "s", figures)
    assert (lost.ahead, lost.peer, lost.ratio, lost.ours.setting) == ("peer", "mujoco", 0.5, "b")
    assert standing("x", "s", [("mujoco", "c", 1.0)]).ahead == "peer"
    assert (
        standing("x", "m", [("bulletbridge", "a", 1e-16), ("exudyn", "c", 1e-14)]).ahead == "even"
    )
    assert standing("x", "s", [("bulletbridge", "a", None)]).ahead == "nobody"


def test_energies_are_compared_within_an_order():
    def row(peer, order, **figures):
        return {"case": "four_bar", "peer": peer, "setting": f"{order}", "dt": 1e-3} | figures

    orders = [("bulletbridge", 4), ("bulletbridge", 8), ("pinocchio", 4), ("exudyn", 2)]
    results = {
        "settings": [{"peer": p, "label": f"{o}", "order": o} for p, o in orders],
        "accuracy": [row(p, o, energy=e, gap_m=0.0, rate_m=0.0)
                     for (p, o), e in zip(orders, (2e-8, 1e-12, 1e-8, 1e-6), strict=True)],
    }  # fmt: skip
    found = dict(by_order(results))
    assert found[4].ratio == pytest.approx(0.5)
    assert found[8].theirs is None and found[2].ours is None


def test_results_are_put_together_piece_by_piece():
    def part(version, *times):
        rows = [{"case": c, "peer": "mujoco", "setting": "s", "t": t} for c, t in times]
        return dict.fromkeys(TABLES, []) | {
            "quick": False, "workload": {}, "time": rows, "parts": [{}], "settings": [],
            "peers": {"mujoco": {"name": "MuJoCo", "installed": True, "version": version}},
        }  # fmt: skip

    whole = merged([part("1", ("a", 1), ("b", 2)), part("1", ("b", 3), ("c", 4))])
    assert [(row["case"], row["t"]) for row in whole["time"]] == [("a", 1), ("b", 3), ("c", 4)]
    assert len(whole["parts"]) == 2
    with pytest.raises(ModelError, match="do not mix"):
        merged([part("1"), part("2")])


def test_growth_is_fitted_to_large_mechanisms():
    rows = [
        {"kind": "row", "peer": "drake", "setting": "s", "loops": n, "loop": {"median": t}}
        for n, t in ((1, 100.0), (5, 25.0), (10, 100.0), (20, 400.0))
    ]
    assert exponents(rows)[0]["exponent"] == pytest.approx(2.0)


def test_settings_of_a_simulator_are_told_apart_by_their_lines():
    rows = [
        {"kind": "row", "peer": "mujoco", "setting": f"s{k}", "loops": n, "loop": {"median": n * k}}
        for k in (1, 2, 3)
        for n in (10, 20)
    ]
    dashes = set(re.findall(r"stroke-dasharray: [\d., ]+", growth(rows, "row")))
    assert len(dashes) == 2  # and one line is solid


def test_a_simulator_that_dies_or_refuses_fails_alone():
    with session(("bulletbridge",)) as running:
        setting = Setting("bulletbridge", "s", {"integrator": "rk4"})
        with pytest.raises(PeerError, match="unknown integrator"):
            running.build(setting, case("row1"), 1e-3, integrator="none")
        running.build(setting, case("row1"), 1e-3)
        with pytest.raises(PeerError, match="left out"):
            affordable(setting, 1e12, 1.0, running)
        running.workers["bulletbridge"].process.kill()
        with pytest.raises(PeerError, match="ended"):
            running.ask(setting, "acceleration")


def test_bench_measures_and_writes_the_page_from_its_results(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "bulletbridge.bench.session.find_spec",
        lambda name: None if name == "pydrake" else find_spec(name),
    )
    file = tmp_path / "results.json"
    peers = [f"--peer={peer}" for peer in ("bullet", "drake")]
    choice = ["--case=four_bar", *peers, *(f"--task={t}" for t in ("time", "work-precision"))]
    assert run(["bench", "--quick", *choice, "--json", str(file)]) == 0
    results = json.loads(file.read_text())
    assert [row["same"] for row in results["conversion"]] == [True, True]
    assert not results["peers"]["drake"]["installed"]
    assert {row["peer"] for row in results["time"]} == {"bulletbridge", "bullet"}
    assert all(row["loop"]["low"] <= row["loop"]["high"] for row in results["time"])
    errors = [row["errors"] for row in results["work_precision"] if row["setting"] == "RK4"]
    assert all(run["error"] < 1e-3 for of_run in errors for run in of_run.values())
    assert run(["bench", "--read", str(file), "--report", str(tmp_path / "docs")]) == 0
    text = (tmp_path / "docs" / "index.md").read_text()
    assert text == page(results)
    assert "Drake | not installed" in text and "the figures mean nothing" in text
    assert list((tmp_path / "docs").glob("work_precision_four_bar_*.svg"))


def test_the_page_in_docs_is_that_of_the_results_in_benchmarks():
    root = Path(__file__).parents[1]
    text = page(read(root / "benchmarks" / "peers.json"))
    written = root / "docs" / "benchmarks"
    assert (written / "index.md").read_text() == text
    shown = {line.rpartition("(")[2].rstrip(")") for line in text.splitlines() if line[:2] == "!["}
    assert shown == {file.name for file in written.glob("*.svg")}


def test_bench_refuses_what_it_does_not_know(tmp_path):
    wrong = tmp_path / "wrong.json"
    wrong.write_text("{}")
    assert run(["bench", "--peer", "ode"]) == 2
    assert run(["bench", "--read", str(wrong)]) == 2
    with pytest.raises(ModelError, match="no case"):
        case("trebuchet")
