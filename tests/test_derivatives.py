"""Derivatives of accelerations and multipliers against differences of the equations, Pinocchio."""

from importlib import import_module
from typing import Any

import numpy as np
import pytest
from _mechanisms import oracle, random_mechanism, random_state
from numpy.testing import assert_allclose
from support.closed_mechanisms import closed_system
from support.richardson import by_columns, moved, rate_of
from test_constraints import SAMPLES, closed_world, lines_and_turns
from test_elements import SPRINGS

import bulletbridge as bb
from bulletbridge.engine.derivatives import Differentiator
from bulletbridge.engine.stepper import Solver
from bulletbridge.engine.workspace import Tolerances
from bulletbridge.errors import ModelError, UnsupportedError
from bulletbridge.mechanism.beams import FlexibleBeam
from bulletbridge.mechanism.build import empty_mechanism, with_beam
from bulletbridge.mechanism.records import DRAG, EFFORT, FREE, PRISMATIC, REVOLUTE, SPHERICAL
from bulletbridge.system.parameter_derivatives import ParameterDifferentiator
from bulletbridge.system.parameters import (
    changed_constraints,
    changed_mechanism,
    parameters_of,
)

pin: Any = import_module("pinocchio")
KINDS = [FREE, REVOLUTE, PRISMATIC, SPHERICAL, REVOLUTE]
RTOL = 1e-8
"""Of what differences say, over their largest number: extrapolated ones are good for 1e-9."""


def solution(solver, q, v, t, tau):
    """Acceleration and multipliers by the whole system of equations, from its terms alone."""
    terms, nc = solver.terms(q, v, t), solver.encoded.nc
    K = np.block([[terms.M, -terms.J.T], [terms.J, np.zeros((nc, nc))]])
    return np.linalg.solve(K, np.concatenate([tau + terms.forces - terms.h, -terms.gamma]))


def require_derivatives(solver, q, v, t, tau):
    """What the kernel says is what differences say of the whole system of equations."""
    mechanism, nv, nc = solver.mechanism, len(v), solver.encoded.nc
    found = Differentiator(solver).at(q, v, t, tau)
    both = solution(solver, q, v, t, tau)
    assert_allclose(found.vdot, both[:nv], rtol=0, atol=1e-9 * np.abs(both).max())
    told = np.vstack([found.X, found.multipliers]).reshape(nv + nc, 3, nv)
    ways = (
        lambda d: solution(solver, moved(mechanism, q, d), v, t, tau),
        lambda d: solution(solver, q, v + d, t, tau),
        lambda d: solution(solver, q, v, t, tau + d),
    )
    for k, way in enumerate(ways):
        wanted = by_columns(way, nv)
        for part in (slice(0, nv), slice(nv, nv + nc)):
            size = np.abs(wanted[part]).max(initial=0.0)
            assert_allclose(told[part, k], wanted[part], rtol=0, atol=RTOL * size)


@pytest.mark.parametrize("name", [n for n in SAMPLES if n not in ("user", "to the world")])
def test_every_constraint_has_exact_derivatives(name, rng):
    mechanism, constraint, q, v, t = closed_world(SAMPLES[name], rng)
    solver = bb.System(mechanism, [constraint])._active.full
    require_derivatives(solver, q, v, t, rng.normal(size=mechanism.nv))


def test_rows_that_bounds_act_along_have_exact_derivatives(rng):
    mechanism, encoded = lines_and_turns(rng)
    q, v = random_state(rng, mechanism)
    solver = Solver(mechanism, encoded, Tolerances())
    require_derivatives(solver, q, v, 0.0, rng.normal(size=mechanism.nv))


@pytest.mark.parametrize("model", ["ball", "revolute", "cylindrical"])
def test_loops_to_the_world_have_exact_derivatives(model):
    system = closed_system((2, False, [REVOLUTE, SPHERICAL, PRISMATIC, SPHERICAL], model, False))
    state = np.array(system.q), np.array(system.v), system.t
    require_derivatives(system._active.solver, *state, np.ones(len(system.v)))


@pytest.mark.parametrize("seed", range(4))
def test_trees_with_drags_dampers_springs_and_rotors(seed):
    rng = np.random.default_rng(seed)
    mechanism = random_mechanism(rng, KINDS + [PRISMATIC, SPHERICAL])
    single = mechanism.axes["q"] >= 0
    for field in ("damping", "stiffness", "rest", "torque"):
        mechanism.axes[field][single] = rng.uniform(0.0, 3.0, single.sum())
    mechanism.axes["armature"] = rng.uniform(0.0, 1.0, mechanism.nv)
    drags = np.zeros(2, EFFORT)
    for drag, body in zip(drags, mechanism.bodies[[3, 5]], strict=True):
        drag["kind"], drag["linear"], drag["angular"] = DRAG, 0.3, 0.7
        for field in ("mass", "com", "J"):
            drag[field] = body[field]
    drags["body"] = 3, 5
    object.__setattr__(mechanism, "efforts", drags)
    q, v = random_state(rng, mechanism)
    solver = bb.System(mechanism)._active.full
    require_derivatives(solver, q, v, 0.0, rng.normal(size=mechanism.nv))


@pytest.mark.parametrize("name", SPRINGS)
def test_every_force_element_has_exact_derivatives(name):
    rng = np.random.default_rng(5)
    mechanism = random_mechanism(rng, KINDS)
    q, v = random_state(rng, mechanism)
    solver = bb.System(mechanism, [SPRINGS[name]])._active.full
    require_derivatives(solver, q, v, 0.0, rng.normal(size=mechanism.nv))


@pytest.mark.parametrize("axes", ["world", "link2", "link3", "link5"])
def test_wrenches_along_axes_of_any_link_have_exact_derivatives(axes):
    rng = np.random.default_rng(6)
    mechanism = random_mechanism(rng, KINDS, branching=0.5)
    q, v = random_state(rng, mechanism)
    frame = bb.Frame("link4", (0.1, 0.2, 0.3), (0.3, 0.1, -0.7))
    push = bb.Wrench(frame, (1.0, -2.0, 3.0), (0.4, 0.5, -0.6), axes=bb.Frame(axes))
    forces = {"push": push, "joint2": lambda t: 2.0 + t}
    solver = bb.System(mechanism, forces=forces)._active.full
    require_derivatives(solver, q, v, 0.3, rng.normal(size=mechanism.nv))


@pytest.mark.parametrize("model", ["ball", "weld", "revolute", "planar"])
@pytest.mark.parametrize("floating", [False, True])
def test_redundant_rows_change_nothing(model, floating):
    case = (7, floating, [REVOLUTE, SPHERICAL, PRISMATIC, REVOLUTE, SPHERICAL], model)
    once, twice = (closed_system((*case, again)) for again in (False, True))
    q, v = np.array(once.q), np.array(once.v)
    tau = np.random.default_rng(1).normal(size=len(v))
    told = [Differentiator(s._active.solver).at(q, v, 0.0, tau).X for s in (once, twice)]
    assert_allclose(told[1], told[0], rtol=0, atol=1e-9 * np.abs(told[0]).max())


def test_velocities_along_the_loops_change_accelerations_along_them():
    """Rates that stay on the loops: J ∂v̇/∂v + ∂γ/∂v vanishes, whatever is redundant."""
    system = closed_system((3, True, [REVOLUTE, SPHERICAL, REVOLUTE, SPHERICAL], "weld", True))
    solver = system._active.solver
    q, v = np.array(system.q), np.array(system.v)
    nv = len(v)
    found = Differentiator(solver).at(q, v, 0.0, np.zeros(nv))
    J = solver.terms(q, v, 0.0).J
    size = np.abs(J).max() * np.abs(found.X).max()
    assert_allclose(J @ found.X[:, 2 * nv :], 0.0, atol=1e-12 * size)
    assert_allclose(J @ found.X[:, : 2 * nv], found.acceleration, atol=1e-12 * size)


@pytest.mark.parametrize("seed", range(3))
def test_trees_are_differentiated_as_pinocchio_does(seed):
    rng = np.random.default_rng(seed)
    mechanism = random_mechanism(rng, [REVOLUTE, SPHERICAL, PRISMATIC, REVOLUTE, SPHERICAL])
    q, v = random_state(rng, mechanism)
    nv, tau = len(v), rng.normal(size=mechanism.nv)
    found = Differentiator(bb.System(mechanism)._active.full).at(q, v, 0.0, tau)
    other = oracle(mechanism)
    by_q, by_v, _ = pin.computeRNEADerivatives(other.model, other.data, q, v, found.vdot)
    assert_allclose(found.F[:, :nv], by_q, rtol=0, atol=1e-12 * np.abs(by_q).max())
    assert_allclose(found.F[:, nv:], by_v, rtol=0, atol=1e-12 * np.abs(by_v).max())


@pytest.mark.parametrize(("model", "kind"), [("weld", "CONTACT_6D"), ("ball", "CONTACT_3D")])
@pytest.mark.parametrize("seed", [11, 12])
def test_loops_are_differentiated_as_pinocchio_does(model, kind, seed):
    kinds = [REVOLUTE, SPHERICAL, PRISMATIC, REVOLUTE, SPHERICAL]
    system = closed_system((seed, False, kinds, model, False))
    system.tau[:] = np.linspace(-1.0, 1.0, len(system.v))
    other, (loop,) = oracle(system.mechanism), system.encoded.loops
    ends = list[Any]()
    for end in "ab":
        place = pin.SE3(np.array(loop[f"R_{end}"]), np.array(loop[f"p_{end}"]))
        ends += [other.ids[loop[f"body_{end}"]], place]
    made = pin.RigidConstraintModel(
        getattr(pin.ContactType, kind), other.model, *ends, pin.ReferenceFrame.LOCAL
    )
    models, datas = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    models.append(made)
    datas.append(made.createData())
    data, settings = other.model.createData(), pin.ProximalSettings(1e-14, 1e-14, 1e-12, 20)
    pin.initConstraintDynamics(other.model, data, models, datas)
    state = np.array(system.q), np.array(system.v), np.array(system.tau)
    pin.constraintDynamics(other.model, data, *state, models, datas, settings)
    pin.computeConstraintDynamicsDerivatives(other.model, data, models, datas, settings)
    found = system.derivatives()
    for ours, theirs in (
        (found.acceleration_by_q, data.ddq_dq),
        (found.acceleration_by_v, data.ddq_dv),
        (found.acceleration_by_tau, data.ddq_dtau),
    ):
        assert_allclose(ours, theirs, rtol=0, atol=1e-11 * np.abs(theirs).max())


@pytest.mark.parametrize("away", [1e-2, 1e-4])
def test_beside_a_singular_position_the_loops_are_still_kept(away):
    """A parallelogram all but flat: derivatives grow with the inverse of the distance."""
    system = bb.load("parallelogram").system
    crank = next(iter(system.mechanism.joints))
    system.assemble({crank: away})
    found, solver = system.derivatives(), system._active.solver
    J = solver.terms(solver.q, solver.v, solver.t).J
    size = np.abs(J).max() * np.abs(found.acceleration_by_tau).max()
    assert_allclose(J @ found.acceleration_by_tau, 0.0, atol=1e-12 * size)

    def moving(change):
        solver.put(q, v + change, 0.0)
        return solver.acceleration()

    q, v = solver.q.copy(), solver.v.copy()
    wanted = by_columns(moving, len(v))
    assert_allclose(found.acceleration_by_v, wanted, rtol=0, atol=1e-8 * np.abs(wanted).max())


def test_what_has_no_derivatives_is_named():
    mechanism = random_mechanism(np.random.default_rng(0), KINDS)
    user = bb.System(mechanism, [SAMPLES["user"]])._active.full
    with pytest.raises(UnsupportedError, match="constraint 'sphere' is written in Python"):
        Differentiator(user)
    beam = FlexibleBeam(1.0, 10.0, 1.0)
    with pytest.raises(UnsupportedError, match="'bends' is a beam"):
        Differentiator(bb.System(with_beam(empty_mechanism(), "bends", beam, "tip"))._active.full)


def test_derivatives_say_what_they_are_of():
    system = bb.load("two_arms").system
    system.tau[:] = np.linspace(-1.0, 1.0, len(system.v))
    found = system.derivatives()
    nv, nc = len(system.v), system.encoded.nc
    assert found.acceleration_by_q.shape == (nv, nv)
    assert found.multipliers_by_tau.shape == (nc, nv) == (len(found.rows), len(found.rates))
    assert found.rates[:2] == tuple(system.mechanism.joints)[:2]
    assert {row.partition("[")[0] for row in found.rows} == {c.name for c in system.constraints}
    assert_allclose(found.acceleration, system.acceleration(), rtol=1e-12)
    told = [r.multipliers for r in system.reactions().values()]
    size = np.abs(found.multipliers).max()
    assert_allclose(found.multipliers, np.concatenate(told), rtol=0, atol=1e-9 * size)
    by_tau = found.acceleration_by_tau
    assert_allclose(by_tau, by_tau.T, rtol=0, atol=1e-11 * np.abs(by_tau).max())


def test_derivatives_follow_what_is_changed():
    """Gravity, masses and forces of joints that are set after the first call."""
    changed, fresh = (closed_system((5, False, [SPHERICAL] * 3, "ball", False)) for _ in "ab")
    before = changed.derivatives().acceleration_by_q
    for system in (changed, fresh):
        system.gravity = (1.0, 2.0, 3.0)
        system.set_parameters({"link2.mass": 7.0})
        system.tau[:] = np.arange(9.0)
    again, new = changed.derivatives(), fresh.derivatives()
    assert_allclose(again.acceleration_by_q, new.acceleration_by_q, rtol=0, atol=1e-12)
    assert np.abs(again.acceleration_by_q - before).max() > 0.1


def test_motors_and_contacts_are_refused():
    system = bb.load("four_bar").system
    system.motors.set("crank", velocity=1.0)
    with pytest.raises(UnsupportedError, match="motors"):
        system.derivatives()


PARAMETRIC = (
    "link2.mass", "link3.com.y", "link4.inertia.xy", "joint1.damping", "joint1.stiffness",
    "joint3.armature", "joint4.torque", "joint4.origin.x", "gravity.z", "loop.a.x", "loop.b.z",
    "s.stiffness", "s.damping", "s.length", "s.force", "rod.a.y", "rod.length",
)  # fmt: skip


def changed_by(name, by):
    """A system with loop, rod and spring whose parameter is another, at a state of before."""
    rng = np.random.default_rng(8)
    mechanism = random_mechanism(rng, [REVOLUTE, SPHERICAL, PRISMATIC, REVOLUTE], branching=0.0)
    q, v = random_state(rng, mechanism)
    mechanism.axes["damping"][0], mechanism.axes["stiffness"][0] = 0.3, 2.0
    link, _, rest = name.partition(".")
    what, _, field = rest.partition(".")
    if what in ("com", "inertia"):
        frame = mechanism.links[link]
        i, j = ("xyz".index(x) for x in (field if what == "inertia" else 2 * field))
        unit = np.zeros((3, 3))
        unit[i, j] = unit[j, i] = by
        body = mechanism.bodies[frame.body]
        if what == "com":
            body["com"] += by * frame.R[:, i]
        else:
            body["J"] += frame.R @ unit @ frame.R.T
    a, b = bb.Frame("world", (0.3, 0.1, 0.2)), bb.Frame("link4", (0.1, -0.2, 0.3))
    rod = bb.Distance("rod", bb.Frame("link1", (0.2, 0, 0)), bb.Frame("link4"), 0.7)
    loop = bb.LoopJoint("loop", bb.JointModel.POINT_ON_PLANE, a, b)
    spring = bb.Spring("s", a, bb.Frame("link3"), 30.0, 0.7, 0.4, 2.0)
    constraints = changed_constraints([loop, rod, spring], {})
    if by and what not in ("com", "inertia"):
        known = parameters_of(mechanism, constraints)
        there = {name: known[name] + by}
        constraints = changed_constraints(constraints, there)
        mechanism = changed_mechanism(mechanism, constraints, there)
    return bb.System(mechanism, constraints)._active.full, q, v, constraints


@pytest.mark.parametrize("name", PARAMETRIC)
def test_every_parameter_has_exact_derivatives(name):
    solver, q, v, constraints = changed_by(name, 0.0)
    tau = np.linspace(-1.0, 1.0, len(v))
    solver.put(q, v, 0.0)
    solver.tau[0] = tau
    differentiator = Differentiator(solver)
    found = differentiator.at(q, v, 0.0, tau)
    columns = ParameterDifferentiator(solver, constraints).columns([name], found)
    told = np.vstack(differentiator.answer(*columns))[:, 0]

    def both(by):
        other, q, v, _ = changed_by(name, by)
        return solution(other, q, v, 0.0, tau)

    wanted = rate_of(both)
    assert_allclose(told, wanted, rtol=0, atol=RTOL * np.abs(wanted).max() + 1e-12)


def test_parameters_go_by_name():
    system = bb.load("four_bar").system
    found = system.derivatives(parameters=["crank.mass", "gravity.z"])
    assert found.parameters == ("crank.mass", "gravity.z")
    assert found.acceleration_by_parameters.shape == (3, 2)
    assert found.multipliers_by_parameters.shape == (len(found.rows), 2)
    with pytest.raises(ModelError, match="unknown parameter 'crank.mas'"):
        system.derivatives(parameters=["crank.mas"])
    joint = next(iter(system.mechanism.joints))
    with pytest.raises(UnsupportedError, match="friction' acts by an inequality"):
        system.derivatives(parameters=[f"{joint}.friction"])
