"""Modules assembled by connectivity accelerate like the whole, and are found by it."""

import numpy as np
import pytest
from _mechanisms import PRISMATIC, REVOLUTE, SPHERICAL, random_mechanism, random_state
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import block_diag

import bulletbridge as bb
from bulletbridge.constraints.encode import encode
from bulletbridge.constraints.user import Rows
from bulletbridge.engine.stepper import Solver
from bulletbridge.engine.workspace import Tolerances
from bulletbridge.errors import UnsupportedError
from bulletbridge.formulations.equations import Equations
from bulletbridge.formulations.modular import Modular, by_modules, solve_modular
from bulletbridge.formulations.modules import modules_of
from bulletbridge.formulations.multipliers import Baumgarte
from bulletbridge.formulations.projector import Projector
from bulletbridge.formulations.stabilise import Seen, Stabilisation
from bulletbridge.formulations.system_dynamics import SystemDynamics
from bulletbridge.mechanism.records import FREE
from bulletbridge.system.carrying import where_it_is

RTOL = 1e-10  # of the issue
ROBOT = [FREE, REVOLUTE, SPHERICAL, PRISMATIC]
CELL = [*ROBOT, FREE, REVOLUTE, REVOLUTE, *ROBOT, FREE]
"""Two robots of 11 rates, one of 8 and a payload; links 1-4, 5-7, 8-11, 12."""


class Between:
    """A user's constraint: one coordinate of a point of one body follows another's."""

    name, units = "user", ("m",)

    def rows(self, kinematics) -> Rows:
        a, b = (kinematics.point(bb.Frame(link)) for link in ("link2", "link9"))
        J, gamma = b.J[:1] - a.J[:1], b.bias[:1] - a.bias[:1]
        return Rows(b.p_W[:1] - a.p_W[:1], J, np.zeros(1), gamma)


def joined(seed, kinds, constraints, **options):
    """A tree of a random mechanism at a random state, with what is joined there as it is."""
    rng = np.random.default_rng(seed)
    mechanism = random_mechanism(rng, kinds, **options)
    state = random_state(rng, mechanism)
    system = bb.System(mechanism)
    system.set_state(*state)
    seen = system.kinematics()
    found = [c if isinstance(c, Between) else where_it_is(c, seen) for c in constraints]
    solver = Solver(mechanism, encode(mechanism, found), Tolerances())
    return SystemDynamics(solver), (*state, 0.3)


def loop(name, model, a, b, **more):
    return bb.LoopJoint(name, bb.JointModel(model), bb.Frame(a), bb.Frame(b), **more)


SERIES = [loop("first", "weld", "link4", "link5"), loop("second", "ball", "link7", "link8")]
INSIDE = loop("inside", "point_on_plane", "link1", "link4")
MOVED = loop("moved", "ball", "link4", "link9", motion=bb.Motion(x=bb.Sine(0.2, 0.7)))
CASES = {
    "series": SERIES,
    "series and inside": [*SERIES, INSIDE],
    "to the world": [*SERIES, loop("ground", "ball", "world", "link11")],
    "parallel": [loop("one", "ball", "link4", "link12"), loop("two", "weld", "link11", "link12")],
    "two groups": [SERIES[0], loop("other", "ball", "link11", "link12"), INSIDE],
    "gears": [*SERIES, bb.Coupling("gear", {"joint2": 1.0, "joint6": -2.0, "joint11": 0.5})],
    "rods": [bb.Distance("rod", bb.Frame("link4"), bb.Frame("link7"), 1.0), INSIDE],
    "driven": [MOVED, *SERIES],
    "user": [*SERIES, Between()],
    "one inside": [INSIDE],
    "nothing": [],
    "redundant": [*SERIES, loop("again", "ball", "link7", "link8")],
    "redundant beside": [
        loop("one", "weld", "link4", "link5"),
        loop("again", "revolute", "link4", "link5"),
        loop("other", "ball", "link11", "link12"),
    ],
}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("case", CASES)
def test_modules_accelerate_like_the_whole(case, seed):
    tree, state = joined(seed, CELL, CASES[case], branching=0.5)
    e = tree.equations(*state)
    expected, found = Projector(tree)(*state), Modular(tree)(*state)
    assert_allclose(found.vdot, expected.vdot, rtol=0, atol=RTOL * np.abs(expected.vdot).max())
    force, size = e.J.T @ expected.lam, np.abs(e.f).max()
    assert_allclose(e.J.T @ found.lam, force, rtol=0, atol=RTOL * max(size, np.abs(force).max()))
    if "redundant" not in case:
        size = np.abs(expected.lam).max(initial=1.0)
        assert_allclose(found.lam, expected.lam, rtol=0, atol=RTOL * size)


@pytest.mark.parametrize("case", ["series and inside", "user", "gears", "driven"])
def test_terms_by_modules_are_those_of_the_whole(case):
    tree, state = joined(1, CELL, CASES[case], branching=0.5)
    e, parts = tree.equations(*state), tree.modular_equations(*state)
    M, J = np.zeros_like(e.M), np.zeros_like(e.J)
    for alike, block in zip(parts.connectivity.alike, parts.blocks, strict=True):
        for columns, rows, m, j in zip(*alike, *block, strict=True):
            M[np.ix_(columns, columns)], J[np.ix_(rows, columns)] = m, j
    M = np.tril(M)
    assert_allclose(M + np.tril(M, -1).T, e.M, rtol=0, atol=1e-14 * np.abs(e.M).max())
    assert_allclose(J, e.J, rtol=0, atol=1e-14 * np.abs(e.J).max())
    assert_allclose(parts.f, e.f, atol=1e-12)
    assert_allclose(parts.gamma, e.gamma, atol=1e-13)


def test_branches_of_a_fixed_robot_are_modules_of_their_own():
    below = np.array([-1, 0, 1, -1, 3, -1])
    found = modules_of(below)
    for columns, expected in zip(found, ([0, 1, 2], [3, 4], [5]), strict=True):
        assert_array_equal(columns, expected)


def test_trees_with_mixed_coordinates_count_as_one():
    found = modules_of(np.array([-1, -1, 0, -1, 3]))
    for columns, expected in zip(found, ([0, 1, 2], [3, 4]), strict=True):
        assert_array_equal(columns, expected)


def test_only_the_group_with_dependent_rows_is_split():
    """Its neighbours go on as they are: A of the others has no small pivot."""
    tree, state = joined(0, CELL, CASES["redundant beside"])
    e = tree.modular_equations(*state)
    assert sorted(np.bincount(e.connectivity.pattern.groups)) == [3, 11]
    assert e.split().weak.sum() == 11


def test_the_order_of_elimination_does_not_fill_a_series():
    """n ball joints in series: factors of three rows each and what joins them to the next."""
    count = 40
    kinds = [FREE, REVOLUTE] * count
    joints = [loop(f"j{k}", "ball", f"link{2 * k}", f"link{2 * k + 1}") for k in range(1, count)]
    tree, state = joined(2, kinds, joints, branching=0.0)
    pattern = tree.modular_equations(*state).connectivity.pattern
    n = len(pattern.order)
    assert_array_equal(pattern.groups, np.zeros(n))
    assert len(pattern.indices) <= n * (3 + 3 * 2)


def test_modules_are_found_in_the_equations_of_any_system():
    rng = np.random.default_rng(0)
    roots = [rng.normal(size=(k, k)) + 3 * np.eye(k) for k in (2, 3, 1)]
    M, J = block_diag(*(r @ r.T for r in roots)), rng.normal(size=(3, 6))
    J[0, 2:], J[1:, :2] = 0.0, 0.0

    class Own:
        nq = nv = 6

        def equations(self, q, v, t):
            zero, one = np.zeros(3), np.ones(3)
            return Equations(M, np.arange(6.0), J, zero, zero, one, one)

        def displace(self, q, step):
            return q + step

    parts = by_modules(Own().equations(0, 0, 0))
    assert sorted(a.columns.shape for a in parts.connectivity.alike) == [(1, 1), (1, 2), (1, 3)]
    assert_array_equal(np.sort(parts.connectivity.pattern.groups), [0, 1, 1])
    expected, found = (make(Own())(np.zeros(6), np.zeros(6), 0.0) for make in (Projector, Modular))
    assert_allclose(found.vdot, expected.vdot, rtol=1e-12)
    assert_allclose(found.lam, expected.lam, rtol=1e-12)
    M[0, 0] = -1.0
    with pytest.raises(UnsupportedError, match="not positive definite"):
        Modular(Own())(np.zeros(6), np.zeros(6), 0.0)


def test_a_simulation_by_modules_is_that_of_the_projector():
    ends = []
    for formulation in ("modular", "projector"):
        rng = np.random.default_rng(5)
        mechanism = random_mechanism(rng, CELL, branching=0.0, gravity=False)
        system = bb.System(mechanism, dt=1e-3, integrator="rk4", formulation=formulation)
        system.set_state(*random_state(rng, mechanism, 0.3))
        for joint in SERIES:
            system.connect(joint, as_is=True)
        system.rollout(20)
        ends.append(np.concatenate([system.q, system.v]))
    assert_allclose(*ends, rtol=0, atol=1e-10)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("case", CASES)
def test_modules_close_like_the_whole(case, seed):
    """Filter and correction from one disturbed state, of driven, redundant and users' rows too.

    Both end where the gap is 2e-14 of the size of q or less, and differ by what a gap of that size
    may differ along: its least row is 1e-4 of the strongest or more, or the rows are split.
    """
    tree, (q, v, t) = joined(seed, CELL, CASES[case], branching=0.5)
    off = tree.displace(q, 1e-4 * np.sin(np.arange(tree.nv)))
    after, e = Stabilisation(), tree.equations(q, v, t)
    by_modules = Seen(Modular(tree).equations, tree.displace)
    expected, found = (after(d, q, off, v, t) for d in (tree, by_modules))
    assert found.rank == expected.rank
    size = max(1.0, np.abs(expected.q).max())
    assert_allclose(found.q, expected.q, rtol=0, atol=1e-9 * size)
    assert_allclose(found.v, expected.v, rtol=0, atol=1e-9 * np.abs(expected.v).max())
    end = tree.equations(found.q, found.v, t)
    assert np.abs(e.unit * end.g).max(initial=0.0) <= 1e-12 * size
    left = np.abs(end.J @ found.v + end.g_t)
    assert np.all(left <= 1e-13 * (np.abs(end.J) @ np.abs(found.v) + np.abs(end.g_t) + 1.0))


def test_the_suppression_of_the_thesis_is_baumgartes():
    """Both gain terms subtracted from the relative acceleration of P against E, K_v and K_p."""
    tree, (q, v, t) = joined(0, CELL, SERIES)
    q = tree.displace(q, 1e-3 * np.ones(tree.nv))
    e, K_v, K_p = tree.equations(q, v, t), 0.1, 0.2
    assert np.abs(e.g).max() > 1e-4
    suppressed = e.gamma + K_v * (e.J @ v + e.g_t) + K_p * e.g
    found = solve_modular(by_modules(e._replace(gamma=suppressed)))
    expected = Baumgarte(tree, K_v / 2, np.sqrt(K_p))(q, v, t)
    assert_allclose(found.vdot, expected.vdot, rtol=0, atol=RTOL * np.abs(expected.vdot).max())
    violation = e.J @ found.vdot + e.gamma
    assert_allclose(violation, -K_v * (e.J @ v) - K_p * e.g, atol=1e-11)
