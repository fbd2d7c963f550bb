"""Bodies of a USD stage: places, masses by UsdPhysics' rules, shapes."""

from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bulletbridge.models.formats.robot import Inertial, Link, Pose, Shape
from bulletbridge.numerics.records import Array

DENSITY = 1000.0
"""Of what has neither mass nor density [kg/m³]."""
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


class Solid(NamedTuple):
    """Volume [m³], centre (3,) [m] and inertia about it by density (3, 3) [m^5], in a body."""

    volume: float
    com: Array
    J: Array


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
    colour = part.GetAttribute("primvars:displayColor")
    shown = colour.Get() if colour else None
    rgba = tuple(float(x) for x in (*shown[0], 1.0)) if shown else ()

    def value(name: str) -> float:
        return float(part.GetAttribute(name).Get())

    if kind == "Cube":
        x, y, z = (float(one) for one in value("size") * scale)
        solid = x * y * z, np.diag([y * y + z * z, x * x + z * z, x * x + y * y]) / 12.0
        return Shape("box", (x, y, z), at, "", rgba), _placed(*solid, at)
    if kind == "Sphere":
        if np.ptp(scale) > ROUND * scale.max():
            return "ellipsoids"
        radius = value("radius") * float(scale.max())
        solid = 4.0 / 3.0 * np.pi * radius**3, 0.4 * radius**2 * np.eye(3)
        return Shape("sphere", (radius,), at, "", rgba), _placed(*solid, at)
    if kind in ("Cylinder", "Capsule"):
        axis = ALONG[str(part.GetAttribute("axis").Get())]
        across = np.delete(scale, axis)
        if np.ptp(across) > ROUND * across.max():
            return "cylinders that are not round"
        radius, length = value("radius") * float(across.max()), value("height") * scale[axis]
        at = at @ Pose(np.roll(np.eye(3), axis + 1, axis=0))
        solid = _round_solid(radius, float(length), kind == "Capsule")
        return Shape(kind.lower(), (radius, float(length)), at, "", rgba), _placed(*solid, at)
    if kind == "Mesh":
        return _mesh(part, frame, body, units, file, rgba)
    return f"shapes that URDF has not ({kind.lower() or 'without a type'})"


def _round_solid(radius: float, length: float, capped: bool) -> tuple[float, Array]:
    """Volume, and inertia about the centre over it, of a cylinder or capsule along z."""
    r2, tube = radius**2, np.pi * radius**2 * length
    turning = np.array([3.0 * r2 + length**2, 3.0 * r2 + length**2, 6.0 * r2]) / 12.0
    if not capped:
        return tube, np.diag(turning)
    caps = 4.0 / 3.0 * np.pi * radius**3
    # a half ball: 0.4 r^2 about the centre of the whole one, and so far away with its centre
    away = 0.4 * r2 + 0.25 * length**2 + 0.375 * length * radius
    J = tube * turning + caps * np.array([away, away, 0.4 * r2])
    return tube + caps, np.diag(J / (tube + caps))


def _placed(volume: float, gyration: Array, at: Pose) -> Solid:
    """A solid about its own centre, where it is in its body."""
    return Solid(volume, at.p, volume * (at.R @ gyration @ at.R.T))


def _mesh(
    part: Any, frame: Array, body: Pose, units: Units, file: Path, rgba: tuple[float, ...]
) -> tuple[Shape, Solid] | str:
    """A mesh written to a file, in the axes of its body; the hull of one that is not closed."""
    import trimesh
    from scipy.spatial import QhullError

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
    try:
        closed: Any = made if made.is_volume else made.convex_hull
    except (QhullError, ValueError):
        return shape, Solid(0.0, where.mean(axis=0), np.zeros((3, 3)))
    volume = float(closed.volume)
    closed.density = 1.0
    return shape, Solid(volume, np.array(closed.center_mass), np.array(closed.moment_inertia))


def _inertial(prim: Any, colliders: list[tuple[Any, Solid]], units: Units) -> Inertial | None:
    """Mass of a body: what it says itself, the rest from its colliders; None if nothing says it."""
    physics = schema("UsdPhysics")
    own: Any = physics.MassAPI(prim) if prim.HasAPI(physics.MassAPI) else None
    mass = 0.0 if own is None else float(own.GetMassAttr().Get() or 0.0) * units.kilogram
    density = _density(prim, units)
    mine = float(density or 0.0)
    of_shapes = _together([(_mass(part, one, mine, units), one) for part, one in colliders])
    com = None if own is None else own.GetCenterOfMassAttr().Get()
    moments = None if own is None else own.GetDiagonalInertiaAttr().Get()
    if of_shapes is None and not (mass > 0.0 or np.any(moments)):
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
            J = J + total * (arm @ arm * np.eye(3) - np.outer(arm, arm))
        at = given
    if own is not None and moments is not None and np.any(moments):
        axes = np.eye(3)
        quat = own.GetPrincipalAxesAttr().Get()
        turn = [*quat.GetImaginary(), quat.GetReal()]
        if np.any(turn):
            from scipy.spatial.transform import Rotation

            axes = Rotation.from_quat(turn).as_matrix()
        J = (axes * (np.array(moments, float) * units.inertia)) @ axes.T
    return Inertial(total, at, J)


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
    return (_density(part, units) or of_body or DENSITY) * solid.volume


def _together(parts: list[tuple[float, Solid]]) -> Inertial | None:
    """Several solids as one body."""
    parts = [(mass, solid) for mass, solid in parts if mass > 0.0 and solid.volume > 0.0]
    total = sum(mass for mass, _ in parts)
    if not parts:
        return None
    com = sum((mass * solid.com for mass, solid in parts), np.zeros(3)) / total
    J = np.zeros((3, 3))
    for mass, solid in parts:
        arm = solid.com - com
        J += solid.J * (mass / solid.volume)
        J += mass * (arm @ arm * np.eye(3) - np.outer(arm, arm))
    return Inertial(total, com, J)
