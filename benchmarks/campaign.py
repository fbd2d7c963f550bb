"""A campaign against the promise: random closed mechanisms, and a judge of its own.

    python benchmarks/campaign.py --mechanisms 2000 --steps 1000 -o campaign.jsonl
    python benchmarks/campaign.py --table -o campaign.jsonl

Each run is a line of the file, so that a campaign goes on where it was ended. A mechanism is made
from its number alone: ``--first 48 --mechanisms 1`` is the 48th again. What is judged, and what
counts as a fault, is in docs/promise.md.
"""

import argparse
import json
import multiprocessing
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, get_args

from _campaign_cases import make_case
from _campaign_run import Run
from _campaign_tables import tables
from rich.progress import Progress

from bulletbridge.simulation.options import COMPILED, Integrator

SPAWN = multiprocessing.get_context("spawn")  # forked children of threads may stall
Job = tuple[int, str]
"""Number of a mechanism, integrator."""


@dataclass
class Worker:
    """A process that does one run after another.

    Attributes:
        process: It.
        pipe: Where jobs go and lines come from.
        job: What it does now.
        begun: When it began that [s].
    """

    process: BaseProcess
    pipe: Any
    job: Job
    begun: float


def work(pipe: Any, steps: int) -> None:
    """Do what comes through the pipe until None comes."""
    while (job := pipe.recv()) is not None:
        number, integrator = job
        pipe.send(Run(make_case(number), integrator, steps).record())


def employ(steps: int, job: Job) -> Worker:
    """A new process, at work."""
    ours, theirs = SPAWN.Pipe()
    process = SPAWN.Process(target=work, args=(theirs, steps), daemon=True)
    process.start()
    theirs.close()
    ours.send(job)
    return Worker(process, ours, job, time.monotonic())


def lost(job: Job, steps: int, end: str, message: str) -> dict[str, Any]:
    """The line of a run that never came back."""
    case = make_case(job[0])
    return {
        "number": job[0],
        "kind": case.kind,
        "integrator": job[1],
        "steps": steps,
        "constraints": case.constraint_kinds,
        "end": end,
        "message": message,
        "faults": [end],
    }


def run_all(jobs: list[Job], steps: int, workers: int, limit: float) -> Iterator[dict[str, Any]]:
    """Do all runs in processes; lines come as they are done.

    Args:
        jobs: What to do.
        steps: Of each run.
        workers: Number of processes.
        limit: Time that a run may take [s].
    """
    waiting = iter(jobs)
    busy = [employ(steps, job) for _, job in zip(range(workers), waiting, strict=False)]
    try:
        while busy:
            wait([worker.pipe for worker in busy], timeout=1.0)
            for worker in list(busy):
                line, alive = None, True
                try:
                    if worker.pipe.poll():
                        line = worker.pipe.recv()
                except EOFError:
                    alive = False
                    worker.process.join()
                    line = lost(worker.job, steps, "crash", f"exit {worker.process.exitcode}")
                if line is None and time.monotonic() - worker.begun > limit:
                    alive = False
                    worker.process.kill()
                    line = lost(worker.job, steps, "hang", f"no end after {limit:g} s")
                if line is None:
                    continue
                yield line
                busy.remove(worker)
                job = next(waiting, None)
                if job is not None and alive:
                    worker.pipe.send(job)
                    busy.append(Worker(worker.process, worker.pipe, job, time.monotonic()))
                elif job is not None:
                    busy.append(employ(steps, job))
                elif alive:
                    worker.pipe.send(None)
    finally:
        for worker in busy:
            worker.process.kill()


def read(file: Path) -> list[dict[str, Any]]:
    """Lines of a journal; one that was cut off is left out."""
    lines: list[dict[str, Any]] = []
    if file.exists():
        for text in file.read_text().splitlines():
            try:
                lines.append(json.loads(text))
            except json.JSONDecodeError:
                continue
    return lines


def campaign(options: argparse.Namespace) -> None:
    """Do what is not yet in the journal."""
    file: Path = options.output
    done = {(line["number"], line["integrator"], line["steps"]) for line in read(file)}
    numbers = range(options.first, options.first + options.mechanisms)
    jobs = [
        (number, integrator)
        for number in numbers
        for integrator in options.integrators
        if (number, integrator, options.steps) not in done
    ]
    if file.exists() and not file.read_text().endswith("\n"):
        with file.open("a") as journal:  # a line that was cut off stays alone
            journal.write("\n")
    with file.open("a") as journal, Progress(disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task("runs", total=len(jobs))
        for line in run_all(jobs, options.steps, options.workers, options.time_limit):
            journal.write(json.dumps(line) + "\n")
            journal.flush()
            progress.advance(task)


def integrators(text: str) -> list[Integrator]:
    """Names between commas."""
    names = [name for name in get_args(Integrator) if name in text.split(",")]
    if len(names) < len(text.split(",")):
        raise argparse.ArgumentTypeError(f"there are {', '.join(get_args(Integrator))}")
    return names


def main() -> None:
    """Run a campaign, or print its tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, default=Path("campaign.jsonl"))
    parser.add_argument("--first", type=int, default=0, help="number of the first mechanism")
    parser.add_argument("--mechanisms", type=int, default=2000)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--integrators", type=integrators, default=list(COMPILED))
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--time-limit", type=float, default=120.0, help="of a run [s]")
    parser.add_argument("--table", action="store_true", help="print tables of what is there")
    options = parser.parse_args()
    if not options.table:
        campaign(options)
    print(tables(read(options.output)))


if __name__ == "__main__":
    main()
