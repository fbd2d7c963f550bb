"""Gaps and reactions drawn into Bullet's window, a few times a second."""

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import pybullet

from bulletbridge.mechanism.records import SPRING
from bulletbridge.numerics.records import Array
from bulletbridge.system.system import System

PERIOD = 0.1
"""Seconds of wall time from the end of one drawing to the next, at least."""
REST = 2.0
"""The same in times that the drawing took: slow windows must not hold up the simulation."""
VISIBLE, MOST_MAGNIFIED = 0.05, 6
"""Length at which a gap is seen, in mechanism lengths; 10 to this power is the most it is drawn
longer than it is. Round-off stays invisible."""
WEIGHT_LENGTH, LONGEST = 1.0, 1.5
"""Length of an arrow as large as the ``Scale``, and of any arrow, in mechanism lengths."""
NEGLIGIBLE = 1e-4
"""No arrow below this share of the scale, or of the scale times the mechanism's length."""
FAINT = 1e-8
"""Share of the weight on Earth up to which a force says nothing of a scale: round-off is below."""
IN_FRONT = 0.35
"""Share of the way from the eye to a mark at which it is drawn: at the same place of the picture,
where no link hides it."""
FEW = 2
"""Constraints of which each gap and load is told in words; of more, the largest of each kind."""
HEAD = 0.15
"""Barbs of an arrow, relative to its length."""
ASIDE, BEYOND = 0.12, 0.06
"""Distance of words from a point, and beyond a tip, in mechanism lengths."""
GAP_COLOUR = (0.82, 0.1, 0.2)
FORCE_COLOUR, MOMENT_COLOUR = (0.85, 0.4, 0.0), (0.35, 0.1, 0.75)
SPRING_COLOUR = (0.1, 0.45, 0.3)
EARTH_GRAVITY = 9.81  # [m/s²], the unit of force where there is no gravity

Colour = tuple[float, float, float]


@dataclass(frozen=True)
class Mark:
    """What is drawn of one constraint, world axes."""

    name: str  # the constraint
    point_a: Array  # (3,) [m] where frame a wants the origin of frame b to be
    point_b: Array  # (3,) [m] where it is; the difference is the gap
    force: Array  # (3,) [N] on the link of frame b, at point b
    moment: Array  # (3,) [N m] about point b
    # what a force element exerts, in words; empty for a constraint, which has a gap
    spring: str = ""
    load: bool = False  # whether it is a force from outside, which has none
    told: bool = True  # whether its gap is told in words beside it

    @property
    def finite(self) -> bool:
        """Whether it can be drawn."""
        return bool(np.all(np.isfinite([self.point_a, self.point_b, self.force, self.moment])))


def marks_of(system: System) -> list[Mark]:
    """Gaps and reactions of all loops at the state of a system, springs between two points, loads.

    Couplings have no place.
    """
    reactions, nothing = system.reactions(), np.zeros(3)
    marks = [
        Mark(name, point - gap, point, reactions[name].force, reactions[name].torque)
        for name, (point, gap) in system.gap_vectors(kept=True).items()
    ]
    marks += [
        Mark(f"load {name}", w.point, w.point, w.force, w.torque, load=True)
        for name, w in system.applied_wrenches().items()
    ]
    return marks + [
        Mark(f"spring {name}", s.point_a, s.point_b, nothing, nothing, f"{s.force:.3g} N")
        for name, s in system.spring_forces().items()
        if s.kind == SPRING
    ]


def weight_of(system: System) -> float:
    """Weight of a mechanism [N]; that on Earth where there is no gravity."""
    g = float(np.linalg.norm(system.gravity)) or EARTH_GRAVITY
    bodies, stations = system.mechanism.bodies, system.mechanism.stations
    return float(bodies["mass"].sum() + stations["mass"].sum()) * g


@dataclass
class Scale:
    """The force [N] by which arrows are drawn: the weight of what is seen.

    Where nothing has weight, ``grows`` says that it is the largest force that was drawn so far, or
    moment over the mechanism's length.
    """

    force: float
    grows: bool = False

    @classmethod
    def of(cls, *systems: System) -> "Scale":
        """The scale of systems in one world."""
        grows = not any(np.any(system.gravity) for system in systems)
        weight = max(weight_of(system) for system in systems)
        return cls(FAINT * weight if grows else weight, grows)

    def fit(self, marks: Iterable[Mark], length: float) -> None:
        """Grow with what is to be drawn of a mechanism of a length [m]."""
        if self.grows:
            for mark in marks:
                moment = float(np.linalg.norm(mark.moment)) / length
                self.force = max(self.force, float(np.linalg.norm(mark.force)), moment)


class Overlay:
    """Draws constraints into the window of a Bullet client; without a window it does nothing.

    Every item takes the place of its former self, and items of constraints that are gone go too.
    While it draws, rendering is off, as each item would wait for a frame of the window otherwise.

    Args:
        client: Bullet's client id.
        scale: What is drawn as ``WEIGHT_LENGTH`` mechanism lengths.
        length: Of the mechanism [m]; force times length is what a moment is measured by.
        gap_colour: Of gaps.
        clock: Wall time [s].
    """

    def __init__(
        self,
        client: int,
        scale: Scale,
        length: float,
        *,
        gap_colour: Colour = GAP_COLOUR,
        clock: Callable[[], float] = perf_counter,
    ) -> None:
        self.client, self.scale, self.length = client, scale, length
        self.gap_colour, self._clock = gap_colour, clock
        self._due_at = -np.inf
        self._eye: Array | None = None
        self._told: dict[str, str] = {}
        self._items: dict[tuple[str, str], int] = {}
        self._stale: set[tuple[str, str]] = set()

    @property
    def due(self) -> bool:
        """Whether ``update`` would draw; ask first where marks are dear."""
        return self._clock() >= self._due_at and has_window(self.client)

    def update(self, marks: Iterable[Mark]) -> bool:
        """Draw the marks, unless the last drawing was less than ``PERIOD`` ago; say whether.

        Raises:
            pybullet.error: The window was closed meanwhile.
        """
        if not self.due:
            return False
        begun, self._stale = self._clock(), set(self._items)
        self._eye = eye_of(self.client)
        drawn = [mark for mark in marks if mark.finite]
        self._told = largest_of(drawn)
        self.scale.fit(drawn, self.length)
        with not_rendered(self.client):
            for mark in drawn:
                self._draw(mark)
            for key in self._stale:
                self._remove(key)
        done = self._clock()
        self._due_at = done + max(PERIOD, REST * (done - begun))
        return True

    def clear(self) -> None:
        """Remove all that is drawn; the next ``update`` draws at once."""
        if self._items and has_window(self.client):
            with not_rendered(self.client):
                for key in list(self._items):
                    self._remove(key)
        self._items.clear()
        self._due_at = -np.inf

    def _draw(self, mark: Mark) -> None:
        if mark.spring:
            self._line(mark, "spring", mark.point_a, mark.point_b, SPRING_COLOUR)
            middle = 0.5 * (mark.point_a + mark.point_b)
            self._text(mark, "spring", f"{mark.name}: {mark.spring}", middle, SPRING_COLOUR)
            return
        if not mark.load:
            self._draw_gap(mark)
        self._arrow(mark, "force", mark.force, self.scale.force, "N", FORCE_COLOUR)
        whole = self.scale.force * self.length
        self._arrow(mark, "moment", mark.moment, whole, "N m", MOMENT_COLOUR)

    def _draw_gap(self, mark: Mark) -> None:
        gap = mark.point_b - mark.point_a
        size = float(np.linalg.norm(gap))
        factor = magnification(size, self.length)
        self._line(mark, "gap", mark.point_b - factor * gap, mark.point_b, self.gap_colour)
        if not (mark.told and self._tells(mark, "gap")):
            return
        said = f" (x{factor:g})" if factor > 1.0 else ""
        at = mark.point_b + ASIDE * self.length * away_from(mark.force, mark.moment)
        self._text(mark, "gap", f"{mark.name}: {1e3 * size:.2g} mm{said}", at, self.gap_colour)

    def _arrow(
        self, mark: Mark, part: str, vector: Array, whole: float, unit: str, colour: Colour
    ) -> None:
        """A vector (3,) from point b, with four barbs and its length in words at the tip."""
        size = float(np.linalg.norm(vector))
        if size <= NEGLIGIBLE * whole:
            return
        drawn = self.length * min(WEIGHT_LENGTH * size / whole, LONGEST)
        along = vector / size
        tip = mark.point_b + drawn * along
        self._line(mark, part, mark.point_b, tip, colour)
        back, aside = tip - HEAD * drawn * along, 0.4 * HEAD * drawn * across(along)
        barbs = (aside, -aside, np.cross(along, aside), -np.cross(along, aside))
        for number, barb in enumerate(barbs):
            self._line(mark, f"{part} {number}", tip, back + barb, colour)
        if self._tells(mark, part):
            at = tip + BEYOND * self.length * along
            self._text(mark, part, f"{in_figures(size)} {unit}", at, colour)

    def _tells(self, mark: Mark, part: str) -> bool:
        """Whether a part of a mark is told in words."""
        return not self._told or self._told[part] == mark.name

    def _line(self, mark: Mark, part: str, start: Array, end: Array, colour: Colour) -> None:
        former = self._former(mark, f"{part} line")
        made = pybullet.addUserDebugLine(
            self._in_front(start).tolist(),
            self._in_front(end).tolist(),
            lineColorRGB=colour,
            lineWidth=3,
            replaceItemUniqueId=former,
            physicsClientId=self.client,
        )
        self._items[mark.name, f"{part} line"] = known(made, former)

    def _text(self, mark: Mark, part: str, text: str, at: Array, colour: Colour) -> None:
        former = self._former(mark, f"{part} text")
        made = put_text(self.client, text, self._in_front(at), colour, 1.1, former)
        self._items[mark.name, f"{part} text"] = made

    def _in_front(self, point: Array) -> Array:
        """Where what is drawn at a point (3,) [m] is seen before everything else."""
        return point if self._eye is None else self._eye + IN_FRONT * (point - self._eye)

    def _former(self, mark: Mark, part: str) -> int:
        """Id of an item that is drawn again, -1 for a new one."""
        self._stale.discard((mark.name, part))
        return self._items.get((mark.name, part), -1)

    def _remove(self, key: tuple[str, str]) -> None:
        pybullet.removeUserDebugItem(self._items.pop(key), physicsClientId=self.client)


def largest_of(marks: Sequence[Mark]) -> dict[str, str]:
    """Whose gap, force and moment is the largest; empty where the marks are few."""
    shown = [mark for mark in marks if not mark.spring]
    if len(shown) <= FEW:
        return {}
    sizes: dict[str, Callable[[Mark], float]] = {
        "gap": lambda mark: (
            -1.0 if mark.load else float(np.linalg.norm(mark.point_b - mark.point_a))
        ),
        "force": lambda mark: float(np.linalg.norm(mark.force)),
        "moment": lambda mark: float(np.linalg.norm(mark.moment)),
    }
    return {part: max(shown, key=size).name for part, size in sizes.items()}


def in_figures(size: float) -> str:
    """A number in three figures, without a power of ten as long as it is easily read."""
    return f"{size:.0f}" if 1e3 <= size < 1e5 else f"{size:.3g}"


def put_text(
    client: int, text: str, at: Array, colour: Colour, size: float, former: int = -1
) -> int:
    """Words at a point (3,) [m] of a window, in the place of a former item; the id of the item."""
    made = pybullet.addUserDebugText(
        text,
        at.tolist(),
        textColorRGB=colour,
        textSize=size,
        replaceItemUniqueId=former,
        physicsClientId=client,
    )
    return known(made, former)


def known(made: int, former: int) -> int:
    """Id of an item: Bullet sometimes answers -1 although the former one is there as before."""
    return made if made >= 0 else former


def has_window(client: int) -> bool:
    """Whether a client is connected to a world that somebody may look at."""
    method: int = pybullet.getConnectionInfo(physicsClientId=client)["connectionMethod"]
    return bool(pybullet.isConnected(client)) and method != pybullet.DIRECT


def eye_of(client: int) -> Array | None:
    """Where the camera of a window stands (3,) [m]; None if Bullet does not tell."""
    camera = pybullet.getDebugVisualizerCamera(physicsClientId=client)
    if not camera or not camera[0]:  # of a world that others show, it may be told without a size
        return None
    forward, distance, target = camera[5], camera[10], camera[11]
    return np.array(target) - distance * np.array(forward)


@contextmanager
def not_rendered(client: int) -> Generator[None, None, None]:
    """Hold the picture still meanwhile."""
    flag = pybullet.COV_ENABLE_RENDERING
    pybullet.configureDebugVisualizer(flag, 0, physicsClientId=client)
    try:
        yield
    finally:
        pybullet.configureDebugVisualizer(flag, 1, physicsClientId=client)


def magnification(size: float, length: float) -> float:
    """Power of ten by which a gap [m] is drawn longer, to be seen on a mechanism of a length.

    One when it is large enough, and when it is too small for any.
    """
    for power in range(MOST_MAGNIFIED + 1):
        if size * 10.0**power >= VISIBLE * length:
            return 10.0**power
    return 1.0


def is_seen(size: float, length: float) -> bool:
    """Whether a gap [m] is wide enough to be seen on a mechanism of a length, drawn longer or not.

    Round-off is not.
    """
    return size * 10.0**MOST_MAGNIFIED >= VISIBLE * length


def away_from(*vectors: Array) -> Array:
    """A unit vector (3,) away from some, down where they leave no side."""
    sizes = [(vector, float(np.linalg.norm(vector))) for vector in vectors]
    side = -sum((vector / size for vector, size in sizes if size), np.zeros(3))
    length = float(np.linalg.norm(side))
    return side / length if length > 0.1 else np.array([0.0, 0.0, -1.0])


def across(along: Array) -> Array:
    """A unit vector (3,) at right angles to one."""
    found = np.asarray(np.cross(along, np.eye(3)[int(np.argmin(np.abs(along)))]), float)
    return found / np.linalg.norm(found)
