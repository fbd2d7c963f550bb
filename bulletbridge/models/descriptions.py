"""Robots by the names that the package ``robot_descriptions`` gives them, where it is installed."""

import importlib
import importlib.util
from pathlib import Path
from typing import Any

from bulletbridge.errors import ModelError, nearest

PACKAGE, ENDING = "robot_descriptions", "_description"
FILES = ("URDF_PATH", "MJCF_PATH")
"""What its modules call the robot's file, in the order in which they are taken."""


def find_description(name: str) -> Path | None:
    """The file of a robot of ``robot_descriptions``; None if the name is not like one of its.

    The package fetches a robot that is not in its cache when its module is imported.

    Raises:
        ModelError: The package is not installed or has no such robot, or its files cannot be had.
    """
    if not name.endswith(ENDING) or not name.isidentifier():
        return None
    if importlib.util.find_spec(PACKAGE) is None:
        raise ModelError(
            f"no model is called '{name}'; if it is one of {PACKAGE}, install that first:"
            f" pip install {PACKAGE}"
        )
    if importlib.util.find_spec(f"{PACKAGE}.{name}") is None:
        index: Any = importlib.import_module(f"{PACKAGE}._descriptions")
        hint = nearest(name, index.DESCRIPTIONS, cutoff=0.6) or f"see `python -m {PACKAGE} list`"
        raise ModelError(f"{PACKAGE} has no '{name}'; {hint}")
    try:
        module = importlib.import_module(f"{PACKAGE}.{name}")
    except Exception as error:  # whatever git, the network and the disk have to say
        why = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ModelError(
            f"the files of '{name}' are not there and cannot be fetched ({why[:200]}); fetch them"
            f" where there is a network: python -m {PACKAGE} pull {name}"
        ) from None
    found = next((getattr(module, key) for key in FILES if hasattr(module, key)), None)
    if found is None:
        raise ModelError(f"'{name}' of {PACKAGE} has neither a URDF nor an MJCF file")
    return Path(found)
