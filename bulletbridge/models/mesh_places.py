"""Where a mesh or robot is that a file names, as ROS users expect it to be found."""

import os
import re
import struct
from pathlib import Path
from urllib.parse import unquote

from bulletbridge.models.urdf_file import is_file

NAME = re.compile(r"<name>([^<]*)</name>")
"""What a package is called, in its ``package.xml``."""
POINTER = b"version https://git-lfs.github.com/"
"""What a file begins with that Git LFS has left in the place of the one that is meant."""
FACET, FACETS = struct.Struct("<80xI"), 50
"""Head of a binary STL, which ends in the number of its facets, and bytes of each of them."""


def why_no_mesh(file: Path) -> str:
    """What is wrong with a mesh that is there, with the remedy; nothing if nothing is seen.

    Bullet loads a robot with such a mesh without its shape, and says nothing.
    """
    with file.open("rb") as stream:
        begins = stream.read(FACET.size)
    if begins.startswith(POINTER):
        return "only a pointer of Git LFS (git lfs pull fetches the mesh)"
    if not begins.strip():
        return "empty"
    if file.suffix.lower() != ".stl" or begins.lstrip().startswith(b"solid"):
        return ""
    whole = len(begins) == FACET.size
    size = FACET.size + FACETS * FACET.unpack(begins)[0] if whole else FACET.size
    there = file.stat().st_size
    return f"cut short ({there} of {size} bytes)" if there < size else ""


def find_named(name: str, path: Path) -> Path | None:
    """The file that another one names; None if there is none.

    ``package://NAME/...`` and ``model://NAME/...`` are looked for in every folder above the naming
    file, which may be the package itself under another name, and where ``ROS_PACKAGE_PATH`` and
    ``AMENT_PREFIX_PATH`` lead.

    Args:
        name: File name or URI.
        path: The file that names it.
    """
    scheme, separator, rest = name.rpartition("://")
    above = path.absolute().parents
    if not rest:
        return None
    if not separator or scheme == "file":
        place = Path(unquote(rest) if separator else rest)
        places = [place] if place.is_absolute() else [folder / place for folder in above]
    else:
        inside = Path(rest.lstrip("/"))
        within = Path(*inside.parts[1:])
        folders = (*above, *_roots())
        places = [folder / inside for folder in folders]
        places += [folder / within for folder in folders]
    return next((place.resolve() for place in places if is_file(place)), None)


def find_package(name: str, path: Path) -> Path | None:
    """Folder of a package that a file names; None if there is none.

    Looked for in every folder above the file, which may be the package itself, also under another
    name where it has a ``package.xml`` that says so, and where ``ROS_PACKAGE_PATH`` and
    ``AMENT_PREFIX_PATH`` lead.

    Args:
        name: Of the package.
        path: The file that names it.
    """
    above = path.absolute().parents
    for folder in above:
        if folder.name == name or _says_name(folder / "package.xml", name):
            return folder
    roots = _roots()
    places = [*(folder / name for folder in above), *roots, *(folder / name for folder in roots)]
    return next((place for place in places if place.name == name and place.is_dir()), None)


def _says_name(file: Path, name: str) -> bool:
    """Whether a ``package.xml`` is that of a package."""
    try:
        told = NAME.search(file.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return False
    return told is not None and told.group(1).strip() == name


def _roots() -> list[Path]:
    """Folders in which ROS looks for packages."""
    packages = os.environ.get("ROS_PACKAGE_PATH", "").split(os.pathsep)
    prefixes = os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)
    roots = [Path(each) for each in packages if each]
    return roots + [Path(each) / "share" for each in prefixes if each]
