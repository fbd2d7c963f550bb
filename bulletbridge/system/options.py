"""Options of a system, their validation, and the status of its last step."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Literal, Protocol, TypedDict, get_args

import numpy as np
from typing_extensions import Self

from bulletbridge.engine.backend import SolverName
from bulletbridge.engine.records import (
    CHARTS,
    CHARTS_TRAPEZOIDAL,
    DOP8,
    EULER,
    MODIFIED_EULER,
    MODIFIED_HEUN,
    MODIFIED_RK4,
    RADAU,
    RK4,
    VERLET,
    Directions,
)
from bulletbridge.engine.workspace import Tolerances
from bulletbridge.errors import Hinting, ModelError, nearest, warn_user
from bulletbridge.formulations.equations import Dynamics, Formulation
from bulletbridge.formulations.modified import WEIGHTED, Weighting, weighting_of
from bulletbridge.inequalities.stepper import Surroundings
from bulletbridge.mechanism.contact_detector import Detector
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.numerics.records import Array, are_numbers

Integrator = Literal[
    "semi_implicit_euler", "verlet", "rk4", "dop853", "radau", "charts", "charts_trapezoidal",
    "euler", "heun", "nystrom4", "rk4_quasi_velocities", "trapezoidal", "symmetric",
]  # fmt: skip
COMPILED = {
    "semi_implicit_euler": EULER,
    "verlet": VERLET,
    "rk4": RK4,
    "dop853": DOP8,
    "radau": RADAU,
    "charts": CHARTS,
    "charts_trapezoidal": CHARTS_TRAPEZOIDAL,
}
"""Integrators that are compiled with the projector."""
MODIFIED = {"euler": MODIFIED_EULER, "heun": MODIFIED_HEUN, "rk4": MODIFIED_RK4}
"""Those that are compiled with a weighting."""
WITH_INEQUALITIES: Integrator = "semi_implicit_euler"
"""The one that acts by inequalities, and by springs and dampers at the end of a step."""
CONTROLLED = ("dop853", "radau")
"""Those with error control."""
ON_CHARTS = ("charts", "charts_trapezoidal")
"""Those whose stages are on the loops, so that there is nothing to correct or to filter."""
EXPLICIT = (
    "verlet", "rk4", "dop853", "charts", "euler", "heun", "nystrom4", "rk4_quasi_velocities",
)  # fmt: skip
"""Those that take dampers where they are."""
INTEGRATORS: tuple[str, ...] = get_args(Integrator)
Springs = Literal["implicit", "explicit"]
Limits = bool | Literal["always"]
Contacts = bool | Literal["compliant"]
ImpulseSolver = Literal["compiled", "clarabel"]


LONG = 10.0
"""Steps [s] from which on a rate [1/s] is meant."""


class SystemOptions(TypedDict, total=False):
    """Keyword arguments of ``System`` on how it steps: the attributes of ``Options``."""

    integrator: Integrator | None
    rtol: float | None
    atol: float
    correction: Directions
    passes: int | None
    formulation: str | Callable[[Dynamics], Formulation]
    velocity_filter: bool
    contacts: Contacts
    limits: Limits
    springs: Springs | None
    impulse_solver: ImpulseSolver
    energy_budget: bool
    solver: SolverName
    weighting: Weighting | None
    tolerances: Tolerances | None


@dataclass(frozen=True, kw_only=True)
class Options:
    """How a system steps; chosen when it is made.

    Attributes:
        integrator: ``semi_implicit_euler`` (order 1, what Bullet does), ``verlet`` (order 2),
            ``rk4`` (order 4), ``dop853`` (order 8, for accuracy) and ``radau`` (order 5, implicit,
            for stiff forces); ``charts`` (order 4, Nyström's method) and ``charts_trapezoidal``
            (order 2, implicit) on charts of the loops; and in Python those of
            ``formulations.integrators``: ``euler``, ``heun``, ``nystrom4``, ``trapezoidal``,
            ``symmetric``, and ``rk4_quasi_velocities`` on q and v_r (Aghili 2008). None:
            ``verlet``, but for steps with motors, joint friction, limits, contacts or force limits
            of constraints, and with
            springs and strong dampers that act at the end of a step, which are those of
            ``semi_implicit_euler``.
        rtol: What ``dop853`` and ``radau`` may err by in a sub-step, in radians or lengths of the
            mechanism, for rates times its pace [1/s]; they divide dt into as many sub-steps as
            that takes, so that dt is but the time between outputs. None: fixed steps of dt.
        atol: What they may err by besides, as an absolute number.
        correction: Directions of the configuration correction: those at the ``start`` of the step,
            guarded, or ``current`` (Newton). Kövecses and Piedbœuf 2003, eq. 35 and 36.
        passes: Fixed number of correction passes; None for as many as round-off takes.
        formulation: What gives accelerations: a name from ``formulations.registry``, or a function
            that makes one. All but ``projector``, and ``sliding`` by ``verlet``, ``rk4`` or
            ``dop853``, step in Python, and their semi-implicit Euler is that of accelerations.
        velocity_filter: Whether velocities are filtered; without it steps are in Python.
        contacts: Whether contacts of the bodies with each other and with what stands in the world
            act. Steps then need a world. They are rigid; ``"compliant"``: but those of links
            that have a ``contactStiffness`` in Bullet.
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
            ``islands``, dense factors of each part that nothing joins to the others; ``clusters``,
            of each subtree that closes its loops itself; ``sparse``, elimination body by body,
            whose cost grows linearly with the number of loops; or ``auto``, the cheapest by an
            estimate. ``radau`` is dense, and so are steps with motors
            or limits where they do not cost less by islands or clusters; contacts alone of bodies
            that each hang from the world are not.
        weighting: The metric of a modified integration (Eun and others 2004), which corrects each
            velocity where it is used and nothing else: ``condensed``, the paper's, ``mass``,
            ``identity``, or weights of one's own: (nv,), by joint, or a matrix (nv, nv). Steps are
            those of ``euler``, ``heun`` or ``rk4`` (the default then); and of ``nystrom4``, in
            Python. Loops open by the error of the integrator; velocities satisfy them to
            round-off.
        tolerances: Thresholds of the solver.

    Raises:
        ModelError: A choice means nothing, or two do not go together; it says which, and what
            there is.
    """

    integrator: Integrator | None = None
    rtol: float | None = 1e-10
    atol: float = 1e-12
    correction: Directions = "start"
    passes: int | None = None
    formulation: str | Callable[[Dynamics], Formulation] = "projector"
    velocity_filter: bool = True
    contacts: Contacts = False
    limits: Limits = False
    springs: Springs | None = None
    impulse_solver: ImpulseSolver = "compiled"
    energy_budget: bool = True
    solver: SolverName = "auto"
    weighting: Weighting | None = None
    tolerances: Tolerances | None = None

    @classmethod
    def of(cls, given: SystemOptions) -> Self:
        """Options that were given by keyword."""
        for name in given.keys() - set(CHOSEN):
            hint = NOT_HERE.get(name.lower().replace("_", ""), "")
            hint = hint or nearest(CALLED.get(name, name), ALL, cutoff=0.5)
            hint = hint or f"there are {', '.join(ALL)}"
            raise ModelError(f"a system has no option '{name}'; {hint}")
        return cls(**given)

    def __post_init__(self) -> None:
        """Refuse what means nothing."""
        for name, known in (
            ("integrator", (None, *INTEGRATORS)),
            ("correction", get_args(Directions)),
            ("springs", (None, *get_args(Springs))),
            ("impulse_solver", get_args(ImpulseSolver)),
            ("solver", get_args(SolverName)),
        ):
            if (given := getattr(self, name)) not in known:
                there = ", ".join(name for name in known if name)
                raise ModelError(f"unknown {name} '{given}'; there are {there}")
        for name in ("velocity_filter", "energy_budget"):
            check_switch(name, getattr(self, name))
        if self.contacts != "compliant":
            check_switch("contacts", self.contacts, "True, False or 'compliant'")
        if self.limits != "always":
            check_switch("limits", self.limits, "True, False or 'always'")
        if self.springs == "implicit" and self.integrator not in (None, WITH_INEQUALITIES):
            raise ModelError(
                f"springs='implicit' is for {WITH_INEQUALITIES}, and {self.integrator} takes them"
                " as they are; leave springs or integrator out"
            )
        self._check_corrections()
        if self.rtol is not None and not (are_numbers(self.rtol) and 0.0 < self.rtol < 1.0):
            raise ModelError(
                f"rtol is {self.rtol!r}; give a positive number below 1, or None for fixed steps"
            )
        if not (are_numbers(self.atol) and self.atol >= 0.0):
            raise ModelError(f"atol is {self.atol!r}; give a number that is not negative")

    @property
    def controls_errors(self) -> bool:
        """Whether steps are as long as errors let them be, whatever ``dt`` is."""
        return self.integrator in CONTROLLED and self.rtol is not None

    def _check_corrections(self) -> None:
        """Refuse corrections and filters that a method has not, or must have."""
        passes, always = self.passes, self.integrator in CONTROLLED + ON_CHARTS
        if passes is not None and not (is_count(passes) and passes >= 0):
            raise ModelError(f"passes is {passes!r}; give zero or more, or None for round-off")
        as_it_comes = passes is None and self.velocity_filter
        if always and not as_it_comes:
            raise ModelError(
                f"{self.integrator} always corrects and filters; leave passes and velocity_filter"
                " out"
            )
        if self.weighting is None:
            return
        if self.integrator not in (None, *WEIGHTED):
            raise ModelError(
                f"weighting is for {', '.join(WEIGHTED)}, and the integrator is {self.integrator};"
                " leave one of them out"
            )
        if not as_it_comes:
            raise ModelError(
                "a weighting takes the place of correction and filter; leave passes and"
                " velocity_filter out"
            )
        if self.contacts or self.limits is not False:
            raise ModelError(
                "modified integration corrects no positions and has no impulses, so that it knows"
                " no limits and contacts; leave weighting out, or limits=False and contacts=False"
            )

    def for_mechanism(self, mechanism: Mechanism) -> Self:
        """The same with what follows from the mechanism and from one another spelt out.

        Raises:
            ModelError: The weighting does not go with the mechanism.
        """
        tolerances = self.tolerances or Tolerances()
        if self.weighting is None:
            return replace(self, tolerances=tolerances)
        weighting = weighting_of(self.weighting, mechanism)
        method = self.integrator or "rk4"
        return replace(self, tolerances=tolerances, weighting=weighting, integrator=method)

    @property
    def are_compiled(self) -> bool:
        """Whether steps are compiled."""
        known = COMPILED if self.weighting is None else MODIFIED
        by_name = (self.integrator or WITH_INEQUALITIES) in known
        return by_name and self.velocity_filter and self.formulation == "projector"

    @property
    def know_limits(self) -> bool:
        """Whether steps know motors, limits and contacts."""
        return self.are_compiled and self.weighting is None


CHOSEN = tuple(each.name for each in fields(Options))
"""Options of a system, which stay as they were given."""
ALL: tuple[str, ...] = ("dt", *CHOSEN)
"""Those, and what may be set later."""
CALLED: dict[str, str] = {
    name: "dt" for name in ("timeStep", "time_step", "timestep", "fixedTimeStep", "h")
}
"""Options by what others call them."""
NOT_HERE: dict[str, str] = {
    **dict.fromkeys(
        ("fixedbase", "usefixedbase"),
        "load has fixed_base=True, pybullet.loadURDF has useFixedBase=True",
    ),
    **dict.fromkeys(
        ("baseposition", "basepos", "position", "xyz"),
        "load has base_position=(x, y, z), pybullet.loadURDF has basePosition=[x, y, z]",
    ),
    **dict.fromkeys(
        ("loops", "constraints", "joints"),
        "attach takes constraints as its second argument: attach(body, [bb.LoopJoint(...)])",
    ),
    "mimic": "attach has mimic=True, a loops file 'mimic: true'; load couples those of a URDF",
    "gravity": "call pybullet.setGravity before, or set system.gravity",
    "physicsclientid": "load and attach take the number of a client as client=...",
    **dict.fromkeys(
        ("gui", "render", "headless", "window"),
        "for a window call pybullet.connect(pybullet.GUI) before",
    ),
}
"""Where else is what is asked of a system, by its name in small letters."""


class Varied(Protocol):
    """What finds contacts, of bodies and surfaces that may be others than those that were read."""

    def surfaces(self) -> dict[str, float]:
        """How links rub and bounce: ``LINK.FIELD``, of ``contact_detector.RUBBING``, by name.

        ``world`` is all that is not part of the system.
        """
        ...

    def vary(self, bodies: np.ndarray, surfaces: Mapping[str, float]) -> None:
        """Find contacts of these bodies (nb,) from now on, and with these numbers of surfaces."""
        ...


class Fork(Varied, Surroundings, Protocol):
    """Contacts of states of the same bodies in one thread of several."""

    def begin(self) -> None:
        """Begin another world."""
        ...

    def reaching(self, gap: float) -> Detector:
        """Finds contacts of what is nearer than a gap [m] too."""
        ...


class World(Varied, Surroundings, Protocol):
    """Where states are shown: the bodies of a Bullet world."""

    def state(self) -> tuple[Array, Array]:
        """q and v as they are there."""
        ...

    def write(self, q: Array, v: Array) -> None:
        """Show a state."""
        ...

    def touching(self, contacts: np.ndarray) -> list[tuple[str, str]]:
        """Links a and b of contacts (n,) that were found, ``world`` for what is of no system."""
        ...

    def fork(self, spare: Any = None) -> Fork:
        """What finds contacts of other states for another thread: a spare one, if it can be."""
        ...

    def save(self, bodies: bool) -> Any:
        """What it knows of contacts; with its bodies all that decides which ones it finds."""
        ...

    def restore(self, saved: Any, bodies: bool) -> bool:
        """Go on from what ``save`` returned, of this world or one with the same bodies.

        Args:
            saved: That.
            bodies: Whether to put these back too.

        Returns:
            Whether they were.
        """
        ...

    def forget(self) -> None:
        """Forget what earlier detections have told, where it decides which contacts are found."""
        ...

    def check(self) -> None:
        """Raise WorldError if the bodies are not there any more; now and then, if they changed."""
        ...

    def look(self, acting: Callable[[], tuple[Array, float]]) -> None:
        """As ``check`` before a step with these settings; warn if others moved the bodies."""
        ...

    def tell_of_a_fall(self, pull: Array) -> None:
        """Warn once of what gravity (3,) [m/s²] has had fall for want of ground or contacts."""
        ...

    def accept(self) -> None:
        """Take whatever is there as meant, until a state is written."""
        ...

    def check_properties(self) -> None:
        """Raise WorldError if masses and the like are not those of the mechanism any more."""
        ...


@dataclass(frozen=True)
class Status(Hinting):
    """How the last step went.

    Attributes:
        rows: Rows in use.
        rank: How many of them are independent now.
        margin: Weakest independent row over the strongest; small near a singular position.
        passes: Correction passes.
        guarded: Whether the correction fell back to full Newton.
        gap_kept: Largest residual of the independent rows, in mechanism lengths or radians.
        sub_steps: Sub-steps of the last call under error control.
        rejected: Those of them that were tried in vain.
        handed_over: Steps so far that elimination body by body did not come to the end of, so that
            they were made densely.
        charts: Charts of the loops that ``charts`` and ``charts_trapezoidal`` have begun since the
            state was set; of all islands together.
        lost: Kinetic energy that rates have lost so far at singular positions, where loops allow
            rates with which no motion goes on [J]; a warning tells the first loss.
    """

    ELSEWHERE: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("gap", "gaps"), "system.evaluate().gaps, or .gap_kept of the last step"),
        "energy": "system.evaluate().energy",
        **dict.fromkeys(("t", "time"), "system.t"),
    }

    rows: int
    rank: int
    margin: float
    passes: int
    guarded: bool
    gap_kept: float
    sub_steps: int
    rejected: int
    handed_over: int
    charts: int
    lost: float


def chosen(given: Integrator | None, with_inequalities: bool) -> Integrator:
    """The integrator of a step: the one given, or else the one that is best for its cost.

    That is ``verlet``, by measurement (``benchmarks/default_integrator.py``), and where forces are
    ``with_inequalities``, or springs act at the end of the step, the one that has them.
    """
    return given or (WITH_INEQUALITIES if with_inequalities else "verlet")


def check_step(dt: float, controlled: bool) -> None:
    """Refuse steps that lead nowhere, and warn of those that look like a rate.

    Under error control a step is but when states are told.

    Raises:
        ModelError: Not positive, or not finite.
    """
    if not (are_numbers(dt) and dt > 0.0):
        raise ModelError(f"dt is {dt!r} s; give a positive step")
    if dt >= LONG and not controlled:
        warn_user(f"a step of {dt:g} s is long; if {dt:g} steps a second are meant, give 1/{dt:g}")


def require_choice(solver: SolverName, compiled: bool) -> None:
    """Refuse a solver of linear algebra where steps have no choice of it.

    Raises:
        ModelError: Steps that are not ``compiled``, or that have inequalities, know but the dense
            one; contacts of bodies that hang from the world each know the sparse one too, and what
            acts within islands these and clusters.
    """
    if solver in ("sparse", "islands", "clusters") and not compiled:
        raise ModelError(
            f"solver='{solver}' is for compiled steps without contacts, but if it is sparse of"
            " bodies that hang from the world each, without force limits, and without limits and"
            " joint friction unless it is islands or clusters; leave solver out"
        )


def check_switch(name: str, given: object, choices: str = "True or False") -> None:
    """Validate an option that is on or off, if none of its other choices is given."""
    if not isinstance(given, bool | np.bool_):
        raise ModelError(f"{name} is {given!r}; give {choices}")


def check_counts(steps: int, every: int) -> None:
    """Refuse counts of steps that mean nothing."""
    for name, count in (("steps", steps), ("every", every)):
        if not (is_count(count) and count >= 1):
            raise ModelError(f"{name} is {count!r}; give a whole number from one on")


def is_count(given: object) -> bool:
    """Whether something is a whole number."""
    return isinstance(given, int | np.integer) and not isinstance(given, bool)


ELSEWHERE = {
    **dict.fromkeys(("gap", "gaps"), "system.evaluate().gaps"),
    "energy": "system.evaluate().energy",
    "kinetic_energy": "system.evaluate().kinetic",
    "potential_energy": "system.evaluate().potential",
    **dict.fromkeys(
        ("gravity_compensation", "gravity_torques", "gravity_forces", "compute_gravity"),
        "at rest bb.inverse_dynamics(system, {{'joint': 0.0}}), of the joints that are driven",
    ),
    "momentum": "system.evaluate().momentum",
    **dict.fromkeys(
        ("M", "mass_matrix"), "system.dynamics.equations(system.q, system.v, system.t).M"
    ),
    "jacobian": "system.kinematics().point(bb.Frame('link')).J",
    **dict.fromkeys(("joints", "links", "nq", "nv"), "system.mechanism.{}"),
    **dict.fromkeys(("joint_names", "names"), "list(system.mechanism.joints)"),
    "link_names": "list(system.mechanism.links)",
    **dict.fromkeys(("position", "positions", "qpos"), "system.q"),
    **dict.fromkeys(("velocity", "velocities", "qvel"), "system.v"),
    **dict.fromkeys(("set_q", "set_v"), "system.set_state(q=system.q, v=system.v)"),
    **dict.fromkeys(
        ("link", "pose", "pose_of", "link_position", "link_state"), "system.link_pose('link')"
    ),
    **dict.fromkeys(
        ("condition", "rank", "singular_values"), "system.status.rank, system.status.margin"
    ),
    "linearize": "system.linearise()",
    "limits": "system.mechanism.joints['joint'].lower, system.mechanism.joints['joint'].upper",
    **dict.fromkeys(("getJointState", "getJointStates"), "system.q['joint'], system.v['joint']"),
    **dict.fromkeys(("resetJointState", "resetJointStates"), "system.assemble({{'joint': 0.5}})"),
    **dict.fromkeys(
        ("setJointMotorControl2", "setJointMotorControl", "setJointMotorControlArray"),
        "system.motors.set('joint', velocity=0.5)",
    ),
    **dict.fromkeys(("stepSimulation", "simulate"), "system.step()"),
    "setGravity": "system.gravity",
    **dict.fromkeys(
        (
            *("applyExternalForce", "apply_force", "add_force", "external_force"),
            *("applyExternalTorque", "apply_torque", "xfrc_applied"),
        ),
        "system.tau += system.wrench(bb.Frame('link'), force), where force [N] is along world axes;"
        " what acts at every stage of a step is forces={{'push': bb.Wrench(...)}} of the system",
    ),
    "getContactPoints": "system.contacts()",
    "getConstraintState": "system.reactions()",
    "getLinkState": "system.kinematics().point(bb.Frame('link'))",
    "createConstraint": "system.connect",
    "removeConstraint": "system.disconnect",
    "saveState": "system.save()",
    **dict.fromkeys(("torque", "torques", "ctrl"), "system.tau"),
    "time": "system.t",
    **dict.fromkeys(("timestep", "setTimeStep"), "system.dt"),
    **dict.fromkeys(
        ("reset", "restoreState"), "system.restore(state), where state = system.save()"
    ),
    "close": "model.close(), of what load returned",
    **dict.fromkeys(
        ("forward_kinematics", "inverse_kinematics", "inverse_dynamics", "record", "view", "lqr"),
        "bb.{}(system, ...)",
    ),
}
"""What to write for what other programs have as attributes of a system."""


def how_to_read(name: str) -> str:
    """What to write in the place of an attribute that systems lack; empty if nobody knows."""
    return f"; write {ELSEWHERE[name].format(name)}" if name in ELSEWHERE else ""


def how_to_set(kind: type, name: str) -> str:
    """What to do in the place of setting an attribute of a system that cannot be set."""
    if name in ("q", "v", "t"):
        return (
            f"{name} is told, not set: set_state({name}=...) sets it where loops are closed, and"
            " assemble({'joint': ...}) closes them"
        )
    if name in (*CHOSEN, "forces"):
        return (
            f"'{name}' is chosen when a system is made: attach(..., {name}=...) or"
            f" load(..., {name}=...)"
        )
    known = [each for each in dir(kind) if not each.startswith("_")]
    if name in known:
        return f"'{name}' of a system is told, not set"
    hint = how_to_read(name).removeprefix("; ") or nearest(name, known, cutoff=0.5)
    hint = hint or "keep it in a variable of your own"
    return f"a system has no '{name}' that could be set; {hint}"
