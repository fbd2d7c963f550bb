"""Comparisons, their JSON, the report and the command line."""

import json
import math
import os
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
from support.small_models import four_bar, geared

import bulletbridge as bb
from bulletbridge.cli import run
from bulletbridge.comparison.bullet_warnings import other_units
from bulletbridge.comparison.compare import compare_model, worst
from bulletbridge.comparison.native import NoNativeTwinError, require_native_twin
from bulletbridge.comparison.options import BASELINES, EVERYTHING, SOLVERS, CompareOptions
from bulletbridge.comparison.plots import joints_figure
from bulletbridge.comparison.results import Comparison
from bulletbridge.constraints.joints import LoopAxis, Motor
from bulletbridge.errors import ModelError
from bulletbridge.formulations.registry import FORMULATIONS
from bulletbridge.mechanism.build import Load, empty_mechanism, with_joint
from bulletbridge.models.bundled import bundled
from bulletbridge.models.loops_file import read_loops

SHORT = CompareOptions(duration=0.1)
EXTENTS = ("gap_m", "gap_rad", "gap_kept", "gap_kept_rad", "gap_rate", "gap_rate_rad")
EXTENTS += ("gap_acceleration", "gap_acceleration_rad")
KEYS = {"model", "solver", "mode", "integrator", "dt", "duration", "steps", "status", "message"}
KEYS |= {*EXTENTS, "energy", "trajectory_error", "step_us", "rank", "corrections", "final"}
KEYS |= {"settings", "notes"}


def is_extent(value: dict[str, float]) -> bool:
    """Whether a JSON value is the extent of a quantity."""
    return set(value) == {"max", "rms", "final"} and all(map(math.isfinite, value.values()))


def test_json_follows_the_schema(tmp_path):
    runs = compare_model(four_bar(tmp_path), SHORT)
    content = json.loads(json.dumps(Comparison(tuple(r.result for r in runs.runs)).to_dict()))
    assert content["schema"] == 1
    assert {"bulletbridge", "pybullet", "numpy", "numba", "python"} <= set(content["versions"])
    assert [r["solver"] for r in content["runs"]] == list(SOLVERS)
    for result in content["runs"]:
        assert set(result) == KEYS
        assert result["status"] == "ok" and result["message"] == ""
        assert result["steps"] == 24
        assert all(is_extent(result[key]) for key in EXTENTS)
        assert set(result["step_us"]) == {"median", "p95", "python_call", "write_back"}
        assert set(result["energy"]) == {"start_J", "drift_max_J", "drift_rel", "conserved"}
        assert set(result["final"]["q"]) == {"crank", "coupler", "rocker"}
        assert result["final"]["t"] == pytest.approx(0.1)
        assert result["trajectory_error"] is None
    ours, native, _ = content["runs"]
    assert ours["rank"]["rows"] == ours["rank"]["max"] == 2
    assert set(ours["corrections"]) == {"mean", "max"}
    assert native["rank"] is None and native["corrections"] is None
    assert ours["gap_m"]["max"] < 1e-12 < 1e-6 < native["gap_m"]["max"]


def test_energy_is_that_of_dead_loads_too(tmp_path):
    """A force along axes of the world has a potential; along those of a link it brings energy."""
    spec = read_loops(four_bar(tmp_path))
    at = bb.Frame("coupler", (0.1, 0.0, 0.0))
    for axes, conserved in (("world", True), ("coupler", False)):
        push = bb.Wrench(at, (1.0, 0.0, 9.0), axes=bb.Frame(axes), name="push")
        options = replace(SHORT, solvers=("projector", "native"), duration=0.5, dt=1e-3)
        runs = compare_model(replace(spec, wrenches=(push,)), options).runs
        ours, native = (run.result for run in runs)
        assert ours.status == native.status == "ok"
        assert ours.energy.conserved == conserved
        # 9 N over some 0.1 m are a thousand times what steps of 1 ms lose
        assert (ours.energy.drift_max_J < 1e-4) == conserved


def test_all_start_from_the_same_state(tmp_path):
    traces = [run.trace for run in compare_model(four_bar(tmp_path), SHORT).runs]
    for trace in traces[1:]:
        assert np.abs(trace.q[0] - traces[0].q[0]).max() < 1e-15
        assert np.abs(trace.v[0] - traces[0].v[0]).max() < 1e-15


def test_reference_gives_errors_that_shrink_with_the_order(tmp_path):
    path = four_bar(tmp_path)
    errors = []
    for integrator in ("semi_implicit_euler", "rk4"):
        options = CompareOptions(
            duration=0.2, integrator=integrator, solvers=("projector",), reference=True
        )
        errors.append(compare_model(path, options).runs[0].result.trajectory_error.max)
    assert errors[1] < 1e-6 < 1e-4 < errors[0]


def test_unsupported_is_not_a_failure(tmp_path):
    runs = compare_model(four_bar(tmp_path, "cylindrical"), SHORT)
    statuses = [run.result.status for run in runs.runs]
    assert statuses == ["ok", "unsupported", "unsupported"]
    assert "no native twin" in runs.runs[1].result.message
    assert worst([runs]) == 0


def test_bullet_closes_loops_without_their_limits_and_it_is_said(tmp_path):
    path = four_bar(tmp_path, "revolute")
    plain = compare_model(path, SHORT).runs[1].result
    limited = path.read_text().replace("revolute", "revolute\n    turn: {limits: [-3, 3]}")
    path.write_text(limited)
    native = compare_model(path, SHORT).runs[1].result
    assert (native.status, native.gap_m) == ("ok", plain.gap_m)
    (note,) = set(native.notes) - set(plain.notes)
    assert note.startswith("Bullet's constraints know neither limits nor friction: '")
    spec = read_loops(path)
    driven = replace(spec.constraints[0], turn=LoopAxis(motor=Motor(1.0, 1.0)))
    with pytest.raises(NoNativeTwinError, match="no motors or springs"):
        require_native_twin(replace(spec, constraints=(driven,)))


def test_all_formulations_stand_in_one_table(tmp_path, capsys):
    """Gaps on three levels: none that is corrected, small without correction, large in Bullet."""
    model, out = four_bar(tmp_path), tmp_path / "out.json"
    arguments = ["compare", str(model), "--solver", "all", "--duration", "0.2", "--reference"]
    assert run([*arguments, "--integrator", "rk4", "--json", str(out)]) == 0
    results = {r["solver"]: r for r in json.loads(out.read_text())["runs"]}
    assert list(results) == list(EVERYTHING)
    gaps = {
        name: [r[level]["max"] for level in ("gap_m", "gap_rate", "gap_acceleration")]
        for name, r in results.items()
    }
    for name in ("projector", "proximal"):
        assert np.all(np.array(gaps[name]) < [1e-12, 1e-12, 1e-9])
    for name in BASELINES:
        assert np.all(np.array(gaps[name]) > [1e-11, 1e-10, 1e-8])
        assert results[name]["settings"].startswith("no correction")
    assert np.all(np.array(gaps["native"]) > [1e-6, 1e-5, 1e-3])
    errors = {name: r["trajectory_error"]["max"] for name, r in results.items()}
    assert all(errors[name] < 1e-5 < errors["native"] for name in FORMULATIONS)
    shown = capsys.readouterr().out
    assert "gap acc." in shown and "baumgarte" in shown


def test_formulations_that_cannot_handle_a_model_say_so(tmp_path):
    loops = "- {name: again, type: ball, a: {link: coupler, xyz: [0, 0, -1.2]}, "
    loops += "b: {link: rocker, xyz: [0, 0, -0.9]}}"
    model = four_bar(tmp_path, more="").read_text().replace("actuated:", f"  {loops}\nactuated:")
    path = tmp_path / "twice.loops.yaml"
    path.write_text(model)
    runs = compare_model(path, CompareOptions(duration=0.1, solvers=("multipliers", "proximal")))
    results = [run.result for run in runs.runs]
    assert [r.status for r in results] == ["unsupported", "ok"]
    assert "rank 2" in results[0].message
    assert worst([runs]) == 0


def test_model_that_cannot_close_fails_under_every_solver(tmp_path):
    runs = compare_model(four_bar(tmp_path, "weld"), SHORT)
    assert {run.result.status for run in runs.runs} == {"failed"}
    assert worst([runs]) == 1


@pytest.mark.parametrize(
    "bad",
    [{"dt": 0.0}, {"dt": math.nan}, {"duration": -1.0}, {"duration": math.inf}, {"rtol": 0.0},
     {"dt": 1e-9}, {"solvers": ("magic",)}, {"integrator": "magic"}],
    ids=str,
)  # fmt: skip
def test_impossible_plans_are_refused(bad):
    with pytest.raises(ModelError):
        CompareOptions(**bad)


def test_numbers_of_multi_dof_joints_are_lists(capsys):
    assert run(["compare", "space_arm", "--duration", "0.02", "--json", "-"]) == 0
    final = json.loads(capsys.readouterr().out)["runs"][0]["final"]
    assert len(final["q"]["base"]) == 7 and len(final["v"]["base"]) == 6


def test_command_line_writes_json_and_report(tmp_path, capsys):
    model, other = four_bar(tmp_path), geared(tmp_path)
    out, report = tmp_path / "out.json", tmp_path / "deep" / "report"
    arguments = ["compare", str(model), str(other), "--duration", "0.1", "--json", str(out)]
    assert run([*arguments, "--report", str(report)]) == 0
    assert len(json.loads(out.read_text())["runs"]) == 6
    shown = capsys.readouterr().out
    assert "projector" in shown and str(report / "index.html") in shown
    page = (report / "index.html").read_text()
    assert_self_contained(page)
    for wanted in (
        "four_bar",
        "geared",
        "force z",
        "data:image/png",
        "data:image/svg+xml",
        "data:image/gif",
    ):
        assert wanted in page
    assert list(report.iterdir()) == [report / "index.html"]


def test_a_report_tells_how_each_model_was_run_and_the_whole_command(tmp_path, capsys):
    """Dampers of the arms take another integrator at this step than the default."""
    arguments = ["compare", "two_arms", "four_bar", "--dt", "0.01", "--duration", "0.02"]
    solvers = ["--solver", "projector", "--solver", "native"]
    assert run([*arguments, *solvers, "--report", str(tmp_path)]) == 0
    settings = (tmp_path / "index.html").read_text().partition("<h2>Settings</h2>")[2]
    cells = re.sub(r"<[^>]*>", " ", settings)
    assert re.search(r"bulletbridge\s+two_arms\s+semi_implicit_euler", cells)
    assert re.search(r"bulletbridge\s+four_bar\s+verlet", cells)
    assert len(re.findall("Bullet, default", cells)) == 1

    model = four_bar(tmp_path)
    arguments = ["compare", str(model), "--duration", "0.02", "--solver", "projector"]
    how = ["--floating-base", "--repair-inertia", "--integrator", "dop853", "--rtol", "1e-08"]
    assert run([*arguments, *how, "--report", str(tmp_path)]) == 0
    page = (tmp_path / "index.html").read_text()
    told = shlex.split(re.findall(r"<code>(bulletbridge compare .*)</code>", page)[0])
    assert set(how) | set(arguments) <= set(told)
    assert run([*told[1:], "--json", "-"]) == 0
    capsys.readouterr()


def test_figures_show_names_whole_and_what_did_not_explode():
    options = CompareOptions(duration=0.02, solvers=("projector", "native"))
    found = compare_model(read_loops(bundled()["minitaur"]), options)
    assert found.mechanism is not None
    joints = [name for name in found.mechanism.joints if name.startswith("motor_")]
    svg = ElementTree.fromstring(joints_figure(found.runs, found.mechanism, joints))
    width, seen = float(svg.attrib["width"].removesuffix("pt")), 0
    for text in svg.iter("{http://www.w3.org/2000/svg}text"):
        if text.text in joints:
            at = float(text.attrib["x"])
            assert at + 4.5 * len(text.text) < width  # letters of 9 pt are wider than half of that
            seen += 1
    assert seen == 6

    sound, burst = found.runs
    assert burst.trace is not None
    trace = replace(burst.trace, q=1e9 * burst.trace.q)
    burst = replace(burst, trace=trace, result=replace(burst.result, status="failed"))
    drawn = joints_figure([sound, burst], found.mechanism, joints)
    ticks = re.findall(r">(.?[\d.]+)</text>", drawn)
    assert ticks and all(abs(float(tick.replace("\u2212", "-"))) < 10.0 for tick in ticks)


def assert_self_contained(page: str) -> None:
    """Nothing on the page is loaded from elsewhere."""
    for source in re.findall(r'(?:src|href)="([^"]*)"', page):
        assert source.startswith(("data:", "#")), source[:80]
    bare = re.sub(r'src="data:[^"]*"', "", page)
    assert not re.search(r"https?:|@import|url\(|<script|<link", bare)


def command(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command line in a process of its own."""
    keep = {key: value for key, value in os.environ.items() if key != "DISPLAY"}
    return subprocess.run(
        [sys.executable, "-m", "bulletbridge", *arguments],
        capture_output=True,
        text=True,
        env={**keep, **environment},
        timeout=1800,  # which only a hang takes
        check=False,
    )


def test_json_on_stdout_is_alone_there(tmp_path):
    done = command("compare", str(four_bar(tmp_path)), "--duration", "0.05", "--json", "-")
    assert done.returncode == 0
    assert len(json.loads(done.stdout)["runs"]) == 3
    assert "build time" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["compare", "three_bar"], 2, "did you mean"),
        (["compare"], 2, "MODELS"),
        (["compare", "four_bar", "--dt", "-1"], 2, "dt is -1"),
        (["compare", "four_bar", "--dt", "fast"], 2, "dt"),
        (["compare", "four_bar", "--solver", "magic"], 2, "native_tuned"),
        (["compare", "four_bar", "--integrator", "magic"], 2, "rk4"),
        (["compare", "four_bar", "--json", "/no/such/place.json"], 2, "does not exist"),
        (["compare", "four_bar", "--report", "/dev/null/x"], 2, "cannot write the report"),
        (["inspect", "/no/such.loops.yaml"], 2, "no file"),
        (["fly"], 2, "fly"),
        (["compare", "four_bar", "--gui"], 1, "DISPLAY is not set"),
    ],
    ids=str,
)
def test_errors_are_one_line(arguments, code, said, capsys, monkeypatch):
    monkeypatch.delenv("DISPLAY", raising=False)
    assert run(arguments) == code
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("bulletbridge: ")
    assert said.lower() in lines[0].lower()


def test_failed_simulation_is_exit_code_one(tmp_path, capsys):
    path = four_bar(tmp_path, "weld")
    assert run(["compare", str(path), "--duration", "0.1"]) == 1
    assert "cannot close" in capsys.readouterr().out
    assert run(["inspect", str(path)]) == 1
    assert "cannot close" in capsys.readouterr().err


def test_inspect_takes_armature_out_of_the_mass_matrix_that_bullet_does_not_have(capsys):
    assert run(["inspect", "biped", "--json", "-"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["masses"]
    assert found["difference"] < 1e-12
    assert "without armature" in found["note"]


def test_inspect_tells_rank_mobility_and_redundancy(tmp_path, capsys):
    path = str(four_bar(tmp_path, "revolute"))
    assert run(["inspect", path, "--json", "-"]) == 0
    found = json.loads(capsys.readouterr().out)
    sizes = (found["rows"], found["kept"], found["rank"], found["dof"])
    assert sizes == (5, 2, 2, 1)
    assert len(found["loops"][0]["dropped"]) == 3
    assert found["masses"][0]["difference"] < 1e-12
    assert [j["actuated"] for j in found["joints"]] == [True, False, False]
    assert run(["inspect", path]) == 0
    assert "mobility 1" in capsys.readouterr().out


def test_inspect_warns_of_what_bullet_drops(tmp_path, capsys):
    path, urdf = four_bar(tmp_path), tmp_path / "four_bar.urdf"
    text = urdf.read_text().replace(
        '<joint name="rocker" type="continuous">',
        '<joint name="rocker" type="continuous"><dynamics friction="0.3"/><mimic joint="crank"/>',
    )
    urdf.write_text(text)
    assert run(["inspect", str(path)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    said = "friction, which Bullet ignores, and so do we without 'joint_friction: true': 'rocker'"
    assert said in shown
    assert "nothing leads 'rocker', for Bullet ignores <mimic>" in shown


def test_models_are_listed(capsys):
    assert run(["models"]) == 0
    assert {"four_bar", "stewart", "minitaur"} <= set(capsys.readouterr().out.split())


def test_a_demo_without_a_model_of_its_own_is_run(monkeypatch, capfd):
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    assert run(["demo", "top"]) == 0
    out, err = capfd.readouterr()
    assert out.count("\n") == 1 and "no display" in err
    assert run(["demo", "tpo"]) == 2


def test_version(capsys):
    assert run(["--version"]) == 0
    assert capsys.readouterr().out.strip()


@pytest.mark.parametrize(
    ("length", "inertia", "said"),
    [
        (0.3, 0.01, []),
        (300.0, 1e4, ["it is 300 m across: lengths of URDFs and loops files are metres"]),
    ],
)
def test_what_looks_like_millimetres_is_told(length, inertia, said):
    load = Load(1.0, (length, 0.0, 0.0), (inertia, inertia, inertia))
    arm = with_joint(empty_mechanism(), "hinge", "revolute", "arm", load=load)
    found = other_units(bb.System(arm))
    assert len(found) == len(said)
    assert all(found[k].startswith(words) for k, words in enumerate(said))
