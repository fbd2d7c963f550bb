"""What a step of 1 ms with motors costs beside MuJoCo's with velocity actuators.

    python benchmarks/motor_cost.py [--json FILE] [--only TEXT]

Motors hold 0.2 rad/s or m/s within 5 N m or N, in both. One Python call a step, in batches that
take turns; processor time, the least and the median of batches. MuJoCo steps by ``implicitfast``,
with its own soft loops. Beside them what the same steps take without motors and limits. Several of
a kind stand in one model, and nothing joins them; with limits, joints with motors are stopped 0.01
rad or m from where they start.
"""

import argparse
from dataclasses import replace
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any
from xml.etree import ElementTree as Xml

import numpy as np
from rich.console import Console
from rich.table import Table

from bulletbridge.bench.cases import TURNED, bar, case, pin
from bulletbridge.bench.peers.base import library
from bulletbridge.bench.peers.mujoco import mjcf
from bulletbridge.bench.problem import Problem, Tie, positions, problem
from bulletbridge.console import write_json
from bulletbridge.constraints.joints import LoopJoint
from bulletbridge.mechanism.build import Load, empty_mechanism, with_joint
from bulletbridge.mechanism.model import Joint, Link
from bulletbridge.models.model_spec import EARTH
from bulletbridge.system.system import System

BATCHES, STEPS, DT = 31, 60, 1e-3
RATE, FORCE, GAIN = 0.2, 5.0, 100.0
DRIVEN = {
    "four_bar": ("crank",),
    "hand": ("spread", "low", "yaw", "pitch", "palm"),
    "platform": ("rod",),
    "legs": ("roll", "yaw", "thigh", "knee", "pitch", "foot"),
    "two_arms": ("left_",),
    "stewart": ("leg",),
    "universal_delta": ("arm",),
    "sprung_biped": ("roll", "yaw", "thigh", "knee", "foot"),
    "minitaur": ("motor",),
    "row10": ("rod0",),
    "ladder6": ("left0",),
    "walker1": ("crank",),
    "walker3": ("crank",),
    "walker7": ("crank",),
    "walker17": ("crank",),
    "walker33": ("crank",),
    **{f"ladder{loops}": ("left",) for loops in (12, 24, 48, 96)},
    **{f"row{loops}": ("rod",) for loops in (20, 40, 80, 160)},
    **{f"trolley{loops}": ("left",) for loops in (10, 20, 40, 80)},
}
"""What names of joints with motors begin with, or end with after the side of a leg. Long ladders
have a motor for each freedom, long rows have theirs all on the only one."""


CASES = (
    *((name, 1, False) for name in DRIVEN),
    *(("four_bar", count, False) for count in (2, 5, 10, 20, 50, 100, 200)),
    *(("four_bar", count, True) for count in (1, 10, 50, 100)),
    *(("legs", count, False) for count in (2, 6)),
    *(("hand", count, False) for count in (2, 4)),
)
"""Names of problems, how many of each, and whether with limits."""
STOPPED_AT = 0.01
UPRIGHT = (np.pi / 2, 0.0, 0.0)


def trolley(loops: int) -> Problem:
    """Four-bars beside each other on a cart, which nothing else joins: a cluster for each loop."""
    load = Load(10.0, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
    made, pins = empty_mechanism(EARTH), list[LoopJoint]()
    made = with_joint(made, "cart", "prismatic", "cart", rpy=(0.0, np.pi / 2, 0.0), load=load)
    for k in range(loops):
        made = bar(made, f"left{k}", "cart", (0.0, 0.0, 2.0 * k), UPRIGHT)
        made = bar(made, f"coupler{k}", f"left{k}", (1.0, 0.0, 0.0), TURNED)
        made = bar(made, f"right{k}", "cart", (0.0, 0.0, 2.0 * k + 1.0), UPRIGHT)
        pins.append(pin(f"pin{k}", f"coupler{k}", f"right{k}"))
    q = np.array([0.0, *(0.3, -0.3, 0.3) * loops])
    return problem(f"trolley{loops}", made, pins, q, np.zeros(len(q)))


def several(made: Problem, count: int) -> Problem:
    """So many of a problem in one, beside each other; names end with a number."""
    m, ties = made.mechanism, list[Tie]()
    links, joints = dict(m.links), dict[str, Joint]()
    bodies, axes = [m.bodies[:1]], list[np.ndarray]()
    nb, nq, nv = len(m.bodies) - 1, m.nq, m.nv
    for k in range(count):
        own, moved = m.bodies[1:].copy(), m.axes.copy()
        own["parent"] += np.where(own["parent"] > 0, k * nb, 0)
        for name, size in (("axis", nv), ("q", nq), ("v", nv)):
            own[name] += np.where(own[name] >= 0, k * size, 0)
        moved["body"] += k * nb
        moved["q"] += k * nq
        moved["below"] += np.where(moved["below"] >= 0, k * nv, 0)
        bodies.append(own)
        axes.append(moved)
        for joint in m.joints.values():
            q, v = (
                slice(part.start + k * size, part.stop + k * size)
                for part, size in ((joint.q, nq), (joint.v, nv))
            )
            joints[f"{joint.name}.{k}"] = replace(joint, name=f"{joint.name}.{k}", q=q, v=v)
        for b in range(1, nb + 1):
            name = f"body{b + k * nb}"
            links[name] = Link(name, b + k * nb, np.eye(3), np.zeros(3))
        for tie in made.ties:
            a, b = (end + k * nb if end > 0 else 0 for end in (tie.a, tie.b))
            ties.append(replace(tie, name=f"{tie.name}.{k}", a=a, b=b))
    mechanism = replace(
        m, bodies=np.concatenate(bodies), axes=np.concatenate(axes), links=links, joints=joints
    )
    q, v = np.tile(made.q, count), np.tile(made.v, count)
    return Problem(f"{made.name} x {count}", mechanism, tuple(ties), q, v)


def stopped(made: Problem, names: list[str]) -> Problem:
    """The same with limits of the named joints next to where they start."""
    joints = dict(made.mechanism.joints)
    for name in names:
        at = float(made.q[joints[name].q.start])
        joints[name] = replace(joints[name], lower=at - STOPPED_AT, upper=at + STOPPED_AT)
    return replace(made, mechanism=replace(made.mechanism, joints=joints))


def driven(made: Problem, parts: tuple[str, ...]) -> list[str]:
    """The joints of a problem that motors move."""
    joints = made.mechanism.joints.items()
    names = [name for name, joint in joints if joint.is_single]
    return [n for n in names if n.startswith(parts) or n.split("_", 1)[-1] in parts]


def ours(made: Problem, names: list[str], limits: bool) -> System:
    """A system with motors on the named joints."""
    system = System(made.mechanism, (*made.loops, *made.springs), dt=DT, limits=limits)
    system.assemble(guess=positions(made))
    for name in names:
        system.motors.set(name, velocity=RATE, force=FORCE)
    return system


def theirs(made: Problem, names: list[str], limits: bool, mujoco: Any) -> tuple[Any, Any]:
    """The same in MuJoCo: model and data."""
    root = Xml.fromstring(mjcf(made, {}))
    if limits:
        next(root.iter("flag")).attrib.pop("limit")
    actuators = Xml.SubElement(root, "actuator")
    found = [each for each in root.iter() if each.tag in ("joint", "freejoint")]
    for name, joint in zip(made.mechanism.joints, found, strict=True):
        joint.set("name", name)
        if name in names:
            bounds = {"forcelimited": "true", "forcerange": f"{-FORCE} {FORCE}"}
            Xml.SubElement(actuators, "velocity", {"joint": name, "kv": str(GAIN), **bounds})
        if name in names and limits:
            stop = made.mechanism.joints[name]
            joint.set("limited", "true")
            joint.set("range", f"{stop.lower} {stop.upper}")
    model = mujoco.MjModel.from_xml_string(Xml.tostring(root, encoding="unicode"))
    model.opt.timestep = DT
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:], data.ctrl[:] = made.q, made.v, RATE
    mujoco.mj_forward(model, data)
    return model, data


def measure(name: str, count: int, limits: bool) -> dict[str, Any]:
    """Microseconds a step of both, and of ours without motors and limits."""
    growing = name.removeprefix("trolley")
    made, mujoco = case(name) if growing == name else trolley(int(growing)), library("mujoco")
    names = driven(made, DRIVEN[name])
    if count > 1:
        made = several(made, count)
        names = [f"{each}.{k}" for k in range(count) for each in names]
    made = stopped(made, names) if limits else made
    system, smooth = ours(made, names, limits), ours(made, [], False)
    model, data = theirs(made, names, limits, mujoco)
    steps = {
        "bulletbridge": system.step,
        "mujoco": lambda: mujoco.mj_step(model, data),
        "smooth": smooth.step,
    }
    times: dict[str, list[float]] = {who: [] for who in steps}
    for _ in range(BATCHES + 1):
        for who, step in steps.items():
            begun = process_time()
            for _ in range(STEPS):
                step()
            times[who].append((process_time() - begun) / STEPS * 1e6)
    us = {who: {"least": min(each[1:]), "median": median(each[1:])} for who, each in times.items()}
    found = {"model": made.name, "limits": limits, "motors": len(names)}
    return {**found, "rates": made.mechanism.nv, "us": us}


def main() -> None:
    """Measure all of them, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="a file for all figures")
    parser.add_argument("--only", default="", help="models whose names have this text")
    chosen, console = parser.parse_args(), Console()
    found = [measure(*each) for each in CASES if chosen.only in each[0]]
    table = Table(box=None)
    headings = "bulletbridge [µs]", "MuJoCo [µs]", "without motors [µs]"
    for heading in ("model", "rates", "motors", *headings):
        table.add_column(heading)
    for one in found:
        times = (f"{each['least']:.1f}, {each['median']:.1f}" for each in one["us"].values())
        name = one["model"] + (", at limits" if one["limits"] else "")
        table.add_row(name, str(one["rates"]), str(one["motors"]), *times)
    console.print(table)
    if chosen.json:
        write_json(chosen.json, found)


if __name__ == "__main__":
    main()
