"""Calls of kernels most of whose arguments stay, from Python and from other kernels.

A call from Python unboxes every argument, 20 to 30 ns for an array, and kernels have thirty. Here
those that stay are unboxed once, into words in memory, and a small compiled function, the same for
all kernels, calls the kernel with them.
"""

import functools
from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numba.core import cgutils, types
from numba.extending import intrinsic

from bulletbridge.compilation.jit import compiled, kernel, settings

WORD = np.dtype(np.intp)


@intrinsic
def _call_stored(_context: Any, block: Any, rest: Any) -> Any:
    """Call the kernel whose address is the first word of the block, with the others and the rest.

    To a compiled function an array is so many words, one after the other, each in an argument of
    its own. That is all that has to be known of those that are stored.
    """
    words = block.dtype.size // WORD.itemsize
    kinds = [types.intp] * (words - 1) + list(rest.types)

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        data = context.make_array(block)(context, builder, arguments[0]).data
        first = builder.bitcast(data, context.get_value_type(types.intp).as_pointer())
        stored = [builder.load(cgutils.gep_inbounds(builder, first, k)) for k in range(words)]
        pointer = context.call_conv.get_function_type(types.int64, kinds).as_pointer()
        given: list[Any] = [*stored[1:], *cgutils.unpack_tuple(builder, arguments[1])]
        status, result = context.call_conv.call_function(
            builder, builder.inttoptr(stored[0], pointer), types.int64, kinds, given
        )
        with cgutils.if_unlikely(builder, status.is_error):
            context.call_conv.return_status_propagate(builder, status)
        return result

    return types.int64(block, rest), generate


def words_of(arguments: tuple[Any, ...]) -> list[int]:
    """Integers, and arrays as numba hands them on: no owner, sizes, place, shape and strides.

    Of a tuple its members, one after the other.
    """
    found: list[int] = []
    for x in arguments:
        if isinstance(x, tuple):
            found += words_of(cast(tuple[Any, ...], x))
        elif isinstance(x, np.ndarray):
            x = cast(np.ndarray, x)
            found += [0, 0, x.size, x.itemsize, x.ctypes.data, *x.shape, *x.strides]
        else:
            found.append(int(x))
    return found


if settings.DISABLE_JIT:

    def call_stored(block: Any, rest: tuple[Any, ...]) -> int:
        """Call the function that a block holds with the arguments there and the rest."""
        function, fixed = block[0]
        return function(*fixed, *rest)
else:

    @kernel
    def call_stored(block: Any, rest: tuple[Any, ...]) -> int:
        """Call the kernel that a block holds with the arguments there and the rest."""
        return _call_stored(block, rest)  # pyright: ignore[reportCallIssue]


class StoredCall:
    """A kernel whose first arguments stay.

    The kernel is called by its address, so that it is neither compiled again nor inlined. Nothing
    is checked: the rest must always have the types and layouts of the examples, as an object that
    owns its arrays can promise.

    Args:
        function: The kernel; it returns an integer.
        fixed: Arrays and integers; kept alive. Arrays may change in place only.
        examples: Of the other arguments.

    Attributes:
        arrays: Those that stay.
        block: (1,) what ``call_stored`` takes in other kernels; those of one kernel may stand in a
            row.
        call: Takes the rest, as one tuple.
    """

    def __init__(
        self, function: Callable[..., int], fixed: tuple[Any, ...], examples: tuple[Any, ...]
    ) -> None:
        self._function, self._fixed = function, fixed
        self.arrays = tuple(cast(np.ndarray, x) for x in fixed if isinstance(x, np.ndarray))
        self._words = np.zeros(0, WORD)
        if hasattr(function, "overloads"):  # not under NUMBA_DISABLE_JIT
            machine = compiled(function, *fixed, *examples)
            assert types.unliteral(machine.signature.return_type) == types.int64
            address = machine.library.get_pointer_to_function(machine.fndesc.llvm_func_name)
            self._words = np.array([address, *words_of(fixed)], WORD)
        self.block = self._store(())
        self.call = self._entry(self.block, examples, fixed)

    def with_rest(self, rest: tuple[Any, ...]) -> Callable[[tuple[()]], int]:
        """The call with the rest stored as well; it takes an empty tuple."""
        return self._entry(self._store(rest), (), (self._fixed, rest))

    def _store(self, rest: tuple[Any, ...]) -> Any:
        """A block, for what it holds."""
        if not len(self._words):
            block = np.empty(1, object)
            block[0] = self._function, (*self._fixed, *rest)
            return block
        words = np.concatenate([self._words, np.array(words_of(rest), WORD)])
        return words.view([("words", WORD, (len(words),))])

    def _entry(self, block: Any, rest: tuple[Any, ...], kept: Any) -> Callable[[Any], int]:
        """Call by a block; whoever has it keeps the arrays."""
        entry = (
            call_stored if not len(self._words) else compiled(call_stored, block, rest).entry_point
        )
        call = functools.partial(entry, block)
        vars(call)["kept"] = kept
        return call
