"""MuJoCo's geoms as visual and collision shapes of links."""

from pathlib import Path
from typing import Any

import numpy as np

from bulletbridge.mechanism.model import WORLD
from bulletbridge.models.formats.mjcf_file import asset_path, library
from bulletbridge.models.formats.mjcf_places import Places
from bulletbridge.models.formats.robot import Pose, Shape, listed
from bulletbridge.models.formats.urdf_text import BULLETS_MESHES

SHOWN = 3
"""Groups of geoms below this one are drawn by MuJoCo unless told otherwise."""
PLANE = 50.0
"""Half the width of a plane that has no end [m]."""
THICK = 1.0
"""Thickness of the box that a plane becomes [m]."""


def add_shapes(spec: Any, model: Any, places: Places, path: Path) -> None:
    """Give the links of a scene their shapes; what URDF has not is noted."""
    lost: dict[str, list[str]] = {}
    for k in range(model.ngeom):
        body = int(model.geom_bodyid[k])
        name = model.geom(k).name or f"a geom of {places.body_names[body]}"
        if not places.has(body):
            lost.setdefault(f"geoms of the {WORLD}, which is no robot", []).append(name)
            continue
        robot, link, here = places.of(body)
        found = _shape(spec, model, k, path)
        if isinstance(found, str):
            lost.setdefault(found, []).append(name)
            continue
        shape = Shape(found.kind, found.size, here @ found.place, found.mesh, found.rgba)
        collides = bool(model.geom_contype[k] or model.geom_conaffinity[k])
        if collides:
            robot.links[link].collisions.append(shape)
        if model.geom_group[k] < SHOWN or not collides:
            robot.links[link].visuals.append(shape)
    for what, names in lost.items():
        places.scene.notes.append(f"{what}: left out ({listed(dict.fromkeys(names))})")


def _shape(spec: Any, model: Any, k: int, path: Path) -> Shape | str:
    """A geom on its body, or why there is none."""
    from scipy.spatial.transform import Rotation

    kind = library().mjtGeom(model.geom_type[k]).name.removeprefix("mjGEOM_").lower()
    size = [float(x) for x in model.geom_size[k]]
    R = Rotation.from_quat(np.roll(model.geom_quat[k], -1)).as_matrix()
    place = Pose(R, model.geom_pos[k].copy())
    rgba = tuple(float(x) for x in _colour(model, k))
    if kind == "box":
        return Shape("box", tuple(2.0 * x for x in size), place, "", rgba)
    if kind == "sphere":
        return Shape("sphere", (size[0],), place, "", rgba)
    if kind in ("cylinder", "capsule"):
        return Shape(kind, (size[0], 2.0 * size[1]), place, "", rgba)
    if kind == "plane":
        wide = [2.0 * (x or PLANE) for x in size[:2]]
        below = place @ Pose(np.eye(3), np.array([0.0, 0.0, -0.5 * THICK]))
        return Shape("box", (wide[0], wide[1], THICK), below, "", rgba)
    if kind == "mesh":
        return _mesh(spec, model, k, place, path, rgba)
    return f"shapes that URDF has not ({kind})"


def _mesh(
    spec: Any, model: Any, k: int, place: Pose, path: Path, rgba: tuple[float, ...]
) -> Shape | str:
    """A mesh where its file has it: MuJoCo moves vertices to their centre and principal axes."""
    from scipy.spatial.transform import Rotation

    number = int(model.geom_dataid[k])
    asset = spec.meshes[number]
    file = asset_path(spec, path, asset.file, spec.meshdir) if asset.file else None
    if file is None or file.suffix.lower() not in BULLETS_MESHES:
        return "meshes that Bullet cannot read"
    if np.any(asset.refpos) or not np.array_equal(asset.refquat, (1.0, 0.0, 0.0, 0.0)):
        return "meshes with refpos or refquat"
    R = Rotation.from_quat(np.roll(model.mesh_quat[number], -1)).as_matrix()
    moved = Pose(R, model.mesh_pos[number].copy())
    return Shape(
        "mesh",
        tuple(float(x) for x in asset.scale),
        place @ moved.inverse,
        str(file.resolve()),
        rgba,
    )


def _colour(model: Any, k: int) -> Any:
    material = int(model.geom_matid[k])
    return model.mat_rgba[material] if material >= 0 else model.geom_rgba[k]
