"""Sliding with friction as a formulation: normal forces and friction determine each other.

Friction opposes slip with the coefficient times the normal force, which is a multiplier of the
constraints, which friction changes: contacts of class II in Bonaventura 2002. Multipliers depend
linearly on forces, so that all normal forces follow from one small linear system.

Compiled steps have it in the engine (``engine.sliding_friction``). This one is for other
integrators and for contacts that change their mode, tells why a step has failed, and is the oracle.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from bulletbridge.constraints.joints import LoopJoint
from bulletbridge.engine.records import MOST_SLIDING
from bulletbridge.engine.sliding_friction import STILL
from bulletbridge.engine.stepper import Solver
from bulletbridge.engine.workspace import Terms
from bulletbridge.errors import StepError, UnsupportedError
from bulletbridge.events.contact import SLIPPERY, Surface, surface_of
from bulletbridge.formulations.equations import Dynamics, Solution
from bulletbridge.formulations.system_dynamics import SystemDynamics
from bulletbridge.numerics.records import Array, Mask


@dataclass
class Friction:
    """Coulomb friction of a loop joint that slides.

    Attributes:
        loop: A point on a plane, sphere or cylinder, or a planar joint, where friction acts at the
            origin of its frame b.
        coefficient: Friction over normal force.
        bilateral: Whether the normal force may pull, too; friction then takes its size.
        reference: (2,) direction of slip, along ``ContactGeometry.tangents``, when there is none;
            what slips the other way meets the friction of this way, so that forces stay smooth
            until the reversal has been located. None for no friction without slip.
        slides: Whether it acts.
    """

    loop: LoopJoint
    coefficient: float
    bilateral: bool = True
    reference: Array | None = None
    slides: bool = True

    def direction(self, slip: Array) -> Array:
        """Unit direction (2,) of slip that friction opposes, or zero."""
        size = float(np.linalg.norm(slip))
        if size <= STILL:
            return np.zeros(2) if self.reference is None else self.reference
        back = self.reference is not None and float(slip @ self.reference) < 0.0
        return slip / (-size if back else size)


def sliding(*frictions: Friction) -> "SlidingFormulation":
    """The formulation of a system whose loop joints slide with friction.

    Pass it to ``System(formulation=...)``. Sticking is another mode: see ``ContactMotion``.
    """
    return SlidingFormulation(frictions)


@dataclass(frozen=True)
class SlidingFormulation:
    """What ``sliding`` gives: makes a formulation, and tells compiled steps what slides."""

    frictions: tuple[Friction, ...]

    def __call__(self, dynamics: Dynamics) -> "Sliding":
        """The formulation of a system."""
        return Sliding(dynamics, self.frictions)

    def in_steps(self) -> dict[str, tuple[float, bool]] | None:
        """Coefficients by loop, and whether it may pull; None where steps need Python."""
        acting = [k for k in self.frictions if k.slides and k.coefficient > 0.0]
        if len(acting) > MOST_SLIDING or any(k.reference is not None for k in acting):
            return None
        if any(k.loop.model not in SLIPPERY or k.loop.motion is not None for k in acting):
            return None  # which Python refuses
        return {k.loop.name: (k.coefficient, k.bilateral) for k in acting}


class Sliding:
    """The projector with friction; see ``sliding``.

    Raises:
        UnsupportedError: The system is no tree of links.
    """

    def __init__(self, dynamics: Dynamics, frictions: Iterable[Friction]) -> None:
        if not isinstance(dynamics, SystemDynamics):
            raise UnsupportedError("friction needs the links of a System; no other system has them")
        self._tree, self._frictions = dynamics, frictions
        self._surfaces: dict[LoopJoint, Surface] = {}

    def __call__(self, q: Array, v: Array, t: float) -> Solution:
        """Accelerations and multipliers at a state.

        Raises:
            StepError: No normal forces agree with friction, or several do (Painlevé).
        """
        here = self._tree.moving(q, v, t)
        e, terms = here.equations, here.terms
        split, solver = e.split(), self._tree.solver
        f = split.whiten_force(e.f)
        y = split.free(f) + split.shortest(-e.gamma)
        lam = split.multipliers(y - f)
        names = list(solver.encoded.rows)
        active = [
            k for k in self._frictions if k.slides and k.coefficient > 0.0 and k.loop.name in names
        ]
        if not active:
            return Solution(split.unwhiten(y), lam)
        n = len(active)
        forces, supply = np.zeros((n, len(v))), np.zeros((n, len(lam)))
        for k, friction in enumerate(active):
            at = self._surface(friction.loop).at(terms.poses, terms.axes)
            against = friction.direction(at.tangents @ at.jacobian @ v) @ at.tangents
            forces[k] = -against @ at.jacobian
            supply[k] = normal_of(solver, terms, friction.loop.name, at.normal, t)
        pushed = [split.whiten_force(force) for force in forces]
        answers = [split.free(push) for push in pushed]
        more = np.array(
            [split.multipliers(a - push) for a, push in zip(answers, pushed, strict=True)]
        )
        mu = np.array([friction.coefficient for friction in active])
        bilateral = np.array([friction.bilateral for friction in active])
        x = friction_forces(supply @ lam, supply @ more.T, mu, bilateral, t)
        return Solution(split.unwhiten(y + x @ np.array(answers)), lam + x @ more)

    def _surface(self, loop: LoopJoint) -> Surface:
        """The surface of a loop, found once."""
        if loop not in self._surfaces:
            self._surfaces[loop] = surface_of(loop, self._tree.solver.mechanism)
        return self._surfaces[loop]


def normal_of(solver: Solver, terms: Terms, name: str, normal: Array, t: float) -> Array:
    """Coefficients c (nc,): the normal force on the link of frame b of a loop is c · lam."""
    found = np.zeros(solver.encoded.nc)
    _, rows = solver.wrench_rows(terms.poses, list(solver.encoded.rows).index(name), t)
    found[solver.encoded.rows[name]] = rows[:, 3:] @ normal
    return found


def friction_forces(N: Array, change: Array, mu: Array, bilateral: Mask, t: float) -> Array:
    """Friction forces x (n,) = mu |N + change x|, where |.| is left out of contacts that push only.

    Raises:
        StepError: There is no such x, or none that is found by keeping signs.
    """
    sign = np.where(np.logical_and(bilateral, N < 0.0), -1.0, 1.0)
    for _ in range(2 * len(N) + 1):
        share = mu * sign
        matrix = np.eye(len(N)) - share[:, None] * change
        if len(N) == 1 and matrix[0, 0] == 0.0:
            break
        if len(N) > 1 and np.linalg.cond(matrix) > 1e12:
            break
        x: Array = np.asarray(np.linalg.solve(matrix, share * N), np.float64)
        new = np.where(np.logical_and(bilateral, N + change @ x < 0.0), -1.0, 1.0)
        if np.array_equal(new, sign):
            return x
        sign = new
    raise StepError(
        f"no normal forces agree with friction at t = {t:.6g} s (Painlevé): with coefficients "
        f"{mu.tolist()} friction presses more than it slows; use smaller ones"
    )
