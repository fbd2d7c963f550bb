"""No gap without a word: whatever is left out as redundant, or weak at a pose, stays watched."""

from dataclasses import replace

import numpy as np
import pytest
from _campaign_cases import make_case
from numpy.testing import assert_array_equal
from support.planar import four_bar, parallelogram, planar_chain

import bulletbridge as bb
from bulletbridge.engine.choose import copy_of
from bulletbridge.engine.failures import explain
from bulletbridge.engine.records import CONTRADICTED, LEFT_OPEN, NOT_CLOSED
from bulletbridge.engine.redundancy import (
    largest_singular_values,
    samples_of,
    select,
    with_gaps,
)
from bulletbridge.errors import AssemblyError, BulletBridgeWarning, StepError
from bulletbridge.mechanism.build import Load, empty_mechanism, with_joint
from bulletbridge.mechanism.model import Joint, Link, Mechanism, empty_arrays
from bulletbridge.mechanism.records import FREE

KEPT = 1.2e-12
"""Gap [lengths, rad] beyond which something is open: what steps allow rows that follow from others,
fifty times what counts as closed: 2e-14, and some 1e-15 for what round-off makes of angles."""


def chain(joints, spatial):
    """Rods of 1 m on hinges that are parallel, or each at right angles to the one before."""
    mechanism = planar_chain([1.0] * joints, [1.0] * joints)
    bodies = mechanism.bodies.copy()
    for i in range(1, joints + 1):
        bodies["J"][i] = np.diag([1e-2, 0.1, 0.1])
        if spatial and i > 1:
            bodies["R"][i] = [[1, 0, 0], [0, 0, (-1) ** i], [0, -((-1) ** i), 0]]
    return replace(mechanism, bodies=bodies)


def at_its_reach(kind, joints, spatial, short, **options):
    """A stretched chain whose tip is held where it just comes to, ``short`` of it [lengths]."""
    tip, pin = bb.Frame(f"l{joints - 1}", (1.0, 0, 0)), joints * (1.0 - short)
    if kind == "ball":
        loop = bb.LoopJoint("tip", bb.JointModel.BALL, tip, bb.Frame("world", (pin, 0, 0)))
    else:
        loop = bb.Distance("tip", tip, bb.Frame("world", (pin + 0.5, 0, 0)), 0.5)
    return bb.System(chain(joints, spatial), [loop], **options)


CHAINS = [("ball", 3, False), ("ball", 6, False), ("ball", 6, True), ("distance", 3, True)]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("kind", "joints", "spatial"), CHAINS)
@pytest.mark.parametrize("short", [0.0, 1e-9, 1e-7])
def test_a_chain_at_full_reach_keeps_its_loop_or_says_which_is_lost(kind, joints, spatial, short):
    """There the row along the chain vanishes, and nothing at that pose says that it is needed."""
    system = at_its_reach(kind, joints, spatial, short)
    try:
        system.assemble()
        for _ in range(40):
            system.step()
            assert system.evaluate().largest("metres") < KEPT * joints
    except (AssemblyError, StepError) as error:
        assert "'tip'" in str(error)  # no gap, but no motion either


@pytest.mark.parametrize(("kind", "joints", "spatial"), CHAINS)
@pytest.mark.parametrize("short", [1e-6, 1e-4])
def test_a_chain_a_little_short_of_its_reach_moves(kind, joints, spatial, short):
    system = at_its_reach(kind, joints, spatial, short)
    system.assemble()
    for _ in range(40):
        system.step()
        assert system.evaluate().largest("metres") < KEPT * joints
    assert np.abs(system.v).max() > 0.0


@pytest.mark.parametrize(
    ("kind", "joints", "spatial", "beyond"),
    [(*chain, beyond) for chain, beyond in zip(CHAINS, 2 * [1e-8, 2e-5], strict=True)],
)
def test_a_chain_that_does_not_reach_is_refused(kind, joints, spatial, beyond):
    with pytest.raises(AssemblyError, match="'tip' cannot close: gap"):
        at_its_reach(kind, joints, spatial, -beyond).assemble()


@pytest.mark.parametrize(
    ("joints", "integrator"), [(15, "verlet"), (15, "semi_implicit_euler"), (30, "verlet")]
)
def test_a_chain_of_many_links_at_its_reach_stays_straight(joints, integrator):
    """Bends of many links have as many shapes, which one row has to take back by its gradient.

    The oracle is the only closed configuration: links at angles to the line that are a gap open
    leave it by the sum of 1 - cos, so none by more than the root of twice the gap.
    """
    system = at_its_reach("ball", joints, False, 0.0, integrator=integrator, dt=1 / 60)
    system.assemble()
    for _ in range(8):
        system.step()
        assert system.evaluate().largest("metres") < joints * KEPT
        assert np.abs(np.cumsum(system.q)).max() < np.sqrt(2 * joints * KEPT)


BENT = [(15, 1e-10), (15, 1e-6), (30, 1e-8), (30, 1e-4), (60, 1e-3)]


@pytest.mark.parametrize(("joints", "short"), BENT)
def test_a_straight_chain_of_many_links_that_reaches_is_bent_until_it_closes(joints, short):
    """Straight it has no gradient, and from wide bends takes more iterations than there are."""
    system = at_its_reach("ball", joints, False, short)
    system.assemble()
    missing = np.sum(2 * np.sin(np.cumsum(system.q) / 2) ** 2)
    assert abs(missing - joints * short) < joints * KEPT


@pytest.mark.parametrize("failure", [NOT_CLOSED, LEFT_OPEN])
def test_a_loop_that_stays_open_where_a_chain_is_stretched_says_so(failure):
    system = at_its_reach("ball", 3, False, 0.0)
    system.assemble()
    said = explain(system._active.solver, failure, by_others=False)
    assert "singular position of 'tip'" in said and "give it slack" in said


def test_where_nothing_moves_any_row_the_error_counts_with_nothing():
    """A rod along a straight chain: no hinge changes its length."""
    system = at_its_reach("distance", 3, False, 0.0)
    system.assemble()
    solver = system._active.solver
    assert not solver.terms(solver.q, solver.v, 0.0).J.any()
    assert "singular value 0.0e+00 of" in explain(solver, NOT_CLOSED, by_others=False)


@pytest.mark.parametrize(("pieces", "short"), [(15, 1e-6), (15, 1e-4), (30, 1e-5)])
def test_a_straight_rope_of_free_pieces_that_is_too_long_is_bent_not_called_rounded(pieces, short):
    """Straight and a micrometre short its gap is no larger than frames may be rounded by.

    The oracle is where the ends of the pieces are by their quaternions.
    """
    length, mechanism, joints, guess = 0.1, empty_mechanism((0, 0, -9.81)), [], {}
    span, ball = pieces * length - short, bb.JointModel.BALL
    for k in range(pieces):
        piece = Load(0.05, (0, 0, 0), np.diag([2e-5] * 3))
        mechanism = with_joint(mechanism, f"f{k}", "free", f"p{k}", load=piece)
        guess[f"f{k}"] = [(k + 0.5) * span / pieces, 0, 0, 0, 0, 0, 1]
        before = bb.Frame(f"p{k - 1}", (length / 2, 0, 0)) if k else bb.Frame("world")
        joints.append(bb.LoopJoint(f"j{k}", ball, before, bb.Frame(f"p{k}", (-length / 2, 0, 0))))
    last, pin = bb.Frame(f"p{pieces - 1}", (length / 2, 0, 0)), bb.Frame("world", (span, 0, 0))
    joints.append(bb.LoopJoint("end", ball, last, pin))
    system = bb.System(mechanism, joints, solver="dense")
    system.assemble(guess=guess)
    assert system.dof == 6 * pieces - 3 * (pieces + 1)
    for _ in range(5):
        poses = system.q.reshape(pieces, 7)
        x, y, z, w = poses[:, 3:].T
        along = np.stack([1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)], 1)
        left = np.vstack([poses[:, :3] - length / 2 * along, [span, 0, 0]])
        right = np.vstack([[0, 0, 0], poses[:, :3] + length / 2 * along])
        assert np.abs(left - right).max() < KEPT
        system.step()


def test_a_drive_past_the_reach_says_that_no_motion_is_left():
    """Two links of 1 m whose tip is led along a line to 2 m and further: it gets there at 0.1 s."""
    to = bb.Polynomial((1.9, 1.0))
    drive = bb.LoopJoint(
        "tip",
        bb.JointModel.BALL,
        bb.Frame("world"),
        bb.Frame("l1", (1.0, 0, 0)),
        motion=bb.Motion(x=to),
    )
    system = bb.System(planar_chain([1.0] * 2, [1.0] * 2), [drive], dt=0.005)
    system.assemble(guess={"j0": 0.3, "j1": -0.6})
    with pytest.raises(StepError, match="'tip'.*a drive leads to the end of what the loops can"):
        system.rollout(40)
    assert abs(system.t - 0.1) < 0.0051


def leaning_chain(lean):
    """Four hinges of which the last leans [rad], the tip held where it is: one freedom is left."""
    mechanism = planar_chain([0.4, 0.9, 0.7, 0.5], [0.8, 1.8, 1.4, 1.0])
    bodies, c, s = mechanism.bodies.copy(), np.cos(lean), np.sin(lean)
    bodies["R"][4] = [[1, 0, 0], [0, c, -s], [0, s, c]]
    bodies["J"][4] = np.diag([1e-2, 2e-2, 2e-2])
    mechanism, q = replace(mechanism, bodies=bodies), np.array([1.0, -1.4, 0.9, 0.7])
    free, tip = bb.System(mechanism), bb.Frame("l3", (0.5, 0, 0))
    free.set_state(q)
    pin = bb.Frame("world", tuple(free.kinematics().point(tip).p_W))
    system = bb.System(mechanism, [bb.LoopJoint("tip", bb.JointModel.BALL, tip, pin)])
    system._active.full.q[:] = q
    return system


@pytest.mark.parametrize("lean", [3e-2, 3e-4, 1e-5])
def test_a_weak_row_that_is_meant_is_kept(lean):
    """A start that is closed to round-off is not one with rounded frames."""
    system = leaning_chain(lean)
    for _ in range(100):
        system.step()
        assert system.evaluate().largest("metres") < KEPT
    assert system.dof == 1


def test_a_lean_that_a_file_has_rounded_is_left_out():
    """The same from a start that does not close: the mechanism is planar then, its gap told."""
    system = leaning_chain(3e-5)
    system._active.full.q[:] += [0.0, 1e-3, 0.0, 0.0]
    with pytest.warns(BulletBridgeWarning, match="'tip' opens"):
        system.assemble()
    assert system.dof == 2
    told = system.decision.by_name["tip"].mismatch_m
    system.run(0.5)
    assert 0.0 < system.evaluate().largest("metres") < 10.0 * told  # its allowance


@pytest.mark.filterwarnings("ignore:constraint 'tip' opens")
@pytest.mark.parametrize("lean", [1e-4, 1e-5])
@pytest.mark.parametrize("gap", [8e-5, 1e-6])
def test_no_long_way_is_gone_to_close_what_next_to_nothing_moves(lean, gap):
    """A pin beside the plane: a turn by radians would close it, moves along that valley end soon.

    Three descents, from the start and two bends, take 300 iterations each if nothing ends them; a
    third of one is enough for a valley to be known, with as many more for what is regular.
    """
    leaning = leaning_chain(lean)
    q, (tip,) = leaning._active.full.q, leaning.constraints
    pin = replace(tip.b, xyz=tuple(np.array(tip.b.xyz) + [0.0, gap, 0.0]))
    system = bb.System(leaning.mechanism, [replace(tip, b=pin)])
    system._active.full.q[:] = q
    assert system.assemble().iterations <= 300
    assert system.dof == 2
    assert np.abs(system.q - q).max() < 10.0 * np.sqrt(2.0 * gap)  # ``BENT``


def test_what_was_left_out_wrongly_is_taken_back_within_the_step():
    """A decision that leaves out a row that is needed, with no gap allowed."""
    system = leaning_chain(3e-2)
    system.assemble()
    system_ = system.mechanism, system.encoded, 0.0, system.tolerances
    samples = samples_of(*system_, system.q, system.tolerances.redundant)
    wrong = with_gaps(*system_, samples, select(*system_, samples, 0.2, ()))
    assert wrong.by_name["tip"].kept == 2
    wrong.encoded.loops["allowed"] = 0.0
    system._active.solver, system._active.decision = copy_of(system._active.solver, wrong), wrong
    for _ in range(20):
        system.step()
        assert system.evaluate().largest("metres") < KEPT
    assert system.decision.by_name["tip"].kept == 3


def wheel(model, integrator):
    """A wheel on an axle that circles a post: the slip along the axle follows from positions."""
    bodies, axes = empty_arrays(2, 6)
    wheel = bodies[1]
    wheel["joint"], wheel["axis"], wheel["mass"] = FREE, 5, 2.0
    wheel["J"] = np.diag([0.12, 0.06, 0.06])
    axes["body"], axes["below"], axes["q"] = 1, np.arange(-1, 5), -1
    links = {n: Link(n, i, np.eye(3), np.zeros(3)) for i, n in enumerate(("world", "wheel"))}
    base = {"base": Joint("base", "free", slice(0, 7), slice(0, 6))}
    mechanism = Mechanism(bodies, axes, links, base, np.array([0, 0, -9.81]))
    radius, axle, more = 0.3, 1.0, {}
    if model is bb.JointModel.UNIVERSAL:
        more = {"axis_b": (1.0, 0.0, 0.0)}
    ends = bb.Frame("world", (0, 0, radius)), bb.Frame("wheel", (-axle, 0, 0))
    post = bb.LoopJoint("post", model, *ends, **more)
    rolling = bb.JointModel.ROLLING
    roll = bb.LoopJoint("roll", rolling, bb.Frame("world"), bb.Frame("wheel"), radius=radius)
    system = bb.System(mechanism, [post, roll], integrator=integrator)
    turn = 2.0
    system._active.full.q[:] = [axle, 0, radius, 0, 0, 0, 1]
    system.assemble()
    system.set_state(v=np.array([-turn * axle / radius, 0, turn, 0, turn * axle, 0]))
    return system


@pytest.mark.parametrize("integrator", ["semi_implicit_euler", "verlet", "rk4", "dop853"])
@pytest.mark.parametrize("model", [bb.JointModel.BALL, bb.JointModel.UNIVERSAL])
def test_rows_of_velocity_follow_from_those_of_position_not_they_from_them(model, integrator):
    system = wheel(model, integrator)
    nc, turn = system._active.solver.encoded.nc, system.v[2]
    assert system.decision.cap == 5 < nc
    for _ in range(120):
        system.step()
        found = system.evaluate()
        assert max(found.largest("metres"), found.largest("radians")) < KEPT
        assert found.largest("rate_metres") < 1e-9
    # nothing drives or brakes it on the level: it circles as fast as it did, but for what the
    # step's turn of 8e-3 rad, squared, may cost of it in half a second
    assert system.v[2] == pytest.approx(turn, rel=6e-5)


def test_wheels_roll_in_python_as_they_do_compiled():
    """The same split in other formulations."""
    system = wheel(bb.JointModel.BALL, "rk4")
    other = bb.System(
        system.mechanism, system.constraints, integrator="rk4", formulation="elimination"
    )
    other._active.full.q[:] = system.q
    other.assemble()
    other.set_state(v=system.v)
    for _ in range(20):
        system.step()
        other.step()
    assert other.evaluate().largest("metres") < KEPT
    np.testing.assert_allclose(other.q, system.q, atol=1e-10)


def test_reactions_take_for_weak_what_the_step_takes_for_weak():
    """Near a flat parallelogram, whose weakest row goes through every size."""
    system, *_ = parallelogram()
    for away in np.geomspace(1e-8, 1e-3, 41):
        system.assemble({"j0": np.pi - away})
        terms = system._active.solver.terms(system.q, system.v, system.t)
        vdot = system.acceleration()
        needed = terms.M @ vdot + terms.h - terms.forces - system.tau
        multipliers = system.reactions()["loop"].multipliers
        # multipliers are as large as needed / the weakest row that counts, 1e-6: its round-off
        assert np.abs(needed - terms.J.T @ multipliers).max() < 1e-9 * np.abs(needed).max()


@pytest.mark.parametrize("rate", [0.1, 1e-6])
def test_drives_that_part_are_refused_before_the_loop_opens(rate):
    """Two drives agree at the start and part from then on, as slowly as may be."""
    first = bb.Coupling("first", {"j0": 1.0}, motion=bb.Motion(z=bb.Polynomial((1.0, 0.5))))
    system = four_bar(extra=[first])
    system.assemble()
    along = bb.Polynomial((float(system.q[1]), float(system.v[1]), rate))
    second = bb.Coupling("second", {"j1": 1.0}, motion=bb.Motion(z=along))
    system = four_bar(extra=[first, second])
    with pytest.raises((AssemblyError, StepError), match="'loop'|'first'|'second'"):
        system.assemble()
        for _ in range(100):
            system.step()
            assert system.evaluate().largest("metres") < KEPT


@pytest.mark.parametrize("wrong", [1e-9, 1e-7])
def test_what_only_another_place_would_close_is_an_error_and_no_leap_there(wrong):
    """A nut on a screw, and a coupling of nearly its pitch: both hold where they began, alone.

    Started there they pass for one, and the nut falls; once what is left out is open by more than
    was found at the start, the error names it, and no step takes the nut back.
    """
    load, pitch = Load(1.0, (0.02, 0, 0), np.diag([0.01, 0.01, 0.01])), 0.2
    mechanism = empty_mechanism((0.0, 0.0, -9.81))
    mechanism = with_joint(mechanism, "slide", "prismatic", "cart", load=load)
    mechanism = with_joint(mechanism, "spin", "revolute", "nut", "cart", load=load)
    ends, per_turn = (bb.Frame("world"), bb.Frame("nut")), pitch / (2 * np.pi)
    screw = bb.LoopJoint("screw", bb.JointModel.SCREW, *ends, pitch=pitch)
    gear = bb.Coupling("gear", {"slide": 1.0, "spin": -per_turn * (1 + wrong)}, 0.0)
    system = bb.System(mechanism, [screw, gear])
    with pytest.warns(BulletBridgeWarning, match="'(screw|gear)' opens"):
        system.assemble()
    with pytest.raises(StepError, match=r"'(screw|gear)' stays open by"):
        for _ in range(1000):
            before = system.q
            system.step()
            assert np.all(system.q <= before)
    assert_array_equal(system.q, before)
    assert system.q[0] < -0.1


@pytest.mark.parametrize("shape", [(3, 2, 0), (3, 0, 4), (3, 2, 4)])
def test_rows_that_nothing_moves_have_a_size(shape):
    """None of the rates, or none of the rows: some versions of NumPy have no norm there."""
    matrices = np.random.default_rng(0).normal(size=shape)
    expected = [np.sqrt(np.linalg.eigvalsh(A @ A.T).max(initial=0.0)) for A in matrices]
    np.testing.assert_allclose(largest_singular_values(matrices), expected, rtol=1e-12)


@pytest.mark.parametrize("short", [1e-13, 5e-13, 1e-12, 2e-12])
@pytest.mark.parametrize("hinges", [3, 12, 40])
def test_a_chain_that_is_short_of_its_reach_by_round_off_is_closed(hinges, short):
    """Straight its tip is open by what counts as closed, and by more than steps leave."""
    links = [0.1] * hinges
    tip = bb.Frame("world", (0.1 * hinges - short, 0, 0)), bb.Frame(f"l{hinges - 1}", (0.1, 0, 0))
    system = bb.System(planar_chain(links, links), [bb.LoopJoint("tip", bb.JointModel.BALL, *tip)])
    system.assemble()
    for _ in range(5):
        system.step()
        assert system.evaluate().largest("metres") < KEPT


def test_a_rod_beside_its_reach_is_no_rounded_one():
    """Its row is 5e-5 of the strongest: left out, it opens along the motion that is left.

    Poses that close it, too, do not show that. Its start was left open by 6.4e-5 m.
    """
    system = make_case(970576).system("verlet")
    assert system.decision.cap == system.encoded.nc
    for _ in range(4):
        assert system.evaluate().largest("metres") < KEPT
        system.rollout(25)


@pytest.mark.parametrize("failure", [CONTRADICTED, LEFT_OPEN])
def test_error_control_is_not_given_up_for_a_gap_that_is_none(failure):
    """Sub-steps shrink to where a drive leads to the end of what loops reach, and gaps with them.

    The error said that constraints contradict each other, by 6.6e-12 m (1120008, driven).
    """
    system = at_its_reach("ball", 3, False, 1e-3)
    system.assemble()
    solver = system._active.solver
    solver.control[0]["controlled"], solver.control[0]["worst"] = 1, 0
    for gap, said in ((5e-12, "error control came no further"), (1e-3, "contradict each other")):
        solver.control[0]["gap"] = gap
        assert said in explain(solver, failure, by_others=False)
