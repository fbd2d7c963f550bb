"""XML of robots: read as leniently as Bullet does, and without entities; written with comments."""

import codecs
import re
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn
from xml.etree import ElementTree as Xml
from xml.parsers import expat

from bulletbridge.console import write_text
from bulletbridge.errors import ModelError

COMMENT, STRAY = re.compile(rb"<!--.*?-->", re.DOTALL), re.compile(rb"&(?![#\w]+;)")
TIGHT = re.compile(rb'(=\s*"[^"<>]*")(?=[A-Za-z_])')
"""An attribute that the next one follows without a blank."""
DECLARATION = re.compile(rb"\A\s*<\?\s*xml.*?\?>", re.DOTALL)
ENCODING = re.compile(rb"""\A\s*<\?xml[^>]*?encoding\s*=\s*["']([\w.-]+)""")
TEMPLATES = {
    b"<%": "expand the template that it is first: `erb FILE > robot.sdf`, if it is Ruby's",
    b"{%": "expand the template that it is first, Jinja's by its looks",
}
"""What programs stand behind in a text that something else expands, and what to do with it.

Gazebo's models are ERB's, those of PX4 Jinja's.
"""
SPLIT = re.compile(rb"""=\s*("[^"<]*[\t\r\n]|'[^'<]*[\t\r\n])""")
"""An attribute with a tab or an end of line in it, at which Bullet does not part numbers."""
UTF_16 = codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
UNSEEN = dict.fromkeys((0xAD, *range(0x200B, 0x2010), 0x2060, 0xFEFF))
"""Characters without width, as texts have them that are copied from web pages."""
AS_SEEN = UNSEEN | dict.fromkeys((0x2013, 0x2212), "-")
"""The same, and dashes that stand for a minus, as characters of numbers."""
MOST_BYTES = 100_000_000
"""Size of a file that is refused."""


def read_xml(path: Path) -> Xml.Element:
    """The root of an XML file.

    What Bullet reads all the same is let pass: prefixes that nothing declares, stray ampersands,
    attributes without a blank between, whatever is in comments or after a zero byte, a declaration
    after comments or with a blank in it, and text in another encoding than the one named. UTF-16,
    which Bullet does not read (``is_plain_text``), is read, too.
    """
    try:
        size = path.stat().st_size
        if size > MOST_BYTES:
            raise ModelError(
                f"{path} has {size / 1e6:.0f} MB; robots may have {MOST_BYTES / 1e6:g}: is it the"
                " right file?"
            )
        text = in_utf_8(path.read_bytes()).split(b"\0")[0].strip()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise ModelError(f"cannot read {path}: {why}; check the path") from None
    text = COMMENT.sub(_blank, text)
    text = DECLARATION.sub(_blank, text)  # after a licence in a comment it would be refused
    return parse_xml(TIGHT.sub(rb"\1 ", STRAY.sub(b"&amp;", text)), path)


def parse_xml(text: bytes, path: Path) -> Xml.Element:
    """The root of XML in UTF-8, of a file; prefixes stay as they are written."""

    def refuse(name: str, *_: object) -> NoReturn:
        raise ModelError(f"{path} declares the entity '{name}'; write its text where it is used")

    build = Xml.TreeBuilder()
    parser = expat.ParserCreate("utf-8")
    parser.StartElementHandler = build.start
    parser.EndElementHandler = build.end
    parser.CharacterDataHandler = build.data
    parser.EntityDeclHandler = refuse
    try:
        parser.Parse(text, True)
    except expat.ExpatError as error:
        told = (how for mark, how in TEMPLATES.items() if mark in text)
        how = next(told, "correct it there")
        raise ModelError(f"{path} is not well-formed XML: {error}; {how}") from None
    return build.close()


def in_utf_8(text: bytes) -> bytes:
    """A text in UTF-8, which it is already, or in UTF-16, as it says, or as its declaration says.

    What is none of these is taken for Latin-1, in which every text is one.
    """
    if text.startswith(UTF_16):
        return text.decode("utf-16", "replace").encode()
    named = ENCODING.match(text.removeprefix(codecs.BOM_UTF8))
    for encoding in ("utf-8", named.group(1).decode() if named else "", "iso-8859-1"):
        try:
            return text.decode(encoding).encode()
        except (UnicodeError, LookupError):
            continue
    return text


def is_plain_text(path: Path) -> bool:
    """Whether Bullet reads the text of a file: UTF-8, usual ends of lines, declaration first."""
    text = path.read_bytes()
    whole = in_utf_8(text) == text and b"\r" not in text.replace(b"\r\n", b"")
    return whole and text.removeprefix(codecs.BOM_UTF8).lstrip().find(b"<?xml") <= 0


def is_plain_urdf(path: Path) -> bool:
    """Whether Bullet reads all of a URDF as XML has it."""
    return is_plain_text(path) and not SPLIT.search(path.read_bytes())


def _blank(found: re.Match[bytes]) -> bytes:
    """As many lines without anything."""
    return b"\n" * found.group().count(b"\n")


def as_seen(text: str) -> str:
    """A text of numbers as it looks: without characters of no width, which end a number in C."""
    return text if text.isascii() else text.translate(AS_SEEN)


def to_number(piece: str) -> float:
    """The number that a piece of text is, for C as well.

    Raises:
        ValueError: It is none, or one for Python alone, as ``1_000`` and digits of other scripts.
    """
    if "_" in piece or not piece.isascii():
        raise ValueError(piece)
    return float(piece)


def leading_number(piece: str) -> str:
    """The number that a text begins with, which is what C reads of it; empty if none does."""
    found = NUMBER.match(piece)
    return found.group() if found else ""


def drop(parent: Xml.Element, *tags: str) -> None:
    """Take all children of some names away."""
    for child in [child for child in parent if child.tag in tags]:
        parent.remove(child)


def write_xml(root: Xml.Element, path: Path, comments: Iterable[str] = ()) -> None:
    """Write an XML file, with comments above its root.

    Raises:
        ModelError: It cannot be written there.
    """
    Xml.indent(root)
    said = "".join(f"<!-- {line.replace('--', '- -').rstrip('-')} -->\n" for line in comments)
    text = f'<?xml version="1.0"?>\n{said}{Xml.tostring(root, encoding="unicode")}\n'
    write_text(path, text)
