"""The same measures for every simulator: errors against a reference, gaps, energy."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

from bulletbridge.bench.cases import pendulum
from bulletbridge.bench.problem import Problem, positions
from bulletbridge.bench.session import PeerError, Row, Session
from bulletbridge.bench.settings import REDUNDANT, Setting
from bulletbridge.numerics.records import Array
from bulletbridge.system.system import System

GRID = 0.05
"""Seconds between states of a reference."""
LAST = 5
"""States before a horizon whose largest error counts, so that none passes zero by chance."""
TIGHT, LESS_TIGHT = 1e-12, 1e-11
CHECK = (
    Setting("pinocchio", "check", {"scheme": "rk4", "gain": 100.0}, (), REDUNDANT),
    Setting("mujoco", "check", {"integrator": "RK4", "stiff": 4.0}),
)
CHECK_STEP = 1e-4
NUDGE = 1e-10
"""Of the rates at the start [rad/s, m/s], to see how motions beside each other part."""


@dataclass(frozen=True)
class Reference:
    """A converged trajectory."""

    q: Array  # (n, nq) every ``GRID`` seconds, the start first
    kinetic: float  # largest kinetic energy [J]
    row: Row  # how it was made and what it was checked against


def exactly(made: Problem, duration: float, rtol: float, running: Session) -> tuple[Array, Array]:
    """States every ``GRID`` [s] by our DOP853 to a tolerance: q (n, nq), v (n, nv).

    Raises:
        PeerError: It failed.
    """
    options = {"integrator": "dop853", "rtol": rtol, "atol": 0.1 * rtol}
    setting = Setting("bulletbridge", "reference", options)
    running.build(setting, made, GRID)
    _, q, v = running.ask(setting, "record", round(duration / GRID), 1, patience=600.0)
    return q, v


def largest_kinetic(evaluator: "Evaluator", duration: float, running: Session) -> float:
    """Largest kinetic energy [J] of the exact motion.

    Raises:
        PeerError: It failed.
    """
    states = exactly(evaluator.problem, duration, TIGHT, running)
    return max(evaluator.energies(q, v)[0] for q, v in zip(*states, strict=True))


def reference(made: Problem, horizons: tuple[float, ...], running: Session) -> Reference:
    """A trajectory up to the last horizon, by our DOP853, checked by others.

    Raises:
        PeerError: It failed.
    """
    until = max(horizons)
    q, v = exactly(made, until, TIGHT, running)
    row: Row = {"case": made.name, "method": f"dop853, rtol {TIGHT:g}", "checks": []}

    def check(by: str, other: Array) -> None:
        row["checks"].append({"by": by, "errors": _errors(made, other, q, horizons)})

    check(f"dop853, rtol {LESS_TIGHT:g}", exactly(made, until, LESS_TIGHT, running)[0])
    moved = replace(made, v=made.v + NUDGE * np.cos(1.0 + np.arange(len(made.v))))
    row["nudged"] = _errors(made, exactly(moved, until, TIGHT, running)[0], q, horizons)
    if made.name.startswith("row"):
        angle = swing(made, GRID * np.arange(len(q), dtype=np.float64))[0]
        check("the pendulum", np.sign(made.q) * angle[:, None])
    for setting in CHECK:
        if setting.peer not in running.peers:
            continue
        try:
            running.build(setting, made, CHECK_STEP)
            every = round(GRID / CHECK_STEP)
            steps = every * round(until / GRID)
            _, other, _ = running.ask(setting, "record", steps, every, patience=600.0)
            check(f"{setting.peer}, RK4 at {CHECK_STEP:g} s", other)
        except PeerError as error:
            row["checks"].append({"by": setting.peer, "failed": str(error)})
    evaluator = Evaluator(made)
    kinetic = max(evaluator.energies(*state)[0] for state in zip(q, v, strict=True))
    return Reference(q, kinetic, row)


def _errors(made: Problem, q: Array, exact: Array, horizons: tuple[float, ...]) -> Row:
    times = GRID * np.arange(len(q), dtype=np.float64)
    return {f"{horizon:g}": error_at(made, times, q, exact, horizon) for horizon in horizons}


def error_at(made: Problem, times: Array, q: Array, exact: Array, horizon: float) -> float | None:
    """Largest error [rad] of joints and of a base's rotation shortly before a horizon [s].

    Args:
        made: The problem.
        times: (n,) [s]
        q: (n, nq) states then.
        exact: Those of a reference, every ``GRID`` seconds.
        horizon: Up to it the last states count; None if the run ended before.
    """
    end = round(horizon / GRID)
    found: list[float] = []
    for k in range(max(1, end - LAST + 1), end + 1):
        at = np.flatnonzero(np.abs(times - GRID * k) < 1e-9)
        if not len(at):
            return None
        found.append(_error(made, q[at[0]], exact[k]))
    return finite(max(found))


def _error(made: Problem, q: Array, exact: Array) -> float:
    if not np.all(np.isfinite(q)):
        return np.inf
    worst = 0.0
    for joint in made.mechanism.joints.values():
        a, b = q[joint.q], exact[joint.q]
        if joint.kind in ("free", "spherical"):
            turn = Rotation.from_quat(b[-4:]).inv() * Rotation.from_quat(a[-4:])
            worst = max(worst, float(turn.magnitude()))
        else:
            worst = max(worst, float(np.abs(a - b).max()))
    return worst


def finite(value: float) -> float | None:
    """None for what JSON does not have."""
    return value if np.isfinite(value) else None


class Evaluator:
    """Evaluates states of any simulator, from the definitions alone."""

    def __init__(self, made: Problem) -> None:
        self.problem = made
        self.system = System(made.mechanism, made.constraints)
        self.system.assemble(guess=positions(made))

    def energies(self, q: Array, v: Array) -> tuple[float, float]:
        """Kinetic and total energy [J]."""
        seen = self.system.evaluate(q, v, 0.0)
        return seen.kinetic, seen.energy

    def drift(self, q: Array, v: Array, kinetic: float) -> Row:
        """Largest gap, gap rate and change of energy over states (n, nq), (n, nv).

        The first state is the start; changes are relative to the energy ``kinetic`` [J].
        """
        if not (np.all(np.isfinite(q)) and np.all(np.isfinite(v))):
            return {"failed": "diverged"}
        seen = [self.system.evaluate(*state, 0.0) for state in zip(q, v, strict=True)]
        energy = np.array([s.energy for s in seen])
        fields = {
            "gap_m": "metres",
            "gap_rad": "radians",
            "rate_m": "rate_metres",
            "rate_rad": "rate_radians",
        }
        row: Row = {key: finite(max(s.largest(f) for s in seen)) for key, f in fields.items()}
        if self.problem.conservative:
            row["energy"] = finite(float(np.abs(energy - energy[0]).max()) / kinetic)
        return row


def swing(made: Problem, t: Array) -> tuple[Array, float]:
    """Angle (n,) of the rods of a row at times t [s], and its largest kinetic energy [J]."""
    inertia, torque = pendulum(made)
    start = np.array([made.q[0], made.v[0]])
    solution = solve_ivp(
        lambda _, y: [y[1], -torque / inertia * np.sin(y[0])],
        (0.0, float(t[-1])),
        start,
        method="DOP853",
        t_eval=t,
        rtol=1e-12,
        atol=1e-13,
    )
    highest = 0.5 * inertia * start[1] ** 2 + torque * (1.0 - np.cos(start[0]))
    return solution.y[0], float(highest)
