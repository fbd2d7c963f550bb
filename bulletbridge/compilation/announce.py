"""The first-ever compilation of the kernels, with something to look at meanwhile."""

import sys
from collections.abc import Callable, Iterable
from time import perf_counter
from typing import Any

from bulletbridge.compilation.jit import is_cached, is_compiled

_planned: list[Any] = []
"""Kernels that are known to be needed and were not there, in the order in which they were asked."""


def plan(kernels: Iterable[Any]) -> None:
    """Note kernels that will be needed, so that progress can be told of how many."""
    _planned.extend(kernel for kernel in kernels if kernel not in _planned)


def at_hand(kernel: Any) -> bool:
    """Whether a kernel is compiled, in this process or on disk."""
    return is_compiled(kernel) or is_cached(kernel)


def announce_compilation(kernel: Callable[..., Any]) -> "Announcement":
    """Context that shows progress on stderr if a kernel has still to be compiled."""
    return Announcement(kernel, not at_hand(kernel))


class Announcement:
    """What is compiled, how many of how many it is, and the time so far; on stderr.

    A spinner on a terminal, a line at the beginning and one at the end elsewhere.
    """

    def __init__(self, kernel: Any, needed: bool) -> None:
        self.kernel, self.needed = kernel, needed

    def __enter__(self) -> None:
        """Start."""
        if not self.needed:
            return
        from rich.console import Console
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        plan([self.kernel])
        self.begun = perf_counter()
        name = getattr(self.kernel, "__name__", "kernel")
        self.text = f"{name} ({_planned.index(self.kernel) + 1} of {len(_planned)})"
        text = f"bulletbridge: compiling {self.text}, once for this user"
        self.progress: Progress | None = None
        if sys.stderr.isatty():
            self.progress = Progress(
                SpinnerColumn(),
                TextColumn(text, markup=False),
                TimeElapsedColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self.progress.add_task("compile", total=None)
            self.progress.start()
        else:
            print(text + " ...", file=sys.stderr, flush=True)

    def __exit__(self, *_: object) -> None:
        """Stop."""
        if not self.needed:
            return
        if self.progress is not None:
            self.progress.stop()
        seconds = perf_counter() - self.begun
        print(f"bulletbridge: compiled {self.text} in {seconds:.0f} s", file=sys.stderr, flush=True)
