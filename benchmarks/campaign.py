"""A campaign against the promise: random closed mechanisms, and a judge of its own.

    python benchmarks/campaign.py --mechanisms 2000 --steps 1000 -o campaign.jsonl
    python benchmarks/campaign.py --table -o campaign.jsonl

Each run is a line of the file, so that a campaign goes on where it was ended. A mechanism is made
from its number alone: ``--first 48 --mechanisms 1`` is the 48th again. What is judged, and what
counts as a fault, is in docs/promise.md.
"""

import argparse
import sys
from pathlib import Path
from typing import get_args

from _campaign_cases import MAKERS, make_case
from _campaign_run import Run
from _campaign_tables import tables
from _processes import Line, keep, read, run_all
from rich.progress import track

from bulletbridge.system.options import COMPILED, Integrator

Job = tuple[int, Integrator, int, str | None]
"""Number of a mechanism, integrator, steps, kind unless it has its own."""


def run(job: Job) -> Line:
    """The line of a run."""
    number, integrator, steps, kind = job
    return Run(make_case(number, kind), integrator, steps).record()


def lost(job: Job, end: str, message: str) -> Line:
    """The line of a run that never came back."""
    number, integrator, steps, kind = job
    case = make_case(number, kind)
    return {
        "number": number,
        "kind": case.kind,
        "integrator": integrator,
        "steps": steps,
        "constraints": case.constraint_kinds,
        "end": end,
        "message": message,
        "faults": [end],
    }


def campaign(options: argparse.Namespace) -> None:
    """Do what is not yet in the journal."""
    file: Path = options.output
    done = {
        (line["number"], line["integrator"], line["steps"])
        for line in read(file)
        if options.kind in (None, line["kind"])
    }
    jobs: list[Job] = [
        (number, integrator, options.steps, options.kind)
        for number in range(options.first, options.first + options.mechanisms)
        for integrator in options.integrators
        if (number, integrator, options.steps) not in done
    ]
    lines = run_all(run, jobs, lost, options.workers, options.time_limit)
    keep(file, track(lines, "runs", len(jobs), disable=not sys.stderr.isatty()))


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
    parser.add_argument("--kind", choices=MAKERS, help="of all cases; of each its own unless given")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--time-limit", type=float, default=300.0, help="of a run [s]")
    parser.add_argument("--table", action="store_true", help="print tables of what is there")
    options = parser.parse_args()
    if not options.table:
        campaign(options)
    print(tables(read(options.output)))


if __name__ == "__main__":
    main()
