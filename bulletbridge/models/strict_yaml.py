"""YAML 1.2 with positions: every value knows the file, line and column it came from.

Values are read from the nodes of the document, not from constructed Python objects: keys given
twice, merge keys and tags stay visible, and nothing is converted that was not asked for.
"""

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from ruamel.yaml.nodes import MappingNode, ScalarNode, SequenceNode

from bulletbridge.errors import LoopFileError, nearest
from bulletbridge.numerics.records import LARGEST

T = TypeVar("T")
NO_DIRECTION = 1e-9
"""An axis shorter than this has none."""
CALLED: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("constraints", "closures", "loop_joints"), ("loops",)),
    **dict.fromkeys(("motors", "actuators", "active"), ("actuated", "motor")),
    "springs": ("forces",),
    **dict.fromkeys(("robots", "models"), ("bodies",)),
    **dict.fromkeys(("robot", "model"), ("urdf",)),
    **dict.fromkeys(("initial", "init", "initial_state"), ("start",)),
    **dict.fromkeys(("parent", "parent_link", "link_a", "body_a"), ("a",)),
    **dict.fromkeys(("child", "child_link", "link_b", "body_b"), ("b",)),
    **dict.fromkeys(("origin", "pose", "position", "point", "pos"), ("xyz",)),
    **dict.fromkeys(("orientation", "rotation"), ("rpy",)),
    "k": ("stiffness",),
    **dict.fromkeys(("d", "c"), ("damping",)),
    **dict.fromkeys(("rest", "rest_length", "free_length"), ("length",)),
}
"""Keys by what others call them; the first that may stand in a place is meant."""
FIXED = "fixed_base: true"
"""How a base is held, which others write below ``base``."""
OF_STEPS = "dt", "integrator", "contacts", "limits"
"""What others write beside the robot, and is chosen here when it is loaded."""
AXES = "x", "y", "z"
FLAGS = {"yes": "true", "on": "true", "no": "false", "off": "false", "1": "true", "0": "false"}
"""What older YAML, and URDF, write for true and false."""
UNIT_ATOL = 1e-3
"""Largest error of a quaternion's length: four numbers rounded to three digits can be that far."""


@dataclass(frozen=True)
class Node:
    """A value in a file.

    Attributes:
        yaml: ruamel's node, which has no types.
        path: The file.
        key: Way from the root, as in loops[0].a.xyz.
        line, column: Where it begins, from 1; where its key does when it is empty.

    Whoever reads a value that is not what its function says gets a ``LoopFileError`` with file,
    line, column and key, and what to write.
    """

    yaml: Any
    path: Path
    key: str
    line: int
    column: int

    def fail(self, problem: str) -> NoReturn:
        """Raise with file, line, column and key in front."""
        where = f"{self.path}:{self.line}:{self.column}"
        raise LoopFileError(
            f"{where}: {self.key}: {problem}" if self.key else f"{where}: {problem}"
        )

    def mapping(
        self, required: Iterable[str] = (), optional: Iterable[str] = ()
    ) -> dict[str, "Node"]:
        """Its entries; unknown and missing keys are errors."""
        known, entries = list(dict.fromkeys([*required, *optional])), self._entries()
        for name, (key, value) in entries.items():
            if name not in known:
                near = [word for word in CALLED.get(name.lower(), ()) if word in known]
                hint = f"did you mean '{near[0]}'?" if near else nearest(name, known, 1, 0.5)
                if "q" in known and value._is_number():
                    hint = f"positions stand under q, as {{q: {{{name}: {value.yaml.value}}}}}"
                elif self.key.endswith("base") and "fixed" in name.lower():
                    hint = f"write {FIXED} beside base"
                elif name in OF_STEPS:
                    hint = f"it is no part of the robot; give it to load(..., {name}=...)"
                hint = hint or f"known keys: {', '.join(known)}"
                key.fail(f"unknown key '{name}'; {hint}")
        for name in required:
            if name not in entries:
                self.fail(f"key '{name}' is missing; add it")
        return {name: value for name, (_, value) in entries.items()}

    def table(self) -> dict[str, "Node"]:
        """Its entries, whatever their keys."""
        return {name: value for name, (_, value) in self._entries().items()}

    def names(self) -> Iterator["Node"]:
        """The keys of its entries, whatever they are."""
        return (key for key, _ in self._entries().values())

    def _entries(self) -> dict[str, tuple["Node", "Node"]]:
        if self._kind() != "map":
            hint = "; write 'key: value', without '- '" if self.is_list() else ""
            if self.key.endswith((".a", ".b")) and self._kind() == "str":
                hint = f"; write {{link: {self.yaml.value}}}"
            elif self.key.endswith("base") and self.yaml.value == "fixed":
                hint = f"; write {FIXED}"
            self.fail(f"must be a mapping of keys to values, not {self._said()}{hint}")
        entries: dict[str, tuple[Node, Node]] = {}
        for raw, value in self.yaml.value:
            key = node_at(raw, raw, self.path, self.key)
            if key._is_number() and not value.value:
                key.fail(
                    f"{key._said()} stands where a key should; put lists in brackets: [1, 0, 0]"
                )
            if key._kind() == "merge":
                key.fail("YAML 1.2 has no merge key '<<'; write the entries out")
            name = key.text()
            if name in entries:
                key.fail(f"key '{name}' is already on line {entries[name][0].line}; remove one")
            at = raw if value.start_mark.index == value.end_mark.index else value
            way = f"{self.key}.{name}" if self.key else name
            entries[name] = key, node_at(value, at, self.path, way)
        return entries

    def is_list(self) -> bool:
        """Whether it is a list."""
        return self._kind() == "seq"

    def is_mapping(self) -> bool:
        """Whether it is a mapping."""
        return self._kind() == "map"

    def items(self) -> Iterator["Node"]:
        """Its elements."""
        if not self.is_list():
            self.fail(f"must be a list, not {self._said()}{self._as_list()}")
        for i, value in enumerate(self.yaml.value):
            yield node_at(value, value, self.path, f"{self.key}[{i}]")

    def number(self) -> float:
        """A finite number."""
        number = _number(self._kind(), str(self.yaml.value))
        if number is None:
            self.fail(f"must be a number, not {self._said()}{self._as_number()}")
        if not math.isfinite(number):
            self.fail(f"must be finite, not {self._said()}")
        if abs(number) > LARGEST:
            self.fail(f"must not be above {LARGEST:g} in size, not {self._said()}")
        return number

    def nonzero(self) -> float:
        """A number other than zero."""
        return self.number() or self.fail("must not be zero")

    def positive(self) -> float:
        """A number above zero."""
        number = self.number()
        return number if number > 0.0 else self.fail(f"must be above zero, not {number:g}")

    def not_negative(self) -> float:
        """A number that is zero or more."""
        number = self.number()
        return number if number >= 0.0 else self.fail(f"must not be negative, not {self._said()}")

    def numbers(self) -> tuple[float, ...]:
        """A list of finite numbers."""
        return tuple(item.number() for item in self.items())

    def quaternion(self, numbers: Sequence[float]) -> None:
        """Require unit length of its last four numbers, x, y, z, w, as far as three digits can."""
        length = math.hypot(*numbers[-4:])
        if abs(length - 1.0) > UNIT_ATOL:
            scaled = length > NO_DIRECTION and math.isfinite(length)
            unit = [x / length for x in numbers[-4:]] if scaled else [0.0, 0.0, 0.0, 1.0]
            self.fail(
                f"the quaternion x, y, z, w has length {length:.6g}, not 1; "
                f"{'divide by it' if scaled else 'for no turn give'}: "
                f"[{', '.join(f'{x:.7g}' for x in unit)}]"
            )

    def triple(self) -> tuple[float, float, float]:
        """A list of three finite numbers."""
        numbers = self.numbers()
        if len(numbers) != 3:
            self.fail(f"must be three numbers [x, y, z], not {len(numbers)}")
        return numbers[0], numbers[1], numbers[2]

    def direction(self) -> tuple[float, float, float]:
        """Three numbers that are not all zero."""
        axis = self.triple()
        if not NO_DIRECTION < math.hypot(*axis) < math.inf:
            self.fail("has no direction: give three numbers that are not all zero, as [0, 0, 1]")
        return axis

    def text(self) -> str:
        """A string that is not empty."""
        kind = self._kind()
        if kind != "str" or not self.yaml.value:
            quoted = kind in _QUOTABLE and self.yaml.value
            self.fail(f"must be a name, not {self._said()}{'; put it in quotes' if quoted else ''}")
        return str(self.yaml.value)

    def flag(self) -> bool:
        """True or false."""
        if self._kind() != "bool":
            meant = FLAGS.get(str(self.yaml.value).lower()) if self._kind() != "map" else None
            hint = f"; write {meant}" if meant else ""
            self.fail(f"must be true or false, not {self._said()}{hint}")
        return str(self.yaml.value).lower() == "true"

    def choice(self, table: Mapping[str, T]) -> T:
        """What a name stands for."""
        return table[self.known(table)]

    def known(self, names: Collection[str], what: str = "") -> str:
        """One of some names; ``what`` says of what kind."""
        name = self.text()
        if name not in names:
            hint = nearest(name, names, most=1) or f"there are: {', '.join(names)}"
            self.fail(f"unknown {what}'{name}'; {hint}")
        return name

    def _is_number(self) -> bool:
        return _number(self._kind(), str(self.yaml.value)) is not None

    def _as_list(self) -> str:
        """How what stands there for a list would be written as one."""
        if self._kind() == "map":
            return "; begin each entry with '- '"
        text = str(self.yaml.value)
        if text.lower().lstrip("+-") in AXES:
            sign = -1 if text.startswith("-") else 1
            axis = [sign * (name == text[-1].lower()) for name in AXES]
            return f"; write {axis}"
        if self.key == "gravity" and self._is_number():
            return f"; write [0, 0, {text}]"
        if (self._kind() == "str" or self._is_number()) and text:
            return f"; put it in brackets: [{', '.join(text.replace(',', ' ').split())}]"
        return ""

    def _as_number(self) -> str:
        """What would be a number, where a text looks as if one were meant."""
        text = str(self.yaml.value) if self._kind() == "str" else ""
        parts = text.split()
        if len(parts) > 1 and all(_number("float", part) is not None for part in parts):
            return "; put commas between numbers"
        degrees = re.fullmatch(r"([-+.\d]+)\s*(deg|degrees?|°)", text)
        if degrees and (number := _number("float", degrees[1])) is not None:
            return f"; in radians that is {math.radians(number):.9g}"
        part = re.fullmatch(r"([-+]?)([.\d]*)\s*\*?\s*pi\s*(?:/\s*([.\d]+))?", text)
        if part:
            factor = float(_number("float", part[2] or "1") or 1.0)
            over = float(_number("float", part[3] or "1") or 1.0)
            return f"; nothing is calculated here: write {part[1]}{math.pi * factor / over:.9g}"
        return ""

    def _kind(self) -> str:
        """YAML's name for what it is; a tag of the user's own is a kind that nothing accepts."""
        kind = str(self.yaml.tag).removeprefix("tag:yaml.org,2002:")
        holder = {"map": MappingNode, "seq": SequenceNode}.get(kind, ScalarNode)
        return kind if isinstance(self.yaml, holder) else "unknown"

    def _said(self) -> str:
        is_scalar = isinstance(self.yaml, ScalarNode)
        if not is_scalar:
            return {"map": "a mapping", "seq": "a list"}.get(self._kind(), f"'{self.yaml.tag}'")
        value = str(self.yaml.value)
        return f"'{value if len(value) <= 40 else value[:37] + '...'}'" if value else "nothing"


Keys = dict[str, Node]
Readers = Mapping[str, Callable[[Node], Any]]
"""Who reads the value of each optional key."""


def read_given(keys: Keys, readers: Readers) -> dict[str, Any]:
    """Values of the optional keys that are there; what they are for has defaults for the others."""
    return {name: read(keys[name]) for name, read in readers.items() if name in keys}


def items_of(keys: Keys, name: str) -> list[Node]:
    """Elements of a list that need not be there."""
    return list(keys[name].items()) if name in keys else []


_QUOTABLE = ("int", "float", "bool", "null", "timestamp")


def node_at(yaml: Any, at: Any, path: Path, key: str) -> Node:
    """A node of what ruamel has read, with the line and column of another one, ``at``."""
    return Node(yaml, path, key, int(at.start_mark.line) + 1, int(at.start_mark.column) + 1)


def _number(kind: str, text: str) -> float | None:
    """A number as YAML 1.2 writes it; None when it is not one."""
    text = text.lower()
    try:
        if kind == "int":
            base = 0 if text.lstrip("+-").startswith(("0x", "0o")) else 10
            return float(int(text, base))
        return (
            float(text.replace(".inf", "inf").replace(".nan", "nan")) if kind == "float" else None
        )
    except OverflowError:
        return math.inf
    except ValueError:
        return None
