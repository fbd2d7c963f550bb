"""Linearisations of flexible links, as expansions of the exact equations.

Closed-form models of flexible arms keep what is linear in deflections and their rates. Which terms
count as linear decides whether they stay stable. They are here to be compared with: the exact
equations cost less. Source: Bonaventura 2002, ch. 7; Damaren and Sharf 1995 for the names.

The expansion is in coordinates in which a joint on a beam's tip measures its angle from where the
tip would be without slope. There the mass matrix of a planar chain is a polynomial of degree four
in the deflections, and the stencil that differentiates it exact.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import numpy as np

from bulletbridge.errors import ModelError, UnsupportedError
from bulletbridge.formulations.equations import Dynamics, Solution
from bulletbridge.mechanism.dynamics import bias, mass_matrix
from bulletbridge.mechanism.kinematics import kinematics
from bulletbridge.mechanism.layout import BEAM, REVOLUTE
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.numerics.records import Array, Mask
from bulletbridge.simulation.solver import Solver
from bulletbridge.simulation.tree import Tree

Order = Literal["first_order", "consistent", "inconsistent", "ruthless"]
ORDERS: tuple[Order, ...] = ("first_order", "consistent", "inconsistent", "ruthless")
"""Kept of the mass matrix M(θ, f) and the bias forces h, f the amplitudes of the modes:

``first_order``: both to first order in f. ``consistent``: products of f with f̈ count as second
order, so M_θf and M_ff are those at f = 0, and M is not symmetric. ``inconsistent``: the same
without shortening, which loses the stiffening by rotation. ``ruthless``: both at f = 0.
"""

STEP = 0.1
"""Of the stencil, as part of the state's deflection: small for what slopes make of loads."""
STENCIL = ((-2, 1.0 / 12.0), (-1, -8.0 / 12.0), (1, 8.0 / 12.0), (2, -1.0 / 12.0))


def linearised(order: Order) -> Callable[[Dynamics], "Linearised"]:
    """A formulation for ``System(..., formulation=linearised("consistent"))``.

    Raises:
        ModelError: There is no such order.
    """
    if order not in ORDERS:
        raise ModelError(f"unknown linearisation '{order}'; there are {', '.join(ORDERS)}")

    def make(dynamics: Dynamics) -> Linearised:
        if not isinstance(dynamics, Tree):
            raise UnsupportedError("only a mechanism can be linearised in its beams")
        return Linearised(dynamics.solver, order)

    return make


class Linearised:
    """Accelerations by linearised equations; constraints and elastic forces stay exact.

    Args:
        solver: The exact equations.
        order: What is kept of them.
    """

    def __init__(self, solver: Solver, order: Order) -> None:
        self.solver, self.order = solver, order
        self._slopes = tip_slopes(solver.mechanism)
        self._flexible = flexible_rates(solver.mechanism)
        mechanism = solver.mechanism
        if order == "inconsistent":
            stations = mechanism.stations.copy()
            stations["S"] = 0.0
            mechanism = replace(mechanism, stations=stations)
        self._mechanism = mechanism
        self._poses = solver.poses.copy()
        self._records = (mechanism.beams.copy(), mechanism.stations.copy(), mechanism.axes.copy())

    def __call__(self, q: Array, v: Array, t: float) -> Solution:
        """Accelerations and multipliers at a state.

        Raises:
            UnsupportedError: Rows depend on each other there.
        """
        exact = self.solver.terms(q, v, t)
        M, h = self.terms(q, v)
        nv, nc = len(h), len(exact.g)
        A = np.block([[M, -exact.J.T], [exact.J, np.zeros((nc, nc))]])
        right = np.concatenate([exact.forces + self.solver.tau[0] - h, -exact.gamma])
        try:
            x = np.asarray(np.linalg.solve(A, right), np.float64)
        except np.linalg.LinAlgError:
            raise UnsupportedError(
                "linearised equations need rows that do not depend on each other"
            ) from None
        return Solution(x[:nv], x[nv:])

    def terms(self, q: Array, v: Array) -> tuple[Array, Array]:
        """M (nv, nv), symmetric only for ``first_order`` and ``ruthless``, and h (nv,)."""
        flexible, slopes = self._flexible, self._slopes
        change = np.eye(len(v)) - slopes  # rates from those without slopes
        M_0, h_0 = self._at(0.0, q, v, change)
        if self.order == "ruthless":
            M, h = M_0, h_0
        else:
            parts = [(w / STEP, self._at(n * STEP, q, v, change)) for n, w in STENCIL]
            M_1 = sum(w * part[0] for w, part in parts)
            if self.order != "first_order":
                M_1 = M_1 * ~flexible  # columns that multiply the accelerations of modes
            M, h = M_0 + M_1, h_0 + sum(w * part[1] for w, part in parts)
        back = np.eye(len(v)) + slopes
        return back.T @ M @ back, back.T @ h

    def _at(self, size: float, q: Array, v: Array, change: Array) -> tuple[Array, Array]:
        """M and h with deflections and their rates of another size, in rates without slopes."""
        flexible, slopes = self._flexible, self._slopes
        position, amplitudes = self._mechanism.axes["q"], np.zeros(len(v))
        amplitudes[flexible] = q[position[flexible]]
        less = (size - 1.0) * (amplitudes - slopes @ amplitudes)
        moved, single = q.copy(), position >= 0
        moved[position[single]] += less[single]
        rates = v + (size - 1.0) * (v * flexible - slopes @ (v * flexible))
        M, h = self._mass_and_bias(moved, rates)
        return change.T @ M @ change, change.T @ h

    def _mass_and_bias(self, q: Array, v: Array) -> tuple[Array, Array]:
        """Exact M and h, of the beams that are expanded."""
        bodies, poses, (beams, stations, axes) = self.solver.bodies, self._poses, self._records
        M, h = np.zeros((len(v), len(v))), np.zeros(len(v))
        gravity = self.solver.control[0]["gravity"]
        kinematics(bodies, beams, stations, q, poses, axes)
        mass_matrix(bodies, beams, stations, poses, axes, M)
        bias(bodies, beams, stations, self.solver.lumps, poses, axes, gravity, v, h)
        return np.tril(M) + np.tril(M, -1).T, h


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
