"""Functions that users have compiled with numba, called from kernels by an address."""

import functools
import math
import re
from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np

from bulletbridge.errors import ModelError

MOST_SAID = 300
"""Characters of what numba says."""


class MovingFrame(NamedTuple):
    """Where a frame on a link is and how it moves, along axes of the world.

    Attributes:
        position: (3,) of its origin [m].
        R: (3, 3) its axes, as columns.
        velocity: (3,) of its origin [m/s].
        angular_velocity: (3,) [rad/s].
    """

    position: np.ndarray
    R: np.ndarray
    velocity: np.ndarray
    angular_velocity: np.ndarray


class Takes(IntEnum):
    """What such a function is called with, by how many arguments that is."""

    TIME = 1
    STATE = 3
    FRAME = 4

    @property
    def arguments(self) -> str:
        """The same in words."""
        return f"({', '.join(('t', 'q', 'v', 'frame')[:self])})"


def is_jitted(function: object) -> bool:
    """Whether a function is one that numba compiles; without numba there is none."""
    return type(function).__module__.startswith("numba.") and hasattr(function, "py_func")


class UserFunction(NamedTuple):
    """A function that users give, and what becomes of it.

    Attributes:
        what: What it is for, in errors.
        function: What gives its numbers.
        takes: What that is called with.
        size: How many numbers it gives; 0 for one that is not in a list.
        apart: How far apart they are to be written.
    """

    what: str
    function: Any
    takes: Takes
    size: int
    apart: int

    @property
    def numbers(self) -> str:
        """What it gives, in words."""
        return f"{self.size} numbers" if self.size else "a number"


@functools.lru_cache(maxsize=128)
def one_call(functions: tuple["UserFunction", ...], nq: int, nv: int) -> Any:
    """C function void(double**) that calls all of some functions and writes what they give.

    It takes pointers to t, to q (nq,), to v (nv,), then two for each function: to where its numbers
    go, and to the four arrays of a ``MovingFrame``, one after another. Kept by the functions, so
    that copies of a system share it.

    Args:
        functions: What is called.
        nq: Number of positions.
        nv: Number of rates.

    Returns:
        A C function of numba, with ``address``.

    Raises:
        ModelError: One cannot be compiled for what it is given, or gives something else.
    """
    import numba
    from numba.core.errors import NumbaError

    rest: Any = numba.njit(_nothing)
    for n, function in reversed(list(enumerate(functions))):
        rest = numba.njit(_calling(function, 3 + 2 * n, nq, nv, rest))
    try:
        return _compiled(rest)
    except NumbaError as error:
        told, *others = functions
        for function in functions if others else ():
            one_call((function,), nq, nv)  # the one that is to blame
        said = " ".join(re.sub(r"\x1b\[[0-9;]*m", "", str(error)).split())[:MOST_SAID]
        raise ModelError(
            f"the {told.what} does not compile as a function of {told.takes.arguments} that gives"
            f" {told.numbers}: {said}; correct it, or leave numba.njit out"
        ) from None


def address_of(functions: Sequence["UserFunction"], nq: int, nv: int) -> int:
    """Address of ``one_call``."""
    return int(one_call(tuple(functions), nq, nv).address)


def _compiled(function: Any) -> Any:
    import numba
    from numba import types

    pointers = types.CPointer(types.CPointer(types.float64))
    return numba.cfunc(types.void(pointers))(function.py_func)


def _nothing(_pointers: Any) -> None:
    """The end of a chain of calls."""


def _calling(given: UserFunction, place: int, nq: int, nv: int, rest: Any) -> Callable[[Any], None]:
    """Call of one function, then of the rest; NaN where it gives another number of numbers."""
    import numba
    from numba.np.numpy_support import carray

    function, count, apart, jit = given.function, given.size, given.apart, numba.njit

    if given.takes == Takes.TIME:

        @jit
        def ask(p: Any) -> Any:
            return function(p[0][0])
    elif given.takes == Takes.STATE:

        @jit
        def ask(p: Any) -> Any:
            return function(p[0][0], carray(p[1], (nq,)), carray(p[2], (nv,)))
    else:

        @jit
        def ask(p: Any) -> Any:
            x = carray(p[place + 1], (18,))
            frame = MovingFrame(x[:3], x[3:12].reshape(3, 3), x[12:15], x[15:])
            return function(p[0][0], carray(p[1], (nq,)), carray(p[2], (nv,)), frame)

    if count == 0:

        def call(p: Any) -> None:
            p[place][0] = ask(p)
            rest(p)
    else:

        def call(p: Any) -> None:
            found = ask(p)
            for k in range(count):
                p[place][k * apart] = found[k] if len(found) == count else math.nan
            rest(p)

    return call
