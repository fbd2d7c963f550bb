"""Whether a change of the code moved a result: trajectories of two states of it, side by side.

``python benchmarks/same_results.py keep FILE`` writes where every bundled model is after some steps
of every stepper, and what comes of everyday scenes in filter and exact mode; after the change,
``python benchmarks/same_results.py compare FILE`` tells what is not the same to the bit, and by how
much. Equal bits are promised for one machine only.
"""

import argparse
import sys
from collections.abc import Callable, Iterator

import daily_scenes
import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

import bulletbridge as bb
from bulletbridge.errors import BulletBridgeError

STEPS = 100
DT = 1.0 / 1000.0
SEGMENTS = "_segments"
"""Ending of models whose counterpart with modal beams is bundled too."""
STEPPERS: dict[str, dict[str, object]] = {
    **{
        name: {"integrator": name}
        for name in ("semi_implicit_euler", "verlet", "rk4", "dop853", "radau", "heun")
    },
    **{
        name: {"integrator": "semi_implicit_euler", "formulation": name}
        for name in ("multipliers", "elimination", "quasi_velocities", "proximal", "modular")
    },
    "newton": {"correction": "current"},
    "fixed passes": {"passes": 2},
    "unfiltered": {"velocity_filter": False},
    "dense": {"solver": "dense"},
    "islands": {"solver": "islands"},
    "sparse": {"solver": "sparse"},
    "limits": {"limits": "always"},
    "clarabel": {"limits": "always", "impulse_solver": "clarabel"},
}
MODES = "filter", "exact"


def after_steps(model: str, options: dict[str, object]) -> np.ndarray:
    """q, v and t of a model after ``STEPS`` steps with these options of ``System``."""
    with bb.load(model, dt=DT, **options) as loaded:  # pyright: ignore[reportArgumentType]
        for _ in range(STEPS):
            loaded.system.step()
        return np.concatenate([loaded.system.q, loaded.system.v, [loaded.system.t]])


def figures_of(scene: str, mode: daily_scenes.Mode) -> np.ndarray:
    """What comes of an everyday scene in a mode: its figures, largest gap and largest rate."""
    found = daily_scenes.play(scene, mode)
    if found.error:
        raise BulletBridgeError(found.error)
    return np.array([*found.figures.values(), found.gap, found.rate])


def cases(only: str) -> Iterator[tuple[str, Callable[[], np.ndarray]]]:
    """All that is compared, or what has ``only`` in its name: a name, and how to get its result."""
    from bulletbridge.models.bundled import bundled

    for model in bundled():
        if not model.endswith(SEGMENTS):
            for stepper, options in STEPPERS.items():
                if only in (name := f"{model}, {stepper}"):
                    yield name, lambda m=model, o=options: after_steps(m, o)
    for scene in daily_scenes.SCENES:
        for mode in MODES:
            if only in (name := f"{scene}, {mode} mode"):
                yield name, lambda s=scene, m=mode: figures_of(s, m)


def results(only: str) -> dict[str, np.ndarray]:
    """Result of each case; that of one which is refused, or fails, is its error as text."""
    found: dict[str, np.ndarray] = {}
    for name, run in track(list(cases(only)), "results", console=Console(stderr=True)):
        try:
            found[name] = run()
        except BulletBridgeError as error:
            found[name] = np.array(f"{type(error).__name__}: {error}")
    return found


def difference(before: np.ndarray, now: np.ndarray) -> str:
    """How far two results are apart, relative to the largest number; empty for equal bits."""
    if before.dtype.kind != now.dtype.kind:
        return f"{before} became {now}" if before.dtype.kind == "U" else f"{now}"
    if before.dtype.kind == "U":
        return "" if before == now else f"{before} became {now}"
    if before.shape != now.shape:
        return f"{before.shape} became {now.shape}"
    if before.tobytes() == now.tobytes():
        return ""
    return f"{np.abs(now - before).max() / np.abs(before).max():.1e}"


def main() -> None:
    """Keep results, or compare with those that were kept; exits with 1 where they differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=["keep", "compare"])
    parser.add_argument("file", help="an .npz file")
    parser.add_argument("--only", default="", help="cases with this in their name")
    given = parser.parse_args()
    now = results(given.only)
    if given.action == "keep":
        np.savez(given.file, **now)  # pyright: ignore[reportArgumentType]
        return
    table, before = Table("case", "relative difference"), dict(np.load(given.file))
    for name in before:
        if given.only in name:
            apart = difference(before[name], now[name]) if name in now else "is gone"
            if apart:
                table.add_row(name, apart)
    if table.row_count:
        Console(width=140).print(table)
    print(f"{len(now) - table.row_count} of {len(now)} results have the same bits")
    sys.exit(1 if table.row_count else 0)


if __name__ == "__main__":
    main()
