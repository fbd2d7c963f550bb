"""What each force element and each damping of a link does to the body that it acts on."""

from bulletbridge.compilation.jit import outlined
from bulletbridge.mechanism.dynamics import add_drag
from bulletbridge.mechanism.force_elements import (
    add_wrench,
    coordinate,
    coordinates,
    line_state,
    relative_twist,
    strength,
)
from bulletbridge.mechanism.records import DRAG, STRETCH, TENDON, WRENCH, Effort, Pose
from bulletbridge.numerics.records import Array, Records
from bulletbridge.numerics.spatial import (
    ZERO,
    add_pair,
    power,
    put,
    put_pair,
    scale_pair,
    vec,
)


@outlined
def element_wrenches(efforts: Records[Effort], poses: Records[Pose], found: Array) -> None:
    """Moment and force of each effort on the body of its frame b, found (n, 6), world axes.

    About the origin of that body's tree; elements do the opposite to the body of frame a. Tendons,
    which act on rates, have none. Takes poses with twists from ``bias``, and leaves .fw and .fv of
    what is damped or pushed otherwise than they were.
    """
    for i in range(len(efforts)):
        effort = efforts[i]
        if effort.kind == DRAG:
            pose = poses[effort.body]
            put(pose.fw, ZERO)
            put(pose.fv, ZERO)
            add_drag(effort, pose)
            put_pair(found[i], scale_pair(-1.0, (vec(pose.fw), vec(pose.fv))))
        elif effort.kind == WRENCH:
            pose = poses[effort.body_b]
            put(pose.fw, ZERO)
            put(pose.fv, ZERO)
            add_wrench(effort, poses)
            put_pair(found[i], scale_pair(-1.0, (vec(pose.fw), vec(pose.fv))))
        elif effort.kind == TENDON:
            put_pair(found[i], (ZERO, ZERO))
        elif effort.stretches > 0:
            x, rate = line_state(efforts, i, poses)
            size = strength(effort, 0, x, rate)
            for k in range(i, i + 1 + effort.stretches):
                put_pair(found[k], scale_pair(size, coordinate(efforts[k], poses, 0)[1]))
        elif effort.kind != STRETCH:
            twist, total = relative_twist(effort, poses), (ZERO, ZERO)
            for k in range(coordinates(effort)):
                x, wrench = coordinate(effort, poses, k)
                size = strength(effort, k, x, power(wrench, twist))
                total = add_pair(total, scale_pair(size, wrench))
            put_pair(found[i], total)
