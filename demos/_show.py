"""What the demos share: loading a model to compute or to watch, and running them by hand."""

import argparse
import os
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

import numpy as np
import pybullet
from typing_extensions import Unpack

import bulletbridge as bb
from bulletbridge.simulation.recording import Recording
from bulletbridge.surface.load import SystemOptions


@contextmanager
def window(gui: bool) -> Generator[int, None, None]:
    """A Bullet client with a window, or without.

    Raises:
        SystemExit: There is no display to put a window on.
    """
    if gui and sys.platform.startswith("linux") and not os.environ.get("DISPLAY"):
        raise SystemExit("--gui needs a display; run without it to compute only")
    client = pybullet.connect(pybullet.GUI if gui else pybullet.DIRECT)
    try:
        yield client
    finally:
        pybullet.disconnect(client)


@contextmanager
def loaded(
    name: str, gui: bool, **options: Unpack[SystemOptions]
) -> Generator[bb.System, None, None]:
    """A bundled model in a world of its own."""
    with window(gui) as client:
        yield bb.load(name, client, **options).system


def play(system: bb.System, duration: float, gui: bool) -> Recording:
    """Advance by ``duration`` [s]; the same steps in real time when somebody watches."""
    if not gui:
        return system.run(duration)
    begun, start, parts = time.perf_counter(), system.t, list[Recording]()
    for _ in range(round(duration / system.dt)):
        parts.append(system.run(system.dt))
        time.sleep(max(0.0, system.t - start - (time.perf_counter() - begun)))
    columns = [(p.t, p.q, p.v, p.rank, p.margin, p.passes) for p in parts]
    return Recording(system.mechanism, *(np.concatenate(c) for c in zip(*columns, strict=True)))


def run(main: Callable[[bool], float], description: str | None) -> None:
    """Run a demo from the command line."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--gui", action="store_true", help="watch it in Bullet's window")
    main(parser.parse_args().gui)
