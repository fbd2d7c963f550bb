"""Examples of papers on a terminal."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from bulletbridge.papers.example import Example, Outcome
from bulletbridge.papers.page import cells, columns

BOLD = "bold"


def list_examples(console: Console, examples: Sequence[Example]) -> None:
    """Names and titles, by paper."""
    for paper in dict.fromkeys(example.paper for example in examples):
        console.print(Text(paper, BOLD))
        table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
        table.add_column(no_wrap=True)
        table.add_column()
        for example in examples:
            if example.paper == paper:
                table.add_row(f"  {example.name}", example.title)
        console.print(table)
    console.print("Run one with: bulletbridge paper NAME, or 'all'; -o DIR writes pages.")


def show(console: Console, example: Example, outcome: Outcome) -> None:
    """The numbers of a run."""
    console.print()
    console.print(Text.assemble((example.name, BOLD), f"  {example.title}"))
    for table in outcome.tables:
        shown = Table(box=None, pad_edge=False, header_style=BOLD, padding=(0, 1, 0, 0))
        head, *lines = columns(list(map(cells, table.rows)))
        for heading in head:
            words = heading in ("", "whose")
            justify = "left" if words else "right"
            shown.add_column(
                heading or table.title, justify=justify, overflow="fold", no_wrap=not words
            )
        for row, line in zip(table.rows, lines, strict=True):
            style = None if row.agrees else "red"
            shown.add_row(*line, style=style)
        console.print(shown)
