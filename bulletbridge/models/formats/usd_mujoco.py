"""Tendons and actuators of MuJoCo in a USD stage, as its converter and Newton's assets have them.

Source: MuJoCo, schema mjcPhysics. Tendons are sums of joint positions (``fixed``) or lines along
sites and bodies (``spatial``); an actuator pulls at a joint or at a tendon.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bulletbridge.constraints.force_elements import Tendon
from bulletbridge.models.formats.joint_graph import JointGraph
from bulletbridge.models.formats.mujoco_servo import Servo
from bulletbridge.models.formats.robot import free_name, listed
from bulletbridge.models.formats.usd_bodies import value_of

TENDONS, ACTUATORS = ("MjcTendon", "MjcPhysicsTendon"), ("MjcActuator", "MjcPhysicsActuator")
AUTOMATIC = -1.0
"""Length of a spring at rest that says: where the joints are at their references."""


@dataclass
class Found:
    """What a stage has of MuJoCo's."""

    driven: list[str]  # joints that actuators pull at
    idle: list[str]  # actuators that are more than a force and do not act, in words


def number(prim: Any, name: str, default: float) -> float:
    """Value of an attribute that may not be there."""
    value = value_of(prim, name)
    return default if value is None else float(value)


def add_mujocos(
    graph: JointGraph,
    prims: list[Any],
    paths: Mapping[str, str],
    zeros: Mapping[str, float],
    servos: bool,
) -> Found:
    """Add tendons and actuators to a graph that has all its joints.

    Args:
        graph: Takes elements, efforts of joints and notes.
        prims: Of the stage, in SI.
        paths: Joints by the path of their prim.
        zeros: What MuJoCo calls the positions of joints where they are zero here.
        servos: Whether actuators act that follow a position or a rate, at zero control.
    """
    single = {edge.name for edge in graph.connections if len(edge.along) == 1}
    sums: dict[str, dict[str, float]] = {
        path: {name: 1.0} for path, name in paths.items() if name in single
    }
    found, left = Found([], []), list[str]()
    for prim in prims:
        if str(prim.GetTypeName()) not in TENDONS:
            continue
        factors = _factors(prim, sums)
        if not factors:
            left.append(f"tendon {prim.GetName()}")
            continue
        sums[str(prim.GetPath())] = factors
        tendon = _tendon(prim, factors, _sum(factors, zeros))
        if tendon != Tendon(tendon.name, factors):
            graph.elements.append(replace(tendon, name=free_in(graph, tendon.name)))
    for prim in prims:
        if str(prim.GetTypeName()) not in ACTUATORS:
            continue
        targets = targets_of(prim, "mjc:target")
        if not targets or targets[0] not in sums:
            left.append(f"actuator {prim.GetName()}")
            continue
        gear = _numbers(prim, "mjc:gear", (1.0,))[0]
        factors = {name: gear * factor for name, factor in sums[targets[0]].items()}
        _drive(graph, prim, factors, _sum(factors, zeros), found, servos)
    if left:
        graph.notes.append(
            "of MuJoCo's prims those that are along lines, or act on what is no joint of one axis,"
            f" are left out: {listed(left)}"
        )
    return found


def _drive(
    graph: JointGraph,
    prim: Any,
    factors: dict[str, float],
    zero: float,
    found: Found,
    servos: bool,
) -> None:
    """Make an actuator's joints driven ones, and let it act if it is to.

    Its length in MuJoCo's positions is ``zero`` where it is none in ours.
    """
    bounds = _range(prim, "force")
    most = max(map(abs, bounds))
    for k, edge in enumerate(graph.connections):
        if edge.name in factors:
            (along,) = edge.along
            effort = min(along.effort, most * abs(factors[edge.name]))
            graph.connections[k] = replace(edge, along=(replace(along, effort=effort),))
    found.driven += list(factors)
    servo, dynamics = _servo(prim, bounds, zero), _word(prim, "mjc:dynType", "none")
    if servo is None:
        return
    name = str(prim.GetName())
    linear = _word(prim, "mjc:gainType", "fixed") == "fixed" and dynamics in ("none", "integrator")
    if not (servos and linear and min(servo.stiffness, servo.damping) >= 0.0):
        found.idle.append(f"{name} ({_law(servo)}{'' if linear else ', not linear'})")
    elif servo.acts:
        graph.elements.append(servo.along(free_in(graph, name), factors))


def _servo(prim: Any, bounds: tuple[float, float], zero: float) -> Servo | None:
    """What an actuator does besides exerting its control as a force; None for nothing."""
    if _word(prim, "mjc:biasType", "none") == "none":
        return None
    constant, per_length, per_rate = (*_numbers(prim, "mjc:biasPrm", ()), 0.0, 0.0, 0.0)[:3]
    gain = _numbers(prim, "mjc:gainPrm", (1.0,))[0]
    control = float(np.clip(0.0, *_range(prim, "ctrl")))
    force = gain * control + constant + per_length * zero
    return Servo(force, 0.0 - per_length, 0.0 - per_rate, bounds)


def _law(servo: Servo) -> str:
    return f"force {servo.force:g} {-servo.stiffness:+g} length {-servo.damping:+g} rate"


def _sum(factors: dict[str, float], positions: Mapping[str, float]) -> float:
    return sum(factor * positions.get(name, 0.0) for name, factor in factors.items())


def _tendon(prim: Any, factors: dict[str, float], zero: float) -> Tendon:
    """What a sum of joint positions does by itself; MuJoCo's is ``zero`` where ours is none."""
    ends = _numbers(prim, "mjc:springlength", (AUTOMATIC,))
    low, high = (0.0 if end == AUTOMATIC else end - zero for end in (ends[0], ends[-1]))
    shortest, longest = (end - zero for end in _range(prim, ""))
    limits = (shortest, longest) if np.isfinite((shortest, longest)).any() else None
    stiffness = number(prim, "mjc:stiffness", 0.0)
    return Tendon(
        str(prim.GetName()),
        factors,
        stiffness,
        number(prim, "mjc:damping", 0.0),
        0.5 * (low + high) if stiffness else 0.0,
        0.5 * (high - low) if stiffness else 0.0,
        limits=limits,
        friction=number(prim, "mjc:frictionloss", 0.0),
    )


def _factors(prim: Any, sums: Mapping[str, dict[str, float]]) -> dict[str, float]:
    """Joints of a tendon, by name; none of one along a line, or along what is no joint."""
    targets = targets_of(prim, "mjc:path")
    order = [int(k) for k in _numbers(prim, "mjc:path:indices", range(len(targets)))]
    along = [targets[k] for k in order if 0 <= k < len(targets)]
    if _word(prim, "mjc:type", "spatial") != "fixed" or not all(path in sums for path in along):
        return {}
    factors: dict[str, float] = {}
    coefficients = _numbers(prim, "mjc:path:coef", [1.0] * len(along))
    for path, factor in zip(along, coefficients, strict=False):
        ((name, _),) = sums[path].items()
        factors[name] = factors.get(name, 0.0) + factor
    return factors


def _range(prim: Any, what: str) -> tuple[float, float]:
    """Bounds of a force, a control or, by no word, of a length: infinite where there are none."""
    said = f"mjc:{what}Range" if what else "mjc:range"
    limited = _word(prim, f"mjc:{what}Limited" if what else "mjc:limited", "auto")
    low, high = (number(prim, f"{said}:{end}", 0.0) for end in ("min", "max"))
    return (low, high) if limited != "false" and low < high else (-np.inf, np.inf)


def free_in(graph: JointGraph, name: str) -> str:
    """A name that no joint, loop or element has."""
    taken = [each.name for each in (*graph.connections, *graph.loops, *graph.elements)]
    return free_name(name, taken)


def _word(prim: Any, name: str, default: str) -> str:
    value = value_of(prim, name)
    return default if value is None else str(value)


def _numbers(prim: Any, name: str, default: Any) -> tuple[float, ...]:
    value = value_of(prim, name)
    return tuple(float(x) for x in (default if value is None or not len(value) else value))


def targets_of(prim: Any, relation: str) -> list[str]:
    """Paths of what a relation names."""
    found = prim.GetRelationship(relation)
    return [str(path) for path in found.GetTargets()] if found else []
