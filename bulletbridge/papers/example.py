"""What an example of a paper gives: numbers beside others', curves, and what they are about."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from bulletbridge.numerics.records import Array

Source = Literal["paper", "program", "theory", "finer"]
"""Where the other number comes from: printed, an independent program, closed form, finer steps."""


class Row(NamedTuple):
    """A number beside another."""

    name: str  # what it is, with its unit
    ours: float  # what was obtained
    other: float | None = None  # what it is held against; None where there is nothing
    # what they may differ by; None where they need not agree (the page says why)
    allowed: float | None = None
    source: Source = "program"  # of the other number

    @property
    def difference(self) -> float | None:
        """Ours less the other."""
        return None if self.other is None else self.ours - self.other

    @property
    def agrees(self) -> bool:
        """Whether they differ by no more than is allowed; nothing to compare agrees."""
        if self.difference is None or self.allowed is None:
            return True
        return abs(self.difference) <= self.allowed


class Table(NamedTuple):
    """Rows under a heading."""

    title: str
    rows: Sequence[Row]

    @property
    def worst(self) -> Row | None:
        """The row that uses most of what it may differ by."""
        held = [row for row in self.rows if row.difference is not None and row.allowed]
        return max(held, key=lambda r: abs(r.difference or 0.0) / (r.allowed or 1.0), default=None)


class Curve(NamedTuple):
    """A line, or with ``dots`` the other's points."""

    label: str
    x: Array
    y: Array
    dots: bool = False


class Panel(NamedTuple):
    """One pair of axes."""

    x: str  # label, with its unit
    y: str  # label, with its unit
    curves: Sequence[Curve]  # what is drawn
    log: bool = False  # whether y is logarithmic
    equal: bool = False  # whether a metre is as long on both axes
    title: str = ""  # above it


class Film(NamedTuple):
    """A motion to watch in Bullet's window."""

    robot: str | Path  # bundled name or loops file
    times: Array  # (n,) [s]
    states: Array  # (n, nq)


@dataclass(frozen=True)
class Outcome:
    """What a run of an example gave."""

    tables: Sequence[Table]
    panels: Sequence[Panel] = ()
    film: Film | None = None

    @property
    def agrees(self) -> bool:
        """Whether all numbers do that have to."""
        return all(row.agrees for table in self.tables for row in table.rows)


@dataclass(frozen=True)
class Example:
    """A figure or table of a paper."""

    name: str  # as the command has it
    paper: str  # whose
    title: str  # what it is, in a line
    shows: str  # what the paper shows with it, and how it is run here
    cannot: str  # what it cannot show, and what cannot be reproduced
    run: Callable[[float | None], Outcome]  # runs it up to a time [s], or as long as the paper does


def until(times: Iterable[float], end: float | None) -> list[float]:
    """Times, of increasing ones, that a run reaches."""
    return [t for t in times if end is None or t <= end * (1.0 + 1e-12)]


def worst_entry(
    name: str,
    ours: Array,
    other: Sequence[float] | Array,
    allowed: float,
) -> Row:
    """The entry of a vector that differs most, as a row."""
    k = int(np.abs(np.asarray(ours) - other).argmax())
    return Row(f"{name}, entry {k + 1} of {len(ours)}", float(ours[k]), float(other[k]), allowed)
