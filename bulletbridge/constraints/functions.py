"""Functions that users give for forces: of time, or of time and the state."""

import inspect
from collections.abc import Callable
from typing import Any

from bulletbridge.compilation.users import Takes
from bulletbridge.constraints.motion import Formula
from bulletbridge.errors import ModelError

ForceFunction = Callable[..., Any]
"""(t) or (t, q, v) to a number, or to as many as there are to be; q (nq,) and v (nv,) are copies.

One of a wrench may be of (t, q, v, frame), too: the ``MovingFrame`` where it acts. A
function under ``numba.njit`` is called from compiled code; its q and v are plain arrays.
"""


def takes(function: ForceFunction, what: str, most: Takes = Takes.STATE) -> Takes:
    """What a function can be called with.

    Args:
        function: As given.
        what: What it is for, in errors.
        most: What there is for it.

    Raises:
        ModelError: It can be called with nothing of that.
    """
    if isinstance(function, Formula):
        return Takes.TIME
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # of some functions in C nothing is known
        return Takes.TIME
    kinds = inspect.Parameter
    places = [
        p for p in parameters if p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)
    ]
    needed = sum(p.default is kinds.empty for p in places)
    more = any(p.kind is kinds.VAR_POSITIONAL for p in parameters)
    for fitting in Takes:
        if needed <= fitting <= most and (fitting <= len(places) or more):
            return fitting
    known = " or ".join(each.arguments for each in Takes if each <= most)
    raise ModelError(f"{what} is a function of {len(places)} arguments; give one of {known}")
