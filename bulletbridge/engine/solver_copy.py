"""Arrays of a solver once more, to work at other states in, or on what steps have no use for."""

import numpy as np

from bulletbridge.compilation.announce import announce_compilation
from bulletbridge.compilation.jit import helper, kernel
from bulletbridge.compilation.stored_calls import StoredCall
from bulletbridge.engine.records import DONE, NOT_FACTORED, SystemArrays
from bulletbridge.engine.stepper import Solver
from bulletbridge.numerics.records import Array, copied


@helper
def take_numbers(arrays: SystemArrays, others: SystemArrays) -> None:
    """Take over what may change in the arrays of another, but for its state.

    What it knows of its configuration is forgotten, and it is not called back: forces that are
    functions are asked of whom they were.
    """
    c = arrays.control[0]
    asked, asked_for = c.asked, c.asked_for
    arrays.control[0] = others.control[0]
    c.asked, c.asked_for = asked, asked_for
    c.callback = c.scripted = c.biased = 0
    c.factored = NOT_FACTORED
    for i in range(len(arrays.axes)):
        arrays.axes[i] = others.axes[i]
    for i in range(len(arrays.efforts)):
        arrays.efforts[i] = others.efforts[i]
    for i in range(arrays.rows.shape[0]):
        for k in range(arrays.rows.shape[1]):
            arrays.rows[i, k] = others.rows[i, k]


@kernel
def take_all_numbers(arrays: SystemArrays, others: SystemArrays) -> int:
    """``take_numbers``; return 0."""
    take_numbers(arrays, others)
    return DONE


class SolverCopy:
    """What kernels of a solver write to, in arrays of its own.

    Args:
        solver: Whose; it is read alone.

    Attributes:
        arrays: As the kernels of the step take them, one set of factors or two; some of them:
        state: (nq + nv + 1,) q, v, t.
        control: (1,)
        rows: (3, nc)
        poses, axes, efforts: Records.
        vectors: Scratch.
    """

    def __init__(self, solver: Solver) -> None:
        self.solver = solver
        own: tuple[np.ndarray, ...] = (
            solver.poses,
            solver.axes,
            solver.efforts,
            solver.rows,
            solver.control,
        )
        copies: tuple[np.ndarray, ...] = tuple(copied(each) for each in own)
        self.poses, self.axes, self.efforts, self.rows, self.control = copies
        self.control[0]["asked"] = self.control[0]["asked_for"] = 0
        self.state, self.vectors = solver.state.copy(), solver.vectors.copy()
        L, Y, R, first = (np.zeros_like(x[:2]) for x in solver.factors)
        self.arrays = solver.arrays._replace(
            beams=copied(solver.beams),
            stations=copied(solver.stations),
            poses=self.poses,
            axes=self.axes,
            efforts=self.efforts,
            rows=self.rows,
            L=L,
            Y=Y,
            R=R,
            first=first,
            vectors=self.vectors,
            state=self.state,
            control=self.control,
        )
        self._q, self._v = self.state[: len(solver.q)], self.state[len(solver.q) : -1]
        with announce_compilation(take_all_numbers):
            self._take = StoredCall(take_all_numbers, (self.arrays, solver.arrays), ()).call

    def take(self, q: Array, v: Array, t: float) -> None:
        """Take over all numbers of the solver, and a state."""
        self._q[:], self._v[:], self.state[-1] = q, v, t
        self._take(())
