"""A free-floating station is docked with while its arm holds its own tip: 80 s of loads.

Two bumps of a force at the port, three sines of a torque, both in the axes of the station, which
turns, and sines on the joints: all taken at every stage, so that RK4 keeps its order. The joint
angles are checked against a reference that was integrated by other software to twelve digits; the
loads are drawn in the window. Source: Kövecses and Piedbœuf 2003, whose loads are not known.
"""

import math
from typing import NamedTuple

import numpy as np
from _show import play, run, window
from scipy.integrate import simpson

import bulletbridge as bb

DURATION = 80.0  # [s]
PORT = (15.0, 0.0, -4.0)  # [m], on the station
FORCE = (2500.0, -600.0, 900.0)  # [N]
TORQUE, TORQUE_PERIODS = (3000.0, 5000.0, 4000.0), (20.0, 27.0, 16.0)  # [N m], [s]
JOINT_TORQUE, JOINT_PERIODS = (40.0, 30.0, 30.0, 20.0, 10.0), (9.0, 11.0, 13.0, 17.0, 19.0)
REFERENCE = np.array(  # joint angles after DURATION [rad]
    [
        *(0.3842030507925437, -0.35210746747377825, 0.6855146756663991, -1.9266616904166207),
        *(1.2158729139356346, -1.4972071947852952, 0.9206252692040583),
    ]
)


class Errors(NamedTuple):
    """What is left after DURATION."""

    angles: float  # of the joints, from the reference [rad]
    gap: float  # [m]
    energy: float  # of the station, less the work of loads and friction, over the most of it


def blow(t: float) -> tuple[float, float, float]:
    """Force at the port [N]: docking, and a smaller one back."""
    size = math.exp(-(((t - 10.0) / 1.5) ** 2)) - 0.6 * math.exp(-(((t - 40.0) / 2.5) ** 2))
    x, y, z = FORCE
    return size * x, size * y, size * z


def twist(t: float) -> list[float]:
    """Torque on the station [N m]."""
    pairs = zip(TORQUE, TORQUE_PERIODS, strict=True)
    return [size * math.sin(2.0 * math.pi * t / period) for size, period in pairs]


def loads() -> dict[str, bb.Wrench | bb.Sine]:
    """All that acts on station and arm."""
    found: dict[str, bb.Wrench | bb.Sine] = {
        "docking": bb.Wrench(bb.Frame("station", PORT), force=blow, torque=twist)
    }
    for k, (size, period) in enumerate(zip(JOINT_TORQUE, JOINT_PERIODS, strict=True), 1):
        found[f"joint_{k}"] = bb.Sine(size, 1.0 / period)
    return found


def dock(dt: float, gui: bool = False) -> Errors:
    """Start at rest and be docked with, with steps of ``dt`` [s]."""
    with window(gui, "space_arm") as client:
        system = bb.load("space_arm", client, dt=dt, integrator="rk4", forces=loads()).system
        system.set_state(v=np.zeros(system.mechanism.nv))
        last = play(system, DURATION, gui, load_scale=3.0 * max(FORCE))
        friction, every = system.mechanism.axes["damping"], max(round(0.2 / dt), 1)
        energies, powers = [0.0], [0.0]  # nothing moves at the start
        for q, v, t in list(zip(last.q, last.v, last.t, strict=True))[every - 1 :: every]:
            energies.append(system.evaluate(q, v, t).energy)
            powers.append(system.applied_power(q, v, t) - float(friction @ (v * v)))
        end = system.evaluate()
    work = float(simpson(powers, dx=every * dt))
    angles = np.array([last.position(f"joint_{k}")[-1] for k in range(1, 8)])
    return Errors(
        float(np.abs(angles - REFERENCE).max()),
        end.largest("metres"),
        abs(energies[-1] - work) / max(energies),
    )


def main(gui: bool = False) -> float:
    """Be docked with for 80 s; return the largest error of a joint angle [rad]."""
    errors = dock(0.05, gui)
    print(
        f"joint angles {errors.angles:.1e} rad from the reference; gap {errors.gap:.0e} m; energy"
        f" less the work of the loads {errors.energy:.0e} of the most there was"
    )
    return errors.angles


if __name__ == "__main__":
    run(main, __doc__)
