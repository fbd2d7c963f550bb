"""Whether kernels are at hand, and what is shown while one is compiled."""

from collections.abc import Callable
from typing import Any

from bulletbridge.compilation.jit import is_cached, is_compiled
from bulletbridge.compilation.progress import Announcement


def at_hand(kernel: Any) -> bool:
    """Whether a kernel is compiled, in this process or on disk."""
    return is_compiled(kernel) or is_cached(kernel)


def announce_compilation(kernel: Callable[..., Any]) -> Announcement:
    """Context that shows progress on stderr if a kernel has still to be compiled."""
    return Announcement(kernel, not at_hand(kernel))
