"""The step: closed loops, the right accelerations, orders, invariances, singular passages."""

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
from _mechanisms import oracle
from hypothesis import assume, example, given
from numpy.testing import assert_allclose, assert_array_equal
from scipy.interpolate import CubicHermiteSpline
from scipy.spatial.transform import Rotation
from scipy.special import ellipk
from support.closed_mechanisms import closed_cases, closed_system, decided
from support.planar import four_bar, hanging, parallelogram

import bulletbridge as bb
from bulletbridge.engine.stepper import MOST_STEPS, Solver
from bulletbridge.errors import (
    OverconstrainedError,
    StepError,
)

EPS = np.finfo(float).eps
closed_systems = closed_cases()


def drawn_system(case):
    """A closed system; cases that are structures are passed over, and too many of them fail."""
    try:
        return closed_system(case)
    except OverconstrainedError:
        assume(False)


def pinocchio_acceleration(system):
    """Least-norm solution of the index-1 equations with everything from Pinocchio."""
    mechanism, q, v = system.mechanism, system.q, system.v
    p = oracle(mechanism)
    T, zero = p.rates(q), p.bias_rates(q, v)
    M, h = p.mass_matrix(q), p.bias(q, v)
    rows, drifts = [], []
    for loop in system.constraints:
        ends = []
        for side, end in enumerate((loop.a, loop.b)):
            link = mechanism.links[end.link]
            local = pin.SE3(link.R, link.p) * pin.SE3(
                Rotation.from_euler("xyz", end.rpy).as_matrix(), np.array(end.xyz)
            )
            frame = pin.Frame(
                f"{loop.name}{side}", p.ids[link.body], 0, local, pin.FrameType.OP_FRAME
            )
            index = p.model.addFrame(frame)
            data = p.model.createData()
            pin.forwardKinematics(p.model, data, q, T @ v, zero)
            pin.updateFramePlacements(p.model, data)
            J = pin.computeFrameJacobian(p.model, data, q, index, pin.LOCAL_WORLD_ALIGNED)
            a = pin.getFrameClassicalAcceleration(p.model, data, index, pin.LOCAL_WORLD_ALIGNED)
            a = a.vector if link.body else np.zeros(6)
            ends.append((J.reshape(6, -1) @ T, a, data.oMf[index].rotation))
        (Ja, aa, Ra), (Jb, ab, _) = ends
        J, drift = Jb - Ja, ab - aa
        w = Ja[3:] @ v
        keep = {"ball": 3, "weld": 6, "revolute": 5}[loop.model.value]
        # relative rotation in axes of a, which turn with a; its z is free in a revolute joint
        turn = drift[3:] - np.cross(w, J[3:] @ v)
        rows.append(np.vstack([J[:3], Ra.T @ J[3:]])[:keep])
        drifts.append(np.concatenate([drift[:3], Ra.T @ turn])[:keep])
    J, gamma = np.vstack(rows), np.concatenate(drifts)
    root = np.linalg.cholesky(M)
    Y = np.linalg.solve(root, J.T).T
    f = np.linalg.solve(root, -h)
    y = f + np.linalg.pinv(Y, rcond=1e-9) @ (-gamma - Y @ f)
    return np.linalg.solve(root.T, y), np.linalg.cond(M)


@given(closed_systems.filter(lambda case: case[3] != "point_on_plane"))
@example((128, False, [0, 1, 1, 1, 0, 1, 1, 1], "revolute", False))
def test_constrained_acceleration_agrees_with_pinocchio(case):
    system = drawn_system(case)
    assume(decided(system))  # otherwise the two rank decisions may differ
    expected, condition = pinocchio_acceleration(system)
    # solving M loses cond(M) digits, in ours and in the oracle
    size = np.abs(expected).max() * max(1.0, condition * 1e-6)
    assert_allclose(system.acceleration(), expected, atol=1e-9 * size)


def test_loops_are_closed_to_round_off_after_every_step():
    """Random trees may run into positions that they cannot pass, but few do in twenty steps."""
    passed = stuck = 0

    @given(closed_systems)
    def step_on(case):
        nonlocal passed, stuck
        try:
            system = drawn_system(case)
            for _ in range(20):
                system.step()
                found = system.evaluate()
                speed = 1.0 + np.abs(system.v).max()
                assert found.largest("kept_metres") < 1e-12 * (1 + system.encoded.length)
                assert found.largest("kept_radians") < 1e-12
                if system.status.margin > 1e-8:
                    assert found.largest("rate_metres") < 1e-11 * speed
                    assert found.largest("rate_radians") < 1e-11 * speed
        except StepError:
            stuck += 1
        else:
            passed += 1

    step_on()
    assert passed > 3 * stuck


@given(closed_systems.filter(lambda case: case[1]))
def test_one_filter_keeps_the_momentum_of_a_free_system(case):
    """A loop between links of a floating robot is internal: J vanishes on rigid motions."""
    system = drawn_system(case)
    rng = np.random.default_rng(case[0])
    q, v = system.q, rng.normal(0, 1, system.mechanism.nv)
    before = system.evaluate(q, v).momentum
    system.set_state(q, v)
    after = system.evaluate().momentum
    assert np.abs(v - system.v).max() > 1e-6 or system.decision.cap == 0
    size = np.abs(before).max() + np.abs(v).max() * system.mechanism.bodies["mass"].sum()
    assert_allclose(after, before, atol=1e-12 * size)


def test_a_loop_given_twice_changes_nothing():
    once, twice = four_bar(), four_bar(times=2)
    for system in (once, twice):
        system.assemble({"j0": 1.0}, {"j0": 2.0})
        system.run(0.5)
    assert twice.decision.cap == once.decision.cap == 2
    assert_allclose(twice.q, once.q, atol=1e-12)
    assert_allclose(twice.v, once.v, atol=1e-11)


@pytest.mark.parametrize(
    ("integrator", "order"), [("semi_implicit_euler", 1), ("verlet", 2), ("rk4", 4)]
)
@pytest.mark.parametrize("build", [four_bar, hanging], ids=["four_bar", "floating"])
def test_the_order_of_each_integrator_survives_correction_and_filter(integrator, order, build):
    def end(**options):
        system = build(**options)
        system.assemble({"j0": 1.0} if build is four_bar else None)
        if build is hanging:
            system.set_state(v=np.linspace(-1.0, 1.0, system.mechanism.nv))
        start = system.q
        system.run(0.4)
        return np.concatenate([system.q - start, system.v])

    reference = end(dt=0.02, integrator="dop853", rtol=1e-12)
    steps = (0.005, 0.0025) if order == 1 else (0.01, 0.005)
    coarse, fine = (np.abs(end(dt=dt, integrator=integrator) - reference).max() for dt in steps)
    assert order - 0.3 < np.log2(coarse / fine) < order + 0.5


@pytest.mark.parametrize(
    ("integrator", "order"), [("semi_implicit_euler", 1), ("verlet", 2), ("rk4", 4)]
)
def test_momentum_and_energy_drift_with_the_order_of_the_integrator(integrator, order):
    """A floating arm holding on to itself in free fall: both are constant in the exact motion."""

    def drift(dt):
        system = hanging(dt=dt, integrator=integrator, gravity=0.0)
        system.assemble()
        rates = np.linspace(-1.0, 1.0, system.mechanism.nv)
        system.set_state(v=rates)
        start = system.evaluate()
        system.run(0.8)
        end = system.evaluate()
        return np.abs(end.momentum - start.momentum).max(), abs(end.energy - start.energy)

    coarse, fine = (0.005, 0.0025) if order == 1 else (0.02, 0.01)
    for before, after in zip(drift(coarse), drift(fine), strict=True):
        assert order - 0.3 < np.log2(before / after) < order + 1.5


def test_the_period_of_the_parallelogram_is_an_elliptic_integral():
    swing, dt = 1.0, 5e-3
    system, inertia, torque = parallelogram(dt=dt, integrator="rk4")
    system.assemble({"j0": np.pi / 2 + swing})
    exact = 4 * ellipk(np.sin(swing / 2) ** 2) * np.sqrt(inertia / torque)
    run = system.run(1.6 * exact)
    curve = CubicHermiteSpline(run.t, run.position("j0") - np.pi / 2, run.rate("j0"))
    roots = curve.roots(extrapolate=False)
    # RK4 at 5 ms: 2e-9; its error shrinks 16 times when the step is halved
    assert abs((roots[2] - roots[0]) / exact - 1) < 4e-9


@pytest.mark.parametrize("dt", [1 / 240, 1e-3])
@pytest.mark.parametrize(("integrator", "energy"), [("semi_implicit_euler", 4e-3), ("rk4", 1e-8)])
def test_the_flattened_parallelogram_is_crossed_on_its_branch(dt, integrator, energy):
    """Energy bounds scale the error that the integrator has away from singular positions."""
    system, *_ = parallelogram(dt=dt, integrator=integrator)
    system.assemble({"j0": np.pi / 2}, {"j0": 9.0})
    start = system.evaluate()
    crossings, above = 0, False
    for _ in range(round(4 / dt)):
        system.step()
        found = system.evaluate()
        assert found.largest("kept_metres") < 1e-12
        assert found.largest("metres") < 1e-11
        assert abs(np.sin(system.q[0] + system.q[1])) < 1e-8  # the coupler stays level
        assert abs(found.energy - start.energy) < energy * dt * 960 * start.kinetic
        if above != (np.sin(system.q[0]) < 0):
            above, crossings = not above, crossings + 1
    assert crossings >= 5


def test_units_change_nothing_but_numbers():
    """Metres to millimetres and kilograms to grams: the same motion, the same rank."""
    metre, gram = 1000.0, 1000.0
    plain, scaled = four_bar(), four_bar(metre=metre, gram=gram)
    for system in (plain, scaled):
        system.assemble({"j0": 1.0}, {"j0": 3.0})
    assert_allclose(scaled.q, plain.q, atol=1e-12)
    a, b = plain.run(1.0), scaled.run(1.0)
    assert_allclose(b.q, a.q, atol=1e-9)
    assert_allclose(b.margin, a.margin, rtol=1e-9)
    assert (a.rank == b.rank).all()


@pytest.mark.parametrize("passes", [1, 2])
@pytest.mark.parametrize("correction", ["start", "current"])
def test_a_fixed_number_of_passes_is_kept(passes, correction):
    system = four_bar(passes=passes, correction=correction)
    system.assemble({"j0": 1.0}, {"j0": 2.0})
    run = system.run(0.3)
    assert set(run.passes) == {passes}
    assert system.evaluate().largest("metres") < {1: 1e-5, 2: 1e-8}[passes]


def test_reactions_hold_a_hanging_weight():
    """A bar hung on two rods' ends at rest: the loop carries half its weight, upwards."""
    system, *_ = parallelogram()
    system.assemble({"j0": np.pi / 2})
    reaction = system.reactions()["loop"]
    # the rocker (1 kg) hangs on the ground pin with half the coupler (2 kg)
    assert_allclose(reaction.force, [0, 0, (1.0 + 1.0) * 9.81], atol=1e-9)
    assert_allclose(reaction.point, [1.0, 0, 0], atol=1e-12)
    assert not reaction.unique  # out of plane nothing decides


@pytest.mark.parametrize(("turns", "far"), [(300, 0.0), (0, 1e3), (-4000, -1e3)])
def test_many_turns_and_far_places_are_no_obstacle(turns, far):
    """Angles and positions lose digits as they grow; loops close to what is left of them."""
    near, moved = four_bar(integrator="rk4"), four_bar(integrator="rk4")
    bodies = moved.mechanism.bodies.copy()
    bodies["p"][1] = [far, 0, 0]
    mechanism = replace(moved.mechanism, bodies=bodies)
    pin = bb.LoopJoint(
        "loop", bb.JointModel.BALL, bb.Frame("l2", (0.7, 0, 0)), bb.Frame("world", (1 + far, 0, 0))
    )
    moved = bb.System(mechanism, [pin], integrator="rk4")
    near.assemble({"j0": 1.0}, {"j0": 2.0})
    offset = 2 * np.pi * turns
    moved.assemble({"j0": 1.0 + offset}, {"j0": 2.0}, {"j1": near.q[1], "j2": near.q[2]})
    near.run(2.0)
    moved.run(2.0)
    assert moved.evaluate().largest("metres") < 1e-15 * (abs(far) + abs(offset)) + 1e-12
    assert_allclose(moved.q - [offset, 0, 0], near.q, atol=1e-8)


def test_one_call_for_many_steps_equals_many_calls():
    one, many = four_bar(), four_bar()
    for system in (one, many):
        system.assemble({"j0": 1.0}, {"j0": 2.0})
    run = one.rollout(50, every=5)
    for _ in range(50):
        many.step()
    assert_allclose(one.q, many.q, atol=0)
    assert_allclose(run.q[-1], many.q, atol=0)
    assert len(run.t) == 10
    assert_allclose(run.t[-1], 50 / 240, rtol=1e-14)


@pytest.mark.parametrize("every", [1, 7, 3000])
def test_long_runs_can_be_interrupted_and_go_on(every, monkeypatch):
    """Control-C is seen between calls, and what follows it is as if it had not come."""
    one, other = four_bar(), four_bar()
    for system in (one, other):
        system.assemble({"j0": 1.0}, {"j0": 2.0})
    whole, advance = one.rollout(6000, every), Solver.advance

    def interrupted(solver, *args):
        if solver is other.compiled()[0] and other.t > 0.0:
            raise KeyboardInterrupt
        return advance(solver, *args)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Solver, "advance", interrupted)
        other.rollout(6000, every)
    done = round(other.t / other.dt)
    assert 0 < done <= MOST_STEPS
    rest = other.rollout(6000 - done)
    assert_array_equal(one.q, other.q)
    assert_array_equal(whole.q[-1], rest.q[every * (6000 // every) - done - 1])


def test_forces_set_before_assembly_act_after_it():
    system = four_bar()
    tau = system.tau
    system.assemble({"j0": 1.0})
    plain = system.acceleration()
    tau[0] = 5.0
    assert np.abs(system.acceleration() - plain).max() > 1.0
