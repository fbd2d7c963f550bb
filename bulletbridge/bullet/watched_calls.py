"""PyBullet's own module, with somebody who looks at what its functions are called with.

Bullet has no question that would answer whether a motor was set, or who has made a step. So, while
somebody has to know, functions stand in the module that show their arguments.
"""

import types
from collections.abc import Callable, Iterable
from typing import Any

import pybullet

Look = Callable[[str, tuple[Any, ...], dict[str, Any]], None]
"""Is shown a function's name, positional and named arguments, after it has done its work."""


class Watched:
    """One of PyBullet's functions, and who looks at its calls.

    Attributes:
        native: The function itself.
        looks: They.
    """

    def __init__(self, name: str) -> None:
        self.native: Callable[..., Any] = getattr(pybullet, name)
        self.looks: tuple[Look, ...] = ()
        self.__name__, self.__doc__ = name, self.native.__doc__

    @property
    def __class__(self) -> type:  # pyright: ignore[reportIncompatibleMethodOverride]
        """What it stands for: pybullet_utils gives its client id to builtins only."""
        return types.BuiltinFunctionType

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it, then show what for."""
        answer = self.native(*args, **kwargs)
        for look in self.looks:
            look(self.__name__, args, kwargs)
        return answer


def native_of(function: Callable[..., Any]) -> Callable[..., Any]:
    """PyBullet's function itself, for calls that nobody need look at."""
    return getattr(function, "native", function)


def watch(names: Iterable[str], look: Look) -> None:
    """Have calls of some functions looked at until ``unwatch``."""
    for name in names:
        known = getattr(pybullet, name)
        if type(known) is not Watched:
            known = Watched(name)
            setattr(pybullet, name, known)
        if look not in known.looks:
            known.looks += (look,)


def unwatch(names: Iterable[str], look: Look) -> None:
    """Have calls of some functions no longer looked at; those nobody looks at are as they were."""
    for name in names:
        known = getattr(pybullet, name)
        if type(known) is not Watched:
            continue
        known.looks = tuple(other for other in known.looks if other is not look)
        if not known.looks:
            setattr(pybullet, name, known.native)
