"""Steps by elimination in link coordinates: the motion in joint coordinates, at linear cost."""

from dataclasses import replace

import numpy as np
import pytest
from _mechanisms import random_mechanism, random_state
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation
from support.closed_mechanisms import decided
from support.force_elements import element

import bulletbridge as bb
from bulletbridge.constraints.encode import encode
from bulletbridge.constraints.motion import Motion, Sine
from bulletbridge.engine.islands import IslandStepper
from bulletbridge.engine.sparse_plan import SparseStepper, lay_out, minimum_degree_order
from bulletbridge.errors import AssemblyError, OverconstrainedError, StepError
from bulletbridge.mechanism.build import Load, empty_mechanism, with_joint
from bulletbridge.mechanism.records import FREE, PRISMATIC, REVOLUTE, SPHERICAL

MODELS = [
    bb.JointModel.BALL,
    bb.JointModel.REVOLUTE,
    bb.JointModel.POINT_ON_PLANE,
    bb.JointModel.POINT_ON_LINE,
    bb.JointModel.PLANAR,
]
several_loops = st.tuples(
    st.integers(0, 2**32 - 1),
    st.lists(st.sampled_from([REVOLUTE, PRISMATIC, SPHERICAL, FREE]), min_size=5, max_size=9),
    st.lists(st.sampled_from(MODELS), min_size=1, max_size=3),
    st.booleans(),
    st.lists(
        st.sampled_from(["sprung", "bushed", "twisted", "hung up", "tied", "over points"]),
        max_size=3,
    ),
    st.integers(0, 3),
)


def bar(length):
    """A uniform bar of 1 kg along x."""
    moment = length**2 / 12
    return Load(1.0, (length / 2, 0.0, 0.0), np.diag([1e-4, moment, moment]))


def row(n, damping=0.0):
    """Parallel rods on the ground, each joined to the next by a coupler: n four-bars."""
    mechanism, joints = empty_mechanism((0.0, -9.81, 0.0)), []
    for k in range(n + 1):
        mechanism = with_joint(
            mechanism, f"rod{k}", "revolute", f"rod{k}", xyz=(k, 0, 0), load=bar(1.0)
        )
        if k:
            before = f"rod{k - 1}"
            mechanism = with_joint(
                mechanism, f"coupler{k}", "revolute", f"coupler{k}", before, (1, 0, 0),
                load=bar(1.0),
            )  # fmt: skip
            ends = bb.Frame(f"coupler{k}", (1, 0, 0)), bb.Frame(f"rod{k}", (1, 0, 0))
            joints.append(bb.LoopJoint(f"pin{k}", bb.JointModel.BALL, *ends))
    return mechanism, joints


def ladder(n):
    """Four-bars on top of each other: two rails of n bars each, and rungs of two lengths."""
    mechanism, joints = empty_mechanism((0.0, -9.81, 0.0)), []
    for rail, x in (("left", 0.0), ("right", 1.0)):
        for k in range(n):
            on, place = ("world", (x, 0, 0)) if k == 0 else (f"{rail}{k - 1}", (1, 0, 0))
            turn = (0, 0, np.pi / 2) if k == 0 else (0, 0, 0)
            mechanism = with_joint(
                mechanism, f"{rail}{k}", "revolute", f"{rail}{k}", on, place, turn, bar(1.0)
            )
    for k in range(n):
        mechanism = with_joint(
            mechanism, f"rung{k}", "revolute", f"rung{k}", f"left{k}", (1, 0, 0),
            (0, 0, -np.pi / 2), bar(1.0),
        )  # fmt: skip
        ends = bb.Frame(f"rung{k}", (1 + 0.05 * (-1) ** k, 0, 0)), bb.Frame(f"right{k}", (1, 0, 0))
        joints.append(bb.LoopJoint(f"pin{k}", bb.JointModel.BALL, *ends))
    return mechanism, joints


def both(make):
    """A system that steps link by link, and the same in joint coordinates."""
    systems = [make(solver=solver) for solver in ("sparse", "dense")]
    assert isinstance(systems[0]._active.solver.stepper, SparseStepper)
    assert not isinstance(systems[1]._active.solver.stepper, SparseStepper)
    return systems


def with_loops(case):
    """A random forest with loops between random links, closed at a random pose; some driven.

    Besides, forces act between its links, and up to three joints are geared.
    """
    seed, kinds, models, driven, forces, geared = case
    rng = np.random.default_rng(seed)
    mechanism = random_mechanism(rng, kinds, branching=0.4)
    q, v = random_state(rng, mechanism)
    free = bb.System(mechanism)
    free.set_state(q)
    point, joints = free.kinematics().point, []
    for n, model in enumerate(models):
        on, of = rng.choice(len(mechanism.links), 2, replace=False)
        a, b = (list(mechanism.links)[i] for i in (on, of))
        A, B = point(bb.Frame(a)), point(bb.Frame(b))
        rpy = tuple(Rotation.from_matrix(A.R_W.T @ B.R_W).as_euler("xyz"))
        frame = bb.Frame(a, tuple(A.R_W.T @ (B.p_W - A.p_W)), rpy)
        motion = Motion(z=Sine(0.05, 2.0)) if driven and n == 0 else None
        joints.append(bb.LoopJoint(f"loop{n}", model, frame, bb.Frame(b), motion=motion))
    links = [link for link in mechanism.links if link != "world"]
    single = [name for name, joint in mechanism.joints.items() if joint.is_single]
    if single and geared:
        chosen = [str(name) for name in rng.permutation(single)[:geared]]
        gear = bb.Coupling(
            "gear", {name: float(rng.normal()) for name in chosen}, higher={chosen[0]: (0.3,)}
        )
        at = {name: float(q[mechanism.joints[name].q.start]) for name in chosen}
        joints.append(replace(gear, offset=gear.value(at)))
    for n, kind in enumerate(forces):
        if single or kind != "tied":
            joints.append(element(rng, kind, f"force{n}", links, single[:4]))
    return mechanism, joints, q, v


def decidedly_alike(case, **options):
    """Twenty steps; both close to round-off, so that motions differ by what it is amplified by."""
    mechanism, joints, q, v = with_loops(case)
    forces = np.random.default_rng(case[0]).normal(0, 1, mechanism.nv)

    def make(solver):
        system = bb.System(mechanism, joints, dt=1e-3, solver=solver, **options)
        try:
            system.set_state(q, 0.3 * v)
            system.acceleration()
        except (AssemblyError, OverconstrainedError):
            assume(False)
        system.tau[:] = forces
        return system

    one, other = both(make)
    assume(decided(one) and other.status.margin > 1e-2)
    for _ in range(20):
        try:
            other.step()
        except StepError:  # accelerations too large for this step
            assume(False)
        # A guarded correction that is too long loses weak rows one by one in joint coordinates;
        # in those of links what the elimination left over, and the rest is shortened.
        assume(not other.status.guarded)
    one.rollout(20)
    for system in (one, other):
        assert max((gap.kept_metres for gap in system.evaluate().gaps), default=0.0) < 1e-12
    ends = [(system.q, system.v) for system in (one, other)]
    assume(other.status.margin > 1e-2)
    size = 1.0 + np.abs(ends[1][1]).max()
    assert np.abs(ends[0][0] - ends[1][0]).max() < 1e-9 * size
    assert np.abs(ends[0][1] - ends[1][1]).max() < 1e-8 * size


@given(several_loops)
def test_random_mechanisms_move_as_in_joint_coordinates(case):
    decidedly_alike(case)


@pytest.mark.parametrize("make", [row, ladder])
def test_long_motion_of_many_loops(make):
    mechanism, joints = make(8)

    def system(solver):
        found = bb.System(mechanism, joints, dt=1e-3, solver=solver)
        found.assemble({"rod0": 0.9} if make is row else {"left0": 0.3, "left3": -0.5})
        return found

    one, other = both(system)
    recordings = [s.rollout(500, every=50) for s in (one, other)]
    np.testing.assert_allclose(recordings[0].q, recordings[1].q, atol=1e-9)
    np.testing.assert_array_equal(recordings[0].t, recordings[1].t)
    assert max(gap.metres for gap in one.evaluate().gaps) < 1e-12
    energies = [s.evaluate().energy for s in (one, other)]
    assert abs(energies[0] - energies[1]) < 1e-8


def test_singular_positions_are_passed_as_in_joint_coordinates(monkeypatch):
    """A row of parallelograms passes its flat position, where as many ranks are lost as it has."""
    mechanism, joints = row(3)

    def system(solver):
        euler = "semi_implicit_euler"
        found = bb.System(mechanism, joints, dt=1 / 240, integrator=euler, solver=solver)
        rods = {f"rod{k}": np.pi / 2 for k in range(4)}
        couplers = {f"coupler{k}": -np.pi / 2 for k in range(1, 4)}
        rates = {name: -1.0 for name in rods}, {name: 1.0 for name in couplers}
        found.assemble({**rods, **couplers}, {**rates[0], **rates[1]})
        return found

    one, other = both(system)
    monkeypatch.setattr(one._active.solver, "run_whole", None)  # handed over
    ranks = set()
    for _ in range(480):
        one.step()
        other.step()
        ranks.add(other.status.rank)
        assert max(gap.kept_metres for gap in one.evaluate().gaps) < 1e-12
        level = one.q[[mechanism.joint(f"coupler{k}").q.start for k in range(1, 4)]]
        level += one.q[[mechanism.joint(f"rod{k}").q.start for k in range(3)]]
        assert np.abs(level).max() < 1e-6  # the couplers stay level: its branch
    assert abs(one.evaluate().energy - other.evaluate().energy) < 1e-6


def geared(n):
    """Rods on the ground that hold couplers up, each geared with the next."""
    mechanism, _ = row(n)
    rods = [f"rod{k}" for k in range(n + 1)]
    pairs = zip(rods[:-1], rods[1:], strict=True)
    return mechanism, [bb.Coupling(f"gear to {b}", {a: 1.0, b: -1.0}) for a, b in pairs]


@pytest.mark.parametrize("make", [row, ladder, geared])
def test_fronts_do_not_grow_with_the_number_of_loops(make):
    """So that the cost is linear: the largest front of 60 loops is that of 10."""
    widest = []
    for n in (10, 60):
        mechanism, joints = make(n)
        encoded = encode(mechanism, joints)
        plan = minimum_degree_order(mechanism, encoded)
        fronts = lay_out(mechanism, encoded, plan, 0)[0]
        assert len(plan.basis) == 3  # plane motion
        widest.append(int((fronts["rates"] + fronts["own_size"] + fronts["boundary_size"]).max()))
        assert len(fronts) == len(mechanism.bodies) - 1
    assert widest[0] == widest[1]


def test_the_path_is_chosen_by_cost():
    ways = []
    for n in (2, 50):
        mechanism, joints = row(n)
        system = bb.System(mechanism, joints)
        rods = {f"rod{k}": 0.9 for k in range(n + 1)}
        system.assemble(rods, guess={f"coupler{k}": -0.9 for k in range(1, n + 1)})
        ways.append(type(system._active.solver.stepper))
    assert ways == [type(None), SparseStepper]


def test_settings_and_failures_reach_link_coordinates():
    """Gravity, springs and tendons at the step's end, passes, records across hand-overs."""
    mechanism, joints = ladder(4)
    across = bb.Frame("left1"), bb.Frame("right2", (1, 0, 0))
    joints.append(bb.Spring("across", *across, stiffness=3e2, damping=20.0, length=1.0))
    over = bb.Frame("right1", (0.5, 0, 0)), bb.Frame("left3", (0.5, 0, 0))
    joints.append(bb.Spring("over", *across, stiffness=20.0, damping=30.0, length=3.0, via=over))
    joints.append(bb.Tendon("sum", {"left0": 1.0, "left1": -0.7, "rung2": 0.4}, 2e2, 40.0))
    mechanism.axes["stiffness"][:3], mechanism.axes["damping"][:3] = 3e4, 2.0
    mechanism.axes["rest"][:3] = 0.1

    def system(solver):
        found = bb.System(mechanism, joints, dt=2e-3, springs="implicit", solver=solver)
        found.assemble({"left0": 0.2})
        return found

    one, other = both(system)
    for s in (one, other):
        s.gravity = (1.0, -3.0, 0.0)
        s.rollout(100)
    np.testing.assert_allclose(one.q, other.q, atol=1e-10)
    assert not isinstance(one._active.solver.stepper, IslandStepper)
