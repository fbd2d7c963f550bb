"""The step: predict, correct, filter. One call advances many steps.

One factorisation serves a step: the factors made for the filter that ends a step give the
acceleration of the next one, and its correction uses them as a chord method.
"""

from bulletbridge.constraints.layout import Coupling, Loop, Term
from bulletbridge.formulations.arrays import (
    ACCELERATION,
    DONE,
    DOP8,
    OF_THE_WHOLE,
    Arrays,
    Control,
    FactorPair,
    Factors,
    Moment,
)
from bulletbridge.formulations.projector import (
    accelerate,
    accelerate_at,
    push,
    refresh,
    take_springs,
)
from bulletbridge.mechanism.layout import Axis, Beam, Body, Effort, Pose, Station
from bulletbridge.numerics.jit import inlined, kernel
from bulletbridge.numerics.records import Array, Records
from bulletbridge.numerics.split import unwhiten
from bulletbridge.simulation.finish import finish, project
from bulletbridge.simulation.radau import radau_stages
from bulletbridge.simulation.sub_steps import stepping
from bulletbridge.simulation.ways import Way

STEP, ACCELERATE, PROJECT = 0, 1, 2
"""Tasks: advance by steps; acceleration into vectors[ACCELERATION]; correct and filter in place."""


@inlined
def respond(a: Arrays, f: Factors, q: Array, v: Array, tau: Array, vdot: Array) -> None:
    """What applied and bias forces do to the admissible velocities: P M⁻¹ (tau - h)."""
    push(a, f, q, v, tau, vdot)
    unwhiten(f.L, vdot)


advance = stepping(
    Way(OF_THE_WHOLE, refresh, respond, accelerate, accelerate_at, radau_stages, finish)
)


@kernel
def run(
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
    targets: Array,
    tau: Array,
    record: Array,
    task: int,
    steps: int,
) -> int:
    """Do a task at the state (q, v, t), in place; return the failure that stopped it, or DONE.

    rows (3, nc): two sets for the factors, one for the user's rows. L (7, nv, nv), Y (2, nc, nv),
    R (2, nc, nc): two sets of factors, contiguous, so that their loops vectorise; the other
    matrices of L are those of an implicit method, and there for that alone. state (nq + nv + 1).
    targets (times, targets): at the start of each step, with Runge-Kutta at its middle too, and at
    the end of the last. tau (times, nv): one line a step, with Runge-Kutta three, at its start, its
    middle and its end, so that forces may jump from step to step. Of both one line for all times if
    they are constant, or if ``control.scripted``. record (steps // every, nq + nv + 4) receives
    states, rank, margin, passes; empty for none.
    """
    nv, nq = len(axes), len(state) - len(axes) - 1
    c = control[0]
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
    q, v = state[:nq], state[nq : nq + nv]
    now = Moment(state[nq + nv], targets[0])
    other = 0 if c.integrator == DOP8 else 1  # its last stage is at the end of the step
    s = FactorPair(
        Factors(L[0], Y[0], R[0], rows[0]), Factors(L[other], Y[other], R[other], rows[other]), L
    )
    if task == STEP:
        return advance(a, s, state, targets, tau, record, 0, steps)
    c.failure, c.done = DONE, 0
    take_springs(c, 0.0)
    if task == ACCELERATE:
        accelerate_at(a, s.f, now, q, v, tau[0], vectors[ACCELERATION, :nv])
        c.fresh = OF_THE_WHOLE
    else:
        project(a, s.f, now, q, v)
    return c.failure
