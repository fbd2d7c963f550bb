"""Pins that are nearly the same: closed, or told as soon as they open by more than rounding."""

import warnings

import numpy as np
import pybullet
import pytest
from support.planar import planar_chain

import bulletbridge as bb
from bulletbridge.errors import BulletBridgeWarning

POSE = (0.31, -0.17, 0.83), (0.36, -0.48, 0.64, 0.48)
ROUNDED = 2e-7
"""Gap [m]: places within a metre and turns are told in single precision, 6e-8 of each."""


def pinned_twice(client, apart, drawn=0.0):
    """A body that turns about two pins of the world, apart in it, and drawn so far off [m].

    Returns the steps' largest gaps [m].
    """
    client.setGravity(0, 0, -9.81)
    body = client.createMultiBody(1.0, -1, -1, *POSE)
    client.changeDynamics(
        body,
        -1,
        localInertiaDiagonal=[0.01, 0.02, 0.025],
        linearDamping=0,
        angularDamping=0,
    )
    pins, way = [], np.array([0.48, 0.6, 0.64])
    for shift in (0.0, apart):
        pivot = np.array([0.3, 0.1, -0.05]) + shift * way
        place = np.array(client.multiplyTransforms(*POSE, pivot.tolist(), [0, 0, 0, 1])[0])
        place[2] += drawn * (shift > 0.0)
        pins.append((pivot.tolist(), place))
        kind = pybullet.JOINT_POINT2POINT
        client.createConstraint(body, -1, -1, -1, kind, [0] * 3, pivot.tolist(), place.tolist())
    client.resetBaseVelocity(body, [0] * 3, [1.5, 2.0, 1.0])
    while True:
        client.stepSimulation()
        here = client.getBasePositionAndOrientation(body)
        points = [client.multiplyTransforms(*here, pivot, [0, 0, 0, 1])[0] for pivot, _ in pins]
        yield max(
            float(np.abs(p - place).max()) for p, (_, place) in zip(points, pins, strict=True)
        )


@pytest.mark.parametrize("mode", ["filter", "exact"])
@pytest.mark.parametrize("apart", [1e-5, 1e-4])
def test_a_pin_that_opens_beyond_rounding_is_told_once(connect, mode, apart):
    """As for the lever of one at the other, which counts as rounded: a program draws by poses."""
    client = connect()
    client.setBridgeMode(mode)
    gaps = pinned_twice(client, apart)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", BulletBridgeWarning)
        for gap, _ in zip(gaps, range(60), strict=False):
            assert gap < 1e-6 or told
    assert gap > 2e-6
    said = [str(each.message) for each in told]
    assert said and all("opens, by" in each for each in said)
    numbers = [n for n in (1, 2) if any(f"constraint {n} opens" in each for each in said)]
    noted = [n for n, loop in client.getBridgeLoops().items() if "rounding of frames" in loop.note]
    assert noted == numbers and len(said) <= len(numbers)


@pytest.mark.parametrize("mode", ["filter", "exact"])
def test_a_pin_that_opens_further_than_two_frames_are_rounded_is_told(connect, mode):
    """Its two frames, off by what they are drawn with, are twice that apart; ten times was silent.

    As pins that are 0.1 mm apart, of which one is drawn 0.03 mm beside its place.
    """
    client = connect()
    client.setBridgeMode(mode)
    gaps = pinned_twice(client, 1e-4, drawn=3e-5)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", BulletBridgeWarning)
        widest = max(gap for gap, _ in zip(gaps, range(360), strict=False))
    assert widest > 2.0 * 3e-5
    assert sum("constraint 2 opens" in str(each.message) for each in told) == 1


@pytest.mark.parametrize("mode", ["filter", "exact"])
def test_pins_that_are_drawn_apart_by_rounding_are_not_told(connect, mode):
    """One pin written twice, the second time by 0.1 mm off: the gap is that of the drawing."""
    gaps = pinned_twice(client := connect(), 1e-9, drawn=1e-4)
    client.setBridgeMode(mode)
    for gap, _ in zip(gaps, range(60), strict=False):
        assert gap < 1.1e-4


@pytest.mark.parametrize("mode", ["filter", "exact"])
@pytest.mark.parametrize("apart", [4e-4, 6e-4, 1e-3, 3e-3, 3e-2])
def test_pins_that_are_further_apart_are_a_hinge(connect, mode, apart):
    """Over the poses that are looked at one would open by more than rounding can be."""
    gaps = pinned_twice(client := connect(), apart)
    client.setBridgeMode(mode)
    for gap, _ in zip(gaps, range(60), strict=False):
        assert gap < ROUNDED


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("apart", [1e-8, 1e-6, 1e-5, 1e-3])
def test_a_system_keeps_two_pins_or_says_that_one_opens(apart, size):
    """The tip of four hinges on two pins of the world: it may turn by next to nothing."""
    chain = planar_chain([0.4 * size, 0.9 * size, 0.7 * size, 0.5 * size], [0.8, 1.8, 1.4, 1.0])
    free, q = bb.System(chain), np.array([1.0, -1.4, 0.9, 0.7])
    free.set_state(q)
    tips = [bb.Frame("l3", ((0.5 + shift) * size, 0, 0)) for shift in (0.0, apart)]
    pins = [bb.Frame("world", tuple(free.kinematics().point(tip).p_W)) for tip in tips]
    ends = zip("ab", tips, pins, strict=True)
    joints = [bb.LoopJoint(name, bb.JointModel.BALL, *both) for name, *both in ends]
    system = bb.System(chain, joints)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", BulletBridgeWarning)
        system.assemble({"j0": 1.0, "j1": -1.4, "j2": 0.9, "j3": 0.7})
    for _ in range(40):
        assert told or system.evaluate().largest("metres") < 1e-11 * size
        system.step()
    assert bool(told) == (apart < 5e-6)
    assert all("' opens" in str(each.message) for each in told)


@pytest.mark.parametrize("mode", ["filter", "exact"])
@pytest.mark.parametrize("short", [1e-13, 1e-12, 1e-9])
@pytest.mark.parametrize("hinges", [3, 12, 40])
def test_a_chain_short_of_its_reach_by_round_off_is_pinned(connect, hinges, short, mode):
    """Straight, and pinned to the world at its tip: closed by its hinges, without a warning."""
    client, link, none, own = connect(), 0.1, [-1] * hinges, [[0.05, 0, 0]] * hinges
    client.setBridgeMode(mode)
    client.setGravity(0, 0, -9.81)
    places, turns = [[0, 0, 0], *[[link, 0, 0]] * (hinges - 1)], [[0, 0, 0, 1]] * hinges
    links = [0.1] * hinges, none, none, places, turns, own, turns, list(range(hinges))
    axes = [pybullet.JOINT_REVOLUTE] * hinges, [[0, 1, 0]] * hinges
    chain = client.createMultiBody(
        0, -1, -1, [0] * 3, [0, 0, 0, 1], [0] * 3, [0, 0, 0, 1], *links, *axes
    )
    for joint in range(hinges):
        client.changeDynamics(chain, joint, localInertiaDiagonal=[1e-5, 1e-4, 1e-4])
        client.setJointMotorControl2(chain, joint, pybullet.VELOCITY_CONTROL, force=0)
    place = [hinges * link - short, 0, 0]
    kind = pybullet.JOINT_POINT2POINT
    client.createConstraint(chain, hinges - 1, -1, -1, kind, [0] * 3, own[0], place)
    for _ in range(5):
        client.stepSimulation()
        angles = np.cumsum([client.getJointState(chain, joint)[0] for joint in range(hinges)])
        tip = link * np.cos(angles).sum() - place[0], link * np.sin(angles).sum()
        assert np.hypot(*tip) < 1e-12


@pytest.mark.parametrize("mode", ["filter", "exact"])
def test_looking_for_what_opens_asks_for_gaps_alone(connect, mode, monkeypatch):
    """Energy, momentum and rates of each step made rounded robots cost twice; told as before."""
    client = connect()
    client.setBridgeMode(mode)
    gaps = pinned_twice(client, 1e-4)
    next(gaps)
    monkeypatch.delattr(bb.System, "evaluate")
    with pytest.warns(BulletBridgeWarning, match="opens, by"):
        assert max(gap for gap, _ in zip(gaps, range(60), strict=False)) > 2e-6
