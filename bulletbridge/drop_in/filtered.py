"""Groups whose loops are closed after Bullet's own step."""

import math
from collections.abc import Callable, Iterable, Mapping, Set
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import NamedTuple

import numpy as np
import pybullet

from bulletbridge.bullet.collision_filters import CollisionFilters
from bulletbridge.bullet.constraints import LET_MEET, CreatedConstraint, in_numbers_of_today
from bulletbridge.bullet.state import SingleBody
from bulletbridge.drop_in.forces import PULLED, State, constraint_state, exceeds, on_parent
from bulletbridge.drop_in.held_inside import HeldInside, InsideMemory
from bulletbridge.drop_in.joined_bodies import (
    ALONE,
    NO_NAMES,
    OUT_OF_REACH,
    JoinedBodies,
    JoinedMemory,
    Reading,
)
from bulletbridge.drop_in.told_gaps import ToldGaps
from bulletbridge.engine.records import LEFT_OPEN
from bulletbridge.engine.step_kernel import run
from bulletbridge.errors import AssemblyError, BulletBridgeError, warn_user
from bulletbridge.inequalities.filter import NO_STICKING_POINTS, Filter, Impulses, require_done
from bulletbridge.inequalities.filter_kernel import run_filter
from bulletbridge.numerics.records import Array
from bulletbridge.system.ahead import compile_ahead
from bulletbridge.system.evaluation import Gap
from bulletbridge.viewer.overlay import Mark

SATURATED = 0.999
"""Share of its force limit from which on a constraint is taken to give way."""
OPEN = 1e-9
"""Gap [m or rad] at which loops are closed before Bullet steps, after somebody moved the bodies;
what closing moves them by, or changes their rates by, that Bullet is not told before its step."""

UNEVEN = 0.05
"""Share of the largest contact force by which a point may be pulled at beyond its own: Bullet's are
not converged, and loads on many points are shared at will."""

UNKNOWN = -1
RAREST = 6
"""Binary logarithm of the most steps between searches for poses that close weak constraints."""


@dataclass
class Attempts:
    """How it went to close loops that could not be closed, or not with all constraints.

    Attributes:
        failed: Attempts that failed since one did not.
        pause: Steps until the next one.
        left_for: Steps since some constraints were left to Bullet.
        leavings: How often they were.
        pulls: Their largest force or torque in Bullet's last step, which its states do not hold.
        searches: How often no pose was found that closes what Bullet pulls in vain, before it was
            decided which rows are redundant: twice as many steps go by until the next one.
        unsearched: Steps since the last one.
    """

    failed: int = 0
    pause: int = 0
    left_for: int = 0
    leavings: int = 0
    pulls: Mapping[int, float] = field(default_factory=dict[int, float])
    searches: int = 0
    unsearched: int = 0


class FilteredMemory(NamedTuple):
    """What the next steps of a filtered group go by."""

    joined: JoinedMemory
    given_way: frozenset[str]
    impulses: Impulses | None
    told_gaps: np.ndarray | None
    attempts: Attempts
    left_out: frozenset[int]
    inside: InsideMemory


class FilteredGroup:
    """Joined bodies that Bullet moves, and whose loops are closed afterwards.

    Args:
        bodies: Bullet's ids.
        loops: The exact constraints among them.
        erp: Share of a gap that Bullet's constraints close in a step.
        filters: What the program has said of which links collide.
        client: Physics client.

    Attributes:
        joined: Bodies and constraints.
        system: Their system.
        filter: What closed the loops of the last step.
        plain: What a step reads, filters and writes, if until somebody does or asks something it
            has nothing else to do: ``Closing`` then does that without ``after_step`` and ``take``.

    Raises:
        BulletBridgeError: The bodies or constraints cannot be modelled.
    """

    alone = None
    exact = False

    def __init__(
        self,
        bodies: Iterable[int],
        loops: list[CreatedConstraint],
        erp: float,
        filters: CollisionFilters,
        client: int,
    ) -> None:
        compile_ahead(run, run_filter)
        self._lead, self._client = lead_of(erp, client), client
        self.joined = JoinedBodies(bodies, loops, client, Reading(client))
        self.system, self._world = self.joined.system, self.joined.world
        self._inside = HeldInside(self.joined, filters, client)
        self.filter: Filter | None = None
        self.plain: SingleBody | None = None
        self._attempts = Attempts()
        self._given_way: Set[str] = NO_NAMES  # loops that their force limits let open
        self._impulses: Impulses | None = None  # of the last step, once asked for
        self._eased: tuple[Impulses, Impulses] | None = None  # those, and as ``_shared`` has them
        self._sticking_count = UNKNOWN  # points that stuck then
        self._prescribed: Filter | None = None  # which knows where moving frames will be
        self._sticking = NO_STICKING_POINTS  # by its contacts
        self._told_gaps: ToldGaps | None = None  # by which Bullet knows what the loops carry
        self._room_left = 0.0  # the least that Bullet's forces leave below a limit [N, N m]

    def disband(self) -> None:
        """Let links collide again that did not while they were held."""
        self._inside.release()

    def disturb(self) -> None:
        """Note that somebody has put the bodies elsewhere."""
        self.joined.disturb()
        self._attempts.pause, self._attempts.searches, self.plain = 0, 0, None

    def begin_anew(self) -> bool:
        """Go on as bodies that were just read; False where they must be read for that."""
        if self.joined.left_out or self.joined.limited or not self.joined.begin_anew():
            return False  # which limits let open decides how the first step closes the others
        self._attempts = Attempts()
        self._inside.begin_anew()
        self._start_anew()
        return True

    def move_base(self, body: int) -> None:
        """Note that somebody has put a base elsewhere that does not move by itself."""
        self.joined.move_base(body)
        self._attempts.pause, self._attempts.searches, self.plain = 0, 0, None

    def forget_friction(self) -> None:
        """Note that something may rub otherwise than it did."""
        self._world.forget_friction()

    def change(self, loop: CreatedConstraint, moved: bool) -> bool:
        """Note that the force limit of a loop was changed, or its child frame moved.

        Returns:
            Whether the bodies must be read again.
        """
        old = self.joined.loops.get(loop.number, loop)
        if old.max_force != loop.max_force:
            self._inside.begin_anew()
        self.joined.change(loop, moved)
        self._told_gaps = self.plain = None  # others may have a force limit now
        return loop.max_force is None and loop.number in self.joined.left_out

    def memory(self) -> FilteredMemory:
        """What its next steps go by."""
        told = None if self._told_gaps is None else self._told_gaps.memory()
        given_way = frozenset(self._given_way)
        attempts, left_out = replace(self._attempts), frozenset(self.joined.left_out)
        joined, impulses = self.joined.memory(), self.impulses
        inside = self._inside.memory()
        return FilteredMemory(joined, given_way, impulses, told, attempts, left_out, inside)

    def recall(self, memory: object) -> bool:
        """Go on from a memory; False where it is that of other bodies, constraints or frames."""
        if not isinstance(memory, FilteredMemory):
            return False
        self._leave_to_bullet(memory.left_out)
        if not self.joined.recall(memory.joined):
            return False
        self._attempts = replace(memory.attempts)
        self._inside.recall(memory.inside)
        self._given_way, self.plain = set(memory.given_way), None
        self._impulses, self._sticking_count, self._eased = memory.impulses, UNKNOWN, None
        self._prescribed = None
        self._forget_gaps()
        known = self.system.known_filter
        if memory.told_gaps is not None and known is not None:
            self._gaps_of(known).recall(memory.told_gaps)
        return True

    def before_step(self, may_undo: bool) -> None:
        """Close what somebody opened since the last step, and set moving frames going.

        Args:
            may_undo: Whether ``undo`` may be called before ``after_step``.

        Warns:
            BulletBridgeWarning: The loops cannot be closed; Bullet's state stays.
        """
        if self.plain is not None:
            return
        if self.joined.left_out:
            self._try_to_take_in()
        if self.joined.disturbed:
            self._impulses, self._sticking_count = self.impulses, UNKNOWN  # those of the last step
            self.joined.follow_bases()
            self._prescribed = None
            self._forget_gaps()
            self.joined.disturbed = False
            self.joined.rebase_gears()
            self.joined.note_beginning()
            self._attempt(self._reopen)
        if self.joined.has_shapes:
            self._inside.part(self._given_way)
        if self.joined.must_be_driven:
            self._drive()
        if self._told_gaps is not None:
            self._told_gaps.tell()

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
        self.joined.finish_step()
        if self._told_gaps is not None:
            self._told_gaps.put_back()
        if self.joined.left_out:
            self._attempts.pulls = {n: self._pull_of(n) for n in self.joined.left_out}
        if self._attempts.pause > 0:
            self._attempts.pause -= 1
            self._forget_gaps()
            return ALONE
        self._impulses, self._sticking_count = None, UNKNOWN
        world = self._world
        self.filter = known = self.system.known_filter
        try:
            world.check()
            numbers = world.numbers()
            sticking = world.sticking_points() if self.joined.has_shapes else NO_STICKING_POINTS
            if known is not None and self.joined.has_shapes and world.carries:
                self._gaps_of(known).add(world.finite(numbers)[0])
            else:
                self._forget_gaps()
            pulled = self._pulled() if self.joined.limited else None
            if known is None or pulled or self._attempts.failed:
                self._close(numbers, sticking, pulled or NO_NAMES)
                self._attempts.failed = 0
                return ALONE
        except BulletBridgeError as error:
            self._give_up(error)
            return ALONE
        found += numbers
        if len(sticking):
            known.take_points(sticking)
        if self._prescribed is not known:
            self._prescribed = known
            frames, models = self.joined.frames.items(), self.joined.models
            if targets := [frame.target for number, frame in frames if number in models]:
                known.take_targets(targets)
        self._sticking = sticking
        return len(sticking)

    def take(self, filtered: list[float] | int, found: list[float]) -> None:
        """Show q and v as they were filtered, unless that failed or force limits forbid it.

        Args:
            filtered: What ``Filters`` gave.
            found: q and v as Bullet's step has left them.

        Warns:
            BulletBridgeWarning: Loops cannot be closed; Bullet's state stays.
        """
        was_open, self.plain = self._given_way, None
        try:
            if isinstance(filtered, int):
                self._impulses, self._sticking_count = None, UNKNOWN
                if not was_open and filtered != LEFT_OPEN:  # whose rows may count from now on
                    self._world.finite(found)
                    require_done(filtered)
                self._close(found, self._sticking, was_open)
            else:
                self._sticking_count = len(self._sticking)
                self._given_way = NO_NAMES
                if self._sticking_count and False in self._presses(self._world.sticking_forces):
                    self._close(found, self._sticking, NO_NAMES)
                    self._attempts.failed = 0
                    return
                over = self._over(was_open) if self.joined.limited else NO_NAMES
                if over:
                    self._filter_without(over, self._sticking, self._world.finite(found))
                else:
                    self._world.put_numbers(filtered)
                    self.joined.tell_open()
                    if not self._must_look():
                        self.plain = self._world.single
        except BulletBridgeError as error:
            self._give_up(error)
        else:
            self._attempts.failed = 0

    def _must_look(self) -> bool:
        """Whether a step depends on more than the state, with nothing done from outside."""
        joined = self.joined
        watched = joined.has_shapes or joined.limited or joined.left_out or joined.must_be_driven
        return bool(watched) or self._told_gaps is not None or joined.watches

    def look_closely(self) -> None:
        """Have the next step make sure that the bodies are as they were read."""
        self.plain = None
        self._world.look_next()

    @property
    def impulses(self) -> Impulses | None:
        """Impulses that closed the loops in the last step; None if they were not closed."""
        if self._sticking_count >= 0 and self.filter is not None:
            self.plain = None  # the next step forgets them
            self._impulses = self.filter.impulses(self._sticking_count)
            self._sticking_count = UNKNOWN
        return self._impulses

    def _drive(self) -> None:
        """Set moving frames going; what closes loops acts where the last step has left them.

        Bullet pulls at what hangs on a base that was moved by where that hangs still, and the rest
        of what takes it along must act there too: elsewhere the two would turn it.
        """
        known, self._prescribed = self.system.known_filter, None
        factored = 0 if known is None else known.solver.control["factored"].item()
        self.joined.drive(self._lead)
        if known is not None:
            known.solver.control["factored"] = factored

    def undo(self) -> None:
        """Take back ``before_step``, but for what Bullet's step would mend."""
        self.joined.put_back()
        if self._told_gaps is not None:
            self._told_gaps.put_back()

    def _gaps_of(self, known: Filter) -> ToldGaps:
        """Gaps to tell of the constraints as the system has them now."""
        gaps = self._told_gaps
        if gaps is None or gaps.solver is not known.solver:
            loops = self.joined.loops.values()
            gaps = self._told_gaps = ToldGaps(loops, known.solver, self._client)
        return gaps

    def _forget_gaps(self) -> None:
        if self._told_gaps is not None:
            self._told_gaps.forget()

    def _attempt(self, action: Callable[[], None]) -> None:
        """Close loops; say once when that starts failing, and try again ever more rarely then."""
        if self._attempts.pause > 0:
            self._attempts.pause -= 1
            return
        try:
            action()
        except BulletBridgeError as error:
            self._give_up(error)
        else:
            self._attempts.failed = 0

    def _give_up(self, error: BulletBridgeError) -> None:
        """Leave Bullet's state as it is for some steps, and say so the first time.

        Where constraints that have given way keep others from closing, they alone are left to it.
        """
        if isinstance(error, AssemblyError) and self._leave_out():
            numbers = self._world.numbers()
            self._attempt(lambda: self._close(numbers, NO_STICKING_POINTS, NO_NAMES))
            return
        self._attempts.failed += 1
        self._attempts.pause, self.plain = 2**self._attempts.failed, None
        if self._attempts.failed == 1:
            what = in_numbers_of_today(str(error), self.joined.loops.values())
            what = what.split(";")[0]  # the remedy there is for our own API
            warn_user(
                f"Bullet's own state stays until the loops can be closed again: {what}; {LET_MEET}"
            )

    def _leave_out(self, closed: bool = False) -> bool:
        """Leave limited constraints to Bullet that are open where it has the bodies; if any are.

        Whether rows are redundant is decided where all are closed, and these may never be.

        Args:
            closed: Whether all are left to it where none is open: rigid ones are instead.
        """
        open_now = {gap.name for gap in self.joined.gaps() if max(gap.metres, gap.radians) > OPEN}
        limited = self.joined.limited
        numbers = [limited[name].loop.number for name in limited if name in open_now]
        if closed and not numbers:
            numbers = [loop.number for loop, _ in limited.values()]
        if not numbers or len(numbers) == len(self.joined.models):
            return False
        self.joined.leave_out(numbers)
        self._attempts.leavings, self._attempts.left_for = self._attempts.leavings + 1, 0
        self._start_anew()
        return True

    def _try_to_take_in(self) -> None:
        """Close all loops again once Bullet pulls those that were left to it with less than all."""
        self._attempts.left_for += 1
        if self._attempts.left_for < 2**self._attempts.leavings:
            return
        for number in self.joined.left_out:
            limit = self.joined.loops[number].max_force
            if limit is not None and self._attempts.pulls[number] >= SATURATED * limit:
                return
        self.joined.take_in()
        self._start_anew()

    def _leave_to_bullet(self, numbers: frozenset[int]) -> None:
        """Have just these constraints left to Bullet."""
        if numbers == self.joined.left_out.keys():
            return
        self.joined.take_in()
        if numbers:
            self.joined.leave_out(sorted(numbers))
        self._start_anew()

    def _start_anew(self) -> None:
        """Go on with the system that the bodies have now."""
        self.system = self.joined.system
        self.filter = self.plain = self._prescribed = self._told_gaps = self._impulses = None
        self._sticking_count, self._given_way = UNKNOWN, NO_NAMES

    def marks(self) -> list[Mark]:
        """What a window shows of the loops: gaps, and what they do to their parents."""
        found: list[Mark] = []
        places = self.system.gap_vectors()
        for loop in self.joined.loops.values():
            if loop.name not in places:
                continue
            point, gap = places[loop.name]
            pull = None
            if self.impulses is not None and loop.name not in self._given_way:
                pull = on_parent(loop, self.joined.native(loop), self._shared(self.impulses), False)
            force, moment = (np.zeros(3), np.zeros(3)) if pull is None else pull[:2]
            found.append(Mark(loop.name, point - gap, point, force, moment))
        return found

    def _reopen(self) -> None:
        """See which loops are open where Bullet has the bodies now, and close those that are rigid.

        What gears hold where joints were put may keep them from that. As Bullet's they hold rates,
        so that they go on from where all else is closed.
        """
        known, allowed = self.system.known_filter, self.system.closing_allowance
        try:
            self._close_opened()
        except AssemblyError:
            if not self.joined.close_before_gears(self._given_way):
                raise
        else:
            gears = self.joined.gears_of_rates
            if known and gears and self._widest_but(gears, self.joined.gaps()) > allowed:
                self.joined.close_before_gears(self._given_way)
        self.joined.tell_unreached()

    def _widest_but(self, left: Set[str], gaps: Iterable[Gap]) -> float:
        """How far loops without force limits are open, but some [mechanism lengths, rad]."""
        left, length = left | self.joined.limited.keys(), self.system.encoded.length
        sizes = (max(gap.metres / length, gap.radians) for gap in gaps if gap.name not in left)
        return max(sizes, default=0.0)

    def _close_opened(self) -> None:
        """Close loops that are rigid where Bullet has the bodies now.

        A loop with a force limit that is open has given way; Bullet pulls it shut again.
        """
        system = self.system
        if not self.joined.limited:
            found = self._world.state()
            system.filter(assemble=True, found=found, write=False)
            after = system.q, system.v
            pairs = zip(found, after, strict=True)
            if any(np.abs(x - y).max(initial=0.0) > OPEN for x, y in pairs):
                system.write()
            return
        open_now = {
            gap.name for gap in self.joined.gaps() if max(gap.kept_metres, gap.kept_radians) > OPEN
        }
        limited = self.joined.limited.keys()
        self._given_way = open_now & limited
        if open_now - limited:
            if self._given_way and system.known_filter is None:
                with suppress(AssemblyError):
                    system.filter(led=False, write=False)
                if self._is_compromise() and self._leave_out(closed=True):
                    self._close_opened()
                    return
            system.filter(open=self._given_way, assemble=not self._given_way, led=False)
        else:
            self._start_from(self._world.numbers())

    def _start_from(self, numbers: Iterable[float], passed: float = 0.0) -> None:
        """Have what Bullet's next step leads to be closed as come from here, ``passed`` s later."""
        self.system.take_back(np.array([*numbers, self.system.t + passed]))

    def _close(self, numbers: list[float], sticking: np.ndarray, pulled: Set[str]) -> None:
        """Close all loops but those that Bullet pulls with all of their force limits, and tell."""
        self._close_but(numbers, sticking, pulled)
        self.joined.tell_open()

    def _close_but(self, numbers: list[float], sticking: np.ndarray, pulled: Set[str]) -> None:
        found, limited = self._world.finite(numbers), bool(self.joined.limited)
        was_open, undecided = self._given_way, self.system.known_filter is None
        attempts = self._attempts
        attempts.unsearched += 1
        in_vain = pulled | was_open
        unchanged = pulled == was_open or len(in_vain) == len(self.joined.loops)
        waits = undecided and unchanged and attempts.unsearched < 2**attempts.searches
        try:  # what Bullet pulls in vain, where no joint yields, is not known before
            first = in_vain if waits else NO_NAMES if undecided else pulled
            self._filter_without(first, sticking, found, write=not limited)
        except AssemblyError:
            if not was_open and not (undecided and pulled):
                raise
            attempts.searches, attempts.unsearched = min(attempts.searches + 1, RAREST), 0
            self._filter_without(in_vain, sticking, found, write=not limited)
        if not limited:
            return
        if undecided and self._is_compromise() and self._leave_out(closed=True):
            self._close_but(numbers, sticking, NO_NAMES)
            return
        over = self._over(was_open)
        if over:  # of what gives way Bullet keeps its own numbers, which writing would round
            self._filter_without(self._given_way | over, sticking, found)
        elif len(self._given_way) < len(self.joined.loops):
            self.system.write()

    def _is_compromise(self) -> bool:
        """Whether the system has rigid loops open, as far as those with force limits contradict.

        Where redundancy is decided that counts as the rounding of frames, which it is not.
        """
        if not self.joined.limited or self.system.known_filter is None:
            return False
        return self._widest_but(NO_NAMES, self.system.evaluate().gaps) > OUT_OF_REACH

    def _pulled(self) -> set[str]:
        """Loops that Bullet pulls with all that their force limits allow; how much others leave."""
        room_left = math.inf
        pulled: set[str] = set()
        for name, (loop, limit) in self.joined.limited.items():
            force = self._pull_of(loop.number)
            if force >= SATURATED * limit:
                force = max(map(abs, self.joined.native(loop).state), default=0.0)
                if force >= SATURATED * limit:
                    pulled.add(name)
            if loop.twin >= 0:
                force = max(force, self._pull_of(loop.twin))
            if limit - force < room_left:
                room_left = limit - force
        self._room_left = room_left
        return pulled

    def _pull_of(self, number: int) -> float:
        """The largest force or torque [N, N m] of a constraint in Bullet's last step."""
        forces: State = pybullet.getConstraintState(number, self._client)
        return max(map(abs, forces), default=0.0)

    def _over(self, was_open: Set[str]) -> Set[str]:
        """Loops whose closing took more than their force limits.

        What moved the bodies counts where they were apart; what changed velocities always.
        """
        known = self.filter
        if known is not None and self._sticking_count >= 0 and known.is_unique:
            velocity, position = known.multipliers.tolist()
            dt = self.system.dt
            most = (math.hypot(*velocity) + math.hypot(*position) / dt) / dt  # [N, N m]
            if most <= self._room_left:
                return NO_NAMES  # cheap, and nearly always so
        impulses = self.impulses
        if impulses is None:
            return NO_NAMES
        return {
            name
            for name, (loop, limit) in self.joined.limited.items()
            if name not in self._given_way
            and any(
                exceeds(limit, loop, self.joined.native(loop), impulses, corrected)
                for corrected in ((False, True) if name in was_open else (False,))
            )
        }

    def _filter_without(
        self,
        names: Set[str],
        sticking: np.ndarray,
        found: tuple[Array, Array],
        write: bool = True,
    ) -> None:
        """Close the loops but the named ones, which give way, where they were found.

        Where that was done in this step already, it is done anew from the start of the step.
        """
        self._take_back()
        if len(names) < len(self.joined.loops):
            names_now, forces = sorted(names), self._world.sticking_forces
            led = not self._attempts.failed  # nor from where a step before has begun
            self._impulses = self.system.filter(sticking, names_now, False, found, write, led)
            self.filter = self.system.known_filter
            while len(sticking) and False in (presses := self._presses(forces)):
                sticking = sticking[presses]
                forces = [force for force, pressed in zip(forces, presses, strict=True) if pressed]
                self._take_back()
                self._impulses = self.system.filter(sticking, names_now, False, found, write, led)
        else:
            self._start_from(chain(*found), self.system.dt)
        self._given_way = set(names)

    def _take_back(self) -> None:
        """Have the system at the start of the step again, from which closing loops is led."""
        if self.filter is not None and (self._impulses is not None or self._sticking_count >= 0):
            self.filter.take_back()
        self._impulses, self._sticking_count = None, UNKNOWN

    def _presses(self, forces: list[float]) -> list[bool]:
        """Which sticking points still press after the filter's last call.

        Contacts cannot pull: where loops are pulled at by more than a point has carried in Bullet's
        step [N], as by a crane whose rope Bullet takes to stretch, what rests there is lifted.
        """
        known = self.filter
        if known is None:
            return [True] * len(forces)
        dt, room = self.system.dt, UNEVEN * max(forces)
        pulls = known.pulls(len(forces), dt)
        return [pull <= dt * (force + room) for pull, force in zip(pulls, forces, strict=True)]

    def _shared(self, impulses: Impulses) -> Impulses:
        """Impulses of the filter, less what loops do to one another in Bullet's step in vain.

        As of a door's handle that is led on its arc: along the leaf Bullet pulls at the hinge.
        """
        if impulses.unique:
            return impulses
        if self._eased is None or self._eased[0] is not impulses:
            joined, nothing, wrenches = self.joined, impulses.nothing, dict[str, Array]()
            for loop in joined.loops.values():
                given_way = loop.name in self._given_way or loop.number not in joined.models
                if given_way or loop.kind not in PULLED:
                    continue
                pull = on_parent(loop, joined.native(loop), nothing, corrected=False)
                if pull is not None:
                    wrenches[loop.name] = impulses.dt * np.hstack([pull.moment, pull.force])
            self._eased = impulses, impulses.easing(wrenches)
        return self._eased[1]

    def state_of(self, loop: CreatedConstraint) -> State:
        """Bullet's forces of a constraint with what the filter added in the last step."""
        self.plain = None  # the next step forgets them
        return self.joined.state_of(loop, self._find_state)

    def _find_state(self, loop: CreatedConstraint) -> State:
        native = self.joined.native(loop)
        given_way = loop.name in self._given_way or loop.number not in self.joined.models
        if self.impulses is None or given_way or self._attempts.pause > 0:
            return native.state
        return constraint_state(loop, native, self._shared(self.impulses))


def lead_of(erp: float, client: int) -> float:
    """How far ahead Bullet is told a frame to be so that in a step it moves as far as that does.

    In ways of a step. Each substep closes the share ``erp`` of what the one before has left.
    """
    parts = int(pybullet.getPhysicsEngineParameters(physicsClientId=client)["numSubSteps"])
    closed = 1.0 - (1.0 - erp) ** max(parts, 1)
    return 1.0 / closed - 1.0 if 0.0 < erp < 1.0 else 0.0
