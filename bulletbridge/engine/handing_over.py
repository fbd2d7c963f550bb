"""Steps by a kernel that hands to the dense one what it cannot do."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bulletbridge.compilation.announce import announce_compilation
from bulletbridge.compilation.stored_calls import StoredCall, WholeCall
from bulletbridge.engine.records import (
    DENSE_REQUIRED,
    DONE,
    FORCES_PER_STEP,
    TARGETS_PER_STEP,
)
from bulletbridge.engine.stepper import NO_RECORD, CompiledStepper, Solver
from bulletbridge.numerics.records import Array


class HandingStepper(CompiledStepper):
    """Steps of a system as a whole, some of them by the dense kernel.

    Args:
        whole: The solver whose state it advances; it takes over steps that are DENSE_REQUIRED.
        kernel: Takes the arrays, those of ``whole``, targets, forces, record, ``rest``, the first
            step and their number.
        arrays: What the kernel works on beside those of ``whole``.
        rest: What it takes before the steps.
    """

    is_whole = True

    def __init__(
        self,
        whole: Solver,
        kernel: Callable[..., int],
        arrays: Sequence[Any],
        rest: tuple[int, ...] = (),
    ) -> None:
        self._whole, self._rest = whole, rest
        self.arrays = arrays
        examples = (whole.still, whole.tau, NO_RECORD, *rest, 0, 0)
        with announce_compilation(kernel):
            self._bound = StoredCall(kernel, (arrays, whole.arrays), examples)
        self._run = self._bound.call

    def run(self, targets: np.ndarray, tau: Array, record: Array, steps: int) -> int:
        """Advance by steps; return the failure that stopped it, or DONE."""
        c, every, first, taken = self._whole.control[0], steps // max(len(record), 1), 0, [0, 0]
        each, lines = TARGETS_PER_STEP[int(c["integrator"])], FORCES_PER_STEP[int(c["integrator"])]
        while True:
            failure = self._run((targets, tau, record, *self._rest, first, steps))
            first = int(c["done"])
            count(c, taken)
            if failure == DENSE_REQUIRED:
                due = len(record) > 0 and (first + 1) % every == 0
                line = record[(first + 1) // every - 1 :][:1] if due else NO_RECORD
                now = part(targets, each * first, each + 1), part(tau, lines * first, lines)
                failure = self.take_over(*now, line)
                first += int(c["done"])
                count(c, taken)
            c["done"] = first
            if failure != DONE or first == steps:
                return failure

    def take_over(self, targets: np.ndarray, tau: Array, record: Array) -> int:
        """A step that the kernel has left; the failure that stopped it, or DONE."""
        return self._whole.run_whole(targets, tau, record, 1)

    def one_step(self, tau: Array) -> WholeCall:
        """Call that advances by one step with forces that stay."""
        return self._bound.with_rest((self._whole.still, tau, NO_RECORD, *self._rest, 0, 1))


def count(c: np.void, taken: list[int]) -> None:
    """Add the sub-steps of the last call to those of the calls before."""
    taken[0] += int(c["taken"])
    taken[1] += int(c["rejected"])
    c["taken"], c["rejected"] = taken


def part(lines: np.ndarray, first: int, count: int) -> np.ndarray:
    """Lines of one step, of those of all steps, or the one line for all times."""
    return lines if len(lines) == 1 else lines[first : first + count]
