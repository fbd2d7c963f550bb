"""Two slides that carry a point round a circle: the quasi-velocity of free motion is constant.

Aghili's example. The position is checked against the closed form, an elliptic integral.
"""

from pathlib import Path

import numpy as np
from _drawn import UPRIGHT, Array, Solid, plotted, run, show

from bulletbridge.formulations.classics.circle import CircleRobot
from bulletbridge.formulations.integrators import Scheme, State, rk4
from bulletbridge.formulations.quasi_velocities import ReducedQuasiVelocities, basis_of
from bulletbridge.formulations.stabilise import Stabilisation

RATE, DURATION, DT = 2.0, 5.0, 0.02  # [rad/s], [s], [s]


def main(gui: bool = False, plot: Path | None = None, dt: float = DT) -> float:
    """Slide for 5 s; return the distance from the closed form [m]."""
    robot = CircleRobot()
    scheme = Scheme(robot, ReducedQuasiVelocities(robot), rk4, Stabilisation())
    q, v = robot.state(0.0, RATE)
    path, speeds = [q], [speed(robot, q, v)]
    for n in range(round(DURATION / dt)):
        after = scheme(State(q, v, n * dt), dt)
        q, v = after.q, after.v
        path.append(q)
        speeds.append(speed(robot, q, v))
    exact, _ = robot.state(robot.angle(DURATION, RATE), 0.0)
    error, times = float(np.linalg.norm(q - exact)), dt * np.arange(len(path))
    plotted(plot, "change of the quasi-velocity", {"v_r": (times, np.array(speeds) - speeds[0])})

    def poses(t: float) -> list[tuple[list[float], tuple[float, ...]]]:
        x, y = path[min(int(t / dt), len(path) - 1)].tolist()
        return [([x, 0, -0.06], UPRIGHT), ([0, y, -0.03], UPRIGHT), ([x, y, 0], UPRIGHT)]

    rails = Solid((0.02, 0.6, 0.01)), Solid((0.6, 0.02, 0.01), (0.2, 0.5, 0.8))
    show(gui, (*rails, Solid((0.05, 0.04))), DURATION, poses, distance=1.2)
    print(f"off by {error:.1e} m after {DURATION} s, v_r by {np.ptp(speeds):.0e}")
    return error


def speed(robot: CircleRobot, q: Array, v: Array) -> float:
    """Size of the quasi-velocity [sqrt(kg) m/s]."""
    return float(np.linalg.norm(basis_of(robot.equations(q, v, 0.0)).reduce(v)))


if __name__ == "__main__":
    run(main, __doc__)
