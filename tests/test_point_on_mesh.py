"""A point on a mesh: a plane on each facet, and what ends it."""

import numpy as np
import pytest
import trimesh
from _mechanisms import random_mechanism, random_state
from numpy.testing import assert_allclose
from support.small_trees import GRAVITY, slider
from test_constraints import FD_ATOL, FD_STEP, KINDS

import bulletbridge as bb
from bulletbridge.constraints.encode import encode
from bulletbridge.constraints.mesh import PointOnMesh
from bulletbridge.engine.stepper import Solver
from bulletbridge.engine.workspace import Tolerances
from bulletbridge.errors import ModelError, StepError
from bulletbridge.mechanism.kinematics import displace

BODY, WORLD = bb.Frame("body"), bb.Frame("world")
BOX = trimesh.creation.box((2.0, 2.0, 2.0))


def test_each_order_is_the_rate_of_the_one_before(rng):
    """On a facet of a mesh that moves."""
    mechanism = random_mechanism(rng, KINDS)
    q, v = random_state(rng, mechanism)
    frame = bb.Frame("link3", (0.1, -0.2, 0.3), (0.3, -0.5, 0.7))
    plate = trimesh.Trimesh([[-50, -50, 0], [50, -50, 0], [0, 50, 0.0]], [[0, 1, 2]])
    point = PointOnMesh("tip", frame, bb.Frame("link8", (0.2, 0.1, 0.0)), plate)
    solver = Solver(mechanism, encode(mechanism, [point]), Tolerances())

    def moved(s):
        there = np.empty_like(q)
        displace(mechanism.bodies, q, v, s, there)
        return solver.terms(there, v, s)

    now, later, earlier = (moved(s) for s in (0.0, FD_STEP, -FD_STEP))
    assert_allclose((later.g - earlier.g) / (2 * FD_STEP), now.J @ v, atol=FD_ATOL)
    rate = (later.J @ v - earlier.J @ v) / (2 * FD_STEP)
    assert_allclose(rate, now.gamma, atol=FD_ATOL)


def test_a_bead_slides_down_a_facet_and_is_stopped_at_the_edge():
    """A box turned by 0.3 rad about y: g sin on its top, whose edge is 1 m from the middle."""
    turned = bb.Frame("world", rpy=(0.0, 0.3, 0.0))
    point = PointOnMesh("bead", turned, BODY, BOX)
    system = bb.System(slider("xz"), [point], integrator="rk4", dt=0.01)
    top = np.array([np.sin(0.3), np.cos(0.3)])
    system.set_state(q=top)
    system.rollout(50)
    way = 0.5 * GRAVITY * np.sin(0.3) * 0.5**2
    assert_allclose(system.q, top + way * np.array([np.cos(0.3), -np.sin(0.3)]), rtol=1e-11)
    with pytest.raises(StepError, match="'bead' goes over an edge that bends by 1.57 rad"):
        system.rollout(50)
    assert system.t > np.sqrt(2 / (GRAVITY * np.sin(0.3))) - 0.03


def test_a_fine_sphere_is_nearly_a_sphere():
    """The bead starts on top of a facet; its way agrees to the size of the facets."""
    ball = trimesh.creation.icosphere(subdivisions=3, radius=1.0)
    point = PointOnMesh("bead", WORLD, BODY, ball)
    system = bb.System(slider("xyz"), [point], integrator="rk4", dt=0.01)
    system.assemble(guess={"x": 0.3, "y": 0.02, "z": 0.95})
    start, energy = system.q, system.evaluate().energy
    system.rollout(40)
    assert np.linalg.norm(system.q - start) > 0.2
    assert 0.985 < np.linalg.norm(system.q) < 1.0 + 1e-9  # facets are inside the sphere
    assert system.evaluate().largest("metres") < 1e-12
    assert system.evaluate().energy <= energy + 1e-6


@pytest.mark.parametrize(
    ("faces", "message"),
    [
        ([[0, 1, 2], [0, 1, 3], [1, 0, 4]], "'tip' is no manifold: the edge .* 0 and 1"),
        ([[0, 1, 2], [0, 1, 3]], "'tip' is no manifold"),
        (np.zeros((0, 3), int), "'tip' has no facets"),
    ],
)
def test_meshes_that_are_no_surfaces_are_refused(faces, message):
    vertices = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [0, -1, 0.0]]
    mesh = trimesh.Trimesh(vertices, faces, process=False)
    with pytest.raises(ModelError, match=message):
        PointOnMesh("tip", WORLD, BODY, mesh)
