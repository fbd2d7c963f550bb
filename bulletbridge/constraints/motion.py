"""Prescribed functions of time, for driven (rheonomic) constraints: r(t) with two derivatives."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from scipy.interpolate import CubicSpline, PPoly

from bulletbridge.numerics.records import Array

Triple = tuple[float, float, float]


@dataclass(frozen=True)
class Sine:
    """offset + amplitude sin(2 pi frequency t + phase)."""

    amplitude: float
    frequency: float  # [Hz]
    phase: float = 0.0  # [rad]
    offset: float = 0.0

    def __call__(self, t: float) -> Triple:
        """Value, rate, acceleration at time t."""
        w = 2 * np.pi * self.frequency
        angle = w * t + self.phase
        sine, cosine = self.amplitude * np.sin(angle), self.amplitude * np.cos(angle)
        return float(self.offset + sine), float(w * cosine), float(-w * w * sine)

    def over(self, t: Array) -> Array:
        """Values at many times."""
        w = 2 * np.pi * self.frequency
        return self.offset + self.amplitude * np.sin(w * t + self.phase)


@dataclass(frozen=True)
class Polynomial:
    """Sum of coefficients[k] t^k; a constant or a constant rate are the common cases."""

    coefficients: tuple[float, ...]

    def __call__(self, t: float) -> Triple:
        """Value, rate, acceleration at time t."""
        polynomial = np.polynomial.Polynomial(np.atleast_1d(self.coefficients))
        return float(polynomial(t)), float(polynomial.deriv()(t)), float(polynomial.deriv(2)(t))

    def over(self, t: Array) -> Array:
        """Values at many times."""
        polynomial = np.polynomial.Polynomial(np.atleast_1d(self.coefficients))
        return np.asarray(polynomial(t), np.float64)


@dataclass(frozen=True)
class Spline:
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
    def curve(self) -> PPoly:
        """The piecewise polynomial."""
        return CubicSpline(self.times, self.values, bc_type=self.ends)

    def __call__(self, t: float) -> Triple:
        """Value, rate, acceleration at time t."""
        end = min(max(t, self.times[0]), self.times[-1])
        value, rate = float(self.curve(end)), float(self.curve(end, 1))
        acceleration = float(self.curve(t, 2)) if end == t else 0.0
        return value + rate * (t - end), rate, acceleration

    def over(self, t: Array) -> Array:
        """Values at many times."""
        end = np.clip(t, self.times[0], self.times[-1])
        return np.asarray(self.curve(end) + self.curve(end, 1) * (t - end), np.float64)


@dataclass(frozen=True)
class Sum:
    """Several of the others, added up."""

    parts: tuple["Sine | Polynomial | Spline | Sum", ...]

    def __call__(self, t: float) -> Triple:
        """Value, rate, acceleration at time t."""
        value, rate, acceleration = np.sum([(0.0, 0.0, 0.0), *(s(t) for s in self.parts)], axis=0)
        return float(value), float(rate), float(acceleration)

    def over(self, t: Array) -> Array:
        """Values at many times."""
        total = np.zeros(len(t))
        for part in self.parts:
            total += part.over(t)
        return total


Signal = Callable[[float], Triple]
"""Time [s] to value, rate and acceleration; write your own or use those above."""


def still(_t: float) -> Triple:
    """The signal that stays zero."""
    return 0.0, 0.0, 0.0


@dataclass(frozen=True)
class Motion:
    """Motion of frame a relative to its link: translations along its axes, then a turn.

    Attributes:
        x, y, z: Translations along the axes of frame a [m]; z also drives distances and couplings.
        angle: Turn [rad] about ``axis``.
        axis: Unit vector in frame a; the loop joint's own axis unless given.
    """

    x: Signal = still
    y: Signal = still
    z: Signal = still
    angle: Signal = still
    axis: Triple | None = None

    def at(self, t: float) -> Array:
        """(4, 3): value, rate, acceleration of x, y, z and angle at time t."""
        return np.array([self.x(t), self.y(t), self.z(t), self.angle(t)], float)
