"""A file imports from its own layer or below, and foreign packages only where they belong."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "bulletbridge"
LAYERS = [
    "compilation",
    "numerics",
    "mechanism",
    "constraints",
    "formulations",
    "classics",
    "simulation",
    "surface",
]
MODULES = sorted(PACKAGE.rglob("*.py"))
LAZY = {"matplotlib", "trimesh", "jinja2"}


def imports(path: Path, top_level: bool = False) -> set[str]:
    """Dotted names that a module imports."""
    tree = ast.parse(path.read_text())
    nodes = tree.body if top_level else list(ast.walk(tree))
    names = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names.add(node.module)
    return names


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_point_downwards(path):
    parts = path.relative_to(PACKAGE).parts
    own = LAYERS.index(parts[0]) if len(parts) > 1 else len(LAYERS)
    for name in imports(path):
        head, *rest = name.split(".")
        if head == "bulletbridge" and rest and rest[0] in LAYERS:
            assert LAYERS.index(rest[0]) <= own, f"{path.name} imports {name}"
        bullet = parts[:-1] == ("mechanism",) and parts[-1].startswith("bullet")
        if head in ("pybullet", "pybullet_data"):
            assert bullet or parts[0] in ("surface", "pybullet.py"), f"{path.name} imports {name}"
        if head in ("numba", "llvmlite"):
            compiling = parts[0] == "compilation" or (
                parts[0] == "numerics"
                and parts[1] in ("jit.py", "linked_code.py", "probe.py", "stored_calls.py")
            )
            assert compiling, f"{path.name} imports {name}"


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_heavy_packages_are_imported_when_needed(path):
    assert not {name.split(".")[0] for name in imports(path, top_level=True)} & LAZY
