"""Flexible links as chains: statics, frequencies, inertia, torsion."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.linalg import eigh
from scipy.optimize import root
from support.segmented_beams import AREA, BEAM, EI, LENGTH, RHO, arm, loaded, stiffness
from support.urdf_builder import inertial

import bulletbridge as bb
from bulletbridge.mechanism.segments import Beam, Lump, divide, rod
from bulletbridge.models.flexible.make_flexible import Flexibility, make_flexible
from bulletbridge.models.loops_file import read_loops


def tip(system, q) -> np.ndarray:
    """The end of the beam in the world (3,) [m]."""
    system.set_state(q, np.zeros(len(q)))
    return system.kinematics().point(bb.Frame("beam", (LENGTH, 0, 0))).p_W


@pytest.mark.parametrize("n", [1, 2, 4, 8])
@pytest.mark.parametrize("direction", ["z", "y"])
def test_a_tip_load_bends_it_by_the_formula(tmp_path, n, direction):
    """F L³ / (3 EI) (1 - 1 / (4 n²)): K q = Jᵀ F, exact for small deflections."""
    how = replace(BEAM, segments=n)
    if direction == "y":
        how = replace(how, EI_z=None, EI_y=EI)
    with loaded(tmp_path, how) as model:
        system = model.system
        point = bb.Frame("beam", (LENGTH, 0, 0))
        force = np.array([0, 1e-6, 0]) if direction == "z" else np.array([0, 0, 1e-6])
        J = system.kinematics().point(point).J
        moved = J @ np.linalg.solve(stiffness(system), J.T @ force)
    expected = force * LENGTH**3 / (3 * EI) * (1 - 1 / (4 * n**2))
    assert_allclose(moved, expected, atol=1e-12 * np.abs(expected).max())


def test_gravity_lets_it_sag_while_it_is_simulated(tmp_path):
    """rho g L⁴ / (8 EI) (1 - 1 / (2 n²)), the midpoint rule for the curvature of this load.

    The damped chain comes to rest where K q = -h; its slope is 0.01, its square what is neglected.
    """
    how = replace(BEAM, EI_z=None, EI_y=20.0 * EI, segments=4, damping=0.5)
    with loaded(tmp_path, how, (0, 0, -9.81), dt=1 / 240) as model:
        system = model.system
        system.rollout(2400)
        assert np.abs(system.v).max() <= 1e-9
        sag = tip(system, system.q.copy())[2]

        def balance(q):
            terms = system._active.full.terms(q, np.zeros(4), 0.0)
            return terms.h - terms.forces

        assert_allclose(system.q, root(balance, np.zeros(4), tol=1e-14).x, atol=1e-9)
    assert_allclose(-sag, RHO * 9.81 * LENGTH**4 / (8 * 20 * EI) * (1 - 1 / (2 * 4**2)), rtol=2e-4)


def test_frequencies_converge_with_the_square_of_the_number(tmp_path):
    """To 3.516 sqrt(EI / (rho L⁴)), less what the inertia of the sections takes."""
    exact = 1.8751040687119611**2 * np.sqrt(EI / RHO) / LENGTH**2
    numbers = np.array([4, 6, 8, 10, 20])
    errors = []
    for n in numbers:
        across = inertial(RHO, (1e-9, RHO / 12, RHO / 12), (0.5, 0, 0))
        folder = tmp_path / str(n)
        folder.mkdir()
        path = arm(folder, across)
        with loaded(folder, replace(BEAM, segments=int(n)), path=path) as model:
            M = model.system._active.full.terms(model.system.q, model.system.v, 0.0).M
            errors.append(np.sqrt(eigh(stiffness(model.system), M)[0][0]) / exact - 1)
    scaled = np.array(errors) * numbers**2
    assert np.abs(errors[-1]) < 2e-3
    assert_allclose(scaled[1:], scaled[-1], rtol=0.1)


def test_torsion_turns_the_tip(tmp_path):
    """T L / GJ at any n, and (pi / 2 L) sqrt(GJ / (rho r²)) for the first mode."""
    how = replace(BEAM, EI_z=None, GJ=2.0, segments=10)
    with loaded(tmp_path, how) as model:
        system = model.system
        flexibility = np.linalg.inv(stiffness(system)).sum()
        M = system._active.full.terms(system.q, system.v, 0.0).M
        first = np.sqrt(eigh(stiffness(system), M)[0][0])
    assert_allclose(flexibility, LENGTH / 2.0, rtol=1e-13)
    assert_allclose(first, np.pi / 2 * np.sqrt(2.0 / (RHO * 2 * AREA)), rtol=3e-3)


def test_dampers_take_the_first_mode_to_the_part_asked_for(tmp_path):
    """C = beta K with beta = 2 ratio / w, w of the continuous beam."""
    how = replace(BEAM, segments=20, damping=0.03)
    with loaded(tmp_path, how) as model:
        axes = model.system.mechanism.axes
        M = model.system._active.full.terms(model.system.q, model.system.v, 0.0).M
        w2, modes = eigh(stiffness(model.system), M)
        x = modes[:, 0]
        assert_allclose(x @ (axes["damping"] * x) / (2 * np.sqrt(w2[0])), 0.03, rtol=2e-3)


def random_body(rng) -> Lump:
    """An asymmetric body between 0 and 1 m."""
    points = rng.uniform([0, -0.1, -0.1], [1, 0.1, 0.1], (40, 3))
    weights = rng.uniform(0.01, 0.1, 40)
    com = weights @ points / weights.sum()
    away = points - com
    return Lump(float(weights.sum()), com, (weights[:, None] * away).T @ away)


def test_pieces_have_the_mass_centre_and_inertia_of_the_whole(rng):
    for n in (1, 3, 8):
        whole = random_body(rng)
        pieces = divide(whole, Beam(1.0, n, EI_z=1.0).bounds)
        mass = sum(piece.mass for piece in pieces)
        com = sum(piece.mass * piece.com for piece in pieces) / mass
        J = np.zeros((3, 3))
        for piece in pieces:
            d = piece.com - com
            J += piece.J + piece.mass * (d @ d * np.eye(3) - np.outer(d, d))
            assert np.linalg.eigvalsh(piece.second)[0] > -1e-15
        assert_allclose(mass, whole.mass, rtol=1e-14)
        assert_allclose(com, whole.com, atol=1e-14)
        assert_allclose(J, whole.J, atol=1e-14)
    even = divide(rod(2.0, 0.3), Beam(2.0, 4, EI_z=1.0).bounds)
    assert_allclose([p.mass for p in even], 0.3 * 2.0 / 4 * np.array([0.5, 1, 1, 1, 0.5]))


def test_a_chain_in_bullet_weighs_what_the_link_did(tmp_path, rng):
    """Masses, momentum of a rigid turn and hence inertia; loops on the link stay where they are."""
    whole = random_body(rng)
    J = whole.J
    text = inertial(
        whole.mass,
        [float(x) for x in np.diag(J)],
        whole.com,
        products=[float(J[0, 1]), float(J[0, 2]), float(J[1, 2])],
    )
    path = arm(tmp_path, text, "continuous")
    how = replace(BEAM, EI_y=EI, GJ=1.0, segments=3)
    rigid = tmp_path / "arm.loops.yaml"
    rigid.write_text("bulletbridge: 1\nurdf: arm.urdf\nfixed_base: true\nloops: []\n")
    made = make_flexible(path, how, tmp_path / "arm_flexible.urdf")
    with bb.load(rigid) as before, bb.load(made.loops) as after:
        one, many = before.system, after.system
        one.set_state([0.4], [1.0])
        turn = np.zeros(len(many.q))
        place = many.mechanism.joint("shoulder").v.start
        turn[place] = 1.0
        many.set_state(0.4 * turn, turn)
        assert_allclose(many.evaluate().momentum, one.evaluate().momentum, atol=1e-9)
        assert_allclose(many.evaluate().kinetic, one.evaluate().kinetic, rtol=1e-9)
        point = bb.Frame("beam", (0.7, 0.1, 0.2), (0.3, 0.2, 0.1))
        a, b = (system.kinematics().point(point) for system in (one, many))
        assert_allclose(a.p_W, b.p_W, atol=1e-14)
        assert_allclose(a.R_W, b.R_W, atol=1e-14)


def test_a_chain_on_a_loop_bends_and_stays_closed(tmp_path):
    """A doubly held beam under gravity, at a step 20 times too long for explicit springs."""
    path = arm(tmp_path, carrier="continuous")
    (tmp_path / "arm.loops.yaml").write_text(
        "bulletbridge: 1\nurdf: arm.urdf\nfixed_base: true\ngravity: [0, -9.81, 0]\nloops:\n"
        "  - {name: rod, type: distance, a: {link: world, xyz: [1, 0.5, 0]},"
        " b: {link: beam, xyz: [1, 0, 0]}, length: 0.5}\n"
    )
    made = make_flexible(path, replace(BEAM, segments=8, damping=0.02), tmp_path / "bent.urdf")
    spec = read_loops(made.loops)
    assert (
        len(spec.forces) == 8
        and spec.constraints == read_loops(tmp_path / "arm.loops.yaml").constraints
    )
    with bb.load(spec, dt=1 / 240) as model:
        worst = 0.0
        for _ in range(240):
            model.system.step(write=False)
            worst = max(worst, model.system.evaluate().largest("metres"))
        assert worst <= 1e-12
        assert np.abs(model.system.q).max() < 0.5


def test_a_driven_link_follows_the_modal_model(monkeypatch):
    """System 1 of the modular paper to 4 s, two modes: 1.2e-3 deg by 8 segments, their limit."""
    monkeypatch.setattr(sys, "path", [str(Path(__file__).parents[1] / "benchmarks"), *sys.path])
    line = __import__("segments").run(8, "rk4", 2.5e-4, duration=4.0)
    assert line.angle_deg < 1.2e-3
    assert line.tip_m < 1e-5
    assert line.largest_deflection_m == pytest.approx(0.002192, rel=0.01)


def test_a_bundled_robot_bends_without_opening(tmp_path, monkeypatch):
    """Its files are left alone: the new ones go where one works."""
    monkeypatch.chdir(tmp_path)
    made = make_flexible("four_bar", Flexibility("coupler", 4, EI_z=20.0))
    assert sorted(p.name for p in tmp_path.iterdir()) == [made.loops.name, made.urdf.name]
    with bb.load(made.loops, dt=1 / 240) as model:
        model.system.rollout(240)
        assert model.system.evaluate().largest("kept_metres") <= 1e-12


def test_only_springs_that_are_too_stiff_are_taken_implicitly(tmp_path):
    """The platform's springs follow their vibration in steps of 1/240 s; a chain's cannot."""
    with bb.load("stewart", dt=1 / 240) as model:
        assert not model.system._active.solver.control[0]["implicit"]
    how = replace(BEAM, segments=8)
    for dt, implicit in ((1 / 240, True), (1e-6, False)):
        with loaded(tmp_path, how, dt=dt) as model:
            assert bool(model.system._active.solver.control[0]["implicit"]) is implicit
