"""Bodies that we advance alone, in a world whose other bodies Bullet steps."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pybullet

from bulletbridge.bullet.constraints import (
    LET_MEET,
    NOBODY,
    CreatedConstraint,
    frame_on,
    in_numbers_of_today,
)
from bulletbridge.bullet.contact_finder import StrangerError
from bulletbridge.bullet.coordinates import Floats, matrix, quat_product, transposed, turned, unit
from bulletbridge.bullet.reader import BulletBodies, read_bullet
from bulletbridge.bullet.state import SingleBody
from bulletbridge.bullet.worlds import gravity, readable
from bulletbridge.constraints.joints import Coupling, Frame, LoopJoint
from bulletbridge.constraints.user import cross_matrix, rates_of
from bulletbridge.drop_in.actions import AT_FIRST, DEFAULT_DAMPING, Actions, MotorCommand
from bulletbridge.drop_in.face_to_face import tell_of_faces
from bulletbridge.drop_in.forces import Pull, State, state_of_pull
from bulletbridge.drop_in.joined_bodies import (
    ALONE,
    ROUNDED,
    JoinedBodies,
    JoinedMemory,
    Model,
    Place,
    Reading,
    named,
)
from bulletbridge.errors import AssemblyError, BulletBridgeError, StepError, warn_user
from bulletbridge.inequalities.motors import ALONG
from bulletbridge.mechanism.frames import frame_with_z, locate
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.numerics.records import Array, Matrix
from bulletbridge.system.contact_report import JointLoad
from bulletbridge.system.evaluation import Reaction
from bulletbridge.system.joint_reactions import JointReaction
from bulletbridge.viewer.overlay import Mark, marks_of

SPHERICAL_IMPULSE = 1000.0
"""Impulse [N m s] that Bullet's motors of spherical joints have at first."""
UPRIGHT = MotorCommand(position_gain=0.2, orientation=(0.0, 0.0, 0.0, 1.0))
"""Motor of a spherical joint at first."""
CENTRE = (0.0, 0.0, 0.0)
UNTURNED = (0.0, 0.0, 0.0, 1.0)
ZERO, NONE = np.zeros(3), (0.0, 0.0, 0.0)
NEAR = 0.1
"""Way [rad or m] of any coordinate up to which bodies that are reset before every step are led from
where the last one ended: impulses there are where the next ones are looked for first."""
FAR_IN_A_STEP = 1.5
"""Way [rad or m] that no joint goes in a step, and back in the next, which is simulated well."""
FEW_SWINGS = 4
"""Steps that turn all rates round, one after the other, which no motion does by itself."""


class ContactTold(NamedTuple):
    """What ``getContactPoints`` tells of a contact.

    Attributes:
        point: Its entries up to the distance.
        force: (3,) on the first body [N].
    """

    point: tuple[Any, ...]
    force: Array


class Sensor(NamedTuple):
    """Where Bullet's sensor of a joint is on the link that it carries, and how that moves.

    Attributes:
        R: (3, 3) inertial axes of the link in the link.
        com: (3,) its centre of mass there [m].
        force: (3,) unit force of a slider's motor, in the inertial axes; zero of others.
        moment: (3,) unit moment of a hinge's; zero of others.
    """

    R: Array
    com: Array
    force: Array
    moment: Array


def read_sensor(place: Place, client: int) -> Sensor:
    """Where a joint's sensor is."""
    info = pybullet.getDynamicsInfo(*place, physicsClientId=client)
    joint = pybullet.getJointInfo(*place, physicsClientId=client)
    kind, axis = joint[2], np.array(joint[13])
    force = axis if kind == pybullet.JOINT_PRISMATIC else ZERO
    moment = axis if kind == pybullet.JOINT_REVOLUTE else ZERO
    return Sensor(matrix(unit(info[4])), np.array(info[3]), force, moment)


class BulletsOwnError(StepError):
    """Bodies cannot be stepped exactly: something acts on them that only Bullet has."""


class FullReading(Reading):
    """Everything that acts on bodies, with what the program has said of it.

    Args:
        actions: What the program does to bodies.
        client: Physics client.
    """

    exact = True

    def __init__(self, actions: Actions, client: int) -> None:
        super().__init__(client)
        self._actions = actions

    def bodies(
        self, names: Mapping[str, int], joints: Mapping[Place, str]
    ) -> tuple[BulletBodies, Mechanism]:
        """Read bodies with the damping that Bullet applies to them."""
        world = read_bullet(readable(dict(names)), self._client, link_damping=1.0)
        mechanism = world.mechanism
        owner = {body: port.body_id for port in world.ports for body in port.carriers}
        efforts, axes = mechanism.efforts.copy(), mechanism.axes.copy()
        for effort in efforts:
            body = owner[int(effort["body"])]
            damping = self._actions.damping.get(body, (DEFAULT_DAMPING, DEFAULT_DAMPING))
            effort["linear"], effort["angular"] = damping
        moving = dict(mechanism.joints)  # fixed ones are not among them
        for place, damping in self._actions.joint_damping.items():
            name = joints.get(place, "")
            if name in moving:
                axes["damping"][moving[name].v] = damping
        for place, (lower, upper) in self._actions.limits.items():
            name = joints.get(place, "")
            if name in moving:
                moving[name] = replace(moving[name], lower=lower, upper=upper)
        return world, replace(mechanism, efforts=efforts, axes=axes, joints=moving)

    def constraint(self, loop: CreatedConstraint, model: Model) -> Model:
        """With its force limit.

        Gears without an erp then hold the rate; with one Bullet takes the share of that share,
        of which more than all would overshoot.
        """
        if loop.max_force is None:
            return model
        share = self._actions.erp * (loop.erp if isinstance(model, Coupling) else 1.0)
        return replace(model, max_force=loop.max_force, erp=min(share, 1.0))


PushedLink: TypeAlias = tuple[Place, Floats, Floats, Floats]
"""A body and link, where on it [m], force [N] and torque [N m], world axes."""


class ExactMemory(NamedTuple):
    """What the next steps of an exact group go by."""

    joined: JoinedMemory
    erp: float
    pushes: Sequence[PushedLink] | None  # of the last step; None before one
    led: bool  # whether the last step began where resets had put the bodies
    commands: Mapping[Place, MotorCommand]  # that the motors had
    aimed: Mapping[Place, MotorCommand]  # of spherical joints


class ExactGroup:
    """A group that Bullet does not move: everything that acts on it is part of our step.

    Motors, limits, contacts and constraints with force limits are solved together where the other
    loops stay closed.

    Args:
        bodies: Bullet's ids.
        loops: The exact constraints among them.
        others: Constraints on them that are Bullet's own.
        actions: What the program does to bodies.
        client: Physics client.

    Attributes:
        alone: The next step as one call that returns whether it failed, with the state before it;
            in place of ``before_step`` as long as nobody does or asks anything. None where the
            group has more to do.
        joined: Bodies and constraints.
        system: Their system.

    Raises:
        BulletBridgeError: The bodies or constraints cannot be modelled.
    """

    exact = True

    def __init__(
        self,
        bodies: Iterable[int],
        loops: list[CreatedConstraint],
        others: list[CreatedConstraint],
        actions: Actions,
        client: int,
    ) -> None:
        self._client, self._actions, self._others = client, actions, others
        self._commands: dict[Place, MotorCommand] = {}  # that the motors have
        self._commanded = -1  # when they were given them
        self._aimed: dict[Place, MotorCommand] = {}  # of spherical joints, which are on
        self._on: tuple[int, Mapping[Place, int]] = (-1, {})  # as ``_motors_on`` found them, when
        self.joined = JoinedBodies(bodies, loops, client, FullReading(actions, client))
        self.system, self._joints = self.joined.system, self.joined.joints
        self._parts = self.joined.parts
        self.system.gravity = gravity(client)
        self._scale_friction()
        self.joined.world.heed(actions.filters)
        self._single = self.joined.world.single
        # whether neighbours were looked at that may keep each other from turning
        self._has_looked = not (loops and self.joined.has_shapes)
        self._frames: dict[Place, tuple[int, Matrix, Floats]] = {}  # inertial ones of links
        self._rates_of: dict[int, Array] = {}  # what moves a body
        self._axes: dict[Place, Matrix] = {}  # their axes
        self._has_sliders = any(loop.kind == pybullet.JOINT_PRISMATIC for loop in loops)
        self._start: Array = self.system.q  # of the last step, if there are any
        self._state: Array = self._start  # where lone steps lead
        self._led = False  # whether resets came before the last step
        self._reactions: dict[str, Reaction] = {}  # of the last step, once asked for
        # (nq + nv + 1) before the step, if it may be undone
        self._before: Array | list[float] | None = None
        self._rates: Array = np.zeros(self.system.mechanism.nv)  # after torques acted in a step
        self._swings = 0  # such steps, each of which has turned rates round that were far too high
        self._told: list[ContactTold] | None = []  # contacts, likewise
        self._pushed = False  # whether anything but motors acted in the last step
        self._pushes: Sequence[PushedLink] | None = None  # of the last step
        self._sensed: Mapping[str, JointReaction] | None = {}  # of the last step, once asked for
        self._measured: dict[Place, tuple[float, ...]] = {}  # of that, as Bullet tells it
        self._loads: dict[str, JointLoad] = {}  # along joints, likewise
        self._sensors: dict[Place, Sensor] = {}
        self.alone: Callable[[tuple[()]], int] | None = None
        self._answered = False  # whether forces of the last step were asked for
        self._exerted: (
            dict[int, dict[int, tuple[float, ...]]] | None
        ) = {}  # of the last step, once asked for

    def disband(self) -> None:
        """Nothing in Bullet is other than the program has it."""

    def disturb(self) -> None:
        """Note that somebody has put the bodies elsewhere."""
        self.joined.disturb()
        self.alone, self._reactions = None, {}

    def begin_anew(self) -> bool:
        """Go on as bodies that were just read; False where they must be read for that."""
        if not self.joined.begin_anew():
            return False
        self._go_on_from(None, led=False)
        self._commands.clear()
        return True

    def move_base(self, body: int) -> None:
        """Note that somebody has put a base elsewhere that does not move by itself."""
        self.joined.move_base(body)
        self.alone = None

    def forget_friction(self) -> None:
        """Note that something may rub otherwise than it did, or be cut off."""
        self.alone = None
        self.joined.world.forget_friction()
        self._scale_friction()

    def change(self, loop: CreatedConstraint, moved: bool) -> bool:
        """Note that a loop was changed; whether the bodies must be read again."""
        old, self.alone = self.joined.loops.get(loop.number), None
        self.joined.change(loop, moved)
        if old is None or old.max_force == loop.max_force:
            return False
        if loop.number not in self.joined.models:
            return False
        if old.max_force is None or loop.max_force is None:
            return True
        self.system.set_max_force(loop.name, loop.max_force)
        return False

    def memory(self) -> ExactMemory:
        """What its next steps go by."""
        commands = dict(self._commands), dict(self._aimed)
        led = self._led
        return ExactMemory(self.joined.memory(), self._actions.erp, self._pushes, led, *commands)

    def recall(self, memory: object) -> bool:
        """Go on from a memory; False where it is that of other bodies, constraints or frames."""
        if not isinstance(memory, ExactMemory) or memory.erp != self._actions.erp:
            return False
        if not self.joined.recall(memory.joined):
            return False
        if not memory.joined.disturbed:
            self.system.write()  # what is joined to others starts from what Bullet makes of that
        if self.joined.has_shapes:
            self.joined.world.detector()  # which is told how far bases go that were moved since
        self._go_on_from(memory.pushes, memory.led)
        self._commands, self._aimed = dict(memory.commands), dict(memory.aimed)
        for name, (_, limit) in self.joined.limited.items():
            self.system.set_max_force(name, limit)
        return True

    def _go_on_from(self, pushes: Sequence[PushedLink] | None, led: bool) -> None:
        """Take what the last step, or none, has left."""
        self.alone, self._reactions, self._pushes, self._led = None, {}, pushes, led
        self._pushed = True  # the forces that were put back were those of the step before
        self._exerted = self._told = self._sensed = None
        if pushes is None:
            self._exerted, self._told, self._sensed = {}, [], {}
        self._commanded = -1  # the motors go by their last commands, as Bullet's do

    def before_step(self, may_undo: bool) -> None:
        """Make the step, unseen.

        Args:
            may_undo: Whether ``undo`` may be called before ``after_step``.

        Raises:
            BulletsOwnError: The bodies need what exact steps do not have; nothing was done.
            AssemblyError: Constraints that are new cannot be closed.
            StepError: The step cannot be finished.

        Warns:
            BulletBridgeWarning: Neighbours lie face to face where a point joins them; or joints
                swing to and fro, or are faster than Bullet would let them be.
        """
        self.alone, resets = None, self._must_get_ready and self._get_ready()
        system, belts = self.system, self._actions.belts
        may_undo = may_undo or self._parts > 1 or bool(belts)
        self._before = start = system.snapshot() if may_undo else None
        self._exerted = self._told = self._sensed = None
        try:
            self._step()
            if belts:
                self._refuse_belts()
        except BulletBridgeError as error:
            if start is not None:
                system.take_back(start)
            if isinstance(error, (StrangerError, BulletsOwnError)):
                raise
            self.joined.disturbed, self._led = True, False
            what = in_numbers_of_today(str(error), self.joined.loops.values())
            what += self.joined.moved_bases(self._actions.shifted)
            if self.joined.leads_frames:
                what += f"; {LET_MEET}"
            raise StepError(f"exact mode of {named(self.joined.bodies)}: {what}") from None
        self._led = resets
        if self._pushed:
            self._watch_swings()
        if self._actions.cut_off:
            self._tell_uncut()

    @property
    def _must_get_ready(self) -> bool:
        """Whether anybody has done or asked something since the last step, or aims in each."""
        joined = self.joined
        due = joined.disturbed or joined.must_be_driven or self._pushed or self._aimed
        return bool(due or self._actions.asks_since(self._commanded))

    def _get_ready(self) -> bool:
        """Do all that was asked for; whether bodies were put elsewhere."""
        for loop in self._others:
            raise BulletsOwnError(f"{loop.name} is {loop.reason}")
        self._set_motors()
        for place, motor in self._aimed.items():
            self._aim(place, motor)
        system, resets = self.system, self.joined.disturbed
        if resets:
            before = system.q
            self.joined.follow_bases()
            self.joined.rebase_gears()
            self.joined.note_beginning()
            self._close()
            if not self._has_looked:
                self._has_looked = True
                tell_of_faces(self.joined, self._client)
            way = float(np.abs(system.q - before).max(initial=0.0))
            system.forget(impulses=not (self._led and way <= NEAR))
            self.joined.disturbed = False
        if self.joined.must_be_driven:
            self.joined.drive(steady=True)
        if self._actions.pushing or self._pushed:
            self._pushed = self._actions.pushing
            system.tau[:] = self._forces()
        self._pushes = self._pushes or ()
        return resets

    def _close(self) -> None:
        """Close the loops, from where somebody has put the bodies.

        Raises:
            AssemblyError: They cannot be closed; it says what a program can do about that.
        """
        try:
            self.system.filter(assemble=True, write=False)
        except AssemblyError as error:
            with suppress(AssemblyError):
                if self.joined.close_before_gears(set()):
                    return
            what = in_numbers_of_today(str(error), self.joined.loops.values())
            what = what.split(";")[0]  # the remedy there is for our own API
            bodies, why = named(self.joined.bodies), self.joined.moved_bases(self._actions.shifted)
            raise AssemblyError(f"exact mode of {bodies}: {what}{why}; {LET_MEET}") from None

    def _watch_swings(self) -> None:
        """Look whether what the program does to joints makes them swing to and fro at every step.

        Warns:
            BulletBridgeWarning: It does, by more than a step can follow; said once.
        """
        before, rates = self._rates, self.system.compiled()[0].v.copy()
        self._rates = rates
        if rates.dot(before) >= 0.0:  # as in nearly every step
            self._swings = min(self._swings, 0)  # below zero it has been said
            return
        dt = self._parts * self.system.dt
        if float(np.abs(rates).max()) * dt < FAR_IN_A_STEP:
            self._swings = min(self._swings, 0)
            return
        self._swings += self._swings >= 0
        if self._swings < FEW_SWINGS:
            return
        self._swings = -1
        worst = int(np.argmax(np.abs(rates)))
        joints = self.system.mechanism.joints.items()
        name = next((n for n, joint in joints if joint.v.start <= worst < joint.v.stop), "")
        warn_user(
            f"joint '{name}' of {named(self.joined.bodies)} goes to and fro by"
            f" {abs(float(rates[worst])) * dt:.3g} rad or m a step: torques or forces of the"
            " program, which act unchanged for a step, are too strong for what they move, as where"
            f" gains on rates exceed inertia over {dt:.3g} s; give smaller gains or steps, or"
            " POSITION_CONTROL and VELOCITY_CONTROL, whose motors know where a step ends"
        )

    def _tell_uncut(self) -> None:
        """Say which joint is faster than ``maxJointVelocity``; once for each body.

        Rates that are cut off one by one, as Bullet does, would open loops.
        """
        rates, mechanism = self.system.compiled()[0].v, self.system.mechanism
        owner = {at: port.body_id for port in self.joined.world.ports for at in port.carriers}
        for name, joint in mechanism.joints.items():
            body = owner.get(int(mechanism.axes[joint.v.start]["body"]), NOBODY)
            most = self._actions.cut_off.get(body, math.inf)
            rate = float(np.abs(rates[joint.v]).max())
            if rate > (1.0 + ROUNDED) * most:
                del self._actions.cut_off[body]
                warn_user(
                    f"joint '{name}' of body {body} goes at {rate:.3g} rad/s or m/s, beyond its"
                    f" maxJointVelocity of {most:.3g}: Bullet cuts each rate off at the end of its"
                    " step, which would open loops, and exact mode does not; give its motors a"
                    " smaller targetVelocity, or a maxVelocity"
                )

    def _step(self) -> None:
        """Make the parts of a step; motors of spherical joints aim anew in each, as Bullet's do."""
        self._advance()
        for _ in range(1, self._parts):
            if self._aimed:
                self.system.write()
                for place, motor in self._aimed.items():
                    self._aim(place, motor)
            self._advance()

    def _advance(self) -> None:
        """One step of the system; of sliders it is noted where it begins, where they pull."""
        if self._has_sliders:
            self._start = self.system.q
        self.system.step(write=False)

    def after_step(self, found: list[float]) -> int:
        """Show our state in place of Bullet's."""
        if self.alone is None or self._answered:
            self.joined.finish_step()
            self._exerted = self._sensed = None
            self._reactions, self._answered = {}, False
        watches = self.alone is None and self.joined.watches
        if self.alone is None:
            notes_more = self._parts > 1 or self._led or self._has_sliders or watches
            if not (notes_more or self._actions.cut_off or self._must_get_ready):
                self.alone = self.system.lone_step
                self._state = self.system.compiled()[0].state
        if self.alone is None:
            self.system.write()
        else:
            self.joined.world.check(looks=False)
            self.joined.world.put_numbers(self.lone_state())
        if watches:
            self.joined.tell_open()
        if self._led or self.joined.leads_frames:
            self.joined.tell_unreached()
        return ALONE

    @property
    def plain(self) -> SingleBody | None:
        """The body that a step by ``alone`` leads to ``lone_state``, if nothing was asked since."""
        return None if self.alone is None or self._answered else self._single

    def lone_state(self) -> list[float]:
        """Where ``alone`` has led, q, v and t, which is to be shown; ``undo`` goes back there."""
        self._before = numbers = self._state.tolist()
        return numbers

    def undo(self) -> None:
        """Take back the step; what it found to start from stays, for it is to be made again."""
        assert self._before is not None
        self.system.take_back(np.array(self._before))

    def state_of(self, loop: CreatedConstraint) -> State:
        """Reactions at the state, in Bullet's axes and signs; multipliers where it has none."""
        self._answered = True
        return self.joined.state_of(loop, self._find_state)

    def _find_state(self, loop: CreatedConstraint) -> State:
        if loop.number not in self.joined.models:
            return self.joined.native(loop).state
        self._reactions = self._reactions or self.system.reactions()
        reaction, model = self._reactions[loop.name], self.joined.models[loop.number]
        if not isinstance(model, LoopJoint):
            return tuple(reaction.multipliers.tolist())
        slides = loop.kind == pybullet.JOINT_PRISMATIC
        solver, _ = self.system.compiled()
        poses, _ = solver.places_at(self._start if slides else solver.q)
        body, R, point = self._place_of(model.b, poses)
        moment = reaction.torque
        if slides and body == 0:
            _, _, other = self._place_of(model.a, poses)
            moment = moment + np.cross(point - other, reaction.force)
        return state_of_pull(loop, Pull(reaction.force, moment, R @ frame_with_z(model.axis)))

    def _place_of(self, end: Frame, poses: np.ndarray) -> tuple[int, Array, Array]:
        """Body that a loop's frame is on, and the frame's axes and origin in the world."""
        body, R, p = locate(self.system.mechanism, end.link, end.xyz, end.rpy)
        pose = poses[body]
        return body, pose["R"] @ R, pose["origin"] + pose["p"] + pose["R"] @ p

    def motor_forces(self, body: int) -> Mapping[int, tuple[float, ...]]:
        """What a body's motors that are on exerted in the last step [N m or N], by joint.

        Of spherical joints three, about the child's inertial axes, as Bullet tells them.
        """
        self._answered = True
        if self._exerted is None:
            self._exerted = {}
            told = (self.system.motors.forces / self._parts).tolist()
            for place, at in self._motors_on().items():
                self._exerted.setdefault(place[0], {})[place[1]] = (told[at],)
            for place in self._aimed:
                at = self.system.motors.names.index(f"{self._joints[place]}/{ALONG[0]}")
                torque = turned(transposed(self._inertial_axes(place)), told[at : at + len(ALONG)])
                self._exerted.setdefault(place[0], {})[place[1]] = tuple(torque)
        return self._exerted.get(body, {})

    def _motors_on(self) -> Mapping[Place, int]:
        """Numbers of motors of one axis that are on, by joint; found again after commands."""
        commands, joints = self._actions.motors, self._joints.items()
        version, found = self._on
        if version != self._actions.commands:
            number = {name: n for n, name in enumerate(self.system.motors.names)}
            on = ((place, name) for place, name in joints if commands.get(place, AT_FIRST).on)
            found = {place: number[name] for place, name in on if name in number}
            self._on = self._actions.commands, found
        return found

    def joint_reactions(self, body: int, joints: Iterable[int]) -> dict[int, tuple[float, ...]]:
        """What joints of a body bore in the last step, as Bullet tells it (6,); none before one.

        Force and moment on the child about its centre of mass, in its inertial axes, without what
        motor, limit and gears of the joint do along its axis: to Bullet they are no part of it.
        """
        self._answered = True
        if self._sensed is None:
            pushes = [
                (self._frame_of(place, at), np.array(force), np.array(torque))
                for place, at, force, torque in self._pushes or ()
            ]
            self._sensed, self._measured = self.system.joint_reactions(pushes), {}
            self._loads = self.system.joint_loads
        if not self._sensed:
            return {}
        found = dict[int, tuple[float, ...]]()
        for joint in joints:
            place = body, joint
            if place not in self._measured:
                self._measured[place] = self._as_bullet(place, self._sensed[self._joints[place]])
            found[joint] = self._measured[place]
        return found

    def _as_bullet(self, place: Place, reaction: JointReaction) -> tuple[float, ...]:
        if place not in self._sensors:
            self._sensors[place] = read_sensor(place, self._client)
        R, com, along_force, along_moment = self._sensors[place]
        six = reaction.in_link
        force, torque = six[:3], six[3:]
        force, moment = R.T @ force, R.T @ (torque - com @ cross_matrix(force))
        along = self._along(place, reaction.name)
        if len(along) == 3:
            moment -= along
        elif along[0] != 0.0:
            force -= along[0] * along_force
            moment -= along[0] * along_moment
        return *force.tolist(), *moment.tolist()

    def _along(self, place: Place, name: str) -> tuple[float, ...]:
        """What motor, friction, limit and gears exert along a joint [N m or N]; of balls three."""
        if place in self._aimed:
            return self.motor_forces(place[0])[place[1]]
        load = self._loads.get(name)
        total = 0.0 if load is None else load.motor + load.friction + load.limit
        gears = [
            (gear, gear.coefficients[name])
            for gear in self.joined.models.values()
            if isinstance(gear, Coupling) and name in gear.coefficients
        ]
        if gears:
            self._reactions = self._reactions or self.system.reactions()
            for gear, factor in gears:
                total += factor * float(self._reactions[gear.name].multipliers.sum())
        return (total,)

    def _frame_of(self, place: Place, at: Floats) -> Frame:
        """A point of a link (3,), given in its inertial frame, as a frame on the link [m]."""
        x, y, z = at
        return frame_on(*place, (x, y, z), UNTURNED, self.joined.links, self._client)

    def contact_points(self) -> list[ContactTold]:
        """Contacts of the last step, with their mean forces over the step; none once it is undone.

        As Bullet would tell them: of the two the body that is older comes first.
        """
        if self._told is None:
            self._told = []
            contacts = self.system.contacts()
            places = self.joined.world.contact_places(self.system.contact_points)
            for contact, ((body, other, link, other_link), at) in zip(
                contacts, places, strict=True
            ):
                gap = contact.predicted_gap
                normal, force = contact.normal, contact.force / self._parts
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

    def _scale_friction(self) -> None:
        """Let friction differ by direction where the program said so."""
        for (body, link), factors in self._actions.anisotropy.items():
            self.joined.world.scale_friction(body, link, factors)

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
                torque = turned(self._inertial_axes((body, joint)), torque.tolist())
            tau[part] += torque
        for place, spring in self._actions.springs.items():
            joint = mechanism.joints.get(self._joints.get(place, ""))
            if joint is not None and joint.is_single:
                position, rate = float(system.q[joint.q][0]), float(system.v[joint.v][0])
                tau[joint.v] += spring.torque(position, rate)
        pushes = [push for push in self._actions.pushes if push.body in self.joined.bodies]
        self._pushes = acting = list[PushedLink]()
        if not pushes:
            return tau
        poses, axes = system.compiled()[0].places_at(system.q)
        wrenches = dict[int, list[float]]()  # moments about origins and forces, by body
        for push in pushes:
            place = push.body, push.link
            body, link_axes, centre = self._inertial_frame(place)
            pose = poses[body]
            R, origin, start = pose["R"].tolist(), pose["origin"].tolist(), pose["p"].tolist()
            vector, at, local = push.vector, summed(start, turned(R, centre)), NONE
            if not push.in_world:
                vector = turned(R, turned(link_axes, vector))
            if push.point is not None and push.in_world:
                off = [x - y - z for x, y, z in zip(push.point, origin, at, strict=True)]
                local = turned(transposed(link_axes), turned(transposed(R), off))
                at = summed(at, off)
            elif push.point is not None:
                local = push.point
                at = summed(at, turned(R, turned(link_axes, local)))
            force, torque = (NONE, vector) if push.point is None else (vector, NONE)
            acting.append((place, local, force, torque))
            wrench = (*summed(torque, crossed(at, force)), *force)
            before = wrenches.get(body)
            wrenches[body] = [*(wrench if before is None else summed(before, wrench))]
        moved = np.array([self._moved_by(body) for body in wrenches])
        given = np.array([*wrenches.values()])
        tau += (moved * (given[:, :3] @ axes["w"].T + given[:, 3:] @ axes["v"].T)).sum(axis=0)
        return tau

    def _moved_by(self, body: int) -> Array:
        """Which rates (nv,) move a body: ones, and zeros."""
        if body not in self._rates_of:
            mechanism = self.system.mechanism
            self._rates_of[body] = np.zeros(mechanism.nv)
            self._rates_of[body][rates_of(mechanism, body)] = 1.0
        return self._rates_of[body]

    def _inertial_frame(self, place: Place) -> tuple[int, Matrix, Floats]:
        """Body of a link, and axes and origin of the link's inertial frame on it."""
        if place not in self._frames:
            links = self.joined.links
            frame = frame_on(*place, CENTRE, UNTURNED, links, self._client)
            body, R, p = locate(self.system.mechanism, frame.link, frame.xyz, frame.rpy)
            self._frames[place] = body, R.tolist(), p.tolist()
        return self._frames[place]

    def _inertial_axes(self, place: Place) -> Matrix:
        """Inertial axes of a link in the link, for a body and a link."""
        if place not in self._axes:
            info = pybullet.getDynamicsInfo(*place, physicsClientId=self._client)
            x, y, z = matrix(unit(info[4])).tolist()
            self._axes[place] = tuple(x), tuple(y), tuple(z)
        return self._axes[place]

    def _set_motors(self) -> None:
        """Give the motors their last commands.

        Raises:
            BulletsOwnError: One was given a torque that only Bullet knows.
        """
        motors, joints = self._actions.motors, self.system.mechanism.joints
        if self._commanded == self._actions.commands:
            return
        known = self._commands
        for place, name in self._joints.items():
            motor, old = motors.get(place, AT_FIRST), known.get(place)
            if motor is old or name not in joints or motor == old:
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
            known[place] = motor
        self._commanded = self._actions.commands

    def _set_motor(self, name: str, motor: MotorCommand) -> None:
        self.system.motors.set(
            name,
            force=1.0 / self.system.dt if motor.force is None else self._parts * motor.force,
            velocity=motor.velocity,
            position=motor.position,
            velocity_gain=motor.velocity_gain,
            position_gain=motor.position_gain,
            max_velocity=motor.fastest,
        )

    def _aim(self, place: tuple[int, int], motor: MotorCommand) -> None:
        """Let a spherical joint's motor ask for the rates that Bullet's asks for.

        A share, gain times the engine's erp, of the Euler angles from here to the target, in the
        child's inertial axes (btMultiBodySphericalJointMotor): neither its velocity nor its
        velocity gain counts.
        """
        here = pybullet.getJointStateMultiDof(*place, physicsClientId=self._client)[0]
        x, y, z, w = here
        way = pybullet.getEulerFromQuaternion(quat_product((-x, -y, -z, w), motor.orientation))
        dt = self.system.dt
        share = motor.position_gain * self._actions.erp / dt
        rates = [share * x for x in turned(self._inertial_axes(place), way)]
        force = SPHERICAL_IMPULSE / dt if motor.force is None else self._parts * motor.force
        self.system.motors.turn(self._joints[place], rates, force)

    def _refuse_belts(self) -> None:
        """Refuse the step that was made if what it touched goes at a rate that it does not know."""
        for told in self.contact_points():
            _, body, other, link, other_link, _, _, _, gap = told.point
            if gap >= 0.0 and not told.force.any():
                continue
            for place, touched in (((body, link), other), ((other, other_link), body)):
                if place[0] not in self._actions.belts:
                    continue
                belt = f"body {place[0]}, which stands still and has a velocity,"
                if place in self.joined.links:
                    name = self.joined.links[place].split("/")[-1]
                    raise BulletsOwnError(f"{belt} leads its link '{name}' against body {touched}")
                raise BulletsOwnError(f"{belt} moves what it touches")


def summed(a: Floats, b: Floats) -> Floats:
    """Sum of two vectors."""
    return tuple([x + y for x, y in zip(a, b, strict=True)])


def crossed(a: Floats, b: Floats) -> Floats:
    """Cross product; in numbers, since a step takes few and arrays cost more than they hold."""
    (ax, ay, az), (bx, by, bz) = a, b
    return ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx
