"""Appell's particle: on a cylinder that breathes, and at a speed that is given.

Eun and others' first application; the second constraint is nonholonomic and not linear. Both are
checked against one scalar equation each, in polar coordinates and on the hodograph.
"""

from pathlib import Path

import numpy as np
from _drawn import UPRIGHT, Array, Solid, plotted, run, show

from bulletbridge.formulations.classics.particle import AtSpeed, OnCylinder
from bulletbridge.formulations.first_order import rk4
from bulletbridge.formulations.modified import Modified

DURATION, STEPS = 5.0, 500


def main(gui: bool = False, plot: Path | None = None, steps: int = STEPS) -> float:
    """Move both for 5 s; return the larger distance from their references [m]."""
    paths: dict[str, Array] = {}
    errors: list[float] = []
    times = np.linspace(0.0, DURATION, steps + 1)
    for name, system in (("on the cylinder", OnCylinder()), ("at the speed", AtSpeed())):
        times, path = rk4(Modified(system).rate, np.concatenate(system.start()), DURATION, steps)
        paths[name] = path[:, :3]
        errors.append(float(np.linalg.norm(path[-1, :3] - system.exact(DURATION))))
    plotted(plot, "x [m]", {name: (times, path[:, 0]) for name, path in paths.items()})

    def poses(t: float) -> list[tuple[list[float], tuple[float, ...]]]:
        n = min(int(t / DURATION * steps), steps)
        return [([*path[n, :2].tolist(), 0.0], UPRIGHT) for path in paths.values()]

    solids = Solid((0.25, 0.3)), Solid((0.25, 0.3), (0.2, 0.5, 0.8))
    trails = {name: path[:: max(1, steps // 100)] * (1, 1, 0) for name, path in paths.items()}
    show(gui, solids, DURATION, poses, (5.0, 0.5, 0.0), 8.0, -50.0, trails)
    print(", ".join(f"{n} {e:.1e} m" for n, e in zip(paths, errors, strict=True)))
    return max(errors)


if __name__ == "__main__":
    run(main, __doc__)
