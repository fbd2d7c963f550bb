"""Points of a chart, compiled; see ``formulations.chart`` for what a chart is.

Small systems bring their equations of motion as kernels (``CompiledEquations``), those of others
are asked for in Python.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bulletbridge.compilation.jit import call_back, helper, kernel
from bulletbridge.engine.correction import finite
from bulletbridge.formulations.equations import Coordinates, Equations
from bulletbridge.numerics.lu import back_real, lu_real
from bulletbridge.numerics.records import Array, Ints

FOUND, U_OPEN, B_OFF, DEPENDENT_OPEN, NO_INERTIA = range(5)
"""What became of a point."""
SIZE, PASSES, POSITION, VELOCITY, ACCELERATION = range(5)
"""What a point tells: what was too large and after how many passes, violations of three levels."""
OF_U, OF_B, U_FIRST, B_FIRST, MOST = range(5)
"""When the iterations stop, in the order of ``Iterations``."""
DIVERGED = 1e6
"""Size of a residual from which on no pass is tried."""
OPEN = 100.0
"""Gap of dependent rows, over the tolerance of u, that tells a singular origin."""


class Terms(NamedTuple):
    """A state and the equations of motion there, for kernels.

    Attributes:
        numbers: What describes the system.
        q, v, t: (nv,), (nv,), (1,) the state.
        M, f, J, g, g_t, gamma, unit: As ``Equations`` has them; the rest is zero, and ``unit`` one,
            where a system does not write it.
        address: (1,) of the Python function that writes them, 0 for a system that is compiled.
    """

    numbers: Array
    q: Array
    v: Array
    t: Array
    M: Array
    f: Array
    J: Array
    g: Array
    g_t: Array
    gamma: Array
    unit: Array
    address: Ints


class ChartArrays(NamedTuple):
    """A chart and its room.

    Attributes:
        terms: The system at the point.
        origin: (nv,) q0.
        V, U: (nv, n) tangents and (nv, m) normals there.
        scale, kept, dependent: Factors (m,) of the rows, their places, and those of the others.
        rule: When iterations stop.
        u, B: (m,) and (m, m), from evaluation to evaluation.
        A, AU, rest, passed: (m, nv), (m, m) three times: rows, A U, I - A U B, and B before.
        along: (m, n) A V, then B A V.
        D, MD, reduced, turns: (nv, n), M D, Dᵀ M D and the turns (n,) of its factors.
        vddot, bend, qddot: (n,), (nv,), (nv,).
        side, way: (m,) what is to be taken back along U, and B times it.
        told: (5,)
    """

    terms: Terms
    origin: Array
    V: Array
    U: Array
    scale: Array
    kept: Ints
    dependent: Ints
    rule: Array
    u: Array
    B: Array
    A: Array
    AU: Array
    rest: Array
    passed: Array
    along: Array
    D: Array
    MD: Array
    reduced: Array
    turns: Array
    vddot: Array
    bend: Array
    qddot: Array
    side: Array
    way: Array
    told: Array


Fill = Callable[[Terms], None]
Find = Callable[[ChartArrays, Array, Array, float], int]


class CompiledEquations(Coordinates):
    """A system of coordinates whose equations of motion are a kernel."""

    nv: int  # coordinates
    rows: int  # constraints
    fill: Fill  # the kernel that writes the equations at a state
    find: Find  # the kernel that finds points of charts with it

    @property
    def numbers(self) -> Array:
        """What ``fill`` takes beside the state."""
        raise NotImplementedError

    def equations(self, q: Array, v: Array, t: float) -> Equations:
        """The equations of motion at a state."""
        s = terms_for(self.nv, self.rows, self.numbers)
        s.q[:], s.v[:], s.t[0] = q, v, t
        type(self).fill(s)
        return Equations(s.M, s.f, s.J, s.g, s.g_t, s.gamma, s.unit)


def terms_for(nv: int, rows: int, numbers: Array) -> Terms:
    """Room for the equations of a system."""
    q, v, f = np.zeros((3, nv))
    g, g_t, gamma = np.zeros((3, rows))
    M, J = np.zeros((nv, nv)), np.zeros((rows, nv))
    address = np.zeros(1, np.int64)
    return Terms(numbers, q, v, np.zeros(1), M, f, J, g, g_t, gamma, np.ones(rows), address)


@helper
def ask(s: Terms) -> None:
    """Have a Python function write the equations."""
    call_back(s.address[0], 0)


@kernel
def find_asked(c: ChartArrays, x: Array, dx: Array, t: float) -> int:
    """A point of a system whose equations are in Python; see ``find_point``."""
    return find_point(ask, c, x, dx, t)


@helper
def find_point(fill: Fill, c: ChartArrays, x: Array, dx: Array, t: float) -> int:
    """What coordinates x (n,) and their rates stand for at t [s].

    Leaves q and q̇ in ``terms``, q̈, D and the rows, and says what became of it.
    """
    s = c.terms
    s.t[0] = t
    failure = close(fill, c, x)
    if failure == FOUND:
        failure = invert(c)
    if failure != FOUND:
        return failure
    put_tangents(c)
    for i in range(len(c.kept)):
        c.side[i] = c.scale[i] * s.g_t[c.kept[i]]
    take_back(c)
    for k in range(len(s.v)):
        s.v[k] = inner(c.D, k, dx) - inner(c.U, k, c.way)
    fill(s)
    c.told[SIZE] = 0.0
    for i in range(len(c.dependent)):
        row = int(c.dependent[i])
        c.told[SIZE] = larger(c.told[SIZE], s.unit[row] * s.g[row])
    if not c.told[SIZE] <= OPEN * c.rule[OF_U]:
        return DEPENDENT_OPEN
    accelerate(c)
    if not finite(c.vddot):
        return NO_INERTIA
    put_errors(c)
    return FOUND


@helper
def larger(size: float, x: float) -> float:
    """The larger size of the two; what is not a number stays."""
    return size if math.isnan(size) or abs(x) <= size else abs(x)


@helper
def inner(A: Array, i: int, x: Array) -> float:
    """Row i of A times x."""
    total = 0.0
    for k in range(len(x)):
        total += A[i, k] * x[k]
    return total


@helper
def multiply(A: Array, B: Array, out: Array) -> None:
    """A B."""
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            total = 0.0
            for k in range(B.shape[0]):
                total += A[i, k] * B[k, j]
            out[i, j] = total


@helper
def close(fill: Fill, c: ChartArrays, x: Array) -> int:
    """Chord iteration for u; leaves q, and the rows there."""
    s, m = c.terms, len(c.kept)
    most, n = int(c.rule[MOST]), 0
    for k in range(len(s.v)):
        s.v[k] = 0.0
    while True:
        for k in range(len(s.q)):
            s.q[k] = c.origin[k] + inner(c.V, k, x) - inner(c.U, k, c.u)
        fill(s)
        size = 0.0
        for i in range(m):
            c.side[i] = c.scale[i] * s.g[c.kept[i]]
            size = larger(size, c.side[i])
        c.told[SIZE], c.told[PASSES] = size, n
        if size <= c.rule[OF_U] and (n > 0 or c.rule[U_FIRST] == 0.0):
            break
        if n == most or not size < DIVERGED:  # also when it is not a number
            return U_OPEN
        take_back(c)
        for i in range(m):
            c.u[i] += c.way[i]
        n += 1
    for i in range(m):
        for k in range(len(s.q)):
            c.A[i, k] = c.scale[i] * s.J[c.kept[i], k]
    return FOUND


@helper
def take_back(c: ChartArrays) -> None:
    """How far along U to go for what is to be taken back: ``way`` is B ``side``."""
    for i in range(len(c.way)):
        c.way[i] = inner(c.B, i, c.side)


@helper
def invert(c: ChartArrays) -> int:
    """Newton-Schulz iteration for B = (A U)⁻¹."""
    m, most, n = len(c.kept), int(c.rule[MOST]), 0
    multiply(c.A, c.U, c.AU)
    while True:
        multiply(c.AU, c.B, c.rest)
        size = 0.0
        for i in range(m):
            for j in range(m):
                c.passed[i, j] = c.B[i, j]
                c.rest[i, j] = (1.0 if i == j else 0.0) - c.rest[i, j]
                size = larger(size, c.rest[i, j])
        c.told[SIZE], c.told[PASSES] = size, n
        if size <= c.rule[OF_B] and (n > 0 or c.rule[B_FIRST] == 0.0):
            return FOUND
        if n == most or not size < DIVERGED:
            return B_OFF
        for i in range(m):
            for j in range(m):
                for k in range(m):
                    c.B[i, j] += c.passed[i, k] * c.rest[k, j]
        n += 1


@helper
def put_tangents(c: ChartArrays) -> None:
    """D = V - U B A V."""
    m, n = c.along.shape
    for j in range(n):
        for i in range(m):
            total = 0.0
            for k in range(len(c.V)):
                total += c.A[i, k] * c.V[k, j]
            c.side[i] = total
        take_back(c)
        for i in range(m):
            c.along[i, j] = c.way[i]
    multiply(c.U, c.along, c.D)
    for k in range(len(c.D)):
        for j in range(n):
            c.D[k, j] = c.V[k, j] - c.D[k, j]


@helper
def accelerate(c: ChartArrays) -> None:
    """Dᵀ M D v̈ = Dᵀ (f + M bend) with bend = U B gamma, and q̈ = D v̈ - bend."""
    s, n = c.terms, len(c.vddot)
    for i in range(len(c.kept)):
        c.side[i] = c.scale[i] * s.gamma[c.kept[i]]
    take_back(c)
    for k in range(len(c.bend)):
        c.bend[k] = inner(c.U, k, c.way)
    multiply(s.M, c.D, c.MD)
    for i in range(n):
        c.vddot[i] = 0.0
        for j in range(n):
            c.reduced[i, j] = 0.0
    for k in range(len(c.bend)):
        push = s.f[k] + inner(s.M, k, c.bend)
        for i in range(n):
            c.vddot[i] += c.D[k, i] * push
            for j in range(n):
                c.reduced[i, j] += c.D[k, i] * c.MD[k, j]
    lu_real(c.reduced, c.turns)
    back_real(c.reduced, c.turns, c.vddot)
    for k in range(len(c.bend)):
        c.qddot[k] = inner(c.D, k, c.vddot) - c.bend[k]


@helper
def put_errors(c: ChartArrays) -> None:
    """Largest violations of position, velocity and acceleration level, scaled rows."""
    s = c.terms
    for level in (POSITION, VELOCITY, ACCELERATION):
        c.told[level] = 0.0
    for i in range(len(c.kept)):
        row, scale = c.kept[i], c.scale[i]
        c.told[POSITION] = larger(c.told[POSITION], scale * s.g[row])
        rate = inner(c.A, i, s.v) + scale * s.g_t[row]
        c.told[VELOCITY] = larger(c.told[VELOCITY], rate)
        second = inner(c.A, i, c.qddot) + scale * s.gamma[row]
        c.told[ACCELERATION] = larger(c.told[ACCELERATION], second)
