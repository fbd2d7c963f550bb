"""Bricard's mechanism, which should be rigid and moves, checked against 18-digit positions.

Five rows close a loop of five joints, and one of them always follows from the others. Which one it
is depends on the position: none is safe to drop. Released from rest, it swings with a period that
is known too, and which the passages of the first joint through a right angle show.
Source: IFToMM benchmark library, A04.
"""

import numpy as np
from _show import loaded, play, run
from scipy.interpolate import CubicHermiteSpline

import bulletbridge as bb

VERTEX = bb.Frame("bar2", (0, -1, 0))
REFERENCE = {  # time [s]: where the vertex is then [m]
    1.0: (0.27448131926462304, -0.88670793873467202, -0.46233000268737604),
    2.5: (-0.99998318529279108, -0.99999999985863519, -0.00001681456584173),
    5.0: (0.99993274230211708, -0.99999999773835316, -0.00006725543608396),
}
PERIOD = 4.9917115136887239  # [s]


def measure(gui: bool = False) -> tuple[float, float, int, int]:
    """Largest error of the vertex [m], error of the period [s], smallest rank, rows."""
    errors, passages = list[float](), list[float]()
    with loaded("bricard", gui, dt=5e-3, integrator="rk4") as system:
        rank = rows = system.encoded.nc
        for t, position in REFERENCE.items():
            swing = play(system, t - system.t, gui)
            vertex = system.kinematics().point(VERTEX).p_W
            errors.append(float(np.linalg.norm(vertex - position)))
            beyond = swing.position("j1") - np.pi / 2
            curve = CubicHermiteSpline(swing.t, beyond, swing.rate("j1"))
            passages.extend(curve.roots(extrapolate=False).tolist())
            rank = min(rank, int(swing.rank.min()))
    there, back = passages
    # from rest at t = 0, it is back at the right angle as long before a period ends
    return max(errors), abs(there + back - PERIOD), rank, rows


def main(gui: bool = False) -> float:
    """Swing once; return the largest distance of the third vertex from the reference [m]."""
    error, period, rank, rows = measure(gui)
    print(
        f"vertex {error:.1e} m from the reference, period {period:.1e} s, "
        f"{rank} of {rows} rows independent"
    )
    return error


if __name__ == "__main__":
    run(main, __doc__)
