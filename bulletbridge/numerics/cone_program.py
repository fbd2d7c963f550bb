"""The mixed problem by an interior-point cone solver, for reference and for hard cases.

Without friction it is a convex quadratic program. With Coulomb's law it is not. Each problem here
has a separation s fixed,

    minimise x'Dx/2 + (b + s)'x   over the bounds and the cones |x_t/mu| <= x_n,

whose solution parts what slides by mu times the speed at which it slides, less s; s becomes that
product until it stays. Source: De Saxcé and Feng 1998; Acary, Cadoux, Lemaréchal and Malick 2011.
"""

import importlib
from typing import Any

import numpy as np

from bulletbridge.errors import StepError, naming_the_extra
from bulletbridge.numerics.complementarity import natural_residual
from bulletbridge.numerics.records import Array

MOST_PROBLEMS = 200
TIGHT = 1e-13
"""Tolerances that the cone solver is given; it says so when it cannot reach them."""
PATIENCE = 20
"""Problems without a better one until it is given up: an interior point method ends near 1e-8."""
ENOUGH, USABLE = 1e-11, 1e-6
"""Residual at which problems end, and up to which the best one counts, as shares of the largest
velocity."""


def residual_of(D: Array, b: Array, bounds: np.ndarray, x: Array) -> float:
    """Largest violation of any condition by impulses x (n,), in units of D x + b."""
    return natural_residual(np.array(D), np.array(b), bounds, np.array(x), np.zeros(len(b)))


class ReferenceSolver:
    """Solves mixed problems with Clarabel.

    Raises:
        MissingExtraError: It is not installed.
    """

    def __init__(self) -> None:
        otherwise = ", or leave impulse_solver out for the compiled one"
        with naming_the_extra("impulse_solver needs Clarabel", "bulletbridge[conic]", otherwise):
            self._clarabel: Any = importlib.import_module("clarabel")

    def __call__(self, D: Array, b: Array, bounds: np.ndarray) -> tuple[Array, float]:
        """Impulses (n,) of a problem with matrix D (n, n), right side b (n,) and bounds (n,).

        Returns:
            They, and the largest violation of any condition, in units of D x + b.

        Raises:
            StepError: Clarabel finds no solution.
        """
        size = float(np.abs(b).max())
        best = np.zeros(len(b))
        least = residual_of(D, b, bounds, best)
        if size == 0.0:
            return best, least
        cones = _cones(bounds)
        separation, since = np.zeros(len(b)), 0
        for _ in range(MOST_PROBLEMS):
            x = self._convex(D, b + separation, bounds, cones)
            residual = residual_of(D, b, bounds, x)
            since += 1
            if residual < least:
                best, least, since = x, residual, 0
            before, separation = separation, _separation(D @ x + b, bounds, cones)
            if since == PATIENCE or least <= ENOUGH * size:
                break
            if np.abs(separation - before).max() <= TIGHT * size:
                break
        if not least <= USABLE * size:
            raise StepError(
                f"clarabel leaves a residual of {least:.2g} of velocities of {size:.2g}; leave"
                " impulse_solver out"
            )
        return best, least

    def _convex(
        self, D: Array, b: Array, bounds: np.ndarray, cones: list[tuple[int, list[int]]]
    ) -> Array:
        """Minimum of x'Dx/2 + b'x over bounds and cones, solved with a diagonal of ones."""
        from scipy import sparse

        d = np.sqrt(np.where(np.diag(D) > 0.0, np.diag(D), 1.0))
        size = float(np.abs(b / d).max()) or 1.0
        unit, n = size / d, len(b)  # x = unit * y
        rows: list[Array] = []
        right: list[float] = []
        for i in np.flatnonzero(bounds["owner"] < 0):
            for bound, sign in ((bounds[i]["upper"], 1.0), (bounds[i]["lower"], -1.0)):
                if np.isfinite(bound):
                    rows.append(sign * np.eye(n)[i])
                    right.append(sign * float(bound) / unit[i])
        kinds = [self._clarabel.NonnegativeConeT(len(rows))] if rows else []
        for owner, members in cones:
            rows.append(-unit[owner] * np.eye(n)[owner])
            for i in members:
                rows.append(-unit[i] / bounds[i]["mu"] * np.eye(n)[i])
            right += [0.0] * (1 + len(members))
            kinds.append(self._clarabel.SecondOrderConeT(1 + len(members)))
        flat = [np.eye(n)[i] for i in np.flatnonzero(bounds["owner"] >= 0) if not bounds[i]["mu"]]
        if flat:
            rows += flat
            right += [0.0] * len(flat)
            kinds.append(self._clarabel.ZeroConeT(len(flat)))
        settings = self._clarabel.DefaultSettings()
        settings.verbose = False
        settings.static_regularization_enable = False  # costs digits, and D needs none
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = TIGHT
        problem = self._clarabel.DefaultSolver(
            sparse.csc_matrix(np.triu(D / np.outer(d, d))),
            b / d / size,
            sparse.csc_matrix(np.array(rows).reshape(-1, n)),
            np.array(right),
            kinds,
            settings,
        )
        return unit * np.array(problem.solve().x)


def _cones(bounds: np.ndarray) -> list[tuple[int, list[int]]]:
    """Owner of each cone, and its rows that have any friction."""
    found: list[tuple[int, list[int]]] = []
    for i in np.flatnonzero((bounds["owner"] >= 0) & (bounds["first"] == 1)):
        rows = range(int(i), int(i) + int(bounds[i]["count"]))
        members = [k for k in rows if bounds[k]["mu"] > 0.0]
        if members:
            found.append((int(bounds[i]["owner"]), members))
    return found


def _separation(w: Array, bounds: np.ndarray, cones: list[tuple[int, list[int]]]) -> Array:
    """Sliding speeds times coefficients, in the rows of the normals."""
    found = np.zeros(len(w))
    for owner, members in cones:
        found[owner] += np.linalg.norm(bounds["mu"][members] * w[members])
    return found
