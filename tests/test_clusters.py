"""Steps cluster by cluster: the motion in joint coordinates, legs with loops of their own."""

import copy

import numpy as np
import pytest
from _mechanisms import random_state
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation
from support.closed_mechanisms import decided
from support.force_elements import element

import bulletbridge as bb
from bulletbridge.bench.cases import case, positions
from bulletbridge.constraints.encode import encode
from bulletbridge.constraints.motion import Motion, Sine
from bulletbridge.engine.clusters_plan import ClusterStepper, find_clusters
from bulletbridge.engine.records import DONE
from bulletbridge.engine.tasks import STEP
from bulletbridge.errors import AssemblyError, ModelError, OverconstrainedError
from bulletbridge.mechanism.build import Load, empty_mechanism, with_joint

JOINTS = ["revolute", "revolute", "prismatic", "spherical"]
MODELS = [
    bb.JointModel.BALL,
    bb.JointModel.REVOLUTE,
    bb.JointModel.POINT_ON_PLANE,
    bb.JointModel.POINT_ON_LINE,
]
ELEMENTS = ["sprung", "over points", "bushed", "twisted", "tied", "sprung to the next", "hung up"]
leg = st.tuples(
    st.lists(st.sampled_from(JOINTS), min_size=4, max_size=7),
    st.lists(st.sampled_from(MODELS), min_size=1, max_size=2),
    st.sampled_from(["as it is", "doubled", "geared", "driven", *ELEMENTS]),
)
robots = st.tuples(
    st.integers(0, 2**32 - 1),
    st.sampled_from([None, "revolute", "free"]),
    st.lists(leg, min_size=2, max_size=4),
)


def load_of(rng):
    """A body of some kilograms, its centre and axes anywhere."""
    axes = Rotation.random(random_state=rng).as_matrix()
    moments = rng.uniform(0.8, 1.2, 3) * 0.02
    return Load(rng.uniform(0.5, 3.0), tuple(rng.uniform(-0.2, 0.2, 3)), axes * moments @ axes.T)


def add_link(mechanism, rng, kind, name, parent):
    """A link on a joint that is somewhere on its parent."""
    turn, place = Rotation.random(random_state=rng).as_euler("xyz"), rng.uniform(-0.4, 0.4, 3)
    if kind == "free":  # it is where q says
        turn = place = (0.0, 0.0, 0.0)
    return with_joint(mechanism, name, kind, name, parent, place, turn, load_of(rng))


def legged(drawn):
    """A robot at a random pose at which the loops of its legs are closed."""
    seed, base, legs = drawn
    rng = np.random.default_rng(seed)
    mechanism, on = empty_mechanism((0.0, 0.0, -9.81)), "world"
    if base:
        mechanism, on = add_link(mechanism, rng, base, "base", "world"), "base"
    for n, (kinds, _, _) in enumerate(legs):
        for k, kind in enumerate(kinds):
            before = on if k == 0 else f"leg{n}link{rng.integers(k)}"
            mechanism = add_link(mechanism, rng, kind, f"leg{n}link{k}", before)
    q, v = random_state(rng, mechanism)
    free = bb.System(mechanism)
    free.set_state(q)
    point, constraints = free.kinematics().point, []
    for n, (kinds, models, kind) in enumerate(legs):
        for i, model in enumerate(models):
            a, b = (f"leg{n}link{k}" for k in rng.choice(len(kinds), 2, replace=False))
            A, B = point(bb.Frame(a)), point(bb.Frame(b))
            rpy = tuple(Rotation.from_matrix(A.R_W.T @ B.R_W).as_euler("xyz"))
            frame = bb.Frame(a, tuple(A.R_W.T @ (B.p_W - A.p_W)), rpy)
            motion = Motion(z=Sine(0.05, 2.0)) if kind == "driven" and i == 0 else None
            twice = ("", "again") if kind == "doubled" and i == 0 else ("",)
            constraints += [
                bb.LoopJoint(f"loop{n}{i}{word}", model, frame, bb.Frame(b), motion=motion)
                for word in twice
            ]
        turning = [f"leg{n}link{k}" for k, one in enumerate(kinds) if one == "revolute"]
        if kind == "geared" and len(turning) > 1:
            at = [float(q[mechanism.joint(name).q.start]) for name in turning[:2]]
            constraints.append(
                bb.Coupling(f"gear{n}", {turning[0]: 1.0, turning[1]: 2.0}, at[0] + 2.0 * at[1])
            )
        if kind in ELEMENTS:
            links = [f"leg{n}link{k}" for k in range(len(kinds))]
            joints = [f"leg{n}link{k}" for k, one in enumerate(kinds) if one != "spherical"]
            if kind == "sprung to the next":
                links = [rng.choice(links), f"leg{(n + 1) % len(legs)}link{rng.integers(4)}"]
            if joints or kind != "tied":
                constraints.append(element(rng, kind, f"{kind}{n}", links, joints[:3]))
    return mechanism, constraints, q, v


def made(drawn, solver, **options):
    """The robot as a system, or what hypothesis is to leave out."""
    mechanism, constraints, q, v = legged(drawn)
    try:
        system = bb.System(mechanism, constraints, dt=1e-3, solver=solver, **options)
        system.set_state(q, 0.3 * v)
        system.acceleration()
    except (AssemblyError, OverconstrainedError):
        assume(False)
    except ModelError as error:  # rows that need the trunk
        assert "finds no subtrees" in str(error)
        assume(False)
    return system


@given(robots, st.sampled_from(["semi_implicit_euler", "verlet", "rk4"]))
def test_random_robots_move_as_in_joint_coordinates(drawn, integrator):
    """Twenty steps; both close to round-off, so that motions differ by what it is amplified by."""
    one, other = (made(drawn, solver, integrator=integrator) for solver in ("clusters", "dense"))
    assert isinstance(one._active.solver.stepper, ClusterStepper)
    forces = np.random.default_rng(drawn[0]).normal(0, 1, one.mechanism.nv)
    assume(decided(one) and other.status.margin > 1e-2)
    for system in (one, other):
        system.tau[:] = forces
        for _ in range(20):  # what is too fast for this step goes in parts, whose number may differ
            assume(system._active.solver.run(STEP, 1) == DONE)
            # and what is shortened closes elsewhere, by the second order: by clusters as a whole
            assume(not system.status.guarded)
    assume(other.status.margin > 1e-2)
    for system in (one, other):
        assert max((gap.kept_metres for gap in system.evaluate().gaps), default=0.0) < 1e-12
    size = 1.0 + np.abs(other.v).max()
    assert np.abs(one.q - other.q).max() < 1e-9 * size
    assert np.abs(one.v - other.v).max() < 1e-8 * size


def system_of(name, solver, **options):
    """A case of the benchmarks at its start."""
    problem = case(name)
    options.setdefault("springs", "explicit")
    system = bb.System(problem.mechanism, problem.constraints, dt=1e-3, solver=solver, **options)
    system.assemble(guess=positions(problem))
    system.set_state(problem.q, problem.v, 0.0)
    return system


@pytest.mark.parametrize("name", ["legs_floating", "platform", "walker3", "hand", "minitaur"])
def test_robots_move_as_in_joint_coordinates_and_keep_their_energy(name):
    ends = []
    for solver in ("clusters", "dense"):
        system = system_of(name, solver)
        system.rollout(200)
        assert system._active.solver.handed_over == 0
        assert max(gap.kept_metres for gap in system.evaluate().gaps) < 1e-12
        ends.append(np.concatenate([system.q, system.v]))
    # round-off, 1e-15, of 200 closings, velocities are positions over dt
    np.testing.assert_allclose(*ends, rtol=0, atol=200 * 1e-15 / 1e-3 * np.abs(ends[1]).max())


def test_who_hangs_on_what_is_found():
    """A walker's shaft carries its legs; a platform, with one of its legs, carries the others."""
    for name, trunk, clusters in (("walker3", 1, 3), ("platform", 6, 5), ("hand", 3, 4)):
        problem = case(name)
        plan = find_clusters(problem.mechanism, encode(problem.mechanism, problem.constraints))
        assert (trunk, clusters) in [(len(one.trunk), len(one.rates)) for one in plan]
        for one in plan:
            rates = sorted([*one.trunk, *(k for rates in one.rates for k in rates)])
            assert rates == list(range(problem.mechanism.nv))


def test_what_needs_the_trunk_is_stepped_in_joint_coordinates():
    """Through a turn of the shaft legs come to where their rows do not hold them by themselves."""
    ends = []
    for solver in ("clusters", "dense"):
        system = system_of("walker3", solver)
        system.gravity = (0.0, 0.0, 0.0)
        system.rollout(2000)
        assert max(gap.kept_metres for gap in system.evaluate().gaps) < 1e-12
        ends.append(system.evaluate().energy)
    assert abs(ends[0] - ends[1]) < 1e-6 * (1.0 + abs(ends[1]))


@pytest.mark.parametrize("solver", ["dense", "sparse"])
def test_a_point_that_an_axis_holds_anyhow_is_left_out(solver):
    """A link's origin is on its joint's axis: rows of round-off, scaled, forbade some motion."""
    rng = np.random.default_rng(1)
    mechanism, q = empty_mechanism((0.0, 0.0, -9.81)), [0.2, 0.4, -0.7]
    for name, parent in (("a", "world"), ("b", "a"), ("c", "b")):
        mechanism = add_link(mechanism, rng, "revolute", name, parent)
    free = bb.System(mechanism)
    free.set_state(q)
    A, B = (free.kinematics().point(bb.Frame(name)) for name in "ab")
    frame = bb.Frame("a", tuple(A.R_W.T @ (B.p_W - A.p_W)))
    held = bb.System(
        mechanism, [bb.LoopJoint("on", bb.JointModel.BALL, frame, bb.Frame("b"))], solver=solver
    )
    held.set_state(q)
    np.testing.assert_allclose(held.acceleration(), free.acceleration(), rtol=1e-10)


def test_robots_without_loops_of_their_own_are_refused_by_clusters():
    four_bar = case("four_bar")
    system = bb.System(four_bar.mechanism, four_bar.constraints, solver="clusters")
    with pytest.raises(ModelError, match="solver='clusters' finds no subtrees"):
        system.assemble(guess=positions(four_bar))


def test_steps_by_clusters_are_the_same_after_a_restore_and_in_a_copy():
    system = system_of("walker3", "clusters", integrator="dop853")
    system.rollout(10)
    start, other = system.save(), copy.deepcopy(system)
    ends = []
    for one in (system, other, system):
        if ends:
            one.restore(start)
        one.rollout(20)
        ends.append(np.concatenate([one.q, one.v]))
    np.testing.assert_array_equal(ends[0], ends[1])
    np.testing.assert_array_equal(ends[0], ends[2])
