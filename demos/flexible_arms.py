"""Two flexible arms pinned at their tips (system 6b), driven until they bend by centimetres.

Each link is a beam of two modes; Bullet shows it as a chain of segments that follow them. What the
motors put in is in the motion and the bending: work and energy agree to the error of RK4.
"""

import numpy as np
from _show import play, run, window
from scipy.integrate import simpson

import bulletbridge as bb

MODEL, DURATION, DT = "system_6b", 4.0, 1e-3  # [s]


def measure(dt: float = DT, gui: bool = False) -> tuple[float, float, float]:
    """Energy less work [J], energy at the end [J], largest gap at whole seconds [m]."""
    with window(gui, MODEL) as client:
        model = bb.load(MODEL, client, dt=dt, integrator="rk4")
        system, motors = model.system, model.spec.forces
        start_v, start = system.v, system.evaluate().energy
        motion = play(system, DURATION, gui)
        t, v = np.append(0.0, motion.t), np.vstack([start_v, motion.v])
        power = np.zeros(len(t))
        for motor in motors:
            rate = v[:, system.mechanism.joint(motor.joint).v.start]
            power += rate * [motor.torque_at(float(s)) for s in t]
        each = round(1.0 / dt)
        ends = [column[each - 1 :: each] for column in (motion.q, motion.v, motion.t)]
        states = zip(*ends, strict=True)
        gap = max(system.evaluate(*state).largest("metres") for state in states)
        energy = system.evaluate().energy - start
    return float(energy - simpson(power, x=t)), energy, gap


def main(gui: bool = False, dt: float = DT) -> float:
    """Move for 4 s; return how far energy and work of the motors are apart [J]."""
    missing, energy, gap = measure(dt, gui)
    print(f"work and energy {abs(missing):.1e} J apart, of {energy:.3f} J; gap {gap:.0e} m")
    return abs(missing)


if __name__ == "__main__":
    run(main, __doc__)
