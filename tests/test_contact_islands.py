"""Piles of bodies that only contacts join: solved island by island, by the laws of contact."""

import numpy as np
import pybullet
import pytest
from scipy.sparse.csgraph import connected_components
from test_mixed import ENOUGH, violation
from test_parts import pile

import bulletbridge as bb
from bulletbridge.compilation.jit import kernel
from bulletbridge.numerics.complementarity import LIGHTEST
from bulletbridge.numerics.complementarity_rows import (
    LINES,
    complementarity_problem,
    room_for,
)
from bulletbridge.numerics.contact_islands import APART, RESTING, islands_of, solve_by_islands

DT, G, FRICTION = 1 / 240, 9.81, 0.5


@kernel
def solve_all(D, b, bounds, x, w, room, s, start, tolerance: float, effort: int):
    """``solve_by_islands`` from x, in place; the residual."""
    n = len(b)
    p = complementarity_problem(D, b, bounds, x, w, room)
    for i in range(n):
        p.weights[i], p.centre[i] = LIGHTEST * D[i, i], 0.0
    return solve_by_islands(p, s, start, 0, n, tolerance, effort).residual


def solve(C, b, bounds, start=0.0, effort=RESTING):
    """Impulses, velocities and residual of rows C on bodies of six coordinates, from ``start``."""
    n, bodies = len(C), C.shape[1] // 6
    s = islands_of(n, np.append(0, np.full(bodies, 6)))
    D = np.zeros((n, n))
    for i in range(n):
        on = C[i].reshape(bodies, 6)
        for end, body in enumerate(np.flatnonzero(on.any(axis=1))):
            s.bodies[i, end], s.blocks[i, end] = body + 1, on[body]
    for i in range(0, n, 3):
        unit = slice(i, i + 3)
        own = s.blocks[unit].reshape(3, 12)  # the same bits whatever else there is
        D[unit, unit] = own @ own.T
    x, w = np.zeros(n) + start, np.zeros(n)
    room = room_for(n, LINES)
    residual = solve_all(D, b.copy(), bounds, x, w, room, s, np.ones(n), ENOUGH, effort)
    return x, w, residual


def test_islands_are_solved_as_each_is_alone():
    """Two small piles and one of sixty bodies, rows of all among each other: the same bits."""
    rng = np.random.default_rng(11)
    sizes = [(3, 5), (60, 170), (6, 12)]
    piles = [pile(rng, *size)[:2] for size in sizes]
    asked = [C @ rng.normal(size=C.shape[1]) for C, _ in piles]
    alone = [solve(C, b, bounds) for (C, bounds), b in zip(piles, asked, strict=True)]
    first_row = np.cumsum([0, *(len(b) for b in asked)])
    first_rate = np.cumsum([0, *(C.shape[1] for C, _ in piles)])
    C, b = np.zeros((first_row[-1], first_rate[-1])), np.concatenate(asked)
    for k, (own, _) in enumerate(piles):
        C[first_row[k] : first_row[k + 1], first_rate[k] : first_rate[k + 1]] = own
    units = [np.arange(first_row[k] // 3, first_row[k + 1] // 3) for k in range(3)]
    order = np.empty(len(b) // 3, np.int64)  # each island keeps its order
    order[rng.permutation(len(order))] = np.concatenate(units)
    for own in units:
        order[np.isin(order, own)] = own
    rows = (3 * order[:, None] + np.arange(3)).ravel()
    bounds = pile(rng, 2, len(order))[1]
    x, w, residual = solve(C[rows], b[rows], bounds)
    assert residual <= 1e3 * ENOUGH
    assert violation(C[rows] @ C[rows].T, b[rows], bounds, x) < 1e-8
    back = np.argsort(rows)
    for k, (own_x, own_w, _) in enumerate(alone):
        mine = slice(first_row[k], first_row[k + 1])
        assert np.array_equal(x[back][mine], own_x) and np.array_equal(w[back][mine], own_w)


def test_loads_stay_shared_as_they_were():
    """Impulses that solve are kept, and others lead to some beside them, where many would do.

    Sixty bodies at 170 points that all hold: 150 combinations of impulses or more give no motion.
    """
    rng = np.random.default_rng(4)
    C, bounds, _ = pile(rng, 60, 170)
    x = np.tile([1.0, 0.1, -0.1], 170)  # well within cones of 0.5
    b = -C @ (C.T @ x)
    unmoved = np.linalg.svd(C)[0][:, C.shape[1] :]
    other = x + 0.1 * unmoved @ rng.normal(size=unmoved.shape[1])
    for start in (x, other):
        kept, w, residual = solve(C, b, bounds, start)
        assert residual <= ENOUGH and np.abs(w).max() <= 10.0 * ENOUGH
        # what round-off of the right sides asks for, by the softest motion
        assert np.abs(kept - start).max() < 1e-9
    start = other + 1e-4 * rng.normal(size=len(x))
    near, _, residual = solve(C, b, bounds, start)
    assert residual <= ENOUGH
    # a proximal step changes impulses by what moves bodies, over the softness
    changed = np.sum(C * C, axis=1) * (near - start)
    assert np.abs(unmoved.T @ changed).max() < 1e-3 * np.abs(changed).max()
    assert np.abs(near - other).max() < 0.01 * np.abs(x - other).max()


def test_what_bodies_leave_jammed_is_solved_by_all_rows_at_once():
    """Small piles of much friction, a few of which elimination of their bodies leaves at 1e-2 m/s.

    Each has a solution, and what is told of it is the law's own residual.
    """
    for bodies, contacts in ((6, 24), (7, 26)):
        for seed in range(60):
            rng = np.random.default_rng(seed + 1000 * bodies)
            C, bounds, _ = pile(rng, bodies, contacts, 1.5)
            b = C @ rng.normal(size=C.shape[1])
            x, _, residual = solve(C, b, bounds)
            assert residual <= 1e3 * ENOUGH
            assert violation(C @ C.T, b, bounds, x) < 1e-8


def test_what_is_moved_apart_keeps_its_friction_or_its_law():
    """Normals that are asked to open: by Coulomb's law, or where that is not found, by themselves.

    Of islands of six piles there are some of both kinds; in each normals press or part.
    """
    rng, kinds = np.random.default_rng(6), [0, 0]
    for _ in range(6):
        C, bounds, _ = pile(rng, 60, 170)
        D, b = C @ C.T, C @ rng.normal(size=C.shape[1])
        x, _, residual = solve(C, b, bounds)
        assert residual <= 1e3 * ENOUGH
        wider = b.copy()
        wider[::3] -= rng.uniform(0.0, 1.0, 170)
        apart, there, residual = solve(C, wider, bounds, x, APART)
        assert residual <= 1e3 * ENOUGH
        assert np.abs(D @ apart + wider - there).max() < 1e-9
        left = np.minimum(apart[::3] * np.diag(D)[::3], there[::3])
        assert np.abs(left).max() < 1e-8
        count, island = connected_components(D[::3, ::3])
        for k in range(count):
            rows = (3 * np.flatnonzero(island == k)[:, None] + np.arange(3)).ravel()
            changed = (apart - x)[rows].reshape(-1, 3)[:, 1:]  # or round-off of elimination
            by_law = int(np.abs(changed).max() > 1e-12)
            kinds[by_law] += 1
            if by_law:
                own = D[np.ix_(rows, rows)], wider[rows], bounds[: len(rows)], apart[rows]
                assert violation(*own) < 1e-8
    assert min(kinds) > 0


def shape_of(client, half):
    """A capsule of some radius and length, a ball of a radius, or a box of half lengths."""
    sizes = [
        {"shapeType": pybullet.GEOM_SPHERE, "radius": half[0]},
        {"shapeType": pybullet.GEOM_CAPSULE, "radius": half[0], "height": half[-1]},
        {"shapeType": pybullet.GEOM_BOX, "halfExtents": half},
    ]
    return pybullet.createCollisionShape(**sizes[len(half) - 1], physicsClientId=client)


class Dropped:
    """Bodies of 0.2 kg above a floor with walls, which are as rough and bounce as they do."""

    def __init__(self, shape, places, turns, restitution=0.0):
        client = pybullet.connect(pybullet.DIRECT)
        self.client, self.world, self.bodies = client, {"physicsClientId": client}, []
        pybullet.setGravity(0, 0, -G, **self.world)
        floor = [([0, 0, -0.05], [1, 1, 0.05])]
        floor += [([0.3 * sign, 0, 0.3], [0.05, 0.3, 0.3]) for sign in (-1, 1)]
        floor += [([0, 0.3 * sign, 0.3], [0.3, 0.05, 0.3]) for sign in (-1, 1)]
        made = [(0.0, shape_of(client, half), place, (0, 0, 0, 1)) for place, half in floor]
        for place, turn in zip(places, turns, strict=True):
            turn = np.array(turn) / np.linalg.norm(turn)
            made.append((0.2, shape_of(client, shape), list(place), turn.tolist()))
        for mass, collision, place, turn in made:
            body = pybullet.createMultiBody(mass, collision, -1, place, turn, **self.world)
            rubs = {"lateralFriction": FRICTION if mass else 1.0}
            rubs["restitution"] = restitution if mass else 1.0
            pybullet.changeDynamics(body, -1, **rubs, **self.world)
            self.bodies += [body] if mass else []
        names = {f"n{k}": body for k, body in enumerate(self.bodies)}
        self.system = bb.attach(names, client=client, contacts=True, solver="sparse")

    def motion(self):
        """Place, velocity and angular velocity (n, 3, 3) of the bodies, as Bullet has them."""
        rows = []
        for body in self.bodies:
            place, _ = pybullet.getBasePositionAndOrientation(body, **self.world)
            rows.append([place, *pybullet.getBaseVelocity(body, **self.world)])
        return np.array(rows)

    def free(self, motion):
        """The same after a step in which nothing touches; places as they were."""
        rows = motion.copy()
        rows[:, 1, 2] -= G * DT
        for k, body in enumerate(self.bodies):
            turn = pybullet.getBasePositionAndOrientation(body, **self.world)[1]
            R = np.reshape(pybullet.getMatrixFromQuaternion(turn), (3, 3))
            inertia = R * pybullet.getDynamicsInfo(body, -1, **self.world)[2] @ R.T
            spin = motion[k, 2]
            rows[k, 2] -= DT * np.linalg.solve(inertia, np.cross(spin, inertia @ spin))
        return rows


def speed_of(contact, motion, ahead):
    """Velocity of b against a where they touch, of bodies that are ``ahead`` when they do."""
    speed = np.zeros(3)
    ends = (contact.a, contact.point - contact.predicted_gap * contact.normal, -1.0)
    for name, point, sign in (ends, (contact.b, contact.point, 1.0)):
        if name != "world":
            k = int(name.split("/")[0][1:])
            speed += sign * (motion[k, 1] + np.cross(motion[k, 2], point - ahead[k]))
    return speed


def test_a_pile_keeps_the_laws_of_contact():
    """Newton's, Signorini's and Coulomb's at every contact of each step, to 1e-8 m/s.

    Velocities are Bullet's numbers of the state that it is shown; rows are not looked at.
    """
    rng = np.random.default_rng(5)
    places = [
        (0.16 * (k % 3 - 1), 0.16 * (k // 3 % 3 - 1), 0.08 + 0.13 * (k // 9)) for k in range(18)
    ]
    dropped = Dropped([0.03, 0.1], places, rng.normal(size=(18, 4)))
    pressed = slid = 0
    for _ in range(90):
        before = dropped.motion()
        free = dropped.free(before)
        ahead = before[:, 0] + DT * free[:, 1]
        dropped.system.step()
        after, gained = dropped.motion(), np.zeros((18, 3))
        for contact in dropped.system.contacts():
            for name, sign in ((contact.a, -1.0), (contact.b, 1.0)):
                if name != "world":
                    gained[int(name.split("/")[0][1:])] += sign * DT * contact.force
            was = contact.predicted_gap - DT * speed_of(contact, free, ahead) @ contact.normal
            speed, push = speed_of(contact, after, ahead), contact.normal_force
            along = speed @ contact.normal
            slip, approach = speed - along * contact.normal, along + max(was, 0.0) / DT
            assert push >= -1e-9 and approach >= -1e-8 and min(push, 1.0) * approach <= 1e-8
            most = push * (FRICTION if contact.a == "world" else FRICTION**2)
            assert np.linalg.norm(contact.friction) <= most + 1e-7
            if np.linalg.norm(slip) > 1e-6:
                slid += push > 0.1
                direction = slip / np.linalg.norm(slip)
                assert np.abs(contact.friction + most * direction).max() < 1e-4 * (1.0 + most)
            pressed += push > 0.1
        assert np.abs(0.2 * (after[:, 1] - free[:, 1]) - gained).max() < 1e-12
    handed = dropped.system.status.handed_over
    pybullet.disconnect(dropped.client)
    assert handed == 0 and pressed > 300 and slid > 100


def test_a_pile_goes_on_with_the_same_bits():
    """From a state that was saved, whatever comes between; and again from the beginning."""
    rng = np.random.default_rng(8)
    places = [
        (0.14 * (k % 3 - 1), 0.14 * (k // 3 % 3 - 1), 0.04 + 0.07 * (k // 9)) for k in range(27)
    ]
    dropped, states = Dropped([0.03, 0.1], places, rng.normal(size=(27, 4))), []
    system = dropped.system
    begin = system.save()
    for n in range(90):
        if n == 70:
            saved, most = system.save(), 0
        system.step()
        states.append(np.concatenate([system.q, system.v]))
        most = max(most, system.complementarity.rows) if n >= 70 else 0
    for first, state in ((70, saved), (0, begin), (70, saved)):
        system.restore(state)
        for then in states[first:]:
            system.step()
            assert np.array_equal(np.concatenate([system.q, system.v]), then)
    pybullet.disconnect(dropped.client)
    assert most > 200  # so many that bodies are eliminated


@pytest.mark.parametrize(("shape", "share"), [([0.03] * 3, 1.0), ([0.03], 5.0 / 7.0)])
def test_what_lies_is_at_rest_and_what_may_slide_does(shape, share):
    """Two boxes on one another come to a stand for good, while what may move does ever so slowly.

    At a millionth of g along the floor a box without friction slides by Newton's law, and a ball
    rolls by 5/7 of that. It is told to 1e-3, the share of an energy that the budget may take.
    """
    places = [(-0.1, 0, 0.03), (-0.1, 0, 0.09), (0.1, 0, 0.03)][: len(shape)]
    dropped = Dropped(shape, places, [(0, 0, 0, 1)] * len(places))
    system, last = dropped.system, len(places) - 1
    if len(shape) > 1:
        pybullet.changeDynamics(dropped.bodies[last], -1, lateralFriction=0, **dropped.world)
    system.gravity = [1e-6 * G, 0.0, -G]
    for _ in range(20):
        system.step()
    lying, began = system.q.copy(), dropped.motion()[last, 1, 0]
    for _ in range(100):
        system.step()
    gained, v = dropped.motion()[last, 1, 0] - began, system.v
    pybullet.disconnect(dropped.client)
    assert gained == pytest.approx(share * 100 * DT * 1e-6 * G, rel=1e-3)
    assert np.array_equal(system.q[: 7 * last], lying[: 7 * last]) and not v[: 6 * last].any()


@pytest.mark.parametrize("restitution", [0.5, 1.0])
def test_balls_bounce_each_by_itself(restitution):
    """They leave with that share of the speed they came with, whatever those beside them do."""
    rng = np.random.default_rng(2)
    places = [
        (0.1 * (k % 5 - 2), 0.1 * (k // 5 - 2), z) for k, z in enumerate(rng.uniform(0.1, 0.3, 20))
    ]
    dropped, bounced = Dropped([0.03], places, [(0, 0, 0, 1)] * 20, restitution), set()
    for _ in range(80):
        before = dropped.motion()[:, 1, 2]
        dropped.system.step()
        after = dropped.motion()[:, 1, 2]
        for k in np.flatnonzero((after > 0.0) & (before < 0.0)):
            bounced.add(int(k))
            assert abs(after[k] + restitution * before[k]) < 1e-10
    handed = dropped.system.status.handed_over
    pybullet.disconnect(dropped.client)
    assert handed == 0 and len(bounced) == 20
