"""Bodies that bounce, rock and collide, and what is left of a penetration."""

import numpy as np
import pybullet
import pytest
from scipy.spatial.transform import Rotation
from support.solid_worlds import BLOCK, DT, G

ROUND_OFF = 1e-12


@pytest.mark.parametrize("e", [0.0, 0.5, 1.0])
def test_a_ball_bounces_by_its_restitution(solids, e):
    """Every bounce divides the speed by e as far as a step tells it; energy never rises.

    The energy that semi-implicit Euler keeps in free fall, E + dt/2 m g·v, is kept by a bounce with
    restitution 1 too. A bounce changes the speed within a step, so to g dt.
    """
    solids.ground(plane=True)
    ball = solids.solid('<sphere radius="0.1"/>', [0, 0, 0.6], restitution=e)
    system = solids.system(ball)
    energies, speeds = [], []
    for _ in range(480):
        before = system.v[5]
        system.step()
        energies.append(system.evaluate().energy - 0.5 * DT * 2.0 * G * system.v[5])
        assert system.complementarity.work < 1e-12
        if before < -0.1 and system.v[5] > 0.99 * before:
            speeds.append((-before, system.v[5]))
    assert np.diff(energies).max() < 1e-12
    impact, after = speeds[0]
    assert impact == pytest.approx(np.sqrt(2 * G * 0.5), abs=G * DT)
    if e > 0.0:
        assert after == pytest.approx(e * impact, abs=1e-12)
    if e == 1.0:
        assert energies[-1] == pytest.approx(energies[0], abs=1e-9)
    if e == 0.0:
        assert abs(system.q[2] - 0.1) < ROUND_OFF


def test_a_rocking_block_loses_what_housner_says(solids):
    """A tilted block falls onto its other edge: a plastic impact leaves 1 - 3/2 sin² of the rate.

    Housner 1963: for a block of half diagonal at the angle a from its side. Time stepping meets the
    impact within a step; halving the step brings it nearer.
    """
    errors = []
    b, h = 0.1, 0.5  # half width, half height
    a = np.arctan(b / h)
    for dt in (1e-3, 5e-4):
        pybullet.resetSimulation(physicsClientId=solids.client)
        pybullet.setGravity(0, 0, -G, physicsClientId=solids.client)
        solids.ground()
        mass = 3.0
        moments = mass / 3 * np.array([0.3**2 + h**2, b**2 + h**2, 0.3**2 + b**2])
        tilt = 0.1
        R = Rotation.from_rotvec([0, tilt, 0])
        corner = np.array([b, 0, -h])  # on which it stands
        place = -R.apply(corner)
        box = f'<box size="{2 * b} 0.6 {2 * h}"/>'
        body = solids.solid(box, place, R.as_quat(), mass, moments, friction=1.0)
        system = solids.system(body, dt=dt)
        rates = []
        for _ in range(round(0.6 / dt)):
            system.step()
            rates.append(system.v[1])
        impact = int(np.argmin(rates))  # which takes two steps
        left = rates[impact + 2] / rates[impact]
        errors.append(abs(left - (1 - 1.5 * np.sin(a) ** 2)))
    # 8.4e-3 at 1 ms, of order one
    assert errors[0] < 1e-2
    assert errors[1] < 0.6 * errors[0]


def test_painlevé_rod_comes_to_rest(solids):
    """A sliding rod for which rigid bodies with friction have no acceleration, but an impulse.

    At mu above 4/3 a rod sliding with its tip ahead is pressed into the ground by its own friction.
    Time stepping finds the impulse that stops the tip (Stewart 2000): nothing is undefined, the
    residual is round-off, and no energy is made.
    """
    solids.ground()
    length, mass = 1.0, 1.0
    moment = mass * length**2 / 12
    tilt = np.deg2rad(30)
    R = Rotation.from_rotvec([0, -tilt, 0])
    tip = R.apply([0, 0, -length / 2])
    place = [0, 0, -tip[2] + 0.01]
    rod = solids.solid(
        f'<capsule radius="0.01" length="{length}"/>', place, R.as_quat(), mass, [moment] * 3,
        friction=3.0,
    )  # fmt: skip
    system = solids.system(rod, dt=1e-3)
    for speed in (5.0, -5.0):
        system.set_state(np.array([*place, *R.as_quat()]), [0, 0, 0, speed, 0, 0])
        for _ in range(500):
            system.step()
            assert system.complementarity.residual < 1e-9
            assert system.complementarity.work < 1e-4  # poses change within a step
            assert np.abs(system.v).max() < 20


def test_two_bodies_that_collide_keep_their_momentum(solids):
    pybullet.setGravity(0, 0, 0, solids.client)
    balls = [
        solids.solid('<sphere radius="0.1"/>', [0, 0, 0], moments=[0.01] * 3, restitution=0.6),
        solids.solid(
            f'<box size="{BLOCK}"/>', [0.5, 0.05, 0.02], mass=1.3, restitution=0.6, friction=0.8
        ),
    ]
    system = solids.system(balls)
    start = np.array([0.1, 2.0, -1.0, 2.0, 0.1, 0, 0.3, 0.2, 0.1, -1.0, 0, 0.05])
    system.set_state(v=start)
    first = system.evaluate()
    for _ in range(120):
        before = system.evaluate().momentum
        system.step()
        now = system.evaluate().momentum
        if system.complementarity.rows:
            # the angular one to what the bodies move within the step, as without contact
            assert np.abs(now - before)[3:].max() < 1e-13 * np.abs(first.momentum).max()
    last = system.evaluate()
    assert np.abs(last.momentum - first.momentum)[3:].max() < 1e-12
    assert last.kinetic < first.kinetic
    assert system.v[3] < 0.5  # they did collide


def test_a_penetration_is_taken_back_and_gives_no_speed(solids):
    solids.ground()
    body = solids.solid(f'<box size="{BLOCK}"/>', [0, 0, 0.15 - 5e-3])
    system = solids.system(body)
    depths = []
    for _ in range(60):
        system.step()
        depths.append(0.15 - system.q[2])
        assert np.abs(system.v).max() < ROUND_OFF
    # a fifth in every step, as Bullet's contactERP; what is below 1e-7 m is let be
    assert np.divide(depths[1:20], depths[:19]) == pytest.approx(0.8, abs=1e-6)
    assert depths[-1] < 1.0e-7
