"""From a trajectory to a result, by the same measures for everybody."""

from dataclasses import fields, replace

import numpy as np

from bulletbridge.comparison.native import without_bounds
from bulletbridge.comparison.options import NATIVE, Contender
from bulletbridge.comparison.results import (
    Energy,
    Extent,
    Final,
    Result,
    Status,
    StepTime,
    extent,
    named,
)
from bulletbridge.comparison.trajectory import Trace, distances
from bulletbridge.models.formats.robot import listed
from bulletbridge.models.load import LoadedModel
from bulletbridge.numerics.records import Array

MOST_GAINED = 1e3
LIMIT_ATOL = 1e-6
"""Distance from a limit [rad or m] that counts as at it."""
MOST_NAMED = 3
"""Joints in a note."""


def result_of(loaded: LoadedModel, contender: Contender, trace: Trace, message: str) -> Result:
    """Result of a trajectory, whoever made it."""
    seen = trace.evaluated
    assert seen is not None
    message = message or implausible(loaded, trace)
    status: Status = "failed" if message else "ok"
    result = contender.blank(loaded.spec, status, message, len(trace.step_us))
    mechanism = loaded.system.mechanism
    changing = changes_energy(loaded, trace.q)
    gaps = {f.name: getattr(seen, f.name) for f in fields(seen) if f.name.startswith("gap")}
    return replace(
        result,
        **{name: extent(x[1:] if "acceleration" in name else x) for name, x in gaps.items()},
        integrator=result.integrator if contender.solver in NATIVE else loaded.system.integrator,
        energy=energy_of(seen.kinetic, seen.potential, not changing),
        trajectory_error=error_against(loaded, trace, contender.reference),
        step_us=timing(trace.step_us),
        final=Final(
            float(trace.t[-1]),
            named(mechanism, trace.q[-1], "q"),
            named(mechanism, trace.v[-1], "v"),
        ),
        notes=(*energy_notes(changing), *notes_of(loaded, trace, contender.solver)),
    )


def implausible(loaded: LoadedModel, trace: Trace) -> str:
    """Why a trajectory cannot be one of this mechanism; empty if it may be.

    Its numbers are finite, and where nothing brings energy it gains none; ``MOST_GAINED`` times
    what lifting all of its mass by its length, or turning it at 1 rad/s, takes is beyond doubt.
    """
    seen = trace.evaluated
    assert seen is not None
    total = seen.kinetic + seen.potential
    state = np.hstack([trace.q, trace.v])
    finite = np.isfinite(total) & np.isfinite(state).all(axis=1)
    if not finite.all():
        return f"the numbers are not finite at t = {trace.t[np.argmin(finite)]:.6g} s"
    if not is_passive(loaded):
        return ""
    length = loaded.system.encoded.length
    weight = float(np.linalg.norm(loaded.system.gravity)) * length + length**2
    mass = float(loaded.system.mechanism.bodies["mass"].sum())
    most = MOST_GAINED * (mass * weight + float(seen.kinetic[0]))
    if (total - total[0]).max() <= most:
        return ""
    n = int(np.argmax(total - total[0] > most))
    return (
        f"nothing brings energy, but {total[n] - total[0]:.2g} J more are there at"
        f" t = {trace.t[n]:.6g} s, and {total.max() - total[0]:.2g} J at most: the run has exploded"
    )


def energy_of(kinetic: Array, potential: Array, conserved: bool) -> Energy | None:
    """Energy of a run, which it should keep if it is ``conserved``; None when it is not finite."""
    total = kinetic + potential
    if not np.isfinite(total).all():
        return None
    drift, scale = float(np.abs(total - total[0]).max()), float(kinetic.max())
    relative = drift / scale if scale > 0.0 else None
    return Energy(float(total[0]), drift, relative, conserved)


def timing(step_us: Array) -> StepTime | None:
    """Time per step of a run; None without steps."""
    if not len(step_us):
        return None
    median, p95 = np.percentile(step_us, [50.0, 95.0])
    return StepTime(float(median), float(p95))


def changes_energy(loaded: LoadedModel, q: Array) -> tuple[str, ...]:
    """What brings or takes energy in a run (n, nq), such as limits that are met, in words."""
    mechanism = loaded.system.mechanism
    joints = {name: joint for name, joint in mechanism.joints.items() if joint.is_single}
    met = [
        name
        for name, joint in joints.items()
        if q[:, joint.q.start].min() < joint.lower + LIMIT_ATOL
        or q[:, joint.q.start].max() > joint.upper - LIMIT_ATOL
    ]
    damped = loaded.system.encoded.elements["damping"].any() or mechanism.axes["damping"].any()
    found = [] if is_passive(loaded) else ["what drives or pushes it"]
    found += ["damping"] if damped else []
    found += (
        ["friction of joints"] if any(j.friction > 0 for j in mechanism.joints.values()) else []
    )
    named = listed((f"'{name}'" for name in met), MOST_NAMED)
    return (*found, *([f"limits of {named}"] if met else []))


def dead_loads(loaded: LoadedModel) -> tuple[str, ...]:
    """Wrenches of a model that have a potential, as what takes a robot's weight has."""
    return tuple(wrench.name for wrench in loaded.spec.wrenches if wrench.is_dead_load)


def is_passive(loaded: LoadedModel) -> bool:
    """Whether nothing in the model brings energy."""
    driven = any(c.motion is not None for c in loaded.spec.constraints)
    driven |= any(callable(force.torque) for force in loaded.spec.forces)
    driven |= len(dead_loads(loaded)) < len(loaded.spec.wrenches)
    elements = loaded.system.encoded.elements
    pushed = elements["force"].any() or (elements["target"] >= 0).any()
    return not (driven or pushed or np.any(loaded.system.mechanism.axes["torque"]))


def error_against(loaded: LoadedModel, trace: Trace, reference: Array | None) -> Extent | None:
    """How far configurations are from the reference's."""
    if reference is None:
        return None
    return extent(distances(loaded.system.mechanism, trace.q, reference[: len(trace.q)]))


def energy_notes(changing: tuple[str, ...]) -> tuple[str, ...]:
    """How to read the change of energy of a run that should not keep it."""
    if not changing:
        return ()
    *others, last = changing
    said = f"{', '.join(others)} and {last}" if others else last
    return (f"its energy is changed by {said}, not by a solver's errors alone",)


def notes_of(loaded: LoadedModel, trace: Trace, solver: str) -> tuple[str, ...]:
    """What to know when reading the numbers."""
    notes: list[str] = []
    limited = np.any(loaded.system.mechanism.axes["limited"])
    outside: list[str] = []
    for name, joint in loaded.system.mechanism.joints.items():
        if not joint.is_single:
            continue
        q = trace.q[:, joint.q.start]
        if q.min() < joint.lower - 1e-9 or q.max() > joint.upper + 1e-9:
            outside.append(f"'{name}' [{joint.lower:g}, {joint.upper:g}]")
    if outside:
        ours = "limits take them back" if limited else "limits do not act here"
        acts = "Bullet pushes back there" if solver in NATIVE else ours
        notes.append(f"joints leave their limits: {listed(outside)}; {acts}")
    if solver in NATIVE:
        ignored = [
            f"'{name}'"
            for name, joint in loaded.system.mechanism.joints.items()
            if joint.friction or np.any(loaded.system.mechanism.axes["armature"][joint.v])
        ]
        if ignored:
            notes.append(f"Bullet knows neither armature nor friction of joints: {listed(ignored)}")
        bare = [f"'{name}'" for name in without_bounds(loaded.spec)]
        if bare:
            notes.append(f"Bullet's constraints know neither limits nor friction: {listed(bare)}")
    return tuple(notes)
