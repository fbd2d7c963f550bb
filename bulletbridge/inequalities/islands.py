"""Islands whose steps with motors and limits are made one by one: what each of them is given."""

from typing import NamedTuple

import numpy as np

from bulletbridge.compilation.announce import announce_compilation
from bulletbridge.compilation.block_sizes import in_blocks
from bulletbridge.compilation.stored_calls import StoredCall, in_turn
from bulletbridge.compilation.words import arrays_in
from bulletbridge.constraints.arrays import Encoded
from bulletbridge.constraints.records import FORCE_LIMIT
from bulletbridge.engine.clusters_plan import ClusterPlan
from bulletbridge.engine.islands import (
    BESIDE_WORK,
    IslandMembers,
    Islands,
    places,
    renumber,
    term_axes,
    work,
)
from bulletbridge.engine.stepper import Solver
from bulletbridge.inequalities.arrays import IMPULSES, REPORT, SUPPLIED, Given, InequalityArrays
from bulletbridge.inequalities.constraints import InequalityConstraints
from bulletbridge.inequalities.contact_rows import CONTACT_ROWS
from bulletbridge.inequalities.force_limited_rows import ForceLimitedRows
from bulletbridge.inequalities.islands_kernel import (
    ROWS_OF_ISLAND,
    IslandArrays,
    RowsInARow,
    RowsOfWhole,
    run_inequality_islands,
)
from bulletbridge.inequalities.loose_bodies import loose_bodies
from bulletbridge.inequalities.motor_limit_rows import LoopAxisRows
from bulletbridge.inequalities.step_kernel import run_inequalities
from bulletbridge.inequalities.sticking import filter_arrays
from bulletbridge.inequalities.warm_start import CONTACT_IMPULSE
from bulletbridge.mechanism.records import CONTACT_POINT
from bulletbridge.numerics.complementarity_rows import ROW_BOUNDS, parts_of
from bulletbridge.numerics.projection import ROW
from bulletbridge.numerics.records import Array, Ints


class AskedRows(NamedTuple):
    """What asks for inequalities in a system: records of motors and limits, and free motions.

    Attributes:
        motor_rows, joint_limits: Records.
        inequalities: Free motions, and constraints with a force limit.
        may_hold: Whether all of the latter may be rigid.
    """

    motor_rows: np.ndarray
    joint_limits: np.ndarray
    inequalities: InequalityConstraints
    may_hold: bool


class Owned(NamedTuple):
    """What of it belongs to each island, by number in the whole."""

    motors: list[Ints]
    limits: list[Ints]
    axes: list[Ints]
    loops: list[Ints]
    couplings: list[Ints]


def islands_that_pay(solver: Solver, asked: AskedRows) -> Islands | None:
    """The islands of a solver, if steps with inequalities cost less when each makes its own.

    There must be no constraint with a force limit that gives way, which may join any two. One that
    holds is a rigid one, of an island.
    """
    found, limited = solver.islands, asked.inequalities.force_limited.nc > 0
    if not isinstance(found, Islands) or (limited and not asked.may_hold):
        return None
    islands = found if solver.backend == "islands" else found.gathered
    owned = rows_of_islands(islands, asked)
    if owned is None or solver.backend == "islands":
        return None if owned is None else islands
    drives = len(asked.motor_rows) // 2
    whole = work(solver.mechanism.nv, solver.encoded.nc + drives)
    one_by_one = sum(
        work(len(island.v), len(island.rows) + len(motors) // 2)
        for island, motors in zip(islands.members, owned.motors, strict=True)
    )
    return islands if whole - one_by_one > BESIDE_WORK * len(islands.members) else None


LEAST_GAIN = 5e4
"""Operations that clusters must save: below, they save less than their kernel is worth waiting for
when it is compiled."""


def clusters_pay(solver: Solver, plan: ClusterPlan) -> bool:
    """Whether steps with inequalities are asked for by clusters, or cost much less by these."""
    saved = work(solver.mechanism.nv, solver.encoded.nc) - plan.work()
    return solver.backend == "clusters" or saved > LEAST_GAIN


def rows_of_islands(islands: Islands, asked: AskedRows) -> Owned | None:
    """What asks for inequalities in each island; None where something does in two at once."""
    encoded, members = asked.inequalities.loop_axes.encoded, islands.members
    of_axis = np.zeros(islands.whole.mechanism.nv, int)
    for i, island in enumerate(members):
        of_axis[island.v] = i
    of_loops, of_couplings = (
        [{int(of_axis[axis]) for axis in axes if axis >= 0} for axes in joined]
        for joined in (
            [[int(loop["axis_a"]), int(loop["axis_b"])] for loop in encoded.loops],
            [term_axes(encoded, coupling) for coupling in encoded.couplings],
        )
    )
    of_rows: list[set[int]] = [set() for _ in range(encoded.nc)]
    for records, found in ((encoded.loops, of_loops), (encoded.couplings, of_couplings)):
        for row, island in zip(records["row"], found, strict=True):
            of_rows[row] |= island
    if any(len(found) != 1 for found in of_rows):
        return None
    of_row = np.array([found.pop() for found in of_rows], int)

    def of(records: np.ndarray) -> list[Ints]:
        axes = [int(axis) for axis in records["axis"]]
        own = np.array([of_axis[k] if k >= 0 else of_row[-1 - k] for k in axes], int)
        return [np.flatnonzero(own == i) for i in range(len(members))]

    def having(rows: Ints) -> list[Ints]:
        return [np.flatnonzero(of_row[rows] == i) for i in range(len(members))]

    return Owned(
        of(asked.motor_rows),
        of(asked.joint_limits),
        having(np.arange(encoded.nc)),
        having(encoded.loops["row"].astype(int)),
        having(encoded.couplings["row"].astype(int)),
    )


def in_order(numbers: list[Ints]) -> tuple[Ints, Ints, Ints, Ints]:
    """Numbers of all islands in a row, where each is, of which island, and where these begin."""
    row = np.concatenate(numbers)
    sizes = [len(part) for part in numbers]
    at = np.zeros(len(row), np.int64)
    at[row] = np.arange(len(row))
    return row, at, np.repeat(np.arange(len(numbers)), sizes), np.append(0, np.cumsum(sizes))


class InequalityIslands:
    """Steps with inequalities of a solver whose islands are solved for one by one.

    Args:
        islands: Its islands.
        asked: What asks for inequalities, by joints and free motions within islands.

    Attributes:
        arrays: What they work on, besides the solver's and the islands'.
    """

    def __init__(self, islands: Islands, asked: AskedRows) -> None:
        self._islands, self._asked = islands, asked
        owned = rows_of_islands(islands, asked)
        assert owned is not None
        self._owned = owned
        solvers, encoded = islands.separate.solvers, asked.inequalities.loop_axes.encoded
        motors, motors_at, of_motors, motor_starts = in_order(owned.motors)
        limits, limits_at, of_limits, limit_starts = in_order(owned.limits)
        axes, axes_at, _, axis_starts = in_order(owned.axes)
        loops, _, _, loop_starts = in_order(owned.loops)
        self._sizes = [len(m) + len(n) for m, n in zip(owned.motors, owned.limits, strict=True)]
        widths = [max(n, s.mechanism.nv) for n, s in zip(self._sizes, solvers, strict=True)]
        starts = IMPULSES * np.append(0, np.cumsum(widths))
        count, limited = len(solvers), len(asked.inequalities.force_limits) > 0
        kept = [island.rows if limited else island.rows[:0] for island in islands.members]
        parts = np.zeros(count + 1, ROWS_OF_ISLAND)
        for name, found in (
            ("motors", motor_starts),
            ("limits", limit_starts),
            ("axes", axis_starts),
            ("axis_loops", loop_starts),
            ("impulses", starts),
            ("rows", np.append(0, np.cumsum([len(part) for part in kept]))),
        ):
            parts[name] = found
        parts["width"][:count] = widths
        along = np.zeros(islands.whole.mechanism.nv, np.int64)
        for island in islands.members:
            along[island.v] = np.arange(len(island.v))

        first = np.repeat(axis_starts[:-1], np.diff(axis_starts))

        def local(records: np.ndarray) -> Ints:  # a joint's, or a free motion's
            there = [axes_at[-1 - axis] if axis < 0 else -1 for axis in records["axis"]]
            return np.array(
                [
                    along[axis] if axis >= 0 else first[at] - at - 1
                    for axis, at in zip(records["axis"], there, strict=True)
                ],
                np.int64,
            )

        self.rows = RowsInARow(
            parts,
            motors,
            limits,
            axes,
            loops,
            motors_at,
            limits_at,
            local(asked.motor_rows[motors]),
            local(asked.joint_limits[limits]),
            of_motors,
            of_limits,
            asked.motor_rows[motors],
            asked.joint_limits[limits],
            np.zeros(encoded.nc, ROW),
            encoded.loops[loops],
            np.zeros(int(starts[-1])),
            np.zeros((count, REPORT)),
            np.concatenate(kept),
            np.zeros((1 + SUPPLIED) * sum(len(part) for part in kept)),
        )
        self.own = [self._arrays_of(i) for i in range(count)]
        rows = self.rows
        self.arrays: list[np.ndarray] = [
            *islands.arrays, rows.motor_rows, rows.joint_limits, rows.positions, rows.loops,
            rows.impulses, rows.reports, rows.supplied, *arrays_in(tuple(self.own)),
        ]  # fmt: skip

    def _arrays_of(self, i: int) -> InequalityArrays:
        """What an island's steps work on, parts of what all have in a row."""
        solver, island = self._islands.separate.solvers[i], self._islands.members[i]
        rows, n, nv = self.rows, self._sizes[i], solver.mechanism.nv
        part, end = rows.parts[i], rows.parts[i + 1]
        limited = self._asked.inequalities.force_limited
        holding = np.zeros(min(len(rows.rows), 1), FORCE_LIMIT)  # for all of them: it has no rows
        holding["loop"], holding["holds"] = -1, 1
        supplied = np.zeros((1 + SUPPLIED, solver.encoded.nc))
        if len(rows.rows):
            own = slice((1 + SUPPLIED) * part["rows"], (1 + SUPPLIED) * end["rows"])
            supplied = rows.supplied[own].reshape(supplied.shape)
        lines = rows.impulses[part["impulses"] : end["impulses"]].reshape(IMPULSES, -1)
        C, D = np.zeros((3, max(n, nv), nv)), np.zeros((2, n, in_blocks(n)))
        bodies = solver.mechanism.bodies
        loose = loose_bodies(0, np.zeros(len(bodies), np.int64), bodies["v"], D[1])
        return InequalityArrays(
            filter_arrays(0, nv, supplied),
            rows.motor_rows[part["motors"] : end["motors"]],
            rows.joint_limits[part["limits"] : end["limits"]],
            self._loop_axes_of(i, island),
            ForceLimitedRows(
                holding,
                limited.loops[:0],
                limited.couplings[:0],
                limited.terms[:0],
                np.zeros(0, ROW),
            ),
            np.zeros(0, CONTACT_ROWS),
            np.zeros(0, CONTACT_IMPULSE),
            np.zeros(0, CONTACT_POINT),
            C,
            D,
            parts_of(C[0], np.array([0, nv])),
            loose,
            np.zeros(n, ROW_BOUNDS),
            lines,
            rows.reports[i],
        )

    def _loop_axes_of(self, i: int, island: IslandMembers) -> LoopAxisRows:
        """Free motions of an island's loop joints, by its own bodies and axes."""
        encoded: Encoded = self._asked.inequalities.loop_axes.encoded
        mechanism, rows = self._islands.whole.mechanism, self.rows
        part, end = rows.parts[i], rows.parts[i + 1]
        loops = rows.loops[part["axis_loops"] : end["axis_loops"]]
        couplings = encoded.couplings[self._owned.couplings[i]]
        at = (
            places(island.bodies, len(mechanism.bodies)),
            places(island.v, mechanism.nv),
            places(self._owned.axes[i], encoded.nc),
        )
        terms = renumber(loops, couplings, encoded.terms, at)
        positions = rows.positions[part["axes"] : end["axes"]]
        G = np.zeros((len(positions), len(island.v)))
        return LoopAxisRows(loops, couplings, terms, positions, G)

    def stored(self, whole: RowsOfWhole, given: Given) -> StoredCall:
        """The kernel of all islands, for a whole with such rows."""
        solvers, layout, row, joined = self._islands.separate
        contacts = np.zeros(0, CONTACT_POINT)
        calls: list[StoredCall] = []
        with announce_compilation(run_inequalities):
            for solver, own in zip(solvers, self.own, strict=True):
                rest = given._replace(tau=solver.tau), contacts, 0, 1
                calls.append(StoredCall(run_inequalities, (solver.arrays, own), rest))
        fixed = IslandArrays(layout, row, joined, self.rows, whole), in_turn(calls)
        with announce_compilation(run_inequality_islands):
            return StoredCall(run_inequality_islands, fixed, (given, contacts, 0, 1))

    def put_rows(self, whole: Array) -> None:
        """Write the rows of the last step (rows, nv) in the order in which the whole has them."""
        n, rows = 0, self.rows
        for records, at, island_of in (
            (rows.motor_rows, rows.motors_at, rows.of_motors),
            (rows.joint_limits, rows.limits_at, rows.of_limits),
        ):
            if at is rows.limits_at:
                n += self._asked.inequalities.force_limited.nc  # which hold
            for k in at:
                row, i = int(records[k]["row"]), int(island_of[k])
                if row >= 0:
                    whole[n, self._islands.members[i].v] = self.own[i].C[1, row]
                    n += 1
