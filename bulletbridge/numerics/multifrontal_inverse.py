"""Those entries of the inverse of an eliminated matrix that stand in its fronts.

What an impulse on a body does to that body, and to its neighbours, where all else goes along: with
as many operations as the factors took. Bodies hang from the world, as free ones do.

Source: Takahashi, Fagan and Chin 1973.
"""

from bulletbridge.compilation.jit import helper, outlined
from bulletbridge.numerics.multifrontal import OWN, Elimination, Front, line_of_factors
from bulletbridge.numerics.records import Array, Ints


@outlined
def invert(e: Elimination, front_of: Ints, places: Ints, inverse: Array) -> None:
    """Write the entries of each front.

    Args:
        e: An elimination with factors, of bodies that hang from the world.
        front_of: (nb,) the front that eliminates each body.
        places: (n,) scratch: where the rest of a front stands in the next one.
        inverse: (fronts, n, n) rates, rows, boundary of each front, symmetric; none of rows that
            were left over.
    """
    for i in range(len(e.fronts) - 1, -1, -1):
        front, Z = e.fronts[i], inverse[i]
        start = front.rates + front.rows
        n = start + front.boundary_size
        for a in range(front.pivots, n):
            places[a] = -1
        if front.count > 0:
            m = int(front_of[int(e.boundary[front.first])])
            find_places(e, front, e.fronts[m], places)
            take_from(Z, inverse[m], places, front.pivots, n)
        else:
            take_from(Z, Z, places, front.pivots, n)
        for at in range(front.pivots - 1, -1, -1):
            line = line_of_factors(front, at, n)
            for a in range(n - 1, at, -1):
                total = 0.0
                for b in range(at + 1, n):
                    total -= e.factors[line + b] * Z[b, a]
                Z[at, a] = Z[a, at] = total
            total = e.factors[front.factor + at]
            for b in range(at + 1, n):
                total -= e.factors[line + b] * Z[b, at]
            Z[at, at] = total


@helper
def find_places(e: Elimination, front: Front, after: Front, places: Ints) -> None:
    """Where rows that are passed on, and the bodies around a front, stand in the next one."""
    for r in range(front.delayed):
        number = e.numbers[front.row + front.pivots - front.rates + r]
        for i in range(after.rows):
            if e.numbers[after.row + i] == number:
                places[front.pivots + r] = after.rates + i
    at = front.rates + front.rows
    for j in range(front.first, front.first + front.count):
        first = 0 if e.places[j] == OWN else after.rates + after.rows + e.places[j]
        for c in range(e.widths[j]):
            places[at] = first + c
            at += 1


@helper
def take_from(Z: Array, other: Array, places: Ints, first: int, n: int) -> None:
    """Entries from ``first`` on are those of the next front at their places, or none."""
    for a in range(first, n):
        for b in range(first, n):
            there = places[a] >= 0 and places[b] >= 0
            Z[a, b] = other[places[a], places[b]] if there else 0.0
