"""A URDF whose inertias Bullet takes to round-off: possible ones, in their principal axes.

Where a tensor has products of inertia, Bullet turns until what is left of them is a millionth.
Turned before, they are what the file says to round-off, and so are M and h, in Bullet too.
"""

from pathlib import Path
from xml.etree import ElementTree as Xml

from bulletbridge.bullet.checks import can_be_had, read_inertia
from bulletbridge.mechanism.frames import matrix_rpy
from bulletbridge.models.formats.handed_tensors import hand_over_tensors
from bulletbridge.models.formats.loadable import write_urdf
from bulletbridge.models.formats.scratch import scratch_folder
from bulletbridge.models.formats.urdf_text import MOMENTS, exact, principal
from bulletbridge.models.formats.urdf_tree import UrdfTree
from bulletbridge.models.formats.written import robot_to_write

PRODUCTS = ("ixy", "ixz", "iyz")


def in_principal_axes(urdf: Path) -> Path:
    """The URDF that Bullet is to load: the same file where no inertia has products.

    Tensors that no body can have go to a link that theirs is fixed to. They stay as they are, for
    Bullet and its reader to tell, where that one cannot have them either.

    Raises:
        ModelError: The URDF cannot be read, or the one in its place not be written.
    """
    robot = robot_to_write(urdf)
    changed = hand_over_tensors(UrdfTree(urdf, robot))
    for link in robot.iterfind("link"):
        inertial = link.find("inertial")
        tensor = None if inertial is None else inertial.find("inertia")
        found = read_inertia(inertial)
        if inertial is None or tensor is None or found is None:
            continue
        if not any(_is_not_zero(tensor.get(key)) for key in PRODUCTS) or not can_be_had(found.J):
            continue
        axes, moments = principal(found.J)
        origin = inertial.find("origin")
        if origin is None:
            origin = Xml.SubElement(inertial, "origin")
        origin.set("rpy", exact(matrix_rpy(axes)))
        for key, value in zip(MOMENTS, (*moments, 0.0, 0.0, 0.0), strict=True):
            tensor.set(key, exact((value,)))
        changed = True
    if not changed:
        return urdf
    made = scratch_folder(urdf, ("principal axes",)) / urdf.name
    write_urdf(robot, made, [f"made from {urdf.name} for Bullet: inertias as it takes them"])
    return made


def _is_not_zero(text: str | None) -> bool:
    """Whether a text is a number other than zero."""
    try:
        return text is not None and float(text) != 0.0
    except ValueError:
        return False
