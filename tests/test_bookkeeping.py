"""What numba does once instead of each time, while kernels are compiled, comes to the same."""

import numba
import numpy as np
import pytest
from numba.core import compiler, ir, postproc
from numba.core.registry import cpu_target
from numba.extending import overload

from bulletbridge.compilation import bookkeeping, mode
from bulletbridge.compilation.bookkeeping import replacing, variables_in
from bulletbridge.compilation.linking import CHANGES
from bulletbridge.numerics.projection import add_row

pytestmark = pytest.mark.skipif(not mode.LINKED, reason="plain numba is left as it is")


def statements_of_all_kinds(table, n):
    """Calls, tuples, slices, tables of constants, loops and both ends of a branch."""
    pairs = [(k, table[k, 1:n]) for k in range(n) if table[k, 0] != 0.0]
    named = {"first": pairs, "second": [n, (table, -n)]}
    table[0, 0] = max(n, named["second"][0], key=abs)
    if n > 3:
        del pairs
        raise ValueError(n)
    return named


def lists(value):
    """Names in each statement and right-hand side, with how often, in order."""
    found = value.list_vars()
    return [one.name for one in found]


def test_statements_name_the_same_variables():
    code = compiler.run_frontend(statements_of_all_kinds)
    body = [one for block in code.blocks.values() for one in block.body]
    sides = [one.value for one in body if isinstance(getattr(one, "value", None), ir.Inst)]
    parts = [*body, *sides]
    given = [lists(one) for one in parts]
    assert sum(map(len, given)) > 100
    with replacing(CHANGES):
        assert ir.Inst._rec_list_vars is variables_in
        assert [lists(one) for one in parts] == given
    x, y = (ir.Var(None, name, ir.unknown_loc) for name in "xy")
    for nested in ([x, (y, {"k": [x, 3, None]})], {"k": x, "n": "x"}, x, 4, parts[0]):
        names = [one.name for one in parts[0]._rec_list_vars(nested)]
        assert [one.name for one in variables_in(parts[0], nested)] == names


def test_numba_is_as_it_was_after_a_compilation():
    def given():
        return [getattr(owner, name) for owner, name, _ in CHANGES]

    before = given()
    with replacing(CHANGES), replacing(CHANGES):
        assert all(now is not then for now, then in zip(given(), before, strict=True))
    assert given() == before
    with pytest.raises(ZeroDivisionError), replacing(CHANGES):
        raise ZeroDivisionError
    assert given() == before


class Counted(type):
    """A class that counts how often its attributes are set."""

    times = 0

    def __setattr__(cls, name, value):
        Counted.times += 1
        super().__setattr__(name, value)


def test_what_is_in_place_is_not_put_there_again():
    """Each time Python would forget what it knows of the class and of all below it."""
    owner = Counted("Owner", (), {"act": lambda self: 1})
    changes = [(owner, "act", lambda self: 2)]
    with replacing(changes):
        once = Counted.times
        with replacing(changes), replacing(changes):
            assert owner().act() == 2
        assert Counted.times == once and owner().act() == 2
    assert owner().act() == 1


def test_where_variables_end_is_not_looked_for_in_functions_of_the_package(monkeypatch):
    """Loops have one way back all the same."""
    looked = []

    def lifetimes(blocks):
        looked.append(blocks)
        return given(blocks)

    given = postproc.VariableLifetime
    monkeypatch.setattr(postproc, "VariableLifetime", lifetimes)
    code = compiler.run_frontend(statements_of_all_kinds)
    assert looked
    own = compiler.run_frontend(add_row.py_func)
    backwards = own.blocks
    looked.clear()
    with replacing(CHANGES):
        postproc.PostProcessor(own).run()
        assert not looked and own.blocks == backwards
        postproc.PostProcessor(code).run()
        assert len(looked) == 1


def test_types_have_the_hashes_that_numba_gives_them():
    record = numba.from_dtype(np.dtype([("a", np.float64), ("b", np.int64, (3,))]))
    line = numba.types.Array(record, 1, "C")
    kinds = [record, line, numba.types.Tuple((line, numba.types.UniTuple(line, 3))), numba.float64]
    given = [hash(one) for one in kinds]
    with replacing(CHANGES):
        assert [hash(one) for one in kinds + kinds] == given + given
        assert {numba.types.Tuple((line, line)): 1}[numba.types.Tuple((line, line))] == 1


def test_what_is_registered_between_two_functions_is_found():
    def new(x):
        raise NotImplementedError

    def use(x):
        return new(x) + 1.0

    with replacing(CHANGES):
        assert numba.njit(lambda x: 2.0 * x)(3.0) == 6.0
        entries = bookkeeping.entries(cpu_target.typing_context._registries)
        with pytest.raises(numba.TypingError):
            numba.njit(use)(3.0)
        overload(new)(lambda x: lambda x: 5.0 * x)
        assert numba.njit(use)(3.0) == 16.0
        assert bookkeeping.entries(cpu_target.typing_context._registries) > entries


def test_registries_that_are_as_they_were_are_not_gone_through(monkeypatch):
    gone_through = []
    with replacing(CHANGES):
        cpu_target.target_context.refresh()
        monkeypatch.setattr(
            cpu_target.target_context, "load_additional_registries", lambda: gone_through.append(1)
        )
        cpu_target.target_context.refresh()
    assert not gone_through
    cpu_target.target_context.refresh()
    assert gone_through == [1]
