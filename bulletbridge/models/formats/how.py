"""How a file is read: what readers of all formats are handed."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple


class How(NamedTuple):
    """How a file is read, as far as its reader has a choice.

    Attributes:
        inside: Folder that what it includes must be in; that of the file unless given.
        servos: Whether these act.
        arguments: For xacro.
        fixed_base: Whether the base is part of the world; None for what the file says.
        keyframe: Of MJCF, where it starts; None for the first one.
    """

    inside: Path | None = None
    servos: bool = False
    arguments: Mapping[str, str] = {}
    fixed_base: bool | None = None
    keyframe: str | None = None


AS_IT_IS = How()
"""Without choices."""
