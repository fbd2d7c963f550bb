"""Pages of the documentation as programs: what they write, run, and print."""

import contextlib
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bulletbridge.cli import run

BLOCK = re.compile(
    r"(?:<!-- (?P<mark>[^>]+?) -->\n)?^```(?P<language>\w+)\n(?P<text>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
ROUND_OFF = re.compile(r"-?\b\d(\.\d+)?e-(1[2-9]|[2-9]\d)\b|-0\.(?=[ \]])")
"""Numbers that differ between processors."""


@dataclass(frozen=True)
class Block:
    """A fenced block of a page.

    Attributes:
        mark: A comment right above: ``file: NAME`` writes the block there, ``not run`` leaves it.
        language: What stands behind the fence.
        text: What is between the fences.
        printed: The ``text`` block that follows, which it must print; None if there is none.
    """

    mark: str
    language: str
    text: str
    printed: str | None


def blocks(page: str) -> list[Block]:
    """The blocks of a page that do something, in order."""
    found = list(BLOCK.finditer(page))
    result = list[Block]()
    for here, after in zip(found, [*found[1:], None], strict=True):
        said = None
        if after is not None and after["language"] == "text" and not after["mark"]:
            said = after["text"]
        if here["language"] != "text":
            result.append(Block(here["mark"] or "", here["language"], here["text"], said))
    return result


def plain(printed: str) -> list[list[str]]:
    """What is compared of a printed text, line by line: its words, round-off and zeros alike."""
    lines = ROUND_OFF.sub("~", printed).splitlines()
    return [
        ["~" if word == "0" else word for word in line.split()] for line in lines if line.strip()
    ]


def differs(heard: str, said: str) -> list[str]:
    """Lines of a page that were not printed; ``...`` stands for any number of lines."""
    left, gap = plain(heard), False
    for line in plain(said):
        if line == ["..."]:
            gap = True
            continue
        if gap and line in left:
            left = left[left.index(line) :]
        if not left or left[0] != line:
            return [" ".join(line)]
        left, gap = left[1:], False
    return [] if gap or not left else ["printed besides: " + " ".join(left[0])]


def perform(page: Path, folder: Path) -> Iterator[tuple[Block, str, str]]:
    """Write and run what a page says, one block after the other, in the current folder.

    Returns:
        Each block with what it printed, and what the page says that it prints.
    """
    names: dict[str, Any] = {"__name__": page.stem}
    for block in blocks(page.read_text(encoding="utf-8")):
        if block.mark.startswith("file: "):
            (folder / block.mark.removeprefix("file: ")).write_text(block.text, encoding="utf-8")
        elif block.mark == "not run":
            continue
        elif block.language == "python":
            heard = io.StringIO()
            with contextlib.redirect_stdout(heard):
                exec(compile(block.text, page.name, "exec"), names)
            yield block, heard.getvalue(), block.printed or ""
        elif block.language == "console":
            yield from _commands(block)


def _commands(block: Block) -> Iterator[tuple[Block, str, str]]:
    """Run the commands of a block; what follows each is what it prints, if anything is shown."""
    for said in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        command, _, printed = said.partition("\n")
        program, *arguments = command.split("  #")[0].split()
        if program != "bulletbridge":
            continue
        heard = io.StringIO()
        with contextlib.redirect_stdout(heard):
            code = run(arguments)
        assert code == 0, f"{command} ended with {code}"
        yield block, heard.getvalue() if printed.strip() else "", printed
