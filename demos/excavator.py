"""Excavator read from SDF: the oil pressures that hold its arm still, against virtual work.

A cylinder that moves by a little lifts the arm by a little, so its force is the slope of the
potential energy over its length, the other two held. Inverse dynamics of the loops must agree.
"""

import numpy as np
from _show import play, run, show, window

import bulletbridge as bb
from bulletbridge.models.formats.recognise import read_model

CYLINDERS = ("boom_cylinder", "stick_cylinder", "bucket_cylinder")
REACH = {"boom_cylinder": 0.15, "stick_cylinder": -0.2, "bucket_cylinder": 0.1}  # [m]
STEP = 1e-3  # [m] of the difference


def potential(system: bb.System, lengths: dict[str, float]) -> float:
    """Potential energy [J] with the cylinders drawn out so far [m]."""
    system.assemble(lengths)
    return system.evaluate().potential


def main(gui: bool = False) -> float:
    """Return the largest relative difference of the three forces."""
    with window(gui, "excavator") as client:
        system = bb.load(read_model("excavator"), client, dt=1 / 240).system
        show(system, gui)
        slopes: list[float] = []
        for name in CYLINDERS:
            shifted = [REACH | {name: REACH[name] + k * STEP} for k in (-2, -1, 1, 2)]
            ends = [potential(system, lengths) for lengths in shifted]
            slopes.append(float(np.dot([1.0, -8.0, 8.0, -1.0], ends)) / (12.0 * STEP))
        system.assemble(REACH)
        rest = np.zeros(system.mechanism.nv)
        tau = bb.inverse_dynamics(system, rest, actuated=CYLINDERS)
        forces = [float(tau[system.mechanism.joint(name).v.start]) for name in CYLINDERS]
        if gui:
            play(system, 5.0, gui)  # without oil it sinks
    error = max(abs(f - s) / abs(s) for f, s in zip(forces, slopes, strict=True))
    shown = ", ".join(f"{force / 1e3:.1f}" for force in forces)
    print(f"boom, stick and bucket held by {shown} kN, {error:.0e} off virtual work")
    return error


if __name__ == "__main__":
    run(main, __doc__)
