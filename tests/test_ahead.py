"""Kernels compiled ahead: the largest here, with help, the others beside; nothing on one core."""

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
        return SimpleNamespace(wait=lambda: 0)

    def recipe(name):
        def kernel():
            return None

        kernel.__name__ = name
        return kernel, lambda: here.append(name)

    monkeypatch.setattr(ahead, "RECIPES", {name: recipe(name) for name in SIZES})
    monkeypatch.setattr(ahead, "subprocess", SimpleNamespace(Popen=start, DEVNULL=None))
    monkeypatch.setattr(ahead, "_begun", set())
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


def test_a_process_beside_does_what_it_is_told_to(begun, monkeypatch):
    here = begun[0]

    def assist(kernel, _):
        here.append(f"helpers of {kernel.__name__}")
        return [SimpleNamespace(compiled=lambda: here.append("deferred"))]

    monkeypatch.setattr(ahead, "assist", assist)
    ahead.work(["assist:large", "small"])
    assert here == ["helpers of large", "small", "deferred"]


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
