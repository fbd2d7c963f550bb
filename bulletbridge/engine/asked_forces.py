"""Forces that are functions of the state, asked for where the kernels need them.

They go straight to where they act: ``axes.pushed`` of a rate, ``efforts.wrench`` of a wrench. Plain
Python functions are called back; those under ``numba.njit`` are called by the kernels themselves.
"""

from collections.abc import Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from bulletbridge.compilation.users import MovingFrame, Takes, UserFunction, address_of, is_jitted
from bulletbridge.constraints.functions import ForceFunction
from bulletbridge.errors import ModelError
from bulletbridge.mechanism.by_joint import by_joint
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.numerics.records import Array, Ints

BYTES = 8


class AskedForce(NamedTuple):
    """One function, and where what it gives acts."""

    what: str  # what it is for, in errors
    function: ForceFunction  # what gives its numbers
    takes: Takes  # what that is called with
    size: int  # how many numbers it gives; 0 for one that is not in a list
    effort: int  # the wrench whose numbers they are, or -1: those of rates
    first: int  # of these numbers, or of the rates

    def place(self, efforts: np.ndarray, axes: np.ndarray) -> "Place":
        """Where its numbers go in these records, as a view."""
        last = self.first + max(self.size, 1)
        if self.effort < 0:
            return Place(axes["pushed"][self.first : last])
        effort = efforts[self.effort]
        frame = MovingFrame(*(effort[field] for field in MovingFrame._fields))
        return Place(effort["wrench"][self.first : last], frame)


class Place(NamedTuple):
    """Where the numbers of a function go, and the frame that these act at, as views."""

    numbers: Array
    frame: MovingFrame | None = None


class AskedForces:
    """All such functions of a system.

    Args:
        forces: The functions.
        mechanism: Whose joints name the coordinates of q and v.
    """

    def __init__(self, forces: Sequence[AskedForce], mechanism: Mechanism) -> None:
        self.forces, self.mechanism = tuple(forces), mechanism
        self.compiled = all(is_jitted(force.function) for force in forces)
        self._asking = ""  # which of them

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self.forces)

    def places(self, efforts: np.ndarray, axes: np.ndarray) -> list[Place]:
        """Where their numbers go in these records, as views."""
        return [force.place(efforts, axes) for force in self.forces]

    def fill(self, places: Sequence[Place], t: float, q: Array, v: Array) -> None:
        """Ask all of them at a state and write what they give; NaN where the state is not finite.

        Raises:
            ModelError: One gives something else than finite numbers, or not as many as there are to
                be; the message names it and the time. Or one asks for what it acts on itself.
        """
        if self._asking:
            raise ModelError(
                f"the {self._asking} asks for accelerations of the system that it acts on, which"
                " depend on it; have it ask another system, loaded without these forces"
            )
        if not (np.isfinite(q).all() and np.isfinite(v).all()):
            for place in places:
                place.numbers[:] = np.nan
            return
        try:
            for force, place in zip(self.forces, places, strict=True):
                self._asking = force.what
                place.numbers[:] = self._given(force, place.frame, t, q, v)
        finally:
            self._asking = ""

    def _given(
        self, force: AskedForce, frame: MovingFrame | None, t: float, q: Array, v: Array
    ) -> Array | float:
        """What one gives, after a look at it."""
        state: list[Any] = []
        if force.takes > Takes.TIME:
            for x, of in ((q, "q"), (v, "v")):
                plain = is_jitted(force.function)
                state.append(x.copy() if plain else by_joint(x.copy(), self.mechanism, of))
            if frame is not None and force.takes > Takes.STATE:
                state.append(MovingFrame(*(x.copy() for x in frame)))
        given: object = force.function(t, *state)
        try:
            numbers = np.asarray(given, np.float64)
        except (TypeError, ValueError):
            numbers = np.zeros((0, 0))
        alone = force.size == 0 and numbers.shape == (1,)
        if not alone and numbers.shape != ((force.size,) if force.size else ()):
            raise no_force(force, given, t)
        if not np.isfinite(numbers).all():
            raise no_force(force, given, t)
        return numbers

    def compile(self, places: Sequence[Place], state: Sequence[Array]) -> tuple[int, Ints]:
        """Address of what calls all of them in compiled code, and the pointers that it takes.

        Args:
            places: Where their numbers go.
            state: t (1,), q and v, as they are when it is called.

        Raises:
            ModelError: One cannot be compiled.
        """
        functions = [
            UserFunction(*force[:4], place.numbers.strides[0] // BYTES)
            for force, place in zip(self.forces, places, strict=True)
        ]
        _, q, v = state
        of_each = [(place.numbers, (place.frame or place)[0]) for place in places]
        pointers = np.array([x.ctypes.data for x in (*state, *chain(*of_each))], np.int64)
        return address_of(functions, len(q), len(v)), pointers

    def require_finite(self, places: Sequence[Place], t: float, q: Array, v: Array) -> None:
        """Refuse what compiled functions have given at a state that is finite.

        Raises:
            ModelError: One gave numbers that are not finite, or not as many as there are to be.
        """
        if np.isfinite(q).all() and np.isfinite(v).all():
            for force, place in zip(self.forces, places, strict=True):
                numbers = place.numbers
                if not np.isfinite(numbers).all():
                    raise no_force(force, numbers.tolist() if force.size else float(numbers[0]), t)


def no_force(force: AskedForce, given: object, t: float) -> ModelError:
    """What is raised for what a function gave at a time."""
    wanted = f"{force.size} finite numbers" if force.size else "a finite number"
    said = f"{given!r}" if len(repr(given)) < 80 else f"{type(given).__name__}"
    return ModelError(
        f"the {force.what} is {said}, not {wanted} at t = {t:.6g} s; correct the function"
    )
