"""Motors and limits by factors of clusters: what one dense problem of them gives."""

from dataclasses import replace

import numpy as np
import pytest

import bulletbridge as bb
from bulletbridge.bench.problem import positions
from bulletbridge.bench.robots import hand, platform
from bulletbridge.bench.walkers import walker
from bulletbridge.inequalities.arrays import LENGTHS, ROWS

DT = 1e-3


def driven(made, seed, solver):
    """A robot with springs, some motors at work; of its joints some rub, others are at limits."""
    random, joints = np.random.default_rng(seed), dict(made.mechanism.joints)
    single = [name for name, joint in joints.items() if joint.is_single]
    for name in single[2::7]:
        joint, at = joints[name], float(made.q[joints[name].q.start])
        lower, upper = at - random.uniform(0.0, 5e-4), at + random.uniform(0.0, 5e-4)
        joints[name] = replace(joint, lower=lower, upper=upper, friction=random.uniform(0.0, 0.05))
    loops = [one for one in made.constraints if isinstance(one, bb.LoopJoint)]
    springs = [
        bb.Spring(f"on {one.name}", bb.Frame(one.a.link), one.b, 20.0, 0.5, length=0.1)
        for one in loops[::3]
    ]
    system = bb.System(
        replace(made.mechanism, joints=joints), [*made.constraints, *springs], dt=DT,
        limits="always", solver=solver,
    )  # fmt: skip
    system.assemble(guess=positions(made))
    for name in single[:1]:
        system.motors.set(name, velocity=random.uniform(1.0, 2.0), force=random.uniform(5.0, 20.0))
    return system


@pytest.mark.parametrize(
    ("make", "solver"),
    [(lambda: walker(7), "auto"), (hand, "clusters"), (platform, "clusters")],
    ids=["walker", "hand", "platform"],
)
def test_clusters_step_as_one_problem_does(make, solver):
    """Each step from one start, with limits that push: compliances, velocities, closed loops.

    Products of rows, in coordinates whose metric is 1, say what impulses do; rounding
    shows by the condition of M and of the loops, 1e4. Impulses are solved for until rates are
    within 1e-12 of the largest of some 10 rad/s. A force is that times a mass of some kg over dt.
    """
    parted, whole = (driven(make(), 3, one) for one in (solver, "dense"))
    pushed = 0
    for _ in range(20):
        parted.set_state(whole.q, whole.v)
        for system in (parted, whole):
            system.step()
        one, other = (system._inequalities.latest for system in (parted, whole))
        assert one._without_contacts == "clusters"
        n = int(other.report[ROWS])
        assert int(one.report[ROWS]) == n > 0
        pushed += n > 1
        D, expected = (x.C[0, :n] @ x.C[0, :n].T for x in (one, other))
        np.testing.assert_allclose(D, expected, rtol=0, atol=1e-10 * np.abs(expected).max())
        limits = [int(row) for row in other.joint_limits["row"] if row >= 0]
        lengths = (x.impulses[LENGTHS, limits] for x in (one, other))
        np.testing.assert_allclose(*lengths, rtol=1e-10)
        np.testing.assert_allclose(parted.v, whole.v, rtol=0, atol=1e-8)
        np.testing.assert_allclose(parted.q, whole.q, rtol=0, atol=DT * 1e-8)
        assert max(gap.kept_metres for gap in parted.evaluate().gaps) < 1e-12
    assert parted._active.solver.handed_over == 0
    assert pushed > 10
    reactions = parted.reactions()
    for name, reaction in whole.reactions().items():
        difference = reactions[name].force - reaction.force
        assert np.abs(difference).max() < 1e-8 * 5.0 / DT


def test_a_step_that_clusters_leave_is_made_at_once():
    """Where other rows are independent than were decided; those after it are theirs again."""
    systems = [driven(walker(2), 3, solver) for solver in ("clusters", "dense")]
    for n in range(9):
        for system in systems:
            control = system._active.solver.control[0]
            control["cap"] += int(n == 4) - int(n == 5)
            control["factored"] = 0
            system.step()
        assert systems[0]._active.solver.handed_over == int(n >= 4)
    np.testing.assert_allclose(systems[0].v, systems[1].v, rtol=0, atol=1e-8)


def test_equal_starts_lead_to_equal_bits():
    """After a restore, and in one call as in many."""
    system = driven(walker(2), 3, "clusters")
    system.rollout(5)
    start, ends = system.save(), list[np.ndarray]()
    for one_call in (True, False):
        if one_call:
            system.rollout(20)
        else:
            system.restore(start)
            for _ in range(20):
                system.step()
        ends.append(np.concatenate([system.q, system.v]))
    np.testing.assert_array_equal(*ends)
