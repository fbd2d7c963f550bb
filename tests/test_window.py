"""Bullet's own window, on a display of its own; skipped where there is none to be had."""

import io
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from bulletbridge.viewer.overlay import FORCE_COLOUR, MOMENT_COLOUR

HERE = Path(__file__).parent

if __name__ != "__main__" and not (shutil.which("xvfb-run") and shutil.which("import")):
    pytest.skip("needs xvfb-run and ImageMagick's import", allow_module_level=True)


def screenshot() -> np.ndarray:
    """What is on the display, (height, width, 3)."""
    from matplotlib.image import imread

    png = subprocess.run(["import", "-window", "root", "png:-"], capture_output=True, check=True)
    return imread(io.BytesIO(png.stdout), format="png")[:, :, :3]


def seen(colour: tuple[float, float, float], picture: np.ndarray) -> int:
    """Number of pixels of a colour, to two steps of its 255."""
    return int(np.count_nonzero(np.abs(picture - colour).max(axis=2) < 2.5 / 255))


def display(done: Callable[[np.ndarray], bool]) -> np.ndarray:
    """The display once it shows what is waited for, or what it shows ten minutes later."""
    from time import monotonic, sleep

    end = monotonic() + 600.0
    while not done(picture := screenshot()) and monotonic() < end:
        sleep(0.1)
    return picture


def main(path: str) -> None:
    """Load a model into a window, draw its marks many times, and hold the outcome against it."""
    import pybullet

    from bulletbridge.models.load import load
    from bulletbridge.viewer.overlay import (
        PERIOD,
        Mark,
        Overlay,
        Scale,
        marks_of,
        weight_of,
    )
    from bulletbridge.viewer.sliders import Sliders, Switch, hide_panels

    client = pybullet.connect(pybullet.GUI, options="--width=640 --height=480")
    hide_panels(client)
    system = load(path, client).system
    pybullet.resetDebugVisualizerCamera(3, 10, -20, [0.5, 0, -0.3], physicsClientId=client)
    now = [0.0]
    overlay = Overlay(client, Scale.of(system), system.encoded.length, clock=lambda: now[0])
    sliders, switch = Sliders(client, system, ("crank",)), Switch(client, "reactions")
    before, tau = system.gravity, system.tau.copy()
    assert not sliders.apply(system)
    assert not switch.on
    assert np.array_equal(system.gravity, before)
    assert np.array_equal(system.tau, tau)

    (pin,) = marks_of(system)
    ids = set()
    for turn in range(8):
        now[0] += 2.0 * PERIOD
        force = weight_of(system) * np.array([np.cos(turn), 0.0, np.sin(turn)])
        moment = np.array([0.0, 0.0, 30.0 + turn])
        assert overlay.update([Mark("pin", pin.point_a, pin.point_b, force, moment)])
        ids |= set(overlay._items.values())
    assert len(ids) == 14  # the gap, two arrows of five lines, three texts
    colours = FORCE_COLOUR, MOMENT_COLOUR
    # three pixels wide, and half the length of a mechanism that fills the window
    drawn = display(lambda picture: all(seen(colour, picture) > 3 * 50 for colour in colours))
    overlay.clear()
    cleared = display(lambda picture: not any(seen(colour, picture) for colour in colours))
    pybullet.disconnect(client)
    for colour in colours:
        assert seen(colour, drawn) > 3 * 50
        assert seen(colour, cleared) == 0


def test_arrows_are_seen_take_each_others_place_and_go(tmp_path):
    from support.small_models import four_bar

    command = ["xvfb-run", "-a", "-s", "-screen 0 640x480x24", sys.executable, str(__file__)]
    for _ in range(2):  # now and then Bullet loses the id of a new item, which is then left behind
        done = subprocess.run(
            [*command, str(four_bar(tmp_path))],
            capture_output=True,
            text=True,
            timeout=1800,  # which only a hang takes
            check=False,
        )
        if not done.returncode:
            break
    assert done.returncode == 0, done.stderr[-2000:]


if __name__ == "__main__":
    main(sys.argv[1])
