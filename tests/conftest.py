"""Fixtures for all tests."""

import numpy as np
import pytest


@pytest.fixture
def rng() -> np.random.Generator:
    """Repeatable random numbers."""
    return np.random.default_rng(12345)
