"""What looks like a mistake in a robot whose loops do not close, or do not move."""

from collections.abc import Collection, Iterable

import numpy as np

from bulletbridge.constraints.joints import JointModel, LoopJoint
from bulletbridge.engine.stepper import Solver
from bulletbridge.mechanism.frames import frame_with_z
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.numerics.records import Array

FAR = 2.0
"""Reaches of a link from its origin at which a frame on it looks misplaced."""
OUT_OF_SCALE = 20.0
"""Length, over the size of the robot, that is one of units: mm are a thousand times too long."""
PARALLEL = 1e-6
"""Sine of the angle between axes that are parallel."""
FEWEST_OF_PLANE = 3
"""Joints that show by being parallel that they are meant to move in a plane."""


def reach_of(mechanism: Mechanism, body: int) -> float:
    """How far a body reaches from its origin, as its mass and the joints on it tell [m].

    A rod's end is 1.7 radii of gyration from its centre.
    """
    record, bodies = mechanism.bodies[body], mechanism.bodies
    if not record["mass"] > 0.0:
        return np.inf
    gyration = np.sqrt(np.linalg.eigvalsh(record["J"])[-1] / record["mass"])
    joints = np.linalg.norm(bodies["p"][1:][bodies["parent"][1:] == body], axis=1)
    return float(max(np.linalg.norm(record["com"]) + 2.0 * gyration, joints.max(initial=0.0)))


def far_frames(solver: Solver, names: Iterable[str]) -> list[str]:
    """Frames of some loops that are far off the links which they are on."""
    found, mechanism = list[str](), solver.mechanism
    links = mechanism.first_links
    loops = dict(zip(solver.encoded.rows, solver.encoded.loops, strict=False))
    for name in names:
        for end in "ab" if name in loops else "":
            loop = loops[name]
            body, away = int(loop[f"body_{end}"]), float(np.linalg.norm(loop[f"p_{end}"]))
            if body > 0 and away > FAR * (reach := reach_of(mechanism, body)):
                found.append(
                    f"frame {end} of '{name}' is {away:.3g} m from the origin of '{links[body]}',"
                    f" which reaches {reach:.2g} m by its inertia and joints"
                )
    return found


def in_other_units(solver: Solver, q: Array, name: str) -> str:
    """Frames of a loop so far off their links that lengths in mm are meant; empty if none is.

    Args:
        solver: Of the rows as written.
        q: Configuration (nq,) by which the size of the mechanism is told.
        name: The loop.
    """
    poses = solver.poses_at(q)
    places = poses["origin"] + poses["p"]
    size = float(np.linalg.norm(places - places[1:2], axis=1)[1:].max(initial=0.0))
    loops = list(solver.encoded.rows)[: len(solver.encoded.loops)]
    loop = solver.encoded.loops[loops.index(name)] if name in loops else None
    if loop is None or not size > 0.0:
        return ""
    for end in "ab":
        away = float(np.linalg.norm(loop[f"p_{end}"]))
        if int(loop[f"body_{end}"]) > 0 and away > OUT_OF_SCALE * size:
            return (
                f"frame {end} of '{name}' is {away:.3g} m from the origin of its link,"
                f" {away / size:.0f} times the size of the mechanism: give lengths in metres, not"
                " in mm"
            )
    return ""


def odd_joints(solver: Solver, name: str) -> list[str]:
    """Joints of a loop that leave the plane in which all others of it move, at most a third."""
    single = {j.v.start: j.name for j in solver.mechanism.joints.values() if j.is_single}
    chain, odd, _ = _plane(solver, name)
    if not 0 < 3 * len(odd) <= len(chain) or not all(k in single for k in odd):
        return []
    return [single[k] for k in odd]


def idle_axis(solver: Solver, joint: object) -> str:
    """What to say of a loop's hinge that its other joints never let turn; empty of all else."""
    if not isinstance(joint, LoopJoint) or joint.model is not JointModel.REVOLUTE or joint.motion:
        return ""
    chain, odd, normal = _plane(solver, joint.name)
    if odd or len(chain) < FEWEST_OF_PLANE or np.abs(normal[:2]).max() <= PARALLEL:
        return ""
    meant = frame_with_z(joint.axis) @ normal
    meant *= np.sign(meant[np.abs(meant).argmax()])
    given, free = (", ".join(f"{round(x, 6) + 0.0:g}" for x in a) for a in (joint.axis, meant))
    return (
        f"'{joint.name}' has the axis [{given}] in its frame a, but all other joints of its loop"
        f" move at right angles to [{free}] there, so that it never turns: is [{free}] meant?"
    )


def _plane(solver: Solver, name: str) -> tuple[list[int], list[int], Array]:
    """The plane in which most joints of a loop move: chain of joints, those that leave it, normal.

    Axes are looked at where all joints are at zero: what turns out of the plane takes others along.
    The normal (3,) is in axes of the loop's frame a with z along its axis.
    """
    loops = list(solver.encoded.rows)[: len(solver.encoded.loops)]
    if name not in loops:
        return [], [], np.zeros(3)
    q = solver.q.copy()
    for joint in solver.mechanism.joints.values():
        if joint.is_single:
            q[joint.q] = 0.0
    loop, (poses, axes) = solver.encoded.loops[loops.index(name)], solver.places_at(q)
    chain = list[int]()
    for last in (int(loop["axis_a"]), int(loop["axis_b"])):
        while last != loop["common_axis"]:
            chain.append(last)
            last = int(axes["below"][last])
    turns, slides = axes["w"][chain], axes["v"][chain]
    turning = np.linalg.norm(turns, axis=1) > 0.5
    best, plane = list[int](), np.zeros(3)
    for normal in turns[turning]:
        across = np.linalg.norm(np.cross(turns, normal), axis=1)
        along = np.abs(slides @ normal)
        out: list[float] = np.asarray(np.where(turning, across, along), np.float64).tolist()
        odd = [k for k, far in zip(chain, out, strict=True) if far > PARALLEL]
        if not plane.any() or len(odd) < len(best):
            best, plane = odd, normal
    return chain, best, (poses["R"][loop["body_a"]] @ loop["R_a"]).T @ plane


def likely_mistakes(solver: Solver, names: Collection[str]) -> str:
    """What to check of loops that do not close or do not move; empty where nothing looks odd."""
    said = [f"check 'xyz': {each}" for each in far_frames(solver, names)[:1]]
    for name in names:
        odd = odd_joints(solver, name)
        if odd:
            said.append(
                f"check <axis> and <origin rpy> of {', '.join(map(repr, odd))}: all other joints of"
                f" '{name}' move in one plane"
            )
            break
    return ", and ".join(said)
