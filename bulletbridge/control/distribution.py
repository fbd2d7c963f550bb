"""Joint forces on the actuated joints alone that give an acceleration and chosen multipliers.

The equations of motion, projected on what the constraints leave free, hold no multipliers: they say
which joint forces give an acceleration. Projected on what the constraints forbid, they say which
multipliers go with them. Both are linear in the joint forces; the shortest that solve them are
taken, and none at all if there are none.

Source: Kövecses and Piedbœuf 2003, eq. 27; Aghili 2008, eq. 29-31.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bulletbridge.control.free_motion import FreeMotion
from bulletbridge.control.laws_kernel import RTOL
from bulletbridge.errors import InfeasibleError
from bulletbridge.numerics.records import Array, Mask

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

    @cached_property
    def able(self) -> Array:
        """(nv,) the weights, 0 where no force may act."""
        return np.where(self.actuated, self.weights, 0.0)

    def forces(
        self, here: FreeMotion, rows: Array | None, right: Array, lam: Array | None = None
    ) -> Array:
        """Least joint forces tau (nv,) with rows @ V_2ᵀ L⁻ᵀ tau = right.

        Args:
            here: Equations of motion without tau, split.
            rows: (m, dof) the demand on the free motion: part of an acceleration, or None for all.
            right: (m,) what it asks of tau, forces other than tau accounted for.
            lam: (nc,) multipliers that are demanded; NaN for those that are left open, None for
                all. Of rows that share a load only what determines the load is looked at.

        Raises:
            InfeasibleError: The actuated joints cannot do this.
        """
        m = len(right)
        demand = here.demand(rows, right, lam, self.able)
        tau, end, met = here.distributed(demand, m)
        if met:
            return tau
        D, r, size = demand.D[:end], demand.r[:end], demand.size[:end]
        missed = r - D @ tau
        limit = RTOL * float(np.abs(r).max(initial=0.0) + np.abs(D).max() * np.abs(tau).max())
        e, each = here.loads, 1.0 if rows is None else np.linalg.norm(rows, axis=1)
        pulled = float(np.linalg.norm(here.L @ here.imposed(e.gamma))) * np.ones(end)
        pulled[:m] *= each
        noise = rounding(here) * (np.abs(D) @ e.sizes + pulled / size)
        if np.any(np.abs(missed) > limit + noise):
            self._refuse(here, np.eye(m) if rows is None else rows, missed * size, lam)
        return tau

    def _refuse(self, here: FreeMotion, rows: Array, missed: Array, lam: Array | None) -> None:
        motion, force = missed[: len(rows)], missed[len(rows) :]
        vdot = np.abs(np.linalg.lstsq(rows, motion, rcond=RTOL)[0] @ here.free)
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


def rounding(here: FreeMotion) -> float:
    """Part of the terms of an equation that its solution may be off by, for want of digits."""
    return EPS * float(np.linalg.cond(here.L))


def row_names(rows: dict[str, slice], nc: int) -> list[str]:
    """Names of the constraints that rows belong to."""
    names = [""] * nc
    for name, part in rows.items():
        names[part] = [name] * (part.stop - part.start)
    return names
