"""Calls of kernels most of whose arguments stay, from Python and from other kernels.

A call from Python unboxes every argument, 20 to 30 ns for an array, and kernels have thirty. Here
those that stay are unboxed once, into words in memory, and a small compiled function, the same for
all kernels, calls the kernel with them.
"""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from bulletbridge.compilation.jit import call_stored, compiled, helper
from bulletbridge.compilation.words import WORD, kinds_of, words_of

Ints = NDArray[np.int64]


@functools.cache
def block_of(count: int) -> np.dtype[Any]:
    """The type of so many words in a row; one object each, by which compiled code knows it."""
    return np.dtype([("words", WORD, (count,))])


@dataclass(frozen=True, slots=True)  # whose fields are found sooner than those of a tuple
class WholeCall:
    """A kernel all of whose arguments stay.

    Attributes:
        block: What ``call_stored`` takes in other kernels, with an empty tuple.
        call: Takes that tuple; it keeps the arrays alive.
    """

    block: Any
    call: Callable[[tuple[()]], int]


class StoredCall:
    """A kernel whose first arguments stay.

    The kernel is called by its address, so that it is neither compiled again nor inlined. Nothing
    is checked: the rest must always have the types and layouts of the examples, as an object that
    owns its arrays can promise.

    Args:
        function: The kernel; it returns an integer.
        fixed: Arrays and integers; kept alive. Arrays may change in place only.
        examples: Of the other arguments.

    Attributes:
        arrays: Those that stay.
        block: (1,) what ``call_stored`` takes in other kernels; those of one kernel may stand in a
            row.
        call: Takes the rest, as one tuple.
    """

    def __init__(
        self, function: Callable[..., int], fixed: tuple[Any, ...], examples: tuple[Any, ...]
    ) -> None:
        self._function, self._fixed = function, fixed
        self.arrays = tuple(cast(np.ndarray, x) for x in fixed if isinstance(x, np.ndarray))
        self._words = np.zeros(0, WORD)
        self._machine = machine = compiled(function, *fixed, *examples)
        if machine is not None:  # not in plain Python
            machine.require_integer()
            machine.require_layout(fixed)
            if machine.address:
                self._words = np.array([machine.address, *words_of(fixed)], WORD)
        self.block = self._store(())
        self.call = self._entry(self.block, examples, fixed)

    def with_rest(self, rest: tuple[Any, ...]) -> "WholeCall":
        """The call with the rest stored as well.

        Raises:
            TypeError: The rest is not of the types of the examples.
        """
        if self._machine is not None:
            self._machine.require_rest(rest)
        block = self._store(rest)
        return WholeCall(block, self._entry(block, (), (self._fixed, rest)))

    def _store(self, rest: tuple[Any, ...]) -> Any:
        """A block, for what it holds."""
        if not len(self._words):
            block = np.empty(1, object)
            block[0] = self._function, (*self._fixed, *rest)
            return block
        words = np.concatenate([self._words, np.array(words_of(rest), WORD)])
        return words.view(block_of(len(words)))

    def _entry(self, block: Any, rest: tuple[Any, ...], kept: Any) -> Callable[[Any], int]:
        """Call by a block; whoever has it keeps the arrays."""
        found = compiled(call_stored, block, rest) if len(self._words) else None
        call = functools.partial(call_stored if found is None else found.entry_point, block)
        vars(call)["kept"] = kept
        return call

    def pointers(self) -> NDArray[np.bool_]:
        """Which words of the block (n,) say where something is."""
        return np.array([kind == "p" for kind in "i" + kinds_of(self._fixed)], np.bool_)


class OwnWords(NamedTuple):
    """Words by which calls of one kind differ.

    Attributes:
        words: (kinds, n) of the blocks that calls share, one by one.
        kinds: (calls,) kind of each call.
        first: (kinds + 1,) where in ``places`` each kind begins.
        places: Of the words that differ.
        own: (calls, most) what stands there in each.
    """

    words: Ints
    kinds: Ints
    first: Ints
    places: Ints
    own: Ints


class CallsInTurn(NamedTuple):
    """Calls of one kernel by blocks of which most words are the same.

    A hundred blocks of eight hundred words each are more than a processor has at hand. Calls whose
    arrays have the same sizes are of one kind and share a block; each puts its own words there.

    Attributes:
        blocks: (kinds,) what ``call_stored`` takes.
        own: What is put there before.
    """

    blocks: Any
    own: OwnWords


def in_turn(calls: Sequence[StoredCall]) -> CallsInTurn:
    """Calls of one kernel, to be made in turn."""
    blocks, count = np.concatenate([call.block for call in calls]), len(calls)
    if blocks.dtype == object:  # what Python calls
        nothing, numbers = np.zeros((count, 0), np.int64), np.arange(count + 1)
        return CallsInTurn(
            blocks, OwnWords(nothing, numbers[:-1], 0 * numbers, nothing[0], nothing)
        )
    words = blocks["words"]
    sizes = words[:, ~calls[0].pointers()]
    _, firsts, inverse = np.unique(sizes, axis=0, return_index=True, return_inverse=True)
    kinds = inverse.reshape(-1)
    places = [
        np.flatnonzero((words[kinds == kind] != words[first]).any(axis=0))
        for kind, first in enumerate(firsts)
    ]
    own = np.zeros((count, max(map(len, places))), np.int64)
    for i, kind in enumerate(kinds):
        own[i, : len(places[kind])] = words[i, places[kind]]
    shared, ends = blocks[firsts], np.cumsum([0, *map(len, places)])
    return CallsInTurn(shared, OwnWords(shared["words"], kinds, ends, np.concatenate(places), own))


@helper
def put_own_words(own: OwnWords, i: int) -> int:
    """Put the words of call i into the block of its kind, whose number is returned."""
    kind = int(own.kinds[i])
    first, words = int(own.first[kind]), own.words[kind]
    for k in range(first, int(own.first[kind + 1])):
        words[own.places[k]] = own.own[i, k - first]
    return kind
