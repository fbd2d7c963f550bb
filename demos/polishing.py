"""A KUKA arm polishes a table: the tip goes round a circle and presses with a force that varies.

Motion and force are controlled apart, in reduced quasi-velocities. The force is checked by Bullet's
own inverse dynamics, which knows no constraint: what the motors do not explain, the table does.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pybullet
from _path import closed_path
from _show import play, run, window
from numpy.typing import NDArray

import bulletbridge as bb

MODEL = Path(__file__).with_name("polishing.loops.yaml")
TIP, DOWN = bb.Frame("lbr_iiwa_link_7", (0, 0, 0.15)), np.diag([-1.0, 1.0, -1.0])
CENTRE, RADIUS, HEIGHT, PERIOD = (0.55, 0.0), 0.08, 0.2, 2.0  # [m], [m], [m], [s]
DT, DURATION, SETTLED = 2.5e-3, 2.5, 1.25  # [s]
K_P, K_D = 12.0, 30.0  # [1/s]

Array = NDArray[np.float64]


class Errors(NamedTuple):
    """Largest of each; the tip's once the error of the start has decayed."""

    force: float  # [N]
    path: float  # along the table [m]
    gap: float  # from the table [m]


def circle(t: float) -> Array:
    """Where the tip should be at a time [s]."""
    angle = 2 * np.pi * t / PERIOD
    return np.array([CENTRE[0] + RADIUS * np.cos(angle), RADIUS * np.sin(angle), HEIGHT])


def pressure(t: float) -> Array:
    """Force of the table on the tip, upwards [N]."""
    return np.array([20.0 + 10.0 * np.sin(2 * np.pi * t)])


def tip_of(body: int, client: int) -> Array:
    """Tip [m] as Bullet sees it."""
    position, turn = pybullet.getLinkState(body, 6, physicsClientId=client)[:2]
    at = np.subtract(TIP.xyz, pybullet.getLinkState(body, 6, physicsClientId=client)[2])
    return position + np.reshape(pybullet.getMatrixFromQuaternion(turn), (3, 3)) @ at


def seen_by_bullet(system: bb.System, body: int, client: int) -> float:
    """Force of the table that explains the acceleration [N]: Bullet's inverse dynamics."""
    q, v, vdot = system.q.tolist(), system.v.tolist(), system.acceleration().tolist()
    needed = np.array(pybullet.calculateInverseDynamics(body, q, v, vdot, physicsClientId=client))
    needed += system.mechanism.axes["damping"] * system.v - system.tau
    rest = [0.0] * len(q)
    rows, _ = pybullet.calculateJacobian(body, 6, TIP.xyz, q, rest, rest, client)
    return float(np.linalg.lstsq(np.array(rows)[2:3].T, needed)[0][0])


def table(client: int) -> None:
    """Draw the table."""
    size, grey = (0.2, 0.2, 0.01), (0.6, 0.6, 0.7, 1)
    top = pybullet.createVisualShape(
        pybullet.GEOM_BOX, halfExtents=size, rgbaColor=grey, physicsClientId=client
    )
    pybullet.createMultiBody(0, -1, top, (*CENTRE, HEIGHT - size[2]), physicsClientId=client)


def measure(gui: bool = False, dt: float = DT) -> Errors:
    """Polish for a circle and a quarter; the tip starts 6 cm beside its path."""
    force, path, gap = list[float](), list[float](), list[float]()
    with window(gui, str(MODEL)) as client:
        model = bb.load(MODEL, client, dt=dt, integrator="semi_implicit_euler")
        body, system = model.ids["robot"], model.system
        table(client)
        motion = closed_path(system, TIP, circle, DOWN, {"lbr_iiwa_joint_3": 0.0}, PERIOD)
        law = bb.Tracking(bb.plant_of(system), motion, K_P, K_D, forces=pressure)
        while system.t < DURATION:
            system.tau[:] = law(system.q, system.v, system.t)
            force.append(abs(seen_by_bullet(system, body, client) - pressure(system.t)[0]))
            play(system, dt, gui)
            x, y, z = tip_of(body, client) - circle(system.t)
            gap.append(abs(float(z)))
            if system.t > SETTLED:
                path.append(float(np.hypot(x, y)))
    return Errors(max(force), max(path), max(gap))


def main(gui: bool = False) -> float:
    """Polish for a circle and a quarter; return the largest error of the force [N]."""
    found = measure(gui)
    print(f"force {found.force:.0e} N, path {found.path:.1e} m, gap {found.gap:.0e} m")
    return found.force


if __name__ == "__main__":
    run(main, __doc__)
