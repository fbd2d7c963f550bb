"""Linear algebra of short lines, in whole blocks of eight numbers: vector instructions throughout.

Compilers make vectors of loops over many numbers. Of loops over the six to twenty of a body and its
neighbours they make none: they cannot know that arrays do not overlap, nor that an index is not
negative, and most numbers are the rest of a whole vector. Here arrays are flat, lines are padded to
whole blocks, and what is read and written is said block by block.
"""

# where kernels run as plain Python, plain functions stand for what is generated
# pyright: reportRedeclaration=false

import math
from collections.abc import Callable
from typing import Any, cast

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from bulletbridge.compilation.block_sizes import LANES, MOST_TURNED, SIX, TWO
from bulletbridge.compilation.by_numba import helper, is_plain_python

MOST_HELD = 3
"""Blocks of a line that substitutions hold in registers."""
FLAGS = ("contract", "nsz", "reassoc", "arcp")
"""As of all kernels, see ``by_numba.PLAIN``."""

INDEX, NUMBER, REAL = ir.IntType(32), ir.IntType(64), ir.DoubleType()
BLOCK, LANE_NUMBERS = ir.VectorType(REAL, LANES), ir.VectorType(INDEX, LANES)
MASK = ir.VectorType(ir.IntType(1), LANES)
NOTHING = ir.Constant(BLOCK, [0.0] * LANES)
UNKNOWN: Any = cast(Any, ir).Undefined
whole: Any = types.int64
real: Any = types.float64
QUARTERS = 1.57079632673412561417, 6.07710050630396597660e-11, 2.02226624879595063154e-21
"""A quarter turn in parts, the first two of 33 bits, so that up to 2^19 times these are exact."""
SINE = (
    -1.66666666666666324348e-01, 8.33333333332248946124e-03, -1.98412698298579493134e-04,
    2.75573137070700676789e-06, -2.50507602534068634195e-08, 1.58969099521155010221e-10,
)  # fmt: skip
COSINE = (
    4.16666666666666019037e-02, -1.38888888888741095749e-03, 2.48015872894767294178e-05,
    -2.75573143513906633035e-07, 2.08757232129817482790e-09, -1.13596475577881948265e-11,
)  # fmt: skip
"""Polynomials of an eighth of a turn. Source: fdlibm, k_sin.c, k_cos.c, e_rem_pio2.c (Sun)."""


class Blocks:
    """The blocks of an array from number ``first`` on, as code that is generated reads them."""

    def __init__(self, context: Any, builder: Any, kind: Any, given: Any, first: Any) -> None:
        self.data = context.make_array(kind)(context, builder, given).data
        self._builder, self._first = builder, first

    def number(self, n: Any) -> Any:
        """Address of number n from there on."""
        place = self._builder.add(self._first, NUMBER(n) if isinstance(n, int) else n)
        return self._builder.gep(self.data, [place], inbounds=True)

    def _place(self, n: Any) -> Any:
        if isinstance(n, int):
            begin = self.number(LANES * n)
        else:
            begin = self.number(self._builder.mul(n, NUMBER(LANES)))
        return self._builder.bitcast(begin, BLOCK.as_pointer())

    def __getitem__(self, n: Any) -> Any:
        """Block n."""
        return self._builder.load(self._place(n), align=8)

    def __setitem__(self, n: Any, block: Any) -> None:
        """Write block n."""
        self._builder.store(block, self._place(n), align=8)


def spread(builder: Any, number: Any) -> Any:
    """A block of one number."""
    unknown = ir.Constant(BLOCK, UNKNOWN)
    first = builder.insert_element(unknown, number, INDEX(0))
    return builder.shuffle_vector(first, unknown, ir.Constant(LANE_NUMBERS, [0] * LANES))


def spread_lane(builder: Any, block: Any, lane: int) -> Any:
    """A block of one number of another."""
    return builder.shuffle_vector(block, block, ir.Constant(LANE_NUMBERS, [lane] * LANES))


def less(builder: Any, block: Any, share: Any, other: Any) -> Any:
    """A block less some share of another."""
    return builder.fsub(block, builder.fmul(share, other, flags=FLAGS), flags=FLAGS)


def lanes_where(chosen: Callable[[int], bool]) -> Any:
    """A mask of lanes."""
    return ir.Constant(MASK, [chosen(n) for n in range(LANES)])


@intrinsic
def _subtract_blocks(
    _context: Any, y: Any, first: Any, s: Any, x: Any, other: Any, count: Any
) -> Any:
    """Code of ``subtract_blocks``."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        into = Blocks(context, builder, signature.args[0], given[0], given[1])
        of = Blocks(context, builder, signature.args[3], given[3], given[4])
        share = spread(builder, given[2])
        with cgutils.for_range(builder, given[5]) as loop:
            into[loop.index] = less(builder, into[loop.index], share, of[loop.index])
        return context.get_dummy_value()

    return types.void(y, whole, real, x, whole, whole), generate


@intrinsic
def _scale_after(
    _context: Any, y: Any, first: Any, s: Any, x: Any, other: Any, at: Any, count: Any
) -> Any:
    """Code of ``scale_after``: y[i] = s x[i] for i > at, else 0, ``LANES`` numbers at a time.

    ``first`` and ``other`` are the numbers of the first block of y and x. In each block the lanes
    after ``at`` are found by comparing their numbers with ``at`` less those of the blocks before.
    """

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        into = Blocks(context, builder, signature.args[0], given[0], given[1])
        of = Blocks(context, builder, signature.args[3], given[3], given[4])
        share = spread(builder, given[2])
        numbers = ir.Constant(ir.VectorType(NUMBER, LANES), list(range(LANES)))
        unknown = ir.Constant(numbers.type, UNKNOWN)
        with cgutils.for_range(builder, given[6]) as loop:
            last = builder.sub(given[5], builder.mul(loop.index, NUMBER(LANES)))
            last = builder.insert_element(unknown, last, INDEX(0))
            lasts = builder.shuffle_vector(last, unknown, ir.Constant(LANE_NUMBERS, [0] * LANES))
            part = builder.fmul(share, of[loop.index], flags=FLAGS)
            after = builder.icmp_signed(">", numbers, lasts)
            into[loop.index] = builder.select(after, part, NOTHING)
        return context.get_dummy_value()

    return types.void(y, whole, real, x, whole, whole, whole), generate


@intrinsic
def _clear_blocks(_context: Any, y: Any, first: Any, count: Any) -> Any:
    """Code of ``clear_blocks``."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        into = Blocks(context, builder, signature.args[0], given[0], given[1])
        with cgutils.for_range(builder, given[2]) as loop:
            into[loop.index] = NOTHING
        return context.get_dummy_value()

    return types.void(y, whole, whole), generate


@intrinsic
def _inner_blocks(_context: Any, x: Any, first: Any, y: Any, other: Any, count: Any) -> Any:
    """Code of ``inner_blocks``: a sum for each lane, and the lanes added in halves."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        left = Blocks(context, builder, signature.args[0], given[0], given[1])
        right = Blocks(context, builder, signature.args[2], given[2], given[3])
        total = cast(Any, cgutils).alloca_once_value(builder, NOTHING)
        with cgutils.for_range(builder, given[4]) as loop:
            both = builder.fmul(left[loop.index], right[loop.index], flags=FLAGS)
            builder.store(builder.fadd(builder.load(total), both, flags=FLAGS), total)
        found, width = builder.load(total), LANES
        while width > 1:  # halves, and halves of these
            width //= 2
            kind = ir.VectorType(INDEX, width)
            low, high = (ir.Constant(kind, list(range(n, n + width))) for n in (0, width))
            parts = [builder.shuffle_vector(found, found, part) for part in (low, high)]
            found = builder.fadd(*parts, flags=FLAGS)
        return builder.extract_element(found, INDEX(0))

    return real(x, whole, y, whole, whole), generate


@intrinsic
def _multiply_blocks(_context: Any, y: Any, first: Any, x: Any, other: Any, count: Any) -> Any:
    """Code of ``multiply_blocks``."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        into = Blocks(context, builder, signature.args[0], given[0], given[1])
        by = Blocks(context, builder, signature.args[2], given[2], given[3])
        with cgutils.for_range(builder, given[4]) as loop:
            into[loop.index] = builder.fmul(into[loop.index], by[loop.index], flags=FLAGS)
        return context.get_dummy_value()

    return types.void(y, whole, x, whole, whole), generate


@intrinsic
def _add_lines(_context: Any, y: Any, s: Any, x: Any, begins: Any, sizes: Any) -> Any:
    """Code of ``add_lines``, block by block.

    ``begins``: the first numbers of y, of s and of x that are meant; ``sizes``: numbers of a line
    of x, lines, blocks of each.
    """
    three = types.UniTuple(whole, 3)

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        first_of = cast(Any, cgutils).unpack_tuple(builder, given[3])
        size, count, blocks = cast(Any, cgutils).unpack_tuple(builder, given[4])
        sums, shares, lines = (
            Blocks(context, builder, kind, array, first)
            for kind, array, first in zip(signature.args[:3], given[:3], first_of, strict=True)
        )
        held = cast(Any, cgutils).alloca_once_value(builder, NOTHING)
        with cgutils.for_range(builder, blocks) as block:
            builder.store(sums[block.index], held)
            first = builder.mul(block.index, NUMBER(LANES))
            with cgutils.for_range(builder, count) as loop:
                at = builder.add(first, builder.mul(loop.index, size))
                line = builder.bitcast(lines.number(at), BLOCK.as_pointer())
                share = spread(builder, builder.load(shares.number(loop.index)))
                part = builder.fmul(share, builder.load(line, align=8), flags=FLAGS)
                builder.store(builder.fadd(builder.load(held), part, flags=FLAGS), held)
            sums[block.index] = builder.load(held)
        return context.get_dummy_value()

    return types.void(y, s, x, three, three), generate


@intrinsic
def _take_away_lines(_context: Any, y: Any, s: Any, begins: Any, count: Any, size: Any) -> Any:
    """Code of ``take_away_lines``, for up to ``MOST_HELD`` blocks, the ``size`` of a line.

    ``begins``: the first number of the line that is changed, of its shares, and of the lines.
    """

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        of, begins = signature.args, cast(Any, cgutils).unpack_tuple(builder, given[2])
        own = Blocks(context, builder, of[0], given[0], begins[0])
        shares = Blocks(context, builder, of[1], given[1], begins[1])
        lines = Blocks(context, builder, of[0], given[0], begins[2])
        for blocks in range(1, MOST_HELD + 1):
            with builder.if_then(builder.icmp_signed("==", given[4], NUMBER(blocks))):
                held: list[Any] = [
                    cgutils.alloca_once_value(builder, own[b]) for b in range(blocks)
                ]
                with cgutils.for_range(builder, given[3]) as loop:
                    share = spread(builder, builder.load(shares.number(loop.index)))
                    first = builder.mul(loop.index, NUMBER(blocks))
                    for b in range(blocks):
                        line = lines[builder.add(first, NUMBER(b))]
                        builder.store(less(builder, builder.load(held[b]), share, line), held[b])
                for b in range(blocks):
                    own[b] = builder.load(held[b])
        return context.get_dummy_value()

    return types.void(y, s, types.UniTuple(whole, 3), whole, whole), generate


@intrinsic
def _inner_lines(_context: Any, x: Any, i: Any, last: Any, k: Any, blocks: Any) -> Any:
    """Code of ``inner_lines``: sums of four lines in registers, then of the others.

    Lane n of what is merged is of line n: of two sums the lanes that differ by a bit are added,
    those of the first where it is not set.
    """
    eight = types.UniTuple(real, LANES)

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        size, sums, kind = builder.mul(given[4], NUMBER(LANES)), list[Any](), signature.args[0]
        own = Blocks(context, builder, kind, given[0], builder.mul(given[3], size))
        for begin in range(0, LANES, LANES // 2):
            lines, held = list[Any](), list[Any]()
            for n in range(begin, begin + LANES // 2):
                line = builder.add(given[1], NUMBER(n))
                there = builder.icmp_signed("<", line, given[2])
                line = builder.select(there, line, given[2])
                lines.append(Blocks(context, builder, kind, given[0], builder.mul(line, size)))
                held.append(cgutils.alloca_once_value(builder, NOTHING))
            with cgutils.for_range(builder, given[4]) as loop:
                other = own[loop.index]
                for line, total in zip(lines, held, strict=True):
                    part = builder.fmul(line[loop.index], other, flags=FLAGS)
                    builder.store(builder.fadd(builder.load(total), part, flags=FLAGS), total)
            sums += [builder.load(total) for total in held]
        bit = 1
        while bit < LANES:
            pairs, sums = list(zip(sums[::2], sums[1::2], strict=True)), []
            low = [n if not n & bit else LANES + n - bit for n in range(LANES)]
            high = [n + bit if not n & bit else LANES + n for n in range(LANES)]
            for pair in pairs:
                parts = [
                    builder.shuffle_vector(*pair, ir.Constant(LANE_NUMBERS, lanes))
                    for lanes in (low, high)
                ]
                sums.append(builder.fadd(*parts, flags=FLAGS))
            bit *= 2
        found = [builder.extract_element(sums[0], INDEX(n)) for n in range(LANES)]
        return context.make_tuple(builder, signature.return_type, found)

    return eight(x, whole, whole, whole, whole), generate


@intrinsic
def _exchange_blocks(_context: Any, y: Any, first: Any, other: Any, count: Any) -> Any:
    """Code of ``exchange_blocks``."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        one, two = (
            Blocks(context, builder, signature.args[0], given[0], begin) for begin in given[1:3]
        )
        with cgutils.for_range(builder, given[3]) as loop:
            one[loop.index], two[loop.index] = two[loop.index], one[loop.index]
        return context.get_dummy_value()

    return types.void(y, whole, whole, whole), generate


def _taking(down: bool) -> Callable[..., Any]:
    """Generates ``take_lines``, or ``take_lines_down``, for up to ``MOST_HELD`` blocks."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        y = Blocks(context, builder, signature.args[0], given[0], NUMBER(0))
        lines = Blocks(context, builder, signature.args[1], given[1], given[2])
        begin = NUMBER(0) if down else given[5]
        count = builder.sub(given[3], begin)
        for blocks in range(1, MOST_HELD + 1):
            with builder.if_then(builder.icmp_signed("==", given[4], NUMBER(blocks))):
                held: list[Any] = [cgutils.alloca_once_value(builder, y[b]) for b in range(blocks)]
                for k in range(LANES * blocks)[:: -1 if down else 1]:
                    past = builder.sub(NUMBER(k), begin)
                    with builder.if_then(builder.icmp_unsigned("<", past, count)):
                        share = spread_lane(builder, builder.load(held[k // LANES]), k % LANES)
                        for b in range(k // LANES + 1) if down else range(k // LANES, blocks):
                            line = lines[k * blocks + b]
                            left = less(builder, builder.load(held[b]), share, line)
                            builder.store(left, held[b])
                for b in range(blocks):
                    y[b] = builder.load(held[b])
        return context.get_dummy_value()

    return generate


@intrinsic
def _take_lines(
    _context: Any, y: Any, x: Any, first: Any, count: Any, blocks: Any, begin: Any
) -> Any:
    """Code of ``take_lines_from`` where a line has few blocks."""
    return types.void(y, x, whole, whole, whole, whole), _taking(False)


@intrinsic
def _take_lines_down(_context: Any, y: Any, x: Any, first: Any, count: Any, blocks: Any) -> Any:
    """Code of ``take_lines_down``, likewise."""
    return types.void(y, x, whole, whole, whole), _taking(True)


@intrinsic
def _eliminate_six(
    _context: Any, W: Any, width: Any, x: Any, first: Any, line: Any, column: Any, n: Any
) -> Any:
    """Code of ``eliminate_six``: all of the triangle is in registers while pivots go by.

    ``width``: numbers of a line of W.
    """

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        kind, factors = signature.args[2], given[2]
        inverses, lines, columns = (
            Blocks(context, builder, kind, factors, given[k]) for k in (3, 4, 5)
        )
        begins = [builder.mul(given[1], NUMBER(a)) for a in range(TWO * LANES)]
        of_W = [Blocks(context, builder, signature.args[0], given[0], begin) for begin in begins]
        rows = [[row[b] for b in range(TWO)] for row in of_W]
        shares = [NOTHING] * (TWO * LANES)
        for at in range(SIX):
            own = rows[at]
            pivot = builder.extract_element(own[0], INDEX(at))
            inverse = builder.fdiv(REAL(1.0), pivot, flags=FLAGS)
            builder.store(inverse, inverses.number(at))
            scaled = [builder.fmul(spread(builder, inverse), x, flags=FLAGS) for x in own]
            scaled[0] = builder.select(lanes_where(lambda n, at=at: n > at), scaled[0], NOTHING)
            for b in range(TWO):
                lines[TWO * at + b] = scaled[b]
            here = lanes_where(lambda n, at=at: n == at)
            for a in range(at + 1, TWO * LANES):
                share = spread_lane(builder, scaled[a // LANES], a % LANES)
                shares[a] = builder.select(here, share, shares[a])
                for b in range(a // LANES, TWO):
                    rows[a][b] = less(builder, rows[a][b], share, own[b])
        for a in range(TWO * LANES):
            with builder.if_then(builder.icmp_signed("<", NUMBER(a), given[6])):
                columns[TWO * a] = shares[a]
                columns[TWO * a + 1] = NOTHING
                for b in range(TWO) if a >= SIX else ():
                    of_W[a][b] = rows[a][b]
        return context.get_dummy_value()

    return types.void(W, whole, x, whole, whole, whole, whole), generate


@intrinsic
def _cosines_and_sines(_context: Any, x: Any) -> Any:
    """Code of ``cosines_and_sines``: of what quarters of a turn leave, by polynomials.

    The quarters are taken away in three parts (Cody and Waite); which of the polynomials is the
    sine, and the signs, follow from the last two bits of their number.
    """
    pair = types.Tuple((types.UniTuple(real, LANES), types.UniTuple(real, LANES), whole))

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        many, fused = ir.VectorType(NUMBER, LANES), ("contract",)

        def every(number: float) -> Any:
            return ir.Constant(BLOCK, [number] * LANES)

        def bits(number: int) -> Any:
            return ir.Constant(many, [number] * LANES)

        def add(a: Any, b: Any) -> Any:
            return builder.fadd(a, b, flags=fused)

        def sub(a: Any, b: Any) -> Any:
            return builder.fsub(a, b, flags=fused)

        def mul(a: Any, b: Any) -> Any:
            return builder.fmul(a, b, flags=fused)

        def polynomial(z: Any, factors: tuple[float, ...]) -> Any:
            total = every(factors[-1])
            for factor in factors[-2::-1]:
                total = add(mul(total, z), every(factor))
            return total

        def signed(block: Any, quarters: Any) -> Any:
            sign = builder.shl(builder.and_(quarters, bits(2)), bits(62))
            return builder.bitcast(builder.xor(builder.bitcast(block, many), sign), BLOCK)

        angles = ir.Constant(BLOCK, UNKNOWN)
        given_angles = cast(Any, cgutils).unpack_tuple(builder, given[0])
        for n in range(LANES):
            angles = builder.insert_element(angles, given_angles[n], INDEX(n))
        shift = every(1.5 * 2.0**52)  # what is added to that is rounded, and ends in whole numbers
        shifted = add(mul(angles, every(2.0 / math.pi)), shift)
        quarters, turns = builder.bitcast(shifted, many), sub(shifted, shift)
        # of the last part of the quarters, what the difference has no digits for is kept
        left = sub(sub(angles, mul(turns, every(QUARTERS[0]))), mul(turns, every(QUARTERS[1])))
        last = mul(turns, every(QUARTERS[2]))
        a = sub(left, last)
        rest = sub(sub(left, a), last)
        z = mul(a, a)
        cube, half = mul(z, a), mul(every(0.5), z)
        high = polynomial(z, SINE[1:])
        bent = sub(mul(z, sub(mul(every(0.5), rest), mul(cube, high))), rest)
        sine = sub(a, sub(bent, mul(cube, every(SINE[0]))))
        w = sub(every(1.0), half)
        high = mul(mul(z, z), polynomial(z, COSINE))
        cosine = add(w, add(sub(sub(every(1.0), w), half), sub(high, mul(a, rest))))
        odd = builder.icmp_signed("!=", builder.and_(quarters, bits(1)), bits(0))
        cosines = signed(builder.select(odd, sine, cosine), builder.add(quarters, bits(1)))
        sines = signed(builder.select(odd, cosine, sine), quarters)
        found = [
            context.make_tuple(
                builder,
                kind,
                [builder.extract_element(block, INDEX(n)) for n in range(LANES)],
            )
            for kind, block in zip(signature.return_type.types, (cosines, sines), strict=False)
        ]
        size = builder.bitcast(builder.and_(builder.bitcast(angles, many), bits(2**63 - 1)), BLOCK)
        far = builder.fcmp_unordered(">", size, every(MOST_TURNED))
        far = builder.zext(builder.bitcast(far, ir.IntType(LANES)), NUMBER)
        return context.make_tuple(builder, signature.return_type, [*found, far])

    return pair(x), generate


if is_plain_python():

    def _cosines_and_sines(x: Any) -> Any:
        far = sum(not abs(angle) <= MOST_TURNED for angle in x)
        finite = [angle if abs(angle) <= MOST_TURNED else 0.0 for angle in x]
        return tuple(map(math.cos, finite)), tuple(map(math.sin, finite)), far

    def _subtract_blocks(y: Any, first: int, s: float, x: Any, other: int, count: int) -> None:
        size = LANES * count
        y.reshape(-1)[first : first + size] -= s * x.reshape(-1)[other : other + size]

    def _scale_after(y: Any, first: int, s: float, x: Any, other: int, at: int, count: int) -> None:
        size = LANES * count
        y.reshape(-1)[first : first + size] = s * x.reshape(-1)[other : other + size]
        y.reshape(-1)[first : first + at + 1] = 0.0

    def _clear_blocks(y: Any, first: int, count: int) -> None:
        y.reshape(-1)[first : first + LANES * count] = 0.0

    def _inner_blocks(x: Any, first: int, y: Any, other: int, count: int) -> float:
        size = LANES * count
        return float(x.reshape(-1)[first : first + size] @ y.reshape(-1)[other : other + size])

    def _multiply_blocks(y: Any, first: int, x: Any, other: int, count: int) -> None:
        size = LANES * count
        y.reshape(-1)[first : first + size] *= x.reshape(-1)[other : other + size]

    def _add_lines(y: Any, s: Any, x: Any, begins: Any, sizes: Any) -> None:
        (into, other, first), (size, count, blocks) = begins, sizes
        for k in range(count):
            share = -s.reshape(-1)[other + k]
            _subtract_blocks(y, into, share, x, first + size * k, blocks)

    def _take_away_lines(y: Any, s: Any, begins: Any, count: int, size: int) -> None:
        into, other, first = begins
        for k in range(count):
            share = s.reshape(-1)[other + k]
            _subtract_blocks(y, into, share, y, first + LANES * size * k, size)

    def _inner_lines(x: Any, i: int, last: int, k: int, blocks: int) -> Any:
        return tuple(float(x[min(i + n, last)] @ x[k]) for n in range(LANES))

    def _exchange_blocks(y: Any, first: int, other: int, count: int) -> None:
        flat, size = y.reshape(-1), LANES * count
        before = flat[first : first + size].copy()
        flat[first : first + size] = flat[other : other + size]
        flat[other : other + size] = before

    def _take_lines(y: Any, x: Any, first: int, count: int, blocks: int, begin: int) -> None:
        for k in range(begin, count):
            _subtract_blocks(y, 0, y[k], x, first + LANES * blocks * k, blocks)

    def _take_lines_down(y: Any, x: Any, first: int, count: int, blocks: int) -> None:
        for k in range(count - 1, -1, -1):
            _subtract_blocks(y, 0, y[k], x, first + LANES * blocks * k, blocks)

    def _eliminate_six(
        W: Any, width: int, x: Any, first: int, line: int, column: int, n: int
    ) -> None:
        size = LANES * TWO
        x[column : column + n * size] = 0.0
        for at in range(SIX):
            x[first + at] = 1.0 / W[at, at]
            _scale_after(x, line + size * at, x[first + at], W, at * width, at, TWO)
            for a in range(at + 1, n):
                share = x[column + size * a + at] = x[line + size * at + a]
                W[a, :size] -= share * W[at, :size]


@helper
def cosines_and_sines(x: Any) -> Any:
    """Cosines and sines of eight angles, and whether any is too large for that, or no number.

    To two units of the last place.
    """
    return _cosines_and_sines(x)  # pyright: ignore[reportCallIssue]


@helper
def subtract_blocks(y: Any, first: int, s: float, x: Any, other: int, count: int) -> None:
    """Take s times so many blocks of x, from number ``other`` on, from those of y."""
    _subtract_blocks(y, first, s, x, other, count)  # pyright: ignore[reportCallIssue]


@helper
def scale_after(y: Any, first: int, s: float, x: Any, other: int, at: int, count: int) -> None:
    """Put s times so many blocks of x into those of y; zero for numbers up to ``at``."""
    _scale_after(y, first, s, x, other, at, count)  # pyright: ignore[reportCallIssue]


@helper
def clear_blocks(y: Any, first: int, count: int) -> None:
    """Set so many blocks of y, from number ``first`` on, to zero."""
    _clear_blocks(y, first, count)  # pyright: ignore[reportCallIssue]


@helper
def inner_blocks(x: Any, first: int, y: Any, other: int, count: int) -> float:
    """Scalar product of so many blocks of x and of y."""
    return _inner_blocks(x, first, y, other, count)  # pyright: ignore[reportCallIssue]


@helper
def multiply_blocks(y: Any, first: int, x: Any, other: int, count: int) -> None:
    """Multiply so many blocks of y by those of x, number by number."""
    _multiply_blocks(y, first, x, other, count)  # pyright: ignore[reportCallIssue]


@helper
def add_lines(
    y: Any, into: int, s: Any, other: int, x: Any, first: int, count: int, blocks: int
) -> None:
    """Add to y, from number ``into`` on, numbers of s from ``other`` on times lines of x.

    These are lines of a matrix: so many blocks of each, from number ``first`` on in the first.
    """
    begins, sizes = (into, other, first), (x.shape[1], count, blocks)
    _add_lines(y, s, x, begins, sizes)  # pyright: ignore[reportCallIssue]


@helper
def take_away_lines(y: Any, s: Any, i: int, first: int, end: int) -> None:
    """Take s[i, k] times line k of y from its line i, of all k from ``first`` to before ``end``.

    Lines are whole blocks.
    """
    size = y.shape[1]
    if size <= LANES * MOST_HELD:
        begins, count = (size * i, s.shape[1] * i + first, size * first), end - first
        _take_away_lines(y, s, begins, count, size // LANES)  # pyright: ignore[reportCallIssue]
        return
    for k in range(first, end):
        subtract_blocks(y, size * i, s[i, k], y, size * k, size // LANES)


@helper
def inner_lines(x: Any, i: int, last: int, k: int) -> Any:
    """Scalar products of eight lines of x, whole blocks, from line i on with line k of it.

    Beyond the ``last`` line, that one is taken.
    """
    return _inner_lines(x, i, last, k, x.shape[1] // LANES)  # pyright: ignore[reportCallIssue]


@helper
def exchange_blocks(y: Any, first: int, other: int, count: int) -> None:
    """Exchange so many blocks of y, from these two numbers on."""
    _exchange_blocks(y, first, other, count)  # pyright: ignore[reportCallIssue]


@helper
def eliminate_six(W: Any, x: Any, first: int, line: int, column: int, n: int) -> None:
    """Eliminate the first six of n variables in the upper triangle of W: lines of two blocks.

    Into x go the inverses of the pivots, from number ``first`` on, the lines over these, and of
    all variables the columns of these. W has two blocks of lines at least.
    """
    width = W.shape[1]
    _eliminate_six(W, width, x, first, line, column, n)  # pyright: ignore[reportCallIssue]


@helper
def take_lines(y: Any, x: Any, first: int, count: int, blocks: int) -> None:
    """Forward substitution: take y[k] times line k of x from y, for one k after the other.

    Lines of so many blocks begin at number ``first`` of x, and are zero up to their own k. A number
    of y that is written by itself would have to reach memory before its block is read again, which
    takes longer than all of the rest: few blocks stay in registers.
    """
    take_lines_from(0, y, x, first, count, blocks)


@helper
def take_lines_from(begin: int, y: Any, x: Any, first: int, count: int, blocks: int) -> None:
    """The same of a y that is zero before number ``begin``."""
    if blocks <= MOST_HELD:
        _take_lines(y, x, first, count, blocks, begin)  # pyright: ignore[reportCallIssue]
        return
    for k in range(begin, count):
        skipped = k // LANES
        place = LANES * skipped
        line = first + LANES * blocks * k + place
        subtract_blocks(y, place, y[k], x, line, blocks - skipped)


@helper
def take_lines_down(y: Any, x: Any, first: int, count: int, blocks: int) -> None:
    """Back substitution: the same from the last line to the first, zero from their own k on."""
    if blocks <= MOST_HELD:
        _take_lines_down(y, x, first, count, blocks)  # pyright: ignore[reportCallIssue]
        return
    for k in range(count - 1, -1, -1):
        subtract_blocks(y, 0, y[k], x, first + LANES * blocks * k, k // LANES + 1)
