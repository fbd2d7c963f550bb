"""Motors and loads of the two arms of demos/lift.py."""

import numpy as np

import bulletbridge as bb

MASS, MU, G = 2.0, 0.4, 9.81
SHARE = 0.4  # of the weight that the right arm carries
THRESHOLD = (1 - SHARE) * MASS * G / MU  # [N] on each pad
REACH, ARM = 0.6, 2 * 0.8 * 0.3 + 1.0 * 0.6  # of the bars [m]; of an arm, mass times arm [kg m]
SIDES = ("left", "right")
LOW, HIGH = 0.34, -0.2  # [rad] of the cranks
GRIPPED, LIFTED, HELD = 0.5, 2.0, 3.0  # until when [s]


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
