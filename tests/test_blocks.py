"""Linear algebra of short lines, block by block, against numpy."""

import numpy as np
import pytest

from bulletbridge.compilation.block_sizes import LANES, MOST_TURNED, in_blocks
from bulletbridge.compilation.jit import (
    add_lines,
    add_sixes,
    along_sixes,
    cosines_and_sines,
    eliminate_six,
    exchange_blocks,
    inner_blocks,
    inner_lines,
    kernel,
    multiply_blocks,
    scale_after,
    solve_six,
    subtract_blocks,
    take_away_lines,
    take_columns,
    take_lines_down,
    take_lines_from,
    take_rows,
)
from bulletbridge.numerics.complementarity import factorise_bordered, solve_bordered
from bulletbridge.numerics.lu import back_lines, lu_real
from bulletbridge.numerics.many_sides import add_product, solve_down, solve_up
from bulletbridge.numerics.records import Array, Ints

EPS = 2.0**-52


@kernel
def substitute(y: Array, lines: Array, begin: int, count: int, blocks: int, down: bool) -> None:
    """Take lines from y, upwards from line ``begin`` on or downwards."""
    if down:
        take_lines_down(y, lines, 0, count, blocks)
    else:
        take_lines_from(begin, y, lines, 0, count, blocks)


@kernel
def work_on_lines(Y: Array, S: Array, i: int, first: int, end: int, products: Array) -> None:
    """Products of line i with eight from ``first`` on, up to the last; then less some lines.

    At last it changes places with the first one.
    """
    x = inner_lines(Y, first, len(Y) - 1, i)
    products[0], products[1], products[2], products[3] = x[0], x[1], x[2], x[3]
    products[4], products[5], products[6], products[7] = x[4], x[5], x[6], x[7]
    take_away_lines(Y, S, i, first, end)
    exchange_blocks(Y, 0, i * Y.shape[1], Y.shape[1] // LANES)


@kernel
def combine(y: Array, x: Array, at: int, blocks: int) -> float:
    """A scalar product of x and y, before y is three times x after ``at``, and x is left less y."""
    found = inner_blocks(x, 0, y, 0, blocks)
    scale_after(y, 0, 3.0, x, 0, at, blocks)
    subtract_blocks(x, 0, 0.5, y, 0, blocks)
    return found


@kernel
def sum_up(y: Array, shares: Array, lines: Array, factors: Array, blocks: int) -> None:
    """Multiples of lines, from their second block on, added to y, then times factors."""
    add_lines(y, LANES, shares, 1, lines, LANES, len(lines), blocks)
    multiply_blocks(y, LANES, factors, 0, blocks)


@kernel
def eliminate(W: Array, factors: Array, n: int) -> None:
    """Six variables of a front: inverses, six lines, and n columns after them."""
    eliminate_six(W, factors, 0, 2 * LANES, 14 * LANES, n)


@kernel
def add_to_corner(A: Array, B: Array, C: Array, D: Array) -> None:
    """C less twice A B without its first column of A, in C's corner; Aᵀ times that added to D."""
    add_product(-2.0, A, 1, B, C[1:])
    add_product(1.0, A.T, 0, C[1:], D)


@kernel
def solve(A: Array, turns: Array, of_L: Array, of_U: Array, X: Array) -> None:
    """Solve with the lower triangle of A, with the transpose of it, and with A itself."""
    solve_down(A, of_L)
    solve_up(A.T, of_U)
    lu_real(A, turns)
    back_lines(A, turns, X)


@kernel
def turn(x: Array, c: Array, s: Array) -> int:
    """Cosines and sines of eight angles, and whether any is out of reach."""
    found = cosines_and_sines((x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]))
    c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7] = found[0]
    s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7] = found[1]
    return found[2]


def padded(lines: Array, blocks: int) -> Array:
    """The same lines in whole blocks, flat."""
    room = np.zeros((len(lines), LANES * blocks))
    room[:, : lines.shape[1]] = lines
    return room.reshape(-1)


@pytest.mark.parametrize("n", [1, 7, 8, 9, 15, 16, 17, 24, 25, 40])
@pytest.mark.parametrize("down", [False, True])
def test_substitutions_solve_triangles(n: int, down: bool) -> None:
    """Of unit triangles of any number of blocks, as numpy solves them."""
    rng = np.random.default_rng(n)
    strict = np.triu(rng.uniform(-1.0, 1.0, (n, n)) / n, 1)
    if down:
        strict = strict.T
    blocks = -(-n // LANES)
    y = np.zeros(LANES * blocks)
    begin = 0 if down else n // 3
    y[begin:n] = rng.normal(size=n - begin)
    # taking y[k] times line k is multiplying by the inverse of the transpose of 1 + lines
    expected = np.linalg.solve(np.eye(n) + strict.T, y[:n])
    substitute(y, padded(strict, blocks), begin, n, blocks, down)
    # off-diagonal entries of a line add up to less than one: errors grow by less than e, n times
    assert np.abs(y[:n] - expected).max() <= 4.0 * n * EPS * np.abs(expected).max()
    assert not y[n:].any()


@pytest.mark.parametrize("blocks", [1, 2, 5])
@pytest.mark.parametrize("at", [-1, 0, 6, 7])
def test_blocks_combine(blocks: int, at: int) -> None:
    """Products, multiples and differences; what is up to a number is zero."""
    rng = np.random.default_rng(blocks)
    x, y = rng.normal(size=(2, LANES * blocks))
    before, product = x.copy(), float(np.abs(x) @ np.abs(y))
    expected = float(x @ y)
    assert abs(combine(y, x, at, blocks) - expected) <= LANES * blocks * EPS * product
    assert np.array_equal(y[: at + 1], np.zeros(at + 1))
    assert np.array_equal(y[at + 1 :], 3.0 * before[at + 1 :])
    assert np.abs(x - (before - 0.5 * y)).max() <= 4.0 * EPS * np.abs(before).max()


@pytest.mark.parametrize("blocks", [1, 2, 3, 4])
@pytest.mark.parametrize(("first", "end"), [(1, 1), (2, 4), (3, 12)])
def test_lines_are_taken_away(blocks: int, first: int, end: int) -> None:
    """Shares of lines from one of them, which is the last; its products with eight lines."""
    rng = np.random.default_rng(blocks)
    Y, S = rng.normal(size=(13, LANES * blocks)), rng.normal(size=(13, 13))
    before, products, i = Y.copy(), np.zeros(LANES), 12
    lines = np.minimum(first + np.arange(LANES), i)
    work_on_lines(Y, S, i, first, end, products)
    # sums of as many products, and of up to nine numbers below 4 squared
    most = LANES * blocks * EPS * (np.abs(before) @ np.abs(before[i]))
    assert (np.abs(products - before[lines] @ before[i]) <= most[lines]).all()
    left = before[i] - S[i, first:end] @ before[first:end]
    assert np.abs(Y[0] - left).max() <= 10 * EPS * 9 * 16.0
    assert np.array_equal(Y[i], before[0])
    assert np.array_equal(Y[1:i], before[1:i])


@pytest.mark.parametrize(("blocks", "count"), [(0, 3), (1, 0), (1, 5), (3, 2)])
def test_lines_are_added_up(blocks: int, count: int) -> None:
    """So many blocks of them and no more, to what is there."""
    rng = np.random.default_rng(count)
    y, factors = rng.normal(size=(2, LANES * (blocks + 2)))
    shares, lines = rng.normal(size=count + 1), rng.normal(size=(count, LANES * (blocks + 2)))
    expected, part = y.copy(), slice(LANES, LANES * (blocks + 1))
    expected[part] = (y[part] + shares[1:] @ lines[:, part]) * factors[: LANES * blocks]
    sum_up(y, shares, lines, factors, blocks)
    # sums of up to six numbers below 4 squared
    assert np.abs(y - expected).max() <= 6 * EPS * 64.0
    assert np.array_equal(y[:LANES], expected[:LANES])
    assert np.array_equal(y[LANES * (blocks + 1) :], expected[LANES * (blocks + 1) :])


@pytest.mark.parametrize("n", [9, 12, 15, 16])
def test_six_variables_are_eliminated(n: int) -> None:
    """What is left is the Schur complement, and lines and columns are those of M = Uᵀ D U."""
    rng = np.random.default_rng(n)
    root = rng.normal(size=(n, n))
    M = root @ root.T + n * np.eye(n)
    W = np.zeros((2 * LANES, 3 * LANES))
    W[:n, :n] = np.triu(M)
    factors = np.full((7 + n) * 2 * LANES + 8, np.nan)
    eliminate(W, factors, n)
    inverses = factors[:6]
    lines = factors[2 * LANES : 14 * LANES].reshape(6, 2 * LANES)
    columns = factors[14 * LANES : (14 + 2 * n) * LANES].reshape(n, 2 * LANES)
    left = M[6:, 6:] - M[6:, :6] @ np.linalg.solve(M[:6, :6], M[:6, 6:])
    size = 100.0 * EPS * np.abs(M).max()  # definite, of condition below 10: no entry grows
    assert np.abs(np.triu(W[6:n, 6:n] - left)).max() <= size
    U = np.eye(6, n) + lines[:, :n]
    assert np.abs((U.T / inverses @ U)[:6] - M[:6]).max() <= size
    assert not np.tril(lines[:, :6]).any()
    assert not lines[:, n:].any()
    assert np.array_equal(columns[:, :6], lines[:, :n].T)
    assert not columns[:, 6:].any()
    assert np.isnan(factors[(14 + 2 * n) * LANES :]).all()


def test_cosines_and_sines_are_the_libraries() -> None:
    """To 2^-53 each from the true ones, so 2^-52 apart; quarter turns to all digits they have."""
    rng = np.random.default_rng(5)
    quarters = np.array([0.5 * np.pi * n for n in range(-40, 40)])
    near = quarters + rng.normal(size=80) * np.exp(rng.uniform(-28, -5, 80))
    far = rng.uniform(-MOST_TURNED, MOST_TURNED, 400)
    c, s = np.zeros((2, LANES))
    angles = np.concatenate([rng.uniform(-7, 7, 400), near, quarters, far])
    for x in angles.reshape(-1, LANES):
        assert turn(x, c, s) == 0
        assert np.abs(c - np.cos(x)).max() <= EPS
        assert np.abs(s - np.sin(x)).max() <= EPS
        # the small one of the two keeps its own digits: two units of its last place
        assert (np.abs(c - np.cos(x)) <= 2.0 * EPS * np.abs(np.cos(x))).all()
        assert (np.abs(s - np.sin(x)) <= 2.0 * EPS * np.abs(np.sin(x))).all()


@pytest.mark.parametrize("wrong", [np.nan, np.inf, 2.0 * MOST_TURNED, -3.0 * MOST_TURNED])
def test_angles_out_of_reach_are_told(wrong: float) -> None:
    """Wherever they stand, and the others are as they are without."""
    x = np.linspace(-2.0, 2.0, LANES)
    c, s, c_there, s_there = np.zeros((4, LANES))
    assert turn(x, c, s) == 0
    for n in range(LANES):
        there = x.copy()
        there[n] = wrong
        assert turn(there, c_there, s_there) != 0
        others = np.arange(LANES) != n
        assert np.array_equal(c_there[others], c[others])
        assert np.array_equal(s_there[others], s[others])


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 11])
@pytest.mark.parametrize("m", [1, 2, 7, 8, 12, 19])
def test_tiles_multiply_matrices(n: int, m: int) -> None:
    """Any number of lines and columns, by either order in memory, and nothing beside them."""
    rng = np.random.default_rng(13 * n + m)
    A, B = rng.uniform(-1.0, 1.0, (n, 7)), rng.uniform(-1.0, 1.0, (6, m))
    A[: n // 2, [1, 2, 6]] = 0.0  # whole lines of a tile have none there
    C, D = rng.uniform(-1.0, 1.0, (n + 1, m + 3)), rng.uniform(-1.0, 1.0, (7, m + 3))
    expected = C.copy()
    expected[1:, :m] -= 2.0 * A[:, 1:] @ B
    added = D + A.T @ expected[1:]
    add_to_corner(A, B, C, D)
    # at most seven products of sizes below 1, twice; then n of sizes below 13
    assert np.abs(C - expected).max() <= 7 * EPS * 13.0
    assert np.array_equal(C[0], expected[0])
    assert np.array_equal(C[:, m:], expected[:, m:])
    assert np.abs(D - added).max() <= (n + 7) * EPS * 13.0 * (n + 1)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 11])
@pytest.mark.parametrize("m", [1, 8, 13])
def test_tiles_solve_triangles(n: int, m: int) -> None:
    """Lower ones, upper ones and the factors of a matrix, for many right sides at once."""
    rng = np.random.default_rng(17 * n + m)
    A = rng.uniform(-1.0, 1.0, (n, n)) + 2.0 * n * np.eye(n)  # its diagonal dominates
    B = rng.uniform(-1.0, 1.0, (n, m))
    lower, upper, full = B.copy(), B.copy(), B.copy()
    solve(A.copy(), np.zeros(n), lower, upper, full)
    # of a matrix of condition below 3 residuals are n roundings of sizes below 3 n times 1 / n
    for matrix, found in ((np.tril(A), lower), (np.tril(A).T, upper), (A, full)):
        assert np.abs(matrix @ found - B).max() <= 9 * n * EPS


@kernel
def work_on_sixes(y: Array, S: Array, lines: Array, runs: Ints, found: Array, what: int) -> None:
    """One piece of work with lines of six."""
    if what == 0:
        add_sixes(y, 3, lines, 2, 1, (0.5, -2.0, 3.0))
    elif what == 1:
        take_columns(y, 3, S, 10, 21)
    elif what == 2:
        take_rows(y, 3, S, runs[0], runs[1], 2)
    elif what == 3:
        solve_six(y, 3, S)
    else:
        found[0], found[1], found[2] = along_sixes(y, 3, -1 if what == 4 else 20, lines, 2)


def test_lines_of_six() -> None:
    """Sums of up to 19 products, each rounded as often: lines of seven hold one that is not meant.

    What is solved for leaves what rounding 6 products of its own size leaves.
    """
    rng = np.random.default_rng(0)
    S, lines, y = rng.normal(size=(30, 30)), rng.normal(size=(6, 2, 7)), rng.normal(size=30)
    runs, six = np.array([[9, 20], [16, 29], [30, 30]]), slice(3, 9)
    shares = np.array([0.5, -2.0, 3.0])
    S[six, six] += 6.0 * np.eye(6)

    def after(what: int) -> tuple[Array, Array]:
        own, found = y.copy(), np.zeros(3)
        work_on_sixes(own, S, lines, runs, found, what)
        assert np.array_equal(np.delete(own, slice(3, 21)), np.delete(y, slice(3, 21)))
        return own, found

    def close(a: Array, b: Array, sizes: Array) -> bool:
        return bool(np.all(np.abs(a - b) <= 20 * EPS * sizes))

    part, of = lines[2:5, :, :6], y[six]
    added = shares @ part[:, 1]
    assert close(after(0)[0][six], of + added, np.abs(of) + np.abs(shares) @ np.abs(part[:, 1]))
    lower = S[10:21, six]
    sizes = np.abs(y[10:21]) + np.abs(lower) @ np.abs(of)
    assert close(after(1)[0][10:21], y[10:21] - lower @ of, sizes)
    columns = np.r_[9:16, 20:29]
    right = S[six, columns]
    sizes = np.abs(of) + np.abs(right) @ np.abs(y[columns])
    assert close(after(2)[0][six], of - right @ y[columns], sizes)
    x = after(3)[0][six]
    L = np.tril(S[six, six], -1) + np.eye(6)
    U = np.triu(S[six, six], 1) + np.diag(1.0 / np.diag(S[six, six]))
    assert close(L @ (U @ x), of, np.abs(L) @ (np.abs(U) @ np.abs(x)))
    one, other = part[:, 0] @ of, part[:, 1] @ y[20:26]
    sizes = np.abs(part[:, 0]) @ np.abs(of) + np.abs(part[:, 1]) @ np.abs(y[20:26])
    assert close(after(4)[1], one, sizes)
    assert close(after(5)[1], one + other, sizes)


@kernel
def solved_bordered(A: Array, b: Array, n: int, turns: Array) -> int:
    """Solve A x = b (m,), whose first n rows are symmetric, in place; whether it can be."""
    done = factorise_bordered(A, n, len(b), turns)
    solve_bordered(A, b, n, len(b), turns)
    return int(done)


@pytest.mark.parametrize(("n", "m"), [(1, 1), (3, 3), (4, 7), (7, 9), (8, 8), (20, 31), (61, 61)])
def test_rows_that_stick_and_others_below_them_are_solved_for(n, m):
    """Whatever stands below the diagonal of the symmetric rows, and beyond the last number.

    A factorisation of m rows without growth leaves m² roundings of products of A and x.
    """
    random = np.random.default_rng(m)
    A, x = random.normal(size=(m, m)), random.normal(size=m)
    A[:n, :n] = A[:n, :n] @ A[:n, :n].T + np.eye(n)
    given = np.full((m, in_blocks(m)), np.nan)
    given[:, :m] = A
    given[:n, :n][np.tril_indices(n, -1)] = 7.0
    found, turns = A @ x, np.zeros(m + 4)
    assert solved_bordered(given, found, n, turns)
    bound = m**2 * np.finfo(float).eps * np.abs(A).max() * np.abs(found).sum()
    np.testing.assert_allclose(A @ found, A @ x, rtol=0, atol=bound)
    given[:, :m] = A
    given[n // 2, n // 2] = -1.0
    assert not solved_bordered(given, found, n, turns)
