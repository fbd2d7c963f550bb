"""A URDF whose inertias Bullet takes to round-off: possible ones, in their principal axes.

Where a tensor has products of inertia, Bullet turns until what is left of them is a millionth.
Turned before, they are what the file says to round-off, and so are M and h, in Bullet too. Tensors
that no body can have it makes zero, and MuJoCo refuses them. On a fixed joint they matter only in
sum with those of all that is fixed to each other, which often is possible: frames of six times
1e-6, parts whose products of inertia were mirrored.
"""

from pathlib import Path
from xml.etree import ElementTree as Xml

import numpy as np

from bulletbridge.bullet.checks import can_be_had, read_inertia
from bulletbridge.mechanism.frames import matrix_rpy, rpy_matrix
from bulletbridge.models.formats.loadable import write_urdf
from bulletbridge.models.formats.scratch import scratch_folder
from bulletbridge.models.formats.urdf_text import MOMENTS, exact, principal
from bulletbridge.models.formats.urdf_tree import UrdfTree
from bulletbridge.models.formats.written import robot_to_write
from bulletbridge.models.urdf_file import ENTRIES
from bulletbridge.numerics.records import Array

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


def hand_over_tensors(tree: UrdfTree) -> bool:
    """Give impossible tensors to the largest link that theirs are fixed to, in place.

    They stay where they are, for Bullet and its reader to tell, where that one cannot have them
    either.

    Returns:
        Whether anything changed.

    Raises:
        ModelError: Numbers of the file are none.
    """
    known = {name: read_inertia(link.find("inertial")) for name, link in tree.links.items()}
    found = {name: own for name, own in known.items() if own is not None and own.mass > 0.0}
    lost = [name for name, own in found.items() if not own.is_possible()]
    if not lost:
        return False
    groups = tree.rigid_groups()
    changed = False
    for root in dict.fromkeys(groups[name] for name in lost):
        there = [name for name in found if groups[name] == root]
        carrier = max(there, key=lambda n: float(np.trace(found[n].J)))
        R, total = tree.poses[carrier].R, found[carrier].J
        given = [name for name in lost if groups[name] == root and name != carrier]
        for name in given:
            turn = R.T @ tree.poses[name].R
            total = total + turn @ found[name].J @ turn.T
        if given and can_be_had(total):
            _set_tensor(tree, carrier, total)
            for name in given:
                _set_tensor(tree, name, np.zeros((3, 3)))
            changed = True
    return changed


def _set_tensor(tree: UrdfTree, name: str, J: Array) -> None:
    """Give a link a tensor (3, 3) in the link's axes, about its centre of mass."""
    inertial = tree.links[name].find("inertial")
    tensor = None if inertial is None else inertial.find("inertia")
    if inertial is None or tensor is None:
        return
    _, rpy = tree.origin(inertial.find("origin"), f"link '{name}'")
    R = rpy_matrix(rpy)
    own = R.T @ J @ R
    for key, i, j in ENTRIES:
        tensor.set(key, exact((own[i, j],)))
