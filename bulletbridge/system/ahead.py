"""Kernels compiled ahead of their first use, in processes beside this one.

A kernel takes one core for ten to twenty seconds, and which ones a system needs is known before the
first of them is ready. Other processes leave theirs where compiled kernels are kept, and whoever
needs one meanwhile waits for it there.
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
from bulletbridge.compilation.announce import at_hand, plan
from bulletbridge.compilation.cache import PACKAGE, kernel_folder
from bulletbridge.compilation.jit import is_plain_python
from bulletbridge.constraints.force_element_records import encode_closed
from bulletbridge.engine.redundancy import Decision
from bulletbridge.engine.step_kernel import run, run_by_stages, run_implicitly
from bulletbridge.engine.stepper import Solver
from bulletbridge.engine.workspace import Tolerances
from bulletbridge.formulations.equations import split_of
from bulletbridge.inequalities.constraints import inequality_constraints_of, joint_limits_of
from bulletbridge.inequalities.filter import Filter, Filters
from bulletbridge.inequalities.filter_kernel import run_filter
from bulletbridge.inequalities.motors import Motors
from bulletbridge.inequalities.step_kernel import run_inequalities
from bulletbridge.inequalities.stepper import InequalityStepper
from bulletbridge.mechanism.build import empty_mechanism, with_joint
from bulletbridge.mechanism.contact_detection import find_contacts
from bulletbridge.mechanism.contact_detector import Detector
from bulletbridge.mechanism.dynamics import bias
from bulletbridge.mechanism.kinematics import displace
from bulletbridge.mechanism.surfaces import SURFACE_LINK
from bulletbridge.numerics.projection import Caps
from bulletbridge.system.rollout_workers import cores

SCRIPT = f"import sys; sys.path.insert(0, sys.argv[1]); from {__name__} import RECIPES; " + (
    "RECIPES[sys.argv[2]][1]()"
)
_begun: set[str] = set()
"""Kernels that this process has had compiled ahead, or tried to."""


def solver_of_a_hinge() -> Solver:
    """The smallest system; kernels are the same for all."""
    mechanism = with_joint(empty_mechanism(), "hinge", "revolute", "link")
    return Solver(mechanism, encode_closed(mechanism, ()), Tolerances())


def compile_bounded() -> None:
    """Compile the step with motors, limits and contacts."""
    solver = solver_of_a_hinge()
    inequalities = inequality_constraints_of(solver.mechanism, ())
    motor_rows = Motors(solver.mechanism, inequalities.loop_axes).records
    InequalityStepper(
        solver,
        motor_rows,
        joint_limits_of(solver.mechanism, inequalities.loop_axes, False),
        inequalities,
    )


def compile_detection() -> None:
    """Compile collision detection."""
    mechanism = with_joint(empty_mechanism(), "hinge", "revolute", "link")
    Detector(mechanism, np.zeros(0, SURFACE_LINK), records_of([], []))


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
    """Compile what Python calls by itself: terms of the equations of motion, and their split."""
    solver = solver_of_a_hinge()
    terms = solver.terms(solver.q, solver.v, 0.0)
    split_of(terms.M + np.eye(len(terms.h)), terms.J, solver.encoded.scale)
    displace(solver.bodies, solver.q.copy(), solver.v, 1.0, solver.q)


RECIPES: dict[str, tuple[Any, Callable[[], None]]] = {
    kernel.__name__: (kernel, functools.partial(compile_step, kernel))
    for kernel in (run, run_by_stages, run_implicitly)
} | {
    run_inequalities.__name__: (run_inequalities, compile_bounded),
    run_filter.__name__: (run_filter, compile_filter),
    find_contacts.__name__: (find_contacts, compile_detection),
    bias.__name__: (bias, compile_terms),
}
"""Kernels by name, and what compiles each."""


def compile_ahead(*kernels: Callable[..., Any]) -> None:
    """Have all but the first of these kernels compiled by other processes, if there are cores.

    The first is for this process. It is a matter of time alone: nothing depends on it, and where no
    kernels can be kept nothing happens.
    """
    missing = [kernel for kernel in dict.fromkeys(kernels) if not at_hand(kernel)]
    plan(missing)
    names = [kernel.__name__ for kernel in missing[1:]]
    # beside one that waits for its first kernel all cores are free
    others = [name for name in names if name not in _begun][: cores() if cores() > 1 else 0]
    if not others or is_plain_python() or not sys.executable or kernel_folder() is None:
        return
    _begun.update(others)
    where = str(PACKAGE.parent)
    for name in others:
        with suppress(OSError):  # where no process can be started kernels are compiled here
            process = subprocess.Popen(
                [sys.executable, "-c", SCRIPT, where, name],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            threading.Thread(target=process.wait, daemon=True).start()
