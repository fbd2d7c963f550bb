"""Run the numeric tests as other processors would: ``python tests/processors.py generic haswell``.

Round-off differs between processors by fused operations and by the width of vectors. Each target
limits all that compute here alike: numba's compiler, OpenBLAS and numpy's own loops.

Numeric is a file of tests that imports the package but nothing of ``ABOVE``: whoever asks for a
file format, a picture or a study is told by Python what rooms below have computed, and these are
asked here themselves.
"""

import argparse
import ast
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

TESTS = Path(__file__).parent
ABOVE = set("bench cli comparison doctor gym models papers studies viewer".split())
"""Rooms, and files beside them, whose numbers come from the rooms below."""
NOT_NUMERIC = """
    ahead bare_errors bookkeeping bullet_refusals claims clients indices jit names_looked_up objects
    output plain_numba recording_files saved semantics step_refusals stored_calls structures
    system_surface usd
"""
"""Other files of which nothing depends on a last digit: how kernels are made, what is told, what is
the same to the bit whatever its bits are."""

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


def imported(file: Path) -> set[str]:
    """What a file imports of the package: rooms, files beside them, public names."""
    names: list[str] = []
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            names += [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names += [f"{alias.name}." for alias in node.names]
    parts = [name.split(".") for name in names]
    return {inside for package, inside, *_ in parts if package == "bulletbridge"}


def numeric_files() -> list[str]:
    """Files that are numeric; one of the list that is gone is an error, so that it stays true."""
    left_out = {TESTS / f"test_{name}.py" for name in NOT_NUMERIC.split()}
    if gone := [str(file) for file in left_out if not file.exists()]:
        raise SystemExit(f"processors.py leaves out what there is not: {', '.join(gone)}")
    found = {file: imported(file) for file in TESTS.glob("test_*.py") if file not in left_out}
    return sorted(str(file) for file, rooms in found.items() if rooms and not rooms & ABOVE)


def main() -> int:
    """Run pytest once for each target, one after the other; the first failure's code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("targets", nargs="*", choices=[*TARGETS, []], help="all unless named")
    parser.add_argument("--all", action="store_true", help="every test, numeric or not")
    options, more = parser.parse_known_args()
    command = [sys.executable, "-m", "pytest", "--numprocesses=auto", "--dist=worksteal"]
    command += more if options.all else [*numeric_files(), *more]
    codes: dict[str, int] = {}
    for target in options.targets or TARGETS:
        print(f"\n{target}:", flush=True)
        codes[target] = subprocess.run(command, env=environment(target), check=False).returncode
    print("\n" + ", ".join(f"{t}: {'failed' if c else 'passed'}" for t, c in codes.items()))
    return max(codes.values(), key=abs)


if __name__ == "__main__":
    raise SystemExit(main())
