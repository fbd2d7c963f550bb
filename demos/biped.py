"""Biped held by its pelvis: its foot pitches and rolls, and what the ankle's two motors have to do.

The foot has no motor of its own. Inverse kinematics of the loops finds the angles of the two cranks
on the shin, against the closed form of a crank with a rod of known length; inverse dynamics finds
the torques that hold the foot there, against virtual work on poses that Bullet places. Then the
motors swing the foot about, by computed torques, and the rotors' inertia is part of them.
"""

from math import atan2, cos, hypot, sin
from typing import NamedTuple

import numpy as np
import pybullet
from _show import play, run, window
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

import bulletbridge as bb
from bulletbridge.models.formats.recognise import read_model

Array = NDArray[np.float64]

SHIN, CRANK, HEEL = 0.36, 0.05, 0.04  # [m]: knee to ankle, crank, from the middle to a rod
MOTORS = {"left_upper_crank": (0.055, -0.12), "left_lower_crank": (-0.055, -0.19)}  # left, up [m]
LEG = {"left_hip_yaw": 0.1, "left_hip_roll": 0.05, "left_hip_pitch": -0.4, "left_knee": 0.8}
DRIVES = ("hip_yaw", "hip_roll", "hip_pitch", "knee", "upper_crank", "lower_crank")
ACTUATED = tuple(f"{side}_{name}" for side in ("left", "right") for name in DRIVES)
POSES = [(pitch, roll) for pitch in (-0.6, -0.2, 0.3) for roll in (-0.25, 0.0, 0.2)]  # [rad]
STEP = 8e-3  # [rad] of the difference
DT, SWING, STIFF = 1 / 240, 1.0, 30.0  # [s], [s], [1/s]
FOOT = {"left_ankle_pitch": (-0.4, 1), "left_ankle_roll": (0.25, 2)}  # how far [rad], how often


class Measured(NamedTuple):
    """Errors, and what the motors did."""

    angle: float  # of cranks, against the closed form [rad]
    torque: float  # of cranks, against virtual work, over the largest [1]
    path: float  # of the swinging foot [rad]
    gap: float  # largest of the loops [m]
    most: float  # largest torque of a crank while the foot is held [N m]


def crank_angle(motor: str, pitch: float, roll: float) -> float:
    """Angle [rad] of a crank whose rod holds the foot's heel at these angles of the ankle [rad]."""
    y, z = MOTORS[motor]
    side = HEEL if y > 0.0 else -HEEL
    length = hypot(side - y, SHIN + z)
    turn = Rotation.from_euler("YX", [pitch, roll])
    px, py, pz = turn.apply([-CRANK, side, 0.0]) + [0.0, -y, -SHIN - z]
    # the tip (-r cos, 0, r sin) is as far from p as the rod is long: a cos + b sin = c
    a, b = 2 * CRANK * px, -2 * CRANK * pz
    c = length**2 - px**2 - py**2 - pz**2 - CRANK**2
    middle, half = atan2(b, a), float(np.arccos(c / hypot(a, b)))
    both = [(middle + s * half + np.pi) % (2 * np.pi) - np.pi for s in (-1, 1)]
    return min(both, key=abs)


def find_pose(system: bb.System, pitch: float, roll: float) -> Array:
    """Configuration (nq,) with the foot turned by these angles [rad]; the ankle stays in place."""
    system.assemble(LEG)
    shin = system.kinematics().point(bb.Frame("left_shin", (0.0, 0.0, -SHIN)))
    R = shin.R_W @ Rotation.from_euler("YX", [pitch, roll]).as_matrix()
    return bb.inverse_kinematics(system, bb.Frame("left_foot"), shin.p_W, R, q=LEG)


def potential(system: bb.System, shown: tuple[int, int], q: Array, cranks: Array) -> float:
    """Potential energy [J] near q, at angles of the cranks [rad], by where Bullet has the links."""
    joints, kept = system.mechanism.joints, [name for name in ACTUATED if name not in MOTORS]
    held = {name: float(q[joints[name].q.start]) for name in kept}
    system.set_state(q, np.zeros(system.mechanism.nv), 0.0)
    system.assemble(held | dict(zip(MOTORS, cranks.tolist(), strict=True)))
    system.write()
    (body, client), energy = shown, 0.0
    for k in range(pybullet.getNumJoints(body, client)):
        mass: float = pybullet.getDynamicsInfo(body, k, client)[0]
        state = pybullet.getLinkState(body, k, computeForwardKinematics=1, physicsClientId=client)
        energy += 9.81 * mass * state[0][2]
    return energy


def slope(system: bb.System, shown: tuple[int, int], q: Array, k: int) -> float:
    """Slope [N m] of the potential energy over one crank, to fourth order."""
    cranks = np.array([q[system.mechanism.joint(name).q.start] for name in MOTORS])
    ends = [potential(system, shown, q, cranks + s * STEP * np.eye(2)[k]) for s in (-2, -1, 1, 2)]
    return float(np.dot([1.0, -8.0, 8.0, -1.0], ends)) / (12.0 * STEP)


def swing(system: bb.System, gui: bool) -> tuple[float, float]:
    """Swing the foot by computed torques; largest error of its angles [rad], largest gap [m]."""
    joints, q = system.mechanism.joints, find_pose(system, 0.0, 0.0)
    system.set_state(q, np.zeros(system.mechanism.nv), 0.0)
    hips = [name for name in ACTUATED if name not in MOTORS]
    home = {name: float(q[joints[name].q.start]) for name in hips}
    errors, gaps = list[float](), list[float]()
    while system.t < SWING - DT / 2:
        wanted = {name: (angle, 0.0, 0.0) for name, angle in home.items()}
        wanted |= {name: bump(system.t, *each) for name, each in FOOT.items()}
        pushed: dict[str, float] = {}
        for name, (angle, rate, change) in wanted.items():
            off = angle - float(system.q[joints[name].q.start])
            slow = rate - float(system.v[joints[name].v.start])
            pushed[name] = change + 2.0 * STIFF * slow + STIFF**2 * off
            if name in FOOT:
                errors.append(abs(off))
        system.tau[:] = bb.inverse_dynamics(system, pushed, actuated=ACTUATED)
        play(system, DT, gui)
        gaps.append(system.evaluate().largest("kept_metres"))
    system.tau[:] = 0.0
    return max(errors), max(gaps)


def bump(t: float, size: float, times: int) -> tuple[float, float, float]:
    """Angle, rate and acceleration at a time [s] of what goes to and fro so many times."""
    w = np.pi * times / SWING
    return size * sin(w * t) ** 2, size * w * sin(2 * w * t), 2 * size * w**2 * cos(2 * w * t)


def hold(system: bb.System, shown: tuple[int, int]) -> tuple[float, float, float]:
    """Hold the foot in each pose: errors of the cranks' angles and torques, the largest torque."""
    joints, rest = system.mechanism.joints, np.zeros(system.mechanism.nv)
    angle, torque, most = list[float](), list[float](), 0.0
    for pitch, roll in POSES:
        q = find_pose(system, pitch, roll)
        angle += [abs(float(q[joints[k].q][0]) - crank_angle(k, pitch, roll)) for k in MOTORS]
        system.set_state(q, rest, 0.0)
        tau = bb.inverse_dynamics(system, rest, actuated=ACTUATED)
        held = np.array([tau[joints[name].v.start] for name in MOTORS])
        slopes = [slope(system, shown, q, k) for k in range(2)]
        torque.append(float(np.abs(held - slopes).max() / np.abs(held).max()))
        most = max(most, float(np.abs(held).max()))
    return max(angle), max(torque), most


def measure(gui: bool = False) -> Measured:
    """Place the foot and hold it, in a world without a window, since that is slow; swing it."""
    model = read_model("biped", fixed_base=True)
    with window(gui, "biped") as client:
        with bb.load(model, "new", dt=DT) as apart:
            angle, torque, most = hold(apart.system, (apart.ids["robot"], apart.client))
        path, gap = swing(bb.load(model, client, dt=DT).system, gui)
    return Measured(angle, torque, path, gap, most)


def main(gui: bool = False) -> float:
    """Place, hold and swing the foot; return the largest error of a crank's angle [rad]."""
    m = measure(gui)
    print(
        f"cranks {m.angle:.0e} rad off the closed form, up to {m.most:.2f} N m hold the foot,"
        f" {m.torque:.0e} off virtual work; swinging, it is {m.path:.1e} rad off, gap {m.gap:.0e} m"
    )
    return m.angle


if __name__ == "__main__":
    run(main, __doc__)
