"""Integrators over any formulation of any constrained system, in Python.

Configurations may hold quaternions, so stages move them only by ``Dynamics.displace``, the flow of
a constant velocity. Methods of order 4 compose two such flows where rotations do not commute
(commutator-free: Celledoni, Marthinsen and Owren 2003, Future Generation Computer Systems 19,
eq. 3.5); on vector spaces they are the classical ones. No differential of the exponential map is
needed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Protocol

from bulletbridge.formulations.equations import Dynamics, Formulation
from bulletbridge.formulations.implicit import symmetric_projection, trapezoidal
from bulletbridge.formulations.quasi_velocity_rates import QuasiVelocities
from bulletbridge.formulations.stabilise import Seen, Stabilisation, Stabilised
from bulletbridge.numerics.records import Array


class State(NamedTuple):
    """Configuration, velocity and time.

    Attributes:
        q: (nq,).
        v: (nv,).
        t: [s]
    """

    q: Array
    v: Array
    t: float


class Space(Protocol):
    """Where configurations move: all that ``nystrom4`` asks of ``Dynamics``."""

    def displace(self, q: Array, step: Array) -> Array:
        """Configuration after a velocity has acted for a unit of time."""
        ...


Method = Callable[[Formulation, Dynamics, State, float], tuple[Array, Array]]
"""One step of h [s] from a state: q and v at its end."""
Rates = Callable[[Array, Array, float], tuple[Array, Array]]
"""The velocity by which q moves at a stage (q, w, t), and the rate of w there."""


def stage(f: Formulation, q: Array, v: Array, t: float) -> tuple[Array, Array]:
    """The velocity by which q moves at a stage, and the acceleration there."""
    found = f(q, v, t)
    return v if found.rate is None else found.rate, found.vdot


def euler(f: Formulation, d: Dynamics, s: State, h: float) -> tuple[Array, Array]:
    """Explicit Euler, order 1."""
    u, a = stage(f, *s)
    return d.displace(s.q, h * u), s.v + h * a


def semi_implicit_euler(f: Formulation, d: Dynamics, s: State, h: float) -> tuple[Array, Array]:
    """Semi-implicit Euler on accelerations, order 1: q moves by the new velocity.

    The compiled one works on the velocity level, without the curvature of the constraints.
    """
    v = s.v + h * f(*s).vdot
    return d.displace(s.q, h * v), v


def heun(f: Formulation, d: Dynamics, s: State, h: float) -> tuple[Array, Array]:
    """Heun's explicit trapezoidal rule, order 2."""
    u, a = stage(f, *s)
    last, b = stage(f, d.displace(s.q, h * u), s.v + h * a, s.t + h)
    return d.displace(s.q, 0.5 * h * (u + last)), s.v + 0.5 * h * (a + b)


def verlet(f: Formulation, d: Dynamics, s: State, h: float) -> tuple[Array, Array]:
    """Velocity Verlet, order 2: the second half is iterated once, since it depends on its end.

    The compiled one (``engine.verlet``) knows what the correction moves q by in between.
    """
    q, v, t = s
    a = b = f(*s).vdot
    half = v + 0.5 * h * a
    end = d.displace(q, h * half)
    for _ in range(2):
        b = f(end, half + 0.5 * h * b, t + h).vdot
    return end, half + 0.5 * h * b


def rk4(f: Formulation, d: Dynamics, s: State, h: float) -> tuple[Array, Array]:
    """Classical Runge-Kutta, order 4."""
    return classical(partial(stage, f), d, s, h)


def classical(rates: Rates, d: Space, s: State, h: float) -> tuple[Array, Array]:
    """The classical method on q and any w whose rates, after those of q, ``rates(q, w, t)`` has."""
    q, w, t = s
    u1, a1 = rates(q, w, t)
    half = d.displace(q, 0.5 * h * u1)
    u2, a2 = rates(half, w + 0.5 * h * a1, t + 0.5 * h)
    u3, a3 = rates(d.displace(q, 0.5 * h * u2), w + 0.5 * h * a2, t + 0.5 * h)
    u4, a4 = rates(d.displace(half, h * (u3 - 0.5 * u1)), w + h * a3, t + h)
    return advance(d, q, h, u1, u2, u3, u4), w + h / 6.0 * (a1 + 2.0 * a2 + 2.0 * a3 + a4)


def nystrom4(f: Formulation, d: Space, s: State, h: float) -> tuple[Array, Array]:
    """Nyström's method for second-order systems, order 4: both middle stages at one configuration.

    Source: Hairer, Nørsett and Wanner, Solving Ordinary Differential Equations I, II.14.
    """
    q, v, t = s
    u1, a1 = stage(f, q, v, t)
    middle = d.displace(q, 0.5 * h * u1 + 0.125 * h * h * a1)
    u2, a2 = stage(f, middle, v + 0.5 * h * a1, t + 0.5 * h)
    u3, a3 = stage(f, middle, v + 0.5 * h * a2, t + 0.5 * h)
    end = d.displace(d.displace(q, 0.5 * h * u1), 0.5 * h * (u1 + h * a3))
    u4, a4 = stage(f, end, v + h * a3, t + h)
    return advance(d, q, h, u1, u2, u3, u4), v + h / 6.0 * (a1 + 2.0 * a2 + 2.0 * a3 + a4)


def rk4_quasi_velocities(f: Formulation, d: Dynamics, s: State, h: float) -> tuple[Array, Array]:
    """Classical Runge-Kutta on q and reduced quasi-velocities, order 4: see ``QuasiVelocities``."""
    q, v, t = s
    reduced = QuasiVelocities(f, d, q, t)
    end, w = classical(reduced.rates, d, State(q, reduced.reduce(v), t), h)
    return end, reduced.velocity(end, w, t + h)


def advance(d: Space, q: Array, h: float, v1: Array, v2: Array, v3: Array, v4: Array) -> Array:
    """Configuration after h from velocities at the start, twice at the middle and at the end."""
    middle = 2.0 * (v2 + v3)
    q = d.displace(q, h / 12.0 * (3.0 * v1 + middle - v4))
    return d.displace(q, h / 12.0 * (-v1 + middle + 3.0 * v4))


METHODS: dict[str, Method] = {
    "euler": euler,
    "semi_implicit_euler": semi_implicit_euler,
    "heun": heun,
    "verlet": verlet,
    "rk4": rk4,
    "nystrom4": nystrom4,
    "rk4_quasi_velocities": rk4_quasi_velocities,
    "trapezoidal": trapezoidal,
    "symmetric": symmetric_projection,
}
SELF_PROJECTED = (symmetric_projection,)
"""Methods that end on the constraints; a correction afterwards would spoil their symmetry."""


@dataclass(frozen=True)
class Scheme:
    """A formulation, an integrator, and what follows each step.

    Attributes:
        dynamics: The system.
        formulation: Its accelerations.
        method: The integrator.
        stabilisation: Correction and filter; left out after a method that has its own.
        closing: The system as these see it; the same unless given.
    """

    dynamics: Dynamics
    formulation: Formulation
    method: Method
    stabilisation: Stabilisation
    closing: Seen | None = None

    def __call__(self, s: State, h: float) -> Stabilised:
        """The state after a step of h [s]."""
        q, v = self.method(self.formulation, self.dynamics, s, h)
        after = NOTHING if self.method in SELF_PROJECTED else self.stabilisation
        return after(self.closing or self.dynamics, s.q, q, v, s.t + h)


NOTHING = Stabilisation(passes=0, filtered=False)
