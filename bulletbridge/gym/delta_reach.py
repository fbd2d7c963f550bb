"""A delta robot's platform is to reach a point and stay there."""

from dataclasses import replace

import numpy as np

from bulletbridge.constraints.joints import Frame
from bulletbridge.gym.tasks import Action, Observation, Start, Task, View
from bulletbridge.models.formats.recognise import read_model
from bulletbridge.numerics.records import Array

MOTORS = ("motor_1", "motor_2", "motor_3")
CENTRE = Frame("platform", (-0.07, -0.05, 0.0))
"""Middle of the platform, whose link frame is at the end of a rod."""
MIDDLE, REACH = np.array([0.0, 0.0, -0.6]), np.array([0.15, 0.15, 0.08])
"""Where goals are [m]: around a point, by as much along each axis."""
LOWEST, HIGHEST = 0.0, 0.9
"""Angles of the arms at the start, below the horizontal [rad]."""


def centre(view: View) -> Array:
    """Middle of the platform (n, 3) [m]."""
    return view.point(CENTRE)


def angles(view: View) -> Array:
    """Angles of the arms (n, 3) [rad]."""
    return np.column_stack([view.position(name) for name in MOTORS])


def rates(view: View) -> Array:
    """Rates of the arms (n, 3) [rad/s]."""
    return np.column_stack([view.rate(name) for name in MOTORS])


def to_goal(view: View) -> Array:
    """From the platform to the goal (n, 3) [m]."""
    return view.kept["goal"] - centre(view)


def start(rng: np.random.Generator) -> Start:
    """Arms anywhere in their range, and a goal."""
    held = {name: float(rng.uniform(LOWEST, HIGHEST)) for name in MOTORS}
    return Start(held, keep={"goal": MIDDLE + REACH * rng.uniform(-1.0, 1.0, 3)})


def reward(view: View) -> Array:
    """The closer the better, with a prize for the last centimetres, and less for haste."""
    distance = np.linalg.norm(to_goal(view), axis=1)
    return -distance + 0.5 * np.exp(-((distance / 0.02) ** 2)) - 0.01 * (view.actions**2).mean(1)


def delta_reach() -> Task:
    """Motors turn at up to 2 rad/s; an episode takes two seconds."""
    # nothing but the motors holds the arms
    spec = replace(read_model("delta"), forces=(), start_v={})
    return Task(
        spec,
        actions=[Action(name, "velocity", -2.0, 2.0, force=20.0) for name in MOTORS],
        observations={
            "angles": Observation(angles, -np.pi, np.pi),
            "rates": Observation(rates, -10.0, 10.0),
            "centre": Observation(centre, -1.0, 1.0),
            "to_goal": Observation(to_goal, -1.0, 1.0),
        },
        start=start,
        reward=reward,
        steps=8,
        most_actions=60,
    )
