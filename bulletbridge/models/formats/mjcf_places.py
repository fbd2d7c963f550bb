"""Where bodies, sites and joints of a MuJoCo model are among the links of a scene."""

from typing import Any

import numpy as np

from bulletbridge.constraints.joints import Frame
from bulletbridge.mechanism.model import WORLD
from bulletbridge.models.formats.robot import Joint, Link, Pose, Robot, Scene, free_name

BASE = "base"


class Places:
    """Names of everything, and each body's frame on its link.

    Args:
        model: MuJoCo's.
        stem: What a robot without a name is called.

    Attributes:
        scene: What is being built.
        robots: By name; the one that stands on the world is called like the model.
        body_names, joint_names: Unique names by number.
    """

    def __init__(self, model: Any, stem: str) -> None:
        name = str(model.names[: bytes(model.names).index(b"\0")], "utf-8", "replace")
        standing = name.replace("/", "_") or stem
        self.model = model
        self.scene = Scene(stem)
        self.body_names = [WORLD]
        for k in range(1, model.nbody):
            given = model.body(k).name.replace("/", "_") or f"body_{k}"
            self.body_names.append(free_name(given, self.body_names))
        self.joint_names: list[str] = []
        for k in range(model.njnt):
            body = int(model.jnt_bodyid[k])
            given = model.joint(k).name.replace("/", "_") or f"{self.body_names[body]}_joint"
            self.joint_names.append(free_name(given, self.joint_names))
        self.robots = {
            standing: Robot(standing, WORLD, True, {WORLD: Link(WORLD)}, {}),
        }
        self._at: dict[int, tuple[str, str, Pose]] = {0: (standing, WORLD, Pose())}

    def put(self, body: int, robot: str, link: str, frame: Pose) -> None:
        """Say where a body's frame is."""
        self._at[body] = robot, link, frame

    def of(self, body: int) -> tuple[Robot, str, Pose]:
        """Robot and link of a body, and the body's frame on it."""
        robot, link, frame = self._at[body]
        return self.robots[robot], link, frame

    def has(self, body: int) -> bool:
        """Whether a body is on a robot that is part of the scene."""
        return self._at[body][0] in self.robots

    def full_link(self, body: int) -> str:
        """What loops call a body's link."""
        if body == 0 or not self.has(body):
            return WORLD
        robot, link, _ = self.of(body)
        return self.scene.prefix(robot) + link

    def frame(self, body: int, place: Pose) -> Frame:
        """A frame given on a body, on its link."""
        here = self._at[body][2]
        return (here @ place).on(self.full_link(body))

    def point(self, body: int, p: Any) -> Frame:
        """A point given on a body, on its link."""
        return self.frame(body, Pose(np.eye(3), np.array(p, float)))

    def joint(self, k: int) -> Joint:
        """A joint of the tree; not for free ones."""
        robot, _, _ = self.of(int(self.model.jnt_bodyid[k]))
        return robot.joints[self.joint_names[k]]

    def full_joint(self, k: int) -> str:
        """What loops files call a joint; a free one is its robot's base."""
        robot, _, _ = self.of(int(self.model.jnt_bodyid[k]))
        own = BASE if self.model.jnt_type[k] == 0 else self.joint_names[k]
        return self.scene.prefix(robot) + own
