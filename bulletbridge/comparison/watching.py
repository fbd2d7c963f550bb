"""Show something of a robot's files again whenever one of them is saved."""

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from bulletbridge.errors import BulletBridgeError
from bulletbridge.models.formats.robot import listed

ENDINGS = (
    *(".yaml", ".yml", ".urdf", ".xacro", ".xml", ".mjcf", ".sdf", ".world"),
    *(".usd", ".usda", ".usdc", ".stl", ".obj", ".dae"),
)
"""Of files that a robot is read from."""
PAUSE = 0.3
"""Between looks [s]."""
MOST_FILES = 5000
"""That are looked at, so that a robot in somebody's home folder costs no more."""

Stamps = dict[Path, tuple[int, int]]
"""When each file was written [ns], and its size."""


def stamps(path: Path) -> Stamps:
    """Stamps of a robot's file, and of what it may be made of in and below its folder."""
    found: Stamps = {}
    for file in (path, *path.parent.rglob("*")):
        if len(found) == MOST_FILES:
            break
        if file == path or file.suffix.lower() in ENDINGS:
            try:
                about = file.stat()
            except OSError:  # a file that is being saved may be gone for a moment
                continue
            found[file] = about.st_mtime_ns, about.st_size
    return found


def changes(path: Path, wait: Callable[[], None] | None = None) -> Iterator[list[Path]]:
    """The files that have changed, whenever some have; none of them at first.

    Args:
        path: The robot's file.
        wait: What to do between two looks; sleeps unless given.
    """
    before = stamps(path)
    yield []
    while True:
        (wait or (lambda: time.sleep(PAUSE)))()
        now = stamps(path)
        changed = sorted(x for x in now.keys() | before.keys() if now.get(x) != before.get(x))
        if changed:
            before = now
            yield changed


def show_again(path: Path, show: Callable[[], None], wait: Callable[[], None] | None = None) -> int:
    """Show, then again after each change, until Ctrl+C; what is wrong with the files is shown too.

    Args:
        path: The robot's file.
        show: Reads the files, and prints.
        wait: As of ``changes``.

    Returns:
        Zero: it ends when its user has seen enough.
    """
    try:
        for changed in changes(path, wait):
            if sys.stdout.isatty():
                print("\033[2J\033[3J\033[H", end="")  # an empty screen, nothing to scroll back to
            said = listed((str(file.relative_to(path.parent)) for file in changed), 3)
            what = f" {said} changed" if changed else ""
            print(f"[{time.strftime('%H:%M:%S')}]{what}; Ctrl+C ends", flush=True)
            try:
                show()
            except BulletBridgeError as error:
                print(f"bulletbridge: {' '.join(str(error).split())}", flush=True)
    except KeyboardInterrupt:
        pass
    return 0
