"""Runs of the flexible arms, and what is measured on them."""

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np

import bulletbridge as bb
from bulletbridge.classics.flexible_arms import FlexibleSystem
from bulletbridge.classics.flexible_trees import Tree, tree_of

STEP = 2.5e-4  # [s]


LIMIT = 2.0
"""Of w h for the stiffest mode; the classical Runge-Kutta method is stable to 2.8."""


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
        hinges: Forces on the roots of links, where they are loops (times, links, 2) [N].
        seconds: That it took.
        step: [s]
        states: By joint, for ``hinge_forces``: positions, rates, accelerations.
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
    hinges: np.ndarray
    states: list[dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]]
    seconds: float
    step: float


def simulate(
    system: FlexibleSystem,
    times: Sequence[float],
    step: float = STEP,
    modes: Sequence[int] | None = None,
    segments: int | None = None,
    modules: bool = False,
) -> Rows:
    """Run a system by compiled RK4 and look at it at increasing times; halve steps if too stiff."""
    tree = tree_of(system, modes, segments, modules)
    while LIMIT < step * stiffest(tree):
        step *= 0.5
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
    *columns, states = zip(*found, strict=True)
    return Rows(
        np.array(times), *(np.array(column) for column in columns), list(states), spent, step
    )


def stiffest(tree: Tree) -> float:
    """Frequency of the stiffest mode of the open tree at the start [rad/s]."""
    model = bb.System(tree.mechanism)
    q = model.q
    for name, value in tree.start.items():
        q[tree.mechanism.joint(name).q] = value
    model.set_state(q)
    K = np.diag(tree.mechanism.axes["stiffness"])
    return float(np.sqrt(np.linalg.eigvals(np.linalg.solve(model.terms().M, K)).real.max()))


def look(model: bb.System, tree: Tree, system: FlexibleSystem) -> tuple:
    """Angles, rates, deflections, tip, energy, force, gaps, hinges, states of the present."""
    seen, v = model.kinematics(), model.v
    angles, rates, deflections, tip = [], [], [], np.zeros(2)
    for root, end in tree.ends:
        a, b = seen.point(root), seen.point(end)
        angles.append(np.arctan2(a.R_W[1, 0], a.R_W[0, 0]))
        rates.append((a.J_angular @ v)[2])
        deflections.append((a.R_W.T @ (b.p_W - a.p_W))[1])
        tip = b.p_W[:2]
    relative = v.copy()
    if system.shake is not None:
        base = v[tree.mechanism.joint("base").v]
        for name, joint in tree.mechanism.joints.items():
            if name == "base" or name.startswith("x"):  # free modules have their places along x
                relative[joint.v] -= base
    reactions = model.reactions()
    force = np.zeros(0)
    if system.closed:
        name, part = ("line", slice(1, 2)) if system.closed == "line" else ("tips", slice(0, 2))
        force = reactions[name].force[part]
    hinges = [r.force[:2] for name, r in reactions.items() if name.startswith("hinge")]
    here = model.evaluate()
    energy = model.evaluate(model.q, relative).energy
    gaps = here.largest("metres"), here.largest("rate_metres")
    vdot, q = model.acceleration(), model.q
    states = {
        name: (q[joint.q], v[joint.v], vdot[joint.v])
        for name, joint in tree.mechanism.joints.items()
    }
    angles = np.degrees(angles)
    return (
        angles, np.array(rates), np.array(deflections), tip, energy, force, *gaps,
        np.array(hinges), states,
    )  # fmt: skip


def hinge_forces(system: FlexibleSystem, rows: Rows) -> np.ndarray:
    """Forces on the roots of links that the monolithic model's accelerations need [N].

    The same tree has a pair of slides at each hinge, which do not move: what they transmit is the
    force there, less what the system's own loop puts into them. (times, links, 2)
    """
    tree = tree_of(system, slides=True)
    model = bb.System(tree.mechanism)
    found = []
    for n, state in enumerate(rows.states):
        q, v, vdot = np.zeros(tree.mechanism.nq), *np.zeros((2, tree.mechanism.nv))
        for name, (position, rate, acceleration) in state.items():
            joint = tree.mechanism.joint(name)
            q[joint.q], v[joint.v], vdot[joint.v] = position, rate, acceleration
        model.set_state(q, v)
        terms, seen = model.terms(), model.kinematics()
        needed = terms.M @ vdot + terms.h - terms.forces
        if system.closed:
            force = np.zeros(3)
            force[:2] = [0.0, *rows.force[n]] if system.closed == "line" else rows.force[n]
            needed -= seen.point(tree.loop[1]).J.T @ force
            if system.closed == "tips":
                needed += seen.point(tree.loop[0]).J.T @ force
        here = []
        for k in range(1, len(tree.ends) + 1):
            slides = [tree.mechanism.joint(f"{c}{k}").v.start for c in "xy"]
            axes = [terms.axes[i]["v"][:2] for i in slides]
            here.append(np.linalg.solve(np.array(axes), needed[slides]))
        found.append(here)
    return np.array(found)
