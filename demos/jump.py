"""Minitaur jumps off its feet on a guide: a push planned by iLQR, then flight.

Feet stand on hinges across the way, the body moves up and down a rail. The plan is of the system's
own steps, so that legs are closed all along it. What hinges cannot do is looked at afterwards: feet
have to push on the ground until they leave it. Then the hinges are let go, and the centre of mass
must fly as a stone does, whatever the legs do meanwhile.
"""

import warnings
from typing import NamedTuple

import numpy as np
import pybullet
from _show import play, put_floor, run, show, window

import bulletbridge as bb
from bulletbridge.errors import BulletBridgeWarning
from bulletbridge.models.bundled import find
from bulletbridge.models.loops_file import read_loops

LEGS = "front_left", "front_right", "back_left", "back_right"
G, DT, CROUCH, REACH = 9.81, 1 / 1000, -0.04, 0.05  # [m/s²], [s], [m] below and above the start
KNOTS, EVERY, TORQUE, SPEED = 20, 5, 3.5, 2.0  # of 5 ms each, [N m], [m/s]

BRAKE = 0.05  # [N m s]


class Measured(NamedTuple):
    """How it jumped."""

    error: float  # of the centre's height in flight, of the rise
    rise: float  # of the centre of mass in flight [m]
    least: float  # force of a foot on the ground while it pushes [N]
    gap: float  # largest of the plan [m]
    plan: bb.Plan


def tip(leg: str) -> bb.Frame:
    """Where a foot stands on."""
    return bb.Frame(f"lower_leg_{leg}R_link", (0, 0.005, 0.2))


def on_feet(client: int) -> bb.System:
    """Minitaur on its rail, feet on hinges, crouched."""
    pybullet.setGravity(0, 0, -G, physicsClientId=client)
    spec = read_loops(find("minitaur"))
    # inertias are Bullet's, of the shapes: those of the file are far too large
    robot = pybullet.loadURDF(str(spec.bodies[0].urdf), physicsClientId=client)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BulletBridgeWarning)
        legs = bb.attach(robot, spec.constraints, client, dt=DT)
    legs.assemble(spec.start_q)
    kinematics, world = legs.kinematics(), bb.Frame("world")
    rail = bb.LoopJoint("rail", bb.JointModel.PRISMATIC, world, bb.Frame("base_chassis_link"))
    joining = [*spec.constraints, rail]
    for leg in LEGS:
        across = bb.Frame("world", tuple(kinematics.point(tip(leg)).p_W), (-np.pi / 2, 0, 0))
        joining.append(bb.LoopJoint(f"foot_{leg}", bb.JointModel.POINT_ON_LINE, across, tip(leg)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BulletBridgeWarning)
        system = bb.attach(robot, joining, client, dt=DT)
    system.assemble(spec.start_q)
    system.assemble({"base": [0.0, 0.0, CROUCH, 0.0, 0.0, 0.0, 1.0]})
    return system


def planned(system: bb.System) -> bb.Plan:
    """Torques that throw it up at ``SPEED`` with little effort."""
    mechanism = system.mechanism
    motors = [name for name in mechanism.joints if name.startswith("motor")]
    q, v = np.array(system.q), np.zeros(mechanism.nv)
    base = mechanism.joint("base")
    q[base.q.start + 2], v[base.v.start + 5] = REACH, SPEED
    final = bb.QuadraticCost(mechanism, q, v, Q={"base[5]": 100.0, "base[5].rate": 10.0})
    effort = bb.QuadraticCost(mechanism, q, Q={}, R=dict.fromkeys(motors, 1e-3))
    held = bb.inverse_dynamics(system, np.zeros(mechanism.nv), actuated=motors)
    return bb.ilqr(
        system,
        {name: np.full(KNOTS, held[mechanism.joint(name).v][0]) for name in motors},
        effort,
        final,
        bounds=dict.fromkeys(motors, TORQUE),
        every=EVERY,
        until=bb.Until(tolerance=1e-6),
    )


def centre(system: bb.System) -> tuple[float, float]:
    """Height [m] of the centre of mass, and its speed upwards [m/s]."""
    kinematics, masses = system.kinematics(), system.mechanism.bodies["mass"]
    height = speed = 0.0
    for name, link in system.mechanism.links.items():
        body = system.mechanism.bodies[link.body]
        if link.body == 0 or masses[link.body] == 0.0 or np.any(link.p):
            continue
        point = kinematics.point(bb.Frame(name, tuple(link.R.T @ (body["com"] - link.p))))
        height += masses[link.body] * point.p_W[2]
        speed += masses[link.body] * (point.J @ system.v)[2]
    return float(height / masses.sum()), float(speed / masses.sum())


def measure(gui: bool = False) -> Measured:
    """Plan, push, fly to the top."""
    with window(gui, "minitaur") as client:
        system = on_feet(client)
        if gui:
            put_floor(
                client, min(float(system.kinematics().point(tip(leg)).p_W[2]) for leg in LEGS)
            )
        show(system, gui)
        plan, least = planned(system), np.inf
        for tau in plan.tau:
            system.tau[:] = tau
            loads = system.reactions()
            least = min(least, *(float(loads[f"foot_{leg}"].force[2]) for leg in LEGS))
            play(system, DT, gui)
        gap = max(
            system.evaluate(q, v).largest("kept_metres")
            for q, v in zip(plan.q, plan.v, strict=True)
        )
        for leg in LEGS:
            system.disconnect(f"foot_{leg}")
        start, speed = centre(system)
        path = list[float]()
        flight = np.arange(1, round(speed / G / DT) + 1) * DT  # to the top
        for _ in flight:
            system.tau[:] = 0.0
            for name in plan.controls:  # so that legs do not swing through where they lie straight
                system.tau[name] = -BRAKE * system.v[name]
            play(system, DT, gui)
            path.append(centre(system)[0])
    rise = path[-1] - start
    thrown = start + flight * (speed - 0.5 * G * flight)
    error = float(np.abs(np.array(path) - thrown).max()) / rise
    return Measured(error, rise, least, gap, plan)


def main(gui: bool = False) -> float:
    """Jump; return how far the flight is off a stone's, relative to its height."""
    m = measure(gui)
    print(
        f"rises {m.rise:.3f} m, {m.error:.0e} off a stone's way; feet push with {m.least:.1f} N at"
        f" least; {m.plan.iterations} iterations, gap of the plan {m.gap:.0e} m"
    )
    return m.error


if __name__ == "__main__":
    run(main, __doc__)
