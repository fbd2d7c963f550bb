"""Derivatives of a step whose contacts are smooth: they push at a distance, and give way at once.

A contact's force f and the rate u at which bodies would open it come to f u = s/dt, where an ideal
one has f u = 0: it pushes by s/gap at rest, the force of the potential -s log(gap). Friction is
less than Coulomb's where little slides. With f the radius r of a cone, z = f_t/mu, v = mu w,

    r g + z·v = s/dt      r v + g z = 0

which is the path that the interior-point method of steps takes to Coulomb's law, s = 0, ended at
some s > 0 (``numerics/interior_path``). All contacts act, so that no active set changes, and what
overlaps is parted within the step: it is differentiable everywhere.

Sources: Pang, Suh, Yang and Tedrake 2023, who plan by contacts smoothed so; Acary, Armand, Nguyen
and Shpakovych 2023, of the path with friction.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bulletbridge.engine.step_derivatives import StepDerivatives
from bulletbridge.engine.stepper import Solver
from bulletbridge.errors import UnsupportedError
from bulletbridge.inequalities.contact_variations import ContactVariations, RowsAt
from bulletbridge.mechanism.kinematics import displace
from bulletbridge.numerics.records import Array
from bulletbridge.system.derivatives import step_differentiator_of
from bulletbridge.system.options import Fork
from bulletbridge.system.tangents import lengths_of

SHARPER = 0.1
"""What s goes down by, from where all is smooth to what it is to be."""
ENOUGH = 1e-11
"""Residual, as a share of forces, at which Newton's method ends."""
MOST_STEPS = 60
"""Of Newton's method for each s."""


class Cone(NamedTuple):
    """Rows of friction of a contact: which, whose load is its radius, and its semi-axes."""

    rows: list[int]
    owner: int
    mu: Array


class Smooth:
    """What smooth contacts ask of forces f and rates u of their rows: R(f, u) = 0.

    Args:
        normals: Rows of normals.
        cones: Of friction.
        answers: (m,) what each row answers to its own force.
    """

    def __init__(self, normals: list[int], cones: list[Cone], answers: Array) -> None:
        self._normals, self._cones = np.array(normals), cones
        self._ease = 1.0 / answers[normals]

    def residual(self, f: Array, u: Array, s: float) -> tuple[Array, Array, Array]:
        """R (m,) and its derivatives by f and by u (m, m); s is a power."""
        m, n, ease = len(f), self._normals, self._ease
        R, K, L = f.copy(), np.eye(m), np.zeros((m, m))
        # a positive load, whatever f and u are, and f itself where f u = s
        y = f[n] - ease * u[n]
        root = np.sqrt(y * y + 4.0 * ease * s)
        load, slope = 0.5 * (y + root), 0.5 * (1.0 + y / root)
        load = np.where(y < 0.0, 2.0 * ease * s / (root - y), load)
        R[n] -= load
        K[n, n] -= slope
        L[n, n] += slope * ease
        by_f, by_u = (
            dict(zip(n.tolist(), slope, strict=True)),
            dict(zip(n.tolist(), -slope * ease, strict=True)),
        )
        loads = dict(zip(n.tolist(), load, strict=True))
        for rows, owner, mu in self._cones:
            r, v = float(loads[owner]), mu * u[rows]
            a = s / (2.0 * r)
            size = math.hypot(a, float(np.linalg.norm(v)))
            g = a + size
            R[rows] += mu * r * v / g
            by_r = mu * v / g * (1.0 + a / size)
            K[rows, owner] += by_r * by_f[owner]
            L[rows, owner] += by_r * by_u[owner]
            L[np.ix_(rows, rows)] += (
                r / g * np.outer(mu, mu) * (np.eye(len(mu)) - np.outer(v, v) / (g * size))
            )
        return R, K, L

    def solve(self, S: Array, free: Array, s: float) -> Array:
        """Forces f (m,) with R(f, S f + free) = 0.

        Raises:
            UnsupportedError: None are found.
        """
        n, f = self._normals, np.zeros(len(free))
        now = max(s, float(np.max(self._ease * free[n] ** 2)))
        while True:
            f = self._newton(S, free, f, now)
            if now == s:
                return f
            now = max(s, SHARPER * now)

    def _newton(self, S: Array, free: Array, f: Array, s: float) -> Array:
        R, K, L = self.residual(f, S @ f + free, s)
        for _ in range(MOST_STEPS):
            off = float(np.linalg.norm(R))
            if off <= ENOUGH * float(np.linalg.norm(f)):
                return f
            step, share = np.linalg.solve(K + L @ S, -R), 1.0
            while True:
                there = f + share * step
                R, K, L = self.residual(there, S @ there + free, s)
                if float(np.linalg.norm(R)) <= (1.0 - 1e-4 * share) * off or share < 1e-6:
                    break
                share *= 0.5
            f = there
        raise UnsupportedError(
            "smoothed contacts are not solved for at this state; give more smoothing"
        )


class SmoothProblem:
    """Smooth contacts of one step.

    Args:
        varied: Contacts where they were found, and what they change by.
        points: (n,) these.
        moving: (nv,) rates that lead there.
        dt: Length of the step [s].
    """

    def __init__(
        self, varied: ContactVariations, points: np.ndarray, moving: Array, dt: float
    ) -> None:
        self._varied, self._moving, self._dt = varied, moving, dt
        self._at, self._normals, self._cones = list[tuple[int, int]](), list[int](), list[Cone]()
        for k, point in enumerate(points):
            self._normals.append(len(self._at))
            self._at.append((k, 0))
            friction, across = float(point["friction"]), float(point["friction_across"])
            spinning, rolling = float(point["spinning"]), float(point["rolling"])
            for rows, mu in (
                ((1, 2), (friction, across)),
                ((3,), (spinning,)),
                ((4, 5), (rolling, rolling)),
            ):
                if min(mu) > 0.0:
                    first = len(self._at)
                    self._at += [(k, row) for row in rows]
                    numbers = list(range(first, first + len(rows)))
                    self._cones.append(Cone(numbers, self._normals[-1], np.array(mu)))
        which, row = np.array(self._at).T
        self._W, self._W_by_q = varied.C[which, row], varied.C_by_q[:, which, row]
        self._gaps = points["gap"] - dt * (varied.C[:, 0] @ moving)  # where the step begins

    def solve(
        self, predict: Callable[[Array], tuple[Array, Array]], ahead: Array, power: float
    ) -> tuple[Array, Array]:
        """Forces (nv,) on the rates, and what they change by (nv, 3 nv).

        Args:
            predict: Rates that forces lead to, and changes.
            ahead: (2 nv, 3 nv) changes of where the rates ``moving`` lead, and of these.
            power: s/dt [W].

        Raises:
            UnsupportedError: They are not found.
        """
        nv, n, dt = len(self._moving), self._normals, self._dt
        W, place, rates = self._W, ahead[:nv], ahead[nv:]
        by_force = rates[:, 2 * nv :]
        S, free = W @ by_force @ W.T, W @ self._moving
        free[n] += self._gaps / dt
        smooth = Smooth(n, self._cones, np.diag(S))
        f = smooth.solve(S, free, power)
        push = f @ W
        v, led = predict(push)
        _, K, L = smooth.residual(f, S @ f + free, power)
        turned = np.einsum("kmj,m->jk", self._W_by_q, f) @ place
        by_all = W @ (led[nv:] + by_force @ turned)
        by_all += np.einsum("kmj,j->mk", self._W_by_q, v) @ place
        drawn = np.einsum("kmj,j->mk", self._W_by_q[:, n], self._moving)
        by_all[n] += (self._varied.gap_by_q.T / dt - drawn) @ place - W[n] @ rates
        lines = 1.0 / (np.abs(np.diag(K)) + np.abs(np.diag(L) * np.diag(S)))
        matrix = lines[:, None] * (K + L @ S)
        right: Array = -lines[:, None] * (L @ by_all)
        return push, turned + W.T @ np.asarray(np.linalg.solve(matrix, right), np.float64)


def smoothed_step_derivatives(solver: Solver, fork: Fork, smoothing: float) -> StepDerivatives:
    """Derivatives of the step from the state of a solver with smooth contacts, and where it leads.

    Args:
        solver: At the start.
        fork: Finds contacts.
        smoothing: s [J].

    Raises:
        UnsupportedError: Contacts cannot be found, or loops not be closed so.
    """
    differentiator, nv = step_differentiator_of(solver), len(solver.v)
    dt = float(solver.control[0]["dt"])
    moving, ahead = differentiator.prediction(np.zeros(nv))
    place = np.zeros(len(solver.q))
    displace(solver.bodies, solver.q, moving, dt, place)
    fork.contact_points(place, moving, dt)  # which finds out what collides
    far = fork.reaching(float(solver.encoded.length))

    def find(q: Array) -> np.ndarray:
        contacts, complete = far.find(q, moving, dt)
        if not (complete or far.knows_shapes):
            raise UnsupportedError(
                "shapes near each other are not known, or another body's that moves"
            )
        return contacts.copy()

    points, rows = find(place), RowsAt(solver, lengths_of(solver))
    points = points[np.any(rows(place, points, np.array(points["direction"]))[:, 0], axis=1)]
    push, changes = np.zeros(nv), np.zeros((nv, 3 * nv))
    if len(points):
        problem = SmoothProblem(ContactVariations(rows, find, place, points), points, moving, dt)
        push, changes = problem.solve(differentiator.prediction, ahead, smoothing / dt)
    found = differentiator.step(push)
    by_all = np.hstack([found.A, found.B])
    by_all += found.B @ changes
    return found._replace(A=by_all[:, : 2 * nv], B=by_all[:, 2 * nv :])
