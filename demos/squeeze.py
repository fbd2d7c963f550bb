"""Two arms carry one payload round a circle and squeeze it by a force that varies.

The squeeze is the internal force of the grasp: half of the difference of what the arms exert on the
payload, both taken to its centre of mass; half of the sum moves it. Both are commanded, and checked
by Bullet's own inverse dynamics of each arm, which knows no constraint: what the motors do not
explain, the payload does.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pybullet
from _drawn import plotted, run
from _path import closed_path
from _show import play, show, window
from numpy.typing import NDArray

import bulletbridge as bb

Array = NDArray[np.float64]
MODEL = Path(__file__).with_name("squeeze.loops.yaml")
MIDDLE, TIP = bb.Frame("payload/payload"), (0.0, 0.0, 0.045)
MASS, INERTIA, G = 3.0, np.diag([0.008125, 0.025, 0.028125]), 9.81  # [kg], [kg m²], [m/s²]
ENDS = {"left": np.array([-0.15, 0.0, 0.0]), "right": np.array([0.15, 0.0, 0.0])}  # [m]
RADIUS, PERIOD = 0.06, 2.0  # [m], [s]
DT, DURATION, SETTLED = 5e-3, 2.5, 1.25  # [s]
K_P, K_D = 12.0, 30.0  # [1/s]


class Errors(NamedTuple):
    """Largest of each; the path's once the error of the start has decayed."""

    internal: float  # of the internal force and moment [N or N m]
    path: float  # of the payload [m]
    gap: float  # of the loops [m]
    torque: float  # of the motors, not an error [N m]


def squeeze(t: float) -> float:
    """Wanted internal force by time [N]."""
    return 30.0 + 20.0 * float(np.sin(2 * np.pi * t / 0.8))


def axes(system: bb.System) -> Array:
    """Orientation (3, 3) of the payload."""
    return system.kinematics().point(MIDDLE).R_W


def load(system: bb.System) -> Array:
    """Wrench (6,) on the payload that its acceleration takes, at its centre of mass [N m, N]."""
    part, R = system.mechanism.joint("payload/base").v, axes(system)
    rate, faster, inertia = system.v[part][:3], system.acceleration()[part], R @ INERTIA @ R.T
    moment = inertia @ faster[:3] + np.cross(rate, inertia @ rate)
    return np.concatenate([moment, MASS * (faster[3:] + [0.0, 0.0, G])])


def internal(system: bb.System, force: float) -> Array:
    """Internal wrench (6,) of a force [N] along the payload, as the left arm exerts it."""
    return np.concatenate([np.zeros(3), force * axes(system)[:, 0]])


def seen_by_bullet(system: bb.System, arm: str, body: int, client: int) -> Array:
    """What an arm exerts on the payload, at its centre (6,): by Bullet's inverse dynamics."""
    part = slice(0, 7) if arm == "left" else slice(7, 14)
    q, v, vdot = (x[part].tolist() for x in (system.q, system.v, system.acceleration()))
    needed = np.array(pybullet.calculateInverseDynamics(body, q, v, vdot, physicsClientId=client))
    needed += system.mechanism.axes["damping"][part] * system.v[part]
    rest = [0.0] * 7
    move, turn = map(np.array, pybullet.calculateJacobian(body, 6, TIP, q, rest, rest, client))
    side = np.diag([-1.0, -1.0, 1.0]) if arm == "right" else np.eye(3)  # its base is turned round
    rows = np.vstack([side @ turn, side @ move])
    missing: Array = system.tau[part] - needed
    tip = np.linalg.lstsq(rows.T, missing)[0]
    lever = axes(system) @ ENDS[arm]
    return np.array([*(tip[:3] + np.cross(lever, tip[3:])), *tip[3:]])


def measure(gui: bool = False, plot: Path | None = None, dt: float = DT) -> Errors:
    """Carry for a circle and a quarter, from rest."""
    rows, path, error, gap, torque = list[tuple[float, ...]](), list[float](), 0.0, 0.0, 0.0
    with window(gui, str(MODEL)) as client:
        model = bb.load(MODEL, client, dt=dt, integrator="semi_implicit_euler")
        system, base = model.system, model.system.mechanism.joint("payload/base")
        start = system.q[base.q][:3]
        show(system, gui)

        def circle(t: float) -> Array:
            angle = 2 * np.pi * t / PERIOD
            return start + RADIUS * np.array([0.0, np.sin(angle), 1.0 - np.cos(angle)])

        held = {f"{arm}/lbr_iiwa_joint_3": 0.0 for arm in ("left", "right")}
        joints = closed_path(system, MIDDLE, circle, np.eye(3), held, PERIOD)

        def motion(t: float) -> bb.Desired:  # the payload's quaternion does not change
            q, v, vdot = joints(t)
            return bb.Desired(q, *(np.r_[x[:14], np.zeros(3), x[14:17]] for x in (v, vdot)))

        def wanted(t: float) -> Array:  # of the left grasp: taken from the centre to the end
            found = load(system) / 2 + internal(system, squeeze(t))
            found[:3] -= np.cross(axes(system) @ ENDS["left"], found[3:])
            return bb.multipliers(system, {"left_grasp": found})

        moving = bb.Tracking(bb.plant_of(system), motion, K_P, K_D)
        pressing = bb.Tracking(bb.plant_of(system), motion, K_P, K_D, forces=wanted)
        while system.t < DURATION:
            now = system.q, system.v, system.t
            system.tau[:] = moving(*now)  # and so the acceleration is known
            system.tau[:] = pressing(*now)
            arms = [
                seen_by_bullet(system, arm, model.ids[arm], client) for arm in ("left", "right")
            ]
            found, asked = (arms[0] - arms[1]) / 2, internal(system, squeeze(system.t))
            error = max(error, float(np.abs(found - asked).max()))
            rows.append((system.t, float(found[3:] @ axes(system)[:, 0]), squeeze(system.t)))
            torque = max(torque, float(np.abs(system.tau).max()))
            play(system, dt, gui)
            gap = max(gap, system.evaluate().largest("kept_metres"))
            if system.t > SETTLED:
                path.append(float(np.linalg.norm(system.q[base.q][:3] - circle(system.t))))
    t, found, asked = np.array(rows).T
    plotted(plot, "squeeze [N]", {"internal force": (t, found), "wanted": (t, asked)})
    return Errors(error, max(path), gap, torque)


def main(gui: bool = False, plot: Path | None = None) -> float:
    """Carry the payload round; return the largest error of the internal wrench [N or N m]."""
    found = measure(gui, plot)
    print(
        f"internal force {found.internal:.0e} N, path {found.path:.1e} m, gap {found.gap:.0e} m,"
        f" torques up to {found.torque:.0f} N m"
    )
    return found.internal


if __name__ == "__main__":
    run(main, __doc__)
