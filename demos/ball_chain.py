"""Chain of spherical joints between two anchors, set swinging: energy converges with order four.

Positions of spherical joints are quaternions, advanced by exponential maps; a chart that forgot to
correct their rates would show here as order two.
"""

import numpy as np
from _show import loaded, play, run


def energy_error(dt: float, gui: bool = False) -> float:
    """Largest change of energy over one second [J]."""
    with loaded("ball_chain", gui, dt=dt, integrator="rk4") as system:
        start, changes = system.evaluate().energy, list[float]()
        for _ in range(50):
            play(system, 0.02, gui)
            changes.append(abs(system.evaluate().energy - start))
    return max(changes)


def main(gui: bool = False) -> float:
    """Return the order at which the energy error converges; 4 is exact."""
    coarse, fine = energy_error(2e-3), energy_error(1e-3, gui)
    order = float(np.log2(coarse / fine))
    print(f"energy error {fine:.1e} J at 1 ms, order {order:.2f}")
    return order


if __name__ == "__main__":
    run(main, __doc__)
