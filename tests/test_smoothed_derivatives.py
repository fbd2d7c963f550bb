"""Derivatives of steps with smooth contacts: closed forms, and differences of smooth steps."""

import numpy as np
import pybullet
import pytest
from numpy.testing import assert_allclose
from support.solid_worlds import BLOCK, DT, FLAGS, G

import bulletbridge as bb
from bulletbridge.errors import ModelError, UnsupportedError
from bulletbridge.mechanism.displacement import configuration_difference
from bulletbridge.mechanism.kinematics import displace

SLIDER = """
<robot name="slider"><link name="rail"/>
  <link name="b"><inertial><mass value="2"/>
    <inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial>
    <collision><geometry><sphere radius="0.1"/></geometry></collision></link>
  <joint name="slide" type="prismatic"><parent link="rail"/><child link="b"/><axis xyz="0 0 1"/>
    <limit lower="-0.1" upper="1" effort="0" velocity="0"/></joint></robot>
"""
BALL = '<sphere radius="0.1"/>'


def require_smooth_differences(system: bb.System, s: float) -> None:
    """Central differences of order 4, of a map without kinks: 1e-6 of the largest number.

    Slopes change within s over a force, here some 1e-6 m, of which the differences go a tenth.
    """
    found, m, nv = system.step_derivatives(smoothing=s), system.mechanism, len(system.v)
    near, start = system.differentiable(), np.concatenate([system.q, system.v, [system.t]])

    def end(z: np.ndarray) -> np.ndarray:
        state = start.copy()
        displace(m.bodies, np.array(system.q), z[:nv].copy(), 1.0, state[: m.nq])
        state[m.nq : -1] += z[nv : 2 * nv]
        near.take_back(state)
        near.tau[:] = z[2 * nv :]
        there = near.step_derivatives(smoothing=s)
        away = configuration_difference(m, there.q, found.q)
        return np.concatenate([away, there.v - found.v])

    exact = np.hstack([found.A, found.B])
    for k, way in enumerate(np.eye(3 * nv)):
        h = 1e-6 if k < nv else 1e-5 if k < 2 * nv else 1e-2
        one, two = (end(x * h * way) - end(-x * h * way) for x in (1.0, 2.0))
        off = np.abs((8.0 * one - two) / (12.0 * h) - exact[:, k]).max()
        assert off <= 1e-6 * np.abs(exact).max(), (k, off)


def test_a_ball_hovers_at_s_over_its_weight(solids):
    """There v⁺ = 0, and of f u = s/dt, u = gap/dt + v⁺: δv⁺ (m + dt f/u) = m δv - f/u δgap."""
    solids.ground(plane=True)
    system = solids.system(solids.solid(BALL, (0, 0, 0.11), moments=[0.008] * 3))
    m, gap = 2.0, 1e-3
    system.set_state(q=[0, 0, 0.1 + gap, 0, 0, 0, 1.0])
    found = system.step_derivatives(smoothing=m * G * gap)
    assert np.abs(found.v).max() <= 1e-14
    stiff = m * G / (gap / DT)  # f/u
    assert_allclose(found.A[11, 11], m / (m + DT * stiff), rtol=1e-10)
    assert_allclose(found.A[11, 5], -stiff / (m + DT * stiff), rtol=1e-8)
    assert_allclose(found.B[11, 5], DT / (m + DT * stiff), rtol=1e-10)


def test_less_smoothing_leads_to_the_step_of_ideal_contacts(solids):
    """A ball that lands and slides: what is off is in proportion to s."""
    solids.ground(plane=True)
    ball = solids.solid(BALL, (0, 0, 0.1005), moments=[0.008] * 3, friction=0.3)
    system = solids.system(ball)
    system.set_state(v=[1.0, 2.0, 3.0, 2.0, 0.5, -0.5])
    ideal, off = system.step_derivatives(), list[float]()
    for s in (1e-5, 1e-6, 1e-7):
        found = system.step_derivatives(smoothing=s)
        off.append(np.abs(found.A - ideal.A).max() / np.abs(ideal.A).max())
    assert off[0] < 1e-2
    assert_allclose(off[1:], [off[0] / 10.0, off[0] / 100.0], rtol=0.1)


def test_smooth_steps_are_differentiable_where_ideal_ones_have_kinks(solids):
    """A ball that rolls and spins on a block, at rest on a slope that it just touches."""
    _, normal = solids.ground(0.3, plane=True)
    turn = [0.0, np.sin(0.15), 0.0, np.cos(0.15)]
    block = solids.solid(f'<box size="{BLOCK}"/>', 0.15 * normal, turn, friction=0.2)
    rub = {"friction": 0.3, "spinningFriction": 0.01, "rollingFriction": 0.02}
    ball = solids.solid(BALL, 0.4 * normal, moments=[0.008] * 3, **rub)
    system = solids.system([block, ball])
    for _ in range(3):
        system.step()
    require_smooth_differences(system, 1e-4)


def test_linearised_smooth_steps_are_those_of_their_differences(solids):
    """A ball that rolls above a plane, a gap of 1 cm, within which slopes change.

    Differences go 7e-5 m and twice that; extrapolated, what is left is 4 (7e-5 / 1e-2)⁴, 1e-8.
    """
    solids.ground(plane=True)
    rub = {"friction": 0.3, "rollingFriction": 0.02}
    system = solids.system(solids.solid(BALL, (0, 0, 0.11), moments=[0.008] * 3, **rub))
    system.set_state(v=[0.5, 1.0, 0.0, 0.1, 0.0, 0.0])
    s = 2.0 * G * 1e-2
    known = system.linearise(by="equations", smoothing=s, reduced=True)
    found = system.linearise(by="differences", smoothing=s, reduced=True)
    assert known.active == found.active == found.changed == ()
    for one, other in ((known.A, found.A), (known.B, found.B)):
        assert np.abs(one - other).max() <= 1e-7 * np.abs(known.A).max()
    q, v = system.smooth_step(s)
    assert np.array_equal(q, known.q_after) and np.array_equal(v, known.v_after)
    assert np.array_equal(q, found.q_after)
    with pytest.raises(ModelError, match="of which no reactions are known"):
        system.linearise(smoothing=s, reactions=["pin"])


def test_a_plan_finds_a_contact_that_is_not_made_yet(solids):
    """A fist pushes a ball that it does not touch; exact derivatives see nothing there."""
    path = solids.folder / "rail.urdf"
    path.write_text(SLIDER.replace('axis xyz="0 0 1"', 'axis xyz="1 0 0"').replace("-0.1", "-1"))
    how = {"useFixedBase": True, "flags": FLAGS, "physicsClientId": solids.client}
    places = {"fist": 0.0, "ball": 0.25}
    bodies = {name: pybullet.loadURDF(str(path), [x, 0, 1], **how) for name, x in places.items()}
    system = bb.attach(bodies, (), solids.client, dt=0.02, contacts=True)
    goal, fist = np.array([0.0, 0.2]), "fist/slide"
    effort = bb.QuadraticCost(system.mechanism, goal, Q={}, R={fist: 1e-4})
    there = bb.QuadraticCost(system.mechanism, goal, Q={"ball/slide": 100.0})
    guess, paid = {fist: np.zeros(20)}, 100.0 * 0.2**2
    ideal = bb.ilqr(system, guess, effort, there)
    assert ideal.iterations == 0 and abs(ideal.costs[-1] - paid) <= 1e-12
    for s in (1e-2, 1e-3):
        plan = bb.ilqr(system, guess, effort, there, smoothing=s, until=bb.Until(1e-4))
        guess = plan.controls
        assert plan.converged and np.all(np.diff(plan.costs) < 0.0)
    tau = np.column_stack([plan.controls[fist], np.zeros(20)])
    along = bb.rollout_gradient(system, tau, effort, there, smoothing=1e-3)
    assert abs(along.cost / plan.costs[-1] - 1.0) <= 1e-12
    assert np.array_equal(along.q, plan.q[-1])
    # what contacts do at a distance is a small part of the push: so it goes with ideal ones
    assert bb.rollout_gradient(system, tau, effort, there).cost <= 0.1 * paid


def test_what_has_no_smooth_step_is_said(connect, solids):
    solids.ground(plane=True)
    system = solids.system(solids.solid(BALL, (0, 0, 0.1), moments=[0.008] * 3))
    with pytest.raises(ModelError, match="positive energy"):
        system.step_derivatives(smoothing=-1.0)
    with pytest.raises(UnsupportedError, match="by parameters of smooth contacts"):
        tau = np.zeros((2, 6))
        bb.rollout_gradient(system, tau, parameters=["gravity.z"], smoothing=1e-3)
    free = bb.load("four_bar", connect()._client, limits=False).system
    with pytest.raises(ModelError, match="whose contacts act"):
        free.step_derivatives(smoothing=1e-3)


def test_a_limit_that_would_push_is_said_to_have_no_smooth_step(solids):
    """A slider that falls reaches its stop within the step, and one that stands above does not."""
    solids.ground(plane=True)
    path = solids.folder / "slider.urdf"
    path.write_text(SLIDER)
    how = {"useFixedBase": True, "flags": FLAGS, "physicsClientId": solids.client}
    rail = pybullet.loadURDF(str(path), [0, 0, 2], **how)
    system = solids.system(rail, limits=True)
    system.set_state(q=[0.0], v=[-1.0])
    system.step_derivatives(smoothing=1e-3)
    system.set_state(q=[-0.1 + 0.5 * DT], v=[-1.0])
    with pytest.raises(UnsupportedError, match="leads beyond a limit of a joint"):
        system.step_derivatives(smoothing=1e-3)


def test_limits_of_loop_joints_have_no_smooth_step(solids):
    """They act whatever a system's own option says."""
    solids.ground(plane=True)
    ball = solids.solid(BALL, (0, 0, 0.11), moments=[0.008] * 3)
    ends = bb.Frame("b"), bb.Frame("world", (0, 0, 0.11))
    hinge = bb.LoopJoint(
        "hinge", bb.JointModel.REVOLUTE, *ends, turn=bb.LoopAxis(limits=(-1.0, 1.0))
    )
    system = bb.attach(ball, [hinge], solids.client, contacts=True, limits=False)
    with pytest.raises(UnsupportedError, match="a free motion of a loop joint has limits"):
        system.step_derivatives(smoothing=1e-3)
