"""Options of a system, their validation, and the status of its last step."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal, Protocol, get_args

import numpy as np

from bulletbridge.engine.backend import SolverName
from bulletbridge.engine.records import (
    CHARTS,
    CHARTS_TRAPEZOIDAL,
    DOP8,
    EULER,
    RADAU,
    RK4,
    VERLET,
    Directions,
)
from bulletbridge.errors import ModelError
from bulletbridge.formulations.modified import WEIGHTED
from bulletbridge.mechanism.contact_detector import Detector
from bulletbridge.numerics.records import Array, are_numbers

Integrator = Literal[
    "semi_implicit_euler",
    "verlet",
    "rk4",
    "dop853",
    "radau",
    "charts",
    "charts_trapezoidal",
    "euler",
    "heun",
    "nystrom4",
    "rk4_quasi_velocities",
    "trapezoidal",
    "symmetric",
]
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
CHOSEN = (
    "integrator",
    "rtol",
    "atol",
    "correction",
    "passes",
    "formulation",
    "velocity_filter",
    "contacts",
    "limits",
    "springs",
    "impulse_solver",
    "energy_budget",
    "solver",
    "forces",
    "weighting",
)
"""Options of a system that stay as they were given."""
INTEGRATORS: tuple[str, ...] = get_args(Integrator)
Springs = Literal["implicit", "explicit"]
Limits = bool | Literal["always"]
ImpulseSolver = Literal["compiled", "clarabel"]


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


class Fork(Varied, Protocol):
    """Contacts of states of the same bodies in one thread of several."""

    def begin(self) -> None:
        """Begin another world."""
        ...

    def detector(self) -> Detector | None:
        """As of ``World``."""
        ...

    def contact_points(self, q: Array, v: Array, dt: float) -> np.ndarray:
        """As of ``World``."""
        ...


class World(Varied, Protocol):
    """Where states are shown: the bodies of a Bullet world."""

    def state(self) -> tuple[Array, Array]:
        """q and v as they are there."""
        ...

    def write(self, q: Array, v: Array) -> None:
        """Show a state."""
        ...

    def detector(self) -> Detector | None:
        """Finds contacts where everything is now, but for those that the world is asked about."""
        ...

    def contact_points(self, q: Array, v: Array, dt: float) -> np.ndarray:
        """Contact points (n,) at a state, which may be shown, for a step dt [s].

        They are of dtype ``CONTACT_POINT``.
        """
        ...

    def fork(self) -> Fork:
        """What finds contacts of other states for another thread."""
        ...

    def save(self) -> bytes:
        """All that decides which contacts it finds from now on."""
        ...

    def restore(self, saved: bytes) -> None:
        """Go on from what ``save`` returned, of this world or one with the same bodies."""
        ...

    def check(self) -> None:
        """Raise WorldError if the bodies are not there any more; now and then, if they changed."""
        ...

    def look(self, acting: Callable[[], Array]) -> None:
        """As ``check`` before a step, under this gravity; warn if others moved the bodies."""
        ...

    def accept(self) -> None:
        """Take whatever is there as meant, until a state is written."""
        ...

    def check_properties(self) -> None:
        """Raise WorldError if masses and the like are not those of the mechanism any more."""
        ...


@dataclass(frozen=True)
class Status:
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
    """

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


def chosen(given: Integrator | None, with_inequalities: bool) -> Integrator:
    """The integrator of a step: the one given, or else the one that is best for its cost.

    That is ``verlet``, by measurement (``benchmarks/default_integrator.py``), and where forces are
    ``with_inequalities``, or springs act at the end of the step, the one that has them.
    """
    return given or (WITH_INEQUALITIES if with_inequalities else "verlet")


def check_step(dt: float) -> None:
    """Refuse steps that lead nowhere.

    Raises:
        ModelError: Not positive, or not finite.
    """
    if not (are_numbers(dt) and dt > 0.0):
        raise ModelError(f"dt is {dt!r} s; give a positive step")


def check_options(
    dt: float,
    integrator: str | None,
    correction: str,
    passes: int | None,
    velocity_filter: bool,
    springs: str | None,
    impulse_solver: str,
    tolerances: tuple[float | None, float],
) -> None:
    """Refuse options that mean nothing; ``tolerances`` are rtol and atol, None the default.

    Raises:
        ModelError: It says which, and what there is.
    """
    check_step(dt)
    for what, given, known in (
        ("integrator", integrator, INTEGRATORS),
        ("correction", correction, get_args(Directions)),
        ("springs", springs, get_args(Springs)),
        ("impulse_solver", impulse_solver, get_args(ImpulseSolver)),
    ):
        if given is not None and given not in known:
            raise ModelError(f"unknown {what} '{given}'; there are {', '.join(known)}")
    if springs == "implicit" and integrator not in (None, WITH_INEQUALITIES):
        raise ModelError(
            f"springs='implicit' is for {WITH_INEQUALITIES}, and {integrator} takes them as they"
            " are; leave springs or integrator out"
        )
    if passes is not None and not (is_count(passes) and passes >= 0):
        raise ModelError(f"passes is {passes!r}; give zero or more, or None for round-off")
    if integrator in CONTROLLED + ON_CHARTS and not (passes is None and velocity_filter):
        raise ModelError(
            f"{integrator} always corrects and filters; leave passes and velocity_filter out"
        )
    rtol, atol = tolerances
    if rtol is not None and not (are_numbers(rtol) and 0.0 < rtol < 1.0):
        raise ModelError(
            f"rtol is {rtol!r}; give a positive number below 1, or None for fixed steps"
        )
    if not (are_numbers(atol) and atol >= 0.0):
        raise ModelError(f"atol is {atol!r}; give a number that is not negative")


def check_weighting(
    integrator: str | None, passes: int | None, velocity_filter: bool, acting: bool
) -> None:
    """Refuse options that do not go with a weighting: modified integration has no correction.

    Raises:
        ModelError: It says which.
    """
    if integrator not in WEIGHTED:
        raise ModelError(
            f"weighting is for {', '.join(WEIGHTED)}, and the integrator is {integrator}; leave one"
            " of them out"
        )
    if passes is not None or not velocity_filter:
        raise ModelError(
            "a weighting takes the place of correction and filter; leave passes and velocity_filter"
            " out"
        )
    if acting:
        raise ModelError(
            "modified integration knows no limits and contacts; leave weighting out, or"
            " limits=False and contacts=False"
        )


def check_solver(solver: str, compiled: bool) -> None:
    """Validate the name of the linear algebra of a step, and that the step has a choice of it.

    Raises:
        ModelError: There is no such solver, or steps that are not ``compiled``, or that have
            inequalities, know but the dense one; contacts of bodies that hang from the world each
            know the sparse one too.
    """
    known = get_args(SolverName)
    if solver not in known:
        raise ModelError(f"unknown solver '{solver}'; there are {', '.join(known)}")
    if solver in ("sparse", "islands", "clusters") and not compiled:
        raise ModelError(
            f"solver='{solver}' is for compiled steps without limits, joint friction and force"
            " limits, and without contacts but, if it is sparse, of bodies that hang from the world"
            " each; leave solver out"
        )


def check_switch(name: str, given: object) -> None:
    """Validate an option that is on or off.

    Raises:
        ModelError: It is neither.
    """
    if not isinstance(given, bool | np.bool_):
        raise ModelError(f"{name} is {given!r}; give True or False")


def check_counts(steps: int, every: int) -> None:
    """Refuse counts of steps that mean nothing.

    Raises:
        ModelError: It says which.
    """
    for name, count in (("steps", steps), ("every", every)):
        if not (is_count(count) and count >= 1):
            raise ModelError(f"{name} is {count!r}; give a whole number from one on")


def is_count(given: object) -> bool:
    """Whether something is a whole number."""
    return isinstance(given, int | np.integer) and not isinstance(given, bool)


def how_to_set(kind: type, name: str) -> str:
    """What to do in the place of setting an attribute of a system that cannot be set."""
    if name in ("q", "v", "t"):
        return (
            f"{name} is told, not set: set_state({name}=...) sets it where loops are closed, and"
            " assemble({'joint': ...}) closes them"
        )
    if name in CHOSEN:
        return (
            f"'{name}' is chosen when a system is made: attach(..., {name}=...) or"
            f" load(..., {name}=...)"
        )
    known = [each for each in dir(kind) if not each.startswith("_")]
    if name in known:
        return f"'{name}' of a system is told, not set"
    near = get_close_matches(name, known, n=3, cutoff=0.5)
    hint = f"did you mean {', '.join(near)}?" if near else "keep it in a variable of your own"
    return f"a system has no '{name}' that could be set; {hint}"
