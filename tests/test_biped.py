"""The bundled biped in free fall, its motors' rotors and dampers from its loops file."""

import numpy as np
import pytest
from scipy.integrate import simpson

import bulletbridge as bb
from bulletbridge.models.formats.recognise import read_model

PROMISE = 1e-12
"""Gap [m] of a whole run."""


def fall(dt: float) -> tuple[float, float]:
    """Energy [J] that is neither there nor in the dampers after ten seconds; largest gap [m]."""
    gaps = list[float]()
    with bb.load("biped", dt=dt) as loaded:
        system = loaded.system
        before, v = system.evaluate(), [system.v]
        for _ in range(20):
            v.append(system.run(0.5).v)
            gaps.append(system.evaluate().largest("metres"))
        lost = simpson(np.vstack(v) ** 2 @ system.mechanism.axes["damping"], dx=dt)
        return system.evaluate().energy - before.energy + float(lost), max(gaps)


def test_ten_seconds_of_fall_leave_loops_closed_and_energy_to_the_order_of_the_integrator():
    coarse, gap = fall(1 / 240)
    fine, _ = fall(1 / 480)
    assert gap <= PROMISE
    assert coarse / fine == pytest.approx(4.0, rel=0.05)  # order two; the next term is (w dt)²


def test_it_weighs_forty_kilograms_and_its_motors_have_rotors():
    with bb.load("biped") as loaded:
        system = loaded.system
        assert system.dof == 6 + 12
        assert np.sum(system.mechanism.bodies["mass"]) == pytest.approx(40.0, rel=1e-12)
        rotors = {
            name
            for name, joint in system.mechanism.joints.items()
            if np.any(system.mechanism.axes["armature"][joint.v])
        }
        assert rotors == set(read_model("biped").actuated)
