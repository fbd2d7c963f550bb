"""How functions become kernels; nothing here changes the user's own numba settings."""

import ctypes
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

import numba
from llvmlite import ir
from numba.core import config, types
from numba.extending import intrinsic

from bulletbridge.compilation.cache import KernelCache
from bulletbridge.compilation.linking import LINKED, NATIVE, OUTLINED

P = ParamSpec("P")
R = TypeVar("R")

settings: Any = config  # numba fills it at run time
OPTIONS: dict[str, Any] = {
    "_nrt": False,  # no reference counting: a kernel that allocates does not compile
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"contract", "reassoc", "nsz", "arcp"},  # NaN and infinity keep their meaning
    "forceinline": True,  # unset, it is inherited from whichever caller is compiled first
}

OUT_OF_LINE: dict[str, Any] = {**OPTIONS, "forceinline": False}


def helper(function: Callable[P, R]) -> Callable[P, R]:
    """Compile into the kernels that call it, inlined; from Python it cannot be called."""
    return cast(Callable[P, R], numba.njit(**LINKED, **OPTIONS)(function))


def outlined(function: Callable[P, R]) -> Callable[P, R]:
    """A helper that is never inlined: what is rare, or long and called from many places."""
    return cast(Callable[P, R], numba.njit(**OUTLINED, **OUT_OF_LINE)(function))


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile at the first call and keep the result on disk, see ``compilation.cache``.

    Into kernels that call it, it is compiled as a helper is: they take no native code.
    """
    dispatcher = cast(Any, numba.njit(**NATIVE, **OPTIONS)(function))
    if hasattr(dispatcher, "_cache"):  # not under NUMBA_DISABLE_JIT
        dispatcher._cache = KernelCache(function)
        linked = cast(Any, helper(function))
        dispatcher.get_call_template = linked.get_call_template
        dispatcher.get_overload = linked.get_overload
    return cast(Callable[P, R], dispatcher)


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

    def take_number(counter: Any) -> int:
        """Next number of a counter (1,) int64."""
        counter[0] += 1
        return int(counter[0]) - 1
else:

    @helper
    def call_back(address: int, phase: int) -> None:
        """Run the Python function behind ``address`` from compiled code."""
        _call_address(address, phase)  # pyright: ignore[reportCallIssue]

    @helper
    def take_number(counter: Any) -> int:
        """Next number of a counter (1,) int64 that threads share."""
        return _add_one(counter)  # pyright: ignore[reportCallIssue]
