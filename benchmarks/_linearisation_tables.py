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
INDEPENDENT: dict[str, dict[str, tuple[float, float]]] = {
    "2a": {
        "tree": (0.017, 0),
    },
    "2b": {
        "tree": (0.612, 0),
    },
    "2c": {
        "tree": (0.00136, 1.2e-14),
        "modules, level 2": (0.00134, 1.1e-05),
        "modules, level 1": (0.00424, 2.3e-14),
    },
    "3": {
        "tree": (0.0152, 0),
        "modules, level 3": (0.00223, 4.9e-14),
        "modules, level 2": (0.0103, 5.3e-05),
        "modules, level 1": (0.0179, 2.8e-14),
    },
    "4": {
        "tree": (0.000571, 0),
        "modules, level 3": (0.000759, 7.7e-14),
        "modules, level 2": (0.000902, 5.4e-07),
        "modules, level 1": (0.000512, 8.2e-14),
    },
    "5a": {
        "tree": (0.000147, 0),
        "modules, level 3": (4.99e-05, 3.6e-14),
        "modules, level 2": (4.89e-05, 5.4e-07),
        "modules, level 1": (8.2e-05, 3.2e-14),
    },
    "5b": {
        "tree": (0.0276, 0),
        "modules, level 3": (0.00309, 4.5e-13),
        "modules, level 2": (0.00244, 4.3e-05),
        "modules, level 1": (0.235, 4.4e-13),
    },
    "5c": {
        "tree": (2.12, 0),
        "modules, level 3": (0.0071, 3.5e-14),
        "modules, level 2": (0.0239, 0.00044),
        "modules, level 1": (0.0227, 4.3e-14),
    },
    "6a": {
        "tree": (0.000623, 3.3e-14),
        "modules, level 2": (0.000621, 6.1e-07),
        "modules, level 1": (0.000779, 4.4e-14),
    },
    "6b": {
        "tree": (0.546, 3.6e-10),
        "modules, level 2": (0.507, 0.0032),
        "modules, level 1": (45, 0.0076),
    },
}
"""Differences of angles [deg] and loop errors [m] of an independent implementation."""
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
    for name, others in INDEPENDENT.items():
        for label, (angle, gap) in others.items():
            if label not in found[name]:
                continue
            row = found[name][label]
            sizes = " | ".join(f"{row[key]:.2e}" for key in ("tip", "deflection"))
            error = f"{row['gap']:.1e} ({gap:.1e})" if row["gap"] else ""
            lines.append(
                f"| {name} | {label} | {row['angle']:.2e} ({angle:.2e}) | {sizes} | {error} | "
                f"{_time(row['failed'])} |"
            )
    return "\n".join(lines)


def write(found: dict[str, Any]) -> None:
    """Put the tables between their marks on the page."""
    text = PAGE.read_text()
    for name, table in (("failures", failures), ("differences", differences)):
        begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
        before, rest = text.split(begin)
        text = before + begin + table(found[name]) + "\n" + end + rest.split(end)[1]
    PAGE.write_text(text)
