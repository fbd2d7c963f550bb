"""Directions of loops that were left out as redundant, and are watched all the same.

That a direction follows from the others was found at some configurations and is taken for all. Its
residual is at hand wherever those of the rows are, see ``rows.residuals``; its rate and the loop
that is to be named are here.
"""

from typing import NamedTuple

from bulletbridge.compilation.jit import helper, kernel
from bulletbridge.constraints.records import Coupling, Loop, Target, Term
from bulletbridge.constraints.relative_pose import (
    constant_rows,
    frames,
    from_other,
    position_in,
    rotation_error,
    variable_direction,
)
from bulletbridge.constraints.rows import slope
from bulletbridge.mechanism.kinematics import axis_twist
from bulletbridge.mechanism.records import Axis, Pose
from bulletbridge.numerics.projection import Row
from bulletbridge.numerics.records import Array, Records, Vector
from bulletbridge.numerics.spatial import (
    ZERO,
    add,
    apply,
    dot,
    mul,
    norm,
    scale,
    transpose,
    vec,
    velocity_at,
)

NO_RATE = 1e-12
"""Rate [rad/s, lengths/s] of rows that hold velocities which is none, whatever moves."""


@helper
def widest_left_out(
    loops: Records[Loop], poses: Records[Pose], targets: Records[Target]
) -> tuple[int, float]:
    """The loop with the residual that is furthest beyond what it may be, and that residual."""
    widest, found, beyond = -1, 0.0, 0.0
    for i in range(len(loops)):
        loop = loops[i]
        if loop.left == 0:
            continue
        a, b = frames(loop, poses, targets)
        s = position_in(a, b)
        error = rotation_error(loop, mul(transpose(a[0]), b[0]), s)
        first = constant_rows(loop)
        for k in range(first, first + loop.left):
            g = abs(dot(vec(loop.moment[k]), error) + dot(vec(loop.force[k]), s))
            if g - loop.allowed > beyond:
                widest, found, beyond = i, g, g - loop.allowed
    return widest, found


@helper
def leaves_out_rates(loops: Records[Loop]) -> bool:
    """Whether directions that hold velocities alone are left out of a loop."""
    some = False
    for i in range(len(loops)):
        some = some or loops[i].left_rates > 0
    return some


@helper
def fastest_left_out(
    loops: Records[Loop],
    poses: Records[Pose],
    axes: Records[Axis],
    targets: Records[Target],
    length: float,
    v: Array,
    rates_alone: bool,
) -> tuple[int, float]:
    """The loop whose directions left out move faster than they may, and how fast; -1 for none.

    Of all such directions, or of those that hold ``rates_alone``.
    """
    for i in range(len(loops)):
        loop = loops[i]
        if loop.left_rates == 0 and (rates_alone or loop.left == 0):
            continue
        w, u, pace = relative_twist(loop, poses, axes, targets, length, v)
        first, end = constant_rows(loop), constant_rows(loop) + loop.left + loop.left_rates
        if rates_alone:
            first += loop.left
        for k in range(first, end):
            rate = abs(dot(vec(loop.moment[k]), w) + dot(vec(loop.force[k]), u))
            if rate > loop.allowed_rate * pace:
                return i, rate
    return -1, 0.0


@helper
def relative_twist(
    loop: Loop,
    poses: Records[Pose],
    axes: Records[Axis],
    targets: Records[Target],
    length: float,
    v: Array,
) -> tuple[Vector, Vector, float]:
    """Twist of a loop's frame b against a by rates v, in axes of a, and the sum of its parts.

    That is of their sizes: what round-off of it goes by, in radians and lengths.
    """
    a, b = frames(loop, poses, targets)
    w, u, pace = ZERO, ZERO, 0.0
    for end in range(2):
        k = loop.axis_b if end == 1 else loop.axis_a
        point = b[1] if end == 1 else from_other(loop, poses, a, b)[1][1]
        while k != loop.common_axis:
            rate = v[k] if end == 1 else -v[k]
            twist = axis_twist(axes[k])
            linear = velocity_at(twist, point)
            w, u = add(w, scale(rate, twist[0])), add(u, scale(rate, linear))
            pace += abs(rate) * (norm(twist[0]) + norm(linear) / length)
            k = axes[k].below
    up = transpose(a[0])
    return apply(up, w), apply(up, u), pace


class Slack(NamedTuple):
    """What rates along rows may be."""

    # share, of what moves a constraint and of what drives it, along rows that hold velocities alone
    alone: float
    held: float  # the same along rows that hold positions;
    least: float  # and the rate [rad/s, lengths/s] that is none there, whatever moves
    positions: bool  # whether these are looked at


@helper
def fastest_slip(
    loops: Records[Loop],
    poses: Records[Pose],
    axes: Records[Axis],
    targets: Records[Target],
    rows: Records[Row],
    length: float,
    v: Array,
    slack: Slack,
) -> tuple[int, float]:
    """The row of a loop that moves most beyond what it may, and how fast; -1 for none.

    Rows know the rates of prescribed motions.
    """
    worst, fastest, so_far, so_wide = -1, NO_RATE, 0.0, 0.0
    for i in range(len(loops)):
        loop = loops[i]
        constant = constant_rows(loop)
        if loop.held == constant and not slack.positions:
            continue
        w, u, pace = relative_twist(loop, poses, axes, targets, length, v)
        for k in range(0 if slack.positions else loop.held, constant):
            row = rows[loop.row + k]
            size = abs(
                row.unit * (dot(vec(loop.moment[k]), w) + dot(vec(loop.force[k]), u) + row.g_t)
            )
            share, least = slack.alone, fastest
            if k < loop.held:
                share, least = slack.held, max(fastest, slack.least)
            if size > least and size > share * (pace + abs(row.unit * row.g_t)):
                worst, fastest = loop.row + k, size
        if loop.variable == 0 or not slack.positions:
            continue
        a, b = frames(loop, poses, targets)
        relative, s = mul(transpose(a[0]), b[0]), position_in(a, b)
        moment, force = variable_direction(loop, relative, s)
        before, wide = (so_far, so_wide) if loop.adds != 0 else (0.0, 0.0)
        so_far, so_wide = before + dot(moment, w) + dot(force, u), wide + pace
        if i + 1 == len(loops) or loops[i + 1].adds == 0:  # else another stretch of a line
            row = rows[loop.row + constant]
            size = abs(row.unit * (so_far + row.g_t))
            least = max(fastest, slack.least)
            if size > least and size > slack.held * (so_wide + abs(row.unit * row.g_t)):
                worst, fastest = loop.row + constant, size
    return worst, fastest


@helper
def fastest_coupling(
    couplings: Records[Coupling],
    terms: Records[Term],
    axes: Records[Axis],
    rows: Records[Row],
    v: Array,
    slack: Slack,
) -> tuple[int, float]:
    """The same of joints that are coupled."""
    worst, fastest = -1, max(NO_RATE, slack.least)
    for i in range(len(couplings)):
        coupling, row = couplings[i], rows[couplings[i].row]
        rate, pace = row.g_t, abs(row.g_t)
        for n in range(coupling.first, coupling.first + coupling.count):
            k = terms[n].axis
            moves = slope(terms[n], axes[k].position) * v[k]
            rate, pace = rate + moves, pace + abs(moves)
        size = abs(row.unit * rate)
        if size > fastest and size > slack.held * abs(row.unit) * pace:
            worst, fastest = coupling.row, size
    return worst, fastest


@kernel
def find_widest(
    loops: Records[Loop], poses: Records[Pose], targets: Records[Target]
) -> tuple[int, float]:
    """``widest_left_out``, to be called from Python."""
    return widest_left_out(loops, poses, targets)
