"""Parameters of a mechanism from a recorded motion, with what is known of their errors."""

import math
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bulletbridge.control.closed_kinematics import nearest_closed
from bulletbridge.errors import AssemblyError, InfeasibleError, ModelError, StepError, warn_user
from bulletbridge.mechanism.displacement import configuration_differences
from bulletbridge.mechanism.kinematics import displace
from bulletbridge.numerics.records import Array, Ints
from bulletbridge.system.parameters import moves_frames, require_known
from bulletbridge.system.recording import Recording
from bulletbridge.system.rollouts import Rollout, rollout
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
"""Fall of the sum of squares, relative to it, that ends the search in pieces of a motion."""
FEWEST = 3
"""Records of the shortest pieces of a motion that a search is led by."""
DIFFERENCE = np.array([1.0, -4.0, 6.0, -4.0, 1.0])
"""Fourth difference of five records, in which a motion that is smooth from one to the next is
nothing beside its noise."""
MIDDLE = 0.6745
"""Median of the sizes of normally distributed numbers, of their standard deviation."""


NO_COLUMNS = slice(0, 0)
"""Of a piece whose start is given."""


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
        pieces: Parts of the recording that are followed from starts of their own: several where
            noise leads every trajectory away from it, as of a motion that is chaotic.
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
    pieces: int

    def __repr__(self) -> str:
        """Parameters with their standard errors."""
        told = (f"{name} = {x:.6g} ± {self.errors[name]:.2g}" for name, x in self.values.items())
        return f"<Identification: {', '.join(told)}>"


class Piece(NamedTuple):
    """A part of a recording that is followed from a start of its own.

    Attributes:
        records: Which ones.
        q: (nq,) configuration of the start, on closed loops,
        v: (nv,) and its rates.
        ways: What may displace these, and change them.
        columns: Their numbers in a point of the search.
    """

    records: slice
    q: Array
    v: Array
    ways: tuple[Freedoms, Freedoms]
    columns: slice


class Fit:
    """Trajectories of a system by the numbers that are looked for.

    A point x of the search has parameters in their sizes, then displacements of the start of each
    piece, and changes of its rates by what they would move by over the whole recording.

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
        self.system, self.run = system, run
        self.names, self.sizes = tuple(sizes), np.array(list(sizes.values()))
        known = system.parameters
        self.first = np.array([known[name] for name in self.names]) / self.sizes
        nv = system.mechanism.nv
        parts = [np.arange(nv)[system.mechanism.joint(name).v] for name in measured]
        self.measured: Ints = np.concatenate([np.zeros(0, np.int64), *parts])
        self.every = round(float(run.t[1] - run.t[0]) / system.dt)
        self.tau = np.broadcast_to(tau, (self.every * (len(run.t) - 1), nv))
        self.near = system.differentiable()
        self.span = float(run.t[-1] - run.t[0])
        self.pull, self.simulations, self.iterations, self.failure = 0.0, 0, 0, ""
        self.pieces: tuple[Piece, ...] = ()
        self.lowest = self.reaches = np.zeros(0)
        self.start = self.begun()
        self.lengths = lengths_of(self.near.dynamics.solver)[self.measured]

    def begun(self) -> Array:
        """The guess, and the whole recording from its own start."""
        return self.have([self.piece(self.whole)], self.first)

    @property
    def whole(self) -> slice:
        """All records."""
        return slice(0, len(self.run.t))

    def piece(self, records: slice, start: tuple[Array, Array] | None = None) -> Piece:
        """A piece that begins as was recorded, unless its start q (nq,), v (nv,) is given."""
        first = records.start
        if start is None:
            start = nearest_closed(self.system, self.run.q[first]), self.run.v[first]
        self.near.start_from((*start, float(self.run.t[first])), self.values(self.first))
        ways = freedoms_at(self.near.tangent_solver())
        return Piece(records, start[0], np.array(self.near.v), (ways[0], ways[1]), NO_COLUMNS)

    def have(self, pieces: Sequence[Piece], x: Array) -> Array:
        """Follow these pieces; a point with the parameters of x at which they begin so."""
        found, end = list[Piece](), len(self.names)
        for piece in pieces:
            columns = slice(end, end + len(piece.ways[0]) + len(piece.ways[1]))
            found.append(piece._replace(columns=columns))
            end = columns.stop
        self.pieces, self.reaches = tuple(found), np.full(end, REACH)
        self.lowest = np.full(end, -np.inf)
        for k, name in enumerate(self.names):
            if name.rpartition(".")[2] in NOT_NEGATIVE:
                self.lowest[k] = 0.0
        return np.append(x[: len(self.names)], np.zeros(end - len(self.names)))

    def cut(self, most: int, x: Array) -> list[Piece]:
        """So many pieces that follow the recording for as long as they do, or fewer."""
        pieces, first = list[Piece](), 0
        while first <= len(self.run.t) - FEWEST and len(pieces) < most:
            piece = self.led_from(first, x)
            if piece is None:
                first += 1
            else:
                pieces.append(piece)
                first = piece.records.stop
        return pieces

    def led_from(self, first: int, x: Array) -> Piece | None:
        """A piece from a record on, begun as an earlier one leads there, or as it was recorded."""
        starts, rest = list[tuple[Array, Array] | None](), slice(first, len(self.run.t))
        for led in self.pieces:
            n = first - led.records.start
            if n == 0:
                starts.append(self.state(x, led))
            elif 0 < n and first < led.records.stop:
                _, found = self.follow([(x, led)])
                starts.append((found.q[0, n - 1], found.v[0, n - 1]))
        for start in (*starts, None):
            piece = self.piece(rest, start)
            (away,), _ = self.follow([(x, piece)])
            near = (np.abs(away) <= FOLLOWS * self.lengths).all(axis=1)
            count = int(np.argmin(np.append(near, False)))
            if count >= FEWEST:
                return piece._replace(records=slice(first, first + count))
        return None

    def state(self, x: Array, piece: Piece) -> tuple[Array, Array]:
        """Start q (nq,), closed as parameters are now, and v (nv,) of a piece at a point x (n,)."""
        if piece.columns == NO_COLUMNS:
            return piece.q, piece.v
        by_q, by_v = piece.ways
        moved, changed = np.split(x[piece.columns], [len(by_q)])
        way, q = by_q.directions @ moved, piece.q.copy()
        if way.any():
            displace(self.system.mechanism.bodies, piece.q, way, 1.0, q)
            q = nearest_closed(self.system, q)
        return q, piece.v + by_v.directions @ changed / self.span

    def residuals(self, xs: Sequence[Array]) -> Array:
        """(worlds, records, k) measured less simulated; NaN from where one could not be run."""
        told, _ = self.follow([(x, piece) for x in xs for piece in self.pieces])
        return np.concatenate(told).reshape(len(xs), -1, len(self.measured))

    def follow(self, asked: Sequence[tuple[Array, Piece]]) -> tuple[list[Array], Rollout]:
        """The same of pieces, each at a point x, (records, k); and their trajectories."""
        nv, longest = self.tau.shape[1], max(len(self.run.t[one.records]) for _, one in asked)
        steps = self.every * (longest - 1)
        tau = np.zeros((len(asked), steps, nv))
        for k, (_, piece) in enumerate(asked):
            part = self.tau[self.every * piece.records.start :][:steps]
            tau[k, : len(part)] = part
        starts = [self.state(x, piece) for x, piece in asked]
        times = [float(self.run.t[piece.records.start]) for _, piece in asked]
        parameters = [self.values(x) for x, _ in asked]
        found = rollout(
            self.system,
            np.array([q for q, _ in starts]),
            np.array([v for _, v in starts]),
            tau,
            steps=steps,
            every=self.every,
            t=np.array(times),
            parameters={name: np.array([one[name] for one in parameters]) for name in self.names},
        )
        self.simulations += len(asked)
        self.failure = next(iter(found.failures.values()), "")
        told, opened = list[Array](), moves_frames(self.system.constraints, parameters[0])
        for k, (_, piece) in enumerate(asked):
            first = starts[k][0]
            if opened and k not in found.failures:
                first = self.begin((*starts[k], times[k]), parameters[k])
            q = np.vstack([first, found.q[k]])
            told.append(self.compare(self.run.q[piece.records], q))
        return told, found

    def values(self, x: Array) -> dict[str, float]:
        """Parameters of a point x (n,) of the search."""
        found = x[: len(self.names)] * self.sizes
        return dict(zip(self.names, found.tolist(), strict=True))

    def begin(self, start: tuple[Array, Array, float], values: dict[str, float]) -> Array:
        """The start q (nq,) of q, v, t, closed as these parameters ask for."""
        self.near.start_from(start, values)
        return np.array(self.near.q)

    def compare(self, measured: Array, q: Array) -> Array:
        """(records, k) measured (records, nq) less simulated, of a trajectory as long or longer."""
        mechanism = self.system.mechanism
        return configuration_differences(mechanism, measured, q[: len(measured)])[:, self.measured]

    def moved(self) -> Array:
        """(records, k) of the recording, from its start."""
        return self.compare(self.run.q, np.broadcast_to(self.run.q[0], self.run.q.shape))

    def ended_elsewhere(self, residuals: Array) -> bool:
        """Whether residuals (records, k) are a part of the motion, and follow one another.

        Of noise, squares of their differences sum up to twice theirs (Durbin and Watson 1950).
        """
        size = float(np.sum(residuals**2))
        large = size > PART**2 * float(np.sum(self.moved() ** 2))
        return large and float(np.sum(np.diff(residuals, axis=0) ** 2)) < size

    def noise(self) -> float:
        """What noise the recording seems to have, at most."""
        moved = self.moved()
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

        Nothing changes with displacements of a start that something holds, as contacts do.

        Raises:
            StepError: A trajectory beside x could not be run.
        """
        up = self.reaches
        down = np.minimum(up, x - self.lowest)
        p, ways = len(self.names), np.eye(len(x))
        asked = [(k, piece) for k in range(p) for piece in self.pieces]
        for piece in self.pieces:
            asked += [(k, piece) for k in range(piece.columns.start, piece.columns.stop)]
        found, _ = self.follow(
            [(x + up[k] * ways[k], piece) for k, piece in asked]
            + [(x - down[k] * ways[k], piece) for k, piece in asked]
        )
        if not all(np.all(np.isfinite(one)) for one in found):
            raise StepError(
                "a motion beside the best one so far could not be simulated; start from parameters"
                f" that are nearer, or take a shorter recording ({self.failure})"
            )
        slopes = np.zeros((*self.run.t.shape, len(self.measured), len(x)))
        for (k, piece), more, less in zip(asked, found, found[len(asked) :], strict=False):
            slopes[piece.records, :, k] = (more - less) / (up[k] + down[k])
        steepest = np.abs(slopes).max(axis=0) / self.lengths[:, None]
        self.reaches = MOVED / np.maximum(steepest.max(axis=0), MOVED / REACH)  # of the next ones
        for piece in self.pieces:
            own = slopes[piece.records, :, piece.columns]
            told = self.told_of_start(own.reshape(-1, own.shape[2]))
            own[:] = (told @ (told.T @ own.reshape(len(told), -1))).reshape(own.shape)
        counted = np.concatenate([slopes[piece.records] for piece in self.pieces])
        return np.vstack([counted.reshape(-1, len(x)), self.pull * np.eye(p, len(x))])

    def beside_starts(self, slopes: Array, pieces: Sequence[Piece]) -> tuple[Array, int]:
        """What parameters move that no starts do, (residuals, p), and how many numbers these have.

        Takes slopes (residuals, n) where pieces are all of the recording.
        """
        J, count, k = slopes[:, : len(self.names)].copy(), 0, len(self.measured)
        for piece in pieces:
            rows = slice(k * piece.records.start, k * piece.records.stop)
            told = self.told_of_start(slopes[rows, piece.columns])
            J[rows] -= told @ (told.T @ J[rows])
            count += told.shape[1]
        return J, count

    def told_of_start(self, slopes: Array) -> Array:
        """Orthonormal (residuals, k): what a start moves, as far as nothing holds it there.

        Takes slopes of a piece by displacements and rates of its start.
        """
        left, sizes, _ = np.linalg.svd(slopes, full_matrices=False)
        return np.asarray(left[:, sizes > HELD * np.sqrt(len(self.run.t))], np.float64)

    def search(self, x: Array, ends: float) -> "OptimizeResult":
        """The point that fits all pieces best, from x (n,) on.

        Args:
            x: Where the search begins.
            ends: Fall of the sum of squares, relative to it, that ends it.

        Raises:
            StepError: A trajectory beside the best one so far could not be run.
        """
        from scipy.optimize import least_squares

        found = least_squares(
            self.misfit,
            x,
            self.jacobian,
            (self.lowest, np.full(len(x), np.inf)),
            x_scale=np.where(np.arange(len(x)) < len(self.names), 1.0, RECORDED),
            ftol=ends,
            xtol=STILL,
            gtol=FLAT,
        )
        self.iterations += int(found.njev or 0)
        return found

    def best(self, most: int) -> tuple["OptimizeResult", tuple[Piece, ...]]:
        """What fits the recording best, and in which pieces, if none can be followed for longer.

        The sum of squares of a long motion has minima everywhere where what it moves by bends; that
        of pieces from starts of their own, along which it is followed, has not (multiple shooting:
        Bock 1983). What they tell has them follow for longer, until the first goes all the way, or
        noise leads all away.

        Args:
            most: Pieces at once.
        """
        self.pull, x, before = self.noise(), self.begun(), (math.inf, math.inf)
        pieces = self.cut(most, x)
        while pieces and self.progress(pieces) < before and pieces[0].records != self.whole:
            before = self.progress(pieces)
            x = np.asarray(self.search(self.have(pieces, x), LED).x, np.float64)
            pieces = self.cut(most, x)
        self.pull = 0.0
        if before[0] > 0 or (pieces and pieces[0].records == self.whole):
            first = self.pieces[0]
            start = self.state(x, first) if first.records.start == 0 else None
            x = self.have([self.piece(self.whole, start)], x)
        return self.search(x, TOLD / (len(self.run.t) * len(self.measured))), self.pieces

    def progress(self, pieces: Sequence[Piece]) -> tuple[float, float]:
        """Records that no piece follows, and pieces: the fewer the better."""
        followed = sum(len(self.run.t[piece.records]) for piece in pieces)
        return len(self.run.t) - followed, len(pieces)

    def left(self, found: "OptimizeResult") -> Array:
        """(records, k) measured less simulated of a search in the whole recording."""
        return np.asarray(found.fun, np.float64)[: -len(self.names)].reshape(len(self.run.t), -1)


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
    of a derivative are one ``rollout``. Where the guess leads away from the recording, pieces of it
    are fitted first, each from a start of its own, and then longer ones. The start is found along
    with the parameters, on closed loops, since it was measured with noise too, as far as the motion
    tells it: a rate into the ground may be any. Velocities of the recording only serve as a guess
    for starts.

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
    best, pieces = fit.best(1)
    if fit.ended_elsewhere(fit.left(best)):
        with suppress(StepError, AssemblyError):
            again = fit.best(len(run.t))
            best, pieces = min((best, pieces), again, key=lambda found: float(found[0].cost))
    p, residuals = len(fit.names), fit.left(best)
    left = residuals.ravel()
    slopes = np.asarray(best.jac, np.float64)[: len(left)]
    lengths = np.linalg.norm(slopes[:, :p], axis=0)
    J, of_starts = fit.beside_starts(slopes, pieces)
    _, s, Vt = np.linalg.svd(J / np.where(lengths > 0.0, lengths, 1.0), full_matrices=False)
    if not np.all(lengths > 0.0) or s[-1] <= DISTINCT:
        part = np.abs(Vt[-1]) if np.all(lengths > 0.0) else (lengths == 0.0).astype(float)
        mixed = [name for name, x in zip(fit.names, part, strict=True) if x > 0.1 * part.max()]
        raise InfeasibleError(
            f"the motion does not tell {', '.join(mixed)} apart; identify fewer parameters, measure"
            " more joints, or record a motion that moves them"
        )
    variance = float(left @ left) / max(1, len(left) - p - of_starts)
    root = (Vt.T / s) / lengths[:, None]
    covariance = variance * (root @ root.T) * np.outer(fit.sizes, fit.sizes)
    values = fit.values(best.x)
    q = fit.begin((*fit.state(best.x, pieces[0]), float(run.t[0])), values)
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
        len(pieces),
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
