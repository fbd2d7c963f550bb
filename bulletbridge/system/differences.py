"""Central differences of what a system does from states around one, all of them on its loops."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np

from bulletbridge.engine.stepper import Solver
from bulletbridge.errors import UnsupportedError
from bulletbridge.formulations.system_dynamics import SystemDynamics
from bulletbridge.mechanism.kinematics import displace
from bulletbridge.numerics.records import Array
from bulletbridge.system.derivatives import filtering
from bulletbridge.system.saved import SavedState
from bulletbridge.system.tangents import (
    REACH,
    Freedoms,
    Point,
    Tangents,
    close_back,
    freedoms_at,
    split_at,
)


class Movable(Protocol):
    """What differences ask of a system: that it takes states beside its own."""

    @property
    def dynamics(self) -> SystemDynamics:
        """The equations of motion, of the solver that has the state."""
        ...

    def tangent_solver(self) -> Solver:
        """The solver of the rows that hold in the next step, at the state."""
        ...

    def start_from(
        self, start: tuple[Array, Array, float], parameters: Mapping[str, float]
    ) -> None:
        """Take a state q (nq,), v (nv,), t [s], closed and filtered, forgetting all before."""
        ...

    def recall_steps(self, memory: SavedState) -> None:
        """Go on as after the steps that led to a saved state, from wherever it is."""
        ...


class Derivative(NamedTuple):
    """Of n numbers: (n, directions), and the largest difference of two step lengths in it."""

    values: Array
    error: float


def put(
    system: Movable,
    at: Point,
    dq: Array | None = None,
    dv: Array | None = None,
    memory: SavedState | None = None,
) -> None:
    """Take a state on the loops: displaced by dq (nv,), changed by dv (nv,), closed, filtered.

    ``memory``: of the steps that led there, which the next one goes by; None for none.
    """
    q = at.q.copy()
    if dq is not None:
        displace(system.dynamics.solver.mechanism.bodies, at.q, dq, 1.0, q)
    system.start_from((q, at.v if dv is None else at.v + dv, at.t), {})
    if memory is not None:
        system.recall_steps(memory)
    system.dynamics.solver.tau[0] = at.tau


def richardson(see: Callable[[float], Array], reach: float) -> tuple[Array, float]:
    """Derivative at zero of a function of one number, by central differences of two lengths.

    Returns:
        It, and how far the differences of both lengths are apart.
    """
    near, far = ((see(x) - see(-x)) / (2.0 * x) for x in (reach, 2.0 * reach))
    return (4.0 * near - far) / 3.0, float(np.abs(far - near).max(initial=0.0))


class Differences:
    """Differences of what is seen of a copy of a system, which others do not look at meanwhile.

    Functions ``see`` tell it as numbers (n,) that may be subtracted, of the copy as it is then.

    Args:
        copy: Is left at some state nearby.
        at: The state around which they are taken.
        memory: What steps from there go by; None for nothing.
    """

    def __init__(self, copy: Movable, at: Point, memory: SavedState | None = None) -> None:
        self.copy, self.at, self._memory = copy, at, memory

    def put(self, dq: Array | None = None, dv: Array | None = None) -> None:
        """Take the copy to the state, displaced by dq (nv,) and changed by dv (nv,) if given."""
        put(self.copy, self.at, dq, dv, self._memory)

    def tangents(self, chosen: Sequence[str] | None = None) -> Tangents:
        """The tangent space at the state, where the copy is.

        Args:
            chosen: Joints whose rates are to tell the freedoms, as of ``freedoms_at``.

        Raises:
            ModelError: The mechanism is singular there, or joints do not tell its freedoms.
            StepError: A step from there could not be finished.
        """
        solver = self.copy.tangent_solver()
        positions, velocities, lengths = freedoms_at(solver, chosen)
        turn = np.zeros((len(lengths), len(positions)))
        if self.at.v.any() or solver.encoded.motions:
            turn = self._turn(solver, positions, lengths)
        return Tangents(self.at, positions, velocities, turn, lengths)

    def pull_back(self, p: Array) -> Array:
        """``closing`` of the tangents, transposed, times p (2 nv,): no freedoms are chosen."""
        solver, at, nv = self.copy.tangent_solver(), self.at, len(p) // 2
        split, held = split_at(solver, solver.q, solver.t)
        of_q, of_v = p[:nv], p[nv:]
        if at.v.any() or solver.encoded.motions:
            try:
                of_q = of_q + of_v @ filtering(solver, at.q, at.v, at.t)
            except UnsupportedError:
                return p @ self.tangents().closing
        both = close_back(split, held, of_q), close_back(split, split.rank, of_v)
        return np.concatenate(both)

    def _turn(self, solver: Solver, positions: Freedoms, lengths: Array) -> Array:
        """How the velocity follows (nv, fq), as it is filtered, along the freedoms."""
        at = self.at
        try:
            return filtering(solver, at.q, at.v, at.t) @ positions.directions
        except UnsupportedError:
            none = np.zeros_like(positions.directions)
            found = self.along(positions, lengths, lambda: self.copy.dynamics.solver.v.copy(), none)
            return found.values

    def along(
        self, freedoms: Freedoms, lengths: Array, see: Callable[[], Array], ways: Array | None
    ) -> Derivative:
        """Derivative of what is seen by the freedoms of the configuration, or of the velocity.

        Args:
            freedoms: Which.
            lengths: As of ``Tangents``.
            see: What is seen.
            ways: (nv, f) how the velocity goes with those of the configuration; None for those of
                the velocity.
        """
        directions, pace = freedoms.directions.T, 1.0 if ways is not None else self.pace(lengths)
        reaches = [pace * (REACH / float(np.abs(way / lengths).max())) for way in directions]

        def there(k: int, x: float) -> Array:
            way = x * directions[k]
            self.put(*((None, way) if ways is None else (way, x * ways[:, k])))
            return see()

        return _columns(there, dict(enumerate(reaches)))

    def by_state(self, tangents: Tangents, see: Callable[[], Array]) -> Derivative:
        """What is seen by all tangent coordinates (n, 2 nv) of a state displaced, then closed."""
        values, error = self.along(tangents.q, tangents.lengths, see, tangents.turn)
        rates, more = self.along(tangents.v, tangents.lengths, see, None)
        if not len(tangents.picked):
            self.put()
            return Derivative(np.zeros((len(see()), 2 * len(tangents.lengths))), 0.0)
        n = max(len(values), len(rates))
        both = np.hstack([part.reshape(n, -1) for part in (values, rates)])
        return Derivative(both @ tangents.dual, max(error, more))

    def by_forces(
        self,
        tangents: Tangents,
        see: Callable[[], Array],
        rates: Sequence[int] | None = None,
    ) -> Derivative:
        """By the forces on the given rates (n, m), or on all (n, nv)."""
        pushes = self.pushes(tangents)

        def there(k: int, x: float) -> Array:
            self.put()
            self.copy.dynamics.solver.tau[0, k] += x
            return see()

        wanted = range(len(pushes)) if rates is None else rates
        return _columns(there, {k: float(pushes[k]) for k in wanted})

    def pace(self, lengths: Array) -> float:
        """Rate that counts as one [1/s]: the fastest there is, or one."""
        return max(1.0, float(np.abs(self.at.v / lengths).max(initial=0.0)))

    def pushes(self, tangents: Tangents) -> Array:
        """(nv,) forces that change rates in a step by as much as other differences do."""
        self.put()
        solver = self.copy.dynamics.solver
        mass = solver.terms(solver.q, solver.v, solver.t).M
        answers = np.linalg.inv(mass) / tangents.lengths[:, None]
        change = REACH * self.pace(tangents.lengths)
        return np.asarray(
            change / (solver.control[0]["dt"] * np.abs(answers).max(axis=0)), np.float64
        )


def _columns(see: Callable[[int, float], Array], reaches: Mapping[int, float]) -> Derivative:
    """Derivatives as columns, each by a number of its own, as far as it reaches."""
    found = [richardson(partial(see, k), reach) for k, reach in reaches.items()]
    values = np.array([x for x, _ in found]).T if found else np.zeros((0, 0))
    return Derivative(values, max((error for _, error in found), default=0.0))
