"""One run of a campaign: a case with one integrator, and what the judge finds."""

import re
import traceback
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np
from _campaign_cases import Case, kind_of
from _campaign_conserved import Conserved, Drift
from _campaign_judge import ROLLING, WEAK, Judge

import bulletbridge as bb
from bulletbridge.errors import BulletBridgeError, StepError
from bulletbridge.numerics.records import Array
from bulletbridge.system.options import CONTROLLED, ON_CHARTS, Integrator

OPEN = 1e-10
"""Gap beyond that at the start that nobody was told of [m or rad]."""
SLIPS = 1e-9
"""Rate of a row that should not move [m/s or rad/s], relative to the fastest rate above one."""
UNBALANCED = 1e-8
"""Relative error of reactions."""
ACCELERATES = 1e-6
"""Relative acceleration of a row that should have none."""
NOTHING_WRONG = 1e-11
"""Gap that no step may be given up for [m or rad]."""
CLOSED = 1e-12
"""Gap of a start that is closed [m or rad]."""
CHECKS = 10
"""How often in a run accelerations and reactions are judged."""
BESIDE = 10
"""Steps beyond the place where a run ended that a finer one has to come to."""
FINER, FINEST = 16, 64
"""Parts of a step by which it is seen whether there was a motion to follow."""
ALIKE = 0.1
"""Share of the rates that two finer runs may differ by to follow the same motion."""
DRIFTS = 1e-3
"""Share of its terms that what no force changes may drift by, unless it goes with the order."""
ORDER = {"semi_implicit_euler": 1, "rk4": 4, "charts": 4}
"""Of integrators whose steps are not 2; less than half of the powers of it is no such size."""
FINER_DRIFTS = 4, 16, 64
"""Parts of a step for which a drift has to shrink, from one of them to the next."""
JUMPS, RESOLVED = 0.25, 0.01
"""Share of the rates that a step may be off by from what two finer ones agree on by the second."""
JUMPED = 2
"""How many of the sharpest changes of rates in a run are made again in finer steps."""
FAULTS = (
    "silent gap",
    "silent rate",
    "slip",
    "reactions",
    "accelerations",
    "energy",
    "momentum",
    "jump",
    "accepted",
    "false abort",
    "empty message",
    "false refusal",
    "not finite",
    "crash",
    "hang",
)
"""What must not be; see docs/promise.md."""
ENDS = "held", "told", "refused", "crash", "hang"
"""How a run ends."""


@dataclass
class Findings:
    """Worst of what a run shows.

    Attributes:
        gap: Largest gap of all rows beyond that at the start [m or rad].
        movable: Its part along directions that some joint moves, where it is a fault.
        rate: Largest rate of rows that hold positions, relative to the fastest rate above one.
        slip: Of rows of velocity.
        unbalanced: Largest relative error of reactions.
        accelerates: Largest relative J v̇ + γ, where some v̇ has none.
        energy_gain: What a run without drives, forces and dampers gains, of the largest kinetic
            energy; None for others.
        energy_loss: What it loses, less what was told as ``status.lost``.
        momentum: Largest drift of momenta of what hangs from nothing, of their terms; None where
            all does.
        drift: Largest of these again where steps were as fine as they had to be to judge it.
        jump: Largest share of the rates that a step is off by, if finer ones agree.
        where: Constraint and time [s] of the largest gap.
    """

    gap: float = 0.0
    movable: float = 0.0
    rate: float = 0.0
    slip: float = 0.0
    unbalanced: float = 0.0
    accelerates: float = 0.0
    energy_gain: float | None = None
    energy_loss: float | None = None
    momentum: float | None = None
    drift: dict[str, list[float]] = field(default_factory=lambda: {})
    jump: float = 0.0
    where: str = ""
    not_finite: bool = False
    faults: list[str] = field(default_factory=lambda: [])


class Run:
    """A case with one integrator.

    Args:
        case: What runs.
        integrator: How.
        steps: How long.
    """

    def __init__(self, case: Case, integrator: Integrator, steps: int) -> None:
        self.case, self.steps = case, steps
        self.integrator: Integrator = integrator
        parts = case.parts
        self.judge = Judge(parts.mechanism, parts.constraints)
        self.found = Findings()
        self.allowed: list[float] = []
        drives = any(c.motion is not None for c in parts.constraints)
        acting = parts.tau.any() or parts.mechanism.axes["damping"].any()
        self.conserves = not (drives or acting)
        self.conserved = Conserved(self.judge, self.conserves, parts.tau)
        self.drift, self.elapsed = Drift(self.conserved), 0.0
        self.sharpest: list[tuple[float, Array, Array, float, Array]] = []
        self.ended: tuple[Array, Array, float] | None = None

    def record(self) -> dict[str, Any]:
        """What the run shows, as a line of the journal."""
        begun = perf_counter()
        end, message, done = self._run()
        parts = self.case.parts
        self._blame(end, message, done)
        return {
            "number": self.case.number,
            "kind": self.case.kind,
            "integrator": self.integrator,
            "steps": self.steps,
            "dt": parts.dt,
            "rates": parts.mechanism.nv,
            "constraints": self.case.constraint_kinds,
            "end": end,
            "done": done,
            "message": message,
            **vars(self.found),
            "seconds": round(perf_counter() - begun, 3),
        }

    def _run(self) -> tuple[str, str, int]:
        """Run it; how it ended, what was said, and steps done."""
        done = 0
        try:
            system = self.case.system(self.integrator)
            self._begin(system)
            every = max(1, self.steps // CHECKS)
            while done < self.steps:
                before, t = min(every, self.steps - done), system.t
                try:
                    recording = system.rollout(before)
                except StepError:
                    done += round((system.t - t) / system.dt)
                    self.ended = system.q, system.v, system.t
                    state = system.q[None], system.v[None], np.array([system.t])
                    self._look(*state, system.status.lost)
                    raise
                done += before
                self._look(recording.q, recording.v, recording.t, system.status.lost)
                if self.found.not_finite:
                    break
                self._check(system)
        except StepError as error:
            return "told", str(error), done
        except BulletBridgeError as error:
            return "told" if done else "refused", f"{type(error).__name__}: {error}", done
        except Exception:  # whatever else is a fault
            return "crash", traceback.format_exc(limit=-3), done
        return "held", "", done

    def _begin(self, system: bb.System) -> None:
        """Judge the start, and allow what it is open by."""
        state = system.q[None], system.v[None], np.array([system.t])
        self.allowed = [float(np.abs(g).max()) for g in self.judge.gaps(*state)]
        self._look(*state, 0.0)
        self._check(system)

    def _look(self, q: Array, v: Array, t: Array, told: float) -> None:
        """Judge gaps, rates and energy of states, by when it was told that so much is lost [J]."""
        found = self.found
        if not (np.isfinite(q).all() and np.isfinite(v).all()):
            found.not_finite = True
            return
        self.elapsed = float(t[-1])
        fastest = np.maximum(1.0, np.abs(v).max(axis=1))
        gaps, rates = self.judge.look(q, v, t)
        constraints = self.judge.constraints
        for c, allowed, g, rate in zip(constraints, self.allowed, gaps, rates, strict=True):
            widest = np.abs(g).max(axis=1)
            n = int(np.argmax(widest))
            if widest[n] - allowed > found.gap:
                found.gap = float(widest[n] - allowed)
                found.where = f"{c.name} ({kind_of(c)}) at {t[n]:.6g} s"
                if found.gap > OPEN:
                    found.movable = self.judge.movable(q[n], float(t[n]), np.hstack(gaps)[n])
            size = float((np.abs(rate).max(axis=1) / fastest).max())
            if isinstance(c, bb.LoopJoint) and c.model in ROLLING:
                found.slip = max(found.slip, size)
            else:
                found.rate = max(found.rate, size)
        self.drift.look(q, v, t, told)
        if self.conserves and self.drift.sizes[0] > 0:
            found.energy_gain = self.drift.gain / float(self.drift.sizes[0])
            found.energy_loss = self.drift.loss / float(self.drift.sizes[0])
        if self.conserved.groups:
            found.momentum = float(self.drift.shares[self.conserves :].max())
        self._keep_sharpest(q, v, t)

    def _keep_sharpest(self, q: Array, v: Array, t: Array) -> None:
        """Keep the states before which changes of rates were least like the one before."""
        if len(t) < 3:
            return
        bent = np.linalg.norm(np.diff(v, 2, axis=0), axis=1)
        bent /= np.maximum(np.linalg.norm(v, axis=1).max(), WEAK)
        for n in np.argsort(bent)[-JUMPED:]:
            if bent[n] > JUMPS:
                for k in (n, n + 1):
                    self.sharpest.append((float(bent[n]), q[k], v[k], float(t[k]), v[k + 1]))
        self.sharpest = sorted(self.sharpest, key=lambda kept: -kept[0])[: 2 * JUMPED]

    def _drifts(self) -> list[str]:
        """Names of what drifts by more than the order of the integrator explains."""
        found, held = self.found, self.drift.shares
        beyond = held > DRIFTS
        if not beyond.any() or self.integrator in CONTROLLED:
            return [self.conserved.names[k] for k in np.flatnonzero(beyond)]
        shrinks = 2.0 ** ORDER.get(self.integrator, 2)
        for finer in FINER_DRIFTS:
            drift, parts = Drift(self.conserved), self.case.parts
            try:
                system = self.case.system(self.integrator, parts.dt / finer)
                drift.look(system.q[None], system.v[None], np.array([system.t]))
                steps = finer * int(round(self.elapsed / parts.dt))
                recording = system.rollout(steps)
                drift.look(recording.q, recording.v, recording.t, system.status.lost)
            except BulletBridgeError:
                return []  # there is nothing to compare it with
            now = drift.shares
            for k in np.flatnonzero(beyond):
                found.drift.setdefault(self.conserved.names[k], [float(held[k])])
                found.drift[self.conserved.names[k]].append(float(now[k]))
            beyond &= now > np.maximum(DRIFTS, held / shrinks)
            held = now
            if not beyond.any():
                break
        return [self.conserved.names[k] for k in np.flatnonzero(beyond)]

    def _largest_jump(self) -> float:
        """Largest share of the rates that steps are off by, by what finer ones agree on.

        Steps that a fourth of their length betters are as coarse as they are long, and so are those
        within which rates change by twice what they are off by.
        """
        largest = 0.0
        for _, q, v, t, after in self.sharpest:
            try:
                four, sixteen, finest = (self._led_to(q, v, t, n) for n in (4, FINER, FINEST))
            except BulletBridgeError:
                continue
            size = float(np.linalg.norm(finest))
            off = float(np.linalg.norm(after - finest))
            agreed = np.linalg.norm(sixteen - finest) <= RESOLVED * size
            turned = 0.5 * float(np.linalg.norm(finest - v))
            explained = 2.0 * float(np.linalg.norm(four - finest)) <= off or turned >= off
            if agreed and not explained and size > WEAK:
                largest = max(largest, off / size)
        return largest

    def _led_to(self, q: Array, v: Array, t: float, parts: int) -> Array:
        """Rates (nv,) to which a step in so many parts leads from a state."""
        system = self.case.system(self.integrator, self.case.parts.dt / parts)
        system.set_state(q, v, t)
        system.rollout(parts, parts)
        return system.v

    def _check(self, system: bb.System) -> None:
        """Judge accelerations and reactions at the state."""
        q, v, t, found = system.q, system.v, system.t, self.found
        vdot, reactions = system.acceleration(), system.reactions()
        tau = system.tau - self.judge.mechanism.axes["damping"] * v
        exerted = self.judge.exerted(q, t, reactions)
        left, _ = self.judge.unbalanced(q, v, t, (vdot, tau, exerted))
        found.unbalanced = max(found.unbalanced, left)
        found.accelerates = max(found.accelerates, self.judge.missing(q, v, vdot, t))

    def _blame(self, end: str, message: str, done: int) -> None:
        """Name the faults of the run."""
        found, parts = self.found, self.case.parts
        drifts, found.jump = list[str](), 0.0
        if not (found.not_finite or parts.contradictory or end == "crash") and self.elapsed > 0:
            drifts, found.jump = self._drifts(), self._largest_jump()
        beyond = {
            "silent gap": found.gap > OPEN,
            "silent rate": found.rate > SLIPS,
            "slip": found.slip > SLIPS,
            "reactions": found.unbalanced > UNBALANCED,
            "accelerations": found.accelerates > ACCELERATES and not parts.contradictory,
            "energy": "energy" in drifts,
            "momentum": any("momentum" in name for name in drifts),
            "jump": found.jump > JUMPS,
            "accepted": parts.contradictory and end == "held",
            "false abort": end == "told"
            and not parts.contradictory
            and self._was_wrong(message, done),
            "empty message": end == "told" and names_no_gap(message),
            "false refusal": end == "refused" and self._is_consistent(),
            "not finite": found.not_finite,
            "crash": end == "crash",
        }
        found.faults = [name for name in FAULTS if beyond.get(name)]

    def _was_wrong(self, message: str, done: int) -> bool:
        """Whether rest contradicts nothing, or a sixteenth of the step comes further, closed.

        A drive may lead to the end of what the loops can reach. Past it there is no motion, and
        finer steps go on by leaps, each to elsewhere: so two of them have to agree.
        """
        parts, driven = self.case.parts, any(c.motion for c in self.case.parts.constraints)
        if "contradict" in message and not driven:
            return True
        goal = min(done + BESIDE, self.steps) * FINER
        try:
            finer = self.case.system(self.integrator, parts.dt / FINER)
            finer.rollout(goal, goal)
            alike = not driven or self._is_followed()
        except BulletBridgeError:
            return False
        state = finer.q[None], finer.v[None], np.array([finer.t])
        gaps = self.judge.gaps(*state)
        beyond = (np.abs(g).max() - a for g, a in zip(gaps, self.allowed, strict=True))
        return alike and max(beyond, default=0.0) < OPEN

    def _is_followed(self) -> bool:
        """Whether steps of two finer lengths lead to the same rates from where the run ended.

        Raises:
            BulletBridgeError: One of them ends, too.
        """
        rates = list[Array]()
        for finer in (FINER, FINEST):
            system = self.case.system(self.integrator, self.case.parts.dt / finer)
            if self.ended is not None:
                system.set_state(*self.ended)
            system.rollout(BESIDE * finer, BESIDE * finer)
            rates.append(system.v)
        return bool(np.linalg.norm(rates[1] - rates[0]) <= ALIKE * np.linalg.norm(rates[1]))

    def _is_consistent(self) -> bool:
        """Whether the start is closed, not singular by design, and drives can be followed.

        Charts are of positions: they refuse what rolls.
        """
        parts = self.case.parts
        if parts.assembled or parts.contradictory or self.case.kind == "reach":
            return False
        rolls = any(isinstance(c, bb.LoopJoint) and c.model in ROLLING for c in parts.constraints)
        if rolls and self.integrator in ON_CHARTS:
            return False
        q, still, t = parts.q, 0 * parts.v, np.zeros(1)
        if max(np.abs(g).max() for g in self.judge.gaps(q[None], still[None], t)) > CLOSED:
            return False
        return self.judge.can_follow(q, 0.0)


def names_no_gap(message: str) -> bool:
    """Whether a step was given up for a gap that is none."""
    named = re.search(r"open by ([0-9.e+-]+)", message)
    return named is not None and float(named.group(1)) < NOTHING_WRONG
