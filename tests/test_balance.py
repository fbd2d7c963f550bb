"""Poses of rest, modes and regulators of closed mechanisms, against closed forms."""

from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import brentq
from support.beam_trees import DENSITY, LONG, SHORT, STIFFNESS, PlanarLink, planar_arm
from support.small_trees import GRAVITY, free_body, slider
from test_beam_motion import TABLE_21

import bulletbridge as bb
from bulletbridge.errors import InfeasibleError, ModelError

equilibrium = import_module("bulletbridge.control.equilibrium")
INERTIA, TORQUE = (2.0 / 3.0 + 2.0) * 0.25, 3.0 * GRAVITY * 0.5
"""The bundled parallelogram as the pendulum that it is [kg m², N m]."""


def parallelogram(connect, crank: float = 0.0, **options) -> bb.System:
    system = bb.load("parallelogram", connect()._client, **options).system
    system.assemble({"crank": crank, "coupler": -crank, "rocker": crank})
    return system


def test_a_parallelogram_rests_where_its_torque_holds_it(connect):
    system = parallelogram(connect, 0.3)
    system.tau["crank"] = 0.5 * TORQUE
    before = system.save()
    found = bb.equilibrium(system)
    assert system.save() == before
    assert abs(found.q[0] - np.arcsin(0.5)) <= 1e-9
    system.set_state(found.q, np.zeros(3))
    assert np.abs(system.acceleration()).max() <= 1e-8
    hanging, upright = parallelogram(connect, 0.9), parallelogram(connect, 2.7)
    assert abs(bb.equilibrium(hanging).q[0]) <= 1e-9
    assert abs(bb.equilibrium(upright).q[0] - np.pi) <= 1e-9  # unstable ones too


def test_what_nothing_holds_has_no_pose_of_rest(connect):
    falling = bb.System(free_body())
    with pytest.raises(InfeasibleError, match=r"9.81 N or N m push along 'base\[5\]'"):
        bb.equilibrium(falling)
    held = parallelogram(connect, 0.3)
    held.tau["crank"] = 1.01 * TORQUE
    with pytest.raises(InfeasibleError, match="start nearer"):
        bb.equilibrium(held)
    held.motors.set("crank", velocity=0.0)
    with pytest.raises(ModelError, match="switch them off"):
        bb.equilibrium(held)
    floating = bb.System(free_body(gravity=(0, 0, 0)))
    assert np.array_equal(bb.equilibrium(floating).q, floating.q)


def test_a_pose_of_rest_that_is_singular_is_said_to_be(connect):
    """A parallelogram that is pulled along its base comes to rest with all links in a line."""
    system = parallelogram(connect, 0.3)
    system.set_parameters({"gravity.x": GRAVITY, "gravity.z": 0.0})
    with pytest.raises(InfeasibleError, match=r"beside it, .* where the mechanism is singular"):
        bb.equilibrium(system)


def test_regulators_and_linear_systems_are_told_in_a_line(connect):
    system = parallelogram(connect)
    law = bb.lqr(system, {"crank": 1.0}, {"crank": 1.0}, inputs=["crank"], states=["crank"])
    slowest = np.abs(law.eigenvalues).max()
    assert repr(law) == (
        f"<Regulator: crank by crank, crank.rate; the slowest mode times {slowest:.6g} a step>"
    )
    assert repr(law.linearisation) == (
        "<Linearisation: step at t = 0 s, 2 states, 1 inputs, 0 outputs, by equations>"
    )


def test_far_poses_of_rest_are_reached_in_coordinates_that_stay_near(monkeypatch):
    """A spring pulls in proportion: every piece of the way but the last ends at its bound."""
    origins = list[float]()

    class Spied(equilibrium.Balance):
        def __init__(self, system, tree, origin):
            super().__init__(system, tree, origin)
            origins.append(float(origin[0]))

    monkeypatch.setattr(equilibrium, "Balance", Spied)
    mechanism = slider("x", mass=2.0, gravity=(0, 0, 0))
    mechanism.axes[0]["stiffness"] = 8.0
    system = bb.System(mechanism)
    system.set_state(np.array([10.0]), np.zeros(1))
    assert abs(bb.equilibrium(system).q[0]) <= 1e-9
    ways = -np.diff(origins)
    assert origins[0] == 10.0 and np.all(ways <= equilibrium.FARTHEST)
    assert np.all(ways[:3] >= equilibrium.FARTHEST - 1e-3)


def roots(equation, near):
    """Roots of a function between the extrema that lie around some numbers."""
    return np.array([brentq(equation, x - 0.7, x + 0.7, xtol=1e-14) for x in near])


def test_modes_of_beams_are_those_of_their_closed_forms():
    """Modes are those of a clamped beam: exact there, Ritz's upper bounds at other ends."""
    speed = np.sqrt(STIFFNESS / DENSITY)  # of a length of 1 m
    clamped = roots(lambda b: np.cos(b) + 1.0 / np.cosh(b), [1.9, 4.7, 7.9]) ** 2 * speed
    pinned = roots(lambda b: np.tan(b) - np.tanh(b), [3.95, 7.1, 10.2]) ** 2 * speed
    share = SHORT.length / LONG.length  # mass on the tip over that of the beam

    def weighted(b):
        c, s = np.cos(b), np.sin(b)
        return 1.0 / np.cosh(b) + c + share * b * (c * np.tanh(b) - s)

    loaded = roots(weighted, [1.4, 4.1, 7.2]) ** 2 * speed
    held = [bb.Coupling("held", {"j0": 1.0})]
    before = np.full(3, np.inf)
    for modes in (1, 2, 3):
        arm = planar_arm([PlanarLink(replace(LONG, modes=modes))])
        found = 2.0 * np.pi * bb.modes(bb.System(arm, held)).frequencies
        assert np.abs(found / clamped[:modes] - 1.0).max() <= 1e-7
        free = 2.0 * np.pi * bb.modes(bb.System(arm)).frequencies[-modes:]
        assert np.all(free >= pinned[:modes] * (1.0 - 1e-7))
        weight = planar_arm([PlanarLink(replace(LONG, modes=modes), DENSITY * SHORT.length)])
        found = 2.0 * np.pi * bb.modes(bb.System(weight, held)).frequencies
        table = TABLE_21[0.0, modes][0]  # link 1, with link 2 as a mass
        assert np.abs(found / table - 1.0).max() <= 1e-5
        assert np.all(found >= loaded[:modes]) and np.all(found <= before[:modes])
        before[:modes] = found
    assert abs(free[0] / pinned[0] - 1.0) <= 1e-4


def test_modes_of_a_parallelogram_are_a_pendulums(connect):
    found = bb.modes(parallelogram(connect))
    want = np.sqrt(TORQUE / INERTIA)
    assert len(found.frequencies) == 1
    assert abs(2.0 * np.pi * found.frequencies[0] / want - 1.0) <= 1e-8
    assert abs(found.damping[0]) <= 1e-8
    for joint, share in (("crank", 1.0), ("coupler", -1.0), ("rocker", 1.0)):
        assert abs(found.shape(joint)[0] / found.shape("crank")[0] - share) <= 1e-8
    assert abs(np.abs(found.shapes).max() - 1.0) <= 1e-12
    falls = bb.modes(parallelogram(connect, np.pi))
    assert np.abs(np.sort(falls.eigenvalues.real) - [-want, want]).max() <= 1e-7
    with pytest.raises(ModelError, match="does not rest"):
        bb.modes(parallelogram(connect, 0.5))


def test_a_damper_shows_in_the_damping_ratio():
    mechanism = slider("x", mass=2.0, gravity=(0, 0, 0))
    mechanism.axes[0]["stiffness"], mechanism.axes[0]["damping"] = 8.0, 0.8
    found = bb.modes(bb.System(mechanism))
    assert abs(found.damping[0] - 0.8 / (2.0 * np.sqrt(16.0))) <= 1e-9
    assert abs(found.frequencies[0] - 2.0 * np.sqrt(1 - 0.1**2) / (2.0 * np.pi)) <= 1e-9


def test_modes_of_a_platform_on_springs_are_those_of_its_energies(connect):
    """Frequencies of the forces against curvatures of the potential energy on the loops."""
    system = bb.load("stewart", connect()._client, limits=False).system
    system.set_state(bb.equilibrium(system).q, np.zeros(system.mechanism.nv))
    names = ["leg0", "leg1", "leg2", "leg3", "leg4", "leg5"]
    there = system.linearise("continuous", reduced=names)
    ways, dof = there.lift[: system.mechanism.nv, : system.dof], system.dof
    x, h, origin = system.q, 1e-3, there.q
    K = np.zeros((dof, dof))

    def energy(lengths: np.ndarray) -> float:
        system.assemble(
            {
                name: origin[system.mechanism.joint(name).q.start] + d
                for name, d in zip(names, lengths, strict=True)
            }
        )
        found = system.evaluate().potential
        system.set_state(x, np.zeros(system.mechanism.nv))
        return found

    for i in range(dof):
        for j in range(i, dof):
            a, b = h * np.eye(dof)[i], h * np.eye(dof)[j]
            K[i, j] = K[j, i] = (energy(a + b) - energy(a - b) - energy(b - a) + energy(-a - b)) / (
                4 * h * h
            )
    M = ways.T @ system.terms().M @ ways
    want = np.sqrt(np.linalg.eigvals(np.linalg.solve(M, K)).real)
    found = 2.0 * np.pi * bb.modes(system).frequencies
    assert np.abs(np.sort(found) / np.sort(want) - 1.0).max() <= 1e-4


def test_a_closed_loop_decays_as_its_eigenvalues_say(connect):
    system = parallelogram(connect, np.pi, dt=1 / 240)
    law = bb.lqr(
        system, {"crank": 10.0, "crank.rate": 1.0}, [1.0], inputs=["crank"], states=["crank"]
    )
    assert np.abs(law.eigenvalues).max() < 1.0 < np.abs(law.linearisation.eigenvalues).max()
    linear = law.linearisation
    values, vectors = np.linalg.eig(linear.A - linear.B @ law.K)
    slow = int(np.argmax(np.abs(values)))  # both are real: it is set off along the slower mode
    turn, rate = 1e-3 * vectors[:, slow].real / vectors[0, slow].real
    start = {"crank": np.pi + turn, "coupler": -np.pi - turn, "rocker": np.pi + turn}
    system.assemble(start, {"crank": rate})
    x = law.error(system.q, system.v)
    foreseen, paid = x @ law.P @ x, 0.0
    for _ in range(200):
        system.tau[:] = law(system.q, system.v)
        system.step()
    end = law.error(system.q, system.v)
    decay = np.log(np.linalg.norm(end) / np.linalg.norm(x)) / 200.0
    assert abs(decay / np.log(np.abs(law.eigenvalues).max()) - 1.0) <= 0.01
    # the cost that was foreseen is the one that was paid
    q, r = np.diag([10.0, 1.0]), 1.0
    system.assemble(start, {"crank": rate})
    for _ in range(3000):
        x = law.error(system.q, system.v)
        system.tau[:] = law(system.q, system.v)
        paid += x @ q @ x + r * system.tau[0] ** 2
        system.step()
    assert abs(paid / foreseen - 1.0) <= 1e-3


def test_what_inputs_do_not_reach_is_said(connect):
    system = bb.System(slider("xy"))
    system.gravity = (0, 0, 0)
    with pytest.raises(InfeasibleError, match="inputs do not reach.* y"):
        bb.lqr(system, np.ones(4), [1.0], inputs=["x"])
    with pytest.raises(InfeasibleError, match="Q does not weigh.* y"):
        bb.lqr(system, {"x": 1.0, "x.rate": 1.0}, [1.0, 1.0], inputs=["x", "y"])
    for Q, R, said in (
        (np.ones(3), [1.0], "Q is not"),
        ({"z": 1.0}, [1.0], "entry of Q 'z'"),
        (-np.ones(4), [1.0], "negative"),
        (np.ones(4), [0.0], "R is not positive"),
    ):
        with pytest.raises(ModelError, match=said):
            bb.lqr(system, Q, R, inputs=["x"])
    with pytest.raises(ModelError, match="does not rest"):
        bb.lqr(parallelogram(connect, 0.5), np.ones(2), [1.0], inputs=["crank"])
    held = parallelogram(connect)
    held.motors.set("rocker", velocity=0.0, force=50.0)
    with pytest.raises(InfeasibleError, match="no input moves anything.* motors of rocker hold"):
        bb.lqr(held, np.ones(2), [1.0], inputs=["crank"])


RODS = tuple(
    bb.Distance(
        f"rod{k}",
        bb.Frame("body", (0.1 * np.cos(a), 0.1 * np.sin(a), 0.0)),
        bb.Frame("world", (0.1 * np.cos(a), 0.1 * np.sin(a), 1.0)),
        length=1.0,
    )
    for k, a in enumerate((0.0, 2.1, 4.2))
)


@pytest.mark.parametrize("hung", ["ball", "rod", "rods"])
def test_a_lamp_rests_straight_below_and_swings_as_a_pendulum(hung):
    """Levers vanish where it rests, and nothing holds its turn: no term there cancels another.

    Frequencies are of closed forms, which linearised accelerations have to 1e-7.
    """
    ball = bb.LoopJoint(
        "ball", bb.JointModel.BALL, bb.Frame("body", (0, 0, 1.0)), bb.Frame("world", (0, 0, 1.0))
    )
    rod = bb.Distance("rod", bb.Frame("body", (0, 0, 0.1)), bb.Frame("world", (0, 0, 1.0)), 0.9)
    system = bb.System(free_body(), {"ball": [ball], "rod": [rod], "rods": RODS}[hung])
    M = system.terms().M
    mass, moment, about = M[5, 5], M[0, 0], M[2, 2]
    system.assemble(guess={"base": [0.02, 0.01, 0.0, 0.0, 0.0, 0.05, 1.0]})
    found = bb.equilibrium(system)
    system.set_state(found.q, np.zeros(6))
    assert_allclose(found.q[:2], 0.0, atol=1e-9)
    swings = bb.modes(system).frequencies * 2.0 * np.pi
    swings = np.sort(swings[swings > 1e-3])
    if hung == "ball":
        expected = [np.sqrt(mass * GRAVITY / (moment + mass))] * 2
    elif hung == "rods":
        expected = [np.sqrt(mass * GRAVITY * 0.1**2 / about), *[np.sqrt(GRAVITY)] * 2]
    else:  # two pendulums in a row, of a rod and the body
        inertia = np.array([[mass * 0.9**2, mass * 0.09], [mass * 0.09, moment + mass * 0.1**2]])
        stiffness = mass * GRAVITY * np.diag([0.9, 0.1])
        expected = np.repeat(np.sqrt(np.linalg.eigvals(np.linalg.solve(inertia, stiffness))), 2)
    assert_allclose(swings, np.sort(expected), rtol=1e-7)
