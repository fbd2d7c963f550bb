"""Targets of the benchmarks, and whether the results show them."""

from dataclasses import dataclass
from typing import Any

from bulletbridge.bench.session import Row
from bulletbridge.bench.settings import LEVELS
from bulletbridge.bench.summary import (
    OURS,
    Standing,
    exponents,
    good,
    passages,
    standing,
    standings,
    step,
    unique,
)

FASTER = (2.0, 5.0, 10.0)
"""How many times less wall time than the best other to each of ``LEVELS``."""
EXPONENTS = {"row": 1.1, "ladder": 1.3, "walker": 1.1}
"""Exponent of the time per step with the number of loops."""
PASSAGE = 3.8e-6
"""Change of energy, relative to the kinetic one, over singular passages."""
BULLET_SHARE = {"two_arms": 0.5, "minitaur": 0.5}
"""Share of Bullet's time per step."""
SINGULAR_ERROR = 1e-6
"""Error [m] of A02 after its singular positions."""
SAME = 1.01
"""Within which errors of methods of the same order are the same."""


@dataclass(frozen=True)
class Target:
    """One aim: ``limit`` and ``found`` are numbers of ``unit``; met if found is not above it.

    ``at_least`` turns that round. ``found`` is None where there is nothing to compare with;
    ``met`` then says who got there.
    """

    what: str
    limit: float
    found: float | None
    met: bool
    note: str = ""
    at_least: bool = False


def targets(results: dict[str, Any]) -> list[Target]:
    """All aims that the results can tell of."""
    return [
        *_work_precision(standings(results)["work_precision"]),
        *_steps(results["time"], "case"),
        *_steps(results["growth"], "kind"),
        *_growth(results["growth"]),
        *_passages(results),
        *_orders(results),
        *_windows(results["standard"]),
    ]


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


def _work_precision(lines: list[Standing]) -> list[Target]:
    found: list[Target] = []
    for k, line in enumerate(lines):
        limit, ratio = FASTER[k % len(LEVELS)], line.ratio
        what = f"wall time of the best other over ours: {line.measure}"
        if ratio is not None:
            found.append(Target(what, limit, ratio, ratio >= limit, at_least=True))
        elif line.ours is not None:
            found.append(Target(what, limit, None, True, "no other gets there", True))
        else:
            note = "nobody gets there" if line.theirs is None else "only others get there"
            found.append(Target(what, limit, None, False, note, True))
    return found


def _steps(rows: list[Row], key: str) -> list[Target]:
    """Python call to Python call, against ``mj_step`` and Bullet's ``stepSimulation``."""
    found: list[Target] = []
    for where in dict.fromkeys((row[key], row.get("loops")) for row in rows):
        here = [row for row in good(rows) if (row[key], row.get("loops")) == where]
        best: dict[str, float] = {}
        for row in here:
            if "call" in row:
                best[row["peer"]] = min(row["call"]["median"], best.get(row["peer"], float("inf")))
        name = where[0] if where[1] is None else f"{where[1]} loops, {where[0]}"
        shares = (("mujoco", "mj_step's", 1.0), ("bullet", "Bullet's", BULLET_SHARE.get(name)))
        for peer, whose, share in shares:
            if share is not None and OURS in best and peer in best:
                ratio = best[OURS] / best[peer]
                what = f"time per step, a call each, over {whose}: {name}"
                found.append(Target(what, share, ratio, ratio <= share))
    return found


def _growth(rows: list[Row]) -> list[Target]:
    return [
        Target(
            f"exponent of growth, {line['kind']}, {line['setting']}",
            EXPONENTS[line["kind"]],
            line["exponent"],
            line["exponent"] <= EXPONENTS[line["kind"]],
        )
        for line in exponents(rows)
        if line["peer"] == OURS and line["exponent"] is not None
    ]


def _passages(results: dict[str, Any]) -> list[Target]:
    table = passages(results["singular"])
    if not table:
        return []
    coarse = max(unique(table, "dt"))
    passed = [line for line in table if line["peer"] == OURS and line["on_branch"]]
    figures = [
        (line["energy"], line["setting"])
        for line in passed
        if line["dt"] == coarse and line["energy"] is not None
    ]
    energy, setting = min(figures, default=(None, "none passes"))
    what = f"energy over kinetic energy, singular passages at {step(coarse)}"
    return [Target(what, PASSAGE, energy, energy is not None and energy < PASSAGE, setting)]


def _orders(results: dict[str, Any]) -> list[Target]:
    found: list[Target] = []
    for order, line in by_order(results):
        if line.ours is not None and line.theirs is not None and line.ratio is not None:
            ratio = 1.0 / line.ratio
            what = f"energy error over the best other's of order {order}: {line.measure}"
            note = f"{line.ours.setting}; {line.theirs.setting}"
            found.append(Target(what, 1.0, ratio, ratio <= SAME, note))
    return found


def _windows(rows: list[Row]) -> list[Target]:
    found: list[Target] = []
    for case in unique(rows, "case"):
        if case.startswith("a02"):
            runs = [r for r in good(rows, case=case, peer=OURS) if r["errors"]]
            errors = [(e["error"], r["setting"]) for r in runs for e in r["errors"].values()]
            least, setting = min(errors, default=(None, "none passes"))
            what = f"error [m] after all singular positions: {case}"
            met = least is not None and least <= SINGULAR_ERROR
            found.append(Target(what, SINGULAR_ERROR, least, met, setting))
    return found
