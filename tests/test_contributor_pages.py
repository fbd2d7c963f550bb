"""The pages for contributors name what there is: rooms, files, functions, words."""

import ast
import functools
import re
from pathlib import Path

import pytest
from test_layers import PACKAGE, ROOMS

ROOT = PACKAGE.parent
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text()
NAMES = (ROOT / "docs" / "names.md").read_text()
PLACES = sorted(set(re.findall(r"`([\w/.]+\.py)(?::\s+([\w.]+))?`", ARCHITECTURE)))
DEFINITIONS = ast.ClassDef | ast.FunctionDef
WITHIN = 0.25
"""Share by which a room may have grown or shrunk before the page must say so."""


def names_in(tree: ast.Module | ast.ClassDef) -> set[str]:
    """Names that a module or class defines itself; members with the name of their class."""
    found: set[str] = set()
    for node in tree.body:
        if isinstance(node, DEFINITIONS):
            found.add(node.name)
            if isinstance(node, ast.ClassDef):
                found |= {f"{node.name}.{member}" for member in names_in(node)}
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [name for target in targets for name in ast.walk(target)]
            found |= {name.id for name in names if isinstance(name, ast.Name)}
    return found


@functools.cache
def names_of(file: Path) -> set[str]:
    """Names that a file defines."""
    return names_in(ast.parse(file.read_text()))


def words() -> set[str]:
    """All words of the package's files."""
    return {word for file in PACKAGE.rglob("*.py") for word in re.findall(r"\w+", file.read_text())}


def in_code_font(page: str) -> set[str]:
    """Dotted names that stand in code font, those with a file and its name left out."""
    page = re.sub(r"```.*?```", "", page, flags=re.DOTALL)
    return set(re.findall(r"`([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)(?:\(\))?`", page))


def test_the_page_is_full_of_places():
    """What the pattern does not find is not held to anything."""
    assert len(PLACES) > 100
    rooms = {path.split("/")[0] for path, name in PLACES if name}
    assert len(rooms & set(ROOMS)) > 10


@pytest.mark.parametrize("path, name", PLACES, ids=lambda part: part or "file")
def test_every_place_that_the_page_names_exists(path: str, name: str):
    file = next((root / path for root in (PACKAGE, ROOT) if (root / path).is_file()), None)
    assert file is not None, f"there is no {path}"
    assert not name or name in names_of(file), f"no {name} in {path}"


def test_the_floor_plan_is_that_of_the_layers():
    lines = re.findall(r"^\| `(\w+)/` \|.*\| ([\d.]+)k \|$", ARCHITECTURE, re.MULTILINE)
    assert [room for room, _ in lines] == ROOMS
    for room, said in lines:
        counted = sum(len(f.read_text().splitlines()) for f in (PACKAGE / room).rglob("*.py"))
        assert abs(1000 * float(said) - counted) <= WITHIN * counted, f"{room} has {counted} lines"


def test_the_files_beside_the_rooms_are_those_of_the_page():
    table = ARCHITECTURE.split("Files beside the rooms:")[1].split("\n\n")[1]
    listed = re.findall(r"`(\w+\.py)`", "\n".join(row.split("|")[1] for row in table.split("\n")))
    assert sorted(listed) == sorted(file.name for file in PACKAGE.glob("*.py"))


@pytest.mark.parametrize("page", [ARCHITECTURE, NAMES], ids=["architecture", "names"])
def test_every_name_in_code_font_stands_in_the_package(page: str):
    rooms, known = {path.name for path in ROOT.iterdir()}, words()
    named = {name for name in in_code_font(page) if not (ROOT / name).exists()} - rooms
    missing = {name for name in named if not set(name.split(".")) <= known}
    assert not missing, f"not in the package: {sorted(missing)}"
