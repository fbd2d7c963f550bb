"""Charts of the loops, compiled: orders, closed loops, reduced equations, how many; what fails."""

# what a chart is made of is not for users
# pyright: reportPrivateUsage=false

import copy
import pickle

import numpy as np
import pytest
from _mechanisms import PRISMATIC, REVOLUTE, SPHERICAL, random_mechanism, random_state
from charts import off_projector
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from support.closed_mechanisms import closed_system, decided
from support.planar import four_bar, hanging, planar_chain, windows
from support.users_constraints import Failing

import bulletbridge as bb
from bulletbridge.compilation.jit import kernel
from bulletbridge.engine.chart import MOST_TURN
from bulletbridge.errors import BulletBridgeError, ModelError, StepError
from bulletbridge.mechanism.kinematics import (
    chart_acceleration,
    chart_coordinates,
    chart_rate,
    chart_velocity,
    displace,
)
from bulletbridge.mechanism.records import FREE
from bulletbridge.system.options import ON_CHARTS

ORDERS = {"charts": 4, "charts_trapezoidal": 2}
SPATIAL = (3, True, [SPHERICAL, REVOLUTE, SPHERICAL, REVOLUTE, SPHERICAL], "ball", False)
REDUNDANT = (5, True, [SPHERICAL] * 4, "weld", True)


@kernel
def maps(bodies, start, q, v, vdot, out):
    """Coordinates, their rates and second rates, and the velocity back, for a test."""
    chart_coordinates(bodies, start, q, out[0])
    chart_rate(bodies, out[0], v, out[1])
    chart_acceleration(bodies, out[0], out[1], v, vdot, out[2])
    chart_velocity(bodies, out[0], out[1], out[3])


@pytest.mark.parametrize("size", [1e-9, 1e-3, 0.31, 0.33, 2.0])
def test_coordinates_and_their_rates_are_those_of_the_motion(size):
    """Against central differences along q displaced by a curve of velocities; and back."""
    rng = np.random.default_rng(1)
    mechanism = random_mechanism(rng, [FREE, SPHERICAL, REVOLUTE, PRISMATIC], branching=0.0)
    start, v = random_state(rng, mechanism)
    u, vdot = rng.normal(0, 1, mechanism.nv), rng.normal(0, 1, mechanism.nv)
    u *= size / np.abs(u).max()
    q = np.empty_like(start)
    displace(mechanism.bodies, start, u, 1.0, q)

    def at(t: float) -> np.ndarray:
        """Coordinates after a short time t, by the fourth-order flow of v + t vdot."""
        end, out = np.empty_like(q), np.zeros((4, mechanism.nv))
        displace(mechanism.bodies, q, t * (v + 0.5 * t * vdot), 1.0, end)
        maps(mechanism.bodies, start, end, v, vdot, out)
        return out

    here, h = at(0.0), 1e-4
    assert_allclose(here[0], u, rtol=0, atol=1e-14)
    assert_allclose(here[3], v, rtol=0, atol=1e-13)
    assert_allclose((at(h)[0] - at(-h)[0]) / (2 * h), here[1], rtol=0, atol=1e-6)
    second = (at(h)[0] - 2 * here[0] + at(-h)[0]) / h**2
    assert_allclose(second, here[2], rtol=0, atol=1e-5)


@pytest.mark.parametrize("integrator", ON_CHARTS)
@pytest.mark.parametrize("case", [SPATIAL, REDUNDANT], ids=["ball", "weld twice"])
def test_order_where_rotations_do_not_commute(integrator, case):
    """A floating chain with spherical joints over several charts, against DOP853."""
    ends = []
    for n in (0, 1, 2, 4):
        name = integrator if n else "dop853"
        system = closed_system(case, integrator=name, rtol=1e-13)
        system.set_state(v=0.5 * system.v, t=0.0)
        steps = max(1, 8 * n)
        for solver in (system._active.full, system._active.solver):
            solver.control[0]["dt"] = 0.8 / steps
        system.rollout(steps)
        ends.append(system.v)
    assert system.status.charts > 1
    errors = [np.abs(end - ends[0]).max() for end in ends[1:]]
    slopes = -np.diff(np.log2(errors))
    assert slopes[-1] == pytest.approx(ORDERS[integrator], abs=0.4)


chains = st.tuples(
    st.integers(0, 10**6),
    st.booleans(),
    st.lists(st.sampled_from([REVOLUTE, PRISMATIC, SPHERICAL]), min_size=3, max_size=5),
    st.sampled_from(["ball", "weld", "universal", "revolute"]),
    st.booleans(),
)


@settings(max_examples=15)
@given(chains, st.sampled_from(ON_CHARTS))
def test_random_mechanisms_stay_closed_and_agree_with_the_projector(case, integrator):
    """Rows that repeat others too; the reduced equations of the chart give its accelerations."""
    try:
        closed_system(case, integrator="rk4")
    except BulletBridgeError:
        return  # a pose that is singular, or a loop that leaves nothing free
    system = closed_system(case, integrator=integrator)
    if not decided(system):
        return
    system.set_state(v=0.3 * system.v)
    for _ in range(5):
        system.step()
        seen = system.evaluate()
        assert max(seen.largest("kept_metres"), seen.largest("kept_radians")) < 1e-12
        solver = system.compiled()[0]
        terms = solver.terms(system.q, system.v, system.t)
        rates = solver.encoded.scale * (terms.J @ system.v + terms.g_t)
        assert np.abs(rates).max(initial=0.0) < 1e-12 * max(1.0, np.abs(system.v).max())
    if system.status.margin > 0.01:
        assert off_projector(system) < 1e-10


@pytest.mark.parametrize("integrator", ON_CHARTS)
def test_a_four_bar_that_turns_takes_new_charts(integrator):
    system = bb.load("four_bar", "new", integrator=integrator, dt=2e-3, limits=False).system
    assert system.status.charts == 0
    energy = system.evaluate().energy
    system.rollout(1000)
    assert 3 <= system.status.charts <= 24
    assert f"{integrator} ({system.status.charts} charts)" in repr(system)
    exact = 1e-7 if integrator == "charts" else 1e-2
    assert system.evaluate().energy == pytest.approx(energy, rel=exact)
    system.set_state(t=0.0)
    assert system.status.charts == 0


def test_a_chart_ends_where_a_row_of_next_to_no_length_turns():
    """Three rods between hinges 0.1 mm less than their reach apart fall; nothing takes energy.

    Their angles are some 0.01 rad, and the row along the chain turns with them. Half of the step is
    a sixteenth of the energy that it is off by; a quarter of that allows for higher orders.
    """
    chain, off = planar_chain([1.0] * 3, [1.0] * 3), list[float]()
    ends = bb.Frame("l2", (1.0, 0, 0)), bb.Frame("world", (3.0 - 1e-4, 0, 0))
    loop = bb.LoopJoint("tip", bb.JointModel.BALL, *ends)
    for dt in (1 / 960, 1 / 1920):
        system = bb.System(chain, [loop], integrator="charts", dt=dt)
        system.assemble(guess={"j0": -0.01, "j1": 0.02, "j2": -0.01})
        first = system.evaluate().energy
        system.rollout(round(0.25 / dt))
        off.append(abs(system.evaluate().energy - first))
    assert off[1] < off[0] / 4 and off[0] < 1e-3


def test_a_tree_of_hinges_needs_one_chart_and_a_top_one_for_each_turn():
    """Charts end where the maps of rotations do, and nowhere else without loops."""
    mechanism = planar_chain([1.0, 0.7], [1.0, 1.0])
    tree = bb.System(mechanism, integrator="charts", dt=0.01)
    tree.set_state(v=np.array([3.0, -1.0]))
    tree.rollout(300)
    assert tree.status.charts == 1 and np.abs(tree.q).max() > np.pi
    rng = np.random.default_rng(0)
    body = bb.System(random_mechanism(rng, [FREE], gravity=False), integrator="charts", dt=0.01)
    body.set_state(v=np.array([0.0, 0.0, 2.0, 0.0, 0.0, 0.0]))
    body.rollout(300)
    turned = 300 * 0.01 * np.linalg.norm(body.v[:3])
    assert body.status.charts == pytest.approx(1 + turned / MOST_TURN, abs=1.0)


def five_bar(integrator: str, dt: float, **options) -> bb.System:
    """Four links between two hinges of the world, the first one driven, a torque on the last."""
    mechanism = planar_chain([0.5, 0.9, 0.8, 0.6], [1.0, 1.5, 1.2, 0.8])
    pin = bb.LoopJoint(
        "pin", bb.JointModel.BALL, bb.Frame("world", (1.0, 0, 0)), bb.Frame("l3", (0.6, 0, 0))
    )
    drive = bb.Coupling("drive", {"j0": 1.0}, motion=bb.Motion(z=bb.Sine(0.4, 3.0, 0.2, 1.0)))
    forces = {"j3": lambda t: 2.0 * np.sin(5.0 * t)}
    system = bb.System(
        mechanism, [pin, drive], forces=forces, integrator=integrator, dt=dt, rtol=None, **options
    )
    system.assemble(q={"j1": -1.2})
    return system


@pytest.mark.parametrize("integrator", ON_CHARTS)
def test_prescribed_motions_and_forces_are_taken_at_the_stages(integrator):
    """Order 4 and 2 on a loop with a driven crank, against DOP853."""
    reference = five_bar("dop853", 0.005)
    reference.rollout(80)
    errors = []
    for n in (40, 80, 160):
        system = five_bar(integrator, 0.4 / n)
        system.rollout(n)
        seen = system.evaluate()
        assert seen.largest("metres") < 1e-12 and seen.largest("rate_metres") < 1e-12
        errors.append(np.abs(system.v - reference.v).max())
    assert -np.diff(np.log2(errors))[-1] == pytest.approx(ORDERS[integrator], abs=0.4)


@pytest.mark.parametrize("integrator", ON_CHARTS)
def test_a_mechanism_without_freedom_follows_its_motion(integrator):
    motion = bb.Motion(z=bb.Sine(0.4, 1.3, 0.2, 1.0))
    drive = bb.Coupling("drive", {"j0": 1.0}, motion=motion)
    system = four_bar(extra=[drive], integrator=integrator, dt=1e-3)
    system.assemble()
    assert system.dof == 0
    for _ in range(100):
        system.step()
        target = motion.z(system.t)
        assert abs(system.q[0] - target[0]) < 1e-12 and abs(system.v[0] - target[1]) < 1e-11


def test_the_implicit_rule_is_stable_where_explicit_ones_are_not():
    """A stiff hinge in a loop: rates times dt of 1e3; energy of springs alone is kept."""
    mechanism = planar_chain([0.4, 0.9, 0.7], [0.8, 1.8, 1.4])
    mechanism.axes["damping"][1] = 1e5
    pin = bb.LoopJoint(
        "pin", bb.JointModel.BALL, bb.Frame("world", (1.0, 0, 0)), bb.Frame("l2", (0.7, 0, 0))
    )
    system = bb.System(mechanism, [pin], integrator="charts_trapezoidal", dt=0.01)
    system.assemble({"j0": 1.0})
    fine = bb.System(mechanism, [pin], integrator="radau", rtol=1e-10, dt=0.5)
    fine.assemble({"j0": 1.0})
    fine.step()
    system.rollout(50)
    assert_allclose(system.q, fine.q, rtol=0, atol=1e-4)


def test_islands_have_charts_of_their_own():
    """Two pendulums that nothing joins, as one and island by island; the count is of both."""
    ends, counts = [], []
    for solver in ("dense", "islands"):
        rng = np.random.default_rng(2)
        mechanism = random_mechanism(rng, [FREE, FREE], gravity=False)
        links = list(mechanism.links)[1:]
        pins = [bb.LoopJoint(n, bb.JointModel.BALL, bb.Frame("world"), bb.Frame(n)) for n in links]
        system = bb.System(mechanism, pins, solver=solver, integrator="charts", dt=1e-3)
        system.assemble()
        system.set_state(v=np.concatenate([[1.0, 2.0, 0.5, 0, 0, 0], [-2.0, 0.3, 1, 0, 0, 0]]))
        system.rollout(1000)
        ends.append(system.q)
        counts.append(system.status.charts)
    assert_allclose(ends[0], ends[1], rtol=0, atol=1e-9)
    assert counts[0] >= 2 and counts[1] >= counts[0]


@pytest.mark.parametrize("integrator", ON_CHARTS)
def test_copies_go_on_with_the_same_bits(integrator):
    """Also after charts have changed, and in rollouts of many worlds."""
    system = hanging(integrator=integrator, dt=1e-3)
    system.assemble(v={"j0": 4.0})
    system.rollout(300)
    kept, twin = pickle.loads(pickle.dumps(system.save())), copy.deepcopy(system)
    system.rollout(200)
    end = system.q, system.v, system.status.charts
    for other in (twin, system):
        other.restore(kept)
        other.rollout(200)
        assert_array_equal(other.q, end[0])
        assert_array_equal(other.v, end[1])
        assert other.status.charts == end[2]
    system.restore(kept)
    q, v = np.stack([system.q, system.q]), np.stack([system.v, 0.5 * system.v])
    both = bb.rollout(system, q, v, steps=50)
    alone = bb.rollout(system, q[1:], v[1:], steps=50)
    assert_array_equal(both.q[1], alone.q[0])


def test_a_failure_of_a_constraint_of_mine_leaves_the_state():
    mine = Failing(bb.Frame("l1", (0.9, 0, 0)), 1.0)
    mechanism = planar_chain([0.5, 0.9, 0.3], [1.0, 1.0, 1.0])
    system = bb.System(mechanism, [mine], integrator="charts", dt=1e-3)
    system.assemble({"j0": 0.5})
    system.rollout(10)
    assert system.evaluate().largest("metres") < 1e-12
    assert system.status.charts == 1 and not system.status.guarded
    before = system.save()
    mine.broken = True
    with pytest.raises(ZeroDivisionError, match="mine"):
        system.step()
    assert_array_equal(system.q, before.q)
    mine.broken = False
    system.step()


def test_singular_positions_are_passed_in_parts_as_by_others():
    """Of a mechanism that folds flat ten times in ten seconds (IFToMM A02)."""
    system = windows(integrator="charts", rtol=None, dt=1 / 240)
    start = system.evaluate().energy
    for _ in range(24):
        system.rollout(24)
        seen = system.evaluate()
        assert seen.largest("metres") < 1e-12 and seen.largest("rate_metres") < 1e-12
        assert abs(seen.energy - start) < 1e-6 * 40.0


def test_a_step_that_no_chart_carries_is_an_error_and_leaves_the_state():
    """Links that would have to turn by many times a circle in a step."""
    system = four_bar(integrator="charts", dt=1e-3)
    system.assemble({"j0": 1.0}, v={"j0": 1.0})
    before = system.q, system.v, system.t
    system.tau[0] = 1e14
    with pytest.raises(StepError, match="restored"):
        system.rollout(3)
    assert_array_equal(system.q, before[0])
    assert_array_equal(system.v, before[1])
    system.tau[0] = 0.0
    system.rollout(10)
    assert system.evaluate().largest("metres") < 1e-12


@pytest.mark.parametrize("integrator", ON_CHARTS)
def test_what_charts_do_not_know_is_refused(integrator):
    with pytest.raises(ModelError, match="projector formulation alone; leave formulation out"):
        four_bar(integrator=integrator, formulation="elimination")
    for options in ({"passes": 2}, {"velocity_filter": False}):
        with pytest.raises(ModelError, match=f"{integrator} always corrects and filters; leave"):
            four_bar(integrator=integrator, **options)
    system = four_bar(integrator=integrator)
    system.assemble({"j0": 1.0})
    with pytest.raises(ModelError, match="semi_implicit_euler; leave integrator"):
        system.motors.set("j0", velocity=1.0)
        system.step()
    wheel = bb.System(
        random_mechanism(np.random.default_rng(0), [FREE]),
        [bb.LoopJoint("rolls", bb.JointModel.ROLLING, bb.Frame("world"), bb.Frame("link1"))],
        integrator=integrator,
    )
    with pytest.raises(ModelError, match="holds a velocity alone; give another integrator"):
        wheel.assemble()
