"""Crank-rocker falling from rest, checked against an equation of motion in one coordinate.

The crank angle alone decides where every bar is, so the linkage is one ordinary differential
equation: kinetic energy m(x) x'² / 2 with the bars' closed-form positions, integrated by scipy.
"""

import argparse
from pathlib import Path

import numpy as np
from _show import loaded, play
from numpy.typing import NDArray
from scipy.integrate import solve_ivp
from scipy.interpolate import make_interp_spline

import bulletbridge as bb

BARS, GROUND, DENSITY, GRAVITY = (0.4, 0.9, 0.7), 1.0, 2.0, 9.81  # [m], [m], [kg/m], [m/s²]
START, DURATION = np.pi / 3, 2.0  # [rad], [s]
INERTIA_OF_BARS = tuple(  # square bars of 0.04 m: m (l² + 0.04²) / 12, as in the URDF
    DENSITY * length * (length**2 + 0.04**2) / 12 for length in BARS
)


def centres_and_angles(x: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Centres (3, 2) [m] and directions (3,) [rad] of crank, coupler, rocker at a crank angle."""
    crank, coupler, rocker = BARS
    elbow = crank * np.array([np.cos(x), np.sin(x)])
    span = np.array([GROUND, 0.0]) - elbow
    distance = float(np.hypot(*span))
    inner = np.arccos((coupler**2 + distance**2 - rocker**2) / (2 * coupler * distance))
    direction = np.arctan2(span[1], span[0]) + inner  # the open branch
    knee = elbow + coupler * np.array([np.cos(direction), np.sin(direction)])
    down = np.array([GROUND, 0.0]) - knee
    angles = np.array([x, direction, np.arctan2(down[1], down[0])])
    return np.array([elbow / 2, (elbow + knee) / 2, knee + down / 2]), angles


def reference() -> float:
    """Crank angle after DURATION [rad]."""
    grid = np.linspace(START - 2 * np.pi, START + 0.5, 1201)
    positions = [centres_and_angles(x) for x in grid]
    centres = make_interp_spline(grid, [c for c, _ in positions], k=7)
    angles = make_interp_spline(grid, np.unwrap([a for _, a in positions], axis=0), k=7)
    masses, inertias = DENSITY * np.array(BARS), np.array(INERTIA_OF_BARS)

    def rate(_t: float, y: NDArray[np.float64]) -> list[float]:
        x, speed = y
        c1, c2, a1, a2 = centres(x, 1), centres(x, 2), angles(x, 1), angles(x, 2)
        mass = masses @ (c1**2).sum(axis=1) + inertias @ a1**2
        half_slope = masses @ (c1 * c2).sum(axis=1) + inertias @ (a1 * a2)
        return [speed, float(-(half_slope * speed**2 + GRAVITY * masses @ c1[:, 1]) / mass)]

    run = solve_ivp(rate, (0.0, DURATION), [START, 0.0], method="DOP853", rtol=1e-11, atol=1e-11)
    return float(run.y[0, -1])


def main(gui: bool = False, plot: Path | None = None) -> float:
    """Fall for two seconds; return the error of the crank angle [rad]."""
    with loaded("four_bar", gui, dt=1e-3, integrator="rk4") as system:
        if gui:
            play(system, DURATION, gui)
        else:
            recording = system.rollout(round(DURATION / system.dt))
            if plot is not None:
                bb.plot(recording).savefig(plot)
        error = abs(float(system.q[0]) - reference())
        gap = system.evaluate().gaps[0].metres
    print(f"crank angle error {error:.1e} rad after {DURATION:g} s, gap {gap:.0e} m")
    return error


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gui", action="store_true", help="watch it in Bullet's window")
    parser.add_argument("--plot", type=Path, help="save joint positions and rates as a picture")
    options = parser.parse_args()
    main(options.gui, options.plot)
