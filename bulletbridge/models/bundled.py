"""Models that come with the package, and those of users."""

import importlib
import importlib.util
import os
import re
import shlex
from pathlib import Path
from typing import Any

from bulletbridge.errors import ModelError, nearest
from bulletbridge.models.formats.scratch import text_file
from bulletbridge.models.urdf_file import is_file

ENDING = ".loops.yaml"
SOURCES = (".py", ".md")
"""Endings of what is no robot beside the examples."""
ROBOTS = (ENDING, ".urdf", ".xml", ".mjcf", ".sdf", ".usd", ".usda", ".usdc", ".usdz")
"""Endings of files that are named where a folder was given."""
MOST_NAMED = 5
ARGUMENTS = re.compile(r"""(?<=\S)(\s+\w+:=("[^"]*"|'[^']*'|\S*))+\s*$""")
"""What may follow the path of a file that is xacro."""
PACKAGE = Path(__file__).parents[1]
DESCRIPTIONS, DESCRIPTION = "robot_descriptions", "_description"
"""A package of robots, and how their names in it end."""
FILES = ("URDF_PATH", "MJCF_PATH")
"""What its modules call the robot's file, in the order in which they are taken."""


def models_folder() -> Path:
    """Folder of the bundled models: loops files, the URDFs beside them, and their meshes.

    For ``pybullet.setAdditionalSearchPath(str(models_folder()))``, or to look at them.
    """
    places = (PACKAGE / "urdf", PACKAGE.parent / "urdf")  # installed, or in a checkout
    return next((place for place in places if place.is_dir()), places[0])


def unit_sphere() -> Path:
    """A mesh of a sphere, to be scaled: its hull is within 1 % of radius 1."""
    return models_folder() / "shapes" / "sphere.obj"


def bundled() -> dict[str, Path]:
    """Loops files of the bundled models by name."""
    folder = models_folder()
    files = [*folder.glob(f"*{ENDING}"), *folder.glob(f"*/*{ENDING}")]
    return {path.name.removesuffix(ENDING): path for path in sorted(files, key=lambda p: p.name)}


def examples() -> dict[str, Path]:
    """Bundled robots in other formats than loops files, by name."""
    folder = models_folder() / "formats"
    files = (path for path in folder.glob("*") if path.suffix not in SOURCES and path.is_file())
    return {path.stem: path for path in sorted(files)}


def about(path: Path) -> str:
    """What a bundled model is: the first sentence of the comment at the head of its file."""
    text = path.read_text(encoding="utf-8")
    if path.name.endswith(ENDING):
        said = " ".join(line[1:].strip() for line in text.splitlines() if line.startswith("#"))
    else:
        said = " ".join(text.partition("<!--")[2].partition("-->")[0].split())
    return said.partition(". ")[0].rstrip(".")


def find(model: str | Path) -> Path:
    """The file of a bundled name, of a path, or of a robot of ``robot_descriptions``.

    For a URDF it is the loops file beside it, if there is one. Arguments for xacro, as of
    ``split_arguments``, may follow a path. The text of a robot, which begins with ``<``, is put in
    a file that goes with the process.

    Raises:
        ModelError: There is none; the message says what there is.
    """
    _require_path(model)
    if isinstance(model, str) and model.lstrip().startswith("<"):
        return text_file(model.lstrip())
    known, (model, _) = bundled() | examples(), split_arguments(model)
    if str(model) in known:
        return known[str(model)]
    if not str(model).strip():
        raise ModelError("the model has no name; give a bundled name or the path of a robot's file")
    path = Path(model).expanduser()
    if path.suffix == ".urdf" and is_file(path):
        beside = path.with_name(path.stem + ENDING)
        return beside if is_file(beside) else path
    if is_file(path):
        return path
    if os.path.isdir(path):
        files = sorted(name for name in _names_in(path) if name.lower().endswith(ROBOTS))
        here = f": {', '.join(files[:MOST_NAMED])}" if files else ""
        raise ModelError(f"{path} is a folder; name the robot's file in it{here}")
    described = find_description(str(model))
    if described is not None:
        return described
    if path.suffix or len(path.parts) > 1:
        hint = similar_file(path)
        hint = f"{hint} Or" if hint else "check the path, or"
        raise ModelError(
            f"there is no file {path}; {hint} give the name of a bundled model"
            " (`bulletbridge models` lists them)"
        )
    here = [f"'{model}{end}'" for end in ROBOTS if is_file(Path(f"{model}{end}"))]
    if here:
        raise ModelError(f"no model is called '{model}'; a file goes by its whole name: {here[0]}")
    hint = nearest(model, known) or f"there are: {', '.join(known)}."
    raise ModelError(f"no model is called '{model}'; {hint} Or give the path of a robot's file")


def similar_file(path: Path) -> str:
    """The question whether a file of a similar name in the same folder was meant; or nothing."""
    return nearest(path.name, _names_in(path.parent), 1, 0.6)


def _require_path(model: object) -> None:
    """Refuse what is neither a text nor a path."""
    if not isinstance(model, str | Path):
        raise ModelError(
            f"the model is {model!r}; give a bundled name, the path of a robot's file, or its text"
        )


def split_arguments(model: str | Path) -> tuple[str | Path, dict[str, str]]:
    """A path without the arguments for xacro that follow it, and these.

    They are written as xacro's own command takes them: ``arm.xacro hand:=true name:="an arm"``.
    """
    if not isinstance(model, str) or (found := ARGUMENTS.search(model)) is None:
        return model, {}
    pairs = (word.split(":=", 1) for word in shlex.split(found.group()))
    return model[: found.start()], dict(pairs)


def _names_in(folder: Path) -> list[str]:
    """Names of what is in a folder; none if it cannot be looked into."""
    try:
        return os.listdir(folder)
    except (OSError, ValueError):
        return []


def find_description(name: str) -> Path | None:
    """The file of a robot of ``robot_descriptions``; None if the name is not like one of its.

    The package fetches a robot that is not in its cache when its module is imported.

    Raises:
        ModelError: The package is not installed or has no such robot, or its files cannot be had.
    """
    if not name.endswith(DESCRIPTION) or not name.isidentifier():
        return None
    if importlib.util.find_spec(DESCRIPTIONS) is None:
        raise ModelError(
            f"no model is called '{name}'; if it is one of {DESCRIPTIONS}, install that first:"
            f" pip install {DESCRIPTIONS}"
        )
    if importlib.util.find_spec(f"{DESCRIPTIONS}.{name}") is None:
        index: Any = importlib.import_module(f"{DESCRIPTIONS}._descriptions")
        near = nearest(name, index.DESCRIPTIONS, cutoff=0.6)
        hint = near or f"see `python -m {DESCRIPTIONS} list`"
        raise ModelError(f"{DESCRIPTIONS} has no '{name}'; {hint}")
    try:
        module = importlib.import_module(f"{DESCRIPTIONS}.{name}")
    except Exception as error:  # whatever git, the network and the disk have to say
        why = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ModelError(
            f"the files of '{name}' are not there and cannot be fetched ({why[:200]}); fetch them"
            f" where there is a network: python -m {DESCRIPTIONS} pull {name}"
        ) from None
    found = next((getattr(module, key) for key in FILES if hasattr(module, key)), None)
    if found is None:
        raise ModelError(f"'{name}' of {DESCRIPTIONS} has neither a URDF nor an MJCF file")
    return Path(found)
