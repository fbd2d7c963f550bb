"""The constraints that act on a mechanism: their rows, which are redundant, solvers at a state."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bulletbridge.constraints.arrays import Encoded
from bulletbridge.constraints.encode import Constraint, encode_places, require_names
from bulletbridge.constraints.force_element_records import encode_closed
from bulletbridge.engine.choose import copy_of, may_be_sparse, solver_of
from bulletbridge.engine.correction import PROMISED
from bulletbridge.engine.failures import check_finite, require_closed, require_freedom, widest
from bulletbridge.engine.likely_mistakes import idle_axis, in_other_units, likely_mistakes
from bulletbridge.engine.records import LEFT_OPEN, ONE_OVER_UNITS
from bulletbridge.engine.redundancy import (
    SPREAD,
    Decision,
    Start,
    all_independent,
    column_lengths,
    decide,
    moved_rows,
    moved_there,
    row_lengths,
)
from bulletbridge.engine.sparse_plan import SparseStepper
from bulletbridge.engine.stepper import Solver
from bulletbridge.engine.tasks import PROJECT
from bulletbridge.engine.workspace import Tolerances
from bulletbridge.errors import AssemblyError, ModelError, warn_user
from bulletbridge.mechanism.displacement import configuration_difference
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.mechanism.records import FREE
from bulletbridge.numerics.one_thread import one_blas_thread
from bulletbridge.numerics.records import Array, Mask, are_numbers, array_of
from bulletbridge.system.assembly import (
    BENT,
    MEET,
    NEARLY_CLOSED,
    SEARCHED,
    SHAKES,
    UNSHAKEN,
    Assembly,
    Move,
    at_odds,
    close,
    consistent_velocity,
    contradiction,
    descend,
    locked,
    open_by,
    open_names,
    project_by_links,
    round_off,
    why_open,
)
from bulletbridge.system.carrying import carry_over, require_near, same
from bulletbridge.system.evaluation import require_lengths
from bulletbridge.system.within_limits import way_between

ASSEMBLED = 1e-6
"""Gap, in mechanism lengths or radians, below which a state is only trimmed, not assembled."""
WIDER = 100.0
"""Times the widest gap of redundant rows so far, up to which one is of frames that are rounded:
over the poses that were looked at until then bodies have moved by no more than their length."""
TOO_HEAVY = 1e9
"""Armature of a joint that is not to move, over the mass of all bodies times their size squared."""
NEARER = 2.0
"""Times as far as where kept rows close, from which rows that are redundant but for the digits of
a file have led a start astray."""
SEATED = 1e-3
"""Gap, likewise, from which on floating bases are moved before joints are."""
LEFT_TO_JOINTS = 0.5
"""Share of a gap that floating bases may leave for joints to close."""
REGULAR = 0.02
"""Weakest row over the strongest from which no row can be redundant: twenty times what may be."""
LEAST_REACH = 0.1
"""Motion, in mechanism lengths or radians, that a decision about redundancy should rest on."""
MOST_SETS = 32
"""Sets of constraints that are remembered."""


class ActiveSet(NamedTuple):
    """Constraints that act together, and what was decided about them."""

    constraints: tuple[Constraint, ...]
    full: Solver
    solver: Solver
    decision: Decision


class ActiveConstraints:
    """The constraints that close a mechanism's loops now, at a state that its solvers keep.

    They may come and go. What was decided about a set of them is remembered for its return.

    Args:
        mechanism: The tree, usually from ``read_bullet``.
        constraints: What closes its loops; those with force limits have no rows here.
        allow_structure: Whether constraints may leave no freedom at all.
        tolerances: Thresholds of the solvers.

    Attributes:
        full: Solver of all rows as written.
        solver: That of the rows which are kept, once that is decided: the one that steps. Its state
            is that of the system.
        decision: Which rows are redundant; None before the first assembly.
        remembered: Sets that acted earlier, the latest first.

    Raises:
        ModelError: A constraint names what does not exist, or a number is impossible.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        constraints: tuple[Constraint, ...],
        allow_structure: bool,
        tolerances: Tolerances,
    ) -> None:
        self.mechanism, self.constraints = mechanism, constraints
        self.tolerances, self.allow_structure = tolerances, allow_structure
        require_names(constraints)
        self.full = Solver(mechanism, encode_closed(mechanism, constraints), tolerances)
        self.solver = self.full
        self.decision: Decision | None = None
        self.remembered: tuple[ActiveSet, ...] = ()
        self._opening: tuple[Decision | None, float, frozenset[str]] = None, 0.0, frozenset()
        self._first = self.solver, self.decision
        self._all_but_bases = ~self.nothing_held()  # (nv,) rates
        self._placed = np.ones(mechanism.nq, bool)  # (nq,) coordinates of these
        self._floating: tuple[Decision, Solver] | None = None  # what moves bases alone
        bodies = mechanism.bodies[1:]
        for body in bodies[bodies["joint"] == FREE]:
            self._all_but_bases[body["v"] : body["v"] + 6] = False
            self._placed[body["q"] : body["q"] + 7] = False
        for joint in mechanism.joints.values():
            if joint.kind in ("spherical", "free"):
                self.full.q[joint.q.stop - 1] = 1.0

    @property
    def q(self) -> Array:
        """Configuration (nq,), a copy."""
        return self.solver.q.copy()

    @property
    def v(self) -> Array:
        """Velocity (nv,), a copy."""
        return self.solver.v.copy()

    @property
    def t(self) -> float:
        """Time [s]."""
        return self.solver.t

    @property
    def now(self) -> tuple[Array, Array, float]:
        """q (nq,), v (nv,), both copies, and t [s]."""
        return self.q, self.v, self.t

    @property
    def encoded(self) -> Encoded:
        """The rows as written."""
        return self.full.encoded

    def opening(self, rounding: float) -> frozenset[str]:
        """As of ``System.opening``, which the drop-in asks for at every step."""
        decision, known = self.decision, self._opening
        if known[0] is not decision or known[1] != rounding:
            decided = {} if decision is None else decision.by_name
            names = frozenset(name for name, each in decided.items() if each.opens(rounding))
            self._opening = known = decision, rounding, names
        return known[2]

    @property
    def solvers(self) -> tuple[Solver, ...]:
        """The solver of the rows as written, and that which steps."""
        return (self.full,) if self.full is self.solver else (self.full, self.solver)

    def nothing_held(self) -> Mask:
        """No rates (nv,), of those that an assembly is to leave as they are."""
        return np.zeros(self.mechanism.nv, bool)

    def closed_by_bases(self, q: Array) -> Array:
        """q with floating bases alone moved to where the loops close, or all but do; else q itself.

        Joints are where somebody has put them, and where motors hold them; by what moves the least
        mass a bolt that is seated would turn the wheels of a car, and a gripper that is carried
        off would throw its fingers. Gaps that are small any motion may close.
        """
        held, full, t = self._all_but_bases, self.full, self.t
        gap = open_by(full, q, t)
        if held.all() or not held.any() or gap < SEATED:
            return q
        nearest = self._float(q)
        if nearest is not None:
            return nearest
        enough = self.tolerances.redundant
        found, _ = close(full, q, t, held, enough, ())
        return found if open_by(full, found, t) <= max(enough, LEFT_TO_JOINTS * gap) else q

    def _float(self, q: Array) -> Array | None:
        """q with bases moved by the kernel that trims states, for which joints weigh too much.

        None where that does not close the rows to round-off.
        """
        decision = self.decision
        if decision is None:
            return None
        if self._floating is None or self._floating[0] is not decision:
            solver = solver_of(self.mechanism, decision, self.tolerances)
            mass = float(solver.bodies["mass"].sum() + solver.stations["mass"].sum())
            size = max(1.0, self.encoded.length) ** 2
            solver.axes["armature"][self._all_but_bases] += TOO_HEAVY * mass * size
            self._floating = decision, solver
        solver = self._floating[1]
        solver.put(q, np.zeros(self.mechanism.nv), self.t)
        if solver.run(PROJECT):
            return None
        found = np.where(self._placed, q, solver.q)
        return (
            found if open_by(self.full, found, self.t) <= round_off(self.full, q, self.t) else None
        )

    def assemble(self, start: Array, held: Mask, speed: Array, held_v: Mask) -> Assembly:
        """Find a consistent state near start and speed; take it only when everything succeeded.

        Args:
            start: (nq,)
            held: (nv,) rates of joints that stay where start has them.
            speed: (nv,)
            held_v: (nv,) rates that stay as speed has them.

        Raises:
            AssemblyError: The loops cannot close, or what is held contradicts itself.
            OverconstrainedError: Nothing could move any more.
        """
        before, t, solver, decision, iterations = self.q, self.t, self.solver, self.decision, 0
        if decision is None:
            solver, decision, closed, iterations = self._decide(self.full, start, held)
            start = self._nearer(solver, decision, start, closed, held)
        found, more = self.close(solver, decision, start, held)
        if self.decision is None and decision.reach < LEAST_REACH:
            # a position like a stretched chain, which tells nothing
            solver, decision, found, again = self._decide(self.full, found, held)
            found, last = self.close(solver, decision, found, held)
            more += again + last
        require_lengths(solver, found, t)
        speed = consistent_velocity(solver, found, speed, t, held_v)
        if self.decision is None:
            odd = [in_other_units(self.full, found, name) for name in self.encoded.rows]
            odd += [idle_axis(self.full, joint) for joint in self.constraints]
            for said in filter(None, odd):
                warn_user(said)
            self._tell_open(decision)
        self.solver, self.decision = solver, decision
        self._put(found, speed, t)
        moved = tuple(
            Move(name, before[joint.q], found[joint.q])
            for name, joint in self.mechanism.joints.items()
            if np.abs(found[joint.q] - before[joint.q]).max() > 1e-12
        )
        gap = float(np.abs(self.full.gaps_at(found, t)).max(initial=0.0))
        return Assembly(moved, iterations + more, gap)

    def _tell_open(self, decision: Decision) -> None:
        """Say which constraints open further than they are drawn, as a decision lets them."""
        length = self.encoded.length
        for name, each in decision.by_name.items():
            if each.opens(self.tolerances.told):
                warn_user(
                    f"constraint '{name}' opens where its bodies move, by {each.widest:.2g} rad, or"
                    f" {each.widest * length:.2g} m, over the poses that were looked at: rows that"
                    " are weaker than a thousandth of others, or than a millionth where a start is"
                    " closed to round-off, are left out; move its frames away from what it is"
                    " beside, or onto it"
                )

    def _nearer(
        self, solver: Solver, decision: Decision, start: Array, closed: Array, held: Mask
    ) -> Array:
        """A configuration much nearer to start than one that is closed, where kept rows find it.

        Rows that are redundant but for the digits of a file lead far along the motion that they
        hardly resist, as in a gripper drawn closed in single precision.
        """
        enough, full, t = self.tolerances.redundant, self.full, self.t
        if way_between(start, closed) < enough:
            return closed
        found, _ = close(solver, start, t, held, enough, ())
        near = way_between(start, found) * NEARER < way_between(start, closed)
        near = near and locked(full, found, t) <= locked(full, closed, t)
        return found if near and open_by(full, found, t) <= enough else closed

    def close(
        self, solver: Solver, decision: Decision, start: Array, held: Mask
    ) -> tuple[Array, int]:
        """The nearest configuration that the rows of a decision close, and the iterations needed.

        Raises:
            AssemblyError: There is none.
        """
        enough = round_off(solver, start, self.t) + decision.allowance
        found, iterations = close(solver, start, self.t, held, enough)
        self._require_closed(solver, found, held, enough, SEARCHED)
        return found, iterations

    def _require_closed(
        self, solver: Solver, found: Array, held: Mask, enough: float, tried: str
    ) -> None:
        """Refuse a configuration (nq,) that is open, with what keeps it so."""
        why, named = "", open_names(solver, found, self.t, enough)
        if named:
            why = why_open(solver, found, self.t, held)
            freed = self._why_held(solver, found, held) if held.any() else ""
            why = f"{why}; {freed}" if freed and why.startswith(MEET) else freed or why
            odd = likely_mistakes(solver, named)
            why = f"{odd}{f'; otherwise {why}' if why else ''}" if odd else why
        require_closed(solver, found, self.t, enough, tried, why)

    def _why_held(self, solver: Solver, found: Array, held: Mask) -> str:
        """What to say if loops that are open could close were no joint held; else nothing."""
        with one_blas_thread():
            freed, _ = descend(solver, found, self.t, np.zeros_like(held))
        if open_by(solver, freed, self.t) > NEARLY_CLOSED:
            return ""
        names = [name for name, j in self.mechanism.joints.items() if held[j.v].any()]
        if len(names) == 1:
            return (
                f"it would close if '{names[0]}' were not held where it was put: do not hold it,"
                " or put it elsewhere"
            )
        return (
            f"it would close if {', '.join(map(repr, names))} were not held where they were put:"
            " hold fewer joints, or put them elsewhere"
        )

    def set_state(self, q: Array | None, v: Array | None, t: float | None) -> None:
        """Set the state, trimmed to round-off; what is not given stays.

        Raises:
            ModelError: A number is not finite or there are too few.
            AssemblyError: The loops are open there; call ``assemble`` first.
        """
        new_q = self.q if q is None else array_of("q", q)
        new_v = self.v if v is None else array_of("v", v)
        if new_q.shape != (self.mechanism.nq,) or new_v.shape != (self.mechanism.nv,):
            raise ModelError(
                f"a state of this mechanism has {self.mechanism.nq} positions and "
                f"{self.mechanism.nv} rates, not {new_q.shape} and {new_v.shape}"
            )
        check_finite(new_q, new_v)
        if t is not None and not are_numbers(t):
            raise ModelError(f"the time is {t!r} s; give a finite number")
        new_t = self.t if t is None else float(t)
        require_closed(self.full, new_q, new_t, ASSEMBLED + self.mismatch)
        self._put(new_q, new_v, new_t)

    def _put(self, q: Array, v: Array, t: float) -> None:
        """Take a state that closes the loops and trim it to round-off."""
        solver = self.solver
        before = solver.state.copy()
        solver.put(q, v, t)
        if self.decision is not None and solver.run(PROJECT):
            named = widest(solver)
            solver.state[:] = before
            raise AssemblyError(
                f"'{named}' cannot be closed to round-off at this state; call assemble(), or give"
                " it slack where it is at the end of its reach"
            )

    @property
    def mismatch(self) -> float:
        """Gap that redundant rows may keep, in mechanism lengths or radians."""
        return 0.0 if self.decision is None else SPREAD * self.decision.widest

    def snapshot(self) -> Array:
        """q, v and t (nq + nv + 1), for ``take_back``."""
        return self.solver.state.copy()

    def take_back(self, state: Array) -> None:
        """Go back to a state (nq + nv + 1) that was the present one: it closes the loops."""
        nq = self.mechanism.nq
        self.solver.put(state[:nq], state[nq:-1], float(state[-1]))

    def reconsider(self, failure: int) -> bool:
        """Decide redundancy again after a step that was stopped; whether it may be tried again.

        What opened had been left out. Decided from here it may be redundant all the same, with a
        somewhat wider gap as its allowance; otherwise all rows of that loop count from now on, and,
        of those that follow from other loops, whatever is independent at a pose. A gap that is far
        wider no rounding of frames makes: something has put the bodies, or a gear, elsewhere.
        """
        if failure != LEFT_OPEN or self.decision is None:
            return False
        solver, before, worst = self.solver, self.decision, int(self.solver.control[0]["worst"])
        name = ""
        if worst < 0:
            name = list(before.encoded.rows)[-1 - worst]
            if name in before.whole:
                return False
        elif not before.is_held:
            return False
        q, v, t = self.q, self.v, self.t
        full = self.full
        start, whole = Start(q, self.is_exact(full, q)), before.whole | {name} - {""}
        decision = decide(self.mechanism, full.encoded, start, t, self.tolerances, whole)
        if worst >= 0 or not before.is_held:
            moved = moved_rows(self.mechanism, decision.encoded, self.tolerances, q, t)
            decision = decision.with_all_rows(moved)
        rounded = max(before.widest, PROMISED * self.tolerances.gap)
        if decision.widest > WIDER * rounded:
            return False
        full.apply_settings(solver)
        again = copy_of(full, decision)
        again.put(q, v, t)
        if again.run(PROJECT) or self._moved(q, again.q) > self._nearest(q):
            return False
        self.solver, self.decision = again, decision
        return True

    def at_odds_ahead(self) -> str:
        """Which constraints contradict each other at the end of the next step; empty if unknown.

        Only where something is driven: else they have been closed at its start.
        """
        c = self.solver.control[0]
        if not c["driven"]:
            return ""
        with one_blas_thread():
            named = at_odds(self.full, self.q, self.t + float(c["dt"]), self.nothing_held())
        return f"at its end {contradiction(named)}" if named else ""

    def _moved(self, before: Array, after: Array) -> float:
        """How far a configuration is from another [lengths, rad]."""
        way = configuration_difference(self.mechanism, after, before)
        return float(np.abs(self.solver.vectors[ONE_OVER_UNITS, : len(way)] * way).max(initial=0.0))

    def _nearest(self, q: Array) -> float:
        """How far at most closing the rows that are open at q may move it [lengths, rad]."""
        open_there = max(open_by(self.full, q, self.t), PROMISED * self.tolerances.gap)
        return BENT * float(np.sqrt(2.0 * open_there))

    def is_exact(self, full: Solver, q: Array) -> bool:
        """Whether a configuration was given with all rows closed to round-off."""
        if self.mismatch > PROMISED * self.tolerances.gap:
            return False
        return open_by(full, q, self.t) <= 10.0 * round_off(full, q, self.t)

    def decide_near(self, q: Array, shakes: Sequence[float]) -> None:
        """Decide redundancy at a closed configuration near q, unless that was done before.

        Args:
            q: Where to look (nq,).
            shakes: As of ``assembly.close``.

        Raises:
            AssemblyError: The loops cannot close there.
            OverconstrainedError: Nothing could move.
        """
        if self.decision is None:
            found = self._decide(self.full, q, self.nothing_held(), shakes)
            self.solver, self.decision, _, _ = found

    @one_blas_thread()
    def _decide(
        self, full: Solver, start: Array, held: Mask, shakes: Sequence[float] = SHAKES
    ) -> tuple[Solver, Decision, Array, int]:
        """Decide redundancy at a closed configuration near start; also that, and its iterations."""
        regular = None if held.any() else self._find_regular(full, start)
        if regular is not None:
            return regular
        enough, t = self.tolerances.redundant, self.t
        closed, iterations = close(full, start, t, held, enough, shakes)
        self._require_closed(full, closed, held, enough, SEARCHED if shakes else UNSHAKEN)
        decision = decide(
            self.mechanism,
            full.encoded,
            Start(closed, self.is_exact(full, start)),
            t,
            self.tolerances,
            frozenset() if self.decision is None else self.decision.whole,
        )
        if not self.allow_structure:
            require_freedom(self.full, decision)
        return copy_of(full, decision), decision, closed, iterations

    def _find_regular(
        self, full: Solver, start: Array
    ) -> tuple[Solver, Decision, Array, int] | None:
        """As ``_decide`` where links are eliminated and all rows are strong near start, or None.

        At one closed pose that is enough: no motion makes rows redundant by design that are not.
        It costs as much as a few steps, where samples would grow with the cube of the links.
        """
        if not may_be_sparse(full):
            return None
        solver = copy_of(full, all_independent(full.encoded, full.encoded.scale, self.mechanism.nv))
        if not isinstance(solver.stepper, SparseStepper):
            return None
        columns = column_lengths(self.mechanism, full.encoded.length)
        if not moved_there(full, start, self.t, columns).all():
            return None
        lengths = row_lengths(full, start, self.t)
        if not lengths.min(initial=np.inf) > self.tolerances.redundant * lengths.max(initial=0.0):
            return None  # scaled to one they would look like all others, whatever they are made of
        scale = full.encoded.scale / lengths
        decision = all_independent(full.encoded, scale, self.mechanism.nv)
        solver.decide_rank(decision.caps, scale, 0.0, np.inf)
        found = project_by_links(solver, start, self.t)
        c = solver.control[0]  # its margin is of the rows that it counts
        if found is None or c["filter_rank"] < full.encoded.nc or c["margin"] < REGULAR:
            return None
        if not self.allow_structure:
            require_freedom(self.full, decision)
        loops = decision.encoded.loops
        loops["allowed"] = loops["allowed_rate"] = np.inf  # nothing is left out of them
        return solver, decision, *found

    def place(self, name: str, frame: np.ndarray) -> None:
        """Put frame a (1,), of ``moved_frames``, of a loop elsewhere; the state is not touched."""
        self.remembered = ()
        for solver in self.solvers:
            solver.encoded.place(name, frame)
            solver.control["factored"] = 0

    def rebase(self, mechanism: Mechanism) -> None:
        """Go on with the same tree whose links that stand still are elsewhere."""
        self.remembered = ()
        self.mechanism = mechanism
        for solver in self.solvers:
            encode_places(solver.encoded, mechanism, self.constraints)
            solver.rebase(mechanism)
        if self._floating is not None:
            self._floating[1].rebase(mechanism)

    def remember_decision(self) -> None:
        """Note how redundancy was decided, for ``go_back``."""
        self._first = self.solver, self.decision

    def go_back(self) -> None:
        """Step by the rows again that were kept when that was noted, whatever opened since."""
        if self.decision is not self._first[1]:
            first = self._first[0]
            first.apply_settings(self.solver)
            first.put(self.q, self.v, self.t)
            self.solver, self.decision = self._first

    def revise(self, mechanism: Mechanism, constraints: tuple[Constraint, ...]) -> None:
        """Go on with other numbers of the same tree and of the same constraints.

        The state is not touched, and what was decided about redundancy stays.

        Args:
            mechanism: The tree.
            constraints: In the order of those that act.
        """
        pairs = zip(constraints, self.constraints, strict=True)
        changed = [new.name for new, old in pairs if new is not old]
        places = mechanism.bodies["p"] != self.mechanism.bodies["p"]
        self.remembered, self._floating = (), None
        self.mechanism, self.constraints = mechanism, constraints
        if changed:
            fresh = encode_closed(mechanism, constraints)
            for solver in self.solvers:
                solver.encoded.revise(fresh, changed)
        for solver in self.solvers:
            solver.revise(mechanism, bool(changed) or bool(places.any()))

    def set_offset(self, name: str, offset: float) -> None:
        """Give a coupling another offset [rad or m]; the state is not touched."""
        self.remembered = ()
        for solver in self.solvers:
            solver.encoded.set_offset(name, offset)

    def find(
        self, constraints: tuple[Constraint, ...], tolerance: float, assemble: bool
    ) -> ActiveSet:
        """The set of these constraints at the present state, decided now or remembered.

        Args:
            constraints: All that are to act.
            tolerance: Gap that is closed without asking, in mechanism lengths or radians.
            assemble: Whether gaps may be wider, since joints will move to close them.

        Raises:
            AssemblyError: A gap is too wide.
            OverconstrainedError: Nothing could move any more.
        """
        for chosen in self.remembered:
            if same(chosen.constraints, constraints):
                chosen.full.apply_settings(self.full)
                chosen.solver.apply_settings(self.full)
                for solver in (chosen.full, chosen.solver):
                    solver.put(self.solver.q, self.solver.v, self.t)
                if not assemble:
                    require_near(chosen.full, self.q, self.t, tolerance)
                return chosen
        encoded = encode_closed(self.mechanism, constraints)
        carry_over(self.encoded, encoded)
        full = Solver(self.mechanism, encoded, self.tolerances)
        full.apply_settings(self.full)
        full.state[:] = self.solver.state
        if not assemble:
            require_near(full, self.q, self.t, tolerance)
        solver, decision, _, _ = self._decide(full, self.q, self.nothing_held())
        self._tell_open(decision)
        return ActiveSet(constraints, full, solver, decision)

    def take(self, chosen: ActiveSet) -> None:
        """Go on with other constraints, at the state of their solver; remember those of now."""
        if self.decision is not None:
            left = ActiveSet(self.constraints, self.full, self.solver, self.decision)
            others = (s for s in self.remembered if s is not chosen)
            self.remembered = (left, *others)[:MOST_SETS]
        self.constraints, self.full, self.solver, self.decision = chosen
