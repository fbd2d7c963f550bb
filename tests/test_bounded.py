"""Motors, limits and friction of loop joints, loads of a step, and its balance of momentum."""

from dataclasses import replace

import numpy as np
import pytest
from support.planar import PIN, assembled, four_bar, hinged, planar_chain

import bulletbridge as bb
from bulletbridge import LoopAxis, Motor
from bulletbridge.inequalities.arrays import PUSHED

G = 9.81
DT = 1 / 240
Y_UP = (0.0, 1.0, 0.0)


def pendulum(**options) -> bb.System:
    """A rod of 1 m and 1 kg that hangs from the world."""
    return bb.System(planar_chain([1.0], [1.0]), **options)


def test_the_motor_of_a_loop_joint_holds_by_the_moment_of_virtual_work():
    """At rest, along the one free motion: gravity's work and the motor's add up to nothing."""
    system = assembled(hinged(turn=LoopAxis(motor=Motor(1e3, velocity_gain=1.0))))
    for _ in range(20):
        system.step()
    assert np.abs(system.v).max() < 1e-13
    terms = system.terms()
    free = np.linalg.svd(terms.J)[2][-1]  # the motion that is left, of rank 2 in five rows
    moment = system.joint_loads["pin"].motor
    turn = free.sum()  # of l2 against the world, about y
    assert moment * turn == pytest.approx(free @ terms.h, rel=1e-9)
    # the reaction on l2 has it too: all moments about y and forces hold l2 and what pulls on it
    assert abs(system.reactions()["pin"].torque[1]) == pytest.approx(abs(moment), rel=1e-9)


def test_a_motor_of_a_loop_joint_turns_it_at_its_rate():
    """The rate is that at the end of the step but for its curvature, an error of order one."""
    errors = []
    for dt in (1 / 240, 1 / 2400):
        system = assembled(hinged(dt=dt, turn=LoopAxis(motor=Motor(1e4, 0.7))))
        for _ in range(round(0.2 / dt)):
            system.step()
        errors.append(abs(abs(sum(system.v)) - 0.7))
        assert system.evaluate().largest("metres") < 1e-12
    assert errors[0] < 1e-2
    assert errors[1] < 0.15 * errors[0]


def test_limits_of_a_loop_joint_stop_the_linkage():
    """The linkage swings down until the pin's limit; then it rests, held by the limit's moment."""
    free = assembled(hinged(turn=LoopAxis()))
    free.motors.set("pin", force=1e-9)
    free.step()
    start = free._inequalities.latest.positions["g"][0]
    for side in (-1, 1):
        limits = (start - 0.05, np.inf) if side < 0 else (-np.inf, start + 0.05)
        system = assembled(hinged(turn=LoopAxis(limits=limits)))
        for _ in range(480):
            system.step()
        at = system._inequalities.latest.positions["g"][0]
        if abs(at - start) < 0.2:  # this is the side to which it swings
            assert abs(at - start) == pytest.approx(0.05, abs=1e-4)
            assert np.abs(system.v).max() < 1e-3
            break
    else:
        pytest.fail("neither limit stopped it")


@pytest.mark.parametrize("where", ["tree", "loop"])
def test_joint_friction_sticks_below_its_torque_and_slides_above(where):
    """A pendulum at 90 degrees has a moment m g l/2; friction above it holds it, below does not."""
    moment = 1.0 * G * 0.5
    for share in (1.01, 0.5):
        if where == "tree":
            system = pendulum()
            system.motors.set_friction("j0", share * moment)
            q = np.zeros(1)
        else:
            mechanism = planar_chain([], [], floating=1.0)
            bodies = mechanism.bodies.copy()
            bodies[1]["com"] = 0.5, 0, 0
            joint = bb.LoopJoint(
                "j0",
                bb.JointModel.REVOLUTE,
                bb.Frame("world"),
                bb.Frame("base"),
                axis=Y_UP,
                turn=LoopAxis(friction=share * moment),
            )
            system = bb.System(replace(mechanism, bodies=bodies), [joint])
            q = np.array([0, 0, 0, 0, 0, 0, 1.0])
        system.set_state(q)
        system.step()
        friction = system.joint_loads["j0"].friction
        if share > 1:
            assert np.abs(system.v).max() < 1e-13
            assert abs(friction) == pytest.approx(moment, rel=1e-9)
        else:
            inertia = 1 / 12 + 0.25 if where == "tree" else 1.0 + 0.25
            rate = np.abs(system.v).max() if where == "tree" else abs(system.v[1])
            assert rate == pytest.approx((1 - share) * moment / inertia * DT, rel=1e-9)
            assert abs(friction) == pytest.approx(share * moment, rel=1e-9)


def test_impulses_and_reactions_balance_momentum():
    """M dv = (tau - h) dt + all impulses: motors, friction, limits, pulls and reactions."""
    pull = bb.Distance("string", PIN, bb.Frame("l1", (0.5, 0, 0)), 0.3, max_force=3.0)
    system = assembled(four_bar(extra=[pull]))
    system.motors.set("j0", force=2.0, velocity=3.0)
    system.motors.set_friction("j1", 0.5)
    for _ in range(30):
        q, v, t = system.q, system.v, system.t
        terms = system.terms()
        system.step()
        step = system._inequalities.latest
        reactions = system.reactions()
        # pulls, by their own force on b and the opposite on a
        push = np.zeros(3)
        for name, load in system.joint_loads.items():
            push[system.mechanism.joints[name].v] += load.motor + load.friction
        kinematics = bb.Kinematics(system.mechanism, terms.poses, terms.axes, q, v, t)
        for name, (a, b) in {"string": (pull.a, pull.b)}.items():
            force = reactions[name].force
            push += (kinematics.point(b).J - kinematics.point(a).J).T @ force
        lam = reactions["loop"].multipliers
        f = terms.forces - terms.h + push
        vdot = np.linalg.solve(terms.M, f + terms.J.T @ lam)
        assert np.abs(terms.J @ vdot + terms.gamma).max() < 1e-10  # a consistent acceleration
        # what the step gave, before the loops are closed, is the same without their curvature
        gave = (step.impulses[PUSHED, :3] - v) / DT
        left = terms.M @ gave - f
        part = left - terms.J.T @ np.linalg.lstsq(terms.J.T, left, rcond=None)[0]
        assert np.abs(part).max() < 1e-10 * np.abs(terms.M @ gave).max()


def test_closing_is_told_where_it_alone_holds():
    """Three rods pinned at their reach: weights would bend them, which no row stops there.

    Of 1 kg and 0.4, 0.2, 0.4 m along x. Where the outer ones turn by 1 and -1 rad/s, the tip stays
    and the centres fall at 0.2, 0.4 and 0.2 m/s: closing has to give 0.8 m/s (1 kg) (9.81 m/s²) dt
    along this motion. What is left moves by no more than the root of the gap that counts as closed,
    1e-6 m in a step, or 1e-4 N m s with the inertias of these rods: four thousandths.
    """
    loop = bb.LoopJoint("tip", bb.JointModel.BALL, bb.Frame("l2", (0.4, 0, 0)), PIN)
    system = bb.System(planar_chain([0.4, 0.2, 0.4], [1.0, 1.0, 1.0]), [loop], dt=DT)
    system.motors.set_friction("j0", 1e-9)
    system.step()
    along = system.closing_impulse() @ np.array([1.0, -1.0, -1.0])
    assert along == pytest.approx(-0.8 * G * DT, rel=4e-3)


def test_closing_is_of_second_order_where_rows_stay():
    """And not told of steps that have no forces of a step."""
    sizes = list[float]()
    for dt in (DT, DT / 2):
        system = assembled(four_bar(dt=dt))
        system.motors.set("j0", force=5.0, velocity=3.0)
        for _ in range(round(0.1 / dt)):
            system.step()
        sizes.append(float(np.linalg.norm(system.closing_impulse())))
    assert 0.2 < sizes[1] / sizes[0] < 0.3
    system.set_state(system.q)
    with pytest.raises(bb.errors.UnsupportedError, match="limits='always'"):
        system.closing_impulse()


@pytest.mark.parametrize("model", ["prismatic", "cylindrical", "screw"])
def test_travel_and_turn_are_counted_and_stopped(model):
    """A nut on a fixed spindle that is driven: it stops at its limit, turns or travel."""
    travel, pitch = model != "screw", 0.5 if model == "screw" else 0.0
    limit = 0.7 if travel else 9.0  # beyond one turn
    freedom = LoopAxis((-1.0, limit), motor=Motor(5.0, 2.0))
    joint = bb.LoopJoint(
        "nut",
        bb.JointModel(model),
        bb.Frame("world"),
        bb.Frame("base"),
        pitch=pitch,
        **{"travel" if travel else "turn": freedom},
    )
    mechanism = replace(planar_chain([], [], floating=1.0), gravity=np.zeros(3))
    system = bb.System(mechanism, [joint])
    system.set_state(np.array([0, 0, 0, 0, 0, 0, 1.0]))
    name = "nut/travel" if model == "cylindrical" else "nut"
    for _ in range(240 * 6):
        system.step()
    assert np.abs(system.v).max() < 1e-11  # the limit's rounding in one step
    expected = limit if travel else limit * pitch / (2 * np.pi)
    assert system.q[2] == pytest.approx(expected, abs=1e-9)
    load = system.joint_loads[name]
    assert (load.motor, load.limit) == pytest.approx((5.0, -5.0), abs=1e-9)
