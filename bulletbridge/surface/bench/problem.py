"""A mechanism as every simulator gets it: the same bodies, loops, forces and start."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from bulletbridge.constraints.elements import ForceElement
from bulletbridge.constraints.encode import Constraint, encode
from bulletbridge.constraints.layout import AXIAL, FREE_ROTATION, FULL, NO_VARIABLE_ROW
from bulletbridge.constraints.loop import Frame, JointModel, LoopJoint
from bulletbridge.errors import UnsupportedError
from bulletbridge.mechanism.frames import matrix_rpy
from bulletbridge.mechanism.layout import FREE
from bulletbridge.mechanism.model import WORLD, Link, Mechanism
from bulletbridge.numerics.records import Array
from bulletbridge.simulation.system import System

KINDS = {(FREE_ROTATION, 3): "ball", (AXIAL, 5): "revolute", (FULL, 6): "weld"}
HINGE = 0.1
"""Distance [m] of the two points that stand for a revolute loop where there is no such joint."""
SMALL = 1e-9
"""Rounding of a direction that no joint of a planar loop can move."""


@dataclass(frozen=True)
class Tie:
    """One loop: frame a on one body and frame b on another.

    Attributes:
        kind: ``ball``, ``revolute`` (about z) or ``weld``.
        a, b: Bodies; 0 is the world.
        R_a, p_a, R_b, p_b: The frames in the bodies [m].
        normal: (3,) in frame a, the direction in which a ball of a planar loop has a row too many;
            None if it has none.
    """

    name: str
    kind: str
    a: int
    R_a: Array
    p_a: Array
    b: int
    R_b: Array
    p_b: Array
    normal: Array | None = None

    def points(self) -> list[tuple[Array, Array]]:
        """Points of a and b that coincide; two for a hinge."""
        offsets = [np.zeros(3)]
        if self.kind == "revolute":
            offsets.append(np.array([0.0, 0.0, HINGE]))
        return [(self.p_a + self.R_a @ o, self.p_b + self.R_b @ o) for o in offsets]


@dataclass(frozen=True)
class Problem:
    """A mechanism with loops at its start.

    Attributes:
        name: Of the model.
        mechanism: Its links are its bodies: ``body1`` and so on.
        ties: Its loops.
        q, v: The start, in our coordinates: see ``mechanism.layout``.
    """

    name: str
    mechanism: Mechanism
    ties: tuple[Tie, ...]
    q: Array
    v: Array

    @property
    def floating(self) -> bool:
        """Whether the first body is free."""
        return bool(self.mechanism.bodies[1]["joint"] == FREE)

    @property
    def constraints(self) -> tuple[LoopJoint, ...]:
        """The loops as our solver takes them."""
        return tuple(
            LoopJoint(
                tie.name,
                JointModel(tie.kind),
                _frame(tie.a, tie.R_a, tie.p_a),
                _frame(tie.b, tie.R_b, tie.p_b),
            )
            for tie in self.ties
        )

    @property
    def conservative(self) -> bool:
        """Whether nothing takes energy."""
        return not np.any(self.mechanism.axes["damping"])


def problem(
    name: str, mechanism: Mechanism, constraints: Sequence[Constraint], q: Array, v: Array
) -> Problem:
    """The problem of a mechanism and its loops at a closed state.

    Raises:
        UnsupportedError: A loop is of a kind that not every simulator could have.
    """
    loops = [c for c in constraints if not isinstance(c, ForceElement)]
    if len(loops) < len(constraints):
        raise UnsupportedError(f"'{name}' has springs between links; give loops alone")
    encoded = encode(mechanism, loops)
    bodies = range(len(mechanism.bodies))
    links = {_link(k): Link(_link(k), k, np.eye(3), np.zeros(3)) for k in bodies}
    ties: list[Tie] = []
    if len(encoded.couplings) or encoded.users:
        raise UnsupportedError(f"'{name}' has gears or constraints of its own; give loops alone")
    for loop, constraint in zip(encoded.loops, loops, strict=True):
        kind = KINDS.get((int(loop["rotation"]), int(loop["rows"])))
        if kind is None or loop["variable"] != NO_VARIABLE_ROW or loop["target"] >= 0:
            raise UnsupportedError(f"loop '{constraint.name}' is no ball, hinge or weld")
        frames = {key: np.array(loop[key]) for key in ("R_a", "p_a", "R_b", "p_b")}
        ties.append(
            Tie(constraint.name, kind, int(loop["body_a"]), b=int(loop["body_b"]), **frames)
        )
    made = Problem(name, replace(mechanism, links=links), tuple(ties), q, v)
    return replace(made, ties=tuple(_with_normals(made)))


def _with_normals(made: Problem) -> list[Tie]:
    system = System(made.mechanism, made.constraints)
    system.assemble(guess=positions(made))
    found: list[Tie] = []
    for tie in made.ties:
        dropped = system.decision.by_name[tie.name].dropped
        if tie.kind == "ball" and len(dropped) == 1:
            normal = np.where(np.abs(dropped[0, 3:]) < SMALL, 0.0, dropped[0, 3:])
            tie = replace(tie, normal=normal / np.linalg.norm(normal))
        found.append(tie)
    return found


def positions(made: Problem) -> dict[str, float | list[float]]:
    """The start by joint name."""
    named = {name: made.q[joint.q].tolist() for name, joint in made.mechanism.joints.items()}
    return {name: q[0] if len(q) == 1 else q for name, q in named.items()}


def _link(body: int) -> str:
    return f"body{body}" if body else WORLD


def _frame(body: int, R: Array, p: Array) -> Frame:
    x, y, z = (float(value) for value in p)
    return Frame(_link(body), (x, y, z), matrix_rpy(R))


def principal(J: Array) -> tuple[Array, Array]:
    """Axes (3, 3) as columns and moments (3,) of an inertia; its own axes if they are principal."""
    if np.abs(J - np.diag(np.diag(J))).max() <= 1e-14 * np.trace(J):
        return np.eye(3), np.diag(J).copy()
    moments, axes = np.linalg.eigh(J)
    if np.linalg.det(axes) < 0.0:
        axes[:, 0] *= -1.0
    return axes, moments
