"""Bringing a state that somebody else has advanced onto the loops, and what that took."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple, cast

import numpy as np

from bulletbridge.compilation.announce import announce_compilation
from bulletbridge.compilation.stored_calls import StoredCall
from bulletbridge.constraints.arrays import Encoded
from bulletbridge.constraints.records import TARGET
from bulletbridge.engine.failures import widest
from bulletbridge.engine.records import CORRECTION, DENSE_REQUIRED, DONE, LEFT_OPEN, NOT_CLOSED
from bulletbridge.engine.redundancy import Decision
from bulletbridge.engine.sparse_plan import SparseStepper
from bulletbridge.engine.stepper import Solver
from bulletbridge.errors import AssemblyError, ModelError
from bulletbridge.formulations.system_dynamics import shortest_multipliers
from bulletbridge.inequalities.filter_kernel import FilterRoom, run_filter, run_filters
from bulletbridge.inequalities.link_plan import link_arrays, links_pay_beside_loops
from bulletbridge.inequalities.sparse_filter_kernel import run_sparse_filter
from bulletbridge.inequalities.state_filter import NO_SUCH_BODY
from bulletbridge.inequalities.sticking import POSITION, VELOCITY, filter_arrays
from bulletbridge.mechanism.kinematics import displace
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.mechanism.records import FREE, STICKING_POINT
from bulletbridge.numerics.projection import Caps
from bulletbridge.numerics.records import Array, Mask

PARTS = 8, 64
"""Numbers of parts in which rates are followed along the loops where they cannot be closed else."""
CUT_OFF = 99.0
"""Rate [rad/s, m/s] from which on one may have been cut off, as by Bullet at 100."""
NO_STICKING_POINTS = np.zeros(0, STICKING_POINT)
OPAQUE = np.dtype((np.void, STICKING_POINT.itemsize))
"""The same without fields, which numpy would copy one by one."""
NO_POINTS = np.zeros((2, 0, 3))


class Wrench(NamedTuple):
    """What acts on the link of frame b at a point; the opposite acts on the link of frame a."""

    point: Array  # (3,) origin of frame b in the world [m]
    R: Array  # (3, 3) its axes
    force: Array  # (3,) world axes [N s], or [N] when divided by a time
    moment: Array  # (3,) about the point [N m s]


@dataclass(frozen=True, eq=False)
class Impulses:
    """Impulses with which one filter closed the constraints: M dv = Jᵀ mu.

    Where a step has led to the state, what corrected it acted at the start of the step, and is part
    of them. Where rows share a load, those of least norm; close to a singular position without
    those of rows that the step takes for weak, which are any size there and do next to nothing.

    Attributes:
        solver: Where the rows are described.
        start, state: (nq + nv + 1) q, v and t at the start of the step, and after the filter.
        dt: Step [s].
        share: Of the correction that acted at the start [1/s]; 0 where no step has led there.
        found: (2, nc) multipliers of the velocity filter [N s, N m s], and of the correction times
            s, as the kernel has them: none of rows that follow from others.
        points: (2, n, 3) the same of the sticking points: normal, two tangents.
        closed: (nc,) rows of constraints that were not left open.
        unique: Whether the rows determine them.
        eased: (nc,) what acts at the start besides, and moves nothing: see ``easing``.
    """

    solver: Solver
    start: Array
    state: Array
    dt: float
    share: float
    found: Array
    points: Array
    closed: Mask
    unique: bool
    eased: Array | float = 0.0

    @cached_property
    def multipliers(self) -> Array:
        """Multipliers (2, nc) as ``found``; of least norm where the rows do not determine them."""
        if self.unique or not self.found.any():
            return self.found
        return self._shortest(self.state, self.found)

    def _shortest(self, state: Array, multipliers: Array) -> Array:
        """Multipliers (n, nc) of least norm that do what given ones do at a state."""
        solver, nq = self.solver, self.solver.mechanism.nq
        terms = solver.terms(state[:nq], state[nq:-1], float(state[-1]))
        terms = terms._replace(J=terms.J * self.closed[:, None])
        return np.array(
            [shortest_multipliers(solver, terms, terms.J.T @ x)[0] for x in multipliers]
        )

    @property
    def nothing(self) -> "Impulses":
        """Those of a filter that found all closed at the start."""
        none = np.zeros_like(self.found)
        return replace(self, state=self.start, share=0.0, found=none)

    def easing(self, wrenches: Mapping[str, Array]) -> "Impulses":
        """The same with what takes from another's impulses all that moves nothing at the start.

        Args:
            wrenches: (6,) of loops, as somebody else's step has exerted them: moment about the
                origin of frame b [N m s] and force [N s] on its link, world axes. Together they
                are those of least norm then that move the bodies alike.
        """
        borne, names = np.zeros(self.solver.encoded.nc), self.solver.encoded.rows
        for (name, part), (_, rows) in zip(names.items(), self._rows_at_start, strict=False):
            if name in wrenches:
                borne[part] = np.linalg.lstsq(rows.T, wrenches[name], rcond=None)[0]
        borne *= self.closed
        return replace(self, eased=self._shortest(self.start, borne[None])[0] - borne)

    @cached_property
    def poses(self) -> np.ndarray:
        """(nb,) of the bodies after the filter."""
        return self.solver.poses_at(self.state[: self.solver.mechanism.nq])

    @cached_property
    def start_poses(self) -> np.ndarray:
        """(nb,) of the bodies at the start of the step."""
        return self.solver.poses_at(self.start[: self.solver.mechanism.nq])

    @cached_property
    def _rows_at_end(self) -> list[tuple[Array, Array]]:
        return self.solver.wrench_rows_of(self.poses, slice(None), float(self.state[-1]))

    @cached_property
    def _rows_at_start(self) -> list[tuple[Array, Array]]:
        return self.solver.wrench_rows_of(self.start_poses, slice(None), float(self.start[-1]))

    @property
    def velocity(self) -> Array:
        """(nc,) multipliers of what changed the velocity [N s, N m s], rows as kept: M dv = Jᵀ mu.

        Of what acted at the start J is that there.
        """
        return self.multipliers[VELOCITY] + self.share * self.multipliers[POSITION]

    @property
    def position(self) -> Array:
        """(nc,) those of the correction [N s, N m s]: M dq / dt = Jᵀ mu."""
        return self.multipliers[POSITION] / self.dt

    @property
    def sticking(self) -> Array:
        """(n, 3) both together on the sticking points, along their normals and tangents [N s]."""
        return self.points[VELOCITY] + self.points[POSITION] / self.dt

    def of(self, name: str) -> Array:
        """Multipliers (2, rows) of a constraint, of its velocity and of its position.

        A coupling has one: times a coefficient it is the impulse on that joint.
        """
        part = self.solver.encoded.rows[name]
        velocity, position = self.multipliers[:, part]
        return np.array([velocity + self.share * position, position / self.dt])

    def sizes(self, name: str) -> tuple[float, float]:
        """Norms of ``of``: of what changed its velocity, and of what moved it."""
        velocity, position = self.multipliers[:, self.solver.encoded.rows[name]].tolist()
        both = [a + self.share * b for a, b in zip(velocity, position, strict=True)]
        return math.hypot(*both), math.hypot(*(b / self.dt for b in position))

    def wrench(self, name: str, corrected: bool = True, on_mover: bool = False) -> Wrench | None:
        """Impulse of a loop as force and moment; None for what is not a loop.

        Args:
            name: The loop.
            corrected: Whether what moved the bodies counts too, not only what changed velocities.
            on_mover: Whether it acts at the origin of frame a where b stands still.
        """
        encoded = self.solver.encoded
        index = list(encoded.rows).index(name)
        if index >= len(encoded.loops):
            return None
        velocity, position = self.multipliers[:, encoded.rows[name]]
        at_end = velocity + position / self.dt if corrected else velocity
        rows = self._rows_at_end[index]
        found = self._wrench_at(self.poses, rows, index, at_end, on_mover)
        at_start = self.share * position
        if isinstance(self.eased, np.ndarray):
            at_start = at_start + self.eased[encoded.rows[name]]
        elif self.share == 0.0:
            return found
        # of the same point, which has moved since
        rows = self._rows_at_start[index]
        first = self._wrench_at(self.start_poses, rows, index, at_start, on_mover)
        both = first.force + found.force, first.moment + found.moment
        return Wrench(found.point, found.R, *both)

    def _wrench_at(
        self,
        poses: np.ndarray,
        at: tuple[Array, Array],
        index: int,
        multipliers: Array,
        on_mover: bool,
    ) -> Wrench:
        """Wrench of the loop of that number where bodies stand so, with its rows there."""
        loop, (point, rows) = self.solver.encoded.loops[index], at
        both = multipliers @ rows
        R = poses["R"][loop["body_b"]] @ loop["R_b"]
        moment, force = both[:3], both[3:]
        if on_mover and loop["body_b"] == 0:
            there = poses[loop["body_a"]]
            other = there["origin"] + there["p"] + there["R"] @ loop["p_a"]
            moment, point = moment + np.cross(point - other, force), other
        return Wrench(point, R, force, moment)


OPEN = (NOT_CLOSED, LEFT_OPEN)
"""Failures that sticking points may be the reason of, or an elimination of links, which tells no
more than the root of round-off where many rows are lost at once."""


def has_points_by_links(solver: Solver, stepper: SparseStepper) -> bool:
    """Whether links are to be eliminated where points stick, too.

    Where loops run in circles, as in nets, elimination hardly converges then.
    """
    trees = np.count_nonzero(solver.mechanism.bodies["parent"][1:] == 0)
    in_trees = len(solver.encoded.loops) <= int(trees)
    return in_trees or links_pay_beside_loops(solver, stepper)


def require_done(failure: int) -> None:
    """Say why a filter failed.

    Raises:
        ModelError: A sticking point has no such body, or no direction.
        AssemblyError: The loops cannot be closed.
    """
    if failure == NO_SUCH_BODY:
        raise ModelError(
            "a sticking point names a body that the mechanism does not have, or has no direction"
        )
    if failure != DONE:
        raise AssemblyError("the loops cannot be closed at this state; call assemble()")


def check_records(sticking: np.ndarray) -> None:
    """Refuse what are no sticking points.

    Raises:
        ModelError: Not an array (n,) of ``StickingPoint``.
    """
    if sticking.ndim != 1 or sticking.dtype != STICKING_POINT:
        raise ModelError(
            "sticking points make an array (n,) of dtype mechanism.records.STICKING_POINT, not"
            f" {sticking.shape} of {sticking.dtype}"
        )


def is_free(mechanism: Mechanism, encoded: Encoded, names: tuple[str, ...]) -> bool:
    """Whether the bodies hang together by all but the named loops, and nothing else holds them."""
    bodies = mechanism.bodies
    if encoded.users or len(mechanism.beams) or not len(bodies) > 1:
        return False
    tree = list(range(len(bodies)))  # of each body
    for i in range(1, len(bodies)):
        if bodies[i]["parent"] > 0:
            tree[i] = tree[int(bodies[i]["parent"])]
        elif bodies[i]["joint"] != FREE:
            return False
    rows = list(encoded.rows)
    joined = [
        {int(loop["body_a"]), int(loop["body_b"])}
        for name, loop in zip(rows, encoded.loops, strict=False)
        if name not in names
    ]
    for name, coupling in zip(rows[len(encoded.loops) :], encoded.couplings, strict=False):
        if name in names:
            continue
        first, count = int(coupling["first"]), int(coupling["count"])
        axes = encoded.terms["axis"][first : first + count]
        joined.append(set(mechanism.axes["body"][axes].tolist()))
    for members in joined:
        trees = {tree[body] for body in members}
        tree = [min(trees) if t in trees else t for t in tree]
    return all(t == tree[1] != tree[0] for t in tree[1:])


class Filter:
    """Runs the compiled filter on the state of a solver.

    Args:
        solver: Whose state it is.
        decision: Its rank, and what that is without some of the constraints.

    Attributes:
        multipliers: (2, nc) of the last call, as in ``Impulses.found``.
        targets: (1, targets) prescribed motions that the next call closes the loops for.
        sticking_points: Room for those of a call; see ``take_points``.
        room: What stands for the room that sticking points have; another one once it has grown.
    """

    def __init__(self, solver: Solver, decision: Decision) -> None:
        self.solver, self._decision = solver, decision
        self._caps: dict[tuple[str, ...], Caps] = {(): decision.caps}
        self._allowed = solver.encoded.loops["allowed"].copy()
        self._sizes = solver.rows[0][["unit", "scale"]].copy()
        self._free: dict[tuple[str, ...], int] = {}
        self._every = np.ones(solver.encoded.nc, bool)
        self.targets, self._before = solver.still.copy(), solver.state.copy()
        numbers = TARGET.itemsize // 8
        self._places = [*self.targets.view(np.float64).reshape(-1, numbers)]
        self._nq = solver.mechanism.nq
        self._numbers = np.zeros(len(solver.state) - 1)
        self.multipliers = np.zeros((2, solver.encoded.nc))
        self._allocate(0)

    def __call__(
        self, q: Array, v: Array, sticking: np.ndarray, names: tuple[str, ...], led: bool
    ) -> Impulses:
        """Take a state one step later, without the named constraints; see ``System.filter``.

        ``led`` says whether a step from the state of the solver has led there.

        Raises:
            ModelError: There is no such constraint, or ``sticking`` is no array of such points.
            AssemblyError: The loops cannot be closed near that state; the one before it stays.
        """
        solver, count = self.solver, len(sticking)
        if sticking is not NO_STICKING_POINTS:
            check_records(sticking)
            self.take_points(sticking)
        self._numbers[: self._nq], self._numbers[self._nq :] = q, v
        if solver.encoded.motions:
            self.prescribe()
        failure = NOT_CLOSED
        try:
            if names:
                self._leave_out(names)
            failure = self.run(self._numbers, count, self.is_free(names), int(led))
            if solver.user_size:
                solver.finish_call(failure)
        finally:
            if names:
                self._put_back()
        require_done(failure)
        return self.impulses(count, names)

    def take_back(self) -> None:
        """Have the solver at the state again from which the last call has gone on."""
        self.solver.state[:] = self._before
        self.solver.control[0]["factored"] = 0

    def take_points(self, sticking: np.ndarray) -> None:
        """Put sticking points where the next call finds them."""
        count = len(sticking)
        if count > len(self.sticking_points):
            self._allocate(2 * count)
        self._room[:count] = sticking.view(OPAQUE)

    def prescribe(self) -> None:
        """Ask for prescribed motions at the end of the coming step, which the next call takes."""
        t = self.solver.t + self.solver.control["dt"].item()
        self.targets[:] = self.solver.encoded.targets(np.array([t]))

    def take_targets(self, given: Sequence[Array]) -> None:
        """Take prescribed motions there from somebody who knows them: (12,) each."""
        for place, target in zip(self._places, given, strict=True):
            place[:] = target

    def is_free(self, names: tuple[str, ...] = ()) -> int:
        """Whether nothing outside holds the bodies without the named constraints."""
        free = self._free.get(names)
        if free is None:
            solver = self.solver
            free = self._free[names] = int(is_free(solver.mechanism, solver.encoded, names))
        return free

    @property
    def is_unique(self) -> bool:
        """Whether the rows, all of them closed, determined the multipliers of the last call."""
        return self.solver.control["rank"].item() == len(self._every)

    def impulses(self, count: int, names: tuple[str, ...] = ()) -> Impulses:
        """What the last call took, with ``count`` sticking points, less the named constraints."""
        solver, points = self.solver, NO_POINTS
        if count:
            points = self._points[:, : 3 * count].copy().reshape(2, count, 3)
        closed = ~self._rows_of(names) if names else self._every
        rank: int = solver.control["rank"].item()
        unique = rank == (np.count_nonzero(closed) if names else len(closed))
        dt, share, found = solver.control["dt"].item(), self._share.item(), self.multipliers.copy()
        start, state = self._before.copy(), solver.state.copy()
        return Impulses(solver, start, state, dt, share, found, points, closed, unique)

    def pulls(self, count: int, dt: float) -> list[float]:
        """Impulses along the normals of the last call's sticking points that pull at them [N s].

        Args:
            count: How many points there were.
            dt: The step [s].
        """
        velocity, position = (
            self._points[level, : 3 * count : 3].tolist() for level in (VELOCITY, POSITION)
        )
        return [-x - y / dt for x, y in zip(velocity, position, strict=True)]

    def _rows_of(self, names: tuple[str, ...]) -> Mask:
        """(nc,) rows of the named constraints."""
        rows = np.zeros(self.solver.encoded.nc, bool)
        for name in names:
            rows[self.solver.encoded.rows[name]] = True
        return rows

    def _allocate(self, count: int) -> None:
        """Make room for ``count`` sticking points."""
        solver = self.solver
        holding = filter_arrays(count, solver.mechanism.nv, self.multipliers)
        self.sticking_points, self._points = holding.points, holding.point_impulses
        self._share = holding.share
        self._room = cast(np.ndarray, holding.points).view(OPAQUE)
        own, rest = FilterRoom(holding, self.targets, self._before), (self._numbers, 0, 0, 0)
        with announce_compilation(run_filter):
            call = StoredCall(run_filter, (solver.arrays, own), rest)
        self._dense, self.room = call, object()
        self._sparse: StoredCall | None = None
        self._planned, self._points_by_links = solver.stepper, False
        if isinstance(solver.stepper, SparseStepper):
            fixed = solver.stepper.arrays, solver.arrays, link_arrays(solver, count), own
            self._points_by_links = has_points_by_links(solver, solver.stepper)
            with announce_compilation(run_sparse_filter):
                self._sparse = StoredCall(run_sparse_filter, fixed, rest)

    def call(self) -> StoredCall:
        """The kernel with its arrays; by elimination of links if steps are."""
        if self._planned is not self.solver.stepper:
            self._allocate(len(self.sticking_points))
        return self._dense if self._sparse is None else self._sparse

    @property
    def is_by_links(self) -> bool:
        """Whether ``call`` eliminates links."""
        return self._sparse is not None

    def takes_links(self, count: int) -> bool:
        """Whether ``run`` eliminates links where so many points stick."""
        return self.is_by_links and (count == 0 or self._points_by_links)

    def run(self, numbers: Array, count: int, free: int, led: int) -> int:
        """Run the kernel; a failure, or DONE.

        Args:
            numbers: (nq + nv,) q and v, which are filtered in place.
            count: Points that stick; those that keep the loops from closing are let go.
            free: As of ``is_free``.
            led: Whether a step from the solver's state has led there.
        """
        call = self.call()
        if not self.takes_links(count):
            call = self._dense
        failure: int = call.call((numbers, count, free, led))
        return failure if failure == DONE else self.run_after(failure, numbers, count, free, led)

    def run_after(self, failure: int, numbers: Array, count: int, free: int, led: int) -> int:
        """Try what may still close the loops after a failure; as ``run``.

        In joint coordinates where links do not do, then without the points.
        """
        if self.takes_links(count) and (failure == DENSE_REQUIRED or failure in OPEN):
            failure = self._dense.call((numbers, count, free, led))
        if failure in OPEN and count > 0:
            return self.run(numbers, 0, free, led)
        if failure == NOT_CLOSED and led and not self.solver.user_size:
            return self._follow(numbers, free)
        return failure

    def _follow(self, numbers: Array, free: int) -> int:
        """Close loops that cannot be closed where a step has led, on a way there; as ``run``.

        As of chains that are all but stretched, whose links turn further in a step than the loops
        let them: the rates found are followed along the loops, in parts. Where no parts lead there,
        as in a chain of exactly its reach, whose loops allow rates with which no motion goes on,
        these end as in an impact.

        Forces do no work without a way: rates end no faster, in the metric of M, than the parts
        went or than they began, whichever was more, so that they cannot grow step by step where
        nothing moves.
        """
        solver, nq, start = self.solver, self._nq, self.solver.state.copy()
        found, dt = numbers.copy(), solver.control["dt"].item()
        rates, taken = self._rates_along_loops(found[nq:], free), np.zeros_like(self.multipliers)
        correction = solver.arrays.vectors[CORRECTION, : len(rates)]
        M, whole = self._as_one(found, free)
        momenta = whole.T @ M @ found[nq:]
        for parts in PARTS:
            solver.state[:], numbers[:nq], numbers[nq:] = start, start[:nq], rates
            taken[:], went = 0.0, [start[:-1]]
            for _ in range(parts):
                v, part = numbers[nq:].copy(), dt / parts
                displace(solver.bodies, numbers[:nq].copy(), v, part, numbers)
                if self._close_from(start, numbers, free) != DONE:
                    break
                taken += self.multipliers
                went.append(np.concatenate([numbers[:nq], v + correction / part]))
            else:
                self._hold(went, numbers, free)
                self._end_following(start, numbers, taken, momenta)
                return DONE
        name = widest(solver)
        numbers[:nq], numbers[nq:] = solver.state[:nq], 0.0  # as far as the finest parts have led
        if self._close_from(start, numbers, free) != DONE:
            numbers[:], solver.state[:] = found, start
            return NOT_CLOSED
        taken += self.multipliers
        self._end_following(start, numbers, taken, momenta)
        M, kept = solver.terms(start[:nq], rates, float(start[-1])).M, numbers[nq:]
        gone = max(0.5 * float(rates @ M @ rates - kept @ M @ kept), 0.0)
        solver.control[0]["lost"] += gone
        solver.tell_loss(np.concatenate([start[:nq], rates, start[-1:]]), gone, name)
        return DONE

    def _end_following(self, start: Array, numbers: Array, taken: Array, momenta: Array) -> None:
        """Take rates with the momenta (6,) that a step has led to, (0,) of what is held."""
        free = int(len(momenta) > 0)
        M, whole = self._as_one(numbers, free)
        lost = momenta - whole.T @ M @ numbers[self._nq :]
        numbers[self._nq :] += whole @ np.linalg.solve(whole.T @ M @ whole, lost)
        self._close_from(start, numbers, free)
        self._before[:], self.multipliers[:] = start, taken + self.multipliers

    def _hold(self, went: list[Array], numbers: Array, free: int) -> None:
        """Slow the rates of ``numbers`` down to the fastest of ``went``, relative to the whole.

        All are (nq + nv,), of which what the whole moves by as one body keeps the momentum.
        """
        v, end = self._relative(numbers, free)
        most = 0.0
        for state in went:
            most = max(most, self._relative(state, free)[1])
            if end <= most:
                return
        numbers[self._nq :] -= (1.0 - most / end) * v

    def _relative(self, numbers: Array, free: int) -> tuple[Array, float]:
        """Rates less those of all as one body, where nothing holds them; their length by M."""
        (M, whole), v = self._as_one(numbers, free), numbers[self._nq :]
        momenta = whole.T @ M
        v = v - whole @ np.linalg.solve(momenta @ whole, momenta @ v)
        return v, math.sqrt(v @ M @ v)

    def _as_one(self, numbers: Array, free: int) -> tuple[Array, Array]:
        """M, and rates (nv, 6) of all as one body about the origin; (nv, 0) if it is held."""
        bodies, v = self.solver.mechanism.bodies, numbers[self._nq :]
        at, whole = self.solver.terms(numbers[: self._nq], v, self.solver.t), np.zeros((len(v), 6))
        for body, pose in zip(bodies, at.poses, strict=True):
            if body["joint"] == FREE:
                own = whole[body["v"] : body["v"] + 6]
                own[:3, :3] = own[3:, 3:] = np.eye(3)
                own[3:, :3] = np.cross(np.eye(3), pose["origin"] + pose["p"]).T
        return at.M, whole[:, : 6 * free]

    def _rates_along_loops(self, found: Array, free: int) -> Array:
        """Rates (nv,) at the start of a step, of those that it has led to, that open no loop there.

        Bias forces do no work along the loops, but in one explicit step they multiply the energy of
        what turns fast. So no more of it is left than forces make without them; than there was,
        where rates are as large as those that engines cut off, of which that cannot be told.
        """
        solver, nq = self.solver, self._nq
        start, dt = solver.state.copy(), solver.control["dt"].item()
        q, v, t = start[:nq], start[nq:-1], float(start[-1])
        moving, resting = (solver.terms(q, rates, t) for rates in (v, np.zeros_like(v)))
        M = moving.M
        pair = [found, found + dt * np.linalg.solve(M, moving.h - resting.h)]
        for k, rates in enumerate(pair):
            numbers = np.concatenate([q, rates])
            if self._close_from(start, numbers, free) == DONE:
                pair[k] = numbers[nq:]
        solver.state[:] = start
        along, unbiased = pair
        if np.abs(found).max() > CUT_OFF:
            unbiased = v
        energy, most = along @ M @ along, unbiased @ M @ unbiased
        return along * math.sqrt(most / energy) if energy > most else along

    def _close_from(self, start: Array, numbers: Array, free: int) -> int:
        """Close the loops near ``numbers``, at the end of the step that has begun at ``start``."""
        self.solver.state[-1] = start[-1]
        failure: int = self._dense.call((numbers, 0, free, 0))
        return failure

    def _leave_out(self, names: tuple[str, ...]) -> None:
        """Make the rows of these constraints vanish, and hold the rank of the others.

        Factors of all rows are of no use then.
        """
        solver = self.solver
        for name in names:
            if name not in solver.encoded.rows:
                known = ", ".join(solver.encoded.rows)
                raise ModelError(f"unknown constraint '{name}'; there are: {known}")
        gone = self._rows_of(names)
        if names not in self._caps:
            self._caps[names] = self._decision.caps_of(~gone)
        for field in ("unit", "scale"):
            solver.rows[0][field][gone] = 0.0
        loops = list(solver.encoded.rows)[: len(solver.encoded.loops)]
        solver.encoded.loops["allowed"][[name in names for name in loops]] = np.inf
        solver.take_caps(self._caps[names])
        solver.control[0]["factored"] = 0

    def _put_back(self) -> None:
        """Undo ``_leave_out``; the factors are not those of all rows."""
        solver = self.solver
        for field in ("unit", "scale"):
            solver.rows[0][field] = self._sizes[field]
        solver.encoded.loops["allowed"] = self._allowed
        solver.take_caps(self._decision.caps)
        solver.control[0]["factored"] = 0


class Filters:
    """Filters of several systems that steps have led on, run in one compiled call.

    Args:
        filters: At least one. Motions and sticking points are put into each beforehand.

    Attributes:
        parts: Where the numbers of each are.
    """

    def __init__(self, filters: Sequence[Filter]) -> None:
        self._rooms = [one.room for one in filters]
        self._numbers = np.zeros(sum(len(one.solver.state) - 1 for one in filters))
        self._orders = np.zeros((len(filters), 3), np.int64)
        self._counts = [0] * len(filters)
        self._orders[:, 1], self._orders[:, 2] = [one.is_free() for one in filters], 1
        self._failures = np.zeros(len(filters), np.int64)
        starts = np.cumsum([0, *(len(one.solver.state) - 1 for one in filters)])
        self.parts = [slice(a, b) for a, b in pairwise(starts.tolist())]
        self._filters = list(filters)
        self._by_links = any(one.is_by_links for one in filters)
        blocks = [one.call().block for one in filters]
        if (
            len({block.dtype for block in blocks}) > 1
        ):  # of two kernels, which cannot stand in a row
            self._run = self._run_one_by_one
            return
        self._calls = np.concatenate(blocks)
        fixed = (
            self._calls,
            starts,
            self._numbers,
            self._orders,
            self._failures,
        )
        with announce_compilation(run_filters):
            self._run = StoredCall(run_filters, fixed, ()).call

    def _run_one_by_one(self, nothing: tuple[()]) -> int:
        """What the compiled call does, and what is tried after it, in Python; how many failed."""
        for n, one in enumerate(self._filters):
            numbers = self._numbers[self.parts[n]]
            self._failures[n] = one.run(numbers, *self._orders[n].tolist())
        return int(np.count_nonzero(self._failures != DONE))

    def are(self, filters: Sequence[Filter]) -> bool:
        """Whether they are those of these filters, as they are now."""
        return [one.room for one in filters] == self._rooms

    def __call__(
        self, found: Sequence[float], counts: Sequence[int]
    ) -> tuple[list[float], dict[int, int]]:
        """Take every system's state one step later.

        Args:
            found: q and v of the first system, then of the others.
            counts: How many sticking points each has.

        Returns:
            The same as they are filtered, and why that failed, by the number of the system, where
            it did.
        """
        self._numbers[:] = found
        if counts != self._counts:
            self._orders[:, 0] = self._counts = counts
        run = self._run
        if self._by_links and any(
            not one.takes_links(count)
            for one, count in zip(self._filters, counts, strict=True)
            if one.is_by_links
        ):
            run = self._run_one_by_one
        if not run(()):
            return self._numbers.tolist(), {}
        failures = {n: failed for n, failed in enumerate(self._failures.tolist()) if failed != DONE}
        for n in [*failures] if run != self._run_one_by_one else ():
            numbers, order = self._numbers[self.parts[n]], self._orders[n].tolist()
            failures[n] = self._filters[n].run_after(failures[n], numbers, *order)
            if failures[n] == DONE:
                del failures[n]
        return self._numbers.tolist(), failures
