"""Examples of papers as pages: figure, numbers beside others', what is shown and what is not."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from bulletbridge.console import write_text
from bulletbridge.papers.drawing import draw
from bulletbridge.papers.example import Example, Outcome, Row, Table

SOURCES = {
    "paper": "printed",
    "program": "independent program",
    "theory": "closed form",
    "finer": "finer steps",
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


def columns(rows: Sequence[list[str]]) -> list[list[str]]:
    """Heading and rows of cells, without columns that say nothing or the same throughout."""
    whose = {row[3] for row in rows} - {""}
    head = [*HEAD[:2], *whose, *HEAD[3:]] if len(whose) == 1 else HEAD
    said = [k for k in range(len(HEAD)) if k < 2 or {row[k] for row in rows} - {"", "–"}]
    shown = [k for k in said if k != 3 or len(whose) > 1]
    return [[line[k] for k in shown] for line in (head, *rows)]


def table_text(title: str, rows: Sequence[list[str]]) -> str:
    """A table in Markdown; numbers to the right, where the site breaks none of them."""
    head, *below = columns(rows)
    ruler = ["---" if name in ("", "whose") else "--:" for name in head]
    lines = [f"| {' | '.join(map(barred, line))} |" for line in (head, *below)]
    return "\n".join([f"**{barred(title)}**", "", lines[0], f"|{'|'.join(ruler)}|", *lines[1:]])


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
        farthest_text(outcome),
        *(table_text(table.title, list(map(cells, table.rows))) for table in outcome.tables),
    ]
    return "\n\n".join(parts) + "\n"


def farthest_text(outcome: Outcome) -> str:
    """How far the numbers are from each kind of others, where they use most of what is allowed."""
    rows, lines = [row for table in outcome.tables for row in table.rows], list[str]()
    for source, whose in SOURCES.items():
        held = Table("", [r for r in rows if r.source == source and r.difference is not None])
        worst = held.worst
        if worst is not None:
            of = f"{size(worst.difference)} of the {size(worst.allowed)} allowed"
            lines.append(f"- {whose}: {of} ({barred(worst.name)})")
        elif held.rows:
            far = max(held.rows, key=lambda r: abs(r.difference or 0.0) / abs(r.other or 1.0))
            of = f"{size(far.difference)}, no bound"
            lines.append(f"- {whose}: {of} ({barred(far.name)})")
    if not lines:
        return FARTHEST + " None: no number is held against another, see above."
    return "\n".join([FARTHEST, "", *lines])


FARTHEST = "**Largest differences.**"


def farthest_of(page: str) -> str:
    """What the page of an example says of differences, for a cell of the list of all."""
    said = page.partition(FARTHEST)[2].partition("\n**")[0].splitlines()
    return "; ".join(line[2:].split(" (")[0] for line in said if line.startswith("- ")) or "–"


def write_pages(folder: Path, example: Example, outcome: Outcome) -> None:
    """The page of an example and its figure.

    Raises:
        ModelError: They cannot be written.
        MissingExtraError: There is no matplotlib.
    """
    if outcome.panels:
        write_text(folder / f"{example.name}.svg", draw(outcome.panels))
    write_text(folder / f"{example.name}.md", page_text(example, outcome))


def index_text(pages: Mapping[Example, str], missing: Sequence[str]) -> str:
    """Examples by paper, with links to their pages, and what cannot be reproduced."""
    parts = [
        "# The papers, figure by figure",
        "Every figure and table of the five papers that the formulations come from, run again. Made"
        " by `make papers`, that is `bulletbridge paper all -o docs/papers`; each of them by"
        " `bulletbridge paper NAME`, with `--gui` in Bullet's window. None of the papers' pictures"
        " was in the copies that we read: what each figure draws follows from the text around it,"
        " and its numbers are held against those that are printed, against closed forms, or against"
        " an independent program in other coordinates. The last column is the difference that uses"
        " most of what is allowed. What is wrong in the papers: [errata](../errata.md).",
    ]
    for paper in dict.fromkeys(example.paper for example in pages):
        lines = [
            f"| [`{x.name}`]({x.name}.md) | {barred(x.title)} | {farthest_of(page)} |"
            for x, page in pages.items()
            if x.paper == paper
        ]
        head = ["| example | what | differs by |", "|---|---|---|"]
        parts += [f"## {paper}", "\n".join([*head, *lines])]
    parts += ["## What cannot be reproduced", "\n".join(f"- {line}" for line in missing)]
    return "\n\n".join(parts) + "\n"


def barred(text: str) -> str:
    """Text for a cell of a table."""
    return text.replace("|", "\\|")
