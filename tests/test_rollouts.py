"""Many worlds at once: each is the rollout that the system makes of it alone."""

import re
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from test_islands import several

import bulletbridge as bb
from bulletbridge.constraints.motion import Sine
from bulletbridge.engine.islands import IslandStepper
from bulletbridge.engine.rollout_kernel import NONE_LEFT
from bulletbridge.engine.sparse_plan import SparseStepper
from bulletbridge.errors import ModelError, StepError
from bulletbridge.system import rollout_workers, rollouts

DT, STEPS, EVERY = 2e-3, 47, 5
EPS = np.finfo(float).eps


def states(system, n, stride=7):
    """Closed states (n,) along a motion of the system, which starts again from the first."""
    start = system.q, system.v, system.t
    found = [start]
    for _ in range(n - 1):
        system.rollout(stride, stride)
        found.append((system.q, system.v, system.t))
    system.set_state(*start)
    return tuple(np.array(x) for x in zip(*found, strict=True))


def alone(system, q, v, t, tau=None):
    """The same worlds one by one."""
    tables, forces = [], system.tau.copy()
    for n in range(len(q)):
        system.set_state(q[n], v[n], t[n])
        if tau is not None:
            system.tau[:] = tau[n]
        run = system.rollout(STEPS, EVERY)
        tables.append(np.column_stack([run.q, run.v, run.t]))
    system.tau[:] = forces
    return np.array(tables)


def growth(system, q, v, t, tau):
    """Times by which a difference of rates at the start has grown at any later step, at least 1."""
    small, rng = 1e-7, np.random.default_rng(1)
    near = v + small * rng.uniform(-1.0, 1.0, v.shape)
    one, other = (bb.rollout(system, q, x, tau, steps=STEPS, threads=1, t=t) for x in (v, near))
    return max(1.0, *(np.abs(a - b).max() / small for a, b in ((one.q, other.q), (one.v, other.v))))


def assert_round_off(found, expected, grown=1.0):
    """Equal but for round-off, relative to the largest number of both.

    The start is projected once more, and code inlined elsewhere may add in another order: each
    step rounds in a chain of some fifty operations. A tenth of a second of motion adds these errors
    up, and lets none grow by more than ``grown``.
    """
    size = 1.0 + np.abs(expected).max(initial=0.0)
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=STEPS * 50 * EPS * size * grown)


def assert_same(system, rollout, expected, grown=1.0):
    found = np.concatenate([rollout.q, rollout.v, rollout.t[..., None]], axis=-1)
    assert found.shape == expected.shape == (len(rollout), STEPS // EVERY, expected.shape[2])
    assert_round_off(found, expected, grown)
    assert not rollout.failures and np.all(rollout.done == STEPS) and rollout.check() is rollout


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(
    "model, options",
    [("four_bar", {}), ("two_arms", {"integrator": "rk4"}), ("four_bar", {"integrator": "dop853"})],
)
def test_worlds_are_those_of_the_system_one_by_one(model, options, threads):
    with bb.load(model, dt=DT, **options) as loaded:
        system = loaded.system
        q, v, t = states(system, 7)
        tau = np.linspace(-1.0, 1.0, 7 * system.mechanism.nv).reshape(7, -1)
        before = system.q, system.v, system.t, system.tau.copy()
        worlds = bb.rollout(system, q, v, tau, steps=STEPS, every=EVERY, threads=threads, t=t)
        for x, y in zip(before, (system.q, system.v, system.t, system.tau), strict=True):
            assert np.array_equal(x, y)
        assert_same(system, worlds, alone(system, q, v, t, tau), growth(system, q, v, t, tau))
        assert np.array_equal(worlds[2].position("crank" if model == "four_bar" else
                                                 next(iter(system.mechanism.joints))),
                              worlds.q[2, :, 0])  # fmt: skip


SOLVERS = {IslandStepper: "islands", SparseStepper: "sparse", type(None): "dense"}


def in_parts(kind, integrator="semi_implicit_euler"):
    """A system with forces and motions that are functions of time, stepped in this way."""
    mechanism, constraints = several()
    if kind is SparseStepper:  # which has no place for beams
        with bb.load(
            "four_bar", dt=DT, solver="sparse", forces={"crank": Sine(0.4, 0.7)}
        ) as loaded:
            system = loaded.system
    else:
        forces = {"crank1": Sine(0.4, 0.7), "rocker2": Sine(0.2, 1.1)}
        options = dict(forces=forces, integrator=integrator, solver=SOLVERS[kind])
        system = bb.System(mechanism, constraints, dt=DT, **options)
        system.assemble({"crank0": 1.0, "crank1": 0.7}, {"crank0": 1.0, "crank1": 2.0})
    assert isinstance(system._active.solver.stepper, kind)
    return system


@pytest.mark.parametrize(
    "kind, integrator",
    [(IslandStepper, "semi_implicit_euler"), (IslandStepper, "rk4"), (type(None), "rk4"),
     (SparseStepper, "semi_implicit_euler")],
)  # fmt: skip
def test_every_way_of_stepping_with_functions_of_time(kind, integrator):
    system = in_parts(kind, integrator)
    q, v, t = states(system, 4)
    worlds = bb.rollout(system, q, v, steps=STEPS, every=EVERY, threads=2, t=t)
    assert_same(system, worlds, alone(system, q, v, t), growth(system, q, v, t, None))


@pytest.mark.parametrize(
    "kind, integrator",
    [(type(None), "semi_implicit_euler"), (type(None), "rk4"), (IslandStepper, "rk4"),
     (SparseStepper, "semi_implicit_euler")],
)  # fmt: skip
def test_controls_are_held_over_each_step(rng, kind, integrator):
    """As if the forces were set before each step, which is how a controller acts on a plant."""
    system = in_parts(kind, integrator)
    q, v, t = states(system, 3)
    tau = rng.uniform(-1.0, 1.0, (3, STEPS, system.mechanism.nv))
    worlds = bb.rollout(system, q, v, tau, steps=STEPS, threads=2, t=t)
    grown = growth(system, q, v, t, tau)
    for n in range(3):
        system.set_state(q[n], v[n], t[n])
        for k in range(STEPS):
            system.tau[:] = tau[n, k]
            system.step(write=False)
            assert_round_off(worlds.q[n, k], system.q, grown)
            assert_round_off(worlds.v[n, k], system.v, grown)


def test_settings_of_the_next_rollout_are_those_of_the_system():
    with bb.load("four_bar", dt=DT) as loaded:
        system = loaded.system
        q, v, t = states(system, 2)
        before = bb.rollout(system, q, v, steps=STEPS, every=EVERY, threads=2)
        system.gravity = (0.0, 0.0, -3.7)
        system.tau[:] = 0.3
        worlds = bb.rollout(system, q, v, steps=STEPS, every=EVERY, threads=2, t=t)
        assert_same(system, worlds, alone(system, q, v, t))
        assert np.abs(worlds.q - before.q).max() > 1e-3


def test_controls_go_with_error_control():
    """The forces of a step act in all its sub-steps, and only there."""
    with bb.load("four_bar", dt=0.05, integrator="dop853", rtol=1e-8) as loaded:
        system = loaded.system
        start = system.q, system.v, system.t
        tau = np.zeros((1, 4, 3))
        tau[0, :, 0] = [2.0, -5.0, 3.0, 0.0]
        worlds = bb.rollout(system, [start[0]], None, tau, steps=4)
        for k in range(4):
            system.tau[:] = tau[0, k]
            system.step(write=False)
            np.testing.assert_allclose(worlds.q[0, k], system.q, rtol=0.0, atol=1e-7)


def test_a_world_that_fails_leaves_the_others_alone():
    with bb.load("four_bar", dt=DT) as loaded:
        system = loaded.system
        q, v, t = states(system, 5)
        open_q = q.copy()
        open_q[1, 2] += 0.1  # the rocker's tip, 0.7 m away, leaves its pin by 0.07 m
        open_q[2, 0] += 1e-9  # closed at the start
        fast = v.copy()
        fast[3] *= 1e200
        worlds = bb.rollout(system, open_q, fast, steps=STEPS, every=EVERY, threads=2, t=t)
        expected = alone(system, q, v, t)
    assert list(worlds.failures) == [1, 3] and list(worlds.done[[1, 3]]) == [0, 0]
    assert "open by 0.0699 m" in worlds.failures[1]
    assert "not finite" in worlds.failures[3]
    assert np.isnan(worlds.q[[1, 3]]).all() and len(worlds[3].t) == 0
    assert_round_off(worlds.q[[0, 4]], expected[[0, 4], :, :3])
    # an error of 1e-9 in angles of a smooth motion of 0.1 s
    np.testing.assert_allclose(worlds.q[2], expected[2, :, :3], rtol=0.0, atol=1e-8)
    with pytest.raises(StepError, match=r"2 of 5 worlds failed; world 1: the loops .*; world 3: "):
        worlds.check()


def test_one_world_fails_half_way():
    """What it had reached stays, and the number of its steps."""
    with bb.load("four_bar", dt=DT) as loaded:
        system = loaded.system
        tau = np.zeros((2, STEPS, 3))
        tau[1, 23] = np.nan
        worlds = bb.rollout(system, [system.q] * 2, tau=tau, steps=STEPS, every=EVERY)
    assert list(worlds.done) == [STEPS, 23] and list(worlds.failures) == [1]
    assert np.isfinite(worlds.q[1, :4]).all() and np.isnan(worlds.q[1, 4:]).all()
    assert len(worlds[1].t) == 4 and np.array_equal(worlds.q[0, :4], worlds.q[1, :4])


def world_by_world(workers, worlds, table, done, rest):
    """In place of ``takers``: every world in Python."""
    numbers = count()
    return dict.fromkeys(workers, lambda: n if (n := next(numbers)) < len(table) else NONE_LEFT)


@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("integrator", ["semi_implicit_euler", "verlet", "rk4", "dop853"])
def test_worlds_in_compiled_code_are_those_in_python(monkeypatch, rng, integrator, held):
    """To the last bit, refined steps, starts that are closed first and failures included.

    At 15 times the speed the correction of some steps of 10 ms does not reach round-off, or gains
    energy.
    """
    with bb.load("four_bar", dt=0.01, integrator=integrator) as loaded:
        system = loaded.system
        q, v, t = states(system, 7)
        q[1, 2] += 0.1  # too wide open
        q[2, 0] += 1e-9  # closed at the start
        v[3] *= 15.0
        tau = rng.uniform(-0.1, 0.1, (7, STEPS, 3) if held else (7, 3))
        tau[5] = np.nan
        given = {"steps": STEPS, "every": EVERY, "t": t}
        handed_on = [1, 5] if integrator == "dop853" else [1, 3, 5]
        expected, handed = None, []
        run = rollouts.run_world
        monkeypatch.setattr(rollouts, "run_world", lambda *a: [handed.append(a[2]), run(*a)][1])
        for take, most, threads in ((world_by_world, 0, 1), (rollout_workers.takers, 20_000, 1),
                                    (rollout_workers.takers, 1, 3)):  # fmt: skip
            with monkeypatch.context() as patch:
                patch.setattr(rollouts, "takers", take)
                patch.setattr(rollout_workers, "MOST_STEPS", most)
                found = bb.rollout(system, q, v, tau, threads=threads, **given)
            expected = expected or found
            assert sorted(handed) == {world_by_world: [*range(7)]}.get(take, handed_on)
            handed.clear()
            assert np.array_equal(found.table, expected.table, equal_nan=True)
            assert np.array_equal(found.done, expected.done) and found.failures == expected.failures
        assert sorted(expected.failures) == [1, 5] and expected.done[3] == STEPS
        if not held:
            one = alone(system, q[[0, 3, 6]], v[[0, 3, 6]], t[[0, 3, 6]], tau[[0, 3, 6]])
            assert np.array_equal(one, expected.table[[0, 3, 6], :, : one.shape[2]])


def test_what_a_thread_raises_comes_through(monkeypatch):
    def stumble(*_):
        raise ZeroDivisionError

    monkeypatch.setattr(rollouts, "run_world", stumble)
    monkeypatch.setattr(rollouts, "takers", world_by_world)
    with bb.load("four_bar", dt=DT) as loaded:
        for threads in (1, 3):
            with pytest.raises(ZeroDivisionError):
                bb.rollout(loaded.system, [loaded.system.q] * 9, steps=1, threads=threads)


class Belt:
    """The coupler keeps its direction: crank + coupler stays, one row in Python."""

    name, units = "belt", ("rad",)

    def rows(self, kinematics):
        J = np.array([[1.0, 1.0, 0.0]])
        zero = np.zeros(1)
        return bb.Rows(J @ kinematics.q - 1.0, J, zero, zero)


def test_constraints_in_python_take_one_thread():
    with bb.load("four_bar") as loaded:
        system = bb.System(loaded.system.mechanism, [Belt()], dt=DT)
    system.assemble({"crank": 0.3})
    q, v, t = states(system, 2)
    worlds = bb.rollout(system, q, v, steps=STEPS, every=EVERY, t=t)
    assert_same(system, worlds, alone(system, q, v, t))
    with pytest.raises(ModelError, match="threads is 2: constraints written in Python take one"):
        bb.rollout(system, q, steps=1, threads=2)


def test_the_page_prints_what_it_says(capsys):
    page = (Path(__file__).parents[1] / "docs" / "rollouts.md").read_text()
    code, printed = re.search(r"```python\n(.*?)```\n\n```text\n(.*?)```", page, re.S).groups()
    said: dict = {}
    exec(compile(code, "rollouts.md", "exec"), said)
    said["model"].close()
    assert capsys.readouterr().out == printed


@pytest.mark.parametrize(
    "change, said",
    [
        ({"q": np.zeros(3)}, "the positions and rates of n worlds"),
        ({"v": np.zeros((1, 3))}, "the positions and rates of n worlds"),
        ({"tau": np.zeros((2, 4, 3))}, r"tau \(2, 4, 3\) is none of \(3,\), \(2, 3\) and"),
        ({"t": np.zeros(3)}, "neither one time"),
        ({"v": np.full((2, 3), np.nan)}, "not finite"),
        ({"threads": 0}, "threads is 0"),
        ({"steps": 0}, "steps is 0"),
    ],
)
def test_wrong_input_is_refused(change, said):
    with bb.load("four_bar", dt=DT) as loaded:
        given = {"q": [loaded.system.q] * 2, "steps": 5} | change
        with pytest.raises(ModelError, match=said):
            bb.rollout(loaded.system, **given)


def test_what_steps_in_python_is_refused():
    with bb.load("four_bar", formulation="multipliers") as loaded:
        with pytest.raises(ModelError, match="sweep over processes"):
            bb.rollout(loaded.system, [loaded.system.q], steps=1)
