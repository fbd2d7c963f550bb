"""Calls of kernels most of whose arguments stay, from Python and from other kernels.

A call from Python unboxes every argument, 20 to 30 ns for an array, and kernels have thirty. Here
those that stay are unboxed once, into words in memory, and a small compiled function, the same for
all kernels, calls the kernel with them.
"""

import functools
from collections.abc import Callable
from typing import Any, cast

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from bulletbridge.compilation import mode
from bulletbridge.compilation.jit import compiled, kernel

WORD = np.dtype(np.intp)
typeof = cast(Callable[[Any], Any], numba.typeof)


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

    Raises:
        TypeError: Something else, of which numba has no such words.
    """
    found: list[int] = []
    for x in arguments:
        if isinstance(x, tuple):
            found += words_of(cast(tuple[Any, ...], x))
        elif isinstance(x, np.ndarray):
            x = cast(np.ndarray, x)
            found += [0, 0, x.size, x.itemsize, x.ctypes.data, *x.shape, *x.strides]
        elif isinstance(x, (int, np.integer)) and not isinstance(x, bool):
            found.append(int(cast(int, x)))
        else:
            raise TypeError(f"{x!r} cannot be stored: neither an array nor an integer")
    return found


def kinds_of(arguments: tuple[Any, ...]) -> str:
    """What each of ``words_of`` is: a pointer or an integer."""
    found = ""
    for x in arguments:
        if isinstance(x, tuple):
            found += kinds_of(cast(tuple[Any, ...], x))
        else:
            found += "ppiip" + 2 * "i" * x.ndim if isinstance(x, np.ndarray) else "i"
    return found


def require_layout(function: Any, arguments: tuple[Any, ...], kinds: tuple[Any, ...]) -> None:
    """Compare ``words_of`` with what a function takes for arguments of these types of numba.

    Raises:
        TypeError: It has other words: they must not be stored.
    """
    convention = function.targetctx.call_conv
    own = len(convention.get_function_type(types.int64, ()).args)
    given = convention.get_function_type(types.int64, kinds).args[own:]
    expected = "".join(
        "p" if isinstance(x, ir.PointerType) else "i" if x == ir.IntType(64) else "?" for x in given
    )
    if kinds_of(arguments) != expected:
        name = getattr(function, "__name__", "a kernel")
        raise TypeError(f"{name} takes {expected}, not {kinds_of(arguments)}, for {kinds}")


if not mode.LINKED:

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
            if mode.LINKED:
                require_layout(function, fixed, machine.signature.args[: len(fixed)])
                address = machine.library.get_pointer_to_function(machine.fndesc.llvm_func_name)
                assert address
                self._words = np.array([address, *words_of(fixed)], WORD)
            self._rest = machine.signature.args[len(fixed) :]
        self.block = self._store(())
        self.call = self._entry(self.block, examples, fixed)

    def with_rest(self, rest: tuple[Any, ...]) -> Callable[[tuple[()]], int]:
        """The call with the rest stored as well; it takes an empty tuple.

        Raises:
            TypeError: The rest is not of the types of the examples.
        """
        if mode.LINKED and (given := tuple(map(typeof, rest))) != self._rest:
            raise TypeError(f"arguments to be stored are of {given}, compiled for {self._rest}")
        return self._entry(self._store(rest), (), (self._fixed, rest))

    def _store(self, rest: tuple[Any, ...]) -> Any:
        """A block, for what it holds."""
        if not mode.LINKED:
            block = np.empty(1, object)
            block[0] = self._function, (*self._fixed, *rest)
            return block
        words = np.concatenate([self._words, np.array(words_of(rest), WORD)])
        return words.view([("words", WORD, (len(words),))])

    def _entry(self, block: Any, rest: tuple[Any, ...], kept: Any) -> Callable[[Any], int]:
        """Call by a block; whoever has it keeps the arrays."""
        entry = compiled(call_stored, block, rest).entry_point if mode.LINKED else call_stored
        call = functools.partial(entry, block)
        vars(call)["kept"] = kept
        return call
