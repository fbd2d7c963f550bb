"""Linearised equations of flexible arms: what each keeps of the exact ones."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from support.beam_trees import LONG, SHORT, PlanarLink, planar_arm

import bulletbridge as bb
from bulletbridge.errors import ModelError, UnsupportedError
from bulletbridge.formulations.classics.flexible_arms import SYSTEMS
from bulletbridge.formulations.classics.flexible_trees import tree_of
from bulletbridge.models.flexible.linearised import LEVELS, ORDERS, linearised, tip_slopes


def arm():
    """Two links under gravity with loads at their tips."""
    return planar_arm([PlanarLink(LONG, 0.3), PlanarLink(SHORT, 0.5)], (0.0, -9.81, 0.0))


def bent(size, change):
    """A state whose deflections, and their rates, have a size; directions of links stay."""
    flexible = np.array([0, 1, 1, 0, 1, 1], bool)
    q = np.array([0.3, 0.02, 0.01, -0.7, 0.01, -0.02])
    v = np.array([1.0, 0.2, -0.4, -1.5, 0.3, 0.1])
    scaled = np.where(flexible, size, 1.0)
    return change @ (scaled * q), change @ (scaled * v)


@pytest.mark.parametrize("order", ORDERS)
def test_what_is_left_out_is_of_the_order_that_the_name_says(order):
    system = bb.System(arm())
    kept = linearised(order)(system.dynamics)
    change = np.eye(6) - tip_slopes(system.mechanism)
    flexible = np.array([0, 1, 1, 0, 1, 1], bool)

    def missing(size):
        q, v = bent(size, change)
        exact, (M, h) = system._active.full.terms(q, v, 0.0), kept.terms(q, v)
        return change.T @ (M - exact.M) @ change, change.T @ (h - exact.h)

    large, small = missing(1e-2), missing(5e-3)

    def falls(k, block):
        return np.abs(large[k][block]).max() / np.abs(small[k][block]).max()

    rigid = np.ix_(~flexible, ~flexible)
    first = order == "ruthless"
    assert_allclose(falls(0, rigid), 2 if first else 4, rtol=0.1)
    lost = order in ("inconsistent", "ruthless")
    assert_allclose(falls(0, np.ix_(flexible, ~flexible)), 2 if lost else 4, rtol=0.1)
    crossed = 4 if order in ("first_order", "symmetrised") else 2
    assert_allclose(falls(0, np.ix_(~flexible, flexible)), crossed, rtol=0.1)
    assert_allclose(falls(1, flexible), 2 if lost else 4, rtol=0.1)
    M = kept.terms(*bent(1.0, change))[0]
    symmetric = order in ("first_order", "symmetrised", "ruthless")
    assert np.allclose(M, M.T, atol=1e-12) == symmetric


@pytest.mark.parametrize(("order", "factor"), [("consistent", 1.0), ("inconsistent", 0.0)])
def test_only_shortening_stiffens_a_rotating_beam(order, factor):
    """h of the modes at rate w: w² (∫ x S dm - ∫ sigma² dm) q, the first part by shortening."""
    system = bb.System(planar_arm([PlanarLink(LONG)]))
    q, w = np.array([0.4, 0.01, -0.003]), 7.0
    _, h = linearised(order)(system.dynamics).terms(q, np.array([w, 0.0, 0.0]))
    stations = LONG.stations(40)
    xS = np.einsum("n,n,nij->ij", stations["mass"], stations["x"], stations["S"])[:2, :2]
    expected = w**2 * (factor * xS - LONG.mass * np.eye(2)) @ q[1:]
    assert_allclose(h[1:], expected, atol=1e-12 * np.abs(expected).max())


def swung(formulation, pull):
    """Configuration 0.2 s after a pull [m/s²] along a line on which the tip slides."""
    line = bb.LoopJoint(
        "line",
        bb.JointModel.POINT_ON_PLANE,
        bb.Frame("world", (0.0, 0.2, 0.0)),
        bb.Frame("tip1"),
        axis=(0, 1, 0),
    )
    mechanism = planar_arm([PlanarLink(LONG), PlanarLink(SHORT)], (pull, 0.0, 0.0))
    system = bb.System(mechanism, [line], dt=2e-3, integrator="rk4", formulation=formulation)
    system.assemble(q={"j0": 0.5, "b0": [0, 0], "b1": [0, 0]}, v={})
    for _ in range(100):
        system.step()
    assert system.evaluate().largest("metres") < 1e-12
    return system.q


@pytest.mark.parametrize("order", ["consistent", "first_order"])
def test_motion_by_linearised_equations_is_off_by_second_order(order):
    """From rest all deflections and rates are proportional to the pull; the loop stays closed."""
    errors = [
        np.abs(swung(linearised(order), pull) - swung("projector", pull)).max()
        for pull in (0.5, 0.25)
    ]
    assert 3.5 < errors[0] / errors[1] < 4.5


def test_an_unknown_order_is_refused():
    with pytest.raises(ModelError, match="consistent"):
        linearised("quadratic")
    with pytest.raises(ModelError, match="1, 2 or 3"):
        linearised("consistent", 4)


def held_arm():
    """Two links whose tip is held on a line, and the change to rates without slopes."""
    line = bb.LoopJoint(
        "line",
        bb.JointModel.POINT_ON_PLANE,
        bb.Frame("world", (0.0, 0.2, 0.0), (0.0, 0.0, 0.3)),
        bb.Frame("tip1"),
        axis=(0, 1, 0),
    )
    system = bb.System(arm(), [line])
    system.assemble({"j0": 0.5, "b0": [0, 0], "b1": [0, 0]}, {})
    return system.dynamics, np.eye(6) - tip_slopes(system.mechanism)


@pytest.mark.parametrize("level", LEVELS)
def test_rows_of_a_level_are_derivatives_except_of_the_mixed_one(level):
    """Their drift is that of their own Jacobian in each case: differences of order four."""
    dynamics, change = held_arm()
    kept, flexible = linearised("consistent", level)(dynamics), np.array([0, 1, 1, 0, 1, 1], bool)
    q, v = bent(1.0, change)

    def slope(value, step=1e-3):
        return sum(
            w * value(q + n * step * v) / (12 * step)
            for n, w in ((-2, 1), (-1, -8), (1, 8), (2, -1))
        )

    J, drift = kept.rows(q, v, dynamics.solver.terms(q, v, 0.0))
    if level != 2:
        assert_allclose(slope(lambda at: kept.gap(at, v, 0.0)), J @ v, atol=1e-10)
    own = slope(lambda at: kept.rows(at, v, dynamics.solver.terms(at, v, 0.0))[0] @ v)
    assert_allclose(own, drift, atol=1e-9)
    exact = (dynamics.solver.terms(q, v, 0.0).J @ change)[0]
    first = linearised("consistent", 1)(dynamics).rows(q, v, dynamics.solver.terms(q, v, 0.0))[0]
    first = (first @ change)[0]
    same_as = {1: (first, first), 2: (first, exact), 3: (exact, exact)}[level]
    assert np.abs(exact - first)[flexible].max() > 1e-2
    assert_allclose((J @ change)[0, ~flexible], same_as[0][~flexible], atol=1e-13)
    assert_allclose((J @ change)[0, flexible], same_as[1][flexible], atol=1e-13)


def test_levels_below_the_highest_are_for_held_points():
    weld = bb.LoopJoint(
        "weld", bb.JointModel.WELD, bb.Frame("world", (1.5, 0.0, 0.0)), bb.Frame("tip1")
    )
    system = bb.System(arm(), [weld], allow_structure=True)
    with pytest.raises(UnsupportedError, match="points"):
        linearised("consistent", 1)(system.dynamics)


def test_a_module_is_linearised_as_when_it_is_alone():
    """One link, hinged to the ground by a loop: the same equations in more coordinates."""
    found = []
    q, v = np.array([0.4, 0.03, -0.01]), np.array([1.5, -0.3, 0.2])
    for apart in ((), (1,)):
        tree = tree_of(SYSTEMS["1"], modules=apart)
        system = bb.System(tree.mechanism, tree.constraints, forces=tree.forces)
        free = np.zeros(2 * len(apart))
        place, rates = np.append(free, q), np.append(free, v)
        solution = linearised("consistent")(system.dynamics)(place, rates, 1.0)
        found.append(solution.vdot[len(free) :])
    assert_allclose(found[0], found[1], rtol=1e-11)


@pytest.mark.parametrize("apart", [(3, 4), (1, 2, 3, 4), (2, 4)])
def test_motors_act_alike_on_one_tree_and_on_modules(apart):
    """Angular accelerations of the links' roots when all is straight and at rest."""
    found = []
    for modules in ((), apart):
        tree = tree_of(SYSTEMS["5c"], modules=modules)
        system = bb.System(tree.mechanism, tree.constraints, forces=tree.forces)
        system.assemble(tree.start)
        system._active.solver.state[-1] = 3.0
        vdot, seen = system.acceleration(), system.kinematics()
        found.append([(seen.point(ends.root).J_angular @ vdot)[2] for ends in tree.ends])
    assert_allclose(found[0], found[1], rtol=1e-9)
