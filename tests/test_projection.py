"""Rows made orthogonal by a pivoted Gram-Schmidt that tells their rank, beside numpy's SVD."""

import numpy as np
import pytest

from bulletbridge.compilation.block_sizes import in_blocks
from bulletbridge.compilation.jit import kernel
from bulletbridge.numerics.clusters import orthogonalise
from bulletbridge.numerics.projection import ROW, Caps, Cuts, Row, split_rows
from bulletbridge.numerics.records import Array, Records


@kernel
def split_blocks(Y: Array, R: Array, rows: Records[Row], cap: int, rtol: float) -> int:
    """Orthonormalise rows that are whole blocks, in place; the rank."""
    return orthogonalise(Y, R, rows, Caps(cap, cap), Cuts(rtol, rtol, 0.0))[1]


@pytest.mark.parametrize("seed", range(60))
def test_rank_factors_and_what_is_left_are_those_of_the_svd(seed):
    """Rows of any rank, some twice, some zero in places, lengths that differ by 1e3, any M.

    A row is made orthogonal once more where it has lost a digit, so Q is orthogonal within ten
    times what sums of at most sixteen products round, and some.
    """
    rng = np.random.default_rng(seed)
    nc, nv = (int(n) for n in rng.integers(1, 16, 2))
    rank = int(rng.integers(1, min(nc, nv) + 1))
    J = rng.standard_normal((nc, rank)) @ rng.standard_normal((rank, nv))
    J *= 10.0 ** rng.uniform(-1.5, 1.5, (nc, 1)) * (rng.random(nv) < 0.8)
    if nc > 2:
        J[nc - 1] = J[0]
    root = np.tril(rng.standard_normal((nv, nv))) + 3.0 * np.eye(nv)
    L, Y, R, rows = root.T @ root, J.copy(), np.zeros((nc, nc)), np.zeros(nc, ROW)
    found = split_rows(L, Y, R, rows, min(nc, nv), min(nc, nv), 1e-10)
    whitened = J @ np.linalg.inv(root)
    scale = np.abs(whitened).max(initial=1e-300)
    assert found == np.linalg.matrix_rank(whitened, 1e-9 * scale)
    Q, again = Y[:found], R[:, :found] @ Y[:found]
    again[:found] = np.tril(R[:found, :found]) @ Q
    again[found:] += Y[found:]
    np.testing.assert_allclose(again, whitened[rows["pivot"]], atol=1e-13 * scale)
    np.testing.assert_allclose(Q @ Q.T, np.eye(found), atol=1e-12)
    left = np.linalg.norm(Y[found:], axis=1)
    np.testing.assert_allclose(np.sqrt(np.maximum(rows["left"][found:], 0.0)), left, atol=1e-14)
    assert left.max(initial=0.0) < 1e-10 * scale * np.sqrt(nv)


@pytest.mark.parametrize("seed", range(40))
def test_rows_of_whole_blocks_are_split_alike(seed):
    """Rows of up to five blocks, some following from others: rank, factors and what is left."""
    rng = np.random.default_rng(seed)
    nc, nv = int(rng.integers(1, 26)), int(rng.integers(1, 40))
    rank = int(rng.integers(1, min(nc, nv) + 1))
    J = rng.standard_normal((nc, rank)) @ rng.standard_normal((rank, nv))
    J *= 10.0 ** rng.uniform(-1.5, 1.5, (nc, 1))
    if nc > 2:
        J[nc - 1] = J[0]
    Y, R, rows = np.zeros((nc, in_blocks(nv))), np.zeros((nc, nc)), np.zeros(nc, ROW)
    Y[:, :nv] = J
    found = split_blocks(Y, R, rows, min(nc, nv), 1e-10)
    scale = np.abs(J).max()
    assert found == np.linalg.matrix_rank(J, 1e-9 * scale)
    Q, again = Y[:found], R[:, :found] @ Y[:found]
    again[:found] = np.tril(R[:found, :found]) @ Q
    again[found:] += Y[found:]
    # sums of at most forty products round by forty half units, and a row loses a digit at most
    np.testing.assert_allclose(again[:, :nv], J[rows["pivot"]], atol=1e-13 * scale)
    np.testing.assert_allclose(Q @ Q.T, np.eye(found), atol=1e-12)
    left = np.linalg.norm(Y[found:], axis=1)
    assert left.max(initial=0.0) < 1e-10 * scale * np.sqrt(nv)
    assert not Y[:, nv:].any()
