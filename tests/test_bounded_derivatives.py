"""Derivatives of steps with motors, friction and limits: against differences, and closed forms.

Extrapolated central differences of steps are good to 1e-8 of the largest number, mostly 1e-10
(``test_linearisation``); beside a limit they see a kink that the derivative of the active set does
not have, which closed forms stand for there.
"""

from dataclasses import replace

import numpy as np
import pytest
from support.closed_mechanisms import closed_system
from support.small_trees import slider

import bulletbridge as bb
from bulletbridge.errors import UnsupportedError
from bulletbridge.mechanism.records import PRISMATIC, REVOLUTE, SPHERICAL
from bulletbridge.system.tangents import freedoms_at

DIFFERENCES = 1e-7


def require_differences(system: bb.System) -> bb.Linearisation:
    """Equations and differences give one linearisation, of one active set."""
    known = system.linearise(by="equations")
    found = system.linearise(by="differences")
    assert known.active == found.active and found.changed == ()
    for one, other in ((known.A, found.A), (known.B, found.B)):
        assert np.abs(one - other).max() <= DIFFERENCES * np.abs(found.A).max()
    assert np.abs(known.q_after - found.q_after).max() <= 1e-13
    return known


@pytest.mark.parametrize(
    ("motor", "active"),
    [
        ({"velocity": 5.0, "force": 0.5}, ("motor of crank at +force",)),
        ({"velocity": 1.0, "force": 100.0}, ()),
        ({"position": 0.4, "position_gain": 0.01, "velocity": 0.0, "force": 1e4}, ()),
        (
            {
                "position": 9.0,
                "velocity": 0.0,
                "position_gain": 0.1,
                "force": 1e4,
                "max_velocity": 2.0,
            },
            (),
        ),
        ({"velocity": 1.0, "velocity_gain": 0.3, "force": 100.0}, ()),
        ({"position": 0.4, "position_gain": 0.01, "velocity_gain": 0.5, "force": 1e4}, ()),
        ({"velocity": 2.0, "velocity_gain": 0.1, "max_velocity": 2.0, "force": 1e4}, ()),
    ],
    ids=[
        "at its force",
        "holds a rate",
        "goes to a position",
        "as fast as it may",
        "softly to a rate",
        "softly to a position",
        "softly to its fastest",
    ],
)
@pytest.mark.parametrize("rubs", [0.0, 0.1])
def test_a_motor_pushes_or_holds(connect, motor, active, rubs):
    system = bb.load("four_bar", connect()._client, dt=1e-3, limits=False).system
    system.motors.set("crank", **motor)
    system.motors.set_friction("rocker", rubs)
    system.rollout(20)
    slides = ("friction of rocker sliding",) if rubs else ()
    assert require_differences(system).active == (*slides, *active)
    assert system.step_derivatives().active == (*slides, *active)


@pytest.mark.parametrize(
    ("servo", "active"),
    [
        ({"stiffness": 50.0, "damping": 2.0, "position": 0.4, "force": 100.0}, ()),
        ({"stiffness": 1e6, "damping": 1e5, "position": 0.4, "force": 1e7}, ()),
        ({"damping": 3.0, "velocity": 1.0, "force": 100.0}, ()),
        ({"stiffness": 50.0, "position": 9.0, "force": 3.0}, ("motor of crank at +force",)),
        ({"stiffness": 50.0, "position": -9.0, "force": 3.0, "least": -0.5}, ()),
    ],
    ids=["spring and damper", "stiff", "damper", "at its force", "at its least"],
)
def test_a_servo_gives_way(connect, servo, active):
    """By what its spring and its damper leave, as long as it is within its bounds."""
    system = bb.load("four_bar", connect()._client, dt=1e-3, limits=False).system
    system.motors.servo("crank", **servo)
    system.motors.set_friction("rocker", 0.1)
    system.rollout(20)
    assert require_differences(system).active == ("friction of rocker sliding", *active)


@pytest.mark.parametrize("m", [2.0, 2e6])
def test_a_servo_of_a_slider_is_a_spring_and_a_damper_at_the_end_of_the_step(m):
    """m (v⁺ - v) = dt (k (p - q - dt v⁺) + d (w - v⁺) + u), however little it does to the rate."""
    k, d, dt = 30.0, 4.0, 0.01
    system = bb.System(slider("x", mass=m, gravity=(0, 0, 0)), dt=dt)
    system.set_state([0.3], [-0.2])
    system.motors.servo("x", stiffness=k, damping=d, position=1.0, velocity=0.5, force=1e3)
    found = system.step_derivatives()
    through = m + dt * d + dt * dt * k
    v = (m * -0.2 + dt * (k * 0.7 + d * 0.5)) / through
    assert abs(found.v[0] - v) <= 1e-14
    by_q, by_v, by_u = -dt * k / through, m / through, dt / through
    wanted = [[1.0 + dt * by_q, dt * by_v], [by_q, by_v]]
    assert np.abs(found.A - wanted).max() <= 1e-13
    assert np.abs(found.B.ravel() - [dt * by_u, by_u]).max() <= 1e-15


@pytest.mark.parametrize("floating", [False, True])
@pytest.mark.parametrize("loop", ["ball", "revolute", "weld"])
def test_motors_of_all_kinds_on_random_mechanisms(floating, loop):
    """Servos and soft motors, within their force and at it, on joints that loops move.

    Those of which the active set is about to change, by chance, have no derivatives.
    """
    kinds = [REVOLUTE, PRISMATIC, REVOLUTE, REVOLUTE, SPHERICAL, REVOLUTE, PRISMATIC, REVOLUTE]
    compared = 0
    for seed in range(4):
        system, rng = (
            closed_system((seed, floating, kinds, loop, False)),
            np.random.default_rng(seed),
        )
        single = [name for name, joint in system.mechanism.joints.items() if joint.is_single]
        for name in single[:4]:
            q, force = float(system.q[name]), float(rng.choice([0.5, 1e3]))
            if rng.random() < 0.5:
                k, d = 10.0 ** rng.uniform(0.0, 3.0, 2)
                system.motors.servo(name, stiffness=k, damping=d, position=q + 0.1, force=force)
            else:
                gains = {"velocity_gain": rng.uniform(0.1, 1.0), "position_gain": 0.05}
                system.motors.set(name, position=q + 0.1, force=force, **gains)
        system.step()
        try:
            system.step_derivatives()
        except UnsupportedError as error:
            assert "about to act otherwise" in str(error) or "corrected by turns" in str(error)
            continue
        require_differences(system)
        compared += 1
    assert compared >= 2


def test_friction_sticks():
    system = bb.System(slider("x", gravity=(5.0, 0.0, 0.0)), dt=0.01)
    system.motors.set_friction("x", 100.0)
    found = require_differences(system)
    assert found.active == ("friction of x sticking",)
    assert np.abs(found.A - [[1.0, 0.0], [0.0, 0.0]]).max() <= 1e-12
    assert np.abs(found.B).max() <= 1e-12


def test_motors_of_a_floating_robot_push_and_hold(connect):
    system = bb.load("minitaur", connect()._client, dt=1e-3, limits=False).system
    motors = [name for name in system.mechanism.joints if name.startswith("motor")]
    for k, name in enumerate(motors):
        system.motors.set(name, velocity=0.0, force=0.5 if k % 2 else 500.0)
    system.tau[:] = 0.6
    system.rollout(20)
    found = require_differences(system)
    assert 0 < len(found.active) < len(motors)


def stopped(pull: float, position: float = 0.0) -> bb.System:
    """A slider of 1 kg with a stop at 0, pulled towards it [N/kg]."""
    mechanism = slider("x", gravity=(pull, 0.0, 0.0))
    mechanism.joints["x"] = replace(mechanism.joint("x"), lower=-1.0, upper=0.0)
    system = bb.System(mechanism, dt=1e-3, limits="always")
    system.set_state([position], [0.0])
    return system


def test_a_limit_holds_whatever_presses():
    """At the stop nothing answers; a step that just comes to it ends there, from wherever."""
    system = stopped(5.0)
    found = system.linearise(by="equations")
    assert found.active == ("limit of x",)
    assert np.abs(found.B).max() <= 1e-12
    coming = stopped(0.0, -5e-4)
    coming.set_state([-5e-4], [1.0])
    found = coming.linearise(by="equations")
    assert found.active == ("limit of x",)
    assert abs(found.q_after[0]) <= 1e-15
    # v = -q / dt, and so q = 0
    assert np.abs(found.A - [[0.0, 0.0], [-1000.0, 0.0]]).max() <= 1e-9
    assert np.abs(found.B).max() <= 1e-12


def limited(force: float | None) -> bb.System:
    """A random mechanism, floating, whose loop gives way at a force."""
    kinds = [REVOLUTE, SPHERICAL, PRISMATIC, SPHERICAL]
    plain = closed_system((102, True, kinds, "weld", False))
    (weld,) = plain.constraints
    loop = replace(weld, max_force=force)
    options = {"integrator": "semi_implicit_euler", "limits": "always"}
    system = bb.System(plain.mechanism, [loop], dt=1e-3, **options)
    system.set_state(plain.q, plain.v)
    system.tau[:] = np.linspace(-1.0, 1.0, len(system.v))
    return system


def test_a_constraint_with_a_force_limit_is_rigid_while_it_holds():
    """The step is that of the rigid one, to round-off, and is differentiated by the same."""
    found, rigid = limited(1e5).step_derivatives(), limited(None).step_derivatives()
    for one, other in zip(found[:4], rigid[:4], strict=True):
        assert np.abs(one - other).max() <= 1e-10 * np.abs(other).max()
    with pytest.raises(UnsupportedError, match="'loop' gives way to its force limit"):
        limited(1e-3).step_derivatives()


@pytest.mark.parametrize("by", ["equations", "differences"])
def test_what_a_force_limit_holds_is_no_freedom(connect, by):
    """Tangents are those of the rigid constraint while it holds, of the tree once it gives way.

    Equations agree to round-off, differences of two kinds of steps to what those are good for.
    """
    plain = bb.load("four_bar", connect()._client, dt=1e-3, limits=False).system
    (pin,) = plain.constraints
    plain.rollout(50)

    def giving_way(force: float | None) -> bb.System:
        options = {"integrator": "semi_implicit_euler", "dt": 1e-3}
        system = bb.System(plain.mechanism, [replace(pin, max_force=force)], **options)
        system.assemble(guess=dict(zip(plain.mechanism.joints, plain.q, strict=True)))
        system.set_state(plain.q, plain.v)
        return system

    ideal, close = giving_way(None).linearise(reduced=["crank"]), {"equations": 1e-10}
    held = giving_way(1e5).linearise(reduced=["crank"], by=by)
    assert held.states == ideal.states == ("crank", "crank.rate") and held.by == by
    for one, other in ((held.A, ideal.A), (held.B, ideal.B), (held.lift, ideal.lift)):
        assert np.abs(one - other).max() <= close.get(by, 1e-7) * np.abs(other).max()
    loose = giving_way(1e-3).differentiable().tangent_solver()
    assert len(freedoms_at(loose)[0]) == 3


def test_what_is_about_to_change_or_not_known_is_refused(connect):
    def refused(system: bb.System, match: str) -> None:
        with pytest.raises(UnsupportedError, match=match):
            system.step_derivatives()

    refused(stopped(0.0), "of 'x' is about to act otherwise")
    free = bb.System(slider("x", gravity=(5.0, 0.0, 0.0)), dt=0.01)
    free.motors.set("x", velocity=0.0, force=5.0 * (1.0 + 1e-9))
    refused(free, "of 'x' is about to act otherwise")
    free.motors.servo("x", damping=10.0, force=5.0 * (1.0 + 1e-9))
    free.set_state(v=[0.5])  # where its damper holds the weight
    refused(free, "of 'x' is about to act otherwise")
    both = bb.load("four_bar", connect()._client, dt=1e-3, limits=False).system
    for name, rate in {"crank": 1.0, "rocker": -1.0}.items():  # so strong that they count alike
        both.motors.set(name, velocity=rate, force=1e12)
    refused(both, "do not hold what they ask for")


def test_motors_that_contradict_each_other_agree_on_what_is_nearest(connect):
    """More motors than freedoms: at rest, where they ask for the same, and in motion."""
    system = bb.load("four_bar", connect()._client, dt=1e-3, limits=False).system
    for name in ("crank", "rocker"):  # one freedom
        system.motors.set(name, velocity=0.0, force=100.0)
    system.set_state(v=np.zeros(3))
    require_differences(system)
    system.motors.set("crank", velocity=0.0, force=100.0, position=system.q[0], position_gain=0.1)
    require_differences(system)
    asked = {"crank": (0.3, 20.0), "rocker": (-0.2, 7.0), "coupler": (0.1, 9.0)}
    for name, (rate, force) in asked.items():
        system.motors.set(name, velocity=rate, force=force)
    system.rollout(10)
    assert require_differences(system).active == ()
    joints = system.mechanism.joints
    away = [abs(system.v[joints[name].v][0] - rate) for name, (rate, _) in asked.items()]
    assert min(away) > 0.01, "none gets its will"
    found = bb.rollout_gradient(system, np.zeros((2, 3)), None, lambda q, v, t: v)
    assert not len(found.differences)


def test_motors_push_against_friction_that_sticks():
    """Two motors on two freedoms, of which friction holds one: the weaker gives all that it has."""
    system = bb.load("five_bar", "new", dt=1e-3, limits=False).system
    system.rollout(20)
    system.motors.set_friction("motor_left", 1e4)
    for name, (rate, force) in {"elbow_left": (-0.01, 60.0), "elbow_right": (0.03, 700.0)}.items():
        system.motors.set(name, velocity=rate, force=force)
    system.rollout(3)
    forces = dict(zip(system.motors.names, system.motors.forces, strict=True))
    assert abs(forces["elbow_left"]) == pytest.approx(60.0)
    assert abs(forces["elbow_right"]) < 699.0
    # closing the loop after the step turns rates by what it turns in one, 3e-5
    assert system.v[system.mechanism.joints["elbow_right"].v][0] == pytest.approx(0.03, rel=3e-5)
    rubs = "friction of motor_left sticking"
    assert require_differences(system).active == (rubs, "motor of elbow_left at +force")


def test_a_motor_of_a_joint_that_loops_lock_changes_nothing():
    """Three joints in a weld: what their motors ask for is not possible, whatever else happens.

    A force of it moves nothing: to 1e-12, as forces that loops bear do.
    """
    system = closed_system((7, True, [REVOLUTE, PRISMATIC, REVOLUTE], "weld", False))
    system.motors.set("joint3", velocity=0.3, force=1.0)
    require_differences(system)
    by_force = system.step_derivatives().B
    locked = by_force[:, system.mechanism.joint("joint3").v]
    assert np.abs(locked).max() <= 1e-12 * np.abs(by_force).max()
