"""Functions that users give for forces: of time, or of time and the state."""

import inspect
from collections.abc import Callable
from typing import Any

from bulletbridge.constraints.motion import Formula
from bulletbridge.errors import ModelError

ForceFunction = Callable[..., Any]
"""(t) or (t, q, v) to a number, or to as many as there are to be; q (nq,) and v (nv,) are copies.

A function under ``numba.njit`` is called from compiled code; its q and v are plain arrays.
"""


def takes_state(function: ForceFunction, what: str) -> bool:
    """Whether a function is one of (t, q, v), not of t alone.

    Args:
        function: As given.
        what: What it is for, in errors.

    Raises:
        ModelError: It can be called with neither.
    """
    if isinstance(function, Formula):
        return False
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # of some functions in C nothing is known
        return False
    kinds = inspect.Parameter
    places = [
        p for p in parameters if p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)
    ]
    needed = sum(p.default is kinds.empty for p in places)
    more = any(p.kind is kinds.VAR_POSITIONAL for p in parameters)
    if needed <= 1 and (places or more):
        return False
    if needed <= 3 <= len(places) or (needed <= 3 and more):
        return True
    raise ModelError(
        f"{what} is a function of {len(places)} arguments; give one of (t), or of (t, q, v)"
    )
