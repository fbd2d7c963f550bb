"""Tracebacks of a script without the frames that are ours."""

import os
import runpy
from collections.abc import Generator
from types import TracebackType

import pybullet

from bulletbridge.drop_in import function, registry
from bulletbridge.errors import BulletBridgeError

PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(__file__))) + os.sep
STARTERS = (runpy.__file__, "<frozen runpy>")
CALLERS = (function.__file__, registry.__file__)
"""Files that call PyBullet on behalf of the script."""


def keep_own_frames(error: BaseException) -> None:
    """Cut off how the script was started, and what stood in for a PyBullet function that raised."""
    for one in chain(error):
        frames = one.__traceback__
        while frames is not None and is_ours(frames):
            frames = frames.tb_next
        one.__traceback__ = frames
        every = list(listed(frames))
        if not every:
            continue
        raised_by = every[-1].tb_frame.f_code.co_filename
        if isinstance(one, pybullet.error | BulletBridgeError) or raised_by in CALLERS:
            [frame for frame in every if not is_ours(frame)][-1].tb_next = None


def chain(error: BaseException | None) -> Generator[BaseException, None, None]:
    """An error and those that it came from."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def listed(frames: TracebackType | None) -> Generator[TracebackType, None, None]:
    """A traceback's frames from the outermost on."""
    while frames is not None:
        yield frames
        frames = frames.tb_next


def is_ours(frame: TracebackType) -> bool:
    """Whether a frame is not the script's."""
    name = frame.tb_frame.f_code.co_filename
    return name.startswith(PACKAGE) or name in STARTERS
