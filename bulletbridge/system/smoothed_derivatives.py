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

import numpy as np

from bulletbridge.compilation.announce import announce_compilation
from bulletbridge.engine.step_differentiator import StepDerivatives
from bulletbridge.engine.stepper import Solver
from bulletbridge.errors import UnsupportedError
from bulletbridge.inequalities.contact_variations import ContactVariations, Finding
from bulletbridge.mechanism.kinematics import displace
from bulletbridge.numerics.complementarity_rows import ROW_BOUNDS
from bulletbridge.numerics.records import Array, Ints
from bulletbridge.numerics.smooth_contacts import LINES, solve_smooth_contacts
from bulletbridge.system.derivatives import contact_rows_of, step_differentiator_of
from bulletbridge.system.options import Fork


class SmoothProblem:
    """Smooth contacts of one step.

    Args:
        C: (n, 6, nv) rows of the contacts where they were found.
        points: (n,) these.
        ahead: (2 nv, 3 nv) changes of where the rates ``moving`` lead, and of these.
        moving: (nv,) rates that lead there.
        step: Its length dt [s], and s/dt [W].

    Attributes:
        push: (nv,) forces on the rates.

    Raises:
        UnsupportedError: They are not found.
    """

    def __init__(
        self, C: Array, points: np.ndarray, ahead: Array, moving: Array, step: tuple[float, float]
    ) -> None:
        self._dt, power = step
        self._moving, self._ahead, nv = moving, ahead, len(moving)
        self._rows = rows_of(points)
        which, row, bounds = self._rows
        self._normals = np.flatnonzero(row == 0)
        W, m = C[which, row], len(row)
        rates = W @ moving
        rates[self._normals] += (points["gap"] - self._dt * (C[:, 0] @ moving)) / self._dt
        S = np.ascontiguousarray(W @ ahead[nv:, 2 * nv :] @ W.T)
        self._W, self._S, self._f = W, S, np.zeros(m)
        self._K, self._L, room = np.zeros((m, m)), np.zeros((m, m)), np.zeros((LINES + m, m))
        known = S, rates, bounds, power, self._f, self._K, self._L, room
        with announce_compilation(solve_smooth_contacts):
            if not solve_smooth_contacts(*known):
                raise UnsupportedError(
                    "smoothed contacts are not solved for at this state; give more smoothing"
                )
        self.push = np.asarray(self._f @ W, np.float64)

    def changes(self, varied: ContactVariations, led: tuple[Array, Array]) -> Array:
        """What the forces on the rates change by (nv, 3 nv).

        Args:
            varied: The contacts where they were found, and what they change by.
            led: Rates (nv,) that they lead to, and changes (2 nv, 3 nv).
        """
        (which, row, _), nv, n, dt = self._rows, len(self._moving), self._normals, self._dt
        W, K, L, S, f = self._W, self._K, self._L, self._S, self._f
        place, rates = self._ahead[:nv], self._ahead[nv:]
        W_by_q, by_force, (v, changed) = varied.C_by_q[:, which, row], rates[:, 2 * nv :], led
        turned = np.einsum("kmj,m->jk", W_by_q, f) @ place
        by_all = W @ (changed[nv:] + by_force @ turned)
        by_all += np.einsum("kmj,j->mk", W_by_q, v) @ place
        drawn = np.einsum("kmj,j->mk", W_by_q[:, n], self._moving)
        by_all[n] += (varied.gap_by_q.T / dt - drawn) @ place - W[n] @ rates
        lines = 1.0 / (np.abs(np.diag(K)) + np.abs(np.diag(L) * np.diag(S)))
        matrix = lines[:, None] * (K + L @ S)
        right: Array = -lines[:, None] * (L @ by_all)
        return turned + W.T @ np.asarray(np.linalg.solve(matrix, right), np.float64)


def rows_of(points: np.ndarray) -> tuple[Ints, Ints, np.ndarray]:
    """Rows (m,) of contacts (n,): of which, which of its six, and their ``ROW_BOUNDS``."""
    at, cones = list[tuple[int, int]](), list[tuple[int, int, int, float]]()
    for k, point in enumerate(points):
        owner = len(at)
        at.append((k, 0))
        cones.append((-1, 0, 0, 0.0))
        friction, across = float(point["friction"]), float(point["friction_across"])
        spinning, rolling = float(point["spinning"]), float(point["rolling"])
        for first, mu in ((1, (friction, across)), (3, (spinning,)), (4, (rolling, rolling))):
            if min(mu) > 0.0:
                at += [(k, first + j) for j in range(len(mu))]
                cones += [(owner, int(j == 0), len(mu), x) for j, x in enumerate(mu)]
    bounds = np.zeros(len(at), ROW_BOUNDS)
    for name, column in zip(
        ("owner", "first", "count", "mu"), zip(*cones, strict=True), strict=True
    ):
        bounds[name] = column
    which, row = np.array(at, np.int64).T
    return which, row, bounds


class SmoothStep:
    """The step from the state of a solver with smooth contacts.

    Args:
        solver: At the start.
        fork: Finds contacts.
        smoothing: s [J].

    Raises:
        UnsupportedError: Contacts cannot be found, or their forces not be solved for.
    """

    def __init__(self, solver: Solver, fork: Fork, smoothing: float) -> None:
        self._differentiator, self._nv = step_differentiator_of(solver), len(solver.v)
        self._solver, self._dt = solver, float(solver.control[0]["dt"])
        moving, ahead = self._differentiator.prediction(np.zeros(self._nv))
        self._moving, self._place = moving, np.zeros(len(solver.q))
        displace(solver.bodies, solver.q, moving, self._dt, self._place)
        fork.contact_points(self._place, moving, self._dt)  # which finds out what collides
        self._far = fork.reaching(float(solver.encoded.length))
        points, self._rows = self._find(self._place), contact_rows_of(solver)
        C = self._rows(self._place, points, np.array(points["direction"]))
        meet = np.any(C[:, 0], axis=1)
        self._points = points[meet]
        self._problem, self._push = None, np.zeros(self._nv)
        if len(self._points):
            step = self._dt, smoothing / self._dt
            self._problem = SmoothProblem(C[meet], self._points, ahead, moving, step)
            self._push = self._problem.push

    def _find(self, q: Array) -> np.ndarray:
        contacts, complete = self._far.find(q, self._moving, self._dt)
        if not (complete or self._far.knows_shapes):
            raise UnsupportedError(
                "shapes near each other are not known, or another body's that moves"
            )
        return contacts.copy()

    def end(self) -> tuple[Array, Array]:
        """Where the step leads: q (nq,) and v (nv,).

        Raises:
            UnsupportedError: Loops cannot be closed so.
        """
        found = self._differentiator.step(self._push)
        return found.q, found.v

    def derivatives(self) -> StepDerivatives:
        """The step as a linear map, and where it leads.

        Raises:
            UnsupportedError: Loops cannot be closed so, or contacts are others beside the state.
        """
        nv, changes = self._nv, np.zeros((self._nv, 3 * self._nv))
        if self._problem is not None:
            led = self._differentiator.prediction(self._push)
            rigid = np.zeros(len(self._points), bool)
            finding = Finding(self._find, self._far, self._moving, self._dt)
            varied = ContactVariations(self._rows, finding, self._place, self._points, rigid)
            changes = self._problem.changes(varied, led)
        found = self._differentiator.step(self._push)
        by_all = np.hstack([found.A, found.B])
        by_all += found.B @ changes
        return found._replace(A=by_all[:, : 2 * nv], B=by_all[:, 2 * nv :])
