"""Forces that are functions of the state, and wrenches on links."""

import copy
import pickle
from dataclasses import replace

import numba
import numpy as np
import pybullet
import pytest
from _state_forces import push, push_compiled, swing, swing_compiled
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.spatial.transform import Rotation
from support.closed_mechanisms import closed_cases, closed_system, decided
from support.pinocchio_models import load as pinocchio
from support.small_trees import free_body, pendulum

import bulletbridge as bb
from bulletbridge import MovingFrame
from bulletbridge.errors import ModelError
from bulletbridge.viewer.overlay import marks_of

WORLD = bb.Frame("world")
CASES = closed_cases(5, 6, ("ball",))


def four_bar(**options):
    """The crank of a four-bar, swung and pushed, with a wrench on its coupler."""
    forces = {"crank": swing, "blow": bb.Wrench(bb.Frame("coupler", (0.3, 0.1, 0)), force=push)}
    return bb.load("four_bar", "new", forces=forces, **options).system


def ended(make, duration, steps, **options):
    system = make(dt=duration / steps, **options)
    system.rollout(steps)
    return np.concatenate([system.q, system.v])


ORDERS = [
    ("semi_implicit_euler", 1), ("verlet", 2), ("rk4", 4), ("heun", 2), ("nystrom4", 4),
    ("trapezoidal", 2), ("symmetric", 2), ("euler", 1),
]  # fmt: skip


@pytest.fixture(scope="module")
def exact():
    return ended(four_bar, 0.4, 1, integrator="dop853", rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize(("integrator", "order"), ORDERS)
def test_integrators_keep_their_order(exact, integrator, order):
    """A loop, with a torque and a wrench of the state that are not linear in it."""
    steps = (128, 256) if order == 1 else (32, 64)
    errors = [np.abs(ended(four_bar, 0.4, n, integrator=integrator) - exact).max() for n in steps]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.3)


@pytest.mark.parametrize("formulation", ["elimination", "quasi_velocities", "modular", "proximal"])
def test_formulations_in_python_have_them(formulation):
    """The compiled RK4 has the same stages."""
    compiled = ended(four_bar, 0.4, 40, integrator="rk4")
    end = ended(four_bar, 0.4, 40, integrator="rk4", formulation=formulation)
    assert_allclose(end, compiled, atol=1e-10)


def test_methods_with_error_control_agree(exact):
    """Radau's tolerance, over a time in which errors grow by less than a hundred."""
    end = ended(four_bar, 0.4, 1, integrator="radau", rtol=1e-11)
    assert_allclose(end, exact, atol=1e-8)


@settings(max_examples=15)
@given(case=CASES, frame=st.integers(0, 2))
def test_wrenches_are_their_work_on_virtual_motions(case, frame):
    """Against Jᵀ of ``kinematics``, in axes of the link, of the world and of another link."""
    n = len(case[2]) + case[1]
    place = bb.Frame(f"link{n}", (0.3, -0.2, 0.1), (0.4, -0.3, 0.8))
    axes = (None, bb.Frame("world"), bb.Frame("link1", (0, 0, 0), (0.1, 0.2, 0.3)))[frame]

    seen = []

    def force(t, q, v, frame):
        seen.append(frame)
        return np.sin(q[0]) + v[1], 2.0 * t, frame.velocity[0] - frame.position[2]

    wrench = bb.Wrench(place, force, (0.3, -0.1, 0.7), axes)
    system = closed_system(case, forces={"blow": wrench})
    q, v, t = system.q, system.v, system.t
    R, at = system.kinematics().point(axes or place).R_W, system.kinematics().point(place)
    moving = MovingFrame(at.p_W, at.R_W, at.J @ v, at.J_angular @ v)
    for got, known in zip(seen[-1], moving, strict=True):
        size = 1.0 + max(np.abs(moving.position).max(), np.abs(v).max())
        assert_allclose(got, known, atol=1e-13 * size * len(v))
    expected = system.wrench(place, R @ force(t, q, v, moving), R @ (0.3, -0.1, 0.7))
    bare = closed_system(case)
    bare.set_state(q, v, t)
    found = bare.terms().h - system.terms().h
    assert_allclose(found, expected, atol=1e-13 * max(1.0, np.abs(bare.terms().h).max()))
    if decided(system):  # what the step takes is what the terms tell
        bare.tau[:] = expected
        size = np.abs(bare.acceleration()).max()
        assert_allclose(system.acceleration(), bare.acceleration(), atol=1e-9 * max(1.0, size))
    told = system.applied_wrenches()["blow"]
    assert told.power == pytest.approx(expected @ v, abs=1e-12 * np.abs(expected).sum())
    assert system.applied_power() == pytest.approx(told.power)


@settings(max_examples=10)
@given(case=CASES)
def test_a_force_against_the_rate_is_damping_of_the_joint(case):
    """RK4 takes both at the same stages; they differ by round-off, which loops amplify."""
    damped = closed_system(case, integrator="rk4", formulation="projector")
    if not decided(damped):
        return
    joint = list(damped.mechanism.joints)[-1]
    part = damped.mechanism.joints[joint].v
    pushed = closed_system(
        case,
        integrator="rk4",
        forces={joint: lambda t, q, v: -0.7 * v[part]}
        if part.stop - part.start > 1
        else {joint: lambda t, q, v: -0.7 * v[part.start]},
    )
    axes = damped.mechanism.axes.copy()
    axes["damping"][part] += 0.7
    mechanism = replace(damped.mechanism, axes=axes)
    system = bb.System(mechanism, damped.constraints, integrator="rk4", dt=1e-3)
    for one in (system, pushed):
        one.set_state(damped.q, damped.v, 0.0)
        one.rollout(10)
    size = max(1.0, np.abs(system.v).max())
    assert_allclose(pushed.q, system.q, atol=1e-11 * size)
    assert_allclose(pushed.v, system.v, atol=1e-9 * size)


def test_a_spring_written_as_a_wrench_is_a_bushing():
    """Six ways, on a body that tumbles; the bushing's axes are those of the world.

    By coordinates of the body, then by how a frame moves that is turned and off its centre.
    """
    k, d, kt = np.array([30.0, 20.0, 40.0]), np.array([0.3, 0.2, 0.1]), 5.0

    def force(t, q, v):
        return -k * q[:3] - d * v[3:]

    def torque(t, q, v):
        return -kt * Rotation.from_quat(q[3:7]).as_rotvec()

    def pull(t, q, v, frame):
        return -k * frame.position - d * frame.velocity

    def twist(t, q, v, frame):
        return -kt * Rotation.from_matrix(frame.R).as_rotvec()

    world = bb.Frame("world")
    for frame, functions in (
        (bb.Frame("body"), (force, torque)),
        (bb.Frame("body", (0.2, -0.1, 0.3), (0.3, 0.1, -0.2)), (pull, twist)),
    ):
        bushing = bb.Bushing("b", world, frame, tuple(k), tuple(d), (kt,) * 3)
        wrench = bb.Wrench(frame, *functions, world)
        ends = []
        for constraints, forces in (([bushing], {}), ([], {"spring": wrench})):
            options = {"forces": forces, "integrator": "rk4", "dt": 0.01}
            system = bb.System(free_body(2.0), constraints, **options)
            system.set_state(v=(0.5, -0.3, 0.4, 1.0, -0.5, 0.2))
            system.rollout(100)
            ends.append(np.concatenate([system.q, system.v]))
        assert_allclose(ends[1], ends[0], atol=1e-12)


def test_a_wrench_is_pinocchios_external_force():
    """By Jᵀ of that library where a model starts."""
    closed, at = pinocchio("two_arms"), (0.1, 0.2, -0.05)
    link, F, T = closed.content["loops"][0]["b"]["link"], (1.0, -2.0, 0.5), (0.3, 0.1, -0.2)
    wrench = bb.Wrench(bb.Frame(link, at), F, T, bb.Frame("world"))
    with (
        bb.load("two_arms", "new", forces={"blow": wrench}) as pushed,
        bb.load("two_arms", "new") as free,
    ):
        system, bare = pushed.system, free.system
        q = np.array(closed.q)
        for name, joint in system.mechanism.joints.items():
            q[closed.joint(name).idx_q] = system.q[joint.q][0]
        _, J = closed.frame(q, {"link": link, "xyz": at})
        bare.set_state(system.q, system.v)
        found, expected = bare.terms().h - system.terms().h, J.T @ np.r_[F, T]
        for name, joint in system.mechanism.joints.items():
            assert found[joint.v.start] == pytest.approx(
                expected[closed.joint(name).idx_v], abs=1e-10
            )


def test_a_constant_wrench_is_bullets_external_force():
    """One step of a free body in Bullet, whose damping is off."""
    half, force, at, dt = (0.1, 0.2, 0.3), (1.0, 2.0, -0.5), (0.1, 0.2, 0.3), 1 / 240
    client = pybullet.connect(pybullet.DIRECT)
    try:
        shape = pybullet.createCollisionShape(
            pybullet.GEOM_BOX, halfExtents=half, physicsClientId=client
        )
        body = pybullet.createMultiBody(2.0, shape, physicsClientId=client)
        pybullet.changeDynamics(body, -1, linearDamping=0, angularDamping=0, physicsClientId=client)
        moments = pybullet.getDynamicsInfo(body, -1, physicsClientId=client)[2]
        pybullet.applyExternalForce(
            body, -1, force, at, pybullet.WORLD_FRAME, physicsClientId=client
        )
        pybullet.stepSimulation(physicsClientId=client)
        linear, angular = pybullet.getBaseVelocity(body, physicsClientId=client)
    finally:
        pybullet.disconnect(client)
    wrench = bb.Wrench(bb.Frame("body", at), force)
    system = bb.System(
        free_body(2.0, moments, (0, 0, 0)), forces={"blow": wrench}, dt=dt,
        integrator="semi_implicit_euler",
    )  # fmt: skip
    system.step()
    assert_allclose(system.v, np.r_[angular, linear], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("integrator", ["dop853", "rk4"])
def test_the_energy_is_what_forces_have_done(integrator):
    """Simpson's rule over the power at records, whose error is that of order 4 of the step."""
    system = four_bar(dt=5e-3, integrator=integrator)

    def energy():
        return system.evaluate().energy

    first, powers = energy(), [system.applied_power()]
    for _ in range(80):
        system.step()
        powers.append(system.applied_power())
    powers = np.array(powers)
    work = 5e-3 / 3 * (powers[0] + powers[-1] + 4 * powers[1::2].sum() + 2 * powers[2:-1:2].sum())
    assert abs(work) > 0.1
    assert energy() - first == pytest.approx(work, abs=2e-6)


@pytest.mark.parametrize("integrator", ["verlet", "rk4", "dop853", "semi_implicit_euler"])
def test_compiled_functions_are_the_same_forces(integrator):
    plain = {"pin": swing, "blow": bb.Wrench(bb.Frame("bar", (1, 0, 0)), push, (0.1, 0, 0))}
    compiled = {
        "pin": swing_compiled,
        "blow": bb.Wrench(bb.Frame("bar", (1, 0, 0)), push_compiled, (0.1, 0, 0)),
    }
    ends = [ended(pendulum, 0.5, 50, integrator=integrator, forces=f) for f in (plain, compiled)]
    assert_allclose(ends[1], ends[0], atol=1e-13)


def test_sparse_steps_have_them():
    ends = []
    for solver in ("dense", "sparse"):
        wrench = bb.Wrench(bb.Frame("coupler", (0.1, 0, 0)), push_compiled)
        system = bb.load(
            "four_bar", "new", solver=solver, limits=False, forces={"blow": wrench, "crank": swing}
        ).system
        system.rollout(50)
        ends.append(np.concatenate([system.q, system.v]))
    assert_allclose(ends[1], ends[0], atol=1e-11)


def test_steps_with_limits_have_them():
    """The same torque by ``tau``, set before each step of the method of order 1."""
    system = pendulum(forces={"pin": swing}, limits="always")
    other = pendulum(limits="always")
    for _ in range(100):
        other.tau[0] = swing(other.t, other.q, other.v)
        for one in (system, other):
            one.step()
    assert_allclose(system.q, other.q, atol=1e-13)


def test_inverse_dynamics_accounts_for_them():
    system = four_bar()
    tau = bb.inverse_dynamics(system, {"crank": 1.5}, actuated=["crank"])
    system.tau[:] = tau
    crank = system.mechanism.joints["crank"].v.start
    assert system.acceleration()[crank] == pytest.approx(1.5, abs=1e-9)


def test_several_rates_take_one_function_or_one_each():
    def six(t, q, v):
        return [0.0, 0.1, 0.0, -q[0], 0.2 * v[4], t]

    one_each = [lambda t: 0.0, lambda t, q, v: 0.1, lambda t: 0.0, lambda t, q, v: -q[0],
                lambda t, q, v: 0.2 * v[4], lambda t: t]  # fmt: skip
    ends = []
    for forces in (
        six,
        one_each,
        numba.njit(lambda t, q, v: np.array([0.0, 0.1, 0.0, -q[0], 0.2 * v[4], t])),
    ):
        system = bb.System(free_body(), forces={"base": forces}, integrator="rk4", dt=0.01)
        system.set_state(v=(0, 0, 0, 1, 0.5, 0))
        system.rollout(20)
        ends.append(np.concatenate([system.q, system.v]))
    assert_allclose(ends[1], ends[0], atol=1e-14)
    assert_allclose(ends[2], ends[0], atol=1e-14)


def test_functions_get_the_state_by_joint():
    seen = []
    system = pendulum(forces={"pin": lambda t, q, v: seen.append((t, q["pin"], v["pin"])) or 0.0})
    system.set_state((0.3,), (0.5,), 2.0)
    system.acceleration()
    assert seen[-1] == (2.0, 0.3, 0.5)


def test_what_cannot_be_is_refused():
    nan = bb.Wrench(bb.Frame("bar"), lambda t, q, v: (0, np.nan if t > 0.1 else 0, 0))
    for forces, said in (
        ({"blow": bb.Wrench(bb.Frame("barr"), (1, 0, 0))}, "wrench 'blow'.*did you mean 'bar'"),
        ({"blow": bb.Wrench(bb.Frame("world"), (1, 0, 0))}, "does not move"),
        ({"blow": bb.Wrench(bb.Frame("bar"))}, "exerts nothing"),
        ({"blow": bb.Wrench(bb.Frame("bar"), (1, 0))}, "three numbers"),
        ({"blow": bb.Wrench(bb.Frame("bar"), bb.Sine(1.0, 2.0))}, "signal of one number"),
        ({"pin": lambda t, q: 0.0}, "force of joint 'pin' is a function of 2 arguments"),
        ({"pin": push}, r"function of 4 arguments; give one of \(t\) or \(t, q, v\)"),
        ({"pin": numba.njit(lambda t, q, v: "x")}, "force of joint 'pin' does not compile"),
        ({"pinn": swing}, "unknown joint 'pinn'"),
    ):
        with pytest.raises(ModelError, match=said):
            pendulum(forces=forces)
    with pytest.raises(ModelError, match="among the forces"):
        bb.System(pendulum().mechanism, [bb.Wrench(bb.Frame("bar"), (1, 0, 0))])
    for integrator in ("rk4", "dop853", "heun"):
        system = pendulum(forces={"blow": nan}, dt=0.01, integrator=integrator)
        system.rollout(9)
        before = system.save()
        with pytest.raises(ModelError, match=r"force of wrench 'blow' is .*nan.* at t = 0\.1"):
            system.rollout(3)
        assert system.t < 0.115
        assert np.isfinite(system.q).all()
        assert before.t < 0.1
    with pytest.raises(ModelError, match="not 3 finite numbers"):
        pendulum(forces={"blow": bb.Wrench(bb.Frame("bar"), lambda t, q, v: (1, 2))}).step()


@numba.njit
def too_few(t, q, v):
    return np.array([1.0, 2.0])


@numba.njit
def late_nan(t, q, v):
    return np.nan if t > 0.05 else 0.0


def test_a_force_that_asks_what_it_acts_on_is_told():
    """Accelerations would depend on themselves."""
    asked = []

    def force(t, q, v):
        return asked[0].acceleration()[0] if asked else 0.0

    with bb.load("four_bar", "new", forces={"crank": force}) as model:
        asked.append(model.system)
        q = model.system.q
        with pytest.raises(ModelError, match="crank.*another system, loaded without these forces"):
            model.system.step()
        assert np.array_equal(model.system.q, q)


def test_compiled_functions_are_held_to_the_same():
    with pytest.raises(ModelError, match="force of wrench 'blow'.*3 finite numbers at t = 0 s"):
        pendulum(forces={"blow": bb.Wrench(bb.Frame("bar"), too_few)}, integrator="rk4").step()
    system = pendulum(forces={"pin": late_nan}, integrator="rk4", dt=0.01)
    with pytest.raises(ModelError, match="force of joint 'pin' is nan"):
        system.rollout(20)
    assert np.isfinite(system.q).all()


class OwnError(Exception):
    pass


def test_errors_of_functions_come_through():
    def fail(t, q, v):
        if t > 0.02:
            raise OwnError
        return 0.0

    system = pendulum(forces={"pin": fail}, dt=0.01, integrator="rk4")
    with pytest.raises(OwnError):
        system.rollout(10)
    assert np.isfinite(system.q).all()
    assert system.t == pytest.approx(0.02)


@pytest.mark.parametrize("functions", [(swing, push), (swing_compiled, push_compiled)])
def test_copies_pickles_and_saved_states_go_on_alike(functions):
    torque, force = functions
    forces = {"pin": torque, "blow": bb.Wrench(bb.Frame("bar", (1, 0, 0)), force)}
    system = pendulum(forces=forces, integrator="rk4", dt=0.01)
    system.rollout(10)
    saved, others = system.save(), [copy.deepcopy(system), pickle.loads(pickle.dumps(system))]
    system.rollout(20)
    ends = [np.concatenate([one.q, one.v]) for one in [system] if one]
    for other in others:
        other.rollout(20)
        ends.append(np.concatenate([other.q, other.v]))
    system.restore(saved)
    system.rollout(20)
    ends.append(np.concatenate([system.q, system.v]))
    for end in ends[1:]:
        assert end.tobytes() == ends[0].tobytes()


def test_what_cannot_be_pickled_says_so():
    for forces, name in (
        ({"pin": lambda t, q, v: 0.0}, "pin"),
        ({"blow": bb.Wrench(bb.Frame("bar"), lambda t, q, v: (0, 0, 0))}, "blow"),
    ):
        with pytest.raises(ModelError, match=f"'{name}'.*function"):
            pickle.dumps(pendulum(forces=forces))


def test_rollouts_have_them():
    starts = np.linspace(-1.0, 1.0, 6)[:, None]
    plain, compiled = (pendulum(forces={"pin": f}, integrator="rk4", dt=0.01)
                       for f in (swing, swing_compiled))  # fmt: skip
    with pytest.raises(ModelError, match=r"numba\.njit"):
        bb.rollout(plain, starts, steps=5, threads=2)
    one = bb.rollout(plain, starts, steps=20).check()
    two = bb.rollout(compiled, starts, steps=20, threads=2).check()
    assert_allclose(two.q, one.q, atol=1e-13)
    alone = pendulum(forces={"pin": swing}, integrator="rk4", dt=0.01)
    alone.set_state(starts[2])
    alone.rollout(20)
    assert_allclose(one.q[2, -1], alone.q, atol=1e-14)
    bad = pendulum(forces={"pin": lambda t, q, v: np.nan if q[0] > 0.5 else 0.0})
    assert "force of joint 'pin'" in bb.rollout(bad, starts, steps=2).failures[5]


def test_windows_show_them():
    system = pendulum(forces={"blow": bb.Wrench(bb.Frame("bar", (1, 0, 0)), (0, 3.0, 0))})
    (mark,) = marks_of(system)
    assert mark.load
    assert_allclose(mark.point_b, (1, 0, 0), atol=1e-15)
    assert_allclose(mark.force, (0, 3, 0), atol=1e-15)


def test_joints_bear_them_as_they_are_at_the_state():
    """As they bear the same force when it is constant."""
    system = four_bar(dt=1e-3)
    system.rollout(100)
    forces = {name: w.force for name, w in system.applied_wrenches().items()}
    tau = {"crank": swing(system.t, system.q, system.v)}
    blow = bb.Wrench(bb.Frame("coupler", (0.3, 0.1, 0)), tuple(forces["blow"]), axes=WORLD)
    still = bb.load("four_bar", "new", forces={"blow": blow}).system
    still.set_state(system.q, system.v)
    still.tau = tau
    borne, known = system.joint_reactions(), still.joint_reactions()
    size = max(np.abs(each.force).max() for each in known.values())
    for name, each in known.items():
        assert_allclose(borne[name].force, each.force, atol=1e-11 * size)
        assert_allclose(borne[name].torque, each.torque, atol=1e-11 * size)
