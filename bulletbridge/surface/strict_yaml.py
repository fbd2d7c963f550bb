"""YAML 1.2 with positions: every value knows the file, line and key it came from."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from io import StringIO
from math import isfinite
from pathlib import Path
from typing import Any, NoReturn, TypeVar, cast

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from bulletbridge.errors import LoopFileError, ModelError

T = TypeVar("T")


@dataclass(frozen=True)
class Node:
    """A value in a file."""

    value: Any
    path: Path
    line: int
    key: str  # from the root, as in loops[0].a.xyz

    def fail(self, problem: str, error: type[LoopFileError] = LoopFileError) -> NoReturn:
        """Raise with file, line and key in front."""
        where = f"{self.path}:{self.line}"
        raise error(f"{where}: {self.key}: {problem}" if self.key else f"{where}: {problem}")

    def mapping(
        self, required: Iterable[str] = (), optional: Iterable[str] = ()
    ) -> dict[str, "Node"]:
        """Its entries; unknown and missing keys are errors.

        Raises:
            LoopFileError: Not a mapping, or a key is unknown or missing.
        """
        known, entries = [*required, *optional], self.table()
        for key, node in entries.items():
            if key not in known:
                near = get_close_matches(key, known, n=1, cutoff=0.4)
                hint = f"did you mean '{near[0]}'?" if near else f"known keys: {', '.join(known)}"
                Node(None, self.path, node.line, self.key).fail(f"unknown key '{key}'; {hint}")
        for key in required:
            if key not in entries:
                self.fail(f"key '{key}' is missing; add it")
        return entries

    def table(self) -> dict[str, "Node"]:
        """Its entries, whatever their keys.

        Raises:
            LoopFileError: Not a mapping.
        """
        if not isinstance(self.value, CommentedMap):
            self.fail(f"must be a mapping of keys to values, not {_say(self.value)}")
        entries: dict[str, Node] = {}
        table = cast("Any", self.value)  # ruamel's positions have no types
        for key, value in table.items():
            line = int(table.lc.key(key)[0]) + 1
            name = f"{self.key}.{key}" if self.key else str(key)
            entries[str(key)] = Node(value, self.path, line, name)
        return entries

    def items(self) -> Iterator["Node"]:
        """Its elements.

        Raises:
            LoopFileError: Not a list.
        """
        if not isinstance(self.value, CommentedSeq):
            self.fail(f"must be a list, not {_say(self.value)}")
        elements = cast("Any", self.value)
        for i, value in enumerate(elements):
            line = int(elements.lc.item(i)[0]) + 1
            yield Node(value, self.path, line, f"{self.key}[{i}]")

    def number(self) -> float:
        """A finite number.

        Raises:
            LoopFileError: It is not.
        """
        if isinstance(self.value, bool) or not isinstance(self.value, int | float):
            self.fail(f"must be a number, not {_say(self.value)}")
        if not isfinite(self.value):
            self.fail(f"must be finite, not {self.value}")
        return float(self.value)

    def positive(self) -> float:
        """A number above zero.

        Raises:
            LoopFileError: It is not.
        """
        number = self.number()
        if number <= 0.0:
            self.fail(f"must be above zero, not {number:g}")
        return number

    def numbers(self) -> tuple[float, ...]:
        """A list of finite numbers."""
        return tuple(item.number() for item in self.items())

    def triple(self) -> tuple[float, float, float]:
        """A list of three finite numbers.

        Raises:
            LoopFileError: It is not.
        """
        numbers = self.numbers()
        if len(numbers) != 3:
            self.fail(f"must be three numbers [x, y, z], not {len(numbers)}")
        return numbers[0], numbers[1], numbers[2]

    def direction(self) -> tuple[float, float, float]:
        """Three numbers that are not all zero.

        Raises:
            LoopFileError: They are.
        """
        axis = self.triple()
        if not any(axis):
            self.fail("has no direction: give three numbers that are not all zero")
        return axis

    def text(self) -> str:
        """A string that is not empty.

        Raises:
            LoopFileError: It is not.
        """
        if not isinstance(self.value, str) or not self.value:
            self.fail(f"must be a name, not {_say(self.value)}")
        return str(self.value)

    def flag(self) -> bool:
        """True or false.

        Raises:
            LoopFileError: Neither.
        """
        if not isinstance(self.value, bool):
            self.fail(f"must be true or false, not {_say(self.value)}")
        return self.value

    def choice(self, table: dict[str, T]) -> T:
        """What a name stands for.

        Raises:
            LoopFileError: The name is unknown.
        """
        name = self.text()
        if name not in table:
            near = get_close_matches(name, table, n=1, cutoff=0.4)
            hint = f"did you mean '{near[0]}'?" if near else f"there are: {', '.join(table)}"
            self.fail(f"unknown '{name}'; {hint}")
        return table[name]


def read_yaml(path: Path) -> Node:
    """The root of a file.

    Raises:
        ModelError: The file cannot be read.
        LoopFileError: It is not YAML.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ModelError(f"cannot read {path}: {error.strerror}") from None
    yaml = YAML(typ="rt")
    yaml.version = (1, 2)
    try:
        return Node(yaml.load(text), path, 1, "")
    except MarkedYAMLError as error:
        mark: Any = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        line = int(mark.line) + 1 if mark else 1
        problem = str(getattr(error, "problem", error)).splitlines()[0]
        if "\t" in "".join(text.splitlines()[line - 1 : line]):
            problem += "; indent with spaces, not tabs"
        raise LoopFileError(f"{path}:{line}: not valid YAML: {problem}") from None
    except YAMLError as error:
        raise LoopFileError(f"{path}: not valid YAML: {error}") from None


def write_yaml(data: dict[str, Any], path: Path) -> None:
    """Write plain data: mappings in blocks, their innermost lists and mappings on one line."""
    yaml = YAML(typ="rt")
    yaml.default_flow_style = None
    yaml.width = 120
    out = StringIO()
    yaml.dump(data, out)
    path.write_text(out.getvalue(), encoding="utf-8")


def _say(value: object) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, CommentedMap):
        return "a mapping"
    return "a list" if isinstance(value, CommentedSeq) else f"'{value}'"
