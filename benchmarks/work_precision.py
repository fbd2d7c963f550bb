"""Wall time to an error, beside MuJoCo on the same mechanisms in one run, one thread.

    python benchmarks/work_precision.py [MODEL ...] [--json FILE]

Error: largest difference of a joint position, base included, from a reference at the horizon. The
reference is ``dop853`` at rtol 1e-14, checked against fixed steps of order 8. A setting counts for
a level only if the next finer one meets it too. MuJoCo (extra ``bench``): RK4, Newton solver,
tolerance 1e-14, solimp 0.9999, solref of 2, 4 and 8 steps, the best of these; ``mj_step`` with many
steps a call.
"""

import argparse
import json
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
from mjcf import mjcf
from rich.console import Console
from rich.table import Table
from step_time import qpos

import bulletbridge as bb
from bulletbridge.errors import StepError
from bulletbridge.surface.load import load

LEVELS = (1e-3, 1e-6, 1e-9)
HORIZONS = (2.0, 10.0)
REPEATS, PATIENCE = 7, 4.0
"""Runs of a setting, whose median counts, and the longest run [s] that is tried."""
TOLERANCES = [10.0**-k for k in np.arange(1.0, 13.1, 0.5)]
STEPS = [1 / 60, 1 / 120, 5e-3, 1 / 240, 2e-3, 1e-3, 5e-4, 2.5e-4, 1e-4, 5e-5, 2e-5, 1e-5]

Run = Callable[[], np.ndarray]
"""Integrates from the start to the horizon; joint positions there."""


def ours(name: str, horizon: float, steps: int = 1, **options: Any) -> Run:
    """A run of this package from the model's start; ``options`` are those of a system."""
    with load(name) as model:
        seen = model.system
        system = bb.System(seen.mechanism, seen.constraints, dt=horizon / steps, **options)
        system.gravity = seen.gravity
        q, v = seen.q, seen.v
        system.assemble()
        system.set_state(q, v)

    def run() -> np.ndarray:
        system.set_state(q, v, 0.0)
        begun = perf_counter()
        system.rollout(steps, every=steps)
        run.seconds = perf_counter() - begun  # pyright: ignore[reportFunctionMemberAccess]
        return system.q

    return run


def mujoco_run(name: str, horizon: float, dt: float, stiffness: float) -> Run | None:
    """The same of MuJoCo, as an expert would set it; None without the extra."""
    try:
        mujoco: Any = import_module("mujoco")
    except ImportError:
        return None
    with load(name) as model:
        peer = mujoco.MjModel.from_xml_string(mjcf(model.system.mechanism, model.system.encoded))
        place, v = qpos(model), model.system.v
        base = [j.v for j in model.system.mechanism.joints.values() if j.kind == "free"]
    steps = round(horizon / dt)
    peer.opt.timestep, peer.opt.integrator = horizon / steps, mujoco.mjtIntegrator.mjINT_RK4
    peer.opt.tolerance = 1e-14
    peer.eq_solref[:] = [stiffness * dt, 1.0]
    peer.eq_solimp[:, :2] = 0.9999
    data = mujoco.MjData(peer)
    for part in base:  # theirs: linear velocity first, angular in body axes
        v[part] = np.roll(v[part], 3)

    def run() -> np.ndarray:
        mujoco.mj_resetData(peer, data)
        data.qpos[:], data.qvel[:] = place, v
        begun = perf_counter()
        mujoco.mj_step(peer, data, nstep=steps)
        run.seconds = perf_counter() - begun  # pyright: ignore[reportFunctionMemberAccess]
        return np.array(data.qpos)

    return run


def timed(run: Run, repeats: int = REPEATS) -> tuple[np.ndarray, float]:
    """Positions at the horizon and the median wall time [s]."""
    times: list[float] = []
    end = np.zeros(0)
    for _ in range(repeats):
        end = run()
        times.append(run.seconds)  # pyright: ignore[reportFunctionMemberAccess]
        if times[0] > 0.1:
            break
    return end, median(times)


def curve(runs: Sequence[tuple[str, Run | None]], reference: np.ndarray) -> list[dict[str, Any]]:
    """Error and wall time of settings from coarse to fine, until one takes too long."""
    points: list[dict[str, Any]] = []
    for label, run in runs:
        if run is None:
            break
        try:
            end, seconds = timed(run)
        except StepError:
            continue
        error = float(np.abs(end - reference).max())
        points.append({"setting": label, "error": error, "seconds": seconds})
        if seconds > PATIENCE or error < 1e-11:
            break
    return points


def least(points: list[dict[str, Any]], level: float) -> dict[str, Any] | None:
    """The fastest setting that meets a level, and so does the next finer one."""
    good = [
        point
        for n, point in enumerate(points)
        if all(p["error"] <= level for p in points[n : n + 2])
    ]
    return min(good, key=lambda point: point["seconds"], default=None)


def measure(name: str, horizon: float) -> dict[str, Any]:
    """Curves and best settings of one model and horizon."""
    end, _ = timed(ours(name, horizon, integrator="dop853", rtol=1e-14, atol=1e-16), 1)
    steps = round(horizon * 400)
    check, _ = timed(ours(name, horizon, steps, integrator="dop853", rtol=None), 1)
    with load(name) as model:
        system = model.system
        system.set_state(end)
        theirs = qpos(model)
    curves = {
        "dop853": curve(
            [
                (f"rtol {r:.0e}", ours(name, horizon, integrator="dop853", rtol=r))
                for r in TOLERANCES
            ],
            end,
        ),
        "dop853, fixed steps": curve(
            [
                (f"dt {horizon / n:.4g}", ours(name, horizon, n, integrator="dop853", rtol=None))
                for n in (round(horizon * f) for f in (5, 7, 10, 15, 20, 30, 40, 60, 80, 120, 240))
            ],
            end,
        ),
        "rk4": curve(
            [
                (f"dt {dt:.4g}", ours(name, horizon, round(horizon / dt), integrator="rk4"))
                for dt in STEPS[:10]
            ],
            end,
        ),
    }
    for k in (2, 4, 8):
        runs = [(f"{k} dt, dt {dt:.4g}", mujoco_run(name, horizon, dt, k)) for dt in STEPS]
        curves[f"MuJoCo RK4 {k} dt"] = curve(runs, theirs)
    best: dict[str, Any] = {}
    for who, keys in (("ours", ("dop853", "dop853, fixed steps", "rk4")), ("MuJoCo", ("MuJoCo",))):
        for level in LEVELS:
            found = [
                {"method": method} | point
                for method, points in curves.items()
                if method.startswith(keys) and (point := least(points, level))
            ]
            best[f"{who} {level:.0e}"] = min(found, key=lambda x: x["seconds"], default=None)
    return {"reference_check": float(np.abs(end - check).max()), "best": best, "curves": curves}


def main() -> None:
    """Measure, print a table, write JSON if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", default=["four_bar", "two_arms", "minitaur"])
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    table = Table(
        "model", "horizon [s]", "error [rad]", "ours [ms]", "setting", "MuJoCo [ms]", "ratio"
    )
    results: dict[str, Any] = {}
    for name in options.models:
        for horizon in HORIZONS:
            found = measure(name, horizon)
            results[f"{name}, {horizon:g} s"] = found
            for level in LEVELS:
                a, b = found["best"][f"ours {level:.0e}"], found["best"][f"MuJoCo {level:.0e}"]
                cells = [f"{1e3 * x['seconds']:.3g}" if x else "not reached" for x in (a, b)]
                ratio = f"{b['seconds'] / a['seconds']:.1f}" if a and b else ""
                setting = f"{a['method']}, {a['setting']}" if a else ""
                table.add_row(
                    name, f"{horizon:g}", f"{level:.0e}", cells[0], setting, cells[1], ratio
                )
    Console(width=140).print(table)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
