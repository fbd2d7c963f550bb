"""Kernels whose first arguments are stored: the same results, compiled once, arrays kept."""

import gc
import weakref

import numpy as np
import pytest
from test_jit import package, run  # noqa: F401  a fixture

from bulletbridge.compilation.jit import kernel
from bulletbridge.compilation.stored_calls import StoredCall, call_stored
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
    everything = bound.with_rest((given, n))
    fixed[1][0] = 0.0
    assert everything(()) == 2424 and fixed[1][0] == expected + 3.0


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
