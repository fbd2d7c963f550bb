"""Child frames of constraints that a program puts elsewhere while it runs."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pybullet
from scipy.spatial.transform import Rotation

from bulletbridge.constraints.motion import Motion
from bulletbridge.mechanism.bullet_coordinates import Floats, quat_product, rotation_of, unit
from bulletbridge.mechanism.frames import frame_with_z
from bulletbridge.mechanism.model import WORLD
from bulletbridge.numerics.records import Array
from bulletbridge.simulation.system import System
from bulletbridge.surface.drop_in.loops import NOBODY, Loop, axis_in_frame, info_of


@dataclass
class Rate:
    """A signal that is always zero but has a rate, for frames that are put elsewhere."""

    rate: float = 0.0

    def __call__(self, _t: float) -> tuple[float, float, float]:
        """Value, rate, acceleration."""
        return 0.0, self.rate, 0.0


class FrameMemory(NamedTuple):
    """What is known of a moving frame.

    Attributes:
        place: Position and quaternion that Bullet was told.
        p, q: Those to which it was driven last, in the link's frame.
        rates: Of its four motions.
    """

    place: tuple[Floats, Floats]
    p: Array
    q: Floats
    rates: tuple[float, ...]


class MovingFrame:
    """Frame a of a loop whose place Bullet is told from time to time.

    Args:
        loop: The constraint.
        links: Names of links by body and link number.
        client: Physics client.

    Attributes:
        motion: Its velocity, for the loop's constraint.
    """

    def __init__(self, loop: Loop, links: dict[tuple[int, int], str], client: int) -> None:
        self._number, self._client, self._name = loop.number, client, loop.name
        self._rates = Rate(), Rate(), Rate(), Rate()
        self.motion = Motion(*self._rates)
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
        self._align = frame_with_z(axis_in_frame(loop, info))
        self._p, self._q = self._placed(info[7], info[9])

    def memory(self) -> FrameMemory:
        """Where Bullet has it, where it was put last, and how fast it moves."""
        info = info_of(self._number, self._client)
        rates = tuple(signal.rate for signal in self._rates)
        return FrameMemory((info[7], info[9]), self._p.copy(), self._q, rates)

    def recall(self, memory: FrameMemory) -> None:
        """Go on from a memory."""
        self._p, self._q = memory.p.copy(), memory.q
        for signal, rate in zip(self._rates, memory.rates, strict=True):
            signal.rate = rate

    def drive(self, system: System) -> None:
        """Put the frame where it is now, with the velocity that takes it there in one step."""
        info = info_of(self._number, self._client)
        p, q = self._placed(info[7], info[9])
        R = rotation_of(q)
        linear = R.T @ (p - self._p) / system.dt
        x, y, z, w = quat_product((-self._q[0], -self._q[1], -self._q[2], self._q[3]), q)
        size = math.hypot(x, y, z)
        turn = np.array([x, y, z]) * (math.copysign(1.0, w) / size) if size else np.zeros(3)
        speed = 2.0 * math.atan2(size, abs(w)) / system.dt
        for signal, rate in zip(self._rates, (*linear.tolist(), speed), strict=True):
            signal.rate = rate
        system.place(self._name, self._link, R @ self._align, p, self._align.T @ turn)
        self._p, self._q = p, q

    def _placed(self, position: Floats, turn: Floats) -> tuple[Array, Floats]:
        """Position (3,) and quaternion in the link's frame; Bullet's are in the inertial one."""
        if self._axes is None:
            return np.array(position), unit(turn)
        p = self._com + Rotation.from_quat(self._axes).apply(position)
        return p, quat_product(unit(self._axes), unit(turn))
