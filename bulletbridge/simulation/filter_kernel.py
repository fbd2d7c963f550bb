"""The compiled filter; a kernel of its own, since stepping does without it."""

from typing import Any

from bulletbridge.constraints.layout import Coupling, Loop, Term
from bulletbridge.formulations.arrays import DONE, Arrays, Control, Factors, Moment
from bulletbridge.formulations.filtering import filter_state
from bulletbridge.formulations.held import Held
from bulletbridge.formulations.projector import take_springs
from bulletbridge.mechanism.layout import Axis, Beam, Body, Effort, Pose, Spot, Station
from bulletbridge.numerics.jit import caller, kernel
from bulletbridge.numerics.records import Array, Ints, Records
from bulletbridge.numerics.stored_calls import call_stored


@kernel
def run_filter(
    bodies: Records[Body],
    beams: Records[Beam],
    stations: Records[Station],
    efforts: Records[Effort],
    poses: Records[Pose],
    axes: Records[Axis],
    loops: Records[Loop],
    couplings: Records[Coupling],
    terms: Records[Term],
    user_jacobian: Array,
    rows: Array,
    L: Array,
    Y: Array,
    R: Array,
    vectors: Array,
    state: Array,
    control: Records[Control],
    spots: Records[Spot],
    held_rows: Array,
    P: Array,
    S: Array,
    T: Array,
    values: Array,
    multipliers: Array,
    points: Array,
    targets: Array,
    held: Array,
    before: Array,
    numbers: Array,
    count: int,
    free: int,
) -> int:
    """Correct and filter what is found one step later; return why that failed, or DONE.

    The arrays up to control are those of ``step.run``; the state becomes what is found, or stays if
    that fails. held_rows (2, rows). multipliers (2, nc) and points (2, rows) receive the impulses;
    see ``formulations.filtering``. targets (1, targets). held: the first ``count`` of its lines
    (9,) count. before: scratch like state. numbers (nq + nv,): q and v as they are found, and then
    as they are filtered. free: whether nothing outside holds the bodies.
    """
    nv, nq = len(axes), len(state) - len(axes) - 1
    c = control[0]
    for k in range(len(state)):
        before[k] = state[k]
    for k in range(nq + nv):
        state[k] = numbers[k]
    state[nq + nv] += c.dt
    take_springs(c, 0.0)  # an impulse leaves no time for springs to give way
    a = Arrays(
        bodies,
        beams,
        stations,
        efforts,
        poses,
        axes,
        loops,
        couplings,
        terms,
        user_jacobian,
        rows[2],
        vectors,
        c,
    )
    f = Factors(L[0], Y[0], R[0], rows[0])
    h = Held(held[:count], spots, held_rows[0], held_rows[1], P, S, T, values)
    for n in range(2):
        for i in range(multipliers.shape[1]):
            multipliers[n, i] = 0.0
        for i in range(3 * count):
            points[n, i] = 0.0
    moment = Moment(state[nq + nv], targets[0])
    filter_state(a, f, h, moment, state[:nq], state[nq : nq + nv], multipliers, points, 0.0, free)
    if c.failure != DONE:
        for k in range(len(state)):
            state[k] = before[k]
        c.fresh = 0
        return c.failure
    for k in range(nq + nv):
        numbers[k] = state[k]
    return DONE


@caller
def run_filters(calls: Any, starts: Ints, numbers: Array, orders: Ints, failures: Ints) -> int:
    """Run the filters of several systems, one after the other; return how many failed.

    calls (n,): ``run_filter`` with the arrays of each, stored. starts (n + 1,): where the numbers
    of each begin. orders (n, 2): how many points of each are held, and whether it is free. failures
    (n,) receives why each failed, or DONE.
    """
    failed = 0
    for i in range(len(calls)):
        own = numbers[starts[i] : starts[i + 1]]
        failures[i] = call_stored(calls[i : i + 1], (own, orders[i, 0], orders[i, 1]))
        if failures[i] != DONE:
            failed += 1
    return failed
