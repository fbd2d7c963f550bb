"""Bullet prints to the C streams; the command line keeps them for itself."""

import contextlib
import ctypes
import os
import sys
import tempfile
from collections.abc import Callable, Generator


@contextlib.contextmanager
def silenced_bullet() -> Generator[None, None, None]:
    """Discard what C code prints on stdout, and pybullet's greeting on stderr.

    Python's own ``sys.stdout`` goes on reaching the caller, so that JSON on it stays JSON.
    """
    try:
        real = sys.stdout.fileno() == 1
    except (OSError, ValueError):
        real = False  # captured by a test or a notebook
    sys.stdout.flush()
    shown, kept = sys.stdout, os.dup(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    if real:
        sys.stdout = os.fdopen(os.dup(kept), "w", encoding=shown.encoding, errors=shown.errors)
    try:
        _import_silently(nowhere)
        yield
    finally:
        with contextlib.suppress(BrokenPipeError):  # whoever read has gone, as ``head`` does
            sys.stdout.flush()
        if real:
            with contextlib.suppress(BrokenPipeError):
                sys.stdout.close()
        sys.stdout = shown
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nowhere)


def said_by_bullet(call: Callable[[], object]) -> str:
    """What C code prints on stdout while a call fails; its exception from PyBullet is dropped.

    Bullet prints why it refuses a file; the exception only says that it does.
    """
    libc = ctypes.CDLL(None) if os.name == "posix" else ctypes.CDLL("msvcrt")
    sys.stdout.flush()
    libc.fflush(None)
    kept = os.dup(1)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 1)
        try:
            with contextlib.suppress(pybullet_error()):
                call()
        finally:
            libc.fflush(None)
            os.dup2(kept, 1)
            os.close(kept)
        file.seek(0)
        return file.read().decode(errors="replace")


def pybullet_error() -> type[Exception]:
    """PyBullet's exception; the module is imported when it is asked for."""
    import pybullet

    return pybullet.error


def _import_silently(nowhere: int) -> None:
    """Import pybullet without the build time that it prints on stderr."""
    if "pybullet" in sys.modules:
        return
    sys.stderr.flush()
    kept = os.dup(2)
    os.dup2(nowhere, 2)
    try:
        import pybullet as _  # noqa: F401
    finally:
        os.dup2(kept, 2)
        os.close(kept)
