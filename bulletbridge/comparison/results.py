"""Results of ``compare``, as typed records that become JSON by ``asdict``."""

import platform
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Literal

import numpy as np

import bulletbridge
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.numerics.records import Array

SCHEMA = 1
Status = Literal["ok", "failed", "unsupported"]


@dataclass(frozen=True)
class Extent:
    """A quantity over a run: largest, root mean square, at the end."""

    max: float
    rms: float
    final: float


@dataclass(frozen=True)
class Energy:
    """Total energy over a run."""

    start_J: float  # at the start; the zero of the potential is arbitrary
    drift_max_J: float  # largest change
    drift_rel: float | None  # the same divided by the largest kinetic energy of the run
    conserved: bool  # whether the model conserves it: no dampers, no torques, nothing driven


@dataclass(frozen=True)
class StepTime:
    """Wall-clock time per step [µs], each one a call from Python.

    Attributes:
        median, p95: Over all steps.
        python_call: Each step is one Python call; batches in one call are faster.
        write_back: The state is in the Bullet world after the call.
    """

    median: float
    p95: float
    python_call: bool = True
    write_back: bool = True


@dataclass(frozen=True)
class Rank:
    """Rows in use, independent ones over the run, weakest relative to the strongest."""

    rows: int
    min: int
    max: int
    margin_min: float


@dataclass(frozen=True)
class Corrections:
    """Correction passes per step."""

    mean: float
    max: int


Named = dict[str, float | list[float]]
"""Values by joint name; lists for joints with several."""


@dataclass(frozen=True)
class Final:
    """The last state."""

    t: float
    q: Named
    v: Named


@dataclass(frozen=True)
class Result:
    """One model under one solver. What a solver lacks is None.

    Attributes:
        gap_m, gap_rad: Over all rows as written, largest constraint at each time.
        gap_kept, gap_kept_rad: The same without directions that are redundant by design.
        gap_rate, gap_rate_rad: [m/s], [rad/s], all rows.
        gap_acceleration, gap_acceleration_rad: [m/s²], [rad/s²], all rows, largest mean of
            J v̇ + gamma over a step.
        trajectory_error: Coordinates [m or rad] against a converged reference, if one was asked.
        settings: The solver's, in words.
        notes: What to know when reading the numbers.
    """

    model: str
    solver: str
    mode: str
    integrator: str
    dt: float
    duration: float
    steps: int
    status: Status
    message: str = ""
    gap_m: Extent | None = None
    gap_rad: Extent | None = None
    gap_kept: Extent | None = None
    gap_kept_rad: Extent | None = None
    gap_rate: Extent | None = None
    gap_rate_rad: Extent | None = None
    gap_acceleration: Extent | None = None
    gap_acceleration_rad: Extent | None = None
    energy: Energy | None = None
    trajectory_error: Extent | None = None
    step_us: StepTime | None = None
    rank: Rank | None = None
    corrections: Corrections | None = None
    final: Final | None = None
    settings: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Comparison:
    """All runs of a comparison."""

    runs: tuple[Result, ...]
    schema: int = SCHEMA
    versions: dict[str, str] = field(default_factory=lambda: versions())

    def to_dict(self) -> dict[str, object]:
        """Plain dictionaries and lists, ready for JSON."""
        return {
            "schema": self.schema,
            "versions": self.versions,
            "runs": [asdict(r) for r in self.runs],
        }


def versions() -> dict[str, str]:
    """Versions of what the numbers depend on."""
    found = {"bulletbridge": bulletbridge.__version__, "python": platform.python_version()}
    for name in ("pybullet", "numpy", "scipy", "numba"):
        found[name] = version_of(name) or "unknown"
    found["platform"] = f"{platform.system()} {platform.machine()}"
    return found


def version_of(distribution: str) -> str:
    """Version of an installed distribution; empty if it is not there."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return ""


def extent(values: Array) -> Extent | None:
    """Extent of (n,) values; None when there are none or one is not finite."""
    if not len(values) or not np.all(np.isfinite(values)):
        return None
    largest = float(np.max(np.abs(values)))
    unit = largest or 1.0  # squares of large numbers are none
    rms = unit * float(np.sqrt(np.mean(np.square(values / unit))))
    return Extent(largest, rms, float(np.abs(values[-1])))


def named(mechanism: Mechanism, x: Array, coordinates: Literal["q", "v"]) -> Named:
    """Coordinates by joint name."""
    found: Named = {}
    for name, joint in mechanism.joints.items():
        part: list[float] = x[joint.q if coordinates == "q" else joint.v].tolist()
        found[name] = part[0] if len(part) == 1 else part
    return found
