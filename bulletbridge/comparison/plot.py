"""A recording as a figure."""

# matplotlib declares its keyword arguments without types
# pyright: reportUnknownMemberType=false

from typing import TYPE_CHECKING

import numpy as np

from bulletbridge.errors import UnknownNameError, refuse_name, require_kind
from bulletbridge.mechanism.model import Joint
from bulletbridge.studies.figures import shown_in_notebooks
from bulletbridge.system.recording import Recording

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend

NOTHING = 1e-9
"""Share of the largest load, position or rate that is round-off, and is not drawn larger."""

WIDTH, COLUMN = 8.0, 1.2
"""Of a figure, and of what another column of names adds to it [inches]."""
COLOURS, DASHES = 10, ("-", "--", ":", "-.")
"""Colours that lines have in turn, and ways of drawing them; names in a column."""
UNITS = {"revolute": "rad", "prismatic": "m"}
"""Of positions, by kind of joint."""
QUATERNION = "qx", "qy", "qz", "qw"
PARTS = {
    "free": (("x", "y", "z", *QUATERNION), ("ωx", "ωy", "ωz", "vx", "vy", "vz")),
    "spherical": (QUATERNION, ("ωx", "ωy", "ωz")),
}
MODES = tuple(f"mode {k}" for k in range(1, 4))
"""What the coordinates and rates of joints that have several are called."""


def show_as_written(legend: "Legend") -> None:
    """Show names in a legend as they are, not as formulas where they have dollar signs."""
    for text in legend.get_texts():
        text.set_parse_math(False)


def _add_legend(figure: "Figure", axes: "Axes") -> None:
    """Name the lines beside the axes, in as many columns as leave these their height and width."""
    columns = -(-len(axes.get_lines()) // COLOURS)
    figure.set_figwidth(max(figure.get_figwidth(), WIDTH + COLUMN * (columns - 1)))
    legend = axes.legend(
        loc="upper left",
        bbox_to_anchor=(1.0, 1.0),
        ncols=columns,
        fontsize="small" if columns > 1 else None,
    )
    show_as_written(legend)


def _level(axes: "Axes", size: float) -> None:
    """Show lines that are level but for round-off, on the scale of some size, as level."""
    values = [np.asarray(line.get_ydata(), float) for line in axes.get_lines()]
    y = np.concatenate([np.zeros(0), *values])
    y = y[np.isfinite(y)]
    if len(y) and float(np.ptp(y)) < NOTHING * size:
        middle = float(y.mean())
        axes.set_ylim(middle - 0.01 * size, middle + 0.01 * size)


def _joint(recording: Recording, name: str) -> Joint:
    """The joint of this name."""
    mechanism, closed = recording.mechanism, recording.constraints
    if name in closed:
        raise UnknownNameError(
            f"'{name}' is no joint; what a constraint bears is drawn of"
            f" system.run(1.0, reactions=['{name}'])"
        )
    if name not in mechanism.joints and name not in mechanism.links and closed:
        refuse_name("joint or constraint", name, [*mechanism.joints, *closed])
    return mechanism.joint(name)


def plot(recording: Recording, *joints: str) -> "Figure":
    """Positions and rates of joints over time; all revolute and prismatic ones unless named.

    Below them reactions, where the recording has them: components of those of one joint or
    constraint, sizes of several.

    The figure is returned, which notebooks show: ``plot(run, "crank").savefig("crank.png")``.

    Args:
        recording: What ``System.run`` or ``System.rollout`` returned.
        joints: Joint names, and those of constraints whose reactions were kept.

    Raises:
        ModelError: There is no such joint, or no recording.
    """
    said = f"{recording!r} is no recording; give what a run returns, as plot(system.run(1.0))"
    require_kind(recording, Recording, said)
    for name in joints:
        require_kind(name, str, f"{name!r} is no joint's name; name them as plot(run, 'a', 'b')")
    from matplotlib.figure import Figure

    mechanism, borne = recording.mechanism, recording.reactions
    single = [n for n, joint in mechanism.joints.items() if joint.q.stop - joint.q.start == 1]
    shown = [name for name in borne if not joints or name in joints]
    rows = 4 if shown else 2
    figure = Figure(figsize=(WIDTH, 2.5 * rows), layout="constrained")
    kinds = {mechanism.joint(n).kind for n in joints or single if n in mechanism.joints}
    unit = UNITS.get(kinds.pop() if len(kinds) == 1 else "", "rad or m")
    positions, rates, *loads = figure.subplots(rows, 1, sharex=True)
    for name in joints or single:
        if name in mechanism.joints or name not in borne:
            ends = PARTS.get(_joint(recording, name).kind, (MODES, MODES))
            both = (positions, recording.position(name)), (rates, recording.rate(name))
            for (axes, lines), parts in zip(both, ends, strict=True):
                several = [f"{name} {end}" for end, _ in zip(parts, lines.T, strict=False)]
                axes.plot(recording.t, lines, label=several if lines.ndim == 2 else name)
    for axes, first, what in zip(loads, (0, 3), ("force [N]", "torque [N m]"), strict=False):
        for name in shown:
            parts = borne[name][:, first : first + 3]
            lines = zip("xyz", parts.T, strict=True)
            if len(shown) > 1:
                lines = [("", np.linalg.norm(parts, axis=1))]
            for along, line in lines:
                axes.plot(recording.t, line, label=f"{name} {along}".rstrip())
        axes.set_ylabel(what)
        axes.grid(alpha=0.3)
        _level(axes, max(float(np.abs(borne[name]).max(initial=0.0)) for name in shown))
    for axes in loads[:1]:
        _add_legend(figure, axes)
    positions.set_ylabel(f"position [{unit}]")
    rates.set_ylabel(f"rate [{' or '.join(f'{each}/s' for each in unit.split(' or '))}]")
    (loads or [rates])[-1].set_xlabel("time [s]")
    if positions.get_lines():  # fixed joints have loads alone
        _add_legend(figure, positions)
    if len(rates.get_lines()) != len(positions.get_lines()):
        _add_legend(figure, rates)
    for axes in (positions, rates):
        axes.grid(alpha=0.3)
        sizes = [float(np.abs(line.get_ydata()).max(initial=0.0)) for line in axes.lines]
        _level(axes, max([1.0, *sizes]))
    for axes in (positions, rates, *loads):
        for k, line in enumerate(axes.get_lines()):
            line.set_linestyle(DASHES[k // COLOURS % len(DASHES)])
    return shown_in_notebooks(figure)
