"""numba's translation of helpers: how they take tuples, and which variables are in memory.

numba hands each number of a tuple on by itself, and the arrays of a system are nearly a thousand
words: most of what it translated, and LLVM cleared away again, took tuples apart and put them
together at every call. Functions that only kernels call take them as one value; what stands between
those and others that are never inlined is in ``adapters``. And a variable that is assigned once,
before all that uses it, is that value, not a place in memory.
"""

import operator
from collections import Counter
from typing import Any, cast

from llvmlite import ir as llvm
from numba.core import analysis, base, ir, ir_utils, lowering, types
from numba.core.datamodel import packer

analyses: Any = analysis
contexts: Any = base.BaseContext
find: Any = ir_utils
known: Any = types
nodes: Any = ir
parts: Any = packer


SQUARE = 2
"""The exponent of a square."""


class Whole(tuple[Any, ...]):
    """Types of arguments of a function that takes tuples as one value."""


class AsOneValue:
    """How a tuple is handed on as it is, in place of numba's model of its type."""

    def __init__(self, model: Any) -> None:
        self.get_argument_type = model.get_value_type

    def as_argument(self, _builder: Any, value: Any) -> Any:
        """The value."""
        return value

    def from_argument(self, _builder: Any, value: Any) -> Any:
        """The value."""
        return value


def has_arrays(kind: Any) -> bool:
    """Whether a type is that of a tuple with arrays in it; others are handed on as numbers."""
    return isinstance(kind, known.BaseTuple) and any(
        isinstance(part, known.Array) or has_arrays(part) for part in kind.types
    )


class ModelsOfWholes:
    """numba's models of types, but for tuples with arrays, which are not even looked into."""

    def __init__(self, models: Any) -> None:
        self._models = models

    def lookup(self, kind: Any) -> Any:
        """What says how arguments of a type are handed on."""
        model = self._models.lookup(kind)
        return AsOneValue(model) if has_arrays(kind) else model


_given: Any = contexts.get_arg_packer
_binop: Any = cast(Any, lowering.Lower).lower_binop
_packers: dict[Whole, Any] = {}
"""What hands arguments on, by their types."""


def _packer(self: Any, kinds: Any) -> Any:
    """What hands arguments of some types on; each call of a function asks for it anew."""
    if not isinstance(kinds, Whole):
        return _given(self, kinds)
    if kinds not in _packers:
        _packers[kinds] = parts.ArgPacker(ModelsOfWholes(self.data_model_manager), kinds)
    return _packers[kinds]


LONG_LOOPS = {
    f"numerics.{name}"
    for name in (
        "clusters",
        "complementarity_rows",
        "lu",
        "multifrontal",
        "multifrontal_factors",
        "multifrontal_inverse",
        "multifrontal_solutions",
        "parts",
        "projection",
        "range_space",
    )
}
"""Modules most of whose loops are over lines of matrices, one for each of many others."""


def one_by_one(module: Any) -> Any:
    """What tells LLVM to leave a loop as it is."""
    off = module.add_metadata(["llvm.loop.vectorize.enable", llvm.Constant(llvm.IntType(1), 0)])
    told = module.add_metadata([off])
    told.operands = told, off  # a loop is known by a node that begins with itself
    return told


class KernelLower(cast(Any, lowering.Lower)):
    """numba's translation, statement by statement."""

    def lower_block(self, block: Any) -> None:
        """Translate a block; where it leads back, say whether LLVM is to look for vectors there.

        It makes three of each loop, which was a third to a half of a kernel: those over a vector,
        the rows of a contact or a joint's numbers are too short or too rare to gain by it.
        """
        super().lower_block(block)
        if self.fndesc.modname.partition(".")[2] in LONG_LOOPS:
            return
        if any(self.blkmap[one].instructions for one in block.terminator.get_targets()):
            self.builder.block.terminator.set_metadata("llvm.loop", one_by_one(self.module))

    def lower_binop(self, resty: Any, expr: Any, op: Any) -> Any:
        """Translate an operation; the square of a number is a product, not a loop over bits."""
        if op is operator.pow and isinstance(self.typeof(expr.lhs.name), known.Float):
            if find.guard(find.find_const, self.func_ir, expr.rhs) == SQUARE:
                value = self.loadvar(expr.lhs.name)
                return self.builder.fmul(value, value)
        return _binop(self, resty, expr, op)

    def _find_singly_assigned_variable(self) -> None:
        """Find variables that need no place in memory, also among those of several blocks."""
        super()._find_singly_assigned_variable()
        blocks = self.blocks
        uses, in_memory = analyses.compute_use_defs(blocks), analyses.must_use_alloca(blocks)
        over = analyses.compute_cfg_from_blocks(blocks).dominators()
        count = Counter[str]()
        place = dict[str, int]()
        for label, block in blocks.items():
            for statement in block.find_insts(nodes.Assign):
                count[statement.target.name] += 1
                place[statement.target.name] = label
        used = {name: list[int]() for name, times in count.items() if times == 1}
        for label, names in uses.usemap.items():
            for name in names:
                if name in used:
                    used[name].append(label)
        for name, labels in used.items():
            first = place[name]
            if name not in in_memory and all(first in over[x] and first < x for x in labels):
                self._singly_assigned_vars.add(name)


class HelperLower(KernelLower):
    """The same for functions that only kernels call: they take tuples as one value."""

    def __init__(self, context: Any, library: Any, fndesc: Any, *others: Any, **named: Any) -> None:
        fndesc.argtypes = Whole(fndesc.argtypes)
        super().__init__(context, library, fndesc, *others, **named)

    def setup_function(self, fndesc: Any) -> None:
        """Say that tuples are defined: LLVM would else keep them whole where it tests a part."""
        super().setup_function(fndesc)
        for given in self.call_conv.get_arguments(self.function):
            if isinstance(given.type, llvm.LiteralStructType):
                given.add_attribute("noundef")


CHANGES: list[tuple[Any, str, Any]] = [(contexts, "get_arg_packer", _packer)]
"""What stands in place of what: owner, name, and the function."""
