"""Mechanisms put together in Python, joint by joint."""

from dataclasses import dataclass, replace

import numpy as np

from bulletbridge.errors import ModelError
from bulletbridge.mechanism.beams import FlexibleBeam, beam_record
from bulletbridge.mechanism.frames import Triple, locate
from bulletbridge.mechanism.model import (
    WORLD,
    CarriedLink,
    Joint,
    Link,
    Mechanism,
    empty_arrays,
)
from bulletbridge.mechanism.records import BEAM, FREE, PRISMATIC, REVOLUTE, SPHERICAL
from bulletbridge.numerics.records import Array

KINDS = {"revolute": REVOLUTE, "prismatic": PRISMATIC, "spherical": SPHERICAL, "free": FREE}
SIZES = {REVOLUTE: (1, 1), PRISMATIC: (1, 1), SPHERICAL: (4, 3), FREE: (7, 6)}
"""Positions and rates of a joint."""
ORIGIN = (0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Load:
    """What is fixed to a frame.

    Raises:
        ModelError: A number is impossible.
    """

    mass: float = 0.0  # [kg]; there may be none
    com: Triple = ORIGIN  # its centre, in the frame [m]
    # about its centre, in the frame's axes [kg m²]: (3, 3), or three moments
    inertia: Array | Triple = ORIGIN

    def __post_init__(self) -> None:
        numbers = [self.mass, *self.com, *self.J.ravel()]
        if not (np.all(np.isfinite(numbers)) and self.mass >= 0.0 and self.J.shape == (3, 3)):
            raise ModelError(f"{self}: give finite numbers, and a mass that is not negative")

    @property
    def J(self) -> Array:
        """Inertia about the centre (3, 3) [kg m²]."""
        J = np.asarray(self.inertia, float)
        return np.diag(J) if J.ndim == 1 else J


NOTHING = Load()


def empty_mechanism(gravity: Triple = (0.0, 0.0, 0.0)) -> Mechanism:
    """The world alone, with gravity [m/s²]."""
    world = Link(WORLD, 0, np.eye(3), np.zeros(3))
    return Mechanism(*empty_arrays(1, 0), {WORLD: world}, {}, np.array(gravity, float))


def with_joint(
    mechanism: Mechanism,
    name: str,
    kind: str,
    link: str,
    on: str = WORLD,
    xyz: Triple = ORIGIN,
    rpy: Triple = ORIGIN,
    load: Load = NOTHING,
) -> Mechanism:
    """The same with one more joint and the body that it carries.

    Args:
        mechanism: Stays as it is.
        name: Of the joint.
        kind: ``revolute`` or ``prismatic`` (about or along z of the joint frame), ``spherical``;
            ``free`` for a floating base, whose joint frame is the world's.
        link: Name of the new body's frame, the joint frame after the joint's motion.
        on: Link that carries the joint.
        xyz: Origin of the joint frame on it [m].
        rpy: Its fixed-axis roll, pitch, yaw there [rad].
        load: Mass of the body, in its frame; it may have none.

    Raises:
        ModelError: A name is taken or unknown, or a number is impossible.
    """
    if kind not in KINDS:
        raise ModelError(f"joint '{name}' is '{kind}'; give one of {', '.join(KINDS)}")
    if kind == "free" and (on != WORLD or any(xyz) or any(rpy)):
        raise ModelError(f"joint '{name}' is free: it is on the world, where q says; give no frame")
    sizes = SIZES[KINDS[kind]]
    return _grown(mechanism, name, kind, KINDS[kind], sizes, link, (on, xyz, rpy), load)


def with_beam(
    mechanism: Mechanism,
    name: str,
    beam: FlexibleBeam,
    link: str,
    on: str = WORLD,
    xyz: Triple = ORIGIN,
    rpy: Triple = ORIGIN,
    load: Load = NOTHING,
) -> Mechanism:
    """The same with a flexible beam clamped to a link.

    Args:
        mechanism: Stays as it is.
        name: Of the joint; its positions are the amplitudes of the modes [m].
        beam: What bends.
        link: Name of the frame at the tip, which is at (length, 0, 0) when nothing is bent.
        on: Link that carries the root.
        xyz: Origin of the root frame on it [m].
        rpy: Its roll, pitch, yaw there [rad]: x along the beam, y the way it bends.
        load: What is fixed to the tip, in that frame.

    Raises:
        ModelError: A name is taken or unknown, or a number is impossible.
    """
    sizes = (beam.modes, beam.modes)
    grown = _grown(mechanism, name, "beam", BEAM, sizes, link, (on, xyz, rpy), load)
    stations = beam.stations()
    record = beam_record(len(grown.bodies) - 1, len(grown.stations), len(stations) - 1)
    part = grown.joints[name].v
    grown.bodies[-1]["beam"] = len(grown.beams)
    grown.axes["stiffness"][part] = beam.mode_stiffness
    grown.axes["damping"][part] = beam.mode_damping
    return replace(
        grown,
        beams=np.concatenate([grown.beams, record]),
        stations=np.concatenate([grown.stations, stations]),
    )


def _grown(
    mechanism: Mechanism,
    name: str,
    kind: str,
    code: int,
    sizes: tuple[int, int],
    link: str,
    at: tuple[str, Triple, Triple],
    load: Load,
) -> Mechanism:
    """A copy with one more joint and body, the last ones."""
    for what, new, names in (("joint", name, mechanism.joints), ("link", link, mechanism.links)):
        if new in names:
            raise ModelError(f"there is a {what} '{new}' already; give another name")
    parent, R, p = locate(mechanism, *at)
    on = at[0]
    q = slice(mechanism.nq, mechanism.nq + sizes[0])
    v = slice(mechanism.nv, mechanism.nv + sizes[1])
    bodies, axes = empty_arrays(len(mechanism.bodies) + 1, v.stop)
    bodies[:-1], axes[: v.start] = mechanism.bodies, mechanism.axes
    body, number = bodies[-1], len(bodies) - 1
    body["parent"], body["joint"], body["q"], body["v"] = parent, code, q.start, v.start
    body["R"], body["p"], body["axis"] = R, p, v.stop - 1
    body["mass"], body["com"], body["J"] = load.mass, load.com, load.J
    for k in range(v.start, v.stop):
        axes[k]["body"] = number
        axes[k]["below"] = k - 1 if k > v.start else bodies[parent]["axis"]
        axes[k]["q"] = q.start + k - v.start if sizes[0] == sizes[1] else -1
    return replace(
        mechanism,
        bodies=bodies,
        axes=axes,
        links=mechanism.links | {link: Link(link, number, np.eye(3), np.zeros(3))},
        joints=mechanism.joints | {name: Joint(name, kind, q, v)},
        carried=(
            *mechanism.carried,
            CarriedLink(
                name,
                kind,
                link,
                next((k for k, each in enumerate(mechanism.carried) if each.link == on), -1),
                load.mass,
                np.array(load.com, float),
                load.J,
            ),
        ),
    )
