"""Kernels in machine code, and numba late: imported for a kernel that there is none of, if ever."""

import functools
import importlib
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

from bulletbridge.compilation import objects
from bulletbridge.compilation.cache import PACKAGE
from bulletbridge.compilation.objects import Late, Overload, Shelf, path_of
from bulletbridge.errors import MissingExtraError

P = ParamSpec("P")
R = TypeVar("R")

SHELF = cast(Shelf, objects.SHELF)


class LateKernel(Late):
    """A kernel, taken from machine code where that is of its sources and arguments."""

    def __init__(self, make: Callable[[], Any], name: str, path: str, source: Path) -> None:
        super().__init__(make, name)
        self._path, self._source = path, source

    @functools.cached_property
    def overloads(self) -> list[Overload]:
        """Its forms in machine code."""
        return SHELF.overloads(self._path, self._source)

    @functools.cached_property
    def _entries(self) -> list[Callable[..., Any]]:
        return [overload.entry_point for overload in self.overloads]

    @functools.cached_property
    def by_numba(self) -> Any:
        """What numba compiles it by, once a line has said why.

        Raises:
            MissingExtraError: numba is not installed.
            CannotUseError: Nothing but machine code was asked for.
        """
        why = ""  # where the kernel is somebody's own
        if self.overloads:
            why = f"the machine code of {self._path} is not for such arguments"
        elif SHELF.has(self._path):
            why = f"the machine code of {self._path} is of other sources than those in {PACKAGE}"
        elif self._path:
            why = f"there is no machine code of {self._path}"
        if why and objects.asked().objects:
            raise objects.CannotUseError(f"{why}, and {objects.VARIABLE} asks for nothing else")
        with objects.compiling(why):
            found = self._make()
        if why:
            objects.say(f"{why}: numba compiles it")
        return found

    def __call__(self, *arguments: Any) -> Any:
        """Call it."""
        for entry in self._entries:
            found = entry(*arguments)
            if found is not NotImplemented:
                return found
        for overload in self.overloads:
            found = overload.call(arguments)
            if found is not NotImplemented:
                return found
        return self.by_numba(*arguments)

    def find(self, arguments: tuple[Any, ...]) -> Any:
        """Its form for these arguments, in machine code or compiled now or before."""
        for overload in self.overloads:
            if overload.fits(arguments):
                return overload
        known = self.by_numba
        from bulletbridge.compilation import by_numba

        return by_numba.compiled(known, *arguments)


def decorated(decorator: str, function: Callable[P, R]) -> Callable[[], Any]:
    """What has one of the decorators of ``by_numba`` make of a function."""

    def make() -> Any:
        from bulletbridge.compilation import by_numba

        return getattr(by_numba, decorator)(function)

    return make


def written_in(module: str, name: str) -> Callable[[], Any]:
    """What is written there for numba already: ``by_numba``, ``blocks`` or ``tiles``."""

    def make() -> Any:
        return getattr(importlib.import_module(f"{__package__}.{module}"), name)

    return make


def _late_kernel(decorator: str, function: Callable[P, R]) -> Callable[P, R]:
    source = Path(inspect.getfile(function))
    made = LateKernel(
        decorated(decorator, function), function.__name__, path_of(function, source), source
    )
    return cast(Callable[P, R], made)


def helper(function: Callable[P, R]) -> Callable[P, R]:
    """A function in kernels; from Python it cannot be called."""
    return cast(Callable[P, R], Late(decorated("helper", function), function.__name__))


def bundling(function: Callable[P, R]) -> Callable[P, R]:
    """A helper that puts arguments together for others, as if its text stood in its caller."""
    return cast(Callable[P, R], Late(decorated("bundling", function), function.__name__))


def outlined(function: Callable[P, R]) -> Callable[P, R]:
    """A helper that is never inlined: what is rare, or long and called from many places."""
    return cast(Callable[P, R], Late(decorated("outlined", function), function.__name__))


def deferred(function: Callable[P, R]) -> Callable[P, R]:
    """A helper that is compiled when a kernel first calls it."""
    return cast(Callable[P, R], Late(decorated("deferred", function), function.__name__))


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """A function that is called from Python, in machine code."""
    return _late_kernel("kernel", function)


def caller(function: Callable[P, R]) -> Callable[P, R]:
    """A kernel that calls others by their blocks, see ``stored_calls``."""
    return _late_kernel("caller", function)


def compiled(function: Any, *arguments: Any) -> Any:
    """A kernel for arguments of these types, as it is stored and called."""
    return function.find(arguments)


def is_compiled(function: Any) -> bool:
    """Whether a kernel is ready to run in this process."""
    return bool(function.overloads)


def is_cached(function: Any) -> bool:
    """Whether it is ready, or an earlier process left it on disk."""
    if function.overloads:
        return True
    try:
        known = function.by_numba
    except MissingExtraError:
        return False
    from bulletbridge.compilation import by_numba

    return by_numba.is_cached(known)


def leave(function: Any) -> None:
    """Leave a kernel to another process."""
    from bulletbridge.compilation import by_numba

    by_numba.leave(function.by_numba)


def assist(function: Any, compile_it: Callable[[], None]) -> list[Any]:
    """Translate what a kernel calls beside a process that compiles it; what is deferred of it."""
    from bulletbridge.compilation import by_numba

    return by_numba.assist(function.by_numba, compile_it)


def is_plain_python() -> bool:
    """Whether kernels run as plain Python: whoever asks for that is given it, see ``objects``."""
    return False


WRITTEN = {
    "blocks": (
        *("add_lines", "clear_blocks", "cosines_and_sines", "eliminate_six", "exchange_blocks"),
        *("inner_blocks", "inner_lines", "multiply_blocks", "scale_after", "subtract_blocks"),
        *("take_away_lines", "take_lines", "take_lines_down", "take_lines_from"),
    ),
    "by_numba": ("call_back", "take_number"),
    "sixes": ("add_sixes", "along_sixes", "solve_six", "take_columns", "take_rows"),
    "tiles": ("add_tile", "solve_down_by_units_tile", "solve_down_tile", "solve_up_tile"),
}
"""What is written for numba already, by module."""
DECORATORS = bundling, caller, deferred, helper, kernel, outlined
ABOUT_KERNELS = assist, compiled, is_cached, is_compiled, is_plain_python, leave
STAND_INS: dict[str, Any] = {
    **{name: Late(written_in(x, name), name) for x, names in WRITTEN.items() for name in names},
    **{function.__name__: function for function in (*DECORATORS, *ABOUT_KERNELS)},
    "call_stored": LateKernel(
        written_in("by_numba", "call_stored"),
        "call_stored",
        "compilation.by_numba.call_stored",
        PACKAGE / "compilation" / "by_numba.py",
    ),
}
"""What ``jit`` has in the place of what numba would compile."""
