"""A Bullet world in a browser's scene: links, places of loops, arrows of their forces."""

from typing import Any, cast

import numpy as np

from bulletbridge.bullet.reader import BulletBodies
from bulletbridge.numerics.records import Array
from bulletbridge.system.system import System
from bulletbridge.viewer.overlay import NEGLIGIBLE, Scale, marks_of
from bulletbridge.viewer.rods import Link, link_poses, rod_ends
from bulletbridge.viewer.visuals import Texture, Visual, bones_of, visuals_of

FORCE, MOMENT, LOOP = (214, 98, 20), (92, 45, 180), (200, 30, 60)
BONE = (70, 84, 96)
LIGHT, DARK = (232, 238, 242), (205, 212, 218)
WEIGHT_LENGTH, LONGEST = 0.6, 1.0
"""Length of an arrow as large as the ``Scale``, and of any arrow, in sizes of the robot."""
FLAT = 8.0
"""What is larger than so many times the rest is a floor, and becomes a grid."""


class Scene:
    """Objects of viser's for all that is in a system's world.

    Args:
        server: Viser's.
        system: In a Bullet world.
        client: That world.

    Attributes:
        links: Handle of each link's frame; what is seen of it hangs there.
        size: Of the robots [m].
        middle: (3,) [m] of them at the start.
    """

    def __init__(self, server: Any, system: System, client: int) -> None:
        self._server, self._system, self._client = server, system, client
        self._scale, self._bodies = Scale.of(system), cast(BulletBodies, system.world)
        visuals = visuals_of(client)
        poses = dict(zip(
            places := sorted({visual.link for visual in visuals}),
            link_poses(client, places), strict=True,
        ))  # fmt: skip
        boxes = {id(v): _box(v, *poses[v.link]) for v in visuals}
        floors = _floors(boxes)
        shown = [v for v in visuals if id(v) not in floors]
        self._bones = bones_of(client, places)
        corners = [boxes[id(v)] for v in shown] + self._bone_ends()
        around = np.reshape(corners or [[-0.5] * 3, [0.5] * 3], (-1, 3))
        lower, upper = around.min(axis=0), around.max(axis=0)
        self.size = max(float(np.linalg.norm(upper - lower)), 1e-3)
        self.middle: Array = 0.5 * (lower + upper)
        self.links: dict[Link, Any] = {}
        for link in sorted({v.link for v in shown}):
            body, index = link
            self.links[link] = server.scene.add_frame(f"/bodies/{body}/{index}", show_axes=False)
        for n, visual in enumerate(shown):
            self._add(n, visual)
        height = lower[2] if not floors else max(float(boxes[f][1][2]) for f in floors)
        self._add_floor(float(height))
        self.show()

    def show(self) -> None:
        """Put everything where the world and the system have it now."""
        links = list(self.links)
        with self._server.atomic():
            for link, (p, turn) in zip(links, link_poses(self._client, links), strict=True):
                handle = self.links[link]
                handle.position, handle.wxyz = p, np.roll(turn, 1)
            if self._bones:
                ends = np.array(self._bone_ends(), np.float32)
                self._server.scene.add_line_segments(
                    "/bones", ends, BONE, thickness=0.012 * self.size
                )
            ends = rod_ends(self._system.constraints, self._bodies).astype(np.float32)
            if len(ends):
                self._server.scene.add_line_segments(
                    "/rods", ends, BONE, thickness=0.01 * self.size
                )
            self._show_loops()

    def _bone_ends(self) -> list[Array]:
        """Origins (2, 3) of the two links of each bone [m]."""
        ends = link_poses(self._client, [link for bone in self._bones for link in bone])
        places = np.reshape([p for p, _ in ends], (-1, 2, 3))
        return list(places)

    def _add(self, n: int, visual: Visual) -> None:
        """A piece of a link."""
        body, index = visual.link
        *colour, opacity = visual.colour
        name = f"/bodies/{body}/{index}/{n}"
        if visual.texture is not None:
            self._server.scene.add_mesh_trimesh(name, _painted(visual, visual.texture))
            return
        self._server.scene.add_mesh_simple(
            name,
            visual.vertices.astype(np.float32),
            visual.faces.astype(np.uint32),
            color=tuple(round(255 * c) for c in colour),
            opacity=None if opacity >= 1.0 else opacity,
            side="double",
        )

    def _add_floor(self, height: float) -> None:
        cell = 10.0 ** np.floor(np.log10(self.size))
        self._server.scene.add_grid(
            "/floor",
            width=20.0 * self.size,
            height=20.0 * self.size,
            position=(*self.middle[:2], height - 1e-3 * self.size),
            cell_size=0.5 * cell,
            section_size=cell,
            cell_color=LIGHT,
            section_color=DARK,
            infinite_grid=True,
            fade_distance=12.0 * self.size,
            shadow_opacity=0.25,
        )

    def _show_loops(self) -> None:
        """Points where loops are closed, and arrows of what they carry."""
        scene, unit = self._server.scene, self.size
        forces, moments = list[Array](), list[Array]()
        marks = [m for m in marks_of(self._system) if not m.spring and m.finite]
        self._scale.fit(marks, self._system.encoded.length)
        weight = self._scale.force
        for mark in marks:
            scene.add_icosphere(
                f"/loops/{mark.name}", 0.013 * unit, LOOP, position=mark.point_b, subdivisions=2
            )
            for vector, whole, arrows in (
                (mark.force, weight, forces),
                (mark.moment, weight * self._system.encoded.length, moments),
            ):
                length = float(np.linalg.norm(vector)) / whole
                if length > NEGLIGIBLE:
                    long = unit * min(WEIGHT_LENGTH * length, LONGEST) / (length * whole)
                    arrows.append(np.array([mark.point_b, mark.point_b + long * vector]))
        for name, arrows, colour in (("forces", forces, FORCE), ("moments", moments, MOMENT)):
            points = np.array(arrows, np.float32).reshape(-1, 2, 3)
            if not len(points):
                scene.remove_by_name(f"/{name}")
                continue
            scene.add_arrows(
                f"/{name}",
                points,
                colour,
                shaft_radius=0.006 * unit,
                head_radius=0.015 * unit,
                head_length=0.04 * unit,
            )


def _painted(visual: Visual, texture: Texture) -> Any:
    """A piece with its texture, as viser takes it."""
    from trimesh import Trimesh
    from trimesh.visual import TextureVisuals
    from trimesh.visual.material import PBRMaterial

    material: Any = PBRMaterial(
        baseColorTexture=texture.image,
        baseColorFactor=[round(255 * c) for c in visual.colour],
        alphaMode="OPAQUE" if visual.colour[3] >= 1.0 else "BLEND",
        doubleSided=True,
        metallicFactor=0.0,
        roughnessFactor=0.8,
    )
    look: Any = TextureVisuals(uv=texture.uv, material=material)
    return Trimesh(visual.vertices, visual.faces, visual=look, process=False)


def _box(visual: Visual, p: Array, turn: Array) -> Array:
    """Lower and upper corner (2, 3) of a piece in the world [m]."""
    from scipy.spatial.transform import Rotation

    points = Rotation.from_quat(turn).apply(visual.vertices) + p
    return np.array([points.min(axis=0), points.max(axis=0)])


def _floors(boxes: dict[int, Array]) -> set[int]:
    """What is so much larger than the rest that it is what this stands on."""
    sizes = {key: float(np.linalg.norm(box[1] - box[0])) for key, box in boxes.items()}
    ordered = sorted(sizes, key=lambda key: sizes[key])
    for k in range(1, len(ordered)):
        if sizes[ordered[k]] > FLAT * sizes[ordered[k - 1]] and sizes[ordered[k]] > 5.0:
            return set(ordered[k:])
    return set()
