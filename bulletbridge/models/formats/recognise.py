"""Which format a robot's file is in, and who reads it: one table."""

import codecs
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypedDict

from typing_extensions import Unpack

from bulletbridge.bullet.xml_file import in_utf_8, read_xml
from bulletbridge.errors import ModelError
from bulletbridge.models.bundled import ENDING, find, split_arguments
from bulletbridge.models.folding import with_folded_links
from bulletbridge.models.formats.directives import DIRECTIVES, read_directives
from bulletbridge.models.formats.how import How
from bulletbridge.models.formats.mjcf import read_mjcf
from bulletbridge.models.formats.scratch import scratch_folder
from bulletbridge.models.formats.sdf import read_sdf
from bulletbridge.models.formats.sdf_frames import GAZEBO
from bulletbridge.models.formats.urdf import read_robot
from bulletbridge.models.formats.usd import ENDINGS, read_usd
from bulletbridge.models.loadable_robots import with_loadable_robots
from bulletbridge.models.loops_file import FLOATS, read_loops
from bulletbridge.models.meeting_frames import with_meeting_frames
from bulletbridge.models.mesh_places import POINTER
from bulletbridge.models.model_spec import ModelSpec
from bulletbridge.models.nearest_inertia import with_nearest_inertias
from bulletbridge.models.urdf_file import is_file

LOOPS_KEY = re.compile(rb"""^[ {]*["']?bulletbridge["']?\s*:""", re.MULTILINE)
"""What a loops file that is not called one has in it."""
DIRECTIVES_KEY = re.compile(rf"^{DIRECTIVES}:".encode(), re.MULTILINE)
"""What a file of Drake's model directives has in it."""
OLDER = {GAZEBO: "sdf"}
"""Outermost elements of older versions, and what they are called now."""
MJCF_PART = "mujocoinclude"
"""Outermost element of a file that is no model."""


Reader = Callable[[Path, Path, How], ModelSpec]
"""``read(path, folder, how)``: the model in a file; URDFs made of it go into the folder."""


@dataclass(frozen=True)
class Format:
    """A format that robots come in."""

    name: str  # what people call it
    read: Reader  # the model in a file
    root: str = ""  # of XML, the name of its outermost element
    endings: tuple[str, ...] = ()  # of anything else, how file names end
    says_base: bool = True  # whether it says what of it stands still


FORMATS: tuple[Format, ...] = (
    Format("URDF", read_robot, root="robot", says_base=False),
    Format("MJCF", read_mjcf, root="mujoco"),
    Format("SDF", read_sdf, root="sdf"),
    Format("USD", read_usd, endings=ENDINGS),
    Format(
        "Drake's model directives",
        lambda path, folder, how: read_directives(path, folder, lambda file: _read_part(file, how)),
        endings=(".dmd.yaml", ".dmd.yml"),
    ),
)
"""Every format but loops files, which are whatever is no XML and in no other one."""


class Reading(TypedDict, total=False):
    """How a robot's file is read.

    Attributes:
        fixed_base: Whether the robot's base is part of the world; None for what the file says,
            and a floating one, as of ``loadURDF``, where it says nothing.
        repair_inertia: Whether inertias that no body can have are replaced by the nearest that one
            can (``models/nearest_inertia.py``), with a note; they are an error otherwise, but for
            those that only the digits of the file have made impossible.
        repair_frames: Whether frames of loops that no joint can bring together are moved to where
            they meet (``models/meeting_frames.py``), with a note; they are an error otherwise. None
            for what they are where the file comes from: they do nothing in MuJoCo.
        inside: Folder that files which this one includes (MJCF, SDF, USD) must be in; that of the
            file unless given: nothing outside is opened.
        servos: Whether actuators of MJCF and drives of USD that follow a joint act, as springs and
            dampers; otherwise no force acts at actuated joints.
        keyframe: Name of the keyframe of MJCF that it starts at; the first one unless given.
    """

    fixed_base: bool | None
    repair_inertia: bool
    repair_frames: bool | None
    inside: str | Path | None
    servos: bool
    keyframe: str | None


def read_model(model: str | Path, folder: Path | None = None, **how: Unpack[Reading]) -> ModelSpec:
    """A model in any format.

    Args:
        model: Bundled name, path of a loops file or of a robot in another format, or the text of
            one in XML. After the path of a file that is xacro its arguments may follow:
            ``arm.urdf.xacro hand:=true``.
        folder: Where URDFs that are made on the way go; None for one that goes with the process.
        how: See ``Reading``.

    Raises:
        ModelError: There is no such model, or something in it that cannot be modelled.
        LoopFileError: The loops file cannot be understood.
    """
    path, (_, arguments) = find(model), split_arguments(model)
    form = format_of(path)
    if arguments and (form is None or form.root not in ("robot", "sdf")):
        raise ModelError(f"{path} is no xacro; leave {':=, '.join(arguments)}:= out")
    inside, servos, keyframe = how.get("inside"), how.get("servos", False), how.get("keyframe")
    if keyframe is not None and (form is None or form.root != "mujoco"):
        raise ModelError(f"{path} is no MJCF, which alone has keyframes; leave keyframe out")
    repair_inertia = how.get("repair_inertia", False)
    within = None if inside is None else _folder(inside)
    choices = within, servos, keyframe, repair_inertia, *arguments.items()
    folder = folder or scratch_folder(path, choices)
    if form is None:
        spec = with_loadable_robots(read_loops(path), folder)
    else:
        try:
            how_read = How(within, servos, arguments, how.get("fixed_base"), keyframe)
            spec = form.read(path, folder, how_read)
        except ModelError as error:
            if type(error) is not ModelError or path.name in str(error):
                raise
            raise ModelError(f"{path}: {error}") from None
    spec = _with_base(spec, how.get("fixed_base"), form is None or form.says_base)
    spec = with_nearest_inertias(spec, folder, rounded=not repair_inertia)
    spec = with_folded_links(spec, folder)
    meet = how.get("repair_frames")
    return with_meeting_frames(spec) if (spec.drawn_apart if meet is None else meet) else spec


def _read_part(file: Path, how: How) -> ModelSpec:
    """A model that directives name: its base floats unless the file or a weld says otherwise."""
    form = format_of(file)
    if form is FORMATS[-1]:
        raise ModelError(f"{file} has directives of its own: name it by add_directives")
    if form is None:
        return read_loops(file)
    return form.read(file, scratch_folder(file, ()), how._replace(inside=None, arguments={}))


def _folder(inside: str | Path) -> Path:
    """A folder that was named."""
    folder = Path(inside)
    if not folder.is_dir():
        raise ModelError(f"inside='{inside}' is no folder; name one that holds the included files")
    return folder


def format_of(path: Path) -> Format | None:
    """The format of a file; None for a loops file.

    Raises:
        ModelError: It is of an unknown kind, or cannot be read.
    """
    begins = _begins(path)
    if begins.startswith(POINTER):
        raise ModelError(f"{path} is only a pointer of Git LFS; `git lfs pull` fetches the robot")
    for form in FORMATS:
        if path.name.lower().endswith(form.endings):
            return form
    if path.name.endswith((".yaml", ".yml")):
        return FORMATS[-1] if DIRECTIVES_KEY.search(begins) else None
    if not begins and is_file(path) and os.access(path, os.R_OK):
        raise ModelError(f"{path} is empty; is it the right file?")
    if not begins.startswith(b"<"):
        if path.suffix == ".py" and begins:
            raise ModelError(
                f"{path} is a program, and no robot; what it closes by createConstraint goes to a"
                f" loops file by 'bulletbridge run --save-loops NAME {path.name}'"
            )
        if begins and not LOOPS_KEY.search(begins):
            raise ModelError(
                f"{path} is no robot that is known: give URDF, MJCF or SDF, which begin with '<',"
                " USD, or a loops file, which has 'bulletbridge: 1' in it and is called"
                f" NAME{ENDING}"
            )
        return None
    root = str(read_xml(path).tag)
    for form in FORMATS:
        if form.root and form.root == OLDER.get(root, root):
            return form
    if root == MJCF_PART:
        raise ModelError(
            f"{path} is a part that MJCF files include; load the one that includes it, which begins"
            " with <mujoco>"
        )
    known = ", ".join(f"<{form.root}> ({form.name})" for form in FORMATS if form.root)
    raise ModelError(f"{path} begins with <{root}>, which is no robot; known are {known}")


def _begins(path: Path) -> bytes:
    """The first bytes of a file that are no blanks; none if it is empty or cannot be read."""
    try:
        with path.open("rb") as file:
            return in_utf_8(file.read(10_000)).removeprefix(codecs.BOM_UTF8).lstrip()
    except (OSError, ValueError):
        return b""  # the reader says why


def _with_base(spec: ModelSpec, fixed: bool | None, said: bool) -> ModelSpec:
    """The model with a base as it was asked for, or a note on what was assumed."""
    if fixed is None:
        if said or any(body.fixed_base for body in spec.bodies):
            return spec
        note = (
            "the base floats, as with PyBullet's loadURDF, since the file does not say otherwise;"
            " fixed_base=True (--fixed-base) holds it"
        )
        return replace(spec, notes=(*spec.notes, note))
    if fixed and "base" in {**spec.start_q, **spec.start_v, **spec.start_guess}:
        raise ModelError(
            f"{spec.path} starts with a pose or velocity of the floating base; remove that from"
            " 'start', or do not fix the base"
        )
    bodies = tuple(replace(body, fixed_base=fixed) for body in spec.bodies)
    return replace(spec, bodies=bodies, notes=tuple(x for x in spec.notes if x != FLOATS))
