"""The site's reference has every public name, and every public name says what it is."""

import dataclasses
import inspect
import re
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import bulletbridge as bb
from bulletbridge.drop_in.functions import FUNCTIONS

PAGES = sorted((Path(__file__).parents[1] / "docs" / "api").glob("*.md"))
ENTRY = re.compile(r"^::: ([\w.]+)$", re.MULTILINE)


def found(path: str) -> Any:
    """The object at a dotted path."""
    module, _, name = path.rpartition(".")
    try:
        return getattr(import_module(module), name)
    except AttributeError:
        return import_module(path)


def public(module: ModuleType) -> dict[str, Any]:
    """Classes and functions of a module, by dotted path, that do not begin with an underscore."""
    return {
        f"{module.__name__}.{name}": x
        for name, x in vars(module).items()
        if not name.startswith("_")
        and (inspect.isclass(x) or inspect.isfunction(x))
        and x.__module__ == module.__name__
    }


def entries() -> dict[str, Any]:
    """All that the reference has, by dotted path; modules with what is in them."""
    result: dict[str, Any] = {}
    for page in PAGES:
        for path in ENTRY.findall(page.read_text(encoding="utf-8")):
            thing = found(path)
            result[path] = thing
            if inspect.ismodule(thing):
                result |= public(thing)
    return result


ENTRIES = entries()


def members(cls: type) -> dict[str, Any]:
    """Public methods and properties that a class of ours has from classes of ours."""
    result: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        if base.__module__.startswith("bulletbridge"):
            result |= {name: x for name, x in vars(base).items() if not name.startswith("_")}
    kinds = (property, classmethod, staticmethod)
    return {n: x for n, x in result.items() if inspect.isfunction(x) or isinstance(x, kinds)}


def fields(cls: type) -> tuple[str, ...]:
    """Public fields of a dataclass or named tuple."""
    names = getattr(cls, "_fields", ())
    if dataclasses.is_dataclass(cls):
        names = [field.name for field in dataclasses.fields(cls)]
    return tuple(name for name in names if not name.startswith("_"))


def test_every_public_name_has_its_entry():
    missing = [name for name in bb.__all__ if getattr(bb, name) not in ENTRIES.values()]
    missing += [path for path, x in public(bb.errors).items() if x not in ENTRIES.values()]
    assert not missing


def test_nothing_has_two_entries():
    paths = [path for page in PAGES for path in ENTRY.findall(page.read_text(encoding="utf-8"))]
    assert len(paths) == len({id(found(path)) for path in paths})


@pytest.mark.parametrize("path", ENTRIES)
def test_every_entry_says_what_it_is(path: str):
    thing = ENTRIES[path]
    said = thing.__doc__
    # that of a dataclass without one is its signature
    assert said and not said.startswith(f"{getattr(thing, '__name__', '')}("), path
    if inspect.isclass(thing):
        silent = [name for name, x in members(thing).items() if not x.__doc__]
        assert not silent, f"{path}: {silent}"
        together = re.findall(r"^ +(\w+(?:, \w+)+): ", said, re.MULTILINE)
        assert not together, f"{path} has one line for {', '.join(together)}"
        unsaid = [name for name in fields(thing) if not re.search(rf"\b{name}\b", said)]
        assert not unsaid, f"{path} does not say what {', '.join(unsaid)} are"


def test_every_function_of_ours_in_pybullet_is_listed():
    page = next(page for page in PAGES if page.stem == "pybullet").read_text(encoding="utf-8")
    listed = [
        name
        for row in re.findall(r"^\| (`.*?) \|", page, re.MULTILINE)
        for name in re.findall(r"`(\w+)`", row)
    ]
    assert sorted(listed) == sorted(FUNCTIONS)
    assert all(function.__doc__ for function in FUNCTIONS.values())


def test_the_gallery_has_every_demo():
    root = PAGES[0].parents[2]
    gallery = root / "docs" / "gallery"
    demos = {file.stem for file in root.glob("demos/[!_]*.py")}
    shown = re.findall(
        r"^!\[[^\]]+\]\((\w+)\.png\) *\n[^`]*`(\w+)`$",
        (gallery / "index.md").read_text(),
        re.MULTILINE,
    )
    assert (
        {picture for picture, _ in shown} == demos == {file.stem for file in gallery.glob("*.png")}
    )
    assert all(picture == name for picture, name in shown)
    assert all(file.stat().st_size < 60_000 for file in gallery.glob("*.png"))
