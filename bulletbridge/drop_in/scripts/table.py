"""Table of a script's constraints on a terminal."""

from collections.abc import Iterable

from rich.console import Console
from rich.text import Text

from bulletbridge.comparison.tables import number, print_groups
from bulletbridge.drop_in.scripts.compare import ScriptRuns
from bulletbridge.drop_in.scripts.monitor import Seen

MEASURES = {
    "largest\ngap [m]": "gap_m",
    "final\ngap [m]": "last_m",
    "largest\nkept gap\n[m]": "kept_m",
    "largest\ngap [rad]": "gap_rad",
    "final\ngap [rad]": "last_rad",
    "largest\nrate error": "rate",
    "largest\nforce [N]": "force",
}
"""Headings and attributes; what is zero throughout is not shown. Kept: without directions that are
redundant by design, which no joint can close."""
ROUND = 1e-12
"""Gaps [m] below it are all round-off."""


def print_runs(runs: ScriptRuns, console: Console) -> None:
    """One line for each run below each constraint; times and failures below."""
    ours = runs.ours.seen
    natives = {} if runs.native is None else {seen.key: seen for seen in runs.native.seen}
    shown = {
        heading: name
        for heading, name in MEASURES.items()
        if any(getattr(seen, name) for seen in (*ours, *natives.values()))
    }
    if not any(seen.kept_m is not None and seen.gap_m > 10 * seen.kept_m + ROUND for seen in ours):
        shown = {heading: name for heading, name in shown.items() if name != "kept_m"}
    groups: list[tuple[str, list[tuple[Text, list[str]]]]] = []
    for seen in ours:
        rows = [(Text(closed_by(seen)), measured(seen, shown.values()))]
        native = natives.get(seen.key)
        if native is not None:
            rows.append((Text("natively", "dim"), measured(native, shown.values())))
        groups.append((f"{seen.number} {seen.kind}: {seen.between}", rows))
    if ours:
        print_groups(console, ["constraint\n  closed by", *shown], groups)
    else:
        console.print("no constraint was there when a step was made")
    for seen in ours:
        if seen.reason:
            console.print(f"{seen.number} is Bullet's own: {seen.reason}")
    console.print(times(runs))
    for name, run in (("on our solver", runs.ours), ("natively", runs.native)):
        if run is not None and (run.error or run.code):
            console.print(f"{name} the script failed: {run.error or f'exit code {run.code}'}")


def measured(seen: Seen, names: Iterable[str]) -> list[str]:
    """Cells of a row."""
    return [number(getattr(seen, name)) for name in names]


def closed_by(seen: Seen) -> str:
    """Who closes a constraint, and up to which force."""
    who = "us" if seen.exact else "Bullet"
    return who if seen.limit is None else f"{who}, maxForce {seen.limit:g}"


def times(runs: ScriptRuns) -> str:
    """Steps and their times in words."""
    line = f"{runs.ours.steps} steps"
    if runs.ours.step_us is not None:
        line += f", {microseconds(runs.ours.step_us)} each"
    if runs.native is not None and runs.native.step_us is not None:
        line += f"; natively {runs.native.steps} steps, {microseconds(runs.native.step_us)} each"
        line += f"; ratio {number(runs.ratio)}"
    return f"{line}; ended by --steps" if runs.ours.ended else line


def microseconds(time: float) -> str:
    """Three digits, without an exponent."""
    return f"{time:.0f} µs" if time >= 100.0 else f"{time:.3g} µs"
