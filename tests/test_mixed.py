"""The mixed complementarity solver: motors, limits and friction cones of random systems."""

import numpy as np
import pytest
from scipy.optimize import lsq_linear
from support.complementarity import PATH, PATH_TO_ITS_END, SOLVER, solve_by

from bulletbridge.numerics.complementarity import (
    LIGHTEST,
    natural_residual,
)
from bulletbridge.numerics.complementarity_rows import (
    NO_PARTS,
    ROW_BOUNDS,
    room_for,
)
from bulletbridge.numerics.solution_selection import LINES_OF_SELECTION, solve_resting_problem

ENOUGH = 1e-12  # residual, velocities being of order one


def solve(D, b, bounds, x=None, tolerance=ENOUGH, parts=NO_PARTS):
    """Impulses, velocities, residual."""
    n = len(b)
    x = np.zeros(n) if x is None else x.copy()
    w, room = np.zeros(n), room_for(n, parts=parts)
    kept = D.copy(), b.copy()
    residual, _ = solve_by(SOLVER, D, b, bounds, x, w, room, (tolerance, 0.0))
    assert np.array_equal(D, kept[0])
    assert np.array_equal(b, kept[1])
    return x, w, residual


def follow(D, b, bounds):
    """Impulses, velocities, residual."""
    n = len(b)
    x, w = np.zeros(n), np.zeros(n)
    return x, w, solve_by(PATH, D, b, bounds, x, w, room_for(n), (ENOUGH, 0.0))[0]


def bounds_of(contacts, mu, boxes=0, limit=0.3):
    """Rows of contacts with round cones, then of motors."""
    bounds = np.zeros(3 * contacts + boxes, ROW_BOUNDS)
    for i in range(0, 3 * contacts, 3):
        bounds[i] = (0, np.inf, -1, 1, 1, 0)
        bounds[i + 1] = (0, 0, i, 1, 2, mu)
        bounds[i + 2] = (0, 0, i, 0, 2, mu)
    bounds[3 * contacts :] = (-limit, limit, -1, 1, 1, 0)
    return bounds


def random_problem(rng, contacts, nv, boxes, mu):
    """Rows C of unit masses that moved with v."""
    C = rng.normal(size=(3 * contacts + boxes, nv))
    return C @ C.T, C @ rng.normal(size=nv), bounds_of(contacts, mu, boxes)


def violation(D, b, bounds, x):
    """Largest violation of the conditions as they are written, and not of the solver's map."""
    w, worst = D @ x + b, 0.0
    for i, bound in enumerate(bounds):
        if bound["owner"] < 0:
            room = bound["lower"] - 1e-14 <= x[i] <= bound["upper"] + 1e-14
            worst = max(worst, 0.0 if room else np.inf)
            if x[i] > bound["lower"] + 1e-12:
                worst = max(worst, w[i])
            if x[i] < bound["upper"] - 1e-12:
                worst = max(worst, -w[i])
        elif bound["first"]:
            part, radius = slice(i, i + bound["count"]), bound["mu"] * x[bound["owner"]]
            force, slip = np.linalg.norm(x[part]), np.linalg.norm(w[part])
            worst = max(worst, force - radius)
            # most work against the slip: radius times its size
            worst = max(worst, (x[part] @ w[part] + radius * slip) / max(radius, 1e-3))
    return worst


def drawn_problem(seed, most_friction):
    """Contacts, motors and size drawn too."""
    rng = np.random.default_rng(seed)
    contacts, nv, boxes = rng.integers(1, 9), rng.integers(6, 23), rng.integers(0, 5)
    return random_problem(rng, contacts, nv, boxes, rng.uniform(0, most_friction))


def test_random_problems_are_solved_to_round_off():
    """From no impulses one in a thousand jams, and which one depends on the processor.

    One in a hundred would be another solver: by chance, once in 1e8.
    """
    unsolved = 0
    for seed in range(1000):
        problem = D, b, _ = drawn_problem(seed, 1.2)
        x, w, residual = solve(*problem)
        assert np.abs(w - D @ x - b).max() < 1e-13 * (1 + np.abs(D).max())
        if residual > ENOUGH:
            unsolved += 1
        else:
            # the natural map, divided by what it is multiplied with: a diagonal of up to 50
            assert violation(*problem, x) < 1e-9
    assert unsolved < 10


@pytest.mark.parametrize("seed", range(40))
def test_more_friction_than_freedoms_turns_back_with_a_motor(seed):
    """Three strong motors in nine freedoms and fifteen joints that rub; one motor goes to and fro.

    Bounds alone are a convex problem, which has a solution whatever is asked for. Where it turns
    back all friction changes sides, from the impulses of the step before.
    """
    rng, freedoms, motors, dt = np.random.default_rng(seed), 9, 3, 1 / 240
    n = motors + 15
    C = rng.normal(size=(n, freedoms)) * 10 ** rng.uniform(0, 2.5, (n, 1))
    C[motors : 2 * motors] = C[:motors]  # the same joints rub
    bounds = bounds_of(0, 0.0, n, 0.3 * dt)
    bounds["lower"][:motors], bounds["upper"][:motors] = -20 * dt, 20 * dt
    D, x, v, asked = C @ C.T, np.zeros(n), np.zeros(freedoms), np.zeros(n)
    for k in range(30):
        asked[0] = 1.3 * np.cos(2 * np.pi * (k + 0.5) / 20)
        b = C @ v - asked
        enough = 1e-12 * np.abs(b).max()
        x, w, residual = solve(D, b, bounds, x, enough)
        assert residual <= 100 * enough
        # what is inside of bounds by a millionth is at rest: stopping it would take less than that
        inside = np.abs(x) < (1.0 - 1e-6) * bounds["upper"]
        assert np.abs(w[inside]).max() <= 101 * enough
        assert np.all(w[~inside] * np.sign(x[~inside]) <= 101 * enough)
        v = v + C.T @ x


PROBLEMS = 4000


def test_hardly_any_problem_jams_and_what_does_says_so():
    """Friction up to 4 feeds normals; without impulses to start from some jam in the first attempt.

    Which ones depends on the processor: of 20,000, 12 jammed in the first attempt and 3 were solved
    from nowhere, by which 4000 have more than 13, or more than 7, once in a million processors.
    Those that are not solved say so: their residual is that of the impulses they come with.
    """
    jams = unsolved = 0
    for seed in range(PROBLEMS):
        D, b, bounds = drawn_problem(seed, 4.0)
        first = solve(D, b, bounds)[2]
        if first <= 1e-3:
            continue
        jams += 1
        n = len(b)
        x, w, room = np.zeros(n), np.zeros(n), room_for(n, LINES_OF_SELECTION)
        left = solve_resting_problem(D, b, bounds, x, w, room, ENOUGH)
        assert np.abs(w - D @ x - b).max() < 1e-13 * (1 + np.abs(D).max()) * (1 + np.abs(x).max())
        if left <= ENOUGH:
            assert violation(D, b, bounds, x) < 1e-9
        else:
            unsolved += 1
            assert left <= first and violation(D, b, bounds, x) > ENOUGH
    assert jams <= 13 and unsolved <= 7


def flat_side(corners=12, friction=0.6):
    """A planar body on a plane, touched at many points: six freedoms, three rows a point."""
    rng = np.random.default_rng(5)
    places = np.column_stack([rng.uniform(-0.1, 0.1, (corners, 2)), np.full(corners, -0.02)])
    rows, bounds = [], np.zeros(3 * corners, ROW_BOUNDS)
    for k, place in enumerate(places):
        for direction in np.eye(3)[[2, 0, 1]]:
            rows.append([*direction, *(np.cross(place, direction) * 20.0)])
        bounds[3 * k] = (0.0, np.inf, -1, 1, 1, 0.0)
        bounds[3 * k + 1] = (0.0, 0.0, 3 * k, 1, 2, friction)
        bounds[3 * k + 2] = (0.0, 0.0, 3 * k, 0, 2, friction)
    return np.array(rows), bounds


def test_the_path_of_smooth_problems_solves_what_has_many_dependent_rows():
    """The rank of D is six of 36 rows.

    Of 400 such problems one was left at more than 3e-10, by which two of ten hardly ever are;
    Newton's method does the rest.
    """
    C, bounds = flat_side()
    rng, near = np.random.default_rng(0), 0
    for _ in range(10):
        v = np.array([*rng.normal(size=2), -1.0, *(0.3 * rng.normal(size=3))])
        D, b = C @ C.T, C @ v
        x, w, residual = follow(D, b, bounds)
        near += residual <= 1e-8
        assert np.abs(w - D @ x - b).max() < 1e-13 * (1 + np.abs(D).max()) * (1 + np.abs(x).max())
        x, _, residual = solve(D, b, bounds, x)
        assert residual <= ENOUGH and violation(D, b, bounds, x) < 1e-9
    assert near >= 8


def test_the_path_comes_near_by_itself_and_leaves_where_it_was_nearest():
    """What the smallest smoothness leaves of the map, in a few steps that Newton's method fails."""
    C, bounds = flat_side()
    D, rng, near = C @ C.T, np.random.default_rng(0), 0
    for _ in range(10):
        b = C @ np.array([*rng.normal(size=2), -1.0, *(0.3 * rng.normal(size=3))])
        x, w = np.zeros(len(b)), np.zeros(len(b))
        room = room_for(len(b))
        residual, _ = solve_by(PATH_TO_ITS_END, D, b, bounds, x, w, room, (ENOUGH, 0.0))
        left = natural_residual(D, b, bounds, x, np.zeros(len(b)))
        assert residual == pytest.approx(left, rel=1e-6, abs=1e-14)
        near += residual <= 1e-8
    assert near >= 8


@pytest.mark.parametrize("seed", range(20))
def test_without_friction_it_is_the_bounded_least_squares_problem(seed):
    """min |Cᵀx + v|² within the bounds, by another program (scipy's BVLS, an active-set method)."""
    rng = np.random.default_rng(seed)
    n, nv = int(rng.integers(3, 12)), 14
    C, v = rng.normal(size=(n, nv)), rng.normal(size=nv)
    bounds = np.zeros(n, ROW_BOUNDS)
    bounds[:] = (0, np.inf, -1, 1, 1, 0)
    bounds[: n // 2] = (-0.05, 0.05, -1, 1, 1, 0)
    other = lsq_linear(C.T, -v, (bounds["lower"], bounds["upper"]), method="bvls", tol=1e-15)
    x, _, _ = solve(C @ C.T, C @ v, bounds)
    assert x == pytest.approx(other.x, abs=1e-10)


def test_friction_opposes_the_slip_with_all_it_has():
    """A block of unit mass pushed down by 2 N s and aside by (3, 4) N s, mu 0.5: it keeps 4 m/s."""
    x, w, _ = solve(np.eye(3), np.array([-2.0, 3.0, 4.0]), bounds_of(1, 0.5))
    assert x == pytest.approx([2.0, -0.6, -0.8], abs=1e-14)
    assert w == pytest.approx([0.0, 2.4, 3.2], abs=1e-14)


def test_an_elliptic_cone_does_most_work():
    """Of all forces of the ellipse the one found takes the most power from the slip."""
    bounds = bounds_of(1, 0.5)
    bounds[2]["mu"] = 0.2
    x, w, residual = solve(np.eye(3), np.array([-2.0, 3.0, 4.0]), bounds)
    assert residual <= ENOUGH
    angle = np.linspace(0, 2 * np.pi, 10001)
    powers = 2.0 * (0.5 * np.cos(angle) * w[1] + 0.2 * np.sin(angle) * w[2])
    assert x[1:] @ w[1:] <= powers.min() + 1e-12


def test_sticks_inside_the_cone():
    x, w, _ = solve(np.eye(3), np.array([-2.0, 0.3, 0.4]), bounds_of(1, 0.5))
    assert x == pytest.approx([2.0, -0.3, -0.4], abs=1e-14)
    assert np.abs(w).max() < 1e-14


@pytest.mark.parametrize("seed", range(10))
def test_redundant_rows_share_one_load(seed):
    """Four contacts where three would do; velocities are unique, impulses are not."""
    rng = np.random.default_rng(seed)
    corners = [(x, y, -0.1) for x in (-0.2, 0.2) for y in (-0.3, 0.3)]
    rows = []
    for corner in corners:
        for axis in np.eye(3)[[2, 0, 1]]:
            rows.append([*np.cross(corner, axis), *axis])
    C = np.array(rows)
    v = np.array([*rng.normal(0, 0.01, 3), 0.01, 0.02, -1.0])
    x, w, residual = solve(C @ C.T, C @ v, bounds_of(4, 0.5))
    assert residual <= ENOUGH
    assert np.abs(w).max() < 1e-11
    assert np.abs(v + C.T @ x).max() < 1e-11
    assert x[::3].min() >= 0.0


def test_rows_that_contradict_each_other_say_so():
    """Two stops that ask for opposite velocities of one coordinate: the residual is half of it."""
    bounds = np.zeros(2, ROW_BOUNDS)
    bounds[:] = (0, np.inf, -1, 1, 1, 0)
    D = np.array([[1.0, -1.0], [-1.0, 1.0]])
    x, _, residual = solve(D, np.array([-1.0, -1.0]), bounds)
    assert residual == pytest.approx(1.0, rel=0.1)
    assert np.isfinite(x).all()


def test_rows_that_nothing_moves_carry_nothing():
    D = np.diag([1.0, 0.0, 1.0])
    x, _, residual = solve(D, np.array([-1.0, 0.0, 0.2]), bounds_of(0, 0.0, 3, 5.0))
    assert residual <= ENOUGH
    assert x == pytest.approx([1.0, 0.0, -0.2], abs=1e-14)


@pytest.mark.parametrize("seed", range(20))
def test_a_solution_is_kept(seed):
    """More rows than freedoms: what differs moves nothing, and the norm decides on the rest."""
    rng = np.random.default_rng(seed)
    D, b, bounds = random_problem(rng, 3, 8, 2, 0.6)
    x, _, _ = solve(D, b, bounds)
    again, _, _ = solve(D, b, bounds, x)
    assert np.abs(D @ (again - x)).max() < 2 * ENOUGH
    # round-off of D x, n eps |D| |x|, is kept from what moves nothing by its weights alone
    rounding = len(b) * np.finfo(float).eps * np.linalg.norm(D, 2)
    assert np.linalg.norm(again - x) < rounding / (LIGHTEST * np.diag(D).min()) * np.linalg.norm(x)


@pytest.mark.parametrize("mu", [2.0, 3.0, 6.0])
def test_friction_that_feeds_its_normal_ends_in_the_sliding_solution(mu):
    """The tip of a chain of rods meets a floor aslant, faster aside than down.

    To stick it would have to pull; sliding forwards, where x_t = mu x_n, the normal alone decides:
    (D_nn + mu D_nt) x_n = -b_n. Row after row the sweeps go back and forth between zero and more.
    """
    D = np.array([[2.098, 2.713, 0.0], [2.713, 4.57, 0.0], [0.0, 0.0, 0.0]])
    b = np.array([-0.186, -0.751, 0.0])
    x, w, residual = solve(D, b, bounds_of(1, mu))
    normal = 0.186 / (2.098 + mu * 2.713)
    assert residual <= ENOUGH
    assert x == pytest.approx([normal, mu * normal, 0.0], abs=1e-12)
    assert w[1] < 0.0


@pytest.mark.parametrize("where", ["D", "b", "x"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("row", [0, 1])
def test_what_is_not_finite_is_not_solved(where, value, row):
    """Comparisons with what is not a number must not pass it by: there is no residual."""
    arrays = {"D": np.eye(3), "b": np.array([-1.0, 0.1, 0.0]), "x": np.zeros(3)}
    arrays[where][(row, row) if where == "D" else row] = value
    D, b, x = arrays.values()
    of_three = bounds_of(1, 0.5), x, np.zeros(3), room_for(3)
    residual, _ = solve_by(SOLVER, D, b, *of_three, (ENOUGH, 0.0))
    assert residual == np.inf


def jammed_problem(seed):
    """Two to four contacts of four rates, which some velocity takes apart faster than they stick.

    That is what Acary, Cadoux, Lemaréchal and Malick 2011 ask for: there is a solution.
    """
    rng = np.random.default_rng(seed)
    contacts, mu = int(rng.integers(2, 5)), rng.uniform(0.3, 1.5)
    C = rng.normal(size=(3 * contacts, 4)) * 10 ** rng.uniform(-1, 1, size=(1, 4))
    apart = rng.normal(size=3 * contacts)
    apart[::3] = mu * np.hypot(apart[1::3], apart[2::3]) + 0.1
    together = C @ (10 * rng.normal(size=4) / np.linalg.norm(C, axis=0))
    return C @ C.T, apart - together, bounds_of(contacts, mu)


def test_what_jams_is_solved_where_a_solution_is_known_to_exist():
    """Of a thousand such problems nine were left at up to 2.8 m/s; hardly any is."""
    left = []
    for seed in range(1000):
        D, b, bounds = jammed_problem(seed)
        x, _, residual = solve(D, b, bounds)
        if residual > 1e-2:
            left.append(seed)
        elif residual < 1e-10:
            assert violation(D, b, bounds, x) < 1e-8
    assert len(left) < 4
