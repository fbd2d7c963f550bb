"""What joints of the tree bear, against Pinocchio, cut joints, statics and momentum."""

import re
from dataclasses import replace

import numpy as np
import pinocchio as pin
import pybullet
import pytest
from _campaign_judge import Judge, turned
from bounded_campaign import touching_case
from hypothesis import given
from numpy.testing import assert_allclose
from support import urdf_builder as urdf
from support.bullet_worlds import quat, quiet, seeds
from support.users_constraints import PointOnSphere

import bulletbridge as bb
from bulletbridge import Frame, JointModel, LoopJoint, attach
from bulletbridge.errors import UnsupportedError
from bulletbridge.mechanism.beams import FlexibleBeam
from bulletbridge.mechanism.build import Load, empty_mechanism, with_beam, with_joint
from bulletbridge.numerics.projection import ROW, share_out
from bulletbridge.system.linearisation import OF_REACTIONS
from bulletbridge.system.recording import KINDS

RTOL = 1e-10
"""Sums of some dozen products of numbers that have lost three digits in centres and inertias."""
G = 9.81


def scatter(body, client, rng, floating):
    """Put a body into a random state."""
    pybullet.resetBasePositionAndOrientation(body, rng.normal(size=3), quat(rng), client)
    if floating:
        pybullet.resetBaseVelocity(body, rng.normal(size=3), rng.normal(size=3), client)
    for joint in range(pybullet.getNumJoints(body, client)):
        kind = pybullet.getJointInfo(body, joint, client)[2]
        if kind == pybullet.JOINT_SPHERICAL:
            turn, rate = quat(rng), rng.normal(size=3).tolist()
            pybullet.resetJointStateMultiDof(body, joint, turn, rate, physicsClientId=client)
        elif kind != pybullet.JOINT_FIXED:
            pybullet.resetJointState(body, joint, rng.normal(), rng.normal(), client)


def reaction_of(force, point, torque, at):
    """Force and torque of a wrench at a point, taken about another."""
    return np.concatenate([force, torque + np.cross(point - at, force)])


@quiet
@given(seeds)
def test_trees_bear_what_recursion_in_pinocchio_says(world, seed):
    """Fixed joints are turning ones there, at rest: nothing is merged in that recursion."""
    rng, floating = np.random.default_rng(seed), bool(seed % 2)
    kinds = ("revolute", "prismatic", "fixed")
    text = urdf.random_tree(rng, 7, kinds, full_tensors=False, limited=False)
    body = world.load(text, useFixedBase=not floating)
    scatter(body, world.client, rng, floating)
    pybullet.setGravity(1.0, -2.0, -G, world.client)
    system = attach(body, client=world.client)
    system.tau[:] = rng.normal(size=len(system.tau))
    if floating:
        system.tau[:6] = 0.0
    reactions = system.joint_reactions()
    assert set(reactions) == {f"j{k}" for k in range(7)}

    turning = re.sub(r'type="fixed"', 'type="revolute"', text)
    turning = turning.replace("</joint>", '<limit effort="1" velocity="1"/></joint>')
    turning = re.sub(r"<limit lower[^>]*/>", "", turning)
    root = (pin.JointModelFreeFlyer(),) if floating else ()
    model = pin.buildModelFromXML(turning, *root)
    q, v, tau = pin.neutral(model), np.zeros(model.nv), np.zeros(model.nv)
    R, p = system.link_pose("l0")
    model.gravity.linear = np.array([1.0, -2.0, -G])
    if floating:
        q[:3], q[3:7] = p, pin.Quaternion(R).coeffs()
        _, turn_rate = pybullet.getBaseVelocity(body, world.client)
        centre, _ = pybullet.getBasePositionAndOrientation(body, world.client)
        speed = pybullet.getBaseVelocity(body, world.client)[0] + np.cross(turn_rate, p - centre)
        v[:3], v[3:6] = R.T @ speed, R.T @ turn_rate
    else:
        model.gravity.linear = R.T @ model.gravity.linear
    moving = []
    for name in reactions:
        if (joint := system.mechanism.joints.get(name)) is not None:
            there = model.joints[model.getJointId(name)]
            q[there.idx_q], v[there.idx_v] = system.q[joint.q.start], system.v[joint.v.start]
            tau[there.idx_v] = system.tau[joint.v.start]
            moving.append(there.idx_v)
    data = model.createData()
    M, h = pin.crba(model, data, q), pin.nonLinearEffects(model, data, q, v)
    M = np.triu(M) + np.triu(M, 1).T
    free = [*range(6 if floating else 0), *moving]
    a = np.zeros(model.nv)
    a[free] = np.linalg.solve(M[np.ix_(free, free)], (tau - h)[free])
    pin.rnea(model, data, q, v, a)
    for name, reaction in reactions.items():
        borne = data.f[model.getJointId(name)]
        size = max(1.0, *(np.abs(f.vector).max() for f in data.f))
        assert_allclose(reaction.in_link, borne.vector, atol=RTOL * size)
    pybullet.resetSimulation(physicsClientId=world.client)


def two_parts(rng):
    """A tree, and the same cut at its fixed joint ``cut`` into two robots; where that joint is."""
    inertials = [urdf.random_inertial(rng, rotated=True) for _ in range(4)]
    xyz, rpy = rng.normal(0, 0.4, 3), rng.uniform(-1, 1, 3)
    arm = [
        urdf.link("ground"),
        urdf.link("upper", inertials[0]),
        urdf.link("hand", inertials[1]),
        urdf.joint("shoulder", "revolute", "ground", "upper", axis="0 1 0", limits=(0, -1)),
        urdf.joint("wrist", "revolute", "upper", "hand", (0.4, 0, 0), axis="1 0 0", limits=(0, -1)),
    ]
    tool = [
        urdf.link("tool", inertials[2]),
        urdf.link("tip", inertials[3]),
        urdf.joint("slide", "prismatic", "tool", "tip", (0, 0, 0.2), axis="1 0 0", limits=(0, -1)),
    ]
    whole = urdf.robot(*arm, *tool, urdf.joint("cut", "fixed", "hand", "tool", xyz, rpy), name="r")
    parts = urdf.robot(*arm, name="a"), urdf.robot(*tool, name="t")
    return whole, parts, Frame("a/hand", tuple(xyz), tuple(rpy))


def loads(prefix, tool):
    """Springs on either side of the cut."""
    spring = bb.Spring(
        "spring",
        Frame("world", (1, 1, 1)),
        Frame(tool, (0, 0.2, 0)),
        length=0.5,
        stiffness=30.0,
        damping=2.0,
    )
    turning, along = (9.0, 8.0, 7.0), (1.0, 2.0, 3.0)
    hand = Frame(f"{prefix}hand", (0.1, 0, 0))
    bushing = bb.Bushing("bush", hand, Frame("world"), along, along, turning, turning)
    return spring, bushing


@quiet
@given(seeds)
def test_a_joint_bears_what_the_weld_does_that_takes_its_place(world, seed):
    """With springs across the cut and beside it, pushes, Bullet's damping of links, armature."""
    rng = np.random.default_rng(seed)
    whole, (arm, tool), place = two_parts(rng)
    pushes = {
        "on_tool": (rng.normal(size=3), rng.normal(size=3)),
        "on_hand": (rng.normal(size=3), rng.normal(size=3)),
    }

    def wrenches(prefix, tool):
        return {
            "on_tool": bb.Wrench(Frame(tool, (0.1, 0.2, 0.3)), *pushes["on_tool"]),
            "on_hand": bb.Wrench(Frame(f"{prefix}hand"), *pushes["on_hand"]),
        }

    options = {"client": world.client, "link_damping": 0.3}
    tree = world.load(whole, useFixedBase=True)
    scatter(tree, world.client, rng, False)
    pybullet.setGravity(1.0, -2.0, -G, world.client)
    one = attach(tree, loads("", "tool"), forces=wrenches("", "tool"), **options)
    found = one.joint_reactions()
    R, p = one.link_pose("tool")

    left, right = world.load(arm, useFixedBase=True), world.load(tool)
    base = pybullet.getBasePositionAndOrientation(tree, world.client)
    pybullet.resetBasePositionAndOrientation(left, *base, world.client)
    for k in (0, 1):
        pybullet.resetJointState(
            left, k, *pybullet.getJointState(tree, k, world.client)[:2], world.client
        )
    state = pybullet.getJointState(tree, 3, world.client)[:2]
    pybullet.resetJointState(right, 0, *state, world.client)
    at = pybullet.getLinkState(tree, 2, 1, 1, world.client)
    pybullet.resetBasePositionAndOrientation(right, at[0], at[1], world.client)
    pybullet.resetBaseVelocity(right, at[6], at[7], world.client)
    weld = LoopJoint("cut", JointModel.WELD, place, Frame("t/tool"))
    two = attach(
        {"a": left, "t": right},
        [weld, *loads("a/", "t/tool")],
        forces=wrenches("a/", "t/tool"),
        **options,
    )
    closed, others = two.reactions()["cut"], two.joint_reactions()
    size = np.abs(np.concatenate([closed.force, closed.torque])).max()
    joint = found["cut"]
    assert joint.unique and set(found) == {"shoulder", "wrist", "cut", "slide"}
    # the tree closes the loop to the last digits of the state that Bullet has; its rate too
    told = reaction_of(closed.force, closed.point, closed.torque, p)
    assert_allclose(np.concatenate([joint.force, joint.torque]), told, atol=1e-9 * max(1.0, size))
    for name, owner in (("shoulder", "a/"), ("wrist", "a/"), ("slide", "t/")):
        assert_allclose(found[name].in_link, others[owner + name].in_link, atol=1e-8 * size)
    pybullet.resetSimulation(physicsClientId=world.client)


def table(height):
    """A plate on four legs, each on a fixed joint."""
    box = '<collision><geometry><box size="0.04 0.04 {h}"/></geometry></collision>'
    legs = []
    for k, (x, y) in enumerate(((1, 1), (1, -1), (-1, 1), (-1, -1))):
        content = urdf.inertial(0.5, (0.01, 0.01, 0.01)) + box.format(h=height)
        legs += [
            urdf.link(f"leg{k}", content),
            urdf.joint(f"foot{k}", "fixed", "plate", f"leg{k}", (0.4 * x, 0.3 * y, -height / 2)),
        ]
    return urdf.robot(urdf.link("plate", urdf.inertial(6.0, (0.5, 0.5, 0.9))), *legs, name="table")


def test_each_leg_of_a_table_presses_against_its_quarter(world):
    """A quarter of the plate, whatever the floor shares out: feet stand symmetrically."""
    floor = urdf.link(
        "floor",
        urdf.inertial(0.0, (0, 0, 0))
        + '<collision><geometry><box size="4 4 0.2"/></geometry></collision>',
    )
    world.load(urdf.robot(floor), basePosition=[0, 0, -0.1], useFixedBase=True)
    body = world.load(table(0.5), basePosition=[0, 0, 0.5])
    pybullet.setGravity(0, 0, -G, world.client)
    system = attach(body, client=world.client, contacts=True)
    for _ in range(240):
        system.step()
    carried = sum(contact.force for contact in system.contacts())
    assert_allclose(carried, [0, 0, 8 * G], atol=1e-6)
    feet = system.joint_reactions().values()
    assert_allclose(sum(foot.force for foot in feet), [0, 0, -6 * G], atol=1e-6)
    # sixteen points share the load; how, is left to the solver within its tolerance
    assert_allclose([foot.force[2] for foot in feet], -6 * G / 4, rtol=1e-3)


def test_a_wrist_bears_the_payload_and_what_it_pushes_against(world):
    """By hand: weight beyond the wrist, its moment, and a push in the hand's axes."""
    arm = urdf.robot(
        urdf.link("base"),
        urdf.link("forearm", urdf.inertial(2.0, (0.1, 0.1, 0.1), (0.3, 0, 0))),
        urdf.link("sensor", urdf.inertial(0.2, (0.001, 0.001, 0.001))),
        urdf.link("gripper", urdf.inertial(1.5, (0.01, 0.01, 0.01), (0.1, 0, 0))),
        urdf.joint("elbow", "revolute", "base", "forearm", axis="0 1 0", limits=(0, -1)),
        urdf.joint("mount", "fixed", "forearm", "sensor", (0.6, 0, 0)),
        urdf.joint("wrist", "fixed", "sensor", "gripper", (0.05, 0, 0)),
    )
    body = world.load(arm, useFixedBase=True)
    pybullet.setGravity(0, 0, -G, world.client)
    system = attach(body, client=world.client)
    push = Frame("gripper", (0.2, 0, 0)), np.array([0.0, 5.0, 0.0]), np.zeros(3)
    # a motor that holds, and a push that goes into tau
    lever = 0.3 * 2.0 + 0.6 * 0.2 + 0.75 * 1.5
    system.tau[:] = -lever * G + system.wrench(push[0], push[1], push[2])
    found = system.joint_reactions([push])
    assert_allclose(
        found["wrist"].in_link, [0, -5, 1.5 * G, 0, -1.5 * G * 0.1, -5 * 0.2], atol=1e-9
    )
    assert_allclose(found["mount"].force, [0, -5, 1.7 * G], atol=1e-9)
    assert_allclose(found["mount"].torque, [0, -1.5 * G * 0.15, -5 * 0.25], atol=1e-9)
    assert_allclose(found["elbow"].torque, [0, -lever * G, -5 * 0.85], atol=1e-9)


HAND = ("palm", "finger")


def momentum_of_hand(system, com):
    """Angular momentum about the world's origin, and linear, of the links of ``HAND`` (6,)."""
    kinematics, total = system.kinematics(), np.zeros(6)
    for name in HAND:
        link = system.mechanism.links[name]
        point = kinematics.point(Frame(name, com))
        v, pose = point.J @ system.v, kinematics.poses[link.body]
        R = pose["R"] @ link.R
        J = R @ np.diag([0.02, 0.03, 0.04]) @ R.T
        total += np.concatenate([J @ pose["w"] + np.cross(point.p_W, v), v])  # of a kilogram
    return total


@pytest.mark.parametrize("floating", [False, True])
def test_momentum_beyond_a_joint_changes_by_what_it_bears(world, floating):
    """Motor, limit, friction, impact and contact, in every step: links beyond ``wrist`` alone.

    A step takes inertias and contacts where it starts and where it leads: it is off by its length
    times rates, here less than 1e-4 s times 20 1/s, of what pushes.
    """
    com, dt = (0.05, 0.0, 0.0), 1e-4
    ball = '<collision><geometry><sphere radius="0.05"/></geometry></collision>'
    content = urdf.inertial(1.0, (0.02, 0.03, 0.04), com)
    arm = urdf.robot(
        urdf.link("base", urdf.inertial(3.0, (0.1, 0.1, 0.1))),
        urdf.link("arm", urdf.inertial(2.0, (0.1, 0.1, 0.1), (0.3, 0, 0))),
        urdf.link("palm", content),
        urdf.link("finger", content + ball),
        urdf.joint("shoulder", "revolute", "base", "arm", axis="0 1 0", limits=(-0.5, 0.5)),
        urdf.joint("wrist", "fixed", "arm", "palm", (0.6, 0, 0), (0.3, 0.2, 0.1)),
        urdf.joint("knuckle", "revolute", "palm", "finger", (0.2, 0, 0), axis="0 0 1"),
    )
    floor = '<collision><geometry><box size="6 6 0.2"/></geometry></collision>'
    world.load(
        urdf.robot(urdf.link("floor", urdf.inertial(0.0, (0, 0, 0)) + floor)),
        basePosition=[0, 0, -0.1],
        useFixedBase=True,
    )
    body = world.load(arm, basePosition=[0, 0, 0.3], useFixedBase=not floating)
    pybullet.setGravity(0, 0, -G, world.client)
    pybullet.resetJointState(body, 0, 0.2, 2.0, world.client)
    system = attach(body, client=world.client, contacts=True, limits=True, dt=dt)
    system.motors.set("knuckle", force=1.5, velocity=3.0)
    system.motors.set_friction("shoulder", 0.4)
    seen, touching = 0, False
    for _ in range(3000):
        before, start = momentum_of_hand(system, com), system.link_pose("palm")[1]
        weight = [system.kinematics().point(Frame(name, com)).p_W.copy() for name in HAND]
        system.step(write=False)
        contacts = system.contacts()
        forces = [
            contact.force if contact.b == "finger" else -contact.force for contact in contacts
        ]
        touched = sum(float(np.linalg.norm(force)) for force in forces)
        touching |= touched > 0.0
        if not touching:
            continue
        change = (momentum_of_hand(system, com) - before) / dt
        wrist = system.joint_reactions()["wrist"]
        assert_allclose(wrist.point, start, atol=1e-12)
        force, moment = wrist.force.copy(), wrist.torque + np.cross(wrist.point, wrist.force)
        for place in weight:
            force += [0, 0, -G]
            moment += np.cross(place, [0, 0, -G])
        for contact, pull in zip(contacts, forces, strict=True):
            force += pull
            moment += np.cross(contact.point, pull)
        size = max(2 * G, touched, np.abs(change).max())
        assert_allclose(force, change[3:], atol=2e-3 * size)
        assert_allclose(moment, change[:3], atol=2e-3 * size)
        seen += 1
        if seen == 40:
            break
    assert seen == 40


def test_what_bearings_bear_next_to_a_flat_position_is_the_change_of_momentum():
    """Rods and bars flat to 3e-7 rad: a row of that size holds, by forces as by velocities.

    All that holds them is bearings on the world, since nothing touches and no loop ends there: what
    these bear and the weights make the momentum of their centres, to the angle of the step, 1e-3.
    """
    bounded = touching_case(200000)
    mechanism, system = bounded.case.parts.mechanism, bounded.system()
    masses, offsets = mechanism.bodies["mass"], mechanism.bodies["com"]
    judge, momenta = Judge(mechanism, bounded.case.parts.constraints), list[np.ndarray]()
    for _ in range(3):
        system.step()
        moving = judge.moving(system.q[None], system.v[None])
        arms = turned(moving.R, offsets)
        momenta.append(masses @ (moving.u + np.cross(moving.w, arms))[0])
    assert not any(contact.force.any() for contact in system.contacts())
    borne = system.joint_reactions()
    held = sum(
        borne[name].force
        for name, joint in mechanism.joints.items()
        if mechanism.bodies["parent"][mechanism.axes["body"][joint.v.start]] == 0
    )
    weight = masses.sum() * mechanism.gravity
    changed = (momenta[2] - momenta[1]) / system.dt
    assert_allclose(held + weight, changed, rtol=0, atol=1e-3 * np.linalg.norm(weight))


def test_what_is_not_known_of_rigid_links_is_refused():
    """Modal beams bend between joints; rows in Python are forces on rates alone."""
    bent = with_beam(
        empty_mechanism(),
        "bend",
        FlexibleBeam(0.5, 1.0, 0.1),
        "tip",
    )
    with pytest.raises(UnsupportedError, match="modal beam"):
        bb.System(bent).joint_reactions()
    ball = with_joint(empty_mechanism(), "ball", "free", "ball", load=Load(1.0, inertia=(1, 1, 1)))
    system = bb.System(ball, [PointOnSphere(Frame("ball"), 1.0)])
    system.set_state(np.array([0, 0, 1.0, 0, 0, 0, 1]))
    with pytest.raises(UnsupportedError, match="'sphere' is a constraint in Python"):
        system.joint_reactions()


def standing(world, **options):
    """The table on a floor, with a lamp that a motor turns on it."""
    floor = '<collision><geometry><box size="4 4 0.2"/></geometry></collision>'
    ground = urdf.robot(urdf.link("floor", urdf.inertial(0.0, (0, 0, 0)) + floor))
    world.load(ground, basePosition=[0, 0, -0.1], useFixedBase=True)
    lamp = [
        urdf.link("lamp", urdf.inertial(1.0, (0.01, 0.01, 0.01), (0.2, 0, 0.1))),
        urdf.joint("neck", "revolute", "plate", "lamp", (0.1, 0, 0.1), axis="0 0 1"),
    ]
    text = table(0.5).replace("</robot>", "".join(lamp) + "</robot>")
    body = world.load(text, basePosition=[0, 0, 0.5])
    pybullet.setGravity(0, 0, -G, world.client)
    system = attach(body, client=world.client, contacts=True, **options)
    system.motors.set("neck", force=2.0, velocity=3.0)
    return system


@pytest.mark.parametrize("name", ["four_bar", "stewart", "table"])
def test_a_state_that_is_restored_tells_what_it_told(world, name):
    """To the bit, with what acted in the step that led there."""
    model = None if name == "table" else bb.load(name, "new")
    system = standing(world) if model is None else model.system
    for _ in range(30):
        system.step(write=False)
    saved, told = system.save(), system.joint_reactions().in_links()
    for _ in range(7):
        system.step(write=False)
    assert not np.array_equal(system.joint_reactions().in_links(), told)
    system.restore(saved)
    assert np.array_equal(system.joint_reactions().in_links(), told)
    if model is not None:
        model.close()


def test_recordings_keep_what_joints_bear(world, tmp_path):
    """Line by line what is told after each step, to the bit, and so in files."""
    names, one = ["foot2", "neck"], standing(world)
    start = one.save()
    run = one.rollout(10, every=3, reactions=names)
    end = one.q.copy()
    one.restore(start)
    for k in range(3):
        for _ in range(3):
            one.step(write=False)
        expected = one.joint_reactions()
        assert np.array_equal(run.q[k], one.q)
        assert run["foot2.fz"][k] == expected["foot2"].in_link[2]
        told = np.array([run.reactions[name][k] for name in names])
        assert np.array_equal(told, expected.in_links(names))
    one.step(write=False)
    assert np.array_equal(one.q, end)
    for kind in KINDS:
        run.save(tmp_path / f"run{kind}")
        read = bb.Recording.read(tmp_path / f"run{kind}", one.mechanism)
        assert list(read.reactions) == names and np.array_equal(read.passes, run.passes)
        for name in names:
            assert np.array_equal(read.reactions[name], run.reactions[name])
    figure = bb.plot(run, *names)
    assert [axes.get_ylabel() for axes in figure.axes[2:]] == ["force [N]", "torque [N m]"]
    with pytest.raises(bb.errors.UnknownNameError, match="did you mean 'foot2'"):
        one.rollout(1, reactions=["foot22"])


def test_recordings_keep_what_loops_bear_beside_joints():
    """In the world's axes, what is told after each step; BLAS sums by where arrays lie."""
    model = bb.load("four_bar", "new")
    one = model.system
    start = one.save()
    run = one.rollout(6, every=2, reactions=["crank", "ground_pin"])
    one.restore(start)
    for k in range(3):
        one.step()
        one.step()
        pin, borne = one.reactions()["ground_pin"], one.joint_reactions()["crank"].in_link
        atol = 1e-12 * np.abs(borne).max()  # some dozen products, of rows as long as each other
        assert_allclose(run.reactions["ground_pin"][k], [*pin.force, *pin.torque], 0.0, atol)
        assert_allclose(run.reactions["crank"][k], borne, 0.0, atol)
    (lines,) = [
        a.get_lines() for a in bb.plot(run, "ground_pin").axes if a.get_ylabel() == "force [N]"
    ]
    assert [line.get_label() for line in lines] == [f"ground_pin {x}" for x in "xyz"]
    assert np.array_equal(lines[0].get_ydata(), run["ground_pin.fx"])
    level = replace(run, v=0.3 + 1e-11 * np.random.default_rng(0).normal(size=run.v.shape))
    low, high = bb.plot(level, "crank").axes[1].get_ylim()  # round-off does not fill it
    assert high - low == pytest.approx(0.02) and low < 0.3 < high
    with pytest.raises(bb.errors.UnknownNameError, match="did you mean 'ground_pin'"):
        one.rollout(1, reactions=["groundpin"])
    model.close()


def test_linearisations_tell_how_a_bearing_answers():
    """By central differences of what is told, to the square of their length."""
    model = bb.load("four_bar", "new")
    system = model.system
    for _ in range(20):
        system.step(write=False)
    found = system.linearise("continuous", reduced=["crank"], reactions=["crank", "ground_pin"])
    column, h, told = list(found.inputs).index("crank"), 1e-3, []
    for sign in (1.0, -1.0):
        system.tau["crank"] += sign * h
        crank = system.joint_reactions()["crank"]
        told.append(np.concatenate([crank.torque, crank.force]))
        system.tau["crank"] -= sign * h
    slope = (told[0] - told[1]) / (2 * h)
    assert_allclose(found.D[:6, column], slope, atol=1e-6 * np.abs(slope).max())
    assert list(found.outputs[:6]) == [f"crank.{part}" for part in OF_REACTIONS]
    model.close()


@pytest.mark.parametrize("seed", range(5))
def test_loads_that_rows_share_are_of_least_norm(seed):
    """Against the pseudo-inverse, and the projector on what no load tells."""
    rng = np.random.default_rng(seed)
    nv, nc, rank = 9, 7, 5
    independent = rng.normal(size=(rank, nv))
    C = (rng.normal(size=(nc, rank)) @ independent).T.copy()
    C[:, 0] = rng.normal(size=nv)  # one row of its own
    asked, found = C @ rng.normal(size=nc), np.zeros((3, nc))
    kernel = np.eye(nc) - np.linalg.pinv(C) @ C
    shortest = np.linalg.pinv(C) @ asked
    share_out(C, np.zeros((nv, nv)), np.zeros(nv, ROW), asked, rank + 1, 1e-10, found)
    assert_allclose(found[0], shortest, atol=1e-11 * np.abs(shortest).max())
    assert_allclose(found[1], np.linalg.norm(kernel, axis=0), atol=1e-12)
    assert found[1, 0] < 1e-13
