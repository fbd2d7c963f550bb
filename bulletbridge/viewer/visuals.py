"""What bodies in Bullet look like, and where their links are, in double precision."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import pybullet
from scipy.spatial.transform import Rotation

from bulletbridge.bullet.worlds import body_ids
from bulletbridge.errors import warn_user
from bulletbridge.numerics.records import Array, Ints
from bulletbridge.viewer.pictures import bare_colours
from bulletbridge.viewer.rods import Link

SHARP = 0.6
"""Angle [rad] between faces from which on their edge is seen as one."""
MOST_SMOOTHED = 3000
"""Faces of a mesh whose edges are looked for; more take seconds."""


class Texture(NamedTuple):
    """A picture on a surface."""

    uv: Array  # (n, 2) where each vertex is in the picture, from 0 to 1, from its lower left corner
    image: Any  # of Pillow, without opacity, which Bullet does not heed either


class Surface(NamedTuple):
    """Triangles in a frame of their own."""

    vertices: Array  # (n, 3) [m]
    faces: Ints  # (k, 3) numbers of vertices
    texture: Texture | None = None  # what is painted on them, if anything is


@dataclass(frozen=True)
class Visual:
    """One piece of what is seen of a link."""

    link: Link  # on which it is
    vertices: Array  # (n, 3) in the frame of the link [m]
    faces: Ints  # (k, 3) numbers of vertices
    # red, green, blue, opacity, from 0 to 1; it tints a texture
    colour: tuple[float, float, float, float]
    texture: Texture | None = None  # what is painted on it, if anything is


def visuals_of(client: int) -> list[Visual]:
    """All that is seen in a Bullet world but endless planes, piece by piece.

    Links of bodies whose files give no colours have some all the same, to be told apart.
    Meshes that cannot be read here are left out, and named in a warning.
    """
    found, lost = list[Visual](), list[str]()
    known: dict[tuple[int, Sequence[float], str], list[Surface]] = {}
    bodies = body_ids(client)
    bare = bare_colours(bodies, client)
    for body in bodies:
        for data in pybullet.getVisualShapeData(body, physicsClientId=client) or ():
            index, kind, size, file, position, turn, colour = data[1:8]
            shape = kind, size, file.decode()
            if shape not in known:
                known[shape] = list(_surfaces(*shape, lost))
            for vertices, faces, texture in known[shape]:
                placed = Rotation.from_quat(turn).apply(vertices) + np.array(position)
                shade = tuple(colour) if texture else bare.get((body, index), tuple(colour))
                found.append(Visual((body, index), placed, faces, shade, texture))
    if lost:
        warn_user(f"not shown, since they cannot be read: {', '.join(sorted(set(lost)))}")
    return found


def bones_of(client: int, seen: Collection[Link]) -> list[tuple[Link, Link]]:
    """Pairs of links that joints join, of bodies of which nothing is seen."""
    found: list[tuple[Link, Link]] = []
    for body in body_ids(client):
        if any(link[0] == body for link in seen):
            continue
        for joint in range(pybullet.getNumJoints(body, physicsClientId=client)):
            parent = int(pybullet.getJointInfo(body, joint, physicsClientId=client)[16])
            found.append(((body, parent), (body, joint)))
    return found


def _surfaces(kind: int, size: Sequence[float], file: str, lost: list[str]) -> Iterator[Surface]:
    """What a shape of Bullet's shows, edges kept sharp; meshes that cannot be read are noted."""
    import trimesh

    make: dict[int, Callable[[], Any]] = {
        pybullet.GEOM_BOX: lambda: trimesh.creation.box(size),
        pybullet.GEOM_SPHERE: lambda: trimesh.creation.icosphere(3, size[0]),
        pybullet.GEOM_CYLINDER: lambda: trimesh.creation.cylinder(size[1], size[0], 48),
        pybullet.GEOM_CAPSULE: lambda: trimesh.creation.capsule(size[0], size[1]),
    }
    if kind == pybullet.GEOM_MESH:
        try:
            yield from [_surface_of(mesh, size) for mesh in _meshes_of(file)]
        except Exception:  # readers of meshes raise what they like
            lost.append(Path(file).name)
    elif kind in make and any(size):  # some robots hide a shape by giving it no size
        mesh = make[kind]()
        mesh.apply_translation(-mesh.bounds.mean(axis=0))
        yield _with_sharp_edges(mesh)


def _meshes_of(file: str) -> list[Any]:
    """Meshes of a file: those with a texture each by itself, all others as one."""
    import trimesh

    parts = cast(Any, trimesh.load(file, force="scene", process=False)).dump()
    painted = [part for part in parts if _image_of(part) is not None]
    plain = [part for part in parts if _image_of(part) is None]
    return [*painted, trimesh.util.concatenate(plain)] if plain else painted


def _image_of(mesh: Any) -> Any:
    """The texture of a mesh that was read from a file; where one is missing there are stand-ins."""
    image = getattr(getattr(mesh.visual, "material", None), "image", None)
    return image if getattr(image, "format", None) and mesh.visual.uv is not None else None


def _surface_of(mesh: Any, size: Sequence[float]) -> Surface:
    """A mesh at its size: with its picture, or without one smooth but for sharp edges."""
    image = _image_of(mesh)
    if image is not None:  # cut along its edges, and where the picture has its own
        vertices = np.asarray(mesh.vertices, float) * size
        picture = image.convert("RGB")
        picture.format = "JPEG"  # sent as such: PNG takes a second for each of some robots
        texture = Texture(np.asarray(mesh.visual.uv, float), picture)
        return Surface(vertices, np.asarray(mesh.faces, np.int64), texture)
    if len(mesh.faces) <= MOST_SMOOTHED:
        mesh.merge_vertices(merge_norm=True, merge_tex=True)
    mesh.apply_scale(size)
    return _with_sharp_edges(mesh)


def _with_sharp_edges(mesh: Any) -> Surface:
    """Vertices apart where faces meet at an edge, so that it is seen as one."""
    import trimesh

    if len(mesh.faces) <= MOST_SMOOTHED:  # others are apart by the normals of their file
        plain: Any = trimesh.Trimesh(mesh.vertices, mesh.faces, process=False)
        mesh = cast(Any, trimesh.graph.smooth_shade(plain, SHARP))
    return Surface(np.asarray(mesh.vertices, float), np.asarray(mesh.faces, np.int64))
