"""Flexible beams against an assumed-mode model of their own, conservation laws and the thesis."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.spatial.transform import Rotation
from support.beam_trees import (
    LONG,
    SHORT,
    Oracle,
    PlanarLink,
    planar_arm,
    random_beam_state,
    random_beam_tree,
)

import bulletbridge as bb
from bulletbridge.constraints.encode import encode
from bulletbridge.constraints.user import Kinematics
from bulletbridge.engine.stepper import Solver
from bulletbridge.engine.workspace import Tolerances
from bulletbridge.errors import ModelError
from bulletbridge.formulations.system_dynamics import SystemDynamics
from bulletbridge.mechanism.beams import FlexibleBeam
from bulletbridge.mechanism.build import Load, empty_mechanism, with_beam, with_joint
from bulletbridge.mechanism.chain_to_beam import replace_chain
from bulletbridge.mechanism.kinematics import displace
from bulletbridge.mechanism.model import Link
from bulletbridge.system.evaluation import momentum, potential

EPS = np.finfo(float).eps
FD_STEP = EPS ** (1 / 4)  # of a stencil of order four whose rates are near 10/s
FD_RTOL = 1e-9  # a few hundred EPS / FD_STEP, of the sizes that are subtracted

trees = st.tuples(
    st.integers(0, 2**32 - 1),
    st.booleans(),
    st.lists(
        st.sampled_from(["beam", "beam", "revolute", "spherical", "prismatic"]),
        min_size=1,
        max_size=5,
    ),
)


def build(case):
    """Mechanism with a beam at its end, and a state, of a drawn case."""
    seed, floating, kinds = case
    rng = np.random.default_rng(seed)
    mechanism = random_beam_tree(rng, ["free"] * floating + kinds + ["beam"])
    return mechanism, *random_beam_state(rng, mechanism)


def slope(f):
    """Derivative of f at zero by the stencil of order four."""
    h = FD_STEP
    return (8 * (f(h) - f(-h)) - (f(2 * h) - f(-2 * h))) / (12 * h)


@given(trees)
def test_the_mass_matrix_of_beams_has_the_rate_of_its_motion(case):
    mechanism, q, v = build(case)
    tree = SystemDynamics(Solver(mechanism, encode(mechanism, []), Tolerances()))
    C = tree.moving(q, v, 0.0).rates(v).C
    near = slope(lambda s: tree.equations(tree.displace(q, s * v), v, 0.0).M)
    size = np.abs(tree.equations(q, v, 0.0).M).max() + np.abs(near).max()
    assert_allclose(C + C.T, near, atol=FD_RTOL * size)
    # Coriolis and centrifugal forces are what of f goes with the square of v
    f = [tree.equations(q, s * v, 0.0).f for s in (-1.0, 0.0, 1.0)]
    sizes = np.abs(f).max() + np.abs(C).max() * np.abs(v).max()
    assert_allclose(C @ v, f[1] - (f[0] + f[2]) / 2, atol=1e-12 * sizes)


def bare(mechanism):
    """Solver without constraints."""
    return Solver(mechanism, encode(mechanism, []), Tolerances())


def add_load(body, load):
    """Fix a load to the frame of a body."""
    parts = [
        (float(body["mass"]), body["com"].copy(), body["J"].copy()),
        (load.mass, load.com, load.J),
    ]
    mass = sum(part[0] for part in parts)
    com = sum(m * np.asarray(c, float) for m, c, _ in parts) / mass
    body["mass"], body["com"], body["J"] = mass, com, 0.0
    for m, c, J in parts:
        d = c - com
        body["J"] += J + m * (d @ d * np.eye(3) - np.outer(d, d))


def at(mechanism, q, v, link):
    """Point of a mechanism in a state."""
    terms = bare(mechanism).terms(q, v, 0.0)
    return Kinematics(mechanism, terms.poses, terms.axes, q, v, 0.0).point(bb.Frame(link))


@pytest.mark.parametrize("modes", [1, 2, 3])
def test_terms_agree_with_an_assumed_mode_model_of_points(modes, rng):
    beams = [replace(LONG, modes=modes), replace(SHORT, modes=modes)]
    links = [PlanarLink(beams[0], 0.3, 0.1, 0.02), PlanarLink(beams[1], 0.5)]
    gravity = (1.0, -9.81, 0.0)
    mechanism, oracle = planar_arm(links, gravity), Oracle(links, gravity)
    solver = bare(mechanism)
    for _ in range(5):
        q, v = random_beam_state(rng, mechanism)
        terms = solver.terms(q, v, 0.0)
        M, h, J, tip = oracle.terms(q, v)
        # 16 Gauss points leave 3e-10 in what three modes shorten, 1e-14 with two
        rtol = 1e-12 if modes < 3 else 1e-9
        assert_allclose(terms.M, M, atol=rtol * np.abs(M).max())
        assert_allclose(terms.h, h, atol=1e-9 * np.abs(h).max())
        system = bb.System(mechanism)
        system.set_state(q, v)
        point = system.kinematics().point(bb.Frame("tip1"))
        assert_allclose(point.J[:2], J, atol=1e-13)
        assert_allclose(point.bias[:2], tip, atol=1e-8)


@given(trees)
def test_kinetic_energy_is_that_of_all_masses(case):
    """Half vᵀ M v, and the momentum, by the velocities of bodies and stations."""
    mechanism, q, v = build(case)
    solver = bare(mechanism)
    terms = solver.terms(q, v, 0.0)
    energy, total = 0.0, np.zeros(3)
    for body, pose in zip(mechanism.bodies[1:], terms.poses[1:], strict=True):
        centre = pose["p"] + pose["R"] @ body["com"]
        velocity = pose["v"] + np.cross(pose["w"], centre)
        w = pose["R"].T @ pose["w"]
        energy += 0.5 * body["mass"] * velocity @ velocity + 0.5 * w @ body["J"] @ w
        total += body["mass"] * velocity

    def places(s):
        there = np.empty_like(q)
        displace(mechanism.bodies, q, v, s, there)
        moved = solver.terms(there, v, 0.0)
        found = moved.stations["p"].copy()
        for beam in solver.beams:
            found[beam["first"] : beam["tip"] + 1] += moved.poses["origin"][beam["body"]]
        return found

    velocities, masses = slope(places), terms.stations["mass"]
    energy += 0.5 * float(masses @ (velocities**2).sum(axis=1))
    total += masses @ velocities
    size = 1.0 + energy
    assert_allclose(0.5 * v @ terms.M @ v, energy, atol=FD_RTOL * size)
    assert_allclose(momentum(solver, terms, v)[3:], total, atol=FD_RTOL * size)


@given(trees)
def test_bias_forces_do_the_work_that_energy_loses(case):
    """Power of h is the rate of kinetic and gravity's energy at zero accelerations."""
    mechanism, q, v = build(case)
    mechanism.axes["stiffness"] = 0.0
    solver = bare(mechanism)

    def energy(s):
        moved = np.empty_like(q)
        displace(mechanism.bodies, q, v, s, moved)
        there = solver.terms(moved, v, 0.0)
        return 0.5 * v @ there.M @ v + potential(solver, there, moved)

    power = slope(energy)
    size = 1.0 + abs(energy(0.0)) * (1.0 + np.abs(v).max())
    assert_allclose(power, v @ solver.terms(q, v, 0.0).h, atol=FD_RTOL * size)


@given(trees)
def test_bias_forces_are_those_of_lagrange(case):
    """h = Ṁ v - ∂T/∂q + ∂V/∂q where all coordinates are plain numbers."""
    seed, _, kinds = case
    kinds = [kind if kind != "spherical" else "revolute" for kind in kinds]
    mechanism, q, v = build((seed, False, kinds))
    mechanism.axes["stiffness"] = 0.0
    solver = bare(mechanism)

    def rate(direction):
        def at(s):
            there = solver.terms(q + s * direction, v, 0.0)
            return np.append(there.M.ravel(), potential(solver, there, q))

        *M, V = slope(at)
        return np.reshape(M, (len(q), len(q))), V

    h = rate(v)[0] @ v
    for k, e in enumerate(np.eye(len(q))):
        dM, dV = rate(e)
        h[k] += dV - 0.5 * v @ dM @ v
    assert_allclose(solver.terms(q, v, 0.0).h, h, atol=FD_RTOL * (1.0 + np.abs(h).max()))


@given(trees)
def test_tip_moves_as_its_jacobian_and_drift_say(case):
    mechanism, q, v = build(case)
    system = bb.System(mechanism)
    frame = bb.Frame(list(mechanism.links)[-1], (0.1, 0.2, 0.3))

    def at(s):
        there = np.empty_like(q)
        displace(mechanism.bodies, q, v, s, there)
        system.set_state(there, v)
        return system.kinematics().point(frame)

    here = at(0.0)
    rate, turning = slope(lambda s: at(s).p_W), slope(lambda s: at(s).R_W) @ here.R_W.T
    spin = np.array([turning[2, 1], turning[0, 2], turning[1, 0]])
    size = 1.0 + np.abs(v).max() ** 2
    assert_allclose(rate, here.J @ v, atol=FD_RTOL * size)
    assert_allclose(spin, here.J_angular @ v, atol=FD_RTOL * size)
    speeding, spinning = slope(lambda s: at(s).J @ v), slope(lambda s: at(s).J_angular @ v)
    assert_allclose(speeding, here.bias, atol=FD_RTOL * size * (1 + np.abs(speeding).max()))
    assert_allclose(spinning, here.bias_angular, atol=FD_RTOL * size * (1 + np.abs(spinning).max()))


def test_a_chain_replaced_by_a_beam_is_that_beam(rng):
    """Joints before, beside and after it, another beam, half segments fixed to both ends."""
    turn, place = (0.3, -0.2, 0.5), (0.1, 0.2, -0.1)
    half, payload = Load(0.06, (0.05, 0.0, 0.0), (1e-4,) * 3), Load(0.7, (0.1, 0, 0), (0.01,) * 3)

    def before():
        m = with_joint(empty_mechanism((1, 2, 3)), "base", "free", "base", load=payload)
        return with_joint(m, "side", "spherical", "side", "base", place, turn, payload)

    def after(m, tip):
        m = with_joint(m, "wrist", "revolute", "hand", tip, place, turn, payload)
        return with_beam(m, "finger", SHORT, "finger", "base", place, turn)

    direct = with_beam(before(), "beam", LONG, "end", "base", place, turn, payload)
    direct = after(direct, "end")
    m, on = before(), "base"
    body = m.bodies[1]
    R = Rotation.from_euler("xyz", turn).as_matrix()
    add_load(body, Load(half.mass, tuple(place + R @ half.com), R @ half.J @ R.T))
    for k, x in enumerate((0.1, 0.3, 0.3)):
        frame = (place[0], place[1], place[2]) if k == 0 else (0.0, 0.0, 0.0)
        offset = tuple(np.add(frame, (R if k == 0 else np.eye(3)) @ [x, 0, 0]))
        m = with_joint(m, f"s{k}", "revolute", f"s{k}", on, offset, turn if k == 0 else (0, 0, 0))
        on = f"s{k}"
        m.bodies[-1]["mass"] = 0.1
    m = replace(
        m, links=m.links | {"end": Link("end", len(m.bodies) - 1, np.eye(3), np.array([0.3, 0, 0]))}
    )
    last = m.bodies[-1]
    last["mass"], last["com"], last["J"] = 0.7, [0.4, 0, 0], payload.J
    add_load(last, half)
    m = after(m, "end")
    segments = {"base": Load(half.mass, tuple(place + R @ half.com), R @ half.J @ R.T), "s2": half}
    found = replace_chain(m, ["s0", "s1", "s2"], "beam", LONG, "base", place, turn, segments)
    assert list(found.mechanism.joints) == list(direct.joints)
    assert set(found.mechanism.links) == set(direct.links) | {"s2"}
    q, v = random_beam_state(rng, direct)
    q[found.beam] = [0.02, 0.003]
    ours, theirs = bare(found.mechanism).terms(q, v, 0.0), bare(direct).terms(q, v, 0.0)
    assert_allclose(ours.M, theirs.M, atol=1e-13)
    assert_allclose(ours.h, theirs.h, atol=1e-12)
    assert_allclose(ours.forces, theirs.forces, atol=1e-12)
    for name in direct.links:
        points = [at(mechanism, q, v, name) for mechanism in (found.mechanism, direct)]
        assert_allclose(points[0].J, points[1].J, atol=1e-14)
    old = np.zeros(m.nq)
    old[found.q[0]] = q[found.q[1]]
    assert_allclose(old[m.joint("wrist").q], q[direct.joint("wrist").q])
    assert list(found.chain) == [m.joint(f"s{k}").q.start for k in range(3)]


def test_hinges_draw_the_shape_of_the_beam():
    """To first order in slopes the end is the tip, and the last piece has its slope at any number
    of pieces; along the beam pieces miss part of the shortening, falling with their number squared.
    """
    amplitudes, missed = np.array([8e-4, -1e-4]), []
    tip = LONG.stations()[-1]
    shortened = 0.5 * amplitudes @ tip["S"][:2, :2] @ amplitudes
    for n in (8, 16, 32):
        x = (np.arange(n) + 0.5) / n
        climb = np.cumsum(LONG.hinge_angles(x) @ amplitudes)
        lengths = np.diff(np.append(x, 1.0))
        assert_allclose(climb[-1], tip["slope"][:2] @ amplitudes, rtol=1e-13)
        # of third order: sin x = x - x³ / 6
        assert (
            abs(lengths @ np.sin(climb) - tip["sigma"][:2] @ amplitudes) < np.abs(climb).max() ** 3
        )
        missed.append(abs(1.0 - shortened - x[0] - lengths @ np.cos(climb)) / shortened)
    assert missed[0] < 0.05
    assert missed[0] / missed[1] > 3 and missed[1] / missed[2] > 3


def test_what_is_no_chain_is_refused():
    m = with_joint(empty_mechanism(), "a", "revolute", "a")
    m = with_joint(with_joint(m, "b", "revolute", "b", "a"), "c", "revolute", "c", "a")
    for joints, reason in ((["b", "c"], "follow"), (["a", "b"], "branches"), ([], "at least one")):
        with pytest.raises(ModelError, match=reason):
            replace_chain(m, joints, "beam", LONG, "world")
    with pytest.raises(ModelError, match="modes"):
        FlexibleBeam(1.0, 1.0, 1.0, modes=4)
    with pytest.raises(ModelError, match="length"):
        FlexibleBeam(-1.0, 1.0, 1.0)
