"""Motors and limits of islands: each is solved for alone, and moves as one problem moves all."""

import numpy as np
import pytest
from test_islands import bar, four_bar

import bulletbridge as bb
from bulletbridge.engine.islands import BESIDE_WORK, find_islands, gather, work_of
from bulletbridge.inequalities.arrays import ALONE
from bulletbridge.mechanism.build import Load, empty_mechanism, with_joint

DT = 2e-3
WAYS = "islands", "dense"


def robots(seed, count=4):
    """Four-bars, arms, a stone and a slide, with limits, friction and springs at random.

    A four-bar has a turn of its loop that is limited, and an arm a limited ball.
    """
    random = np.random.default_rng(seed)
    mechanism, loops = empty_mechanism((0.4, 0.1, -9.81)), []
    for k in range(count):
        mechanism, pin = four_bar(mechanism, k)
        hinge = bb.LoopJoint(
            pin.name,
            bb.JointModel.REVOLUTE,
            bb.Frame(f"r{k}", (0.7, 0, 0)),
            bb.Frame("world", (1.0, float(k), 0), (np.pi / 2, 0, 0)),
            turn=bb.LoopAxis(friction=float(random.uniform(0.0, 0.2))),
        )
        loops.append(hinge if k % 2 else pin)
        on = "world"
        for n in range(int(random.integers(1, 4))):
            name, at = f"arm{k}_{n}", (0.3, 0, 0) if n else (0, float(k), 3.0)
            turn = (0.0, float(random.uniform(-1, 1)), float(random.uniform(-1, 1)))
            mechanism = with_joint(mechanism, name, "revolute", name, on, at, turn, bar(0.5, 0.3))
            on = name
            joint = mechanism.joints[name]
            lower, upper = -random.uniform(0.01, 0.2), random.uniform(0.01, 0.2)
            mechanism.joints[name] = type(joint)(
                joint.name, joint.kind, joint.q, joint.v, lower, upper, random.uniform(0, 0.05)
            )
        if k == 1:
            mechanism = with_joint(mechanism, "base", "free", "stone", "world", load=bar(2.0, 0.5))
            mechanism = with_joint(mechanism, "slide", "prismatic", "cart", load=Load(1.0))
            mechanism.axes["stiffness"][-1] = 3.0
    return mechanism, loops


def driven(seed, solver, count=4, **options):
    """The same system, its motors at work."""
    mechanism, loops = robots(seed, count)
    system = bb.System(mechanism, loops, dt=DT, solver=solver, limits="always", **options)
    cranks = {f"crank{k}": 1.0 + 0.1 * k for k in range(count)}
    system.assemble(cranks, {name: 2.0 for name in cranks})
    random = np.random.default_rng(seed + 1)
    for k in range(count):
        system.motors.set(f"crank{k}", velocity=random.uniform(-2, 2), force=random.uniform(0, 9))
    system.motors.set("arm0_0", position=0.3, force=2.0)
    system.motors.set("slide", velocity=0.3, force=2.0)
    return system


def was_alone(system):
    """Whether the last step was made island by island."""
    return bool(system._inequalities.latest.report[ALONE])


@pytest.mark.parametrize("seed", range(4))
def test_islands_step_as_one_problem_steps_them(seed):
    """States, forces and reactions of each step from one start, with limits that push.

    Both solve for impulses until rates are within 1e-12 of the largest of some 10 rad/s. A force is
    that times a mass of some kg over dt; D has a condition below 1e3.
    """
    parted, whole = (driven(seed, solver) for solver in WAYS)
    pushed = 0
    for _ in range(120):
        parted.set_state(whole.q, whole.v)
        for system in (parted, whole):
            system.step()
        assert was_alone(parted) and not was_alone(whole)
        np.testing.assert_allclose(parted.v, whole.v, rtol=0, atol=1e-8)
        np.testing.assert_allclose(parted.q, whole.q, rtol=0, atol=DT * 1e-8)
        loads = parted.joint_loads
        for name, load in whole.joint_loads.items():
            pushed += load.limit != 0.0
            # along one joint only the sum is determined
            ours = loads[name].motor + loads[name].friction + loads[name].limit
            theirs = load.motor + load.friction + load.limit
            assert abs(ours - theirs) < 1e-8 * 5.0 / DT
        rows = [system._inequalities.latest.rows for system in (parted, whole)]
        np.testing.assert_allclose(*rows, rtol=0, atol=1e-9)
    assert pushed > 20
    reactions = parted.reactions()
    for name, reaction in whole.reactions().items():
        difference = reactions[name].force - reaction.force
        assert np.abs(difference).max() < 1e-8 * 5.0 / DT


def limited(solver, count=12, limit=100.0):
    """Bars that swing on points, which hold them up to a force."""
    mechanism, pins = empty_mechanism((0.0, 0.0, -9.81)), []
    for k in range(count):
        mechanism = with_joint(mechanism, f"base{k}", "free", f"bar{k}", load=bar(2.0, 0.5))
        ends = bb.Frame(f"bar{k}", (-0.2, 0, 0)), bb.Frame("world", (0, float(k), 0))
        pins.append(bb.LoopJoint(f"pin{k}", bb.JointModel.BALL, *ends, max_force=limit))
    system = bb.System(mechanism, pins, dt=DT, solver=solver, limits="always")
    q = system.q.reshape(count, 7)
    q[:, 0], q[:, 1] = 0.2, np.arange(count)
    system.set_state(q.ravel(), system.v)
    return system


def test_what_holds_is_of_an_island():
    """Points with a force limit: island by island while all hold, as one problem moves them.

    A bar is torn off and let go; then it is pulled back, and held again. Two runs beside each
    other: each of the steps adds at most what one may differ by in the test above, and bars on a
    point do not part by more than as fast as they swing.
    """
    parted, whole = limited("auto"), limited("dense")
    push, held = parted.mechanism.joints["base2"].v.start + 3, []
    for n in range(300):
        for system in (parted, whole):
            system.tau[push] = 200.0 if 60 <= n < 64 else 0.0
            system.step()
        assert parted.holding == whole.holding
        held.append(len(parted.holding) == 12)
        assert was_alone(parted) == held[-1]
        assert parted.complementarity.rows == whole.complementarity.rows
        np.testing.assert_allclose(parted.v, whole.v, rtol=0, atol=1e-7)
        np.testing.assert_allclose(parted.q, whole.q, rtol=0, atol=1e-7)
        if held[-1] and n % 10 == 0:
            ours, theirs = parted.reactions(), whole.reactions()
            for name, reaction in theirs.items():
                assert np.abs(ours[name].force - reaction.force).max() < 1e-8 * 5.0 / DT
    assert all(held[:60])
    assert not any(held[60:64])
    assert all(held[-20:])


def test_small_islands_go_together():
    """All of them, each once; a large one that would cost the others more stays alone."""
    mechanism, loops = robots(0, 12)
    for n in range(40):
        on = f"chain{n - 1}" if n else "world"
        mechanism = with_joint(mechanism, f"chain{n}", "revolute", f"chain{n}", on, load=bar(1, 1))
    solver = bb.System(mechanism, loops, limits=False)._active.solver
    members = find_islands(mechanism, solver.encoded)
    found = gather(members)
    assert len(found) < len(members) / 3
    for numbers in range(len(members[0])):
        every = [np.unique(np.concatenate([x[numbers] for x in each])) for each in (members, found)]
        np.testing.assert_array_equal(*every)
    assert sum(len(one.v) for one in found) == mechanism.nv
    assert [len(one.v) for one in found][-1] == 40
    cost = [sum(work_of(one) + BESIDE_WORK for one in each) for each in (members, found)]
    assert cost[1] < cost[0] / 2


def test_a_robot_moves_alone_as_among_others():
    """Of three four-bars with motors each moves as in a system of its own.

    Lengths by which rows are compared are those of the whole, so that it is not to the bit: 1e-12
    of the rates in each of 100 steps.
    """
    mechanism, pins = empty_mechanism((0.0, 0.0, -9.81)), []
    for k in range(3):
        mechanism, pin = four_bar(mechanism, k)
        pins.append(pin)
    alone = [(*four_bar(empty_mechanism((0.0, 0.0, -9.81)), k), (k,)) for k in range(3)]
    ends = []
    for made, loops, members, solver in (
        (mechanism, pins, range(3), "islands"),
        *((made, [pin], members, "auto") for made, pin, members in alone),
    ):
        system = bb.System(made, loops, dt=DT, solver=solver, limits="always")
        cranks = [f"crank{k}" for k in members]
        system.assemble({name: 1.0 + k for name, k in zip(cranks, members, strict=True)})
        for k in members:
            system.motors.set(f"crank{k}", velocity=1.0 - k, force=3.0 + k)
        for _ in range(100):
            system.step()
        ends.append((system.q, system.v))
    for n in range(2):
        np.testing.assert_allclose(
            ends[0][n], np.concatenate([end[n] for end in ends[1:]]), rtol=0, atol=1e-9
        )


def test_equal_starts_lead_to_equal_bits():
    """Whatever was done before, and in one call of many steps as in many of one."""
    parted = driven(0, "islands")
    for _ in range(30):
        parted.step()
    kept = parted.save()
    for _ in range(40):
        parted.step()
    end = np.concatenate([parted.q, parted.v])
    parted.restore(kept)
    parted.rollout(40)
    np.testing.assert_array_equal(np.concatenate([parted.q, parted.v]), end)
    other = driven(0, "islands")
    for _ in range(70):
        other.step()
    np.testing.assert_array_equal(np.concatenate([other.q, other.v]), end)


def test_motors_keep_the_momentum_of_each_island():
    """Of floating arms that motors bend, without weight: each keeps its own, linear and angular.

    Semi-implicit Euler keeps what a step starts with to round-off in velocities; the angular
    momentum moves with the inertia, by a share of dt in all, which halves with dt.
    """
    found = []
    for dt in (DT, DT / 2):
        mechanism = empty_mechanism()
        for k in range(2):
            mechanism = with_joint(mechanism, f"base{k}", "free", f"hub{k}", load=bar(2.0, 0.5))
            mechanism = with_joint(
                mechanism, f"elbow{k}", "revolute", f"arm{k}", f"hub{k}", (0.5, 0, 0),
                load=bar(1.0, 0.4),
            )  # fmt: skip
        system = bb.System(mechanism, (), dt=dt, solver="islands", limits="always")
        for k in range(2):
            system.motors.set(f"elbow{k}", velocity=1.0 - 3.0 * k, force=5.0)
        for _ in range(round(0.2 / dt)):
            system.step()
        assert was_alone(system)
        momentum = system._active.solver.terms(system.q, system.v, 0.0).M @ system.v
        parts = [mechanism.joints[f"base{k}"].v for k in range(2)]
        assert all(abs(system.v[mechanism.joints[f"elbow{k}"].v.start]) > 0.5 for k in range(2))
        found.append(np.abs([momentum[part] for part in parts]).max())
    assert found[0] < 0.1
    assert found[1] < 0.7 * found[0]


@pytest.mark.parametrize(("count", "way"), [(4, "islands"), (12, "auto")])
def test_settings_that_change_reach_the_islands(count, way):
    """Motors, gravity and a mass, between steps of both; of many islands some go together."""
    parted, whole = (driven(2, solver, count) for solver in (way, "dense"))
    for n in range(30):
        parted.set_state(whole.q, whole.v)
        for system in (parted, whole):
            if n == 10:
                system.gravity = (0.0, 0.0, -1.6)
                system.motors.set("crank2", velocity=-1.0, force=20.0)
            if n == 20:
                system.motors.off("crank0")
                system.tau[:] = 0.1
                system.set_parameters({"c1.mass": 2.0})
            system.step()
        assert was_alone(parted)
        np.testing.assert_allclose(parted.v, whole.v, rtol=0, atol=1e-8)
