"""Joints that move no inertia: loaded, named, and without effect on anything else."""

import numpy as np
import pybullet
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from support.urdf_builder import inertial, joint, link, robot

import bulletbridge as bb
from bulletbridge.errors import BulletBridgeWarning

NOTHING = inertial(0.0, (0.0, 0.0, 0.0))
ARM = inertial(1.3, (0.02, 0.03, 0.04), (0.1, 0.05, -0.4))
POINT = inertial(0.2, (0.0, 0.0, 0.0))
ROD = inertial(1.0, (0.1, 0.0, 0.1), (0.0, 0.5, 0.0))


def arm(last, kind="continuous", more=""):
    """A pendulum about y, and a link on a joint at its end about x."""
    return robot(
        link("base"),
        link("arm", ARM),
        link("tip", last),
        joint("swing", "continuous", "base", "arm", axis="0 1 0"),
        joint("wrist", kind, "arm", "tip", (0.0, 0.0, -0.6), axis="1 0 0"),
    ).replace("</robot>", more + "</robot>")


@pytest.fixture
def load(tmp_path, world):
    """Load text into the test's world, with the base held."""

    def loaded(text):
        file = tmp_path / "r.urdf"
        file.write_text(text)
        return bb.load(file, world.client, fixed_base=True, limits=False).system

    return loaded


@pytest.mark.parametrize("last", [NOTHING, POINT], ids=["massless", "point on the axis"])
def test_a_joint_that_moves_nothing_stays_and_nothing_else_feels_it(load, last):
    """The oracle is the same robot with that joint fixed."""
    with pytest.warns(BulletBridgeWarning, match=r"joint 'wrist' \(.*\) moves no inertia"):
        free = load(arm(last))
    fixed = load(arm(last, "fixed"))
    swing = free.mechanism.joints["swing"].q.start
    wrist = free.mechanism.joints["wrist"].q.start
    for system in (free, fixed):
        system.assemble({"swing": 0.7}, {"swing": 0.4})
        system.run(1.0)
    # a step is right to a few round-offs of the largest angle; a thousand of them add up
    assert_allclose(free.q[swing], fixed.q[0], atol=1e-12)
    assert_allclose(free.q[wrist], 0.0, atol=1e-12)


def test_bullet_locks_such_a_joint(world):
    """What the warning says of it: neither torque nor gravity turns it."""
    body = world.load(arm(NOTHING), useFixedBase=True)
    velocity = pybullet.VELOCITY_CONTROL
    for k in range(2):
        pybullet.setJointMotorControl2(body, k, velocity, force=0.0, physicsClientId=world.client)
    pybullet.setGravity(0.0, 0.0, -9.81, physicsClientId=world.client)
    pybullet.resetJointState(body, 0, 0.5, physicsClientId=world.client)
    for _ in range(100):
        pybullet.setJointMotorControl2(
            body, 1, pybullet.TORQUE_CONTROL, force=1.0, physicsClientId=world.client
        )
        pybullet.stepSimulation(physicsClientId=world.client)
    assert pybullet.getJointState(body, 1, physicsClientId=world.client)[0] == 0.0
    assert pybullet.getJointState(body, 0, physicsClientId=world.client)[0] != 0.5


def test_an_armature_that_is_given_is_taken_without_a_word(tmp_path, world):
    (tmp_path / "r.urdf").write_text(arm(NOTHING))
    (tmp_path / "r.loops.yaml").write_text(
        "bulletbridge: 1\nurdf: r.urdf\nfixed_base: true\njoints:\n  wrist: {armature: 0.02}\n"
    )
    system = bb.load(tmp_path / "r.loops.yaml", world.client).system
    wrist = system.mechanism.joints["wrist"].v.start
    assert system.terms().M[wrist, wrist] == 0.02


def test_what_mimics_it_moves_with_it_as_if_it_were_alone(load):
    """A massless leader and a pendulum that mimics it: the pendulum alone, to the trace."""
    text = robot(
        link("base"),
        link("lead", NOTHING),
        link("arm", ARM),
        joint("leader", "continuous", "base", "lead"),
        joint("swing", "continuous", "base", "arm", axis="0 1 0").replace(
            "</joint>", '<mimic joint="leader" multiplier="1.5"/></joint>'
        ),
    )
    alone = robot(
        link("base"), link("arm", ARM), joint("swing", "continuous", "base", "arm", axis="0 1 0")
    )
    with pytest.warns(BulletBridgeWarning, match="'leader'"):
        coupled = load(text)
    single = load(alone)
    rates = coupled.mechanism.joints["swing"].v.start, coupled.mechanism.joints["leader"].v.start
    coupled.assemble({"swing": 0.6})
    single.assemble({"swing": 0.6})
    got, expected = coupled.acceleration(), single.acceleration()
    # the trace adds 1e-6 of the pendulum's inertia over the multiplier squared
    assert_allclose(got[rates[0]], expected[0], rtol=1e-6 / 1.5**2 + 1e-9)
    assert_allclose(1.5 * got[rates[1]], got[rates[0]], rtol=1e-9)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (
            robot(
                link("base"),
                link("a", NOTHING),
                link("b", ARM),
                joint("j", "continuous", "base", "a", axis="0 1 0"),
                joint("k", "continuous", "a", "b", axis="0 1 0"),
            ),
            "'k'",
        ),
        (robot(link("base"), link("a", ROD), joint("k", "spherical", "base", "a")), "'k'"),
        (
            robot(
                link("base"),
                *(link(f"l{k}", NOTHING) for k in range(4)),
                *(
                    joint(f"j{k}", "continuous", f"l{k - 1}" if k else "base", f"l{k}", (0.1, 0, 0))
                    for k in range(4)
                ),
            ),
            "'j0', 'j1', 'j2', 'j3'",
        ),
    ],
    ids=["two on one axis", "rod on a ball", "nothing at all"],
)
def test_other_idle_joints_are_named_and_the_robot_moves(load, text, named):
    with pytest.warns(BulletBridgeWarning, match=f"{named}.* move.? no inertia"):
        system = load(text)
    q = np.array(system.q)
    system.run(0.1)
    assert np.isfinite(system.q).all()
    if "l3" in text:
        assert_array_equal(system.q, q)


def test_inertials_that_lack_a_part_are_told(load):
    """Bullet refuses both; the point of mass hangs as a point does."""
    text = robot(
        link("base"),
        link("a", '<inertial><origin xyz="0 0 -0.5"/><mass value="2"/></inertial>'),
        link(
            "b", "<inertial><inertia ixx='1' ixy='0' ixz='0' iyy='1' iyz='0' izz='1'/></inertial>"
        ),
        joint("j", "continuous", "base", "a", axis="0 1 0"),
        joint("k", "fixed", "a", "b"),
    )
    with pytest.warns(
        BulletBridgeWarning, match=r"'a' is without <inertia>.*'b' is without <mass>"
    ):
        system = load(text)
    assert_allclose(system.terms().M, [[2.0 * 0.5**2]], rtol=1e-12)
