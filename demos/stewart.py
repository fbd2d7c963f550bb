"""Stewart-Gough platform on springs, checked against a reference solution.

Six legs, fifteen loop rows. The reference solves the same model to twelve digits, with an
error-controlled integrator of order eight and independent software. Two points of the platform
are compared, its centre and a corner, so that its inclination counts too.
"""

import numpy as np
from _show import loaded, play, run

import bulletbridge as bb

DURATION, DT = 1.0, 1.25e-3  # [s]
REFERENCE = {  # where points of the platform's link frame are after DURATION, all in [m]
    (-0.6427876096865394, 0.766044443118978, 0.0): (  # centre
        *(-0.022399689896866137, 0.009386703212869496, 1.9293761815859716),
    ),
    (0.0, 0.0, 0.0): (  # corner on leg 0
        *(0.6209194204901678, -0.7553497348920508, 1.8930622387342972),
    ),
}


def main(gui: bool = False, dt: float = DT) -> float:
    """Swing for one second; return the larger distance from the reference [m]."""
    with loaded("stewart", gui, dt=dt, integrator="rk4") as system:
        play(system, DURATION, gui)
        kinematics = system.kinematics()
        error = max(
            float(np.linalg.norm(kinematics.point(bb.Frame("platform", at)).p_W - position))
            for at, position in REFERENCE.items()
        )
        gap = system.evaluate().largest("metres")
    print(f"platform {error:.1e} m from the reference after 1 s, largest gap {gap:.0e} m")
    return error


if __name__ == "__main__":
    run(main, __doc__)
