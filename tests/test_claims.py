"""Processes that compile at once: each helper is made by one of them, and none waits in vain."""

import os
import signal
import subprocess
import sys

import pytest
from support.claims import claimed_elsewhere
from test_jit import compiled_once, environment, kept, package, run  # noqa: F401  fixtures

from bulletbridge.compilation import claims, mode
from bulletbridge.compilation.claims import claim, give_up

pytest.importorskip("fcntl")
SHARED = """
from small.compilation import linking
from small.compilation.jit import helper, kernel

@helper
def first(x: float) -> float:
    return x + 1.0

@helper
def second(x: float) -> float:
    return 2.0 * x

@helper
def both(x: float) -> float:
    return first(x) + second(x)

@kernel
def of_both(x: float) -> float:
    return both(x)

given = linking.LinkedLowering.run_pass

def run_pass(self, state):
    found = given(self, state)
    print(state.func_id.func_name, flush=True)
    return found

linking.LinkedLowering.run_pass = run_pass
print(of_both(3.0), *(sum(f.stats.cache_hits.values()) for f in (first, second, both)))
"""

REFUSED = """
from numba.core.errors import TypingError
from small.compilation import helper_cache

left, give_up = [], helper_cache.give_up

def giving_up(path):
    left.append(path.name.split("-")[0])
    give_up(path)

helper_cache.give_up = giving_up
try:
    of_both(3.0)
except TypingError:
    print(*left)
"""


@pytest.fixture
def path(tmp_path):
    """Where something is kept."""
    (tmp_path / "numerics-0").mkdir()
    return tmp_path / "numerics-0" / "some.helper"


def test_what_another_process_makes_is_left_to_it(path):
    others = path.with_name("other.helper"), path.parent.with_name("numerics-1") / path.name
    assert claim(path, 0.0) and claim(path, 0.0), "a claim of one's own is none of another's"
    give_up(path)
    with claimed_elsewhere(path):
        assert not claim(path, 0.0)
        assert all(claim(other, 0.0) for other in others)
        give_up(path)
        assert not claim(path, 0.0), "claims of others are given up"
    assert claim(path)
    for each in (path, *others):
        give_up(each)
    with claimed_elsewhere(path, *others):
        pass


def test_a_claim_ends_with_its_process_however_that_ends(path):
    with claimed_elsewhere(path) as process:
        os.kill(process.pid, signal.SIGKILL)
        assert claim(path), "whoever is waited for is gone"
    give_up(path)


def test_nobody_waits_for_a_process_that_is_at_what_a_helper_calls(path):
    with claimed_elsewhere(path, inside=True):
        assert not claim(path, to_share=True)  # it would wait for half an hour
    assert claim(path, to_share=True)
    give_up(path)
    with claimed_elsewhere(path):
        assert not claim(path, 0.0, to_share=True), "another process tells nothing of this one"
    with claimed_elsewhere(path) as process:
        os.kill(process.pid, signal.SIGKILL)
        assert claim(path, to_share=True), "a process that is at the helper itself is waited for"
    give_up(path)


def test_without_claims_everybody_compiles(path, monkeypatch):
    path.parent.parent.joinpath("claims").mkdir()  # where the file would be
    with claimed_elsewhere(path):
        assert claim(path, 0.0)
    monkeypatch.setattr(claims, "fcntl", None)
    assert claim(path, 0.0)
    give_up(path)


@pytest.mark.skipif(not mode.LINKED, reason="plain numba keeps no helpers")
@pytest.mark.parametrize("done", [False, True], ids=["given up", "made"])
def test_a_helper_that_another_process_is_at_is_shared_from_its_other_end(package, done):  # noqa: F811
    """Its last call is looked at first; then it is waited for, and taken if it is there."""
    (package / "shared.py").write_text(SHARED)
    assert run(package, module="shared") == ["first", "second", "both", "10.0", "0", "0", "0"]
    (both,) = (file for file in kept(package, "helper") if ".both-" in file.name)
    whole = both.read_bytes()
    for file in (*kept(package, "helper"), *kept(package)):
        file.unlink()
    command = [sys.executable, "-m", "small.shared"]
    with (
        claimed_elsewhere(both, inside=True) as other,
        subprocess.Popen(
            command, env=environment(package), stdout=subprocess.PIPE, text=True
        ) as process,
    ):
        said = [process.stdout.readline().strip() for _ in range(2)]
        if done:
            both.write_bytes(whole)
        other.stdin.close()
        said += process.stdout.read().split()
    made, hit = ([], "1") if done else (["both"], "0")
    assert said == ["second", "first", *made, "10.0", "0", "0", hit]


@pytest.mark.skipif(not mode.LINKED, reason="plain numba keeps no helpers")
def test_helpers_that_do_not_compile_are_left_to_others(package):  # noqa: F811
    text = SHARED.replace("2.0 * x", "x.nothing")
    (package / "wrong.py").write_text(text[: text.rindex("print")] + REFUSED)
    assert run(package, module="wrong") == ["first", "wrong.first", "wrong.second", "wrong.both"]
