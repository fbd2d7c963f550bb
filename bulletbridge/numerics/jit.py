"""How kernels are compiled; with ``linked_code`` and ``stored_calls`` all that imports numba.

numba keeps compiled functions per source file and does not notice a change in a *callee* that lives
in another file. Each cache directory therefore carries a hash over a file and every package file it
imports, directly or not. Nothing here changes the user's own numba settings.
"""

import ast
import contextlib
import ctypes
import functools
import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

import numba
from llvmlite import ir
from numba.core import config, types
from numba.extending import intrinsic

from bulletbridge.numerics.linked_code import LINKED

P = ParamSpec("P")
R = TypeVar("R")

settings: Any = config  # numba fills it at run time
PACKAGE = Path(__file__).parents[1]
OPTIONS: dict[str, Any] = {
    "_nrt": False,  # no reference counting: a kernel that allocates does not compile
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"contract", "reassoc", "nsz", "arcp"},  # NaN and infinity keep their meaning
}

INLINED: dict[str, Any] = {**OPTIONS, "forceinline": True}


def imported_files(source: Path) -> set[Path]:
    """Package files that ``source`` imports, itself included, followed to the end."""
    found: set[Path] = set()
    pending = [source]
    while pending:
        path = pending.pop()
        if path in found:
            continue
        found.add(path)
        for node in ast.walk(ast.parse(path.read_text())):
            names: list[str] = []
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            for name in names:
                head, *tail = name.split(".")
                candidate = PACKAGE.joinpath(*tail).with_suffix(".py")
                if head == PACKAGE.name and tail and candidate.is_file():
                    pending.append(candidate)
    return found


@functools.cache
def stamp(source: Path) -> str:
    """Hash over a kernel file, all package files it reaches, and the numba version."""
    contents = [path.read_bytes() for path in sorted(imported_files(source))]
    digest = hashlib.sha256(b"\0".join([numba.__version__.encode(), *contents]))
    return digest.hexdigest()[:16]


def cache_directory(source: Path) -> str:
    """First writable of NUMBA_CACHE_DIR, the package, the user's cache; empty when there is none.

    A shared temporary directory is left out on purpose: cached files are pickles.
    """
    fallback = os.environ.get("LOCALAPPDATA") or os.environ.get("XDG_CACHE_HOME")
    user = Path(fallback) if fallback else Path.home() / ".cache"
    chosen = cast(str, settings.CACHE_DIR)
    places = [Path(chosen) if chosen else PACKAGE / "__pycache__", user / PACKAGE.name]
    for place in places:
        with contextlib.suppress(OSError):
            path = place / f"kernels-{stamp(source)}"
            path.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=path).close()
            return str(path)
    return ""


def helper(function: Callable[P, R]) -> Callable[P, R]:
    """Compile into the kernels that call it; from Python it cannot be called."""
    return cast(Callable[P, R], numba.njit(**LINKED, **OPTIONS)(function))


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """A helper that is always inlined: for those that pass many arrays, where a call costs most."""
    return cast(Callable[P, R], numba.njit(**LINKED, **INLINED)(function))


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile at the first call and keep the result on disk under the stamp of all its sources."""
    return _kernel(function, OPTIONS)


def inlined_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """A kernel that is always inlined where others call it."""
    return _kernel(function, INLINED)


def _kernel(function: Callable[P, R], options: dict[str, Any]) -> Callable[P, R]:
    directory = cache_directory(Path(function.__code__.co_filename))
    before = settings.CACHE_DIR
    settings.CACHE_DIR = directory
    try:
        compiled = numba.njit(cache=directory != "", **options)(function)
    finally:
        settings.CACHE_DIR = before
    return cast(Callable[P, R], compiled)


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


def is_cached(function: Callable[..., Any]) -> bool:
    """Whether an earlier process left a compiled version of this kernel on disk."""
    stats = getattr(function, "stats", None)
    path = getattr(stats, "cache_path", None)
    code = getattr(function, "py_func", function).__code__
    if path is None:
        return is_compiled(function)
    pattern = f"{Path(code.co_filename).stem}.{code.co_name}-{code.co_firstlineno}.*.nbi"
    return any(Path(path).glob(pattern))


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
