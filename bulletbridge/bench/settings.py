"""Who takes part, and how each one is set: its default, and what an expert would choose.

A new integrator of ours, or another setting of a peer, is one more line in ``SETTINGS``.
"""

from dataclasses import dataclass, field, replace
from typing import Any, Literal

Knob = Literal["dt", "rtol"]
Task = Literal["time", "accuracy", "work-precision", "growth", "singular", "standard"]
LEVELS = (1e-3, 1e-6, 1e-9)
"""Errors [rad, or m of some standard problems] whose wall time is compared."""
TASKS: tuple[Task, ...] = ("time", "accuracy", "work-precision", "growth", "singular", "standard")


@dataclass(frozen=True)
class Package:
    """One simulator."""

    name: str  # in tables
    adapter: tuple[str, str]  # module and class of its adapter
    imports: tuple[str, ...]  # modules that it needs
    distribution: str  # as it is installed with pip
    # options under which its accelerations are compared with ours
    check: dict[str, Any] = field(default_factory=lambda: {})
    limit: float = 1e-9  # largest difference from ours, relative to the largest acceleration
    # options of that comparison that differ in a case
    checks: dict[str, dict[str, Any]] = field(default_factory=lambda: {})

    def check_of(self, case: str) -> dict[str, Any]:
        """Options under which accelerations are compared in a case."""
        return self.check | self.checks.get(case, {})


HERE = "bulletbridge.bench.peers."
CONVERGED = {"iterations": 1000, "residual": 0.0, "erp": 0.0}
"""Of Bullet; with an erp it would correct the gap of the step before."""
DEPENDENT = {"linear": "EigenDense", "redundant": True}
"""Exudyn where rows are dependent everywhere."""
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
        {"mu": 1e-8, "iterations": 100},
        checks={"minitaur": {"mu": 1e-4}},
    ),
    "exudyn": Package(
        "Exudyn",
        (HERE + "exudyn", "Exudyn"),
        ("exudyn",),
        "exudyn",
        {"solver": "trapezoidal", "modified": False},
        1e-5,
        {"bricard": DEPENDENT},
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
        coarsest, finest: Largest and smallest value of the knob; steps count in seconds where
            the motion is of seconds.
        order: Of the integrator.
        only: The standard problems in which it takes part; all unless given.
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
    coarsest: float = 1 / 60
    order: int = 1
    only: tuple[str, ...] = ()


ALL: tuple[Task, ...] = TASKS
FIXED: tuple[Task, ...] = ("time", "accuracy", "singular")
WORK: tuple[Task, ...] = ("work-precision",)
PRECISION: tuple[Task, ...] = (*WORK, "standard")
BOTH: tuple[Task, ...] = (*FIXED, *PRECISION)
REDUNDANT = {"minitaur": {"mu": 1e-4, "iterations": 30}}
"""Pinocchio's regularisation where rows are redundant in more than one loop."""
EXUDYN = {"four_bar": {"modified": False}, "bricard": DEPENDENT}
"""Exudyn keeps Newton's Jacobian but in the smallest mechanism, where making it anew costs less."""
BODIES = (HERE + "exudyn_bodies", "ExudynBodies")
"""Exudyn in redundant coordinates, which wins where there are many loops."""
ALPHA, TRAPEZOIDAL = {"solver": "alpha"}, {"solver": "trapezoidal"}
MANY = {"bricard": DEPENDENT}
SPARSE = {"solver": "trapezoidal", "linear": "EigenSparse"}
SPARSE_ALPHA = {"solver": "alpha", "linear": "EigenSparse"}


STIFF = ("a05_governor",)


def _ours(
    label: str, tasks: tuple[Task, ...], order: int, finest: float = 1e-5, **options: Any
) -> Setting:
    coarsest = 0.05 if order > 1 else 1 / 60
    made = Setting("bulletbridge", label, options, tasks, {}, "dt", finest)
    return replace(made, coarsest=coarsest, order=order)


def _controlled(name: str, order: int) -> Setting:
    """With error control, whose step is that between states."""
    made = Setting("bulletbridge", f"{name}, rtol", {"integrator": name}, PRECISION)
    return replace(made, knob="rtol", finest=1e-12, coarsest=1.0, order=order)


SETTINGS: tuple[Setting, ...] = (
    _ours("semi-implicit Euler", ALL, 1, 5e-6, integrator="semi_implicit_euler"),
    Setting(
        "bulletbridge",
        "semi-implicit Euler, springs implicit",
        {"integrator": "semi_implicit_euler", "springs": "implicit"},
        ("standard",),
        only=STIFF,
    ),
    _ours("Verlet", BOTH, 2, integrator="verlet"),
    _ours("RK4", ALL, 4, integrator="rk4"),
    _ours("dop853, fixed steps", BOTH, 8, 1e-3, integrator="dop853", rtol=None),
    _controlled("dop853", 8),
    _ours("radau, fixed steps", ("time", "accuracy"), 5, integrator="radau", rtol=None),
    replace(
        _ours("radau, fixed steps", ("standard",), 5, integrator="radau", rtol=None), only=STIFF
    ),
    _controlled("radau", 5),
    _ours("trapezoidal", ("accuracy",), 2, integrator="trapezoidal"),
    *(
        _ours(f"RK4, {name.replace('_', ' ')}", ("time",), 4, integrator="rk4", formulation=name)
        for name in ("elimination", "quasi_velocities", "tangent_space", "multipliers", "proximal")
    ),
    Setting("bullet", "default", {}, ALL),
    Setting(
        "bullet",
        "200 iterations, erp 0.8",
        {"iterations": 200, "erp": 0.8, "residual": 0.0},
        ALL,
    ),
    Setting("mujoco", "default (Euler)", {}, ALL, finest=1e-4),
    Setting(
        "mujoco",
        "implicitfast, stiff 2 dt",
        {"integrator": "IMPLICITFAST", "stiff": 2.0},
        coarsest=0.05,
    ),
    Setting("mujoco", "implicit", {"integrator": "IMPLICIT"}, BOTH, coarsest=0.05),
    Setting(
        "mujoco",
        "discrete, stiff 2 dt",
        {"integrator": "DISCRETE", "stiff": 2.0},
        PRECISION,
        coarsest=0.05,
    ),
    *(
        Setting("mujoco", f"Euler, {kind} Jacobian", {"jacobian": kind.upper()}, ("growth",))
        for kind in ("dense", "sparse")
    ),
    *(
        Setting("mujoco", label, {"integrator": "RK4"} | options, tasks, coarsest=0.05, order=4)
        for label, options, tasks in (
            ("RK4", {}, FIXED),
            ("RK4, stiff 2 dt", {"stiff": 2.0}, PRECISION),
            ("RK4, stiff 4 dt", {"stiff": 4.0}, ALL),
            ("RK4, stiff 8 dt", {"stiff": 8.0}, PRECISION),
            ("RK4, stiff 4 dt, exact diagonal", {"stiff": 4.0, "exact_diagonal": True}, PRECISION),
        )
    ),
    Setting("drake", "SAP", {}, ALL, coarsest=0.05),
    Setting("pinocchio", "semi-implicit", {}, FIXED, REDUNDANT),
    Setting("pinocchio", "semi-implicit, kp 0.1/dt²", {"per_step": 0.1}, ALL, REDUNDANT),
    *(
        Setting("pinocchio", label, options, tasks, REDUNDANT, finest=1e-4, coarsest=0.05, order=4)
        for label, options, tasks in (
            ("RK4", {"scheme": "rk4"}, ALL),
            ("RK4, kp 0.01/dt²", {"scheme": "rk4", "per_step": 0.01}, BOTH),
            ("RK4, kp 100", {"scheme": "rk4", "gain": 100.0}, PRECISION),
            (
                "lcaba, RK4",
                {"algorithm": "lcaba", "scheme": "rk4", "mu": 1e-6},
                BOTH,
            ),
        )
    ),
    Setting(
        "pinocchio",
        "lcaba, semi-implicit",
        {"algorithm": "lcaba", "mu": 1e-6},
        ("time", "growth"),
        REDUNDANT,
    ),
    Setting("exudyn", "trapezoidal, index 2, sparse", SPARSE, ("growth",), order=2),
    *(
        Setting("exudyn", label, options, tasks, cases, "dt", 1e-5, adapter, coarsest=0.05, order=2)
        for adapter, cases, label, options, tasks in (
            (None, EXUDYN, "generalized-alpha, index 3", ALPHA, BOTH),
            (None, EXUDYN, "trapezoidal, index 2", TRAPEZOIDAL, BOTH),
            (BODIES, MANY, "trapezoidal, index 2, redundant", SPARSE, ALL),
            (
                BODIES,
                MANY,
                "generalized-alpha, index 3, redundant",
                SPARSE_ALPHA,
                BOTH,
            ),
        )
    ),
)


def adapters(peer: str) -> list[tuple[str, str]]:
    """All adapters of a simulator, its usual one first."""
    others = [s.adapter for s in SETTINGS if s.peer == peer and s.adapter is not None]
    return list(dict.fromkeys([PACKAGES[peer].adapter, *others]))


def settings(peers: tuple[str, ...], task: Task) -> list[Setting]:
    """Settings of these simulators that take part in a task."""
    return [s for s in SETTINGS if s.peer in peers and task in s.tasks]
