"""What steps with inequalities work on, and where in it things stand."""

from typing import NamedTuple

from bulletbridge.compilation.jit import helper
from bulletbridge.constraints.records import JointLimit, MotorRow, Target
from bulletbridge.inequalities.contact_rows import ContactRows
from bulletbridge.inequalities.force_limited_rows import ForceLimitedRows
from bulletbridge.inequalities.loose_bodies import LooseBodies
from bulletbridge.inequalities.motor_limit_rows import LoopAxisRows
from bulletbridge.inequalities.sticking import FilterArrays
from bulletbridge.inequalities.warm_start import ContactImpulse
from bulletbridge.mechanism.records import ContactPoint
from bulletbridge.numerics.complementarity_rows import LINES as LINES_OF_PROBLEM
from bulletbridge.numerics.complementarity_rows import Parts, RowBounds
from bulletbridge.numerics.records import Array, Records

PREDICT, STEP, PREDICTED_STEP = range(3)
"""Tasks: where forces alone would lead in a step, into vectors[PREDICTED_Q]; steps; the step that
was predicted, from the same state by the same forces."""
WITHOUT_MOTORS, WITH_MOTORS, PREDICTIONS = range(3)
"""Lines of forces of a prediction: there may be the first alone."""
SUPPLIED = 2
"""Row of the filter's impulses of loops with those of rows over the whole step."""
(
    RESIDUAL, SWEEPS, NEWTONS, ROWS, WORK, APART, WITH_FRICTION, LEFT, BUDGET, LARGEST, TAKEN,
    COMPLIED, KEPT, BY_LINKS, UNPLANNED, COMPLYING_IN, COMPLYING_AFTER, PARTING_IN, PARTING_AFTER,
    ALONE, TOGETHER, LET_PAST, LED_PAST, REST_IN, REST_AFTER, WHILE_PUSHED, CARRIED, CARRIED_LAST,
    CARRY_IN, CARRY_AFTER, YIELDED, REPORT,
) = range(32)  # fmt: skip
"""Report of the last step: of the solver, rows, work of limits and contacts, whether bodies move
apart, first row of constraints with a force limit, residual that a solver in Python leaves, energy
that may not be exceeded, largest kinetic energy, what was taken [J], whether motors gave way,
contacts whose impulses are kept, whether links were eliminated, steps in which bodies touched that
no plan of this expects; steps until motors that could not give way, and bodies that could not be
moved apart, try again, and the last such wait; whether each island was solved for alone; rows that
are solved for together, before those of loose bodies; whether a step is made though closing loops
leads past a limit or into a contact, and which (``overrun.overrun``); steps until contacts that
begin to slide are looked at for rest again, and the last such wait; whether steps end once no
inequality has pushed in one; steps that may carry the last impulses on, and how many that were
last; steps until that is tried again, and the last such wait; steps in which motors may at once
miss what they ask for by next to nothing. A budget that is not a number begins with the end of the
step."""
(
    X, RIGHT, W, SCRATCH, DELTA_V, MOVING, MOVED, LENGTHS, RESTING, START, ROOM, BOUNCE, RECOVER,
    PUSHED, RATES, WARM, FOUND, ASKED, HOLDS, STRENGTH, BEGUN, GAVE, FREE, AXES,
    IMPULSES,
) = (0, 1, 2, 3, *range(3 + LINES_OF_PROBLEM, 24 + LINES_OF_PROBLEM))  # fmt: skip
BEYOND = SCRATCH + LINES_OF_PROBLEM - 2
"""Rows of impulses: those of the last step, right sides, velocities, the problem's room,
velocities that they gave, of the prediction and of moving bodies apart, squares of rows, impulses
without restitution, what is asked of the rows (4), velocity before the loops are closed, velocity
at the start, warm start, first solution, what motors ask for, which rows hold,
their strengths, impulses, what they give way by, velocity of a prediction without motors, rates
that rows are along; and, of the problem's room, how far rows were beyond their bounds."""


@helper
def any_pushed(x: Array, report: Array) -> bool:
    """Whether any inequality pushed in the last step, by impulses x (rows,)."""
    for i in range(int(report[ROWS])):
        if x[i] != 0.0:
            return True
    return False


class InequalityArrays(NamedTuple):
    """Motors, limits and room for contacts, beside a system's own arrays.

    Attributes:
        holding: Contacts that stick, and what the filter takes; its impulses of loops have a third
            row, of the whole step [N s, N m s], where constraints with a force limit hold.
        motor_rows: Motors, then frictions in joints.
        joint_limits: Of joints and free motions of loops,
        loop_axes: and these motions.
        force_limited: Constraints with a force limit.
        contact_rows: (contacts,) which rows each has.
        kept: (contacts,) what those of the last step exerted.
        local: (contacts,) room for those carried to the start of the step.
        C: (3, rows or nv, nv) the rows less what the constraints forbid, whitened, and as they
            were; then a basis of what is free.
        D: (2, rows, rows and more) of the mixed problem, and room; lines of whole blocks.
        parts: Coordinates that no constraint joins, and room to eliminate them.
        loose: Bodies that nothing but contacts can hold, and room to solve for them.
        bounds: (rows,)
        impulses: (IMPULSES, rows)
        report: (REPORT,)
    """

    holding: FilterArrays
    motor_rows: Records[MotorRow]
    joint_limits: Records[JointLimit]
    loop_axes: LoopAxisRows
    force_limited: ForceLimitedRows
    contact_rows: Records[ContactRows]
    kept: Records[ContactImpulse]
    local: Records[ContactPoint]
    C: Array
    D: Array
    parts: Parts
    loose: LooseBodies
    bounds: Records[RowBounds]
    impulses: Array
    report: Array


class Given(NamedTuple):
    """What drives the steps; what is given by times stays for all of them."""

    targets: Array  # (2, targets) or (1, targets) prescribed motions
    axis_targets: Records[Target]  # of loop axes, now
    limited_targets: Records[Target]  # of constraints with a force limit, now
    tau: Array  # (steps, nv) or (1, nv)
    callback: int  # address of the Python function that solves the mixed problem, or 0
