"""Bodies that change after they were read, and what is no body: said, not crashed or ignored."""

import numpy as np
import pybullet
import pytest
from numpy.testing import assert_array_equal

import bulletbridge as bb
from bulletbridge.bullet.state import LOOKS
from bulletbridge.errors import ModelError, UnsupportedError, WorldError
from bulletbridge.formulations.registry import FORMULATIONS
from bulletbridge.mechanism.build import empty_mechanism
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
