"""As much of gym's API before 0.26 as PyBullet's environments use, which newer ones do not have."""

import sys
import types
from typing import Any

import numpy as np

__version__ = "0.21.0"


class Env:
    """Base of environments."""

    metadata: dict[str, Any] = {}
    action_space: Any = None
    observation_space: Any = None

    def close(self) -> None:
        """Nothing to close."""


class Space:
    """Base of spaces."""


class Box(Space):
    """Vectors between bounds."""

    def __init__(
        self,
        low: Any = -1.0,
        high: Any = 1.0,
        shape: tuple[int, ...] | None = None,
        dtype: Any = np.float32,
    ) -> None:
        self.shape = np.shape(low) if shape is None else shape
        self.low, self.high = np.broadcast_to(low, self.shape), np.broadcast_to(high, self.shape)
        self.dtype = dtype


class Discrete(Space):
    """Numbers from 0."""

    def __init__(self, n: int) -> None:
        self.n = n


class Dict(Space):
    """Spaces by name."""

    def __init__(self, spaces: dict[str, Any] | None = None) -> None:
        self.spaces = spaces or {}


class Registry:
    """Names of environments."""

    def __init__(self) -> None:
        self.env_specs: dict[str, Any] = {}


registry = Registry()


def register(id: str, **entry: Any) -> None:
    """Add an environment."""
    registry.env_specs[id] = entry


def np_random(seed: int | None = None) -> tuple[np.random.RandomState, int | None]:
    """A generator and its seed."""
    return np.random.RandomState(seed or 0), seed  # noqa: NPY002  what environments expect


def module(name: str, **content: Any) -> types.ModuleType:
    """A module that can be imported from now on."""
    made = sys.modules[name] = types.ModuleType(name)
    made.__dict__.update(content)
    return made


spaces = module("gym.spaces", Space=Space, Box=Box, Discrete=Discrete, Dict=Dict)
seeding = module("gym.utils.seeding", np_random=np_random)
utils = module("gym.utils", seeding=seeding, EzPickle=object)
registration = module(
    "gym.envs.registration", registry=registry, register=register, make=None, spec=None
)
envs = module("gym.envs", registration=registration)
