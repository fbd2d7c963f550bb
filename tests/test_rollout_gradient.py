"""Gradients of whole trajectories, against central differences of them and products of steps.

Derivatives of a step are good to 2e-8 of the largest (``test_step_derivatives``), differences to
round-off over their length, 1e-9 of the cost: bounds are ten times the first.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from support.closed_mechanisms import closed_system
from support.richardson import moved, rate_of
from support.small_trees import slider

import bulletbridge as bb
from bulletbridge.control import adjoint
from bulletbridge.errors import ModelError, UnsupportedError
from bulletbridge.mechanism.records import PRISMATIC, REVOLUTE, SPHERICAL

KINDS = [REVOLUTE, SPHERICAL, PRISMATIC, SPHERICAL]
CLOSE = 2e-7


class Case:
    """A trajectory with a cost of everything in it, and the cost of trajectories beside it."""

    def __init__(self, system: bb.System, steps: int, **scales: float) -> None:
        rng = np.random.default_rng(1)
        system.acceleration()
        nq, nv = system.mechanism.nq, system.mechanism.nv
        self.a, self.b = rng.normal(size=nq) / nq, rng.normal(size=nv) / nv
        self.tau = rng.normal(size=(steps, nv)) * scales.get("force", 1.0)
        self.system, (self.copy,) = system, system.fork(1)
        self.start = np.array(system.q), np.array(system.v), system.t
        self.nv, self.rng = nv, rng

    def running(self, q, v, tau, t):
        return np.sin(self.a @ q) + 0.1 * (self.b @ v) ** 2 + (1.0 + t) * (self.b @ tau) ** 2

    def final(self, q, v, t):
        return np.array([np.cos(self.a @ q), self.b @ v])

    def gradient(self, **options):
        return bb.rollout_gradient(self.system, self.tau, self.running, self.final, **options)

    def cost(self, dx=None, dtau=0.0, parameters=None):
        q, v, t = self.start
        if dx is not None:
            q, v = moved(self.system.mechanism, q, dx[: self.nv]), v + dx[self.nv :]
        c, found = self.copy, 0.0
        c.start_from((q, v, t), parameters or {})
        for tau in self.tau + dtau:
            found += self.running(c.q, c.v, tau, c.t)
            c.tau[:] = tau
            c.step(write=False)
        return found + np.sum(self.final(c.q, c.v, c.t) ** 2)

    def require(self, found, close=CLOSE, of_states=2e-4):
        """The gradient is that of the whole trajectory, along tangents and along forces."""
        assert abs(found.cost - self.cost()) <= 1e-12 * abs(found.cost)
        lift = self.system.linearise(reduced=True).lift
        size = np.linalg.norm(found.by_state @ lift)
        for _ in range(3):
            z = self.rng.normal(size=lift.shape[1])
            z /= np.linalg.norm(z)
            way = lift @ z
            assert abs(
                rate_of(lambda s, w=way: self.cost(s * w), of_states) - found.by_state @ way
            ) <= (close * size)
        for _ in range(2):
            way = self.rng.normal(size=self.tau.shape)
            want = rate_of(lambda s, w=way: self.cost(dtau=s * w), 0.05)
            assert abs(want - np.sum(found.by_tau * way)) <= (
                close * np.linalg.norm(found.by_tau) * np.linalg.norm(way)
            )


@pytest.mark.parametrize("name", ["four_bar", "minitaur"])
def test_gradients_on_bundled_models(connect, name):
    system = bb.load(name, connect()._client, dt=2e-3).system
    system.rollout(30)
    case = Case(system, 40, force=0.3)
    found = case.gradient()
    assert not len(found.differences) and not found.reasons
    assert repr(found).startswith("<RolloutGradient: cost ") and "of 40 steps>" in repr(found)
    case.require(found)


@pytest.mark.parametrize(
    ("model", "twice", "integrator"),
    [("ball", False, "rk4"), ("weld", True, None), ("rolling", False, "semi_implicit_euler")],
)
def test_gradients_with_floating_bases_balls_rolls_and_redundant_rows(model, twice, integrator):
    seed = 7 if twice else 102
    system = closed_system((seed, True, KINDS, model, twice), integrator=integrator)
    Case(system, 40).require(Case(system, 40).gradient())


def test_every_number_of_steps_is_cut_rightly(connect, monkeypatch):
    """The adjoint in pieces is the product of the steps' derivatives, transposed."""
    monkeypatch.setattr(adjoint, "AT_ONCE", 4 * 6 * 3**2)  # of four steps at a time
    system = bb.load("four_bar", connect()._client, dt=2e-3, limits=False).system
    system.rollout(30)
    rng = np.random.default_rng(3)
    way, tau = rng.normal(size=6), rng.normal(size=(17, 3))

    def final(q, v, t):
        return bb.CostTerms(0.0, way)

    (copy,) = system.fork(1)
    A, B = list[np.ndarray](), list[np.ndarray]()
    for forces in tau:
        copy.tau[:] = forces
        found = copy.step_derivatives()
        A.append(found.A)
        B.append(found.B)
        copy.step(write=False)
    for n in (1, 2, 3, 4, 5, 9, 10, 16, 17):
        found, p = bb.rollout_gradient(system, tau[:n], final=final), way
        for k in reversed(range(n)):
            assert_allclose(found.by_tau[k], B[k].T @ p, rtol=0, atol=1e-12 * np.abs(B[k]).max())
            p = A[k].T @ p
        lift = system.linearise(reduced=True).lift
        assert_allclose(found.by_state @ lift, p @ lift, rtol=1e-10)


def test_what_would_open_loops_counts_for_nothing(connect):
    system = bb.load("minitaur", connect()._client).system
    found = Case(system, 5, force=0.1).gradient()
    terms = system.terms()
    off = np.linalg.solve(terms.M, terms.J.T)
    scale = np.abs(found.by_state).max() * np.abs(off).max()
    nv = len(system.v)
    assert np.abs(found.by_state[nv:] @ off).max() <= 1e-11 * scale
    assert np.abs(found.by_state[:nv] @ off).max() <= 1e-11 * scale  # at rest: no turn of rates
    assert found.states[0] == "base[0]" and found.states[nv] == "base[0].rate"


def test_costs_with_and_without_derivatives_are_the_same(connect):
    system = bb.load("minitaur", connect()._client, dt=2e-3).system
    system.set_state(v=system.v)
    system.rollout(20)
    q, m = np.array(system.q), system.mechanism
    wanted = moved(m, q, np.linspace(-0.5, 0.5, m.nv))
    Q = np.linspace(1.0, 2.0, 2 * m.nv)
    exact = bb.QuadraticCost(m, wanted, Q=Q, R=np.full(m.nv, 0.3))
    tau = np.full((4, m.nv), 0.2)

    def number(*state):
        return exact(*state).value

    found = bb.rollout_gradient(system, tau, exact, exact)
    other = bb.rollout_gradient(system, tau, number, number)
    assert abs(found.cost - other.cost) <= 1e-13 * found.cost
    for a, b in ((found.by_state, other.by_state), (found.by_tau, other.by_tau)):
        assert_allclose(a, b, rtol=0, atol=1e-9 * np.abs(a).max())


@pytest.mark.parametrize(
    "motor",
    [
        {"velocity": -50.0, "force": 0.05},  # never reached
        {"velocity": -50.0, "velocity_gain": 0.5, "force": 0.05},
    ],
)
def test_steps_with_motors_go_by_their_active_set(connect, motor):
    system = bb.load("four_bar", connect()._client, dt=2e-3, limits=False).system
    system.motors.set("crank", **motor)
    case = Case(system, 6)
    found = case.gradient()
    assert not len(found.differences)
    case.require(found)


def test_steps_of_other_integrators_go_by_differences_and_it_is_said(connect):
    options = {"limits": False, "integrator": "dop853"}
    system = bb.load("four_bar", connect()._client, dt=2e-3, **options).system
    case = Case(system, 6)
    found = case.gradient()
    assert list(found.differences) == list(range(6)) and "6 by differences" in repr(found)
    assert len(found.reasons) == 1 and "steps other than those of" in found.reasons[0]
    case.require(found, close=1e-6)
    with pytest.raises(UnsupportedError, match="in step 5 derivatives of steps other than"):
        case.gradient(parameters=["rocker.mass"])


def test_gradients_by_parameters(connect):
    """Lengths move the start as well; what is zero and not negative has a derivative from above."""
    system = bb.load("four_bar", connect()._client, dt=2e-3, limits=False).system
    system.rollout(30)
    case = Case(system, 60, force=0.3)
    known = system.parameters
    steps = {"rocker.mass": 1e-2, "gravity.z": 1e-2, "ground_pin.b.x": 1e-4, "crank.armature": 1e-2}
    found = case.gradient(parameters=[*steps, "coupler.damping"])
    assert system.parameters == known
    for name, h in steps.items():
        if known[name] == 0.0:
            continue
        x = known[name]
        want = rate_of(lambda s, n=name, x=x: case.cost(parameters={n: x + s}), h)
        case.copy.start_from(case.start, {name: x})
        assert abs(found.by_parameters[name] / want - 1.0) <= 1e-6, name
    base, h = case.cost(), 1e-4
    more = [case.cost(parameters={"coupler.damping": k * h}) for k in (1, 2)]
    want = (4.0 * more[0] - more[1] - 3.0 * base) / (2.0 * h)
    assert abs(found.by_parameters["coupler.damping"] / want - 1.0) <= 1e-4


def test_a_body_has_one_mass_by_the_names_of_all_its_links(connect):
    """The one that was given last counts, whichever were given before; gradients go by each."""
    system = bb.load("minitaur", connect()._client).system
    names = "base_chassis_link.mass", "chassis_right.mass"
    for mass, name in zip((3.0, 4.0, 5.0), (*names, names[0]), strict=True):
        system.set_parameters({name: mass})
        assert {system.parameters[each] for each in names} == {mass}
    tau = np.ones((5, len(system.v)))
    found = bb.rollout_gradient(system, tau, final=lambda q, v, t: v, parameters=names)
    one, other = (found.by_parameters[each] for each in names)
    assert one != 0.0
    assert abs(other / one - 1.0) <= 1e-9


def test_gradients_by_lengths_of_what_a_motor_drives(connect):
    """Against differences of whole runs of steps by another active set than nothing."""
    options = {"limits": False, "energy_budget": False}
    system = bb.load("four_bar", connect()._client, dt=2e-3, **options).system
    system.motors.set("crank", velocity=8.0, force=50.0)
    case = Case(system, 30, force=0.3)
    found = case.gradient(parameters=["ground_pin.b.x", "rocker.origin.x"])
    assert not len(found.differences)
    for name, told in found.by_parameters.items():
        x = case.copy.parameters[name]
        want = rate_of(lambda s, n=name, x=x: case.cost(parameters={n: x + s}), 1e-4)
        case.copy.start_from(case.start, {name: x})
        assert abs(told / want - 1.0) <= 1e-6, name


def test_a_step_that_its_budget_slows_down_says_what_to_do(connect):
    """A fast crank at long steps, whose energy would grow: found by what was taken from it."""
    system = bb.load("four_bar", connect()._client, dt=1 / 60, limits="always").system
    system.set_state(v=4.0 * np.array(system.v))
    refused = ""
    for _ in range(60):
        try:
            system.step_derivatives()
        except UnsupportedError as error:
            refused = str(error)
            if "energy_budget=False" in refused:
                break
        system.step()
    assert "which its budget took from it" in refused


def test_gradients_by_copies_that_were_given_back(connect):
    """Those of a first one, to the bit, even if a cost asks for one of the same system."""
    system = bb.load("four_bar", connect()._client, dt=2e-3, integrator="rk4").system
    case, told = Case(system, 8, force=0.3), list[bb.RolloutGradient]()

    def final(q, v, t):
        told.append(case.gradient())
        return bb.CostTerms(0.0, np.zeros(2 * case.nv))

    first = case.gradient()
    by_mass = case.gradient(parameters=["crank.mass"])
    bb.rollout_gradient(system, case.tau, case.running, final)
    assert told
    for found in (by_mass, *told, case.gradient()):
        assert found.cost == first.cost
        assert np.array_equal(found.by_state, first.by_state)
        assert np.array_equal(found.by_tau, first.by_tau)


def test_what_cannot_be_is_said():
    system = bb.System(slider("xy"))
    tau = np.zeros((3, 2))
    for given, options, match in (
        (np.zeros(2), {}, r"is not \(steps, 2\)"),
        (tau * np.nan, {}, "not finite"),
        (tau, {"running": lambda *_: np.nan}, "at t = "),
        (tau, {"final": lambda *_: bb.CostTerms(0.0, np.zeros(3))}, r"gradient \(4,\)"),
        (tau, {"parameters": ["z.mass"]}, "parameter 'z.mass'"),
    ):
        with pytest.raises(ModelError, match=match):
            bb.rollout_gradient(system, given, **options)
    for options, match in (({"q": np.zeros(3)}, "wanted state"), ({"Q": {"z": 1.0}}, "entry of Q")):
        with pytest.raises(ModelError, match=match):
            bb.QuadraticCost(system.mechanism, **({"q": np.zeros(2), "Q": {}} | options))


def test_what_an_energy_budget_takes_is_told(connect):
    """It is a function of the steps before too: derivatives from the state alone leave it out."""
    system = bb.load("slider_crank", connect()._client, limits=False).system
    system.run(0.05)
    system.motors.set("crank", velocity=1.0, force=0.05)
    system.run(0.02)
    start, taken = system.save(), list[int]()
    for k in range(8):
        system.step()
        if system.complementarity.taken > 0.0:
            taken.append(k)
    system.restore(start)
    found = bb.rollout_gradient(system, np.zeros((8, 3)), final=lambda q, v, t: v[:1])
    assert taken and found.differences.tolist() == taken
    assert "energy budget" in found.reasons[0]
