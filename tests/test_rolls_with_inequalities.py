"""Rollouts with motors, limits and contacts: many steps in one call are the steps one by one."""

import warnings

import numpy as np
import pybullet
import pybullet_data
import pytest
from numpy.testing import assert_array_equal
from support.planar import assembled, four_bar

import bulletbridge as bb
from bulletbridge.models.bundled import find
from bulletbridge.models.loops_file import read_loops

DT = 1 / 240


@pytest.fixture
def client():
    number = pybullet.connect(pybullet.DIRECT)
    pybullet.setGravity(0, 0, -9.81, number)
    yield number
    pybullet.disconnect(number)


def minitaur(client, height=0.17):
    """Above the plane, its motors holding its legs."""
    pybullet.loadURDF(f"{pybullet_data.getDataPath()}/plane.urdf", physicsClientId=client)
    spec = read_loops(find("minitaur"))
    robot = pybullet.loadURDF(str(spec.bodies[0].urdf), physicsClientId=client)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        system = bb.attach(robot, spec.constraints, client, dt=DT, contacts=True)
    system.assemble(spec.start_q | {"base": [0.0, 0.0, height, 0.0, 0.0, 0.0, 1.0]})
    for name in system.motors.names:
        if "motor" in name:
            sign = -1 if "left" in name else 1
            system.motors.set(name, force=3.5, position=sign * np.pi / 2, position_gain=1.0)
    return system


def one_by_one(system, steps, every):
    """States after each ``every`` steps."""
    found = []
    for n in range(steps):
        system.step(write=False)
        if (n + 1) % every == 0:
            found.append(np.concatenate([system.q, system.v, [system.t]]))
    return np.array(found)


def states(recording):
    return np.column_stack([recording.q, recording.v, recording.t])


@pytest.mark.parametrize("height", [0.17, 0.3])
def test_a_roll_with_contacts_and_motors_is_its_steps(client, height):
    """It lands, pairs of links meet for the first time on the way, and it stands."""
    system = minitaur(client, height)
    start = system.save()
    expected = one_by_one(system, 300, 50)
    contacts = [contact.force for contact in system.contacts()]
    system.restore(start)
    recording = system.rollout(300, 50)
    assert_array_equal(states(recording), expected)
    assert_array_equal([contact.force for contact in system.contacts()], contacts)
    assert np.sum(contacts, axis=0)[2] > 0.0  # it has landed
    assert system.evaluate().largest("kept_metres") < 1e-12


def test_a_roll_with_motors_and_limits_is_its_steps():
    system = assembled(four_bar(limits="always"))
    system.motors.set("j0", force=2.0, velocity=3.0)
    start = system.save()
    expected = one_by_one(system, 200, 20)
    system.restore(start)
    assert_array_equal(states(system.rollout(200, 20)), expected)
