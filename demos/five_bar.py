"""Five-bar robot whose tip is led along an ellipse by a constraint written in plain Python.

The guide is smooth and at rest, so it does no work: energy is constant, and falls short of that by
what the integrator does. Halving the step of RK4 divides the error by sixteen.
"""

import numpy as np
from _show import loaded, play, run

import bulletbridge as bb

TIP = bb.Frame("forearm_left", (0.6, 0, 0))
CENTRE, AXES = np.array([0.15, 0.0, 0.65]), np.array([0.25, 1.0, 0.12])  # [m]; y does not matter
IN_PLANE = np.diag([1.0, 0.0, 1.0])


class Guide:
    """((p - c) / axes)² = 1 in the plane of motion, as a length: half of it times an axis."""

    name, units = "guide", ("m",)

    def rows(self, kinematics: bb.Kinematics) -> bb.Rows:
        """The ellipse and its derivatives."""
        tip = kinematics.point(TIP)
        shape = IN_PLANE @ np.diag(AXES[0] / AXES**2)
        r, u = tip.p_W - CENTRE, tip.J @ kinematics.v
        g = 0.5 * (r @ shape @ r - AXES[0])
        gamma = u @ shape @ u + r @ shape @ tip.bias
        return bb.Rows(np.array([g]), (r @ shape @ tip.J)[None], np.zeros(1), np.array([gamma]))


def energy_error(dt: float) -> float:
    """Largest change of energy over one second, relative to the kinetic energy at the start."""
    with bb.load("five_bar") as plain:  # its own loop alone, to start from
        loops = [*plain.spec.constraints, Guide()]
        system = bb.System(plain.bodies.mechanism, loops, dt=dt, integrator="rk4")
        guess = dict(zip(plain.system.mechanism.joints, plain.system.q.tolist(), strict=True))
    system.assemble({}, {"motor_left": 2.0}, guess)
    start = system.evaluate()
    energies: list[float] = []
    for _ in range(round(1.0 / dt)):
        system.step()
        energies.append(system.evaluate().energy)
    gap = system.evaluate().largest("metres")
    assert gap < 1e-12, gap
    return float(np.abs(np.array(energies) - start.energy).max()) / start.kinetic


def main(gui: bool = False) -> float:
    """Return the order at which the energy error converges; 4 is exact."""
    if gui:
        with loaded("five_bar", gui, integrator="rk4") as system:
            play(system, 5.0, gui)
    coarse, fine = energy_error(4e-3), energy_error(2e-3)
    order = float(np.log2(coarse / fine))
    print(f"energy error {fine:.1e} of the kinetic energy at 2 ms, order {order:.2f}")
    return order


if __name__ == "__main__":
    run(main, __doc__)
