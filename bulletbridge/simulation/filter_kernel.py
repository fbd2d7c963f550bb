"""The compiled filter; a kernel of its own, since stepping does without it."""

from bulletbridge.constraints.layout import Coupling, Loop, Term
from bulletbridge.formulations.arrays import Arrays, Control, Factors, Moment
from bulletbridge.formulations.filtering import filter_state
from bulletbridge.formulations.held import Held
from bulletbridge.formulations.projector import take_springs
from bulletbridge.mechanism.layout import Axis, Beam, Body, Effort, Pose, Spot, Station
from bulletbridge.numerics.jit import kernel
from bulletbridge.numerics.records import Array, Records


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
    free: int,
) -> int:
    """Correct and filter the state in place; return why that failed, or DONE.

    The arrays up to control are those of ``step.run``. held_rows (2, rows). multipliers (2, nc) and
    points (2, rows) receive the impulses; see ``formulations.filtering``. held (n, 9). free:
    whether nothing outside holds the bodies.
    """
    nv, nq = len(axes), len(state) - len(axes) - 1
    c = control[0]
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
    h = Held(held, spots, held_rows[0], held_rows[1], P, S, T, values)
    for n in range(2):
        for i in range(multipliers.shape[1]):
            multipliers[n, i] = 0.0
        for i in range(3 * len(held)):
            points[n, i] = 0.0
    moment = Moment(state[nq + nv], targets[0])
    filter_state(a, f, h, moment, state[:nq], state[nq : nq + nv], multipliers, points, 0.0, free)
    return c.failure
