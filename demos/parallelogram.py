"""Parallelogram linkage swinging under gravity, checked against a closed form.

Two equal cranks carry a coupler that never turns, so the linkage is a pendulum in disguise and its
period is an elliptic integral. The loop is closed in Python on a URDF that the program loads.
"""

from pathlib import Path

import numpy as np
import pybullet
from _show import play, run, window
from scipy.interpolate import CubicHermiteSpline
from scipy.special import ellipk

import bulletbridge as bb

URDF = Path(__file__).parents[1] / "urdf" / "parallelogram.urdf"
LENGTH, CRANK_MASS, COUPLER_MASS = 0.5, 1.0, 2.0  # [m], [kg] each, [kg]
SWING, GRAVITY, DT = 1.0, 9.81, 5e-3  # [rad], [m/s²], [s]


def exact_period() -> float:
    """Period of the equivalent physical pendulum at this amplitude, [s]."""
    inertia = (2 / 3 * CRANK_MASS + COUPLER_MASS) * LENGTH**2
    torque = (CRANK_MASS + COUPLER_MASS) * GRAVITY * LENGTH
    return 4 * float(ellipk(float(np.sin(SWING / 2)) ** 2)) * float(np.sqrt(inertia / torque))


def main(gui: bool = False, dt: float = DT) -> float:
    """Swing for more than one and a half periods; return the relative error of the period."""
    with window(gui, "parallelogram") as client:
        pybullet.setGravity(0, 0, -GRAVITY, client)
        flags = pybullet.URDF_USE_INERTIA_FROM_FILE
        robot = pybullet.loadURDF(str(URDF), useFixedBase=True, flags=flags, physicsClientId=client)
        tip, pin = bb.Frame("rocker", (LENGTH, 0, 0)), bb.Frame("ground", (1, 0, 0))
        loop = bb.LoopJoint("ground_pin", bb.JointModel.BALL, tip, pin)
        system = bb.attach(robot, [loop], client, dt=dt, integrator="rk4")
        system.assemble({"crank": SWING, "coupler": -SWING}, guess={"rocker": SWING})
        swing = play(system, 1.6 * exact_period(), gui)
        gap = system.evaluate().largest("metres")
    curve = CubicHermiteSpline(swing.t, swing.position("crank"), swing.rate("crank"))
    down, _, again = curve.roots(extrapolate=False)[:3]
    error = float(abs((again - down) / exact_period() - 1))
    print(f"period error {error:.1e} relative, gap {gap:.0e} m")
    return error


if __name__ == "__main__":
    run(main, __doc__)
