"""Write a model in a format of choice: one table of writers."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from typing_extensions import Unpack

from bulletbridge.errors import ModelError
from bulletbridge.models.bundled import ENDING
from bulletbridge.models.formats.loadable import write_urdf
from bulletbridge.models.formats.loop_joint_writer import write_loop_joints
from bulletbridge.models.formats.mjcf_writer import write_mjcf
from bulletbridge.models.formats.recognise import Reading, read_model
from bulletbridge.models.formats.sdf_writer import write_sdf
from bulletbridge.models.formats.urdf_text import SCENERY
from bulletbridge.models.formats.written import Written, robot_to_write
from bulletbridge.models.loops_file import write_loops
from bulletbridge.models.model_spec import BodySpec, ModelSpec, pybullet_data_folder

Writer = Callable[[ModelSpec, Path], Written]
"""``write(spec, path)``: files that begin with ``path``, which has no ending, and what was lost."""


def write_loops_file(spec: ModelSpec, path: Path) -> Written:
    """A loops file, and beside it the URDFs that it names."""
    files: list[Path] = []
    source = spec.path.name

    def copied(body: BodySpec) -> BodySpec:
        """The same whose URDF is a copy beside the loops file, but for PyBullet's own."""
        if pybullet_data_folder() in body.urdf.parents:
            return body
        files.append(_urdf_of(body, spec, path))
        said = f"converted from {source} by bulletbridge; loops are in {path.name}{ENDING}"
        write_urdf(robot_to_write(body.urdf), files[-1], [said])
        return replace(body, urdf=files[-1].resolve())

    bodies, scenery = (tuple(map(copied, part)) for part in (spec.bodies, spec.scenery))
    loops = path.with_name(path.name + ENDING)
    comments = [f"Converted from {source} by bulletbridge."]
    if spec.notes:
        comments += ["What was lost, changed or assumed:", *(f"- {note}" for note in spec.notes)]
    changed = replace(spec, bodies=bodies, scenery=scenery)
    write_loops(changed, loops, comments)
    return Written((loops, *files), ())


def _urdf_of(body: BodySpec, spec: ModelSpec, path: Path) -> Path:
    """Where a loops file's body goes."""
    if body in spec.scenery:
        return path.with_name(f"{path.name}_{SCENERY}_{body.name}.urdf")
    name = path.name if len(spec.bodies) == 1 else f"{path.name}_{body.name}"
    return path.with_name(f"{name}.urdf")


WRITERS: dict[str, Writer] = {
    "loops": write_loops_file,
    "loop_joint": write_loop_joints,
    "mjcf": write_mjcf,
    "sdf": write_sdf,
}
"""Every format that is written, by the name that ``--to`` takes."""
WRITTEN = {"loops": ENDING, "loop_joint": ".urdf", "mjcf": ".xml", "sdf": ".sdf"}
"""How the file of each ends; loops files have URDFs beside them."""


def convert(
    model: str | Path | ModelSpec,
    output: str | Path,
    to: str = "loops",
    **how: Unpack[Reading],
) -> Written:
    """Write a model in another format.

    Args:
        model: As ``load`` takes it.
        output: Name of what is written; endings are put to it.
        to: One of ``WRITERS``: ``loops`` for a loops file with its URDF, ``loop_joint`` for a
            URDF that has its loops in it, as Isaac Sim reads them, ``mjcf``, ``sdf``.
        how: As ``read_model`` takes it.

    Returns:
        The files, and everything that was lost, changed or assumed on the way.

    Raises:
        ModelError: The model cannot be read or written, or would be overwritten.
        LoopFileError: A loops file cannot be understood, or cannot hold the model.
    """
    if to not in WRITERS:
        raise ModelError(f"'{to}' is no format that is written; there are {', '.join(WRITERS)}")
    spec = model if isinstance(model, ModelSpec) else read_model(model, **how)
    path = Path(output)
    meant = [name for name, ending in WRITTEN.items() if path.name.endswith(ending)]
    if meant and to not in meant and not (to == "loops" and path.suffix == WRITTEN["loop_joint"]):
        raise ModelError(
            f"'{output}' is the name of another format than '{to}': give --to {meant[0]}, or a name"
            " without an ending"
        )
    for ending in WRITTEN.values():
        path = path.with_name(path.name.removesuffix(ending)) if path.name else path
    if not path.name:
        raise ModelError(f"'{output}' is no name for a file; give one with -o")
    bodies = (*spec.bodies, *spec.scenery)
    sources = {spec.path.resolve(), *(body.urdf.resolve() for body in bodies)}
    files = [path.with_name(path.name + WRITTEN[to])]
    if to == "loops":
        files += [_urdf_of(body, spec, path) for body in bodies]
    for file in files:
        if file.resolve() in sources:
            raise ModelError(f"{file} would be overwritten; give another name with -o")
    written = WRITERS[to](spec, path)
    return Written(written.files, (*spec.notes, *written.notes))
