"""How a function is written out, and takes tuples, changes nothing of what it computes."""

from typing import Any, NamedTuple

import numpy as np
import pytest

from bulletbridge.compilation import mode
from bulletbridge.compilation.jit import kernel, outlined

pytestmark = pytest.mark.skipif(not mode.LINKED, reason="plain numba is left as it is")


MANY = 30
"""Matrices of nine words each, more than are arguments of their own."""


class Tables(NamedTuple):
    """Two matrices of (3, 3), others that are too many to be arguments, and a number."""

    a: Any
    b: Any
    n: int
    rest: Any


class Deep(NamedTuple):
    """Two tuples in one."""

    first: Tables
    second: Tables


@outlined
def mixed(tables: Tables, k: int) -> int:
    """A number of both matrices that tells them, and places in them, apart."""
    return tables.a[tables.n, k] - 1000 * tables.b[k, tables.n]


@outlined
def written(deep: Deep, times: int) -> int:
    """Adds numbers of tuples handed on whole, in part, chosen and made anew, and writes."""
    total, chosen = 0, deep.first
    for k in range(times):
        anew = Tables(chosen.b, deep.second.a, k % 3, chosen.rest)
        if k % 2:
            chosen = deep.second
            total += 3 * mixed(chosen, k % 3)
        elif k > 5:
            chosen = anew
        total = 7 * total % 100_003 + mixed(anew, 1) - mixed(deep.first, k % 3)
        deep.first.a[k % 3, 0] += k
    if times > 3:
        last = total + 1
        while last > 10:
            last //= 3
        total += last
    return total + chosen.n


@kernel
def by_address(a: Any, b: Any, c: Any, rest: Any, times: int) -> int:
    """The numbers of ``written`` for three matrices."""
    return written(Deep(Tables(a, b, 1, rest), Tables(b, c, 2, rest)), times)


def matrices() -> list[np.ndarray]:
    return [np.random.default_rng(n).integers(0, 1000, (3, 3)) for n in range(3)]


@pytest.mark.parametrize("times", [0, 1, 2, 4, 9, 50])
def test_tuples_by_their_address_are_the_same(times, monkeypatch):
    given, expected = matrices(), matrices()
    found = by_address(*given, MANY * (given[0],), times)
    (a, b, c), rest = expected, MANY * (expected[0],)
    monkeypatch.setitem(globals(), "mixed", mixed.py_func)
    assert found == written.py_func(Deep(Tables(a, b, 1, rest), Tables(b, c, 2, rest)), times)
    assert np.array_equal(given, expected)


def test_a_tuple_is_one_argument_out_of_line_and_no_code_is_copied():
    a, b, c = matrices()
    by_address(a, b, c, MANY * (a,), 1)
    (callee,) = (one.library for one in mixed.overloads.values())
    (caller,) = (one.library for one in written.overloads.values())
    functions = callee._final_module.functions
    (found,) = [f for f in functions if not f.is_declaration and "mixed" in f.name]
    assert len(list(found.arguments)) == 4  # the result, an error, the tuple, k
    assert set(caller.apart) == {callee}
    assert [f.is_declaration for f in caller._final_module.functions if f.name == found.name] == [
        True
    ]
