"""The kept gap is one measure: what a step closes to round-off, `evaluate` finds closed."""

import numpy as np
import pytest

import bulletbridge as bb
from bulletbridge.mechanism.build import Load, empty_mechanism, with_joint

HALF_TURN = (np.pi / 2, 0.0, 0.0)
"""Joint axes, z of their frames, along y of the world."""


def three_rockers(rounded: float) -> bb.System:
    """A bar on three equal rockers: four rows in the plane, three independent.

    A joint on the bar is misplaced by ``rounded``, as by digits left out in a file.
    """
    load = Load(1.0, (0.0, 0.0, 0.0), (0.1, 0.1, 0.1))
    mechanism = empty_mechanism((0.0, 0.0, -9.81))
    for n in range(3):
        place = (float(n), 0.0, 0.0)
        mechanism = with_joint(
            mechanism, f"j{n}", "revolute", f"r{n}", xyz=place, rpy=HALF_TURN, load=load
        )
    mechanism = with_joint(mechanism, "jb", "revolute", "bar", "r0", xyz=(0.5, 0, 0), load=load)
    pins = [
        bb.LoopJoint(
            f"pin{n}",
            bb.JointModel.BALL,
            bb.Frame(f"r{n}", (0.5, 0.0, 0.0)),
            bb.Frame("bar", (n + (rounded if n == 2 else 0.0), 0.3 * rounded, 0.0)),
        )
        for n in (1, 2)
    ]
    system = bb.System(mechanism, pins, dt=1e-3)
    system.assemble({"j0": 0.7}, guess={"j1": 0.7, "j2": 0.7, "jb": -0.7})
    return system


@pytest.mark.parametrize("rounded", [0.0, 4e-7])
def test_evaluate_finds_closed_what_a_step_has_closed(rounded):
    system = three_rockers(rounded)
    assert system.decision.cap == 3 and system.decision.encoded.nc == 4
    widest = 0.0
    for _ in range(300):
        system.step()
        seen = system.evaluate()
        # the step's own tolerance, in lengths of the mechanism
        enough = 10.0 * system.tolerances.gap * system.encoded.length
        assert system.status.gap_kept * system.encoded.length <= enough
        assert seen.largest("kept_metres") <= enough
        widest = max(widest, seen.largest("metres"))
    # no choice of three rows closes the fourth, and the gap of what is rounded is of its size
    assert 0.1 * rounded <= widest <= max(10.0 * rounded, 1e-12)


def test_the_kept_gap_of_a_state_from_elsewhere_is_that_of_any_three_rows():
    """Of an open configuration the smallest largest gap over all choices, by trying all."""
    system = three_rockers(0.0)
    q = system.q + [0.0, 0.01, -0.02, 0.005]
    found = system.evaluate(q)
    terms = system._active.solver.terms(q, system.v, 0.0)
    unit = system._active.solver.encoded.scale
    gaps = np.abs(unit * terms.g)
    best = np.inf
    for left_out in range(4):
        rest = [row for row in range(4) if row != left_out]
        if np.linalg.matrix_rank(unit[rest, None] * terms.J[rest], 1e-3) == 3:
            best = min(best, gaps[rest].max())
    # a gap is the length of the two rows of one pin, the choice goes by the largest row
    one_row, pin = best * system.encoded.length, found.largest("kept_metres")
    assert one_row - 1e-15 <= pin <= np.sqrt(2) * one_row + 1e-15


def test_gap_vectors_are_told_with_and_without_what_no_joint_can_move():
    """Minitaur's file rounds its angles: loops are off across their planes, which stays so."""
    with bb.load("minitaur", "new") as model:
        model.system.run(0.1)
        whole, kept = model.system.gap_vectors(), model.system.gap_vectors(kept=True)
        found = model.system.evaluate()
    sizes = [max(np.linalg.norm(gap) for _, gap in each.values()) for each in (whole, kept)]
    assert sizes[0] > 1e-6
    assert sizes[1] < 1e-12  # what is promised [m]
    # the way along kept rows is no longer than their residuals make it, which are at right angles
    assert sizes[1] <= 2.0 * found.largest("kept_metres") + 1e-18
