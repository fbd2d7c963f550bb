"""Drives and loads of the arm of demos/edge.py."""

import math

import numpy as np
from numpy.typing import NDArray

import bulletbridge as bb

Array = NDArray[np.float64]
MU, G, DT = 0.3, 9.81, 1 / 240  # [m/s²], [s]
REACH, ARM = 0.3, (0.3 + 0.3) * 0.15 + 0.5 * 0.3  # of the bars [m]; mass times arm [kg m]
LEAN, SPEED, DOWN = 12.0, 0.3, 0.4  # on the side [N]; along the edge [m/s], from when on [s]


def wanted(t: float) -> float:
    """Load on the top [N]."""
    return 25.0 + 8.0 * math.sin(2 * math.pi * t)


def drive(system: bb.System) -> None:
    """Come down, then draw along; the crank presses by its torque."""
    t, angle = system.t, float(system.q[system.mechanism.joint("arm/crank").q][0])
    friction = MU * (wanted(t + DT) + LEAN) if t > DOWN else 0.0
    torque = wanted(t + DT) * REACH * math.cos(angle) - friction * REACH * math.sin(angle)
    torque -= ARM * G * math.cos(angle)
    system.motors.set("arm/crank", force=torque, velocity=0.1 if t < DOWN else 1.0)
    system.motors.set("arm/press", force=LEAN, velocity=0.02)
    system.motors.set("arm/slide", force=1000.0, velocity=SPEED if t >= DOWN - DT / 2 else 0.0)


def loads(system: bb.System) -> tuple[Array, Array]:
    """Forces of the table's top and side on the hand, (3,) each [N]."""
    top, side = np.zeros(3), np.zeros(3)
    for contact in system.contacts():
        force = contact.force if contact.b == "arm/hand" else -contact.force
        on = top if abs(contact.normal[2]) > abs(contact.normal[1]) else side
        on += force
    return top, side
