"""The arrays that every formulation works on, gathered so that helpers take one argument."""

from typing import Literal, NamedTuple

import numpy as np

from bulletbridge.compilation.jit import bundling
from bulletbridge.constraints.records import Coupling, Loop, Target, Term
from bulletbridge.mechanism.records import Axis, Beam, Body, Effort, Pose, Station
from bulletbridge.numerics.projection import Row
from bulletbridge.numerics.records import Array, Int, Ints, Real, Records, Vec3, dtype_of


class Control:
    """Settings of the solver, and what it reports; one record a system."""

    gravity: Vec3
    dt: Real
    integrator: Int
    directions: Int  # of the correction: at the start of the step, or at the current iterate
    passes: Int  # fixed number of correction passes, or -1: until round-off
    length: Real  # [m] that makes rows in metres comparable to rows in radians
    guard_floor: Real  # [sqrt(kg) m] whitened correction that the guard never questions
    gap_tolerance: Real  # on rows divided by their unit
    round_off: Real  # of residuals, divided by their unit, by the depth and length of chains
    lever: Real  # the same by the rounding of joint positions, over it
    singular_rtol: Real  # rows weaker than this are not solved for
    filter_rtol: Real  # rows weaker than this are not filtered
    mismatch: Real  # residual that dependent rows may keep, divided by their unit
    cap: Int  # number of independent rows, decided at closed configurations
    held_cap: Int  # the same of rows that hold positions
    most_left: Real  # length of rows beyond the cap over the longest, less what the others explain
    user_rows: Int  # rows that a Python function supplies, the last ones
    callback: Int  # its address, or 0
    asked: Int  # address of what gives forces that are functions of the state, or 0
    asked_for: Int  # what that is called with
    driven: Int  # whether any target moves: 1, or 2 where all do along the chord of a step
    scripted: Int  # whether Python gives motions and forces time by time, not all before a call
    controlled: Int  # whether an error estimate sets the length of sub-steps
    rtol: Real
    atol: Real
    compliant: Int  # whether contacts give way that have a stiffness
    energy_budget: Int  # whether steps with inequalities may not add energy by their length
    recovery: Real  # share of a penetration or of a crossed limit that one step takes back
    implicit: Int  # whether joint springs are taken at the end of an Euler step
    excess: Real  # share of the kinetic energy that a step may have too much
    t: Real  # time of the evaluation under way

    damper_dt: Real  # [s] how far ahead the factors take dampers: the step, or 0
    spring_dt: Real  # [s] likewise springs
    factored: Int  # which factors belong to the present configuration
    biased: Int  # whether vectors[BIAS] are the bias forces of the present state
    rank: Int
    filter_rank: Int
    margin: Real  # weakest kept row over the strongest
    gap: Real  # largest kept row after the last correction
    unexplained: Real  # length of the longest row beyond the cap, less what the others explain
    left: Real  # how far directions left out of loops are open beyond what they may
    worst: Int  # what a failure is about: row i, or loop i as -1 - i; axis i of rates that leapt
    slipping: Int  # whether ``gap`` is the rate at which that moves
    opened: Real  # largest row before the last Newton correction
    kinetic: Real  # [J] after the last sub-step in the metric of its factors, if it was coarse
    kinetic_before: Real  # [J] at the start of the last step that was judged
    kinetic_after: Real  # at its end
    given: Real  # what forces can have added meanwhile
    lost: Real  # [J] that rates have lost at singular positions, in steps that could not keep them
    losing: Int  # whether such steps are taken and ``lost`` added up, or are a failure
    rate_before: Real  # of the axis ``worst``, if rates have leapt
    rate_after: Real
    correction_passes: Int
    guarded: Int  # whether the last step fell back to full Newton
    failure: Int
    done: Int  # steps that the last call finished
    next_dt: Real  # [s] of the next sub-step, as the error control would have it; 0: unknown
    reach: Real  # the last sub-step away from singular positions times the pace there
    clear: Real  # the largest margin met
    judged: Int  # of which factors it is one, as in factored
    slope: Int  # whether an implicit method has derivatives that may do
    taken: Int  # sub-steps of the last call
    rejected: Int  # and those tried in vain
    charted: Int  # whether there is a chart of the loops
    chart_rank: Int  # how many rows it has
    charts: Int  # charts begun so far
    weighting: Int  # metric of a modified integration
    metric_rank: Int  # how many rows are independent in it
    uncorrected: Int  # place of the uncorrected velocity that was left last, plus one; 0: none
    uncorrected_before: Int  # of the one before
    sliding: Int  # loop joints that slide with friction in steps


CONTROL = dtype_of(Control)
RECOVERY = 0.2
"""Share of a penetration or of a crossed limit that one step takes back, as Bullet's contactERP."""

(
    EULER, RK4, DOP8, RADAU, VERLET, CHARTS, CHARTS_TRAPEZOIDAL,
    MODIFIED_EULER, MODIFIED_HEUN, MODIFIED_RK4,
) = range(10)  # fmt: skip
FORCES_PER_STEP = 1, 3, 1, 1, 3, 3, 3, 3, 3, 3
"""Times of a step at which each integrator takes given forces, its end among them; if more than one
line of them is given."""
TARGETS_PER_STEP = 1, 2, 2, 2, 2, 2, 2, 2, 2, 2
"""Times of a step, its end left out, at which each takes prescribed motions."""
START, CURRENT = 0, 1
UNLESS_CREEPING, ALWAYS = 1, 2
"""When an error estimate sets the length of sub-steps: until they creep, or however short."""
Directions = Literal["start", "current"]
"""Directions of the configuration correction: of the start of the step, guarded, or Newton's."""
(
    DONE, NOT_CLOSED, NOT_FINITE, INTERRUPTED, CONTRADICTED, NOT_RESOLVED, DENSE_REQUIRED,
    LEFT_OPEN, LEAPT, AT_LIMIT, CREEPING, RATES_LOST, OVERRUN,
) = range(13)  # fmt: skip
POSITION_PHASE, DRIFT_PHASE, SCRIPT_PHASE, FORCE_PHASE, FORCE_CHANGE_PHASE = range(5)
NOT_FACTORED, BY_DENSE, BY_ISLANDS, BY_SPARSE, BY_CLUSTERS, IN_TWO_METRICS, BY_GATHERED = range(7)
"""Backends by which the present configuration is factored."""

(
    BIAS, FORCE, RIGHT_SIDE, SOLUTION, ACCELERATION, START_Q, START_V, PREDICTED_Q,
    STAGE_Q, STAGE_V, CHART, RATE, SEEN_Q, SEEN_V, CORRECTION, BEFORE_Q, BEFORE_V, STAGE_RATES,
) = range(18)  # fmt: skip
STAGE_VDOTS = STAGE_RATES + 12
(
    ONE_OVER_UNITS, LEAST, MEAN, STILL, CHART_ORIGIN, CHART_SEEN, CHART_ROWS, CHART_TURNS,
    MENTIONED, UNCORRECTED,
) = range(STAGE_RATES + 24, STAGE_RATES + 34)  # fmt: skip
MOST_SLIDING = 8
"""Loop joints that may slide with friction in compiled steps."""
SLIDING = UNCORRECTED + 6
VECTORS = SLIDING + 3 * MOST_SLIDING + 4
"""Rows of Arrays.vectors, and their number.

What rates are divided by to compare them stays, and so do the four of the chart: its origin, the
coordinates at which its tilt was seen last, its rows, and pivots; and those of a modified
integration: which coordinates rows mention, and, from UNCORRECTED on, two uncorrected velocities,
each after the q and v that it goes with. From SLIDING on: see ``sliding_friction``."""


class Arrays(NamedTuple):
    """A system: its mechanism, its constraints and scratch vectors."""

    bodies: Records[Body]
    beams: Records[Beam]
    stations: Records[Station]
    efforts: Records[Effort]
    poses: Records[Pose]
    axes: Records[Axis]
    loops: Records[Loop]
    couplings: Records[Coupling]
    terms: Records[Term]
    user_jacobian: Array  # (user rows, nv)
    user_rows: Records[Row]
    vectors: Array
    control: Control


class SystemArrays(NamedTuple):
    """All that a system is for the kernels that step it."""

    bodies: Records[Body]
    beams: Records[Beam]
    stations: Records[Station]
    efforts: Records[Effort]
    poses: Records[Pose]
    axes: Records[Axis]
    loops: Records[Loop]
    couplings: Records[Coupling]
    terms: Records[Term]
    user_jacobian: Array
    rows: np.ndarray  # (3, nc) two sets for the factors, one for the user's rows
    # (matrices, nv, nv): two sets of factors, contiguous, so that their loops vectorise; the others
    # are those of an implicit method, and there for that alone
    L: Array
    Y: Array  # (2, nc, nv) likewise
    R: Array  # (2, nc, nc) likewise
    first: Ints  # (2, nv) columns in which rows of L begin
    vectors: Array  # (VECTORS, n) scratch
    state: Array  # (nq + nv + 1) q, v, t
    control: Records[Control]  # (1,)


class Factors(NamedTuple):
    """The split of velocity space at one configuration."""

    L: Array  # (nv, nv) lower triangular, M = LᵀL
    Y: Array  # (nc, nv) orthonormal in its leading rows
    R: Array  # (nc, nc)
    rows: Records[Row]
    first: Ints  # (nv,) column in which each row of L begins: trees have no part in one another


@bundling
def arrays_of(s: SystemArrays) -> Arrays:
    """A system as helpers take it."""
    return Arrays(
        s.bodies, s.beams, s.stations, s.efforts, s.poses, s.axes, s.loops, s.couplings, s.terms,
        s.user_jacobian, s.rows[2], s.vectors, s.control[0],
    )  # fmt: skip


@bundling
def dense_factors(s: SystemArrays, n: int) -> Factors:
    """Set n of the dense factors: 0 of the start of a step, 1 of its stages."""
    return Factors(s.L[n], s.Y[n], s.R[n], s.rows[n], s.first[n])


class FactorPair(NamedTuple):
    """Factors at the start and at the stages of a step."""

    f: Factors
    stage: Factors
    L: Array  # (matrices, nv, nv): those of the factors, of an implicit method and of a chart


class Instant(NamedTuple):
    """What is prescribed at one time."""

    t: float
    targets: Records[Target]
