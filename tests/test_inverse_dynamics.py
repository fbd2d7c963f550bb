"""Closed-chain inverse dynamics and kinematics on the bundled models.

Bound of the accelerations: the promise of 1e-9; measured 1e-12 and less.
"""

from dataclasses import replace

import numpy as np
import pytest
from _mechanisms import oracle
from numpy.testing import assert_allclose
from scipy.linalg import null_space
from scipy.spatial.transform import Rotation
from support.planar import planar_chain

import bulletbridge as bb
from bulletbridge.errors import AssemblyError, InfeasibleError, ModelError
from bulletbridge.models.bundled import find
from bulletbridge.models.loops_file import read_loops

PROMISE = 1e-9  # [rad/s² or m/s²], of accelerations of the order of ten
PLATFORM, BAR_END = bb.Frame("platform", (0, 0.767, 0)), bb.Frame("bar", (0, 0, 0.4))


@pytest.fixture(scope="module", params=["minitaur", "stewart", "two_arms", "biped"])
def model(request):
    """A moving model, and the names of its drives."""
    with bb.load(request.param, dt=1e-3) as loaded:
        loaded.system.run(0.05)
        yield loaded.system, read_loops(find(request.param)).actuated


@pytest.fixture(scope="module")
def arms():
    with bb.load("two_arms", dt=1e-3) as loaded:
        loaded.system.run(0.1)
        yield loaded.system


@pytest.fixture(scope="module")
def stewart():
    with bb.load("stewart", dt=1e-3) as loaded:
        yield loaded.system


def accelerated(system, tau):
    """Acceleration under joint forces, which are taken away again."""
    system.tau[:] = tau
    try:
        return system.acceleration()
    finally:
        system.tau[:] = 0.0


def feasible(system, actuated, rng):
    """An acceleration that the drives can give: that of random torques."""
    tau = np.zeros(system.mechanism.nv)
    for name in actuated:
        tau[system.mechanism.joint(name).v] = rng.normal(0, 20.0)
    return accelerated(system, tau), tau


def passive(system, actuated):
    """Rates without a drive."""
    mask = np.ones(system.mechanism.nv, bool)
    for name in actuated:
        mask[system.mechanism.joint(name).v] = False
    return mask


def test_its_torques_give_the_commanded_acceleration(model, rng):
    system, actuated = model
    wanted, _ = feasible(system, actuated, rng)
    assert system.mechanism.actuated == tuple(actuated)
    tau = bb.inverse_dynamics(system, wanted)  # by the drives that the file names
    assert not np.any(tau[passive(system, actuated)])
    assert np.array_equal(tau, bb.inverse_dynamics(system, wanted, actuated=actuated))
    assert_allclose(accelerated(system, tau), wanted, rtol=0, atol=PROMISE)


def test_some_joints_are_commanded_and_the_others_follow(model, rng):
    system, actuated = model
    names = actuated if len(actuated) < 14 else actuated[:8]
    wanted = dict(zip(names, rng.normal(0, 3.0, len(names)).tolist(), strict=True))
    tau = bb.inverse_dynamics(system, wanted, actuated=actuated)
    vdot = accelerated(system, tau)
    found = [float(vdot[system.mechanism.joint(name).v][0]) for name in names]
    assert_allclose(found, list(wanted.values()), rtol=0, atol=PROMISE)


def test_pinocchio_agrees_that_only_the_loops_are_left(model, rng):
    """What a program without loops needs beyond tau, no free motion does work with."""
    system, actuated = model
    wanted, _ = feasible(system, actuated, rng)
    tau = bb.inverse_dynamics(system, wanted, actuated=actuated)
    terms, other = system.terms(), oracle(system.mechanism)
    damping = system.mechanism.axes["damping"] * system.v
    for axis, k in zip(system.mechanism.axes, range(system.mechanism.nv), strict=True):
        if axis["stiffness"]:
            damping[k] += axis["stiffness"] * (system.q[axis["q"]] - axis["rest"])
    rotors = system.mechanism.axes["armature"] * wanted  # which Pinocchio's model lacks
    needed = other.mass_matrix(system.q) @ wanted + other.bias(system.q, system.v)
    needed += damping + rotors
    scale = np.sqrt(np.diag(terms.M))  # free motions, in rates that carry comparable energy
    free = null_space(terms.J / scale, rcond=1e-6) / scale[:, None]
    size = np.abs(needed).max() * np.abs(free).max()
    drag = terms.h - other.bias(system.q, system.v)  # Bullet's link damping, which Pinocchio lacks
    assert_allclose(free.T @ (needed + drag - tau), 0, atol=1e-11 * max(size, 1.0))


def test_the_least_torque_is_taken(arms, rng):
    wanted, given = feasible(arms, [n for n in arms.mechanism.joints], rng)
    tau = bb.inverse_dynamics(arms, wanted)
    assert np.linalg.norm(tau) < np.linalg.norm(given)
    # any other with the same effect differs by a load of the grasp, at right angles to it
    difference = given - tau
    assert abs(difference @ tau) < 1e-9 * np.linalg.norm(difference) * np.linalg.norm(tau)


def test_weights_move_the_load(arms, rng):
    wanted, _ = feasible(arms, [n for n in arms.mechanism.joints], rng)
    even = bb.inverse_dynamics(arms, wanted)
    spared = bb.inverse_dynamics(arms, wanted, weights={"left_2": 100.0})
    k = arms.mechanism.joint("left_2").v
    assert abs(spared[k][0]) < 0.01 * abs(even[k][0])
    assert_allclose(accelerated(arms, spared), wanted, rtol=0, atol=PROMISE)


def test_a_squeeze_is_prescribed(arms, rng):
    wanted, _ = feasible(arms, [n for n in arms.mechanism.joints], rng)
    wrench = np.array([0.5, -1.0, 0.3, 3.0, 2.0, -20.0])
    tau = bb.inverse_dynamics(arms, wanted, reactions={"grasp": wrench})
    assert_allclose(accelerated(arms, tau), wanted, rtol=0, atol=PROMISE)
    arms.tau[:] = tau
    grasp = arms.reactions()["grasp"]
    arms.tau[:] = 0.0
    assert_allclose(np.concatenate([grasp.torque, grasp.force]), wrench, rtol=0, atol=PROMISE)


def test_demands_on_missing_drives_are_refused(stewart, rng):
    drives = [f"leg{k}" for k in range(6)]
    wanted, _ = feasible(stewart, drives, rng)
    with pytest.raises(InfeasibleError, match=r"\(leg0, leg1, leg2\) cannot meet .* missed"):
        bb.inverse_dynamics(stewart, wanted, actuated=drives[:3])


def test_squeezes_without_drives_to_spare_are_refused(stewart, rng):
    drives = [f"leg{k}" for k in range(6)]
    wanted, _ = feasible(stewart, drives, rng)
    with pytest.raises(InfeasibleError, match="at ball1; actuate more"):
        wrench = np.array([0, 0, 0, 1e3, 0, 0])
        bb.inverse_dynamics(stewart, wanted, actuated=drives, reactions={"ball1": wrench})


def test_accelerations_that_open_a_loop_are_refused(stewart):
    wanted = stewart.acceleration()
    wanted[stewart.mechanism.joint("leg3").v] += 0.5
    with pytest.raises(InfeasibleError, match="opens 'ball"):
        bb.inverse_dynamics(stewart, wanted)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"vdot": np.zeros(3)}, "give 21 finite"),
        ({"vdot": {"leg": 1.0}}, "unknown joint 'leg'"),
        ({"vdot": {"leg0": 1.0}, "actuated": ["leg9"]}, "unknown joint 'leg9'"),
        ({"vdot": {"leg0": 1.0}, "reactions": {"weld": np.zeros(6)}}, "no constraint 'weld'"),
        ({"vdot": {"leg0": 1.0}, "reactions": {"ball1": np.zeros(3)}}, "needs 6 finite"),
        ({"vdot": {"leg0": 1.0}, "weights": {"leg0": 0.0}}, "give a positive"),
    ],
)
def test_bad_arguments(stewart, arguments, message):
    with pytest.raises(ModelError, match=message):
        bb.inverse_dynamics(stewart, **arguments)


# -- kinematics ------------------------------------------------------------------------------------


def pose(system, q, frame):
    """Position and rotation of a frame at q."""
    before = system.q, system.v
    system.set_state(q, np.zeros(system.mechanism.nv))
    point = system.kinematics().point(frame)
    system.set_state(*before)
    return point.p_W, point.R_W


def test_inverse_and_forward_kinematics_of_the_platform(stewart):
    p, R = pose(stewart, stewart.q, PLATFORM)
    p, R = p + [0.2, -0.1, 0.15], Rotation.from_rotvec([0.1, -0.2, 0.3]).as_matrix() @ R
    q = bb.inverse_kinematics(stewart, PLATFORM, p, R)
    found = pose(stewart, q, PLATFORM)
    assert_allclose(found[0], p, rtol=0, atol=1e-12)
    assert_allclose(found[1], R, rtol=0, atol=1e-12)
    assert stewart.evaluate(q).largest("metres") < 1e-12
    by_name = bb.inverse_kinematics(stewart, "platform", p, R)
    assert np.array_equal(by_name, bb.inverse_kinematics(stewart, bb.Frame("platform"), p, R))
    same = bb.inverse_kinematics(stewart, PLATFORM, p, Rotation.from_matrix(R).as_quat())
    assert_allclose(same, q, rtol=0, atol=1e-10)
    for place, turn, said in ((p[:2], R, "three finite"), (p, [0, 0, 1], "or a quaternion")):
        with pytest.raises(ModelError, match=said):
            bb.inverse_kinematics(stewart, PLATFORM, place, turn)
    with pytest.raises(ModelError, match=r"assemble\("):
        stewart.set_state({"leg0": 0.1})

    legs = {f"leg{k}": float(q[stewart.mechanism.joint(f"leg{k}").q][0]) for k in range(6)}
    assert_allclose(bb.forward_kinematics(stewart, legs), q, rtol=0, atol=1e-10)


def test_positions_alone_leave_the_orientation_free(arms):
    p, _ = pose(arms, arms.q, BAR_END)
    q = bb.inverse_kinematics(arms, BAR_END, p + [0.02, 0.03, 0.05])
    assert_allclose(pose(arms, q, BAR_END)[0], p + [0.02, 0.03, 0.05], rtol=0, atol=1e-12)
    assert arms.evaluate(q).largest("metres") < 1e-12


def test_joints_can_be_held_meanwhile(arms):
    p, _ = pose(arms, arms.q, BAR_END)
    q = bb.inverse_kinematics(arms, BAR_END, p + [0, 0, 0.02], q={"left_3": 0.1})
    assert q[arms.mechanism.joint("left_3").q] == 0.1


def test_minitaur_is_posed_with_its_legs_closed():
    with bb.load("minitaur") as model:
        system = model.system
        foot = bb.Frame("lower_leg_front_leftR_link", (0, 0.005, 0.2))
        base = {"base": system.q[system.mechanism.joint("base").q].tolist()}
        motors = {"motor_front_leftL_joint": -1.4, "motor_front_leftR_joint": -1.7}
        there = bb.forward_kinematics(system, base | motors)
        target, _ = pose(system, there, foot)
        q = bb.inverse_kinematics(system, foot, target, q=base)
        assert_allclose(q, there, rtol=0, atol=1e-6)
        # 1e-5 m stay open across the legs, which no joint can close
        assert system.evaluate(q).largest("kept_metres") < 1e-12


def elbow_within(lower, upper):
    """An arm of two rods of 1 m whose elbow, at -0.5 rad, has limits."""
    mechanism = planar_chain([1.0, 1.0], [1.0, 1.0])
    elbow = replace(mechanism.joints["j1"], lower=lower, upper=upper)
    system = bb.System(replace(mechanism, joints=mechanism.joints | {"j1": elbow}))
    system.assemble({"j0": 0.3, "j1": -0.5})
    return system


def test_poses_within_limits_are_found_on_the_other_side():
    """Law of cosines: the tip of two rods of 1 m is 2 cos(x / 2) away where the elbow is at x."""
    tip = bb.Frame("l1", (1.0, 0, 0))
    system = elbow_within(-3.0, 3.0)
    target = pose(system, np.array([0.1, -1.2]), tip)[0]
    assert np.linalg.norm(target) == pytest.approx(2.0 * np.cos(0.6), abs=1e-12)
    assert bb.inverse_kinematics(system, tip, target)[1] == pytest.approx(-1.2, abs=1e-9)
    narrow = elbow_within(-0.6, 1.5)
    assert bb.inverse_kinematics(narrow, tip, target)[1] == pytest.approx(-1.2, abs=1e-9)
    q = bb.inverse_kinematics(narrow, tip, target, within_limits=True)
    assert q[1] == pytest.approx(1.2, abs=1e-9)
    assert_allclose(pose(narrow, q, tip)[0], target, rtol=0, atol=1e-12)
    q = bb.inverse_kinematics(narrow, tip, target, q={"j1": -1.2}, within_limits=True)
    assert q[1] == -1.2  # as it was asked for
    with pytest.raises(AssemblyError, match=r"'j1' is at -1\.2 rad, 0\.6 rad beyond its limits"):
        bb.inverse_kinematics(elbow_within(-0.6, 1.1), tip, target, within_limits=True)


def test_poses_out_of_reach_are_refused(stewart, arms):
    with pytest.raises(AssemblyError, match="cannot close: gap"):
        bb.inverse_kinematics(arms, BAR_END, (0.0, 0.0, 5.0))
    with pytest.raises(ModelError, match="unknown link"):
        bb.inverse_kinematics(stewart, bb.Frame("plate"), (0.0, 0.0, 2.0))
