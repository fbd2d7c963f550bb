"""The kernel cache: an edited callee is seen, an unchanged one is not compiled again."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import pytest

import bulletbridge.simulation.step  # noqa: F401  kernels are decorated on import
from bulletbridge.numerics.jit import helper

NUMERICS = Path(__file__).parents[1] / "bulletbridge" / "numerics"
CALLEE = """
from small.numerics.jit import helper

@helper
def f(x: float) -> float:
    return x + {step}
"""
CALLER = """
from small.callee import f
from small.numerics.jit import Callback, call_back, is_cached, kernel

@kernel
def g(x: float) -> float:
    return f(x)

if __name__ == "__main__":
    cached = is_cached(g)
    print(g(1.0), cached, sum(g.stats.cache_hits.values()) if hasattr(g, "stats") else "plain")
"""


@pytest.fixture
def package(tmp_path):
    """A package of its own with the decorators, one callee and one cached caller."""
    root = tmp_path / "small"
    shutil.copytree(NUMERICS, root / "numerics", ignore=shutil.ignore_patterns("__pycache__"))
    for path in (root / "numerics").glob("*.py"):
        path.write_text(path.read_text().replace("bulletbridge.", "small."))
    (root / "__init__.py").write_text("")
    (root / "callee.py").write_text(CALLEE.format(step=1))
    (root / "caller.py").write_text(CALLER)
    return root


def run(package, **environment):
    """What the caller prints in a fresh process."""
    names = ("NUMBA_CACHE_DIR", "NUMBA_DISABLE_JIT", "LOCALAPPDATA", "PYTHONDONTWRITEBYTECODE")
    clean = {k: v for k, v in os.environ.items() if k not in names}
    clean |= {"PYTHONPATH": str(package.parent), "XDG_CACHE_HOME": str(package.parent / "cache")}
    done = subprocess.run(
        [sys.executable, "-m", "small.caller"],
        env=clean | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


def test_an_edited_callee_is_seen_and_an_unchanged_one_is_kept(package):
    assert run(package) == ["2.0", "False", "0"]
    assert run(package) == ["2.0", "True", "1"]
    (package / "callee.py").write_text(CALLEE.format(step=2))
    assert run(package) == ["3.0", "False", "0"]
    (package / "numerics" / "split.py").write_text("# not reached from the caller\n")
    assert run(package) == ["3.0", "True", "1"]


def test_nothing_needs_to_be_writable(package):
    blocked = package.parent / "blocked"
    blocked.write_text("a file where a folder would have to be")
    answer = run(package, NUMBA_CACHE_DIR=str(blocked), XDG_CACHE_HOME=str(blocked))
    assert answer == ["2.0", "False", "0"]


def test_kernels_run_as_plain_python(package):
    assert run(package, NUMBA_DISABLE_JIT="1") == ["2.0", "True", "plain"]


def test_the_users_settings_are_left_alone():
    assert os.environ.get("NUMBA_CACHE_DIR", "") == numba.config.CACHE_DIR


def test_what_is_compiled_for_kernels_only_says_so():
    @helper
    def double(x: float) -> float:
        return 2.0 * x

    with pytest.raises(TypeError, match="for kernels only"):
        double(1.0)
    assert numba.njit(lambda x: double(x) + 1.0)(1.0) == 3.0
