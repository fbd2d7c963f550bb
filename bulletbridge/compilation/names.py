"""Names of compiled functions, without the text of their types.

numba writes the types of arguments into the name of a function. Those of the arrays of a system
take kilobytes, and LLVM's language repeats names at every call, and at every argument of what is
inlined.
"""

from typing import Any, cast

from numba.core import base, itanium_mangler

from bulletbridge.compilation.cache import short_hash
from bulletbridge.compilation.keys import NoKeyError, type_text

contexts: Any = base.BaseContext
mangle: Any = cast(Any, itanium_mangler).mangle
_tags: dict[tuple[Any, ...], str] = {}
"""Digits that stand for types and flags."""


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
