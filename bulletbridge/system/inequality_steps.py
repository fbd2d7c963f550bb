"""Motors, limits, contacts and force limits of a system: their steps, and their forces in these."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from bulletbridge.constraints.arrays import Encoded
from bulletbridge.constraints.encode import encode_places
from bulletbridge.engine.records import AT_LIMIT, DONE, OVERRUN
from bulletbridge.engine.stepper import Solver
from bulletbridge.errors import ModelError, UnsupportedError, warn_user
from bulletbridge.inequalities.arrays import APART, MOVING, PUSHED, ROOM
from bulletbridge.inequalities.constraints import inequality_constraints_of, joint_limits_of
from bulletbridge.inequalities.encode import place_turns
from bulletbridge.inequalities.motor_limit_rows import SHALLOW
from bulletbridge.inequalities.motors import Motors
from bulletbridge.inequalities.rigid_limits import GAVE_WAY, RigidLimits
from bulletbridge.inequalities.stepper import InequalityStepper, Surroundings
from bulletbridge.inequalities.steps_kernel import Trace
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.numerics.cone_program import ReferenceSolver
from bulletbridge.numerics.memory import Remembered
from bulletbridge.numerics.records import Array
from bulletbridge.system.active_constraints import ActiveConstraints
from bulletbridge.system.holding import NOBODY, Holding
from bulletbridge.system.options import ImpulseSolver, Limits
from bulletbridge.system.shown_world import ShownWorld

LED_PAST = (
    "step to t = {t:.6g} s: the {side} limit of {joint}, at {limit:.6g}, is passed: what is driven,"
    " by {drives}, leads it on, and nothing that is free could stop it; change the motion, let"
    " a motor with a force drive in its place, or load with limits=False; no more is told of it"
)
"""What is said where what is driven leads a joint past its limit."""
LED_INTO = (
    "step to t = {t:.6g} s: {what} are led into each other: what is driven, by {drives}, leads them"
    " on, and nothing that is free could stop it; change the motion, let a motor with a force drive"
    " in its place, or have them not collide; no more is told of it"
)
"""What is said where what is driven leads bodies into each other."""
OVERRAN = (
    "step to t = {t:.6g} s: closing loops leads {what}, in whatever parts the step is made; the"
    " next steps take it back as far as loops let them; look for constraints that were set"
    " elsewhere, for gaps that are pulled shut, and for a start where ways of a mechanism part, or"
    " use a smaller dt; no more is told of it"
)
"""What is said where nothing that was tried closes loops within limits."""
LAW_MISSED = (
    "step to t = {t:.6g} s: no impulses were found that meet the law of {what}, which is missed by"
    " {left:.3g} m/s or rad/s: bodies stick or slide there as friction or limits could not have it,"
    " as where they jam; use a smaller dt, less friction or motors with less force, and see"
    " complementarity.residual for how far later steps are off; no more is told of it"
)
"""What is said where impulses miss Coulomb's law, or that of a limit or motor, by much."""


def led_into(step: InequalityStepper) -> Iterator[tuple[int, int]]:
    """Pairs of bodies that the last step led further into each other than its rows let it."""
    points, nv = step.contact_points, step.solver.mechanism.nv
    if not len(points):
        return
    v, apart = step.impulses[PUSHED, :nv], np.zeros(nv)
    if step.report[APART]:
        apart = step.impulses[MOVING, :nv]
    found = step.contact_rows[: len(points)]
    room = step.impulses[ROOM, found["normal"]]
    rates = step.rows[found["normal"]] @ (v + apart)
    nearer = step.dt * (rates + room) < -SHALLOW
    for k in np.flatnonzero(nearer & (found["compliance"] == 0.0)):
        point = points[k]
        # by what it moves with, or by what impulses gave
        rate = min(float(rates[k]), step.gained(int(k), apart))
        if point["gap"] + step.dt * rate < -SHALLOW:
            yield int(point["body_a"]), int(point["body_b"])


def led_past(step: InequalityStepper) -> Iterator[tuple[int, str, float]]:
    """Axes that the last step led further past a limit than its rows let it; side and limit.

    Prescribed motions are met whatever stands in the way: nothing that is free can stop them.
    """
    if not len(step.joint_limits):
        return
    acting = step.joint_limits[step.joint_limits["row"] >= 0]
    q, _, _ = step.start
    rows, v = step.rows, step.impulses[PUSHED, : step.solver.mechanism.nv]
    for limit in acting:
        axis, rate = int(limit["axis"]), float(rows[limit["row"]] @ v)
        if axis >= 0:
            place = float(q[step.solver.axes[axis]["q"]])
        else:
            along = step.positions[-1 - axis]
            place, rate = float(along["g"]), rate + float(along["g_t"])
        end = place + step.dt * rate
        below = end < min(float(limit["lower"]), place) - SHALLOW
        if below or end > max(float(limit["upper"]), place) + SHALLOW:
            side = "lower" if below else "upper"
            yield axis, side, float(limit[side])


class InequalitySteps:
    """Steps of a system with all that acts by inequalities, and what is remembered of the last one.

    A ``stepping.Stepper``.

    Args:
        active: The rigid constraints, and the state that moves.
        shown: Where contacts are found.
        contacts: Whether contacts act.
        limits: Whether joint limits act, and whether every step has them.
        impulse_solver: What solves for the impulses.

    Attributes:
        motors: Motors of the joints, and friction.
        holding: Which constraints with a force limit hold.
        limits: Whether joint limits act.
        finds_contacts: Whether contacts act.
        force_limits_act: Whether constraints with a force limit act.

    Raises:
        ModelError: Contacts are wanted of a beam.
    """

    tries_others = False

    def __init__(
        self,
        active: ActiveConstraints,
        shown: ShownWorld,
        contacts: bool,
        limits: Limits,
        impulse_solver: ImpulseSolver,
    ) -> None:
        mechanism = active.mechanism
        beams = [name for name, joint in mechanism.joints.items() if joint.kind == "beam"]
        if contacts and beams:
            raise ModelError(
                f"'{beams[0]}' is a modal beam, which knows no contacts; leave contacts out, or use"
                " the chain of segments without 'beams'"
            )
        self._active, self._shown = active, shown
        self.limits = bool(limits)
        self._constraints = inequality_constraints_of(mechanism, active.constraints)
        self.holding = Holding(active, self._constraints)
        self.finds_contacts = contacts
        self.force_limits_act = len(self._constraints.force_limits) > 0
        turns = self.limits and self._constraints.turns
        self._always = contacts or self._constraints.any or turns or limits == "always"
        loop_axes, limited = self._constraints.loop_axes, self._constraints.force_limited
        self.motors = Motors(mechanism, loop_axes)
        self._given = Remembered(  # what may be set of them
            [
                self.motors.records,
                self._constraints.force_limits,
                limited.loops,
                limited.couplings,
                loop_axes.encoded.loops,
            ]
        )
        self._stepper: InequalityStepper | None = None
        self._told = set[tuple[str, object]]()  # what was said, and of which axis or bodies
        self._spare: InequalityStepper | None = None  # while others hold than those of this one
        self._reference = ReferenceSolver() if impulse_solver == "clarabel" else None
        self._places: dict[str, list[tuple[Encoded, str]]] = {}  # rows of loops that were placed

    @property
    def act(self) -> bool:
        """Whether anything acts by inequalities in every step."""
        return self._always or self.motors.any_on

    @property
    def are_contacts_of_bodies(self) -> bool:
        """Whether nothing but contacts acts, of bodies that hang from the world each."""
        hang = bool(np.all(self._active.mechanism.bodies["parent"][1:] == 0))
        return hang and self.finds_contacts and not (self._constraints.any or self.motors.any_on)

    @property
    def are_within_islands(self) -> bool:
        """Whether nothing acts that may join what no rigid constraint does."""
        return not (self.finds_contacts or self.force_limits_act)

    def solver_holding(self, names: frozenset[str]) -> Solver:
        """The solver in which the named constraints with a force limit are rigid, at the state."""
        solver = self._active.solver
        rigid = self.holding.rigid_for(names) if names else None
        if rigid is None:
            return solver
        rigid.solver.put(solver.q, solver.v, solver.t)
        return rigid.solver

    @property
    def solvers(self) -> tuple[Solver, ...]:
        """Solvers that step besides that of the rigid constraints."""
        return self.holding.solvers

    @property
    def surroundings(self) -> Surroundings | None:
        """What steps may touch; None where no contacts act."""
        return self._shown.surroundings() if self.finds_contacts else None

    def take_contacts(self) -> None:
        """Have contacts act, of which a copy finds none before it is given a world."""
        self.finds_contacts = self._always = True

    def require_none(self) -> None:
        """Refuse to go on where any act, of which there are no derivatives."""
        if self.act:
            raise UnsupportedError(
                "motors, joint limits and friction, contacts and force limits act, whose"
                " derivatives are not known; switch them off, or use central differences of step()"
            )

    @property
    def latest(self) -> InequalityStepper | None:
        """What the latest step with inequalities was made by; None before the first."""
        return self._stepper

    @property
    def last(self) -> InequalityStepper | None:
        """The last step if it had inequalities and the state is still that after it."""
        step = self._stepper
        return step if step is not None and step.led_to(self._active.solver.state) else None

    @property
    def last_of_these(self) -> InequalityStepper | None:
        """The last step, as ``last``, if no constraint has come or gone since."""
        step = self.last
        if step is None or step.rigid is None:
            return step if step is not None and step.solver is self._active.solver else None
        return step if self.holding.is_by(step.rigid) else None

    @property
    def are_at_limit(self) -> bool:
        """Whether a joint limit pushed in the step that led here: it will in the next one too."""
        if self._stepper is None:
            return False
        step = self.last
        return step is not None and self.limits and step.limits_push

    @property
    def in_the_way(self) -> str:
        """Limits and contacts that pushed when drives could not lead on, in words, or none.

        It is for the step that has just failed.
        """
        step, solver = self._stepper, self._active.solver
        if step is None or not step.has_failed or not solver.control[0]["driven"]:
            return ""
        pushing = step.joint_limits[step.joint_limits["impulse"] != 0.0]
        found = [f"the limit of {self._name_of(int(axis))}" for axis in pushing["axis"]]
        if len(step.contact_points):
            found.append("contacts")
        return ", ".join(found)

    def _name_of(self, axis: int) -> str:
        """What a joint limit is of, in words."""
        if axis < 0:
            return f"'{list(self._constraints.loop_axes.encoded.rows)[-1 - axis]}'"
        joints = self._active.mechanism.joints.values()
        return next(f"joint '{joint.name}'" for joint in joints if joint.v.start == axis)

    def _tell(self, step: InequalityStepper) -> None:
        """Warn of what the last step could not stop."""
        if self._active.solver.encoded.motions:
            for axis, side, limit in led_past(step):
                told = {"joint": self._name_of(axis), "side": side, "limit": limit}
                self._tell_once(LED_PAST, axis, drives=self._drives, **told)
            for which in led_into(step):
                what = self._names_of_bodies(which)
                self._tell_once(LED_INTO, which, what=what, drives=self._drives)
        if not (step.overran or step.unmet):
            return
        for which in sorted(step.overran):
            if len(which) == 1:
                what = f"{self._name_of(which[0])} past its limit"
            else:
                what = f"{self._names_of_bodies(which)} into each other"
            self._tell_once(OVERRAN, which, what=what)
        for which, left in sorted(step.unmet.items()):
            self._tell_once(LAW_MISSED, which, what=self._touching_or_driven(which), left=left)
        step.overran.clear()
        step.unmet.clear()

    def _tell_once(self, said: str, of: object, **told: object) -> None:
        """Warn of the last step, unless that was said of the same axis or bodies."""
        if (said, of) not in self._told:
            self._told.add((said, of))
            warn_user(said.format(t=self._active.t, **told))

    def _touching_or_driven(self, which: tuple[int, ...]) -> str:
        """What has a law, as in ``InequalityStepper.unmet``, in words."""
        if len(which) == 2:
            return f"the contact of {self._names_of_bodies(which)}"
        if which:
            return f"the limit or motor of {self._name_of(which[0])}"
        return "contacts of many bodies"

    def _names_of_bodies(self, bodies: tuple[int, ...]) -> str:
        """First links of two bodies, in words."""
        names = self._active.mechanism.first_links
        a, b = (names[body] for body in bodies)
        return f"'{a}' and '{b}'"

    @property
    def _drives(self) -> str:
        """Names of what drives."""
        driven = (c for c in self._active.constraints if getattr(c, "motion", None))
        return ", ".join(f"'{c.name}'" for c in driven)

    def forget(self, impulses: bool = True) -> None:
        """Forget what holds, and impulses to start from, loads and turns."""
        self._told.clear()
        self.holding.forget(decisions=impulses)
        for step in (self._stepper, self._spare) if impulses else ():
            if step is not None:
                step.forget()

    def forget_energy(self) -> None:
        """Count energy anew from the end of the next step: weights are others than they were."""
        for step in (self._stepper, self._spare):
            if step is not None:
                step.forget_energy()

    def memory(self) -> dict[str, Any]:
        """What the next steps go by."""
        step, holding = self._stepper, self.holding.memory(self._stepper)
        rigid = self.holding.rigid if holding is not None and holding.stepped else None
        if step is not None and step.solver is not self._solver_of(rigid):
            step = self._successor(rigid)  # constraints have come or gone since
        bounded = None if step is None else step.memory()
        return {"bounded": bounded, "limits": self._given.copy(), "holding": holding}

    def recall(self, parts: dict[str, Any]) -> None:
        """Go on from what ``memory`` returned."""
        self._given.put_back(parts["limits"])
        self.motors.recall()
        self.holding.recall(parts["holding"])
        known = [self._stepper, self._spare]
        self._stepper = self._spare = None
        self.motors.exerted = None
        if parts["bounded"] is not None:
            rigid = self.holding.rigid if parts["holding"] and parts["holding"].stepped else None
            solver = self._solver_of(rigid)
            fits = [step for step in known if step is not None and step.solver is solver]
            step = fits[0] if fits else self._make_stepper(rigid)
            step.recall(parts["bounded"])
            self._stepper, self.motors.exerted = step, step.motor_forces

    def place(self, name: str, frame: np.ndarray) -> None:
        """Follow a loop whose frame a was put elsewhere."""
        if name not in self._places:
            parts = self._constraints.force_limited, self._constraints.loop_axes.encoded
            self._places[name] = [
                (part, row)
                for part in parts
                for row in part.rows
                if name in (row, row.rpartition("/")[0])  # loop/turn and loop/travel too
            ]
        for part, row in self._places[name]:
            part.place(row, frame)
        self.holding.place(name, frame)

    def rebase(self, mechanism: Mechanism) -> None:
        """Follow links that stand still elsewhere."""
        self.holding.rebase(mechanism)
        for part in (self._constraints.force_limited, self._constraints.loop_axes.encoded):
            encode_places(part, mechanism, self._active.constraints)
        place_turns(self._constraints.loop_axes.encoded.loops, mechanism)

    def revise(self, mechanism: Mechanism) -> None:
        """Follow other masses, places and friction of the same tree; what holds is found anew."""
        before = self._active.mechanism.joints
        for name, joint in mechanism.joints.items():
            if joint.friction != before[name].friction:
                self.motors.follow_friction(joint)
        self.forget()

    def set_offset(self, name: str, offset: float) -> bool:
        """Follow a coupling that was given another offset; whether it has a force limit."""
        self.holding.set_offset(name, offset)
        return name in self._constraints.force_limited.rows

    def set_max_force(self, name: str, force: float) -> None:
        """Give a constraint with a force limit another largest force [N or N m].

        Raises:
            ModelError: There is no such constraint, or it was made without a force limit.
        """
        limited = list(self._constraints.force_limited.rows)
        if name not in limited or not 0.0 <= force < np.inf:
            raise ModelError(
                f"max_force {force} of '{name}' is not possible; name a constraint that was made"
                " with a max_force, and give a finite number that is not negative"
            )
        self._constraints.force_limits[limited.index(name)]["force"] = force

    def step(self) -> int:
        """One step; the failure that stopped it, or DONE.

        Raises:
            WorldError: Contacts act, and there is no world to find them in.
        """
        if not self.force_limits_act:
            step = self._stepper
            if step is None or step.solver is not self._active.solver:
                step = self._take_stepper(None)
            failure = step.advance(self.surroundings)
            if failure == DONE:
                self._tell(step)
            return failure
        names = self.holding.names_to_hold()
        while True:
            rigid = self.holding.rigid_for(names) if names else None
            step = self._take_stepper(rigid)
            failure = self._advance(step)
            if failure == GAVE_WAY:
                names -= {step.gave_way}
            elif failure == DONE or rigid is None:
                break
            else:
                self.holding.give_up()
                names = NOBODY
        if failure == DONE:
            self.holding.note_done(step, names if rigid is not None else NOBODY)
            self._tell(step)
        return failure

    @property
    def lone(self) -> Callable[[tuple[()]], int] | None:
        """The next step as one call, which returns a failure, or DONE; None where it takes more."""
        step = self._stepper
        if self.force_limits_act or self.finds_contacts or step is None:
            return None
        return step.lone if step.solver is self._active.solver else None

    def step_watched(self) -> int | None:
        """One step in which limits act if one is met, where that takes one call of a kernel.

        Returns:
            The failure that stopped it, or DONE; None where it takes more, with nothing done.
        """
        solver, step = self._active.solver, self._stepper
        free = solver.one_step()
        if free is None or step is None or step.solver is not solver:
            return None
        call = step.watched(free)
        if call is None:
            return None
        failure = call(())
        if failure and not step.had_limits:
            failure = solver.finish_step(failure)
            return self.step() if failure == AT_LIMIT else failure
        if failure:
            failure = step.finish_alone(failure)
            if not failure:
                self._tell(step)
        return failure

    def roll(
        self, done: int, steps: int, every: int, table: Array, while_pushed: bool = False
    ) -> tuple[int, int]:
        """Advance in one call, unless time drives steps or it is found out what holds.

        Args:
            done: Steps that were made before.
            steps: How many there shall be, with those.
            every: One state in so many is kept,
            table: as a line here.
            while_pushed: Whether to end once no limit pushes, where limits are all that acts.

        Returns:
            As ``stepping.Stepper.roll``.
        """
        if self.force_limits_act or self._is_moved:
            return DONE, done
        step = self._take_stepper(None)
        trace = Trace(table, every, done, int(while_pushed))
        try:
            failure, done = step.roll(self.surroundings, steps, trace)
        except BaseException:
            self._shown.show(self._active.solver)
            raise
        if not failure:
            self._tell(step)
        return failure, done

    @property
    def _is_moved(self) -> bool:
        """Whether time drives steps."""
        moved = self._constraints.loop_axes.encoded.motions
        return bool(moved) or self._active.solver.is_prescribed

    @property
    def of_joints_alone(self) -> InequalityStepper | None:
        """The steps to go on with, if motors, friction and limits of joints are all that acts."""
        if self.finds_contacts or self.force_limits_act or not self.act:
            return None
        step = self._take_stepper(None)
        return step if step.can_be_traced else None

    @property
    def of_contacts(self) -> InequalityStepper | None:
        """The steps to go on with, if contacts act, and nothing that time or force limits move."""
        if not self.finds_contacts or self.force_limits_act or self._is_moved:
            return None
        return self._take_stepper(None)

    def _solver_of(self, rigid: RigidLimits | None) -> Solver:
        return self._active.solver if rigid is None else rigid.solver

    @property
    def joint_limits(self) -> np.ndarray:
        """Records (n,) of the limits that act, of joints and of free motions of loops."""
        loop_axes = self._constraints.loop_axes
        return joint_limits_of(self._active.mechanism, loop_axes, self.limits)

    def _make_stepper(self, rigid: RigidLimits | None) -> InequalityStepper:
        """Steps of the rigid constraints, or of those with force limits that hold besides."""
        others = self._constraints, self._reference, rigid
        records = self.motors.records, self.joint_limits
        return InequalityStepper(self._solver_of(rigid), *records, *others)

    def _take_stepper(self, rigid: RigidLimits | None) -> InequalityStepper:
        """The steps to go on with; what the last ones were by goes over to them."""
        step = self._stepper
        if step is None or step.solver is not self._solver_of(rigid):
            before, step = step, self._successor(rigid)
            self._stepper, self._spare = step, before
            self.motors.exerted = step.motor_forces
            if rigid is not None:
                rigid.hold(rigid.holding)
        if rigid is None and self.force_limits_act:
            self._constraints.force_limits["holds"] = 0
        return step

    def _successor(self, rigid: RigidLimits | None) -> InequalityStepper:
        """Steps by another solver than the last ones, which go on from those."""
        before, spare, solver = self._stepper, self._spare, self._solver_of(rigid)
        fits = spare is not None and spare.solver is solver
        new = spare if spare is not None and fits else self._make_stepper(rigid)
        if before is not None and self.force_limits_act:
            new.adopt(before)
        elif before is not None:  # turns are counted on when constraints come and go
            new.positions[:] = before.positions
        return new

    def _advance(self, step: InequalityStepper) -> int:
        """One step with what is at hand; the failure that stopped it, or DONE."""
        if step.rigid is None:
            return step.advance(self.surroundings)
        here, there = self._active.solver, step.solver
        there.tau = here.tau
        if here.state.tobytes() != there.state.tobytes():  # a tenth of a comparison by numbers
            there.put(here.q, here.v, here.t)
        failure = step.advance(self.surroundings)
        in_the_way = len(step.joint_limits) or len(step.contact_points)
        if failure == DONE and there.encoded.motions and in_the_way:
            if any(led_past(step)) or any(led_into(step)):
                failure = OVERRUN  # a drive with a force limit can be stopped
        if failure == DONE:
            here.put(there.q, there.v, there.t)
        return failure
