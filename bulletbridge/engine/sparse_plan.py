"""Plan of an elimination in link coordinates, and steps by it."""

import itertools
from typing import Any, NamedTuple

import numpy as np

from bulletbridge.compilation.block_sizes import LANES, in_blocks
from bulletbridge.constraints.arrays import Encoded
from bulletbridge.engine.handing_over import HandingStepper
from bulletbridge.engine.sparse_border import MOST_LEFT_OVER
from bulletbridge.engine.sparse_kernel import SparseArrays, run_sparse
from bulletbridge.engine.stepper import NO_RECORD, Solver
from bulletbridge.engine.tasks import STEP
from bulletbridge.mechanism.kinematics import kinematics
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.mechanism.records import BUSHING, POSE, STRETCH, TENDON
from bulletbridge.numerics.multifrontal import FRONT, JOIN, OWN
from bulletbridge.numerics.projection import ROW
from bulletbridge.numerics.records import Array, Ints

PARALLEL = 1e-12
"""Sine of the angle up to which axes count as parallel."""


class Touching(NamedTuple):
    """Bodies between which contacts are expected."""

    pairs: Ints  # (n, 2) bodies, in rising order
    most: int  # contacts that there is room for at every front


CONTACTS_OF_BODY = 4
UNTOUCHED = Touching(np.zeros((0, 2), np.int64), CONTACTS_OF_BODY)
"""Before bodies have met: what is eliminated beside one body has room for these contacts."""


class EliminationOrder(NamedTuple):
    """Who is eliminated when.

    Attributes:
        order: Bodies, each after all that hang on it.
        around: Of each in that order: the bodies that its front has as boundary, ascending by when
            they are eliminated.
        basis: (k, 6) twists that span those of all bodies at every configuration.
        touching: What it has room for besides loops.
    """

    order: list[int]
    boundary: list[list[int]]
    basis: Array
    touching: "Touching"


def minimum_degree_order(
    mechanism: Mechanism, encoded: Encoded, touching: Touching = UNTOUCHED
) -> EliminationOrder:
    """Bodies with the smallest boundary first, among those on which nothing hangs any more."""
    parents = [int(p) for p in mechanism.bodies["parent"]]
    near: list[set[int]] = [set() for _ in parents]
    joined = list(enumerate(parents))[1:]
    for one in (*closing(mechanism, encoded), *tying(mechanism, encoded)):
        joined += itertools.combinations(sorted(bodies_of(one)), 2)
    joined += [(int(a), int(b)) for a, b in touching.pairs]
    moves = mechanism.bodies["axis"] >= 0
    for a, b in joined:
        if a != b and moves[a] and moves[b]:
            near[a].add(b)
            near[b].add(a)
    hanging = np.bincount([p for i, p in enumerate(parents) if i], minlength=len(parents))
    ready = {i for i in range(1, len(parents)) if hanging[i] == 0}
    order: list[int] = []
    boundary: list[set[int]] = []
    while ready:
        body = min(ready, key=lambda i: (len(near[i]), -i))
        ready.remove(body)
        order.append(body)
        boundary.append(near[body])
        for one in near[body]:
            near[one] |= near[body] - {one}
            near[one].discard(body)
        hanging[parents[body]] -= 1
        if parents[body] and hanging[parents[body]] == 0:
            ready.add(parents[body])
    at = {body: n for n, body in enumerate(order)}
    around = [sorted(bodies, key=at.__getitem__) for bodies in boundary]
    return EliminationOrder(order, around, twists(mechanism), touching)


def twists(mechanism: Mechanism) -> Array:
    """A basis (k, 6) of the twists that joints can give to bodies: planar motion, or all.

    Joints that turn about one direction of the world, and slide across it, at one configuration
    do so at all.
    """
    poses, axes = np.zeros(len(mechanism.bodies), POSE), mechanism.axes.copy()
    poses["R"] = np.eye(3)
    q = np.zeros(mechanism.nq)
    for joint in mechanism.joints.values():
        if joint.kind in ("spherical", "free"):
            return np.eye(6)
    kinematics(mechanism.bodies, mechanism.beams.copy(), mechanism.stations.copy(), q, poses, axes)
    turning = np.linalg.norm(axes["w"], axis=1) > 0.5
    if not turning.any():
        return np.eye(6)[3:]
    normal = axes["w"][turning][0]
    across = np.linalg.norm(np.cross(axes["w"][turning], normal), axis=1).max(initial=0.0)
    along = np.abs(axes["v"][~turning] @ normal).max(initial=0.0)
    if max(across, along) > PARALLEL:
        return np.eye(6)
    first = np.linalg.svd(normal[None, :])[2][1]
    basis = np.zeros((3, 6))
    basis[0, :3], basis[1, 3:], basis[2, 3:] = normal, first, np.cross(normal, first)
    return basis


class SparseStepper(HandingStepper):
    """Runs the compiled step by elimination in link coordinates.

    Args:
        whole: The solver whose state it advances; it takes over where more rows are left over than
            there is room for, and for implicit methods.
        plan: Who is eliminated when.
    """

    def __init__(self, whole: Solver, plan: EliminationOrder) -> None:
        self.plan = plan
        self.arrays: SparseArrays = sparse_arrays(whole, plan)
        super().__init__(whole, run_sparse, self.arrays, (STEP,))

    def layout(self) -> bytes:
        """What its plan has room for besides loops."""
        touching = self.plan.touching
        return np.array([touching.most, *touching.pairs.flat], np.int64).tobytes()

    def laid_out(self, layout: bytes) -> "SparseStepper":
        """The same with room for other contacts."""
        numbers: Ints = np.frombuffer(layout, np.int64)
        return self.touched(Touching(numbers[1:].reshape(-1, 2), int(numbers[0])))

    def touched(self, touching: Touching) -> "SparseStepper":
        """The same where contacts are expected between these bodies."""
        if touching.most == self.plan.touching.most and np.array_equal(
            touching.pairs, self.plan.touching.pairs
        ):
            return self
        whole = self._whole
        return SparseStepper(whole, minimum_degree_order(whole.mechanism, whole.encoded, touching))

    def evaluate(self, task: int, targets: np.ndarray, tau: Array) -> int:
        """Do a task that is no step; return the failure, or DONE."""
        return self._run((targets, tau, NO_RECORD, task, 0, 0))


def sparse_arrays(whole: Solver, plan: EliminationOrder) -> SparseArrays:
    """What the kernel of a solver's eliminations works on."""
    mechanism, encoded, k = whole.mechanism, whole.encoded, len(plan.basis)
    nb, nv, nc = len(mechanism.bodies), mechanism.nv, encoded.nc
    dropped = nc - int(whole.control[0]["cap"])
    layout = lay_out(mechanism, encoded, plan, dropped)
    fronts, ties = layout.fronts, int(layout.ties["rows"].sum())
    last, most = fronts[-1], min(nc, MOST_LEFT_OVER + dropped)
    widest = widest_front(fronts, k)
    join_of = np.zeros(nc, np.int64)
    for n, join in enumerate(layout.joins):
        join_of[int(join["row"]) : int(join["row"] + join["rows"])] = n
    return SparseArrays(
        np.array([fronts, fronts]),
        np.array([body for bodies in plan.boundary for body in bodies], np.int64), layout.widths,
        layout.places, layout.joins, np.zeros((2, int(last["row"] + last["max_rows"])), np.int64),
        np.ones((2, nc), np.int64), np.zeros((2, nv, k)), np.zeros((2, nb, k, k)),
        np.zeros((2, nv)), np.zeros((2, nc, 2, k)), layout.ties, np.zeros((2, ties, 2, k)),
        np.zeros((2, ties)), layout.further, np.zeros((2, len(layout.further), 2, k)), np.zeros(nc),
        np.zeros(int(last["update"]) + update_size(last)),
        np.zeros((2, int(last["factor"]) + factor_size(last))),
        np.zeros((widest, in_blocks(widest))), np.zeros(max(widest, k)),
        np.zeros(in_blocks(widest)), np.zeros((2, nb, k)), np.zeros(nc),
        np.zeros((2, most + 1, k * nb + 2 * nv + ties)), np.zeros((2, most, most)),
        np.zeros((2, most), ROW), np.zeros((2, most), np.int64), np.zeros((2, most)),
        np.zeros((2, 4), np.int64), join_of, plan.basis,
    )  # fmt: skip


class Span(NamedTuple):
    """Two bodies that a row is between."""

    source: int  # loop, coupling or force element whose it is
    a: int  # bodies, 0 for the world
    b: int  # the second
    term: int = -1  # of a coupling or tendon, if they are those of one of its joints, or -1


class Connection(NamedTuple):
    """Rows on bodies, of a loop, a coupling or a force element.

    Attributes:
        spans: What they are between; of several there is one row, on all of them.
        row: The first, of a loop or coupling.
        rows: Their number.
    """

    spans: list[Span]
    row: int = 0
    rows: int = 1


def closing(mechanism: Mechanism, encoded: Encoded) -> list[Connection]:
    """Loops, then couplings."""
    found: list[Connection] = []
    for i, loop in enumerate(encoded.loops):
        found.append(Connection([span_of(i, loop)], int(loop["row"]), int(loop["rows"])))
    for i, coupling in enumerate(encoded.couplings):
        terms = range(int(coupling["first"]), int(coupling["first"] + coupling["count"]))
        spans = [span_at(mechanism, i, int(encoded.terms["axis"][k]), k) for k in terms]
        found.append(Connection(spans, int(coupling["row"])))
    return found


def tying(mechanism: Mechanism, encoded: Encoded) -> list[Connection]:
    """Force elements, those of a whole line together."""
    found: list[Connection] = []
    for i, element in enumerate(encoded.elements, len(mechanism.efforts)):
        if element["kind"] == STRETCH:
            found[-1].spans.append(span_of(i, element))
        elif element["kind"] == TENDON:
            axes = element["term_axes"][: element["terms"]]
            found.append(Connection([span_at(mechanism, i, int(k), n) for n, k in enumerate(axes)]))
        else:  # rows as ``force_elements.coordinates``
            rows = 6 if element["kind"] == BUSHING else 1
            found.append(Connection([span_of(i, element)], rows=rows))
    return found


def span_of(source: int, joining: np.void) -> Span:
    """Bodies that a loop or a force element joins."""
    return Span(source, int(joining["body_a"]), int(joining["body_b"]))


def span_at(mechanism: Mechanism, source: int, axis: int, term: int) -> Span:
    """Bodies that a joint of one rate is between."""
    body = int(mechanism.axes["body"][axis])
    return Span(source, int(mechanism.bodies["parent"][body]), body, term)


def bodies_of(one: Connection) -> set[int]:
    """Bodies that a connection is on, the world among them."""
    return {body for span in one.spans for body in (span.a, span.b)}


class Slots(NamedTuple):
    """Room for rows that come and go, as those of contacts, at every body."""

    joins: int = 0  # of each body, the last of its joins; empty in the plan
    rows: int = 0  # the most of one


NO_SLOTS = Slots()


class Layout(NamedTuple):
    """Records of a plan."""

    fronts: np.ndarray  # of the bodies, in the order of their elimination
    joins: np.ndarray  # of the loops and couplings, and room for more
    ties: np.ndarray  # of the force elements
    further: np.ndarray  # of couplings, tendons and springs over points, but the first of each
    widths: Ints  # coordinates of the bodies around each front,
    places: Ints  # and where these are in the next one


def lay_out(
    mechanism: Mechanism,
    encoded: Encoded,
    plan: EliminationOrder,
    dropped: int,
    slots: Slots = NO_SLOTS,
) -> Layout:
    """Fronts of a plan, and what is put into each."""
    at, bodies = {body: n for n, body in enumerate(plan.order)}, mechanism.bodies
    sizes = bodies["axis"] - bodies["v"] + 1
    hangs = {body for body in at if int(bodies[body]["parent"]) not in at}
    width = {body: int(sizes[body]) if body in hangs else len(plan.basis) for body in at}
    begins = [offsets(boundary, width) for boundary in plan.boundary]
    closes, tied = closing(mechanism, encoded), tying(mechanism, encoded)
    own_joins, own_ties = first_fronts(closes, at), first_fronts(tied, at)
    fronts = np.zeros(len(plan.order), FRONT)
    joins = np.zeros(len(closes) + slots.joins * len(fronts), JOIN)
    ties = np.zeros(sum(map(len, own_ties)), JOIN)
    further = np.zeros(sum(len(one.spans) - 1 for one in (*closes, *tied)), JOIN)
    fronts["child"] = fronts["sibling"] = fronts["parent_rate"] = -1
    widths: list[int] = []
    places: list[int] = []
    totals = np.zeros(6, int)  # boundary bodies, joins, row numbers, what is left, factors, turns
    of_ties = np.zeros(2, int)  # their number, rows of them
    more = 0  # further joins and ties
    for n, (body, boundary) in enumerate(zip(plan.order, plan.boundary, strict=True)):
        front, parent = fronts[n], int(bodies[body]["parent"])
        front["body"], front["v"], front["rates"] = body, bodies[body]["v"], sizes[body]
        front["first"], front["join"], front["row"], front["update"] = totals[:4]
        front["factor"], front["turn"] = totals[4:]
        front["count"], front["joins"] = len(boundary), len(own_joins[n]) + slots.joins
        front["boundary_size"] = sum(width[b] for b in boundary)
        if body not in hangs:
            front["own_size"], front["parent"] = width[body], parent
            front["parent_start"], front["parent_size"] = begins[n][parent], width[parent]
            front["parent_rate"] = bodies[parent]["v"] if parent in hangs else -1
        front["tie"], front["ties"] = of_ties[0], len(own_ties[n])
        where = Placed(bodies, begins[n], width, hangs)
        for j, one in enumerate(own_joins[n]):
            more = put_join(joins[totals[1] + j], one, one.row, further, more, where)
        for one in own_ties[n]:
            more = put_join(ties[of_ties[0]], one, int(of_ties[1]), further, more, where)
            of_ties += (1, one.rows)
        front["max_rows"] += sum(one.rows for one in own_joins[n])
        front["max_rows"] += slots.joins * slots.rows
        most = (1 + (slots.joins > 0)) * int(front["boundary_size"]) + dropped
        front["max_delayed"] = min(int(front["max_rows"]), most) if boundary else 0
        if boundary:
            m = at[boundary[0]]
            places += [begins[m].get(b, OWN) for b in boundary]
            widths += [width[b] for b in boundary]
            front["sibling"], fronts[m]["child"] = fronts[m]["child"], n
            fronts[m]["max_rows"] += front["max_delayed"]
        turns = int(front["boundary_size"] * front["max_rows"]) * (slots.joins > 0)
        sizes_here = int(front["max_rows"]), update_size(front), factor_size(front), turns
        totals += [len(boundary), int(front["joins"]), *sizes_here]
    assert mechanism.nv == int(fronts["rates"].sum())
    lists = np.array(widths, np.int64), np.array(places, np.int64)
    return Layout(fronts, joins, ties, further, *lists)


class Placed(NamedTuple):
    """Where bodies are in a front."""

    bodies: np.ndarray  # those of the mechanism
    begins: dict[int, int]  # where coordinates of the boundary begin
    width: dict[int, int]  # how many coordinates each body has
    hangs: set[int]  # bodies that hang from the world


def put_join(
    join: Any, one: Connection, row: int, further: np.ndarray, more: int, where: Placed
) -> int:
    """Write the record of a connection; those of its further spans from ``more`` on, to the next.

    Args:
        join: Its record,
        one: of what.
        row: Its first row.
        further: Records of further spans.
        more: Where there is place among these.
        where: Where bodies are in its front.
    """
    end = more + len(one.spans) - 1
    join["row"], join["rows"], join["more"], join["further"] = row, one.rows, more, end - more
    for record, span in zip([join, *further[more:end]], one.spans, strict=True):
        put_span(record, span, where)
    return end


def put_span(join: Any, span: Span, where: Placed) -> None:
    """Write which bodies a join is between, and where these are in its front."""
    join["source"], join["term"] = span.source, span.term
    for end, b in zip("ab", (span.a, span.b), strict=True):
        join[end], join[f"first_{end}"] = b, where.bodies[b]["v"]
        join[f"place_{end}"] = where.begins.get(b, OWN)
        join[f"width_{end}"] = where.width.get(b, 0)
        join[f"own_{end}"] = 0 if b in where.hangs else where.width.get(b, 0)


def first_fronts(connections: list[Connection], at: dict[int, int]) -> list[list[Connection]]:
    """Connections by front, which is the first that eliminates one of their bodies."""
    found: list[list[Connection]] = [[] for _ in at]
    for one in connections:
        fronts = [at[b] for b in bodies_of(one) if b in at]
        if fronts:
            found[min(fronts)].append(one)
    return found


def offsets(bodies: list[int], width: dict[int, int]) -> dict[int, int]:
    """Where the coordinates of each body begin."""
    starts = np.cumsum([0, *(width[body] for body in bodies)])
    return {body: int(start) for body, start in zip(bodies, starts, strict=False)}


def update_size(front: np.void) -> int:
    """Numbers that a front leaves to the next, at most: a packed triangle."""
    n = int(front["boundary_size"] + front["max_delayed"])
    return n * (n + 1) // 2


def widest_front(fronts: np.ndarray, k: int) -> int:
    """Variables of the largest front, at least two blocks, with k coordinates of its body."""
    return max(
        2 * LANES, int((fronts["rates"] + fronts["max_rows"] + fronts["boundary_size"]).max()) + k
    )


def factor_size(front: np.void) -> int:
    """Numbers that a front's factors take, at most: lines and their transpose."""
    pivots = int(front["rates"] + front["max_rows"])
    n = pivots + int(front["boundary_size"])
    return (pivots + 1 + n) * in_blocks(n)
