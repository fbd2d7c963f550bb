"""Integrators in Python: their orders, correction and filter, long runs, and what fails."""

import numpy as np
import pytest
from mechanisms import REVOLUTE, SPHERICAL
from numpy.testing import assert_allclose
from planar import four_bar
from test_step import closed_system

import bulletbridge as bb
from bulletbridge.errors import ModelError, StepError, UnsupportedError
from bulletbridge.formulations.registry import FORMULATIONS
from bulletbridge.simulation.methods import METHODS

ORDERS = {"euler": 1, "semi_implicit_euler": 1, "heun": 2, "rk4": 4, "nystrom4": 4}
ORDERS |= {"trapezoidal": 2, "symmetric": 2}
FREE_CASE = (3, True, [SPHERICAL, REVOLUTE, SPHERICAL, REVOLUTE, SPHERICAL], "ball", False)


def spatial(integrator: str, dt: float, **options) -> bb.System:
    """A floating body with spherical joints and a loop, moving; rotations do not commute."""
    system = closed_system(FREE_CASE, integrator=integrator, formulation="proximal", **options)
    system._full.control[0]["dt"] = system._solver.control[0]["dt"] = dt
    return system
