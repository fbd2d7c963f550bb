"""numba's translation of a function to LLVM, with less written out.

A tuple of a system's arrays is up to a thousand words. numba copies a variable to memory and back
for each block of statements that names it, and hands every word to a function as an argument of its
own. Here what is assigned once is a value of LLVM, wherever it is used, and functions that stay out
of line take the address of a tuple.
"""

from typing import Any

from llvmlite import ir
from numba.core import analysis, base, datamodel, lowering, types

known: Any = types
analyses: Any = analysis
context_of_numba: Any = base.BaseContext
models_of_numba: Any = datamodel
lowering_of_numba: Any = lowering
FEW = 200
"""Words of a tuple up to which they are arguments: those of them that a function has no use for are
left out, and steps without contacts would take a twentieth longer."""


class InMemory(tuple[Any, ...]):
    """Types of arguments, of which long tuples are handed on by their address."""


class ByAddress:
    """How such a tuple is handed on.

    Args:
        model: numba's of its type.
    """

    def __init__(self, model: Any) -> None:
        self._model = model

    def get_argument_type(self) -> Any:
        """A pointer."""
        return self._model.get_value_type().as_pointer()

    def as_argument(self, builder: Any, value: Any) -> Any:
        """Where the tuple lies."""
        return address_of(builder, value)

    def from_argument(self, builder: Any, value: Any) -> Any:
        """The tuple that lies there."""
        found = builder.load(value)
        found.lies_at = value
        return found


def address_of(builder: Any, value: Any) -> Any:
    """Where a value lies in memory, to which nobody writes.

    That is part of an argument, or it is put there for a call: not before, since most calls out of
    line are rare, and once for those in one block.
    """
    found = getattr(value, "lies_at", None)
    if found is not None:
        return found
    here = builder.block
    block, slot = getattr(value, "put_at", (None, None))
    if block is here:
        return slot
    whole = getattr(getattr(value, "aggregate", None), "lies_at", None)
    if whole is not None:
        builder.position_after(value)
        indices = [ir.IntType(32)(k) for k in (0, *value.indices)]
        value.lies_at = builder.gep(whole, indices, inbounds=True)
        builder.position_at_end(here)
        return value.lies_at
    builder.position_at_start(builder.function.entry_basic_block)
    slot = builder.alloca(value.type)
    builder.position_at_end(here)
    builder.store(value, slot)
    value.put_at = here, slot
    return slot


class Packer(models_of_numba.ArgPacker):
    """Hands arguments to a function that is out of line."""

    def __init__(self, models: Any, kinds: InMemory) -> None:
        super().__init__(models, kinds)
        own = [self._model(model) for model in self._dm_args]
        given = [model.get_argument_type() for model in own]
        self._dm_args, self._unflattener = own, type(self._unflattener)(given)
        self._be_args = list(words(given))

    def _model(self, model: Any) -> Any:
        many = len(list(words([model.get_argument_type()]))) > FEW
        return ByAddress(model) if many and isinstance(model.fe_type, known.BaseTuple) else model


def words(given: Any) -> Any:
    """Members of nested tuples, one after the other."""
    for one in given:
        if isinstance(one, (tuple, list)):
            yield from words(one)
        else:
            yield one


_given: Any = context_of_numba.get_arg_packer


def packer_of(self: Any, kinds: Any) -> Any:
    """A context's way to hand arguments of these types to a function."""
    if isinstance(kinds, InMemory):
        return Packer(self.data_model_manager, kinds)
    return _given(self, kinds)


class Lower(lowering_of_numba.Lower):
    """The same with variables in memory that are assigned more than once alone."""

    def _find_singly_assigned_variable(self) -> None:
        """Add those that are assigned before, and on every way to, all of their uses."""
        super()._find_singly_assigned_variable()
        blocks = self.func_ir.blocks
        found = analyses.compute_use_defs(blocks)
        above = analyses.compute_cfg_from_blocks(blocks).dominators()
        assigned: dict[str, list[int]] = {}
        for label, block in blocks.items():
            for one in block.find_insts(lowering_of_numba.ir.Assign):
                assigned.setdefault(one.target.name, []).append(label)
        used: dict[str, set[int]] = {}
        for label, names in found.usemap.items():
            for name in names:
                used.setdefault(name, set()).add(label)
        for name, (label, *others) in assigned.items():
            if not others and all(
                label < other and label in above.get(other, ()) for other in used.get(name, ())
            ):
                self._singly_assigned_vars.add(name)

    def storevar(self, value: Any, name: str, argidx: Any = None) -> None:
        """Store, without what was there before: nobody counts references to it."""
        self._alloca_var(name, self.typeof(name))
        if name in self._singly_assigned_vars and not self._disable_sroa_like_opt:
            self._blk_local_varmap[name] = value
        else:
            self.builder.store(value, self.getvar(name))


class OutOfLineLower(Lower):
    """The same for a function that takes tuples by their address."""

    def __init__(self, context: Any, library: Any, fndesc: Any, *given: Any, **named: Any) -> None:
        fndesc.argtypes = InMemory(fndesc.argtypes)
        super().__init__(context, library, fndesc, *given, **named)
