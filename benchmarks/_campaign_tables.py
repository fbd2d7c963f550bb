"""Tables of a campaign in Markdown: by integrator, by kind of case, by kind of constraint."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from _campaign_run import ENDS, FAULTS

Line = dict[str, Any]
GAINS = 0.5
"""Energy that a free run must not gain, of the largest kinetic energy."""


def tell(what: str, records: Iterable[Line]) -> None:
    """Print runs in which something was found, or that were not held, and count."""
    found, ends = 0, Counter[str]()
    for record in records:
        found += bool(record["faults"])
        ends[record["end"]] += 1
        if record["faults"] or record["end"] != "held":
            print(record)
    print(f"{found} {what} with faults;", ", ".join(f"{n} {end}" for end, n in ends.items()))


def tables(lines: Sequence[Line]) -> str:
    """All tables, and the runs with faults."""
    if not lines:
        return "no runs"
    parts = [
        f"{len({line['number'] for line in lines})} mechanisms, {len(lines)} runs, "
        f"{sum(line.get('done', 0) for line in lines)} steps.",
        table("integrator", lines, lambda line: [line["integrator"]]),
        crossed(lines),
        table("case", lines, lambda line: [line["kind"]]),
        table("constraint", lines, lambda line: line["constraints"]),
        faulty(lines),
    ]
    return "\n\n".join(parts)


def table(what: str, lines: Sequence[Line], groups: Callable[[Line], Iterable[str]]) -> str:
    """Counts of ends and faults by groups that a line belongs to."""
    by_group: dict[str, list[Line]] = {}
    for line in lines:
        for group in groups(line):
            by_group.setdefault(group, []).append(line)
    seen = [name for name in FAULTS if any(name in line["faults"] for line in lines)]
    headings = [what, "runs", "steps", *ENDS[:3], *seen, "energy gained"]
    rows = [headings, ["---"] * len(headings)]
    order = sorted(by_group) if what != "integrator" else list(by_group)
    for group in order:
        mine = by_group[group]
        free = [line for line in mine if line.get("energy_gain") is not None]
        gained = sum(line["energy_gain"] > GAINS for line in free)
        rows.append(
            [
                group,
                str(len(mine)),
                str(sum(line.get("done", 0) for line in mine)),
                *(str(sum(line["end"] == end for line in mine)) for end in ENDS[:3]),
                *(str(sum(name in line["faults"] for line in mine)) for name in seen),
                f"{gained} of {len(free)}",
            ]
        )
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def crossed(lines: Sequence[Line]) -> str:
    """Runs with faults, of all, by kind of case and integrator."""
    integrators = list(dict.fromkeys(line["integrator"] for line in lines))
    rows = [["runs with faults", *integrators], ["---"] * (1 + len(integrators))]
    for kind in sorted({line["kind"] for line in lines}):
        row = [kind]
        for integrator in integrators:
            mine = [x for x in lines if (x["kind"], x["integrator"]) == (kind, integrator)]
            row.append(f"{sum(bool(line['faults']) for line in mine)} of {len(mine)}")
        rows.append(row)
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def faulty(lines: Sequence[Line]) -> str:
    """Numbers of the mechanisms of each fault."""
    rows: list[str] = []
    for name in FAULTS:
        numbers = sorted({line["number"] for line in lines if name in line["faults"]})
        if numbers:
            shown = ", ".join(map(str, numbers[:40])) + (", ..." if len(numbers) > 40 else "")
            rows.append(f"- {name}: {len(numbers)} mechanisms: {shown}")
    return "\n".join(rows) or "No faults."
