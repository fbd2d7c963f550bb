"""Runs of flexible arms by linearised equations, module by module or as a whole."""

import os
from collections.abc import Sequence
from dataclasses import dataclass

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # matrices here are smaller than a thread

import numpy as np
from numpy.typing import NDArray

import bulletbridge as bb
from bulletbridge.engine.force_signals import Script
from bulletbridge.engine.stepper import Solver
from bulletbridge.errors import BulletBridgeError
from bulletbridge.formulations.classics.flexible_arms import FlexibleSystem
from bulletbridge.formulations.classics.flexible_trees import Tree, tree_of
from bulletbridge.models.flexible.linearised import Level, Linearised, Order, linearised
from bulletbridge.numerics.records import Array

BENT = 0.5
"""A tip bent by more than this part of its link counts as a failure: none of them recovers."""
EVERY = 0.05
"""Between rows [s]."""


@dataclass(frozen=True)
class Variant:
    """What is integrated.

    Attributes:
        order: What is kept of the equations.
        contacts: What is kept of the rows of loops.
        apart: Links, counted from 1, that are modules of their own; the others are one tree.
    """

    order: Order
    contacts: Level = 3
    apart: tuple[int, ...] = ()


@dataclass
class Run:
    """Rows at times, up to a failure.

    Attributes:
        t: [s] (rows,).
        angles: Of the links, absolute [deg] (rows, links).
        deflections: Of their tips [m].
        tip: Of the last link (rows, 2) [m].
        failed: Time [s] at which a link bends too far, or None.
        gap: Largest violation of the loops as the level has them, over all rows [m].
        true_gap: The same of the positions with shortening.
    """

    t: np.ndarray
    angles: np.ndarray
    deflections: np.ndarray
    tip: np.ndarray
    failed: float | None
    gap: float
    true_gap: float


def exact(
    system: FlexibleSystem,
    duration: float,
    step: float = 1e-3,
    modes: Sequence[int] | None = None,
    every: float = EVERY,
) -> Run:
    """The same of the exact equations, as one tree, by the compiled RK4 with closed loops."""
    tree = tree_of(system, modes)
    model = bb.System(
        tree.mechanism, tree.constraints, forces=tree.forces, dt=step, integrator="rk4"
    )
    model.assemble(tree.start)
    look = Look(tree, system, linearised("ruthless")(model.dynamics).solver)
    rows, first = list[tuple[Array, Array, Array]](), look(model.q, model.v)
    try:
        found = model.rollout(round(duration / step), every=round(every / step))
        rows = [look(q, v) for q, v in zip(found.q, found.v, strict=True)]
        failed = None if max(look.bent(q) for q in found.q) < BENT else model.t
    except BulletBridgeError:
        failed = model.t
    angles, deflections, tip = (np.array(x) for x in zip(first, *rows, strict=True))
    gap = max(model.evaluate().largest("metres"), 0.0)
    return Run(every * np.arange(len(rows) + 1), angles, deflections, tip, failed, gap, gap)


def run(
    system: FlexibleSystem,
    variant: Variant,
    duration: float,
    step: float = 1e-3,
    modes: Sequence[int] | None = None,
    every: float = EVERY,
) -> Run:
    """Integrate accelerations by RK4, with no correction of loops: that is what is looked at."""
    tree = tree_of(system, modes, modules=variant.apart)
    model = bb.System(tree.mechanism, tree.constraints, forces=tree.forces, dt=step)
    model.assemble(tree.start)
    accelerate = linearised(variant.order, variant.contacts)(model.dynamics)
    solver = accelerate.solver
    times: Array = np.linspace(0.0, duration, 2 * round(duration / step) + 1)
    torques = solver.script.at(times)
    solver.script, solver.tau = Script(), np.zeros((1, solver.mechanism.nv))
    look = Look(tree, system, solver)
    q, v = model.q.copy(), model.v.copy()
    position = solver.mechanism.axes["q"]
    between, rows, failed, gaps = round(every / step), [look(q, v)], None, np.zeros(2)
    for n in range(round(duration / step)):
        tau = torques[2 * n : 2 * n + 3]
        try:
            q, v = rk4(accelerate, (q, v), n * step, step, tau, position)
        except BulletBridgeError:
            failed = n * step
            break
        bent = look.bent(q)
        if not bent < BENT:
            failed = (n + 1) * step
            break
        if (n + 1) % between == 0:
            rows.append(look(q, v))
            if solver.encoded.nc:
                true = solver.terms(q, v, (n + 1) * step).g
                own = accelerate.gap(q, v, (n + 1) * step)
                for part in solver.encoded.rows.values():
                    sizes = [np.linalg.norm(own[part]), np.linalg.norm(true[part])]
                    gaps = np.maximum(gaps, sizes)
    angles, deflections, tip = (np.array(x) for x in zip(*rows, strict=True))
    t = every * np.arange(len(rows))
    return Run(t, angles, deflections, tip, failed, float(gaps[0]), float(gaps[1]))


def rk4(
    accelerate: Linearised,
    state: tuple[Array, Array],
    t: float,
    h: float,
    tau: Array,
    position: NDArray[np.int64],
) -> tuple[Array, Array]:
    """One step from q, v; every position is the integral of a rate of its own.

    Args:
        accelerate: At forces that stand in its solver.
        state: q and v.
        t: [s].
        h: The step [s].
        tau: (3, nv) forces at its start, middle and end.
        position: (nv,) number of the position of each rate.
    """
    q, v = state

    def rate(v_at: Array, q_at: Array, at: float, forces: Array) -> Array:
        accelerate.solver.tau[0] = forces
        return accelerate(q_at, v_at, at).vdot

    def moved(u: Array, dt: float) -> Array:
        end = q.copy()
        end[position] += dt * u
        return end

    a1 = rate(v, q, t, tau[0])
    v2 = v + 0.5 * h * a1
    a2 = rate(v2, moved(v, 0.5 * h), t + 0.5 * h, tau[1])
    v3 = v + 0.5 * h * a2
    a3 = rate(v3, moved(v2, 0.5 * h), t + 0.5 * h, tau[1])
    v4 = v + h * a3
    a4 = rate(v4, moved(v3, h), t + h, tau[2])
    return moved((v + 2 * v2 + 2 * v3 + v4) / 6, h), v + h / 6 * (a1 + 2 * a2 + 2 * a3 + a4)


class Look:
    """Angles, deflections and tip of a state."""

    def __init__(self, tree: Tree, system: FlexibleSystem, solver: Solver) -> None:
        self.tree, self.solver = tree, solver
        mechanism = tree.mechanism
        self.beams: list[tuple[slice, Array]] = []
        for k, link in enumerate(system.links, 1):
            if f"beam{k}" in mechanism.joints:
                part = mechanism.joint(f"beam{k}").q
                body = mechanism.bodies[mechanism.link(f"tip{k}").body]
                tip = mechanism.stations[mechanism.beams[body["beam"]]["tip"]]
                sigma = tip["sigma"][: part.stop - part.start] / link.length
                self.beams.append((part, sigma))

    def bent(self, q: Array) -> float:
        """Largest deflection of a tip, as part of its link's length."""
        return max(abs(float(q[part] @ sigma)) for part, sigma in self.beams)

    def __call__(self, q: Array, v: Array) -> tuple[Array, Array, Array]:
        """Angles [deg], deflections [m], tip [m]."""
        terms = self.solver.terms(q, v, 0.0)
        seen = bb.Kinematics(self.tree.mechanism, terms.poses, terms.axes, q, v, 0.0)
        angles: list[float] = []
        deflections: list[float] = []
        tip = np.zeros(2)
        for root, end in self.tree.ends:
            a, b = seen.point(root), seen.point(end)
            angles.append(np.degrees(np.arctan2(a.R_W[1, 0], a.R_W[0, 0])))
            deflections.append((a.R_W.T @ (b.p_W - a.p_W))[1])
            tip = b.p_W[:2].copy()
        return np.array(angles), np.array(deflections), tip
