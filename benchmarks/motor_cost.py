"""What a step of 1 ms with motors costs beside MuJoCo's with velocity actuators.

    python benchmarks/motor_cost.py [--json FILE]

Motors hold 0.2 rad/s or m/s within 5 N m or N, in both. One Python call a step, in batches that
take turns; processor time, the least and the median of batches. MuJoCo steps by ``implicitfast``,
with its own soft loops.
"""

import argparse
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any
from xml.etree import ElementTree as Xml

from rich.console import Console
from rich.table import Table

from bulletbridge.bench.cases import case
from bulletbridge.bench.peers.base import library
from bulletbridge.bench.peers.mujoco import mjcf
from bulletbridge.bench.problem import Problem, positions
from bulletbridge.console import write_json
from bulletbridge.system.system import System

BATCHES, STEPS, DT = 31, 60, 1e-3
RATE, FORCE, GAIN = 0.2, 5.0, 100.0
DRIVEN = {
    "four_bar": ("crank",),
    "hand": ("spread", "low", "yaw", "pitch", "palm"),
    "platform": ("rod",),
    "legs": ("roll", "yaw", "thigh", "knee", "pitch", "foot"),
}
"""What names of joints with motors begin with, or end with after the side of a leg."""


def driven(made: Problem, parts: tuple[str, ...]) -> list[str]:
    """The joints of a problem that motors move."""
    joints = made.mechanism.joints.items()
    names = [name for name, joint in joints if joint.is_single]
    return [n for n in names if n.startswith(parts) or n.split("_", 1)[-1] in parts]


def ours(made: Problem, names: list[str]) -> System:
    """A system with motors."""
    system = System(made.mechanism, (*made.loops, *made.springs), dt=DT)
    system.assemble(guess=positions(made))
    for name in names:
        system.motors.set(name, velocity=RATE, force=FORCE)
    return system


def theirs(made: Problem, names: list[str], mujoco: Any) -> tuple[Any, Any]:
    """The same in MuJoCo: model and data."""
    root = Xml.fromstring(mjcf(made, {}))
    actuators = Xml.SubElement(root, "actuator")
    for name, joint in zip(made.mechanism.joints, root.iter("joint"), strict=True):
        joint.set("name", name)
        if name in names:
            bounds = {"forcelimited": "true", "forcerange": f"{-FORCE} {FORCE}"}
            Xml.SubElement(actuators, "velocity", {"joint": name, "kv": str(GAIN), **bounds})
    model = mujoco.MjModel.from_xml_string(Xml.tostring(root, encoding="unicode"))
    model.opt.timestep = DT
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:], data.ctrl[:] = made.q, made.v, RATE
    mujoco.mj_forward(model, data)
    return model, data


def measure(name: str) -> dict[str, Any]:
    """Microseconds a step of both."""
    made, mujoco = case(name), library("mujoco")
    names = driven(made, DRIVEN[name])
    system, (model, data) = ours(made, names), theirs(made, names, mujoco)
    times: tuple[list[float], list[float]] = [], []
    for _ in range(BATCHES + 1):
        begun = process_time()
        for _ in range(STEPS):
            system.step()
        turn = process_time()
        for _ in range(STEPS):
            mujoco.mj_step(model, data)
        ended = process_time()
        times[0].append((turn - begun) / STEPS * 1e6)
        times[1].append((ended - turn) / STEPS * 1e6)
    us = {
        who: {"least": min(each[1:]), "median": median(each[1:])}
        for who, each in zip(("bulletbridge", "mujoco"), times, strict=True)
    }
    return {"model": name, "motors": len(names), "rates": made.mechanism.nv, "us": us}


def main() -> None:
    """Measure all of them, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="a file for all figures")
    chosen, console = parser.parse_args(), Console()
    found = [measure(name) for name in DRIVEN]
    table = Table(box=None)
    for heading in ("model", "rates", "motors", "bulletbridge [µs]", "MuJoCo [µs]"):
        table.add_column(heading)
    for one in found:
        both = (f"{each['least']:.1f}, {each['median']:.1f}" for each in one["us"].values())
        table.add_row(one["model"], str(one["rates"]), str(one["motors"]), *both)
    console.print(table)
    if chosen.json:
        write_json(chosen.json, found)


if __name__ == "__main__":
    main()
