"""Two arms lift a box by friction alone, and it slips when they squeeze less than its weight asks.

Each arm is a parallelogram with a slider that squeezes by the force limit of its motor. Two pads
carry 2 mu N, so the box of mass m slips below N = m g / (2 mu), and then falls at g - 2 mu N / m.
"""

import pathlib
from typing import NamedTuple

import numpy as np
import pybullet
from _drawn import Path, plotted, run
from _show import play, window

import bulletbridge as bb

MASS, MU, G, DT = 2.0, 0.4, 9.81, 1 / 240
THRESHOLD = MASS * G / (2 * MU)  # [N] on each pad
SIDES = {"left": 1.0, "right": -1.0}
LOW, HIGH = 0.34, -0.2  # [rad] of the cranks
GRIPPED, LIFTED, HELD, SLIPPED = 0.5, 2.0, 3.0, 3.25  # until when [s]
MODEL = pathlib.Path(__file__).parent / "lift.loops.yaml"


class Measured(NamedTuple):
    """What became of the box."""

    fall: float  # acceleration of the slip against theory [m/s²]
    creep: float  # of the held box, squeezed with 1.05 thresholds [m]
    gap: float  # largest of the loops [m]
    load: float  # that both pads carry while they hold, against the weight [N]


def drive(system: bb.System, t: float) -> None:
    """Motors: cranks follow a smooth path, sliders squeeze."""
    share = np.clip((t - GRIPPED) / (LIFTED - 0.3 - GRIPPED), 0.0, 1.0)
    crank = LOW + (HIGH - LOW) * share**2 * (3 - 2 * share)
    squeeze = 2.0 if t < LIFTED else 1.05 if t < HELD else 0.95
    for side, sign in SIDES.items():
        system.motors.set(f"arms/{side}_crank", force=500.0, position=sign * crank)
        system.motors.set(f"arms/{side}_squeeze", force=squeeze * THRESHOLD, velocity=0.05)


def measure(gui: bool = False, plot: Path | None = None) -> Measured:
    """Grip, lift, hold, and let slip."""
    with window(gui, str(MODEL)) as client:
        model = bb.load(MODEL, client, dt=DT, contacts=True)
        system = model.system
        for body, friction in zip(model.ids.values(), (1.0, MU), strict=True):
            for k in range(-1, pybullet.getNumJoints(body, client)):
                pybullet.changeDynamics(body, k, lateralFriction=friction, physicsClientId=client)
        joint = system.mechanism.joint("box/base")
        height, speed = joint.q.start + 2, joint.v
        times, loads, heights, gap = list[float](), list[list[float]](), list[float](), 0.0
        held = dropped = 0.0
        while system.t < SLIPPED - DT / 2:
            drive(system, system.t + DT / 2)
            play(system, DT, gui)
            up = {side: 0.0 for side in SIDES}
            for contact in system.contacts():
                for side in SIDES:
                    if f"{side}_pad" in contact.a + contact.b:
                        up[side] += contact.force[2] * (1 if contact.b == "box/box" else -1)
            times.append(system.t)
            loads.append(list(up.values()))
            heights.append(float(system.q[height]))
            gap = max(gap, system.evaluate().largest("kept_metres"))
            if abs(system.t - HELD) < DT / 2:
                held, dropped = system.t, float(system.v[speed][5])
        slope = (system.v[speed][5] - dropped) / (system.t - held)
        sought = -(G - 2 * MU * 0.95 * THRESHOLD / MASS)
        rested, end = (int(np.searchsorted(times, t - DT / 2)) for t in (LIFTED + 0.1, HELD))
        load = np.array(loads)
        lines = {side: (np.array(times), load[:, k]) for k, side in enumerate(SIDES)}
        plotted(plot, "vertical load [N]", lines)
    return Measured(
        abs(float(slope) - sought),
        float(np.ptp(heights[rested:end])),
        gap,
        float(np.abs(load[rested:end].sum(axis=1) - MASS * G).max()),
    )


def main(gui: bool = False, plot: Path | None = None) -> float:
    """Lift; return the error of the acceleration with which the box slips [m/s²]."""
    m = measure(gui, plot)
    print(
        f"slips at an acceleration {m.fall:.0e} m/s² off, creeps {m.creep:.0e} m in a second"
        f" before, load {m.load:.0e} N off the weight, loops within {m.gap:.0e} m"
    )
    return m.fall


if __name__ == "__main__":
    run(main, __doc__)
