"""Loops files and URDFs with mistakes in them, and what the commands say to them.

    python benchmarks/fuzz.py --loops 20000 --urdfs 6000 -o fuzz.jsonl
    python benchmarks/fuzz.py --table -o fuzz.jsonl

A bundled file is spoilt in one place or a few. A loops file is read, and one in ten is inspected
too; a URDF goes through ``inertia``, ``flexible`` and ``inspect``. They have to answer, or to tell
in a line what is wrong; a traceback, a dead process or a job without an end is a fault. Each job is
made from its number alone: ``--first 48 --loops 1 --urdfs 0`` is the 48th again.
"""

import argparse
import contextlib
import io
import shutil
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import numpy as np
from _mutants import Rng, spoil
from _processes import Line, keep, read, run_all
from rich.progress import track

from bulletbridge import cli
from bulletbridge.errors import BulletBridgeError
from bulletbridge.models.loops_file import read_loops

BUNDLED = Path(__file__).parents[1] / "urdf"
MOST = 40_000  # characters of a text that is spoilt
INSPECTED = 0.1  # of the loops files that can be read
FAULTS = "traceback", "crash", "hang"
Kind = Literal["loops", "urdf"]
Job = tuple[Kind, int]
"""What is spoilt, and the number it is made from."""


def seeds(pattern: str) -> list[Path]:
    """Bundled files that are spoilt."""
    return [file for file in sorted(BUNDLED.glob(pattern)) if file.stat().st_size < MOST]


def spoilt(kind: Kind, number: int, place: Path) -> tuple[Path, str, Rng]:
    """A loops file or URDF with mistakes among copies of the bundled ones.

    Args:
        kind: What is spoilt.
        number: What it is made from.
        place: Where the copies go, in a folder of their own.

    Returns:
        The file, its text before, and chance to go on with.
    """
    rng = np.random.default_rng([number, kind == "urdf"])
    files = seeds("*.loops.yaml" if kind == "loops" else "*.urdf")
    file = files[int(rng.integers(len(files)))]
    text = file.read_text(encoding="utf-8")
    made = Path(tempfile.mkdtemp(dir=place)) / file.name
    for beside in BUNDLED.iterdir():
        there = made.parent / beside.name
        if beside.is_dir():
            there.symlink_to(beside)  # meshes, which nothing writes to
        else:
            shutil.copy(beside, there)
    made.write_bytes(spoil(text, rng).encode("utf-8", "surrogatepass"))
    return made, text, rng


def run(job: Job) -> Line:
    """What came of one job."""
    kind, number = job
    with tempfile.TemporaryDirectory() as place:
        file, text, rng = spoilt(kind, number, Path(place))
        commands = of_loops_file(file, rng) if kind == "loops" else of_urdf(file, text, rng)
        line: Line = {"kind": kind, "number": number, "file": file.name, "end": "done"}
        for name, command in commands:
            end, said = answer(command)
            said = said.replace(str(file.parent), "")[-2000:]
            line = {**line, "command": name, "end": end, "said": said}
            if end in FAULTS:
                break
    return line


def of_loops_file(file: Path, rng: Rng) -> list[tuple[str, Callable[[], int]]]:
    """What is done with a loops file."""

    def reading() -> int:
        read_loops(file)
        return 0

    commands: list[tuple[str, Callable[[], int]]] = [("read_loops", reading)]
    if rng.random() < INSPECTED:
        commands.append(("inspect", lambda: cli.run(["inspect", str(file)])))
    return commands


def of_urdf(file: Path, text: str, rng: Rng) -> list[tuple[str, Callable[[], int]]]:
    """What is done with a URDF that had a text before it was spoilt."""
    links = [part.split('"')[1] for part in text.split("<link name=")[1:]]
    link, output = links[int(rng.integers(len(links)))], str(file.with_name("new.urdf"))
    loops = file.with_name("spoilt.loops.yaml")
    loops.write_text(f"bulletbridge: 1\nurdf: {file.name}\nfixed_base: true\n")
    own = BUNDLED / f"{file.stem}.loops.yaml"
    if own.exists() and rng.random() < 0.5:
        loops.write_text(own.read_text(encoding="utf-8"), encoding="utf-8")
    whole = ["--all"] if rng.random() < 0.5 else []
    bends = ["--link", link, "--segments", "3", "--EI", "50", "-o", output]
    return [
        ("inertia", lambda: cli.run(["inertia", str(file), "-o", output, *whole])),
        ("flexible", lambda: cli.run(["flexible", str(file), *bends])),
        ("inspect", lambda: cli.run(["inspect", str(loops)])),
    ]


def answer(command: Callable[[], int]) -> tuple[str, str]:
    """How a command ends, and what it says of a mistake; a traceback's end."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
            code = command()
    except BulletBridgeError as error:
        return "told", str(error)
    except SystemExit as error:
        return "traceback", f"SystemExit: {error}"
    except Exception:
        return "traceback", traceback.format_exc()
    return ("told" if code else "done"), said.getvalue()


def lost(job: Job, end: str, message: str) -> Line:
    """The line of a job that never came back."""
    return {"kind": job[0], "number": job[1], "end": end, "said": message, "command": ""}


def fuzz(options: argparse.Namespace) -> None:
    """Do what is not yet in the journal."""
    done = {(line["kind"], line["number"]) for line in read(options.output)}
    counts: dict[Kind, int] = {"loops": options.loops, "urdf": options.urdfs}
    jobs: list[Job] = [
        (kind, number)
        for kind, count in counts.items()
        for number in range(options.first, options.first + count)
        if (kind, number) not in done
    ]
    lines = run_all(run, jobs, lost, options.workers, options.time_limit)
    keep(options.output, track(lines, "files", len(jobs), disable=not sys.stderr.isatty()))


def tables(lines: list[Line]) -> str:
    """Counts of ends, and faults with the place that they come from."""
    ends = "done", "told", *FAULTS
    rows = [["file", "number", *ends], ["---"] * (2 + len(ends))]
    for kind in sorted({line["kind"] for line in lines}):
        mine = [line["end"] for line in lines if line["kind"] == kind]
        rows.append([kind, str(len(mine)), *(str(mine.count(end)) for end in ends)])
    text = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    places: dict[str, list[Line]] = {}
    for line in lines:
        if line["end"] in FAULTS:
            places.setdefault(place_of(line), []).append(line)
    counts = Counter({place: len(found) for place, found in places.items()})
    for place, count in counts.most_common():
        numbers = ", ".join(str(line["number"]) for line in places[place][:5])
        text += f"\n- {count}: {place} ({places[place][0]['kind']} {numbers})"
    return text


def place_of(line: Line) -> str:
    """Where a fault comes from: the last of our own lines, and the kind of error."""
    said = line["said"].strip().splitlines() or [""]
    own = [text.strip() for text in said if "bulletbridge/" in text]
    where = own[-1].split("bulletbridge/")[-1].replace('"', "") if own else ""
    kind = said[-1].split(":")[0][:60]
    return f"{line['end']} in {line['command'] or 'some command'}: {where}: {kind}"


def main() -> None:
    """Spoil files and hand them over, or print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, default=Path("fuzz.jsonl"))
    parser.add_argument("--first", type=int, default=0, help="number of the first file")
    parser.add_argument("--loops", type=int, default=20_000)
    parser.add_argument("--urdfs", type=int, default=6_000)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--time-limit", type=float, default=30.0, help="of a file [s]")
    parser.add_argument("--table", action="store_true", help="print what is there")
    options = parser.parse_args()
    if not options.table:
        fuzz(options)
    print(tables(read(options.output)))


if __name__ == "__main__":
    main()
