"""Steps whose energy no force can have made: tried in parts, then refused, never shown."""

import re
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from support.closed_mechanisms import closed_system
from support.contact_planes import ContactPlanes
from support.planar import assembled, four_bar, planar_chain
from test_islands import both
from test_links import row

import bulletbridge as bb
from bulletbridge.engine import stepper
from bulletbridge.engine.islands import IslandStepper
from bulletbridge.engine.plausible import COARSE
from bulletbridge.engine.records import DONE, LEAPT, ONE_OVER_UNITS, OVERRUN
from bulletbridge.engine.sparse_plan import SparseStepper
from bulletbridge.engine.stepper import TOO_LONG, Solver
from bulletbridge.errors import BulletBridgeWarning, StepError
from bulletbridge.inequalities.stepper import MOST_HALVINGS, InequalityStepper
from bulletbridge.mechanism.records import PRISMATIC, REVOLUTE, SPHERICAL

FIXED = ["semi_implicit_euler", "verlet", "rk4", "dop853"]
STIFF = 1e6
"""Damping [N m s/rad] of what is less than 1 kg m²: explicit steps of even dt / 512, 8e-6 s, turn
it around eight times as fast, and a damper only takes energy."""


def damped(mechanism):
    """The mechanism with such a damper in its first joint."""
    axes = mechanism.axes.copy()
    axes["damping"][0] = STIFF
    return replace(mechanism, axes=axes)


def refused(system, joint):
    """What is said of a step that gains energy by a damper; the state is the one before."""
    q, v, t = system.q, system.v, system.t
    with pytest.raises(StepError) as told:
        system.step()
    assert_array_equal(system.q, q)
    assert_array_equal(system.v, v)
    assert system.t == t
    numbers = r"leaps from (\S+) to (\S+) rad/s and the kinetic energy from (\S+) to (\S+) J"
    found = re.search(rf"'({joint})' {numbers}.*added (\S+) J.*down to dt / 512", str(told.value))
    assert found, told.value
    before, after, slow, fast, given = map(float, found.groups()[1:])
    assert abs(after) > abs(before) and fast > slow + given
    return slow


@pytest.mark.parametrize("integrator", ["verlet", "rk4"])
def test_steps_that_a_damper_throws_apart_are_done_by_euler(integrator):
    """RK4's stages get so far that the loop cannot be closed after them."""
    loop = four_bar().constraints
    chain = damped(planar_chain([0.4, 0.9, 0.7], [0.8, 1.8, 1.4]))
    with pytest.warns(BulletBridgeWarning, match=f"{integrator} grows without bounds"):
        system = assembled(bb.System(chain, loop, integrator=integrator))
        system.assemble({"j0": 1.0}, {"j0": 2.0}, {"j1": -1.0, "j2": -1.5})
    system.step()
    assert system.status.guarded
    assert abs(system.v[0]) < 1e-4  # of 2 rad/s; the damper's time is 1e-4 of a step and less
    assert system.evaluate().largest("metres") <= 1e-12


def test_who_gave_no_integrator_is_not_told_to_leave_it_out():
    loop = four_bar().constraints
    chain = damped(planar_chain([0.4, 0.9, 0.7], [0.8, 1.8, 1.4]))
    with pytest.warns(BulletBridgeWarning, match="smaller steps, or the default formulation"):
        assembled(bb.System(chain, loop, formulation="multipliers"))
    system = assembled(bb.System(chain, loop))  # as the warning says
    assert system.integrator == "semi_implicit_euler"


@pytest.mark.parametrize("integrator", ["heun", "nystrom4"])
def test_a_damper_that_gains_energy_is_an_error_that_names_the_joint(integrator):
    loop = four_bar().constraints
    chain = damped(planar_chain([0.4, 0.9, 0.7], [0.8, 1.8, 1.4]))
    with pytest.warns(BulletBridgeWarning, match=f"{integrator} grows without bounds"):
        system = assembled(bb.System(chain, loop, integrator=integrator, rtol=None))
        system.set_state(v=assembled(four_bar()).v)
        system.assemble({"j0": 1.0}, {"j0": 2.0}, {"j1": -1.0, "j2": -1.5})
    kinetic = system.evaluate().kinetic
    assert refused(system, "j[012]") == pytest.approx(kinetic, rel=0.01)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"integrator": "radau", "rtol": None},
        {"limits": "always"},
    ],
)
def test_steps_that_take_it_at_their_end_follow_the_same_damper(options):
    chain = damped(planar_chain([1.0], [1.0]))
    system = bb.System(chain, **options)
    system.assemble({"j0": 0.0}, {"j0": 1.0})
    system.step()
    assert abs(system.v[0]) < 1e-2  # of 1 rad/s; the damper's time is 1e-4 of a step


def whole(integrator):
    """A four-bar, its factors, and what makes masses a millionth in them."""
    system = assembled(four_bar(integrator=integrator))
    return system, system._active.solver.factors[0], 1e-3


def in_islands(integrator):
    """Four-bars and chains with nothing between them, and the factors of the first island."""
    system, _ = both(integrator=integrator)
    assert isinstance(system._active.solver.stepper, IslandStepper)
    return system, system._active.solver.islands.separate.solvers[0].factors[0], 1e-3


def in_links(integrator):
    """Four-bars in a row and their factors in link coordinates."""
    system = bb.System(*row(3), integrator=integrator, solver="sparse")
    system.assemble({"rod0": 1.0}, {"rod0": 1.0})
    assert isinstance(system._active.solver.stepper, SparseStepper)
    return system, system._active.solver.stepper.arrays.factors[0], 1e6


@pytest.mark.parametrize(
    ("made", "integrator"),
    [(whole, "semi_implicit_euler"), (whole, "verlet"), (in_islands, "verlet"),
     (in_links, "semi_implicit_euler")],
)  # fmt: skip
def test_factors_that_are_spoilt_are_made_again(made, integrator):
    """As if masses were a millionth of what they are: velocities would be far off."""
    (system, factors, spoilt), (twin, *_) = (made(integrator) for _ in range(2))
    for each in (system, twin):
        each.rollout(20)
    factors *= spoilt
    for each in (system, twin):
        each.step()
    # parts of a step differ from the whole by its own error: (w dt)² / 2 of the rates at w < 10/s
    off = 0.5 * (10 * system.dt) ** 2 * np.abs(twin.v).max()
    assert np.abs(system.v - twin.v).max() < off + 1e-6
    assert system.evaluate().largest("kept_metres") < 1e-12


@pytest.mark.parametrize("faster", [1.5, 1e6])
def test_a_state_that_was_not_led_to_is_told(faster):
    """Forces that are held against it are those at both ends: a torque explains what it can do."""
    system = assembled(four_bar())
    system.rollout(20)
    before, solver = system._active.solver.state.copy(), system._active.solver
    assert solver.judge(before, solver.forces(0)) == DONE
    solver.v[:] *= faster
    assert solver.judge(before, solver.forces(0)) == LEAPT
    gained = (faster**2 - 1) * system.evaluate(v=before[3:6]).kinetic
    pushed = np.zeros((1, 3))
    # twice what it takes along the mean of the rates, so that inertias may have changed meanwhile
    pushed[0, 0] = 2 * gained / (system.dt * 0.5 * (1 + faster) * before[3])
    assert solver.judge(before, pushed) == DONE


def test_steps_that_turn_far_are_done_by_a_method_that_keeps_energy(monkeypatch):
    """Euler's parts gain too much at 75 rad a step, even 512 of them; Verlet's do not.

    Nothing acts, so the energy stays. What parts of 75 / 512 = 0.15 rad are off by goes with the
    square of that, 0.02.
    """

    def whirling():
        chain = replace(planar_chain([0.4, 0.9, 0.7], [0.8, 1.8, 1.4]), gravity=np.zeros(3))
        system = bb.System(chain, integrator="semi_implicit_euler")
        system.set_state([1.0, 0.5, -0.8], [6e3, -14e3, 18e3])
        return system

    system = whirling()
    before = system.evaluate().kinetic
    system.step()
    assert system.evaluate().kinetic == pytest.approx(before, rel=0.1)
    monkeypatch.setattr(stepper, "OTHERS", ())
    monkeypatch.setattr(stepper, "CONTROLLED", ())
    with pytest.raises(StepError, match="leaps from"):
        whirling().step()


KINDS = [REVOLUTE, PRISMATIC, SPHERICAL, REVOLUTE, REVOLUTE, SPHERICAL]


@pytest.mark.parametrize("integrator", FIXED)
def test_steps_that_are_resolved_are_not_divided(integrator, monkeypatch):
    """A thousand steps of twenty random mechanisms with a loop, all of which are judged."""
    divided = []
    monkeypatch.setattr(Solver, "_refine", lambda self, failure: divided.append(failure) or failure)
    judged = 0
    for seed in range(20):
        case = seed, seed % 2 == 0, KINDS, ["ball", "point_on_plane"][seed % 2], False
        system = closed_system(case, integrator=integrator, rtol=None)
        system.dt = 2.5e-4
        solver = system._active.solver
        for _ in range(50):
            before, pushed = solver.state.copy(), solver.forces(0).copy()
            way = system.dt * np.linalg.norm(
                solver.vectors[ONE_OVER_UNITS, : len(solver.v)] * system.v
            )
            if way > COARSE:
                break
            system.step()
            judged += 1
            assert solver.judge(before, pushed) == DONE
    assert judged > 500
    assert not divided


@pytest.mark.parametrize("failure", [one for one in TOO_LONG if one != OVERRUN])
def test_steps_with_limits_are_halved_whatever_is_wrong(failure, monkeypatch):
    system = assembled(four_bar(limits="always"))
    system.step()
    tried = []

    def step(self):
        tried.append(float(self.solver.control[0]["dt"]))
        return failure

    monkeypatch.setattr(InequalityStepper, "_take_alone", step)
    before = system._active.solver.state.copy()
    assert system._inequalities.latest.advance(None) == failure
    assert_array_equal(system._active.solver.state, before)
    assert tried == [system.dt / 2**n for n in range(MOST_HALVINGS + 1)]


class Ceiling(ContactPlanes):
    """A plane over the end of the first of some links in the x-z plane.

    Args:
        height: Of the plane.
        q: Configuration (nq,) at the start.
    """

    def __init__(self, height, q):
        super().__init__([[0, 0, -1.0]], (0.0, 0.0), (1, 0, 0))
        self.height, self.q = height, q

    def state(self):
        return self.q, 0 * self.q

    def contact_points(self, q, v, dt):
        end = 0.5 * np.array([np.cos(q[0]), 0, -np.sin(q[0])])
        self.points["position"], self.points["gap"] = end, self.height - end[2]
        return self.points


@pytest.mark.parametrize(
    ("margin", "options", "named"),
    [
        (0.0, {"limits": "always"}, "the limit of joint 'j0'"),
        (0.01, {"limits": True}, "the limit of joint 'j0'"),
        (0.01, {"contacts": True}, "contacts"),
    ],
)
def test_a_drive_is_followed_to_the_end_of_what_limits_leave(margin, options, named):
    """Three links whose tip is led away while the first rests at its limit, or comes to it.

    With that one at rest, the others' rates follow from where they are, in closed form, and grow
    without bounds until they are straight: then no motion is left.
    """
    dt, speed, tilt, lengths = 1 / 960, 1.0, 0.6, (0.5, 0.4, 0.4)

    def reach(angle):
        """Of the tip where the others are straight, along the line on which it is led."""
        height = lengths[0] * np.sin(angle)
        return lengths[0] * np.cos(angle) + np.sqrt((lengths[1] + lengths[2]) ** 2 - height**2)

    away = reach(tilt) - 82.5 * dt * speed
    chain = replace(planar_chain(lengths, [1.0, 1.0, 1.0]), gravity=np.zeros(3))
    joints = chain.joints | {"j0": replace(chain.joints["j0"], lower=tilt - margin)}
    led = bb.Motion(x=bb.Polynomial((0.0, speed)))
    ends = bb.Frame("world", (away, 0, 0)), bb.Frame("l2", (lengths[2], 0, 0))
    loop = bb.LoopJoint("led", bb.JointModel.BALL, *ends, motion=led)
    start = np.array([tilt, -1.45, 0.9])
    if "contacts" in options:
        options = options | {"world": Ceiling(-lengths[0] * np.sin(tilt - margin), start)}
    system = bb.System(replace(chain, joints=joints), [loop], dt=dt, **options)
    system.assemble({"j0": tilt}, guess={"j1": -1.45, "j2": 0.9})
    system.rollout(60)
    turned = np.cumsum(system.q)[1:]
    along = -np.array(lengths[1:]) * [np.sin(turned), np.cos(turned)]
    others = np.linalg.solve(along @ [[1, 0], [1, 1]], [speed, 0.0])
    # the first joint turns by what its limit lets it go beyond in a step, to order 1 in dt
    assert np.abs(system.v - [0.0, *others]).max() < 0.03 * np.abs(others).max()
    before = system.q, system.v
    with pytest.raises(StepError, match=f"{named} stood in the way"):
        for _ in range(40):
            before = system.q, system.v
            system.step()
    assert_array_equal((system.q, system.v), before)
    # from where the first link is by now: it may be let on in the last step once more
    left = (reach(system.q[0]) - away) / speed - system.t
    assert 0 < left < 2 * dt


def test_a_drive_past_a_singular_position_is_followed_under_error_control():
    """Two equal links are led past their pivot so near that no equal parts are short enough.

    The step ends where they are nearest, at ``past``, and turn by 1/past, in closed form. The
    third link hangs on what moves evenly, so that nothing turns it.
    """
    dt, past, length = 1 / 240, 2e-7, 0.5
    chain = replace(planar_chain([length, length, 0.3], [1.0, 1.0, 0.5]), gravity=np.zeros(3))
    pivot, tip = bb.Frame("world", (0, 0, -past)), bb.Frame("l1", (length, 0, 0))
    led = bb.Motion(x=bb.Polynomial((-8 * dt, 1.0)))
    loop = bb.LoopJoint("led", bb.JointModel.BALL, pivot, tip, motion=led)
    system = bb.System(chain, [loop], integrator="verlet", dt=dt)
    system.assemble(guess={"j0": 0.2, "j1": 3.0, "j2": 0.3})
    turning = system.v.sum()
    system.rollout(7)
    slow = system.evaluate().kinetic
    system.step()
    assert system.evaluate().largest("metres") < 1e-12
    assert system.evaluate().kinetic > 1e6 * slow
    assert system.status.rejected > 0
    # rates follow from where the tip is, which is known to the 1e-12 m that are promised
    off = 1e-12 / past / past
    assert np.abs(system.v - [-1 / past, 0.0, 1 / past + turning]).max() < off
