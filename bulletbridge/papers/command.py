"""``bulletbridge paper``."""

from pathlib import Path
from typing import Annotated

import typer

from bulletbridge.errors import ModelError


def paper(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME",
            help="Examples, the beginning of several (haug), or all; a list of them unless given.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR",
            help="Write DIR/NAME.md, DIR/NAME.svg, and DIR/index.md of all that are there.",
        ),
    ] = None,
    until: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS", help="Run up to this time; as long as the paper otherwise."
        ),
    ] = None,
    gui: Annotated[
        bool, typer.Option("--gui", help="Watch the motion in Bullet's window.")
    ] = False,
) -> None:
    """Run examples of the papers, with their numbers beside ours; exit code 1 if some disagree."""
    from bulletbridge.comparison.tables import wide_console
    from bulletbridge.console import progress_bars, require_places, write_text
    from bulletbridge.papers.catalogue import MISSING, chosen, examples
    from bulletbridge.papers.example import Outcome
    from bulletbridge.papers.page import index_text, write_pages
    from bulletbridge.papers.terminal import list_examples, show
    from bulletbridge.papers.watch import require_window, watch

    console = wide_console()
    if not names:
        list_examples(console, list(examples().values()))
        return
    wanted, outcomes = chosen(names), dict[str, Outcome]()
    if until is not None and not until > 0.0:
        raise ModelError(f"--until is {until:g} s; give a time after the start")
    if until is not None and output is not None:
        raise ModelError("--until leaves out what pages are to show; leave it or --output out")
    require_places(None, output)
    if gui:
        require_window()
    for example in wanted:
        with progress_bars() as progress:
            progress.add_task(example.name, total=None)
            outcome = outcomes[example.name] = example.run(until)
        show(console, example, outcome)
        if output is not None:
            write_pages(output, example, outcome)
        if gui and outcome.film is not None:
            watch(outcome.film)
    if output is not None:
        places = {example: output / f"{example.name}.md" for example in examples().values()}
        pages = {x: path.read_text("utf-8") for x, path in places.items() if path.is_file()}
        write_text(output / "index.md", index_text(pages, MISSING))
    if not all(outcome.agrees for outcome in outcomes.values()):
        raise typer.Exit(1)
