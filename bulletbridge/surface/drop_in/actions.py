"""What a program does to the bodies of a client, which Bullet does not tell afterwards."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pybullet

from bulletbridge.numerics.records import Array

Given = dict[str, Any]
DEFAULT_DAMPING = 0.04
"""Of every link, linear and angular, unless changeDynamics says otherwise."""


@dataclass(frozen=True)
class Push:
    """An external force or torque for one step.

    Attributes:
        body, link: Bullet's numbers.
        vector: Force [N] or torque [N m], as given.
        point: Where a force acts [m], as given; None for a torque.
        in_world: Whether both are in world axes; otherwise in the link's inertial frame.
    """

    body: int
    link: int
    vector: Array
    point: Array | None
    in_world: bool


@dataclass
class Actions:
    """Motors, joint torques, external forces and damping of all bodies of a client.

    Attributes:
        motors: Whether a joint's motor is on, by body and joint; on where nothing was said.
        torques: Joint torques of the coming step [N m or N], by body and joint.
        pushes: External forces of the coming step.
        damping: Linear and angular damping of links, by body.
        joint_damping: Of single joints, where it was changed, by body and joint.
        limits: Lower and upper limit of single joints, where they were changed.
    """

    motors: dict[tuple[int, int], bool] = field(default_factory=lambda: {})
    torques: list[tuple[int, int, Array]] = field(default_factory=lambda: [])
    pushes: list[Push] = field(default_factory=lambda: [])
    damping: dict[int, tuple[float, float]] = field(default_factory=lambda: {})
    joint_damping: dict[tuple[int, int], float] = field(default_factory=lambda: {})
    limits: dict[tuple[int, int], tuple[float, float]] = field(default_factory=lambda: {})

    def command(self, given: Given) -> None:
        """Take note of a motor command for one joint."""
        self._command(
            given["bodyUniqueId"],
            given["jointIndex"],
            given["controlMode"],
            given.get("force"),
            given.get("positionGain"),
            given.get("velocityGain"),
        )

    def command_all(self, given: Given) -> None:
        """Take note of motor commands for several joints."""
        joints = given["jointIndices"]
        nothing = [None] * len(joints)
        columns = [given.get(k, nothing) for k in ("forces", "positionGains", "velocityGains")]
        for joint, *values in zip(joints, *columns, strict=True):
            self._command(given["bodyUniqueId"], joint, given["controlMode"], *values)

    def _command(self, body: int, joint: int, mode: int, force: Any, kp: Any, kd: Any) -> None:
        if mode == pybullet.TORQUE_CONTROL:
            if force is not None:
                self.torques.append((body, joint, np.atleast_1d(np.asarray(force, float))))
            return
        strong = force is None or bool(np.any(force) if hasattr(force, "__len__") else force)
        gains = kd != 0.0 or (mode != pybullet.VELOCITY_CONTROL and kp != 0.0)
        self.motors[body, joint] = strong and gains

    def push(self, given: Given, vector: str) -> None:
        """Take note of an external force or torque."""
        point = given.get("posObj")
        self.pushes.append(
            Push(
                given["objectUniqueId"],
                given["linkIndex"],
                np.array(given[vector], float),
                None if point is None else np.array(point, float),
                given["flags"] == pybullet.WORLD_FRAME,
            )
        )

    def change(self, given: Given) -> None:
        """Take note of changeDynamics."""
        body, link = given["bodyUniqueId"], given["linkIndex"]
        linear, angular = self.damping.get(body, (DEFAULT_DAMPING, DEFAULT_DAMPING))
        self.damping[body] = (
            float(given.get("linearDamping", linear)),
            float(given.get("angularDamping", angular)),
        )
        if "jointDamping" in given:
            self.joint_damping[body, link] = float(given["jointDamping"])
        if {"jointLowerLimit", "jointUpperLimit"} <= set(given):
            limits = float(given["jointLowerLimit"]), float(given["jointUpperLimit"])
            self.limits[body, link] = limits

    def forget(self, body: int) -> None:
        """Forget a body: its id may be given to another one."""
        self.damping.pop(body, None)
        for table in (self.motors, self.joint_damping, self.limits):
            for key in [key for key in table if key[0] == body]:
                del table[key]

    def end_step(self) -> None:
        """Torques and forces act for one step."""
        self.torques.clear()
        self.pushes.clear()
