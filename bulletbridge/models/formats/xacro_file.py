"""URDFs and SDF that xacro makes: a file with macros, expanded by xacro's own library."""

import io
import re
from collections.abc import Collection, Generator, Mapping
from contextlib import contextmanager, redirect_stderr
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple
from xml.etree import ElementTree as Xml

from bulletbridge.bullet.xml_file import parse_xml, read_xml, write_xml
from bulletbridge.errors import ModelError, naming_the_extra, nearest
from bulletbridge.models.formats.robot import listed
from bulletbridge.models.formats.scratch import scratch_folder
from bulletbridge.models.mesh_places import find_named, find_package

if TYPE_CHECKING:
    from collections.abc import Callable

PREFIX = "xacro:"
_EXPANDING = Lock()
"""xacro keeps what it is doing in variables of its module."""


class Expanded(NamedTuple):
    """What xacro has made of a file."""

    robot: Xml.Element
    notes: tuple[str, ...]  # what it warned of
    made: bool = True  # False of a file that has nothing to expand


class Arguments(dict[str, str]):
    """Arguments of a file, with the names of those that it asked for."""

    def __init__(self, given: Mapping[str, str]) -> None:
        """Begin with those that were given."""
        super().__init__(given)
        self.asked: set[str] = set()

    def __contains__(self, name: object) -> bool:
        """Whether there is one; xacro asks so where a file declares it."""
        self.asked.add(str(name))
        return super().__contains__(name)

    def __getitem__(self, name: str) -> str:
        """Value of one, which a file uses."""
        self.asked.add(name)
        return super().__getitem__(name)


def is_xacro(robot: Xml.Element) -> bool:
    """Whether xacro has something to expand in a file."""
    return any(str(element.tag).startswith(PREFIX) for element in robot.iter())


def expand(path: Path, given: Mapping[str, str]) -> Expanded:
    """Expand a file with macros.

    Packages of ``$(find NAME)`` are looked for as ``find_package`` has it. Expressions are
    evaluated as Python: as with xacro itself, files are to be trusted.

    Args:
        path: The file.
        given: Arguments, which ``<xacro:arg>`` declares.

    Raises:
        ModelError: The file cannot be expanded, or knows no such argument.
        MissingExtraError: xacro is not installed.
    """
    with naming_the_extra(f"{path} is xacro, which its own library expands", "bulletbridge[xacro]"):
        import xacro
        from xacro import substitution_args
    library: Any = xacro
    arguments, said = Arguments(given), io.StringIO()
    with _EXPANDING, _finding(substitution_args, path), redirect_stderr(said):
        try:
            document = library.process_file(str(path), mappings=arguments)
        except Exception as error:  # whatever Python in a file's expressions may raise
            places = dict.fromkeys(str(file) for file in reversed(library.filestack or ()) if file)
            within = f" (in {', included by '.join(places)})" if len(places) > 1 else ""
            raise ModelError(
                f"xacro cannot expand {path}: {_why(error, path, given)}{within}"
            ) from None
    robot = parse_xml(document.toxml().encode(), path)
    if robot.tag == "robot" and robot.find("link") is None and (macros := _macros(path)):
        raise ModelError(
            f"{path} makes no <link>: it defines {listed(macros)} for another file, which calls it;"
            " load that one"
        )
    for name in given:
        if name not in arguments.asked:
            known = sorted(arguments.asked)
            hint = nearest(name, known) or (f"there are {', '.join(known)}" if known else "none is")
            raise ModelError(f"{path} asks for no argument '{name}'; {hint}")
    lines = dict.fromkeys(line.strip() for line in said.getvalue().splitlines() if line.strip())
    notes = (f"xacro: {line.removeprefix('warning: ')}" for line in lines if "warning: " in line)
    return Expanded(robot, tuple(notes))


def read_expanded(path: Path, given: Mapping[str, str]) -> Expanded:
    """A file as it is, or as xacro expands it if there is something to expand.

    Raises:
        ModelError: It cannot be read; also as of ``expand``, or there are arguments for nothing.
        MissingExtraError: xacro is not installed.
    """
    robot = read_xml(path)
    if is_xacro(robot):
        return expand(path, given)
    if given:
        raise ModelError(f"{path} has nothing that xacro expands; leave {':=, '.join(given)}:= out")
    return Expanded(robot, (), made=False)


def expanded_file(path: Path, given: Mapping[str, str]) -> Path:
    """A URDF that xacro makes of a file; its meshes are named by whole paths, where there are any.

    Raises:
        ModelError: As of ``expand``.
        MissingExtraError: xacro is not installed.
    """
    robot, notes, _ = expand(path, given)
    for mesh in robot.iter("mesh"):
        found = find_named(mesh.get("filename", ""), path)
        if found is not None:
            mesh.set("filename", str(found))
    urdf = scratch_folder(path, tuple(given.items())) / f"{Path(path.stem).stem}.urdf"
    write_xml(robot, urdf, [f"made by xacro from {path.name}", *notes])
    return urdf


def _macros(path: Path) -> list[str]:
    """Names of the macros that a file defines."""
    tags = (element for element in read_xml(path).iter() if element.tag == f"{PREFIX}macro")
    return [f"the macro '{element.get('name', '')}'" for element in tags]


def _why(error: Exception, path: Path, given: Collection[str]) -> str:
    """What xacro says of an error, and what to do about it."""
    first: BaseException | None = error
    while first is not None and not isinstance(first, ModelError):  # that of ``_finding``
        first = getattr(first, "exc", None)
    said = " ".join(str(first or error).split()) or repr(error)
    missing = re.search(r"Undefined substitution argument (\w+)", said)
    if missing is not None:
        text = path.read_text(errors="replace")
        known = {*given, *re.findall(r"<xacro:arg\s[^>]*name=[\"'](\w+)", text)}
        asked = [name for name in re.findall(r"\$\(arg (\w+)\)", text) if name not in known]
        names = dict.fromkeys([missing.group(1), *asked])
        told = ", ".join(f"'{name}'" for name in names)
        what = "the arguments" if len(names) > 1 else "the argument"
        how = " ".join(f"{name}:=VALUE" for name in names)
        return f"it needs {what} {told}; give it, as in '{path.name} {how}'"
    if "unbound prefix" in said:
        return f'{said}; declare xmlns:xacro="http://www.ros.org/wiki/xacro" in its <robot>'
    return said


@contextmanager
def _finding(substitution_args: Any, path: Path) -> Generator[None]:
    """Context in which ``$(find NAME)`` is answered without ROS."""

    def find(name: str) -> str:
        found = find_package(name, path)
        if found is None:
            raise ModelError(
                f"there is no package '{name}': no folder above the file is called that, nor is one"
                " where ROS_PACKAGE_PATH and AMENT_PREFIX_PATH lead; set one of them"
            )
        return str(found)

    names: dict[str, Callable[[str], str]] = substitution_args._eval_dict
    before, in_expressions = substitution_args._eval_find, names["find"]
    substitution_args._eval_find, names["find"] = find, find
    try:
        yield
    finally:
        substitution_args._eval_find, names["find"] = before, in_expressions
