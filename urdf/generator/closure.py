"""Rows, rank and mobility of a model from its written files, by central differences.

A slow and plain evaluation for the table of models and for start poses; it shares nothing with
the package's kernels.
"""

import functools
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from ruamel.yaml import YAML
from scipy.spatial.transform import Rotation

from generator.shapes import Array

STEP = 1e-5
"""Of the central differences [rad or m]."""
WEAK = 1e-3
"""Singular values below this part of the largest count as zero."""

Pose = tuple[Array, Array]
State = dict[str, Array]
COUNTS = {"revolute": 1, "continuous": 1, "prismatic": 1, "spherical": 3, "fixed": 0}


@dataclass(frozen=True)
class TreeJoint:
    """A joint as its URDF has it."""

    name: str
    kind: str
    parent: str
    child: str
    R: Array
    p: Array
    axis: Array


@dataclass(frozen=True)
class Tree:
    """Links and joints in the order of the file, parents first."""

    links: tuple[str, ...]
    base: str
    base_com: Array
    floating: bool
    joints: tuple[TreeJoint, ...]

    @property
    def dofs(self) -> int:
        """Freedoms without loops."""
        return 6 * self.floating + sum(COUNTS[j.kind] for j in self.joints)

    def zero(self) -> State:
        """All coordinates zero."""
        unit = np.array([0.0, 0, 0, 1])
        state = {j.name: unit if j.kind == "spherical" else np.zeros(1) for j in self.joints}
        if self.floating:
            state["base"] = np.concatenate([np.zeros(3), unit])
        return state

    def moved(self, state: State, move: Array) -> State:
        """State displaced by (dofs,) small motions, base first."""
        state, k = dict(state), 0
        if self.floating:
            turn = Rotation.from_rotvec(move[:3]) * Rotation.from_quat(state["base"][3:])
            state["base"] = np.concatenate([state["base"][:3] + move[3:6], turn.as_quat()])
            k = 6
        for joint in self.joints:
            n = COUNTS[joint.kind]
            if n == 1:
                state[joint.name] = state[joint.name] + move[k]
            elif n == 3:
                turn = Rotation.from_rotvec(move[k : k + 3])
                state[joint.name] = (Rotation.from_quat(state[joint.name]) * turn).as_quat()
            k += n
        return state

    def poses(self, state: State) -> dict[str, Pose]:
        """Pose of every link, and of ``world``."""
        R, p = np.eye(3), np.zeros(3)
        if self.floating:
            R = Rotation.from_quat(state["base"][3:]).as_matrix()
            p = state["base"][:3] - R @ self.base_com
        poses = {"world": (np.eye(3), np.zeros(3)), self.base: (R, p)}
        for joint in self.joints:
            R, p = poses[joint.parent]
            R, p = R @ joint.R, p + R @ joint.p
            if joint.kind in ("revolute", "continuous"):
                R = R @ Rotation.from_rotvec(state[joint.name][0] * joint.axis).as_matrix()
            elif joint.kind == "prismatic":
                p = p + R @ joint.axis * state[joint.name][0]
            elif joint.kind == "spherical":
                R = R @ Rotation.from_quat(state[joint.name]).as_matrix()
            poses[joint.child] = R, p
        return poses


def vector(text: str | None, default: str = "0 0 0") -> Array:
    """Numbers of an attribute."""
    return np.array([float(x) for x in (text or default).split()])


def read_tree(path: Path, floating: bool) -> Tree:
    """Tree of a URDF file."""
    root = ElementTree.parse(path).getroot()
    links = tuple(str(link.get("name")) for link in root.iter("link"))
    found: dict[str, TreeJoint] = {}
    for element in root.findall("joint"):
        tags = {child.tag: child for child in element}
        origin = tags["origin"].attrib if "origin" in tags else {}
        turn = Rotation.from_euler("xyz", vector(origin.get("rpy"))).as_matrix()
        axis = vector(tags["axis"].get("xyz")) if "axis" in tags else np.array([1.0, 0, 0])
        name, kind = str(element.get("name")), str(element.get("type"))
        parent, child = str(tags["parent"].get("link")), str(tags["child"].get("link"))
        place = vector(origin.get("xyz"))
        found[child] = TreeJoint(name, kind, parent, child, turn, place, axis)
    base = next(link for link in links if link not in found)
    order, known = [], {base}
    while len(order) < len(found):
        for child, joint in found.items():
            if child not in known and joint.parent in known:
                order.append(joint)
                known.add(child)
    com = root.find(f"link[@name='{base}']/inertial/origin")
    return Tree(
        links, base, vector(None if com is None else com.get("xyz")), floating, tuple(order)
    )


def data_path(urdf: str, folder: Path) -> Path:
    """File that ``urdf:`` of a loops file means."""
    if urdf.startswith("pybullet_data/"):
        import pybullet_data

        return Path(pybullet_data.getDataPath()) / urdf.removeprefix("pybullet_data/")
    return folder / urdf


@dataclass(frozen=True)
class Loops:
    """A tree and the loop joints that close it."""

    tree: Tree
    entries: list[dict[str, Any]]
    start: State

    def residual(self, state: State) -> Array:
        """All rows as written, in axes of the frames a."""
        poses = self.tree.poses(state)
        parts = [np.zeros(0)]
        for entry in self.entries:
            if entry["type"] == "gear":
                turns = [factor * state[name][0] for name, factor in entry["joints"].items()]
                parts.append(np.array([sum(turns) - entry.get("offset", 0.0)]))
                continue
            (Ra, pa), (Rb, pb) = (_frame(poses, entry[side]) for side in "ab")
            parts.append(ROWS[entry["type"]](Ra.T @ (pb - pa), Ra.T @ Rb, entry))
        return np.concatenate(parts)

    def jacobian(self, state: State) -> Array:
        """(rows, dofs) by central differences."""
        columns = []
        for move in STEP * np.eye(self.tree.dofs):
            ahead = self.residual(self.tree.moved(state, move))
            columns.append((ahead - self.residual(self.tree.moved(state, -move))) / (2 * STEP))
        return np.column_stack(columns)

    def close(self, state: State, held: tuple[str, ...] = ()) -> State:
        """Closed state near ``state`` that leaves the held joints alone."""
        free = []
        if self.tree.floating:
            free += 6 * ["base" not in held]
        for joint in self.tree.joints:
            free += COUNTS[joint.kind] * [joint.name not in held]
        mask = np.array(free, bool)
        for _ in range(50):
            move = np.zeros(self.tree.dofs)
            J = self.jacobian(state)[:, mask]
            move[mask] = -np.linalg.pinv(J, rcond=WEAK) @ self.residual(state)
            state = self.tree.moved(state, move)
            if np.abs(move).max() < 1e-15:
                break
        return state

    def rank(self) -> int:
        """Independent rows near the start; the start itself may be singular."""
        if not self.entries:
            return 0
        rng, most, state = np.random.default_rng(1), 0, self.start
        for _ in range(4):
            state = self.close(state)
            J = self.jacobian(state)
            _, s, Vt = np.linalg.svd(J)
            found = int(np.count_nonzero(s > WEAK * s[0]))
            most = max(most, found)
            free = Vt[found:].T @ rng.normal(size=J.shape[1] - found)
            state = self.tree.moved(state, 0.05 * free / max(float(np.linalg.norm(free)), 1e-9))
        return most


@functools.cache
def _turn(rpy: tuple[float, ...]) -> Array:
    return Rotation.from_euler("xyz", rpy).as_matrix()


def _frame(poses: dict[str, Pose], frame: dict[str, Any]) -> Pose:
    R, p = poses[frame["link"]]
    return R @ _turn(tuple(frame.get("rpy", (0, 0, 0)))), p + R @ np.array(
        frame.get("xyz", [0, 0, 0]), float
    )


def _normals(axis: Array) -> Array:
    return np.linalg.svd(axis[None] / np.linalg.norm(axis))[2][1:]


def _ball(d: Array, R: Array, entry: dict[str, Any]) -> Array:
    return d


def _weld(d: Array, R: Array, entry: dict[str, Any]) -> Array:
    return np.concatenate([d, Rotation.from_matrix(R).as_rotvec()])


def _revolute(d: Array, R: Array, entry: dict[str, Any]) -> Array:
    axis = np.array(entry.get("axis", [0, 0, 1]), float)
    axis_b = np.array(entry.get("axis_b", axis), float)
    return np.concatenate([d, _normals(axis) @ R @ axis_b])


def _distance(d: Array, R: Array, entry: dict[str, Any]) -> Array:
    return np.array([np.linalg.norm(d) - entry["length"]])


ROWS: dict[str, Callable[[Array, Array, dict[str, Any]], Array]] = {
    "ball": _ball,
    "weld": _weld,
    "revolute": _revolute,
    "distance": _distance,
}


def read(path: Path) -> Loops:
    """Loops file and the URDF that it names."""
    content = YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8"))
    tree = read_tree(data_path(content["urdf"], path.parent), not content["fixed_base"])
    start = tree.zero()
    for name, value in content.get("start", {}).get("q", {}).items():
        if name not in start:
            raise ValueError(f"{path.name}: start names the unknown joint '{name}'")
        start[name] = np.atleast_1d(np.array(value, float))
    return Loops(tree, content["loops"], start)
