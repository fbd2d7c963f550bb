"""Which of several solutions of Coulomb's law is taken: contacts that rest stay at rest."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pybullet
import pytest
from support.contact_planes import ContactPlanes
from support.planar import planar_chain

import bulletbridge as bb
from bulletbridge.compilation.jit import kernel
from bulletbridge.drop_in.client import BulletClient
from bulletbridge.errors import StepError
from bulletbridge.inequalities.arrays import X
from bulletbridge.numerics.complementarity_rows import (
    LINES,
    ROW_BOUNDS,
    complementarity_problem,
    room_for,
)
from bulletbridge.numerics.solution_selection import (
    LINES_OF_SELECTION,
    Selection,
    slip_after_rest,
    solve_resting_problem,
)

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
DT = 1 / 240


def test_a_box_that_friction_holds_does_not_begin_to_slide(monkeypatch):
    """28 rows of rank 10: from some of their solutions of a step all contacts slide."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    sys.modules.pop("contact_cost", None)
    import contact_cost

    client = BulletClient(pybullet.DIRECT)
    try:
        box = contact_cost.holding(client)
        client.setBridgeMode("exact")
        for _ in range(contact_cost.GRIPPED):
            client.stepSimulation()
        way, gap = contact_cost.creep(client, box, 30.0, True)
    finally:
        client.disconnect()
    # 7200 steps that leave velocities of 1e-13 m/s each
    assert way < 7200 * 1e-13 * DT
    assert gap < 1e-12


@pytest.mark.parametrize(("aside", "falls"), [(-6.0, 0.0), (-1.0, 1.5), (0.0, 2.0)])
def test_rest_is_not_bought_by_squeezing(aside, falls):
    """A block rests on one wall; gravity turns. Both walls could squeeze it: nothing makes them."""
    mechanism = replace(planar_chain([], [], floating=1.0), gravity=np.array([-6.0, 0.0, -2.0]))
    slot = ContactPlanes(
        [(1, 0, 0), (-1, 0, 0)], (0.5, 0.5), (0, 0, 1)
    )  # no room between its walls
    system = bb.System(mechanism, world=slot, contacts=True, dt=DT)
    for _ in range(10):
        system.step()
    assert np.abs(system.v).max() < 1e-14
    system.gravity = (aside, 0.0, -2.0)
    for _ in range(10):
        system.step()
    assert system.v[5] == pytest.approx(-10 * DT * falls, abs=1e-13)


def resting():
    """A block that has come to rest on a plane by its weight, and that plane."""
    plane = ContactPlanes([(0, 0, 1)], (0.5, 0.5), (1, 0, 0))
    mechanism = replace(planar_chain([], [], floating=1.0), gravity=np.array([1.0, 0.0, -10.0]))
    system = bb.System(mechanism, world=plane, contacts=True, dt=DT)
    for _ in range(3):
        system.step()
    return system, plane


@kernel
def slip(bounds, x, w, warm, room):
    """``slip_after_rest`` of contacts that rested."""
    more = room.vectors[LINES:]
    p = complementarity_problem(room.A, more[0], bounds, x, w, room)
    return slip_after_rest(p, Selection(more[1], warm, more[2]), len(x))


def test_what_lifts_off_does_not_begin_to_slide():
    """A body turns about one edge: what rested on the other goes up, and may go aside meanwhile."""
    bounds = np.zeros(4, ROW_BOUNDS)
    for normal in (0, 2):
        bounds[normal] = (0.0, np.inf, -1, 1, 1, 0)
        bounds[normal + 1] = (0.0, 0.0, normal, 1, 1, 0.5)
    room, warm = room_for(4, LINES_OF_SELECTION), np.array([1.0, 0.1, 1.0, 0.1])
    w = np.array([0.0, 0.0, 0.2, 0.1])
    assert slip(bounds, np.array([2.0, 0.1, 0.0, 0.0]), w, warm, room) == 0.0
    w[2] = 0.0
    assert slip(bounds, np.array([1.5, 0.1, 0.5, -0.25]), w, warm, room) == 0.1


def test_a_search_that_starts_from_no_numbers_is_replaced():
    """The first attempt goes on from the last impulses; without a solution it is never the best."""
    system, _ = resting()
    system._inequalities.latest.impulses[X] = np.nan
    system.step()
    assert np.abs(system.v).max() < 1e-14
    assert system.contacts()[0].normal_force == pytest.approx(10.0, rel=1e-12)


def test_a_contact_that_is_not_a_number_undoes_the_step(monkeypatch):
    """No impulse solves it: the step fails instead of leaving the contact out."""
    system, plane = resting()
    before = np.concatenate([system.q, system.v])

    def broken(q, v, dt):
        points = ContactPlanes.contact_points(plane, q, v, dt).copy()
        points["gap"] = np.nan
        return points

    monkeypatch.setattr(plane, "contact_points", broken)
    with pytest.raises(StepError, match="not finite"):
        system.step()
    assert np.array_equal(before, np.concatenate([system.q, system.v]))
    monkeypatch.undo()
    system.step()
    assert np.abs(system.v).max() < 1e-14


def test_a_contact_whose_friction_feeds_its_normal_is_solved():
    """Sticking would pull, so it slides: by hand x_t = mu x_n, w_n = 0, and slip against friction.

    The convex relaxation ends far from there, and plain sweeps are thrown off the rim of the cone:
    a change of x_t by mu turns into one of x_n by mu D_nt / D_nn, ten times as much.
    """
    mu, coupling = 2.0, 1.2558103746047022
    D = np.array([[0.2638582477211357, coupling, 0], [coupling, 6.1069907503683, 0], [0, 0, 0]])
    b, x = np.array([-0.11768966653144244, -0.6896959800953908, 0.0]), np.zeros(3)
    bounds = np.zeros(3, ROW_BOUNDS)
    bounds["upper"], bounds["owner"] = (np.inf, 0.0, 0.0), (-1, 0, 0)
    bounds["first"], bounds["count"], bounds["mu"] = (0, 1, 0), (0, 2, 2), (0.0, mu, mu)
    assert np.linalg.solve(D[:2, :2], -b[:2])[0] < 0.0  # sticking
    normal = -b[0] / (D[0, 0] + mu * D[0, 1])
    assert D[1] @ (normal, mu * normal, 0.0) + b[1] < 0.0  # slip
    room = room_for(3, LINES_OF_SELECTION)
    tolerance = 1e-12 * np.abs(b).max()
    residual = solve_resting_problem(D.copy(), b.copy(), bounds, x, np.zeros(3), room, tolerance)
    assert residual <= tolerance
    # a residual of w moves x by that over the stiffness along the ray of sliding
    np.testing.assert_allclose(x, (normal, mu * normal, 0.0), rtol=1e-9, atol=1e-12)
