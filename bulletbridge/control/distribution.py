"""Joint forces on the actuated joints alone that give an acceleration and chosen multipliers.

The equations of motion, projected on what the constraints leave free, hold no multipliers: they say
which joint forces give an acceleration. Projected on what the constraints forbid, they say which
multipliers go with them. Both are linear in the joint forces; the shortest that solve them are
taken, and none at all if there are none.

Source: Kövecses and Piedbœuf 2003, eq. 27; Aghili 2008, eq. 29-31.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bulletbridge.errors import InfeasibleError
from bulletbridge.formulations.equations import Equations
from bulletbridge.formulations.quasi_velocities import Basis
from bulletbridge.numerics.records import Array, Mask

RTOL = 1e-9
"""Part of a demand that may be missed: what is left of double precision after two solves."""
EPS = 2.0**-52


@dataclass(frozen=True)
class Names:
    """What errors call the rates (nv,) and the rows (nc,)."""

    rates: Sequence[str]
    rows: Sequence[str]


@dataclass(frozen=True)
class Distribution:
    """Which joints may act, and how forces on them are compared.

    Attributes:
        actuated: (nv,) rates that joint forces act on.
        weights: (nv,) of the norm that is least, sum of (weight * force)²: 1 / the largest force
            of each drive makes a mixture of N m and N comparable.
        names: For errors.
    """

    actuated: Mask
    weights: Array
    names: Names

    def forces(
        self, e: Equations, basis: Basis, rows: Array, right: Array, lam: Array | None
    ) -> Array:
        """Shortest joint forces tau (nv,) with rows @ V_2ᵀ L⁻ᵀ tau = right.

        Args:
            e: Equations of motion without tau.
            basis: Of these equations.
            rows: (n, dof) the demand on the free motion: the identity, or part of an acceleration.
            right: (n,) what it asks of tau, forces other than tau accounted for.
            lam: (nc,) multipliers that are demanded; NaN for those that are left open, None for
                all. Of rows that share a load only what determines the load is looked at.

        Raises:
            InfeasibleError: The actuated joints cannot do this.
        """
        D, r = rows @ basis.free.T, right
        if lam is not None and not np.all(np.isnan(lam)):
            whitened = basis.unwhiten(np.eye(len(self.actuated))).T  # L⁻ᵀ
            more, wanted = _multiplier_rows(e, basis, whitened, lam)
            D, r = np.vstack([D, more]), np.concatenate([r, wanted])
        tau = np.zeros(len(self.actuated))
        size = np.linalg.norm(D, axis=1)
        size[size == 0.0] = 1.0
        D, r = D / size[:, None], r / size
        within = D[:, self.actuated] / self.weights[self.actuated]
        tau[self.actuated] = _shortest(within, r) / self.weights[self.actuated]
        missed = r - D @ tau
        limit = RTOL * float(np.abs(r).max(initial=0.0) + np.abs(D).max() * np.abs(tau).max())
        if np.all(np.abs(missed) <= limit):
            return tau
        pulled = float(np.linalg.norm(basis.forbidden(e.gamma))) * np.ones(len(r))
        pulled[: len(rows)] *= np.linalg.norm(rows, axis=1)
        noise = rounding(basis) * (np.abs(D) @ e.sizes + pulled / size)
        if np.any(np.abs(missed) > limit + noise):
            self._refuse(basis, rows, missed * size, lam)
        return tau

    def _refuse(self, basis: Basis, rows: Array, missed: Array, lam: Array | None) -> None:
        motion, force = missed[: len(rows)], missed[len(rows) :]
        vdot = np.abs(basis.unwhiten(basis.V_2 @ _shortest(rows, motion)))
        helped = [n for n, on in zip(self.names.rates, self.actuated, strict=True) if on]
        order = [int(k) for k in np.argsort(-vdot)[:3]]
        worst = [self.names.rates[k] for k in order if vdot[k] > 0.01 * vdot.max()]
        text = (
            f"the actuated joints ({', '.join(helped) or 'none'}) cannot meet the demand: "
            f"{vdot.max():.3g} rad/s² or m/s² are missed, most at {', '.join(worst) or 'none'}"
        )
        if len(force):
            assert lam is not None
            named = {n for n, x in zip(self.names.rows, lam, strict=True) if not np.isnan(x)}
            short = float(np.abs(force).max())
            text += f", and {short:.3g} (N, or N m per mechanism length) at {', '.join(named)}"
        raise InfeasibleError(f"{text}; actuate more joints, or demand less of them")


def rounding(basis: Basis) -> float:
    """Part of the terms of an equation that its solution may be off by, for want of digits."""
    return EPS * float(np.linalg.cond(basis.L))


def _shortest(A: Array, right: Array) -> Array:
    return np.asarray(np.linalg.lstsq(A, right, rcond=RTOL)[0], np.float64)


def _multiplier_rows(
    e: Equations, basis: Basis, whitened: Array, lam: Array
) -> tuple[Array, Array]:
    """(n, nv) and (n,) with rows @ tau = right where the multipliers that are given hold.

    diag(s) U_1ᵀ S⁻¹ lam = -diag(1/s) U_1ᵀ S gamma - V_1ᵀ L⁻ᵀ (f + tau), and lam the shortest.
    """
    given = ~np.isnan(lam)
    U, s, Vt = np.linalg.svd(basis.U_1[given], full_matrices=False)
    U, s, Vt = U[:, s > RTOL], s[s > RTOL], Vt[s > RTOL]
    wanted = (U.T @ (lam[given] / e.unit[given])) / s
    held = (basis.U_1.T @ (e.unit * e.gamma)) / basis.s
    pushed = basis.V_1.T @ basis.whiten_force(e.f)
    right = -wanted - Vt @ ((held + pushed) / basis.s)
    return Vt @ ((basis.V_1.T @ whitened) / basis.s[:, None]), right


def row_names(rows: dict[str, slice], nc: int) -> list[str]:
    """Names of the constraints that rows belong to."""
    names = [""] * nc
    for name, part in rows.items():
        names[part] = [name] * (part.stop - part.start)
    return names
