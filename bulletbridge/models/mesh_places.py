"""Where a mesh or robot is that a file names, as ROS users expect it to be found."""

import os
from pathlib import Path
from urllib.parse import unquote

from bulletbridge.models.urdf_file import is_file


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
        packages = os.environ.get("ROS_PACKAGE_PATH", "").split(os.pathsep)
        prefixes = os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)
        roots = [Path(each) for each in packages if each]
        roots += [Path(each) / "share" for each in prefixes if each]
        places = [folder / inside for folder in (*above, *roots)]
        places += [folder / within for folder in (*above, *roots)]
    return next((place.resolve() for place in places if is_file(place)), None)
