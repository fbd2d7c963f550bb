"""Derivatives of the equations of motion with respect to parameters, by name.

At given q, v, v̇ and λ the equations are polynomials of most parameters: linear in masses, inertias,
stiffness, damping, armature, torques and gravity, quadratic in centres of mass and in places of
joints and frames, as inverse dynamics has them in its regressor. Central differences of these
polynomials are exact; where rows or springs turn with places, they are extrapolated.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from bulletbridge.constraints.encode import Constraint
from bulletbridge.constraints.force_element_records import encode_closed
from bulletbridge.engine.derivatives import DerivativeArrays
from bulletbridge.engine.stepper import Solver
from bulletbridge.errors import UnsupportedError
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.numerics.records import Array
from bulletbridge.system.parameters import (
    XYZ,
    changed_constraints,
    changed_mechanism,
    is_rigid,
    parameters_of,
    require_known,
)

OF_BODIES = ("mass", "com", "J", "p")
OF_AXES = ("armature", "damping", "stiffness", "torque")
OF_LOOPS = ("p_a", "p_b", "length")
OF_EFFORTS = ("stiffness", "damping", "rest", "slack", "force")
INERTIAS = ("xx", "xy", "xz", "yy", "yz", "zz")
PLACES = ("com", "origin", "a", "b")
NUDGE = 0.02
"""Of places, in lengths of the mechanism: extrapolated to order 6, errors are 1e-12 of a derivative
over places as large as the mechanism."""
Numbers = tuple[np.ndarray, ...]


def inertial_parameters(mechanism: Mechanism) -> dict[str, float]:
    """Centres of mass and inertias of the rigid bodies by name, with their present values.

    ``LINK.com.x``, ``.y``, ``.z`` [m] is the centre of mass of the body that the link is part of,
    ``LINK.inertia.xx`` to ``.zz`` [kg m²] its inertia about that centre; along the link's axes.
    """
    found: dict[str, float] = {}
    for name, link in mechanism.links.items():
        body = mechanism.bodies[link.body]
        if body["axis"] >= 0 and is_rigid(mechanism, link.body):
            com = link.R.T @ (body["com"] - link.p)
            J = link.R.T @ body["J"] @ link.R
            found |= {f"{name}.com.{x}": float(com[k]) for k, x in enumerate(XYZ)}
            for pair in INERTIAS:
                i, j = (XYZ.index(x) for x in pair)
                found[f"{name}.inertia.{pair}"] = float(J[i, j])
    return found


class ParameterDifferentiator:
    """Derivatives of a solver's equations by parameters, in a solver of its own.

    Args:
        solver: Whose; it is read alone.
        constraints: What it was encoded of.
    """

    def __init__(self, solver: Solver, constraints: Sequence[Constraint]) -> None:
        e = solver.encoded
        own = replace(
            e, loops=e.loops.copy(), couplings=e.couplings.copy(), elements=e.elements.copy()
        )
        self._solver, self._constraints = solver, tuple(constraints)
        self._other = Solver(solver.mechanism, own, solver.tolerances)
        self._other.take_script(solver.script)

    def columns(self, names: Sequence[str], found: DerivativeArrays) -> tuple[Array, Array]:
        """Derivatives (nv, n) of M v̇ + h - τ - Jᵀ λ and (nc, n) of J v̇ + γ.

        Args:
            names: Of the parameters.
            found: Where v̇ and λ are.

        Raises:
            ModelError: There is no such parameter.
            UnsupportedError: It does nothing in these equations.
        """
        mechanism = self._solver.mechanism
        present = parameters_of(mechanism, self._constraints) | inertial_parameters(mechanism)
        F = np.zeros((len(found.vdot), len(names)))
        sides = np.zeros((len(found.lam), len(names)))
        for k, name in enumerate(names):
            require_known("parameter", name, present)
            F[:, k], sides[:, k] = self._column(name, present[name], found)
        return F, sides

    def _column(self, name: str, value: float, found: DerivativeArrays) -> tuple[Array, Array]:
        owner, _, field = name.rpartition(".")
        if field == "friction":
            raise UnsupportedError(
                f"'{name}' acts by an inequality, of which no derivatives are known; use central"
                " differences of step()"
            )
        way = self._way(name, owner, field, value)
        of_place = owner.rpartition(".")[2] in PLACES and field in XYZ
        step = NUDGE * self._solver.encoded.length if of_place else max(abs(value), 1.0)
        nv = len(found.vdot)

        def equations(s: float) -> Array:
            self._put(way, s)
            other = self._other
            terms = other.terms(self._solver.q, self._solver.v, self._solver.t)
            F = terms.M @ found.vdot + terms.h - terms.forces - terms.J.T @ found.lam
            return np.concatenate([F, terms.J @ found.vdot + terms.gamma])

        whole = extrapolated(equations, step) if of_place else rate(equations, step)
        return whole[:nv], whole[nv:]

    def _way(self, name: str, owner: str, field: str, value: float) -> Numbers:
        """What all numbers change by per unit of the parameter."""
        solver, constraints = self._solver, self._constraints
        here = numbers_of(solver.mechanism, solver)
        link, _, what = owner.rpartition(".")
        if what in ("com", "inertia") and link in solver.mechanism.links:
            return inertial_way(solver.mechanism, here, link, what, field)
        there = {name: value + 1.0}
        mechanism = changed_mechanism(solver.mechanism, constraints, there)
        changed = changed_constraints(constraints, there)
        moved = [new.name for new, old in zip(changed, constraints, strict=True) if new is not old]
        other = self._other
        self._reset()
        if moved:
            other.encoded.revise(encode_closed(mechanism, changed), moved)
            other.efforts[len(mechanism.efforts) :] = other.encoded.elements
        return tuple(b - a for a, b in zip(here, numbers_of(mechanism, other), strict=True))

    def _reset(self) -> None:
        """Have the own solver be as the other."""
        mine, other = self._other, self._solver
        mine.bodies[:], mine.axes[:], mine.efforts[:] = other.bodies, other.axes, other.efforts
        for part in ("loops", "couplings", "elements"):
            getattr(mine.encoded, part)[:] = getattr(other.encoded, part)
        mine.control[0]["gravity"] = other.control[0]["gravity"]

    def _put(self, way: Numbers, s: float) -> None:
        """Go s along a way from the present numbers."""
        self._reset()
        solver, part = self._other, iter(way)
        for records, fields in (
            (solver.bodies, OF_BODIES),
            (solver.axes, OF_AXES),
            (solver.encoded.loops, OF_LOOPS),
            (solver.efforts, OF_EFFORTS),
        ):
            for field in fields:
                records[field] += s * next(part)
        solver.control[0]["gravity"] += s * next(part)


def numbers_of(mechanism: Mechanism, solver: Solver) -> Numbers:
    """All numbers that parameters change: those of a tree, and of what a solver has encoded."""
    return (
        *(mechanism.bodies[field].copy() for field in OF_BODIES),
        *(mechanism.axes[field].copy() for field in OF_AXES),
        *(solver.encoded.loops[field].copy() for field in OF_LOOPS),
        *(solver.efforts[field].copy() for field in OF_EFFORTS),
        np.array(mechanism.gravity, np.float64),
    )


def inertial_way(mechanism: Mechanism, here: Numbers, link: str, what: str, field: str) -> Numbers:
    """What the numbers change by per unit of a centre of mass or of an inertia."""
    way = tuple(np.zeros_like(x) for x in here)
    frame = mechanism.links[link]
    if what == "com":
        way[OF_BODIES.index("com")][frame.body] = frame.R[:, XYZ.index(field)]
        return way
    i, j = (XYZ.index(x) for x in field)
    unit = np.zeros((3, 3))
    unit[i, j] = unit[j, i] = 1.0
    way[OF_BODIES.index("J")][frame.body] = frame.R @ unit @ frame.R.T
    return way


def rate(function: Callable[[float], Array], step: float) -> Array:
    """Central difference: exact for polynomials of degree 2."""
    return (function(step) - function(-step)) / (2.0 * step)


def extrapolated(function: Callable[[float], Array], step: float) -> Array:
    """Central differences of three steps, extrapolated: exact for polynomials of degree 6."""
    a, b, c = (rate(function, step / n) for n in (1.0, 2.0, 4.0))
    first, second = (4.0 * b - a) / 3.0, (4.0 * c - b) / 3.0
    return (16.0 * second - first) / 15.0
