"""Sub-steps: each predicts by an integrator, corrects, filters; their lengths, if controlled."""

import math
from collections.abc import Callable
from typing import NamedTuple

from bulletbridge.compilation.jit import bundling, helper
from bulletbridge.engine.backend import KktBackend, Pair, Stages
from bulletbridge.engine.correction import finite
from bulletbridge.engine.dense import set_implicit_horizon
from bulletbridge.engine.explicit import semi_implicit_euler
from bulletbridge.engine.plausible import (
    COARSE,
    crosses,
    judge_balance,
    judge_leap,
    leaps,
    ways_squared,
)
from bulletbridge.engine.records import (
    AT_LIMIT,
    BEFORE_Q,
    BEFORE_V,
    BY_CLUSTERS,
    BY_DENSE,
    BY_SPARSE,
    CREEPING,
    DENSE_REQUIRED,
    DONE,
    DOP8,
    EULER,
    FORCES_PER_STEP,
    NOT_CLOSED,
    NOT_FACTORED,
    NOT_FINITE,
    NOT_RESOLVED,
    RADAU,
    RK4,
    STAGE_RATES,
    STAGE_VDOTS,
    START_Q,
    START_V,
    TARGETS_PER_STEP,
    UNLESS_CREEPING,
    VERLET,
    Arrays,
    Control,
    Instant,
)
from bulletbridge.engine.singular_passage import (
    LANDING,
    NEAREST,
    divisible,
    fixed_length,
    longest,
    on_singular,
)
from bulletbridge.engine.stages import (
    NO_STAGES,
    SubStep,
    distance,
    pace,
    prescribe,
    put_record,
)
from bulletbridge.engine.step_end import StepEnd
from bulletbridge.engine.verlet import first_half
from bulletbridge.mechanism.records import Axis
from bulletbridge.numerics.records import Array, Records
from bulletbridge.numerics.spatial import copy_into

SAFETY, MOST_SHRINKING, MOST_GROWTH = 0.9, 0.2, 6.0
NEAR_SINGULAR = 0.1
"""Weakest row over the strongest, of any stage, that counts as near to a singular position; it is
relative to the largest one met."""
FINEST = 0.25
"""Share of the last sub-step elsewhere, both times the pace, below which one near a singular
position is not cut. Off the constraints, where stages are, accelerations have a pole there, and an
estimate that follows it never ends; the motion is smooth. Where it is not, since the mechanism
turns back before such a position, the pace grows and lets sub-steps be shorter.
"""
WORST, ELSEWHERE = 1e-4, 0.7
"""Estimate, in units, that is not taken even so, and how much shorter the next attempt is."""
CREEPS = 1.0 / 16.0
"""Share of that shortest one below which one that is rejected near a singular position creeps.

Where the ways across it that may be tried are all amplified too much, those that stop before it
are taken, each shorter than the last: what ends so has come to the position itself, where nothing
tells rates along the loops from those across, and most of them may be lost. Eight attempts each
0.7 of the last are more than it takes to move a stage away from it.
"""
BRIEF = 1e-3
"""Share of the step below which sub-steps of an implicit method near a singular position creep: one
of order 8 takes fewer."""
SMALLEST = 1e-10
"""Smallest sub-step, as a share of the step: one that would have to be shorter is an error."""
MOST_ATTEMPTS = 20_000
"""Sub-steps of a step, with those in vain: a chain that whirls at its reach takes some 6000."""

TAKEN, REJECTED, OUT_OF_DEPTH = range(3)
"""Outcomes of a method of several stages: its result will do, another length is tried, or the steps
of an implicit method near a singular position are left to explicit ones."""


class Step(NamedTuple):
    """A step, of which ``stages.SubStep`` is a part."""

    t: float  # its start [s]
    end: float  # [s]
    dt: float  # length [s]
    targets: Array  # (times, targets) prescribed motions of all steps
    tau: Array  # (lines, nv) forces in it
    first: int  # line of the targets at its start
    each: int  # lines of the targets from there to its end
    divisible: bool  # whether one of fixed length may be done in parts


def stepping(backend: KktBackend, end: StepEnd, stages: Stages = NO_STAGES) -> Callable[..., int]:
    """The helper that does steps with factors of one kind, by methods that its stages know.

    numba resolves the functions that it closes over when it compiles it; as arguments they would
    keep a kernel from being kept on disk.
    """
    factored, factor_at, energy_of = backend.factored, backend.factor_at, backend.energy_of
    admissible_acceleration, find_least = backend.admissible_acceleration, backend.find_least
    accelerate, accelerate_at = backend.accelerate, backend.accelerate_at
    explicit_stages, implicit_stages = stages
    stabilise_step = end.stabilise_step

    @helper
    def advance(
        a: Arrays,
        s: Pair,
        state: Array,
        targets: Array,
        tau: Array,
        record: Array,
        first: int,
        steps: int,
    ) -> int:
        """Do steps ``first`` to ``steps``, each in as many sub-steps as the error control asks for.

        The arrays are those of ``step_kernel.run``, of all steps from step 0 on. Meanwhile
        ``control.dt`` is the length of the sub-step.

        Returns:
            The failure that stopped it, with the state before that step restored, or DONE.
        """
        c, nv, nq = a.control, len(a.axes), len(state) - len(a.axes) - 1
        q, v = state[:nq], state[nq : nq + nv]
        v0, vdot = a.vectors[START_V, :nv], a.vectors[STAGE_VDOTS, :nv]
        each = TARGETS_PER_STEP[c.integrator]
        lines = FORCES_PER_STEP[c.integrator] if len(tau) > 1 else 1
        every = steps // len(record) if len(record) > 0 else 0
        whole, t0 = c.dt, state[nq + nv] - first * c.dt
        set_implicit_horizon(a, whole if c.integrator == EULER else 0.0)
        judged, other = c.judged, take_control(c, factored)
        watched = has_limits(a.axes)
        parts = divisible(c, targets, tau)
        c.failure, c.done, c.taken, c.rejected = DONE, first, 0, 0
        for n in range(first, steps):
            copy_into(a.vectors[BEFORE_Q], q)
            copy_into(a.vectors[BEFORE_V], v)
            kinetic = c.kinetic
            k, line = min(lines * n, len(tau) - lines), min(each * n, len(targets) - 1)
            t, end = t0 + n * whole, t0 + (n + 1) * whole
            step = Step(t, end, whole, targets, tau[k : k + lines], line, each, parts)
            known = do_step(a, s, step, other, q, v, v0, vdot)
            c.dt = whole
            if watched and c.failure == DONE and is_beyond_limit(a.axes, q):
                c.failure, c.t = AT_LIMIT, end
            if c.failure != DONE:
                copy_into(q, a.vectors[BEFORE_Q])
                copy_into(v, a.vectors[BEFORE_V])
                c.factored, c.kinetic = NOT_FACTORED, kinetic
                # what is known holds for who was here
                if c.failure == DENSE_REQUIRED and other > 0.0 and known < 0.0:
                    c.factored, c.judged = factored, judged
                elif c.failure == DENSE_REQUIRED and known > 0.0:
                    c.factored, c.filter_rank, c.margin = factored, c.cap, known
                return c.failure
            other = 0.0
            state[nq + nv] = end
            c.done = n + 1
            if every > 0 and (n + 1) % every == 0:
                put_record(record[(n + 1) // every - 1], state, a.control)
        return DONE

    @bundling
    def do_step(
        a: Arrays,
        s: Pair,
        step: Step,
        other: float,
        q: Array,
        v: Array,
        v0: Array,
        vdot: Array,
    ) -> float:
        """Do a step in sub-steps; q and v after it, and in ``control.failure`` whether it was done.

        It stands in ``advance`` as text: as a function, small mechanisms are some percent slower.

        Args:
            a: The system.
            s: Its factors.
            step: Which.
            other: As of ``take_control``, for the first one of a call.
            q: (nq,)
            v: (nv,)
            v0: (nv,) receives that at the start of a sub-step.
            vdot: (nv,) receives accelerations there.

        Returns:
            The margin at its start; -1 where that could not be told.
        """
        c, whole, known, t = a.control, step.dt, -1.0, step.t
        again, landed, attempts = False, 0, 0  # of the error control
        rest, landing, stuck = whole, False, False  # stuck: an implicit method out of its depth
        most = longest(a, v, whole, step.divisible, c.factored == factored)
        last, from_here = False, 1.0
        while not last:
            last = True
            start = Instant(t, step.targets[step.first])
            attempts += 1
            if attempts > MOST_ATTEMPTS and c.controlled:
                c.failure = NOT_RESOLVED
                break
            if not again:
                begin(a, s, start, q, v)
                if c.failure != DONE:
                    break
                from_here = distance(c)
                if known < 0.0:
                    known = from_here
                    if other > 0.0:
                        c.clear = c.clear * known / other
            if not c.controlled:
                c.dt = min(most, fixed_length(whole, rest, landing))
                last = c.dt == rest
            outcome = TAKEN
            if c.integrator != EULER:
                if not again:
                    accelerate(a, s.f, start, q, v, step.tau[0], vdot)
                    copy_into(a.vectors[STAGE_RATES], v)
                if not finite(vdot):
                    c.failure = NOT_FINITE
                    break
            if c.integrator == EULER:
                semi_implicit_euler(admissible_acceleration, a, s.f, q, v, step.tau[0])
            elif c.integrator == VERLET:
                first_half(a, q, v, step.tau)
            else:
                part = SubStep(t, pace(a, v0, vdot), step.targets, step.tau, step.first)
                if c.controlled:
                    last = choose_length(c, step.end - t, part.pace)
                outcome = by_stages(a, s, step, part, again, stuck, q, v)
            if c.failure != DONE:
                break
            if outcome != TAKEN:
                again, last = True, False
                if outcome == OUT_OF_DEPTH:
                    most, stuck = NEAREST * whole, True
                continue
            line = min(step.first + step.each, len(step.targets) - 1)
            after = Instant(step.end if last else t + c.dt, step.targets[line])
            prescribe(a, after.t)
            stabilise_step(a, s.f, after, q, v)
            again = False
            if c.controlled and is_refused(a, step, not last and landed < 3, q, v):
                landed, last = landed + 1, False
                continue
            landed = 0
            if c.failure == DONE and not c.controlled:
                judge_energy(a, s, start, after, step.tau, q, v, v0)
            if c.failure == DONE and crosses(c, from_here, distance(c)):
                judge_balance(a, start, after, q, v, step.tau, 1.0)
            if c.failure != DONE:
                break
            if not c.controlled:
                ends = last and not landing and step.divisible
                if ends and on_singular(a, v, whole):
                    undo(a, q, v)
                    last, landing = False, True
                    continue
                rest -= c.dt
                if not stuck or distance(c) >= NEAR_SINGULAR * c.clear:
                    most, stuck = 1.01 * (whole - rest), False
            t += c.dt
            c.taken += 1
        if c.failure != DONE:
            c.t = t
        return known

    @helper
    def begin(a: Arrays, s: Pair, start: Instant, q: Array, v: Array) -> None:
        """Keep the state from which a sub-step starts, and have the factors there."""
        copy_into(a.vectors[START_Q], q)
        copy_into(a.vectors[START_V], v)
        prescribe(a, start.t)
        if a.control.factored != factored:
            factor_at(a, s.f, start, q, v)

    @helper
    def by_stages(
        a: Arrays, s: Pair, step: Step, part: SubStep, again: bool, stuck: bool, q: Array, v: Array
    ) -> int:
        """Predict by a method of several stages, and judge its error: an outcome."""
        c, method = a.control, a.control.integrator
        rank, filter_rank, margin, here = c.rank, c.filter_rank, c.margin, distance(c)
        outcome = TAKEN
        if method == RADAU and not stuck:
            error, weakest = implicit_stages(a, s, part, again, q, v)
            near = min(weakest, here) < NEAR_SINGULAR * c.clear
            if near and not c.controlled and c.failure == DONE:
                outcome = OUT_OF_DEPTH
        else:
            if method == RADAU or (step.divisible and c.dt < 1.5 * NEAREST * step.dt):
                c.integrator = RK4  # the shortest parts
            error, weakest = explicit_stages(accelerate_at, a, s, part, q, v)
            c.integrator = method
        if c.failure != DONE:
            return outcome
        if outcome == TAKEN and not accepted(c, error, part.pace, min(weakest, here), again):
            outcome = REJECTED
            if c.failure == DONE and not c.dt > SMALLEST * step.dt:
                c.failure = NOT_RESOLVED
        brief = method == RADAU and c.controlled == UNLESS_CREEPING and c.next_dt < BRIEF * step.dt
        if brief and c.failure == DONE and min(weakest, here) < NEAR_SINGULAR * c.clear:
            c.failure = CREEPING
        if outcome != TAKEN or method != DOP8:
            c.rank, c.filter_rank = rank, filter_rank
        if outcome != TAKEN:
            c.margin = margin
        return outcome

    @helper
    def judge_energy(
        a: Arrays,
        s: Pair,
        start: Instant,
        after: Instant,
        tau: Array,
        q: Array,
        v: Array,
        v0: Array,
    ) -> None:
        """Refuse a sub-step of fixed length in which rates have leapt.

        Or, by a method of several stages, one that turns far while rates grow, as at the end of a
        whip, and that has lost energy.
        """
        c = a.control
        slow, fast = ways_squared(a, v0, v)
        energy = energy_of(a, s.f, v) if fast > COARSE * COARSE else 0.0
        if leaps(a, slow, fast, energy):
            find_least(a, s.f)
            judge_leap(a, start, after, q, v, tau, 0.0, c.excess)
            staged = c.integrator != EULER and c.integrator != VERLET
            if c.failure == DONE and staged and fast > COARSE * COARSE:
                judge_balance(a, start, after, q, v, tau, c.excess)
        if c.failure == DONE:
            c.kinetic = energy

    return advance


@helper
def undo(a: Arrays, q: Array, v: Array) -> None:
    """Go back to where the sub-step started."""
    copy_into(q, a.vectors[START_Q])
    copy_into(v, a.vectors[START_V])
    a.control.factored = NOT_FACTORED


@helper
def is_refused(a: Arrays, step: Step, may_land: bool, q: Array, v: Array) -> bool:
    """Undo a sub-step under error control that has ended open or on a singular position, if it has.

    The next one is shorter. Such a position counts if it ``may_land`` elsewhere.
    """
    c = a.control
    open = c.failure == NOT_CLOSED
    on_it = c.failure == DONE and may_land and distance(c) < LANDING * c.clear
    if not (open or on_it) or not c.dt > SMALLEST * step.dt:
        return False
    undo(a, q, v)
    c.failure = DONE
    c.next_dt = (0.25 if open else ELSEWHERE) * c.dt
    c.rejected += 1
    return True


@helper
def has_limits(axes: Records[Axis]) -> bool:
    """Whether any joint has limits at which free steps end."""
    for k in range(len(axes)):
        if axes[k].limited != 0:
            return True
    return False


@helper
def is_beyond_limit(axes: Records[Axis], q: Array) -> bool:
    """Whether a joint is beyond a limit at which free steps end."""
    for k in range(len(axes)):
        axis = axes[k]
        if axis.limited != 0 and not axis.lower <= q[axis.q] <= axis.upper:
            return True
    return False


@helper
def take_control(c: Control, factored: int) -> float:
    """Keep the error control's memory if its last step ended at this state, else clear it.

    Margins by other factors differ by some number. If the largest one met was by such, return the
    margin by them here, for a comparison, or else 0.
    """
    here = c.factored == BY_DENSE or c.factored == BY_SPARSE or c.factored == BY_CLUSTERS
    other = distance(c) if here and c.factored == c.judged and c.judged != factored else 0.0
    if not here or (c.judged != factored and other == 0.0):
        c.next_dt, c.reach, c.clear, c.slope = 0.0, 0.0, 0.0, 0
    c.judged = factored
    return other


@helper
def choose_length(c: Control, left: float, w: float) -> bool:
    """Choose the length of the next sub-step, ``left`` [s] before the end; whether it is the last.

    ``w`` is the pace there [1/s].
    """
    if c.next_dt == 0.0:
        c.next_dt = 0.5 * c.rtol ** (1.0 / order(c)) / w if w > 0.0 else left
    parts = math.ceil(min(left / c.next_dt, 1e15) * (1.0 - 1e-9))
    c.dt = left / max(parts, 1)
    return parts <= 1


@helper
def order(c: Control) -> float:
    """Order of the error estimate, plus one."""
    return 4.0 if c.integrator == RADAU else 8.0


@helper
def accepted(c: Control, error: float, w: float, margin: float, again: bool) -> bool:
    """Whether a sub-step will do whose error is a multiple of what is tolerated; the next length.

    The error is NaN or infinite if the stages failed, w the pace [1/s], margin that of the worst
    stage, again whether the sub-step before was rejected.
    """
    if not c.controlled:
        if not error < math.inf:
            c.failure = NOT_RESOLVED
        return error < math.inf
    scale = MOST_SHRINKING
    if error < math.inf:
        scale = MOST_GROWTH
        if error > 0.0:
            scale = min(MOST_GROWTH, max(MOST_SHRINKING, SAFETY * error ** (-1.0 / order(c))))
    c.clear = max(c.clear, margin)
    near = margin < NEAR_SINGULAR * c.clear
    if c.reach == 0.0 or (error <= 1.0 and not near):
        c.reach = c.dt * w
    least = FINEST * c.reach / w if near else 0.0
    if error <= 1.0:
        c.next_dt = c.dt * (min(scale, 1.0) if again else scale)
        return True
    if near and c.controlled == UNLESS_CREEPING and c.dt < CREEPS * FINEST * c.reach / w:
        c.failure = CREEPING
        return False
    if c.dt > 1.001 * least or not error < math.inf:
        c.next_dt = max(scale * c.dt, least if error < math.inf else 0.0)
    elif error * c.rtol < WORST:
        c.next_dt = 1.5 * c.dt
        return True
    else:  # some stage is all but on that position; another length moves it
        c.next_dt = ELSEWHERE * c.dt
    c.rejected += 1
    return False
