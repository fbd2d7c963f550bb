"""Who takes part, and how each one is set: its default, and what an expert would choose.

A new integrator of ours, or another setting of a peer, is one more line in ``SETTINGS``.
"""

from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from bulletbridge.simulation.options import Integrator

Knob = Literal["dt", "rtol"]
Task = Literal["time", "accuracy", "work-precision", "growth", "singular", "standard"]
TASKS: tuple[Task, ...] = ("time", "accuracy", "work-precision", "growth", "singular", "standard")


@dataclass(frozen=True)
class Package:
    """One simulator.

    Attributes:
        name: In tables.
        adapter: Module and class of its adapter.
        imports: Modules that it needs.
        distribution: As it is installed with pip.
        check: Options under which its accelerations are compared with ours.
        limit: Largest difference from ours, relative to the largest acceleration.
    """

    name: str
    adapter: tuple[str, str]
    imports: tuple[str, ...]
    distribution: str
    check: dict[str, Any] = field(default_factory=lambda: {})
    limit: float = 1e-9


HERE = "bulletbridge.surface.bench.peers."
CONVERGED = {"iterations": 1000, "residual": 0.0, "erp": 0.0}
"""Of Bullet; with an erp it would correct the gap of the step before."""
PACKAGES: dict[str, Package] = {
    "bulletbridge": Package("bulletbridge", (HERE + "ours", "Ours"), (), "bulletbridge"),
    "bullet": Package(
        "Bullet", (HERE + "bullet", "Bullet"), ("pybullet",), "pybullet", CONVERGED, 1e-5
    ),
    "mujoco": Package(
        "MuJoCo", (HERE + "mujoco", "Mujoco"), ("mujoco",), "mujoco", {"stiff": 2.0}, 1e-2
    ),
    "drake": Package("Drake", (HERE + "drake", "Drake"), ("pydrake.all",), "drake", {}, 1e-2),
    "pinocchio": Package(
        "Pinocchio",
        (HERE + "pinocchio", "Pinocchio"),
        ("pinocchio",),
        "pin",
        {"mu": 1e-4, "iterations": 100},
    ),
    "exudyn": Package(
        "Exudyn",
        (HERE + "exudyn", "Exudyn"),
        ("exudyn",),
        "exudyn",
        {"solver": "trapezoidal", "modified": False},
        1e-5,
    ),
}


@dataclass(frozen=True)
class Setting:
    """One simulator, set in one way.

    Attributes:
        peer: Key of ``PACKAGES``.
        label: What a table calls it.
        options: Of the adapter.
        tasks: Where it takes part.
        cases: Options that differ in a case.
        knob: What is varied in work-precision: the step or the relative tolerance.
        finest: Smallest value of the knob.
        adapter: In place of the simulator's usual one.
    """

    peer: str
    label: str
    options: dict[str, Any]
    tasks: tuple[Task, ...] = ("time", "accuracy", "work-precision", "singular", "standard")
    cases: dict[str, dict[str, Any]] = field(default_factory=lambda: {})
    knob: Knob = "dt"
    finest: float = 1e-5
    adapter: tuple[str, str] | None = None

    def options_of(self, case: str) -> dict[str, Any]:
        """The adapter's options in a case."""
        return self.options | self.cases.get(case, {})


ALL: tuple[Task, ...] = TASKS
FIXED: tuple[Task, ...] = ("time", "accuracy", "singular")
PRECISION: tuple[Task, ...] = ("work-precision", "standard")
REDUNDANT = {"minitaur": {"mu": 1e-4, "iterations": 30}}
"""Pinocchio's regularisation where rows are redundant in more than one loop."""
FULL_NEWTON = {"four_bar": {"modified": False}}
"""Exudyn keeps Newton's Jacobian but in the smallest mechanism, where making it anew costs less."""
BODIES = (HERE + "exudyn_bodies", "ExudynBodies")
"""Exudyn in redundant coordinates, which wins where there are many loops."""
DENSE_ALPHA = {"solver": "alpha"}
SPARSE = {"solver": "trapezoidal", "linear": "EigenSparse"}


def _ours(label: str, tasks: tuple[Task, ...], finest: float = 1e-5, **options: Any) -> Setting:
    return Setting("bulletbridge", label, options, tasks, {}, "dt", finest)


CONTROLLED = tuple(name for name in ("dop853", "radau") if name in get_args(Integrator))
"""Our integrators with error control, whose step is that between states."""

SETTINGS: tuple[Setting, ...] = (
    _ours("semi-implicit Euler", ALL, 5e-6, integrator="semi_implicit_euler"),
    _ours("RK4", ALL, integrator="rk4"),
    *(
        Setting("bulletbridge", name, {"integrator": name}, PRECISION, {}, "rtol", 1e-12)
        for name in CONTROLLED
    ),
    _ours("symmetric", ("accuracy", "singular"), integrator="symmetric"),
    *(
        _ours(f"RK4, {name.replace('_', ' ')}", ("time",), integrator="rk4", formulation=name)
        for name in ("elimination", "quasi_velocities", "tangent_space", "multipliers", "proximal")
    ),
    Setting("bullet", "default", {}, ALL, finest=1e-5),
    Setting(
        "bullet",
        "200 iterations, erp 0.8",
        {"iterations": 200, "erp": 0.8, "residual": 0.0},
        ALL,
        finest=1e-5,
    ),
    Setting("mujoco", "default (Euler)", {}, ALL, finest=1e-4),
    Setting("mujoco", "implicitfast, stiff 2 dt", {"integrator": "IMPLICITFAST", "stiff": 2.0}),
    Setting("mujoco", "RK4", {"integrator": "RK4"}, FIXED),
    Setting("mujoco", "RK4, stiff 2 dt", {"integrator": "RK4", "stiff": 2.0}, PRECISION),
    Setting("mujoco", "RK4, stiff 4 dt", {"integrator": "RK4", "stiff": 4.0}, ALL),
    Setting("mujoco", "RK4, stiff 8 dt", {"integrator": "RK4", "stiff": 8.0}, PRECISION),
    Setting(
        "mujoco",
        "RK4, stiff 4 dt, exact diagonal",
        {"integrator": "RK4", "stiff": 4.0, "exact_diagonal": True},
        PRECISION,
    ),
    Setting("drake", "SAP", {}, ALL, finest=1e-5),
    Setting("pinocchio", "semi-implicit", {}, FIXED, REDUNDANT),
    Setting("pinocchio", "semi-implicit, kp 0.1/dt²", {"per_step": 0.1}, ALL, REDUNDANT),
    Setting("pinocchio", "RK4", {"scheme": "rk4"}, ALL, REDUNDANT, finest=1e-4),
    Setting(
        "pinocchio",
        "RK4, kp 0.01/dt²",
        {"scheme": "rk4", "per_step": 0.01},
        cases=REDUNDANT,
        finest=1e-4,
    ),
    Setting(
        "pinocchio",
        "RK4, kp 100",
        {"scheme": "rk4", "gain": 100.0},
        PRECISION,
        REDUNDANT,
        finest=1e-4,
    ),
    Setting(
        "pinocchio",
        "lcaba, RK4",
        {"algorithm": "lcaba", "scheme": "rk4", "mu": 1e-6},
        cases=REDUNDANT,
        finest=1e-4,
    ),
    Setting("pinocchio", "lcaba, semi-implicit", {"algorithm": "lcaba", "mu": 1e-6}, ("growth",)),
    Setting("exudyn", "generalized-alpha, index 3", DENSE_ALPHA, cases=FULL_NEWTON),
    Setting("exudyn", "trapezoidal, index 2", {"solver": "trapezoidal"}, cases=FULL_NEWTON),
    Setting("exudyn", "trapezoidal, index 2, sparse", SPARSE, ("growth",)),
    Setting("exudyn", "trapezoidal, index 2, redundant", SPARSE, ALL, adapter=BODIES),
    Setting(
        "exudyn",
        "generalized-alpha, index 3, redundant",
        {"solver": "alpha", "linear": "EigenSparse"},
        adapter=BODIES,
    ),
)


def adapters(peer: str) -> list[tuple[str, str]]:
    """All adapters of a simulator, its usual one first."""
    others = [s.adapter for s in SETTINGS if s.peer == peer and s.adapter is not None]
    return list(dict.fromkeys([PACKAGES[peer].adapter, *others]))


def settings(peers: tuple[str, ...], task: Task) -> list[Setting]:
    """Settings of these simulators that take part in a task."""
    return [s for s in SETTINGS if s.peer in peers and task in s.tasks]
