"""Bodies that change after they were read, and what is no body: said, not crashed or ignored."""

import warnings

import numpy as np
import pybullet
import pytest
from numpy.testing import assert_array_equal

import bulletbridge as bb
from bulletbridge.bullet.meddling import Meddling
from bulletbridge.bullet.state import LOOKS
from bulletbridge.errors import BulletBridgeWarning, ModelError, UnsupportedError, WorldError
from bulletbridge.formulations.registry import FORMULATIONS
from bulletbridge.mechanism.build import empty_mechanism
from bulletbridge.models.bundled import find
from bulletbridge.system.options import COMPILED
from bulletbridge.system.system import System

CHANGES = {
    "mass": {"mass": 2.5},
    "moments of inertia": {"localInertiaDiagonal": [1.0, 2.0, 2.5]},
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_change_dynamics_changes_is_told_when_the_state_is_read(what):
    with bb.load("four_bar") as loaded:
        system, body = loaded.system, next(iter(loaded.ids.values()))
        system.step()
        system.read()
        pybullet.changeDynamics(body, 1, physicsClientId=loaded.client, **CHANGES[what])
        name = pybullet.getJointInfo(body, 1, loaded.client)[12].decode()
        before = system.q, system.v
        with pytest.raises(
            WorldError, match=f"link '{name}' had {what} .* attach or load it again"
        ):
            system.read()
        assert_array_equal(system.q, before[0])
        assert_array_equal(system.v, before[1])


@pytest.mark.parametrize("what", CHANGES)
def test_what_change_dynamics_changes_is_told_by_one_of_the_next_steps(what):
    """It stops before a step is done, and what was not read of a body stops none."""
    with bb.load("four_bar") as loaded:
        system, body = loaded.system, next(iter(loaded.ids.values()))
        pybullet.changeDynamics(body, 1, lateralFriction=0.1, physicsClientId=loaded.client)
        for _ in range(LOOKS):
            system.step()
        pybullet.changeDynamics(body, 1, physicsClientId=loaded.client, **CHANGES[what])
        with pytest.raises(WorldError, match=f"had {what} .* attach or load it again"):
            for _ in range(LOOKS):
                before = system.q, system.v, system.t
                system.step()
        assert_array_equal(system.q, before[0])
        assert_array_equal(system.v, before[1])
        assert system.t == before[2]
        shown = loaded.bodies.state()
        assert_array_equal(shown[0], before[0])


@pytest.mark.parametrize("model", ["system_1", "system_2a"])
def test_contacts_of_beams_are_refused(model):
    with pytest.raises(
        ModelError, match="is a modal beam, which knows no contacts; leave contacts"
    ):
        bb.load(model, contacts=True)
    with bb.load(model) as loaded:
        q, v = loaded.system.q, loaded.system.v
        bodies = loaded.bodies
        for call in (bodies.sticking_points, lambda: bodies.contact_points(q, v, 0.01)):
            with pytest.raises(UnsupportedError, match="beams know no contacts; use the chain"):
                call()


@pytest.mark.parametrize("integrator", [*COMPILED, "heun", "trapezoidal", "symmetric"])
def test_a_mechanism_without_joints_stands_still_under_every_integrator(integrator):
    system = System(empty_mechanism((0.0, 0.0, -9.81)), integrator=integrator, dt=0.01)
    system.step()
    system.rollout(2)
    assert system.t == pytest.approx(0.03) and system.q.shape == system.v.shape == (0,)


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_a_mechanism_without_joints_stands_still_under_every_formulation(formulation):
    system = System(empty_mechanism(), formulation=formulation, dt=0.01)
    system.step()
    assert np.isclose(system.t, 0.01)


def told_by_steps(system, steps=1):
    """What steps warn of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(steps):
            system.step()
    assert all(warning.filename == __file__ for warning in caught)
    return [str(warning.message) for warning in caught]


MOVED = {
    "stepSimulation": lambda body, client: pybullet.stepSimulation(client),
    "resetJointState": lambda body, client: pybullet.resetJointState(
        body, 0, 0.5, physicsClientId=client
    ),
}


@pytest.mark.parametrize("call", MOVED)
@pytest.mark.parametrize("model", ["four_bar", "space_arm"])
def test_a_step_after_others_moved_the_bodies_says_once_what_to_call(call, model):
    with bb.load(model) as loaded:
        system, body = loaded.system, next(iter(loaded.ids.values()))
        assert told_by_steps(system, 3) == []
        MOVED[call](body, loaded.client)
        (said,) = told_by_steps(system)
        assert "step() takes the place of stepSimulation" in said
        assert "system.motors.set(...)" in said and "system.read()" in said
        MOVED[call](body, loaded.client)
        assert told_by_steps(system) == []


def test_what_was_read_set_or_rolled_is_no_surprise():
    with bb.load("four_bar") as loaded:
        system, body, client = loaded.system, next(iter(loaded.ids.values())), loaded.client
        q, v = system.q, system.v
        system.run(0.1)
        pybullet.resetJointStatesMultiDof(
            body, [0, 1, 2], [[x] for x in q], [[x] for x in v], physicsClientId=client
        )
        system.read()
        assert told_by_steps(system) == []
        pybullet.resetJointState(body, 0, 0.5, physicsClientId=client)
        system.set_state(q, v)
        assert told_by_steps(system) == []
        system.rollout(5)
        assert told_by_steps(system, 2) == []
        saved = system.save()
        system.step()
        system.restore(saved)
        assert told_by_steps(system, 2 * LOOKS) == []


@pytest.mark.parametrize("joint, within", [(0, 1), (2, LOOKS)])
def test_a_second_body_that_was_moved_is_found(joint, within):
    """At once by its first joint, which all of Bullet's steps move, else by one of the next."""
    client = pybullet.connect(pybullet.DIRECT)
    try:
        pybullet.setGravity(0, 0, -9.81, client)
        urdf = str(find("four_bar").with_name("four_bar.urdf"))
        flags = pybullet.URDF_USE_INERTIA_FROM_FILE
        first, second = (
            pybullet.loadURDF(urdf, useFixedBase=True, flags=flags, physicsClientId=client)
            for _ in range(2)
        )
        system = bb.attach([first, second], [], client)
        assert told_by_steps(system, 2) == []  # the third step does not look at all of it
        pybullet.resetJointState(second, joint, 0.5, physicsClientId=client)
        found = told_by_steps(system, within)
        # a joint that is not the first is shown anew by the next step, unless that one looks
        assert len(found) == (joint == 0)
        for _ in range(LOOKS):
            pybullet.resetJointState(second, joint, 0.5, physicsClientId=client)
            found += told_by_steps(system)
        assert len(found) == 1
    finally:
        pybullet.disconnect(client)


def test_a_quaternion_of_the_other_sign_is_the_same_pose():
    """Bullet gives it where it works out poses anew, as when all are asked where they touch."""
    q = (0.1, 0.2, 0.3, 0.5, -0.5, 0.1, 0.7)
    watch = Meddling(0, [], [slice(3, 7)], np.zeros(3), 1 / 240)
    watch.shown = q, (0.0,) * 6
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        watch.tell_moved((*q[:3], *(-x for x in q[3:]), *(0.0,) * 6), "the box")
    with pytest.warns(BulletBridgeWarning, match="the box was moved"):
        watch.tell_moved((*q[:3], *q[4:], q[3], *(0.0,) * 6), "the box")


def test_gravity_that_is_set_later_is_told_by_one_of_the_next_steps():
    with bb.load("four_bar") as loaded:
        system, client = loaded.system, loaded.client
        pybullet.setGravity(0, 0, -1.6, client)
        (said,) = told_by_steps(system)
        assert "(0, 0, -1.6)" in said and "set system.gravity = (0, 0, -1.6)" in said
        assert told_by_steps(system, LOOKS) == []
        pybullet.setGravity(0, 0, -3.7, client)
        system.gravity = (0, 0, -3.7)
        assert told_by_steps(system, LOOKS) == []


def test_gravity_that_is_set_after_steps_is_told_by_a_short_program():
    with bb.load("four_bar") as loaded:
        assert told_by_steps(loaded.system, 5) == []
        pybullet.setGravity(0, 0, -1.6, loaded.client)
        assert len(told_by_steps(loaded.system, 5)) == 1


def test_the_step_of_the_client_is_taken_and_a_later_one_told():
    client = pybullet.connect(pybullet.DIRECT)
    try:
        pybullet.setTimeStep(0.002, client)
        system = bb.load("four_bar", client).system
        assert system.dt == 0.002
        assert bb.load("four_bar", client, dt=0.01).system.dt == 0.01
        pybullet.setTimeStep(0.001, client)
        (said,) = told_by_steps(system)
        assert "was set to 0.001 s" in said and "set system.dt = 0.001" in said
        assert told_by_steps(system, LOOKS) == []
        pybullet.setTimeStep(0.004, client)
        system.dt = 0.004
        assert told_by_steps(system, LOOKS) == []
    finally:
        pybullet.disconnect(client)


def test_friction_that_is_changed_while_bodies_touch_is_told(tmp_path):
    client = pybullet.connect(pybullet.DIRECT)
    try:
        pybullet.setGravity(0, 0, -9.81, client)
        box = pybullet.createCollisionShape(
            pybullet.GEOM_BOX, halfExtents=[0.1] * 3, physicsClientId=client
        )
        ground = pybullet.createMultiBody(0, box, basePosition=[0, 0, -0.1], physicsClientId=client)
        body = pybullet.createMultiBody(1, box, basePosition=[0, 0, 0.1], physicsClientId=client)
        system = bb.attach(body, [], client, contacts=True)
        assert told_by_steps(system, 3) == []
        pybullet.changeDynamics(ground, -1, lateralFriction=0.1, physicsClientId=client)
        (said,) = told_by_steps(system, LOOKS)
        assert "system.read() takes that over" in said
    finally:
        pybullet.disconnect(client)
