"""A two-finger gripper with true loops closes on a bolt, lifts it and holds it by friction.

The hand hangs on a slider and has one motor; gears couple its fingers. How hard the pads press is
checked by the principle of virtual work, the torque at which the bolt slips by Coulomb's law
besides. ``--hold 60`` holds for a minute, in Bullet alone too.
"""

import argparse
import math
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pybullet
from _drawn import plotted
from _grip_in_bullet import MU, Array, G, creep_in_bullet, links_of, set_friction
from _show import play, window

import bulletbridge as bb

MODEL = Path(__file__).parent / "grip" / "grip.loops.yaml"
DT, TORQUE, LIFT = 1 / 240, 2.0, 0.1  # [s], [N m], [m]
CLOSED, LIFTED, SETTLED = 0.6, 1.6, 2.1  # until when [s]


class Measured(NamedTuple):
    """What the gripper did."""

    force: float  # of the pads, against virtual work [1]
    threshold: float  # torque at which the bolt slips, against theory [1]
    tilt: float  # largest of a finger, closing and lifting [rad]
    gap: float  # largest of the loops [m]
    creep: float  # of the bolt while it is held [m]
    native: tuple[float, float]  # the same of Bullet alone from there, and its gap [m]


def leverage(hand: int, load: float, client: int) -> tuple[float, float]:
    """Torque [N m] that holds the links and a load [N] at the pads, and by how much a pad closes.

    The principle of virtual work, at Bullet's link states: what turns about a pin goes up by the
    horizontal distance from it, fingers go where their cranks go.

    Returns:
        Torque of the weights on the driver, and way of each pad per angle [m/rad].
    """
    names, torque, closing = links_of(hand, client), 0.0, 0.0
    for side, sign in (("left", 1), ("right", -1)):

        def state(name: str, side: str = side) -> tuple[float, Array, Array]:
            k = names[f"{side}_{name}"]
            found = pybullet.getLinkState(
                hand, k, computeForwardKinematics=True, physicsClientId=client
            )
            mass: float = pybullet.getDynamicsInfo(hand, k, client)[0]
            return mass, np.array(found[0]), np.array(found[4])

        finger, _, tip = state("finger")
        crank = tip - state("driver")[2]
        closing -= crank[2] / 2
        torque += sign * (finger * G + load / 2) * crank[0]
        for name, about in (("driver",) * 2, ("coupler", "driver"), ("spring_link",) * 2):
            mass, centre, _ = state(name)
            torque += sign * mass * G * (centre - state(about)[2])[0]
    return float(torque), float(closing)


def press(system: bb.System) -> tuple[float, float]:
    """Horizontal forces of the left and right pad on the bolt [N]."""
    found = {"left": 0.0, "right": 0.0}
    for contact in system.contacts():
        for side, sign in (("left", 1.0), ("right", -1.0)):
            if "bolt/bolt" in (contact.a, contact.b) and side in contact.a + contact.b:
                on_b = sign if contact.b == "bolt/bolt" else -sign
                found[side] += on_b * float(contact.force[0])
    return found["left"], found["right"]


def tilt(hand: int, client: int) -> float:
    """Largest angle of a finger against the hand [rad]."""
    base = np.reshape(
        pybullet.getMatrixFromQuaternion(pybullet.getBasePositionAndOrientation(hand, client)[1]),
        (3, 3),
    )
    names, angles = links_of(hand, client), list[float]()
    for side, sign in (("left", 1.0), ("right", -1.0)):
        turn = pybullet.getLinkState(hand, names[f"{side}_finger"], physicsClientId=client)[5]
        R = base.T @ np.reshape(pybullet.getMatrixFromQuaternion(turn), (3, 3))
        angles.append(abs(math.atan2(sign * R[0, 2], R[2, 2])))
    return max(angles)


def drive(system: bb.System, torque: float) -> None:
    """Close with a torque, lift when closed."""
    part = np.clip((system.t - CLOSED) / (LIFTED - CLOSED), 0.0, 1.0)
    up = float(LIFT * part**2 * (3 - 2 * part))
    system.motors.set("hand/left_driver", force=torque, velocity=1.0)
    system.motors.set("lift", force=100.0, position=up, position_gain=0.5)


def find_threshold(system: bb.System, least: float, gui: bool) -> float:
    """Torque [least] below which the held bolt slips, by bisection."""
    q, t, rest = system.q, system.t, np.zeros(system.mechanism.nv)
    low, high, speed = 0.98, 1.02, system.mechanism.joint("bolt/base").v
    while high - low > 1e-4:
        middle = (low + high) / 2
        system.set_state(q, rest, t)
        drive(system, middle * least)
        play(system, 0.1, gui)
        slips = system.v[speed][5] < -1e-5  # 1e-4 of g for 0.1 s is ten times that
        low, high = (middle, high) if slips else (low, middle)
    return (low + high) / 2


def measure(gui: bool = False, plot: Path | None = None, hold: float = 1.0) -> Measured:
    """Close, lift, hold, and let slip."""
    with window(gui, str(MODEL)) as client:
        model = bb.load(MODEL, client, dt=DT, contacts=True)
        system, hand = model.system, model.ids["hand"]
        set_friction(client)
        rows, gap, tilted = list[tuple[float, ...]](), 0.0, 0.0
        while system.t < SETTLED - DT / 2:
            drive(system, TORQUE)
            play(system, DT, gui)
            rows.append((system.t, *press(system)))
            gap = max(gap, system.evaluate().largest("kept_metres"))
            tilted = max(tilted, tilt(hand, client))
        bolt = system.mechanism.joint("bolt/base").q
        weight = float(system.mechanism.bodies["mass"][system.mechanism.link("bolt/bolt").body]) * G
        torque, closing = leverage(hand, weight, client)
        force = max(abs(side * 2 * closing / (TORQUE - torque) - 1) for side in press(system))
        native, before = creep_in_bullet(model, TORQUE, hold), system.q[bolt]
        play(system, hold, gui)
        gap = max(gap, system.evaluate().largest("kept_metres"))
        creep = float(np.linalg.norm((system.q[bolt] - before)[:3]))
        found = find_threshold(system, torque + weight / MU * closing, gui)
        t, left, right = np.array(rows).T
        plotted(plot, "force of a pad [N]", {"left": (t, left), "right": (t, right)})
    return Measured(force, abs(found - 1), tilted, gap, creep, native)


def main(gui: bool = False, plot: Path | None = None, hold: float = 1.0) -> float:
    """Grasp, lift and hold; return the relative error of the torque at which the bolt slips."""
    m = measure(gui, plot, hold)
    print(
        f"pads press {m.force:.0e} off virtual work, slips {m.threshold:.0e} off Coulomb, fingers"
        f" tilt {m.tilt:.0e} rad; creep in {hold:g} s {m.creep:.0e} m, loops within {m.gap:.0e} m,"
        f" in Bullet alone {m.native[0]:.0e} m and {m.native[1]:.0e} m"
    )
    return m.threshold


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gui", action="store_true", help="watch it in Bullet's window")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="save a plot")
    parser.add_argument("--hold", type=float, default=1.0, metavar="SECONDS", help="1 unless given")
    main(**vars(parser.parse_args()))
