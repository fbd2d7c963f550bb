"""Structures of numba as values in kernels: what kernels compute is what Python computes."""

import numpy as np
import pytest
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from bulletbridge.compilation import mode
from bulletbridge.compilation.jit import helper, kernel

pytestmark = pytest.mark.skipif(not mode.LINKED, reason="plain numba is left as it is")


def views_and_ranges(table, counts):
    """Views of views, of lines and columns, and ranges of all kinds, nested and left early."""
    total = 0.0
    for i in range(len(table)):
        line = table[i]
        rest = line[1:] if i % 2 else line[:3]
        for j in range(len(rest) - 1, -1, -2):
            total += rest[j] * (i + 1)
        for j in range(counts[i]):
            if rest[j] < 0.0:
                break
            line[j] += rest[j] ** 2
        for k, x in enumerate(line):
            total += k * x
    for x, n in zip(table[0], counts):  # noqa: B905  numba has no strict
        total += n * x
    block = table[1:3, 1:4]
    for i in range(block.shape[0]):
        for j in range(1, block.shape[1], 2):
            block[i, j] -= block[i - i, j - 1]
    first, (_, count) = block[0, 0], (total, counts[0])
    return total + first * block.shape[1] + count


def test_kernels_compute_what_python_does():
    rng = np.random.default_rng(4)
    table = rng.integers(-4, 9, (5, 6)).astype(float)  # sums and products of these are exact
    counts = np.array([2, 0, 1, 2, 1])
    ours, theirs = table.copy(), table.copy()
    assert kernel(views_and_ranges)(ours, counts) == views_and_ranges(theirs, counts)
    assert np.array_equal(ours, theirs) and not np.array_equal(ours, table)


def made_in_branches(ways):
    """An intrinsic: a pair of 1 and 2, whose fields are set in one branch or in none."""

    @intrinsic
    def pair(_context, on):
        def generate(context, builder, _signature, arguments):
            number = ir.IntType(64)
            found = cgutils.create_struct_proxy(types.Pair(types.int64, types.int64))(
                context, builder
            )
            found.first, found.second = number(1), number(2)
            before = builder.add(found.first, found.second)  # 3, whatever comes
            with builder.if_then(arguments[0]):
                ways(builder, found, number)
            return builder.add(builder.mul(before, number(100)), found.second)

        return types.int64(on), generate

    return pair


def put(_builder, found, number):
    found.second = number(5)


def put_all(builder, found, number):
    found._setvalue(builder.insert_value(found._getvalue(), number(5), 1))


def write(builder, found, number):
    builder.store(number(5), found._get_ptr_by_name("second"))


@pytest.mark.parametrize("ways", [put, put_all, write])
def test_what_is_set_in_a_branch_is_not_in_the_other(ways):
    pair = made_in_branches(ways)

    @helper
    def found(on):
        return pair(on)

    @kernel
    def both(x):
        return found(x > 0.0) * 1000 + found(x < 0.0)

    assert both(1.0) == 305_302 and both(-1.0) == 302_305 and both(0.0) == 302_302
