"""``bulletbridge doctor``: what is installed, what works, and what is missing for what."""

import os
import platform
import re
import subprocess
import sys
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, requires

import bulletbridge
from bulletbridge.bullet.worlds import has_display
from bulletbridge.comparison.results import version_of
from bulletbridge.compilation.announce import at_hand
from bulletbridge.compilation.condition import Condition, condition
from bulletbridge.engine.step_kernel import run
from bulletbridge.inequalities.step_kernel import run_inequalities
from bulletbridge.models.bundled import bundled, models_folder

PACKAGES = "pybullet", "numpy", "scipy", "numba", "llvmlite", "trimesh", "matplotlib", "jinja2"
FEATURES = {
    "bench": "bulletbridge bench beside other simulators",
    "compile": "kernels compiled here, where a wheel brings none that fit",
    "cluster": "sweep --cluster: parameter studies on a Dask cluster",
    "conic": 'impulse_solver="clarabel": a reference for contacts',
    "crocoddyl": "bb.to_crocoddyl: steps as an action model",
    "docs": "make docs: the site of the documentation",
    "gym": "bulletbridge.gym: environments to learn in",
    "jax": "bb.to_jax: steps with derivatives as functions of JAX",
    "mjcf": "robots in MJCF, read and written",
    "sweep": "bulletbridge sweep, bb.sweep; recordings to parquet",
    "torch": "bb.to_torch: steps with derivatives as functions of tensors",
    "usd": "robots in USD, read",
    "viewer": "bulletbridge view, bb.view: models in a browser",
    "video": "videos as mp4 (gif needs nothing)",
    "xacro": "URDFs with xacro's macros",
}
"""What each extra of the package is for."""
WAIT = 30.0
"""Time [s] in which a window opens."""
TRY_WINDOW = (
    "import pybullet as p; c = p.connect(p.GUI);"
    " print('bulletbridge:', p.isConnected(c)); p.disconnect(c)"
)
REQUIREMENT = re.compile(r"^([\w.-]+).*?extra == ['\"]([\w-]+)['\"]")


@dataclass(frozen=True)
class Extra:
    """An extra of the package."""

    name: str  # as in ``pip install 'bulletbridge[name]'``
    feature: str  # what it is for
    missing: tuple[str, ...]  # distributions of it that are not installed

    @property
    def remedy(self) -> str:
        """The line that installs it."""
        return f"pip install 'bulletbridge[{self.name}]'"


@dataclass(frozen=True)
class Report:
    """All that ``doctor`` tells."""

    versions: dict[str, str | None]  # of what is installed, by name; None for what is not there
    system: str  # operating system and machine
    kernels: Condition  # the compiler and what it keeps
    # whether the kernels of a first step, and those of a first step with contacts, are compiled for
    # this version and processor
    ready: tuple[bool, bool]
    display: str  # whether a window could open, and why not
    models: tuple[int, str]  # how many bundled models there are, and where
    extras: tuple[Extra, ...]  # what else can be installed

    def to_dict(self) -> dict[str, object]:
        """Plain dictionaries and lists, ready for JSON."""
        found: dict[str, object] = asdict(self)
        found["kernels"] = self.kernels._asdict()
        return found


def examine(window: bool = False) -> Report:
    """Look at everything; ``window`` opens one for a moment, too."""
    versions = {"bulletbridge": bulletbridge.__version__, "Python": platform.python_version()}
    return Report(
        versions | {name: version_of(name) or None for name in PACKAGES},
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        condition(),
        (at_hand(run), at_hand(run_inequalities)),
        try_window() if window else display(),
        (len(bundled()), str(models_folder())),
        extras(),
    )


def extras() -> tuple[Extra, ...]:
    """The extras, and what is missing of each; none without the package's metadata."""
    try:
        lines = requires("bulletbridge") or []
    except PackageNotFoundError:
        return ()
    needed: dict[str, list[str]] = {}
    for found in filter(None, map(REQUIREMENT.match, lines)):
        needed.setdefault(found[2], []).append(found[1])
    return tuple(
        Extra(name, feature, tuple(d for d in needed[name] if not version_of(d)))
        for name, feature in FEATURES.items()
        if name in needed
    )


def display() -> str:
    """Whether there is a display for Bullet's window; it is not opened."""
    if not has_display():
        return "none (DISPLAY is not set): no windows; pictures and videos need none"
    return "there is one; 'bulletbridge doctor --window' tries a window"


def try_window() -> str:
    """Open Bullet's window in a process of its own, which OpenGL may end, and close it again."""
    if not has_display():
        return display()
    command = [sys.executable, "-c", TRY_WINDOW]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=WAIT, check=False)
    except subprocess.TimeoutExpired:
        return f"a window did not open within {WAIT:g} s"
    if "bulletbridge: 1" in done.stdout:
        said = (
            re.search(r"GL_RENDERER=(.*)", done.stdout),
            re.search(r"GL_VERSION=(.*)", done.stdout),
        )
        how = ", ".join(found[1].strip() for found in said if found)
        return f"a window opens ({how})" if how else "a window opens"
    lines = (done.stderr + done.stdout).strip().splitlines()
    reason = lines[-1] if lines else f"exit code {done.returncode}"
    return f"no window opens: {reason}; Bullet needs OpenGL 3"


def lines_of(report: Report) -> list[str]:
    """The report in words, a line each."""
    kernels, (step, contacts) = report.kernels, report.ready
    found = [f"{name} {number or 'is missing'}" for name, number in report.versions.items()]
    state = "compiled" if step else "not compiled yet: the first step takes about half a minute"
    more = "compiled" if contacts else "not compiled yet: half a minute when they are needed"
    kept = f"{kernels.kernels} kept, {kernels.bytes / 1e6:.0f} MB, in {kernels.folder}"
    lines = [
        ", ".join(found[:3]),
        "with " + ", ".join(found[3:]),
        f"system: {report.system}",
        f"processor: {kernels.processor or platform.processor() or platform.machine()}",
        f"kernels of a step: {state}",
        f"kernels of contacts, motors and limits: {more}",
        f"kernels on disk: {f'none, {kernels.refused}' if kernels.refused else kept}",
        f"display: {report.display}",
        f"bundled models: {report.models[0]}, in {report.models[1]}",
    ]
    if kernels.brought:
        lines.append(f"kernels brought as machine code: for {kernels.brought} (docs/kernels.md)")
    if kernels.plain:
        lines.append("numba: used plainly, slower to start (docs/kernels.md)")
    if not report.extras:
        lines.append("extras: unknown, the package was not installed by pip")
    for extra in report.extras:
        state = f"missing {', '.join(extra.missing)}: {extra.remedy}" if extra.missing else "ok"
        lines.append(f"extra {extra.name}: {extra.feature}: {state}")
    return lines
