"""Gaps that somebody else's constraints would have opened, and where its frames are told to be.

A solver that takes back a share of a gap in each step knows by that gap what its constraints have
to carry. Where the gap is closed behind its back it forgets that from step to step; told a frame
as far away as the gap would be, it does not.
"""

from bulletbridge.compilation.jit import kernel
from bulletbridge.constraints.moved_frames import Vec4, Vec7
from bulletbridge.constraints.records import Loop, Target
from bulletbridge.constraints.relative_pose import frames
from bulletbridge.mechanism.records import Pose
from bulletbridge.numerics.records import Int, Mat3, Records, Vec3, dtype_of
from bulletbridge.numerics.spatial import (
    add,
    apply,
    mat,
    mul,
    put,
    put_quat,
    quat_exp,
    quat_mul,
    rotation_vector,
    scale,
    sub,
    transpose,
    vec,
)


class ToldGap:
    """One loop that holds a point, or a frame, and the gap that it would have."""

    loop: Int  # its place among the loops
    turns: Int  # whether it holds the frame, too
    align: Mat3  # axes of the encoded frame a in the frame that is told
    axes: Mat3  # axes of the frame that is told, in those it is told in
    p: Vec3  # where that frame is, in what it is told in [m]
    q: Vec4  # likewise, xyzw
    gap: Vec3  # way from a to b that it would have to close, in the axes of the encoded a [m]
    turn: Vec3  # and turn [rad]
    told: Vec7  # where the frame is to be told for that: position and quaternion


TOLD_GAP = dtype_of(ToldGap)


@kernel
def add_gaps(
    gaps: Records[ToldGap], loops: Records[Loop], poses: Records[Pose], targets: Records[Target]
) -> int:
    """Add to gaps (n,) what is open at poses (nb,), and find where frames are told for that.

    Turns are added as vectors, which is true to the square of a turn.

    Returns:
        n.
    """
    for i in range(len(gaps)):
        g = gaps[i]
        a, b = frames(loops[g.loop], poses, targets)
        to_a, told_axes = transpose(a[0]), mul(mat(g.axes), mat(g.align))
        put(g.gap, add(vec(g.gap), apply(to_a, sub(b[1], a[1]))))
        put(g.told[:3], sub(vec(g.p), apply(told_axes, vec(g.gap))))
        if g.turns:
            put(g.turn, add(vec(g.turn), rotation_vector(mul(to_a, b[0]))))
            back = quat_exp(apply(mat(g.align), scale(-1.0, vec(g.turn))))
            put_quat(g.told[3:], quat_mul((g.q[0], g.q[1], g.q[2], g.q[3]), back))
    return len(gaps)
