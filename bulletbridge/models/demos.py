"""The demos that come with the package, run as scripts."""

import os
import subprocess
import sys
from pathlib import Path

from bulletbridge.models.bundled import PACKAGE, bundled


def demos() -> dict[str, Path]:
    """Scripts of the demos that have no bundled model of their own, by name."""
    scripts = {path.stem: path for path in sorted(demos_folder().glob("[!_]*.py"))}
    return {name: path for name, path in scripts.items() if name not in bundled()}


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
