"""One Bullet client seen by this package: its constraints, its groups of bodies, its steps."""

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, get_args

import pybullet

from bulletbridge.bullet.constraints import (
    NOBODY,
    CreatedConstraint,
    all_but_child_frame,
    gear_parts,
    judged,
)
from bulletbridge.bullet.contact_finder import StrangerError
from bulletbridge.bullet.contacts import can_move
from bulletbridge.bullet.reader import read_together
from bulletbridge.bullet.shaped_bodies import Place, shaped_bodies
from bulletbridge.bullet.watched_calls import native_of, unwatch, watch
from bulletbridge.bullet.worlds import gravity, joint_ids, time_step
from bulletbridge.drop_in.actions import WEIGHT, Actions
from bulletbridge.drop_in.closing import Closing, Group
from bulletbridge.drop_in.exact import BulletsOwnError, ContactTold, ExactGroup, ExactMemory
from bulletbridge.drop_in.filtered import FilteredGroup, FilteredMemory
from bulletbridge.drop_in.joined_bodies import OPENS, named
from bulletbridge.drop_in.past_calls import (
    END,
    PAST,
    PastCall,
    is_led_here,
    past_call,
    what_is_past,
)
from bulletbridge.drop_in.registry import Registry
from bulletbridge.drop_in.settings import HOOKS, Mode
from bulletbridge.errors import AssemblyError, BulletBridgeError, CallError, warn_user
from bulletbridge.models.loaded_files import (
    followers_in,
    says_more,
    tell_of_loops_in,
    tell_of_loose,
)
from bulletbridge.viewer.overlay import Overlay, Scale

LONGEST_PUMP = 0.1
"""Simulated time [s] that real-time simulation makes up for at once."""
FIRST_IMPULSE = 500.0
"""Bullet's limit of a new constraint [N s]."""
STILL = (0.0, 0.0, 0.0)
Twist = tuple[Sequence[float], Sequence[float]]
"""Velocity of a base [m/s], and its rate of turn [rad/s]."""
NOTHING: Mapping[int, tuple[float, ...]] = {}
READ = WEIGHT | {"jointLowerLimit", "jointUpperLimit"}
DAMPING = {"linearDamping", "angularDamping", "jointDamping"}
"""What changeDynamics may change of a body that has been read; damping acts in Bullet's step, and
where that is ours."""


class LoadedRobot(NamedTuple):
    """What ``loadURDF`` was told of a body: its file, and the factor on its lengths."""

    path: Path
    scale: float


class Saved(NamedTuple):
    """What our steps went by when a state was saved: contacts of groups, and their memories.

    ``led``: Constraints that fixed bases had led by then. ``bullets``: Bodies that were to be exact
    and were left to Bullet. ``places``: Where bodies were looked at last.
    """

    met: set[tuple[int, int]]
    led: set[int]
    bullets: set[int]
    places: dict[int, tuple[Place, ...]]
    groups: list[FilteredMemory | ExactMemory]


class Session:
    """Watches constraints come and go, and closes those that can be.

    Bodies that constraints join, directly or through others, make up one group, which is read at
    the first step after something has changed.

    Attributes:
        client: Physics client.
        constraints: Its constraints.
        robots: Files of bodies that ``loadURDF`` has loaded since the client is known.
        search_path: Where Bullet looks for files besides the working directory.
    """

    def __init__(self, client: int) -> None:
        self.client = client
        self.constraints = Registry(client)
        self.robots: dict[int, LoadedRobot] = {}
        self.search_path = Path()
        self._untold: list[int] = []  # bodies whose file says more than Bullet reads
        # bodies to be read again
        self._stale = {b for loop in self.constraints.loops.values() for b in loop.bodies}
        # whether Bullet has gears that it has not made a step with: asked for the force of one
        # before, it ends the process
        self._unseen = any(
            loop.kind == pybullet.JOINT_GEAR for loop in self.constraints.loops.values()
        )
        self._vacant: dict[tuple[Any, ...], CreatedConstraint] = {}  # removed since the last step
        # whose place new constraints have taken, by these
        self._successors: dict[int, CreatedConstraint] = {}
        # frames that Bullet has elsewhere than where they were in the state that was restored
        self._unplaced = set[int]()
        self.mode: Mode = HOOKS.mode
        self.models_of_removed = False  # whether Bullet keeps dynamics models of removed bodies
        self.modelled: set[int] = set()  # bodies that Bullet has made a dynamics model of
        self.outdated: set[int] = set()  # and that have been changed since
        self.groups: dict[frozenset[int], Group] = {}
        self._group_of: dict[int, Group] = {}  # by body
        self._modes: dict[int, Mode] = {}  # of single bodies, where it was said
        self._bullets: set[int] = set()  # bodies that were to be exact and cannot
        self.actions = Actions()
        self._commands = -1  # as many as all groups have followed
        self._closing = Closing(client)
        self._around = shaped_bodies(client)
        self._met: set[tuple[int, int]] = set()  # bodies in contact with a group in exact mode
        self._saved: dict[int, Saved] = {}  # by state
        # what looks at Bullet's own steps, which are then made
        self.observers = set[tuple[Any, ...]]()
        self.sensors: set[tuple[int, int]] = set()  # joints whose reactions are measured
        self._passed: set[PastCall] = set()  # calls past us that may concern us yet
        self._told_past: set[str] = set()  # functions whose calls past us were told of
        self._alone = False  # whether nothing moves but what is stepped exactly
        self._counted = -1  # bodies in the world when that was looked at
        self._tells_contacts = False  # whether contacts of our last step are the newest
        self._overlay: Overlay | None = None
        self._gravity: tuple[float, ...] | None = None  # that all groups were told; None: not all
        self._dt = 0.0  # at least so much real time makes a step
        self._started = 0.0  # of real-time simulation, by the hooks' clock

    def note_robot(self, body: int, robot: LoadedRobot) -> None:
        """Note which file a body has come from."""
        self.robots[body] = robot
        if says_more(robot.path):
            self._untold.append(body)

    def _tell_of_loose_joints(self) -> None:
        """Warn of loops that a URDF has and nothing closes, and of joints that are to follow."""
        client, loops = self.client, self.constraints.loops.values()
        gears = [loop for loop in loops if loop.kind == pybullet.JOINT_GEAR]
        moved = {place for loop in gears for place in gear_parts(loop, client)}
        moved |= {place for place, motor in self.actions.motors.items() if motor.aims}
        untold, self._untold = self._untold, []
        for body in untold:
            try:
                places, path = joint_ids({"": body}, client), self.robots[body].path
                followers = followers_in(path)
            except (KeyError, BulletBridgeError, pybullet.error):  # gone, or no tree
                continue
            if not any(body in loop.bodies for loop in loops if loop not in gears):
                tell_of_loops_in(path)
            loose = (name for name in followers if places.get(name) not in moved)
            tell_of_loose(path, loose, f"coupleMimicJoints({body}) couples them")

    def native(self, name: str, given: dict[str, Any]) -> Any:
        """Call PyBullet's own function for this client."""
        return getattr(pybullet, name)(**given, physicsClientId=self.client)

    # what passes us by

    def pass_by(self, call: PastCall) -> None:
        """Note a call of PyBullet's own module, which we were not told of.

        Warns:
            BulletBridgeWarning: It concerns what we step; said once of each function.
        """
        name, _ = call
        if name in self._told_past:
            return
        concerns = self._concerns(call)
        may_yet = PAST[name].lasts and call not in self._passed
        if not (concerns or may_yet) or is_led_here(depth=4):
            return
        if concerns:
            self._tell_past(name)
        else:
            self._passed.add(call)

    def _tell_past(self, name: str) -> None:
        self._told_past.add(name)
        warn_user(what_is_past(name, self.client))

    def _concerns(self, call: PastCall) -> bool:
        """Whether a call has to do with what we step now."""
        name, of = call
        whom = PAST[name].whom
        if whom == "everyone":
            return "native" != self.mode or any(mode != "native" for mode in self._modes.values())
        if whom == "loops":
            return bool(self.groups) or any(map(self._closes, self.constraints.loops))
        if whom == "loop":
            return self._closes(of)
        if whom == "body" or of is not None:
            group = None if of is None else self._group_of.get(of)
            return group is not None and (whom == "body" or group.exact)
        return any(group.exact for group in self.groups.values())

    def _closes(self, number: int | None) -> bool:
        """Whether a constraint is closed by us, or is to be."""
        loop = None if number is None else self.constraints.loops.get(number)
        return loop is not None and loop.exact and self._mode_of(loop.bodies) != "native"

    # constraints

    def create(self, given: dict[str, Any]) -> int:
        """Create a constraint."""
        loop = self.constraints.create(given)
        self._unseen |= loop.kind == pybullet.JOINT_GEAR
        key = all_but_child_frame(loop, self.client) if self._vacant else None
        if key in self._vacant:
            self._successors[loop.number] = self._vacant.pop(key)
        else:
            self._stale.update(loop.bodies)
        return loop.number

    def gear_between(self, first: tuple[int, int], second: tuple[int, int]) -> int | None:
        """The gear, if there is one, between two joints by body and joint, in this order."""
        for loop in self.constraints.loops.values():
            if loop.kind == pybullet.JOINT_GEAR:
                if [*gear_parts(loop, self.client)] == [first, second]:
                    return loop.number
        return None

    def change(self, given: dict[str, Any]) -> Any:
        """Change a constraint."""
        answer, loop, moved, anew = self.constraints.change(given)
        if loop is None or loop.number in self._successors:
            return answer
        if anew:
            self._stale.update(loop.bodies)
        group = self._group_of.get(loop.bodies[0]) if loop.bodies else None
        if group is None:
            return answer
        leaps, place = False, given.get("jointChildPivot")
        if moved:
            self._unplaced.discard(loop.number)
            if place is not None and len(place) == 3:  # Bullet takes no note of others
                leaps = group.joined.frame_leaps(loop.number, place)
        if group.change(loop, moved) or leaps:
            self._stale |= group.joined.bodies
        return answer

    def remove(self, given: dict[str, Any]) -> None:
        """Remove a constraint."""
        number = given.get("userConstraintUniqueId", NOBODY)
        key = self._place_of(number)
        loop = self.constraints.remove(given)
        if loop is None:
            return
        if key is None or key in self._vacant:
            self._stale.update(loop.bodies)
        else:
            self._vacant[key] = self._successors.pop(number, loop)

    def _place_of(self, number: int) -> tuple[Any, ...] | None:
        """What another constraint must be like to take the place of one; None: it is no use."""
        loop = self.constraints.loops.get(number)
        known = None if loop is None else self._successors.get(number, loop)
        if loop is None or known is None or known.kind == pybullet.JOINT_GEAR:
            return None
        group = self._group_of.get(known.bodies[0]) if known.bodies else None
        if group is None or known.number not in group.joined.models:
            return None
        return all_but_child_frame(loop, self.client)

    def _settle(self) -> None:
        """Let constraints that came in place of others be these with a child frame that moved."""
        for old in self._vacant.values():
            self._stale.update(old.bodies)
        self._vacant.clear()
        successors, self._successors = self._successors, {}
        for number, old in successors.items():
            group, first = self._group_of[old.bodies[0]], NOBODY
            as_it_was = old.moving and self._stale.isdisjoint(group.joined.bodies)
            if as_it_was:
                first = old.number if old.first == NOBODY else old.first
            new = replace(self.constraints.loops[number], moving=True, first=first)
            if as_it_was:
                group.joined.succeed(old, new)
            self.constraints.loops[number] = new
            if as_it_was and new.slides:
                self._predict(new, by_bullet=False)
            if not as_it_was or group.change(new, moved=True):
                self._stale |= group.joined.bodies

    def loops(self) -> dict[int, CreatedConstraint]:
        """What became of each constraint, by its id."""
        self._regroup()
        for group in self.groups.values():
            self._note_open(group)
        return dict(self.constraints.loops)

    def _note_open(self, group: Group) -> None:
        """Note of constraints what was told of them."""
        for number in group.joined.opened:
            loop = self.constraints.loops.get(number)
            if loop is not None and OPENS not in loop.note:
                note = "; ".join(filter(None, (loop.note, OPENS)))
                self.constraints.loops[number] = replace(loop, note=note)

    def filtered(self, number: int, state: tuple[float, ...]) -> tuple[float, ...]:
        """Bullet's constraint forces with what the filter added in the last step."""
        loop = self.constraints.loops.get(number)
        if number in self._successors:
            return state
        if loop is not None and loop.exact and not self._stale & set(loop.bodies):
            for bodies, group in self.groups.items():
                if bodies & set(loop.bodies):
                    return group.state_of(loop)
        return state

    def motor_forces(self, body: int) -> Mapping[int, tuple[float, ...]]:
        """What motors of a body exerted in our last step [N m or N], by joint; else none."""
        group = self._group_of.get(body)
        if not isinstance(group, ExactGroup) or not self._stale.isdisjoint(group.joined.bodies):
            return {}
        return group.motor_forces(body)

    def joint_reactions(self, body: int) -> Mapping[int, tuple[float, ...]]:
        """What a body's joints with a sensor bore in our last step, by joint; else none."""
        joints = {joint for one, joint in self.sensors if one == body}
        group = self._group_of.get(body) if joints else None
        if not isinstance(group, ExactGroup) or not self._stale.isdisjoint(group.joined.bodies):
            return NOTHING
        return group.joint_reactions(body, joints)

    def contact_points(self) -> list[ContactTold] | None:
        """Contacts of our last step; None where those of Bullet's own detection are newer."""
        if not self._tells_contacts:
            return None
        return [
            told
            for group in self.groups.values()
            if isinstance(group, ExactGroup) and self._stale.isdisjoint(group.joined.bodies)
            for told in group.contact_points()
        ]

    def note_detection(self) -> None:
        """Note that Bullet has detected collisions."""
        self._tells_contacts = False

    # bodies

    def disturb(self, body: int | None) -> None:
        """Note that a body was put elsewhere."""
        group = None if body is None else self._group_of.get(body)
        if group is not None:
            group.disturb()

    def move_base(self, body: int) -> None:
        """Note that a base was put elsewhere; frames on one that is fixed move from now on."""
        group = self._group_of.get(body)
        if group is None or body not in group.joined.standing or body in self._stale:
            self.disturb(body)
            return
        _, before = group.joined.world.bases[body]
        self.actions.shifted.setdefault(body, before)
        for loop in [loop for loop in self.constraints.loops.values() if body in loop.bodies]:
            if loop.exact and not loop.moving and loop.kind != pybullet.JOINT_GEAR:
                self.constraints.loops[loop.number] = replace(loop, moving=True, by_base=True)
                self._stale |= group.joined.bodies
        group.move_base(body)
        now, _ = pybullet.getBasePositionAndOrientation(body, self.client)
        if group.joined.leaps(before[0], now):
            self._stale |= group.joined.bodies

    def note_belt(self, body: int) -> None:
        """Note whether a body that stands still has a velocity."""
        is_belt = pybullet.getDynamicsInfo(body, -1, self.client)[0] == 0.0 and any(
            any(part) for part in pybullet.getBaseVelocity(body, self.client)
        )
        belts = self.actions.belts
        if is_belt != (body in belts):
            (belts.add if is_belt else belts.discard)(body)
            self._counted = -1

    def save(self, number: int) -> None:
        """Keep what our steps go by, with a state of Bullet's."""
        self._settle()
        kept = [g.memory() for bodies, g in self.groups.items() if not bodies & self._stale]
        led = {n for n, loop in self.constraints.loops.items() if loop.by_base}
        places = self._around.places()
        self._saved[number] = Saved(set(self._met), led, set(self._bullets), places, kept)

    def forget_saved(self, number: int) -> None:
        """Forget a saved state."""
        self._saved.pop(number, None)

    def restore(self, number: int | None) -> None:
        """Go on as from a saved state; groups that it does not know start as if read there.

        A file, or a state that was saved past us, holds what Bullet knows, and none of them.
        """
        nothing = Saved(set(), set(), set(), {}, [])
        found = self._saved.get(NOBODY if number is None else number, nothing)
        met, led, bullets, places, kept = found
        self._stale |= self._bullets - bullets
        self._bullets &= bullets  # a mode that was set since is no part of a state
        for loop in list(self.constraints.loops.values()):
            leads = loop.number in led
            if loop.by_base != leads and loop.moving == loop.by_base:
                self.constraints.loops[loop.number] = replace(loop, moving=leads, by_base=leads)
                self._stale.update(loop.bodies)
        for pair in met ^ self._met:
            self._stale |= set(pair)
        self._met, self._gravity = set(met), None
        self.actions.shifted.clear()
        self._unplaced.clear()
        if kept:
            self._regroup()
        memories = {memory.joined.bodies: memory for memory in kept}
        for bodies, group in self.groups.items():
            memory = memories.get(bodies)
            known = group.begin_anew() if memory is None else group.recall(memory)
            if not known:
                self._stale |= bodies
            elif memory is not None:
                self._unplaced |= group.joined.unplaced
        self._around.stand(places)

    def remove_body(self, body: int) -> None:
        """Forget a body and its constraints, as Bullet does."""
        self._settle()
        for number in [n for n, loop in self.constraints.loops.items() if body in loop.bodies]:
            self._stale.update(self.constraints.loops.pop(number).bodies)
        self._stale.add(body)
        self._counted = -1
        self.models_of_removed |= body in self.modelled
        for bodies in (self.modelled, self.outdated, self._bullets):
            bodies.discard(body)
        self._met = {pair for pair in self._met if body not in pair}
        self.actions.forget(body)
        self.sensors = {sensor for sensor in self.sensors if sensor[0] != body}

    def change_dynamics(self, given: dict[str, Any]) -> None:
        """Note that a body is not what it was when it was read."""
        body, self._counted = given["bodyUniqueId"], -1
        changed = self.actions.change(given)
        if changed & READ:
            self._judge_again(body)
        for bodies, group in self.groups.items():
            if not changed <= READ | DAMPING:
                group.forget_friction()
            if body in bodies and changed & (READ | DAMPING if group.exact else READ):
                self._stale.add(body)
        if body in self.modelled and {"mass", "localInertiaDiagonal"} & set(given):
            self.outdated.add(body)
        if "mass" in given:
            if given["linkIndex"] < 0 and given["mass"] == 0.0 and self._is_ours(body):
                # it is to stand still: Bullet lets it drift on for ever as fast as it was
                pybullet.resetBaseVelocity(body, STILL, STILL, self.client)
            with suppress(pybullet.error):  # Bullet says nothing of bodies that are not there
                self.note_belt(body)

    def _is_ours(self, body: int) -> bool:
        """Whether a body is part of a loop that is closed by us."""
        loops = self.constraints.loops.values()
        joined = any(loop.exact and body in loop.bodies for loop in loops)
        return joined and self._mode_of({body}) != "native"

    def forget_filters(self) -> None:
        """Note that other links may collide than did."""
        for group in self.groups.values():
            group.joined.world.forget_filters()

    def set_erp(self, erp: float) -> None:
        """Take over how fast constraints with force limits are closed again."""
        self.actions.erp = erp
        self.read_all_again()

    def read_all_again(self) -> None:
        """Note that the world is not what it was."""
        self._dt = 0.0
        for group in self.groups:
            self._stale |= group
        self._judge_again()

    def _judge_again(self, body: int | None = None) -> None:
        """Try constraints anew that stayed Bullet's own, all or a body's: why may be no more."""
        for loop in [n for n in self.constraints.loops.values() if not n.exact]:
            if body is None or body in loop.bodies:
                self.constraints.loops[loop.number] = judged(loop)
                self._stale.update(loop.bodies)

    def clear(self) -> None:
        """Forget bodies and constraints, as resetSimulation does."""
        tables = self._successors, self._vacant, self.groups, self._group_of, self._modes
        noted = self._untold, self.sensors, self._met, self._bullets, self._stale, self._unplaced
        of_bodies = self.constraints.loops, self._saved, self.modelled, self.outdated
        for known in (*tables, *noted, *of_bodies):
            known.clear()
        self._alone, self._counted = False, -1
        EXACT.discard(self)
        self.models_of_removed = False
        self.actions = Actions()

    def set_gravity(self) -> None:
        """Take over the world's gravity, which programs set at every step to what it was."""
        now = gravity(self.client)
        if now != self._gravity:
            self._gravity = now
            for group in self.groups.values():
                group.system.gravity = now

    # time

    def step(self) -> Any:
        """``advance``, and what is to follow each step."""
        answer = self.advance()
        if self._overlay is not None and self._overlay.due:
            self._overlay.update(m for group in self.groups.values() for m in group.marks())
        for call in HOOKS.after_step:
            call(self)
        return answer

    def advance(self) -> Any:
        """Bullet's step, then all loops closed at position and velocity level.

        Raises:
            StepError: A step in exact mode cannot be finished; nothing was done.

        Warns:
            BulletBridgeWarning: Loops could not be closed near Bullet's state, which then stays; or
                bodies in exact mode need what exact steps do not have, and are filtered; or joints
                have ``<mimic>`` and follow nothing, or loops of a URDF are open.
        """
        if self._untold:
            self._tell_of_loose_joints()
        drifting = self._drifting_bases() if self.actions.belts else []
        try:
            if drifting:
                self._put_bases([(body, there, velocity) for body, _, there, velocity in drifting])
            while not self._prepare():
                pass
        except BaseException:
            self._put_bases([(body, here, velocity) for body, here, _, velocity in drifting])
            raise
        answer: Any = ()  # Bullet's, unless its solver is reported on
        self._tells_contacts = self in EXACT
        if not (EXACT and self._steps_alone()):
            self._tells_contacts &= self._alone  # Bullet's step only tells others of itself
            if self.actions.withheld:
                self.actions.tell()
            answer = native_of(pybullet.stepSimulation)(physicsClientId=self.client)
            self._unseen = False
            if drifting:
                self._put_bases([(body, there, velocity) for body, _, there, velocity in drifting])
        self._closing.finish_step(self.groups.values())
        self.actions.end_step()
        return answer

    def _drifting_bases(self) -> list[tuple[int, Place, Place, Twist]]:
        """Fixed bases that have a velocity and that constraints hold.

        Bullet's step would move them on after loops were closed to where they were: they are to be
        there before it, and after it. What hangs on them follows, as where a program puts them
        somewhere at every step.

        Returns:
            Bodies, where they are, where a step leads them, and their velocity.
        """
        found, dt = list[tuple[int, Place, Place, Twist]](), time_step(self.client)
        for body in self.actions.belts:
            if not self._is_ours(body):
                continue
            velocity = pybullet.getBaseVelocity(body, self.client)
            at, axes = pybullet.getBasePositionAndOrientation(body, self.client)
            place = [x + dt * u for x, u in zip(at, velocity[0], strict=True)]
            turn = pybullet.getQuaternionFromAxisAngle(velocity[1], dt * math.hypot(*velocity[1]))
            _, turned = pybullet.multiplyTransforms(STILL, turn, STILL, axes)
            found.append((body, (at, axes), (place, turned), velocity))
        return found

    def _put_bases(self, bases: Sequence[tuple[int, Place, Twist]]) -> None:
        """Put fixed bases at places, with their velocities, which friction on them feels."""
        for body, pose, velocity in bases:
            pybullet.resetBasePositionAndOrientation(body, *pose, self.client)
            pybullet.resetBaseVelocity(body, *velocity, self.client)
            self.move_base(body)

    def withholds(self, body: int | None) -> bool:
        """Whether Bullet is not to know what pushes a body, since it makes no steps of its own."""
        return self._alone and body in self._group_of

    def _steps_alone(self) -> bool:
        """Whether nothing moves but what is stepped exactly, and nobody looks at Bullet's steps."""
        count = pybullet.getNumBodies(physicsClientId=self.client)
        if count != self._counted:
            self._counted = count
            groups = self.groups.values()
            self._alone = self in EXACT and all(group.exact for group in groups)
            self._alone &= not self.actions.belts
            for place in range(count if self._alone else 0):
                body = pybullet.getBodyUniqueId(place, physicsClientId=self.client)
                if body not in self._group_of and can_move(body, self.client):
                    self._alone = False
        if self._unseen or self.observers or self.actions.told:
            return False
        if self.sensors and not all(body in self._group_of for body, _ in self.sensors):
            return False
        return self._alone

    def _prepare(self) -> bool:
        """Get all groups ready for Bullet's step; False if they must be made anew first.

        Raises:
            StepError: A step in exact mode cannot be finished; nothing was done.

        Warns:
            BulletBridgeWarning: Bodies in exact mode need what exact steps do not have.
        """
        if self._stale or self._vacant or self._successors or self._unplaced:
            self._regroup()
        if self not in EXACT:  # nothing looks at other bodies, or can refuse a step
            for group in self.groups.values():
                if group.plain is None:
                    group.before_step(may_undo=False)
            return True
        ready: list[Group] = []
        asked = self.actions.asks_since(self._commands) or self.actions.belts
        last = [*self.groups.values()][-1:]
        try:
            self._around.hold()  # all groups see the others where they are now
            for group in self.groups.values():
                alone = None if asked else group.alone
                if alone is None or alone(()):
                    group.before_step(may_undo=group not in last)
                ready.append(group)
        except BaseException as error:
            for group in ready:
                group.undo()
            if isinstance(error, BulletsOwnError):
                failing = [*self.groups.values()][len(ready)]
                self._leave_to_bullet(failing.joined.bodies, str(error))
                self._stale |= failing.joined.bodies
                return False
            if not isinstance(error, StrangerError):
                raise
            self._met.add((error.body, error.other))
            self._stale |= {error.body, error.other}
            return False
        finally:
            self._around.let_go()
        self._around.end_step()
        self._commands = self.actions.commands
        return True

    def draw(self, on: bool) -> None:
        """Draw gaps and reactions into the window at most ten times a second, or not any more."""
        if self._overlay is not None:
            self._overlay.clear()
            self._overlay = None
        self._regroup()
        systems = [group.system for group in self.groups.values()]
        if on and systems:
            length = max(system.encoded.length for system in systems)
            self._overlay = Overlay(self.client, Scale.of(*systems), length)

    def start_real_time(self, on: bool) -> None:
        """Let simulated time follow the clock from now on, or not any more."""
        self._started = HOOKS.clock()
        if on:
            REAL_TIME.add(self)
        else:
            REAL_TIME.discard(self)

    def pump(self) -> None:
        """Make the steps that real time asks for."""
        behind = HOOKS.clock() - self._started
        if behind < self._dt:
            return
        self._dt = dt = time_step(self.client)
        count = int(min(behind, LONGEST_PUMP) / dt)
        self._started += behind if behind > LONGEST_PUMP else count * dt
        for _ in range(count):
            self.step()

    # groups

    def set_mode(self, mode: Mode, body: int | None = None) -> None:
        """Say who advances a body and all that constraints join to it, or every body.

        Raises:
            CallError: There is no such mode.
        """
        if mode not in get_args(Mode):
            raise CallError(f"there is no mode '{mode}'; use {', '.join(get_args(Mode))}")
        self._met.clear()
        self._bullets.clear()
        if body is None:
            self.mode = mode
            self._modes.clear()
            self.read_all_again()
            self._stale |= {b for loop in self.constraints.loops.values() for b in loop.bodies}
            return
        self._regroup()
        island = next((bodies for bodies in self.groups if body in bodies), {body})
        for member in island:
            self._modes[member] = mode
        self._stale |= island

    def _mode_of(self, bodies: Iterable[int]) -> Mode:
        """Mode of an island: ours if any member asks for it and none was left to Bullet."""
        if self._bullets.intersection(bodies):
            return "filter"
        asked = {self._modes.get(body, self.mode) for body in bodies}
        return "exact" if "exact" in asked else "filter" if "filter" in asked else "native"

    def _regroup(self) -> None:
        """Make groups of the bodies that have changed."""
        self._settle()
        for number in self._unplaced & self.constraints.loops.keys():
            self._stale.update(self.constraints.loops[number].bodies)
        self._unplaced.clear()
        if not self._stale:
            return
        for bodies in [bodies for bodies in self.groups if bodies & self._stale]:
            group = self.groups.pop(bodies)
            group.disband()
            self._note_open(group)
            self._stale |= bodies
        for loop in [n for n in self.constraints.loops.values() if n.first != NOBODY]:
            if not self._stale.isdisjoint(loop.bodies):  # its system is to know its own number
                self.constraints.loops[loop.number] = replace(loop, first=NOBODY)
        self._stale.clear()
        self._gravity = None
        exact = [loop for loop in self.constraints.loops.values() if loop.exact]
        alone = [(body,) for body, mode in self._modes.items() if mode == "exact"]
        with read_together(self.client):
            for bodies in islands([*(loop.bodies for loop in exact), *alone, *self._met]):
                if bodies not in self.groups and self._mode_of(bodies) != "native":
                    here = [loop for loop in exact if not bodies.isdisjoint(loop.bodies)]
                    self._group(bodies, here)
        # one order, whichever were made anew: steps of those before one that refuses are undone
        for bodies in sorted(self.groups, key=min):
            self.groups[bodies] = self.groups.pop(bodies)
        self._counted = -1
        self._around.watch_anew()  # bodies of one group need not look at each other
        self._group_of = {body: g for bodies, g in self.groups.items() for body in bodies}
        if any(group.exact for group in self.groups.values()):
            EXACT.add(self)
        else:
            EXACT.discard(self)
        ours = frozenset[int]().union(*self.groups)
        for loop in [loop for loop in self.constraints.loops.values() if loop.slides]:
            self._predict(loop, not (loop.exact and set(loop.bodies) <= ours))
        for call in [call for call in self._passed if self._concerns(call)]:
            self._passed.remove(call)
            self._tell_past(call[0])

    def _leave_to_bullet(self, bodies: frozenset[int], reason: str) -> None:
        """Let Bullet step bodies that were to be stepped exactly, and close their loops then."""
        self._bullets |= bodies
        self._met = {pair for pair in self._met if not bodies & set(pair)}
        warn_user(
            f"{named(bodies)} cannot be stepped exactly: {reason}; Bullet steps, and the loops are"
            " closed then, as in filter mode"
        )

    def _predict(self, loop: CreatedConstraint, by_bullet: bool) -> None:
        """Let Bullet's own constraint act, or not.

        Forces of its sliders act at pivots that slide apart: between two bodies that move they
        turn the pair. With a force limit it has to act, or nobody would know what it takes.
        """
        by_bullet = by_bullet or loop.max_force is not None
        if by_bullet != loop.unpredicted:
            return
        self.constraints.loops[loop.number] = replace(loop, unpredicted=not by_bullet)
        if loop.max_force is None:
            force = FIRST_IMPULSE / time_step(self.client) if by_bullet else 0.0
            pybullet.changeConstraint(loop.number, maxForce=force, physicsClientId=self.client)

    def _group(self, bodies: frozenset[int], loops: list[CreatedConstraint]) -> None:
        """One group for bodies that hang together; Bullet keeps what cannot be modelled.

        Raises:
            AssemblyError: They are to be exact, and their loops cannot be closed.
        """
        if self._mode_of(bodies) == "exact":
            loops_here = self.constraints.loops.values()
            others = [n for n in loops_here if not n.exact and bodies & set(n.bodies)]
            try:
                self.groups[bodies] = ExactGroup(bodies, loops, others, self.actions, self.client)
            except AssemblyError:
                self._stale |= bodies  # to be tried, and refused, again
                raise
            except BulletBridgeError as error:
                self._leave_to_bullet(bodies, str(error))
            else:
                return
        for island in islands(loop.bodies for loop in loops):  # without what merely touched
            self._filter(island, [loop for loop in loops if island.issuperset(loop.bodies)])

    def _filter(self, bodies: frozenset[int], loops: list[CreatedConstraint]) -> None:
        """One group that Bullet steps, or Bullet's own constraints where it cannot be modelled."""
        try:
            erp, filters = self.actions.erp, self.actions.filters
            self.groups[bodies] = FilteredGroup(bodies, loops, erp, filters, self.client)
        except BulletBridgeError as error:
            for loop in loops:
                self.constraints.loops[loop.number] = replace(loop, exact=False, reason=str(error))
            warn_user(f"constraints {[loop.number for loop in loops]} stay Bullet's own: {error}")


def islands(groups: Iterable[tuple[int, ...]]) -> list[frozenset[int]]:
    """Bodies that hang together, in the order of the last that joined them."""
    island_of: dict[int, set[int]] = {}
    found: dict[int, set[int]] = {}  # by their identities, those that grew last at the end
    for group in groups:
        met = {id(island): island for body in group if (island := island_of.get(body)) is not None}
        largest = max(met.values(), key=len, default=set[int]())
        for number, island in met.items():
            del found[number]
            if island is not largest:
                largest |= island
                island_of.update(dict.fromkeys(island, largest))
        largest.update(group)
        island_of.update(dict.fromkeys(group, largest))
        found[id(largest)] = largest
    return [*map(frozenset, found.values())]


SESSIONS: dict[int, Session] = {}
"""Sessions by physics client."""
EXACT: set[Session] = set()
"""Those that have bodies in exact mode."""
REAL_TIME: set[Session] = set()
"""Those whose simulated time follows the clock."""


def session_of(client: int) -> Session:
    """The session of a client, made when it is first asked for."""
    session = SESSIONS.get(client)
    if session is None:
        watch(PAST, look)
        session = SESSIONS[client] = Session(client)
    return session


def end_session(client: int) -> None:
    """Forget a client, which is no more."""
    session = SESSIONS.pop(client, None)
    if session is not None:
        EXACT.discard(session)
        REAL_TIME.discard(session)
    if not SESSIONS:
        unwatch(PAST, look)


def look(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Note a call of PyBullet's own module, if it is for a client of ours."""
    client, call = past_call(name, args, kwargs)
    session = SESSIONS.get(client)
    if session is None:
        return
    if name == END:
        end_session(client)
    else:
        session.pass_by(call)
