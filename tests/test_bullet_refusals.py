"""What the reader of Bullet's bodies refuses, by name, and what it does not."""

import numpy as np
import pybullet
import pytest
from numpy.testing import assert_allclose
from support.urdf_builder import ARM, inertial, joint, link, one_joint, robot

from bulletbridge.bullet.reader import read_bullet
from bulletbridge.errors import ModelError, WorldError

BAD = {
    "planar": (one_joint("planar"), r"body 'robot': joint 'j' is planar.*bulletbridge.load"),
    "axis": (one_joint(axis="0 0 2"), r"axis of joint 'j' has length 2; .*unit vector"),
    "no axis": (one_joint(axis="0 0 0"), r"axis of joint 'j' has length 0; .*unit vector"),
    "slack slide": (one_joint("prismatic", axis="0 0 0.999"), r"'j' has length 0.999"),
    "triangle": (
        one_joint(child=inertial(1.0, (1.0, 1.0, 2.5), (0.3, 0, 0))),
        r"made the inertia of link 'a' zero.*\[1 1 2.5 0 0 0\]",
    ),
    "too many": (
        robot(
            *(link(f"l{i}") for i in range(123)),
            *(joint(f"j{i}", "continuous", f"l{i}", f"l{i + 1}") for i in range(122)),
        ),
        r"body 'robot' has 122 joint coordinates.*121.*split",
    ),
}


@pytest.mark.parametrize("text, message", BAD.values(), ids=BAD.keys())
def test_what_cannot_be_modelled_is_refused_by_name_and_changes_nothing(world, text, message):
    body = world.load(text, useFixedBase=True)
    before = world.snapshot() if "l122" not in text else None
    with pytest.raises(ModelError, match=message):
        read_bullet(body, world.client)
    if before:
        assert world.snapshot() == before


def test_a_massless_link_between_two_joints_is_fine(world):
    text = robot(
        link("base"),
        link("cross", inertial(0.0, (0.0, 0.0, 0.0))),
        link("b", inertial(1.0, (0.1, 0.1, 0.1), (0, 0, 0.5))),
        joint("x", "continuous", "base", "cross", axis="1 0 0"),
        joint("y", "continuous", "cross", "b", axis="0 1 0"),
    )
    assert read_bullet(world.load(text, useFixedBase=True), world.client).mechanism.nv == 2


def test_an_axis_with_three_digits_is_meant_as_a_unit_vector(world):
    body = world.load(one_joint(axis="0.577 0.577 0.577"), useFixedBase=True)
    mechanism = read_bullet(body, world.client).mechanism
    assert_allclose(mechanism.bodies[1]["R"][:, 2], 3**-0.5 * np.ones(3), atol=1e-12)


def test_maximal_coordinates_are_refused(world):
    box = pybullet.createCollisionShape(
        pybullet.GEOM_BOX, halfExtents=[0.1, 0.1, 0.1], physicsClientId=world.client
    )
    body = pybullet.createMultiBody(1, box, useMaximalCoordinates=1, physicsClientId=world.client)
    with pytest.raises(ModelError, match="without useMaximalCoordinates"):
        read_bullet(body, world.client)


def test_unknown_bodies_and_clients_are_named(world):
    with pytest.raises(WorldError, match=r"no body 7; it has none"):
        read_bullet(7, world.client)
    body = world.load(ARM)
    with pytest.raises(WorldError, match=rf"no body 7; it has \[{body}\].*loadURDF returned"):
        read_bullet([body, 7], world.client)
    with pytest.raises(WorldError, match="client 77 is not connected"):
        read_bullet(body, 77)
    with pytest.raises(ModelError, match="more than once"):
        read_bullet([body, body], world.client)
    with pytest.raises(ModelError, match="no bodies given"):
        read_bullet([], world.client)


@pytest.mark.parametrize("fixed", [True, False])
def test_a_removed_body_is_noticed_even_if_its_id_is_taken(world, fixed):
    first, second = (world.load(ARM, useFixedBase=fixed) for _ in range(2))
    bodies = read_bullet([first, second], world.client)
    q, v = bodies.state()
    pybullet.removeBody(second, world.client)
    for act in (bodies.check, bodies.state, lambda: bodies.write(q, v)):
        with pytest.raises(WorldError, match=r"body 'robot_2' \(id 1.*removed.*read it again"):
            act()
    assert world.load(ARM, useFixedBase=fixed) == second, "Bullet gives the id away"
    before = world.snapshot()
    for act in (bodies.check, bodies.state, lambda: bodies.write(q + 1.0, v + 1.0)):
        with pytest.raises(WorldError, match="removed"):
            act()
    assert world.snapshot() == before
    pybullet.resetSimulation(physicsClientId=world.client)
    with pytest.raises(WorldError, match="'robot'.*removed"):
        bodies.check()
    pybullet.disconnect(world.client)
    for act in (bodies.check, bodies.state, lambda: bodies.write(q, v)):
        with pytest.raises(WorldError, match=r"client \d+ is not connected any more"):
            act()


def test_a_moved_fixed_base_is_noticed(world):
    body = world.load(ARM, useFixedBase=True)
    bodies = read_bullet(body, world.client)
    pybullet.resetBasePositionAndOrientation(body, [0, 0.1, 0], [0, 0, 0, 1], world.client)
    with pytest.raises(WorldError, match=r"moved by 0.1 m and turned by 0 rad"):
        bodies.state()


def test_states_that_do_not_fit_or_are_not_finite_are_refused(world):
    body = world.load(ARM, useFixedBase=True)
    bodies = read_bullet(body, world.client)
    with pytest.raises(ModelError, match="q has 2 numbers and v 1; the mechanism has 1 and 1"):
        bodies.write(np.zeros(2), np.zeros(1))
    pybullet.resetJointState(body, 0, np.nan, physicsClientId=world.client)
    with pytest.raises(WorldError, match="joint 'j'"):
        bodies.state()
