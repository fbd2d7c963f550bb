"""Charts of the constraint manifold by its tangent space at one of its points.

    q = q0 + V v - U u,  U = A(q0)ᵀ,  A(q0) V = 0,  Vᵀ V = I

v are coordinates on the manifold near q0 and u what brings q back to it; A are independent rows of
S J, S their scale. u follows from g = 0 by a chord iteration with B ≈ (A U)⁻¹, B by that of Newton
and Schulz; both start from where the evaluation before left them, which is what makes them cheap.
With D = (I - U B A) V the motion is q̇ = D v̇ - U B g_t, q̈ = D v̈ - U B gamma, and
(Dᵀ M D) v̈ = Dᵀ (f + M U B gamma): no multipliers, and M need only be positive definite on the
tangent space. That, the Euclidean metric and tolerances to choose are what the paper's examples
take (Euler parameters, M of rank 6 of 7); mechanisms in joint coordinates have the compiled charts
of ``engine.chart``, in the metric of M, on quaternions too.

Source: Haug and Pavesic 2023, signs restored (docs/errata.md); prescribed motion (g_t) added.
"""

from typing import NamedTuple

import numpy as np

from bulletbridge.errors import ChartError, ModelError
from bulletbridge.formulations.equations import SINGULAR_RTOL, Dynamics, Equations, split_of
from bulletbridge.numerics.null_space import null_space
from bulletbridge.numerics.records import Array


class Iterations(NamedTuple):
    """When the fixed-point iterations stop.

    Attributes:
        u: Largest |S g| that is accepted [unit of the scaled rows].
        B: Largest |A U B - I| that is accepted.
        u_first: Iterate u at least once; otherwise the test comes first, and errors are of the size
            of the tolerance instead of its square.
        B_first: The same for B.
        most: Number of iterations after which the chart has failed.
    """

    u: float = 1e-12
    B: float = 1e-12
    u_first: bool = True
    B_first: bool = True
    most: int = 20


ITERATIONS = Iterations()
OPEN = 100.0
"""Gap of dependent rows, over the tolerance of u, that tells a singular origin."""


class Point(NamedTuple):
    """A point of the manifold that a chart found, its rate and the equations there.

    Attributes:
        q: (nq,).
        qdot: (nv,).
        qddot: (nv,).
        vddot: (n,) second rate of the chart's coordinates.
        A: (rank, nv) scaled independent rows.
        D: (nv, n) of q̇ = D v̇; the norm of D - V is the tangent of the tilt since q0.
        error: Largest violations of position, velocity and acceleration level, scaled rows.
    """

    q: Array
    qdot: Array
    qddot: Array
    vddot: Array
    A: Array
    D: Array
    error: tuple[float, float, float]


class Chart:
    """Tangent-space chart at a configuration; it remembers u and B between evaluations.

    Args:
        dynamics: With as many positions as velocities; rows on the position level only.
        q0: (nq,) point of the manifold.
        t0: Time [s].
        iterations: Tolerances.
        rank: Independent rows that are expected; any number if None.
        singular: Rows weaker than this, relative to the strongest, are dependent.

    Raises:
        ModelError: Rates of the positions are not the velocities, or rows are nonlinear in them.
        ChartError: The rank differs from the expected one: the manifold has no tangent space here.
    """

    def __init__(
        self,
        dynamics: Dynamics,
        q0: Array,
        t0: float,
        iterations: Iterations = ITERATIONS,
        rank: int | None = None,
        singular: float = SINGULAR_RTOL,
    ) -> None:
        if dynamics.nq != dynamics.nv:
            raise ModelError(
                f"a tangent-space chart needs q̇ = v, but there are {dynamics.nq} positions and "
                f"{dynamics.nv} velocities; use the projector"
            )
        self.dynamics, self.q0, self.iterations = dynamics, q0.copy(), iterations
        e = dynamics.equations(q0, np.zeros(dynamics.nv), t0)
        if e.nonlinear:
            raise ModelError("rows on the velocity level have no charts; use the projector")
        split = split_of(np.eye(dynamics.nv), e.J, e.unit, singular)
        if rank is not None and split.rank != rank:
            raise ChartError(
                f"the chart at t = {t0:.6g} s has {split.rank} independent rows instead of {rank}: "
                "a singular position, which no chart can pass; use the projector"
            )
        self.kept, self.scale, self.rest = split.kept, split.unit, np.zeros(dynamics.nv)
        A = self._rows(e)
        self.U = A.T.copy()
        self.V = null_space(A)
        self.B = np.asarray(np.linalg.inv(A @ self.U), np.float64)
        self.B0 = self.B.copy()
        self.u = np.zeros(len(A))

    @property
    def rank(self) -> int:
        """Independent rows."""
        return len(self.u)

    def start(self, qdot: Array) -> tuple[Array, Array]:
        """Coordinates (n,) of q0 and their rates for a velocity (nv,) there."""
        rates: Array = self.V.T @ qdot
        return np.zeros(len(rates)), rates

    def point(self, v: Array, vdot: Array, t: float) -> Point:
        """What the coordinates (n,) and their rates stand for.

        Raises:
            ChartError: An iteration did not converge: too far from q0; or q0 was singular.
        """
        q, e = self._close(v, t)
        A, U = self._rows(e), self.U
        UB = U @ self._invert(A @ U)
        D = self.V - UB @ (A @ self.V)
        scale = self.scale
        qdot = D @ vdot - UB @ (scale * e.g_t[self.kept])
        e = self.dynamics.equations(q, qdot, t)
        self._check_dependent(e, t)
        bend = UB @ (scale * e.gamma[self.kept])
        reduced, push = D.T @ (e.M @ D), D.T @ (e.f + e.M @ bend)
        try:
            vddot = np.asarray(np.linalg.solve(reduced, push), np.float64)
        except np.linalg.LinAlgError as wrong:
            raise ChartError(f"the motion along the chart has no inertia at {t:.6g} s") from wrong
        qddot = D @ vddot - bend
        error = (
            largest(scale * e.g[self.kept]),
            largest(A @ qdot + scale * e.g_t[self.kept]),
            largest(A @ qddot + scale * e.gamma[self.kept]),
        )
        return Point(q, qdot, qddot, vddot, A, D, error)

    def _check_dependent(self, e: Equations, t: float) -> None:
        """Rows that depend on the others at q0 stay closed with them, unless q0 is singular."""
        size, limit = largest(np.delete(e.unit * e.g, self.kept)), OPEN * self.iterations.u
        if not size <= limit:
            raise ChartError(
                f"rows that the chart takes for dependent are open by {size:.1e} (limit "
                f"{limit:.1e}) at t = {t:.6g} s: its origin is singular; use the projector"
            )

    def _close(self, v: Array, t: float) -> tuple[Array, Equations]:
        """Chord iteration for u; q and the equations there at rest."""
        base, rule, size, n = self.q0 + self.V @ v, self.iterations, 0.0, 0
        for n in range(rule.most + 1):
            q = base - self.U @ self.u
            e = self.dynamics.equations(q, self.rest, t)
            g = self.scale * e.g[self.kept]
            size = largest(g)
            if size <= rule.u and (n or not rule.u_first):
                return q, e
            if not size < 1e6:  # also when it is not a number
                break
            self.u = self.u + self.B @ g
        raise ChartError(
            f"u did not converge at t = {t:.6g} s: gap {size:.1e} after {n} iterations "
            f"(limit {rule.u:.1e}); change charts earlier or take smaller steps"
        )

    def _invert(self, AU: Array) -> Array:
        """Newton-Schulz iteration for B = (A U)⁻¹."""
        rule = self.iterations
        one = np.eye(len(AU))
        size = 0.0
        for n in range(rule.most + 1):
            rest = one - AU @ self.B
            size = largest(rest)
            if size <= rule.B and (n or not rule.B_first):
                return self.B
            if not size < 1e6:
                break
            self.B = np.asarray(self.B + self.B @ rest, np.float64)
        raise ChartError(
            f"B did not converge: |A U B - I| is {size:.1e} (limit {rule.B:.1e}); change charts "
            "earlier or take smaller steps"
        )

    def _rows(self, e: Equations) -> Array:
        return self.scale[:, None] * e.J[self.kept]


def largest(x: Array) -> float:
    """Largest size of an entry, 0 of none."""
    return float(np.abs(x).max()) if x.size else 0.0
