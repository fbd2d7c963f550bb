"""Products with lines of six numbers, which are the coordinates of a body, as vectors.

Compilers make no vectors of sums over six numbers: they cannot know that arrays do not overlap.
Here four and two of them are read, multiplied and written at once.
"""

# where kernels run as plain Python, plain functions stand for what is generated
# pyright: reportRedeclaration=false

from typing import Any, NamedTuple, cast

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from bulletbridge.compilation.block_sizes import SIX
from bulletbridge.compilation.blocks import FLAGS, INDEX, NUMBER, REAL
from bulletbridge.compilation.by_numba import helper, is_plain_python
from bulletbridge.compilation.tiles import Matrix, spread

whole: Any = types.int64
real: Any = types.float64
FOUR, TWO = ir.VectorType(REAL, 4), ir.VectorType(REAL, 2)


class Six(NamedTuple):
    """Six numbers, or a sum of such."""

    four: Any
    two: Any


class Line:
    """A line of numbers, as code that is generated reads it: six from some place on."""

    def __init__(self, context: Any, builder: Any, kind: Any, given: Any) -> None:
        array = context.make_array(kind)(context, builder, given)
        self._data, self._builder = array.data, builder
        self._strides = cast(Any, cgutils).unpack_tuple(builder, array.strides)

    def part(self, at: Any, kind: Any) -> Any:
        """Numbers from a place on, as many as a vector of this kind has."""
        return self._builder.load(self._place(at, kind), align=8)

    def six(self, at: Any) -> Six:
        """Six of them."""
        return Six(self.part(at, FOUR), self.part(self._builder.add(at, NUMBER(4)), TWO))

    def put(self, at: Any, six: Six) -> None:
        """Write six."""
        self._builder.store(six.four, self._place(at, FOUR), align=8)
        end = self._builder.add(at, NUMBER(4))
        self._builder.store(six.two, self._place(end, TWO), align=8)

    def put_one(self, at: Any, x: Any) -> None:
        """Write one."""
        self._builder.store(x, self._place(at, REAL))

    def take(self, at: Any, share: Any) -> None:
        """Take from one."""
        self.put_one(at, self._builder.fsub(self.part(at, REAL), share, flags=FLAGS))

    def begin(self, *places: Any) -> Any:
        """Where the last line of an array of several dimensions begins, in numbers."""
        b, total = self._builder, NUMBER(0)
        for place, stride in zip(places, self._strides, strict=False):
            total = b.add(total, b.mul(place, b.sdiv(stride, NUMBER(8))))
        return total

    def _place(self, at: Any, kind: Any) -> Any:
        place = self._builder.gep(self._data, [at], inbounds=True)
        return self._builder.bitcast(place, kind.as_pointer())


def add(builder: Any, total: Six, a: Six, b: Six) -> Six:
    """Sums and products number by number: total + a b."""
    return Six(
        *(
            builder.fadd(c, builder.fmul(x, y, flags=FLAGS), flags=FLAGS)
            for c, x, y in zip(total, a, b, strict=True)
        )
    )


def whole_sum(builder: Any, six: Six) -> Any:
    """The sum of six numbers."""
    low, high = (
        builder.shuffle_vector(six.four, six.four, ir.Constant(ir.VectorType(INDEX, 2), lanes))
        for lanes in ([0, 1], [2, 3])
    )
    both = builder.fadd(builder.fadd(low, high, flags=FLAGS), six.two, flags=FLAGS)
    one, two = (builder.extract_element(both, INDEX(n)) for n in range(2))
    return builder.fadd(one, two, flags=FLAGS)


NOTHING = Six(ir.Constant(FOUR, [0.0] * 4), ir.Constant(TWO, [0.0] * 2))


@intrinsic
def _add_sixes(_context: Any, y: Any, at: Any, lines: Any, i: Any, side: Any, shares: Any) -> Any:
    """Code of ``add_sixes``."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        into = Line(context, builder, signature.args[0], given[0])
        of = Line(context, builder, signature.args[2], given[2])
        total = into.six(given[1])
        for r, share in enumerate(cast(Any, cgutils).unpack_tuple(builder, given[5])):
            line = of.six(of.begin(builder.add(given[3], NUMBER(r)), given[4]))
            parts = Six(spread(builder, share, FOUR), spread(builder, share, TWO))
            total = add(builder, total, parts, line)
        into.put(given[1], total)
        return context.get_dummy_value()

    return types.void(y, whole, lines, whole, whole, types.UniTuple(real, 3)), generate


@intrinsic
def _along_sixes(_context: Any, y: Any, first: Any, second: Any, lines: Any, i: Any) -> Any:
    """Code of ``along_sixes``."""
    three = types.UniTuple(real, 3)

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        of = Line(context, builder, signature.args[0], given[0])
        by = Line(context, builder, signature.args[3], given[3])
        sums: list[list[Any]] = []
        numbers = of.six(given[1])
        for r in range(3):
            line = by.six(by.begin(builder.add(given[4], NUMBER(r)), NUMBER(0)))
            total = add(builder, NOTHING, line, numbers)
            sums.append([cgutils.alloca_once_value(builder, part) for part in total])
        with builder.if_then(builder.icmp_signed(">=", given[2], NUMBER(0))):
            numbers = of.six(given[2])
            for r in range(3):
                line = by.six(by.begin(builder.add(given[4], NUMBER(r)), NUMBER(1)))
                total = add(builder, Six(*map(builder.load, sums[r])), line, numbers)
                for part, held in zip(total, sums[r], strict=True):
                    builder.store(part, held)
        found = [whole_sum(builder, Six(*map(builder.load, held))) for held in sums]
        return context.make_tuple(builder, signature.return_type, found)

    return three(y, whole, whole, lines, whole), generate


@intrinsic
def _solve_six(_context: Any, y: Any, first: Any, S: Any) -> Any:
    """Code of ``solve_six``: the six numbers stay in registers."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        numbers = Line(context, builder, signature.args[0], given[0])
        lines = Matrix(context, builder, signature.args[2], given[2])
        places = [builder.add(given[1], NUMBER(k)) for k in range(SIX)]
        held = [numbers.part(place, REAL) for place in places]

        def take(k: int, j: int) -> None:
            part = builder.fmul(lines.number(places[k], places[j]), held[j], flags=FLAGS)
            held[k] = builder.fsub(held[k], part, flags=FLAGS)

        for j in range(SIX):
            for k in range(j + 1, SIX):
                take(k, j)
        for j in range(SIX - 1, -1, -1):
            inverse = lines.number(places[j], places[j])
            held[j] = builder.fmul(held[j], inverse, flags=FLAGS)
            for k in range(j):
                take(k, j)
        for place, x in zip(places, held, strict=True):
            numbers.put_one(place, x)
        return context.get_dummy_value()

    return types.void(y, whole, S), generate


@intrinsic
def _take_columns(_context: Any, y: Any, first: Any, S: Any, begin: Any, end: Any) -> Any:
    """Code of ``take_columns``."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        numbers = Line(context, builder, signature.args[0], given[0])
        lines = Line(context, builder, signature.args[2], given[2])
        shares = numbers.six(given[1])
        with cgutils.for_range(builder, builder.sub(given[4], given[3])) as loop:
            i = builder.add(given[3], loop.index)
            line = lines.six(builder.add(lines.begin(i), given[1]))
            share = whole_sum(builder, add(builder, NOTHING, line, shares))
            numbers.take(i, share)
        return context.get_dummy_value()

    return types.void(y, whole, S, whole, whole), generate


@intrinsic
def _take_rows(_context: Any, y: Any, first: Any, S: Any, begins: Any, ends: Any, runs: Any) -> Any:
    """Code of ``take_rows``: a run by fours, twos and single numbers."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        numbers = Line(context, builder, signature.args[0], given[0])
        lines = Matrix(context, builder, signature.args[2], given[2])
        bounds = [
            context.make_array(kind)(context, builder, array).data
            for kind, array in zip(signature.args[3:5], given[3:5], strict=True)
        ]
        kinds = FOUR, TWO, REAL
        nothing = [ir.Constant(kind, None) for kind in kinds]
        held: list[list[Any]] = [
            [cgutils.alloca_once_value(builder, x) for x in nothing] for _ in range(SIX)
        ]
        with cgutils.for_range(builder, given[5]) as run:
            begin, end = (
                builder.load(builder.gep(ends, [run.index], inbounds=True)) for ends in bounds
            )
            for k, kind in enumerate(kinds):
                size = NUMBER(4 >> k)
                count = builder.sdiv(builder.sub(end, begin), size)
                with cgutils.for_range(builder, count) as loop:
                    at = builder.add(begin, builder.mul(loop.index, size))
                    part = numbers.part(at, kind)
                    for r in range(SIX):
                        line = lines.part(builder.add(given[1], NUMBER(r)), at, kind)
                        more = builder.fmul(line, part, flags=FLAGS)
                        total = builder.fadd(builder.load(held[r][k]), more, flags=FLAGS)
                        builder.store(total, held[r][k])
                begin = builder.add(begin, builder.mul(count, size))
        for r in range(SIX):
            four, two, one = map(builder.load, held[r])
            share = builder.fadd(whole_sum(builder, Six(four, two)), one, flags=FLAGS)
            numbers.take(builder.add(given[1], NUMBER(r)), share)
        return context.get_dummy_value()

    return types.void(y, whole, S, begins, ends, whole), generate


if is_plain_python():

    def _add_sixes(y: Any, at: int, lines: Any, i: int, side: int, shares: Any) -> None:
        y[at : at + SIX] += shares @ lines[i : i + 3, side, :SIX]

    def _along_sixes(y: Any, first: int, second: int, lines: Any, i: int) -> Any:
        total = lines[i : i + 3, 0, :SIX] @ y[first : first + SIX]
        if second >= 0:
            total = total + lines[i : i + 3, 1, :SIX] @ y[second : second + SIX]
        return tuple(total)

    def _solve_six(y: Any, first: int, S: Any) -> None:
        for k in range(first, first + SIX):
            y[k] -= S[k, first:k] @ y[first:k]
        for k in range(first + SIX - 1, first - 1, -1):
            y[k] = (y[k] - S[k, k + 1 : first + SIX] @ y[k + 1 : first + SIX]) * S[k, k]

    def _take_columns(y: Any, first: int, S: Any, begin: int, end: int) -> None:
        y[begin:end] -= S[begin:end, first : first + SIX] @ y[first : first + SIX]

    def _take_rows(y: Any, first: int, S: Any, begins: Any, ends: Any, runs: int) -> None:
        lines = S[first : first + SIX]
        for begin, end in zip(begins[:runs], ends[:runs], strict=True):
            y[first : first + SIX] -= lines[:, begin:end] @ y[begin:end]


@helper
def add_sixes(y: Any, at: int, lines: Any, i: int, side: int, shares: Any) -> None:
    """Add to six numbers of y, from ``at`` on, three shares of lines i to i + 2 of one side.

    Args:
        y: (n,)
        at: The first of them.
        lines: (rows, 2, 6 or more)
        i: The first line,
        side: and of which side.
        shares: (3,)
    """
    _add_sixes(y, at, lines, i, side, shares)  # pyright: ignore[reportCallIssue]


@helper
def along_sixes(y: Any, first: int, second: int, lines: Any, i: int) -> Any:
    """Products of lines i to i + 2 with numbers of y.

    Of the first side with those from ``first`` on, of the second with those from ``second`` on
    unless that is negative.
    """
    return _along_sixes(y, first, second, lines, i)  # pyright: ignore[reportCallIssue]


@helper
def solve_six(y: Any, first: int, S: Any) -> None:
    """Solve for six numbers of y, from ``first`` on, by the factors in S of the same places.

    These are triangles, the lower of units, with the reciprocals of the upper one's diagonal.
    """
    _solve_six(y, first, S)  # pyright: ignore[reportCallIssue]


@helper
def take_columns(y: Any, first: int, S: Any, begin: int, end: int) -> None:
    """Forward substitution: take from y[begin:end] six columns of S, times their numbers of y."""
    _take_columns(y, first, S, begin, end)  # pyright: ignore[reportCallIssue]


@helper
def take_rows(y: Any, first: int, S: Any, begins: Any, ends: Any, runs: int) -> None:
    """Back substitution: take from six numbers of y their lines of S times some runs of y."""
    _take_rows(y, first, S, begins, ends, runs)  # pyright: ignore[reportCallIssue]
