"""Motors, friction and limits that are told apart: what they exert moves bodies as it should."""

import math

import numpy as np
import pytest
from test_islands import bar
from test_mixed import ENOUGH

import bulletbridge as bb
from bulletbridge.bench.cases import case
from bulletbridge.bench.problem import positions
from bulletbridge.compilation.jit import kernel
from bulletbridge.mechanism.build import empty_mechanism, with_joint
from bulletbridge.numerics.complementarity import LIGHTEST
from bulletbridge.numerics.complementarity_rows import (
    FORMED,
    LINES,
    ROW_BOUNDS,
    complementarity_problem,
    parts_of,
    room_for,
)
from bulletbridge.numerics.independent_rows import HIGH, LOW, put_lengths, solve_independent

DT, STEPS = 1e-3, 40
DRIVEN = {
    "hand": ("spread", "low", "yaw", "pitch", "palm"),
    "legs": ("roll", "yaw", "thigh", "knee", "pitch", "foot"),  # more than there are freedoms
}


def built(name):
    """A robot's system at rest in its motors, and the names of joints that these may move."""
    made = case(name)
    system = bb.System(
        made.mechanism,
        (*made.loops, *made.springs),
        dt=DT,
        energy_budget=False,
        integrator="semi_implicit_euler",
    )
    system.assemble(guess=positions(made))
    joints = made.mechanism.joints.items()
    single = [name for name, joint in joints if joint.is_single]
    parts = DRIVEN[name]
    return system, [n for n in single if n.startswith(parts) or n.split("_", 1)[-1] in parts]


@pytest.mark.parametrize("name", DRIVEN)
def test_torques_in_place_of_motors_move_a_robot_the_same(name):
    """Steps without motors, with the torques that these have exerted, end where theirs did.

    The first is the solver's problem, the second has none. Both are Euler's method from the same
    state, so that they differ by round-off alone: rates are below 100 rad/s, and 1e-9 of that is
    a million times the rounding of one sum. Some motors are as weak as what they have to do, so
    that some are at their bounds.
    """
    system, names = built(name)
    twin, _ = built(name)
    random = np.random.default_rng(4)
    bounds = 10.0 ** random.uniform(-2.0, 1.0, len(names))
    for each, force in zip(names, bounds, strict=True):
        system.motors.set(each, velocity=random.uniform(-1.0, 1.0), force=force)
    used, at = [], [system.mechanism.joints[each].v.start for each in system.motors.names]
    exerted = np.zeros(system.mechanism.nv)
    for _ in range(STEPS):
        twin.set_state(system.q, system.v)
        system.step()
        exerted[at] = system.motors.forces
        twin.tau = exerted
        twin.step()
        np.testing.assert_allclose(twin.v, system.v, rtol=0, atol=1e-9 * np.abs(system.v).max())
        used.append(
            [abs(exerted[system.mechanism.joints[each].v.start]) for each in names] / bounds
        )
    assert np.min(used) < 0.5
    assert np.max(used) == pytest.approx(1.0)


@kernel
def solve_weighed(D, b, bounds, weights, x, w, room, formed: int):
    """Residual of ``solve_independent``; impulses and velocities go to x and w.

    Rows are on six freedoms. Those of D beside its diagonal are not looked at if it is not
    ``formed``: half of the coordinates are any row's then, and others a row's from LOW to HIGH.
    """
    p, n, common = complementarity_problem(D, b, bounds, x, w, room), len(b), 3
    for i in range(n):
        p.weights[i], p.slopes[LOW, i], p.slopes[HIGH, i] = weights[i], common, 6
    p.parts.state[FORMED] = 1
    if formed == 0:
        D[:] = math.nan
        put_lengths(p, n, common)
    return solve_independent(p, n, 0, 6, common, ENOUGH).residual


def solved(C, b, bounds, weights, x, formed):
    """The same of rows C, from x, in place."""
    room = room_for(len(b), LINES, parts_of(C, np.array([0, C.shape[1]])))
    return solve_weighed(C @ C.T, b, bounds, weights, x, np.zeros(len(b)), room, formed)


def coupled_frictions(seed, alike=1.0):
    """Rows of joints in groups that couplings make one motion each, what they are asked, bounds.

    Also their weights, shares and groups. ``alike``: by what the last row is asked for otherwise.
    """
    random = np.random.default_rng(seed)
    group = np.array([0, 1, 0, 2, 0, 1, 3, 0, 1])
    share = np.where(np.isin(group, (2, 3)), 1.0, random.uniform(-2.0, 2.0, len(group)))
    C = share[:, None] * random.normal(size=(4, 6))[group]
    v, upper = 3.0 * random.normal(size=6), random.uniform(0.02, 2.0, len(group))
    b = C @ v
    b[-1] *= alike
    bounds = np.zeros(len(group), ROW_BOUNDS)
    bounds["lower"], bounds["upper"], bounds["owner"] = -upper, upper, -1
    bounds["first"] = bounds["count"] = 1
    weights = LIGHTEST * random.uniform(1.0, 100.0, len(group)) * (C * C).sum(axis=1)
    return C, b, bounds, weights, share, group


@pytest.mark.parametrize("formed", [0, 1])
@pytest.mark.parametrize("seed", range(40))
def test_friction_of_coupled_joints_is_shared_by_the_least_norm(seed, formed):
    """Rows hold or exert their bound, and those of one motion share in it as little as they can.

    That is by one multiple of share over weight, but for those whose bound is less.
    """
    C, b, bounds, weights, share, group = coupled_frictions(seed)
    x, D = np.zeros(len(b)), C @ C.T
    assert solved(C, b, bounds, weights, x, formed) <= ENOUGH
    moved, upper = D @ x + b, bounds["upper"]
    scale = np.abs(b).max()
    assert np.abs(x - np.clip(x - moved / np.diag(D), -upper, upper)).max() < 1e-12 * scale
    for one in range(4):
        mine = np.flatnonzero(group == one)
        inside = mine[np.abs(x[mine]) < upper[mine]]
        per = x * weights / share
        if len(inside):
            np.testing.assert_allclose(per[inside], per[inside[0]], rtol=1e-9)
            at_bound = np.setdiff1d(mine, inside)
            assert (np.abs(per[at_bound]) <= abs(per[inside[0]]) * (1.0 + 1e-9)).all()


@pytest.mark.parametrize("formed", [0, 1])
def test_coupled_joints_that_are_asked_for_different_rates_are_left_to_others(formed):
    """What contradicts itself has no solution in which each row holds: nothing is changed."""
    C, b, bounds, weights, *_ = coupled_frictions(3, 1.0 + 1e-6)
    bounds["lower"], bounds["upper"] = -1e6, 1e6
    x = np.full(len(b), 0.5)
    assert solved(C, b, bounds, weights, x, formed) == np.inf
    assert (x == 0.5).all()


@pytest.mark.parametrize("force", [1e3, 0.5])
def test_motors_that_lead_every_joint_of_a_tree_exert_what_turns_it_so(force):
    """Rates are those asked for unless a motor is at its bound, and torques would do the same.

    Links weigh from a kilogram to a gram; the first motors are too weak, if any. Rates are below
    100 rad/s: 1e-12 is a hundred times their rounding. What torques do is off by the ratio of
    inertias, 1e3, times that.
    """
    mechanism, asked = empty_mechanism((0.4, 0.1, -9.81)), {}
    for k, (mass, axis) in enumerate([(1.0, 2), (0.3, 1), (1e-2, 0), (1e-3, 1)]):
        on, at, name = f"j{k - 1}" if k else "world", (0.3, 0.1, 0), f"j{k}"
        turn = tuple(np.eye(3)[axis])
        mechanism = with_joint(mechanism, name, "revolute", name, on, at, turn, bar(mass, 0.3))
        asked[name] = 0.5 + k
    system, twin = (bb.System(mechanism, dt=DT, integrator="semi_implicit_euler") for _ in range(2))
    for name, rate in asked.items():
        system.motors.set(name, velocity=rate, force=force)
    weak = 0
    for _ in range(STEPS):
        twin.set_state(system.q, system.v)
        system.step()
        exerted, lacking = np.array(system.motors.forces), np.array([*asked.values()]) - system.v
        inside = np.abs(exerted) < force
        assert np.abs(lacking[inside]).max(initial=0.0) < 1e-12
        assert (lacking * np.sign(exerted) > -1e-12)[~inside].all()
        weak += not inside.all()
        twin.tau = exerted
        twin.step()
        np.testing.assert_allclose(twin.v, system.v, rtol=0, atol=1e-9)
    assert (weak > STEPS / 2) == (force < 1.0)
