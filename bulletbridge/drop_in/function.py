"""Replacement of one of PyBullet's functions, with its signature and errors."""

import inspect
import types
from collections.abc import Callable
from typing import Any

import pybullet

from bulletbridge.bullet.watched_calls import native_of
from bulletbridge.drop_in.actions import nothing_of
from bulletbridge.drop_in.session import (
    EXACT,
    REAL_TIME,
    SESSIONS,
    Session,
    session_of,
)
from bulletbridge.drop_in.settings import HOOKS

Given = dict[str, Any]
"""Arguments by PyBullet's names."""
Handler = Callable[[Session, Given], Any]

WITH_BODY_INDEX = "calculateInverseDynamics"
"""What still takes ``bodyUniqueId`` by its old name ``bodyIndex``."""
WITH_NUMBERS = "loadURDF"
"""What takes place and orientation as three and four numbers, too, as ``saveWorld`` writes it."""
FUNCTIONS: dict[str, "Function"] = {}
"""Functions of ours by PyBullet's names."""
BODY = "bodyUniqueId", "bodyIndex", "objectUniqueId"
"""What functions call the body."""
Force = tuple[int, str, int | None]
Note = Callable[[Session, tuple[Any, ...], dict[str, Any]], None]
"""What is noted of a call: of positional and of named arguments, as they were given."""


class Function:
    """One of PyBullet's functions, done by us.

    Args:
        name: PyBullet's.
        parameters: Names in PyBullet's order, without ``physicsClientId``, which comes last.
        handler: What is done with a session and the arguments by name.

    Attributes:
        parameters: Those names.
    """

    def __init__(self, name: str, parameters: tuple[str, ...], handler: Handler) -> None:
        self.__name__, self.__doc__ = name, handler.__doc__
        self.parameters, self._handler = parameters, handler
        self._names = *parameters, "physicsClientId"

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
        given = self._named(args, kwargs) if args else kwargs
        if given is None:
            return getattr(pybullet, self.__name__)(*args, **kwargs)  # raises what it would
        client = given.pop("physicsClientId", 0)
        return self._handler(SESSIONS.get(client) or session_of(client), given)

    def _named(self, args: tuple[Any, ...], kwargs: Given) -> Given | None:
        """All arguments by name; None where PyBullet would take them for an error."""
        if (
            self.__name__ == WITH_NUMBERS
            and len(args) in (4, 8)
            and isinstance(args[1], int | float)
        ):
            args = args[0], list(args[1:4]), *([list(args[4:])] if args[4:] else [])
        given = dict(zip(self._names, args, strict=False))
        if len(args) > len(self._names) or not given.keys().isdisjoint(kwargs):
            return None
        return given | kwargs


class Direct(Function):
    """One of PyBullet's functions, called with its arguments as they are given.

    Learning loops call these many times a step: nothing is sorted by names before it is needed.

    Args:
        name: PyBullet's.
        count: How many arguments it takes, without ``physicsClientId``, which comes last.
        text: What it does besides.

    Attributes:
        count: That number.
    """

    def __init__(self, name: str, count: int, text: str | None) -> None:
        self.__name__, self.__doc__ = name, f"Bullet's. {text}"
        self._native, self.count = native_of(getattr(pybullet, name)), count


class Noted(Direct):
    """A direct call that is noted afterwards.

    Args:
        name, count: As of ``Direct``.
        note: What is noted of the arguments afterwards.
        force: Place and name of the argument that pushes bodies in the coming step, and the mode in
            which it does, if there are others.
    """

    def __init__(self, name: str, count: int, note: "Note", force: "Force | None" = None) -> None:
        super().__init__(name, count, note.__doc__)
        self._note, self._force = note, force

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it as PyBullet's own."""
        if HOOKS.before_call or REAL_TIME:
            before_call()
        withheld = self._withheld(args, kwargs) if EXACT and self._force is not None else None
        if withheld is None:
            answer = self._native(*args, **kwargs)
        else:
            answer = self._native(*withheld[0], **withheld[1])
        client, count = kwargs.get("physicsClientId", 0), self.count
        if len(args) > count:
            client, args = args[count], args[:count]
        session = SESSIONS.get(client) or session_of(client)
        if withheld is not None:
            session.actions.withhold(self._native, args, {**kwargs, "physicsClientId": client})
        self._note(session, args, kwargs)
        return answer

    def _withheld(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        """The arguments without forces, where Bullet makes no step of its own; else None."""
        assert self._force is not None
        place, name, mode = self._force
        if mode is not None and (args[2] if len(args) > 2 else kwargs.get("controlMode")) != mode:
            return None
        client = args[self.count] if len(args) > self.count else kwargs.get("physicsClientId", 0)
        body = args[0] if args else next((kwargs[key] for key in BODY if key in kwargs), None)
        session = SESSIONS.get(client)
        if session is None or not session.withholds(body):
            return None
        if len(args) > place:
            return (*args[:place], nothing_of(args[place]), *args[place + 1 :]), kwargs
        return args, {**kwargs, name: nothing_of(kwargs[name])} if name in kwargs else kwargs


class Added(Function):
    """One of our own functions, called as Python's are.

    Args:
        name: Its name.
        handler: Takes the session and then what it is called with.
    """

    def __init__(self, name: str, handler: Callable[..., Any]) -> None:
        _, *parameters = inspect.signature(handler).parameters
        super().__init__(name, tuple(parameters), handler)
        self._answer = handler

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it, for the client that comes last."""
        if HOOKS.before_call or REAL_TIME:
            before_call()
        client, count = kwargs.pop("physicsClientId", 0), len(self.parameters)
        if len(args) == count + 1:
            client, args = args[count], args[:count]
        return self._answer(session_of(client), *args, **kwargs)


def before_call() -> None:
    """What happens before any function: real-time simulation goes on."""
    for call in HOOKS.before_call:
        call()
    pump()


def pump() -> None:
    """Make the steps that real-time simulation asks for."""
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


def adds(handler: Callable[..., Any]) -> Callable[..., Any]:
    """Register a function that PyBullet does not have, under its name."""
    FUNCTIONS[handler.__name__] = Added(handler.__name__, handler)
    return handler
