"""Small triangular systems, against LU."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from bulletbridge.numerics.triangles import solve_triangle


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("shape", [(7,), (7, 1), (7, 4), (7, 0)])
def test_triangles_are_solved(rng, shape, lower, transposed):
    """Whatever stands in the other triangle; in C and in Fortran order, which BLAS tells apart."""
    whole = rng.uniform(-1, 1, (7, 7)) + 7.0 * np.eye(7)
    y, T = rng.uniform(-1, 1, shape), np.tril(whole) if lower else np.triu(whole)
    x = np.linalg.solve(T.T if transposed else T, y)
    for stored in (whole, np.asfortranarray(whole)):
        found = solve_triangle(stored, y, lower=lower, transposed=transposed)
        assert_allclose(found, x, rtol=0, atol=1e-15)  # condition below 3, sizes below 0.2
