"""What wheels are made of, for hatchling: with machine code of the kernels, or with numba.

``BULLETBRIDGE_OBJECTS`` names the folder that ``release/make_objects.py`` wrote. With it a wheel is
for one platform and needs numba for nothing that it brings, so that numba is the extra ``compile``;
without it, as in a checkout and in what is built of the sdist, numba is a dependency.
"""

import json
import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

VARIABLE = "BULLETBRIDGE_OBJECTS"


def manifest() -> Path | None:
    """The manifest of the objects that the wheel is to bring, or None."""
    folder = os.environ.get(VARIABLE)
    if not folder:
        return None
    found = Path(folder).resolve() / "manifest.json"
    if not found.is_file():
        raise FileNotFoundError(f"{VARIABLE} names {folder}, where there is no {found.name}")
    return found


class Dependencies(MetadataHookInterface):
    """numba is a dependency of what brings no machine code."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        """Fill the field in."""
        compiler = [] if manifest() else metadata["optional-dependencies"]["compile"]
        metadata["dependencies"] = [*self.config["dependencies"], *compiler]


class Objects(BuildHookInterface[Any]):
    """The objects, and the platform that they are for."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add them to a wheel; an editable install goes without."""
        place = manifest()
        if place is None or version == "editable":
            return
        major, minor = json.loads(place.read_text(encoding="utf-8"))["libc"]
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-manylinux_{major}_{minor}_x86_64"
        build_data["force_include"][str(place.parent)] = "bulletbridge/objects"
