"""Arrays of a solver once more, to work at other states in, or on what steps have no use for."""

import numpy as np

from bulletbridge.engine.stepper import Solver
from bulletbridge.numerics.records import Array, copied

ASKING = "asked", "callback", "scripted"
"""Of ``Control``: what calls back into the solver itself."""


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
        self.state, self.vectors = solver.state.copy(), solver.vectors.copy()
        L, Y, R, first = (np.zeros_like(x[:2]) for x in solver.factors)
        self._taken = [  # as bytes, which costs less than field by field
            (mine.view(np.uint8), other.view(np.uint8))
            for mine, other in zip(copies[1:], own[1:], strict=True)
        ]
        self._q, self._v = self.state[: len(solver.q)], self.state[len(solver.q) : -1]
        self._forgotten = [self.control[name] for name in (*ASKING, "factored", "biased")]
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

    def take(self, q: Array, v: Array, t: float) -> None:
        """Take over all numbers of the solver, and a state."""
        self._q[:], self._v[:], self.state[-1] = q, v, t
        for mine, other in self._taken:
            mine[...] = other
        for number in self._forgotten:
            number[0] = 0
