"""Slider-crank driven at constant speed, checked against the piston's closed form.

The drive is a constraint that moves with time: crank angle = start + speed * t. The piston then is
at r cos x + sqrt(l² - r² sin² x), whatever the masses; the drive's torque is read out.
"""

from dataclasses import replace

import numpy as np
import pybullet
from _show import connect, play, run

import bulletbridge as bb
from bulletbridge.surface.loops_file import read_loops
from bulletbridge.surface.models import find

CRANK, ROD, HOME = 0.15, 0.5, 0.5578301978956992  # [m], [m], piston at slider = 0 [m]
START, SPEED = np.pi / 3, 10.0  # [rad], [rad/s]


def piston(x: float) -> float:
    """Distance of the piston from the crank's axis [m] at a crank angle."""
    return float(CRANK * np.cos(x) + np.sqrt(ROD**2 - (CRANK * np.sin(x)) ** 2))


def main(gui: bool = False) -> float:
    """Turn for two seconds; return the largest error of the piston's position [m]."""
    drive = bb.Motion(z=bb.Polynomial((START, SPEED)))
    spec = read_loops(find("slider_crank"))
    driven = bb.Coupling("drive", {"crank": 1.0}, motion=drive)
    client = connect(gui)
    system = bb.load(replace(spec, constraints=(*spec.constraints, driven)), client).system
    if gui:
        play(system, 4.0, gui)
    turn = system.rollout(480)
    exact = [piston(START + SPEED * t) for t in turn.t]
    error = float(np.abs(turn.position("slider") + HOME - exact).max())
    torque = float(system.reactions()["drive"].multipliers[0])
    pybullet.disconnect(client)
    print(f"piston error {error:.0e} m, drive torque at the end {torque:.3f} N m")
    return error


if __name__ == "__main__":
    run(main, __doc__)
