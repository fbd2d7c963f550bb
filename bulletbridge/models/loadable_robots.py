"""What a loops file names, robots and scenery, as Bullet loads it: what it refuses is mended."""

from dataclasses import replace
from pathlib import Path

from bulletbridge.bullet.xml_file import is_plain_urdf, read_xml
from bulletbridge.models.formats.loadable import (
    settle_limits,
    settle_meshes,
    unit_axes,
    whole_inertials,
    whole_names,
    write_urdf,
)
from bulletbridge.models.formats.urdf_tree import UrdfTree
from bulletbridge.models.model_spec import BodySpec, ModelSpec, pybullet_data_folder
from bulletbridge.models.urdf_file import check_tree


def with_loadable_robots(spec: ModelSpec, folder: Path) -> ModelSpec:
    """The model with URDFs that Bullet can load, and notes on what was changed for that.

    Meshes are found or left out; numbers, limits, axes, inertials and the encoding are as in a URDF
    that is loaded without a loops file.

    Args:
        spec: The model; one that Bullet loads as it is, is returned as it is.
        folder: Where changed URDFs go.

    Raises:
        ModelError: A URDF cannot be read or written.
    """
    notes = list(spec.notes)
    robots = _settled(spec.bodies, folder, "robot", notes)
    scenery = _settled(spec.scenery, folder, "scenery", notes)
    return replace(spec, bodies=robots, scenery=scenery, notes=tuple(notes))


def _settled(
    given: tuple[BodySpec, ...], folder: Path, prefix: str, notes: list[str]
) -> tuple[BodySpec, ...]:
    """Bodies that Bullet can load; adds notes, in folders that begin with the prefix."""
    bodies = list(given)
    for k, body in enumerate(given):
        if pybullet_data_folder() in body.urdf.parents:
            continue
        robot = read_xml(body.urdf)
        if robot.tag != "robot":
            continue  # Bullet says so
        tree = UrdfTree(body.urdf, robot)
        check_tree(robot, body.urdf)
        turned, said = tree.settle_turns()
        said += tree.settle_numbers()
        limits, about_limits = settle_limits(tree, rubbing=False)
        said += [*about_limits, *unit_axes(tree), *whole_names(tree), *whole_inertials(tree)]
        meshes, about_meshes = settle_meshes(tree)
        said += about_meshes
        if not (said or limits or meshes or turned) and is_plain_urdf(body.urdf):
            continue
        urdf = folder.resolve() / f"{prefix}_{k}" / body.urdf.name
        urdf.parent.mkdir(exist_ok=True)
        write_urdf(robot, urdf, [f"made from {body.urdf.name} for Bullet"])
        bodies[k] = replace(body, urdf=urdf)
        notes += [f"{body.urdf.name}: {each}" for each in said]
    return tuple(bodies)
