"""Pinocchio: ``constraintDynamics`` or ``lcaba`` with integrators in Python, as it has none."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from bulletbridge.bench.peers.base import Stepped, library, require_joints
from bulletbridge.bench.problem import Problem
from bulletbridge.errors import UnsupportedError
from bulletbridge.mechanism.records import FREE, PRISMATIC
from bulletbridge.numerics.records import Array


class Pinocchio(Stepped):
    """Proximal constrained dynamics.

    Args:
        made: The problem.
        dt: Step [s].
        algorithm: ``constraintDynamics`` or ``lcaba``.
        scheme: ``semi`` (semi-implicit Euler) or ``rk4``; on SE(3) for a free base.
        gain: Baumgarte's kp [1/s²], with kd twice its root; ``per_step`` in units of 1 / dt².
        mu, iterations: Of the proximal solver.
    """

    def __init__(
        self,
        made: Problem,
        dt: float,
        algorithm: str = "constraintDynamics",
        scheme: str = "semi",
        gain: float = 0.0,
        per_step: float = 0.0,
        mu: float = 1e-8,
        iterations: int = 10,
    ) -> None:
        super().__init__(made, dt)
        require_joints(made, "this adapter")
        self.library: Any = library("pinocchio")
        self.scheme, self.base = scheme, 6 if made.floating else 0
        self.model, joints = self._tree()
        ends = self._ends(joints)
        data = self.model.createData()
        models, datas = self._loops(joints, gain + per_step / dt**2)
        settings = self.library.ProximalSettings(1e-14, 1e-14, mu, iterations)
        if algorithm == "lcaba":
            self.library.computeJointMinimalOrdering(self.model, data, models)
        else:
            self.library.initConstraintDynamics(self.model, data, models, datas)
        solve: Callable[..., Array] = getattr(self.library, algorithm)
        axes = made.mechanism.axes
        acting = [axes[key] for key in ("damping", "stiffness", "torque")]
        self.passive = not (made.struts or any(map(np.any, acting)))
        none = np.zeros(made.mechanism.nv)

        def free(q: Array, v: Array) -> Array:
            return solve(self.model, data, q, v, none, models, datas, settings)

        damping, stiffness, rest = axes["damping"], axes["stiffness"], axes["rest"]
        torque, skip = axes["torque"] + stiffness * rest, self.base
        angles = slice(skip + 1 if skip else 0, None)

        def loaded(q: Array, v: Array) -> Array:
            tau = torque - damping * v
            if ends:
                tau += self._pushed(data, ends, q, v)
            tau[skip:] -= stiffness[skip:] * q[angles]
            return solve(self.model, data, q, v, tau, models, datas, settings)

        self.f = free if self.passive else loaded
        self.reset()

    def _tree(self) -> tuple[Any, list[int]]:
        """Pinocchio's model of the tree, and the number of its joint for each body."""
        pin = self.library
        model = pin.Model()
        model.gravity.linear = np.array(self.problem.mechanism.gravity)
        joints = [0]
        for k, body in enumerate(self.problem.mechanism.bodies[1:], start=1):
            place = pin.SE3(np.array(body["R"]), np.array(body["p"]))
            if body["joint"] == FREE:
                kind, place = pin.JointModelFreeFlyer(), pin.SE3.Identity()
            else:
                kind = pin.JointModelPZ() if body["joint"] == PRISMATIC else pin.JointModelRZ()
            joints.append(model.addJoint(joints[int(body["parent"])], kind, place, f"joint{k}"))
            inertia = pin.Inertia(float(body["mass"]), np.array(body["com"]), np.array(body["J"]))
            model.appendBodyToJoint(joints[-1], inertia, pin.SE3.Identity())
        return model, joints

    def _ends(self, joints: list[int]) -> list[list[int]]:
        """Frames at the ends of each spring."""
        pin = self.library
        return [
            [
                self.model.addFrame(
                    pin.Frame(
                        f"{strut.name}{body}",
                        joints[body],
                        pin.SE3(np.eye(3), p),
                        pin.FrameType.OP_FRAME,
                    )
                )
                for body, p in ((strut.a, strut.p_a), (strut.b, strut.p_b))
            ]
            for strut in self.problem.struts
        ]

    def _pushed(self, data: Any, ends: list[list[int]], q: Array, v: Array) -> Array:
        """Forces (nv,) of springs, from the Jacobians of their ends, as users write them."""
        pin, tau = self.library, np.zeros(len(v))
        pin.computeJointJacobians(self.model, data, q)
        pin.updateFramePlacements(self.model, data)
        for strut, (a, b) in zip(self.problem.struts, ends, strict=True):
            apart = data.oMf[b].translation - data.oMf[a].translation
            distance = np.sqrt(apart @ apart)
            along = [
                (apart / distance)
                @ pin.getFrameJacobian(
                    self.model, data, frame, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
                )[:3]
                for frame in (a, b)
            ]
            row = along[1] - along[0]
            tau -= row * (
                strut.stiffness * (distance - strut.length) + strut.damping * float(row @ v)
            )
        return tau

    def _loops(self, joints: list[int], gain: float) -> tuple[Any, Any]:
        pin = self.library
        if any(tie.kind == "rod" for tie in self.problem.ties):
            raise UnsupportedError("Pinocchio has no distance constraint")
        models, datas = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
        for tie in self.problem.ties:
            weld = tie.kind == "weld"
            kind = pin.ContactType.CONTACT_6D if weld else pin.ContactType.CONTACT_3D
            for p_a, p_b in tie.points():
                a, b = pin.SE3(tie.R_a, p_a), pin.SE3(tie.R_b, p_b)
                ends = (joints[tie.a], a, joints[tie.b], b)
                made = pin.RigidConstraintModel(kind, self.model, *ends, pin.ReferenceFrame.LOCAL)
                parameters = made.m_baumgarte_parameters
                parameters.Kp, parameters.Kd = gain, 2.0 * np.sqrt(gain)
                made.m_baumgarte_parameters = parameters
                models.append(made)
        for made in models:
            datas.append(made.createData())
        return models, datas

    def reset(self) -> None:
        """Go back to the start."""
        self.q, self.v = self.problem.q.copy(), self.problem.v.copy()
        if self.base:
            turn = Rotation.from_quat(self.q[3:7]).inv()
            self.v[:3], self.v[3:6] = (
                turn.apply(self.problem.v[3:6]),
                turn.apply(self.problem.v[:3]),
            )

    def call(self, steps: int) -> None:
        """Steps in Python, as users write them."""
        q, v, dt, f = self.q, self.v, self.dt, self.f
        if self.scheme == "rk4" and self.base:
            move = self.library.integrate
            for _ in range(steps):
                q, v = _rk4_on_group(f, lambda q, d: move(self.model, q, d), q, v, dt)
        elif self.scheme == "rk4":
            for _ in range(steps):
                q, v = _rk4(f, q, v, dt)
        elif self.base:
            move = self.library.integrate
            for _ in range(steps):
                v = v + dt * f(q, v)
                q = move(self.model, q, dt * v)
        else:
            for _ in range(steps):
                v = v + dt * f(q, v)
                q = q + dt * v
        self.q, self.v = q, v

    def state(self) -> tuple[Array, Array]:
        """q and v now."""
        return self.q.copy(), self._rates(self.v)

    def acceleration(self) -> Array | None:
        """At the start; a free base's in the world, without the turning of its own axes."""
        self.reset()
        a = np.array(self.f(self.q, self.v))
        if self.base:
            a[:3] += np.cross(self.v[3:6], self.v[:3])
        return self._rates(a)

    def _rates(self, v: Array) -> Array:
        if not self.base:
            return v.copy()
        turn = Rotation.from_quat(self.q[3:7])
        return np.concatenate([turn.apply(v[3:6]), turn.apply(v[:3]), v[6:]])


Acceleration = Callable[[Array, Array], Array]


def _rk4(f: Acceleration, q: Array, v: Array, dt: float) -> tuple[Array, Array]:
    h = 0.5 * dt
    a1 = f(q, v)
    v2 = v + h * a1
    a2 = f(q + h * v, v2)
    v3 = v + h * a2
    a3 = f(q + h * v2, v3)
    v4 = v + dt * a3
    a4 = f(q + dt * v3, v4)
    return q + dt / 6 * (v + 2 * (v2 + v3) + v4), v + dt / 6 * (a1 + 2 * (a2 + a3) + a4)


def _rk4_on_group(
    f: Acceleration, move: Acceleration, q: Array, v: Array, dt: float
) -> tuple[Array, Array]:
    """Runge-Kutta of Munthe-Kaas, order 4."""
    h = 0.5 * dt
    a1 = f(q, v)
    u2, v2 = h * v, v + h * a1
    q2 = move(q, u2)
    a2, d2 = f(q2, v2), _inverse_dexp(u2, v2)
    u3, v3 = h * d2, v + h * a2
    q3 = move(q, u3)
    a3, d3 = f(q3, v3), _inverse_dexp(u3, v3)
    u4, v4 = dt * d3, v + dt * a3
    q4 = move(q, u4)
    a4, d4 = f(q4, v4), _inverse_dexp(u4, v4)
    end = move(q, dt / 6 * (v + 2 * (d2 + d3) + d4))
    return end, v + dt / 6 * (a1 + 2 * (a2 + a3) + a4)


def _inverse_dexp(u: Array, w: Array) -> Array:
    """Rate of the chart u of a free base at the twist w, to the order that RK4 needs."""
    first = _bracket(u, w)
    rate = w.copy()
    rate[:6] += 0.5 * first + _bracket(u, first) / 12.0
    return rate


def _bracket(u: Array, w: Array) -> Array:
    """Lie bracket (6,) of body twists (linear, angular)."""
    (a, b, c), (x, y, z) = u[:3], u[3:6]
    (d, e, f), (p, q, r) = w[:3], w[3:6]
    return np.array(
        [
            y * f - z * e + b * r - c * q,
            z * d - x * f + c * p - a * r,
            x * e - y * d + a * q - b * p,
            y * r - z * q,
            z * p - x * r,
            x * q - y * p,
        ]
    )
