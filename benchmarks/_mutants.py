"""Texts with mistakes in them, each from one number."""

import re
from collections.abc import Callable, Sequence

import numpy as np

Rng = np.random.Generator
NUMBER = re.compile(r"-?\d+\.?\d*(?:[eE][-+]?\d+)?")
WORD = re.compile(r"[A-Za-z_][\w/.]*")
NUMBERS = (
    "nan", "inf", "-inf", "1e400", "-1e400", "1e300", "-1e300", "1e-320", "0", "-0.0", "-1", "1e9",
    "99999999999999999999", "", "x", "1,5", "1 2", "0x10", "1e", "--1", "1_000", "\u0661", "true",
    "null", "[1]", "[]", "{}", "1" * 400,
)  # fmt: skip
NAMES = (
    "", "[red]", "[/red]", "$\\frac{", "a" * 300, "../../x", "/", "world", "base", "\x00", " ", "1",
    "None", "true", "a/b", "%s", "{0}", "<b>", "&amp;", "'", '"', "\n", "*", "&x", "!!python", "~",
    "é\u202e",
)  # fmt: skip
PIECES = (
    "[", "]", "{", "}", ":", ",", "-", "#", "|", ">", "<", "&", "*", "!", "%", "@", "`", "'", '"',
    "\x00", "\ufeff", "\u2028", "---\n", "...\n", "<<: ", "<!--", "]]>", "/>", "=", "  ", "\r",
    "\t",
)  # fmt: skip
SHAPE = re.compile(r"<(?:box|cylinder|sphere)[^>]*/>")
SHAPES = (
    '<mesh filename="new.urdf"/>', '<mesh filename="there.is.none"/>', '<mesh filename="."/>', "",
    '<mesh filename=""/>', '<mesh filename="package://x/y.stl"/>', "<mesh/>", "<box/>", "<sphere/>",
    '<mesh filename="empty.stl"/>', '<mesh filename="text.obj"/>', '<box size="1 1"/>',
    '<mesh filename="text.dae" scale="1 x 1"/>', '<capsule radius="0.1" length="1"/>',
)  # fmt: skip


def spoil(text: str, rng: Rng) -> str:
    """The text with one mistake, or some."""
    for _ in range(int(rng.geometric(0.6))):
        text = WAYS[int(rng.integers(len(WAYS)))](text, rng)
    return text


def one_of(things: Sequence[str], rng: Rng) -> str:
    """One of some texts."""
    return things[int(rng.integers(len(things)))]


def put(pattern: re.Pattern[str], things: Sequence[str]) -> Callable[[str, Rng], str]:
    """What puts one of some things in the place of a match."""

    def change(text: str, rng: Rng) -> str:
        found = list(pattern.finditer(text))
        if not found:
            return text
        here = found[int(rng.integers(len(found)))]
        return text[: here.start()] + one_of(things, rng) + text[here.end() :]

    return change


def swap_words(text: str, rng: Rng) -> str:
    """Exchange two words, so that names and keys are known but wrong."""
    found = list(WORD.finditer(text))
    if len(found) < 2:
        return text
    one, other = sorted(rng.permutation(len(found))[:2])
    a, b = found[int(one)], found[int(other)]
    return text[: a.start()] + b[0] + text[a.end() : b.start()] + a[0] + text[b.end() :]


def drop_lines(text: str, rng: Rng) -> str:
    """Leave out a line or two."""
    lines = text.splitlines(keepends=True)
    at = int(rng.integers(len(lines) or 1))
    return "".join(lines[:at] + lines[at + int(rng.integers(1, 3)) :])


def repeat_lines(text: str, rng: Rng) -> str:
    """Say some lines again elsewhere."""
    lines = text.splitlines(keepends=True)
    at, to = (int(k) for k in rng.integers(len(lines) or 1, size=2))
    return "".join(lines[:to] + lines[at : at + int(rng.integers(1, 4))] + lines[to:])


def insert(text: str, rng: Rng) -> str:
    """Put in a piece that means something."""
    at = int(rng.integers(len(text) + 1))
    return text[:at] + one_of(PIECES, rng) + text[at:]


def delete(text: str, rng: Rng) -> str:
    """Leave out some characters."""
    at = int(rng.integers(len(text) + 1))
    return text[:at] + text[at + int(rng.geometric(0.2)) :]


def cut(text: str, rng: Rng) -> str:
    """End the text early."""
    return text[: int(rng.integers(len(text) + 1))] if rng.random() < 0.2 else text


WAYS: tuple[Callable[[str, Rng], str], ...] = (
    *(put(NUMBER, NUMBERS),) * 4,
    *(put(WORD, NAMES),) * 2,
    put(SHAPE, SHAPES),
    swap_words,
    swap_words,
    drop_lines,
    repeat_lines,
    insert,
    delete,
    cut,
)
"""How texts are spoilt; those that come more than once come more often."""
