"""Specification of a model, before anything is loaded."""

from dataclasses import dataclass, field
from pathlib import Path

from bulletbridge.constraints.force_elements import ForceElement, Wrench
from bulletbridge.constraints.joints import Coupling, Distance, Frame, LoopJoint, Triple
from bulletbridge.constraints.motion import Signal
from bulletbridge.mechanism.joint_properties import JointProperties

VERSION = 1
ORIGIN: Triple = (0.0, 0.0, 0.0)
Z: Triple = (0.0, 0.0, 1.0)
EARTH: Triple = (0.0, 0.0, -9.81)
PYBULLET_DATA = "pybullet_data"
"""A ``urdf`` that starts with this folder is one of PyBullet's own."""

BEAM = "_beam"
"""After the name of a link that is a beam: the joint whose positions are its amplitudes."""

FileConstraint = LoopJoint | Distance | Coupling


@dataclass(frozen=True)
class BodySpec:
    """A robot to load.

    Attributes:
        name: What its links and joints are prefixed with when there are several.
        urdf: File.
        fixed_base: Whether its base is part of the world.
        xyz: Position of the base link in the world [m].
        rpy: Its roll, pitch and yaw there [rad].
        scale: Factor on its lengths; masses and inertias stay.
    """

    name: str
    urdf: Path
    fixed_base: bool = False
    xyz: Triple = ORIGIN
    rpy: Triple = ORIGIN
    scale: float = 1.0


@dataclass(frozen=True)
class JointForce:
    """What acts on a joint: torque - damping * rate - stiffness * (position - rest), and friction.

    Friction is Coulomb's: up to so much [N m or N] it holds the joint, beyond it slows it down.

    The torque is a number or a function of time.
    """

    joint: str
    torque: float | Signal = 0.0
    stiffness: float = 0.0
    rest: float = 0.0
    damping: float = 0.0
    friction: float = 0.0

    def torque_at(self, t: float) -> float:
        """The torque at a time [s]."""
        return self.torque(t)[0] if callable(self.torque) else self.torque


@dataclass(frozen=True)
class BeamSpec:
    """A chain of segments that stands for a flexible beam.

    Attributes:
        link: Name of the link that the chain has replaced: that of its last segment.
        EI: Stiffness [N m²].
        mass_per_length: [kg/m]
        modes: How many.
        damping: Of each mode, relative to its critical one.
    """

    link: str
    EI: float
    mass_per_length: float
    modes: int = 2
    damping: float = 0.0

    @property
    def joint(self) -> str:
        """Name of the joint whose positions are the amplitudes of the modes."""
        return self.link + BEAM


@dataclass(frozen=True)
class ModelSpec:
    """All that a loops file, or a robot in another format, says; equal models are from any file.

    Attributes:
        name: The file's name without endings.
        path: The file.
        bodies: Robots.
        constraints: Loops.
        actuated: Joints with a drive; all others are passive.
        gravity: [m/s²]; None where the file says nothing.
        start_q: Positions held at the start by joint name; others are assembled.
        start_v: Rates held at the start by joint name.
        start_guess: Positions from which the others are assembled.
        forces: What acts on joints.
        beams: Chains of segments that stand for beams.
        elements: Springs and dampers between frames.
        joints: Armature, damping, friction and limits in the place of the URDF's.
        joint_friction: Whether the ``friction`` of URDF joints acts, which Bullet ignores.
        wrenches: Forces and torques from outside on links.
        folded: Links that are part of others now, each by where it is on its carrier.
        scenery: What stands in the world beside the robots: it may be touched, and is no part of
            the mechanism.
        notes: What was lost, changed or assumed when another format was read, a sentence each.
        allow_structure: Whether constraints may leave no freedom at all, so that it stands still.
        drawn_apart: Whether loops that are soft where it comes from are open as it draws them, of
            which those gaps mean nothing there that no joint can close.
    """

    name: str = field(compare=False)
    path: Path = field(compare=False)
    bodies: tuple[BodySpec, ...]
    constraints: tuple[FileConstraint, ...]
    actuated: tuple[str, ...] = ()
    gravity: Triple | None = None
    start_q: dict[str, float | list[float]] = field(default_factory=lambda: {})
    start_v: dict[str, float | list[float]] = field(default_factory=lambda: {})
    forces: tuple[JointForce, ...] = ()
    start_guess: dict[str, float | list[float]] = field(default_factory=lambda: {})
    beams: tuple[BeamSpec, ...] = ()
    joint_friction: bool = False
    allow_structure: bool = False
    elements: tuple[ForceElement, ...] = ()
    joints: dict[str, JointProperties] = field(default_factory=lambda: {})
    wrenches: tuple[Wrench, ...] = ()
    folded: dict[str, Frame] = field(default_factory=lambda: {}, compare=False)
    scenery: tuple[BodySpec, ...] = ()
    notes: tuple[str, ...] = field(default=(), compare=False)
    drawn_apart: bool = field(default=False, compare=False)

    @property
    def own_gravity(self) -> Triple:
        """Gravity in a world of its own [m/s²]: Earth's where the file says nothing."""
        return EARTH if self.gravity is None else self.gravity


def pybullet_data_folder() -> Path:
    """Where PyBullet's own models are."""
    import pybullet_data

    return Path(pybullet_data.getDataPath()).resolve()
