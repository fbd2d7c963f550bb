"""Queries about a constrained mechanism at a state: rank, gaps, reactions, kinematics."""

import numpy as np

from bulletbridge.constraints.joints import Frame
from bulletbridge.constraints.user import Kinematics
from bulletbridge.engine.workspace import Terms
from bulletbridge.formulations.equations import Dynamics
from bulletbridge.formulations.system_dynamics import Tree
from bulletbridge.numerics.records import Array
from bulletbridge.system.evaluation import (
    Evaluation,
    Reaction,
    SpringForce,
    evaluate,
    gap_vectors,
    reactions,
    spring_forces,
)
from bulletbridge.system.loop_axes import LoopAxisMotion, loop_axis_motion
from bulletbridge.system.state import ClosedState


class QueriedState(ClosedState):
    """A state that is asked about: accelerations, forces, gaps, energy, geometry."""

    def acceleration(self) -> Array:
        """Accelerations (nv,) at the state."""
        if self._decision is None:
            self._trim()
        return self._solver.acceleration()

    def reactions(self) -> dict[str, Reaction]:
        """What each constraint does at the state, by name."""
        vdot, by_name = self.acceleration(), self.decision.by_name
        return reactions(self._solver, by_name, self._q, self._v, self.t, vdot, self._solver.tau[0])

    def spring_forces(self) -> dict[str, SpringForce]:
        """Length or turn, rate and force of each force element at the state, by name."""
        return spring_forces(self._full, self._q, self._v, self.t)

    @property
    def dynamics(self) -> Dynamics:
        """The equations of motion at any state, for formulations and integrators."""
        if self._decision is None:
            self._trim()
        return Tree(self._solver)

    def terms(self) -> Terms:
        """M, h, g, J, g_t and gamma at the state, rows as kept."""
        return self._solver.terms(self._q, self._v, self.t)

    def evaluate(
        self, q: Array | None = None, v: Array | None = None, t: float | None = None
    ) -> Evaluation:
        """Gaps, energy and momentum of a state, the present one unless given.

        The state may come from any simulator; gaps are those of the rows as written.
        """
        q, v, t = (
            self._q if q is None else q,
            self._v if v is None else v,
            self.t if t is None else t,
        )
        return evaluate(self._full, self._solver, q, v, t)

    def gap_vectors(
        self, q: Array | None = None, t: float | None = None
    ) -> dict[str, tuple[Array, Array]]:
        """Origin of frame b (3,) [m] of each loop, and how far it is from its place (3,) [m].

        World axes, at the present state unless given; turns do not count. Couplings and users'
        rows have no place and are left out.
        """
        q, t = self._q if q is None else q, self.t if t is None else t
        return gap_vectors(self._full, q, self._v, t)

    def kinematics(self) -> Kinematics:
        """Frames, Jacobians and bias accelerations at the state."""
        terms = self.terms()
        return Kinematics(self.mechanism, terms.poses, terms.axes, self._q, self._v, self.t)

    def wrench(self, link: Frame, force: Array, torque: Array | None = None) -> Array:
        """Joint forces (nv,) of a force [N] and torque [N m], world axes, at a frame's origin.

        Add it to ``tau``.

        Raises:
            ModelError: The frame's link does not exist.
        """
        point = self.kinematics().point(link)
        moment = np.zeros(3) if torque is None else np.asarray(torque, float)
        return point.J.T @ np.asarray(force, float) + point.J_angular.T @ moment

    def loop_axes(self, name: str) -> LoopAxisMotion:
        """What loop joint ``name`` leaves free: positions, rates, and where forces along it act.

        Raises:
            ModelError: There is no such loop joint, or it is universal or driven.
        """
        return loop_axis_motion(self.constraints, name, self.kinematics())
