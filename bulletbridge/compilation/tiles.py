"""Products and triangular solves of small full matrices, four lines by eight columns at a time.

A tile of the result stays in registers while all that it is made of goes by; where compilers are
left to make vectors of the loops, each pass over a line reads and writes it. Two to three times as
fast from three lines to twenty. Matrices may lie in memory in any order of lines; numbers of a line
follow each other in those that are written or go by, which are gone through by columns.
"""

# where kernels run as plain Python, plain functions stand for what is generated
# pyright: reportRedeclaration=false

from collections.abc import Callable
from typing import Any, cast

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from bulletbridge.compilation.block_sizes import LANES, LINES
from bulletbridge.compilation.blocks import FLAGS, INDEX, NUMBER, REAL, UNKNOWN
from bulletbridge.compilation.by_numba import helper, is_plain_python

whole: Any = types.int64
real: Any = types.float64
BYTE = ir.IntType(8)
WIDTHS = tuple(LANES >> k for k in range(LANES.bit_length()))
"""Columns of a tile: as many as there are, and then what is left of them."""


class Matrix:
    """A matrix, as code that is generated reads it: some numbers of a line at once."""

    def __init__(self, context: Any, builder: Any, kind: Any, given: Any) -> None:
        array = context.make_array(kind)(context, builder, given)
        self._data = builder.bitcast(array.data, BYTE.as_pointer())
        self._builder = builder
        self._strides = cast(Any, cgutils).unpack_tuple(builder, array.strides)

    def _place(self, i: Any, j: Any, kind: Any) -> Any:
        b = self._builder
        ways = [b.mul(n, stride) for n, stride in zip((i, j), self._strides, strict=True)]
        place = b.gep(self._data, [b.add(*ways)], inbounds=True)
        return b.bitcast(place, kind.as_pointer())

    def number(self, i: Any, j: Any) -> Any:
        """One of them."""
        return self._builder.load(self._place(i, j, REAL))

    def part(self, i: Any, j: Any, kind: Any) -> Any:
        """Numbers of line i from column j on, as many as a vector of this kind has."""
        return self._builder.load(self._place(i, j, kind), align=8)

    def put(self, i: Any, j: Any, part: Any) -> None:
        """Write them."""
        self._builder.store(part, self._place(i, j, part.type), align=8)


def spread(builder: Any, number: Any, kind: Any) -> Any:
    """A vector of one number."""
    unknown = ir.Constant(kind, UNKNOWN)
    first = builder.insert_element(unknown, number, INDEX(0))
    none = ir.Constant(ir.VectorType(INDEX, kind.count), [0] * kind.count)
    return builder.shuffle_vector(first, unknown, none)


def by_columns(builder: Any, columns: Any, work: Callable[[Any, Any], None]) -> None:
    """Do some work from one column on after the other, with the kind of vector that fits."""
    begin = cast(Any, cgutils).alloca_once_value(builder, NUMBER(0))
    for width in WIDTHS:
        kind, j = ir.VectorType(REAL, width), builder.load(begin)
        left = builder.sdiv(builder.sub(columns, j), NUMBER(width))
        with cgutils.for_range(builder, left) as loop:
            work(builder.add(j, builder.mul(loop.index, NUMBER(width))), kind)
        builder.store(builder.add(j, builder.mul(left, NUMBER(width))), begin)


def _tile(triangle: int, unit: bool) -> Callable[..., Any]:
    """Generates a tile of some lines of C: C + size A B, before a triangle of A if one is given.

    The last arguments are the first line of C and of A, how many lines there are, the first column
    and the end of those of A that B is of, what of them comes before the first line of B, and the
    columns. ``triangle`` solves for the lines among themselves, downwards (1) or upwards (-1), by
    the columns of A of the same numbers; 0 does not. Its diagonal may be units that are not there.
    """

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        C, A, B = (
            Matrix(context, builder, kind, array)
            for kind, array in zip(signature.args[:3], given[:3], strict=False)
        )
        line, count, first, last, before, columns = cast(Any, cgutils).unpack_tuple(
            builder, given[4]
        )

        def add(x: Any, share: Any, y: Any) -> Any:
            part = builder.fmul(spread(builder, share, y.type), y, flags=FLAGS)
            return builder.fadd(x, part, flags=FLAGS)

        def of_lines(lines: int) -> None:
            rows = [builder.add(line, NUMBER(r)) for r in range(lines)]
            order = rows[:: triangle or 1]
            solved = [] if not triangle else [
                ([builder.fneg(A.number(i, k)) for k in order[:n]],
                 None if unit else builder.fdiv(REAL(1.0), A.number(i, i), flags=FLAGS))
                for n, i in enumerate(order)
            ]  # fmt: skip

            def work(j: Any, kind: Any) -> None:
                zeros = ir.Constant(kind, [0.0] * kind.count)
                held = [cast(Any, cgutils).alloca_once_value(builder, zeros) for _ in rows]
                with cgutils.for_range(builder, builder.sub(last, first)) as loop:
                    k = builder.add(first, loop.index)
                    part = B.part(builder.sub(k, before), j, kind)
                    for i, sum_of in zip(rows, held, strict=True):
                        total = add(builder.load(sum_of), A.number(i, k), part)
                        builder.store(total, sum_of)
                parts = [
                    add(C.part(i, j, kind), given[3], builder.load(sum_of))
                    for i, sum_of in zip(order, held[:: triangle or 1], strict=True)
                ]
                for n, (shares, inverse) in enumerate(solved):
                    for share, part in zip(shares, parts[:n], strict=True):
                        parts[n] = add(parts[n], share, part)
                    if inverse is not None:
                        own = spread(builder, inverse, kind)
                        parts[n] = builder.fmul(own, parts[n], flags=FLAGS)
                for i, part in zip(order, parts, strict=True):
                    C.put(i, j, part)

            by_columns(builder, columns, work)

        for lines in range(1, LINES + 1):
            with builder.if_then(builder.icmp_signed("==", count, NUMBER(lines))):
                of_lines(lines)
        return context.get_dummy_value()

    return generate


def _signature(C: Any, A: Any, B: Any) -> Any:
    """Types that all of these take: three matrices, ``size``, and the six of ``places``."""
    return types.void(C, A, B, real, types.UniTuple(whole, 6))


@intrinsic
def _add_tile(_context: Any, C: Any, A: Any, B: Any, size: Any, places: Any) -> Any:
    """Code of ``add_tile``."""
    return _signature(C, A, B), _tile(0, False)


@intrinsic
def _solve_down(_context: Any, C: Any, A: Any, B: Any, size: Any, places: Any) -> Any:
    """Code of ``solve_down_tile``, whose B is C and whose ``size`` is -1."""
    return _signature(C, A, B), _tile(1, False)


@intrinsic
def _solve_down_by_units(_context: Any, C: Any, A: Any, B: Any, size: Any, places: Any) -> Any:
    """Code of ``solve_down_by_units_tile``, likewise."""
    return _signature(C, A, B), _tile(1, True)


@intrinsic
def _solve_up(_context: Any, C: Any, A: Any, B: Any, size: Any, places: Any) -> Any:
    """Code of ``solve_up_tile``, likewise."""
    return _signature(C, A, B), _tile(-1, False)


if is_plain_python():

    def _add_tile(C: Any, A: Any, B: Any, size: float, places: Any) -> None:
        i, count, first, last, before, m = places
        lines = slice(i, i + count)
        C[lines, :m] += size * (A[lines, first:last] @ B[first - before : last - before, :m])

    def _solve_down(X: Any, A: Any, B: Any, size: float, places: Any) -> None:
        _add_tile(X, A, B, size, places)
        for i in range(places[0], places[0] + places[1]):
            X[i] = (X[i] - A[i, places[0] : i] @ X[places[0] : i]) / A[i, i]

    def _solve_down_by_units(X: Any, A: Any, B: Any, size: float, places: Any) -> None:
        _add_tile(X, A, B, size, places)
        for i in range(places[0], places[0] + places[1]):
            X[i] -= A[i, places[0] : i] @ X[places[0] : i]

    def _solve_up(X: Any, A: Any, B: Any, size: float, places: Any) -> None:
        _add_tile(X, A, B, size, places)
        end = places[0] + places[1]
        for i in range(end - 1, places[0] - 1, -1):
            X[i] = (X[i] - A[i, i + 1 : end] @ X[i + 1 : end]) / A[i, i]


@helper
def add_tile(C: Any, A: Any, B: Any, size: float, places: Any) -> None:
    """C += size A B, of some lines of C.

    Args:
        C: (n, m)
        A: (n, .)
        B: (., m or more)
        size: A number.
        places: First line, count of lines, first column and end of those of A that are meant,
            what of these comes before the first line of B, columns of C.
    """
    _add_tile(C, A, B, size, places)  # pyright: ignore[reportCallIssue]


@helper
def solve_down_tile(X: Any, A: Any, places: Any) -> None:
    """Some lines of X (n, m) with A X = X, A triangular, from the lines before."""
    _solve_down(X, A, X, -1.0, places)  # pyright: ignore[reportCallIssue]


@helper
def solve_down_by_units_tile(X: Any, A: Any, places: Any) -> None:
    """The same where the diagonal of A is units, and other numbers stand there."""
    _solve_down_by_units(X, A, X, -1.0, places)  # pyright: ignore[reportCallIssue]


@helper
def solve_up_tile(X: Any, A: Any, places: Any) -> None:
    """Some lines of X (n, m) with A X = X, A triangular, from the lines after."""
    _solve_up(X, A, X, -1.0, places)  # pyright: ignore[reportCallIssue]
