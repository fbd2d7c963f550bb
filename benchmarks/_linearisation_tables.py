"""Tables of docs/linearisations.md, from what linearisations.py has measured."""

from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[1] / "docs" / "linearisations.md"
SEEDS: dict[str, dict[str, str]] = {
    "1/1/1/1": {
        "modules, consistent": "15.5",
        "modules, consistent, level 1": "14.9",
        "tree, consistent": "7.9",
    },
    "2/2/2/2": {
        "modules, consistent": "7.17",
        "modules, consistent, level 1": "13.1",
        "tree, consistent": "4.5",
        "modules, symmetrised": "5.2",
    },
    "3/2/2/2": {"tree, consistent": "4.3", "modules, symmetrised": "3.8"},
    "2/1/1/1": {"tree, consistent": "9.0", "modules, symmetrised": "13.9"},
}
"""Times of failure [s] of an independent implementation; where it has none, none failed."""
UNKNOWN = ("tree, inconsistent", "tree, ruthless")
"""Equations that it has no runs of."""


def failures(found: dict[str, Any]) -> str:
    """Linearisations down, modes across."""
    lines = ["| equations | " + " | ".join(found) + " |", "|---" * (1 + len(found)) + "|"]
    for name in next(iter(found.values())):
        cells = [
            f"{_time(row[name]['failed'])}{_other(modes, name)}" for modes, row in found.items()
        ]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _time(failed: float | None) -> str:
    return "-" if failed is None else f"{failed:.2f}"


def _other(modes: str, name: str) -> str:
    """The independent time, in brackets."""
    if name in UNKNOWN:
        return ""
    return f" ({SEEDS[modes].get(name, '-')})"


def differences(found: dict[str, Any]) -> str:
    """Largest differences to the exact equations."""
    lines = [
        "| system | equations | angles [deg] | last tip [m] | deflections [m] | loop error [m] | "
        "fails at [s] |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in sorted(found):
        for label, row in found[name].items():
            sizes = " | ".join(f"{row[key]:.2e}" for key in ("angle", "tip", "deflection"))
            gap = f"{row['gap']:.1e}" if row["gap"] else ""
            lines.append(f"| {name} | {label} | {sizes} | {gap} | {_time(row['failed'])} |")
    return "\n".join(lines)


def write(found: dict[str, Any]) -> None:
    """Put the tables between their marks on the page."""
    text = PAGE.read_text()
    for name, table in (("failures", failures), ("differences", differences)):
        begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
        before, rest = text.split(begin)
        text = before + begin + table(found[name]) + "\n" + end + rest.split(end)[1]
    PAGE.write_text(text)
