"""A mechanism, its constraints and a state, advanced in time with loops closed to round-off."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from bulletbridge.constraints.encode import Constraint
from bulletbridge.engine.backend import SolverName
from bulletbridge.engine.failures import raise_failure
from bulletbridge.engine.force_signals import ForceSignal, script
from bulletbridge.engine.records import AT_LIMIT, CURRENT, DONE, EULER, START, Directions
from bulletbridge.engine.redundancy import Decision
from bulletbridge.engine.springs import FAST, fast_damper, has_dampers, has_springs, too_fast
from bulletbridge.engine.step_kernel import run, stepping_kernel
from bulletbridge.engine.stepper import Solver
from bulletbridge.engine.workspace import Tolerances
from bulletbridge.errors import ModelError, warn_user
from bulletbridge.formulations.adaptive import Adaptive
from bulletbridge.formulations.equations import Dynamics, Formulation
from bulletbridge.formulations.python_stepper import PythonStep
from bulletbridge.formulations.registry import formulation_of
from bulletbridge.inequalities.constraints import with_watched_limits
from bulletbridge.inequalities.step_kernel import run_inequalities
from bulletbridge.mechanism.contact_detection import find_contacts
from bulletbridge.mechanism.dynamics import bias
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.numerics.records import Array, Mask
from bulletbridge.system.ahead import compile_ahead
from bulletbridge.system.assembly import Assembly
from bulletbridge.system.options import (
    COMPILED,
    CONTROLLED,
    EXPLICIT,
    WITH_INEQUALITIES,
    ImpulseSolver,
    Integrator,
    Limits,
    Springs,
    World,
    check_counts,
    check_options,
    check_solver,
    check_step,
    check_switch,
    chosen,
)
from bulletbridge.system.recording import Recording, from_table
from bulletbridge.system.saved import Carried, SavedState, digest, require_same
from bulletbridge.system.world_state import WorldState

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
            for stiff forces); and in Python those of ``formulations.integrators``: ``euler``,
            ``heun``, ``nystrom4``, ``trapezoidal``, ``symmetric``. None: ``verlet``, but for steps
            with motors, joint friction, limits, contacts or force limits of constraints, and with
            springs and strong dampers that act at the end of a step, which are those of
            ``semi_implicit_euler``.
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
        contacts: Whether contacts of the bodies with each other and with what stands in the world
            act. Steps then need a world.
        limits: Whether joint limits stop joints; those of loop joints always do. A step that would
            lead beyond one is a step of ``semi_implicit_euler`` with inequalities, whatever
            compiled integrator was given; ``"always"``: every step is.
        springs: Whether the compiled ``semi_implicit_euler`` takes springs at the end of the step,
            as it does dampers in any case, so that no stiffness makes it unstable, at the price of
            damping a mode of w [rad/s] by w dt / 2 of critical; ``explicit`` ones damp nothing and
            need w dt < 2. None: implicit with that integrator and with the default. All other
            integrators know but one way.
        impulse_solver: What solves for the impulses of motors, limits and contacts: the
            ``compiled`` solver; or ``clarabel``, an established cone solver, for reference and
            for hard cases.
        energy_budget: Whether steps with inequalities take from the velocity what semi-implicit
            Euler would add to the energy by the length of its step alone; what was taken is told by
            ``complementarity.taken``.
        solver: Linear algebra of the compiled step: ``dense`` factors of the whole system;
            ``islands``, dense factors of each part that nothing joins to the others; ``sparse``
            elimination body by body, whose cost grows linearly with the number of loops, and which
            hands single steps near singular positions to the dense one; or ``auto``, the cheapest
            by an estimate. Steps with inequalities (motors, limits, contacts) are dense.
        allow_structure: Whether constraints may leave no freedom at all.
        tolerances: Thresholds of the solver.

    Copies and pickles are the same system at the same state, without a world; see ``save``.

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
        integrator: Integrator | None = None,
        rtol: float | None = 1e-10,
        atol: float = 1e-12,
        correction: Directions = "start",
        passes: int | None = None,
        formulation: str | Callable[[Dynamics], Formulation] = "projector",
        velocity_filter: bool = True,
        contacts: bool = False,
        limits: Limits = False,
        impulse_solver: ImpulseSolver = "compiled",
        energy_budget: bool = True,
        solver: SolverName = "auto",
        springs: Springs | None = None,
        allow_structure: bool = False,
        tolerances: Tolerances | None = None,
    ) -> None:
        check_options(
            dt,
            integrator,
            correction,
            passes,
            velocity_filter,
            springs,
            impulse_solver,
            (rtol, atol),
        )
        check_switch("energy_budget", energy_budget)
        if limits != "always":
            check_switch("limits", limits)
        make = formulation_of(formulation)
        if contacts and world is None:
            raise ModelError("contacts are found in a world; give one, or leave contacts out")
        if limits is True:
            mechanism = with_watched_limits(mechanism)
        super().__init__(mechanism, constraints, allow_structure, tolerances or Tolerances())
        self._options: dict[str, Any] = dict(
            integrator=integrator,
            rtol=rtol,
            atol=atol,
            correction=correction,
            passes=passes,
            formulation=formulation,
            velocity_filter=velocity_filter,
            contacts=contacts,
            limits=limits,
            impulse_solver=impulse_solver,
            energy_budget=energy_budget,
            solver=solver,
            springs=springs,
            tolerances=self.tolerances,
        )
        self._forces = dict(forces or {})
        self._digest: tuple[tuple[str, ...], bytes] | None = None
        self._full.script = script(mechanism, forces or {})
        self._given_integrator = integrator
        self._set_inequalities(world, contacts, limits, impulse_solver)
        projector = formulation == "projector"
        self._python: Adaptive | PythonStep | None = None
        if integrator in CONTROLLED and not projector:
            if integrator == "radau" or rtol is None:
                raise ModelError(NEED_PROJECTOR)
            self._python = Adaptive(rtol, atol, make)
        elif not (projector and velocity_filter and (integrator or WITH_INEQUALITIES) in COMPILED):
            method = chosen(integrator, self._has_inequalities)
            self._python = PythonStep(make, method, correction, passes, velocity_filter)
        if self._has_inequalities or limits:
            self._require_euler()
        check_solver(solver, self._python is None and not self._has_inequalities)
        self._full.backend = solver
        control = self._full.control[0]
        control["dt"] = dt
        if integrator in CONTROLLED:
            control["controlled"] = rtol is not None
            control["rtol"], control["atol"] = 1e-12 if rtol is None else rtol, atol
        control["energy_budget"] = energy_budget
        control["directions"] = START if correction == "start" else CURRENT
        control["passes"] = -1 if passes is None else passes
        compiled = self._python is None and integrator in (None, WITH_INEQUALITIES)
        self._act_at_end(compiled and springs != "explicit" and has_springs(self._full), False)
        stepped = (
            run_inequalities
            if self._has_inequalities
            else stepping_kernel(int(control["integrator"]))
        )
        found = (find_contacts,) if contacts else ()
        compile_ahead(bias, run, stepped, *found)  # setting up takes the small ones first
        if world is not None:
            self._full.q[:], self._full.v[:] = world.state()

    def __repr__(self) -> str:
        """What it is made of, how it steps and when it is."""
        acting = [name for name in ("contacts", "limits") if self._options[name]]
        acting += ["motors"] if self.motors.on else []
        return (
            f"<System: {self.mechanism.nv} rates, {len(self.constraints)} constraints,"
            f" {self.integrator} at {self.dt:g} s, {' and '.join(acting) or 'no limits, contacts'}"
            f"{'' if acting else ' or motors'}, t = {self.t:.6g} s>"
        )

    @property
    def integrator(self) -> Integrator:
        """That of the next step: the one given, or the default for what acts now."""
        at_end = self._python is None and self._solver.control[0]["integrator"] == EULER
        return chosen(self._given_integrator, self._has_inequalities or at_end)

    @property
    def dt(self) -> float:
        """Step [s]; may be set."""
        return self._solver.control["dt"].item()

    @dt.setter
    def dt(self, value: float) -> None:
        check_step(value)
        for solver in self._solvers:
            solver.control[0]["dt"] = value
        if self._decision is not None:
            self._take_dampers()

    def forget(self) -> None:
        """Forget all that steps leave behind besides the state, as ``set_state`` does."""
        super().forget()
        if self._python is not None:
            self._python.recall(None)

    def save(self, world: bool = True) -> SavedState:
        """Everything that decides the future: ``restore`` goes on from it, to the bit.

        That is q, v and t, the constraints that are connected and what was decided about them, dt,
        gravity, tau, motors, force limits, and what steps leave behind: factors, impulses to start
        from, loads, turns that were counted, lengths of sub-steps. It can be pickled; functions of
        time that cannot be are left out, and taken from the system that restores it.

        Args:
            world: Whether what the world remembers of contacts is part of it, if contacts are part
                of the system. All bodies of the world are then put back with it.

        Raises:
            WorldError: The bodies are gone from the world.
        """
        remembered = self._world_memory
        if world and self._options["contacts"] and self.world is not None:
            remembered = self.world.save()
        parts = self._save_parts()
        parts["python"] = None if self._python is None else self._python.memory()
        here = self._q, self._v, self.t, self._made_of(), self._plain_options()
        return SavedState(*here, self._save_sets(), parts, remembered)

    def restore(self, state: SavedState, write: bool = True) -> None:
        """Go on from what ``save`` returned, of this system or of one that was made alike.

        The same steps as after ``save`` give the same bits, in this process or in another one on
        the same machine; functions of time and users' constraints must be functions of the state.
        Constraints that have been connected or disconnected since are put back too.

        Args:
            state: From ``save``.
            write: Whether the world is shown the state, or goes on from its own memory of contacts.

        Raises:
            ModelError: The state is that of another mechanism, of other options, or lacks a
                constraint that could not be pickled; nothing was done.
            WorldError: The world has other bodies than the one where it was saved.
        """
        require_same(state, self._made_of(), self._plain_options())
        self._require_constraints(state.sets)
        if write and state.world is not None and self.world is not None:
            self.world.restore(state.world)
        self._restore_sets(state.sets)
        self._restore_parts(state.parts)
        if self._python is not None:
            self._python.recall(state.parts["python"])
        if self.world is None:
            self._world_memory = state.world
        elif write and state.world is None:
            self.write()

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles: the same system at the same state, without a world.

        Raises:
            ModelError: When it is pickled, and a constraint, function or option cannot be.
        """
        constraints = [Carried(f"constraint '{c.name}'", c) for c in self.constraints]
        options = {name: Carried(f"option '{name}'", x) for name, x in self._options.items()}
        forces = {name: Carried(f"force of '{name}'", x) for name, x in self._forces.items()}
        options["allow_structure"] = Carried("option", self._allow_structure)
        return self._rebuilt, (self.mechanism, constraints, options, forces, self.save())

    @classmethod
    def _rebuilt(
        cls,
        mechanism: Mechanism,
        constraints: Sequence[Carried],
        options: Mapping[str, Carried],
        forces: Mapping[str, Carried],
        state: SavedState,
    ) -> "System":
        """A system of what its pickle carries, at its state and without a world."""
        given = {name: carried.part for name, carried in options.items()}
        given["forces"] = {name: carried.part for name, carried in forces.items()}
        contacts = given.pop("contacts")
        system = cls(mechanism, [carried.part for carried in constraints], **given)
        system._with_contacts = system._options["contacts"] = contacts
        system._always_inequalities |= contacts
        system.restore(state)
        return system

    def _made_of(self) -> tuple[tuple[str, ...], bytes]:
        self._digest = self._digest or digest(self.mechanism)
        return self._digest

    def _plain_options(self) -> dict[str, Any]:
        """Options that a state depends on; a function that makes a formulation by its name."""
        make = self._options["formulation"]
        if isinstance(make, str):
            return self._options
        return {**self._options, "formulation": getattr(make, "__qualname__", type(make).__name__)}

    def take_stiff_springs_implicitly(self) -> None:
        """Have springs act at the end of steps if explicit ones could not follow them.

        An integrator that was given and has no such springs is left as it is.
        """
        if self._given_integrator in (None, WITH_INEQUALITIES) and self._python is None:
            if has_springs(self._full) and too_fast(self._solver)[0] > 1.0:
                self._act_at_end(True, False)

    def _act_at_end(self, springs: bool, dampers: bool) -> None:
        """Have springs, dampers act at the end of steps or not; take the integrator for that.

        ``semi_implicit_euler`` takes dampers so in any case.
        """
        at_end = springs or dampers
        for solver in self._solvers:
            control = solver.control[0]
            control["implicit"] = springs
            control["integrator"] = COMPILED.get(chosen(self._given_integrator, at_end), EULER)

    def _assemble(self, start: Array, held: Mask, speed: Array, held_v: Mask) -> Assembly:
        """Find a consistent state near start and speed; take dampers as they have to be there."""
        assembly = super()._assemble(start, held, speed, held_v)
        self._take_dampers()
        return assembly

    def _take_dampers(self) -> None:
        """Have dampers act at the end of steps if explicit ones could not follow from here.

        An integrator that was given stays, with a warning if it would grow without bounds.
        """
        if not has_dampers(self._full):
            return
        control, damping = self._solver.control[0], too_fast(self._solver)[1]
        if self._given_integrator is None and self._python is None:
            self._act_at_end(bool(control["implicit"]), damping > 1.0)
        elif damping * FAST > 2.0 and self.integrator in EXPLICIT and not control["controlled"]:
            said = fast_damper(self._solver) or "a damper between two links is strong"
            warn_user(
                f"{said}: {self.integrator} grows without bounds at this dt, of"
                f" {2.0 * self.dt / (damping * FAST):.1e} s it would not; leave integrator out, or"
                " give 'semi_implicit_euler' or 'radau', which take dampers at the end of a step"
            )

    def step(self, write: bool = True) -> None:
        """Advance by one step and show the state in the world.

        Raises:
            AssemblyError: The loops are open; call ``assemble`` first.
            StepError: The step could not be finished; the state before it was restored.
            WorldError: The bodies are gone from the world, or ``changeDynamics`` has changed one,
                which is looked for now and then; nothing was done.

        Warns:
            BulletBridgeWarning: The bodies were moved in the world by somebody else since they
                were shown, or its gravity or friction was changed; said once, with what to call.
        """
        if write and self._world is not None:
            self._world.look(self._acting_gravity)
        if self._decision is None:
            self._trim()
        failure = self._one_step()
        while failure and self._reconsider(failure):
            failure = self._one_step()
        if failure:
            raise_failure(self._solver, failure, not (self._has_inequalities or self._python))
        if write and self._write is not None:
            self._write(self._solver.q, self._solver.v)

    def _acting_gravity(self) -> Array:
        return self.gravity

    def _one_step(self) -> int:
        """Advance by one step; the failure that stopped it, or DONE."""
        if self._always_inequalities or self.motors.on:
            return self._inequality_step()
        if self._python is not None:
            return self._python.step(self._solver, self.dt)
        if self._inequality_stepper is not None and self._is_at_limit:
            return self._inequality_step()
        failure = self._solver.step()
        return self._inequality_step() if failure == AT_LIMIT else failure

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
        if self._python is None and not (self._has_inequalities or self._is_at_limit):
            q, v, t = self._q, self._v, self.t
            failure = self._solver.roll(steps, every, table)
            while failure and self._reconsider(failure):
                self._solver.put(q, v, t)
                failure = self._solver.roll(steps, every, table)
            if failure == DONE:
                return from_table(self.mechanism, table)
            if failure != AT_LIMIT:
                raise_failure(self._solver, failure, True)
            self._solver.put(q, v, t)
        for n in range(steps):
            self.step(write=False)
            if (n + 1) % every == 0:
                s = self.status
                table[(n + 1) // every - 1] = [*self._solver.state, s.rank, s.margin, s.passes]
        return from_table(self.mechanism, table)

    def recorded(self) -> Recording:
        """The state that the last step ended in, as a recording of one."""
        s = self.status
        row = np.array([[*self._solver.state, s.rank, s.margin, s.passes]])
        return from_table(self.mechanism, row)

    def compiled(self) -> tuple[Solver, Decision]:
        """What steps without Python, and its rank.

        Raises:
            ModelError: The system steps in Python.
            AssemblyError: The loops are open; call ``assemble`` first.
        """
        if self._python is not None or self._has_inequalities:
            raise ModelError(
                "rollouts of many worlds are for the compiled step, without motors, joint friction,"
                " contacts and force limits, with the projector and one of"
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
