"""Gradients taken back through steps, against products of the steps' derivatives.

Those are matrices, put together forward, that ``test_step_derivatives`` holds to differences;
both solve with the same factors and differ by round-off over the weakest row that is kept:
1e-9 of the largest number.
"""

from dataclasses import replace

import numpy as np
import pytest
from _mechanisms import random_mechanism
from numpy.testing import assert_allclose
from support.closed_mechanisms import closed_system, led_weld
from test_elements import SPRINGS
from test_step_derivatives import drag, swirl

import bulletbridge as bb
from bulletbridge.control import trajectories
from bulletbridge.control.trajectories import Trajectories
from bulletbridge.mechanism.records import FREE, PRISMATIC, REVOLUTE, SPHERICAL

METHODS = ("verlet", "semi_implicit_euler")
KINDS = [REVOLUTE, SPHERICAL, PRISMATIC, SPHERICAL]
CLOSE = 1e-9


def require_products(system, steps=4, force=1.0):
    """The gradient of w·x at the end is that of the product of the steps' matrices."""
    system.acceleration()
    rng, nv = np.random.default_rng(5), system.mechanism.nv
    way, tau = rng.normal(size=2 * nv), force * rng.normal(size=(steps, nv))
    prices = rng.normal(size=3 * nv)
    assert Trajectories(system).ahead(tau) is not None, "all steps are plain"

    def running(q, v, tau, t):
        return bb.CostTerms(0.0, prices)

    def final(q, v, t):
        return bb.CostTerms(0.0, way)

    (copy,) = system.fork(1)
    parts = []
    for forces in tau:
        copy.tau[:] = forces
        found = copy.step_derivatives()
        parts.append(np.hstack([found.A, found.B]))
        copy.step(write=False)
    found = bb.rollout_gradient(system, tau, running, final)
    assert not len(found.differences)
    assert np.array_equal(found.q, copy.q) and np.array_equal(found.v, copy.v), "the same steps"
    p = way
    for k in reversed(range(steps)):
        want = p @ parts[k] + prices
        p, by_tau = want[: 2 * nv], want[2 * nv :]
        assert_allclose(found.by_tau[k], by_tau, rtol=0, atol=CLOSE * np.abs(want).max())
    closing = system.linearise(reduced=False).lift
    assert_allclose(found.by_state, closing.T @ p, rtol=0, atol=CLOSE * np.abs(p).max())


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("floats", [False, True])
@pytest.mark.parametrize(
    "model", ["weld", "ball", "revolute", "prismatic", "point_on_line", "rolling", "soft_finger"]
)
def test_loops_of_every_kind(method, floats, model):
    require_products(closed_system((102, floats, KINDS, model, False), integrator=method))


@pytest.mark.parametrize("name", ["delta", "stewart", "biped", "gripper"])
def test_bundled_models(connect, name):
    """Universal joints, rods and gears among them."""
    options = {"dt": 1e-3, "limits": False, "solver": "dense"}
    require_products(bb.load(name, connect()._client, **options).system, force=0.1)


def test_steps_by_clusters_are_gone_back_through_without_their_matrices(connect, monkeypatch):
    """They are made once more with dense factors, and gradients are those of these."""

    def refuse(*_):
        raise AssertionError("matrices of a step are asked for")

    monkeypatch.setattr(Trajectories, "of_each", refuse)
    found = []
    for solver in ("clusters", "dense"):
        options = {"dt": 1e-3, "limits": False, "solver": solver}
        system = bb.load("biped", connect()._client, **options).system
        assert (system.compiled()[0].stepper is None) == (solver == "dense")
        nv = system.mechanism.nv
        tau, way = 0.1 * np.random.default_rng(5).normal(size=(6, nv)), np.arange(2.0 * nv)
        found.append(
            bb.rollout_gradient(system, tau, final=lambda *_, way=way: bb.CostTerms(0.0, way))
        )
    ours, others = found
    for our, other in ((ours.by_state, others.by_state), (ours.by_tau, others.by_tau)):
        assert_allclose(our, other, rtol=0, atol=CLOSE * np.abs(other).max())


@pytest.mark.parametrize("method", METHODS)
def test_rows_written_twice(method):
    require_products(closed_system((7, True, KINDS, "weld", True), integrator=method))


@pytest.mark.parametrize("method", METHODS)
def test_driven_loops(method):
    require_products(led_weld(KINDS, method))


@pytest.mark.parametrize("method", METHODS)
def test_forces_of_time_and_of_the_state(method):
    """On joints and, by the frame where it acts, on a link: asked again on the way back."""
    wrench = bb.Wrench(bb.Frame("link3", (0.1, 0.2, 0)), force=swirl, torque=(0.1, 0.2, -0.3))
    forces = {"joint2": drag, "blow": wrench, "joint4": lambda t: np.sin(9.0 * t)}
    case = (102, True, KINDS, "ball", False)
    require_products(closed_system(case, integrator=method, forces=forces))


def test_a_force_of_the_state_that_fails_on_the_way_back_says_so():
    """Beside the states alone: differences ask there, steps do not."""
    asked = set()

    def broken(t, q, v):
        if back and q["joint1"] not in asked:
            raise ArithmeticError("no force")
        asked.add(q["joint1"])
        return 0.0

    back = False
    mechanism = random_mechanism(np.random.default_rng(3), [REVOLUTE])
    system = bb.System(mechanism, dt=1e-3, forces={"joint1": broken})
    system.step_derivatives()

    def final(q, v, t):
        nonlocal back
        back = True
        return bb.CostTerms(1.0, np.ones(2))

    with pytest.raises(ArithmeticError, match="no force"):
        bb.rollout_gradient(system, np.ones((3, 1)), final=final)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["spring", "torsion", "bushing", "tendon"])
def test_springs_and_dampers_of_joints_and_between_links(method, name):
    rng = np.random.default_rng(2)
    mechanism = random_mechanism(rng, [FREE, REVOLUTE, SPHERICAL, PRISMATIC, REVOLUTE])
    single = mechanism.axes["q"] >= 0
    mechanism.axes["damping"][single], mechanism.axes["stiffness"][single] = 0.2, 3.0
    mechanism.axes["armature"] = 0.1
    rod = bb.Distance("rod", bb.Frame("link1", (0.2, 0, 0)), bb.Frame("link5"), 0.9)
    system = bb.System(mechanism, [SPRINGS[name], rod], integrator=method, dt=1e-3)
    system.assemble(guess={"joint5": 0.3})
    system.set_state(v=0.3 * rng.normal(size=mechanism.nv))
    require_products(system)


def test_geared_joints():
    mechanism = random_mechanism(np.random.default_rng(4), [REVOLUTE, PRISMATIC, REVOLUTE])
    gear = bb.Coupling("gear", {"joint1": 2.0, "joint3": 1.0}, higher={"joint3": (0.3,)})
    system = bb.System(mechanism, [gear], dt=1e-3)
    system.assemble(guess=dict())
    system.set_state(v=system.v + 0.1)
    require_products(system)


def test_steps_that_are_recorded_piece_by_piece_are_the_same(connect, monkeypatch):
    """What does not fit into memory is made twice; both ways differ by round-off."""
    system = bb.load("minitaur", connect()._client, dt=1e-3, limits=False).system
    tau = np.random.default_rng(1).normal(size=(30, system.mechanism.nv))
    cost = bb.QuadraticCost(system.mechanism, system.q, Q=np.ones(2 * system.mechanism.nv))
    whole = bb.rollout_gradient(system, tau, cost, cost)
    monkeypatch.setattr(trajectories, "WHOLE", 0)
    pieces = bb.rollout_gradient(system, tau, cost, cost)
    assert np.array_equal(whole.q, pieces.q) and whole.cost == pieces.cost
    for a, b in ((whole.by_state, pieces.by_state), (whole.by_tau, pieces.by_tau)):
        assert_allclose(a, b, rtol=0, atol=1e-11 * np.abs(a).max())


def test_a_cost_that_asks_for_another_gradient_of_its_system(connect):
    """Steps that were recorded meanwhile are not taken for those that were."""
    system = bb.load("four_bar", connect()._client, dt=1e-3, limits=False).system
    tau, other = np.full((8, 3), 0.1), np.full((5, 3), -0.3)
    still = bb.QuadraticCost(system.mechanism, system.q, Q=np.ones(6))

    def final(q, v, t):
        bb.rollout_gradient(system, other, still, still)
        return still(q, v, t)

    plain = bb.rollout_gradient(system, tau, still, still)
    nested = bb.rollout_gradient(system, tau, still, final)
    assert_allclose(nested.by_tau, plain.by_tau, rtol=0, atol=1e-12 * np.abs(plain.by_tau).max())


@pytest.mark.parametrize("method", METHODS)
def test_steps_that_make_rates_at_once(method, connect):
    """50 N m on a crank of a four-bar: rates leap by what a judge of steps looks at twice."""
    bar = bb.load("four_bar", connect()._client, dt=1e-3, limits=False).system
    system = bb.System(bar.mechanism, bar.constraints, integrator=method, dt=1e-3)
    system.set_state(q=bar.q, v=bar.v)
    require_products(system, steps=2, force=50.0)


def drive(system, names, **how):
    for name in names:
        (system.motors.servo if "stiffness" in how else system.motors.set)(name, **how)


@pytest.mark.parametrize(
    ("legs", "how"),
    [
        (1, {"velocity": 0.1, "force": 50.0}),
        (1, {"velocity": -50.0, "force": 0.05}),  # never reached
        (2, {"position": 0.3, "position_gain": 0.1, "force": 900.0}),
        (4, {"position": 0.3, "velocity": 0.1, "stiffness": 3.0, "damping": 0.2, "force": 500.0}),
    ],
)
def test_motors_of_legs(connect, legs, how):
    """They hold rates, push by all they can, or give way: of one leg and of several."""
    system = bb.load("minitaur", connect()._client, dt=1e-3, limits=False).system
    system.rollout(10)
    drive(system, [name for name in system.mechanism.joints if "motor" in name][:legs], **how)
    require_products(system, force=0.1)


def test_friction_that_sticks_and_a_limit_that_is_pressed():
    mechanism = random_mechanism(np.random.default_rng(4), [REVOLUTE, PRISMATIC, REVOLUTE])
    mechanism.joints["joint1"] = replace(mechanism.joint("joint1"), lower=-0.1, upper=2.0)
    system = bb.System(mechanism, dt=1e-3, limits="always")
    system.motors.set_friction("joint3", 300.0)
    system.tau[:] = -200.0, 0.0, 0.0
    system.set_state(q=[-0.1 + 1e-5, 0.2, 0.3])
    system.rollout(5)
    require_products(system)
