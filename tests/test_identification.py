"""Parameters from recorded motions: true ones, within their standard errors."""

from dataclasses import replace

import numpy as np
import pybullet_data
import pytest
from support.solid_worlds import BLOCK, DT, G

import bulletbridge as bb
from bulletbridge.control.identification import Fit, check_recording
from bulletbridge.errors import BulletBridgeWarning, InfeasibleError, ModelError
from bulletbridge.mechanism.kinematics import displace

NOISE, STEPS = 1e-3, 120
TRUTH = {
    "forearm_left.mass": 0.55,
    "crank_right.mass": 0.63,
    "motor_left.damping": 0.12,
    "elbow_right.damping": 0.08,
    "tip.a.x": 0.59,
    "motor_right.armature": 0.012,
}


def driven(system: bb.System) -> np.ndarray:
    """Forces (steps, nv) on both motors."""
    t, tau = np.arange(STEPS) * system.dt, np.zeros((STEPS, system.mechanism.nv))
    tau[:, 0] = 2.0 * np.sin(9.0 * t) - 1.0
    tau[:, 2] = 2.0 * np.sin(7.0 * t + 2.0) + 1.0
    return tau


def recorded(system: bb.System, tau: np.ndarray, every: int = 2) -> bb.Recording:
    """What it does from where it is, its start included."""
    first, start = system.recorded(), system.save()
    parts = [first]
    for n, forces in enumerate(tau):
        system.tau[:] = forces
        system.step(write=False)
        if (n + 1) % every == 0:
            parts.append(system.recorded())
    system.restore(start)
    return bb.Recording.joined(parts)


def test_parameters_are_found_within_their_standard_errors(connect, rng):
    system = bb.load("five_bar", connect()._client).system
    before = {name: system.parameters[name] for name in TRUTH}
    system.set_parameters(TRUTH)
    tau = driven(system)
    exact = recorded(system, tau)
    noisy = replace(exact, q=exact.q + NOISE * rng.standard_normal(exact.q.shape))
    system.set_parameters(before)
    start = system.save()
    sizes = {name: abs(x) for name, x in TRUTH.items()}
    found = bb.identify(system, noisy, sizes, tau=tau)
    assert system.save() == start
    off = np.array([(found.values[name] - x) / found.errors[name] for name, x in TRUTH.items()])
    # chi squared of six degrees: beyond 27.9 once in ten thousand
    assert (
        off
        @ np.linalg.solve(
            found.covariance / np.outer(*2 * [np.sqrt(np.diag(found.covariance))]), off
        )
        <= 27.9
    )
    count = found.residuals.size
    assert abs(found.noise / NOISE - 1.0) <= 4.0 / np.sqrt(2.0 * count)
    # a recording without noise gives them to rounding, 1e-13: nothing ends the search before
    system.set_parameters(found.values)
    sharp = bb.identify(system, exact, sizes, tau=tau)
    for name, x in TRUTH.items():
        assert abs(sharp.values[name] / x - 1.0) <= 1e-10
    assert np.abs(sharp.q - exact.q[0]).max() <= 1e-10
    system.set_parameters(sharp.values)
    system.set_state(sharp.q, sharp.v)
    assert np.abs(recorded(system, tau).q - exact.q).max() <= 1e-10


def test_forces_of_each_step_take_the_place_of_the_systems(connect):
    """In copies of the system too, which rollouts with parameters are made by."""
    system = bb.load("five_bar", connect()._client).system
    tau, same = driven(system)[None], {"crank_left.mass": system.parameters["crank_left.mass"]}
    want = bb.rollout(system, [system.q], [system.v], tau, steps=STEPS).q
    system.tau[0] = 2.0
    found = bb.rollout(system, [system.q], [system.v], tau, steps=STEPS, parameters=same).q
    assert np.array_equal(found, want)


@pytest.mark.parametrize("share", [0.5, 0.998])
def test_a_fit_that_ends_elsewhere_is_told(connect, share):
    """Of smaller forces no damping makes this motion: residuals go on with it."""
    system = bb.load("five_bar", connect()._client).system
    tau = driven(system)
    run = recorded(system, tau)
    with pytest.warns(BulletBridgeWarning, match="errors that go on"):
        found = bb.identify(system, run, {"elbow_right.damping": 0.1}, tau=share * tau)
    moved = run.q - run.q[0]
    assert np.sum(found.residuals**2) > 1e-8 * np.sum(moved**2)


def test_pieces_from_starts_of_their_own_lead_to_what_the_whole_tells(connect):
    """Of twice the masses and dampings; searches end where a step gains 1e-2 of an error."""
    system = bb.load("five_bar", connect()._client).system
    rng, tau = np.random.default_rng(5), driven(system)
    true = {"crank_right.mass": 0.63, "motor_left.damping": 0.12, "elbow_right.damping": 0.08}
    system.set_parameters(true)
    run = recorded(system, tau, every=4)
    run = replace(run, q=run.q + NOISE * rng.standard_normal(run.q.shape))
    system.set_parameters({name: 2.0 * x for name, x in true.items()})
    joints = list(system.mechanism.joints)
    fit = Fit(system, run, true, joints, check_recording(system, run, tau))
    assert len(fit.cut(len(run.t), fit.begun())) > 1
    led, several = (fit.best(most) for most in (1, len(run.t)))
    assert led[1][0].records == several[1][0].records == fit.whole
    J, _ = fit.beside_starts(np.asarray(led[0].jac)[: -len(true)], led[1])
    errors = NOISE * np.linalg.norm(np.linalg.pinv(J), axis=1)
    assert np.all(np.abs(led[0].x - several[0].x)[: len(true)] <= 0.05 * errors)


def test_what_a_motion_does_not_tell_is_named(connect):
    system = bb.load("four_bar", connect()._client).system
    run = recorded(system, np.zeros((60, 3)))
    masses = ["crank.mass", "coupler.mass", "rocker.mass"]
    with pytest.raises(InfeasibleError, match=r"crank.mass, coupler.mass, rocker.mass apart"):
        bb.identify(system, run, masses)  # without known forces only their ratios show
    with pytest.raises(InfeasibleError, match=r"tell gravity.y apart"):
        bb.identify(system, run, ["gravity.y"])  # across the plane of the linkage


def test_recordings_that_do_not_fit_are_refused(connect):
    system = bb.load("four_bar", connect()._client).system
    run = recorded(system, np.zeros((10, 3)))
    uneven = replace(run, t=run.t**1.1)
    broken = replace(run, q=run.q * np.nan)
    for given, names, options, said in (
        (run, ["crank.mas"], {}, "crank.mass"),
        (run, [], {}, "nothing to identify"),
        (run, {"crank.mass": 0.0}, {}, "size of crank.mass"),
        (run, ["crank.mass"], {"tau": np.zeros(4)}, r"tau has shape \(4,\)"),
        (run, ["crank.mass"], {"measured": ["crankk"]}, "crank"),
        (uneven, ["crank.mass"], {}, "whole number of steps"),
        (broken, ["crank.mass"], {}, "not finite"),
    ):
        with pytest.raises(ModelError, match=said):
            bb.identify(system, given, names, **options)
    stewart = bb.load("stewart", connect()._client).system
    with pytest.raises(ModelError, match="another mechanism"):
        bb.identify(stewart, run, ["gravity.z"])


def test_friction_of_a_block_that_slides_is_found(solids, rng):
    """x = v n dt - mu g dt² n (n + 1)/2 of Euler's steps: slowed by friction, then at rest.

    Rates into the ground, which the start has too, show nowhere, and are no hindrance.
    """
    mu, speed, n = 0.35, 1.0, np.arange(101)[::4]
    solids.ground(plane=True)
    block = solids.solid(f'<box size="{BLOCK}"/>', (0, 0, 0.15), friction=0.25)
    system = solids.system(block)
    moving = np.minimum(n, int(speed / (mu * G * DT)))
    x = speed * moving * DT - mu * G * DT**2 * moving * (moving + 1) / 2.0
    first, name = system.recorded(), "b.lateral_friction"
    q = np.tile(first.q, (len(n), 1))
    q[:, 0] = x
    v = np.zeros((len(n), 6))
    v[0, 3] = speed
    run = replace(bb.Recording.joined([first] * len(n)), t=n * DT, q=q, v=v)
    for k in range(len(n)):
        away = NOISE * rng.standard_normal(6)
        displace(system.mechanism.bodies, run.q[k].copy(), away, 1.0, q[k])
    found = bb.identify(system, replace(run, q=q), [name])
    assert abs(found.values[name] - mu) <= 4.0 * found.errors[name] < 0.1
    assert abs(found.noise / NOISE - 1.0) <= 4.0 / np.sqrt(2.0 * found.residuals.size)


def test_an_arm_that_is_flung_about_is_weighed_from_far_off(connect, rng):
    """It turns by 15 rad in 1 s, where a millionth of a mass is a milliradian.

    Each part of the motion that is followed leads to the next; a search in all of it at once finds
    one of the minima that are everywhere, here 0.36 rad off.
    """
    client = connect()._client
    arm = bb.load(f"{pybullet_data.getDataPath()}/kuka_iiwa/model.urdf", client, limits=False)
    system, noise, steps = arm.system, 1e-7, 240
    true = {f"lbr_iiwa_link_{k}.mass": system.parameters[f"lbr_iiwa_link_{k}.mass"] for k in (4, 6)}
    t, numbers = np.arange(steps)[:, None] * system.dt, np.arange(7)
    tau = np.array([60, 60, 30, 30, 12, 6, 1.2]) * np.sin((3 + numbers) * t + numbers)
    exact = recorded(system, tau, every=4)
    noisy = replace(exact, q=exact.q + noise * rng.standard_normal(exact.q.shape))
    system.set_parameters({name: 1.4 * x for name, x in true.items()})
    found = bb.identify(system, noisy, list(true), tau=tau)
    off = np.array([found.values[name] - x for name, x in true.items()])
    # chi squared of two degrees: beyond 18.4 once in ten thousand
    assert off @ np.linalg.solve(found.covariance, off) <= 18.4
    count = found.residuals.size
    assert abs(found.noise / noise - 1.0) <= 4.0 / np.sqrt(2.0 * count)
