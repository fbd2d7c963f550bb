"""Moving pictures of mechanisms, by Bullet's software renderer; no display is needed."""

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bulletbridge.bullet.reader import BulletBodies
from bulletbridge.bullet.worlds import connect_direct, disconnect
from bulletbridge.console import require_writable
from bulletbridge.errors import ModelError, called_as, naming_the_extra
from bulletbridge.models.model_spec import ModelSpec
from bulletbridge.numerics.records import Array, are_numbers
from bulletbridge.system.recording import Recording
from bulletbridge.system.system import System, require_system
from bulletbridge.viewer.pictures import (
    ASPECT,
    HALF,
    SIZE,
    Camera,
    find_camera,
    framing_of,
    link_centres,
    stage,
    take,
)
from bulletbridge.viewer.rods import Rods

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw

FRAMES_PER_SECOND = 25
KINDS = (".gif", ".mp4")
MAGNIFIED, MOST_MAGNIFIED = 0.2, 1e6
"""Length of the largest gap in a film, in heights of the picture, and by how much it is drawn
longer at most, so that round-off stays invisible."""
SEEN = 0.01
"""Length, in half heights of the picture, from which it is seen that a gap is drawn longer."""
GAP_COLOUR, PIN_COLOUR, INK = (210, 25, 50), (255, 255, 255), (30, 30, 30)
PAPER, BAND = (255, 255, 255), 32
"""Behind words, and how high it is above and below a picture [pixels]: they lie over no robot."""
COLOURS = 128
"""Of a gif."""


@dataclass(frozen=True)
class Side:
    """One of the runs that a film shows beside each other."""

    title: str  # what stands above
    t: Array  # (n,) [s]
    q: Array  # (n, nq)


def require_film(path: Path) -> None:
    """Find out before a long run that its film cannot be written.

    Raises:
        ModelError: The name ends otherwise, or its folder does not exist.
        MissingExtraError: imageio-ffmpeg, which an mp4 needs, is not installed.
    """
    if path.suffix not in KINDS:
        raise ModelError(f"'{path}' is no film; give a name that ends in {' or '.join(KINDS)}")
    if not path.absolute().parent.is_dir():
        raise ModelError(f"cannot write the film to '{path}': its directory does not exist")
    require_writable(path)
    if path.suffix == ".mp4":
        _ffmpeg()


def film(
    path: Path,
    spec: ModelSpec,
    system: System,
    sides: Sequence[Side],
    longest: float = np.inf,
    rate: float = FRAMES_PER_SECOND,
) -> None:
    """Write a film of runs of a model, side by side, with gaps drawn.

    Args:
        path: A ``.gif`` or ``.mp4``.
        spec: The model.
        system: Of that model; tells where its loops are. Its state is not touched.
        sides: The runs, all from the same start.
        longest: How much of them is shown at most [s].
        rate: Pictures a second.

    Raises:
        ModelError: The file cannot be written.
        MissingExtraError: imageio-ffmpeg is not installed.
    """
    require_film(path)
    client = connect_direct()
    try:
        bodies = stage(spec, client)
        ends = min(longest, *(float(side.t[-1]) for side in sides))
        times = np.arange(0.0, ends + 1e-9, 1.0 / rate)
        states = [_at(side, times) for side in sides]
        finite = [q[np.isfinite(q).all(axis=1)] for q in states]
        framing, rods = framing_of(bodies, list(finite[0])), Rods(spec.constraints, bodies)
        gaps = [_gaps(system, q, times) for q in states]
        scale = _magnification(gaps, framing.camera)

        def frames() -> Generator[np.ndarray]:
            for n, t in enumerate(times):
                panels = list[np.ndarray]()
                for side, q, g in zip(sides, states, gaps, strict=True):
                    here = framing.show(bodies, q[n])
                    rods.show()
                    picture = take(here, bodies.client, SIZE)[0]
                    panels.append(_annotate(picture, here, side.title, float(t), g[n], scale))
                yield np.concatenate(panels, axis=1)

        _write(path, frames(), rate)
    finally:
        disconnect(client)


@called_as("record(system, 'run.gif', duration) is told seconds")
def record(
    system: System,
    path: str | Path,
    duration: float,
    step: Callable[[System], None] | None = None,
    camera: Camera | None = None,
) -> Recording:
    """Advance a system and film everything that is in its Bullet world.

    Args:
        system: With a world, as from ``load`` or ``attach``; its state is shown there.
        path: A ``.gif``, or with the extra ``video`` an ``.mp4``.
        duration: [s]
        step: Makes one step, as a program of yours would; ``System.step`` unless given.
        camera: From where; unless given, a place from which the mechanism is well in view now, and
            which moves along with it.

    Returns:
        The recording of all steps.

    Raises:
        ModelError: The system has no Bullet world, or the file cannot be written.
        MissingExtraError: imageio-ffmpeg is not installed.
        StepError: A step could not be finished.
    """
    require_system(system)
    path, bodies = Path(path), system.world
    require_film(path)
    if not isinstance(bodies, BulletBodies):
        raise ModelError("a film is taken in Bullet's world; make the system by load or attach")
    if not (are_numbers(duration) and duration > 0.0):
        raise ModelError(f"a film of {duration!r} s is not possible; give a positive duration")
    world, dt, advance = bodies, system.dt, step or System.step
    place = camera
    if place is None:
        place = find_camera(world, [system.q])
        place = replace(place, distance=1.6 * place.distance)
    system.write()
    centre, count = link_centres(world).mean(axis=0), max(1, round(duration / dt))
    parts, every = list[Recording](), max(1, round(1.0 / (FRAMES_PER_SECOND * dt)))

    def frames() -> Generator[np.ndarray]:
        for n in range(count):
            if n % every == 0:
                shift = link_centres(world).mean(axis=0) - centre if camera is None else np.zeros(3)
                here = replace(place, target=place.target + shift)
                with Rods(system.constraints, world):  # gone before the world steps
                    yield take(here, world.client, SIZE)[0]
            advance(system)
            parts.append(system.recorded())

    _write(path, frames(), 1.0 / (every * dt))
    return Recording.joined(parts)


def _at(side: Side, times: Array) -> Array:
    """The states (n, nq) nearest to some times."""
    return side.q[np.abs(side.t[:, None] - times).argmin(axis=0)]


Gaps = dict[str, tuple[Array, Array]]


def _gaps(system: System, states: Array, times: Array) -> list[Gaps]:
    """Gaps of all loops that joints can close at each state; none where it is not finite."""
    return [
        system.gap_vectors(q, system.t + float(t), kept=True) if np.isfinite(q).all() else {}
        for q, t in zip(states, times, strict=True)
    ]


def _magnification(gaps: Sequence[Sequence[Gaps]], camera: Camera) -> float:
    """Round number that makes the largest gap of all sides visible; the same for all of them."""
    sizes = [float(np.linalg.norm(g)) for side in gaps for at in side for _, g in at.values()]
    largest = max((size for size in sizes if np.isfinite(size)), default=0.0)
    if largest <= 0.0:
        return 1.0
    wanted = MAGNIFIED * 2.0 * HALF * camera.distance / largest
    power = 10.0 ** np.floor(np.log10(wanted))
    round_number = power * max(k for k in (1, 2, 5) if k * power <= wanted)
    return float(min(MOST_MAGNIFIED, max(1.0, round_number)))


def _annotate(
    pixels: np.ndarray, camera: Camera, title: str, t: float, gaps: Gaps, scale: float
) -> np.ndarray:
    """One side of one frame (height, width, 3), with gaps, and words above and below it."""
    from PIL import Image, ImageDraw, ImageFont

    picture = Image.fromarray(np.ascontiguousarray(pixels))
    draw = ImageDraw.Draw(picture)
    for point, gap in gaps.values():
        _draw_gap(draw, camera, point, gap, scale)
    sizes = [float(np.linalg.norm(gap)) for _, gap in gaps.values()]
    said = f"gap {_length(max(sizes))}" if sizes else ""
    if scale > 1.0 and max(sizes, default=0.0) * scale > SEEN * HALF * camera.distance:
        said += f" (drawn {scale:,.0f} times longer)"
    width, height = picture.size
    page = Image.new("RGB", (width, height + 2 * BAND), PAPER)
    page.paste(picture, (0, BAND))
    words = ImageDraw.Draw(page)
    words.text((12, 4), title, INK, ImageFont.load_default(20))
    words.text((12, BAND + height + 6), f"{t:.2f} s   {said}", INK, ImageFont.load_default(15))
    return np.asarray(page)


def _draw_gap(draw: "ImageDraw", camera: Camera, point: Array, gap: Array, scale: float) -> None:
    """A loop's place, and its gap as a line from there."""
    here, there = (_project(camera, p) for p in (point, point - scale * gap))
    if not np.isfinite([*here, *there]).all():
        return
    draw.line((*here, *there), GAP_COLOUR, 4)
    for (x, y), radius, colour in ((here, 5, PIN_COLOUR), (there, 3, GAP_COLOUR)):
        draw.ellipse((x - radius, y - radius, x + radius, y + radius), colour, GAP_COLOUR, 2)


def _project(camera: Camera, point: Array) -> tuple[float, float]:
    """Where a point (3,) is in the picture [pixels]."""
    away = point - camera.target
    depth = HALF * (camera.distance - float(away @ camera.direction))
    x, y = float(away @ camera.right) / (depth * ASPECT), float(away @ camera.up) / depth
    return 0.5 * SIZE[0] * (1.0 + x), 0.5 * SIZE[1] * (1.0 - y)


def _length(metres: float) -> str:
    """A length in words."""
    if metres < 1e-6:
        return f"{metres:.1g} m"
    return f"{1e3 * metres:.2g} mm" if metres < 0.1 else f"{metres:.2g} m"


def _write(path: Path, frames: Iterable[np.ndarray], rate: float = FRAMES_PER_SECOND) -> None:
    """Write frames (height, width, 3) of a rate [1/s]."""
    write = _write_mp4 if path.suffix == ".mp4" else _write_gif
    try:
        write(path, frames, rate)
    except OSError as error:
        raise ModelError(f"cannot write the film to '{path}': {error}") from None


def _write_gif(path: Path, frames: Iterable[np.ndarray], rate: float) -> None:
    from PIL import Image

    pictures = [
        Image.fromarray(frame).quantize(COLOURS, dither=Image.Dither.NONE) for frame in frames
    ]
    pause = 10 * max(2, round(100.0 / rate))  # a gif counts hundredths of a second
    pictures[0].save(path, save_all=True, append_images=pictures[1:], duration=pause, loop=0)


def _write_mp4(path: Path, frames: Iterable[np.ndarray], rate: float) -> None:
    writer: Any = None
    try:
        for frame in frames:
            if writer is None:
                size = frame.shape[1], frame.shape[0]
                writer = _ffmpeg().write_frames(str(path), size, fps=rate, macro_block_size=2)
                writer.send(None)
            writer.send(np.ascontiguousarray(frame))
    finally:
        if writer is not None:
            writer.close()


def _ffmpeg() -> Any:
    """imageio-ffmpeg.

    Raises:
        MissingExtraError: It is not installed.
    """
    with naming_the_extra(
        "an mp4 needs imageio-ffmpeg", "bulletbridge[video]", ", or write a .gif"
    ):
        return import_module("imageio_ffmpeg")
