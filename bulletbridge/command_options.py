"""Options of commands in records, where typer would have an argument for each of them."""

import functools
import inspect
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, cast

import typer

if TYPE_CHECKING:
    from bulletbridge.models.formats.recognise import Reading

T = TypeVar("T")


def grouped(command: Callable[..., T]) -> Callable[..., T]:
    """Have typer see each field of a command's arguments that are dataclasses as an option.

    The command that comes out takes what all of them hold by name, and hands the records on.
    """
    groups: dict[str, Any] = {}
    shown: list[inspect.Parameter] = []
    for name, given in inspect.signature(command).parameters.items():
        if is_dataclass(given.annotation):
            groups[name] = given.annotation
            shown += [_option(f.name, f.type, f.default) for f in fields(given.annotation)]
        else:
            shown.append(given.replace(kind=inspect.Parameter.KEYWORD_ONLY))

    @functools.wraps(command)
    def take(**values: Any) -> T:
        for name, record in groups.items():
            own = {f.name: values.pop(f.name) for f in fields(record) if f.name in values}
            values[name] = record(**own)
        return command(**values)

    vars(take)["__signature__"] = inspect.Signature(shown)
    take.__annotations__ = {option.name: option.annotation for option in shown}
    return take


def _option(name: str, kind: Any, default: Any) -> inspect.Parameter:
    """A field of a record as an argument."""
    known = inspect.Parameter.empty if default is MISSING else default
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=known, annotation=kind)


FixedBase = Annotated[
    bool | None,
    typer.Option(
        "--fixed-base/--floating-base",
        help="Whether the base stands still; what the file says unless given.",
    ),
]
JsonFile = Annotated[
    str | None, typer.Option("--json", metavar="FILE", help="Write JSON; - for stdout, alone.")
]


@dataclass(frozen=True)
class ReadingOptions:
    """How a robot's file is to be read."""

    fixed_base: FixedBase = None
    repair_inertia: Annotated[
        bool,
        typer.Option("--repair-inertia", help="Take the nearest inertias that bodies can have."),
    ] = False
    repair_frames: Annotated[
        bool | None,
        typer.Option(
            "--repair-frames/--keep-frames",
            help="Move frames of loops to where joints let them meet; those of MJCF unless told.",
            show_default=False,
        ),
    ] = None
    inside: Annotated[
        Path | None,
        typer.Option(
            "--inside",
            metavar="FOLDER",
            help="Folder that included files (MJCF, SDF, USD) must be in; that of the file if "
            "none.",
        ),
    ] = None
    servos: Annotated[
        bool,
        typer.Option(
            "--servos", help="Let servos of MJCF, drives of USD act, as springs and dampers."
        ),
    ] = False
    keyframe: Annotated[
        str | None,
        typer.Option(
            "--keyframe", metavar="NAME", help="Start at this keyframe of MJCF; the first if none."
        ),
    ] = None

    @property
    def given(self) -> "Reading":
        """How files are read, as keyword arguments of ``read_model``."""
        return cast("Reading", dict(vars(self)))

    @property
    def words(self) -> list[str]:
        """As a command has them: what was not given is left out."""
        given = vars(self)
        words = [said.get(given[name], "") for name, said in FLAGS.items()]
        named = {"--inside": self.inside, "--keyframe": self.keyframe}
        for flag, value in named.items():
            words += [] if value is None else [flag, str(value)]
        return [word for word in words if word]


FLAGS = {
    "fixed_base": {True: "--fixed-base", False: "--floating-base"},
    "repair_inertia": {True: "--repair-inertia"},
    "repair_frames": {True: "--repair-frames", False: "--keep-frames"},
    "servos": {True: "--servos"},
}
"""Words of a command that say how a file is read."""
