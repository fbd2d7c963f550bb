"""numba's inference of types, with what it has found kept.

A sum of two numbers is looked for among the same ten definitions each time it occurs, and those
that do not fit are told of in coloured messages that nobody reads. And each of some seventy
thousand calls of LLVM tells all compilations under way that it begins and ends.
"""

import contextlib
from collections.abc import Generator
from typing import Any

from numba.core import event
from numba.core.types import functions

clock: Any = event
operators: Any = functions.BaseFunction
_found: dict[Any, Any] = {}
"""Signatures of operators and built-in functions, by themselves and the types of arguments."""


_given: Any = operators.get_call_type


def _remembered(self: Any, context: Any, args: Any, kws: Any) -> Any:
    """Signature of an operator for arguments of some types, looked for once."""
    if kws:
        return _given(self, context, args, kws)
    key = self, tuple(args)
    found = _found.get(key)
    if found is None:
        found = _found[key] = _given(self, context, args, kws)
    return found


def _nothing(*_: Any, **__: Any) -> None:
    """In place of an event."""


@contextlib.contextmanager
def remembering() -> Generator[None]:
    """Context in which signatures are looked for once, and numba's own clocks stand still.

    Compilations lie in each other: what the outermost has put in place is left to it.
    """
    before = operators.get_call_type, clock.start_event, clock.end_event
    operators.get_call_type = _remembered
    clock.start_event = clock.end_event = _nothing
    try:
        yield
    finally:
        operators.get_call_type, clock.start_event, clock.end_event = before
