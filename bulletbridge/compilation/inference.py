"""numba's inference of types, with what it has found kept.

A sum of two numbers is looked for among the same ten definitions each time it occurs, and those
that do not fit are told of in coloured messages that nobody reads. Each of some seventy thousand
calls of LLVM tells all compilations under way that it begins and ends, and each look at a
statement, for each variable that is set twice, a log.
"""

import contextlib
from collections.abc import Generator
from types import SimpleNamespace
from typing import Any

from numba.core import byteflow, event, ssa, typeinfer
from numba.core.types import functions

clock: Any = event
network: Any = typeinfer.ConstraintNetwork
calls: Any = typeinfer.CallConstraint
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


_propagate: Any = network.propagate
_backwards = False
"""Whether the function whose types are found now is gone through from its end."""


def _in_turn(self: Any, inferer: Any) -> Any:
    """What follows from the types that are known, by calls in their order or the opposite one."""
    given = self.constraints
    if _backwards:
        others = [one for one in given if not isinstance(one, calls)]
        self.constraints = others + [one for one in given if isinstance(one, calls)][::-1]
    try:
        return _propagate(self, inferer)
    finally:
        self.constraints = given


@contextlib.contextmanager
def in_turn(last_first: bool) -> Generator[None]:
    """Context of one function's compilation; those that lie in it have an order of their own."""
    global _backwards
    before, _backwards = _backwards, last_first
    try:
        yield
    finally:
        _backwards = before


def _nothing(*_: Any, **__: Any) -> None:
    """In place of an event, or a line of a log."""


CHANGES: list[tuple[Any, str, Any]] = [
    (operators, "get_call_type", _remembered),
    (network, "propagate", _in_turn),
    (clock, "start_event", _nothing),
    (clock, "end_event", _nothing),
    *((one, "_logger", SimpleNamespace(debug=_nothing)) for one in (byteflow, ssa)),
]
"""What stands in place of what: owner, name, and the function."""
