"""Constraints with a force limit that hold: rigid as long as what they exert stays within it.

They step as rigid ones in a solver of their own, ``RigidLimits``. One that would exert more gives
way: that step is done again with it as an inequality. When it is not saturated any more, and its
gap is closed but for what a step opens by itself, it holds again.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bulletbridge.constraints.arrays import Encoded
from bulletbridge.constraints.encode import encode_places
from bulletbridge.constraints.force_element_records import encode_closed
from bulletbridge.constraints.joint_models import LIMITABLE
from bulletbridge.constraints.rows import residuals
from bulletbridge.engine.failures import require_closed
from bulletbridge.engine.redundancy import Decision, Start, decide
from bulletbridge.engine.stepper import Solver
from bulletbridge.errors import BulletBridgeError
from bulletbridge.inequalities.arrays import WITH_FRICTION, X
from bulletbridge.inequalities.constraints import InequalityConstraints
from bulletbridge.inequalities.rigid_limits import (
    RigidLimits,
    RigidLimitsMemory,
    preferring_others,
)
from bulletbridge.inequalities.stepper import InequalityStepper
from bulletbridge.mechanism.kinematics import kinematics
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.numerics.one_thread import one_blas_thread
from bulletbridge.numerics.projection import ROW
from bulletbridge.numerics.records import Array
from bulletbridge.system.active_constraints import ASSEMBLED, ActiveConstraints
from bulletbridge.system.assembly import SEARCHED, close
from bulletbridge.system.carrying import carry_over
from bulletbridge.system.saved import thawed, without_functions

WIDEST = 1e-3
"""Gap, in mechanism lengths or radians, beyond which a constraint is first pulled shut."""
UNSATURATED = 1.0 - 1e-9
"""Share of a force limit up to which a row is not saturated."""
IN_VAIN = 1e-9
"""Mobility, as a share of the largest of any, along which forces move nothing."""
CLOSES_IN = 0.1
"""Time [s] in which a gap that a robot begins with would be shut at the highest speed. Bullet's, a
fifth of it in every step, is metres a second, and flings robots that begin far open."""
NOBODY: frozenset[str] = frozenset()


@dataclass(frozen=True)
class HoldingMemory:
    """Which constraints with a force limit hold, and what their solver goes by."""

    holding: frozenset[str] | None
    pause: int
    failed: int
    closing: Mapping[int, float] | None
    erp: tuple[float, ...]
    rigid: RigidLimitsMemory | None
    stepped: bool  # whether the last step was that solver's

    def __getstate__(self) -> dict[str, object]:
        """Without functions of time."""
        if self.rigid is None:
            return vars(self)
        decision = without_functions(self.rigid.decision)
        return {**vars(self), "rigid": replace(self.rigid, decision=decision)}


class GapRoom:
    """Where bodies are when gaps are asked for between steps, whose own arrays stay as they are.

    Args:
        solver: Whose bodies they are.
        nc: Rows of the constraints with a force limit.
    """

    def __init__(self, solver: Solver, nc: int) -> None:
        self.solver = solver
        self.beams, self.stations = solver.beams.copy(), solver.stations.copy()
        self.poses, self.axes = solver.poses.copy(), solver.axes.copy()
        self.rows = np.zeros(nc, ROW)


class Holding:
    """Which constraints with a force limit hold, and the solver in which they are rigid.

    Args:
        active: The rigid constraints beside which they hold.
        inequalities: Constraints with a force limit, and free motions of loop joints.

    Attributes:
        rigid: The solver in which some of them may hold; None before that is wanted.
    """

    def __init__(self, active: ActiveConstraints, inequalities: InequalityConstraints) -> None:
        self._active, self._inequalities = active, inequalities
        self._written = inequalities.force_limited.loops.copy()  # with all of their rows
        self.rigid: RigidLimits | None = None
        self._rigid_of: Decision | None = None  # about the rigid ones, that it was made beside
        self._holding: frozenset[str] | None = None  # names; None: to be found from the gaps
        self._pause, self._failed = 0, 0  # steps until it is tried again, after it failed so often
        self._room: GapRoom | None = None
        self._erp = inequalities.force_limits["erp"].copy()  # as written
        self._closing: Mapping[int, float] | None = None  # gaps that those open then began with

    def forget(self, *, decisions: bool) -> None:
        """Find from the gaps what holds, as in the beginning, and which of its rows are redundant.

        Args:
            decisions: Whether the latter too, which goes by the pose that it was decided at.
        """
        self._holding, self._pause, self._failed = None, 0, 0
        self._closing = None
        if decisions:
            self._decide_nothing()

    def _decide_nothing(self) -> None:
        """Have no solver, and all rows of the constraints as written."""
        self.rigid, loops = None, self._inequalities.force_limited.loops
        for field in ("moment", "force"):
            loops[field] = self._written[field]

    @property
    def solvers(self) -> tuple[Solver, ...]:
        """Solvers that step besides that of the rigid constraints."""
        return () if self.rigid is None else (self.rigid.solver,)

    def names_to_hold(self) -> frozenset[str]:
        """What is to hold in a step that begins."""
        if self._pause > 0:
            self._pause -= 1
            return NOBODY
        return self._near() if self._holding is None else self._holding

    def _near(self) -> frozenset[str]:
        """Constraints with a force limit that are closed, but for what is redundant in them."""
        limits, names = self._inequalities.force_limits, self._inequalities.force_limited.rows
        found = self._gaps_of_limited()
        self._close_slowly(found)
        gaps = dict(zip(names, found, strict=True))
        able = {name for name, force in zip(names, limits["force"], strict=True) if force > 0.0}
        close_by = {name for name in able if gaps[name] <= WIDEST}
        if not close_by or not self._decide_limits(close_by):
            return NOBODY
        assert self.rigid is not None
        allowed = ASSEMBLED + self.rigid.decision.allowance
        gaps = dict(zip(names, self._gaps_of_limited(), strict=True))
        return frozenset(name for name in close_by if gaps[name] <= allowed)

    def _close_slowly(self, gaps: Array) -> None:
        """Have those that are open since the beginning shut in ``CLOSES_IN``."""
        known, limits = self._closing, self._inequalities.force_limits
        now = self._loops_of_robots() if known is None else known
        self._closing = {k: now[k] or gaps[k] for k in now if gaps[k] > WIDEST}
        share = float(self._active.solver.control[0]["dt"]) / CLOSES_IN
        limits["erp"] = self._erp
        for k, first in self._closing.items():
            limits[k]["erp"] = min(self._erp[k], share * first / gaps[k])

    def _loops_of_robots(self) -> Mapping[int, float]:
        """Loops between links that hang together besides, and that nothing leads."""
        mechanism, limited = self._active.mechanism, self._inequalities.force_limited
        given = (c for c in self._active.constraints if isinstance(c, LIMITABLE))
        led = {c.name for c in given if c.motion is not None}
        joints, below = mechanism.joints.values(), mechanism.axes["below"].tolist()
        floating = {joint.v.start for joint in joints if joint.kind == "free"}

        def floats(axis: int) -> bool:
            while axis >= 0 and below[axis] >= 0:
                axis = below[axis]
            return axis in floating

        return {
            k: 0.0
            for k, (loop, name) in enumerate(zip(limited.loops, limited.rows, strict=False))
            if name not in led
            and (loop["common_axis"] >= 0 or not (floats(loop["axis_a"]) or floats(loop["axis_b"])))
        }

    def rigid_for(self, names: frozenset[str]) -> RigidLimits | None:
        """The solver in which the named constraints hold; None if there is none, for now."""
        if not self._decide_limits(names):
            return None
        assert self.rigid is not None
        if self.rigid.holding != names:
            self.rigid.hold(names)
        return self.rigid

    def _decide_limits(self, names: Collection[str]) -> bool:
        """Have a solver in which the named constraints may hold; False if they cannot for now."""
        known, decision = self.rigid, self._active.decision
        if known is not None and self._rigid_of is decision and {*names} <= {*known.names}:
            return True
        self._decide_nothing()
        try:
            self.rigid = self._make_rigid_limits(names)
        except BulletBridgeError:  # they cannot be closed together
            self.give_up()
            return False
        self._rigid_of = decision
        return True

    def give_up(self) -> None:
        """Decide anew about what holds, after a while."""
        self.rigid, self._failed = None, min(self._failed + 1, 8)
        self._pause, self._holding = 2**self._failed, None

    def _make_rigid_limits(self, names: Collection[str]) -> RigidLimits:
        """Decide which rows of the named constraints are redundant, beside the rigid ones.

        Raises:
            AssemblyError: They cannot be closed from here, or open the rigid ones.
        """
        active, limited = self._active, self._inequalities.force_limited
        mechanism, tolerances, decided = active.mechanism, active.tolerances, active.decision
        assert decided is not None  # before the first step
        encoded = self._encode_rigid(names)
        for old in (active.encoded, limited):
            carry_over(old, encoded)
        full, q, t = Solver(mechanism, encoded, tolerances), active.q, active.t
        full.apply_settings(active.full)
        full.state[:] = active.solver.state
        closed, _ = close(full, q, t, active.nothing_held(), tolerances.redundant)
        require_closed(full, closed, t, tolerances.redundant, SEARCHED)
        require_closed(active.solver, closed, t, ASSEMBLED + decided.allowance)
        start = Start(closed, active.is_exact(full, q))
        decision = decide(mechanism, encoded, start, t, tolerances, decided.whole)
        if len(names) < len(encoded.rows):
            decision = preferring_others(decision, names)
        return self._rigid_limits([name for name in limited.rows if name in names], decision)

    def _encode_rigid(self, names: Collection[str]) -> Encoded:
        """The rows of the rigid constraints and of the named ones, as written."""
        given = [
            replace(c, max_force=None) if isinstance(c, LIMITABLE) and c.name in names else c
            for c in self._active.constraints
        ]
        return encode_closed(self._active.mechanism, given)

    def _rigid_limits(self, names: Sequence[str], decision: Decision) -> RigidLimits:
        """The solver in which the named constraints may hold, with the settings of ours."""
        active, rows = self._active, (self._inequalities, self._written)
        made = RigidLimits(active.mechanism, active.tolerances, *rows, names, decision)
        made.solver.apply_settings(active.solver)
        made.find_islands()
        return made

    def _gaps_of_limited(self) -> Array:
        """Gap of each constraint with a force limit, in mechanism lengths or radians."""
        solver, limited = self._active.solver, self._inequalities.force_limited
        room = self._room
        if room is None or room.solver is not solver:
            room = self._room = GapRoom(solver, limited.nc)
        kinematics(solver.bodies, room.beams, room.stations, solver.q, room.poses, room.axes)
        targets = limited.targets(np.array([self._active.t]))[0]
        tables = limited.loops, limited.couplings, limited.terms
        residuals(*tables, room.poses, room.axes, targets, solver.q, room.rows)
        return self._norms(room.rows["g"])

    def _norms(self, g: Array) -> Array:
        """Length of each constraint's residuals (nc,), in mechanism lengths or radians."""
        starts = self._inequalities.force_limits["row"]
        return np.sqrt(np.add.reduceat((self._inequalities.force_limited.scale * g) ** 2, starts))

    def note_done(self, step: InequalityStepper, holding: frozenset[str]) -> None:
        """Find which are to hold in the next step, after one in which the named ones did."""
        if step.rigid is not None:
            self._failed = 0
        if self._pause == 0:
            self._hold_again(step, holding)

    def _hold_again(self, step: InequalityStepper, holding: frozenset[str]) -> None:
        """Find which are to hold in the next step, besides those that did in the last one.

        One that was not saturated is closed, or its gap is that of a step alone: rows of velocities
        leave what bends, and however often they take their share of it back, as much comes anew.
        """
        limits, limited = self._inequalities.force_limits, self._inequalities.force_limited
        self._holding = holding
        if len(holding) == len(limits):
            return
        if self._closing:
            self._close_slowly(self._gaps_of_limited())
        rigid = self.rigid  # which a saved state has if it is of now
        known = rigid.names if rigid is not None and self.is_by(rigid) else ()
        most = np.maximum.reduceat(self._exerted(step), limits["row"])
        could = (most < UNSATURATED * limits["force"]) & (limits["holds"] == 0)
        before = self._norms(step.force_limited_rows["g"])
        for k, name in enumerate(limited.rows):
            if before[k] <= WIDEST and name not in known and limits["force"][k] > 0.0:
                self._holding = None  # some of its rows may be redundant, which saturate
                return
        if not could.any():
            return
        found, after = set[str](), self._gaps_of_limited()
        for k in np.flatnonzero(could).tolist():
            name, erp = list(limited.rows)[k], float(limits["erp"][k])
            slips = erp == 0.0 and k >= len(limited.loops)
            if slips and after[k] > ASSEMBLED:  # it holds where it is now
                self.set_offset(name, self._offset_now(k - len(limited.loops)))
            stays = erp > 0.0 and after[k] >= (1.0 - 0.5 * erp) * before[k]
            if slips or after[k] <= ASSEMBLED or (stays and after[k] <= WIDEST):
                found.add(name)
        self._holding = holding | found

    @one_blas_thread()
    def _exerted(self, step: InequalityStepper) -> Array:
        """Forces (nc,) [N, N m] of rows with a force limit, less what they pulled at in vain.

        Along what others carry they pull with all their force at what does not yield.
        """
        first = int(step.report[WITH_FRICTION])
        own = slice(first, first + self._inequalities.force_limited.nc)
        D, x = step.D[0, own, own], step.impulses[X, own]
        return np.abs(np.linalg.pinv(D, IN_VAIN, hermitian=True) @ (D @ x)) / step.dt

    def _offset_now(self, index: int) -> float:
        """Offset [rad or m] at which a coupling with a force limit is closed as things are."""
        limited = self._inequalities.force_limited
        coupling = limited.couplings[index]
        first, count = int(coupling["first"]), int(coupling["count"])
        terms = limited.terms[first : first + count]
        places = self._active.solver.axes["q"][terms["axis"]]
        q = self._active.solver.q[places]
        powers = q[:, None] ** np.arange(2, 5)
        return float(terms["coefficient"] @ q + np.sum(terms["higher"] * powers))

    def memory(self, step: InequalityStepper | None) -> HoldingMemory | None:
        """What decides which constraints hold after a step; None without force limits."""
        if not len(self._inequalities.force_limits):
            return None
        rigid = self.rigid
        if rigid is not None:
            rigid.solver.tau = self._active.solver.tau
        return HoldingMemory(
            self._holding,
            self._pause,
            self._failed,
            self._closing,
            tuple(self._inequalities.force_limits["erp"].tolist()),
            rigid.memory() if rigid is not None and self.is_by(rigid) else None,
            step is not None and step.rigid is not None and self.is_by(step.rigid),
        )

    def is_by(self, rigid: RigidLimits) -> bool:
        """Whether that is the solver of now: no constraint has come or gone beside it."""
        return rigid is self.rigid and self._rigid_of is self._active.decision

    def recall(self, memory: HoldingMemory | None) -> None:
        """Go on from what ``memory`` returned."""
        if memory is None:
            return
        self._holding, self._pause = memory.holding, memory.pause
        self._failed, known, kept = memory.failed, self.rigid, memory.rigid
        self._closing, self._inequalities.force_limits["erp"] = memory.closing, memory.erp
        if kept is None:
            self._decide_nothing()
            return
        if known is None or known.names != kept.names or not known.decision.agrees(kept.decision):
            self._decide_nothing()
            decision = thawed(kept.decision, self._encode_rigid(kept.names))
            known = self.rigid = self._rigid_limits(kept.names, decision)
        known.solver.tau = self._active.solver.tau
        known.recall(kept)
        self._rigid_of = self._active.decision

    def place(self, name: str, frame: np.ndarray) -> None:
        """Follow a loop, with a force limit or rigid, whose frame a was put elsewhere."""
        if name in self._inequalities.force_limited.rows and not np.count_nonzero(frame["rates"]):
            self._holding = None  # it was put there, or has come to rest
        for solver in self._solvers_with(name):
            solver.encoded.place(name, frame)

    def rebase(self, mechanism: Mechanism) -> None:
        """Follow links that stand still elsewhere."""
        for solver in self.solvers:
            encode_places(solver.encoded, mechanism, self._active.constraints)
            solver.rebase(mechanism)

    def set_offset(self, name: str, offset: float) -> None:
        """Follow a coupling, with a force limit or rigid, that was given another offset."""
        limited = self._inequalities.force_limited
        if name in limited.rows:
            limited.set_offset(name, offset)
            self._holding = None
        for solver in self._solvers_with(name):
            solver.encoded.set_offset(name, offset)

    def _solvers_with(self, name: str) -> Iterator[Solver]:
        """Solvers of a constraint that is to be another: what they have of it is unknown."""
        for solver in self.solvers:
            if name in solver.encoded.rows:
                solver.control["factored"] = 0
                yield solver
