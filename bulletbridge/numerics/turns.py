"""The rotation nearest to a matrix, and its rate as the matrix changes."""

import math

from bulletbridge.compilation.jit import helper, kernel
from bulletbridge.numerics.projection import inner
from bulletbridge.numerics.records import Array
from bulletbridge.numerics.spatial import copy_into

EPS = 2.0**-52
SWEEPS = 30
"""Of Jacobi's method, which needs five to eight."""


@helper
def turn_rows(W: Array, p: int, r: int, c: float, s: float) -> None:
    """Turn rows p and r in their plane."""
    for j in range(W.shape[1]):
        x, y = W[p, j], W[r, j]
        W[p, j], W[r, j] = c * x - s * y, s * x + c * y


@helper
def singular_rows(W: Array, G: Array) -> None:
    """W (n, n) <- G W with orthogonal rows, in place, G orthogonal: Jacobi's method on one side."""
    n = len(W)
    for i in range(n):
        for j in range(n):
            G[i, j] = 1.0 if i == j else 0.0
    for _ in range(SWEEPS):
        turned = False
        for p in range(n - 1):
            for r in range(p + 1, n):
                a, b, along = inner(W, p, W[p]), inner(W, r, W[r]), inner(W, p, W[r])
                if abs(along) > EPS * math.sqrt(a * b) and along != 0.0:
                    turned = True
                    ratio = (b - a) / (2.0 * along)
                    t = math.copysign(1.0, ratio) / (abs(ratio) + math.hypot(1.0, ratio))
                    c = 1.0 / math.hypot(1.0, t)
                    turn_rows(W, p, r, c, c * t)
                    turn_rows(G, p, r, c, c * t)
        if not turned:
            return


@helper
def put_product_of_columns(G: Array, W: Array, out: Array) -> None:
    """out (n, n) <- Gᵀ W."""
    for i in range(len(out)):
        for j in range(len(out)):
            out[i, j] = 0.0
            for k in range(len(out)):
                out[i, j] += G[k, i] * W[k, j]


@helper
def put_turn(C: Array, rate: Array, A: Array, A_rate: Array, room: Array) -> float:
    """The rotation A (n, n) nearest to C = A H, and its rate when C changes at ``rate``.

    A's rate is A Omega, with H Omega + Omega H = Aᵀ Ċ - Ċᵀ A, solved in the axes of H. ``room``
    (3, n, n) is overwritten. A is of no use where C is singular.

    Returns:
        Least singular value of C.
    """
    W, G, left = room[0], room[1], room[2]
    n, least = len(C), math.inf
    for i in range(n):
        copy_into(W[i], C[i])
    singular_rows(W, G)
    for i in range(n):
        size = math.sqrt(inner(W, i, W[i]))
        least = min(least, size)
        if not size > 0.0:
            return 0.0
        A[i, 0] = size
        for j in range(n):
            W[i, j] /= size
    for i in range(n):  # rows of G and W are what A takes into each other
        for k in range(n):
            A_rate[0, k] = 0.0
            for j in range(n):
                A_rate[0, k] += G[i, j] * rate[j, k]
        for j in range(n):
            left[i, j] = inner(W, j, A_rate[0])
    for i in range(n):
        for j in range(i + 1):
            turn = (left[i, j] - left[j, i]) / (A[i, 0] + A[j, 0])
            left[i, j], left[j, i] = turn, -turn
    put_product_of_columns(G, W, A)
    for k in range(n):  # left W
        for j in range(n):
            A_rate[k, j] = 0.0
            for m in range(n):
                A_rate[k, j] += left[k, m] * W[m, j]
    put_product_of_columns(G, A_rate, left)
    for i in range(n):
        copy_into(A_rate[i], left[i])
    return least


@kernel
def nearest_turn(C: Array, rate: Array, A: Array, A_rate: Array, room: Array) -> float:
    """``put_turn``, from Python."""
    return put_turn(C, rate, A, A_rate, room)
