"""From results to the tables of the page: best settings, exponents, and who is ahead."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bulletbridge.bench.session import Row
from bulletbridge.bench.settings import LEVELS
from bulletbridge.models.standard_problems import POINTS

OURS = "bulletbridge"
LARGE = 5
"""Loops from which on the growth is fitted."""
ROUND_OFF = 1e-12
"""Gaps [m] and rates [m/s] below this are equal to each other."""
PASSED = 0.1
"""Change of energy, relative to the kinetic one, up to which a singular passage counts."""
LIBRARY = 5e-5
"""Change of energy [J] that the library of standard problems allows in A01."""
HOW = (("call", "one Python call a step"), ("loop", "many steps a call"))
EVEN = 1.05
"""Ratio within which two figures are the same."""


@dataclass(frozen=True)
class Best:
    """The best figure of a simulator, and the setting that it takes."""

    value: float
    setting: str


@dataclass(frozen=True)
class Standing:
    """One measure: our best and the best of all others.

    Attributes:
        measure, unit: What is compared; less is better.
        ours, theirs: None where it cannot be reached.
        peer: Whose the other figure is.
    """

    measure: str
    unit: str
    ours: Best | None
    theirs: Best | None
    peer: str

    @property
    def ratio(self) -> float | None:
        """Theirs over ours; above one we are ahead."""
        if self.ours is None or self.theirs is None:
            return None
        if max(self.ours.value, self.theirs.value) <= ROUND_OFF:
            return 1.0
        return self.theirs.value / max(self.ours.value, 1e-300)

    @property
    def ahead(self) -> str:
        """``ours``, ``peer``, ``even`` or ``nobody``."""
        if self.ours is None or self.theirs is None:
            return "nobody" if self.ours is self.theirs else "ours" if self.ours else "peer"
        ratio = self.ratio or 0.0
        return "even" if 1 / EVEN <= ratio <= EVEN else "ours" if ratio > 1.0 else "peer"


def good(rows: Iterable[Row], **wanted: Any) -> list[Row]:
    """Rows that did not fail, with these entries."""
    found = [row for row in rows if all(row.get(key) == value for key, value in wanted.items())]
    return [row for row in found if "failed" not in row]


def unique(rows: Iterable[Row], key: str) -> list[Any]:
    """Values of an entry in the order of rows."""
    return list(dict.fromkeys(row[key] for row in rows))


def standing(measure: str, unit: str, figures: Iterable[tuple[str, str, float | None]]) -> Standing:
    """Compare figures of simulators: (peer, setting, value)."""
    best: dict[str, Best] = {}
    for peer, setting, value in figures:
        if value is not None and (peer not in best or value < best[peer].value):
            best[peer] = Best(value, setting)
    others = {peer: figure for peer, figure in best.items() if peer != OURS}
    peer = min(others, key=lambda name: others[name].value, default="")
    return Standing(measure, unit, best.get(OURS), others.get(peer), peer)


def wall_to(rows: Iterable[Row], horizon: str, level: float) -> float | None:
    """Least wall time [s] of one setting to an error; the next finer run must have it too."""
    runs = [row["errors"].get(horizon) for row in rows]
    found: list[float] = []
    for k, run in enumerate(runs):
        finer = runs[k + 1] if k + 1 < len(runs) else run
        if run and run["error"] <= level and (finer is None or finer["error"] <= level):
            found.append(run["wall"])
    return min(found, default=None)


def wall_to_energy(rows: list[Row]) -> float | None:
    """Least wall time [s] to the energy change that A01 allows; None where energy does not stay."""
    found: list[float] = []
    for k, row in enumerate(rows):
        finer = rows[min(k + 1, len(rows) - 1)]
        small = all(r.get("energy") is not None and r["energy"] <= LIBRARY for r in (row, finer))
        if small:
            found += [entry["wall"] for entry in row["errors"].values()]
    return min(found, default=None)


def unit_of(case: str) -> str:
    """Unit of the errors of a mechanism."""
    return "m" if case in POINTS else "rad"


def fastest(times: Iterable[tuple[float | None, str]]) -> Best | None:
    """The least of the wall times [s] that there are, with its setting."""
    reached = [(wall, setting) for wall, setting in times if wall is not None]
    return Best(*min(reached)) if reached else None


def ratio(lines: list[Row], key: int | str) -> float | None:
    """Wall time of the best other over ours, in lines of ``precision`` of one mechanism."""
    figures = [(line["peer"], at(line, key)) for line in lines]
    return standing("", "s", [(p, f.setting, f.value) for p, f in figures if f]).ratio


def at(line: Row, key: int | str) -> Best | None:
    """Least wall time to a level by its number, or to the change of energy."""
    return line["levels"][key] if isinstance(key, int) else line[key]


def precision(rows: list[Row]) -> list[Row]:
    """Per case, horizon and simulator: the least wall time to each level, the least error."""
    table: list[Row] = []
    for case in unique(rows, "case"):
        mine = good(rows, case=case)
        for horizon in dict.fromkeys(h for row in mine for h in row["errors"]):
            for peer in unique(mine, "peer"):
                line: Row = {"case": case, "horizon": horizon, "peer": peer, "levels": []}
                settings = unique(good(mine, peer=peer), "setting")
                runs = {s: good(mine, peer=peer, setting=s) for s in settings}
                for level in LEVELS:
                    times = [(wall_to(r, horizon, level), s) for s, r in runs.items()]
                    line["levels"].append(fastest(times))
                line["energy"] = fastest((wall_to_energy(r), s) for s, r in runs.items())
                errors = [
                    (row["errors"][horizon]["error"], row["setting"])
                    for row in good(mine, peer=peer)
                    if horizon in row["errors"]
                ]
                line["least"] = Best(*min(errors)) if errors else None
                table.append(line)
    return table


def standings(results: dict[str, Any]) -> dict[str, list[Standing]]:
    """Who is ahead in everything that was measured, by task."""
    found: dict[str, list[Standing]] = {}
    times = found["time"] = []
    for case in unique(results["time"], "case"):
        for how, words in HOW:
            rows = good(results["time"], case=case)
            figures = [(r["peer"], r["setting"], r[how]["median"]) for r in rows if how in r]
            times.append(standing(f"{case}, {words}", "µs", figures))
    drifts = found["accuracy"] = []
    names = (("gap_m", "gap", "m"), ("rate_m", "gap rate", "m/s"), ("energy", "energy", ""))
    for case in unique(results["accuracy"], "case"):
        for dt in unique(results["accuracy"], "dt"):
            for key, words, unit in names:
                rows = good(results["accuracy"], case=case, dt=dt)
                figures = [(r["peer"], r["setting"], r.get(key)) for r in rows]
                if any(value is not None for _, _, value in figures):
                    drifts.append(standing(f"{case}, {words} at {step(dt)}", unit, figures))
    for task in ("work_precision", "standard"):
        found[task] = []
        table = precision(results[task])
        for case, horizon in dict.fromkeys((line["case"], line["horizon"]) for line in table):
            lines = good(table, case=case, horizon=horizon)
            for k, level in enumerate(LEVELS):
                figures = [
                    (line["peer"], line["levels"][k].setting, line["levels"][k].value)
                    for line in lines
                    if line["levels"][k]
                ]
                words = f"{case}, {level:.0e} {unit_of(case)} at {horizon} s"
                found[task].append(standing(words, "s", figures))
            if task == "standard" and any(
                row.get("energy") for row in good(results[task], case=case)
            ):
                kept = [(line["peer"], line["energy"]) for line in lines if line["energy"]]
                figures = [(peer, figure.setting, figure.value) for peer, figure in kept]
                words = f"{case}, energy to {LIBRARY:.0e} J at {horizon} s"
                found[task].append(standing(words, "s", figures))
    found["growth"] = [
        standing(
            f"{loops} loops, {kind}, {words}",
            "µs",
            [(r["peer"], r["setting"], r[how]["median"]) for r in rows if how in r],
        )
        for how, words in HOW
        for kind in unique(results["growth"], "kind")
        for loops in unique(results["growth"], "loops")
        if (rows := good(results["growth"], kind=kind, loops=loops))
    ]
    found["singular"] = []
    table = passages(results["singular"])
    for dt in unique(table, "dt"):
        lines = [line for line in good(table, dt=dt) if line["on_branch"]]
        for key, words, unit in names:
            figures = [(line["peer"], line["setting"], line[key]) for line in lines]
            found["singular"].append(standing(f"{words} at {step(dt)}", unit, figures))
    return found


def step(dt: float) -> str:
    """A step in words."""
    return f"1/{1 / dt:.0f} s" if dt > 2e-3 else f"{1e3 * dt:g} ms"


def exponents(rows: list[Row]) -> list[Row]:
    """Per kind and setting: times by number of loops and the exponent of their growth."""
    table: list[Row] = []
    for kind in unique(rows, "kind"):
        here = [row for row in rows if row["kind"] == kind]
        for peer, setting in dict.fromkeys((row["peer"], row["setting"]) for row in here):
            mine = [row for row in here if (row["peer"], row["setting"]) == (peer, setting)]
            times = {row["loops"]: row["loop"]["median"] for row in good(mine)}
            large = [(n, t) for n, t in times.items() if n >= LARGE]
            line: Row = {"kind": kind, "peer": peer, "setting": setting, "times": times}
            line["exponent"] = None
            if len(large) > 2:
                x, y = (np.log([pair[k] for pair in large]) for k in (0, 1))
                line["exponent"] = float(np.polyfit(x, y, 1)[0])
            line["why"] = {row["loops"]: row["failed"] for row in mine if "failed" in row}
            table.append(line)
    return table


def passages(rows: list[Row]) -> list[Row]:
    """Per setting and step: the worst of the singular mechanisms, and how many stay on branch."""
    table: list[Row] = []
    for peer, setting, dt in dict.fromkeys((r["peer"], r["setting"], r["dt"]) for r in rows):
        mine = [r for r in rows if (r["peer"], r["setting"], r["dt"]) == (peer, setting, dt)]
        done = good(mine)
        line: Row = {"peer": peer, "setting": setting, "dt": dt, "of": len(mine)}
        kept = [row for row in done if row["on_branch"] and (row["energy"] or 0.0) < PASSED]
        line["passed"] = len(kept)
        line["on_branch"] = line["passed"] == len(mine)
        for key in ("gap_m", "rate_m", "energy"):
            complete = len(done) == len(mine)
            line[key] = max((row[key] for row in done), default=None) if complete else None
        line["why"] = next((row["failed"] for row in mine if "failed" in row), "")
        table.append(line)
    return table


def by_order(results: dict[str, Any]) -> list[tuple[int, Standing]]:
    """Energy error per mechanism, step and order: ours and the best other of the same order."""
    orders = {(s["peer"], s["label"]): s["order"] for s in results["settings"]}
    found: list[tuple[int, Standing]] = []
    for case in unique(results["accuracy"], "case"):
        for dt in unique(results["accuracy"], "dt"):
            rows = [r for r in good(results["accuracy"], case=case, dt=dt) if r.get("energy")]
            for order in sorted({orders[row["peer"], row["setting"]] for row in rows}):
                same = [r for r in rows if orders[r["peer"], r["setting"]] == order]
                figures = [(r["peer"], r["setting"], r["energy"]) for r in same]
                found.append((order, standing(f"{case}, {step(dt)}", "", figures)))
    return found
