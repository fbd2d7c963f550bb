"""Models that come with the package, and those of users."""

from difflib import get_close_matches
from pathlib import Path

from bulletbridge.errors import ModelError
from bulletbridge.models.urdf_file import is_file

ENDING = ".loops.yaml"
FORMATS, OTHERS = "formats", (".xml", ".sdf")
"""Folder of the bundled models that are no loops files, and how these end."""
PACKAGE = Path(__file__).parents[1]


def bundled() -> dict[str, Path]:
    """Files of the bundled models by name: loops files, MJCF and SDF."""
    folders = (PACKAGE / "urdf", PACKAGE.parent / "urdf")  # installed, or in a checkout
    folder = next((place for place in folders if place.is_dir()), folders[0])
    ends = [f"*{ENDING}", f"*/*{ENDING}", *(f"{FORMATS}/*{ending}" for ending in OTHERS)]
    files = sorted((path for end in ends for path in folder.glob(end)), key=lambda path: path.name)
    return {path.name.removesuffix(ENDING).removesuffix(path.suffix): path for path in files}


def find(model: str | Path) -> Path:
    """The file of a bundled name, or of a path; for a URDF the loops file beside it, if any.

    Raises:
        ModelError: There is none; the message says what there is.
    """
    known = bundled()
    if str(model) in known:
        return known[str(model)]
    path = Path(model)
    if path.suffix == ".urdf" and is_file(path):
        beside = path.with_name(path.stem + ENDING)
        return beside if is_file(beside) else path
    if is_file(path):
        return path
    if path.suffix or len(path.parts) > 1:
        raise ModelError(f"there is no file {path}; bundled models: {', '.join(known)}")
    near = get_close_matches(str(model), known, n=3, cutoff=0.4)
    hint = f"did you mean {', '.join(near)}?" if near else f"there are: {', '.join(known)}"
    raise ModelError(f"no model is called '{model}'; {hint}, or give the path of a robot's file")
