"""Frames of constraints that a program puts elsewhere while it runs, alone or with a fixed base."""

from collections.abc import Mapping
from dataclasses import dataclass
from struct import Struct
from typing import ClassVar, NamedTuple, cast

import numpy as np
import pybullet

from bulletbridge.bullet.constraints import (
    NOBODY,
    CreatedConstraint,
    Info,
    axis_in_frame,
    change_twin,
    info_of,
)
from bulletbridge.bullet.coordinates import Floats, unit
from bulletbridge.bullet.state import Shift
from bulletbridge.bullet.watched_calls import native_of
from bulletbridge.compilation.stored_calls import StoredCall
from bulletbridge.constraints.motion import Motion, require_finite
from bulletbridge.constraints.moved_frames import MOVED, drive_frame, put_motion
from bulletbridge.constraints.records import TARGET
from bulletbridge.mechanism.frames import frame_with_z
from bulletbridge.mechanism.model import WORLD, Link
from bulletbridge.numerics.records import Array
from bulletbridge.system.system import System

NOTHING_SHIFTED: Mapping[int, Shift] = {}
VIEWED = (
    *("target", "ahead", "p", "before", "rates"),
    *("carried", "turned", "shifted", "link_R", "link_p"),
)
"""What is read and written of a frame at every step."""
TOLD = Struct("10d")
"""What the kernel is told; numpy takes longer to find out that these are numbers."""
NOWHERE = Link("", 0, np.eye(3), np.zeros(3))
"""A link that is no one's."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Way(Motion):
    """Motion of a frame that comes to where it is put by the end of a step, at constant rates.

    Attributes:
        frame: (1,) of ``moved_frames``.
    """

    along_chords: ClassVar[bool] = True
    frame: np.ndarray

    def over(self, t: Array) -> Array:
        """(len(t), 4, 3): value, rate, acceleration of translations and turn at times.

        Raises:
            ModelError: One of them is not finite.
        """
        targets = np.zeros((len(t), 1, TARGET.itemsize // 8))
        finite = put_motion(self.frame, t, targets, 0)
        found = np.empty((len(t), 4, 3))
        in_encoded = targets[:, 0, :9].reshape(-1, 3, 3)
        with np.errstate(invalid="ignore"):
            found[:, :3] = (in_encoded @ self.frame["align"][0].T).transpose(0, 2, 1)
        found[:, 3] = targets[:, 0, 9:]
        if not finite:
            require_finite(found, t)
        return found

    def put(self, t: Array, R: Array, targets: Array, k: int) -> None:
        """Write targets at times, in the encoded frame, which the frame itself knows.

        Raises:
            ModelError: As ``over``.
        """
        if not put_motion(self.frame, t, targets, k):
            self.over(t)


class FrameMemory(NamedTuple):
    """What is known of a moving frame.

    Attributes:
        place: Position and quaternion that Bullet was told.
        frame: (1,) of ``moved_frames``.
    """

    place: tuple[Floats, Floats]
    frame: np.ndarray


class MovedFrame:
    """Frame a of a loop whose place Bullet is told from time to time, or that of a fixed base.

    Args:
        loop: The constraint.
        links: Names of links by body and link number.
        client: Physics client.

    Attributes:
        motion: Its velocity, for the loop's constraint.
        target: (12,) that at the end of the step, as in ``constraints.records``.
        parts: How many of the system's steps it is on its way in.
    """

    def __init__(
        self, loop: CreatedConstraint, links: dict[tuple[int, int], str], client: int
    ) -> None:
        self._number, self._client, self._name = loop.number, client, loop.name
        self._loop = loop
        self._told, self.parts = np.zeros(10), 1
        self._told_bytes = self._told.data.cast("B")
        self._change = native_of(pybullet.changeConstraint)
        self._shown: Info | None = None  # what Bullet is to be told again after its step
        self.motion = Way(frame=np.zeros(1, MOVED))
        self._frame, self._lead = self.motion.frame, 0.0
        views = {name: cast(Array, self._frame[name][0]) for name in VIEWED}
        self.target, self._ahead, self._p = views["target"], views["ahead"], views["p"]
        self._before, self._rates, self._views = views["before"], views["rates"], views
        self._drive = StoredCall(drive_frame, (self._frame, self._told), ()).call
        info = info_of(loop.number, client)
        body, link = info[2], info[3]
        self._bodies, self._link, self._on = (info[2], info[0]), WORLD, NOWHERE
        frame = self._frame[0]
        frame["align"], frame["axes"][3] = frame_with_z(axis_in_frame(loop, info)), 1.0
        if body != NOBODY:
            self._link = links[body, link]
            dynamics = pybullet.getDynamicsInfo(body, link, physicsClientId=client)
            frame["com"], frame["axes"] = dynamics[3], unit(dynamics[4])
        self._go(info, 0.0, 1.0)
        self._rest()

    def belong_to(self, loop: CreatedConstraint) -> None:
        """Be the frame of a constraint that came in place of its own."""
        self._loop, self._number = loop, loop.number

    @property
    def place(self) -> list[float] | None:
        """Where in the world it was put last [m]; None on a link."""
        return self._p.tolist() if self._link is WORLD else None

    def memory(self) -> FrameMemory:
        """Where Bullet has it, where it was put last, and how fast it moves."""
        info = info_of(self._number, self._client)
        return FrameMemory((info[7], info[9]), self._frame.copy())

    def recall(self, memory: FrameMemory) -> None:
        """Go on from a memory, which may be that of the same constraint in another group."""
        self._frame[:], self._on = memory.frame, NOWHERE
        self._lead = float(self._frame["lead"][0])

    def drive(
        self,
        system: System,
        shifts: Mapping[int, Shift],
        lead: float = 0.0,
        steady: bool = False,
    ) -> None:
        """Take the frame where it is now, with the velocity that brings it there in one step.

        Bullet closes a share of a gap in a step, and takes the frame to stand still. Told a place
        further on the way, it takes the bodies along as fast as they are to move.

        Args:
            system: Whose frame it is.
            shifts: How fixed bases were moved since the last time, by Bullet's id.
            lead: How many more such ways Bullet is told that it is ahead until ``put_back``, if
                it was under way before already. Carried along by a base it stays where it is, for
                Bullet's force acts on its body where it is told to be.
            steady: Whether it has a velocity only where it was on its way in the step before too;
                else it is put there, as by Bullet.
        """
        dt, on = self.parts * system.dt, system.mechanism.link(self._link)
        if on is not self._on:
            self._on = on
            self._frame["on_R"], self._frame["on_p"] = on.R, on.p
        if shifts and self._carry(system, shifts):
            lead = 0.0
        if lead != self._lead:
            self._frame["lead"] = self._lead = lead
        self.put_back()
        if not system.has_dependent_rows:
            self._frame["way"] = 0.0  # its bodies can go straight on along its ways
        info = pybullet.getConstraintInfo(self._number, self._client)
        if self._go(info, system.t + dt, dt):
            numbers: list[float] = self._ahead.tolist()
            self._tell(numbers[:3], numbers[3:])
            self._shown = info
        if shifts:
            self._views["carried"][:] = 0.0
        if steady and not self._goes_on():
            for name in ("before", "rates", "ends", "target"):
                self._frame[name] = 0.0

    def place_in(self, system: System) -> None:
        """Put the frame of its constraint there."""
        system.place(self._name, self._frame)

    def _goes_on(self) -> bool:
        """Whether it moves on the way of the step before."""
        a, b, c, was = self._before.tolist()
        x, y, z, turns = self._rates.tolist()
        return a * x + b * y + c * z > 0.0 or was * turns > 0.0

    def put_back(self) -> None:
        """Tell Bullet again where the frame is."""
        if self._shown is not None:
            self._tell(self._shown[7], self._shown[9])
            self._shown = None

    def _tell(self, place: Floats, quat: Floats) -> None:
        self._change(self._number, place, quat, physicsClientId=self._client)
        if self._loop.twin >= 0:
            told = {"jointChildPivot": place, "jointChildFrameOrientation": quat}
            change_twin(self._loop, told, self._client)

    def stop(self, system: System) -> None:
        """Put the frame where it is now, at rest."""
        self.drive(system, NOTHING_SHIFTED)
        self.place_in(system)
        self._rest()

    def _rest(self) -> None:
        """Set all rates of the frame to zero."""
        for name in ("way", "linear", "angular", "before", "rates", "ends", "target"):
            self._frame[name] = 0.0

    def _go(self, info: Info, until: float, dt: float) -> int:
        """Take it where Bullet's description has it by a time [s], in a step of this length [s].

        Returns:
            Whether ``ahead`` is beyond.
        """
        TOLD.pack_into(self._told_bytes, 0, *info[7], *info[9], until, dt, dt / self.parts)
        return self._drive(())

    def _carry(self, system: System, shifts: Mapping[int, Shift]) -> bool:
        """Note by what moves of bodies its ends go along with them; whether either does."""
        views, carried = self._views, False
        for n, body in enumerate(self._bodies):
            if body in shifts:
                carried = True
                views["carried"][n] = -1.0 if n else 1.0
                views["turned"][n], views["shifted"][n] = shifts[body]
        if carried:
            views["link_R"][:], views["link_p"][:] = system.link_pose(self._link)
        return carried
