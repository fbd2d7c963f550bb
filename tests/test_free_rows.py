"""Rows of joints that rub, where loops leave few freedoms: by a basis of these."""

import numpy as np
import pytest

import bulletbridge as bb
from bulletbridge.compilation.jit import kernel
from bulletbridge.inequalities.arrays import ROWS
from bulletbridge.inequalities.impulses import MANY
from bulletbridge.numerics.free_rows import put_admissible_basis
from bulletbridge.numerics.records import Array


@kernel
def fill_basis(Q: Array, N: Array, left: Array) -> None:
    """``put_admissible_basis`` of all rows of Q."""
    put_admissible_basis(Q, len(Q), N, left)


@pytest.mark.parametrize(("rank", "n"), [(0, 3), (1, 2), (5, 12), (6, 7)])
def test_what_rows_leave_has_an_orthonormal_basis(rank, n):
    """A vector that loses more than a digit is made orthogonal twice.

    The others lose ten times what a sum of at most twelve products rounds, 12 * 1e-16.
    """
    Q = np.linalg.qr(np.random.default_rng(7).normal(size=(n, n)))[0][:rank].copy()
    N = np.zeros((n - rank, n))
    fill_basis(Q, N, np.zeros(n))
    both = np.vstack([Q, N])
    np.testing.assert_allclose(both @ both.T, np.eye(n), rtol=0, atol=2e-14)


@pytest.mark.parametrize("model", ["four_bar", "slider_crank"])
@pytest.mark.parametrize("every", [True, False])
def test_compliances_are_those_of_what_loops_leave(model, every):
    """Of every joint, driven and rubbing, or of one that rubs, by M on a basis of numpy's.

    The former goes by a basis of ours, the latter by projection.

    Rounding shows by the condition of M and of the loops, 1e3 here.
    """
    with bb.load(model) as loaded:
        system = loaded.system
        joints = [name for name, one in system.mechanism.joints.items() if one.is_single]
        for name in joints if every else joints[:1]:
            system.motors.set_friction(name, 0.01)
            if every:
                system.motors.set(name, velocity=0.1, force=0.02)
        terms = system.terms()
        system.step()
        latest = system._inequalities.latest
        n = int(latest.report[ROWS])
        D, rows = latest.D[0, :n, :n], latest.rows
    _, sizes, V = np.linalg.svd(terms.J)
    free = V[int(np.sum(sizes > 1e-9 * sizes[0])) :]
    assert (n >= MANY * len(free)) == every
    expected = rows @ free.T @ np.linalg.solve(free @ terms.M @ free.T, free @ rows.T)
    np.testing.assert_allclose(D, expected, rtol=0, atol=1e-12 * np.abs(expected).max())
