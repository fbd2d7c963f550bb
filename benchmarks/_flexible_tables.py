"""Tables and a plot of what flexible_systems.py measures."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

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
    lines = []
    for name, found in results["systems"].items():
        worst, rows = found["reference"]["worst"], known[name]["rows"]
        count = sum(
            len(v) if isinstance(v, list) else 1 for r in rows for k, v in r.items() if k != "t"
        )
        lines.append([name, f"{found['duration']:g}", str(count)])
        lines[-1] += [size(worst.get(key)) for key in UNITS]
        lines[-1].append(size(known[name]["step_halving"]["ang"]))
    head = ["system", "until [s]", "values", *UNITS.values(), "their step, angles [deg]"]
    return table(head, lines)


def variants(results: dict[str, Any], known: dict[str, Any], quantity: str) -> str:
    """Other discretisations against two modes, and what the references have found for them."""
    lines = []
    for name, found in results["systems"].items():
        line = [name]
        for variant in VARIANTS:
            ours = found["variants"].get(variant, {}).get(quantity)
            theirs = known[name]["variants"].get(variant, {}).get(quantity)
            line.append(size(ours) + (f" ({size(theirs)})" if theirs is not None else ""))
        lines.append(line)
    return table(["system", *VARIANTS], lines)


def modules(results: dict[str, Any]) -> str:
    """Links as free modules against the whole tree."""
    lines = []
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
    lines = []
    for name, found in results["systems"].items():
        duration = found["duration"]
        took = [found["seconds"], found["modules"]["seconds"]]
        took += [found["variants"].get(f"segments {n}", {}).get("seconds") for n in (8,)]
        faster = ["-" if t is None else f"{duration / t:.1f}" for t in took]
        step = found["variants"].get("segments 8", {}).get("step", 0.0)
        lines.append([name, *faster[:2], f"{faster[2]} ({step:.1e})"])
        lines[-1] += [f"{1.0 / found['live'][key]:.0f}" for key in ("modes", "segments 8")]
    head = [
        "system", "modes, RK4", "free modules, RK4", "8 segments, RK4 (step [s])",
        "modes in Bullet, 1/240 s", "8 segments in Bullet, 1/240 s",
    ]  # fmt: skip
    return table(head, lines)


def sets(results: dict[str, Any]) -> str:
    """System 5c with four sets of modes."""
    lines = [
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

    figure = Figure(figsize=(11, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    for name, found in results["systems"].items():
        done = {n: found["variants"].get(f"segments {n}") for n in (4, 6, 8, 10, 20)}
        points = [(n, x["tip"]) for n, x in done.items() if x]
        left.loglog(*zip(*points, strict=True), marker="o", markersize=3, label=name)
        colour = left.lines[-1].get_color()
        left.axhline(found["variants"]["modes 3"]["tip"], color=colour, lw=0.5, ls=":")
        t, gaps = found["modules"]["gaps"]
        right.semilogy(t, [max(g, 1e-17) for g in gaps], lw=0.8, color=colour, label=name)
    left.set(xlabel="segments a link", ylabel="tip against two modes [m]")
    left.set_title("dotted: three modes against two", fontsize=9)
    left.set_xticks([4, 6, 8, 10, 20], ["4", "6", "8", "10", "20"])
    left.minorticks_off()
    right.set(xlabel="time [s]", ylabel="largest gap [m]", ylim=(1e-17, 1e-12))
    right.set_title("every link a free module, hinged by loops", fontsize=9)
    left.legend(fontsize=7, ncols=2)
    figure.savefig(file, dpi=110)
