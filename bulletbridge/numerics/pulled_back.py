"""Gradients taken back through maps one after another, each of which is known as a matrix."""

from bulletbridge.compilation.jit import kernel
from bulletbridge.numerics.records import Array


@kernel
def pull_back_changes(
    changes: Array, prices: Array, p: Array, after: Array, by_controls: Array
) -> int:
    """p <- p A + price from the end to the start of n maps x <- A x + B u; how many they are.

    Args:
        changes: (n, m, m + k) A and B of each.
        prices: (n, m + k) gradients of what is paid where each starts, by x and u.
        p: (m,) gradient at the end; becomes that at the start.
        after: (n, m) receives gradients at the end of each,
        by_controls: (n, k) and by u.
    """
    m = len(p)
    for n in range(len(changes) - 1, -1, -1):
        for i in range(m):
            after[n, i] = p[i]
        for j in range(m):
            p[j] = 0.0
        for j in range(by_controls.shape[1]):
            by_controls[n, j] = 0.0
        for i in range(m):
            x = after[n, i]
            for j in range(m):
                p[j] += x * changes[n, i, j]
            for j in range(by_controls.shape[1]):
                by_controls[n, j] += x * changes[n, i, m + j]
        for j in range(m):
            p[j] += prices[n, j]
        for j in range(by_controls.shape[1]):
            by_controls[n, j] += prices[n, m + j]
    return len(changes)
