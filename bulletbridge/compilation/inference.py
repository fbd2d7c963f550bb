"""numba's inference of types, with what it has found kept.

A sum of two numbers is looked for among the same ten definitions each time it occurs, and those
that do not fit are told of in coloured messages that nobody reads: a sixth of the time of a helper.
And each of a hundred thousand calls of LLVM tells all compilations under way that it begins and
ends.
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


@contextlib.contextmanager
def remembering() -> Generator[None]:
    """Context in which signatures are looked for once, and numba's own clocks stand still."""
    infer, start, end = operators.get_call_type, clock.start_event, clock.end_event

    def get_call_type(self: Any, context: Any, args: Any, kws: Any) -> Any:
        if kws:
            return infer(self, context, args, kws)
        key = self, tuple(args)
        found = _found.get(key)
        if found is None:
            found = _found[key] = infer(self, context, args, kws)
        return found

    def nothing(*_: Any, **__: Any) -> None:
        """In place of an event."""

    operators.get_call_type = get_call_type
    clock.start_event = clock.end_event = nothing
    try:
        yield
    finally:
        operators.get_call_type = infer
        clock.start_event, clock.end_event = start, end
