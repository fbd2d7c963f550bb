"""What the drop-in client costs beside Bullet alone: scenes, programs of the wheel, single calls.

    python benchmarks/drop_in.py [--mode MODE ...] [--json FILE] [--calls] [--programs] [NAME ...]

Scenes are written as users write them. Every step, with what a scene does before it, is timed by
itself in processor time, in batches that take turns: ours in each mode, and Bullet's. Figures are
the least median of a batch. Programs run whole, natively and ours, one after the other; of them
only steps are timed. Bullet's own step depends on the contact points at hand: on closed legs they
may be others than on open ones.
"""

import argparse
from collections.abc import Callable
from functools import partial
from inspect import isbuiltin
from pathlib import Path
from statistics import median
from time import process_time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pybullet
import pybullet_data
from _minitaur_worlds import LEGS, MOTOR, minitaur
from programs import compare
from pybullet_utils import bullet_client
from rich.console import Console
from rich.table import Table

from bulletbridge.console import write_json
from bulletbridge.drop_in.client import BulletClient
from bulletbridge.drop_in.session import session_of
from bulletbridge.drop_in.settings import Mode

BATCHES, STEPS, CALLS, PROGRAM_STEPS = 21, 50, 50, 600
SETTLING = 300  # steps
DATA = pybullet_data.getDataPath()
PLAIN = SimpleNamespace(**vars(pybullet))  # before anything stands in the module
FOUR_BAR = Path(__file__).parent.parent / "urdf" / "four_bar.urdf"
WHEEL = (
    "pybullet_examples/mimicJointConstraint.py",
    "pybullet_examples/inverse_kinematics_husky_kuka.py",
    "pybullet_examples/vr_kuka_setup.py",
    "pybullet_envs/examples/kuka_setup.py",
    "pybullet_envs/deep_mimic/env/testLaikago.py",
    "pybullet_examples/humanoidMotionCapture.py",
)
"""Programs, as in programs.py."""

Step = Callable[[], Any]
Scene = Callable[[Any], tuple[Step, Step]]
"""Sets up a client; what is timed as a step, and what is done before it, untimed."""


def nothing() -> None:
    """No preparation of a step."""


def empty(p: Any) -> tuple[Step, Step]:
    """Nothing but a plane."""
    p.loadURDF(f"{DATA}/plane.urdf")
    return p.stepSimulation, nothing


def cube(p: Any) -> tuple[Step, Step]:
    """A cube that a fixed constraint holds in the air."""
    p.setGravity(0, 0, -10)
    body = p.loadURDF(f"{DATA}/cube_small.urdf", [0, 0, 1])
    p.createConstraint(body, -1, -1, -1, pybullet.JOINT_FIXED, [0] * 3, [0] * 3, [0, 0, 1])
    return p.stepSimulation, nothing


def moved_cube(p: Any) -> tuple[Step, Step]:
    """The same, moved along a circle at every step."""
    p.setGravity(0, 0, -10)
    body = p.loadURDF(f"{DATA}/cube_small.urdf", [0, 0, 1])
    held = p.createConstraint(body, -1, -1, -1, pybullet.JOINT_FIXED, [0] * 3, [0] * 3, [0, 0, 1])
    angle = 0.0

    def move() -> None:
        nonlocal angle
        angle += 0.001
        p.changeConstraint(held, [np.sin(angle), np.cos(angle) - 1.0, 1.0], maxForce=500)
        p.stepSimulation()

    return move, nothing


def platform(p: Any) -> tuple[Step, Step]:
    """A lamp that hangs on a plate without mass, which is put elsewhere at every step."""
    p.setGravity(0, 0, -10)
    flat = p.createCollisionShape(pybullet.GEOM_BOX, halfExtents=[0.2, 0.2, 0.02])
    plate = p.createMultiBody(0, flat, -1, [0, 0, 2])
    round_one = p.createCollisionShape(pybullet.GEOM_SPHERE, radius=0.1)
    lamp = p.createMultiBody(1, round_one, -1, [0, 0, 1.5])
    ends = plate, -1, lamp, -1
    p.createConstraint(*ends, pybullet.JOINT_POINT2POINT, [0] * 3, [0, 0, -0.1], [0, 0, 0.4])
    angle = 0.0

    def move() -> None:
        nonlocal angle
        angle += 0.001
        p.resetBasePositionAndOrientation(plate, [np.sin(angle), 0, 2], [0, 0, 0, 1])
        p.stepSimulation()

    return move, nothing


def differential(p: Any) -> tuple[Step, Step]:
    """Three gears with force limits, as in mimicJointConstraint.py."""
    p.setGravity(0, 0, -10)
    ring = p.loadURDF(f"{DATA}/differential/diff_ring.urdf")
    for joint in range(p.getNumJoints(ring)):
        p.setJointMotorControl2(ring, joint, pybullet.VELOCITY_CONTROL, 0, force=0)
    for first, second, ratio in ((1, 3, 1), (2, 4, -1), (1, 4, -1)):
        gear = p.createConstraint(
            ring, first, ring, second, pybullet.JOINT_GEAR, [0, 1, 0], [0] * 3, [0] * 3
        )
        p.changeConstraint(gear, gearRatio=ratio, maxForce=10000)
    return p.stepSimulation, nothing


def on_the_plane(p: Any) -> tuple[Step, Step]:
    """Minitaur standing on its motors."""
    minitaur(p, 1 / 240)
    return p.stepSimulation, nothing


def in_flight(p: Any) -> tuple[Step, Step]:
    """Minitaur without gravity, away from the plane."""
    robot, _ = minitaur(p, 1 / 240)
    p.setGravity(0, 0, 0)
    p.resetBasePositionAndOrientation(robot, [0, 0, 2], [0, 0, 0, 1])
    return p.stepSimulation, nothing


def learning(p: Any) -> tuple[Step, Step]:
    """Minitaur under eight motor commands and one look at its state a step."""
    robot, joints = minitaur(p, 1 / 240)
    signs = {"left": -1, "right": 1}
    motors = [
        (joints[f"motor_{leg}{side}_joint"], signs[leg.partition("_")[2]] * np.pi / 2)
        for leg in LEGS
        for side in "LR"
    ]
    numbers = [joint for joint, _ in motors]

    def act() -> None:
        for joint, target in motors:
            p.setJointMotorControl2(
                robot, joint, pybullet.POSITION_CONTROL, targetPosition=target, **MOTOR
            )
        p.stepSimulation()
        p.getJointStates(robot, numbers)
        p.getBasePositionAndOrientation(robot)
        p.getBaseVelocity(robot)

    return act, nothing


def restored(p: Any) -> tuple[Step, Step]:
    """Minitaur's step after restoreState."""
    minitaur(p, 1 / 240)
    for _ in range(SETTLING):
        p.stepSimulation()
    state = p.saveState()
    return p.stepSimulation, lambda: p.restoreState(state)


def four_bars(p: Any) -> tuple[Step, Step]:
    """Fifty separate four-bars."""
    p.setGravity(0, 0, -9.81)
    for place in range(50):
        body = p.loadURDF(str(FOUR_BAR), [0, 2.0 * place, 0], useFixedBase=True)
        crank, _, rocker = range(3)
        for joint in range(3):
            p.setJointMotorControl2(body, joint, pybullet.VELOCITY_CONTROL, force=0)
        p.resetJointState(body, crank, np.pi / 3)
        pin = np.subtract([0.7, 0, 0], p.getDynamicsInfo(body, rocker)[3])
        p.createConstraint(
            body,
            rocker,
            -1,
            -1,
            pybullet.JOINT_POINT2POINT,
            [0] * 3,
            np.subtract([0.7, 0, 0], pin),
            [1, 2.0 * place, 0],
        )
    return p.stepSimulation, nothing


def boxes(count: int, step: tuple[float, float, float]) -> Scene:
    """Boxes that lie on a plane, each so far from the one before, in rows of ten if they are flat.

    All of one stack are one group from when they meet, those apart a group each.
    """

    def scene(p: Any) -> tuple[Step, Step]:
        p.setGravity(0, 0, -9.81)
        p.createMultiBody(0, p.createCollisionShape(pybullet.GEOM_PLANE))
        shape = p.createCollisionShape(pybullet.GEOM_BOX, halfExtents=[0.1] * 3)
        for k in range(count):
            row, column = divmod(k, 10) if step[1] else (k, k)
            place = [step[0] * column, step[1] * row, 0.1 + step[2] * row]
            body = p.createMultiBody(1, shape, basePosition=place)
            if isinstance(p, BulletClient):
                ours: Any = p
                p.setBridgeMode(session_of(ours._client).mode, body)
        return p.stepSimulation, nothing

    return scene


SCENES: dict[str, Scene] = {
    scene.__name__: scene
    for scene in (
        empty,
        cube,
        moved_cube,
        platform,
        differential,
        on_the_plane,
        in_flight,
        learning,
        restored,
        four_bars,
    )
}
SCENES |= {f"boxes_{n}": boxes(n, (0.5, 0.5, 0.0)) for n in (1, 10, 100)}
SCENES |= {f"stack_{n}": boxes(n, (0.0, 0.0, 0.2)) for n in (2, 5, 10, 30)}

Call = Callable[[int], Any]


def calls(p: Any) -> dict[str, Call]:
    """Calls that a learning loop makes at every step, on Minitaur; each takes its turn's number."""
    robot, joints = minitaur(p, 1 / 240)
    numbers = [joints[f"motor_{leg}{side}_joint"] for leg in LEGS for side in "LR"]
    first, loop = numbers[0], p.getConstraintUniqueId(0)
    held = p.createConstraint(robot, -1, -1, -1, pybullet.JOINT_FIXED, [0] * 3, [0] * 3, [0, 0, 1])
    p.changeConstraint(held, [0, 0, 1], maxForce=10)
    p.stepSimulation()
    follow = {"controlMode": pybullet.POSITION_CONTROL}
    targets = [0.1] * len(numbers)
    return {
        "setJointMotorControl2": lambda _: p.setJointMotorControl2(
            robot, first, pybullet.POSITION_CONTROL, targetPosition=0.1, force=3.5
        ),
        "setJointMotorControl2, names": lambda _: p.setJointMotorControl2(
            bodyUniqueId=robot, jointIndex=first, **follow, targetPosition=0.1, force=3.5
        ),
        "setJointMotorControl2, torque": lambda _: p.setJointMotorControl2(
            robot, first, pybullet.TORQUE_CONTROL, force=0.1
        ),
        "setJointMotorControlArray, 8": lambda _: p.setJointMotorControlArray(
            robot, numbers, pybullet.POSITION_CONTROL, targetPositions=targets
        ),
        "getJointState": lambda _: p.getJointState(robot, first),
        "getJointStates, 8": lambda _: p.getJointStates(robot, numbers),
        "getLinkState": lambda _: p.getLinkState(robot, first),
        "getBasePositionAndOrientation": lambda _: p.getBasePositionAndOrientation(robot),
        "resetJointState": lambda _: p.resetJointState(robot, first, 0.1),
        "applyExternalForce": lambda _: p.applyExternalForce(
            robot, -1, [0, 0, 1], [0, 0, 0], pybullet.LINK_FRAME
        ),
        "getConstraintState": lambda _: p.getConstraintState(loop),
        "changeConstraint": lambda k: p.changeConstraint(held, [0, 0, 1 + 1e-6 * k], maxForce=10),
        "getContactPoints": lambda _: p.getContactPoints(robot),
    }


class Native(bullet_client.BulletClient):
    """PyBullet's client, with functions at which nobody looks for the sake of ours beside it."""

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(PLAIN, name)
        if isbuiltin(attribute):
            attribute = partial(attribute, physicsClientId=self._client)
        if name == "disconnect":
            self._client = -1
        return attribute


def clients(modes: list[Mode]) -> dict[str, Any]:
    """A client of Bullet's and one of ours for each mode."""
    ours = {mode: BulletClient(pybullet.DIRECT, mode=mode) for mode in modes}
    return {"Bullet": Native(pybullet.DIRECT), **ours}


def timed(step: Callable[[], Any]) -> float:
    """Microseconds that it takes."""
    begun = process_time()
    step()
    return 1e6 * (process_time() - begun)


def measure_scene(scene: Scene, modes: list[Mode]) -> dict[str, float]:
    """Microseconds of a step of each client."""
    worlds = clients(modes)
    steps = {name: scene(client) for name, client in worlds.items()}
    for step, _ in steps.values():
        for _ in range(SETTLING):
            step()
    found: dict[str, list[float]] = {name: [] for name in worlds}
    for _ in range(BATCHES):
        for name, (step, prepare) in steps.items():
            batch: list[float] = []
            for _ in range(STEPS):
                prepare()
                batch.append(timed(step))
            found[name].append(median(batch))
    for client in worlds.values():
        client.disconnect()
    return {name: min(medians) for name, medians in found.items()}


def measure_calls(modes: list[Mode]) -> dict[str, dict[str, float]]:
    """Microseconds of each call of each client; those of one step in a row."""
    worlds = clients(modes)
    each = {name: calls(client) for name, client in worlds.items()}
    found = {what: {name: list[float]() for name in worlds} for what in each["Bullet"]}
    for turn in range(BATCHES):
        for name, client in worlds.items():
            for what, call in each[name].items():
                numbers = range(CALLS * turn, CALLS * (turn + 1))
                found[what][name].append(median(timed(partial(call, k)) for k in numbers))
                client.stepSimulation()
    for client in worlds.values():
        client.disconnect()
    return {
        what: {name: min(medians) for name, medians in row.items()} for what, row in found.items()
    }


def measure_program(name: str, modes: list[Mode]) -> dict[str, float]:
    """Microseconds of a step of a program of the wheel."""
    row: dict[str, float] = {}
    for mode in modes:
        found = compare(name, PROGRAM_STEPS, mode)
        if "failure" in found:
            continue
        for who, times in (("Bullet", found["native"]), (mode, found["ours"])):
            if times["step_us"] is not None and not times["error"]:
                row[who] = min(row.get(who, np.inf), times["step_us"])
    return row


def show(title: str, rows: dict[str, dict[str, float]], modes: list[Mode]) -> None:
    """Print what was found, and how many times Bullet's it is."""
    table = Table(title, "Bullet [us]", *(h for mode in modes for h in (f"{mode} [us]", "ratio")))
    for name, row in rows.items():
        alone = row.get("Bullet", np.nan)  # nan: it did not run to its end
        ours = [row.get(mode, np.nan) for mode in modes]
        cells = [cell for us in ours for cell in (f"{us:.1f}", f"{us / alone:.2f}")]
        table.add_row(name, f"{alone:.1f}", *cells)
    Console(width=120).print(table)


def main() -> None:
    """Measure, print tables, write JSON if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *SCENES], metavar="NAME")
    parser.add_argument("--mode", choices=["filter", "exact"], action="append")
    parser.add_argument("--calls", action="store_true", help="single calls too")
    parser.add_argument("--programs", action="store_true", help="programs of the wheel too")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    modes: list[Mode] = options.mode or ["filter", "exact"]
    tables: dict[str, dict[str, dict[str, float]]] = {}
    tables["scene"] = {name: measure_scene(SCENES[name], modes) for name in options.names or SCENES}
    if options.calls:
        tables["call"] = measure_calls(modes)
    if options.programs:
        tables["program"] = {Path(name).stem: measure_program(name, modes) for name in WHEEL}
    for title, rows in tables.items():
        show(title, rows, modes)
    if options.json:
        write_json(options.json, {"unit": "us"} | tables)


if __name__ == "__main__":
    main()
