"""The step: predict, correct, filter. One call advances many steps.

One factorisation serves a step: the factors made for the filter that ends a step give the
acceleration of the next one, and its correction uses them as a chord method.
"""

from bulletbridge.constraints.layout import Coupling, Loop, Term
from bulletbridge.formulations.arrays import (
    ACCELERATION,
    BEFORE_Q,
    BEFORE_V,
    DONE,
    EULER,
    OF_THE_WHOLE,
    RK4,
    VERLET,
    Arrays,
    Control,
    Factors,
    Moment,
)
from bulletbridge.formulations.projector import accelerate_at, take_springs
from bulletbridge.mechanism.layout import Axis, Beam, Body, Lump, Pose, Station
from bulletbridge.numerics.jit import inlined, kernel
from bulletbridge.numerics.records import Array, Records
from bulletbridge.simulation.finish import project
from bulletbridge.simulation.sub_steps import keep, sub_steps

STEP, ACCELERATE, PROJECT = 0, 1, 2
"""Tasks: advance by steps; acceleration into vectors[ACCELERATION]; correct and filter in place."""


@kernel
def run(
    bodies: Records[Body],
    beams: Records[Beam],
    stations: Records[Station],
    lumps: Records[Lump],
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
        lumps,
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
    f, stage = Factors(L[0], Y[0], R[0], rows[0]), Factors(L[1], Y[1], R[1], rows[1])
    q, v = state[:nq], state[nq : nq + nv]
    t0 = state[nq + nv]
    c.failure, c.done = DONE, 0
    take_springs(c, c.dt if task == STEP and c.integrator == EULER and c.implicit else 0.0)
    if task == ACCELERATE:
        accelerate_at(a, f, Moment(t0, targets[0]), q, v, tau[0], vectors[ACCELERATION, :nv])
        c.fresh = 1
        return c.failure
    if task == PROJECT:
        project(a, f, Moment(t0, targets[0]), q, v)
        return c.failure
    each = 1 if c.integrator == EULER else 2  # times of targets a step
    halves = c.integrator == RK4 or c.integrator == VERLET
    lines = 3 if halves and len(tau) > 1 else 1  # of forces a step
    every = steps // len(record) if len(record) > 0 else 0
    dt, c.taken, c.rejected = c.dt, 0, 0
    if c.fresh != OF_THE_WHOLE:
        c.next_dt, c.reach, c.clear, c.slope = 0.0, 0.0, 0.0, 0
    for n in range(steps):
        keep(vectors[BEFORE_Q], q)
        keep(vectors[BEFORE_V], v)
        k = min(lines * n, len(tau) - lines)
        force = tau[k : k + lines]
        sub_steps(a, c, f, stage, L, t0 + n * dt, t0 + (n + 1) * dt, q, v, targets, force, each * n)
        c.dt = dt
        if c.failure != DONE:
            keep(q, vectors[BEFORE_Q])
            keep(v, vectors[BEFORE_V])
            c.fresh = 0
            return c.failure
        state[nq + nv] = t0 + (n + 1) * dt
        c.done = n + 1
        if every > 0 and (n + 1) % every == 0:
            put_record(record[(n + 1) // every - 1], state, c)
    return c.failure


@inlined
def put_record(line: Array, state: Array, c: Control) -> None:
    """Keep a state and how it was reached."""
    for j in range(len(state)):
        line[j] = state[j]
    line[len(state)] = c.rank
    line[len(state) + 1] = c.margin
    line[len(state) + 2] = c.correction_passes
