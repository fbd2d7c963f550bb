"""Flexible arms of the modular method, systems 1 to 6: URDFs with beams of modes in Bullet.

Source: Bonaventura 2002, chapter 8 and Tables 21 to 33.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

import bulletbridge as bb
from bulletbridge.formulations.classics.flexible_arms import SYSTEMS, FlexibleSystem
from bulletbridge.formulations.classics.flexible_trees import tree_of
from bulletbridge.models.flexible.linearised import tip_slopes
from bulletbridge.numerics.records import Array
from bulletbridge.papers.example import Curve, Example, Film, Outcome, Panel, Row, Table, until
from bulletbridge.papers.references import reference

STEP = 2.5e-4  # [s]
PICTURES = 400  # states of a run that are looked at
QUANTITIES = {  # of the references: what it is, what it may differ by
    "ang": ("angles [deg]", 1e-9),
    "rate": ("rates [rad/s]", 1e-9),
    "defl": ("deflections [m]", 1e-12),
    "tip": ("last tip [m]", 5e-12),
    "lam": ("force on the tip [N]", 1e-9),
}
SENSITIVE = {"6b": 100.0}
"""Factor where the arms amplify round-off."""
LONG = 20.0  # [s], of system 5b in the source


class Looks(NamedTuple):
    """A run at some times."""

    t: Array  # (n,) [s]
    ang: Array  # of the links' roots, against x (n, links) [deg]
    rate: Array  # (n, links) [rad/s]
    defl: Array  # of the tips, across the tangent at the root (n, links) [m]
    tip: Array  # of the last link (n, 2) [m]
    lam: Array  # force on frame b of the system's own loop (n, 0, 1 or 2) [N]
    q: Array  # (n, nq)


def ends_of(system: FlexibleSystem) -> list[tuple[bb.Frame, bb.Frame]]:
    """Frames at root and tip of each link of the bundled robot."""
    found = list[tuple[bb.Frame, bb.Frame]]()
    for arm, prefix in zip(system.arms, ("left/", "right/"), strict=False):
        body = prefix if len(system.arms) > 1 else ""
        for k, link in enumerate(arm, start=1):
            root = f"{body}link{k}_segment_1" if link.modes else f"{body}link{k}"
            tip = bb.Frame(f"{body}link{k}", (link.length, 0.0, 0.0))
            found.append((bb.Frame(root), tip))
    return found


@cache
def swing(name: str, duration: float, modes: bool = True, step: float = STEP) -> Looks:
    """Run a bundled system by compiled RK4, as beams or as segments."""
    system = SYSTEMS[name]
    ends = ends_of(system)
    every = max(1, round(duration / PICTURES / 0.05)) * 0.05 if duration > PICTURES * 0.05 else 0.05
    model_name = f"system_{name}" if modes else f"system_{name}_segments"
    options: Any = {"dt": step, "integrator": "rk4"}
    looks = list[tuple[Any, ...]]()
    with bb.load(model_name, "new", **options) as model:
        arm = model.system
        looks.append(look(arm, system, ends))
        for _ in range(round(duration / every)):
            arm.rollout(round(every / step), every=round(every / step))
            looks.append(look(arm, system, ends))
    return Looks(*(np.array(part, np.float64) for part in zip(*looks, strict=True)))


def look(
    arm: bb.System, system: FlexibleSystem, ends: list[tuple[bb.Frame, bb.Frame]]
) -> tuple[Any, ...]:
    """The present state as ``Looks`` has it."""
    seen, v = arm.kinematics(), arm.v
    angles, rates, deflections, tip = list[float](), list[float](), list[float](), np.zeros(2)
    for root, end in ends:
        a, b = seen.point(root), seen.point(end)
        angles.append(float(np.degrees(np.arctan2(a.R_W[1, 0], a.R_W[0, 0]))))
        rates.append(float((a.J_angular @ v)[2]))
        deflections.append(float((a.R_W.T @ (b.p_W - a.p_W))[1]))
        tip = b.p_W[:2]
    force = np.zeros(0)
    if system.closed == "line":
        force = arm.reactions()["line"].force[1:2]
    elif system.closed:
        force = arm.reactions()["tips"].force[:2]
    return arm.t, angles, rates, deflections, tip, force, arm.q


def turn(angles: Array) -> Array:
    """Angles [deg] less whole turns, around zero."""
    return np.asarray((angles + 180.0) % 360.0 - 180.0, np.float64)


def figure(name: str, end: float | None) -> Outcome:
    """Angles, deflections, path and torques of a system, beside an independent program."""
    system, known = SYSTEMS[name], reference("flexible_arms")[name]["rows"]
    whole = known[-1]["t"] if name != "5b" else LONG
    duration = min(end or whole, whole)
    run = swing(name, duration)
    times = until([row["t"] for row in known], duration)
    at = [int(np.abs(run.t - t).argmin()) for t in times]
    factor, rows = SENSITIVE.get(name, 1.0), list[Row]()
    for key, (label, allowed) in QUANTITIES.items():
        other = np.array([row.get(key, []) for row in known[: len(times)]], np.float64)
        if not other.size:
            continue
        ours = getattr(run, key)[at]
        missed = turn(ours - other) if key == "ang" else ours - other
        n, k = np.unravel_index(np.abs(missed).argmax(), missed.shape)
        said = f"{label}, worst of {missed.size}: {k + 1} at {times[n]:g} s"
        at_worst = float(ours[n, k])
        rows.append(Row(said, at_worst, at_worst - float(missed[n, k]), factor * allowed))
    tables = [Table(f"System {name} until {duration:g} s", rows), printed(system)]
    if name == "5b" and duration >= LONG:
        tables.append(beyond())
    film = Film(f"system_{name}", run.t, run.q)
    return Outcome(tables, panels_of(system, run, known[: len(times)]), film)


def printed(system: FlexibleSystem) -> Table:
    """What Tables 23 to 33 print of a system: amplitudes and periods of its motors."""
    rows = list[Row]()
    with bb.load(f"system_{system.name}", "new") as model:
        given = {force.joint: force for force in model.spec.forces}
    for k, (joint, force) in enumerate(given.items(), start=1):
        signal: Any = force.torque
        rows.append(Row(f"torque {k}, on {joint}, amplitude [N m]", float(signal.amplitude)))
        rows.append(Row(f"torque {k}, period [s]", 1.0 / float(signal.frequency)))
    return Table("Data: torques A sin(2πt/T)", rows)


def beyond() -> Table:
    """System 5b until 20 s: what half the step changes, and what eight segments a link do."""
    run, fine = swing("5b", LONG), swing("5b", LONG, step=STEP / 2)
    chain = swing("5b", LONG, modes=False)
    rows = list[Row]()
    for t in (5.0, 10.0, 15.0, 20.0):
        n = int(np.abs(run.t - t).argmin())
        missed = turn(run.ang[n] - fine.ang[n])
        size = float(np.abs(missed).max())
        rows.append(Row(f"by half the step, at {t:g} s [deg]", size, 0.0, 1e-6, "finer"))
    for t in (5.0, 10.0, 15.0, 20.0):
        n = int(np.abs(run.t - t).argmin())
        missed = turn(run.ang[n] - chain.ang[n])
        rows.append(Row(f"by eight segments a link, at {t:g} s [deg]", float(np.abs(missed).max())))
    return Table("Largest change of an angle of system 5b", rows)


def panels_of(system: FlexibleSystem, run: Looks, known: Any) -> list[Panel]:
    """Angles, deflections, path of the tip, and forces or torques."""
    t, links = np.array([row["t"] for row in known]), range(run.ang.shape[1])
    whole = np.degrees(np.unwrap(np.radians(run.ang), axis=0))
    other = np.array([row["ang"] for row in known])
    there = np.array([np.abs(run.t - s).argmin() for s in t], int)
    on_turn = whole[there] + turn(other - whole[there])  # the same turn
    angles, bent = list[Curve](), list[Curve]()
    for k in links:
        angles.append(Curve(f"link {k + 1}", run.t, whole[:, k]))
        angles.append(Curve("independent program", t, on_turn[:, k], dots=True))
        bent.append(Curve(f"link {k + 1}", run.t, 1e3 * run.defl[:, k]))
        dots = 1e3 * np.array([row["defl"][k] for row in known])
        bent.append(Curve("independent program", t, dots, dots=True))
    tips = np.array([row["tip"] for row in known])
    path = [
        Curve("tip", run.tip[:, 0], run.tip[:, 1]),
        Curve("independent program", tips[:, 0], tips[:, 1], dots=True),
    ]
    panels = [
        Panel("time [s]", "angle against x [deg]", angles),
        Panel("time [s]", "deflection of the tip [mm]", bent),
        Panel("x [m]", "y [m]", [c._replace(label="") for c in path], equal=True,
              title="path of the last tip"),
    ]  # fmt: skip
    if system.closed:
        names = ("y",) if system.closed == "line" else ("x", "y")
        forces = [Curve(f"F_{c}", run.t, run.lam[:, k]) for k, c in enumerate(names)]
        panels.append(Panel("time [s]", "force on the tip [N]", forces))
    else:
        rates = [Curve("", run.t, run.rate[:, k]) for k in links]
        panels.append(Panel("time [s]", "rate [rad/s]", rates))
    return panels


def frequencies(name: str, modes: int) -> list[Array]:
    """Frequencies of each link, directions of all held [rad/s], from M and K of the mechanism."""
    system = SYSTEMS[name]
    tree = tree_of(system, [modes] * len(system.links))
    model = bb.System(tree.mechanism)
    model.assemble(tree.start)
    M, K = model.terms().M, np.diag(tree.mechanism.axes["stiffness"])
    held = np.eye(len(M)) - tip_slopes(tree.mechanism)  # joints undo the slopes of tips
    M = held.T @ M @ held
    found = list[Array]()
    for k in range(1, len(system.links) + 1):
        part = tree.mechanism.joint(f"beam{k}").v
        square = np.linalg.eigvals(np.linalg.solve(M[part, part], K[part, part]))
        found.append(np.sqrt(np.sort(square.real)))
    return found


PRINTED_21 = {
    "1": ((10.2, 63.6),),
    "2a": ((5.83, 49.6), (40.6, 254.0)),
    "2b": ((3.68, 47.0), (12.8, 187.0)),
}
"""Table 21 [rad/s]."""


def table_21(end: float | None) -> Outcome:
    """Frequencies of links whose directions are held, by one, two and three modes."""
    tables = list[Table]()
    for name, links in PRINTED_21.items():
        for k, printed_ones in enumerate(links):
            rows = list[Row]()
            for modes in (1, 2, 3):
                ours = frequencies(name, modes)[k]
                other = reference("modal")["table21"][f"{name} nf={modes}"][k]
                for n, (x, y) in enumerate(zip(ours, other, strict=True)):
                    rows.append(
                        Row(f"frequency {n + 1} by {modes} modes [rad/s]", float(x), y, 1e-6 * y)
                    )
                    if modes == 2:
                        digit = 10.0 ** (np.floor(np.log10(printed_ones[n])) - 2)
                        rows.append(
                            Row(f"frequency {n + 1} by 2 modes [rad/s]", float(x), printed_ones[n],
                                0.6 * float(digit), "paper")
                        )  # fmt: skip
            tables.append(Table(f"System {name}, link {k + 1}", rows))
    return Outcome(tables)


PAPER = "Bonaventura 2002"
CANNOT = (
    "The thesis's curves (appendix C) were not available and its angles at the start, bases and"
    " step are not printed: dots and numbers are those of an independent program in absolute"
    " angles, which takes the same modes, method and step. Tables 23 to 33 print the torques."
)
ABOUT = {
    "1": "",
    "2a": "",
    "2b": "A payload of 0.5 kg makes the deflections large. ",
    "2c": "The force is that of the line on the tip. ",
    "3": "The source reports a drift of the base of π/10000 m in 5 s: what comes of holding the"
    " prescribed acceleration over steps of 1 ms; motions are taken at the times of the stages"
    " here. ",
    "4": "The last two links are rigid and turn freely at their ends: from two to three modes"
    " they are 8.5 degrees off after 40 s. ",
    "5a": "",
    "5b": "The source runs it for 20 s. With two modes that is determined to 1e-7 degrees, but"
    " the motion is not: after 20 s eight segments a link are 150 degrees away (last table). ",
    "5c": "Three modes on the first link, two on the others. The source's linearised program"
    " breaks down with most sets of modes; the exact equations do not"
    " ([linearisations](../linearisations.md)). ",
    "6a": "",
    "6b": "The arms amplify round-off a hundredfold, and two modes are not enough: with three,"
    " angles change by a degree. ",
}  # fmt: skip


def example(number: int, name: str) -> Example:
    """The figure of a system and its table."""
    system = SYSTEMS[name]
    return Example(
        f"bonaventura-system-{name}",
        PAPER,
        f"System {name} (Table {number}): {system.about}",
        f"The bundled `system_{name}`: strips of aluminium as beams of modes on a URDF in Bullet,"
        f" driven by torques as functions of time, by compiled RK4 with steps of {STEP:g} s. "
        + ABOUT[name],
        CANNOT,
        lambda end: figure(name, end),
    )


EXAMPLES = (
    Example(
        "bonaventura-table21",
        PAPER,
        "Table 21: frequencies of the links by one, two and three modes",
        "Directions of all links held, so that what follows a link is a mass on its tip that does"
        " not turn. From the mass matrix and the stiffnesses of the mechanism itself.",
        "With a free or driven joint system 1 vibrates at the pinned-free frequencies, 44.5 rad/s"
        " and up, which the table does not have.",
        table_21,
    ),
    *(example(number, name) for number, name in enumerate(SYSTEMS, start=23)),
)
