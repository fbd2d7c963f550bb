"""Steps that cannot be made: what is said of them, and that nothing changes."""

# how many sub-steps were tried is not for users
# pyright: reportPrivateUsage=false

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose
from support.planar import four_bar, planar_chain

import bulletbridge as bb
from bulletbridge.engine.records import INTERRUPTED, LEFT_OPEN, NOT_CLOSED
from bulletbridge.engine.stepper import OTHERS, REFINEMENTS, TOO_LONG, Solver
from bulletbridge.engine.substeps import MOST_ATTEMPTS
from bulletbridge.errors import (
    AssemblyError,
    ModelError,
    OverconstrainedError,
    StepError,
)


def test_a_loop_out_of_reach_is_named_and_nothing_changes():
    system = four_bar(ground=5.0)
    before = system.q
    with pytest.raises(AssemblyError, match=r"'loop' cannot close: gap 3 m"):
        system.assemble()
    assert_allclose(system.q, before, atol=0)


def test_a_rod_whose_ends_coincide_is_assembled():
    """It has no direction there, by which its row would pull."""
    ends = bb.Frame("world", (0.5, 0, 0)), bb.Frame("l0", (0.5, 0, 0))
    system = bb.System(planar_chain([1.0, 1.0], [1.0, 1.0]), [bb.Distance("rod", *ends, 0.3)])
    system.assemble()
    assert system.evaluate().largest("metres") < 1e-12


def test_a_structure_is_refused():
    closed = four_bar()
    closed.assemble({"j0": 1.0})
    point = bb.Frame("l1", (0.5, 0, 0))
    frame = bb.Frame("world", tuple(closed.kinematics().point(point).p_W))
    system = four_bar(extra=[bb.LoopJoint("second", bb.JointModel.BALL, point, frame)])
    system._active.full.q[:] = closed.q
    with pytest.raises(OverconstrainedError, match="'loop' 3 rows, 'second' 3 rows.*leave one"):
        system.assemble()


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_numbers_that_are_not_finite_are_refused(bad):
    system = four_bar()
    with pytest.raises(ModelError, match="finite"):
        system.assemble({"j0": bad})
    system.assemble({"j0": 1.0})
    with pytest.raises(ModelError, match="finite"):
        system.set_state(q=np.array([bad, 0, 0]))
    before = system.q
    system.tau[0] = bad
    with pytest.raises(StepError, match="not finite.*restored"):
        system.step()
    assert_allclose(system.q, before, atol=0)
    system.tau[0] = 0.0
    system.step()


def test_a_step_on_open_loops_says_what_to_do():
    with pytest.raises(AssemblyError, match=r"'loop'.*assemble\(\)"):
        four_bar().step()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dt": 0.0}, "dt is 0.0 s; give a positive step"),
        ({"dt": np.nan}, "dt is nan s"),
        (
            {"integrator": "leapfrog"},
            "unknown integrator 'leapfrog'; there are semi_implicit_euler, verlet, rk4",
        ),
        ({"correction": "both"}, "unknown correction 'both'; there are start, current"),
        ({"passes": -2}, "passes is -2; give zero or more"),
    ],
)
def test_options_that_mean_nothing_are_refused(options, message):
    with pytest.raises(ModelError, match=message):
        four_bar(**options)


def test_counts_that_mean_nothing_are_refused():
    system = four_bar()
    system.assemble({"j0": 1.0})
    for steps, every in ((0, 1), (5, 0)):
        with pytest.raises(ModelError, match="is 0; give a whole number from one on"):
            system.rollout(steps, every)


@pytest.mark.parametrize("failure", [*TOO_LONG, INTERRUPTED, "raise"])
def test_a_step_that_fails_in_its_parts_leaves_no_trace(failure, monkeypatch):
    """Whatever stops a part, the state before the whole step comes back."""
    system = four_bar()
    system.assemble()
    solver, calls = system._active.solver, []

    def run(task, steps=0, record=None):
        calls.append(steps)
        solver.q[:] += 0.1  # parts that went well before the one that failed
        solver.state[-1] += solver.control[0]["dt"]
        if failure == "raise":
            raise ZeroDivisionError
        return failure

    monkeypatch.setattr(solver, "run", run)
    before = solver.state.copy()
    if failure == "raise":
        with pytest.raises(ZeroDivisionError):
            solver._refine(NOT_CLOSED)
    else:
        assert solver._refine(failure) == failure
    # other methods, and the whole under error control
    others = [*(parts for _, parts in OTHERS), 1] if failure != LEFT_OPEN else []
    assert calls == [*REFINEMENTS, *others] if failure in TOO_LONG else calls == [REFINEMENTS[0]]
    assert not solver.control[0]["controlled"]
    assert_allclose(solver.state, before, rtol=0.0)
    assert system.dt == 1 / 240
    assert not solver.control[0]["factored"]


@pytest.mark.parametrize("integrator", ["dop853", "radau"])
def test_error_control_ends_where_rates_grow_without_bounds(integrator, monkeypatch):
    """The pin of a chain is driven out of its reach: rates are those of a square root at its zero.

    The error control says where it stands and is not begun again in parts of the step.
    """
    monkeypatch.setattr(Solver, "_refine", lambda _: pytest.fail("begun again"))
    system = driven_out_of_reach(integrator)
    with pytest.raises(
        StepError, match=r"no further than t = 0\.5\d* s, .* sub-steps of .*e-\d+ s"
    ):
        system.rollout(1000)
    c = system._active.solver.control[0]
    assert system.t <= c["t"] <= system.t + system.dt
    assert system.evaluate().largest("metres") < 1e-12


def driven_out_of_reach(integrator):
    """Two bars of 1 m whose end moves away at 1 m/s, from 1.5 m."""
    mechanism = planar_chain([1.0, 1.0], [1.0, 1.0])
    away = bb.Motion(x=bb.Polynomial((0.0, 1.0)))
    ends = bb.Frame("world", (1.5, 0, 0)), bb.Frame("l1", (1.0, 0, 0))
    pin = bb.LoopJoint("pin", bb.JointModel.BALL, *ends, motion=away)
    system = bb.System(mechanism, [pin], integrator=integrator, dt=1e-2)
    system.assemble(guess={"j0": 0.7, "j1": -1.4})
    return system


def test_a_step_takes_a_bounded_number_of_attempts():
    """Error control that no sub-step satisfies, and that is told so by the number of them."""
    system = driven_out_of_reach("dop853")
    system.step()
    system._active.solver.control[0]["rtol"] = system._active.solver.control[0]["atol"] = 1e-300
    with pytest.raises(StepError, match="came no further than"):
        system.step()
    c = system._active.solver.control[0]
    assert c["taken"] + c["rejected"] <= MOST_ATTEMPTS


def test_a_drive_past_the_reach_of_its_loop_is_told_after_few_sub_steps():
    """A crank that rods of 0.4 and 1 m hold back, led away from their pin, by an implicit method.

    Its tip is 1.4 m from the pin where they are stretched, at a time found by bisection. Rates go
    with one over the root of the time that is left, whose digits end at 1e-16 of a second: an error
    control of order 8 takes some five sub-steps a digit, and as many again in vain.
    """
    start, speed, pin = 1.0, 3.0, np.array([1.6, -0.9])
    early, late = 0.3, 0.6
    while late - early > 1e-15:
        t = 0.5 * (early + late)
        angle = start - speed * t
        reached = np.linalg.norm(pin - [np.cos(angle), -np.sin(angle)]) < 1.4
        early, late = (t, late) if reached else (early, t)
    ends = bb.Frame("l2", (1.0, 0, 0)), bb.Frame("world", (pin[0], 0, pin[1]))
    drive = bb.Motion(z=lambda t: (start - speed * t, -speed, 0.0))
    system = bb.System(
        planar_chain([1.0, 0.4, 1.0], [1.0, 0.4, 1.0]),
        [
            bb.LoopJoint("pin", bb.JointModel.BALL, *ends),
            bb.Coupling("drive", {"j0": 1.0}, motion=drive),
        ],
        integrator="radau",
    )
    system.assemble(guess={"j0": start, "j1": 0.28, "j2": -1.61})
    with pytest.raises(StepError, match=r"no further than t = ([\d.]+) s") as caught:
        system.rollout(200)
    told = re.search(r"no further than t = ([\d.]+) s", str(caught.value))
    assert told is not None
    assert float(told[1]) == pytest.approx(early, abs=1e-8)  # it is told to nine digits
    control = system._active.solver.control[0]
    assert control["taken"] + control["rejected"] < 500
