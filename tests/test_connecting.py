"""Joining and parting while things move: impacts keep momentum, lose energy, and nothing jumps."""

from pathlib import Path

import numpy as np
import pybullet
import pytest
from _mechanisms import REVOLUTE, random_mechanism, random_state
from numpy.testing import assert_allclose, assert_array_equal
from support.planar import planar_chain

import bulletbridge as bb
from bulletbridge.errors import AssemblyError, ModelError, OverconstrainedError, WorldError
from bulletbridge.mechanism.records import FREE

WELD, BALL = bb.JointModel.WELD, bb.JointModel.BALL
ROUND_OFF = 1e-12  # of the issue, relative
EPS = np.finfo(float).eps
KINDS = [FREE, REVOLUTE, REVOLUTE, REVOLUTE, FREE, REVOLUTE, REVOLUTE, FREE]
GRIP = bb.LoopJoint("grip", WELD, bb.Frame("link4", (0.1, 0.2, -0.1)), bb.Frame("link8"))


def floating(seed=0, constraints=(), **options) -> bb.System:
    """Two robots and a payload in free space, moving."""
    rng = np.random.default_rng(seed)
    mechanism = random_mechanism(rng, KINDS, branching=0.0, gravity=False)
    system = bb.System(mechanism, constraints, dt=1e-3, **options)
    if not constraints:
        system.set_state(*random_state(rng, mechanism))
    return system


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("model", ["weld", "ball", "revolute", "prismatic", "planar"])
def test_an_impact_keeps_momentum_and_loses_the_energy_of_the_lost_velocity(seed, model):
    system = floating(seed)
    before, q, v = system.evaluate(), system.q, system.v
    joint = bb.LoopJoint("grip", bb.JointModel(model), GRIP.a, GRIP.b)
    done = system.connect(joint, as_is=True)
    after = system.evaluate()
    for part in (slice(0, 3), slice(3, 6)):
        size = np.linalg.norm(before.momentum[part])
        assert_allclose(after.momentum[part], before.momentum[part], atol=ROUND_OFF * size)
    terms = system.terms()
    M, J = terms.M, terms.J
    lost = 0.5 * (system.v - v) @ M @ (system.v - v)
    assert_allclose(done.energy_lost, lost, rtol=1e-12)
    assert_allclose(before.kinetic - after.kinetic, lost, atol=1e-13 * before.kinetic)
    assert lost > 1e-3 * before.kinetic
    assert_allclose(system.q, q, rtol=0, atol=1e-14)
    # rounding in the metric of M, as fast as rows of unit impulse can move things
    fastest = np.sqrt(np.linalg.norm(J @ np.linalg.solve(M, J.T), 2) * 2.0 * before.kinetic)
    assert after.largest("rate_metres") < min(ROUND_OFF, len(M) * EPS * fastest)
    assert after.largest("metres") < 1e-14


def test_the_impulse_is_what_changes_each_side():
    """Of a payload, a rigid body: m dv and J dw + r x m dv; the other side gets the opposite."""
    system = floating()
    momenta = []
    for _ in range(2):
        bodies = system.terms().poses[[8]]
        w, v, mc = bodies["w"][0], bodies["v"][0], bodies["mc"][0]
        linear = bodies["m"][0] * v - np.cross(mc, w)
        angular = bodies["J"][0] @ w + np.cross(mc, v) + np.cross(bodies["origin"][0], linear)
        momenta.append(np.concatenate([angular, linear]))
        if not system.constraints:
            impulse = system.connect(GRIP, as_is=True).impulse
    change = momenta[1] - momenta[0]
    assert_allclose(impulse.force, change[3:], atol=1e-12)
    assert_allclose(impulse.torque + np.cross(impulse.point, impulse.force), change[:3], atol=1e-12)
    assert_allclose(impulse.point, system.kinematics().point(GRIP.a).p_W, atol=1e-13)


def test_a_connected_system_moves_like_one_that_was_built_connected():
    system = floating()
    connected = system.connect(GRIP, as_is=True).constraint
    built = floating(0, [connected])
    built.set_state(system.q, system.v)
    for s in (system, built):
        s.rollout(200)
    assert_allclose(system.q, built.q, rtol=0, atol=1e-11)
    assert_allclose(system.v, built.v, rtol=0, atol=1e-11)
    assert system.dof == built.dof == system.mechanism.nv - 6


def test_disconnecting_changes_nothing_now_and_everything_later():
    system, never = floating(), floating()
    grip = system.connect(GRIP, as_is=True).constraint
    system.rollout(20)
    never.set_state(system.q, system.v, system.t)
    state = system.q, system.v, system.t
    assert system.disconnect("grip") == grip
    for now, then in zip((system.q, system.v, system.t), state, strict=True):
        assert_array_equal(now, then)
    for s in (system, never):
        s.rollout(20)
    assert_allclose(system.q, never.q, rtol=0, atol=1e-13)


def test_hand_over_and_round_trip_keep_momentum():
    """Hand over: the second hand takes hold before the first lets go; a loop in between."""
    system = floating(3)
    before = system.evaluate().momentum
    system.connect(GRIP, as_is=True)
    second = bb.LoopJoint("second", WELD, bb.Frame("link7"), bb.Frame("link8"))
    taken = system.connect(second, as_is=True)
    assert set(taken.impulses) == {"grip", "second"}
    assert_allclose(system.evaluate().momentum, before, rtol=0, atol=1e-12 * np.abs(before).max())
    system.disconnect("grip")
    assert [c.name for c in system.constraints] == ["second"]
    system.disconnect("second")
    assert_allclose(system.evaluate().momentum, before, rtol=0, atol=1e-12 * np.abs(before).max())
    assert system.dof == system.mechanism.nv


def test_reconnecting_what_was_known_is_the_same_set_again():
    system = floating()
    grip = system.connect(GRIP, as_is=True).constraint
    decision = system.decision
    q, v = system.q, system.v
    system.disconnect("grip")
    system.gravity = (0.0, 0.0, -3.0)
    system.tau[7] = 0.5
    lost = system.connect(grip).energy_lost
    assert system.decision is decision
    assert_allclose([system.q @ system.q, lost], [q @ q, 0.0], atol=1e-13)
    assert_allclose(system.v, v, atol=1e-13)
    assert_array_equal(system.gravity, (0.0, 0.0, -3.0))
    built = floating(0, [grip])
    built.gravity = system.gravity
    built.set_state(q, v)
    built.tau[:] = system.tau
    assert_allclose(system.acceleration(), built.acceleration(), rtol=1e-9)


def test_what_is_apart_is_closed_only_when_asked():
    system = floating()
    apart = bb.LoopJoint("grip", BALL, bb.Frame("link4"), bb.Frame("link7"))
    with pytest.raises(AssemblyError, match="as_is=True, or assemble=True"):
        system.connect(apart)
    assert system.constraints == ()
    system.connect(apart, assemble=True)
    system.rollout(10)
    ends = [system.kinematics().point(frame).p_W for frame in (apart.a, apart.b)]
    assert_allclose(*ends, rtol=0, atol=1e-13)


def test_rods_and_gears_take_what_they_find():
    system = floating()
    rod = system.connect(bb.Distance("rod", GRIP.a, GRIP.b, 1.0), as_is=True)
    gear = system.connect(bb.Coupling("gear", {"joint2": 1.0, "joint6": -2.0}), as_is=True)
    kinematics = system.kinematics()
    ends = [kinematics.point(frame).p_W for frame in (GRIP.a, GRIP.b)]
    assert_allclose(rod.constraint.length, np.linalg.norm(ends[0] - ends[1]), rtol=1e-14)
    rates = [system.v[system.mechanism.joint(n).v.start] for n in ("joint2", "joint6")]
    assert_allclose(rates[0], 2 * rates[1], rtol=1e-12)
    assert gear.energy_lost > 0


def test_moving_frames_are_met_where_they_are():
    system = floating()
    system.set_state(t=0.4)
    turning = bb.Motion(x=bb.Sine(0.2, 0.7), angle=bb.Sine(1.2, 0.4), axis=(1.0, 2.0, -0.5))
    joint = bb.LoopJoint("grip", WELD, GRIP.a, GRIP.b, (0.3, -0.5, 0.8), motion=turning)
    system.connect(joint, as_is=True)
    assert system.evaluate().largest("metres") < 1e-13
    assert system.evaluate().largest("radians") < 1e-13
    assert system.evaluate().largest("rate_radians") < 1e-12
    system.rollout(50)
    assert system.evaluate().largest("metres") < 1e-12


def test_errors_leave_everything_as_it_was():
    system = floating()
    system.connect(GRIP, as_is=True)
    state, solver, constraints = (system.q, system.v), system._active.solver, system.constraints
    nowhere = bb.LoopJoint("other", WELD, bb.Frame("link1"), bb.Frame("nowhere"))
    far = bb.LoopJoint("far", BALL, bb.Frame("link1"), bb.Frame("link5"))
    with pytest.raises(ModelError, match="connected already"):
        system.connect(GRIP, as_is=True)
    with pytest.raises(ModelError, match="unknown link 'nowhere'"):
        system.connect(nowhere, as_is=True)
    with pytest.raises(ModelError, match="unknown constraint 'grap'; connected: grip"):
        system.disconnect("grap")
    with pytest.raises(AssemblyError, match="'far' cannot close: gap"):
        system.connect(far)
    assert system._active.solver is solver and system.constraints == constraints
    for now, then in zip((system.q, system.v), state, strict=True):
        assert_array_equal(now, then)


def test_a_joint_that_leaves_no_freedom_is_refused(rng):
    mechanism = random_mechanism(rng, [REVOLUTE] * 3, branching=0.0)
    system = bb.System(mechanism)
    system.set_state(*random_state(rng, mechanism))
    with pytest.raises(OverconstrainedError, match="no freedom"):
        system.connect(bb.LoopJoint("wall", WELD, bb.Frame("world"), bb.Frame("link3")), as_is=True)
    system.step()
    assert system.dof == 3
    locks = [bb.Coupling(f"lock_{name}", {name: 1.0}, 0.0) for name in mechanism.joints]
    with pytest.raises(OverconstrainedError, match="leave one of them out") as told:
        bb.System(mechanism, locks).assemble()
    assert "weld" not in str(told.value)  # none of them has rows to spare


@pytest.mark.parametrize("options", [{"integrator": "rk4"}, {"formulation": "elimination"}])
def test_every_way_of_stepping_goes_on_with_the_new_set(options):
    system = floating(**options)
    before = system.evaluate().momentum
    system.connect(GRIP, as_is=True)
    system.rollout(5)
    system.disconnect("grip")
    system.rollout(5)
    # RK4 at 1 ms; one step of the semi-implicit Euler of the other changes it by its error
    error = 1e-8 if "integrator" in options else 0.1
    assert_allclose(system.evaluate().momentum, before, rtol=0, atol=error * np.abs(before).max())
    assert system.dof == system.mechanism.nv


def test_a_world_sees_the_impact_and_one_that_is_gone_stops_it():
    demos = Path(__file__).parents[1] / "demos" / "space_system" / "space_system.loops.yaml"
    with bb.load(demos) as model:
        system, body = model.system, model.ids["payload"]
        system.set_state(v=0.1 * np.ones(system.mechanism.nv))
        hand = bb.LoopJoint("hand", WELD, bb.Frame("manipulator/left_5"), bb.Frame("payload/box"))
        system.connect(hand, as_is=True)
        velocity, spin = pybullet.getBaseVelocity(body, model.client)
        part = system.mechanism.joint("payload/base").v
        assert_array_equal([*spin, *velocity], system.v[part])
        assert np.abs(system.v[part] - 0.1).max() > 1e-3
        constraints = system.constraints
        pybullet.removeBody(body, model.client)
        with pytest.raises(WorldError):
            system.disconnect("hand")
        assert system.constraints == constraints


def test_reactions_are_those_of_the_constraints_that_act_now():
    geared = bb.Coupling("geared", {"j0": 1.0, "j1": -1.0})
    other = bb.Coupling("other", {"j1": 1.0, "j2": -1.0})
    system = bb.System(planar_chain([0.5, 0.4, 0.3], [1.0, 0.8, 0.5]), [geared, other], dt=1e-3)
    system.motors.set("j0", velocity=2.0, force=3.0)
    system.step()
    assert set(system.reactions()) == {"geared", "other"}
    system.disconnect("geared")
    assert set(system.reactions()) == {"other"}
    system.step()
    system.connect(geared, as_is=True)
    assert set(system.reactions()) == {"geared", "other"}
