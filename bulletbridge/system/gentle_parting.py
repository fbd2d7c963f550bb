"""How much slower than asked a step moves bodies apart, and what that changes by.

With the impulses p that move them apart by rates d, and contacts that ask for rates r along rows of
which each answers to itself by D, energies are kept to G: of d the step takes

    s = min(1, sqrt(G sum(r²/D) / (p d)))
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bulletbridge.errors import UnsupportedError
from bulletbridge.inequalities.arrays import MOVING, RECOVER
from bulletbridge.inequalities.contact_slopes import CLEAR, Ahead, ContactSlopes
from bulletbridge.inequalities.impulses import GENTLE
from bulletbridge.numerics.records import Array
from bulletbridge.system.asked_rows import OTHERWISE

SLOWER = f"bodies are taken out of each other more slowly than contacts ask for{OTHERWISE}"


class Parting(NamedTuple):
    """A step that moves bodies apart.

    Attributes:
        ahead: Where forces lead,
        more: and where those do that move bodies apart as contacts ask for.
        pushes: (nv, 3 nv) what the former change by,
        more_pushes: (nv, 3 nv) and the latter.
        asked: What contacts ask for with those.
        by_q: (nv, n, 4 + 6 nv) what these contacts change by.
        led_by: Changes (2 nv, 3 nv) of positions and rates under forces (nv,) of inequalities.
    """

    ahead: Ahead
    more: Ahead
    pushes: Array
    more_pushes: Array
    asked: ContactSlopes
    by_q: Array
    led_by: Callable[[Array], Array]


def move_gently(step: Parting, alike: float) -> Array:
    """Changes (nv, 3 nv) of the configuration that the step leads to.

    Args:
        step: That moves bodies apart slower than asked.
        alike: By which rates may differ [rad/s or m/s].

    Raises:
        UnsupportedError: They are slowed down otherwise, or are about to be.
    """
    ahead, more, dt = step.ahead, step.more, step.ahead.contacts.dt
    nv = len(ahead.v)
    way, force = more.rates - ahead.rates, more.push - ahead.push
    force_by_all = step.more_pushes - step.pushes
    way_by_all = (more.led - ahead.led)[nv:] + ahead.led[nv:, 2 * nv :] @ force_by_all
    energy = dt * force @ way
    energy_by_all = dt * (way @ force_by_all + force @ way_by_all)
    most, most_by_all = _most(step)
    share = float(np.sqrt(most / energy))
    moving = ahead.contacts.impulses[MOVING, :nv]
    if not share < 1.0 - CLEAR or np.abs(moving - share * way).max() > alike:
        raise UnsupportedError(SLOWER)
    by_all = 0.5 * share * (most_by_all / most - energy_by_all / energy)
    led = step.led_by(ahead.push + share * force)[:nv]
    pushes = step.pushes + share * force_by_all + np.outer(force, by_all)
    return np.asarray(led + led[:, 2 * nv :] @ pushes)


def _most(step: Parting) -> tuple[float, Array]:
    """Twice the energy that bodies may move apart with, and what it changes by (3 nv,)."""
    ahead, asked = step.ahead, step.asked
    contacts, nv = ahead.contacts, len(ahead.v)
    normals = np.asarray(contacts.own)["normal"][ahead.numbers[: len(asked.rates)]]
    found, by_all = 0.0, np.zeros(3 * nv)
    for k, (rate, sides) in enumerate(zip(asked.rates, asked.sides, strict=True)):
        if contacts.impulses[RECOVER, normals[k]] == 0.0:
            continue
        row = contacts.rows[normals[k]]
        answer = ahead.led[nv:, 2 * nv :] @ row / contacts.dt
        turned = (step.led_by(ahead.push + row / contacts.dt) - ahead.led)[nv:]
        bent = step.by_q[:, k, 4 : 4 + nv].T @ ahead.where[:nv]
        size = row @ answer
        found += rate**2 / size
        by_all += 2.0 * rate * sides / size
        by_all -= (rate / size) ** 2 * (row @ turned + 2.0 * answer @ bent)
    return GENTLE * found, GENTLE * by_all
