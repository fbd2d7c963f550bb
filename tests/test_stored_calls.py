"""Kernels whose first arguments are stored: the same results, compiled once, arrays kept."""

import gc
import weakref

import numpy as np
import pytest
from test_jit import compiled_once, package, run  # noqa: F401  fixtures

from bulletbridge.compilation.jit import caller, kernel
from bulletbridge.compilation.stored_calls import StoredCall, call_stored, in_turn, put_own_words
from bulletbridge.mechanism.records import POSE

CALLER = """
import numpy as np
from small.compilation.jit import kernel
from small.compilation.stored_calls import StoredCall, call_stored

@kernel
def fill(place: np.ndarray, count: int, x: float) -> int:
    for i in range(count):
        place[i] = x
    return count

if __name__ == "__main__":
    place = np.zeros(5)
    call = StoredCall(fill, (place, 3), (1.0,)).call
    hits = [sum(f.stats.cache_hits.values()) for f in (fill, call_stored) if hasattr(f, "stats")]
    print(call((2.0,)), place.sum(), *hits)
"""


@kernel
def gather(poses, x, A, T, m, given, n):
    """Something of every argument: numbers of all kinds of arrays at places that n gives."""
    x[0] = poses[n].p[1] + A[n, 1] + T[1, n, 2] + m * given[n]
    return len(poses) + 10 * A.shape[1] + 100 * T.shape[2] + 1000 * n


@kernel
def twice(block, given, n):
    """A kernel that calls another by its block."""
    return call_stored(block, (given, n)) + call_stored(block, (given, n))


@caller
def one_after_another(calls, given, n):
    """A kernel that makes calls in turn, twice."""
    total = 0
    for k in range(2 * len(calls.own.kinds)):
        kind = put_own_words(calls.own, k % len(calls.own.kinds))
        total += call_stored(calls.blocks[kind : kind + 1], (given, n))
    return total


def arguments():
    poses = np.zeros(4, POSE)
    poses["p"] = np.arange(12).reshape(4, 3)
    A, T = np.arange(6.0).reshape(3, 2), np.arange(24.0).reshape(2, 3, 4)
    return poses, np.zeros(1), A[:], T, 7, np.array([1.0, 0.5, 0.25]), 2


def test_a_stored_call_is_the_call():
    *fixed, given, n = arguments()
    assert gather(*fixed, given, n) == 2424
    expected = fixed[1][0]
    assert expected == 7.0 + 5.0 + 22.0 + 1.75
    bound = StoredCall(gather, tuple(fixed), (given, n))
    fixed[1][0] = 0.0
    assert bound.call((given, n)) == 2424 and fixed[1][0] == expected
    fixed[2][2, 1] += 3.0  # in place
    assert twice(bound.block, given, n) == 2 * 2424 and fixed[1][0] == expected + 3.0
    everything = bound.with_rest((given, n)).call
    fixed[1][0] = 0.0
    assert everything(()) == 2424 and fixed[1][0] == expected + 3.0


def test_calls_in_turn_share_blocks_where_sizes_are_the_same():
    poses, _, A, T, m, given, n = arguments()
    wide = np.arange(9.0).reshape(3, 3)
    own = [(poses, np.zeros(1), B.copy(), k * T, m) for k, B in enumerate((A, wide, A, wide, A))]
    calls = in_turn([StoredCall(gather, each, (given, n)) for each in own])
    expected = sum(2000 + 4 + 10 * each[2].shape[1] + 400 for each in own)
    assert one_after_another(calls, given, n) == 2 * expected
    assert [each[1][0] for each in own] == [
        7.0 + each[2][n, 1] + each[3][1, n, 2] + m * given[n] for each in own
    ]
    if calls.own.places.size:  # not in plain Python
        assert len(calls.blocks) == 2 and calls.own.places.size <= 2 * 3  # x, B, T


def test_whoever_has_the_call_keeps_the_arrays():
    poses, x, A, T, m, given, n = arguments()
    A = A.copy()
    alive = weakref.ref(A)
    call = StoredCall(gather, (poses, x, A, T, m), (given, n)).call
    del A
    gc.collect()
    assert alive() is not None and call((given, n)) == 2424
    del call
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize(
    "environment, said",
    [({}, (["3", "6.0", "0", "0"], ["3", "6.0", "1", "1"])),
     ({"NUMBA_DISABLE_JIT": "1"}, (["3", "6.0"],) * 2)],
)  # fmt: skip
def test_stored_calls_are_cached_and_run_as_plain_python(package, environment, said):  # noqa: F811
    (package / "caller.py").write_text(CALLER)
    assert (run(package, **environment), run(package, **environment)) == said
