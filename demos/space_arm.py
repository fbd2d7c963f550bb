"""Free-floating station whose arm holds its own tip: momentum and one velocity filter.

Nothing acts from outside, and the loop joins two links of one robot. The filter projects in the
metric of the mass matrix, so it may change the energy of a velocity but not the momentum.
Source: Kövecses and Piedbœuf 2003. A filter in the Euclidean metric would change the momentum.
"""

import numpy as np
from _show import loaded, play, run


def main(gui: bool = False) -> float:
    """Filter a random velocity once; return the relative change of momentum."""
    with loaded("space_arm", gui, dt=0.01, integrator="rk4") as system:
        play(system, 4.0, gui)
        rng = np.random.default_rng(1)
        v = 0.01 * rng.standard_normal(system.mechanism.nv)
        before = system.evaluate(v=v)
        system.set_state(v=v)  # the nearest velocity that the loop allows
        after = system.evaluate()
        force = np.linalg.norm(system.reactions()["tip"].force)
    change = float(np.abs(after.momentum - before.momentum).max() / np.abs(before.momentum).max())
    lost = before.kinetic - after.kinetic
    print(f"momentum changed by {change:.0e} relative, energy by {-lost:.3f} J, tip {force:.2f} N")
    return change


if __name__ == "__main__":
    run(main, __doc__)
