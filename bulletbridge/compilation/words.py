"""Words that compiled code takes for arguments: those of arrays, integers, and tuples of them."""

from typing import Any, cast

import numpy as np

WORD = np.dtype(np.intp)


def words_of(arguments: tuple[Any, ...]) -> list[int]:
    """Integers, and arrays as numba hands them on: no owner, sizes, place, shape and strides.

    Of a tuple its members, one after the other.

    Raises:
        TypeError: Something else, of which numba has no such words.
    """
    found: list[int] = []
    for x in arguments:
        if isinstance(x, tuple):
            found += words_of(cast(tuple[Any, ...], x))
        elif isinstance(x, np.ndarray):
            x = cast(np.ndarray, x)
            found += [0, 0, x.size, x.itemsize, x.ctypes.data, *x.shape, *x.strides]
        elif isinstance(x, (int, np.integer)) and not isinstance(x, bool):
            found.append(int(cast(int, x)))
        else:
            raise TypeError(f"{x!r} cannot be stored: neither an array nor an integer")
    return found


def kinds_of(arguments: tuple[Any, ...]) -> str:
    """What each of ``words_of`` is, in their order: "p" for a pointer, "i" for an integer."""
    found = ""
    for x in arguments:
        if isinstance(x, tuple):
            found += kinds_of(cast(tuple[Any, ...], x))
        else:
            found += "ppiip" + 2 * "i" * x.ndim if isinstance(x, np.ndarray) else "i"
    return found


def arrays_in(arguments: tuple[Any, ...]) -> list[np.ndarray]:
    """The arrays among arguments, and in tuples of them."""
    found: list[np.ndarray] = []
    for x in arguments:
        if isinstance(x, tuple):
            found += arrays_in(cast(tuple[Any, ...], x))
        elif isinstance(x, np.ndarray):
            found.append(cast(np.ndarray, x))
    return found
