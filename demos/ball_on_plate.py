"""A ball rolls on a plate that a Stewart platform tilts, legs held by motors: 5/7 g sin(tilt).

Fifteen loop rows, six motors and a rolling contact in one problem per step.
"""

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pybullet
from _plate import CENTRE, RADIUS, TOP, with_plate
from _show import play, run, window
from scipy.spatial.transform import Rotation

import bulletbridge as bb

TILT, G, DT, DURATION = 0.05, 9.81, 1 / 240, 1.0  # [rad], [m/s²], [s], [s]


class Measured(NamedTuple):
    """What the ball did."""

    rolling: float  # error of its acceleration, over 5/7 g sin(tilt)
    slip: float  # largest speed of its lowest point against the plate [m/s]
    gap: float  # largest of the loops [m]


def measure(gui: bool = False) -> Measured:
    """Tilt the plate, put the ball on it, let it roll."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        path = with_plate(Path(folder))
        client = stack.enter_context(window(gui, str(path)))
        model = bb.load(path, client, dt=DT, contacts=True)
        system, middle = model.system, bb.Frame("legs/platform", CENTRE)
        tilted = Rotation.from_rotvec([0, TILT, 0]).as_matrix()
        point = system.kinematics().point(middle)
        q = bb.inverse_kinematics(system, middle, point.p_W, tilted @ point.R_W)
        down, normal = tilted[:, 0], tilted[:, 2]
        base = system.mechanism.joint("ball/base")
        q[base.q] = *(point.p_W + (TOP + RADIUS) * normal - 0.3 * down), 0.0, 0.0, 0.0, 1.0
        system.set_state(q, np.zeros(system.mechanism.nv))
        for k in range(6):
            leg = f"legs/leg{k}"
            at = float(q[system.mechanism.joint(leg).q][0])
            system.motors.set(leg, force=1e6, position=at)
        for link in range(-1, pybullet.getNumJoints(model.ids["legs"], client)):
            pybullet.changeDynamics(
                model.ids["legs"], link, lateralFriction=1.0, physicsClientId=client
            )
        slip = gap = 0.0
        while system.t < DURATION - DT / 2:
            play(system, DT, gui)
            rates = system.v[base.v]
            slip = max(
                slip, float(np.linalg.norm(rates[3:] - RADIUS * np.cross(rates[:3], normal)))
            )
            gap = max(gap, system.evaluate().largest("kept_metres"))
        speed = float(system.v[base.v][3:] @ down)
    return Measured(abs(speed / DURATION / (5 / 7 * G * np.sin(TILT)) - 1), slip, gap)


def main(gui: bool = False) -> float:
    """Roll for a second; return the relative error of the ball's acceleration."""
    m = measure(gui)
    print(f"rolls {m.rolling:.0e} off 5/7 g sin, slip {m.slip:.0e} m/s, gap {m.gap:.0e} m")
    return m.rolling


if __name__ == "__main__":
    run(main, __doc__)
