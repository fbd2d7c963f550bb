"""What the demos share: loading a model to compute or to watch, and running them by hand."""

import argparse
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

import numpy as np
import pybullet
import pybullet_data
from typing_extensions import Unpack

import bulletbridge as bb
from bulletbridge.bullet.reader import BulletBodies
from bulletbridge.bullet.worlds import connect_direct, connect_window, disconnect
from bulletbridge.comparison.playback import HINT, above, cover, go_along, look, uncover
from bulletbridge.errors import WorldError
from bulletbridge.models.formats.recognise import read_model
from bulletbridge.models.load import LoadOptions
from bulletbridge.system.recording import Recording
from bulletbridge.viewer.overlay import Overlay, Scale, marks_of, put_text
from bulletbridge.viewer.pictures import find_camera, link_centres
from bulletbridge.viewer.rods import Rods
from bulletbridge.viewer.sliders import Sliders, Switch, hide_panels

NEAR = 0.1  # lengths of the mechanism that it may move before the camera goes along
WIDTHS = 2.0  # of the mechanism across the window
PRESS = "press g for sliders, gaps and reactions"
PREPARING = "works out what to do, then moves"


class Watch:
    """What the window of a demo has besides the model: sliders, and reactions on request.

    Given ``load_scale``, the force [N] that is drawn as long as the mechanism, it shows loads.
    """

    def __init__(
        self,
        client: int,
        system: bb.System,
        actuated: Sequence[str],
        load_scale: float | None = None,
        said: str = PRESS,
    ) -> None:
        assert isinstance(system.world, BulletBodies)
        camera = find_camera(system.world, [system.q])
        look(client, camera, WIDTHS)
        system.write()
        self.hint_at = above(camera) - 0.4 * camera.width * camera.right
        uncover(client)
        self.said = said
        self.hint = put_text(client, said, self.hint_at, HINT, 1.1)
        self.sliders = Sliders(client, system, actuated)
        self.wrenches = Switch(client, "gaps and reactions")
        self.loads = load_scale is not None
        scale = Scale.of(system) if load_scale is None else Scale(load_scale)
        self.overlay = Overlay(client, scale, system.encoded.length)
        self.rods = Rods(system.constraints, system.world)
        self.moved = False
        self.centre, self.target = link_centres(system.world).mean(axis=0), camera.target

    def step(self, system: bb.System) -> Recording:
        """One step with the sliders as they are, and what is asked for drawn."""
        if self.said != PRESS:
            self.say(PRESS)
        self.moved |= self.sliders.apply(system)
        recording = system.run(system.dt)
        self.rods.show()
        self.follow(system)
        if not (self.wrenches.on or self.loads):
            self.overlay.clear()
        elif self.overlay.due:
            self.overlay.update([m for m in marks_of(system) if m.load or self.wrenches.on])
        return recording

    def follow(self, system: bb.System) -> None:
        """Move the window's camera along with a mechanism that goes away, as it is turned now."""
        assert isinstance(system.world, BulletBodies)
        centre = link_centres(system.world).mean(axis=0)
        if float(np.linalg.norm(centre - self.centre)) < NEAR * system.encoded.length:
            return
        self.target = self.target + centre - self.centre
        go_along(system.world.client, self.target)
        self.hint_at = self.hint_at + centre - self.centre
        self.say(PRESS)
        self.centre = centre

    def say(self, said: str) -> None:
        """Put other words above the mechanism, or the same where that is now."""
        client, self.said = self.overlay.client, said
        self.hint = put_text(client, said, self.hint_at, HINT, 1.1, self.hint)


WATCHED: dict[int, tuple[str, Watch | None]] = {}
"""Model and watch by the client that has a window; the watch is made when the model plays."""


@contextmanager
def window(gui: bool, model: str) -> Generator[int, None, None]:
    """A Bullet client with a window, or without, for a bundled model or its URDF.

    Raises:
        SystemExit: There is no display to put a window on; the window was closed; or a slider was
            moved, after which the demo's number means nothing.
    """
    try:
        client = (
            connect_window("--gui", "run without it to compute only") if gui else connect_direct()
        )
    except WorldError as error:
        raise SystemExit(str(error)) from None
    try:
        if gui:
            WATCHED[client] = model, None
            hide_panels(client)
            cover(client)
        yield client
    finally:
        _, watch = WATCHED.pop(client, ("", None))
        open_still = pybullet.isConnected(client)
        if open_still:
            disconnect(client)
        if gui and not open_still:
            raise SystemExit("the window was closed before the end")
        if watch is not None and watch.moved:
            raise SystemExit("a slider was moved: there is nothing left to check this run against")


@contextmanager
def loaded(
    name: str, gui: bool, **options: Unpack[LoadOptions]
) -> Generator[bb.System, None, None]:
    """A bundled model in a world of its own."""
    with window(gui, name) as client:
        yield bb.load(name, client, **options).system


def play(
    system: bb.System, duration: float, gui: bool, load_scale: float | None = None
) -> Recording:
    """Advance by ``duration`` [s]; the same steps in real time when somebody watches.

    ``load_scale`` [N] is as of ``Watch``.
    """
    if not gui:
        return system.run(duration)
    watch = watching(system, load_scale)
    begun, start, parts = time.perf_counter(), system.t, list[Recording]()
    for _ in range(round(duration / system.dt)):
        parts.append(watch.step(system))
        time.sleep(max(0.0, system.t - start - (time.perf_counter() - begun)))
    return Recording.joined(parts)


def show(system: bb.System, gui: bool) -> None:
    """Bring the window's camera to a system before work that takes a while."""
    if gui:
        watching(system, said=PREPARING)


def put_floor(client: int, height: float) -> None:
    """Put PyBullet's plane into a client, at a height [m]."""
    plane = f"{pybullet_data.getDataPath()}/plane.urdf"
    pybullet.loadURDF(plane, (0.0, 0.0, height), physicsClientId=client)


def watching(system: bb.System, load_scale: float | None = None, said: str = PRESS) -> Watch:
    """The watch of the window that a system is shown in."""
    assert isinstance(system.world, BulletBodies)
    client = system.world.client
    model, watch = WATCHED[client]
    if watch is None:
        watch = Watch(client, system, read_model(model).actuated, load_scale, said)
        WATCHED[client] = model, watch
    return watch


def run(main: Callable[[bool], float], description: str | None) -> None:
    """Run a demo from the command line."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--gui", action="store_true", help="watch it in Bullet's window")
    main(parser.parse_args().gui)
