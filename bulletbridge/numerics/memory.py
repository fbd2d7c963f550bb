"""Arrays as bytes, and the same arrays as they were: what a program remembers between its steps."""

from collections.abc import Iterable

import numpy as np

Memory = tuple[bytes, ...]
"""Contents of an owner's arrays, in its own order: plain, comparable, never changed."""


class Remembered:
    """Arrays that change in place, read and put back as a whole.

    Args:
        arrays: Contiguous ones, kept alive; each counts once, however often it is given.
    """

    def __init__(self, arrays: Iterable[np.ndarray]) -> None:
        unique = {id(array): array for array in arrays}
        self._bytes = [array.reshape(-1).view(np.uint8) for array in unique.values() if array.size]
        assert all(
            np.shares_memory(part, array)
            for part, array in zip(self._bytes, (a for a in unique.values() if a.size), strict=True)
        )

    def copy(self) -> Memory:
        """Their contents."""
        return tuple(part.tobytes() for part in self._bytes)

    def put_back(self, memory: Memory) -> None:
        """Make their contents what they were; they have the sizes that they had."""
        for part, before in zip(self._bytes, memory, strict=True):
            part[:] = np.frombuffer(before, np.uint8)
