"""An arm slides its hand along the edge of a table, pressed on its top and against its side.

The arm is a parallelogram on a cross slide. The hand comes down, leans on the edge, is drawn along
over a gap, a step of half a millimetre down and aside, and off the end, while the crank's torque is
what makes the load on the top follow a wanted force by virtual work, friction and weight included.
"""

import math
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pybullet
from _drawn import plotted, run
from _show import play, window
from numpy.typing import NDArray

import bulletbridge as bb

Array = NDArray[np.float64]
MODEL = Path(__file__).parent / "edge" / "edge.loops.yaml"
MU, G, DT = 0.3, 9.81, 1 / 240  # [m/s²], [s]
REACH, ARM = 0.3, (0.3 + 0.3) * 0.15 + 0.5 * 0.3  # of the bars [m]; mass times arm [kg m]
LEAN, SPEED, DOWN = 12.0, 0.3, 0.4  # on the side [N]; along the edge [m/s], from when on [s]
SLIDING, END = 0.8, 3.2  # from when on it slides steadily, until when it runs [s]
STEP, OFF = 1.33, 2.67  # when the hand leaves the near table, and the far one [s]


class Measured(NamedTuple):
    """Largest errors while the hand slides, but for the step."""

    top: float  # of the load on the top, over what is wanted [1]
    side: float  # of the load on the side, over the force of its drive [1]
    friction: float  # of friction over load on each face, over MU [1]
    drawn: float  # of the force that draws the hand along, over friction [1]
    gap: float  # of the loop, all the way [m]
    after: float  # load once the hand is off the table [N]


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


def measure(gui: bool = False, plot: Path | None = None) -> Measured:
    """Come down, slide, cross the gap, leave the table."""
    with window(gui, str(MODEL)) as client:
        model = bb.load(MODEL, client, dt=DT, contacts=True, limits=True)
        system = model.system
        for body in model.ids.values():
            for k in range(-1, pybullet.getNumJoints(body, client)):
                pybullet.changeDynamics(body, k, lateralFriction=MU**0.5, physicsClientId=client)
        rows, gap = list[tuple[float, ...]](), 0.0
        while system.t < END - DT / 2:
            drive(system)
            play(system, DT, gui)
            top, side = loads(system)
            found = top[2], side[1], math.hypot(*top[:2]), math.hypot(side[0], side[2])
            drawn = system.joint_loads["arm/slide"].motor
            rows.append((system.t, *found, drawn, wanted(system.t)))
            gap = max(gap, system.evaluate().largest("kept_metres"))
    t, top, side, rubbed, scraped, drawn, asked = np.array(rows).T
    plotted(plot, "load [N]", {"top": (t, top), "wanted": (t, asked), "side": (t, -side)})
    on, off = (t > SLIDING) & (t < OFF - 0.1) & (np.abs(t - STEP - 0.1) > 0.15), t > OFF + 0.1

    def error(x: Array, right: Array) -> float:
        return float(np.abs(x[on] / right[on] - 1).max())

    friction = max(error(rubbed, MU * top), error(scraped, -MU * side))
    return Measured(
        error(top, asked),
        error(-side, np.full_like(side, LEAN)),
        friction,
        error(drawn, rubbed + scraped),
        gap,
        float(max(np.abs(top[off]).max(), np.abs(side[off]).max())),
    )


def main(gui: bool = False, plot: Path | None = None) -> float:
    """Slide along; return the largest relative error of the load on the top."""
    m = measure(gui, plot)
    print(
        f"load {m.top:.0e} off the wanted one, on the side {m.side:.0e}, friction {m.friction:.0e}"
        f" off Coulomb, drawn by {m.drawn:.0e} off that, loop within {m.gap:.0e} m, off the table"
        f" {m.after:.0e} N"
    )
    return m.top


if __name__ == "__main__":
    run(main, __doc__)
