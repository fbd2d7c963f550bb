"""Prescribed functions of time, for driven (rheonomic) constraints: r(t) with two derivatives."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from bulletbridge.errors import ModelError
from bulletbridge.mechanism.frames import Triple
from bulletbridge.numerics.records import Array, are_numbers

if TYPE_CHECKING:
    from scipy.interpolate import PPoly


def lines(value: Array, rate: Array, acceleration: Array) -> Array:
    """The three (n,) side by side (n, 3); NumPy's own way takes longer than most signals."""
    found = np.empty((*value.shape, 3))
    found[..., 0], found[..., 1], found[..., 2] = value, rate, acceleration
    return found


class Formula:
    """A signal known at many times at once."""

    def over(self, t: Array) -> Array:
        """Value, rate, acceleration (len(t), 3) at times."""
        raise NotImplementedError

    def __call__(self, t: float) -> Triple:
        """Value, rate, acceleration at time t."""
        value, rate, acceleration = self.over(np.array([t], float))[0].tolist()
        return value, rate, acceleration


@dataclass(frozen=True)
class Sine(Formula):
    """offset + amplitude sin(2 pi frequency t + phase)."""

    amplitude: float
    frequency: float  # [Hz]
    phase: float = 0.0  # [rad]
    offset: float = 0.0

    def over(self, t: Array) -> Array:
        """Value, rate, acceleration (len(t), 3) at times."""
        w = 2 * np.pi * self.frequency
        angle = w * t + self.phase
        sine, cosine = self.amplitude * np.sin(angle), self.amplitude * np.cos(angle)
        return lines(self.offset + sine, w * cosine, -w * w * sine)


@dataclass(frozen=True)
class Polynomial(Formula):
    """Sum of coefficients[k] t^k; a constant or a constant rate are the common cases."""

    coefficients: tuple[float, ...]

    def over(self, t: Array) -> Array:
        """Value, rate, acceleration (len(t), 3) at times."""
        p = np.polynomial.Polynomial(np.atleast_1d(self.coefficients))
        return lines(p(t), p.deriv()(t), p.deriv(2)(t))


@dataclass(frozen=True)
class Spline(Formula):
    """Cubic spline through values at times; before and after it goes on at the rate of its end.

    Attributes:
        times: Increasing [s].
        values: As many.
        ends: ``clamped`` starts and stops at rest, ``natural`` without curvature.
    """

    times: tuple[float, ...]
    values: tuple[float, ...]
    ends: Literal["clamped", "natural"] = "clamped"

    @cached_property
    def curve(self) -> "PPoly":
        """The piecewise polynomial."""
        from scipy.interpolate import CubicSpline  # a third of a second, for those who need it

        return CubicSpline(self.times, self.values, bc_type=self.ends)

    def over(self, t: Array) -> Array:
        """Value, rate, acceleration (len(t), 3) at times."""
        end = np.clip(t, self.times[0], self.times[-1])
        value, rate = self.curve(end), self.curve(end, 1)
        acceleration = self.curve(end, 2) * (end == t)
        return lines(value + rate * (t - end), rate, acceleration)


Signal = Callable[[float], Triple]
"""Time [s] to value, rate and acceleration; write your own or use those above."""


def values(signal: Signal, t: Array) -> Array:
    """Value, rate, acceleration (len(t), 3) of a signal at times.

    Raises:
        ModelError: It gives anything else at one of them.
    """
    if isinstance(signal, Formula):
        return signal.over(t)
    found = np.empty((len(t), 3))
    for line, time in zip(found, t.tolist(), strict=True):
        given: object = signal(time)
        try:
            line[:] = given
        except (TypeError, ValueError):
            raise no_signal(given, time) from None
        if np.shape(given) != (3,):  # one number would fill the line
            raise no_signal(given, time)
    return found


def no_signal(given: object, t: float) -> ModelError:
    """What is raised for what a signal gave at a time."""
    return ModelError(
        f"a signal gave {given!r} at t = {t:g} s; return three numbers: value, rate, acceleration"
    )


@dataclass(frozen=True)
class Sum(Formula):
    """Several others, added up."""

    parts: tuple[Signal, ...]

    def over(self, t: Array) -> Array:
        """Value, rate, acceleration (len(t), 3) at times."""
        total = np.zeros((len(t), 3))
        for part in self.parts:
            total += values(part, t)
        return total


@dataclass(frozen=True)
class Components:
    """Three numbers by time, such as a force: each constant or a signal, of which the value counts.

    Attributes:
        x, y, z: Along the axes.
    """

    x: float | Signal
    y: float | Signal
    z: float | Signal

    @property
    def parts(self) -> tuple[float | Signal, float | Signal, float | Signal]:
        """All three."""
        return self.x, self.y, self.z

    def __call__(self, t: float) -> Triple:
        """The three numbers at a time [s]."""
        x, y, z = (part(t)[0] if callable(part) else part for part in self.parts)
        return x, y, z


def still(_t: float) -> Triple:
    """The signal that stays zero."""
    return 0.0, 0.0, 0.0


@dataclass(frozen=True)
class Motion:
    """Motion of frame a relative to its link: translations along its axes, then a turn.

    Attributes:
        x: Translation along the x axis of frame a [m].
        y: Along its y axis [m].
        z: Along its z axis [m]; also drives distances and couplings.
        angle: Turn [rad] about ``axis``.
        axis: Unit vector in frame a; the loop joint's own axis unless given.
        along_chords: Whether its rates are ways over a step: what follows at its places turns by
            half of what they bend, which contradicts nothing.
    """

    along_chords: ClassVar[bool] = False
    x: Signal = still
    y: Signal = still
    z: Signal = still
    angle: Signal = still
    axis: Triple | None = None

    def __post_init__(self) -> None:
        """Refuse what is no function of time."""
        for name in ("x", "y", "z", "angle"):
            signal: object = getattr(self, name)
            if not callable(signal):
                raise ModelError(
                    f"{name} of a motion is {signal!r}; give a function of time, such as"
                    " Polynomial((3.0,)) for what is constant"
                )
        if self.axis is not None and not (are_numbers(self.axis, (3,)) and np.any(self.axis)):
            raise ModelError(
                f"axis of a motion is {self.axis!r}; give three finite numbers, not all zero"
            )

    def over(self, t: Array) -> Array:
        """(len(t), 4, 3): value, rate, acceleration of x, y, z and angle at times.

        Raises:
            ModelError: One of them is not finite, or gives no three numbers.
        """
        found = np.zeros((len(t), 4, 3))
        for k, signal in enumerate((self.x, self.y, self.z, self.angle)):
            if signal is not still:
                found[:, k] = values(signal, t)
        require_finite(found, t)
        return found

    def put(self, t: Array, R: Array, targets: Array, k: int) -> None:
        """Write targets (len(t), motions, 12) of motion k at times, as in ``records.Target``.

        Args:
            t: The times.
            R: (3, 3) of the encoded frame a in frame a.
            targets: Zeros.
            k: Its number.

        Raises:
            ModelError: As ``over``.
        """
        found = self.over(t)
        # in the order of the fields: translations with their derivatives, then turns
        targets[:, k, :9] = (found[:, :3].transpose(0, 2, 1) @ R).reshape(-1, 9)
        targets[:, k, 9:] = found[:, 3]


def require_finite(found: Array, t: Array) -> None:
    """Refuse numbers (len(t), 4, 3) that a motion has come to."""
    finite = np.isfinite(found)
    if not finite.all():
        bad = int(np.argmin(finite.all(axis=(1, 2))))
        raise ModelError(f"a prescribed motion is not finite at t = {t[bad]:g} s: {found[bad]}")
