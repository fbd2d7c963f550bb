"""Numbers of others beside which examples are put.

The files in ``references`` come from independent programs in other coordinates, and from the
papers' print; none of them is written by this package.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent


@cache
def reference(name: str) -> Any:
    """A file of references, read once."""
    return json.loads((FOLDER / "references" / f"{name}.json").read_text(encoding="utf-8"))


def robot(name: str) -> Path:
    """The loops file of a robot of a paper that is no bundled model."""
    return FOLDER / "robots" / f"{name}.loops.yaml"
