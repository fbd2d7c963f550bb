"""Random mechanisms without files, and the same in Pinocchio as an independent oracle."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

import bulletbridge as bb
from bulletbridge.bench.peers.base import library
from bulletbridge.constraints.joint_geometry import free_twists, joint_axis
from bulletbridge.mechanism.frames import frame_with_z, matrix_rpy
from bulletbridge.mechanism.model import Joint, Link, Mechanism, empty_arrays
from bulletbridge.mechanism.records import FREE, PRISMATIC, REVOLUTE, SPHERICAL
from bulletbridge.numerics.records import Array
from bulletbridge.system.carrying import SURFACES

pin: Any = library("pinocchio")

POSITIONS = {REVOLUTE: 1, PRISMATIC: 1, SPHERICAL: 4, FREE: 7}
RATES = {REVOLUTE: 1, PRISMATIC: 1, SPHERICAL: 3, FREE: 6}
NAMES = {REVOLUTE: "revolute", PRISMATIC: "prismatic", SPHERICAL: "spherical", FREE: "free"}


def random_mechanism(
    rng: np.random.Generator,
    kinds: Sequence[int],
    branching: float = 0.3,
    gravity: bool = True,
    roots: Collection[int] = (),
    decades: float = 0.0,
) -> Mechanism:
    """Forest with joints of the given kinds, offset rotated frames, full inertias, random parents.

    Args:
        rng: Where all numbers come from.
        kinds: Of ``mechanism.records``; a free one begins another robot.
        branching: Chance of a joint to be on an ancestor of the last body.
        gravity: Whether there is gravity, in any direction.
        roots: Which of the joints, from 0, begin a robot with a fixed base.
        decades: Range of the masses [powers of ten].
    """
    nv = sum(RATES[kind] for kind in kinds)
    bodies, axes = empty_arrays(len(kinds) + 1, nv)
    links = {"world": Link("world", 0, np.eye(3), np.zeros(3))}
    joints = dict[str, Joint]()
    q = v = 0
    for i, kind in enumerate(kinds, start=1):
        parent = 0 if kind == FREE or i - 1 in roots else i - 1
        if kind != FREE and rng.random() < branching:
            # an ancestor of the last body: depth first, as Pinocchio wants its joints
            for _ in range(int(rng.integers(0, 3))):
                parent = int(bodies[parent]["parent"]) if parent > 0 else 0
        body = bodies[i]
        body["parent"], body["joint"], body["q"], body["v"] = parent, kind, q, v
        if kind != FREE:
            body["R"], body["p"] = Rotation.random(rng=rng).as_matrix(), rng.normal(0, 0.4, 3)
        body["mass"], body["com"] = rng.uniform(0.5, 3.0), rng.normal(0, 0.2, 3)
        a = rng.normal(0, 0.2, (3, 3))
        if decades:
            body["mass"] *= 10 ** rng.uniform(-decades / 2, decades / 2)
        body["J"] = body["mass"] * (np.trace(a @ a.T) * np.eye(3) - a @ a.T + 0.01 * np.eye(3))
        below = int(bodies[parent]["axis"])
        for k in range(v, v + RATES[kind]):
            axes[k]["body"], axes[k]["below"] = i, below
            axes[k]["q"] = q if RATES[kind] == 1 else -1
            below = k
        body["axis"] = below
        R, p = Rotation.random(rng=rng).as_matrix(), rng.normal(0, 0.2, 3)
        links[f"link{i}"] = Link(f"link{i}", i, R, p)
        part = slice(q, q + POSITIONS[kind]), slice(v, v + RATES[kind])
        joints[f"joint{i}"] = Joint(f"joint{i}", NAMES[kind], *part)
        q, v = part[0].stop, part[1].stop
    g = rng.normal(0, 6, 3) if gravity else np.zeros(3)
    return Mechanism(bodies, axes, links, joints, g)


def random_state(rng: np.random.Generator, mechanism: Mechanism, speed: float = 1.0):
    """Configuration with unit quaternions, and velocity."""
    q = rng.normal(0, 0.8, mechanism.nq)
    for joint in mechanism.joints.values():
        if joint.kind in ("spherical", "free"):
            q[joint.q.stop - 4 : joint.q.stop] = Rotation.random(rng=rng).as_quat()
    return q, speed * rng.normal(0, 1.0, mechanism.nv)


def closed_loop_joint(
    loop: bb.LoopJoint,
    a: tuple[Array, Array],
    link_b: tuple[Array, Array],
    t: float,
    rng: np.random.Generator,
) -> bb.LoopJoint:
    """The loop joint with a frame b that closes it, anywhere that its free motions lead to.

    Args:
        loop: What is to be closed.
        a: Rotation and position of its frame a in the world, before its prescribed motion.
        link_b: The same of the link of frame b.
        t: Time [s] of the prescribed motion.
        rng: Where it is along the free motions.
    """
    R, p = a
    if loop.motion is not None:
        x, y, z, angle = loop.motion.over(np.array([t]))[0, :, 0]
        axis = np.array(loop.motion.axis or joint_axis(loop, "a"))
        p = p + R @ np.array([x, y, z])
        R = R @ Rotation.from_rotvec(angle * axis / np.linalg.norm(axis)).as_matrix()
    Z = frame_with_z(joint_axis(loop, "a"))
    if loop.model not in SURFACES:
        p = p + loop.radius * R @ Z[:, 2]  # the centre of a ball that touches the plane
    # move along what the joint leaves free, in axes of a with z along the joint's axis
    free = free_twists(loop)
    twist = free.T @ rng.normal(0, 0.5, len(free))
    if loop.model is bb.JointModel.UNIVERSAL:
        turn = Rotation.from_rotvec([0.9, 0, 0]) * Rotation.from_rotvec([0, np.pi / 2, 0])
        spin = Rotation.from_rotvec([0, 0, 0.4])
        R_b = R @ Z @ spin.as_matrix() @ turn.as_matrix() @ frame_with_z(joint_axis(loop, "b")).T
        p_b = p
    elif loop.model in SURFACES:
        R_b, s = R, rng.normal(size=3)
        size = np.linalg.norm(s[:2] if loop.model is bb.JointModel.POINT_ON_CYLINDER else s)
        p_b = p + R @ Z @ s * loop.radius / size
    else:
        R_b = R @ Z @ Rotation.from_rotvec(twist[:3]).as_matrix() @ Z.T
        p_b = p + R @ Z @ twist[3:]
    R_l, p_l = link_b
    x, y, z = (float(value) for value in R_l.T @ (p_b - p_l))
    return replace(loop, b=bb.Frame(loop.b.link, (x, y, z), matrix_rpy(R_l.T @ R_b)))


@dataclass
class Oracle:
    """The same mechanism in Pinocchio; rates of a free base are linear first, in body axes."""

    model: Any
    data: Any
    ids: list[int]
    mechanism: Mechanism

    def rates(self, q: np.ndarray) -> np.ndarray:
        """T (nv, nv) with v_pin = T v."""
        T = np.eye(self.mechanism.nv)
        for joint in self.mechanism.joints.values():
            if joint.kind == "free":
                k = joint.v.start
                R = Rotation.from_quat(q[joint.q][3:]).as_matrix()
                T[k : k + 6, k : k + 6] = 0
                T[k : k + 3, k + 3 : k + 6] = T[k + 3 : k + 6, k : k + 3] = R.T
        return T

    def bias_rates(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Pinocchio accelerations when ours are zero: dT/dt v."""
        a = np.zeros(self.mechanism.nv)
        for joint in self.mechanism.joints.values():
            if joint.kind == "free":
                k = joint.v.start
                R = Rotation.from_quat(q[joint.q][3:]).as_matrix()
                a[k : k + 3] = -R.T @ np.cross(v[k : k + 3], v[k + 3 : k + 6])
        return a

    def mass_matrix(self, q: np.ndarray) -> np.ndarray:
        """M in our rates."""
        T = self.rates(q)
        M = pin.crba(self.model, self.data, q)
        M = np.triu(M) + np.triu(M, 1).T
        return T.T @ M @ T

    def bias(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """H in our rates."""
        T = self.rates(q)
        return T.T @ pin.rnea(self.model, self.data, q, T @ v, self.bias_rates(q, v))


def oracle(mechanism: Mechanism) -> Oracle:
    """Pinocchio's model of a mechanism, whose bodies must stand depth first.

    Raises:
        ValueError: A body comes after one of another branch: Pinocchio would be wrong in silence.
    """
    model, path = pin.Model(), [0]
    model.gravity.linear = np.array(mechanism.gravity)
    kinds = {
        REVOLUTE: pin.JointModelRZ,
        PRISMATIC: pin.JointModelPZ,
        SPHERICAL: pin.JointModelSpherical,
        FREE: pin.JointModelFreeFlyer,
    }
    ids = [0]
    for i, body in enumerate(mechanism.bodies[1:], start=1):
        if int(body["parent"]) not in path:
            raise ValueError(f"body {i} is not next to its parent: add bodies depth first")
        path = [*path[: path.index(int(body["parent"])) + 1], i]
        placement = pin.SE3(np.array(body["R"]), np.array(body["p"]))
        joint = kinds[int(body["joint"])]()
        ids.append(model.addJoint(ids[int(body["parent"])], joint, placement, f"joint{i}"))
        inertia = pin.Inertia(float(body["mass"]), np.array(body["com"]), np.array(body["J"]))
        model.appendBodyToJoint(ids[-1], inertia, pin.SE3.Identity())
    return Oracle(model, model.createData(), ids, mechanism)
