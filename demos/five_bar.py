"""Five-bar robot whose tip is led along an ellipse by a constraint written in plain Python.

The guide is smooth and at rest, so it does no work: energy is constant, and falls short of that by
what the integrator does. Halving the step of RK4 divides the error by sixteen.
"""

import numpy as np
from _show import play, run, window

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


def energy_error(dt: float, gui: bool = False) -> tuple[float, float]:
    """Largest change of energy in one second over kinetic energy at the start; largest gap [m]."""
    with window(gui, "five_bar") as client:
        model = bb.load("five_bar", client)
        loops = [*model.spec.constraints, Guide()]
        system = bb.attach(model.ids["robot"], loops, client, dt=dt, integrator="rk4")
        system.assemble({}, {"motor_left": 2.0})
        start = system.evaluate()
        swing = play(system, 1.0, gui)
        samples = zip(swing.q[9::10], swing.v[9::10], swing.t[9::10], strict=True)
        states = [system.evaluate(q, v, float(t)) for q, v, t in samples]
    gap = max(state.largest("metres") for state in states)
    return max(abs(state.energy - start.energy) for state in states) / start.kinetic, gap


def main(gui: bool = False) -> float:
    """Return the order at which the energy error converges; 4 is exact."""
    (coarse, _), (fine, gap) = energy_error(2e-3), energy_error(1e-3, gui)
    order = float(np.log2(coarse / fine))
    print(f"energy error {fine:.1e} of the kinetic energy, order {order:.2f}, gap {gap:.0e} m")
    return order


if __name__ == "__main__":
    run(main, __doc__)
