"""Closed constraints told again in other words, which the same motions keep."""

from dataclasses import replace

import numpy as np
from _campaign_judge import Closing
from scipy.spatial.transform import Rotation

import bulletbridge as bb
from bulletbridge.constraints.joints import Triple
from bulletbridge.constraints.motion import Signal, still
from bulletbridge.numerics.records import Array

Rng = np.random.Generator
M = bb.JointModel
IMPLIED = {
    M.BALL: (M.SOFT_FINGER,),
    M.SOFT_FINGER: (M.BALL,),
    M.POINT_ON_PLANE: (M.ROLLING, M.PURE_ROLLING),
    M.ROLLING: (M.POINT_ON_PLANE, M.PURE_ROLLING),
    M.PURE_ROLLING: (M.POINT_ON_PLANE, M.ROLLING),
    M.REVOLUTE: (M.BALL, M.CYLINDRICAL, M.SOFT_FINGER),
    M.WELD: (M.BALL, M.REVOLUTE, M.PLANAR, M.SOFT_FINGER),
}
"""Models that frames of another one close too, with rows that are partly the same."""
SWAPPED = M.BALL, M.WELD, M.REVOLUTE, M.PRISMATIC, M.UNIVERSAL, M.CYLINDRICAL, M.PLANAR, M.SCREW
"""Models that say the same with their ends exchanged, where neither is moved."""
ANYWHERE = M.WELD, M.PRISMATIC, M.PLANAR
"""Models whose frames may both be moved by the same way."""
ALONG = M.REVOLUTE, M.CYLINDRICAL, M.SCREW
"""Models whose frames may both be moved along the axis."""
ON_LINE, ON_PLANE = M.POINT_ON_LINE, (M.POINT_ON_PLANE, M.ROLLING, M.PURE_ROLLING)
"""Models whose frame a may be moved along the axis, or across it."""
POINTED = M.BALL, M.WELD, M.REVOLUTE, M.UNIVERSAL, M.SOFT_FINGER
"""Models that hold a point, and with it all distances from it."""


def moved(frame: bb.Frame, way: Array) -> bb.Frame:
    """It, displaced by a way (3,) in its own axes."""
    return frame.moved(Rotation.from_euler("xyz", frame.rpy).apply(way))


def turned(motion: bb.Motion | None) -> bool:
    """Whether a motion turns the frame."""
    return motion is not None and motion.angle is not still


def unit(axis: Triple) -> Array:
    """A vector of length one."""
    return np.array(axis) / np.linalg.norm(axis)


def shifted(rng: Rng, c: bb.LoopJoint) -> bb.LoopJoint:
    """The same joint by frames elsewhere, if there are any that say the same."""
    n, way = unit(c.axis), rng.normal(0, 0.3, 3)
    along = (way @ n) * n
    if turned(c.motion):
        return c
    if c.model in ANYWHERE:
        return replace(c, a=moved(c.a, way), b=moved(c.b, way))
    if c.model in ALONG:
        b = moved(c.b, along if c.axis_b is None else (way @ n) * unit(c.axis_b))
        return replace(c, a=moved(c.a, along), b=b)
    if c.model is ON_LINE or c.model in ON_PLANE:
        return replace(c, a=moved(c.a, along if c.model is ON_LINE else way - along))
    return c


def times(signal: Signal, factor: float) -> Signal:
    """A signal, a factor larger."""
    if isinstance(signal, bb.Sine):
        return replace(signal, amplitude=factor * signal.amplitude, offset=factor * signal.offset)
    assert isinstance(signal, bb.Polynomial)
    return bb.Polynomial(tuple(factor * x for x in signal.coefficients))


def scaled(gear: bb.Coupling, factor: float) -> bb.Coupling:
    """The same coupling, a factor longer."""
    motion = gear.motion and bb.Motion(z=times(gear.motion.z, factor))
    coefficients = {name: factor * x for name, x in gear.coefficients.items()}
    return replace(gear, coefficients=coefficients, offset=factor * gear.offset, motion=motion)


def swapped(c: bb.LoopJoint | bb.Distance) -> bb.LoopJoint | bb.Distance:
    """The same with its ends exchanged, where that says the same."""
    if isinstance(c, bb.Distance):
        return replace(c, a=c.b, b=c.a)
    if c.motion is not None or c.model not in SWAPPED:
        return c
    if c.axis_b is not None:
        return replace(c, a=c.b, b=c.a, axis=c.axis_b, axis_b=c.axis)
    return replace(c, a=c.b, b=c.a)


def implied(rng: Rng, c: bb.LoopJoint) -> bb.LoopJoint | bb.Distance:
    """Another model between its frames, or a distance from its point, where it has one."""
    others = IMPLIED.get(c.model, ())
    if c.model in POINTED and c.motion is None and (not others or rng.random() < 0.3):
        way = rng.normal(0, 0.3, 3)
        return bb.Distance(c.name, moved(c.a, way), c.b, float(np.linalg.norm(way)))
    if not others:
        return c
    radius = c.radius if c.model in ON_PLANE else 0.0
    return replace(c, model=others[int(rng.integers(len(others)))], radius=radius)


def restated(rng: Rng, c: Closing) -> Closing:
    """A closed constraint again, as it was or in other words, and with another name."""
    again: Closing = c
    if isinstance(c, bb.Coupling):
        again = scaled(c, float(rng.choice([-1.0, 1.0]) * 10 ** rng.uniform(-2, 2)))
    elif isinstance(c, bb.Distance) or rng.random() < 0.25:
        again = swapped(c)
    elif rng.random() < 0.85:
        again = shifted(rng, c)
        again = implied(rng, again) if rng.random() < 0.6 else again
    return replace(again, name=f"{c.name}_again")
