"""Reduced quasi-velocities: identities, invariance, and the closed form of the robot on a circle.

Reference values are those of an independent program for Aghili's example; round-off is a few
hundred times 2e-16 of the sizes at hand times the condition of M, differences add 1e-13.
"""

from dataclasses import dataclass

import numpy as np
import pytest
from _mechanisms import random_mechanism
from numpy.testing import assert_allclose
from scipy.linalg import polar
from support.quasi_velocity_gammas import gammas, skew_rate

import bulletbridge as bb
from bulletbridge.errors import ModelError
from bulletbridge.formulations.classics.circle import CircleRobot
from bulletbridge.formulations.equations import Dynamics, Equations
from bulletbridge.formulations.moving import moving
from bulletbridge.formulations.projector import Projector
from bulletbridge.formulations.quasi_velocities import (
    ReducedQuasiVelocities,
    basis_of,
    square_root,
    square_root_turns,
)
from bulletbridge.formulations.quasi_velocity_rates import basis_rates
from bulletbridge.mechanism.records import FREE, PRISMATIC, REVOLUTE, SPHERICAL
from bulletbridge.numerics.turns import nearest_turn

ROOTS = ["tree", "cholesky", "symmetric"]
ARM = [REVOLUTE, REVOLUTE, PRISMATIC, REVOLUTE, REVOLUTE]
FLOATING = [FREE, REVOLUTE, SPHERICAL, REVOLUTE, PRISMATIC]


@dataclass(frozen=True)
class Repeated:
    """A system whose rows are written twice, so that half of them are redundant."""

    dynamics: Dynamics
    nq = property(lambda self: self.dynamics.nq)
    nv = property(lambda self: self.dynamics.nv)

    def equations(self, q, v, t):
        e = self.dynamics.equations(q, v, t)
        twice = (np.concatenate([x, x]) for x in (e.J, e.g, e.g_t, e.gamma, e.unit))
        return Equations(e.M, e.f, *twice)

    def displace(self, q, step):
        return self.dynamics.displace(q, step)


def constrained(rng, kinds, gravity=False):
    """A random chain, point and rod to the world; dynamics and a consistent moving state."""
    mechanism = random_mechanism(rng, kinds, branching=0.0, gravity=gravity)
    tip, middle = f"link{len(kinds)}", f"link{len(kinds) - 1}"
    plane = bb.LoopJoint(
        "plane",
        bb.JointModel.POINT_ON_PLANE,
        bb.Frame("world", (0.1, 0.2, 0.0), (0.3, -0.4, 0.0)),
        bb.Frame(tip, (0.1, 0.0, 0.2)),
    )
    rod = bb.Distance("rod", bb.Frame("world", (0.2, 0.1, 0.1)), bb.Frame(middle), 0.9)
    system = bb.System(mechanism, [plane, rod])
    system.assemble()
    split = basis_of(system.dynamics.equations(system.q, system.v, 0.0))
    v = split.expand(rng.normal(0, 1.0, split.V_2.shape[1]))
    return system.dynamics, system.q, v


@pytest.mark.parametrize("root", ROOTS)
def test_roots_and_their_rates(root, rng):
    A, B = rng.normal(size=(2, 6, 6))
    M, M_rate = A @ A.T + np.eye(6), B + B.T
    L = square_root(M, root)
    assert_allclose(L.T @ L, M, atol=1e-13 * np.linalg.norm(M))
    L_rate = square_root_turns(L, M_rate, root) @ L
    assert_allclose(L_rate.T @ L + L.T @ L_rate, M_rate, atol=1e-12 * np.linalg.norm(M_rate))
    h = 1e-5  # second order: h² of a smooth function, and 1e-16 / h
    near = (square_root(M + h * M_rate, root) - square_root(M - h * M_rate, root)) / (2 * h)
    assert_allclose(L_rate, near, atol=1e-8)


def test_the_tree_root_keeps_the_zeros_of_the_branches(rng):
    # two branches on one base: the spatial-operator factor couples no joint of one with the other
    M = np.eye(5) + 0.1
    M[1:3, 3:] = M[3:, 1:3] = 0.0
    assert not np.any(square_root(M, "tree")[3:, 1:3])
    assert np.any(square_root(M, "cholesky")[1:3, 3:])


def test_an_unknown_root_lists_those_that_exist():
    with pytest.raises(ModelError, match="tree, cholesky, symmetric"):
        square_root(np.eye(2), "eigen")  # type: ignore[arg-type]


@pytest.mark.parametrize("kinds", [ARM, FLOATING], ids=["arm", "floating"])
@pytest.mark.parametrize("repeated", [False, True])
@pytest.mark.parametrize("root", ROOTS)
def test_agrees_with_the_projector(root, repeated, kinds, rng):
    dynamics, q, v = constrained(rng, kinds, gravity=True)
    wanted = Projector(dynamics)(q, v, 0.0)
    J = dynamics.equations(q, v, 0.0).J
    if repeated:
        dynamics = Repeated(dynamics)
    found = ReducedQuasiVelocities(dynamics, root)(q, v, 0.0)
    assert_allclose(found.vdot, wanted.vdot, rtol=0, atol=1e-11 * np.abs(wanted.vdot).max())
    force = dynamics.equations(q, v, 0.0).J.T @ found.lam
    expected = J.T @ wanted.lam
    assert_allclose(force, expected, rtol=0, atol=1e-10 * max(1.0, np.abs(expected).max()))


@pytest.mark.parametrize("root", ROOTS)
def test_kinetic_energy_is_half_the_square(root, rng):
    dynamics, q, v = constrained(rng, ARM)
    e = dynamics.equations(q, v, 0.0)
    basis = basis_of(e, root)
    v_r = basis.reduce(v)
    assert v_r @ v_r == pytest.approx(v @ e.M @ v, rel=1e-13)
    assert_allclose(basis.expand(v_r), v, atol=1e-12 * np.abs(v).max())
    assert_allclose(basis.free.T @ basis.L.T @ basis.V_2, np.eye(len(v_r)), atol=1e-13)


@pytest.mark.parametrize("root", ROOTS)
def test_gamma_turns_without_work_and_explains_the_motion(root, rng):
    dynamics, q, v = constrained(rng, ARM)
    found = gammas(dynamics, q, v, 0.0, root)
    basis = found.basis
    v_r = basis.reduce(v)
    size = np.linalg.norm(found.Gamma_r) * (v_r @ v_r)
    assert abs(v_r @ found.Gamma_r @ v_r) < 1e-12 * size
    assert np.linalg.norm(found.Gamma_r + found.Gamma_r.T) > 0.1 * np.linalg.norm(found.Gamma_r)

    # no forces: v̇_r = -Gamma_r v_r and Lambda_rᵀ lam = Gamma_o v_r in our sign of lam
    vdot, lam = ReducedQuasiVelocities(dynamics, root)(q, v, 0.0)[:2]
    rates = basis_rates(basis, *moving(dynamics, q, v, 0.0).matrix_rates(v))
    v_r_rate = rates.reduce(basis, v) + basis.reduce(vdot)
    assert_allclose(v_r_rate, -found.Gamma_r @ v_r, atol=1e-11 * np.abs(vdot).max())
    mu = basis.s * (basis.U_1.T @ (lam / basis.unit))
    assert_allclose(mu, found.Gamma_o @ v_r, atol=1e-11 * np.abs(mu).max())


@pytest.mark.parametrize("kinds", [ARM, FLOATING], ids=["arm", "floating"])
def test_the_skew_matrix_has_the_same_effect(kinds, rng):
    dynamics, q, v = constrained(rng, kinds)
    basis = basis_of(dynamics.equations(q, v, 0.0))
    v_r = basis.reduce(v)
    here = moving(dynamics, q, v, 0.0)
    S = skew_rate(here, basis, v)
    vdot = ReducedQuasiVelocities(dynamics)(q, v, 0.0).vdot
    rates = basis_rates(basis, *here.matrix_rates(v))
    v_r_rate = rates.reduce(basis, v) + basis.reduce(vdot)
    assert_allclose(S, -S.T, atol=0)
    assert_allclose(S @ v_r, -v_r_rate, atol=1e-11 * np.abs(v_r_rate).max())
    if kinds == ARM:
        Gamma_r = gammas(dynamics, q, v, 0.0, basis=basis).Gamma_r
        other = np.array([0.3, -0.7, 0.5])[: len(v_r)]
        assert abs(other @ Gamma_r @ other) > 1e-3  # what the paper's bound would need to vanish
        assert_allclose(S @ v_r, Gamma_r @ v_r, atol=1e-11 * np.abs(v_r_rate).max())


def test_gamma_refuses_quaternions(rng):
    dynamics, q, v = constrained(rng, FLOATING)
    with pytest.raises(ModelError, match="use skew_rate"):
        gammas(dynamics, q, v, 0.0)


def test_inertial_forces_leave_gravity_and_damping_out(rng):
    mechanism = random_mechanism(rng, ARM)
    mechanism.axes["damping"] = 0.7
    dynamics = bb.System(mechanism).dynamics
    q, v = rng.normal(size=(2, 5))
    f, still = dynamics.equations(q, v, 0.0).f, dynamics.equations(q, 0 * v, 0.0).f
    here = moving(dynamics, q, v, 0.0)
    assert_allclose(here.rates(v).C @ v, still - f - 0.7 * v, atol=1e-12 * np.abs(f).max())


@pytest.mark.parametrize("n", [1, 2, 7])
def test_the_nearest_rotation_and_its_rate(n, rng):
    """SciPy's polar factor; the rate by differences, whose error goes with h² and eps / h."""
    C, rate = rng.normal(size=(2, n, n))
    A, A_rate, room = np.empty((n, n)), np.empty((n, n)), np.empty((3, n, n))
    least = np.linalg.svd(C)[1][-1]
    assert nearest_turn(C, rate, A, A_rate, room) == pytest.approx(least, rel=1e-12)
    assert_allclose(A, polar(C)[0], atol=1e-14 / least * np.linalg.norm(C))
    h = 1e-5 * min(1.0, least)
    near = (polar(C + h * rate)[0] - polar(C - h * rate)[0]) / (2 * h)
    assert_allclose(A_rate, near, atol=1e-8 * (1.0 + np.linalg.norm(rate) / least) ** 3)
    assert nearest_turn(0.0 * C, rate, A, A_rate, room) == 0.0


def test_an_aligned_basis_follows_the_configuration(rng):
    dynamics, q, v = constrained(rng, ARM)
    first = basis_of(dynamics.equations(q, v, 0.0))
    h = 1e-5
    near = basis_of(dynamics.equations(dynamics.displace(q, h * v), v, 0.0)).aligned(first.V_2)
    V_rate = basis_rates(first, *moving(dynamics, q, v, 0.0).matrix_rates(v)).V_2
    assert_allclose((near.V_2 - first.V_2) / h, V_rate, atol=1e-3 * (1 + np.abs(V_rate).max()))


# -- the robot on a circle -----------------------------------------------------------------------

REFERENCE = {
    0.5: (0.246852251706, 0.4348148638532),
    1.0: (-0.3124433830229, 0.3903576980222),
    2.0: (-0.1727617713312, -0.469205040858),
    5.0: (-0.007474690320526, -0.4999441258827),
    10.0: (-0.4998509915623, 0.0122059917314),
}


def free_motion(robot, v_r, t, h):
    """RK4 in the paper's own variables: q and v_r, which is constant; q drifts with the order."""
    q, _ = robot.state(0.0, 0.0)

    def rate(q):
        basis = basis_of(robot.equations(q, 0 * q, 0.0)).aligned(np.array([[-q[1]], [q[0]]]))
        return basis.expand(np.array([v_r]))

    for _ in range(round(t / h)):
        a = rate(q)
        b = rate(q + h / 2 * a)
        c = rate(q + h / 2 * b)
        q = q + h / 6 * (a + 2 * b + 2 * c + rate(q + h * c))
    return q


def test_circle_closed_form_and_reference():
    robot = CircleRobot()
    assert robot.v_r(0.0, 2.0) == pytest.approx(1.7320508075689, abs=1e-13)
    assert robot.period(2.0) == pytest.approx(2.8606305143444, abs=1e-13)
    for t, position in REFERENCE.items():
        phi = robot.angle(t, 2.0)
        assert_allclose(robot.state(phi, 0.0)[0], position, rtol=0, atol=1e-12)


def test_circle_integrated_in_quasi_velocities():
    robot = CircleRobot()
    coarse, fine = (
        np.abs(free_motion(robot, robot.v_r(0.0, 2.0), 1.0, h) - REFERENCE[1.0]).max()
        for h in (2e-2, 1e-2)
    )
    assert coarse / fine == pytest.approx(16, rel=0.1)
    assert fine < 1e-8


def test_circle_v_r_in_the_regular_form():
    robot = CircleRobot()
    for phi in np.linspace(0.0, 6.0, 25):
        q, v = robot.state(phi, 0.7)
        size = abs(basis_of(robot.equations(q, v, 0.0)).reduce(v)[0])
        g = np.sqrt(robot.m_1 * q[1] ** 2 + robot.m_2 * q[0] ** 2)
        assert size == pytest.approx(abs(robot.v_r(phi, 0.7)), rel=1e-13)
        assert size == pytest.approx(g * np.hypot(*v) / robot.R, rel=1e-13)


def change_units(e: Equations, factor):
    """The same equations with v in units ``factor`` (nv,) times smaller."""
    M = e.M / np.outer(factor, factor)
    return e._replace(M=M, f=e.f / factor, J=e.J / factor)


@pytest.mark.parametrize("root", ROOTS)
def test_units_change_nothing(root, rng):
    dynamics, q, v = constrained(rng, ARM, gravity=True)
    joints = np.array([kind == PRISMATIC for kind in ARM])
    factor = np.where(joints, 1e3, 180 / np.pi)  # metres to millimetres, radians to degrees
    e = dynamics.equations(q, v, 0.0)
    scaled = change_units(e, factor)
    any_v = rng.normal(size=5)

    def filtered(e, v):
        basis = basis_of(e, root)
        return basis.expand(basis.reduce(v)), np.linalg.norm(basis.reduce(v))

    ours, size = filtered(e, any_v)
    theirs, their_size = filtered(scaled, factor * any_v)
    limit = 1e-14 * np.linalg.cond(scaled.M) ** 0.5
    assert_allclose(theirs / factor, ours, rtol=0, atol=limit * np.abs(ours).max())
    assert their_size == pytest.approx(size, rel=limit)

    def euclidean(e, v):
        return v - np.linalg.pinv(e.J) @ (e.J @ v)

    wrong = euclidean(scaled, factor * any_v) / factor
    assert np.abs(wrong - euclidean(e, any_v)).max() > 1e-2 * np.abs(any_v).max()


def test_circle_in_millimetres():
    q, v = CircleRobot().state(0.9, -1.0)
    metres = ReducedQuasiVelocities(CircleRobot())(q, v, 0.0).vdot
    millimetres = ReducedQuasiVelocities(CircleRobot(metre=1e3))(1e3 * q, 1e3 * v, 0.0).vdot
    assert_allclose(millimetres / 1e3, metres, rtol=1e-13)
