"""Results on a terminal."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from bulletbridge.comparison.inspection import Inspection
from bulletbridge.comparison.results import Result

BOLD = "bold"
NO_LOOPS = (
    "no loops, a tree of links; what closes one stands in a file NAME.loops.yaml beside NAME.urdf "
    "(docs/loops-file.md)"
)
STATUS = {"ok": "green", "failed": "red", "unsupported": "yellow"}


def wide_console() -> Console:
    """A console that shows text as it is, and does not squeeze tables when it goes to a file."""
    width = None if Console().is_terminal else 120
    return Console(width=width, markup=False, emoji=False)  # names may have brackets and colons


def number(value: float | None) -> str:
    """A number of three digits; a dash for None."""
    return "–" if value is None else f"{value:.3g}"


def title(console: Console, name: str, rest: str = "") -> None:
    """What comes next, after an empty line."""
    console.print()
    console.print(Text.assemble((name, BOLD), rest))


def indented(console: Console, line: str) -> None:
    """A line below a title, on as many as it takes, all of them indented."""
    for part in Text(line).wrap(console, console.width - 2):
        console.print(f"  {part.plain.rstrip()}", markup=False, highlight=False)


def print_groups(
    console: Console,
    headings: Sequence[str],
    groups: Sequence[tuple[str, Sequence[tuple[Text, Sequence[str]]]]],
) -> None:
    """Rows of numbers below titles on lines of their own, so that long names break no column.

    ``headings`` are of the columns, the first of the rows' labels, and may have line breaks;
    ``groups`` are titles, and labels and cells of the rows below them.
    """
    above = [heading.split("\n") for heading in headings]
    height = max(map(len, above))
    head = list(zip(*([""] * (height - len(lines)) + lines for lines in above), strict=True))
    rows = [(Text(first, BOLD), cells) for first, *cells in head]
    below = [(Text.assemble("  ", label), cells) for _, some in groups for label, cells in some]
    texts = [[label.plain, *cells] for label, cells in (*rows, *below)]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]

    def show(label: Text, cells: Sequence[str], style: str = "") -> None:
        padded = "".join(f" {cell:>{width}}" for cell, width in zip(cells, widths[1:], strict=True))
        filled = " " * (widths[0] - len(label))
        line = Text.assemble(label, filled, (padded, style))
        console.print(line, soft_wrap=True)

    for label, cells in rows:
        show(label, cells, BOLD)
    following = iter(below)
    for name, some in groups:
        console.print(name, soft_wrap=True, highlight=False)
        for _ in some:
            show(*next(following))


def print_results(results: Sequence[Result], console: Console) -> None:
    """One line per run, below its model; messages and notes below."""
    headings = ["model\n  solver", "gap\n[m]", "gap\n[rad]", "kept gap\n[m]", "gap rate\n[m/s]"]
    headings += ["gap acc.\n[m/s²]", "energy\n[J]", "rank", "step\n[µs]"]
    errors = any(result.trajectory_error for result in results)
    lines: dict[str, list[tuple[Text, Sequence[str]]]] = {}
    for result in results:
        cells = [
            number(extent.max if extent else None)
            for extent in (
                result.gap_m,
                result.gap_rad,
                result.gap_kept,
                result.gap_rate,
                result.gap_acceleration,
            )
        ]
        energy, rank, times = result.energy, result.rank, result.step_us
        cells.append(number(energy.drift_max_J if energy else None))
        cells.append(f"{rank.max}/{rank.rows}" if rank else "–")
        cells.append(number(times.median if times else None))
        if errors:
            cells.append(number(result.trajectory_error.max if result.trajectory_error else None))
        status = "" if result.status == "ok" else f" {result.status}"
        label = Text.assemble(result.solver, (status, STATUS[result.status]))
        lines.setdefault(result.model, []).append((label, cells))
    print_groups(console, [*headings, *(["error"] if errors else [])], list(lines.items()))
    for result in results:
        if result.message:
            console.print(f"{result.model}, {result.solver}: {result.message}")
    for note in dict.fromkeys(f"{r.model}: {note}" for r in results for note in r.notes):
        console.print(note)


def plain_table(*headings: str) -> Table:
    """A table without lines, with its headings in bold."""
    return Table(*headings, box=None, pad_edge=False, header_style=BOLD)


def print_inspection(found: Inspection, console: Console) -> None:
    """A model in tables."""
    console.print(Text.assemble((found.model, BOLD), f"  {found.path}"), soft_wrap=True)
    sizes = f"{found.nq} positions, {found.nv} rates; {found.rows} rows, {found.kept} kept, "
    console.print(Text.assemble(f"{sizes}rank {found.rank}; ", (f"mobility {found.dof}", BOLD)))
    bases = f"; floating: {', '.join(found.floating)}" if found.floating else "; the base stands"
    console.print(f"{found.mass_kg:.4g} kg, {found.across_m:.3g} m across at the start{bases}")
    loops = plain_table("constraint", "type", "joins")
    for heading in ("rows", "kept", "gap [m]", "gap [rad]"):
        loops.add_column(heading, justify="right", no_wrap=True)
    for loop in found.loops:
        joins = f"{loop.a}, {loop.b}" if loop.b else loop.a
        sizes = (str(loop.rows), str(loop.kept), number(loop.gap_m), number(loop.gap_rad))
        loops.add_row(loop.name, loop.type, joins, *sizes)
    console.print()
    console.print(loops if found.loops else NO_LOOPS)
    dropped = [loop for loop in found.loops if loop.dropped]
    if dropped or found.rank < found.kept:
        title(console, "redundant rows", " (no joint can move them; axes of frame a)")
    for loop in dropped:
        mismatch = f"{number(loop.mismatch_m)} m, {number(loop.mismatch_rad)} rad"
        indented(console, f"{loop.name}: {'; '.join(loop.dropped)}  (mismatch {mismatch})")
    if found.rank < found.kept:
        indented(console, f"between constraints: {found.kept - found.rank} more, in combination")
    if found.springs:
        measured = "length or turn [m, rad]", "force [N, N m]"
        springs = plain_table("spring", "type", "joins", *measured)
        for spring in found.springs:
            numbers = (" ".join(map(number, x)) for x in (spring.position, spring.force))
            springs.add_row(spring.name, spring.type, ", ".join(spring.joins), *numbers)
        console.print()
        console.print(springs)
    if found.wrenches:
        at_start = "force at the start [N]", "torque [N m]"
        wrenches = plain_table("wrench", "on", "axes of", *at_start)
        for wrench in found.wrenches:
            numbers = (" ".join(map(number, x)) for x in (wrench.force, wrench.torque))
            wrenches.add_row(wrench.name, wrench.link, wrench.axes, *numbers)
        console.print()
        console.print(wrenches)
    joints = plain_table("joint", "kind", "drive", "start [rad, m]", "")
    for joint in found.joints:
        joints.add_row(
            joint.name,
            joint.kind,
            "actuated" if joint.actuated else "passive",
            " ".join(f"{round(x, 12) + 0.0:.4g}" for x in joint.q),  # without round-off
            joint.source,
        )
    console.print()
    console.print(joints)
    if found.singular_values:
        title(console, "singular values", " of the kept rows at the start, over the largest")
        indented(console, "  ".join(number(s) for s in found.singular_values))
    title(console, "mass matrix", ", Bullet's beside ours, largest difference over largest entry")
    for mass in found.masses:
        difference = "" if mass.difference is None else f"{mass.difference:.1e}"
        indented(console, f"{mass.body}: {', '.join(filter(None, (difference, mass.note)))}")
    title(console, "to know")
    closes = "closes with Bullet's own constraints as well" if found.loops else ""
    for line in filter(None, (*found.notes, found.native or closes, *found.warnings)):
        indented(console, line)
