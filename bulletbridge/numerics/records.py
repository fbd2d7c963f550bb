"""Records: one class declares the fields of a structured array, its types and its numpy dtype."""

import struct
from collections.abc import Sequence
from typing import Annotated, Any, Protocol, TypeVar, get_args, get_type_hints, overload

import numpy as np
from numpy.typing import NDArray

from bulletbridge.errors import ModelError, given_as

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
LARGEST = 1e100
"""Largest number of a description: products of three lengths and masses are numbers still."""
Vector = tuple[float, float, float]
Matrix = tuple[Vector, Vector, Vector]

Int = Annotated[int, "i8", ()]
Short = Annotated[int, "i4", ()]
Real = Annotated[float, "f8", ()]
Vec3 = Annotated[Array, "f8", (3,)]
Mat3 = Annotated[Array, "f8", (3, 3)]

T_co = TypeVar("T_co", covariant=True)


class Records(Protocol[T_co]):
    """What kernels see of a structured array: a sequence of records."""

    @overload
    def __getitem__(self, index: int, /) -> T_co: ...

    @overload
    def __getitem__(self, index: slice, /) -> "Records[T_co]": ...

    def __setitem__(self, index: int, record: Any, /) -> None:
        """Copy all of a record there."""
        ...

    def __len__(self) -> int:
        """How many."""
        ...


def are_numbers(given: object, shape: tuple[int, ...] = ()) -> bool:
    """Whether something is so many real numbers, none of them NaN or above ``LARGEST``."""
    try:
        found = np.asarray(given)
    except ValueError:  # lists of different lengths
        return False
    real = found.shape == shape and found.dtype.kind in "iuf"
    return real and bool(np.all(np.abs(found, dtype=float) <= LARGEST))


def array_of(what: str, given: object) -> Array:
    """A new array of real numbers.

    Raises:
        ModelError: It is none; the message calls it ``what``.
    """
    try:
        found = np.array(given)
    except ValueError:
        raise ModelError(
            f"{what} has parts of different lengths; give an array of numbers"
        ) from None
    if found.dtype.kind not in "iufb":
        raise ModelError(f"{what} is not an array of real numbers, but {given_as(given)}")
    return found.astype(np.float64)


def dtype_of(declaration: type) -> np.dtype[np.void]:
    """Numpy dtype of the record that a class declares by annotated fields, in their order."""
    fields: list[tuple[str, Any, tuple[int, ...]]] = []
    for name, hint in get_type_hints(declaration, include_extras=True).items():
        _, kind, shape = get_args(hint)
        fields.append((name, kind, shape))
    return np.dtype((np.record, fields))


class Packing:
    """Makes records of plain numbers, faster than numpy does of tuples.

    Args:
        kind: Their dtype, of integers and floats of eight bytes.
        given: Of the fields, how many are given; those after them are zero.
    """

    def __init__(self, kind: np.dtype[np.void], given: int) -> None:
        self._kind, form = kind, "="
        for name in (kind.names or ())[:given]:
            field = kind[name]
            form += {"i": "q", "f": "d"}[field.base.kind] * (field.itemsize // 8)
        self._numbers = len(form) - 1
        self._form = form[1:] + f"{kind.itemsize - struct.calcsize(form)}x"

    def __call__(self, numbers: Sequence[float]) -> np.ndarray:
        """Records (n,) of the numbers of all given fields, one record after the other.

        Raises:
            struct.error: They are no whole number of records, or not of the fields' types.
        """
        count = len(numbers) // self._numbers
        content = bytearray(count * self._kind.itemsize)
        struct.pack_into("=" + self._form * count, content, 0, *numbers)
        return np.frombuffer(content, self._kind)


def copied(records: np.ndarray) -> np.ndarray:
    """A copy of an array of records, as it lies in memory: numpy's own goes field by field."""
    return np.ndarray(records.shape, records.dtype, bytearray(records.tobytes()))
