"""The demos that come with the package, run as scripts."""

import ast
import os
import subprocess
import sys
from pathlib import Path

from bulletbridge.errors import ModelError, nearest
from bulletbridge.models.bundled import PACKAGE, bundled, find


def scripts() -> dict[str, Path]:
    """Scripts of all demos by name."""
    return {path.stem: path for path in sorted(demos_folder().glob("[!_]*.py"))}


def demos() -> dict[str, Path]:
    """Scripts of the demos that have no bundled model of their own, by name."""
    return {name: path for name, path in scripts().items() if name not in bundled()}


def about_demo(script: Path) -> str:
    """What a demo shows: the first line of its docstring."""
    return (ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))) or "").split("\n")[0]


def find_demo(name: str) -> Path | None:
    """The script of a demo; None for a model that has none of its own.

    Raises:
        ModelError: There is neither; the message has the nearest names.
    """
    known = scripts()
    if name in demos():
        return known[name]
    try:
        find(name)
    except ModelError:
        if Path(name).suffix or len(Path(name).parts) > 1:
            raise
        hint = nearest(name, sorted({*known, *bundled()}), cutoff=0.5)
        raise ModelError(
            f"no demo is called '{name}'; {hint + ' ' if hint else ''}`bulletbridge demo` lists"
            " them; or give a model's name or path"
        ) from None
    return None


def demos_folder() -> Path:
    """Where the demos and the files that they load are."""
    folders = (PACKAGE / "demos", PACKAGE.parent / "demos")  # installed, or in a checkout
    return next((place for place in folders if place.is_dir()), folders[0])


def run_demo(script: Path, gui: bool) -> int:
    """Run a demo as a program of its own; 0 if it came to its end, 1 otherwise."""
    command = [sys.executable, str(script), *(["--gui"] if gui else [])]
    places = os.pathsep.join([str(PACKAGE.parent), *sys.path])
    done = subprocess.run(command, env=os.environ | {"PYTHONPATH": places}, check=False)
    return int(done.returncode != 0)
