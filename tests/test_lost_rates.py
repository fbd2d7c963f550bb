"""Rates at positions where ways of a mechanism part: kept on one of them, or told to be lost."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from _campaign_cases import make_case
from _campaign_conserved import Conserved, Drift
from _campaign_judge import Judge

import bulletbridge as bb
from bulletbridge.errors import BulletBridgeWarning, StepError
from bulletbridge.mechanism.build import Load, empty_mechanism, with_joint

DT = 1e-3
FIXED = "semi_implicit_euler", "verlet", "rk4"
CONTROLLED = "dop853", "radau"


def rod(length, centre=None):
    """A slender rod of 1 kg along x, with its centre of mass in the middle unless given."""
    at = length / 2 if centre is None else centre
    return Load(1.0, (at, 0.0, 0.0), (1e-3, length**2 / 12, length**2 / 12))


def cranks(gravity=0.0, centre=None):
    """Cranks of 1 m, 2 m apart, with a coupler of 2 m that has its centre of mass at ``centre``.

    Flat, two ways lead on. To second order a closed motion has x: w² + 2 u² = r² and y:
    w + 2 u = r, with the rates w of the crank, u of the coupler and r of the rocker in the world,
    so u = 0 or u = -2 w.
    """
    mechanism = empty_mechanism((0.0, -gravity, 0.0))
    mechanism = with_joint(mechanism, "j1", "revolute", "crank", load=rod(1.0))
    mechanism = with_joint(
        mechanism, "j2", "revolute", "coupler", "crank", (1.0, 0.0, 0.0), load=rod(2.0, centre)
    )
    return with_joint(mechanism, "j3", "revolute", "rocker", xyz=(2.0, 0.0, 0.0), load=rod(1.0))


ENDS = bb.Frame("coupler", (2.0, 0.0, 0.0)), bb.Frame("rocker", (1.0, 0.0, 0.0))
PIN = bb.LoopJoint("pin", bb.JointModel.BALL, *ENDS)


def parallelogram(integrator, v, gravity=0.0):
    """Such cranks, flat."""
    system = bb.System(cranks(gravity), [PIN], dt=DT, integrator=integrator)
    system.set_state(np.zeros(3), np.array(v))
    return system


@pytest.mark.parametrize("integrator", FIXED + CONTROLLED)
@pytest.mark.parametrize("rates", [(3.0, -3.0, 3.0), (1.0, -3.0, -3.0)])
def test_a_flat_parallelogram_goes_on_the_way_that_its_rates_are_along(integrator, rates):
    """Nothing acts, so that energy stays, but for what the order of a method leaves of it."""
    system = parallelogram(integrator, rates)
    start, way = system.evaluate().kinetic, system.v
    with warnings.catch_warnings():
        warnings.simplefilter("error", BulletBridgeWarning)
        system.step()
        turned = system.v @ way / (np.linalg.norm(system.v) * np.linalg.norm(way))
        system.rollout(20)
    assert turned > 1.0 - 1e-3
    # Euler's method and verlet's are off by a turn of 3 mrad a step, its first power or second
    off = {"semi_implicit_euler": 3 * DT, "verlet": (3 * DT) ** 2}.get(integrator, 1e-7)
    assert system.evaluate().kinetic == pytest.approx(start, rel=10 * off)
    assert system.status.lost == 0.0


@pytest.mark.parametrize("share", [0.1, 0.33, 0.9])
def test_a_limit_holds_within_the_step_that_begins_where_ways_part(share):
    """At the flat position its impulse acts along rates of which closing leaves one way alone."""
    flat, upper = cranks(), share * 3.0 * DT
    joints = dict(flat.joints) | {"j3": replace(flat.joints["j3"], upper=upper)}
    system = bb.System(replace(flat, joints=joints), [PIN], dt=DT, limits="always")
    system.set_state(np.zeros(3), np.array([3.0, -3.0, 3.0]))
    for _ in range(3):
        system.step()
        # it comes to rest there; a part of the step may bend by the square of what it turns by
        assert system.q[2] == pytest.approx(upper, abs=3.0 * (3.0 * DT) ** 2)
        assert system.evaluate().largest("metres") < 1e-12
    assert np.abs(system.v).max() < 1e-9


@pytest.mark.parametrize("turned", [1e-7, 3e-7, 1e-6])
def test_next_to_a_flat_position_forces_drive_bounded_steps_along_the_way_alone(turned):
    """All translate as one: 5/3 kg m² ẇ = -2 kg g 1 m, wherever the coupler has its centre.

    Where that is not in the middle, weights push across the way too, which a row resists that is
    ``turned`` of the others, more than rounding by nine digits.
    """
    g, dt, rate = 9.81, 1 / 60, 0.02
    system = bb.System(cranks(g, 0.4), [PIN], dt=dt)
    system.motors.set_friction("j1", 1e-9)  # so that steps have rows of inequalities
    way = np.array([1.0, -1.0, 1.0])
    system.set_state(turned * way, rate * way)
    system.step()
    # the cosine of what it turns by, 3 mrad, is what the torque changes by within the step
    assert system.v == pytest.approx((rate - 1.2 * g * dt) * way, rel=(g * dt**2) ** 2, abs=1e-9)


@pytest.mark.parametrize("integrator", FIXED)
def test_rates_with_which_no_motion_goes_on_are_told_to_be_lost(integrator):
    """They satisfy the rows of the flat position, and are along neither way: w + 2 u = r alone."""
    w, u = 1.0, -1.0
    system = parallelogram(integrator, (w, u - w, w + 2 * u))
    assert system.evaluate().largest("rate_metres") < 1e-14
    start = system.evaluate().kinetic
    with pytest.warns(BulletBridgeWarning, match=r"lost at a singular position of 'pin'") as told:
        system.step()
        system.rollout(20)
    assert len(told) == 1
    end = system.evaluate()
    assert end.largest("metres") < 1e-12
    # besides, the tolerance of what is judged: a hundredth of the energy in each of few steps
    assert system.status.lost == pytest.approx(start - end.kinetic, abs=0.03 * start)
    assert system.status.lost > 0.03 * start


@pytest.mark.parametrize("integrator", CONTROLLED)
def test_error_control_loses_no_rates_without_a_word(integrator):
    """Where it cannot go on, the error names the loop; where it does, it says what it has lost."""
    system = parallelogram(integrator, (1.0, -2.0, -1.0))
    start = system.evaluate().kinetic
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", BulletBridgeWarning)
        try:
            system.step()
        except StepError as error:
            assert "'pin'" in str(error)
            return
    lost = start - system.evaluate().kinetic
    assert lost < 0.02 * start or len(told) == 1


@pytest.mark.parametrize(("number", "integrator"), [(405, "radau"), (891, "dop853")])
def test_error_control_does_not_give_up_a_chain_at_its_reach(number, integrator):
    """It has nowhere to go, but for what its gap hides; error control resolved that, in vain."""
    case = make_case(number)
    system = case.system(integrator)
    system.rollout(4)
    judge = Judge(case.parts.mechanism, case.parts.constraints)
    state = system.q[None], system.v[None], np.array([system.t])
    assert max(np.abs(g).max() for g in judge.gaps(*state)) < 1e-11
    conserved = Conserved(judge, True, case.parts.tau)
    drift = Drift(conserved)
    drift.look(case.parts.q[None], case.parts.v[None], np.zeros(1))
    drift.look(*state)
    assert drift.off[0] < drift.floors[0]


def test_a_whip_keeps_its_energy_while_its_rates_grow():
    """A loop of fourteen rates, of which one turns by 1.5 rad in a step: that lost 16 % of it.

    What rates lose that grow, in steps of a quarter of a radian and more, is held to 3 % of it.
    """
    system = make_case(600002).system("rk4")
    for _ in range(236):
        before, rates = system.evaluate(), np.abs(system.v).max()
        system.step()
        after = system.evaluate()
        if np.abs(system.v).max() > 3.0 * rates:
            had = before.energy - after.potential
            assert after.kinetic > 0.97 * had - 1e-6
