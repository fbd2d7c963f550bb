"""numba's bookkeeping while kernels are compiled, done once where it does the same each time.

None of it decides what comes of a kernel: which variables a statement names, the hashes of types,
which registries have something new, what an implementation takes, where variables end, and the
colours of messages that nobody reads.
"""

import contextlib
import functools
from collections.abc import Callable, Generator
from typing import Any

from numba.core import base, errors, ir, postproc, transforms, types
from numba.core.typing import context

from bulletbridge.compilation.cache import PACKAGE

kinds: Any = types
loops: Any = transforms
nodes: Any = ir
statements: Any = nodes.Inst
implementations: Any = base
contexts: tuple[Any, ...] = base.BaseContext, context.BaseContext
class_of: Any = type
colours: Any = class_of(errors.termcolor())
NOTHING, VARIABLE, STATEMENT, LIST, TABLE = range(5)
_kinds: dict[Any, int] = {}
"""What objects of a class are to a search for variables."""
_seen: dict[int, tuple[Any, int]] = {}
"""Registries of a context, by their number, and how many entries they had."""


def kind_of(value: Any) -> int:
    """What an object is to a search for variables."""
    cls = class_of(value)
    if issubclass(cls, nodes.Var):
        found = VARIABLE
    elif issubclass(cls, statements):
        found = STATEMENT
    elif issubclass(cls, (list, tuple)):
        found = LIST
    else:
        found = TABLE if issubclass(cls, dict) else NOTHING
    return _kinds.setdefault(cls, found)


def variables_in(self: Any, value: Any) -> list[Any]:
    """Variables that part of a statement names; classes are looked into once, not each object."""
    kind = _kinds.get(class_of(value))
    if kind is None:
        kind = kind_of(value)
    if kind == VARIABLE:
        return [value]
    if kind == STATEMENT:
        return value.list_vars()
    found: list[Any] = []
    if kind == NOTHING:
        return found
    for one in value.values() if kind == TABLE else value:
        of = _kinds.get(class_of(one))
        if of == VARIABLE:
            found.append(one)
        elif of != NOTHING:
            found += variables_in(self, one)
    return found


def entries(registries: Any) -> int:
    """How many entries registries have that a context has taken from."""
    return sum(
        len(getattr(registry, name))
        for registry, loader in registries.items()
        for name in loader.registry_items
    )


def refreshing(given: Callable[[Any], None]) -> Callable[[Any], None]:
    """A context's ``refresh`` that does nothing where registries are as they were."""

    def refresh(self: Any) -> None:
        registries = self._registries
        same, count = _seen.get(id(registries), (None, 0))
        if same is not registries or entries(registries) != count:
            given(self)
            _seen[id(registries)] = registries, entries(registries)
        elif hasattr(self, "typing_context"):
            self.typing_context.refresh()

    return refresh


_hashes: dict[int, tuple[Any, int]] = {}
"""Types, by their number, and their hashes."""
_hash: Any = kinds.Type.__hash__


def hash_of(self: Any) -> int:
    """The hash of a type, worked out once: that of a tuple of records goes through all fields."""
    same, found = _hashes.get(id(self), (None, 0))
    if same is not self:
        found = _hash(self)
        _hashes[id(self)] = self, found
    return found


_find_ends: Any = postproc.PostProcessor.run


def _one_way_back(self: Any, emit_dels: bool = False, extend_lifetimes: bool = False) -> None:
    """See that loops have one way back, and find where variables end for those who ask for it.

    In the package's functions nobody does: they count no references.
    """
    code = self.func_ir
    if emit_dels or code.func_id.modname.partition(".")[0] != PACKAGE.name:
        _find_ends(self, emit_dels, extend_lifetimes)
    else:
        code.blocks = loops.canonicalize_cfg(code.blocks)


def _plainly(_self: Any, text: str, *_: Any, **__: Any) -> str:
    """A message without colours."""
    return text


CHANGES: list[tuple[Any, str, Any]] = [
    (statements, "_rec_list_vars", variables_in),
    (kinds.Type, "__hash__", hash_of),
    (postproc.PostProcessor, "run", _one_way_back),
    (base, "_has_loc", functools.cache(implementations._has_loc)),
    *((one, "refresh", refreshing(one.refresh)) for one in contexts),
]
"""What stands in place of what: owner, name, and the function."""
if hasattr(colours, "_markup"):  # colorama is installed
    CHANGES.append((colours, "_markup", _plainly))


@contextlib.contextmanager
def replacing(changes: list[tuple[Any, str, Any]]) -> Generator[None]:
    """Context of a compilation; those that lie in it find everything in place.

    That is left as it is: whoever sets an attribute of a class has Python forget what it knows of
    the class and of all below it.

    Args:
        changes: What stands in place of what: owner, name, and the function.
    """
    found = [(owner, name, getattr(owner, name), function) for owner, name, function in changes]
    new = [one for one in found if one[2] is not one[3]]
    for owner, name, _, function in new:
        setattr(owner, name, function)
    try:
        yield
    finally:
        for owner, name, before, _ in new:
            setattr(owner, name, before)
