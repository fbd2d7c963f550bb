"""Indices and slices of kernels: they count from the start of an array, and slices have no step.

numba looks at each index for one that counts from the end, and at each slice for bounds that do,
bounds outside the array, and steps, backwards too. Here an index is taken as it is, and a slice
begins inside its array or at its end; it may be meant to end beyond it, or before it begins.

``NUMBA_BOUNDSCHECK=1`` makes other indices, and slices that count from the end, an IndexError (with
a ``BULLETBRIDGE_CACHE_DIR`` of its own: kernels that are kept are not checked).
"""

from typing import Any

from numba.core import cgutils, types
from numba.cpython import slicing
from numba.np import arrayobj

known: Any = types
code: Any = cgutils


def index_from_start(context: Any, builder: Any, kind: Any, index: Any, _size: Any) -> Any:
    """An index as it is."""
    return context.cast(builder, index, kind, known.intp if kind.signed else known.uintp)


def require_forward(context: Any, builder: Any, kind: Any, span: Any) -> None:
    """Refuse slices with a step; where bounds are checked, those that count from the end.

    Raises:
        NotImplementedError: There is a step.
    """
    if kind.has_step:
        raise NotImplementedError("slices in kernels have no step")
    if context.enable_boundscheck:
        for bound in span.start, span.stop:
            beyond = builder.icmp_signed("<", bound, bound.type(0))
            code.do_boundscheck(context, builder, builder.zext(beyond, bound.type), bound.type(1))


def end_within(builder: Any, span: Any, size: Any) -> None:
    """A slice ends with its array, if not before."""
    span.stop = builder.select(builder.icmp_signed("<", span.stop, size), span.stop, size)


def length_of(builder: Any, span: Any) -> Any:
    """How long a slice is; one that ends before it begins is empty."""
    length = builder.sub(span.stop, span.start)
    none = length.type(0)
    return builder.select(builder.icmp_signed("<", length, none), none, length)


CHANGES: list[tuple[Any, str, Any]] = [
    (arrayobj, "fix_integer_index", index_from_start),
    (slicing, "guard_invalid_slice", require_forward),
    (slicing, "fix_slice", end_within),
    (slicing, "get_slice_length", length_of),
]
"""What stands in place of what: owner, name, and the function."""
