"""Newton's steps for a map of impulses, from its derivatives row by row."""

from bulletbridge.compilation.jit import helper, outlined
from bulletbridge.numerics.complementarity_rows import (
    OTHER,
    OTHER_W,
    OWN,
    OWN_W,
    RADIUS,
    USED,
    ComplementarityProblem,
    other_row,
)
from bulletbridge.numerics.lu import back_real, lu_real
from bulletbridge.numerics.parts import factorise_parts, form_matrix, solve_parts

SOLVED = 1e-4
"""Share of the map that elimination of what rows move may leave: it is solved for again."""
REGULARISATION = 1e-12
"""Of the Newton matrix, relative to the diagonal of D: dependent rows share what they do."""


@helper
def put_derivatives(
    p: ComplementarityProblem,
    i: int,
    by_own_w: float,
    by_other_w: float,
    by_own: float,
    by_other: float,
    by_radius: float,
) -> None:
    """Of the map of row i: by velocities and impulses of it and of its cone's other row."""
    p.slopes[OWN_W, i], p.slopes[OTHER_W, i] = by_own_w, by_other_w
    p.slopes[OWN, i], p.slopes[OTHER, i], p.slopes[RADIUS, i] = by_own, by_other, by_radius


@helper
def put_nothing(p: ComplementarityProblem, i: int) -> None:
    """A row whose impulse is none."""
    p.line[i] = p.x[i]
    put_derivatives(p, i, 0.0, 0.0, 1.0, 0.0, 0.0)


@outlined
def put_newton_step(p: ComplementarityProblem, n: int, again: bool) -> None:
    """Newton's step for the map in line into step; ``again``: by factors of the one before."""
    for i in range(n):
        p.line[i] = -p.line[i]
    if not again:
        factorise_map(p, n)
    if p.parts.state[USED] == 1:
        for i in range(n):
            p.best[i] = p.line[i]
        if solve_parts(p, n, p.line, p.step, SOLVED) or again:
            return
        for i in range(n):
            p.line[i] = p.best[i]
        form_matrix(p, n)
        put_dense_rows(p, n)
        lu_real(p.A, p.pivots[:n])
    back_real(p.A, p.pivots[:n], p.line)
    for i in range(n):
        p.step[i] = p.line[i]


@helper
def factorise_map(p: ComplementarityProblem, n: int) -> None:
    """Factor the derivatives of the map, of parts or of rows."""
    if p.parts.state[USED] == 1:
        factorise_parts(p, n)
    else:
        put_dense_rows(p, n)
        lu_real(p.A, p.pivots[:n])


@outlined
def put_dense_rows(p: ComplementarityProblem, n: int) -> None:
    """Derivatives of the map by impulses into A."""
    for i in range(n):
        j, owner = other_row(p, i), p.bounds[i].owner
        for k in range(n):
            p.A[i, k] = p.slopes[OWN_W, i] * p.D[i, k]
        if j != i:
            for k in range(n):
                p.A[i, k] += p.slopes[OTHER_W, i] * p.D[j, k]
            p.A[i, j] += p.slopes[OTHER, i]
        p.A[i, i] += p.slopes[OWN, i]
        if owner >= 0:
            p.A[i, owner] += p.slopes[RADIUS, i]
