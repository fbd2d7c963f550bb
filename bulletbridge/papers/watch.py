"""A motion of an example in Bullet's window."""

import time

import numpy as np
import pybullet

import bulletbridge as bb
from bulletbridge.bullet.reader import BulletBodies
from bulletbridge.bullet.worlds import connect_window, disconnect, require_display
from bulletbridge.comparison.playback import look
from bulletbridge.papers.example import Film
from bulletbridge.viewer.pictures import find_camera
from bulletbridge.viewer.sliders import hide_panels

ASKED = "--gui", "leave it out for the numbers, and use -o for pictures"
"""Who asks for a display, and what to do without."""
FRAME = 1.0 / 60.0
"""Between pictures [s]."""
WIDTHS = 1.5
"""Of the mechanism across the window."""


def require_window() -> None:
    """Find out before a run that there is no display."""
    require_display(*ASKED)


def watch(film: Film) -> None:
    """Show a motion in real time; closing the window ends it.

    Raises:
        WorldError: Bullet cannot open a window.
    """
    client = connect_window(*ASKED)
    try:
        hide_panels(client)
        model = bb.load(film.robot, client)
        assert isinstance(model.system.world, BulletBodies)
        some = film.states[:: max(1, len(film.states) // 50)]
        look(client, find_camera(model.system.world, list(some)), WIDTHS)
        still = np.zeros(model.system.mechanism.nv)
        begun = time.perf_counter()
        while (t := time.perf_counter() - begun) < film.times[-1] and pybullet.isConnected(client):
            n = int(np.searchsorted(film.times, t))
            model.bodies.write(film.states[n], still)
            time.sleep(FRAME)
    finally:
        if pybullet.isConnected(client):
            disconnect(client)
