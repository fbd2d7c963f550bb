"""A, B, C and D along the loops: against closed forms, and against steps of displaced states."""

import copy
import warnings

import numpy as np
import pytest
from _mechanisms import PRISMATIC, REVOLUTE, SPHERICAL
from hypothesis import given, settings
from hypothesis import strategies as st
from support.closed_mechanisms import closed_system, decided
from support.small_trees import free_body, slider
from support.solid_worlds import BLOCK

import bulletbridge as bb
from bulletbridge.errors import (
    AssemblyError,
    BulletBridgeWarning,
    ModelError,
    StepError,
    UnsupportedError,
)
from bulletbridge.mechanism.displacement import configuration_difference
from bulletbridge.mechanism.kinematics import displace

DIFFERENCES = 1e-8
"""What is promised of derivatives, relative to the largest."""
CASES = st.tuples(
    st.integers(0, 999),
    st.booleans(),
    st.lists(st.sampled_from([REVOLUTE, PRISMATIC, SPHERICAL]), min_size=7, max_size=8),
    st.sampled_from(["ball", "revolute", "cylindrical", "point_on_plane"]),
    st.booleans(),
)


def advanced(system: bb.System, dq, dv, x: float) -> tuple[np.ndarray, np.ndarray]:
    """Where a step leads from a state that is displaced by x, in a copy."""
    other = copy.deepcopy(system)
    q = np.empty(system.mechanism.nq)
    displace(system.mechanism.bodies, np.array(system.q), x * dq, 1.0, q)
    other.set_state(q, system.v + x * dv)
    other.step()
    return np.array(other.q), np.array(other.v)


def answer(system: bb.System, way: np.ndarray) -> np.ndarray:
    """Derivative (2 nv,) of a step along a tangent: differences of fourth order of their own."""
    nv = system.mechanism.nv
    found = np.zeros(2 * nv)
    for h, weight in ((5e-5, 4.0 / 3.0), (1e-4, -1.0 / 3.0)):
        (q, v), (p, u) = (advanced(system, way[:nv], way[nv:], x) for x in (h, -h))
        moved = np.concatenate([configuration_difference(system.mechanism, q, p), v - u])
        found += weight * moved / (2.0 * h)
    return found


@given(CASES, st.sampled_from(["verlet", "semi_implicit_euler", "rk4", "radau", "charts"]))
@settings(max_examples=8)
def test_a_is_the_flow_of_steps_on_the_loops(case, integrator):
    system = closed_system(case, integrator=integrator)
    if not decided(system) or system.dof == 0:
        return
    whole, reduced = system.linearise(), system.linearise(reduced=True)
    nv = system.mechanism.nv
    rng = np.random.default_rng(case[0])
    way = reduced.lift @ rng.standard_normal(2 * system.dof)
    way /= np.abs(way).max()
    J = system.terms().J
    assert np.abs(J @ way[:nv]).max(initial=0.0) <= 1e-12 * np.abs(J).max(initial=1.0)
    there = answer(system, way)
    assert np.abs(whole.A @ way - there).max() <= DIFFERENCES * np.abs(there).max()
    picked = [whole.states.index(name) for name in reduced.states]
    assert np.abs(reduced.A @ way[picked] - there[picked]).max() <= DIFFERENCES * np.abs(
        there[picked]
    ).max(initial=1.0)
    # what leads off the loops is brought back first
    assert np.abs(whole.A @ whole.lift - whole.A).max() <= DIFFERENCES * np.abs(whole.A).max()


def test_a_step_of_semi_implicit_euler_is_known_in_closed_form():
    """v⁺ = v + dt (u - k q), q⁺ = q + dt v⁺: a slider on a spring, kilograms and seconds."""
    mechanism = slider("x", mass=2.0, gravity=(0, 0, 0))
    mechanism.axes[0]["stiffness"], mechanism.axes[0]["damping"] = 8.0, 0.5
    dt, k, m, d = 0.01, 8.0, 2.0, 0.5
    flow = bb.System(mechanism, dt=dt, integrator="rk4").linearise("continuous")
    assert np.abs(flow.A - [[0.0, 1.0], [-k / m, -d / m]]).max() <= 1e-9
    assert np.abs(flow.B - [[0.0], [1.0 / m]]).max() <= 1e-9
    step = bb.System(
        mechanism, dt=dt, integrator="semi_implicit_euler", springs="explicit"
    ).linearise()
    of_v = np.array([-dt * k, m]) / (m + dt * d)  # the damper acts at the end of the step
    assert np.abs(step.A - [np.array([1.0, 0.0]) + dt * of_v, of_v]).max() <= 1e-9
    assert np.abs(step.B[:, 0] - np.array([dt, 1.0]) * dt / (m + dt * d)).max() <= 1e-9
    assert (step.states, step.inputs, step.dt) == (("x", "x.rate"), ("x",), dt)


def test_a_mechanism_under_its_own_regulator():
    """Euler's step asks a force of the state once, where it starts: A + B K."""
    K, options = np.array([-20.0, 3.0]), {"integrator": "semi_implicit_euler", "dt": 1e-3}
    rates = np.array([1.0, -1.0, 1.0])  # a parallelogram
    free = bb.load("parallelogram", "new", **options).system
    free.set_state(v=rates)
    free.tau["crank"] = K @ [np.sin(free.q["crank"]), rates[0]]

    def law(t, q, v):
        return K @ [np.sin(q["crank"]), v["crank"]]

    forced = bb.load("parallelogram", "new", forces={"crank": law}, **options).system
    forced.set_state(v=rates)
    plain, held = free.linearise(), forced.linearise(by="equations")
    want = plain.A.copy()
    by_state = np.zeros(6)
    by_state[[0, 3]] = K * [np.cos(free.q["crank"]), 1.0]
    want += np.outer(plain.B[:, 0], by_state) @ held.lift
    assert np.abs(held.A - want).max() <= 1e-9 * np.abs(want).max()


def test_turns_are_displaced_as_kinematics_turns_them():
    """A torque-free body: δ̇ = δω + ω x δ in world axes, with M(q) ω̇ = -ω x M ω."""
    body = free_body(moments=(0.1, 0.2, 0.4), gravity=(0, 0, 0))
    system = bb.System(body, dt=1e-3)
    w = np.array([0.3, -1.1, 0.7])
    system.set_state(v=np.concatenate([w, [0.2, 0.0, -0.1]]))
    A = system.linearise("continuous").A
    I = np.diag([0.1, 0.2, 0.4])  # noqa: E741

    turning = np.array([np.cross(w, x) for x in np.eye(3)]).T
    assert np.abs(A[:3, :3] - turning).max() <= 1e-10
    assert np.abs(A[:6, 6:] - np.eye(6)).max() <= 1e-10
    assert np.abs(A[3:6, :6]).max() <= 1e-10
    for k in range(3):  # Euler's equations, differentiated: I w' = -(w x I w)
        dw = np.eye(3)[k]
        want = -np.linalg.solve(I, np.cross(dw, I @ w) + np.cross(w, I @ dw))
        assert np.abs(A[6:9, 6 + k] - want).max() <= 1e-9


def test_outputs_of_a_lever_on_a_slider():
    system = bb.System(slider("x", mass=2.0, moment=0.3), dt=0.01)
    angle, rate = 0.4, 0.8
    system.set_state([0.1, angle], [0.3, rate])
    found = system.linearise("continuous", frames=[bb.Frame("body", (0.0, 0.0, -0.5))])
    row = {name: n for n, name in enumerate(found.outputs)}
    x, z = found.C[row["body.position.x"]], found.C[row["body.position.z"]]
    assert np.abs(x - [1.0, -0.5 * np.cos(angle), 0.0, 0.0]).max() <= 1e-9
    assert np.abs(z - [0.0, 0.5 * np.sin(angle), 0.0, 0.0]).max() <= 1e-9
    velocity = found.C[row["body.velocity.x"]]
    want = [0.0, 0.5 * rate * np.sin(angle), 1.0, -0.5 * np.cos(angle)]
    assert np.abs(velocity - want).max() <= 1e-9
    assert np.abs(found.C[row["body.turn.y"]] - [0.0, 1.0, 0.0, 0.0]).max() <= 1e-9
    assert not found.D.any()


def test_reactions_answer_to_forces_and_gaps_to_nothing(connect):
    system = bb.load("four_bar", connect()._client).system
    system.set_state(v=[1.0, 0.0, 0.0])
    pin = ["ground_pin"]
    found = system.linearise("continuous", reduced=["crank"], reactions=pin, gaps=pin)
    assert found.states == ("crank", "crank.rate")
    assert np.abs(found.C[:3]).max() <= 1e-10
    for k in range(3):
        system.tau[k] = 1.0
        more = system.reactions()["ground_pin"]
        system.tau[k] = 0.0
        less = system.reactions()["ground_pin"]
        moved = np.concatenate([more.torque - less.torque, more.force - less.force])
        assert np.abs(found.D[3:, k] - moved).max() <= 1e-8 * np.abs(moved).max()


def test_the_system_is_left_to_the_bit_as_it_was(connect):
    system = bb.load("minitaur", connect()._client).system
    system.step()
    before, shown = system.save(), system.world.state()
    first = system.linearise(reduced=True, frames=["base_chassis_link"])
    again = system.linearise(reduced=True, frames=["base_chassis_link"])
    assert system.save() == before
    assert all(np.array_equal(a, b) for a, b in zip(shown, system.world.state(), strict=True))
    for name in "ABCD":
        assert np.array_equal(getattr(first, name), getattr(again, name))
    assert len(first.states) == 2 * system.dof


def test_a_step_that_fails_leaves_it_too():
    def fails(t: float) -> float:
        raise ValueError("no force today")

    mechanism = slider("x")
    system = bb.System(mechanism, forces={"x": lambda t: 1.0 if t == 0.0 else fails(t)})
    system.assemble()
    before = system.save()
    with pytest.raises((ValueError, StepError)):
        system.linearise()
    assert system.save() == before


def test_limits_and_motors_act_by_their_active_set():
    """A slider at its stop does not answer to what presses it there."""
    mechanism = slider("x", gravity=(5.0, 0.0, 0.0))
    mechanism.joints["x"] = (
        bb.System(mechanism)
        .mechanism.joint("x")
        .__class__("x", "prismatic", slice(0, 1), slice(0, 1), -1.0, 0.0)
    )
    system = bb.System(mechanism, dt=0.01, limits="always")
    for _ in range(5):
        system.step()
    found = system.linearise()
    assert found.active == ("limit of x",) and found.changed == ()
    assert np.abs(found.B).max() <= 1e-12
    system.set_state([0.0], [0.0])  # it would leave the stop in one direction
    system.gravity = (0.0, 0.0, 0.0)
    with pytest.warns(BulletBridgeWarning, match="limit of x"):
        assert system.linearise().changed == ("limit of x",)
    free = bb.System(slider("x", gravity=(5.0, 0.0, 0.0)), dt=0.01)
    free.motors.set("x", velocity=1.0, force=1.0)
    held = free.linearise()
    assert held.active == ("motor of x at +force",)
    assert np.abs(held.A - [[1.0, 0.01], [0.0, 1.0]]).max() <= 1e-9
    free.motors.set("x", velocity=1.0, force=100.0)
    held = free.linearise()
    assert held.active == () == held.changed
    assert np.abs(held.A - [[1.0, 0.0], [0.0, 0.0]]).max() <= 1e-9


def test_a_box_on_the_ground_sticks_and_its_contacts_are_told(solids):
    solids.ground()
    box = solids.solid(f'<box size="{BLOCK}"/>', (0, 0, 0.15))
    system = solids.system(box)
    for _ in range(20):
        system.step()
    before, shown = system.save(), system.world.state()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BulletBridgeWarning)
        found = system.linearise()
    assert found.active and all("sticking" in name for name in found.active)
    assert np.abs(found.B[6:, 3:5]).max() <= 1e-9  # friction takes what pushes it along
    assert system.save() == before
    assert all(np.array_equal(a, b) for a, b in zip(shown, system.world.state(), strict=True))


def test_rolls_leave_positions_more_freedom_than_rates():
    """A ball that rolls on a plane: five positions, three rates."""
    body = free_body(moments=(0.4, 0.4, 0.4))
    roll = bb.LoopJoint(
        "roll", bb.JointModel.ROLLING, bb.Frame("world"), bb.Frame("body"), radius=1.0
    )
    system = bb.System(body, [roll], dt=1e-3)
    system.assemble(guess={"base": [0, 0, 1.0, 0, 0, 0, 1]}, v={"base": [0, 0.5, 0, 0.5, 0, 0]})
    found = system.linearise(reduced=True)
    rates = [name for name in found.states if name.endswith(".rate")]
    assert (len(found.states) - len(rates), len(rates)) == (5, system.dof)
    picked = [system.linearise().states.index(name) for name in found.states]
    for k in range(len(found.states)):
        there = answer(system, found.lift[:, k])
        assert np.abs(there[picked] - found.A[:, k]).max() <= DIFFERENCES


def test_what_cannot_be_linearised_is_said(connect):
    system = bb.load("four_bar", connect()._client).system
    for kwargs, said in (
        ({"what": "both"}, "step, continuous"),
        ({"frames": ["cranc"]}, "crank"),
        ({"reactions": ["ground_pim"]}, "ground_pin"),
        ({"gaps": ["ground_pim"]}, "ground_pin"),
        ({"inputs": ["cranc"]}, "crank"),
        ({"by": "magic"}, "differences"),
        ({"reduced": ["crank", "rocker"]}, "1 freedoms"),
    ):
        with pytest.raises(ModelError, match=said):
            system.linearise(**kwargs)
    system.motors.set("crank", velocity=1.0)
    with pytest.raises(ModelError, match="what='step'"):
        system.linearise("continuous")
    system.motors.off("crank")
    flat = bb.load("parallelogram", connect()._client).system
    flat.assemble({"crank": np.pi / 2, "coupler": -np.pi / 2, "rocker": np.pi / 2})
    with pytest.raises(ModelError, match="singular"):
        flat.linearise()
    other = bb.System(system.mechanism, system.constraints)
    with pytest.raises(AssemblyError, match="assemble"):
        other.set_state(system.q + 0.1)
        other.linearise()
    system.tau[0] = np.nan
    with pytest.raises(ModelError, match="tau"):
        system.linearise()


@pytest.mark.parametrize("what", ["step", "continuous"])
@pytest.mark.parametrize("model", ["four_bar", "stewart", "minitaur"])
def test_equations_and_differences_give_one_linearisation(model, what):
    """Minitaur has a floating base, the platform spherical joints; both move."""
    with bb.load(model, dt=1e-3) as loaded:
        system = loaded.system
        system.run(0.05)
        known = system.linearise(what)
        found = system.linearise(what, by="differences")
    assert (known.by, known.error, found.by) == ("equations", 0.0, "differences")
    for one, other in ((known.A, found.A), (known.B, found.B)):
        assert np.abs(one - other).max() <= DIFFERENCES * np.abs(other).max()
    assert np.abs(known.q_after - found.q_after).max() <= 1e-14


def test_what_has_no_equations_is_linearised_by_differences():
    with bb.load("four_bar", integrator="dop853") as loaded:
        assert loaded.system.linearise().by == "differences"
        with pytest.raises(UnsupportedError, match="semi_implicit_euler"):
            loaded.system.linearise(by="equations")


def test_beside_a_limit_the_equations_of_a_free_step_are_not_taken():
    """The gripper's joints begin at their limits; in the middle of their range they are free."""
    with bb.load("mimic_gripper", dt=1e-3) as loaded:
        system = loaded.system
        with pytest.warns(BulletBridgeWarning, match="kink"):
            assert system.linearise().by == "differences"
        middle = {name: 0.5 * (j.lower + j.upper) for name, j in system.mechanism.joints.items()}
        driver = next(iter(middle))
        system.assemble({driver: middle[driver]})
        assert system.linearise().by == "equations"
