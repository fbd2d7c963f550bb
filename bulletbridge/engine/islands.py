"""Parts of a system that nothing joins, each stepped by itself."""

from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple, cast

import numpy as np

from bulletbridge.compilation.announce import announce_compilation
from bulletbridge.compilation.stored_calls import StoredCall, WholeCall, in_turn
from bulletbridge.constraints.arrays import Encoded
from bulletbridge.engine.islands_kernel import ISLAND, Joined, Layout, run_islands
from bulletbridge.engine.records import CONTROL, DENSE_REQUIRED
from bulletbridge.engine.redundancy import Decision
from bulletbridge.engine.step_kernel import stepping_kernel
from bulletbridge.engine.stepper import (
    NO_RECORD,
    OF_AXES,
    OF_BODIES,
    CompiledStepper,
    Solver,
)
from bulletbridge.engine.tasks import STEP
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.mechanism.records import STRETCH
from bulletbridge.numerics.records import Array, Ints, Mask


class IslandMembers(NamedTuple):
    """An island: numbers, in the whole, of what belongs to it, each ascending."""

    bodies: Ints  # the world, then its own
    v: Ints
    q: Ints
    loops: Ints
    couplings: Ints
    rows: Ints


def find_islands(mechanism: Mechanism, encoded: Encoded) -> list[IslandMembers]:
    """Trees that hang from the world, those joined by constraints or force elements together.

    Bodies that nothing moves are part of every island. What is moved by nothing but forces makes an
    island too.
    """
    bodies, axes = mechanism.bodies, mechanism.axes
    root = np.arange(len(axes))
    for k, below in enumerate(axes["below"]):
        if below >= 0:
            root[k] = root[below]
    owner = {int(r): int(r) for r in np.unique(root)}

    def find(tree: int) -> int:
        while owner[tree] != tree:
            tree = owner[tree]
        return tree

    def tree_of(axis: int) -> int | None:
        return find(int(root[axis])) if axis >= 0 else None

    joined: list[list[int]] = []
    number: list[int] = []  # of each constraint among them
    for loop in encoded.loops:
        if not loop["adds"]:  # else another stretch of a line
            joined.append([])
        joined[-1] += [int(loop["axis_a"]), int(loop["axis_b"])]
        number.append(len(joined) - 1)
    number += range(len(joined), len(joined) + len(encoded.couplings))
    joined += [term_axes(encoded, coupling) for coupling in encoded.couplings]
    for members in [*joined, *pushed_axes(encoded)]:
        trees = [tree for tree in map(tree_of, members) if tree is not None]
        for tree in trees[1:]:
            owner[find(tree)] = find(trees[0])

    leaders = sorted({find(int(r)) for r in root})
    of_axis = np.array([find(int(r)) for r in root], int)
    of_body = np.array([of_axis[a] if a >= 0 else -1 for a in bodies["axis"]], int)
    of_q = np.zeros(mechanism.nq, int)
    for joint in mechanism.joints.values():
        of_q[joint.q] = of_axis[joint.v.start]
    of_joined = [next(t for t in map(tree_of, members) if t is not None) for members in joined]
    of_constraint = [of_joined[k] for k in number]
    loops, couplings = len(encoded.loops), len(encoded.couplings)
    islands: list[IslandMembers] = []
    for leader in leaders:
        mine = np.array([t == leader for t in of_constraint], bool)
        own = np.flatnonzero(mine[:loops]), np.flatnonzero(mine[loops:])
        rows = [rows_of(int(n["row"]), int(n["rows"])) for n in encoded.loops[own[0]]]
        rows += [rows_of(int(n["row"]), 1) for n in encoded.couplings[own[1]]]
        islands.append(
            IslandMembers(
                np.flatnonzero((of_body == leader) | (of_body == -1)),
                np.flatnonzero(of_axis == leader),
                np.flatnonzero(of_q == leader),
                *own,
                np.sort(np.concatenate([np.zeros(0, int), *rows])),
            )
        )
    assert sum(len(island.couplings) for island in islands) == couplings
    return islands


def rows_of(first: int, count: int) -> Ints:
    """Numbers of a constraint's rows."""
    return np.arange(first, first + count)


def pushed_axes(encoded: Encoded) -> list[list[int]]:
    """Axes that each force element is between, those of a whole line together; -1 for the world."""
    pushed: list[list[int]] = []
    for effort in encoded.elements:
        if effort["kind"] != STRETCH:
            pushed.append([])
        ends = int(effort["axis_a"]), int(effort["axis_b"])
        pushed[-1] += [*ends, *effort["term_axes"][: effort["terms"]]]
    return pushed


def term_axes(encoded: Encoded, coupling: np.void) -> list[int]:
    """Axes that a coupling joins."""
    part = slice(int(coupling["first"]), int(coupling["first"] + coupling["count"]))
    return [int(axis) for axis in encoded.terms["axis"][part]]


def places(numbers: Ints, size: int) -> Ints:
    """Where each of ``size`` things stands in a part; -1 for none, and for number -1."""
    found = np.full(size + 1, -1)
    found[numbers] = np.arange(len(numbers))
    return found


def part_of(row: Joined, index: int, members: list[IslandMembers]) -> Joined:
    """What an island has of all islands one after the other."""
    sizes = [
        (len(p.loops), len(p.couplings), len(p.q) + len(p.v) + 1, 1) for p in members[: index + 1]
    ]
    ends = np.sum(sizes, axis=0)
    parts = (x[end - n : end] for x, end, n in zip(row, ends, sizes[-1], strict=True))
    return Joined(*parts)


def in_a_row(whole: Solver, members: list[IslandMembers]) -> Joined:
    """Room for all islands, of the very dtypes of the whole: kernels are compiled for those."""
    encoded, count = whole.encoded, len(members)
    return Joined(
        encoded.loops[np.concatenate([island.loops for island in members])],
        encoded.couplings[np.concatenate([island.couplings for island in members])],
        np.zeros(len(whole.state) - 1 + count),
        np.zeros(count, CONTROL),
    )


def elements_of(encoded: Encoded, island: IslandMembers) -> Mask:
    """Which force elements (n,) act on an island."""
    elements = encoded.elements
    ends = (np.isin(elements[f"axis_{end}"], island.v) for end in "ab")
    acts = np.asarray(np.logical_or(*ends), np.bool_)
    line = np.cumsum(elements["kind"] != STRETCH)  # a line stays in one piece
    return np.isin(line, line[acts])


def renumber(
    loops: np.ndarray, couplings: np.ndarray, terms: np.ndarray, at: tuple[Ints, Ints, Ints]
) -> np.ndarray:
    """Have records of an island, in place, mean its own bodies, axes and rows.

    Args:
        loops: Records of its loops,
        couplings: and of its couplings.
        terms: Those of the whole's couplings.
        at: Where bodies, axes and rows of the whole stand in the island, by ``places``.

    Returns:
        Records of the terms of its couplings.
    """
    body_at, axis_at, row_at = at
    for end in "ab":
        loops[f"body_{end}"] = body_at[loops[f"body_{end}"]]
        loops[f"axis_{end}"] = axis_at[loops[f"axis_{end}"]]
    loops["common_axis"], loops["row"] = axis_at[loops["common_axis"]], row_at[loops["row"]]
    own = [terms[c["first"] : c["first"] + c["count"]].copy() for c in couplings]
    couplings["first"] = np.cumsum([0, *map(len, own)])[: len(couplings)]
    couplings["row"] = row_at[couplings["row"]]
    all_terms = np.concatenate([terms[:0], *own])
    all_terms["axis"] = axis_at[all_terms["axis"]]
    return all_terms


def cut(whole: Solver, decision: Decision, island: IslandMembers, shared: Joined) -> Solver:
    """The solver of an island alone, on its part of what kernels take of all at once."""
    mechanism, encoded = whole.mechanism, whole.encoded
    body_at = places(island.bodies, len(mechanism.bodies))
    axis_at, q_at = places(island.v, mechanism.nv), places(island.q, mechanism.nq)
    row_at = places(island.rows, encoded.nc)

    bodies, axes = whole.bodies[island.bodies].copy(), mechanism.axes[island.v].copy()
    bodies["parent"], bodies["axis"] = body_at[bodies["parent"]], axis_at[bodies["axis"]]
    moved = bodies["axis"] >= 0
    bodies["q"][moved] = q_at[bodies["q"][moved]]
    bodies["v"][moved] = axis_at[bodies["v"][moved]]
    axes["body"], axes["below"] = body_at[axes["body"]], axis_at[axes["below"]]
    axes["q"] = q_at[axes["q"]]
    efforts = mechanism.efforts[body_at[mechanism.efforts["body"]] >= 0].copy()
    efforts["body"] = body_at[efforts["body"]]
    beams = mechanism.beams[body_at[mechanism.beams["body"]] > 0].copy()
    stations = [mechanism.stations[beam["first"] : beam["tip"] + 1] for beam in beams]
    for beam, start in zip(beams, np.cumsum([0, *map(len, stations)]), strict=False):
        beam["tip"] += start - beam["first"]
        beam["first"], beam["body"] = start, body_at[beam["body"]]
    joints = {
        name: replace(
            joint,
            q=slice(int(q_at[joint.q.start]), int(q_at[joint.q.stop - 1]) + 1),
            v=slice(int(axis_at[joint.v.start]), int(axis_at[joint.v.stop - 1]) + 1),
        )
        for name, joint in mechanism.joints.items()
        if axis_at[joint.v.start] >= 0
    }
    own = replace(
        mechanism,
        bodies=bodies,
        axes=axes,
        efforts=efforts,
        beams=beams,
        stations=np.concatenate([mechanism.stations[:0], *stations]),
        links={},
        joints=joints,
    )
    loops, couplings = shared.loops, shared.couplings
    all_terms = renumber(loops, couplings, encoded.terms, (body_at, axis_at, row_at))
    elements = encoded.elements[elements_of(encoded, island)].copy()
    for end in "ab":
        elements[f"body_{end}"] = body_at[elements[f"body_{end}"]]
        elements[f"axis_{end}"] = axis_at[elements[f"axis_{end}"]]
    elements["body_c"] = body_at[elements["body_c"]]
    for field in ("common_axis", "axis_c", "term_axes"):
        elements[field] = axis_at[elements[field]]
    rows = replace(
        encoded,
        loops=loops,
        couplings=couplings,
        terms=all_terms,
        rows={},
        in_metres=encoded.in_metres[island.rows],
        scale=encoded.scale[island.rows],
        elements=elements,
    )
    solver = Solver(own, rows, whole.tolerances, shared.state, shared.control)
    caps, control = decision.caps_of(island.rows, island.v), whole.control[0]
    rest = float(control["mismatch"]), float(control["most_left"])
    solver.decide_rank(caps, decision.scale[island.rows], *rest)
    return solver


class SeparateIslands(NamedTuple):
    """Solvers of the islands of a whole, and where the parts of each stand."""

    solvers: list[Solver]  # one for each
    layout: Layout  # where what of them stands in the whole
    row: Joined  # room for all of them one after the other, on which they work
    joined: Joined  # the same of the whole


class Islands:
    """The islands of a solver, cut out of it when a step first wants them.

    Args:
        whole: The solver whose state they make up.
        decision: Its rank.
        members: Its islands.
    """

    def __init__(self, whole: Solver, decision: Decision, members: list[IslandMembers]) -> None:
        self.whole, self.members, self._decision = whole, members, decision

    @cached_property
    def separate(self) -> SeparateIslands:
        """A solver for each."""
        whole, members = self.whole, self.members
        shared = in_a_row(whole, members)
        solvers = [
            cut(whole, self._decision, island, part_of(shared, i, members))
            for i, island in enumerate(members)
        ]
        counts = [(s.mechanism.nv, s.mechanism.nq, len(s.state)) for s in solvers]
        starts = np.vstack([np.zeros(len(counts[0]), int), np.cumsum(counts, axis=0)])
        shared.control["callback"] = 0  # no user's rows
        order_v = np.concatenate([island.v for island in members])
        layout = Layout(
            np.array([tuple(row) for row in starts], ISLAND),
            np.concatenate([island.q for island in members]),
            order_v,
            np.concatenate([island.loops for island in members]),
            np.concatenate([island.couplings for island in members]),
            np.zeros(3 * len(order_v)),
            np.zeros(len(shared.state)),
            NO_RECORD,
        )
        loops, couplings = whole.encoded.loops, whole.encoded.couplings
        joined = Joined(loops, couplings, whole.state, whole.control)
        return SeparateIslands(solvers, layout, shared, joined)

    @cached_property
    def gathered(self) -> "Islands":
        """The same with small ones together, for steps with inequalities."""
        members = gather(self.members)
        if len(members) == len(self.members):
            return self
        return Islands(self.whole, self._decision, members)

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """What kernels of them work on."""
        solvers, layout, shared, _ = self.separate
        own = [cast(tuple[np.ndarray, ...], solver.arrays) for solver in solvers]
        return *shared, layout.pushes, layout.before, *(x for s in own for x in s)

    def rebase(self) -> None:
        """Take over places, masses, and what acts at joints and between frames, from the whole."""
        gathered = cast("Islands", vars(self).get("gathered", self))
        if gathered is not self:
            gathered.rebase()
        if "separate" not in vars(self):
            return  # they are cut out of what it is by then
        whole, encoded = self.whole, self.whole.encoded
        for island, solver in zip(self.members, self.separate.solvers, strict=True):
            for name in ("R", "p", *OF_BODIES):
                solver.bodies[name] = whole.bodies[name][island.bodies]
            for name in OF_AXES:
                solver.axes[name] = whole.axes[name][island.v]
            for name in ("R_a", "p_a", "R_b", "p_b", "length"):
                solver.encoded.loops[name] = encoded.loops[name][island.loops]
            solver.encoded.couplings["offset"] = encoded.couplings["offset"][island.couplings]
            elements = solver.efforts[len(solver.mechanism.efforts) :]
            for name in ("stiffness", "damping", "rest", "force"):
                elements[name] = encoded.elements[name][elements_of(encoded, island)]
            for name in ("round_off", "lever"):
                solver.control[0][name] = whole.control[0][name]
            solver.put_guard_floor()


class IslandStepper(CompiledStepper):
    """Runs the compiled step on each island of a solver.

    Args:
        islands: The islands, of which the solver knows.
    """

    is_whole = False

    def __init__(self, islands: Islands) -> None:
        self._whole, self._separate = islands.whole, islands.separate
        self.arrays, self.count = islands.arrays, len(islands.members)
        self._bound: StoredCall | None = None
        self._kernel: Any = None

    def _stored(self) -> StoredCall:
        """The kernel of all islands, with that of the present integrator for each."""
        whole, integrator = self._whole, self._whole.control[0]["integrator"]
        kernel = stepping_kernel(int(integrator))
        if self._bound is None or self._kernel is not kernel:
            solvers, layout, row, joined = self._separate
            for solver in solvers:
                solver.control[0]["integrator"] = integrator
            calls = in_turn([solver.stored_call(STEP) for solver in solvers])
            fixed = layout, calls, row, joined
            with announce_compilation(run_islands):
                self._bound = StoredCall(run_islands, fixed, (whole.still, whole.tau, NO_RECORD, 0))
            self._kernel = kernel
        return self._bound

    def run(self, targets: np.ndarray, tau: Array, record: Array, steps: int) -> int:
        """Advance the whole by steps; return the failure that stopped it, or DONE."""
        return self._stored().call((targets, tau, record, steps))

    def one_step(self, tau: Array) -> WholeCall:
        """Call that advances by one step with forces that stay."""
        return self._stored().with_rest((self._whole.still, tau, NO_RECORD, 1))

    def take_over(self, targets: np.ndarray, tau: Array, record: Array) -> int:
        """No step: none is left over."""
        return DENSE_REQUIRED


def work(nv: int, nc: int) -> float:
    """Operations of a step, roughly: factors of M, rows through them, rows against each other."""
    return nv**3 / 6 + nv * nc * (nv / 2 + nc)


BESIDE_WORK = 1.3e4
"""Operations, as of ``work``, in whose time a step with inequalities of an island is begun and
ended, whatever its size. Of eighteen systems, several four-bars, rows, walkers, arms, hands, legs
or platforms, islands won where each saved from 1.0e4 to 1.5e4."""


def gather(members: list[IslandMembers]) -> list[IslandMembers]:
    """Islands with small ones put together in turn, each in one as long as that costs less.

    To put one more into a call costs what its rows and rates do to the others'. The call is full
    where that is more than another call, or more, a rate, than what this one costs so far beside
    the work of each by itself.
    """
    found: list[IslandMembers] = []
    beside, rates = 0.0, 1
    for one in members:
        if found:
            last, both = found[-1], merged(found[-1], one)
            more = work_of(both) - work_of(last) - work_of(one)
            if more < min(BESIDE_WORK, beside / rates * len(one.v)):
                found[-1] = both
                beside, rates = beside + more, len(both.v)
                continue
        found.append(one)
        beside, rates = BESIDE_WORK, len(one.v)
    return found


def work_of(island: IslandMembers) -> float:
    """Operations of its step, roughly."""
    return work(len(island.v), len(island.rows))


def merged(one: IslandMembers, other: IslandMembers) -> IslandMembers:
    """What belongs to either."""
    return IslandMembers(*(np.union1d(a, b) for a, b in zip(one, other, strict=True)))
