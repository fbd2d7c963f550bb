"""What an actuator of MuJoCo does by itself at a control that stays, as elements that act."""

from dataclasses import dataclass

import numpy as np

from bulletbridge.constraints.force_elements import Tendon
from bulletbridge.constraints.joints import Motor

LARGEST_FORCE = 1e9
"""Of a servo that is bounded on one side alone [N or N m]."""


@dataclass(frozen=True)
class Servo:
    """It pushes its length by force - stiffness length - damping rate, within bounds."""

    force: float
    stiffness: float
    damping: float
    bounds: tuple[float, float]

    @property
    def acts(self) -> bool:
        """Whether it does anything."""
        return bool(self.stiffness or self.damping or self.force)

    @property
    def is_motor(self) -> bool:
        """Whether its force changes, and is bounded."""
        return bool(np.isfinite(self.bounds).any() and (self.stiffness or self.damping))

    @property
    def rest(self) -> float:
        """Length at which its spring rests."""
        return self.force / self.stiffness if self.stiffness else 0.0

    @property
    def constant(self) -> float:
        """Force that pushes all the same; a spring rests where it is in balance with it."""
        return 0.0 if self.stiffness else float(np.clip(self.force, *self.bounds))

    @property
    def motor(self) -> Motor:
        """Itself, if it is one."""
        least, most = (float(np.clip(x, -LARGEST_FORCE, LARGEST_FORCE)) for x in self.bounds)
        rate = 0.0 if self.stiffness else self.force / self.damping
        return Motor(
            most, rate, self.rest, stiffness=self.stiffness, damping=self.damping, least=least
        )

    @property
    def said(self) -> str:
        """Its numbers, in words."""
        return f"stiffness {self.stiffness:g}, damping {self.damping:g}, at {self.rest:g}"

    def between(self, name: str) -> str:
        """Its bounds in words, and what it is called, if it is a motor."""
        least, most = self.bounds
        return f", from {least:g} to {most:g}: motor '{name}'" if self.is_motor else ""

    def geared(self, gear: float) -> "Servo":
        """The same on what the length is ``gear`` times of."""
        least, most = sorted(gear * bound for bound in self.bounds)
        return Servo(
            gear * self.force, gear**2 * self.stiffness, gear**2 * self.damping, (least, most)
        )

    def along(self, name: str, factors: dict[str, float]) -> Tendon:
        """The same along a sum of joint positions."""
        if self.is_motor:
            return Tendon(name, factors, motor=self.motor)
        return Tendon(name, factors, self.stiffness, self.damping, self.rest, force=self.constant)
