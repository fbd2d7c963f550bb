"""Integrators in Python: orders, correction and filter, long runs, and what happens on failure."""

from dataclasses import dataclass

import numpy as np
import pytest
from _mechanisms import REVOLUTE, SPHERICAL
from numpy.testing import assert_allclose, assert_array_equal
from support.closed_mechanisms import closed_system
from support.planar import four_bar, hanging
from support.small_models import four_bar as four_bar_model

import bulletbridge as bb
from bulletbridge.errors import ModelError, StepError, UnsupportedError
from bulletbridge.formulations.equations import Equations
from bulletbridge.formulations.integrators import METHODS, Scheme, State
from bulletbridge.formulations.projector import Projector
from bulletbridge.formulations.quasi_velocities import basis_of
from bulletbridge.formulations.registry import FORMULATIONS
from bulletbridge.formulations.stabilise import Stabilisation

ORDERS = {"euler": 1, "semi_implicit_euler": 1, "heun": 2, "rk4": 4, "nystrom4": 4}
ORDERS["rk4_quasi_velocities"] = 4
ORDERS |= {"verlet": 2, "trapezoidal": 2, "symmetric": 2}
SPATIAL = (3, True, [SPHERICAL, REVOLUTE, SPHERICAL, REVOLUTE, SPHERICAL], "ball", False)


@dataclass(frozen=True)
class Sphere:
    """A particle of 2 kg held at 1 m from the origin, g = 9.81 m/s²."""

    nq: int = 3
    nv: int = 3

    def equations(self, q, v, t):
        f, zero, one = np.array([0, 0, -2.0 * 9.81]), np.zeros(1), np.ones(1)
        g, gamma = 0.5 * (q @ q - one), v @ v * one
        return Equations(2.0 * np.eye(3), f, q[None, :], g, zero, gamma, one)

    def displace(self, q, step):
        return q + step


def conical(t: float) -> tuple[np.ndarray, np.ndarray]:
    """A conical pendulum at 45 degrees: w² = g / (l cos)."""
    r = np.sqrt(0.5)
    w = np.sqrt(9.81 / r)
    c, s = np.cos(w * t), np.sin(w * t)
    return np.array([r * c, r * s, -r]), np.array([-r * w * s, r * w * c, 0.0])


def run(scheme: Scheme, q, v, duration: float, steps: int) -> State:
    """The state after a number of steps."""
    state = State(q, v, 0.0)
    for _ in range(steps):
        after = scheme(state, duration / steps)
        state = State(after.q, after.v, state.t + duration / steps)
    return state


def slope(errors: list[float]) -> float:
    """Measured order from errors at steps that are halved each time."""
    return float(-np.polyfit(np.arange(len(errors)), np.log2(errors), 1)[0])


def test_every_method_has_its_order_named():
    assert set(METHODS) == set(ORDERS)


@pytest.mark.parametrize("stabilised", [True, False])
@pytest.mark.parametrize("method", METHODS)
def test_order_on_the_conical_pendulum(method, stabilised):
    """Against the analytic solution, without and with correction and filter."""
    d, (q, v) = Sphere(), conical(0.0)
    after = Stabilisation() if stabilised else Stabilisation(passes=0, filtered=False)
    scheme = Scheme(d, FORMULATIONS["multipliers"](d), METHODS[method], after)
    errors = []
    for steps in (200, 400) if ORDERS[method] == 1 else (40, 80):
        end = run(scheme, q, v, 1.0, steps)
        errors.append(float(np.linalg.norm(end.q - conical(1.0)[0])))
    assert slope(errors) == pytest.approx(ORDERS[method], abs=0.15)


@pytest.mark.parametrize(
    "method", ["heun", "rk4", "nystrom4", "rk4_quasi_velocities", "trapezoidal", "symmetric"]
)
def test_order_where_rotations_do_not_commute(method):
    """A floating chain of spherical joints with a loop, against DOP853 in its own chart."""
    reference = closed_system(SPATIAL, integrator="dop853", rtol=1e-12)
    start = reference.q, 0.3 * reference.v
    reference.set_state(*start, t=0.0)
    q, v = reference.q, reference.v
    d = reference.dynamics
    scheme = Scheme(d, Projector(d), METHODS[method], Stabilisation())
    ends = [run(scheme, q, v, 0.2, steps) for steps in (8, 16, 32)]
    reference._active.solver.control[0]["dt"] = 0.2
    reference.step()
    errors = [float(np.abs(end.v - reference.v).max()) for end in ends]
    assert slope(errors) == pytest.approx(ORDERS[method], abs=0.15)


@pytest.mark.parametrize(("name", "speed"), [("stewart", 0.3), ("ball_chain", 0.02)])
def test_quasi_velocities_keep_the_velocity_level_by_themselves(name, speed, rng):
    """As Aghili integrates: no filter and no correction. Gaps are the method's error, h^4."""
    gaps = []
    state = rng.bit_generator.state
    for dt in (8e-3, 4e-3):
        rng.bit_generator.state = state
        options = {"passes": 0, "velocity_filter": False, "dt": dt}
        with bb.load(name, "new", integrator="rk4_quasi_velocities", **options) as model:
            system = model.system
            basis = basis_of(system.dynamics.equations(system.q, system.v, 0.0))
            system.set_state(v=basis.expand(speed * rng.normal(size=system.dof)))
            system.rollout(round(0.32 / dt))
            seen = system.evaluate()
            assert seen.largest("rate_metres") < 1e-12
            gaps.append(seen.largest("metres"))
    assert gaps[0] / gaps[1] == pytest.approx(16, rel=0.4)


@pytest.mark.parametrize("make", [four_bar, hanging], ids=["fixed", "floating"])
def test_python_and_compiled_rk4_agree(make):
    """To round-off on a fixed base; charts of the floating base differ in the fifth order."""
    systems = [make(integrator="rk4", dt=1e-3, formulation=f) for f in ("projector", Projector)]
    for system in systems:
        system.assemble(v={"j0": 1.0})
        system.rollout(50)
    assert_allclose(systems[0].q, systems[1].q, rtol=0, atol=1e-12)
    assert_allclose(systems[0].v, systems[1].v, rtol=0, atol=1e-11)
    assert systems[0].status.rank == systems[1].status.rank
    assert systems[0].t == pytest.approx(systems[1].t, abs=1e-15)


def test_symmetric_projection_is_reversible_and_keeps_energy_bounded():
    """12 s of a swinging four-bar: no trend, while plain projection of the same rule has one."""
    trends = {}
    for integrator in ("symmetric", "trapezoidal"):
        system = four_bar(integrator=integrator, formulation="multipliers", dt=0.04)
        system.assemble(q={"j0": 1.2})
        start, energies = system.evaluate().energy, []
        for _ in range(300):
            system.step()
            energies.append(abs(system.evaluate().energy - start))
        peaks = [max(part) for part in np.array_split(energies, 5)]
        trends[integrator] = (peaks[-1] - peaks[0]) / peaks[0]
    assert abs(trends["symmetric"]) < 1e-3
    assert trends["trapezoidal"] > 0.05
    system = four_bar(integrator="symmetric", formulation="multipliers", dt=0.02)
    system.assemble(q={"j0": 1.2}, v={"j0": 1.0})
    q, v = system.q, system.v
    for _ in range(2):
        system.rollout(30)
        system.set_state(v=-system.v)
    assert_allclose(system.q, q, rtol=0, atol=1e-13)
    assert_allclose(system.v, v, rtol=0, atol=1e-12)


def test_trapezoidal_rule_is_stable_on_a_stiff_damper():
    """v̇ = -1000 v with h = 0.1: the factor is (1 - 50) / (1 + 50)."""

    class Damper(Sphere):
        def equations(self, q, v, t):
            nothing = np.zeros(0)
            return Equations(
                np.eye(3), -1000.0 * v, np.zeros((0, 3)), nothing, nothing, nothing, nothing
            )

    d = Damper()
    _, v = METHODS["trapezoidal"](Projector(d), d, State(np.zeros(3), np.ones(3), 0.0), 0.1)
    assert_allclose(v, -49 / 51, rtol=1e-10)


@pytest.mark.parametrize("directions", ["start", "current"])
def test_passes_converge_linearly_or_quadratically(directions):
    """Directions of the start are a chord method, current ones Newton's."""
    d, start = Sphere(), np.array([0.0, 0.0, -1.0])
    off, v = np.array([0.3, 0.1, -1.2]), np.ones(3)
    gaps = [abs(d.equations(off, v, 0.0).g[0])]
    for passes in (1, 2, 3):
        after = Stabilisation(directions, passes, filtered=False)
        end = after(d, start, off, v, 0.0)
        assert end.passes == passes
        assert_array_equal(end.v, v)
        gaps.append(end.gap)
    if directions == "current":
        assert all(b < 0.6 * a * a for a, b in zip(gaps, gaps[1:], strict=False))
    else:
        assert all(1e-3 * a < b < 0.3 * a for a, b in zip(gaps, gaps[1:], strict=False))
    end = Stabilisation(directions)(d, start, off, v, 0.0)
    assert end.gap < 2e-14 and abs(end.q @ end.v) < 1e-15


def test_correction_and_filter_keep_the_momentum_of_a_free_system():
    """Both in the metric of M: the filter exactly, the correction does not touch velocities."""
    system = hanging(gravity=0.0)
    system.assemble(v={"j0": 1.0})
    v = np.random.default_rng(0).normal(size=system.mechanism.nv)
    before = system.evaluate(v=v).momentum
    end = Stabilisation()(system.dynamics, system.q, system.q, v, 0.0)
    after = system.evaluate(end.q, end.v).momentum
    assert np.abs(end.v - v).max() > 0.1
    assert_allclose(after, before, rtol=0, atol=1e-12 * np.abs(before).max())


def test_a_correction_that_does_not_end_raises():
    """No configuration closes 1 + x² = 0."""

    class Open(Sphere):
        def equations(self, q, v, t):
            e = super().equations(q, v, t)
            return e._replace(g=1.0 + q[:1] ** 2, J=np.diag(2.0 * q)[:1])

    with pytest.raises(StepError, match="stay open"):
        Stabilisation()(Open(), np.ones(3), 0.7 * np.ones(3), np.zeros(3), 0.0)


def test_drift_without_stabilisation_and_none_of_velocities_with_the_filter_only():
    ends = []
    for options in ({"velocity_filter": False}, {}):
        system = four_bar(integrator="rk4", dt=0.01, passes=0, **options)
        system.assemble(v={"j0": 1.0})
        system.rollout(100)
        seen = system.evaluate()
        ends.append((seen.largest("metres"), seen.largest("rate_metres")))
    assert ends[0][0] > 1e-7 and ends[0][1] > 1e-7
    assert ends[1][0] > 1e-9 and ends[1][1] < 1e-13


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_systems_step_with_every_formulation_and_write_to_their_world(formulation, tmp_path):
    path = four_bar_model(tmp_path)
    with bb.load(path, formulation=formulation, integrator="heun", dt=1e-3) as model:
        recording = model.system.rollout(20, every=5)
        model.system.step()
        assert_allclose(model.bodies.state()[0], model.system.q, atol=1e-15)
        assert model.system.t == pytest.approx(0.021)
        assert model.system.evaluate().largest("kept_metres") < 1e-13
        assert recording.q.shape == (4, model.system.mechanism.nq)
        assert recording.rank.tolist() == [2] * 4


@pytest.mark.parametrize("formulation", ["projector", "proximal"])
def test_rank_decided_at_closed_positions_is_held_in_open_stages(formulation):
    """Bricard's fifth row is 4e-5 of the strongest at a gap of 2e-4 m; counted in, joules go."""
    with bb.load("bricard", integrator="heun", formulation=formulation, dt=1 / 240) as model:
        start = model.system.evaluate().energy
        recording = model.system.rollout(240)
        assert set(recording.rank) == {4}
        assert abs(model.system.evaluate().energy - start) < 1e-3


def test_dop853_takes_any_formulation():
    ends = []
    for formulation in ("projector", "multipliers"):
        system = four_bar(integrator="dop853", formulation=formulation, dt=0.1)
        system.assemble(v={"j0": 1.0})
        system.step()
        ends.append(system.q)
    assert_allclose(*ends, rtol=0, atol=1e-10)


@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize("integrator", ["trapezoidal", "nystrom4"])
def test_driven_rows_are_followed(formulation, integrator):
    """Rows that move with time: targets at the times of the stages, rates in the filter."""
    motion = bb.Motion(z=bb.Sine(0.4, 1.3, 0.2, 1.0))
    drive = bb.Coupling("drive", {"j0": 1.0}, motion=motion)
    system = four_bar(extra=[drive], integrator=integrator, formulation=formulation, dt=5e-3)
    system.assemble()
    for _ in range(10):
        system.step()
        target = motion.z(system.t)
        assert abs(system.q[0] - target[0]) < 1e-12
        assert abs(system.v[0] - target[1]) < 1e-11


@pytest.mark.parametrize("integrator", [*METHODS, "dop853"])
def test_failures_leave_the_state_as_it_was(integrator):
    system = four_bar(integrator=integrator, formulation="proximal")
    system.assemble()
    q, v, t = system.q, system.v, system.t
    system.tau[:] = np.nan
    with pytest.raises(StepError, match="check tau"):
        system.step()
    assert_array_equal(system.q, q)
    assert_array_equal(system.v, v)
    assert system.t == t
    system.tau[:] = 0.0
    system.step()


@pytest.mark.parametrize("integrator", ["rk4", "dop853"])
def test_dependent_rows_stop_the_step_of_multipliers(integrator):
    system = four_bar(times=2, formulation="multipliers", integrator=integrator)
    system.assemble(v={"j0": 1.0})
    q, v, t = system.q, system.v, system.t
    with pytest.raises(UnsupportedError, match="rank 2"):
        system.step()
    assert_array_equal(system.q, q)
    assert_array_equal(system.v, v)
    assert system.t == t


@pytest.mark.parametrize(
    "bad",
    [
        {"formulation": "magic"},
        {"integrator": "magic"},
        {"integrator": "dop853", "passes": 2},
        {"integrator": "dop853", "velocity_filter": False},
    ],
    ids=str,
)
def test_impossible_options_are_refused(bad):
    with pytest.raises(ModelError):
        four_bar(**bad)


@pytest.mark.parametrize("name", ["stewart", "mimic_gripper", "space_arm"])
def test_correction_and_filter_see_the_matrices_of_the_equations(name):
    """And ask no forces: what they are told of is the same to the bit without them."""

    def wind(t, q, v):
        nonlocal asked
        asked += 1
        return 1.0, 2.0, 3.0

    asked = 0
    with bb.load(name, "new") as model:
        link = model.system.mechanism.carried[-1].link
    pushed = {"wind": bb.Wrench(bb.Frame(link), force=wind)}
    with bb.load(name, "new", forces=pushed) as model:
        system, d = model.system, model.system.dynamics
        v = 0.1 * np.sin(np.arange(system.mechanism.nv))
        q = d.displace(np.array(system.q), 0.1 * v)
        whole, asked = d.equations(q, v, 0.3), 0
        closing = d.closing(q, v, 0.3)
    assert asked == 0
    for field in ("M", "J", "g", "g_t", "unit"):
        assert_array_equal(getattr(closing, field), getattr(whole, field))
    assert closing.cap == whole.cap
    assert_array_equal(closing.order.levels, whole.order.levels)
    assert closing.order.positions == whole.order.positions
