"""Which links were said not to collide: Bullet does not tell it of links that only touch."""

from dataclasses import dataclass, field

Place = tuple[int, int]
"""A body and a link of it, by Bullet's numbers."""


@dataclass
class CollisionFilters:
    """What a program has said of which links collide.

    Attributes:
        pairs: Whether two links collide, as ``setCollisionFilterPair`` said.
        alone: Links of no group or mask, which collide with nothing else.
    """

    pairs: dict[frozenset[Place], bool] = field(default_factory=lambda: {})
    alone: set[Place] = field(default_factory=lambda: set())

    def forbids(self, a: Place, b: Place) -> bool:
        """Whether two links are known not to collide."""
        said = self.pairs.get(frozenset((a, b)))
        return not said if said is not None else a in self.alone or b in self.alone

    def copy(self) -> "CollisionFilters":
        """The same, which stays as it is."""
        return CollisionFilters({**self.pairs}, {*self.alone})

    def forget(self, body: int) -> None:
        """Forget a body."""
        for pair in [pair for pair in self.pairs if any(place[0] == body for place in pair)]:
            del self.pairs[pair]
        self.alone -= {place for place in self.alone if place[0] == body}
