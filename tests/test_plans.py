"""Plans by iLQR: where the answer is known, and what they promise of loops, bounds and costs."""

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import lsq_linear
from support.closed_mechanisms import closed_system
from support.small_trees import slider

import bulletbridge as bb
from bulletbridge.errors import ModelError
from bulletbridge.mechanism.records import PRISMATIC, REVOLUTE, SPHERICAL

STEPS, Q, R = 25, np.diag([3.0, 0.2]), 0.1


def sliding() -> bb.System:
    """A mass on a line: its steps are linear."""
    system = bb.System(slider("x", mass=2.0, gravity=(0, 0, 0)), dt=0.05)
    system.set_state(np.array([1.0]), np.array([0.5]))
    return system


def planned(system: bb.System, **options) -> bb.Plan:
    cost = bb.QuadraticCost(
        system.mechanism, np.zeros(1), Q={"x": Q[0, 0], "x.rate": Q[1, 1]}, R={"x": R}
    )
    return bb.ilqr(system, {"x": np.zeros(STEPS)}, cost, cost, **options)


def test_a_linear_quadratic_problem_is_solved_by_riccati_in_one_iteration():
    system = sliding()
    linear, P, gains = system.linearise(), Q, []
    A, B = linear.A, linear.B
    for _ in range(STEPS):
        gains.append(np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A))
        P = Q + A.T @ P @ A - A.T @ P @ B @ gains[-1]
    plan = planned(system)
    assert plan.iterations == 1 and plan.converged
    assert_allclose(plan.K, np.array(gains[::-1]), rtol=0, atol=1e-12 * np.abs(plan.K).max())
    x = np.array([1.0, 0.5])
    assert abs(plan.costs[-1] / (x @ P @ x) - 1.0) <= 1e-12
    assert_allclose(plan(plan.q[3], plan.v[3], plan.t[3]), plan.tau[3], rtol=0, atol=1e-14)
    assert system.t == 0.0 and system.q[0] == 1.0


def test_bounds_are_those_of_the_quadratic_programme():
    """All controls at once, as least squares in a box."""
    system = sliding()
    linear = system.linearise()
    A, B = linear.A, linear.B
    most = 4.0
    plan = planned(system, bounds={"x": (-most, 0.7 * most)}, until=bb.Until(1e-14))
    roots, rows, sides = np.sqrt(np.diag(Q)), [], []
    free, moved = np.array([1.0, 0.5]), np.zeros((2, STEPS))
    for k in range(STEPS + 1):
        rows.append(roots[:, None] * moved)
        sides.append(-roots * free)
        if k < STEPS:
            moved = A @ moved
            moved[:, k] = B[:, 0]
            free = A @ free
    rows.append(np.sqrt(R) * np.eye(STEPS))
    sides.append(np.zeros(STEPS))
    best = lsq_linear(np.vstack(rows), np.concatenate(sides), (-most, 0.7 * most), method="bvls")
    assert np.count_nonzero(best.active_mask) > 3
    assert abs(plan.costs[-1] / (2.0 * best.cost) - 1.0) <= 1e-12
    assert_allclose(plan.controls["x"], best.x, rtol=0, atol=1e-6 * most)
    held = best.active_mask != 0
    assert not plan.K[held].any(), "what is at its bound is not corrected"


def test_a_weak_motor_swings_a_four_bar_up(connect):
    """Against half as much torque again: by swinging; of the system's own steps, loops closed."""
    system = bb.load("parallelogram", connect()._client, dt=1 / 80, limits=False).system
    system.assemble({"crank": 0.0})
    up = np.array([np.pi, -np.pi, np.pi])
    effort = bb.QuadraticCost(system.mechanism, up, Q={"crank": 0.0}, R={"crank": 1e-3})
    there = bb.QuadraticCost(system.mechanism, up, Q={"crank": 100.0, "crank.rate": 10.0})
    guess, most, every = np.zeros(32), 10.0, 4
    options = {"bounds": {"crank": most}, "every": every, "until": bb.Until(tolerance=1e-6)}
    plan = bb.ilqr(system, {"crank": guess}, effort, there, **options)
    used = plan.controls["crank"]
    assert plan.converged and len(plan.tau) == 128
    assert np.all(np.diff(plan.costs) < 0.0)
    assert np.abs(used).max() <= most
    assert np.abs(plan.q[-1] - up).max() <= 0.05
    assert len(repr(plan)) <= 100 and "converged" in repr(plan)
    states = zip(plan.q, plan.v, strict=True)
    assert max(system.evaluate(q, v).largest("metres") for q, v in states) <= 1e-12
    run = bb.rollout(system, system.q[None], system.v[None], plan.tau[None], steps=128)
    assert np.array_equal(run.q[0], plan.q[1:])
    # where it stops there is nothing to gain but by what is at its bound
    pull = bb.rollout_gradient(system, plan.tau, final=there).by_tau[:, 0]
    slope = pull.reshape(32, every).sum(axis=1) + 2e-3 * used
    inside = np.abs(used) < most - 1e-9
    assert inside.sum() > 5
    assert np.abs(slope[inside]).max() <= 1e-2 * np.abs(2e-3 * used).max()


def test_gains_bring_a_floating_mechanism_with_balls_back_to_its_plan():
    kinds = [REVOLUTE, SPHERICAL, PRISMATIC, SPHERICAL]
    system = closed_system((102, True, kinds, "ball", False))
    system.dt = 5e-3
    m = system.mechanism
    single = [name for name, joint in m.joints.items() if joint.is_single]
    ball = next(name for name, joint in m.joints.items() if joint.kind == "spherical")
    names = [*single, ball]
    q = np.array(system.q)
    Q = np.concatenate([np.full(m.nv, 20.0), np.full(m.nv, 0.1)])
    running = bb.QuadraticCost(m, q, Q=0.01 * Q, R=np.full(m.nv, 1e-3))
    final = bb.QuadraticCost(m, q, Q=Q)
    guess = {name: np.zeros((30, 3) if name == ball else 30) for name in names}
    plan = bb.ilqr(system, guess, running, final, bounds={ball: 5.0})
    assert plan.costs[-1] < plan.costs[0] and plan.inputs[-1] == f"{ball}[2]"
    assert plan.controls[ball].shape == (30, 3) and np.abs(plan.controls[ball]).max() <= 5.0
    (other,) = system.fork(1)
    rng, costs = np.random.default_rng(2), []
    change = (
        1e-3
        * system.linearise(reduced=True).lift[m.nv :]
        @ rng.normal(size=system.linearise(reduced=True).lift.shape[1])
    )
    for corrected in (True, False):
        other.start_from((q, np.array(system.v) + change, system.t), {})
        cost = 0.0
        for k in range(30):
            tau = plan(other.q, other.v, other.t) if corrected else plan.tau[k]
            cost += running(other.q, other.v, tau, other.t).value
            other.tau[:] = tau
            other.step(write=False)
        costs.append(cost + final(other.q, other.v, other.t).value)
    assert costs[0] < costs[1]


@pytest.mark.parametrize("as_residuals", [True, False])
def test_costs_without_derivatives_do_as_well(as_residuals):
    system = sliding()
    want = planned(system)
    roots = np.sqrt(np.array([Q[0, 0], Q[1, 1], R]))

    def running(q, v, tau, t):
        r = roots * [q["x"], v["x"], tau["x"]]
        return r if as_residuals else float(r @ r)

    def final(q, v, t):
        return running(q, v, {"x": 0.0}, t)

    found = bb.ilqr(system, {"x": np.zeros(STEPS)}, running, final)
    assert abs(found.costs[-1] / want.costs[-1] - 1.0) <= 1e-8
    assert_allclose(found.K, want.K, rtol=0, atol=1e-6 * np.abs(want.K).max())


def test_steps_that_have_no_derivatives_are_planned_by_differences():
    system = sliding()
    system.motors.set("x", velocity=0.0, force=1e-9)  # about to turn round where it rests
    system.set_state(v=[0.0])
    plan = bb.ilqr(system, {"x": np.zeros(3)}, final=lambda q, v, t: 0.0)
    assert plan.converged and list(plan.differences) == [0, 1, 2]
    (why,) = plan.reasons
    assert "'x' is about to act otherwise than in this step; others act in steps from" in why


def test_what_cannot_be_planned_is_said():
    system = sliding()

    def refused(match, controls, **options):
        with pytest.raises(ModelError, match=match):
            bb.ilqr(system, controls, **options)

    refused("nothing to control", {})
    refused("joint 'y'", {"y": np.zeros(3)})
    refused(r"give \(knots,\)", {"x": np.zeros((3, 2))})
    refused("finite numbers", {"x": np.array([np.nan])})
    refused("whole number of steps", {"x": np.zeros(3)}, every=0)
    refused("control 'z'", {"x": np.zeros(3)}, bounds={"z": 1.0})
    refused("are 1 and -1", {"x": np.zeros(3)}, bounds={"x": (1.0, -1.0)})
    free = bb.ilqr(system, {"x": np.ones(3)}, final=lambda q, v, t: 0.0)
    assert free.converged and free.iterations == 0 and np.all(free.controls["x"] == 1.0)


def test_a_search_tells_where_it_is_and_which_bound_has_ended_it(monkeypatch, capsys):
    """On a terminal alone: a plan that is made in a script leaves nothing in its log."""
    system = bb.load("four_bar", "new", limits=False).system
    goal = np.array(system.q) + [0.5, 0.0, 0.0]
    arrival = bb.QuadraticCost(system.mechanism, goal, Q={"crank": 100.0}, R={"crank": 1e-4})
    guess, few = {"crank": np.zeros(4)}, bb.Until(tolerance=1e-14, iterations=2)
    plan = bb.ilqr(system, guess, arrival, arrival, until=few)
    assert plan.reason == "at the most iterations, 2" and plan.iterations == 2
    assert not capsys.readouterr().err
    monkeypatch.setenv("FORCE_COLOR", "1")
    bb.ilqr(system, guess, arrival, arrival, until=few)
    shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", capsys.readouterr().err)
    assert "iteration 2 of at most 2" in shown
