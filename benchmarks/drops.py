"""A thousand drops of closed-loop mechanisms on a plane: no NaN, no energy gain, no open loop.

    python benchmarks/drops.py [--drops N] [--seconds S] [--json FILE]

Bundled models with their bases freed and shapes to touch the plane with, Minitaur, two boxes that
carry a bar, random four-bars; random poses, rates, friction and restitution. The energy is
that which semi-implicit Euler keeps in free fall: potential energy half a step before. Contacts
may not give energy: their work in each step is reported over the energy of the fall, and what the
energy rises by besides, which is the integrator's and vanishes with the step.
"""

import argparse
import itertools
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pybullet
from _drop_models import KINDS, spec_of
from rich.console import Console
from rich.table import Table

import bulletbridge as bb
from bulletbridge.console import write_json
from bulletbridge.errors import AssemblyError, BulletBridgeWarning, StepError
from bulletbridge.models.load import LoadedModel, load

World = tuple[LoadedModel, bb.System, np.ndarray, int]
"""A mechanism, a twin that touches nothing, where they start, the plane."""


@dataclass
class Drop:
    """The worst of one drop.

    Attributes:
        kind, seed: Which.
        failed: What stopped it, or empty.
        gap: Largest kept gap [m].
        gain: Largest energy that contacts gave in one step, over the energy of the fall.
        rise: Largest rise of the energy above the start, over the same.
        depth: Deepest penetration [m].
        residual: Largest complementarity residual [m/s or rad/s].
        touched: Steps with contacts.
    """

    kind: str
    seed: int
    failed: str = ""
    gap: float = 0.0
    gain: float = 0.0
    rise: float = 0.0
    depth: float = 0.0
    residual: float = 0.0
    touched: int = 0


def apart(model: LoadedModel) -> None:
    """Let the bodies of a mechanism not touch each other: they overlap where they are joined."""
    ids = sorted(model.ids.values())
    for a, b in itertools.combinations(ids, 2):
        for i in range(-1, pybullet.getNumJoints(a, model.client)):
            for j in range(-1, pybullet.getNumJoints(b, model.client)):
                pybullet.setCollisionFilterPair(a, b, i, j, 0, model.client)


def dropped(model: LoadedModel, start: np.ndarray, plane: int, seed: int) -> bool:
    """Put a mechanism above the plane, in a random state; whether it could be closed."""
    rng, system, client = np.random.default_rng(seed), model.system, model.client
    mechanism = system.mechanism
    bases = [j for j in mechanism.joints.values() if j.kind == "free"]
    q, v = start.copy(), 0.5 * rng.normal(size=mechanism.nv)
    turn = rng.normal(size=4)
    turn /= np.linalg.norm(turn)
    centre = q[bases[0].q][:3].copy()
    R = np.reshape(pybullet.getMatrixFromQuaternion(turn.tolist()), (3, 3))
    for base in bases:
        part = q[base.q]
        part[:3] = R @ (part[:3] - centre)
        part[3:] = multiply(turn, part[3:])
    single = [j for j in mechanism.joints.values() if j.kind in ("revolute", "prismatic")]
    for joint in single:
        q[joint.q] += rng.normal(0, 0.1)
    values = {name: q[j.q].tolist() for name, j in mechanism.joints.items()}
    first = bases[0].name
    try:
        system.assemble({first: values[first]}, guess=values)
        system.set_state(v=v)
    except AssemblyError:
        return False
    pybullet.performCollisionDetection(physicsClientId=client)  # which updates the boxes
    lowest = np.inf
    for body in model.ids.values():
        for link in range(-1, pybullet.getNumJoints(body, client)):
            box = pybullet.getAABB(body, link, client)
            lowest = min(lowest, box[0][2])
    q, height = system.q, rng.uniform(0.05, 0.5)
    for base in bases:
        q[base.q][2] += height - lowest
    system.set_state(q)
    friction, restitution = float(rng.uniform(0, 1)), float(rng.choice([0.0, 0.3, 0.8, 1.0]))
    for body in (plane, *model.ids.values()):
        links = range(-1, pybullet.getNumJoints(body, client))
        for link in links:
            pybullet.changeDynamics(
                body,
                link,
                lateralFriction=1.0 if body == plane else friction,
                restitution=1.0 if body == plane else restitution,
                rollingFriction=0.0 if body == plane or seed % 3 else 0.01,
                spinningFriction=0.0 if body == plane or seed % 3 else 0.01,
                physicsClientId=client,
            )
    model.bodies.forget_friction()
    return True


def multiply(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Product of two quaternions xyzw."""
    vector = a[3] * b[:3] + b[3] * a[:3] + np.cross(a[:3], b[:3])
    return np.array([*vector, a[3] * b[3] - a[:3] @ b[:3]])


def kept_energy(system: bb.System, twin: bb.System) -> float:
    """Energy [J] that semi-implicit Euler keeps to second order when nothing touches.

    One step changes the kinetic energy by the work of gravity along the mean velocity, and by half
    a step of v·Ṁv at its end less the same at its start, which Coriolis forces, taken at the start,
    lag behind: E + dt/2 v·F - dt v·c stays, with the weight F and the Coriolis forces c.
    """
    q, v, dt = system.q, system.v, system.dt
    twin.set_state(q, v)
    found, terms = twin.evaluate(), twin.terms()
    weight = float(found.momentum[3:] @ system.gravity)
    return found.energy + 0.5 * dt * weight - dt * (float(v @ terms.h) + weight)


def drop(
    model: LoadedModel, twin: bb.System, start: np.ndarray, plane: int, seed: int, seconds: float
) -> Drop | None:
    """Drop it once; None if it could not be put together in that pose."""
    system, found = model.system, Drop(model.spec.name, seed)
    if not dropped(model, start, plane, seed):
        return None
    first = kept_energy(system, twin)
    low = model.system.evaluate().potential
    scale = max(first - low, system.mechanism.bodies["mass"].sum() * 9.81 * 0.1)
    for _ in range(round(seconds / system.dt)):
        try:
            system.step()
        except StepError as error:
            found.failed = str(error)[:200]
            return found
        if not (np.isfinite(system.q).all() and np.isfinite(system.v).all()):
            found.failed = "not finite"
            return found
        now, complementarity = kept_energy(system, twin), system.complementarity
        assert complementarity is not None
        found.gap = max(found.gap, system.evaluate().largest("kept_metres"))
        found.rise = max(found.rise, (now - first) / scale)
        found.gain = max(found.gain, complementarity.work / scale)
        found.residual = max(found.residual, complementarity.residual)
        found.touched += complementarity.rows > 0
        pybullet.performCollisionDetection(physicsClientId=model.client)
        for point in pybullet.getContactPoints(bodyA=plane, physicsClientId=model.client):
            found.depth = max(found.depth, -point[8])
    return found


def worlds(
    kinds: Iterator[str] | tuple[str, ...], dt: float, energy_budget: bool = True
) -> Iterator[World]:
    """Each mechanism over a plane, and a twin that touches nothing."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", BulletBridgeWarning)
        for kind in kinds:
            spec = spec_of(kind, Path(folder))
            with load(spec, dt=dt, contacts=True, energy_budget=energy_budget) as model:
                shape = pybullet.createCollisionShape(
                    pybullet.GEOM_PLANE, planeNormal=[0, 0, 1], physicsClientId=model.client
                )
                plane = pybullet.createMultiBody(0, shape, physicsClientId=model.client)
                twin = bb.System(model.system.mechanism, spec.constraints, dt=dt)
                apart(model)
                q, joints = model.system.q, model.system.mechanism.joints
                twin.assemble(guess={name: q[joint.q].tolist() for name, joint in joints.items()})
                yield model, twin, q, plane


def main() -> None:
    """Drop, print a table, write JSON if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--drops", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--dt", type=float, default=1 / 240)
    parser.add_argument("--only", nargs="*", default=KINDS)
    parser.add_argument("--no-energy-budget", action="store_true")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    each = -(-options.drops // len(options.only))
    table = Table(
        "mechanism",
        "drops",
        "failed",
        "gap [m]",
        "gain",
        "rise",
        "depth [m]",
        "residual",
        "touched",
    )
    drops: list[Drop] = []
    for model, twin, start, plane in worlds(
        tuple(options.only), options.dt, not options.no_energy_budget
    ):
        seeds, found = iter(range(100 * each)), list[Drop]()
        while len(found) < each:
            one = drop(model, twin, start, plane, next(seeds), options.seconds)
            if one is not None:
                found.append(one)
        drops += found
        failed = [one for one in found if one.failed]
        worst = {key: max(getattr(one, key) for one in found) for key in
                 ("gap", "gain", "rise", "depth", "residual")}  # fmt: skip
        at = {key: max(found, key=lambda one: getattr(one, key)).seed for key in worst}
        table.add_row(
            found[0].kind, str(len(found)), str(len(failed)),
            *(f"{worst[key]:.1e} ({at[key]})" for key in worst),
            str(sum(one.touched for one in found)),
        )  # fmt: skip
        for one in failed:
            print(one.kind, one.seed, one.failed)
    Console(width=150).print(table)
    if options.json:
        write_json(options.json, [vars(one) for one in drops])


if __name__ == "__main__":
    main()
