"""Results on a terminal."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from bulletbridge.surface.inspection import Inspection
from bulletbridge.surface.results import Result

STATUS = {"ok": "green", "failed": "red", "unsupported": "yellow"}


def wide_console() -> Console:
    """A console that does not squeeze tables when its output goes to a file."""
    console = Console()
    return console if console.is_terminal else Console(width=120)


def number(value: float | None) -> str:
    """A number of three digits; a dash for None."""
    return "–" if value is None else f"{value:.3g}"


def print_results(results: Sequence[Result], console: Console) -> None:
    """One line per run; messages and notes below."""
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 1, 0, 0))
    for heading in ("model", "solver", "status"):
        table.add_column(heading, overflow="fold")
    headings = [
        "gap\n\\[m]",
        "gap\n\\[rad]",
        "kept gap\n\\[m]",
        "gap rate\n\\[m/s]",
        "gap acc.\n\\[m/s²]",
    ]
    headings += ["energy\n\\[J]", "rank", "step\n\\[µs]"]
    errors = any(result.trajectory_error for result in results)
    for heading in [*headings, *(["error"] if errors else [])]:
        table.add_column(heading, justify="right", no_wrap=True)
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
        colour = STATUS[result.status]
        table.add_row(result.model, result.solver, f"[{colour}]{result.status}[/]", *cells)
    console.print(table)
    for result in results:
        if result.message:
            console.print(f"{result.model}, {result.solver}: {result.message}", markup=False)
    for note in dict.fromkeys(f"{r.model}: {note}" for r in results for note in r.notes):
        console.print(note, markup=False)


def print_inspection(found: Inspection, console: Console) -> None:
    """A model in tables."""
    console.print(f"[bold]{found.model}[/]  {found.path}", soft_wrap=True)
    console.print(
        f"{found.nq} positions, {found.nv} rates; {found.rows} rows, {found.kept} kept, "
        f"rank {found.rank}; [bold]mobility {found.dof}[/]"
    )
    loops = Table(box=None, pad_edge=False, header_style="bold", title_justify="left")
    for heading in ("constraint", "type", "joins"):
        loops.add_column(heading)
    for heading in ("rows", "kept", "gap \\[m]", "gap \\[rad]"):
        loops.add_column(heading, justify="right", no_wrap=True)
    for loop in found.loops:
        joins = f"{loop.a}, {loop.b}" if loop.b else loop.a
        sizes = (str(loop.rows), str(loop.kept), number(loop.gap_m), number(loop.gap_rad))
        loops.add_row(loop.name, loop.type, joins, *sizes)
    console.print()
    console.print(loops)
    dropped = [loop for loop in found.loops if loop.dropped]
    if dropped or found.rank < found.kept:
        console.print("\n[bold]redundant rows[/] (no joint can move them; axes of frame a)")
    for loop in dropped:
        console.print(
            f"  {loop.name}: {'; '.join(loop.dropped)}  (mismatch {number(loop.mismatch_m)} m, "
            f"{number(loop.mismatch_rad)} rad)",
            markup=False,
        )
    if found.rank < found.kept:
        console.print(f"  between constraints: {found.kept - found.rank} more, in combination")
    if found.springs:
        springs = Table(box=None, pad_edge=False, header_style="bold")
        for heading in ("spring", "type", "joins", "length or turn", "force"):
            springs.add_column(heading)
        for spring in found.springs:
            numbers = (" ".join(map(number, x)) for x in (spring.position, spring.force))
            springs.add_row(spring.name, spring.type, f"{spring.a}, {spring.b}", *numbers)
        console.print()
        console.print(springs)
    joints = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("joint", "kind", "drive", "start", ""):
        joints.add_column(heading)
    for joint in found.joints:
        joints.add_row(
            joint.name,
            joint.kind,
            "actuated" if joint.actuated else "passive",
            " ".join(f"{x:.4g}" for x in joint.q),
            joint.source,
        )
    console.print()
    console.print(joints)
    if found.singular_values:
        console.print("\n[bold]singular values[/] of the kept rows at the start, over the largest")
        console.print("  " + "  ".join(number(s) for s in found.singular_values))
    console.print(
        "\n[bold]mass matrix[/], Bullet's beside ours, largest difference over largest entry"
    )
    for mass in found.masses:
        shown = mass.note if mass.difference is None else f"{mass.difference:.1e}"
        console.print(f"  {mass.body}: {shown}", markup=False)
    console.print("\n[bold]in Bullet[/]")
    native = found.native or "closes with Bullet's own constraints as well"
    for line in (native, *found.warnings):
        console.print(f"  {line}", markup=False)
