"""Derivatives by extrapolated central differences, along the displacements of configurations."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bulletbridge.mechanism.kinematics import displace
from bulletbridge.mechanism.model import Mechanism

Array = NDArray[np.float64]
STEP = 2e-3
"""Of a function of size 1: the error goes with its eighth power, that of rounding with 1e-16 over
it."""


def rate_of(function: Callable[[float], Array], h: float = STEP) -> Array:
    """Derivative at 0 of a function of a number, to order 8."""
    table = [(function(s) - function(-s)) / (2 * s) for s in (h, h / 2, h / 4, h / 8)]
    for order in (4.0, 16.0, 64.0):
        table = [(order * b - a) / (order - 1) for a, b in zip(table, table[1:], strict=False)]
    return table[0]


def moved(mechanism: Mechanism, q: Array, way: Array) -> Array:
    """The configuration displaced by a rate (nv,) over a unit of time."""
    there = np.empty_like(q)
    displace(mechanism.bodies, q, way, 1.0, there)
    return there


def by_columns(function: Callable[[Any], Array], count: int) -> Array:
    """Derivative at 0 of a function of ``count`` numbers, a column each."""
    units = np.eye(count)
    columns = [rate_of(lambda s, k=k: function(s * units[k])) for k in range(count)]
    return np.stack(columns, axis=-1)
