"""Parameters of a mechanism from a recorded motion, with what is known of their errors."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bulletbridge.control.closed_kinematics import nearest_closed
from bulletbridge.errors import InfeasibleError, ModelError, StepError, warn_user
from bulletbridge.mechanism.displacement import configuration_differences
from bulletbridge.mechanism.kinematics import displace
from bulletbridge.numerics.records import Array, Ints
from bulletbridge.system.parameters import require_known
from bulletbridge.system.recording import Recording
from bulletbridge.system.rollouts import rollout
from bulletbridge.system.system import System
from bulletbridge.system.tangents import Freedoms, freedoms_at

REACH = 1e-5
"""Change of a parameter, of its size, by which trajectories are differentiated."""
DISTINCT = 1e-8
"""What a combination of parameters moves beside the start, of what they move, to be told by it."""
NOT_NEGATIVE = (
    *("mass", "armature", "damping", "stiffness", "friction", "length"),
    *("lateral_friction", "rolling_friction", "spinning_friction", "restitution"),
)
"""Fields of parameters that are no less than zero."""
HELD = 1e-4
"""What a displacement of the start moves, as a share of what it would if nothing held it, below
which it is left as recorded: noise that shows there would be a thousand times that of the rest."""
RECORDED = 0.1
"""How much nearer the start is known than parameters, all in their sizes: a search is not to try
what contacts let happen on one side alone, like leaps, before it has tried the parameters."""
TOLD = 1e-4
"""Share of a standard error, squared, that a step must gain for the search to go on."""
FLAT = float(np.finfo(np.float64).eps)
"""Slope of half the sum of squares that ends a search. It has units: anything larger ends it early
where a motion tells little of a parameter. Other searches end where they come no further."""
PART = 0.01
"""Share of a motion from which on residuals that follow one another are told."""
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
        residuals: (records, k) measured less simulated, the start included.
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
        rates = np.arange(system.mechanism.nv)
        parts = [rates[system.mechanism.joint(name).v] for name in measured]
        self.measured: Ints = np.concatenate([np.zeros(0, np.int64), *parts])
        self.every = round(float(run.t[1] - run.t[0]) / system.dt)
        self.steps = self.every * (len(run.t) - 1)
        self.q, self.v = nearest_closed(system, run.q[0]), run.v[0]
        self.near = system.differentiable()
        self.near.start_from((self.q, self.v, float(run.t[0])), {})
        self.v = np.array(self.near.v)
        found = freedoms_at(self.near.tangent_solver())
        self.ways: tuple[Freedoms, Freedoms] = found[0], found[1]
        self.span = float(run.t[-1] - run.t[0])
        self.lowest = np.array(
            [0.0 if name.rpartition(".")[2] in NOT_NEGATIVE else -np.inf for name in self.names]
            + [-np.inf] * (len(found[0]) + len(found[1]))
        )
        self.simulations, self.failure = 0, ""

    @property
    def start(self) -> Array:
        """(n,) where the search begins: parameters in their sizes, displacements of the start.

        Its rates are what they would move by over the whole recording.
        """
        return np.concatenate([self.first, np.zeros(len(self.ways[0]) + len(self.ways[1]))])

    def state(self, x: Array) -> tuple[Array, Array]:
        """Start q (nq,), closed as parameters are now, and v (nv,) of a point x (n,)."""
        p, fq = len(self.names), len(self.ways[0])
        way, q = self.ways[0].directions @ x[p : p + fq], self.q.copy()
        if way.any():
            displace(self.system.mechanism.bodies, self.q, way, 1.0, q)
            q = nearest_closed(self.system, q)
        return q, self.v + self.ways[1].directions @ x[p + fq :] / self.span

    def residuals(self, xs: Sequence[Array]) -> Array:
        """(worlds, records, k) measured less simulated; NaN from where one could not be run."""
        n, nv = len(xs), self.system.mechanism.nv
        starts = [self.state(x) for x in xs]
        tau = np.broadcast_to(self.tau, (n, self.steps, nv))
        parameters = [self.values(x) for x in xs]
        found = rollout(
            self.system,
            np.array([q for q, _ in starts]),
            np.array([v for _, v in starts]),
            np.ascontiguousarray(tau),
            steps=self.steps,
            every=self.every,
            t=float(self.run.t[0]),
            parameters={name: np.array([one[name] for one in parameters]) for name in self.names},
        )
        self.simulations += n
        self.failure = next(iter(found.failures.values()), "")
        told = list[Array]()
        for k, (start, values) in enumerate(zip(starts, parameters, strict=True)):
            first = start[0] if k in found.failures else self.begin(start, values)
            told.append(self.compare(np.vstack([first, found.q[k]])))
        return np.stack(told)

    def values(self, x: Array) -> dict[str, float]:
        """Parameters of a point x (n,) of the search."""
        found = x[: len(self.names)] * self.sizes
        return dict(zip(self.names, found.tolist(), strict=True))

    def begin(self, start: tuple[Array, Array], values: dict[str, float]) -> Array:
        """The start q (nq,), closed as these parameters ask for."""
        self.near.start_from((*start, float(self.run.t[0])), values)
        return np.array(self.near.q)

    def compare(self, q: Array) -> Array:
        """(records, k) measured less simulated of one trajectory q (records, nq)."""
        away = configuration_differences(self.system.mechanism, self.run.q, q)
        return away[:, self.measured]

    def ended_elsewhere(self, residuals: Array) -> bool:
        """Whether residuals (records, k) are a part of the motion, and follow one another.

        Of noise, squares of their differences sum up to twice theirs (Durbin and Watson 1950).
        """
        size = float(np.sum(residuals**2))
        moved = self.compare(np.broadcast_to(self.run.q[0], self.run.q.shape))
        large = size > PART**2 * float(np.sum(moved**2))
        return large and float(np.sum(np.diff(residuals, axis=0) ** 2)) < size

    def misfit(self, x: Array) -> Array:
        """All residuals of x (n,), large ones where its trajectory could not be run."""
        found = self.residuals([x])[0].ravel()
        return np.where(np.isfinite(found), found, LOST)

    def jacobian(self, x: Array) -> Array:
        """(residuals, n) by central differences, all trajectories at once; one-sided at bounds.

        Nothing changes with displacements of the start that something holds, as contacts do.

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
        slopes = np.array(((more - less) / (up + down)[:, None]).T)
        told, of_start = self.told_of_start(slopes), slopes[:, len(self.names) :]
        of_start[:] = told @ (told.T @ of_start)
        return slopes

    def told_of_start(self, slopes: Array) -> Array:
        """Orthonormal (residuals, k): what the start moves, as far as nothing holds it there."""
        left, sizes, _ = np.linalg.svd(slopes[:, len(self.names) :], full_matrices=False)
        return np.asarray(left[:, sizes > HELD * np.sqrt(len(self.run.t))], np.float64)


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
    loops, since it was measured with noise too, as far as the motion tells it: a rate into the
    ground may be any. Velocities of the recording only serve as a guess
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
    enough = TOLD / (len(run.t) * len(fit.measured))
    scale = np.where(np.arange(len(start)) < len(fit.names), 1.0, RECORDED)
    best = least_squares(
        fit.misfit, start, fit.jacobian, bounds, x_scale=scale, ftol=enough, gtol=FLAT
    )
    p, left = len(fit.names), np.asarray(best.fun, np.float64)
    slopes = np.asarray(best.jac, np.float64)
    told, J = fit.told_of_start(slopes), slopes[:, :p]
    lengths = np.linalg.norm(J, axis=0)
    J = J - told @ (told.T @ J)
    _, s, Vt = np.linalg.svd(J / np.where(lengths > 0.0, lengths, 1.0), full_matrices=False)
    if not np.all(lengths > 0.0) or s[-1] <= DISTINCT:
        part = np.abs(Vt[-1]) if np.all(lengths > 0.0) else (lengths == 0.0).astype(float)
        mixed = [name for name, x in zip(fit.names, part, strict=True) if x > 0.1 * part.max()]
        raise InfeasibleError(
            f"the motion does not tell {', '.join(mixed)} apart; identify fewer parameters, measure"
            " more joints, or record a motion that moves them"
        )
    variance = float(left @ left) / max(1, len(left) - p - told.shape[1])
    root = (Vt.T / s) / lengths[:, None]
    covariance = variance * (root @ root.T) * np.outer(fit.sizes, fit.sizes)
    values, residuals = fit.values(best.x), left.reshape(len(run.t), -1)
    q = fit.begin(fit.state(best.x), values)
    if fit.ended_elsewhere(residuals):
        warn_user(
            f"what fits best is {np.sqrt(variance):.2g} off the recording [rad, m], by errors that"
            " go on from one record to the next, as noise does not: the search has ended elsewhere,"
            " or the model lacks something, and standard errors mean nothing; take a shorter part"
            " of the recording first, or a better guess, and look at the residuals"
        )
    return Identification(
        values,
        dict(zip(fit.names, np.sqrt(np.diag(covariance)).tolist(), strict=True)),
        covariance,
        float(np.sqrt(variance)),
        q,
        np.array(fit.near.v),
        residuals,
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
