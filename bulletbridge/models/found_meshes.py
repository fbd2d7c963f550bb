"""What a loops file names, robots and scenery, with meshes found or left out as elsewhere."""

from dataclasses import replace
from pathlib import Path

from bulletbridge.models.formats.loadable import settle_meshes, write_urdf
from bulletbridge.models.formats.urdf_tree import UrdfTree
from bulletbridge.models.model_spec import BodySpec, ModelSpec, pybullet_data_folder
from bulletbridge.models.xml_file import read_xml


def with_found_meshes(spec: ModelSpec, folder: Path) -> ModelSpec:
    """The model with URDFs whose meshes Bullet can load; shapes of others are left out, with notes.

    Args:
        spec: The model; one whose meshes are all where Bullet looks is returned as it is.
        folder: Where changed URDFs go.

    Raises:
        ModelError: A URDF cannot be read or written.
    """
    notes = list(spec.notes)
    robots = _settled(spec.bodies, folder, "meshes", notes)
    scenery = _settled(spec.scenery, folder, "scenery_meshes", notes)
    return replace(spec, bodies=robots, scenery=scenery, notes=tuple(notes))


def _settled(
    given: tuple[BodySpec, ...], folder: Path, prefix: str, notes: list[str]
) -> tuple[BodySpec, ...]:
    """Bodies whose meshes Bullet can load; adds notes, and calls changed files by the prefix."""
    bodies = list(given)
    for k, body in enumerate(given):
        if pybullet_data_folder() in body.urdf.parents or b"<mesh" not in body.urdf.read_bytes():
            continue
        tree = UrdfTree(body.urdf, read_xml(body.urdf))
        changed, said = settle_meshes(tree)
        if not changed:
            continue
        urdf = folder.resolve() / f"{prefix}_{k}_{body.urdf.name}"
        write_urdf(tree.robot, urdf, [f"made from {body.urdf.name} for Bullet"])
        bodies[k] = replace(body, urdf=urdf)
        notes += [f"{body.urdf.name}: {each}" for each in said]
    return tuple(bodies)
