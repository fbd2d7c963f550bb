"""Joints that start beyond their limits: told, and taken back at a bounded speed, loops closed."""

from dataclasses import replace

import numpy as np
import pytest

import bulletbridge as bb
from bulletbridge.constraints.bounded_rows import FASTEST_RECOVERY, SHALLOW
from bulletbridge.errors import BulletBridgeWarning
from bulletbridge.surface.traps import traps


def limited(model: str, joint: str, beyond: float, **options):
    """A model with an upper limit so far below where a joint starts, and no gravity."""
    with bb.load(model) as as_it_is:
        start = as_it_is.system.q[as_it_is.system.mechanism.joint(joint).q.start]

    def adjust(mechanism):
        joints = dict(mechanism.joints)
        joints[joint] = replace(joints[joint], upper=float(start) - beyond)
        return replace(mechanism, joints=joints, gravity=np.zeros(3))

    return bb.load(model, adjust=adjust, **options)


@pytest.mark.parametrize(
    ("model", "joint", "beyond", "dt"),
    [
        ("four_bar", "crank", 0.5, 1 / 240),
        ("four_bar", "crank", 0.5, 1 / 1000),
        ("slider_crank", "crank", 0.5, 1 / 240),
        ("stewart", "u1_0", 0.1, 1 / 240),
        ("delta", "motor_1", 0.5, 1 / 240),
    ],
)
def test_a_joint_beyond_its_limit_is_taken_back_at_a_bounded_speed(model, joint, beyond, dt):
    with pytest.warns(BulletBridgeWarning, match=rf"joint '{joint}' is at .* beyond its limits"):
        loaded = limited(model, joint, beyond, limits=True, dt=dt)
    with loaded:
        system = loaded.system
        system.set_state(v=np.zeros(system.mechanism.nv))
        part, upper = system.mechanism.joint(joint).q.start, system.mechanism.joint(joint).upper
        before = system.q[part] - upper
        assert before == pytest.approx(beyond)
        # at the bounded speed, and the last of it by a fifth a step, with as much time again
        steps = int(2 * (beyond / FASTEST_RECOVERY / dt + np.log(beyond / SHALLOW) / 0.2))
        for _ in range(steps):
            rate = abs(system.v[part])
            system.step()
            now = system.q[part] - upper
            # loops and springs may move it meanwhile, besides what takes it back
            moving = max(rate, abs(system.v[part]))
            assert abs(now - before) <= dt * (1.5 * FASTEST_RECOVERY + 2.0 * moving)
            assert system.evaluate().largest("kept_metres") < 1e-12 * system.encoded.length * 10
            before = now
        assert before <= 10 * SHALLOW


def test_a_start_beyond_limits_is_told_by_inspect_and_where_limits_act_by_load(recwarn):
    with limited("four_bar", "crank", 0.5) as loaded:
        said = [line for line in traps(loaded) if "beyond its limits" in line]
        assert len(said) == 1 and "0.5 rad beyond" in said[0] and said[0].endswith("at the start")
    assert not [w for w in recwarn if "beyond" in str(w.message)]
    with bb.load("four_bar") as inside:
        assert not [line for line in traps(inside) if "beyond its limits" in line]
