"""Bullet's own solver, by ``stepSimulation`` of the raw module."""

import tempfile
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import numpy as np
import pybullet

from bulletbridge.bench.peers.base import Stepped, require_joints
from bulletbridge.bench.problem import Problem
from bulletbridge.bullet.worlds import joint_ids
from bulletbridge.comparison.native import NativeSettings, NativeWorld, SpringTorques
from bulletbridge.errors import ModelError, StepError
from bulletbridge.mechanism.frames import triple
from bulletbridge.mechanism.records import FREE, PRISMATIC
from bulletbridge.models.formats.robot import Inertial, Joint, Link, Pose
from bulletbridge.models.formats.urdf_text import joint_element, link_element
from bulletbridge.models.model_spec import BodySpec, ModelSpec
from bulletbridge.numerics.records import Array

MOST_RATES = 121
"""PyBullet answers nothing about bodies with more."""


class Bullet(Stepped):
    """Loops by ``createConstraint``, springs as torques from Python before each step.

    It has no distance constraint between links.

    Args:
        made: The problem.
        dt: Step [s].
        iterations, erp, residual: As in ``NativeSettings``.
    """

    settled = 1

    def __init__(self, made: Problem, dt: float, **settings: Any) -> None:
        super().__init__(made, dt)
        if made.mechanism.nv > MOST_RATES:
            raise ModelError(f"PyBullet takes no body with more than {MOST_RATES} rates")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "robot.urdf")
            path.write_text(urdf(made), encoding="utf-8")
            body = BodySpec("robot", path, not made.floating)
            gravity = triple(made.mechanism.gravity)
            spec = ModelSpec(made.name, path, (body,), made.loops, gravity=gravity)
            self.world = NativeWorld(spec, made.q, made.v, dt, NativeSettings(**settings))
        read = self.world.bodies.mechanism
        order = [
            [(name, joint.q) for name, joint in tree.joints.items()]
            for tree in (made.mechanism, read)
        ]
        if order[0] != order[1]:
            raise ModelError(f"Bullet orders the joints of '{made.name}' otherwise")
        axes = made.mechanism.axes
        names = {joint.v.start: name for name, joint in made.mechanism.joints.items()}
        pushed = np.flatnonzero((axes["stiffness"] != 0.0) | (axes["torque"] != 0.0))
        ids = joint_ids(self.world.ids, self.world.client)
        self.sprung = [ids[names[int(k)]][1] for k in pushed]
        self.stiffness, self.rest = axes["stiffness"][pushed], axes["rest"][pushed]
        self.torque = axes["torque"][pushed]
        self.struts: SpringTorques | None = None
        if made.springs:
            self.struts = SpringTorques(read, made.springs)
            self.every = [ids[names[k]][1] for k in range(made.mechanism.nv)]

    def reset(self) -> None:
        """Go back to the start."""
        self.world.bodies.write(self.problem.q, self.problem.v)

    def close(self) -> None:
        """Close the world."""
        self.world.close()

    def call(self, steps: int) -> None:
        """A Python call a step; more with springs."""
        step, client = pybullet.stepSimulation, self.world.client
        if not self.sprung and self.struts is None:
            for _ in range(steps):
                step(client)
            return
        body = self.world.ids["robot"]
        for _ in range(steps):
            if self.struts is not None:
                pybullet.setJointMotorControlArray(
                    body,
                    self.every,
                    pybullet.TORQUE_CONTROL,
                    forces=self.struts(*self.state(), 0.0).tolist(),
                    physicsClientId=client,
                )
            if self.sprung:
                self._push_joints(body, client)
            step(client)

    def _push_joints(self, body: int, client: int) -> None:
        """Springs and constant torques of joints."""
        states = pybullet.getJointStates(body, self.sprung, physicsClientId=client)
        push = self.torque - self.stiffness * (np.array([s[0] for s in states]) - self.rest)
        pybullet.setJointMotorControlArray(
            body,
            self.sprung,
            pybullet.TORQUE_CONTROL,
            forces=push.tolist(),
            physicsClientId=client,
        )

    def state(self) -> tuple[Array, Array]:
        """q and v now; not finite when Bullet has diverged."""
        try:
            return self.world.state()
        except StepError:
            return self.problem.q * np.nan, self.problem.v * np.nan


def urdf(made: Problem) -> str:
    """Links ``body1`` and so on, joints by their names, ``base`` below them unless they float.

    Raises:
        UnsupportedError: A joint that URDF does not have.
    """
    require_joints(made, "URDF")
    mechanism = made.mechanism
    root = Xml.Element("robot", name=made.name)
    names = {joint.v.start: name for name, joint in mechanism.joints.items()}
    if not made.floating:
        Xml.SubElement(root, "link", name="base")
    for k, record in enumerate(mechanism.bodies[1:], start=1):
        inertial = Inertial(float(record["mass"]), record["com"], record["J"])
        root.append(link_element(Link(f"body{k}", inertial), Path()))
        if record["joint"] == FREE:
            continue
        kind = "prismatic" if record["joint"] == PRISMATIC else "revolute"
        parent = f"body{record['parent']}" if record["parent"] else "base"
        joint = Joint(names[int(record["v"])], kind, parent, f"body{k}")
        joint.place = Pose(record["R"], record["p"])
        joint.damping = float(mechanism.axes[record["v"]]["damping"])
        root.append(joint_element(joint))
    Xml.indent(root)  # Bullet breaks lines of more than 8 kB in the middle of a word
    return Xml.tostring(root, encoding="unicode")
