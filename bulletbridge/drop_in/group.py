"""What a client asks of a group of bodies, whoever advances them."""

from collections.abc import Callable
from typing import Protocol

from bulletbridge.bullet.constraints import CreatedConstraint
from bulletbridge.bullet.state import SingleBody
from bulletbridge.drop_in.forces import State
from bulletbridge.drop_in.joined_bodies import JoinedBodies
from bulletbridge.system.system import System
from bulletbridge.viewer.overlay import Mark

ALONE = -1
"""Number of a group that needs no compiled call for its step."""


class GroupMemory(Protocol):
    """What the next steps of a group go by."""

    @property
    def bodies(self) -> frozenset[int]:
        """Bullet's ids."""
        ...


class Group(Protocol):
    """Bodies that constraints join, with the steps of one mode.

    Attributes:
        exact: Whether motors, limits and contacts are our step's too, not only loops.
        joined: Bodies and constraints.
        system: Their system.
    """

    exact: bool
    joined: JoinedBodies
    system: System

    @property
    def alone(self) -> Callable[[tuple[()]], int] | None:
        """The next step as one call that returns whether it failed, with the state before it.

        In place of ``before_step`` as long as nobody does or asks anything; None where the group
        has more to do.
        """
        ...

    @property
    def plain(self) -> SingleBody | None:
        """What a step reads, filters and writes, or writes alone, if it has nothing else to do."""
        ...

    def disband(self) -> None:
        """Give back what the group has changed in Bullet: it is made no more steps."""
        ...

    def disturb(self) -> None:
        """Note that somebody has put the bodies elsewhere."""
        ...

    def begin_anew(self) -> bool:
        """Go on as bodies that were just read; False where they must be read for that."""
        ...

    def move_base(self, body: int) -> None:
        """Note that somebody has put a base elsewhere that does not move by itself."""
        ...

    def forget_friction(self) -> None:
        """Note that something may rub otherwise than it did."""
        ...

    def change(self, loop: CreatedConstraint, moved: bool) -> bool:
        """Note that a loop was changed; whether the bodies must be read again."""
        ...

    def memory(self) -> GroupMemory:
        """What its next steps go by."""
        ...

    def recall(self, memory: object) -> bool:
        """Go on from a memory; False where it is that of other bodies, constraints or frames."""
        ...

    def before_step(self, may_undo: bool) -> None:
        """What comes before Bullet's step; ``undo`` may be called after it, if that is said."""
        ...

    def undo(self) -> None:
        """Take back ``before_step``."""
        ...

    def after_step(self, found: list[float]) -> int:
        """What comes after Bullet's step: a state to be filtered is added to ``found``.

        Returns:
            How many points stick, or ``ALONE`` where nothing is to be filtered.
        """
        ...

    def state_of(self, loop: CreatedConstraint) -> State:
        """Forces of a constraint in the last step, as ``getConstraintState`` tells them."""
        ...

    def marks(self) -> list[Mark]:
        """What a window shows of the loops."""
        ...
