"""Drake: discrete multibody dynamics under the SAP solver, with ball and weld constraints."""

from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from bulletbridge.bench.peers.base import Stepped, library, require_joints
from bulletbridge.bench.problem import Problem, Strut, Tie
from bulletbridge.mechanism.frames import inertia_at
from bulletbridge.mechanism.records import PRISMATIC
from bulletbridge.numerics.records import Array


class Drake(Stepped):
    """``Simulator.AdvanceTo`` of a discrete plant.

    A constraint to the world itself ends Drake 1.51 with a signal 11, so such loops are tied to a
    body that is welded to the world. Continuous plants refuse constraints.

    Args:
        made: The problem.
        dt: Step [s].
        near_rigid: Of SAP; None for its default.
    """

    settled = 20

    def __init__(self, made: Problem, dt: float, near_rigid: float | None = None) -> None:
        super().__init__(made, dt)
        require_joints(made, "this adapter")
        self.tree: Any = library("pydrake.multibody.tree")
        self.math: Any = library("pydrake.math")
        multibody = library("pydrake.multibody.plant")
        plant = self.plant = multibody.MultibodyPlant(dt)
        plant.set_discrete_contact_approximation(multibody.DiscreteContactApproximation.kSap)
        if near_rigid is not None:
            plant.set_sap_near_rigid_threshold(near_rigid)
        plant.mutable_gravity_field().set_gravity_vector(np.array(made.mechanism.gravity))
        self.bodies: list[Any] = [plant.world_body()]
        self.joints: list[Any] = []
        self.torques: list[float] = []
        for k in range(1, len(made.mechanism.bodies)):
            self._body(k)
        self.ground: Any = None
        for tie in made.ties:
            self._tie(tie)
        for strut in made.struts:
            self._strut(strut)
        plant.Finalize()
        self.simulator: Any = library("pydrake.systems.analysis").Simulator(plant)
        self.context = self.simulator.get_mutable_context()
        if self.torques:
            plant.get_actuation_input_port().FixValue(self.context, np.array(self.torques))
        self.done = 0
        self.reset()

    def _body(self, k: int) -> None:
        tree, plant = self.tree, self.plant
        record, axes = self.problem.mechanism.bodies[k], self.problem.mechanism.axes
        mass, com, J = float(record["mass"]), np.array(record["com"]), record["J"]
        about_origin = J + mass * inertia_at(com)
        G = tree.UnitInertia(*(about_origin / mass)[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]])
        body = plant.AddRigidBody(f"body{k}", tree.SpatialInertia(mass, com, G))
        self.bodies.append(body)
        if self.problem.floating and k == 1:
            return
        frame = self._frame(int(record["parent"]), np.array(record["R"]), np.array(record["p"]))
        axis, z, name = axes[record["v"]], np.array([0.0, 0.0, 1.0]), f"joint{k}"
        kind = tree.PrismaticJoint if record["joint"] == PRISMATIC else tree.RevoluteJoint
        joint = kind(name, frame, body.body_frame(), z, -np.inf, np.inf, float(axis["damping"]))
        self.joints.append(plant.AddJoint(joint))
        if axis["stiffness"]:
            spring = (self.joints[-1], float(axis["rest"]), float(axis["stiffness"]))
            slides = record["joint"] == PRISMATIC
            element = tree.PrismaticSpring if slides else tree.RevoluteSpring
            plant.AddForceElement(element(*spring))
        if axis["torque"]:
            plant.AddJointActuator(f"motor{k}", self.joints[-1])
            self.torques.append(float(axis["torque"]))

    def _frame(self, body: int, R: Array, p: Array) -> Any:
        place = self._pose(R, p)
        on = self.bodies[body].body_frame()
        name = f"frame{self.plant.num_frames()}"
        return self.plant.AddFrame(self.tree.FixedOffsetFrame(name, on, place))

    def _pose(self, R: Array, p: Array) -> Any:
        return self.math.RigidTransform(self.math.RotationMatrix(R), p)

    def _tie(self, tie: Tie) -> None:
        a, b = (self._end(body) for body in (tie.a, tie.b))
        if tie.kind == "weld":
            ends = (a, self._pose(tie.R_a, tie.p_a), b, self._pose(tie.R_b, tie.p_b))
            self.plant.AddWeldConstraint(*ends)
            return
        if tie.kind == "rod":
            self.plant.AddDistanceConstraint(a, tie.p_a, b, tie.p_b, tie.length)
            return
        for p_a, p_b in tie.points():
            self.plant.AddBallConstraint(a, p_a, b, p_b)

    def _strut(self, strut: Strut) -> None:
        """A compliant row, which is implicit, where it is damped; otherwise a force element."""
        ends = self._end(strut.a), strut.p_a, self._end(strut.b), strut.p_b
        law = strut.length, strut.stiffness, strut.damping
        if strut.damping:
            self.plant.AddDistanceConstraint(*ends, *law)
        else:
            self.plant.AddForceElement(self.tree.LinearSpringDamper(*ends, *law))

    def _end(self, body: int) -> Any:
        if body:
            return self.bodies[body]
        if self.ground is None:
            ball = self.tree.SpatialInertia(
                1.0, np.zeros(3), self.tree.UnitInertia.SolidSphere(0.1)
            )
            self.ground = self.plant.AddRigidBody("ground", ball)
            self.plant.WeldFrames(self.plant.world_frame(), self.ground.body_frame())
        return self.ground

    def reset(self) -> None:
        """Go back to the start."""
        plant, context, made = self.plant, self.context, self.problem
        context.SetTime(0.0)
        q, v = made.q, made.v
        if made.floating:
            quat = library("pydrake.common.eigen_geometry").Quaternion(np.roll(q[3:7], 1))
            pose = self.math.RigidTransform(quat, q[:3])
            plant.SetFreeBodyPose(context, self.bodies[1], pose)
            twist = library("pydrake.multibody.math").SpatialVelocity(v[:3], v[3:6])
            plant.SetFreeBodySpatialVelocity(context, self.bodies[1], twist)
            q, v = q[7:], v[6:]
        positions, rates = plant.GetPositions(context), plant.GetVelocities(context)
        for joint, x, rate in zip(self.joints, q, v, strict=True):
            positions[joint.position_start()] = x
            rates[joint.velocity_start()] = rate
        plant.SetPositions(context, positions)
        plant.SetVelocities(context, rates)
        self.done = 0
        self.simulator.Initialize()

    def call(self, steps: int) -> None:
        """A Python call a step."""
        advance, dt, done = self.simulator.AdvanceTo, self.dt, self.done
        for k in range(done + 1, done + steps + 1):
            advance(k * dt)
        self.done = done + steps

    def loop(self, steps: int) -> None:
        """Many steps in one call."""
        self.done += steps
        self.simulator.AdvanceTo(self.done * self.dt)

    def state(self) -> tuple[Array, Array]:
        """q and v now."""
        plant, context = self.plant, self.context
        positions, rates = plant.GetPositions(context), plant.GetVelocities(context)
        q = positions[[joint.position_start() for joint in self.joints]]
        v = rates[[joint.velocity_start() for joint in self.joints]]
        if self.problem.floating:
            pose = plant.EvalBodyPoseInWorld(context, self.bodies[1])
            twist = plant.EvalBodySpatialVelocityInWorld(context, self.bodies[1])
            quat = Rotation.from_matrix(pose.rotation().matrix()).as_quat()
            q = np.concatenate([pose.translation(), quat, q])
            v = np.concatenate([twist.rotational(), twist.translational(), v])
        return q, v
