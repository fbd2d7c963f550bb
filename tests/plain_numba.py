"""Steps by plain numba beside the usual ones: ``python tests/plain_numba.py four_bar minitaur``.

Without the private parts of numba kernels take minutes to compile, so that this is no test. Models
are loaded with their joint limits, so that both kernels of the step are compiled.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

VARIABLE = "BULLETBRIDGE_PLAIN_NUMBA"
STEPS = 50
ROUND_OFF = 1e-13
"""Largest difference after all steps, relative to the largest coordinate: where other functions are
inlined, sums are taken in another order and other products fused, at some 1e-16 a step."""
SCRIPT = """
import sys, time
import numpy as np
begun = time.perf_counter()
import bulletbridge as bb
from bulletbridge.compilation import mode
found = []
for limits in (False, True):
    system = bb.load(sys.argv[1], limits=limits).system
    system.step()
    first, begun = time.perf_counter() - begun, time.perf_counter()
    for _ in range(int(sys.argv[3]) - 1):
        system.step()
    each = (time.perf_counter() - begun) / (int(sys.argv[3]) - 1)
    what = "with limits" if limits else "without"
    print(f"  {mode.MODE} {what}: first step after {first:.2f} s, then {1e6 * each:.0f} us each")
    found += [system.q, system.v]
    begun = time.perf_counter()
np.save(sys.argv[2], np.concatenate(found))
"""


def run(model: str, plain: bool) -> np.ndarray:
    """State of a model after all steps."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "state.npy")
        command = [sys.executable, "-W", "ignore", "-c", SCRIPT, model, str(place), str(STEPS)]
        subprocess.run(command, env=os.environ | {VARIABLE: str(int(plain))}, check=True)
        return np.load(place)


def main() -> int:
    """Compare the models; 1 if one differs by more than round-off."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", default=["four_bar", "minitaur"])
    worst = 0.0
    for model in parser.parse_args().models:
        print(f"{model}:", flush=True)
        usual, plain = run(model, False), run(model, True)
        differs = float(np.abs(plain - usual).max() / np.abs(usual).max())
        print(f"  differ by {differs:.1e}", flush=True)
        worst = max(worst, differs)
    return int(not worst <= ROUND_OFF)


if __name__ == "__main__":
    raise SystemExit(main())
