"""Armature, strong dampers and limits of joints, under every way to step."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import solve_ivp
from support.planar import PIN, planar_chain
from support.urdf_builder import inertial, joint, link, robot

import bulletbridge as bb
from bulletbridge.errors import BulletBridgeWarning, LoopFileError, ModelError
from bulletbridge.mechanism.joint_properties import with_joint_properties
from bulletbridge.models.loops_file import read_loops, write_loops

EPS = np.finfo(float).eps
GRAVITY = 9.81
LENGTH, MASS = 0.5, 2.0
INERTIA = MASS * LENGTH**2 / 3
WEIGHT = MASS * GRAVITY * LENGTH / 2


def properties(**given):
    return bb.JointProperties(**given)


def chain(given, **options):
    """A pendulum of ``LENGTH`` and ``MASS`` whose joint has these properties."""
    mechanism = with_joint_properties(planar_chain([LENGTH], [MASS]), {"j0": given})
    return bb.System(mechanism, **options)


def closed(given, **options):
    """A four-bar, all of whose joints have these properties, ready to fall."""
    mechanism = planar_chain([0.4, 0.9, 0.7], [0.8, 1.8, 1.4])
    mechanism = with_joint_properties(mechanism, dict.fromkeys(("j0", "j1", "j2"), given))
    loop = bb.LoopJoint("loop", bb.JointModel.BALL, bb.Frame("l2", (0.7, 0, 0)), PIN)
    system = bb.System(mechanism, [loop], **options)
    system.assemble({"j0": 1.2}, guess={"j1": -0.6, "j2": -1.5})
    return system


def test_armature_is_on_the_diagonal_of_the_mass_matrix_alone():
    mechanism = planar_chain([0.4, 0.9, 0.7], [0.8, 1.8, 1.4], floating=2.0)
    armature = {"j0": 0.03, "j2": 1.7}
    geared = with_joint_properties(
        mechanism, {name: properties(armature=value) for name, value in armature.items()}
    )
    q = np.array([0.1, 0.2, 0.3, 0, 0, 0, 1.0, 0.3, -0.5, 0.2])
    v = np.linspace(-1.0, 1.0, 9)
    plain, with_armature = (
        bb.System(made)._active.full.terms(q, v, 0.0) for made in (mechanism, geared)
    )
    added = np.zeros(9)
    added[[6, 8]] = 0.03, 1.7
    scale = np.abs(plain.M).max()
    assert_allclose(with_armature.M - plain.M, np.diag(added), atol=4 * EPS * (scale + 1.7))
    assert_array_equal(with_armature.h, plain.h)


def test_a_geared_pendulum_swings_as_the_larger_inertia_and_keeps_its_energy():
    """Small swings have the period 2 pi sqrt((I + A) / (m g l / 2)), to the square of the swing."""
    armature, swing = 0.4, 1e-4
    system = chain(properties(armature=armature), dt=0.01, integrator="dop853")
    system.set_state([np.pi / 2 + swing], [0.0])
    period = 2 * np.pi * np.sqrt((INERTIA + armature) / WEIGHT)
    system.dt = period / 100
    before = system.evaluate().energy
    run = system.rollout(100)
    assert_allclose(run.q[-1], np.pi / 2 + swing, atol=swing**3)
    assert_allclose(system.evaluate().energy, before, atol=1e-12 * WEIGHT)


WAYS = (
    {"solver": "dense"},
    {"solver": "sparse"},
    {"solver": "islands"},
    *({"formulation": name} for name in ("multipliers", "elimination", "proximal", "modular")),
)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: next(iter(way.values())))
def test_every_way_to_step_has_armature_and_damping(way):
    """The same trajectory as dop853 under error control, to the order of RK4."""
    given = properties(armature=0.05, damping=0.1)
    exact = closed(given, dt=0.1, integrator="dop853")
    exact.rollout(2)
    system = closed(given, dt=1e-3, integrator="rk4", **way)
    system.rollout(200)
    assert_allclose(system.q, exact.q, atol=1e-9)  # RK4 at 1 ms: 1e-3^4 times what grows in 0.2 s
    assert_allclose(system.v, exact.v, atol=1e-8)


def overdamped(damping, t):
    """Angle of the pendulum that was let go level, by scipy's Radau."""
    run = solve_ivp(
        lambda _t, y: [y[1], (WEIGHT * np.cos(y[0]) - damping * y[1]) / INERTIA],
        (0.0, t),
        [0.0, 0.0],
        method="Radau",
        rtol=1e-10,
        atol=1e-12,
    )
    return run.y[0, -1]


@pytest.mark.parametrize("times", [1.0, 10.0, 1e2, 1e4])
def test_no_damper_is_too_strong_for_a_step(times):
    """d dt / I up to 1e4: the fall follows the exact one to the order of the step."""
    dt = 1 / 240
    damping = times * INERTIA / dt
    system = chain(properties(damping=damping), dt=dt)
    system.assemble({"j0": 0.0})
    assert system.integrator == "semi_implicit_euler"
    system.rollout(240)
    # the implicit Euler method errs by less than dt times the largest rate, here WEIGHT / damping
    assert_allclose(system.q[0], overdamped(damping, 1.0), atol=dt * WEIGHT / damping)


def test_weak_dampers_leave_the_order_of_the_default():
    """Twice as many steps of verlet, a quarter of the error."""
    errors = []
    for steps in (100, 200):
        system = chain(properties(damping=0.2), dt=1.0 / steps)
        system.assemble({"j0": 0.0})
        assert system.integrator == "verlet"
        system.rollout(steps)
        errors.append(abs(system.q[0] - overdamped(0.2, 1.0)))
    assert 3.5 < errors[0] / errors[1] < 4.5


@settings(max_examples=15)
@given(damping=st.floats(0.0, 4.0), armature=st.floats(-6.0, 0.0), start=st.floats(0.6, 1.6))
def test_damped_loops_stay_closed_and_lose_energy(damping, armature, start):
    """Strengths from nothing to 1e4; without gravity, whose work a step knows to first order."""
    given = properties(damping=10.0**damping - 1.0, armature=10.0**armature)
    mechanism = planar_chain([0.4, 0.9, 0.7], [0.8, 1.8, 1.4])
    mechanism = with_joint_properties(mechanism, dict.fromkeys(("j0", "j1", "j2"), given))
    loop = bb.LoopJoint("loop", bb.JointModel.BALL, bb.Frame("l2", (0.7, 0, 0)), PIN)
    mechanism = replace(mechanism, gravity=np.zeros(3))
    system = bb.System(mechanism, [loop], integrator="semi_implicit_euler")
    system.assemble({"j0": start}, {"j0": 2.0}, guess={"j1": -0.6, "j2": -1.5})
    before = system.evaluate().energy
    for _ in range(20):
        system.step()
        found = system.evaluate()
        assert found.largest("metres") <= 1e-12 and found.largest("rate_metres") <= 1e-12
    # an undamped step may gain as it turns: (rate dt)^3 a step, of the energy
    assert found.energy <= before * (1.0 + 20 * (5.0 * system.dt) ** 2)


def test_an_explicit_integrator_says_which_damper_it_cannot_follow():
    given = properties(damping=20.0 * INERTIA * 240)
    system = chain(given, integrator="rk4")
    with pytest.warns(BulletBridgeWarning, match="damping of joint 'j0', .* 'radau'"):
        system.assemble({"j0": 0.0})
    for steady in (chain(given), chain(given, integrator="radau")):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            steady.assemble({"j0": 0.0})


def test_dampers_are_taken_so_wherever_a_run_begins():
    """Without a call of assemble, and after a dt for which they are too strong."""
    given = properties(damping=20.0 * INERTIA * 240)
    system = chain(given)
    system.step()
    assert system.integrator == "semi_implicit_euler"
    weak = chain(properties(damping=0.2 * INERTIA * 240))
    weak.step()
    assert weak.integrator == "verlet"
    weak.dt = 10.0 / 240
    assert weak.integrator == "semi_implicit_euler"
    weak.dt = 1.0 / 240
    assert weak.integrator == "verlet"


def dropped(limits, **options):
    """A pendulum that is let go level, with a stop below; damping so that it comes to rest."""
    given = properties(limits=(-1.0, limits), damping=options.pop("damping", 0.0))
    system = chain(given, limits=True, **options)
    system.assemble({"j0": 0.0})
    return system


@pytest.mark.parametrize("integrator", [None, "rk4", "dop853", "semi_implicit_euler"])
def test_steps_are_free_until_a_limit_and_end_there(integrator):
    """Equal bits until the stop; not beyond it afterwards; at rest on it in the end."""
    stop, dt = 0.8, 1 / 240
    system = dropped(stop, dt=dt, integrator=integrator)
    free = chain(properties(), dt=dt, integrator=integrator)
    free.assemble({"j0": 0.0})
    hit = False
    for _ in range(240):
        system.step()
        if not hit:
            free.step()
            hit = free.q[0] > stop
        if not hit:
            assert_array_equal([system.q, system.v], [free.q, free.v])
        assert system.q[0] <= stop + 1e-9
    assert hit
    assert_allclose(system.q[0], stop, atol=1e-9)
    assert_allclose(system.v[0], 0.0, atol=1e-9)
    assert_allclose(system.joint_loads["j0"].limit, -WEIGHT * np.cos(stop), rtol=1e-6)


def test_a_rollout_meets_limits_as_steps_do():
    runs = []
    for way in ("steps", "rollout"):
        system = dropped(0.8, dt=1 / 240)
        if way == "rollout":
            system.rollout(240, every=7)
        else:
            for _ in range(240):
                system.step()
        runs.append([*system.q, *system.v])
    assert_array_equal(*runs)


def test_a_damped_fall_onto_a_limit_never_gains_energy():
    """With the budget of steps with inequalities, whose factors have the damper in them."""
    system = dropped(0.8, damping=3.0, dt=1 / 240, integrator="semi_implicit_euler")
    system.motors.set("j0", force=1.0, position=-0.5)
    energies = []
    for _ in range(480):
        system.step()
        energies.append(system.evaluate().energy)
    assert np.abs(system.v[0]) < 1e-6
    assert energies[-1] < energies[0]


def write_robot(folder, extra=""):
    (folder / "robot.urdf").write_text(
        robot(
            link("base"),
            link("arm", inertial(2.0, (0.01, 0.05, 0.05), (0.25, 0, 0))),
            joint("hip", "revolute", "base", "arm", axis="0 1 0", limits=(-3.0, 3.0)),
        )
    )
    path = folder / "robot.loops.yaml"
    path.write_text(f"bulletbridge: 1\nurdf: robot.urdf\nfixed_base: true\n{extra}")
    return path


def test_a_loops_file_gives_properties_of_joints(tmp_path):
    text = "joints: {hip: {armature: 0.3, damping: 0.2, friction: 0.1, limits: [-0.4, 0.5]}}\n"
    path = write_robot(tmp_path, text)
    spec = read_loops(path)
    assert spec.joints == {"hip": bb.JointProperties(0.3, 0.2, 0.1, (-0.4, 0.5))}
    write_loops(spec, tmp_path / "again.loops.yaml")
    assert read_loops(tmp_path / "again.loops.yaml") == spec
    with bb.load(path) as model:
        mechanism = model.system.mechanism
        axis, hip = mechanism.axes[0], mechanism.joints["hip"]
        assert (axis["armature"], axis["damping"]) == (0.3, 0.2)
        assert (hip.friction, hip.lower, hip.upper) == (0.1, -0.4, 0.5)


@pytest.mark.parametrize(
    "said, told",
    [
        ("{hop: {damping: 1}}", "unknown joint 'hop'; did you mean 'hip'"),
        ("{hip: {armatur: 1}}", "unknown key 'armatur'; did you mean 'armature'"),
        ("{hip: {armature: -1}}", "must not be negative"),
        ("{hip: {limits: [1, 0]}}", "two numbers, the lower one first"),
        ("{hip: {}}", "changes nothing; give one of armature, damping, friction, limits"),
    ],
)
def test_a_wrong_property_is_told_with_its_place(tmp_path, said, told):
    with pytest.raises(LoopFileError, match=told):
        read_loops(write_robot(tmp_path, f"joints: {said}\n"))


def test_properties_that_cannot_be_are_refused():
    mechanism = planar_chain([0.5], [1.0], floating=1.0)
    for name, wrong, told in (
        ("base", properties(armature=1.0), "free joint 'base' takes no armature"),
        ("hip", properties(damping=1.0), "unknown joint 'hip'"),
    ):
        with pytest.raises(ModelError, match=told):
            with_joint_properties(mechanism, {name: wrong})
    for numbers in ({"armature": np.nan}, {"damping": -1.0}, {"limits": (1.0, 0.0)}):
        with pytest.raises(ModelError):
            properties(**numbers)


def test_limits_act_in_loaded_models_unless_they_are_taken_away(tmp_path):
    path = write_robot(tmp_path, "joints: {hip: {limits: [-0.4, 0.5]}}\n")
    reached = {}
    for limits in (True, False):
        options = {} if limits else {"limits": False}
        with bb.load(path, **options) as model:
            reached[limits] = model.system.rollout(200).q.max()
    assert reached[True] <= 0.5 + 1e-9 and reached[False] > 1.0
