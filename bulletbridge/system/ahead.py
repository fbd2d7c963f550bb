"""Kernels compiled ahead of their first use, by this process and others beside it.

A kernel takes one core for ten to thirty seconds, and which ones a system needs is known when it is
made. The largest is compiled then and there, with another process that assists, see
``compilation.assist``; that and further ones compile the other kernels meanwhile. They leave theirs
where compiled kernels are kept, and whoever needs one waits for it there.
"""

import functools
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from bulletbridge.collision.shapes import records_of
from bulletbridge.compilation.announce import at_hand
from bulletbridge.compilation.cache import PACKAGE, kernel_folder
from bulletbridge.compilation.jit import assist, is_plain_python, leave
from bulletbridge.compilation.progress import plan
from bulletbridge.constraints.force_element_records import encode_closed
from bulletbridge.engine.redundancy import Decision
from bulletbridge.engine.springs import compliance
from bulletbridge.engine.step_kernel import (
    run,
    run_by_stages,
    run_implicitly,
    run_with_friction,
)
from bulletbridge.engine.stepper import Solver
from bulletbridge.engine.workspace import Tolerances
from bulletbridge.formulations.equations import split_of
from bulletbridge.inequalities.constraints import inequality_constraints_of, joint_limits_of
from bulletbridge.inequalities.filter import Filter, Filters
from bulletbridge.inequalities.filter_kernel import run_filter
from bulletbridge.inequalities.motors import Motors
from bulletbridge.inequalities.step_kernel import run_inequalities
from bulletbridge.inequalities.stepper import InequalityStepper
from bulletbridge.inequalities.steps_kernel import step_with_contacts
from bulletbridge.mechanism.build import empty_mechanism, with_joint
from bulletbridge.mechanism.contact_detection import find_contacts
from bulletbridge.mechanism.contact_detector import Detector
from bulletbridge.mechanism.dynamics import bias
from bulletbridge.mechanism.kinematics import displace
from bulletbridge.mechanism.surfaces import SURFACE_LINK
from bulletbridge.numerics.projection import Caps
from bulletbridge.system.evaluation import measured
from bulletbridge.system.rollout_workers import cores

SCRIPT = f"import sys; sys.path.insert(0, sys.argv[1]); from {__name__} import work; " + (
    "work(sys.argv[2:])"
)
ASSIST = "assist:"
"""Before the name of a kernel whose helpers a process is to translate, not the kernel."""
_begun: set[str] = set()
"""Kernels that this process has had compiled ahead, or tried to."""


def solver_of_a_hinge() -> Solver:
    """The smallest system; kernels are the same for all."""
    mechanism = with_joint(empty_mechanism(), "hinge", "revolute", "link")
    return Solver(mechanism, encode_closed(mechanism, ()), Tolerances())


def bounded_hinge() -> InequalityStepper:
    """Steps of the smallest system with motors, limits and contacts."""
    solver = solver_of_a_hinge()
    inequalities = inequality_constraints_of(solver.mechanism, ())
    motor_rows = Motors(solver.mechanism, inequalities.loop_axes).records
    limits = joint_limits_of(solver.mechanism, inequalities.loop_axes, False)
    return InequalityStepper(solver, motor_rows, limits, inequalities)


def blind_detector() -> Detector:
    """What would find contacts if there were anything to touch."""
    mechanism = with_joint(empty_mechanism(), "hinge", "revolute", "link")
    return Detector(mechanism, np.zeros(0, SURFACE_LINK), records_of([], []))


def compile_steps_with_contacts() -> None:
    """Compile steps whose contacts are to be found, and those that know theirs."""
    stepper = bounded_hinge()
    for detector in (blind_detector(), None):
        stepper.calls("dense", detector)


def compile_filter() -> None:
    """Compile the filter."""
    solver = solver_of_a_hinge()
    rows = np.zeros((1, 0, solver.mechanism.nv))
    nothing = Decision(
        solver.encoded, {}, {}, 0, Caps(0, 0), np.zeros(0), 0.0, np.inf, rows, 1e-3, 0.0
    )
    Filters([Filter(solver, nothing)])


def compile_step(kernel: Callable[..., int]) -> None:
    """Compile a kernel of ``step``."""
    solver_of_a_hinge().stored(kernel)


def compile_terms() -> None:
    """Compile what Python calls by itself: terms of the equations of motion, and of elements."""
    solver = solver_of_a_hinge()
    terms = solver.terms(solver.q, solver.v, 0.0)
    split_of(terms.M + np.eye(len(terms.h)), terms.J, solver.encoded.scale)
    displace(solver.bodies, solver.q.copy(), solver.v, 1.0, solver.q)
    measured(solver.encoded.elements, terms)
    compliance(solver, terms, 1.0, 1.0)


RECIPES: dict[str, tuple[Any, Callable[[], Any]]] = {
    run_inequalities.__name__: (run_inequalities, bounded_hinge),
    **{
        kernel.__name__: (kernel, functools.partial(compile_step, kernel))
        for kernel in (run_implicitly, run_with_friction, run, run_by_stages)
    },
    find_contacts.__name__: (find_contacts, blind_detector),
    run_filter.__name__: (run_filter, compile_filter),
    bias.__name__: (bias, compile_terms),
    step_with_contacts.__name__: (step_with_contacts, compile_steps_with_contacts),
}
"""Kernels by name, and what compiles each; those that take longest first, and last what
leaves others to other processes."""


def compile_ahead(*kernels: Callable[..., Any]) -> None:
    """Have these kernels compiled on all cores, the largest of them before this returns.

    It is a matter of time alone: nothing depends on it, and where no kernels can be kept, or on a
    single core, nothing happens.
    """
    missing = {kernel.__name__: kernel for kernel in kernels if not at_hand(kernel)}
    in_order = [name for name in RECIPES if name in missing]
    plan(missing[name] for name in in_order)
    plan(missing.values())
    others = [name for name in in_order if name not in _begun]
    if not others or is_plain_python() or not sys.executable or kernel_folder() is None:
        return
    if (beside := cores() - 1) < 1:
        return
    _begun.update(others)
    largest = others[0]
    tasks = [ASSIST + largest, *others[1:]]
    for first in range(min(beside, len(tasks))):
        with suppress(OSError):  # where no process can be started kernels are compiled here
            process = subprocess.Popen(
                [sys.executable, "-c", SCRIPT, str(PACKAGE.parent), *tasks[first::beside]],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            threading.Thread(target=process.wait, daemon=True).start()
    RECIPES[largest][1]()


def work(tasks: list[str]) -> None:
    """Do what a process that compiles ahead is told to, and last what is deferred of it."""
    deferred = list[Any]()
    for task in tasks:
        name = task.removeprefix(ASSIST)
        kernel, compile_it = RECIPES[name]
        if kernel is step_with_contacts:  # which calls these, but only by their blocks
            leave(run_inequalities)
            leave(find_contacts)
        if name == task:
            compile_it()
        else:
            deferred += assist(kernel, compile_it)
    for one in deferred:
        one.compiled()
