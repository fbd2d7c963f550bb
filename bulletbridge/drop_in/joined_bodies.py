"""Bodies that constraints join: read as one system, and followed where the program puts them."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pybullet

from bulletbridge.bullet.collision_shapes import told_shapes
from bulletbridge.bullet.constraints import (
    HINGE_SPAN,
    CreatedConstraint,
    gear_parts,
    info_of,
    modelled,
)
from bulletbridge.bullet.reader import BulletBodies, read_bullet
from bulletbridge.bullet.state import Place as Pose
from bulletbridge.bullet.state import Shift, way_between
from bulletbridge.bullet.worlds import gravity, joint_ids, readable
from bulletbridge.constraints.joints import Coupling, LoopJoint
from bulletbridge.drop_in.forces import POINTS, Native, State
from bulletbridge.drop_in.moved_frame import NOTHING_SHIFTED, FrameMemory, MovedFrame
from bulletbridge.engine.workspace import Tolerances
from bulletbridge.errors import AssemblyError, ModelError, unheard, warn_user
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.numerics.records import Array
from bulletbridge.system.evaluation import Gap
from bulletbridge.system.options import WITH_INEQUALITIES
from bulletbridge.system.saved import SavedState
from bulletbridge.system.system import System

Place = tuple[int, int]
"""A body and a link or joint of it, by Bullet's numbers."""
Model = LoopJoint | Coupling
T = TypeVar("T")
NO_NAMES: Set[str] = frozenset()
ALONE = -1
"""Number of a group that needs no compiled call for its step."""
ROUNDED = 1e-5
"""Levers, in lengths of the mechanism, at which a constraint turns no joint: frames that a program
takes from poses that it is told lie off the axes of joints by the digits of its URDF."""

OUT_OF_REACH = 1e-6
"""Gap, in lengths of the mechanism, that Bullet's single precision does not make."""
OF_A_METRE = 2 * float(np.finfo(np.float32).eps)
"""Gap [m] that it does make between places a metre from the origin, of robots of any size."""
LEAP = 1.0
"""Way [m], if not the mechanism's length, that nothing goes in a step with a velocity."""

OPENS = (
    "what would close it moves its bodies by less than a thousandth of what else they do, and"
    " counts as the rounding of frames, as of axes that are parallel but for the digits of a file;"
    " if it is to hold there, move its pivot away from the axis that it is beside, if not, onto it"
)
"""Note of a constraint that has rows left out, and is not just open by how frames are rounded."""


class Reading:
    """What closing loops takes of bodies and constraints: masses and frames, all else is Bullet's.

    Attributes:
        exact: Whether motors, limits and contacts are part of the system, not loops alone.
    """

    exact = False

    def __init__(self, client: int) -> None:
        self._client = client

    def bodies(
        self, names: Mapping[str, int], joints: Mapping[Place, str]
    ) -> tuple[BulletBodies, Mechanism]:
        """Read bodies by names, without what acts on them; joints are named too."""
        world = read_bullet(readable(dict(names)), self._client, joint_damping=False)
        return world, world.mechanism

    def constraint(self, loop: CreatedConstraint, model: Model) -> Model:
        """The constraint as it is: one with a force limit is rigid, or left out of a step."""
        return model


class Limited(NamedTuple):
    """A loop with a force limit."""

    loop: CreatedConstraint
    limit: float


class JoinedMemory(NamedTuple):
    """A state of joined bodies to go on from."""

    bodies: frozenset[int]
    settings: tuple[Any, ...]
    frames: dict[int, FrameMemory]
    bases: dict[int, tuple[Pose, Pose]]
    read_first: Mechanism
    state: SavedState
    begun_at: tuple[float, ...] | None
    disturbed: bool
    moved: frozenset[int]
    moving: frozenset[int]


class JoinedBodies:
    """One system for the bodies of an island of constraints.

    Args:
        bodies: Bullet's ids.
        loops: The exact constraints among them.
        client: Physics client.
        reading: What is read of them.

    Attributes:
        bodies: Bullet's ids.
        links, joints: Names in the mechanism, by body and number.
        world: The bodies in Bullet.
        system: The system.
        loops: The constraints by number.
        models: The constraints as the system has them; without those that hold nothing.
        limited: Those of them with a force limit, by name.
        left_out: Constraints that are Bullet's own for the time being.
        parts: How many of the system's steps are a step of the program's (``numSubSteps``).
        frames: Child frames that the program moves, by the number of their constraint.
        standing: Bodies whose base is fixed.
        has_shapes: Whether anything of them can be in contact.
        disturbed: Whether somebody has put the bodies elsewhere since the last step.
        opened: Constraints of which it is told that they open (``OPENS``).

    Raises:
        BulletBridgeError: The bodies or constraints cannot be modelled.
    """

    def __init__(
        self, bodies: Iterable[int], loops: list[CreatedConstraint], client: int, reading: Reading
    ) -> None:
        self._client = client
        names = {f"body{body}": body for body in sorted(bodies)}
        self.bodies = frozenset(names.values())
        self.joints = {place: name for name, place in joint_ids(names, client).items()}
        with unheard():  # inertias are Bullet's, whatever the file says
            self.world, mechanism = reading.bodies(names, self.joints)
        self.links: dict[Place, str] = {
            (port.body_id, place - 1): name
            for port in self.world.ports
            for place, name in enumerate(port.links)
        }
        self._read_first = mechanism  # with fixed bases where they were when they were read
        self.standing = {port.body_id for port in self.world.ports if port.base is not None}
        self.loops = {loop.number: loop for loop in loops}
        self.has_shapes = any(has_shapes(body, client) for body in self.bodies)
        self.frames: dict[int, MovedFrame] = {}
        self.models = {
            loop.number: reading.constraint(loop, self._model(loop))
            for loop in loops
            if not self._is_idle(loop, mechanism)
        }
        self.limited = self._with_limits()
        engine = pybullet.getPhysicsEngineParameters(physicsClientId=client)
        self.parts = max(int(engine["numSubSteps"]), 1) if reading.exact else 1
        for frame in self.frames.values():
            frame.parts = self.parts
        dt = engine["fixedTimeStep"] / self.parts
        self.system = self._system(mechanism, dt, exact=reading.exact)
        if self._let_meet():
            self.system = self._system(mechanism, dt, exact=reading.exact)
        self.left_out: dict[int, Model] = {}
        self.disturbed = True
        self._begun_at: tuple[float, ...] | None = None  # where loops were first closed
        self._states: dict[int, State] = {}
        self._bases_due = False  # whether fixed bases may have been moved
        self.unplaced = set[int]()  # whose frame is elsewhere than in what was recalled last
        self._moved: set[int] = set()  # loops whose child frame was moved since the last step
        self._moving: set[int] = set()  # loops whose frame has a rate
        self._unreached: set[int] = set()  # those that are said to be out of reach
        self.opened = {number for number, loop in self.loops.items() if OPENS in loop.note}

    def _system(self, mechanism: Mechanism, dt: float, *, exact: bool) -> System:
        """The bodies with the constraints as they are modelled now."""
        return System(
            mechanism,
            list(self.models.values()),
            world=self.world,
            dt=dt,
            integrator=WITH_INEQUALITIES,  # Bullet's
            allow_structure=True,
            tolerances=Tolerances(still=ROUNDED, told=math.inf),  # by ``tell_open``, once they do
            contacts="compliant" if exact and self.has_shapes else False,
            limits="always" if exact else False,
        )

    def _let_meet(self) -> bool:
        """Move frames to where joints let them meet, as of linkages drawn side by side; if any.

        Bullet pulls there in vain, and moves as if they met.

        Warns:
            BulletBridgeWarning: Some were moved; it has the loops and how far.
        """
        off, moved = self.system.misplaced_frames(), list[str]()
        for number, model in self.models.items():
            way = off.get(model.name)
            if way is not None and isinstance(model, LoopJoint):
                self.models[number] = replace(model, b=model.b.moved(-way))
                moved.append(f"{model.name} by {float(np.linalg.norm(way)):.3g} m")
        if moved:
            warn_user(
                f"frames are apart where no joint brings them together: {', '.join(moved)}; there"
                " Bullet would pull in vain, and loops are closed as if they met"
            )
        return bool(moved)

    def leave_out(self, numbers: Iterable[int]) -> None:
        """Have a system without some constraints, which are Bullet's own until ``take_in``."""
        for number in numbers:
            self.left_out[number] = self.models.pop(number)
        self._renew()

    def take_in(self) -> None:
        """Have a system with all constraints again."""
        known = {**self.models, **self.left_out}
        self.models = {number: known[number] for number in self.loops if number in known}
        self.left_out.clear()
        self._renew()

    def _renew(self) -> None:
        """Make the system of filtered bodies anew; it is to be shown where they are."""
        old, self.limited = self.system, self._with_limits()
        mechanism, shifts = self.world.follow_bases(self._read_first)
        self.system = self._system(mechanism if shifts else old.mechanism, old.dt, exact=False)
        self.system.gravity = old.gravity
        self._begun_at = None
        if shifts:
            for number in self.frames.keys() & self.models.keys():
                self.frames[number].stop(self.system)
        self._moved |= self.frames.keys() & self.models.keys() & self._moving
        self.disturb()

    def disturb(self) -> None:
        """Note that somebody has put the bodies elsewhere."""
        self._states.clear()
        self.disturbed, self._bases_due = True, bool(self.standing)

    def note_beginning(self) -> None:
        """Note where loops are about to be closed, if for the first time.

        Which rows are redundant, and how they are scaled, is found there.
        """
        self._begun_at = self._begun_at or self._here()

    def begin_anew(self) -> bool:
        """Forget all that steps left behind; False unless bodies are where they began, to the bit.

        Elsewhere they must be read again, for the same steps as of bodies that are read there.
        """
        if self.frames or self._begun_at != self._here():
            return False
        try:
            solver, _ = self.system.compiled()
        except AssemblyError:  # they were never closed
            return False
        solver.put(solver.q.copy(), solver.v.copy(), 0.0)
        self.system.forget()
        self.disturb()
        return True

    def _here(self) -> tuple[float, ...]:
        """Where Bullet has the bodies, and how fast they are."""
        bases = [pybullet.getBasePositionAndOrientation(b, self._client) for b in self.standing]
        return *self.world.numbers(), *(x for pose in bases for part in pose for x in part)

    def finish_step(self) -> None:
        """Note that a step has changed the forces of constraints."""
        self._states.clear()
        if self._moving:
            self.put_back()

    def state_of(
        self, loop: CreatedConstraint, find: Callable[[CreatedConstraint], State]
    ) -> State:
        """Forces of a constraint since the last step, found when they are first asked for."""
        found = self._states.get(loop.number)
        if found is None:
            found = self._states[loop.number] = find(loop)
        return found

    def move_base(self, body: int) -> None:
        """Note that somebody has put a base elsewhere that does not move by itself.

        What hangs on it gets the velocity that brings it along in one step.
        """
        self._bases_due = True
        self._moved |= {n for n in self.frames if body in self.loops[n].bodies}

    def leaps(self, before: Sequence[float], now: Sequence[float]) -> bool:
        """Whether what is moved from one place to another jumps there, and has no velocity."""
        way = math.dist(before, now)
        return way > LEAP and way > self.system.encoded.length

    def frame_leaps(self, number: int, now: Sequence[float]) -> bool:
        """The same of a constraint's frame in the world, since the last step."""
        frame = self.frames.get(number)
        place = None if frame is None else frame.place
        return place is not None and self.leaps(place, now)

    def change(self, loop: CreatedConstraint, moved: bool) -> None:
        """Take over the force limit or the target of a loop, or that its child frame was moved."""
        known = self.loops.get(loop.number)
        if known is None:
            return
        if known is not loop:
            self.loops[loop.number] = loop
            self.limited = self._with_limits()
        if moved and loop.number in self.frames:
            self._moved.add(loop.number)
        if loop.erp > 0.0 and loop.target != known.target:
            self.system.set_offset(loop.name, loop.target)

    def succeed(self, old: CreatedConstraint, new: CreatedConstraint) -> None:
        """Take a constraint for another that was removed, and whose child frame moves.

        ``change`` is to follow, for where it is and what it may exert.
        """
        here, there = old.number, new.number

        def renumbered(known: dict[int, T]) -> dict[int, T]:
            return {there if n == here else n: x for n, x in known.items()}

        self.loops, self.models = renumbered(self.loops), renumbered(self.models)
        self.frames = renumbered(self.frames)
        self.frames[there].belong_to(new)
        self._states.pop(here, None)
        for numbers in (self._moved, self._moving, self.opened):
            if here in numbers:
                numbers.remove(here)
                numbers.add(there)

    def memory(self) -> JoinedMemory:
        """What the next steps go by."""
        return JoinedMemory(
            self.bodies,
            self._settings(),
            {number: frame.memory() for number, frame in self.frames.items()},
            self.world.bases,
            self._read_first,
            self.system.save(world=False),
            self._begun_at,
            self.disturbed,
            frozenset(self._moved),
            frozenset(self._moving),
        )

    def recall(self, memory: JoinedMemory) -> bool:
        """Go on from a memory; False where it is that of other bodies, constraints or frames."""
        frames = {number: frame.memory() for number, frame in self.frames.items()}
        if self._settings() != memory.settings:
            return False
        if memory.bases != self.world.bases:
            read, then = self._read_first, memory.read_first
            self._read_first = self.world.stand_as(memory.bases, read, then)
            self.system.rebase(self.world.standing(self._read_first))
        self._bases_due = bool(self.standing)  # which may have been put elsewhere since
        if frames.keys() != memory.frames.keys():
            return False
        try:
            self.system.restore(self._led_here(memory.state), write=False)
        except ModelError:
            return False
        self.system.gravity = gravity(self._client)
        for number, frame in self.frames.items():
            frame.recall(memory.frames[number])
        self.disturbed, self._begun_at = memory.disturbed, memory.begun_at
        self._moved, self._moving = set(memory.moved), set(memory.moving)
        self.unplaced = {n for n in frames if frames[n].place != memory.frames[n].place}
        self._states.clear()
        return True

    def _led_here(self, state: SavedState) -> SavedState:
        """A state of these bodies, which may have been read anew since, with the frames of now."""
        motions = {self.loops[number].name: frame.motion for number, frame in self.frames.items()}
        sets = (
            kept._replace(
                constraints=tuple(
                    replace(one, motion=motions[one.name])
                    if isinstance(one, LoopJoint) and one.name in motions
                    else one
                    for one in kept.constraints
                )
            )
            for kept in state.sets
        )
        return replace(state, sets=tuple(sets))

    def _settings(self) -> tuple[Any, ...]:
        """What the program may have changed since, which restoring a state does not put back."""
        rigid = {
            number: (replace(loop, max_force=None, unpredicted=False), loop.max_force is None)
            for number, loop in self.loops.items()
        }
        return self.system.dt, rigid

    def native(self, loop: CreatedConstraint) -> Native:
        """Bullet's own forces of a constraint; but of sliders, less what it pulls in vain."""
        state: State = pybullet.getConstraintState(loop.number, self._client)
        twin: State = ()
        if loop.twin >= 0:
            twin = pybullet.getConstraintState(loop.twin, self._client)
        if loop.kind in (*POINTS, pybullet.JOINT_FIXED):
            state = tuple(self.system.carried(loop.name, np.array(state)).tolist())
        elif loop.kind == pybullet.JOINT_REVOLUTE:
            both = self.system.carried(loop.name, np.array([*state, *twin]), HINGE_SPAN).tolist()
            state, twin = tuple(both[:3]), tuple(both[3:])
        return Native(state, twin)

    def gaps(self) -> tuple[Gap, ...]:
        """How far the loops are open where Bullet has the bodies now."""
        return self.system.evaluate(*self.world.state()).gaps

    def rebase_gears(self) -> None:
        """Gears hold rates: after a reset they hold from the new positions on, as Bullet's do.

        Those with an erp go back to where they are to be.
        """
        if not any(isinstance(gear, Coupling) for gear in self.models.values()):
            return
        q, _ = self.world.state()
        for number, gear in self.models.items():
            if isinstance(gear, Coupling):
                loop = self.loops[number]
                offset = loop.target if loop.erp > 0.0 else self._value(gear, q)
                self.system.set_offset(gear.name, offset)

    def close_before_gears(self, given_way: Set[str]) -> bool:
        """Close loops whatever gears hold that hold rates, and have these go on from there.

        Args:
            given_way: Constraints that are left open, too.

        Returns:
            Whether there are such gears; else nothing is done.

        Raises:
            AssemblyError: The loops cannot be closed near where the bodies are.
        """
        gears = self.gears_of_rates
        if gears:
            self.system.filter(open=gears | given_way, led=False)
            self.rebase_gears()
        return bool(gears)

    @property
    def gears_of_rates(self) -> set[str]:
        """Names of rigid gears that hold rates alone, wherever their joints are put."""
        return {
            gear.name
            for number, gear in self.models.items()
            if isinstance(gear, Coupling)
            and not self.loops[number].erp > 0.0
            and gear.max_force is None
        }

    def _value(self, gear: Coupling, q: Array) -> float:
        joints = self.system.mechanism.joints
        return gear.value({name: float(q[joints[name].q.start]) for name in gear.coefficients})

    @property
    def must_be_driven(self) -> bool:
        """Whether frames or bases were moved, or have a rate that may end."""
        return bool(self._moved or self._moving or self._bases_due)

    @property
    def leads_frames(self) -> bool:
        """Whether frames are on their way to where they were moved."""
        return bool(self._moving)

    def drive(self, lead: float = 0.0, steady: bool = False) -> None:
        """Put moved frames where they are now, and stop those that were not moved again.

        Args:
            lead: As of ``MovedFrame.drive``, of those that were moved.
            steady: Whether frames of loops with a force limit have a velocity only as of
                ``MovedFrame.drive``.
        """
        shifts = self.follow_bases()
        for number in self._moved | self._moving:
            loop = self.loops[number]
            limited = loop.max_force is not None
            ahead = lead if number in self._moved else 0.0
            self.frames[number].drive(self.system, shifts, ahead, steady and limited)
            if number in self.models:
                self.frames[number].place_in(self.system)
        self._moved, self._moving = set(), self._moved

    def tell_unreached(self) -> None:
        """Say which rigid constraints no joint closes where they, or others, were moved to.

        What stays between them there counts as rounded, as long as it is a thousandth of the
        mechanism.

        Warns:
            BulletBridgeWarning: There are some; each is told once.
        """
        moved = [str(loop.number) for loop in self.loops.values() if loop.moving]
        rigid = [loop for loop in self.loops.values() if loop.max_force is None]
        if not moved or self._unreached.issuperset(loop.number for loop in rigid):
            return
        if self.system.decision.widest <= OUT_OF_REACH:
            return  # nothing may stay open by more
        gaps = self._open_by(self.system.q)
        for loop in rigid:
            if loop.name in gaps and loop.number not in self._unreached:
                self._unreached.add(loop.number)
                way = "was moved to where" if loop.moving else "is where"
                since = "" if loop.moving else f" since constraint {', '.join(moved)} was moved"
                warn_user(
                    f"constraint {loop.number} {way} no joint brings its bodies{since}: they stay"
                    f" {gaps[loop.name]} apart; move pivots along what bodies can follow"
                )

    def _open_by(self, q: Array) -> dict[str, str]:
        """How far constraints are open by more than single precision makes, of those that are."""
        rounding = max(OUT_OF_REACH * self.system.encoded.length, OF_A_METRE)
        found = dict[str, str]()
        for name, (metres, radians) in self.system.widths(q).items():
            way, turn = metres / rounding, radians / OUT_OF_REACH
            if max(way, turn) > 1.0:
                found[name] = f"{metres:.3g} m" if way > turn else f"{radians:.3g} rad"
        return found

    @property
    def _opening(self) -> dict[str, int]:
        """Rigid constraints that may open by more than frames are rounded by, not yet told of."""
        found = self.system.opening(OUT_OF_REACH)
        if not found:
            return {}
        return {
            loop.name: number
            for number, loop in self.loops.items()
            if loop.name in found and loop.max_force is None and number not in self.opened
        }

    @property
    def watches(self) -> bool:
        """Whether gaps are to be looked at after each step."""
        return bool(self._opening)

    def tell_open(self) -> None:
        """Say which constraints a step has left open by more than frames are rounded by.

        Warns:
            BulletBridgeWarning: There are some; each is told once.
        """
        opening = self._opening
        if not opening:
            return
        told = {
            opening[name]: f"constraint {opening[name]} opens, by {by} so far"
            for name, by in self._open_by(self.world.state()[0]).items()
            if name in opening
        }
        if told:
            self.opened |= told.keys()
            warn_user(f"{', '.join(told.values())}: {OPENS}")

    def put_back(self) -> None:
        """Tell Bullet again where moved frames are."""
        for number in self._moving:
            self.frames[number].put_back()

    def follow_bases(self) -> Mapping[int, Shift]:
        """Put fixed bases where Bullet has them now; how they were moved as the others look on.

        If other bodies were put elsewhere too, all starts anew where it is, without velocity.
        """
        if not self._bases_due:
            return NOTHING_SHIFTED
        mechanism, shifts = self.world.follow_bases(self._read_first)
        self._bases_due = bool(shifts)  # whether they come to rest is asked once more
        if not shifts:
            return shifts
        self.system.rebase(mechanism)
        driven = set[int]() if self.disturbed else self._moved | self._moving
        for number in self.frames.keys() - driven:
            self.frames[number].stop(self.system)
        return NOTHING_SHIFTED if self.disturbed else shifts

    def moved_bases(self, before: Mapping[int, Pose]) -> str:
        """What to say of a step that fails: which fixed bases were moved since the last one.

        Nothing of those that no constraint holds to anything else.

        Args:
            before: Where those that were moved had been, by body.
        """
        owner, told = {name: body for (body, _), name in self.links.items()}, list[str]()
        models = [model for model in self.models.values() if isinstance(model, LoopJoint)]
        ends = [{owner.get(end.link) for end in (model.a, model.b)} for model in models]
        for body in sorted(before.keys() & self.standing):
            now = pybullet.getBasePositionAndOrientation(body, self._client)
            way, turn = way_between(before[body], now)
            held = any(body in joined and len(joined) > 1 for joined in ends)
            if held and max(way, turn) > 0.0:
                told.append(f"the base of body {body} by {way:.3g} m and {turn:.3g} rad")
        if not told:
            return ""
        return (
            f"; the program, or a velocity that it gave, moved {' and '.join(told)} since the last"
            " step, which what constraints hold to it has to follow: move it to where joints let"
            " that follow, or by less at a time"
        )

    def _with_limits(self) -> dict[str, Limited]:
        """Those that hold something, up to a force limit."""
        return {
            loop.name: Limited(loop, loop.max_force)
            for number, loop in self.loops.items()
            if loop.max_force is not None and number in self.models
        }

    def _is_idle(self, loop: CreatedConstraint, mechanism: Mechanism) -> bool:
        """Whether a constraint joins what is one rigid body anyway, or what stands still."""
        if loop.kind == pybullet.JOINT_GEAR:
            return False
        info = info_of(loop.number, self._client)
        ends = [
            0 if end[0] < 0 else mechanism.link(self.links[end]).body
            for end in (info[:2], info[2:4])
        ]
        return ends[0] == ends[1]

    def _model(self, loop: CreatedConstraint) -> Model:
        """A constraint of Bullet as ours, rigid."""
        if loop.kind == pybullet.JOINT_GEAR:
            return self._gear(loop)
        motion = None
        if loop.moving:
            self.frames[loop.number] = MovedFrame(loop, self.links, self._client)
            motion = self.frames[loop.number].motion
        return modelled(loop, self.links, motion, self._client)

    def _gear(self, loop: CreatedConstraint) -> Coupling:
        """A gear of Bullet as ours.

        Raises:
            ModelError: One of its joints does not move by one coordinate.
        """
        coefficients: dict[str, float] = {}
        for (body, joint), factor in gear_parts(loop, self._client).items():
            name = self.joints.get((body, joint), "")
            joints = self.world.mechanism.joints
            if name not in joints or not joints[name].is_single:
                raise ModelError(
                    f"{loop.name} is a gear of joint {joint} of body {body}, which neither turns"
                    " nor slides"
                )
            coefficients[name] = factor
        return Coupling(loop.name, coefficients, offset=loop.target if loop.erp > 0.0 else 0.0)


def has_shapes(body: int, client: int) -> bool:
    """Whether anything of the body can be in contact."""
    links = range(-1, pybullet.getNumJoints(body, physicsClientId=client))
    return any(told_shapes(body, link, client) != () for link in links)


def named(bodies: frozenset[int]) -> str:
    """Bodies by their numbers."""
    numbers = sorted(bodies)
    return f"body {numbers[0]}" if len(numbers) == 1 else f"bodies {numbers}"
