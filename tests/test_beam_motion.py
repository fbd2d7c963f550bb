"""Motion of flexible arms: the thesis's figures, conservation laws, loops closed by beams."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from support.beam_trees import LONG, SHORT, PlanarLink, planar_arm

import bulletbridge as bb
from bulletbridge.constraints.motion import Sine
from bulletbridge.formulations.registry import FORMULATIONS
from bulletbridge.mechanism.build import Load, empty_mechanism, with_beam, with_joint

TABLE_21 = {
    (0.0, 1): ([5.86003], [40.5994]),
    (0.0, 2): ([5.82668, 49.5526], [40.5994, 254.432]),
    (0.0, 3): ([5.82248, 49.0221, 152.265], [40.5994, 254.432, 712.418]),
    (0.5, 1): ([3.71506], [12.8848]),
    (0.5, 2): ([3.67987, 47.0096], [12.7535, 186.52]),
    (0.5, 3): ([3.67545, 46.353, 149.458], [12.7371, 183.822, 596.278]),
}
"""Link 1 and link 2 of the two-link arm by tip mass [kg] and modes [rad/s]: seeds of the project,
whose two-mode rows round to the thesis's 5.83, 49.6, 40.6, 254; 3.68, 47.0, 12.8, 187."""

SYSTEM_1 = {
    2.0: (8.85575022116, 0.988391845092, 0.151924028591, -0.0020473395),
    4.0: (55.2284464859, 0.5713409432, 0.820712666302, -0.0012607943),
    6.0: (124.788160747, -0.571586475117, 0.820541681552, 0.0012701453),
    8.0: (171.161216828, -0.98843690936, 0.151630562653, 0.0020481145),
    10.0: (180.017248542, -0.999999956424, -0.000295163884186, -5.879965e-06),
}
"""Angle [deg], tip [m] and deflection [m] by time [s], of another program with the same modes."""


def frequencies(M, K):
    """Circular frequencies [rad/s], ascending."""
    L = np.linalg.cholesky(M)
    scaled = np.linalg.solve(L, np.linalg.solve(L, K).T)
    return np.sqrt(np.linalg.eigvalsh(scaled))


def coordinates(mechanism, name):
    """Where the rates of a joint are."""
    part = mechanism.joint(name).v
    return np.arange(part.start, part.stop)


@pytest.mark.parametrize(("mass", "modes"), TABLE_21)
def test_clamped_frequencies_are_those_of_table_21(mass, modes):
    """Joint 1 and the direction of link 2 held; the other link's modes held too."""
    beams = [replace(beam, modes=modes) for beam in (LONG, SHORT)]
    mechanism = planar_arm([PlanarLink(beams[0]), PlanarLink(beams[1], mass)])
    terms = bb.System(mechanism).terms()
    first, second = (coordinates(mechanism, name) for name in ("b0", "b1"))
    N = np.eye(mechanism.nv)[:, first]
    N[coordinates(mechanism, "j1")] = -terms.axes["w"][first, 2]  # link 2 does not turn
    K = np.diag(mechanism.axes["stiffness"])
    of_first = frequencies(N.T @ terms.M @ N, N.T @ K @ N)
    of_second = frequencies(terms.M[np.ix_(second, second)], K[np.ix_(second, second)])
    assert_allclose(of_first, TABLE_21[mass, modes][0], rtol=1e-5)
    assert_allclose(of_second, TABLE_21[mass, modes][1], rtol=1e-5)


def test_system_1_ends_where_the_reference_does():
    """The same modes, method and step: equal to the digits that are printed."""
    torque = {"j0": Sine(0.02948, 0.1)}
    mechanism = planar_arm([PlanarLink(LONG)])
    system = bb.System(mechanism, forces=torque, dt=2.5e-4, integrator="rk4")
    for t, (angle, x, y, deflection) in SYSTEM_1.items():
        system.rollout(8000, every=8000)
        assert abs(system.t - t) < 1e-9
        assert abs(np.rad2deg(system.q[0]) - angle) < 1e-9
        tip = system.kinematics().point(bb.Frame("tip0")).p_W[:2]
        assert_allclose(tip, [x, y], atol=1e-12)
        assert abs(2 * (system.q[1] - system.q[2]) - deflection) < 6e-11


def test_energy_error_of_a_swinging_arm_falls_with_the_fourth_power(rng):
    mechanism = planar_arm([PlanarLink(LONG, 0.2), PlanarLink(SHORT, 0.5)], (0.0, -9.81, 0.0))
    errors = []
    for h in (4e-4, 2e-4):
        system = bb.System(mechanism, dt=h, integrator="rk4")
        system.set_state([0.3, 0.02, 0.001, -0.5, 0.003, 0.0], [1.0, 0.1, 0.0, 2.0, 0.0, 0.0])
        before = system.evaluate().energy
        system.rollout(round(0.5 / h), every=round(0.5 / h))
        errors.append(abs(system.evaluate().energy - before))
    # dissipation of RK4 in the fastest mode is of order five
    assert 12 < errors[0] / errors[1] < 40
    assert errors[1] < 1e-6 * abs(before)


def flyer():
    """A floating body with two flexible arms in different planes, one with a pinned second link."""
    body = with_joint(
        empty_mechanism(), "base", "free", "base", load=Load(4.0, inertia=(0.3, 0.4, 0.5))
    )
    body = with_beam(body, "b1", LONG, "t1", "base", (0.2, 0.1, 0.0), (0.4, 0.2, 0.1), Load(0.3))
    body = with_joint(
        body, "j2", "revolute", "hub", "t1", (0.05, 0, 0), (0.3, -0.7, 0.0), Load(0.1)
    )
    body = with_beam(body, "b2", SHORT, "t2", "hub", load=Load(0.2))
    return with_beam(body, "b3", SHORT, "t3", "base", (-0.2, 0.0, 0.0), (1.0, 0.0, 3.0))


def test_a_free_flyer_keeps_its_momentum(rng):
    mechanism = flyer()
    changes = []
    for h in (1e-3, 5e-4):
        system = bb.System(mechanism, dt=h, integrator="rk4")
        q, v = np.zeros(mechanism.nq), np.zeros(mechanism.nv)
        q[6], v[:6] = 1.0, [0.3, -0.2, 0.5, 0.1, 0.0, -0.2]
        q[mechanism.joint("b1").q] = [0.03, -0.002]
        v[mechanism.joint("j2").v] = 0.8
        system.set_state(q, v)
        before = system.evaluate().momentum
        system.rollout(round(1.0 / h), every=round(1.0 / h))
        changes.append(np.abs(system.evaluate().momentum - before).max())
    assert changes[0] / changes[1] > 12
    assert changes[1] < 1e-7


def sliding_arm(**options):
    """Two flexible links whose tip stays on the line y = 0.6 m, gravity along it and across."""
    mechanism = planar_arm([PlanarLink(LONG), PlanarLink(SHORT)], (2.0, -9.81, 0.0))
    line = bb.LoopJoint(
        "line",
        bb.JointModel.POINT_ON_PLANE,
        bb.Frame("world", (0, 0.6, 0)),
        bb.Frame("tip1"),
        axis=(0, 1, 0),
    )
    system = bb.System(mechanism, [line], **{"integrator": "rk4"} | options)
    angle = np.radians(60)
    second = np.arcsin((0.6 - np.sin(angle)) / 0.5) - angle
    system.assemble(q={"j0": angle, "b0": [0, 0], "b1": [0, 0], "j1": second}, v={"j0": 0.5})
    return system


def test_a_loop_closed_by_beams_stays_closed():
    errors = []
    for h in (4e-4, 2e-4):
        system = sliding_arm(dt=h)
        before = system.evaluate().energy
        for _ in range(20):
            system.rollout(round(0.02 / h))
            seen = system.evaluate()
            assert seen.largest("metres") < 1e-12
            assert seen.largest("rate_metres") < 1e-12
            tip = system.kinematics().point(bb.Frame("tip1"))
            assert abs(tip.p_W[1] - 0.6) < 1e-12
        errors.append(abs(system.evaluate().energy - before))
    assert errors[0] / errors[1] > 12
    assert errors[1] < 1e-6 * abs(before)


@pytest.mark.parametrize("name", sorted(set(FORMULATIONS) - {"projector"}))
def test_formulations_agree_on_a_loop_closed_by_beams(name):
    system = sliding_arm()
    vdot = FORMULATIONS[name](system.dynamics)(system.q, system.v, system.t).vdot
    expected = system.acceleration()
    assert_allclose(vdot, expected, atol=1e-10 * np.abs(expected).max())


@pytest.mark.parametrize("correction", ["start", "current"])
def test_semi_implicit_euler_and_the_filter_work_on_beams(correction):
    """At a step of a hundredth of the fastest period."""
    system = sliding_arm(dt=2e-5, correction=correction, integrator="semi_implicit_euler")
    system.rollout(5000)
    assert system.evaluate().largest("metres") < 1e-12
    assert system.evaluate().largest("rate_metres") < 1e-12


def test_a_four_bar_of_beams_has_its_redundant_row_dropped():
    """Three beams pinned to the ground by a ball, whose row out of the plane moves nothing."""
    links = [PlanarLink(SHORT), PlanarLink(LONG), PlanarLink(SHORT)]
    ends = bb.Frame("world", (1.0, 0, 0)), bb.Frame("tip2")
    loop = bb.LoopJoint("loop", bb.JointModel.BALL, *ends)
    system = bb.System(planar_arm(links, (0.0, -9.81, 0.0)), [loop], dt=1e-4, integrator="rk4")
    system.assemble(q={"j0": 1.5, "b0": [0, 0], "b1": [0, 0], "b2": [0, 0]}, v={})
    assert system.decision.by_name["loop"].kept == 2
    before = system.evaluate().energy
    system.rollout(2000)
    seen = system.evaluate()
    assert seen.largest("metres") < 1e-12
    assert abs(seen.energy - before) < 1e-9


def test_a_driven_base_carries_a_beam():
    """A cart moved by a given sine: the energy gained is the work of the driving force."""
    mechanism = with_joint(empty_mechanism(), "slide", "prismatic", "cart", rpy=(-np.pi / 2, 0, 0))
    mechanism = with_joint(mechanism, "pin", "revolute", "hub", "cart", rpy=(np.pi / 2, 0, 0))
    mechanism = with_beam(mechanism, "beam", LONG, "tip", "hub", load=Load(0.2))
    motion = bb.Motion(z=bb.Sine(amplitude=0.1, frequency=2.0))
    driven = bb.Coupling("base", {"slide": 1.0}, motion=motion)
    h, n = 5e-4, 1000
    system = bb.System(mechanism, [driven], dt=h, integrator="rk4")
    system.assemble(q={"pin": 0.2, "beam": [0, 0]}, v={})
    before, powers = system.evaluate().energy, []
    for k in range(n + 1):
        powers.append(system.reactions()["base"].multipliers[0] * system.v[0])
        if k < n:
            system.step()
    assert abs(system.q[0]) < 1e-12
    work = h / 3 * (powers[0] + powers[-1] + 4 * sum(powers[1:-1:2]) + 2 * sum(powers[2:-1:2]))
    gained = system.evaluate().energy - before
    assert abs(gained) > 1e-3
    assert abs(work - gained) < 1e-6 * np.abs(powers).max()
