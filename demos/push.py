"""A five-bar pushes a box that it does not touch to where it is wanted, by a plan of iLQR.

No small change of its torques moves the box, so that to exact derivatives there is nothing to gain.
With smooth contacts, which push at a distance, the plan finds the box; smoothing goes down from
plan to plan. Its gains then push with ideal contacts: the box has to slide, and to stop.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pybullet
from _show import play, run, show, window

import bulletbridge as bb

MODEL = Path(__file__).with_name("push.loops.yaml")
MOTORS = "arm/motor_left", "arm/motor_right"
DT, EVERY, KNOTS, TORQUE, MU = 0.02, 2, 25, 3.0, 0.5  # [s], of 40 ms each, [N m]
WAY = 0.05, 0.15  # [m] to the right and away
SMOOTHING = 3e-3, 3e-4  # [J]


class Measured(NamedTuple):
    """How it was pushed."""

    error: float  # where the box ends, of its way
    untouched: float  # how far it is moved by the plan without smoothing [m]
    speed: float  # of the box at the end [m/s]
    plan: bb.Plan


def costs(system: bb.System) -> tuple[bb.QuadraticCost, bb.QuadraticCost]:
    """Effort, and the box away from its place, turned or moving at the end."""
    goal, box = np.array(system.q), system.mechanism.joint("box/base").q.start
    goal[box : box + 2] += WAY
    effort: dict[str, float] = dict.fromkeys(MOTORS, 1e-2)
    slow = {f"{name}.rate": 1e-3 for name in MOTORS}
    place = {"box/base[2]": 1.0, "box/base[3]": 100.0, "box/base[4]": 100.0}
    rest = {"box/base[2].rate": 0.02, "box/base[3].rate": 1.0, "box/base[4].rate": 1.0}
    running = bb.QuadraticCost(system.mechanism, goal, Q=slow, R=effort)
    return running, bb.QuadraticCost(system.mechanism, goal, Q=place | rest)


def planned(system: bb.System, controls: dict[str, np.ndarray], smoothing: float) -> bb.Plan:
    """Torques that push it there with contacts that are so smooth [J]."""
    return bb.ilqr(
        system,
        controls,
        *costs(system),
        bounds=dict.fromkeys(MOTORS, TORQUE),
        every=EVERY,
        smoothing=smoothing,
        until=bb.Until(tolerance=1e-2, iterations=30),
    )


def moved(system: bb.System, plan: bb.Plan, gui: bool = False) -> tuple[np.ndarray, float]:
    """How far a plan moves the box (2,) [m], and its speed then, with ideal contacts."""
    box = system.mechanism.joint("box/base")
    start, place = system.save(), np.array(system.q[box.q][:2])
    for _ in plan.tau:
        system.tau[:] = plan(system.q, system.v, system.t)
        play(system, DT, gui)
    found = system.q[box.q][:2] - place, float(np.linalg.norm(system.v[box.v]))
    system.restore(start)
    return found


def measure(gui: bool = False) -> Measured:
    """Plan, and push."""
    with window(gui, str(MODEL)) as client:
        model = bb.load(MODEL, client, dt=DT, contacts=True)
        system = model.system
        for body in range(pybullet.getNumBodies(client)):
            for link in range(-1, pybullet.getNumJoints(body, client)):
                pybullet.changeDynamics(body, link, lateralFriction=MU**0.5, physicsClientId=client)
        show(system, gui)
        plan = planned(system, {name: np.zeros(KNOTS) for name in MOTORS}, 0.0)
        untouched, _ = moved(system, plan)
        for smoothing in SMOOTHING:
            plan = planned(system, plan.controls, smoothing)
        way, speed = moved(system, plan, gui)
    error = float(np.linalg.norm(way - WAY) / np.linalg.norm(WAY))
    return Measured(error, float(np.linalg.norm(untouched)), speed, plan)


def main(gui: bool = False) -> float:
    """Push; return how far the box ends from where it is wanted, of its way."""
    m = measure(gui)
    print(
        f"the box ends {m.error:.1e} of its way off, at {m.speed:.2g} m/s; without smoothing it is"
        f" moved by {m.untouched:.0e} m"
    )
    return m.error


if __name__ == "__main__":
    run(main, __doc__)
