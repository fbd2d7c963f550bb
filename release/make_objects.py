"""Make the machine code that a wheel brings: ``python release/make_objects.py build/objects``.

Takes a C compiler, by which it links, and readelf. All levels take about two minutes on two cores.
"""

import argparse
import os
import platform
import sys
from pathlib import Path
from time import perf_counter

os.environ["BULLETBRIDGE_KERNELS"] = "compile"
sys.path[:0] = [str(Path(__file__).parents[1])]

import exercise  # noqa: E402  numba is to compile
from emit import emit  # noqa: E402

from bulletbridge.compilation.objects import LEVELS  # noqa: E402


def main() -> None:
    """Compile, and write objects with their manifest into a folder."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--levels", nargs="+", default=list(LEVELS), choices=list(LEVELS))
    given = parser.parse_args()
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        print("Machine code is made on Linux for x86-64 alone: this wheel will need numba.")
        return
    begun = perf_counter()

    def say(text: str) -> None:
        print(f"{perf_counter() - begun:6.1f} s  {text}", flush=True)

    exercise.main()
    say("all kernels have been called")
    emit(given.folder, given.levels, say=say)
    say("done")


if __name__ == "__main__":
    main()
