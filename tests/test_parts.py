"""Rows of contacts solved by elimination of the bodies that they move."""

import numpy as np
import pytest
from scipy.optimize import nnls
from test_mixed import ENOUGH, bounds_of, solve, violation

from bulletbridge.compilation.jit import kernel
from bulletbridge.numerics.complementarity_rows import (
    DERIVATIVES,
    LINES,
    OTHER,
    OTHER_W,
    OWN,
    OWN_W,
    RADIUS,
    ROW_BOUNDS,
    USED,
    complementarity_problem,
    parts_of,
    room_for,
)
from bulletbridge.numerics.parts import (
    OF_TREES,
    factorise_parts,
    number_in_turn,
    order_parts,
    plan_parts,
    put_runs,
    solve_parts,
)


@kernel
def solve_linear(D, soft, bounds, slopes, room, right, step, enough: float, in_turn: bool):
    """Solve B x + G (D + S) x = right by parts; whether they were used and it was solved.

    in_turn: parts are numbered as they are eliminated, as those of islands are.
    """
    n = len(right)
    lines = room.vectors[LINES:]
    p = complementarity_problem(D, lines[0], bounds, lines[1], lines[2], room)
    for i in range(n):
        p.diagonal[i] = D[i, i]
    plan_parts(p, n)
    used = p.parts.state[USED] == 1
    if used and in_turn:
        order_parts(p, n, OF_TREES)
        number_in_turn(p, n)
        put_runs(p.parts)
    for i in range(n):
        D[i, i] += soft[i]
        for k in range(DERIVATIVES):
            p.slopes[k, i] = slopes[k, i]
    if used:
        factorise_parts(p, n)
        used = solve_parts(p, n, right, step, enough)
    for i in range(n):
        D[i, i] -= soft[i]
    return used


def pile(rng, bodies, contacts, mu=0.5):
    """Rows (n, 6 bodies) of contacts between two bodies or one and the world; bounds; parts."""
    C = np.zeros((3 * contacts, 6 * bodies))
    for c in range(contacts):
        a = int(rng.integers(bodies))
        b = a + int(rng.choice([1, 2]))  # those beside it, as in a layer of a pile
        frame = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        for body, sign in ((a, 1.0), (b, -1.0))[: 2 if b < bodies else 1]:
            arms = np.cross(rng.normal(size=3), frame)
            part = slice(6 * body, 6 * body + 6)
            C[3 * c : 3 * c + 3, part] = sign * np.hstack([frame, 2.0 * arms])
    return C, bounds_of(contacts, mu), np.arange(0, 6 * bodies + 1, 6)


def blocks(rng, contacts):
    """Derivatives of sticking, sliding and idle contacts, as slopes and as matrices B and G."""
    n = 3 * contacts
    slopes, B, G = np.zeros((DERIVATIVES, n)), np.zeros((n, n)), np.zeros((n, n))
    for i in range(0, n, 3):
        kind = rng.integers(3)
        if kind == 0:
            slopes[OWN, i : i + 3] = 1.0
        else:
            slopes[OWN_W, i : i + 3] = 1.0
        if kind == 2:
            B_cone, G_cone = np.eye(2) + 0.3 * rng.normal(size=(2, 2)), 0.3 * np.eye(2)
            slopes[OWN, i + 1 : i + 3] = np.diag(B_cone)
            slopes[OTHER, i + 1 : i + 3] = B_cone[0, 1], B_cone[1, 0]
            slopes[OWN_W, i + 1 : i + 3] = np.diag(G_cone)
            slopes[OTHER_W, i + 1 : i + 3] = G_cone[0, 1], G_cone[1, 0]
            slopes[RADIUS, i + 1 : i + 3] = rng.normal(size=2)
        for r in range(i, i + 3):
            B[r, r], G[r, r] = slopes[OWN, r], slopes[OWN_W, r]
            if r > i:
                other = 2 * i + 3 - r
                B[r, other], G[r, other] = slopes[OTHER, r], slopes[OTHER_W, r]
                B[r, i] = slopes[RADIUS, r]
    return slopes, B, G


@pytest.mark.parametrize("seed", range(5))
def test_linearised_rows_agree_with_a_full_matrix(seed):
    """Softness of 1e-9 takes nine digits from one solution, and residuals give them back."""
    rng = np.random.default_rng(seed)
    bodies = int(rng.integers(30, 50))
    contacts = 3 * bodies
    C, bounds, first = pile(rng, bodies, contacts)
    first = np.delete(first, np.arange(1, 10, 2))  # some bodies are parts two by two
    n, D = 3 * contacts, C @ C.T
    soft = 1e-9 * np.diag(D)
    slopes, B, G = blocks(rng, contacts)
    right, step = rng.normal(size=n), np.zeros(n)
    room = room_for(n, LINES + 3, parts_of(C, first))
    in_turn = seed % 2 == 1
    assert solve_linear(D, soft, bounds, slopes, room, right.copy(), step, 1e-11, in_turn)
    full = B + G @ (D + np.diag(soft))
    left = 1e-11 * np.linalg.norm(right) + 1e-15 * np.linalg.norm(full, 2) * np.linalg.norm(step)
    assert np.linalg.norm(full @ step - right) <= 2.0 * left
    # what such a residual leaves of the solution, by the inverse
    error = 2.0 * left * np.linalg.norm(np.linalg.inv(full), 2)
    assert np.linalg.norm(step - np.linalg.solve(full, right)) <= error


@pytest.mark.parametrize("friction", [0.0, 0.3, 0.8])
def test_piles_are_solved_by_parts(friction):
    """Fifty bodies at 150 points, by the conditions as they are written."""
    rng = np.random.default_rng(7)
    for _ in range(3):
        C, bounds, first = pile(rng, 50, 150, friction)
        v = rng.normal(size=C.shape[1])
        parts = parts_of(C, first)
        x, w, residual = solve(C @ C.T, C @ v, bounds, parts=parts)
        assert parts.state[USED] == 1
        assert residual <= 1e3 * ENOUGH  # with which nothing is looked for further
        assert violation(C @ C.T, C @ v, bounds, x) < 1e-9
        assert np.abs(w - C @ (C.T @ x + v)).max() < 1e-12 * (1.0 + np.abs(x).max())


def test_without_friction_velocities_are_those_of_least_squares():
    """min |Cᵀ x + v| for x >= 0, by another program (scipy's): that velocity is unique."""
    rng = np.random.default_rng(3)
    C, _, first = pile(rng, 60, 900)
    C, v = C[::3].copy(), rng.normal(size=C.shape[1])
    bounds = np.zeros(len(C), ROW_BOUNDS)
    bounds[:] = (0.0, np.inf, -1, 1, 1, 0.0)
    parts = parts_of(C, first)
    x, _, residual = solve(C @ C.T, C @ v, bounds, parts=parts)
    other = nnls(C.T, -v)[0]
    assert parts.state[USED] == 1 and residual <= ENOUGH
    assert np.abs(C.T @ (x - other)).max() < 1e-9


def test_rows_on_three_parts_are_left_to_a_full_matrix():
    rng = np.random.default_rng(0)
    C, bounds, first = pile(rng, 50, 150)
    C[0, [0, 6, 12]] = 1.0
    parts = parts_of(C, first)
    *_, residual = solve(C @ C.T, C @ rng.normal(size=C.shape[1]), bounds, parts=parts)
    assert parts.state[USED] == 0
    assert residual <= ENOUGH
