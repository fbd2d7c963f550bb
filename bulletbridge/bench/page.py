"""The page on benchmarks, from the results alone."""

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

from bulletbridge.bench import figures, summary
from bulletbridge.bench.run import SCHEMA
from bulletbridge.bench.settings import PACKAGES
from bulletbridge.bench.summary import Best, good, unique
from bulletbridge.errors import ModelError, naming_the_extra


def read(file: Path) -> dict[str, Any]:
    """Results from a JSON file.

    Raises:
        ModelError: It cannot be read, or holds something else.
    """
    try:
        results: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"cannot read results from '{file}': {error}") from None
    if "work_precision" not in results:
        raise ModelError(f"'{file}' has no results of 'bulletbridge bench' in it")
    if results.get("schema") != SCHEMA:
        raise ModelError(f"'{file}' has results of another version; measure again")
    return results


def write(results: dict[str, Any], directory: Path) -> Path:
    """Write ``index.md`` and its plots into a directory.

    Raises:
        MissingExtraError: matplotlib or jinja2 is not installed.
        ModelError: The directory cannot be written.
    """
    path = directory / "index.md"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, svg in plots(results).items():
            (directory / name).write_text(svg, encoding="utf-8")
        path.write_text(page(results), encoding="utf-8")
    except OSError as error:
        raise ModelError(f"cannot write the page to '{path}': {error}") from None
    return path


def plots(results: dict[str, Any]) -> dict[str, str]:
    """SVG by file name."""
    drawn: dict[str, str] = {}
    for task in ("work_precision", "standard"):
        for case, horizon in horizons(results[task]):
            svg = figures.work_precision(results[task], case, horizon)
            drawn[picture(case, horizon)] = svg
    for kind in unique(results["growth"], "kind"):
        drawn[f"growth_{kind}.svg"] = figures.growth(results["growth"], kind)
    return drawn


def horizons(rows: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Cases and horizons that were measured."""
    done = good(rows)
    return list(dict.fromkeys((row["case"], h) for row in done for h in row["errors"]))


def picture(case: str, horizon: str) -> str:
    """File name of a plot."""
    return f"work_precision_{case}_{horizon}s.svg"


def page(results: dict[str, Any]) -> str:
    """The text of the page."""
    with naming_the_extra("the page needs jinja2", "jinja2"):
        from jinja2 import Environment, StrictUndefined
    source = files("bulletbridge.bench") / "templates" / "benchmarks.md.j2"
    environment = Environment(
        autoescape=False, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"number": number, "best": best, "step": summary.step}
    return environment.from_string(source.read_text(encoding="utf-8")).render(
        r=results,
        names={key: package.name for key, package in PACKAGES.items()},
        levels=summary.LEVELS,
        precision=summary.precision,
        exponents=summary.exponents,
        passages=summary.passages,
        standings=summary.standings(results),
        by_order=summary.by_order(results),
        ratio=summary.ratio,
        unit_of=summary.unit_of,
        library=summary.LIBRARY,
        horizons=horizons,
        picture=picture,
        good=good,
        unique=unique,
    )


def number(value: float | None, digits: int = 2) -> str:
    """A figure of so many digits; a dash for none."""
    if value is None:
        return "–"
    if value == 0.0 or 0.01 <= abs(value) < 10**4:
        return f"{value:#.{digits}g}".rstrip(".") if abs(value) < 10**digits else f"{value:.0f}"
    return f"{value:.{digits - 1}e}"


def best(figure: Best | None, unit: str = "") -> str:
    """A figure with its setting in brackets."""
    if figure is None:
        return "cannot"
    return f"{number(figure.value)}{' ' + unit if unit else ''} ({figure.setting})"
