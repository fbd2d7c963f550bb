"""What the demos share: loading a model to compute or to watch, and running them by hand."""

import argparse
import os
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

import pybullet
from typing_extensions import Unpack

import bulletbridge as bb
from bulletbridge.surface.load import SystemOptions


def connect(gui: bool) -> int:
    """A Bullet client with a window, or without.

    Raises:
        SystemExit: There is no display to put a window on.
    """
    if gui and not os.environ.get("DISPLAY"):
        raise SystemExit("--gui needs a display; run without it to compute only")
    return pybullet.connect(pybullet.GUI if gui else pybullet.DIRECT)


@contextmanager
def loaded(
    name: str, gui: bool, **options: Unpack[SystemOptions]
) -> Generator[bb.System, None, None]:
    """A bundled model in a world of its own."""
    client = connect(gui)
    try:
        yield bb.load(name, client, **options).system
    finally:
        pybullet.disconnect(client)


def play(system: bb.System, duration: float, gui: bool) -> None:
    """Advance by ``duration`` [s], in real time when somebody watches."""
    if not gui:
        system.run(duration)
        return
    begun, start = time.perf_counter(), system.t
    while system.t < start + duration:
        system.step()
        time.sleep(max(0.0, system.t - start - (time.perf_counter() - begun)))


def run(main: Callable[[bool], float], description: str | None) -> None:
    """Run a demo from the command line."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--gui", action="store_true", help="watch it in Bullet's window")
    main(parser.parse_args().gui)
