"""Where results of the command line go: a terminal, JSON, progress bars meanwhile."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from bulletbridge.errors import ModelError


def progress_bars() -> Progress:
    """Progress bars on stderr, gone when done."""
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )


def require_places(json_file: str | None, report: Path | None) -> None:
    """Find out before a long run that its results cannot be written.

    Raises:
        ModelError: A directory is missing or cannot be made.
    """
    if json_file not in (None, "-") and not Path(str(json_file)).absolute().parent.is_dir():
        raise ModelError(f"cannot write JSON to '{json_file}': its directory does not exist")
    if report is not None:
        try:
            report.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ModelError(f"cannot write the report to '{report}': {error}") from None


def deliver(file: str | None, content: Mapping[str, object], show: Callable[[], None]) -> None:
    """Write JSON where it was asked for; show the result in words unless stdout has the JSON.

    JSON has neither infinities nor NaN; null stands for them.

    Raises:
        BulletBridgeError: The file cannot be written.
    """
    if file is not None:
        finite = json.loads(json.dumps(content), parse_constant=lambda _: None)
        text = json.dumps(finite, indent=2, allow_nan=False)
        if file == "-":
            print(text)
            return
        try:
            Path(file).write_text(text + "\n", encoding="utf-8")
        except (OSError, ValueError) as error:
            raise ModelError(f"cannot write JSON to '{file}': {error}") from None
    show()
