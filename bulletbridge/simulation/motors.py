"""Motors with force limits, as PyBullet's ``setJointMotorControl2`` defines them."""

import math
from collections.abc import Callable

import numpy as np

from bulletbridge.constraints.layout import DRIVE
from bulletbridge.errors import ModelError
from bulletbridge.mechanism.model import Joint, Mechanism
from bulletbridge.numerics.records import Array

DRIVEN = ("revolute", "prismatic")


class Motors:
    """One motor for every revolute and prismatic joint, off until it is set.

    A motor asks for the rate v + velocity_gain (velocity - v) + position_gain (position - q)/dt,
    v the rate that forces alone would give, and exerts what it takes, up to its force.

    Args:
        mechanism: Whose joints they drive.

    Attributes:
        records: (n,) of ``constraints.layout.Drive``.
    """

    def __init__(self, mechanism: Mechanism) -> None:
        self._mechanism = mechanism
        names = [name for name, joint in mechanism.joints.items() if joint.kind in DRIVEN]
        self._index = {name: i for i, name in enumerate(names)}
        self.records = np.zeros(len(names), DRIVE)
        self._axes = [mechanism.joints[name].v.start for name in names]
        self.records["axis"] = self._axes
        self.exerted: Callable[[], Array] | None = None  # once a step has been made

    @property
    def names(self) -> tuple[str, ...]:
        """Joints in the order of ``forces``."""
        return tuple(self._index)

    @property
    def forces(self) -> Array:
        """What the motors exerted in the last step (n,) [N or N m]."""
        return np.zeros(len(self.records)) if self.exerted is None else self.exerted()

    @property
    def any_on(self) -> bool:
        """Whether any motor is on."""
        return bool(self.records["force"].any())

    def set(
        self,
        joint: str,
        *,
        force: float,
        velocity: float = 0.0,
        position: float | None = None,
        velocity_gain: float = 1.0,
        position_gain: float = 0.1,
        fastest: float = math.inf,
    ) -> None:
        """Let a motor hold a rate, or a position too, from now on.

        Args:
            joint: Name of a revolute or prismatic joint.
            force: Largest force [N] or torque [N m].
            velocity: Rate [m/s or rad/s].
            position: Position [m or rad]; None for the rate alone.
            velocity_gain: Share of the velocity error that a step takes away.
            position_gain: Share of the position error that a step takes away.
            fastest: Bound on the rate that is asked for.

        Raises:
            ModelError: No such joint, or a number that means nothing.
        """
        i = self._find(joint)
        target = 0.0 if position is None else position
        gain = 0.0 if position is None else position_gain
        if not (
            math.isfinite(velocity + target + velocity_gain + gain)
            and 0.0 <= force < math.inf
            and fastest > 0.0
        ):
            raise ModelError(
                f"motor of '{joint}': {dict(force=force, velocity=velocity, position=position)} is"
                " not possible; give finite numbers, and a force that is not negative"
            )
        # one assignment: field by field costs ten times as much
        self.records[i] = self._axes[i], velocity, target, velocity_gain, gain, fastest, force

    def off(self, joint: str) -> None:
        """Switch a motor off.

        Raises:
            ModelError: No such joint.
        """
        self.records[self._find(joint)]["force"] = 0.0

    def _find(self, joint: str) -> int:
        found: Joint = self._mechanism.joint(joint)
        if joint not in self._index:
            raise ModelError(
                f"joint '{joint}' is {found.kind}; motors drive {' and '.join(DRIVEN)}"
            )
        return self._index[joint]
