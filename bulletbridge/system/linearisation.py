"""A system as it answers to small changes of its state and forces: A, B, C and D along the loops.

``linearise`` asks a copy of the system, which is taken to states around the present one; the system
itself is not touched. States are tangent coordinates of the state that the loops leave free.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol, get_args

import numpy as np

from bulletbridge.constraints.encode import Constraint
from bulletbridge.constraints.joint_models import has_force_limit
from bulletbridge.constraints.joints import Frame, frame_of
from bulletbridge.engine.failures import check_finite
from bulletbridge.engine.step_differentiator import StepDerivatives
from bulletbridge.engine.stepper import Solver
from bulletbridge.errors import ModelError, UnsupportedError, warn_user
from bulletbridge.inequalities.joint_slopes import BESIDE, SATURATED
from bulletbridge.inequalities.motors import Motors
from bulletbridge.mechanism.by_joint import rate_names
from bulletbridge.mechanism.displacement import configuration_difference
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.numerics.records import Array, Mask
from bulletbridge.system.contact_report import ContactLoad, JointLoad
from bulletbridge.system.derivatives import Derivatives
from bulletbridge.system.differences import Differences, Movable
from bulletbridge.system.evaluation import Reaction, kinematics_at, require_points
from bulletbridge.system.joint_reactions import JointReaction
from bulletbridge.system.parameters import require_known
from bulletbridge.system.saved import SavedState
from bulletbridge.system.tangents import Tangents, point_of

What = Literal["step", "continuous"]
By = Literal["equations", "differences"]
Complexes = np.ndarray[tuple[int, ...], np.dtype[np.complex128]]
ALIKE = 1e-10
"""What round-off takes steps apart by that are made one by one and in a row, and some more."""
BESIDE_LIMIT = (
    "a joint is at a limit in this step or beside it, where equations are others; use central"
    " differences"
)
OF_FRAMES = tuple(
    f"{kind}.{axis}"
    for kind in ("turn", "position", "angular_velocity", "velocity")
    for axis in "xyz"
)
OF_REACTIONS = tuple(f"{kind}.{axis}" for kind in ("torque", "force") for axis in "xyz")


class Outputs(NamedTuple):
    """What is to be seen of a system besides its state."""

    frames: Sequence[Frame | str] = ()  # frames or links, whose poses and velocities
    reactions: Collection[str] = ()  # constraints, or joints of the tree, whose forces
    gaps: Collection[str] = ()  # loops, whose gaps


@dataclass(frozen=True, eq=False, repr=False)
class Linearisation:
    """A linear system around a state: x⁺ = A x + B u of a step, or ẋ = A x + B u; y = C x + D u.

    x and u are differences from the state and the forces at which it was taken. Positions among the
    states are displacements: of q by ``kinematics.displace``, as velocities displace it in a unit
    of time, so that a floating base has six and a spherical joint three. x⁺ is seen from where the
    step leads (``q_after``), which is the state itself only at rest.

    Attributes:
        what: ``step`` or ``continuous``.
        A: (n, n).
        B: (n, m).
        C: (p, n).
        D: (p, m).
        states: (n,) names of rows and columns: rates that displace, by joint, then ``.rate`` of
            each.
        inputs: (m,) names of the forces on the rates, by joint.
        outputs: (p,) names.
        dt: Length of the step [s]; None of the continuous system.
        q: (nq,) where it was taken.
        v: (nv,)
        tau: (nv,) forces on the rates there.
        t: Time there [s].
        q_after: (nq,) where the step leads; the state itself, of the continuous system.
        v_after: (nv,)
        lift: (2 nv, n) what all tangent coordinates do as one state moves. If it is not reduced,
            this brings any displacement to the nearest that the loops allow.
        active: Motors at their force, friction, limits, contacts and constraints that give way in
            the step, as it is from the state. The derivative is that of this active set.
        changed: Those that are others in steps from states nearby: there is a kink beside the
            state, and numbers are means of both its sides.
        at_rest: Contacts that rest, as of ``StepDerivatives``: there is a kink, by places, 1e-7 m
            from the state at most. Empty where differences were taken, which are a mean of both
            sides.
        error: Largest difference between those of two step lengths, before their errors of second
            order were taken out; 0 where no differences were taken.
        by: How A and B were found.
    """

    what: What
    A: Array
    B: Array
    C: Array
    D: Array
    states: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    dt: float | None
    q: Array
    v: Array
    tau: Array
    t: float
    q_after: Array
    v_after: Array
    lift: Array
    active: tuple[str, ...]
    changed: tuple[str, ...]
    at_rest: tuple[str, ...]
    error: float
    by: By

    def __repr__(self) -> str:
        """What of, how large, and how it was found."""
        n, kinks = len(self.states), f", kinks: {', '.join(self.changed)}" if self.changed else ""
        kinks += f", at rest: {', '.join(sorted(set(self.at_rest)))}" if self.at_rest else ""
        sizes = f"{n} states, {len(self.inputs)} inputs, {len(self.outputs)} outputs"
        return f"<Linearisation: {self.what} at t = {self.t:.6g} s, {sizes}, by {self.by}{kinks}>"

    @property
    def eigenvalues(self) -> Complexes:
        """(n,) of A, those first that grow fastest."""
        found = np.asarray(np.linalg.eigvals(self.A), np.complex128)
        growth = np.abs(found) if self.dt else found.real
        order = np.lexsort((found.imag, -growth.round(12)))
        return np.asarray(found[order], np.complex128)

    @property
    def poles(self) -> Complexes:
        """(n,) eigenvalues of the continuous system [1/s]; of a step, log of its own over dt.

        What a step forgets at once, as what loops forbid, is -inf.
        """
        if self.dt is None:
            return self.eigenvalues
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.eigenvalues) / self.dt, np.complex128)


class Linearisable(Movable, Protocol):
    """What ``linearise`` asks of a system: steps, accelerations, and what is seen of it."""

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """What closes its loops."""
        ...

    @property
    def has_inequalities(self) -> bool:
        """Whether motors, friction, contacts, force limits or limits act in every step."""
        ...

    @property
    def motors(self) -> Motors:
        """Motors of the joints, and friction."""
        ...

    @property
    def joint_loads(self) -> dict[str, JointLoad]:
        """Forces of motors, friction and limits in the last step."""
        ...

    @property
    def holding(self) -> frozenset[str]:
        """Constraints with a force limit that were rigid in the last step."""
        ...

    def save(self, *, world: bool = True) -> SavedState:
        """Everything that decides its future."""
        ...

    def step(self, *, write: bool = True) -> None:
        """Advance by one step."""
        ...

    def step_derivatives(self, smoothing: float = 0.0) -> StepDerivatives:
        """The next step as a linear map."""
        ...

    def step_with_derivatives(self) -> StepDerivatives:
        """Make the next step, and have it as a linear map."""
        ...

    def smooth_step(self, smoothing: float) -> tuple[Array, Array]:
        """Where the next step with smooth contacts leads, q and v."""
        ...

    def derivatives(self) -> Derivatives:
        """Derivatives of the accelerations at the state."""
        ...

    def gap_vectors(self) -> dict[str, tuple[Array, Array]]:
        """Place and gap of each loop."""
        ...

    def contacts(self) -> tuple[ContactLoad, ...]:
        """Contacts of the last step."""
        ...

    def reactions(self) -> dict[str, Reaction]:
        """What each constraint does."""
        ...

    def joint_reactions(self) -> Mapping[str, JointReaction]:
        """What each joint of the tree bears."""
        ...


class Request(NamedTuple):
    """What ``System.linearise`` was asked."""

    what: What  # of a step, or of accelerations
    # whether states are those of the freedoms alone; or joints that tell these
    reduced: bool | Sequence[str]
    inputs: Collection[str] | None  # joints whose forces are inputs; None for all
    outputs: Outputs  # what else is seen
    by: By | None  # how derivatives are taken; None for the equations' own where they have them
    smoothing: float = 0.0  # of contacts [J]; zero for ideal ones


class Full(NamedTuple):
    """A and B in all tangent coordinates.

    Attributes:
        A: (2 nv, 2 nv), of displacements that are closed first.
        B: (2 nv, nv).
        q_after, v_after: Where the step leads.
        active, changed, at_rest: As of ``Linearisation``.
        error: Of differences.
    """

    A: Array
    B: Array
    q_after: Array
    v_after: Array
    active: tuple[str, ...]
    changed: tuple[str, ...]
    at_rest: tuple[str, ...]
    error: float
    by: By


def check_request(system: Linearisable, request: Request) -> None:
    """Refuse what cannot be linearised."""
    for name, value, known in (("what", request.what, What), ("by", request.by, By)):
        if value not in get_args(known) and (name, value) != ("by", None):
            raise ModelError(f"{name} is {value!r}; give one of {', '.join(get_args(known))}")
    if request.what == "continuous" and system.has_inequalities:
        raise ModelError(
            "motors, joint friction, limits, contacts and force limits act in steps alone; give"
            " what='step', or switch them off"
        )
    if request.smoothing != 0.0 and (request.what != "step" or request.outputs.reactions):
        raise ModelError(
            "smooth contacts act in steps alone, of which no reactions are known; leave smoothing"
            " or these out"
        )
    solver = system.dynamics.solver
    check_finite(solver.q, solver.v)
    if not np.all(np.isfinite(solver.tau[0])):
        raise ModelError("tau has numbers that are not finite; set all of them")
    borne = known_of_joints(system, request.outputs.reactions)
    for name in request.outputs.reactions:
        if name not in borne:
            require_known("constraint", name, [one.name for one in system.constraints])
    require_points(system.constraints, request.outputs.reactions)
    loops = list(system.gap_vectors())
    for name in request.outputs.gaps:
        require_known("loop with a gap", name, loops)
    for frame in request.outputs.frames:
        solver.mechanism.link(frame_of(frame).link)
    for name in request.inputs or ():
        solver.mechanism.joint(name)


def known_of_joints(system: Linearisable, wanted: Collection[str]) -> dict[str, JointReaction]:
    """What joints bear, of those that are wanted and no constraint."""
    constraints = {one.name for one in system.constraints}
    joints = [name for name in wanted if name not in constraints]
    found: Mapping[str, JointReaction] = system.joint_reactions() if joints else {}
    return {name: found[name] for name in joints if name in found}


def linearise(copy: Linearisable, request: Request) -> Linearisation:
    """The linear system around the state of a copy, which is left elsewhere.

    Raises:
        ModelError: The mechanism is singular there, or joints do not tell its freedoms.
        StepError: A step from the state, or from one beside it, could not be finished.
    """
    solver = copy.dynamics.solver
    at, mechanism = point_of(solver), solver.mechanism
    chosen = None if isinstance(request.reduced, bool) else request.reduced
    differences = Differences(copy, at, copy.save(world=False))
    tangents = differences.tangents(chosen)
    lengths = tangents.lengths
    full = derive(copy, differences, tangents, request)
    if full.changed:
        warn_user(
            f"{', '.join(full.changed)}: others act in steps from states nearby; there is a kink"
            " beside this state, and its linearisation is a mean of both sides"
        )
    see = Seeing(copy, request)
    outputs, by_state, by_forces = (), np.zeros((0, 2 * len(lengths))), np.zeros((0, len(lengths)))
    error = full.error
    if any(request.outputs):
        differences.put()
        see()
        by_state, more = differences.by_state(tangents, see)
        by_forces, most = differences.by_forces(tangents, see)
        outputs, error = tuple(see.names), max(error, more, most)
    names = rate_names(mechanism)
    states = np.array([*names, *(f"{name}.rate" for name in names)])
    lift, picked = tangents.lift, tangents.picked
    if request.reduced is False:
        lift, picked = tangents.closing, np.arange(len(states))
    rates = np.arange(mechanism.nv)
    if request.inputs is not None:
        rates = np.array(
            [k for name in request.inputs for k in rates[mechanism.joint(name).v]], np.int64
        )
    A, C = (full.A, by_state) if request.reduced is False else (full.A @ lift, by_state @ lift)
    return Linearisation(
        request.what, A[picked], full.B[np.ix_(picked, rates)], C, by_forces[:, rates],
        tuple(map(str, states[picked])), tuple(names[k] for k in rates), outputs,
        float(solver.control[0]["dt"]) if request.what == "step" else None,
        *(at.q, at.v, at.tau, at.t), *(full.q_after, full.v_after), lift,
        *(full.active, full.changed, full.at_rest, error, full.by),
    )  # fmt: skip


def derive(
    copy: Linearisable, differences: Differences, tangents: Tangents, request: Request
) -> Full:
    """A and B by the equations where these are known, and wanted; else by central differences.

    Raises:
        UnsupportedError: The equations were asked for, and something in them has no derivatives.
    """
    of_step = request.what == "step"
    if request.by != "differences":
        differences.put()
        try:
            if of_step:
                return step_by_equations(copy, tangents, request.smoothing)
            return flow_by_equations(copy, tangents)
        except UnsupportedError:
            if request.by is not None or request.smoothing:
                raise
    if of_step:
        return step_by_differences(copy, differences, tangents, request.smoothing)
    return flow_by_differences(copy, differences, tangents)


def step_by_equations(copy: Linearisable, tangents: Tangents, smoothing: float) -> Full:
    """A and B of one step by those of its predictor, correction and filter."""
    active = Counter[str]()
    if smoothing:
        found = copy.step_derivatives(smoothing)
    else:
        found, active = copy.step_with_derivatives(), active_set(copy)
        if not copy.has_inequalities:  # the derivatives know them
            require_plain(copy.dynamics.solver, found)
            if active:
                raise UnsupportedError(BESIDE_LIMIT)
    A, told = found.A @ tangents.closing, tuple(sorted(active.elements()))
    return Full(A, found.B, found.q, found.v, told, (), found.at_rest, 0.0, "equations")


def require_plain(solver: Solver, found: StepDerivatives) -> None:
    """Refuse derivatives of a step that a joint limit may have changed.

    Args:
        solver: Where the step has led.
        found: By the equations of the step.

    Raises:
        UnsupportedError: The step led elsewhere, or a joint is at a limit or beside it.
    """
    there, led = (np.concatenate([x.q, x.v])[None] for x in (solver, found))
    if not are_plain(solver.mechanism, there, led)[0]:
        raise UnsupportedError(BESIDE_LIMIT)


def are_plain(mechanism: Mechanism, states: Array, led: Array) -> Mask:
    """Whether steps have led where their equations say, and far enough from any joint limit.

    Args:
        mechanism: Whose.
        states: (n, nq + nv) where they have led.
        led: (n, nq + nv) where they lead by their equations alone.
    """
    axes = mechanism.axes[mechanism.axes["limited"] != 0]
    position = states[:, axes["q"]]
    room = np.minimum(position - axes["lower"], axes["upper"] - position)
    alike = np.abs(states - led) <= ALIKE * np.maximum(1.0, np.abs(led))
    return np.all(alike, axis=1) & np.all(room > BESIDE, axis=1)


def flow_by_equations(copy: Linearisable, tangents: Tangents) -> Full:
    """A and B of the accelerations at a state by the equations of motion."""
    found, mechanism = copy.derivatives(), copy.dynamics.solver.mechanism
    by_state = np.hstack([found.acceleration_by_q, found.acceleration_by_v]) @ tangents.closing
    A, B = of_flow(mechanism, tangents, by_state, found.acceleration_by_tau)
    return Full(A, B, tangents.at.q, tangents.at.v, (), (), (), 0.0, "equations")


def step_by_differences(
    copy: Linearisable, differences: Differences, tangents: Tangents, smoothing: float
) -> Full:
    """A and B of one step, as ``System.step`` makes it or of smooth contacts, by differences."""
    solver, active, others = copy.dynamics.solver, Counter[str](), set[str]()

    def end() -> tuple[Array, Array]:
        if smoothing:
            return copy.smooth_step(smoothing)
        copy.step(write=False)
        q, v, *_ = point_of(copy.dynamics.solver)
        return q, v

    differences.put()
    q, v = end()
    if not smoothing:
        active = active_set(copy)

    def see() -> Array:
        there, rates = end()
        if not smoothing:
            others.update(changes(active, active_set(copy)))
        away = configuration_difference(solver.mechanism, there, q)
        return np.concatenate([away, rates - v])

    by_state, error = differences.by_state(tangents, see)
    by_forces, more = differences.by_forces(tangents, see)
    told = tuple(sorted(active.elements())), tuple(sorted(others))
    return Full(by_state, by_forces, q, v, *told, (), max(error, more), "differences")


def flow_by_differences(copy: Linearisable, differences: Differences, tangents: Tangents) -> Full:
    """A and B of the accelerations at a state, by central differences."""
    by_state, error = differences.by_state(tangents, lambda: copy.dynamics.solver.acceleration())
    by_forces, more = differences.by_forces(tangents, lambda: copy.dynamics.solver.acceleration())
    A, B = of_flow(copy.dynamics.solver.mechanism, tangents, by_state, by_forces)
    told = max(error, more)
    return Full(A, B, tangents.at.q, tangents.at.v, (), (), (), told, "differences")


def of_flow(
    mechanism: Mechanism, tangents: Tangents, by_state: Array, by_forces: Array
) -> tuple[Array, Array]:
    """A and B of displacements and rates, from derivatives of the accelerations (nv, ..)."""
    nv, v = mechanism.nv, tangents.at.v
    A = np.zeros((2 * nv, 2 * nv))
    # of the velocity that a displaced and closed state has
    A[:nv] = tangents.closing[nv:]
    for joint in mechanism.joints.values():
        if joint.kind in ("spherical", "free"):
            part = slice(joint.v.start, joint.v.start + 3)
            # of turns about world axes, or about those of the body
            way = (tangents.q.directions @ tangents.q.dual)[part]
            side = 1.0 if joint.kind == "free" else -1.0
            A[part, :nv] += side * np.cross(v[part], way, axisb=0, axisc=0)
    A[nv:] = by_state
    return A, np.vstack([np.zeros((nv, nv)), by_forces])


def active_set(system: Linearisable) -> Counter[str]:
    """What is at a bound in the step that led to the state, by words, and how often."""
    found = Counter[str](
        f"{one.a} on {one.b} {one.state}" for one in system.contacts() if one.state != "open"
    )
    motors = system.motors
    if motors.any_on or system.has_inequalities:
        most = motors.records["force"][len(motors.names) :]
        for (name, load), rubs in zip(system.joint_loads.items(), most, strict=True):
            force = motors.settings(name)["force"]
            if force > 0.0 and abs(load.motor) >= SATURATED * force:
                found[f"motor of {name} at {'+' if load.motor > 0.0 else '-'}force"] = 1
            if rubs > 0.0:
                slides = abs(load.friction) >= SATURATED * rubs
                found[f"friction of {name} {'sliding' if slides else 'sticking'}"] = 1
    for name, load in system.joint_loads.items():
        if load.limit != 0.0:
            found[f"limit of {name}"] = 1
    if system.has_inequalities:
        limited = {c.name for c in system.constraints if has_force_limit(c)}
        found.update(f"{name} gives way" for name in limited - system.holding)
    return found


def changes(a: Counter[str], b: Counter[str]) -> set[str]:
    """What is in one active set and not in the other."""
    return set((a - b) | (b - a))


class Seeing:
    """Outputs at a state as numbers (p,), turns from those of the state that is seen first.

    Args:
        system: Whose.
        request: Which.

    Attributes:
        names: (p,) of the numbers, once something was seen.
    """

    def __init__(self, system: Linearisable, request: Request) -> None:
        self._system, self.outputs = system, request.outputs
        self._by_step = request.what == "step"
        self.names: list[str] = []
        self._first: dict[int, Array] = {}

    def __call__(self) -> Array:
        """Poses, velocities and gaps at the state; forces in the step from there."""
        from scipy.spatial.transform import Rotation

        system, found, names = self._system, list[Array](), list[str]()
        solver = system.dynamics.solver
        v, kinematics = solver.v, kinematics_at(solver, solver.q, solver.v, solver.t)
        for n, frame in enumerate(self.outputs.frames):
            plain = frame_of(frame)
            point = kinematics.point(plain)
            first = self._first.setdefault(n, point.R_W)
            turn = Rotation.from_matrix(point.R_W @ first.T).as_rotvec()
            found += [turn, point.p_W, point.J_angular @ v, point.J @ v]
            same = [frame_of(f).link for f in self.outputs.frames]
            name = plain.link if same.count(plain.link) == 1 else f"{plain.link}[{n}]"
            names += [f"{name}.{part}" for part in OF_FRAMES]
        gaps = system.gap_vectors() if self.outputs.gaps else {}
        for name in self.outputs.gaps:
            found.append(gaps[name][1])
            names += [f"{name}.gap.{axis}" for axis in "xyz"]
        if self.outputs.reactions:
            if self._by_step and system.has_inequalities:
                system.step(write=False)
            wanted = self.outputs.reactions
            borne = known_of_joints(system, wanted)
            loads = system.reactions() if len(borne) < len(wanted) else {}
            for name in wanted:
                load = borne[name] if name in borne else loads[name]
                found += [load.torque, load.force]
                names += [f"{name}.{part}" for part in OF_REACTIONS]
        self.names = names
        return np.concatenate(found)
