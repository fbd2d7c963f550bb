"""A trial of what is private to numba, on the smallest functions that need it.

It is run by a process of its own, see ``compilation.mode``: what is wrong here can be an address.
"""

import ctypes
import re
import sys
from typing import Any, cast

import numba
import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from bulletbridge.compilation.deferred import DEFERRED
from bulletbridge.compilation.jit import (
    Callback,
    call_back,
    call_stored,
    deferred,
    helper,
    is_compiled,
    kernel,
    outlined,
    take_number,
)
from bulletbridge.compilation.stored_calls import StoredCall
from bulletbridge.compilation.words import WORD, kinds_of, words_of

RECORD = np.dtype([("k", "i4"), ("p", "f8", (3,)), ("R", "f8", (2, 2))])
LARGE = 2**62 + 3
"""An integer of which no word is empty, and which is no floating-point number."""
SAID = "as it should"
MOST = 200
"""Characters of what is said."""


class DiffersError(Exception):
    """Something that is not what kernels are built on; the text says what."""


def require(holds: bool, what: str) -> None:
    """Refuse numba if something does not hold."""
    if not holds:
        raise DiffersError(what)


@intrinsic
def _words(_context: Any, value: Any, into: Any) -> Any:
    """Write the words that numba hands on for a value into an array; how many there are."""

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        packer = context.get_arg_packer([value])
        given = packer.as_arguments(builder, [arguments[0]])
        data = context.make_array(into)(context, builder, arguments[1]).data
        word = context.get_value_type(types.intp)
        for k, x in enumerate(given):
            if isinstance(x.type, ir.PointerType):
                x = builder.ptrtoint(x, word)
            builder.store(x, builder.gep(data, [context.get_constant(types.intp, k)]))
        return context.get_constant(types.int64, len(given))

    return types.int64(value, into), generate


@numba.njit
def words(value: Any, into: Any) -> int:
    """The same as a function."""
    return _words(value, into)  # pyright: ignore[reportCallIssue]


@helper
def near(x: float) -> float:
    """A helper, inlined."""
    return x + 1.0


@outlined
def far(x: float) -> float:
    """A helper that stays where it is."""
    return 3.0 * x


@kernel
def both(x: float) -> float:
    """What calls them."""
    return near(x) - far(x)


@kernel
def gather(record: Any, line: Any, table: Any, n: int, given: Any, m: int) -> int:
    """Something of every kind of argument; an error if m is negative."""
    if m < 0:
        raise ValueError(SAID)
    line[0] = record[n].p[1] + record[n].R[1, 0] + record[n].k + table[n, 1] * given[1, n, m]
    return LARGE + len(line) + 10 * len(record) + 100 * table.shape[1] + 1000 * given.shape[2]


@kernel
def by_block(block: Any, given: Any, m: int) -> int:
    """A kernel that calls another by its block."""
    return call_stored(block, (given, m)) + 1


@kernel
def wrapped(pair: Any, m: int) -> int:
    """A kernel of a tuple."""
    return len(pair[0]) + pair[1] + m


@deferred
def rarely(pair: Any, m: int) -> tuple[float, int]:
    """What a kernel may call; an error if m is negative."""
    if m < 0:
        raise ValueError(SAID)
    return len(pair[0]) + m, pair[1]


@kernel
def perhaps(pair: Any, m: int) -> float:
    """What calls it unless m is zero."""
    if m == 0:
        return 0.0
    x, n = rarely(pair, m)
    return x + n


@kernel
def sum_slices(x: Any, a: int, b: int) -> float:
    """Numbers of slices, weighted by where they stand."""
    total = 0.0
    for part in (x[a:b], x[a:], x[:b]):
        for k in range(len(part)):
            total += (k + 1) * part[k]
        total *= 3.0
    return total


@kernel
def tell(counter: Any, address: int) -> int:
    """Take a number and call Python back with it."""
    n = take_number(counter)
    call_back(address, n)
    return n


def samples() -> tuple[np.ndarray, ...]:
    """Arrays of all kinds, every size and stride another."""
    whole = np.arange(5.0 * 7 * 9).reshape(5, 7, 9)
    record = np.zeros(6, RECORD)
    strided = whole[::2, 1::3, ::4]
    return whole[0, 0], whole[1], whole, strided, whole[1, ::2], record, record[:, None], record[:0]


def try_words() -> None:
    """An array is as many words as are stored, in the same order; all kinds in one tuple."""
    values = *samples(), np.arange(4), 12345678901, (np.zeros((2, 3)), 5, (np.ones(4),))
    into = np.zeros(1000, WORD)
    count, start = words(values, into), 0
    given = into[:count].tolist()
    for owner in re.finditer("pp", kinds_of((values,))):  # of which kernels know nothing
        given[slice(*owner.span())] = [0, 0]
    for value in values:
        ours = words_of((value,))
        found = given[start : start + len(ours)]
        require(found == ours, f"words of {numba.typeof(value)} are {found}, not {ours}")
        start += len(ours)
    require(count == start, f"tuples are {count} words, not {start}")


def try_linking() -> None:
    """Helpers are linked in, inlined or not as they say, and cannot be called by themselves."""
    require(both(2.0) == -3.0, "linked functions compute something else")
    (code,) = cast(Any, both).overloads.values()
    names = [f.name for f in code.library.get_defined_functions()]
    require(not any("4near" in name for name in names), "helpers are not inlined")
    require(any("3far" in name for name in names), "what is to stay out of line is inlined")
    try:
        near(1.0)
    except TypeError as error:
        require("kernels only" in str(error), f"a call of a helper says {error}")
    else:
        require(False, "helpers have native code of their own")


def try_slices() -> None:
    """Slices are those of arrays in Python, but for bounds that count from the end."""
    x = np.arange(1.0, 8.0)
    for a, b in ((0, 7), (2, 5), (5, 2), (3, 3), (2, 40), (7, 9)):
        python = cast(Any, sum_slices).py_func(x, a, b)
        require(sum_slices(x, a, b) == python, f"slices from {a} to {b} are others")


def try_calls() -> None:
    """Kernels are called by their address, with what is stored, and errors come back."""
    _, table, whole, *_, record, _, _ = samples()
    record["k"], record["p"][2], record["R"][2] = 2, (0.5, 0.25, 0.125), ((1.0, 2.0), (4.0, 8.0))
    x = np.zeros(3)
    expected = 0.25 + 4.0 + 2.0 + table[2, 1] * whole[1, 2, 3]
    answer = LARGE + 3 + 60 + 900 + 9000
    bound = StoredCall(gather, (record, x, table, 2), (whole, 3))
    calls = (
        lambda: gather(record, x, table, 2, whole, 3),
        lambda: bound.call((whole, 3)),
        lambda: bound.with_rest((whole, 3)).call(()),
        lambda: by_block(bound.block, whole, 3) - 1,
    )
    for call in calls:
        x[:] = 0.0
        require(call() == answer and x[0] == expected, "a call by address does something else")
    pair = (x, 4)
    require(StoredCall(wrapped, (pair,), (5,)).call((5,)) == 12, "tuples are handed on otherwise")
    try:
        bound.call((whole, -1))
    except ValueError as error:
        require(SAID in str(error), f"an error comes back as {error}")
    else:
        require(False, "errors are lost in calls by address")


def try_deferring() -> None:
    """What is deferred is compiled when it is called, and its errors come back."""
    pair, target = (np.zeros(3), 4), DEFERRED[__name__, "rarely"]
    require(perhaps(pair, 0) == 0.0 and not is_compiled(target), "what is deferred is not")
    require(perhaps(pair, 2) == 9.0, "what was deferred is called otherwise")
    require(is_compiled(target), "what was deferred is compiled elsewhere")
    try:
        perhaps(pair, -1)
    except ValueError as error:
        require(SAID in str(error), f"an error comes back as {error}")
    else:
        require(False, "errors of what was deferred are lost")


def try_callbacks() -> None:
    """Numbers are taken in turn, and Python is called back."""
    told: list[int] = []
    callback, counter = Callback(told.append), np.zeros(1, np.int64)
    address = ctypes.cast(callback, ctypes.c_void_p).value or 0
    require([tell(counter, address) for _ in range(3)] == [0, 1, 2], "numbers are not in turn")
    require(told == [0, 1, 2], "Python is not called back")


def try_keeping() -> None:
    """What has been compiled is found on disk, and called by its address as well."""
    again: Any = kernel(cast(Any, wrapped).py_func)
    pair = (np.zeros(3), 4)
    require(StoredCall(again, (pair,), (5,)).call((5,)) == 12, "what was kept does something else")
    hits = sum(again.stats.cache_hits.values())
    require(hits == 1, "what is kept is not found")


def try_keeping_helpers() -> None:
    """Helpers are found on disk, and linked from there."""
    inlined, outside = (
        cast(Any, make(cast(Any, one).py_func)) for make, one in ((helper, near), (outlined, far))
    )

    @kernel
    def again(x: float) -> float:
        return inlined(x) - outside(x)

    require(again(2.0) == -3.0, "helpers that were kept compute something else")
    hits = [sum(one.stats.cache_hits.values()) for one in (inlined, outside)]
    require(hits == [1, 1], "helpers that are kept are not found")


def main() -> None:
    """Try everything, what could do harm last; what differs is said in one line on stderr."""
    try:
        for one in (
            try_linking,
            try_words,
            try_slices,
            try_calls,
            try_deferring,
            try_callbacks,
            try_keeping,
            try_keeping_helpers,
        ):
            one()
    except Exception as error:
        what = "" if isinstance(error, DiffersError) else f"{type(error).__name__}: "
        sys.exit(what + " ".join(str(error).split())[:MOST])
