"""A spinning top whose tip hangs on a bar, in Euler parameters, on charts of its constraints.

Haug and Pavesic's first example. Its mass matrix is singular; charts do not mind. Charts change by
the angle between tangent spaces, since the norm that the paper limits lets slow tops blow up. The
state after 5 s is checked against an independent integration.
"""

from pathlib import Path

import numpy as np
from _drawn import Array, Solid, between, plotted, run, show
from scipy.spatial.transform import Rotation

from bulletbridge.formulations.charts import ChartMotion
from bulletbridge.formulations.classics import top

SPIN, ACROSS = 13.5, 0.1  # [rad/s]
DURATION, DT = 5.0, 4e-3  # [s]
REFERENCE = np.array(
    [
        *(0.239776861731, 0.0399182649342, -0.00699992744919),
        *(-0.713090998689, 0.0571297364907, -0.0493853440385, 0.696992473841),
    ]
)
"""Position of the centre of mass [m] and Euler parameters at 5 s."""


def turn_of(q: Array) -> Rotation:
    """Rotation of the top; its Euler parameters have the scalar first."""
    return Rotation.from_quat([*q[4:], q[3]])


def fly(spin: float = SPIN, dt: float = DT) -> tuple[Array, Array, ChartMotion]:
    """Times [s], configurations and the motion after it."""
    q, v = top.start(ACROSS, spin)
    motion = ChartMotion(top.Top(alpha=0.0), q, v)
    path = [motion.q.copy()]
    for _ in range(round(DURATION / dt)):
        motion.step(dt)
        path.append(motion.q.copy())
    return dt * np.arange(len(path)), np.array(path), motion


def main(gui: bool = False, plot: Path | None = None, dt: float = DT) -> float:
    """Spin for 5 s; return the largest difference to the reference [m or 1]."""
    times, path, motion = fly(dt=dt)
    error = float(np.abs(motion.q - REFERENCE).max())
    lean = np.array([np.hypot(*turn_of(q).apply([0.0, 0.0, 1.0])[:2]) for q in path])
    plotted(plot, "sine of the top's lean", {f"{SPIN} rad/s": (times[1:], lean[1:])})

    def poses(t: float) -> list[tuple[Array, Array]]:
        q = path[min(int(t / dt), len(path) - 1)]
        axis = turn_of(q).apply([0.0, 0.0, 1.0])
        tip = q[:3] - axis
        disc = turn_of(q).as_quat()
        return [(q[:3], disc), between(tip, q[:3] + 0.3 * axis), between(np.zeros(3), tip)]

    wheel, axle, bar = Solid((0.5, 0.1)), Solid((0.04, 1.3)), Solid((0.02, 1.0), (0.3, 0.3, 0.3))
    show(gui, (wheel, axle, bar), DURATION, poses, (0, 0, -0.2), 2.0)
    print(
        f"{motion.changes} charts, gap {motion.error[0]:.0e}, off by {error:.1e} after {DURATION} s"
    )
    return error


if __name__ == "__main__":
    run(main, __doc__)
