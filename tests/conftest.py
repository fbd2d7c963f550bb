"""Fixtures for all tests."""

from collections.abc import Callable, Generator
from typing import Any

import numpy as np
import pybullet
import pytest

import bulletbridge


@pytest.fixture
def rng() -> np.random.Generator:
    """Repeatable random numbers."""
    return np.random.default_rng(12345)


@pytest.fixture
def connect() -> Generator[Callable[..., Any], None, None]:
    """Makes clients, ours unless another class is given, and closes them after the test."""
    made: list[Any] = []

    def make(kind: Any = None) -> Any:
        made.append((kind or bulletbridge.BulletClient)(pybullet.DIRECT))
        return made[-1]

    yield make
    for client in made:
        client.disconnect()
