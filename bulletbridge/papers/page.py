"""Examples of papers as pages: figure, numbers beside others', what is shown and what is not."""

from collections.abc import Sequence
from pathlib import Path

from bulletbridge.console import write_text
from bulletbridge.papers.drawing import draw
from bulletbridge.papers.example import Example, Outcome, Row, Table

SOURCES = {
    "paper": "printed",
    "program": "independent program",
    "theory": "closed form",
}


def number(value: float | None) -> str:
    """Ten digits of ours and others'; a dash for nothing."""
    return "–" if value is None else f"{value:.10g}"


def size(value: float | None) -> str:
    """Two digits of a difference."""
    return "–" if value is None else "0" if value == 0.0 else f"{value:.1e}"


def cells(row: Row) -> list[str]:
    """A row as words: name, ours, the other, whose it is, difference, what is allowed."""
    whose = "" if row.other is None else SOURCES[row.source]
    late = "" if row.agrees else " (!)"
    return [
        row.name,
        number(row.ours),
        number(row.other),
        whose,
        size(row.difference) + late,
        size(row.allowed),
    ]


HEAD = ["", "ours", "other", "whose", "difference", "may differ by"]
RULER = "|---|--:|--:|---|--:|--:|"
"""Numbers to the right, where the site breaks none of them."""


def table_text(table: Table) -> str:
    """A table in Markdown."""
    lines = [HEAD, *map(cells, table.rows)]
    head, *rows = [f"| {' | '.join(map(barred, line))} |" for line in lines]
    return "\n".join([f"**{barred(table.title)}**", "", head, RULER, *rows])


def page_text(example: Example, outcome: Outcome) -> str:
    """One example."""
    parts = [
        f"# {example.title}",
        f"{example.paper}. `bulletbridge paper {example.name}` makes this page.",
    ]
    if outcome.panels:
        parts.append(f"![{example.title}]({example.name}.svg)")
    parts += [
        f"**What it shows.** {example.shows.strip()}",
        f"**What it cannot show.** {example.cannot.strip()}",
        closest_text(outcome),
        *map(table_text, outcome.tables),
    ]
    return "\n\n".join(parts) + "\n"


def closest_text(outcome: Outcome) -> str:
    """How near the numbers come to what they may differ by."""
    rows = [table.worst for table in outcome.tables]
    worst = Table("", [row for row in rows if row is not None]).worst
    if worst is None:
        return "**Numbers.** None of them is held against another: see above."
    return (
        f"**Numbers.** Of what it may differ by, {barred(worst.name)} uses most:"
        f" {size(worst.difference)} of {size(worst.allowed)}."
    )


def write_pages(folder: Path, example: Example, outcome: Outcome) -> None:
    """The page of an example and its figure.

    Raises:
        ModelError: They cannot be written.
        MissingExtraError: There is no matplotlib.
    """
    if outcome.panels:
        write_text(folder / f"{example.name}.svg", draw(outcome.panels))
    write_text(folder / f"{example.name}.md", page_text(example, outcome))


def index_text(examples: Sequence[Example], missing: Sequence[str]) -> str:
    """Examples by paper, with links to their pages, and what cannot be reproduced."""
    parts = [
        "# The papers, figure by figure",
        "Every figure and table of the five papers that the formulations come from, run again. Made"
        " by `make papers`, that is `bulletbridge paper all -o docs/papers`; each of them by"
        " `bulletbridge paper NAME`, with `--gui` in Bullet's window. None of the papers' pictures"
        " was in the copies that we read: what each figure draws follows from the text around it,"
        " and its numbers are held against those that are printed, against closed forms, or against"
        " an independent program in other coordinates. Each page says what its numbers may differ"
        " by. What is wrong in the papers: [errata](../errata.md).",
    ]
    for paper in dict.fromkeys(example.paper for example in examples):
        lines = [
            f"| [`{example.name}`]({example.name}.md) | {barred(example.title)} |"
            for example in examples
            if example.paper == paper
        ]
        parts += [f"## {paper}", "\n".join(["| example | what |", "|---|---|", *lines])]
    parts += ["## What cannot be reproduced", "\n".join(f"- {line}" for line in missing)]
    return "\n\n".join(parts) + "\n"


def barred(text: str) -> str:
    """Text for a cell of a table."""
    return text.replace("|", "\\|")
