"""Motors and contacts where many impulses give one motion: which is taken, and what is left out."""

import itertools
import math

import daily_scenes
import grasps
import numpy as np
import pybullet
import pytest
from _minitaur_worlds import minitaur
from numpy.testing import assert_allclose
from scipy.optimize import lsq_linear
from support.complementarity import SOLVER, solve_by
from test_mixed import ENOUGH, solve

import bulletbridge as bb
from bulletbridge.compilation.jit import kernel
from bulletbridge.drop_in.session import session_of
from bulletbridge.errors import AssemblyError, BulletBridgeWarning
from bulletbridge.inequalities.arrays import APART, ASKED, COMPLIED, GAVE, ROWS
from bulletbridge.numerics.complementarity import LESS, LIGHTEST
from bulletbridge.numerics.complementarity_rows import (
    LINES,
    ROW_BOUNDS,
    complementarity_problem,
    room_for,
)
from bulletbridge.numerics.sharing import (
    HEAVIEST,
    Sharing,
    agree_among_motors,
    comply,
    settle_yielding,
    weigh,
)


@kernel
def weigh_and_agree(D, b, bounds, weights, room, motors):
    """Demands of motors that agree, in place of b, and weights."""
    more = room.vectors[LINES:]
    p = complementarity_problem(D, b, bounds, more[5], more[6], room)
    weigh(p, 0, motors, len(b), HEAVIEST)
    s = Sharing(more[0], more[1], more[2], more[3], more[4])
    agree_among_motors(p, s, motors)
    for i in range(len(b)):
        weights[i] = p.weights[i]


COMPLY, SETTLE, YIELD = range(3)
"""What ``solve_weighed`` does: one kernel takes 0.6 of the machine code of two."""


@kernel
def solve_weighed(D, b, bounds, x, w, room, motors, tolerance, how):
    """Residual and steps of ``comply`` or ``settle_yielding`` from x, in place; w as well."""
    more, n = room.vectors[LINES:], len(b)
    p = complementarity_problem(D, b, bounds, x, w, room)
    s = Sharing(more[0], more[1], more[2], more[3], more[4])
    weigh(p, 0, motors, n, HEAVIEST)
    for i in range(n):
        p.centre[i] = 0.0
    if how == COMPLY:
        outcome = comply(p, s, (motors, motors, motors, n), tolerance)
    else:
        outcome, _ = settle_yielding(p, s, motors, n, tolerance, how == YIELD)
    return outcome.residual, outcome.newton


def motors_of(rng, count, freedoms):
    """More motors than freedoms: rows (count, freedoms) and their bounds."""
    bounds = np.zeros(count, ROW_BOUNDS)
    upper = rng.uniform(1.0, 30.0, count)
    for i in range(count):
        bounds[i] = (-upper[i], upper[i], -1, 1, 1, 0)
    return rng.normal(size=(count, freedoms)), bounds, upper


@pytest.mark.parametrize("seed", range(10))
def test_equal_motions_take_the_least_norm(seed):
    """Against the pseudo-inverse: x = Wᵀ⁺ of what the motion needs, all rows weighted alike."""
    rng = np.random.default_rng(seed)
    count, freedoms = int(rng.integers(3, 15)), int(rng.integers(1, 9))
    C, bounds, _ = motors_of(rng, count, freedoms)
    D, b = C @ C.T, C @ rng.normal(size=freedoms)
    x, _, residual = solve(D, b, bounds, rng.normal(size=count))  # wherever it starts
    scale = np.sqrt(np.diag(D))  # weights are shares of the diagonal
    expected = np.linalg.pinv(C.T / scale) @ (C.T @ x) / scale
    assert residual <= ENOUGH
    assert np.abs(C.T @ x + np.linalg.lstsq(C, b, rcond=None)[0]).max() < 1e-10
    # round-off of the largest numbers comes back through weights as small as that of the lightest
    # row, in n sums of what D spans
    spread = np.linalg.svd(C, compute_uv=False)[: min(count, freedoms)]
    rows = np.diag(D).max() / np.diag(D).min()
    close = (spread[0] / spread[-1]) ** 2 * (LIGHTEST + rows * np.finfo(float).eps / LIGHTEST)
    close *= count
    assert np.abs(x - expected).max() < close * np.abs(expected).max()


@pytest.mark.parametrize("seed", range(5))
def test_what_can_hardly_be_moved_is_stopped_by_the_least_norm_too(seed):
    """One freedom that rows move by a ten-thousandth, as a robot turns whose feet have one height.

    Softness of their weights is more than what moves it: passes that take it away gain a fifth
    each. Of two starts that are far apart both have to end at the pseudo-inverse.
    """
    rng, weight, weak = np.random.default_rng(seed), 1e-7, 1e-4
    C, bounds, _ = motors_of(rng, 8, 4)
    bounds["lower"], bounds["upper"] = -1e3, 1e3
    C[:, -1] *= weak
    D, b = C @ C.T, C @ (rng.normal(size=4) * (1, 1, 1, weak))
    scale = np.sqrt(np.diag(D))
    expected = -np.linalg.pinv(C.T / scale) @ np.linalg.lstsq(C, b, rcond=None)[0] / scale
    # the residual along the weak freedom, and round-off through weights that were made less once
    close = ENOUGH / np.linalg.svd(C, compute_uv=False)[-1] ** 2
    close += len(b) * np.finfo(float).eps / (LESS * weight) * np.diag(D).max() / np.diag(D).min()
    for start in (np.zeros(len(b)), 10 * rng.normal(size=len(b))):
        x, w = start, np.zeros(len(b))
        room = room_for(len(b))
        assert solve_by(SOLVER, D, b, bounds, x, w, room, (ENOUGH, weight))[0] <= ENOUGH
        assert np.abs(x - expected).max() < close * np.abs(expected).max()


@pytest.mark.parametrize("locked", [False, True])
@pytest.mark.parametrize("hardest", [0.0, 1e8])
@pytest.mark.parametrize("seed", range(10))
def test_demands_that_contradict_end_in_the_weighted_compromise(seed, hardest, locked):
    """What is left asks for the velocity that misses the demands least, by squares of strengths.

    However hard a limit besides is to meet, and where loops all but lock one motor, which moves a
    thousandth of what another one does, beside one that is thirty times as strong.
    """
    rng = np.random.default_rng(seed)
    count, freedoms = int(rng.integers(3, 15)), int(rng.integers(1, 9))
    C, bounds, upper = motors_of(rng, count, freedoms)
    if locked:
        C[-1] = 1e-3 * C[0]
        upper[1] *= 30.0
        bounds["lower"], bounds["upper"] = -upper, upper
    limit = np.zeros(1, ROW_BOUNDS)
    limit[0] = (0.0, np.inf, -1, 1, 1, 0)
    every = np.vstack([C, rng.normal(size=freedoms)])
    b = np.append(rng.normal(size=count), -hardest)
    asked, weights, bounds = b[:count].copy(), np.zeros(count + 1), np.append(bounds, limit)
    room = room_for(count + 1, LINES + 7)
    weigh_and_agree(every @ every.T, b, bounds, weights, room, count)
    v = np.linalg.lstsq(upper[:, None] * C, upper * asked, rcond=None)[0]
    if count > freedoms or locked:
        assert np.abs(b[:count] - C @ v).max() < 1e-10
    else:
        assert np.array_equal(b[:count], asked)
    assert b[count] == -hardest


@pytest.mark.parametrize("seed", range(20))
def test_motors_give_way_to_what_holds_and_to_nothing_else(seed):
    """A robot on more feet than it needs, against least squares under equations by NumPy.

    Feet stay where they are; motors miss what is asked of them least, by the inertias that they
    move, and not at all where the feet allow it.
    """
    rng = np.random.default_rng(seed)
    freedoms, motors, held = 9, int(rng.integers(3, 9)), int(rng.integers(2, 8))
    n = motors + held
    C = rng.normal(size=(n, freedoms)) * rng.uniform(0.5, 3.0, (n, 1))
    v, asked = rng.normal(size=freedoms), rng.normal(size=n)
    asked[motors:] = C[motors:] @ v
    bounds = np.zeros(n, ROW_BOUNDS)
    bounds[:] = (-1e6, 1e6, -1, 1, 1, 0)
    D, b = C @ C.T, asked.copy()
    x, enough = np.zeros(n), 1e-12 * np.abs(b).max()
    room = room_for(n, LINES + 5)
    residual, _ = solve_weighed(D, b, bounds, x, np.zeros(n), room, motors, enough, COMPLY)
    assert residual <= 100 * enough
    gained = C.T @ x
    strength = 1.0 / np.sqrt(np.diag(D)[:motors])  # each by what it moves
    turned = np.linalg.qr(C[motors:].T, mode="complete")[0]
    free = turned[:, min(held, freedoms) :]
    start = -np.linalg.pinv(C[motors:]) @ asked[motors:]
    missed = strength * (asked[:motors] + C[:motors] @ start)
    u = (
        start
        + free @ np.linalg.lstsq(-strength[:, None] * C[:motors] @ free, missed, rcond=None)[0]
    )
    worst = np.linalg.cond(C[motors:]) * np.linalg.cond(C) * np.abs(u).max()
    assert np.abs(C[motors:] @ gained + asked[motors:]).max() < 1e-10 * worst
    assert np.abs(C @ (gained - u)).max() < 1e-8 * worst
    if motors + held <= freedoms:
        assert np.abs(C @ gained + asked).max() < 1e-10 * worst


@pytest.mark.parametrize("yields", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_motors_miss_a_billionth_rather_than_press_feet_against_each_other(seed, yields):
    """Eight motors on feet that stand, in nine freedoms, asked for rates that are off by 1e-9.

    Feet hold to round-off, motors miss no more than they are off by, and impulses are those of
    least norm that give this motion: rigid motors would push with all they have. Without those
    errors motors do what is asked of them, and of a ten-thousandth nothing is made.
    """
    rng = np.random.default_rng(seed)
    freedoms, motors, held = 9, 8, 6
    n = motors + held
    C = rng.normal(size=(n, freedoms)) * rng.uniform(0.5, 3.0, (n, 1))
    bounds = np.zeros(n, ROW_BOUNDS)
    bounds[:] = (-1e6, 1e6, -1, 1, 1, 0)
    D, wanted, errors = C @ C.T, C @ rng.normal(size=freedoms), np.zeros(n)
    errors[:motors] = rng.normal(size=motors)
    room = room_for(n, LINES + 5)
    enough = 1e-12 * np.abs(wanted).max()
    for off in (0.0, 1e-9, 1e-4):
        b, x, w = wanted + off * errors, np.zeros(n), np.zeros(n)
        before = D.copy(), b.copy()
        how = YIELD if yields else SETTLE
        residual, steps = solve_weighed(D, b, bounds, x, w, room, motors, enough, how)
        assert np.array_equal(D, before[0])
        assert np.array_equal(b, before[1])
        if off > 1e-6:
            assert residual == math.inf
            assert not x.any()
            continue
        assert residual <= 100 * enough
        assert steps <= 16
        left = D @ x + b
        assert np.abs(left[motors:]).max() <= 100 * enough
        assert np.abs(left[:motors]).max() <= max(10 * off, 100 * enough)
        # what motors' weights do not hide of the least norm, by how far apart weights are
        weights = np.sqrt(room.vectors[4, :n])
        least = np.linalg.lstsq(C.T / weights, C.T @ x, rcond=None)[0]
        assert np.square(weights * x).sum() == pytest.approx(least @ least, rel=1e-3)


def test_limits_give_way_to_no_motor_where_not_all_of_them_hold():
    """More limits than freedoms stop motors: what they ask for together is no equation.

    Against the conditions themselves, with the velocities of C: no limit is passed, none pulls, and
    what pushes is at its end.
    """
    solved = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        freedoms, motors = int(rng.integers(1, 4)), int(rng.integers(1, 5))
        limits = freedoms + int(rng.integers(1, 4))
        A, drives, _ = motors_of(rng, motors, freedoms)
        C = np.vstack([A, rng.normal(size=(limits, freedoms))])
        bounds, n = np.zeros(len(C), ROW_BOUNDS), len(C)
        bounds[:motors] = drives
        bounds[motors:] = (0, np.inf, -1, 1, 1, 0)
        ways = rng.uniform(0.05, 1.0, limits)  # which limits leave
        b = np.concatenate([rng.normal(0, 10, motors), ways])
        x, room, enough = np.zeros(n), room_for(n, LINES + 5), 1e-12 * np.abs(b).max()
        residual, _ = solve_weighed(
            C @ C.T, b, bounds, x, np.zeros(n), room, motors, enough, COMPLY
        )
        if residual == np.inf:
            continue  # motors are rigid then
        solved += 1
        pushes, left = x[motors:], C[motors:] @ (C.T @ x) + ways
        size = 1e3 * enough * np.linalg.cond(C)
        assert left.min() > -size, seed
        assert pushes.min() >= 0.0, seed
        assert np.abs(np.minimum(pushes, left)).max() < size, seed
    assert solved > 30


def vehicle(rng):
    """Four driven wheels, each on two springs, of which none is exactly as high as another.

    D, b, bounds, and the first row of each contact: its normal, then two of friction.
    """
    inertia = np.array([2.0, 3.0, 4.0, 60.0, 60.0, 60.0, *[0.05] * 4])  # chassis, wheels
    rows = [*np.eye(10)[6:]]
    for wheel, (x, y) in enumerate(itertools.product((-0.17, 0.34), (-0.28, 0.28))):
        for side in (-0.05, 0.05):
            point = [x, y + side, -0.2 + 1e-3 * rng.normal()]
            for way in np.eye(3)[[2, 0, 1]]:
                row = np.concatenate([np.cross(point, way), way, np.zeros(4)])
                row[6 + wheel] = -0.17 * way[0]
                rows.append(row)
    C = np.array(rows)
    normals = np.arange(4, len(C), 3)
    bounds = np.zeros(len(C), ROW_BOUNDS)
    bounds[:4] = (-4.0, 4.0, -1, 1, 1, 0)
    for i in normals:
        bounds[i], bounds[i + 1] = (0.0, np.inf, -1, 1, 1, 0), (0.0, 0.0, i, 1, 2, 1.0)
        bounds[i + 2] = (0.0, 0.0, i, 0, 2, 1.0)
    b = C @ [0.01, -0.02, 0, 0, 0, -10 / 240, 0, 0, 0, 0]  # it rocks, and falls
    b[:4] = 0.0
    b[normals] -= 0.06 * rng.uniform(0.7, 1.3, 8)
    D = C @ np.diag(1 / inertia) @ C.T
    D[normals, normals] += 0.2
    return D, b, bounds, normals


@pytest.mark.parametrize("seed", range(8))
def test_a_vehicle_that_rocks_on_springs_is_solved_with_its_motors_rigid(seed):
    """Against Coulomb's law: heights that differ by a millimetre let all friction be used up.

    The wheels are held still, and slide by what the chassis rocks times that.
    """
    D, b, bounds, normals = vehicle(np.random.default_rng(seed))
    n, enough = len(b), 1e-13
    x, room = np.zeros(n), room_for(n, LINES + 5)
    asked = b.copy()
    residual, _ = solve_weighed(D, b, bounds, x, np.zeros(n), room, 4, enough, COMPLY)
    w, left = D @ x + asked, 100 * enough
    assert residual <= left
    assert np.abs(b - asked).max() <= left  # motors give way to nothing
    assert np.abs(w[:4]).max() <= 2 * left
    pushes, parts = x[normals], w[normals]
    assert np.abs(np.minimum(pushes, parts / D[normals, normals])).max() <= 2 * left
    for i in normals:
        rubs, slip, d = x[i + 1 : i + 3], w[i + 1 : i + 3], np.diag(D)[i + 1 : i + 3].max()
        most = x[i] + np.linalg.norm(slip) / d
        assert np.linalg.norm(rubs) <= x[i] + left / d
        # of the cone's impulses none does more work against the slip than these
        assert rubs @ slip + x[i] * np.linalg.norm(slip) <= 2 * left * most


def test_friction_that_slides_too_slowly_to_show_contradicts_no_other():
    """A block pressed onto two belts of which one creeps at 5e-8 m/s: one sticks, the other slides.

    Taken to stick both they contradict each other, whatever motors do. The belt that stands has the
    better friction and keeps the block, which weighs 1, where it is; the motor, whose link hangs on
    the block, turns as it is asked to.
    """
    creep, turns = 5e-8, 0.2
    free = np.array([-0.1, -1.0, 0.0])  # along, down and about: without impulses
    along, down = [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]
    C = np.array([[0.3, 0.0, 1.0], down, along, down, along])
    bounds = np.zeros(5, ROW_BOUNDS)
    bounds[0] = (-10.0, 10.0, -1, 1, 1, 0)
    for normal, mu in ((1, 1.0), (3, 0.5)):
        bounds[normal] = (0.0, np.inf, -1, 1, 1, 0)
        bounds[normal + 1] = (0.0, 0.0, normal, 1, 1, mu)
    b = C @ free + np.array([-turns, 0.0, 0.0, 0.0, creep])
    x, room = np.zeros(5), room_for(5, LINES + 5)
    enough = 1e-12 * np.abs(b).max()
    residual, _ = solve_weighed(C @ C.T, b, bounds, x, np.zeros(5), room, 1, enough, COMPLY)
    assert residual <= 100 * enough
    assert_allclose(free + C.T @ x, [0.0, 0.0, turns], atol=1e-9)
    assert x[4] == pytest.approx(-0.5 * x[3], rel=1e-9)  # against the creep, with all it has
    assert x[3] > 0.1


def moment_about(p, robot, joint, contacts):
    """Moment about a hinge of weights and contact forces on all that it carries [N m]."""
    info = [p.getJointInfo(robot, j) for j in range(p.getNumJoints(robot))]
    carried = {joint}
    for j in range(joint + 1, len(info)):  # parents come first
        if info[j][16] in carried:
            carried.add(j)
    names = {info[j][12].decode() for j in carried}
    here = p.getLinkState(robot, joint, computeForwardKinematics=True)
    origin = np.array(here[4])
    turn = np.reshape(p.getMatrixFromQuaternion(here[5]), (3, 3))
    total = np.zeros(3)
    for j in carried:
        weight = [0, 0, -9.81 * p.getDynamicsInfo(robot, j)[0]]
        total += np.cross(np.array(p.getLinkState(robot, j)[0]) - origin, weight)
    for contact in contacts:
        for link, force in ((contact.a, -contact.force), (contact.b, contact.force)):
            if link.rpartition("/")[2] in names:
                total += np.cross(contact.point - origin, force)
    return float(total @ (turn @ np.array(info[joint][13])))


@pytest.mark.parametrize(
    ("urdf", "pose", "drop"),
    [
        ("a1/a1", (0.0, 0.9, -1.8), 0.01),
        ("aliengo/aliengo", (0.0, 0.9, -1.8), 0.01),
        ("mini_cheetah/mini_cheetah", (0.0, -0.8, 1.6), 0.01),
        ("quadruped/spirit40", (0.0, 0.6, 1.2), 0.01),
        ("quadruped/spirit40", (0.0, 0.6, 1.2), 0.3),
    ],
)
def test_a_quadruped_stands_at_ease(urdf, pose, drop):
    """Twelve motors on four feet: none at its limit, the feet carry the weight, nothing moves.

    Its motors take back a tenth of what is left in each step: 480 leave nothing of the landing but
    what rows are solved to. Where some way is all but free, impulses may be off by as much as the
    weight gives in a step, m g dt; times 1e-12 m/s, of the rows, that is m v^2. Where feet have
    stuck decides how legs press against one another, and a millimetre more to fall decides that:
    so torques are those of statics, of whatever forces there are.
    """
    stage = daily_scenes.Stage("exact")
    p = stage.p
    p.setGravity(0, 0, -9.81)
    p.loadURDF(f"{daily_scenes.DATA}/plane.urdf")
    robot = p.loadURDF(f"{daily_scenes.DATA}/{urdf}.urdf", [0, 0, 1.0])
    p.setBridgeMode("exact", robot)
    hinges = [
        j for j in range(p.getNumJoints(robot)) if p.getJointInfo(robot, j)[2] == p.JOINT_REVOLUTE
    ]
    for j, angle in zip(hinges, 4 * pose, strict=True):
        p.resetJointState(robot, j, angle)
        p.setJointMotorControl2(robot, j, p.POSITION_CONTROL, angle, force=40)
    lowest = min(p.getAABB(robot, link)[0][2] for link in range(-1, p.getNumJoints(robot)))
    p.resetBasePositionAndOrientation(robot, [0, 0, 1.0 + drop - lowest], [0, 0, 0, 1])
    for _ in range(480):
        p.stepSimulation()
    group = next(iter(session_of(p._client).groups.values()))
    contacts = [c for c in group.system.contacts() if c.state != "open"]
    masses = [p.getDynamicsInfo(robot, link)[0] for link in range(-1, p.getNumJoints(robot))]
    falls = 9.81 / 240
    fastest = math.sqrt(falls * 1e-12)
    assert np.abs(group.system.v).max() < fastest
    # what still moves, and what is not moved any more, over a step
    rel = 2 * fastest / falls
    assert sum(c.force[2] for c in contacts) == pytest.approx(9.81 * sum(masses), rel=rel)
    torques = [p.getJointState(robot, j)[3] for j in hinges]
    assert np.abs(torques).max() < 40 * (1 - 1e-6)
    expected = [-moment_about(p, robot, j, contacts) for j in hinges]
    # points are told at a configuration that was predicted, by what weights and motors do alone:
    # a free fall of one step and 0.1 mm away, and so are the arms of the forces that feet bear
    ahead = 9.81 / 240**2 + 1e-4
    borne = sum(np.linalg.norm(contact.force) for contact in contacts)
    assert_allclose(torques, expected, rtol=0, atol=ahead * borne)
    p.disconnect()


def test_bounds_are_kept_and_the_rest_takes_over():
    """Three equal motors on one freedom, one of them weak: by scipy's bounded least squares."""
    C = np.ones((3, 1))
    bounds = np.zeros(3, ROW_BOUNDS)
    for i, most in enumerate((0.1, 10.0, 10.0)):
        bounds[i] = (-most, most, -1, 1, 1, 0)
    x, _, residual = solve(C @ C.T, np.full(3, -2.0), bounds)
    limit = np.array([0.1, 10.0, 10.0])
    rows, wanted = np.vstack([1e6 * C.T, np.eye(3)]), np.array([2e6, 0.0, 0.0, 0.0])
    least = lsq_linear(rows, wanted, (-limit, limit)).x
    assert residual <= ENOUGH
    assert np.abs(x - least).max() < 1e-5
    assert x[0] == pytest.approx(0.1, abs=1e-12)


def two_arms(steps, collide):
    """The scene after so many steps: stage, system, angles that the motors asked for last."""
    stage = daily_scenes.Stage("exact")
    stage.limit = steps
    daily_scenes.two_arms(stage, collide)
    group = next(iter(session_of(stage.p._client).groups.values()))
    return stage, group.system


def test_two_arms_share_a_load_by_the_least_norm():
    """Fourteen motors on eight freedoms, against the pseudo-inverse of NumPy and SciPy alone."""
    stage, system = two_arms(120, collide=False)
    terms = system._active.solver.terms(system.q, system.v, system.t)
    system.step(write=False)
    L = np.linalg.cholesky(terms.M)
    Y = np.linalg.solve(L, terms.J.T).T
    _, s, Vt = np.linalg.svd(Y)
    free = Vt[int((s > 1e-6 * s[0]).sum()) :]
    forces = dict(zip(system.motors.names, system.motors.forces, strict=True))
    names = [name for name, force in forces.items() if force != 0.0]
    rows = np.zeros((len(names), len(system.v)))
    for i, name in enumerate(names):
        rows[i, system.motors.axis(name)] = 1.0
    exerted = np.array([forces[name] for name in names])
    A = free @ np.linalg.solve(L, rows.T)  # what each does to the free motions; bounds are equal
    least = np.linalg.pinv(A) @ (A @ exerted)
    assert len(names) == 14 and A.shape[0] == 8
    assert np.abs(exerted - least).max() < 1e-3 * np.abs(least).max()
    assert np.abs(exerted).max() < 0.5 * 150.0
    stage.end()


def test_contacts_between_what_loops_hold_have_no_part():
    """With and without collision between the arms and the box that they hold, one motion."""
    ends = []
    for collide in (True, False):
        stage, system = two_arms(60, collide)
        contacts = system.contacts()
        assert bool(contacts) is collide
        assert all(contact.state == "held" and not contact.force.any() for contact in contacts)
        ends.append(np.r_[system.q, system.v])
        stage.end()
    assert np.abs(ends[0] - ends[1]).max() < 1e-9


@pytest.mark.filterwarnings("ignore:panda.urdf. nothing leads")
@pytest.mark.parametrize("number", [0, 3, 4, 17, 19, 20, 22, 30])
def test_random_grasps_hold(number):
    """No error, no rate above what motors give, pivots on each other but for Bullet's digits.

    PyBullet tells poses of links in single precision.
    """
    found, kept = grasps.perform(grasps.draw(number), "exact", 0.2)
    assert not found.error
    assert found.rate < grasps.LIMIT
    assert found.gap < 1e-6
    assert kept < grasps.CLOSED


@pytest.mark.filterwarnings("ignore:panda.urdf. nothing leads")
def test_what_only_a_wedge_could_part_stays_where_it_is():
    """A mug welded to a hand stands 9 mm in its fingers, which slide all but along it.

    The arm swings as without these contacts, but for what friction along them does: 0.05 rad in a
    tenth of a second, where going round them took it 0.5 rad away. A wedge counts as one of at
    least a tenth, so a contact carries no more than ten times the weights and motors, some 100 N.
    """
    ends = []
    for mode in ("filter", "exact"):
        stage = daily_scenes.Stage(mode)
        grasps._perform(stage, grasps.draw(19), 0.1)
        ends.append([state[0] for state in stage.p.getJointStates(1, range(7))])
        pushes = [point[9] for point in stage.p.getContactPoints(1, 2)]
        assert mode == "filter" or max(pushes, default=0.0) < 1e3
        stage.end()
    assert np.abs(np.subtract(*ends)).max() < 0.05


def test_motor_torques_that_programs_read_are_those_of_the_step():
    """An arm that holds a load still: its own inverse dynamics and the weight of the load."""
    stage = daily_scenes.Stage("exact")
    p = stage.p
    arm = stage.arm(0.0, 0.0)
    p.changeDynamics(arm, -1, linearDamping=0, angularDamping=0)
    flange = p.getLinkState(arm, 6)[0]
    load = stage.box((0.05, 0.05, 0.05), 5.0, (flange[0], flange[1], flange[2] - 0.3))
    stage.fix(arm, 6, load)
    stage.drive(arm, daily_scenes.READY, 300.0)
    stage.steps(3)
    told = [state[3] for state in p.getJointStates(arm, range(7))]
    q = [state[0] for state in p.getJointStates(arm, range(7))]
    own = p.calculateInverseDynamics(arm, q, [0.0] * 7, [0.0] * 7)
    at = p.multiplyTransforms(
        *p.invertTransform(*p.getLinkState(arm, 6, computeForwardKinematics=True)[:2]),
        *p.getBasePositionAndOrientation(load),
    )[0]
    J = np.array(p.calculateJacobian(arm, 6, at, q, [0.0] * 7, [0.0] * 7)[0])
    expected = np.array(own) + 9.81 * 5.0 * J[2]
    # joints sag by what gravity gives in a step, and are brought back by a tenth a step
    assert np.abs(np.array(told) - expected).max() < 0.02 * np.abs(expected).max()
    assert p.getJointState(arm, 1)[3] == told[1]
    assert p.getJointStateMultiDof(arm, 1)[3] == (told[1],)
    stage.end()


def test_constraints_without_effect_are_accepted():
    for mode in ("filter", "exact"):
        p = bb.BulletClient(pybullet.DIRECT, mode=mode)
        p.setGravity(0, 0, -9.81)
        shape = p.createCollisionShape(pybullet.GEOM_BOX, halfExtents=(0.1, 0.1, 0.1))
        first, second = (p.createMultiBody(0.0, shape, -1, (0.3 * k, 0, 0)) for k in range(2))
        third = p.createMultiBody(1.0, shape, -1, (0.6, 0, 0))
        free = (0, 0, 0)
        numbers = [
            p.createConstraint(first, -1, second, -1, p.JOINT_FIXED, free, free, free),
            p.createConstraint(third, -1, third, -1, p.JOINT_FIXED, free, free, free),
            p.createConstraint(
                second, -1, third, -1, p.JOINT_POINT2POINT, free, (0.15, 0, 0), (-0.15, 0, 0)
            ),
        ]
        assert p.getConstraintState(numbers[2]) == (0.0, 0.0, 0.0)
        for _ in range(5):
            p.stepSimulation()
        for number in numbers[:2]:
            assert len(p.getConstraintState(number)) == 6
        fallen = math.dist(p.getBasePositionAndOrientation(third)[0], (0.6, 0, 0))
        assert 0.0 < fallen < 0.01
        p.disconnect()


def test_what_cannot_be_closed_is_tried_ever_more_rarely(monkeypatch):
    p = bb.BulletClient(pybullet.DIRECT, mode="filter")
    shape = p.createCollisionShape(pybullet.GEOM_BOX, halfExtents=(0.1, 0.1, 0.1))
    a, b = (p.createMultiBody(1.0, shape, -1, (0.5 * k, 0, 0)) for k in range(2))
    for y in (0.0, 0.5):
        p.createConstraint(a, -1, b, -1, p.JOINT_POINT2POINT, (0, 0, 0), (0.2, y, 0), (-0.2, 0, 0))
    with pytest.warns(BulletBridgeWarning, match="cannot close"):
        p.stepSimulation()
    tried = 0
    group = next(iter(session_of(p._client).groups.values()))

    def count(*_args, **_kwargs):
        nonlocal tried
        tried += 1
        raise AssemblyError("no")

    monkeypatch.setitem(vars(group.system), "filter", count)
    for _ in range(500):
        p.stepSimulation()
    assert 3 <= tried <= 9  # after 2, 4, 8, ... steps
    p.disconnect()


LEGS = """<robot name="legs">
  <link name="base"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0"
    iyz="0"/></inertial><collision><geometry><box size="0.2 0.2 0.1"/></geometry></collision></link>
  <link name="upper"><inertial><origin xyz="0.2 0 0"/><mass value="1"/><inertia ixx="0.01"
    iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial><collision>
    <origin xyz="0.2 0 0"/><geometry><box size="0.4 0.1 0.1"/></geometry></collision>
  </link>
  <link name="lower"><inertial><origin xyz="0.2 0 0"/><mass value="1"/><inertia ixx="0.01"
    iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial><collision>
    <origin xyz="0.2 0 0"/><geometry><box size="0.4 0.1 0.1"/></geometry></collision>
  </link>
  <joint name="hip" type="revolute"><parent link="base"/><child link="upper"/>
    <axis xyz="0.6 0 0.8"/>
    <origin xyz="0 0 0.0999" rpy="0.3 0.2 0"/><limit lower="-9" upper="9" effort="9" velocity="9"/>
  </joint>
  <joint name="knee" type="revolute"><parent link="upper"/><child link="lower"/><axis xyz="0 0 1"/>
    <origin xyz="0.35 0 0.0999"/><limit lower="-9" upper="9" effort="9" velocity="9"/></joint>
</robot>"""


@pytest.mark.parametrize("mode", ["native", "filter", "exact"])
def test_motors_that_loops_set_against_each_other(mode):
    """Two hinges on one axis, their links joined: one freedom, and motors for 1 and -0.5 rad/s.

    Bullet's stronger one gets its way against all the force of the other; exact ones meet at the
    mean of what they ask for, weighted by the squares of 4 and 2 N m, where nothing pushes.
    """
    p = bb.BulletClient(pybullet.DIRECT, mode=mode)
    p.setPhysicsEngineParameter(numSolverIterations=500)
    shape = p.createCollisionShape(pybullet.GEOM_BOX, halfExtents=[0.1] * 3)
    at, straight = [[0, 0, 0]], [[0, 0, 0, 1]]
    hinge = [pybullet.JOINT_REVOLUTE], [[0, 0, 1]]
    bodies: list[int] = []
    for target, force in ((1.0, 4.0), (-0.5, 2.0)):
        shapes = [1.0], [shape], [-1]
        body = p.createMultiBody(
            0,
            -1,
            -1,
            at[0],
            straight[0],
            None,
            None,
            *shapes,
            at,
            straight,
            at,
            straight,
            [0],
            *hinge,
        )
        p.setCollisionFilterGroupMask(body, 0, 0, 0)
        p.changeDynamics(body, 0, linearDamping=0, angularDamping=0)
        p.setJointMotorControl2(body, 0, pybullet.VELOCITY_CONTROL, 0, target, force)
        bodies.append(body)
    ends = bodies[0], 0, bodies[1], 0
    p.createConstraint(*ends, pybullet.JOINT_FIXED, [0] * 3, [0] * 3, [0] * 3)
    for _ in range(30):
        p.stepSimulation()
    rates, torques = zip(
        *((s[1], s[3]) for s in (p.getJointState(b, 0) for b in bodies)), strict=True
    )
    p.disconnect()
    if mode == "exact":
        assert_allclose(rates, (16 * 1.0 - 4 * 0.5) / 20, rtol=1e-12)
        assert_allclose(torques, 0.0, atol=1e-4)  # what is left of weights that are taken away
    else:  # Bullet's passes end at a residual
        assert_allclose(rates, 1.0, rtol=1e-3)
        assert_allclose(torques, [2.0, -2.0], rtol=1e-3)


def test_links_that_lie_on_each_other_along_their_axis_swing_as_if_they_did_not(tmp_path):
    """The contact of knee and thigh can neither push nor be pushed; it leaves no trace."""
    (tmp_path / "legs.urdf").write_text(LEGS)
    found = []
    for collide in (True, False):
        stage = daily_scenes.Stage("exact")
        p = stage.p
        flags = p.URDF_USE_SELF_COLLISION | p.URDF_USE_SELF_COLLISION_INCLUDE_PARENT
        legs = p.loadURDF(str(tmp_path / "legs.urdf"), useFixedBase=True, flags=flags)
        p.setCollisionFilterPair(legs, legs, -1, 0, 0)
        p.setCollisionFilterPair(legs, legs, -1, 1, 0)
        p.setCollisionFilterPair(legs, legs, 0, 1, int(collide))
        p.setBridgeMode("exact", legs)
        for joint in range(2):
            p.setJointMotorControl2(legs, joint, p.VELOCITY_CONTROL, force=0)
        states, told = [], set()
        for _ in range(60):
            p.stepSimulation()
            (group,) = session_of(p._client).groups.values()
            told |= {contact.state for contact in group.system.contacts()}
        states = [p.getJointState(legs, joint)[:2] for joint in range(2)]
        assert told <= {"held", "open"}
        assert ("held" in told) == collide
        found.append(np.array(states))
        p.disconnect()
    # round-off of 60 steps at 1e-16 each, a hundredfold
    assert np.abs(found[0] - found[1]).max() < 1e-12 * max(1.0, np.abs(found[1]).max())


def test_motors_of_a_robot_at_rest_give_way_to_nothing():
    """Minitaur stands on more feet than it needs; its motors miss their places by some 1e-9 rad/s.

    From one of these starts, or another elsewhere, they counted as giving way for good, at 52 of
    Newton's steps in each.
    """
    for lifted in (0.0, 1e-3, 4e-3):
        client = bb.BulletClient(pybullet.DIRECT)
        client.setBridgeMode("exact")
        minitaur(client, 1 / 240, 0.2 + lifted)
        looked = 0
        for _ in range(700):
            client.stepSimulation()
            (group,) = session_of(client._client).groups.values()
            stepper = group.system._inequalities._stepper
            gives, apart = stepper.report[[COMPLIED, APART]]
            if np.abs(group.system.v).max() < 1e-6 and not apart:
                looked += 1
                n = int(stepper.report[ROWS])
                gave, asked = np.abs(stepper.impulses[[GAVE, ASKED], :n]).max(1)
                assert not gives or gave > 1e-7 * asked
        assert looked > 100
        client.disconnect()
