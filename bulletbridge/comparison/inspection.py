"""Inspection of a model: loops, rows, rank, mobility, and Bullet's mass matrix beside ours."""

import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pybullet
from scipy.spatial.transform import Rotation

from bulletbridge.comparison.bullet_warnings import bullet_warnings
from bulletbridge.comparison.describe import (
    LoopReport,
    SpringReport,
    WrenchReport,
    loop_reports,
    spring_reports,
    wrench_reports,
)
from bulletbridge.comparison.native import NoNativeTwinError, require_native_twin
from bulletbridge.comparison.results import SCHEMA, versions
from bulletbridge.engine.whitened import whiten
from bulletbridge.models.formats.recognise import read_model
from bulletbridge.models.load import LoadedModel, load, notes_besides_start
from bulletbridge.models.model_spec import ModelSpec
from bulletbridge.models.odd_inertias import extent
from bulletbridge.numerics.records import Array
from bulletbridge.system.system import System


@dataclass(frozen=True)
class JointReport:
    """One joint at the start.

    Attributes:
        name, kind: As in the mechanism.
        actuated: Whether the loops file says so; passive otherwise.
        q: Position.
        source: "given" in the file, "assembled" to close the loops, or "zero".
    """

    name: str
    kind: str
    actuated: bool
    q: tuple[float, ...]
    source: str


@dataclass(frozen=True)
class MassReport:
    """Bullet's mass matrix beside ours: largest difference over the largest entry, or why not."""

    body: str
    difference: float | None
    note: str = ""


@dataclass(frozen=True)
class Inspection:
    """Everything ``inspect`` shows.

    Attributes:
        nq, nv: Numbers of positions and rates.
        rows, kept, rank: Rows as written, without those redundant in their loop, independent.
        dof: Mobility, nv less rank.
        singular_values: Of the kept rows at the start, masses and lengths divided out.
        native: Empty when Bullet can close the model itself, else why not.
        notes: What was lost, changed or assumed when the file was read.
        mass_kg: Of all that moves.
        across_m: Largest extent of its links' origins, centres and loops along an axis of the
            world, at the start.
        floating: Robots whose base is free.
    """

    model: str
    path: str
    nq: int
    nv: int
    rows: int
    kept: int
    rank: int
    dof: int
    loops: tuple[LoopReport, ...]
    joints: tuple[JointReport, ...]
    singular_values: tuple[float, ...]
    masses: tuple[MassReport, ...]
    warnings: tuple[str, ...]
    native: str
    springs: tuple[SpringReport, ...] = ()
    notes: tuple[str, ...] = ()
    wrenches: tuple[WrenchReport, ...] = ()
    mass_kg: float = 0.0
    across_m: float = 0.0
    floating: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, object]:
        """Plain dictionaries and lists, ready for JSON."""
        return {"schema": SCHEMA, "versions": versions(), **asdict(self)}


def inspect_model(model: str | Path | ModelSpec) -> Inspection:
    """Load, assemble and describe a model.

    Raises:
        BulletBridgeError: The model cannot be loaded or assembled.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        loaded = load(model if isinstance(model, ModelSpec) else read_model(model), "new")
    with loaded:
        system, spec = loaded.system, loaded.spec
        decision, mechanism = system.decision, system.mechanism
        moved = {move.joint for move in loaded.assembly.moved}
        q, values = system.q, singular_values(loaded)
        joints: list[JointReport] = []
        for name, joint in mechanism.joints.items():
            source = "assembled" if name in moved else "zero"
            source = "given" if name in spec.start_q else source
            position = tuple(float(x) for x in q[joint.q])
            joints.append(JointReport(name, joint.kind, name in spec.actuated, position, source))
        return Inspection(
            spec.name,
            str(spec.path),
            mechanism.nq,
            mechanism.nv,
            system.encoded.nc,
            decision.encoded.nc,
            decision.cap,
            system.dof,
            loop_reports(loaded),
            tuple(joints),
            values,
            mass_matrices(loaded),
            (
                *(str(warning.message) for warning in caught),
                *bullet_warnings(loaded),
                *singular_start(system, values),
            ),
            _native(spec),
            spring_reports(loaded),
            notes_besides_start(spec),
            wrench_reports(loaded),
            float(mechanism.bodies["mass"].sum()),
            extent(system),
            tuple(each.name for each in spec.bodies if not each.fixed_base),
        )


def singular_values(loaded: LoadedModel) -> tuple[float, ...]:
    """Singular values (min(nc, nv),) of the kept rows at the state, over the largest."""
    terms, decision = loaded.system.terms(), loaded.system.decision
    if not len(terms.J):
        return ()
    values = np.linalg.svd(whiten(terms.M, decision.scale[:, None] * terms.J), compute_uv=False)
    return tuple((values / values[0]).tolist())


def singular_start(system: System, values: Sequence[float]) -> tuple[str, ...]:
    """What to say of a start at which more is free than elsewhere, by its singular values."""
    rank = sum(value > system.tolerances.singular for value in values)
    if rank >= system.decision.cap:
        return ()
    return (
        f"the start is a singular position: {rank} of {system.decision.cap} independent rows hold"
        f" there, so {system.mechanism.nv - rank} rates are free instead of {system.dof} and how it"
        " goes on is open; give another 'start' unless that is meant",
    )


def mass_matrices(loaded: LoadedModel) -> tuple[MassReport, ...]:
    """Compare our mass matrix with Bullet's, body by body, at the start."""
    ours, mechanism = loaded.system.terms().M, loaded.system.mechanism
    q = loaded.system.q

    def compared(prefix: str, body: int) -> tuple[float | None, str]:
        joints = [j for name, j in mechanism.joints.items() if name.startswith(prefix)]
        if any(joint.kind == "spherical" for joint in joints):
            return None, "Bullet's is wrong with spherical joints"
        if not joints:
            return None, "nothing moves"
        positions = [float(q[j.q.start]) for j in joints if j.kind != "free"]
        try:
            theirs = np.array(
                pybullet.calculateMassMatrix(body, positions, physicsClientId=loaded.client)
            )
        except (SystemError, pybullet.error):
            # over a tensor that is symmetric but for the last digit, among other reasons
            return None, "Bullet refuses to calculate its own"
        rates = [k for j in joints for k in range(j.v.start, j.v.stop)]
        armature = mechanism.axes["armature"][rates]
        block = ours[np.ix_(rates, rates)] - np.diag(armature)
        if any(joint.kind == "free" for joint in joints):
            block = _in_base_axes(block, body, loaded.client)
        if block.shape != theirs.shape:
            return None, "Bullet's has another size"
        note = "without armature, which Bullet does not have" if armature.any() else ""
        return float(np.abs(block - theirs).max()) / float(np.abs(theirs).max()), note

    several = len(loaded.ids) > 1
    return tuple(
        MassReport(name, *compared(f"{name}/" if several else "", body))
        for name, body in loaded.ids.items()
    )


def _in_base_axes(M: Array, body: int, client: int) -> Array:
    """Our mass matrix with the base twist in the axes of Bullet's base inertial frame."""
    quat = pybullet.getBasePositionAndOrientation(body, physicsClientId=client)[1]
    turn = np.eye(len(M))
    turn[:3, :3] = turn[3:6, 3:6] = Rotation.from_quat(quat).as_matrix()
    return turn.T @ M @ turn


def _native(spec: ModelSpec) -> str:
    try:
        require_native_twin(spec)
    except NoNativeTwinError as error:
        return str(error)
    return ""
