"""Run the numeric tests as other processors would: ``python tests/processors.py generic haswell``.

Round-off differs between processors by fused operations and by the width of vectors. Each target
limits all that compute here alike: numba's compiler, OpenBLAS and numpy's own loops.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

TESTS = Path(__file__).parent
NOT_NUMERIC = """
    bad_inputs bench bounded_descriptions bullet_refusals clients
    element_files jit layers load loops_file loops_file_mistakes loops_file_written
    native objects overlay pictures readme runner semantics sliders step_refusals stored_calls sweep
    window
"""
"""Files of which nothing depends on a last digit. All others are run, those to come included."""

TARGETS = {
    "generic": ("generic", "Prescott", ("",)),  # SSE2, no fused multiplication
    "haswell": ("haswell", "Haswell", ("AVX512", "X86_V4")),  # AVX2 and FMA
    "native": None,
}
"""numba's name, OpenBLAS's, and how the features begin that numpy goes without; what this machine
is takes no limits."""


def environment(target: str) -> dict[str, str]:
    """Variables under which a process computes as the target does."""
    found: list[str] = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
    limits = TARGETS[target]
    if limits is None:
        return dict(os.environ)
    without = [name for name in found if name.startswith(limits[2])]
    return os.environ | {
        "NUMBA_CPU_NAME": limits[0],
        "NUMBA_CPU_FEATURES": "",
        "OPENBLAS_CORETYPE": limits[1],
        "NPY_DISABLE_CPU_FEATURES": " ".join(without),
    }


def left_out() -> list[str]:
    """Files that are not numeric; one that is gone is an error, so that the list stays true."""
    files = [TESTS / f"test_{name}.py" for name in NOT_NUMERIC.split()]
    if gone := [str(file) for file in files if not file.exists()]:
        raise SystemExit(f"processors.py leaves out what there is not: {', '.join(gone)}")
    return [f"--ignore={file}" for file in files]


def main() -> int:
    """Run pytest once for each target, one after the other; the first failure's code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("targets", nargs="*", choices=[*TARGETS, []], help="all unless named")
    parser.add_argument("--all", action="store_true", help="every test, numeric or not")
    options, more = parser.parse_known_args()
    command = [sys.executable, "-m", "pytest", "--numprocesses=auto", "--dist=worksteal"]
    command += more if options.all else [*left_out(), *more]
    codes: dict[str, int] = {}
    for target in options.targets or TARGETS:
        print(f"\n{target}:", flush=True)
        codes[target] = subprocess.run(command, env=environment(target), check=False).returncode
    print("\n" + ", ".join(f"{t}: {'failed' if c else 'passed'}" for t, c in codes.items()))
    return max(codes.values(), key=abs)


if __name__ == "__main__":
    raise SystemExit(main())
