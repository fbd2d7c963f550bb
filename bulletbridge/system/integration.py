"""Which integrator a system steps by, and where springs and dampers act in its steps."""

from collections.abc import Callable

import numpy as np

from bulletbridge.engine.records import CURRENT, EULER, START
from bulletbridge.engine.springs import FAST, fast_damper, has_dampers, has_springs, too_fast
from bulletbridge.engine.stepper import Solver
from bulletbridge.errors import ModelError, warn_user
from bulletbridge.formulations.adaptive import Adaptive
from bulletbridge.formulations.python_stepper import PythonStep
from bulletbridge.formulations.registry import formulation_of
from bulletbridge.system.active_constraints import ActiveConstraints
from bulletbridge.system.inequality_steps import InequalitySteps
from bulletbridge.system.options import (
    COMPILED,
    CONTROLLED,
    EXPLICIT,
    MODIFIED,
    ON_CHARTS,
    WITH_INEQUALITIES,
    Integrator,
    Options,
    chosen,
    require_choice,
)

NEED_PROJECTOR = (
    "radau, charts, charts_trapezoidal, and dop853 at fixed steps, take the projector formulation"
    " alone; leave formulation out"
)

TIGHT = 1e-13
"""Relative error of a sub-step that round-off still lets error control see."""


def python_method(options: Options, with_inequalities: bool) -> Adaptive | PythonStep | None:
    """What steps in Python; None where the options of ``System`` are those of compiled steps.

    Raises:
        ModelError: There is no such formulation, or the integrator does not go with it.
    """
    make = formulation_of(options.formulation)
    if options.integrator in CONTROLLED + ON_CHARTS and options.formulation != "projector":
        if options.integrator != "dop853" or options.rtol is None:
            raise ModelError(NEED_PROJECTOR)
        return Adaptive(options.rtol, options.atol, make)
    if options.are_compiled:
        return None
    method, weight = chosen(options.integrator, with_inequalities), options.weighting
    if not (weight is None or isinstance(weight, str)):
        weight = np.array(weight)
    return PythonStep(
        make, method, options.correction, options.passes, options.velocity_filter, weight
    )


FrictionInSteps = Callable[[], dict[str, tuple[float, bool]] | None]
"""Coefficients of loop joints that slide by name, and whether each may pull; None: in Python."""
SLIDING = ("verlet", "rk4", "dop853")
"""Integrators that are compiled with friction of loop joints that slide."""


def friction_of(options: Options) -> FrictionInSteps | None:
    """The friction that compiled steps are to have, if the formulation is one that tells."""
    known = chosen(options.integrator, False) in SLIDING and options.weighting is None
    told = getattr(options.formulation, "in_steps", None)
    return told if known and options.velocity_filter and options.passes is None else None


class Integration:
    """The integrator of a system, as given or as what acts asks for.

    Args:
        active: Whose solvers step.
        inequalities: Of which the default integrator depends too.
        options: How the system steps.

    Attributes:
        given: The integrator that was asked for; None for the default.
        python: What steps in Python; None for compiled steps.
        friction: Of loop joints that slide in compiled steps, beside those in Python.

    Raises:
        ModelError: As of ``python_method``; or there is no choice of linear algebra.
    """

    def __init__(
        self, active: ActiveConstraints, inequalities: InequalitySteps, options: Options
    ) -> None:
        self._active, self._inequalities = active, inequalities
        self.given: Integrator | None = options.integrator
        self.python = python_method(options, inequalities.act)
        self.friction = friction_of(options)
        if self.friction is not None:
            active.full.backend = "dense"
        free = not inequalities.act
        free |= options.solver == "sparse" and inequalities.are_contacts_of_bodies
        parted = options.solver in ("islands", "clusters")
        free |= parted and inequalities.are_within_islands
        require_choice(options.solver, self.python is None and free)
        control = active.full.control[0]
        if self.given in CONTROLLED:
            control["controlled"] = options.controls_errors
            control["rtol"] = 1e-12 if options.rtol is None else options.rtol
            control["atol"] = options.atol
        control["energy_budget"] = options.energy_budget
        control["compliant"] = options.contacts == "compliant"
        control["directions"] = START if options.correction == "start" else CURRENT
        control["passes"] = -1 if options.passes is None else options.passes
        self._methods = COMPILED
        if options.weighting is not None and self.python is None:
            self._methods = MODIFIED
            given = options.weighting
            active.full.take_weighting(given if isinstance(given, str) else np.array(given))
        compiled = self.python is None and self.given in (None, WITH_INEQUALITIES)
        at_end = compiled and options.springs != "explicit" and has_springs(active.full)
        self._act_at_end(at_end, False)

    @property
    def solvers(self) -> tuple[Solver, ...]:
        """All that step, and that of the rows as written."""
        return self._active.solvers + self._inequalities.solvers

    @property
    def name(self) -> Integrator:
        """The integrator of the next step."""
        at_end = self.python is None and self._active.solver.control[0]["integrator"] == EULER
        return chosen(self.given, self._inequalities.act or at_end)

    def tighten(self) -> None:
        """Have error control follow the motion to what differences of steps can do with."""
        for solver in self.solvers:
            control = solver.control[0]
            control["rtol"], control["atol"] = TIGHT, 0.1 * TIGHT
        if isinstance(self.python, Adaptive):
            self.python.rtol, self.python.atol = TIGHT, 0.1 * TIGHT

    def take_stiff_springs_implicitly(self) -> None:
        """Have springs act at the end of steps if explicit ones could not follow them.

        An integrator that was given and has no such springs is left as it is.
        """
        if self.given in (None, WITH_INEQUALITIES) and self.python is None:
            if has_springs(self._active.full) and too_fast(self._active.solver)[0] > 1.0:
                self._act_at_end(True, False)

    def take_dampers(self) -> None:
        """Have dampers act at the end of steps if explicit ones could not follow from here.

        An integrator that was given stays, with a warning if it would grow without bounds.
        """
        solver = self._active.solver
        if not has_dampers(self._active.full):
            return
        control, damping = solver.control[0], too_fast(solver)[1]
        if self.given is None and self.python is None:
            self._act_at_end(bool(control["implicit"]), damping > 1.0)
        elif damping * FAST > 2.0 and self.name in EXPLICIT and not control["controlled"]:
            said = fast_damper(solver) or "a damper between two links is strong"
            dt = solver.control["dt"].item()
            remedy = (
                "take smaller steps, or the default formulation"
                if self.given is None  # and the formulation's steps are in Python
                else "leave integrator out, or give 'semi_implicit_euler' or 'radau'"
            )
            warn_user(
                f"{said}: {self.name} grows without bounds at this dt, of"
                f" {2.0 * dt / (damping * FAST):.1e} s it would not; {remedy}, which"
                " takes dampers at the end of a step"
            )

    def _act_at_end(self, springs: bool, dampers: bool) -> None:
        """Have springs, dampers act at the end of steps or not; take the integrator for that.

        ``semi_implicit_euler`` takes dampers so in any case.
        """
        at_end = springs or dampers
        for solver in self.solvers:
            control = solver.control[0]
            control["implicit"] = springs
            control["integrator"] = self._methods.get(chosen(self.given, at_end), EULER)
