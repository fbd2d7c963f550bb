"""A folder for URDFs that are made on the way, gone when the process ends."""

import hashlib
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory


def scratch_folder(path: Path, how: tuple[object, ...]) -> Path:
    """Where what is made of a file goes; the same for the same version of it, read the same way.

    Args:
        path: The robot's file, which exists.
        how: Choices on which it depends what is made.
    """
    about = path.stat()
    said = f"{path.resolve()} {about.st_mtime_ns} {about.st_size} {how}"
    folder = Path(_root().name) / hashlib.sha256(said.encode()).hexdigest()[:16]
    folder.mkdir(exist_ok=True)
    return folder


@cache
def _root() -> "TemporaryDirectory[str]":
    """Removed by its finaliser, at the latest when Python ends."""
    return TemporaryDirectory(prefix="bulletbridge-")
