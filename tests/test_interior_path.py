"""Paths inside of all bounds, judged by Coulomb's conditions as they are written."""

import numpy as np
import pytest
from support.complementarity import INSIDE, solve_by
from test_mixed import bounds_of, random_problem
from test_parts import pile

from bulletbridge.numerics.complementarity_rows import (
    LINES,
    NO_PARTS,
    USED,
    parts_of,
    room_for,
)

NEAR = 1e-5


def led_to(D, b, bounds, x, parts=NO_PARTS):
    """Impulses, energy, share."""
    x, energy = x.copy(), float((np.abs(b) / np.sqrt(np.diag(D))).max())
    room = room_for(len(b), LINES, parts)
    share, _ = solve_by(INSIDE, D, b, bounds, x, np.zeros(len(b)), room, (NEAR, energy))
    return x, energy, share


def check(D, b, bounds, x, energy, share):
    """Every product is one of those whose mean is t; velocities are met as t vanishes.

    z·v + r |v| <= z·v + r g, which is one. Steps by the path's own linearisations leave of
    w = D x + b less than they leave of t, which has become 1e-10 of what it was; a hundred times
    that is allowed.
    """
    w, left = D @ x + b, 1e-8 * energy * np.sqrt(np.diag(D).max())
    pairs = np.sum(bounds["owner"] < 0) * 2 + np.sum(bounds["first"])
    most = pairs * (share * energy) ** 2 + left * np.abs(x).max()
    for i, bound in enumerate(bounds):
        if bound["owner"] < 0:
            assert bound["lower"] < x[i] < bound["upper"]
            if w[i] > 0.0:
                assert bound["lower"] == -np.inf or w[i] * (x[i] - bound["lower"]) < most
            elif bound["upper"] < np.inf:
                assert -w[i] * (bound["upper"] - x[i]) < most
            else:
                assert w[i] > -left
        elif bound["first"]:
            part = slice(i, i + bound["count"])
            radius = bound["mu"] * x[bound["owner"]]
            assert np.linalg.norm(x[part]) < radius
            assert x[part] @ w[part] + radius * np.linalg.norm(w[part]) < most


@pytest.mark.parametrize("friction", [0.2, 0.7])
def test_impulses_come_near_a_solution_inside_of_all_bounds(friction):
    """Contacts and motors, more rows than freedoms in half of them.

    No bound is known for problems that are not convex; 38 of forty are asked for.
    """
    rng, near = np.random.default_rng(3), 0
    for _ in range(40):
        D, b, bounds = random_problem(rng, int(rng.integers(1, 9)), 14, 3, friction)
        x, energy, share = led_to(D, b, bounds, np.zeros(len(b)))
        if share <= NEAR:
            near += 1
            check(D, b, bounds, x, energy, share)
    assert near > 37


def test_piles_by_parts_and_from_anywhere_the_same():
    """Where it begins is no part of the result: equal bits."""
    rng = np.random.default_rng(4)
    C, bounds, first = pile(rng, 50, 150)
    D, b = C @ C.T, C @ rng.normal(size=C.shape[1])
    parts = parts_of(C, first)
    x, energy, share = led_to(D, b, bounds, np.zeros(len(b)), parts)
    assert parts.state[USED] == 1 and share <= NEAR
    check(D, b, bounds, x, energy, share)
    again = led_to(D, b, bounds, rng.normal(size=len(b)), parts_of(C, first))
    assert np.array_equal(again[0], x)


def test_rows_without_room_keep_what_they_have():
    """A bounded row whose bounds meet, a contact without friction, and one that nothing moves."""
    rng = np.random.default_rng(5)
    C = rng.normal(size=(10, 8))
    bounds = bounds_of(3, 0.5, 1)
    bounds[9]["lower"] = bounds[9]["upper"] = 0.25
    bounds["mu"][4:6] = 0.0
    C[6:9] = 0.0
    D, b = C @ C.T, C @ rng.normal(size=8)
    x = np.zeros(10)
    moved = np.diag(D) > 0.0
    energy = float((np.abs(b[moved]) / np.sqrt(np.diag(D)[moved])).max())
    share, _ = solve_by(INSIDE, D, b, bounds, x, np.zeros(10), room_for(10), (NEAR, energy))
    assert share <= NEAR and x[9] == 0.25 and not x[4:9].any() and x[3] > 0.0
