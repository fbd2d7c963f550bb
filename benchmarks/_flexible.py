"""Runs of the flexible arms, and what is measured on them."""

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import NamedTuple

import numpy as np

import bulletbridge as bb
from bulletbridge.formulations.classics.flexible_arms import FlexibleSystem
from bulletbridge.formulations.classics.flexible_trees import Tree, tree_of
from bulletbridge.numerics.records import Array

STEP = 2.5e-4  # [s]


Joint = tuple[Array, Array, Array]
"""Positions, rates, accelerations."""
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
        quickest: Seconds of the quickest way from one of the times to the next.
        step: [s]
        states: By joint, for ``hinge_forces``: positions, rates, accelerations.
    """

    t: Array
    angles: Array
    rates: Array
    deflections: Array
    tip: Array
    energy: Array
    force: Array
    gap: Array
    gap_rate: Array
    hinges: Array
    states: list[dict[str, Joint]]
    quickest: float
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
    found, spent = list[Look](), list[float]()
    for t in times:
        steps = round((t - model.t) / step)
        if steps:
            begun = perf_counter()
            model.rollout(steps, every=steps)
            spent.append(perf_counter() - begun)
        found.append(look(model, tree, system))
    return Rows(
        np.array(times, float),
        np.array([x.angles for x in found], float),
        np.array([x.rates for x in found], float),
        np.array([x.deflections for x in found], float),
        np.array([x.tip for x in found], float),
        np.array([x.energy for x in found], float),
        np.array([x.force for x in found], float),
        np.array([x.gap for x in found], float),
        np.array([x.gap_rate for x in found], float),
        np.array([x.hinges for x in found], float),
        [x.state for x in found],
        min(spent, default=0.0),
        step,
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


class Look(NamedTuple):
    """What there is of ``Rows`` at one time."""

    angles: list[float]
    rates: list[float]
    deflections: list[float]
    tip: Array
    energy: float
    force: Array
    gap: float
    gap_rate: float
    hinges: list[Array]
    state: dict[str, Joint]


def look(model: bb.System, tree: Tree, system: FlexibleSystem) -> Look:
    """The present state."""
    seen, q, v, vdot = model.kinematics(), model.q, model.v, model.acceleration()
    angles, rates, deflections = list[float](), list[float](), list[float]()
    tip = np.zeros(2)
    for root, end in tree.ends:
        a, b = seen.point(root), seen.point(end)
        angles.append(float(np.degrees(np.arctan2(a.R_W[1, 0], a.R_W[0, 0]))))
        rates.append(float((a.J_angular @ v)[2]))
        deflections.append(float((a.R_W.T @ (b.p_W - a.p_W))[1]))
        tip = b.p_W[:2]
    relative = v.copy()
    joints = tree.mechanism.joints
    if system.shake is not None:
        for name, joint in joints.items():
            if name == "base" or name.startswith("x"):  # free modules have their places along x
                relative[joint.v] -= v[joints["base"].v]
    reactions, force = model.reactions(), np.zeros(0)
    if system.closed == "line":
        force = reactions["line"].force[1:2]
    elif system.closed:
        force = reactions["tips"].force[:2]
    here = model.evaluate()
    return Look(
        angles,
        rates,
        deflections,
        tip,
        model.evaluate(q, relative).energy,
        force,
        here.largest("metres"),
        here.largest("rate_metres"),
        [r.force[:2] for name, r in reactions.items() if name.startswith("hinge")],
        {name: (q[joint.q], v[joint.v], vdot[joint.v]) for name, joint in joints.items()},
    )


def hinge_forces(system: FlexibleSystem, rows: Rows) -> Array:
    """Forces on the roots of links that the monolithic model's accelerations need [N].

    The same tree has a pair of slides at each hinge, which do not move: what they transmit is the
    force there, less what the system's own loop puts into them. (times, links, 2)
    """
    tree = tree_of(system, slides=True)
    model = bb.System(tree.mechanism)
    found = list[list[Array]]()
    for n, state in enumerate(rows.states):
        q, v, vdot = np.zeros(tree.mechanism.nq), *np.zeros((2, tree.mechanism.nv))
        for name, (position, rate, acceleration) in state.items():
            joint = tree.mechanism.joint(name)
            q[joint.q], v[joint.v], vdot[joint.v] = position, rate, acceleration
        model.set_state(q, v)
        terms, seen = model.terms(), model.kinematics()
        needed = terms.M @ vdot + terms.h - terms.forces
        if tree.loop is not None:
            force = np.zeros(3)
            force[2 - rows.force.shape[1] : 2] = rows.force[n]  # y, or x and y
            needed -= seen.point(tree.loop[1]).J.T @ force
            if system.closed == "tips":
                needed += seen.point(tree.loop[0]).J.T @ force
        here = list[Array]()
        for k in range(1, len(tree.ends) + 1):
            slides = [tree.mechanism.joint(f"{c}{k}").v.start for c in "xy"]
            axes = [terms.axes[i]["v"][:2] for i in slides]
            here.append(np.asarray(np.linalg.solve(np.array(axes), needed[slides]), np.float64))
        found.append(here)
    return np.array(found, float)
