"""A gripper of two parallelogram fingers is to lift a bolt by friction and hold it up."""

import numpy as np

from bulletbridge.constraints.joints import Frame
from bulletbridge.gym.tasks import Action, Observation, Start, Task, View
from bulletbridge.models.demos import demos_folder
from bulletbridge.numerics.records import Array, Mask

DRIVER, LIFT = "hand/left_driver", "lift"
BOLT, HAND = Frame("bolt/bolt"), Frame("hand/base")
UP, LOST = 0.08, 0.1
"""How high the bolt is to be [m], and how far it may roll from under the hand."""


def bolt(view: View) -> Array:
    """Where the bolt is (n, 3) [m]."""
    return view.position("bolt/base")[:, :3]


def moving(view: View) -> Array:
    """Its velocity (n, 3) [m/s]."""
    return view.rate("bolt/base")[:, 3:]


def hand(view: View) -> Array:
    """Where the hand is (n, 3) [m]."""
    return view.point(HAND)


def closing(view: View) -> Array:
    """Angle and rate of the driver (n, 2) [rad, rad/s]."""
    return np.column_stack([view.position(DRIVER), view.rate(DRIVER)])


def squeeze(view: View) -> Array:
    """Force of all that touches the bolt (n, 3) [N]."""
    return view.contact_force(BOLT.link)


def start(rng: np.random.Generator) -> Start:
    """The bolt stands a few millimetres off, heavier or lighter, rougher or smoother."""
    x = rng.uniform(-0.005, 0.005)
    return Start(
        {"bolt/base": [x, 0.0, 0.001, 0.0, 0.0, 0.0, 1.0]},
        {
            "bolt/bolt.mass": rng.uniform(0.3, 0.6),
            "bolt/bolt.lateral_friction": rng.uniform(0.6, 1),
        },
    )


def reward(view: View) -> Array:
    """The higher the bolt, up to where it is to be, the better."""
    height = np.clip(bolt(view)[:, 2], 0.0, UP) / UP
    return height - 0.01 * (view.actions**2).mean(axis=1)


def lost(view: View) -> Mask:
    """Whether the bolt has rolled away."""
    return np.linalg.norm(bolt(view)[:, :2], axis=1) > LOST


def gripper() -> Task:
    """The driver has up to 3 N m, the hand goes up and down; an episode takes four seconds."""
    return Task(
        demos_folder() / "grip" / "grip.loops.yaml",
        actions=[
            Action(DRIVER, "velocity", -2.0, 2.0, force=3.0),
            Action(LIFT, "velocity", -0.2, 0.2, force=100.0),
        ],
        observations={
            "bolt": Observation(bolt, -1.0, 1.0),
            "moving": Observation(moving, -5.0, 5.0),
            "hand": Observation(hand, -1.0, 1.0),
            "closing": Observation(closing, [-1.0, -10.0], [2.0, 10.0]),
            "squeeze": Observation(squeeze, -200.0, 200.0),
        },
        start=start,
        reward=reward,
        terminated=lost,
        steps=8,
        most_actions=120,
        contacts=True,
    )
