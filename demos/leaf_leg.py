"""Leg with leaf springs, read from MJCF: what its dampers take is what its energy loses.

The leg, drawn with its loops closed, is let go. Two four-bars, two stiff springs, a ball and the
rotors of three motors later, the work of the dampers must be missing from its energy.
"""

import numpy as np
from _show import play, run, window
from scipy.integrate import simpson

import bulletbridge as bb
from bulletbridge.models.formats.recognise import read_model

DURATION = 0.5  # [s]


def unexplained(dt: float, gui: bool = False) -> tuple[float, float]:
    """Energy that is neither there nor in the dampers, over what these took; largest gap [m]."""
    with window(gui, "leaf_leg") as client:
        system = bb.load(
            read_model("leaf_leg"), client, dt=dt, integrator="rk4", limits=False
        ).system
        before, v = system.evaluate(), [system.v]
        fall = play(system, DURATION, gui)
        after = system.evaluate()
        rates = np.vstack([*v, fall.v])
        lost = simpson(rates**2 @ system.mechanism.axes["damping"], dx=dt)
    return abs(before.energy - after.energy - lost) / lost, after.largest("kept_metres")


def main(gui: bool = False) -> float:
    """Return the share of the dampers' work that is unaccounted for."""
    error, gap = unexplained(2.5e-4, gui)
    print(f"unaccounted for {error:.1e} of the dampers' work, gap {gap:.0e} m")
    return error


if __name__ == "__main__":
    run(main, __doc__)
