"""Kernels that numba compiles when they are first called; the user's own settings of it stay."""

import ctypes
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, ParamSpec, TypeVar, cast

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, config, types
from numba.extending import intrinsic

from bulletbridge.compilation import mode
from bulletbridge.compilation.cache import KernelCache
from bulletbridge.compilation.objects import Late
from bulletbridge.compilation.words import WORD, kinds_of

P = ParamSpec("P")
R = TypeVar("R")

settings: Any = config  # numba fills it at run time
typeof = cast(Callable[[Any], Any], numba.typeof)
KERNELS: list[Any] = []
"""numba's dispatchers of all kernels."""


class InOrder(set[str]):
    """A set whose text is the same in all processes: numba puts it into the names of functions."""

    def __repr__(self) -> str:
        """Its members, sorted."""
        return str(sorted(self))


PLAIN: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "fastmath": InOrder(("contract", "reassoc", "nsz", "arcp")),  # NaN, infinity keep their meaning
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

BUNDLING: dict[str, Any] = {**HELPER, "inline": "always"}


def helper(function: Callable[P, R]) -> Callable[P, R]:
    """Compile into the kernels that call it, inlined; from Python it cannot be called."""
    return cast(Callable[P, R], _kept(function, HELPER))


def bundling(function: Callable[P, R]) -> Callable[P, R]:
    """A helper that puts arguments together for others, as if its text stood in its caller.

    What it returns may hold records, and be as large as it likes: no function returns it.
    """
    return cast(Callable[P, R], numba.njit(**BUNDLING)(function))


def outlined(function: Callable[P, R]) -> Callable[P, R]:
    """A helper that is never inlined: what is rare, or long and called from many places."""
    return cast(Callable[P, R], _kept(function, OUT_OF_LINE))


class Asked(Late):
    """The same, with all that numba and tests ask of its own."""

    def __getattr__(self, name: str) -> Any:
        """What numba's own has of that name."""
        if name.startswith("__") or name == "by_numba":
            raise AttributeError(name)
        return getattr(self.by_numba, name)


def _kept(function: Any, options: dict[str, Any]) -> Any:
    """What numba makes of a helper, which is looked for on disk first if it is linked.

    There are 1,400, and who has all kernels on disk needs none: they are made for what calls them.
    """

    def make() -> Any:
        from bulletbridge.compilation.helper_cache import keep

        dispatcher = cast(Any, numba.njit(**options)(function))
        keep(dispatcher, options["pipeline_class"].lowering.code)
        return dispatcher

    if mode.LINKED:
        return Asked(make, function.__name__)
    return cast(Any, numba.njit(**options)(function))


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile at the first call and keep the result on disk, see ``compilation.cache``.

    Into kernels that call it, it is compiled as a helper is: they take no native code.
    """
    dispatcher = cast(Any, numba.njit(**KERNEL)(function))
    KERNELS.append(dispatcher)
    if hasattr(dispatcher, "_cache"):  # not under NUMBA_DISABLE_JIT
        dispatcher._cache = KernelCache(function, mode.MODE)
        if mode.LINKED:
            linked = cast(Any, helper(function))

            def get_call_template(args: Any, kws: Any) -> Any:
                return linked.get_call_template(args, kws)

            def get_overload(sig: Any) -> Any:
                return linked.get_overload(sig)

            dispatcher.get_call_template = get_call_template
            dispatcher.get_overload = get_overload
    return cast(Callable[P, R], dispatcher)


def deferred(function: Callable[P, R]) -> Callable[P, R]:
    """A helper that is compiled when a kernel first calls it: what is rarely needed, and large.

    It is known by its name, and has no other functions around it.
    """
    assert function.__closure__ is None
    if not mode.LINKED:
        return helper(function)
    from bulletbridge.compilation.deferred import calling

    target = cast(Any, kernel(function))
    KERNELS.remove(target)
    return cast(Callable[P, R], outlined(calling(target)))


def caller(function: Callable[P, R]) -> Callable[P, R]:
    """A kernel that calls others by their blocks, see ``stored_calls``.

    Plain numba leaves it to Python: it is a loop around those others.
    """
    return kernel(function) if mode.LINKED else function


class Machine:
    """What numba has compiled of a kernel for arguments of some types.

    Attributes:
        entry_point: Takes them from Python, without numba's dispatch by types: three quarters of a
            call.
        address: Of native code; 0 under plain numba, which is not called by it.
    """

    def __init__(self, function: Any, arguments: tuple[Any, ...]) -> None:
        signature = tuple(map(typeof, arguments))
        function.compile(signature)
        self.function, self._code = function, function.overloads[signature]
        self.entry_point = self._code.entry_point
        self._layouts: dict[int, str] = {}  # of so many first arguments
        self._rests = set[Any]()  # kinds of last arguments that were compared
        self.address = 0
        if mode.LINKED:
            name = self._code.fndesc.llvm_func_name
            self.address = self._code.library.get_pointer_to_function(name)
            assert self.address

    def require_integer(self) -> None:
        """Refuse a kernel that returns something else."""
        assert types.unliteral(self._code.signature.return_type) == types.int64

    def require_layout(self, fixed: tuple[Any, ...]) -> None:
        """Refuse first arguments that are other words than those that are stored."""
        if not mode.LINKED:
            return
        count = len(fixed)
        if count not in self._layouts:  # numba takes a millisecond to tell
            self._layouts[count] = layout_of(self.function, self._code.signature.args[:count])
        require_layout(self.function, fixed, self._layouts[count])

    def require_rest(self, rest: tuple[Any, ...]) -> None:
        """Refuse last arguments of other types.

        Raises:
            TypeError: They are.
        """
        args = self._code.signature.args
        expected = args[len(args) - len(rest) :]
        kind = kind_of(rest)
        if not mode.LINKED or kind in self._rests:
            return
        if (given := tuple(map(typeof, rest))) != expected:
            raise TypeError(f"arguments to be stored are of {given}, compiled for {expected}")
        self._rests.add(kind)


class Unmade(Machine):
    """In the place of what another process compiles, in calls that nobody makes."""

    def __init__(self, function: Any, arguments: tuple[Any, ...]) -> None:
        self._code: Any = SimpleNamespace(
            signature=types.int64(*map(typeof, arguments)), entry_point=None
        )
        self.function, self.entry_point, self.address = function, None, 1
        self._layouts, self._rests = {}, set()


MACHINES: dict[Any, Machine] = {}
"""By kernel and ``kind_of`` its arguments."""
UNMADE = set[Any]()
"""Kernels that this process takes to be compiled."""


def compiled(function: Any, *arguments: Any) -> Machine | None:
    """What numba has compiled, now or before, for these types; None in plain Python."""
    if not hasattr(function, "overloads"):
        return None
    key = function, kind_of(arguments)
    found = MACHINES.get(key)
    if found is None:
        kind = Unmade if function in UNMADE else Machine
        found = MACHINES[key] = kind(function, arguments)
    return found


def kind_of(value: Any) -> Any:
    """What numba's type of a value depends on; of records it works that out field by field."""
    kind = cast(Any, type(value))
    if tuple in kind.__mro__:  # also those with names
        return kind, *map(kind_of, value)
    if kind is not np.ndarray:
        return typeof(value)
    dtype, flags = value.dtype, value.flags
    layout = flags.c_contiguous, flags.f_contiguous, flags.writeable, flags.aligned
    return dtype, dtype.type, dtype.isalignedstruct, value.ndim, layout


def layout_of(function: Any, kinds: tuple[Any, ...]) -> str:
    """Kinds of words, see ``words.kinds_of``, that a function takes for these types of numba."""
    convention = function.targetctx.call_conv
    own = len(convention.get_function_type(types.int64, ()).args)
    given = convention.get_function_type(types.int64, kinds).args[own:]
    return "".join(
        "p" if isinstance(x, ir.PointerType) else "i" if x == ir.IntType(64) else "?" for x in given
    )


def require_layout(function: Any, arguments: tuple[Any, ...], expected: str) -> None:
    """Compare ``words_of`` with what a function takes, see ``layout_of``.

    Raises:
        TypeError: It has other words: they must not be stored.
    """
    if kinds_of(arguments) != expected:
        name = getattr(function, "__name__", "a kernel")
        raise TypeError(f"{name} takes {expected}, not {kinds_of(arguments)}")


def is_compiled(function: Callable[..., Any]) -> bool:
    """Whether a kernel is ready to run: compiled in this process."""
    return bool(getattr(function, "overloads", True))


def is_cached(function: Any) -> bool:
    """Whether an earlier process left a compiled version of this kernel on disk."""
    cache = getattr(function, "_cache", None)
    return is_compiled(function) if cache is None else cache.holds(function.targetctx)


def leave(function: Any) -> None:
    """Leave a kernel to another process, and have what calls it by its block compiled here."""
    UNMADE.add(function)


def assist(function: Any, compile_it: Callable[[], None]) -> list[Any]:
    """Translate what a kernel calls beside a process that compiles it, see ``assist``.

    Args:
        function: The kernel.
        compile_it: Has it compiled for the arguments that it takes.

    Returns:
        What it calls that is deferred, to be ``compiled``.
    """
    if mode.LINKED and not is_compiled(function):
        from bulletbridge.compilation import assist

        return assist.translate_helpers(function, KERNEL, compile_it)
    return []


def is_plain_python() -> bool:
    """Whether kernels run as plain Python, by NUMBA_DISABLE_JIT."""
    return bool(settings.DISABLE_JIT)


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
        ctypes.CFUNCTYPE(None, ctypes.c_int64)(int(address))(int(phase))
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
