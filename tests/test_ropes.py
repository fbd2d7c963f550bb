"""Many free bodies on point joints: steps, decisions and filters link by link."""

# whether a step was handed over, and what was decided, is not for users
# pyright: reportPrivateUsage=false

import numpy as np
import pytest
from test_filter import Given
from test_links import row

import bulletbridge as bb
from bulletbridge.engine.redundancy import Start, decide
from bulletbridge.engine.sparse_plan import SparseStepper
from bulletbridge.mechanism.build import Load, empty_mechanism, with_joint

LINK = 0.1
CLOSED = 1e-12


def rope(n, solver="sparse", **options):
    """Balls of 50 g on point joints, the first on the world, stretched along x; they fall."""
    mechanism, joints = empty_mechanism((0.0, 0.0, -9.81)), []
    ball = Load(0.05, (0.0, 0.0, 0.0), np.diag([2e-5] * 3))
    for k in range(n):
        mechanism = with_joint(mechanism, f"free{k}", "free", f"ball{k}", load=ball)
        a = bb.Frame(f"ball{k - 1}", (LINK / 2, 0, 0)) if k else bb.Frame("world")
        b = bb.Frame(f"ball{k}", (-LINK / 2, 0, 0))
        joints.append(bb.LoopJoint(f"pin{k}", bb.JointModel.BALL, a, b))
    system = bb.System(mechanism, joints, solver=solver, **options)
    system.assemble(guess={f"free{k}": [(k + 0.5) * LINK, 0, 0, 0, 0, 0, 1] for k in range(n)})
    return system


def refuse_joint_coordinates(system, monkeypatch):
    """Fail a step that is handed over, or that needs parts."""
    assert isinstance(system._active.solver.stepper, SparseStepper)
    monkeypatch.setattr(system._active.solver, "run_whole", None)
    monkeypatch.setattr(system._active.solver, "_refine", None)


@pytest.mark.parametrize("integrator", ["semi_implicit_euler", "verlet"])
def test_a_rope_that_whips_is_closed_link_by_link(integrator, monkeypatch):
    """Corrections of half a radian a step are beyond what the first factors can do."""
    system, guarded = rope(12, dt=1 / 120, integrator=integrator), 0
    refuse_joint_coordinates(system, monkeypatch)
    for _ in range(120):
        system.step()
        guarded += system.status.guarded
        gaps = system.evaluate()
        assert gaps.largest("kept_metres") < CLOSED
    assert guarded > 2


def test_a_rope_moves_as_in_joint_coordinates():
    """Until round-off has grown: by exp(w t) at rates w of 30 rad/s."""
    ends = []
    for solver in ("sparse", "dense"):
        system = rope(8, solver, dt=1e-3)
        system.rollout(200)
        ends.append(np.concatenate([system.q, system.v]))
    np.testing.assert_allclose(*ends, rtol=0, atol=1e-15 / 1e-3 * np.exp(30 * 0.2))


def test_what_is_decided_at_one_pose_is_what_samples_tell():
    """All rows of a rope are independent."""
    system = rope(6)
    full, decision = system._active.full, system._active.decision
    assert len(decision.jacobians) == 0  # it took no samples
    sampled = decide(system.mechanism, full.encoded, Start(system.q, True), 0.0, system.tolerances)
    assert decision.kept == sampled.kept == (*6 * [3], 18, 18)


def test_rows_that_follow_from_others_are_decided_by_samples():
    """Planar four-bars on ball joints: a row a loop is redundant by design."""
    mechanism, joints = row(6)
    system = bb.System(mechanism, joints, solver="sparse")
    system.assemble({"rod0": 1.0}, {"rod0": 1.0})
    assert len(system._active.decision.jacobians) > 1
    assert system._active.decision.cap == 12


def flat(solver, angle):
    """Four-bars in a row at an angle from the position in which all bars lie on one line."""
    system = bb.System(*row(3), solver=solver)
    names = [f"rod{k}" for k in range(4)], [f"coupler{k}" for k in range(1, 4)]
    q = {name: angle for name in names[0]} | {name: -angle for name in names[1]}
    # decided elsewhere: that position alone tells nothing
    system.assemble({"rod0": 1.0}, {"rod0": 1.0})
    state = system.q
    for name, value in q.items():
        state[system.mechanism.joint(name).q] = value
    system.set_state(state, v=np.zeros(system.mechanism.nv))
    return system


@pytest.mark.parametrize("angle", [0.0, 1e-9, 1e-7, 1e-5, 1e-3])
def test_rows_that_are_all_but_lost_are_told_from_those_that_are(angle, monkeypatch):
    """An elimination sees squares of their lengths, which are this angle, and round-off of them.

    Below the threshold of weak rows, 1e-6, they do not accelerate, and still filter velocities.
    """
    one, other = (flat(solver, angle) for solver in ("sparse", "dense"))
    monkeypatch.setattr(one._active.solver, "stored_call", None)
    accelerations = [system.acceleration() for system in (one, other)]
    assert one.status.rank == other.status.rank
    if angle != 1e-7:  # within a digit of the threshold of what filters
        assert (
            one._active.solver.control["filter_rank"] == other._active.solver.control["filter_rank"]
        )
    size = np.abs(accelerations[1]).max()
    # multipliers are of the order of residuals, 1e-16, over the square of the weakest length
    weakest = max(min(1.0, angle if angle > 1e-6 else 1.0), 1e-6)
    np.testing.assert_allclose(*accelerations, rtol=0, atol=1e-13 * size / weakest)


@pytest.mark.parametrize("sideways", [0.0, 0.02])
def test_a_filter_takes_as_little_as_in_joint_coordinates(sideways):
    """Balls that were moved and pushed: the same state by the same impulses."""
    found = []
    for solver in ("sparse", "dense"):
        system = rope(9, solver, dt=1 / 240)
        rng = np.random.default_rng(4)
        q, v = system.q, rng.normal(0, 0.3, system.mechanism.nv)
        for name in system.mechanism.joints:
            q[system.mechanism.joint(name).q][:3] += sideways * rng.standard_normal(3)
        system.world = Given(q, v)
        impulses = system.filter()
        assert system.evaluate().largest("kept_metres") < CLOSED
        found.append((system.q, system.v, impulses.velocity, impulses.position))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-11 * max(1.0, np.abs(other).max()))
