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

import bulletbridge as bb

Array = NDArray[np.float64]

BARS, GROUND, DENSITY, GRAVITY = (0.4, 0.9, 0.7), 1.0, 2.0, 9.81  # [m], [m], [kg/m], [m/s²]
START, DURATION = np.pi / 3, 2.0  # [rad], [s]
MASSES = DENSITY * np.array(BARS)  # [kg]
INERTIAS = MASSES * (np.array(BARS) ** 2 + 0.04**2) / 12  # square bars of 0.04 m, [kg m²]
TO_CENTRES = np.array([[0.5, 0, 0], [1, 0.5, 0], [1, 1, 0.5]])  # bars on the way to each centre


def angles(x: float) -> Array:
    """Directions (3,) of crank, coupler and rocker at a crank angle, all in [rad]."""
    crank, coupler, rocker = BARS
    span = np.array([GROUND - crank * np.cos(x), -crank * np.sin(x)])
    distance = float(np.hypot(*span))
    inner = np.arccos((coupler**2 + distance**2 - rocker**2) / (2 * coupler * distance))
    direction = np.arctan2(span[1], span[0]) + inner  # the open branch
    down = span - coupler * np.array([np.cos(direction), np.sin(direction)])
    return np.array([x, direction, np.arctan2(down[1], down[0])])


def rate(_t: float, y: Array) -> list[float]:
    """Rate and acceleration of the crank, from m(x) x'' + m'(x) x'² / 2 + U'(x) = 0."""
    x, speed = y
    turned = angles(x)
    along = np.array(BARS)[:, None] * np.column_stack([np.cos(turned), np.sin(turned)])
    across = np.column_stack([-along[:, 1], along[:, 0]])
    # the bars add up to the ground: their slopes by x to nothing, and so do their curvatures
    slope = np.array([1.0, *np.linalg.solve(across[1:].T, -across[0])])
    bend = np.array([0.0, *np.linalg.solve(across[1:].T, slope**2 @ along)])
    c1 = TO_CENTRES @ (slope[:, None] * across)
    c2 = TO_CENTRES @ (bend[:, None] * across - (slope**2)[:, None] * along)
    mass = MASSES @ (c1**2).sum(axis=1) + INERTIAS @ slope**2
    half_slope = MASSES @ (c1 * c2).sum(axis=1) + INERTIAS @ (slope * bend)
    return [speed, float(-(half_slope * speed**2 + GRAVITY * MASSES @ c1[:, 1]) / mass)]


def reference() -> float:
    """Crank angle after DURATION [rad]."""
    run = solve_ivp(rate, (0.0, DURATION), [START, 0.0], method="DOP853", rtol=1e-12, atol=1e-12)
    return float(run.y[0, -1])


def main(gui: bool = False, plot: Path | None = None, dt: float = 1e-3) -> float:
    """Fall for two seconds; return the error of the crank angle [rad]."""
    with loaded("four_bar", gui, dt=dt, integrator="rk4") as system:
        recording = play(system, DURATION, gui)
        gap = system.evaluate().largest("metres")
    if plot is not None:
        bb.plot(recording).savefig(plot)
    error = abs(float(recording.position("crank")[-1]) - reference())
    print(f"crank angle error {error:.1e} rad after {DURATION:g} s, gap {gap:.0e} m")
    return error


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gui", action="store_true", help="watch it in Bullet's window")
    parser.add_argument("--plot", type=Path, help="save joint positions and rates as a picture")
    options = parser.parse_args()
    main(options.gui, options.plot)
