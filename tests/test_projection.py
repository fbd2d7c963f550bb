"""Rows made orthogonal by a pivoted Gram-Schmidt that tells their rank, beside numpy's SVD."""

import numpy as np
import pytest

from bulletbridge.numerics.projection import ROW, split_rows


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
