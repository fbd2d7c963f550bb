"""A folder for URDFs that are made on the way, gone when the process ends."""

import hashlib
import shutil
from functools import cache
from multiprocessing.util import Finalize
from pathlib import Path
from tempfile import mkdtemp

from bulletbridge.console import write_text

TEXT = "text"
"""What the file of a robot is called that was given as its text."""


def scratch_folder(path: Path, how: tuple[object, ...]) -> Path:
    """Where what is made of a file goes; the same for the same version of it, read the same way.

    Args:
        path: The robot's file, which exists.
        how: Choices on which it depends what is made.
    """
    about = path.stat()
    said = f"{path.resolve()} {about.st_mtime_ns} {about.st_size} {how}"
    folder = _root() / hashlib.sha256(said.encode()).hexdigest()[:16]
    folder.mkdir(exist_ok=True)
    return folder


def text_file(text: str) -> Path:
    """A file with the text of a robot; the same for the same text."""
    folder = _root() / hashlib.sha256(text.encode()).hexdigest()[:16]
    folder.mkdir(exist_ok=True)
    file = folder / f"{TEXT}.xml"
    write_text(file, text)
    return file


@cache
def _root() -> Path:
    """Removed when the process ends, a worker of a pool too, which runs no ``atexit``."""
    folder = Path(mkdtemp(prefix="bulletbridge-"))
    Finalize(None, shutil.rmtree, (folder,), {"ignore_errors": True}, exitpriority=0)
    return folder
