"""The compiled solver of inequalities against an established cone solver, in its place too."""

# what solves in the place of the compiled solver is set here
# pyright: reportPrivateUsage=false

import re
import sys

import numpy as np
import pytest
from support.complementarity import SOLVER, solve_by
from support.planar import PIN, assembled, four_bar
from support.solid_worlds import DT, G

import bulletbridge as bb
from bulletbridge.errors import BulletBridgeWarning, MissingExtraError, ModelError
from bulletbridge.numerics.complementarity import natural_residual
from bulletbridge.numerics.complementarity_rows import ROW_BOUNDS, room_for


def random_problem(rng, contacts, boxes, nv):
    """Contacts with elliptic friction, spinning resistance, and motors, of unit masses."""
    rows = 4 * contacts + boxes
    C = rng.normal(size=(rows, nv))
    bounds = np.zeros(rows, ROW_BOUNDS)
    for i in range(0, 4 * contacts, 4):
        bounds[i] = 0, np.inf, -1, 1, 1, 0
        bounds[i + 1] = 0, 0, i, 1, 2, rng.uniform(0.1, 0.8)
        bounds[i + 2] = 0, 0, i, 0, 2, rng.uniform(0.1, 0.8)
        bounds[i + 3] = 0, 0, i, 1, 1, 0.05
    bounds[4 * contacts :] = -0.3, 0.3, -1, 1, 1, 0
    return C @ C.T, C @ rng.normal(size=nv), bounds


@pytest.mark.parametrize(("contacts", "boxes"), [(0, 4), (1, 0), (1, 4), (2, 0), (3, 0), (3, 4)])
def test_the_compiled_solver_agrees_with_a_cone_solver(rng, contacts, boxes):
    pytest.importorskip("clarabel")
    from bulletbridge.numerics.cone_program import ReferenceSolver

    for _ in range(20):  # the cone solver leaves more than it should of some
        D, b, bounds = random_problem(rng, contacts, boxes, 30)
        found, left = ReferenceSolver()(D, b, bounds)
        if left < 1e-7:
            break
    n = len(b)
    x, w = np.zeros(n), np.zeros(n)
    residual, _ = solve_by(SOLVER, D, b, bounds, x, w, room_for(n), (1e-13, 0.0))
    assert residual < 1e-11
    assert left < 1e-7
    assert np.abs(x - found).max() < 1e-8


def test_a_step_by_the_cone_solver_is_the_compiled_one():
    pytest.importorskip("clarabel")
    runs = []
    for solver in ("compiled", "clarabel"):
        pull = bb.Distance("string", PIN, bb.Frame("l1", (0.5, 0, 0)), 0.3, max_force=3.0)
        system = assembled(four_bar(extra=[pull], impulse_solver=solver))
        system.motors.set("j0", force=2.0, velocity=3.0)
        system.motors.set_friction("j1", 0.5)
        for _ in range(20):
            system.step()
        runs.append(np.concatenate([system.q, system.v]))
        assert system.complementarity.residual < 1e-9
    assert np.abs(runs[0] - runs[1]).max() < 1e-8


def test_without_the_cone_solver_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "clarabel", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'bulletbridge\[conic\]'"):
        four_bar(impulse_solver="clarabel")
    with pytest.raises(ModelError, match="unknown impulse_solver 'exact'; there are compiled"):
        four_bar(impulse_solver="exact")


def test_what_the_cone_solver_raises_undoes_the_step(monkeypatch):
    pytest.importorskip("clarabel")
    system = assembled(four_bar(impulse_solver="clarabel"))
    system.motors.set("j0", force=2.0, velocity=3.0)
    system.step()
    before = system.q, system.v

    class Broken(Exception):
        pass

    def fail(*_):
        raise Broken

    monkeypatch.setattr(system._inequalities.latest, "_reference", fail)
    with pytest.raises(Broken):
        system.step()
    assert np.array_equal(before, (system.q, system.v))
    monkeypatch.undo()
    system.step()


def without_friction(D, b, bounds):
    """Impulses of a single contact without friction, and what they leave of Coulomb's law."""
    x = np.zeros(len(b))
    x[0] = max(0.0, -b[0] / D[0, 0])
    return x, float(natural_residual(np.array(D), np.array(b), bounds, x, np.zeros(len(b))))


@pytest.mark.parametrize("rolled", [False, True])
def test_a_law_that_is_not_met_is_told_once_with_the_bodies(solids, monkeypatch, rolled):
    """Friction would have taken mu g dt (1 + m r² / J) off the lowest point of a ball."""
    pytest.importorskip("clarabel")
    solids.ground()
    ball = solids.solid('<sphere radius="0.1"/>', [0, 0, 0.1], friction=0.3)
    system = solids.system(ball, impulse_solver="clarabel")
    monkeypatch.setattr(system._inequalities, "_reference", without_friction)
    system.set_state(v=[0, 0, 0, 0.5, 0, 0])
    with pytest.warns(BulletBridgeWarning) as told:
        system.rollout(20) if rolled else [system.step() for _ in range(20)]
    assert len(told) == 1  # of this pair no more
    law = r"the law of the contact of 'world' and '\w+', which is missed by ([\d.e-]+) m/s"
    missed = re.search(law, str(told[0].message))
    assert float(missed[1]) == pytest.approx(0.3 * G * DT * 2, rel=3e-3)
    assert system.v[3] == pytest.approx(0.5, abs=1e-9)
