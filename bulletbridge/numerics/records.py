"""Records: one class declares the fields of a structured array, its types and its numpy dtype."""

from typing import Annotated, Any, Protocol, TypeVar, get_args, get_type_hints, overload

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
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


def dtype_of(declaration: type) -> np.dtype[np.void]:
    """Numpy dtype of the record that a class declares by annotated fields, in their order."""
    fields: list[tuple[str, Any, tuple[int, ...]]] = []
    for name, hint in get_type_hints(declaration, include_extras=True).items():
        _, kind, shape = get_args(hint)
        fields.append((name, kind, shape))
    return np.dtype((np.record, fields))
