"""Three links whose tip follows an ellipse: elimination, and integration that keeps velocities.

Eun and others' second application, springs, dampers and disturbances included. The modified
integration keeps the velocity constraints whatever the metric; the gap of the tip is then that of a
quadrature, and a thousand times smaller than without.
"""

from pathlib import Path

import numpy as np
from _drawn import Array, Solid, between, plotted, run, show

from bulletbridge.formulations.classics.three_link import LENGTH, SPEED, START, ThreeLink
from bulletbridge.formulations.elimination import Modified, Unmodified
from bulletbridge.formulations.first_order import Rate, rk4

DURATION, STEPS = 5.0, 500
WEIGHTS = {"I": (1.0, 1.0, 1.0), "diag(7,3,7)": (7.0, 3.0, 7.0), "diag(1,3,5)": (1.0, 3.0, 5.0)}


def gaps(rate: Rate, steps: int) -> tuple[Array, Array, Array]:
    """Times [s], states and distance of the tip from the ellipse [m]."""
    times, path = rk4(rate, np.r_[START, SPEED], DURATION, steps)
    robot = ThreeLink()
    states = zip(times, path[:, :3], path[:, 3:], strict=True)
    errors = np.array([robot.equations(q, v, float(t)).g for t, q, v in states])
    return times, path, np.linalg.norm(errors, axis=1)


def joints(q: Array) -> Array:
    """Ends of the links (4, 3) [m]."""
    x, y = np.cumsum(LENGTH * np.cos(q)), np.cumsum(LENGTH * np.sin(q))
    return np.vstack([np.zeros(3), np.column_stack([x, np.zeros(3), y])])


def main(gui: bool = False, plot: Path | None = None, steps: int = STEPS) -> float:
    """Follow the ellipse for 5 s with three metrics; return the largest gap of them [m]."""
    robot = ThreeLink()
    runs = {n: gaps(Modified(robot, np.diag(w)).rate, steps) for n, w in WEIGHTS.items()}
    runs["none"] = gaps(Unmodified(robot).rate, steps)
    largest = {name: float(gap.max()) for name, (_, _, gap) in runs.items()}
    plotted(plot, "gap of the tip [m]", {n: (t[1:], gap[1:]) for n, (t, _, gap) in runs.items()})
    path = runs["I"][1]

    def poses(t: float) -> list[tuple[Array, Array]]:
        points = joints(path[min(int(t / DURATION * steps), steps), :3])
        return [between(a, b) for a, b in zip(points[:-1], points[1:], strict=True)]

    show(gui, [Solid((0.04, float(size))) for size in LENGTH], DURATION, poses, (0.5, 0, 1.0), 5.0)
    print(", ".join(f"{name} {gap:.1e} m" for name, gap in largest.items()))
    return max(gap for name, gap in largest.items() if name != "none")


if __name__ == "__main__":
    run(main, __doc__)
