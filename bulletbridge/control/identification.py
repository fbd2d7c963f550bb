"""Parameters of a mechanism from a recorded motion, with what is known of their errors."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

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
from bulletbridge.system.tangents import Freedoms, freedoms_at, lengths_of

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult

REACH = 1e-5
"""Change of a parameter, of its size, by which trajectories are differentiated."""
MOVED = 1e-3
"""What that moves a trajectory by at most [rad, lengths of the mechanism]: of one that is flung
about, a millionth of a mass may be an angle of which sines are not linear."""
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
STILL = 1e-13
"""Step, of sizes, that is none: a motion may tell a mass to 1e-11."""
PART = 1e-3
"""Share of a motion from which on residuals that follow one another are told."""
LOST = 1e3
"""What stands for the residuals of a trajectory that could not be run."""
FOLLOWS = 0.2
"""Distance [rad, lengths of the mechanism] from the recording up to which a trajectory follows it:
within, what it moves by is nearly linear in what is looked for."""
LED = 1e-2
"""Fall of the sum of squares, relative to it, that ends the search in a part of a motion."""
FEWEST = 5
"""Records of the shortest part of a motion that a search is led by."""
DIFFERENCE = np.array([1.0, -4.0, 6.0, -4.0, 1.0])
"""Fourth difference of five records, in which a motion that is smooth from one to the next is
nothing beside its noise."""
MIDDLE = 0.6745
"""Median of the sizes of normally distributed numbers, of their standard deviation."""


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
        self.lengths = lengths_of(self.near.dynamics.solver)[self.measured]
        self.records, self.pull = len(run.t), 0.0
        self.reaches = np.full(len(self.start), REACH)
        self.simulations, self.iterations, self.failure = 0, 0, ""

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
        steps = self.every * (self.records - 1)
        tau = np.broadcast_to(self.tau, (n, self.every * (len(self.run.t) - 1), nv))[:, :steps]
        parameters = [self.values(x) for x in xs]
        found = rollout(
            self.system,
            np.array([q for q, _ in starts]),
            np.array([v for _, v in starts]),
            np.ascontiguousarray(tau),
            steps=steps,
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
        away = configuration_differences(self.system.mechanism, self.run.q[: len(q)], q)
        return away[:, self.measured]

    def ended_elsewhere(self, residuals: Array) -> bool:
        """Whether residuals (records, k) are a part of the motion, and follow one another.

        Of noise, squares of their differences sum up to twice theirs (Durbin and Watson 1950).
        """
        size = float(np.sum(residuals**2))
        moved = self.compare(np.broadcast_to(self.run.q[0], self.run.q.shape))
        large = size > PART**2 * float(np.sum(moved**2))
        return large and float(np.sum(np.diff(residuals, axis=0) ** 2)) < size

    def follows(self, x: Array) -> int:
        """Records of the whole motion up to which the trajectory of x (n,) follows them."""
        self.records = len(self.run.t)
        near = np.abs(self.residuals([x])[0]) <= FOLLOWS * self.lengths
        return int(np.argmin(np.append(near.all(axis=1), False)))

    def noise(self) -> float:
        """What noise the recording seems to have, at most."""
        moved = self.compare(np.broadcast_to(self.run.q[0], self.run.q.shape))
        if len(moved) < len(DIFFERENCE):
            return 0.0
        parts = np.lib.stride_tricks.sliding_window_view(moved, len(DIFFERENCE), axis=0)
        size = float(np.median(np.abs(parts @ DIFFERENCE)))
        return size / (MIDDLE * float(np.linalg.norm(DIFFERENCE)))

    def misfit(self, x: Array) -> Array:
        """All residuals of x (n,), large ones where its trajectory could not be run."""
        found = self.residuals([x])[0].ravel()
        pulled = self.pull * (x[: len(self.names)] - self.first)
        return np.concatenate([np.where(np.isfinite(found), found, LOST), pulled])

    def jacobian(self, x: Array) -> Array:
        """(residuals, n) by central differences, all trajectories at once; one-sided at bounds.

        Nothing changes with displacements of the start that something holds, as contacts do.

        Raises:
            StepError: A trajectory beside x could not be run.
        """
        up = self.reaches
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
        steepest = np.abs(slopes.reshape(-1, len(self.lengths), len(x))).max(axis=0)
        fastest = np.maximum((steepest / self.lengths[:, None]).max(axis=0), MOVED / REACH)
        self.reaches = MOVED / fastest  # of the next ones
        told, of_start = self.told_of_start(slopes), slopes[:, len(self.names) :]
        of_start[:] = told @ (told.T @ of_start)
        return np.vstack([slopes, self.pull * np.eye(len(self.names), len(x))])

    def told_of_start(self, slopes: Array) -> Array:
        """Orthonormal (residuals, k): what the start moves, as far as nothing holds it there."""
        left, sizes, _ = np.linalg.svd(slopes[:, len(self.names) :], full_matrices=False)
        return np.asarray(left[:, sizes > HELD * np.sqrt(self.records)], np.float64)

    def search(self, x: Array, records: int, pull: float) -> "OptimizeResult":
        """The point that fits the first records best, from x (n,) on.

        Args:
            x: Where the search begins.
            records: How many count.
            pull: Residual of a parameter that is off the guess by its size.

        Raises:
            StepError: A trajectory beside the best one so far could not be run.
        """
        from scipy.optimize import least_squares

        self.records, self.pull = records, pull
        found = least_squares(
            self.misfit,
            x,
            self.jacobian,
            (self.lowest, np.full(len(x), np.inf)),
            x_scale=np.where(np.arange(len(x)) < len(self.names), 1.0, RECORDED),
            ftol=LED if records < len(self.run.t) else TOLD / (records * len(self.measured)),
            xtol=STILL,
            gtol=FLAT,
        )
        self.iterations += int(found.njev or 0)
        return found

    def led_along(self, x: Array) -> Array:
        """A point from which the whole recording is followed, found by longer and longer parts.

        The sum of squares of a long motion has minima everywhere where what it moves by bends: a
        search is led by the part along which its trajectory follows, and by the next one from where
        that has led. Of a short part that does not tell parameters, they stay near their guess: by
        as much as their sizes are wide beside the noise.
        """
        records, followed = 0, self.follows(x)
        while records < followed < len(self.run.t):
            records = max(followed, FEWEST)
            x = np.asarray(self.search(x, records, self.noise()).x, np.float64)
            followed = self.follows(x)
        return x


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
    of a derivative are one ``rollout``. Where the guess leads away from the recording, the part up
    to there is fitted first, and then the longer ones that this has it follow. The start is found
    along with the parameters, on closed loops, since it was measured with noise too, as far as the
    motion tells it: a rate into the ground may be any. Velocities of the recording only serve as a
    guess for it.

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
    start = fit.led_along(np.maximum(fit.start, fit.lowest))
    best = fit.search(start, len(run.t), 0.0)
    p, left = len(fit.names), np.asarray(best.fun, np.float64)[: -len(fit.names)]
    slopes = np.asarray(best.jac, np.float64)[: len(left)]
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
        fit.iterations,
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
