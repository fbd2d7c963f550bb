"""Motors and parameters that differ from world to world."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from bulletbridge.errors import ModelError, require_kind
from bulletbridge.inequalities.motors import Motors
from bulletbridge.numerics.records import Array, Ints, array_of
from bulletbridge.system.parameters import require_known
from bulletbridge.system.system import System

NUMBERS = (
    *("position", "velocity", "force", "position_gain", "velocity_gain", "max_velocity"),
    *("stiffness", "damping", "least"),
)
"""What ``Motors.set`` and ``Motors.servo`` take."""
MotorNumbers = Mapping[str, Mapping[str, Any]]
"""By joint and by ``NUMBERS``: one number, (n,) or (n, steps)."""
ParameterNumbers = Mapping[str, Any]
"""By name: one number or (n,)."""


class MotorTable:
    """Numbers of motors in n worlds, step by step; what is not given is as the system has it.

    Args:
        motors: Of the system.
        given: Numbers by joint; a position holds that, with PyBullet's gain unless one was set.
        n: Worlds.
        steps: Steps, of which each may have its own numbers.

    Raises:
        ModelError: No such motor, a number of another name, shape or value than is possible, or a
            motor that is off and is given no force.
    """

    def __init__(self, motors: Motors, given: MotorNumbers, n: int, steps: int) -> None:
        self._fixed: dict[str, dict[str, float]] = {}
        self._given: dict[str, dict[str, Array]] = {}
        for joint, numbers in given.items():
            said = f"motors of '{joint}' are {numbers!r}; give {{'position': ...}} and the like"
            require_kind(numbers, Mapping, said)
            self._fixed[joint] = motors.settings(joint)
            self._given[joint] = {}
            for name, values in numbers.items():
                require_known(f"number of motor '{joint}',", name, NUMBERS)
                self._given[joint][name] = _table(f"{name} of motor '{joint}'", values, n, steps)
            if "force" not in numbers and not self._fixed[joint]["force"] > 0.0:
                raise ModelError(
                    f"motor of '{joint}' is off, and is given no force; give one, or set it with"
                    " system.motors.set before"
                )

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._given)

    def changes(self, world: int) -> Ints:
        """Steps, in their order, at which the numbers of a world are others than before."""
        found = np.zeros(1, np.int64)
        for numbers in self._given.values():
            for values in numbers.values():
                if values.shape[1] > 1:
                    at = np.flatnonzero(np.diff(values[world])) + 1
                    found = np.union1d(found, at)
        return found

    def put(self, motors: Motors, world: int, step: int) -> None:
        """Set the motors of a copy as a world has them in a step."""
        for joint, numbers in self._given.items():
            now = {
                name: float(values[world, step if values.shape[1] > 1 else 0])
                for name, values in numbers.items()
            }
            numbers = self._fixed[joint] | now
            (motors.servo if "stiffness" in numbers else motors.set)(joint, **numbers)


def parameter_table(system: System, given: ParameterNumbers, n: int) -> dict[str, Array]:
    """Parameters (n,) by name.

    Raises:
        ModelError: No such parameter, or numbers of another shape or value than is possible.
    """
    known = system.parameters
    found: dict[str, Array] = {}
    for name, values in given.items():
        require_known("parameter", name, known)
        found[name] = _table(name, values, n, 1)[:, 0]
    return found


def _table(what: str, given: Any, n: int, steps: int) -> Array:
    """Numbers (n, 1) or (n, steps)."""
    values = array_of(what, given)
    if values.shape not in ((), (n,), (n, 1), (n, steps)):
        each = f", ({n},) or ({n}, {steps})" if steps > 1 else f" or ({n},)"
        raise ModelError(f"{what} has shape {values.shape}; give one number{each}")
    if values.ndim < 2:
        values = np.broadcast_to(values, (n,))[:, None]
    finite = np.isfinite(values).all(axis=1)
    if not finite.all():
        bad = int(np.argmin(finite))
        raise ModelError(f"{what} is not finite in world {bad}; give finite numbers")
    return values
