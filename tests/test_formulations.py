"""All formulations give the same accelerations and constraint forces, those of an oracle."""

import numpy as np
import pinocchio as pin
import pytest
from _mechanisms import Oracle, oracle
from hypothesis import assume, given
from numpy.testing import assert_allclose
from scipy.linalg import block_diag
from support.closed_mechanisms import closed_cases, closed_system, decided
from support.planar import four_bar

import bulletbridge as bb
from bulletbridge.errors import (
    AssemblyError,
    ModelError,
    OverconstrainedError,
    StepError,
    UnsupportedError,
)
from bulletbridge.formulations.equations import Equations, split_of
from bulletbridge.formulations.multipliers import Baumgarte
from bulletbridge.formulations.registry import FORMULATIONS, formulation_of

RTOL = 1e-10  # of the issue; a whitened solve loses the condition of the rows, at most 1e3 here
NEED_INDEPENDENT_ROWS = ("multipliers", "baumgarte")
systems = closed_cases()


def drawn_system(case) -> bb.System:
    """A closed system away from singular positions; cases without one are passed over."""
    try:
        system = closed_system(case)
    except (AssemblyError, OverconstrainedError, StepError):  # so is what a singular start refuses
        assume(False)
    assume(system.status.margin > 1e-3)
    return system


def dense(e: Equations) -> tuple[np.ndarray, np.ndarray, float]:
    """v̇ and Jᵀ lam by pseudo-inverse, and the condition of M, from the definition alone."""
    root = np.linalg.cholesky(e.M)
    Y = np.linalg.solve(root, (e.unit[:, None] * e.J).T).T
    pushed = np.linalg.solve(root, e.f)
    force = np.linalg.pinv(Y, rcond=1e-6) @ (-e.unit * e.gamma - Y @ pushed)
    return np.linalg.solve(root.T, pushed + force), root @ force, float(np.linalg.cond(e.M))


def pulled_back(e: Equations, v: np.ndarray) -> Equations:
    """What Baumgarte's gains of 10 ask for: what is left of closed loops, times up to 100, too."""
    return e._replace(gamma=e.gamma + 20.0 * (e.J @ v + e.g_t) + 100.0 * e.g)


def closed_state(system: bb.System):
    """Arguments of a formulation at the system's state."""
    return system.q, system.v, system.t


@given(systems)
def test_all_agree_with_the_pseudo_inverse(case):
    system = drawn_system(case)
    e = system.dynamics.equations(*closed_state(system))
    expected, force, condition = dense(e)
    # entries of v̇ carry the condition of M, forces do not
    sizes = RTOL * np.abs(expected).max() * max(1.0, 1e-4 * condition), np.abs([force, e.f]).max()
    independent = split_of(e.M, e.J, e.unit).rank == len(e.J)
    wanted = dict.fromkeys(FORMULATIONS, (expected, force))
    wanted["baumgarte"] = dense(pulled_back(e, system.v))[:2]
    for name, make in FORMULATIONS.items():
        try:
            vdot, lam = make(system.dynamics)(*closed_state(system))[:2]
        except UnsupportedError:
            assert name in NEED_INDEPENDENT_ROWS and not independent
            continue
        assert independent or name not in NEED_INDEPENDENT_ROWS
        expected, force = wanted[name]
        assert_allclose(vdot, expected, rtol=0, atol=sizes[0], err_msg=name)
        assert_allclose(e.J.T @ lam, force, rtol=0, atol=RTOL * sizes[1], err_msg=name)


def pinocchio_constraint(p: Oracle, loop: bb.LoopJoint):
    """A ball or weld loop as Pinocchio's rigid constraint."""
    places = []
    for end in (loop.a, loop.b):
        link = p.mechanism.links[end.link]
        turn = pin.rpy.rpyToMatrix(*end.rpy)
        placement = pin.SE3(link.R, link.p) * pin.SE3(turn, np.array(end.xyz))
        places += [p.ids[link.body], placement]
    kind = {"ball": pin.ContactType.CONTACT_3D, "weld": pin.ContactType.CONTACT_6D}
    return pin.RigidConstraintModel(kind[loop.model.value], p.model, *places, pin.LOCAL)


@given(systems.filter(lambda case: case[3] in ("ball", "weld")))
def test_all_agree_with_constraint_dynamics_of_pinocchio(case):
    system = drawn_system(case)
    q, v, _ = state = closed_state(system)
    assume(decided(system))
    p = oracle(system.mechanism)
    T = p.rates(q)
    data, rows = p.model.createData(), pin.StdVec_RigidConstraintModel()
    memories = pin.StdVec_RigidConstraintData()
    for loop in system.constraints:
        rows.append(pinocchio_constraint(p, loop))
        memories.append(rows[-1].createData())
    pin.initConstraintDynamics(p.model, data, rows, memories)
    proximal = pin.ProximalSettings(1e-14, 1e-9, 100)
    zero = np.zeros(p.model.nv)
    a = pin.constraintDynamics(p.model, data, q, T @ v, zero, rows, memories, proximal)
    expected = np.linalg.solve(T, a - p.bias_rates(q, v))
    condition = np.linalg.cond(p.mass_matrix(q))
    e = system.dynamics.equations(*state)
    pull = dense(pulled_back(e, v))[0] - dense(e)[0]
    for name, make in FORMULATIONS.items():
        try:
            vdot = make(system.dynamics)(*state).vdot
        except UnsupportedError:
            continue
        size = np.abs(expected).max() * max(1.0, 1e-4 * condition)
        asked = expected + pull if name == "baumgarte" else expected
        assert_allclose(vdot, asked, rtol=0, atol=RTOL * size, err_msg=name)


def test_dependent_rows_are_named_by_those_that_need_independent_ones():
    system = four_bar(times=2)
    system.assemble()
    for name in NEED_INDEPENDENT_ROWS:
        with pytest.raises(UnsupportedError, match="4 rows of rank 2"):
            FORMULATIONS[name](system.dynamics)(*closed_state(system))


def test_redundant_rows_share_their_load_in_the_proximal_formulation():
    """Twice the same rows carry half each, up to eps / mu; the projector loads the first only."""
    single, double = four_bar(), four_bar(times=2)
    loads = []
    for system in (single, double):
        system.assemble(v={"j0": 1.0})
        loads.append(FORMULATIONS["proximal"](system.dynamics)(*closed_state(system)).lam)
    assert_allclose(loads[1], np.tile(loads[0], 2) / 2, rtol=1e-6)


def test_nothing_is_constrained_without_rows():
    system = bb.System(four_bar().mechanism)
    system.assemble(q={"j0": 0.3}, v={"j1": 1.0})
    e = system.dynamics.equations(*closed_state(system))
    for name, make in FORMULATIONS.items():
        vdot, lam = make(system.dynamics)(*closed_state(system))[:2]
        assert_allclose(e.M @ vdot, e.f, atol=1e-12, err_msg=name)
        assert len(lam) == 0


def test_baumgarte_pulls_a_violated_state_back():
    """J v̇ + gamma = -2 alpha (J v + g_t) - beta² g off the constraints."""
    system = four_bar()
    system.assemble()
    q, v = system.q + [0.01, -0.02, 0.03], np.array([0.3, 0.1, -0.2])
    e = system.dynamics.equations(q, v, 0.0)
    vdot = Baumgarte(system.dynamics, 7.0, 3.0)(q, v, 0.0).vdot
    pull = 14.0 * (e.J @ v) + 9.0 * e.g
    assert np.abs(pull).max() > 0.1
    assert_allclose(e.J @ vdot + e.gamma, -pull, rtol=1e-12)


def test_a_singular_mass_matrix_is_no_obstacle_for_multipliers():
    """A massless coordinate that the constraint holds: the system is regular, M is not."""

    class Massless:
        nq = nv = 2

        def equations(self, q, v, t):
            M, J, one = block_diag(2.0, 0.0), np.array([[0.0, 1.0]]), np.ones(1)
            return Equations(M, np.array([6.0, 5.0]), J, 0 * one, 0 * one, -4.0 * one, one)

        def displace(self, q, step):
            return q + step

    state = np.zeros(2), np.zeros(2), 0.0
    vdot, lam = FORMULATIONS["multipliers"](Massless())(*state)[:2]
    assert_allclose(vdot, [3.0, 4.0])
    assert_allclose(lam, [-5.0])
    with pytest.raises(UnsupportedError, match="positive definite"):
        FORMULATIONS["proximal"](Massless())(*state)


def test_rows_that_are_nearly_dependent_are_refused_by_what_cannot_solve_them():
    """Two rows 1e-7 apart that contradict each other: the projector drops the weak one."""

    class Close:
        nq = nv = 3

        def equations(self, q, v, t):
            J, zero, one = np.array([[1.0, 0, 0], [1, 1e-7, 0]]), np.zeros(2), np.ones(2)
            return Equations(np.eye(3), np.ones(3), J, zero, zero, np.array([0.0, 1.0]), one)

        def displace(self, q, step):
            return q + step

    state = np.zeros(3), np.zeros(3), 0.0
    for name in (*NEED_INDEPENDENT_ROWS, "proximal"):
        with pytest.raises(UnsupportedError, match="projector"):
            FORMULATIONS[name](Close())(*state)
    assert np.abs(FORMULATIONS["projector"](Close())(*state).vdot).max() < 2.0


def test_unknown_names_are_refused():
    with pytest.raises(ModelError, match="proximal"):
        formulation_of("magic")
    assert formulation_of(Baumgarte) is Baumgarte
