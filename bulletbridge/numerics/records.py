"""Records: one class declares the fields of a structured array, its types and its numpy dtype."""

from typing import Annotated, Any, Protocol, TypeVar, get_args, get_type_hints, overload

import numpy as np
from numpy.typing import NDArray

from bulletbridge.errors import ModelError

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
    return real and bool(np.all(np.abs(found) <= LARGEST))


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
        raise ModelError(f"{what} is not an array of real numbers, but of {found.dtype}; give one")
    return found.astype(np.float64)


def dtype_of(declaration: type) -> np.dtype[np.void]:
    """Numpy dtype of the record that a class declares by annotated fields, in their order."""
    fields: list[tuple[str, Any, tuple[int, ...]]] = []
    for name, hint in get_type_hints(declaration, include_extras=True).items():
        _, kind, shape = get_args(hint)
        fields.append((name, kind, shape))
    return np.dtype((np.record, fields))
