"""Linearisations of flexible links, as expansions of the exact equations.

Closed-form models of flexible arms keep what is linear in deflections and their rates. Which terms
count as linear decides whether they stay stable. They are here to be compared with: the exact
equations cost less. Source: Bonaventura 2002, ch. 7; Damaren and Sharf 1995 for the names.

The expansion is in coordinates in which a joint on a beam's tip measures its angle from where the
tip would be without slope. There the mass matrix of a planar chain is a polynomial of degree four
in the deflections, and the stencil that differentiates it exact. Modules on bases of their own are
blocks of that matrix, and so are linearised one by one.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np

from bulletbridge.engine.stepper import Solver
from bulletbridge.engine.workspace import Terms
from bulletbridge.errors import ModelError, UnsupportedError
from bulletbridge.formulations.equations import Dynamics, Solution
from bulletbridge.formulations.system_dynamics import SystemDynamics
from bulletbridge.mechanism.dynamics import joint_forces
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.mechanism.records import BEAM, REVOLUTE
from bulletbridge.models.flexible.expansion import (
    SIZES,
    WEIGHTS,
    Growth,
    Stencil,
    Sums,
    TreeRecords,
    expand,
)
from bulletbridge.numerics.records import Array, Mask

Order = Literal["first_order", "consistent", "symmetrised", "inconsistent", "ruthless"]
ORDERS: tuple[Order, ...] = ("first_order", "consistent", "symmetrised", "inconsistent", "ruthless")
"""Kept of the mass matrix M(θ, f) and the bias forces h, f the amplitudes of the modes:

``first_order``: both to first order in f. ``consistent``: products of f with f̈ count as second
order, so M_θf and M_ff are those at f = 0, and M is not symmetric. ``symmetrised``: the same with
M_θf the transpose of M_fθ. ``inconsistent``: as consistent, but without shortening, which loses the
stiffening by rotation. ``ruthless``: both at f = 0.
"""

Level = Literal[1, 2, 3]
LEVELS: tuple[Level, ...] = (1, 2, 3)
"""Kept where points of beams are held: 1: positions to first order in f, and their derivatives;
2: what shortening adds to the Jacobian of f to first order besides, which makes it the derivative
of no position; 3: everything.
"""


def linearised(order: Order, contacts: Level = 3) -> Callable[[Dynamics], "Linearised"]:
    """A formulation for ``System(..., formulation=linearised("consistent"))``.

    Args:
        order: What is kept of M and h.
        contacts: What is kept of the rows of loops. Below 3 they are not those that a ``System``
            closes: integrate accelerations alone, without its correction and filter.

    Raises:
        ModelError: There is no such order or level.
    """
    if order not in ORDERS:
        raise ModelError(f"unknown linearisation '{order}'; there are {', '.join(ORDERS)}")
    if contacts not in LEVELS:
        raise ModelError(f"contacts is {contacts}; give 1, 2 or 3")

    def make(dynamics: Dynamics) -> Linearised:
        if not isinstance(dynamics, SystemDynamics):
            raise UnsupportedError("only a mechanism can be linearised in its beams")
        return Linearised(dynamics.solver, order, contacts)

    return make


class Expansion(NamedTuple):
    """Orders 0, 1, 2 in the deflections; rates are those without slopes for M, h, and J."""

    M: Array  # (3, nv, nv)
    h: Array  # (3, nv)
    J: Array  # (3, 3 * loops, nv) rates of b's origin less a's, world axes
    gap: Array  # (3, 3 * loops) the same of positions [m]
    drift: Array  # (3, 3 * loops) the same of accelerations at zero v̇ [m/s²]


class Linearised:
    """Accelerations by linearised equations; elastic forces stay exact.

    Args:
        solver: The exact equations.
        order: What is kept of them.
        contacts: What is kept of the rows of loops.

    Raises:
        UnsupportedError: Loops other than of points, or with motions, at a level below 3.
    """

    def __init__(self, solver: Solver, order: Order, contacts: Level = 3) -> None:
        if len(solver.encoded.elements):
            raise UnsupportedError(
                "force elements between frames stay exact: they have no expansion"
            )
        self.solver, self.order, self.contacts = solver, order, contacts
        self._slopes = tip_slopes(solver.mechanism)
        self._flexible = flexible_rates(solver.mechanism)
        mechanism, loops = solver.mechanism, solver.encoded.loops
        if order == "inconsistent":
            stations = mechanism.stations.copy()
            stations["S"] = 0.0
            mechanism = replace(mechanism, stations=stations)
        if contacts < 3:
            turning = np.abs(loops["moment"]).max(initial=0.0) > 1e-9
            if turning or np.any(loops["variable"] > 0) or np.any(loops["target"] >= 0):
                raise UnsupportedError(
                    "contacts below 3 are for points that coincide, or stay on lines or planes"
                )
        self._position = mechanism.axes["q"]
        self._tree = TreeRecords(
            solver.bodies.copy(),
            mechanism.beams.copy(),
            mechanism.stations.copy(),
            solver.efforts.copy(),
            solver.poses.copy(),
            mechanism.axes.copy(),
            loops.copy(),
        )
        nv = mechanism.nv
        self._work = np.zeros((3, max(nv, mechanism.nq))), np.zeros((nv, nv))

    def __call__(self, q: Array, v: Array, t: float) -> Solution:
        """Accelerations and multipliers at a state.

        Raises:
            UnsupportedError: Rows depend on each other there.
        """
        found = self._expansion_of_level(q, v)
        M, h = self._kept(found)
        nv, nc = len(h), self.solver.encoded.nc
        if nc == 0:
            forces = self._forces(q, v, t)
            return Solution(_solved(M, forces - h), np.zeros(0))
        exact = self.solver.terms(q, v, t)
        J, gamma = self._rows(q, v, exact, found)
        A = np.zeros((nv + nc, nv + nc))
        A[:nv, :nv], A[:nv, nv:], A[nv:, :nv] = M, -J.T, J
        right = np.concatenate([exact.forces + self.solver.tau[0] - h, -gamma])
        x = _solved(A, right)
        return Solution(x[:nv], x[nv:])

    def terms(self, q: Array, v: Array) -> tuple[Array, Array]:
        """M (nv, nv) and h (nv,); M is symmetric but for ``consistent`` and ``inconsistent``."""
        return self._kept(self._expansion_of_level(q, v))

    def _expansion_of_level(self, q: Array, v: Array) -> Expansion:
        """As many orders as are needed."""
        first = 1 if self.order == "ruthless" and self.contacts == 3 else 2
        return self.expansion(q, v, 3 if self.contacts == 2 else first)

    def _kept(self, found: Expansion) -> tuple[Array, Array]:
        """M and h of the chosen order."""
        first = 1 if self.order == "ruthless" else 2
        M, h = found.M[:first].sum(axis=0), found.h[:first].sum(axis=0)
        if self.order not in ("ruthless", "first_order"):
            f = self._flexible
            M[:, f] = found.M[0][:, f]  # what multiplies the accelerations of modes
            if self.order == "symmetrised":
                M[np.ix_(~f, f)] = M[np.ix_(f, ~f)].T
        back = np.eye(len(h)) + self._slopes
        return back.T @ M @ back, back.T @ h

    def rows(self, q: Array, v: Array, exact: Terms) -> tuple[Array, Array]:
        """Jacobian (nc, nv) and drift (nc,) of the constraints at the chosen level."""
        return self._rows(q, v, exact, self._expansion_of_level(q, v))

    def _rows(self, q: Array, v: Array, exact: Terms, found: Expansion) -> tuple[Array, Array]:
        if self.contacts == 3:
            return exact.J, exact.gamma
        f, back = self._flexible, np.eye(len(v)) + self._slopes
        whole, drift = found.J[0] + found.J[1], found.drift[0] + found.drift[1]
        if self.contacts == 1:
            whole[:, f] = found.J[0][:, f]
        else:
            drift = drift + self._drift_of_shortening(q, v, found.drift[2])
        J, gamma = exact.J.copy(), exact.gamma.copy()
        for row, along in self._directions(exact):
            J[row], gamma[row] = along @ (whole @ back), along @ drift
        return J, gamma

    def gap(self, q: Array, v: Array, t: float) -> Array:
        """Violations (nc,) that stay at zero as far as the rows allow; at level 2 as at level 1."""
        exact = self.solver.terms(q, v, t)
        gap = exact.g.copy()
        if self.contacts < 3:
            found = self.expansion(q, v, 2).gap.sum(axis=0)
            for row, along in self._directions(exact):
                gap[row] = along @ found
        return gap

    def expansion(self, q: Array, v: Array, orders: int) -> Expansion:
        """The exact terms, expanded in the deflections together with their rates."""
        flexible, slopes, position = self._flexible, self._slopes, self._position
        amplitudes, dq, nv = np.zeros(len(v)), np.zeros(len(q)), len(v)
        amplitudes[flexible] = q[position[flexible]]
        single = position >= 0
        dq[position[single]] = (amplitudes - slopes @ amplitudes)[single]
        dv = v * flexible - slopes @ (v * flexible)
        used = np.any(WEIGHTS[:orders] != 0.0, axis=0)
        n = 3 * len(self._tree.loops)
        M, h, J = np.empty((orders, nv, nv)), np.empty((orders, nv)), np.empty((orders, n, nv))
        points, gravity = np.empty((orders, 2, n)), self.solver.control[0]["gravity"]
        stencil = Stencil(SIZES[used], np.ascontiguousarray(WEIGHTS[:orders, used]))
        state, sums = Growth(q, v, dq, dv), Sums(M, h, J, points)
        expand(self._tree, stencil, gravity, state, *self._work, sums)
        lower = np.tril(M)
        M = lower + np.tril(M, -1).transpose(0, 2, 1)
        change = np.eye(nv) - slopes  # rates from those without slopes
        return Expansion(change.T @ M @ change, h @ change, J @ change, points[:, 0], points[:, 1])

    def _drift_of_shortening(self, q: Array, v: Array, second: Array) -> Array:
        """Part of the drift of second order that comes from the Jacobian's columns of the modes.

        It is quadratic in the rates. Half of what mixes those of directions and modes is theirs,
        and what has rates of modes alone.
        """
        flexible, slopes = self._flexible, self._slopes
        bending = v * flexible - slopes @ (v * flexible)
        modes = self.expansion(q, bending, 3).drift[2]
        directions = self.expansion(q, v - bending, 3).drift[2]
        return 0.5 * (second + modes - directions)

    def _directions(self, exact: Terms) -> list[tuple[int, Array]]:
        """Numbers of loops' rows, and their directions (3 * loops,) in the world."""
        loops = self.solver.encoded.loops
        found: list[tuple[int, Array]] = []
        for i, loop in enumerate(loops):
            R = exact.poses[loop["body_a"]]["R"] @ loop["R_a"]
            for k in range(int(loop["rows"])):
                along = np.zeros(3 * len(loops))
                along[3 * i : 3 * i + 3] = R @ loop["force"][k]
                found.append((int(loop["row"]) + k, along))
        return found

    def _forces(self, q: Array, v: Array, t: float) -> Array:
        """Forces (nv,) on the rates: motors, springs, dampers."""
        forces, solver, axes = np.empty(len(v)), self.solver, self.solver.axes.copy()
        asked = solver.asked_forces
        asked.fill(asked.places(solver.efforts, axes), t, q, v)
        joint_forces(axes, q, v, solver.tau[0] + solver.scripted(t), forces)
        return forces


def _solved(A: Array, right: Array) -> Array:
    try:
        return np.asarray(np.linalg.solve(A, right), np.float64)
    except np.linalg.LinAlgError:
        raise UnsupportedError(
            "linearised equations need rows that do not depend on each other"
        ) from None


def flexible_rates(mechanism: Mechanism) -> Mask:
    """(nv,) whether a rate is that of a mode."""
    return mechanism.bodies["joint"][mechanism.axes["body"]] == BEAM


def tip_slopes(mechanism: Mechanism) -> Array:
    """(nv, nv): what each rate of a mode adds to the angle of revolute joints on its beam's tip."""
    slopes = np.zeros((mechanism.nv, mechanism.nv))
    for body in mechanism.bodies[1:]:
        root = mechanism.bodies[body["parent"]]
        if body["joint"] != REVOLUTE or root["joint"] != BEAM or body["parent"] == 0:
            continue
        along = float(body["R"][2, 2])  # of the two axes
        if abs(abs(along) - 1.0) < 1e-9:
            part = slice(int(root["v"]), int(root["axis"]) + 1)
            tip = mechanism.stations[mechanism.beams[root["beam"]]["tip"]]
            slopes[body["v"], part] = np.sign(along) * tip["slope"][: part.stop - part.start]
    return slopes
