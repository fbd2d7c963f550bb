"""Who compiles what: a kernel or helper is made by the process that claims it, others take it.

A claim is a lock on one byte of a file that all processes have open, so that it ends with the
process that has it, however that ends, and leaves nothing behind. The byte after it tells that the
process is at what the helper calls, where there is work for another one as well.
"""

import functools
import hashlib
import os
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep  # the real ones, whatever a script is shown

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

PATIENCE = 1800.0
"""Time [s] to wait for another process that makes the same: only a hang takes longer."""
PAUSE = 0.005
"""Time [s] between looks; a helper takes some tenths of a second."""
DIGITS = 15
"""Hexadecimal digits of a byte's place, which fit into a signed word."""


@functools.cache
def claims_file(folder: Path) -> int | None:
    """The open file of a folder's claims, kept open, since closing it gives all of them up."""
    try:
        return os.open(folder / "claims", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        return None


def place(path: Path) -> int:
    """The byte that stands for a file that is to be made."""
    name = f"{path.parent.name}/{path.name}"
    return int(hashlib.sha256(name.encode()).hexdigest()[:DIGITS], 16)


def claim(path: Path, patience: float = PATIENCE, to_share: bool = False) -> bool:
    """Claim a kernel or helper for this process, once no other has it.

    Args:
        path: Where it is kept.
        patience: Time to wait [s].
        to_share: Wait no more once the process that has it is at what it calls.

    Returns:
        Whether no other process has it; True too where claims cannot be made. Nothing but time
        depends on it.
    """
    file = None if fcntl is None else claims_file(path.parent.parent)
    if fcntl is None or file is None:
        return True
    begun, spot = monotonic(), place(path)
    while True:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, spot)
        except (BlockingIOError, PermissionError):  # which of the two is up to the system
            if monotonic() - begun >= patience or to_share and is_locked(file, spot + 1):
                return False
            sleep(PAUSE)
        except OSError:  # a file system without locks
            return True
        else:
            return True


def is_locked(file: int, spot: int) -> bool:
    """Whether another process has locked a byte."""
    assert fcntl is not None
    try:
        fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB, 1, spot)
        fcntl.lockf(file, fcntl.LOCK_UN, 1, spot)
    except OSError:
        return True
    return False


def go_inside(path: Path) -> None:
    """Tell others that this process is at what a helper calls that it has claimed."""
    file = None if fcntl is None else claims_file(path.parent.parent)
    if fcntl is None or file is None:
        return
    with suppress(OSError):  # also where somebody looks at it just now: they wait a little longer
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place(path) + 1)


def give_up(path: Path) -> None:
    """Let others have it; nothing happens where this process has no claim."""
    file = None if fcntl is None else claims_file(path.parent.parent)
    if fcntl is None or file is None:
        return
    with suppress(OSError):
        fcntl.lockf(file, fcntl.LOCK_UN, 2, place(path))
