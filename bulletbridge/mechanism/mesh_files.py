"""Meshes from files."""

import os
from pathlib import Path
from typing import Any

import numpy as np

from bulletbridge.errors import ModelError


def read_mesh(path: str | Path) -> Any:
    """A trimesh of the facets in a file, lengths as written there.

    Raises:
        ModelError: There is no such file, or no mesh of finite numbers in it.
    """
    import trimesh

    if not os.path.isfile(path):  # unlike Path.is_file also for names that no file can have
        raise ModelError(f"there is no file {path}")
    try:
        mesh: Any = trimesh.load(path, force="mesh")
    except Exception as error:  # its loaders raise whatever they stumble over
        raise ModelError(
            f"{path} is no mesh that trimesh can read ({type(error).__name__}: {error}); correct"
            " the file"
        ) from None
    if not len(mesh.faces) or not np.all(np.isfinite(mesh.vertices)):
        raise ModelError(f"{path} has no facets, or vertices that are no numbers; correct the file")
    return mesh
