"""Derivatives of a step against differences of steps; what they promise of the loops."""

import numpy as np
import pytest
from _mechanisms import random_mechanism, random_state
from numpy.testing import assert_allclose
from scipy.spatial.transform import Rotation
from support.closed_mechanisms import closed_system, led_weld
from support.richardson import moved, rate_of
from test_elements import SPRINGS

import bulletbridge as bb
from bulletbridge.engine.records import CORRECTION
from bulletbridge.engine.step_derivatives import LONGEST
from bulletbridge.engine.tasks import STEP
from bulletbridge.errors import UnsupportedError
from bulletbridge.mechanism.records import FREE, PRISMATIC, REVOLUTE, SPHERICAL

METHODS = ("verlet", "semi_implicit_euler", "rk4")
KINDS = [REVOLUTE, SPHERICAL, PRISMATIC, SPHERICAL]
STEPS = 4e-5, 2e-3, 0.5
"""Of differences by displacements, rates and forces: far off the loops a step is no plain one, and
what a force does in one step is small."""


def displacement(mechanism, q, there):
    """By how much (nv,) one configuration is displaced into another."""
    found = np.zeros(mechanism.nv)
    for joint in mechanism.joints.values():
        a, b, k = q[joint.q], there[joint.q], joint.v.start
        if joint.is_single:
            found[joint.v] = b - a
            continue
        old, new = Rotation.from_quat(a[-4:]), Rotation.from_quat(b[-4:])
        free = joint.kind == "free"
        found[k : k + 3] = (new * old.inv() if free else old.inv() * new).as_rotvec()
        if free:
            found[k + 3 : k + 6] = b[:3] - a[:3]
    return found


def differences(system, found):
    """The derivatives of a step by extrapolated differences: two matrices, by states and forces."""
    solver, mechanism = system._active.solver, system.mechanism
    q, v, t, tau, nv = (
        solver.q.copy(),
        solver.v.copy(),
        solver.t,
        solver.tau[0].copy(),
        len(solver.v),
    )

    def end(change):
        solver.put(moved(mechanism, q, change[:nv]), v + change[nv : 2 * nv], t)
        solver.tau[0] = tau + change[2 * nv :]
        assert solver.run(STEP, 1) == 0
        return np.concatenate([displacement(mechanism, found.q, solver.q), solver.v - found.v])

    columns = []
    for k, unit in enumerate(np.eye(3 * nv)):
        columns.append(rate_of(lambda s, unit=unit: end(s * unit), STEPS[k // nv]))
    solver.put(q, v, t)
    solver.tau[0] = tau
    whole = np.array(columns).T
    return whole[:, : 2 * nv], whole[:, 2 * nv :]


def require_step_derivatives(system):
    """What is told of a step is what differences of steps say."""
    system.acceleration()  # assembles what is closed already
    state = system.snapshot()
    found = system.step_derivatives()
    assert np.array_equal(system.snapshot(), state), "the step is not made"
    A, B = differences(system, found)
    nv = len(system.v)
    scale = np.abs(A).max()
    # differences off the loops are good for their step over the length, to the order that is left
    assert_allclose(found.A[:, nv:], A[:, nv:], rtol=0, atol=1e-8 * scale)
    assert_allclose(found.A[:, :nv], A[:, :nv], rtol=0, atol=2e-8 * scale)
    assert_allclose(found.B, B, rtol=0, atol=1e-8 * np.abs(B).max())


@pytest.mark.parametrize("method", METHODS)
def test_steps_of_trees_with_springs_and_dampers(method):
    rng = np.random.default_rng(1)
    mechanism = random_mechanism(rng, [FREE, REVOLUTE, SPHERICAL, PRISMATIC])
    single = mechanism.axes["q"] >= 0
    mechanism.axes["damping"][single], mechanism.axes["stiffness"][single] = 0.7, 5.0
    mechanism.axes["armature"] = 0.1
    system = bb.System(mechanism, integrator=method, dt=5e-3)
    system.set_state(*random_state(rng, mechanism))
    system.tau[:] = rng.normal(size=mechanism.nv)
    require_step_derivatives(system)


@pytest.mark.parametrize("springs", ["explicit", None])
@pytest.mark.parametrize("name", ["spring", "torsion", "bushing", "rope", "tendon", "slack tendon"])
def test_elements_that_act_at_the_end_of_a_step(name, springs):
    """Dampers in any case, springs unless explicit: both are in the metric of the step."""
    rng = np.random.default_rng(2)
    mechanism = random_mechanism(rng, [FREE, REVOLUTE, SPHERICAL, PRISMATIC, REVOLUTE])
    rod = bb.Distance("rod", bb.Frame("link1", (0.2, 0, 0)), bb.Frame("link5"), 0.9)
    method = "semi_implicit_euler"
    system = bb.System(mechanism, [SPRINGS[name], rod], integrator=method, springs=springs, dt=1e-3)
    system.assemble(guess={"joint5": 0.3})
    system.set_state(v=0.3 * rng.normal(size=mechanism.nv))
    assert system._active.solver.control[0]["implicit"] == (springs is None)
    require_step_derivatives(system)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("model", ["ball", "revolute", "point_on_line", "rolling", "soft_finger"])
def test_steps_with_loops(method, model):
    system = closed_system((102, True, KINDS, model, False), integrator=method)
    system.tau[:] = np.linspace(-1.0, 1.0, len(system.v))
    require_step_derivatives(system)


@pytest.mark.parametrize("method", METHODS[:2])
def test_steps_that_are_corrected_far(method):
    """Passes of a correction commute where joints have one axis each, however long they are."""
    kinds = [REVOLUTE, PRISMATIC, REVOLUTE, REVOLUTE, PRISMATIC]
    system = closed_system((102, False, kinds, "ball", False), integrator=method)
    system.dt = 4e-2
    (copy,) = system.fork(1)
    copy.step(write=False)
    correction = copy._active.solver.vectors[CORRECTION, : len(system.v)]
    assert np.abs(correction).max() > 5.0 * LONGEST
    require_step_derivatives(system)


@pytest.mark.parametrize("method", METHODS)
def test_steps_of_driven_loops_and_forces_of_time(method):
    forces = {"joint1": lambda t: np.sin(9.0 * t)}
    require_step_derivatives(led_weld(KINDS, method, forces=forces))


def drag(t, q, v):
    return np.sin(3.0 * q["joint2"]) - 0.7 * v["joint2"] * abs(v["joint2"]) + 0.2 * t


def swirl(t, q, v, frame):
    return np.cross(frame.position, frame.velocity) - 0.5 * frame.R[:, 1]


@pytest.mark.parametrize("method", METHODS)
def test_steps_under_forces_of_the_state(method):
    """On a joint and, by the frame where it acts, on a link."""
    wrench = bb.Wrench(bb.Frame("link3", (0.1, 0.2, 0)), force=swirl, torque=(0.1, 0.2, -0.3))
    forces = {"joint2": drag, "blow": wrench}
    system = closed_system((102, True, KINDS, "ball", False), integrator=method, forces=forces)
    require_step_derivatives(system)


def test_a_force_of_the_state_that_fails_says_so():
    def broken(t, q, v):
        raise ArithmeticError("no force")

    mechanism = random_mechanism(np.random.default_rng(3), [REVOLUTE])
    system = bb.System(mechanism, dt=1e-3, forces={"joint1": broken})
    with pytest.raises(ArithmeticError, match="no force"):
        system.step_derivatives()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("twice", [False, True])
def test_changes_move_along_the_loops(method, twice):
    """J δq⁺ = 0 and J δv⁺ + ∂(J v⁺)/∂q δq⁺ = 0, whatever the change is, redundant rows too."""
    system = closed_system((7, True, KINDS, "weld", twice), integrator=method)
    found, solver = system.step_derivatives(), system._active.solver
    nv, end = len(system.v), system.t + system.dt
    whole = np.hstack([found.A, found.B])
    by_q, by_v = whole[:nv], whole[nv:]
    J = solver.terms(found.q, found.v, end).J
    size = np.abs(J).max()
    assert_allclose(J @ by_q, 0.0, atol=1e-12 * size * np.abs(by_q).max())

    def rates(change):
        return solver.terms(moved(system.mechanism, found.q, change), found.v, end).J @ found.v

    for column in range(0, 3 * nv, 4):
        turning = rate_of(lambda s, c=column: rates(s * by_q[:, c]))
        left = J @ by_v[:, column] + turning
        assert_allclose(left, 0.0, atol=1e-9 * size * max(1.0, np.abs(by_v[:, column]).max()))


def test_what_has_no_step_derivatives_is_named():
    def refused(match, **options):
        system = bb.load("four_bar", **options).system
        with pytest.raises(UnsupportedError, match=match):
            system.step_derivatives()

    refused("steps other than those of", integrator="dop853")
    refused("corrections along other directions", integrator="verlet", correction="current")
    refused("steps in Python", integrator="heun")


def test_a_step_beyond_a_limit_says_so():
    mechanism = random_mechanism(np.random.default_rng(3), [REVOLUTE])
    mechanism.axes["limited"], mechanism.axes["lower"], mechanism.axes["upper"] = 1, -1.0, 1e-4
    system = bb.System(mechanism, dt=1e-3)
    system.set_state(v=np.ones(1))
    with pytest.raises(UnsupportedError, match="leads beyond a limit of a joint; take central"):
        system.step_derivatives()


def test_the_method_may_change_with_the_step():
    """Strong dampers act at the end of long steps, by another integrator."""
    mechanism = random_mechanism(np.random.default_rng(3), [REVOLUTE, PRISMATIC, REVOLUTE])
    mechanism.axes["damping"] = 300.0
    system = bb.System(mechanism, dt=1e-6)
    system.set_state(v=np.ones(3))
    system.acceleration()
    found = []
    for dt in (1e-6, 1e-2):
        system.dt = dt
        found.append(system.integrator)
        require_step_derivatives(system)
    assert found == ["verlet", "semi_implicit_euler"]


def test_what_was_told_stays_and_forces_of_now_count():
    """A further call writes nothing into what an earlier one has told, whatever array tau is."""
    system = bb.load("four_bar", dt=1e-3).system
    first = system.step_derivatives()
    kept = [np.array(x) for x in first[:4]]
    nv, change = system.mechanism.nv, np.array([1e-3, -2e-3, 5e-4])
    for replaced in (False, True):
        if replaced:
            system._active.solver.tau = np.zeros((1, nv))
        system.tau[:] = change
        pushed = system.step_derivatives()
        # of second order: the square of the share of the rates, which are near one, that they add
        size = np.abs(first.B[nv:] @ change).max()
        assert_allclose(pushed.v - first.v, first.B[nv:] @ change, atol=size**2)
        system.tau[:] = 0.0
        for was, now, again in zip(kept, first[:4], system.step_derivatives()[:4], strict=True):
            assert np.array_equal(was, now)
            assert np.array_equal(was, again)
