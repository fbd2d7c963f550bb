"""Something to look at while kernels are compiled for the first time, or else it takes long."""

import sys
from collections.abc import Iterable
from time import perf_counter
from typing import Any

_planned: list[Any] = []
"""Kernels that are known to be needed and were not there, in the order in which they were asked."""


def plan(kernels: Iterable[Any]) -> None:
    """Note kernels that will be needed, so that progress can be told of how many."""
    _planned.extend(kernel for kernel in kernels if kernel not in _planned)


class Spinner:
    """Work that takes long, on stderr: a spinner with its time on a terminal, else a line."""

    def __init__(self, text: str) -> None:
        from rich.console import Console
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        self._progress: Progress | None = None
        if sys.stderr.isatty():
            self._progress = Progress(
                SpinnerColumn(),
                TextColumn(f"bulletbridge: {text}", markup=False),
                TimeElapsedColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._progress.add_task("", total=None)
            self._progress.start()
        else:
            print(f"bulletbridge: {text} ...", file=sys.stderr, flush=True)

    def stop(self, text: str) -> None:
        """Take it away, and leave a line that says what was done."""
        if self._progress is not None:
            self._progress.stop()
        print(f"bulletbridge: {text}", file=sys.stderr, flush=True)


class Announcement:
    """What is compiled, how many of how many it is, and the time so far."""

    def __init__(self, kernel: Any, needed: bool) -> None:
        self.kernel, self.needed = kernel, needed

    def __enter__(self) -> None:
        """Start."""
        if not self.needed:
            return
        plan([self.kernel])
        self.begun = perf_counter()
        name = getattr(self.kernel, "__name__", "kernel")
        self.text = f"{name} ({_planned.index(self.kernel) + 1} of {len(_planned)})"
        self.spinner = Spinner(f"compiling {self.text}, once for this user")

    def __exit__(self, *_: object) -> None:
        """Stop."""
        if not self.needed:
            return
        self.spinner.stop(f"compiled {self.text} in {perf_counter() - self.begun:.0f} s")
