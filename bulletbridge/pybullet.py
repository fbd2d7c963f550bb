"""PyBullet with exact loops: ``import bulletbridge.pybullet as p`` instead of ``import pybullet``.

Every function and constant is there. Constraints are closed to round-off after each
``stepSimulation``; ids, errors, arguments and return values are PyBullet's. What is not passed
through untouched, and why, is in the documentation of the functions themselves.
"""

from typing import Any

import pybullet

from bulletbridge.drop_in import functions

globals().update(functions.FUNCTIONS)  # found without being looked for


def __getattr__(name: str) -> Any:
    """PyBullet's attribute of this name, or what stands in for it."""
    return functions.lookup(name)


def __dir__() -> list[str]:
    """PyBullet's names and ours."""
    return sorted({*dir(pybullet), *functions.FUNCTIONS})


__all__ = [name for name in __dir__() if not name.startswith("_")]  # pyright: ignore[reportUnsupportedDunderAll]
