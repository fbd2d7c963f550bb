"""Records that are packed from plain numbers."""

import struct
import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from bulletbridge.mechanism.records import CONTACT_POINT, STICKING_POINT
from bulletbridge.numerics.records import Packing, are_numbers


def test_packed_numbers_are_the_fields_in_their_order():
    pack = Packing(CONTACT_POINT, 16)
    one = (
        3,
        4,
        (0.1, 0.2, 0.3),
        (0.0, 0.6, 0.8),
        -1e-3,
        0.5,
        0.01,
        0.02,
        0.3,
        1e3,
        5.0,
        0.4,
        (1.0, 0, 0),
        2e-4,
        5,
        6,
    )
    other = (
        0,
        7,
        (5.0, 6.0, 7.0),
        (1.0, 0.0, 0.0),
        2e-3,
        0.0,
        0.0,
        0.0,
        1.0,
        0.0,
        0.0,
        0.0,
        (0.0, 0, 1),
        0.0,
        0,
        -1,
    )
    numbers = [
        x for field in one + other for x in (field if isinstance(field, tuple) else (field,))
    ]
    found = pack(numbers)
    assert_array_equal(found, np.array([one, other], CONTACT_POINT))
    assert found.dtype is CONTACT_POINT
    assert found.flags.writeable and found.flags.aligned
    assert len(pack([])) == 0


def test_fields_that_are_not_given_are_zero():
    found = Packing(STICKING_POINT, 5)([1, 2, 3, *range(6)] * 2)
    for name in STICKING_POINT.names:
        given = {"body_a": 1, "body_b": 2, "count": 3, "position": [0, 1, 2], "normal": [3, 4, 5]}
        assert_array_equal(found[name], np.broadcast_to(given.get(name, 0), found[name].shape))


def test_numbers_that_do_not_fit_are_refused():
    pack = Packing(STICKING_POINT, 5)
    for wrong in ([1, 2, 3, 0.0], [1.0, 2, 3, *range(6)], [1, 2, 3, *range(6), 1]):
        with pytest.raises(struct.error):
            pack(wrong)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.int8, int])
def test_numbers_of_every_width_are_numbers(kind):
    """Those of float32 are compared with what none of them can be, without a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert are_numbers(kind(2))
        assert are_numbers(np.array([1, -2, 3], dtype=kind), (3,))
        if np.dtype(kind).kind == "f":
            assert not are_numbers(kind(np.inf))
            assert not are_numbers(kind(np.nan))
