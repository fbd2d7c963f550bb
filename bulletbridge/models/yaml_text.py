"""From the bytes of a file to the root of its YAML; whatever is wrong is said with its place."""

from io import StringIO
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import CollectionEndEvent, CollectionStartEvent
from ruamel.yaml.reader import ReaderError

from bulletbridge.errors import LoopFileError, ModelError
from bulletbridge.models.strict_yaml import Node, node_at

MOST_BYTES = 2_000_000
"""Size of a file that is refused: 10,000 loops and more, for which parsing takes ten seconds."""
DEEPEST = 50
"""Nesting that is refused where ruamel, which recurses, gives up; loops files need eight levels."""


def read_yaml(path: Path) -> Node:
    """The root of a file.

    Raises:
        ModelError: The file cannot be read.
        LoopFileError: It is not YAML, or too much of it.
    """
    try:
        content = path.read_bytes()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise ModelError(f"cannot read {path}: {why}; check the path") from None
    if len(content) > MOST_BYTES:
        raise LoopFileError(
            f"{path}: has {len(content) / 1e6:.1f} MB; loops files may have {MOST_BYTES / 1e6:g}, "
            "10,000 loops and more: is it the right file?"
        )
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = error.object[: error.start].decode("utf-8")
        raise LoopFileError(
            f"{path}:{_place(before)}: byte 0x{error.object[error.start]:02x} is not text in UTF-8 "
            f"({error.reason}); save the file in UTF-8"
        ) from None
    return parse_yaml(text, path)


def parse_yaml(text: str, path: Path) -> Node:
    """The root of a text; messages call it ``path``.

    Raises:
        LoopFileError: It is not YAML.
    """
    try:
        root = YAML(typ="safe", pure=True).compose(StringIO(text))
    except MarkedYAMLError as error:
        raise LoopFileError(f"{path}:{_broken(error, text)}") from None
    except ReaderError as error:
        place = _place(text[: error.position])
        raise LoopFileError(
            f"{path}:{place}: character #x{error.character:04x} is not allowed in YAML; "
            f"remove it, and save the file in UTF-8"
        ) from None
    except YAMLError as error:
        problem = str(error).splitlines()[0]
        raise LoopFileError(f"{path}: not valid YAML: {problem}; remove it") from None
    except RecursionError:
        raise LoopFileError(
            f"{path}:{_too_deep(text)}: nested too deeply; close the brackets, or indent less"
        ) from None
    if root is None:
        raise LoopFileError(f"{path}:1:1: the file is empty; begin with 'bulletbridge: 1'")
    return node_at(root, root, path, "")


def _place(before: str) -> str:
    """Line and column, from 1, of what comes after a text."""
    return f"{before.count(chr(10)) + 1}:{len(before) - before.rfind(chr(10))}"


def _too_deep(text: str) -> str:
    """Line and column where the nesting passes ``DEEPEST``; ruamel's events do not recurse."""
    depth = 0
    for event in YAML(typ="safe", pure=True).parse(StringIO(text)):
        depth += isinstance(event, CollectionStartEvent) - isinstance(event, CollectionEndEvent)
        if depth > DEEPEST:
            return f"{event.start_mark.line + 1}:{event.start_mark.column + 1}"
    return "1:1"


def _broken(error: Any, text: str) -> str:
    """What is wrong with the YAML, and where."""
    mark = error.problem_mark or error.context_mark
    problem = str(error.problem or error.context)
    if "\t" in [*text.splitlines(), ""][mark.line]:
        hint = "indent with spaces, not tabs"
    elif "another document" in problem:
        hint = "keep one document a file"
    else:
        hint = "check brackets, quotes, colons and indentation here and in the line above"
    return f"{mark.line + 1}:{mark.column + 1}: not valid YAML: {problem}; {hint}"
