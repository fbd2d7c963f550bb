"""Delta robot: six rods in three parallelograms keep the platform level, and where it then is.

A platform that cannot turn takes each pair of rods for one, so its centre is where three spheres
of the rods' length meet around the elbows, drawn in by the platform's radius. With equal radii
that is a closed form in the three motor angles: above or below their circumcentre.
"""

import numpy as np
from _show import loaded, play, run
from numpy.typing import NDArray

import bulletbridge as bb

Array = NDArray[np.float64]

ROOF, ARM, ROD, PLATFORM = 0.2, 0.3, 0.6, 0.07  # [m]: motor axes, arms, rods, where rods end
CENTRE = bb.Frame("platform", (-PLATFORM, -0.05, 0.0))  # its link frame is at the end of rod 1a
DIRECTIONS = 2 * np.pi / 3 * np.arange(3)  # of the arms, seen from above [rad]


def forward_kinematics(motors: Array) -> Array:
    """Centre of the platform (3,) [m] at motor angles (3,) [rad] below the horizontal."""
    reach, drop = ROOF + ARM * np.cos(motors) - PLATFORM, -ARM * np.sin(motors)
    A, B, C = np.column_stack([reach * np.cos(DIRECTIONS), reach * np.sin(DIRECTIONS), drop])
    b, c = B - A, C - A
    up = np.cross(b, c)
    out = (b @ b * np.cross(c, up) + c @ c * np.cross(up, b)) / (2 * up @ up)
    return A + out - np.sqrt((ROD**2 - out @ out) / (up @ up)) * up


def measure(gui: bool = False) -> tuple[float, float]:
    """Largest distance from the closed form [m] and largest tilt [rad] over two seconds."""
    errors, tilts = list[float](), list[float]()
    with loaded("delta", gui) as system:
        motors = [system.mechanism.joint(f"motor_{k}").q.start for k in (1, 2, 3)]
        for _ in range(40):
            play(system, 0.05, gui)
            centre = system.kinematics().point(CENTRE)
            errors.append(float(np.linalg.norm(centre.p_W - forward_kinematics(system.q[motors]))))
            tilts.append(float(np.abs(centre.R_W - np.eye(3)).max()))
    return max(errors), max(tilts)


def main(gui: bool = False) -> float:
    """Swing for two seconds; return the largest error of the platform's position [m]."""
    error, tilt = measure(gui)
    print(f"platform {error:.0e} m from where three spheres meet, tilted by {tilt:.0e} rad")
    return error


if __name__ == "__main__":
    run(main, __doc__)
