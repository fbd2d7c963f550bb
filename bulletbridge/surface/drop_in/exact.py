"""Bodies that we advance alone, in a world whose other bodies Bullet steps."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np
import pybullet
from scipy.spatial.transform import Rotation

from bulletbridge.constraints.loop import Frame, LoopJoint
from bulletbridge.errors import BulletBridgeError, StepError
from bulletbridge.mechanism.bullet import BulletBodies, read_bullet
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.numerics.records import Array
from bulletbridge.surface.drop_in.actions import DEFAULT_DAMPING, Actions
from bulletbridge.surface.drop_in.forces import POINTS, UNKNOWN, State
from bulletbridge.surface.drop_in.group import Group
from bulletbridge.surface.drop_in.loops import Loop, frame_on
from bulletbridge.surface.overlay import Mark, marks_of
from bulletbridge.surface.worlds import gravity, link_ids, readable

CENTRE = (0.0, 0.0, 0.0)
UNTURNED = (0.0, 0.0, 0.0, 1.0)


class ExactGroup(Group):
    """A group that Bullet does not move: joint torques, external forces and damping act on it.

    Motors, limits, contacts, force limits and soft gears are not part of an exact step; where they
    would act, the step is refused.

    Args:
        bodies: Bullet's ids.
        loops: The exact constraints among them.
        others: Constraints on them that are Bullet's own.
        actions: What the program does to bodies.
        client: Physics client.

    Raises:
        BulletBridgeError: The bodies or constraints cannot be modelled.
    """

    def __init__(
        self,
        bodies: Iterable[int],
        loops: list[Loop],
        others: list[Loop],
        actions: Actions,
        client: int,
    ) -> None:
        self._actions, self._others = actions, others
        super().__init__(bodies, loops, client)
        self.system.gravity = gravity(client)
        self._frames: dict[tuple[int, int], Frame] = {}  # inertial frames of links
        self._limits = self._joint_limits()
        self._collides = [body for body in self.bodies if has_shapes(body, client)]
        self._before = self.system.q, self.system.v, self.system.t

    def before_step(self) -> None:
        """Make the step, unseen.

        Raises:
            StepError: The bodies need what exact steps do not have, or the step cannot be finished.
        """
        self._refuse_motors()
        self._refuse_constraints()
        self._refuse_contacts()
        if self._moved or self._moving:
            self._drive()
        system = self.system
        if self._disturbed:
            self._rebase_gears()
            system.filter(assemble=True)
            self._disturbed = False
        self._before = system.q, system.v, system.t
        system.tau[:] = self._forces()
        try:
            system.step(write=False)
        except BulletBridgeError as error:
            self._disturbed = True
            raise StepError(f"exact mode of {self._named()}: {error}") from None
        self._refuse_crossed_limits()

    def after_step(self) -> None:
        """Show our state in place of Bullet's."""
        self.system.write()

    def undo(self) -> None:
        """Take back the step."""
        self.system.set_state(*self._before)

    def state_of(self, loop: Loop) -> State:
        """Reactions at the state, in Bullet's axes and signs; multipliers where it has none."""
        reaction, model = self.system.reactions()[loop.name], self._models[loop.number]
        if loop.kind in UNKNOWN or not isinstance(model, LoopJoint):
            return tuple(reaction.multipliers.tolist())
        if loop.kind in POINTS:
            return tuple((-reaction.force).tolist())
        R = self.system.kinematics().point(model.b).R_W
        return (*reaction.force.tolist(), *(R.T @ reaction.torque).tolist())

    def marks(self) -> list[Mark]:
        """What a window shows of the loops: gaps and reactions."""
        return marks_of(self.system)

    def _read(self, names: Mapping[str, int]) -> tuple[BulletBodies, Mechanism]:
        """The bodies with the damping that Bullet applies to them."""
        world = read_bullet(readable(dict(names)), self.client, link_damping=1.0)
        mechanism, places = world.mechanism, link_ids(dict(names), self.client)
        owner = {mechanism.links[name].body: body for name, (body, _) in places.items()}
        lumps, axes = mechanism.lumps.copy(), mechanism.axes.copy()
        for lump in lumps:
            body = owner[int(lump["body"])]
            damping = self._actions.damping.get(body, (DEFAULT_DAMPING, DEFAULT_DAMPING))
            lump["linear"], lump["angular"] = damping
        for place, damping in self._actions.joint_damping.items():
            if place in self._joints:
                axes["damping"][mechanism.joints[self._joints[place]].v] = damping
        return world, replace(mechanism, lumps=lumps, axes=axes)

    def _forces(self) -> Array:
        """Joint forces (nv,) of this step's torques and external forces."""
        system, mechanism = self.system, self.system.mechanism
        tau = np.zeros(mechanism.nv)
        for body, joint, torque in self._actions.torques:
            name = self._joints.get((body, joint))
            if name is None or name not in mechanism.joints:
                continue
            part = mechanism.joints[name].v
            if mechanism.joints[name].kind == "spherical":  # given in the child's inertial axes
                info = pybullet.getDynamicsInfo(body, joint, physicsClientId=self.client)
                torque = Rotation.from_quat(info[4]).apply(torque)
            tau[part] += torque
        pushes = [push for push in self._actions.pushes if push.body in self.bodies]
        kinematics = system.kinematics() if pushes else None
        for push in pushes:
            assert kinematics is not None
            frame = self._inertial_frame(push.body, push.link)
            point = kinematics.point(frame)
            vector = push.vector if push.in_world else point.R_W @ push.vector
            if push.point is None:
                tau += point.J_angular.T @ vector
            else:
                arm = push.point - point.p_W if push.in_world else point.R_W @ push.point
                tau += point.J.T @ vector + point.J_angular.T @ np.cross(arm, vector)
        return tau

    def _inertial_frame(self, body: int, link: int) -> Frame:
        place = body, link
        if place not in self._frames:
            self._frames[place] = frame_on(body, link, CENTRE, UNTURNED, self._links, self.client)
        return self._frames[place]

    def _refuse_motors(self) -> None:
        motors = self._actions.motors
        on = [
            self._joints[place]
            for place in self._limits
            if motors.get(place, True)  # Bullet's are on from the start
        ]
        if on:
            raise StepError(
                f"exact mode of {self._named()}: motors are not part of an exact step yet, and that"
                f" of '{on[0]}'{and_more(on)} is on. Switch it off with setJointMotorControl2(body,"
                f" joint, VELOCITY_CONTROL, force=0) and apply torques with TORQUE_CONTROL, or use"
                f" setBridgeMode('filter')"
            )

    def _refuse_constraints(self) -> None:
        limited = [loop for loop in self._loops.values() if loop.max_force is not None]
        for loop in (*limited, *self._others):
            why = loop.reason or f"a force limit of {loop.max_force:g} N"
            raise StepError(
                f"exact mode of {self._named()}: {loop.name} has what exact steps do not have yet:"
                f" {why}. Create it without, or use setBridgeMode('filter')"
            )

    def _refuse_contacts(self) -> None:
        if not self._collides:
            return
        pybullet.performCollisionDetection(physicsClientId=self.client)
        for body in self._collides:
            for contact in pybullet.getContactPoints(body, physicsClientId=self.client):
                if contact[8] <= 0.0:
                    _, _, other, link, other_link, *_ = contact
                    raise StepError(
                        f"exact mode of {self._named()}: link {link} of body {body} touches link"
                        f" {other_link} of body {other}; contacts are not part of an exact step"
                        f" yet. Keep them apart, switch the collision off with"
                        f" setCollisionFilterPair, or use setBridgeMode('filter')"
                    )

    def _refuse_crossed_limits(self) -> None:
        q, joints = self.system.q, self.system.mechanism.joints
        for place, (lower, upper) in self._limits.items():
            joint = joints[self._joints[place]]
            if joint.kind != "spherical" and not lower <= q[joint.q.start] <= upper:
                position = float(q[joint.q.start])
                self.undo()
                raise StepError(
                    f"exact mode of {self._named()}: joint '{joint.name}' would go to"
                    f" {position:.6g}, beyond its limits [{lower:g}, {upper:g}]; limits are not"
                    f" part of an exact step yet. Widen them with changeDynamics(jointLowerLimit=,"
                    f" jointUpperLimit=), or use setBridgeMode('filter')"
                )

    def _joint_limits(self) -> dict[tuple[int, int], tuple[float, float]]:
        """Limits of every movable joint by body and joint index."""
        found: dict[tuple[int, int], tuple[float, float]] = {}
        for place, name in self._joints.items():
            joint = self.system.mechanism.joints.get(name)
            if joint is not None:
                lower, upper = self._actions.limits.get(place, (joint.lower, joint.upper))
                found[place] = (lower, upper) if lower <= upper else (-np.inf, np.inf)
        return found

    def _named(self) -> str:
        bodies = sorted(self.bodies)
        return f"body {bodies[0]}" if len(bodies) == 1 else f"bodies {bodies}"


def has_shapes(body: int, client: int) -> bool:
    """Whether anything can touch the body."""
    links = range(-1, pybullet.getNumJoints(body, physicsClientId=client))
    return any(pybullet.getCollisionShapeData(body, k, physicsClientId=client) for k in links)


def and_more(names: list[str]) -> str:
    """How many there are beside the first."""
    return f" (and {len(names) - 1} more)" if len(names) > 1 else ""
