"""Runs of the flexible arms, and what is measured on them."""

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np

import bulletbridge as bb
from bulletbridge.classics.flexible_arms import FlexibleSystem
from bulletbridge.classics.flexible_trees import Tree, tree_of

STEP = 2.5e-4  # [s]


@dataclass
class Rows:
    """What a run gives at some times.

    Attributes:
        t: [s]
        angles: Of the links' roots, against x [deg] (times, links).
        rates: [rad/s]
        deflections: Of the tips, across the tangent at the root [m].
        tip: Of the last link (times, 2) [m].
        energy: Relative to the base [J].
        force: Of the system's own loop on its frame b (times, 0, 1 or 2) [N].
        gap, gap_rate: Largest of all loops [m], [m/s].
        seconds: That it took.
    """

    t: np.ndarray
    angles: np.ndarray
    rates: np.ndarray
    deflections: np.ndarray
    tip: np.ndarray
    energy: np.ndarray
    force: np.ndarray
    gap: np.ndarray
    gap_rate: np.ndarray
    seconds: float


def simulate(
    system: FlexibleSystem,
    times: Sequence[float],
    step: float = STEP,
    modes: Sequence[int] | None = None,
    segments: int | None = None,
    modules: bool = False,
) -> Rows:
    """Run a system by compiled RK4 and look at it at increasing times."""
    tree = tree_of(system, modes, segments, modules)
    model = bb.System(
        tree.mechanism, tree.constraints, forces=tree.forces, dt=step, integrator="rk4"
    )
    model.assemble(tree.start)
    found, spent = [], 0.0
    for t in times:
        steps = round((t - model.t) / step)
        if steps:
            begun = perf_counter()
            model.rollout(steps, every=steps)
            spent += perf_counter() - begun
        found.append(look(model, tree, system))
    columns = [np.array(column) for column in zip(*found, strict=True)]
    return Rows(np.array(times), *columns, spent)


def look(model: bb.System, tree: Tree, system: FlexibleSystem) -> tuple:
    """Angles, rates, deflections, tip, energy, force, gaps of the present state."""
    seen, v = model.kinematics(), model.v
    angles, rates, deflections, tip = [], [], [], np.zeros(2)
    for root, end in tree.ends:
        a, b = seen.point(root), seen.point(end)
        angles.append(np.arctan2(a.R_W[1, 0], a.R_W[0, 0]))
        rates.append((a.J_angular @ v)[2])
        deflections.append((a.R_W.T @ (b.p_W - a.p_W))[1])
        tip = b.p_W[:2]
    relative = v.copy()
    if system.shake is not None and "base" in tree.mechanism.joints:
        relative[tree.mechanism.joint("base").v] = 0.0
    force = np.zeros(0)
    if system.closed:
        name, part = ("line", slice(1, 2)) if system.closed == "line" else ("tips", slice(0, 2))
        force = model.reactions()[name].force[part]
    here = model.evaluate()
    energy = model.evaluate(model.q, relative).energy
    gaps = here.largest("metres"), here.largest("rate_metres")
    return np.degrees(angles), np.array(rates), np.array(deflections), tip, energy, force, *gaps
