"""Constraints with a force limit as rigid ones, as long as what they exert stays within it.

A solver of their rows beside those of the rigid constraints steps while they hold; what the rows
supplied in a step is held to the limits afterwards. Those that give way leave it, and are
inequalities again.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from bulletbridge.engine.choose import islands_among
from bulletbridge.engine.islands import find_islands
from bulletbridge.engine.redundancy import Decision
from bulletbridge.engine.stepper import Solver
from bulletbridge.engine.workspace import Tolerances
from bulletbridge.inequalities.constraints import InequalityConstraints
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.numerics.memory import Memory
from bulletbridge.numerics.records import Array, Mask

LAST_CHOICE = 0.1
"""Length by which rows with a force limit count beside others, where some follow from others: what
rigid ones can carry is left to them."""
GAVE_WAY = 17
"""Failure: a constraint would have exerted more than its limit."""
TINY = 1e-300
STRONGER = 1e3
"""Times the largest impulse at hand that a row can have at most, as a share in a load; rigid rows
can have as many times that."""


@dataclass(frozen=True, eq=False)
class RigidLimitsMemory:
    """What a ``RigidLimits`` goes by: what was decided about its rows, and where that stands."""

    names: tuple[str, ...]
    holding: frozenset[str]
    decision: Decision
    solver: Memory

    def __eq__(self, other: object) -> bool:
        """Whether both lead to the same steps."""
        return isinstance(other, RigidLimitsMemory) and (
            (self.names, self.holding, self.solver) == (other.names, other.holding, other.solver)
        )

    __hash__ = None  # pyright: ignore[reportAssignmentType]


class HeldConstraint(NamedTuple):
    """A constraint with a force limit that may hold."""

    name: str
    record: int  # of its limit
    part: slice  # its rows in the solver
    back: Array  # (rows there, rows as written): each of the former in terms of the latter


def preferring_others(decision: Decision, names: Collection[str]) -> Decision:
    """The decision with rows of the named constraints taken after all others."""
    scale = decision.scale.copy()
    for name in names:
        scale[decision.encoded.rows[name]] *= LAST_CHOICE
    return replace(decision, scale=scale)


class RigidLimits:
    """A solver in which constraints with a force limit are rigid.

    Args:
        mechanism: The tree.
        tolerances: Thresholds of the solver.
        inequalities: The limits, and their rows; of those that may hold nothing is left along
            directions that are redundant.
        written: Records of their loops with the rows as written.
        names: Of those that may hold.
        decision: About their rows and those of the rigid constraints, by ``preferring_others``.

    Attributes:
        solver: Their rows; those that do not hold vanish in it.
        names, decision: As given.
        holding: Names of those that hold.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        tolerances: Tolerances,
        inequalities: InequalityConstraints,
        written: np.ndarray,
        names: Sequence[str],
        decision: Decision,
    ) -> None:
        self.names, self.decision, self.inequalities = tuple(names), decision, inequalities
        self.solver = Solver(mechanism, decision.encoded, tolerances)
        self.holding = frozenset(names)
        self._sizes = self.solver.rows[0]["unit"].copy()
        self._loops = list(decision.encoded.rows)[: len(decision.encoded.loops)]
        self._allowed = decision.encoded.loops["allowed"].copy()
        self._held = tuple(self._of(name, written) for name in names)
        self._own: list[int] = []  # records of those that hold
        # impulse that limits count over the largest of any row, at most
        self._gain = max(float(np.linalg.norm(held.back, 2)) * 3.0 for held in self._held)
        self.solver.decide_rank(decision.caps, decision.scale, decision.slack, decision.most_left)
        self.hold(self.holding)

    def _of(self, name: str, loops: np.ndarray) -> HeldConstraint:
        """Where a constraint is, and how its rows make up those that are kept."""
        limited, encoded = self.inequalities.force_limited, self.decision.encoded
        part, written = encoded.rows[name], limited.rows[name]
        count, kept = written.stop - written.start, part.stop - part.start
        back, index = np.eye(count), list(limited.rows).index(name)
        if kept < count:
            loop, own = loops[index], encoded.loops[self._loops.index(name)]
            variable = 1 if loop["variable"] else 0
            wrenches = [
                np.hstack([one["moment"], one["force"]])[: rows - variable]
                for one, rows in ((own, kept), (loop, count))
            ]
            back = np.zeros((kept, count))
            back[: kept - variable, : count - variable] = np.linalg.lstsq(
                wrenches[1].T, wrenches[0].T, rcond=None
            )[0].T
            back[kept - variable :, count - variable :] = np.eye(variable)
            size = limited.scale[written]
            across = np.linalg.pinv(back / size)
            along = (across @ (back / size) * size / size[:, None])[: count - variable]
            for field in ("moment", "force"):
                basis = loop[field][: count - variable]
                limited.loops[index][field][: count - variable] = (
                    along[:, : count - variable] @ basis
                )
        return HeldConstraint(name, index, part, back)

    def hold(self, names: Collection[str]) -> None:
        """Let the named ones hold, and the rows of the others vanish."""
        solver, gone = self.solver, self._rows_but(names)
        self.holding = frozenset(names)
        for field, sizes in (("unit", self._sizes), ("scale", self.decision.scale)):
            solver.rows[0][field] = np.where(gone, 0.0, sizes)
        others = {name for name in self.names if name not in self.holding}
        allowed = solver.encoded.loops["allowed"]
        allowed[:] = np.where([name in others for name in self._loops], np.inf, self._allowed)
        decision = self.decision
        solver.take_caps(decision.caps_of(~gone) if others else decision.caps)
        solver.control[0]["factored"] = 0
        self._own = [held.record for held in self._held if held.name in self.holding]
        self._tell()

    @property
    def all_hold(self) -> bool:
        """Whether no constraint with a force limit gives way."""
        return len(self.holding) == len(self.inequalities.force_limits)

    def find_islands(self) -> None:
        """Let the solver know what nothing joins as long as all of them hold."""
        solver = self.solver
        if len(self.names) == len(self.inequalities.force_limits) and solver.backend != "dense":
            members = find_islands(solver.mechanism, solver.encoded)
            solver.islands = islands_among(members, solver, self.decision)

    def _tell(self) -> None:
        """Let the inequality rows know who holds."""
        names = self.inequalities.force_limited.rows
        self.inequalities.force_limits["holds"] = [name in self.holding for name in names]

    def _rows_but(self, names: Collection[str]) -> Mask:
        """(nc,) rows of constraints with a force limit that are not named."""
        rows = np.zeros(self.solver.encoded.nc, bool)
        for name in self.names:
            if name not in names:
                rows[self.decision.encoded.rows[name]] = True
        return rows

    def over(self, supplied: Array, dt: float) -> str:
        """Which of those that hold exceeded its limit most in a step; empty for none.

        Args:
            supplied: (nc,) impulses of the rows in that step [N s, N m s].
            dt: Its length [s].
        """
        forces: list[float] = self.inequalities.force_limits["force"][self._own].tolist()
        impulses: list[float] = supplied.tolist()
        if max(map(abs, impulses)) * self._gain <= min(forces) * dt:
            return ""  # nearly always
        worst = self._worst(supplied, dt)
        rank, rows = int(self.solver.control[0]["filter_rank"]), np.count_nonzero(self._now())
        return self._worst(self._shared(supplied, dt), dt) if worst and rank < rows else worst

    def _now(self) -> Mask:
        """(nc,) rows that there are now."""
        return self.solver.rows[0]["scale"] > 0.0

    def _worst(self, supplied: Array, dt: float) -> str:
        """The constraint beyond its limit by the largest factor, if rows supply this."""
        name, most = "", 1.0
        for held in self._held:
            if held.name not in self.holding:
                continue
            limit = self.inequalities.force_limits[held.record]
            lam, bound = supplied[held.part] @ held.back, float(limit["force"]) * dt
            largest = self._largest(held, lam, limit, dt)
            if largest > most * bound:
                name, most = held.name, largest / max(bound, TINY)
        return name

    def _largest(self, held: HeldConstraint, lam: Array, limit: np.void, dt: float) -> float:
        """Largest impulse of any row as the limit counts them, those of a point in world axes."""
        if limit["loop"] < 0:
            return float(np.abs(lam).max(initial=0.0))
        along, about = float(np.linalg.norm(lam[:3])), float(np.abs(lam[3:]).max(initial=0.0))
        if along > float(limit["force"]) * dt:  # turned, it may be less
            solver = self.solver
            terms = solver.terms(solver.q, solver.v, solver.t)
            _, rows = solver.wrench_rows(
                terms.poses, int(limit["loop"]), solver.t, self.inequalities.force_limited
            )
            along = float(np.abs(lam[:3] @ rows[:3, 3:]).max())
        return max(along, about)

    def _shared(self, supplied: Array, dt: float) -> Array:
        """The same in all with each row's share relative to its limit, as small as can be."""
        solver, there = self.solver, self._now()
        J = solver.terms(solver.q, solver.v, solver.t).J * there[:, None]
        size = STRONGER * float(np.abs(supplied).max())
        bound = np.full(len(supplied), STRONGER * size)
        for held in self._held:
            force = float(self.inequalities.force_limits[held.record]["force"])
            bound[held.part] = min(force * dt, size)
        weighted = bound[:, None] * J
        shares = np.linalg.lstsq(weighted.T, J.T @ supplied, rcond=1e-12)[0]
        return bound * np.asarray(shares, np.float64)

    def memory(self) -> RigidLimitsMemory:
        """What the next steps go by."""
        return RigidLimitsMemory(self.names, self.holding, self.decision, self.solver.memory())

    def recall(self, memory: RigidLimitsMemory) -> None:
        """Go on from a memory of the same names and the same decision."""
        self.hold(memory.holding)
        self.solver.recall(memory.solver)
