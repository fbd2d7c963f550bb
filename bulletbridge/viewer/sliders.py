"""Sliders in Bullet's window for gravity and drive torques, and switches."""

from collections.abc import Sequence

import numpy as np
import pybullet

from bulletbridge.system.system import System
from bulletbridge.viewer.overlay import has_window, weight_of

MOST_GRAVITY = 20.0
"""End of the slider of gravity [m/s²], unless the model's own is more than half of it."""


class Sliders:
    """One slider for gravity [m/s²], along the model's own or down, and one for each drive.

    A slider that nobody has moved changes nothing, not by its rounding to single precision either.
    Drives add to the torques that are in ``System.tau`` already. Without a window there are none.

    Args:
        client: Bullet's client id.
        system: What is moved.
        actuated: Joints with a drive [N m, or N where they slide].

    Raises:
        ModelError: A joint does not exist.
    """

    def __init__(self, client: int, system: System, actuated: Sequence[str] = ()) -> None:
        self.client = client
        size = float(np.linalg.norm(system.gravity))
        self._along = system.gravity / size if size else np.array([0.0, 0.0, -1.0])
        weight, length = weight_of(system), system.encoded.length
        self.torques: dict[str, float] = {}
        self._written: dict[str, tuple[float, float]] = {}
        self._sliders: dict[str, int] = {}
        self._gravity = -1
        joints = [system.mechanism.joint(name) for name in actuated]
        if not has_window(client):
            return
        most = max(MOST_GRAVITY, 2.0 * size)
        self._gravity = self._add("gravity [m/s2]", most, size)
        self._gravity_seen = self._read(self._gravity)
        for joint in joints:
            if joint.v.stop - joint.v.start == 1:
                turns = joint.kind == "revolute"
                most = round_up(weight * length if turns else 2.0 * weight)
                unit = "N m" if turns else "N"
                self._sliders[joint.name] = self._add(f"{joint.name} [{unit}]", most, 0.0)

    def apply(self, system: System) -> bool:
        """Give the system what the sliders say; call it before each step. Say whether one moved.

        Raises:
            pybullet.error: The window was closed.
        """
        if self._gravity < 0:
            return False
        moved = False
        gravity = self._read(self._gravity)
        if gravity != self._gravity_seen:
            self._gravity_seen, moved = gravity, True
            system.gravity = gravity * self._along
        for name, slider in self._sliders.items():
            torque = self._read(slider)
            moved |= torque != self.torques.get(name, 0.0)
            self.torques[name] = torque
            index = system.mechanism.joint(name).v.start
            before, written = self._written.get(name, (0.0, np.nan))
            if system.tau[index] != written:
                before = float(system.tau[index])  # somebody else's, who has written since
            system.tau[index] = before + torque
            self._written[name] = before, float(system.tau[index])
        return moved

    def _add(self, label: str, most: float, start: float) -> int:
        return pybullet.addUserDebugParameter(
            label, -most, most, start, physicsClientId=self.client
        )

    def _read(self, slider: int) -> float:
        return float(pybullet.readUserDebugParameter(slider, physicsClientId=self.client))


class Switch:
    """A button in Bullet's window that switches something on and off; off without a window."""

    def __init__(self, client: int, label: str) -> None:
        self.client, self._button = client, -1
        if has_window(client):  # a range that ends before it begins makes a button
            self._button = pybullet.addUserDebugParameter(label, 1, 0, 0, physicsClientId=client)

    @property
    def on(self) -> bool:
        """Whether it was pressed an odd number of times."""
        if self._button < 0:
            return False
        presses = pybullet.readUserDebugParameter(self._button, physicsClientId=self.client)
        return round(presses) % 2 == 1


def hide_panels(client: int) -> None:
    """Show the world alone until somebody presses g, then the sliders without Bullet's previews."""
    for flag in (
        pybullet.COV_ENABLE_GUI,
        pybullet.COV_ENABLE_RGB_BUFFER_PREVIEW,
        pybullet.COV_ENABLE_DEPTH_BUFFER_PREVIEW,
        pybullet.COV_ENABLE_SEGMENTATION_MARK_PREVIEW,
    ):
        pybullet.configureDebugVisualizer(flag, 0, physicsClientId=client)


def round_up(x: float) -> float:
    """A positive number with one digit, not below x."""
    unit = 10.0 ** np.floor(np.log10(x))
    return float(np.ceil(x / unit) * unit)
