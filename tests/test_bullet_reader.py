"""The reader against Pinocchio on the same URDF text, and against Bullet's own link states."""

import numpy as np
import pinocchio as pin
import pybullet
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.spatial.transform import Rotation
from support.bullet_worlds import quiet, seeds
from support.urdf_builder import ONE_DOF, inertial, joint, link, random_tree, robot

from bulletbridge.bullet import reader
from bulletbridge.bullet.checks import link_names, mass_matrix_at
from bulletbridge.bullet.mass_matrix import live_mass_matrix
from bulletbridge.bullet.reader import read_body, read_bullet
from bulletbridge.constraints.encode import encode
from bulletbridge.engine.stepper import Solver
from bulletbridge.engine.workspace import Tolerances
from bulletbridge.mechanism.kinematics import displace, kinematics
from bulletbridge.mechanism.records import POSE

POSE_ATOL = 1e-12
M_RTOL = 1e-12
STEP_RTOL = 1e-11
DIAGONALISATION = 1e-5
"""Bullet diagonalises full tensors to about 1e-6."""


def link_pose(mechanism, q, name):
    """Rotation and position of a URDF link frame in the world, by the kernels."""
    poses = np.zeros(len(mechanism.bodies), POSE)
    poses["R"] = np.eye(3)
    beams, stations = mechanism.beams, mechanism.stations
    kinematics(mechanism.bodies, beams, stations, q, poses, mechanism.axes.copy())
    found = mechanism.link(name)
    pose = poses[found.body]
    return pose["R"] @ found.R, pose["origin"] + pose["p"] + pose["R"] @ found.p


class Oracle:
    """Pinocchio's model of the URDF text, in our coordinates."""

    def __init__(self, text, mechanism, floating, base=None):
        root = (pin.JointModelFreeFlyer(),) if floating else ()
        self.model = pin.buildModelFromXML(text, *root)
        self.data = self.model.createData()
        self.mechanism, self.floating = mechanism, floating
        self.base = base or pin.SE3.Identity()

    def configuration(self, q):
        """Pinocchio's q, and A with its v = A v of ours."""
        q_pin, A = pin.neutral(self.model), np.zeros((self.model.nv, self.mechanism.nv))
        for name, ours in self.mechanism.joints.items():
            if name == "base":
                R = Rotation.from_quat(q[3:7]).as_matrix()
                arm = R @ self.mechanism.link("l0").p  # from the centre of mass to the link
                q_pin[:7] = [*(q[:3] + arm), *q[3:7]]
                A[3:6, :3], A[:3, 3:6] = R.T, R.T
                A[:3, :3] = -R.T @ pin.skew(arm)
                continue
            theirs = self.model.joints[self.model.getJointId(name)]
            value = q[ours.q][0]
            angle = [np.cos(value), np.sin(value)]
            q_pin[theirs.idx_q : theirs.idx_q + theirs.nq] = angle if theirs.nq == 2 else value
            A[theirs.idx_v, ours.v.start] = 1.0
        return q_pin, A

    def mass_matrix(self, q):
        q_pin, A = self.configuration(q)
        M = pin.crba(self.model, self.data, q_pin)
        return A.T @ (np.triu(M) + np.triu(M, 1).T) @ A

    def link_pose(self, q, name):
        pin.framesForwardKinematics(self.model, self.data, self.configuration(q)[0])
        placed = self.base * self.data.oMf[self.model.getFrameId(name)]
        return placed.rotation, placed.translation


@quiet
@given(seeds, st.integers(1, 9), st.booleans(), st.booleans())
def test_links_and_mass_matrix_agree_with_pinocchio(world, seed, n, floating, full_tensors):
    rng = np.random.default_rng(seed)
    text = random_tree(rng, n, ONE_DOF, full_tensors=full_tensors)
    body = world.load(text, useFixedBase=not floating)
    world.shake(body, rng)
    bodies = read_bullet(body, world.client)
    mechanism, (q, _) = bodies.mechanism, bodies.state()
    base = None
    if not floating:
        d = pybullet.getDynamicsInfo(body, -1, world.client)
        p, orn = pybullet.getBasePositionAndOrientation(body, world.client)
        inertial_frame = pin.SE3(Rotation.from_quat(d[4]).as_matrix(), np.array(d[3]))
        base = pin.SE3(Rotation.from_quat(orn).as_matrix(), np.array(p)) * inertial_frame.inverse()
    oracle = Oracle(text, mechanism, floating, base)
    for i in range(n + 1):
        for ours, theirs in zip(
            link_pose(mechanism, q, f"l{i}"), oracle.link_pose(q, f"l{i}"), strict=True
        ):
            assert_allclose(ours, theirs, atol=POSE_ATOL)
    M = oracle.mass_matrix(q)
    scale = np.abs(M).max(initial=0.0)
    tolerance = DIAGONALISATION if full_tensors else M_RTOL
    assert_allclose(mass_matrix_at(mechanism, q)[0], M, atol=tolerance * scale)


@quiet
@given(seeds, st.integers(0, 9), st.booleans())
def test_links_are_where_bullet_has_them(world, seed, n, floating):
    rng = np.random.default_rng(seed)
    text = random_tree(rng, n, full_tensors=True)
    body = world.load(text, useFixedBase=not floating, globalScaling=float(rng.uniform(0.5, 2)))
    world.shake(body, rng)
    bodies = read_bullet(body, world.client)
    q, _ = bodies.state()
    for i in range(n):
        state = pybullet.getLinkState(body, i, 0, 1, world.client)
        R, p = link_pose(bodies.mechanism, q, f"l{i + 1}")
        assert_allclose(p + R @ state[2], state[0], atol=POSE_ATOL)
        inertial_axes = R @ Rotation.from_quat(state[3]).as_matrix()
        assert_allclose(inertial_axes, Rotation.from_quat(state[1]).as_matrix(), atol=POSE_ATOL)


@quiet
@given(seeds, st.integers(0, 9), st.booleans())
def test_states_survive_a_round_trip(world, seed, n, floating):
    rng = np.random.default_rng(seed)
    body = world.load(random_tree(rng, n, full_tensors=True), useFixedBase=not floating)
    bodies = read_bullet(body, world.client)
    if floating:
        world.shake(body, rng)
        q, v = bodies.state()
        before = world.snapshot()
        world.shake(body, rng)
        bodies.write(q, v)
        (_, _, pose, twist, joints, *_), (_, _, pose0, twist0, joints0, *_) = (
            world.snapshot()[0], before[0]
        )  # fmt: skip
        assert pose[0] == pose0[0] and twist == twist0
        sign = np.sign(np.dot(pose[1], pose0[1]))
        assert_allclose(sign * np.array(pose[1]), pose0[1], atol=1e-15)
        for now, then in zip(joints, joints0, strict=True):
            if len(now[0]) <= 1:
                assert now[:2] == then[:2]  # to the last bit
            else:
                assert_allclose(np.r_[now[0], now[1]], np.r_[then[0], then[1]], atol=2e-15)
    q = rng.normal(size=bodies.mechanism.nq)
    v = rng.normal(size=bodies.mechanism.nv)
    for each in bodies.mechanism.joints.values():
        if each.kind in ("spherical", "free"):
            part = slice(each.q.stop - 4, each.q.stop)
            q[part] /= np.linalg.norm(q[part])
    bodies.write(q, v)
    q_back, v_back = bodies.state()
    for each in bodies.mechanism.joints.values():
        if each.kind in ("spherical", "free"):
            part = slice(each.q.stop - 4, each.q.stop)
            q_back[part] *= np.sign(q_back[part] @ q[part])
    assert_allclose(q_back, q, atol=2e-15)
    assert_allclose(v_back, v, atol=3e-15)


@quiet
@given(seeds, st.integers(0, 6))
def test_mass_matrix_agrees_with_bullets_link_velocities(world, seed, n):
    rng = np.random.default_rng(seed)
    body = world.load(random_tree(rng, n, full_tensors=True), useFixedBase=False)
    world.shake(body, rng)
    bodies = read_bullet(body, world.client)
    M = mass_matrix_at(bodies.mechanism, bodies.state()[0])[0]
    live = live_mass_matrix(bodies, [read_body("robot", body, world.client)])
    assert_allclose(live, M, atol=M_RTOL * np.abs(M).max())


def test_a_fixed_base_that_was_given_a_velocity_is_read_as_one_that_was_not(world, rng):
    """Bullet has it in the velocities of all links; it is there still when they have been read."""
    body = world.load(random_tree(rng, 5, ONE_DOF, full_tensors=True), useFixedBase=True)
    world.shake(body, rng)
    pybullet.resetBaseVelocity(body, (1.0, -2.0, 0.5), (0.3, 2.0, -1.0), world.client)
    before = world.snapshot()
    bodies = read_bullet(body, world.client)
    assert world.snapshot() == before
    M = mass_matrix_at(bodies.mechanism, bodies.state()[0])[0]
    live = live_mass_matrix(bodies, [read_body("robot", body, world.client)])
    assert_allclose(live, M, atol=M_RTOL * np.abs(M).max())


@quiet
@given(seeds, st.integers(0, 7), st.booleans(), st.sampled_from([0.0, 0.04, 0.5]))
def test_bullet_steps_as_the_equations_of_motion_say(world, seed, n, floating, link_damping):
    rng = np.random.default_rng(seed)
    client = world.client
    pybullet.resetSimulation(physicsClientId=client)
    pybullet.setGravity(1.0, -2.0, -9.0, client)
    text = random_tree(rng, n, full_tensors=True, damping=0.3, limited=False)
    body = world.load(text, useFixedBase=not floating)
    world.release(body, link_damping)
    world.shake(body, rng)
    bodies = read_bullet(body, client, link_damping=link_damping)
    mechanism, (q, v) = bodies.mechanism, bodies.state()
    terms = Solver(mechanism, encode(mechanism, []), Tolerances()).terms(q, v, 0.0)
    dt = 1 / 240
    v_next = v + dt * np.linalg.solve(terms.M, terms.forces - terms.h) if len(v) else v
    q_next = np.empty_like(q)
    displace(mechanism.bodies, q, v_next, dt, q_next)
    pybullet.stepSimulation(client)
    q_bullet, v_bullet = bodies.state()
    for each in mechanism.joints.values():
        if each.kind in ("spherical", "free"):
            part = slice(each.q.stop - 4, each.q.stop)
            q_bullet[part] *= np.sign(q_bullet[part] @ q_next[part])
    speed = 1.0 + np.abs(v).max(initial=0.0)
    assert_allclose(v_bullet, v_next, atol=STEP_RTOL * speed)
    assert_allclose(q_bullet, q_next, atol=STEP_RTOL)


def test_reading_changes_nothing_but_the_stamp(world, rng):
    body = world.load(random_tree(rng, 8, ONE_DOF), useFixedBase=False)
    world.shake(body, rng)
    before = world.snapshot()
    first, second = read_bullet(body, world.client), read_bullet(body, world.client)
    assert world.snapshot() == before
    first.check()
    second.check()


def test_several_robots_are_one_forest_with_names_of_their_own(world, rng):
    arm = random_tree(rng, 3, ("revolute",), name="arm")
    ids = [world.load(arm, useFixedBase=True), world.load(arm, useFixedBase=False)]
    bodies = read_bullet(ids, world.client)
    assert bodies.body_ids == {"arm": ids[0], "arm_2": ids[1]}
    assert list(bodies.mechanism.joints)[:4] == ["arm/j0", "arm/j1", "arm/j2", "arm_2/base"]
    assert {"world", "arm/l0", "arm_2/l3"} <= set(bodies.mechanism.links)
    alone = read_bullet(ids[1], world.client).mechanism
    q = bodies.state()[0]
    M = mass_matrix_at(bodies.mechanism, q)[0]
    assert_allclose(M[3:, 3:], mass_matrix_at(alone, q[3:])[0], atol=1e-14)
    assert not M[3:, :3].any()
    named = read_bullet({"left": ids[0], "right": ids[1]}, world.client)
    assert "right/base" in named.mechanism.joints


def test_links_joined_by_fixed_joints_are_one_body_with_all_names(world):
    heavy = inertial(2.0, (0.3, 0.4, 0.5), (0.1, 0, 0))
    text = robot(
        link("base"),
        link("arm", heavy),
        link("tool", heavy),
        joint("swing", "continuous", "base", "arm"),
        joint("grip", "fixed", "arm", "tool", (1.0, 0, 0)),
    )
    mechanism = read_bullet(world.load(text, useFixedBase=True), world.client).mechanism
    assert len(mechanism.bodies) == 2 and list(mechanism.joints) == ["swing"]
    body = mechanism.bodies[1]
    assert body["mass"] == 4.0
    assert_allclose(body["com"], [0.6, 0, 0], atol=1e-15)
    assert_allclose(np.diag(body["J"]), [0.6, 0.8 + 1.0, 1.0 + 1.0], atol=1e-15)
    assert mechanism.link("tool").body == 1
    assert_allclose(mechanism.link("tool").p, [1.0, 0, 0], atol=1e-15)
    assert mechanism.joint("swing").lower == -np.inf


def test_continuous_joints_have_no_limits_whatever_their_file_says(tmp_path):
    """Bullet tells the numbers of <limit>, and turns such a joint past them."""
    path = tmp_path / "wheel.urdf"
    limit = '<limit effort="1" velocity="9" lower="-0.1" upper="0.1"/>'
    bar = inertial(moments=(0.01,) * 3, xyz=(0.2, 0, 0))
    hinges = "".join(
        f'<joint name="{name}" type="{kind}"><parent link="base"/><child link="{name}_l"/>'
        f'<axis xyz="0 1 0"/>{limit}</joint>{link(f"{name}_l", bar)}'
        for name, kind in (("wheel", "continuous"), ("lever", "revolute"))
    )
    path.write_text(f'<robot name="r">{link("base", inertial())}{hinges}</robot>')
    client = pybullet.connect(pybullet.DIRECT)
    try:
        pybullet.setGravity(0.0, 0.0, -9.81, client)
        flags = pybullet.URDF_USE_INERTIA_FROM_FILE
        body = pybullet.loadURDF(str(path), useFixedBase=True, flags=flags, physicsClientId=client)
        order = {pybullet.getJointInfo(body, k, client)[1].decode(): k for k in range(2)}
        for k in range(2):
            pybullet.setJointMotorControl2(
                body, k, pybullet.VELOCITY_CONTROL, force=0, physicsClientId=client
            )
        joints = read_bullet(body, client).mechanism.joints
        for _ in range(60):
            pybullet.stepSimulation(client)
        q = {name: pybullet.getJointState(body, k, client)[0] for name, k in order.items()}
        assert abs(q["lever"]) < 0.2 < 1.0 < abs(q["wheel"])
        assert joints["wheel"].upper == np.inf and joints["lever"].upper == 0.1
    finally:
        pybullet.disconnect(client)


def test_limits_damping_gravity_and_link_damping_are_read(world, rng):
    text = robot(
        link("base"),
        link("a"),
        link("b"),
        joint("turn", "revolute", "base", "a", limits=(-0.5, 0.25), damping=0.7),
        joint("slide", "prismatic", "a", "b", limits=(-0.1, 0.2), damping=0.3),
    )
    pybullet.setGravity(1.0, 2.0, -3.0, world.client)
    body = world.load(text, useFixedBase=True, globalScaling=2.0)
    mechanism = read_bullet(body, world.client, link_damping=0.04).mechanism
    assert (mechanism.joint("turn").lower, mechanism.joint("turn").upper) == (-0.5, 0.25)
    assert_allclose([mechanism.joint("slide").lower, mechanism.joint("slide").upper], [-0.2, 0.4])
    assert_allclose(mechanism.gravity, [1.0, 2.0, -3.0])
    assert_allclose(mechanism.axes["damping"], [0.7, 0.3])
    assert_allclose(mechanism.efforts["linear"], 0.04)
    assert len(mechanism.efforts) == 2
    undamped = read_bullet(body, world.client, joint_damping=False).mechanism
    assert not undamped.axes["damping"].any() and len(undamped.efforts) == 0


def test_a_base_called_world_is_the_world_at_the_origin_only(world):
    text = robot(link("world"), link("a"), joint("j", "continuous", "world", "a"))
    mechanism = read_bullet(world.load(text, useFixedBase=True), world.client).mechanism
    assert mechanism.link("world").body == 0
    elsewhere = world.load(text, useFixedBase=True, basePosition=[1, 0, 0])
    mechanism = read_bullet(elsewhere, world.client).mechanism
    assert mechanism.link("world").p.tolist() == [0, 0, 0]
    assert mechanism.link("robot/world").p.tolist() == [1, 0, 0]


def test_bodies_read_again_are_held_against_bullet_if_they_have_changed(world, monkeypatch, rng):
    """The file is asked for once for each body; masses are always those of now."""
    asked: list[str] = []
    save, measure = pybullet.saveWorld, reader.live_mass_matrix
    monkeypatch.setattr(pybullet, "saveWorld", lambda *a: asked.append("file") or save(*a))
    monkeypatch.setattr(reader, "live_mass_matrix", lambda *a: asked.append("M") or measure(*a))
    body = world.load(random_tree(rng, 3, ONE_DOF), useFixedBase=False)
    first = read_bullet(body, world.client).mechanism
    assert asked == ["file", "M"]
    assert read_bullet(body, world.client).mechanism.bodies.tobytes() == first.bodies.tobytes()
    assert asked == ["file", "M"]
    pybullet.changeDynamics(
        body, 0, mass=3.0, localInertiaDiagonal=[0.1] * 3, physicsClientId=world.client
    )
    changed = read_bullet(body, world.client).mechanism.bodies["mass"]
    assert asked == ["file", "M", "M"] and 3.0 in changed.tolist()


def test_a_file_that_has_changed_is_parsed_again(tmp_path):
    path = tmp_path / "robot.urdf"
    for names in (["a"], ["a", "b"]):
        path.write_text("<robot>" + "".join(f"<link name='{n}'/>" for n in names) + "</robot>")
        assert link_names(path) == names
