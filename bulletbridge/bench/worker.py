"""A process of its own for one simulator: one thread, its own memory, and it may crash alone."""

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from multiprocessing import get_context
from multiprocessing.connection import Connection
from time import perf_counter, process_time
from typing import Any

from bulletbridge.console import leaving_interrupts
from bulletbridge.errors import BulletBridgeError

ONE_THREAD: dict[str, str] = dict.fromkeys(
    (
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "VECLIB_MAXIMUM_THREADS",
        "NUMBA_NUM_THREADS",
    ),
    "1",
)
PATIENCE = 120.0
"""Seconds after which a process is taken to hang; compiling our kernels takes less."""


class PeerError(BulletBridgeError):
    """A simulator refused, failed, hung or crashed."""


@dataclass
class Bench:
    """What a process does on behalf of the measurements; problems and results are pickled."""

    built: dict[str, Any] = field(default_factory=lambda: {})

    def load(self, modules: tuple[str, ...]) -> None:
        """Import a simulator."""
        for module in modules:
            import_module(module)

    def build(self, key: str, adapter: tuple[str, str], *arguments: Any, **options: Any) -> float:
        """Make a problem in a simulator; what that takes [MB]."""
        make = getattr(import_module(adapter[0]), adapter[1])
        self.drop(key)
        before = resident()
        self.built[key] = make(*arguments, **options)
        return resident() - before

    def drop(self, key: str) -> None:
        """Close the simulator built under this key, and forget it."""
        peer = self.built.pop(key, None)
        if peer is not None:
            peer.close()

    def time(self, key: str, steps: int, how: str) -> tuple[float, float]:
        """Wall and processor time [µs] of each of so many steps from the start."""
        peer = self.built[key]
        peer.reset()
        advance = getattr(peer, how)
        wall, processor = perf_counter(), process_time()
        advance(steps)
        scale = 1e6 / steps
        return scale * (perf_counter() - wall), scale * (process_time() - processor)

    def record(self, key: str, steps: int, every: int) -> Any:
        """Times and states from the start."""
        return self.built[key].record(steps, every)

    def visit(self, key: str, times: Any) -> Any:
        """Seconds and states at the start and at these times."""
        return self.built[key].visit(times)

    def acceleration(self, key: str) -> Any:
        """Acceleration at the start, if the simulator tells it."""
        return self.built[key].acceleration()

    def settled(self, key: str) -> int:
        """Steps before differences of velocities mean something."""
        return self.built[key].settled


class Worker:
    """The other end of such a process."""

    def __init__(self) -> None:
        context = get_context("spawn")
        self.connection, other = context.Pipe()
        kept = {key: os.environ.get(key) for key in ONE_THREAD}
        os.environ.update(ONE_THREAD)
        try:
            self.process = context.Process(target=_serve, args=(other,), daemon=True)
            with leaving_interrupts():
                self.process.start()
        finally:
            for key, value in kept.items():
                if value is None:
                    del os.environ[key]
                else:
                    os.environ[key] = value
        other.close()

    def __call__(self, what: str, *arguments: Any, patience: float = PATIENCE, **named: Any) -> Any:
        """Have something done there.

        Raises:
            PeerError: It failed, took too long, or the process is gone.
        """
        try:
            self.connection.send((what, arguments, named))
            if not self.connection.poll(patience):
                self.close()
                raise PeerError(f"gave no answer in {patience:g} s")
            good, answer = self.connection.recv()
        except (EOFError, OSError):
            self.process.join(5.0)
            code = self.process.exitcode
            raise PeerError(f"its process ended with code {code}") from None
        if not good:
            raise PeerError(str(answer))
        return answer

    def close(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.join(5.0)
        self.connection.close()


def _serve(connection: Connection) -> None:
    """Answer until the other end closes."""
    one_core()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):  # simulators print to the C streams too
        os.dup2(nowhere, stream.fileno())
    bench = Bench()
    while True:
        try:
            what, arguments, named = connection.recv()
        except (EOFError, OSError):
            return
        function: Callable[..., Any] = getattr(bench, what)
        try:
            answer = True, function(*arguments, **named)
        except Exception as error:
            answer = False, f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        connection.send(answer)


def one_core() -> None:
    """Keep this process on one core, where the system lets it."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def resident() -> float:
    """Resident memory of this process [MB]; 0 where the system has no /proc."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            pages = int(file.read().split()[1])
    except OSError:
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6
