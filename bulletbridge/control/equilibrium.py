"""Where a mechanism rests: poses at which nothing pushes along what the loops leave free."""

from dataclasses import dataclass

import numpy as np

from bulletbridge.control.closed_kinematics import nearest_closed
from bulletbridge.engine.records import ONE_OVER_UNITS
from bulletbridge.engine.stepper import Solver
from bulletbridge.errors import AssemblyError, InfeasibleError, ModelError
from bulletbridge.formulations.equations import Equations
from bulletbridge.formulations.system_dynamics import SystemDynamics
from bulletbridge.mechanism.by_joint import rate_names
from bulletbridge.mechanism.kinematics import displace
from bulletbridge.numerics.records import Array
from bulletbridge.system.system import System
from bulletbridge.system.tangents import Freedoms, freedoms_of

AT_REST = 1e-10
"""Force along the freedoms, relative to the terms that cancel there, that counts as none."""
BESIDE = 1e-4
"""Part of the largest term, of lengths of the mechanism, that counts for one on every rate."""
TIGHT = 1e-15
"""What round-off leaves to say when to stop."""
FARTHEST = 3.0
"""Way [rad or m] beyond which coordinates are taken anew: what nothing holds would turn for
ever to gain a little elsewhere."""
MOST_CHARTS = 20
"""Poses around which coordinates are taken anew."""


@dataclass(frozen=True, eq=False)
class Equilibrium:
    """A pose at which a mechanism rests.

    Attributes:
        q: (nq,) configuration, loops closed: ``system.set_state(q, numpy.zeros(nv))`` goes there.
        force: Largest force left along a freedom [N or N m].
        evaluations: Poses that were looked at.
    """

    q: Array
    force: float
    evaluations: int


class Balance:
    """Forces along the freedoms of a system at rest, in coordinates around one pose.

    Args:
        system: What is to rest.
        tree: Its equations of motion.
        origin: (nq,) closed.
    """

    def __init__(self, system: System, tree: SystemDynamics, origin: Array) -> None:
        self.system, self.tree, self.origin, self.t = system, tree, origin, system.t
        self.solver: Solver = tree.solver
        self.still = np.zeros(tree.nv)
        self.here: Freedoms = freedoms_of(self.solver, origin, self.t)
        self.evaluations = 0

    def pose(self, x: Array) -> Array:
        """The closed configuration (nq,) nearest to one that is displaced by x along the freedoms.

        Raises:
            AssemblyError: The loops do not close there.
        """
        moved = np.empty_like(self.origin)
        way = self.here.directions @ x
        displace(self.solver.bodies, self.origin, way, 1.0, moved)
        return nearest_closed(self.system, moved)

    def forces(self, x: Array) -> Array:
        """(f,) along the freedoms there."""
        self.evaluations += 1
        return self.at(self.pose(x))[0]

    def at(self, q: Array) -> tuple[Array, Array]:
        """Forces (f,) along the freedoms of a pose, and the sizes (f,) of what adds up to them."""
        e = self.tree.equations(q, self.still, self.t)
        ways = freedoms_of(self.solver, q, self.t, self.here.rates).directions
        return ways.T @ e.f, np.abs(ways.T) @ sizes_of(self.solver, e)


def sizes_of(solver: Solver, e: Equations) -> Array:
    """Sizes (nv,) of the terms that are in balance on the rates, ``e.sizes`` and a part of all.

    What hangs straight from a pin rests since levers vanish, and nothing turns it about its line:
    there is no term there beside which what is left is small.
    """
    over_units = solver.vectors[ONE_OVER_UNITS, : len(e.sizes)]
    return np.maximum(e.sizes, BESIDE * over_units * np.max(e.sizes / over_units, initial=0.0))


def equilibrium(system: System) -> Equilibrium:
    """The pose near the present one at which gravity, springs and ``tau`` hold each other.

    Stable or not. Forces along the freedoms are brought to zero in trust regions
    (``scipy.optimize.least_squares``) in coordinates of the closed loops, taken anew where they
    lead far. Where a whole family of poses rests, as without gravity, the nearest one is found.

    Args:
        system: Its configuration is the start, its ``tau`` stays; nothing of it changes.

    Raises:
        InfeasibleError: No such pose was found; it says what pushes along which joint at the one
            that came nearest.
        ModelError: Motors, joint friction or contacts act, whose rest is a matter of inequalities;
            or a constraint moves by itself.
    """
    from scipy.optimize import least_squares

    if system.has_inequalities:
        raise ModelError(
            "motors, joint friction, limits at every step, contacts and force limits have poses of"
            " rest of their own; switch them off, and give what motors exert as tau"
        )
    tree, t = system.dynamics, system.t
    q = np.array(system.q)
    if tree.equations(q, np.zeros(tree.nv), t).g_t.any():
        raise ModelError("a constraint moves by its own time: nothing rests while it does")
    count, beside = 0, ""
    balance = Balance(system, tree, q)
    force, size = balance.at(q)
    for _ in range(MOST_CHARTS):
        scale = np.maximum(size, np.finfo(float).tiny)
        if np.all(np.abs(force) <= AT_REST * scale):
            break
        lengths = np.abs(balance.here.directions).max(axis=0)

        def pull(y: Array, b: Balance = balance, s: Array = scale, w: Array = lengths) -> Array:
            try:
                return b.forces(y / w) / s
            except (AssemblyError, ModelError) as error:  # beyond the reach of these coordinates
                nonlocal beside
                beside = "" if isinstance(error, AssemblyError) else f" (beside it, {error})"
                return np.full(len(s), 1e6)

        start = np.zeros(len(force))
        found = least_squares(
            pull, start, "3-point", (-FARTHEST, FARTHEST), xtol=TIGHT, ftol=TIGHT, gtol=TIGHT
        )
        count += balance.evaluations
        before = float(np.linalg.norm(force / scale))
        q = balance.pose(found.x / lengths)
        balance = Balance(system, tree, q)
        force, size = balance.at(q)
        if float(np.linalg.norm(force / scale)) >= 0.9 * before:
            break
    if np.any(np.abs(force) > AT_REST * 10.0 * np.maximum(size, np.finfo(float).tiny)):
        worst = int(np.argmax(np.abs(force) / np.maximum(size, np.finfo(float).tiny)))
        name = rate_names(system.mechanism)[int(balance.here.rates[worst])]
        raise InfeasibleError(
            f"no pose of rest was found: at the nearest {force[worst]:.3g} N or N m push along"
            f" '{name}', where terms of {size[worst]:.3g} should cancel{beside}; start nearer to"
            " one, or give tau that holds it"
        )
    return Equilibrium(q, float(np.abs(force).max(initial=0.0)), count)
