"""Elimination of mechanisms in link coordinates, body after body: cost grows with the links.

Joint coordinates of a deep tree are full whatever its loops are: every joint moves all that hangs
on it. In terms of the twists of links the equations

    M x + Jᵀ y = f,    J x = b

join neighbours only. Each body is eliminated with its joint's rates x and with the rows that it can
carry, which leaves a small dense front between the bodies around it: articulated bodies, in
clusters where loops join them. A body that hangs from the world is known by its rates, others by
their twists: these are a body's coordinates here. All pivots are 1 x 1. A row whose compliance is
small among the bodies eliminated so far is passed on, to be eliminated where something can move
along it; where nothing can, it is left over. Rows may be soft, J x - s y = b: they give way to
rigid ones, and where these leave them nothing, their softness carries them. Many that say the same,
as friction of all bodies of a straight rope does along it, would be passed on together, ever more:
reflections of those that a front has left gather what they say in as few as can say it.

Source: Duff and Reid 1983 (multifrontal elimination); Featherstone, Rigid Body Dynamics Algorithms,
ch. 7 (articulated bodies).
"""

from typing import NamedTuple

from bulletbridge.compilation.block_sizes import LANES
from bulletbridge.compilation.jit import helper
from bulletbridge.numerics.records import Array, Ints, Records, Short, dtype_of


class Front:
    """One body's elimination. Bodies around it are its boundary, its parent among them."""

    body: Short
    v: Short  # first rate of its joint
    rates: Short  # their number (records of numpy have a size of their own)
    first: Short  # of its boundary, in the lists of bodies and of places
    count: Short  # bodies of the boundary
    boundary_size: Short  # their coordinates
    own_size: Short  # coordinates of the body beside its rates: none if it hangs from the world
    parent: Short  # body, 0 for the world
    parent_start: Short  # where the parent's coordinates begin in those of the boundary
    parent_size: Short  # number of them
    parent_rate: Short  # first rate of the parent if it hangs from the world, or -1
    child: Short  # first front that leaves something to this one, or -1
    sibling: Short  # next one that leaves something to the same front, or -1
    join: Short  # first of the joins that are eliminated here
    joins: Short
    tie: Short  # first of the ties that are put in here
    ties: Short
    max_rows: Short  # rows that the front can hold
    max_delayed: Short  # rows that it can pass on
    row: Short  # start of its row numbers
    update: Short  # start of what it leaves
    factor: Short  # start of its factors
    rows: Short  # rows in it now
    pivots: Short  # eliminated rates and rows
    delayed: Short  # rows that it passes on, which come next
    turn: Short  # start of its reflections
    turns: Short  # how many of them
    turned: Short  # place of the first row that they turn
    wide: Short  # rows that they turn


class Join:
    """Rows between two bodies, of a loop; or what ties them, of a force element, in the metric.

    That of a coupling or tendon is on the bodies of all its joints, and that of a spring over
    points on those of all its stretches: further ones are of these.
    """

    source: Short  # loop or force element whose they are
    row: Short
    rows: Short
    a: Short  # bodies, 0 for the world
    b: Short
    place_a: Short  # where their coordinates begin in those of the boundary, or OWN
    place_b: Short
    width_a: Short  # number of coordinates, 0 for the world
    width_b: Short
    own_a: Short  # the same, 0 for a body that hangs from the world
    own_b: Short
    first_a: Short  # first rate of such a body
    first_b: Short
    term: Short  # of a coupling or tendon, if it is between the bodies of one of its joints, or -1
    more: Short  # first of those that its row is on, too
    further: Short  # their number


OWN = -1
"""Place of the coordinates of the body that a front eliminates."""


FRONT, JOIN = dtype_of(Front), dtype_of(Join)


class Elimination(NamedTuple):
    """Plan, factors and scratch of an elimination; twists have k components, 3 or 6.

    A body has at most k coordinates.
    """

    fronts: Records[Front]
    boundary: Ints  # bodies of the boundaries
    widths: Ints  # numbers of their coordinates
    places: Ints  # where these begin in the boundary of the front that takes over, or OWN
    joins: Records[Join]
    numbers: Ints  # rows in each front, eliminated ones first
    kept: Ints  # (rows,) whether a row is eliminated, or left over
    motion: Array  # (nv, k) twist of each rate
    inertia: Array  # (nb, k, k) in the coordinates of each body, lower triangle
    extra: Array  # (nv,) inertia of the rates themselves
    wrench: Array  # (rows, 2, k) of each row on the coordinates of a and of b
    ties: Records[Join]
    pulls: Array  # (n, 2, k) likewise of what ties bodies
    weights: Array  # (n,) of the squares of their rates, in twice the kinetic energy
    further: Records[Join]  # where rows and ties are also
    arms: Array  # (n, 2, k) likewise of each of them
    rigid: int  # rows from this number on are soft
    soft: Array  # (rows,) softness, none of rigid ones
    least: Array  # (1,) compliance below which a soft row is not eliminated
    reflections: Array  # flat: unit vectors over the soft rows that a front has left
    update: Array  # what fronts leave, flat
    factors: Array  # flat
    W: Array  # (n, m) the front under way, upper triangle: rates, rows, boundary, own coordinates;
    # whole blocks of m
    column: Array  # (n,)
    y: Array  # (m,)
    push: Array  # (nb, k)
    twist: Array  # (nb, k) coordinates of the bodies
    right: Array  # (rows,)


@helper
def blocks_to(n: int) -> int:
    """Blocks that n numbers take: lines of fronts begin and end with whole ones."""
    return (n + LANES - 1) // LANES


@helper
def line_of_factors(front: Front, at: int, n: int) -> int:
    """Where the factors of a pivot begin, those of n variables: none of itself and those before.

    In front of the first stand the inverses of all pivots.
    """
    return front.factor + (at + 1) * LANES * blocks_to(n)


@helper
def column_of_factors(front: Front, a: int, n: int) -> int:
    """Where the same factors begin of all pivots of a front for one variable: their transpose."""
    return line_of_factors(front, front.rates + front.rows + a, n)


@helper
def lifted(S: Array, parent_rate: int, c: int, push: Array, first: int) -> float:
    """What a wrench, from ``first`` on in push, is on coordinate c of a parent."""
    if parent_rate < 0:
        return push[first + c]
    total = 0.0
    for m in range(S.shape[1]):
        total += S[parent_rate + c, m] * push[first + m]
    return total
