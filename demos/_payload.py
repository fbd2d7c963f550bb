"""The payload of demos/squeeze.py: what it needs, and what each arm exerts on it."""

from pathlib import Path

import numpy as np
import pybullet
from numpy.typing import NDArray

import bulletbridge as bb

Array = NDArray[np.float64]
MODEL = Path(__file__).with_name("squeeze.loops.yaml")
MIDDLE, TIP = bb.Frame("payload/payload"), (0.0, 0.0, 0.045)
MASS, INERTIA, G = 3.0, np.diag([0.008125, 0.025, 0.028125]), 9.81  # [kg], [kg m²], [m/s²]
ENDS = {"left": np.array([-0.15, 0.0, 0.0]), "right": np.array([0.15, 0.0, 0.0])}  # [m]


def axes(system: bb.System) -> Array:
    """Orientation (3, 3) of the payload."""
    return system.kinematics().point(MIDDLE).R_W


def load(system: bb.System) -> Array:
    """Wrench (6,) on the payload that its acceleration takes, at its centre of mass [N m, N]."""
    part, R = system.mechanism.joint("payload/base").v, axes(system)
    rate, faster, inertia = system.v[part][:3], system.acceleration()[part], R @ INERTIA @ R.T
    moment = inertia @ faster[:3] + np.cross(rate, inertia @ rate)
    return np.concatenate([moment, MASS * (faster[3:] + [0.0, 0.0, G])])


def internal(system: bb.System, squeeze: float) -> Array:
    """Internal wrench (6,) of a squeeze [N] along the payload, as the left arm exerts it."""
    return np.concatenate([np.zeros(3), squeeze * axes(system)[:, 0]])


def seen_by_bullet(system: bb.System, arm: str, body: int, client: int) -> Array:
    """What an arm exerts on the payload, at its centre (6,): by Bullet's inverse dynamics."""
    part = slice(0, 7) if arm == "left" else slice(7, 14)
    q, v, vdot = (x[part].tolist() for x in (system.q, system.v, system.acceleration()))
    needed = np.array(pybullet.calculateInverseDynamics(body, q, v, vdot, client))
    needed += system.mechanism.axes["damping"][part] * system.v[part]
    rest = [0.0] * 7
    move, turn = map(np.array, pybullet.calculateJacobian(body, 6, TIP, q, rest, rest, client))
    side = np.diag([-1.0, -1.0, 1.0]) if arm == "right" else np.eye(3)  # its base is turned round
    rows = np.vstack([side @ turn, side @ move])
    tip = np.linalg.lstsq(rows.T, system.tau[part] - needed)[0]
    lever = axes(system) @ ENDS[arm]
    return np.array([*(tip[:3] + np.cross(lever, tip[3:])), *tip[3:]])
