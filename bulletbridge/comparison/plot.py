"""A recording as a figure."""

# matplotlib declares its keyword arguments without types
# pyright: reportUnknownMemberType=false

from typing import TYPE_CHECKING

from bulletbridge.system.recording import Recording

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend


def show_as_written(legend: "Legend") -> None:
    """Show names in a legend as they are, not as formulas where they have dollar signs."""
    for text in legend.get_texts():
        text.set_parse_math(False)


def plot(recording: Recording, *joints: str) -> "Figure":
    """Positions and rates of joints over time; all revolute and prismatic ones unless named.

    The figure is returned, not shown: ``plot(run, "crank").savefig("crank.png")``.

    Args:
        recording: What ``System.run`` or ``System.rollout`` returned.
        joints: Joint names.

    Raises:
        ModelError: There is no such joint.
    """
    from matplotlib.figure import Figure

    mechanism = recording.mechanism
    single = [n for n, joint in mechanism.joints.items() if joint.q.stop - joint.q.start == 1]
    figure = Figure(figsize=(8, 5), layout="constrained")
    positions, rates = figure.subplots(2, 1, sharex=True)
    for name in joints or single:
        positions.plot(recording.t, recording.position(name), label=name)
        rates.plot(recording.t, recording.rate(name))
    positions.set_ylabel("position [rad or m]")
    rates.set_ylabel("rate [rad/s or m/s]")
    rates.set_xlabel("time [s]")
    show_as_written(positions.legend(loc="upper right"))
    for axes in (positions, rates):
        axes.grid(alpha=0.3)
    return figure
