"""Which runs a study consists of."""

import hashlib
import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bulletbridge.console import number
from bulletbridge.errors import ModelError
from bulletbridge.numerics.records import Array, array_of

Parameters = dict[str, float]
SHAPES = "give VALUE, VALUE,VALUE,..., LOW:HIGH:COUNT, LOW:HIGH or LOW:HIGH:log"


@dataclass(frozen=True)
class Study:
    """Numbered runs of one function."""

    names: tuple[str, ...]  # of the parameters
    points: Array  # (runs, parameters) their values, run by run
    about: str  # what is run, in words that change when it does

    def parameters(self, run: int) -> Parameters:
        """Parameters of one run."""
        values: list[float] = self.points[run].tolist()
        return dict(zip(self.names, values, strict=True))

    @property
    def key(self) -> str:
        """Hash of the names, points and settings: equal for equal studies."""
        text = json.dumps([self.names, self.points.tolist(), self.about])
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class Spread:
    """Values of one parameter.

    Attributes:
        values: Named one by one; empty if there are ends.
        low, high: Ends, both included.
        count: Number of values from low to high; 0 for any that is drawn.
        log: Whether values grow by a factor instead of a difference.
    """

    values: tuple[float, ...] = ()
    low: float = 0.0
    high: float = 0.0
    count: int = 0
    log: bool = False

    def at(self, share: Array) -> Array:
        """Values at shares (n,) between 0, the low end, and 1."""
        if not self.log:
            return self.low + share * (self.high - self.low)
        return np.exp(np.log(self.low) + share * (np.log(self.high) - np.log(self.low)))


def read_setting(text: str) -> tuple[str, Spread]:
    """Name and values of ``NAME=VALUES``.

    Raises:
        ModelError: It cannot be read; it says what can.
    """
    name, equals, values = text.partition("=")
    refusal = ModelError(f"cannot read the setting '{text}'; {SHAPES} after NAME=")
    if not (name and equals and values):
        raise refusal
    parts = values.split(":")
    log = parts[-1] == "log"
    numbers = parts[:-1] if log else parts
    try:
        if len(parts) == 1:
            spread = Spread(tuple(number(x) for x in values.split(",")))
        else:
            low, high = number(numbers[0]), number(numbers[1])
            count = int(numbers[2]) if len(numbers) == 3 else 0
            spread = Spread((), low, high, count, log)
            if len(numbers) > 3 or (len(numbers) == 3 and count < 1) or (log and low * high <= 0.0):
                raise refusal
            if log and low < 0.0:
                raise refusal
    except (ValueError, IndexError):
        raise refusal from None
    if not np.all(np.isfinite([spread.low, spread.high, *spread.values])):
        raise refusal
    return name.strip(), spread


def grid(settings: Mapping[str, Sequence[float]]) -> list[Parameters]:
    """Every combination of values, the last parameter the fastest.

    Raises:
        ModelError: Values are no list of numbers.
    """
    spreads: list[list[float]] = []
    for name, values in settings.items():
        numbers = array_of(f"parameter '{name}'", values)
        if numbers.ndim != 1:
            raise ModelError(f"parameter '{name}' is {values!r}; give a list of numbers")
        spreads.append(numbers.tolist())
    return [dict(zip(settings, point, strict=True)) for point in itertools.product(*spreads)]


def grid_values(name: str, spread: Spread) -> list[float]:
    """Values of a spread in a grid.

    Raises:
        ModelError: It has no number of values.
    """
    if spread.values:
        return list(spread.values)
    if not spread.count:
        raise ModelError(
            f"a grid needs the number of values of '{name}'; write {spread.low:g}:{spread.high:g}:5"
            " for five of them, or add --random N"
        )
    return spread.at(np.linspace(0.0, 1.0, spread.count)).tolist()


def sample(settings: Mapping[str, Spread], count: int, seed: int = 0) -> list[Parameters]:
    """A Latin hypercube: each parameter has one value in each of ``count`` equal shares.

    Args:
        settings: Ends of each parameter, or one value that it keeps.
        count: Number of runs.
        seed: Of the random numbers.

    Raises:
        ModelError: A parameter has several values, or a number of them.
    """
    rng = np.random.default_rng(seed)
    columns: list[Array] = []
    for name, spread in settings.items():
        if len(spread.values) > 1 or spread.count:
            raise ModelError(f"random values of '{name}' need its ends alone; write LOW:HIGH")
        shares = (rng.permutation(count) + rng.random(count)) / count
        columns.append(np.full(count, spread.values[0]) if spread.values else spread.at(shares))
    rows: list[list[float]] = np.column_stack(columns).tolist()
    return [dict(zip(settings, row, strict=True)) for row in rows]
