"""Machine code of kernels that the package brings: what of it this processor runs, and calls.

A wheel has one shared object for each level of processors, and a manifest that says of what sources
and for what arguments each kernel in them was compiled. Their entry points take Python's objects as
they lie in memory, so that nothing but numpy is needed to call them.
"""

import contextlib
import ctypes
import functools
import json
import os
import platform
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from bulletbridge.compilation.cache import PACKAGE, source_hash
from bulletbridge.errors import naming_the_extra

FOLDER = PACKAGE / "objects"
VARIABLE = "BULLETBRIDGE_KERNELS"
"""Environment variable: ``compile`` leaves machine code alone, ``objects`` takes nothing else, one
of ``LEVELS`` takes that of a lower level."""
NUMBAS_OWN = "BULLETBRIDGE_PLAIN_NUMBA", "NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES", "NUMBA_DISABLE_JIT"
"""Variables that say how numba is to compile: whoever sets one wants that."""
FORMAT = 1
"""Of the manifest, and of what entry points expect."""
LEVELS: dict[str, frozenset[str]] = {
    "x86-64-v2": frozenset("cx16 lahf_lm popcnt pni sse4_1 sse4_2 ssse3".split()),
    "x86-64-v3": frozenset("avx avx2 bmi1 bmi2 f16c fma abm movbe".split()),
    "x86-64-v4": frozenset("avx512f avx512bw avx512cd avx512dq avx512vl".split()),
}
"""Levels of processors, each with the flags, in Linux's words, that it has beside those before."""
CPUINFO = Path("/proc/cpuinfo")
MOST = 16_384
"""Bytes of it that are read: a processor has two thousand, and there may be hundreds of them."""
OB_TYPE, DATA, NDIM, DIMENSIONS, STRIDES, DESCR, FLAGS = 8, 16, 24, 32, 40, 56, 64
"""Where a numpy array has its fields: part of what numpy promises to compiled code."""
C_CONTIGUOUS, WRITEABLE = 0x1, 0x400
METH_FASTCALL = 0x80

Copies = list[tuple[np.ndarray, np.ndarray]]
"""Arrays, each with the copy that a kernel takes in its place."""
Kind = Sequence[Any]
"""What a kernel takes: ``["int"]``, ``["float"]``, ``["bool"]``, ``["array", dtype, dimensions,
layout, writeable]`` with the number of its dtype, or ``["tuple", kinds]``."""


class CannotUseError(Exception):
    """Why machine code that is there is not used; the text says it."""


def compiling(why: str = "") -> AbstractContextManager[None]:
    """Context of an import of numba, whose absence is told with the line that installs it."""
    use = why or f"the kernels of {PACKAGE.name} have to be compiled here"
    return naming_the_extra(
        f"{use}, which takes numba", f"{PACKAGE.name}[compile]", absent=("numba", "llvmlite")
    )


class Late:
    """A function that numba makes its own when it compiles what calls it, and not before."""

    def __init__(self, make: Callable[[], Any], name: str) -> None:
        self._make, self.__name__ = make, name

    @functools.cached_property
    def by_numba(self) -> Any:
        """What numba compiles it by.

        Raises:
            MissingExtraError: numba is not installed.
        """
        with compiling():
            return self._make()

    @property
    def _numba_type_(self) -> Any:
        """By which numba knows it in functions that it compiles."""
        return self.by_numba._numba_type_

    def __call__(self, *arguments: Any) -> Any:
        """Refuse, as numba does."""
        raise TypeError(f"{self.__name__} is compiled for kernels only")


def say(text: str) -> None:
    """Say it on stderr."""
    print(f"{PACKAGE.name}: {text}", file=sys.stderr, flush=True)


def path_of(function: Any, source: Path) -> str:
    """What a kernel is called in manifests: its place below the package, empty outside of it."""
    if not source.is_relative_to(PACKAGE):
        return ""
    place = source.relative_to(PACKAGE).with_suffix("")
    return ".".join((*place.parts, function.__qualname__))


def level_of(flags: set[str]) -> str | None:
    """Highest level whose flags, and those of all before it, a processor has; None for none."""
    found = None
    for name, needed in LEVELS.items():
        if not needed <= flags:
            break
        found = name
    return found


def processor_flags() -> set[str]:
    """What this processor can do, in Linux's words; empty where nothing tells it."""
    with contextlib.suppress(OSError), CPUINFO.open("rb") as file:
        for line in file.read(MOST).decode("ascii", "replace").splitlines():
            name, _, flags = line.partition(":")
            if name.strip() == "flags":
                return set(flags.split())
    return set()


def require_layout_of_python() -> None:
    """Refuse an interpreter or a numpy whose objects lie in memory in another way.

    Raises:
        CannotUseError: They do.
    """
    if sys.implementation.name != "cpython":
        raise CannotUseError(f"they are for CPython, not for {sys.implementation.name}")
    sample = np.zeros((2, 3, 4))[:, 1:]
    at, word = id(sample), ctypes.c_ssize_t
    shape, strides = ((word * 3).from_address(word.from_address(at + k).value)
                      for k in (DIMENSIONS, STRIDES))  # fmt: skip
    told = (
        object.__basicsize__,
        word.from_address(at + OB_TYPE).value,
        word.from_address(at + DATA).value,
        ctypes.c_int.from_address(at + NDIM).value,
        word.from_address(at + DESCR).value,
        ctypes.c_int.from_address(at + FLAGS).value,
    )
    expected = 16, id(np.ndarray), sample.ctypes.data, 3, id(sample.dtype), sample.flags.num
    if told != expected or (*shape, *strides) != (*sample.shape, *sample.strides):
        raise CannotUseError(f"arrays of numpy {np.__version__} lie in memory in another way")


def dtype_from(text: Any) -> np.dtype[Any]:
    """The dtype that the manifest describes, by its name or its fields."""
    if isinstance(text, str):
        return np.dtype(text)
    names, formats, offsets, size = text
    formats = [(f, tuple(shape)) for f, shape in formats]
    return np.dtype(
        cast(Any, {"names": names, "formats": formats, "offsets": offsets, "itemsize": size})
    )


def described(dtype: np.dtype[Any]) -> Any:
    """The opposite."""
    if dtype.names is None:
        return dtype.str
    fields = [cast(Any, dtype.fields)[name] for name in dtype.names]
    formats = [(field[0].base.str, field[0].shape) for field in fields]
    return list(dtype.names), formats, [field[1] for field in fields], dtype.itemsize


class Method(ctypes.Structure):
    """Python's description of a compiled function, ``PyMethodDef``."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("text", ctypes.c_char_p),
    ]


class Overload:
    """A kernel in machine code, for arguments of some kinds.

    Attributes:
        kinds: Of its arguments.
        returns: What it returns, likewise.
    """

    def __init__(self, shelf: "Shelf", entry: dict[str, Any]) -> None:
        self._shelf, self._entry = shelf, entry
        self.kinds: list[Kind] = entry["takes"]
        self.returns: Kind = entry["returns"]

    @functools.cached_property
    def address(self) -> int:
        """Of native code, as numba has it."""
        return self._shelf.address_of(self._entry["native"])

    @functools.cached_property
    def entry_point(self) -> Callable[..., Any]:
        """What Python calls; ``NotImplemented`` for arguments that it does not know."""
        name = cast(str, self._entry["entry"])
        return self._shelf.function_at(self._shelf.address_of(name), name)

    def require_integer(self) -> None:
        """Refuse a kernel that returns something else."""
        assert list(self.returns) == ["int"]

    def require_layout(self, fixed: tuple[Any, ...]) -> None:
        """Nothing: what was found for these arguments takes their words."""

    def require_rest(self, rest: tuple[Any, ...]) -> None:
        """Refuse last arguments of other types.

        Raises:
            TypeError: They are.
        """
        expected = self.kinds[len(self.kinds) - len(rest) :]
        if self._shelf.fitted(rest, expected) is None:
            raise TypeError("arguments to be stored are not of the types that were compiled")

    def fits(self, arguments: tuple[Any, ...]) -> bool:
        """Whether it takes these arguments as they are."""
        return self._shelf.fitted(arguments, self.kinds) is not None

    def call(self, arguments: tuple[Any, ...]) -> Any:
        """Call it with what its entry point does not know; ``NotImplemented`` if it cannot be.

        Arrays that lie in memory in another way are copied, and what the kernel wrote is copied
        back.
        """
        copies: Copies = []
        given = self._shelf.fitted(arguments, self.kinds, copies)
        if given is None:
            return NotImplemented
        found = self.entry_point(*given)
        for own, copy in copies:
            if own.flags.writeable:
                own[...] = copy
        return found


class Shelf:
    """The object of one level, with the manifest.

    Args:
        folder: Where they are.
        manifest: Its content.
        level: One of ``LEVELS``.

    Raises:
        OSError: The object cannot be loaded.
    """

    def __init__(self, folder: Path, manifest: dict[str, Any], level: str) -> None:
        self.level = level
        self._kernels: dict[str, Any] = manifest["kernels"]
        self._dtypes = [dtype_from(text) for text in manifest["dtypes"]]
        self._library = ctypes.CDLL(str(folder / f"{level}.so"))
        self._lock = threading.Lock()
        self._methods: list[Method] = []
        self._slots = (ctypes.c_void_p * (1 + len(self._dtypes))).in_dll(self._library, "slots")
        self._slots[0] = id(np.ndarray)
        self._known: list[np.dtype[Any] | None] = [None] * len(self._dtypes)
        for number, dtype in enumerate(self._dtypes):
            if dtype.names is None:
                self._take(number, dtype)

    def has(self, name: str) -> bool:
        """Whether there is a kernel of that name, below the package, of whatever sources."""
        return name in self._kernels

    def overloads(self, name: str, source: Path) -> list[Overload]:
        """The forms of a kernel; none if it was compiled of other sources."""
        found = self._kernels.get(name)
        if found is None or found["sources"] != source_hash(source):
            return []
        return [Overload(self, entry) for entry in found["overloads"]]

    def address_of(self, symbol: str) -> int:
        """Where a function of the object is."""
        return ctypes.cast(getattr(self._library, symbol), ctypes.c_void_p).value or 0

    def function_at(self, address: int, name: str) -> Callable[..., Any]:
        """A function of Python that is at this address."""
        method = Method(name.encode(), address, METH_FASTCALL, None)
        self._methods.append(method)  # Python does not copy it
        make = ctypes.pythonapi.PyCFunction_NewEx
        make.argtypes = [ctypes.POINTER(Method), ctypes.c_void_p, ctypes.c_void_p]
        make.restype = ctypes.py_object
        return make(ctypes.byref(method), None, None)

    def fitted(
        self, values: Sequence[Any], kinds: Sequence[Kind], copies: Copies | None = None
    ) -> tuple[Any, ...] | None:
        """Arguments as entry points know them: dtypes are one object each, arrays numpy's own.

        None if a value is not of its kind. Copies of arrays may be made where they can be listed.
        """
        if len(values) != len(kinds):
            return None
        found: list[Any] = []
        for value, kind in zip(values, kinds, strict=True):
            value = self._fit(value, kind, copies)
            if value is None:
                return None
            found.append(value)
        return tuple(found)

    def _fit(self, value: Any, kind: Kind, copies: Copies | None) -> Any:
        what, *of = kind
        if what == "tuple":
            if not isinstance(value, tuple):
                return None
            return self.fitted(cast(tuple[Any, ...], value), of[0], copies)
        if what == "array":
            return self._fit_array(value, of, copies) if isinstance(value, np.ndarray) else None
        if what == "int" and not isinstance(value, (int, np.integer)):
            return None
        if what == "float" and not isinstance(value, (int, float, np.integer, np.floating)):
            return None
        if what == "bool" and not isinstance(value, (bool, np.bool_)):
            return None
        return cast(object, value)

    def _fit_array(self, value: Any, of: Sequence[Any], copies: Copies | None) -> np.ndarray | None:
        number, ndim, layout, writeable = of
        if value.ndim != ndim or value.dtype != self._dtypes[number]:
            return None
        if writeable and not value.flags.writeable:
            return None
        if type(value) is not np.ndarray:
            value = value.view(np.ndarray)
        if layout == "C" and not value.flags.c_contiguous:
            if copies is None:
                return None
            copies.append((value, value.copy("C")))
            value = copies[-1][1]
        dtype = self._take(number, value.dtype)
        return value if value.dtype is dtype else value.view(dtype)

    def _take(self, number: int, dtype: np.dtype[Any]) -> np.dtype[Any]:
        """Have entry points know a dtype by this object, unless they know it by another one."""
        with self._lock:
            known = self._known[number]
            if known is None:
                self._known[number] = known = dtype
                self._slots[1 + number] = id(dtype)
        return known


class Asked(NamedTuple):
    """What ``VARIABLE`` says.

    Attributes:
        compile: Leave machine code alone.
        objects: Take nothing else.
        level: Highest level to take; empty for the best.
    """

    compile: bool = False
    objects: bool = False
    level: str = ""


def asked() -> Asked:
    """What the environment asks for.

    Raises:
        ValueError: It is none of what it can be.
    """
    text = os.environ.get(VARIABLE, "")
    if text in LEVELS:
        return Asked(objects=True, level=text)
    if text not in ("", "compile", "objects"):
        raise ValueError(f"{VARIABLE} is '{text}'; it can be compile, objects, {', '.join(LEVELS)}")
    return Asked(text == "compile", text == "objects")


def open_shelf(folder: Path, level: str = "") -> Shelf:
    """The best object of a folder for this processor, or that of a level.

    Raises:
        CannotUseError: There is none that can be used; the text says why.
    """
    try:
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CannotUseError(f"their manifest cannot be read: {error}") from None
    if manifest.get("format") != FORMAT:
        raise CannotUseError(f"their manifest is of format {manifest.get('format')}, not {FORMAT}")
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        raise CannotUseError(f"they are for Linux on x86-64, not {platform.platform()}")
    require_layout_of_python()
    best = level_of(processor_flags())
    names = list(LEVELS)
    if best is None:
        raise CannotUseError(f"this processor has not all of {names[0]}, or does not tell")
    if level and names.index(level) > names.index(best):
        raise CannotUseError(f"this processor is of {best}, not {level}")
    for name in reversed(names[: names.index(level or best) + 1]):
        if name in manifest["levels"]:
            try:
                return Shelf(folder, manifest, name)
            except (OSError, ValueError) as error:  # another libc, a file that was cut
                raise CannotUseError(f"the object cannot be loaded: {error}") from None
    raise CannotUseError(f"there is none for {level or best}")


def find_shelf() -> Shelf | None:
    """What is used in this process; None, and a line on stderr if that is not as usual.

    Raises:
        CannotUseError: Objects are asked for, and there are none that can be used.
    """
    wish = asked()
    there = FOLDER.is_dir()
    if (
        wish.compile
        or not wish.objects
        and any(os.environ.get(name, "0") != "0" for name in NUMBAS_OWN)
    ):
        return None
    try:
        if not there:
            raise CannotUseError(f"there are none in {FOLDER}")
        return open_shelf(FOLDER, wish.level)
    except CannotUseError as error:
        if wish.objects:
            raise
        if there:
            say(f"kernels are compiled, not taken from those that are installed: {error}")
    return None


SHELF = find_shelf()
"""The machine code that is used in this process, or None."""
