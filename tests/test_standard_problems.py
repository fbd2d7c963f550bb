"""The standard problems of the field against solutions of 12 to 20 digits from other methods."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import bulletbridge as bb
from bulletbridge.models.standard_problems import standard_problems

PROBLEMS = standard_problems()

# coarse and fine step [s] of the classical method, end of the run [s], error allowed when fine
RUNS = {
    "a01_pendulum": (5e-3, 2.5e-3, 10.0, 1e-8),
    "a02_windows_2": (1e-2, 5e-3, 10.0, 1e-6),
    "a02_windows_40": (1e-2, 5e-3, 5.0, 1e-6),
    "a03_andrews": (2e-5, 1e-5, 0.03, 1e-9),
    "bricard": (2e-2, 1e-2, 10.0, 3e-9),
    "a05_governor": (2e-4, 1e-4, 1.0, 1e-10),
    "a05_governor_rigid": (1e-2, 5e-3, 10.0, 1e-7),
    "stewart": (4e-3, 2e-3, 1.0, 2e-8),
}


def loaded(name, dt, integrator="rk4", **options):
    """A problem at its start."""
    return bb.load(name, dt=dt, integrator=integrator, **options)


def work_of_motors(name, system):
    """What constant torques have put in [J]: in Andrews' mechanism only."""
    beta = system.mechanism.joints.get("beta")
    return 0.033 * system.q[beta.q.start] if name == "a03_andrews" else 0.0


@pytest.mark.parametrize("name", RUNS)
def test_solutions_are_those_of_the_references_and_converge_with_the_method(name):
    coarse, fine, until, allowed = RUNS[name]
    problem, errors, drifts = PROBLEMS[name], [], []
    for dt in (coarse, fine):
        with loaded(name, dt) as model:
            before = model.system.evaluate().energy
            errors.append(problem.errors(model.system, until))
            after = model.system.evaluate()
            drifts.append(abs(after.energy - before - work_of_motors(name, model.system)))
            assert after.largest("metres") < 1e-12
            assert after.largest("rate_metres") < 1e-12 * max(1.0, np.abs(model.system.v).max())
    assert errors[1].max() < allowed
    # order 4 is a factor 16; 8 leaves room for errors that pass through zero
    assert errors[1].max() < errors[0].max() / 8
    if name != "a05_governor":  # dampers take energy
        assert drifts[1] < drifts[0] / 8


def test_all_singular_positions_of_forty_windows_are_passed_on_the_branch():
    """Twenty passages in 20 s, where forty freedoms appear at once; 1e-6 m is allowed."""
    problem = PROBLEMS["a02_windows_40"]
    with loaded("a02_windows_40", 1 / 160) as model:
        assert model.system.dof == 1
        assert problem.errors(model.system).max() < 1e-6
        v = model.system.v
        assert_allclose(v[0::2], v[0], atol=1e-9 * abs(v[0]))  # all cranks are parallel
        assert_allclose(v[1::2], -v[0], atol=1e-9 * abs(v[0]))


@pytest.mark.parametrize("name", [n for n, p in PROBLEMS.items() if p.acceleration])
def test_initial_accelerations_are_the_published_ones(name):
    with loaded(name, 1e-4) as model:  # what RK4 takes for the governor's damper
        vdot, joints = model.system.acceleration(), model.system.mechanism.joints
        published = PROBLEMS[name].acceleration
        # round-off, of lengths of 0.5 m that springs of 8e5 N/m move masses of 3 kg by too
        scale = max(abs(value) for value in published.values()) + 8e5 * 0.5 / 3 * 1e-3
        for joint, value in published.items():
            assert vdot[joints[joint].v.start] == pytest.approx(value, abs=1e-12 * scale)


def test_bricard_needs_no_choice_of_rows():
    """Five rows as written, four kept whatever the position; no row by itself is dropped."""
    with loaded("bricard", 1e-2) as model:
        assert (model.system.decision.cap, model.system.dof) == (4, 1)
        assert model.spec.constraints[0].free == ()


def test_the_stiff_governor_takes_steps_a_hundred_times_the_explicit_limit():
    """Explicit steps must stay below 2 / 8117 s. The implicit Euler step is of first order."""
    errors = []
    for dt in (0.02, 0.01, 0.005):
        with loaded("a05_governor", dt, "semi_implicit_euler") as model:
            errors.append(PROBLEMS["a05_governor"].errors(model.system, 1.0)[-1])
    assert errors[0] < 0.03
    assert_allclose(np.array(errors[:-1]) / errors[1:], 2.0, atol=0.6)


def test_the_stiff_governor_settles_on_the_rigid_one():
    """Couplers give by force over stiffness: about 100 N / 8e5 N/m."""
    with loaded("a05_governor", 1e-4) as stiff, loaded("a05_governor_rigid", 1e-3) as rigid:
        for model in (stiff, rigid):
            model.system.rollout(round(0.1 / model.system.dt))
        apart = [PROBLEMS["a05_governor"].output(m.system)[0] for m in (stiff, rigid)]
        assert 1e-5 < abs(apart[0] - apart[1]) < 2e-4
        found = stiff.system.spring_forces()["couplerR"]
        assert found.position == pytest.approx(0.5, abs=3e-4)
