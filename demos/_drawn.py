"""Demos of systems that Bullet does not simulate: their motion drawn in its window, and plotted."""

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pybullet
from _show import window
from numpy.typing import NDArray

from bulletbridge.comparison.playback import uncover
from bulletbridge.viewer.overlay import put_text

Array = NDArray[Any]
Pose = tuple[Any, Any]
"""Position [m] and quaternion xyzw."""
FRAME = 1 / 30  # [s]
YAW = 30.0  # of the camera [deg]
RIGHT = np.array([np.cos(np.radians(YAW)), np.sin(np.radians(YAW)), 0.0])
UPRIGHT = (0.0, 0.0, 0.0, 1.0)


@dataclass(frozen=True)
class Solid:
    """A body to look at: half extents [m] of a box, or radius and length of a cylinder along z."""

    size: tuple[float, ...]
    colour: tuple[float, float, float] = (0.7, 0.4, 0.2)

    def add(self, client: int) -> int:
        """Put it into a world; its id."""
        colour = (*self.colour, 1.0)
        if len(self.size) == 3:
            shape = pybullet.createVisualShape(
                pybullet.GEOM_BOX, halfExtents=self.size, rgbaColor=colour, physicsClientId=client
            )
        else:
            radius, length = self.size
            shape = pybullet.createVisualShape(
                pybullet.GEOM_CYLINDER,
                radius=radius,
                length=length,
                rgbaColor=colour,
                physicsClientId=client,
            )
        return pybullet.createMultiBody(0, -1, shape, physicsClientId=client)


def show(
    gui: bool,
    solids: Sequence[Solid],
    duration: float,
    poses: Callable[[float], Sequence[Pose]],
    look_at: Sequence[float] = (0.0, 0.0, 0.0),
    distance: float = 3.0,
    pitch: float = -20.0,
    trails: Mapping[str, Array] | None = None,
) -> None:
    """Draw a motion in real time: poses of the solids at a time [s]; without a window nothing.

    Trails (n, 3) [m] are dots along which their solids, the last ones, move, with their names.
    """
    if not gui:
        return
    with window(True, "") as client:
        bodies = [solid.add(client) for solid in solids]

        def put(t: float) -> None:
            for body, (position, turn) in zip(bodies, poses(t), strict=True):
                pybullet.resetBasePositionAndOrientation(body, position, turn, client)

        put(0.0)
        pybullet.resetDebugVisualizerCamera(distance, YAW, pitch, look_at, physicsClientId=client)
        uncover(client)  # which takes away what is drawn so far
        drawn = trails or {}
        for (name, trail), solid in zip(drawn.items(), solids[-len(drawn) :], strict=False):
            colours = [solid.colour] * len(trail)
            pybullet.addUserDebugPoints(trail.tolist(), colours, 4.0, physicsClientId=client)
            last = trail[np.argmax(trail @ RIGHT)]
            put_text(client, f"  {name}", last, solid.colour, 1.2)
        begun = time.perf_counter()
        while (t := time.perf_counter() - begun) < duration:
            put(t)
            time.sleep(FRAME)


def between(a: Array, b: Array) -> Pose:
    """Pose of a cylinder along z that reaches from a to b."""
    z = (b - a) / np.linalg.norm(b - a)
    x, y, w = -z[1], z[0], 1.0 + z[2]
    turn = np.array([x, y, 0.0, w]) if w > 1e-9 else np.array([1.0, 0.0, 0.0, 0.0])
    return 0.5 * (a + b), turn / np.linalg.norm(turn)


def plotted(file: Path | None, label: str, lines: dict[str, tuple[Array, Array]]) -> None:
    """Save a plot over time [s], logarithmic if all is positive; without a file nothing."""
    if file is None:
        return
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    for name, (t, y) in lines.items():
        axes.plot(t, y, label=name)
    if all(np.all(y > 0.0) for _, y in lines.values()):
        axes.set_yscale("log")
    axes.set_xlabel("time [s]")
    axes.set_ylabel(label)
    axes.legend()
    figure.savefig(file, dpi=120)
    plt.close(figure)


def run(main: Callable[[bool, Path | None], float], description: str | None) -> None:
    """Run a demo from the command line."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--gui", action="store_true", help="watch it in Bullet's window")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="save a plot")
    options = parser.parse_args()
    main(options.gui, options.plot)
