"""Impacts: the velocity filter for contacts, which only push, with friction and restitution.

Source: Moreau's sweeping process; Newton's restitution as far as it gives no energy.
"""

import contextlib
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bulletbridge.errors import StepError
from bulletbridge.events.contact import Contact, ContactGeometry
from bulletbridge.formulations.equations import SINGULAR_RTOL, Equations
from bulletbridge.formulations.stabilise import FILTER_RTOL
from bulletbridge.numerics.complementarity import natural_residual
from bulletbridge.numerics.complementarity_rows import ROW_BOUNDS, room_for
from bulletbridge.numerics.records import Array
from bulletbridge.numerics.solution_selection import LINES_OF_SELECTION, solve_resting_problem

ACCURATE, ACCEPTED = 1e-13, 1e-9
"""Residual of the impulses, over the largest speed: what is asked for and what is taken."""
ROUNDS, DIRECTIONS = 30, 16
"""Of exact solutions, contact after contact, where nothing else has solved; directions between
which those are looked for in which a contact may slide."""


class Impact(NamedTuple):
    """What an impact did."""

    v: Array  # (nv,) velocity after it
    impulses: Array  # (n, 3) on the links of frames b: along the normal and two tangents [N s]
    work: float  # energy that it gave [J], never positive but by round-off


def impact(
    e: Equations, v: Array, closed: Sequence[tuple[Contact, ContactGeometry]], resting: float
) -> Impact:
    """Impulses of contacts that keep the constraints, from the velocity v (nv,) before.

    Args:
        e: Equations of motion with all constraints but these contacts.
        v: Velocity that these constraints admit.
        closed: Contacts that are closed now.
        resting: Normal speed [m/s] below which nothing bounces.

    Raises:
        StepError: No impulses were found.
    """
    split = e.split(FILTER_RTOL)
    G = np.vstack([np.vstack([at.normal, at.tangents]) @ at.jacobian for _, at in closed])
    free = np.array([split.free(split.whiten_force(row)) for row in G])
    D, b = free @ free.T, G @ v
    bounds = np.zeros(len(b), ROW_BOUNDS)
    back = np.zeros(len(b))
    for k, (contact, _) in enumerate(closed):
        i = 3 * k
        bounds[i]["upper"], bounds[i]["owner"] = np.inf, -1
        bounds["owner"][i + 1 : i + 3], bounds["mu"][i + 1 : i + 3] = i, contact.friction
        bounds["count"][i + 1 : i + 3], bounds["first"][i + 1] = 2, 1
        back[i] = contact.restitution * b[i] if b[i] < -resting else 0.0
    plastic = elastic = _impulses(D, b, bounds)
    if np.any(back):
        # where slip and approach are one motion Newton's law may have no solution: then plastic
        with contextlib.suppress(StepError):
            elastic = _impulses(D, b + back, bounds)
    x = plastic + _share(D, b, plastic, elastic - plastic) * (elastic - plastic)
    work = float(x @ (b + 0.5 * D @ x))
    return Impact(v + split.unwhiten(x @ free), x.reshape(-1, 3), work)


def _impulses(D: Array, b: Array, bounds: np.ndarray) -> Array:
    """Impulses that end all approach, in their cones."""
    n, x = len(b), np.zeros(len(b))
    size = float(np.abs(b).max())
    room = room_for(n, LINES_OF_SELECTION)
    residual = solve_resting_problem(
        D.copy(), b.copy(), bounds, x, np.zeros(n), room, ACCURATE * size
    )
    # a chain that is all but straight gives way along itself as a weak row does, at impulses that
    # are as many times its momentum as the row is weak: beyond the usual bound that is not asked
    some = (np.diag(D) > 0.0) & ((bounds["owner"] < 0) | (bounds["mu"] > 0.0))
    mobility = np.linalg.eigvalsh(D[np.ix_(some, some)])  # squares: D is of rows times rows
    weak = len(mobility) > 0 and mobility[0] < SINGULAR_RTOL**2 * mobility[-1]
    accepted = (SINGULAR_RTOL if weak else ACCEPTED) * size
    if not residual <= accepted:
        nearest, x_nearest = _one_by_one(D, b, bounds, x)
        if nearest < residual:
            residual, x = nearest, x_nearest
    # sums of large impulses are known to their round-off, numbers below tiny to no digit
    floor = n * np.finfo(float).eps * float((np.abs(D) @ np.abs(x)).max()) + np.finfo(float).tiny
    if not residual <= accepted + floor:
        raise StepError(
            f"an impact found no impulses: residual {residual:.1e} m/s; contacts that wedge a body "
            f"contradict each other, remove one"
        )
    return x


def _one_by_one(D: Array, b: Array, bounds: np.ndarray, x: Array) -> tuple[float, Array]:
    """Impulses by exact solutions of one contact after the other, from x; with their residual.

    For contacts that can hardly move along one way: sweeps end between sticking, at impulses as
    large as these move little, and sliding one way or the other.
    """
    n, least, found = len(b), math.inf, x
    own_bounds = bounds[:3].copy()  # a contact by itself: its normal is row 0
    for _ in range(ROUNDS):
        x = x.copy()
        for i in range(0, n, 3):
            own = slice(i, i + 3)
            own_D = np.ascontiguousarray(D[own, own])
            right = b[own] + D[own] @ x - own_D @ x[own]
            own_bounds["mu"] = bounds["mu"][own]
            states = _states(own_D, right, float(bounds["mu"][i + 1]))
            misses = [_residual(own_D, right, own_bounds, state) for state in states]
            x[own] = states[int(np.argmin(misses))]
        residual = _residual(D, b, bounds, x)
        if residual < least:
            least, found = residual, x
    return least, found


def _residual(D: Array, b: Array, bounds: np.ndarray, x: Array) -> float:
    """Largest violation of the law by impulses x, in units of velocity."""
    return float(natural_residual(D, b, bounds, x, np.zeros(len(b))))


def _states(D: Array, b: Array, mu: float) -> list[Array]:
    """Impulses (3,) of one contact that may be: none, sticking, sliding along what keeps its way.

    Args:
        D: (3, 3) velocities that impulses give, along the normal and two tangents.
        b: (3,) velocities without them.
        mu: Coefficient of friction.
    """
    from scipy.optimize import brentq

    states = [np.zeros(3), np.array([-b[0] / D[0, 0] if D[0, 0] > 0.0 else 0.0, 0.0, 0.0])]
    if not mu > 0.0:
        return states
    moved = np.diag(D) > 0.0
    stuck = np.zeros(3)
    stuck[moved] = np.linalg.lstsq(D[np.ix_(moved, moved)], -b[moved], SINGULAR_RTOL**2)[0]
    states.append(stuck)

    def sliding(angle: float) -> Array:
        """Impulses that stop the approach of what slides along an angle."""
        way = np.array([1.0, -mu * math.cos(angle), -mu * math.sin(angle)])
        mobility = D[0] @ way
        return -b[0] / mobility * way if mobility != 0.0 else np.zeros(3)

    def aside(angle: float) -> float:
        """Slip at right angles to an angle of sliding; zero where friction opposes the slip."""
        w = b + D @ sliding(angle)
        return float(w[2] * math.cos(angle) - w[1] * math.sin(angle))

    angles = np.linspace(0.0, 2.0 * math.pi, DIRECTIONS + 1)
    across = np.array([aside(angle) for angle in angles])
    for k in range(DIRECTIONS):
        if across[k] == 0.0:
            states.append(sliding(angles[k]))
        elif across[k] * across[k + 1] < 0.0:
            states.append(sliding(brentq(aside, angles[k], angles[k + 1], xtol=1e-15)))
    return states


def _share(D: Array, b: Array, x: Array, more: Array) -> float:
    """Largest share (0 to 1) of ``more``, added to impulses x, that brings in no energy."""
    work = float(x @ (b + 0.5 * D @ x))
    slope, bend = float(more @ (b + D @ x)), 0.5 * float(more @ D @ more)
    if work + slope + bend <= 0.0 or not bend > 0.0:
        return 1.0
    root = math.sqrt(max(slope * slope - 4.0 * bend * min(work, 0.0), 0.0))
    return min(1.0, max(0.0, (-slope + root) / (2.0 * bend)))
