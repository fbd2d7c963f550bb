"""Motors, limits, contacts and force limits of a system, and their forces in the last step."""

from typing import Any

import numpy as np

from bulletbridge.engine.records import DONE
from bulletbridge.engine.stepper import Solver
from bulletbridge.errors import ModelError, WorldError
from bulletbridge.formulations.adaptive import Adaptive
from bulletbridge.formulations.python_stepper import PythonStep
from bulletbridge.inequalities.constraints import (
    Complementarity,
    inequality_constraints_of,
    joint_limits_of,
)
from bulletbridge.inequalities.motors import Motors
from bulletbridge.inequalities.rigid_limits import GAVE_WAY, RigidLimits
from bulletbridge.inequalities.stepper import NO_CONTACTS, InequalityStepper
from bulletbridge.numerics.cone_program import ReferenceSolver
from bulletbridge.numerics.memory import Remembered
from bulletbridge.system.contact_report import (
    Contact,
    JointLoad,
    contacts_of,
    joint_loads,
    limits_push,
    loaded_reactions,
)
from bulletbridge.system.evaluation import Reaction
from bulletbridge.system.holding import NOBODY, HoldingState
from bulletbridge.system.options import WITH_INEQUALITIES, ImpulseSolver, Integrator, Limits, World

NEED_EULER = (
    "motors, limits, joint friction, contacts and force limits of constraints are part of steps of"
    " the projector with the integrator semi_implicit_euler; leave integrator, formulation and"
    " velocity_filter out"
)


class InequalityState(HoldingState):
    """A closed state with motors, joint friction, limits, contacts and force limits."""

    _python: Adaptive | PythonStep | None
    _given_integrator: Integrator | None

    def _set_inequalities(
        self, world: World | None, contacts: bool, limits: Limits, impulse_solver: ImpulseSolver
    ) -> None:
        """Take the options of ``System``.

        Raises:
            ModelError: A name or number is impossible.
        """
        self._world, self._write = world, None if world is None else world.write
        self._world_memory: bytes | None = None  # for a world that is still to be given
        beams = [name for name, joint in self.mechanism.joints.items() if joint.kind == "beam"]
        if contacts and beams:
            raise ModelError(
                f"'{beams[0]}' is a modal beam, which knows no contacts; leave contacts out, or use"
                " the chain of segments without 'beams'"
            )
        self._with_contacts, self._limits = contacts, bool(limits)
        self._inequalities = inequality_constraints_of(self.mechanism, self.constraints)
        self._written = self._inequalities.force_limited.loops.copy()
        self._always_inequalities = contacts or self._inequalities.any or limits == "always"
        self._motors = Motors(self.mechanism, self._inequalities.loop_axes)
        force_limited, axis_rows = (
            self._inequalities.force_limited,
            self._inequalities.loop_axes.encoded,
        )
        self._given = Remembered(  # what may be set of them
            [
                self.motors.records,
                self._inequalities.force_limits,
                force_limited.loops,
                force_limited.couplings,
                axis_rows.loops,
            ]
        )
        self._inequality_stepper: InequalityStepper | None = None
        self._spare: InequalityStepper | None = None  # while others hold than those of this one
        self._reference = ReferenceSolver() if impulse_solver == "clarabel" else None

    @property
    def motors(self) -> Motors:
        """Motors of the joints, all off at first but those of loop joints, and friction."""
        return self._motors

    @property
    def world(self) -> World | None:
        """Where contacts are found and states are shown; copies have none until one is given.

        A new world is shown the state, and takes over what the old one remembered of contacts.

        Raises:
            ModelError: Its bodies do not have the coordinates of this mechanism.
            WorldError: Its bodies are not those of the old one, or are gone.
        """
        return self._world

    @world.setter
    def world(self, world: World | None) -> None:
        if world is not None:
            q, v = world.state()
            if (len(q), len(v)) != (self.mechanism.nq, self.mechanism.nv):
                raise ModelError(
                    f"the bodies of this world have {len(q)} positions and {len(v)} rates, the"
                    f" mechanism {self.mechanism.nq} and {self.mechanism.nv}; read those that the"
                    " system was made of"
                )
            if self._world_memory is not None:
                world.restore(self._world_memory)
            else:
                world.write(self._solver.q, self._solver.v)
        self._world, self._write = world, None if world is None else world.write
        self._world_memory = None

    def forget(self) -> None:
        """Forget impulses to start from, loads and turns."""
        super().forget()
        if self._inequality_stepper is not None:
            self._inequality_stepper.forget()

    def _save_parts(self) -> dict[str, Any]:
        """Memories of what acts by inequalities."""
        bounded = None if self._inequality_stepper is None else self._inequality_stepper.memory()
        holding = self._save_holding()
        return {"bounded": bounded, "limits": self._given.copy(), "holding": holding}

    def _restore_parts(self, parts: dict[str, Any]) -> None:
        """Go on from memories."""
        self._given.put_back(parts["limits"])
        self.motors.recall()
        self._restore_holding(parts["holding"])
        known = [self._inequality_stepper, self._spare]
        self._inequality_stepper = self._spare = None
        self.motors.exerted = None
        if parts["bounded"] is not None:
            rigid = self._rigid if parts["holding"] and parts["holding"].stepped else None
            solver = self._solver if rigid is None else rigid.solver
            fits = [step for step in known if step is not None and step.solver is solver]
            step = fits[0] if fits else self._make_inequality_stepper(rigid)
            step.recall(parts["bounded"])
            self._inequality_stepper, self.motors.exerted = step, step.motor_forces

    def _make_inequality_stepper(self, rigid: RigidLimits | None) -> InequalityStepper:
        """Steps of the rigid constraints, or of those with force limits that hold besides."""
        joint_limits = joint_limits_of(self.mechanism, self._inequalities.loop_axes, self._limits)
        solver = self._solver if rigid is None else rigid.solver
        others = self._inequalities, self._reference, rigid
        return InequalityStepper(solver, self.motors.records, joint_limits, *others)

    @property
    def _has_inequalities(self) -> bool:
        """Whether anything acts by inequalities."""
        return self._always_inequalities or self.motors.any_on

    @property
    def complementarity(self) -> Complementarity | None:
        """How motors, limits and contacts of the last step were solved; None without any."""
        return (
            None if self._inequality_stepper is None else self._inequality_stepper.complementarity
        )

    def contacts(self) -> tuple[Contact, ...]:
        """Contacts of the last step and their forces, also those that carry nothing.

        None are told after the state was set.
        """
        step = self._last_bounded
        return () if step is None else contacts_of(step, self.mechanism)

    @property
    def contact_points(self) -> np.ndarray:
        """Records (n,) of what ``contacts`` tells, as they were found, of ``CONTACT_POINT``."""
        step = self._last_bounded
        return NO_CONTACTS if step is None else step.contact_points

    @property
    def joint_loads(self) -> dict[str, JointLoad]:
        """Forces of motors, friction and limits in the last step, by joint."""
        step = self._last_bounded
        if step is None:
            return {name: JointLoad(0.0, 0.0, 0.0) for name in self.motors.names}
        return joint_loads(step, self.motors)

    def reactions(self) -> dict[str, Reaction]:
        """What each constraint does, by name.

        After a step with motors, limits or contacts: at its start, with their forces in that step,
        and with what acts along the free motions of loop joints. Otherwise at the state.
        """
        step = self._last_bounded
        if step is None:
            return super().reactions()
        decision = self.decision if step.rigid is None else step.rigid.decision
        return loaded_reactions(step, decision.by_name)

    @property
    def _last_bounded(self) -> InequalityStepper | None:
        """The last step if it had forces within bounds and the state is still that after it."""
        step = self._inequality_stepper
        return step if step is not None and step.led_to(self._solver.state) else None

    @property
    def holding(self) -> frozenset[str]:
        """Names of the constraints with a force limit that were rigid in the last step."""
        step = self._last_bounded
        return NOBODY if step is None or step.rigid is None else step.rigid.holding

    @property
    def _stepped(self) -> Solver:
        """That of the last step."""
        step = self._last_bounded
        return super()._stepped if step is None else step.solver

    @property
    def _is_at_limit(self) -> bool:
        """Whether a joint limit pushed in the step that led here: it will in the next one too."""
        step = self._last_bounded
        return step is not None and self._limits and limits_push(step)

    def _inequality_step(self) -> int:
        """One step with motors, limits and contacts; the failure that stopped it, or DONE.

        Raises:
            ModelError: Not with this integrator.
        """
        self._require_euler()
        if not len(self._inequalities.force_limits):
            return self._advance(self._take_stepper(None))
        holding = self._start_holding()
        while True:
            rigid = self._rigid_for(holding) if holding else None
            step = self._take_stepper(rigid)
            failure = self._advance(step)
            if failure == GAVE_WAY:
                holding -= {step.gave_way}
            elif failure == DONE or rigid is None:
                break
            else:
                self._give_up_holding()
                holding = NOBODY
        if failure == DONE:
            self._failed = 0 if rigid is not None else self._failed
            if self._pause == 0:
                self._hold_again(step, NOBODY if rigid is None else holding)
        return failure

    def _take_stepper(self, rigid: RigidLimits | None) -> InequalityStepper:
        """The steps to go on with; what the last ones were by goes over to them."""
        solver, before = self._solver if rigid is None else rigid.solver, self._inequality_stepper
        new, limits = before, self._inequalities.force_limits
        if before is None or before.solver is not solver:
            spare = self._spare
            fits = spare is not None and spare.solver is solver
            new = spare if spare is not None and fits else self._make_inequality_stepper(rigid)
            if before is not None and len(limits):
                new.adopt(before)
            elif before is not None:  # turns are counted on when constraints come and go
                new.positions[:] = before.positions
            self._inequality_stepper, self._spare = new, before
            self.motors.exerted = new.motor_forces
            if rigid is not None:
                rigid.hold(rigid.holding)
        if rigid is None:
            limits["holds"] = 0
        assert new is not None
        return new

    def _advance(self, step: InequalityStepper) -> int:
        """One step with what is at hand; the failure that stopped it, or DONE."""
        if step.rigid is None:
            return self._advance_there(step)
        here, there = self._solver, step.solver
        there.tau = here.tau
        if not (here.state == there.state).all():
            there.put(here.q, here.v, here.t)
        failure = self._advance_there(step)
        if failure == DONE:
            here.put(there.q, there.v, there.t)
        return failure

    def _advance_there(self, step: InequalityStepper) -> int:
        """One step of whatever solver it has."""
        if not self._with_contacts:
            return step.advance(None)
        if self._world is None:
            raise WorldError(
                "contacts are found in a world, and this copy has none; set system.world to bodies"
                " that were read where the same ones are loaded"
            )
        try:
            return step.advance(self._world.contact_points)
        except BaseException:
            self.write()
            raise

    def _require_euler(self) -> None:
        """Refuse forces within bounds under an integrator or formulation that does not have them.

        Limits alone act in those steps that would lead beyond one.

        Raises:
            ModelError: Another integrator was given, or another formulation.
        """
        other = self._given_integrator not in (None, WITH_INEQUALITIES)
        if self._python is not None or (other and self._has_inequalities):
            raise ModelError(NEED_EULER)

    def write(self) -> None:
        """Show the state in the world.

        Raises:
            WorldError: The bodies are not there any more.
        """
        if self._write is not None:
            self._write(self._solver.q, self._solver.v)
