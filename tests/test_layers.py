"""A file imports from its own layer or below, and foreign packages only where they belong."""

import ast
import functools
import re
from collections.abc import Iterable
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "bulletbridge"
ROOMS = [
    "compilation",
    "numerics",
    "collision",
    "mechanism",
    "constraints",
    "bullet",
    "engine",
    "formulations",
    "inequalities",
    "system",
    "control",
    "events",
    "models",
    "viewer",
    "studies",
    "comparison",
    "papers",
    "gym",
    "bench",
    "drop_in",
]
"""Folders of the package; each imports from itself and from those before it."""
BELOW = "errors", "console"
"""Files that everybody may import."""
WITHOUT_BULLET = ROOMS[: ROOMS.index("models")]
"""Rooms that know no Bullet, but for ``bullet`` itself."""
MODULES = sorted(PACKAGE.rglob("*.py"))
FILES = {".".join(path.with_suffix("").relative_to(PACKAGE.parent).parts) for path in MODULES}
WORD = re.compile(r"\w+")
LATER = set(
    WORD.findall(
        """
        LiteralString Never NoDefault NotRequired ReadOnly Required Self TypeAliasType TypeIs
        TypeVarTuple Unpack assert_never assert_type clear_overloads dataclass_transform
        evaluate_forward_ref get_overloads get_protocol_members is_protocol override reveal_type
        """
    )
)
"""Names of ``typing`` in Python 3.11 to 3.14 that 3.10 lacks."""
LAZY = {"matplotlib", "trimesh", "jinja2", "viser", "torch", "jax", "crocoddyl"}


@functools.cache  # to read all of them takes seconds
def imports(path: Path) -> tuple[set[str], set[str]]:
    """Dotted names that a module imports: all of them, and those at once."""
    tree = ast.parse(path.read_text())
    return imported(path, statements(tree)), imported(path, tree.body)


def statements(node: ast.AST) -> Iterable[ast.AST]:
    """All statements below a node; most nodes are in expressions, which import nothing."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.expr):
            yield child
            yield from statements(child)


def imported(path: Path, nodes: Iterable[ast.AST]) -> set[str]:
    """Dotted names that nodes of a module import."""
    names = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names.add(node.module)
            # of a room, files of its that are imported whole
            names |= {f"{node.module}.{alias.name}" for alias in node.names} & FILES
    return names


def test_names_that_came_after_python_3_10_are_not_taken_from_typing():
    """``typing_extensions`` has them for every Python."""
    taken = re.compile(r"^from typing import (?:\(([^)]*)\)|(.*))$", re.MULTILINE)
    for path in (*MODULES, *PACKAGE.parent.joinpath("demos").glob("*.py")):
        names = {
            name for found in taken.findall(path.read_text()) for name in WORD.findall(str(found))
        }
        assert not names & LATER, f"{path}: Python 3.10 has no such names in typing"


def test_every_folder_is_a_room():
    folders = {path.name for path in PACKAGE.iterdir() if any(path.glob("*.py"))}
    assert folders == set(ROOMS)


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_point_downwards(path):
    room, *rest = path.relative_to(PACKAGE).parts
    above = [] if not rest else ROOMS[ROOMS.index(room) + 1 :]
    if path.stem in BELOW and not rest:
        above = ROOMS
    for name in imports(path)[0]:
        head, *inner = name.split(".")
        if head == "bulletbridge" and inner:
            assert inner[0] not in above, f"{path.name} imports {name}"
            if room in WITHOUT_BULLET and room != "bullet":
                assert inner[0] != "bullet", f"{path.name} imports {name}"
        if head in ("pybullet", "pybullet_data"):
            assert room == "bullet" or room not in WITHOUT_BULLET, f"{path.name} imports {name}"
        if head in ("numba", "llvmlite"):
            assert room == "compilation", f"{path.name} imports {name}"


def test_no_module_needs_itself():
    """Not by way of others either, nor for a type; inside a room too."""
    paths = {path.with_suffix("").relative_to(PACKAGE.parent): path for path in MODULES}
    needs = {".".join(name.parts): imports(path)[0] for name, path in paths.items()}
    assert "bulletbridge.system.system" in needs
    list(TopologicalSorter(needs).static_order())  # CycleError names the circle


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_heavy_packages_are_imported_when_needed(path):
    assert not {name.split(".")[0] for name in imports(path)[1]} & LAZY
