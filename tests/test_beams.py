"""Flexible beams against an assumed-mode model of their own, conservation laws and the thesis."""

from dataclasses import replace

import numpy as np
import pytest
from beam_trees import (
    LONG,
    SHORT,
    Oracle,
    PlanarLink,
    planar_arm,
    random_beam_state,
    random_beam_tree,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import bulletbridge as bb
from bulletbridge.constraints.encode import encode
from bulletbridge.mechanism.kinematics import displace
from bulletbridge.simulation.evaluation import momentum, potential
from bulletbridge.simulation.solver import Solver, Tolerances

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


def bare(mechanism):
    """Solver without constraints."""
    return Solver(mechanism, encode(mechanism, []), Tolerances())


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
        assert_allclose(terms.M, M, atol=1e-12 * np.abs(M).max() * (1 if modes < 3 else 1e3))
        assert_allclose(terms.h, h, atol=1e-9 * np.abs(h).max())
        system = bb.System(mechanism)
        system.set_state(q, v)
        point = system.kinematics().point(bb.Frame("tip1"))
        assert_allclose(point.J[:2], J, atol=1e-13)
        assert_allclose(point.bias[:2], tip, atol=1e-8)


@settings(max_examples=40, deadline=None)
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
        return solver.terms(there, v, 0.0).stations["p"]

    velocities, masses = slope(places), terms.stations["mass"]
    energy += 0.5 * float(masses @ (velocities**2).sum(axis=1))
    total += masses @ velocities
    size = 1.0 + energy
    assert_allclose(0.5 * v @ terms.M @ v, energy, atol=FD_RTOL * size)
    assert_allclose(momentum(solver, terms, v)[3:], total, atol=FD_RTOL * size)


@settings(max_examples=40, deadline=None)
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


@settings(max_examples=30, deadline=None)
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


@settings(max_examples=30, deadline=None)
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
