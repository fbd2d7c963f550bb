"""Momentum and energy of free bodies that constraints join, in filter mode beside the others.

``python benchmarks/momentum.py --duration 20`` lets three boxes in a row, joined by one kind of
constraint and turning as one, fly without gravity and damping, and prints as Markdown by how much
of the start their angular momentum and energy have changed at the end; momentum likewise. Those
that tumble are cubes on points that turn each in its own way: Bullet's step gives bodies with other
inertias angular momentum, and energy with it.
"""

import argparse

import numpy as np
import pybullet
from daily_scenes import MODES, Mode

import bulletbridge as bb
from bulletbridge.numerics.records import Array

KINDS = {
    "fixed": pybullet.JOINT_FIXED,
    "point to point": pybullet.JOINT_POINT2POINT,
    "prismatic": pybullet.JOINT_PRISMATIC,
    "revolute": pybullet.JOINT_REVOLUTE,
    "planar": pybullet.JOINT_PLANAR,
    "tumbling": pybullet.JOINT_POINT2POINT,
}
STEPS = (240, 1000, 4000)  # a second
SPIN = np.array((0.3, 1.0, 2.0))
TUMBLING = np.array(((0.3, 1.0, 2.0), (-2.0, 0.5, 1.0), (1.0, -2.0, 0.5)))
ALONG = (0.25, 0.0, 0.0)
"""From a box's middle to its pin [m]."""


def fly(kind: str, mode: Mode, rate: int, duration: float) -> tuple[float, float, float]:
    """Relative changes of momentum, angular momentum and energy."""
    p = bb.BulletClient(pybullet.DIRECT, mode=mode)
    p.setTimeStep(1.0 / rate)
    tumbles = kind == "tumbling"
    size = (0.15, 0.15, 0.15) if tumbles else (0.1, 0.15, 0.2)
    shape = p.createCollisionShape(pybullet.GEOM_BOX, halfExtents=size)
    masses = 1.0 + np.arange(3)
    middle = 0.5 * (masses @ np.arange(3)) / masses.sum()
    drift = np.array((0.1, 0.2, -0.1))
    bodies = [
        p.createMultiBody(mass, shape, -1, (0.5 * k - middle, 0, 0))
        for k, mass in enumerate(masses)
    ]
    for a, b in zip(bodies, bodies[1:], strict=False):
        made = p.createConstraint(a, -1, b, -1, KINDS[kind], (1, 0, 0), (0.25, 0, 0), (-0.25, 0, 0))
        assert made >= 0
        p.setCollisionFilterPair(a, b, -1, -1, 0)
    p.setCollisionFilterPair(bodies[0], bodies[2], -1, -1, 0)
    v = drift + np.cross(SPIN, (-middle, 0, 0))
    for body, spin in zip(bodies, TUMBLING if tumbles else (SPIN,) * 3, strict=True):
        p.changeDynamics(body, -1, linearDamping=0, angularDamping=0)
        if body != bodies[0]:
            v = v + np.cross(spin, ALONG)
        p.resetBaseVelocity(body, v.tolist(), spin.tolist())
        v = v + np.cross(spin, ALONG)
    before = quantities(p, bodies)
    for _ in range(round(duration * rate)):
        p.stepSimulation()
    after = quantities(p, bodies)
    p.disconnect()
    sizes = [np.linalg.norm(x) for x in before]
    changes = [
        float(np.linalg.norm(y - x) / size) for x, y, size in zip(before, after, sizes, strict=True)
    ]
    return changes[0], changes[1], changes[2]


def quantities(p: bb.BulletClient, bodies: list[int]) -> tuple[Array, Array, Array]:
    """Momentum (3,), angular momentum about the centre of mass (3,), kinetic energy (1,)."""
    masses: list[float] = []
    places: list[Array] = []
    speeds: list[Array] = []
    spins, turning = np.zeros(3), 0.0
    for body in bodies:
        mass, _, inertia = p.getDynamicsInfo(body, -1)[:3]
        place, turn = p.getBasePositionAndOrientation(body)
        R = np.array(p.getMatrixFromQuaternion(turn)).reshape(3, 3)
        v, w = map(np.array, p.getBaseVelocity(body))
        masses.append(mass)
        places.append(np.array(place))
        speeds.append(v)
        spin = R @ (inertia * (R.T @ w))
        spins = spins + spin
        turning += 0.5 * float(w @ spin + mass * v @ v)
    m: Array = np.array(masses)
    x: Array = np.array(places)
    v: Array = np.array(speeds)
    centre = m @ x / m.sum()
    angular = spins + np.cross(x - centre, m[:, None] * v).sum(axis=0)
    return m @ v, angular, np.array([turning])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--duration", type=float, default=20.0)
    parser.add_argument("--kind", choices=KINDS, action="append")
    chosen = parser.parse_args()
    print("| constraints | step | " + " | ".join(MODES) + " |")
    print("|---" * (2 + len(MODES)) + "|")
    for kind in chosen.kind or KINDS:
        for rate in STEPS:
            cells = [
                " / ".join(f"{x:.0e}" for x in fly(kind, mode, rate, chosen.duration))
                for mode in MODES
            ]
            print(f"| {kind} | 1/{rate} s | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
