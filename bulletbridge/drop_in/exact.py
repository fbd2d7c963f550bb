"""Bodies that we advance alone, in a world whose other bodies Bullet steps."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pybullet

from bulletbridge.bullet.contact_finder import StrangerError
from bulletbridge.bullet.coordinates import quat_product
from bulletbridge.bullet.reader import BulletBodies, read_bullet
from bulletbridge.bullet.worlds import gravity, link_ids, readable
from bulletbridge.comparison.window.overlay import Mark, marks_of
from bulletbridge.constraints.joints import Coupling, Frame, LoopJoint
from bulletbridge.drop_in.actions import AT_FIRST, DEFAULT_DAMPING, Actions, Motor
from bulletbridge.drop_in.forces import Pull, State, state_of_pull
from bulletbridge.drop_in.group import ALONE, Group, GroupMemory, named
from bulletbridge.drop_in.loops import Loop, frame_on
from bulletbridge.errors import BulletBridgeError, StepError
from bulletbridge.inequalities.motors import ALONG, DRIVEN
from bulletbridge.mechanism.frames import frame_with_z
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.numerics.records import Array
from bulletbridge.system.evaluation import Reaction

if TYPE_CHECKING:
    from scipy.spatial.transform import Rotation

SPHERICAL_IMPULSE = 1000.0
"""Impulse [N m s] that Bullet's motors of spherical joints have at first."""
UPRIGHT = Motor(position_gain=0.2, orientation=(0.0, 0.0, 0.0, 1.0))
"""Motor of a spherical joint at first."""
CENTRE = (0.0, 0.0, 0.0)
UNTURNED = (0.0, 0.0, 0.0, 1.0)


class ContactTold(NamedTuple):
    """What ``getContactPoints`` tells of a contact.

    Attributes:
        point: Its entries up to the distance.
        force: (3,) on the first body [N].
    """

    point: tuple[Any, ...]
    force: Array


class BulletsOwnError(StepError):
    """Bodies cannot be stepped exactly: something acts on them that only Bullet has."""


class ExactGroup(Group):
    """A group that Bullet does not move: everything that acts on it is part of our step.

    Motors, limits, contacts and constraints with force limits are solved together where the other
    loops stay closed.

    Args:
        bodies: Bullet's ids.
        loops: The exact constraints among them.
        others: Constraints on them that are Bullet's own.
        actions: What the program does to bodies.
        client: Physics client.

    Raises:
        BulletBridgeError: The bodies or constraints cannot be modelled.
    """

    whole = True

    def __init__(
        self,
        bodies: Iterable[int],
        loops: list[Loop],
        others: list[Loop],
        actions: Actions,
        client: int,
    ) -> None:

        self._actions, self._others = actions, others
        self._commands: dict[tuple[int, int], Motor] = {}  # that the motors have
        self._commanded = -1  # when they were given them
        self._aimed: dict[tuple[int, int], Motor] = {}  # of spherical joints, which are on
        super().__init__(bodies, loops, client)
        self.system.gravity = gravity(client)
        self._scale_friction()
        self._frames: dict[tuple[int, int], Frame] = {}  # inertial frames of links
        self._axes: dict[tuple[int, int], Rotation] = {}  # their axes
        self._reactions: dict[str, Reaction] = {}  # of the last step, once asked for
        self._before: Array | None = None  # (nq + nv + 1) before the step, if it may be undone
        self._told: list[ContactTold] | None = []  # contacts, likewise
        self._pushed = False  # whether anything but motors acted in the last step
        self._exerted: (
            dict[int, dict[int, tuple[float, ...]]] | None
        ) = {}  # of the last step, once asked for

    def forget_friction(self) -> None:
        """Note that something may rub otherwise than it did."""
        super().forget_friction()
        self._scale_friction()

    def change(self, loop: Loop, moved: bool) -> bool:
        """Note that a loop was changed; whether the bodies must be read again."""
        old = self._loops.get(loop.number)
        super().change(loop, moved)
        if old is None or old.max_force == loop.max_force:
            return False
        if old.max_force is None or loop.max_force is None:
            return True
        self.system.set_max_force(loop.name, loop.max_force)
        return False

    def recall(self, memory: GroupMemory) -> bool:
        """Go on from a memory; False where it is that of other bodies, constraints or frames."""
        if not super().recall(memory):
            return False
        self._commands.clear()
        self._commanded = -1  # the motors go by their last commands, as Bullet's do
        for _, name, limit in self._limited:
            self.system.set_max_force(name, limit)
        return True

    def _settings(self) -> tuple[Any, ...]:
        """What the program may have changed since, which restoring a state does not put back."""
        return *super()._settings(), self._actions.erp

    def before_step(self, may_undo: bool) -> None:
        """Make the step, unseen.

        Args:
            may_undo: Whether ``undo`` may be called before ``after_step``.

        Raises:
            BulletsOwnError: The bodies need what exact steps do not have; nothing was done.
            StepError: The step cannot be finished.
        """
        self._refuse_constraints()
        self._set_motors()
        for place, motor in self._aimed.items():
            self._aim(place, motor)
        system = self.system
        if self._disturbed:
            self._follow_bases()
            self._rebase_gears()
            system.filter(assemble=True)
            system.forget()
            self._disturbed = False
        if self._moved or self._moving or self._bases_due:
            self._drive()
        self._before = system.snapshot() if may_undo else None
        if self._actions.pushing or self._pushed:
            self._pushed = self._actions.pushing
            system.tau[:] = self._forces()
        self._exerted = self._told = None
        try:
            system.step(write=False)
        except StrangerError:
            raise
        except BulletBridgeError as error:
            self._disturbed = True
            raise StepError(f"exact mode of {named(self.bodies)}: {error}") from None

    def after_step(self, found: list[float]) -> int:
        """Show our state in place of Bullet's."""
        self._forget_states()
        self.system.write()
        return ALONE

    def undo(self) -> None:
        """Take back the step; what it found to start from stays, for it is to be made again."""
        assert self._before is not None
        self.system.take_back(self._before)

    def _forget_states(self) -> None:
        super()._forget_states()
        self._reactions = {}

    def _find_state(self, loop: Loop) -> State:
        """Reactions at the state, in Bullet's axes and signs; multipliers where it has none."""
        if loop.number not in self._models:
            return super()._find_state(loop)
        self._reactions = self._reactions or self.system.reactions()
        reaction, model = self._reactions[loop.name], self._models[loop.number]
        if not isinstance(model, LoopJoint):
            return tuple(reaction.multipliers.tolist())
        R = self.system.kinematics().point(model.b).R_W @ frame_with_z(model.axis)
        return state_of_pull(loop, Pull(reaction.force, reaction.torque, R))

    def motor_forces(self, body: int) -> Mapping[int, tuple[float, ...]]:
        """What a body's motors that are on exerted in the last step [N m or N], by joint.

        Of spherical joints three, about the child's inertial axes, as Bullet tells them.
        """
        if self._exerted is None:
            motors, self._exerted = self.system.motors, {}
            forces = dict(zip(motors.names, motors.forces.tolist(), strict=True))
            commands = self._actions.motors
            for place, name in self._joints.items():
                if name in forces and commands.get(place, AT_FIRST).on:
                    told = (forces[name],)
                elif place in self._aimed:
                    torque = [forces[f"{name}/{axis}"] for axis in ALONG]
                    told = tuple(self._inertial_axes(place).apply(torque, inverse=True).tolist())
                else:
                    continue
                self._exerted.setdefault(place[0], {})[place[1]] = told
        return self._exerted.get(body, {})

    def contact_points(self) -> list[ContactTold]:
        """Contacts of the last step, with their mean forces over the step; none once it is undone.

        As Bullet would tell them: of the two the body that is older comes first.
        """
        if self._told is None:
            self._told = []
            contacts = self.system.contacts()
            places = self._world.contact_places(self.system.contact_points)
            for contact, ((body, other, link, other_link), at) in zip(
                contacts, places, strict=True
            ):
                gap = contact.predicted_gap
                normal, force = contact.normal, contact.force
                on_other = tuple((np.array(at) - gap * normal).tolist())
                a, b = (body, link, at, 1.0), (other, other_link, on_other, -1.0)
                first, second = (a, b) if (body, link) <= (other, other_link) else (b, a)
                toward = tuple((first[3] * normal).tolist())
                told = first[0], second[0], first[1], second[1], first[2], second[2], toward, gap
                self._told.append(ContactTold((0, *told), first[3] * force))
        return self._told

    def marks(self) -> list[Mark]:
        """What a window shows of the loops: gaps and reactions."""
        return marks_of(self.system)

    def _read(self, names: Mapping[str, int]) -> tuple[BulletBodies, Mechanism]:
        """The bodies with the damping that Bullet applies to them."""
        world = read_bullet(readable(dict(names)), self.client, link_damping=1.0)
        mechanism, places = world.mechanism, link_ids(dict(names), self.client)
        owner = {mechanism.links[name].body: body for name, (body, _) in places.items()}
        efforts, axes = mechanism.efforts.copy(), mechanism.axes.copy()
        for effort in efforts:
            body = owner[int(effort["body"])]
            damping = self._actions.damping.get(body, (DEFAULT_DAMPING, DEFAULT_DAMPING))
            effort["linear"], effort["angular"] = damping
        joints = dict(mechanism.joints)  # fixed ones are not among them
        for place, damping in self._actions.joint_damping.items():
            name = self._joints.get(place, "")
            if name in joints:
                axes["damping"][joints[name].v] = damping
        for place, (lower, upper) in self._actions.limits.items():
            name = self._joints.get(place, "")
            if name in joints:
                joints[name] = replace(joints[name], lower=lower, upper=upper)
        return world, replace(mechanism, efforts=efforts, axes=axes, joints=joints)

    def _model(self, loop: Loop) -> LoopJoint | Coupling:
        """A constraint of Bullet as ours; with a force limit it is pulled where its frame is now.

        Gears without an erp then hold the rate; with one Bullet takes the share of that share.
        """
        model = super()._model(loop)
        if loop.max_force is None:
            return model
        if isinstance(model, Coupling):
            return replace(model, max_force=loop.max_force, erp=loop.erp * self._actions.erp)
        return replace(model, max_force=loop.max_force, erp=self._actions.erp, motion=None)

    def _scale_friction(self) -> None:
        """Let friction differ by direction where the program said so."""
        for (body, link), factors in self._actions.anisotropy.items():
            self._world.scale_friction(body, link, factors)

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
                torque = self._inertial_axes((body, joint)).apply(torque)
            tau[part] += torque
        for place, spring in self._actions.springs.items():
            joint = mechanism.joints.get(self._joints.get(place, ""))
            if joint is not None and joint.kind in DRIVEN:
                position, rate = float(system.q[joint.q][0]), float(system.v[joint.v][0])
                tau[joint.v] += spring.torque(position, rate)
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

    def _inertial_axes(self, place: tuple[int, int]) -> "Rotation":
        """Inertial axes of a link in the link, for a body and a link."""
        from scipy.spatial.transform import Rotation

        if place not in self._axes:
            info = pybullet.getDynamicsInfo(*place, physicsClientId=self.client)
            self._axes[place] = Rotation.from_quat(info[4])
        return self._axes[place]

    def _set_motors(self) -> None:
        """Give the motors their last commands.

        Raises:
            BulletsOwnError: One was given a torque that only Bullet knows.
        """
        motors, joints = self._actions.motors, self.system.mechanism.joints
        if self._commanded == self._actions.commands:
            return
        for place, name in self._joints.items():
            motor = motors.get(place, AT_FIRST)
            if name not in joints or motor == self._commands.get(place):
                continue
            if motor.torque_of:
                raise BulletsOwnError(f"the joint '{name}' has {motor.torque_of}")
            if joints[name].kind == "spherical":
                self._aimed.pop(place, None)
                if motor.on:
                    self._aimed[place] = motor if motor.orientation else UPRIGHT
                else:
                    for axis in ALONG:
                        self.system.motors.off(f"{name}/{axis}")
            elif not motor.on:
                self.system.motors.off(name)
            else:
                self._set_motor(name, motor)
            self._commands[place] = motor
        self._commanded = self._actions.commands

    def _set_motor(self, name: str, motor: Motor) -> None:
        self.system.motors.set(
            name,
            force=1.0 / self.system.dt if motor.force is None else motor.force,
            velocity=motor.velocity,
            position=motor.position,
            velocity_gain=motor.velocity_gain,
            position_gain=motor.position_gain,
            max_velocity=motor.fastest,
        )

    def _aim(self, place: tuple[int, int], motor: Motor) -> None:
        """Let a spherical joint's motor ask for the rates that Bullet's asks for.

        A share, gain times the engine's erp, of the Euler angles from here to the target, in the
        child's inertial axes (btMultiBodySphericalJointMotor): neither its velocity nor its
        velocity gain counts.
        """
        here = pybullet.getJointStateMultiDof(*place, physicsClientId=self.client)[0]
        x, y, z, w = here
        way = pybullet.getEulerFromQuaternion(quat_product((-x, -y, -z, w), motor.orientation))
        dt = self.system.dt
        rates = self._inertial_axes(place).apply(way) * (
            motor.position_gain * self._actions.erp / dt
        )
        force = SPHERICAL_IMPULSE / dt if motor.force is None else motor.force
        for axis, rate in zip(ALONG, rates.tolist(), strict=True):
            self.system.motors.set(f"{self._joints[place]}/{axis}", force=force, velocity=rate)

    def _refuse_constraints(self) -> None:
        for loop in self._others:
            raise BulletsOwnError(f"{loop.name} is {loop.reason}")
