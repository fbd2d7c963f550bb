"""Stewart-Gough platform on springs, checked against a reference solution.

Six legs, fifteen loop rows. The reference solves the same model to twelve digits, with an
error-controlled integrator of order eight and independent software.
"""

import numpy as np
from _show import loaded, play, run

import bulletbridge as bb

CENTRE = np.array([-0.0223996898969, 0.0093867032129, 1.9293761815860])  # [m] after one second
PLATFORM_CENTRE = (-0.6427876096865394, 0.766044443118978, 0.0)  # in the platform's link frame [m]


def main(gui: bool = False) -> float:
    """Swing for one second; return the distance of the platform's centre from the reference [m]."""
    with loaded("stewart", gui, dt=2.5e-3, integrator="rk4") as system:
        play(system, 1.0, gui)
        centre = system.kinematics().point(bb.Frame("platform", PLATFORM_CENTRE)).p_W
        gap = system.evaluate().largest("metres")
    error = float(np.linalg.norm(centre - CENTRE))
    print(f"platform {error:.1e} m from the reference after 1 s, largest gap {gap:.0e} m")
    return error


if __name__ == "__main__":
    run(main, __doc__)
