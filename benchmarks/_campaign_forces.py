"""What motors, joint friction, limits and contacts exerted in a step, by the laws that they follow.

The forces are those that a system tells. That they, and nothing else, led to the rates at the end
is judged by Pinocchio's M and h with the judge's rows; that each follows its law by these rates.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from _campaign_judge import FILTERED, TURNING, WEAK, Judge, Moving, Values, cross
from scipy.linalg import null_space

import bulletbridge as bb
from bulletbridge.inequalities.arrays import COMPLIED
from bulletbridge.mechanism.model import Joint
from bulletbridge.system.contact_report import ContactLoad

BEYOND = 1e-6
"""Crossing of a limit that is let be [rad or m]; what a step bends by is allowed besides."""
ROUNDED = 1e-8
"""Share of a bound."""
BENT = 3.0
"""Of the square of the angle of a step, which it bends by where it is of order 1."""
EXPLAINED = 0.02
"""Share of the rates that forces that are told, and what closes loops then, need not explain; and
ten angles of the step, and that by which it turns its rows."""
ADMISSIBLE = 1e-6
"""Rate of a row, relative to the fastest rate above one, that a step does not begin with."""
CANCELS = 1e-3
"""Share of what forces would do to free bodies that is left to be judged."""
CLEAR = 1e-3
"""Share of its length of a motor's row that the others leave, to be told apart from them."""
SLOW = 0.01
"""Share of the fastest rate above one that counts as none: loops bend what the laws are about."""
TURNED = 3.0
"""Times what rows of contacts turn by in a step: they are those of where forces would lead."""
LEVER = 1e-3
"""Rate of a point [m/s] that comes of contacts being told where they are ahead, by 0.1 mm."""


class State(NamedTuple):
    """Configuration (nq,), rates (nv,) and time [s]."""

    q: Values
    v: Values
    t: float


def at_rates(unit: Moving, body: int, contact: ContactLoad) -> Values:
    """What a contact exerts on the rates (nv,) through a body, with twists of unit rates."""
    speed = unit.u[:, body] + cross(unit.w[:, body], contact.point - unit.p[:, body])
    return np.asarray(speed @ contact.force + unit.w[:, body] @ contact.moment, np.float64)


Fault = tuple[str, float]
"""What is wrong, and by how much."""


@dataclass
class Forces:
    """Judges the last step of a system.

    Attributes:
        judge: Of its motion.
        system: The system.
        motors: Arguments of ``Motors.set`` or, with a stiffness, ``Motors.servo`` by joint.
        frictions: Largest Coulomb friction by joint [N or N m].
        led: Joints of which a warning has told that drives lead them past their limits.
        into: Whether one has told that bodies are led into each other.
    """

    judge: Judge
    system: bb.System
    motors: dict[str, dict[str, Any]]
    frictions: dict[str, float]
    led: set[str] = field(default_factory=lambda: set())
    into: bool = False

    def faults(self, before: State) -> Iterator[Fault]:
        """What is wrong with the step that began at a state."""
        system = self.system
        now = State(system.q.copy(), system.v.copy(), system.t)
        (rates, curved), least, rough = self._explained(before, now)
        closed = self.judge.closed(before.q, rates - curved, system.dt, before.t)
        off = min(self._size(before.q, x - now.v) for x in (rates, closed))
        size = max(least, *(self._size(before.q, x) for x in (before.v, now.v, rates - before.v)))
        fastest = self._fastest(before, now)
        led = self.judge.displaced(before.q, system.dt * (rates - curved))  # closing takes it back
        turned = max(self._turn(before, now), self._turn(before, now._replace(q=led)))
        turns = system.dt * fastest
        solved = system.complementarity
        taken = solved is not None and solved.taken > 0.0
        limited = any(c.max_force is not None for c in self.judge.constraints)
        # no way parts from another in the step, nor are there rows that may count or not
        same = self._rank(before) == self._rank(now) == self._rank(now, TURNING)
        if same and not (taken or limited) and self._is_admissible(before):
            enough = (EXPLAINED + 10.0 * turns + turned) * size + rough
            if off > enough:
                yield "forces do not explain rates", off / size
            elif self._size(before.q, closed - now.v) <= enough:
                M = self.judge.oracle.mass_matrix(before.q)
                told = np.linalg.solve(M, system.closing_impulse())
                if (other := self._size(before.q, closed - rates - told)) > enough:
                    yield "closing is told otherwise", other / size
        # a motor's law is broken where it also is before ways bend: beside a singular position
        # closing takes many times the step's angle, by the same share of the step's length
        led_by_forces = rates - curved
        # a law is broken where it is by both: contacts are told from where they were found
        law = np.where(np.abs(rates) < np.abs(now.v), rates, now.v)
        law[rates * now.v < 0.0] = 0.0
        told_apart = self._told_apart(before) if same else dict[str, float]()
        # rows that turn take as much from the rates that forces lead to, whatever closing leaves
        led_to = max(fastest, float(np.abs(rates).max()))
        bent = 2.0 * BENT * (turns * fastest + turned * led_to) + SLOW * max(1.0, fastest)
        bent += 0.0 if solved is None else solved.residual  # which is told, and judged by itself
        for name, load in system.joint_loads.items():
            joint = self.judge.mechanism.joints.get(name)
            if joint is None or not joint.is_single:
                continue
            k = joint.v.start
            if abs(load.motor) > self.motors.get(name, {"force": 0.0})["force"] * (1.0 + ROUNDED):
                yield "motor beyond its bound", abs(load.motor)
            if name in told_apart:
                asked = self._asked(name, float(before.q[joint.q.start]))
                found = [
                    list(self._motor(name, load.motor, float(rate - asked), bent, told_apart[name]))
                    for rate in (led_by_forces[k], rates[k], now.v[k])
                ]
                yield from found[0] if all(found) else ()
            yield from self._friction(name, load.friction, float(law[k]), bent)
            yield from self._limit(joint, load.limit, before, now, float(rates[k]))
        yield from self._contacts(before, now, bent)

    def _fastest(self, before: State, now: State) -> float:
        return float(max(np.abs(before.v).max(), np.abs(now.v).max()))

    def _rank(self, state: State, weak: float = FILTERED) -> int:
        return int(np.sum(self.judge.spectrum(state.q, state.t) > weak))

    def _is_admissible(self, state: State) -> bool:
        """Whether rates are what rows ask for, as they need not be at a start."""
        times = np.array([state.t])
        rates = np.hstack(self.judge.rates(state.q[None], state.v[None], times))
        return bool(np.abs(rates).max(initial=0.0) < ADMISSIBLE * max(1.0, np.abs(state.v).max()))

    def _turn(self, before: State, now: State) -> float:
        """Sine of the angle by which a step turns what its rows allow, by the first inertias.

        Beside a singular position it is many times the angle that joints turn by.
        """
        one, other = (self._factors(before, state)[3] for state in (before, now))
        return float(np.linalg.norm(other - other @ one.T @ one, 2)) if len(other) else 0.0

    def _size(self, q: Values, v: Values) -> float:
        """Length of rates in the metric of M."""
        return float(np.sqrt(max(v @ self.judge.oracle.mass_matrix(q) @ v, 0.0)))

    def _explained(self, before: State, now: State) -> tuple[tuple[Values, Values], float, float]:
        """Rates (nv,) to which the forces that are told lead, in the rows at the start.

        And what the rows at the start add to them since the way bends, which is among them; the
        size of rates which is too small to be judged, as forces cancel in it; and what they may be
        off by: paths bend, points of contact are told where they are ahead, and what contacts do
        by rows of there.
        """
        judge, system, nv, dt = self.judge, self.system, len(before.v), self.system.dt
        (L, U, s, V), rough = self._factors(before, before), 0.0
        force = system.tau - judge.mechanism.axes["damping"] * now.v
        for name, load in system.joint_loads.items():
            joint = judge.mechanism.joints.get(name)
            if joint is not None and joint.is_single:
                force[joint.v.start] += load.motor + load.friction + load.limit
        push = np.linalg.solve(L, system.tau - judge.oracle.bias(before.q, before.v))
        free = before.v + dt * np.linalg.solve(L.T, push - V.T @ (V @ push))
        places = before.q, now.q, judge.displaced(before.q, dt * free)
        unit, *later = (judge.moving(np.tile(q, (nv, 1)), np.eye(nv)) for q in places)
        moving = [judge.moving(state.q[None], state.v[None]) for state in (before, now)]
        turned = np.zeros((nv, len(later)))
        for contact in system.contacts():
            for name, sign in ((contact.b, 1.0), (contact.a, -1.0)):
                body = judge.mechanism.links[name].body
                acts = sign * at_rates(unit, body, contact)
                will = np.array([sign * at_rates(m, body, contact) for m in later]).T
                force, turned = force + acts, turned + will - acts[:, None]
                ahead = 3.0 * abs(contact.predicted_gap - contact.gap)
                ahead += dt * sum(
                    float(np.linalg.norm(self._speed(m, name, contact))) for m in moving
                )
                turns = float(np.linalg.norm(np.linalg.solve(L, unit.w[:, body]), 2))
                rough += dt * ahead * turns * float(np.linalg.norm(contact.force))
        rough += TURNED * dt * float(np.linalg.norm(np.linalg.solve(L, turned), axis=0).max())
        push = np.linalg.solve(L, force - judge.oracle.bias(before.q, before.v))
        least = CANCELS * dt * float(np.linalg.norm(push))
        gamma = judge.accelerations_of_rows(before.q, before.v, 0.0 * before.v, before.t)
        curved = U.T @ gamma / s
        rough += dt * float(np.linalg.norm(curved))
        bent = np.asarray(np.linalg.solve(L.T, -dt * V.T @ curved), np.float64)
        led = np.linalg.solve(L.T, dt * (push - V.T @ (V @ push)))
        return (np.asarray(before.v + led + bent, np.float64), bent), least, rough

    def _told_apart(self, before: State) -> dict[str, float]:
        """Motors whose rates are theirs: none where they cannot be told from each other.

        And what a unit of impulse changes these by, with loops and limits as they are [1/kg m² or
        1/kg].

        Those share what they are asked for, and give way; joints that loops lock, or loops and
        limits at which others are, get nothing. Where they are stiff servos for a while, since
        something contradicts them, none. Next to a dead centre loops all but lock a joint, through
        which a strong motor does more than a weak one elsewhere.
        """
        step = self.system._inequalities.latest  # pyright: ignore[reportPrivateUsage]
        if step is not None and step.report[COMPLIED] > 0.0:
            return {}
        judge, names = self.judge, list(self.motors)
        joints, loads = judge.mechanism.joints, self.system.joint_loads
        axes = [joints[name].v.start for name in names]
        stopped = [joints[n].v.start for n, load in loads.items() if n in joints and load.limit]
        L = np.linalg.cholesky(judge.oracle.mass_matrix(before.q))
        rows = np.vstack([judge.jacobian(before.q, before.t), np.eye(len(L))[stopped]])
        W = np.linalg.solve(L, rows.T).T
        free = null_space(W, rcond=WEAK) if len(W) else np.eye(len(before.v))
        rows, whole = np.linalg.solve(L.T, free)[axes], np.linalg.solve(L.T, np.eye(len(L)))[axes]
        left, own = np.linalg.norm(rows, axis=1), np.linalg.norm(whole, axis=1)
        does = left * [self.motors[name]["force"] for name in names]
        moved = np.flatnonzero((left > CLEAR * own) | (does > CLEAR * does.max(initial=0.0)))
        rows = rows[moved] / left[moved, None]
        if (
            len(moved) > rows.shape[1]
            or np.linalg.svd(rows, compute_uv=False).min(initial=1) < CLEAR
        ):
            return {}
        return {names[k]: float(left[k]) ** 2 for k in moved}

    def _asked(self, name: str, q: float) -> float:
        """Rate that a motor asks for, or at which a servo would not push."""
        given, dt = self.motors[name], self.system.dt
        if "stiffness" in given:
            through = dt * given["stiffness"] + given["damping"]
            return given["stiffness"] * (given.get("position", 0.0) - q) / through
        if "position" in given:
            return given.get("position_gain", 0.1) * (given["position"] - q) / dt
        return given["velocity"]

    def _motor(
        self, name: str, force: float, off: float, bent: float, moves: float
    ) -> Iterator[Fault]:
        """A motor does what it is asked, or pushes so with all it has; a servo as it yields.

        What it withholds is as much as that would change its rate, by ``moves`` for an impulse.
        """
        given, most = self.motors[name], self.motors[name]["force"]
        if abs(off) <= bent:
            return
        if "stiffness" in given:
            through = self.system.dt * given["stiffness"] + given["damping"]
            asked = float(np.clip(-through * off, -most, most))
            if abs(force - asked) > through * bent + ROUNDED * most:
                yield "servo pushes otherwise", abs(force - asked) / most
        elif abs(force) < most * (1.0 - 1e-6):
            withheld = self.system.dt * moves * (most + np.sign(off) * force)
            if min(abs(off), withheld) > bent:
                yield "motor does not do what it could", min(abs(off), withheld)
        elif force * off > 0.0:
            yield "motor pushes the wrong way", abs(off)

    def _friction(self, name: str, force: float, rate: float, bent: float) -> Iterator[Fault]:
        """Friction holds, or brakes with all it has."""
        most = self.frictions.get(name, 0.0)
        if abs(force) > most * (1.0 + ROUNDED):
            yield "friction beyond its bound", abs(force) - most
        if abs(rate) <= bent or most == 0.0:
            return
        if abs(force) < most * (1.0 - 1e-6):
            yield "friction does not brake", abs(rate)
        elif force * rate > 0.0:
            yield "friction pushes", abs(rate)

    def _limit(
        self, joint: Joint, force: float, before: State, now: State, rate: float
    ) -> Iterator[Fault]:
        """A limit is kept, and pushes where a joint comes to it in the step, or is beyond."""
        dt, fastest = self.system.dt, max(1.0, self._fastest(before, now))
        bent = BENT * (dt * fastest) ** 2 + BEYOND
        was, x = float(before.q[joint.q.start]), float(now.q[joint.q.start])
        beyond, now_beyond = (max(joint.lower - y, y - joint.upper, 0.0) for y in (was, x))
        if joint.name not in self.led and now_beyond > beyond + bent:
            yield "limit", now_beyond - beyond
        k = joint.v.start
        near = dt * (abs(float(before.v[k])) + abs(float(now.v[k])) + abs(rate)) + bent
        above, below = min(was, x) - joint.lower, joint.upper - max(was, x)
        away = above if force > 0.0 else below
        if abs(force) > ROUNDED and away > near and joint.name not in self.led:
            yield "limit pulls", away

    def _contacts(self, before: State, now: State, bent: float) -> Iterator[Fault]:
        """Contacts push, stay shut while they do, stick within their cone and brake at its rim."""
        if not (found := self.system.contacts()):
            return
        m = self.judge.moving(now.q[None], now.v[None])
        rounded = ROUNDED * max(1.0, *(contact.normal_force for contact in found))
        for contact, point in zip(found, self.system.contact_points, strict=True):
            N, T, mu = contact.normal_force, contact.friction, float(point["friction"])
            if N < -rounded:
                yield "contact pulls", -N
            beyond = float(np.linalg.norm(T)) - mu * N
            allowed = 1e-6 * mu * N + ROUNDED
            if beyond > allowed and beyond > allowed + self._left(before, contact):
                yield "friction outside its cone", beyond
            if contact.state == "held" or not N > ROUNDED:
                continue
            apart = self._speed(m, contact.b, contact) - self._speed(m, contact.a, contact)
            opens = float(apart @ contact.normal)
            slip = apart - opens * contact.normal
            enough = bent + LEVER + 1e-4 * float(np.linalg.norm(apart))
            if opens > enough and not point["restitution"]:
                yield "contact opens and pushes", opens
            if (
                opens < -enough
                and not self.into
                and contact.gap < -0.1 * LEVER
                and contact.predicted_gap < contact.gap
            ):
                yield "bodies approach within each other", -opens
            speed, size = float(np.linalg.norm(slip)), float(np.linalg.norm(T))
            if speed > 10.0 * enough and size < mu * N * (1.0 - 1e-3):
                yield "slides within its cone", speed
            if speed > 10.0 * enough and mu > 0.0 and T @ slip > -0.5 * size * speed:
                yield "friction is not against slip", speed

    def _left(self, before: State, contact: ContactLoad) -> float:
        """Friction [N] that the residual of the problem is worth, by what moves along it."""
        solved, across = self.system.complementarity, contact.friction
        if solved is None:
            return 0.0
        nv = len(before.v)
        unit = self.judge.moving(np.tile(before.q, (nv, 1)), np.eye(nv))
        row, way = np.zeros(nv), across / np.linalg.norm(across)
        for name, sign in ((contact.b, 1.0), (contact.a, -1.0)):
            body = self.judge.mechanism.links[name].body
            speed = unit.u[:, body] + cross(unit.w[:, body], contact.point - unit.p[:, body])
            row += sign * (speed @ way)
        L, _, _, V = self._factors(before, before)
        row = np.linalg.solve(L, row)
        row -= V.T @ (V @ row)
        return 2.0 * solved.residual / (self.system.dt * max(float(row @ row), 1e-300))

    def _factors(self, inertias: State, rows: State) -> tuple[Values, Values, Values, Values]:
        """Cholesky's L of M at one state, and the SVD of J L⁻ᵀ, J at another, without its zeros."""
        judge = self.judge
        L = np.linalg.cholesky(judge.oracle.mass_matrix(inertias.q))
        W = np.linalg.solve(L, judge.jacobian(rows.q, rows.t).T).T
        U, s, V = np.linalg.svd(W, full_matrices=False)
        kept = s > FILTERED * s.max(initial=0.0)
        return L, U[:, kept], s[kept], V[kept]

    def _speed(self, m: Moving, name: str, contact: ContactLoad) -> Values:
        """Velocity (3,) of a contact's point on a link [m/s]."""
        body = self.judge.mechanism.links[name].body
        return m.u[0, body] + cross(m.w[0, body], contact.point - m.p[0, body])
