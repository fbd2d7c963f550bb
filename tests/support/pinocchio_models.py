"""The bundled models in Pinocchio, read from their files without the package or the generator."""

import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from numpy.typing import NDArray
from ruamel.yaml import YAML

pin: Any = import_module("pinocchio")
Array = NDArray[np.float64]
Pose = Any
"""``pin.SE3``, whose module is made at run time."""
URDF = Path(__file__).resolve().parents[2] / "urdf"
WEAK = 1e-3
ROUND_OFF = 1e-14
"""Step [m, rad] at which a configuration is closed: of the order of coordinates' last digits."""
MOST_STEPS = 50
"""The Jacobian is off by some of the gap, so that each step leaves as large a part of the last."""


@dataclass
class Closed:
    """A model in Pinocchio, with its loops and its start."""

    model: Any
    data: Any
    places: dict[str, tuple[int, Pose]]
    content: dict[str, Any]
    q: Array

    def frame(self, q: Array, spec: dict[str, Any]) -> tuple[Pose, Array]:
        """Pose of a loop frame and its Jacobian (6, nv), linear first, in world axes."""
        joint, place = self.places[spec["link"]]
        R = pin.rpy.rpyToMatrix(np.array(spec.get("rpy", [0, 0, 0]), float))
        place = place * pin.SE3(R, np.array(spec.get("xyz", [0, 0, 0]), float))
        pin.computeJointJacobians(self.model, self.data, q)
        pose = self.data.oMi[joint] * place
        J = pin.getJointJacobian(self.model, self.data, joint, pin.LOCAL_WORLD_ALIGNED).copy()
        J[:3] -= pin.skew(self.data.oMi[joint].rotation @ place.translation) @ J[3:]
        return pose, J

    def rows(self, q: Array) -> tuple[Array, Array]:
        """Residual and Jacobian of all loops; the Jacobian holds where they are closed."""
        g, rows = list[Any](), list[Array]()
        for loop in self.content["loops"]:
            if loop["type"] == "gear":
                row = np.zeros(self.model.nv)
                for name, factor in loop["joints"].items():
                    row[self.joint(name).idx_v] = factor
                g.append([row @ q])  # all joints of such models have one coordinate
                rows.append(row[None])
                continue
            (A, Ja), (B, Jb) = self.frame(q, loop["a"]), self.frame(q, loop["b"])
            R, J = A.rotation, Jb - Ja
            gap, turning = R.T @ (B.translation - A.translation), R.T @ J[3:]
            if loop["type"] == "distance":
                g.append([np.linalg.norm(gap) - loop["length"]])
                rows.append((gap / np.linalg.norm(gap) @ R.T @ J[:3])[None])
                continue
            g.append(gap)
            rows.append(R.T @ J[:3])
            if loop["type"] == "weld":
                g.append(pin.log3(R.T @ B.rotation))
                rows.append(turning)
            elif loop["type"] == "revolute":
                axis = np.array(loop["axis"], float)
                free = np.eye(3) - np.outer(axis, axis) / (axis @ axis)
                normals = np.linalg.svd(free)[0][:, :2].T
                g.append(normals @ R.T @ B.rotation @ axis)
                rows.append(np.cross(axis, normals) @ turning)
            else:
                assert loop["type"] == "ball"
        return np.concatenate(g), np.vstack(rows)

    def closed_near(self, q: Array) -> Array:
        """A closed configuration near q, by shortest steps until they are round-off."""
        for _ in range(MOST_STEPS):
            g, J = self.rows(q)
            step = -np.linalg.lstsq(J, g, rcond=WEAK)[0]
            q = pin.integrate(self.model, q, step)
            if np.abs(step).max() < ROUND_OFF:
                return q
        raise ArithmeticError(f"not closed after {MOST_STEPS} steps")

    def rank(self, q: Array) -> int:
        """Independent rows."""
        s = np.linalg.svd(self.rows(q)[1])[1]
        return int(np.count_nonzero(s > WEAK * s[0]))

    def joint(self, name: str) -> Any:
        """Joint by name."""
        return self.model.joints[self.model.getJointId(name)]

    def start_rates(self) -> Array:
        """Start velocity: named rates held, the others from the rows."""
        v, named = np.zeros(self.model.nv), np.zeros(self.model.nv, bool)
        for name, value in self.content["start"].get("v", {}).items():
            joint = self.joint(name)
            part = slice(joint.idx_v, joint.idx_v + joint.nv)
            v[part], named[part] = value, True
        J = self.rows(self.q)[1]
        v[~named] = -np.linalg.lstsq(J[:, ~named], J @ v, rcond=WEAK)[0]
        return v

    def kinetic(self, v: Array) -> float:
        """Kinetic energy at the start [J]."""
        return pin.computeKineticEnergy(self.model, self.data, self.q, v)


def within(element: ElementTree.Element, path: str) -> ElementTree.Element:
    """An element that has to be there."""
    found = element.find(path)
    assert found is not None
    return found


def numbers(element: ElementTree.Element | None, key: str) -> Array:
    """Three numbers of an attribute, zero when missing."""
    text = None if element is None else element.get(key)
    return np.array([float(x) for x in (text or "0 0 0").split()])


def tensor(link: ElementTree.Element) -> Array:
    """Inertia of a link (3, 3) as written."""
    t = {key: float(x) for key, x in within(link, "inertial/inertia").attrib.items()}
    return np.array(
        [
            [t["ixx"], t["ixy"], t["ixz"]],
            [t["ixy"], t["iyy"], t["iyz"]],
            [t["ixz"], t["iyz"], t["izz"]],
        ]
    )


def pose(origin: ElementTree.Element | None) -> Pose:
    """Pose of an origin element."""
    return pin.SE3(pin.rpy.rpyToMatrix(numbers(origin, "rpy")), numbers(origin, "xyz"))


def file_of(urdf: str) -> Path:
    """File that a loops file names."""
    if not urdf.startswith("pybullet_data/"):
        return URDF / urdf
    data = pytest.importorskip("pybullet_data")
    return Path(data.getDataPath()) / urdf.removeprefix("pybullet_data/")


def load(name: str) -> Closed:
    """A bundled model."""
    text = (URDF / f"{name}.loops.yaml").read_text(encoding="utf-8")
    content = YAML(typ="safe", pure=True).load(text)
    root = ElementTree.parse(file_of(content["urdf"])).getroot()
    links = {str(link.get("name")): link for link in root.findall("link")}
    joints = {within(j, "child").attrib["link"]: j for j in root.findall("joint")}
    model, places = pin.Model(), dict[str, tuple[int, Pose]]()
    model.gravity.linear = np.array(content["gravity"], float)

    def add(link: str, joint: int, place: Pose) -> None:
        places[link] = joint, place
        inertial = links[link].find("inertial")
        if joint and inertial is not None:
            mass = float(within(inertial, "mass").attrib["value"])
            body = pin.Inertia(mass, np.zeros(3), tensor(links[link]))
            at = place * pose(inertial.find("origin"))
            model.appendBodyToJoint(joint, at.act(body), pin.SE3.Identity())
        for child, element in joints.items():
            if within(element, "parent").attrib["link"] != link:
                continue
            kind, at = element.attrib["type"], place * pose(element.find("origin"))
            if kind == "fixed":
                add(child, joint, at)
                continue
            axis = numbers(element.find("axis"), "xyz")
            assert np.linalg.norm(axis) == pytest.approx(1, abs=1e-12)
            moving = {
                "revolute": pin.JointModelRevoluteUnaligned,
                "continuous": pin.JointModelRevoluteUnaligned,
                "prismatic": pin.JointModelPrismaticUnaligned,
            }
            joint_model = moving[kind](axis) if kind in moving else pin.JointModelSpherical()
            new = model.addJoint(joint, joint_model, at, element.get("name"))
            add(child, new, pin.SE3.Identity())

    base = next(link for link in links if link not in joints)
    root_joint = 0
    if not content["fixed_base"]:
        root_joint = model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "base")
        if "base" in content.get("start", {}).get("q", {}):
            com = numbers(links[base].find("inertial/origin"), "xyz")
            assert_allclose(com, 0, err_msg="start of a base with a displaced centre of mass")
    add(base, root_joint, pin.SE3.Identity())
    closed = Closed(model, model.createData(), places, content, pin.neutral(model))
    for name_, value in content.get("start", {}).get("q", {}).items():
        joint = closed.joint(name_)
        closed.q[joint.idx_q : joint.idx_q + joint.nq] = value
    return closed
