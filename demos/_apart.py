"""A window in a process of its own, so that drawing keeps no control loop waiting."""

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import numpy as np
import pybullet
from numpy.typing import NDArray

import bulletbridge as bb
from bulletbridge.bullet.reader import BulletBodies
from bulletbridge.bullet.worlds import connect_window, require_display
from bulletbridge.comparison.playback import cover, look, uncover
from bulletbridge.errors import WorldError
from bulletbridge.viewer.pictures import find_camera
from bulletbridge.viewer.sliders import hide_panels

REMEDY = "run without it to compute only"
WIDTHS, PICTURES = 1.5, 60.0  # of the model across the window; [1/s]


@contextmanager
def shown_apart(
    gui: bool, model: Path, q: NDArray[np.float64], furnish: Callable[[int], None]
) -> Generator[Callable[[NDArray[np.float64]], None], None, None]:
    """A function that shows a configuration (nq,) in a window, or does nothing without one.

    Args:
        gui: Whether there is a window.
        model: Its loops file.
        q: What is shown first.
        furnish: Puts what else is seen into a client.

    Raises:
        SystemExit: There is no display, or Bullet opens no window.
    """
    if not gui:
        yield lambda q: None
        return
    try:
        require_display("--gui", REMEDY)
    except WorldError as error:
        raise SystemExit(str(error)) from None
    context = get_context("spawn")
    shared, ready, going = context.RawArray("d", q.tolist()), context.Event(), context.Event()
    going.set()
    given = str(model), shared, ready, going, furnish
    process = context.Process(target=draw, args=given, daemon=True)
    process.start()
    while not ready.wait(0.5):
        if not process.is_alive():
            raise SystemExit(f"Bullet opened no window; {REMEDY}")
    seen = np.frombuffer(shared)
    try:
        yield lambda q: np.copyto(seen, q)
    finally:
        going.clear()
        process.join(10.0)


def draw(
    model: str, shared: Any, ready: Event, going: Event, furnish: Callable[[int], None]
) -> None:
    """Show what is in shared memory until it is enough, or somebody closes the window."""
    client = connect_window("--gui", REMEDY)
    hide_panels(client)
    cover(client)
    system = bb.load(model, client).system
    furnish(client)
    assert isinstance(system.world, BulletBodies)
    look(client, find_camera(system.world, [system.q]), WIDTHS)
    uncover(client)
    ready.set()
    still = np.zeros(system.mechanism.nv)
    while going.is_set():
        try:
            # it may change meanwhile: half of a picture is a millisecond older than the other
            system.world.write(np.array(shared), still)
        except (WorldError, pybullet.error):
            return
        time.sleep(1.0 / PICTURES)
