"""Kinematics of closed chains: from some joints, or from the pose of a link, to all joints."""

from dataclasses import replace

import numpy as np

from bulletbridge.constraints.arrays import Encoded
from bulletbridge.constraints.encode import encode
from bulletbridge.constraints.joints import (
    Frame,
    JointModel,
    LoopJoint,
    Triple,
    frame_of,
)
from bulletbridge.engine.failures import require_closed
from bulletbridge.engine.stepper import Solver
from bulletbridge.errors import AssemblyError, ModelError
from bulletbridge.inequalities.constraints import beyond_limits, joints_beyond
from bulletbridge.mechanism.by_joint import ByJoint, Values, by_joint, put_values
from bulletbridge.mechanism.frames import triple
from bulletbridge.mechanism.model import WORLD
from bulletbridge.numerics.records import Array
from bulletbridge.system.assembly import SEARCHED, close, open_by, round_off
from bulletbridge.system.system import System
from bulletbridge.system.within_limits import closed_within

OUT_OF_REACH = (
    "the frame does not get there from here; ask for a place within reach, for less of its"
    " orientation, hold fewer joints, or give a guess"
)


def forward_kinematics(
    system: System, q: Values, guess: Values | None = None, *, within_limits: bool = False
) -> ByJoint:
    """Configuration that closes all loops where some joints have given positions.

    Of several, the one that continues the present state, or the guess; where the given joints do
    not determine it, the others move as little as possible in the metric of the mass matrix.

    Args:
        system: Mechanism and where to start from; nothing of it changes.
        q: Positions by joint [rad or m], quaternions xyzw.
        guess: Positions to start from that are free to move.
        within_limits: Whether joints that move stay within their limits.

    Returns:
        q (nq,), which goes by joint names too.

    Raises:
        ModelError: A joint does not exist, or a number is not finite.
        AssemblyError: The loops cannot close there; the message names the widest and its gap, or
            the joints that would leave their limits.
    """
    found = _close(system, system.dynamics.solver, q, guess, within_limits)
    return by_joint(found, system.mechanism, "q")


def inverse_kinematics(
    system: System,
    frame: Frame | str,
    position: Array | Triple,
    orientation: Array | None = None,
    *,
    q: Values | None = None,
    guess: Values | None = None,
    within_limits: bool = False,
) -> ByJoint:
    """Configuration that closes all loops and puts a frame where it is wanted.

    The pose is one more loop while it is solved for, with Levenberg and Marquardt's method in the
    metric of the mass matrix: of several configurations the one that continues the start.

    Args:
        system: Mechanism and where to start from; nothing of it changes.
        frame: On a link of the mechanism; the link's own by its name.
        position: (3,) of its origin in the world [m].
        orientation: (3, 3) of its axes in the world, or a quaternion x, y, z, w; any unless given.
        q: Joints that stay at positions by name [rad or m].
        guess: Positions to start from that are free to move.
        within_limits: Whether joints stay within their limits. Where the configuration that
            continues the start leaves some, it is looked for farther off, with limits as bounds.

    Returns:
        q (nq,), which goes by joint names too.

    Raises:
        ModelError: A link or joint does not exist, or a number is not finite.
        AssemblyError: There is no such configuration nearby; the message names what stays open, or
            the joints that would leave their limits.
    """
    from scipy.spatial.transform import Rotation

    frame = frame_of(frame)
    xyz = np.asarray(position, float)
    if xyz.shape != (3,) or not np.all(np.isfinite(xyz)):
        raise ModelError(f"position is {position}; give three finite numbers [m]")
    kind, rpy = JointModel.BALL, np.zeros(3)
    if orientation is not None:
        turn = np.asarray(orientation, float)
        if turn.shape not in ((3, 3), (4,)) or not np.all(np.isfinite(turn)) or not turn.any():
            raise ModelError(f"orientation is {turn}; give axes (3, 3), or a quaternion x, y, z, w")
        read = Rotation.from_quat if turn.shape == (4,) else Rotation.from_matrix
        kind, rpy = JointModel.WELD, read(turn).as_euler("xyz")
    target = Frame(WORLD, triple(xyz), triple(rpy))
    task = encode(system.mechanism, [LoopJoint(f"pose of {frame.link}", kind, target, frame)])
    encoded = with_loop(system.dynamics.solver.encoded, task)
    solver = Solver(system.mechanism, encoded, system.tolerances)
    found = _close(system, solver, q or {}, guess, within_limits, OUT_OF_REACH)
    return by_joint(found, system.mechanism, "q")


def nearest_closed(system: System, q: Array) -> Array:
    """The closed configuration (nq,) nearest to another one in the metric of the mass matrix.

    Raises:
        AssemblyError: The loops do not close near it.
    """
    solver, start = system.dynamics.solver, np.array(q, np.float64)
    enough = round_off(solver, start, system.t) + system.decision.allowance
    found, _ = close(solver, start, system.t, np.zeros(system.mechanism.nv, bool), enough)
    require_closed(solver, found, system.t, enough, SEARCHED)
    return found


def with_loop(encoded: Encoded, task: Encoded) -> Encoded:
    """Constraints with one more loop that has no motion, after the other loops."""
    first, more = int(sum(encoded.loops["rows"])), task.nc
    loops = np.concatenate([encoded.loops, task.loops])
    loops["row"][-1] = first
    couplings = encoded.couplings.copy()
    couplings["row"] += more
    rows: dict[str, slice] = {}
    for name, part in encoded.rows.items():
        shift = more if part.start >= first else 0
        rows[name] = slice(part.start + shift, part.stop + shift)
    before = {name: part for name, part in rows.items() if part.start < first}
    (name,) = task.rows
    rows = before | {name: slice(first, first + more)} | rows
    in_metres = np.insert(encoded.in_metres, first, task.in_metres)
    unit = np.where(task.in_metres, 1.0 / encoded.length, 1.0)
    scale = np.insert(encoded.scale, first, unit)
    return replace(
        encoded, loops=loops, couplings=couplings, rows=rows, in_metres=in_metres, scale=scale
    )


def _close(
    system: System,
    solver: Solver,
    q: Values,
    guess: Values | None,
    within_limits: bool,
    why: str = "",
) -> Array:
    start = system.q
    put_values(system.mechanism, guess or {}, start, "q")
    held = put_values(system.mechanism, q, start, "q")
    enough = round_off(solver, start, system.t) + system.decision.allowance
    found, _ = close(solver, start, system.t, held, enough)
    require_closed(solver, found, system.t, enough, SEARCHED, why)
    asked = set(q)  # who holds a joint beyond its limits wants it there
    if not within_limits or not joints_beyond(system.mechanism, found) - asked:
        return found
    for nearer in closed_within(solver, start, found, system.t, held):
        within, _ = close(solver, nearer, system.t, held, enough)
        is_closed = open_by(solver, within, system.t) <= enough
        if is_closed and not joints_beyond(system.mechanism, within) - asked:
            return within
    beyond = " and ".join(beyond_limits(system.mechanism, found))
    raise AssemblyError(
        f"no configuration was found within limits: {beyond} in the one that continues the start;"
        " hold fewer joints, ask for less of an orientation, give a guess within limits, or leave"
        " within_limits out"
    )
