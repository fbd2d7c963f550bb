"""Where bodies, sites and joints of a MuJoCo model are among the links of a scene."""

from typing import Any

import numpy as np

from bulletbridge.constraints.joints import Frame
from bulletbridge.mechanism.model import WORLD
from bulletbridge.models.formats.robot import Joint, Link, Pose, Robot, Scene, free_name, listed
from bulletbridge.numerics.records import Array

BASE = "base"
UNNAMED = "MuJoCo Model"
"""What MuJoCo calls a model that has no name."""


class Places:
    """Names of everything, and each body's frame on its link.

    Args:
        model: MuJoCo's.
        stem: What a robot without a name is called.

    Attributes:
        scene: What is being built.
        robots: By name; the one that stands on the world is called like the model.
        body_names, joint_names: Names by number, unique in a robot.
        robot_names: By the body that floats, or 0 for the robot that stands on the world.
        standing: Bodies that stand still and carry nothing that moves.
    """

    def __init__(self, model: Any, stem: str) -> None:
        name = str(model.names[: bytes(model.names).index(b"\0")], "utf-8", "replace")
        name = "" if name == UNNAMED else name
        self.model = model
        self.scene = Scene(stem)
        roots = _roots(model)
        prefixes = _prefixes(model, roots)
        self.body_names, self.joint_names = [WORLD], list[str]()
        taken: dict[int, list[str]] = {}
        renamed: list[str] = []

        def own(said: str, otherwise: str, root: int, names: list[str]) -> str:
            local = said.removeprefix(prefixes.get(root, "")).replace("/", "_") or otherwise
            names.append(free_name(local, names))
            if said and said != prefixes.get(root, "") + names[-1]:
                renamed.append(names[-1])
            return names[-1]

        for k in range(1, model.nbody):
            known = taken.setdefault(roots[k] if prefixes else 0, [WORLD])
            self.body_names.append(own(model.body(k).name, f"body_{k}", roots[k], known))
        taken.clear()
        for k in range(model.njnt):
            body = int(model.jnt_bodyid[k])
            known = taken.setdefault(roots[body] if prefixes else 0, [])
            otherwise = f"{self.body_names[body]}_joint"
            self.joint_names.append(own(model.joint(k).name, otherwise, roots[body], known))
        if renamed:
            self.scene.notes.append(
                "names with '/', which parts robots from joints here, or that something has already"
                f" are called otherwise: {listed(renamed)}"
            )
        self.robot_names: dict[int, str] = {}
        for root in dict.fromkeys([0, *roots]):
            called = self.body_names[root] if root else name.replace("/", "_") or stem
            called = prefixes.get(root, called).removesuffix("/")
            self.robot_names[root] = free_name(called, self.robot_names.values())
        standing = self.robot_names[0]
        self.robots = {
            standing: Robot(standing, WORLD, True, {WORLD: Link(WORLD)}, {}),
        }
        self.standing = _standing(model)
        self._at: dict[int, tuple[str, str, Pose]] = {0: (standing, WORLD, Pose())}

    def drop_idle(self) -> None:
        """Take a robot out of which nothing moves: its bodies are places in the world.

        It stays where nothing else is in the scene, unless it is the world alone.
        """
        name = self.robot_names[0]
        robot = self.robots[name]
        if len(self.robots) == 1 and len(robot.links) > 1:
            return
        own = [body for body in self._at if self._at[body][0] == name]
        if not self.standing.issuperset(own):
            return
        del self.robots[name]
        for body in own:
            self._at[body] = name, WORLD, self.in_world(body)

    def in_world(self, body: int) -> Pose:
        """Where a body that stands still is."""
        place = Pose()
        while body:
            at = Pose(turn(self.model.body_quat[body]), self.model.body_pos[body].copy())
            place, body = at @ place, int(self.model.body_parentid[body])
        return place

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

    def moves(self, body: int) -> bool:
        """Whether a body is on a robot of the scene and not welded to the world."""
        return self.has(body) and int(self.model.body_weldid[body]) > 0

    def rigid(self, body: int) -> str:
        """What a body is one rigid body with: the link that a joint carries, or the world."""
        if not self.has(body):
            return WORLD
        robot, link, _ = self.of(body)
        link = robot.carrier(link)
        return WORLD if link == WORLD else f"{robot.name}/{link}"

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


def turn(quat: Array) -> Array:
    """Rotation (3, 3) of MuJoCo's quaternion (w, x, y, z)."""
    from scipy.spatial.transform import Rotation

    return Rotation.from_quat(np.roll(quat, -1)).as_matrix()


def _standing(model: Any) -> set[int]:
    """Bodies that stand still and carry nothing that moves; the world always is one."""
    moving, carrying = set[int](), set[int]()
    for body in range(1, model.nbody):
        parent = int(model.body_parentid[body])
        if model.body_jntnum[body] or model.body_mocapid[body] >= 0 or parent in moving:
            moving.add(body)
        while body in moving and parent and parent not in moving | carrying:
            carrying.add(parent)
            parent = int(model.body_parentid[parent])
    return set(range(model.nbody)) - moving - carrying


def _roots(model: Any) -> list[int]:
    """The floating body that each body is carried by; 0 for none."""
    roots = [0]
    for body in range(1, model.nbody):
        first, count = int(model.body_jntadr[body]), int(model.body_jntnum[body])
        floats = count and model.jnt_type[first] == 0
        roots.append(body if floats else roots[int(model.body_parentid[body])])
    return roots


def _prefixes(model: Any, roots: list[int]) -> dict[int, str]:
    """What all names of a robot begin with, up to the first slash, where there are several robots.

    Our writer and MuJoCo's own attaching have it so.
    """
    names: dict[int, list[str]] = {}
    for body in range(1, model.nbody):
        names.setdefault(roots[body], []).append(model.body(body).name)
    for k in range(model.njnt):
        names[roots[int(model.jnt_bodyid[k])]].append(model.joint(k).name)
    if len(names) < 2:
        return {}
    found: dict[int, str] = {}
    for root, each in names.items():
        first = {name.partition("/")[0] for name in each if name}
        if len(first) == 1 and all("/" in name for name in each if name):
            found[root] = f"{first.pop()}/"
    return found
