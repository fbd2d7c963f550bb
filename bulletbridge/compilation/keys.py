"""What a helper is made of, in a number: by it helpers are kept, and their machine code is named.

numba numbers functions as they come, so that two processes give the same name to different ones. A
helper that is kept by one process and linked by another needs a name that says what it is. And it
writes types of arguments into names: those of the arrays of a system take kilobytes, and LLVM's
language repeats names at every call, and at every argument of what is inlined.
"""

import functools
import hashlib
from pathlib import Path
from types import FunctionType
from typing import Any, cast

import numpy as np
from numba.core import base, itanium_mangler, types

from bulletbridge.compilation.cache import PACKAGE, kernel_folder, short_hash, stamp

known: Any = types
contexts: Any = base.BaseContext
mangle: Any = cast(Any, itanium_mangler).mangle
_tags: dict[tuple[Any, ...], str] = {}
"""Digits that stand for types and flags."""
PLAIN = (int, float, bool, str, bytes, type(None))
DIGITS = 12
"""Hexadecimal digits of a key: two of a thousand helpers are alike once in 10^8 users."""


UNREADABLE: set[Path] = set()
"""Files of helpers that were there, and of no use."""


class NoKeyError(Exception):
    """Something that is not known by its sources alone."""


def place_of(function: Any, key: str | None, target_context: Any) -> Path | None:
    """The file of a helper of some key; None if it is not to be kept."""
    folder = kernel_folder()
    if folder is None or key is None:
        return None
    source = Path(function.__code__.co_filename)
    processor = short_hash(repr(target_context.codegen().magic_tuple()))
    name = f"{source.stem}.{function.__name__}-{processor}-{key}.helper"
    return folder / f"{source.stem}-{stamp(source, 'linked')}" / name


def is_there(path: Path | None) -> bool:
    """Whether somebody has kept a helper there, as far as is known."""
    return path is not None and path not in UNREADABLE and path.is_file()


def key_of(function: Any, kind: str, arguments: tuple[Any, ...]) -> str | None:
    """Digits that stand for a helper as it is compiled for arguments of some types of numba.

    None where it depends on something that is not known by its sources alone.

    Args:
        function: In Python.
        kind: How it is compiled, beside numba's private parts.
        arguments: Their types.
    """
    try:
        text = f"{kind} {identity(function)} {[type_text(one) for one in arguments]}"
    except NoKeyError:
        return None
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


def identity(value: Any) -> str:
    """What tells a function from all others: its sources, and what it has from around it.

    Raises:
        NoKeyError: It is not the package's, or has something else than functions and numbers.
    """
    if isinstance(value, PLAIN):
        return repr(value)
    if isinstance(value, np.dtype):
        return repr(cast(Any, value))
    if isinstance(value, tuple):
        parts = [identity(part) for part in cast(tuple[Any, ...], value)]
        return f"{type(cast(object, value)).__qualname__}({', '.join(parts)})"
    compiler = getattr(value, "targetoptions", {}).get("pipeline_class")
    function = getattr(value, "py_func", value)
    if not isinstance(function, FunctionType):
        raise NoKeyError(repr(value))
    return function_identity(function, getattr(compiler, "__name__", ""))


@functools.lru_cache(maxsize=4096)
def function_identity(function: FunctionType, how: str) -> str:
    """The same of a function in Python, to be compiled in some way; asked for thousands of times.

    Raises:
        NoKeyError: As in ``identity``.
    """
    code = function.__code__
    source = Path(code.co_filename)
    if not source.is_relative_to(PACKAGE) or not source.is_file():
        raise NoKeyError(code.co_filename)
    around = [identity(cell.cell_contents) for cell in function.__closure__ or ()]
    around += [identity(one) for one in function.__defaults__ or ()]
    where = f"{source.relative_to(PACKAGE)}:{code.co_firstlineno} {function.__qualname__}"
    return f"{where} {how} {stamp(source, 'linked')} {code.co_code.hex()} {around}"


def type_text(kind: Any) -> str:
    """A type of numba in words, the same in all processes.

    Raises:
        NoKeyError: It names something of this process.
    """
    if isinstance(kind, known.BaseTuple):
        parts = ", ".join(type_text(part) for part in kind.types)
        own = getattr(kind, "instance_class", tuple)
        return f"{own.__module__}.{own.__qualname__}({parts})"
    if isinstance(kind, known.Dispatcher):
        return identity(kind.dispatcher)
    text = str(kind)
    if "0x" in text:
        raise NoKeyError(text)
    return text


def tag_of(types: tuple[Any, ...], flags: tuple[str, ...]) -> str:
    """Digits that stand for types of arguments, the same in all processes where their text is."""
    found = _tags.get((types, flags))
    if found is None:
        texts: list[str] = []
        for one in types:
            try:
                texts.append(type_text(one))
            except NoKeyError:
                texts.append(str(one))
        found = _tags[types, flags] = short_hash(f"{texts} {flags}")
    return found


def _mangled(
    _self: Any, name: str, types: Any, *, abi_tags: Any = (), uid: int | None = None
) -> str:
    """The name of a function for arguments of some types."""
    return mangle(name, (), abi_tags=(tag_of(tuple(types), tuple(abi_tags)),), uid=uid)


CHANGES: list[tuple[Any, str, Any]] = [(contexts, "mangler", _mangled)]
"""What stands in place of what: owner, name, and the function."""
