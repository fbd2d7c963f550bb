"""One tree of errors. Each message says what, how much, the limit, and what to try."""

import inspect
import os
import warnings
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from difflib import get_close_matches
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, ParamSpec, TypeVar

PACKAGE = str(Path(__file__).parent) + os.sep
T = TypeVar("T")
P = ParamSpec("P")
LONGEST_TOLD = 60
"""Letters of what was given that a message repeats."""


class BulletBridgeError(Exception):
    """Base of everything this package raises on purpose."""


class ModelError(BulletBridgeError):
    """A body, link, joint or frame that cannot be modelled, or a name that does not exist."""


class UnknownNameError(ModelError, KeyError):
    """A name that does not exist, looked up in a dict; the message lists the nearest ones."""

    __str__ = Exception.__str__  # KeyError's is the repr


class LoopFileError(BulletBridgeError):
    """A loops file that cannot be understood; the message names line, key and remedy."""


class AssemblyError(BulletBridgeError):
    """A configuration that closes all loops was not found; nothing was changed."""


class OverconstrainedError(BulletBridgeError):
    """The constraints leave the mechanism no freedom, or contradict each other."""


class StepError(BulletBridgeError):
    """A step that could not be finished; the state before it was restored."""


class UnsupportedError(StepError):
    """A formulation cannot handle a system or a state, such as dependent rows for multipliers."""


class ChartError(UnsupportedError):
    """A chart of the constraint manifold ends here, or there is none: a singular position."""


class WorldError(BulletBridgeError):
    """The Bullet world is not what it was when it was read (body removed, other client)."""


class CallError(BulletBridgeError):
    """A call that PyBullet would answer with a crash or with another body's numbers."""


class MissingExtraError(BulletBridgeError):
    """An optional dependency is not installed; the message names the extra that brings it."""


class InfeasibleError(BulletBridgeError):
    """A demand that the actuated joints cannot meet, or that the constraints do not admit."""


class BulletBridgeWarning(UserWarning):
    """Something that Bullet does behind the user's back and that changes results."""


UNHEARD: ContextVar[bool] = ContextVar("UNHEARD", default=False)
"""Whether this thread has nothing to say at the moment."""


@contextmanager
def unheard() -> Generator[None]:
    """Context in which ``warn_user`` says nothing, in this thread alone.

    What ``warnings.catch_warnings`` does, all threads see, and those that leave it out of order
    put back one another's.
    """
    token = UNHEARD.set(True)
    try:
        yield
    finally:
        UNHEARD.reset(token)


def warn_user(message: str) -> None:
    """Warn about the line of the user's program that led here."""
    if UNHEARD.get():
        return
    depth, frame = 0, inspect.currentframe()
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
        depth, frame = depth + 1, frame.f_back
    warnings.warn(message, BulletBridgeWarning, stacklevel=depth + 1)


@contextmanager
def naming_the_extra(
    use: str, package: str, otherwise: str = "", absent: tuple[str, ...] = ()
) -> Generator[None]:
    """Context of imports of what may not be installed, which is told with what installs it.

    Args:
        use: What needs it, as the message begins.
        package: As pip takes it: ``bulletbridge[viewer]``.
        otherwise: What can be done without it, as the message ends.
        absent: Modules whose absence is meant; any unless given.

    Raises:
        MissingExtraError: It is not installed.
    """
    try:
        yield
    except ImportError as error:
        if absent and error.name not in absent:
            raise
        named = f"'{package}'" if "[" in package else package
        raise MissingExtraError(f"{use}; install it with: pip install {named}{otherwise}") from None


def nearest(name: object, known: Iterable[str], most: int = 3, cutoff: float = 0.4) -> str:
    """The question whether a name that is near was meant; empty where none is near.

    Args:
        name: What was given.
        known: What there is.
        most: How many are named.
        cutoff: Similarity from which a name is near, of 1 for equal ones (``difflib``).
    """
    there, lower = list(known), str(name).lower()
    near = [each for each in there if each.lower() == lower]
    near = near or get_close_matches(str(name), there, most, cutoff)
    named = ", ".join(f"'{each}'" for each in near)
    return f"did you mean {named}?" if near else ""


def refuse_name(kind: str, name: object, known: Iterable[str]) -> NoReturn:
    """Refuse a name that does not exist."""
    known = list(known)
    there = f"there are: {', '.join(known)}" if known else "there is none"
    hint = nearest(name, known) or there
    raise UnknownNameError(f"unknown {kind} '{name}'; {hint}")


class ByName(dict[str, T]):
    """What is known by name; one that does not exist is told with the nearest.

    Args:
        kind: What has these names, in a word or two.
        entries: By name.
    """

    def __init__(self, kind: str, entries: dict[str, T]) -> None:
        super().__init__(entries)
        self.kind = kind

    def __missing__(self, name: str) -> NoReturn:
        """Refuse a name that does not exist."""
        refuse_name(self.kind, name, self)

    def __reduce__(self) -> tuple[Any, ...]:
        """How it is copied and pickled."""
        return type(self), (self.kind, dict(self))


class Hinting:
    """Results that say, of an attribute that they lack, where it is to be had.

    Attributes:
        ELSEWHERE: What to write, by what other programs call it.
    """

    __slots__ = ()
    ELSEWHERE: ClassVar[Mapping[str, str]] = {}

    if not TYPE_CHECKING:  # a checker is to know which attributes there are

        def __getattr__(self, name: str) -> NoReturn:
            """Refuse an attribute; Python names the nearest."""
            hint = "" if name.startswith("__") else self.elsewhere(name)
            said = f"'{type(self).__name__}' object has no attribute '{name}'"
            raise AttributeError(f"{said}; write {hint}" if hint else said, name=name, obj=self)

    def elsewhere(self, name: str) -> str:
        """What to write in the place of an attribute; empty if nobody knows."""
        return self.ELSEWHERE.get(name, "")


def called_as(how: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Decorator of functions that are often called wrongly: Python's refusal, and how it is done.

    Args:
        how: In words, after Python's.
    """

    def told(function: Callable[P, T]) -> Callable[P, T]:
        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            try:
                return function(*args, **kwargs)
            except TypeError as error:
                trace = error.__traceback__
                if trace is None or trace.tb_next is not None:  # from within
                    raise
                raise TypeError(f"{error}; {how}") from None

        return call

    return told


def given_as(what: object) -> str:
    """What a program gave, in as many words as fit a message."""
    said = repr(what)
    return said if len(said) <= LONGEST_TOLD else f"a {type(what).__name__}"


def require_kind(given: object, kind: type, said: str) -> None:
    """Refuse what a program gives in the place of something else."""
    if not isinstance(given, kind):
        raise ModelError(said)
