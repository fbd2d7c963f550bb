"""Delta robot: six rods in three parallelograms keep the platform level, and where it then is.

The platform of a delta robot cannot turn, and its centre is where three spheres of the rods' length
around the displaced elbows meet, which is solved here on its own.
"""

import numpy as np
from _show import loaded, play, run
from numpy.typing import NDArray
from scipy.optimize import fsolve

import bulletbridge as bb

Array = NDArray[np.float64]

ROD = 0.6  # [m]
PAIRS = {1: ("rod_1a", "rod_1b"), 2: ("rod_2a", "rod_2b"), 3: ("rod_3a", "rod_3b")}


def main(gui: bool = False) -> float:
    """Swing for two seconds; return the largest of tilt [rad] and position error [m]."""
    with loaded("delta", gui, dt=1 / 240) as system:
        platform = bb.Frame("platform")
        start = system.kinematics().point(platform)
        arms: dict[int, Array] = {}  # of each pair: where it holds the platform, from its centre
        for number, rods in PAIRS.items():
            ends = [system.kinematics().point(bb.Frame(rod, (ROD, 0, 0))).p_W for rod in rods]
            arms[number] = np.mean(ends, axis=0) - start.p_W
        play(system, 2.0, gui)
        kinematics = system.kinematics()
        end = kinematics.point(platform)
        tops = {n: [kinematics.point(bb.Frame(r)).p_W for r in rods] for n, rods in PAIRS.items()}
    centres = np.array([np.mean(tops[n], axis=0) - arms[n] for n in PAIRS])
    exact = fsolve(lambda p: ((p - centres) ** 2).sum(axis=1) - ROD**2, end.p_W + 0.01, xtol=1e-12)
    tilt = float(np.linalg.norm(end.R_W - start.R_W))
    error = float(np.linalg.norm(end.p_W - exact))
    print(f"platform turned by {tilt:.0e} rad, {error:.0e} m from where three spheres meet")
    return max(tilt, error)


if __name__ == "__main__":
    run(main, __doc__)
