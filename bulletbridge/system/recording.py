"""Recordings: states and figures of a run, step by step."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bulletbridge.mechanism.model import Mechanism
from bulletbridge.numerics.records import Array


@dataclass(frozen=True)
class Recording:
    """A trajectory.

    Attributes:
        mechanism: Names the coordinates.
        t: (n,) [s].
        q: (n, nq).
        v: (n, nv).
        rank: (n,) independent rows.
        margin: (n,) weakest independent row over the strongest; small near a singular position.
        passes: (n,) correction passes of the step that ended there.
    """

    mechanism: Mechanism
    t: Array
    q: Array
    v: Array
    rank: np.ndarray
    margin: Array
    passes: np.ndarray

    def __repr__(self) -> str:
        """How many states of what, and when."""
        when = f", t = {self.t[0]:.6g} to {self.t[-1]:.6g} s" if len(self.t) else ""
        return f"<Recording: {len(self.t)} states of {len(self.mechanism.joints)} joints{when}>"

    @classmethod
    def joined(cls, parts: Sequence["Recording"]) -> "Recording":
        """One recording of several that follow each other."""
        columns = [(p.t, p.q, p.v, p.rank, p.margin, p.passes) for p in parts]
        return cls(parts[0].mechanism, *(np.concatenate(c) for c in zip(*columns, strict=True)))

    def position(self, joint: str) -> Array:
        """Position of a joint over time: (n,), or (n, k) for spherical and free joints.

        Raises:
            ModelError: There is no such joint.
        """
        part = self.mechanism.joint(joint).q
        return self.q[:, part.start] if part.stop - part.start == 1 else self.q[:, part]

    def rate(self, joint: str) -> Array:
        """Rate of a joint over time: (n,), or (n, k) for spherical and free joints.

        Raises:
            ModelError: There is no such joint.
        """
        part = self.mechanism.joint(joint).v
        return self.v[:, part.start] if part.stop - part.start == 1 else self.v[:, part]


def from_table(mechanism: Mechanism, table: Array) -> Recording:
    """Recording from rows of (q, v, t, rank, margin, passes)."""
    nq, nv = mechanism.nq, mechanism.nv
    q, v = table[:, :nq], table[:, nq : nq + nv]
    t, rank, margin, passes = table[:, nq + nv :].T
    return Recording(mechanism, t, q, v, rank.astype(int), margin, passes.astype(int))
