"""Two arms welded to one bar: the grasp's wrench from the loop, and from the right arm alone.

The right arm knows nothing of the loop but the force and torque at its flange. Its own equations of
motion, seven for six unknowns, must give the wrench that the loop reports.
"""

import numpy as np
from _show import loaded, play, run

import bulletbridge as bb

FLANGE = bb.Frame("right_7", (0, 0, 0.045))


def main(gui: bool = False) -> float:
    """Fall for half a second; return the largest disagreement of the wrench [N or N m]."""
    with loaded("two_arms", gui, dt=1e-3) as system:
        play(system, 0.5, gui)
        vdot, terms = system.acceleration(), system.terms()
        grasp = system.reactions()["grasp"]
        right = slice(system.mechanism.joint("right_1").v.start, system.mechanism.nv)
        missing = (terms.M @ vdot + terms.h - terms.forces)[right]
        point = system.kinematics().point(FLANGE)
        rows = np.vstack([point.J, point.J_angular])[:, right]
        wrench, *_ = np.linalg.lstsq(rows.T, missing, rcond=None)
        left_over = float(np.abs(rows.T @ wrench - missing).max())
        gap = system.evaluate().gaps[0]
    error = float(np.abs(wrench - np.concatenate([grasp.force, grasp.torque])).max())
    print(
        f"wrench differs by {error:.0e} of {np.linalg.norm(grasp.force):.1f} N, "
        f"gap {gap.metres:.0e} m {gap.radians:.0e} rad"
    )
    return max(error, left_over)


if __name__ == "__main__":
    run(main, __doc__)
