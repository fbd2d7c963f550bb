"""Triple slider-crank of Haug and Pavesic under its torque, against two coordinates.

Two massless rods are distance constraints. All positions follow from the rod's inclination a and
the crank angle b: q1 = 2 sin a, q4 = 2 cos a, q3 = q1 + 2 cos b. That gives two equations of
motion, which scipy integrates.

The torque -K b / (pi/2 - |b|)² is stiff and nonlinear, so it goes through ``System.tau``, where it
is held for a step. That costs RK4 its order: taken at the start of the step the torque leaves order
one, taken at the predicted middle, as here, order two. Without torque (K = 0) order four is back.
"""

import numpy as np
from _show import loaded, play, run
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

Array = NDArray[np.float64]

MASSES = np.array(
    [2.0 + 10.0, 10.0, 2.0, 2.0]
)  # slider 1 with crank, crank's inertia, sliders 3, 4
ROD, CRANK, K = 2.0, 1.0, 100.0  # [m], [m], [N m]
SLIDER_SPEED, CRANK_SPEED, DURATION = 6.0, 2.0, 0.5  # [m/s], [rad/s], [s]


def torque(b: float, k: float) -> float:
    """Torque [N m] on the crank at an angle [rad]; it keeps away from the singular pi/2."""
    return -k * b / (np.pi / 2 - abs(b)) ** 2


def reference(k: float = K) -> Array:
    """Slider 1, crank, slider 3, slider 4 after DURATION."""

    def rate(_t: float, y: Array) -> Array:
        a, b, da, db = y
        F = np.array(  # rates of q1, q2, q3, q4 per rates of a, b
            [
                [ROD * np.cos(a), 0],
                [0, 1],
                [ROD * np.cos(a), -2 * CRANK * np.sin(b)],
                [-ROD * np.sin(a), 0],
            ]
        )
        lift = -ROD * np.sin(a) * da**2
        turn = -2 * CRANK * np.cos(b) * db**2
        curvature = np.array([lift, 0, lift + turn, -ROD * np.cos(a) * da**2])
        force = F.T @ ([0, torque(b, k), 0, 0] - MASSES * curvature)
        return np.concatenate([[da, db], np.linalg.solve(F.T @ (MASSES[:, None] * F), force)])

    start = [0.0, 0.0, SLIDER_SPEED / ROD, CRANK_SPEED]
    a, b = solve_ivp(rate, (0, DURATION), start, method="DOP853", rtol=1e-12, atol=1e-12).y[:2, -1]
    return np.array([ROD * np.sin(a), b, ROD * np.sin(a) + 2 * CRANK * np.cos(b), ROD * np.cos(a)])


def error(dt: float, k: float = K, gui: bool = False) -> float:
    """Largest error of a coordinate after DURATION [m or rad]."""
    with loaded("triple_slider_crank", gui, dt=dt, integrator="rk4") as system:
        crank = system.mechanism.joint("crank").v.start
        for _ in range(round(DURATION / dt)):
            middle = system.q[crank] + dt / 2 * system.v[crank]
            system.tau[crank] = torque(float(middle), k)
            play(system, dt, gui)
    return float(np.abs(system.q - reference(k)).max())


def main(gui: bool = False) -> float:
    """Move for half a second; return the order at which the error converges; 2 is exact."""
    coarse, fine = error(1e-3), error(5e-4, gui=gui)
    order = float(np.log2(coarse / fine))
    print(f"coordinates {fine:.1e} off, order {order:.2f}; {error(5e-4, k=0.0):.0e} without torque")
    return order


if __name__ == "__main__":
    run(main, __doc__)
