"""What counts as closed follows from what double precision leaves of chains of any depth."""

import numpy as np
import pytest
from _campaign_cases import free_twists
from _campaign_judge import Judge
from _mechanisms import closed_loop_joint

import bulletbridge as bb
from bulletbridge.constraints.encode import encode
from bulletbridge.constraints.joint_models import SHORT, transmitted_wrenches
from bulletbridge.constraints.round_off import EPS, TYPICAL, accuracy_of
from bulletbridge.mechanism.build import Load, empty_mechanism, with_joint

GENERAL = bb.JointModel.GENERAL


def coiled(links, size, rng):
    """Hinges in a row, ``size`` [m] from one to the next, each turned against the one before."""
    mechanism = empty_mechanism((0.0, 0.0, -9.81 * size))
    load = Load(1.0, (0.5 * size, 0.0, 0.0), tuple(size**2 * np.array([0.02, 0.1, 0.1])))
    for k in range(links):
        on, place = (f"l{k - 1}", (size, 0.0, 0.0)) if k else ("world", (0.0, 0.0, 0.0))
        turn = tuple(float(x) for x in rng.uniform(-1.5, 1.5, 3))
        mechanism = with_joint(mechanism, f"j{k}", "revolute", f"l{k}", on, place, turn, load)
    return mechanism


def general_loop(mechanism, q, size, rng):
    """A general joint between the world and the last link that is closed at q."""
    twists = ()
    while not 2 <= len(twists) <= 4:
        twists = free_twists(rng)
    twists = tuple((*twist[:3], *(size * x for x in twist[3:])) for twist in twists)
    last = list(mechanism.links)[-1]
    loop = bb.LoopJoint("loop", GENERAL, bb.Frame("world"), bb.Frame(last), free=twists)
    judge = Judge(mechanism, [])
    moving = judge.moving(q[None], np.zeros((1, mechanism.nv)))
    ends = [judge.frame(moving, frame)[:2] for frame in (loop.a, loop.b)]
    return closed_loop_joint(loop, *((R[0], p[0]) for R, p in ends), 0.0, rng)


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("links", [5, 20, 60])
def test_general_loops_of_any_depth_and_size_are_closed_and_stay_so(links, size):
    """Turns of up to five, and velocities from elsewhere; no step gives up for round-off.

    Gaps, by the judge's kinematics, may be ten times what corrections aim at, in rows that the
    judge takes along other directions: a combination of at most five of ours, none longer than
    ten. Its own round-off is no more.
    """
    for seed in range(2):
        rng = np.random.default_rng([links, seed])
        mechanism = coiled(links, size, rng)
        q = rng.uniform(-30.0, 30.0, links) if seed % 2 else rng.uniform(-3.0, 3.0, links)
        loop = general_loop(mechanism, q, size, rng)
        system = bb.System(mechanism, [loop], dt=1e-3, allow_structure=True)
        system.set_state(q)
        system.step()
        system.set_state(v=rng.normal(0.0, 1.0, mechanism.nv))
        judge, accuracy = Judge(mechanism, [loop]), accuracy_of(mechanism, system.encoded)
        far = links * size * EPS * 8.0 / system.encoded.length
        aim = max(2e-14, accuracy.round_off + far) + EPS * 40.0 * accuracy.lever
        for _ in range(20):
            system.step()
            state = system.q[None], system.v[None], np.zeros(1)
            gap = np.abs(judge.gaps(*state)[0]).max()
            assert gap < 10.0 * aim * 5.0 * max(1.0, system.encoded.length)


def test_rounding_grows_with_the_depth_of_the_chain_and_not_with_its_unit():
    """The k-th of n hinges of one length turns what is n - k of them long: n (n - 1) / 2 in all."""

    def of(links, size):
        mechanism = coiled(links, size, np.random.default_rng(0))
        rod = bb.Distance("rod", bb.Frame("world"), bb.Frame(f"l{links - 1}"), size)
        return accuracy_of(mechanism, encode(mechanism, [rod]))

    for links in (5, 10, 20, 40):
        turned = TYPICAL * EPS * max(links, links * (links - 1) / 2)
        assert of(links, 1.0).round_off == pytest.approx(turned, rel=1e-12)
        for size in (1e-3, 1e3):
            assert of(links, size) == pytest.approx(of(links, 1.0), rel=1e-12)


def test_what_two_chains_share_is_no_matter():
    """A loop between the last links of an arm is misplaced by their own lengths alone."""
    mechanism = coiled(40, 1.0, np.random.default_rng(0))
    near = bb.Distance("rod", bb.Frame("l37"), bb.Frame("l39"), 1.0)
    far = bb.Distance("rod", bb.Frame("world"), bb.Frame("l39"), 1.0)
    found = [accuracy_of(mechanism, encode(mechanism, [rod])) for rod in (near, far)]
    assert found[0].lever == 1.0 < found[1].lever
    assert found[0].round_off < 0.3 * found[1].round_off


def test_rows_of_general_joints_are_not_long():
    """A row that is divided by a small number makes a large residual of what is round-off.

    Each pivot is at least ``SHORT`` of the largest entry that is left, so that an elimination makes
    no entry longer than 1 + 1 / SHORT times; those that wait are bounded by what they wait for.
    """
    rng = np.random.default_rng(0)
    longest = 0.0
    for _ in range(2000):
        free = np.array(free_twists(rng)).reshape(-1, 6)
        rows = transmitted_wrenches(free, SHORT)
        assert rows.shape == (6 - len(free), 6)
        assert np.abs(rows @ free.T).max(initial=0.0) < 1e-12 * max(
            1.0, np.abs(free).max(initial=0)
        )
        longest = max(longest, np.abs(rows).max())
    assert longest < (1.0 + 1.0 / SHORT) ** 2
