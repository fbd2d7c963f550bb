"""Functions that kernels call and that are compiled when one first does: what is needed rarely.

Each is a kernel of its own, and all that call it share it. In its place stand the types that it
takes, and room for its address; what it returns is said by its annotation, so that whatever calls
it is compiled without it. A wheel brings it beside the kernels, see ``release/emit.py``.
"""

import ctypes
import pickle
import re
from _thread import interrupt_main
from collections.abc import Callable
from threading import RLock
from typing import Any, NamedTuple, cast, get_args

import numba
from llvmlite import binding, ir
from numba.core import cgutils, serialize, types
from numba.extending import intrinsic
from numba.np import numpy_support

from bulletbridge.compilation.keys import DIGITS, key_of
from bulletbridge.compilation.progress import Announcement

llvm: Any = binding
known: Any = types
build: Any = cgutils
RESOLVE = "bulletbridge_resolve"
"""What kernels ask for addresses: (key and ``Target``, bytes) -> address, or 0."""
SAID = "deferred."
"""Beginning of the names of variables in which a ``Target`` is."""
DEFERRED: dict[tuple[str, str], Any] = {}
"""All of them, by module and name."""
WORD = ir.IntType(64)
ONE_AT_A_TIME = RLock()
"""Of threads that ask for the same, the first has it compiled."""


class Target(NamedTuple):
    """What is to be compiled: its place in ``DEFERRED``, and types of its arguments."""

    module: str
    name: str
    types: tuple[Any, ...]

    @property
    def kernel(self) -> Any:
        """Of ``DEFERRED``: whoever runs what calls it has its module."""
        return DEFERRED[self.module, self.name]

    @property
    def signature(self) -> Any:
        """The same types, with that of what it returns."""
        return returned_by(self.kernel)(*self.types)

    def compiled(self) -> Any:
        """What numba makes of it, or has made."""
        kernel = self.kernel
        at_hand = kernel.overloads or kernel._cache.holds(kernel.targetctx)
        with Announcement(kernel, not at_hand):
            kernel.compile(self.signature)
        return kernel.overloads[self.types]


def example_of(annotation: Any) -> Any:
    """A value of a type: a number, nothing, or a tuple of such, with names or without."""
    if annotation is None or annotation in (int, float, bool):
        return annotation and annotation()
    parts = get_args(annotation)
    if parts:
        return tuple(map(example_of, parts))
    return annotation(*map(example_of, annotation.__annotations__.values()))


def returned_by(kernel: Any) -> Any:
    """numba's type of what a kernel is annotated to return; what it does return is made that."""
    return numba.typeof(example_of(kernel.py_func.__annotations__["return"]))


def address_of(target: Target) -> int:
    """Of native code, compiled now or read from disk.

    An interrupt has to wait: a kernel is running.
    """
    interrupted = False
    while True:
        try:
            with ONE_AT_A_TIME:
                code = target.compiled()
        except KeyboardInterrupt:
            interrupted = True
            continue
        if interrupted:
            interrupt_main()
        return code.library.get_pointer_to_function(code.fndesc.llvm_func_name)


@ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)
def resolve(place: int, size: int) -> int:
    """Of what a kernel has there."""
    return address_of(target_from(ctypes.string_at(place, size)))


llvm.add_symbol(RESOLVE, ctypes.cast(resolve, ctypes.c_void_p).value)


def target_from(text: bytes) -> Target:
    """What stands behind a key."""
    return Target(*pickle.loads(text[DIGITS:]))


def byte_of(escape: re.Match[bytes]) -> bytes:
    """What LLVM writes as a backslash and two digits, or as two backslashes."""
    return escape[1] if escape[1] == b"\\" else bytes.fromhex(escape[1].decode())


def called_in(module: Any) -> dict[str, Target]:
    """What a module of LLVM's calls of these, by key."""
    found = dict[str, Target]()
    for one in module.global_variables:
        if one.name.startswith(SAID):
            text = str(one).partition('c"')[2].rpartition('"')[0].encode()
            raw = re.sub(rb"\\(\\|[0-9A-F]{2})", byte_of, text)
            found[raw[:DIGITS].decode()] = target_from(raw)
    return found


@intrinsic
def call_deferred(_context: Any, function: Any, given: Any) -> Any:
    """Call a kernel of ``DEFERRED`` with a tuple of arguments."""
    python = function.dispatcher.py_func
    returned = returned_by(function.dispatcher)
    kinds: tuple[Any, ...] = tuple(map(known.unliteral, given.types))
    target = Target(python.__module__, python.__qualname__, kinds)
    key = key_of(python, __name__, kinds) or "0" * DIGITS

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        new = builder.module.get_unique_name
        text = bytearray(key.encode() + cast(Any, serialize).dumps(tuple(target)))
        kind = ir.ArrayType(ir.IntType(8), len(text))
        said: Any = ir.GlobalVariable(builder.module, kind, new(SAID + python.__name__))
        slot: Any = ir.GlobalVariable(builder.module, WORD, new("address"))
        said.initializer, slot.initializer = ir.Constant(kind, text), ir.Constant(WORD, 0)
        said.linkage = slot.linkage = "internal"
        with build.if_unlikely(builder, build.is_null(builder, load(builder, slot))):
            asks = ir.FunctionType(WORD, [context.get_value_type(types.voidptr), WORD])
            ask = build.get_or_insert_function(builder.module, asks, RESOLVE)
            place = builder.bitcast(said, asks.args[0])
            found = builder.call(ask, [place, WORD(len(text))])
            with build.if_unlikely(builder, build.is_null(builder, found)):
                why = f"{python.__name__} cannot be compiled"
                context.call_conv.return_user_exc(builder, RuntimeError, (why,))
            builder.store_atomic(found, slot, "monotonic", WORD.width // 8)
        parts: list[Any] = build.unpack_tuple(builder, arguments[1])
        values = [
            in_few_words(context, builder, after, context.cast(builder, value, before, after))
            for value, before, after in zip(parts, given.types, kinds, strict=True)
        ]
        pointer = context.call_conv.get_function_type(returned, kinds).as_pointer()
        native = builder.inttoptr(load(builder, slot), pointer)
        status, result = context.call_conv.call_function(builder, native, returned, kinds, values)
        with build.if_unlikely(builder, status.is_error):
            context.call_conv.return_status_propagate(builder, status)
        return result

    return returned(function, given), generate


def calling(target: Any) -> Callable[..., Any]:
    """What calls a kernel, one of ``DEFERRED`` from now on."""
    DEFERRED[target.__module__, target.__qualname__] = target

    def call(*given: Any) -> Any:
        return call_deferred(target, given)  # pyright: ignore[reportCallIssue]

    return call


def in_few_words(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """The same value; of arrays all that follows from data and shape is worked out anew.

    Whatever calls would else have to hand it on, on ways on which nothing is called mostly.
    """
    if isinstance(kind, known.BaseTuple):
        words = [
            in_few_words(context, builder, part, one)
            for part, one in zip(kind.types, build.unpack_tuple(builder, value), strict=True)
        ]
        return context.make_tuple(builder, kind, words)
    if not isinstance(kind, known.Array):
        return value
    array = context.make_array(kind)
    before, after = array(context, builder, value), array(context, builder)
    size = WORD(numpy_support.as_dtype(kind.dtype).itemsize)
    shape, count, strides = build.unpack_tuple(builder, before.shape), WORD(1), list[Any]()
    for length in reversed(shape):
        strides.insert(0, builder.mul(count, size))
        count = builder.mul(count, length)
    after.meminfo = ir.Constant(before.meminfo.type, None)
    after.parent = ir.Constant(before.parent.type, None)
    after.nitems, after.itemsize, after.data, after.shape = count, size, before.data, before.shape
    after.strides = build.pack_array(builder, strides) if kind.layout == "C" else before.strides
    return after._getvalue()


def load(builder: Any, slot: Any) -> Any:
    """What another thread may just be writing."""
    return builder.load_atomic(slot, "monotonic", WORD.width // 8)
