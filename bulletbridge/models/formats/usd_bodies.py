"""Bodies of a USD stage: places, masses by UsdPhysics' rules, shapes."""

from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bulletbridge.errors import ModelError
from bulletbridge.mechanism.frames import inertia_at
from bulletbridge.models.formats import solids
from bulletbridge.models.formats.robot import Inertial, Link, Pose, Shape
from bulletbridge.models.formats.solids import Solid
from bulletbridge.numerics.records import Array

ALONE = Inertial(1.0, np.zeros(3), 0.4 * 0.1**2 * np.eye(3))
"""Of a body without mass and shapes: a ball, as PhysX takes it."""
ALONG = {"X": 0, "Y": 1, "Z": 2}
ROUND = 1e-4
"""Relative difference of scales up to which a round shape is still round."""


class Units(NamedTuple):
    """What a stage counts in: metres and kilograms in its units of length and mass."""

    metre: float
    kilogram: float

    @property
    def inertia(self) -> float:
        """[kg m²], which is also that of torques, for seconds are seconds."""
        return self.kilogram * self.metre**2


def value_of(prim: Any, name: str) -> Any:
    """Value of an attribute; None where there is none."""
    attribute = prim.GetAttribute(name)
    return attribute.Get() if attribute else None


def schema(name: str) -> Any:
    """A module of USD, which is there since a stage was opened."""
    return import_module(f"pxr.{name}")


def matrix_of(prim: Any) -> Array:
    """Affine map (4, 4) from a prim to the world, in the stage's units; columns are images."""
    usd, geometry = schema("Usd"), schema("UsdGeom")
    frame = geometry.Xformable(prim).ComputeLocalToWorldTransform(usd.TimeCode.Default())
    return np.array(frame, float).T


def place_of(prim: Any, units: Units, local: Array | None = None) -> Pose:
    """Frame of a prim in the world, without its scale, at a point (3,) given in the prim."""
    frame = matrix_of(prim)
    at = np.zeros(3) if local is None else local
    return Pose(_turn(frame[:3, :3]), (frame[:3, :3] @ at + frame[:3, 3]) * units.metre)


def _turn(linear: Array) -> Array:
    """Rotation (3, 3) of a linear map with scales."""
    left, _, right = np.linalg.svd(linear)
    R = left @ right
    return R if np.linalg.det(R) > 0.0 else -R


def link_of(
    prim: Any,
    name: str,
    units: Units,
    folder: Path,
    assumed: list[str],
    lost: dict[str, list[str]],
) -> Link:
    """A rigid body with mass and shapes.

    Args:
        prim: The body.
        name: What the link is called.
        units: Of the stage.
        folder: Where meshes go.
        assumed: Takes the name where nothing says the mass.
        lost: Takes it by what was left out.
    """
    link, colliders = Link(name), list[tuple[Any, Solid]]()
    usd, physics, geometry = schema("Usd"), schema("UsdPhysics"), schema("UsdGeom")
    body = place_of(prim, units).inverse
    parts = iter(usd.PrimRange(prim, usd.TraverseInstanceProxies()))
    for part in parts:
        if part != prim and part.HasAPI(physics.RigidBodyAPI):
            parts.PruneChildren()
            continue
        if not part.IsA(geometry.Gprim):
            continue
        collides = part.HasAPI(physics.CollisionAPI)
        collides = collides and physics.CollisionAPI(part).GetCollisionEnabledAttr().Get() is True
        file = folder / f"{name}_{len(link.visuals) + len(link.collisions)}.stl"
        found = _shape(part, body, units, file)
        if isinstance(found, str):
            lost.setdefault(found, []).append(name)
            continue
        shape, solid = found
        if collides:
            link.collisions.append(shape)
            colliders.append((part, solid))
        if str(geometry.Imageable(part).ComputePurpose()) in ("default", "render"):
            link.visuals.append(shape)
    if any(_is_shell(part) for part, _ in colliders):
        lost.setdefault("that shapes are shells, whose mass is in their surface", []).append(name)
    link.inertial = _inertial(prim, colliders, units)
    if link.inertial is None:
        link.inertial = ALONE
        assumed.append(name)
    return link


def _shape(part: Any, body: Pose, units: Units, file: Path) -> tuple[Shape, Solid] | str:
    """A shape in its body, and what it is as a solid; or why there is none."""
    frame, place = matrix_of(part), place_of(part, units)
    scale = np.linalg.norm(frame[:3, :3], axis=0) * units.metre
    at, kind = body @ place, str(part.GetTypeName())
    shown = value_of(part, "primvars:displayColor")
    rgba = tuple(float(x) for x in (*shown[0], 1.0)) if shown else ()

    def value(name: str) -> float:
        return float(part.GetAttribute(name).Get())

    if kind == "Cube":
        x, y, z = (float(one) for one in value("size") * scale)
        return Shape("box", (x, y, z), at, "", rgba), solids.box(x, y, z).placed(at)
    if kind == "Sphere":
        if np.ptp(scale) > ROUND * scale.max():
            return "ellipsoids"
        radius = value("radius") * float(scale.max())
        return Shape("sphere", (radius,), at, "", rgba), solids.SOLIDS["sphere"](radius).placed(at)
    if kind in ("Cylinder", "Capsule"):
        axis = ALONG[str(part.GetAttribute("axis").Get())]
        across = np.delete(scale, axis)
        if np.ptp(across) > ROUND * across.max():
            return "cylinders that are not round"
        sizes = value("radius") * float(across.max()), value("height") * float(scale[axis])
        at = at @ Pose(np.roll(np.eye(3), axis + 1, axis=0))
        kind = kind.lower()
        return Shape(kind, sizes, at, "", rgba), solids.SOLIDS[kind](*sizes).placed(at)
    if kind == "Mesh":
        return _mesh(part, frame, body, units, file, rgba)
    return f"shapes that URDF has not ({kind.lower() or 'without a type'})"


def _mesh(
    part: Any, frame: Array, body: Pose, units: Units, file: Path, rgba: tuple[float, ...]
) -> tuple[Shape, Solid] | str:
    """A mesh written to a file, in the axes of its body; the hull of one that is not closed."""
    import trimesh

    points = part.GetAttribute("points").Get()
    counts = part.GetAttribute("faceVertexCounts").Get()
    corners = part.GetAttribute("faceVertexIndices").Get()
    if not points or not counts or not corners:
        return "meshes without faces"
    where = np.array(points, float) @ frame[:3, :3].T + frame[:3, 3]
    where = (where * units.metre) @ body.R.T + body.p
    faces, first = list[tuple[int, int, int]](), 0
    for count in counts:
        polygon = [int(corners[first + k]) for k in range(count)]
        faces += [(polygon[0], polygon[k], polygon[k + 1]) for k in range(1, count - 1)]
        first += count
    made: Any = trimesh.Trimesh(where, faces)
    if not len(made.faces) or not np.isfinite(where).all():
        return "meshes without faces"
    made.export(file)
    shape = Shape("mesh", (1.0, 1.0, 1.0), Pose(), str(file.resolve()), rgba)
    return shape, solids.of_mesh(made) or Solid(0.0, where.mean(axis=0), np.zeros((3, 3)))


def _is_shell(part: Any) -> bool:
    """Whether a collider weighs as a shell by Newton's or MuJoCo's attributes."""
    said, shell = (value_of(part, name) for name in ("newton:massModel", "mjc:shellinertia"))
    return str(said) == "shell" if said else bool(shell)


def _inertial(prim: Any, colliders: list[tuple[Any, Solid]], units: Units) -> Inertial | None:
    """Mass of a body: what it says itself, the rest from its colliders; None if nothing says it.

    Newton's tensor about the centre of mass, in the body's axes, comes before principal moments.
    """
    physics = schema("UsdPhysics")
    own: Any = physics.MassAPI(prim) if prim.HasAPI(physics.MassAPI) else None
    mass = 0.0 if own is None else float(own.GetMassAttr().Get() or 0.0) * units.kilogram
    density = _density(prim, units)
    mine = float(density or 0.0)
    of_shapes = solids.together([(_mass(part, one, mine, units), one) for part, one in colliders])
    tensor = _tensor(prim, units)
    com = None if own is None else own.GetCenterOfMassAttr().Get()
    moments = None if own is None else own.GetDiagonalInertiaAttr().Get()
    if of_shapes is None and not (mass > 0.0 or np.any(moments) or tensor is not None):
        return None
    basis = of_shapes or ALONE
    total = mass or basis.mass
    J = basis.J * (total / basis.mass)
    at = basis.com
    if com is not None and np.isfinite(np.array(com, float)).all():
        scale = np.linalg.norm(matrix_of(prim)[:3, :3], axis=0) * units.metre
        given = np.array(com, float) * scale
        if of_shapes is not None:
            arm = at - given
            J = J + total * inertia_at(arm)
        at = given
    if tensor is not None:
        J = tensor
    elif own is not None and moments is not None and np.any(moments):
        axes = np.eye(3)
        quat = own.GetPrincipalAxesAttr().Get()
        turn = [*quat.GetImaginary(), quat.GetReal()]
        if np.any(turn):
            from scipy.spatial.transform import Rotation

            axes = Rotation.from_quat(turn).as_matrix()
        J = (axes * (np.array(moments, float) * units.inertia)) @ axes.T
    return Inertial(total, at, J)


def _tensor(prim: Any, units: Units) -> Array | None:
    """Newton's tensor (3, 3) of a body: xx, yy, zz, xy, xz, yz; None if it has none."""
    given = value_of(prim, "newton:inertia")
    if given is None:
        return None
    numbers = np.array(given, float)
    if numbers.shape != (6,) or not np.isfinite(numbers).all():
        raise ModelError(
            f"newton:inertia of '{prim.GetName()}' is {numbers.tolist()}; give the six numbers xx,"
            " yy, zz, xy, xz, yz"
        )
    xx, yy, zz, xy, xz, yz = numbers * units.inertia
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def _density(prim: Any, units: Units) -> float | None:
    """Density that a prim says or its material has [kg/m³]."""
    physics, shade = schema("UsdPhysics"), schema("UsdShade")
    by = units.kilogram / units.metre**3
    if prim.HasAPI(physics.MassAPI):
        given = float(physics.MassAPI(prim).GetDensityAttr().Get() or 0.0)
        if given > 0.0:
            return given * by
    material = shade.MaterialBindingAPI(prim).ComputeBoundMaterial("physics")[0]
    if material and material.GetPrim().HasAPI(physics.MaterialAPI):
        given = float(physics.MaterialAPI(material.GetPrim()).GetDensityAttr().Get() or 0.0)
        if given > 0.0:
            return given * by
    return None


def _mass(part: Any, solid: Solid, of_body: float, units: Units) -> float:
    """Mass of a collider [kg]."""
    physics = schema("UsdPhysics")
    if part.HasAPI(physics.MassAPI):
        given = float(physics.MassAPI(part).GetMassAttr().Get() or 0.0)
        if given > 0.0:
            return given * units.kilogram
    return (_density(part, units) or of_body or solids.DENSITY) * solid.volume
