"""Are distances, depths and normals of our collision detection right, and what do they cost?

    python benchmarks/collisions.py [--number 1000000] [--oracle 2000] [--seed 0]

Every pair of shapes at so many random poses, from far apart to deep in each other and shallow ones
among them. The first columns judge all of them without an oracle: the separation of the two shapes
along the normal, by their support functions, must be the gap that is told; of shapes apart that
alone makes the gap the distance, for it bounds it from below as points do from above. Depths, of
which the least is asked, are compared with those of Coal, MuJoCo and Bullet, of ``--oracle`` poses.
"""

import argparse
from collections.abc import Callable
from importlib import import_module
from itertools import combinations_with_replacement
from time import perf_counter
from typing import Any

import numpy as np
import pybullet
from _touching import Poses, touches
from rich.console import Console
from rich.table import Table
from scipy.spatial.transform import Rotation

from bulletbridge.collision.shapes import (
    ShapeSpec,
    box,
    capsule,
    cylinder,
    hull,
    plane,
    sphere,
)
from bulletbridge.numerics.records import Array

coal: Any = import_module("coal")  # neither tells its types
mujoco: Any = import_module("mujoco")
CORNERS = np.random.default_rng(7).normal(size=(40, 3)) * 0.2
SHAPES: dict[str, ShapeSpec] = {
    "plane": plane(),
    "sphere": sphere(0.3),
    "capsule": capsule(0.15, 0.3),
    "cylinder": cylinder(0.25, 0.3),
    "box": box(0.2, 0.3, 0.4),
    "hull": hull(CORNERS),
}
PAIRS = [pair for pair in combinations_with_replacement(SHAPES, 2) if pair != ("plane", "plane")]
FAR = 10.0
"""Gap up to which points are told here [m]."""


def poses(rng: np.random.Generator, number: int, first: str, second: str) -> tuple[Poses, Poses]:
    """Random poses of two shapes; a third of them nearly touches."""
    R = Rotation.random(2 * number, random_state=rng).as_matrix()
    p, q = rng.normal(size=(number, 3)) * 0.3, rng.normal(size=(number, 3)) * 0.5
    if first == "plane":
        p = np.zeros((number, 3))
        q = R[:number, :, 2] * rng.uniform(-0.6, 0.9, number)[:, None]
    a, b = Poses(R[:number], p), Poses(R[number:], q)
    near = touches(SHAPES[first], SHAPES[second], a, b, FAR)
    third = np.arange(number) % 3 == 0
    way = near.points["normal"][:, 0] * (near.gaps - rng.normal(size=number) * 1e-4)[:, None]
    return a, Poses(b.R, np.where(third[:, None], b.p - way, b.p))


def supports(spec: ShapeSpec, d: Array) -> Array:
    """Farthest points (n, 3) of a shape along directions (n, 3), in its axes."""
    if spec.hull is not None:
        return spec.hull.corners[np.argmax(d @ spec.hull.corners.T, axis=1)]
    size = np.array(spec.size)
    if spec is SHAPES["cylinder"]:
        r = np.linalg.norm(d[:, :2], axis=1, keepdims=True)
        rim = size[:2] * d[:, :2] / np.where(r > 0.0, r, 1.0)
        return np.hstack([rim, np.copysign(size[2], d[:, 2:])])
    core = np.copysign(size, d) * (size > 0.0)
    return core + spec.radius * d


def separation(first: str, second: str, at_a: Poses, at_b: Poses, normals: Array) -> Array:
    """How far the shapes are apart along normals (n, 3) from the first to the second."""
    d = np.einsum("nji,nj->ni", at_b.R, -normals)
    on_b = np.einsum("nij,nj->ni", at_b.R, supports(SHAPES[second], d)) + at_b.p
    if first == "plane":
        return np.einsum("ni,ni->n", at_a.R[:, :, 2], on_b - at_a.p)
    d = np.einsum("nji,nj->ni", at_a.R, normals)
    on_a = np.einsum("nij,nj->ni", at_a.R, supports(SHAPES[first], d)) + at_a.p
    return np.einsum("ni,ni->n", normals, on_b - on_a)


Oracle = Callable[[Poses, Poses], Array]


def of_coal(first: str, second: str) -> Oracle:
    """Distances by Coal's GJK and EPA, at their narrowest tolerances."""
    made = [_coal_shape(name) for name in (first, second)]
    request = coal.DistanceRequest()
    request.gjk_tolerance = request.epa_tolerance = 1e-10
    request.gjk_max_iterations = request.epa_max_iterations = 1000

    def distances(a: Poses, b: Poses) -> Array:
        found = np.zeros(len(a.p))
        for k in range(len(found)):
            at_a, at_b = (coal.Transform3s(x.R[k].copy(), x.p[k].copy()) for x in (a, b))
            result = coal.DistanceResult()
            found[k] = coal.distance(made[0], at_a, made[1], at_b, request, result)
        return found

    return distances


def _coal_shape(name: str) -> Any:
    spec = SHAPES[name]
    x, y, z = spec.size
    if spec.hull is not None:
        corners = coal.StdVec_Vec3s()
        corners.extend(list(spec.hull.corners))
        return coal.Convex.convexHull(corners, False, "")
    if name == "plane":
        return coal.Halfspace(np.array([0.0, 0.0, 1.0]), 0.0)
    if name == "sphere":
        return coal.Sphere(spec.radius)
    if name == "capsule":
        return coal.Capsule(spec.radius, 2 * z)
    return coal.Cylinder(x, 2 * z) if name == "cylinder" else coal.Box(2 * x, 2 * y, 2 * z)


def of_mujoco(first: str, second: str) -> Oracle:
    """Distances by ``mj_geomDistance``."""
    spec = mujoco.MjSpec()
    spec.option.ccd_tolerance, spec.option.ccd_iterations = 1e-10, 1000
    mesh = spec.add_mesh(name="hull")
    mesh.uservert = CORNERS.flatten()
    kinds = {
        "plane": (mujoco.mjtGeom.mjGEOM_PLANE, [0.0, 0.0, 1.0]),
        "sphere": (mujoco.mjtGeom.mjGEOM_SPHERE, [0.3, 0.0, 0.0]),
        "capsule": (mujoco.mjtGeom.mjGEOM_CAPSULE, [0.15, 0.3, 0.0]),
        "cylinder": (mujoco.mjtGeom.mjGEOM_CYLINDER, [0.25, 0.3, 0.0]),
        "box": (mujoco.mjtGeom.mjGEOM_BOX, [0.2, 0.3, 0.4]),
        "hull": (mujoco.mjtGeom.mjGEOM_MESH, [0.0, 0.0, 0.0]),
    }
    for name in (first, second):
        kind, size = kinds[name]
        geom = spec.worldbody.add_geom(type=kind, size=size)
        if name == "hull":
            geom.meshname = "hull"
    model = spec.compile()
    data = mujoco.MjData(model)
    places = [(np.eye(3), np.zeros(3))] * 2
    for k, name in enumerate((first, second)):
        if name == "hull":  # MuJoCo puts meshes into their principal axes
            number = model.geom_dataid[k]
            R = Rotation.from_quat(model.mesh_quat[number], scalar_first=True).as_matrix()
            places[k] = R, model.mesh_pos[number]

    def distances(a: Poses, b: Poses) -> Array:
        found, segment = np.zeros(len(a.p)), np.zeros(6)
        for n in range(len(found)):
            for k, x in enumerate((a, b)):
                R, p = places[k]
                data.geom_xpos[k] = x.p[n] + x.R[n] @ p
                data.geom_xmat[k] = (x.R[n] @ R).flatten()
            found[n] = mujoco.mj_geomDistance(model, data, 0, 1, FAR, segment)
        return found

    return distances


def of_bullet(first: str, second: str) -> Oracle:
    """Distances by ``getClosestPoints``; hulls have Bullet's margin of a millimetre around them."""
    client = pybullet.connect(pybullet.DIRECT)
    bodies, margin = list[int](), 0.0
    for name in (first, second):
        x, y, z = SHAPES[name].size
        given = {
            "plane": {"shapeType": pybullet.GEOM_PLANE},
            "sphere": {"shapeType": pybullet.GEOM_SPHERE, "radius": SHAPES[name].radius},
            "capsule": {
                "shapeType": pybullet.GEOM_CAPSULE,
                "radius": SHAPES[name].radius,
                "height": 2 * z,
            },
            "cylinder": {"shapeType": pybullet.GEOM_CYLINDER, "radius": x, "height": 2 * z},
            "box": {"shapeType": pybullet.GEOM_BOX, "halfExtents": [x, y, z]},
            "hull": {"shapeType": pybullet.GEOM_MESH, "vertices": CORNERS.tolist()},
        }[name]
        shape = pybullet.createCollisionShape(**given, physicsClientId=client)
        bodies.append(pybullet.createMultiBody(0.0, shape, physicsClientId=client))
        margin += 1e-3 if name == "hull" else 0.0

    def distances(a: Poses, b: Poses) -> Array:
        found = np.full(len(a.p), np.nan)
        for n in range(len(found)):
            for body, x in zip(bodies, (a, b), strict=True):
                quat = Rotation.from_matrix(x.R[n]).as_quat().tolist()
                pybullet.resetBasePositionAndOrientation(body, x.p[n].tolist(), quat, client)
            points = pybullet.getClosestPoints(*bodies, FAR, physicsClientId=client)
            if points:
                found[n] = margin + min(point[8] for point in points)
        return found

    return distances


ORACLES = {"Coal": of_coal, "MuJoCo": of_mujoco, "Bullet": of_bullet}


def judge(first: str, second: str, number: int, oracle: int, seed: int) -> list[str]:
    """A row of the table."""
    rng = np.random.default_rng(seed)
    worst, failures, took, done = 0.0, 0, 0.0, 0
    row: list[str] = []
    while done < number:
        part = min(100_000, number - done)
        a, b = poses(rng, part, first, second)
        begun = perf_counter()
        found = touches(SHAPES[first], SHAPES[second], a, b, FAR)
        took += perf_counter() - begun
        normals = found.points["normal"][:, 0]
        sane = (found.counts > 0) & np.isfinite(found.gaps)
        sane &= np.abs(np.linalg.norm(normals, axis=1) - 1.0) < 1e-12
        failures += int(np.sum(~sane))
        apart = separation(first, second, a, b, normals)
        worst = max(worst, float(np.abs(apart - found.gaps)[sane].max()))
        if not row and oracle:
            for make in ORACLES.values():
                theirs = make(first, second)(
                    Poses(a.R[:oracle], a.p[:oracle]), Poses(b.R[:oracle], b.p[:oracle])
                )
                error = found.gaps[:oracle] - theirs
                finite = np.isfinite(error) & (np.abs(theirs) < FAR)
                deeper = float(np.max(-error[finite], initial=0.0))  # than it should be
                row += [f"{np.median(np.abs(error[finite])):.0e}", f"{deeper:.0e}"]
        done += part
    return [f"{worst:.1e}", str(failures), f"{1e9 * took / number:.0f}", *row]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--number", type=int, default=1_000_000)
    parser.add_argument("--oracle", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    columns = ["gap, largest error [m]", "failures", "ns"]
    for name in ORACLES if options.oracle else ():
        columns += [f"{name}, median [m]", "deeper, most"]
    table = Table("", *columns)
    for first, second in PAIRS:
        row = judge(first, second, options.number, options.oracle, options.seed)
        table.add_row(f"{first} {second}", *row)
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
