"""Exudyn in redundant coordinates: free bodies with joints between them."""

from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from bulletbridge.bench.peers.base import Stepped, library
from bulletbridge.bench.peers.exudyn import Exudyn
from bulletbridge.constraints.joints import Frame
from bulletbridge.errors import UnsupportedError
from bulletbridge.mechanism.records import FREE, PRISMATIC
from bulletbridge.numerics.records import Array
from bulletbridge.system.system import System

REVOLUTE_ROWS = [1, 1, 1, 1, 1, 0]


class ExudynBodies(Exudyn):
    """The same solvers on Euler parameters; for many bodies with ``linear`` sparse.

    Angles are read from poses, and followed over turns from one reading to the next.
    """

    def _tree(self) -> None:
        made = self.problem
        inertia: Any = library("exudyn.utilities").RigidBodyInertia
        tree = System(made.mechanism)
        tree.set_state(made.q, made.v)
        kinematics, self.sensors = tree.kinematics(), []
        self.objects: list[Any] = [self.system.AddObject(self.items.ObjectGround())]
        for k, body in enumerate(made.mechanism.bodies[1:], start=1):
            point = kinematics.point(Frame(f"body{k}"))
            self.objects.append(
                self.system.CreateRigidBody(
                    referencePosition=point.p_W.tolist(),
                    referenceRotationMatrix=point.R_W,
                    initialVelocity=(point.J @ made.v).tolist(),
                    initialAngularVelocity=(point.J_angular @ made.v).tolist(),
                    inertia=inertia(float(body["mass"]), body["J"], body["com"], True),
                    gravity=made.mechanism.gravity.tolist(),
                )
            )
            if body["joint"] != FREE:
                self._joint(k)
        self.start: Any = None
        self.angles = made.q.copy()

    def _joint(self, k: int) -> None:
        body = self.problem.mechanism.bodies[k]
        if body["joint"] == PRISMATIC:
            raise UnsupportedError("no prismatic joints in redundant coordinates here")
        R, axis = np.array(body["R"]), self.problem.mechanism.axes[body["v"]]
        ends = [(int(body["parent"]), np.array(body["p"])), (k, np.zeros(3))]
        markers = [self._marker(*end, 0) for end in ends]
        turned = {"rotationMarker0": R, "rotationMarker1": np.eye(3)}
        self.system.AddObject(
            self.items.ObjectJointGeneric(
                markerNumbers=markers, constrainedAxes=REVOLUTE_ROWS, **turned
            )
        )
        if axis["stiffness"] or axis["damping"] or axis["torque"]:
            self.system.AddObject(
                self.items.ObjectConnectorTorsionalSpringDamper(
                    markerNumbers=markers,
                    stiffness=float(axis["stiffness"]),
                    damping=float(axis["damping"]),
                    offset=float(axis["rest"]),
                    torque=-float(axis["torque"]),
                    **turned,
                )
            )

    def _marker(self, body: int, p: Array, ground: int) -> int:
        on = self.objects[body]
        return self.system.AddMarker(
            self.items.MarkerBodyRigid(bodyNumber=on, localPosition=p.tolist())
        )

    def reset(self) -> None:
        """Go back to the start."""
        data, where = self.system.systemData, self.library.ConfigurationType
        if self.start is None:
            self.start = data.GetSystemState(where.Initial)
        for place in (where.Initial, where.Current):
            data.SetSystemState(self.start, place)
        self.angles, self.done = self.problem.q.copy(), 0

    def record(self, steps: int, every: int) -> tuple[Array, Array, Array]:
        """States every so many steps, each from a call of its own."""
        return Stepped.record(self, steps, every)

    def state(self) -> tuple[Array, Array]:
        """q and v now."""
        kinds = self.library.OutputVariableType
        q, v = self.angles.copy(), np.zeros(self.problem.mechanism.nv)
        R, spins = [np.eye(3)], [np.zeros(3)]
        for number in self.objects[1:]:
            R.append(np.reshape(self._output(number, kinds.RotationMatrix), (3, 3)))
            spins.append(self._output(number, kinds.AngularVelocity))
        for k, body in enumerate(self.problem.mechanism.bodies[1:], start=1):
            first, rate = int(body["q"]), int(body["v"])
            if body["joint"] == FREE:
                q[:3] = self._output(self.objects[k], kinds.Position)
                quat = Rotation.from_matrix(R[k]).as_quat()
                q[3:7] = quat if quat @ self.angles[3:7] > 0.0 else -quat
                v[:6] = [*spins[k], *self._output(self.objects[k], kinds.Velocity)]
                continue
            parent = int(body["parent"])
            turn = body["R"].T @ R[parent].T @ R[k]
            angle = np.arctan2(turn[1, 0], turn[0, 0])
            turns = np.rint((self.angles[first] - angle) / (2.0 * np.pi))
            q[first] = angle + 2.0 * np.pi * turns
            v[rate] = R[k][:, 2] @ (spins[k] - spins[parent])
        self.angles = q.copy()
        return q, v

    def _output(self, number: Any, kind: Any) -> Array:
        return np.array(self.system.GetObjectOutputBody(number, kind, localPosition=[0, 0, 0]))
