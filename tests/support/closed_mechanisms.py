"""Random mechanisms with a loop, and whether thresholds matter to them."""

# a guess that is not closed yet, and rows that were left out, are not for users
# pyright: reportPrivateUsage=false

from typing import Any

import numpy as np
from _mechanisms import PRISMATIC, REVOLUTE, SPHERICAL, random_mechanism, random_state
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from scipy.spatial.transform import Rotation

import bulletbridge as bb
from bulletbridge.mechanism.records import FREE


def decided(system: bb.System) -> bool:
    """Whether all rows as written are either strong or zero, so that no threshold matters."""
    terms = system._active.full.terms(system.q, system.v, system.t)
    J = system.encoded.scale[:, None] * terms.J
    s = np.linalg.svd(np.linalg.solve(np.linalg.cholesky(terms.M), J.T), compute_uv=False)
    return bool(np.all((s > 1e-3 * s[0]) | (s < 1e-9 * s[0])))


Case = tuple[int, bool, list[int], str, bool]
"""Seed, whether the base floats, kinds of joints, model of the loop, whether it is closed twice."""


def closed_cases(
    least: int = 6,
    most: int = 8,
    models: tuple[str, ...] = ("ball", "weld", "revolute", "point_on_plane"),
    twice: bool | None = None,
) -> SearchStrategy[Case]:
    """What ``closed_system`` takes, of ``least`` to ``most`` joints; None is either."""
    kinds = st.sampled_from([REVOLUTE, PRISMATIC, SPHERICAL])
    return st.tuples(
        st.integers(0, 2**32 - 1),
        st.booleans(),
        st.lists(kinds, min_size=least, max_size=most),
        st.sampled_from(models),
        st.booleans() if twice is None else st.just(twice),
    )


def closed_system(case: Case, **options: Any) -> bb.System:
    """A random tree with a loop through its last link, closed at a random pose."""
    seed, floating, kinds, model, twice = case
    rng = np.random.default_rng(seed)
    mechanism = random_mechanism(rng, ([FREE] if floating else []) + kinds, branching=0.0)
    system = bb.System(mechanism, dt=1e-3)
    q, v = random_state(rng, mechanism)
    system.set_state(q, v)
    first, last = "link1" if floating else "world", list(mechanism.links)[-1]
    point = system.kinematics().point
    a, b = point(bb.Frame(first)), point(bb.Frame(last))
    rpy = tuple(Rotation.from_matrix(a.R_W.T @ b.R_W).as_euler("xyz"))
    frame = bb.Frame(first, tuple(a.R_W.T @ (b.p_W - a.p_W)), rpy)
    joints = [bb.LoopJoint("loop", bb.JointModel(model), frame, bb.Frame(last))]
    if twice:
        joints.append(bb.LoopJoint("again", bb.JointModel(model), frame, bb.Frame(last)))
    constrained = bb.System(mechanism, joints, dt=1e-3, **options)
    constrained.set_state(q, v)
    constrained.step()
    return constrained


def led_weld(kinds: list[int], integrator: str, **options: Any) -> bb.System:
    """One of these mechanisms, of joints of some kinds, whose welded loop is led."""
    drive = bb.Motion(z=bb.Sine(0.05, 2.0), angle=bb.Sine(0.1, 3.0))
    plain = closed_system((102, False, kinds, "weld", False))
    (weld,) = plain.constraints
    assert isinstance(weld, bb.LoopJoint)
    driven = bb.LoopJoint("loop", bb.JointModel.WELD, weld.a, weld.b, motion=drive)
    options |= {"integrator": integrator, "dt": 1e-3}
    system = bb.System(plain.mechanism, [driven], **options)
    system.assemble(guess=dict())
    system.set_state(t=0.0)
    return system
