"""Linearised equations of flexible arms: what each keeps of the exact ones."""

import numpy as np
import pytest
from beam_trees import LONG, SHORT, PlanarLink, planar_arm
from numpy.testing import assert_allclose

import bulletbridge as bb
from bulletbridge.errors import ModelError
from bulletbridge.simulation.linearised import ORDERS, linearised, tip_slopes


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
        exact, (M, h) = system._full.terms(q, v, 0.0), kept.terms(q, v)
        return change.T @ (M - exact.M) @ change, change.T @ (h - exact.h)

    large, small = missing(1e-2), missing(5e-3)

    def falls(k, block):
        return np.abs(large[k][block]).max() / np.abs(small[k][block]).max()

    rigid = np.ix_(~flexible, ~flexible)
    first = order == "ruthless"
    assert_allclose(falls(0, rigid), 2 if first else 4, rtol=0.1)
    lost = order in ("inconsistent", "ruthless")
    assert_allclose(falls(0, np.ix_(flexible, ~flexible)), 2 if lost else 4, rtol=0.1)
    crossed = 4 if order == "first_order" else 2
    assert_allclose(falls(0, np.ix_(~flexible, flexible)), crossed, rtol=0.1)
    assert_allclose(falls(1, flexible), 2 if lost else 4, rtol=0.1)
    M = kept.terms(*bent(1.0, change))[0]
    assert np.allclose(M, M.T, atol=1e-12) == (order in ("first_order", "ruthless"))


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
