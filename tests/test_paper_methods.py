"""The papers' methods against the projector, on random mechanisms with loops."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from support.closed_mechanisms import closed_system, decided

import bulletbridge as bb
from bulletbridge.engine.records import STAGE_VDOTS
from bulletbridge.errors import UnsupportedError
from bulletbridge.formulations.projector import Projector
from bulletbridge.formulations.registry import formulation_of
from bulletbridge.mechanism.records import PRISMATIC, REVOLUTE, SPHERICAL

CASES = st.tuples(
    st.integers(0, 2**31),
    st.booleans(),
    st.lists(st.sampled_from((REVOLUTE, PRISMATIC, SPHERICAL)), min_size=6, max_size=7),
    st.sampled_from(("ball", "revolute")),
    st.booleans(),
)
AGREED = 1e-10
"""Of the largest acceleration: rows are at least 1e-3 of the strongest, whose square is 1e6 times
round-off, and M of these links is a thousand times further from singular than that."""


@settings(max_examples=12)
@given(case=CASES)
def test_accelerations_are_the_projector_s(case):
    """Those of charts, quasi-velocities and modules, and what kernels take with a weighting."""
    system = closed_system(case)
    if not decided(system):
        return
    q, v, t = system.q, system.v, system.t
    expected = Projector(system.dynamics)(q, v, t).vdot
    atol = AGREED * np.abs(expected).max()
    for name in ("tangent_space", "quasi_velocities", "modular"):
        try:
            found = formulation_of(name)(system.dynamics)(q, v, t).vdot
        except UnsupportedError:  # it says that masses are too far apart for it
            continue
        assert_allclose(found, expected, rtol=0.0, atol=atol, err_msg=name)
    for weighting in ("condensed", "identity"):
        one = bb.System(system.mechanism, system.constraints, dt=1e-4, weighting=weighting)
        one.set_state(q, v, t)
        one.step()
        found = one.compiled()[0].vectors[STAGE_VDOTS, : len(v)]
        assert_allclose(found, expected, rtol=0.0, atol=atol, err_msg=weighting)


@settings(max_examples=3)
@given(seed=st.integers(0, 2**31), floating=st.booleans())
def test_methods_of_order_four_close_up_on_each_other(seed, floating):
    """What two of them differ by falls as their errors do, to a sixteenth at half the step.

    An eighth is asked for: higher terms count at finite steps. Differences at round-off say
    nothing.
    """
    start = closed_system((seed, floating, [REVOLUTE] * 6, "ball", False))
    if not decided(start):
        return
    ends = {}
    for how in ({"weighting": "identity"}, {"integrator": "charts"}, {"integrator": "dop853"}):
        for parts in (8, 16):
            system = bb.System(start.mechanism, start.constraints, dt=8e-3 / parts, **how)
            system.set_state(start.q, start.v, 0.0)
            system.rollout(parts)
            ends[next(iter(how.values())), parts] = np.concatenate([system.q, system.v])
    truth = ends["dop853", 16]
    for name in ("identity", "charts"):
        coarse, fine = (np.abs(ends[name, parts] - truth).max() for parts in (8, 16))
        assert fine <= coarse / 8.0 + 1e-11 * max(1.0, np.abs(truth).max())


@pytest.mark.parametrize("slip", [(0.7, 0.2, -0.4), (-0.3, 0.0, 0.9)])
def test_friction_of_class_ii_is_the_projector_with_that_force(slip):
    """On a block on a slope the normal force is known: friction is mu m g cos, against slip."""
    from bulletbridge.mechanism.build import Load, empty_mechanism, with_joint

    angle, mu, mass = 0.4, 0.3, 2.0
    gravity = (9.81 * np.sin(angle), 0.0, -9.81 * np.cos(angle))
    block = with_joint(
        empty_mechanism(gravity), "base", "free", "block", load=Load(mass, inertia=(0.1, 0.1, 0.1))
    )
    plane = bb.LoopJoint("plane", bb.JointModel.PLANAR, bb.Frame("world"), bb.Frame("block"))
    system = bb.System(block, [plane])
    v = np.array([0.0, 0.0, 0.0, slip[0], slip[2], 0.0])
    system.set_state(v=v)
    found = bb.sliding(bb.Friction(plane, mu))(system.dynamics)(system.q, v, 0.0).vdot
    along = v[3:5] / np.linalg.norm(v[3:5])
    expected = np.array([gravity[0], 0.0]) + mu * gravity[2] * along
    assert_allclose(found[3:5], expected, rtol=1e-10, atol=1e-10)
