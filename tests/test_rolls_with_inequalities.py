"""Rollouts with motors, limits and contacts: many steps in one call are the steps one by one."""

import warnings
from dataclasses import replace

import numpy as np
import pybullet
import pybullet_data
import pytest
from numpy.testing import assert_array_equal
from support.planar import assembled, four_bar, planar_chain

import bulletbridge as bb
from bulletbridge.models.bundled import find
from bulletbridge.models.loops_file import read_loops

DT = 1 / 240


@pytest.fixture
def client(client_on_earth):
    return client_on_earth


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


def limited_rod(**options):
    """A rod on a hinge that turns up to 1.2 rad, without gravity."""
    rod = planar_chain([1.0], [1.0])
    joints = {"j0": replace(rod.joints["j0"], lower=-9.0, upper=1.2)}
    system = bb.System(replace(rod, joints=joints), [], dt=DT, **options)
    system.gravity = (0, 0, 0)
    return system


def worlds_above(system, number):
    """Starts at several heights and speeds."""
    q = np.repeat(np.array(system.q)[None], number, axis=0)
    q[:, 2] += np.linspace(0.0, 0.05, number)
    v = np.zeros((number, len(system.v)))
    v[:, 3] = np.linspace(-0.2, 0.2, number)
    return q, v


@pytest.mark.parametrize("threads", [1, 3])
def test_many_worlds_with_contacts_are_those_one_by_one(client, threads):
    """To the bit, whoever of the threads takes them, and whether Bullet was asked before or not."""
    system = minitaur(client)
    q, v = worlds_above(system, 5)
    found = bb.rollout(system, q, v, steps=120, every=40, threads=threads).check()
    assert found.done.tolist() == [120] * 5
    for n in (4, 0, 2):
        elsewhere = pybullet.connect(pybullet.DIRECT)
        try:
            other = minitaur(elsewhere)
            other.gravity = system.gravity
            other.set_state(q[n], v[n], 0.0)
            alone = other.rollout(120, 40)
        finally:
            pybullet.disconnect(elsewhere)
        assert_array_equal(states(found[n]), states(alone))


def test_many_worlds_leave_the_system_and_its_world_as_they_were(client):
    system = minitaur(client)
    before, shown = system.save(), system.world.state()
    bb.rollout(system, *worlds_above(system, 2), steps=60)
    assert_array_equal(np.concatenate(system.world.state()), np.concatenate(shown))
    after = system.save()
    assert_array_equal(after.q, before.q)
    expected = one_by_one(system, 30, 10)
    system.restore(before)
    assert_array_equal(states(system.rollout(30, 10)), expected)


def test_worlds_that_reach_a_limit_go_on_with_it():
    """A rod that is thrown stops at its limit; one that starts slower never gets there."""
    system = limited_rod(limits=True)
    q, v = np.array([[0.2], [1.0]]), np.array([[0.1], [3.0]])
    found = bb.rollout(system, q, v, steps=400).check()
    assert np.abs(found.q[0]).max() < 1.2
    assert found.q[1].max() == pytest.approx(1.2, abs=1e-9)
    system.set_state(q[1], v[1], 0.0)
    assert_array_equal(states(found[1]), states(system.rollout(400)))


def test_a_world_that_fails_says_why_and_stops_no_other(client):
    system = minitaur(client)
    q, v = worlds_above(system, 3)
    q[1, 7] += 0.3  # one motor, so that its leg is open
    found = bb.rollout(system, q, v, steps=20)
    assert list(found.failures) == [1]
    assert "cannot close: gap" in found.failures[1]
    assert found.done.tolist() == [20, 0, 20]
    assert np.isnan(found.table[1]).all()


def test_a_state_that_is_set_starts_without_the_impulses_of_limits():
    """What the limit and the motor exerted in an earlier run is not where the next one begins."""
    system, (q, v) = limited_rod(limits="always"), (np.array([1.19]), np.array([0.5]))
    system.motors.set("j0", force=50.0, velocity=3.0)
    runs = []
    for _ in range(2):
        system.set_state(q, v, 0.0)
        runs.append([])
        for _ in range(5):
            system.step()
            runs[-1].append((*system.q, *system.v, system.joint_loads["j0"].limit))
            runs[-1].append(system.complementarity)
    assert runs[0] == runs[1]
    assert runs[0][-2][2] < 0.0  # the limit holds against the motor


def test_limits_start_from_nothing_once_all_is_forgotten():
    """The record by which the next step begins."""
    system = limited_rod(limits="always")
    system.motors.set("j0", force=50.0, velocity=3.0)
    system.set_state(np.array([1.19]), np.array([0.5]), 0.0)
    for _ in range(5):
        system.step()
    records = system._inequalities.latest.joint_limits
    assert records["impulse"].min() < 0.0
    system.forget()
    assert not records["impulse"].any()


def test_rollouts_without_contacts_leave_bullet_alone():
    """What somebody has moved there stays where it is."""
    with bb.load("four_bar", "new", limits="always") as loaded:
        system = loaded.system
        system.step(write=False)
        shown = system.world.state()
        bb.rollout(system, [system.q], steps=3)
        assert_array_equal(np.concatenate(system.world.state()), np.concatenate(shown))
