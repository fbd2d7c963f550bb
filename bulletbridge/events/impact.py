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
from bulletbridge.numerics.complementarity_rows import ROOM, ROW_BOUNDS
from bulletbridge.numerics.records import Array
from bulletbridge.numerics.solution_selection import solve_resting_problem

ACCURATE, ACCEPTED = 1e-13, 1e-9
"""Residual of the impulses, over the largest speed: what is asked for and what is taken."""


class Impact(NamedTuple):
    """What an impact did.

    Attributes:
        v: (nv,) velocity after it.
        impulses: (n, 3) on the links of frames b: along the normal and two tangents [N s].
        work: Energy that it gave [J], never positive but by round-off.
    """

    v: Array
    impulses: Array
    work: float


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
    scratch = np.zeros((n, n)), np.zeros((ROOM + 3, n))
    residual = solve_resting_problem(
        D.copy(), b.copy(), bounds, x, np.zeros(n), *scratch, ACCURATE * size
    )
    # a chain that is all but straight gives way along itself as a weak row does, at impulses that
    # are as many times its momentum as the row is weak: beyond the usual bound that is not asked
    some = (np.diag(D) > 0.0) & ((bounds["owner"] < 0) | (bounds["mu"] > 0.0))
    mobility = np.linalg.eigvalsh(D[np.ix_(some, some)])  # squares: D is of rows times rows
    weak = len(mobility) > 0 and mobility[0] < SINGULAR_RTOL**2 * mobility[-1]
    tiny = np.finfo(float).tiny  # below it numbers have no digits to be relative to
    if not residual <= (SINGULAR_RTOL if weak else ACCEPTED) * size + tiny:
        raise StepError(
            f"an impact found no impulses: residual {residual:.1e} m/s; contacts that wedge a body "
            f"contradict each other, remove one"
        )
    return x


def _share(D: Array, b: Array, x: Array, more: Array) -> float:
    """Largest share (0 to 1) of ``more``, added to impulses x, that brings in no energy."""
    work = float(x @ (b + 0.5 * D @ x))
    slope, bend = float(more @ (b + D @ x)), 0.5 * float(more @ D @ more)
    if work + slope + bend <= 0.0 or not bend > 0.0:
        return 1.0
    root = math.sqrt(max(slope * slope - 4.0 * bend * min(work, 0.0), 0.0))
    return min(1.0, max(0.0, (-slope + root) / (2.0 * bend)))
