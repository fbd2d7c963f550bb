"""Chain of spherical joints between two anchors, set swinging: energy converges with order four.

Positions of spherical joints are quaternions, advanced by exponential maps; a chart that forgot to
correct their rates would show here as order two.
"""

import numpy as np
from _show import loaded, play, run


def energy_error(dt: float) -> float:
    """Change of energy over one second [J]."""
    with loaded("ball_chain", False, dt=dt, integrator="rk4") as system:
        start = system.evaluate().energy
        system.run(1.0)
        return abs(system.evaluate().energy - start)


def main(gui: bool = False) -> float:
    """Return the measured order of the energy error."""
    if gui:
        with loaded("ball_chain", gui, integrator="rk4") as system:
            play(system, 10.0, gui)
    coarse, fine = energy_error(4e-3), energy_error(2e-3)
    order = float(np.log2(coarse / fine))
    print(f"energy error {fine:.1e} J at 2 ms, order {order:.2f}")
    return order


if __name__ == "__main__":
    run(main, __doc__)
