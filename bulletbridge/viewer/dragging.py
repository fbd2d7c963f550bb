"""Joints moved by hand: the others follow, loops stay closed, limits are not crossed."""

from collections.abc import Sequence

import numpy as np

from bulletbridge.errors import AssemblyError, OverconstrainedError
from bulletbridge.mechanism.model import Joint
from bulletbridge.numerics.records import Array
from bulletbridge.system.system import System

STRIDE = 0.05
"""Longest way of the joint between two assemblies [rad or mechanism lengths], so that the mechanism
stays on its branch."""
CLOSE = 1e-9
"""By what a limit may be crossed, as round-off [rad or m]."""


def range_of(joint: Joint, at: float, length: float) -> tuple[float, float]:
    """From where to where a joint is dragged: its limits, but not beyond a turn or half a length.

    Args:
        joint: The joint.
        at: Where it is [rad or m].
        length: Of the mechanism [m].
    """
    reach = 2.0 * np.pi if joint.kind == "revolute" else 0.5 * length
    return min(max(joint.lower, at - reach), at), max(min(joint.upper, at + reach), at)


def drag(system: System, name: str, target: float, still: Sequence[str] = ()) -> str:
    """Move a joint towards a position, loops closed all the way, and rest there.

    Joints of ``still`` stay where they are, if the loops let them; so does a floating base. The
    motion ends where the loops or a limit end it.

    Args:
        system: Its state is changed, and shown in its world.
        name: A revolute or prismatic joint.
        target: [rad or m]
        still: Joints that would rather stay.

    Returns:
        What was in the way; empty where nothing was.

    Raises:
        ModelError: There is no such joint.
    """
    joint, joints = system.mechanism.joint(name), system.mechanism.joints
    start = float(system.q[joint.q][0])
    unit = system.encoded.length if joint.kind == "prismatic" else 1.0
    strides = max(1, int(np.ceil(abs(target - start) / (STRIDE * unit))))
    base = next((n for n, j in joints.items() if j.kind == "free"), None)
    others_still = tuple(n for n in still if n != name)
    holding: tuple[tuple[str, ...], ...] = (others_still, ()) if others_still else ((),)
    for position in np.linspace(start, target, strides + 1)[1:]:
        before, here = system.q, float(system.q[joint.q][0])
        why = ""
        for others in holding:
            held = {n: np.asarray(before[joints[n].q]).tolist() for n in others}
            if base is not None:
                held[base] = np.asarray(before[joints[base].q]).tolist()
            try:
                system.assemble(held | {name: float(position)})
            except (AssemblyError, OverconstrainedError):
                why = f"the loops do not let '{name}' beyond {here:.4g}"
                continue
            why = _crossed(system, before, name)
            if not why:
                break
        if why:
            system.set_state(before, np.zeros(system.mechanism.nv))
            system.write()
            return why
    return ""


def _crossed(system: System, before: Array, dragged: str) -> str:
    """Which limit was crossed since, in words; those crossed before may not get worse."""
    at = float(before[system.mechanism.joint(dragged).q][0])
    for name, joint in system.mechanism.joints.items():
        if not joint.is_single:
            continue
        was, now = float(before[joint.q][0]), float(system.q[joint.q][0])
        over = max(joint.lower - now, now - joint.upper)
        if over > CLOSE + max(0.0, joint.lower - was, was - joint.upper):
            limit = joint.lower if now < joint.lower else joint.upper
            whose = "its own" if name == dragged else f"that of '{name}'"
            return f"'{dragged}' stops at {at:.4g}: a limit, {whose}, is {limit:.4g}"
    return ""
