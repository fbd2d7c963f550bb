"""Worlds that differ in motors and parameters are those of the system with these settings."""

from dataclasses import replace

import numpy as np
import pybullet
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from support.planar import assembled, four_bar
from test_rolls_with_inequalities import client as client
from test_rolls_with_inequalities import minitaur, states, worlds_above

import bulletbridge as bb
from bulletbridge.errors import AssemblyError, ModelError

DT = 1 / 240
STEPS, EVERY = 60, 20


def swings(system, n, rng):
    """Targets of Minitaur's motors (n, STEPS), which change every ten steps."""
    names = [name for name in system.motors.names if "motor" in name]
    found = {}
    for name in names:
        middle = -np.pi / 2 if "left" in name else np.pi / 2
        targets = middle + rng.uniform(-0.3, 0.3, (n, STEPS // 10))
        found[name] = {"position": np.repeat(targets, 10, axis=1)}
    return found


def alone(system, start, motors, n, parameters):
    """One world by steps of the system itself, with its settings put in by hand."""
    for name in motors:
        system.motors.set(name, force=3.5, position=0.0, position_gain=1.0)
    system.set_parameters({name: float(values[n]) for name, values in parameters.items()})
    system.set_state(*start)
    found = []
    for k in range(STEPS):
        for name, numbers in motors.items():
            position = numbers["position"][n, k]
            system.motors.set(name, force=3.5, position=position, position_gain=1.0)
        system.step(write=False)
        if (k + 1) % EVERY == 0:
            found.append(np.concatenate([system.q, system.v, [system.t]]))
    return np.array(found)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_worlds_with_motors_contacts_and_parameters_are_those_alone(client, rng, threads):
    """To the bit: targets by step, masses, gravity, damping, friction of feet and floor."""
    system = minitaur(client)
    q, v = worlds_above(system, 4)
    motors = swings(system, 4, rng)
    foot = "lower_leg_front_leftL_link"
    parameters = {
        "base_chassis_link.mass": np.linspace(3.0, 5.0, 4),
        "gravity.z": np.linspace(-12.0, -8.0, 4),
        "motor_front_leftL_joint.damping": np.linspace(0.0, 0.1, 4),
        f"{foot}.lateral_friction": np.linspace(0.1, 1.0, 4),
        "world.lateral_friction": np.linspace(0.5, 1.0, 4),
    }
    found = bb.rollout(system, q, v, steps=STEPS, every=EVERY, threads=threads, motors=motors,
                       parameters=parameters).check()  # fmt: skip
    assert found.done.tolist() == [STEPS] * 4
    other = minitaur(pybullet.connect(pybullet.DIRECT))
    for n in (3, 0, 2):
        expected = alone(other, (q[n], v[n], 0.0), motors, n, parameters)
        assert_array_equal(states(found[n]), expected)
    pybullet.disconnect(other.world.client)


def test_parameters_are_those_of_a_model_made_with_them():
    """Each against the four-bar with other rods, built anew; lengths open its loop, and close it.

    To round-off: rows of another scale, and a start that was closed in other steps.
    """
    system = assembled(four_bar())
    system.set_parameters({"j1.damping": 0.3, "l2.mass": 1.9})
    other = assembled(four_bar())
    for solver in other._active.solvers:
        solver.axes["damping"][1] = 0.3
        solver.bodies["J"][3] *= 1.9 / solver.bodies["mass"][3]
        solver.bodies["mass"][3] = 1.9
    other.set_state()
    assert_allclose(states(system.rollout(50)), states(other.rollout(50)), atol=1e-12)


@pytest.mark.parametrize("name, lengths", [("loop.a.x", (0.7, 0.72)), ("j1.origin.x", (0.4, 0.45))])
def test_lengths_differ_from_world_to_world(name, lengths):
    """The loop is closed for each, and moves as that of a mechanism made so, from the same start.

    Rows have another scale there, and so round otherwise.
    """
    system = assembled(four_bar())
    q = np.repeat(system.q[None], 2, axis=0)
    found = bb.rollout(system, q, steps=40, parameters={name: lengths}, threads=2).check()
    made = four_bar()
    mechanism, loop = made.mechanism, made.constraints[0]
    if name == "loop.a.x":
        loop = replace(loop, a=replace(loop.a, xyz=(lengths[1], 0.0, 0.0)))
    else:
        bodies = mechanism.bodies.copy()
        bodies["p"][2] = [lengths[1], 0.0, 0.0]
        mechanism = replace(mechanism, bodies=bodies)
    other = bb.System(mechanism, [loop])
    other.assemble(guess={"j0": 1.0})
    other.set_state(found.q[1, 0], found.v[1, 0], found.t[1, 0])
    assert_allclose(found[1].q[1:], other.rollout(39).q, atol=1e-10)
    assert other.evaluate(found.q[1, 0]).largest("metres") < 1e-13
    assert np.abs(found.q[1] - found.q[0]).max() > 1e-3
    assert system.constraints[0].a.xyz[0] == 0.7


def test_lengths_that_no_position_closes_are_refused_and_change_nothing():
    """Across the plane of a linkage nothing can move."""
    with bb.load("four_bar", "new") as model:
        system = model.system
        before, q = system.parameters, system.q
        with pytest.raises(AssemblyError, match=r"with coupler.origin.z = 0.001 the loops cannot"):
            system.set_parameters({"coupler.origin.z": 1e-3})
        assert system.parameters == before
        assert_array_equal(system.q, q)
        system.step()
        failed = bb.rollout(system, [q] * 2, steps=3, parameters={"coupler.origin.z": [0.0, 1e-3]})
        assert list(failed.failures) == [1]
        assert "coupler.origin.z = 0.001" in failed.failures[1]


def test_parameters_know_what_is_there_now():
    with bb.load("four_bar", "new") as model:
        system = model.system
        assert system.parameters["crank.mass"] == 0.8
        system.set_parameters({"crank.mass": 2.0, "gravity.z": -1.0, "crank.friction": 0.1})
        known = system.parameters
        assert (known["crank.mass"], known["gravity.z"], known["crank.friction"]) == (2, -1, 0.1)
        assert system.has_inequalities


def test_springs_change_in_compiled_steps_and_islands():
    """A spring twice as stiff, put in, is a spring made so; in any linear algebra."""
    frames = bb.Frame("world", (0, 0, -2.0)), bb.Frame("l1", (1.0, 0, 0))
    made = {}
    for solver in ("dense", "islands"):
        for stiffness in (10.0, 20.0):
            spring = bb.Spring("spring", *frames, stiffness=10.0, length=1.0)
            mechanism, loops = four_bar().mechanism, four_bar().constraints
            system = bb.System(mechanism, [*loops, spring], dt=DT, solver=solver)
            system.assemble({"j0": 0.5})
            system.set_parameters({"spring.stiffness": stiffness})
            made[solver, stiffness] = states(system.rollout(30))
    spring = bb.Spring("spring", *frames, stiffness=20.0, length=1.0)
    system = bb.System(mechanism, [*loops, spring], dt=DT)
    system.assemble({"j0": 0.5})
    expected = states(system.rollout(30))
    for solver in ("dense", "islands"):
        assert_allclose(made[solver, 20.0], expected, atol=1e-11)
        assert np.abs(made[solver, 10.0] - expected).max() > 1e-3


def test_a_mask_starts_worlds_again():
    """What follows is the start of the world once more, with its controls going on."""
    system = assembled(four_bar())
    q = np.repeat(system.q[None], 2, axis=0)
    restart = np.zeros((2, 40), bool)
    restart[1, 17] = True
    tau = np.zeros((2, 40, 3))
    tau[:, 17:] = tau[:, : 40 - 17]
    found = bb.rollout(system, q, tau=tau, steps=40, every=1, restart=restart).check()
    assert_array_equal(found.table[1, 17:, :-3], found.table[0, : 40 - 17, :-3])
    assert found.restarted[1].tolist() == restart[1].tolist()
    assert not found.restarted[0].any()
    assert found.done.tolist() == [40, 40]


def test_a_condition_starts_worlds_again():
    system = assembled(four_bar())
    q = np.repeat(system.q[None], 2, axis=0)
    falls = bb.rollout(system, q, steps=30, every=5).q[0, :, 0]
    limit = falls[2]  # reached after 15 steps

    def beyond(q, v, t):
        return abs(q["j0"] - falls[0]) >= abs(limit - falls[0])

    found = bb.rollout(system, q, steps=30, every=5, restart=beyond, threads=2).check()
    assert found.restarted[0].tolist() == [False, False, False, True, False, False]
    assert_array_equal(found.q[:, 3:], found.q[:, :3])


def test_contact_forces_carry_the_weight(client):
    """Of a robot that has come to rest: the floor's forces on all links are m g upwards."""
    system = minitaur(client)
    q, v = worlds_above(system, 2)
    links = [n for n in system.mechanism.links if system.mechanism.links[n].body > 0]
    bodies = {system.mechanism.links[n].body: n for n in links}
    found = bb.rollout(system, q, 0 * v, steps=480, every=120,
                       contact_forces=list(bodies.values())).check()  # fmt: skip
    total = sum(found.contact_forces.values())
    assert total.shape == (2, 4, 3)
    weight = 9.81 * system.mechanism.bodies["mass"].sum()
    motion = np.linalg.norm(found.v[:, -1], axis=1).max()
    assert motion < 1e-2
    assert_allclose(total[:, -1], [[0, 0, weight]] * 2, atol=weight * 1e-2)


def test_what_cannot_be_is_refused():
    system = assembled(four_bar())
    q = [system.q] * 2
    for given, said in (
        ({"motors": {"j0": {"position": [1.0, 2.0]}}}, "is off, and is given no force"),
        ({"motors": {"j0": {"torque": 1.0}}}, "unknown number of motor 'j0'"),
        ({"motors": {"j0": 1.0}}, "motors of 'j0' are 1.0; give {'position': ...}"),
        ({"motors": {"j9": {"force": 1.0}}}, "unknown joint 'j9'"),
        ({"motors": {"j0": {"force": np.zeros(5)}}}, "give one number, (2,) or (2, 7)"),
        ({"motors": {"j0": {"force": [1.0, np.nan]}}}, "not finite in world 1"),
        ({"parameters": {"l0.mas": 1.0}}, "did you mean 'l0.mass'"),
        ({"parameters": {"l0.mass": [1.0, 2.0, 3.0]}}, "give one number or (2,)"),
        ({"restart": np.zeros((2, 7))}, "give booleans (2, 7)"),
        ({"contact_forces": ["l9"]}, "unknown link 'l9'"),
    ):
        with pytest.raises(ModelError) as error:
            bb.rollout(system, q, steps=7, **given)
        assert said in str(error.value)
    with pytest.raises(ModelError, match="give one, as load"):
        bb.Worlds("four_bar", 2)
    with pytest.raises(ModelError, match="they are 0 to 1"):
        bb.Worlds(system, 2).start(2)
    failed = bb.rollout(system, q, steps=7, parameters={"l0.mass": [1.0, -1.0]})
    assert failed.failures == {1: "l0.mass is -1 kg; give a positive mass"}
    assert failed.done.tolist() == [7, 0]


@pytest.mark.parametrize("motors", [{}, {"j0": {"force": 1.0, "velocity": 1.0}}])
def test_an_interrupt_ends_all_threads_and_leaves_the_system(motors):
    system = assembled(four_bar())
    before, told = system.save(), []

    def stop(done, of):
        told.append((done, of))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bb.rollout(system, [system.q] * 8, steps=10, motors=motors, threads=2, progress=stop)
    assert told[0][1] == 8
    assert_array_equal(system.q, before.q)
    told.clear()
    bb.rollout(system, [system.q] * 8, steps=10, motors=motors, threads=2,
               progress=lambda *counts: told.append(counts))  # fmt: skip
    assert told[-1] == (8, 8)
    assert told == sorted(told)


def test_rollouts_follow_what_has_changed_since_the_last_one():
    """Copies that are used again have the settings, the motors and the parameters of now."""
    system = assembled(four_bar(times=2))
    q = [system.q] * 2
    changes = (
        lambda: None,
        lambda: system.motors.set("j0", force=1.0, velocity=2.0),
        lambda: setattr(system, "gravity", (0.0, 0.0, -1.0)),
        lambda: setattr(system, "dt", 1e-3),
        lambda: system.tau.__setitem__("j1", 0.3),
        lambda: system.set_parameters({"l1.mass": 3.0}),
        lambda: system.motors.off("j0"),
        lambda: system.disconnect("again"),
    )
    seen = []
    for change in changes:
        change()
        for varied in ({}, {"l2.mass": [1.0, 2.0]}):  # the second takes copies in any case
            found = bb.rollout(system, q, steps=20, parameters=varied, threads=2,
                               restart=lambda q, v, t: False).check()  # fmt: skip
            before = system.parameters["l2.mass"]
            for n in range(2):
                system.set_parameters({name: values[n] for name, values in varied.items()})
                system.set_state(q[n], np.zeros(3), 0.0)
                alone = system.rollout(20)  # in one call, whose times round otherwise
                assert_array_equal(found.q[n], alone.q)
                assert_array_equal(found.v[n], alone.v)
            system.set_parameters({"l2.mass": before})
            system.set_state(q[0], np.zeros(3), 0.0)
        seen.append(found.q[0, -1, 0])
    assert len(set(seen)) == len(seen) - 1  # a loop that was there twice had no part in it
