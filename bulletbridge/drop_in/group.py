"""Bodies that hang together by constraints, and the system that closes these."""

import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pybullet

from bulletbridge.bullet.reader import BulletBodies, read_bullet
from bulletbridge.bullet.state import Shift
from bulletbridge.bullet.worlds import gravity, joint_ids, link_ids, readable
from bulletbridge.comparison.window.overlay import Mark
from bulletbridge.constraints.joints import Coupling, LoopJoint
from bulletbridge.drop_in.forces import (
    Native,
    State,
    constraint_state,
    exceeds,
    on_parent,
)
from bulletbridge.drop_in.loops import NOBODY, Loop, info_of, modelled
from bulletbridge.drop_in.moving_frame import NOTHING_SHIFTED, FrameMemory, MovingFrame
from bulletbridge.engine.step_kernel import run
from bulletbridge.errors import (
    AssemblyError,
    BulletBridgeError,
    BulletBridgeWarning,
    ModelError,
    warn_user,
)
from bulletbridge.inequalities.filter import NO_STICKING_POINTS, Filter, Impulses, require_done
from bulletbridge.inequalities.filter_kernel import run_filter
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.numerics.records import Array
from bulletbridge.system.ahead import compile_ahead
from bulletbridge.system.evaluation import Gap
from bulletbridge.system.options import WITH_INEQUALITIES
from bulletbridge.system.saved import SavedState
from bulletbridge.system.system import System

SATURATED = 0.999
"""Share of its force limit from which on a constraint is taken to give way."""
ONE_DOF = "revolute", "prismatic"
OPEN = 1e-9
"""Gap [m or rad] at which loops are closed before Bullet steps, after somebody moved the bodies;
what closing moves them by, or changes their rates by, that Bullet is not told before its step."""

ALONE = -1
"""Number of a group that needs no compiled call for its step."""
UNKNOWN = -1
NO_NAMES: Set[str] = frozenset()


class Limited(NamedTuple):
    """A loop with a force limit."""

    loop: Loop
    name: str
    limit: float


class GroupMemory(NamedTuple):
    """What the next steps of a group go by."""

    kind: type
    bodies: frozenset[int]
    settings: tuple[Any, ...]
    frames: dict[int, FrameMemory]
    system: System
    state: SavedState
    disturbed: bool
    given_way: frozenset[str]
    impulses: Impulses | None
    moved: frozenset[int]
    moving: frozenset[int]


def any_moved(now: dict[int, FrameMemory], then: dict[int, FrameMemory]) -> bool:
    """Whether Bullet has any frame elsewhere."""
    return now.keys() != then.keys() or any(now[n].place != then[n].place for n in now)


class Group:
    """One system for the bodies of an island of constraints.

    Args:
        bodies: Bullet's ids.
        loops: The exact constraints among them.
        client: Physics client.

    Raises:
        BulletBridgeError: The bodies or constraints cannot be modelled.
    """

    whole = False
    """Whether motors, limits and contacts are our step's too, not only loops."""

    def __init__(self, bodies: Iterable[int], loops: list[Loop], client: int) -> None:
        self.client = client
        names = {f"body{body}": body for body in sorted(bodies)}
        self.bodies = frozenset(names.values())
        self._links = {place: name for name, place in link_ids(names, client).items()}
        self._joints = {place: name for name, place in joint_ids(names, client).items()}
        with warnings.catch_warnings():
            # inertias are Bullet's, whatever the file says
            warnings.simplefilter("ignore", BulletBridgeWarning)
            self._world, mechanism = self._read(names)
        self._read_first = mechanism  # with fixed bases where they were when they were read
        self.standing = {port.body_id for port in self._world.ports if port.base is not None}
        self._bases_due = False  # whether fixed bases may have been moved
        self._loops = {loop.number: loop for loop in loops}
        self._limited = with_limits(loops)
        self._has_shapes = any(has_shapes(body, client) for body in self.bodies)
        self._frames_a: dict[int, MovingFrame] = {}
        self._models = {
            loop.number: self._model(loop) for loop in loops if not self._is_idle(loop, mechanism)
        }
        dt: float = pybullet.getPhysicsEngineParameters(physicsClientId=client)["fixedTimeStep"]
        if not self.whole:
            compile_ahead(run, run_filter)
        self.system = System(
            mechanism,
            list(self._models.values()),
            world=self._world,
            dt=dt,
            integrator=WITH_INEQUALITIES,  # Bullet's
            allow_structure=True,
            contacts=self._has_contacts(),
            limits="always" if self.whole else False,
        )
        self.filter: Filter | None = None  # that the last step was closed by
        self._failed = 0  # attempts to close the loops that failed since one did not
        self._pause = 0  # steps until the next one
        self._disturbed = True
        self._given_way: Set[str] = NO_NAMES  # loops that their force limits let open
        self._impulses: Impulses | None = None  # of the last step, once asked for
        self._sticking_count = UNKNOWN  # points that stuck then
        self._found: list[float] = []  # q and v after Bullet's last step
        self._prescribed: Filter | None = None  # which knows where moving frames will be
        self._sticking = NO_STICKING_POINTS  # by its contacts
        self._natives: dict[str, Native] = {}  # forces of loops with limits in Bullet's last step
        self._states: dict[int, State] = {}  # forces of loops since then, once asked for
        self._moved: set[int] = set()  # loops whose child frame was moved since the last step
        self._moving: set[int] = set()  # loops whose frame has a rate

    def disturb(self) -> None:
        """Note that somebody has put the bodies elsewhere."""
        self._forget_states()
        self._disturbed, self._pause = True, 0
        self._bases_due = bool(self.standing)

    def move_base(self, body: int) -> None:
        """Note that somebody has put a base elsewhere that does not move by itself.

        What hangs on it gets the velocity that brings it along in one step.
        """
        self._bases_due, self._pause = True, 0
        self._moved |= {n for n in self._frames_a if body in self._loops[n].bodies}

    def forget_friction(self) -> None:
        """Note that something may rub otherwise than it did."""
        self._world.forget_friction()

    def forget_filters(self) -> None:
        """Note that other links may collide than did."""
        self._world.forget_filters()

    def change(self, loop: Loop, moved: bool) -> bool:
        """Note that the force limit of a loop was changed, or its child frame moved.

        Returns:
            Whether the bodies must be read again.
        """
        if loop.number in self._loops:
            known = self._loops[loop.number]
            if known is not loop:
                self._loops[loop.number] = loop
                self._limited = with_limits(self._loops.values())
            if moved:
                self._moved.add(loop.number)
            if loop.erp > 0.0 and loop.target != known.target:
                self.system.set_offset(loop.name, loop.target)
        return False

    def memory(self) -> GroupMemory:
        """What its next steps go by."""
        return GroupMemory(
            type(self),
            self.bodies,
            self._settings(),
            {number: frame.memory() for number, frame in self._frames_a.items()},
            self.system,
            self.system.save(world=False),
            self._disturbed,
            frozenset(self._given_way),
            self.impulses,
            frozenset(self._moved),
            frozenset(self._moving),
        )

    def recall(self, memory: GroupMemory) -> bool:
        """Go on from a memory; False where it is that of other bodies, constraints or frames."""
        frames = {number: frame.memory() for number, frame in self._frames_a.items()}
        if type(self) is not memory.kind or self._settings() != memory.settings:
            return False
        self._bases_due = self._disturbed = True
        self._follow_bases()
        if frames and (self.system is not memory.system or any_moved(frames, memory.frames)):
            return False
        try:
            self.system.restore(memory.state, write=False)
        except ModelError:
            return False
        self.system.gravity = gravity(self.client)
        for number, frame in self._frames_a.items():
            frame.recall(memory.frames[number])
        self._disturbed, self._given_way = memory.disturbed, set(memory.given_way)
        self._moved, self._moving = set(memory.moved), set(memory.moving)
        self._impulses, self._sticking_count = memory.impulses, UNKNOWN
        self._prescribed = None
        self._forget_states()
        return True

    def _settings(self) -> tuple[Any, ...]:
        """What the program may have changed since, which restoring a state does not put back."""
        rigid = {
            number: (replace(loop, max_force=None), loop.max_force is None)
            for number, loop in self._loops.items()
        }
        return self.system.dt, rigid

    def before_step(self, may_undo: bool) -> None:
        """Close what somebody opened since the last step, and set moving frames going.

        Args:
            may_undo: Whether ``undo`` may be called before ``after_step``.

        Warns:
            BulletBridgeWarning: The loops cannot be closed; Bullet's state stays.
        """
        if self._disturbed:
            self._impulses, self._sticking_count = self.impulses, UNKNOWN  # those of the last step
            self._follow_bases()
            self._disturbed = False
            self._rebase_gears()
            self._attempt(self._reopen)
        if self._moved or self._moving or self._bases_due:
            self._drive()

    def after_step(self, found: list[float]) -> int:
        """Look where Bullet's step has left the bodies, and close their loops or let that be done.

        Args:
            found: Receives q and v as they are to be filtered.

        Returns:
            How many points stick meanwhile, for ``take`` to be called with what comes out; or
            ``ALONE``: nothing is to be done any more.

        Warns:
            BulletBridgeWarning: Loops cannot be closed; Bullet's state stays.
        """
        if self._states:
            self._forget_states()
        if self._pause > 0:
            self._pause -= 1
            return ALONE
        self._impulses, self._sticking_count = None, UNKNOWN
        world = self._world
        self.filter = known = self.system.known_filter
        try:
            world.check()
            world.check_bases()
            numbers = world.numbers()
            sticking = self._sticking_points() if self._has_shapes else NO_STICKING_POINTS
            pulled = self._pulled() if self._limited else None
            if known is None or pulled:
                self._close(numbers, sticking, pulled or NO_NAMES)
                self._failed = 0
                return ALONE
        except BulletBridgeError as error:
            self._give_up(error)
            return ALONE
        found += numbers
        if sticking is not NO_STICKING_POINTS:
            known.take_points(sticking)
        if self._prescribed is not known:
            self._prescribed = known
            if self._frames_a:
                known.take_targets([frame.target for frame in self._frames_a.values()])
        self._found, self._sticking = numbers, sticking
        return len(sticking)

    def take(self, filtered: list[float] | int) -> None:
        """Show q and v as they were filtered, unless that failed or force limits forbid it.

        Args:
            filtered: What ``Filters`` gave.

        Warns:
            BulletBridgeWarning: Loops cannot be closed; Bullet's state stays.
        """
        was_open = self._given_way
        try:
            if isinstance(filtered, int):
                if not was_open:
                    self._world.require_finite(*self._split(self._found))
                    require_done(filtered)
                self._close(self._found, self._sticking, was_open)
            else:
                self._sticking_count = len(self._sticking)
                self._given_way = NO_NAMES
                over = self._over(was_open) if self._limited else NO_NAMES
                if over:
                    self._filter_without(over, self._sticking, self._split(self._found))
                else:
                    self._world.put_numbers(filtered)
        except BulletBridgeError as error:
            self._give_up(error)
        else:
            self._failed = 0

    @property
    def impulses(self) -> Impulses | None:
        """Impulses that closed the loops in the last step; None if they were not closed."""
        if self._sticking_count >= 0 and self.filter is not None:
            self._impulses, self._sticking_count = (
                self.filter.impulses(self._sticking_count),
                UNKNOWN,
            )
        return self._impulses

    def undo(self) -> None:
        """Take back ``before_step``: nothing that Bullet's step would not mend."""

    def _attempt(self, action: Callable[[], None]) -> None:
        """Close loops; say once when that starts failing, and try again ever more rarely then."""
        if self._pause > 0:
            self._pause -= 1
            return
        try:
            action()
        except BulletBridgeError as error:
            self._give_up(error)
        else:
            self._failed = 0

    def _give_up(self, error: BulletBridgeError) -> None:
        """Leave Bullet's state as it is for some steps, and say so the first time."""
        self._failed += 1
        self._pause = 2**self._failed
        if self._failed == 1:
            what = str(error).split(";")[0]  # the remedy there is for our own API
            warn_user(
                f"Bullet's own state stays until the loops can be closed again: {what};"
                " create constraints where they are nearly closed, and not more of them than"
                " the bodies can follow"
            )

    def _read(self, names: Mapping[str, int]) -> tuple[BulletBodies, Mechanism]:
        """The bodies; nothing but their masses matters to the filter."""
        world = read_bullet(readable(dict(names)), self.client, joint_damping=False)
        return world, world.mechanism

    def _has_contacts(self) -> bool:
        """Whether contacts are part of the system."""
        return self.whole and self._has_shapes

    def marks(self) -> list[Mark]:
        """What a window shows of the loops: gaps, and what they do to their parents."""
        found: list[Mark] = []
        places = self.system.gap_vectors()
        for loop in self._loops.values():
            if loop.name not in places:
                continue
            point, gap = places[loop.name]
            pull = None
            if self.impulses is not None and loop.name not in self._given_way:
                pull = on_parent(loop, self._native(loop), self.impulses, corrected=False)
            force, moment = (np.zeros(3), np.zeros(3)) if pull is None else pull[:2]
            found.append(Mark(loop.name, point - gap, point, force, moment))
        return found

    def gaps(self) -> tuple[Gap, ...]:
        """How far the loops are open where Bullet has the bodies now."""
        return self.system.evaluate(*self._world.state()).gaps

    def _reopen(self) -> None:
        """See which loops are open where Bullet has the bodies now, and close those that are rigid.

        A loop with a force limit that is open has given way; Bullet pulls it shut again.
        """
        system = self.system
        if not self._limited:
            found = self._world.state()
            system.filter(assemble=True, found=found, write=False)
            after = system.q, system.v
            if any(np.abs(x - y).max() > OPEN for x, y in zip(found, after, strict=True)):
                system.write()
            return
        open_now = {
            gap.name for gap in self.gaps() if max(gap.kept_metres, gap.kept_radians) > OPEN
        }
        limited = {name for _, name, _ in self._limited}
        self._given_way = open_now & limited
        if open_now - limited:
            system.filter(open=self._given_way, assemble=not self._given_way)

    def _close(self, numbers: list[float], sticking: np.ndarray, pulled: Set[str]) -> None:
        """Close all loops but those that Bullet pulls with all of their force limits."""
        q, v = found = self._split(numbers)
        self._world.require_finite(q, v)
        was_open = self._given_way
        try:
            self._filter_without(pulled, sticking, found)
        except AssemblyError:
            if not was_open:
                raise
            self._filter_without(pulled | was_open, sticking, found)
        over = self._over(was_open) if self._limited else NO_NAMES
        if over:
            self._world.put_numbers(numbers)
            self._filter_without(self._given_way | over, sticking, found)

    def _pulled(self) -> set[str]:
        """Loops that Bullet pulls with all that their force limits allow; keeps its forces."""
        natives = self._natives = {bound.name: self._native(bound.loop) for bound in self._limited}
        return {
            bound.name
            for bound in self._limited
            if max(map(abs, natives[bound.name].state)) >= SATURATED * bound.limit
        }

    def _over(self, was_open: Set[str]) -> set[str]:
        """Loops whose closing took more than their force limits.

        What moved the bodies counts where they were apart; what changed velocities always.
        """
        known, natives = self.filter, self._natives
        if known is not None and self._sticking_count >= 0 and known.is_unique:
            velocity, position = known.multipliers.tolist()
            dt = self.system.dt
            most = (math.hypot(*velocity) + math.hypot(*position) / dt) / dt  # [N, N m]
            if all(largest(natives[name]) + most <= limit for _, name, limit in self._limited):
                return set()  # cheap, and nearly always so
        impulses = self.impulses
        if impulses is None:
            return set()
        return {
            name
            for loop, name, limit in self._limited
            if name not in self._given_way
            and any(
                exceeds(limit, loop, natives[name], impulses, corrected)
                for corrected in ((False, True) if name in was_open else (False,))
            )
        }

    def _split(self, numbers: list[float]) -> tuple[Array, Array]:
        """q and v."""
        array = np.array(numbers)
        return array[: self.system.mechanism.nq], array[self.system.mechanism.nq :]

    def _sticking_points(self) -> np.ndarray:
        """Points that stick in contacts."""
        sticking = self._world.sticking_points()
        return sticking if len(sticking) else NO_STICKING_POINTS

    def _filter_without(
        self, names: Set[str], sticking: np.ndarray, found: tuple[Array, Array]
    ) -> None:
        """Close the loops but the named ones, which give way, where they were found."""
        self._impulses, self._sticking_count = None, UNKNOWN
        if len(names) < len(self._loops):
            self._impulses = self.system.filter(sticking, sorted(names), found=found)
        self._given_way = set(names)

    def _native(self, loop: Loop) -> Native:
        """Bullet's own forces of a constraint."""
        state = pybullet.getConstraintState(loop.number, self.client)
        if loop.twin < 0:
            return Native(state)
        return Native(state, pybullet.getConstraintState(loop.twin, self.client))

    def state_of(self, loop: Loop) -> State:
        """Bullet's forces of a constraint with what the filter added in the last step."""
        found = self._states.get(loop.number)
        if found is None:
            found = self._states[loop.number] = self._find_state(loop)
        return found

    def _forget_states(self) -> None:
        """Find forces of loops anew when they are asked for."""
        self._states.clear()

    def _find_state(self, loop: Loop) -> State:
        native = self._native(loop)
        given_way = loop.name in self._given_way or loop.number not in self._models
        if self.impulses is None or given_way or self._pause > 0:
            return native.state
        return constraint_state(loop, native, self.impulses)

    def _rebase_gears(self) -> None:
        """Gears hold rates: after a reset they hold from the new positions on, as Bullet's do.

        Those with an erp go back to where they are to be.
        """
        if not any(isinstance(gear, Coupling) for gear in self._models.values()):
            return
        q, _ = self._world.state()
        for number, gear in self._models.items():
            if isinstance(gear, Coupling):
                loop = self._loops[number]
                offset = loop.target if loop.erp > 0.0 else self._offset(gear, q)
                self.system.set_offset(gear.name, offset)

    def _offset(self, gear: Coupling, q: Array) -> float:
        joints = self.system.mechanism.joints
        return float(sum(c * q[joints[name].q.start] for name, c in gear.coefficients.items()))

    def _drive(self) -> None:
        """Put moved frames where they are now, and stop those that were not moved again."""
        shifts = self._follow_bases()
        for number in self._moved | self._moving:
            self._frames_a[number].drive(self.system, shifts)
        self._moved, self._moving = set(), self._moved
        self._prescribed = None

    def _follow_bases(self) -> Mapping[int, Shift]:
        """Put fixed bases where Bullet has them now; how they were moved as the others look on.

        If other bodies were put elsewhere too, all starts anew where it is, without velocity.
        """
        if not self._bases_due:
            return NOTHING_SHIFTED
        self._bases_due = False
        mechanism, shifts = self._world.follow_bases(self._read_first)
        if not shifts:
            return shifts
        self.system.rebase(mechanism)
        driven = set[int]() if self._disturbed else self._moved | self._moving
        for number in self._frames_a.keys() - driven:
            self._frames_a[number].stop(self.system)
        self._prescribed = None
        return NOTHING_SHIFTED if self._disturbed else shifts

    def _is_idle(self, loop: Loop, mechanism: Mechanism) -> bool:
        """Whether a constraint joins what is one rigid body anyway, or what stands still."""
        if loop.kind == pybullet.JOINT_GEAR:
            return False
        info = info_of(loop.number, self.client)
        ends = [
            0 if end[0] < 0 else mechanism.link(self._links[end]).body
            for end in (info[:2], info[2:4])
        ]
        return ends[0] == ends[1]

    def _gear(self, loop: Loop) -> Coupling:
        """A gear of Bullet as ours; its auxiliary joint feels it too, or energy would come of it.

        Raises:
            ModelError: One of its joints does not move by one coordinate.
        """
        info = info_of(loop.number, self.client)
        parts = [(info[0], info[1], 1.0), (info[2], info[3], loop.ratio)]
        if loop.auxiliary != NOBODY:
            parts.append((info[0], loop.auxiliary, -1.0))
        coefficients: dict[str, float] = {}
        for body, joint, factor in parts:
            name = self._joints.get((body, joint), "")
            joints = self._world.mechanism.joints
            if name not in joints or joints[name].kind not in ONE_DOF:
                raise ModelError(
                    f"{loop.name} is a gear of joint {joint} of body {body}, which neither turns"
                    " nor slides"
                )
            coefficients[name] = coefficients.get(name, 0.0) + factor
        return Coupling(loop.name, coefficients, offset=loop.target if loop.erp > 0.0 else 0.0)

    def _model(self, loop: Loop) -> LoopJoint | Coupling:
        """A constraint of Bullet as ours."""
        if loop.kind == pybullet.JOINT_GEAR:
            return self._gear(loop)
        motion = None
        if loop.moving:
            self._frames_a[loop.number] = MovingFrame(loop, self._links, self.client)
            motion = self._frames_a[loop.number].motion
        return modelled(loop, self._links, motion, self.client)


def with_limits(loops: Iterable[Loop]) -> list[Limited]:
    """Those that have a force limit."""
    return [
        Limited(loop, loop.name, loop.max_force) for loop in loops if loop.max_force is not None
    ]


def largest(native: Native) -> float:
    """The largest of Bullet's forces [N] and moments [N m]."""
    return max(map(abs, native.state + native.twin), default=0.0)


def has_shapes(body: int, client: int) -> bool:
    """Whether anything of the body can be in contact."""
    links = range(-1, pybullet.getNumJoints(body, physicsClientId=client))
    return any(pybullet.getCollisionShapeData(body, k, physicsClientId=client) for k in links)


def named(bodies: frozenset[int]) -> str:
    """Bodies by their numbers."""
    numbers = sorted(bodies)
    return f"body {numbers[0]}" if len(numbers) == 1 else f"bodies {numbers}"
