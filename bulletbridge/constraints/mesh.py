"""A point that stays on the surface of a mesh, facet by facet.

The facet nearest to the point is a plane: gap, row and drift are those of ``POINT_ON_PLANE``. From
facet to facet the normal jumps, and the velocity filter turns the velocity with it at a cost of
energy of the square of the bend; so edges that bend more than a limit end the motion.
"""

from pathlib import Path
from typing import Any

import numpy as np

from bulletbridge.constraints.joints import Frame
from bulletbridge.constraints.user import Kinematics, Rows
from bulletbridge.errors import ModelError, StepError
from bulletbridge.mechanism.mesh_files import read_mesh
from bulletbridge.numerics.records import Array

BEYOND = -1e-9
"""Barycentric coordinate below which a point is beyond an edge of its facet."""


class PointOnMesh:
    """The origin of frame b stays on the mesh that is fixed in frame a; a constraint in Python.

    Args:
        name: What reports and errors call it.
        a: Frame in which the mesh is given.
        b: Its origin is the point.
        mesh: A ``trimesh.Trimesh``, or a file that trimesh reads [m].
        sharpest: Largest bend [rad] of an edge that the point may cross.

    Raises:
        ModelError: The mesh is empty or no manifold: an edge has more than two facets, or they
            are wound against each other.
    """

    units = ("m",)

    def __init__(
        self, name: str, a: Frame, b: Frame, mesh: str | Path | Any, sharpest: float = 0.3
    ) -> None:
        self.name, self.a, self.b, self.sharpest = name, a, b, sharpest
        found: Any = mesh
        if isinstance(mesh, str | Path):
            try:
                found = read_mesh(mesh)
            except ModelError as error:
                raise ModelError(f"mesh of '{name}': {error}") from None
        corners = np.asarray(found.vertices, float)[np.asarray(found.faces, int)]
        across = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        size = np.linalg.norm(across, axis=1)
        if not len(size) or not np.all(size > 0.0):
            raise ModelError(f"mesh of '{name}' has no facets, or some without area; repair it")
        self._corners, self._normals = corners, across / size[:, None]
        self._bends = self._edge_bends(np.asarray(found.faces, int))

    def _edge_bends(self, faces: np.ndarray) -> Array:
        """Bend (n, 3) [rad] of the edge opposite to each corner; infinite at a border."""
        sides: dict[tuple[int, int], list[tuple[int, int]]] = {}
        directed: set[tuple[int, int]] = set()
        for f, face in enumerate(faces.tolist()):
            for k in range(3):
                i, j = face[(k + 1) % 3], face[(k + 2) % 3]
                sides.setdefault((min(i, j), max(i, j)), []).append((f, k))
                if (i, j) in directed:
                    raise ModelError(
                        f"mesh of '{self.name}' is no manifold: the edge of its vertices {i} and "
                        f"{j} has facets that overlap or are wound against each other; repair it, "
                        f"for instance with trimesh.repair, or merge vertices"
                    )
                directed.add((i, j))
        bends = np.full((len(faces), 3), np.inf)
        for (f, k), *others in sides.values():
            for g, m in others:
                cosine = float(np.clip(self._normals[f] @ self._normals[g], -1.0, 1.0))
                bends[f, k] = bends[g, m] = np.arccos(cosine)
        return bends

    def rows(self, kinematics: Kinematics) -> Rows:
        """The row at a state.

        Raises:
            StepError: The point is beyond an edge that is too sharp, or a border.
        """
        a, b = kinematics.point(self.a), kinematics.point(self.b)
        v, apart = kinematics.v, b.p_W - a.p_W
        face = self._nearest(a.R_W.T @ apart)
        n = a.R_W @ self._normals[face]
        carried = a.J + np.cross(a.J_angular.T, apart).T
        w, u = a.J_angular @ v, (b.J - carried) @ v
        drift = a.bias + np.cross(a.bias_angular, apart) + np.cross(w, np.cross(w, apart))
        gamma = n @ (b.bias - drift - 2.0 * np.cross(w, u))
        gap = n @ (apart - a.R_W @ self._corners[face, 0])
        return Rows(np.array([gap]), (n @ (b.J - carried))[None], np.zeros(1), np.array([gamma]))

    def _nearest(self, s: Array) -> int:
        """Number of the facet nearest to a point (3,) of frame a [m]."""
        import trimesh

        triangles: Any = trimesh.triangles
        there: Array = triangles.closest_point(self._corners, np.tile(s, (len(self._corners), 1)))
        face = int(np.argmin(np.linalg.norm(there - s, axis=1)))
        shares: Array = triangles.points_to_barycentric(self._corners[[face]], s[None])[0]
        beyond = shares < BEYOND
        if np.any(self._bends[face][beyond] > self.sharpest):
            raise StepError(
                f"'{self.name}' goes over an edge that bends by "
                f"{np.max(self._bends[face][beyond]):.3g} rad (limit {self.sharpest:.3g} rad; inf "
                f"is a border) near {np.round(s, 6).tolist()} m in its mesh; end the motion "
                f"before, or refine the mesh there"
            )
        return face
