"""Constraints with a force limit that hold: rigid as long as what they exert stays within it.

They step as rigid ones in a solver of their own, ``RigidLimits``. One that would exert more gives
way: that step is done again with it as an inequality. When it is not saturated any more, and its
gap is closed but for what a step opens by itself, it holds again.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np

from bulletbridge.constraints.encode import encode_places
from bulletbridge.constraints.force_element_records import encode_closed
from bulletbridge.constraints.joint_models import LIMITABLE
from bulletbridge.constraints.rows import residuals
from bulletbridge.engine.failures import require_closed
from bulletbridge.engine.redundancy import Start, decide
from bulletbridge.engine.stepper import Solver
from bulletbridge.errors import BulletBridgeError, ModelError
from bulletbridge.inequalities.constraints import InequalityConstraints
from bulletbridge.inequalities.rigid_limits import (
    RigidLimits,
    RigidLimitsMemory,
    preferring_others,
)
from bulletbridge.inequalities.step_kernel import WITH_FRICTION, X
from bulletbridge.inequalities.stepper import InequalityStepper
from bulletbridge.mechanism.kinematics import kinematics
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.numerics.projection import ROW
from bulletbridge.numerics.records import Array
from bulletbridge.system.assembly import close
from bulletbridge.system.carrying import carry_over
from bulletbridge.system.connecting import Reconfigurable
from bulletbridge.system.saved import thawed, without_functions
from bulletbridge.system.state import ASSEMBLED

WIDEST = 1e-3
"""Gap, in mechanism lengths or radians, beyond which a constraint is first pulled shut."""
UNSATURATED = 1.0 - 1e-9
"""Share of a force limit up to which a row is not saturated."""
NOBODY: frozenset[str] = frozenset()


@dataclass(frozen=True)
class HoldingMemory:
    """Which constraints with a force limit hold, and what their solver goes by."""

    holding: frozenset[str] | None
    pause: int
    failed: int
    rigid: RigidLimitsMemory | None
    stepped: bool  # whether the last step was that solver's

    def __getstate__(self) -> dict[str, object]:
        """Without functions of time."""
        if self.rigid is None:
            return vars(self)
        decision = without_functions(self.rigid.decision)
        return {**vars(self), "rigid": replace(self.rigid, decision=decision)}


class HoldingState(Reconfigurable):
    """A state with constraints that hold up to a force."""

    _inequalities: InequalityConstraints
    _inequality_stepper: InequalityStepper | None
    _written: np.ndarray  # records of loops with a force limit, with all of their rows
    _holding: frozenset[str] | None = None  # names; None: to be found from the gaps
    _rigid: RigidLimits | None = None
    _rigid_of: object = None  # decision about the rigid constraints that it was made beside
    _pause, _failed = 0, 0  # steps until holding is tried again, after it failed so often

    def forget(self) -> None:
        """Find from the gaps what holds, as in the beginning."""
        super().forget()
        self._holding, self._pause, self._failed = None, 0, 0

    @property
    def _solvers(self) -> tuple[Solver, ...]:
        """That of the rows as written, and those that step."""
        return super()._solvers + (() if self._rigid is None else (self._rigid.solver,))

    def _start_holding(self) -> frozenset[str]:
        """What is to hold in a step that begins."""
        if self._pause > 0:
            self._pause -= 1
            return NOBODY
        return self._near() if self._holding is None else self._holding

    def _near(self) -> frozenset[str]:
        """Constraints with a force limit that are closed, but for what is redundant in them."""
        limits, names = self._inequalities.force_limits, self._inequalities.force_limited.rows
        gaps = dict(zip(names, self._gaps_of_limited(), strict=True))
        able = {name for name, force in zip(names, limits["force"], strict=True) if force > 0.0}
        close_by = {name for name in able if gaps[name] <= WIDEST}
        if not close_by or not self._decide_limits(close_by):
            return NOBODY
        assert self._rigid is not None
        allowed = ASSEMBLED + self._rigid.decision.allowance
        gaps = dict(zip(names, self._gaps_of_limited(), strict=True))
        return frozenset(name for name in close_by if gaps[name] <= allowed)

    def _rigid_for(self, names: frozenset[str]) -> RigidLimits | None:
        """The solver in which the named constraints hold; None if there is none, for now."""
        if not self._decide_limits(names):
            return None
        assert self._rigid is not None
        if self._rigid.holding != names:
            self._rigid.hold(names)
        return self._rigid

    def _decide_limits(self, names: Collection[str]) -> bool:
        """Have a solver in which the named constraints may hold; False if they cannot for now."""
        known = self._rigid
        if known is not None and self._rigid_of is self._decision and {*names} <= {*known.names}:
            return True
        limited = self._inequalities.force_limited
        for field in ("moment", "force"):
            limited.loops[field] = self._written[field]
        try:
            self._rigid = self._make_rigid_limits(names)
        except BulletBridgeError:  # they cannot be closed together
            self._give_up_holding()
            return False
        self._rigid_of = self._decision
        return True

    def _give_up_holding(self) -> None:
        """Decide anew about what holds, after a while."""
        self._rigid, self._failed = None, min(self._failed + 1, 8)
        self._pause, self._holding = 2**self._failed, None

    def _make_rigid_limits(self, names: Collection[str]) -> RigidLimits:
        """Decide which rows of the named constraints are redundant, beside the rigid ones.

        Raises:
            AssemblyError: They cannot be closed from here.
        """
        limited, tolerances = self._inequalities.force_limited, self.tolerances
        given = [
            replace(c, max_force=None) if isinstance(c, LIMITABLE) and c.name in names else c
            for c in self.constraints
        ]
        encoded = encode_closed(self.mechanism, given)
        for old in (self.encoded, limited):
            carry_over(old, encoded)
        full, q, t = Solver(self.mechanism, encoded, tolerances), self.q, self.t
        full.apply_settings(self._full)
        full.state[:] = self._solver.state
        closed, _ = close(full, q, t, np.zeros(self.mechanism.nv, bool), tolerances.redundant)
        require_closed(full, closed, t, tolerances.redundant)
        whole = self.decision.whole
        start = Start(closed, self._is_exact(full, q))
        decision = decide(self.mechanism, encoded, start, t, tolerances, whole)
        if len(names) < len(encoded.rows):
            decision = preferring_others(decision, names)
        ordered = [name for name in limited.rows if name in names]
        rows = self._inequalities, self._written
        made = RigidLimits(self.mechanism, tolerances, *rows, ordered, decision)
        made.solver.apply_settings(self._solver)
        return made

    def _gaps_of_limited(self) -> Array:
        """Gap of each constraint with a force limit, in mechanism lengths or radians."""
        solver, limited = self._solver, self._inequalities.force_limited
        poses, axes, rows = solver.poses.copy(), solver.axes.copy(), np.zeros(limited.nc, ROW)
        beams, stations = solver.beams.copy(), solver.stations.copy()
        kinematics(solver.bodies, beams, stations, solver.q, poses, axes)
        targets = limited.targets(np.array([self.t]))[0]
        tables = limited.loops, limited.couplings, limited.terms
        residuals(*tables, poses, axes, targets, solver.q, rows)
        return self._norms(rows["g"])

    def _norms(self, g: Array) -> Array:
        """Length of each constraint's residuals (nc,), in mechanism lengths or radians."""
        starts = self._inequalities.force_limits["row"]
        return np.sqrt(np.add.reduceat((self._inequalities.force_limited.scale * g) ** 2, starts))

    def _hold_again(self, step: InequalityStepper, holding: frozenset[str]) -> None:
        """Find which are to hold in the next step, besides those that did in the last one.

        One that was not saturated is closed, or its gap is that of a step alone: rows of velocities
        leave what bends, and however often they take their share of it back, as much comes anew.
        """
        limits, limited = self._inequalities.force_limits, self._inequalities.force_limited
        self._holding = holding
        if len(holding) == len(limits):
            return
        known = () if self._rigid is None else self._rigid.names
        first = int(step.report[WITH_FRICTION])
        exerted = np.abs(step.impulses[X, first : first + limited.nc]) / step.dt
        most = np.maximum.reduceat(exerted, limits["row"])
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

    def _offset_now(self, index: int) -> float:
        """Offset [rad or m] at which a coupling with a force limit is closed as things are."""
        limited = self._inequalities.force_limited
        coupling = limited.couplings[index]
        first, count = int(coupling["first"]), int(coupling["count"])
        terms = limited.terms[first : first + count]
        places = self._solver.axes["q"][terms["axis"]]
        return float(terms["coefficient"] @ self._solver.q[places])

    def _save_holding(self) -> HoldingMemory | None:
        """What decides which constraints hold; None without force limits."""
        if not len(self._inequalities.force_limits):
            return None
        rigid, step = self._rigid, self._inequality_stepper
        known = rigid is not None and self._rigid_of is self._decision
        if rigid is not None:
            rigid.solver.tau = self._solver.tau
        return HoldingMemory(
            self._holding,
            self._pause,
            self._failed,
            rigid.memory() if rigid is not None and known else None,
            rigid is not None and known and step is not None and step.rigid is rigid,
        )

    def _restore_holding(self, memory: HoldingMemory | None) -> None:
        """Go on from what ``_save_holding`` returned."""
        if memory is None:
            return
        self._holding, self._pause = memory.holding, memory.pause
        self._failed, known, kept = memory.failed, self._rigid, memory.rigid
        if kept is None:
            self._rigid = None
            return
        if known is None or known.names != kept.names or not known.decision.agrees(kept.decision):
            given = [
                replace(c, max_force=None)
                if isinstance(c, LIMITABLE) and c.name in kept.names
                else c
                for c in self.constraints
            ]
            decision = thawed(kept.decision, encode_closed(self.mechanism, given))
            rows = self._inequalities, self._written
            made = self.mechanism, self.tolerances, *rows, kept.names, decision
            known = self._rigid = RigidLimits(*made)
            known.solver.apply_settings(self._solver)
        known.solver.tau = self._solver.tau
        known.recall(kept)
        self._rigid_of = self._decision

    def set_max_force(self, name: str, force: float) -> None:
        """Give a constraint with a force limit another largest force [N or N m].

        Raises:
            ModelError: There is no such constraint, or it was made without a force limit.
        """
        index = (
            list(self._inequalities.force_limited.rows).index(name)
            if name in self._inequalities.force_limited.rows
            else -1
        )
        if index < 0 or not 0.0 <= force < np.inf:
            raise ModelError(
                f"max_force {force} of '{name}' is not possible; name a constraint that was made"
                " with a max_force, and give a finite number that is not negative"
            )
        self._inequalities.force_limits[index]["force"] = force

    def place(self, name: str, frame: np.ndarray) -> None:
        """Put frame a of a loop elsewhere on its link; see ``ClosedState.place``."""
        for part in (self._inequalities.force_limited, self._inequalities.loop_axes.encoded):
            for row in part.rows:
                if name in (row, row.rpartition("/")[0]):  # loop/turn and loop/travel too
                    part.place(row, frame)
        if name in self._inequalities.force_limited.rows:
            self._holding = None
            if self._rigid is not None:
                self._rigid.place(name, frame)
        if name in self.encoded.rows:
            super().place(name, frame)

    def rebase(self, mechanism: Mechanism) -> None:
        """Go on with links that stand still elsewhere; see ``ClosedState.rebase``."""
        super().rebase(mechanism)
        for part in (self._inequalities.force_limited, self._inequalities.loop_axes.encoded):
            encode_places(part, mechanism, self.constraints)
        self._holding = None

    def set_offset(self, name: str, offset: float) -> None:
        """Give a coupling another offset [rad or m]; the state is not touched."""
        if name in self._inequalities.force_limited.rows:
            self._inequalities.force_limited.set_offset(name, offset)
            self._holding = None
            if self._rigid is not None:
                self._rigid.set_offset(name, offset)
        else:
            super().set_offset(name, offset)
