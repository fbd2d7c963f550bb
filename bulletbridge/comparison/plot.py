"""A recording as a figure."""

# matplotlib declares its keyword arguments without types
# pyright: reportUnknownMemberType=false

from typing import TYPE_CHECKING

import numpy as np

from bulletbridge.system.recording import Recording

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend

NOTHING = 1e-9
"""Share of the largest load that is round-off, and is not drawn larger."""


def show_as_written(legend: "Legend") -> None:
    """Show names in a legend as they are, not as formulas where they have dollar signs."""
    for text in legend.get_texts():
        text.set_parse_math(False)


def plot(recording: Recording, *joints: str) -> "Figure":
    """Positions and rates of joints over time; all revolute and prismatic ones unless named.

    Below them what joints bear, where the recording has it: components along the axes of the link
    of one joint, sizes of several.

    The figure is returned, not shown: ``plot(run, "crank").savefig("crank.png")``.

    Args:
        recording: What ``System.run`` or ``System.rollout`` returned.
        joints: Joint names.

    Raises:
        ModelError: There is no such joint.
    """
    from matplotlib.figure import Figure

    mechanism, borne = recording.mechanism, recording.reactions
    single = [n for n, joint in mechanism.joints.items() if joint.q.stop - joint.q.start == 1]
    shown = [name for name in borne if not joints or name in joints]
    rows = 4 if shown else 2
    figure = Figure(figsize=(8, 2.5 * rows), layout="constrained")
    positions, rates, *loads = figure.subplots(rows, 1, sharex=True)
    for name in joints or single:
        if name in mechanism.joints or name not in borne:
            positions.plot(recording.t, recording.position(name), label=name)
            rates.plot(recording.t, recording.rate(name))
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
        size = max(float(np.abs(borne[name]).max(initial=0.0)) for name in shown)
        if all(np.abs(line.get_ydata()).max(initial=0.0) < NOTHING * size for line in axes.lines):
            axes.set_ylim(-0.01 * size, 0.01 * size)
    for axes in loads[:1]:
        show_as_written(axes.legend())
    positions.set_ylabel("position [rad or m]")
    rates.set_ylabel("rate [rad/s or m/s]")
    (loads or [rates])[-1].set_xlabel("time [s]")
    if positions.get_lines():  # fixed joints have loads alone
        show_as_written(positions.legend())
    for axes in (positions, rates):
        axes.grid(alpha=0.3)
    return figure
