"""The same model closed by Bullet's own constraints, in a world of its own."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pybullet
from scipy.spatial.transform import Rotation

from bulletbridge.bullet.reader import read_bullet
from bulletbridge.bullet.worlds import (
    connect_direct,
    disconnect,
    joint_ids,
    link_ids,
    readable,
)
from bulletbridge.constraints.force_element_records import encode_closed
from bulletbridge.constraints.force_elements import ForceElement, Spring, Tendon, Wrench
from bulletbridge.constraints.joints import Coupling, Distance, Frame, JointModel, LoopJoint, Triple
from bulletbridge.errors import ModelError, StepError, WorldError
from bulletbridge.mechanism.dynamics import bias
from bulletbridge.mechanism.frames import frame_with_z, rpy_matrix
from bulletbridge.mechanism.joint_properties import JointProperties
from bulletbridge.mechanism.kinematics import kinematics
from bulletbridge.mechanism.model import WORLD, Mechanism
from bulletbridge.mechanism.records import POSE
from bulletbridge.models.bodies import load_bodies
from bulletbridge.models.model_spec import ModelSpec
from bulletbridge.numerics.records import Array

HINGE_HALF_SPAN = 0.1
"""Half the distance [m] of the two point constraints that make a revolute joint."""


@dataclass(frozen=True)
class NativeSettings:
    """How Bullet's solver is set."""

    iterations: int = 50  # ``numSolverIterations``
    erp: float = 0.2  # share of the gap that a step takes back; engine-wide, for all but gears
    residual: float = 1e-7  # ``solverResidualThreshold``; 0 for all iterations
    gear_erp: float = 0.0  # the same as ``erp`` for gears within one body
    limits: bool = True  # whether joint limits act


NO_LIMIT = 1e30
"""Limit [rad or m] that takes away one that Bullet has read; it takes no infinity."""
DEFAULT = NativeSettings()
TUNED = NativeSettings(iterations=200, erp=0.8, residual=0.0, gear_erp=0.8)


@dataclass(frozen=True)
class Anchor:
    """A frame as Bullet wants it: in the inertial frame of a link, or in the world.

    Attributes:
        body, link: Bullet's numbers; -1, -1 is the world.
        R: (3, 3), p: (3,) [m] of the frame.
    """

    body: int
    link: int
    R: Array
    p: Array

    @property
    def quat(self) -> list[float]:
        """Orientation xyzw."""
        return Rotation.from_matrix(self.R).as_quat().tolist()


class NativeWorld:
    """A model advanced by ``stepSimulation``, motors and damping off, as ours.

    Joint forces of the model, and what its springs do to the joints, are applied as torques before
    each step; contacts are off.

    Args:
        spec: The model.
        q, v: Start, (nq,) and (nv,), as the system of the same model has them.
        dt: Step [s].
        settings: Of Bullet's solver.

    Raises:
        NoNativeTwinError: Bullet has no constraint for something in the model.
        WorldError: Bullet refuses a constraint.
    """

    def __init__(
        self, spec: ModelSpec, q: Array, v: Array, dt: float, settings: NativeSettings = DEFAULT
    ) -> None:
        require_native_twin(spec)
        self.spec, self.settings, self.dt, self.t = spec, settings, dt, 0.0
        self.client = connect_direct()
        try:
            self._build(q, v)
        except BaseException:
            self.close()
            raise

    def _build(self, q: Array, v: Array) -> None:
        client = self.client
        pybullet.setTimeStep(self.dt, physicsClientId=client)
        pybullet.setPhysicsEngineParameter(
            numSolverIterations=self.settings.iterations,
            erp=self.settings.erp,
            solverResidualThreshold=self.settings.residual,
            physicsClientId=client,
        )
        self.ids = load_bodies(self.spec, client)
        self._links, self._joints = link_ids(self.ids, client), joint_ids(self.ids, client)
        for body, link in self._links.values():
            pybullet.setCollisionFilterGroupMask(body, link, 0, 0, physicsClientId=client)
        self.bodies = read_bullet(readable(self.ids), client)
        self._change_joints()
        self.bodies.write(q, v)
        self.constraint_ids = [
            made for constraint in self.spec.constraints for made in self._close(constraint)
        ]
        self._forces = [(self._joints[force.joint], force) for force in self.spec.forces]
        self._drives: dict[str, float] = {}
        self._springs = SpringTorques(
            self.bodies.mechanism, (*self.spec.elements, *self.spec.wrenches)
        )

    def _change_joints(self) -> None:
        """Damping and limits as the model has them; Bullet knows no armature or joint friction."""
        for name, joint in self.bodies.mechanism.joints.items():
            if name not in self._joints:  # a floating base
                continue
            given = self.spec.joints.get(name, JointProperties())
            limits = given.limits or (joint.lower, joint.upper)
            if not self.settings.limits and np.any(np.isfinite(limits)):
                limits = -np.inf, np.inf
            change: dict[str, Any] = {}
            if given.damping is not None:
                change["jointDamping"] = given.damping
            if limits != (joint.lower, joint.upper):
                ends = np.clip(limits, -NO_LIMIT, NO_LIMIT).tolist()
                change["jointLowerLimit"], change["jointUpperLimit"] = ends
            if change:
                pybullet.changeDynamics(*self._joints[name], **change, physicsClientId=self.client)

    def drive(self, torques: Mapping[str, float], gravity: Array) -> None:
        """Torques by joint [N m or N] besides the model's, and gravity (3,) [m/s²], from now on."""
        self._drives = dict(torques)
        pybullet.setGravity(*gravity.tolist(), physicsClientId=self.client)

    def step(self) -> tuple[Array, Array]:
        """Advance by one step; the state after it.

        Raises:
            StepError: Bullet's numbers are not finite any more.
        """
        self.advance()
        return self.state()

    def advance(self) -> None:
        """Apply joint forces and let Bullet step."""
        client = self.client
        for (body, joint), force in self._forces:
            position, rate = pybullet.getJointState(body, joint, physicsClientId=client)[:2]
            torque = force.torque_at(self.t) - force.damping * rate
            torque -= force.stiffness * (position - force.rest)
            pybullet.setJointMotorControl2(
                body, joint, pybullet.TORQUE_CONTROL, force=torque, physicsClientId=client
            )
        drives = [*self._drives.items(), *self._spring_torques()]
        for name, torque in drives:  # Bullet adds them up
            body, joint = self._joints[name]
            pybullet.setJointMotorControl2(
                body, joint, pybullet.TORQUE_CONTROL, force=torque, physicsClientId=client
            )
        pybullet.stepSimulation(physicsClientId=client)
        self.t += self.dt

    def _spring_torques(self) -> list[tuple[str, float]]:
        """Torques of force elements and wrenches at the start of the step, by joint."""
        if not (self.spec.elements or self.spec.wrenches):
            return []
        torques = self._springs(*self.state(), self.t)
        joints = self.bodies.mechanism.joints.items()
        return [(name, float(torques[joint.v.start])) for name, joint in joints]

    def state(self) -> tuple[Array, Array]:
        """q and v now.

        Raises:
            StepError: They are not finite.
        """
        try:
            return self.bodies.state()
        except WorldError as error:
            raise StepError(f"Bullet's solver failed at t = {self.t:.6g} s: {error}") from None

    def close(self) -> None:
        """Close the world."""
        disconnect(self.client)

    def _close(self, constraint: LoopJoint | Distance | Coupling) -> list[int]:
        """Bullet's constraints that do the same; their ids."""
        if isinstance(constraint, Coupling):
            return [self._gear(constraint)]
        assert isinstance(constraint, LoopJoint)
        axis_b = constraint.axis_b or constraint.axis
        a, b = self._anchor(constraint.a, constraint.axis), self._anchor(constraint.b, axis_b)
        if a.body < 0:  # only the child may be the world
            a, b = b, a
        name = constraint.name
        if constraint.model is JointModel.BALL:
            return [self._create(name, pybullet.JOINT_POINT2POINT, a, b)]
        if constraint.model is JointModel.WELD:
            return [self._create(name, pybullet.JOINT_FIXED, a, b)]
        if constraint.model is JointModel.PRISMATIC:
            return [self._create(name, pybullet.JOINT_PRISMATIC, a, b)]
        ends = [HINGE_HALF_SPAN * np.array([0.0, 0.0, side]) for side in (-1.0, 1.0)]
        return [
            self._create(name, pybullet.JOINT_POINT2POINT, _shifted(a, end), _shifted(b, end))
            for end in ends
        ]

    def _anchor(self, frame: Frame, axis: Triple) -> Anchor:
        R = rpy_matrix(frame.rpy) @ frame_with_z(axis)
        p = np.asarray(frame.xyz, float)
        if frame.link not in self._links and frame.link == WORLD:
            return Anchor(-1, -1, R, p)
        body, link = self._links[frame.link]
        info = pybullet.getDynamicsInfo(body, link, physicsClientId=self.client)
        R_LI = Rotation.from_quat(info[4]).as_matrix()
        return Anchor(body, link, R_LI.T @ R, R_LI.T @ (p - np.asarray(info[3])))

    def _create(self, name: str, kind: int, a: Anchor, b: Anchor) -> int:
        try:
            return pybullet.createConstraint(
                a.body,
                a.link,
                b.body,
                b.link,
                kind,
                a.R[:, 2].tolist(),
                a.p.tolist(),
                b.p.tolist(),
                a.quat,
                b.quat,
                physicsClientId=self.client,
            )
        except pybullet.error as error:
            raise WorldError(f"Bullet refuses the constraint '{name}': {error}") from None

    def _gear(self, gear: Coupling) -> int:
        """A constraint of Bullet's that couples two joints."""
        (first, a), (second, b) = gear.coefficients.items()
        (body_a, link_a), (body_b, link_b) = self._joints[first], self._joints[second]
        still = Anchor(body_a, link_a, np.eye(3), np.zeros(3))
        made = self._create(
            gear.name, pybullet.JOINT_GEAR, still, Anchor(body_b, link_b, still.R, still.p)
        )
        # between two bodies Bullet's position term reads the wrong joint: rates only
        erp = self.settings.gear_erp if body_a == body_b else 0.0
        pybullet.changeConstraint(
            made,
            gearRatio=b / a,
            erp=erp,
            relativePositionTarget=gear.offset / a,
            physicsClientId=self.client,
        )
        return made


def _shifted(anchor: Anchor, offset: Array) -> Anchor:
    return Anchor(anchor.body, anchor.link, anchor.R, anchor.p + anchor.R @ offset)


class SpringTorques:
    """What force elements, and wrenches that are no functions, do to the joints of a mechanism."""

    def __init__(self, mechanism: Mechanism, elements: tuple[ForceElement | Wrench, ...]) -> None:
        self._mechanism, self._encoded = mechanism, encode_closed(mechanism, elements)
        self._elements = self._encoded.elements.copy()

    def __call__(self, q: Array, v: Array, t: float) -> Array:
        """Forces (nv,) on the rates at a state."""
        m, h = self._mechanism, np.zeros(self._mechanism.nv)
        targets = self._encoded.targets(np.array([t]))[0]
        for element in self._elements:
            if element["target"] >= 0:
                element["force"] = targets[element["target"]]["p"][2]
        poses, axes = np.zeros(len(m.bodies), POSE), m.axes.copy()
        poses["R"] = np.eye(3)
        beams, stations = m.beams.copy(), m.stations.copy()
        kinematics(m.bodies, beams, stations, q, poses, axes)
        # bodies without inertia need no other forces
        bias(m.bodies, beams, stations, self._elements, poses, axes, v, h)
        return -h


class NoNativeTwinError(ModelError):
    """Bullet has no constraint of its own for something in the model."""


def require_native_twin(spec: ModelSpec) -> None:
    """Raise unless Bullet has a constraint for each of the model's."""
    for beam in spec.beams:
        raise NoNativeTwinError(
            f"'{beam.joint}' has no native twin: Bullet has no flexible beams; without 'beams' it "
            "can be compared as a chain of segments"
        )
    acting = (*spec.elements, *spec.wrenches)
    if acting and any(not body.fixed_base for body in spec.bodies):
        raise NoNativeTwinError(
            f"'{acting[0].name}' has no native twin: springs and wrenches are compared as torques"
            " on the joints of robots with a fixed base"
        )
    for element in spec.elements:
        if isinstance(element, Spring | Tendon) and element.bounded:
            raise NoNativeTwinError(
                f"'{element.name}' has no native twin: Bullet has no motors, limits or friction"
                " along springs and tendons"
            )
    for wrench in spec.wrenches:
        if callable(wrench.force) or callable(wrench.torque):
            raise NoNativeTwinError(
                f"'{wrench.name}' has no native twin: Bullet holds a force for a whole step, and"
                " this one is a function"
            )
    for constraint in spec.constraints:
        reason = _missing_twin(constraint)
        if reason:
            raise NoNativeTwinError(f"'{constraint.name}' has no native twin: {reason}")


def without_bounds(spec: ModelSpec) -> tuple[str, ...]:
    """Loops that a native twin has without their limits and friction, which are left out there."""
    return tuple(
        constraint.name
        for constraint in spec.constraints
        if isinstance(constraint, LoopJoint) and (constraint.turn or constraint.travel)
    )


def _missing_twin(constraint: LoopJoint | Distance | Coupling) -> str:
    """Why Bullet has no such constraint; empty if it has."""
    if constraint.motion is not None:
        return "Bullet's constraints cannot be driven along a prescribed motion"
    if constraint.max_force is not None:
        return "its force limit is compared in the drop-in client only"
    if isinstance(constraint, Distance):
        return "Bullet has no distance constraint between links"
    if isinstance(constraint, LoopJoint):
        axes = [axis for axis in (constraint.turn, constraint.travel) if axis is not None]
        if any(axis.motor or axis.springs for axis in axes):
            return "Bullet's constraints have no motors or springs"
    if isinstance(constraint, Coupling):
        used = {name: c for name, c in constraint.coefficients.items() if c != 0.0}
        if len(used) != 2 or len(constraint.coefficients) != 2:
            return f"JOINT_GEAR couples two joints, not {len(used)}"
        if constraint.higher:
            return "JOINT_GEAR has one ratio"
        return ""
    return NO_TWIN.get(constraint.model, "")


NO_TWIN = {
    JointModel.UNIVERSAL: "Bullet has no universal constraint between links",
    JointModel.CYLINDRICAL: "Bullet has no cylindrical constraint between links",
    JointModel.PLANAR: "createConstraint refuses JOINT_PLANAR",
    JointModel.SCREW: "Bullet has no screw constraint",
    JointModel.POINT_ON_LINE: "Bullet has no constraint of a point to a line",
    JointModel.POINT_ON_PLANE: "Bullet has no constraint of a point to a plane",
    JointModel.POINT_ON_SPHERE: "Bullet has no constraint of a point to a sphere",
    JointModel.POINT_ON_CYLINDER: "Bullet has no constraint of a point to a cylinder",
    JointModel.SOFT_FINGER: "Bullet has no soft finger",
    JointModel.ROLLING: "Bullet has no rolling constraint",
    JointModel.PURE_ROLLING: "Bullet has no rolling constraint",
    JointModel.GENERAL: "Bullet has no constraint with free motions of one's own",
}
