"""Steps as functions of PyTorch, JAX and Crocoddyl; what these need is tested without them.

A start that is displaced is closed up to 1e-6 mechanism lengths, so that differences go 1e-7: an
error of 1e-14 of a trajectory, of numbers and weights near one, is 1e-7 of a derivative there.
Bounds are ten times that, of the largest derivative.
"""

import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from support.closed_mechanisms import closed_system
from support.pages import differs, perform
from support.small_trees import slider

import bulletbridge as bb
from bulletbridge.control.crocoddyl_models import Actions, StateMaps
from bulletbridge.control.differentiable import Arguments, DifferentiableSteps
from bulletbridge.errors import MissingExtraError, ModelError, UnsupportedError
from bulletbridge.mechanism.records import PRISMATIC, REVOLUTE, SPHERICAL

PAGE = Path(__file__).parents[1] / "docs" / "frameworks.md"
KINDS = [REVOLUTE, SPHERICAL, PRISMATIC, SPHERICAL]
WELD = 7, True, KINDS, "weld", True
ROLLING = 102, True, KINDS, "rolling", False
SHORT, LONG, CLOSE = 1e-7, 1e-4, 1e-6
NAMES, VALUES = ["forearm_left.mass", "gravity.z"], np.array([0.7, -9.0])


def needs(name: str) -> pytest.MarkDecorator:
    """Skip where a package is not installed."""
    reason = f"{name} is not installed: pip install 'bulletbridge[{name}]'"
    return pytest.mark.skipif(find_spec(name) is None, reason=reason)


def rate(see, x: np.ndarray, way: np.ndarray, reach: float):
    """Derivative along a way, by central differences of order 4."""
    near, far = (see(x + n * reach * way) - see(x - n * reach * way) for n in (1, 2))
    return (8.0 * near - far) / (12.0 * reach)


def five_bar() -> bb.System:
    return bb.load("five_bar", "new", limits=False).system


def arguments(system: bb.System, steps: int, parameters: np.ndarray) -> Arguments:
    tau = np.random.default_rng(1).normal(size=(steps, system.mechanism.nv))
    return Arguments(np.array(system.q), np.array(system.v), tau, parameters)


@pytest.mark.parametrize("case", [None, WELD, ROLLING], ids=["five_bar", "weld", "rolling"])
def test_gradients_are_pulled_back_to_all_arguments(case):
    system = closed_system(case) if case else five_bar()
    steps = DifferentiableSteps(system, () if case else NAMES)
    given = arguments(system, 3, np.zeros(0) if case else VALUES)
    rng = np.random.default_rng(2)
    by = tuple(rng.normal(size=x.shape) for x in steps.run(given, 0.0))
    found = steps.pull_back(given, 0.0, *by)

    for k, (x, gradient) in enumerate(zip(given, found, strict=True)):

        def cost(y: np.ndarray, k: int = k) -> float:
            states = steps.run(Arguments(*given[:k], y, *given[k + 1 :]), 0.0)
            return sum(float(np.sum(w * s)) for w, s in zip(by, states, strict=True))

        size = max(1.0, np.abs(gradient).max(initial=0.0))
        for way in rng.normal(size=(4, *x.shape)) if x.size else ():
            way /= np.abs(way).max()
            want = rate(cost, x, way, SHORT if k < 2 else LONG)
            assert abs(want - np.sum(gradient * way)) <= CLOSE * size * x.size


def test_many_worlds_are_each_one(connect):
    steps = DifferentiableSteps(five_bar(), NAMES)
    one = arguments(five_bar(), 2, VALUES)
    tau = np.stack([one.tau, 2.0 * one.tau])
    both = Arguments(np.stack([one.q] * 2), np.stack([one.v] * 2), tau, VALUES)
    Q, V = steps.run(both, 0.0)
    assert Q.shape == (2, 3, 4)
    found, parts = steps.pull_back(both, 0.0, Q, V), []
    for n in range(2):
        given = one._replace(tau=tau[n])
        assert np.array_equal(steps.run(given, 0.0)[0], Q[n])
        parts.append(steps.pull_back(given, 0.0, Q[n], V[n]))
        assert np.array_equal(parts[n].tau, found.tau[n])
    assert_allclose(found.parameters, parts[0].parameters + parts[1].parameters, rtol=1e-14)
    with pytest.raises(ModelError, match=r"do not fit: give \(..., 4\)"):
        steps.run(one._replace(q=one.q[:3]), 0.0)
    with pytest.raises(ModelError, match="not finite"):
        steps.run(one._replace(v=one.v * np.nan), 0.0)
    with pytest.raises(ModelError, match="forearm_left.mas"):
        DifferentiableSteps(five_bar(), ["forearm_left.mas"])


def test_the_length_of_a_quaternion_changes_nothing():
    system = closed_system(WELD)
    steps, given = DifferentiableSteps(system), arguments(system, 2, np.zeros(0))
    longer = given.q.copy()
    turns = [j.q for j in system.mechanism.joints.values() if j.kind in ("free", "spherical")]
    for part in turns:
        longer[part.stop - 4 : part.stop] *= 3.0
    Q, V = steps.run(given, 0.0)
    assert_allclose(steps.run(given._replace(q=longer), 0.0)[0], Q, rtol=0, atol=1e-12)
    here, there = (steps.pull_back(given._replace(q=q), 0.0, Q, V).q for q in (given.q, longer))
    for part in turns:
        turn = slice(part.stop - 4, part.stop)
        assert_allclose(3.0 * there[turn], here[turn], rtol=0, atol=1e-9 * np.abs(here).max())
        assert abs(here[turn] @ given.q[turn]) <= 1e-9 * np.abs(here).max()


def test_differences_and_sums_of_states_know_their_derivatives():
    system = closed_system(WELD)
    maps, n = StateMaps(system.mechanism), 2 * system.mechanism.nv
    rng = np.random.default_rng(4)
    x, dx, still = np.concatenate([system.q, system.v]), rng.normal(size=n), np.zeros(n)
    there = maps.moved(x, dx)
    assert_allclose(maps.difference(x, there), dx, rtol=0, atol=1e-12)
    by_start, by_end = maps.by_difference(x, there)
    by_x, by_dx = maps.by_sum(dx)
    for _ in range(3):
        way = rng.normal(size=n)
        pairs = (
            (by_start, rate(lambda y: maps.difference(maps.moved(x, y), there), still, way, 1e-3)),
            (by_end, rate(lambda y: maps.difference(x, maps.moved(there, y)), still, way, 1e-3)),
            (
                by_x,
                rate(
                    lambda y: maps.difference(there, maps.moved(maps.moved(x, y), dx)),
                    still,
                    way,
                    1e-3,
                ),
            ),
            (by_dx, rate(lambda y: maps.difference(there, maps.moved(x, y)), dx, way, 1e-3)),
        )
        for matrix, want in pairs:  # differences of order 4: (1e-3 |way|)^4
            assert_allclose(matrix @ way, want, rtol=0, atol=1e-8)


def test_an_action_is_differentiated_off_the_loops_too():
    system = closed_system(ROLLING)
    m = system.mechanism
    goal = np.array(system.q)
    cost = bb.QuadraticCost(m, goal, Q=np.ones(2 * m.nv), R=np.ones(m.nv))
    actions = Actions(system, (cost, cost), None, 2)
    maps, rng = StateMaps(m), np.random.default_rng(5)
    x, u = actions.start, rng.normal(size=m.nv)
    there, _ = actions.to(x, u)
    found, end = actions.around(x, u), actions.around(x, None)
    size, nv = np.abs(found.Fx).max(), m.nv

    def leads(y: np.ndarray) -> np.ndarray:
        to, paid = actions.to(maps.moved(x, y[: 2 * nv]), u + y[2 * nv :])
        return np.append(maps.difference(there, to), paid)

    for _ in range(4):
        way = rng.normal(size=3 * nv)
        way /= np.abs(way).max()
        want = rate(leads, np.zeros(3 * nv), way, SHORT)
        moved = found.Fx @ way[: 2 * nv] + found.Fu @ way[2 * nv :]
        assert_allclose(moved, want[:-1], rtol=0, atol=CLOSE * size * 3 * nv)
        price = found.cost.gradient
        assert abs(price @ way - want[-1]) <= CLOSE * np.abs(price).max() * 3 * nv
    assert np.array_equal(end.Fx, np.eye(2 * nv)) and end.cost.gradient.shape == (2 * nv,)
    with pytest.raises(ModelError, match="every is 0"):
        Actions(system, (None, None), None, 0)


def test_actions_know_no_time():
    cart = slider("x", mass=2.0)
    motion = bb.Motion(z=bb.Polynomial((0.0, 0.5)))
    driven = bb.Coupling("drive", {list(cart.joints)[0]: 1.0}, motion=motion)
    with pytest.raises(UnsupportedError, match="use bb.ilqr"):
        Actions(bb.System(cart, [driven]), (None, None), None, 1)


@pytest.mark.parametrize("name", ["torch", "jax", "crocoddyl"])
def test_a_missing_package_names_its_extra(name, monkeypatch):
    system = five_bar()  # scipy looks for a torch among the modules
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtraError, match=rf"pip install 'bulletbridge\[{name}\]'"):
        getattr(bb, f"to_{name}")(system)


@needs("torch")
@pytest.mark.parametrize("case", [None, WELD], ids=["five_bar", "weld"])
def test_torch_checks_its_gradients(case):
    import torch

    system = closed_system(case) if case else five_bar()
    functions = bb.to_torch(system, () if case else NAMES)
    given = [torch.tensor(x) for x in arguments(system, 2, VALUES)[: 3 if case else 4]]
    given = [x.requires_grad_() for x in given]
    check = torch.autograd.gradcheck
    assert check(functions.rollout, given, eps=2e-7, atol=1e-5, rtol=1e-5)
    one = [*given[:2], given[2][0].detach().requires_grad_(), *given[3:]]
    assert check(functions.step, one, eps=2e-7, atol=1e-5, rtol=1e-5)
    single = [x.detach().float() for x in given[:3]]
    assert functions.rollout(*single)[0].dtype == torch.float32


@needs("jax")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_jax_checks_its_gradients():
    import jax
    from jax.test_util import check_grads

    system = five_bar()
    functions = bb.to_jax(system, NAMES)
    with jax.enable_x64(True):
        given = [jax.numpy.asarray(x) for x in arguments(system, 3, VALUES)]
        check_grads(functions.rollout, given, 1, ["rev"], eps=2e-7, atol=1e-5, rtol=1e-5)
        q, v, tau, p = given

        def end(tau):
            return (functions.rollout(q, v, tau, p)[0][-1] ** 2).sum()

        def scanned(tau):
            (q1, _), _ = jax.lax.scan(lambda x, u: (functions.step(*x, u, p), None), (q, v), tau)
            return (q1**2).sum()

        want = jax.grad(end)(tau)
        assert_allclose(jax.jit(jax.grad(scanned))(tau), want, rtol=0, atol=1e-12)
        many = jax.vmap(jax.grad(end))(jax.numpy.stack([tau, tau]))
        assert_allclose(many[1], want, rtol=0, atol=1e-15)


@needs("torch")
@needs("jax")
@needs("crocoddyl")
def test_the_page_prints_what_it_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for block, heard, said in perform(PAGE, tmp_path):
        assert not differs(heard, said), f"{block.text}\nprinted\n{heard}"
