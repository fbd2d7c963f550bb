"""The beam of System 1 as a chain of rigid pieces."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import bulletbridge as bb
from bulletbridge.models.flexible.make_flexible import Flexibility, make_flexible
from bulletbridge.models.load import LoadedModel
from bulletbridge.models.loops_file import read_loops
from bulletbridge.numerics.records import Array
from support.urdf_builder import inertial, joint, link, robot

EI, RHO, LENGTH = 3.73333, 0.448, 1.0  # System 1: N m², kg/m, m
AREA = 1e-5  # squared radius of gyration of the section [m²]
BEAM = Flexibility("beam", 4, EI_z=EI, direction=(LENGTH, 0, 0))


def uniform(extra: str = "") -> str:
    """The inertial of System 1's link along x."""
    across = RHO * LENGTH * (LENGTH**2 / 12 + AREA)
    about = 2 * RHO * LENGTH * AREA
    return inertial(RHO * LENGTH, (about, across, across), (0.5 * LENGTH, 0, 0)) + extra


def arm(
    folder: Path, content: str | None = None, carrier: str = "fixed", more: Sequence[str] = ()
) -> Path:
    """A base that carries the beam."""
    path = folder / "arm.urdf"
    first = joint("shoulder", carrier, "base", "beam", limits=(1.0, -1.0))
    body = link("beam", uniform() if content is None else content)
    path.write_text(robot(link("base"), body, first, *more))
    return path


def loaded(
    folder: Path,
    how: Flexibility = BEAM,
    gravity: tuple[float, float, float] = (0.0, 0.0, 0.0),
    path: Path | None = None,
    **options: Any,
) -> LoadedModel:
    """The chain in place of the beam, clamped unless the file says otherwise."""
    made = make_flexible(path or arm(folder), how, folder / "chain.urdf")
    return bb.load(replace(read_loops(made.loops), gravity=gravity), **options)


def stiffness(system: bb.System) -> Array:
    """(nv, nv) of the joint springs."""
    return np.diag(system.mechanism.axes["stiffness"])
