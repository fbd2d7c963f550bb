"""Frames of constraints that a program moves: what is prescribed on the way."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from bulletbridge.constraints.motion import Motion
from bulletbridge.constraints.moved_frames import MOVED
from bulletbridge.drop_in.moved_frame import Way
from bulletbridge.errors import ModelError


def way(rng: np.random.Generator) -> tuple[np.ndarray, Way]:
    """A frame in its second step, of which half makes a step of the system."""
    frame = np.zeros(1, MOVED)
    axes: np.ndarray = rng.normal(size=(3, 3))
    frame["align"] = np.linalg.qr(axes)[0]
    frame["until"], frame["dt"], frame["part"] = 2.0, 0.01, 0.005
    frame["before"], frame["rates"] = rng.normal(size=4), rng.normal(size=4)
    return frame, Way(frame=frame)


def test_a_moved_frame_is_prescribed_as_its_rates_say():
    """Sums of three products of numbers up to 300, each rounded twice: within 1e-12."""
    frame, motion = way(np.random.default_rng(3))
    (before,), (rates,) = frame["before"], frame["rates"]
    start, middle, end = motion.over(np.array([1.99, 1.995, 2.0]))
    assert_allclose(
        start, np.array([-0.01 * rates, before, (rates - before) / 0.005]).T, atol=1e-12
    )
    assert_allclose(middle, np.array([-0.005 * rates, rates, 0.0 * rates]).T, atol=1e-12)
    assert_allclose(end, np.array([0.0 * rates, rates, 0.0 * rates]).T, atol=1e-12)
    targets, others = np.zeros((2, 3, 2, 12))
    times = np.array([1.99, 1.995, 2.0])
    motion.put(times, frame["align"][0], targets, 1)
    Motion.put(motion, times, frame["align"][0], others, 1)
    assert not targets[:, 0].any()
    assert_allclose(targets, others, atol=1e-12)


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_a_moved_frame_that_is_nowhere_is_refused(number: float):
    frame, motion = way(np.random.default_rng(4))
    frame["rates"][0, 1] = number
    with pytest.raises(ModelError, match="not finite at t = 1.99 s"):
        motion.put(np.array([1.99]), np.eye(3), np.zeros((1, 1, 12)), 0)
