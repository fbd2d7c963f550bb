"""Jobs in processes of their own, which may stall or die, and a journal of what they say."""

import json
import multiprocessing
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, TypeVar

import psutil

SPAWN = multiprocessing.get_context("spawn")  # forked children of threads may stall
Line = dict[str, Any]
"""What a job says, as JSON has it."""
Job = TypeVar("Job")
PATIENCE = 20.0
"""Times as long as it may work that a process may take: beside others it waits, or it is stuck."""


@dataclass
class Worker:
    """A process that does one job after another.

    Attributes:
        process: It.
        pipe: Where jobs go and lines come from.
        job: What it does now.
        begun: When it began that [s]; None until it does.
        worked: Its processor time until then [s].
    """

    process: BaseProcess
    pipe: Any
    job: Any
    begun: float | None = None
    worked: float = 0.0

    def begin(self) -> None:
        """Note that it begins."""
        self.begun, self.worked = time.monotonic(), self._processor_time()

    def is_late(self, limit: float) -> bool:
        """Whether it has worked for longer than a limit [s], or waited for long."""
        if self.begun is None:
            return False
        waited = time.monotonic() - self.begun > PATIENCE * limit
        return waited or self._processor_time() - self.worked > limit

    def _processor_time(self) -> float:
        try:
            return sum(psutil.Process(self.process.pid).cpu_times()[:2])
        except psutil.Error:  # it is gone, which its pipe will tell
            return 0.0


def serve(pipe: Any, do: Callable[[Any], Line]) -> None:
    """Do what comes through the pipe until None comes; say when each begins."""
    with suppress(EOFError, BrokenPipeError):  # whoever asked is gone
        while (job := pipe.recv()) is not None:
            pipe.send(None)
            pipe.send(do(job))


def employ(do: Callable[[Job], Line], job: Job) -> Worker:
    """A new process, at work."""
    ours, theirs = SPAWN.Pipe()
    process = SPAWN.Process(target=serve, args=(theirs, do), daemon=True)
    process.start()
    theirs.close()
    ours.send(job)
    return Worker(process, ours, job)


def run_all(
    do: Callable[[Job], Line],
    jobs: Iterable[Job],
    lost: Callable[[Job, str, str], Line],
    workers: int,
    limit: float,
) -> Iterator[Line]:
    """Do all jobs; lines come as they are done.

    Args:
        do: What a process does with a job; a function of a module.
        jobs: What to do.
        lost: The line of a job whose process stalled (``hang``) or died (``crash``), and how.
        workers: Number of processes.
        limit: Processor time that a job may take once it has begun [s].
    """
    waiting = iter(jobs)
    busy = [employ(do, job) for _, job in zip(range(workers), waiting, strict=False)]
    try:
        while busy:
            wait([worker.pipe for worker in busy], timeout=1.0)
            for worker in list(busy):
                line, alive = None, True
                try:
                    if worker.pipe.poll():
                        line = worker.pipe.recv()
                        worker.begin()  # it says so by None
                except (EOFError, ConnectionError):
                    alive = False
                    worker.process.join()
                    line = lost(worker.job, "crash", f"exit code {worker.process.exitcode}")
                if line is None and worker.is_late(limit):
                    alive = False
                    worker.process.kill()
                    line = lost(worker.job, "hang", f"no end after {limit:g} s of work")
                if line is None:
                    continue
                yield line
                busy.remove(worker)
                job = next(waiting, None)
                if job is not None and alive:
                    worker.pipe.send(job)
                    busy.append(Worker(worker.process, worker.pipe, job))
                elif job is not None:
                    busy.append(employ(do, job))
                elif alive:
                    worker.pipe.send(None)
    finally:
        for worker in busy:
            worker.process.kill()


def read(file: Path) -> list[Line]:
    """Lines of a journal; one that was cut off is left out."""
    lines: list[Line] = []
    if file.exists():
        for text in file.read_text().splitlines():
            try:
                lines.append(json.loads(text))
            except json.JSONDecodeError:
                continue
    return lines


def keep(file: Path, lines: Iterable[Line]) -> None:
    """Append lines to a journal, each one as it comes."""
    cut_off = file.exists() and not file.read_text().endswith("\n")
    with file.open("a") as journal:
        journal.write("\n" if cut_off else "")
        for line in lines:
            journal.write(json.dumps(line) + "\n")
            journal.flush()
