"""Modified integration with a weighting, of mechanisms (Eun, Park, Lee and Chung 2004)."""

import copy
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from support.closed_mechanisms import closed_cases, closed_system, decided

import bulletbridge as bb
from bulletbridge.errors import ModelError
from bulletbridge.formulations.modified import Modified
from bulletbridge.formulations.projector import Projector
from bulletbridge.formulations.python_stepper import PythonStep
from bulletbridge.mechanism.records import PRISMATIC, REVOLUTE

DEMOS = Path(__file__).parents[1] / "demos"
NAMES = ["condensed", "mass", "identity"]


@pytest.fixture
def three_link(monkeypatch):
    monkeypatch.syspath_prepend(str(DEMOS))
    yield __import__("three_link")
    sys.modules.pop("three_link")


@pytest.mark.parametrize(
    ("weights", "x", "y"),
    [
        ((1.0, 3.0, 5.0), 9.0e-7, 1.7e-6),
        (None, 2.6e-4, 1.8e-3),
    ],
)
def test_the_three_link_robot_errs_as_the_reference(three_link, weights, x, y):
    """Largest errors of the tip in x and y, to the two digits of another program's table."""
    _, _, errors = three_link.follow(weights, 500)
    assert_allclose(np.abs(errors).max(axis=0), [x, y], rtol=0.06)


def test_the_three_link_robot_moves_as_the_reference(three_link):
    """By DOP853, to ten digits of its table; growth of its tolerance over a second."""
    paper, given = three_link.paper, three_link.robot(None, 0.01)
    system = bb.System(
        given.mechanism, given.constraints, forces=three_link.disturbances(),
        integrator="dop853", dt=1.0,
    )  # fmt: skip
    start = [np.diff(x, prepend=0.0) for x in (paper.START, paper.CONSISTENT_SPEED)]
    system.set_state(*start)
    system.step()
    to = three_link.TO_ABSOLUTE
    assert_allclose(to @ system.q, [0.8402592607946, 1.82370997651, 2.005279554959], atol=1e-9)
    assert_allclose(to @ system.v, [1.057831443752, -1.686518688976, 5.220797001316], atol=1e-9)


@pytest.mark.parametrize("weighting", [*NAMES, "own"])
@pytest.mark.parametrize("model", ["ball_chain", "space_arm"])
def test_it_keeps_velocities_and_its_order_on_any_joint(model, weighting):
    """Gaps are those of a quadrature of order 4: a sixteenth at half the step."""
    gaps = []
    for dt in (0.02, 0.01):
        with bb.load(model, "new") as plain:
            nv = plain.system.mechanism.nv
        how = np.linspace(1.0, 7.0, nv) if weighting == "own" else weighting
        with bb.load(model, "new", weighting=how, dt=dt) as loaded:
            system = loaded.system
            if model == "space_arm":  # so that there is something to see
                system.set_state(v=40.0 * system.v)
            system.run(0.2)
            evaluation, fastest = system.evaluate(), np.abs(system.v).max()
            gaps.append(evaluation.largest("kept_metres"))
            assert evaluation.largest("kept_rate_metres") < 1e-13 * max(1.0, 20.0 * fastest)
    assert np.log2(gaps[0] / gaps[1]) == pytest.approx(4, abs=0.5)


CASES = closed_cases(5, 6, ("ball",), twice=False)


@settings(max_examples=4)
@given(case=CASES, weighting=st.sampled_from(NAMES))
def test_random_mechanisms_end_where_rk4_does(case, weighting):
    """Both differ from the truth by their errors, of order 4, which halving the step measures."""
    start = closed_system(case)
    if not decided(start):
        return
    ends = {}
    for how in ({"integrator": "rk4"}, {"weighting": weighting}):
        for parts in (1, 2):
            system = bb.System(start.mechanism, start.constraints, dt=4e-3 / parts, **how)
            system.set_state(start.q, start.v, 0.0)
            system.rollout(5 * parts)
            ends[next(iter(how)), parts] = np.concatenate([system.q, system.v])
    error = sum(np.abs(ends[how, 1] - ends[how, 2]).max() for how in ("integrator", "weighting"))
    apart = np.abs(ends["weighting", 2] - ends["integrator", 2]).max()
    assert apart <= 2.0 * error + 1e-9 * max(1.0, np.abs(ends["integrator", 2]).max())


@settings(max_examples=6)
@given(
    seed=st.integers(0, 2**31),
    kinds=st.lists(st.sampled_from((REVOLUTE, PRISMATIC)), min_size=5, max_size=6),
    method=st.sampled_from(("euler", "heun", "rk4")),
    weighting=st.sampled_from([*NAMES, "own"]),
    driven=st.booleans(),
)
def test_compiled_steps_are_those_of_the_written_equations(seed, kinds, method, weighting, driven):
    """Of any formulation in Python; on joints of one axis both take the same sums.

    Twenty steps gather a round-off of 1e-15 each, amplified by rows that are 1e-3 of the strongest.
    """
    start = closed_system((seed, False, kinds, "ball", False))
    if not decided(start):
        return
    mechanism, constraints = start.mechanism, list(start.constraints)
    if driven:
        first = next(iter(mechanism.joints))
        rate = start.v[mechanism.joints[first].v][0]
        motion = bb.Motion(z=lambda t: (rate * t + t * t, rate + 2.0 * t, 2.0))
        constraints.append(bb.Coupling("drive", {first: 1.0}, offset=start.q[0], motion=motion))
    H = np.linspace(1.0, 7.0, mechanism.nv) if weighting == "own" else weighting
    system = bb.System(mechanism, constraints, dt=1e-3, weighting=H, integrator=method)
    system.set_state(start.q, start.v, 0.0)
    other = copy.deepcopy(system)
    metric = np.diag(H) if weighting == "own" else H
    written = PythonStep(Projector, method, "start", None, True, metric)
    solver = other._active.solver
    for _ in range(20):
        system.step()
        assert written.step(solver, 1e-3) == 0
    for ours, theirs in ((system.q, solver.q), (system.v, solver.v)):
        assert_allclose(ours, theirs, atol=1e-10 * max(1.0, np.abs(theirs).max()))


def test_the_condensed_metric_is_that_of_the_coordinates_that_rows_mention():
    """By its definition: M_aa - M_ab M_bb⁻¹ M_ba there, one elsewhere."""
    with bb.load("space_arm", "new") as loaded:
        system = loaded.system
        xi = 0.01 * np.random.default_rng(2).standard_normal(system.mechanism.nv)
        e = system.dynamics.equations(system.q, xi, 0.0)
        a = np.abs(e.J).max(axis=0) > 1e-9
        assert 0 < a.sum() < len(a)
        M, H = e.M, np.eye(len(a))
        H[np.ix_(a, a)] = M[np.ix_(a, a)] - M[np.ix_(a, ~a)] @ np.linalg.solve(
            M[np.ix_(~a, ~a)], M[np.ix_(~a, a)]
        )
        step = np.linalg.solve(H, e.J.T) @ np.linalg.solve(
            e.J @ np.linalg.solve(H, e.J.T), e.J @ xi
        )
        v = Modified(system.dynamics, "condensed").velocity(system.q, xi, 0.0)
        assert_allclose(v, xi - step, atol=1e-12)


def test_neither_the_number_of_calls_nor_questions_between_change_a_bit():
    ends = []
    for asked in (False, True):
        with bb.load("stewart", "new", weighting="identity") as loaded:
            system = loaded.system
            if asked:
                for _ in range(8):
                    system.evaluate()
                    system.reactions()
                    system.step()
            else:
                system.rollout(8)
            ends.append(system.q.tobytes() + system.v.tobytes())
    assert ends[0] == ends[1]


def test_a_step_that_fails_leaves_the_uncorrected_velocity():
    """A force that is not finite once: afterwards steps go on as if nothing had been."""
    ends = []
    for fails in (False, True):
        with bb.load("four_bar", "new", weighting="identity", dt=0.01) as loaded:
            system = loaded.system
            system.rollout(5)
            if fails:
                system.tau[0] = np.nan
                with pytest.raises(bb.BulletBridgeError, match="finite"):
                    system.step()
                system.tau[0] = 0.0
            system.rollout(5)
            ends.append(system.q.tobytes())
    assert ends[0] == ends[1]


def test_the_filter_s_metric_keeps_the_momentum_and_others_do_not():
    """One correction of a velocity that is off the rows, of a floating arm."""
    with bb.load("space_arm", "new") as loaded:
        system = loaded.system
        xi = 0.01 * np.random.default_rng(1).standard_normal(system.mechanism.nv)
        before = system.evaluate(v=xi).momentum
        change = {}
        for weight in NAMES:
            v = Modified(system.dynamics, weight).velocity(system.q, xi, 0.0)
            assert system.evaluate(v=v).largest("kept_rate_metres") < 1e-14
            change[weight] = np.abs(system.evaluate(v=v).momentum - before).max()
    size = np.abs(before).max()
    assert change["mass"] < 1e-12 * size
    assert min(change["identity"], change["condensed"]) > 1e-4 * size


def test_weights_by_joint_are_those_by_number():
    ends = []
    for weighting in ({"coupler": 5.0}, None):
        with bb.load("four_bar", "new") as plain:
            mechanism = plain.system.mechanism
        if weighting is None:
            weighting = np.ones(mechanism.nv)
            weighting[mechanism.joints["coupler"].v] = 5.0
        with bb.load("four_bar", "new", weighting=weighting) as loaded:
            loaded.system.rollout(10)
            ends.append(loaded.system.q)
    assert ends[0].tobytes() == ends[1].tobytes()


def test_the_uncorrected_velocity_is_part_of_what_is_saved():
    with bb.load("four_bar", "new", weighting="mass") as loaded:
        system = loaded.system
        system.rollout(5)
        saved = system.save()
        others = [copy.deepcopy(system), pickle.loads(pickle.dumps(system))]
        system.rollout(5)
        end = system.q.tobytes()
        system.restore(saved)
        for one in (system, *others):
            one.rollout(5)
            assert one.q.tobytes() == end


def test_what_cannot_be_is_refused():
    for options, said in (
        ({"weighting": "masses"}, "unknown weighting 'masses'"),
        ({"weighting": [1.0, 2.0]}, "weighting is"),
        ({"weighting": {"crank": -1.0}}, "positive definite"),
        ({"weighting": {"cranc": 1.0}}, "cranc.*crank"),
        ({"weighting": "mass", "integrator": "verlet"}, "weighting is for"),
        ({"weighting": "mass", "passes": 1}, "leave passes"),
        ({"weighting": "mass", "limits": True}, "no limits"),
    ):
        with pytest.raises(ModelError, match=said):
            bb.load("four_bar", "new", **options)
