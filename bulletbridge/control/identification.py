"""Parameters of a mechanism from a recorded motion, with what is known of their errors."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bulletbridge.control.closed_kinematics import nearest_closed
from bulletbridge.errors import InfeasibleError, ModelError, StepError
from bulletbridge.mechanism.displacement import configuration_difference
from bulletbridge.mechanism.kinematics import displace
from bulletbridge.numerics.records import Array
from bulletbridge.system.parameters import require_known
from bulletbridge.system.recording import Recording
from bulletbridge.system.rollouts import rollout
from bulletbridge.system.system import System
from bulletbridge.system.tangents import Freedoms, freedoms_at

REACH = 1e-5
"""Change of a parameter, of its size, by which trajectories are differentiated."""
DISTINCT = 1e-8
"""Weakest combination of parameters that a motion tells, relative to the strongest."""
NOT_NEGATIVE = ("mass", "armature", "damping", "stiffness", "friction", "length")
"""Fields of parameters that are no less than zero."""
FLAT = float(np.finfo(np.float64).eps)
"""Slope of half the sum of squares that ends a search. It has units: anything larger ends it early
where a motion tells little of a parameter. Other searches end where they come no further."""
LOST = 1e3
"""What stands for the residuals of a trajectory that could not be run."""


@dataclass(frozen=True, eq=False)
class Identification:
    """Parameters that fit a recorded motion best.

    Attributes:
        values: By name, of ``System.parameters``: ``system.set_parameters(found.values)``.
        errors: Standard errors, by name: of the noise that the residuals show, if that is
            independent from record to record, and the model is right. Of a recording without noise,
            as one that was simulated, residuals are rounding, which is not: values are then off by
            several such errors.
        covariance: (p, p) of the parameters in the order of ``values``.
        noise: Standard deviation of the residuals [rad or m], over all that was measured.
        q: (nq,) the start that fits best, loops closed.
        v: (nv,) its velocity.
        residuals: (records - 1, k) measured less simulated, of all records but the start.
        simulations: Trajectories that were run.
        iterations: Steps of the optimiser.
    """

    values: dict[str, float]
    errors: dict[str, float]
    covariance: Array
    noise: float
    q: Array
    v: Array
    residuals: Array
    simulations: int
    iterations: int

    def __repr__(self) -> str:
        """Parameters with their standard errors."""
        told = (f"{name} = {x:.6g} ± {self.errors[name]:.2g}" for name, x in self.values.items())
        return f"<Identification: {', '.join(told)}>"


class Fit:
    """Trajectories of a system by the numbers that are looked for.

    Args:
        system: Steps and known parameters.
        run: What was measured.
        sizes: By parameter that is looked for, by what it is changed.
        measured: Joints that count.
        tau: (nv,) or (steps, nv) forces.
    """

    def __init__(
        self,
        system: System,
        run: Recording,
        sizes: Mapping[str, float],
        measured: Collection[str],
        tau: Array,
    ) -> None:
        self.system, self.run, self.tau = system, run, tau
        self.names, self.sizes = tuple(sizes), np.array(list(sizes.values()))
        known = system.parameters
        self.first = np.array([known[name] for name in self.names]) / self.sizes
        self.joints = tuple(system.mechanism.joint(name) for name in measured)
        self.every = round(float(run.t[1] - run.t[0]) / system.dt)
        self.steps = self.every * (len(run.t) - 1)
        self.q, self.v = nearest_closed(system, run.q[0]), run.v[0]
        copy = system.differentiable()
        copy.start_from((self.q, self.v, float(run.t[0])), {})
        self.v = np.array(copy.v)
        found = freedoms_at(copy.tangent_solver())
        self.ways: tuple[Freedoms, Freedoms] = found[0], found[1]
        self.lowest = np.array(
            [0.0 if name.rpartition(".")[2] in NOT_NEGATIVE else -np.inf for name in self.names]
            + [-np.inf] * (len(found[0]) + len(found[1]))
        )
        self.simulations, self.failure = 0, ""

    @property
    def start(self) -> Array:
        """(n,) where the search begins: parameters in their sizes, displacements of the start."""
        return np.concatenate([self.first, np.zeros(len(self.ways[0]) + len(self.ways[1]))])

    def state(self, x: Array) -> tuple[Array, Array]:
        """Start q (nq,), loops closed, and v (nv,) of a point x (n,) of the search."""
        p, fq = len(self.names), len(self.ways[0])
        way, q = self.ways[0].directions @ x[p : p + fq], self.q.copy()
        if way.any():
            displace(self.system.mechanism.bodies, self.q, way, 1.0, q)
            q = nearest_closed(self.system, q)
        return q, self.v + self.ways[1].directions @ x[p + fq :]

    def residuals(self, xs: Sequence[Array]) -> Array:
        """(worlds, records, k) measured less simulated; NaN of what could not be run."""
        n, p, nv = len(xs), len(self.names), self.system.mechanism.nv
        starts = [self.state(x) for x in xs]
        tau = np.broadcast_to(self.tau, (n, self.steps, nv))
        found = rollout(
            self.system,
            np.array([q for q, _ in starts]),
            np.array([v for _, v in starts]),
            np.ascontiguousarray(tau),
            steps=self.steps,
            every=self.every,
            t=float(self.run.t[0]),
            parameters={
                name: np.array([x[k] for x in xs]) * self.sizes[k]
                for k, name in enumerate(self.names[:p])
            },
        )
        self.simulations += n
        self.failure = next(iter(found.failures.values()), "")
        return np.stack([self.compare(q) for q in found.q])

    def compare(self, q: Array) -> Array:
        """(records, k) measured less simulated of one trajectory q (records, nq)."""
        parts, measured = list[Array](), self.run.q[1:]
        for joint in self.joints:
            if joint.kind in ("spherical", "free"):
                pairs = zip(measured, q, strict=True)
                away = [
                    configuration_difference(self.system.mechanism, a, b)[joint.v] for a, b in pairs
                ]
                parts.append(np.array(away))
            else:
                parts.append(measured[:, joint.q] - q[:, joint.q])
        return np.hstack(parts)

    def misfit(self, x: Array) -> Array:
        """All residuals of x (n,), large ones where its trajectory could not be run."""
        found = self.residuals([x])[0].ravel()
        return np.where(np.isfinite(found), found, LOST)

    def jacobian(self, x: Array) -> Array:
        """(residuals, n) by central differences, all trajectories at once; one-sided at bounds.

        Raises:
            StepError: A trajectory beside x could not be run.
        """
        up = np.full(len(x), REACH)
        down = np.minimum(up, x - self.lowest)
        ways = np.eye(len(x))
        found = self.residuals(
            [x + h * e for h, e in zip(up, ways, strict=True)]
            + [x - h * e for h, e in zip(down, ways, strict=True)]
        )
        if not np.all(np.isfinite(found)):
            raise StepError(
                "a motion beside the best one so far could not be simulated; start from parameters"
                f" that are nearer, or take a shorter recording ({self.failure})"
            )
        more, less = found.reshape(2, len(x), -1)
        return np.asarray(((more - less) / (up + down)[:, None]).T, np.float64)


def identify(
    system: System,
    run: Recording,
    parameters: Sequence[str] | Mapping[str, float],
    *,
    tau: Array | None = None,
    measured: Collection[str] | None = None,
) -> Identification:
    """Find the parameters under which a system moves as was recorded, and their standard errors.

    Trajectories are simulated from start to end, and least squares of what was measured less what
    was simulated are sought by a trust region (``scipy.optimize.least_squares``); all trajectories
    of a derivative are one ``rollout``. The start is found along with the parameters, on closed
    loops, since it was measured with noise too. Velocities of the recording only serve as a guess
    for it. A motion that is so sensitive that the guess leads elsewhere in the end is beyond it:
    take a shorter part of the recording first, and what that gives as the next guess.

    Args:
        system: With what is known, and a guess of what is not. Nothing of it changes.
        run: Positions at equal times, a whole number of ``system.dt`` apart.
        parameters: Names of ``system.parameters``; or with their sizes, which they are changed by
            parts of. Without one the size is the guess itself, and 1 where that is zero.
        tau: Forces on the rates that acted, (nv,) or, held over each step, (steps, nv); those of
            the system unless given.
        measured: Joints whose positions count; all unless given.

    Raises:
        ModelError: A name does not exist, or recording and forces do not fit the system.
        InfeasibleError: The motion does not tell the parameters apart; it names those that are
            mixed up.
        StepError: The motion could not be simulated.
        AssemblyError: The start of the recording does not close the loops.
    """
    from scipy.optimize import least_squares

    fit = Fit(
        system,
        run,
        sizes_of(system, parameters),
        list(system.mechanism.joints) if measured is None else measured,
        check_recording(system, run, tau),
    )
    if np.any(fit.misfit(fit.start) >= LOST):
        raise StepError(
            "the motion cannot be simulated with the parameters as they are; give a better guess,"
            f" or a shorter recording ({fit.failure})"
        )
    bounds = (fit.lowest, np.full(len(fit.start), np.inf))
    start = np.maximum(fit.start, fit.lowest)
    best = least_squares(fit.misfit, start, fit.jacobian, bounds, x_scale="jac", gtol=FLAT)
    p, J = len(fit.names), np.asarray(best.jac, np.float64)
    left = np.asarray(best.fun, np.float64)
    variance = float(left @ left) / max(1, len(left) - len(best.x))
    lengths = np.linalg.norm(J, axis=0)
    _, s, Vt = np.linalg.svd(J / np.where(lengths > 0.0, lengths, 1.0), full_matrices=False)
    if not np.all(lengths > 0.0) or s[-1] <= DISTINCT * s[0]:
        part = np.abs(Vt[-1]) if np.all(lengths > 0.0) else (lengths == 0.0).astype(float)
        mixed = [name for name, x in zip(fit.names, part, strict=False) if x > 0.1 * part.max()]
        raise InfeasibleError(
            f"the motion does not tell {', '.join(mixed) or 'where it started'} apart; identify"
            " fewer parameters, measure more joints, or record a motion that moves them"
        )
    root = (Vt.T / s) / lengths[:, None]
    covariance = variance * (root @ root.T)[:p, :p] * np.outer(fit.sizes, fit.sizes)
    values = dict(zip(fit.names, (best.x[:p] * fit.sizes).tolist(), strict=True))
    there = system.differentiable()
    there.start_from((*fit.state(best.x), float(run.t[0])), values)
    return Identification(
        values,
        dict(zip(fit.names, np.sqrt(np.diag(covariance)).tolist(), strict=True)),
        covariance,
        float(np.sqrt(variance)),
        np.array(there.q),
        np.array(there.v),
        left.reshape(len(run.t) - 1, -1),
        fit.simulations,
        int(best.njev or 0),
    )


def sizes_of(system: System, parameters: Sequence[str] | Mapping[str, float]) -> dict[str, float]:
    """Sizes of parameters by name.

    Raises:
        ModelError: A parameter does not exist, or has no size.
    """
    known = system.parameters
    for name in parameters:
        require_known("parameter", name, known)
    given = dict(parameters) if isinstance(parameters, Mapping) else {}
    sizes = {name: float(given.get(name, abs(known[name]) or 1.0)) for name in parameters}
    if not sizes:
        raise ModelError("there is nothing to identify; name parameters of system.parameters")
    for name, size in sizes.items():
        if not 0.0 < size < np.inf:
            raise ModelError(f"the size of {name} is {size:g}; give a positive number")
    return sizes


def check_recording(system: System, run: Recording, tau: Array | None) -> Array:
    """The forces (nv,) or (steps, nv) of a recording that a system can follow.

    Raises:
        ModelError: It has other joints, too few records, times that are no steps, or other forces.
    """
    mechanism, dt = system.mechanism, system.dt
    if run.q.shape[1] != mechanism.nq or tuple(run.mechanism.joints) != tuple(mechanism.joints):
        raise ModelError("the recording is of another mechanism; give one of the same joints")
    apart = np.diff(run.t)
    every = round(float(apart[0]) / dt) if len(apart) else 0
    if len(apart) < 2 or every < 1 or np.abs(apart - every * dt).max() > 1e-6 * dt:
        raise ModelError(
            f"the times of the recording are not a whole number of steps of {dt:g} s apart, all of"
            " them alike; resample it, or set system.dt"
        )
    if not np.all(np.isfinite(run.q)) or not np.all(np.isfinite(run.v[0])):
        raise ModelError("the recording has numbers that are not finite; leave such records out")
    forces = np.asarray(system.tau if tau is None else tau, float)
    steps = every * len(apart)
    if forces.shape not in ((mechanism.nv,), (steps, mechanism.nv)):
        raise ModelError(
            f"tau has shape {forces.shape}; give ({mechanism.nv},), or ({steps}, {mechanism.nv})"
            " for each step of the recording"
        )
    return forces
