"""Tables and a plot of what flexible_systems.py measures."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

UNITS = {
    "ang": "angles [deg]", "rate": "rates [rad/s]", "defl": "deflections [m]", "tip": "tip [m]",
    "E": "energy [J]", "lam": "loop force [N]",
}  # fmt: skip
VARIANTS = [f"modes {n}" for n in (1, 3)] + [f"segments {n}" for n in (4, 6, 8, 10, 20)]


def table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Markdown."""
    rows = [f"| {' | '.join(line)} |" for line in (head, *lines)]
    return "\n".join([rows[0], f"|{'---|' * len(head)}", *rows[1:]])


def size(x: float | None) -> str:
    """Two digits; a dash for what was not measured."""
    return "-" if x is None else f"{x:.1e}" if x else "0"


def references(results: dict[str, Any], known: dict[str, Any]) -> str:
    """Largest differences to all values of the references."""
    lines: list[list[str]] = []
    for name, found in results["systems"].items():
        worst, rows = found["reference"]["worst"], known[name]["rows"]
        count = sum(int(np.size(v)) for row in rows for k, v in row.items() if k != "t")
        lines.append([name, f"{found['duration']:g}", str(count)])
        lines[-1] += [size(worst.get(key)) for key in UNITS]
        lines[-1].append(size(known[name]["step_halving"]["ang"]))
    head = ["system", "until [s]", "values", *UNITS.values(), "theirs by step, angles [deg]"]
    return table(head, lines)


def variants(results: dict[str, Any], known: dict[str, Any], quantity: str) -> str:
    """Other discretisations against two modes, and what the references have found for them."""
    lines: list[list[str]] = []
    for name, found in results["systems"].items():
        line = [name]
        for variant in VARIANTS:
            ours = found["variants"].get(variant, {}).get(quantity)
            theirs = known[name]["variants"].get(variant, {}).get(quantity)
            line.append(size(ours) + (f" ({size(theirs)})" if theirs is not None else ""))
        lines.append(line)
    return table(["system", *VARIANTS], lines)


def finest(results: dict[str, Any]) -> str:
    """Segments against the finest chain: the error of the segments alone."""
    lines: list[list[str]] = []
    for name, found in results["systems"].items():
        missed = found["to_finest"]
        most = 20 if "10" in missed else 10
        lines.append([name, str(most), *(size(missed.get(n)) for n in ("4", "6", "8", "10"))])
    return table(["system", "against", *(f"segments {n}" for n in (4, 6, 8, 10))], lines)


def modules(results: dict[str, Any]) -> str:
    """Links as free modules against the whole tree."""
    lines: list[list[str]] = []
    for name, found in results["systems"].items():
        m = found["modules"]
        keys = ("gap", "gap_rate", "ang", "defl", "force", "largest_force", "loop_force")
        lines.append([name, size(found["gap"]), *(size(m.get(key)) for key in keys)])
    head = [
        "system", "own loop open [m]", "modules open [m]", "at a rate [m/s]", "angles [deg]",
        "deflections [m]", "hinge forces [N]", "of at most [N]", "loop force [N]",
    ]  # fmt: skip
    return table(head, lines)


def speeds(results: dict[str, Any]) -> str:
    """How many times faster than real time."""
    lines: list[list[str]] = []
    for name, found in results["systems"].items():
        lines.append([name, *(f"{1.0 / took:.0f}" for took in found["seconds"].values())])
    head = [
        "system", "modes, RK4", "free modules, RK4", "8 segments, RK4",
        "modes in Bullet, 1/240 s", "8 segments in Bullet, 1/240 s",
    ]  # fmt: skip
    return table(head, lines)


def sets(results: dict[str, Any]) -> str:
    """System 5c with four sets of modes."""
    lines: list[list[str]] = [
        [name, "no" if x["finite"] else "yes", size(x["deflection_13s"]), size(x["deflection"])]
        for name, x in results["mode_sets"].items()
    ]
    return table(
        ["modes", "breaks down before 25 s", "deflection until 13 s [m]", "until 25 s [m]"], lines
    )


def drift(results: dict[str, Any]) -> str:
    """System 3's base."""
    d = results["base_drift"]
    return table(
        ["base of system 3", "away from its place [m]"],
        [
            ["stages at their own times, at most", size(d["ours"])],
            ["acceleration held over steps of 1 ms, at 5 s", f"{d['held_5s']:.4g}"],
            ["the same at 10 s", f"{d['held_10s']:.4g}"],
        ],
    )


def write_tables(results: dict[str, Any], known: dict[str, Any], page: Path | None) -> None:
    """Print all tables, or put them into a page between its marks."""
    tables = {
        "references": references(results, known),
        "angles": variants(results, known, "ang"),
        "tips": variants(results, known, "tip"),
        "modules": modules(results),
        "speeds": speeds(results),
        "sets": sets(results),
        "finest": finest(results),
        "drift": drift(results),
    }
    if page is None:
        print("\n\n".join(f"{name}\n{text}" for name, text in tables.items()))
        return
    text = page.read_text(encoding="utf-8")
    for name, rows in tables.items():
        marks = f"<!-- {name} -->", f"<!-- end {name} -->"
        text, count = re.subn(
            f"{marks[0]}.*?{marks[1]}",
            lambda _, m=marks, r=rows: f"{m[0]}\n{r}\n{m[1]}",
            text,
            flags=re.S,
        )
        assert count == 1, name
    page.write_text(text, encoding="utf-8")


def plot(results: dict[str, Any], file: Path) -> None:
    """Convergence of segments to modes, and gaps of modules."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import NullLocator

    figure = Figure(figsize=(14, 4.2), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    counts = (4, 6, 8, 10)
    colours = [*(f"C{k}" for k in range(10)), "black"]
    for (name, found), colour in zip(results["systems"].items(), colours, strict=False):
        done = {n: found["variants"].get(f"segments {n}") for n in (4, 6, 8, 10, 20)}
        points = [(n, x["tip"]) for n, x in done.items() if x]
        left.loglog(*zip(*points, strict=True), marker="o", markersize=3, label=name, color=colour)
        left.axhline(found["variants"]["modes 3"]["tip"], color=colour, lw=0.5, ls=":")
        middle.loglog(
            [int(n) for n in found["to_finest"]],
            list(found["to_finest"].values()),
            marker="o",
            markersize=3,
            color=colour,
        )
        t, gaps = found["modules"]["gaps"]
        right.semilogy(t, [max(g, 1e-17) for g in gaps], lw=0.8, color=colour, label=name)
    left.set(xlabel="segments a link", ylabel="tip against two modes [m]")
    left.set_title("dotted: three modes against two", fontsize=9)
    slope = [2e-6 * (4 / n) ** 2 for n in counts]
    middle.loglog(counts, slope, "--", color="grey", lw=0.8, label="1 / n²")
    middle.legend(fontsize=7)
    middle.set(xlabel="segments a link", ylabel="tip against the finest chain [m]")
    for axes, ticks in ((left, [4, 6, 8, 10, 20]), (middle, counts)):
        axes.set_xticks(ticks, [str(n) for n in ticks])
        axes.xaxis.set_minor_locator(NullLocator())
    right.set(xlabel="time [s]", ylabel="largest gap [m]", ylim=(1e-17, 1e-12))
    right.set_title("every link a free module, hinged by loops", fontsize=9)
    left.legend(fontsize=7, ncols=2)
    figure.savefig(file, dpi=110)
