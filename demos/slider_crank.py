"""Slider-crank driven at constant speed, checked against the piston's closed form.

The drive is a constraint that moves with time: crank angle = start + speed * t. The piston then is
at r cos x + sqrt(l² - r² sin² x), whatever the masses. What the drive costs is read from its
reaction, and its work must be the energy that the mechanism gained.
"""

from dataclasses import replace

import numpy as np
from _show import play, run, window
from numpy.typing import NDArray
from scipy.integrate import simpson

import bulletbridge as bb
from bulletbridge.models.bundled import find
from bulletbridge.models.loops_file import read_loops

Array = NDArray[np.float64]

CRANK, ROD, HOME = 0.15, 0.5, 0.5578301978956992  # [m], [m], piston at slider = 0 [m]
START, SPEED, DURATION, DT = np.pi / 3, 10.0, 2.0, 1 / 480  # [rad], [rad/s], [s], [s]


def piston(t: Array) -> tuple[Array, Array]:
    """Distance of the piston from the crank's axis [m] and its speed [m/s]."""
    x = START + SPEED * t
    along = np.sqrt(ROD**2 - (CRANK * np.sin(x)) ** 2)
    slope = -CRANK * np.sin(x) - CRANK**2 * np.sin(x) * np.cos(x) / along
    return CRANK * np.cos(x) + along, SPEED * slope


def measure(gui: bool = False) -> tuple[float, float, float]:
    """Largest errors of position [m] and speed [m/s], and of the drive's work over its range."""
    drive = bb.Motion(z=bb.Polynomial((START, SPEED)))
    spec = read_loops(find("slider_crank"))
    driven = bb.Coupling("drive", {"crank": 1.0}, motion=drive)
    with window(gui, "slider_crank") as client:
        model = bb.load(replace(spec, constraints=(*spec.constraints, driven)), client, dt=DT)
        turn = play(model.system, DURATION, gui)
        torques, energies = list[float](), list[float]()
        for q, v, t in zip(turn.q, turn.v, turn.t, strict=True):
            model.system.set_state(q, v, float(t))
            torques.append(float(model.system.reactions()["drive"].multipliers[0]))
            energies.append(model.system.evaluate().energy)
    at, speed = piston(turn.t)
    error = float(np.abs(turn.position("slider") + HOME - at).max())
    speed_error = float(np.abs(turn.rate("slider") - speed).max())
    work = SPEED * float(simpson(np.array(torques), x=turn.t))
    lost = abs(work - (energies[-1] - energies[0])) / float(np.ptp(energies))
    return error, speed_error, lost


def main(gui: bool = False) -> float:
    """Turn for two seconds; return the largest error of the piston's position [m]."""
    error, speed_error, lost = measure(gui)
    print(
        f"piston error {error:.0e} m and {speed_error:.0e} m/s, "
        f"work of the drive off by {lost:.0e} of the energy's range"
    )
    return error


if __name__ == "__main__":
    run(main, __doc__)
