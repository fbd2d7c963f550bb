"""Two arms lift a box by friction alone, and it slips when they squeeze less than its weight asks.

Each arm is a parallelogram with a slider that squeezes by the force limit of its motor. The left
crank follows a path, the right one pushes with what carries its arm and a chosen share of the box;
two rigid cranks would leave the sharing undetermined. So the left pad slips first, below a squeeze
of (1 - share) m g / mu.
"""

import pathlib
from typing import NamedTuple

import numpy as np
import pybullet
from _drawn import Path, plotted, run
from _show import play, window

import bulletbridge as bb

MODEL = pathlib.Path(__file__).parent / "lift.loops.yaml"
MASS, MU, G, DT = 2.0, 0.4, 9.81, 1 / 240  # [kg], [m/s²], [s]
SHARE = 0.4  # of the weight that the right arm carries
THRESHOLD = (1 - SHARE) * MASS * G / MU  # [N] on each pad
REACH, ARM = 0.6, 2 * 0.8 * 0.3 + 1.0 * 0.6  # of the bars [m]; of an arm, mass times arm [kg m]
SIDES = ("left", "right")
LOW, HIGH = 0.34, -0.2  # [rad] of the cranks
GRIPPED, LIFTED, HELD = 0.5, 2.0, 3.0  # until when [s]


class Measured(NamedTuple):
    """What became of the box."""

    threshold: float  # squeeze at which it slips, against theory [1]
    creep: float  # of the held box, squeezed with 1.05 thresholds [m]
    gap: float  # largest of the loops [m]
    load: float  # of the right pad while it holds, against its share of the weight [N]


def drive(system: bb.System, t: float, squeeze: float) -> None:
    """Motors: the left crank leads, the right one carries its share, sliders squeeze."""
    part = np.clip((t - GRIPPED) / (LIFTED - 0.5 - GRIPPED), 0.0, 1.0)
    crank = LOW + (HIGH - LOW) * part**2 * (3 - 2 * part)
    system.motors.set("arms/left_crank", force=500.0, position=crank)
    if t < GRIPPED:
        system.motors.set("arms/right_crank", force=500.0, position=-crank)
    else:
        angle = system.q[system.mechanism.joint("arms/right_crank").q][0]
        push = G * np.cos(angle) * (ARM + SHARE * MASS * REACH)
        push = float(push - squeeze * THRESHOLD * REACH * np.sin(angle))
        system.motors.set("arms/right_crank", force=push, velocity=10.0)
    for side in SIDES:
        system.motors.set(f"arms/{side}_squeeze", force=squeeze * THRESHOLD, velocity=1.0)


def loads(system: bb.System) -> list[float]:
    """What each pad carries of the box [N]."""
    up = dict.fromkeys(SIDES, 0.0)
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
            rows.append([system.t, float(system.q[height]), *loads(system)])
            gap = max(gap, system.evaluate().largest("kept_metres"))
        t, z, *carried = np.array(rows).T
        held = t > HELD - 0.5
        found = find_threshold(system, gui)
        lines = {side: (t, load) for side, load in zip(SIDES, carried, strict=True)}
        plotted(plot, "vertical load [N]", lines)
    load = np.abs(carried[1] - SHARE * MASS * G)[held].max()
    return Measured(abs(found - 1), float(np.ptp(z[held])), gap, float(load))


def main(gui: bool = False, plot: Path | None = None) -> float:
    """Lift; return the relative error of the squeeze at which the box slips."""
    m = measure(gui, plot)
    print(
        f"slips at a squeeze {m.threshold:.0e} off theory, creeps {m.creep:.0e} m in half a second"
        f" before, right load {m.load:.0e} N off its share, loops within {m.gap:.0e} m"
    )
    return m.threshold


if __name__ == "__main__":
    run(main, __doc__)
