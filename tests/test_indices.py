"""Kernels index arrays from their start, and slices are those of Python without steps."""

import ast
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bulletbridge
from bulletbridge.compilation import mode
from bulletbridge.compilation.jit import kernel

linked = pytest.mark.skipif(not mode.LINKED, reason="plain numba takes any index")
DECORATORS = {"kernel", "helper", "outlined", "bundling", "caller"}


@kernel
def parts_of(x, start, end, found):
    n = 0
    for part in (x[start:end], x[start:], x[:end]):
        found[n] = len(part)
        n += 1
        for k in range(len(part)):
            found[n] = part[k]
            n += 1
    return n


@given(length=st.integers(0, 6), data=st.data())
def test_slices_are_those_of_python(length, data):
    start, end = data.draw(st.integers(0, length)), data.draw(st.integers(0, 9))
    x, found = np.arange(1.0, length + 1.0), np.zeros(32)
    n = parts_of(x, start, end, found)
    parts = [x[start:end], x[start:], x[:end]]
    assert found[:n].tolist() == [y for part in parts for y in (len(part), *part)]


@linked
def test_slices_with_a_step_are_refused():
    @kernel
    def every_other(x):
        return len(x[::2])

    with pytest.raises(NotImplementedError, match="no step"):
        every_other(np.zeros(4))


@linked
@pytest.mark.parametrize(("k", "start"), [(4, 0), (-1, 0), (0, -1)])
def test_what_counts_from_the_end_is_found_where_bounds_are_checked(monkeypatch, k, start):
    import numba

    monkeypatch.setattr(numba.config, "BOUNDSCHECK", 1)

    @kernel
    def checked(x, k, start):
        return x[k] + len(x[start:])

    with pytest.raises(IndexError):
        checked(np.zeros(4), k, start)
    assert checked(np.zeros(4), 3, 4) == 0.0


def test_no_kernel_counts_from_the_end():
    package, found, looked_at = Path(bulletbridge.__file__).parent, [], 0
    for path in package.rglob("*.py"):
        text = path.read_text()
        if not any(f"@{name}" in text for name in DECORATORS):
            continue
        for node in ast.walk(ast.parse(text)):
            if not isinstance(node, ast.FunctionDef):
                continue
            if not DECORATORS & {getattr(one, "id", "") for one in node.decorator_list}:
                continue
            looked_at += 1
            found += [f"{path.name}:{one.lineno}" for one in ast.walk(node) if from_the_end(one)]
    assert looked_at > 500
    assert not found


def from_the_end(node):
    """Whether something is an index, or a bound of a slice, that is a negative number."""
    if not isinstance(node, ast.Subscript):
        return False
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    bounds = [
        x
        for one in parts
        for x in ((one.lower, one.upper) if isinstance(one, ast.Slice) else [one])
    ]
    return any(isinstance(x, ast.UnaryOp) and isinstance(x.op, ast.USub) for x in bounds)
