"""An MJCF file compiled by MuJoCo, without what the file names but is not there."""

import warnings
from importlib import import_module
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

from bulletbridge.bullet.xml_file import is_plain_text, read_xml
from bulletbridge.errors import ModelError, naming_the_extra
from bulletbridge.models.formats.mjcf_older import mended, remedy
from bulletbridge.models.formats.robot import listed
from bulletbridge.models.mesh_places import why_no_mesh

KEYFRAME = "keyframe"
"""What MuJoCo calls it in errors about it."""


def library() -> Any:
    """MuJoCo.

    Raises:
        MissingExtraError: It is not installed.
    """
    with naming_the_extra("MJCF files are read by MuJoCo", "bulletbridge[mjcf]"):
        return import_module("mujoco")


def compile_mjcf(
    path: Path, inside: Path | None = None, keyframe: str | None = None
) -> tuple[Any, Any, list[str]]:
    """MuJoCo's specification and model of a file, and notes of what was missing.

    Args:
        path: The file.
        inside: Folder that included files must be in; that of the file unless given.
        keyframe: The one that the model is to have of them; all unless given.

    Raises:
        ModelError: It cannot be read, has no such keyframe, includes files from elsewhere, or
            needs one that is not there.
    """
    mujoco = library()
    parts = _included_inside(path.resolve(), (inside or path.parent).resolve())
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        spec, notes = _read(mujoco, path, all(map(is_plain_text, parts)))
        notes += _drop_missing(spec, path)
        # of muscles, which do not act here: MuJoCo pulls at the robot until that converges, or not
        spec.compiler.LRopt.mode = mujoco.mjtLRMode.mjLRMODE_NONE
        if keyframe is not None:
            _keep(spec, keyframe)
        try:
            model = _compile(spec, notes, keyframe is not None)
        except (ValueError, OSError, RuntimeError) as error:
            raise ModelError(f"MuJoCo cannot compile {path}: {_said(error)}; correct it") from None
    notes += dict.fromkeys(f"MuJoCo says: {_said(warning.message)}" for warning in warned)
    return spec, model, notes


def _keep(spec: Any, keyframe: str) -> None:
    """Have a specification start at a keyframe, by leaving all others out."""
    names = [key.name for key in spec.keys]
    if keyframe not in names:
        there = f"there are: {listed(filter(None, names))}" if any(names) else "none has a name"
        raise ModelError(f"there is no keyframe '{keyframe}'; {there}")
    for key in [key for key in spec.keys if key.name != keyframe]:
        spec.delete(key)


def _compile(spec: Any, notes: list[str], chosen: bool) -> Any:
    """MuJoCo's model; without keyframes that do not fit, unless chosen, which is noted."""
    try:
        return spec.compile()
    except ValueError as error:
        if KEYFRAME not in str(error) or not spec.keys or chosen:
            raise
        for key in list(spec.keys):
            spec.delete(key)
        notes.append(f"keyframes are left out: {_said(error)}")
        return spec.compile()


def _read(mujoco: Any, path: Path, plain: bool) -> tuple[Any, list[str]]:
    """MuJoCo's specification of a file, without settings that only older versions know; notes.

    Args:
        mujoco: The library.
        path: The file.
        plain: Whether MuJoCo reads its text, and that of its parts; it is in UTF-8.
    """
    # MuJoCo knows what a file is by its ending alone
    known = plain and path.suffix == ".xml"
    robot = None if known else _in_one(path, path.resolve().parent, ())
    notes = list[str]()
    while True:
        try:
            if robot is None:
                return mujoco.MjSpec.from_file(str(path)), notes
            spec = mujoco.MjSpec.from_string(Xml.tostring(robot, encoding="unicode"))
            spec.modelfiledir = str(path.resolve().parent)
            return spec, notes
        except (ValueError, OSError, RuntimeError) as error:
            said = _said(error)
        robot = _in_one(path, path.resolve().parent, ()) if robot is None else robot
        note = mended(robot, said)
        if not note:
            raise ModelError(f"MuJoCo cannot read {path}: {said}; {remedy(said)}")
        notes.append(note)


def _in_one(path: Path, folder: Path, outer: tuple[Path, ...]) -> Xml.Element:
    """A file with what it includes in the place of that; ``folder`` is the outermost one's."""
    robot = read_xml(path)
    for parent in list(robot.iter()):
        for k, include in reversed(list(enumerate(parent))):
            file = included(folder, path, include)
            if include.tag == "include" and file not in outer:
                parent[k : k + 1] = list(_in_one(file, folder, (*outer, file)))
    return robot


def _said(error: Warning | Exception | str) -> str:
    return " ".join(str(error).split()).rstrip(".;")


def included(folder: Path, part: Path, include: Xml.Element) -> Path:
    """Where a file that a part includes is: from the outermost one's folder, or else the part's."""
    name = include.get("file") or ""
    found = (folder / name).resolve()
    beside = (part.parent / name).resolve()
    return beside if beside.is_file() and not found.is_file() else found


def _included_inside(path: Path, top: Path) -> set[Path]:
    """A file and what it includes, all of it inside a folder."""
    found, todo = set[Path](), [path]
    while todo:
        part = todo.pop()
        if part != path and not part.is_relative_to(top):
            raise ModelError(
                f"{path} includes {part}, which is outside {top}; name a folder that holds both by"
                " inside=FOLDER (--inside FOLDER)"
            )
        if part in found:
            continue
        found.add(part)
        for include in read_xml(part).iter("include"):
            file = included(path.parent, part, include)
            if file.is_relative_to(top) and not file.is_file():
                raise ModelError(
                    f"{part} includes '{include.get('file')}', but there is no file {file}, nor one"
                    " beside it; put it there"
                )
            todo.append(file)
    return found


def asset_path(spec: Any, path: Path, file: str, folder: str) -> Path:
    """Where a mesh or another asset of an MJCF file is; it may not be there."""
    name = Path(file).name if spec.strippath else file
    return path.resolve().parent / (folder or "") / name


def _drop_missing(spec: Any, path: Path) -> list[str]:
    """Take out what needs files that are not there, or are no part of mechanics."""
    mujoco = library()
    gone: dict[str, dict[str, Path]] = {"mesh": {}, "hfield": {}}
    broken = list[str]()
    for kind, assets in (("mesh", spec.meshes), ("hfield", spec.hfields)):
        for asset in list(assets):
            file = asset_path(spec, path, asset.file, spec.meshdir)
            if not asset.file:
                continue
            why = why_no_mesh(file) if file.is_file() else ""
            if why:
                broken.append(f"{kind} '{asset.file}' is {why}: as if it were not there")
            if why or not file.is_file():
                gone[kind][asset.name] = file
                spec.delete(asset)
    for material in spec.materials:
        material.textures = [""] * len(material.textures)
    for light in spec.lights:
        light.texture = ""
    for part in (spec.textures, spec.skins, spec.sensors):
        for item in list(part):
            spec.delete(item)
    materials = {material.name for material in spec.materials}
    for geom in spec.geoms:
        if geom.material not in materials:
            geom.material = ""
    affected: list[str] = []
    weightless: list[str] = []
    unknown: dict[str, str] = {}
    for geom in list(spec.geoms):
        if geom.meshname not in gone["mesh"] and geom.hfieldname not in gone["hfield"]:
            continue
        body = geom.parent
        if _weighs(spec, mujoco, geom, body):
            if body.joints:
                unknown.setdefault(body.name, str(gone["mesh"].get(geom.meshname, "")))
            elif _moves(body):
                weightless.append(body.name)
        affected.append(body.name)
        spec.delete(geom)
    astray = [*broken, *_drop_astray(spec)]
    if unknown:
        ies, each = ("ies", "each body") if len(unknown) > 1 else ("y", "the body")
        by_shapes = (
            spec.compiler.inertiafromgeom == mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_TRUE
        )
        how = ' and the compiler inertiafromgeom="auto"' if by_shapes else ""
        raise ModelError(
            f"{path}: the inertia of bod{ies} {listed(unknown)} is that of meshes that are not"
            f" there: {listed(dict.fromkeys(unknown.values()))}; put them there, or give {each} an"
            f" <inertial>{how}{''.join(f'; {each}' for each in broken)}"
        )
    if not affected:
        return astray
    notes = [f"the mass of {listed(weightless)} is that of a mesh that is not there: taken as zero"]
    return [*astray, *notes[: len(weightless)]] + [
        f"{len(gone['mesh']) + len(gone['hfield'])} mesh files are not there: shapes of"
        f" {listed(dict.fromkeys(affected))} are left out, masses are as the file gives them"
    ]


def _drop_astray(spec: Any) -> list[str]:
    """Take out what says of geoms and bodies that are not there whether they collide; a note."""
    geoms, bodies = {geom.name for geom in spec.geoms}, {body.name for body in spec.bodies}
    astray = [each for each in spec.pairs if not {each.geomname1, each.geomname2} <= geoms]
    astray += [each for each in spec.excludes if not {each.bodyname1, each.bodyname2} <= bodies]
    for each in astray:
        spec.delete(each)
    return [f"{len(astray)} <contact> between what is not there: left out"] if astray else []


def _moves(body: Any) -> bool:
    """Whether a body, or one that carries it, has a joint."""
    while body is not None and body.name != "world":
        if body.joints:
            return True
        body = body.parent
    return False


def _weighs(spec: Any, mujoco: Any, geom: Any, body: Any) -> bool:
    """Whether a geom's shape counts for the inertia of its body."""
    rule, always = spec.compiler.inertiafromgeom, mujoco.mjtInertiaFromGeom
    if rule == always.mjINERTIAFROMGEOM_FALSE or body.name == "world":
        return False
    if rule == always.mjINERTIAFROMGEOM_AUTO and body.explicitinertial:
        return False
    first, last = spec.compiler.inertiagrouprange
    return bool(first <= geom.group <= last and geom.mass != 0.0 and geom.density != 0.0)
