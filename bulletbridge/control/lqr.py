"""Linear-quadratic regulators on the freedoms of a closed mechanism."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from bulletbridge.control.modes import require_rest
from bulletbridge.errors import InfeasibleError, ModelError
from bulletbridge.mechanism.by_joint import rate_names
from bulletbridge.mechanism.displacement import configuration_difference
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.numerics.records import Array, Ints
from bulletbridge.system.linearisation import Complexes, Linearisation
from bulletbridge.system.parameters import require_known
from bulletbridge.system.system import System

UNREACHED = 1e-9
"""Share of a mode that inputs reach, below which they do not."""
MARGINAL = 1e-7
"""How far inside the unit circle a mode has to be to need no control."""
Weights = ArrayLike | Mapping[str, float]
"""A matrix, its diagonal, or entries of that by name, the others zero."""


@dataclass(frozen=True, eq=False, repr=False)
class Regulator:
    """tau = tau_0 - K x: the forces that hold a pose of rest, held over each step.

    Attributes:
        mechanism: Names the coordinates.
        linearisation: Of the step at the pose, reduced to the freedoms.
        K: (m, n) gains.
        P: (n, n) cost to go: xᵀ P x.
        eigenvalues: (n,) of the closed loop A - B K; a step multiplies its modes by them.
        rates: (n,) which tangent coordinates are the states.
        inputs: (m,) numbers of the rates that are pushed.
    """

    mechanism: Mechanism
    linearisation: Linearisation
    K: Array
    P: Array
    eigenvalues: Complexes
    rates: Ints
    inputs: Ints

    def __repr__(self) -> str:
        """What it pushes by what it sees, and how fast the slowest mode goes."""
        names, slowest = self.linearisation, float(np.abs(self.eigenvalues).max(initial=0.0))
        return (
            f"<Regulator: {', '.join(names.inputs)} by {', '.join(names.states)}; the slowest mode"
            f" times {slowest:.6g} a step>"
        )

    def error(self, q: Array, v: Array) -> Array:
        """x (n,): how far a state is from the pose."""
        away = configuration_difference(self.mechanism, q, self.linearisation.q)
        return np.concatenate([away, np.asarray(v, float)])[self.rates]

    def __call__(self, q: Array, v: Array, t: float = 0.0) -> Array:
        """Joint forces tau (nv,) at a state; the time does not matter."""
        tau = self.linearisation.tau.copy()
        tau[self.inputs] -= self.K @ self.error(q, v)
        return tau


def lqr(
    system: System,
    Q: Weights,
    R: Weights,
    *,
    inputs: Collection[str],
    states: Sequence[str] | None = None,
) -> Regulator:
    """The forces that bring a mechanism back to the present pose of rest at the least cost.

    Minimises the sum over steps of xᵀ Q x + uᵀ R u for the linearised step on the freedoms, by the
    discrete Riccati equation (``scipy.linalg.solve_discrete_are``). The pose need not be stable:
    what has to hold is that ``inputs`` reach all that grows.

    Args:
        system: At rest in an equilibrium under its ``tau``, which is given along.
        Q: Weights of the states, whose names are ``system.linearise(reduced=True).states``: (n, n),
            (n,), or by name, as ``{"crank": 10.0, "crank.rate": 1.0}``.
        R: Weights of the inputs, likewise by joint; positive.
        inputs: Joints that are pushed.
        states: Joints whose positions and rates are states; those that tell the freedoms best
            unless given.

    Returns:
        Called with (q, v), it gives tau; set it before each step.

    Raises:
        ModelError: The state is no equilibrium, a name does not exist, or weights are not possible.
        InfeasibleError: The inputs move nothing, as where motors hold what they push, or do not
            reach a mode that does not die out by itself, or a mode that does not die out costs
            nothing.
    """
    from scipy.linalg import solve_discrete_are

    if not system.has_inequalities:
        require_rest(system)
    reduced = True if states is None else states
    linear = system.linearise("step", reduced=reduced, inputs=inputs)
    if not len(linear.inputs):
        raise ModelError("there is nothing to push with; name joints in inputs")
    if np.abs(linear.q_after - linear.q).max() > 1e-6 or np.abs(linear.v_after).max() > 1e-6:
        raise ModelError("the system does not rest in a step; take the pose of equilibrium(system)")
    require_moved(system, linear)
    A, B = linear.A, linear.B
    q_weights = weights_of("Q", Q, linear.states)
    r_weights = weights_of("R", R, linear.inputs)
    if np.linalg.eigvalsh(q_weights).min() < -1e-12 * np.abs(q_weights).max():
        raise ModelError("Q has a negative eigenvalue; give weights that are not negative")
    if not np.linalg.eigvalsh(r_weights).min() > 0.0:
        raise ModelError("R is not positive; give each input a positive weight")
    require_reached(A, B, linear.states, "inputs do not reach", "push other joints too")
    require_reached(
        A.T, q_weights, linear.states, "Q does not weigh", "give weights to these states"
    )
    try:
        P = np.asarray(solve_discrete_are(A, B, q_weights, r_weights), np.float64)
    except np.linalg.LinAlgError as error:
        raise InfeasibleError(
            f"no gains were found that stabilise the mechanism ({error}); the inputs may reach what"
            " grows too weakly: push other joints, or give weights of other sizes"
        ) from None
    K = np.asarray(np.linalg.solve(r_weights + B.T @ P @ B, B.T @ P @ A), np.float64)
    eigenvalues = np.asarray(np.linalg.eigvals(A - B @ K), np.complex128)
    own = rate_names(system.mechanism)
    names = [*own, *(f"{name}.rate" for name in own)]
    rates = np.array([names.index(name) for name in linear.states], np.int64)
    pushed = np.array([names.index(name) for name in linear.inputs], np.int64)
    order = np.argsort(-np.abs(eigenvalues))
    return Regulator(system.mechanism, linear, K, P, eigenvalues[order], rates, pushed)


def weights_of(what: str, given: Weights, names: Sequence[str]) -> Array:
    """A symmetric matrix of weights (n, n).

    Raises:
        ModelError: A name does not exist, or numbers do not fit.
    """
    if isinstance(given, Mapping):
        diagonal = np.zeros(len(names))
        for name, value in given.items():
            require_known(f"entry of {what}", name, names)
            diagonal[list(names).index(name)] = value
        found = np.diag(diagonal)
    else:
        found = np.asarray(given, float)
        if found.shape in ((), (len(names),)):
            found = found * np.eye(len(names))
    fits = found.shape == (len(names), len(names)) and np.all(np.isfinite(found))
    if not fits or not np.allclose(found, found.T):
        raise ModelError(
            f"{what} is not a symmetric matrix of finite numbers for {', '.join(names)}; give one,"
            " its diagonal, or weights by name"
        )
    return np.asarray(0.5 * (found + found.T), np.float64)


def require_moved(system: System, linear: Linearisation) -> None:
    """Refuse inputs of which none does more in a step than rounding."""
    own, M = rate_names(system.mechanism), system.terms().M
    pushed = [own.index(name) for name in linear.inputs]
    alone = system.dt * np.linalg.inv(M).diagonal()[pushed]
    if np.any(np.abs(linear.B).max(axis=0, initial=0.0) > UNREACHED * alone):
        return
    motors = system.motors
    on = [name for name in motors.names if motors.settings(name)["force"] > 0.0]
    why = "loops, limits or contacts let none of them move"
    if on:
        why = (
            f"what the motors of {', '.join(on)} hold, they hold whatever else pushes; turn them"
            " off by system.motors.set(name, force=0.0), or push what they leave free"
        )
    raise InfeasibleError(f"no input moves anything in a step: {why}")


def require_reached(A: Array, B: Array, states: Sequence[str], said: str, remedy: str) -> None:
    """Refuse modes that do not die out and that B has no part in: Popov, Belevitch and Hautus."""
    size = max(1.0, float(np.linalg.norm(A)))
    for value in np.linalg.eigvals(A):
        if abs(value) < 1.0 - MARGINAL:
            continue
        pencil = np.hstack([A - value * np.eye(len(A)), B / max(np.linalg.norm(B), 1e-300)])
        U, s, _ = np.linalg.svd(pencil)
        if s[-1] <= UNREACHED * size:
            part = np.abs(U[:, -1])
            movers = [name for name, x in zip(states, part, strict=True) if x > 0.3 * part.max()]
            raise InfeasibleError(
                f"{said} what does not die out by itself: a mode of {', '.join(movers)}, which a"
                f" step multiplies by {abs(value):.6g}; {remedy}"
            )
