"""Machine code of kernels for wheels: compiled as in any process, made into shared objects.

numba translates each kernel, with all that it calls, to LLVM's language once; for every level of
processors that is optimised and made native by itself. Beside it goes an entry point for Python,
written here, which reads numbers, tuples and arrays where they lie in memory: numba's own need
numba. What entry points expect is read by ``objects``.
"""

import json
import multiprocessing
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from itertools import starmap
from pathlib import Path
from typing import Any, NamedTuple, cast

import numba
from llvmlite import binding, ir
from numba.core import compiler_machinery, types
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target
from numba.np import numpy_support

from bulletbridge.compilation.by_numba import KERNEL, KERNELS
from bulletbridge.compilation.cache import source_hash
from bulletbridge.compilation.deferred import RESOLVE, Target, called_in
from bulletbridge.compilation.keys import DIGITS
from bulletbridge.compilation.linking import (
    KernelCode,
    KernelCompiler,
    KernelLowering,
    NotNative,
    optimise,
)
from bulletbridge.compilation.objects import (
    C_CONTIGUOUS,
    DATA,
    DESCR,
    DIMENSIONS,
    FLAGS,
    FORMAT,
    LEVELS,
    NDIM,
    OB_TYPE,
    STRIDES,
    WRITEABLE,
    Kind,
    described,
    path_of,
)

llvm: Any = binding  # no types, nor has numba any
unliteral: Any = cast(Any, types).unliteral
machinery: Any = compiler_machinery
PYTHON = {
    "PyBool_FromLong",
    "PyErr_Clear",
    "PyErr_Occurred",
    "PyErr_SetString",
    "PyEval_RestoreThread",
    "PyEval_SaveThread",
    "PyExc_RuntimeError",
    "PyExc_TypeError",
    "PyFloat_AsDouble",
    "PyFloat_FromDouble",
    "PyLong_AsLongLong",
    "PyLong_FromLongLong",
    "PyObject_IsTrue",
    "PyTuple_GetItem",
    "PyTuple_New",
    "PyTuple_SetItem",
    "PyTuple_Size",
    "Py_IncRef",
    "_Py_NoneStruct",
    "_Py_NotImplementedStruct",
}
"""What entry points use of Python: all of it in its stable ABI."""
OPTIONAL = {
    "__cxa_finalize",
    "__gmon_start__",
    "_ITM_deregisterTMCloneTable",
    "_ITM_registerTMCloneTable",
}
"""What the compiler's own start files ask for, if it is there."""
LIBRARIES = re.compile(r"lib(m|c|gcc_s)\.so|ld-linux")
"""Shared objects that may be needed: parts of every Linux of that libc."""
RESHAPE = """
#include <stdint.h>
int numba_attempt_nocopy_reshape(
    intptr_t ndim, const intptr_t *shape, const intptr_t *strides, intptr_t new_ndim,
    const intptr_t *new_shape, intptr_t *new_strides, intptr_t size, int fortran)
{
    for (intptr_t k = new_ndim - 1; k >= 0; k--) {
        new_strides[k] = size;
        size *= new_shape[k];
    }
    return 1;
}
"""
"""What numba calls for ``reshape``, which it compiles for contiguous arrays alone; in C."""
FIND = """
#include <string.h>
%s
int64_t %s(const char *text, int64_t size)
{
    static const struct { const char *key; void (*native)(void); } all[] = {%s {0, 0}};
    for (int i = 0; all[i].key; i++)
        if (!memcmp(text, all[i].key, %d))
            return (int64_t) all[i].native;
    return 0;
}
"""
"""What kernels ask for functions that they call and that are kernels of their own; in C."""
RENEWED = {"exp": 1, "exp2": 1, "fmod": 2, "hypot": 2, "log": 1, "log2": 1, "pow": 2}
"""Functions that later versions of glibc have anew, without ``errno`` of old, and how many numbers
they take. Their first form is on every Linux, and computes the same."""
FIRST = "GLIBC_2.2.5"
OLDEST = 2, 17
"""The oldest libc that is asked for, that of manylinux2014."""
WORD, SMALL, REAL = ir.IntType(64), ir.IntType(32), ir.DoubleType()
POINTER = ir.IntType(8).as_pointer()
NONE = -2
"""Status with which numba's functions return None."""


class CannotEmitError(Exception):
    """A kernel that cannot be brought as machine code; the text says why."""


class CapturedCode(KernelCode):
    """A kernel with all that it calls, not optimised yet for any processor."""

    def _optimize_final_module(self) -> None:
        """Only link all of it, and hide it."""
        self.link_what_is_apart()
        self.require_linked()
        self.hide_others()

    def _finalize_final_module(self) -> None:
        self._finalized = True


@machinery.register_pass(mutates_CFG=True, analysis_only=False)
class CapturedLowering(KernelLowering):
    """numba's translation of a function to LLVM, into ``CapturedCode``."""

    _name = "captured_lowering"
    code = CapturedCode

    def run_pass(self, state: Any) -> bool:
        """Translate, and no more."""
        state.flags.no_compile = True
        super().run_pass(state)
        state["cr"] = state["cr"]._replace(cfunc=NotNative().__getitem__)
        return True


class CapturedCompiler(KernelCompiler):
    """The same with ``CapturedLowering``."""

    lowering = CapturedLowering


CAPTURED: dict[str, Any] = {
    **KERNEL,
    "pipeline_class": CapturedCompiler,
    "no_cpython_wrapper": True,
}


class Dtypes:
    """The dtypes of all arrays that kernels take, each with its number."""

    def __init__(self) -> None:
        self.texts: list[Any] = []

    def number(self, dtype: Any) -> int:
        """Of a dtype, new or not."""
        text = json.loads(json.dumps(described(dtype)))
        if text not in self.texts:
            self.texts.append(text)
        return self.texts.index(text)


def kind_of(given: Any, dtypes: Dtypes) -> Kind:
    """What a type of numba is in the manifest.

    Raises:
        CannotEmitError: Something that no kernel has taken so far.
    """
    kind: Any = unliteral(given)
    if kind == types.int64:
        return ["int"]
    if kind == types.float64:
        return ["float"]
    if kind == types.boolean:
        return ["bool"]
    if kind == types.none:
        return ["none"]
    if isinstance(kind, types.BaseTuple):
        return ["tuple", [kind_of(part, dtypes) for part in cast(Any, kind).types]]
    if isinstance(kind, types.Array) and cast(Any, kind).layout in "CA":
        array = cast(Any, kind)
        number = dtypes.number(numpy_support.as_dtype(array.dtype))
        return ["array", number, array.ndim, array.layout, bool(array.mutable)]
    raise CannotEmitError(f"arguments of type {kind} are not for machine code")


class Entry:
    """Writes the function by which Python calls a kernel.

    Args:
        module: It is written there.
        name: What it is to be called.
        native: The kernel, declared there.
        slots: Addresses of numpy's array type and of the dtypes, likewise.
        trusting: Leave types and layouts of arrays to the caller, as ``StoredCall`` does; other
            arguments are an error then.
    """

    def __init__(self, module: Any, name: str, native: Any, slots: Any, trusting: bool) -> None:
        self._module, self._native, self._slots = module, native, slots
        self._trusting = trusting
        kind = ir.FunctionType(POINTER, [POINTER, POINTER, WORD])
        self.function = ir.Function(module, kind, name)
        self.builder: Any = ir.IRBuilder(self.function.append_basic_block())
        self._mismatch = self.function.append_basic_block("mismatch")

    def write(self, takes: list[Kind], sizes: list[int], returns: Kind) -> None:
        """All of it.

        Args:
            takes: Kinds of the arguments.
            sizes: Bytes of an entry of each dtype.
            returns: Kind of what comes back.
        """
        b, (_, arguments, count) = self.builder, self.function.args
        self._require(b.icmp_signed("==", count, self._word(len(takes))))
        given: list[Any] = []
        for k, kind in enumerate(takes):
            pointer = self._at(b.ptrtoint(arguments, WORD), 8 * k, WORD)
            given += self._words(pointer, kind, sizes)
        own, wanted = self._native.args[:2], self._native.args[2:]
        assert len(given) == len(wanted)
        result, error = (b.alloca(x.type.pointee) for x in own)
        b.store(ir.Constant(own[1].type.pointee, None), error)
        fitting = [self._as(x, a.type) for x, a in zip(given, wanted, strict=True)]
        thread = self._call("PyEval_SaveThread", POINTER)
        status = b.call(self._native, [result, error, *fitting], attrs=("noinline",))
        self._call("PyEval_RestoreThread", ir.VoidType(), thread)
        done = b.or_(
            b.icmp_signed("==", status, SMALL(0)), b.icmp_signed("==", status, SMALL(NONE))
        )
        with b.if_then(b.not_(done), likely=False):
            self._fail("PyExc_RuntimeError", "a kernel failed")
        b.ret(self._boxed(b.load(result), returns))
        b.position_at_end(self._mismatch)
        self._call("PyErr_Clear", ir.VoidType())
        if self._trusting:
            self._fail("PyExc_TypeError", "the arguments are not those that were compiled for")
            return
        b.ret(self._singleton("_Py_NotImplementedStruct"))

    def _word(self, value: int) -> Any:
        return ir.Constant(WORD, value)

    def _at(self, address: Any, offset: int, kind: Any) -> Any:
        """What lies so many bytes after an address."""
        b = self.builder
        return b.load(b.inttoptr(b.add(address, self._word(offset)), kind.as_pointer()))

    def _require(self, holds: Any) -> None:
        """Go on if something holds; else say that these are other arguments."""
        going_on = self.function.append_basic_block()
        self.builder.cbranch(holds, going_on, self._mismatch)
        self.builder.position_at_end(going_on)

    def _call(self, name: str, returns: Any, *arguments: Any) -> Any:
        """A function of Python."""
        found = self._module.globals.get(name)
        if found is None:
            kind = ir.FunctionType(returns, [x.type for x in arguments])
            found = ir.Function(self._module, kind, name)
        return self.builder.call(found, arguments)

    def _global(self, name: str) -> Any:
        """Where a variable of Python is."""
        found = self._module.globals.get(name)
        return found or ir.GlobalVariable(self._module, ir.IntType(8), name)

    def _singleton(self, name: str) -> Any:
        """One of Python's objects of which there is one, to be returned."""
        found = self.builder.bitcast(self._global(name), POINTER)
        self._call("Py_IncRef", ir.VoidType(), found)
        return found

    def _fail(self, kind_of_error: str, text: str) -> None:
        """Return an error."""
        b = self.builder
        content = bytearray(text.encode() + b"\0")
        kind = ir.ArrayType(ir.IntType(8), len(content))
        name = self._module.get_unique_name("text")
        said: Any = ir.GlobalVariable(self._module, kind, name)
        said.initializer, said.linkage = ir.Constant(kind, content), "internal"
        error = b.bitcast(self._global(kind_of_error), POINTER.as_pointer())
        self._call("PyErr_SetString", ir.VoidType(), b.load(error), b.bitcast(said, POINTER))
        b.ret(ir.Constant(POINTER, None))

    def _words(self, address: Any, kind: Kind, sizes: list[int]) -> list[Any]:
        """The words of an object of Python, or a mismatch."""
        b = self.builder
        what, *of = kind
        pointer = b.inttoptr(address, POINTER)
        if what == "array":
            return self._words_of_array(address, sizes[cast(int, of[0])], *of)
        if what == "tuple":
            size = self._call("PyTuple_Size", WORD, pointer)
            self._require(b.icmp_signed("==", size, self._word(len(of[0]))))
            found: list[Any] = []
            for k, part in enumerate(of[0]):
                item = self._call("PyTuple_GetItem", POINTER, pointer, self._word(k))
                found += self._words(b.ptrtoint(item, WORD), part, sizes)
            return found
        if what == "bool":
            return [b.sext(self._call("PyObject_IsTrue", SMALL, pointer), WORD)]
        if what == "int":
            value = self._call("PyLong_AsLongLong", WORD, pointer)
            doubtful = b.icmp_signed("==", value, self._word(-1))
        else:
            value = self._call("PyFloat_AsDouble", REAL, pointer)
            doubtful = b.fcmp_ordered("==", value, ir.Constant(REAL, -1.0))
        with b.if_then(doubtful, likely=False):
            self._require(
                b.icmp_unsigned(
                    "==", self._call("PyErr_Occurred", POINTER), ir.Constant(POINTER, None)
                )
            )
        return [value]

    def _words_of_array(
        self, address: Any, size: int, number: int, ndim: int, layout: str, writeable: bool
    ) -> list[Any]:
        """No owner, sizes, place, shape and strides, as in ``words.words_of``."""
        b = self.builder
        first = b.ptrtoint(self._slots, WORD)
        asked: int = C_CONTIGUOUS * (layout == "C") | WRITEABLE * writeable
        flags = b.and_(self._at(address, FLAGS, SMALL), SMALL(asked))
        checks = [
            (self._at(address, OB_TYPE, WORD), self._at(first, 0, WORD)),
            (self._at(address, NDIM, SMALL), SMALL(ndim)),
            (self._at(address, DESCR, WORD), self._at(first, 8 * (1 + number), WORD)),
            (flags, SMALL(asked)),
        ]
        for found, expected in checks[:2] if self._trusting else checks:
            self._require(b.icmp_signed("==", found, expected))
        lists = [self._at(address, offset, WORD) for offset in (DIMENSIONS, STRIDES)]
        shape, strides = ([self._at(x, 8 * k, WORD) for k in range(ndim)] for x in lists)
        count = self._word(1)
        for length in shape:
            count = b.mul(count, length)
        none = self._word(0)
        data = self._at(address, DATA, WORD)
        return [none, none, count, self._word(size), data, *shape, *strides]

    def _as(self, value: Any, kind: Any) -> Any:
        """A word in the type in which the kernel takes it."""
        b = self.builder
        if isinstance(kind, ir.PointerType):
            return b.inttoptr(value, kind)
        if isinstance(kind, ir.IntType) and kind != WORD:
            return b.trunc(value, kind)
        return value

    def _boxed(self, value: Any, kind: Kind) -> Any:
        """An object of Python for what a kernel has returned."""
        b = self.builder
        what, *of = kind
        if what == "none":
            return self._singleton("_Py_NoneStruct")
        if what == "int":
            return self._call("PyLong_FromLongLong", POINTER, value)
        if what == "float":
            return self._call("PyFloat_FromDouble", POINTER, value)
        if what == "bool":
            return self._call("PyBool_FromLong", POINTER, b.zext(value, WORD))
        made = self._call("PyTuple_New", POINTER, self._word(len(of[0])))
        for k, part in enumerate(of[0]):
            item = self._boxed(b.extract_value(value, k), part)
            self._call("PyTuple_SetItem", SMALL, made, self._word(k), item)
        return made


class Captured(NamedTuple):
    """One form of a kernel, in LLVM's language.

    Attributes:
        path: The kernel, as in ``objects.path_of``.
        source: Its file.
        entry: What the manifest says of it; nothing of what kernels alone call.
        bitcode: With its entry point, not optimised.
        deferred: What it calls that is a kernel of its own, by key.
    """

    path: str
    source: Path
    entry: dict[str, Any] | None
    bitcode: bytes
    deferred: dict[str, Target]


def capture(kernel: Any, signature: Any, number: int, dtypes: Dtypes) -> Captured:
    """Translate a kernel for arguments of these types of numba, and write its entry point, if any.

    Raises:
        CannotEmitError: It takes or returns something that entry points do not know.
    """
    dispatcher = cast(Any, numba.njit(**CAPTURED)(kernel.py_func))
    arguments: tuple[Any, ...] = tuple(map(unliteral, getattr(signature, "args", signature)))
    dispatcher.compile(signature)
    code = dispatcher.overloads[arguments]
    library, returned = code.library, unliteral(code.signature.return_type)
    with global_compiler_lock:
        library._ensure_finalized()
    final = library._final_module
    native, entry = f"native_{number}", f"entry_{number}"
    final.get_function(code.fndesc.llvm_func_name).name = native
    path, source, told = path_of(kernel.py_func, source_of(kernel)), source_of(kernel), None
    if kernel in KERNELS:
        takes, returns = [kind_of(one, dtypes) for one in arguments], kind_of(returned, dtypes)
        told = {"takes": takes, "returns": returns, "native": native, "entry": entry}
        convention = dispatcher.targetctx.call_conv
        module = ir.Module()
        module.triple, module.data_layout = final.triple, str(final.data_layout)
        declared = ir.Function(module, convention.get_function_type(returned, arguments), native)
        slots = ir.GlobalVariable(module, ir.IntType(8), "slots")
        sizes = [entry_size(text) for text in dtypes.texts]
        trusting = kernel.py_func.__name__ == "call_stored"
        Entry(module, entry, declared, slots, trusting).write(takes, sizes, returns)
        final.link_in(llvm.parse_assembly(str(module)))
    final.verify()
    return Captured(path, source, told, final.as_bitcode(), called_in(final))


def source_of(kernel: Any) -> Path:
    """The file of a kernel."""
    return Path(kernel.py_func.__code__.co_filename)


def entry_size(text: Any) -> int:
    """Bytes of an entry of an array, by what the manifest says of its dtype."""
    from bulletbridge.compilation.objects import dtype_from

    return dtype_from(text).itemsize


def specific_first(entry: dict[str, Any]) -> tuple[int, ...]:
    """Order of a kernel's forms: those that ask for more before those that take more."""
    text = json.dumps(entry["takes"])
    return text.count('"A"'), text.count("false")


def make_native(level: str, bitcode: bytes, place: Path) -> Path:
    """An object file of one module for a level of processors."""
    module = llvm.parse_bitcode(bitcode)
    target = llvm.Target.from_triple(llvm.get_process_triple())
    machine = target.create_target_machine(
        cpu=level, features="", opt=3, reloc="pic", codemodel="default"
    )
    codegen = cast(Any, cpu_target).target_context.codegen()
    codegen._tm = machine
    optimise(codegen, module)
    place.write_bytes(machine.emit_object(module))
    return place


def slots_module(count: int) -> bytes:
    """The module of the table in which entry points look types up."""
    module = ir.Module()
    module.triple = llvm.get_process_triple()
    kind = ir.ArrayType(WORD, count)
    slots: Any = ir.GlobalVariable(module, kind, "slots")
    slots.initializer = ir.Constant(kind, None)
    return llvm.parse_assembly(str(module)).as_bitcode()


def in_first_form(name: str, count: int) -> str:
    """C that calls a function of glibc as it was at first."""
    takes, given = ", ".join(["double"] * count), ", ".join("xy"[:count])
    named = ", ".join(f"double {x}" for x in "xy"[:count])
    return (
        f'__asm__(".symver first_{name},{name}@{FIRST}");\ndouble first_{name}({takes});\n'
        f"double __wrap_{name}({named}) {{ return first_{name}({given}); }}\n"
    )


def find_deferred(natives: dict[str, str]) -> str:
    """C that finds functions by their keys."""
    declared = "".join(f"void {name}(void);\n" for name in natives.values())
    table = "".join(f'{{"{key}", {name}}}, ' for key, name in natives.items())
    return FIND % (declared, RESOLVE, table, DIGITS)


def link(parts: Iterable[Path], place: Path) -> None:
    """One shared object of many object files.

    Raises:
        CannotEmitError: It cannot be linked; the text is the linker's.
    """
    script = place.with_suffix(".map")
    script.write_text("{ global: slots; native_*; entry_*; local: *; };\n")
    command = ["cc", "-shared", "-fPIC", "-O2", "-s", "-o", str(place), *map(str, parts), "-lm"]
    command += [f"-Wl,--version-script={script}", "-Wl,--as-needed", "-Wl,-z,now", "-Wl,-O1"]
    command += ["-ffunction-sections", "-Wl,--gc-sections"]
    command += [f"-Wl,--wrap={name}" for name in RENEWED]
    done = subprocess.run(command, capture_output=True, text=True)
    script.unlink()
    if done.returncode:
        raise CannotEmitError(f"the linker says: {done.stderr.strip()}")


def newest_libc(place: Path) -> tuple[int, int]:
    """The version of glibc that a shared object needs.

    Raises:
        CannotEmitError: It needs something that is not on every Linux.
    """
    read = ["readelf", "--wide", "--dynamic", "--dyn-syms", str(place)]
    said = subprocess.run(read, capture_output=True, text=True, check=True).stdout
    others = [x for x in re.findall(r"NEEDED.*\[(.*)\]", said) if not LIBRARIES.match(x)]
    wanted = re.findall(r" UND (\S+)", said)
    others += [x for x in wanted if "@GLIBC_" not in x and x not in PYTHON | OPTIONAL]
    if others:
        raise CannotEmitError(f"{place.name} needs {', '.join(others)}")
    versions = re.findall(r"@GLIBC_(\d+)\.(\d+)", said)
    return max(((int(major), int(minor)) for major, minor in versions), default=OLDEST)


def uncalled(kernels: Sequence[Any]) -> list[Any]:
    """Kernels that nothing has called, but parts of those of the same file that were."""
    known, idle = [k for k in kernels if k.signatures], [k for k in kernels if not k.signatures]
    while True:
        named = {(k.__module__, name) for k in known for name in k.py_func.__code__.co_names}
        within = [k for k in idle if (k.__module__, k.__name__) in named]
        if not within:
            return idle
        known, idle = within, [k for k in idle if k not in within]


def emit(folder: Path, levels: Iterable[str] = LEVELS, processes: int = 2,
         say: Callable[[str], None] = print) -> None:  # fmt: skip
    """Write objects and the manifest of all kernels that this process has compiled.

    Args:
        folder: Where to.
        levels: Of processors.
        processes: How many work at once.
        say: Is told what is done.

    Raises:
        CannotEmitError: One of them cannot be brought as machine code.
    """
    folder.mkdir(parents=True, exist_ok=True)
    dtypes, found, levels = Dtypes(), list[Captured](), list(levels)
    kernels_here = [k for k in KERNELS if path_of(k.py_func, source_of(k))]
    idle = [k.__name__ for k in uncalled(kernels_here)]
    if idle:
        raise CannotEmitError(f"nothing has called {', '.join(idle)}: who is to say for what types")
    newest, context = OLDEST, multiprocessing.get_context("fork")
    with (
        tempfile.TemporaryDirectory() as work,
        ProcessPoolExecutor(processes, mp_context=context) as pool,
    ):
        parts: list[Future[Path]] = []

        def submit(name: str, bitcode: bytes) -> None:
            for level in levels:
                place = Path(work, f"{level}-{name}.o")
                parts.append(pool.submit(make_native, level, bitcode, place))

        wanted = [(k, signature) for k in kernels_here for signature in k.signatures]
        natives = dict[str, str]()
        for kernel, signature in wanted:  # and what is found on the way
            say(f"translating {kernel.__name__}")
            found.append(capture(kernel, signature, len(found), dtypes))
            submit(str(len(found)), found[-1].bitcode)
            for key, target in found[-1].deferred.items():
                if key not in natives:
                    natives[key] = f"native_{len(wanted)}"
                    wanted.append((target.kernel, target.signature))
        submit("slots", slots_module(1 + len(dtypes.texts)))
        support = Path(work, "support.c")
        parts_of_it = RESHAPE, find_deferred(natives), *starmap(in_first_form, RENEWED.items())
        support.write_text("".join(parts_of_it))
        say(f"making them native for {', '.join(levels)}")
        made = [part.result() for part in parts]
        for level in levels:
            place = folder / f"{level}.so"
            link([support, *(one for one in made if one.name.startswith(level))], place)
            newest = max(newest, newest_libc(place))
            say(f"{place} has {place.stat().st_size / 1e6:.1f} MB")
    kernels: dict[str, Any] = {}
    for one in (one for one in found if one.entry):
        told: dict[str, Any] = {"sources": source_hash(one.source), "overloads": []}
        kernels.setdefault(one.path, told)["overloads"].append(one.entry)
    for told in kernels.values():
        told["overloads"].sort(key=specific_first)
    manifest = {
        "format": FORMAT,
        "levels": levels,
        "libc": newest,
        "dtypes": dtypes.texts,
        "kernels": kernels,
    }
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
