"""Gaps that Bullet is told before its step, by which it knows what constraints carry.

Bullet's solver makes a given number of passes. What these leave of a load opens its constraints,
and by the gap, of which a step takes back a share, they come to carry it. Filter mode closes the
gaps, and a heavy body would sink into light ones that hold it, a little in every step. So Bullet
is told the gaps that it would have, and its contacts find what is held as firm as they do natively.
"""

from collections.abc import Iterable

import numpy as np
import pybullet

from bulletbridge.bullet.constraints import CreatedConstraint, info_of
from bulletbridge.bullet.coordinates import Floats, matrix, unit
from bulletbridge.bullet.watched_calls import native_of
from bulletbridge.compilation.stored_calls import StoredCall
from bulletbridge.constraints.told_gaps import TOLD_GAP, add_gaps
from bulletbridge.drop_in.forces import POINTS
from bulletbridge.engine.stepper import Solver
from bulletbridge.mechanism.frames import frame_with_z
from bulletbridge.numerics.records import Array


class ToldGaps:
    """Gaps of the points and fixed constraints of a group without force limit or moving frame.

    Others are Bullet's where these are, or have no gap that it would know of.

    Args:
        loops: Constraints that the solver knows.
        solver: Where their frames are encoded.
        client: Physics client.

    Attributes:
        solver: As given.
    """

    def __init__(self, loops: Iterable[CreatedConstraint], solver: Solver, client: int) -> None:
        self.solver, self._client = solver, client
        rows = list(solver.encoded.rows)
        held = [loop for loop in loops if is_told(loop) and loop.name in rows]
        self._numbers = [(loop.number, loop.kind == pybullet.JOINT_FIXED) for loop in held]
        self._gaps = np.zeros(len(held), TOLD_GAP)
        self._places: list[tuple[Floats, Floats]] = []  # where the frames are
        self._told = False
        for gap, loop in zip(self._gaps, held, strict=True):
            info = info_of(loop.number, client)
            self._places.append((info[7], info[9]))
            gap["loop"], gap["turns"] = rows.index(loop.name), loop.kind == pybullet.JOINT_FIXED
            gap["align"] = frame_with_z(loop.axis_in_frame)
            gap["p"], gap["q"] = info[7], info[9]
            gap["axes"] = matrix(unit(info[9]))
        poses, _ = solver.places_at(solver.q)
        fixed = self._gaps, solver.encoded.loops, poses, solver.still[0]
        self._add = StoredCall(add_gaps, fixed, ()).call

    def add(self, q: Array) -> None:
        """Add what Bullet's step has opened, which ended at a configuration (nq,)."""
        if self._numbers:
            self.solver.places_at(q)
            self._add(())
            self._told = True

    def forget(self) -> None:
        """Have all gaps closed."""
        if self._told:
            self._gaps["gap"] = self._gaps["turn"] = 0.0
            self._told = False

    def memory(self) -> np.ndarray | None:
        """The gaps (n,) of ``constraints.told_gaps``; None while there are none."""
        return self._gaps.copy() if self._told else None

    def recall(self, memory: np.ndarray) -> None:
        """Go on from a memory."""
        self._gaps[:], self._told = memory, True

    def tell(self) -> None:
        """Tell Bullet the gaps, until ``put_back``."""
        if self._told:
            told = self._gaps["told"]
            self._change(zip(told[:, :3].tolist(), told[:, 3:].tolist(), strict=True))

    def put_back(self) -> None:
        """Tell Bullet again where the frames are."""
        if self._told:
            self._change(self._places)

    def _change(self, places: Iterable[tuple[Floats, Floats]]) -> None:
        change, client = native_of(pybullet.changeConstraint), self._client
        for (number, turns), (place, quat) in zip(self._numbers, places, strict=True):
            if turns:
                change(
                    number,
                    jointChildPivot=place,
                    jointChildFrameOrientation=quat,
                    physicsClientId=client,
                )
            else:
                change(number, jointChildPivot=place, physicsClientId=client)


def is_told(loop: CreatedConstraint) -> bool:
    """Whether Bullet is told the gap of a constraint."""
    kinds = (pybullet.JOINT_FIXED, *POINTS)
    return loop.kind in kinds and loop.max_force is None and not loop.moving
