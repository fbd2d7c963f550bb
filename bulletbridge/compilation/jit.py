"""Decorators that make functions kernels; the user's own numba settings stay."""

import ctypes
import threading
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

import numba
from llvmlite import ir
from numba.core import config, types
from numba.extending import intrinsic

from bulletbridge.compilation import mode
from bulletbridge.compilation.cache import KernelCache

P = ParamSpec("P")
R = TypeVar("R")

settings: Any = config  # numba fills it at run time
PLAIN: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"contract", "reassoc", "nsz", "arcp"},  # NaN and infinity keep their meaning
}
"""Options of ``numba.njit`` that it documents."""
HELPER: dict[str, Any] = PLAIN
OUT_OF_LINE: dict[str, Any] = PLAIN
KERNEL: dict[str, Any] = PLAIN
if mode.LINKED:
    from bulletbridge.compilation.linking import LINKED, NATIVE, OUTLINED

    OPTIONS: dict[str, Any] = {
        **PLAIN,
        "_nrt": False,  # no reference counting: a kernel that allocates does not compile
        "forceinline": True,  # unset, it is inherited from whichever caller is compiled first
    }
    HELPER, KERNEL = {**OPTIONS, **LINKED}, {**OPTIONS, **NATIVE}
    OUT_OF_LINE = {**OPTIONS, **OUTLINED, "forceinline": False}


def helper(function: Callable[P, R]) -> Callable[P, R]:
    """Compile into the kernels that call it, inlined; from Python it cannot be called."""
    return cast(Callable[P, R], numba.njit(**HELPER)(function))


def outlined(function: Callable[P, R]) -> Callable[P, R]:
    """A helper that is never inlined: what is rare, or long and called from many places."""
    return cast(Callable[P, R], numba.njit(**OUT_OF_LINE)(function))


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile at the first call and keep the result on disk, see ``compilation.cache``.

    Into kernels that call it, it is compiled as a helper is: they take no native code.
    """
    dispatcher = cast(Any, numba.njit(**KERNEL)(function))
    if hasattr(dispatcher, "_cache"):  # not under NUMBA_DISABLE_JIT
        dispatcher._cache = KernelCache(function, mode.MODE)
        if mode.LINKED:
            linked = cast(Any, helper(function))
            dispatcher.get_call_template = linked.get_call_template
            dispatcher.get_overload = linked.get_overload
    return cast(Callable[P, R], dispatcher)


def caller(function: Callable[P, R]) -> Callable[P, R]:
    """A kernel that calls others by their blocks, see ``stored_calls``.

    Plain numba leaves it to Python: it is a loop around those others.
    """
    return kernel(function) if mode.LINKED else function


def compiled(function: Any, *arguments: Any) -> Any:
    """What numba has compiled, now or before, for arguments of these types.

    Its entry point does without numba's dispatch by types, three quarters of a call.
    """
    signature = tuple(numba.typeof(argument) for argument in arguments)
    function.compile(signature)
    return function.overloads[signature]


def is_compiled(function: Callable[..., Any]) -> bool:
    """Whether a kernel is ready to run: compiled in this process."""
    return bool(getattr(function, "signatures", [True]))


def is_cached(function: Any) -> bool:
    """Whether an earlier process left a compiled version of this kernel on disk."""
    cache = getattr(function, "_cache", None)
    return is_compiled(function) if cache is None else cache.holds(function.targetctx)


Callback = ctypes.CFUNCTYPE(None, ctypes.c_int64)
"""C signature of a Python function that a kernel calls back: one integer, the phase."""


@intrinsic
def _call_address(_context: Any, address: Any, phase: Any) -> Any:
    """Call the C function at ``address`` with ``phase`` (both int64)."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        integer = ir.IntType(64)
        pointer = ir.FunctionType(ir.VoidType(), [integer]).as_pointer()
        builder.call(builder.inttoptr(arguments[0], pointer), [arguments[1]])
        return _context.get_dummy_value()

    return types.void(address, phase), generate


@intrinsic
def _add_one(_context: Any, counter: Any) -> Any:
    """Add one to the first entry at one go, whatever other threads do; what it was before."""

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        data = context.make_array(counter)(context, builder, arguments[0]).data
        return builder.atomic_rmw("add", data, ir.Constant(ir.IntType(64), 1), "monotonic")

    return types.int64(counter), generate


if settings.DISABLE_JIT:

    def call_back(address: int, phase: int) -> None:
        """Run the Python function behind ``address``."""
        Callback(address)(phase)
else:

    @helper
    def call_back(address: int, phase: int) -> None:
        """Run the Python function behind ``address`` from compiled code."""
        _call_address(address, phase)  # pyright: ignore[reportCallIssue]


if not mode.LINKED:
    _one_at_a_time = threading.Lock()

    def take_number(counter: Any) -> int:
        """Next number of a counter (1,) int64 that threads share, for a ``caller``."""
        with _one_at_a_time:
            counter[0] += 1
            return int(counter[0]) - 1
else:

    @helper
    def take_number(counter: Any) -> int:
        """Next number of a counter (1,) int64 that threads share."""
        return _add_one(counter)  # pyright: ignore[reportCallIssue]
