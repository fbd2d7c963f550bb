"""Joint forces that are given functions of time."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bulletbridge.constraints.motion import Formula, Signal
from bulletbridge.errors import ModelError
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.numerics.records import Array

ForceSignal = Signal | Callable[[float], float]
"""Time [s] to a force or torque [N or N m]; of the triple of a ``Signal`` the value counts."""


@dataclass(frozen=True)
class Script:
    """Forces on rates of a mechanism.

    Attributes:
        signals: By the number of the rate on which they act; several of one rate add up.
        nv: Number of rates.
    """

    signals: tuple[tuple[int, ForceSignal], ...] = ()
    nv: int = 0

    def at(self, times: Array) -> Array:
        """Forces (len(times), nv) at times [s].

        Raises:
            ModelError: One of them is not a finite number.
        """
        forces = np.zeros((len(times), self.nv))
        for rate, signal in self.signals:
            forces[:, rate] += values(signal, times)
        if not np.isfinite(forces).all():
            bad = times[int(np.flatnonzero(~np.isfinite(forces).all(axis=1))[0])]
            raise ModelError(f"a scripted force is not a finite number at t = {bad:.6g} s")
        return forces


@dataclass(frozen=True)
class Held:
    """Forces that stay over a step and jump from one to the next.

    Attributes:
        forces: (steps, nv) [N m or N].
        begun: Start of the first step [s].
        dt: Step [s].
    """

    forces: Array
    begun: float
    dt: float

    def within(self, times: Array) -> Array:
        """Forces (len(times), nv) at times [s] inside steps, not on the border of two."""
        steps = np.floor((times - self.begun) / self.dt).astype(np.int64)
        return self.forces[np.clip(steps, 0, len(self.forces) - 1)]


def values(signal: ForceSignal, times: Array) -> Array:
    """A signal at times [s]."""
    if isinstance(signal, Formula):
        return signal.over(times)[:, 0]
    found = [signal(float(t)) for t in times]
    return np.array([x[0] if isinstance(x, tuple) else x for x in found], float)


def script(
    mechanism: Mechanism, forces: Mapping[str, ForceSignal | Sequence[ForceSignal]]
) -> Script:
    """Forces by joint name.

    Args:
        mechanism: Where the joints are.
        forces: A signal for a joint of one rate; for others one for each rate, in their order.

    Raises:
        ModelError: A joint does not exist, or has another number of rates.
    """
    signals: list[tuple[int, ForceSignal]] = []
    for name, given in forces.items():
        joint = mechanism.joint(name)
        several = [given] if callable(given) else list(given)
        count = joint.v.stop - joint.v.start
        if len(several) != count:
            raise ModelError(
                f"joint '{name}' has {count} rates and got {len(several)} scripted forces; give "
                "one for each"
            )
        signals += zip(range(joint.v.start, joint.v.stop), several, strict=True)
    return Script(tuple(signals), mechanism.nv)
