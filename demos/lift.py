"""Two arms lift a box by friction alone, and it slips when they squeeze less than its weight asks.

Each arm is a parallelogram with a slider that squeezes by the force limit of its motor. Two pads
carry 2 mu N, so the box of mass m slips below N = m g / (2 mu). How they share the weight before is
not determined by statics, as the plot shows; the same holds for the corners of each pad.
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
GRIPPED, LIFTED, HELD = 0.5, 2.0, 3.0  # until when [s]
MODEL = pathlib.Path(__file__).parent / "lift.loops.yaml"


class Measured(NamedTuple):
    """What became of the box."""

    threshold: float  # squeeze at which it slips, against theory [1]
    creep: float  # of the held box, squeezed with 1.05 thresholds [m]
    gap: float  # largest of the loops [m]
    load: float  # that both pads carry while they hold, against the weight [N]


def drive(system: bb.System, t: float, squeeze: float) -> None:
    """Motors: cranks follow a smooth path, sliders squeeze with so many thresholds."""
    share = np.clip((t - GRIPPED) / (LIFTED - 0.5 - GRIPPED), 0.0, 1.0)
    crank = LOW + (HIGH - LOW) * share**2 * (3 - 2 * share)
    for side, sign in SIDES.items():
        system.motors.set(f"arms/{side}_crank", force=500.0, position=sign * crank)
        system.motors.set(f"arms/{side}_squeeze", force=squeeze * THRESHOLD, velocity=1.0)


def loads(system: bb.System) -> list[float]:
    """What each pad carries of the box [N]."""
    up = {side: 0.0 for side in SIDES}
    for contact in system.contacts():
        for side in SIDES:
            if f"{side}_pad" in contact.a + contact.b:
                up[side] += contact.force[2] * (1 if contact.b == "box/box" else -1)
    return list(up.values())


def find_threshold(system: bb.System, gui: bool) -> float:
    """Squeeze [thresholds] below which the held box slips, by bisection."""
    q, rest, speed = system.q, np.zeros(system.mechanism.nv), system.mechanism.joint("box/base").v
    low, high = 0.98, 1.02
    while high - low > 2e-5:
        middle = (low + high) / 2
        system.set_state(q, rest, HELD)
        drive(system, HELD, middle)
        play(system, 0.1, gui)
        slips = system.v[speed][5] < -1e-6  # 1e-5 of g for 0.1 s is ten times that
        low, high = (middle, high) if slips else (low, middle)
    return (low + high) / 2


def measure(gui: bool = False, plot: Path | None = None) -> Measured:
    """Grip, lift, hold, and let slip."""
    with window(gui, str(MODEL)) as client:
        model = bb.load(MODEL, client, dt=DT, contacts=True)
        system = model.system
        for body, friction in zip(model.ids.values(), (1.0, MU), strict=True):
            for k in range(-1, pybullet.getNumJoints(body, client)):
                pybullet.changeDynamics(body, k, lateralFriction=friction, physicsClientId=client)
        height = system.mechanism.joint("box/base").q.start + 2
        rows, gap = list[list[float]](), 0.0
        while system.t < HELD - DT / 2:
            drive(system, system.t, 2.0 if system.t < LIFTED else 1.05)
            play(system, DT, gui)
            rows.append([system.t, system.q[height], *loads(system)])
            gap = max(gap, system.evaluate().largest("kept_metres"))
        t, z, *carried = np.array(rows).T
        held = t > HELD - 0.5
        found = find_threshold(system, gui)
        lines = {side: (t, load) for side, load in zip(SIDES, carried, strict=True)}
        plotted(plot, "vertical load [N]", lines)
    weight = np.abs(sum(carried) - MASS * G)[held].max()
    return Measured(abs(found - 1), float(np.ptp(z[held])), gap, float(weight))


def main(gui: bool = False, plot: Path | None = None) -> float:
    """Lift; return the relative error of the squeeze at which the box slips."""
    m = measure(gui, plot)
    print(
        f"slips at a squeeze {m.threshold:.0e} off m g / (2 mu), creeps {m.creep:.0e} m in half a"
        f" second before, load {m.load:.0e} N off the weight, loops within {m.gap:.0e} m"
    )
    return m.threshold


if __name__ == "__main__":
    run(main, __doc__)
