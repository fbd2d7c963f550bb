"""A mechanism, its constraints and a state, advanced in time with loops closed to round-off."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from bulletbridge.constraints.encode import Constraint
from bulletbridge.errors import ModelError
from bulletbridge.formulations.arrays import CURRENT, EULER, START
from bulletbridge.formulations.equations import Dynamics, Formulation
from bulletbridge.formulations.registry import formulation_of
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.simulation.adaptive import Adaptive
from bulletbridge.simulation.bounded_state import NEED_EULER
from bulletbridge.simulation.failures import raise_failure
from bulletbridge.simulation.options import (
    COMPILED,
    CONTROLLED,
    BoundedSolver,
    Directions,
    Integrator,
    Springs,
    World,
    check_counts,
    check_options,
    check_step,
)
from bulletbridge.simulation.python_step import PythonStep
from bulletbridge.simulation.recording import Recording, from_table
from bulletbridge.simulation.redundancy import Decision
from bulletbridge.simulation.scripted import ForceSignal, script
from bulletbridge.simulation.solver import Solver
from bulletbridge.simulation.solver_arrays import Tolerances
from bulletbridge.simulation.springs import has_springs, too_fast
from bulletbridge.simulation.world_state import WorldState

NEED_PROJECTOR = "radau, and dop853 at fixed steps, take the projector formulation alone"


class System(WorldState):
    """A constrained mechanism and its state.

    Args:
        mechanism: The tree, usually from ``read_bullet``.
        constraints: What closes its loops.
        world: Where states are read from at the start and written to after each step.
        forces: Forces of joints as functions of time, by name [N m or N], besides ``tau``: taken
            at the time of each stage, so integrators keep their order. One function, or one for
            each rate of a joint that has several.
        dt: Step [s].
        integrator: ``semi_implicit_euler`` (order 1, what Bullet does), ``verlet`` (order 2),
            ``rk4`` (order 4), ``dop853`` (order 8, for accuracy) and ``radau`` (order 5, implicit,
            for stiff forces); and in Python those of ``simulation.methods``: ``euler``, ``heun``,
            ``nystrom4``, ``trapezoidal``, ``symmetric``.
        rtol, atol: What ``dop853`` and ``radau`` may err by in a sub-step, rtol in radians or
            lengths of the mechanism, for rates times its pace [1/s]; they divide dt into as many
            sub-steps as that takes, so that dt is but the time between outputs. None: fixed steps
            of dt.
        correction: Directions of the configuration correction: those at the ``start`` of the step,
            guarded, or ``current`` (Newton). Kövecses and Piedbœuf 2003, eq. 35 and 36.
        passes: Fixed number of correction passes; None for as many as round-off takes.
        formulation: What gives accelerations: a name from ``formulations.registry``, or a function
            that makes one. All but ``projector`` step in Python, and their semi-implicit Euler is
            that of accelerations.
        velocity_filter: Whether velocities are filtered; without it steps are in Python.
        contacts: Whether the bodies touch each other and what stands in the world. Steps then need
            a world, and are those of ``semi_implicit_euler``.
        limits: Whether joint limits stop joints; those of loop joints always do.
        springs: Whether the compiled ``semi_implicit_euler`` takes joint springs, and the dampers
            beside them, at the end of the step, so that no stiffness makes it unstable, at the
            price of damping a mode of w [rad/s] by w dt / 2 of critical; ``explicit`` ones damp
            nothing and need w dt < 2. All other integrators know but one way.
        bounded_solver: What solves for the impulses of motors, limits and contacts: the
            ``compiled`` solver; or ``clarabel``, an established cone solver, for reference and
            for hard cases.
        allow_structure: Whether constraints may leave no freedom at all.
        tolerances: Thresholds of the solver.

    Attributes:
        motors: Motors of the joints, all off at first.

    Raises:
        ModelError: A constraint names what does not exist, or a number is impossible.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        constraints: Sequence[Constraint] = (),
        *,
        world: World | None = None,
        forces: Mapping[str, ForceSignal | Sequence[ForceSignal]] | None = None,
        dt: float = 1 / 240,
        integrator: Integrator = "semi_implicit_euler",
        rtol: float | None = 1e-10,
        atol: float = 1e-12,
        correction: Directions = "start",
        passes: int | None = None,
        formulation: str | Callable[[Dynamics], Formulation] = "projector",
        velocity_filter: bool = True,
        contacts: bool = False,
        limits: bool = False,
        bounded_solver: BoundedSolver = "compiled",
        springs: Springs = "implicit",
        allow_structure: bool = False,
        tolerances: Tolerances | None = None,
    ) -> None:
        check_options(
            dt, integrator, correction, passes, velocity_filter, springs, bounded_solver, rtol
        )
        make = formulation_of(formulation)
        super().__init__(mechanism, constraints, allow_structure, tolerances or Tolerances())
        self._full.script = script(mechanism, forces or {})
        self._set_bounded(world, contacts, limits, bounded_solver)
        self.integrator: Integrator = integrator
        projector = formulation == "projector"
        self._python: Adaptive | PythonStep | None = None
        if integrator in CONTROLLED and not projector:
            if integrator == "radau" or rtol is None:
                raise ModelError(NEED_PROJECTOR)
            self._python = Adaptive(rtol, atol, make)
        elif not (projector and velocity_filter and integrator in COMPILED):
            self._python = PythonStep(make, integrator, correction, passes, velocity_filter)
        if self._has_bounded and (self._python is not None or integrator != "semi_implicit_euler"):
            raise ModelError(NEED_EULER)
        control = self._full.control[0]
        control["dt"], control["integrator"] = dt, COMPILED.get(integrator, EULER)
        if integrator in CONTROLLED:
            control["controlled"] = rtol is not None
            control["rtol"], control["atol"] = 1e-12 if rtol is None else rtol, atol
        control["directions"] = START if correction == "start" else CURRENT
        control["passes"] = -1 if passes is None else passes
        control["implicit"] = springs == "implicit" and has_springs(self._full)
        if world is not None:
            self._full.q[:], self._full.v[:] = world.state()

    @property
    def dt(self) -> float:
        """Step [s]; may be set."""
        return float(self._solver.control[0]["dt"])

    @dt.setter
    def dt(self, value: float) -> None:
        check_step(value)
        for solver in (self._full, self._solver):
            solver.control[0]["dt"] = value

    def take_stiff_springs_implicitly(self) -> None:
        """Have joint springs act at the end of steps if explicit ones could not follow them."""
        if too_fast(self._solver):
            for solver in (self._full, self._solver):
                solver.control[0]["implicit"] = 1

    def step(self, write: bool = True) -> None:
        """Advance by one step and show the state in the world.

        Raises:
            AssemblyError: The loops are open; call ``assemble`` first.
            StepError: The step could not be finished; the state before it was restored.
            WorldError: The bodies are gone from the world; nothing was done.
        """
        if write and self.world is not None:
            self.world.check()
        if self._decision is None:
            self._trim()
        failure = self._one_step()
        while failure and self._reconsider(failure):
            failure = self._one_step()
        if failure:
            raise_failure(self._solver, failure)
        if write and self._write is not None:
            self._write(self._solver.q, self._solver.v)

    def _one_step(self) -> int:
        """Advance by one step; the failure that stopped it, or DONE."""
        if self._always_bounded or self.motors.on:
            return self._bounded_step()
        if self._python is not None:
            return self._python.step(self._solver, self.dt)
        return self._solver.step()

    def rollout(self, steps: int, every: int = 1) -> Recording:
        """Advance by many steps in one call, keep one state in ``every``; the world is not shown.

        Raises:
            ModelError: ``steps`` or ``every`` is not a positive number.
            AssemblyError: The loops are open; call ``assemble`` first.
            StepError: A step could not be finished; the state before it was restored.
        """
        check_counts(steps, every)
        if self._decision is None:
            self._trim()
        table = np.zeros((steps // every, len(self._solver.state) + 3))
        if self._python is not None or self._has_bounded:
            for n in range(steps):
                self.step(write=False)
                if (n + 1) % every == 0:
                    s = self.status
                    line = [*self._solver.state, s.rank, s.margin, s.passes]
                    table[(n + 1) // every - 1] = line
        else:
            q, v, t = self.q, self.v, self.t
            failure = self._solver.roll(steps, every, table)
            while failure and self._reconsider(failure):
                self._solver.put(q, v, t)
                failure = self._solver.roll(steps, every, table)
            if failure:
                raise_failure(self._solver, failure)
        return from_table(self.mechanism, table)

    def compiled(self) -> tuple[Solver, Decision]:
        """What steps without Python, and its rank.

        Raises:
            ModelError: The system steps in Python.
            AssemblyError: The loops are open; call ``assemble`` first.
        """
        if self._python is not None or self._has_bounded:
            raise ModelError(
                "rollouts of many worlds are for the compiled step, without motors, joint friction,"
                " limits, contacts and force limits, with the projector and one of"
                f" {', '.join(COMPILED)}; set the states one by one, or sweep over processes"
            )
        if self._decision is None:
            self._trim()
        return self._solver, self.decision

    def run(self, duration: float, every: int = 1) -> Recording:
        """Advance by ``duration`` [s], then show the state in the world.

        Raises:
            AssemblyError: The loops are open; call ``assemble`` first.
            StepError: A step could not be finished; the state before it was restored.
        """
        recording = self.rollout(max(1, round(duration / self.dt)), every)
        self.write()
        return recording
