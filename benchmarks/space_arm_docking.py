"""Docking loads on the space arm for 80 s: what correction and filter do to the gap at its tip.

    python benchmarks/space_arm_docking.py [SCHEME ...] [--native]

Each line has the largest |g| [m] and |J v| [m/s] over the run and the largest error of a joint
angle at its end [rad], each beside the value that an independent program found; the error is
against a reference of twelve digits. Loads, in the frame of the station: two bumps of a force at
its port, three sines of a torque; sines on the joints. Source: Kövecses and Piedbœuf 2003; the
loads are chosen, since the source does not give them.
"""

import argparse
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
import pybullet
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

import bulletbridge as bb
from bulletbridge.comparison.native import NativeWorld
from bulletbridge.comparison.plan import NATIVE
from bulletbridge.formulations.equations import Dynamics, Equations
from bulletbridge.formulations.integrators import METHODS, State
from bulletbridge.formulations.projector import Projector
from bulletbridge.formulations.stabilise import Stabilisation

Array = NDArray[np.float64]

DURATION = 80.0  # [s]
FORCE = np.array([2500.0, -600.0, 900.0])  # [N]
PORT = np.array([15.0, 0.0, -4.0])  # [m]
TORQUE = np.array([3000.0, 5000.0, 4000.0])  # [N m]
TORQUE_PERIODS = np.array([20.0, 27.0, 16.0])  # [s]
JOINT_TORQUE = np.array([40.0, 30.0, 30.0, 20.0, 10.0, 0.0, 0.0])  # [N m]
JOINT_PERIODS = np.array([9.0, 11.0, 13.0, 17.0, 19.0, 23.0, 29.0])  # [s]
ANGLES = np.array(  # of the joints at the end [rad]
    [
        *(0.3842030507925437, -0.35210746747377825, 0.6855146756663991, -1.9266616904166207),
        *(1.2158729139356346, -1.4972071947852952, 0.9206252692040583),
    ]
)
CORRECTIONS = {
    "none": Stabilisation(passes=0, filtered=False),
    "1v": Stabilisation(passes=0),
    "1v+1q eq36": Stabilisation("current", 1),
    "1v+2q eq36": Stabilisation("current", 2),
    "1v+2q eq35": Stabilisation("start", 2),
    "1v+2q euclid": Stabilisation("current", 2),
}
TABLE = {  # scheme, step [s], correction: largest |g|, |J v|, error of the angles
    ("euler", 0.01, "none"): (2.2e-03, 9.2e-05, 9.9e-04),
    ("euler", 0.01, "1v+2q eq36"): (7.3e-15, 1.3e-16, 2.1e-03),
    ("euler", 0.01, "1v+2q eq35"): (3.9e-13, 1.3e-16, 2.1e-03),
    ("semi_implicit_euler", 0.01, "none"): (1.5e-03, 1.8e-04, 1.5e-03),
    ("semi_implicit_euler", 0.01, "1v+2q eq36"): (9.1e-15, 1.3e-16, 1.5e-03),
    ("semi_implicit_euler", 0.01, "1v+1q eq36"): (8.4e-14, 1.2e-16, 1.5e-03),
    ("semi_implicit_euler", 0.01, "1v+2q eq35"): (3.9e-13, 1.1e-16, 1.5e-03),
    ("semi_implicit_euler", 0.01, "1v"): (1.1e-03, 1.3e-16, 1.4e-03),
    ("semi_implicit_euler", 0.01, "1v+2q euclid"): (7.2e-15, 1.2e-16, 1.2e-03),
    ("heun", 0.02, "none"): (1.8e-06, 9.1e-08, 3.6e-05),
    ("heun", 0.02, "1v+2q eq36"): (6.0e-15, 1.2e-16, 3.5e-05),
    ("heun", 0.02, "1v+1q eq36"): (7.1e-15, 1.1e-16, 3.5e-05),
    ("heun", 0.02, "1v+2q eq35"): (1.8e-14, 1.3e-16, 3.5e-05),
    ("heun", 0.02, "1v"): (1.8e-06, 1.2e-16, 3.6e-05),
    ("heun", 0.02, "1v+2q euclid"): (7.2e-15, 1.1e-16, 3.6e-05),
    ("heun", 0.05, "none"): (1.1e-05, 5.6e-07, 2.2e-04),
    ("heun", 0.05, "1v+2q eq36"): (5.7e-15, 1.2e-16, 2.2e-04),
    ("heun", 0.05, "1v+1q eq36"): (1.1e-14, 9.7e-17, 2.2e-04),
    ("heun", 0.05, "1v+2q eq35"): (1.3e-12, 1.1e-16, 2.2e-04),
    ("heun", 0.05, "1v"): (1.1e-05, 1.1e-16, 2.2e-04),
    ("heun", 0.05, "1v+2q euclid"): (5.7e-15, 1.1e-16, 2.2e-04),
    ("rk4", 0.05, "none"): (6.7e-08, 1.8e-09, 1.2e-08),
    ("rk4", 0.05, "1v+2q eq36"): (5.6e-15, 1.0e-16, 1.9e-08),
    ("rk4", 0.05, "1v+1q eq36"): (7.2e-15, 1.0e-16, 1.9e-08),
    ("rk4", 0.05, "1v+2q eq35"): (6.0e-15, 9.1e-17, 1.9e-08),
    ("rk4", 0.05, "1v"): (3.4e-10, 9.8e-17, 1.9e-08),
    ("rk4", 0.05, "1v+2q euclid"): (5.7e-15, 9.9e-17, 8.1e-09),
    ("rk4", 0.1, "none"): (1.1e-06, 2.9e-08, 1.9e-07),
    ("rk4", 0.1, "1v+2q eq36"): (5.6e-15, 8.7e-17, 3.0e-07),
    ("rk4", 0.1, "1v+1q eq36"): (6.4e-15, 1.0e-16, 3.0e-07),
    ("rk4", 0.1, "1v+2q eq35"): (1.3e-14, 7.8e-17, 3.0e-07),
    ("rk4", 0.1, "1v"): (5.4e-09, 1.1e-16, 3.0e-07),
    ("rk4", 0.1, "1v+2q euclid"): (5.4e-15, 1.0e-16, 1.3e-07),
    ("rk4", 0.2, "none"): (1.7e-05, 4.7e-07, 3.0e-06),
    ("rk4", 0.2, "1v+2q eq36"): (5.3e-15, 9.9e-17, 4.8e-06),
    ("rk4", 0.2, "1v+1q eq36"): (5.4e-15, 7.6e-17, 4.8e-06),
    ("rk4", 0.2, "1v+2q eq35"): (1.4e-12, 7.2e-17, 4.8e-06),
    ("rk4", 0.2, "1v"): (8.4e-08, 1.1e-16, 4.7e-06),
    ("rk4", 0.2, "1v+2q euclid"): (5.5e-15, 9.8e-17, 2.1e-06),
}


@dataclass(frozen=True)
class Euclidean:
    """A system with the wrong metric, for correction and filter only."""

    bare: Dynamics
    nq: int
    nv: int

    def equations(self, q: Array, v: Array, t: float) -> Equations:
        """The rows, and one as the mass of everything."""
        return self.bare.equations(q, v, t)._replace(M=np.eye(self.nv))

    def displace(self, q: Array, step: Array) -> Array:
        """Configuration after a velocity has acted for a unit of time."""
        return self.bare.displace(q, step)


@dataclass(frozen=True)
class Outcome:
    """Largest |g| [m] and |J v| [m/s], error of the angles at the end [rad], cost a step [µs]."""

    gap: float
    rate: float
    angles: float
    step_us: float


def loads() -> dict[str, Any]:
    """What acts, as ``System`` takes it."""
    x, y, z = PORT.tolist()

    def force(t: float) -> Array:
        return loads_on_station(t)[0]

    def torque(t: float) -> Array:
        return loads_on_station(t)[1]

    found: dict[str, Any] = {"docking": bb.Wrench(bb.Frame("station", (x, y, z)), force, torque)}
    for k, (size, period) in enumerate(zip(JOINT_TORQUE, JOINT_PERIODS, strict=True), 1):
        found[f"joint_{k}"] = bb.Sine(float(size), 1.0 / float(period))
    return found


def loads_on_station(t: float) -> tuple[Array, Array, Array]:
    """Force at the port [N], torque [N m], both in the station's frame, and joint torques [N m]."""
    bumps = np.exp(-(((t - 10.0) / 1.5) ** 2)) - 0.6 * np.exp(-(((t - 40.0) / 2.5) ** 2))
    torque = TORQUE * np.sin(2.0 * np.pi * t / TORQUE_PERIODS)
    return FORCE * bumps, torque, JOINT_TORQUE * np.sin(2.0 * np.pi * t / JOINT_PERIODS)


def simulate(scheme: str, h: float, correction: str, duration: float = DURATION) -> Outcome:
    """Run the arm from rest under the loads."""
    with bb.load("space_arm", forces=loads()) as model:
        system = model.system
        system.set_state(v=np.zeros(system.mechanism.nv))
        dynamics = system.dynamics
        wrong = correction.endswith("euclid")
        back = Euclidean(dynamics, dynamics.nq, dynamics.nv) if wrong else dynamics
        method, after = METHODS[scheme], CORRECTIONS[correction]
        formulation = Projector(dynamics)
        state = State(system.q, system.v, 0.0)
        gap = rate = 0.0
        begun, steps = perf_counter(), round(duration / h)
        for n in range(steps):
            q, v = method(formulation, dynamics, state, h)
            end = after(back, state.q, q, v, (n + 1) * h)
            state = State(end.q, end.v, (n + 1) * h)
            e = dynamics.equations(*state)
            gap = max(gap, float(np.linalg.norm(e.g)))
            rate = max(rate, float(np.linalg.norm(e.J @ state.v)))
        cost = 1e6 * (perf_counter() - begun) / steps
    return Outcome(gap, rate, float(np.abs(state.q[7:] - ANGLES).max()), cost)


def simulate_native(solver: str, h: float, duration: float = DURATION) -> Outcome:
    """The same in Bullet's own solver, with its joint friction of the URDF."""
    with bb.load("space_arm") as model:
        system, dynamics = model.system, model.system.dynamics
        still = np.zeros(system.mechanism.nv)
        world = NativeWorld(model.spec, system.q, still, h, NATIVE[solver])
        gap = rate = 0.0
        steps, begun = round(duration / h), perf_counter()
        q = system.q
        try:
            for n in range(steps):
                push_native(world, q, n * h)
                q, v = world.step()
                e = dynamics.equations(q, v, 0.0)
                gap = max(gap, float(np.linalg.norm(e.g)))
                rate = max(rate, float(np.linalg.norm(e.J @ v)))
        finally:
            world.close()
        cost = 1e6 * (perf_counter() - begun) / steps
    return Outcome(gap, rate, float(np.abs(q[7:] - ANGLES).max()), cost)


def push_native(world: NativeWorld, q: Array, t: float) -> None:
    """The loads as Bullet takes them; they last for one step."""
    body, client = next(iter(world.ids.values())), world.client
    force, torque, joints = loads_on_station(t)
    R = Rotation.from_quat(q[3:7])
    point = q[:3] + R.apply(PORT)
    pybullet.applyExternalForce(
        body, -1, R.apply(force).tolist(), point.tolist(), pybullet.WORLD_FRAME, client
    )
    pybullet.applyExternalTorque(body, -1, R.apply(torque).tolist(), pybullet.WORLD_FRAME, client)
    torques = {f"joint_{k + 1}": float(x) for k, x in enumerate(joints)}
    world.drive(torques, np.zeros(3))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Docking loads on the space arm for 80 s.")
    parser.add_argument("schemes", nargs="*", metavar="SCHEME")
    parser.add_argument("--native", action="store_true", help="Bullet's own solver as well")
    arguments = parser.parse_args()
    wanted: list[str] = arguments.schemes or list(METHODS)
    print(f"{'scheme':20} {'h':>5} {'correction':13} {'|g|':>17} {'|J v|':>17} {'angles':>17}  us")
    for (scheme, h, correction), expected in TABLE.items():
        if scheme in wanted:
            found = simulate(scheme, h, correction)
            pairs = zip((found.gap, found.rate, found.angles), expected, strict=True)
            cells = " ".join(f"{mine:8.1e} {other:8.1e}" for mine, other in pairs)
            print(f"{scheme:20} {h:5g} {correction:13} {cells}  {found.step_us:.0f}", flush=True)
    for solver in NATIVE if arguments.native else ():
        for h in (0.01, 1 / 240):
            found = simulate_native(solver, h)
            cells = f"{found.gap:8.1e} {found.rate:17.1e} {found.angles:17.1e}"
            print(f"{solver:20} {h:5.2g} {'':13} {cells}           {found.step_us:.0f}", flush=True)


if __name__ == "__main__":
    main()
