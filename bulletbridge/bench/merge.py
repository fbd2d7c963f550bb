"""Several results as one, so that a quiet machine can be used piece by piece."""

from typing import Any

from bulletbridge.bench.run import TABLES
from bulletbridge.errors import ModelError

Results = dict[str, Any]
Row = dict[str, Any]


def merged(several: list[Results]) -> Results:
    """One result: where two have measured the same, the later one counts.

    The same is a table, a mechanism and a simulator.

    Raises:
        ModelError: They are of different efforts or versions of a simulator.
    """
    first, *others = several
    result = dict(first)
    for other in others:
        for key in ("quick", "workload"):
            if result[key] != other[key]:
                raise ModelError(f"results of different {key} cannot be put together")
        _require_versions(result["peers"], other["peers"])
        result["peers"] = result["peers"] | {
            key: peer
            for key, peer in other["peers"].items()
            if peer["installed"] or key not in result["peers"]
        }
        for table in TABLES:
            new = {_group(row) for row in other[table]}
            kept = [row for row in result[table] if _group(row) not in new]
            result[table] = kept + other[table]
        labels = {(row["peer"], row["label"]) for row in other["settings"]}
        kept = [row for row in result["settings"] if (row["peer"], row["label"]) not in labels]
        result["settings"] = kept + other["settings"]
        result["parts"] = result["parts"] + other["parts"]
    return result


def _group(row: Row) -> tuple[str, str]:
    """What a row is about: mechanism and simulator."""
    return row.get("case") or row["kind"], row.get("peer", "")


def _require_versions(here: dict[str, Row], there: dict[str, Row]) -> None:
    """Raise unless simulators in both have the same version."""
    for key in here.keys() & there.keys():
        versions = here[key].get("version"), there[key].get("version")
        if None not in versions and versions[0] != versions[1]:
            raise ModelError(f"{here[key]['name']} {versions[0]} and {versions[1]} do not mix")
