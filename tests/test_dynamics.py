"""Kinematics and dynamics kernels against Pinocchio and against their own definitions."""

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
from _mechanisms import oracle, random_mechanism, random_state
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from support.far_places import far_away

from bulletbridge.constraints.encode import encode
from bulletbridge.constraints.joints import Frame
from bulletbridge.constraints.user import Kinematics
from bulletbridge.engine.stepper import Solver
from bulletbridge.engine.workspace import Tolerances
from bulletbridge.formulations.moving import ByDifferences
from bulletbridge.formulations.system_dynamics import SystemDynamics
from bulletbridge.mechanism.kinematics import chart_rate, displace, separation
from bulletbridge.mechanism.records import EFFORT, FREE, PRISMATIC, REVOLUTE, SPHERICAL

EPS = np.finfo(float).eps
# sums of a few dozen products of entries of size up to 1e2
TERMS_RTOL = 1e-12
FD_STEP = EPS ** (1 / 3)
FD_ATOL = 300 * FD_STEP**2

trees = st.tuples(
    st.integers(0, 2**32 - 1),
    st.booleans(),
    st.lists(st.sampled_from([REVOLUTE, PRISMATIC, SPHERICAL]), min_size=1, max_size=7),
    st.booleans(),
)


def build(case):
    """Mechanism and state of a drawn case: seed, floating, kinds, second robot."""
    seed, floating, kinds, second = case
    rng = np.random.default_rng(seed)
    joints = ([FREE] if floating else []) + kinds + ([FREE, *kinds[:2]] if second else [])
    mechanism = random_mechanism(rng, joints)
    return mechanism, *random_state(rng, mechanism)


def terms_of(mechanism, q, v):
    """M, h and the rest, without constraints."""
    return Solver(mechanism, encode(mechanism, []), Tolerances()).terms(q, v, 0.0)


def tree_of(mechanism):
    """The equations of motion without constraints."""
    return SystemDynamics(Solver(mechanism, encode(mechanism, []), Tolerances()))


@given(trees, st.booleans())
def test_mass_matrix_and_bias_agree_with_pinocchio(case, is_far):
    """To the same digits wherever a robot is: M and h are about points of its own."""
    mechanism, q, v = build(case)
    if is_far:
        mechanism, q = far_away(mechanism, q)
    terms, pinocchio = terms_of(mechanism, q, v), oracle(mechanism)
    M, h = pinocchio.mass_matrix(q), pinocchio.bias(q, v)
    assert_allclose(terms.M, M, atol=TERMS_RTOL * np.abs(M).max())
    assert_allclose(terms.h, h, atol=TERMS_RTOL * max(1.0, np.abs(h).max()))


@given(trees)
def test_frames_their_jacobians_and_bias_accelerations_agree_with_pinocchio(case):
    mechanism, q, v = build(case)
    terms, p = terms_of(mechanism, q, v), oracle(mechanism)
    kinematics = Kinematics(mechanism, terms.poses, terms.axes, q, v, 0.0)
    name = list(mechanism.links)[-1]
    link = mechanism.links[name]
    point = kinematics.point(Frame(name))
    placement = pin.SE3(link.R, link.p)
    frame = pin.Frame("tip", p.ids[link.body], 0, placement, pin.FrameType.OP_FRAME)
    index = p.model.addFrame(frame)
    data, T = p.model.createData(), p.rates(q)
    pin.forwardKinematics(p.model, data, q, T @ v, p.bias_rates(q, v))
    pin.updateFramePlacements(p.model, data)
    assert_allclose(point.p_W, data.oMf[index].translation, atol=1e-13)
    assert_allclose(point.R_W, data.oMf[index].rotation, atol=1e-13)
    J = pin.computeFrameJacobian(p.model, data, q, index, pin.LOCAL_WORLD_ALIGNED)
    J = J.reshape(6, -1) @ T
    assert_allclose(point.J, J[:3], atol=TERMS_RTOL * 10)
    assert_allclose(point.J_angular, J[3:], atol=TERMS_RTOL * 10)
    a = pin.getFrameClassicalAcceleration(p.model, data, index, pin.LOCAL_WORLD_ALIGNED)
    size = 1.0 + np.abs(a.linear).max()
    assert_allclose(point.bias, a.linear, atol=TERMS_RTOL * size)
    assert_allclose(point.bias_angular, a.angular, atol=TERMS_RTOL * size)


@given(trees)
def test_gravity_and_energy_are_consistent(case):
    """Power of the bias forces is the loss of kinetic energy at v̇ = 0, by finite differences."""
    mechanism, q, v = build(case)
    terms = terms_of(mechanism, q, v)

    def energy(s):
        moved = np.empty_like(q)
        displace(mechanism.bodies, q, v, s, moved)
        there = terms_of(mechanism, moved, v)
        poses = there.poses
        moments = poses["mc"] + poses["m"][:, None] * poses["origin"]
        return 0.5 * v @ there.M @ v - moments.sum(axis=0) @ mechanism.gravity

    power = (energy(FD_STEP) - energy(-FD_STEP)) / (2 * FD_STEP)
    size = 1.0 + abs(energy(0.0)) * np.abs(v).max()
    assert_allclose(power, v @ terms.h, atol=FD_ATOL * size)


@given(trees)
def test_the_coriolis_matrix_is_pinocchios(case):
    """One matrix in whatever rates, those of balls too, which are no rates of coordinates."""
    mechanism, q, v = build((*case[:1], False, case[2], False))
    C = tree_of(mechanism).moving(q, v, 0.0).rates(v).C
    p = oracle(mechanism)
    T = p.rates(q)
    theirs = T.T @ pin.computeCoriolisMatrix(p.model, p.model.createData(), q, T @ v) @ T
    assert_allclose(C, theirs, atol=TERMS_RTOL * max(1.0, np.abs(theirs).max()))


@given(trees)
def test_rates_of_the_mass_matrix_by_recursion_and_by_differences(case):
    """Floating bases and other robots too; the stencil leaves 1e-14 of what it divides by 0.01."""
    mechanism, q, v = build(case)
    tree = tree_of(mechanism)
    here, near = tree.moving(q, v, 0.0), ByDifferences(tree, q, v, 0.0)
    (C, _), (C_near, _) = here.rates(v), near.rates(v)
    size = 1.0 + np.abs(v).max() * np.abs(here.terms.M).max()
    assert_allclose(C + C.T, C_near + C_near.T, atol=1e-11 * size)
    roundoff = TERMS_RTOL * (1.0 + np.abs(here.terms.h).max()) * size * max(1.0, np.abs(v).max())
    assert_allclose(C @ v, C_near @ v, atol=1e-11 * size * np.abs(v).max() + roundoff)
    if mechanism.nq == mechanism.nv:
        assert_allclose(C, C_near, atol=1e-10 * size + roundoff)


@settings(max_examples=20, deadline=None)
@given(trees)
def test_what_separates_configurations_and_its_rate(case):
    """It undoes a displacement, and its rate is that of two configurations that both move."""
    mechanism, q, v = build(case)
    rng = np.random.default_rng(case[0])
    u, w = rng.uniform(-1.2, 1.2, (2, mechanism.nv))
    x, rate = np.empty((2, mechanism.nv))

    def apart(s):
        ends = np.empty((2, mechanism.nq))
        displace(mechanism.bodies, q, u, 1.0, ends[0])
        displace(mechanism.bodies, ends[0], v, s, ends[0])
        displace(mechanism.bodies, q, w, s, ends[1])
        separation(mechanism.bodies, ends[0], v, ends[1], w, x, rate)
        return x.copy()

    near, far = ((apart(s) - apart(-s)) / (2 * s) for s in (FD_STEP, 2 * FD_STEP))
    assert_allclose(apart(0.0), u, atol=1e-13)
    assert_allclose(rate, (4 * near - far) / 3, atol=FD_ATOL * (1.0 + np.abs(v).max()) ** 3)


@pytest.mark.parametrize("kind", [FREE, SPHERICAL])
def test_chart_rate_is_the_rate_of_the_chart(kind, rng):
    """Displacing by u(t) whose rate is ``chart_rate`` turns the body at v."""
    mechanism = random_mechanism(rng, [kind])
    q, v = random_state(rng, mechanism)
    u, rate = rng.normal(0, 0.9, mechanism.nv), np.zeros(mechanism.nv)
    chart_rate(mechanism.bodies, u, v, rate)
    here, by_chart, by_rate = np.empty_like(q), np.empty_like(q), np.empty_like(q)
    displace(mechanism.bodies, q, u, 1.0, here)
    for step in (FD_STEP, -FD_STEP):
        displace(mechanism.bodies, q, u + step * rate, 1.0, by_chart)
        displace(mechanism.bodies, here, v, step, by_rate)
        assert_allclose(by_chart, by_rate, atol=20 * FD_STEP**2)


@pytest.mark.parametrize("angle", [0.0, 1e-9, 1e-3, 0.5, 3.0])
def test_displacement_composes_along_one_direction(angle, rng):
    mechanism = random_mechanism(rng, [FREE, SPHERICAL, REVOLUTE])
    q, u = random_state(rng, mechanism)
    u *= angle / np.linalg.norm(u)
    once, twice = np.empty_like(q), np.empty_like(q)
    displace(mechanism.bodies, q, u, 2.0, once)
    displace(mechanism.bodies, q, u, 1.0, twice)
    displace(mechanism.bodies, twice, u, 1.0, twice)
    assert_allclose(once, twice, atol=20 * EPS * (1 + np.abs(q).max()))


def test_link_damping_follows_bullets_law(rng):
    """A single free link: force m d v (1 + |v|), moment I d w (1 + |w|)."""
    mechanism = random_mechanism(rng, [FREE], gravity=False)
    body, q = mechanism.bodies[1], np.array([0.1, 0.2, 0.3, 0, 0, 0, 1.0])
    effort = np.zeros(1, EFFORT)
    for name in ("mass", "com", "J"):
        effort[name] = body[name]
    effort["body"], effort["linear"], effort["angular"] = 1, 0.04, 0.07
    v = rng.normal(0, 2.0, 6)
    drag = terms_of(replace(mechanism, efforts=effort), q, v).h - terms_of(mechanism, q, v).h
    v_com = v[3:] + np.cross(v[:3], body["com"])
    force = 0.04 * body["mass"] * v_com * (1 + np.linalg.norm(v_com))
    moment = 0.07 * body["J"] @ v[:3] * (1 + np.linalg.norm(v[:3]))
    expected = np.concatenate([moment + np.cross(body["com"], force), force])
    assert_allclose(drag, expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("n", [1, 3, 4, 5, 8, 9, 12, 20])
def test_chains_turn_as_their_angles_say(n):
    """However many hinges, in whole blocks or not, and however far they have turned.

    Each rotation and each product of two adds a few roundings.
    """
    rng = np.random.default_rng(n)
    mechanism = random_mechanism(rng, [REVOLUTE] * n)
    solver = Solver(mechanism, encode(mechanism, []), Tolerances())
    q = rng.uniform(-4.0, 4.0, n)
    q[n // 2] = 3e8
    turned = [np.eye(3)]
    poses = solver.terms(q, np.zeros(n), 0.0).poses
    for body, angle in zip(mechanism.bodies[1:], q, strict=True):
        c, s = np.cos(angle), np.sin(angle)
        turn = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
        turned.append(turned[body["parent"]] @ body["R"] @ turn)
    assert np.abs(poses["R"] - np.array(turned)).max() <= 8.0 * n * EPS
