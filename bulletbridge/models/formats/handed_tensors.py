"""Tensors that no body can have, given to what their links are fixed to.

Bullet makes them zero and MuJoCo refuses them. On a fixed joint they matter only in sum with those
of all that is fixed to each other, which often is possible: frames of six times 1e-6, parts whose
products of inertia were mirrored.
"""

import numpy as np

from bulletbridge.bullet.checks import can_be_had, read_inertia
from bulletbridge.mechanism.frames import rpy_matrix
from bulletbridge.models.formats.urdf_text import exact
from bulletbridge.models.formats.urdf_tree import UrdfTree
from bulletbridge.models.urdf_file import ENTRIES
from bulletbridge.numerics.records import Array


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
