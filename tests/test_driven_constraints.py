"""Driven constraints: followed, in balance of power, refused where they contradict."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from support.planar import four_bar, planar_chain

import bulletbridge as bb
from bulletbridge.errors import (
    AssemblyError,
    StepError,
)
from bulletbridge.mechanism.build import Load, empty_mechanism, with_joint


def test_a_driven_crank_follows_its_motion_and_its_torque_balances_power():
    motion = bb.Motion(z=bb.Sine(0.4, 1.3, 0.2, 1.0))
    drive = bb.Coupling("drive", {"j0": 1.0}, motion=motion)
    system = four_bar(extra=[drive], integrator="rk4", dt=1e-3)
    system.assemble()
    assert system.dof == 0
    for _ in range(200):
        system.step()
        target = motion.z(system.t)
        assert abs(system.q[0] - target[0]) < 1e-12
        assert abs(system.v[0] - target[1]) < 1e-11
    power = system.reactions()["drive"].multipliers[0] * system.v[0]
    state, dt = (system.q, system.v, system.t), 1e-4
    energies = []
    for sign in (1, -1):
        neighbour = four_bar(extra=[drive], integrator="rk4", dt=dt)
        neighbour.assemble()
        neighbour.set_state(*state)
        if sign > 0:
            neighbour.step()
        energies.append(neighbour.evaluate().energy)
    # forward difference: half a step of the rate of power, some 1e2 W/s here
    assert_allclose((energies[0] - energies[1]) / dt, power, atol=5e-2 * (1 + abs(power)))


def test_contradicting_drives_are_refused_and_change_nothing():
    a = bb.Coupling("a", {"j0": 1.0}, motion=bb.Motion(z=bb.Polynomial((1.0, 0.5))))
    b = bb.Coupling("b", {"j0": 1.0}, motion=bb.Motion(z=bb.Polynomial((1.0, 0.7))))
    system = four_bar(extra=[a, b])
    with pytest.raises(AssemblyError, match="contradict the constraint"):
        system.assemble()
    later = bb.Coupling("b", {"j0": 1.0}, motion=bb.Motion(z=bb.Polynomial((1.0, 0.5, 0.1))))
    system = four_bar(extra=[a, later])
    system.assemble()
    with pytest.raises(StepError, match="contradict each other"):
        system.run(1.0)
    assert system.evaluate().largest("metres") < 1e-12
    controlled = four_bar(extra=[a, later], integrator="dop853")
    controlled.assemble()
    # the drives part by 0.2 rad/s², half of it each
    with pytest.raises(StepError, match="'[ab]' opens by 0.1 rad/s²"):
        controlled.run(1.0)


def test_a_motion_that_no_joint_can_follow_is_noticed():
    """The pin of a planar linkage, driven out of its plane and then along it."""
    mechanism = planar_chain([0.4, 0.9, 0.7], [0.8, 1.8, 1.4])
    ends = bb.Frame("world", (1.0, 0, 0)), bb.Frame("l2", (0.7, 0, 0))

    def driven(**motion):
        loop = bb.LoopJoint("pin", bb.JointModel.BALL, *ends, motion=bb.Motion(**motion))
        system = bb.System(mechanism, [loop])
        system.assemble({"j0": 1.0})
        return system

    with pytest.raises(AssemblyError, match="contradict the constraint 'pin'"):
        driven(y=bb.Polynomial((0.0, 0.1)))
    slowly = driven(y=bb.Polynomial((0.0, 0.0, 0.1)))
    with pytest.raises(StepError, match="contradict each other"):
        slowly.run(1.0)
    along = driven(x=bb.Sine(0.1, 0.5))
    along.run(1.0)
    assert along.evaluate().largest("metres") < 1e-12


SLIPPING = {
    bb.JointModel.ROLLING: bb.Motion(x=bb.Polynomial((0.0, 0.0, 0.5))),
    bb.JointModel.PURE_ROLLING: bb.Motion(angle=bb.Polynomial((0.0, 0.0, 0.5))),
    bb.JointModel.SOFT_FINGER: bb.Motion(angle=bb.Polynomial((0.0, 0.0, 0.5))),
}
"""Drives of rows that hold a velocity alone, which have no gap that could tell."""


def rolling_twice(model, motion, on_both, **options):
    """A ball that rolls on two planes in one place, of which the second or both are driven."""
    load = Load(1.0, (0.0, 0.0, 0.0), (0.02, 0.03, 0.04))
    mechanism = with_joint(empty_mechanism((0.0, 0.0, -9.81)), "base", "free", "ball", load=load)
    radius = 0.0 if model is bb.JointModel.SOFT_FINGER else 0.4
    ends = bb.Frame("world"), bb.Frame("ball")
    motions = motion if on_both else None, motion
    loops = [
        bb.LoopJoint(name, model, *ends, radius=radius, motion=moved)
        for name, moved in zip(("one", "two"), motions, strict=True)
    ]
    system = bb.System(mechanism, loops, **options)
    system.set_state(np.array([0.0, 0.0, radius, 0.0, 0.0, 0.0, 1.0]))
    return system


@pytest.mark.parametrize(
    ("model", "options"),
    [
        *((model, {}) for model in SLIPPING),
        (bb.JointModel.ROLLING, {"integrator": "rk4"}),
        (bb.JointModel.ROLLING, {"integrator": "dop853"}),
        (bb.JointModel.ROLLING, {"limits": "always"}),
        (bb.JointModel.ROLLING, {"formulation": "elimination"}),
    ],
    ids=str,
)
def test_drives_that_contradict_each_other_in_velocity_alone_are_refused(model, options):
    """They part by 1 m/s² or rad/s²: after a step the slower one slipped by all of that, unsaid."""
    torn = rolling_twice(model, SLIPPING[model], False, **options)
    before = torn.q, torn.v, torn.t
    unit = "m/s" if model is bb.JointModel.ROLLING else "rad/s"
    with pytest.raises(StepError, match=f"'(one|two)' (slips|opens) by .* {unit}"):
        torn.step()
    for old, new in zip(before, (torn.q, torn.v, torn.t), strict=True):
        assert_allclose(new, old, rtol=0, atol=0)
    led = rolling_twice(model, SLIPPING[model], True, **options)
    for _ in range(20):
        led.step()
    # the plane that moves takes the ball's point along, one that turns all of its spin
    rate = led.v[3] - 0.4 * led.v[1] if model is bb.JointModel.ROLLING else led.v[2]
    assert rate == pytest.approx(led.t, abs=1e-12)


def led_twice(kind, apart, **options):
    """A slide that two drives lead by t and t + apart t², in steps of 1e-5 s."""
    load = Load(1.0, (0.0, 0.0, 0.0), (0.02, 0.03, 0.04))
    mechanism = with_joint(
        empty_mechanism((0.0, 0.0, -9.81)), "slide", "prismatic", "body", load=load
    )
    ways = [bb.Motion(z=bb.Polynomial((0.0, 1.0, a))) for a in (0.0, apart)]
    ends = bb.Frame("world"), bb.Frame("body")
    makers = {
        "coupling": lambda name, way: bb.Coupling(name, {"slide": 1.0}, motion=way),
        "weld": lambda name, way: bb.LoopJoint(name, bb.JointModel.WELD, *ends, motion=way),
        "rod": lambda name, way: bb.Distance(
            name, bb.Frame("world", xyz=(0.0, 0.0, -1.0)), bb.Frame("body"), 1.0, motion=way
        ),
    }
    drives = [makers[k](k, way) for k, way in zip(kind, ways, strict=True)]
    system = bb.System(mechanism, drives, dt=1e-5, **options)
    system.set_state([0.0], [1.0])
    return system


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"integrator": "rk4"},
        {"limits": "always"},
        {"formulation": "elimination"},
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", [("coupling", "weld"), ("weld", "coupling"), ("rod", "coupling")])
def test_drives_that_part_slower_than_a_gap_shows_are_refused_at_once(kind, options):
    """Rates differ by 9e-8 m/s after a step, which opens 4.5e-13 m: that counts as closed.

    Rates of 1 m/s are known to 2e-16, frames to as much in a step of 1e-5 s, or 2e-11 m/s.
    """
    torn = led_twice(kind, 4.5e-3, **options)
    before = torn.q, torn.v, torn.t
    with pytest.raises(StepError, match=r"contradict each other: '\w+' opens by .* m/s"):
        torn.step()
    for old, new in zip(before, (torn.q, torn.v, torn.t), strict=True):
        assert_allclose(new, old, rtol=0, atol=0)
    led = led_twice(kind, 0.0, **options)
    for _ in range(20):
        led.step()
    assert_allclose(led.q, led.t, rtol=0, atol=1e-12)


ROLLERS = bb.JointModel.POINT_ON_PLANE, bb.JointModel.ROLLING, bb.JointModel.PURE_ROLLING


@pytest.mark.parametrize("model", ROLLERS)
def test_a_plane_that_turns_does_so_about_its_frame_and_not_under_the_ball(model):
    """A ball on a free body, above a plane that moves along and tilts about a fixed line.

    Its centre stays a radius from the plane, of which all is known at any time; what touches has
    the plane's velocity there, where it rolls.
    """
    radius, way, tilt = 0.4, bb.Sine(0.05, 0.7), bb.Sine(0.3, 1.1)
    motion = bb.Motion(x=way, angle=tilt, axis=(0.0, 1.0, 0.0))
    load = Load(1.0, (0.0, 0.0, 0.0), (0.02, 0.03, 0.04))
    mechanism = with_joint(empty_mechanism((0.0, 0.0, -9.81)), "base", "free", "ball", load=load)
    ends = bb.Frame("world"), bb.Frame("ball")
    loop = bb.LoopJoint("ground", model, *ends, radius=radius, motion=motion)
    system = bb.System(mechanism, [loop], integrator="rk4", dt=1e-3)
    system.set_state(np.array([0.7, 0.2, radius, 0.0, 0.0, 0.0, 1.0]))
    for _ in range(100):
        system.step()
        (x, x_rate, _), (angle, rate, _) = way(system.t), tilt(system.t)
        normal = np.array([np.sin(angle), 0.0, np.cos(angle)])
        centre = system.q[:3] - [x, 0.0, 0.0]
        assert normal @ centre == pytest.approx(radius, abs=1e-12)
        touching = centre - radius * normal
        plane = np.cross([0.0, rate, 0.0], touching) + [x_rate, 0.0, 0.0]
        spin, velocity = system.v[:3], system.v[3:]
        slip = velocity - np.cross(spin, radius * normal) - plane
        held = slip if model is not bb.JointModel.POINT_ON_PLANE else [normal @ slip]
        assert_allclose(held, 0.0, atol=1e-12)
    assert abs(angle) > 0.1
    system.disconnect("ground")
    system.connect(loop, as_is=True)
    assert system.evaluate().largest("metres") < 1e-12
