"""What a program does to the bodies of a client, which Bullet does not tell afterwards."""

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pybullet

from bulletbridge.constraints.loop import SOFTNESS
from bulletbridge.numerics.records import Array, Vector

Given = dict[str, Any]
SEVERAL = {
    "force": "forces",
    "targetPosition": "targetPositions",
    "targetVelocity": "targetVelocities",
    "positionGain": "positionGains",
    "velocityGain": "velocityGains",
    "maxVelocity": "maxVelocities",
}
"""Names of arguments for one joint and for several."""
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


class Motor(NamedTuple):
    """The last command to a joint's motor.

    Attributes:
        force: Largest force [N] or torque [N m]; None for Bullet's impulse of 1 N s.
        velocity, position: Targets.
        velocity_gain, position_gain: Shares of their errors that a step takes away.
        fastest: Bound on the rate that is asked for.
        mode: What was asked for beyond that, which exact steps do not have; empty otherwise.
    """

    force: float | None = None
    velocity: float = 0.0
    position: float = 0.0
    velocity_gain: float = 1.0
    position_gain: float = 0.0
    fastest: float = math.inf
    mode: str = ""

    @property
    def on(self) -> bool:
        """Whether it does anything."""
        return self.force != 0.0 and (self.velocity_gain != 0.0 or self.position_gain != 0.0)


AT_FIRST = Motor()
"""Bullet's motors are on from the start."""
OFF = Motor(force=0.0)
DEFAULT_FORCE, DEFAULT_POSITION_GAIN = 1e5, 0.1
"""Of motor commands that leave them out."""


@dataclass
class Actions:
    """Motors, joint torques, external forces and damping of all bodies of a client.

    Attributes:
        motors: By body and joint; ``AT_FIRST`` where nothing was said.
        torques: Joint torques of the coming step [N m or N], by body and joint.
        pushes: External forces of the coming step.
        damping: Linear and angular damping of links, by body.
        joint_damping: Of single joints, where it was changed, by body and joint.
        limits: Lower and upper limit of single joints, where they were changed.
        erp: Share of their gap that constraints with force limits close in a step.
        anisotropy: Factors on friction along the axes of single links, by body and link.
    """

    motors: dict[tuple[int, int], Motor] = field(default_factory=lambda: {})
    torques: list[tuple[int, int, Array]] = field(default_factory=lambda: [])
    pushes: list[Push] = field(default_factory=lambda: [])
    damping: dict[int, tuple[float, float]] = field(default_factory=lambda: {})
    joint_damping: dict[tuple[int, int], float] = field(default_factory=lambda: {})
    limits: dict[tuple[int, int], tuple[float, float]] = field(default_factory=lambda: {})

    erp: float = SOFTNESS
    anisotropy: dict[tuple[int, int], Vector] = field(default_factory=lambda: {})

    def command(self, given: Given) -> None:
        """Take note of a motor command for one joint."""
        self._command(given["bodyUniqueId"], given["jointIndex"], given["controlMode"], given)

    def command_all(self, given: Given) -> None:
        """Take note of motor commands for several joints."""
        columns = {one: given[many] for one, many in SEVERAL.items() if many in given}
        for i, joint in enumerate(given["jointIndices"]):
            values = {key: column[i] for key, column in columns.items()}
            self._command(given["bodyUniqueId"], joint, given["controlMode"], values)

    def _command(self, body: int, joint: int, mode: int, given: Given) -> None:
        force = given.get("force")
        if mode == pybullet.TORQUE_CONTROL:
            if force is not None:
                self.torques.append((body, joint, np.atleast_1d(np.asarray(force, float))))
            return
        self.motors[body, joint] = motor_of(mode, given)

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

        if "anisotropicFriction" in given:
            x, y, z = given["anisotropicFriction"]
            self.anisotropy[body, link] = float(x), float(y), float(z)

    def forget(self, body: int) -> None:
        """Forget a body: its id may be given to another one."""
        self.damping.pop(body, None)
        for table in (self.motors, self.joint_damping, self.limits, self.anisotropy):
            for key in [key for key in table if key[0] == body]:
                del table[key]

    def end_step(self) -> None:
        """Torques and forces act for one step."""
        self.torques.clear()
        self.pushes.clear()


def motor_of(mode: int, given: Given) -> Motor:
    """What a command other than a torque makes of a motor."""
    force = given.get("force", DEFAULT_FORCE)
    if not np.any(force):
        return OFF
    if np.ndim(force):
        return Motor(mode="a spherical joint")
    if mode not in (pybullet.POSITION_CONTROL, pybullet.VELOCITY_CONTROL):
        return Motor(mode="PD_CONTROL")
    follows = mode == pybullet.POSITION_CONTROL
    fastest = float(given.get("maxVelocity", -1.0))
    return Motor(
        float(force),
        number(given.get("targetVelocity", 0.0)),
        number(given.get("targetPosition", 0.0)) if follows else 0.0,
        float(given.get("velocityGain", 1.0)),
        float(given.get("positionGain", DEFAULT_POSITION_GAIN)) if follows else 0.0,
        fastest if follows and fastest > 0.0 else math.inf,
    )


def number(value: Any) -> float:
    """A target that may be a list of one number."""
    values = np.ravel(value)
    return float(values[0]) if len(values) else 0.0
