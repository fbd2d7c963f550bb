"""Random closed mechanisms under an independent judge, and the judge itself."""

from dataclasses import replace

import campaign
import campaign_jobs
import numpy as np
import pytest
from _campaign_cases import MAKERS, kind_of, make_case
from _campaign_judge import ROLLING, Judge
from _campaign_run import Run, names_no_gap
from _campaign_tables import tables
from _processes import read, run_all
from numpy.testing import assert_allclose
from test_constraints import SAMPLES, closed_world

from bulletbridge.constraints.encode import encode
from bulletbridge.constraints.motion import Motion, Polynomial
from bulletbridge.simulation.options import COMPILED
from bulletbridge.simulation.solver import Solver
from bulletbridge.simulation.solver_arrays import Tolerances

SILENT = {"silent gap", "silent rate", "slip", "reactions", "accelerations", "not finite", "crash"}
"""What must not be whatever a run meets."""
REGULAR = "closed", "doubled", "open_start", "planar"
"""Kinds of case that error control passes in seconds; others lie at singular positions."""
OPEN = ("wheel",)
"""Kinds with faults that are known; see docs/promise.md."""
FIXED = "semi_implicit_euler", "verlet", "rk4"
ROUND_OFF = 1e-12  # of quantities near one, sums of a few dozen products


@pytest.mark.parametrize("kind", [kind for kind in MAKERS if kind not in OPEN])
def test_loops_of_random_mechanisms_are_kept_or_the_step_says_so(kind):
    """Three mechanisms, with each integrator where none is near a singular position.

    Reactions and accelerations are judged at ten states of each.
    """
    faults = {}
    for number in range(3):
        for integrator in COMPILED if kind in REGULAR else FIXED:
            record = Run(make_case(number, kind), integrator, 60).record()
            if SILENT & set(record["faults"]):
                faults[number, integrator] = record
    assert not faults


@pytest.mark.parametrize("name", [name for name in SAMPLES if name != "user"])
def test_the_judge_knows_each_constraint_by_itself(name):
    """Its rows, rates and accelerations span what the kernels' span, both ways."""
    rng = np.random.default_rng(1)
    constraint = SAMPLES[name]
    if name == "driven general":  # whose own axis has no sign, so its turn needs one
        constraint = replace(constraint, motion=replace(constraint.motion, axis=(0.3, -0.5, 0.8)))
    mechanism, constraint, q, v, t = closed_world(constraint, rng)
    vdot = rng.normal(size=mechanism.nv)
    terms = Solver(mechanism, encode(mechanism, [constraint]), Tolerances()).terms(q, v, t)
    ours = np.column_stack([terms.J, terms.g_t, terms.J @ vdot + terms.gamma])
    judge = Judge(mechanism, [constraint])
    state = q[None], v[None], np.array([t])
    J, (rates,) = judge.jacobian(q, t), judge.rates(*state)
    accelerations = judge.accelerations_of_rows(q, v, vdot, t)
    theirs = np.column_stack([J, rates[0] - J @ v, accelerations])
    for rows, others in ((ours, theirs), (theirs, ours)):
        change = np.linalg.lstsq(others.T, rows.T, rcond=1e-10)[0]
        atol = ROUND_OFF * max(1.0, np.abs(rows).max()) * 10
        assert_allclose(others.T @ change, rows.T, atol=atol)
    if hasattr(constraint, "model"):
        assert np.abs(judge.gaps(*state)[0]).max() < ROUND_OFF


@pytest.mark.parametrize("kind", MAKERS)
def test_the_judge_sees_gaps_as_rates_say(kind):
    """Sizes of gaps a moment after a closed state are those of its rates, row by row in number."""
    h = 1e-6
    for number in range(3):
        case = make_case(number, kind).parts
        if case.assembled:
            continue
        judge = Judge(case.mechanism, case.constraints)
        v = np.random.default_rng(number).normal(size=case.mechanism.nv)
        way = judge.position_rates(case.q, v)
        later = (case.q + h * way)[None], v[None], np.array([h])
        now = case.q[None], v[None], np.zeros(1)
        for c, gap, start, rate in zip(
            case.constraints, judge.gaps(*later), judge.gaps(*now), judge.rates(*now), strict=True
        ):
            if getattr(c, "model", None) in ROLLING or kind_of(c).endswith("general"):
                continue  # rates of more rows than gaps, or of others
            found = np.linalg.norm(gap - start) / h
            # what is of second order: accelerations of some hundred
            assert found == pytest.approx(np.linalg.norm(rate), abs=1e3 * h, rel=1e-3)


def test_a_judge_that_expects_a_drift_calls_its_lack_a_gap():
    """The judge's copy of a ball creeps by a nanometre during the run; the solver's does not."""
    cases = (make_case(number, "closed") for number in range(1000))
    run = Run(next(case for case in cases if case.constraint_kinds == ("ball",)), "rk4", 20)
    assert run.record()["faults"] == []
    (ball,) = run.judge.constraints
    creep = Motion(x=Polynomial((0.0, 1e-9 / (20 * run.case.parts.dt))))
    run.judge.constraints = (replace(ball, motion=creep),)
    record = run.record()
    assert {"silent gap", "silent rate"} <= set(record["faults"])
    assert record["gap"] == pytest.approx(1e-9, rel=1e-3)


def test_messages_that_name_no_gap_are_noticed():
    assert names_no_gap("step at t = 0 s: loops stay open by 4.96e-16 m or rad after the last")
    assert not names_no_gap("step at t = 0 s: loops stay open by 2.1e-9 m or rad after the last")
    assert not names_no_gap("step at t = 0 s: constraints contradict each other")


def test_a_campaign_goes_on_where_it_was_ended(tmp_path, monkeypatch, capsys):
    file = tmp_path / "journal.jsonl"
    monkeypatch.setattr(campaign, "run_all", lambda do, jobs, *_: map(do, jobs))
    options = ["--steps", "5", "--integrators", "semi_implicit_euler", "-o", str(file)]
    for mechanisms in ("1", "2"):
        monkeypatch.setattr("sys.argv", ["campaign", "--mechanisms", mechanisms, *options])
        campaign.main()
        lines = read(file)
        assert [line["number"] for line in lines] == list(range(int(mechanisms)))
    text = file.read_text()
    file.write_text(text[: len(text) - 20])  # killed while it wrote
    campaign.main()
    assert {line["number"] for line in read(file)} == {0, 1}
    shown = capsys.readouterr().out
    assert "2 mechanisms, 2 runs, 10 steps." in shown
    assert tables([]) == "no runs"


def test_jobs_that_stall_or_die_are_told_and_the_others_done():
    jobs = ["a", "stall", "b", "die", "c"]
    lines = list(run_all(campaign_jobs.perform, jobs, campaign_jobs.lost, 2, 5.0))
    ends = {line["job"]: line["end"] for line in lines}
    assert ends == {"a": "done", "stall": "hang", "b": "done", "die": "crash", "c": "done"}
