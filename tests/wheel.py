"""An installed wheel beside this checkout: ``python tests/wheel.py elsewhere/bin/python``.

The same steps by machine code of every level that this processor has, and compiled here: states
must be equal to round-off. Also how long processes take from their start. Not for the suite: the
wheel has to be built first.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np

VARIABLE = "BULLETBRIDGE_KERNELS"
LEVELS = """
import json
from bulletbridge.compilation import objects
names = list(objects.LEVELS)
best = names.index(objects.level_of(objects.processor_flags()))
brought = json.loads((objects.FOLDER / "manifest.json").read_text())["levels"]
print(*(name for name in names[: best + 1] if name in brought))
"""
ROUND_OFF = 1e-13
"""Largest difference after all steps, relative to the largest coordinate: other products are fused
and sums vectorised otherwise, at some 1e-16 a step."""
REPEATS = 5
STATES = """
import sys, time
import numpy as np
import bulletbridge as bb
found = {}
def advance(name, steps, **options):
    system = bb.load(name, "new", **options).system
    system.step()  # kernels are loaded
    begun = time.perf_counter()
    for _ in range(steps):
        system.step()
    each = (time.perf_counter() - begun) / steps
    found[f"{name} {options}"] = np.concatenate([system.q, system.v])
    rolled = ""
    if "limits" not in options:
        start = system.q[None], system.v[None]
        found[f"{name} {options} rollout"] = bb.rollout(system, *start, steps=20).q
        begun = time.perf_counter()
        bb.rollout(system, *start, steps=2000, every=2000, threads=1)
        rolled = f", in rollouts {(time.perf_counter() - begun) / 2000 * 1e6:7.2f} us"
    print(f"  {name:10} {str(options):40} {each * 1e6:8.2f} us a step{rolled}", flush=True)
for integrator in ("semi_implicit_euler", "verlet", "rk4", "dop853", "radau", "charts"):
    advance("four_bar", 50, integrator=integrator)
advance("four_bar", 50, solver="sparse")
for name in ("stewart", "two_arms", "minitaur"):
    advance(name, 50)
for name in ("four_bar", "gripper"):
    advance(name, 50, contacts=True, limits=True)
np.savez(sys.argv[1], **found)
print("  numba", "numba" in sys.modules)
"""
TIMES = {
    "import": "import bulletbridge",
    "import with PyBullet": "import pybullet, bulletbridge",
    "first step": "import bulletbridge as bb; bb.load('four_bar').system.step()",
    "first contact step": (
        "import bulletbridge as bb; bb.load('four_bar', contacts=True).system.step()"
    ),
}


def environment(kernels: str) -> dict[str, str]:
    """Variables of a process with these kernels, which finds what is installed and nothing else."""
    return {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | {VARIABLE: kernels}


def levels(python: str) -> list[str]:
    """Those of the wheel that an interpreter has which this processor can run."""
    with tempfile.TemporaryDirectory() as folder:
        return subprocess.check_output([python, "-c", LEVELS], text=True, cwd=folder).split()


def states(python: str, kernels: str) -> dict[str, np.ndarray]:
    """What an interpreter finds with these kernels."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "states.npz")
        command = [python, "-W", "ignore", "-c", STATES, str(place)]
        subprocess.run(command, env=environment(kernels), check=True, cwd=folder)
        with np.load(place) as content:
            return dict(content)


def seconds(python: str, code: str, kernels: str) -> float:
    """The shortest time that a process takes from its start to its end."""
    found: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(REPEATS):
            begun = perf_counter()
            subprocess.run(
                [python, "-c", code],
                env=environment(kernels),
                check=True,
                cwd=folder,
                capture_output=True,
            )
            found.append(perf_counter() - begun)
    return min(found)


def main() -> int:
    """Compare; 1 if a level differs by more than round-off."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("python", help="of the environment in which the wheel is installed")
    other = parser.parse_args().python
    for name, code in TIMES.items():
        times = seconds(other, code, "objects"), seconds(sys.executable, code, "compile")
        print(f"{name}: {times[0]:.2f} s from the wheel, {times[1]:.2f} s compiled and kept")
    print("compiled here:", flush=True)
    expected, worst, count = states(sys.executable, "compile"), 0.0, 0
    for level in levels(other):
        print(f"{level}:", flush=True)
        found = states(other, level)
        differs = max(
            float(np.abs(found[name] - x).max() / np.abs(x).max()) for name, x in expected.items()
        )
        print(f"  differs by {differs:.1e}", flush=True)
        worst, count = max(worst, differs), count + 1
    return int(not (worst <= ROUND_OFF and count))


if __name__ == "__main__":
    raise SystemExit(main())
