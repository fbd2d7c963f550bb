"""Every constraint: each order is the rate of the one before, and the rows are what they claim."""

from dataclasses import replace

import numpy as np
import pytest
from _mechanisms import closed_loop_joint, random_mechanism, random_state
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.spatial.transform import Rotation
from support.far_places import ROUNDED, constrained_there, far_away
from support.ranks import rank
from support.users_constraints import PointOnSphere

from bulletbridge.constraints.encode import encode
from bulletbridge.constraints.force_elements import Spring
from bulletbridge.constraints.joint_geometry import VARIABLE
from bulletbridge.constraints.joint_models import (
    HELD_FORCES,
    dual_bases,
    free_motions,
    transmitted_wrenches,
)
from bulletbridge.constraints.joints import (
    ROUND,
    Coupling,
    Distance,
    Frame,
    JointModel,
    LoopJoint,
)
from bulletbridge.constraints.motion import Motion, Polynomial, Sine, Spline
from bulletbridge.engine.stepper import Solver
from bulletbridge.engine.workspace import Tolerances
from bulletbridge.errors import ModelError
from bulletbridge.formulations.system_dynamics import SystemDynamics
from bulletbridge.inequalities.constraints import inequality_constraints_of
from bulletbridge.mechanism.frames import frame_with_z, rpy_matrix
from bulletbridge.mechanism.joint_properties import JointProperties, with_joint_properties
from bulletbridge.mechanism.kinematics import displace
from bulletbridge.mechanism.records import FREE, PRISMATIC, REVOLUTE, SPHERICAL

EPS = np.finfo(float).eps
FD_STEP = EPS ** (1 / 3)  # balances truncation h² against round-off EPS/h
FD_ATOL = 2000 * FD_STEP**2  # third derivatives of these mechanisms reach a few hundred

KINDS = [FREE, REVOLUTE, SPHERICAL, PRISMATIC, REVOLUTE, FREE, REVOLUTE, REVOLUTE]
A, B = Frame("link3", (0.1, -0.2, 0.3), (0.3, -0.5, 0.7)), Frame("link8", (0.2, 0.1, 0.0))
AXIS, AXIS_B = (0.3, -0.5, 0.8), (0.1, 0.9, 0.2)
SPLINE = Spline((0.0, 0.5, 1.0, 2.0), (0.0, 0.3, -0.2, 0.5))
MOTION = Motion(
    x=Sine(0.2, 0.7), y=Polynomial((0.1, 0.3, -0.2)), z=SPLINE, angle=Sine(1.2, 0.4, 0.3, 0.5)
)


def joint(model, motion=None):
    """A loop joint of this model between two random links."""
    axis_b = AXIS_B if model is JointModel.UNIVERSAL else None
    pitch = 0.37 if model is JointModel.SCREW else 0.0
    radius = 0.3 if model in ROUND else 0.0
    if model is JointModel.GENERAL:
        return general(((0.3, -0.5, 0.8, 0.2, 0.1, 0.4), (0, 0, 0, 1, 1, 0)), motion)
    return LoopJoint(model.value, model, A, B, AXIS, axis_b, pitch, motion, radius=radius)


def general(free, motion=None):
    """A general joint between two random links."""
    return LoopJoint("general", JointModel.GENERAL, A, B, motion=motion, free=free)


NAMED = [model for model in JointModel if model is not JointModel.GENERAL]
SAMPLES = {
    **{model.value: joint(model) for model in JointModel},
    **{f"driven {model.value}": joint(model, MOTION) for model in JointModel},
    "driven about another axis": joint(JointModel.WELD, replace(MOTION, axis=(1.0, 2.0, -0.5))),
    "general screw across": general(((0, 0, 2, 0.3, -0.1, 0),)),
    "general slides": general(((0, 0, 0, 1, 2, 3), (0, 0, 0, 1, 1, 0))),
    "general turn with slides": general(
        ((0, 3, 0, 0, 0, 0), (0, 0, 0, 1, 2, 3), (0, 1, 0, 1, 0, 0))
    ),
    "general ball on a line": general(
        ((1, 0, 0, 0, 0, 0), (1, 1, 0, 0, 0, 0), (1, 1, 1, 0, 0, 0), (0, 0, 0, 1, 2, 3))
    ),
    "to the world": replace(joint(JointModel.REVOLUTE), b=Frame("world", (0.3, 0.2, 0.1))),
    "distance": Distance("rod", A, B, 0.7),
    "driven distance": Distance("rod", A, B, 0.7, MOTION),
    "gear": Coupling("gear", {"joint2": 2.0, "joint4": -0.5}, 0.3),
    "driven gear": Coupling("gear", {"joint2": 1.0}, 0.3, MOTION),
    "user": PointOnSphere(B, 0.9),
}


def closed_world(constraint, rng):
    """A mechanism and a state at which the constraint is closed, by moving frame b."""
    mechanism = random_mechanism(rng, KINDS)
    q, v = random_state(rng, mechanism)
    t = 0.6
    if not isinstance(constraint, LoopJoint):
        return mechanism, constraint, q, v, t
    bare = Solver(mechanism, encode(mechanism, []), Tolerances()).terms(q, v, t)
    ends = []
    for frame in (constraint.a, Frame(constraint.b.link)):
        link = mechanism.links[frame.link]
        pose = bare.poses[link.body]
        R, p = pose["R"] @ link.R, pose["origin"] + pose["p"] + pose["R"] @ link.p
        ends.append((R @ rpy_matrix(frame.rpy), p + R @ np.array(frame.xyz)))
    return mechanism, closed_loop_joint(constraint, *ends, t, rng), q, v, t


@pytest.mark.parametrize("name", [name for name in SAMPLES if name != "user"])
def test_rows_are_the_same_far_away(name):
    """But for the round-off of where two robots are against each other, or against the world."""
    mechanism, constraint, q, v, t = closed_world(SAMPLES[name], np.random.default_rng(3))
    near = Solver(mechanism, encode(mechanism, [constraint]), Tolerances()).terms(q, v, t)
    mechanism, q = far_away(mechanism, q)
    encoded = encode(mechanism, [constrained_there(constraint)])
    there = Solver(mechanism, encoded, Tolerances()).terms(q, v, t)
    for term in ("g", "J", "g_t", "gamma"):
        here, far = getattr(near, term), getattr(there, term)
        assert_allclose(far, here, atol=ROUNDED * (1.0 + np.abs(here).max()), err_msg=term)


CONTACTS = ("point_on_plane", "point_on_sphere", "point_on_cylinder", "soft_finger", "rolling")


@given(
    seed=st.integers(0, 2**32 - 1),
    name=st.sampled_from([f"{way}{model}" for model in CONTACTS for way in ("", "driven ")]),
)
def test_contacts_have_exact_rows_in_any_mechanism(seed, name):
    test_each_order_is_the_rate_of_the_one_before(name, np.random.default_rng(seed))


@pytest.mark.parametrize("name", SAMPLES)
def test_each_order_is_the_rate_of_the_one_before(name, rng):
    mechanism, constraint, q, v, t = closed_world(SAMPLES[name], rng)
    solver = Solver(mechanism, encode(mechanism, [constraint]), Tolerances())
    if isinstance(constraint, LoopJoint):
        assert_allclose(solver.terms(q, v, t).g, 0, atol=1e-13)
    require_rates(solver, q, v, t)


def require_rates(solver, q, v, t):
    """Each order of the rows, and of their Jacobian, is the rate of the one before."""
    mechanism, now = solver.mechanism, solver.terms(q, v, t)

    def moved(s):
        there = np.empty_like(q)
        displace(mechanism.bodies, q, v, s, there)
        return solver.terms(there, v, t + s)

    def rate_of(value):
        """Extrapolated, since third derivatives of some mechanisms are large."""
        near, far = ((value(moved(s)) - value(moved(-s))) / (2 * s) for s in (FD_STEP, 2 * FD_STEP))
        return (4 * near - far) / 3

    holds = solver.encoded.has_position
    rate = rate_of(lambda at: at.g)
    assert_allclose(rate[holds], (now.J @ v + now.g_t)[holds], atol=FD_ATOL)
    assert_allclose(rate_of(lambda at: at.J @ v + at.g_t), now.gamma, atol=FD_ATOL)
    _, J_rate = SystemDynamics(solver).moving(q, v, t).matrix_rates(v)
    assert_allclose(rate_of(lambda at: at.J), J_rate, atol=FD_ATOL)


def lines_and_turns(rng):
    """Rows that bounds act along: a line through points, one of two, a turn about whatever axis."""
    mechanism = random_mechanism(rng, KINDS)
    ball = JointProperties(limits=(0.0, 1.0))
    mechanism = with_joint_properties(mechanism, {"joint3": ball})
    via = Frame("link5", (0.3, 0.1, 0.2)), Frame("link5"), Frame("world", (0.5, -1.0, 0.7))
    bounds = {"limits": (0.1, 2.0)}
    lines = [Spring("line", A, B, via=via, **bounds), Spring("short", A, B, **bounds)]
    return mechanism, inequality_constraints_of(mechanism, lines).loop_axes.encoded


def test_rows_that_bounds_act_along_are_exact_too(rng):
    mechanism, encoded = lines_and_turns(rng)
    assert len(encoded.loops) == 6 and encoded.nc == 3
    q, v = random_state(rng, mechanism)
    require_rates(Solver(mechanism, encoded, Tolerances()), q, v, 0.0)


@pytest.mark.parametrize("model", NAMED, ids=lambda m: m.value)
def test_the_rows_of_a_joint_model_are_the_complement_of_its_free_motions(model):
    free = free_motions(model, 0.1, 0.3)
    rows = transmitted_wrenches(free)
    assert_allclose(rows @ free.T, 0, atol=1e-12)
    assert rank(rows) == 6 - rank(free) == len(rows)


@pytest.mark.parametrize("model", NAMED, ids=lambda m: m.value)
def test_named_models_are_general_ones(model, rng):
    """The same rows span the same space when the free motions are mixed and stretched."""
    if model in VARIABLE or model in HELD_FORCES:
        return  # one of its motions depends on the configuration, or it has no closed positions
    free = free_motions(model, 0.37 / (2 * np.pi))
    Z = frame_with_z(AXIS)
    given = rng.normal(size=(len(free), len(free))) @ np.hstack(
        [free[:, :3] @ Z.T, free[:, 3:] @ Z.T]
    )
    mechanism, constraint, q, v, t = closed_world(replace(joint(model), radius=0.0), rng)
    other = replace(
        constraint, model=JointModel.GENERAL, free=tuple(map(tuple, given)), axis=(0, 0, 1), pitch=0
    )
    rows = []
    for one in (constraint, other):
        terms = Solver(mechanism, encode(mechanism, [one]), Tolerances()).terms(q, v, t)
        assert_allclose(terms.g, 0, atol=1e-13)
        rows.append(np.column_stack([terms.J, terms.gamma]))
    change = np.linalg.lstsq(rows[0].T, rows[1].T, rcond=None)[0]
    assert_allclose(rows[0].T @ change, rows[1].T, atol=1e-11)


@pytest.mark.parametrize("count", range(6))
def test_dual_bases_are_dual(count, rng):
    free = rng.normal(size=(count, 6))
    psi_u, psi_c = dual_bases(free)
    assert_allclose(psi_u @ free.T, np.eye(count), atol=1e-12)
    assert_allclose(psi_c @ free.T, 0, atol=1e-12)
    assert np.linalg.matrix_rank(np.vstack([psi_u, psi_c])) == 6


@pytest.mark.parametrize("angle", [1e-7, 0.3, 2.0, 3.1])
def test_a_weld_measures_its_rotation_error_as_an_angle(angle, rng):
    mechanism = random_mechanism(rng, [FREE])
    weld = LoopJoint("w", JointModel.WELD, Frame("world"), Frame("link1"))
    link = mechanism.links["link1"]
    turned = Rotation.from_rotvec(angle * np.array([2, -1, 2]) / 3).as_matrix() @ link.R.T
    q = np.concatenate([np.zeros(3), Rotation.from_matrix(turned).as_quat()])
    solver = Solver(mechanism, encode(mechanism, [weld]), Tolerances())
    g = solver.terms(q, np.zeros(6), 0.0).g
    assert_allclose(np.linalg.norm(g[3:]), angle, rtol=1e-8)


def test_a_screw_counts_its_turns():
    rng = np.random.default_rng(3)
    mechanism = random_mechanism(rng, [FREE])
    link, pitch = mechanism.links["link1"], 0.2
    screw = LoopJoint("s", JointModel.SCREW, Frame("world"), Frame("link1"), pitch=pitch)
    solver = Solver(mechanism, encode(mechanism, [screw]), Tolerances())
    for turns in (-3.7, -0.5, 0.0, 0.49, 2.25):
        R = Rotation.from_rotvec([0, 0, 2 * np.pi * turns]).as_matrix() @ link.R.T
        p = np.array([0, 0, pitch * turns]) - R @ link.p
        q = np.concatenate([p, Rotation.from_matrix(R).as_quat()])
        assert_allclose(solver.terms(q, np.zeros(6), 0.0).g, 0, atol=1e-13)


@pytest.mark.parametrize(
    ("constraint", "message"),
    [
        (LoopJoint("l", JointModel.BALL, Frame("lnk3"), B), "unknown link 'lnk3'.*link3"),
        (LoopJoint("l", JointModel.BALL, A, A), "'l' joins .* one rigid body"),
        (LoopJoint("l", JointModel.SCREW, A, B), "'l' has pitch 0.0"),
        (LoopJoint("l", JointModel.UNIVERSAL, A, B), "'l' is universal.*axis_b"),
        (LoopJoint("l", JointModel.REVOLUTE, A, B, (0, 0, 0)), "no direction"),
        (LoopJoint("l", JointModel.BALL, Frame("link3", (np.nan, 0, 0)), B), "finite"),
        (general(((1, 0, 0, 0, 0), (0, 1, 0, 0, 0, 0))), "'general' has free twists"),
        (general(((0, 0, 0, 0, 0, 0),)), "'general' has free twists"),
        (general(((1, 0, 0, 0, 0, 0), (2, 0, 0, 0, 0, 0))), "depend on each other"),
        (general(tuple(map(tuple, np.eye(6)))), "nothing to constrain"),
        (general(((1, 0, 0, 0, 0, 0), (0, 1, 0, 0, 0, 0))), "turn about 2 axes"),
        (LoopJoint("l", JointModel.BALL, A, B, free=((1, 0, 0, 0, 0, 0),)), "only general"),
        (Distance("l", A, B, 0.0), "'l' has length 0.0"),
        (LoopJoint("l", JointModel.POINT_ON_SPHERE, A, B), "'l' is point_on_sphere .* radius 0.0"),
        (LoopJoint("l", JointModel.PURE_ROLLING, A, B, radius=-1.0), "radius -1.0 m"),
        (LoopJoint("l", JointModel.BALL, A, B, radius=0.1), "'l' is ball: it has no radius"),
        (Coupling("l", {"joint3": 1.0}), "'l' names the spherical joint 'joint3'"),
        (Coupling("l", {"jnt2": 1.0}), "unknown joint 'jnt2'.*joint2"),
        (Coupling("l", {}), "no coefficient"),
    ],
)
def test_impossible_constraints_are_refused_by_name(constraint, message, rng):
    with pytest.raises(ModelError, match=message):
        encode(random_mechanism(rng, KINDS), [constraint])


def test_two_constraints_of_one_name_are_refused(rng):
    with pytest.raises(ModelError, match="two constraints are called 'ball'"):
        encode(random_mechanism(rng, KINDS), [joint(JointModel.BALL), joint(JointModel.BALL)])


@pytest.mark.parametrize("ends", ["clamped", "natural"])
def test_a_spline_has_no_jump_in_rate_at_its_ends(ends):
    times, values = (0.0, 1.0, 2.5), (0.3, -1.0, 3.0)
    spline = Spline(times, values, ends)
    for t, value in zip(times, values, strict=True):
        assert_allclose(spline(t)[0], value, atol=1e-14)
        assert_allclose(spline(t - 1e-9)[:2], spline(t + 1e-9)[:2], atol=1e-7)
    for t in (-1.0, 4.0):
        value, rate, acceleration = spline(t)
        assert acceleration == 0.0
        assert_allclose(rate, (spline(t + 0.1)[0] - value) / 0.1, atol=1e-12)
        assert (abs(rate) < 1e-14) == (ends == "clamped")
