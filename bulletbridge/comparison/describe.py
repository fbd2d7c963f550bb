"""Constraints in words: what they join, how many rows they keep, and what was dropped."""

from dataclasses import dataclass

import numpy as np

from bulletbridge.constraints.force_elements import Tendon, points_of
from bulletbridge.constraints.joint_models import has_force_limit
from bulletbridge.constraints.joints import Coupling, Distance, LoopJoint
from bulletbridge.models.force_entries import ELEMENTS
from bulletbridge.models.load import LoadedModel
from bulletbridge.numerics.records import Array

COMPONENTS = ("moment x", "moment y", "moment z", "force x", "force y", "force z")


@dataclass(frozen=True)
class LoopReport:
    """One constraint.

    Attributes:
        name, type: As in the loops file.
        a, b: Links that it joins; for a coupling, its terms.
        rows, kept: As written, and without those that no joint can move.
        dropped: Directions that no joint can move, axes of frame a.
        mismatch_m, mismatch_rad: Largest gap that stays in these directions over sampled poses.
        gap_m, gap_rad: Gap at the start, all rows.
    """

    name: str
    type: str
    a: str
    b: str
    rows: int
    kept: int
    dropped: tuple[str, ...]
    mismatch_m: float
    mismatch_rad: float
    gap_m: float
    gap_rad: float


def loop_reports(loaded: LoadedModel) -> tuple[LoopReport, ...]:
    """All constraints of a model that do not give way, at its present state."""
    decision = loaded.system.decision
    gaps = {gap.name: gap for gap in loaded.system.evaluate().gaps}
    found: list[LoopReport] = []
    for constraint in loaded.spec.constraints:
        if has_force_limit(constraint):
            continue
        decided, gap = decision.by_name[constraint.name], gaps[constraint.name]
        found.append(
            LoopReport(
                constraint.name,
                kind_of(constraint),
                *ends_of(constraint),
                decided.rows,
                decided.kept,
                tuple(direction(wrench) for wrench in plainly(decided.dropped)),
                decided.mismatch_m,
                decided.mismatch_rad,
                gap.metres,
                gap.radians,
            )
        )
    return tuple(found)


@dataclass(frozen=True)
class SpringReport:
    """A force element at a state: type as in loops files, what is stretched and the force.

    ``joins`` are the links of its points, or the joints of a tendon. Positions and forces are six
    numbers for a bushing, turns first.
    """

    name: str
    type: str
    joins: tuple[str, ...]
    position: tuple[float, ...]
    force: tuple[float, ...]


def spring_reports(loaded: LoadedModel) -> tuple[SpringReport, ...]:
    """The force elements of a model at its present state, but for those of loop joints."""
    found = loaded.system.spring_forces()
    reports: list[SpringReport] = []
    for element in loaded.spec.elements:
        if element.name not in found:
            continue  # nothing but a motor, friction or limits along a tendon
        force = found[element.name]
        reports.append(
            SpringReport(
                element.name,
                ELEMENTS[type(element)],
                tuple(element.coefficients)
                if isinstance(element, Tendon)
                else tuple(frame.link for frame in points_of(element)),
                tuple(np.atleast_1d(force.position).tolist()),
                tuple(np.atleast_1d(force.force).tolist()),
            )
        )
    return tuple(reports)


@dataclass(frozen=True)
class WrenchReport:
    """A wrench at a state: its link, that along whose axes it is given, and what acts.

    Force [N] and torque [N m] are in the axes of the world.
    """

    name: str
    link: str
    axes: str
    force: tuple[float, ...]
    torque: tuple[float, ...]


def wrench_reports(loaded: LoadedModel) -> tuple[WrenchReport, ...]:
    """The wrenches of a model at its present state."""
    found = loaded.system.applied_wrenches()
    return tuple(
        WrenchReport(
            wrench.name,
            wrench.frame.link,
            (wrench.axes or wrench.frame).link,
            tuple(found[wrench.name].force.tolist()),
            tuple(found[wrench.name].torque.tolist()),
        )
        for wrench in loaded.spec.wrenches
    )


def kind_of(constraint: LoopJoint | Distance | Coupling) -> str:
    """Type of a constraint as loops files call it."""
    if isinstance(constraint, LoopJoint):
        return constraint.model.value
    return type(constraint).__name__.lower()


def ends_of(constraint: LoopJoint | Distance | Coupling) -> tuple[str, str]:
    """Links that a constraint joins; a coupling's terms stand in the first place."""
    if isinstance(constraint, Coupling):
        parts = [
            f"{c:+g} {name}" + (f"^{power}" if power > 1 else "")
            for name in constraint.coefficients
            for power, c in enumerate(constraint.polynomial(name), 1)
            if c or power == 1
        ]
        return " ".join(parts), ""
    return constraint.a.link, constraint.b.link


def plainly(wrenches: Array) -> Array:
    """Basis (n, 6) of a span of wrenches: the coordinate axes that lie in it, then the rest."""
    if not len(wrenches):
        return wrenches
    _, sizes, basis = np.linalg.svd(wrenches, full_matrices=False)
    basis = basis[sizes > 1e-9 * sizes[0]]
    inside = np.linalg.norm(basis, axis=0) > 1.0 - 1e-6
    axes = np.eye(6)[inside]
    rest = basis - basis @ axes.T @ axes
    _, sizes, rows = np.linalg.svd(rest, full_matrices=False)
    return np.vstack([axes, rows[sizes > 0.5]])


def direction(wrench: Array) -> str:
    """A unit wrench (6,) in words."""
    largest = float(np.abs(wrench).max())
    main = [int(k) for k in np.argsort(-np.abs(wrench)) if abs(wrench[k]) > 0.01 * largest]
    if len(main) == 1:
        return COMPONENTS[main[0]]
    return " ".join(f"{wrench[k]:+.2f} {COMPONENTS[k]}" for k in main)
