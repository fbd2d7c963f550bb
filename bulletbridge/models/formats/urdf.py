"""A URDF as a model."""

from pathlib import Path

from bulletbridge.models.model_spec import BodySpec, ModelSpec
from bulletbridge.models.urdf_file import require_tree
from bulletbridge.models.urdf_names import WORLD
from bulletbridge.models.xml_file import read_xml


def read_robot(path: Path, folder: Path) -> ModelSpec:
    """The model in a URDF.

    Args:
        path: The file.
        folder: Where a URDF that Bullet can load goes, if this one is not.

    Raises:
        ModelError: The file cannot be read, or something in it cannot be modelled.
    """
    require_tree(path)
    robot = read_xml(path)
    children = {child.get("link") for child in robot.iterfind("joint/child")}
    roots = [link.get("name") for link in robot.iterfind("link")]
    fixed = any(name == WORLD for name in roots if name not in children)
    return ModelSpec(path.stem, path, (BodySpec("robot", path.resolve(), fixed),), ())
