"""Frames of constraints that a program puts elsewhere while it runs, alone or with a fixed base."""

import math
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from typing import NamedTuple

import numpy as np
import pybullet
from scipy.spatial.transform import Rotation

from bulletbridge.constraints.loop import Frame
from bulletbridge.constraints.motion import Motion
from bulletbridge.mechanism.bullet_coordinates import Floats, quat_product, unit
from bulletbridge.mechanism.bullet_state import Shift
from bulletbridge.mechanism.frames import frame_with_z
from bulletbridge.mechanism.model import WORLD
from bulletbridge.numerics.records import Array
from bulletbridge.simulation.system import System
from bulletbridge.surface.drop_in.loops import NOBODY, Loop, axis_in_frame, info_of

ENDED = 1e-6
"""Share of a step that is nothing."""
NOTHING_SHIFTED: Mapping[int, Shift] = {}


def unit_of(vector: Array) -> Array:
    """Its direction (3,), or zero if it has none."""
    size = float(np.linalg.norm(vector))
    return vector / size if size > 0.0 else vector


def displacement(shift: Shift, point: Array) -> tuple[Array, Array]:
    """What a shift has done to what is at a point (3,) after it: way (3,) and turn (3,)."""
    way = point - shift.R.T @ (point - shift.p)
    return way, Rotation.from_matrix(shift.R).as_rotvec()


@dataclass
class Ramp:
    """A coordinate of a frame that comes to zero by the end of a step, at a constant rate.

    The rate of the step before turns into this one at the start, so that who follows arrives.

    Attributes:
        before, rate: Of the step before and of this one.
        until: Time [s] of its end.
        dt: Its length [s].
    """

    before: float = 0.0
    rate: float = 0.0
    until: float = 0.0
    dt: float = 1.0

    def __call__(self, t: float) -> tuple[float, float, float]:
        """Value, rate, acceleration."""
        left = (self.until - t) / self.dt
        if left < ENDED:
            return 0.0, self.rate, 0.0
        if left < 1.0 - ENDED:
            return self.rate * (t - self.until), self.rate, 0.0
        return self.rate * (t - self.until), self.before, (self.rate - self.before) / self.dt


class FrameMemory(NamedTuple):
    """What is known of a moving frame.

    Attributes:
        place: Position and quaternion that Bullet was told.
        p, q: Those to which it was driven last, in the link's frame.
        velocity: (2, 3) with which it was brought there, linear and angular, in the link's axes.
        ramps: Numbers of its four motions.
    """

    place: tuple[Floats, Floats]
    p: Array
    q: Floats
    velocity: Array
    ramps: tuple[tuple[float, ...], ...]


class MovingFrame:
    """Frame a of a loop whose place Bullet is told from time to time, or that of a fixed base.

    Args:
        loop: The constraint.
        links: Names of links by body and link number.
        client: Physics client.

    Attributes:
        motion: Its velocity, for the loop's constraint.
    """

    def __init__(self, loop: Loop, links: dict[tuple[int, int], str], client: int) -> None:
        self._number, self._client, self._name = loop.number, client, loop.name
        self._ramps = Ramp(), Ramp(), Ramp(), Ramp()
        self.motion = Motion(*self._ramps)
        self._velocity = np.zeros((2, 3))
        info = info_of(loop.number, client)
        body, link = info[2], info[3]
        self._link, self._com, self._axes = WORLD, np.zeros(3), None
        if body != NOBODY:
            dynamics = pybullet.getDynamicsInfo(body, link, physicsClientId=client)
            self._link, self._com, self._axes = (
                links[body, link],
                np.array(dynamics[3]),
                dynamics[4],
            )
        self._bodies = info[2], info[0]
        self._align = frame_with_z(axis_in_frame(loop, info))
        self._p, self._q = self._placed(info[7], info[9])

    def memory(self) -> FrameMemory:
        """Where Bullet has it, where it was put last, and how fast it moves."""
        info = info_of(self._number, self._client)
        place, ramps = (info[7], info[9]), tuple(astuple(ramp) for ramp in self._ramps)
        return FrameMemory(place, self._p.copy(), self._q, self._velocity.copy(), ramps)

    def recall(self, memory: FrameMemory) -> None:
        """Go on from a memory."""
        self._p, self._q, self._velocity = memory.p.copy(), memory.q, memory.velocity.copy()
        for ramp, numbers in zip(self._ramps, memory.ramps, strict=True):
            ramp.before, ramp.rate, ramp.until, ramp.dt = numbers

    def drive(self, system: System, shifts: Mapping[int, Shift]) -> None:
        """Put the frame where it is now, with the velocity that takes it there in one step.

        Args:
            system: Whose frame it is.
            shifts: How fixed bases were moved since the last time, by Bullet's id.
        """
        info = info_of(self._number, self._client)
        p, q = self._placed(info[7], info[9])
        R = Rotation.from_quat(q).as_matrix()
        linear = R.T @ (p - self._p)
        x, y, z, w = quat_product((-self._q[0], -self._q[1], -self._q[2], self._q[3]), q)
        size = math.hypot(x, y, z)
        angle = 2.0 * math.atan2(size, abs(w))
        turn = np.array([x, y, z]) * (math.copysign(angle, w) / size) if size else np.zeros(3)
        if not shifts.keys().isdisjoint(self._bodies):
            place = system.kinematics().point(Frame(self._link, (p[0], p[1], p[2])))
            R_W = place.R_W @ R
            for body, sign in zip(self._bodies, (1.0, -1.0), strict=True):
                if body in shifts:
                    moved, turned = displacement(shifts[body], place.p_W)
                    linear, turn = linear + sign * R_W.T @ moved, turn + sign * R_W.T @ turned
        dt, before = system.dt, self._velocity @ R
        linear, turn = linear / dt, turn / dt
        self._velocity = np.array([R @ linear, R @ turn])
        spin = float(np.linalg.norm(turn))
        axis = turn / spin if spin > 0.0 else unit_of(before[1])
        system.place(self._name, self._link, R @ self._align, p, self._align.T @ axis)
        befores, rates = (*before[0], before[1] @ axis), (*linear, spin)
        for ramp, old, new in zip(self._ramps, befores, rates, strict=True):
            ramp.before, ramp.rate = float(old), float(new)
            ramp.until, ramp.dt = system.t + dt, dt
        self._p, self._q = p, q

    def jerk(self) -> None:
        """Let its velocity jump at the start of the step already."""
        for ramp in self._ramps:
            ramp.before = ramp.rate

    def stop(self, system: System) -> None:
        """Put the frame where it is now, at rest."""
        self.drive(system, NOTHING_SHIFTED)
        self._velocity = np.zeros((2, 3))
        for ramp in self._ramps:
            ramp.before = ramp.rate = 0.0

    def _placed(self, position: Floats, turn: Floats) -> tuple[Array, Floats]:
        """Position (3,) and quaternion in the link's frame; Bullet's are in the inertial one."""
        if self._axes is None:
            return np.array(position), unit(turn)
        p = self._com + Rotation.from_quat(self._axes).apply(position)
        return p, quat_product(unit(self._axes), unit(turn))
