"""System 1 as rigid segments with torsion springs between them: Table 34 and its closed form.

The thesis cuts a link into n equal segments with n - 1 springs and tunes their stiffness. The one
that bends by the beam's own amount under a force at the tip is k = 3 EI / (n² L) Σ i² (i < n).

Source: Bonaventura 2002, chapter 9.
"""

from math import cos, sin
from typing import NamedTuple

import numpy as np

import bulletbridge as bb
from bulletbridge.constraints.motion import Sine
from bulletbridge.formulations.classics.flexible_arms import STIFFNESS, SYSTEMS
from bulletbridge.formulations.classics.flexible_trees import rod
from bulletbridge.mechanism.build import empty_mechanism, with_joint
from bulletbridge.mechanism.model import WORLD, Mechanism
from bulletbridge.numerics.records import Array
from bulletbridge.papers.example import Curve, Example, Outcome, Panel, Row, Table
from bulletbridge.papers.flexible_arms import swing, turn
from bulletbridge.papers.references import reference

LENGTH = SYSTEMS["1"].links[0].length
COUNTS = (4, 6, 8, 10)
TUNED = {4: 0.60, 6: 0.72, 8: 0.81, 10: 0.83}
"""Table 34: the thesis's factors of EI n / L."""
STEPS = {4: 2.5e-4, 6: 2.5e-4, 8: 2.5e-4, 10: 1.25e-4}
"""[s]; stiffer chains need smaller ones."""
DURATION = 10.0  # [s]


class Layout(NamedTuple):
    """How a link is cut."""

    places: Array  # (springs,) of the springs along it [m]
    stiffness: float  # of each [N m/rad]


def exact_factor(n: int) -> float:
    """What the closed form makes of EI n / L."""
    return 3.0 * sum(i * i for i in range(1, n)) / n**3


def equal(n: int, factor: float) -> Layout:
    """Equal segments, springs at the inner nodes: the thesis's."""
    places = np.asarray(LENGTH / n * np.arange(1, n), np.float64)
    return Layout(places, factor * STIFFNESS * n / LENGTH)


def half_ends(n: int) -> Layout:
    """Springs at the centres of n equal elements, with the elements' own stiffness: ours."""
    places = np.asarray(LENGTH / n * (np.arange(n) + 0.5), np.float64)
    return Layout(places, STIFFNESS * n / LENGTH)


def chain(layout: Layout) -> Mechanism:
    """The link on its joint, cut at the springs; its tip is the end of the last segment."""
    marks = np.concatenate([[0.0], layout.places, [LENGTH]])
    mechanism, on, x = empty_mechanism(), WORLD, 0.0
    for k, length in enumerate(np.diff(marks)):
        name = "joint1" if k == 0 else f"bend{k}"
        mechanism = with_joint(
            mechanism, name, "revolute", f"segment{k}", on, (x, 0.0, 0.0), (0.0, 0.0, 0.0),
            rod(float(length)),
        )  # fmt: skip
        if k:
            mechanism.axes[-1]["stiffness"] = layout.stiffness
        on, x = f"segment{k}", float(length)
    return mechanism


def tip_of(layout: Layout) -> bb.Frame:
    """Where the chain ends."""
    return bb.Frame(f"segment{len(layout.places)}", (LENGTH - float(layout.places[-1]), 0.0, 0.0))


def static_part(layout: Layout) -> float:
    """Deflection under a small force at the tip, as part of the beam's F L³ / (3 EI)."""
    system = bb.System(chain(layout))
    J = system.kinematics().point(tip_of(layout)).J[1, 1:]
    return float(J @ J) / layout.stiffness / (LENGTH**3 / (3.0 * STIFFNESS))


def differences(layout: Layout, step: float, duration: float) -> dict[str, float]:
    """Largest differences to two modes, by 20 looks a second."""
    amplitude, period = SYSTEMS["1"].links[0].torque
    torque, worst = Sine(amplitude, 1.0 / period), {"ang": 0.0, "tip": 0.0, "defl": 0.0}
    system = bb.System(chain(layout), forces={"joint1": torque}, dt=step, integrator="rk4")
    modes = swing("1", duration)
    for t, ang, tip_there, bent_there in zip(
        modes.t, modes.ang, modes.tip, modes.defl, strict=True
    ):
        steps = round((float(t) - system.t) / step)
        if steps:
            system.rollout(steps, every=steps)
        angle = float(system.q[0])
        tip = system.kinematics().point(tip_of(layout)).p_W
        bent = tip[1] * cos(angle) - tip[0] * sin(angle)
        missed = {
            "ang": float(np.abs(turn(np.degrees(angle) - ang)).max()),
            "tip": float(np.abs(tip[:2] - tip_there).max()),
            "defl": abs(bent - float(bent_there[0])),
        }
        worst = {key: max(worst[key], missed[key]) for key in worst}
    return worst


UNITS = {"ang": "angle [deg]", "tip": "tip [m]", "defl": "deflection [m]"}
LAYOUTS = {"k_exact": "closed form", "table34": "Table 34", "half-ends EI n/L": "half-length ends"}


def layout_of(name: str, n: int) -> Layout:
    """A layout by the name that the references have."""
    if name == "half-ends EI n/L":
        return half_ends(n)
    return equal(n, exact_factor(n) if name == "k_exact" else TUNED[n])


def table(end: float | None) -> Outcome:
    """Factors, static deflection, and motion of system 1 by all layouts."""
    duration, static, curves = end or DURATION, list[Row](), dict[str, list[float]]()
    for n in COUNTS:
        factor, tuned = exact_factor(n), TUNED[n]
        static += [
            Row(f"closed form's factor of EI n / L, n = {n}", factor, tuned, None, "paper"),
            Row(f"deflection with it, n = {n}", static_part(equal(n, factor)), 1.0, 1e-12,
                "theory"),
            Row(f"with Table 34, n = {n}", static_part(equal(n, tuned)), 1.0, None, "theory"),
            Row(f"with half-length ends, n = {n}", static_part(half_ends(n)), 1.0 - 0.25 / n**2,
                1e-12, "theory"),
        ]  # fmt: skip
    tables, whole = (
        [Table("Static deflection by a force at the tip, as part of the beam's", static)],
        duration >= DURATION,
    )
    for name, said in LAYOUTS.items():
        rows = list[Row]()
        for n in COUNTS:
            found = differences(layout_of(name, n), STEPS[n], duration)
            curves.setdefault(said, []).append(found["tip"])
            other = reference("segments")["1"][f"seg n={n} {name}"]
            for key, unit in UNITS.items():
                rows.append(Row(f"{unit}, n = {n}", found[key], other[key] if whole else None,
                                5e-3 * other[key] if whole else None))  # fmt: skip
        tables.append(Table(f"System 1 against two modes, {said}", rows))
    counts, drawn = np.array(COUNTS, np.float64), list[Curve]()
    for (name, said), y in zip(LAYOUTS.items(), curves.values(), strict=True):
        known = [reference("segments")["1"][f"seg n={n} {name}"]["tip"] for n in COUNTS]
        drawn.append(Curve(said, counts, np.array(y)))
        drawn.append(Curve("independent program", counts, np.array(known), dots=True))
    panel = Panel("segments", "tip against two modes [m]", drawn, log=True)
    return Outcome(tables, [panel])


EXAMPLES = (
    Example(
        "bonaventura-table34",
        "Bonaventura 2002",
        "Table 34: torsion springs between rigid segments, tuned and in closed form",
        "System 1 cut into n equal segments with springs at the n - 1 inner nodes, as the thesis"
        " has it, with its tuned stiffness and with k = 3 EI / (n² L) Σ i², which is exact under"
        " a force at the tip; beside them what `bulletbridge flexible` makes: springs at the"
        " centres of n equal elements, with the elements' own stiffness. Compiled RK4.",
        "The tuned factors have two digits and fit this motion only. Segments converge to the"
        " beam, not to two of its modes, so differences stop falling where those of the two modes"
        " begin (2.6e-6 m). These chains are built in Python (`mechanism.build`), as"
        " `bulletbridge flexible` writes no such layout.",
        table,
    ),
)
