"""How one of PyBullet's functions is replaced, so that nobody notices."""

import types
from collections.abc import Callable
from typing import Any

import pybullet

from bulletbridge.surface.drop_in.hooks import HOOKS
from bulletbridge.surface.drop_in.session import REAL_TIME, SESSIONS, Session, session_of

Given = dict[str, Any]
"""Arguments by PyBullet's names."""
Handler = Callable[[Session, Given], Any]

WITH_BODY_INDEX = "calculateInverseDynamics"
"""What still takes ``bodyUniqueId`` by its old name ``bodyIndex``."""
FUNCTIONS: dict[str, "Function"] = {}
"""By PyBullet's names."""
Note = Callable[[Session, tuple[Any, ...], dict[str, Any]], None]
"""What is noted of a call: of positional and of named arguments, as they were given."""


class Function:
    """One of PyBullet's functions, done by us.

    Args:
        name: PyBullet's.
        parameters: Names in PyBullet's order, without ``physicsClientId``, which comes last.
        handler: What is done with a session and the arguments by name.
    """

    def __init__(self, name: str, parameters: tuple[str, ...], handler: Handler) -> None:
        self.__name__, self.__doc__ = name, handler.__doc__
        self._parameters, self._handler = (*parameters, "physicsClientId"), handler

    @property
    def __class__(self) -> type:  # pyright: ignore[reportIncompatibleMethodOverride]
        """What PyBullet's own are: ``BulletClient`` gives its client id to builtins only."""
        return types.BuiltinFunctionType

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it as PyBullet's own."""
        if HOOKS.before_call or REAL_TIME:
            before_call()
        if "bodyIndex" in kwargs and self.__name__ == WITH_BODY_INDEX:
            kwargs["bodyUniqueId"] = kwargs.pop("bodyIndex")
        given = dict(zip(self._parameters, args, strict=False))
        if len(args) > len(self._parameters) or not given.keys().isdisjoint(kwargs):
            return getattr(pybullet, self.__name__)(*args, **kwargs)  # raises what it would
        given |= kwargs
        return self._handler(session_of(given.pop("physicsClientId", 0)), given)


class Noted(Function):
    """One of PyBullet's functions, called with its arguments as they are given, then noted.

    Learning loops call these many times a step: nothing is sorted by names before it is needed.

    Args:
        name: PyBullet's.
        count: How many arguments it takes, without ``physicsClientId``, which comes last.
        note: What is noted of the arguments afterwards.
    """

    def __init__(self, name: str, count: int, note: "Note") -> None:
        self.__name__, self.__doc__ = name, f"Bullet's. {note.__doc__}"
        self._native, self._count, self._note = getattr(pybullet, name), count, note

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it as PyBullet's own."""
        if HOOKS.before_call or REAL_TIME:
            before_call()
        answer = self._native(*args, **kwargs)
        client, count = kwargs.get("physicsClientId", 0), self._count
        if len(args) > count:
            client, args = args[count], args[:count]
        self._note(SESSIONS.get(client) or session_of(client), args, kwargs)
        return answer


def before_call() -> None:
    """What happens before any function: real-time simulation goes on."""
    for call in HOOKS.before_call:
        call()
    for session in [*REAL_TIME]:
        session.pump()


def lookup(name: str) -> Any:
    """PyBullet's attribute of this name, or what stands in for it.

    Raises:
        AttributeError: There is none.
    """
    own = FUNCTIONS.get(name)
    if own is not None:
        return own
    if HOOKS.before_call or REAL_TIME:
        before_call()
    return getattr(pybullet, name)


def replaces(*parameters: str) -> Callable[[Handler], Handler]:
    """Register a handler for the function of its name, with PyBullet's parameters."""

    def register(handler: Handler) -> Handler:
        name = handler.__name__
        FUNCTIONS[name] = Function(name, parameters, handler)
        return handler

    return register


def follows(name: str, *parameters: str) -> Callable[[Callable[[Session, Given], None]], Handler]:
    """Register what is noted after PyBullet's own function ``name`` has been called."""

    def register(note: Callable[[Session, Given], None]) -> Handler:
        def handler(session: Session, given: Given) -> Any:
            answer = session.native(name, given)
            note(session, given)
            return answer

        handler.__doc__ = f"Bullet's. {note.__doc__}"
        FUNCTIONS[name] = Function(name, parameters, handler)
        return handler

    return register
