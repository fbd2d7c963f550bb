"""Rendered pictures of a mechanism, by Bullet's software renderer; no display is needed."""

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pybullet

from bulletbridge.bullet.reader import BulletBodies
from bulletbridge.bullet.worlds import connect_direct, disconnect
from bulletbridge.models.bodies import load_bodies, load_scenery
from bulletbridge.models.modal_beams import read_world
from bulletbridge.models.model_spec import ModelSpec
from bulletbridge.numerics.records import Array
from bulletbridge.viewer.rods import Rods

SIZE = (480, 360)
ROUGH_SIZE = (160, 120)
"""Width and height [pixels] of pictures, and of those that only find out where things are."""
FIELD_OF_VIEW = 40.0  # [deg], vertical
HALF = float(np.tan(np.radians(0.5 * FIELD_OF_VIEW)))
ASPECT = SIZE[0] / SIZE[1]
FROM_CORNER = np.array([0.55, -0.75, 0.38])
FLAT = 0.25
"""A cloud of links thinner than this, relative to its width, is looked at from its flat side."""
FAR, ROOM = 3.0, 1.5
"""A mechanism that travels by more than so many of its sizes is followed, from so many times the
distance at which it fills the picture, since it also turns."""
FILLED = 0.88
"""Share of the picture that the mechanism takes."""


@dataclass(frozen=True)
class Camera:
    """Where pictures are taken from."""

    target: Array  # (3,) [m] what is in the middle
    direction: Array  # (3,) unit vector from there to the camera
    distance: float  # [m]
    width: float = 1.0  # [m] of the mechanism from left to right, at the target

    @property
    def right(self) -> Array:
        """Unit vector (3,) to the right of the picture."""
        flat = abs(self.direction[2]) > 0.95
        pole = np.array([0.0, 1.0, 0.0]) if flat else np.array([0.0, 0.0, 1.0])
        right = np.cross(pole, self.direction)
        return right / np.linalg.norm(right)

    @property
    def up(self) -> Array:
        """Unit vector (3,) to the top of the picture."""
        return np.cross(self.direction, self.right)


def photograph(spec: ModelSpec, states: Sequence[Array], in_view: Sequence[Array]) -> list[bytes]:
    """PNG pictures of configurations, one camera for all; it goes along with what travels far.

    Args:
        spec: The model.
        states: Configurations (nq,) to show.
        in_view: Configurations that the camera has to have in view.
    """
    client = connect_direct()
    try:
        bodies = stage(spec, client)
        framing, rods = framing_of(bodies, in_view), Rods(spec.constraints, bodies)
        pictures = list[bytes]()
        for q in states:
            camera = framing.show(bodies, q)
            rods.show()
            pictures.append(png(take(camera, client, SIZE)[0]))
        return pictures
    finally:
        disconnect(client)


def stage(spec: ModelSpec, client: int) -> BulletBodies:
    """A model for pictures in a client of Bullet's: its robots, and what stands beside them."""
    bodies = read_world(spec, load_bodies(spec, client), client)
    colour_bare(bodies.body_ids.values(), client)
    load_scenery(spec, client)
    return bodies


@dataclass(frozen=True)
class Framing:
    """A camera, and whether it goes along with a mechanism."""

    camera: Camera  # where it is at the start
    centre: Array | None = None  # (3,) [m] middle of the links there; None if it stays

    def show(self, bodies: BulletBodies, q: Array) -> Camera:
        """Put a configuration (nq,) into Bullet, unless it is not finite; the camera for it."""
        if not np.isfinite(q).all():
            return self.camera
        now = link_centres(bodies, q).mean(axis=0)
        if self.centre is None:
            return self.camera
        return replace(self.camera, target=self.camera.target + now - self.centre)


def framing_of(bodies: BulletBodies, states: Sequence[Array]) -> Framing:
    """A view of a run (n, nq): all in view, or near by and going along where it travels far."""
    shown = [states[int(k)] for k in np.linspace(0, len(states) - 1, min(12, len(states)))]
    clouds = [link_centres(bodies, q) for q in shown]
    middles = np.array([cloud.mean(axis=0) for cloud in clouds])
    size = float(np.linalg.norm(clouds[0] - middles[0], axis=1).max())
    if float(np.ptp(middles, axis=0).max()) < FAR * max(size, 0.05):
        return Framing(find_camera(bodies, shown))
    near = find_camera(bodies, shown[:1])
    return Framing(replace(near, distance=ROOM * near.distance), middles[0])


def find_camera(bodies: BulletBodies, states: Sequence[Array]) -> Camera:
    """A camera that has all configurations (nq,) in view; leaves the bodies in the last one.

    Bullet tells the extent of collision shapes only, so rough pictures find out what is visible.
    """
    centres = np.concatenate([link_centres(bodies, q) for q in states])
    middle = centres.mean(axis=0)
    spread = max(float(np.linalg.norm(centres - middle, axis=1).max()), 0.05)
    camera = Camera(middle, _direction(centres - middle), 8.0 * spread)
    for _ in range(6):
        found = _visible(bodies, states, camera)
        if found is None:
            return camera
        lower, upper = found
        size = camera.distance * HALF * np.array([ASPECT, 1.0])
        shift = 0.5 * (lower + upper) * size
        share = float((0.5 * (upper - lower)).max())
        camera = Camera(
            camera.target + shift[0] * camera.right + shift[1] * camera.up,
            camera.direction,
            camera.distance * (1.7 if share > 0.97 else share / FILLED),
            float(size[0] * (upper - lower)[0]),
        )
        if abs(share - FILLED) < 0.03:
            break
    return camera


def link_centres(bodies: BulletBodies, q: Array | None = None) -> Array:
    """Centres of mass (n, 3) of the links, as shown or at a configuration, which is shown then."""
    if q is not None:
        bodies.write(q, np.zeros(bodies.mechanism.nv))
    client = bodies.client
    found: list[Sequence[float]] = []
    for body in bodies.body_ids.values():
        found.append(pybullet.getBasePositionAndOrientation(body, physicsClientId=client)[0])
        links = list(range(pybullet.getNumJoints(body, physicsClientId=client)))
        if links:
            states = pybullet.getLinkStates(body, links, physicsClientId=client)
            found += [state[0] for state in states]
    return np.array(found, float)


def _direction(cloud: Array) -> Array:
    """Unit vector (3,) to where a cloud of points (n, 3) about the origin is best seen from."""
    _, sizes, axes = np.linalg.svd(cloud, full_matrices=False)
    direction = FROM_CORNER
    if len(sizes) == 3 and 0.0 < sizes[1] and sizes[2] < FLAT * sizes[1]:
        normal = axes[2] * (-1.0 if axes[2] @ FROM_CORNER < 0.0 else 1.0)
        direction = normal + (1.3 if abs(normal[2]) > 0.9 else 0.2) * FROM_CORNER
    return direction / np.linalg.norm(direction)


def _visible(
    bodies: BulletBodies, states: Sequence[Array], camera: Camera
) -> tuple[Array, Array] | None:
    """Lower left and upper right corner of what is visible; the picture is (-1, -1) to (1, 1)."""
    corners: list[Array] = []
    scale, still = np.array(ROUGH_SIZE, float), np.zeros(bodies.mechanism.nv)
    ids = list(bodies.body_ids.values())
    for q in states:
        bodies.write(q, still)
        mask = take(camera, bodies.client, ROUGH_SIZE)[1]
        rows, columns = np.nonzero(np.isin(mask, ids))  # not the ground that they stand on
        if len(rows):
            pixels = np.array([[columns.min(), rows.min()], [columns.max() + 1, rows.max() + 1]])
            corners.append((2.0 * pixels / scale - 1.0) * [1.0, -1.0])
    if not corners:
        return None
    points = np.concatenate(corners)
    return points.min(axis=0), points.max(axis=0)


def take(
    camera: Camera, client: int, size: tuple[int, int], shadows: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """One picture (height, width, 3), and the body seen in each pixel, -1 for none."""
    eye = camera.target + camera.distance * camera.direction
    view = pybullet.computeViewMatrix(eye.tolist(), camera.target.tolist(), camera.up.tolist())
    lens = pybullet.computeProjectionMatrixFOV(
        FIELD_OF_VIEW, ASPECT, 0.02 * camera.distance, 10.0 * camera.distance
    )
    light = camera.direction + 0.6 * camera.up - 0.4 * camera.right
    width, height = size
    picture = pybullet.getCameraImage(
        width,
        height,
        view,
        lens,
        lightDirection=light.tolist(),
        shadow=int(shadows),
        renderer=pybullet.ER_TINY_RENDERER,
        physicsClientId=client,
    )
    pixels = np.reshape(np.asarray(picture[2], np.uint8), (height, width, 4))
    return pixels[:, :, :3], np.reshape(np.asarray(picture[4], np.int64), (height, width))


def png(pixels: np.ndarray) -> bytes:
    """PNG of (height, width, 3) bytes."""
    from matplotlib.image import imsave  # pyright: ignore[reportUnknownVariableType]

    buffer = io.BytesIO()
    imsave(buffer, np.ascontiguousarray(pixels), format="png")
    return buffer.getvalue()


PALETTE = (
    (0.93, 0.56, 0.22),
    (0.30, 0.52, 0.78),
    (0.45, 0.68, 0.35),
    (0.80, 0.36, 0.36),
    (0.58, 0.46, 0.74),
    (0.62, 0.48, 0.38),
    (0.86, 0.62, 0.78),
    (0.35, 0.70, 0.72),
)
"""Of links, in turns; red, green, blue."""
BASE = (0.62, 0.64, 0.68)
"""Of bases that stand."""
WHITE = (1.0, 1.0, 1.0, 1.0)
"""What Bullet tells where a file gives no colour."""
PAINTED = (b".obj", b".dae")
"""Endings of meshes that may bring colours of their own, which Bullet does not tell."""


def colour_bare(bodies: Iterable[int], client: int) -> None:
    """Give each link of a body a colour, if its file gives none to any of them."""
    for (body, link), rgba in bare_colours(bodies, client).items():
        pybullet.changeVisualShape(body, link, rgbaColor=list(rgba), physicsClientId=client)


def bare_colours(
    bodies: Iterable[int], client: int
) -> dict[tuple[int, int], tuple[float, float, float, float]]:
    """Colours by body and link, of bodies whose files give none to any of their links."""
    found: dict[tuple[int, int], tuple[float, float, float, float]] = {}
    for body in bodies:
        shapes = pybullet.getVisualShapeData(body, physicsClientId=client) or ()
        if any(shape[7] != WHITE or shape[4].lower().endswith(PAINTED) for shape in shapes):
            continue
        for link in {int(shape[1]) for shape in shapes}:
            red, green, blue = BASE if link < 0 else PALETTE[link % len(PALETTE)]
            found[body, link] = red, green, blue, 1.0
    return found
