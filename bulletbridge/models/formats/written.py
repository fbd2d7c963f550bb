"""What writers of formats share: their result, and a robot's URDF ready to be written elsewhere."""

from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree as Xml

from bulletbridge.bullet.xml_file import read_xml
from bulletbridge.models.mesh_places import find_named


class Written(NamedTuple):
    """Files that were written, and what the format cannot hold, a sentence each."""

    files: tuple[Path, ...]
    notes: tuple[str, ...]


def robot_to_write(urdf: Path) -> Xml.Element:
    """A URDF's root, its meshes and textures named by absolute paths where they are found."""
    robot = read_xml(urdf)
    for tag in ("mesh", "texture"):
        for element in robot.iter(tag):
            place = find_named(element.get("filename", ""), urdf)
            if place is not None:
                element.set("filename", place.as_posix())
    return robot
