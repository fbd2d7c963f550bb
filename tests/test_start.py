"""What a start does without: packages, helpers and looks for garbage that nobody needs."""

import gc
import os
import subprocess
import sys

from bulletbridge.collector import Uncollected
from bulletbridge.compilation import mode

UNUSED = "scipy.spatial", "scipy.linalg", "scipy.optimize", "rich", "matplotlib"
START = """
import sys
import bulletbridge as bb
from bulletbridge.numerics import spatial
bb.load, bb.BulletClient
bb.read_model("four_bar"), bb.read_model("minitaur")
print(*(name for name in {unused} if name in sys.modules))
print("by_numba" in vars(spatial.add))
"""


def test_a_start_imports_and_makes_what_it_uses():
    """Half of it was a part of scipy, and numba's own objects for all helpers of kernels."""
    told = subprocess.run(
        [sys.executable, "-c", START.format(unused=UNUSED)],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ,
    ).stdout.splitlines()
    assert told[-2] == ""
    assert told[-1] == "False" or not mode.LINKED


def test_the_collector_of_garbage_goes_on_as_before():
    assert gc.isenabled()
    with Uncollected():
        assert not gc.isenabled()
        with Uncollected():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()
    gc.unfreeze()
    with Uncollected():
        pass
    assert gc.get_freeze_count() == 0
    gc.freeze()  # as who forks does, and these tests
    count = gc.get_freeze_count()
    with Uncollected():
        pass
    assert gc.get_freeze_count() == count > 0
