"""Output of the command line: terminal, JSON, progress bars."""

import errno
import json
import math
import signal
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing import resource_tracker
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from bulletbridge.errors import ModelError

if TYPE_CHECKING:
    from rich.progress import Progress

WIDTH = 300
"""Characters of a dict that is not opened."""


def number(text: str) -> float:
    """A number, or a quotient of two, as a step of ``1/240``."""
    above, _, below = str(text).partition("/")
    return float(above) / (float(below or 1) or math.nan)


@contextmanager
def leaving_interrupts() -> Generator[None]:
    """Context in which processes are started that leave Ctrl-C to whoever starts them.

    It goes to all of them, and those that are still importing would answer with a traceback each.
    """
    if sys.platform == "win32":
        yield
        return
    resource_tracker.ensure_running()  # which unblocks it, where the first process brings it along
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # children have it too
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def progress_bars() -> "Progress":
    """Progress bars on stderr, gone when done; none in a file."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


def require_places(json_file: str | None, report: Path | None) -> None:
    """Find out before a long run that its results cannot be written.

    Raises:
        ModelError: A directory is missing or cannot be made, or nothing can be written there.
    """
    if json_file is not None and json_file != "-":
        if not Path(json_file).absolute().parent.is_dir():
            raise ModelError(f"cannot write JSON to '{json_file}': its directory does not exist")
        require_writable(Path(json_file))
    if report is not None:
        try:
            report.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ModelError(f"cannot write the report to '{report}': {error}") from None
        require_writable(report / ".written")


def require_writable(path: Path) -> None:
    """Find out before long work that a file cannot be written; what is in it stays."""
    new = not path.exists()
    try:
        path.open("ab").close()
        if new:
            path.unlink()
    except OSError as error:
        raise unwritable(path, error) from None


def unwritable(path: Path, error: Exception) -> ModelError:
    """The error of a file that cannot be written, with what to do."""
    code = error.errno if isinstance(error, OSError) else None
    if code in (errno.ENOSPC, errno.EDQUOT):
        remedy = "free some space, or name a file on another disk"
    elif code in (errno.EACCES, errno.EPERM, errno.EROFS):
        remedy = "name a file in a folder that is yours to write"
    else:
        remedy = "name a file in a folder that is there"
    return ModelError(f"cannot write {path}: {error}; {remedy}")


def deliver(file: str | None, content: Mapping[str, object], show: Callable[[], None]) -> None:
    """Write JSON where it was asked for; show the result in words unless stdout has the JSON.

    Raises:
        ModelError: The file cannot be written.
    """
    if file == "-":
        print(json_text(content))
        return
    show()  # first: what took long is not lost with a full disk
    if file is not None:
        write_json(Path(file), content)


def write_json(file: Path, content: object) -> None:
    """Write a file of JSON that differs from the one before in the lines whose rows differ.

    Raises:
        ModelError: The file cannot be written.
    """
    write_text(file, json_text(content) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write a file that people read.

    Raises:
        ModelError: The file cannot be written.
    """
    try:
        path.write_text(text, encoding="utf-8")
    except (OSError, ValueError) as error:
        raise unwritable(path, error) from None


def tell_notes(path: Path, notes: Sequence[str]) -> None:
    """What was lost, changed or assumed when a file was read, one line each on stderr."""
    for note in notes:
        print(f"bulletbridge: {path.name}: {note}", file=sys.stderr)


def json_text(content: object) -> str:
    """JSON with one row a line, for people and for the differences between two versions.

    A row is a dict in a list and stands on one line, however long. Other dicts are opened, an entry
    a line, where they take more than a line. JSON has neither infinities nor NaN; null stands for
    them.
    """
    return _opened(json.loads(json.dumps(content), parse_constant=lambda _: None), "\n")


def _opened(content: Any, line: str) -> str:
    """JSON of a value; ``line`` is a line break and the indentation of what follows the value."""
    text = json.dumps(content, allow_nan=False)
    inner = line + "  "
    if isinstance(content, dict) and len(text) > WIDTH:
        entries = cast("dict[str, Any]", content).items()
        parts = [f"{json.dumps(key)}: {_opened(value, inner)}" for key, value in entries]
        return f"{{{inner}{f',{inner}'.join(parts)}{line}}}"
    if isinstance(content, list):
        rows = cast("list[Any]", content)
        if any(isinstance(row, dict) for row in rows):
            return f"[{inner}{f',{inner}'.join(map(json.dumps, rows))}{line}]"
    return text
