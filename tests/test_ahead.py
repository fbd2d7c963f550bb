"""Kernels compiled ahead: the largest here, with help, the others beside; nothing on one core."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import bulletbridge as bb
from bulletbridge.compilation import by_numba, mode
from bulletbridge.inequalities.steps_kernel import step_with_contacts
from bulletbridge.system import ahead

SIZES = "large", "medium", "small"


@pytest.fixture
def begun(monkeypatch):
    """What is compiled here, and the tasks of each process that is started."""
    here, beside = [], []

    def start(command, **_):
        beside.append(command[command.index(str(ahead.PACKAGE.parent)) + 1 :])
        return SimpleNamespace(wait=lambda: 0, poll=lambda: 0)

    def recipe(name):
        def kernel():
            return None

        kernel.__name__ = name
        return kernel, lambda: here.append(name)

    monkeypatch.setattr(ahead, "RECIPES", {name: recipe(name) for name in SIZES})
    monkeypatch.setattr(ahead, "subprocess", SimpleNamespace(Popen=start, DEVNULL=None, PIPE=None))
    monkeypatch.setattr(ahead, "_begun", set())
    monkeypatch.setattr(ahead, "_beside", {})
    monkeypatch.setattr(ahead, "at_hand", lambda kernel: kernel.__name__ in here)
    monkeypatch.setattr(ahead, "plan", list)
    monkeypatch.setattr(ahead, "is_plain_python", lambda: False)
    monkeypatch.setattr(ahead, "kernel_folder", Path)
    return here, beside


@pytest.mark.parametrize(
    "cores, beside",
    [
        (1, []),
        (2, [["assist:large", "medium", "small"]]),
        (3, [["assist:large", "small"], ["medium"]]),
        (8, [["assist:large"], ["medium"], ["small"]]),
    ],
)
def test_all_cores_are_taken_at_once(begun, monkeypatch, cores, beside):
    here, started = begun
    monkeypatch.setattr(ahead, "cores", lambda: cores)
    kernels = [ahead.RECIPES[name][0] for name in ("small", "large", "medium")]
    ahead.compile_ahead(*kernels)
    assert here == ["large"][: cores - 1] and started == beside
    ahead.compile_ahead(*kernels)
    assert len(started) == len(beside), "processes are started for what is begun"


def test_a_kernel_that_is_at_hand_is_left_alone(begun, monkeypatch):
    here, started = begun
    monkeypatch.setattr(ahead, "cores", lambda: 2)
    here.append("large")
    ahead.compile_ahead(*(kernel for kernel, _ in ahead.RECIPES.values()))
    assert here == ["large", "medium"] and started == [["assist:medium", "small"]]


def test_who_has_nothing_to_do_is_told_what_comes_next(begun, monkeypatch):
    started = begun[1]
    monkeypatch.setattr(ahead, "cores", lambda: 2)
    large, medium, small = (kernel for kernel, _ in ahead.RECIPES.values())
    ahead.compile_ahead(small, next_one=large)
    ahead.compile_ahead(small, next_one=medium)  # nothing is compiled: no process for medium
    ahead.compile_ahead(large, next_one=large)  # which is no more for later
    ahead.compile_ahead(medium, next_one=large)  # nor is what is at hand
    told = [["assist:small", "later:large"], ["assist:large"], ["assist:medium"]]
    assert started == told


@pytest.mark.parametrize("ended", [False, True])
def test_a_process_that_is_still_at_it_takes_what_is_asked_for_next(begun, monkeypatch, ended):
    """By its standard input, unless it has just stopped to read."""
    started, written = begun[1], []
    monkeypatch.setattr(ahead, "cores", lambda: 2)

    def write(text):
        if ended:
            raise BrokenPipeError
        written.append(text)

    busy = SimpleNamespace(poll=lambda: None, stdin=SimpleNamespace(write=write))
    monkeypatch.setattr(ahead, "_beside", {0: busy})
    ahead.compile_ahead(*(kernel for kernel, _ in ahead.RECIPES.values()))
    tasks = ["assist:large", "medium", "small"]
    assert started == [tasks] * ended
    assert [text.decode().split() for text in written] == [tasks] * (not ended)


def test_tasks_come_by_a_pipe_until_they_are_done():
    read, write = os.pipe()
    try:
        tasks = ahead.arriving(["first"], read)
        assert next(tasks) == "first"
        os.write(write, b"second third ")
        os.write(write, b"fourth ")
        assert list(tasks) == ["second", "third", "fourth"]
        with pytest.raises(BrokenPipeError):  # so that whoever asks for more starts a process
            os.write(write, b"fifth ")
    finally:
        os.close(read)
        os.close(write)


def test_a_process_beside_does_what_it_is_told_to(begun, monkeypatch):
    here = begun[0]

    def assist(kernel, _):
        here.append(f"helpers of {kernel.__name__}")
        return [SimpleNamespace(compiled=lambda: here.append("deferred"))]

    monkeypatch.setattr(ahead, "assist", assist)
    ahead.work(["assist:large", "small", "later:medium"])
    assert here == ["helpers of large", "small", "helpers of medium", "deferred"]


@pytest.mark.skipif(not mode.LINKED, reason="Python calls one kernel after the other")
@pytest.mark.parametrize("beside", [False, True])
def test_steps_with_contacts_are_compiled_ahead_as_systems_call_them(beside, monkeypatch):
    """Beside a process that compiles what they call, without that."""
    with bb.load("minitaur", "new", contacts=True) as model:
        model.system.step()
    known, left = set(step_with_contacts.signatures), set[Any]()
    monkeypatch.setattr(by_numba, "MACHINES", made := dict[Any, Any]())
    monkeypatch.setattr(by_numba, "UNMADE", left)
    if beside:
        ahead.work([step_with_contacts.__name__])
    else:
        ahead.compile_steps_with_contacts()
    assert known and set(step_with_contacts.signatures) == known
    for (function, _), machine in made.items():
        assert isinstance(machine, by_numba.Unmade) == (function in left)
    assert len(left) == 2 * beside
