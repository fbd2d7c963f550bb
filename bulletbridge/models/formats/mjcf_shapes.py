"""MuJoCo's geoms as visual and collision shapes of links, and of what stands in the world."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bulletbridge.console import write_text
from bulletbridge.models.bundled import unit_sphere
from bulletbridge.models.formats.mjcf_file import asset_path, library
from bulletbridge.models.formats.mjcf_places import Places, turn
from bulletbridge.models.formats.robot import GROUND, Link, Pose, Shape, left_out, told
from bulletbridge.models.formats.urdf_text import BULLETS_MESHES

Flags = NDArray[np.bool_]
SHOWN = 3
"""Groups of geoms below this one are drawn by MuJoCo unless told otherwise."""
PLANE = 50.0
"""Half the width at which a plane is drawn that has none [m]; it has no end for contacts."""
THIN = 0.01
"""Thickness of the box that a plane is drawn as [m]."""


def add_shapes(spec: Any, model: Any, places: Places, path: Path, folder: Path) -> None:
    """Give the links of a scene their shapes; what URDF has not is noted.

    Planes, and shapes of bodies that stand still and carry nothing that moves, are scenery.

    Args:
        spec: What MuJoCo read,
        model: and compiled.
        places: The scene, and where in it bodies are.
        path: The file.
        folder: Where meshes go that MuJoCo makes, or that Bullet cannot read.
    """
    scene, lost = places.scene, dict[str, list[str]]()
    plane: Flags = model.geom_type == library().mjtGeom.mjGEOM_PLANE
    still: Flags = plane | np.isin(model.geom_bodyid, list(places.standing))
    meets = _meeting(model)
    touched: Flags = still & (meets[:, ~still].any(axis=1) | still.all())
    collides: Flags = np.where(still, touched, meets.any(axis=1) | _collides(model))
    ground = Link(GROUND)
    for k in range(model.ngeom):
        body = int(model.geom_bodyid[k])
        found = _shape(spec, model, k, path, folder)
        if isinstance(found, str):
            name = model.geom(k).name or f"a geom of {places.body_names[body]}"
            lost.setdefault(found, []).append(name)
            continue
        if not still[k]:
            robot, name, here = places.of(body)
            link = robot.links[name]
        elif plane[k] and collides[k]:
            _stand_plane(model, places, k, found)
            continue
        else:
            link, here = ground, places.in_world(body)
        shape = replace(found, place=here @ found.place)
        if collides[k]:
            link.collisions.append(shape)
            link.friction = max(link.friction or 0.0, _friction(model, k))
        if model.geom_group[k] < SHOWN or not collides[k]:
            link.visuals.append(shape)
    if ground.visuals or ground.collisions:
        scene.stand(GROUND, ground, Pose())
    scene.notes += left_out(lost)
    _say_what_meets(model, places, meets, still, collides)


def _stand_plane(model: Any, places: Places, k: int, drawn: Shape) -> None:
    """Put a plane into the scenery: it has no end where it is touched, and is drawn as a box."""
    at = Pose(turn(model.geom_quat[k]), model.geom_pos[k].copy())
    place = places.in_world(int(model.geom_bodyid[k])) @ at
    drawn = replace(drawn, place=at.inverse @ drawn.place)
    link = Link(GROUND, None, [drawn], [Shape("plane", (), Pose())])
    link.friction = _friction(model, k)
    places.scene.stand(model.geom(k).name or GROUND, link, place)


def _friction(model: Any, k: int) -> float:
    """Bullet multiplies the coefficients of both: the root is right for two that are alike."""
    frictionless = (model.geom_condim <= 1).all()  # the larger number of both counts
    return 0.0 if frictionless else float(np.sqrt(model.geom_friction[k][0]))


def _collides(model: Any) -> Flags:
    """Whether each geom collides with anything, in some scene."""
    return np.asarray((model.geom_contype != 0) | (model.geom_conaffinity != 0), np.bool_)


def _meeting(model: Any) -> Flags:
    """Whether geoms meet by MuJoCo's rules (ngeom, ngeom), but for those of parents and bodies."""
    contype, affinity = model.geom_contype, model.geom_conaffinity
    one_way = (contype[:, None] & affinity[None, :]) != 0
    meets = np.asarray(one_way | one_way.T, np.bool_)
    body = model.geom_bodyid
    for signature in model.exclude_signature:
        first, second = int(signature) >> 16, int(signature) & 0xFFFF
        apart = (body[:, None] == first) & (body[None, :] == second)
        meets &= ~(apart | apart.T)
    for one, two in zip(model.pair_geom1, model.pair_geom2, strict=True):
        meets[one, two] = meets[two, one] = True
    if model.opt.disableflags & library().mjtDisableBit.mjDSBL_CONTACT:
        meets[...] = False
    return meets


def _say_what_meets(
    model: Any, places: Places, meets: Flags, still: Flags, collides: Flags
) -> None:
    """Note that there is scenery, and where contacts differ from MuJoCo's."""
    scene = places.scene
    scene.note_scenery()
    touched, moving = np.flatnonzero(still & collides), np.flatnonzero(~still & collides)
    passing: dict[str, bool] = {}
    for k in moving:
        name = places.full_link(int(model.geom_bodyid[k]))
        passing[name] = passing.get(name, True) and not meets[k, touched].any()
    through = [name for name, passes in passing.items() if passes]
    said = {"links that MuJoCo lets pass through the scenery meet it here: {}": through}
    scene.notes += told(said) if len(touched) else []
    rubbing = [_friction(model, int(k)) ** 2 for k in (*touched, *moving)]
    if len(touched) and rubbing and min(rubbing) < max(rubbing):
        scene.notes.append(
            "friction of two links in contact is the geometric mean of their largest, MuJoCo's the"
            f" larger one: they are from {min(rubbing):g} to {max(rubbing):g}"
        )


def _shape(spec: Any, model: Any, k: int, path: Path, folder: Path) -> Shape | str:
    """A geom on its body, or why there is none."""
    kind = library().mjtGeom(model.geom_type[k]).name.removeprefix("mjGEOM_").lower()
    size = [float(x) for x in model.geom_size[k]]
    place = Pose(turn(model.geom_quat[k]), model.geom_pos[k].copy())
    rgba = tuple(float(x) for x in _colour(model, k))
    if kind == "box":
        return Shape("box", tuple(2.0 * x for x in size), place, "", rgba)
    if kind == "sphere":
        return Shape("sphere", (size[0],), place, "", rgba)
    if kind == "ellipsoid":
        return Shape("mesh", (size[0], size[1], size[2]), place, str(unit_sphere()), rgba)
    if kind in ("cylinder", "capsule"):
        return Shape(kind, (size[0], 2.0 * size[1]), place, "", rgba)
    if kind == "plane":
        wide, long = (2.0 * (x or PLANE) for x in size[:2])
        below = place @ Pose(np.eye(3), np.array([0.0, 0.0, -0.5 * THIN]))
        return Shape("box", (wide, long, THIN), below, "", rgba)
    if kind == "mesh":
        return _mesh(spec, model, k, place, path, folder, rgba)
    return f"shapes that URDF has not ({kind})"


def _mesh(
    spec: Any, model: Any, k: int, place: Pose, path: Path, folder: Path, rgba: tuple[float, ...]
) -> Shape:
    """A mesh where its file has it: MuJoCo moves vertices to their centre and principal axes.

    One that is in no file, or in none that Bullet reads, is written as MuJoCo has it.
    """
    number = int(model.geom_dataid[k])
    asset, scale = spec.meshes[number], (1.0, 1.0, 1.0)
    moved = Pose(turn(model.mesh_quat[number]), model.mesh_pos[number].copy())
    file = asset_path(spec, path, asset.file, spec.meshdir) if asset.file else None
    turned = np.any(asset.refpos) or not np.array_equal(asset.refquat, (1.0, 0.0, 0.0, 0.0))
    if file is None or file.suffix.lower() not in BULLETS_MESHES or turned:
        file = folder / f"mesh_{number}.obj"
        first, at = int(model.mesh_vertadr[number]), int(model.mesh_faceadr[number])
        corners = model.mesh_vert[first : first + int(model.mesh_vertnum[number])] @ moved.R.T
        faces = model.mesh_face[at : at + int(model.mesh_facenum[number])] + 1
        lines = [f"v {x:.9g} {y:.9g} {z:.9g}" for x, y, z in corners + moved.p]
        lines += [f"f {a} {b} {c}" for a, b, c in faces]
        write_text(file, "\n".join(lines) + "\n")
    else:
        scale = tuple(float(x) for x in asset.scale)
    return Shape("mesh", scale, place @ moved.inverse, str(file.resolve()), rgba)


def _colour(model: Any, k: int) -> Any:
    material = int(model.geom_matid[k])
    return model.mat_rgba[material] if material >= 0 else model.geom_rgba[k]
