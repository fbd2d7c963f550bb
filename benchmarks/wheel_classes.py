"""Runs classes of PyBullet's wheel that create constraints and that no program of it runs.

    python benchmarks/wheel_classes.py NAME

Run it headless and with a number of steps: it does not end by itself.
"""

import collections
import collections.abc
import itertools
import math
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pybullet
import pybullet_data
from pybullet_utils import bullet_client

# gone from Python since 3.10
collections.Sequence = collections.abc.Sequence  # pyright: ignore[reportAttributeAccessIssue]


def attribute(path: str) -> Any:
    """Class by dotted path."""
    module, name = path.rsplit(".", 1)
    return getattr(import_module(f"pybullet_envs.{module}"), name)


def trot(t: float) -> list[float]:
    """Motor angles of a sine gait in leg coordinates, swing then extension [rad]."""
    swing, extension = 0.3 * math.sin(12 * t), 0.3 * math.cos(12 * t)
    return [swing, -swing, -swing, swing, extension, -extension, -extension, extension]


def environment(version: str) -> None:
    """Minitaur of pybullet_envs/minitaur/envs."""
    make = attribute("minitaur.envs.minitaur_gym_env.MinitaurGymEnv")
    env = make(urdf_version=version, render=False, leg_model_enabled=True, hard_reset=False)
    env.reset()
    for step in itertools.count():
        env.step(np.array(trot(0.01 * step)))


def racecar() -> None:
    """The car at full speed, to the left and to the right."""
    env = attribute("bullet.racecarGymEnv.RacecarGymEnv")(renders=False, isDiscrete=False)
    env.reset()
    for step in itertools.count():
        env.step([1.0, 0.6 * math.sin(0.2 * step)])


def world() -> Any:
    """A client with a plane."""
    client = bullet_client.BulletClient(pybullet.DIRECT)
    client.setAdditionalSearchPath(pybullet_data.getDataPath())
    client.setGravity(0, 0, -10)
    client.setTimeStep(0.002)
    client.loadURDF("plane.urdf")
    return client


def robot(on_rack: bool) -> None:
    """Minitaur of pybullet_envs/minitaur/robots, on the plane or hung up."""
    client = world()
    make = attribute("minitaur.robots.minitaur.Minitaur")
    minitaur = make(client, urdf_root=pybullet_data.getDataPath(), time_step=0.002, on_rack=on_rack)
    for step in itertools.count():
        minitaur.Step(minitaur.ConvertFromLegModel(trot(0.002 * step)))


def robot_v2() -> None:
    """Minitaur of the second version, standing."""
    client = world()
    config = import_module("pybullet_envs.minitaur.robots.robot_config")
    limits = config.MotorLimits(
        angle_lower_limits=-math.pi,
        angle_upper_limits=math.pi,
        torque_lower_limits=-3.5,
        torque_upper_limits=3.5,
    )
    make = attribute("minitaur.robots.minitaur_v2.Minitaur")
    mode = config.MotorControlMode.POSITION
    minitaur = make(client, clock=lambda: 0.0, motor_control_mode=mode, motor_limits=limits)
    for step in itertools.count():
        t = 0.002 * step
        angles = [math.pi / 2 + 0.2 * math.sin(12 * t)] * 8
        minitaur.apply_action(angles, motor_control_mode=mode)
        client.stepSimulation()
        minitaur.receive_observation()


def moving_object() -> None:
    """A cube that a constraint to the world carries along a circle."""
    client = world()
    make = attribute("minitaur.robots.autonomous_object.AutonomousObject")
    path = attribute("minitaur.robots.object_controller.ControllerBase")

    class Circle(path):
        def get_action(self, time: float, observations: Any) -> tuple[Any, Any, dict[str, Any]]:
            place = np.array([math.cos(time), math.sin(time), 0.5])
            return place, np.array([0.0, 0.0, 0.0, 1.0]), {}

    cube = make(str(Path(pybullet_data.getDataPath(), "cube_small.urdf")), controller=Circle())
    cube.set_clock(lambda: 0.0)
    cube.set_sim_client(client)
    for step in itertools.count():
        cube.update(0.002 * step, {})
        cube.apply_action(None)
        client.stepSimulation()
        cube.receive_observation()


PROGRAMS: dict[str, Callable[[], None]] = {
    "envs_minitaur": lambda: environment("default"),
    "envs_derpy": lambda: environment("derpy_v0"),
    "envs_rainbow_dash": lambda: environment("rainbow_dash_v0"),
    "racecar": racecar,
    "robots_minitaur": lambda: robot(on_rack=False),
    "robots_minitaur_rack": lambda: robot(on_rack=True),
    "robots_minitaur_v2": robot_v2,
    "autonomous_object": moving_object,
}

if __name__ == "__main__":
    PROGRAMS[sys.argv[1]]()
