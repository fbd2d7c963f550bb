"""What a step costs in scenes with contacts, beside Bullet and MuJoCo with the same shapes.

    python benchmarks/contact_scenes.py [SCENE ...] [--batches N] [--json FILE]

All three step the same MJCF world, in batches that take turns; processor time, the least and the
median of batches. Motors go to their targets within a second. The residual is that of our
complementarity problem at its 99th percentile, the depth that of the deepest contact of ours after
a batch: to list contacts after every step would leave nothing of a step in the processor's caches,
and nobody lists those of the others.
"""

import argparse
import tempfile
import warnings
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

import numpy as np
import pybullet
from _contact_scenes import DT, SCENES, Scene
from rich.console import Console
from rich.table import Table

import bulletbridge as bb
from bulletbridge.bench.peers.base import library
from bulletbridge.console import write_json
from bulletbridge.errors import BulletBridgeWarning

STEPS, GAIN = 10, 0.3
"""Steps of a batch, and gain of our motors and Bullet's."""


class Ours:
    """A ``System`` with contacts."""

    name = "bulletbridge"

    def __init__(self, path: Path, scene: Scene) -> None:
        self.client = pybullet.connect(pybullet.DIRECT)
        self.system: Any = bb.load(str(path), self.client, contacts=True, dt=DT).system
        self.system.assemble()
        self.force, self.residuals, self.depth = scene.force, list[float](), 0.0
        ends = {name.split("/")[-1]: name for name in self.system.motors.names}
        self.joints = {joint: ends[joint] for joint in scene.targets}

    def aim(self, targets: dict[str, float]) -> None:
        """Set the motors."""
        for joint, angle in targets.items():
            name = self.joints[joint]
            self.system.motors.set(name, force=self.force, position=angle, position_gain=GAIN)

    def step(self) -> None:
        """One step."""
        self.system.step(write=False)

    def note(self) -> None:
        """Note how the last step went."""
        self.residuals.append(self.system.complementarity.residual)

    def look(self) -> None:
        """Look at the contacts after a batch."""
        self.depth = max([self.depth, *(-contact.gap for contact in self.system.contacts())])


class Bullet:
    """Bullet's own step of the bodies that we load."""

    name = "bullet"

    def __init__(self, path: Path, scene: Scene) -> None:
        self.client, self.force = pybullet.connect(pybullet.DIRECT), scene.force
        bb.load(str(path), self.client, contacts=True, dt=DT)
        pybullet.setTimeStep(DT, self.client)
        self.joints: dict[str, tuple[int, int]] = {}
        for body in map(pybullet.getBodyUniqueId, range(pybullet.getNumBodies(self.client))):
            for joint in range(pybullet.getNumJoints(body, self.client)):
                name = pybullet.getJointInfo(body, joint, self.client)[1].decode()
                self.joints[name.split("/")[-1]] = body, joint

    def aim(self, targets: dict[str, float]) -> None:
        """Set the motors."""
        control: Any = pybullet.setJointMotorControl2
        for joint, angle in targets.items():
            control(
                *self.joints[joint],
                pybullet.POSITION_CONTROL,
                targetPosition=angle,
                positionGain=GAIN,
                force=self.force,
                physicsClientId=self.client,
            )

    def step(self) -> None:
        """One step."""
        pybullet.stepSimulation(self.client)

    def note(self) -> None:
        """Nothing is noted."""

    def look(self) -> None:
        """Nothing is looked at."""


class Mujoco:
    """MuJoCo with its soft contacts."""

    name = "mujoco"

    def __init__(self, path: Path, scene: Scene) -> None:
        mujoco: Any = library("mujoco")
        self._step = mujoco.mj_step
        self.model = mujoco.MjModel.from_xml_path(str(path))
        self.data, self.joints = mujoco.MjData(self.model), list(scene.targets)

    def aim(self, targets: dict[str, float]) -> None:
        """Set the motors."""
        self.data.ctrl[:] = [targets[joint] for joint in self.joints]

    def step(self) -> None:
        """One step."""
        self._step(self.model, self.data)

    def note(self) -> None:
        """Nothing is noted."""

    def look(self) -> None:
        """Nothing is looked at."""


def measure(name: str, batches: int) -> dict[str, Any]:
    """Microseconds a step of all three, and how ours went."""
    scene, done = SCENES[name], 0
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", BulletBridgeWarning)
        path = Path(folder) / f"{name}.xml"
        path.write_text(scene.xml())
        ours, theirs = Ours(path, scene), Mujoco(path, scene)
        worlds = ours, Bullet(path, scene), theirs
    times: dict[str, list[float]] = {world.name: [] for world in worlds}
    while done < scene.settle + batches * STEPS:
        for world in worlds:
            spent = 0.0
            for k in range(STEPS):
                share = min((done + k) * DT, 1.0)
                if scene.targets and share < 1.0:
                    world.aim({joint: share * to for joint, to in scene.targets.items()})
                begun = process_time()
                world.step()
                spent += process_time() - begun
                world.note()
            world.look()
            if done >= scene.settle:
                times[world.name].append(spent / STEPS * 1e6)
        done += STEPS
    return {
        "scene": name,
        "rates": len(ours.system.v),
        "contacts": len(ours.system.contacts()),
        "MuJoCo's contacts": theirs.data.ncon,
        "us": {who: {"least": min(us), "median": median(us)} for who, us in times.items()},
        "residual, p99": float(np.percentile(np.array(ours.residuals), 99)),
        "residual, most": max(ours.residuals),
        "depth [m]": ours.depth,
    }


def main() -> None:
    """Measure, print a table, write JSON if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scenes", nargs="*", help=f"out of {', '.join(SCENES)}")
    parser.add_argument("--batches", type=int, default=12)
    parser.add_argument("--json", type=Path)
    options, console = parser.parse_args(), Console(width=140)
    found = [measure(name, options.batches) for name in options.scenes or SCENES]
    headings = ("scene", "rates", "contacts", "bulletbridge [us]", "Bullet [us]", "MuJoCo [us]")
    table = Table(*headings, "residual, p99", "most", "depth [m]", box=None)
    for one in found:
        times = (f"{us['least']:.0f}, {us['median']:.0f}" for us in one["us"].values())
        quality = (f"{one[k]:.1e}" for k in ("residual, p99", "residual, most", "depth [m]"))
        table.add_row(one["scene"], str(one["rates"]), str(one["contacts"]), *times, *quality)
    console.print(table)
    if options.json:
        write_json(options.json, found)


if __name__ == "__main__":
    main()
