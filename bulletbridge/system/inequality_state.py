"""Motors, limits, contacts and force limits of a system, and their forces in the last step."""

from typing import Any

import numpy as np

from bulletbridge.constraints.encode import encode_places
from bulletbridge.errors import ModelError, WorldError
from bulletbridge.formulations.adaptive import Adaptive
from bulletbridge.formulations.python_stepper import PythonStep
from bulletbridge.inequalities.constraints import (
    Complementarity,
    inequality_constraints_of,
    joint_limits_of,
)
from bulletbridge.inequalities.motors import Motors
from bulletbridge.inequalities.stepper import InequalityStepper
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.numerics.cone_program import ReferenceSolver
from bulletbridge.numerics.memory import Remembered
from bulletbridge.system.connecting import Reconfigurable
from bulletbridge.system.contact_report import (
    Contact,
    JointLoad,
    contacts_of,
    joint_loads,
    limits_push,
    loaded_reactions,
)
from bulletbridge.system.evaluation import Reaction
from bulletbridge.system.options import WITH_INEQUALITIES, ImpulseSolver, Integrator, Limits, World

NEED_EULER = (
    "motors, limits, joint friction, contacts and force limits of constraints are part of steps of"
    " the projector with the integrator semi_implicit_euler; leave integrator, formulation and"
    " velocity_filter out"
)


class InequalityState(Reconfigurable):
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
        return {"bounded": bounded, "limits": self._given.copy()}

    def _restore_parts(self, parts: dict[str, Any]) -> None:
        """Go on from memories."""
        self._given.put_back(parts["limits"])
        self.motors.recall()
        self._inequality_stepper, before = None, self._inequality_stepper
        self.motors.exerted = None
        if parts["bounded"] is not None:
            fits = before is not None and before.solver is self._solver
            step = before if before is not None and fits else self._make_inequality_stepper()
            step.recall(parts["bounded"])
            self._inequality_stepper, self.motors.exerted = step, step.motor_forces

    def _make_inequality_stepper(self) -> InequalityStepper:
        joint_limits = joint_limits_of(self.mechanism, self._inequalities.loop_axes, self._limits)
        return InequalityStepper(
            self._solver, self.motors.records, joint_limits, self._inequalities, self._reference
        )

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
        return loaded_reactions(step, self.decision.by_name)

    @property
    def _last_bounded(self) -> InequalityStepper | None:
        """The last step if it had forces within bounds and the state is still that after it."""
        step = self._inequality_stepper
        return step if step is not None and step.current else None

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
        solver = self._solver
        self._require_euler()
        if self._inequality_stepper is None or self._inequality_stepper.solver is not solver:
            new, before = self._make_inequality_stepper(), self._inequality_stepper
            if before is not None:  # turns are counted on when constraints come and go
                new.positions[:] = before.positions
            self._inequality_stepper, self.motors.exerted = new, new.motor_forces
        if not self._with_contacts:
            return self._inequality_stepper.advance(None)
        if self._world is None:
            raise WorldError(
                "contacts are found in a world, and this copy has none; set system.world to bodies"
                " that were read where the same ones are loaded"
            )
        try:
            return self._inequality_stepper.advance(self._world.contact_points)
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

    def set_max_force(self, name: str, force: float) -> None:
        """Give a constraint with a force limit another largest force [N or N m].

        Raises:
            ModelError: There is no such constraint, or it was made without a force limit.
        """
        index = (
            list(self._inequalities.force_limited.rows).index(name)
            if name in self._inequalities.force_limited.rows
            else -1
        )
        if index < 0 or not 0.0 <= force < np.inf:
            raise ModelError(
                f"max_force {force} of '{name}' is not possible; name a constraint that was made"
                " with a max_force, and give a finite number that is not negative"
            )
        self._inequalities.force_limits[index]["force"] = force

    def place(self, name: str, frame: np.ndarray) -> None:
        """Put frame a of a loop elsewhere on its link; see ``ClosedState.place``."""
        for part in (self._inequalities.force_limited, self._inequalities.loop_axes.encoded):
            for row in part.rows:
                if name in (row, row.rpartition("/")[0]):  # loop/turn and loop/travel too
                    part.place(row, frame)
        if name in self.encoded.rows:
            super().place(name, frame)

    def rebase(self, mechanism: Mechanism) -> None:
        """Go on with links that stand still elsewhere; see ``ClosedState.rebase``."""
        super().rebase(mechanism)
        for part in (self._inequalities.force_limited, self._inequalities.loop_axes.encoded):
            encode_places(part, mechanism, self.constraints)

    def set_offset(self, name: str, offset: float) -> None:
        """Give a coupling another offset [rad or m]; the state is not touched."""
        if name in self._inequalities.force_limited.rows:
            self._inequalities.force_limited.set_offset(name, offset)
        else:
            super().set_offset(name, offset)

    def write(self) -> None:
        """Show the state in the world.

        Raises:
            WorldError: The bodies are not there any more.
        """
        if self._write is not None:
            self._write(self._solver.q, self._solver.v)
