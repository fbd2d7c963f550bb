"""Constraints as the arrays that kernels read."""

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from bulletbridge.compilation.users import Takes
from bulletbridge.constraints.functions import ForceFunction
from bulletbridge.constraints.motion import Motion
from bulletbridge.constraints.moved_frames import place_frame
from bulletbridge.constraints.records import (
    TARGET,
)
from bulletbridge.constraints.user import UserConstraint
from bulletbridge.errors import ModelError
from bulletbridge.mechanism.records import EFFORT
from bulletbridge.numerics.records import Array, Mask


@dataclass(frozen=True)
class AskedWrench:
    """Force or torque of a wrench that is a function, asked where the state is known."""

    what: str  # what it is, for errors
    function: ForceFunction  # what gives it
    takes: Takes  # what that is called with
    element: int  # number of the wrench among the elements
    first: int  # of the three numbers of its ``wrench`` that they are


class Turned(NamedTuple):
    """A frame on a link that stands still, for as long as that is not turned.

    Attributes:
        link_R: Rotation (3, 3) of the link.
        R: That of what is encoded in the frame.
        arm: Way (3,) from the link to the frame [m].
        above: Way (3,) from there to what is encoded [m]; None if it is there.
    """

    link_R: Array
    R: Array
    arm: Array
    above: Array | None


@dataclass
class StandingFrame:
    """Frame of a loop on a link that stands still, for putting it where that link is.

    Attributes:
        loop: Its number.
        end: Fields of its rotation and position.
        link: The link.
        turn, xyz: Rotation (3, 3) and position (3,) of the frame on the link.
        axes: Rotation (3, 3) of what is encoded in the frame.
        height: How far above the frame the encoded one is, along z [m].
        on: What of it comes from how the link is turned, once that was asked for.
    """

    loop: int
    end: tuple[str, str]
    link: str
    turn: Array
    xyz: Array
    axes: Array
    height: float
    on: Turned | None = None


@dataclass(frozen=True)
class Encoded:
    """Constraints as arrays, and who owns which row.

    Attributes:
        loops, couplings, terms: Records for the kernels.
        rows: Rows of each constraint by name, in their order.
        in_metres: (nc,) whether a row's unit is the metre (otherwise the radian).
        scale: (nc,) factor that brings each row to one unit.
        motions: Prescribed motions, each with the rotation of the encoded frame a (z along the
            joint's axis) in frame a; targets are their values at a time.
        users: Constraints in plain Python; their rows are the last ones.
        length: Characteristic length [m] of the mechanism.
        elements: Records of force elements, which have no rows, and their names.
        asked: Functions of wrenches.
        standing: Frames on links that stand still, of the constraints named with them; as
            ``encode.encode_places`` has found them.
    """

    loops: np.ndarray
    couplings: np.ndarray
    terms: np.ndarray
    rows: dict[str, slice]
    in_metres: np.ndarray
    scale: Array
    motions: tuple[tuple[Motion, Array], ...]
    users: tuple[UserConstraint, ...]
    length: float
    elements: np.ndarray = field(default_factory=lambda: np.zeros(0, EFFORT))
    element_names: tuple[str, ...] = ()
    asked: tuple[AskedWrench, ...] = ()
    standing: tuple[object, list[StandingFrame]] = field(
        default=(None, []), init=False, repr=False, compare=False
    )

    @property
    def nc(self) -> int:
        """Number of rows."""
        return len(self.scale)

    @property
    def has_position(self) -> Mask:
        """(nc,) whether a row has a position level: those that forbid slip have none."""
        mask = np.ones(self.nc, bool)
        for loop in self.loops:
            constant = int(loop["rows"]) - (1 if loop["variable"] else 0)
            mask[loop["row"] + loop["held"] : loop["row"] + constant] = False
        return mask

    @property
    def driven(self) -> int:
        """As in ``engine.records.Control``."""
        chords = all(motion.along_chords for motion, _ in self.motions)
        return (2 if chords else 1) if self.motions else 0

    def targets(self, times: Array) -> np.ndarray:
        """Records (times, targets) of the prescribed motions.

        Raises:
            ModelError: One of them gives no finite numbers; the message names its constraint.
        """
        numbers = np.zeros((len(times), len(self.motions), TARGET.itemsize // 8))
        for k, (motion, R) in enumerate(self.motions):
            try:
                motion.put(times, R, numbers, k)
            except ModelError as error:
                raise ModelError(f"'{self._driven(k)}': {error}") from None
        table = np.ndarray(numbers.shape[:2], TARGET, numbers)
        for k in self._raised:
            loop = self.loops[k]
            _carry(table[:, int(loop["target"])], loop["turn"], float(loop["height"]))
        return table

    def without(self, name: str, kept: Array, held: int, left: Array, held_left: int) -> "Encoded":
        """The same with fewer rows in a loop.

        Args:
            name: The loop.
            kept: (k, rows) takes the place of its constant rows, which it is multiplied with.
            held: How many of these hold positions, the first ones.
            left: (l, rows) directions that are left out, and watched, each in one unit.
            held_left: How many of these hold positions.
        """
        index = [n for n in self.rows if self._is_loop(n)].index(name)
        loops = self.loops.copy()
        loop = loops[index]
        constant = int(loop["rows"]) - (1 if loop["variable"] else 0)
        dropped = constant - len(kept)
        for part in ("moment", "force"):
            loop[part][:constant] = np.vstack([kept, left]) @ loop[part][:constant]
        loop["rows"] -= dropped
        loop["held"], loop["left"], loop["left_rates"] = held, held_left, len(left) - held_left
        loops["row"][index + 1 :] -= dropped
        couplings = self.couplings.copy()
        couplings["row"] -= dropped
        rows: dict[str, slice] = {}
        for n, old in self.rows.items():
            start = sum(r.stop - r.start for r in rows.values())
            rows[n] = slice(start, start + old.stop - old.start - (dropped if n == name else 0))
        first = self.rows[name].start
        gone = list(range(first + len(kept), first + constant))
        # a kept combination of rows in metres and radians counts in metres
        in_metres = np.delete(self.in_metres, gone)
        for k in range(len(kept)):
            in_metres[rows[name].start + k] = bool(np.any(loop["force"][k]))
        scale = np.where(in_metres, 1.0 / self.length, np.delete(self.scale, gone))
        return replace(
            self, loops=loops, couplings=couplings, rows=rows, in_metres=in_metres, scale=scale
        )

    def place(self, name: str, frame: np.ndarray) -> None:
        """Put frame a of a loop where a frame (1,) of ``moved_frames`` is, in place."""
        place_frame(self.loops, self._index[name], frame)

    def set_offset(self, name: str, offset: float) -> None:
        """Give a coupling another offset, in place."""
        start = self.rows[name].start
        self.couplings["offset"][self.couplings["row"] == start] = offset

    def revise(self, fresh: "Encoded", names: Collection[str]) -> None:
        """Take over numbers of constraints and springs that were encoded again, in place.

        Args:
            fresh: All rows of the same constraints, as written.
            names: Those that have changed.
        """
        for name in names:
            if name in self._index:
                mine, new = self._index[name], fresh._index[name]
                for number in ("p_a", "p_b", "length"):
                    self.loops[number][mine] = fresh.loops[number][new]
            elif name in self.rows:
                row = fresh.couplings["row"] == fresh.rows[name].start
                self.set_offset(name, float(fresh.couplings["offset"][row][0]))
            elif name in self.element_names:
                at = self.element_names.index(name)
                self.elements[at] = fresh.elements[at]

    def _driven(self, target: int) -> str:
        """Name of what a prescribed motion drives."""
        rows = {part.start: name for name, part in self.rows.items()}
        for records in (self.loops, self.couplings):
            for record in records[records["target"] == target]:
                return rows[int(record["row"])]
        (found,) = np.flatnonzero(self.elements["target"] == target)
        return self.element_names[int(found)]

    @cached_property
    def _raised(self) -> list[int]:
        """Driven loops whose frames stand over the point about which they turn."""
        raised = (self.loops["target"] >= 0) & (self.loops["height"] > 0.0)
        return np.flatnonzero(raised).tolist()

    @cached_property
    def _index(self) -> dict[str, int]:
        """Loops by name."""
        return {name: k for k, name in enumerate(n for n in self.rows if self._is_loop(n))}

    def _is_loop(self, name: str) -> bool:
        return self.rows[name].start < sum(self.loops["rows"])


def _carry(target: np.ndarray, turn: Array, height: float) -> None:
    """Add to the translations of a motion what its turn about a point below the frame carries.

    Args:
        target: (times,) records.
        turn: (3,) unit axis of the turn.
        height: [m] of the frame along z over the point.
    """
    arm = np.array([0.0, 0.0, height])
    forward = np.cross(turn, arm)
    inward = np.cross(turn, forward)
    angle, rate, acceleration = (
        target[name][:, None] for name in ("angle", "rate", "acceleration")
    )
    sine, cosine = np.sin(angle), np.cos(angle)
    along, across = cosine * forward + sine * inward, cosine * inward - sine * forward
    target["p"] += sine * forward + (1.0 - cosine) * inward
    target["v"] += rate * along
    target["a"] += acceleration * along + rate**2 * across
