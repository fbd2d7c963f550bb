"""What a five-bar carries and how its hinges rub, from a second of noisy joint angles.

Its motors shake it by known torques; masses, damping and a length are then identified from
encoders with noise. Each should be found within a few of the standard errors that come with it.
"""

from dataclasses import replace

import numpy as np
from _show import loaded, play, run

import bulletbridge as bb

NOISE, DURATION, ROUGHLY = 1e-3, 1.0, 0.1  # [rad], [s], damping to begin with [N m s]
TRUTH = {
    "forearm_left.mass": 0.58,
    "forearm_right.mass": 0.47,
    "motor_left.damping": 0.13,
    "motor_right.damping": 0.11,
    "elbow_left.damping": 0.12,
    "elbow_right.damping": 0.09,
    "tip.b.x": 0.594,
}
"""Parameters of the robot that is measured [kg], [N m s], [m]; drawings say others."""


def main(gui: bool = False) -> float:
    """Shake, measure, identify; return how many standard errors parameters are off, root mean."""
    rng = np.random.default_rng(7)
    with loaded("five_bar", gui) as system:
        drawn = {name: system.parameters[name] or ROUGHLY for name in TRUTH}
        system.set_parameters(TRUTH)
        parts, torques = [system.recorded()], list[list[float]]()
        for t in np.arange(round(DURATION / system.dt)) * system.dt:
            left, right = 2 * np.sin(7 * t) - 1, 2 * np.sin(5 * t + 2) + 1
            torques.append([float(left), 0.0, float(right), 0.0])
            system.tau[:] = torques[-1]
            parts.append(play(system, system.dt, gui))
        exact = bb.Recording.joined(parts)
        gap = system.evaluate().largest("metres")
        seen = replace(exact, q=exact.q + NOISE * rng.standard_normal(exact.q.shape))
        system.set_parameters(drawn)
        sizes = {name: abs(x) for name, x in TRUTH.items()}
        found = bb.identify(system, seen, sizes, tau=np.array(torques))
    off = [(found.values[name] - x) / found.errors[name] for name, x in TRUTH.items()]
    name = "forearm_left.mass"
    print(
        f"{name} {found.values[name]:.4f} ± {found.errors[name]:.4f} kg, is {TRUTH[name]} kg;"
        f" {len(off)} parameters {np.sqrt(np.mean(np.square(off))):.2f} standard errors off,"
        f" noise {found.noise:.2e} rad, {found.simulations} simulations, gap {gap:.0e} m"
    )
    return float(np.sqrt(np.mean(np.square(off))))


if __name__ == "__main__":
    run(main, __doc__)
