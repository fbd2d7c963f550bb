"""Minitaur on its feet: it stands for a second and a half, then trots, legs closed to round-off.

While it stands, the plane must carry its weight, and nothing may creep.
"""

import warnings
from typing import NamedTuple

import numpy as np
import pybullet
from _show import play, put_floor, run, window

import bulletbridge as bb
from bulletbridge.errors import BulletBridgeWarning
from bulletbridge.models.bundled import find
from bulletbridge.models.loops_file import read_loops

G, DT = 9.81, 1 / 240
STANDING, SETTLED, DURATION = 1.5, 0.75, 4.0  # [s]
SWING, LIFT, PACE = 0.3, 0.3, 4.0  # [rad], [rad], [Hz]
LEGS = {"front_left": 0.0, "back_right": 0.0, "front_right": np.pi, "back_left": np.pi}


class Measured(NamedTuple):
    """How it stood and walked."""

    load: float  # on the plane while it stands, against its weight [1]
    creep: float  # of the base while it stands [m]
    gap: float  # largest of the loops, in directions that the joints can move [m]
    way: float  # walked [m]
    residual: float  # largest of the complementarity problem [m/s]


def drive(system: bb.System, t: float) -> None:
    """Position motors of diagonal pairs of legs."""
    for leg, late in LEGS.items():
        sign, turn = -1 if "left" in leg else 1, 2 * np.pi * PACE * (t - STANDING) + late
        for side, way in (("L", 1), ("R", -1)):
            bend = way * SWING * np.sin(turn) + LIFT * np.cos(turn) if t > STANDING else 0.0
            system.motors.set(
                f"motor_{leg}{side}_joint",
                force=3.5,
                position=sign * (np.pi / 2 + bend),
                position_gain=1.0,
            )


def measure(gui: bool = False) -> Measured:
    """Stand, then trot."""
    spec = read_loops(find("minitaur"))
    with window(gui, "minitaur") as client:
        pybullet.setGravity(0, 0, -G, physicsClientId=client)
        put_floor(client, 0.0)
        # inertias are Bullet's, of the shapes: those of the file are far too large
        robot = pybullet.loadURDF(str(spec.bodies[0].urdf), physicsClientId=client)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", BulletBridgeWarning)
            system = bb.attach(robot, spec.constraints, client, dt=DT, contacts=True)
        system.assemble(spec.start_q | {"base": [0.0, 0.0, 0.17, 0.0, 0.0, 0.0, 1.0]})
        weight = float(system.mechanism.bodies["mass"].sum()) * G
        loads, path, gap, residual = list[float](), list[np.ndarray](), 0.0, 0.0
        while system.t < DURATION - DT / 2:
            drive(system, system.t)
            play(system, DT, gui)
            gap = max(gap, system.evaluate().largest("kept_metres"))
            assert system.complementarity is not None
            residual = max(residual, system.complementarity.residual)
            path.append(system.q[:3])
            if SETTLED < system.t < STANDING:
                loads.append(sum(float(contact.force[2]) for contact in system.contacts()))
    first, last = round(SETTLED / DT), round(STANDING / DT) - 1
    creep = float(np.linalg.norm(path[last] - path[first]))
    way = float(np.linalg.norm((path[-1] - path[last])[:2]))
    load = float(np.abs(np.array(loads) / weight - 1).max())
    return Measured(load, creep, gap, way, residual)


def main(gui: bool = False) -> float:
    """Stand and trot; return the relative error of the load while it stands."""
    m = measure(gui)
    print(
        f"stands with {m.load:.0e} of its weight missing, creeps {m.creep:.0e} m,"
        f" trots {m.way:.2f} m, legs within {m.gap:.0e} m, residual {m.residual:.0e} m/s"
    )
    return m.load


if __name__ == "__main__":
    run(main, __doc__)
