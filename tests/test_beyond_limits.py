"""Joints that start beyond their limits: told, and taken back at a bounded speed, loops closed."""

from dataclasses import replace

import numpy as np
import pytest
from support.planar import parallelogram

import bulletbridge as bb
from bulletbridge.comparison.bullet_warnings import traps
from bulletbridge.errors import BulletBridgeWarning
from bulletbridge.inequalities.impulses import FASTEST_FOLLOWING
from bulletbridge.inequalities.motor_limit_rows import FASTEST_RECOVERY, SHALLOW


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


@pytest.mark.parametrize("dt", [1 / 240, 1 / 1000])
def test_a_limit_that_loops_keep_out_of_reach_throws_nothing(dt):
    """The angle between coupler and rocker is least where the crank lies along the ground.

    The joint is taken back as far as that and stays; by the law of cosines, with lengths of 0.4,
    0.9, 0.7 and 1 m and the crank at 60 degrees, 0.399 rad below the start.
    """

    def between(diagonal_squared):
        return np.arccos((0.9**2 + 0.7**2 - diagonal_squared) / (2 * 0.9 * 0.7))

    way = between(1.0 + 0.4**2 - 2 * 0.4 * 0.5) - between((1.0 - 0.4) ** 2)
    with (
        pytest.warns(BulletBridgeWarning, match="'rocker' is at .* beyond its limits"),
        limited("four_bar", "rocker", 0.5, limits=True, dt=dt) as loaded,
    ):
        system = loaded.system
        rocker = system.mechanism.joint("rocker").q
        start = system.q[rocker]
        for _ in range(round(4.0 / dt)):
            before = system.q
            system.step()
            # closing the loop takes some more, of second order in what the joints turn by
            assert np.abs(system.q - before).max() < 1.5 * dt * FASTEST_FOLLOWING
            # nothing acts; what the filter takes for rates is of second order over the step
            assert np.abs(system.v).max() < dt * FASTEST_FOLLOWING**2
        # near the turning point the rest falls by the square of what the crank is off by
        assert start - system.q[rocker] == pytest.approx(way, rel=1e-3)


def test_a_start_beyond_limits_is_told_by_inspect_and_where_limits_act_by_load(recwarn):
    with limited("four_bar", "crank", 0.5, limits=False) as loaded:
        said = [line for line in traps(loaded) if "beyond its limits" in line]
        assert len(said) == 1 and "0.5 rad beyond" in said[0] and said[0].endswith("at the start")
    assert not [w for w in recwarn if "beyond" in str(w.message)]
    with pytest.warns(BulletBridgeWarning, match="0.5 rad beyond its limits"):
        limited("four_bar", "crank", 0.5).close()
    with bb.load("four_bar") as inside:
        assert not [line for line in traps(inside) if "beyond its limits" in line]


@pytest.mark.parametrize("dt", [1 / 240, 1 / 480, 1 / 1000])
def test_steps_in_which_limits_may_act_pass_where_free_ones_do(dt):
    """A parallelogram swings through where it is flat; none of its joints has a limit.

    With 9 rad/s at its lowest point it comes there with 6, and twice a swing, of about a second.
    """
    system, *_ = parallelogram(dt=dt, limits="always")
    system.assemble({"j0": np.pi / 2}, {"j0": 9.0})
    flat, above = 0, False
    for _ in range(round(2.0 / dt)):
        system.step()
        assert system.evaluate().largest("metres") < 1e-12
        assert abs(np.sin(system.q[0] + system.q[1])) < 1e-8  # the coupler stays level
        if above != (np.sin(system.q[0]) < 0):
            above, flat = not above, flat + 1
    assert flat >= 2
