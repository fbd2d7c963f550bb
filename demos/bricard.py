"""Bricard's mechanism, which should be rigid and moves, checked against 18-digit positions.

Five rows close a loop of five joints, and one of them always follows from the others. Which one it
is depends on the position: none is safe to drop.
"""

import numpy as np
from _show import loaded, play, run

import bulletbridge as bb

VERTEX = bb.Frame("bar2", (0, -1, 0))
AT_ONE_SECOND = np.array([0.27448131926462304, -0.88670793873467202, -0.46233000268737604])  # [m]


def main(gui: bool = False) -> float:
    """Fall for one second; return the distance of the third vertex from the reference [m]."""
    with loaded("bricard", gui, dt=5e-3, integrator="rk4") as system:
        play(system, 1.0, gui)
        vertex = system.kinematics().point(VERTEX).p_W
        status = system.status
    error = float(np.linalg.norm(vertex - AT_ONE_SECOND))
    print(
        f"vertex {error:.1e} m from the reference, {status.rank} of {status.rows} rows independent"
    )
    return error


if __name__ == "__main__":
    run(main, __doc__)
