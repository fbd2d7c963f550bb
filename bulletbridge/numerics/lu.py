"""Factors P A = L U of small full matrices, real or complex, in place, by partial pivoting.

Complex numbers are pairs of real arrays. Source: Golub and Van Loan, Matrix Computations, 3.4.
"""

from bulletbridge.compilation.block_sizes import LINES
from bulletbridge.compilation.jit import helper, outlined, solve_down_by_units_tile
from bulletbridge.numerics.many_sides import solve_up
from bulletbridge.numerics.records import Array, Ints

PANEL = 4
"""Columns that are eliminated together: what is right of them is then gone through a fourth as
often."""


@outlined
def lu_real(A: Array, turns: Array | Ints) -> None:
    """Factor the first n rows and columns of A; turns (n,) receives whom rows changed with."""
    n = len(turns)
    for first in range(0, n, PANEL):
        last = min(first + PANEL, n)
        for k in range(first, last):
            best, most = k, abs(A[k, k])
            for i in range(k + 1, n):
                if abs(A[i, k]) > most:
                    best, most = i, abs(A[i, k])
            turns[k] = best
            if best != k:
                for j in range(n):
                    A[k, j], A[best, j] = A[best, j], A[k, j]
            for i in range(k + 1, n):
                x = A[i, k] / A[k, k]
                A[i, k] = x
                if x != 0.0:
                    for j in range(k + 1, last):
                        A[i, j] -= x * A[k, j]
        for k in range(first, last):
            for i in range(k + 1, last):
                x = A[i, k]
                if x != 0.0:
                    for j in range(last, n):
                        A[i, j] -= x * A[k, j]
        for i in range(last, n):
            a, b, c, d = A[i, first], A[i, first + 1], A[i, first + 2], A[i, first + 3]
            if a != 0.0 or b != 0.0 or c != 0.0 or d != 0.0:
                for j in range(last, n):
                    A[i, j] -= (
                        a * A[first, j]
                        + b * A[first + 1, j]
                        + c * A[first + 2, j]
                        + d * A[first + 3, j]
                    )


@outlined
def back_real(A: Array, turns: Array, b: Array) -> None:
    """Solve with the factors for b (n,), in place."""
    n = len(turns)
    for k in range(n):
        i = int(turns[k])
        b[k], b[i] = b[i], b[k]
    for i in range(n):
        total = b[i]
        for j in range(i):
            total -= A[i, j] * b[j]
        b[i] = total
    for i in range(n - 1, -1, -1):
        total = b[i]
        for j in range(i + 1, n):
            total -= A[i, j] * b[j]
        b[i] = total / A[i, i]


@helper
def back_transposed(A: Array, turns: Array, b: Array) -> None:
    """Solve with the factors, transposed, for b (n or more,), in place."""
    n = len(turns)
    for i in range(n):
        for j in range(i):
            b[i] -= A[j, i] * b[j]
        b[i] /= A[i, i]
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            b[i] -= A[j, i] * b[j]
    for k in range(n - 1, -1, -1):
        i = int(turns[k])
        b[k], b[i] = b[i], b[k]


@helper
def back_lines(A: Array, turns: Array | Ints, B: Array) -> None:
    """Solve with the factors for the columns of B (n or more, m) side by side, in place."""
    n, m = len(turns), B.shape[1]
    for k in range(n):
        i = int(turns[k])
        if i != k:
            for c in range(m):
                B[k, c], B[i, c] = B[i, c], B[k, c]
    for i in range(0, n, LINES):
        solve_down_by_units_tile(B, A, (i, min(LINES, n - i), 0, i, 0, m))
    solve_up(A[:n, :n], B[:n])


@helper
def divide(a: float, b: float, c: float, d: float) -> tuple[float, float]:
    """(a + i b) / (c + i d)."""
    size = c * c + d * d
    return (a * c + b * d) / size, (b * c - a * d) / size


@helper
def lu_complex(A: Array, B: Array, turns: Array) -> None:
    """Factor A + i B (n, n); turns (n,) receives the row that each row was exchanged with."""
    n = A.shape[0]
    for k in range(n):
        best, most = k, abs(A[k, k]) + abs(B[k, k])
        for i in range(k + 1, n):
            if abs(A[i, k]) + abs(B[i, k]) > most:
                best, most = i, abs(A[i, k]) + abs(B[i, k])
        turns[k] = best
        if best != k:
            for j in range(n):
                A[k, j], A[best, j] = A[best, j], A[k, j]
                B[k, j], B[best, j] = B[best, j], B[k, j]
        for i in range(k + 1, n):
            x, y = divide(A[i, k], B[i, k], A[k, k], B[k, k])
            A[i, k], B[i, k] = x, y
            if x != 0.0 or y != 0.0:
                for j in range(k + 1, n):
                    p, s = A[k, j], B[k, j]
                    A[i, j] -= x * p - y * s
                    B[i, j] -= x * s + y * p


@helper
def back_complex(A: Array, B: Array, turns: Array, b: Array, c: Array) -> None:
    """Solve with the factors for b + i c (n,), in place."""
    n = A.shape[0]
    for k in range(n):
        i = int(turns[k])
        b[k], b[i] = b[i], b[k]
        c[k], c[i] = c[i], c[k]
    for i in range(n):
        for j in range(i):
            p, s = b[j], c[j]
            b[i] -= A[i, j] * p - B[i, j] * s
            c[i] -= A[i, j] * s + B[i, j] * p
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            p, s = b[j], c[j]
            b[i] -= A[i, j] * p - B[i, j] * s
            c[i] -= A[i, j] * s + B[i, j] * p
        b[i], c[i] = divide(b[i], c[i], A[i, i], B[i, i])
