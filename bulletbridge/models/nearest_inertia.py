"""The inertia that a body can have and that is nearest to one that none can, or only a line.

A body's second moments, the eigenvalues of tr(J)/2 - J, are positive; principal moments then are
like sides of a triangle. Source: Wensing, Kim and Slotine, "Linear matrix inequalities for
physically consistent inertial parameter identification" (2018). The nearest tensor in the
Frobenius norm has the same axes and the nearest eigenvalues: Lewis and Malick, "Alternating
projections on manifolds" (2008), theorem A.1 on spectral sets.
"""

from dataclasses import replace
from decimal import Decimal, InvalidOperation
from pathlib import Path
from xml.etree import ElementTree as Xml

import numpy as np
import pybullet

from bulletbridge.bullet.checks import MASSLESS, entries, facts_of, read_inertia
from bulletbridge.bullet.reader import file_of, loaded_files, read_body
from bulletbridge.mechanism.frames import rpy_matrix
from bulletbridge.models.formats.loadable import write_urdf
from bulletbridge.models.formats.urdf_tree import UrdfTree
from bulletbridge.models.formats.written import robot_to_write
from bulletbridge.models.model_spec import ModelSpec
from bulletbridge.models.urdf_file import ENTRIES
from bulletbridge.numerics.records import Array

LEAST = 1e-5
"""Least second moment over the largest principal moment; Bullet finds these to 1e-6."""
ROUNDED = 0.05
"""Change of a tensor, over its norm, up to which rounding of its entries may have made it."""
FROM_SECOND = np.ones((3, 3)) - np.eye(3)
"""Principal moments are the sums of two second moments each."""


def nearest_inertia(J: Array) -> Array:
    """The possible tensor (3, 3) nearest to one, about the centre of mass, in Frobenius norm.

    Args:
        J: Symmetric tensor (3, 3) [kg m²]; it comes back as it is if a body can have it. A line
            without thickness is none: it has no inertia about itself, and a mass matrix with it is
            singular. A plate without thickness is one, and so is a point.
    """
    from scipy.optimize import nnls

    moments, axes = np.linalg.eigh(J)
    least = LEAST * float(np.abs(moments).max())
    second = 0.5 * float(moments.sum()) - moments
    if second.min() >= 0.0 and not _is_line(J):
        return J
    more, _ = nnls(FROM_SECOND, moments - FROM_SECOND @ np.full(3, least))
    return (axes * (FROM_SECOND @ (more + least))) @ axes.T


def with_nearest_inertias(spec: ModelSpec, folder: Path, *, rounded: bool) -> ModelSpec:
    """The model with URDFs in which every link with mass has an inertia that a body can have.

    Args:
        spec: The model.
        folder: Where changed URDFs go.
        rounded: Whether only those are changed that rounding to the digits of the file has made
            impossible: the nearest one, rounded alike, is what stands there.

    Raises:
        ModelError: A URDF cannot be read or written.
    """
    bodies, notes = list(spec.bodies), list(spec.notes)
    for k, body in enumerate(spec.bodies):
        tree = UrdfTree(body.urdf, robot_to_write(body.urdf))
        said: list[str] = []
        for name, link in tree.links.items():
            inertial = link.find("inertial")
            found = read_inertia(inertial)
            tensor = None if inertial is None else inertial.find("inertia")
            if inertial is None or tensor is None or found is None or found.mass <= 0.0:
                continue
            if found.is_possible() and (rounded or not _is_line(found.J)):
                continue
            J = nearest_inertia(found.J)
            _, rpy = tree.origin(inertial.find("origin"), f"link '{name}'")
            R = rpy_matrix(rpy)
            own = R.T @ J @ R
            if rounded and not _is_rounded(tensor, own, R.T @ found.J @ R):
                continue
            as_rounded = ", and the same in the file's digits" if rounded else ""
            said.append(f"link '{name}': {_change(found.J, J)}{as_rounded}")
            for key, i, j in ENTRIES:
                tensor.set(key, repr(float(own[i, j])))
        if said:
            urdf = folder.resolve() / f"possible_{k}_{body.urdf.name}"
            write_urdf(tree.robot, urdf, said)
            bodies[k] = replace(body, urdf=urdf)
            notes += said
    return replace(spec, bodies=tuple(bodies), notes=tuple(notes))


def _is_rounded(tensor: Xml.Element, nearest: Array, written: Array) -> bool:
    """Whether the tensor that is written is the nearest possible one, but for its digits."""
    try:
        numbers = [Decimal(tensor.get(key, "0").strip()) for key, _, _ in ENTRIES]
    except InvalidOperation:
        return False
    digits = min(int(number.as_tuple().exponent) for number in numbers)
    change = nearest - written
    close = np.linalg.norm(change) <= ROUNDED * np.linalg.norm(written)
    return bool(close and np.abs(change).max() <= 0.5 * 10.0**digits)


def give_nearest_inertias(ids: dict[str, int], client: int) -> list[str]:
    """Give links of loaded bodies that have a line's inertia, or an impossible one, the nearest.

    Bullet has made impossible ones zero. The nearest are those with the principal axes that Bullet
    has given the link.

    Returns:
        What was done, a sentence for each link.
    """
    said: list[str] = []
    files = loaded_files(client)
    for name, body in ids.items():
        robot = read_body(name, body, client)
        file = file_of(robot, files)
        in_file = {} if file is None else facts_of(file).inertias
        for index, link in enumerate(robot.links, -1):
            found = in_file.get(link.name)
            if link.mass == 0.0:
                continue
            if _is_line(np.diag(link.moments)):
                before = link.R @ np.diag(link.moments) @ link.R.T
            elif found is not None and not np.any(link.moments) and not found.is_possible():
                before = found.J
            else:
                continue
            diagonal = np.diag(link.R.T @ before @ link.R)  # in axes that cannot be changed
            moments = nearest_inertia(np.diag(diagonal))
            pybullet.changeDynamics(
                body, index, localInertiaDiagonal=np.diag(moments).tolist(), physicsClientId=client
            )
            J = link.R @ moments @ link.R.T
            said.append(f"link '{link.name}', in Bullet's axes: {_change(before, J)}")
    return said


def _is_line(J: Array) -> bool:
    """Whether a tensor (3, 3) is that of a line: one principal moment counts as none."""
    moments, _ = np.linalg.eigh(J)
    most = float(moments.max())
    return most > 0.0 and abs(float(moments.min())) <= MASSLESS * most


def _change(before: Array, after: Array) -> str:
    size = float(np.linalg.norm(after - before) / np.linalg.norm(before))
    who = "only a line has" if _is_line(before) else "no body can have"
    return (
        f"{who} the inertia {entries(before)} kg m²; the nearest one that a body can"
        f" have, {entries(after)}, is taken ({100.0 * size:.3g} % away)"
    )
