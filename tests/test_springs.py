"""Joint springs and dampers in the implicit Euler step: the discrete solution, stability, loops."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import eigh
from support.planar import four_bar, planar_chain

import bulletbridge as bb
from bulletbridge.errors import ModelError
from bulletbridge.mechanism.build import Load, empty_mechanism, with_joint
from bulletbridge.system.evaluation import momentum

EPS = np.finfo(float).eps


def sprung(lengths, masses, stiffness, damping=0.0, gravity=9.81, **options):
    """A planar chain with one spring and damper on every joint."""
    mechanism = planar_chain(lengths, masses, **options)
    for joint in mechanism.joints.values():
        if joint.kind == "revolute":
            mechanism.axes["stiffness"][joint.v] = stiffness
            mechanism.axes["damping"][joint.v] = damping
    return replace(mechanism, gravity=np.array([0, 0, -gravity]))


@pytest.mark.parametrize("stiffness", [0.0, 3.0, 1e7])
def test_an_oscillator_follows_the_implicit_euler_method(stiffness):
    """I (v1 - v) = dt (-d v1 - k (q + dt v1 - r)), to the round-off of 200 steps."""
    mechanism = sprung([0.5], [2.0], stiffness, 0.4, gravity=0.0)
    mechanism.axes["rest"] = 0.3
    system = bb.System(mechanism, dt=1 / 240, integrator="semi_implicit_euler")
    system.set_state([1.0], [0.7])
    inertia, q, v, h = 2.0 * 0.5**2 / 3, 1.0, 0.7, 1 / 240
    for _ in range(200):
        v = (inertia * v - h * stiffness * (q - 0.3)) / (inertia + h * 0.4 + h * h * stiffness)
        q += h * v
    run = system.rollout(200)
    assert_allclose([run.q[-1, 0], run.v[-1, 0]], [q, v], atol=200 * 40 * EPS)


def test_explicit_springs_are_those_of_before():
    mechanism = sprung([0.5], [2.0], 3.0, gravity=0.0)
    system = bb.System(mechanism, dt=1 / 240, springs="explicit", integrator="semi_implicit_euler")
    system.set_state([1.0], [0.0])
    inertia, q, v, h = 2.0 * 0.5**2 / 3, 1.0, 0.0, 1 / 240
    for _ in range(100):
        v -= h * 3.0 * q / inertia
        q += h * v
    run = system.rollout(100)
    assert_allclose([run.q[-1, 0], run.v[-1, 0]], [q, v], atol=1e-13)
    with pytest.raises(ModelError, match="implicit, explicit"):
        bb.System(mechanism, springs="stiff")  # type: ignore[arg-type]


def test_without_springs_nothing_changes():
    """Bit by bit."""
    runs = [four_bar(dt=1e-3, springs=kind) for kind in ("implicit", "explicit")]
    for system in runs:
        system.assemble({"j0": 1.2}, {"j0": 2.0})
    assert_array_equal(*(system.rollout(50).q for system in runs))


@pytest.mark.parametrize("stiffness", [10.0, 1e4, 1e9])
@pytest.mark.parametrize("dt", [1 / 240, 1e-3])
def test_energy_of_a_stiff_chain_never_increases(stiffness, dt):
    """Without gravity, for which the step keeps energy to first order only."""
    mechanism = sprung([0.1] * 8, [0.1] * 8, stiffness, gravity=0.0)
    mechanism.axes["stiffness"][0] = 0.0
    system = bb.System(mechanism, dt=dt)
    system.set_state([0.0] + [0.02] * 7, [1.0] + [0.0] * 7)
    evaluate = system.evaluate
    energies = [evaluate().energy]
    for _ in range(300):
        system.step()
        energies.append(evaluate().energy)
    gains = np.diff(energies)
    assert gains.max() <= 1e-13 * energies[-1]


@pytest.mark.parametrize("stiffness", [5.0, 1e5])
def test_loops_with_springs_stay_closed(stiffness):
    mechanism = sprung([0.4, 0.9, 0.7], [0.8, 1.8, 1.4], stiffness, 0.01)
    mechanism.axes["rest"] = [1.2, -0.5, -1.0]
    loop = bb.LoopJoint(
        "loop", bb.JointModel.BALL, bb.Frame("l2", (0.7, 0, 0)), bb.Frame("world", (1.0, 0, 0))
    )
    system = bb.System(mechanism, [loop], dt=1 / 240)
    system.assemble({"j0": 1.2}, {"j0": 2.0})
    worst = 0.0
    for _ in range(240):
        system.step()
        found = system.evaluate()
        worst = max(worst, found.largest("metres"), found.largest("rate_metres"))
    assert worst <= 1e-12


def test_what_springs_add_to_the_step_acts_inside_joints():
    """Springs released at rest give a floating chain velocities, and no momentum."""
    mechanism = sprung([0.3] * 4, [0.3] * 4, 1e4, 0.2, gravity=0.0, floating=1.0)
    system = bb.System(mechanism, dt=1e-3)
    system.set_state([0, 0, 0, 0, 0, 0, 1.0, 0.3, -0.2, 0.1, 0.2], np.zeros(10))
    q = system.q.copy()
    system.step()
    terms = system._active.full.terms(q, system.v, 0.0)
    size = float(np.sqrt(system.v @ terms.M @ system.v))
    assert size > 1.0
    assert_allclose(momentum(system._active.full, terms, system.v), 0.0, atol=1e-13 * size)


def test_momentum_drifts_with_the_order_of_the_step():
    """Over moving configurations momentum is kept to first order, as without springs."""
    drifts = []
    for steps in (200, 400):
        mechanism = sprung([0.3] * 4, [0.3] * 4, 1e4, 0.2, gravity=0.0, floating=1.0)
        system = bb.System(mechanism, dt=0.2 / steps)
        rng = np.random.default_rng(3)
        q = np.concatenate([[0, 0, 0, 0, 0, 0, 1.0], [0.03, -0.02, 0.01, 0.02]])
        system.set_state(q, rng.normal(0, 1.0, 10) * ([0.3] * 6 + [1.0] * 4))
        before = system.evaluate().momentum
        system.rollout(steps)
        drifts.append(np.abs(system.evaluate().momentum - before).max())
    assert_allclose(drifts[0] / drifts[1], 2.0, atol=0.2)


def test_the_step_is_of_order_one():
    """Against RK4 in fine steps, where springs are soft enough for it."""
    mechanism = sprung([0.4, 0.9, 0.7], [0.8, 1.8, 1.4], 5.0, 0.1)
    loop = bb.LoopJoint(
        "loop", bb.JointModel.BALL, bb.Frame("l2", (0.7, 0, 0)), bb.Frame("world", (1.0, 0, 0))
    )

    def end(steps, **options):
        system = bb.System(mechanism, [loop], dt=0.5 / steps, **options)
        system.assemble({"j0": 1.2}, {"j0": 2.0})
        system.rollout(steps)
        return system.q

    exact = end(4000, integrator="rk4")
    errors = [np.abs(end(n) - exact).max() for n in (100, 200, 400, 800)]
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert_allclose(orders, 1.0, atol=0.15)


def test_accelerations_and_filters_know_nothing_of_the_step():
    """Between steps M alone is the metric, and the next step makes its factors again."""
    mechanism = sprung([0.4, 0.9, 0.7], [0.8, 1.8, 1.4], 1e4, 1.0)
    plain, asked = (bb.System(mechanism, dt=1e-3) for _ in range(2))
    for system in (plain, asked):
        system.set_state([1.0, 0.01, 0.02], [0.3, 0.2, 0.1])
    for _ in range(5):
        plain.step()
        asked.step()
        vdot = asked.acceleration()
        terms = asked._active.solver.terms(asked.q, asked.v, asked.t)
        assert_allclose(terms.M @ vdot, terms.forces - terms.h, rtol=1e-9, atol=1e-9)
    assert_array_equal(plain.q, asked.q)


@pytest.mark.parametrize("integrator", ["trapezoidal", "symmetric"])
def test_accurate_implicit_methods_keep_the_energy_of_a_stiff_chain(integrator):
    """Undamped, in steps of 6 times what an explicit method stands: w dt = 12 for the stiffest."""
    mechanism = sprung([0.125] * 4, [0.056] * 4, 30.0, gravity=0.0)
    system = bb.System(mechanism, dt=1 / 240, integrator=integrator)
    system.set_state([0.0, 0.01, 0.01, 0.01], np.zeros(4))
    terms = system._active.full.terms(system.q, system.v, 0.0)
    stiffest = eigh(np.diag(mechanism.axes["stiffness"]), terms.M, eigvals_only=True)[-1]
    assert np.sqrt(stiffest) / 240 > 4.0
    before = system.evaluate().energy
    system.rollout(24)
    assert_allclose(system.evaluate().energy, before, rtol=1e-3)


@pytest.mark.parametrize("order", [(0, 1, 2, 3, 4), (4, 2, 0, 3, 1), (2, 0, 4, 1, 3)])
@pytest.mark.parametrize("pairs", [((0, 1), (1, 2), (2, 3), (3, 4)), ((0, 1), (3, 4))])
def test_carts_on_springs_in_any_order_follow_implicit_euler(order, pairs):
    """(M + h C + h² K) v₁ = M v - h K x, by numpy: trees that springs join, and those they do not.

    Round-off of positions of a few metres, a few times in each of twenty steps.
    """
    masses, h, c = np.array([1.0, 2.0, 0.5, 3.0, 1.5]), 0.01, 5.0
    mechanism = empty_mechanism()
    for k in order:
        load = Load(masses[k])
        mechanism = with_joint(mechanism, f"slide{k}", "prismatic", f"cart{k}", load=load)
    springs, K, C = list[bb.Spring](), np.zeros((5, 5)), np.zeros((5, 5))
    for a, b in pairs:
        k, d = 1e4 * (1 + a), np.eye(5)[b] - np.eye(5)[a]
        K, C = K + k * np.outer(d, d), C + c * np.outer(d, d)
        ends = bb.Frame(f"cart{a}"), bb.Frame(f"cart{b}")
        springs.append(bb.Spring(f"{a}{b}", *ends, stiffness=k, damping=c, length=1.0))
    system = bb.System(mechanism, springs, dt=h, springs="implicit", solver="dense")
    stretched, v = 0.01 * np.sin(np.arange(5.0)), np.zeros(5)
    system.assemble({f"slide{k}": k + x for k, x in enumerate(stretched)})
    for _ in range(20):
        v = np.linalg.solve(np.diag(masses) + h * C + h * h * K, masses * v - h * K @ stretched)
        stretched += h * v
    system.rollout(20)
    found = [float(system.q[f"slide{k}"]) for k in range(5)]
    assert_allclose(found, np.arange(5) + stretched, atol=1e-13)
