"""High-order and implicit integrators: orders, error control, singular passages, stiff forces."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from support.closed_mechanisms import closed_system
from support.planar import four_bar, hanging, planar_chain, windows
from support.users_constraints import Failing
from test_methods import SPATIAL

import bulletbridge as bb
from bulletbridge.compilation.jit import kernel
from bulletbridge.engine.radau_system import M_REAL, TI, C, T
from bulletbridge.engine.stepper import FINELY
from bulletbridge.errors import ModelError, StepError
from bulletbridge.mechanism.build import Load, empty_mechanism, with_joint
from bulletbridge.numerics.lu import back_complex, back_real, lu_complex, lu_real

ORDERS = {"dop853": 8, "radau": 5}
STEPS = {"dop853": (0.2, 0.1, 0.05), "radau": (0.05, 0.025, 0.0125)}


def swing(duration: float, dt: float, **options) -> np.ndarray:
    """Joint angles of a four-bar that has swung from rest."""
    system = four_bar(dt=dt, **options)
    system.assemble(q={"j0": 1.2})
    system.rollout(round(duration / dt))
    assert system.evaluate().largest("kept_metres") < 1e-13
    assert system.evaluate().largest("rate_metres") < 1e-13
    return system.q


@pytest.mark.parametrize("integrator", ORDERS)
def test_correction_and_filter_keep_the_order(integrator):
    reference = swing(2.0, 0.01, integrator="dop853", rtol=None)
    errors = [
        np.abs(swing(2.0, dt, integrator=integrator, rtol=None) - reference).max()
        for dt in STEPS[integrator]
    ]
    slopes = np.diff(np.log2(errors))
    assert_allclose(-slopes, ORDERS[integrator], atol=0.5)


@pytest.mark.parametrize(("integrator", "steps"), [("dop853", 4), ("radau", 8)])
def test_order_where_rotations_do_not_commute(integrator, steps):
    """A floating chain of spherical joints with a loop: halving steps gains what the order says."""
    ends = []
    for n in (steps, 2 * steps, 8 * steps):
        system = closed_system(SPATIAL, integrator=integrator, rtol=None)
        system.set_state(v=0.3 * system.v, t=0.0)
        for solver in (system._active.full, system._active.solver):
            solver.control[0]["dt"] = 1.6 / n
        system.rollout(n)
        ends.append(system.v)
    coarse, fine = (np.abs(end - ends[-1]).max() for end in ends[:2])
    assert np.log2(coarse / fine) == pytest.approx(ORDERS[integrator], abs=0.8)


@pytest.mark.parametrize("integrator", ORDERS)
@pytest.mark.parametrize("rtol", [1e-4, 1e-6, 1e-8])
def test_error_control_keeps_to_its_tolerance(integrator, rtol):
    """Over two seconds, that is 20 units of time of the motion at most (its pace is 10 1/s)."""
    reference = swing(2.0, 0.01, integrator="dop853", rtol=None)
    assert np.abs(swing(2.0, 2.0, integrator=integrator, rtol=rtol) - reference).max() < 20 * rtol


def test_outputs_do_not_change_the_motion():
    """Sub-steps end at outputs, each corrected and filtered."""
    fine = swing(2.0, 0.01, integrator="dop853", rtol=1e-9)
    coarse = swing(2.0, 1.0, integrator="dop853", rtol=1e-9)
    assert_allclose(fine, coarse, rtol=0, atol=1e-8)


def test_energy_and_momentum_hold_to_round_off():
    system = hanging(gravity=0.0, integrator="dop853", rtol=None, dt=1 / 240)
    system.assemble(v={"j0": 1.0})
    start = system.evaluate()
    system.rollout(480)
    end = system.evaluate()
    assert abs(end.energy / start.energy - 1.0) < 1e-12
    scale = np.abs(start.momentum).max()
    assert_allclose(end.momentum, start.momentum, rtol=0, atol=1e-12 * max(scale, 1.0))


VARIANTS = {"equal": (1, 1.0), "heavy": (1, 3.0), "two loops": (2, 1.0)}


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)
@pytest.mark.parametrize(("integrator", "inexact"), [("rk4", 0), ("dop853", 3)])
def test_singular_passages_at_fixed_steps(variant, integrator, inexact):
    """Ten passages in ten seconds: on the branch, closed, energy to 1e-7 of the kinetic energy.

    One of the many stages of order 8 may fall next to a position, where round-off of its rates
    counts as often over as its rows are shorter there. Of 200 passages of each variant, started
    each otherwise, 1 to 4 % lose more than 1e-7, and 2e-5 at most: of ten, more than three do so
    once in two thousand times, and nothing can lose a hundredth.
    """
    system = windows(*variant, integrator=integrator, rtol=None, dt=1 / 240)
    energy, kinetic, lost = system.evaluate().energy, 0.0, list[float]()
    for _ in range(100):
        system.rollout(24)
        seen = system.evaluate()
        kinetic = max(kinetic, seen.kinetic)
        lost.append(abs(seen.energy - energy) / max(kinetic, 10.0))
        energy = seen.energy
        assert seen.largest("metres") < 1e-12 and seen.largest("rate_metres") < 1e-12
        cranks = system.q[::2]
        assert_allclose(np.cos(cranks - cranks[0]), 1.0, atol=1e-12)
    assert sum(share > 1e-7 for share in lost) <= inexact and max(lost) < 1e-2


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)
@pytest.mark.parametrize("dt", [1 / 60, 1 / 240, 1e-3])
def test_radau_passes_singular_positions_at_fixed_steps(variant, dt):
    """Its iteration does not contract there, so Runge-Kutta does parts of a step; not exactly so.

    Where a part ends next to the position energy is off by some 1e-3 of the kinetic energy.
    """
    system = windows(*variant, integrator="radau", rtol=None, dt=dt)
    start, kinetic = system.evaluate().energy, 0.0
    for _ in range(40):
        system.rollout(round(0.1 / dt))
        seen = system.evaluate()
        kinetic = max(kinetic, seen.kinetic)
        assert abs(seen.energy - start) < 1e-2 * kinetic
        assert seen.largest("metres") < 1e-12 and seen.largest("rate_metres") < 1e-12
        cranks = system.q[::2]
        assert_allclose(np.cos(cranks - cranks[0]), 1.0, atol=1e-12)
    assert kinetic > 10.0


def time_to_level() -> tuple[float, float]:
    """When the cranks of ``windows()`` are first level [s], and how fast they turn then [rad/s].

    They and the bar are a pendulum of 5/3 kg m² and a torque of 2 g at most that starts at 1 rad/s.
    """
    pull = 2.0 * 2.0 * 9.81 / (5.0 / 3.0)
    rate = lambda angle: np.sqrt(1.0 + pull * (1.0 - np.cos(angle)))  # noqa: E731
    found = quad(lambda angle: 1.0 / rate(angle), 0.0, np.pi / 2, epsabs=1e-14, epsrel=1e-14)
    return found[0], rate(np.pi / 2)


@pytest.mark.parametrize("integrator", ["semi_implicit_euler", "verlet", "rk4", "dop853"])
@pytest.mark.parametrize("past", [0.0, 1e-8, 1e-5])
def test_steps_may_end_on_a_singular_position(integrator, past):
    """Angles from it [rad]; energy is off by no more than where steps end far from it.

    Off the loops by what its stages are, such a step would lose 1e-3 of a radian's velocity.
    """
    level, rate = time_to_level()

    def lost(dt: float) -> float:
        system = windows(integrator=integrator, rtol=None, dt=dt)
        start = system.evaluate().energy
        system.rollout(60)
        assert system.t == pytest.approx(60 * dt, rel=1e-14)
        assert system.evaluate().largest("metres") < 1e-13
        system.rollout(20)
        assert system.evaluate().largest("rate_metres") < 1e-13
        return abs(system.evaluate().energy - start)

    on_it, beside = lost((level + past / rate) / 60), lost(level / 59.5)
    kinetic = 0.5 * (5.0 / 3.0) * rate**2
    # a row as weak as ``past`` turns the round-off of positions, here a few EPS, into rates of that
    # over ``past``
    round_off = 10.0 * np.finfo(float).eps / past if past else 0.0
    assert on_it < 2.0 * beside + (1e-8 + round_off) * kinetic


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)
@pytest.mark.parametrize("rtol", [1e-8, 1e-12])
def test_error_control_does_not_resolve_singular_positions(variant, rtol):
    """The number of sub-steps is that of a smooth motion, and the energy comes out."""
    system = windows(*variant, integrator="dop853", rtol=rtol, dt=10.0)
    start = system.evaluate().energy
    system.step()
    status = system.status
    assert status.sub_steps + status.rejected < 400
    assert abs(system.evaluate().energy - start) < 1e-5
    cranks = system.q[::2]
    assert_allclose(np.cos(cranks - cranks[0]), 1.0, atol=1e-12)


def stiff_chain(stiffness: float, damping: float, **options) -> bb.System:
    """Four rods, the first joint free, springs and dampers on the others, turning as one."""
    mechanism = planar_chain([0.3] * 4, [0.5] * 4)
    mechanism.axes["stiffness"][1:], mechanism.axes["damping"][1:] = stiffness, damping
    mechanism = replace(mechanism, gravity=np.array([0, 0, -9.81]))
    system = bb.System(mechanism, **options)
    system.set_state(np.zeros(4), np.zeros(4))
    return system


def test_stiff_forces_at_steps_beyond_the_explicit_limit():
    """The fastest mode decays at 4e6 1/s: explicit steps must stay below 1e-6 s."""
    stiffness, damping = 3e6, 2e4
    system = stiff_chain(stiffness, damping, integrator="radau", rtol=None, dt=0.01)
    terms = system.terms()
    limit = (
        2.0
        / np.abs(
            np.linalg.eigvals(np.linalg.solve(terms.M, damping * np.eye(4)[1:].T @ np.eye(4)[1:]))
        ).max()
    )
    assert system.dt > 100 * limit
    start = system.evaluate().energy
    system.rollout(100)
    assert system.evaluate().energy <= start
    fine = stiff_chain(stiffness, damping, integrator="radau", rtol=1e-9, dt=1.0)
    fine.step()
    assert fine.status.sub_steps < 3000
    assert_allclose(system.q, fine.q, rtol=0, atol=1e-5)
    rigid = bb.System(planar_chain([1.2], [2.0]), integrator="dop853", dt=1.0)
    rigid.set_state([0.0], [0.0])
    rigid.step()
    assert_allclose(system.q[0], rigid.q[0], atol=1e-4)


@pytest.mark.parametrize("integrator", ORDERS)
def test_driven_rows_and_scripted_forces_are_met_at_the_stages(integrator):
    """A drive that holds its joint, and a force on a free one whose motion is known."""
    motion = bb.Motion(z=bb.Sine(0.4, 1.3, 0.2, 1.0))
    drive = bb.Coupling("drive", {"j0": 1.0}, motion=motion)
    system = four_bar(extra=[drive], integrator=integrator, rtol=1e-8, dt=0.1)
    system.assemble()
    for _ in range(10):
        system.step()
        target = motion.z(system.t)
        assert abs(system.q[0] - target[0]) < 1e-12
        assert abs(system.v[0] - target[1]) < 1e-11
    rod = replace(planar_chain([1.0], [3.0]), gravity=np.zeros(3))
    free = bb.System(rod, forces={"j0": np.cos}, integrator=integrator, rtol=1e-8, dt=2.0)
    free.set_state([0.0], [0.0])
    free.step()
    assert_allclose(free.q, 1.0 - np.cos(2.0), atol=1e-6)


@pytest.mark.parametrize(
    ("integrator", "options"),
    [*((name, {"rtol": 1e-6, "dt": 0.05}) for name in ORDERS), ("heun", {})],
    ids=[*ORDERS, "heun"],
)
def test_users_constraints_work_and_their_exceptions_undo_the_step(integrator, options):
    constraint = Failing(bb.Frame("l2", (0.7, 0, 0)), 0.9)
    chain = planar_chain([0.4, 0.9, 0.7], [0.8, 1.8, 1.4])
    system = bb.System(chain, [constraint], integrator=integrator, **options)
    system.assemble({"j0": 1.0, "j1": -1.0})
    start = system.evaluate().energy
    system.step()
    assert abs(system.evaluate().energy - start) < 1e-4
    q, t = system.q, system.t
    constraint.broken = True
    with pytest.raises(ZeroDivisionError, match="mine"):
        system.step()
    assert_array_equal(system.q, q)
    assert system.t == t
    constraint.broken = False
    system.step()


@pytest.mark.parametrize("integrator", ORDERS)
def test_forces_that_are_no_numbers_leave_the_state_as_it_was(integrator):
    system = four_bar(integrator=integrator)
    system.assemble()
    q = system.q
    system.tau[:] = np.nan
    with pytest.raises(StepError, match="check tau"):
        system.step()
    assert_array_equal(system.q, q)


def test_tolerances_that_mean_nothing_are_refused():
    with pytest.raises(ModelError, match="rtol"):
        four_bar(integrator="dop853", rtol=0.0)


def test_radau_collocates_at_its_points():
    """T and TI diagonalise the inverse of the matrix that integrates polynomials exactly."""
    assert_allclose(T @ TI, np.eye(3), atol=1e-14)
    powers = np.arange(1, 4)
    inverse = np.linalg.inv(
        (C[:, None] ** powers / powers) @ np.linalg.inv(C[:, None] ** (powers - 1))
    )
    assert_allclose(TI[0] @ inverse, M_REAL * TI[0], atol=1e-12)


@kernel
def solve_real(A, turns, b):
    """A x = b, into b."""
    lu_real(A, turns)
    back_real(A, turns, b)


@kernel
def solve_complex(A, B, turns, b, c):
    """The same of complex numbers, in parts."""
    lu_complex(A, B, turns)
    back_complex(A, B, turns, b, c)


def test_lu_solves(rng_seed=3):
    rng = np.random.default_rng(rng_seed)
    A, B, b, c = (rng.normal(size=s) for s in ((6, 6), (6, 6), 6, 6))
    A[0, 0] = 0.0
    x = np.linalg.solve(A, b)
    y = np.linalg.solve(A + 1j * B, b + 1j * c)
    turns, real, here = np.zeros(6), A.copy(), b.copy()
    solve_real(real, turns, here)
    assert_allclose(here, x, rtol=1e-10)
    solve_complex(A, B, turns, b, c)
    assert_allclose(b + 1j * c, y, rtol=1e-10)


def flat_parallelograms(count: int, rate: float, dt: float = 0.01, **options) -> bb.System:
    """Equal rods side by side, joined by bars, all in one line, that begin to turn [rad/s].

    Gravity takes them back through where they are flat.
    """
    mechanism, load = (
        empty_mechanism((0.0, -9.81, 0.0)),
        Load(1.0, (0.5, 0, 0), (1e-3, 1 / 12, 1 / 12)),
    )
    made = list[bb.LoopJoint]()
    for k in range(count + 1):
        rod, bar = f"rod{k}", f"bar{k + 1}"
        mechanism = with_joint(mechanism, rod, "revolute", rod, xyz=(float(k), 0, 0), load=load)
        if k < count:
            mechanism = with_joint(mechanism, bar, "revolute", bar, rod, (1.0, 0, 0), load=load)
    for k in range(1, count + 1):
        ends = bb.Frame(f"bar{k}", (1.0, 0, 0)), bb.Frame(f"rod{k}", (1.0, 0, 0))
        made.append(bb.LoopJoint(f"pin{k}", bb.JointModel.BALL, *ends))
    system = bb.System(mechanism, made, dt=dt, **options)
    turns = {n: rate if n.startswith("rod") else -rate for n in mechanism.joints}
    system.set_state(None, np.array(list(turns.values())))
    return system


def test_rows_that_vanish_at_the_start_have_the_scale_that_they_have_elsewhere():
    """It is what positions are known by as singular, and which of them have reactions.

    The poses by which it is decided lead one parallelogram onto the branch where it folds, and the
    others stay flat there, where their rows along the bars are a thousandth as long.
    """
    flat, bent = flat_parallelograms(3, 1.0), flat_parallelograms(3, 0.0)
    turned = {n: 0.5 if n.startswith("rod") else -0.5 for n in bent.mechanism.joints}
    bent.assemble(guess=turned)
    ratio = flat.decision.scale / bent.decision.scale
    assert ratio.max() < 10 > 1 / ratio.min()


@pytest.mark.parametrize("integrator", ["dop853", "radau"])
@pytest.mark.parametrize(("count", "rate"), [(2, 0.3), (3, 0.1761), (3, 1.0)])
def test_error_control_does_not_creep_up_to_where_parallelograms_are_flat(integrator, count, rate):
    """Slowly they come there: half a dozen times in 2.5 s, at either end.

    Rods turn as one and bars do not turn. T + V, the acceleration and what the last pin pushes the
    last rod by across it are closed form. Each passage may change the rates by ``FINELY``.
    """
    system = flat_parallelograms(count, rate, 1 / 240, integrator=integrator)
    rods = [system.mechanism.joints[f"rod{k}"] for k in range(count + 1)]
    inertia, moment = (count + 1) / 3 + count, 9.81 * ((count + 1) / 2 + count)
    started, passages = 0.5 * inertia * rate**2, 0
    for _ in range(30):
        turns = system.rollout(20).q[:, rods[0].q]
        passages += int(np.sum(np.sin(turns[1:]) * np.sin(turns[:-1]) < 0))
        q, v = np.hstack([system.q[r.q] for r in rods]), np.hstack([system.v[r.v] for r in rods])
        cosine, sine = np.cos(q[0]), np.sin(q[0])
        energy = 0.5 * inertia * v[0] ** 2 + moment * sine
        assert_allclose(energy, started, atol=2 * FINELY * (passages + 2) * started)
        turning = -moment * cosine / inertia
        gap = 2e-13 / abs(sine)  # ten times a closed one; what turns differ by within it
        if abs(sine) > 1e-3:
            known = 1e-8 + gap * (v[0] / sine) ** 2  # as rates of what is off grow by 1 / sine
            assert_allclose(q - q[0], 0, atol=gap)
            assert_allclose(system.acceleration()[rods[-1].v][0], turning, rtol=0, atol=known)
            pushed = system.reactions()[f"pin{count}"].force @ np.array([-sine, cosine, 0.0])
            across = turning / 3 + 9.81 / 2 * cosine
            assert_allclose(pushed, across, rtol=0, atol=known)
    assert passages >= 3


@pytest.mark.parametrize("by", ["step", "rollout"])
@pytest.mark.parametrize(("count", "rate"), [(1, 0.5), (1, 1.0), (2, 1.0), (3, 2.0)])
def test_radau_swings_back_through_where_parallelograms_are_flat(count, rate, by):
    """Under error control its implicit stages have no solution there, however short.

    Rods turn as one and bars do not turn: T + V is closed form, and what is lost at the position
    is at most what two ways through it may differ by, twice that share of the rates.
    """
    system = flat_parallelograms(count, rate, integrator="radau")
    if by == "step":
        for _ in range(60):
            system.step()
    else:
        system.rollout(60)
    rods = [system.mechanism.joints[f"rod{k}"] for k in range(count + 1)]
    q, v = np.hstack([system.q[r.q] for r in rods]), np.hstack([system.v[r.v] for r in rods])
    inertia, moment = (count + 1) / 3 + count, 9.81 * ((count + 1) / 2 + count)
    started = 0.5 * inertia * rate**2
    assert q[0] < -0.5  # it has come through
    assert_allclose(q, q[0], atol=1e-11)
    assert_allclose(0.5 * inertia * v[0] ** 2 + moment * np.sin(q[0]), started, rtol=2 * FINELY)
