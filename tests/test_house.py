"""Argument lists stay short: what belongs together is handed over as a record."""

import ast

from test_layers import MODULES, PACKAGE

MOST = 8
"""Arguments of a function, ``self`` not counted."""


def arguments(node: ast.AST, place: str) -> dict[str, int]:
    """Number of arguments of each function below a node, by its place."""
    found: dict[str, int] = {}
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):  # most of them, and in none is a function with a name
            continue
        named = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        inner = f"{place}{child.name}" if named else place
        if named and not isinstance(child, ast.ClassDef):
            a = child.args
            taken = [x.arg for x in (*a.posonlyargs, *a.args, *a.kwonlyargs)]
            found[inner] = sum(name not in ("self", "cls") for name in taken)
        found |= arguments(child, f"{inner}." if named else inner)
    return found


def test_argument_lists_are_short():
    counted: dict[str, int] = {}
    for path in MODULES:
        counted |= arguments(ast.parse(path.read_text()), f"{path.relative_to(PACKAGE)}: ")
    assert {name: n for name, n in counted.items() if n > MOST} == {}
