"""Small Bullet worlds for tests, and what must not change in them."""

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pybullet
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from bulletbridge.drop_in.client import BulletClient
from bulletbridge.drop_in.settings import Mode

INERTIA = pybullet.URDF_USE_INERTIA_FROM_FILE
quiet = settings(
    max_examples=20,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
seeds = st.integers(0, 2**32 - 1)
"""How many random trees a test loads into one world, and what they are made from."""
UNITS = '<mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
SLIDER = f"""<robot name="slider">
<link name="base"><inertial>{UNITS}</inertial>
<collision><geometry><box size="1 1 0.2"/></geometry></collision></link>
<link name="ball"><inertial>{UNITS}</inertial>
<collision><geometry><sphere radius="0.1"/></geometry></collision></link>
<joint name="slide" type="prismatic"><parent link="base"/><child link="ball"/>
<origin xyz="0 0 0.4"/><axis xyz="0 0 1"/>
<limit lower="-9" upper="9" effort="9" velocity="9"/></joint></robot>"""
"""URDF of a ball that slides towards its own base, which it is to meet where it may."""


@dataclass
class BulletWorld:
    """A DIRECT client that loads URDF text."""

    directory: Path
    client: int = field(default_factory=lambda: pybullet.connect(pybullet.DIRECT))
    count: "itertools.count[int]" = field(default_factory=itertools.count)

    def load(self, text: str, flags: int = INERTIA, **options: Any) -> int:
        """Load URDF text; each time a new file, because Bullet caches files by name."""
        path = self.directory / f"robot{next(self.count)}.urdf"
        path.write_text(text)
        return pybullet.loadURDF(str(path), flags=flags, physicsClientId=self.client, **options)

    def snapshot(self) -> list[Any]:
        """State and constants of every body, exactly."""
        c = self.client
        found = list[Any]()
        for index in range(pybullet.getNumBodies(c)):
            b = pybullet.getBodyUniqueId(index, c)
            joints = range(pybullet.getNumJoints(b, c))
            found.append(
                (
                    b,
                    pybullet.getBodyInfo(b, c),
                    pybullet.getBasePositionAndOrientation(b, c),
                    pybullet.getBaseVelocity(b, c),
                    [pybullet.getJointStateMultiDof(b, i, c) for i in joints],
                    [pybullet.getJointInfo(b, i, c) for i in joints],
                    [pybullet.getDynamicsInfo(b, i, c)[:10] for i in range(-1, len(joints))],
                )
            )
        return found

    def release(self, body: int, link_damping: float = 0.0) -> None:
        """Switch off motors and the clamp of rates; set Bullet's damping of links."""
        c = self.client
        pybullet.changeDynamics(
            body,
            -1,
            linearDamping=link_damping,
            angularDamping=link_damping,
            maxJointVelocity=1e6,
            physicsClientId=c,
        )
        for i in range(pybullet.getNumJoints(body, c)):
            kind = pybullet.getJointInfo(body, i, c)[2]
            if kind == pybullet.JOINT_SPHERICAL:
                pybullet.setJointMotorControlMultiDof(
                    body,
                    i,
                    pybullet.POSITION_CONTROL,
                    targetPosition=[0, 0, 0, 1],
                    positionGain=0,
                    velocityGain=0,
                    force=[0, 0, 0],
                    physicsClientId=c,
                )
            elif kind != pybullet.JOINT_FIXED:
                pybullet.setJointMotorControl2(
                    body, i, pybullet.VELOCITY_CONTROL, force=0, physicsClientId=c
                )

    def shake(self, body: int, rng: np.random.Generator) -> None:
        """Random state of all joints and of the base, fixed (pose only) or floating."""
        c = self.client
        pybullet.resetBasePositionAndOrientation(body, rng.normal(0, 1, 3).tolist(), quat(rng), c)
        if pybullet.getDynamicsInfo(body, -1, c)[0] > 0:
            pybullet.resetBaseVelocity(
                body, rng.normal(size=3).tolist(), rng.normal(size=3).tolist(), c
            )
        for i in range(pybullet.getNumJoints(body, c)):
            kind = pybullet.getJointInfo(body, i, c)[2]
            if kind == pybullet.JOINT_SPHERICAL:
                values = quat(rng), rng.normal(size=3).tolist()
            elif kind != pybullet.JOINT_FIXED:
                values = rng.normal(0, 0.7, 1).tolist(), rng.normal(size=1).tolist()
            else:
                continue
            pybullet.resetJointStatesMultiDof(
                body, [i], [values[0]], [values[1]], physicsClientId=c
            )


def quat(rng: np.random.Generator) -> list[float]:
    """Random unit quaternion."""
    x = rng.normal(size=4)
    return (x / np.linalg.norm(x)).tolist()


def momentum(p: Any, bodies: Iterable[int]) -> np.ndarray:
    """Linear and angular momentum about the origin (6,) of free bodies and their links."""
    total = np.zeros(6)
    for body in bodies:
        states = [(*p.getBasePositionAndOrientation(body), *p.getBaseVelocity(body))]
        for link in range(p.getNumJoints(body)):
            state = p.getLinkState(body, link, 1, 1)
            states.append((*state[:2], *state[6:8]))
        for link, (place, turn, *rates) in enumerate(states, -1):
            mass, _, inertia = p.getDynamicsInfo(body, link)[:3]
            R = np.array(p.getMatrixFromQuaternion(turn)).reshape(3, 3)
            v, w = map(np.array, rates)
            total[:3] += mass * v
            total[3:] += np.cross(place, mass * v) + R @ (inertia * (R.T @ w))
    return total


def led_pendulum(
    mode: Mode, on_base: bool
) -> tuple[BulletClient, int, int, Callable[[list[float]], None]]:
    """A load of 1 kg on a pin 0.3 m above it that starts at (0, 0, 2).

    Returns:
        The client, its ids of load and constraint, and what puts the pin somewhere else: by the
        base that has it, or by the constraint's frame in the world.
    """
    client = BulletClient(pybullet.DIRECT, mode=mode)
    client.setGravity(0, 0, -9.81)
    load = client.createMultiBody(1, -1, -1, [0, 0, 1.7])
    client.changeDynamics(load, -1, localInertiaDiagonal=[0.02] * 3)
    holder = client.createMultiBody(0, -1, -1, [0, 0, 2])
    ends = (holder, -1, [0, 0, 0]) if on_base else (-1, -1, [0, 0, 2])
    pin = client.createConstraint(
        load, -1, *ends[:2], pybullet.JOINT_POINT2POINT, [0, 0, 0], [0, 0, 0.3], ends[2]
    )

    def lead(place: list[float]) -> None:
        if on_base:
            client.resetBasePositionAndOrientation(holder, place, [0, 0, 0, 1])
        else:
            client.changeConstraint(pin, place)

    return client, load, pin, lead
