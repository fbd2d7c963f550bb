"""Minitaur, a robot with eight motors on four five-bar legs, is to walk ahead."""

from dataclasses import replace

import numpy as np
import pybullet
import pybullet_data

from bulletbridge.constraints.joints import Frame
from bulletbridge.gym.tasks import Action, Observation, Start, Task, View
from bulletbridge.models.formats.recognise import read_model
from bulletbridge.numerics.records import Array, Mask

LEGS = ("front_left", "back_left", "front_right", "back_right")
MOTORS = tuple(f"motor_{leg}{side}_joint" for leg in LEGS for side in "LR")
STANDING, LOWEST = 0.18, 0.09
"""Height of the base on straight legs, and that at which it counts as fallen [m]."""
SWING = 0.5
"""Of the motors around where legs are straight [rad]."""
TRUNK = Frame("base_chassis_link")
UPRIGHT = 0.7
"""Cosine of the tilt at which it counts as fallen."""


def straight(motor: str) -> float:
    """Angle of a motor at which its leg is straight [rad]."""
    return -np.pi / 2 if "left" in motor else np.pi / 2


def angles(view: View) -> Array:
    """Angles of the motors (n, 8), from where legs are straight [rad]."""
    return np.column_stack([view.position(name) - straight(name) for name in MOTORS])


def rates(view: View) -> Array:
    """Rates of the motors (n, 8) [rad/s]."""
    return np.column_stack([view.rate(name) for name in MOTORS])


def orientation(view: View) -> Array:
    """Orientation of the base (n, 4), a quaternion xyzw."""
    return view.position("base")[:, 3:7]


def turning(view: View) -> Array:
    """Angular velocity of the base (n, 3) [rad/s], world axes."""
    return view.rate("base")[:, :3]


def travelling(view: View) -> Array:
    """Velocity of the base (n, 3) [m/s], world axes."""
    return view.rate("base")[:, 3:]


def start(rng: np.random.Generator) -> Start:
    """A little above the floor, turned a little about the vertical."""
    turn = rng.uniform(-0.1, 0.1)
    height = STANDING + rng.uniform(0.0, 0.02)
    return Start({"base": [0.0, 0.0, height, 0.0, 0.0, np.sin(turn / 2), np.cos(turn / 2)]})


def reward(view: View) -> Array:
    """Speed ahead, less what wears motors and turns the base."""
    ahead = np.clip(view.rate("base")[:, 3], -1.0, 1.0)
    still = 0.01 * (turning(view) ** 2).sum(axis=1)
    return ahead - still - 0.02 * (view.actions**2).mean(axis=1)


def fallen(view: View) -> Mask:
    """Whether the base is low or tilted."""
    upright = view.axes(TRUNK)[:, 2, 2]
    return (view.position("base")[:, 2] < LOWEST) | (upright < UPRIGHT)


def floor(client: int) -> None:
    """PyBullet's plane."""
    pybullet.loadURDF(f"{pybullet_data.getDataPath()}/plane.urdf", physicsClientId=client)


def minitaur() -> Task:
    """Motors hold positions with up to 3.5 N m; an episode takes up to ten seconds."""
    spec = read_model("minitaur")
    base = {"base": [0.0, 0.0, STANDING, 0.0, 0.0, 0.0, 1.0]}
    # it stands on a floor, and its motors are motors, not springs
    spec = replace(
        spec, forces=(), gravity=(0.0, 0.0, -9.81), start_q=spec.start_q | base, start_v={}
    )
    return Task(
        spec,
        actions=[
            Action(name, "position", straight(name) - SWING, straight(name) + SWING, 3.5, 1.0)
            for name in MOTORS
        ],
        observations={
            "angles": Observation(angles, -np.pi, np.pi),
            "rates": Observation(rates, -50.0, 50.0),
            "orientation": Observation(orientation, -1.0, 1.0),
            "turning": Observation(turning, -20.0, 20.0),
            "travelling": Observation(travelling, -5.0, 5.0),
        },
        start=start,
        reward=reward,
        terminated=fallen,
        steps=5,
        most_actions=480,
        contacts=True,
        scene=floor,
    )
