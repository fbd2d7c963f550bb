"""The first-ever compilation of the kernels, with something to look at meanwhile."""

import sys
from collections.abc import Callable
from time import perf_counter
from typing import Any

from bulletbridge.numerics.jit import is_cached, is_compiled
from bulletbridge.simulation.step import run


def announce_compilation(kernel: Callable[..., Any] = run) -> "Announcement":
    """Context that shows progress on stderr if a kernel, the step's, has still to be compiled."""
    return Announcement(not (is_compiled(kernel) or is_cached(kernel)))


class Announcement:
    """Spinner with elapsed time on a terminal, two lines elsewhere."""

    def __init__(self, needed: bool) -> None:
        self.needed = needed

    def __enter__(self) -> None:
        """Start."""
        if not self.needed:
            return
        from rich.console import Console
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        self.begun = perf_counter()
        text = "bulletbridge: compiling its kernels, once on this machine (less than a minute)"
        self.progress: Progress | None = None
        if sys.stderr.isatty():
            self.progress = Progress(
                SpinnerColumn(), TextColumn(text), TimeElapsedColumn(), console=Console(stderr=True)
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
        print(f"bulletbridge: kernels compiled in {seconds:.0f} s", file=sys.stderr, flush=True)
