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

import ctypes
from typing import Any, NamedTuple

import numpy as np

from bulletbridge.compilation.jit import Callback
from bulletbridge.errors import ChartError, ModelError
from bulletbridge.formulations.chart_kernel import (
    ACCELERATION,
    B_OFF,
    DEPENDENT_OPEN,
    FOUND,
    OPEN,
    PASSES,
    POSITION,
    SIZE,
    U_OPEN,
    ChartArrays,
    CompiledEquations,
    find_asked,
    terms_for,
)
from bulletbridge.formulations.equations import SINGULAR_RTOL, Dynamics, split_of
from bulletbridge.numerics.null_space import null_space
from bulletbridge.numerics.records import Array


class Iterations(NamedTuple):
    """When the fixed-point iterations stop."""

    u: float = 1e-12  # largest |S g| that is accepted [unit of the scaled rows]
    B: float = 1e-12  # largest |A U B - I| that is accepted
    # iterate u at least once; otherwise the test comes first, and errors are of the size of the
    # tolerance instead of its square
    u_first: bool = True
    B_first: bool = True  # the same for B
    most: int = 20  # number of iterations after which the chart has failed


ITERATIONS = Iterations()


class Point(NamedTuple):
    """A point of the manifold that a chart found, its rate and the equations there."""

    q: Array  # (nq,)
    qdot: Array  # (nv,)
    qddot: Array  # (nv,)
    vddot: Array  # (n,) second rate of the chart's coordinates
    A: Array  # (rank, nv) scaled independent rows
    D: Array  # (nv, n) of q̇ = D v̇; the norm of D - V is the tangent of the tilt since q0
    error: Array  # largest violations of position, velocity and acceleration level, scaled rows


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
        A = split.unit[:, None] * e.J[split.kept]
        self.U, self.V = A.T.copy(), null_space(A).copy()
        self.B0 = np.asarray(np.linalg.inv(A @ self.U), np.float64)
        (m, nv), n, numbers = A.shape, self.V.shape[1], np.zeros(0)
        self._find = find_asked
        if isinstance(dynamics, CompiledEquations):
            numbers, self._find = dynamics.numbers, type(dynamics).find
        self._c = ChartArrays(
            terms=terms_for(nv, len(e.J), numbers),
            origin=self.q0,
            V=self.V,
            U=self.U,
            scale=split.unit,
            kept=split.kept.astype(np.int64),
            dependent=np.setdiff1d(np.arange(len(e.J)), split.kept),
            rule=np.array(iterations, np.float64),
            u=np.zeros(m),
            B=self.B0.copy(),
            A=np.zeros((m, nv)),
            AU=np.zeros((m, m)),
            rest=np.zeros((m, m)),
            passed=np.zeros((m, m)),
            along=np.zeros((m, n)),
            D=np.zeros((nv, n)),
            MD=np.zeros((nv, n)),
            reduced=np.zeros((n, n)),
            turns=np.zeros(n),
            vddot=np.zeros(n),
            bend=np.zeros(nv),
            qddot=np.zeros(nv),
            side=np.zeros(m),
            way=np.zeros(m),
            told=np.zeros(ACCELERATION + 1),
        )

    @property
    def rank(self) -> int:
        """Independent rows."""
        return len(self._c.u)

    @property
    def memory(self) -> tuple[Array, Array]:
        """Copies of u and B, for ``recall``."""
        return self._c.u.copy(), self._c.B.copy()

    def recall(self, memory: tuple[Array, Array]) -> None:
        """Go on from a memory."""
        self._c.u[:], self._c.B[:] = memory

    def start(self, qdot: Array) -> tuple[Array, Array]:
        """Coordinates (n,) of q0 and their rates for a velocity (nv,) there."""
        rates: Array = self.V.T @ qdot
        return np.zeros(len(rates)), rates

    def point(self, v: Array, vdot: Array, t: float) -> Point:
        """What the coordinates (n,) and their rates stand for.

        Raises:
            ChartError: An iteration did not converge: too far from q0; or q0 was singular.
        """
        c, s = self._c, self._c.terms
        if self._find is find_asked:
            found = self._find_asked(v, vdot, t)
        else:
            found = self._find(c, v, vdot, t)
        if found != FOUND:
            raise ChartError(self._why(found, t))
        kept = s.q, s.v, c.qddot, c.vddot, c.A, c.D, c.told[POSITION:]
        return Point(*(x.copy() for x in kept))

    def _find_asked(self, v: Array, vdot: Array, t: float) -> int:
        """A point by equations that are asked for in Python."""
        s, wrong = self._c.terms, list[BaseException]()

        def answer(_: int) -> None:
            try:
                e = self.dynamics.equations(s.q.copy(), s.v.copy(), float(s.t[0]))
                for name in ("M", "f", "J", "g", "g_t", "gamma", "unit"):
                    getattr(s, name)[:] = getattr(e, name)
            except BaseException as error:  # it cannot pass compiled code
                wrong.append(error)
                s.f[:], s.g[:] = np.nan, np.nan

        asked: Any = Callback(answer)
        s.address[0] = ctypes.cast(asked, ctypes.c_void_p).value or 0
        found = self._find(self._c, v, vdot, t)
        if wrong:
            raise wrong[0]
        return found

    def _why(self, found: int, t: float) -> str:
        """What is wrong with a point that was not found."""
        size, rule = self._c.told[SIZE], self.iterations
        if found == U_OPEN:
            return (
                f"u did not converge at t = {t:.6g} s: gap {size:.1e} after"
                f" {self._c.told[PASSES]:.0f} iterations (limit {rule.u:.1e}); change charts"
                " earlier or take smaller steps"
            )
        if found == B_OFF:
            return (
                f"B did not converge: |A U B - I| is {size:.1e} (limit {rule.B:.1e}); change charts"
                " earlier or take smaller steps"
            )
        if found == DEPENDENT_OPEN:
            return (
                f"rows that the chart takes for dependent are open by {size:.1e} (limit"
                f" {OPEN * rule.u:.1e}) at t = {t:.6g} s: its origin is singular; use the projector"
            )
        return f"the motion along the chart has no inertia at {t:.6g} s"
