"""A mechanism as every simulator gets it: the same bodies, loops, forces and start."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from bulletbridge.constraints.encode import Constraint
from bulletbridge.constraints.force_element_records import encode_closed
from bulletbridge.constraints.force_elements import Bushing, Spring, Tendon, TorsionSpring
from bulletbridge.constraints.joints import Distance, Frame, JointModel, LoopJoint
from bulletbridge.constraints.records import AXIAL, FREE_ROTATION, FULL, NO_VARIABLE_ROW, ROD
from bulletbridge.errors import UnsupportedError
from bulletbridge.mechanism.frames import matrix_rpy, triple
from bulletbridge.mechanism.model import WORLD, Link, Mechanism
from bulletbridge.mechanism.records import FREE
from bulletbridge.numerics.records import Array
from bulletbridge.system.system import System

KINDS = {(FREE_ROTATION, 3): "ball", (AXIAL, 5): "revolute", (FULL, 6): "weld"}
HINGE = 0.1
"""Distance [m] of the two points that stand for a revolute loop where there is no such joint."""
STIR, STIR_RATE = 1e-3, 0.1
"""How far [rad or m] and how fast [1/s] joints are moved so that springs and dampers act."""
SMALL = 1e-9
"""Rounding of a direction that no joint of a planar loop can move."""


@dataclass(frozen=True)
class Tie:
    """One loop: frame a on one body and frame b on another.

    Attributes:
        kind: ``ball``, ``revolute`` (about z), ``weld``, or ``rod``: origins a distance apart.
        a, b: Bodies; 0 is the world.
        R_a, p_a, R_b, p_b: The frames in the bodies [m].
        normal: (3,) in frame a, the direction in which a ball of a planar loop has a row too many;
            None if it has none.
        length: Of a rod [m].
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
    length: float = 0.0

    def points(self) -> list[tuple[Array, Array]]:
        """Points of a and b that coincide; two for a hinge."""
        offsets = [np.zeros(3)]
        if self.kind == "revolute":
            offsets.append(np.array([0.0, 0.0, HINGE]))
        return [(self.p_a + self.R_a @ o, self.p_b + self.R_b @ o) for o in offsets]


@dataclass(frozen=True)
class Strut:
    """A spring and damper between two points, of bodies a and b.

    Attributes:
        a, b: Bodies; 0 is the world.
        p_a, p_b: The points in the bodies [m].
        stiffness, damping, length: [N/m], [N s/m], free length [m].
    """

    name: str
    a: int
    p_a: Array
    b: int
    p_b: Array
    stiffness: float
    damping: float
    length: float


@dataclass(frozen=True)
class Problem:
    """A mechanism with loops at its start.

    Attributes:
        name: Of the model.
        mechanism: Its links are its bodies: ``body1`` and so on.
        ties: Its loops.
        q, v: The start, in our coordinates: see ``mechanism.records``.
        struts: Its springs between bodies.
    """

    name: str
    mechanism: Mechanism
    ties: tuple[Tie, ...]
    q: Array
    v: Array
    struts: tuple[Strut, ...] = ()

    @property
    def floating(self) -> bool:
        """Whether the first body is free."""
        return bool(self.mechanism.bodies[1]["joint"] == FREE)

    @property
    def loops(self) -> tuple[LoopJoint | Distance, ...]:
        """The loops as our solver takes them."""
        return tuple(_loop(tie) for tie in self.ties)

    @property
    def springs(self) -> tuple[Spring, ...]:
        """The springs as our solver takes them."""
        return tuple(
            Spring(
                strut.name,
                _frame(strut.a, np.eye(3), strut.p_a),
                _frame(strut.b, np.eye(3), strut.p_b),
                strut.stiffness,
                strut.damping,
                strut.length,
            )
            for strut in self.struts
        )

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """Loops and springs."""
        return (*self.loops, *self.springs)

    @property
    def conservative(self) -> bool:
        """Whether nothing takes energy or gives it."""
        axes = self.mechanism.axes
        lost = any(strut.damping for strut in self.struts)
        return not (lost or np.any(axes["damping"]) or np.any(axes["torque"]))


def problem(
    name: str, mechanism: Mechanism, constraints: Sequence[Constraint], q: Array, v: Array
) -> Problem:
    """The problem of a mechanism, its loops and springs at a closed state.

    Raises:
        UnsupportedError: A loop or a spring is of a kind that not every simulator could have.
    """
    if any(isinstance(c, TorsionSpring | Bushing | Tendon) for c in constraints):
        raise UnsupportedError(f"'{name}' has springs that turn; only those along a line are known")
    loops = [c for c in constraints if not isinstance(c, Spring)]
    springs = [c for c in constraints if isinstance(c, Spring)]
    encoded = encode_closed(mechanism, constraints)
    bodies = range(len(mechanism.bodies))
    links = {_link(k): Link(_link(k), k, np.eye(3), np.zeros(3)) for k in bodies}
    ties: list[Tie] = []
    if len(encoded.couplings) or encoded.users or len(encoded.elements) > len(springs):
        raise UnsupportedError(f"'{name}' has gears, soft loops or constraints of its own")
    for loop, constraint in zip(encoded.loops, loops, strict=True):
        rod = loop["variable"] == ROD
        kind = "rod" if rod else KINDS.get((int(loop["rotation"]), int(loop["rows"])))
        known = rod or loop["variable"] == NO_VARIABLE_ROW
        if kind is None or not known or loop["target"] >= 0:
            raise UnsupportedError(f"loop '{constraint.name}' is no ball, hinge, weld or rod")
        R_a, p_a, R_b, p_b = (np.array(loop[key]) for key in ("R_a", "p_a", "R_b", "p_b"))
        ends = (int(loop["body_a"]), R_a, p_a, int(loop["body_b"]), R_b, p_b)
        ties.append(Tie(constraint.name, kind, *ends, length=float(loop["length"])))
    struts: list[Strut] = []
    for record, spring in zip(encoded.elements, springs, strict=True):
        if spring.force:
            raise UnsupportedError(f"spring '{spring.name}' has a force of its own")
        a, b = int(record["body_a"]), int(record["body_b"])
        p_a, p_b = np.array(record["p_a"]), np.array(record["p_b"])
        how = spring.stiffness, spring.damping, spring.length
        struts.append(Strut(spring.name, a, p_a, b, p_b, *how))
    made = Problem(name, replace(mechanism, links=links), tuple(ties), q, v, tuple(struts))
    return replace(made, ties=tuple(_with_normals(made)))


def _loop(tie: Tie) -> LoopJoint | Distance:
    a, b = _frame(tie.a, tie.R_a, tie.p_a), _frame(tie.b, tie.R_b, tie.p_b)
    if tie.kind == "rod":
        return Distance(tie.name, a, b, tie.length)
    return LoopJoint(tie.name, JointModel(tie.kind), a, b)


def _with_normals(made: Problem) -> list[Tie]:
    """Ties, those of balls with the direction that is redundant, if it is one: of planar loops."""
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


def undamped(made: Problem) -> Problem:
    """A problem without its dampers, whose energy stays."""
    axes = made.mechanism.axes.copy()
    axes["damping"] = 0.0
    struts = tuple(replace(strut, damping=0.0) for strut in made.struts)
    return replace(made, mechanism=replace(made.mechanism, axes=axes), struts=struts)


def stirred(made: Problem) -> Problem:
    """A problem a little way on, with rates, so that no spring or damper is at rest.

    As it is if it has none, or a free base, whose springs are strained at its start.
    """
    axes = made.mechanism.axes
    if made.floating or not (made.struts or np.any(axes["stiffness"]) or np.any(axes["damping"])):
        return made
    system = System(made.mechanism, made.constraints)
    pattern = np.cos(1.0 + np.arange(made.mechanism.nv))
    moved = replace(made, q=made.q + STIR * pattern)
    system.assemble(guess=positions(moved))
    system.set_state(system.q, made.v + STIR_RATE * pattern)  # takes out what opens the loops
    return replace(made, q=system.q, v=system.v)


def _link(body: int) -> str:
    return f"body{body}" if body else WORLD


def _frame(body: int, R: Array, p: Array) -> Frame:
    return Frame(_link(body), triple(p), matrix_rpy(R))
