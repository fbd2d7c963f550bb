"""Rows whose forces in a step are not given, and what each of them asks for."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from bulletbridge.engine.stepper import Solver
from bulletbridge.inequalities.active_rows import REPORT, ActiveRows, Equations
from bulletbridge.inequalities.contact_slopes import ContactSlopes, PushingContacts
from bulletbridge.inequalities.contact_variations import ROWS_OF_ONE, Beside
from bulletbridge.inequalities.motor_agreement import room_of_agreement
from bulletbridge.mechanism.by_joint import rate_names
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.mechanism.records import CONTACT_POINT
from bulletbridge.numerics.records import Array

OTHERWISE = "; use central differences of step()"
ABOUT = (
    "a motor, friction or limit of '{}' is about to act otherwise than in this step; use central"
    " differences of step()"
)
ABOUT_CONTACT = f"the {{}} is about to act otherwise than in this step{OTHERWISE}"


class Active:
    """Rows whose forces are not given, of joints and then of contacts.

    Args:
        solver: Whose.
        most: As many as there may be.
        touch: Contacts that push, or might.

    Attributes:
        room: ``most`` and ``touch``.
        arrays: These rows.
        equations: What they are solved in,
        agreement: and where motors agree.
        pushing: Contacts,
        slopes_of: and what they ask for.
    """

    def __init__(self, solver: Solver, most: int, touch: int) -> None:
        mechanism = solver.mechanism
        nv, (rates, forces, rooms, least, strengths) = mechanism.nv, np.zeros((5, most))
        bent, sides, free, right = np.zeros((4, most, 3 * nv))
        (K, L, S, N), (of, idle) = np.zeros((4, most, most)), np.zeros((2, most, 2), np.int64)
        rows, moved = np.zeros((2, most, nv))
        turned, pushes = np.zeros((2, nv, 3 * nv))
        self.room, self._mechanism = (most, touch), mechanism
        self.arrays = ActiveRows(
            rows, bent, sides, K, L, rates, forces, rooms, least, strengths, of, idle,
            np.zeros(2, np.int64),
        )  # fmt: skip
        units, columns = np.zeros(most), np.zeros(most, np.int64)
        self.equations = Equations(
            moved,
            np.zeros((nv, most)),
            S,
            free,
            N,
            right,
            units,
            columns,
            turned,
            pushes,
            np.zeros(REPORT),
        )
        self.agreement = room_of_agreement(most, nv, solver.encoded.nc, solver.still)
        compliance, gaps = np.zeros((2, touch))
        used, off, (of_forces, mu, by_load) = *np.zeros((2, touch, 3)), np.zeros((3, touch, 6))
        self.slopes_of = ContactSlopes(
            gaps, np.zeros((touch, 3 * nv)), np.zeros(touch, np.int64),
            np.zeros((touch, 6, 3 * nv)), np.zeros((6 * touch, nv)), np.zeros((nv, nv)),
            np.zeros((touch, 3), np.int64), used, off, by_load, np.zeros((touch, 6, 2)),
        )  # fmt: skip
        none, C = np.zeros(0, CONTACT_POINT), np.zeros((0, nv))
        by_q = np.zeros((nv, 0, 4 + ROWS_OF_ONE * nv))
        self.pushing = PushingContacts(none, compliance, of_forces, mu, C, by_q)

    def take(self, s: Beside) -> None:
        """Have contacts that push, or might, with what they change by."""
        C = s.C[: ROWS_OF_ONE * len(s.compliant)]
        points = s.contact_points[: len(s.compliant)]
        self.pushing = self.pushing._replace(contact_points=points, C=C, by_q=s.by_q)

    @property
    def rates(self) -> tuple[str, ...]:
        """(nv,) names of the rates."""
        return rate_names(self._mechanism)

    @property
    def count(self) -> int:
        """How many act."""
        return int(self.arrays.counts[0])

    @property
    def idle(self) -> list[tuple[int, int]]:
        """Contacts, and their rows, that exert all that they can, or nothing, and do not move."""
        found: list[list[int]] = self.arrays.idle[: self.arrays.counts[1]].tolist()
        return [(k, r) for k, r in found]

    def about(self, n: int) -> str:
        """What is said of a row that is about to act otherwise."""
        contact, which = self.arrays.of[n].tolist()
        return self.about_contact(contact) if contact >= 0 else self.about_axis(which)

    def about_axis(self, axis: int) -> str:
        """What is said of a joint that is about to act otherwise."""
        return ABOUT.format(self.rates[axis])

    def about_contact(self, k: int) -> str:
        """What is said of a contact that is about to act otherwise."""
        return ABOUT_CONTACT.format(self.name(k))

    def name(self, k: int) -> str:
        """A contact in words."""
        return contact_names(np.asarray(self.pushing.contact_points), self._mechanism)[k]

    @property
    def at_rest(self) -> tuple[str, ...]:
        """Contacts that rest, in words."""
        return tuple(self.name(int(k)) for k in np.flatnonzero(self.slopes_of.at_rest))

    def rows_named(self, rows: Sequence[int]) -> str:
        """Rows in words: contacts with how many of their points, and joints."""
        of = {(k, 0 if k >= 0 else axis) for k, axis in self.arrays.of[rows].tolist()}
        joints = [f"'{self.rates[axis]}'" for k, axis in sorted(of) if k < 0]
        points = Counter(self.name(k) for k, _ in sorted(of) if k >= 0)
        return ", ".join(
            [f"{name} at {n} points" if n > 1 else name for name, n in points.items()] + joints
        )

    def off_by_idle(self, moved: Array) -> list[tuple[int, Array]]:
        """Contacts of rows that are idle, and how far (3 nv,) each is off what it asks for.

        Args:
            moved: (nv, 3 nv) changes of the rates.
        """
        contacts, found = self.pushing, self.slopes_of
        left = [contacts.C[6 * k + r] @ moved + found.bent[k, r] for k, r in self.idle]
        sides = [found.sides[k] if r == 0 else 0.0 for k, r in self.idle]
        return [(k, off - side) for (k, _), off, side in zip(self.idle, left, sides, strict=True)]


def contact_names(points: np.ndarray, mechanism: Mechanism) -> list[str]:
    """Contacts in words."""
    links = mechanism.first_links
    pairs = zip(points["body_a"].tolist(), points["body_b"].tolist(), strict=True)
    return [f"contact of '{links[b]}' with '{links[a]}'" for a, b in pairs]
