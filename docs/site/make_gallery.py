"""Take the pictures of the gallery: each demo runs up to a moment, and Bullet draws its world.

``python docs/site/make_gallery.py`` makes all of them anew, with names only those. Bullet's
software renderer makes them, so no display is needed. Where things are is the demo's own doing;
what is added is light, a floor under robots that stand, and the path of a point where a demo is
about one.
"""

import subprocess
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pybullet
from PIL import Image, ImageDraw, ImageFilter

from bulletbridge.bullet.worlds import connect_direct, disconnect
from bulletbridge.numerics.records import Array
from bulletbridge.viewer.pictures import ASPECT, HALF, Camera, take
from bulletbridge.viewer.rods import Rods

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "gallery"
SIZE, FINER = (720, 540), 2
"""Width and height of a picture, and how much larger it is taken, for smooth edges."""
COLOURS = 160
FILLED = 0.86
TOP, BOTTOM, FLOOR = (236, 241, 244), (252, 253, 253), (0.90, 0.92, 0.93, 1.0)
PATH_COLOUR = (226, 88, 34)
CORNER = (0.55, -0.75, 0.38)


@dataclass(frozen=True)
class Shot:
    """How a demo is taken.

    Attributes:
        at: [s] after the start of the demo.
        direction: From where, seen from the middle of what is there.
        floor: Height [m] of a floor that is added; None for none.
        filled: Share of the picture.
        beside: Base links of bodies that need not be in view as a whole.
        traced: Which solids of a drawn demo leave a path.
        tips: Whether their ends do, and not their middles.
        paint: Colours by the beginning of links' names.
    """

    at: float = 0.3
    direction: tuple[float, float, float] = CORNER
    floor: float | None = None
    filled: float = FILLED
    beside: tuple[str, ...] = ()
    traced: tuple[int, ...] = ()
    tips: bool = False
    paint: tuple[tuple[str, tuple[float, float, float]], ...] = ()


STEEL, TEAL, ORANGE, SAND, NIGHT = (
    (0.62, 0.66, 0.70),
    (0.10, 0.52, 0.54),
    (0.91, 0.49, 0.16),
    (0.86, 0.78, 0.62),
    (0.22, 0.26, 0.31),
)
FLAT = (0.15, -1.0, 0.22)
MINITAUR = (
    ("base_chassis", NIGHT), ("chassis", STEEL), ("motor", ORANGE),
    ("upper_leg", TEAL), ("lower_leg", SAND),
)  # fmt: skip
SHOTS = {
    "balance": Shot(0.3),
    "ball_chain": Shot(0.5),
    "ball_on_plate": Shot(0.6),
    "biped": Shot(9.0),
    "bricard": Shot(1.0),
    "carried_bar": Shot(1.0),
    "circle_robot": Shot(5.0, traced=(2,)),
    "delta": Shot(0.3),
    "docking": Shot(60.0),
    "edge": Shot(1.0),
    "excavator": Shot(9.0),
    "five_bar": Shot(0.6, FLAT),
    "flexible_arms": Shot(2.0, (0.15, -0.45, 0.9)),
    "four_bar": Shot(0.2, FLAT),
    "gripper": Shot(2.0, beside=("table",)),
    "jump": Shot(0.2, floor=-0.165, paint=MINITAUR),
    "leaf_leg": Shot(0.1),
    "lift": Shot(2.0),
    "minitaur": Shot(0.5, paint=MINITAUR),
    "parallelogram": Shot(0.3, FLAT),
    "particle": Shot(5.0, traced=(0, 1)),
    "polishing": Shot(1.0),
    "push": Shot(0.8, (0.5, -0.35, 0.6), beside=("top",)),
    "real_time": Shot(direction=(0.9, -0.5, 0.45)),
    "slider_crank": Shot(0.3, FLAT),
    "space_arm": Shot(10.0),
    "space_system": Shot(2.0),
    "squeeze": Shot(1.0),
    "stewart": Shot(0.2),
    "three_link": Shot(2.2, traced=(2,), tips=True),
    "top": Shot(3.0),
    "triple_slider_crank": Shot(0.5, FLAT),
    "two_arms": Shot(0.4),
    "weigh": Shot(0.6, FLAT),
    "walk": Shot(2.6, paint=MINITAUR),
}


class Taken(Exception):
    """The picture is there; the demo need not go on."""


def photograph(client: int, shot: Shot, paths: Sequence[Array] = ()) -> Image.Image:
    """Picture of all that is in a world.

    Args:
        client: The world.
        shot: How.
        paths: (n, 3) [m] lines to draw.
    """
    grounds = paint(client, shot)
    camera = frame(client, shot, grounds, paths)
    wide, high = SIZE[0] * FINER, SIZE[1] * FINER
    pixels, mask = take(camera, client, (wide, high), shadows=True)
    sky = np.linspace(TOP, BOTTOM, high)[:, None, :]
    whole = np.where((mask >= 0)[:, :, None], pixels, sky).astype(np.uint8)
    # a floor fades into the sky, so that it has no edge
    if grounds:
        rows = np.linspace(0.0, 1.0, high)[:, None, None]
        fade = np.clip(2.2 * rows - 0.7, 0.0, 1.0)
        shade = np.isin(mask, grounds)[:, :, None]
        whole = np.where(shade, fade * pixels + (1.0 - fade) * sky, whole).astype(np.uint8)
    picture = Image.fromarray(whole)
    for path in paths:
        line = [tuple(project(camera, p, (wide, high))) for p in path]
        ImageDraw.Draw(picture).line(line, PATH_COLOUR, 2 * FINER, joint="curve")
    small = picture.resize(SIZE, Image.Resampling.LANCZOS)
    return small.filter(ImageFilter.UnsharpMask(1.0, 40, 2))


def paint(client: int, shot: Shot) -> list[int]:
    """Colour links as wanted, and floors plainly; a floor is added if wanted. Ids of all floors."""
    grounds: list[int] = []
    for n in range(pybullet.getNumBodies(physicsClientId=client)):
        body = pybullet.getBodyUniqueId(n, physicsClientId=client)
        base, name = (x.decode() for x in pybullet.getBodyInfo(body, physicsClientId=client))
        if name == "plane" or base == "planeLink":
            grounds.append(body)
            pybullet.changeVisualShape(
                body, -1, textureUniqueId=-1, rgbaColor=FLOOR, physicsClientId=client
            )
        links = {base: -1}
        for joint in range(pybullet.getNumJoints(body, physicsClientId=client)):
            info = pybullet.getJointInfo(body, joint, physicsClientId=client)
            links[info[12].decode()] = joint
        for link, index in links.items():
            for start, colour in reversed(shot.paint):
                if link.startswith(start):
                    pybullet.changeVisualShape(
                        body, index, rgbaColor=(*colour, 1.0), physicsClientId=client
                    )
    if shot.floor is not None:
        shape = pybullet.createVisualShape(
            pybullet.GEOM_BOX, halfExtents=(40, 40, 0.001), rgbaColor=FLOOR, physicsClientId=client
        )
        at = (0.0, 0.0, shot.floor - 0.001)
        grounds.append(pybullet.createMultiBody(0, -1, shape, at, physicsClientId=client))
    return grounds


def frame(client: int, shot: Shot, grounds: Sequence[int], paths: Sequence[Array]) -> Camera:
    """A camera that has all but the floors in view, and the paths."""
    direction = np.array(shot.direction) / np.linalg.norm(shot.direction)
    centres, shown = list[Sequence[float]](), list[int]()
    for n in range(pybullet.getNumBodies(physicsClientId=client)):
        body = pybullet.getBodyUniqueId(n, physicsClientId=client)
        if body in grounds or pybullet.getBodyInfo(body, client)[0].decode() in shot.beside:
            continue
        shown.append(body)
        centres.append(pybullet.getBasePositionAndOrientation(body, physicsClientId=client)[0])
        for joint in range(pybullet.getNumJoints(body, physicsClientId=client)):
            centres.append(pybullet.getLinkState(body, joint, physicsClientId=client)[0])
    cloud = np.array(centres)
    middle = cloud.mean(axis=0)
    spread = max(float(np.linalg.norm(cloud - middle, axis=1).max()), 0.05)
    camera = Camera(middle, direction, 8.0 * spread)
    for _ in range(8):
        mask = take(camera, client, (320, 240))[1]
        rows, columns = np.nonzero(np.isin(mask, shown))
        x, y = 2.0 * (columns + 0.5) / 320 - 1.0, 1.0 - 2.0 * (rows + 0.5) / 240
        for path in paths:
            points = np.array([project(camera, p, (2, 2)) for p in path]) - 1.0
            x, y = np.append(x, points[:, 0]), np.append(y, -points[:, 1])
        lower, upper = np.array([x.min(), y.min()]), np.array([x.max(), y.max()])
        size = camera.distance * HALF * np.array([ASPECT, 1.0])
        shift = 0.5 * (lower + upper) * size
        share = float((0.5 * (upper - lower)).max())
        away = 1.6 if share > 0.97 else share / shot.filled
        target = camera.target + shift[0] * camera.right + shift[1] * camera.up
        camera = Camera(target, direction, camera.distance * away)
    return camera


def project(camera: Camera, point: Array, size: tuple[int, int]) -> Array:
    """Where a point (3,) is in a picture [pixels]."""
    away = point - camera.target
    depth = HALF * (camera.distance - float(away @ camera.direction))
    x, y = float(away @ camera.right) / (depth * ASPECT), float(away @ camera.up) / depth
    return np.array([0.5 * size[0] * (1.0 + x), 0.5 * size[1] * (1.0 - y)])


def take_demo(name: str) -> Image.Image:
    """The picture of one demo."""
    shot, shared, drawn = SHOTS[name], import_module("_show"), import_module("_drawn")
    found: list[Image.Image] = []
    play_on, open_world = shared.play, shared.window

    def play(system: Any, duration: float, gui: bool, **drawn: Any) -> Any:
        if system.t + duration < shot.at:
            return play_on(system, duration, gui, **drawn)
        if shot.at > system.t:
            system.run(shot.at - system.t)
        Rods(system.constraints, system.world)
        found.append(photograph(system.world.client, shot))
        raise Taken

    @contextmanager
    def window(gui: bool, model: str) -> Generator[int, None, None]:
        with open_world(gui, model) as client:
            yield client
            found.append(photograph(client, shot))  # the demo has come to its end
            raise Taken

    def show(
        gui: bool,
        solids: Sequence[Any],
        duration: float,
        poses: Callable[[float], Sequence[Any]],
        look_at: Sequence[float] = (0.0, 0.0, 0.0),
        distance: float = 3.0,
    ) -> None:
        client = connect_direct()
        try:
            bodies = [solid.add(client) for solid in solids]
            until = min(shot.at, duration - 1e-6)
            for body, (position, turn) in zip(bodies, poses(until), strict=True):
                pybullet.resetBasePositionAndOrientation(body, position, turn, client)
            times = np.linspace(0.0, until, 400)
            sizes = [0.5 * solid.size[-1] if shot.tips else 0.0 for solid in solids]
            paths = [np.array([along(poses(t)[k], sizes[k]) for t in times]) for k in shot.traced]
            found.append(photograph(client, shot, paths))
        finally:
            disconnect(client)
        raise Taken

    shared.play, shared.window, drawn.show = play, window, show
    with suppress(Taken):
        import_module(name).main()
    return found[0]


def along(pose: Sequence[Any], way: float) -> Array:
    """A point (3,) so far along the z axis of a solid [m]."""
    position, turn = pose
    R = np.reshape(pybullet.getMatrixFromQuaternion(list(turn)), (3, 3))
    return np.array(position, float) + way * R[:, 2]


def main(names: Sequence[str]) -> None:
    """Make the pictures, each in a process of its own, since demos share modules."""
    if len(names) != 1:
        for name in names or SHOTS:
            subprocess.run([sys.executable, __file__, name], check=True)
        return
    sys.path.insert(0, str(ROOT / "demos"))
    picture = take_demo(names[0]).quantize(COLOURS, dither=Image.Dither.NONE)
    file = FOLDER / f"{names[0]}.png"
    picture.save(file, optimize=True)
    print(f"{names[0]}: {file.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main(sys.argv[1:])
