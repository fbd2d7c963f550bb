"""Rendered pictures of a mechanism, by Bullet's software renderer; no display is needed."""

import io
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass

import numpy as np
import pybullet

from bulletbridge.mechanism.bullet import read_bullet
from bulletbridge.numerics.records import Array
from bulletbridge.surface.loops_file import ModelSpec
from bulletbridge.surface.worlds import (
    BASE,
    connect_direct,
    disconnect,
    load_bodies,
    readable,
)

WIDTH, HEIGHT = 480, 360
FIELD_OF_VIEW = 40.0  # [deg], vertical
FLAT = 0.35
"""A cloud of links thinner than this, relative to its width, is looked at from its flat side."""


@dataclass(frozen=True)
class Camera:
    """Where pictures are taken from."""

    target: Array  # (3,) [m]
    direction: Array  # (3,) unit vector from the target to the camera
    distance: float  # [m]


def photograph(spec: ModelSpec, states: Sequence[Array], framing: Sequence[Array]) -> list[bytes]:
    """PNG pictures of configurations, one camera for all.

    Args:
        spec: The model.
        states: Configurations (nq,) to show.
        framing: Configurations that the camera has to have in view.
    """
    client = connect_direct()
    with closing(_Client(client)):
        ids = load_bodies(spec, client)
        bodies = read_bullet(readable(ids), client)
        still = np.zeros(bodies.mechanism.nv)
        boxes: list[Array] = []
        for q in framing:
            bodies.write(q, still)
            boxes.append(link_boxes(ids, client))
        camera = frame_all(np.concatenate(boxes))
        found: list[bytes] = []
        for q in states:
            bodies.write(q, still)
            found.append(take(camera, client))
        return found


class _Client:
    def __init__(self, client: int) -> None:
        self.client = client

    def close(self) -> None:
        disconnect(self.client)


def link_boxes(ids: dict[str, int], client: int) -> Array:
    """Axis-aligned boxes (n, 2, 3) [m] of all links: lower and upper corner."""
    boxes = [
        pybullet.getAABB(body, link, physicsClientId=client)
        for body in ids.values()
        for link in range(BASE, pybullet.getNumJoints(body, physicsClientId=client))
    ]
    return np.array([box for box in boxes if np.all(np.isfinite(box))], float).reshape(-1, 2, 3)


def frame_all(boxes: Array) -> Camera:
    """A camera that has all boxes (n, 2, 3) in view; a flat mechanism is seen from its flat side."""
    if not len(boxes):
        return Camera(np.zeros(3), np.array([0.6, -0.7, 0.4]), 2.0)
    lower, upper = boxes[:, 0].min(axis=0), boxes[:, 1].max(axis=0)
    target = 0.5 * (lower + upper)
    centres = boxes.mean(axis=1) - boxes.mean(axis=(0, 1))
    _, sizes, axes = np.linalg.svd(centres, full_matrices=False)
    direction = np.array([0.55, -0.75, 0.38])
    if len(sizes) == 3 and sizes[0] > 0.0 and sizes[2] < FLAT * sizes[1]:
        normal = axes[2] * (-1.0 if axes[2] @ direction < 0.0 else 1.0)
        direction = normal + (0.12 * direction if abs(normal[2]) < 0.9 else 0.35 * direction)
    direction = direction / np.linalg.norm(direction)
    corners = np.array(
        [
            [box[i, 0], box[j, 1], box[k, 2]]
            for box in boxes
            for i in (0, 1)
            for j in (0, 1)
            for k in (0, 1)
        ]
    )
    return Camera(target, direction, _distance(corners - target, direction))


def _distance(points: Array, direction: Array) -> float:
    """Distance at which all points (n, 3) around the target are in view."""
    right, up = screen_axes(direction)
    half = np.tan(np.radians(0.5 * FIELD_OF_VIEW))
    across, above, towards = np.abs(points @ right), np.abs(points @ up), points @ direction
    needed = towards + np.maximum(across / (half * WIDTH / HEIGHT), above / half)
    return max(1.08 * float(needed.max()), 0.05)


def screen_axes(direction: Array) -> tuple[Array, Array]:
    """Right and up (3,) of a camera that looks against ``direction``."""
    pole = np.array([0.0, 0.0, 1.0]) if abs(direction[2]) < 0.95 else np.array([0.0, 1.0, 0.0])
    right = np.cross(pole, direction)
    right /= np.linalg.norm(right)
    return right, np.cross(direction, right)


def take(camera: Camera, client: int) -> bytes:
    """One picture, PNG."""
    eye = camera.target + camera.distance * camera.direction
    right, up = screen_axes(camera.direction)
    view = pybullet.computeViewMatrix(eye.tolist(), camera.target.tolist(), up.tolist())
    lens = pybullet.computeProjectionMatrixFOV(
        FIELD_OF_VIEW, WIDTH / HEIGHT, 0.02 * camera.distance, 10.0 * camera.distance
    )
    light = camera.direction + 0.6 * up - 0.4 * right
    pixels = pybullet.getCameraImage(
        WIDTH,
        HEIGHT,
        view,
        lens,
        lightDirection=light.tolist(),
        shadow=0,
        renderer=pybullet.ER_TINY_RENDERER,
        physicsClientId=client,
    )[2]
    return png(np.reshape(np.asarray(pixels, np.uint8), (HEIGHT, WIDTH, 4))[:, :, :3])


def png(pixels: np.ndarray) -> bytes:
    """PNG of (height, width, 3) bytes."""
    from matplotlib.image import imsave

    buffer = io.BytesIO()
    imsave(buffer, pixels, format="png")
    return buffer.getvalue()
