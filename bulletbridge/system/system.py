"""A mechanism, its constraints and a state, advanced in time with loops closed to round-off."""

import copy
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike
from typing_extensions import Never, Unpack

from bulletbridge.constraints.arrays import Encoded
from bulletbridge.constraints.encode import Constraint
from bulletbridge.constraints.force_elements import Wrench
from bulletbridge.constraints.joints import Frame, LoopJoint
from bulletbridge.constraints.user import Kinematics
from bulletbridge.engine.failures import check_finite, require_closed
from bulletbridge.engine.force_signals import HeldForces, JointFunctions, script, split_forces
from bulletbridge.engine.redundancy import Decision
from bulletbridge.engine.step_differentiator import StepDerivatives
from bulletbridge.engine.step_kernel import run, stepping_kernel
from bulletbridge.engine.stepper import Solver
from bulletbridge.engine.workspace import Terms, Tolerances
from bulletbridge.errors import (
    AssemblyError,
    ByName,
    ModelError,
    UnsupportedError,
    called_as,
    given_as,
    refuse_name,
    require_kind,
    warn_user,
)
from bulletbridge.formulations.system_dynamics import SystemDynamics
from bulletbridge.inequalities.constraints import (
    Complementarity,
    beyond_limits,
    joints_beyond,
    most_beyond,
    with_watched_limits,
)
from bulletbridge.inequalities.contact_derivatives_kernel import (
    ALL,
    DIFFERENTIATED,
    MADE,
    NOT_MADE,
    StepsAsked,
)
from bulletbridge.inequalities.filter import NO_STICKING_POINTS, Filter, Impulses
from bulletbridge.inequalities.motors import Motors
from bulletbridge.inequalities.step_kernel import run_inequalities
from bulletbridge.inequalities.stepper import NO_CONTACTS, InequalityStepper
from bulletbridge.inequalities.steps_kernel import step_with_contacts
from bulletbridge.mechanism.angles import degrees_notes
from bulletbridge.mechanism.by_joint import ByJoint, Values, by_joint, forces_of, put_values
from bulletbridge.mechanism.contact_detection import find_contacts
from bulletbridge.mechanism.dynamics import bias
from bulletbridge.mechanism.link_tree import LinkTree
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.numerics.records import Array, Ints, Mask, are_numbers
from bulletbridge.system.active_constraints import ASSEMBLED, ActiveConstraints, ActiveSet
from bulletbridge.system.ahead import compile_ahead
from bulletbridge.system.assembly import SHAKES, Assembly, locked, open_by
from bulletbridge.system.bounded_derivatives import (
    Made,
    bounded_step_derivatives,
    calls_of,
    require_no_force_limits,
    require_whole,
    solver_at_start,
)
from bulletbridge.system.carrying import require_rigid, same
from bulletbridge.system.connecting import (
    Connection,
    connected,
    exchange,
    join,
    require_new,
    separate,
)
from bulletbridge.system.contact_report import (
    ContactLoad,
    JointLoad,
    closing_impulse,
    contacts_of,
    joint_loads,
    loaded_reactions,
    net_contact_forces,
)
from bulletbridge.system.derivatives import Derivatives, derivatives_at, step_differentiator_of
from bulletbridge.system.evaluation import (
    AppliedWrench,
    Evaluation,
    Reaction,
    SpringForce,
    applied_power,
    applied_wrenches,
    evaluate,
    gap_vectors,
    kinematics_at,
    link_pose,
    reactions,
    require_points,
    spring_forces,
    widths,
)
from bulletbridge.system.held_closing import ended_at
from bulletbridge.system.holding import NOBODY
from bulletbridge.system.inequality_steps import InequalitySteps
from bulletbridge.system.integration import Integration
from bulletbridge.system.joint_reactions import JointLoads, JointReactions, Push
from bulletbridge.system.linearisation import (
    By,
    Linearisation,
    Outputs,
    Request,
    What,
    active_set,
    check_request,
    linearise,
)
from bulletbridge.system.loop_axes import LoopAxisMotion, loop_axis_motion
from bulletbridge.system.misplaced import misplaced_frames
from bulletbridge.system.options import (
    COMPILED,
    ON_CHARTS,
    Integrator,
    Options,
    Status,
    SystemOptions,
    World,
    check_counts,
    check_step,
    how_to_read,
    how_to_set,
)
from bulletbridge.system.parameters import (
    moves_frames,
    require_known,
    require_numbers,
)
from bulletbridge.system.recording import Recording, from_table
from bulletbridge.system.saved import Carried, SavedState, digest, require_same
from bulletbridge.system.saved_sets import require_constraints, restore_sets, save_sets
from bulletbridge.system.shown_world import FOR_CONTACTS, FOR_STATES, ShownWorld
from bulletbridge.system.smoothed_derivatives import SmoothStep
from bulletbridge.system.stepping import Stepping
from bulletbridge.system.variation import Variation
from bulletbridge.system.within_limits import FARTHER, NEARLY, closed_within, way_between


class System:
    """A constrained mechanism and its state.

    Args:
        mechanism: The tree, usually from ``read_bullet``.
        constraints: What closes its loops.
        world: Where states are read from at the start and written to after each step.
        forces: By name, besides ``tau``, taken at each stage, so that integrators keep their order.
            Of joints [N m or N]: a function of time, or of (t, q, v), where q and v also go by
            joint; one for each rate of a joint that has several, or one that gives as many numbers.
            On links: a ``Wrench``, under a name of its own. Functions under ``numba.njit`` are
            called from compiled code.
        dt: Step [s].
        allow_structure: Whether constraints may leave no freedom at all.
        options: How it steps: the attributes of ``Options``, by keyword.

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
        forces: Mapping[str, JointFunctions | Wrench] | None = None,
        dt: float = 1 / 240,
        allow_structure: bool = False,
        **options: Unpack[SystemOptions],
    ) -> None:
        chosen = self._options = Options.of(options).for_mechanism(mechanism)
        check_step(dt, chosen.controls_errors)
        if chosen.contacts and world is None:
            raise ModelError("contacts are found in a world; give one, or leave contacts out")
        if chosen.limits is True:
            mechanism = with_watched_limits(mechanism)
        said = f"forces are {given_as(forces)}; give them by name, as {{'wind': bb.Wrench(...)}}"
        require_kind(forces or {}, Mapping, said)
        self._forces = dict(forces or {})
        self._digest: tuple[tuple[str, ...], bytes] | None = None
        of_joints, wrenches = split_forces(self._forces, constraints)
        joining = (*constraints, *wrenches)
        tolerances = chosen.tolerances or Tolerances()
        self._active = ActiveConstraints(mechanism, joining, allow_structure, tolerances)
        full = self._active.full
        full.backend = chosen.solver
        full.take_script(script(mechanism, of_joints))
        self._shown = ShownWorld(world)
        self._link_tree: LinkTree | None = None  # once joint reactions were asked for
        self._bearing: list[JointLoads] = []  # likewise
        self._inequalities = InequalitySteps(
            self._active, self._shown, bool(chosen.contacts), chosen.limits, chosen.impulse_solver
        )
        self._integration = Integration(self._active, self._inequalities, chosen)
        self._variation = Variation(
            self._active, self._inequalities, self._integration, self._shown
        )
        self._stepping = Stepping(self._active, self._inequalities, self._integration)
        self._copies: Sequence[System] = ()  # that were linearised
        self._spare: Sequence[System] = ()  # that were given back
        self._ask_for_kernels()
        full.control[0]["dt"] = dt
        if world is not None:
            full.q[:], full.v[:] = world.state()

    def _ask_for_kernels(self) -> None:
        """Have what its steps call compiled, all of it at once."""
        slides = self._integration.friction is not None
        stepped = stepping_kernel(int(self._active.full.control[0]["integrator"]), slides)
        if self._inequalities.act:
            stepped = run_inequalities
        found = (find_contacts, step_with_contacts) if self._options.contacts else ()
        compile_ahead(bias, run, stepped, *found)

    def __repr__(self) -> str:
        """What it is made of, how it steps and when it is."""
        acting = [name for name in ("contacts", "limits") if getattr(self._options, name)]
        acting += ["motors"] if self.motors.on else []
        method: str = self.integrator
        closing = (
            "1 constraint" if len(self.constraints) == 1 else f"{len(self.constraints)} constraints"
        )
        if method in ON_CHARTS:
            method += f" ({self.status.charts} charts)"
        return (
            f"<System: {self.mechanism.nv} rates, {closing},"
            f" {method} at {self.dt:g} s, {' and '.join(acting) or 'no limits, contacts'}"
            f"{'' if acting else ' or motors'}, t = {self.t:.6g} s>"
        )

    def __setattr__(self, name: str, value: object) -> None:
        """Set what can be set.

        Raises:
            ModelError: It cannot; the message says what is done instead.
        """
        kind = getattr(type(self), name, None)
        if not (name.startswith("_") or (isinstance(kind, property) and kind.fset)):
            raise ModelError(how_to_set(type(self), name))
        object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> NoReturn:
        """Refuse what it has not; what other programs call so is told by its name here."""
        if hasattr(type(self), name):  # a property that raised: once more, for its own message
            object.__getattribute__(self, name)
        raise AttributeError(f"a system has no '{name}'{how_to_read(name)}", name=name, obj=self)

    @property
    def mechanism(self) -> Mechanism:
        """The tree."""
        return self._active.mechanism

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """Constraints that close its loops now; see ``connect`` and ``disconnect``."""
        return tuple(c for c in self._active.constraints if not isinstance(c, Wrench))

    @property
    def tolerances(self) -> Tolerances:
        """Thresholds of the solver."""
        return self._active.tolerances

    @property
    def q(self) -> ByJoint:
        """Configuration (nq,), a copy; also by joint, as ``q["crank"]``."""
        return by_joint(self._active.q, self._active.mechanism, "q")

    @property
    def v(self) -> ByJoint:
        """Velocity (nv,), a copy; also by joint."""
        return by_joint(self._active.v, self._active.mechanism, "v")

    @property
    def t(self) -> float:
        """Time [s]."""
        return self._active.solver.t

    @property
    def gravity(self) -> Array:
        """Gravity (3,) [m/s²]; may be set."""
        return self._active.solver.control[0]["gravity"].copy()

    @gravity.setter
    def gravity(self, value: Sequence[float] | Array) -> None:
        if not are_numbers(value, (3,)):
            raise ModelError(f"gravity is {value!r}; give three finite numbers [m/s²]")
        if not np.array_equal(self.gravity, value):
            self._inequalities.forget_energy()
        for solver in self._integration.solvers:
            solver.put_gravity(np.array(value))

    @property
    def tau(self) -> ByJoint:
        """Forces (nv,) on the rates, in place: they act until they are changed [N m or N].

        They go by number or by joint: ``system.tau["crank"] = 2.0``.
        """
        return by_joint(self._active.solver.tau[0], self._active.mechanism, "tau")

    @tau.setter
    def tau(self, forces: ArrayLike | Values) -> None:
        """Set all (nv,), or those of some joints by name and the others to zero.

        Raises:
            ModelError: A joint does not exist, or a number is missing or not finite.
        """
        self._active.solver.tau[0] = forces_of(self.mechanism, forces)

    @property
    def dt(self) -> float:
        """Step [s]; may be set."""
        return self._active.solver.control["dt"].item()

    @dt.setter
    def dt(self, value: float) -> None:
        check_step(value, self._options.controls_errors)
        for solver in self._integration.solvers:
            solver.control[0]["dt"] = value
        if self._active.decision is not None:
            self._integration.take_dampers()

    @property
    def integrator(self) -> Integrator:
        """That of the next step: the one given, or the default for what acts now."""
        return self._integration.name

    @property
    def parameters(self) -> dict[str, float]:
        """Numbers that ``set_parameters`` changes, by name, as they are now.

        Those of ``parameters.parameters_of``: ``crank.mass``, ``crank_pin.damping``, ``gravity.z``
        and the like; and where contacts act ``LINK.lateral_friction``, ``.restitution``,
        ``.rolling_friction`` and ``.spinning_friction``, ``world`` for all other bodies.
        """
        return self._variation.numbers()

    def set_parameters(self, values: Mapping[str, float]) -> None:
        """Go on with other masses, places, friction and forces; the state stays, where it can.

        Rank and redundancy stay as they were decided. Loops that other lengths open are closed with
        as little motion as possible. Bullet keeps its own numbers. What earlier steps have left
        behind is forgotten, as by ``set_state``.

        Args:
            values: By name, of ``parameters``.

        Raises:
            ModelError: There is no such parameter, or a number that is not possible, or no numbers
                by name.
            AssemblyError: The loops cannot be closed with these lengths. Nothing was done in either
                case.
        """
        known = self.parameters
        require_kind(values, Mapping, f"parameters are {values!r}; give numbers by name")
        for name in values:
            require_known("parameter", name, known)
        require_numbers(values)
        self._trim()
        start, before = self.snapshot(), {name: known[name] for name in values}
        self._vary(values)
        try:
            self._settle(values, self._active.q, self._active.v)
        except AssemblyError:
            self._vary(before)
            self.take_back(start)
            raise

    def _vary(self, values: Mapping[str, float]) -> None:
        self._variation.vary(values)
        self._digest = None

    def _settle(self, values: Mapping[str, float], q: Array, v: Array) -> None:
        """Take a state (nq,), (nv,) after parameters have changed, closed where these open it."""
        active = self._active
        if moves_frames(self.constraints, values):
            free = active.nothing_held()
            try:
                active.assemble(q, free, v, free)
            except AssemblyError as error:
                said = ", ".join(f"{name} = {value:g}" for name, value in values.items())
                raise AssemblyError(
                    f"with {said} the loops cannot be closed; where directions are redundant, as"
                    f" across the plane of a linkage, lengths must leave them closed ({error})"
                ) from None
            self.forget()
            self._shown.accept()
        else:
            self.set_state(q, v)
        self._integration.take_dampers()

    @property
    def motors(self) -> Motors:
        """Motors of the joints, all off at first but those of loop joints, and friction."""
        return self._inequalities.motors

    @property
    def world(self) -> World | None:
        """Where contacts are found and states are shown; copies have none until one is given.

        A new world is shown the state, and takes over what the old one remembered of contacts.

        Raises:
            ModelError: Its bodies do not have the coordinates of this mechanism.
            WorldError: Its bodies are not those of the old one, or are gone.
        """
        return self._shown.world

    @world.setter
    def world(self, world: World | None) -> None:
        self._shown.give(world, self._active.solver)

    @property
    def decision(self) -> Decision:
        """Which rows are redundant, and why; assembles first if that has not happened yet."""
        if self._active.decision is None:
            self.assemble()
        assert self._active.decision is not None
        return self._active.decision

    @property
    def has_dependent_rows(self) -> bool:
        """Whether rows that were kept follow from others, as far as that was decided yet."""
        decision = self._active.decision
        return decision is not None and decision.cap < decision.encoded.nc

    def opening(self, rounding: float) -> frozenset[str]:
        """Constraints with redundant rows that open far beyond where they start, as it was decided.

        None before that.

        Args:
            rounding: Gap that is none, in mechanism lengths or radians.
        """
        return self._active.opening(rounding)

    def carried(self, name: str, told: Array, span: float = 0.0) -> Array:
        """Force that a loop is told to exert, less the part that no joint yields to.

        Args:
            name: The loop.
            told: (3,) force [N] in world axes, or (6,) that and the moment [N m] in those of its
                frame.
            span: Where that is not zero ``told`` is the forces of two points in world axes, the
                other one so far [m] along the frame's z.
        """
        active = self._active
        if active.decision is None or name not in active.decision.left_out:
            return told
        solver, index = active.solver, list(active.encoded.rows).index(name)
        poses, loop = solver.poses_at(active.q), solver.encoded.loops[index]
        axes: Array = poses["R"][loop["body_b"]] @ loop["R_b"]
        arm = np.array([0.0, 0.0, span])
        if span:
            told = np.hstack([told[:3] + told[3:], np.cross(arm, axes.T @ told[3:])])
        _, rows = solver.wrench_rows(poses, index, active.t)
        size = np.repeat([1.0, solver.encoded.length], 3)[: len(told)]
        rows = np.hstack([rows[:, 3:], rows[:, :3] @ axes])[:, : len(told)] / size
        kept = np.linalg.pinv(rows) @ (rows @ (told / size)) * size
        if not span:
            return np.asarray(kept)
        other = axes @ np.cross(kept[3:], arm) / span**2
        return np.hstack([kept[:3] - other, other])

    @property
    def encoded(self) -> Encoded:
        """The rows as written."""
        return self._active.encoded

    @property
    def dof(self) -> int:
        """Freedoms left: nv less the independent rows away from singular positions."""
        return self.mechanism.nv - self.decision.cap

    @property
    def status(self) -> Status:
        """How the last step went."""
        return self._stepping.status

    @called_as("give positions by joint name, as system.assemble({'joint': 0.5})")
    def assemble(
        self,
        q: Values | None = None,
        v: Values | None = None,
        guess: Values | None = None,
        *,
        within_limits: bool = False,
    ) -> Assembly:
        """Close all loops, holding the named joints and moving the others as little as possible.

        Joints not named start from the present state; velocities not named from zero. Dampers that
        explicit steps could not follow from there act at the end of steps: unless an integrator was
        given, it is ``semi_implicit_euler`` then.

        Args:
            q: Positions by joint name [rad or m], quaternions xyzw of spherical joints.
            v: Rates by joint name.
            guess: Positions to start from that are free to move.
            within_limits: Where joints would leave limits within which they were, look farther
                for positions that leave none; where none are found, limits do not count.

        Raises:
            ModelError: Unknown joint or a value that is not finite.
            AssemblyError: The loops cannot close, or the named values contradict each other.
            OverconstrainedError: Nothing could move any more.

        Warns:
            BulletBridgeWarning: The integrator that was given cannot follow a damper, or angles
                look like degrees.
        """
        start, speed = self._active.q, np.zeros(self.mechanism.nv)
        check_finite(start)
        before = start.copy()
        put_values(self.mechanism, guess or {}, start, "q")
        held = put_values(self.mechanism, q or {}, start, "q")
        self._ask_for_radians({**(guess or {}), **(q or {})}, before)
        held_v = put_values(self.mechanism, v or {}, speed, "v")
        assembly = self._assemble(start, held, speed, held_v)
        closed = self.q
        if not within_limits or not joints_beyond(self.mechanism, closed) - joints_beyond(
            self.mechanism, start
        ):
            return assembly
        within = self._assemble_within_limits(start, held, speed, held_v)
        return within or self._assemble(closed, held, speed, held_v)

    def _assemble_within_limits(
        self, start: Array, held: Mask, speed: Array, held_v: Mask, farthest: float = math.inf
    ) -> Assembly | None:
        """Find a consistent state within limits, given one that is closed; None if none is found.

        None that is farther than given from where it is looked for. The state is then another.
        """
        active = self._active
        closed, solver, t = active.q, active.solver, active.t
        most = min(farthest, FARTHER * way_between(start, closed))
        at_limits = self._assemble_at_limits(start, held, speed, held_v)
        if at_limits is not None and way_between(start, active.q) <= most:
            if locked(solver, active.q, t) <= locked(solver, closed, t):
                return at_limits
        for nearer in closed_within(solver, start, closed, t, held):
            if way_between(start, nearer) > farthest:
                continue
            try:
                assembly = self._assemble(nearer, held, speed, held_v)
            except AssemblyError:
                continue
            if not joints_beyond(self.mechanism, active.q):
                return assembly
        return None

    def _assemble_at_limits(
        self, start: Array, held: Mask, speed: Array, held_v: Mask
    ) -> Assembly | None:
        """Find a consistent state with the joints that closing takes beyond limits held at these.

        Given one that is closed. None where loops cannot close so, or other joints leave limits.
        """
        mechanism, q, fixed = self.mechanism, start.copy(), held.copy()
        before, assembly = joints_beyond(mechanism, start), None
        for _ in mechanism.joints:  # each takes one joint to its limit, at least
            beyond = [mechanism.joints[n] for n in joints_beyond(mechanism, self.q) - before]
            if not beyond:
                break
            if any(fixed[joint.v.start] for joint in beyond):
                return None
            for joint in beyond:
                k = joint.q.start
                q[k] = np.clip(self.q[k], joint.lower, joint.upper)
                fixed[joint.v.start] = True
            try:
                assembly = self._assemble(q, fixed, speed, held_v)
            except AssemblyError:
                return None
        return assembly

    def _ask_for_radians(self, given: Values, now: Array) -> None:
        """Warn of angles that look like degrees, unless joints are turned as far already."""
        for name, value in given.items():
            joint = self.mechanism.joints.get(name)
            if joint is None or joint.kind != "revolute" or not isinstance(value, int | float):
                continue
            if abs(value - float(now[joint.q.start])) > math.tau:
                for note in degrees_notes({f"joint '{name}'": [value]}):
                    warn_user(note)

    def _assemble(self, start: Array, held: Mask, speed: Array, held_v: Mask) -> Assembly:
        """Find a consistent state near start and speed, show it, and take dampers as there."""
        self._shown.check()
        assembly = self._active.assemble(start, held, speed, held_v)
        self.forget()
        self._shown.accept()
        self.write()
        self._integration.take_dampers()
        return assembly

    def _trim(self) -> None:
        """Assemble a state that is closed already, as after loading a model in a closed pose."""
        active = self._active
        if active.decision is None:
            require_closed(active.full, active.q, active.t, ASSEMBLED)
            free = active.nothing_held()
            self._assemble(active.q, free, active.v, free)

    def set_state(
        self, q: Array | None = None, v: Array | None = None, t: float | None = None
    ) -> None:
        """Set the state; what is not given stays. It must close the loops, or be near to.

        What earlier steps have left behind is forgotten: impulses to start from, turns that were
        counted, lengths of sub-steps. A run from here is that of a new system, to the bit;
        ``restore`` goes on with all of it.

        Raises:
            ModelError: A number is not finite or there are too few.
            AssemblyError: The loops are open there; call ``assemble`` first.
        """
        if isinstance(q, Mapping) or isinstance(v, Mapping):
            raise ModelError(
                "set_state takes whole states; assemble({'joint': ...}) closes the loops around"
                " some joints"
            )
        self._active.set_state(q, v, t)
        self.forget()
        self._shown.accept()

    @property
    def closing_allowance(self) -> float:
        """Gap that ``set_state`` closes, in mechanism lengths or radians."""
        return ASSEMBLED + self._active.mismatch

    def forget(self, *, impulses: bool = True) -> None:
        """Forget all that steps leave behind besides the state, as ``set_state`` does.

        Args:
            impulses: Whether those of motors, limits and contacts are forgotten as well, from which
                the next step looks for its own, and turns that were counted; not where the state
                was led on from the end of the last step, as a step would have.
        """
        self._inequalities.forget(impulses)
        if impulses:
            self._shown.forget()
        if self._integration.python is not None:
            self._integration.python.recall(None)

    def step(self, *given: Never, write: bool = True) -> None:
        """Advance by one step and show the state in the world; ``run`` makes many.

        Args:
            given: Nothing: a step is of ``dt``.
            write: Whether the world is shown it.

        Raises:
            TypeError: Something was given, which is told with what to call.
            AssemblyError: The loops are open; call ``assemble`` first.
            StepError: The step could not be finished; the state before it was restored.
            WorldError: The bodies are gone from the world, or ``changeDynamics`` has changed one,
                which is looked for now and then; nothing was done.

        Warns:
            BulletBridgeWarning: The bodies were moved in the world by somebody else since they
                were shown, or its gravity, step or friction was changed; said once, with what to
                call.
        """
        if given:
            raise TypeError(
                f"a step takes no {given[0]!r}, it is of system.dt = {self.dt:g} s; write"
                " system.run(duration), in s, or system.rollout(steps)"
            )
        active, world = self._active, self._shown.world if write else None
        if world is not None:
            world.look(self._acting_settings)
        if active.decision is None:
            self._trim()
        self._stepping.step()
        if world is not None:
            world.write(active.solver.q, active.solver.v)

    def _acting_settings(self) -> tuple[Array, float]:
        return self.gravity, self.dt

    @called_as(
        "system.rollout(steps) is told a number, system.run(duration) seconds; dt is system.dt"
    )
    def rollout(self, steps: int, every: int = 1, reactions: Collection[str] = ()) -> Recording:
        """Advance by many steps in one call, keep one state in ``every``; the world is not shown.

        Args:
            steps: How many.
            every: One state in so many is kept.
            reactions: One or several constraints, of which ``reactions`` is kept with each state,
                and joints, fixed ones too, of which ``joint_reactions`` is.

        Raises:
            ModelError: ``steps`` or ``every`` is not a positive number, or nothing is called so.
            UnsupportedError: What joints bear is not known, see ``joint_reactions``.
            AssemblyError: The loops are open; call ``assemble`` first.
            StepError: A step could not be finished; the state before it was restored.
        """
        check_counts(steps, every)
        self._trim()
        table = np.zeros((steps // every, len(self._active.solver.state) + 3))
        if not reactions:
            self._stepping.roll(steps, every, table)
            return from_table(self.mechanism, table, self.constraints)
        names, kept = [reactions] if isinstance(reactions, str) else list(reactions), len(table)
        self._loads_of(names)  # refused before the first step
        loads = np.zeros((kept, len(names), 6))
        for k in range(kept):
            self._stepping.roll(every, every, table[k : k + 1])
            loads[k] = self._loads_of(names)
        if steps % every:
            self._stepping.roll(steps % every, steps, table[:0])
        borne = {name: loads[:, k] for k, name in enumerate(names)}
        return replace(from_table(self.mechanism, table, self.constraints), reactions=borne)

    def _loads_of(self, names: Sequence[str]) -> Array:
        """Forces, then torques (n, 6) of constraints and joints, as recordings keep them."""
        closed = dict.fromkeys(constraint.name for constraint in self.constraints)
        in_tree = [name not in closed for name in names]
        require_points(self.constraints, names)
        loads = np.zeros((len(names), 6))
        if any(in_tree):
            joints = self.joint_reactions()
            for name, in_joint in zip(names, in_tree, strict=True):
                if in_joint and name not in joints:
                    refuse_name(
                        "joint or constraint",
                        name,
                        [*joints, *closed],
                    )
            loads[in_tree] = joints.in_links(n for n in names if n not in closed)
        if not all(in_tree):
            found = self.reactions()
            for k, name in enumerate(names):
                if not in_tree[k]:
                    loads[k] = *found[name].force, *found[name].torque
        return loads

    def recorded(self) -> Recording:
        """The state that the last step ended in, as a recording of one."""
        return from_table(self.mechanism, np.array([self._stepping.record()]), self.constraints)

    def compiled(self) -> tuple[Solver, Decision]:
        """Solver of the compiled steps, and the decision of its rank.

        Raises:
            ModelError: The system steps in Python.
            AssemblyError: The loops are open; call ``assemble`` first.
        """
        if self._integration.python is not None:
            raise ModelError(
                "rollouts of many worlds are for the compiled step, with the projector and one of"
                f" {', '.join(COMPILED)}; set the states one by one, or sweep over processes"
            )
        self._trim()
        return self._active.solver, self.decision

    @property
    def has_inequalities(self) -> bool:
        """Whether motors, joint friction, contacts, force limits or limits act in every step."""
        return self._inequalities.act

    @property
    def finds_contacts(self) -> bool:
        """Whether contacts of the bodies, with each other and with the world, act."""
        return self._inequalities.finds_contacts

    def fork(self, number: int, spare: "Sequence[System]" = ()) -> "Sequence[System]":
        """Copies for so many threads, which find contacts in this system's world as it stands.

        Args:
            number: How many.
            spare: Copies from earlier on, which are taken first where they can be: a new one costs
                as much as hundreds of steps.

        Raises:
            ModelError: A constraint, function or option cannot be copied.
            WorldError: Contacts act, and there is no world to find them in.
        """
        copies = [other for other in spare if self._variation.bring(other._variation)][:number]
        if copies:
            state = self.save(world=False)
            for other in copies:
                other._digest = None
                other.restore(state, write=False)
        copies += [copy.deepcopy(self) for _ in range(number - len(copies))]
        for other in copies:
            other._active.remember_decision()
            self._variation.share_with(other._variation)
        if self._inequalities.finds_contacts:
            own = self._shown.fork  # a copy's own copies are in its thread
            world = self._shown.require(FOR_CONTACTS) if own is None else None
            for other in copies:
                other._shown.fork = own if world is None else world.fork(other._shown.fork)
        return copies

    def start_from(
        self, start: tuple[Array, Array, float], parameters: Mapping[str, float]
    ) -> None:
        """Take a state, forgetting all before, as ``set_parameters`` and ``set_state`` do.

        For copies that ``fork`` has made.

        Args:
            start: q (nq,), v (nv,), t [s].
            parameters: That exist; all that earlier calls have changed.

        Raises:
            ModelError: A number is not possible.
            AssemblyError: The loops are open there.
        """
        self._shown.begin()
        self._active.go_back()
        self._active.solver.state[-1] = start[2]
        if parameters:
            self._vary(parameters)
            self._settle(parameters, start[0], start[1])
        else:
            self._inequalities.revise(self.mechanism)
            self.set_state(*start)

    def recall_steps(self, memory: SavedState) -> None:
        """Have the next step go by what those before a saved state have left, from this one.

        For copies. Of the energy budget nothing is known where these did not lead.
        """
        self._inequalities.recall(memory.parts)
        self._inequalities.forget_energy()

    def roll(self, tau: Array, counts: tuple[int, int], table: Array) -> None:
        """Advance by steps, and keep one state in so many; the world is not shown.

        Args:
            tau: (nv,) forces on the rates, or (steps, nv) to be held over each step.
            counts: Steps, and of how many one is kept.
            table: (records, nq + nv + 4) receives them, as far as steps come.

        Raises:
            StepError: A step could not be finished; the state before it was restored.
        """
        self._trim()
        solver = self._active.solver
        try:
            if tau.ndim == 2:
                solver.tau[0], solver.held = 0.0, HeldForces(tau, self.t, self.dt)
            else:
                solver.tau[0] = tau
            self._stepping.roll(*counts, table)
        finally:
            solver.held = None

    def contact_forces(self, bodies: Ints) -> Array:
        """Sum of the contact forces (n, 3) [N] on bodies in the last step, world axes.

        Args:
            bodies: (n,) of the mechanism, as ``mechanism.link(name).body``.
        """
        step = self._inequalities.last
        return np.zeros((len(bodies), 3)) if step is None else net_contact_forces(step, bodies)

    @called_as(
        "system.run(duration) is told seconds, system.rollout(steps) a number; dt is system.dt"
    )
    def run(self, duration: float, every: int = 1, reactions: Collection[str] = ()) -> Recording:
        """Advance by ``duration`` [s], then show the state in the world.

        That is a whole number of steps, the nearest, and at least one.

        Args:
            duration: [s]
            every: As of ``rollout``, and
            reactions: likewise.

        Raises:
            ModelError: ``duration`` is not a positive number, ``every`` is none from one on, or
                nothing is called so.
            UnsupportedError: What joints bear is not known, see ``joint_reactions``.
            AssemblyError: The loops are open; call ``assemble`` first.
            StepError: A step could not be finished; the state before it was restored.
        """
        if not (are_numbers(duration) and duration > 0.0):
            raise ModelError(f"a run of {duration!r} s is not possible; give a positive duration")
        if self._shown.world is not None:
            self._shown.world.look(self._acting_settings)
        recording = self.rollout(max(1, round(duration / self.dt)), every, reactions)
        self.write()
        if self._shown.world is not None:
            self._shown.world.tell_of_a_fall(self.gravity)
        return recording

    def take_stiff_springs_implicitly(self) -> None:
        """Have springs act at the end of steps if explicit ones could not follow them.

        An integrator that was given and has no such springs is left as it is.
        """
        self._integration.take_stiff_springs_implicitly()

    def connect(
        self,
        constraint: Constraint,
        *,
        as_is: bool = False,
        assemble: bool = False,
        tolerance: float = ASSEMBLED,
    ) -> Connection:
        """Add a constraint from now on; velocities change by as little as it needs.

        The change is the shortest in the metric of M: a plastic impact, which keeps the momentum of
        what floats freely and never gains energy unless something is driven.

        Args:
            constraint: What joins the two links.
            as_is: Whether it takes what it finds: frame b is put where frame a is now, a distance
                gets the length and a coupling the offset of now.
            assemble: Whether joints may move to close it, as little as possible.
            tolerance: Gap that is closed without asking, in mechanism lengths or radians.

        Returns:
            Impulses and energy.

        Raises:
            ModelError: The name is taken, the constraint names what does not exist, or has bounded
                forces.
            AssemblyError: The gap is too wide, or cannot be closed.
            OverconstrainedError: Nothing could move any more.
        """
        require_new(self._active, constraint)
        self._trim()
        chosen, connection = join(self._active, constraint, as_is, assemble, tolerance)
        self._take(chosen)
        return connection

    def disconnect(self, name: str) -> Constraint:
        """Take a constraint away; the state goes on as it is.

        Returns:
            The constraint, to be connected again.

        Raises:
            ModelError: No constraint has this name.
        """
        constraint = connected(self._active, name)
        self._trim()
        self._take(separate(self._active, name))
        return constraint

    def exchange(self, constraints: Sequence[Constraint]) -> None:
        """Go on with other constraints, which the present configuration closes.

        Velocities change by the filter. All of them together may leave no freedom.

        Raises:
            ModelError: A constraint names what does not exist, or acts by inequalities.
            AssemblyError: A gap is too wide, or cannot be closed.
        """
        active = self._active
        constraints = *constraints, *(c for c in active.constraints if isinstance(c, Wrench))
        if same(active.constraints, constraints) and active.decision is not None:
            return
        for constraint in constraints:
            require_rigid(constraint)
        may_lock, active.allow_structure = active.allow_structure, True
        try:
            self._trim()
            chosen = exchange(active, constraints)
        finally:
            active.allow_structure = may_lock
        self._take(chosen)

    def _take(self, chosen: ActiveSet) -> None:
        """Go on with other constraints, and show the state."""
        self._shown.check()
        self._active.take(chosen)
        self._shown.forget_filter()
        self.write()

    def place(self, name: str, frame: np.ndarray) -> None:
        """Put frame a of a loop elsewhere on its link; the state is not touched.

        Args:
            name: The loop.
            frame: (1,) of ``moved_frames``: where it is.
        """
        self._inequalities.place(name, frame)
        if name in self.encoded.rows:
            self._active.place(name, frame)

    def rebase(self, mechanism: Mechanism) -> None:
        """Go on with the same tree whose links that stand still are elsewhere.

        Frames of loops are where their constraints say, on those links; the state is not touched.
        """
        self._digest = None
        self._variation.rebase(mechanism)
        self._active.rebase(mechanism)
        self._inequalities.rebase(mechanism)

    def set_offset(self, name: str, offset: float) -> None:
        """Give a coupling another offset [rad or m]; the state is not touched."""
        if not self._inequalities.set_offset(name, offset):
            self._active.set_offset(name, offset)

    def set_max_force(self, name: str, force: float) -> None:
        """Give a constraint with a force limit another largest force [N or N m].

        Raises:
            ModelError: There is no such constraint, or it was made without a force limit.
        """
        self._inequalities.set_max_force(name, force)

    def acceleration(self) -> Array:
        """Accelerations (nv,) at the state."""
        self._trim()
        return self._active.solver.acceleration()

    def linearise(
        self,
        what: What = "step",
        *,
        reduced: bool | Sequence[str] = False,
        inputs: Collection[str] | None = None,
        frames: Sequence[Frame | str] = (),
        reactions: Collection[str] = (),
        gaps: Collection[str] = (),
        by: By | None = None,
        smoothing: float = 0.0,
    ) -> Linearisation:
        """How the next step, or the accelerations, answer to small changes of state and forces.

        The step is the one that ``step`` makes, by whatever integrator and formulation, with
        motors, limits and contacts as they act in it. States from which differences are taken are
        on the loops, and so are the tangents that come out. What is given as ``forces`` and as
        motions goes on by its own time. Under error control the derivative is that of the motion
        which is followed. Neither the system nor its world is moved; what takes the steps is a
        copy.

        Args:
            what: ``step``: x⁺ = A x + B u; ``continuous``: ẋ = A x + B u.
            reduced: Whether states are the freedoms alone: 2 dof numbers, rates and their
                displacements of as many joints as tell them. A list of joints says which.
            inputs: Joints whose forces, as in ``tau``, are u; all unless given.
            frames: Links or frames whose pose and velocity (12) are outputs, world axes; a turn is
                a rotation vector.
            reactions: Constraints, or joints of the tree, whose torque and force (6) are outputs,
                as ``reactions`` or ``joint_reactions`` tells them, world axes; where motors, limits
                or contacts act, those of the step.
            gaps: Loops whose gap (3) [m] is an output, as ``gap_vectors`` tells it.
            by: ``equations``: of those of the step or of motion, exact (``step_derivatives``,
                ``derivatives``); ``differences``: central ones of two lengths, extrapolated. Unless
                given, equations where they have derivatives, else differences; ``by`` of what is
                found says which. Outputs are always seen by differences.
            smoothing: Of contacts [J], as of ``step_derivatives``: of the step of smooth contacts.

        Raises:
            UnsupportedError: ``equations`` were asked for, and something has no derivatives; or
                contacts have no smooth step.
            ModelError: A name does not exist; the state is not finite, or singular; ``continuous``
                is wanted where something acts by inequalities; or smoothing is negative, wanted
                where no contacts act, or together with reactions, which it does not have.
            AssemblyError: The loops are open; call ``assemble`` first.
            StepError: A step from the state, or from one beside it, could not be finished.

        Warns:
            BulletBridgeWarning: Motors, limits or contacts act otherwise in states nearby.
        """
        request = Request(what, reduced, inputs, Outputs(frames, reactions, gaps), by, smoothing)
        check_finite(self._active.q, self._active.v)
        self._trim()
        check_request(self, request)
        return linearise(self.differentiable(), request)

    def differentiable(self) -> "System":
        """A copy at the same state, for differences; the same one at every call.

        Under error control it follows the motion closer than was asked for, so that errors do not
        depend on the state.
        """
        try:
            self._copies = self.fork(1, self._copies)
        finally:
            if self.finds_contacts and self.world is not None:  # it may have been shown others
                self.write()
        (copy,) = self._copies
        copy._integration.tighten()
        return copy

    def lend(self, number: int = 1) -> "Sequence[System]":
        """Copies at the same state that make the same steps, to be given back."""
        spare, self._spare = self._spare[:number], self._spare[number:]
        return self.fork(number, spare)

    def take_home(self, copies: "Sequence[System]") -> None:
        """Keep what was lent for whoever asks next: a new copy costs as much as many steps."""
        self._spare = *copies, *self._spare

    def tangent_solver(self) -> Solver:
        """The solver of the rows that hold in the next step, at the state: for copies.

        Constraints with a force limit are among them if they are rigid in that step, which is made
        and taken back.

        Raises:
            StepError: It could not be finished.
        """
        if not self._inequalities.force_limits_act:
            return self._active.solver
        state = self.save(world=False)
        self.step(write=False)
        held = self.holding
        self.restore(state, write=False)
        return self._inequalities.solver_holding(held)

    def derivatives(self, parameters: Sequence[str] = ()) -> Derivatives:
        """Derivatives of accelerations and multipliers by q, v and tau at the state.

        They are exact, of the rows as kept, and cost a few evaluations of the acceleration.

        Args:
            parameters: Names of those by which derivatives are wanted too: those of ``parameters``,
                and ``LINK.com.x`` [m] and ``LINK.inertia.xx`` [kg m²], the centre of mass of the
                body that a link is part of and the inertia about it, along the link's axes.

        Raises:
            ModelError: There is no such parameter.
            UnsupportedError: Motors, limits, contacts or force limits act; or a constraint is
                written in Python, or a beam bends, or a parameter is one of friction. The message
                names it.
        """
        self._trim()
        self._inequalities.require_none()
        return derivatives_at(self._active.solver, self._active.constraints, parameters)

    def step_derivatives(self, smoothing: float = 0.0) -> StepDerivatives:
        """The next step as a linear map of small changes, in tangent coordinates; it is not made.

        Of ``verlet``, ``semi_implicit_euler`` and ``rk4``, with correction and velocity filter:
        their equations are differentiated where they converge, so that whatever the change, what it
        leads to moves along the loops to round-off.

        Motors, friction, limits and contacts act by their active set at the end of the step:
        what is at its force pushes by it, what is not holds its rate, what slides rubs against its
        slip. ``active`` tells it; where it is about to become another one, steps have a kink, and
        no derivative. Contacts at rest are near one, by places, which ``at_rest`` tells: what
        touches has the derivative of the side where bodies are apart. Constraints with a force
        limit are rigid while they hold.

        Args:
            smoothing: Energy s [J]. More than zero: A, B, q and v are those of another step, that
                of smooth contacts, which push by s over their gap at a distance. A body on the
                ground is at rest at s over its weight above it, contacts that stick creep, and
                no active set changes.

        Raises:
            ModelError: The smoothing is negative, or contacts do not act.
            UnsupportedError: A constraint gives way to its force limit, motors act along axes of
                loops, contacts are deeper than a step takes back, or, with smoothing, motors or a
                limit act; the active set is about to become another one; a constraint or force is
                not known, as of ``derivatives``; or it is another integrator, steps in Python, or
                this step is cut in parts or corrected anew, as beside singular positions.
        """
        self._trim()
        solver = self._active.solver
        self._require_compiled_steps()
        if smoothing != 0.0:
            return self._smooth_step(smoothing).derivatives()
        if self.has_inequalities:
            copy = self.differentiable()
            found = copy.step_with_derivatives()
            return found._replace(active=tuple(sorted(active_set(copy).elements())))
        return step_differentiator_of(solver).step()

    def step_with_derivatives(self) -> StepDerivatives:
        """Make the next step, and have it as ``step_derivatives`` tells it: for copies.

        What is active is not told.

        Raises:
            UnsupportedError: As of ``step_derivatives``; the step may have been made.
            StepError: It could not be finished.
        """
        self._trim()
        self._require_compiled_steps()
        if not self.has_inequalities:
            found = step_differentiator_of(self._active.solver).step()
            self.step(write=False)
            return found
        start = self.snapshot()
        self.step(write=False)
        return self._derivatives_from(start)

    def _derivatives_from(self, start: Array) -> StepDerivatives:
        """``step_with_derivatives`` of the last step, which had inequalities, and began there.

        Args:
            start: (nq + nv + 1) q, v and t.

        Raises:
            UnsupportedError: As of ``step_derivatives``.
        """
        end, step = self.snapshot(), require_whole(self._inequalities.last, self.dt)
        around = self._inequalities.surroundings
        ended = ended_at(step.solver)
        try:
            self.take_back(start)
            solver = solver_at_start(self._active.solver, step, self.constraints)
            return bounded_step_derivatives(Made(solver, ended, step, around, step.rows))
        finally:
            self.take_back(end)

    def differentiate_steps(self, asked: StepsAsked) -> None:
        """Make steps as far as ``step_with_derivatives`` tells them, in few calls: for copies.

        Args:
            asked: Tells which, and receives how many, where they lead, and what this changes by.

        Raises:
            UnsupportedError: As of ``step_derivatives``, of the next step, which may have been
                made.
            StepError: It could not be finished.
        """
        counts = asked.counts
        while self._differentiate_together(asked) != ALL:
            k = int(counts[DIFFERENTIATED])
            self.tau[:] = asked.tau[k]
            if counts[MADE]:
                found = self._derivatives_from(asked.states[k])
            else:
                found = self.step_with_derivatives()
            asked.states[k + 1], asked.changes[k] = self.snapshot(), np.hstack([found.A, found.B])
            asked.at_rest[k] = len(found.at_rest) > 0
            counts[DIFFERENTIATED], counts[MADE] = k + 1, 0

    def _differentiate_together(self, asked: StepsAsked) -> int:
        """Steps with contacts as far as one kernel gets; why they have ended."""
        if asked.counts[DIFFERENTIATED] == len(asked.tau):
            return ALL
        self._trim()
        step, solver = self._inequalities.of_contacts, self._active.solver
        if self._integration.python is not None or step is None or step.solver is not solver:
            return NOT_MADE
        try:
            calls = calls_of(step_differentiator_of(solver))
        except UnsupportedError:  # which is told of each step
            return NOT_MADE
        return calls.differentiate(step, self._shown.surroundings(), asked)

    @property
    def steps_of_joints(self) -> InequalityStepper | None:
        """Stepper of the inequalities, if all of these are those of joints; for copies."""
        self._trim()
        return self._inequalities.of_joints_alone

    def _require_compiled_steps(self) -> None:
        """Refuse steps in Python."""
        if self._integration.python is not None:
            raise UnsupportedError(
                "steps in Python have no derivatives here; use a compiled integrator with the"
                " projector, or central differences of step()"
            )

    def smooth_step(self, smoothing: float) -> tuple[Array, Array]:
        """Where the next step with smooth contacts leads, q and v; it is not made.

        To what ``step_derivatives`` with this smoothing says, in a part of the time.

        Args:
            smoothing: Energy s [J].

        Raises:
            ModelError: The smoothing is not positive, or contacts do not act.
            UnsupportedError: As of ``step_derivatives``.
        """
        self._trim()
        return self._smooth_step(smoothing).end()

    def _smooth_step(self, smoothing: float) -> SmoothStep:
        """The next step with smooth contacts."""
        self._require_compiled_steps()
        if not 0.0 < smoothing < math.inf or not self.finds_contacts:
            raise ModelError(
                f"smoothing is {smoothing}; give a positive energy, of a system whose contacts act"
            )
        require_no_force_limits(self.constraints)
        if self.motors.any_on:
            raise UnsupportedError(
                "motors and friction of joints act, of which no smooth step is known; switch them"
                " off, and give forces"
            )
        if np.any(self._inequalities.joint_limits["axis"] < 0):
            raise UnsupportedError(
                "a free motion of a loop joint has limits, of which no smooth step is known; leave"
                " them out"
            )
        copy = self if self._shown.fork is not None else self.differentiable()
        assert copy._shown.fork is not None
        return SmoothStep(self._active.solver, copy._shown.fork, smoothing)

    def spring_forces(self) -> dict[str, SpringForce]:
        """Length or turn, rate and force of each force element at the state, by name."""
        return ByName("force element", spring_forces(self._active.full, *self._active.now))

    def applied_wrenches(
        self, q: Array | None = None, v: Array | None = None, t: float | None = None
    ) -> dict[str, AppliedWrench]:
        """Point, force, torque and power of each ``Wrench`` by name; at the state unless given."""
        state = self._state_or(q, v, t)
        return ByName("wrench", applied_wrenches(self._active.full, *state))

    def applied_power(
        self, q: Array | None = None, v: Array | None = None, t: float | None = None
    ) -> float:
        """Power [W] of tau and of all that ``forces`` names; at the state unless given.

        The energy changes by it, less what dampers take, plus what driven constraints give.
        """
        return applied_power(self._active.full, *self._state_or(q, v, t))

    def _state_or(
        self, q: Array | None, v: Array | None, t: float | None
    ) -> tuple[Array, Array, float]:
        """What is given of a state, the rest of it as it is now."""
        here_q, here_v, here_t = self._active.now
        q, v = here_q if q is None else q, here_v if v is None else v
        return np.asarray(q, float), np.asarray(v, float), here_t if t is None else float(t)

    @property
    def dynamics(self) -> SystemDynamics:
        """The equations of motion at any state, for formulations and integrators."""
        self._trim()
        return SystemDynamics(self._active.solver)

    def terms(self) -> Terms:
        """M, h, g, J, g_t and gamma at the state, rows as kept."""
        return self._active.solver.terms(*self._active.now)

    def evaluate(
        self, q: Array | None = None, v: Array | None = None, t: float | None = None
    ) -> Evaluation:
        """Gaps, energy and momentum of a state, the present one unless given.

        The state may come from any simulator; gaps are those of the rows as written.
        """
        return evaluate(self._active.full, self._active.solver, *self._state_or(q, v, t))

    def widths(self, q: Array) -> dict[str, tuple[float, float]]:
        """How far each constraint is open [m], [rad] at positions now: what ``evaluate`` has."""
        return widths(self._active.full, q, self.t)

    def gap_columns(self, run: Recording) -> dict[str, Array]:
        """How far loops are open at the states of a recording, as columns (n,) beside its own.

        ``NAME.gap`` [m] and ``NAME.gap_rad`` [rad], as of ``Gap.kept_metres`` and ``kept_radians``,
        where a constraint has such rows.
        """
        states = zip(run.q, run.v, run.t.tolist(), strict=True)
        found = [self.evaluate(q, v, t).gaps for q, v, t in states]
        encoded, columns = self._active.full.encoded, dict[str, Array]()
        for k, (name, part) in enumerate(encoded.rows.items()):
            metres = encoded.in_metres[part]
            if metres.any():
                columns[f"{name}.gap"] = np.array([gaps[k].kept_metres for gaps in found])
            if not metres.all():
                columns[f"{name}.gap_rad"] = np.array([gaps[k].kept_radians for gaps in found])
        return columns

    def gap_vectors(
        self, q: Array | None = None, t: float | None = None, *, kept: bool = False
    ) -> dict[str, tuple[Array, Array]]:
        """Origin of frame b (3,) [m] of each loop, and how far it is from its place (3,) [m].

        World axes, at the present state unless given; turns do not count. Couplings and users'
        rows have no place and are left out.

        Args:
            q: (nq,)
            t: [s]
            kept: Whether directions in which no joint can move the loop do not count, such as
                those across a plane by which the numbers of a file are rounded.
        """
        here_q, v, here_t = self._active.now
        q, t = here_q if q is None else q, here_t if t is None else t
        solver = self._active.solver if kept else self._active.full
        return ByName("loop", gap_vectors(solver, q, v, t, kept))

    def misplaced_frames(self, guess: Values | None = None) -> dict[str, Array]:
        """Ways (3,) [m] by which frame b of loops is off where no joint takes it, by loop.

        In axes of the frame's link, as ``Frame.xyz``; of loops that can meet there is none.
        Loops may be open.

        Args:
            guess: Positions by joint name to start from; the present ones of others.
        """
        active, start = self._active, self._active.q
        put_values(self.mechanism, guess or {}, start, "q")
        return misplaced_frames(
            active.full,
            (start, active.t),
            {each.name: each.b.link for each in self.constraints if isinstance(each, LoopJoint)},
            self.tolerances.redundant,
        )

    def kinematics(self) -> Kinematics:
        """Frames, Jacobians and bias accelerations at the state."""
        return kinematics_at(self._active.solver, *self._active.now)

    def wrench(self, link: Frame, force: Array, torque: Array | None = None) -> Array:
        """Joint forces (nv,) of a force [N] and torque [N m], world axes, at a frame's origin.

        Add it to ``tau``.

        Raises:
            ModelError: The frame's link does not exist.
        """
        moment = np.zeros(3) if torque is None else np.asarray(torque, float)
        return self.kinematics().wrench(link, np.asarray(force, float), moment)

    def loop_axes(self, name: str) -> LoopAxisMotion:
        """Free motions of loop joint ``name``: positions, rates, and where forces along them act.

        Raises:
            ModelError: There is no such loop joint, or it is universal or driven.
        """
        return loop_axis_motion(self.constraints, name, self.kinematics())

    def link_pose(self, name: str) -> tuple[Array, Array]:
        """Rotation (3, 3) and position (3,) [m] of a link in the world.

        Raises:
            ModelError: The link does not exist.
        """
        return link_pose(self._active.solver, name)

    @property
    def complementarity(self) -> Complementarity | None:
        """How motors, limits and contacts of the last step were solved; None without any."""
        latest = self._inequalities.latest
        return None if latest is None else latest.complementarity

    def contacts(self) -> tuple[ContactLoad, ...]:
        """Contacts of the last step and their forces, also those that carry nothing.

        None are told after the state was set.
        """
        step = self._inequalities.last
        return () if step is None else contacts_of(step, self.mechanism)

    @property
    def contact_points(self) -> np.ndarray:
        """Records (n,) of what ``contacts`` tells, as they were found, of ``CONTACT_POINT``."""
        step = self._inequalities.last
        if step is None:
            return NO_CONTACTS
        return np.concatenate([step.held_points, step.contact_points])

    @property
    def joint_loads(self) -> dict[str, JointLoad]:
        """Forces of motors, friction and limits in the last step, by joint."""
        step = self._inequalities.last
        if step is None:
            loads = {name: JointLoad(0.0, 0.0, 0.0) for name in self.motors.names}
        else:
            loads = joint_loads(step, self.motors)
        return ByName("joint", loads)

    def closing_impulse(self) -> Array:
        """Impulses on the rates (nv,) that closed the loops at the last step's end [N s, N m s].

        Forces that are told after a step with motors, limits or contacts, ``reactions`` among them,
        are those at its start; with this they are the whole change of the momenta. Where rows stay
        it is of second order in the step. A chain at its reach is held by nothing else: the rows at
        its start have no force against what would bend it, so ``reactions`` have none.

        Raises:
            UnsupportedError: The last step had none of these, or constraints have come or gone;
                reactions are then those of the state, not of a step.
        """
        step = self._inequalities.last_of_these
        if step is None:
            raise UnsupportedError(
                "what closing the loops did is known of steps with motors, limits or contacts, as"
                " long as the state and the constraints are theirs: take such a step first"
                " (limits='always' makes every step one)"
            )
        return closing_impulse(step)

    def joint_reactions(self, pushes: Iterable[Push] = ()) -> JointReactions:
        """Forces and moments of each joint of the tree on the link that it carries, by name.

        Revolute, prismatic, spherical and fixed joints alike, with what their motors, springs,
        dampers, friction and limits do along them. As ``reactions`` of the constraints, with which
        they are in balance: after a step with motors, limits or contacts the mean over it, at its
        start; otherwise at the state. ``in_links`` of them is a table as sensors read.

        Args:
            pushes: What ``tau`` has of forces on links, as ``wrench`` puts it there; taken for
                forces of joints unless they are named here. Each a frame, the force (3,) [N] and
                the torque (3,) [N m] at its origin, world axes.

        Raises:
            UnsupportedError: There are modal beams, or constraints in Python, of which no more is
                known than what they do to rates.
            ModelError: The link of a push does not exist.

        Source: Featherstone, Rigid Body Dynamics Algorithms, ch. 5.3 (RNEA).
        """
        self._trim()
        step = self._inequalities.last_of_these
        if step is None:
            solver = self._active.solver
            loads = self._joint_loads(solver, self.decision)
            return loads.at(self._active.now, solver.tau[0], pushes)
        decision = self.decision if step.rigid is None else step.rigid.decision
        return self._joint_loads(step.solver, decision).in_step(step, self._shown, pushes)

    def _joint_loads(self, solver: Solver, decision: Decision) -> JointLoads:
        """What finds what joints bear with the rows of a solver."""
        if self._link_tree is None or self._link_tree.mechanism is not self.mechanism:
            self._link_tree = LinkTree(self.mechanism)
        key = self._link_tree, solver, self._active.constraints, decision.by_name
        for found in self._bearing:
            if found.are_for(*key):
                return found
        found = JointLoads(*key)
        self._bearing = [found, *self._bearing[:1]]  # while others hold, too
        return found

    @called_as("system.reactions()['name'] is one of them")
    def reactions(self) -> dict[str, Reaction]:
        """Force and moment of each constraint, by name.

        After a step with motors, limits or contacts: at its start, with their forces in that step,
        and with what acts along the free motions of loop joints. Otherwise at the state, also once
        constraints have come or gone.
        """
        step = self._inequalities.last_of_these
        if step is None:
            vdot, solver = self.acceleration(), self._active.solver
            q, v, t = self._active.now
            terms, known = solver.terms(q, v, t), self.decision.by_name
            found = reactions(solver, known, terms, t, vdot, solver.tau[0])
        else:
            decision = self.decision if step.rigid is None else step.rigid.decision
            found = loaded_reactions(step, decision.by_name)
        return ByName("constraint", found)

    @property
    def holding(self) -> frozenset[str]:
        """Names of the constraints with a force limit that were rigid in the last step."""
        step = self._inequalities.last
        return NOBODY if step is None or step.rigid is None else step.rigid.holding

    @property
    def lone_step(self) -> Callable[[tuple[()]], int] | None:
        """The next step in one call, if steps are no more than that: for who has many systems.

        It returns whether the step failed, with the state before it. None where time drives steps,
        contacts or force limits act, or no step was made yet.
        """
        return self._inequalities.lone if self._stepping.stepper is self._inequalities else None

    def snapshot(self) -> Array:
        """q, v and t (nq + nv + 1), for ``take_back``."""
        return self._active.snapshot()

    def take_back(self, state: Array) -> None:
        """Undo the last step; impulses to start from stay those that it found.

        Args:
            state: (nq + nv + 1) from ``snapshot`` before it.
        """
        self._active.take_back(state)

    def read(self) -> None:
        """Take the state as the world has it now, for instance after ``resetJointState``.

        Friction of contacts is read again too.

        Raises:
            AssemblyError: The loops are open there; call ``assemble`` with what is to be held.
            WorldError: The bodies are not there any more, or ``changeDynamics`` has changed masses
                or inertias, which are read once. (What it does to joints Bullet does not tell.)
        """
        if self.world is not None:
            self.world.check()
            self.world.check_properties()
            self.set_state(*self.world.state())

    def filter(
        self,
        sticking: np.ndarray | None = None,
        open: Collection[str] = (),
        assemble: bool = False,
        found: tuple[Array, Array] | None = None,
        write: bool = True,
        led: bool = True,
    ) -> Impulses:
        """Bring the world's own state onto the loops, after somebody else has advanced it.

        The configuration is corrected and the velocity filtered, both by as little as possible in
        the metric of the mass matrix. A step dt from the system's state is taken to have led there:
        what the correction moves, over dt, is part of the velocity, which is what makes the energy
        of undamped motion stay.

        Args:
            sticking: (n,) points that stay where they are and keep their velocity, as far as the
                loops let them, of dtype ``mechanism.records.STICKING_POINT``.
                ``BulletBodies.sticking_points`` makes them of Bullet's contacts.
            open: Names of constraints that are left as they are this time.
            assemble: Whether loops that are too far open for a correction are assembled first, by
                moving floating bases alone where that will do.
            found: q (nq,) and v (nv,) of the world, where they have been read already.
            write: Whether the world is shown the state at once.
            led: Whether a step has led there; not so if bodies were put elsewhere since the last
                call, or are assembled.

        Returns:
            What it took.

        Raises:
            ModelError: There is no such constraint, or ``sticking`` is no array of such points.
            AssemblyError: The loops cannot be closed near that state; the world keeps it.
            WorldError: There is no world, or the bodies are not there any more.
        """
        world, active = self._shown.require(FOR_STATES), self._active
        sticking = NO_STICKING_POINTS if sticking is None else sticking
        found = world.state() if found is None else found
        first = assemble and not open and active.decision is None
        impulses = self._filter_from(found, sticking, tuple(open), assemble, led and not assemble)
        if first and self._leave_closure_beyond_limits(*found):
            close = self._shown.filter_of(active.solver, self.decision)
            impulses = close(active.q, active.v, sticking, (), led=False)
        if write:
            world.write(active.solver.q, active.solver.v)
        return impulses

    def _filter_from(
        self,
        found: tuple[Array, Array],
        sticking: np.ndarray,
        open: tuple[str, ...],
        assemble: bool,
        led: bool,
    ) -> Impulses:
        """Close loops near q and v as they were found; arguments as of ``filter``."""
        active, (q, v) = self._active, found
        if assemble and not open:
            q = active.closed_by_bases(q)
        active.decide_near(q, SHAKES if assemble else ())
        close = self._shown.filter_of(active.solver, self.decision)
        try:
            return close(q, v, sticking, open, led)
        except AssemblyError:
            if active.reconsider(int(active.solver.control[0]["failure"])):
                return self._filter_from((q, v), sticking, open, assemble, led)
            if not assemble:
                raise
            free = active.nothing_held()
            self._assemble(q, free, v, free)
            return close(active.q, active.v, sticking, open, led=False)

    def _leave_closure_beyond_limits(self, found: Array, v: Array) -> bool:
        """Close loops within limits, where closing what was found open has left some; whether so.

        Who puts loops together in an open pose has not chosen which way they close. Who closes them
        but for rounding, as a grasp does, has, wherever joints are.

        Warns:
            BulletBridgeWarning: No other way is found; the message has the joints.
        """
        active, mechanism = self._active, self.mechanism
        closed = active.q
        beyond = joints_beyond(mechanism, closed)
        if not beyond or open_by(active.solver, found, active.t) < NEARLY:
            return False
        farthest = FARTHER * way_between(found, closed)
        if most_beyond(mechanism, found) > farthest:
            return False
        free = active.nothing_held()
        if self._assemble_within_limits(found, free, v, free, farthest) is not None:
            return True
        self._assemble(closed, free, v, free)
        told = "; ".join(beyond_limits(mechanism, closed))
        warn_user(f"loops that began open close beyond limits alone: {told}")
        return False

    @property
    def known_filter(self) -> Filter | None:
        """The compiled part of ``filter`` as the constraints are now.

        None before it is decided which of their rows are redundant, as at its first use.
        """
        active = self._active
        if active.decision is None:
            return None
        return self._shown.filter_of(active.solver, active.decision)

    def write(self) -> None:
        """Show the state in the world.

        Raises:
            WorldError: The bodies are not there any more.
        """
        self._shown.show(self._active.solver)

    @called_as("system.save() returns the state, which pickle writes: pickle.dump(state, file)")
    def save(self, *, world: bool = True) -> SavedState:
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
        remembered = self._shown.memory
        if self._options.contacts and self.world is not None:
            remembered = self.world.save(world)
        parts, python = self._inequalities.memory(), self._integration.python
        parts["python"] = None if python is None else python.memory()
        here = *self._active.now, self._made_of(), self._plain_options()
        return SavedState(*here, save_sets(self._active), parts, remembered)

    def restore(self, state: SavedState, *, write: bool = True) -> None:
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
        require_kind(state, SavedState, f"{given_as(state)} is no state; give what save() returned")
        require_same(state, self._made_of(), self._plain_options())
        require_constraints(self._active, state.sets)
        shown = False
        if state.world is not None and self.world is not None:
            shown = self.world.restore(state.world, write)
        restore_sets(self._active, state.sets)
        self._inequalities.recall(state.parts)
        if self._integration.python is not None:
            self._integration.python.recall(state.parts["python"])
        if self.world is None:
            self._shown.memory = state.world
        elif write and not shown:
            self.write()

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles: the same system at the same state, without a world.

        Raises:
            ModelError: When it is pickled, and a constraint, function or option cannot be.
        """
        constraints = [Carried(f"constraint '{c.name}'", c) for c in self.constraints]
        options = {name: Carried(f"option '{name}'", x) for name, x in vars(self._options).items()}
        forces = {name: Carried(f"force of '{name}'", x) for name, x in self._forces.items()}
        options["allow_structure"] = Carried("option", self._active.allow_structure)
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
        system._options = replace(system._options, contacts=contacts)
        if contacts:
            system._inequalities.take_contacts()
            system._stepping.forget()
        system.restore(state)
        return system

    def _made_of(self) -> tuple[tuple[str, ...], bytes]:
        self._digest = self._digest or digest(self.mechanism)
        return self._digest

    def _plain_options(self) -> dict[str, Any]:
        """Options that a state depends on; a function that makes a formulation by its name."""
        make = self._options.formulation
        name = make if isinstance(make, str) else getattr(make, "__qualname__", type(make).__name__)
        return {**vars(self._options), "formulation": name}


def require_system(given: object) -> None:
    """Refuse what a program gives in the place of a system.

    Raises:
        ModelError: It is none; it says where one is had.
    """
    system = getattr(given, "system", None)
    have = "its system, model.system" if isinstance(system, System) else "what attach returned"
    require_kind(given, System, f"{given_as(given)} is no system: give {have}")
