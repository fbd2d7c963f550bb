"""Everything that decides the future of a system, plain: to go on from it, here or elsewhere."""

import hashlib
import pickle
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from bulletbridge.constraints.arrays import Encoded
from bulletbridge.constraints.encode import Constraint
from bulletbridge.engine.redundancy import Decision
from bulletbridge.errors import ModelError
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.numerics.memory import Memory
from bulletbridge.numerics.records import Array

REMEDY = "give functions and classes of a module in the place of lambdas and local ones"


class Absent(NamedTuple):
    """A constraint that could not be pickled: a system that has it must be there to restore."""

    name: str
    why: str


class KeptSet(NamedTuple):
    """Constraints that acted together, what was decided about them, and where that stood.

    Attributes:
        constraints: As they were connected.
        decision: Which rows are redundant; None if that was not decided yet.
        full, solver: Memories of the rows as written, and as kept.
    """

    constraints: tuple[Constraint | Absent, ...]
    decision: Decision | None
    full: Memory
    solver: Memory

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the constraints."""
        return tuple(c.name for c in self.constraints)


@dataclass(frozen=True, eq=False)
class SavedState:
    """State as ``System.save`` returns and ``System.restore`` takes it; it is never changed.

    Two are equal if all numbers that decide the future of a mechanism are the same, to the bit;
    what a world remembers of contacts is not compared.

    Attributes:
        q: Configuration (nq,).
        v: Velocity (nv,).
        t: Time [s].
        mechanism: Names and a digest of what is simulated.
        options: How, by the arguments of ``System``.
        sets: Constraints in force, then those that are remembered, with their solvers' memories.
        parts: Memories of motors, steps with inequalities and error control.
        world: What the world remembers of contacts, by its own ``save``; None without them.
    """

    q: Array
    v: Array
    t: float
    mechanism: tuple[tuple[str, ...], bytes]
    options: dict[str, Any]
    sets: tuple[KeptSet, ...]
    parts: dict[str, Any]
    world: Any

    def __eq__(self, other: object) -> bool:
        """Whether both decide the same future."""
        return isinstance(other, SavedState) and self._numbers() == other._numbers()

    def __hash__(self) -> int:
        """Hash of the state alone."""
        return hash((self.q.tobytes(), self.v.tobytes(), self.t))

    def _numbers(self) -> tuple[Any, ...]:
        sets = tuple((kept.names, kept.full, kept.solver) for kept in self.sets)
        return self.mechanism, self.options, sets, self.parts

    def __repr__(self) -> str:
        """A line; what it holds are thousands of bytes."""
        joints, sets = self.mechanism[0], self.sets[0].names
        return f"<SavedState: {len(joints)} joints, {len(sets)} constraints, t = {self.t:g} s>"

    def __post_init__(self) -> None:
        """Let nobody think that a state could be changed."""
        self.q.setflags(write=False)
        self.v.setflags(write=False)

    def __deepcopy__(self, memo: dict[int, Any]) -> "SavedState":
        """The same, since it does not change."""
        return self

    def __getstate__(self) -> dict[str, Any]:
        """Without the functions of constraints that cannot be pickled.

        Remembered sets of such constraints are left out: they are decided again when they return.
        """
        now, *others = (
            kept._replace(
                constraints=tuple(map(or_absent, kept.constraints)),
                decision=kept.decision and without_functions(kept.decision),
            )
            for kept in self.sets
        )
        whole = (s for s in others if not any(isinstance(c, Absent) for c in s.constraints))
        return {**vars(self), "sets": (now, *whole)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take what was pickled."""
        vars(self).update(state)
        self.__post_init__()


def or_absent(constraint: Constraint | Absent) -> Constraint | Absent:
    """The constraint, or its name if it cannot be pickled."""
    try:
        pickle.dumps(constraint)
    except Exception as error:  # noqa: BLE001  whatever its class raises
        return Absent(constraint.name, str(error))
    return constraint


def without_functions(decision: Decision) -> Decision:
    """A decision whose rows have neither motions nor users' functions."""
    return replace(decision, encoded=replace(decision.encoded, motions=(), users=()))


def thawed(decision: Decision, encoded: Encoded) -> Decision:
    """A decision that was kept, with rows of its own and the functions of rows as written."""
    own = replace(decision.encoded, motions=encoded.motions, users=encoded.users)
    for name in ("loops", "couplings", "terms"):
        own = replace(own, **{name: getattr(own, name).copy()})
    return replace(decision, encoded=own)


class Carried:
    """Part of a system that is pickled, or an error that names it; copies share what it holds.

    Args:
        what: The name in errors.
        part: Constraint, function or option.
    """

    def __init__(self, what: str, part: Any) -> None:
        self.what, self.part = what, part

    def __deepcopy__(self, memo: dict[int, Any]) -> "Carried":
        """The same: copies of a system share what describes it."""
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """The part, if it can be pickled.

        Raises:
            ModelError: It cannot.
        """
        try:
            pickle.dumps(self.part)
        except Exception as error:
            raise ModelError(f"{self.what} cannot be pickled: {error}; {REMEDY}") from error
        return Carried, (self.what, self.part)


def digest(mechanism: Mechanism) -> tuple[tuple[str, ...], bytes]:
    """Names of the joints, and a hash over all numbers of a mechanism but gravity."""
    found = hashlib.sha256()
    for joint in mechanism.joints.values():
        found.update(repr((joint.kind, joint.lower, joint.upper, joint.friction)).encode())
    for array in (
        mechanism.bodies,
        mechanism.axes,
        mechanism.efforts,
        mechanism.beams,
        mechanism.stations,
    ):
        found.update(np.ascontiguousarray(array).tobytes())
    return tuple(mechanism.joints), found.digest()


def require_same(
    state: SavedState, mechanism: tuple[tuple[str, ...], bytes], options: Mapping[str, Any]
) -> None:
    """Refuse the state of another system."""
    theirs, ours = set(state.mechanism[0]), set(mechanism[0])
    if state.mechanism[0] != mechanism[0]:
        more, less = sorted(theirs - ours), sorted(ours - theirs)
        raise ModelError(
            f"the state is that of another mechanism: it has joints {more or 'in another order'}"
            f" that are not here, and lacks {less or 'none'}; restore it on the system that saved"
            " it, or on one that was made alike"
        )
    for name, value in options.items():
        if state.options.get(name) != value:
            raise ModelError(
                f"the state was saved with {name}={state.options.get(name)!r}, and this system has"
                f" {name}={value!r}; make it with the same options, or set q and v alone with"
                " set_state"
            )
    if state.mechanism[1] != mechanism[1]:
        raise ModelError(
            "the state is that of a mechanism with the same joints but other masses, inertias,"
            " frames, springs or dampers; restore it on a system that was made alike, or set q and"
            " v alone with set_state"
        )
