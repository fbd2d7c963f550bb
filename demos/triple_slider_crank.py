"""Triple slider-crank of Haug and Pavesic without its torque, against two coordinates.

Two massless rods are distance constraints. All positions follow from the rod's inclination a and
the crank angle b: q1 = 2 sin a, q4 = 2 cos a, q3 = q1 + 2 cos b. That gives two equations of
motion, which scipy integrates; energy is 272 J. The run ends before the crank reaches its singular
position.
"""

import numpy as np
from _show import loaded, play, run
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

MASSES = np.array(
    [2.0 + 10.0, 10.0, 2.0, 2.0]
)  # slider 1 with crank, crank's inertia, sliders 3, 4
ROD, CRANK = 2.0, 1.0  # [m]
SLIDER_SPEED, CRANK_SPEED, DURATION = 6.0, 2.0, 0.6  # [m/s], [rad/s], [s]


def reference() -> NDArray[np.float64]:
    """Slider 1, crank, slider 3, slider 4 after DURATION."""

    def rate(_t: float, y: NDArray[np.float64]) -> NDArray[np.float64]:
        a, b, da, db = y
        F = np.array(  # rates of q1, q2, q3, q4 per rates of a, b
            [
                [ROD * np.cos(a), 0],
                [0, 1],
                [ROD * np.cos(a), -2 * CRANK * np.sin(b)],
                [-ROD * np.sin(a), 0],
            ]
        )
        curvature = np.array(
            [
                -ROD * np.sin(a) * da**2,
                0,
                -ROD * np.sin(a) * da**2 - 2 * CRANK * np.cos(b) * db**2,
                -ROD * np.cos(a) * da**2,
            ]
        )
        M = F.T @ (MASSES[:, None] * F)
        return np.concatenate([[da, db], np.linalg.solve(M, -F.T @ (MASSES * curvature))])

    start = [0.0, 0.0, SLIDER_SPEED / ROD, CRANK_SPEED]
    a, b = solve_ivp(rate, (0, DURATION), start, method="DOP853", rtol=1e-12, atol=1e-12).y[:2, -1]
    return np.array([ROD * np.sin(a), b, ROD * np.sin(a) + 2 * CRANK * np.cos(b), ROD * np.cos(a)])


def main(gui: bool = False) -> float:
    """Move for 0.6 s; return the largest error of a coordinate [m or rad]."""
    with loaded("triple_slider_crank", gui, dt=5e-4, integrator="rk4") as system:
        start = system.evaluate().energy
        play(system, DURATION, gui)
        error = float(np.abs(system.q - reference()).max())
        energy = system.evaluate().energy
    print(f"coordinate error {error:.1e}, energy {start:.6f} -> {energy:.6f} J")
    return error


if __name__ == "__main__":
    run(main, __doc__)
