"""The papers' methods side by side: accelerations beside the projector's, orders, costs.

    python benchmarks/methods.py [--models NAME ...] [--json FILE]

Five bundled models and two mechanisms of our own: an arm whose tip slides on a plane, and a
floating body tethered to the world by links on spherical joints. Accelerations are compared at a
state in motion, the largest difference over the largest acceleration. Charts: the equations of the
tangent space; weightings: what the kernel takes at the start of its step; the published law of
tracking: the acceleration under the forces that it asks for where nothing is off the wanted motion,
which is that without forces; class II: the projector's where the friction that was found is given
as a force. Orders are from twenty and forty steps over a span, against DOP853; errors at round-off
have none. Costs are processor times of a step, or of a call of the law, over that of the default
step in the same run, medians of batches in turns.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import bulletbridge as bb
from bulletbridge.console import write_json
from bulletbridge.engine.records import STAGE_VDOTS
from bulletbridge.events.contact import surface_of
from bulletbridge.formulations.projector import Projector
from bulletbridge.formulations.registry import formulation_of
from bulletbridge.formulations.system_dynamics import SystemDynamics
from bulletbridge.mechanism.build import Load, empty_mechanism, with_joint
from bulletbridge.numerics.records import Array

MODELS = ("four_bar", "stewart", "minitaur", "space_arm", "ball_chain", "arm on a plane", "tether")
SPANS = {"space_arm": 8.0, "tether": 0.1}
"""Spans over which orders are measured [s], of what is slow, or fast."""
SPAN, PARTS, BATCHES, ROUND_OFF = 0.2, (20, 40), 7, 1e-12
FRICTION = 0.3
Make = Callable[..., bb.System]


@dataclass
class Method:
    """A method, by the options of a system.

    Attributes:
        options: Of ``System``.
        formulation: Whose acceleration is compared; None for what the kernel takes.
        order: That it should have.
    """

    options: dict[str, Any]
    formulation: str | None
    order: int


METHODS = {
    "charts": Method({"integrator": "charts"}, "tangent_space", 4),
    "charts_trapezoidal": Method({"integrator": "charts_trapezoidal"}, "tangent_space", 2),
    **{f"weighting, {w}": Method({"weighting": w}, None, 4)
       for w in ("condensed", "mass", "identity")},
    "rk4_quasi_velocities": Method(
        {"integrator": "rk4_quasi_velocities"}, "quasi_velocities", 4
    ),
    "modular": Method({"integrator": "rk4", "formulation": "modular"}, "modular", 4),
}  # fmt: skip
TRACKING, SLIDING = "tracking, published", "friction, class II"


def arm_on_plane(**options: Any) -> bb.System:
    """Three links on revolute joints; the tip slides on a level plane."""
    arm = empty_mechanism(gravity=(0.0, 0.0, -9.81))
    load = Load(2.0, (0.25, 0.0, 0.0), (0.01, 0.05, 0.05))
    arm = with_joint(arm, "yaw", "revolute", "column", xyz=(0.0, 0.0, 0.6), load=load)
    tilt = (np.pi / 2, 0.0, 0.0)
    arm = with_joint(arm, "lift", "revolute", "upper", "column", rpy=tilt, load=load)
    arm = with_joint(arm, "elbow", "revolute", "fore", "upper", xyz=(0.5, 0.0, 0.0), load=load)
    q = np.array([0.3, 0.4, -1.1])
    free = bb.System(arm)
    free.set_state(q)
    tip = bb.Frame("fore", (0.5, 0.0, 0.0))
    height = float(free.kinematics().point(tip).p_W[2])
    plane = bb.LoopJoint(
        "plane", bb.JointModel.POINT_ON_PLANE, bb.Frame("world", (0.0, 0.0, height)), tip
    )
    return moving(bb.System(arm, [plane], **options), q, np.array([1.0, 0.5, -0.8]))


def tether(**options: Any) -> bb.System:
    """A floating body on two links with spherical joints, whose end is pinned to the world."""
    chain = with_joint(
        empty_mechanism(gravity=(0.0, 0.0, -9.81)), "base", "free", "body",
        load=Load(5.0, (0.0, 0.0, 0.1), (0.2, 0.3, 0.25)),
    )  # fmt: skip
    load = Load(1.0, (0.0, 0.0, 0.2), (0.02, 0.02, 0.005))
    chain = with_joint(chain, "hip", "spherical", "thigh", "body", (0.1, 0.0, 0.3), load=load)
    chain = with_joint(chain, "knee", "spherical", "shank", "thigh", (0.0, 0.0, 0.4), load=load)
    rng = np.random.default_rng(3)
    q = np.concatenate([[0.1, -0.2, 0.3], *3 * [[0.0, 0.0, 0.0, 1.0]]])
    free = bb.System(chain)
    q = free.dynamics.displace(q, np.concatenate([np.zeros(3), 0.5 * rng.standard_normal(9)]))
    free.set_state(q)
    end = bb.Frame("shank", (0.0, 0.0, 0.4))
    place = tuple(free.kinematics().point(end).p_W)
    pin = bb.LoopJoint("pin", bb.JointModel.BALL, bb.Frame("world", place), end)
    return moving(bb.System(chain, [pin], **options), q, rng.standard_normal(12))


def moving(system: bb.System, q: Array, v: Array) -> bb.System:
    """The system at q, at the velocity nearest to v that the rows allow."""
    system.set_state(q)
    dynamics = system.dynamics
    e = dynamics.equations(q, v, 0.0)
    W = np.linalg.solve(e.M, e.J.T)
    system.set_state(q, v - W @ np.linalg.solve(e.J @ W, e.J @ v))
    return system


OWN: dict[str, Make] = {"arm on a plane": arm_on_plane, "tether": tether}


def system_of(name: str, **options: Any) -> bb.System:
    """A mechanism by name, in motion."""
    if name in OWN:
        return OWN[name](**options)
    return bb.load(name, "new", limits=False, **options).system


def off(found: Array, expected: Array) -> float:
    """Largest difference over the largest number."""
    return float(np.abs(found - expected).max() / np.abs(expected).max())


def acceleration_off(name: str, method: Method) -> float:
    """How far a method's acceleration is from the projector's."""
    plain = system_of(name)
    q, v, t = plain.q, plain.v, plain.t
    expected = Projector(plain.dynamics)(q, v, t).vdot
    if method.formulation is not None:
        return off(formulation_of(method.formulation)(plain.dynamics)(q, v, t).vdot, expected)
    system = system_of(name, dt=1e-3, **method.options)
    system.step()
    return off(system.compiled()[0].vectors[STAGE_VDOTS, : len(v)], expected)


def order_of(make: Make, options: dict[str, Any], span: float) -> float | None:
    """Order by two runs; None where errors are round-off."""
    exact = make(integrator="dop853", rtol=1e-13, atol=1e-13, dt=span)
    exact.run(span)
    truth = np.concatenate([exact.q, exact.v])
    errors: list[float] = []
    for parts in PARTS:
        system = make(dt=span / parts, **options)
        system.rollout(parts)
        errors.append(float(np.abs(np.concatenate([system.q, system.v]) - truth).max()))
    if errors[1] < ROUND_OFF * np.abs(truth).max():
        return None
    return float(np.log2(errors[0] / errors[1]))


def costs_of(runs: dict[str, tuple[Callable[[], object], int]]) -> dict[str, float]:
    """Processor time of each call [µs]; runs by name, with the number of calls in one."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for run, _ in runs.values():
        run()
    for _ in range(BATCHES):
        for name, (run, calls) in runs.items():
            begun = process_time()
            run()
            times[name].append(1e6 * (process_time() - begun) / calls)
    return {name: median(each) for name, each in times.items()}


def law_of(system: bb.System) -> Callable[[], Array]:
    """A call of the published law at the state, which is on the wanted motion."""
    q, v, t = system.q, system.v, system.t
    wanted = bb.Desired(q, v, Projector(system.dynamics)(q, v, t).vdot)
    plant = bb.plant_of(system, list(system.mechanism.joints))
    law = bb.Tracking(plant, lambda t: wanted, 5.0, 5.0, law="published")
    return partial(law, q, v, t)


def law_off(name: str) -> float:
    """How far the acceleration under its forces is from that wanted."""
    system = system_of(name)
    expected = Projector(system.dynamics)(system.q, system.v, system.t).vdot
    e = system.dynamics.equations(system.q, system.v, system.t)
    found = Projector(system.dynamics).solve(e._replace(f=e.f + law_of(system)())).vdot
    return off(found, expected)


def sliding_arm(**options: Any) -> bb.System:
    """The arm on a rough plane."""
    (plane,) = arm_on_plane().constraints
    assert isinstance(plane, bb.LoopJoint)
    return arm_on_plane(**{"formulation": bb.sliding(bb.Friction(plane, FRICTION)), **options})


def sliding_off() -> float:
    """How far accelerations with friction are from the projector's with that friction as a force.

    The normal force is that of the multiplier found with it.
    """
    system = arm_on_plane()
    (plane,), tree = system.constraints, system.dynamics
    assert isinstance(plane, bb.LoopJoint) and isinstance(tree, SystemDynamics)
    q, v, t = system.q, system.v, system.t
    found = bb.sliding(bb.Friction(plane, FRICTION))(tree)(q, v, t)
    here = tree.moving(q, v, t)
    at = surface_of(plane, system.mechanism).at(here.terms.poses, here.terms.axes)
    slip = at.tangents @ at.jacobian @ v
    # the row is the distance along the unit normal, so its multiplier is the normal force
    push = -FRICTION * abs(found.lam[0]) * (slip / np.linalg.norm(slip)) @ at.tangents @ at.jacobian
    e = here.equations
    return off(found.vdot, Projector(tree).solve(e._replace(f=e.f + push)).vdot)


def measure(name: str) -> dict[str, dict[str, float | None]]:
    """Difference, order and cost over the default's of every method on one mechanism."""
    span, dt = SPANS.get(name, SPAN), 1e-3
    rows: dict[str, dict[str, float | None]] = {}
    default = system_of(name, dt=dt)
    runs: dict[str, tuple[Callable[[], object], int]] = {
        "default": (partial(default.rollout, 100), 100)
    }
    for key, method in METHODS.items():
        order = order_of(partial(system_of, name), method.options, span)
        rows[key] = {"difference": acceleration_off(name, method), "order": order}
        steps = 100 if key.startswith(("charts", "weighting")) else 5
        runs[key] = partial(system_of(name, dt=dt, **method.options).rollout, steps), steps
    rows[TRACKING] = {"difference": law_off(name), "order": None}
    call = law_of(default)
    runs[TRACKING] = (lambda: [call() for _ in range(10)]), 10
    if name == "arm on a plane":
        order = order_of(sliding_arm, {"integrator": "rk4"}, span)
        rows[SLIDING] = {"difference": sliding_off(), "order": order}
        runs[SLIDING] = partial(sliding_arm(dt=dt, integrator="rk4").rollout, 5), 5
    costs = costs_of(runs)
    for key, row in rows.items():
        row["cost"], row["us"] = costs[key] / costs["default"], costs[key]
    return rows


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=MODELS)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    table = Table("model", "method", "acceleration off", "order", "a step [us]", "over the default")
    found: dict[str, dict[str, dict[str, float | None]]] = {}
    for name in options.models:
        rows = found[name] = measure(name)
        for key, row in rows.items():
            order = "-" if row["order"] is None else f"{row['order']:.2f}"
            table.add_row(
                name, key, f"{row['difference']:.0e}", order,
                f"{row['us']:.1f}", f"{row['cost']:.1f}",
            )  # fmt: skip
    Console(width=100).print(table)
    if options.json:
        write_json(options.json, found)


if __name__ == "__main__":
    main()
